"""Laplace and Gaussian noise on a grid: integers meet noise.

Integers get discrete noise; floats are put on a power-of-two grid first, and the rounding is charged to the
sensitivity. noise.md proves the laws and the guarantees; kernels/noise.py draws; fastdp/randomness/exact_draws.py
settles what float64
cannot.
"""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import frexp, inf, isqrt, ldexp, nextafter, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import layout
from ..privacy.budget import Budget, charge, counting
from ..privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_mu, gaussian_sigma, zcdp_sigma
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..randomness import exact_draws as exact
from ..randomness.keys import Randomness, fresh_key, word_source
from ..support.checks import MAX_INT64, numbers_array, positive, power_of_two, probability
from ..support.errors import DomainError
from ..support.rounding import down, lower, up, upper
from ..support.threads import run_chunks

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

Values = NDArray[np.int64] | NDArray[np.float64]

MIN_SCALE, MAX_SCALE = 2.0**-20, 2.0**40
CHUNK = 69 << 10  # draws that one thread makes at a time: 69 blocks of Laplace draws, 32 of Gaussian ones


def laplace(
    values: ArrayLike,
    *,
    sensitivity: float,
    epsilon: float,
    resolution: float | None = None,
    out: Values | None = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Any:
    """Release `values` with Laplace noise of scale sensitivity / epsilon.

    Integers    exact discrete Laplace noise, Pr[Z = z] proportional to exp(-|z| epsilon / sensitivity); the result is
                int64 and saturates at its ends
    Floats      rounded to a power-of-two grid, noise on the grid; the result is float64. `resolution` is the grid; by
                default the largest power of two at most min(sensitivity, sensitivity / epsilon) / (1024 n), so that
                the rounding of n entries, which is charged to the sensitivity, adds a thousandth to the noise (more
                only where that grid would be finer than 2^-38 of the noise: n / epsilon beyond 2^28)

    Guarantee    epsilon-DP, for any values whose L1 sensitivity is at most `sensitivity`
    Proof        noise.md, theorems 1 and 3
    Accuracy     each entry is within (sensitivity / epsilon) ln(1 / beta), and two units of the grid, with
                 probability 1 - beta; a thousandth more for floats
    Cost         O(n), about 2 ns an entry; the same whatever the values are
    Not covered  what the caller's sensitivity claims; the time that converting `values` to an array takes
    Raises       ValueError "epsilon=-1.0: must be > 0 and finite"; DomainError on NaN or an infinity

    `out` takes the result (it may be `values` itself). It is left as it was if a parameter or a value is wrong; after
    an interrupt its content is undefined. `rng` is for tests; by default every call draws a fresh key from the
    operating system. The release is charged to `budget`, or to the budget whose block is open; `neighbors` says under
    which relation `sensitivity` holds.

    Examples
    >>> import fastdp, numpy as np
    >>> counts = np.array([120, 64, 0, 311])
    >>> noisy = fastdp.laplace(counts, sensitivity=1, epsilon=0.5)
    >>> noisy.dtype, noisy.shape
    (dtype('int64'), (4,))
    >>> fastdp.laplace(2.5, sensitivity=1.0, epsilon=1.0).dtype
    dtype('float64')
    """
    array = numbers_array("values", values)
    sensitivity, epsilon, grid, plan = laplace_terms(array.dtype, array.size, sensitivity, epsilon, resolution)
    if neighbors == "replace-one" and not counting(budget):
        return release(array, grid, plan, out, rng)
    guarantee = PureDP(epsilon, neighbors=neighbors)
    with charge(budget, guarantee, "laplace", {"sensitivity": sensitivity, "epsilon": epsilon}) as final:
        return release(array, grid, plan, out, rng, final)


def gaussian(
    values: ArrayLike,
    *,
    sensitivity: float,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    resolution: float | None = None,
    out: Values | None = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Any:
    """Release `values` with Gaussian noise, calibrated to `rho` or to `epsilon` and `delta`.

    Integers    exact discrete Gaussian noise, Pr[Z = z] proportional to exp(-z^2 / (2 sigma^2)); the result is int64
                and saturates at its ends
    Floats      rounded to a power-of-two grid, noise on the grid; the result is float64. `resolution` is the grid; by
                default the largest power of two at most min(sensitivity, sigma) / (1024 sqrt(n)), charged as in
                `laplace`

    Guarantee    rho-zCDP, or (epsilon, delta)-DP with the least sigma proven for vectors of any dimension, for any
                 values whose L2 sensitivity is at most `sensitivity`
    Proof        noise.md, theorems 2 and 3; calibration.md, theorems 2 and 3
    Accuracy     each entry is within sigma sqrt(2 ln(2 / beta)), and a unit of the grid, with probability 1 - beta
    Cost         O(n), about 4 ns an entry; the same whatever the values are
    Not covered  what the caller's sensitivity claims; the time that converting `values` to an array takes
    Raises       ValueError "rho=0: must be > 0 and finite"; DomainError on NaN or an infinity

    `out`, `rng`, `budget` and `neighbors` as in `laplace`.

    Examples
    >>> import fastdp, numpy as np
    >>> fastdp.gaussian(np.arange(5), sensitivity=1, epsilon=1.0, delta=1e-6).shape
    (5,)
    >>> fastdp.gaussian([0.5, 1.5], sensitivity=2.0, rho=0.1).dtype
    dtype('float64')
    """
    array = numbers_array("values", values)
    sensitivity, price, grid, plan = gaussian_terms(
        array.dtype, array.size, sensitivity, rho, epsilon, delta, resolution
    )
    if neighbors == "replace-one" and not counting(budget):
        return release(array, grid, plan, out, rng)
    guarantee, parameters = _gaussian_guarantee(sensitivity, price, grid, plan, array.size, neighbors)
    with charge(budget, guarantee, "gaussian", parameters) as final:
        return release(array, grid, plan, out, rng, final)


def _gaussian_guarantee(
    sensitivity: float, price: _Price, grid: float | None, plan: GaussianPlan, n: int, neighbors: Neighbors
) -> tuple[Guarantee, dict[str, float]]:
    """What the noise of a plan promises: the price that was asked, and the rho that its sigma amounts to."""
    epsilon, delta = price
    moved = up(upper(sensitivity)) if grid is None else _l2_on_grid(sensitivity, grid, n)
    mu = gaussian_mu(moved, plan.sigma, n)
    if delta is None:
        return ZCDP(epsilon, mu=mu, neighbors=neighbors), {"sensitivity": sensitivity, "rho": epsilon}
    rho = up((Fraction(moved) / Fraction(plan.sigma)) ** 2 / 2)
    both = AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), ZCDP(rho, mu=mu, neighbors=neighbors))
    return both, {"sensitivity": sensitivity, "epsilon": epsilon, "delta": delta}


def laplace_terms(
    dtype: np.dtype[Any], n: int, sensitivity: float, epsilon: float, resolution: float | None
) -> tuple[float, float, float | None, LaplacePlan]:
    """The parameters of `laplace` for n values, checked, and what follows: the grid of floats, and the noise."""
    sensitivity = positive("sensitivity", sensitivity, toward=inf)
    epsilon = positive("epsilon", epsilon, toward=0)
    if dtype == np.int64:
        _no_resolution(resolution)
        return sensitivity, epsilon, None, _laplace_for_integers(sensitivity, epsilon)
    if resolution is not None:
        resolution = power_of_two("resolution", resolution)
    return sensitivity, epsilon, *_laplace_for_floats(sensitivity, epsilon, resolution, n)


def gaussian_terms(
    dtype: np.dtype[Any],
    n: int,
    sensitivity: float,
    rho: float | None,
    epsilon: float | None,
    delta: float | None,
    resolution: float | None,
) -> tuple[float, _Price, float | None, GaussianPlan]:
    """The parameters of `gaussian` for n values, checked, and what follows: the grid of floats, and the noise."""
    sensitivity = positive("sensitivity", sensitivity, toward=inf)
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise ValueError(f"rho={rho!r}: give either rho, or epsilon and delta")
        price: _Price = (positive("rho", rho, toward=0), None)
    else:
        if epsilon is None or delta is None:
            raise ValueError(f"epsilon={epsilon!r}, delta={delta!r}: give both, or rho instead")
        price = (positive("epsilon", epsilon, toward=0), probability("delta", delta))
        for name, value in (("epsilon", epsilon), ("delta", delta)):
            if value < SMALLEST:
                raise ValueError(f"{name}={value!r}: must be at least {SMALLEST:g} for Gaussian noise")
        if price[0] > MAX_EPSILON:
            raise ValueError(f"epsilon={epsilon!r}: must be at most {MAX_EPSILON:g}")
    if dtype == np.int64:
        _no_resolution(resolution)
        return sensitivity, price, None, _gaussian_for_integers(sensitivity, price, n)
    if resolution is not None:
        resolution = power_of_two("resolution", resolution)
    return sensitivity, price, *_gaussian_for_floats(sensitivity, price, resolution, n)


def _no_resolution(resolution: float | None) -> None:
    if resolution is not None:
        raise ValueError(f"resolution={resolution!r}: must be None for integers, whose grid is 1")


# --- plans: what a kernel needs to know of a law, computed once


class LaplacePlan(NamedTuple):
    """Discrete Laplace noise of scale s, as kernels/noise.py::add_laplace_into takes it; noise.md, lemmas 2 and 3."""

    extra: int  # bits of U beyond the first 31
    scale: float
    law: NDArray[np.float64]  # what stands where: kernels/layout.py


class GaussianPlan(NamedTuple):
    """Discrete Gaussian noise, as kernels/noise.py::add_gaussian_into takes it; noise.md, lemmas 4 and 5."""

    extra: int  # bits of U beyond the first 31
    sigma: float
    law: NDArray[np.float64]  # what stands where: kernels/layout.py


Plan = LaplacePlan | GaussianPlan
_Price = tuple[float, float | None]  # (rho, None) or (epsilon, delta)

_DIGITS = Context(prec=60)
_U = 2.0**-53


@lru_cache(1024)
def _laplace_for_integers(sensitivity: float, epsilon: float) -> LaplacePlan:
    return laplace_plan(scale_in_range(up(upper(sensitivity) / lower(epsilon)), "sensitivity / epsilon"))


@lru_cache(1024)
def _laplace_for_floats(
    sensitivity: float, epsilon: float, resolution: float | None, n: int
) -> tuple[float, LaplacePlan]:
    n = max(n, 1)
    if resolution is None:
        unit = sensitivity / epsilon
        resolution = max(power_below(min(sensitivity, unit) / (1024 * n)), power_below(unit) * 2.0**-38)
        if n / epsilon > MAX_SCALE / 2:
            raise ValueError(
                f"epsilon={epsilon!r}: too small for n={n} floats, whose rounding alone would take noise of more than "
                f"2^39 grid units; release fewer at a time, or integers"
            )
    grid = usable_grid(resolution, sensitivity)
    # the L1 distance of two neighbours, in units of the grid, is an integer and at most sensitivity / grid + n
    moved = int(upper(sensitivity) / Fraction(grid)) + n
    scale = up(moved / lower(epsilon))
    return grid, laplace_plan(scale_in_range(scale, "(sensitivity / resolution + n) / epsilon"))


@lru_cache(1024)
def _gaussian_for_integers(sensitivity: float, price: _Price, n: int) -> GaussianPlan:
    return gaussian_plan(scale_in_range(_sigma(sensitivity, price, n), "sigma"))


@lru_cache(1024)
def _gaussian_for_floats(
    sensitivity: float, price: _Price, resolution: float | None, n: int
) -> tuple[float, GaussianPlan]:
    n = max(n, 1)
    root = isqrt(n - 1) + 1
    if resolution is None:
        sigma = _sigma(1.0, price, n) * sensitivity
        resolution = max(power_below(min(sensitivity, sigma) / (1024 * root)), power_below(sigma) * 2.0**-38)
    grid = usable_grid(resolution, sensitivity)
    moved = _l2_on_grid(sensitivity, grid, n)
    return grid, gaussian_plan(scale_in_range(_sigma(moved, price, n), "sigma in units of the resolution"))


def _l2_on_grid(sensitivity: float, grid: float, n: int) -> float:
    """The L2 distance of two neighbours, in units of the grid, is at most sensitivity / grid + sqrt(n)."""
    return nextafter(sensitivity / grid + nextafter(sqrt(n), inf), inf)


def _sigma(sensitivity: float, price: _Price, n: int) -> float:
    epsilon, delta = price
    sensitivity = up(upper(sensitivity))
    if delta is None:
        return zcdp_sigma(sensitivity, rho=down(lower(epsilon)))
    return gaussian_sigma(sensitivity, epsilon=down(lower(epsilon)), delta=down(lower(delta)), dimension=n)


def scale_in_range(scale: float, name: str) -> float:
    if not MIN_SCALE <= scale <= MAX_SCALE:
        raise ValueError(f"{name}={scale!r}: the noise scale must be between 2^-20 and 2^40")
    return scale


def power_below(x: float) -> float:
    """The largest power of two at most x."""
    return ldexp(0.5, frexp(x)[1])


def usable_grid(grid: float, sensitivity: float) -> float:
    if not (2.0**-900 <= grid <= 2.0**900 and sensitivity >= 2.0**-900):
        raise ValueError(f"sensitivity={sensitivity!r}: the grid of the noise, {grid!r}, leaves the range of float64")
    return grid


def laplace_plan(scale: float) -> LaplacePlan:
    """The plan for discrete Laplace noise of this scale; noise.md, lemmas 2 and 3, derive the constants."""
    d = _DIGITS
    q = d.exp(d.divide(Decimal(-1), Decimal(scale)))
    half = d.divide(d.add(Decimal(1), q), Decimal(2))
    law = np.empty(layout.LAPLACE_LAW)
    law[layout.LAPLACE_SCALE] = scale
    law[[layout.LAPLACE_OFFSET, layout.LAPLACE_OFFSET_LOW]] = _pair(d.multiply(Decimal(-scale), d.ln(half)))
    law[layout.LAPLACE_ERROR] = _U * (5 * scale + 2)
    law[layout.LAPLACE_ERROR_PAIR] = 2.0**-78 * scale
    return LaplacePlan(exact.extra_bits(scale), scale, law)


def gaussian_plan(sigma: float) -> GaussianPlan:
    """The plan for discrete Gaussian noise of this sigma; noise.md, lemmas 4 and 5, derive the constants."""
    d = _DIGITS
    proposal = exact.gaussian_proposal(sigma)
    tail, body = float(proposal.t), float(proposal.a)
    t, a, variance = Decimal(tail), Decimal(body), d.multiply(Decimal(sigma), Decimal(sigma))
    one = Decimal(1)
    log_g = d.subtract(d.divide(variance, d.multiply(Decimal(2), d.multiply(t, t))), d.divide(a, t))
    survive = d.subtract(one, d.exp(d.divide(-one, t)))
    log_tail_mass = d.subtract(log_g, d.ln(survive))
    tail_mass = d.exp(log_tail_mass)
    mass = d.add(d.subtract(a, Decimal("0.5")), tail_mass)
    start = d.add(a, d.multiply(t, d.subtract(log_tail_mass, d.ln(mass))))
    peak = float(d.divide(variance, t))
    size = body + 2 * float(mass) + 2 * abs(float(start))
    law = np.empty(layout.GAUSSIAN_LAW)
    law[layout.BODY], law[layout.TAIL] = body, tail
    law[[layout.START, layout.START_LOW]] = _pair(start)
    law[[layout.MASS, layout.MASS_LOW]] = _pair(mass)
    law[[layout.TAIL_MASS, layout.TAIL_MASS_LOW]] = _pair(tail_mass)
    law[layout.PEAK] = peak
    law[layout.CURVATURE] = float(d.divide(Decimal("0.5"), variance))
    law[layout.ERROR] = _U * (10 * tail + 8 * size + 2)
    law[layout.ERROR_OF_CELL] = 0.75 * float(mass) + 0.75 * tail
    law[layout.COIN_ERROR] = 2.0**-31 + _U * (8 + peak / sigma)
    law[layout.COIN_ERROR_PAIR] = 2.0**-51 + _U * (8 + peak / sigma)
    law[layout.ERROR_PAIR] = 2.0**-78 * (tail + size)
    return GaussianPlan(exact.extra_bits(sigma), sigma, law)


def _pair(x: Decimal) -> tuple[float, float]:
    high = float(x)
    return high, float(_DIGITS.subtract(x, Decimal(high)))


# --- releasing: call the kernel chunk by chunk, settle what it reports


def release(
    array: Values,
    grid: float | None,
    plan: Plan,
    out: Values | None = None,
    rng: Randomness | None = None,
    final: Callable[[], None] | None = None,
) -> Any:
    """Add noise by the plan; parameters have been checked. `final` is called right before the first draw.

    Charges nobody: that is the caller's part.
    """
    plain = None if out is None else _checked_out(array, out)
    flat = array if array.ndim == 1 else array.reshape(-1)
    if grid is not None:
        check_finite(flat)  # all of it, before a key is asked for, an entry written, a charge final
    key = fresh_key(rng)
    if final is not None:
        final()
    direct = plain is not None and plain.flags.c_contiguous and (out is array or not np.may_share_memory(plain, array))
    target = plain if direct and plain is not None else np.empty_like(array)
    result = target if target.ndim == 1 else target.reshape(-1)
    n = flat.size
    if n <= CHUNK:
        add_noise(plan, grid, key, flat, result, 0)
    else:
        run_chunks(lambda i, j: add_noise(plan, grid, key, flat[i:j], result[i:j], i), n, CHUNK)
    if out is None:
        return target if target.ndim else target[()]
    if plain is not None and not direct:
        plain[...] = target
    return out


@lru_cache(1)
def _kernels() -> ModuleType:
    from ..kernels import noise

    return noise


def check_finite(values: Values) -> None:
    """DomainError if there is a NaN or an infinity among these floats."""
    if _kernels().count_not_finite(values):
        raise DomainError("values: must be finite; there is a NaN or an infinity among them")


def _checked_out(array: Values, out: Any) -> Values:
    """`out` as a plain array: what a subclass makes of indices and shapes is its own affair."""
    if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
        raise ValueError(f"out: type {type(out).__name__}: must be a numpy array")
    if out.shape != array.shape:
        raise ValueError(f"out: shape {out.shape}: must be that of values, {array.shape}")
    if out.dtype != array.dtype or not out.dtype.isnative:
        raise ValueError(f"out: dtype {out.dtype}: must be {array.dtype}, in native byte order")
    if not out.flags.writeable:
        raise ValueError("out: is read-only: must be writeable")
    return cast("Values", out.view(np.ndarray))


def integer_noise(plan: Plan, key: NDArray[np.uint32], n: int) -> NDArray[np.int64]:
    """The first n draws of a release, by themselves."""
    out = np.zeros(n, np.int64)
    add_noise(plan, None, key, out, out, 0)
    return out


def add_noise(
    plan: Plan,
    grid: float | None,
    key: NDArray[np.uint32],
    values: Values,
    out: Values,
    first: int,
) -> None:
    """out = values with the noise of draws number first, first + 1, ... of the release; first a multiple of CHUNK."""
    kernels = _kernels()
    undecided = np.empty(values.size, np.int64)
    place = (values,) if grid is None else (values, grid)
    if isinstance(plan, LaplacePlan):
        add = kernels.add_laplace_into if grid is None else kernels.add_laplace_on_grid_into
        block = first // layout.LAPLACE_BLOCK
    else:
        add = kernels.add_gaussian_into if grid is None else kernels.add_gaussian_on_grid_into
        block = first // layout.GAUSSIAN_BLOCK
    try:
        found = add(*place, key, block, plan.extra, plan.law, out, undecided)
        for i in undecided[:found].tolist() if found else ():
            resolve_exactly(plan, grid, key, out, i, first)
    except BaseException:
        out.fill(0)  # interrupted: leave no value behind that has no noise
        raise


def resolve_exactly(plan: Plan, grid: float | None, key: NDArray[np.uint32], out: Values, i: int, first: int) -> None:
    """Add what the kernel left out: one draw (Laplace), or those of the block that starts at i (Gaussian)."""
    if isinstance(plan, LaplacePlan):
        _add_draw(out, i, exact.geometric_draw(word_source(key), first + i, plan.scale, two_sided=True), grid)
        return
    count = min(layout.GAUSSIAN_BLOCK, out.size - i)
    draws = exact.gaussian_block(word_source(key), (first + i) // layout.GAUSSIAN_BLOCK, count, plan.sigma)
    for j, draw in enumerate(draws, i):
        _add_draw(out, j, draw, grid)


def _add_draw(out: Values, i: int, draw: int, grid: float | None) -> None:
    if grid is None:
        out[i] = max(-MAX_INT64 - 1, min(MAX_INT64, int(out[i]) + draw))
    else:
        out[i] = float(Fraction(float(out[i])) + draw * Fraction(grid))
