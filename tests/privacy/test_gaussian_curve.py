"""Gaussian DP: its curve against 80 digits, what implies it by enumeration of tests, sums, and the way back."""

import math
from fractions import Fraction

import mpmath
import pytest

import fastdp
from fastdp import ZCDP, AllOf, ApproxDP, BoundedRange, GaussianDP, PureDP, Renyi, compose, share
from fastdp.privacy import gaussian_curve

MP = mpmath.mp.clone()
MP.dps = 80

MUS = [1e-11, 1e-6, 1e-3, 0.03, 0.5, 1.0, 3.0, 12.0, 60.0, 400.0]
DELTAS = [0.9, 0.1, 1e-3, 1e-6, 1e-9, 1e-15, 1e-60, 1e-250]


def tail(x):
    return MP.erfc(x / MP.sqrt(2)) / 2


def delta_of(mu, epsilon):
    mu, epsilon = MP.mpf(mu), MP.mpf(epsilon)
    return tail(epsilon / mu - mu / 2) - MP.exp(epsilon) * tail(epsilon / mu + mu / 2)


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_of_mu_is_above_the_least_by_a_billionth_at_most(mu, delta):
    epsilon = gaussian_curve.epsilon_of_mu(mu, delta)
    assert delta_of(mu, epsilon) <= delta
    assert epsilon == 0 or delta_of(mu, epsilon * (1 - 1e-10)) > delta


@pytest.mark.parametrize("mu", MUS)
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.1, 1.0, 5.0, 40.0, 300.0])
def test_delta_of_mu_is_rounded_up(mu, epsilon):
    exact = delta_of(mu, epsilon)
    found = gaussian_curve.delta_of_mu(mu, epsilon)
    assert exact <= found <= exact * (1 + MP.mpf(2) ** -52) + MP.mpf("1e-49")


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (10.0, 0.1), (1e-3, 0.5), (300.0, 1e-60)])
def test_mu_of_a_goal_is_below_the_greatest_by_a_billionth_at_most(epsilon, delta):
    mu = gaussian_curve.mu_of_goal(epsilon, delta)
    assert delta_of(mu, epsilon) <= delta < delta_of(mu * (1 + 1e-10), epsilon)
    assert GaussianDP(mu).implies(ApproxDP(epsilon * (1 + 1e-12), delta))


@pytest.mark.parametrize("epsilon", [1e-12, 1e-7, 1.001e-6, 1e-3, 0.1, 1.0, 2.0, 9.0, 80.0, 700.0, 3999.0, 5000.0])
def test_mu_of_pure_dp_is_above_the_least(epsilon):
    mu = gaussian_curve.mu_of_pure(epsilon)
    told = 1 / (1 + MP.exp(-MP.mpf(epsilon)))  # truly
    if epsilon < 100:
        assert told <= 1 - tail(MP.mpf(mu) / 2)
        assert told > 1 - tail(MP.mpf(mu) / 2 * (1 - MP.mpf("1e-11")))
    else:
        lie = 1 / (1 + MP.exp(MP.mpf(epsilon)))
        assert tail(MP.mpf(mu) / 2) <= lie
        assert epsilon > 4000 or tail(MP.mpf(mu) / 2 * (1 - MP.mpf("1e-11"))) > lie
    assert GaussianDP.of(PureDP(epsilon)).mu == pytest.approx(mu, rel=1e-15)
    assert GaussianDP.of(BoundedRange(2 * epsilon)).mu == mu


def normal_power(x, mu):
    return MP.ncdf(-MP.sqrt(2) * MP.erfinv(1 - 2 * x) + mu)


@pytest.mark.parametrize("eta", [0.2, 1.0, 3.0])
def test_every_pair_of_bounded_range_is_covered(eta):
    """All sets of the worst pairs, those with two likelihood ratios, for 40 places of the interval."""
    mu = MP.mpf(GaussianDP.of(BoundedRange(eta)).mu)
    reached = 0
    for i in range(1, 40):
        t = MP.mpf(eta) * i / 40
        q = (MP.exp(-t) - MP.exp(-MP.mpf(eta))) / (1 - MP.exp(-MP.mpf(eta)))
        p = q * MP.exp(t)
        power = normal_power(q, mu)
        assert p <= power * (1 + MP.mpf("1e-25"))
        reached = max(reached, p / power)
    assert reached > 1 - 1e-11, "in the middle no smaller mu does"


def test_sums_of_gaussians_are_one_gaussian():
    together = compose((GaussianDP(0.3), 4), GaussianDP(0.8), delta=1e-6)
    assert together.theorem == "Gaussian DP"
    assert together.epsilon == pytest.approx(GaussianDP(1.0).to_approx(1e-6).epsilon, rel=1e-12)
    assert together.epsilon >= GaussianDP(1.0).to_approx(1e-6).epsilon * (1 - 1e-15)
    assert compose((GaussianDP(0.25), 16), using="gaussian") == GaussianDP(1.0)
    mixed = compose(GaussianDP(0.3), PureDP(0.1), using="gaussian")
    square = Fraction(0.3) ** 2 + Fraction(gaussian_curve.mu_of_pure(0.1)) ** 2
    assert square <= Fraction(mixed.mu) ** 2 <= square * (1 + Fraction(1, 10**15))


def test_gaussian_noise_in_a_plan_costs_what_its_mu_does():
    """Guarantees that are equal but for what is known of mu are not taken for one another."""
    known, unknown = ZCDP(0.02, mu=0.2), ZCDP(0.02)
    both = compose(known, unknown, delta=1e-6)
    assert both == compose(unknown, known, delta=1e-6)
    assert both.epsilon == compose((unknown, 2), delta=1e-6).epsilon
    assert compose((known, 2), delta=1e-6).epsilon < both.epsilon
    told = [AllOf(ApproxDP(9.0, 1e-9), part) for part in (known, unknown)]
    assert compose(*told, delta=1e-6) == compose(*told[::-1], delta=1e-6)
    with fastdp.Budget(epsilon=10, delta=1e-6, theorem="zcdp") as budget:
        for _ in range(16):
            fastdp.gaussian(100, sensitivity=1000, rho=0.02)
    plan = [release.guarantee for release in budget.releases]
    exact = GaussianDP(math.sqrt(16 * 0.04)).to_approx(1e-6).epsilon
    assert exact <= compose(*plan, delta=1e-6).epsilon <= exact * (1 + 1e-3)
    assert budget.spent.epsilon > exact * 1.05  # by zCDP


def test_what_implies_what():
    assert GaussianDP(0.5).implies(GaussianDP(0.5))
    assert not GaussianDP(0.5).implies(GaussianDP(0.49))
    assert GaussianDP(1.0).implies(ZCDP(0.5))
    assert not ZCDP(0.5).implies(GaussianDP(1.9))
    assert ZCDP(0.5).implies(GaussianDP(2.0))
    assert PureDP(1.0).implies(GaussianDP(1.2321))
    assert not PureDP(1.0).implies(GaussianDP(1.2320))
    assert GaussianDP(0.5, neighbors="add-remove").to_replace_one() == GaussianDP(1.0)
    assert GaussianDP(0.5).group(3) == GaussianDP(1.5)
    for guarantee in (ApproxDP(1.0, 1e-6), Renyi.gaussian(1.0)):
        with pytest.raises(ValueError, match="does not imply Gaussian DP"):
            GaussianDP.of(guarantee)
    assert GaussianDP.of(ApproxDP(1.0, 1e-6) & ZCDP(0.02, mu=0.2)).mu == 0.2


def test_shares_of_gaussian_noise():
    each = share(ApproxDP(1.0, 1e-6), 1000, GaussianDP)
    assert each == pytest.approx(gaussian_curve.mu_of_goal(1.0, 1e-6) / math.sqrt(1000), rel=1e-9)
    assert share(GaussianDP(1.0), 100, GaussianDP) == pytest.approx(0.1, rel=1e-9)


def test_numbers_beyond_the_range_of_the_formula():
    assert gaussian_curve.epsilon_of_mu(0.0, 1e-6) == 0
    assert gaussian_curve.epsilon_of_mu(5000.0, 1e-6) == math.inf
    assert gaussian_curve.epsilon_of_mu(1e-300, 1e-15) == gaussian_curve.epsilon_of_mu(1e-12, 1e-15)
    assert gaussian_curve.delta_of_mu(0.0, 0.0) == 0
    assert gaussian_curve.delta_of_mu(5000.0, 1e9) == 1
    assert gaussian_curve.mu_of_pure(math.inf) == gaussian_curve.mu_of_rho(math.inf) == math.inf
    for epsilon, delta in ((1e-200, 0.5), (1e-50, 1e-200), (1.0, 1e-310), (701.0, 0.5)):
        with pytest.raises(ValueError, match="out of reach"):
            gaussian_curve.mu_of_goal(epsilon, delta)
    for epsilon, delta in ((1e-9, 1e-15), (1e-11, 1e-9), (1e-90, 0.3), (700.0, 1e-290), (1e-5, 1 - 1e-12)):
        mu = gaussian_curve.mu_of_goal(epsilon, delta)
        assert delta_of(mu, epsilon) <= delta < delta_of(mu * 1.001, epsilon)
    with pytest.raises(ValueError, match=r"^mu=-1: must be >= 0"):
        GaussianDP(-1)
