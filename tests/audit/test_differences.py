"""What a replay says of two statistics, of two collections of records and of two results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastdp.audit.differences import Difference, Moved, difference, moved_by, records_changed
from fastdp.audit.events import _most_telling


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        ([1, 2], ["a", "b"], "is a list, and was a list"),
        (np.arange(3), np.arange(4), "has shape (4,), and had (3,)"),
        (np.arange(3), np.arange(3.0), "has type float64, and had int64"),
    ],
)
def test_statistics_that_have_no_difference_say_why(then: Any, now: Any, said: str) -> None:
    assert moved_by(then, now) == said


def test_statistics_move_by_their_norms() -> None:
    assert moved_by(np.zeros(0), np.zeros(0)) == Moved(0, 0, 0, 0, 0)
    assert moved_by([2**70, 0, 1], [2**70 + 2**20, 0, 1]) == Moved(2.0**20, 2.0**20, 2.0**20, 0, 2.0**20)
    assert moved_by([3, 0], [0, 4]) == Moved(7, 5, 4, -3, 4)
    assert moved_by([np.inf, 1.0], [np.inf, 1.0]) == Moved(0, 0, 0, 0, 0)
    assert moved_by([2**62], [2**62 + 1]) == Moved(1, 1, 1, 1, 1)


def test_records_are_counted_as_a_collection() -> None:
    X = np.array([[1.0, np.nan], [2.0, 3.0], [2.0, 3.0]])
    assert records_changed(X, X[::-1]) == (0, 0)
    assert records_changed(X, X[:2]) == (1, 0)
    assert records_changed(X, np.vstack([X[:2], [[4.0, 4.0]]])) == (1, 1)
    assert records_changed(X, X[:, :1]) is None, "of other columns"
    assert records_changed("no records", X) is None


class Opaque:
    """Its repr is where it lies."""


class Told:
    def __init__(self, what: str) -> None:
        self.what = what

    def __repr__(self) -> str:
        return f"Told({self.what})"


@pytest.mark.parametrize(
    ("then", "now", "found"),
    [
        (1, 1.0, Difference("shape", "the result is a float, and was a int")),
        ({"a": 1}, {"b": 1}, Difference("shape", "the result has other keys")),
        ({"a": 1, "b": [2]}, {"a": 1, "b": [3]}, Difference("result", "the result['b'][0] is another")),
        ([1, 2], [1], Difference("shape", "the result has 1 entries, and had 2")),
        ((1, "x"), (1, "x"), None),
        (
            np.zeros(2),
            np.zeros((2, 1)),
            Difference("shape", "the result has shape (2, 1) of float64, and had (2,) of float64"),
        ),
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), None),
        (np.arange(3), np.arange(1, 4), Difference("result", "the result has other entries")),
        (float("nan"), float("nan"), None),
        (Told("a"), Told("a"), None),
        (Told("a"), Told("b"), Difference("result", "the result reads differently")),
    ],
)
def test_results_differ_where_they_do(then: Any, now: Any, found: Any) -> None:
    assert difference(then, now) == found


def test_what_cannot_be_compared_is_said() -> None:
    assert difference(Opaque(), Opaque()) == "the result, a Opaque, which has no repr that says what is in it"


def test_frames_are_compared_by_their_entries() -> None:
    pandas = pytest.importorskip("pandas")
    one, other = pandas.DataFrame({"a": [1, 2]}), pandas.DataFrame({"a": [1, 3]})
    assert difference(one, one.copy()) is None
    assert difference(one, other) == Difference("result", "the result has other entries")


def test_of_many_numbers_those_are_scored_that_tell_most() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 400, 300))
    second[:, [7, 150, 299]] += 2.0
    found = _most_telling(first, second)
    assert len(found) < 300
    assert set(found[:3]) == {7, 150, 299}
