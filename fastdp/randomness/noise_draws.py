"""Noise by a plan, added to arrays: the one loop over chunks, kernels and what they leave open.

Draw i of a release is a function of its key and i, so neither threads nor chunks change a bit. The kernels decide
nearly every draw in float64 with proven bounds; exact_draws.py resolves the others in integers.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import layout
from ..support.checks import MAX_INT64
from ..support.errors import DomainError
from ..support.frozen import frozen
from ..support.threads import run_chunks
from . import exact_draws as exact
from .keys import check_draws, word_source
from .noise_plans import LaplacePlan, NoisePlan

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Values = NDArray[np.int64] | NDArray[np.float64]

_INT64 = np.dtype(np.int64)
CHUNK = 69 << 10  # draws that one thread makes at a time: 69 blocks of Laplace draws, 32 of Gaussian ones


@lru_cache(1)
def _kernels() -> ModuleType:
    from ..kernels import noise

    return noise


def check_finite(values: Values) -> None:
    """DomainError if there is a NaN or an infinity among these floats."""
    if _kernels().count_not_finite(values):
        raise DomainError("values: must be finite; there is a NaN or an infinity among them")


def integer_noise(plan: NoisePlan, key: NDArray[np.uint32], n: int) -> NDArray[np.int64]:
    """The first n draws of a release, by themselves."""
    return integer_noise_from(plan, key, 0, n)


def integer_noise_from(plan: NoisePlan, key: NDArray[np.uint32], first: int, n: int) -> NDArray[np.int64]:
    """Draws number first, first + 1, ... of a release; first a multiple of a kernel's block."""
    out = np.zeros(n, np.int64)
    add_noise(plan, None, key, out, out, first)
    return out


FEW = layout.LAPLACE_BLOCK


class FewDraws:
    """The noise of a plan for at most FEW values: `add_noise` for calls of two microseconds.

    One array is made, and the kernel is handed three of which it is known what they are. What it is handed besides the
    values and the key is kept here, with the noise of the parameters.
    """

    __slots__ = ("_add", "_grid", "_law", "plan")

    def __init__(self, plan: NoisePlan, grid: float | None) -> None:
        self.plan, self._grid = plan, grid
        self._law = frozen(np.array([1.0 if grid is None else grid, plan.extra, *plan.law]))
        self._add: Callable[[Values, bytes, NDArray[np.float64]], int] = self._load

    def release(self, values: Values, take_key: Callable[[], bytes]) -> Any:
        """A copy of the values with the draws of a key, which is taken right before; DomainError unless all are finite.

        `take_key` makes the charge final if there is one.
        """
        out = values.copy()
        flat = out if out.ndim == 1 else out.reshape(-1)
        if self._grid is not None:
            check_finite(flat)
        key = take_key()
        if self._add(flat, key, self._law):
            words = np.frombuffer(bytearray(key), np.uint32)
            add_noise(self.plan, self._grid, words, values.reshape(-1), flat)
        return out if out is flat else out[()]  # of no dimension a number, of several all

    def _load(self, values: Values, key: bytes, law: NDArray[np.float64]) -> int:
        """The first call: it finds the kernel."""
        kind = "laplace" if type(self.plan) is LaplacePlan else "gaussian"
        kernel = getattr(_kernels(), f"add_{kind}_to_few{'' if self._grid is None else '_on_grid'}")
        from ..kernels.compile import machine_code

        self._add = add = machine_code(kernel, values, key, law)
        return int(add(values, key, law))


def add_noise(
    plan: NoisePlan, grid: float | None, key: NDArray[np.uint32], values: Values, out: Values, first: int = 0
) -> None:
    """out = values with the noise of draws number first, first + 1, ... of the release.

    `first` is a multiple of CHUNK, or of a block of the law.
    """
    n = values.size
    if n > CHUNK:
        check_draws(first + n)
        run_chunks(lambda i, j: add_noise(plan, grid, key, values[i:j], out[i:j], first + i), n, CHUNK)
        return
    kernels = _kernels()
    undecided = np.empty(n, _INT64)
    laplace = type(plan) is LaplacePlan
    block = first // (layout.LAPLACE_BLOCK if laplace else layout.GAUSSIAN_BLOCK)
    try:
        if grid is None:
            add = kernels.add_laplace_into if laplace else kernels.add_gaussian_into
            found = add(values, key, block, plan.extra, plan.law, out, undecided)
        else:
            add = kernels.add_laplace_on_grid_into if laplace else kernels.add_gaussian_on_grid_into
            found = add(values, grid, key, block, plan.extra, plan.law, out, undecided)
        if found:
            resolve_exactly(plan, grid, key, out, undecided[:found].tolist(), first)
        if grid is not None and out is not values and kernels.count_not_finite(out):
            _check_overflow(values, out)
    except BaseException:
        out.fill(0)  # interrupted: leave no value behind that has no noise
        raise


def _check_overflow(values: Values, out: Values) -> None:
    """DomainError unless what is infinite with its noise was next to the largest float, and finite, without.

    The values have been checked, but a NaN or an infinity that another thread wrote since would leave as it is.
    """
    before = np.abs(values[~np.isfinite(out)])
    if not ((before >= 2.0**1000) & (before < np.inf)).all():
        raise DomainError("values: must not change during the call, and they did")


def resolve_exactly(
    plan: NoisePlan, grid: float | None, key: NDArray[np.uint32], out: Values, undecided: list[int], first: int
) -> None:
    """Add what the kernel left out: for each place i one draw (Laplace), or those of its block (Gaussian)."""
    words = word_source(key)
    for i in undecided:
        if isinstance(plan, LaplacePlan):
            draws = [exact.geometric_draw(words, first + i, plan.scale, two_sided=True)]
        else:
            count = min(layout.GAUSSIAN_BLOCK, out.size - i)
            draws = exact.gaussian_block(words, (first + i) // layout.GAUSSIAN_BLOCK, count, plan.sigma)
        for j, draw in enumerate(draws, i):
            _add_draw(out, j, draw, grid)


def _add_draw(out: Values, i: int, draw: int, grid: float | None) -> None:
    if grid is None:
        out[i] = max(-MAX_INT64 - 1, min(MAX_INT64, int(out[i]) + draw))
    else:
        out[i] = float(Fraction(float(out[i])) + draw * Fraction(grid))
