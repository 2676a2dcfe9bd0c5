"""Values that are tested against a threshold: the grid on which they and it are integers, and how they are read.

What above_threshold.py and sparse_vector.py share; above_threshold.md, "In the code", has why the sensitivity holds.
"""

from __future__ import annotations

from fractions import Fraction
from math import frexp, isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.guarantees import Neighbors
from ..randomness import noise_draws
from ..support import parameters
from ..support.checks import (
    are_nested,
    finite,
    is_due_to_entries,
    numbers_array,
    plain_array,
    plain_integer,
    power_of_two,
)
from ..support.errors import DomainError
from ..support.rounding import upper
from ..support.shown import shown
from . import noise

_LARGEST_THRESHOLD = 2**50  # in grid units: far from the ends of int64, and exact in float64 together with its noise
_FAR = 2**53  # in grid units: on either side of every threshold, whatever the noise


class TestsOfValues:
    """What objects that test values against a threshold were made with; nothing of it can be set."""

    _threshold: float
    _sensitivity: float
    _epsilon: float
    _resolution: float | None
    _neighbors: Neighbors

    @property
    def threshold(self) -> float:
        """The threshold, without its noise."""
        return self._threshold

    @property
    def sensitivity(self) -> float:
        """By how much one record may move each of the values."""
        return self._sensitivity

    @property
    def epsilon(self) -> float:
        """The epsilon of all answers together."""
        return self._epsilon

    @property
    def resolution(self) -> float | None:
        """The grid of floats; None for integers."""
        return self._resolution

    @property
    def neighbors(self) -> Neighbors:
        """The relation under which the sensitivity holds."""
        return self._neighbors


class TestedGrid(NamedTuple):
    """A threshold, the grid of the values that are tested against it, and both in units of the grid."""

    threshold: float  # an integer for integer values
    resolution: float | None  # the grid of floats; None for integers, whose grid is 1
    center: int  # the threshold in units of the grid
    moved: Fraction  # by how many units of the grid a record moves a value


def tested_grid(threshold: float, sensitivity: float, resolution: float | None) -> TestedGrid:
    """The grid for values of this sensitivity; it is checked here, with the threshold."""
    whole = plain_integer(threshold)
    if whole is None and (not isinstance(threshold, float | np.floating) or not isfinite(threshold)):
        raise ValueError(f"threshold={shown(threshold)}: must be a finite number; an integer for integer values")
    threshold = whole if whole is not None else finite("threshold", threshold)
    sensitivity = parameters.sensitivity(sensitivity)
    if whole is not None:
        if resolution is not None:
            raise ValueError(f"resolution={shown(resolution)}: must be None for an integer threshold, whose grid is 1")
        grid, moved = None, upper(sensitivity)
    else:
        if resolution is None:
            resolution = noise.power_below(sensitivity / 1024)
        grid = noise.usable_grid(power_of_two("resolution", resolution), sensitivity)
        moved = Fraction(int(upper(sensitivity) / Fraction(grid)) + 1)
    center = round(Fraction(threshold) / Fraction(grid or 1))
    if abs(center) > _LARGEST_THRESHOLD:
        raise ValueError(f"threshold={shown(threshold)}: must be within 2^50 units of its grid, {grid or 1:g}")
    return TestedGrid(threshold, grid, center, moved)


def tested_values(values: ArrayLike, threshold: float, resolution: float | None) -> NDArray[Any]:
    """An array of one dimension: int64 for an integer threshold, finite float64 for others."""
    array = numbers_array("values", values)
    if array.ndim != 1:
        wrong = DomainError if are_nested(values, array, 1) else ValueError
        raise wrong(f"values: shape {array.shape}: must have one dimension")
    if resolution is None:
        if array.dtype != np.int64 and array.size:
            wrong = DomainError if is_due_to_entries(values, array) else ValueError
            raise wrong(f"values: dtype {array.dtype}: must be integers, as the threshold {threshold!r} is")
        return array.astype(np.int64, copy=False)
    array = _floats(array, resolution)
    noise_draws.check_finite(array)
    return array


def refuse_many(value: Any, instead: str) -> None:
    """ValueError where it is not one number but several."""
    given = plain_array("value", value, "one number", error=DomainError)
    if given.ndim:
        raise ValueError(f"value: shape {given.shape}: must be one number; {instead} takes many")


def cell_of(value: float, resolution: float | None) -> int:
    """A value, an int64 or finite, in units of its grid; where it is far from every threshold, one that is as far."""
    if resolution is None:
        return int(value)
    cells = value / resolution  # exact, or beyond the range of float64
    return round(cells) if -_FAR < cells < _FAR else (_FAR if cells > 0 else -_FAR)


def _floats(values: NDArray[Any], grid: float) -> NDArray[np.float64]:
    """Integers as floats, rounded to the grid if it is wider than 1: once, where by way of float64 it would be twice.

    On a finer grid integers beyond 2^53 are held there; the threshold is far below, and no two move further apart.
    """
    if values.dtype == np.float64:
        return values
    width = max(frexp(grid)[1] - 1, 0)
    if width > 63:
        return np.zeros(values.shape)
    cells = (values >> width) + (values >> (width - 1) & 1) if width else values
    held: NDArray[np.float64] = np.clip(cells, -(2**53), 2**53).astype(np.float64)
    return held * 2.0**width
