"""MWEM: rounds, ranges and noise from the theorems of mwem.md, and when plain noise is better."""

from __future__ import annotations

import math
import re
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import fastdp
from fastdp import (
    Conjunction,
    Domain,
    Linear,
    marginals,
)
from fastdp.answering import mwem_measured
from fastdp.answering.mwem_average import AverageRounds
from fastdp.answering.mwem_measured import MeasuredPlan
from fastdp.answering.mwem_plan import plain_noise_error
from fastdp.answering.queries.bound_query import UNIT
from fastdp.randomness import noise_draws
from fastdp.support.errors import AccuracyWarning
from tests.answering.multiplicative_weights_laws import (
    zcdp_delta,
)
from tests.answering.mwem_runs import PEOPLE, SMALL, fit, plan
from tests.oracles.privacy import range_rho

NUMBERS: list[dict[str, Any]] = [
    {"n": 10**4, "log_cells": 11.0, "queries": 1000, "epsilon": 1.0, "delta": 1e-6, "beta": 0.05},
    {"n": 254_654, "log_cells": math.log(50_880), "queries": 30_000, "epsilon": 0.1, "delta": 1e-9, "beta": 0.01},
    {"n": 10**5, "log_cells": 69.3, "queries": 10, "epsilon": 3.0, "delta": 0.0, "beta": 0.2},
    {"n": 50, "log_cells": 1.0, "queries": 2, "epsilon": 1.0, "delta": 1e-3, "beta": 0.5},
]


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("count", [None, 1, 7, 300])
def test_the_schedule_of_average_is_theorem_2(numbers: dict[str, Any], count: int | None) -> None:
    rounds = AverageRounds.best(10_000, **numbers) if count is None else AverageRounds.of(count, **numbers)
    c, e = rounds.count, Fraction(rounds.range)
    epsilon, delta = Decimal(numbers["epsilon"]), Decimal(numbers["delta"])
    with localcontext() as context:
        context.prec = 40
        pure = c * e <= Fraction(numbers["epsilon"])
        rho = Decimal(c) * range_rho(rounds.range)
        assert pure or (delta and zcdp_delta(rho, epsilon) <= delta * (1 + Decimal("1e-6")))
        more = Decimal("1.02")  # not much is left over, by neither accounting
        assert c * e * Fraction(more) > Fraction(numbers["epsilon"])
        assert not delta or zcdp_delta(rho * more, epsilon) > delta
        k, n, cells = Decimal(numbers["queries"]), Decimal(numbers["n"]), Decimal(numbers["log_cells"])
        slack = 2 / Decimal(rounds.range) * (2 * k * c / Decimal(numbers["beta"])).ln()
        assert rounds.alpha == pytest.approx(float((cells / (2 * c)).sqrt() + slack / n + 1 / Decimal(UNIT)), rel=1e-12)
        assert rounds.rate == pytest.approx(float((8 * cells / c).sqrt()), rel=1e-12)


@pytest.mark.parametrize("numbers", NUMBERS)
def test_no_other_number_of_rounds_guarantees_much_more(numbers: dict[str, Any]) -> None:
    best = AverageRounds.best(10_000, **numbers)
    tried = [AverageRounds.of(count, **numbers).alpha for count in (*range(1, 400), *range(400, 10_001, 97))]
    assert min(tried) > best.alpha * 0.998


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (2.0, 0.0)])
@pytest.mark.parametrize("rounds", [1, 4, None])
def test_the_schedule_of_measured_is_theorem_3(
    relation: Any, tables: bool, epsilon: float, delta: float, rounds: int | None
) -> None:
    work = marginals(SMALL, 2)
    if not tables and relation == "add-remove":
        with pytest.raises(ValueError, match=r"^queries: must be marginals for variant='measured' under add-remove"):
            fit(PEOPLE, SMALL, list(work), variant="measured", neighbors=relation, records=10)
        return
    options = {"epsilon": epsilon, "delta": delta, "rounds": rounds, "neighbors": relation}
    made = plan(MeasuredPlan, PEOPLE, SMALL, work if tables else list(work), **options)
    c = made.rounds
    assert c == min(100 if rounds is None else rounds, work.tables if tables else len(work))
    moved = 2 if tables and relation == "replace-one" else 1
    choice, scale = Fraction(made.range), Fraction(made.noise.scale if not delta else made.noise.sigma) / UNIT
    if delta:
        assert Fraction(made.sigma) <= scale
        chosen = Fraction(range_rho(made.range))
        each = chosen + moved / (2 * scale**2)
        # by loss distributions: close to Gaussian noise alone of this rho, and no less private; moments allow less rho
        mu = math.sqrt(2 * c * each)
        alone = norm.sf(epsilon / mu - mu / 2) - math.exp(epsilon) * norm.sf(epsilon / mu + mu / 2)
        assert 0.8 * delta < alone < delta
        noise = fastdp.privacy.Gaussian(math.sqrt(moved) / float(scale))
        together = fastdp.privacy.LossDistribution((fastdp.BoundedRange(made.range), c), (noise, c))
        assert 0.995 * epsilon < together.epsilon(delta) <= epsilon
        assert zcdp_delta(Decimal(float(c * each)) / Decimal("1.05"), Decimal(epsilon)) > Decimal(delta)
        assert float(chosen) == pytest.approx(float(each) / 10, rel=1e-6)
    else:
        each = choice + moved / scale
        assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) < c * each <= Fraction(epsilon)
        assert choice == pytest.approx(float(each) / 10, rel=1e-6)
        assert made.sigma == pytest.approx(math.sqrt(2) * float(scale), rel=1e-12)


def test_what_is_measured_has_the_noise_that_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    integer_noise = noise_draws.integer_noise

    def watched(planned: Any, key: Any, n: int) -> Any:
        drawn.append((planned, bytes(np.asarray(key).tobytes()), n))
        return integer_noise(planned, key, n)

    monkeypatch.setattr(mwem_measured.noise_draws, "integer_noise", watched)
    work = marginals(SMALL, 2)
    for delta in (1e-6, 0.0):
        drawn.clear()
        made = plan(MeasuredPlan, PEOPLE, SMALL, work, delta=delta)
        fitted = fit(PEOPLE, SMALL, work, variant="measured", delta=delta)
        assert all(repr(planned) == repr(made.noise) for planned, _, _ in drawn)
        assert len({key for _, key, _ in drawn}) == fitted.rounds == work.tables
        sizes = dict(zip(work.subsets, map(math.prod, work.shapes), strict=True))
        assert [n for _, _, n in drawn] == [sizes[subset] for subset in fitted.chosen]


def test_when_gaussian_answers_need_fewer_records_it_says_so() -> None:
    few = [Conjunction({"a": 1}), Conjunction({"b": 2})]
    for delta, name in ((1e-6, "Gaussian"), (0.0, "Laplace")):
        with pytest.warns(
            AccuracyWarning, match=rf"^mwem guarantees an error of at most .*, plain {name} answers to these 2 queries "
        ) as w:
            fitted = fastdp.mwem(PEOPLE, SMALL, few, epsilon=1.0, delta=delta, rounds=40)
        assert w[0].filename == __file__
        # what it says: within alpha by so many records, and not by fewer
        (n,) = re.findall(
            r"[\d.] \(([\d,]+) records are enough for plain answers to reach [\d.]+\): see release_marginals, "
            r"or fastdp\.",
            str(w[0].message),
        )
        n = int(n.replace(",", ""))
        if delta:
            error = fastdp.bounds.gaussian(sensitivity=math.sqrt(2), epsilon=1.0, delta=delta, count=2)
        else:
            error = fastdp.bounds.laplace(sensitivity=2, epsilon=1.0, count=2)
        assert plain_noise_error(2, 2, 1.0, delta, 0.05) == error
        assert error / n <= fitted.alpha < error / (n - 1)
    assert plain_noise_error(2, 2, 1e-300, 1e-6, 0.05) == math.inf
    # no hint for "measured", or where there are very many queries
    fastdp.mwem(PEOPLE, SMALL, few, epsilon=1.0, delta=1e-6, variant="measured")
    domain = Domain(a=2)
    many = [Linear([i / 40_000, 1.0]) for i in range(40_000)]
    fastdp.mwem(np.zeros((1000, 1), int), domain, many, epsilon=1.0, delta=1e-6)


def test_few_rounds_take_laplace_noise_where_it_is_smaller_and_nobody_adds_up_rhos() -> None:
    work = marginals(SMALL, 2)
    for rounds in (1, 2, 3, 6):
        for relation in ("replace-one", "add-remove"):
            given: Any = {"rounds": rounds, "neighbors": relation}
            gaussian, laplace = (plan(MeasuredPlan, PEOPLE, SMALL, work, delta=delta, **given) for delta in (1e-6, 0.0))
            made = plan(MeasuredPlan, PEOPLE, SMALL, work, delta=1e-6, may_be_pure=True, **given)
            best = laplace if laplace.sigma < gaussian.sigma else gaussian
            assert (made.sigma, made.range, repr(made.noise)) == (best.sigma, best.range, repr(best.noise))
            assert made.guarantee == best.guarantee
            if rounds == 1:
                assert made.guarantee == fastdp.PureDP(1.0, neighbors=relation)
    options: Any = {"variant": "measured", "rounds": 1}
    assert fit(PEOPLE, SMALL, work, **options).guarantee == fastdp.PureDP(1.0)
    for theorem in ("zcdp", "gaussian", "best"):
        budget = fastdp.Budget(epsilon=2.0, delta=1e-5, theorem=theorem)
        assert not isinstance(fit(PEOPLE, SMALL, work, budget=budget, **options).guarantee, fastdp.PureDP)
