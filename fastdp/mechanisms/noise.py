"""Laplace and Gaussian noise on a grid: integers meet noise.

Integers get discrete noise; floats are put on a power-of-two grid first, and the rounding is charged to the
sensitivity. noise.md proves the laws and the guarantees; randomness/noise_draws.py draws, and exact_draws.py there
resolves what float64 cannot.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import frexp, inf, isqrt, ldexp, nextafter
from typing import TYPE_CHECKING, Any, NamedTuple, Required, TypedDict, Unpack, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.budget import Budget
from ..privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_mu, gaussian_sigma, zcdp_sigma
from ..privacy.discrete_gaussian import greatest_square
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..privacy.profiles import DiscreteLaplace, with_profile
from ..privacy.releases import RowParameters
from ..randomness.charged_keys import ChargedKeys, is_plain
from ..randomness.keys import Randomness, secure_bytes
from ..randomness.noise_draws import FEW, FewDraws, Values, add_noise, check_finite
from ..randomness.noise_plans import (
    MAX_SCALE,
    GaussianPlan,
    LaplacePlan,
    NoisePlan,
    gaussian_plan,
    laplace_plan,
    scale_in_range,
)
from ..support import parameters
from ..support.boundary import quick_boundary
from ..support.checks import numbers_array, remembered
from ..support.rounding import down, lower, root_up, up, upper
from ..support.shown import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Required

    from typing_extensions import TypedDict, Unpack

    class LaplaceOptions(TypedDict, total=False):
        """What `laplace` takes by name, for the types of its results."""

        sensitivity: Required[float]
        epsilon: Required[float]
        resolution: float | None
        out: Values | None
        rng: Randomness | None
        budget: Budget | None
        neighbors: Neighbors

    class GaussianOptions(TypedDict, total=False):
        """What `gaussian` takes by name, for the types of its results."""

        sensitivity: Required[float]
        rho: float | None
        epsilon: float | None
        delta: float | None
        resolution: float | None
        out: Values | None
        rng: Randomness | None
        budget: Budget | None
        neighbors: Neighbors


@overload
def laplace(values: int | np.integer[Any], **options: Unpack[LaplaceOptions]) -> np.int64: ...
@overload
def laplace(values: float | np.floating[Any], **options: Unpack[LaplaceOptions]) -> np.float64: ...
@overload
def laplace(values: NDArray[np.integer[Any] | np.bool_], **options: Unpack[LaplaceOptions]) -> NDArray[np.int64]: ...
@overload
def laplace(values: NDArray[np.floating[Any]], **options: Unpack[LaplaceOptions]) -> NDArray[np.float64]: ...
@overload
def laplace(values: Sequence[int], **options: Unpack[LaplaceOptions]) -> NDArray[np.int64]: ...
@overload
def laplace(values: Sequence[float], **options: Unpack[LaplaceOptions]) -> NDArray[np.float64]: ...
@overload
def laplace(values: ArrayLike, **options: Unpack[LaplaceOptions]) -> Any: ...
@quick_boundary
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

    Integers get exact discrete Laplace noise, Pr[Z = z] proportional to exp(-|z| epsilon / sensitivity). Floats are
    rounded to a power-of-two grid and get noise on the grid.

    Parameters
    ----------
    values : array_like of int or float
        What is released: a number or an array of any shape.
    sensitivity : float > 0
        The L1 sensitivity: by how much one record may change all values together.
    epsilon : float > 0
        The privacy parameter.
    resolution : power of two, optional
        The grid of floats; by default the largest power of two at most min(sensitivity, sensitivity / epsilon) / (1024
        n), so that the rounding of n entries, which is charged to the sensitivity, adds a thousandth to the noise (more
        only where that grid would be finer than 2^-38 of the noise: n / epsilon beyond 2^28).
    out : numpy.ndarray, optional
        Takes the result; it may be `values` itself. It is left as it was if a parameter or a value is wrong; after an
        interrupt its content is undefined.
    rng : Randomness, optional
        Where the key comes from; by default the operating system. A seeded one is for tests.
    budget : Budget, optional
        The budget to charge; by default those whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation under which `sensitivity` holds.

    Returns
    -------
    numpy.ndarray or scalar
        int64 for integers, which saturates at its ends; float64 for floats; a scalar for a number. `out` where it is
        given.

    Raises
    ------
    ValueError
        "epsilon=-1.0: must be > 0 and finite".
    DomainError
        On NaN or an infinity among `values`.
    BudgetExceeded
        Where the budget has no room; nothing is drawn then.

    Notes
    -----
    Guarantee    epsilon-DP, for any values whose L1 sensitivity is at most `sensitivity`
    Proof        noise.md, theorems 1 and 3
    Accuracy     each entry is within (sensitivity / epsilon) ln(1 / beta), and two units of the grid, with probability
                 1 - beta; a thousandth more for floats; `bounds.laplace`
    Cost         O(n), about 2 ns an entry; the same whatever the values are
    Not covered  what the caller's sensitivity claims; the time that converting `values` to an array takes

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> counts = np.array([120, 64, 0, 311])  # each person is counted once
    >>> noisy = fastdp.laplace(counts, sensitivity=2, epsilon=0.5)  # replacing one person moves two counts
    >>> noisy.dtype, noisy.shape
    (dtype('int64'), (4,))
    >>> fastdp.laplace(2.5, sensitivity=1.0, epsilon=1.0).dtype
    dtype('float64')
    """
    array = numbers_array("values", values)
    noise = laplace_noise(array.dtype.kind == "i", array.size, sensitivity, epsilon, resolution, neighbors)
    return _released("laplace", array, noise, out, rng, budget)


@overload
def gaussian(values: int | np.integer[Any], **options: Unpack[GaussianOptions]) -> np.int64: ...
@overload
def gaussian(values: float | np.floating[Any], **options: Unpack[GaussianOptions]) -> np.float64: ...
@overload
def gaussian(values: NDArray[np.integer[Any] | np.bool_], **options: Unpack[GaussianOptions]) -> NDArray[np.int64]: ...
@overload
def gaussian(values: NDArray[np.floating[Any]], **options: Unpack[GaussianOptions]) -> NDArray[np.float64]: ...
@overload
def gaussian(values: Sequence[int], **options: Unpack[GaussianOptions]) -> NDArray[np.int64]: ...
@overload
def gaussian(values: Sequence[float], **options: Unpack[GaussianOptions]) -> NDArray[np.float64]: ...
@overload
def gaussian(values: ArrayLike, **options: Unpack[GaussianOptions]) -> Any: ...
@quick_boundary
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

    Integers get exact discrete Gaussian noise, Pr[Z = z] proportional to exp(-z^2 / (2 sigma^2)). Floats are rounded to
    a power-of-two grid and get noise on the grid.

    Parameters
    ----------
    values : array_like of int or float
        What is released: a number or an array of any shape.
    sensitivity : float > 0
        The L2 sensitivity: by how much one record may move the vector of all values.
    rho : float > 0, optional
        The parameter of zero-concentrated DP; or else epsilon and delta.
    epsilon : float > 0, optional
        The epsilon at `delta`.
    delta : float in (0, 1), optional
        The delta at `epsilon`.
    resolution : power of two, optional
        The grid of floats; by default the largest power of two at most min(sensitivity, sigma) / (1024 sqrt(n)),
        charged as in `laplace`.
    out : numpy.ndarray, optional
        Takes the result; it may be `values` itself. It is left as it was if a parameter or a value is wrong; after an
        interrupt its content is undefined.
    rng : Randomness, optional
        Where the key comes from; by default the operating system. A seeded one is for tests.
    budget : Budget, optional
        The budget to charge; by default those whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation under which `sensitivity` holds.

    Returns
    -------
    numpy.ndarray or scalar
        int64 for integers, which saturates at its ends; float64 for floats; a scalar for a number. `out` where it is
        given.

    Raises
    ------
    ValueError
        "rho=0: must be > 0 and finite".
    DomainError
        On NaN or an infinity among `values`.
    BudgetExceeded
        Where the budget has no room; nothing is drawn then.

    Notes
    -----
    Guarantee    rho-zCDP, or (epsilon, delta)-DP with the least sigma proven for vectors of any dimension, for any
                 values whose L2 sensitivity is at most `sensitivity`
    Proof        noise.md, theorems 2 and 3; calibration.md, theorems 2 and 3; discrete_gaussian.md
    Accuracy     each entry is within sigma sqrt(2 ln(2 / beta)), and a unit of the grid, with probability 1 - beta;
                 `bounds.gaussian`
    Cost         O(n), about 4 ns an entry; the same whatever the values are
    Not covered  what the caller's sensitivity claims; the time that converting `values` to an array takes

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> counts = np.array([120, 64, 0, 311])  # each person is counted once
    >>> noisy = fastdp.gaussian(counts, sensitivity=np.sqrt(2), epsilon=1.0, delta=1e-6)  # replacing one moves two
    >>> noisy.shape
    (4,)
    >>> fastdp.gaussian([0.5, 1.5], sensitivity=2.0, rho=0.1).dtype
    dtype('float64')
    """
    array = numbers_array("values", values)
    noise = gaussian_noise(array.dtype.kind == "i", array.size, sensitivity, rho, epsilon, delta, resolution, neighbors)
    return _released("gaussian", array, noise, out, rng, budget)


# --- parameters, checked, and the noise that follows from them


class CalibratedNoise(NamedTuple):
    """The noise of a release: where it lies, its law, what it guarantees, and what the row of a budget has of it."""

    grid: float | None  # of floats; None for integers
    plan: NoisePlan
    guarantee: Guarantee
    parameters: Mapping[str, float]
    few: FewDraws


@remembered
def laplace_noise(
    integers: bool,
    n: int,
    sensitivity: float,
    epsilon: float,
    resolution: float | None,
    neighbors: Neighbors = "replace-one",
) -> CalibratedNoise:
    """The noise of `laplace` for n values."""
    sensitivity, epsilon = parameters.sensitivity(sensitivity), parameters.epsilon(epsilon)
    grid: float | None = None
    if integers:
        _no_resolution(resolution)
        plan, moved = _laplace_for_integers(sensitivity, epsilon), int(upper(sensitivity))
    else:
        grid, plan = _laplace_for_floats(sensitivity, epsilon, parameters.resolution(resolution), n)
        moved = _l1_on_grid(sensitivity, grid, n)
    row = RowParameters({"sensitivity": sensitivity, "epsilon": epsilon})
    guarantee = PureDP(epsilon, neighbors=neighbors)
    if moved:  # in one coordinate or in many: loss_distributions.md, theorem 6
        guarantee = with_profile(guarantee, DiscreteLaplace(plan.scale, moved))
    return CalibratedNoise(grid, plan, guarantee, row, FewDraws(plan, grid))


@remembered
def gaussian_noise(
    integers: bool,
    n: int,
    sensitivity: float,
    rho: float | None,
    epsilon: float | None,
    delta: float | None,
    resolution: float | None,
    neighbors: Neighbors = "replace-one",
) -> CalibratedNoise:
    """The noise of `gaussian` for n values."""
    sensitivity, price = parameters.sensitivity(sensitivity), gaussian_price(rho, epsilon, delta)
    grid: float | None = None
    if integers:
        _no_resolution(resolution)
        plan, grid_sensitivity = _gaussian_for_integers(sensitivity, price, n), up(upper(sensitivity))
    else:
        grid, plan = _gaussian_for_floats(sensitivity, price, parameters.resolution(resolution), n)
        grid_sensitivity = _l2_on_grid(sensitivity, grid, n)
    differ = min(n, max(1, greatest_square(grid_sensitivity)))  # at most so many entries of two neighbours
    mu, few = gaussian_mu(grid_sensitivity, plan.sigma, differ), FewDraws(plan, grid)
    if price[1] is None:
        row = RowParameters({"sensitivity": sensitivity, "rho": price[0]})
        return CalibratedNoise(grid, plan, ZCDP(price[0], mu=mu, neighbors=neighbors), row, few)
    row = RowParameters({"sensitivity": sensitivity, "epsilon": price[0], "delta": price[1]})
    zcdp = ZCDP(up((Fraction(grid_sensitivity) / Fraction(plan.sigma)) ** 2 / 2), mu=mu, neighbors=neighbors)
    return CalibratedNoise(grid, plan, AllOf(ApproxDP(price[0], price[1], neighbors=neighbors), zcdp), row, few)


def gaussian_price(rho: float | None, epsilon: float | None, delta: float | None) -> Price:
    """What Gaussian noise is calibrated to: (rho, None), or (epsilon, delta)."""
    if rho is not None:
        if epsilon is not None or delta is not None:
            raise ValueError(f"rho={shown(rho)}: give either rho, or epsilon and delta")
        return parameters.rho(rho), None
    if epsilon is None or delta is None:
        raise ValueError(f"epsilon={shown(epsilon)}, delta={shown(delta)}: give both, or rho instead")
    price = parameters.epsilon(epsilon), parameters.delta(delta)
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value < SMALLEST:
            raise ValueError(f"{name}={shown(value)}: must be at least {SMALLEST:g} for Gaussian noise")
    if price[0] > MAX_EPSILON:
        raise ValueError(f"epsilon={shown(epsilon)}: must be at most {MAX_EPSILON:g}")
    return price


def _no_resolution(resolution: float | None) -> None:
    if resolution is not None:
        raise ValueError(f"resolution={shown(resolution)}: must be None for integers, whose grid is 1")


Price = tuple[float, float | None]  # (rho, None) or (epsilon, delta)


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
    scale = up(_l1_on_grid(sensitivity, grid, n) / lower(epsilon))
    return grid, laplace_plan(scale_in_range(scale, "(sensitivity / resolution + n) / epsilon"))


def _l1_on_grid(sensitivity: float, grid: float, n: int) -> int:
    """The L1 distance of two neighbours, in units of the grid: an integer, and at most sensitivity / grid + n."""
    return int(upper(sensitivity) / Fraction(grid)) + max(n, 1)


@lru_cache(1024)
def _gaussian_for_integers(sensitivity: float, price: Price, n: int) -> GaussianPlan:
    return gaussian_plan(scale_in_range(_sigma(sensitivity, price, n), "sigma"))


@lru_cache(1024)
def _gaussian_for_floats(
    sensitivity: float, price: Price, resolution: float | None, n: int
) -> tuple[float, GaussianPlan]:
    n = max(n, 1)
    root = isqrt(n - 1) + 1
    if resolution is None:
        sigma = _sigma(1.0, price, n, any_grid=True) * sensitivity
        resolution = max(power_below(min(sensitivity, sigma) / (1024 * root)), power_below(sigma) * 2.0**-38)
    grid = usable_grid(resolution, sensitivity)
    grid_sensitivity = _l2_on_grid(sensitivity, grid, n)
    return grid, gaussian_plan(scale_in_range(_sigma(grid_sensitivity, price, n), "sigma in units of the resolution"))


def _l2_on_grid(sensitivity: float, grid: float, n: int) -> float:
    """The L2 distance of two neighbours, in units of the grid, is at most sensitivity / grid + sqrt(n)."""
    return nextafter(sensitivity / grid + root_up(n), inf)


def _sigma(sensitivity: float, price: Price, n: int, *, any_grid: bool = False) -> float:
    """The least sigma proven, in units of the grid; with `any_grid` one that does not go by what integers can be."""
    epsilon, delta = price
    sensitivity = up(upper(sensitivity))
    if delta is None:
        return zcdp_sigma(sensitivity, rho=down(lower(epsilon)))
    epsilon, delta = down(lower(epsilon)), down(lower(delta))
    return gaussian_sigma(sensitivity, epsilon=epsilon, delta=delta, dimension=n, adaptive=any_grid)


def power_below(x: float) -> float:
    """The largest power of two at most x."""
    return ldexp(0.5, frexp(x)[1])


def usable_grid(grid: float, sensitivity: float) -> float:
    if not (2.0**-900 <= grid <= 2.0**900 and sensitivity >= 2.0**-900):
        raise ValueError(f"sensitivity={sensitivity!r}: the grid of the noise, {grid!r}, leaves the range of float64")
    return grid


# --- releasing: call the kernel chunk by chunk, resolve exactly what it reports


def _released(
    mechanism: str,
    array: Values,
    noise: CalibratedNoise,
    out: Values | None,
    rng: Randomness | None,
    budget: Budget | None,
) -> Any:
    """The release of values whose parameters have been checked."""
    few = out is None and array.size <= FEW
    if few and is_plain(budget, rng):
        return noise.few.release(array, secure_bytes)
    with ChargedKeys(mechanism, noise.guarantee, noise.parameters, budget, rng) as keys:
        array = keys.reads(array, noise.plan, noise.grid or 1)
        if few:
            return noise.few.release(array, keys.take_bytes)
        return release(array, noise.grid, noise.plan, keys.take, out)


def release(
    array: Values,
    grid: float | None,
    plan: NoisePlan,
    take_key: Callable[[], NDArray[np.uint32]],
    out: Values | None = None,
) -> Any:
    """Add noise by the plan; parameters have been checked.

    `take_key` gives the key, and makes the charge final if there is one. It is called right before the first draw.
    """
    plain = None if out is None else _checked_out(array, out)
    flat = array if array.ndim == 1 else array.reshape(-1)
    if grid is not None:
        check_finite(flat)  # all of it, before a key is asked for, an entry written, a charge final
    if plain is None or not (plain.flags.c_contiguous and (out is array or not np.may_share_memory(plain, array))):
        target = cast("Values", np.empty(array.shape, array.dtype))
    else:
        target = plain
    key = take_key()
    add_noise(plan, grid, key, flat, target if target.ndim == 1 else target.reshape(-1))
    if plain is None:
        return target if target.ndim else target[()]
    if target is not plain:
        plain[...] = target
    return out


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
