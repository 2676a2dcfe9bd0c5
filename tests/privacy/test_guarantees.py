"""Guarantees: values, curves, conversions and composition, against arithmetic of 100 digits, direct sums and integrals,
brute force, exact small instances, and dp-accounting."""

import copy
import dataclasses
import decimal
import html
import itertools
import logging
import math
import pickle
import random
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import fastdp
from fastdp import ZCDP, AllOf, ApproxDP, BoundedRange, Budget, GaussianDP, PureDP, Renyi, compose
from fastdp.privacy import (
    ORDERS,
    composition,
    conversions,
    curves,
    epsilon_of_curve,
    epsilon_of_rho,
    epsilon_of_rho_simply,
    share,
)
from fastdp.privacy import guarantees as kinds
from fastdp.privacy.composition import THEOREMS
from fastdp.privacy.curves import LARGE, SMALL
from tests.oracles.loss_distributions import epsilon_of_rounded_up, laplace_losses, response_losses
from tests.oracles.privacy import pure_rho, range_rho

DIGITS = 130

AR = {"neighbors": "add-remove"}

# tiny ones around the place where curves change their formula, ordinary ones, and large ones
EPSILONS = [1e-40, 1e-12, SMALL / 1.001, SMALL, 1.001 * SMALL, 1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0, 700.0, 999.0, 1001.0]
SOME_ORDERS = [0, 20, 60, 84, 95, 112, 150, 200, 252]


@pytest.fixture(autouse=True)
def _digits():
    with mpmath.workdps(DIGITS):
        yield


# --- the formulas again, plainly and in many digits


def pure_divergence(a, e):
    """Randomised response: (ln(e^(a e) + e^((1-a) e)) - ln(1 + e^e)) / (a - 1)."""
    a, e = mpf(a), mpf(e)
    return (mpmath.log(mpmath.exp(a * e) + mpmath.exp((1 - a) * e)) - mpmath.log(1 + mpmath.exp(e))) / (a - 1)


def two_point_divergence(a, eta, t):
    """The pair with log-likelihood ratios t and t - eta."""
    a, eta, t = mpf(a), mpf(eta), mpf(t)
    w = (mpmath.exp(-t) - mpmath.exp(-eta)) / (1 - mpmath.exp(-eta))
    return mpmath.log(w * mpmath.exp(a * t) + (1 - w) * mpmath.exp(a * (t - eta))) / (a - 1)


def worst(function, low, high, steps=120):
    """The greatest value of a unimodal function, by thirds; from below."""
    best = max(function(low), function(high))
    for _ in range(steps):
        left, right = low + (high - low) * mpf("0.382"), low + (high - low) * mpf("0.618")
        at_left, at_right = function(left), function(right)
        best = max(best, at_left, at_right)
        low, high = (left, high) if at_left < at_right else (low, right)
    return best


def range_divergence(a, eta):
    return worst(lambda t: two_point_divergence(a, eta, t), mpf(0), mpf(eta))


def laplace_divergence(a, shift):
    """Three exponential integrals: left of both centres, between them, right of both."""
    a, s = mpf(a), mpf(shift)
    between = (mpmath.exp((a - 1) * s) - mpmath.exp(-a * s)) / (2 * (2 * a - 1))
    return mpmath.log(mpmath.exp((a - 1) * s) / 2 + mpmath.exp(-a * s) / 2 + between) / (a - 1)


def discrete_laplace_divergence(a, scale, shift):
    """Three geometric sums: left of both centres, between them, right of both."""
    a, q = mpf(a), mpmath.exp(-1 / mpf(scale))
    tail = 1 / (1 - q)
    between = mpmath.fsum(q ** (a * z + (1 - a) * (shift - z)) for z in range(1, shift))
    total = q ** ((1 - a) * shift) * tail + q ** (a * shift) * tail + between
    return mpmath.log((1 - q) / (1 + q) * total) / (a - 1)


def converted(a, divergence, delta):
    """The epsilon of one order: delta = exp((a-1)(R - epsilon)) (1 - 1/a)^a / (a-1), solved for epsilon."""
    a = mpf(a)
    return divergence + (a * mpmath.log(1 - 1 / a) - mpmath.log(a - 1) - mpmath.log(mpf(delta))) / (a - 1)


def close_above(found, truth, relative=1e-12, absolute=1e-45):
    """Never below, hardly above."""
    assert found >= truth
    assert found <= truth * (1 + mpf(relative)) + absolute


def curve_of(guarantee):
    return guarantee.to_renyi().curve


# --- curves


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_curve_of_pure_dp_is_that_of_randomised_response(epsilon):
    for found, a in zip(curve_of(PureDP(epsilon)), ORDERS, strict=True):
        truth = pure_divergence(a, epsilon)
        below_small = (a * epsilon) ** 2 + epsilon if epsilon < SMALL else 0.0  # there it is a epsilon^2 / 2
        close_above(found, truth, 1e-12 + below_small)


@pytest.mark.parametrize("eta", EPSILONS)
def test_the_curve_of_bounded_range_is_the_worst_two_point_pair(eta):
    curve = curve_of(BoundedRange(eta))
    # below SMALL it is a eta^2 / 8, above LARGE it is eta
    for i in SOME_ORDERS:
        elsewhere = (ORDERS[i] * eta) ** 2 + eta if eta < SMALL else 0.01 if eta > LARGE else 0.0
        close_above(curve[i], range_divergence(ORDERS[i], eta), 1e-10 + elsewhere)


@pytest.mark.parametrize("shift", EPSILONS)
def test_the_curve_of_laplace_noise_is_the_integral(shift):
    curve = curve_of(Renyi.laplace(1.0, sensitivity=shift))
    for found, a in zip(curve, ORDERS, strict=True):
        below_small = (a * shift) ** 2 + shift if shift < SMALL else 0.0
        close_above(found, laplace_divergence(a, shift), 1e-12 + below_small)


@pytest.mark.parametrize(
    ("scale", "shift"),
    [(1.0, 1), (0.02, 1), (0.3, 2), (1.7, 1), (2.5, 7), (10.0, 3), (3.0, 60), (2.0**20, 1), (1e6, 5)],
)
def test_the_curve_of_discrete_laplace_noise_is_the_sum(scale, shift):
    curve = curve_of(Renyi.discrete_laplace(scale, sensitivity=shift))
    for i in range(0, len(ORDERS), 4):
        close_above(curve[i], discrete_laplace_divergence(ORDERS[i], scale, shift), 1e-12)


def test_the_integral_and_the_sums_of_the_oracles_are_those_of_the_definition():
    """A check of the checks: quadrature of p^a q^(1-a), and plain sums over a window."""
    with mpmath.workdps(30):
        for a, s in [(1.5, 0.3), (2, 1), (6.25, 2)]:
            density = lambda x, a=a, s=s: mpmath.exp(-a * abs(x) - (1 - a) * abs(x - s)) / 2  # noqa: E731
            integral = mpmath.quad(density, [-60, -5, 0, s, 5, 60])
            assert abs(mpmath.log(integral) / (a - 1) - laplace_divergence(a, s)) < 1e-15
        for a, scale, shift in [(1.5, 1.0, 1), (2, 2.5, 7), (6.25, 0.7, 3), (40, 3.0, 2)]:
            q, n = mpmath.exp(-1 / mpf(scale)), int(100 * scale) + shift
            weight = [q ** (a * abs(z) + (1 - a) * abs(z - shift)) for z in range(-n, n + 1)]
            total = (1 - q) / (1 + q) * mpmath.fsum(weight)
            assert abs(mpmath.log(total) / (a - 1) - discrete_laplace_divergence(a, scale, shift)) < 1e-15


def test_no_random_distribution_of_bounded_range_exceeds_the_curve():
    draw = np.random.default_rng(11)
    orders = np.array(ORDERS)[::9]
    closest = 0.0
    for _ in range(400):
        eta, size = draw.choice([0.05, 0.5, 2.0, 6.0]), draw.integers(2, 6)
        q = draw.dirichlet(np.full(size, draw.choice([0.2, 1.0])))
        ratio = draw.choice([0.0, eta], size) if draw.random() < 0.5 else draw.uniform(0, eta, size)
        ratio -= math.log(np.sum(q * np.exp(ratio)))
        assert np.ptp(ratio) <= eta * (1 + 1e-12)
        bound = np.array(curve_of(BoundedRange(eta)))[::9]
        for p, log_ratio in ((q, ratio), (q * np.exp(ratio), -ratio)):
            with np.errstate(divide="ignore"):
                terms = np.log(p)[:, None] + orders * log_ratio[:, None]
            top = terms.max(axis=0)
            found = (top + np.log(np.exp(terms - top).sum(axis=0))) / (orders - 1)
            assert np.all(found <= bound + 1e-12 / (orders - 1))
            closest = max(closest, np.max(found / bound))
    assert closest > 0.99


def test_pure_dp_is_concentrated_as_stated_and_no_better():
    for epsilon in [e for e in EPSILONS if e >= SMALL]:
        e = mpf(epsilon)
        rho = PureDP(epsilon).to_zcdp().rho
        close_above(rho, e * mpmath.tanh(e / 2))
        assert all(value <= a * rho * (1 + 1e-12) for value, a in zip(curve_of(PureDP(epsilon)), ORDERS, strict=True))
        if epsilon <= 5:
            assert pure_divergence(mpf("1.00000001"), e) > rho * 0.9999


def test_bounded_range_is_concentrated_as_stated():
    for eta in (1e-12, SMALL, 0.01, 1.0, 4.0, 20.0, 700.0):
        rho = BoundedRange(eta).to_zcdp().rho
        close_above(rho, mpf(eta) ** 2 / 8 if eta < SMALL else mpf(str(range_rho(eta))))
        assert all(
            two_point_divergence(a, eta, mpf(eta) * t / 8) <= a * rho for a in (1.01, 2, 10) for t in range(1, 8)
        )
        assert rho <= eta**2 / 8 * (1 + 1e-15)
        assert rho <= PureDP(eta).to_zcdp().rho
    for eta in (SMALL, 0.01, 1.0, 4.0, 20.0):  # and no smaller rho follows: near order 1, at the worst interval
        least = worst(lambda t, eta=eta: two_point_divergence("1.0000001", eta, t), mpf(0), mpf(eta))
        assert (1 - 1e-5) * least <= BoundedRange(eta).to_zcdp().rho <= (1 + 1e-5) * least
    assert BoundedRange(1.0).to_zcdp().rho == pytest.approx(0.1233, abs=5e-5)
    assert BoundedRange(4.0).to_zcdp().rho == pytest.approx(1.670, abs=5e-4)


@pytest.mark.parametrize("rho", [1e-250, 1e-19, 1e-12, 1e-6, 0.1, 1.0, 5.0, 100.0, 499.0, 600.0])
def test_what_has_a_rho_is_found_from_below(rho):
    for back, exact in ((conversions.range_of_rho, range_rho), (conversions.pure_of_rho, pure_rho)):
        found = back(rho)
        if 1e-30 < rho < 600:
            assert exact(found) <= Decimal(rho) * (1 + Decimal("1e-18"))
        if 1e-30 < rho < LARGE / 2:  # beyond, it is enough that it is safe
            assert exact(found * (1 + 1e-14)) > Decimal(rho) * (1 - Decimal("1e-13"))
        assert found >= min(rho, (2 * rho) ** 0.5) * (1 - 1e-14)


def test_laplace_noise_costs_most_when_one_coordinate_takes_the_whole_shift():
    def curve(shift):
        return np.array(curve_of(Renyi.laplace(1.0, sensitivity=shift)))

    def steps(shift):
        return np.array(curve_of(Renyi.discrete_laplace(4.0, sensitivity=shift)))

    for first, second in [(0.1, 0.1), (0.5, 2.0), (3.0, 0.01)]:
        assert np.all(curve(first) + curve(second) <= curve(first + second) * (1 + 1e-12))
    for first, second in [(1, 1), (2, 5), (1, 30)]:
        assert np.all(steps(first) + steps(second) <= steps(first + second) * (1 + 1e-12))


def test_discrete_laplace_lies_above_the_continuous_curve_and_falls_to_it():
    continuous = curve_of(Renyi.laplace(1.0))
    curves = [curve_of(Renyi.discrete_laplace(float(n), sensitivity=n)) for n in (1, 2, 8, 1000, 10**12, 10**38)]
    for coarse, fine in itertools.pairwise([*curves, continuous]):
        assert all(a >= b * (1 - 1e-15) for a, b in zip(coarse, fine, strict=True))
    assert all(a > b * 1.05 for a, b in zip(curves[0][:100], continuous, strict=False))
    assert all(a <= b * (1 + 1e-15) + 1e-15 for a, b in zip(curves[-1], continuous, strict=True))
    assert curve_of(Renyi.discrete_laplace(1.0))[0] == pytest.approx(math.tanh(0.5), rel=1e-3)  # not 1 + e^-1 - 1


def test_gaussian_noise_is_linear_in_the_order():
    for sigma, sensitivity in [(1.0, 1.0), (0.3, 1.0), (7.7, 2.1), (1e100, 1.0), (1.0, 1e-100)]:
        rho = Fraction(sensitivity) ** 2 / (2 * Fraction(sigma) ** 2)
        for found, a in zip(curve_of(Renyi.gaussian(sigma, sensitivity=sensitivity)), ORDERS, strict=True):
            assert Fraction(a) * rho <= Fraction(found) <= Fraction(a) * rho * (1 + Fraction(1, 10**15))


def test_curves_grow_with_the_order_and_with_the_parameter():
    for make in (PureDP, BoundedRange, lambda s: Renyi.laplace(1.0, sensitivity=s), lambda s: Renyi.gaussian(1 / s)):
        previous = None
        for parameter in sorted(set(EPSILONS[1:]) - {SMALL / 1.001}):
            curve = curve_of(make(parameter))
            assert all(a <= b for a, b in itertools.pairwise(curve))
            if previous is not None:
                assert all(a <= b for a, b in zip(previous, curve, strict=True))
            previous = curve


def test_a_mapping_serves_the_orders_between_and_below():
    guarantee = Renyi({4: 1.0, 2: 0.7, 8.5: 1.5, 100: math.inf})
    for value, a in zip(guarantee.curve, ORDERS, strict=True):
        if a <= 2:
            assert value == 0.7
        elif a > 8.5:
            assert value == math.inf
        else:
            (low, at_low), (high, at_high) = ((2, 0.7), (4, 1.0)) if a <= 4 else ((4, 1.0), (8.5, 1.5))
            chord = ((high - a) * (low - 1) * at_low + (a - low) * (high - 1) * at_high) / (high - low) / (a - 1)
            assert value == pytest.approx(min(at_high, chord), rel=1e-12)
    assert Renyi({3: 2.0, 5: 1.0}).curve[84] == 1.0  # a bound at 5 is one at 2
    for true in (lambda a: pure_divergence(a, 0.8), lambda a: a * 0.3, lambda a: laplace_divergence(a, 2.0)):
        listed = Renyi({a: float(true(a)) * (1 + 1e-15) for a in (1.1, 1.7, 3, *range(4, 64), 500, 10000)})
        assert all(v >= true(a) for v, a in zip(listed.curve, ORDERS, strict=True))
        assert all(v <= true(a) * mpf("1.03") for v, a in zip(listed.curve, ORDERS, strict=True) if 4 < a < 63)
    assert Renyi({np.float64(3): np.float64(2), np.float64(9): np.float64(np.inf)}) == Renyi({3: 2.0})
    assert Renyi({Fraction(7, 3): Fraction(1, 3)}).curve[84] >= Fraction(1, 3)


# --- conversions


@pytest.mark.parametrize("delta", [0.4, 1e-3, 1e-6, 1e-10, 1e-100, 5e-324])
def test_a_curve_converts_as_its_best_order_does(delta):
    for curve in (curve_of(PureDP(0.3)), curve_of(BoundedRange(3.0)), curve_of(Renyi.gaussian(5.0)), (0.7,) * 253):
        truth = min(converted(a, mpf(value), delta) for value, a in zip(curve, ORDERS, strict=True))
        close_above(epsilon_of_curve(curve, delta), max(truth, 0), absolute=0 if truth > 0 else 1e-45)


@pytest.mark.parametrize("rho", [1e-14, 1e-9, 1e-4, 0.0243, 1.0, 37.0, 1e4])
@pytest.mark.parametrize("delta", [0.3, 1e-3, 1e-6, 1e-12, 1e-200])
def test_a_rho_converts_as_the_best_of_all_orders_does(rho, delta):
    def loss(log_a1):
        a = 1 + mpmath.exp(log_a1)
        return -converted(a, a * mpf(rho), delta)

    with mpmath.workdps(60):
        truth = max(-worst(loss, mpf(-25), mpf(50), steps=110), mpf(0))
    found = epsilon_of_rho(rho, delta)
    assert found >= truth * (1 - mpf("1e-30"))
    assert found <= truth * (1 + mpf("1e-9")) + 1e-30
    assert found <= epsilon_of_rho_simply(rho, delta)
    assert found <= epsilon_of_curve(curve_of(ZCDP(rho)), delta) * (1 + 1e-12) + 1e-30
    close_above(epsilon_of_rho_simply(rho, delta), rho + 2 * mpmath.sqrt(rho * mpmath.log(1 / mpf(delta))))


def test_conversions_at_the_page_s_own_figures():
    """ALGORITHMS 0.3: at (1, 1e-6) the simple conversion allows rho = 0.01747 and the tight one 0.02436."""
    assert epsilon_of_rho_simply(0.01747, 1e-6) == pytest.approx(1.0, abs=2e-4)
    assert epsilon_of_rho(0.02436, 1e-6) == pytest.approx(1.0, abs=2e-4)


def test_to_approx_takes_the_best_form_and_says_which():
    assert PureDP(0.5).to_approx(1e-9) == ApproxDP(0.5, 1e-9)
    assert PureDP(0.5).to_approx(1e-9).theorem == "pure"
    assert ZCDP(0.1).to_approx(1e-6).theorem == "zCDP, tight conversion"
    assert Renyi.gaussian(2.0).to_approx(1e-6).theorem == "Renyi conversion"
    both = PureDP(3.0) & ZCDP(0.01)
    assert both.to_approx(1e-6) == ZCDP(0.01).to_approx(1e-6)
    assert both.to_approx(1e-300) == ApproxDP(3.0, 1e-300)
    leaky = ApproxDP(0.5, 1e-9)
    assert leaky.to_approx(1e-9) == leaky
    assert leaky.to_approx(1e-6).epsilon <= 0.5
    assert leaky.least_delta() == 1e-9
    with pytest.raises(ValueError, match=r"delta=1e-10: .* take a delta above 1e-09"):
        leaky.to_approx(1e-10)
    assert (leaky & PureDP(2.0)).to_approx(1e-10).epsilon == 2.0


def test_to_approx_falls_as_delta_grows():
    for guarantee in (PureDP(1.0), ZCDP(0.05), BoundedRange(1.0), Renyi.laplace(1.0), ApproxDP(1.0, 1e-12)):
        values = [guarantee.to_approx(delta).epsilon for delta in (1e-11, 1e-9, 1e-5, 1e-3, 0.1, 0.5, 0.9)]
        assert all(a >= b for a, b in itertools.pairwise(values))


def test_conversions_between_kinds():
    assert BoundedRange(0.5).to_zcdp().rho == pytest.approx(float(range_rho(0.5)), rel=1e-15)
    assert all(v >= Fraction(a) / 4 for v, a in zip(ZCDP(0.25).to_renyi().curve, ORDERS, strict=True))
    assert (PureDP(1.0) & ZCDP(0.01)).to_zcdp() == ZCDP(0.01)
    assert ApproxDP(1.0, 0.0).to_zcdp() == PureDP(1.0).to_zcdp()
    for guarantee in (ApproxDP(1.0, 1e-6), Renyi.gaussian(1.0)):
        with pytest.raises(ValueError, match=r"does not imply zero-concentrated DP; only to_approx"):
            guarantee.to_zcdp()
    with pytest.raises(ValueError, match=r"does not bound a Renyi divergence; only to_approx"):
        ApproxDP(1.0, 1e-6).to_renyi()


# --- guarantees as values

VALUES = [
    PureDP(0.5),
    PureDP(0.5, **AR),
    ApproxDP(0.5, 1e-6),
    ApproxDP(0.5, 1e-6, **AR),
    ZCDP(0.1),
    ZCDP(0.1, **AR),
    BoundedRange(0.3),
    BoundedRange(0.3, **AR),
    Renyi.gaussian(3.0),
    Renyi.gaussian(3.0, **AR),
    Renyi({2: 0.1, 9: 0.5}),
    PureDP(0.5) & ZCDP(0.01) & ApproxDP(0.1, 1e-9),
    AllOf(PureDP(0.5, **AR), ZCDP(0.01, **AR)),
]


@pytest.mark.parametrize("guarantee", VALUES, ids=str)
def test_guarantees_are_frozen_hashable_comparable_and_pickle(guarantee):
    for name in [f.name for f in dataclasses.fields(guarantee)]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(guarantee, name, 1)
    for twin in (pickle.loads(pickle.dumps(guarantee)), copy.copy(guarantee), copy.deepcopy(guarantee)):
        assert twin == guarantee
        assert hash(twin) == hash(guarantee)
        assert repr(twin) == repr(guarantee)
        assert twin.to_approx(1e-5) == guarantee.to_approx(1e-5)
    assert [other == guarantee for other in VALUES].count(True) == 1
    assert guarantee != str(guarantee)


@pytest.mark.parametrize("guarantee", VALUES, ids=str)
def test_the_relation_is_in_every_rendering(guarantee):
    assert guarantee.neighbors in ("replace-one", "add-remove")
    assert repr(guarantee).count(guarantee.neighbors) >= 1
    assert str(guarantee).endswith(f", {guarantee.neighbors}")
    assert html.unescape(guarantee._repr_html_()) == f"<code>{guarantee}</code>"


def test_renderings():
    assert str(PureDP(0.5)) == "0.5-DP, replace-one"
    assert str(ApproxDP(1, 1e-6)) == "(1, 1e-06)-DP, replace-one"
    assert str(ZCDP(0.125, **AR)) == "0.125-zCDP, add-remove"
    assert str(BoundedRange(0.25)) == "0.25-bounded range, replace-one"
    assert str(PureDP(1) & ZCDP(0.5)) == "1-DP and 0.5-zCDP, replace-one"
    for guarantee in (PureDP(0.1), ApproxDP(0.1, 1e-7), ZCDP(0.3, **AR), BoundedRange(2.0)):
        assert eval(repr(guarantee)) == guarantee
    assert len(repr(Renyi.gaussian(1.0))) < 100
    assert ORDERS[84] == 2.0  # what the renderings call order 2


def test_where_a_result_comes_from_does_not_make_it_another():
    result = compose((PureDP(0.1), 3), delta=1e-6)
    assert result.theorem
    assert result == ApproxDP(result.epsilon, 1e-6)
    assert hash(result) == hash(ApproxDP(result.epsilon, 1e-6))
    assert pickle.loads(pickle.dumps(result)).theorem == result.theorem


def test_and_flattens():
    three = PureDP(1) & (ZCDP(0.1) & BoundedRange(1))
    assert three.parts == (PureDP(1), ZCDP(0.1), BoundedRange(1))
    assert three == AllOf(PureDP(1), ZCDP(0.1), BoundedRange(1))


def test_parameters_that_float64_does_not_hold_go_up():
    third = Fraction(1, 3)
    for made in (PureDP(third).epsilon, ZCDP(third).rho, BoundedRange(third).eta, ApproxDP(1, third).delta):
        assert made >= third
        assert made - third < Fraction(1, 10**16)
    assert PureDP(2**60 + 1).epsilon > 2**60
    assert type(PureDP(np.float32(0.5)).epsilon) is float


# --- what follows from what

SAMPLES = [
    *VALUES,
    *(PureDP(e) for e in (0.0, SMALL / 2, SMALL, 0.1, 1.0, 20.0)),
    *(ZCDP(r) for r in (0.0, 0.005, 0.5, 20.0)),
    *(BoundedRange(e) for e in (0.0, 0.1, 1.0, 20.0)),
    *(ApproxDP(e, d) for e in (0.1, 1.0, 5.0) for d in (0.0, 1e-9, 1e-3)),
    *(PureDP(e).to_renyi() for e in (SMALL, 0.1, 1.0)),
    BoundedRange(1.0).to_renyi(),
    Renyi.gaussian(1.0),
    Renyi.laplace(1.0) & PureDP(1.0),
]


def test_implies_is_reflexive_and_transitive():
    follows = [[a.implies(b) for b in SAMPLES] for a in SAMPLES]
    n, proper = len(SAMPLES), 0
    for i in range(n):
        assert follows[i][i], SAMPLES[i]
        for j, k in itertools.product(range(n), repeat=2):
            if follows[i][j] and follows[j][k]:
                proper += len({i, j, k}) == 3
                assert follows[i][k], (SAMPLES[i], SAMPLES[j], SAMPLES[k])
    assert proper > 1000


def test_what_follows_costs_no_less():
    for a, b in itertools.product(SAMPLES, repeat=2):
        if a.neighbors == b.neighbors and a.implies(b):
            for delta in (1e-2, 1e-5, 1e-8):
                if b.least_delta() <= delta:
                    assert a.to_approx(delta).epsilon <= b.to_approx(delta).epsilon * (1 + 1e-12)


def test_implies_case_by_case():
    assert PureDP(0.5).implies(PureDP(0.5))
    assert not PureDP(0.5).implies(PureDP(math.nextafter(0.5, 0)))
    assert PureDP(0.5).implies(ApproxDP(0.5, 0.0))
    assert ApproxDP(0.5, 0.0).implies(PureDP(0.5))
    assert not ApproxDP(0.5, 1e-300).implies(PureDP(100))
    assert PureDP(1.0).implies(ZCDP(0.4622))
    assert not PureDP(1.0).implies(ZCDP(0.4621))
    assert PureDP(1.0).implies(BoundedRange(2.0))
    assert not PureDP(1.0).implies(BoundedRange(1.9))
    assert BoundedRange(1.0).implies(PureDP(1.0))
    assert BoundedRange(1.0).implies(ZCDP(0.125))
    assert not ZCDP(0.1).implies(PureDP(100))
    assert ZCDP(0.5).implies(Renyi.gaussian(1.0))
    assert ZCDP(0.02436).implies(ApproxDP(1.001, 1e-6))
    assert not ZCDP(0.0244).implies(ApproxDP(1.0, 1e-6))
    assert PureDP(1.0).implies(PureDP(1.0) & ZCDP(0.5))
    assert not PureDP(1.0).implies(PureDP(1.0) & ZCDP(0.01))
    # a replacement is a removal and an addition; nothing leads back
    assert PureDP(0.5, **AR).implies(PureDP(1.0))
    assert not PureDP(0.5, **AR).implies(PureDP(0.99))
    assert not PureDP(0.5).implies(PureDP(100.0, **AR))
    assert not Renyi.gaussian(1.0, **AR).implies(Renyi.gaussian(0.1))  # true, but without a proof here
    assert not ApproxDP(1.0, 0.4, **AR).implies(ApproxDP(2.0, 0.99))
    assert (Renyi.gaussian(1.0, **AR) & PureDP(1.0, **AR)).implies(PureDP(2.0))


def test_from_add_remove_to_replace_one():
    assert PureDP(0.5, **AR).to_replace_one() == PureDP(1.0)
    assert BoundedRange(0.5, **AR).to_replace_one() == BoundedRange(1.0)
    assert ZCDP(0.5, **AR).to_replace_one() == ZCDP(2.0)
    assert AllOf(PureDP(0.5, **AR), ZCDP(0.1, **AR)).to_replace_one() == PureDP(1.0) & ZCDP(0.4)
    for delta in (1e-3, 1e-6, 1e-60, 1e-300):
        changed = ApproxDP(0.7, delta, **AR).to_replace_one()
        assert (changed.epsilon, changed.neighbors) == (1.4, "replace-one")
        close_above(changed.delta, delta * (1 + mpmath.exp(mpf(0.7))), absolute=0)
    for guarantee in VALUES:
        if guarantee.neighbors == "replace-one":
            assert guarantee.to_replace_one() == guarantee
    with pytest.raises(ValueError, match=r"Renyi curve has no group form .* to_approx\(delta\)"):
        Renyi.gaussian(1.0, **AR).to_replace_one()


@pytest.mark.parametrize("size", [1, 2, 3, 17])
def test_groups(size):
    assert PureDP(0.25).group(size) == PureDP(0.25 * size)
    assert BoundedRange(0.25, **AR).group(size) == BoundedRange(0.25 * size, **AR)
    assert ZCDP(0.25).group(size) == ZCDP(0.25 * size**2)
    assert (PureDP(0.25) & Renyi.gaussian(1.0)).group(size).implies(PureDP(0.25 * size))
    tenth = Fraction(0.1)
    for found, truth in [
        (PureDP(0.1).group(size).epsilon, tenth * size),
        (BoundedRange(0.1).group(size).eta, tenth * size),
        (ApproxDP(0.1, 1e-9).group(size).epsilon, tenth * size),
        (ZCDP(0.1).group(size).rho, tenth * size**2),
    ]:
        assert truth <= Fraction(found) <= truth * (1 + Fraction(1, 10**15))
    for epsilon, delta in [(0.25, 1e-9), (1e-30, 1e-9), (1e-12, 1e-200), (0.0, 1e-3)]:
        grown = ApproxDP(epsilon, delta).group(size)
        close_above(grown.epsilon, mpf(epsilon) * size)
        close_above(grown.delta, delta * mpmath.fsum(mpmath.exp(i * mpf(epsilon)) for i in range(size)), absolute=0)


def test_groups_that_are_too_large():
    assert ApproxDP(1e7, 0.0).group(3) == ApproxDP(3e7, 0.0)
    for guarantee in (ApproxDP(1.0, 1e-3), ApproxDP(1e7, 1e-300), ApproxDP(0.0, 0.1)):
        with pytest.raises(ValueError, match=r"^size=10: .* has no guarantee for groups so large: delta would be"):
            guarantee.group(10)


# --- composition: the formulas


def random_parts(draw, *, leaky=False, kinds="pure range"):
    """A few guarantees with counts."""
    parts = []
    for _ in range(draw.randint(1, 4)):
        scale, count = 10 ** draw.uniform(-4, 0.5), draw.choice([1, 1, 2, 10, 300])
        kind = draw.choice(kinds.split())
        if leaky and draw.random() < 0.5:
            parts.append((ApproxDP(scale, 10 ** draw.uniform(-17, -13)), count))
        elif kind == "pure":
            parts.append((PureDP(scale), count))
        elif kind == "range":
            parts.append((BoundedRange(scale), count))
        elif kind == "zcdp":
            parts.append((ZCDP(scale**2 / 2), count))
        else:
            parts.append((Renyi.laplace(1 / scale) & PureDP(scale), count))
    return parts


def pure_of(guarantee):
    return mpf(guarantee.eta if isinstance(guarantee, BoundedRange) else guarantee.epsilon)


def rho_of(guarantee):
    if isinstance(guarantee, ZCDP):
        return mpf(guarantee.rho)
    e = pure_of(guarantee)
    return mpf(str(range_rho(guarantee.eta))) if isinstance(guarantee, BoundedRange) else e * mpmath.tanh(e / 2)


CASES = [(seed, 10.0 ** random.Random(seed).choice([-9, -6, -3])) for seed in range(30)]


@pytest.mark.parametrize(("seed", "delta"), CASES)
def test_basic_and_heterogeneous_composition_are_their_formulas(seed, delta):
    parts = random_parts(random.Random(seed), leaky=True)
    leak = sum(Fraction(getattr(g, "delta", 0.0)) * k for g, k in parts)
    epsilons = [(pure_of(g), k) for g, k in parts]
    basic = compose(*parts, delta=delta, using="basic")
    close_above(basic.epsilon, mpmath.fsum(e * k for e, k in epsilons))
    assert basic.theorem == "basic"
    slack = mpf(delta) - mpf(leak.numerator) / leak.denominator
    drift = mpmath.fsum(e * mpmath.tanh(e / 2) * k for e, k in epsilons)
    truth = mpmath.sqrt(2 * mpmath.log(1 / slack) * mpmath.fsum(e**2 * k for e, k in epsilons)) + drift
    found = compose(*parts, delta=delta, using="heterogeneous")
    close_above(found.epsilon, truth)
    assert "Kairouz" in found.theorem
    total = compose(*parts)
    proven = total if isinstance(total, ApproxDP) else total.parts[0]
    assert proven.epsilon == basic.epsilon
    assert Fraction(getattr(proven, "delta", 0.0)) >= leak


@pytest.mark.parametrize("delta", [0.1, 1e-6, 1e-12])
@pytest.mark.parametrize(("epsilon", "count"), [(1e-12, 7), (0.01, 1000), (0.5, 3), (3.0, 2), (40.0, 10**6)])
def test_advanced_composition_is_its_formula(epsilon, count, delta):
    e = mpf(epsilon)
    truth = e * mpmath.sqrt(2 * count * mpmath.log(1 / mpf(delta))) + count * e * (mpmath.exp(e) - 1)
    found = compose((PureDP(epsilon), count), delta=delta, using="advanced")
    close_above(found.epsilon, truth)
    assert "Dwork" in found.theorem
    assert found.epsilon > compose((PureDP(epsilon), count), delta=delta, using="heterogeneous").epsilon
    leaks = compose((ApproxDP(epsilon, delta / (4 * count)), count), delta=delta, using="advanced")
    slack = mpf(delta) - mpf(delta / (4 * count)) * count
    truth = e * mpmath.sqrt(2 * count * mpmath.log(1 / slack)) + count * e * (mpmath.exp(e) - 1)
    close_above(leaks.epsilon, truth)


@pytest.mark.parametrize(("seed", "delta"), CASES[:12])
def test_concentrated_composition_is_the_sum_converted(seed, delta):
    parts = random_parts(random.Random(seed), kinds="pure range zcdp")
    rho = mpmath.fsum(rho_of(g) * k for g, k in parts)

    def loss(log_a1):
        a = 1 + mpmath.exp(log_a1)
        return -converted(a, a * rho, delta)

    with mpmath.workdps(50):
        truth = max(-worst(loss, mpf(-20), mpf(40), steps=100), mpf(0))
    found = compose(*parts, delta=delta, using="zcdp")
    assert truth * (1 - mpf("1e-30")) <= found.epsilon <= truth * (1 + mpf("1e-9"))
    assert found.theorem == "zCDP, tight conversion"
    close_above(compose(*parts, using="zcdp").rho, rho)


@pytest.mark.parametrize(("seed", "delta"), CASES[:12])
def test_renyi_composition_is_the_sum_converted(seed, delta):
    parts = random_parts(random.Random(seed), kinds="pure range zcdp laplace")
    if all(isinstance(g, ZCDP) for g, _ in parts):
        parts.append((PureDP(0.1), 1))
    curves = [(g.to_renyi().curve, k) for g, k in parts]
    truth = min(
        converted(a, mpmath.fsum(mpf(curve[i]) * k for curve, k in curves), delta) for i, a in enumerate(ORDERS)
    )
    found = compose(*parts, delta=delta, using="renyi")
    close_above(found.epsilon, max(truth, mpf(0)))
    assert found.theorem == "Renyi"
    total = compose(*parts, using="renyi")
    for i in range(0, len(ORDERS), 7):
        close_above(total.curve[i], mpmath.fsum(mpf(curve[i]) * k for curve, k in curves))


# --- composition: what any composition must do


@pytest.mark.parametrize("seed", range(25))
def test_laws_of_composition(seed):
    draw = random.Random(1000 + seed)
    parts = random_parts(draw, leaky=seed % 2 == 1, kinds="pure range zcdp laplace" if seed % 3 else "pure range")
    delta = 10 ** draw.uniform(-8, -2)
    whole = compose(*parts, delta=delta)
    assert whole.theorem in {
        "basic",
        "advanced (Dwork, Rothblum, Vadhan)",
        "heterogeneous (Kairouz, Oh, Viswanath)",
        "zCDP, tight conversion",
        "Renyi",
        "privacy loss distribution",
    }
    # the best is the best
    for using in THEOREMS[1:]:
        try:
            other = compose(*parts, delta=delta, using=using)
        except ValueError:
            continue
        assert whole.epsilon <= other.epsilon
    # counts are repetition, and order does not matter
    repeated = [g for g, k in parts if k < 20 for _ in range(k)] + [(g, k) for g, k in parts if k >= 20]
    draw.shuffle(repeated)
    again = compose(*repeated, delta=delta)
    assert (again, again.theorem) == (whole, whole.theorem)
    # one more never lowers it
    for more in (PureDP(0.0), PureDP(1e-3), ZCDP(1e-4), ApproxDP(0.01, delta / 10), (BoundedRange(0.1), 3)):
        try:
            longer = compose(*parts, more, delta=delta)
        except ValueError:  # no epsilon at all: the parts are of kinds that do not mix
            continue
        assert longer.epsilon >= whole.epsilon * (1 - 1e-12)
    # what the sums guarantee is no better than what is composed for this delta
    if any(isinstance(g, ApproxDP) for g, _ in parts) and any(isinstance(g, ZCDP) for g, _ in parts):
        with pytest.raises(ValueError, match="no sum without a delta; pass delta="):
            compose(*parts)
        return
    total = compose(*parts)
    if total.least_delta() <= delta:
        assert total.to_approx(delta).epsilon >= whole.epsilon * (1 - 1e-12)
    assert total.theorem


def test_without_delta_all_sums_that_hold():
    total = compose((PureDP(0.5), 2), BoundedRange(1.0))
    assert [type(part) for part in total.parts] == [PureDP, ZCDP, Renyi]
    assert [part.theorem for part in total.parts] == ["basic", "zCDP", "Renyi"]
    assert total.theorem == "basic, zCDP, Renyi"
    assert total.parts[0].epsilon == 2.0
    assert compose(ZCDP(0.25), ZCDP(0.5)) == ZCDP(0.75)
    assert compose((ApproxDP(0.5, 0.25), 3)) == ApproxDP(1.5, 0.75)
    assert compose((PureDP(0.5), 4), using="basic") == PureDP(2.0)
    assert compose(ApproxDP(1.0, 1e-9), PureDP(1.0)).theorem == "basic"
    assert compose(Renyi.gaussian(1.0), PureDP(1.0)).theorem == "Renyi"
    exact = compose((PureDP(0.1), 10), using="basic").epsilon  # 0.1 is a little more than a tenth
    assert exact == math.nextafter(1.0, 2)


def test_all_of_serves_with_whichever_form_is_best():
    several = PureDP(1.0) & ApproxDP(0.5, 1e-9) & ApproxDP(0.1, 1e-6)
    for delta, epsilon in [(1e-12, 1.0), (1e-8, 0.5), (1e-5, 0.1)]:
        assert compose(several, delta=delta).epsilon <= epsilon
        assert compose(several, delta=delta).epsilon <= several.to_approx(delta).epsilon
    # one of two may leak, not both
    either = PureDP(1.0) & ApproxDP(0.1, 1e-6)
    other = PureDP(2.0) & ApproxDP(0.1, 0.9e-6)
    assert compose(either, other, delta=1e-6, using="basic").epsilon == pytest.approx(1.1)
    assert compose(either, other, delta=2e-6, using="basic").epsilon == pytest.approx(0.2)
    assert compose(either, other, delta=1e-7, using="basic").epsilon == 3.0
    # the order of the parts is not what decides
    turned = AllOf(ApproxDP(0.1, 1e-6), ApproxDP(0.5, 1e-9), PureDP(1.0))
    for delta in (1e-12, 1e-8, 1e-5):
        assert compose(turned, delta=delta) == compose(several, delta=delta)
    # and many of them still give what the two extremes give
    many = [PureDP(1.0 + i) & ApproxDP(0.1, 1e-9 * (i + 1)) for i in range(12)]
    assert compose(*many, delta=1e-6, using="basic").epsilon == pytest.approx(1.2)
    assert compose(*many, delta=1e-12, using="basic").epsilon == pytest.approx(78)
    # pure and concentrated forms of one mechanism
    noise = PureDP(1.0) & ZCDP(0.01)
    assert compose((noise, 2), delta=1e-300).theorem == "basic"
    assert compose((noise, 100), delta=1e-6).theorem == "zCDP, tight conversion"


def test_bounded_range_composes_four_times_better_than_pure_dp():
    pure, ranged = (compose((kind(0.01), 1000), using="zcdp").rho for kind in (PureDP, BoundedRange))
    assert pure / ranged == pytest.approx(4, rel=1e-4)


@pytest.mark.parametrize("kind", [PureDP, BoundedRange, lambda s: Renyi.laplace(1.0, sensitivity=s)])
def test_nothing_jumps_where_curves_change_their_formula(kind):
    below, above = SMALL * (1 - 1e-7), SMALL
    for count, delta in [(10**16, 1e-6), (10**18, 1e-3), (10**20, 1e-10)]:
        low, high = (compose((kind(x), count), delta=delta).epsilon for x in (below, above))
        assert 0.999999 <= low / high <= 1.0000001


def test_composition_is_the_same_whatever_the_decimal_context_of_the_host():
    def results():
        for module in (composition, conversions, curves, kinds):
            for function in vars(module).values():
                if hasattr(function, "cache_clear"):
                    function.cache_clear()
        return [
            compose((BoundedRange(1e-6), 10**9), (PureDP(0.01), 10), delta=1e-7).epsilon,
            compose((PureDP(0.1), 10), delta=0.1, using="advanced").epsilon,
            compose(PureDP(0.1), ApproxDP(0.2, 1e-9), delta=0.1, using="heterogeneous").epsilon,
            compose(ZCDP(0.3), (ZCDP(1e-12), 1000), delta=1e-7).epsilon,
            Renyi.discrete_laplace(3.3, sensitivity=2).curve,
            Renyi.laplace(3.3).curve,
            BoundedRange(1e-6).to_renyi().curve,
            ApproxDP(0.1, 1e-9).group(7),
            epsilon_of_rho_simply(0.1, 1e-6),
        ]

    expected = results()
    context = decimal.Context(prec=3, rounding=decimal.ROUND_DOWN)
    for signal in (decimal.Inexact, decimal.FloatOperation):
        context.traps[signal] = True
    with decimal.localcontext(context):
        assert results() == expected


# --- exact instances


def coins(parts):
    """The privacy losses of independent two-outcome mechanisms: [(loss, log probability)], all combinations.

    Each part is (t, eta, k): k copies of outcomes with log-likelihood ratios t and t - eta.
    """
    losses, logs = np.zeros(1), np.zeros(1)
    for t, eta, k in parts:
        w = (math.exp(-t) - math.exp(-eta)) / -math.expm1(-eta)  # under Q; under P times e^t
        high, low = math.log(w) + t, math.log1p(-w) + t - eta
        j = np.arange(k + 1)
        choose = np.array([math.lgamma(k + 1) - math.lgamma(i + 1) - math.lgamma(k - i + 1) for i in j])
        losses = (losses[:, None] + (k * t - eta * (k - j))[None, :]).ravel()
        logs = (logs[:, None] + (choose + j * high + (k - j) * low)[None, :]).ravel()
    return losses, np.exp(logs)


def delta_at(epsilon, law, leak=0.0):
    losses, masses = law
    rest = math.fsum(masses * -np.expm1(np.minimum(epsilon - losses, 0.0)))
    return leak + (1 - leak) * rest


def responses(*parts):
    """Randomised responses: (epsilon, k)."""
    return coins([(e, 2 * e, k) for e, k in parts])


INSTANCES = [
    [(0.05, 1)],
    [(0.05, 30)],
    [(0.02, 400)],
    [(0.3, 5)],
    [(0.3, 60)],
    [(1.0, 2)],
    [(1.0, 25)],
    [(3.0, 6)],
    [(0.01, 100), (0.2, 20)],
    [(0.05, 50), (0.7, 3)],
    [(0.1, 10), (0.3, 8), (0.8, 3)],
]


@pytest.mark.parametrize("parts", INSTANCES, ids=str)
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 1e-3, 0.05])
def test_what_is_claimed_for_randomised_responses_is_true(parts, delta):
    law = responses(*parts)
    guarantees = [(PureDP(e), k) for e, k in parts]
    for using in THEOREMS:
        if using == "advanced" and len(parts) > 1:
            continue
        claimed = compose(*guarantees, delta=delta, using=using).epsilon
        assert delta_at(claimed, law) <= delta * (1 + 1e-9)
    # and not absurdly loose: three quarters of it would be false
    claimed = compose(*guarantees, delta=delta).epsilon
    assert delta_at((0.75 if delta < 0.01 else 0.5) * claimed, law) > delta or not claimed


@pytest.mark.parametrize("parts", INSTANCES, ids=str)
def test_what_is_claimed_with_leaks_is_true(parts):
    """(epsilon, delta)-DP at its worst: with probability delta everything is told, otherwise a randomised response."""
    law = responses(*parts)
    leak = 1e-7
    guarantees = [(ApproxDP(e, leak), k) for e, k in parts]
    count = sum(k for _, k in parts)
    happens = -math.expm1(count * math.log1p(-leak))
    for delta in (1.0001 * leak * count, 1e-4, 1e-2):
        for using in ("best", "basic", "heterogeneous", "zcdp", "renyi"):
            claimed = compose(*guarantees, delta=delta, using=using).epsilon
            assert delta_at(claimed, law, happens) <= delta * (1 + 1e-9)
    total = compose(*guarantees)
    assert happens <= total.delta <= 1.01 * happens
    with pytest.raises(ValueError, match="the deltas of the parts add up to"):
        compose(*guarantees, delta=0.99 * happens)


@pytest.mark.parametrize(("eta", "count"), [(0.05, 200), (0.3, 40), (1.0, 10), (4.0, 5)])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_what_is_claimed_for_bounded_range_is_true(eta, count, delta):
    claimed = compose((BoundedRange(eta), count), delta=delta).epsilon
    laws = [coins([(share_ * eta, eta, count)]) for share_ in (0.05, 0.25, 0.5, 0.75, 0.95)]
    assert max(delta_at(claimed, law) for law in laws) <= delta * (1 + 1e-9)
    assert max(delta_at(0.7 * claimed, law) for law in laws) > delta
    # a mixture with pure DP, and with a leak
    claimed = compose((BoundedRange(eta), count), (PureDP(eta / 2), 5), ApproxDP(0.1, delta / 2), delta=delta).epsilon
    law = coins([(eta / 2, eta, count), (eta / 2, eta, 5), (0.1, 0.2, 1)])
    assert delta_at(claimed, law, delta / 2) <= delta * (1 + 1e-9)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 10.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_what_is_claimed_for_concentrated_dp_is_true_of_gaussian_noise(rho, delta):
    with mpmath.workdps(40):
        mu = mpmath.sqrt(2 * mpf(rho))

        def truth(epsilon):
            tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
            return tail(epsilon / mu - mu / 2) - mpmath.exp(epsilon) * tail(epsilon / mu + mu / 2)

        for guarantee in (ZCDP(rho), ZCDP(rho).to_renyi()):
            claimed = compose((guarantee, 1), delta=delta).epsilon
            assert truth(mpf(claimed)) <= delta
            assert truth(mpf(0.65 * claimed)) > delta or truth(mpf(0)) < delta


def test_group_privacy_is_true_and_reached():
    """A counter of which each record moves one step: shifts of discrete Laplace noise."""
    epsilon, size = 0.4, 5
    q = math.exp(-epsilon)
    z = np.arange(-400, 401)
    p, moved = (q ** np.abs(z - shift) * (1 - q) / (1 + q) for shift in (0, size))
    assert np.max(np.log(p) - np.log(moved)) == pytest.approx(PureDP(epsilon).group(size).epsilon)
    for inner in (0.1, 0.3):  # (inner, delta)-DP of one step
        delta = np.maximum(p - math.exp(inner) * np.roll(p, 1), 0).sum()
        grown = ApproxDP(inner, delta).group(size)
        found = np.maximum(p - math.exp(grown.epsilon) * moved, 0).sum()
        assert 0.2 * grown.delta < found <= grown.delta * (1 + 1e-9)


# --- dp-accounting

EPS, COUNTS = (0.01, 0.03, 0.1, 0.3, 1.0, 2.0), (1, 3, 10, 30, 100, 300, 1000)
DELTAS = (1e-10, 1e-8, 1e-6, 1e-4, 1e-3)


@pytest.fixture
def _quiet():
    logging.disable(logging.WARNING)  # one note for each optimistic estimate
    yield
    logging.disable(logging.NOTSET)


def optimistic(kind, epsilon):
    """A lower bound of the privacy loss distribution: no proof may be below it."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    options = {"value_discretization_interval": 1e-4 if epsilon <= 0.1 else 1e-3, "pessimistic_estimate": False}
    if kind == "laplace":
        return pld.from_laplace_mechanism(1 / epsilon, **options)
    if kind == "gaussian":
        return pld.from_gaussian_mechanism(1 / epsilon, **options)
    if kind == "discrete laplace":
        return pld.from_discrete_laplace_mechanism(epsilon, 1, **options)
    if kind == "pure":
        return pld.from_randomized_response(2 / (1 + math.exp(epsilon)), 2, **options)
    losses, masses = coins([(epsilon / 2, epsilon, 1)])  # an exponential mechanism with two candidates
    p, q = np.log(masses), np.log(masses) - losses
    return pld.from_two_probability_mass_functions(dict(enumerate(q)), dict(enumerate(p)), **options)


def is_too_large(kind, epsilon, count, delta, estimate):
    """Whether float64 has spoiled an "optimistic" estimate: a bound of the truth, of losses rounded up, is below it.

    For 1,000 randomised responses of 2.0 at 1e-6 dp-accounting answers 1708.0, and the sum over all outcomes 1705.5.
    """
    if kind == "laplace":
        step = epsilon * 2.0**-12
        return epsilon_of_rounded_up(*laplace_losses(epsilon, 2.0**-12), count, delta, step) < estimate
    return epsilon_of_rounded_up(*response_losses(epsilon), count, delta, step=epsilon) < estimate


def rdp_curve(kind, epsilon, orders):
    """What dp-accounting has of the curve; the direct sum and the brute-force maximum where it has nothing."""
    import dp_accounting
    from dp_accounting import rdp

    events = {
        "laplace": lambda: dp_accounting.LaplaceDpEvent(1 / epsilon),
        "gaussian": lambda: dp_accounting.GaussianDpEvent(1 / epsilon),
        "pure": lambda: dp_accounting.dp_event.RandomizedResponseDpEvent(2 / (1 + math.exp(epsilon)), 2),
    }
    if kind in events:
        accountant = rdp.RdpAccountant(orders, dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(events[kind]())
        return np.array(accountant._rdp)
    if kind == "discrete laplace":
        with mpmath.workdps(30):
            return np.array([float(discrete_laplace_divergence(a, 1 / epsilon, 1)) for a in orders])
    t = np.linspace(0, epsilon, 2001)[1:-1]
    w = np.expm1(epsilon - t) / math.expm1(epsilon)
    return np.array([np.max(a * t + np.log(w + (1 - w) * math.exp(max(-a * epsilon, -700)))) / (a - 1) for a in orders])


def ours(kind, epsilon):
    return {
        "laplace": lambda: Renyi.laplace(1 / epsilon) & PureDP(epsilon),
        "gaussian": lambda: ZCDP(epsilon**2 / 2),
        "discrete laplace": lambda: Renyi.discrete_laplace(1 / epsilon) & PureDP(epsilon),
        "pure": lambda: PureDP(epsilon),
        "exponential mechanism": lambda: BoundedRange(epsilon),
    }[kind]()


KINDS = ("laplace", "gaussian", "discrete laplace", "pure", "exponential mechanism")


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("kind", KINDS)
def test_copies_against_dp_accounting(kind):
    """Above every optimistic estimate, and at most 0.5 % above the answer of dp-accounting's RDP accountant.

    Its orders end at 1024, so that it may be far above us: where few weak mechanisms are composed, a pure guarantee
    comes out as more than twice its epsilon.
    """
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    orders = np.array(rdp.DEFAULT_RDP_ORDERS)
    ratios, slacks = [], []
    for epsilon in EPS:
        guarantee, lower, curve = ours(kind, epsilon), optimistic(kind, epsilon), rdp_curve(kind, epsilon, orders)
        for count in COUNTS:
            composed = lower.self_compose(count)
            for delta in DELTAS:
                found = compose((guarantee, count), delta=delta).epsilon
                least = composed.get_epsilon_for_delta(delta)
                assert found >= least * (1 - 1e-9) or is_too_large(kind, epsilon, count, delta, least), (
                    epsilon,
                    count,
                    delta,
                )
                ratios.append(found / rdp.compute_epsilon(orders, curve * count, delta)[0])
                slacks.append(found / least if least > 0.1 and count >= 30 else 1.0)
    assert max(ratios) <= 1.005
    assert min(ratios) < 0.95  # its orders
    if kind in ("laplace", "discrete laplace"):
        assert max(slacks) < 1.02  # of which most is the estimate's
    else:
        assert 1.05 < max(slacks) < 1.5  # the estimate is no idle bound
    assert len(ratios) == 210


@pytest.mark.usefixtures("_quiet")
@pytest.mark.parametrize("seed", range(6))
def test_mixtures_against_dp_accounting(seed):
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    orders = np.array(rdp.DEFAULT_RDP_ORDERS)
    draw = random.Random(seed)
    for _ in range(4):
        parts = [
            (draw.choice(KINDS), draw.choice([0.15, 0.3, 1.0, 2.0]), draw.choice(COUNTS[:5]))
            for _ in range(draw.randint(2, 4))
        ]
        lower, curve = None, np.zeros(len(orders))
        for kind, epsilon, count in parts:
            composed = optimistic(kind, epsilon).self_compose(count)
            lower = composed if lower is None else lower.compose(composed)
            curve = curve + count * rdp_curve(kind, epsilon, orders)
        for delta in DELTAS:
            found = compose(*((ours(kind, epsilon), count) for kind, epsilon, count in parts), delta=delta).epsilon
            assert found >= lower.get_epsilon_for_delta(delta) * (1 - 1e-9), (parts, delta)
            assert found <= 1.005 * rdp.compute_epsilon(orders, curve, delta)[0], (parts, delta)


@pytest.mark.usefixtures("_quiet")
def test_the_accountants_themselves():
    """A few cases through the two public classes, mixed as their users would."""
    import dp_accounting
    from dp_accounting import pld, rdp

    events = dp_accounting.ComposedDpEvent(
        [
            dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(8.0), 20),
            dp_accounting.SelfComposedDpEvent(dp_accounting.LaplaceDpEvent(10.0), 30),
        ]
    )
    parts = [(ZCDP(1 / 128), 20), (Renyi.laplace(10.0) & PureDP(0.1), 30)]
    for delta in DELTAS:
        found = compose(*parts, delta=delta).epsilon
        upper = pld.PLDAccountant().compose(events).get_epsilon(delta)  # pessimistic, and nearly tight
        assert upper * 0.999 <= found <= 1.2 * upper
        assert found <= 1.02 * rdp.RdpAccountant().compose(events).get_epsilon(delta)


@pytest.mark.usefixtures("_quiet")
def test_a_curve_taken_over_from_dp_accounting():
    import dp_accounting
    from dp_accounting import rdp

    for epsilon, count in itertools.product(EPS, COUNTS):
        accountant = rdp.RdpAccountant().compose(dp_accounting.GaussianDpEvent(1 / epsilon), count)
        guarantee = Renyi(dict(zip(accountant._orders, accountant._rdp, strict=True)))
        for delta in DELTAS:
            assert guarantee.to_approx(delta).epsilon <= 1.02 * accountant.get_epsilon(delta)


# --- the other direction

MAKERS = {
    "pure": PureDP,
    "concentrated": ZCDP,
    "range": BoundedRange,
    "Gaussian": lambda x: Renyi.gaussian(1 / x),
    "Laplace": lambda x: PureDP(x) & Renyi.laplace(1 / x),
    "approximate": lambda x: ApproxDP(x, 1e-14),
}
SHARES = [
    ("pure", ApproxDP(1.0, 1e-6), 100),
    ("pure", BoundedRange(1.0), 3),
    ("concentrated", ApproxDP(0.01, 1e-10), 7),
    ("concentrated", ApproxDP(20.0, 1e-3), 1),
    ("concentrated", Renyi.gaussian(1.0), 3),
    ("range", ApproxDP(1.0, 1e-6), 100),
    ("range", ApproxDP(0.01, 1e-10), 1),
    ("range", ZCDP(0.1), 7),
    ("Gaussian", ApproxDP(1.0, 1e-6), 7),
    ("Gaussian", BoundedRange(1.0).to_renyi(), 1),
    ("Laplace", ApproxDP(20.0, 1e-3), 30),
    ("Laplace", PureDP(1.0) & ZCDP(0.01), 5),
    ("approximate", ApproxDP(1.0, 1e-6), 100),
    ("approximate", ApproxDP(0.01, 1e-10), 1),
]


@pytest.mark.parametrize(("name", "whole", "count"), SHARES, ids=str)
def test_share_is_the_largest_parameter_that_fits(name, whole, count):
    kind = MAKERS[name]

    def fits(parameter):
        one = kind(parameter)
        delta = whole.delta if isinstance(whole, ApproxDP) else None
        return (count == 1 and one.implies(whole)) or compose((one, count), delta=delta).implies(whole)

    found = share(whole, count, kind)
    assert fits(found)
    assert not fits(found * (1 + 1e-9))


def test_share_case_by_case():
    assert share(PureDP(1.0), 4, PureDP) == pytest.approx(0.25, rel=1e-9)
    assert share(ZCDP(1.0), 4, ZCDP) == pytest.approx(0.25, rel=1e-9)
    assert range_rho(share(ZCDP(0.5), 9, BoundedRange)) == pytest.approx(Decimal(1) / 18, rel=Decimal("2e-9"))
    assert share(ZCDP(0.5), 1, lambda x: ZCDP(x**2 / 2)) == pytest.approx(1.0, rel=1e-9)
    for whole, kind in [(PureDP(0.7), PureDP), (ZCDP(0.7), ZCDP), (BoundedRange(0.7), BoundedRange)]:
        assert share(whole, 1, kind) == pytest.approx(0.7, rel=1e-9)
    assert share(ApproxDP(1.0, 1e-6), 1, ZCDP) == pytest.approx(0.02436, rel=1e-3)
    pure, ranged = (share(ApproxDP(1.0, 1e-6), 1000, kind) for kind in (PureDP, BoundedRange))
    assert 1.85 < ranged / pure < 2  # twice by moments, and pure DP has a loss distribution
    assert share(PureDP(1.0), 2, lambda x: PureDP(x, **AR)) == pytest.approx(0.25, rel=1e-9)
    assert share(PureDP(1.0, **AR), 2, lambda x: PureDP(x, **AR)) == pytest.approx(0.5, rel=1e-9)


def test_what_is_no_guarantee_is_refused_by_name():
    for wrong, message in (
        (lambda: share(1.0, 10, PureDP), r"^whole=1\.0: must be a guarantee, such as PureDP\(0\.1\)$"),
        (lambda: share(PureDP(1.0), 10, "zcdp"), r"^kind='zcdp': must make a guarantee from its parameter"),
        (lambda: share(PureDP(1.0), 10, float), r"^kind: its result=.*: must be a guarantee"),
        (lambda: PureDP(0.1).implies(0.2), r"^other=0\.2: must be a guarantee"),
        (lambda: AllOf(1, 2), r"^parts=1: must be a guarantee"),
        (lambda: PureDP(0.1) & 3, r"^parts=3: must be a guarantee"),
    ):
        with pytest.raises(ValueError, match=message):
            wrong()


def test_share_says_where_no_parameter_is_ever_small_enough():
    for whole in (PureDP(1.0), ApproxDP(1.0, 0.0)):
        with pytest.raises(ValueError, match=r"^whole=.*: 10 guarantees such as .*-zCDP, .* never imply it, however"):
            share(whole, 10, ZCDP)
    assert share(whole=PureDP(1.0), count=10, kind=PureDP) == pytest.approx(0.1)


def test_share_says_how_to_pass_a_kind_of_two_parameters():
    with pytest.raises(
        ValueError, match=r"^kind=<class ApproxDP>: .* argument: 'delta'\); pass .* lambda e: ApproxDP\(e, 1e-8\)$"
    ):
        share(ApproxDP(1.0, 1e-6), 50, ApproxDP)
    each = share(ApproxDP(1.0, 1e-6), 50, lambda e: ApproxDP(e, 1e-8))
    assert compose((ApproxDP(each, 1e-8), 50), delta=1e-6).implies(ApproxDP(1.0, 1e-6))

    def breaks(epsilon):
        raise TypeError("its own")

    with pytest.raises(TypeError, match=r"^its own$"):
        share(ApproxDP(1.0, 1e-6), 50, breaks)


def test_share_refuses():
    with pytest.raises(ValueError, match=r"^count=0: "):
        share(PureDP(1.0), 0, PureDP)
    with pytest.raises(ValueError, match=r"too small for 3 releases"):
        share(ApproxDP(1.0, 1e-9), 3, lambda x: ApproxDP(x, 1e-9))
    with pytest.raises(ValueError, match=r"never imply it"):
        share(PureDP(1.0), 3, ZCDP)
    with pytest.raises(ValueError, match=r"does not limit the parameter"):
        share(PureDP(1.0), 3, lambda x: PureDP(0.1))
    with pytest.raises(ValueError, match=r"^kind: .*'replace-one'.*'add-remove'.*lambda"):
        share(PureDP(1.0, **AR), 3, PureDP)


# --- bad input

NOT_NUMBERS = ["1", None, b"1", [1.0], True, np.True_, 1 + 0j, decimal.Decimal("0.5"), np.array([1.0])]
NOT_PARAMETERS = [-1.0, -5, math.nan, math.inf, -math.inf, 10**400]


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_PARAMETERS], ids=repr)
def test_parameters_of_guarantees(value):
    number = value in NOT_PARAMETERS if isinstance(value, int | float) and not isinstance(value, bool) else False
    rule = r"must be (>= 0 and finite|below 2\^1024)" if number else "must be a number"
    for name, make in {
        "epsilon": lambda: PureDP(value),
        "epsilon ": lambda: ApproxDP(value, 1e-6),
        "delta": lambda: ApproxDP(1.0, value),
        "rho": lambda: ZCDP(value),
        "eta": lambda: BoundedRange(value),
    }.items():
        of_shares = "must be between 0 and 1, 1 excluded" if number and name == "delta" else rule
        with pytest.raises(ValueError, match=rf"^{name.strip()}=.*: {of_shares}"):
            make()


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_PARAMETERS, 0, 0.0], ids=repr)
def test_parameters_of_noise(value):
    for name, make in {
        "scale": lambda: Renyi.laplace(value),
        "scale ": lambda: Renyi.discrete_laplace(value),
        "sigma": lambda: Renyi.gaussian(value),
        "sensitivity": lambda: Renyi.laplace(1.0, sensitivity=value),
        "sensitivity ": lambda: Renyi.gaussian(1.0, sensitivity=value),
    }.items():
        with pytest.raises(ValueError, match=rf"^{name.strip()}=.*: must be "):
            make()
    if not (type(value) is int and value > 0):
        with pytest.raises(ValueError, match=r"^sensitivity=.*: must be an integer >= 1"):
            Renyi.discrete_laplace(1.0, sensitivity=value)


@pytest.mark.parametrize("value", [*NOT_NUMBERS, *NOT_PARAMETERS, 0, 1, 1.0, 2], ids=repr)
def test_delta_when_converting_or_composing(value):
    if value is not None:
        with pytest.raises(ValueError, match=r"^delta=.*: must be "):
            compose(PureDP(1.0), delta=value)
    for guarantee in (PureDP(1.0), ZCDP(1.0), Renyi.gaussian(1.0), ApproxDP(1.0, 1e-6), PureDP(1) & ZCDP(1)):
        with pytest.raises(ValueError, match=r"^delta=.*: must be "):
            guarantee.to_approx(value)


def test_what_to_do_instead():
    with pytest.raises(ValueError, match=r"^delta=0: must be between 0 and 1, .*; .*compose\(\) without delta"):
        compose((PureDP(1.0), 3), delta=0)
    with pytest.raises(ValueError, match=r"^delta=0\.0: must be between 0 and 1, .*pure DP only"):
        ZCDP(1.0).to_approx(0.0)
    with pytest.raises(ValueError, match=r"^delta=1\.0: must be between 0 and 1, 1 excluded$"):
        ApproxDP(1.0, 1.0)
    with pytest.raises(ValueError, match=r"^delta=1: must be between 0 and 1, both excluded"):
        compose(PureDP(1.0), delta=1)
    with pytest.raises(ValueError, match=r"'add-remove' and for 'replace-one' .* do not mix; .*\.to_replace_one\(\)"):
        compose(PureDP(1.0), PureDP(1.0, **AR))
    with pytest.raises(ValueError, match=r"do not mix"):
        PureDP(1.0) & ZCDP(1.0, **AR)
    with pytest.raises(ValueError, match=r"^delta=1e-06: the deltas of the parts add up to 2e-06; take a larger one"):
        compose((ApproxDP(1.0, 1e-6), 2), delta=1e-6)
    with pytest.raises(ValueError, match=r"^guarantees: their deltas add up to 1\.5, .*; take fewer, or smaller"):
        compose((ApproxDP(1.0, 0.5), 3))
    with pytest.raises(ValueError, match=r"^using='advanced': gives no epsilon for these; take 'best'"):
        compose(PureDP(1.0), PureDP(2.0), delta=1e-6, using="advanced")
    with pytest.raises(ValueError, match=r"^using='advanced': gives no sum without a delta; pass delta="):
        compose(PureDP(1.0), using="advanced")
    with pytest.raises(ValueError, match=r"^using='zcdp': gives no epsilon for these"):
        compose(Renyi.gaussian(1.0), delta=1e-6, using="zcdp")
    with pytest.raises(ValueError, match=r"^using='pld': gives no epsilon for these; take 'best'"):
        compose((GaussianDP(0.1), 100), delta=1e-6, using="pld")


def test_compose_takes_the_rows_of_a_budget():
    budget = Budget(epsilon=3.0)
    for epsilon in (0.25, 0.5, 0.25):
        fastdp.laplace(3, sensitivity=1, epsilon=epsilon, budget=budget)
    rows = budget.releases
    assert compose(*rows, delta=1e-6) == compose(*(row.guarantee for row in rows), delta=1e-6)
    assert compose(*rows, (PureDP(1.0), 2), using="basic") == PureDP(3.0)
    fastdp.laplace(3, sensitivity=1, epsilon=0.25, budget=budget, rng=fastdp.Randomness(seed=1))
    assert compose(*budget.releases).seeded
    with pytest.raises(ValueError, match=r"of a budget's rows: compose\(\*budget\.releases\)$"):
        compose(budget.releases)


def test_what_compose_takes():
    with pytest.raises(ValueError, match=r"^guarantees: must be at least one"):
        compose()
    with pytest.raises(ValueError, match=r"^guarantees: must be at least one"):
        compose(delta=1e-6)
    for item in (1.0, "PureDP(1)", [PureDP(1.0)], (PureDP(1.0),), (2, PureDP(1.0)), (PureDP(1.0), 2, 3), PureDP, None):
        with pytest.raises(ValueError, match=r"^guarantees: .*: must be a guarantee or a pair \(guarantee, count\)"):
            compose(PureDP(1.0), item)
    for count in (0, -1, 1.0, 2.5, True, "2", None, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"^count=.*: must be an integer >= 1"):
            compose((PureDP(1.0), count))
    assert compose((PureDP(1.0), np.int64(2)), using="basic") == PureDP(2.0)
    for using in ("Best", "kov", None, 3):
        with pytest.raises(ValueError, match=r"^using=.*: must be one of 'best', 'basic'"):
            compose(PureDP(1.0), using=using)
    with pytest.raises(ValueError, match=r"^parts: must be at least one"):
        AllOf()


def test_neighbors_and_sizes():
    for neighbors in ("add", "", None, "replace_one", 1):
        for make in (
            PureDP,
            ZCDP,
            BoundedRange,
            lambda e, **n: ApproxDP(e, 0.1, **n),
            lambda e, **n: Renyi({2: e}, **n),
        ):
            with pytest.raises(ValueError, match=r"^neighbors=.*: must be one of 'replace-one', 'add-remove'"):
                make(1.0, neighbors=neighbors)
    for size in (0, -1, 1.5, True, "2", None):
        for guarantee in VALUES:
            with pytest.raises(ValueError, match=r"^size=.*: must be an integer >= 1"):
                guarantee.group(size)


def test_curves():
    for bad in (-1.0, math.nan, "1", None, -math.inf, True):
        with pytest.raises(ValueError, match=r"^curve at order .*: must be "):
            Renyi(lambda a, bad=bad: bad)
        with pytest.raises(ValueError, match=r"^curve at order 2=.*: must be "):
            Renyi({2: bad, 3: 1.0})
        with pytest.raises(ValueError, match=r"^curve at order 1\.00001=.*: must be "):
            Renyi({2: 0.5, 1.00001: bad})  # an order that is not even used
    for orders in ({1: 0.5}, {0.5: 0.5, 2: 1.0}, {}):
        with pytest.raises(ValueError, match=r"^curve: orders .*: must be at least one order, all > 1"):
            Renyi(orders)
    for order in ("2", math.nan, math.inf, True, -3):
        with pytest.raises(ValueError, match=r"^order=.*: must be "):
            Renyi({order: 0.5})
    for curve in (0.5, [0.5, 0.7], (0.5, 0.7), "curve", None, {2, 3}):
        with pytest.raises(ValueError, match=r"^curve: type .*: must be a function of the order, or a mapping"):
            Renyi(curve)
    for nothing in (lambda a: math.inf, {1.0001: 3.0}, {2: math.inf}):
        with pytest.raises(ValueError, match=r"^curve: no finite bound at an order between"):
            Renyi(nothing)
    with pytest.raises(ValueError, match=r"^curve: no finite bound"):
        Renyi.gaussian(1e-200)
