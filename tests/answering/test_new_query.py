"""A new kind of query is one class: this one is defined here alone, and everything takes it."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Domain, PrivateMultiplicativeWeights, Randomness, SyntheticDistribution
from fastdp.answering.queries.bound_query import BoundCells, BoundProduct, BoundQuery
from fastdp.answering.queries.query import Query
from fastdp.answering.true_answers import TrueAnswers
from fastdp.answering.workload import Workload
from fastdp.support.errors import AccuracyWarning

DOMAIN = Domain(a=6, b=4, c=2)
PEOPLE = np.random.default_rng(0).integers(0, DOMAIN.sizes, (30_000, 3)) % [5, 3, 2]


class EvenCode(Query):
    """Records whose code of one attribute is even: a product, for domains of any size."""

    attribute: str

    def __init__(self, attribute: str) -> None:
        self._state(attribute=attribute)

    def bind(self, domain: Domain) -> BoundQuery:
        position = domain.position(self.attribute)
        return BoundProduct(domain, ((position, np.arange(domain.sizes[position]) % 2 == 0),))

    def _key(self) -> Any:
        return self.attribute

    def __repr__(self) -> str:
        return f"EvenCode({self.attribute!r})"


class Mean(Query):
    """The mean of an attribute, as a fraction of its largest code: a value for each cell."""

    keeps_bound = False
    attribute: str

    def __init__(self, attribute: str) -> None:
        self._state(attribute=attribute)

    def bind(self, domain: Domain) -> BoundQuery:
        position = domain.position(self.attribute)
        codes = np.arange(domain.size) // domain.strides[position] % domain.sizes[position]
        return BoundCells(domain, np.rint(codes / (domain.sizes[position] - 1) * 2.0**16) / 2.0**16)

    def _key(self) -> Any:
        return self.attribute

    def __repr__(self) -> str:
        return f"Mean({self.attribute!r})"


QUERIES: list[Any] = [EvenCode("a"), EvenCode("b"), Mean("a"), Mean("c")]
EXACT = np.array(
    [(PEOPLE[:, 0] % 2 == 0).mean(), (PEOPLE[:, 1] % 2 == 0).mean(), PEOPLE[:, 0].mean() / 5, PEOPLE[:, 2].mean()]
)


@pytest.fixture(autouse=True)
def _plain_noise_would_do() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        yield


def test_it_is_a_value() -> None:
    assert EvenCode("a") == EvenCode("a") != EvenCode("b")
    assert len({EvenCode("a"), EvenCode("a"), Mean("a")}) == 2
    assert pickle.loads(pickle.dumps(QUERIES)) == QUERIES
    with pytest.raises(AttributeError, match="does not change"):
        EvenCode("a").attribute = "b"
    with pytest.raises(ValueError, match="d"):
        EvenCode("d").bind(DOMAIN)


def test_records_are_counted_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for few_cells in (1 << 17, 0):  # from the histogram, and from packed records
        monkeypatch.setattr("fastdp.answering.true_answers._FEW_CELLS", few_cells)
        monkeypatch.setattr("fastdp.answering.true_answers._A_RECORD", 0.0)
        counts = Workload(QUERIES, DOMAIN).counts(TrueAnswers(PEOPLE, DOMAIN))
        assert np.allclose(counts / (len(PEOPLE) * 2.0**16), EXACT, atol=2.0**-16)


@pytest.mark.parametrize("weights", ["dense", "factored"])
def test_private_multiplicative_weights_answers_it(weights: Any) -> None:
    run = PrivateMultiplicativeWeights(
        PEOPLE, DOMAIN, epsilon=5.0, delta=1e-6, max_queries=100, weights=weights, rng=Randomness(seed=1)
    )
    answers = run.answer_many(QUERIES)
    assert run.updates >= 1
    assert abs(answers - EXACT).max() <= run.alpha < 0.5
    assert abs(run.synthetic.answer_many(QUERIES) - EXACT).max() <= run.alpha


@pytest.mark.parametrize("variant", ["average", "measured"])
def test_mwem_fits_it(variant: Any) -> None:
    fitted = fastdp.mwem(
        PEOPLE, DOMAIN, QUERIES, epsilon=5.0, delta=1e-6, variant=variant, rounds=4, rng=Randomness(seed=1)
    )
    uniform = SyntheticDistribution(np.ones(DOMAIN.size), DOMAIN)
    before, after = (abs(each.answer_many(QUERIES) - EXACT).max() for each in (uniform, fitted))
    assert after < before
    assert set(fitted.chosen) <= set(QUERIES)


def test_a_synthetic_distribution_answers_it() -> None:
    weights = np.random.default_rng(2).random(DOMAIN.size)
    made, shares = SyntheticDistribution(weights, DOMAIN), weights.reshape(DOMAIN.sizes) / weights.sum()
    assert made.answer(EvenCode("b")) == pytest.approx(shares[:, ::2].sum())
    assert made.answer(Mean("a")) == pytest.approx((shares.sum((1, 2)) * np.arange(6) / 5).sum(), abs=2.0**-16)
    assert made.answer_many(QUERIES) == pytest.approx([made.answer(query) for query in QUERIES])
