"""A list has one type, whatever is in it: one that its entries decided would tell of a record, and without noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, statistics

# the records of part "a", and of persons 0 to 48, are the same; somebody else's record is another number
WHOLE: list[Any] = [1, 2, 3, 4] * 25
OTHERS = [[*WHOLE[:-1], other] for other in (2.5, 2.0, True, 2**70, -(2**63))]
GROUPS = ["a", "b"] * 50
PERSONS = [*range(49), *range(49), 49, 49]
FREE = {"epsilon": 1.0, "neighbors": "add-remove"}


def part(ages: list[Any]) -> Any:
    return fastdp.partition({"group": GROUPS, "age": ages}, "group", ["a", "b"])["a"]["age"]


def rows(ages: list[Any]) -> Any:
    return fastdp.limit_rows({"person": PERSONS, "age": ages}, "person", at_most=2, rng=Randomness(1))["age"]


def sums(ages: list[Any]) -> Any:
    return fastdp.per_person({"person": PERSONS, "age": ages}, "person", sums={"age": (0, 10)})["age"]


RELEASES: dict[str, Callable[[Any], Any]] = {
    "sum": lambda some: statistics.sum(some, bounds=(0, 10), rng=Randomness(1), **FREE),
    "mean": lambda some: statistics.mean(some, bounds=(0, 10), rng=Randomness(1), **FREE),
    "quantile": lambda some: fastdp.quantile(some, 0.5, outside="clip", rng=Randomness(1), **FREE),
    "histogram": lambda some: statistics.histogram(some, bins=[0, 2, 4], outside="clip", rng=Randomness(1), **FREE),
}


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
@pytest.mark.parametrize("of", [part, rows, sums])
def test_a_record_does_not_decide_how_others_are_released(of: Callable[[Any], Any], release: Any) -> None:
    found = [release(of(ages)) for ages in (WHOLE, *OTHERS)]
    kinds = {(type(each), type(getattr(each, "value", None)), np.asarray(each).dtype) for each in found}
    assert len(kinds) == 1
    if of is part:  # nothing of which has changed
        assert len({np.asarray(each).tobytes() for each in found}) == 1


@pytest.mark.parametrize("other", [2.5, None, "x", 2**70])
def test_whom_a_person_is_does_not_decide_which_rows_of_others_are_kept(other: Any) -> None:
    ages = np.arange(100.0)

    def kept(last: Any) -> Any:
        data = {"person": [*(i // 10 for i in range(90)), *[last] * 10], "age": ages}
        chosen = fastdp.limit_rows(data, "person", at_most=3, rng=Randomness(1))
        return statistics.histogram(chosen["age"], np.arange(101), epsilon=1e6, neighbors="add-remove").counts

    first, second = kept(9), kept(other)
    assert np.array_equal(first[:90], second[:90])


def test_integers_that_floats_do_not_hold_stay_different_persons() -> None:
    large = 2**60
    data = {"person": [large, large + 1, 0.5], "age": [1.0, 2.0, 3.0]}
    persons = fastdp.per_person(data, "person")
    found = statistics.sum(persons["rows"], bounds=(0, 10), epsilon=1e6, neighbors="add-remove")
    of_each = statistics.mean(persons["rows"], bounds=(0, 10), epsilon=1e6, neighbors="add-remove")
    assert (round(float(found)), round(float(of_each), 2)) == (3, 1.0)
