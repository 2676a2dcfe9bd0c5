"""Whose each record is, by what one column says: numbers, dates or labels; equal entries are one person's.

A record whose entry is missing, or has no hash, is nobody's. Who is whose depends on no other record.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..support.columns import NO_LABEL, Array, places_of
from .outside_domain import is_missing
from .rows import Block

_MOST_PLACES = 2**26  # of a table over all integers of a range
_FEW = 2**16
_WORD = 2**64


class Keys(NamedTuple):
    """One column of some records.

    numbers  a word for each record, where entries are numbers or dates
    there    which records have one; None: all
    places   where entries are labels: the place of each among them, below 0 for nobody's
    labels   different ones
    """

    numbers: NDArray[np.uint64] | None
    there: NDArray[np.bool_] | None
    places: NDArray[np.intp] | None
    labels: list[Any]

    @classmethod
    def of(cls, block: Block, column: int) -> Keys:
        """Of a column of a block."""
        coded = block.coded(column)
        if coded is None:
            values, missing, _ = block.entries(column)
            if values.dtype.kind in "biufmM":
                return cls._of_numbers(values, missing)
            places, labels = places_of(values)
            coded = (places if missing is None else np.where(missing, -1, places)), labels
        return cls._of_labels(*coded)

    @classmethod
    def _of_numbers(cls, values: Array, missing: NDArray[np.bool_] | None) -> Keys:
        there = None if missing is None or not missing.any() else ~missing
        if values.dtype.kind == "f":
            values = values.astype(np.float64) + 0.0  # a zero has no sign
            found = values == values
            there = there if found.all() else found if there is None else found & there
        elif values.dtype.kind in "mM":
            values = values.view(np.int64)
        elif values.dtype != np.uint64:
            values = values.astype(np.int64, copy=False)
        return cls(np.ascontiguousarray(values).view(np.uint64), there, None, [])

    @classmethod
    def _of_labels(cls, places: Array, labels: Array) -> Keys:
        """Labels that are equal, of a dictionary that repeats them say, become one."""
        known: dict[Any, int] = {}
        table = np.full(len(labels) + 1, -1, np.intp)  # the last is of missing entries
        for i, label in enumerate(labels.tolist()):
            if label is NO_LABEL or is_missing(label):
                continue
            try:
                table[i] = known.setdefault(label, len(known))
            except TypeError:  # without a hash
                continue
        places = np.asarray(places, np.intp)
        return cls(None, None, table[np.where(places < 0, len(labels), places)], [*known])

    def at(self, which: NDArray[np.int64]) -> Keys:
        """Those of some records, all of which are somebody's."""
        if self.numbers is not None:
            return Keys(self.numbers[which], None, None, [])
        assert self.places is not None
        return Keys(None, None, self.places[which], self.labels)

    @property
    def n(self) -> int:
        """How many records there are."""
        each = self.places if self.numbers is None else self.numbers
        assert each is not None
        return len(each)


def joined(some: list[Keys]) -> Keys:
    """Those of all blocks, in their order."""
    if len(some) == 1:
        return some[0]
    if len({keys.numbers is None for keys in some}) > 1:
        raise ValueError("unit: must be a column of one type in all parts")
    if some[0].numbers is not None:
        numbers = np.concatenate([keys.numbers for keys in some if keys.numbers is not None])
        if all(keys.there is None for keys in some):
            return Keys(numbers, None, None, [])
        each = [np.ones(keys.n, np.bool_) if keys.there is None else keys.there for keys in some]
        return Keys(numbers, np.concatenate(each), None, [])
    known: dict[Any, int] = {}
    places = []
    for keys in some:
        assert keys.places is not None
        table = np.array([*(known.setdefault(label, len(known)) for label in keys.labels), -1], np.intp)
        places.append(table[keys.places])
    return Keys(None, None, np.concatenate(places), [*known])


def numbered(keys: Keys) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Whose each record is, as a number, -1 for nobody's; and a word for each person, 0 where that is a label.

    Which number a person has depends on the others: nothing that is released may.
    """
    if keys.places is not None:
        return keys.places.astype(np.int32), np.zeros(len(keys.labels), np.uint64)
    assert keys.numbers is not None
    codes, words = _numbered(keys.numbers)
    if keys.there is not None:
        codes[~keys.there] = -1
    return codes, words


def words_of_labels(keys: Keys, used: NDArray[np.bool_], salt: bytes) -> NDArray[np.uint64]:
    """A word for each person that is a label and `used`; 0 for others."""
    words = np.zeros(len(keys.labels), np.uint64)
    for i in np.flatnonzero(used).tolist():
        words[i] = _word_of(keys.labels[i], salt)
    return words


def _numbered(numbers: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.uint64]]:
    """Codes of integers of a narrow range are distances from the least; of others, the order in which they occur."""
    signed = numbers.view(np.int64)
    if numbers.size:
        low = int(signed.min())
        size = int(signed.max()) - low + 1
        if size <= min(max(_FEW, 2 * numbers.size), _MOST_PLACES):
            codes = np.subtract(signed, low, out=np.empty(numbers.size, np.int32), casting="unsafe")
            return codes, np.arange(size, dtype=np.uint64) + np.uint64(low % _WORD)
    found = number_words(numbers)
    assert found is not None
    return found


def number_words(
    words: NDArray[np.uint64], most: int | None = None
) -> tuple[NDArray[np.int32], NDArray[np.uint64]] | None:
    """A number for each word, in the order in which they occur, and the different ones; None for more than `most`.

    Sorting 10^7 words takes 64 ns each; this takes 4 for 10^3 different ones, 12 for 10^5, 34 for 10^6, 108 for 5 10^6.
    """
    from ..kernels.persons import number_keys_into, place_keys_into

    codes = np.empty(words.size, np.int32)
    seed = np.uint64(secrets.randbits(64))  # whom the order of probes depends on, and nothing else does
    table, distinct = np.full(_FEW, -1, np.int32), np.empty(_FEW // 2, np.uint64)
    done, known = number_keys_into(words, seed, 0, 0, table, distinct, codes)
    while done < words.size:
        if most is not None and known >= most:
            return None
        table, before = np.full(4 * table.size, -1, np.int32), distinct
        distinct = np.empty(table.size // 2, np.uint64)
        distinct[:known] = before[:known]
        place_keys_into(distinct, known, seed, table)
        done, known = number_keys_into(words, seed, done, known, table, distinct, codes)
    return codes, distinct[:known]


def _word_of(label: Any, salt: bytes) -> int:
    """A word for a person, which is the same wherever the label is held: integers are as those of an array."""
    plain = label.item() if isinstance(label, np.generic) else label
    if isinstance(plain, int) and -(2**63) <= plain < _WORD:
        return int(plain) % _WORD
    if isinstance(plain, str):
        text = b"s" + plain.encode("utf-8", "surrogatepass")
    elif isinstance(plain, bytes):
        text = b"b" + plain
    else:
        text = f"{type(plain).__name__} {plain!r}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8, key=salt).digest(), "little")
