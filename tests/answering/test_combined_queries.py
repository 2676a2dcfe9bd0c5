"""Queries made of others, bounded sums, averages over a part (queries/combined.py, ratio.py)."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Bins, Combination, Conjunction, Domain, Linear, Product, Randomness, Range, Scaled
from fastdp.answering import Ratio
from fastdp.answering.multiplicative_weights_run import Answer
from fastdp.answering.queries.query import bind
from fastdp.answering.ratio import ratio_of
from tests.answering.plain_weights import chosen, some_query

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")

DOMAIN = Domain(age=Bins([0, 18, 30, 65, 120], missing=True), sex=["f", "m"], region=3)
PRICE: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6, "rng": Randomness(seed=1)}


@pytest.fixture(scope="module")
def people() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    ages = rng.integers(0, 110, 50_000).astype(float)
    ages[rng.random(ages.size) < 0.05] = np.nan
    return {
        "age": ages,
        "sex": np.where(rng.random(ages.size) < 0.4, "f", "m"),
        "region": rng.integers(3, size=ages.size),
    }


def middles(people: dict[str, Any]) -> np.ndarray:
    """The value of each record as the domain has it."""
    codes = DOMAIN.encode_column(0, people["age"])
    return np.array([np.nan if label is None else label for label in DOMAIN.labels[0]])[codes]


def test_combinations_are_sums_in_every_cell() -> None:
    domain, rng = Domain(a=3, b=4, c=2), np.random.default_rng(4)
    for _ in range(40):
        queries = [some_query(rng, domain) for _ in range(3)]
        weights = rng.dirichlet(np.ones(4))[:3]
        right = sum(w * chosen(bind(q, domain)) for w, q in zip(weights, queries, strict=True))
        found = Combination(queries, weights).bind(domain).values
        np.testing.assert_allclose(found, right, atol=2.0**-17 + 1e-12)
        assert (found * 2**16 == np.rint(found * 2**16)).all()
        other = Combination([Combination(queries, weights)], [-1], constant=1.0).bind(domain).values
        np.testing.assert_allclose(other, 1 - found, atol=1e-12)


def test_sums_of_a_column_are_answered(people: dict[str, Any]) -> None:
    values, women = middles(people), people["sex"] == "f"
    run = fastdp.PrivateMultiplicativeWeights(people, DOMAIN, max_queries=100, **PRICE)
    for query, among in ((Scaled("age", 10, 60), True), (Scaled("age", 10, 60, among=Product({"sex": "f"})), women)):
        right = np.nan_to_num((np.clip(values, 10, 60) - 10) / 50) * among
        assert abs(run.answer(query) - right.mean()) <= run.alpha + 2.0**-16
    adults = Range("age", 18, 65)
    assert abs(run.answer(adults) - ((people["age"] >= 18) & (people["age"] < 120)).mean()) < 0.6
    everybody_else = Combination([Product({"sex": "f", "region": 1})], [-1], constant=1)
    exact = 1 - (women & (people["region"] == 1)).mean()
    assert abs(run.answer(everybody_else) - exact) <= run.alpha


@pytest.mark.parametrize("variant", ["plain", "measured"])
def test_averages_come_with_their_error(people: dict[str, Any], variant: Any) -> None:
    values, rng = middles(people), np.random.default_rng(1)
    run = fastdp.PrivateMultiplicativeWeights(people, DOMAIN, max_queries=1000, variant=variant, **PRICE)
    for among, part in (
        (None, np.ones(values.size, bool)),
        (Product({"sex": "f"}), people["sex"] == "f"),
        (Conjunction({"sex": "m", "region": 2}), (people["sex"] == "m") & (people["region"] == 2)),
    ):
        found = run.average("age", 0, 100, among)
        assert isinstance(found, Ratio)
        assert found.bound is not None
        right = np.nanmean(np.clip(values, 0, 100)[part])
        assert abs(found.value - right) <= found.bound + 0.01
        assert found.bound < 100
    assert rng is not None
    assert run.average("region", 0, 2).value == pytest.approx(people["region"].mean(), abs=0.2)
    nobody = run.average("age", 0, 100, Product({"sex": []}))
    assert 0 <= nobody.value <= 100
    assert nobody.bound is None


def test_the_bound_of_a_ratio_holds_and_is_attained() -> None:
    rng, tight = np.random.default_rng(3), 0.0
    for _ in range(4000):
        B = rng.uniform(0.05, 1)
        A = B * rng.random()
        e, f = rng.uniform(0, 0.05, 2)
        a, b = A + rng.choice([-e, e]), B + rng.choice([-f, f])
        found = ratio_of(Answer(None, a, False, e), Answer(None, b, False, f), 0.0, 1.0)
        if found.bound is not None:
            assert abs(found.value - A / B) <= found.bound + 1e-12
            tight = max(tight, abs(found.value - A / B) / found.bound)
    assert tight > 0.9
    assert ratio_of(Answer(None, 0.3, False, None), Answer(None, 0.5, False, 0.1), 0, 1) == (0.6, None)
    assert ratio_of(Answer(None, 0.0, False, 0.1), Answer(None, 0.0, False, 0.1), 10, 20) == (15.0, None)


def test_values_are_on_the_grid_whatever_the_part() -> None:
    """A part may be a query with values between 0 and 1, too: what is counted is what is evaluated."""
    domain = Domain(x=7)
    thirds = Linear(np.full(7, 1 / 3))
    values = bind(Scaled("x", 0, 7, among=thirds), domain).values * 2.0**16  # type: ignore[attr-defined]
    assert (values == np.rint(values)).all()
    assert np.abs(values - np.arange(7) / 7 * thirds.values * 2.0**16).max() <= 0.5


def test_they_are_equal_pickle_and_print() -> None:
    for query in (
        Scaled("age", 1, 5, among=Product({"sex": "f"})), Scaled("age", 1.5, 5),
        Combination([Conjunction({"sex": "f"})], [-1], constant=1), Combination([Linear([0.5, 0.1])]),
    ):  # fmt: skip
        again = pickle.loads(pickle.dumps(query))
        assert again == query
        assert hash(again) == hash(query)
        assert repr(query).startswith(type(query).__name__)
    assert eval(repr(Scaled("age", 1, 5)), {"Scaled": Scaled}) == Scaled("age", 1.0, 5.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Scaled("age", 5, 5), r"^low=5: must be below high=5$"),
        (lambda: Scaled("age", 1, 5).part([3]), r"^domain: type list: must be a fastdp.Domain$"),
        (lambda: Scaled("age", float("nan"), 5), r"^low=nan: must be"),
        (lambda: Scaled("age", -1e308, 1e308), r"^high - low=inf: must be finite$"),
        (lambda: Scaled("age", 0, 5, among="f"), r"^among: type str: must be a query, such as Product"),
        (lambda: Scaled("sex", 0, 5).bind(DOMAIN), r"^attribute='sex': must have labels that are numbers"),
        (lambda: Scaled("age", 0, 5).bind(Domain.binary(40)), r"^domain: .* cells: must be at most 2\^31"),
        (lambda: Combination([]), r"^queries: must be at least one query, and nothing else$"),
        (lambda: Combination([3]), r"^queries: must be at least one query, and nothing else$"),
        (lambda: Combination([Product({})], [1, 2]), r"^weights: shape \(2,\): must be one for each of 1 queries$"),
        (lambda: Combination([Product({})], [np.inf]), r"^weights: must be finite$"),
        (
            lambda: Combination([Product({})] * 2).bind(Domain(a=2)),
            r"^weights: values from 2 to 2: must lie in \[0, 1\]",
        ),
        (lambda: Combination([Product({})], constant="a"), r"^constant='a': must be a"),
    ],
)
def test_what_is_no_such_query_is_said(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
