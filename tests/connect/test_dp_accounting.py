"""Events for dp-accounting: what covers what, by numbers; totals of both accountants against `compose` and truth."""

from __future__ import annotations

import itertools
import pickle
import sys
from math import comb, exp, inf, log, sqrt, tanh
from typing import Any

import numpy as np
import pytest
from scipy import special, stats

import fastdp
from fastdp import ZCDP, ApproxDP, BoundedRange, Budget, GaussianDP, PureDP, Renyi, compose
from fastdp.connect import dp_accounting as connect
from fastdp.privacy.calibration import gaussian_mu
from fastdp.privacy.gaussian_curve import mu_of_range

da = pytest.importorskip("dp_accounting")

EVENTS = da.dp_event
REPLACE, ADD = da.NeighboringRelation.REPLACE_ONE, da.NeighboringRelation.ADD_OR_REMOVE_ONE
RELATIONS = {"replace-one": REPLACE, "add-remove": ADD}
ORDERS = [1 + 10 ** (k / 20) for k in range(-40, 61)]


def rdp(neighbors: str) -> Any:
    return da.rdp.RdpAccountant(ORDERS, RELATIONS[neighbors])


def pld(neighbors: str) -> Any:
    return da.pld.PLDAccountant(RELATIONS[neighbors], value_discretization_interval=1e-3)


def times(accountant: Any, event: Any, count: int) -> Any:
    """As `compose(event, count)` of accountants that count everything."""
    for _ in range(count):
        accountant.compose(event)
    return accountant


KINDS = [rdp, pld]


# --- what covers what: trade-off functions on a grid


def gaussian_power(q: Any, mu: float) -> Any:
    """The largest probability of a set under N(mu, 1) that has probability q under N(0, 1)."""
    return stats.norm.cdf(stats.norm.ppf(q) + mu)


@pytest.mark.parametrize("eta", [1e-6, 0.01, 0.3, 0.5, 1.0, 3.0, 10.0, 40.0])
def test_a_gaussian_covers_bounded_range(eta: float) -> None:
    y = np.linspace(-40 - eta, 40 + eta, 20_001)
    mu = mu_of_range(eta)
    q = special.expit(-y[y > 0])  # of the log odds; the best test has odds e^eta times as large
    assert (special.expit(-y[y > 0] + eta) <= gaussian_power(q, mu) * (1 + 1e-9)).all()
    smaller = mu * (1 - 1e-6)
    half = special.expit(-eta / 2)
    assert special.expit(eta / 2) > gaussian_power(half, smaller)  # no smaller one does


def test_a_gaussian_covers_zcdp() -> None:
    """The worst coins that are rho-zCDP, found by bisection; and the constants of theorem 2."""
    orders = 1 + np.logspace(-3, 3, 400)

    def divergence(p: float, q: float) -> float:
        terms = np.logaddexp(
            orders * log(p) + (1 - orders) * log(q), orders * np.log1p(-p) + (1 - orders) * np.log1p(-q)
        )
        return float(np.max(terms / (orders - 1) / orders))

    for rho in (1e-4, 0.01, 0.3, 2.0, 8.0):
        worst = 0.0
        for q in (*10.0 ** np.arange(-12, 0), 0.2, 0.3, 0.4, 0.5, 0.7, 0.9):
            low, high = q, 1 - 1e-12
            for _ in range(60):
                middle = (low + high) / 2
                legal = max(divergence(middle, q), divergence(q, middle)) <= rho
                low, high = (middle, high) if legal else (low, middle)
            worst = max(worst, stats.norm.ppf(low) - stats.norm.ppf(q))
        assert sqrt(2 * rho) * 1.0 < worst * 1.3
        assert worst <= 2 * sqrt(2 * rho)
    x = np.linspace(0, 2.8, 2801)
    mills = lambda x: stats.norm.pdf(x) / stats.norm.sf(x)  # noqa: E731
    g = lambda x: np.sqrt(-2 * stats.norm.logsf(x))  # noqa: E731
    slope = mills(x) / g(x) + mills(-x) / g(-x)
    assert slope.min() > 1.0
    x = np.linspace(2.8, 30, 1000)
    assert (g(x) - g(-x) >= x).all()
    assert (mills(x) / g(x) >= 0.5).all()


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 0.5, 0.999, 1.0, 3.0, 12.0])
def test_laplace_noise_covers_pure_dp(epsilon: float) -> None:
    (_, laplace) = PureDP(epsilon, neighbors="add-remove").dp_event().events
    loss = 1 / laplace.noise_multiplier
    levels = np.linspace(0, epsilon, 1001)
    response = (exp(epsilon) - np.exp(levels)) / (1 + exp(epsilon))  # its delta at each epsilon
    assert (-np.expm1((levels - loss) / 2) >= response * (1 - 1e-9)).all()
    assert 1 - exp(-loss * (1 - 1e-6) / 2) < tanh(epsilon / 2)  # and no less noise would


def test_discrete_gaussians_are_gaussian_dp() -> None:
    for sensitivity, sigma in itertools.product((1, 2, 5), (0.5, 0.8, 1.0, 2.0, 10.0)):
        mu = gaussian_mu(float(sensitivity), sigma, 1)
        z = np.arange(-400, 401)
        mass = np.exp(-(z**2) / (2 * sigma**2))
        mass /= mass.sum()
        tails = mass[::-1].cumsum()[::-1]  # Pr[Z >= z]: the best tests are thresholds
        here, there = tails[sensitivity:], tails[:-sensitivity]
        seen = (here > 1e-14) & (there < 1 - 1e-12)
        assert (there[seen] <= gaussian_power(here[seen], mu) * (1 + 1e-9)).all()
        if sigma >= 2:
            assert mu <= sensitivity / sigma * 1.35
    assert gaussian_mu(2.0**20, 2.0**21, 1000) == pytest.approx(0.5, rel=1e-8)
    assert gaussian_mu(1.0, 0.3, 1) == inf
    assert gaussian_mu(1.0, 3.0, 10**6) > gaussian_mu(1.0, 3.0, 1) > 1 / 3


# --- totals


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
def test_pure_releases_add_up_to_the_exact_total(kind: Any, neighbors: Any, epsilon: float) -> None:
    """The exact total of k epsilon-DP releases is that of k coins: Kairouz, Oh and Viswanath."""
    k, delta = 20, 1e-5
    one = PureDP(epsilon, neighbors=neighbors)

    def delta_at(total: float) -> float:
        terms = (
            comb(k, i) * (exp((k - i) * epsilon) - exp(total + i * epsilon))
            for i in range(k + 1)
            if (k - 2 * i) * epsilon > total
        )
        return sum(terms) / (1 + exp(epsilon)) ** k

    low, high = 0.0, k * epsilon
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    accountant = kind(neighbors)
    ours = compose((one, k), delta=delta, using="renyi").epsilon
    laplace = 1 + (neighbors == "add-remove") * epsilon / 3  # in place of randomised response costs so much
    for event, slack in ((one.dp_event(accountant), laplace if kind is rdp else 1), (one.dp_event(), laplace)):
        total = times(kind(neighbors), event, k).get_epsilon(delta)
        assert total >= high * (1 - 1e-4)
        assert total <= (high if kind is pld else ours) * slack * (1.01 if epsilon > 0.1 else 1.03)
    if neighbors == "replace-one":  # randomised response, which `compose` has as well
        total = times(rdp(neighbors), one.dp_event(), k).get_epsilon(delta)
        assert total == pytest.approx(compose((one, k), delta=delta, using="renyi").epsilon, rel=0.005)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_gaussian_releases_add_up(neighbors: Any) -> None:
    with Budget(epsilon=50, delta=1e-5, theorem="zcdp", neighbors=neighbors) as budget:
        for _ in range(4):
            fastdp.gaussian(np.zeros(100), sensitivity=1.0, rho=0.01, neighbors=neighbors)
        fastdp.gaussian(np.zeros(100, int), sensitivity=1000.0, epsilon=0.5, delta=1e-7, neighbors=neighbors)
    delta = 1e-5
    rows = budget.releases
    ours = compose(*(row.guarantee for row in rows), delta=delta, using="zcdp").epsilon
    best = compose(*(row.guarantee for row in rows), delta=delta).epsilon
    mu = sqrt(sum(2 * row.guarantee.to_zcdp().rho for row in rows))
    by_curve = _analytic(mu, delta)
    totals = {}
    for kind in KINDS:
        accountant = kind(neighbors)
        for row in rows:
            accountant.compose(row.dp_event(accountant))
        together = kind(neighbors).compose(rows.dp_event(kind(neighbors)))
        totals[kind] = accountant.get_epsilon(delta)
        assert together.get_epsilon(delta) == pytest.approx(totals[kind], rel=1e-6)
    assert totals[rdp] == pytest.approx(ours, rel=0.005)
    assert totals[pld] == pytest.approx(by_curve, rel=0.002)
    assert by_curve * (1 - 1e-9) <= best <= by_curve * 1.001 < ours
    # the event for both: the same for an RdpAccountant, and never less than there is for the other
    assert rdp(neighbors).compose(rows.dp_event()).get_epsilon(delta) == pytest.approx(ours, rel=0.005)
    assert pld(neighbors).compose(rows.dp_event()).get_epsilon(delta) >= by_curve * (1 - 1e-4)


def _analytic(mu: float, delta: float) -> float:
    """The epsilon of N(0, 1) against N(mu, 1) at delta (Balle and Wang)."""
    low, high = 0.0, 100.0
    for _ in range(80):
        e = (low + high) / 2
        found = stats.norm.cdf(mu / 2 - e / mu) - exp(e) * stats.norm.cdf(-mu / 2 - e / mu)
        low, high = (e, high) if found > delta else (low, e)
    return high


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_choices_add_up(neighbors: Any) -> None:
    one, k, delta = BoundedRange(0.2, neighbors=neighbors), 50, 1e-6
    ours = compose((one, k), delta=delta, using="zcdp").epsilon
    assert rdp(neighbors).compose(one.dp_event(rdp(neighbors)), k).get_epsilon(delta) == pytest.approx(ours, rel=0.005)
    # the worst fixed pairs of bounded range, of which every position of the interval is one
    total = pld(neighbors).compose(one.dp_event(pld(neighbors)), k).get_epsilon(delta)
    for t in (0.05, 0.1, 0.15):
        q = (exp(-t) - exp(-0.2)) / (1 - exp(-0.2))
        p = q * exp(t)
        losses = np.array([i * t + (k - i) * (t - 0.2) for i in range(k + 1)])
        mass = stats.binom.pmf(np.arange(k + 1), k, p)
        assert np.sum(np.maximum(mass * (1 - np.exp(total - losses)), 0)) <= delta
    assert total <= 1.35 * ours


def test_mixed_releases_and_their_composed_event() -> None:
    guarantees = [PureDP(0.2), ZCDP(0.02), BoundedRange(0.3), ApproxDP(0.5, 1e-9) & ZCDP(0.004)]
    for kind in KINDS:
        event = connect.composed(guarantees, kind("replace-one"))
        assert isinstance(event, EVENTS.ComposedDpEvent)
        assert len(event.events) == 4
        total = kind("replace-one").compose(event).get_epsilon(1e-5)
        ours = compose(*guarantees, delta=1e-5).epsilon
        assert 0.5 < total < (1.05 * ours if kind is rdp else 2 * ours)
        assert kind("replace-one").supports(connect.composed(guarantees))
    assert isinstance(connect.composed([]), EVENTS.NoOpDpEvent)


def test_no_count_is_lost() -> None:
    """The PLDAccountant of dp-accounting 0.6 counts randomised response once: it must not be let to."""
    one = PureDP(0.5)
    for kind in KINDS:
        for event in (one.dp_event(), one.dp_event(kind("replace-one"))):
            if connect._responses_count(da.pld.PLDAccountant) or not isinstance(event, EVENTS.SelfComposedDpEvent):
                total = kind("replace-one").compose(event, 3).get_epsilon(1e-12)
            else:
                for counted in ((event, 3), (EVENTS.SelfComposedDpEvent(event, 3), 1)):
                    with pytest.raises(ValueError, match="count=3: must be 1"):
                        kind("replace-one").compose(*counted)
                total = times(kind("replace-one"), event, 3).get_epsilon(1e-12)
            assert total == pytest.approx(1.5, abs=0.03)
    for guarantee in (ZCDP(0.1), BoundedRange(0.1)):
        for kind in KINDS:
            for event in (guarantee.dp_event(), guarantee.dp_event(kind("replace-one"))):
                counted = kind("replace-one").compose(event, 3).get_epsilon(1e-6)
                assert counted == pytest.approx(times(kind("replace-one"), event, 3).get_epsilon(1e-6), rel=1e-3)
    assert pickle.loads(pickle.dumps(one.dp_event())) == one.dp_event()


# --- relations


GUARANTEES = [PureDP, ZCDP, BoundedRange, lambda x, **named: ZCDP(x, mu=2 * x, **named)]


@pytest.mark.parametrize("make", GUARANTEES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parameter", [0.0, 1e-3, 0.5, 3.0])
@pytest.mark.parametrize(("neighbors", "other"), [("replace-one", "add-remove"), ("add-remove", "replace-one")])
def test_an_accountant_for_the_other_relation_refuses(
    make: Any, kind: Any, parameter: float, neighbors: str, other: str
) -> None:
    guarantee = make(parameter, neighbors=neighbors)
    event = guarantee.dp_event()
    assert kind(neighbors).supports(event)
    assert kind(neighbors).compose(event).get_epsilon(1e-5) < inf
    assert not kind(other).supports(event)
    with pytest.raises(da.UnsupportedEventError):
        kind(other).compose(event)
    mine = kind(neighbors)
    mine.compose(guarantee.dp_event(mine))
    with pytest.raises(ValueError, match=rf"accountant: is for {RELATIONS[other].name}: must be for"):
        guarantee.dp_event(kind(other))


def test_an_accountant_for_special_records_is_refused() -> None:
    special_one = da.pld.PLDAccountant(da.NeighboringRelation.REPLACE_SPECIAL)
    with pytest.raises(ValueError, match="REPLACE_SPECIAL: must be for REPLACE_ONE"):
        PureDP(1.0).dp_event(special_one)
    with pytest.raises(ValueError, match="accountant: type int: must be an accountant of dp_accounting"):
        PureDP(1.0).dp_event(3)
    assert connect.relation_of("replace-one") is REPLACE
    assert connect.relation_of("add-remove") is ADD


def test_add_remove_events_as_replacements() -> None:
    one = PureDP(0.5, neighbors="add-remove")
    total = pld("replace-one").compose(one.to_replace_one().dp_event()).get_epsilon(1e-9)
    assert total == pytest.approx(1.0, abs=1e-3)


# --- what has no event


def test_a_delta_is_left_out_by_name_or_not_at_all() -> None:
    one = ApproxDP(0.3, 1e-8)
    with pytest.raises(ValueError, match=r"no event holds a delta: dp_event\(leak=1e-08\) leaves it out"):
        one.dp_event()
    with pytest.raises(ValueError, match="no event holds a delta"):
        one.dp_event(leak=1e-9)
    assert one.dp_event(leak=1e-8) == PureDP(0.3).dp_event()
    k, delta = 30, 1e-6
    total = times(rdp("replace-one"), one.dp_event(leak=1e-8), k).get_epsilon(delta - k * 1e-8)
    assert total == pytest.approx(compose((one, k), delta=delta, using="renyi").epsilon, rel=0.005)
    both = ApproxDP(0.1, 1e-8) & ZCDP(0.5)
    assert both.dp_event(rdp("replace-one")) == EVENTS.ZCDpEvent(rho=0.5)
    assert both.dp_event(rdp("replace-one"), leak=1e-8) == PureDP(0.1).dp_event(rdp("replace-one"))
    for leak in (-1, 1, "a"):
        with pytest.raises(ValueError, match="leak="):
            one.dp_event(leak=leak)


def test_a_renyi_curve_alone_has_no_event() -> None:
    with pytest.raises(ValueError, match="no event holds a Renyi curve"):
        Renyi.laplace(2.0).dp_event()
    assert rdp("replace-one").supports((Renyi.laplace(2.0) & PureDP(0.5)).dp_event())


def test_no_event_is_ever_nonprivate() -> None:
    for guarantee in (PureDP(800.0), BoundedRange(800.0), ZCDP(1e6)):
        for accountant in (rdp("replace-one"), pld("replace-one")):
            event = guarantee.dp_event(accountant)
            assert not isinstance(event, EVENTS.NonPrivateDpEvent | EVENTS.UnsupportedDpEvent)


# --- every result and every row


def results() -> dict[str, Any]:
    """One of everything that a release comes back as."""
    rng = np.random.default_rng(0)
    X = rng.random((4000, 3)) < 0.5
    y = X[:, 0] & X[:, 1]
    points = rng.uniform(-0.5, 0.5, (2000, 2))
    labels = points[:, 0] > 0
    whole = rng.integers(0, 100, (2000, 2))
    domain = fastdp.Domain(a=3, b=2)
    table = {"a": rng.integers(3, size=500), "b": rng.integers(2, size=500)}
    logistic, ball = fastdp.losses.Logistic(x_norm=1.0), fastdp.sets.Ball(1.0)
    squared = fastdp.losses.SquaredError(x_norm=1.0, y_bound=1.0)
    both = {"epsilon": 1.0, "delta": 1e-6}
    return {
        "AboveThreshold": fastdp.AboveThreshold(10, sensitivity=1, epsilon=1.0),
        "SparseVector": fastdp.SparseVector(10, sensitivity=1, epsilon=1.0, delta=1e-6, positives=99),
        "counter": fastdp.ContinualCounter(rho=0.5),
        "GumbelMax": fastdp.GumbelMax(sensitivity=1, epsilon=1.0),
        "conjunction": fastdp.learn_conjunction(X, y, k=2, epsilon=1.0),
        "box": fastdp.learn_box(whole, whole[:, 0] < 50, domain_bits=8, epsilon=1.0),
        "class": fastdp.learn_from_class(np.stack([y, ~y]), y, epsilon=1.0),
        "pgd": fastdp.noisy_projected_gradient_descent(points, labels, loss=logistic, over=ball, steps=5, **both),
        "erm": fastdp.exponential_erm(points[:, :1], loss=fastdp.losses.AbsoluteDeviation(1.0),
                                      over=fastdp.sets.Box(-1.0, 1.0), epsilon=1.0),
        "least squares": fastdp.noisy_least_squares(points, labels, loss=squared, over=ball, **both),
        "private": fastdp.private_erm(points, labels, loss=logistic, over=ball, **both),
        "sum": fastdp.vector_sum(points, clip=1.0, noise="gaussian", **both),
        "marginals": fastdp.release_marginals(table, domain, fastdp.marginals(domain, 1), **both),
        "mwem": fastdp.mwem(table, domain, fastdp.marginals(domain, 1), epsilon=1.0),
        "pmw": fastdp.PrivateMultiplicativeWeights(table, domain, epsilon=50.0, max_queries=10),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
def test_every_result_and_every_row_has_an_event() -> None:
    with Budget(epsilon=100, delta=1e-3, theorem="zcdp") as budget:
        made = results()
        fastdp.laplace([1, 2], sensitivity=1, epsilon=0.5)
        fastdp.exponential_mechanism([1, 2], sensitivity=1, epsilon=0.5)
        fastdp.permute_and_flip([1, 2], sensitivity=1, epsilon=0.5)
        fastdp.top_k([1, 2, 3], 2, sensitivity=1, epsilon=0.5, delta=1e-7)
        fastdp.median(np.arange(100.0), epsilon=0.5)
    for named, result in [*made.items(), *((row.mechanism, row) for row in budget.releases)]:
        guarantee = result.guarantee
        for kind in KINDS:
            accountant = kind("replace-one")
            accountant.compose(result.dp_event(accountant))
            assert 0 < accountant.get_epsilon(1e-5) < 60, named
            assert kind("replace-one").supports(result.dp_event()), named
        by_renyi = rdp("replace-one").compose(result.dp_event(rdp("replace-one"))).get_epsilon(1e-5)
        renyi = fastdp.ZCDP(guarantee.to_zcdp().rho).to_approx(1e-5).epsilon
        assert by_renyi <= renyi * 1.005, named
    together = rdp("replace-one").compose(budget.releases.dp_event(rdp("replace-one"))).get_epsilon(1e-3)
    ours = compose(*(row.guarantee for row in budget.releases), delta=1e-3, using="renyi").epsilon
    assert ours * 0.999 <= together <= ours * 1.05
    assert len(budget.releases) == len(made) + 5


def test_what_guarantees_nothing_has_no_event() -> None:
    X = np.eye(4, dtype=bool)
    with pytest.warns(fastdp.PrivacyWarning, match="not private"):
        rule = fastdp.learn_conjunction(X, X[:, 0], method="elimination")
    with pytest.raises(ValueError, match="has no guarantee"):
        rule.dp_event()
    plain = fastdp.SyntheticDistribution(np.ones(3), fastdp.Domain(a=3))
    with pytest.raises(ValueError, match="has no guarantee"):
        plain.dp_event()


def test_gaussian_releases_of_all_rooms_know_their_mu() -> None:
    """So that a PLDAccountant need not take twice the noise that there is."""
    points = np.random.default_rng(1).uniform(-0.5, 0.5, (2000, 2))
    release = fastdp.vector_sum(points, clip=1.0, noise="gaussian", epsilon=1.0, delta=1e-6)
    domain = fastdp.Domain(a=3, b=2)
    table = {"a": np.arange(500) % 3, "b": np.arange(500) % 2}
    tables = fastdp.release_marginals(
        table, domain, fastdp.marginals(domain, 1), epsilon=1.0, delta=1e-6, noise="gaussian"
    )
    planned = fastdp.release_marginals(
        table, domain, fastdp.marginals(domain, 2), epsilon=1.0, delta=1e-6, allocation="planned"
    )
    descent = fastdp.noisy_projected_gradient_descent(
        points, points[:, 0] > 0, loss=fastdp.losses.Logistic(x_norm=1.0), over=fastdp.sets.Ball(1.0), steps=5,
        epsilon=1.0, delta=1e-6, noise="gaussian",
    )  # fmt: skip
    for result in (release, tables, planned, descent):
        form = next(form for form in result.guarantee.forms() if not form.leak)
        assert form.mu == pytest.approx(sqrt(2 * form.rho), rel=1e-3)
        assert form.mu >= sqrt(2 * form.rho)
        total = pld("replace-one").compose(result.dp_event(pld("replace-one"))).get_epsilon(1e-6)
        assert total == pytest.approx(1.0, rel=0.02)  # what was asked for


# --- the library


def test_a_missing_or_old_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "version", lambda name: "0.5.1")
    with pytest.raises(ImportError, match=r"dp-accounting 0\.5\.1: must be at least 0\.6: .*fastdp\[accounting\]"):
        PureDP(1.0).dp_event()
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    with pytest.raises(ImportError, match=r"pip install 'fastdp\[accounting\]'"):
        PureDP(1.0).dp_event()


def test_mu_is_a_guarantee_of_gaussian_noise_only() -> None:
    assert ZCDP(0.5, mu=1.0) == ZCDP(0.5)
    assert (ZCDP(0.5, mu=1.0) & PureDP(3.0)).forms()[0].mu == 1.0
    assert compose((ZCDP(0.5, mu=1.0), 4)) == ZCDP(2.0) & GaussianDP(2.0)
    assert compose((ZCDP(0.5), 4)) == ZCDP(2.0)
    assert ZCDP(0.5, mu=1.0).group(2).forms()[0].mu == 2.0  # of k records, k mu
    with pytest.raises(ValueError, match="mu=-1"):
        ZCDP(0.5, mu=-1)
