"""The laws of the noise against mpmath, against each other and against their sums."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tests.oracles import noise
from tests.oracles.enclosures import holds, mp, width

SCALES = [Fraction(1, 5), Fraction(7, 10), Fraction(3), 37.25, 1000.0]


@pytest.mark.parametrize("s", SCALES)
def test_laplace_and_geometric_laws(s):
    bits = 96
    with mpmath.workprec(200):
        q = mpmath.exp(-1 / mp(Fraction(s)))
        for k in (0, 1, 2, 5, 40):
            assert holds(noise.geometric_tail(k, s, bits), q**k)
            assert holds(noise.geometric_pmf(k, s, bits), (1 - q) * q**k)
            assert holds(noise.laplace_tail(k + 1, s, bits), q ** (k + 1) / (1 + q))
            assert holds(noise.laplace_tail(-k, s, bits), 1 - q ** (k + 1) / (1 + q))
            assert holds(noise.laplace_pmf(-k, s, bits), q**k * (1 - q) / (1 + q))
            for interval in (
                noise.geometric_pmf(k, s, bits),
                noise.laplace_tail(k, s, bits),
                noise.laplace_pmf(k, s, bits),
            ):
                assert width(interval) <= Fraction(1, 2**bits)
    window = 30
    mass = [noise.laplace_pmf(z, s) for z in range(-window, window + 1)]
    beyond = noise.laplace_tail(window + 1, s)
    assert sum(lo for lo, _ in mass) + 2 * beyond[0] < 1 < sum(hi for _, hi in mass) + 2 * beyond[1]
    assert noise.geometric_pmf(-1, s) == (0, 0)
    assert noise.geometric_tail(-3, s) == (1, 1)


@pytest.mark.parametrize("sigma", [0.125, 0.3, 0.99, 1.0, 1.5, 4.0, 11.25])
def test_gaussian_pmf_sums_to_one(sigma):
    window = math.ceil(12 * sigma) + 4
    mass = [noise.gaussian_pmf(z, sigma) for z in range(-window, window + 1)]
    assert all(width(interval) <= Fraction(1, 2**96) for interval in mass)
    assert sum(lo for lo, _ in mass) < 1 < sum(hi for _, hi in mass) + Fraction(1, 2**80)
    assert 1 - sum(lo for lo, _ in mass) < Fraction(1, 2**80)


@pytest.mark.parametrize("sigma", [2.0**-5, 0.125, 0.9375, 1.0, 3.0, 1000.0, 2.0**40])
def test_gaussian_normaliser(sigma):
    normaliser = noise.gaussian_normaliser(sigma, 120)
    assert width(normaliser) <= Fraction(1, 2**120)
    with mpmath.workprec(250):
        if sigma < 100:
            assert holds(normaliser, mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2))))
        else:
            assert holds(normaliser, sigma * mpmath.sqrt(2 * mpmath.pi))


@pytest.mark.parametrize("s", [*SCALES, 2.0**-6, 2.0**30, 2.0**40])
def test_cdfs_of_laplace_and_geometric(s):
    scale = max(1, round(s))
    points = np.array([-5 * scale, -scale, -2, -1, 0, 1, 2, scale, 5 * scale, 33 * scale])
    lo, hi = noise.laplace_law(s).cdf(points)
    geometric_lo, geometric_hi = noise.geometric_law(s).cdf(points)
    assert np.all(hi - lo <= 2.01 * noise.CDF_ERROR)
    for i, z in enumerate(points.tolist()):
        below, above = noise.laplace_tail(z + 1, s)
        assert lo[i] <= 1 - above
        assert 1 - below <= hi[i]
        below, above = noise.geometric_tail(z + 1, s)
        assert geometric_lo[i] <= 1 - above
        assert 1 - below <= geometric_hi[i]


@pytest.mark.parametrize("sigma", [2.0**-3, 0.5, 1.0, 3.75, 17.0])
def test_gaussian_cdf_by_sum(sigma):
    window = math.ceil(8 * sigma) + 2
    lo, hi = noise.gaussian_law(sigma).cdf(np.arange(-window, window + 1))
    partial_lo = partial_hi = Fraction(0)
    for i, z in enumerate(range(-window, window + 1)):
        below, above = noise.gaussian_pmf(z, sigma)
        partial_lo, partial_hi = partial_lo + below, partial_hi + above
        assert lo[i] <= partial_hi + Fraction(1, 2**40)
        assert float(partial_lo) <= hi[i]
        assert hi[i] - lo[i] <= 2.01 * noise.CDF_ERROR
        assert abs((lo[i] + hi[i]) / 2 - float(partial_lo)) <= noise.CDF_ERROR


@pytest.mark.parametrize("sigma", [64.0, 90.5])
def test_gaussian_cdf_by_integral_agrees_with_the_sum(sigma):
    points = np.arange(-6 * int(sigma), 6 * int(sigma), 7)
    exact = np.mean(noise._gaussian_cdf_by_sum(sigma)(points), axis=0)
    smooth = np.mean(noise._gaussian_cdf_by_integral(sigma)(points), axis=0)
    assert np.max(np.abs(exact - smooth)) < noise.CDF_ERROR / 3


@pytest.mark.parametrize("sigma", [2.0**12, 2.0**20, 2.0**40])
def test_gaussian_cdf_at_large_scale(sigma):
    law = noise.gaussian_law(sigma)
    with mpmath.workprec(120):
        for u in (-6, -2, -0.3, 0, 0.7, 1, 5):
            z = math.floor(u * sigma)
            x = (z + mpmath.mpf(1) / 2) / sigma
            density = mpmath.npdf(x)
            value = mpmath.ncdf(x) + x * density / (24 * sigma**2) - 7 * (x**3 - 3 * x) * density / (5760 * sigma**4)
            lo, hi = law.cdf(np.array([z]))
            assert lo[0] <= value <= hi[0]
    # one cell's probability, by certified pmf against differences of the distribution function
    z = np.array([0, 1, int(sigma)])
    mass = [float(noise.gaussian_pmf(int(k), sigma)[0]) for k in z]
    assert np.allclose(np.mean(law.cdf(z), axis=0) - np.mean(law.cdf(z - 1), axis=0), mass, atol=1e-13, rtol=0)


def test_finite_law():
    law = noise.finite_law([Fraction(1, 3), 0, Fraction(2, 3)])
    assert np.array_equal(law.cdf(np.array([-1, 0, 1, 2, 3]))[0], [0, 1 / 3, 1 / 3, 1, 1])
    with pytest.raises(ValueError, match="must be 1"):
        noise.finite_law([0.5, 0.4])
