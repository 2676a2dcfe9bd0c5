"""Rows of persons in plain Python: which are kept, and one record for each person."""

from fractions import Fraction

WORD = 2**64


def scramble(x):
    """The finalizer of splitmix64, in integers."""
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % WORD
    x = (x ^ x >> 27) * 0x94D049BB133111EB % WORD
    return x ^ x >> 31


def kept_rows(units, at_most, key):
    """Which rows are kept of persons that are integers; None is nobody's. `key`: eight words of 32 bits."""
    words = [int(word) for word in key]
    first, second = words[0] + (words[1] << 32), words[2] + (words[3] << 32)
    kept = [False] * len(units)
    rows = {}
    for i, unit in enumerate(units):
        if unit is not None:
            rows.setdefault(unit, []).append(i)
    for person, mine in rows.items():
        name = scramble((scramble(person % WORD ^ first) + second) % WORD)
        room = at_most
        for place, i in enumerate(mine):
            rest = len(mine) - place
            word = scramble((name + 0x9E3779B97F4A7C15 * rest) % WORD)
            if word * rest // WORD < room:
                kept[i] = True
                room -= 1
    return kept


def sums_of_persons(units, values, low, high, unit):
    """{person: (rows, clamped sum)} in the order of first rows; sums are of multiples of `unit`."""
    found = {}
    for person, value in zip(units, values, strict=True):
        if person is None:
            continue
        rows, total = found.get(person, (0, 0))
        number = 0 if value is None or value != value else round(Fraction(value) / Fraction(unit))
        found[person] = rows + 1, total + number
    return {
        person: (rows, float(min(max(total * Fraction(unit), Fraction(low)), Fraction(high))))
        for person, (rows, total) in found.items()
    }
