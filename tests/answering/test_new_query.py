"""A new kind of query is one class: this one is defined here alone, and everything takes it."""

from __future__ import annotations

import copy
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
        PEOPLE, DOMAIN, epsilon=5.0, delta=1e-6, max_queries=100, variant="sharp", weights=weights,
        rng=Randomness(seed=1),
    )  # fmt: skip
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


# --- what a query of the caller's own is bound to is checked before anything reads it


class Bound(Query):
    """Whatever it is given."""

    def __init__(self, bound: Any) -> None:
        self._state(bound=bound)

    def bind(self, domain: Domain) -> BoundQuery:
        made: BoundQuery = self.bound(domain) if callable(self.bound) else self.bound
        return made

    def _key(self) -> Any:
        return id(self.bound)

    def __repr__(self) -> str:
        return "Bound()"


class Counting(BoundCells):
    """A form of the caller's own, which may return any count."""

    def count(self, counts: Any) -> int:
        return 10**6


def table(size: int, dtype: Any = bool) -> Any:
    return np.ones(size, dtype)


SIZE = DOMAIN.size
WRONG: dict[str, Any] = {
    "a short table": BoundProduct(DOMAIN, ((0, table(5)),)),
    "a table of bytes": BoundProduct(DOMAIN, ((0, table(6, np.uint8)),)),
    "a list": BoundProduct(DOMAIN, ((0, [True] * 6),)),  # type: ignore[arg-type]
    "no such attribute": BoundProduct(DOMAIN, ((3, table(6)),)),
    "the last one from behind": BoundProduct(DOMAIN, ((-1, table(2)),)),
    "twice": BoundProduct(DOMAIN, ((0, table(6)), (0, table(6)))),
    "in another order": BoundProduct(DOMAIN, ((1, table(4)), (0, table(6)))),
    "on another domain": BoundProduct(Domain(a=6, b=4), ((0, table(6)),)),
    "few values": BoundCells(DOMAIN, np.zeros(SIZE - 1)),
    "a shape": BoundCells(DOMAIN, np.zeros(DOMAIN.sizes)),
    "two": BoundCells(DOMAIN, np.full(SIZE, 2, np.uint8)),
    "more than 1": BoundCells(DOMAIN, np.full(SIZE, 1.5)),
    "less than 0": BoundCells(DOMAIN, np.full(SIZE, -(2.0**-16))),
    "NaN": BoundCells(DOMAIN, np.where(np.arange(SIZE) == 7, np.nan, 0.0)),
    "off the grid": BoundCells(DOMAIN, np.full(SIZE, 1 / 3)),
    "integers": BoundCells(DOMAIN, np.zeros(SIZE, np.int64)),
    "float32": BoundCells(DOMAIN, np.zeros(SIZE, np.float32)),
    "values as a list": BoundCells(DOMAIN, [0.0] * SIZE),  # type: ignore[arg-type]
    "a form of its own": Counting(DOMAIN, np.zeros(SIZE)),
    "nothing": None,
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_it_is_bound_to_is_checked(kind: str) -> None:
    """Nothing is charged, and no kernel reads it: values beyond 1 would count a record more than once."""
    query, budget = Bound(WRONG[kind]), fastdp.Budget(epsilon=1.0)
    with pytest.raises(ValueError, match=r"^query: bind\(\) "):
        SyntheticDistribution(np.ones(SIZE), DOMAIN).answer(query)
    with pytest.raises(ValueError, match=r"^query: bind\(\) "):
        fastdp.mwem(PEOPLE, DOMAIN, [query], epsilon=0.5, variant="average", budget=budget)
    assert not budget.releases


def test_what_it_holds_afterwards_is_not_what_is_read() -> None:
    """Neither its arrays, nor what it has put in place of how cells are walked over; bytes of a bool are 0 or 1."""
    values, marks = np.zeros(SIZE), np.array([1, 0, 0, 0, 0, 0], np.uint8).view(bool)
    poisoned = BoundProduct(DOMAIN, ((0, marks),))
    vars(poisoned)["plan"] = poisoned.plan._replace(outer=np.array([10**9]))
    workload = Workload([Bound(BoundCells(DOMAIN, values)), Bound(poisoned)], DOMAIN)
    true = TrueAnswers(PEOPLE, DOMAIN)
    before = workload.counts(true).tolist()
    values[:] = 50.0
    marks.view(np.uint8)[:] = 200
    assert workload.counts(true).tolist() == before == [0, int((PEOPLE[:, 0] == 0).sum()) << 16]


@pytest.mark.parametrize("kind", ["mask", "linear", "table"])
def test_our_own_are_bound_to_what_nobody_can_write_to(kind: str) -> None:
    given: Any = np.zeros(SIZE) if kind == "linear" else np.zeros(SIZE if kind == "mask" else 6, bool)
    query: Any = {"mask": fastdp.Mask, "linear": fastdp.Linear}.get(kind, lambda table: fastdp.Product({"a": table}))(
        given
    )
    for each in (query, copy.deepcopy(query), pickle.loads(pickle.dumps(query))):
        bound = each.bind(DOMAIN)
        held: Any = dict(bound.allowed)[0] if kind == "table" else bound.values
        while isinstance(held, np.ndarray):
            with pytest.raises(ValueError, match="cannot set WRITEABLE"):
                held.flags.writeable = True
            held = held.base
        assert isinstance(held, bytes)
