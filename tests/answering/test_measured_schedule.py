"""The numbers of measured answers: what shares pay for, the certificate, defaults (measured_schedule.py)."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Conjunction, Domain, Randomness
from fastdp.answering.measured_schedule import MeasuredSchedule, largest_difference
from fastdp.answering.multiplicative_weights_parameters import MultiplicativeWeightsParameters
from fastdp.answering.multiplicative_weights_plain import PlainSchedule
from fastdp.answering.queries.bound_query import UNIT
from fastdp.privacy.calibration import zcdp_rho
from tests.oracles.privacy import pure_rho

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")

DOMAIN = Domain(a=16, b=9, c=5)


def parameters(**options: Any) -> MultiplicativeWeightsParameters:
    given = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "max_queries": 3000,
        "beta": 0.05,
        "variant": "measured",
        "weights": "dense",
    }
    return MultiplicativeWeightsParameters.of(DOMAIN, **given | options)


def measured(n: int, **options: Any) -> tuple[MultiplicativeWeightsParameters, MeasuredSchedule]:
    given = parameters(**options).resolved(n)
    schedule = given.schedule(n)
    assert isinstance(schedule, MeasuredSchedule)
    return given, schedule


CASES: list[dict[str, Any]] = [
    {}, {"epsilon": 0.1, "delta": 1e-9}, {"epsilon": 20.0}, {"delta": 0.0}, {"delta": 0.0, "epsilon": 30.0},
    {"max_queries": 1}, {"max_queries": 10**12, "beta": 1e-9}, {"prior": "marginals"}, {"updates": 1}, {"updates": 700},
    {"neighbors": "add-remove", "prior": "marginals"}, {"neighbors": "add-remove", "delta": 0.0},
]  # fmt: skip


def kappa(d: int, scale: float) -> float:
    """The largest KL(r, r') / r of a positive, over the integers where it can be and around them."""
    x = np.arange(-d, 2, dtype=np.longdouble)
    below, above = np.exp((np.minimum(x, 0) - 1) / scale), np.exp(-np.maximum(x + d, 1) / scale)
    norm = 1 + math.exp(-1 / scale)
    not_r = np.where(x >= 1, 1 - np.exp(-x / scale) / norm, below / norm)
    other = np.where(x + d >= 1, above / norm, 1 - np.exp((x + d - 1) / scale) / norm)
    r = 1 - not_r
    return float((np.log(r / other) + not_r / r * np.log(not_r / (1 - other))).max())


@pytest.mark.parametrize("options", CASES, ids=str)
@pytest.mark.parametrize("n", [1, 5000, 250_000])
def test_every_share_pays_for_what_it_draws(options: dict[str, Any], n: int) -> None:
    """In fractions, and rho of pure DP in 40 digits: an epoch, all of them, tables and the number of records."""
    given, schedule = measured(n, **options)
    b1, b2, third = map(Fraction, (schedule.threshold_scale, schedule.query_scale, schedule.measurement_scale))
    if given.delta:
        rho = Fraction(pure_rho(float(UNIT / b1) * (1 + 1e-15))) * (1 - Fraction(1, 10**13))
        assert schedule.once * (1 - Fraction(1, 10**9)) < rho <= schedule.once
        cost = Fraction(kappa(2 * UNIT, float(b2))) * (1 - Fraction(1, 10**10)) + UNIT**2 / (2 * third**2)
        whole = Fraction(zcdp_rho(given.epsilon, given.delta))
    else:
        assert not schedule.keeps_threshold
        cost, whole = UNIT / b1 + 2 * UNIT / b2 + UNIT / third, Fraction(given.epsilon)
    assert cost <= schedule.share
    assert cost > schedule.share * (1 - Fraction(1, 10**9))
    total = schedule.once + schedule.updates * schedule.share
    if given.prior == "marginals":
        tables = given.tables()
        assert tables is not None
        changed = tables.workload.tables * (1 if given.neighbors == "add-remove" else 2)
        sigma = Fraction(tables.deviation)
        assert given.delta
        assert changed / (2 * sigma**2) <= given.prior_share
        assert given.prior_share in (whole * Fraction(1, 2), whole * Fraction(3, 4)) or given.neighbors == "add-remove"
        total += given.prior_share
    if given.neighbors == "add-remove":
        scale = Fraction(given.count_scale())
        assert (UNIT**2 / (2 * scale**2) if given.delta else UNIT / scale) <= given.count_share
        total += given.count_share
    assert total <= whole
    assert total > whole * (1 - Fraction(1, 10**9))
    price = given.total.price(schedule.share)
    if given.delta:
        assert price.rho == float(schedule.share)  # type: ignore[attr-defined]
    else:  # budgets add up the decimal values of epsilon
        stated = price.epsilon  # type: ignore[attr-defined]
        assert schedule.share <= min(Fraction(stated), Fraction(repr(stated)))
        assert stated <= float(schedule.share) * (1 + 2.0**-50)


def test_the_bound_of_two_maxima_holds_and_is_close() -> None:
    """By simulation, of the continuous law that the bound is for; two bounds apart are 10 % and more above it."""
    rng, runs = np.random.default_rng(5), 4000
    for (b1, c), (b2, k), beta in (((3.0, 40), (5.0, 400), 0.05), ((50.0, 1), (20.0, 1000), 0.2)):
        s = largest_difference((b1, c), (b2, k), beta)
        largest = rng.laplace(0, b1, (runs, c)).max(1) + rng.laplace(0, b2, (runs, k)).max(1)
        above = float((largest > s).mean())
        assert above <= beta + 4 * math.sqrt(beta / runs)
        assert above >= 0.5 * beta
        assert s < 0.97 * (b1 * math.log(c / beta) + b2 * math.log(k / beta))


def test_the_certificate_is_what_the_theorem_says() -> None:
    n = 100_000
    schedule = measured(n)[1]
    assert schedule.measured_alpha < schedule.alpha < 0.2
    tails = largest_difference((schedule.threshold_scale, 1), (schedule.query_scale, 3000), 0.05 * 63 / 64)
    assert schedule.alpha == pytest.approx((schedule.threshold + tails + 1) / (n * UNIT), rel=1e-9)
    t3 = schedule.measurement_scale * math.sqrt(2 * math.log(2 * schedule.updates / (0.05 / 64)))
    assert schedule.measured_alpha == pytest.approx((t3 + 1) / (n * UNIT), rel=1e-9)
    # the number of records, where it is private: its noise comes on top
    private, noisy = measured(n, neighbors="add-remove")
    assert private.count_error() > 0
    assert noisy.alpha > private.count_error() / n
    assert measured(10)[1].alpha == 1.0, "a fraction is within 1 of another"


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_certificate_holds_against_an_adversary(neighbors: Any) -> None:
    """Who knows the records, and asks each time what is furthest off: at most so many runs in a hundred fail. A third
    of the certificate fails in one run of ten, so that it is no empty one."""
    rng, beta, runs, failed, third = np.random.default_rng(0), 0.3, 100, 0, 0
    domain = Domain(a=8)
    counts = np.array([4000, 2500, 1500, 900, 500, 300, 200, 100])
    data = np.repeat(np.arange(8), counts)[:, None]
    true = counts / counts.sum()
    queries = [Conjunction({"a": i}) for i in range(8)]
    for seed in range(runs):
        run = fastdp.PrivateMultiplicativeWeights(
            data, domain, epsilon=0.2, delta=1e-6, max_queries=60, beta=beta, variant="measured", neighbors=neighbors,
            rng=Randomness(seed=seed),
        )  # fmt: skip
        worst = 0.0
        for _ in range(60):
            if run.exhausted:
                break
            gaps = abs(run.synthetic.probabilities() - true)
            i = int(gaps.argmax()) if rng.random() < 0.9 else int(rng.integers(8))
            answer = run.answer(queries[i])
            bound = run.transcript[-1].bound
            assert bound is not None
            assert bound <= run.alpha
            worst = max(worst, abs(answer - true[i]) / run.alpha)
        failed, third = failed + (worst > 1), third + (worst > 1 / 3)
    assert failed <= beta * runs
    assert third > 0.1 * runs


def test_more_records_support_more() -> None:
    """Of the defaults: the error bound falls, and there are more updates; with a prior fewer."""
    found = [measured(n)[1] for n in (1000, 10_000, 100_000, 10**6)]
    assert [each.updates for each in found] == sorted(each.updates for each in found)
    assert [-each.alpha for each in found] == sorted(-each.alpha for each in found)
    assert measured(250_000, prior="marginals")[1].updates < measured(250_000)[1].updates
    assert measured(10**9, max_queries=7)[1].updates <= 7
    assert measured(10**12)[1].updates <= DOMAIN.size


def test_alpha_states_how_many_updates() -> None:
    schedule = measured(250_000, alpha=0.02)[1]
    assert schedule.alpha <= 0.02 < measured(250_000, updates=schedule.updates + 1)[1].alpha * 1.0001
    with pytest.raises(ValueError, match=r"^alpha=0\.0001: must be at least 0\.00\d+, what n=250000 records support$"):
        measured(250_000, alpha=0.0001)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"updates": 10**6}, r"^updates=1000000: must be at most 720: the least of max_queries, the cells"),
        ({"updates": 0}, r"^updates=0: must be an integer >= 1"),
        ({"threshold": 1e-3}, r"^threshold=0\.001: must be at least \d+\.?\d* records: below, noise alone would"),
        ({"threshold": -1.0}, r"^threshold=-1\.0: must be > 0"),
        ({"threshold": 1e308}, r"^threshold=1e\+308: must be between 2\^-400 and 2\^400"),
        ({"replay": 21}, r"^replay=21: must be at most 20$"),
        ({"on_exhausted": "stop"}, r"^on_exhausted='stop': must be one of 'answer', 'raise'"),
        ({"prior": "tables"}, r"^prior='tables': must be 'marginals', a SyntheticDistribution or weights of all cells"),
        ({"prior": [1.0, 2.0]}, r"^prior: weights: shape \(2,\): must be"),
        ({"prior": np.full(DOMAIN.size, -1.0)}, r"^prior: weights: must be >= 0 and finite, not all 0"),
        ({"prior": fastdp.SyntheticDistribution(np.ones(4), Domain(x=4))}, r"^prior: must be on the domain of the rec"),
        ({"variant": "sharp", "prior": "marginals"}, r"^prior: must be None for variant='sharp': 'measured' has it$"),
        ({"variant": "plain", "updates": 4}, r"^updates=4: must be None for variant='plain': 'measured' has it$"),
        ({"alpha": 0.1, "neighbors": "add-remove"}, r"^alpha=0\.1: must be None with neighbors='add-remove'"),
        ({"alpha": 0.1, "updates": 4}, r"^updates=4: must be None where alpha is given"),
        ({"epsilon": 1e-9, "delta": 1e-30}, r"^epsilon=1e-09: must be more: noise for \d+ updates is beyond 2"),
    ],
    ids=str,
)  # fmt: skip
def test_what_nothing_supports_is_said(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measured(250_000, **options)


def test_auto_takes_plain_noise_for_few_queries() -> None:
    """And says from how many on it measures, within its accuracy; the choice is by public numbers alone."""

    def taken(queries: int, **options: Any) -> Any:
        return parameters(variant="auto", max_queries=queries, **options).resolved(250_000)

    few = parameters(variant="measured", prior="marginals").fewest_queries(250_000)
    assert 500 < few < 5000
    assert isinstance(taken(few // 2).schedule(250_000), PlainSchedule)
    many = taken(2 * few)
    assert (many.variant, many.prior) == ("measured", "marginals")
    assert taken(2 * few, delta=0.0).prior is None, "tables with Laplace noise pay for each in full"
    assert taken(10, updates=3).variant == "measured"
    assert taken(10, prior=np.ones(DOMAIN.size)).variant == "measured"
    assert isinstance(taken(100, delta=0.0).schedule(250_000), MeasuredSchedule | PlainSchedule)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        data = np.zeros((20_000, 3), int)
        fastdp.PrivateMultiplicativeWeights(data, DOMAIN, epsilon=1.0, delta=1e-6, max_queries=10, variant="measured")
    (warning,) = [each for each in told if each.category is fastdp.AccuracyWarning]
    assert "plain Gaussian noise on each of max_queries=10 answers is within 0.00" in str(warning.message)
    assert "variant='measured' is for about " in str(warning.message)
    assert warning.filename == __file__


def test_plain_shares_pay_for_all_answers() -> None:
    for options in ({}, {"delta": 0.0}, {"neighbors": "add-remove"}):
        given = parameters(variant="plain", **options)
        schedule = given.schedule(20_000)
        assert isinstance(schedule, PlainSchedule)
        scale = Fraction(schedule.scale)
        assert (UNIT**2 / (2 * scale**2) if given.delta else UNIT / scale) <= schedule.share
        assert 3000 * schedule.share + given.count_share <= given.total.whole
    with pytest.raises(ValueError, match=r"^alpha=1e-05: must be at least 0\.\d+, what n=20000 records support$"):
        parameters(variant="plain", alpha=1e-5).schedule(20_000)


def test_few_plain_answers_have_laplace_noise_where_that_is_less() -> None:
    """In deviation and in the error bound, by public numbers alone."""
    for epsilon, delta, last in ((1.0, 1e-6, 8), (0.1, 1e-6, 7), (1.0, 1e-9, 13), (1.0, 0.2, 0)):
        taken = []
        for k in range(1, 30):
            given = parameters(variant="plain", epsilon=epsilon, delta=delta, max_queries=k).resolved(1000)
            schedule = given.schedule(1000)
            assert isinstance(schedule, PlainSchedule)
            taken.append(not given.delta)
            laplace, gaussian = math.sqrt(2) * k / epsilon, math.sqrt(k / 2 / zcdp_rho(epsilon, delta))
            assert schedule.deviation / UNIT <= min(laplace, gaussian) * 1.1
            assert given.total.guarantee().to_approx(delta).epsilon <= epsilon * (1 + 1e-9)
        assert taken == [k <= last for k in range(1, 30)], taken


@pytest.mark.parametrize(("theorem", "pure"), [(None, True), ("basic", True), ("zcdp", False), ("gaussian", False),
                                              ("best", False)])  # fmt: skip
def test_whoever_adds_up_rhos_never_pays_for_laplace_noise(theorem: Any, pure: bool) -> None:
    budget = None if theorem is None else fastdp.Budget(epsilon=9.0, delta=1e-4, theorem=theorem)
    data = np.zeros((1000, 3), int)
    for variant in ("plain", "auto"):
        run = fastdp.PrivateMultiplicativeWeights(
            data, DOMAIN, epsilon=0.9, delta=1e-6, max_queries=2, variant=variant, budget=budget
        )  # fmt: skip
        assert run.variant == "plain"
        assert (run.guarantee == fastdp.PureDP(0.9)) == pure
        run.answer_many([Conjunction({"a": 1})] * 2)
    if budget is not None:
        assert budget.spent.epsilon <= 9.0
        if pure:
            assert [row.guarantee.epsilon for row in budget.releases] == pytest.approx([0.45, 0.45] * 2)
    private = fastdp.PrivateMultiplicativeWeights(
        data, DOMAIN, epsilon=0.9, delta=1e-6, max_queries=2, variant="auto", neighbors="add-remove"
    )
    assert private.guarantee != fastdp.PureDP(0.9, neighbors="add-remove"), "n was bought with a delta"
    assert private._run._total.delta == 1e-6  # type: ignore[attr-defined]


def test_bounds_say_what_the_object_will() -> None:
    data = np.random.default_rng(0).integers(DOMAIN.sizes, size=(20_000, 3))
    few = {"variant": "plain", "max_queries": 3}
    for options in (
        {},
        {"variant": "measured"},
        {"variant": "plain"},
        few,
        {"prior": "marginals"},
        {"max_queries": 10**6},
    ):
        given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_queries": 500} | options
        estimate = fastdp.bounds.private_multiplicative_weights(20_000, DOMAIN, **given)
        run = fastdp.PrivateMultiplicativeWeights(data, DOMAIN, **given)
        assert (estimate.alpha, estimate.rounds) == (run.alpha, run.updates_left)
        if "prior" not in options:
            n = fastdp.bounds.private_multiplicative_weights_n(DOMAIN, alpha=run.alpha, **given)
            assert n <= 20_000 * 1.001
            epsilon = fastdp.bounds.private_multiplicative_weights_epsilon(
                20_000, DOMAIN, alpha=run.alpha, **{k: v for k, v in given.items() if k != "epsilon"}
            )
            assert epsilon <= 1.0 + 1e-6
