"""Counting on bit-packed columns (kernels/literals.py) against plain numpy over bools."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from fastdp.kernels.literals import (
    GROUP,
    TILE,
    WIDE,
    choose,
    count_among_into,
    count_falsified_into,
    count_subsets_into,
    pack_rows_into,
    satisfying_into,
    sign_counts_into,
    unrank_into,
)

SIZES = [0, 1, 2, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1000, 64 * GROUP * 2 + 1]


def bools(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).random(shape) < 0.5


def packed(columns: np.ndarray) -> np.ndarray:
    """Words of the last axis: bit i % 64 of word i // 64 is entry i."""
    n = columns.shape[-1]
    wide = np.zeros((*columns.shape[:-1], -(-n // 64) * 64), np.uint8)
    wide[..., :n] = columns
    return np.packbits(wide, axis=-1, bitorder="little").view("<u8").astype(np.uint64)


def views(words: np.ndarray) -> Iterator[np.ndarray]:
    """The same rows in other memory: rows are contiguous, and lie apart, begin within a row, or must not be written."""
    yield words
    wider = np.full((words.shape[0], words.shape[1] + 5), ~np.uint64(0))
    wider[:, 2 : 2 + words.shape[1]] = words
    yield wider[:, 2 : 2 + words.shape[1]]
    every = np.full((2 * words.shape[0], words.shape[1]), ~np.uint64(0))
    every[::2] = words
    yield every[::2]
    read_only = words.copy()
    read_only.flags.writeable = False
    yield read_only


# --- packing


def pack_into(flat: np.ndarray, n: int, d: int) -> tuple[np.ndarray, int]:
    out = np.full((d, -(-n // 64)), 0x5A5A5A5A5A5A5A5A, np.uint64)
    tail, buffer = np.zeros(TILE * (d + 1), np.uint8), np.empty(GROUP * TILE * -(-d // TILE), np.uint64)
    return out, pack_rows_into(flat, d, tail, buffer, out)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("d", [1, 2, 7, 63, 64, 65, 100, 129])
def test_rows_are_packed_by_columns(n: int, d: int) -> None:
    matrix = bools(n, d)
    out, seen = pack_into(matrix.astype(np.uint8).reshape(-1), n, d)
    np.testing.assert_array_equal(out, packed(matrix.T))
    assert seen == int(matrix.any())


def test_packing_reads_no_byte_beyond_the_records() -> None:
    """The records end where the array ends, with bytes behind it that are neither 0 nor 1."""
    for n, d in ((64, 1), (64, 5), (65, 64), (128, 65), (70, 129), (192, 3)):
        matrix = bools(n, d).astype(np.uint8)
        memory = np.full(n * d + 200, 255, np.uint8)
        memory[100 : 100 + n * d] = matrix.reshape(-1)
        out, seen = pack_into(memory[100 : 100 + n * d], n, d)
        assert seen <= 1
        np.testing.assert_array_equal(out, packed(matrix.T))


@pytest.mark.parametrize(("n", "d"), [(1, 1), (64, 3), (130, 64), (200, 65), (600, 10)])
@pytest.mark.parametrize("wrong", [2, 3, 128, 255])
def test_a_byte_that_is_neither_0_nor_1_is_seen_wherever_it_is(n: int, d: int, wrong: int) -> None:
    flat = bools(n, d).astype(np.uint8).reshape(-1)
    for place in {0, flat.size - 1, flat.size // 2, flat.size // 3}:
        before, flat[place] = flat[place], wrong
        assert pack_into(flat, n, d)[1] > 1
        flat[place] = before
    assert pack_into(flat, n, d)[1] <= 1


# --- counting among some records


@pytest.mark.parametrize("n", SIZES)
def test_counts_of_ones_among_some(n: int) -> None:
    d = 7
    matrix, first, second = bools(d, n), bools(n, seed=1), bools(n, seed=2)
    for columns in views(packed(matrix)):
        out = np.arange(2 * d).reshape(2, d)  # what is there is added to
        count_among_into(columns, packed(first), packed(second), out)
        expected = [(matrix & first).sum(axis=1), (matrix & second).sum(axis=1)]
        np.testing.assert_array_equal(out - np.arange(2 * d).reshape(2, d), expected)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("literals", [[], [(3, 1)], [(0, 0), (5, 1), (2, 0)], [(4, 1), (4, 0)], [(1, 0), (1, 0)]])
def test_records_that_satisfy_literals(n: int, literals: list[tuple[int, int]]) -> None:
    """Spare bits stay 0, also where a literal asks for a 0."""
    matrix, among = bools(6, n), bools(n, seed=3)
    left = among.copy()
    for column, value in literals:
        left &= matrix[column] == value
    chosen, values = np.array(literals, np.int64).reshape(-1, 2).T.copy()
    for columns in views(packed(matrix)):
        out = packed(among)
        assert satisfying_into(columns, chosen, values, out) == left.sum()
        np.testing.assert_array_equal(out, packed(left))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("literals", [[], [(3, 1)], [(0, 0), (5, 1), (2, 0)], [(4, 1), (4, 0)]])
def test_counts_of_those_that_falsify_literals(n: int, literals: list[tuple[int, int]]) -> None:
    matrix, labels = bools(6, n), bools(n, seed=3)
    left = np.ones(n, np.bool_)
    for column, value in literals:
        left &= matrix[column] == value
    chosen, values = np.array(literals, np.int64).reshape(-1, 2).T.copy()
    expected = [
        [*(np.stack([~matrix & among, matrix & among], axis=1).sum(axis=2).reshape(-1)), among.sum()]
        for among in (left & ~labels, left & labels)
    ]
    for columns in views(packed(matrix)):
        out = np.empty((2, 13), np.int64)
        count_falsified_into(columns, n, packed(labels), chosen, values, out)
        np.testing.assert_array_equal(out, expected)


# --- all sets of columns


def colexicographic(d: int, s: int) -> list[tuple[int, ...]]:
    return sorted(itertools.combinations(range(d), s), key=lambda chosen: chosen[::-1])


def starts_of(d: int, k: int) -> np.ndarray:
    return np.array([0, *np.cumsum([0, *(math.comb(d, s) for s in range(1, k))])], np.int64)


def set_errors(matrix: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    d = len(matrix)
    sets = [chosen for s in range(1, k + 1) for chosen in colexicographic(d, s)]
    return np.array([np.count_nonzero(matrix[list(chosen)].all(axis=0) != labels) for chosen in sets], np.int64)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 300, 64 * WIDE - 1, 64 * WIDE + 1, 64 * WIDE * 2 + 70])
@pytest.mark.parametrize(("d", "k"), [(1, 1), (5, 1), (5, 3), (6, 2), (4, 4)])
def test_errors_of_all_sets_of_columns(n: int, d: int, k: int) -> None:
    matrix, labels = np.random.default_rng(n).random((d, n)) < 0.8, bools(n)
    right = set_errors(matrix, labels, k)
    for columns in views(packed(matrix)):
        out = np.arange(right.size)
        prefixes = np.full((k, WIDE), ~np.uint64(0))
        count_subsets_into(columns, packed(labels), k, starts_of(d, k), prefixes, out)
        np.testing.assert_array_equal(out - np.arange(right.size), right)


@pytest.mark.parametrize(("d", "k"), [(1, 1), (5, 1), (5, 3), (7, 2), (4, 4), (6, 5)])
@pytest.mark.parametrize("n", [1, 150])
def test_errors_of_all_signs(d: int, k: int, n: int) -> None:
    """Also from the middle of the order on, for a few sets or all that are left."""
    matrix, labels = bools(d, n), bools(n, seed=4)
    counts, starts = set_errors(matrix, labels, k), starts_of(d, k)
    positives, negatives = int(labels.sum()), int((~labels).sum())
    for s in range(1, k + 1):
        expected = [
            np.count_nonzero(np.all([matrix[c] == (m >> i & 1) for i, c in enumerate(chosen)], axis=0) != labels)
            for chosen in colexicographic(d, s)
            for m in range(1 << s)
        ]
        sets = math.comb(d, s)
        for first, last in {(0, sets), (sets // 2, sets), (sets // 3, sets // 3 + 1), (sets - 1, sets)}:
            out, chosen = np.empty(last - first << s, np.int64), np.full(s + 2, 99)
            sign_counts_into(counts, starts, chosen, s, negatives, positives, first, out)
            np.testing.assert_array_equal(out, expected[first << s : last << s])


@pytest.mark.parametrize(("d", "s"), [(1, 1), (6, 1), (7, 3), (8, 8), (9, 4)])
def test_places_and_sets(d: int, s: int) -> None:
    for place, right in enumerate(colexicographic(d, s)):
        chosen = np.full(s, 99)
        unrank_into(place, chosen, s)
        assert tuple(chosen) == right
        assert sum(math.comb(c, i + 1) for i, c in enumerate(right)) == place


def test_places_of_large_sets() -> None:
    """As many sets as may ever be looked at, of columns as far apart as they come."""
    for d, s in ((2**24 - 1, 1), (5792, 2), (466, 3), (143, 4), (26, 12)):
        assert math.comb(d, s) <= 2**24
        place = math.comb(d, s) - 1
        chosen = np.empty(s, np.int64)
        unrank_into(place, chosen, s)
        assert chosen.tolist() == [*range(d - s, d)]


def test_numbers_of_sets() -> None:
    for n, k in itertools.product([*range(20), 100, 1000, 5792], range(7)):
        if math.comb(n, k) < 2**57:
            assert choose(n, k) == math.comb(n, k)


# --- the same on other machines


def fingerprint() -> str:
    digest = hashlib.sha256()
    for n, d in ((1000, 70), (64, 3)):
        out, seen = pack_into(bools(n, d).astype(np.uint8).reshape(-1), n, d)
        digest.update(out.tobytes() + bytes([seen]))
        among = np.zeros((2, d), np.int64)
        count_among_into(out, packed(bools(n, seed=1)), packed(bools(n, seed=2)), among)
        sets: Any = np.zeros(math.comb(d, 1) + math.comb(d, 2), np.int64)
        count_subsets_into(out, packed(bools(n)), 2, starts_of(d, 2), np.empty((2, WIDE), np.uint64), sets)
        digest.update(among.tobytes() + sets.tobytes())
    return digest.hexdigest()


def test_same_bits_on_other_cpus(fingerprint_elsewhere: Callable[[str], str]) -> None:
    assert fingerprint_elsewhere(__name__) == fingerprint()
