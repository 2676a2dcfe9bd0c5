"""Weights over all cells of a domain, held one by one: the dense form of the synthetic distribution.

They are not normalised: `total` is their sum, so an update touches the cells of its query alone. All of this is public
(it follows from answers that have been released), so sums are floats.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import lru_cache
from math import inf, log
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..records.domain import Domain
from ..support.threads import run_chunks
from .queries.bound_query import BoundQuery
from .queries.cell_runs import CHUNK

Precision = Literal["float64", "float32"]
PRECISIONS: tuple[Precision, ...] = ("float64", "float32")

_RESUM = 256  # updates after which the total is added up anew
_FALL = 1e-3  # of the total since then: what is left has the rounding errors of what is gone
LARGEST = {"float64": 600.0, "float32": 60.0}  # how far apart the weights can show logarithms to be


def weights_of(shares: NDArray[np.float64], precision: Precision) -> dict[str, Any]:
    """What DenseWeights are made of for a distribution with these shares, all positive."""
    top, least = float(shares.max()), float(shares.min())
    return {"x": (shares / shares.mean()).reshape(-1).astype(precision), "span": log(top / least)}


class DenseWeights:
    """Weights of all cells of a domain: uniform, or those of an array, or with logarithms, which is kept and changed.

    span             no two logarithms of the weights are further apart
    measures_span    whether that is read off the weights anew before logarithms are kept: for updates that go back and
                     forth, whose rates add up to far more
    """

    def __init__(
        self, domain: Domain, precision: Precision = "float64", *, x: NDArray[Any] | None = None,
        logs: NDArray[np.float64] | None = None, span: float = 0.0, measures_span: bool = False,
    ) -> None:  # fmt: skip
        self.domain, self.precision, self.span, self.measures_span = domain, precision, span, measures_span
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

    def evaluate(self, bound: BoundQuery) -> float:
        """The query's value on the distribution."""
        return bound.average(self._x, self.total)

    def cells_of(self, bound: BoundQuery | None) -> int:
        """How many cells an update by this query touches, roughly; None: by one with a value for each cell."""
        return self.domain.size if bound is None else bound.cells_read

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

    def scale(self, bound: BoundQuery, rate: float) -> None:
        """Multiply every weight by e^(rate f), f the query's value in its cell."""
        self._updates += 1
        self.span += abs(rate)
        if self.measures_span and self._logs is None and self.span > LARGEST[self.precision]:
            self.span = float(np.log(self._x.max()) - np.log(self._x.min())) + abs(rate)
        if self.span > LARGEST[self.precision]:
            self._scale_logs(bound, rate)
            return
        self.total, summed = bound.scale(self._x, rate, self.total)
        self._summed = self.total if summed else max(self._summed, self.total)  # what rounding errors are relative to
        if self._updates % _RESUM == 0 or not _FALL * self._summed < self.total < 1e30:
            self._add_up()

    def _add_up(self) -> None:
        self.total = self._over_cells(lambda i, j: _weights().sum_cells(self._x[i:j]))
        if not 1e-20 < self.total < 1e20:
            factor = self.domain.size / self.total
            run_chunks(lambda i, j: _weights().multiply_cells(self._x[i:j], factor), self._x.size, CHUNK)
            self.total = float(self.domain.size)
        self._summed = self.total

    def _scale_logs(self, bound: BoundQuery, rate: float) -> None:
        """The same on logarithms, which cannot underflow; some ten times slower."""
        if self._logs is None:
            self._logs = self.logarithms()
        bound.add_to_logarithms(self._logs, rate)
        self._show_logs()

    def _show_logs(self) -> None:
        assert self._logs is not None
        logs, top = self._logs, float(self._logs.max())
        self.total = self._over_cells(lambda i, j: _fits().exponentiate_into(logs[i:j], top, self._x[i:j]))

    def _over_cells(self, kernel: Callable[[int, int], float]) -> float:
        return float(sum(run_chunks(kernel, self._x.size, CHUNK)))


@lru_cache(1)
def _weights() -> Any:
    from ..kernels import weights

    return weights


@lru_cache(1)
def _fits() -> Any:
    from ..kernels import fits

    return fits
