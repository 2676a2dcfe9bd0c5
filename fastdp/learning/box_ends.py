"""Where sides of boxes may end: a few private quantiles of each column, and many points that follow from them.

The quantiles are of all records, labels unseen. What lies between two of them, and beyond the last, is cut evenly in
values, which reads no record. boxes_grid.md, theorem 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..records.number_line import NumberLine

_BETWEEN = 32  # points from one quantile to the next
_BEYOND = 2  # steps as long as the outermost one that are cut as finely; then each point is a fifth farther out
_FARTHER = [_BEYOND * 2 ** (k / 4) for k in range(1, 25)]
_FEW_BITS = 8  # of a column whose positions may all be ends


class Ends(NamedTuple):
    """Of a column: cell k holds the positions above end k - 1 and up to end k; the last end is that of the line.

    quantiles    which of the ends were bought
    """

    ends: NDArray[np.uint64]
    quantiles: NDArray[np.int64]

    def interval(self, first: int, last: int) -> tuple[int, int]:
        """The positions of cells first .. last."""
        return int(self.ends[first - 1]) + 1 if first else 0, int(self.ends[last])


def ends_of(points: list[int], line: NumberLine) -> Ends:
    """The ends of a column, from its private quantiles: public numbers alone."""
    if line.last < 1 << _FEW_BITS:
        more = np.arange(line.last + 1, dtype=np.uint64)
    else:
        values = np.array(list(_values_near(points, line)), np.float64 if line.least is None else object)
        more = line.positions(values, "clip", "ends")
    bought = np.array(points, np.uint64)
    before = bought[bought > 0] - np.uint64(1)  # so that an interval may begin at a quantile
    ends = np.unique(np.concatenate([bought, before, more, np.array([line.last], np.uint64)]))
    return Ends(ends, np.unique(np.searchsorted(ends, bought)))


def _values_near(points: list[int], line: NumberLine) -> Iterator[Any]:
    """Values between quantiles and beyond them; beyond the line, too."""
    values = [line.value(point) for point in dict.fromkeys(points)]
    for low, high in pairwise(values):
        for k in range(1, _BETWEEN):
            yield _between(low, high, k)
    if len(values) > 1:
        steps = [k / _BETWEEN for k in range(1, _BEYOND * _BETWEEN + 1)] + _FARTHER
        for end, inner in ((values[0], values[1]), (values[-1], values[-2])):
            for step in steps:
                yield _beyond(end, inner, step)


def _between(low: Any, high: Any, k: int) -> Any:
    if isinstance(low, int):
        return low + (high - low) * k // _BETWEEN
    share = k / _BETWEEN
    return low * (1 - share) + high * share  # a difference may be more than a float holds


def _beyond(end: Any, inner: Any, step: float) -> Any:
    """So many steps, from the outermost quantile, away from its neighbour."""
    if isinstance(end, int):
        numerator, denominator = step.as_integer_ratio()
        return end + (end - inner) * numerator // denominator
    return end + (end - inner) * step
