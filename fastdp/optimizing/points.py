"""Records as points and labels: checked once, and then summed as often as a descent has steps.

Here records meet kernels. What comes out is integers, of which no record moves the norm by more than the clip
(descent.md, lemmas 1 and 2); nothing here draws noise or knows a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cache, partial
from math import inf
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..randomness.keys import Key
from ..records.labels import label_array, with_labels
from ..records.rows import Block, PerRecord, Rows
from ..support.columns import as_compiled
from ..support.errors import DomainError
from ..support.parameters import Outside
from .families import FAMILIES
from .label_reading import TOLERANCE, LabelReading, labels_of
from .losses.base import Summand
from .rounded_moments import times_root_two
from .sets import Projection, Vector

_ONE_LOOP = 2**18  # entries up to which a descent is one compiled loop: 60 us a step, too short for threads
_MOST_COLUMNS = 2**20  # descent.md, lemma 1

_LEGAL = 2.0**511
_WILD = "X: must be finite, with norms below 2^511; there are records that are not"

T = TypeVar("T")


class DescentSteps(NamedTuple):
    """What follows the gradients: scale and ridge of the mean gradient, a rate for every step, the set."""

    scale: float
    ridge: float
    rates: Vector
    projection: Projection | None

    @property
    def mean(self) -> Vector:
        """Scale and ridge, as kernels/descent.py takes them."""
        return np.array([self.scale, self.ridge])


class Points:
    """n points and their labels, for one loss: `columns` coordinates, and d of the loss's parameter.

    `may_be_empty` where the number of records is private, so that it must not decide about an error.

    Raises    ValueError for what the loss cannot take, before a record is read; DomainError when `check` reads them.
              After that no record stops a descent
    """

    def __init__(self, X: Any, y: Any, loss: Summand, outside: str, *, may_be_empty: bool = False) -> None:
        self.rows, y = with_labels(X, y)
        self.n, self.columns = self.rows.n, self.rows.width
        if not self.n and not may_be_empty:
            raise ValueError("X: n=0 records: must be at least one")
        if self.columns > _MOST_COLUMNS:
            raise ValueError(f"X: {self.columns} columns: must be at most 2^20")
        self.loss, self.d = loss, loss.dimension(self.columns)
        if self.d > _MOST_COLUMNS:
            raise ValueError(f"loss={loss!r}: {self.d} coordinates of w: must be at most 2^20")
        self._clip = outside == "clip"
        self._bound = inf if loss.x_norm is None else loss.x_norm
        self._given = self._given_labels(y)
        self._labels: PerRecord | None = None
        self._norms: PerRecord | None = None
        self._keeps_norms = True
        self._wild = False  # whether there is a record that legal_points changes

    def __getstate__(self) -> dict[str, Any]:
        """What a worker needs to read a block: where the records are is no part of it."""
        return {**self.__dict__, "rows": None, "_given": None}

    def summing(self, loss: Summand) -> Points:
        """The same records, unchecked, of which something without labels is summed; any norm beyond is an error."""
        other = copy(self)
        other.rows, other.loss, other.d, other._given = self.rows, loss, loss.dimension(self.columns), None
        other._bound = inf if loss.x_norm is None else loss.x_norm
        return other

    # --- reading

    def _given_labels(self, y: Any) -> Any:
        """Labels as they were given, of which the number and the type are right; None if the loss has none."""
        loss = self.loss
        if loss.labels is None:
            if y is not None:
                raise ValueError(f"y: must be None: {type(loss).__name__} has no labels")
            return None
        if y is None:
            raise ValueError(f"y=None: must be the labels of the records: {type(loss).__name__} has some")
        if isinstance(y, Rows):
            return y
        outside: Outside = "clip" if self._clip else "raise"
        return label_array(y, self.n, labels_of(loss), outside)

    def check(self, *, keep_norms: bool = True) -> None:
        """Read all records once: DomainError if one of them is outside what was declared. To be called before sums.

        Norms are kept for sums of gradients.
        """
        self._keeps_norms = keep_norms
        self.check_by(self._read_norms)

    def check_by(self, read: Callable[[], NDArray[np.int64]]) -> NDArray[np.int64]:
        """As `check`, by a function that reads all records for its own ends: what it returns.

        Its last two entries are the sums of `verdict` over blocks: it reads again if records have to be changed.
        """
        if self._given is not None:
            self._labels = self.rows.label_reader(self._given, LabelReading(self.loss, self._clip), np.float64)
        found = read()
        if found[-2] and self._clip:
            self._wild = True
            found = read()
        if found[-2]:
            raise DomainError(_WILD)
        if found[-1] and not self._clip:
            raise DomainError(
                f"X: norms must be at most x_norm={self._bound:g}; there are records beyond: scale them by a public "
                "number, or pass outside='clip' to bring them back"
            )
        return found

    def verdict(self, largest: float) -> list[int]:
        """Of a block by its largest norm, NaN if there is one: whether it is not finite, whether beyond the bound."""
        return [int(not largest < inf), int(largest > self._bound * (1 + TOLERANCE))]

    def _read_norms(self) -> NDArray[np.int64]:
        """Whether there are norms that are not finite, and, if there are none, whether some are beyond the bound."""
        norms = self._norms = self.rows.keep(self._norms_of, np.float64) if self._keeps_norms else self._norms_of
        labels, verdict = self._labels, self.verdict

        def statistic(block: Block) -> list[int]:
            if labels is not None:
                labels(block)  # fails where one is outside
            return verdict(float(norms(block).max(initial=0.0)))  # NaN where there is one

        return self.rows.total(statistic)

    def _norms_of(self, block: Block) -> Vector:
        return norms_of(self._matrix(block))

    def _matrix(self, block: Block) -> NDArray[Any]:
        """The points of a block, a record a row."""
        if not self._clip:
            return block.matrix()
        X = block.matrix("clip")
        return legal_points(X) if self._wild else X

    def parts(self, block: Block) -> tuple[NDArray[Any], Vector, Vector]:
        """Points (flat), labels and norms of a block."""
        assert self._norms is not None
        X, norms = self._matrix(block), self._norms(block)
        if FAMILIES[self.loss.family].differences:
            X = X.astype(np.float64, copy=False)
            if self._clip and self._bound < inf:  # others shrink as they go
                X = X * np.minimum(1.0, self._bound / norms)[:, None]
        labels = np.zeros(block.n) if self._labels is None else as_compiled(self._labels(block))
        return as_compiled(X.reshape(-1)), labels, norms

    @property
    def limit(self) -> float:
        """The norm that points are brought back to; inf where they are within it, or none is declared."""
        return self._bound if self._clip else inf

    def raw_parts(self, block: Block) -> tuple[NDArray[Any], Vector]:
        """Points and labels of a block, not brought back to their norm."""
        X = self._matrix(block)
        return X, np.zeros(block.n) if self._labels is None else as_compiled(self._labels(block))

    # --- sums

    def gradients(self, w: Vector, unit: float, limit: float) -> NDArray[np.int64]:
        """The sum of all clipped gradients at w, in units of the grid."""
        return self.rows.total(partial(self._sum, "sum", w=w, unit=unit, limit=limit, dtype=np.int64))

    def vectors(self, unit: float, limit: float) -> NDArray[np.int64]:
        """The sum of all points, shortened to the clip, in units of the grid; it checks them as `check` does."""
        if self._bound < inf and not self._clip:
            self.check(keep_norms=False)
        found = self.rows.total(partial(self._sum_vectors, unit, limit))
        if found[-1] and self._clip:
            self._wild = True
            found = self.rows.total(partial(self._sum_vectors, unit, limit))
        if found[-1]:
            raise DomainError(_WILD)
        return found[:-1]

    def _sum_vectors(self, unit: float, limit: float, block: Block) -> NDArray[np.int64]:
        """The sum over a block, and whether one of its points has no finite norm."""
        from ..kernels.vector_sums import sum_vectors

        X, out = self._matrix(block), np.zeros(self.d + 1, np.int64)
        if self._wild:  # whose squares, added up in another order, may leave float64
            X = legal_points(X, _LEGAL)
        out[-1] = sum_vectors(as_compiled(X.reshape(-1)), least_square(X), unit, limit, out[:-1])
        return out

    def plain_gradients(self, w: Vector) -> Vector:
        """The sum of all gradients at w, neither clipped nor private; the same bits for any number of threads."""
        sums = self.rows.merge(lambda block: [self._sum("sum_plain", block, w, 1.0, inf, np.float64)], _append)
        total = np.zeros(self.d)
        for each in sums:
            total += each
        return total

    def plain_parts(self) -> list[NDArray[np.float64]]:
        """All points, block by block; not private."""
        if not self.rows.gathers:
            raise ValueError("X: a Dask collection: must be in this process for what is not private")
        parts: list[NDArray[np.float64]] = self.rows.merge(
            lambda block: [np.asarray(self.parts(block)[0].reshape(-1, self.columns), np.float64)], _append
        )
        return parts

    def plain_mean(self, function: Callable[[NDArray[np.float64], Vector], Vector]) -> Vector:
        """The mean of a function of points and labels, a sum over each block; not private."""

        def statistic(block: Block) -> list[Vector]:
            X, labels, norms = self.parts(block)
            X = X.reshape(-1, self.columns).astype(np.float64, copy=False)
            if not FAMILIES[self.loss.family].differences and self._bound < inf:
                X = X * np.minimum(1.0, self._bound / norms)[:, None]
            return [function(X, labels)]

        sums: list[Vector] = self.rows.merge(statistic, _append)
        return np.asarray(np.sum(sums, axis=0) / self.n)

    def moments(self, x_norm: float, y_bound: float, unit: float) -> NDArray[np.int64]:
        """The sum of all second moments, in units of the grid: kernels/moments.py."""

        def statistic(block: Block) -> NDArray[np.int64]:
            from ..kernels.moments import add_moments

            X, labels, norms = self.parts(block)
            d = self.columns
            out = np.zeros((d + 2, d), np.int64)
            sums, tail = np.empty((d + 2) * -(-d // 8) * 8), np.empty(4 * d + 8, X.dtype)
            add_moments(X, labels, norms, x_norm, y_bound, unit, tail, sums, out)
            return out

        return self.rows.total(statistic)

    def rounded_moments(self, x_norm: float, y_bound: float, size: int, key: Key) -> NDArray[np.int64]:
        """The same of points and labels that are rounded first; it checks them as `check` does, in the same read."""
        numbers = np.array([x_norm, y_bound, 0.0, size])
        found = self.check_by(lambda: self.rows.total(partial(self._rounded_moments, numbers, key)))
        sums = found[:-2].reshape(self.columns + 2, self.columns)
        sums[: self.columns] = times_root_two(sums[: self.columns])
        return sums

    def _rounded_moments(self, numbers: Vector, key: Key, block: Block) -> NDArray[np.int64]:
        """Those of a block, and its verdict."""
        from ..kernels.rounded_moments import add_rounded_moments

        X, labels = self.raw_parts(block)
        d, least = self.columns, np.array([0.0, 0.0, least_square(X), 0.0])
        out = np.zeros((d + 2) * d + 2, np.int64)
        largest = add_rounded_moments(
            as_compiled(X.reshape(-1)), labels, numbers + least, key, block.first, out[:-2].reshape(d + 2, d)
        )
        out[-2:] = self.verdict(largest)
        return out

    def descend(
        self, w: Vector, unit: float, limit: float, noise: NDArray[np.int64], steps: DescentSteps
    ) -> Vector | None:
        """All points of a descent, w first, if the records are one block, so that one compiled loop can do it."""
        from ..kernels import descent

        block, family = self.rows.one_block(), FAMILIES[self.loss.family]
        if block is None or steps.projection is None or self.n * self.d > _ONE_LOOP or not family.descends:
            return None
        path = np.empty((len(steps.rates) + 1, self.d))
        path[0] = w
        after = (
            self._rule(unit, limit),
            self.loss.address,
            noise,
            steps.rates,
            steps.mean,
            steps.projection.region,
            path,
        )
        kernel = getattr(descent, f"descend_{family.name}")
        kernel(*self.parts(block), *after)
        return path

    def _sum(self, action: str, block: Block, w: Vector, unit: float, limit: float, dtype: Any) -> NDArray[Any]:
        X, labels, norms = self.parts(block)
        out, family = np.zeros(self.d, dtype), FAMILIES[self.loss.family]
        at, tail, sums = family.arrange(w, self.columns, X.dtype)
        rule, kernel = self._rule(unit, limit), family.kernel(action)
        kernel(X, labels, norms, at, rule, self.loss.address, tail, sums, out)
        return out

    def _rule(self, unit: float, limit: float) -> Vector:
        """How gradients are made and cut: kernels/clipping.py."""
        return np.array([self.loss.number, self.loss.parameter, self.limit, unit, limit])


def legal_points(X: NDArray[Any], most: float = inf) -> NDArray[Any]:
    """Points whose norms are below `most`, or 2^512, by a function of each alone; those that are so already stay.

    In the others 0 takes the place of a NaN and the largest float that of an infinity. What then is beyond 2^500 is
    divided by a power of two, which keeps its direction; every bound is far below, so it is shortened anyway.
    """
    X, wild = X.copy(), np.flatnonzero(~(norms_of(X) < most))
    some = np.nan_to_num(X[wild])
    _, exponents = np.frexp(np.abs(some).max(axis=1, initial=0.0))
    X[wild] = np.ldexp(some, np.minimum(0, 500 - exponents)[:, None])
    return X


def norms_of(X: NDArray[Any]) -> Vector:
    from ..kernels.clipping import norms_into

    norms = np.empty(len(X))
    norms_into(as_compiled(X.reshape(-1)), X.shape[1], least_square(X), norms)
    return norms


def least_square(X: NDArray[Any]) -> float:
    """What is added to squared norms, so that none is too small: kernels/clipping.py."""
    return _least_square(X.itemsize)


@cache
def _least_square(size: int) -> float:
    from ..kernels.clipping import LEAST_SQUARE, LEAST_SQUARE_32

    return LEAST_SQUARE_32 if size == 4 else LEAST_SQUARE


def _append(some: list[T], more: list[T]) -> list[T]:
    return some + more
