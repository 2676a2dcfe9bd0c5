"""Points as integers of 16 bits: made once of the records, then read by every step of a descent.

The seam of the room: what sums over records reads these. points.md has the proofs, kernels/points.py the loops. Where
memory is short, blocks are rounded anew in each step, to the same integers.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..randomness.keys import Key
from ..records.arrays import block_step
from ..records.rows import Block
from ..support.columns import as_compiled
from ..support.slots import Slots
from .points import DescentSteps, Points, least_square
from .sets import Vector

_ONE_LOOP = 2**22  # coordinates up to which a descent is one compiled loop: 200 us a step, too short for threads
_OF_A_RECORD = 4  # bytes beside its coordinates

Integers = NDArray[np.int16]

if TYPE_CHECKING:
    from types import ModuleType


@cache
def _kernels() -> tuple[ModuleType, ModuleType]:
    from ..kernels import points, rounded_points

    return points, rounded_points


class IntegerBlock(NamedTuple):
    """Some consecutive records, as kernels/points.py takes them: tiles, labels, exponents and limits.

    `largest` is their largest norm, NaN if there is one.
    """

    first: int
    X: Integers
    labels: Vector
    marks: Integers
    largest: float


class GridPoints:
    """Records as integer points, whose gradients keep a norm of `longest`.

    Parameters
    ----------
    points : Points
        The records, which are checked in the read that rounds them.
    key : numpy.ndarray
        Of the words by which coordinates and factors are rounded: of this release alone, and never shown.
    longest : int
        K: no gradient of a record is longer, in units of the grid.

    Raises
    ------
    DomainError
        As `Points.check`.
    """

    def __init__(self, points: Points, key: Key, longest: int) -> None:
        self._loss, self._key, self.d, self.n = points.loss, key, points.d, points.n
        size = 2 * (self.d + self.d % 2) + _OF_A_RECORD
        step = block_step(points.columns)

        def read() -> NDArray[np.int64]:
            slots = Slots(-(-self.n // step), step * size)
            self._parts = points.rows.keep_parts(partial(_rounded, points, key, longest, slots), size)
            return self._parts.total(partial(_verdict, points))

        points.check_by(read)

    def gradients(self, w: Vector, step: int, unit: float) -> NDArray[np.int64]:
        """The sum of all clipped gradients at w in some step, in units of the grid."""
        return self._parts.total(partial(_summed, w, step, self._rule(unit), self._loss.address, self._key))

    def descend(self, w: Vector, unit: float, noise: NDArray[np.int64], steps: DescentSteps) -> Vector | None:
        """All points of a descent, w first, if the records are few enough for one compiled loop."""
        block = self._parts.only()
        if block is None or steps.projection is None or self.n * self.d > _ONE_LOOP:
            return None
        path = np.empty((len(steps.rates) + 1, self.d))
        path[0] = w
        kernels, _ = _kernels()
        numbers = np.concatenate(((steps.scale, steps.ridge), steps.rates))
        kernels.descend_points(
            block.X, block.labels, block.marks, self._rule(unit), self._loss.address, self._key, noise, numbers,
            steps.projection.region, path,
        )  # fmt: skip
        return path

    def _rule(self, unit: float) -> Vector:
        return np.array([self._loss.number, self._loss.parameter, unit])


def checked_source(points: Points, longest: int, take: Callable[[], Key]) -> Points | GridPoints:
    """Records that are checked, and can be summed: as integers, in the read that makes them, or, for 0, as they are."""
    if longest:
        return GridPoints(points, take(), longest)
    points.check()
    return points


def _rounded(points: Points, key: Key, longest: int, slots: Slots, block: Block) -> IntegerBlock:
    """A block as integers."""
    sums, rounding = _kernels()
    X, labels = points.raw_parts(block)
    width, records = points.d + points.d % 2, -(-block.n // sums.TILE) * sums.TILE
    memory = slots.zeros((width + 2) * records, np.int16)
    out, marks = memory[: width * records], memory[width * records :].reshape(2, records)
    flat, least = as_compiled(X.reshape(-1)), least_square(X)
    largest = rounding.round_points(flat, points.d, points.limit, least, longest, key, block.first, out, marks)
    return IntegerBlock(block.first, out, labels, marks, largest)


def _verdict(points: Points, block: IntegerBlock) -> list[int]:
    return points.verdict(block.largest)


def _summed(w: Vector, step: int, rule: Vector, address: int, key: Key, block: IntegerBlock) -> NDArray[np.int64]:
    kernels, _ = _kernels()
    out = np.zeros(len(w), np.int64)
    kernels.sum_points(block.X, block.labels, block.marks, w, rule, address, key, step + 1, block.first, out)
    return out
