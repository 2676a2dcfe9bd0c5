"""Marginals as a workload (fastdp/answering/queries/marginals.py), and queries as values."""

from __future__ import annotations

import pickle
from itertools import combinations, product
from typing import Any

import numba
import numpy as np
import pytest

import fastdp
from fastdp import Conjunction, Domain, Linear, Mask, Predicate, Product, Range, marginals
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.queries.marginals import Marginals
from fastdp.answering.queries.query import bind
from fastdp.answering.workload import Workload
from tests.answering.kinds_of_domains import DOMAIN, EASY, cells_of, pmw_on

# that plain noise would guarantee more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)


def test_marginals_are_a_sequence_of_conjunctions() -> None:
    for k in (1, 2, 3):
        work = marginals(DOMAIN, k)
        expected: list[Any] = []
        for subset in combinations(DOMAIN.names, k):
            values = [DOMAIN.labels[p] or range(DOMAIN.sizes[p]) for p in DOMAIN.positions(subset)]
            expected += [Conjunction(dict(zip(subset, chosen, strict=True))) for chosen in product(*values)]
        assert len(work) == len(expected)
        assert list(work) == expected
        assert [work[i] for i in range(len(work))] == expected
        assert [work[i] for i in range(-len(work), 0)] == expected
        assert work[np.int64(1)] == expected[1]
        assert work[3:8] == expected[3:8]
        assert work[::-2] == expected[::-2]
        assert work[-4:] == expected[-4:]
        assert list(reversed(work)) == expected[::-1]
        assert expected[2] in work
        assert work.index(expected[-1]) == len(work) - 1
        for index in (len(work), -len(work) - 1):
            with pytest.raises(IndexError, match=rf"^index={index}: must be below {len(work)}$"):
                work[index]


def test_marginals_know_their_tables() -> None:
    work = Marginals(DOMAIN, [("sex", "age"), ["region"], ()])
    assert work.subsets == (("age", "sex"), ("region",), ()), "attributes in the order of the domain"
    assert work.shapes == ((4, 2), (3,), ())
    assert work.tables == 3
    assert len(work) == 12
    assert list(work)[-1] == Conjunction({})
    assert work[11] == Conjunction({})
    assert repr(work) == "Marginals(<3 tables, 12 cells>)"
    assert marginals(Domain.binary(20), 3).tables == 1140


def test_every_record_is_in_one_cell_of_each_table() -> None:
    work = marginals(DOMAIN, 2)
    assert (sum(cells_of(query).astype(int) for query in work) == work.tables).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: marginals(DOMAIN, 0), "^k=0: must be an integer >= 1$"),
        (lambda: marginals(DOMAIN, 1.5), "^k=1.5: must be"),  # type: ignore[arg-type]
        (lambda: marginals(DOMAIN, 4), "^k=4: must be at most the number of attributes, 3$"),
        (lambda: Marginals(DOMAIN, []), "^subsets: must be at least one set of attributes$"),
        *(
            (
                lambda subsets=subsets: Marginals(DOMAIN, subsets),
                rf"^subsets: '{subsets if isinstance(subsets, str) else 'age'}': must be a list of names, such as "
                r"\[\['age', 'sex'\], \['region'\]\] for two tables$",
            )
            for subsets in (["age", "region"], [["sex"], "age"], "sex")
        ),
        (lambda: Marginals(DOMAIN, 3), "^subsets: type int: must be sets of attributes"),
        (
            lambda: fastdp.release_marginals(np.ones((5, 3), int), DOMAIN, ["age", "sex"], epsilon=1.0, delta=1e-6),
            "^workload: 'age': must be a list of names",
        ),
        (lambda: Marginals(DOMAIN, [("age", "sex"), ("sex", "age")]), "^subsets: must not repeat$"),
        (lambda: Marginals(DOMAIN, [("age", "age")]), "^attributes=.*: must not repeat$"),
        (lambda: Marginals(DOMAIN, [("height",)]), "^attribute='height'"),
    ],
)
def test_what_is_no_set_of_marginals(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_public_is_public() -> None:
    for name in ("Conjunction", "Domain", "Linear", "Mask", "Predicate", "Product", "Range", "marginals"):
        assert name in fastdp.__all__


def test_queries_are_values() -> None:
    table = np.array([True, False, True, False])
    same = [
        (Product({"age": [0, 2], "sex": 1}), Product({"sex": np.int64(1), "age": np.array([2, 0])})),
        (Product({"age": {0, 2}}), Product({"age": range(0, 3, 2)})),
        (Product({"age": table}), Product({"age": table.tolist()})),
        (Range("age", 1, 2), Range("age", np.uint8(1), 2)),
        (Mask(table), Mask([1, 0, 1, 0])),
        (Linear([0.25, 1.0]), Linear(np.array([0.25, 1.0], np.float32))),
    ]
    for one, other in same:
        assert one == other
        assert hash(one) == hash(other)
        assert pickle.loads(pickle.dumps(one)) == one
    every = [pair[0] for pair in same]
    assert len(set(every)) == len(every)
    assert Product({"age": [0, 1]}) != Product({"age": [False, True]}), "the second is a table"
    assert Range("age", 1, 2) != Range("age", 1, 3)
    for query, name in zip(every, ("allowed", "allowed", "allowed", "low", "cells", "values"), strict=True):
        with pytest.raises(AttributeError, match=f"^{name}: a query does not change; make another$"):
            setattr(query, name, 0)
    with pytest.raises(TypeError):
        every[0].allowed["sex"] = 0
    with pytest.raises(ValueError, match="read-only"):
        every[2].allowed["age"][0] = False
    assert Conjunction({"age": [[]]}) == Conjunction({"age": [[]]}), "no value, which is told when it is bound"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: marginals(3, 1), r"^domain: type int: must be a fastdp\.Domain$"),
        (lambda: Marginals("abc", [["a"]]), r"^domain: type str: must be a fastdp\.Domain$"),
        (lambda: Linear(["x"]), r"^values: dtype <U1: must be numbers in \[0, 1\]$"),
        (lambda: Linear([1j]), r"^values: dtype complex128: must be numbers in \[0, 1\]$"),
        (
            lambda: bind(Predicate(numba.njit(lambda cell: cell.nothing)), DOMAIN),
            r"^function=.*: must compile for a cell number: ",
        ),
        (
            lambda: pmw_on(Domain.binary(2000)).answer_many(None),
            r"^queries: type NoneType: must be a sequence of queries$",
        ),
        (lambda: pmw_on(Domain.binary(2000)).answer_many(EASY), r"^queries=Conjunction\(.*\): must be several queries"),
    ],
)
def test_what_is_no_query_is_told(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_predicates_are_not_all_kept_as_masks() -> None:
    domain = Domain.binary(16)
    queries = [Predicate(numba.njit(lambda cell: cell % 3 == 0))] * 90
    work = Workload(queries, domain)
    made = [work.bound(i) for i in range(90)]
    assert len({id(bound) for bound in made}) > 1
    assert all((bound.values == made[0].values).all() for bound in made)
    assert work._bounds == [None] * 90
    assert np.allclose(work.evaluate(DenseWeights(domain)), made[0].values.mean())
