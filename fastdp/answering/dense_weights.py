"""Weights over all cells of a domain, held one by one: the dense form of the synthetic distribution.

They are not normalised: `total` is their sum, so an update touches the cells of its query alone. All of this is public
(it follows from answers that have been released), so sums are floats.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import lru_cache
from math import exp, inf
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..records.domain import Domain
from ..support.threads import run_chunks
from .queries import Bound, BoundCells, BoundProduct
from .query_plans import Pattern, Runs

Precision = Literal["float64", "float32"]
PRECISIONS: tuple[Precision, ...] = ("float64", "float32")

CHUNK = 1 << 20  # cells that one thread works on at a time: 0.2 ms
_RESUM = 256  # updates after which the total is added up anew
_FALL = 1e-3  # of the total since then: what is left has the rounding errors of what is gone
LARGEST = {"float64": 600.0, "float32": 60.0}  # how far apart the weights can show logarithms to be


class DenseWeights:
    """Weights of all cells of a domain: uniform, or those of an array, or with logarithms, which is kept and changed.

    span    no two logarithms of the weights are further apart
    """

    def __init__(
        self, domain: Domain, precision: Precision = "float64", *, x: NDArray[Any] | None = None,
        logs: NDArray[np.float64] | None = None, span: float = 0.0,
    ) -> None:  # fmt: skip
        self.domain, self.precision, self.span = domain, precision, span
        self.total = self._summed = float(domain.size)
        self._updates = 0
        self._logs = logs  # kept once the weights cannot show them
        if logs is not None:
            self._x, self.span = np.empty(domain.size, precision), inf
            self._show_logs()
        elif x is not None:
            self._x = x
            self._add_up()
        else:
            self._x = np.full(domain.size, 1.0, precision)

    @property
    def bytes(self) -> int:
        """What it holds in memory."""
        return self._x.nbytes + (0 if self._logs is None else self._logs.nbytes)

    @property
    def in_logs(self) -> bool:
        """Whether logarithms are kept, since the weights alone would not show them."""
        return self._logs is not None

    def logarithms(self) -> NDArray[np.float64]:
        """The logarithms of the weights."""
        return np.log(self._x, dtype=np.float64) if self._logs is None else self._logs

    def view(self) -> DenseWeights:
        """The same weights in the same memory, without their logarithms: to be read only, until these change."""
        twin = copy(self)
        twin._logs = None
        return twin

    def own(self) -> DenseWeights:
        """The same weights in other memory, with the same logarithms: to be changed in place of these."""
        twin = copy(self)
        twin._x = self._x.copy()
        return twin

    def copy(self) -> DenseWeights:
        """The same weights, which later updates do not change."""
        twin = self.own()
        twin._logs = None if self._logs is None else self._logs.copy()
        return twin

    # --- reading

    def evaluate(self, bound: Bound) -> float:
        """The query's value on the distribution."""
        if isinstance(bound, BoundCells):
            kernel = _weights().sum_masked if bound.values.dtype == np.uint8 else _weights().sum_valued
            return self._over_cells(lambda i, j: kernel(self._x[i:j], bound.values[i:j])) / self.total
        share = self._over_walk(bound) / self.total
        return max(0.0, 1.0 - share) if bound.walk.outside else share

    @property
    def x(self) -> NDArray[Any]:
        """The weights in their own precision. To be read only."""
        return self._x

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weights, as float64; divided by `total` they are the distribution. To be read only."""
        return self._x.astype(np.float64, copy=False)

    def probabilities(self) -> NDArray[np.float64]:
        """The distribution, as a new array over all cells."""
        shares = self._x.astype(np.float64)
        shares /= self.total
        return shares

    def add_into(self, out: NDArray[np.float64], share: float) -> None:
        """Add the distribution, times `share`, to an array over all cells."""
        factor = share / self.total
        run_chunks(lambda i, j: _weights().add_cells_into(self._x[i:j], factor, out[i:j]), out.size, CHUNK)

    # --- updating

    def scale(self, bound: Bound, rate: float) -> None:
        """Multiply every weight by e^(rate f), f the query's value in its cell."""
        self._updates += 1
        self.span += abs(rate)
        if self.span > LARGEST[self.precision]:
            self._scale_logs(bound, rate)
            return
        if isinstance(bound, BoundCells):
            values = bound.values
            if values.dtype == np.uint8:
                kernel, by = _weights().scale_masked, exp(rate)
            else:
                kernel, by = _weights().scale_valued, rate
            self.total = self._summed = self._over_cells(lambda i, j: kernel(self._x[i:j], values[i:j], by))
        else:
            # the other side at the opposite rate gives the same distribution
            by = exp(-rate) if bound.walk.outside else exp(rate)
            self.total += (by - 1.0) * self._over_walk(bound, by)
            self._summed = max(self._summed, self.total)  # what its rounding errors are relative to
        if self._updates % _RESUM == 0 or not _FALL * self._summed < self.total < 1e30:
            self._add_up()

    def _add_up(self) -> None:
        self.total = self._over_cells(lambda i, j: _weights().sum_cells(self._x[i:j]))
        if not 1e-20 < self.total < 1e20:
            factor = self.domain.size / self.total
            run_chunks(lambda i, j: _weights().multiply_cells(self._x[i:j], factor), self._x.size, CHUNK)
            self.total = float(self.domain.size)
        self._summed = self.total

    def _scale_logs(self, bound: Bound, rate: float) -> None:
        """The same on logarithms, which cannot underflow; some ten times slower."""
        if self._logs is None:
            self._logs = self.logarithms()
        logs = self._logs
        if isinstance(bound, BoundCells):
            values = bound.values
            run_chunks(lambda i, j: np.add(logs[i:j], rate * values[i:j], out=logs[i:j]), logs.size, CHUNK)
        else:
            cube, inside = logs.reshape(self.domain.sizes), np.ones((1,) * len(self.domain), bool)
            for position, table in bound.allowed:
                inside = inside & table.reshape([-1 if p == position else 1 for p in range(len(self.domain))])
            np.add(cube, rate, out=cube, where=inside)  # a byte a cell at most; cube[np.ix_(...)] would be a copy
        self._show_logs()

    def _show_logs(self) -> None:
        assert self._logs is not None
        logs, top = self._logs, float(self._logs.max())
        self.total = self._over_cells(lambda i, j: _fits().exponentiate_into(logs[i:j], top, self._x[i:j]))

    def _over_walk(self, bound: BoundProduct, factor: float | None = None) -> float:
        """The sum of the weights of a walk; with a factor, they are multiplied by it after that."""
        return sum(_over_weights(self._x, plan, self.precision, factor) for plan in bound.walk.plans)

    def _over_cells(self, kernel: Callable[[int, int], float]) -> float:
        return float(sum(run_chunks(kernel, self._x.size, CHUNK)))


def count_cells(counts: NDArray[np.int64], bound: BoundProduct) -> int:
    """How many records a product has, from the histogram of all cells."""
    kernel = _subcubes().count_pattern if isinstance(bound.plan, Pattern) else _subcubes().count_runs
    return sum(_over_plan(bound.plan, lambda outer: int(kernel(counts, outer, *bound.plan[1:]))))


def _over_weights(x: NDArray[Any], plan: Runs | Pattern, precision: str, factor: float | None) -> float:
    kernels = _subcubes()
    if isinstance(plan, Pattern):
        kernel = kernels.sum_pattern if factor is None else kernels.scale_pattern
    elif plan.length == 1 or precision == "float32":
        kernel = kernels.sum_short_runs if factor is None else kernels.scale_short_runs
    else:
        kernel = kernels.sum_runs if factor is None else kernels.scale_runs
    rest = (*plan[1:], *(() if factor is None else (factor,)))
    return float(sum(_over_plan(plan, lambda outer: kernel(x, outer, *rest))))


def _over_plan(plan: Runs | Pattern, kernel: Callable[[NDArray[np.int64]], Any]) -> list[Any]:
    """Call `kernel` for the outer offsets, in chunks that are worth a thread."""
    each = plan.marks.size if isinstance(plan, Pattern) else max(1, plan.inner.size * plan.length)
    return run_chunks(lambda i, j: kernel(plan.outer[i:j]), plan.outer.size, max(1, CHUNK // each))


@lru_cache(1)
def _weights() -> Any:
    from ..kernels import weights

    return weights


@lru_cache(1)
def _fits() -> Any:
    from ..kernels import fits

    return fits


@lru_cache(1)
def _subcubes() -> Any:
    from ..kernels import subcubes

    return subcubes
