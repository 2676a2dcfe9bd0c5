"""The least sigma of discrete Gaussian noise, against sums over all outcomes for every shape of a shift."""

import math
import random
from fractions import Fraction

import mpmath
import pytest

import fastdp
from fastdp.mechanisms import noise
from fastdp.privacy import calibration
from fastdp.privacy import discrete_gaussian as discrete
from fastdp.privacy.discrete_gaussian import Shift
from tests.oracles.privacy import discrete_gaussian_delta

CASES = [(1.0, 1e-2), (1.0, 1e-6), (0.3, 0.05), (3.0, 1e-6), (5.0, 1e-9), (10.0, 1e-6), (0.01, 0.3)]


def shapes(square, largest=None):
    """All vectors of positive, falling integers of this squared length."""
    if not square:
        yield ()
        return
    for first in range(min(largest or square, math.isqrt(square)), 0, -1):
        for rest in shapes(square - first * first, first):
            yield (first, *rest)


def all_shapes(greatest, dimension):
    return [v for m in range(1, greatest + 1) for v in shapes(m) if len(v) <= dimension]


def sigma_of(greatest, epsilon, delta, dimension):
    return calibration.gaussian_sigma(math.sqrt(greatest), epsilon=epsilon, delta=delta, dimension=dimension)


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_scalars_have_the_least_sigma(epsilon, delta, k):
    sigma = calibration.gaussian_sigma(float(k), epsilon=epsilon, delta=delta, dimension=1)
    for shift in range(1, k + 1):
        assert discrete_gaussian_delta(sigma, epsilon, (shift,)) <= delta
    for part in (0.999, 0.995, 0.98, 0.9, 0.7):
        assert discrete_gaussian_delta(sigma * part, epsilon, (k,)) > delta, part


@pytest.mark.parametrize(("epsilon", "delta"), CASES)
@pytest.mark.parametrize("greatest", [1, 2, 3, 5, 8])
def test_vectors_keep_delta_for_every_shape_and_are_within_one_percent(epsilon, delta, greatest):
    sigma = sigma_of(greatest, epsilon, delta, 10**6)
    assert sigma == sigma_of(greatest, epsilon, delta, greatest), "no more coordinates differ"
    every = all_shapes(greatest, greatest)[::-1]
    assert all(discrete_gaussian_delta(sigma, epsilon, v) <= delta for v in every)
    for part in (0.99, 0.95, 0.9, 0.7):
        assert any(discrete_gaussian_delta(sigma * part, epsilon, v) > delta for v in every), part


def test_one_unit_of_sensitivity_costs_a_vector_what_it_costs_a_scalar():
    for epsilon, delta in CASES:
        assert sigma_of(1, epsilon, delta, 10**6) == sigma_of(1, epsilon, delta, 1)
    assert sigma_of(1, 1.0, 0.01, 10**6) == pytest.approx(1.854, abs=5e-4)
    assert sigma_of(1, 1.0, 1e-6, 1) == pytest.approx(4.231, abs=5e-4)


@pytest.mark.parametrize("sigma", [0.25, 0.4, 0.7, 1.0, 1.8, 4.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0, 4.0, 9.0])
def test_the_bound_of_theorem_2_for_every_shape(sigma, epsilon):
    without = 0
    for v in all_shapes(9, 9):
        step = math.gcd(*v)
        shift = Shift(sum(x * x for x in v) // step**2, step)
        exact = Fraction(str(discrete_gaussian_delta(sigma, epsilon, v)))
        bound = Fraction(discrete.delta_above(sigma, epsilon, shift, len(v)))
        assert exact <= bound * (1 + Fraction(1, 10**14)), "printed with 15 digits"
        theta = shift.smoothness(sigma, len(v))
        if theta < 0.5 and exact > 1e-40:  # nor is it much above
            norm = 1 + 2.1 * math.exp(-2 * math.pi**2 * sigma**2)  # of one coordinate, over sigma sqrt(2 pi)
            assert bound <= exact * Fraction((1 + theta) / (1 - theta) * norm ** len(v) * (1 + 1e-14))
        without += exact > bound / Fraction(1 + theta)
    if sigma == 0.4:
        assert without, "without theta it is no bound"


def test_the_projections_of_theorem_2_are_counted_from_above():
    """theta, for a few primitive vectors, against the sum over the projected lattice itself."""
    for v in [(1, 1), (2, 1), (3, 1), (3, 2), (1, 1, 1), (2, 1, 1), (3, 2, 1), (1, 1, 1, 1), (2, 2, 1)]:
        square = sum(x * x for x in v)
        for r in (0.4, 0.5, 0.7, 1.0):
            q = math.exp(-2 * math.pi**2 * r * r)
            span = range(-6, 7)
            seen = {}
            for point in _points(span, len(v)):
                cross = tuple(point[0] * b - a * v[0] for a, b in zip(point[1:], v[1:], strict=True))
                norm = square * sum(x * x for x in point) - sum(a * b for a, b in zip(point, v, strict=True)) ** 2
                seen[cross] = norm
            exact = math.fsum(q**norm for norm in seen.values() if norm)
            assert exact <= Shift(square, 1).smoothness(r * math.sqrt(square), len(v)) * (1 + 1e-8)


def _points(span, n):
    if n == 1:
        return [(x,) for x in span]
    return [(x, *rest) for x in span for rest in _points(span, n - 1)]


def test_a_sensitivity_that_is_meant_as_a_root_counts_as_that_root():
    for k in range(1, 3000):
        for root in (math.sqrt(k), math.nextafter(math.sqrt(k), 0), float(mpmath.sqrt(k)), k**0.5):
            assert discrete.greatest_square(root) == k
    assert discrete.greatest_square(math.sqrt(3) * (1 - 1e-9)) == 2
    assert discrete.greatest_square(0.9999) == 0


def test_a_sensitivity_below_one_gets_no_less_noise_than_before():
    """No two integers are that close: what is said of them is taken as it is said, not as leave for no noise."""
    for sensitivity in (0.5, 0.99):
        sigma = calibration.gaussian_sigma(sensitivity, epsilon=1.0, delta=1e-6, dimension=1)
        assert sigma >= sensitivity * calibration.gaussian_ratio(1.0, 1e-6)


def test_adaptive_parts_get_the_noise_of_theorems_2_and_3():
    for greatest in (1, 2, 5):
        options = {"epsilon": 1.0, "delta": 1e-2, "dimension": 40}
        adaptive = calibration.gaussian_sigma(math.sqrt(greatest), **options, adaptive=True)
        assert adaptive > calibration.gaussian_sigma(math.sqrt(greatest), **options)


def test_any_parameters_give_a_sigma_and_never_a_larger_one():
    """Large epsilons among them, where theta leaves float64."""
    draw = random.Random(5)
    for _ in range(60):
        epsilon, delta = 10 ** draw.uniform(-3, 2.8), draw.choice([10 ** draw.uniform(-60, -0.1), 0.999])
        norm = draw.choice([1.0, math.sqrt(draw.randint(1, 1200)), draw.uniform(0.3, 40)])
        options = {"epsilon": epsilon, "delta": delta, "dimension": draw.choice([1, 2, 10, 10**6])}
        sigma = calibration.gaussian_sigma(norm, **options)
        assert 0 < sigma <= calibration.gaussian_sigma(norm, **options, adaptive=True)


def test_the_integral_and_a_step_bound_the_sum():
    for sigma in (0.5, 1.3, 4.0):
        for epsilon in (0.01, 1.0, 6.0):
            for square in range(1, 12):
                for step in (1, 2, 3):
                    shift = Shift(square, step)
                    rough = discrete._nearly_at_most(sigma, epsilon, shift, 100)
                    fine = discrete._nearly(sigma, epsilon, shift, 100)
                    exact = float(discrete.delta_above(sigma, epsilon, shift, 100))
                    assert fine == pytest.approx(exact, rel=1e-9, abs=1e-100)
                    if square > 1 or sigma > 1:
                        assert rough >= exact * (1 - 1e-9)


def test_releases_have_the_least_sigma_and_what_they_report_follows():
    with fastdp.Budget(epsilon=3, delta=0.1) as budget:
        fastdp.gaussian([5, 7, 9], sensitivity=1, epsilon=1.0, delta=0.01)
    guarantee = budget.releases[0].guarantee
    sigma = Fraction(sigma_of(1, 1.0, 0.01, 3))
    assert guarantee.to_zcdp().rho == pytest.approx(float(1 / (2 * sigma**2)), rel=1e-15)
    assert guarantee.implies(fastdp.ApproxDP(1.0, 0.01))


def test_error_bounds_hold_for_floats_as_well():
    """The noise on a fine grid is larger than that on integers where these move by whole units."""
    for epsilon, sensitivity in ((1.0, math.sqrt(2)), (10.0, 1.0), (0.5, 1.9)):
        options = {"epsilon": epsilon, "delta": 1e-6}
        fine = calibration.gaussian_ratio(**options) * sensitivity
        bound = fastdp.bounds.gaussian(sensitivity=sensitivity, beta=0.05, **options)
        assert bound >= fine * math.sqrt(2 * math.log(40))


def test_the_grid_of_floats_does_not_go_by_what_integers_can_be():
    wide, _ = noise._gaussian_for_floats(1.0, (30.0, 1e-6), None, 1)
    assert wide == noise.power_below(calibration.gaussian_ratio(30.0, 1e-6) / 1024)
