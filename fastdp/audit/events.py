"""The search for an event that tells two inputs apart: learnt on a quarter of the outputs, chosen on another.

An event is "a score of the output is at least, or at most, so much". Scores are the numbers of the output one by one,
their likelihood ratio as estimated from a histogram, the sum of those, the output as a whole where it takes few values,
and the direction in which the means differ most. None of it needs to be right: what is chosen is tested on the half of
the outputs that was not looked at (lower_bounds.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .outputs import KIND, Outputs

Table = NDArray[np.float64]
Scores = NDArray[np.float64]
_BINS, _MOST_VALUES, _MOST_SCORED, _MOST_LIMITS = 64, 4096, 64, 4096
_Z = 2.6  # of the limits by which events are compared


class Score(NamedTuple):
    """A number for each output."""

    name: str
    of: Callable[[Table], Any]


@dataclass(frozen=True)
class Event:
    """Outputs whose score is at least the limit, or with `below` at most; `swapped` if it is the second input's."""

    score: Score
    limit: float
    below: bool
    swapped: bool

    def holds(self, table: Table) -> NDArray[np.bool_]:
        scores = self.score.of(table)
        return np.asarray(scores <= self.limit if self.below else scores >= self.limit)

    def __str__(self) -> str:
        return f"{self.score.name} {'<=' if self.below else '>='} {self.limit:.6g}"


def find_event(
    learning: Outputs, choosing: Outputs, worth: Callable[[Table, Table], NDArray[np.float64]]
) -> Event | None:
    """The event of the greatest worth, a function of limits of its two probabilities; None if none has any."""
    best, found = 0.0, None
    for score in _scores(learning):
        a, b = score.of(choosing.first), score.of(choosing.second)
        for below in (False, True):
            limits, more, less = _tails(a, b, below)
            for swapped in (False, True):
                likely, rare = (less, more) if swapped else (more, less)
                values = worth(_lower(likely, len(a)), _upper(rare, len(a)))
                at = int(np.argmax(values))
                if values[at] > best:
                    best, found = float(values[at]), Event(score, float(limits[at]), below, swapped)
    return found


def _tails(a: Scores, b: Scores, below: bool) -> tuple[Scores, Table, Table]:
    """Every limit, and how many of either are beyond it or on it."""
    limits = np.unique(np.concatenate((a, b)))
    if limits.size > _MOST_LIMITS:  # all of the rare ones, where losses are greatest, and a choice of the others
        middle = limits[_MOST_LIMITS // 4 : -_MOST_LIMITS // 4]
        chosen = middle[:: max(1, 2 * middle.size // _MOST_LIMITS)]
        limits = np.concatenate((limits[: _MOST_LIMITS // 4], chosen, limits[-_MOST_LIMITS // 4 :]))
    side: Literal["left", "right"] = "right" if below else "left"
    counts = [np.searchsorted(np.sort(part), limits, side).astype(np.float64) for part in (a, b)]
    if not below:
        counts = [len(a) - count for count in counts]
    return limits, counts[0], counts[1]


def _lower(count: Table, n: int) -> Table:
    """Wilson's limits: good enough to choose by."""
    return _middle(count, n) - _margin(count, n)


def _upper(count: Table, n: int) -> Table:
    return _middle(count, n) + _margin(count, n)


def _middle(count: Table, n: int) -> Table:
    return (count + _Z**2 / 2) / (n + _Z**2)


def _margin(count: Table, n: int) -> Table:
    return _Z / (n + _Z**2) * np.sqrt(count * (n - count) / n + _Z**2 / 4)


# --- scores


def _scores(learning: Outputs) -> Iterator[Score]:
    first, second, names = learning
    telling = _most_telling(first, second)
    ratios = []
    for j in telling:
        yield Score(names[j], lambda table, j=j: table[:, j])  # type: ignore[misc]
        ratio = _ratio_of(first[:, j], second[:, j])
        ratios.append((j, ratio))
        yield Score(f"likelihood ratio of {names[j]}", lambda table, j=j, ratio=ratio: ratio(table[:, j]))  # type: ignore[misc]
    if len(names) > 1:
        yield Score(
            "likelihood ratios of all numbers",
            lambda table: np.sum([ratio(table[:, j]) for j, ratio in ratios], axis=0),
        )
        whole = _ratio_of_rows(first, second)
        if whole is not None:
            yield Score("likelihood ratio of the output", whole)
        # numbers of categories depend on those of all outputs, the tested ones too: their order alone may count
        direction = None if any(name.startswith(KIND) for name in names) else _direction(first, second)
        if direction is not None:
            yield Score("the direction of the means", direction)


def _most_telling(first: Table, second: Table) -> list[int]:
    """The columns whose distributions differ most, of so many."""
    d = first.shape[1]
    if d <= _MOST_SCORED:
        return list(range(d))
    apart = []
    for j in range(d):
        limits = np.unique(np.concatenate((first[:, j], second[:, j])))
        rise = [np.searchsorted(np.sort(part[:, j]), limits, "right") for part in (first, second)]
        apart.append(int(np.abs(rise[0] - rise[1]).max()))
    found: list[int] = np.argsort(apart)[: -_MOST_SCORED - 1 : -1].tolist()
    return found


def _ratio_of(a: Scores, b: Scores) -> Callable[[Scores], Scores]:
    """ln of the ratio of two histograms: a bin for each value where there are few, otherwise bins of equal counts."""
    values = np.unique(np.concatenate((a, b)))
    if len(values) > _BINS:
        ranks = np.concatenate((np.geomspace(1 / len(a), 0.02, 8), np.linspace(0.03, 0.97, _BINS - 16)))
        ranks = np.concatenate((ranks, 1 - ranks[:8][::-1]))
        values = np.unique(np.quantile(np.concatenate((a, b)), ranks, method="lower"))
    edges = values[1:]
    counts = [np.bincount(np.searchsorted(edges, part, "right"), minlength=len(values)) for part in (a, b)]
    ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
    return lambda scores: ratio[np.searchsorted(edges, scores, "right")]


def _ratio_of_rows(first: Table, second: Table) -> Callable[[Table], Scores] | None:
    """The same of whole outputs, where they take few values; an output that was not seen tells nothing."""
    values, which = np.unique(np.concatenate((first, second)), axis=0, return_inverse=True)
    if len(values) > _MOST_VALUES:
        return None
    which = which.reshape(-1)
    counts = [np.bincount(part, minlength=len(values)) for part in (which[: len(first)], which[len(first) :])]
    ratio = np.log((counts[0] + 0.5) / (counts[1] + 0.5))
    known = {row.tobytes(): float(value) for row, value in zip(values, ratio, strict=True)}

    def of(table: Table) -> Scores:
        rows, where = np.unique(table, axis=0, return_inverse=True)
        return np.array([known.get(row.tobytes(), 0.0) for row in rows])[where.reshape(-1)]

    return of


def _direction(first: Table, second: Table) -> Callable[[Table], Scores] | None:
    """Fisher's discriminant."""
    with np.errstate(all="ignore"):
        both = np.concatenate((first, second))
        if not np.isfinite(both).all() or both.shape[1] > _MOST_SCORED:
            return None
        spread = np.cov(first, rowvar=False) + np.cov(second, rowvar=False)
        ridge = 1e-9 * float(np.trace(spread)) + 1e-300
        weights = np.linalg.solve(spread + ridge * np.eye(both.shape[1]), first.mean(axis=0) - second.mean(axis=0))
    if not np.isfinite(weights).all():
        return None
    return lambda table: table @ weights
