"""MWEM (fastdp/answering/mwem.py): budgets, bad input, what comes back."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import (
    Budget,
    Conjunction,
    Domain,
    DomainError,
    Mask,
    Product,
    Randomness,
    Range,
    marginals,
)
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.mwem_average import AveragePlan
from fastdp.answering.queries.bound_query import UNIT
from fastdp.answering.queries.marginals import Marginals
from fastdp.answering.queries.query import bind
from tests.answering.multiplicative_weights_laws import (
    DOMAIN,
    QUERIES,
    all_counts,
    zcdp_delta,
)
from tests.answering.mwem_runs import PEOPLE, SMALL, fit, plan
from tests.conftest import Watched

FEWER = Domain(a=4, b=2, c=2, d=5)

# --- budgets, bad input, what comes back


@pytest.mark.parametrize("variant", ["average", "measured"])
def test_it_is_charged_once(variant: Any) -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    # rounds enough that Gaussian measurements are the smaller ones
    work, rounds = marginals(SMALL, 2), 60 if variant == "average" else 6
    fitted = fit(PEOPLE, SMALL, work, variant=variant, rounds=rounds, budget=budget)
    (row,) = budget.releases
    assert row.mechanism == "mwem"
    assert row.parameters == {"epsilon": 1.0, "delta": 1e-6, "rounds": rounds, "variant": variant}
    with pytest.raises(fastdp.BudgetExceeded, match="mwem asks for"):
        fit(PEOPLE, SMALL, work, variant=variant, budget=budget)
    assert len(budget.releases) == 1
    assert fastdp.ApproxDP(1.0, 1e-6) in fitted.guarantee.parts
    (concentrated,) = [part for part in fitted.guarantee.parts if isinstance(part, fastdp.ZCDP)]
    more = Decimal("1.15" if variant == "measured" else "1")  # by loss distributions more fits than by moments
    with localcontext() as context:
        context.prec = 40
        assert zcdp_delta(Decimal(concentrated.rho) / more, Decimal(1)) <= Decimal("1.001e-6")
    pure = fit(PEOPLE, SMALL, marginals(SMALL, 1), variant=variant, rounds=2, delta=0.0)
    assert pure.guarantee == fastdp.PureDP(1.0)
    added = fit(PEOPLE, SMALL, marginals(SMALL, 1), variant=variant, rounds=2, neighbors="add-remove", records=9)
    assert added.guarantee.neighbors == "add-remove"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"neighbors": "add-remove"}, ValueError, r"^records=None: must be given with neighbors='add-remove'$"),
        ({"records": 5}, ValueError, r"^records=5: must be None with neighbors='replace-one'$"),
        ({"neighbors": "add-remove", "records": 0}, ValueError, r"^records=0: must be an integer >= 1"),
        ({"neighbors": "friends"}, ValueError, r"^neighbors='friends'"),
        ({"epsilon": 0.0}, ValueError, r"^epsilon=0\.0: must be"),
        ({"epsilon": math.inf}, ValueError, r"^epsilon=inf: must be"),
        ({"delta": 1.5}, ValueError, r"^delta=1\.5: must be"),
        ({"beta": 1.0}, ValueError, r"^beta=1\.0: must be"),
        ({"rounds": 0}, ValueError, r"^rounds=0: must be an integer >= 1"),
        ({"rounds": 1.5}, ValueError, r"^rounds=1\.5"),
        ({"variant": "median"}, ValueError, r"^variant='median': must be"),
        ({"outside": "drop"}, ValueError, r"^outside='drop': must be"),
        ({"queries": None}, ValueError, r"^queries: type NoneType: must be a sequence of queries$"),
        ({"queries": Conjunction({"a": 1})}, ValueError, r"^queries=Conjunction\(.*\): must be several queries"),
        ({"queries": []}, ValueError, r"^queries: must be at least one$"),
        ({"queries": [Conjunction({"a": 1}), 3]}, ValueError, r"^query: type int: must be a query"),
        ({"queries": [Conjunction({"e": 1})]}, ValueError, r"^attribute='e'"),
        ({"queries": [Conjunction({"a": 4})]}, ValueError, r"^a=4: must be a code"),
        ({"queries": [Mask([1, 0])]}, ValueError, r"^cells: shape \(2,\)"),
        ({"domain": 3}, ValueError, r"^domain: type int: must be a fastdp\.Domain$"),
        (
            {"domain": Domain(a=4, b=2, c=2, d=5), "queries": [Range("b", 0, 1)] * 9},
            DomainError,
            r"^column 'b': must hold codes from 0 to 1 only",
        ),
        ({"data": PEOPLE[:0]}, ValueError, r"^data: n=0 records: must be at least one$"),
        ({"data": np.full((5, 4), np.nan)}, DomainError, r"^column 'a': must not hold NaN$"),
        ({"data": PEOPLE[:, :3]}, ValueError, r"^data: 3 columns without names: must be 4"),
        ({"rng": 7}, ValueError, r"^rng=7: must be a fastdp.Randomness or None"),
        ({"budget": 3}, ValueError, r"^budget=3: must be a fastdp\.Budget or None"),
    ],
)
@pytest.mark.parametrize("variant", ["average", "measured"])
def test_what_cannot_be_is_said_before_anything_is_spent(
    variant: Any, options: Any, error: type[Exception], message: str
) -> None:
    budget = Budget(epsilon=5.0, delta=1e-5)
    given = {"data": PEOPLE, "domain": SMALL, "queries": marginals(SMALL, 2), "variant": variant, "budget": budget}
    given = {**given, "rng": Watched(), **options}
    with pytest.raises(error, match=message):
        fit(given.pop("data"), given.pop("domain"), given.pop("queries"), **given)
    assert len(budget.releases) == 0


def test_progress_and_what_comes_back() -> None:
    seen: list[Any] = []
    work = marginals(SMALL, 1)
    fitted = fit(PEOPLE, SMALL, work, rounds=7, progress=lambda *args: seen.append(args))
    assert [args[:2] for args in seen][-1] == (7, 7)
    assert [args[0] for args in seen] == sorted(args[0] for args in seen)
    assert fitted.rounds == len(fitted.chosen) == 7
    assert all(query in work for query in fitted.chosen)
    assert fitted.n == 20_000
    assert "7 rounds" in repr(fitted)
    assert f"alpha={fitted.alpha:.4g}" in repr(fitted)
    assert fit(PEOPLE, SMALL, iter([Conjunction({"a": 1})]), rounds=1).chosen == [Conjunction({"a": 1})]
    assert fit(PEOPLE[:20], SMALL, work, rounds=1).alpha is None, "there is no bound where alpha is not below 1"


@pytest.mark.parametrize("variant", ["average", "measured"])
def test_a_seed_gives_the_same_bits_for_every_number_of_threads(variant: Any) -> None:
    domain = Domain.binary(21)
    data = np.random.default_rng(1).random((20_000, 21)) < 0.2
    queries: Any = [Conjunction({f"v{i}": 1, f"v{i + 1}": 1}) for i in range(1, 21)]
    work = queries if variant == "average" else Marginals(domain, [["v1", "v2"], ["v3", "v21"], ["v2", "v5"]])

    def run(seed: int) -> bytes:
        fitted = fit(data, domain, work, variant=variant, rounds=2, rng=Randomness(seed=seed))
        return b"".join(np.float64(fitted.answer(query)).tobytes() for query in queries)

    before = fastdp.get_num_threads()
    try:
        results = []
        for threads in (1, 2):
            fastdp.set_num_threads(threads)
            results.append(run(4))
    finally:
        fastdp.set_num_threads(before)
    assert results[0] == results[1]
    if variant == "measured":  # the other one's choices are the same: their gaps are the largest by far
        assert run(5) != results[0]


def test_the_tiny_domain_is_the_one_of_the_enumeration() -> None:
    """The model's gaps are those of the code, on its grid."""
    weights = DenseWeights(DOMAIN)
    weights.scale(bind(Product({"a": [0]}), DOMAIN), 0.8)
    shares = weights.probabilities()
    for counts in all_counts(3):
        data = np.repeat(np.arange(3), counts)[:, None]
        one = plan(AveragePlan, data, DOMAIN, [Product({"a": list(codes)}) for codes in QUERIES])
        gaps = one.gaps(one.counts, one.workload.evaluate(weights))
        right = [
            UNIT * sum(counts[i] for i in query) - 3 * math.floor(UNIT * sum(shares[i] for i in query))
            for query in QUERIES
        ]
        assert gaps.tolist() == right


@pytest.mark.parametrize("variant", ["average", "measured"])
def test_marginals_of_another_domain_are_refused(variant: Any) -> None:
    """Attributes in another order would be tables of something else."""
    budget = Budget(epsilon=5.0, delta=1e-5)
    people = np.random.default_rng(0).integers(2, size=(100, 2))
    with pytest.raises(ValueError, match=r"^queries: must be marginals of `domain`"):
        fit(people, Domain(a=2, b=2), marginals(Domain(b=2, a=2), 2), variant=variant, budget=budget)
    assert len(budget.releases) == 0


def test_a_result_prints_its_own_class_and_one_round_as_one() -> None:
    queries = marginals(SMALL, 2)
    fitted = fastdp.mwem(PEOPLE, SMALL, queries, epsilon=1.0, delta=1e-6, rounds=1)
    assert repr(fitted).startswith("FittedDistribution(")
    assert ", 1 round" in repr(fitted)
    assert "rounds" not in repr(fitted)
    assert "; at most 1 round;" in str(fastdp.bounds.mwem(5000, SMALL, queries, epsilon=1.0, delta=1e-6, rounds=1))
