"""Rows of persons: who is whose, how many rows each has, and which few of them are kept.

They owe fastdp/records/persons.py one pass each. What is kept of a person depends on the rows of that person alone, on
their order among each other and on the key: never on where they are among the rows of others.
"""

from __future__ import annotations

from typing import Any

from .compile import jit
from .lanes import U64Array, uint64

_STEP = uint64(0x9E3779B97F4A7C15)
_FIRST = uint64(0xBF58476D1CE4E5B9)
_SECOND = uint64(0x94D049BB133111EB)
_LOW = uint64(0xFFFFFFFF)
_ROW = uint64(1 << 32)


@jit
def scramble_one(x: Any) -> Any:
    """The finalizer of splitmix64, a bijection of 64-bit words.

    x ^= x >> 30;  x *= 0xbf58476d1ce4e5b9;  x ^= x >> 27;  x *= 0x94d049bb133111eb;  x ^= x >> 31

    Shapes    x uint64
    Cost      1 ns
    Source    Steele, Lea and Flood (2014); constants of Stafford's thirteenth variant
    Returns   uint64
    Used by   kernels/persons.py
    Oracle    tests/oracles/persons.py::scramble
    """
    x = (x ^ (x >> uint64(30))) * _FIRST
    x = (x ^ (x >> uint64(27))) * _SECOND
    return x ^ (x >> uint64(31))


@jit
def name_persons_into(keys: U64Array, first: Any, second: Any, at_most: Any, out: U64Array) -> None:
    """Persons without rows yet: how many may be kept, and a word for each, by which the choice among the rows goes.

    out[i, 0] = at_most,  out[i, 1] = scramble(scramble(keys[i] ^ first) + second)

    Shapes    keys uint64[m]; first, second uint64: the key of the choice; at_most uint64; out uint64[m, 2]
    Cost      1.3 ns a person
    Used by   fastdp/records/persons.py
    Oracle    tests/oracles/persons.py::kept_rows
    """
    for i in range(keys.size):
        out[i, 0] = at_most
        out[i, 1] = scramble_one(scramble_one(keys[i] ^ first) + second)


@jit
def number_keys_into(
    keys: U64Array, seed: Any, start: int, known: int, table: Any, distinct: U64Array, out: Any
) -> tuple[int, int]:
    """Number distinct keys in the order in which they first occur, by a table with open addresses, until that is full.

    out[i] = #{different keys before the first that is keys[i]}

    Shapes    keys uint64[n]; seed uint64; table int32[2^k], -1 where free; distinct uint64[2^(k-1)]; out int32[n]
    Cost      4 ns a key for 2^16 different ones, 15 ns for 2^20
    Requires  table and distinct hold the first `known` keys, as this function or place_keys_into left them
    Returns   the first i that has no number yet (n at the end), and how many keys are known
    Used by   fastdp/records/persons.py
    Oracle    a dict of Python's
    """
    last = uint64(table.size - 1)
    most = table.size // 2
    for i in range(start, keys.size):
        key = keys[i]
        at = scramble_one(key ^ seed) & last
        while table[at] >= 0 and distinct[table[at]] != key:
            at = (at + uint64(1)) & last
        if table[at] < 0:
            if known == most:
                return i, known
            table[at] = known
            distinct[known] = key
            known += 1
        out[i] = table[at]
    return keys.size, known


@jit
def place_keys_into(distinct: U64Array, known: int, seed: Any, table: Any) -> None:
    """Put known keys into an empty table, as number_keys_into would.

    Shapes    distinct uint64[at least known]; seed uint64; table int32[2^k], all -1
    Cost      5 ns a key
    Requires  known <= 2^(k-1), the keys are different
    Used by   fastdp/records/persons.py
    Oracle    a dict of Python's
    """
    last = uint64(table.size - 1)
    for code in range(known):
        at = scramble_one(distinct[code] ^ seed) & last
        while table[at] >= 0:
            at = (at + uint64(1)) & last
        table[at] = code


@jit
def count_rows_into(codes: Any, people: U64Array) -> None:
    """Count each person's rows, in the high half of the first word.

    people[c, 0] += 2^32 #{i : codes[i] = c}

    Shapes    codes int32[n], below 0 for nobody's; people uint64[m, 2]
    Cost      1.5 ns a row for m = 2^16, 5 ns for 2^20
    Requires  codes < m, fewer than 2^32 rows
    Used by   fastdp/records/persons.py
    Oracle    numpy.bincount
    """
    for i in range(codes.size):
        code = codes[i]
        if code >= 0:
            people[code, 0] += _ROW


@jit
def choose_rows_into(codes: Any, people: U64Array, words: U64Array, out: Any) -> None:
    """Keep at most so many rows of each person: each choice of that many is equally likely, as far as words are random.

    A row of a person with l rows from it on, of which r may be kept, is kept if floor(w l / 2^64) < r, where
    w = scramble(people[c, 1] + 0x9e3779b97f4a7c15 l): selection sampling, which keeps min(r, l) of them.

    Shapes    codes int32[n], below 0 for nobody's; people uint64[m, 2], of each person 2^32 l + r, which is changed,
              and a word; words uint64[any], which a few rows' words are brought to; out bool[n]
    Cost      3 ns a row for m = 2^16, 13 ns for 2^20, of which the memory takes most
    Source    Fan, Muller and Rezucha (1962); Knuth, The Art of Computer Programming, volume 2, algorithm S
    Requires  codes < m, people as name_persons_into and count_rows_into make it of these codes
    Used by   fastdp/records/persons.py
    Oracle    tests/oracles/persons.py::kept_rows
    """
    for start in range(0, codes.size, words.size):
        stop = min(start + words.size, codes.size)
        # Read first, so that many wait for the memory at once: 13 instead of 28 ns a row
        for i in range(start, stop):
            words[i - start] = people[max(codes[i], 0), 1]
        for i in range(start, stop):
            code = codes[i]
            if code < 0:
                out[i] = False
                continue
            both = people[code, 0]
            among = both >> uint64(32)
            word = scramble_one(words[i - start] + _STEP * among)
            place = ((word >> uint64(32)) * among + (((word & _LOW) * among) >> uint64(32))) >> uint64(32)
            kept = place < (both & _LOW)  # all, where no more are left than may be kept: no branch to foresee
            people[code, 0] = both - (_ROW + uint64(kept))
            out[i] = kept
