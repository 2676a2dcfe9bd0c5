"""Measurements that add noise."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import floor, inf, isqrt, ldexp
from typing import Any

import numpy as np

from ...mechanisms.noise import power_below, release, usable_grid
from ...randomness.keys import Randomness, fresh_key
from ...randomness.noise_plans import NoisePlan, gaussian_plan, laplace_plan, scale_in_range
from ...support.checks import positive
from ...support.rounding import up
from ...support.shown import shown
from .inputs import InputDomain, check_metric, input_distance
from .library import need_opendp

_PER_SCALE = 20  # the default grid: the rounding of all entries together adds at most 2^-20 to epsilon


def make_laplace(
    input_domain: Any, input_metric: Any, scale: float, *, k: int | None = None, rng: Randomness | None = None
) -> Any:
    """An OpenDP `Measurement` that adds Laplace noise to a number, a vector or a numpy array.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        atom_domain, vector_domain(atom_domain), or `array_domain` for numpy arrays.
    input_metric : opendp.mod.Metric
        absolute_distance for a number, l1_distance for the others.
    scale : float > 0
        The scale of the noise.
    k : int, optional
        Of floats: the noise lives on the grid 2^k. By default the grid is so fine that rounding adds at most 2^-20 to
        epsilon; the domain must have a size, as the rounding of each entry is charged.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.

    Returns
    -------
    opendp.mod.Measurement
        The measurement.

    Raises
    ------
    ValueError
        "scale=0: must be > 0 and finite".
    OpenDPException
        OpenDP's features "contrib" and "honest-but-curious" are not enabled.

    Notes
    -----
    Guarantee    max_divergence; map(d_in) = d_in / scale for integers, (floor(d_in / 2^k) + n) 2^k / scale for floats,
                 rounded up to float64.
    Proof        mechanisms/noise.md, theorems 1 and 3.
    """
    dp, domain = need_opendp(), InputDomain.of(input_domain)
    check_metric(input_metric, domain, "L1Distance")
    plan, grid = _plan(scale, k, domain, laplace_plan, root=False)
    unit, noisy_scale = _rational(grid), Fraction(plan.scale)

    def privacy_map(d_in: float) -> float:
        # the L1 distance on the grid is an integer; OpenDP charges the same n, of a distance not rounded down
        distance = Fraction(floor(input_distance(d_in) / unit) + (domain.size or 0)) if grid else input_distance(d_in)
        return up(distance / noisy_scale)

    return _noisy(dp, input_domain, input_metric, dp.max_divergence(), domain, plan, grid, privacy_map, rng)


def make_gaussian(
    input_domain: Any, input_metric: Any, scale: float, *, k: int | None = None, rng: Randomness | None = None
) -> Any:
    """An OpenDP `Measurement` that adds Gaussian noise to a number, a vector or a numpy array.

    Parameters
    ----------
    input_domain : opendp.mod.Domain
        atom_domain, vector_domain(atom_domain), or `array_domain` for numpy arrays.
    input_metric : opendp.mod.Metric
        absolute_distance for a number, l2_distance for the others.
    scale : float > 0
        The standard deviation of the noise.
    k : int, optional
        Of floats: the noise lives on the grid 2^k. By default the grid is so fine that rounding adds at most 2^-20 to
        epsilon; the domain must have a size, as the rounding of each entry is charged.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.

    Returns
    -------
    opendp.mod.Measurement
        The measurement.

    Raises
    ------
    ValueError
        "scale=0: must be > 0 and finite".
    OpenDPException
        OpenDP's features "contrib" and "honest-but-curious" are not enabled.

    Notes
    -----
    Guarantee    zero_concentrated_divergence; map(d_in) = (d / scale)^2 / 2, where d is d_in for integers and
                 d_in + 2^k sqrt(n) for floats, rounded up to float64.
    Proof        mechanisms/noise.md, theorems 2 and 3; privacy/calibration.md, theorem 1.
    """
    dp, domain = need_opendp(), InputDomain.of(input_domain)
    check_metric(input_metric, domain, "L2Distance")
    plan, grid = _plan(scale, k, domain, gaussian_plan, root=True)
    unit, sigma = _rational(grid), Fraction(plan.sigma)
    rounding = _root_up(domain.size or 0) if grid else Fraction(0)

    def privacy_map(d_in: float) -> float:
        return up(((input_distance(d_in) / unit + rounding) / sigma) ** 2 / 2)

    measure = dp.zero_concentrated_divergence()
    return _noisy(dp, input_domain, input_metric, measure, domain, plan, grid, privacy_map, rng)


def _plan(scale: float, k: int | None, domain: InputDomain, make: Callable[[float], Any], *, root: bool) -> Any:
    """The plan of the noise in units of its grid, and the grid (None for integers, whose grid is 1)."""
    scale = positive("scale", scale, toward=inf)
    if domain.dtype.kind in "iu":
        if k is not None:
            raise ValueError(f"k={shown(k)}: must be None for integers, whose grid is 1")
        return make(scale_in_range(scale, "scale")), None
    if domain.size is None:
        raise ValueError(
            "input_domain: must have a size, as the rounding of each float is charged: vector_domain(..., size=n), or "
            "array_domain('f64', n)"
        )
    if k is None:
        share = ldexp(1.0, -_PER_SCALE) / max(1, isqrt(domain.size - 1) + 1 if root and domain.size else domain.size)
        grid = max(power_below(scale * share), power_below(scale) * 2.0**-38)
    else:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not -900 <= k <= 900:
            raise ValueError(f"k={shown(k)}: must be an integer from -900 to 900, for the grid 2^k")
        grid = ldexp(1.0, int(k))
    grid = usable_grid(grid, scale)
    return make(scale_in_range(scale / grid, "scale / 2^k")), grid


def _noisy(
    dp: Any,
    input_domain: Any,
    input_metric: Any,
    measure: Any,
    domain: InputDomain,
    plan: NoisePlan,
    grid: float | None,
    privacy_map: Callable[[float], float],
    rng: Randomness | None,
) -> Any:
    def function(arg: Any) -> Any:
        return domain.write(release(domain.read(arg), grid, plan, partial(fresh_key, rng)))

    return dp.make_user_measurement(input_domain, input_metric, measure, function, privacy_map, domain.output_type)


def _rational(grid: float | None) -> Fraction:
    return Fraction(1 if grid is None else grid)


def _root_up(n: int) -> Fraction:
    """A rational >= sqrt(n), to 2^-64; exact for squares."""
    scaled = n << 128
    root = isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << 64)
