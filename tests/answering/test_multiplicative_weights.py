"""Private multiplicative weights (fastdp/answering/multiplicative_weights.py): estimates, budgets, refusals."""

from __future__ import annotations

import math
import warnings
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import (  # fmt: skip
    Budget,
    Conjunction,
    Domain,
    DomainError,
    Linear,
    Mask,
    PrivateMultiplicativeWeights,
    Randomness,
    marginals,
)
from fastdp.answering import multiplicative_weights_noise as ahead
from fastdp.answering.update_schedule import Variant
from fastdp.support.errors import AccuracyWarning
from tests.answering.multiplicative_weights_laws import (
    DOMAIN,
    PEOPLE,
    QUIET,
    SMALL,
    VARIANTS,
    make,
    records,
    tiny,
    zcdp_delta,
)
from tests.conftest import Watched

# that plain noise would guarantee more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_estimate_is_what_the_object_says(variant: Variant) -> None:
    options: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "max_queries": 200, "variant": variant, "beta": 0.1}
    for more in ({}, {"alpha": 0.9}, {"weights": "factored"}, {"precision": "float32"}):
        estimate = fastdp.bounds.private_multiplicative_weights(20_000, SMALL, **options | more)
        run = PrivateMultiplicativeWeights(PEOPLE, SMALL, **options | more)
        assert (estimate.alpha, estimate.beta) == (run.alpha, run.beta) == (run.alpha, 0.1)
        assert estimate.rounds == run.updates_left
        assert estimate.cells == SMALL.size
        assert estimate.weight_bytes == run._run.weights.bytes
        assert run._run.true_answers.histogram is not None
        assert estimate.record_bytes == run._run.true_answers.histogram.nbytes == estimate.bytes - estimate.weight_bytes
        assert f"at most {estimate.rounds:,} rounds" in str(estimate)
        if not more:
            fewer = fastdp.bounds.private_multiplicative_weights(19_000, SMALL, **options)
            n = fastdp.bounds.private_multiplicative_weights_n(SMALL, alpha=fewer.alpha, **options)
            assert n <= 19_000 < n * 1.001


def test_a_million_may_be_said_as_1e6() -> None:
    run = make(PEOPLE, SMALL, max_queries=1e3)
    assert (run.max_queries, type(run.max_queries)) == (1000, int)
    assert fastdp.bounds.private_multiplicative_weights(
        2e4, SMALL, epsilon=1.0, max_queries=np.float64(1e3), delta=1e-6
    ) == fastdp.bounds.private_multiplicative_weights(20_000, SMALL, epsilon=1.0, max_queries=1000, delta=1e-6)
    for wrong in (1e3 + 0.5, math.nan, math.inf, True, "1e3"):
        with pytest.raises(ValueError, match=r"^max_queries=.*: must be an integer >= 1$"):
            make(PEOPLE, SMALL, max_queries=wrong)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_it_says_when_plain_noise_would_guarantee_more(delta: float) -> None:
    name = "Gaussian" if delta else "Laplace"
    options: dict[str, Any] = {"epsilon": 1.0, "delta": delta, "variant": "sharp"}
    with pytest.warns(
        AccuracyWarning,
        match=rf"^PrivateMultiplicativeWeights guarantees an error of at most 0\.[0-9]+, plain {name} noise on each of "
        rf"max_queries=100 answers 0\.[0-9]+: see fastdp\.{name.lower()}, in a Budget$",
    ) as told:
        run = make(np.repeat(PEOPLE, 10, axis=0), SMALL, max_queries=100, **options)
    assert told[0].filename == make.__code__.co_filename  # which calls fastdp
    few = fastdp.bounds.private_multiplicative_weights(run.n, SMALL, max_queries=100, **options)
    assert few.plain_alpha is not None
    assert few.plain_alpha < few.alpha == run.alpha
    assert f", plain noise on each answer within {few.plain_alpha:.4g}; at most" in str(few)
    if not delta:
        assert few.plain_alpha == fastdp.bounds.laplace(sensitivity=100, epsilon=1.0, count=100) / run.n
    else:  # as many releases of one count each, each for its share
        share = fastdp.share(fastdp.ApproxDP(1.0, 1e-6), 100, fastdp.ZCDP)
        each = fastdp.bounds.gaussian(sensitivity=1, rho=share, count=100)
        assert few.plain_alpha == pytest.approx(each / run.n, rel=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(np.repeat(PEOPLE, 10, axis=0), SMALL, max_queries=10**7, **options)
    many = fastdp.bounds.private_multiplicative_weights(run.n, SMALL, max_queries=10**7, **options)
    assert many.plain_alpha is not None
    assert many.plain_alpha > many.alpha
    assert "plain" not in str(many)


def test_weights_and_records_must_fit_together(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    monkeypatch.setattr("fastdp.answering.memory.usable_memory", lambda: 2**20)
    domain = Domain.binary(16)  # weights of 512 KiB, and a histogram of as much
    with pytest.raises(
        ValueError,
        match=r"^domain: weights take 512 KiB, evaluating them 512 KiB and the records 512 KiB: together at most 1 MiB",
    ):
        make(np.ones((20_000, 16), bool), domain, budget=budget, max_queries=10, epsilon=1.0, rng=Watched())
    assert len(budget.releases) == 0


def test_it_is_charged_once_when_it_is_made() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    run = make(PEOPLE, SMALL, max_queries=100, budget=budget)
    (row,) = budget.releases
    assert row.mechanism == "PrivateMultiplicativeWeights"
    assert row.parameters == {
        "epsilon": 1.0, "delta": 1e-6, "max_queries": 100, "alpha": run.alpha, "variant": "sharp",
    }  # fmt: skip
    spent = budget.spent
    run.answer_many(marginals(SMALL, 2))
    run.synthetic.answer(Conjunction({"a": 1}))
    assert budget.spent == spent
    assert len(budget.releases) == 1
    with pytest.raises(fastdp.BudgetExceeded, match="PrivateMultiplicativeWeights asks for"):
        make(PEOPLE, SMALL, max_queries=100, budget=budget, rng=Watched())
    with Budget(epsilon=2.0) as ambient:
        make(PEOPLE, SMALL, max_queries=100, delta=0.0, epsilon=2.0)
        assert ambient.spent == fastdp.PureDP(2.0)


def test_what_is_guaranteed() -> None:
    run = make(PEOPLE, SMALL, max_queries=100)
    both = run.guarantee
    assert isinstance(both, fastdp.AllOf)
    assert fastdp.ApproxDP(1.0, 1e-6) in both.parts
    (concentrated,) = [part for part in both.parts if isinstance(part, fastdp.ZCDP)]
    composed = run._schedule.updates * Fraction(run._schedule.epoch) ** 2 / 2
    assert concentrated.rho <= composed * (1 + Fraction(1, 10**9))
    with localcontext() as context:
        context.prec = 40
        assert zcdp_delta(Decimal(concentrated.rho), Decimal(1)) <= Decimal("1.001e-6")
    assert make(PEOPLE, SMALL, max_queries=100, delta=0.0).guarantee == fastdp.PureDP(1.0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"neighbors": "add-remove"}, ValueError, r"^neighbors='add-remove': must be 'replace-one'"),
        ({"neighbors": "friends"}, ValueError, r"^neighbors='friends'"),
        ({"epsilon": 0.0}, ValueError, r"^epsilon=0\.0: must be"),
        ({"epsilon": math.nan}, ValueError, r"^epsilon=nan: must be"),
        ({"delta": 1.0}, ValueError, r"^delta=1\.0: must be"),
        ({"delta": -1e-9}, ValueError, r"^delta="),
        ({"max_queries": 0}, ValueError, r"^max_queries=0: must be an integer >= 1"),
        ({"max_queries": 2.5}, ValueError, r"^max_queries=2\.5"),
        ({"alpha": 0.0}, ValueError, r"^alpha=0\.0: must be"),
        ({"alpha": 1.0}, ValueError, r"^alpha=1\.0: must be"),
        ({"alpha": 0.001}, ValueError, r"^alpha=0\.001: must be at least 0\.\d+, what n=20000 records support$"),
        ({"beta": 0.0}, ValueError, r"^beta=0\.0: must be"),
        ({"variant": "blunt"}, ValueError, r"^variant='blunt': must be"),
        ({"weights": "sparse"}, ValueError, r"^weights='sparse': must be"),
        ({"precision": "float16"}, ValueError, r"^precision='float16': must be"),
        ({"outside": "drop"}, ValueError, r"^outside='drop': must be"),
        (
            {"epsilon": 1e-4},
            ValueError,
            r"^data: n=20000 records: must be more: no alpha below 1 can be guaranteed for 100",
        ),
        ({"domain": 12}, ValueError, r"^domain: type int: must be a fastdp\.Domain$"),
        (
            {"domain": Domain(a=4, b=2)},
            DomainError,
            r"^column 'b': must hold codes from 0 to 1 only; there are others$",
        ),
        ({"domain": Domain(a=4, b=3, c=2)}, ValueError, r"^data: 2 columns without names: must be 3"),
        ({"domain": Domain.binary(60), "weights": "dense"}, ValueError, r"^domain: dense weights put 60 attributes"),
        ({"data": np.full((20_000, 2), np.nan)}, DomainError, r"^column 'a': must not hold NaN$"),
        ({"data": PEOPLE[:50]}, ValueError, r"^data: n=50 records: must be more"),
        ({"data": PEOPLE[:0]}, ValueError, r"^data: n=0 records: must be more"),
        ({"data": {"a": PEOPLE[:, 0]}}, ValueError, r"'b'"),
        ({"rng": 7}, ValueError, r"^rng=7: must be a fastdp.Randomness or None"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_spent(options: Any, error: type[Exception], message: str) -> None:
    budget = Budget(epsilon=5.0, delta=1e-5)
    given = {"data": PEOPLE, "domain": SMALL, "epsilon": 1.0, "delta": 1e-6, "max_queries": 100, "variant": "sharp"}
    given |= options
    data, domain = given.pop("data"), given.pop("domain")
    with pytest.raises(error, match=message):
        PrivateMultiplicativeWeights(data, domain, budget=budget, **{"rng": Watched()} | given)
    assert len(budget.releases) == 0
    if (
        not options.keys() & {"data", "neighbors", "outside", "rng"}
        and error is ValueError
        and "columns" not in message
    ):
        with pytest.raises(error, match=message):
            fastdp.bounds.private_multiplicative_weights(20_000, domain, **given)


def test_records_outside_may_be_clipped() -> None:
    clipped = make(PEOPLE, Domain(a=4, b=2), outside="clip")
    assert clipped._run.true_answers.histogram is not None
    right = np.bincount(PEOPLE[:, 0] * 2 + np.minimum(PEOPLE[:, 1], 1), minlength=8)
    assert clipped._run.true_answers.histogram.tolist() == right.tolist()


def test_past_the_last_query_it_refuses() -> None:
    run = make(PEOPLE, SMALL, max_queries=10)
    queries = [Conjunction({"a": i % 4}) for i in range(11)]
    with pytest.raises(ValueError, match=r"^queries: 11 more: must be at most 10, what is left of max_queries$"):
        run.answer_many(queries)
    assert run.transcript == []
    run.answer_many(queries[:7])
    with pytest.raises(ValueError, match=r"^queries: 4 more: must be at most 3"):
        run.answer_many(queries[7:])
    run.answer_many(queries[:3])
    assert len(run.transcript) == 10
    with pytest.raises(ValueError, match=r"^queries: 1 more: must be at most 0"):
        run.answer(queries[0])
    assert run.answer_many([]).size == 0
    assert isinstance(run.synthetic.answer(queries[0]), float), "the distribution goes on"


def test_when_updates_are_spent_it_says_so_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for variant in VARIANTS:
        tiny(monkeypatch, variant, 1, QUIET, QUIET, QUIET * (variant == "lecture"), 2, 0.3)
        run = make(records((6, 0, 0)), DOMAIN, max_queries=20, variant=variant)
        queries = [Conjunction({"a": 0}), Conjunction({"a": 1}), Conjunction({"a": 2})] * 4
        with pytest.warns(
            AccuracyWarning, match=r"^all 2 updates are spent: answers come from the distribution as it is, "
        ) as w:
            answers = run.answer_many(queries)
        assert len(w) == 1
        assert w[0].filename == __file__
        assert (run.updates, run.updates_left, len(run.transcript)) == (2, 0, 12)
        after = run.answer_many(queries[:3])  # warns no more
        np.testing.assert_allclose(after, answers[-3:])
        np.testing.assert_allclose(after, [run.synthetic.answer(query) for query in queries[:3]])
    # a warning that is made an error leaves an object that goes on
    run = make(records((6, 0, 0)), DOMAIN, max_queries=20, variant="lecture")
    with pytest.raises(AccuracyWarning):
        run.answer_many(queries)
    assert run.updates_left == 0
    assert 0.0 <= run.answer(queries[0]) <= 1.0


def test_nothing_is_tested_after_the_last_update(monkeypatch: pytest.MonkeyPatch) -> None:
    tiny(monkeypatch, "sharp", 1, QUIET, QUIET, 0.0, 1, 0.3)
    run = make(records((6, 0, 0)), DOMAIN, max_queries=100)
    with pytest.warns(AccuracyWarning):
        run.answer(Conjunction({"a": 0}))

    def refuse(*args: Any) -> Any:
        raise AssertionError("the records were asked")

    monkeypatch.setattr(run._run.true_answers, "count", refuse)
    monkeypatch.setattr(run._run.query_noise, "draw", refuse)
    assert run.answer_many([Conjunction({"a": i % 3}) for i in range(80)]).size == 80


def test_queries_that_do_not_fit_are_refused_before_any_is_answered() -> None:
    run = make(PEOPLE, SMALL, max_queries=100)
    good = Conjunction({"a": 1})
    for bad, message in (
        (Conjunction({"c": 1}), r"^attribute='c'"),
        (Conjunction({"a": 4}), r"^a=4: must be a code"),
        (Mask(np.zeros(13, bool)), r"^cells: shape \(13,\)"),
        (Linear(np.zeros(13)), r"^values: shape \(13,\)"),
        ("a = 1", r"^query: type str: must be a query"),
    ):
        with pytest.raises(ValueError, match=message):
            run.answer_many([good, bad])
    assert run.transcript == []


def test_no_noise_is_used_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new epoch throws away what was drawn ahead, and every key is fresh."""
    keys = []
    fresh = ahead.fresh_key
    monkeypatch.setattr(ahead, "fresh_key", lambda rng: keys.append(fresh(rng)) or keys[-1])
    run = make(PEOPLE, SMALL, max_queries=500, rng=Randomness(seed=3))
    scale = run._run.weights.scale

    def watched(bound: Any, rate: float) -> None:
        assert run._run.query_noise.left == 0
        scale(bound, rate)

    monkeypatch.setattr(run._run.weights, "scale", watched)
    for _ in range(30):
        run.answer_many(marginals(SMALL, 2))
    assert run.updates >= 1
    assert len({bytes(np.asarray(key).tobytes()) for key in keys}) == len(keys)
    source = run._run.query_noise
    drawn = np.concatenate([source.draw(count) for count in (1, 2, 700, 1, 300, 1000, 5)])
    assert drawn.size == 2009
    assert np.unique(drawn).size > 1900
