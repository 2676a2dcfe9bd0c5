"""Who pays for measured answers, and when; priors; what happens when updates are spent; interrupts."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Budget, BudgetExceeded, Conjunction, Domain, Linear, Mask, PrivateMultiplicativeWeights, Randomness
from fastdp.answering import (
    measurements,
    multiplicative_weights_measured,
    multiplicative_weights_payments,
    multiplicative_weights_price,
)
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.factored_weights import FactoredWeights
from fastdp.answering.queries.query import bind
from fastdp.privacy.calibration import zcdp_rho
from fastdp.support.rounding import down, lower, up

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")

DOMAIN = Domain(a=6, b=4, c=3)
RNG = np.random.default_rng(1)
PEOPLE = np.stack([np.minimum(RNG.geometric(p, 20_000) - 1, s - 1) for p, s in ((0.7, 6), (0.5, 4), (0.9, 3))], 1)
PEOPLE[:, 2] = np.where(PEOPLE[:, 0] == 1, 2, PEOPLE[:, 2])
QUERIES = list(fastdp.marginals(DOMAIN, 2))
PRICE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
WHOLE = Fraction(zcdp_rho(1.0, 1e-6))


def online(**options: Any) -> PrivateMultiplicativeWeights:
    given = PRICE | {"max_queries": 10**4, "variant": "measured", "rng": Randomness(seed=4)} | options
    return PrivateMultiplicativeWeights(PEOPLE, DOMAIN, **given)


def rho_spent(budget: Budget) -> Fraction:
    return sum((Fraction(row.guarantee.to_zcdp().rho) for row in budget.releases), Fraction(0))


def epsilon_spent(budget: Budget) -> Fraction:
    return sum((Fraction(row.guarantee.epsilon) for row in budget.releases), Fraction(0))


# --- paying


def epochs_that_were_paid(budget: Budget, run: PrivateMultiplicativeWeights) -> bool:
    """Whether the budget was charged for the tables, the threshold if it is kept, and each epoch that began."""
    begun = run.updates + (run._run._noisy_threshold is not None)  # type: ignore[attr-defined]
    first = run._parameters.prior_share + run._schedule.once * (begun > 0)  # type: ignore[union-attr]
    spent = (rho_spent if run._parameters.delta else epsilon_spent)(budget)
    return spent >= first + begun * run._schedule.share  # type: ignore[union-attr]


@pytest.mark.parametrize("theorem", ["zcdp", "best"])
@pytest.mark.parametrize("prior", [None, "marginals"])
def test_budgets_that_add_up_rhos_pay_for_epochs_as_they_begin(theorem: Any, prior: Any) -> None:
    budget = Budget(theorem=theorem, **PRICE)
    run = online(budget=budget, prior=prior, updates=20)
    assert len(budget.releases) == 1
    once, each = run._schedule.once, run._schedule.share  # type: ignore[union-attr]
    assert once > 0
    assert rho_spent(budget) == Fraction(up(run._parameters.prior_share + once + each))
    run.answer_many(QUERIES)
    assert run.updates > (-1 if prior else 3)  # tables answer all that is asked here
    assert epochs_that_were_paid(budget, run)
    begun = run.updates + (run.updates_left > 0)
    assert len(budget.releases) == max(begun, 1)
    assert budget.releases[-1].mechanism == "PrivateMultiplicativeWeights"
    if begun < 20:
        assert rho_spent(budget) < WHOLE * Fraction(99, 100), "what was not begun stays with the budget"
        assert budget.left.epsilon > 0


def test_an_epoch_that_begins_unpaid_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = multiplicative_weights_payments.fresh_key
    monkeypatch.setattr(multiplicative_weights_payments.Payments, "key", lambda self, begun, count=1: fresh(self._rng))
    budget = Budget(theorem="zcdp", **PRICE)
    run = online(budget=budget, updates=20)
    run.answer_many(QUERIES)
    assert run.updates > 1
    assert not epochs_that_were_paid(budget, run)


@pytest.mark.parametrize("theorem", ["basic", "gaussian"])
def test_other_budgets_pay_for_the_whole(theorem: Any) -> None:
    budget = Budget(theorem=theorem, epsilon=3.0, delta=1e-5)
    run = online(budget=budget, prior="marginals")
    assert len(budget.releases) == 1
    spent = budget.spent
    run.answer_many(QUERIES)
    assert budget.spent == spent
    assert len(budget.releases) == 1
    if theorem == "basic":
        assert spent == fastdp.ApproxDP(1.0, 1e-6)


def test_without_delta_every_budget_pays_as_epochs_begin() -> None:
    budget = Budget(epsilon=1.0)
    run = online(delta=0.0, budget=budget, updates=10)
    run.answer_many(QUERIES)
    assert len(budget.releases) == run.updates + (run.updates_left > 0)
    assert budget.spent == fastdp.PureDP(float(sum(Fraction(row.guarantee.epsilon) for row in budget.releases)))
    assert budget.spent.epsilon <= 1.0


def test_all_budgets_around_it_pay_also_later() -> None:
    """Wherever the queries are asked; if one adds up something else, all pay for the whole."""
    outer, inner = Budget(theorem="zcdp", **PRICE), Budget(theorem="best", epsilon=2.0, delta=1e-6)
    with outer, inner:
        run = online(updates=20)
    with Budget(epsilon=5.0) as other:
        run.answer_many(QUERIES)
    assert len(other.releases) == 0
    assert len(outer.releases) == len(inner.releases) == run.updates + (run.updates_left > 0) > 1
    basic, zcdp = Budget(**PRICE), Budget(theorem="zcdp", **PRICE)
    with basic, zcdp:
        run = online(updates=20)
        run.answer_many(QUERIES)
    assert len(basic.releases) == len(zcdp.releases) == 1


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("prior", [None, "marginals"])
def test_a_budget_of_the_same_size_pays_for_all_epochs(prior: Any, neighbors: Any, delta: float) -> None:
    """Prices are rounded up, one by one; together they stay within the total."""
    for epsilon, updates in [(0.3, 3), (0.3, 7), (0.3, 11), (0.7, 29), (2.3, 3)]:
        price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "neighbors": neighbors}
        budget = Budget(theorem="zcdp" if delta else "basic", **price)
        run = online(budget=budget, prior=prior, updates=updates, **price)
        for begun in range(updates):
            run._run._payments.key(begun)  # type: ignore[attr-defined]
        assert len(budget.releases) > updates - 1


def test_budgets_are_charged_all_that_is_used() -> None:
    """They add up the decimal values of epsilons, which lie below or above the binary ones that noise is made for."""
    raised = 0
    for k in range(1, 300):
        share = Fraction(down(lower(0.3) / k))
        charge = multiplicative_weights_price.Total(0.3, 0.0, "replace-one").price(share)
        assert isinstance(charge, fastdp.PureDP)
        assert lower(charge.epsilon) >= share
        raised += charge.epsilon > share
    assert 50 < raised < 250


def test_plain_answers_are_paid_for_one_by_one() -> None:
    budget = Budget(theorem="zcdp", **PRICE)
    run = online(variant="plain", max_queries=100, budget=budget)
    run.answer(QUERIES[0])
    assert len(budget.releases) == 1
    run.answer_many(QUERIES[:9])
    run.answer(QUERIES[0])
    assert len(budget.releases) == 3
    assert rho_spent(budget) >= 11 * run._schedule.share  # type: ignore[union-attr]
    run.answer_many((QUERIES * 4)[:89])
    assert WHOLE >= rho_spent(budget) > WHOLE * Fraction(999_999, 10**6)
    with pytest.raises(ValueError, match=r"^queries: 1 more: must be at most 0, what is left of max_queries$"):
        run.answer(QUERIES[0])


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("theorem", ["basic", "zcdp"])
def test_add_remove_pays_for_the_number_of_records(theorem: Any, delta: float) -> None:
    if theorem == "zcdp" and not delta:
        return
    budget = Budget(epsilon=1.0, delta=delta, theorem=theorem, neighbors="add-remove")
    seen = set()
    for seed in range(3):
        run = online(
            delta=delta, neighbors="add-remove", prior="marginals" if delta else None, rng=Randomness(seed=seed),
            **({"budget": budget} if not seed else {}),
        )  # fmt: skip
        seen.add(run.n)
        assert run.n != 20_000 or len(seen) > 1
        assert abs(run.n - 20_000) <= run._parameters.count_error()
        answers = run.answer_many(QUERIES)
        true = [
            np.mean([np.all([PEOPLE[:, DOMAIN.position(n)] == v for n, v in q.allowed.items()], 0)]) for q in QUERIES
        ]
        for row, right in zip(run.transcript, true, strict=True):
            assert row.bound is None or abs(row.value - right) <= row.bound
        assert answers.size == len(QUERIES)
        assert run.guarantee.neighbors == "add-remove"
    assert len(seen) > 1, "the number has noise"
    assert budget.spent.epsilon <= 1.0
    empty = PrivateMultiplicativeWeights(
        PEOPLE[:0], DOMAIN, max_queries=10, neighbors="add-remove", variant="measured", **PRICE
    )
    assert empty.n >= 1
    assert 0.0 <= empty.answer(QUERIES[0]) <= 1.0


def test_the_old_variants_are_for_replace_one() -> None:
    for variant in ("sharp", "lecture"):
        with pytest.raises(
            ValueError, match=rf"^neighbors='add-remove': must be 'replace-one' for variant='{variant}'"
        ):
            online(variant=variant, neighbors="add-remove")


# --- when updates are spent


def test_it_says_when_there_is_no_error_bound_any_more() -> None:
    run = online(updates=2)
    with pytest.warns(fastdp.AccuracyWarning, match=r"^all 2 updates are spent: answers come from .* have no error b"):
        run.answer_many(QUERIES)
    assert (run.updates, run.updates_left, run.exhausted) == (2, 0, True)
    assert ", exhausted" in repr(run)
    last = max(i for i, row in enumerate(run.transcript) if row.updated)
    assert all(row.bound is not None for row in run.transcript[: last + 1])
    assert all(row.bound is None for row in run.transcript[last + 1 :])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert 0.0 <= run.answer(QUERIES[0]) <= 1.0, "it was said once"


def test_it_refuses_where_it_is_asked_to() -> None:
    run = online(updates=2, on_exhausted="raise")
    with pytest.raises(BudgetExceeded, match=r"^updates: all 2 are spent: nothing more is answered within alpha; `\.s"):
        run.answer_many(QUERIES)
    given = len(run.transcript)
    assert run.transcript[-1].updated
    with pytest.raises(BudgetExceeded, match=r"^updates: all 2 are spent"):
        run.answer(QUERIES[0])
    assert len(run.transcript) == given
    assert run.synthetic.answer(QUERIES[0]) >= 0


@pytest.mark.parametrize("on_exhausted", ["answer", "raise"])
def test_a_budget_that_others_have_spent(on_exhausted: Any) -> None:
    budget = Budget(theorem="zcdp", **PRICE)
    run = online(updates=20, budget=budget, on_exhausted=on_exhausted)
    fastdp.gaussian(3, sensitivity=1, rho=float(WHOLE * Fraction(8, 10)), budget=budget)
    if on_exhausted == "raise":
        with pytest.raises(BudgetExceeded, match="PrivateMultiplicativeWeights asks for"):
            run.answer_many(QUERIES)
    else:
        with pytest.warns(fastdp.AccuracyWarning, match="have no error bound any more: budget: Private"):
            run.answer_many(QUERIES)
        assert run.transcript[-1].bound is None
    assert run.exhausted
    assert 0 < run.updates_left < 20
    assert rho_spent(budget) <= WHOLE
    assert epochs_that_were_paid(budget, run)


# --- interrupts


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("name", ["integer_noise", "take_in", "fit_again", "threshold_noise", "key"])
def test_an_interrupt_leaves_an_object_that_goes_on(name: str, delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it comes: no epoch runs twice on one charge, no answer is given twice."""
    budget = Budget(theorem="zcdp", **PRICE) if delta else Budget(epsilon=1.0)
    run = online(budget=budget, updates=20, delta=delta)
    kept = bool(delta) and name == "integer_noise"  # the one noise of the threshold, drawn at the first query
    run.answer_many(QUERIES[: 0 if kept else 3])
    places: dict[str, Any] = {
        "threshold_noise": multiplicative_weights_measured.MeasuredRun,
        "key": multiplicative_weights_payments.Payments,
    }
    place = places.get(name, multiplicative_weights_measured)
    genuine, calls = getattr(place, name), [0]

    def interrupted(*args: Any, **options: Any) -> Any:
        found = genuine(*args, **options)
        calls[0] += 1
        if calls[0] in (1, 3):
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(place, name, interrupted)
    stopped = 0
    for query in QUERIES[3:]:
        before = len(run.transcript)
        try:
            run.answer(query)
        except KeyboardInterrupt:
            stopped += 1
            assert len(run.transcript) in (before, before + 1)
        assert epochs_that_were_paid(budget, run)
    assert stopped == (1 if kept else 2)
    assert run._run.asked == len(run.transcript)
    assert abs(run.synthetic.probabilities().sum() - 1) < 1e-9
    assert rho_spent(budget) <= WHOLE if delta else epsilon_spent(budget) <= 1


# --- priors


def test_a_prior_is_mixed_and_may_have_zeros() -> None:
    shares = np.zeros(DOMAIN.sizes)
    shares[0] = 1.0
    run = online(prior=shares)
    assert run.synthetic.probabilities().min() == pytest.approx(2.0**-10 / DOMAIN.size)
    assert run.synthetic.answer(Conjunction({"a": 0})) == pytest.approx(1 - 2.0**-10 * 5 / 6)
    run.answer_many(QUERIES)
    true = float((PEOPLE[:, 0] == 1).mean())
    assert abs(run.synthetic.answer(Conjunction({"a": 1})) - true) < 0.05
    factored = online(prior=FactoredWeights(DOMAIN), weights="factored")
    assert factored.synthetic.blocks == (("a",), ("b",), ("c",))
    mixture = fastdp.SyntheticDistribution([FactoredWeights(DOMAIN), FactoredWeights(DOMAIN)])
    with pytest.raises(ValueError, match=r"^prior: a mixture of products: must be one product"):
        online(prior=mixture, weights="factored")


def test_a_released_distribution_is_a_prior() -> None:
    """It answers at once what it knows, and is paid for once: by its own release."""
    released = fastdp.release_marginals(PEOPLE, DOMAIN, fastdp.marginals(DOMAIN, 2), fit="entropic", **PRICE)
    budget = Budget(theorem="zcdp", **PRICE)
    run = online(prior=released.synthetic, budget=budget)
    assert run.synthetic.answer(QUERIES[0]) == pytest.approx(released.synthetic.answer(QUERIES[0]), abs=2e-3)
    run.answer_many(QUERIES)
    assert run.updates == 0
    assert len(budget.releases) == 1


@pytest.mark.parametrize("weights", ["dense", "factored"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_tables_come_close(weights: Any, delta: float) -> None:
    run = online(prior="marginals", weights=weights, epsilon=4.0, delta=delta)
    ages = np.bincount(PEOPLE[:, 0], minlength=6) / len(PEOPLE)
    assert abs(run.synthetic.marginal(["a"]) - ages).max() < 0.02
    assert run.synthetic.probabilities().min() > 0


# --- moving


def some_weights() -> DenseWeights:
    shares = np.random.default_rng(2).random(DOMAIN.size) + 0.1
    return DenseWeights(DOMAIN, x=shares, span=3.0)


@pytest.mark.parametrize(
    "query",
    [
        Conjunction({"a": 2}), Conjunction({"a": 0, "c": 1}), Mask(np.arange(72) % 3 == 0),
        Linear(np.arange(72) / 72), Linear(np.where(np.arange(72) < 3, 0.9, 0.1)),
    ],
)  # fmt: skip
def test_the_distribution_is_moved_onto_the_value(query: Any) -> None:
    """And to the nearest such: the logarithms change by a multiple of the query, and a constant."""
    bound = bind(query, DOMAIN)
    for target in (0.15, 0.4, 0.83):
        weights = some_weights()
        before = weights.probabilities()
        assert measurements.move_onto(weights, bound, weights.evaluate(bound), target, 1e-7)
        assert weights.evaluate(bound) == pytest.approx(target, abs=1e-5)
        change = np.log(weights.probabilities() / before)
        values = bound.values if hasattr(bound, "values") else chosen(bound)
        fit = np.polyfit(values, change, 1)
        np.testing.assert_allclose(np.polyval(fit, values), change, atol=1e-9)


def chosen(bound: Any) -> np.ndarray:
    cells = np.zeros(DOMAIN.sizes)
    tables = dict(bound.allowed)
    cells[np.ix_(*(tables.get(p, np.ones(s, bool)) for p, s in enumerate(DOMAIN.sizes)))] = 1.0
    return cells.ravel()


def test_what_noise_explains_moves_nothing() -> None:
    query = Conjunction({"a": 2})
    for gap, moves in ((0.0, False), (0.019, False), (0.021, True), (-0.019, False), (-0.021, True)):
        weights = some_weights()
        before = weights.evaluate(bind(query, DOMAIN))
        measured = measurements.Measurement.of(query, before + gap, 0.01, DOMAIN)
        assert measurements.take_in(weights, measured, 10_000) == moves
        believed = gap - 4e-4 / gap if moves else 0.0
        assert weights.evaluate(bind(query, DOMAIN)) == pytest.approx(before + believed, abs=1e-12)


def test_replay_brings_back_what_later_measurements_moved() -> None:
    """The distribution comes within the noise of all measurements; without replay it does not."""
    true = np.random.default_rng(3).dirichlet(np.full(DOMAIN.size, 0.3)).reshape(DOMAIN.sizes)
    asked = list(fastdp.marginals(DOMAIN, 2))
    exact = fastdp.SyntheticDistribution(true, DOMAIN).answer_many(asked)

    def furthest(passes: int) -> float:
        weights, kept = DenseWeights(DOMAIN, measures_span=True), []
        for query, value in zip(asked, exact, strict=True):
            kept.append(measurements.Measurement.of(query, float(value), 1e-4, DOMAIN))
            measurements.take_in(weights, kept[-1], 10_000)
            measurements.fit_again(weights, kept, passes, 10_000)
        return float(max(abs(weights.evaluate(bind(q, DOMAIN)) - v) for q, v in zip(asked, exact, strict=True)))

    assert furthest(20) < 2e-3 < furthest(0)


def test_long_runs_stay_in_weights() -> None:
    """Updates that go back and forth add up to more than weights can show, and stay far apart from it."""
    weights, bound = DenseWeights(DOMAIN, measures_span=True), bind(Conjunction({"a": 1}), DOMAIN)
    for i in range(400):
        weights.scale(bound, 3.0 if i % 2 else -3.0)
    assert not weights.in_logs
    np.testing.assert_allclose(weights.probabilities(), 1 / DOMAIN.size, rtol=1e-9)


def test_products_beat_independence_inside_merged_blocks() -> None:
    """2^100 cells: one-way tables first, then updates that merge blocks."""
    domain = Domain.binary(100)
    rng = np.random.default_rng(6)
    hidden = rng.random((100_000, 20)) < 0.3
    data = np.repeat(hidden, 5, axis=1) ^ (rng.random((100_000, 100)) < 0.05)
    run = PrivateMultiplicativeWeights(
        data, domain, max_queries=2000, variant="measured", prior="marginals", rng=Randomness(seed=2), **PRICE
    )
    product = run.synthetic
    queries = [Conjunction({f"v{5 * j + 1}": x, f"v{5 * j + 3}": y}) for j in range(15) for x in (0, 1) for y in (0, 1)]
    answers = run.answer_many(queries)
    true = np.array(
        [np.mean([data[:, int(n[1:]) - 1] == v for n, v in q.allowed.items()], 0).tolist() for q in queries]
    )
    exact = (true == 1).mean(1)
    assert run.updates >= 15
    assert abs(answers - exact).max() <= run.alpha
    before, after = (abs(d.answer_many(queries) - exact) for d in (product, run.synthetic))
    assert after.max() < 0.5 * before.max()
    assert after.mean() < 0.3 * before.mean()
    assert sum(len(block) == 2 for block in run.synthetic.blocks) >= 15
