"""Strings counted where Arrow holds them (kernels/short_strings.py, support/arrow_strings.py) against a Counter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from fastdp import Randomness, statistics
from fastdp.kernels.short_strings import TOO_LONG, TOO_MANY, count_strings_into
from fastdp.support import arrow_strings
from fastdp.support.arrow_strings import count_strings

N = 2**14 + 3
ALIKE = [
    "",
    "a",
    "a\0",
    "\0a",
    "\0",
    "\0\0",
    "b" * 8,
    "b" * 7,
    "b" * 8 + "\0",
    "b" * 9,
    "é" * 7,
    "c" * 15,
    "c" * 14 + "d",
]


def strings(n, seed=0):
    """Of every length up to 15 bytes, many of them prefixes of others, some with zeros; in no order."""
    draw = np.random.default_rng(seed)
    some = [*ALIKE, *("".join(draw.choice([*"xy"], size)) for size in draw.integers(0, 16, 300))]
    return [some[i] for i in draw.integers(0, len(some), n)]


def as_counter(found):
    counts, labels = found
    assert len({*labels.tolist()}) == labels.size, "each once"
    return dict(zip(labels.tolist(), counts.tolist(), strict=True))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_counts_are_those_of_a_counter(kind):
    """Of the whole, of slices at odd places, with missing entries; and where the last bytes are those of a string."""
    values = strings(2 * N)
    whole = pa.array(values, kind)
    for start, stop in ((0, 2 * N), (1, N + 1), (N, 2 * N), (N - 7, 2 * N - 1)):
        assert as_counter(count_strings(whole.slice(start, stop - start))) == Counter(values[start:stop])
    gaps = [None if i % 5 == 0 else value for i, value in enumerate(values)]
    assert as_counter(count_strings(pa.array(gaps, kind))) == Counter(gaps) - Counter({None: 2 * N})
    for last in ("", "z", "z" * 15):
        assert as_counter(count_strings(pa.array([*values[:N], last], kind))) == Counter([*values[:N], last])


@pytest.mark.parametrize("different", [1, 5_000, 60_000])
def test_tables_grow_until_they_hold_all(different, monkeypatch):
    values = [f"{i % different:x}" for i in range(4 * 60_000)]
    assert as_counter(count_strings(pa.array(values))) == Counter(values)
    monkeypatch.setattr(arrow_strings, "_PLACES", (2**4, 2**11))
    found = count_strings(pa.array(values))
    assert (found is None) == (different > 2**10)


def test_what_is_left_to_arrow():
    """Long strings, wherever they are, few ones, several chunks, bytes, nothing but missing entries."""
    values = strings(N)
    for at in (0, N // 2, N - 1):
        assert count_strings(pa.array([*values[:at], "e" * 16, *values[at:]])) is None
    assert count_strings(pa.array(values[:100])) is None
    assert count_strings(pa.chunked_array([pa.array(values), pa.array(values)])) is None
    assert count_strings(pa.array([value.encode() for value in values])) is None
    assert count_strings(pa.array([None] * N, pa.string())) is None
    assert as_counter(count_strings(pa.array([""] * N))) == {"": N}


def test_a_kernel_says_what_it_cannot_do():
    def count(text, places):
        data = np.frombuffer(text.encode().ljust(40, b"."), np.uint64)
        offsets, table = np.arange(len(text) + 1), np.full(places, -1, np.int32)
        lows, highs, firsts, counts = (np.zeros(places // 2, kind) for kind in (np.uint64, np.uint64, int, int))
        known = count_strings_into(data, offsets, 10, 0, np.uint64(1), table, lows, highs, firsts, counts)
        long = count_strings_into(data, np.array([0, 16]), 0, 0, np.uint64(1), table, lows, highs, firsts, counts)
        return known, long, firsts.tolist(), counts.tolist()

    assert count("abab", 4) == (2, TOO_LONG, [10, 11], [2, 2])
    assert count("abc", 4)[0] == TOO_MANY


@pytest.mark.parametrize("kind", ["str", "string[pyarrow]", pd.ArrowDtype(pa.string())])
def test_labels_are_counted_alike_whatever_holds_them(kind):
    values = [None if i % 7 == 0 else value for i, value in enumerate(strings(N, seed=3))]
    wanted = statistics.count_by(np.array(values, object), epsilon=1.0, delta=1e-6, rng=Randomness(seed=2))
    for column in (pd.Series(values, dtype=kind), pa.array(values)):
        found = statistics.count_by(column, epsilon=1.0, delta=1e-6, rng=Randomness(seed=2))
        assert found.to_dict() == wanted.to_dict()
