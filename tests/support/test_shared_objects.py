"""Columns that hold few objects many times are read as others are: by what the entries are equal to."""

from collections import Counter
from decimal import Decimal

import numpy as np
import pytest

from fastdp.support import shared_objects as under_test
from fastdp.support.columns import counts_of, objects, places_of
from fastdp.support.shared_objects import shared_objects

NAN = float("nan")
POOLS = {
    "strings": ["a", "b", "é", ""],
    "equal ones": ["".join(["a", "b"]) for _ in range(9)] + ["ab", "c"],
    "numbers": [1, 1.0, True, 0, False, 10**30, -0.0, 0.0],
    "missing": [None, NAN, float("nan"), "x"],
    "others": [Decimal(1), 1, "1", (1,), [1], {2}, b"1"],
}


def many(pool, n=10_000):
    return objects(pool)[np.random.default_rng(len(pool)).integers(0, len(pool), n)]


@pytest.mark.parametrize("name", POOLS)
def test_objects_are_those_that_are_there(name):
    array = many(POOLS[name])
    codes, distinct = shared_objects(array)
    assert all(one is other for one, other in zip(distinct[codes], array, strict=True))
    assert len({*map(id, distinct)}) == len(distinct)
    assert codes[np.unique(codes, return_index=True)[1]].tolist() == list(range(len(distinct)))
    assert np.all(np.diff(np.unique(codes, return_index=True)[1]) > 0)  # numbered as they first occur


@pytest.mark.parametrize("name", POOLS)
def test_the_same_places_and_counts_as_entry_by_entry(name, monkeypatch):
    array = many(POOLS[name])
    places, labels = places_of(array)
    counted = counts_of(array)
    monkeypatch.setattr(under_test, "_FEW", 2**40)
    assert shared_objects(array) is None
    wanted_places, wanted = places_of(array)
    assert [*map(repr, labels[places])] == [*map(repr, wanted[wanted_places])]
    assert len(labels) == len(wanted)
    again = counts_of(array)
    assert (counted is None) == (again is None) == (name == "others")
    if counted is not None:
        assert counted[0].tolist() == again[0].tolist()
        assert [*map(repr, counted[1])] == [*map(repr, again[1])]


def test_what_is_compared_entry_by_entry():
    own = objects([f"{i}" for i in range(40_000)])
    assert shared_objects(own) is None  # more objects than the table holds
    assert shared_objects(many(["a", "b"], 100)) is None
    assert shared_objects(many(["a", "b"])[::2]) is None
    assert shared_objects(np.array(["a", "b"] * 10_000)) is None
    counts, labels = counts_of(own)
    assert Counter(dict(zip(labels, counts, strict=True))) == Counter(own.tolist())


def test_as_many_objects_as_the_table_holds():
    for more in (0, 1):
        own = objects([f"{i}" for i in range(2**15 + more)])
        array = np.concatenate([own, own])
        found = shared_objects(array)
        assert (found is None) == bool(more)
        if found is not None:
            assert found.codes.tolist() == [*range(2**15)] * 2
