"""Budgets that add up squares of mu: what they count, what they let through, and that their filter keeps delta."""

import math
import re
from fractions import Fraction
from functools import lru_cache

import pytest

import fastdp
from fastdp import ZCDP, ApproxDP, BoundedRange, Budget, BudgetExceeded, GaussianDP, PureDP, Renyi
from fastdp.mechanisms.noise import gaussian_noise
from fastdp.privacy import gaussian_curve
from fastdp.privacy.reservations import Reservation

GOAL = {"epsilon": 1.0, "delta": 1e-6}


def spend(budget, guarantee):
    Reservation(budget, guarantee, "test", {}).commit()


def gaussian(**options):
    return Budget(**(GOAL | options), theorem="gaussian")


def test_squares_of_mu_add_up_exactly():
    limit = gaussian_curve.mu_of_goal(**GOAL)
    budget, each = gaussian(), math.nextafter(limit / 16, 0)
    for _ in range(256):
        spend(budget, GaussianDP(each))
    assert 256 * Fraction(each) ** 2 <= Fraction(limit) ** 2
    assert budget.spent.delta == 1e-6
    assert budget.spent.epsilon == pytest.approx(1.0, rel=1e-9)
    assert budget.spent.epsilon <= 1.0
    with pytest.raises(BudgetExceeded, match=r"left of \(1, 1e-06\)-DP \(gaussian\): epsilon=0.0 or mu="):
        spend(budget, GaussianDP(each))
    assert len(budget.releases) == 256


def test_totals_are_those_of_compose():
    budget = gaussian(epsilon=3.0)
    for guarantee in (GaussianDP(0.1), ZCDP(0.02, mu=0.2), PureDP(0.1), BoundedRange(0.2), ZCDP(1e-4)):
        spend(budget, guarantee)
    mus = [0.1, 0.2, gaussian_curve.mu_of_pure(0.1), gaussian_curve.mu_of_range(0.2), gaussian_curve.mu_of_rho(1e-4)]
    whole = GaussianDP(math.sqrt(math.fsum(mu * mu for mu in mus)))
    assert budget.spent.epsilon == pytest.approx(whole.to_approx(1e-6).epsilon, rel=1e-9)
    running = [row.total.epsilon for row in budget.releases]
    assert running == sorted(running)
    assert running[0] == pytest.approx(GaussianDP(0.1).to_approx(1e-6).epsilon, rel=1e-12)


def test_noise_is_counted_by_its_mu():
    with gaussian() as budget:
        for _ in range(4):
            fastdp.gaussian(1000, sensitivity=1000, rho=0.002)
        released = budget.releases[0].guarantee
        assert GaussianDP.of(released).mu == pytest.approx(math.sqrt(0.004), rel=1e-4)
    whole = GaussianDP(2 * GaussianDP.of(released).mu)
    assert budget.spent.epsilon == pytest.approx(whole.to_approx(1e-6).epsilon, rel=1e-9)
    zcdp = Budget(**GOAL, theorem="zcdp")
    for _ in range(4):
        spend(zcdp, released)
    assert budget.spent.epsilon < 0.95 * zcdp.spent.epsilon


def test_a_pure_release_goes_through_while_epsilons_have_room():
    budget = gaussian()
    for _ in range(10):
        spend(budget, PureDP(0.1))
    assert budget.spent == PureDP(1.0)
    with pytest.raises(BudgetExceeded):
        spend(budget, PureDP(1e-9))
    with pytest.raises(BudgetExceeded, match="nothing more fits"):
        spend(budget, GaussianDP(1e-3))


def test_what_fits_is_told():
    budget = gaussian()
    spend(budget, GaussianDP(0.1))
    with pytest.raises(BudgetExceeded) as refused:
        spend(budget, GaussianDP(1.0))
    fits = float(str(refused.value).rpartition("mu=")[2].removesuffix(" would fit"))
    assert budget.fits(GaussianDP(fits))
    assert not budget.fits(GaussianDP(fits * (1 + 1e-9)))
    left = budget.left.epsilon
    assert budget.fits(PureDP(left))
    assert not budget.fits(PureDP(left * (1 + 1e-8)))


def noise_of(values, sensitivity, rho):
    return gaussian_noise(isinstance(values[0], int), len(values), sensitivity, rho, None, None, None)


@pytest.mark.parametrize("values", [[3, 5, 8, 1], [0.3, 0.5], [1] * 1000], ids=["integers", "floats", "many"])
@pytest.mark.parametrize("price", [{"rho": 0.1}, {"rho": 0.5}, {"epsilon": 5.0, "delta": 1e-7}], ids=str)
@pytest.mark.parametrize("sensitivity", [1, math.sqrt(2), 3, 1000.0])
def test_what_fits_is_told_in_the_rho_that_gaussian_takes(values, price, sensitivity):
    for spent in (0.0, 0.1, 0.2366):
        budget = gaussian()
        if spent:
            spend(budget, GaussianDP(spent))
        with pytest.raises(BudgetExceeded, match=r"; rho=.* of Gaussian noise, or mu=.* would fit$") as refused:
            fastdp.gaussian(values, sensitivity=sensitivity, budget=budget, **price)
        rho = float(re.search(r"rho=(\S+) of Gaussian", str(refused.value))[1])
        made = [noise_of(values, sensitivity, each).guarantee for each in (rho, 1.6 * rho)]
        assert [budget.fits(guarantee) for guarantee in made] == [True, False]


def test_no_rho_is_told_where_it_would_not_fit():
    for guarantee in (GaussianDP(1.0), ZCDP(0.5), ZCDP(0.5) & Renyi.gaussian(1.0)):
        with pytest.raises(BudgetExceeded, match=r"; mu=\S+ would fit$"):
            spend(gaussian(), guarantee)


def test_what_has_no_mu_is_refused():
    for guarantee in (ApproxDP(0.1, 1e-9), Renyi.gaussian(10.0)):
        with pytest.raises(ValueError, match="asks for") as refused:
            spend(gaussian(), guarantee)
        assert not isinstance(refused.value, BudgetExceeded)
    with pytest.raises(ValueError, match=r"^theorem='gaussian': needs a delta > 0"):
        Budget(epsilon=1.0, theorem="gaussian")


def test_a_large_delta_is_stated_where_it_pays_for_all():
    budget = Budget(epsilon=1.0, delta=0.9, theorem="gaussian")
    spend(budget, GaussianDP(0.5))
    assert budget.spent == ApproxDP(0.0, 0.9)


# --- the filter, by dynamic programming over all analysts


COSTS = (0.5, 1.0, 2.0, 4.0)  # squares of mu, of which at most 4 may be spent


def coins_of(mu):
    """Tests of mu-Gaussian DP with two results: (P, Q) of "yes", on the boundary, at a few places; both ways."""
    found = []
    for place in (-1.0, 0.0, 0.5, 1.0, 2.0):
        p, q = (0.5 * math.erfc((place - shift) / math.sqrt(2)) for shift in (mu, 0.0))
        found += [(p, q), (q, p)]
    return found


@lru_cache(None)
def most(left, steps, likelihood, epsilon):
    """The most delta, per unit of Q, that an analyst reaches who may spend `left`, after results of this likelihood."""
    best = max(0.0, likelihood - math.exp(epsilon))
    if not steps:
        return best
    for cost in COSTS:
        if cost <= left:
            for p, q in coins_of(math.sqrt(cost)):
                reached = sum(
                    b * most(left - cost, steps - 1, round(likelihood * a / b, 12), epsilon)
                    for a, b in ((p, q), (1 - p, 1 - q))
                )
                best = max(best, reached)
    return best


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_analyst_passes_the_total_by_choosing_on_the_way(epsilon):
    """Two results a release, any mu whose square fits, chosen after the results so far."""
    limit = gaussian_curve.delta_of_mu(2.0, epsilon)
    reached = most(4.0, 3, 1.0, epsilon)
    assert reached <= limit * (1 + 1e-9)
    assert reached > 0.5 * limit, "it is no empty test"
