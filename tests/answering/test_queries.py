"""Domains, the coding of columns, queries and workloads of marginals (fastdp/records/domain.py, queries.py)."""

from __future__ import annotations

import math
import pickle
import shutil
import subprocess
from itertools import combinations, product
from pathlib import Path
from typing import Any

import cffi
import numba
import numpy as np
import pandas
import pytest

import fastdp
from fastdp import Conjunction, Domain, DomainError, Linear, Mask, Predicate, Product, Range, marginals
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.queries.bound_query import BoundCells, BoundProduct
from fastdp.answering.queries.marginals import Marginals
from fastdp.answering.queries.query import bind
from fastdp.answering.workload import Workload
from fastdp.records.domain import code_type, shown
from fastdp.records.encoding import encode

# that plain noise would promise more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)

DOMAIN = Domain(age=4, region=["north", "south", "east"], sex=2)


def cells_of(query: Any, domain: Domain = DOMAIN) -> np.ndarray:
    """The value of a query in every cell, in the shape of the domain."""
    bound = bind(query, domain)
    if isinstance(bound, BoundCells):
        return bound.values.reshape(domain.sizes)
    cube = np.zeros(domain.sizes, np.uint8)
    tables = dict(bound.allowed)
    cube[np.ix_(*(tables.get(p, np.ones(size, bool)) for p, size in enumerate(domain.sizes)))] = 1
    return cube


def by_hand(rule: Any, domain: Domain = DOMAIN) -> np.ndarray:
    """The same from a function of the codes."""
    cube = np.zeros(domain.sizes, np.uint8)
    for codes in product(*map(range, domain.sizes)):
        cube[codes] = rule(*codes)
    return cube


# --- the domain


def test_a_domain_knows_its_attributes() -> None:
    assert DOMAIN.names == ("age", "region", "sex")
    assert DOMAIN.sizes == (4, 3, 2)
    assert DOMAIN.size == 24
    assert len(DOMAIN) == 3
    assert DOMAIN.labels == (None, ("north", "south", "east"), None)
    assert DOMAIN.strides == tuple(s // 8 for s in np.empty(DOMAIN.sizes).strides)
    assert DOMAIN.position("region") == 1
    assert DOMAIN.positions(["sex", "age"]) == (2, 0)
    assert DOMAIN.positions("sex") == (2,)
    assert not DOMAIN.is_binary


def test_binary_domains() -> None:
    domain = Domain.binary(3)
    assert domain.names == ("v1", "v2", "v3")
    assert domain.is_binary
    assert domain == Domain(v1=2, v2=2, v3=2)
    assert Domain.binary(2, prefix="bit").names == ("bit1", "bit2")
    large = Domain.binary(np.int64(100))
    assert large.size == 2**100
    assert large.strides[0] == 2**99
    assert Domain(a=["no", "yes"]).is_binary


def test_the_repr_makes_the_domain_again() -> None:
    for domain in (
        DOMAIN,
        Domain.binary(5),
        Domain.binary(5, prefix="w"),
        Domain({"hours worked": 5, "sex": ["f", "m"]}),
        Domain(a=range(3), b=[None, 1, "x"]),
        Domain(v1=["no", "yes"]),
    ):
        assert eval(repr(domain), {"Domain": Domain}) == domain
    assert repr(DOMAIN) == "Domain(age=4, region=['north', 'south', 'east'], sex=2)  # 24 cells"


def test_the_repr_of_a_large_domain_is_short() -> None:
    assert repr(Domain(age=range(18, 81), x=[2, 1, 0], m=[False, True])) == (
        "Domain(age=range(18, 81), x=[2, 1, 0], m=[False, True])  # 378 cells"
    )
    assert repr(Domain(zip=[f"{i:05}" for i in range(99)])) == (
        "Domain(zip=['00000', '00001', '00002', ..., '00098'])  # 99 cells"
    )
    assert repr(Domain({f"a{i}": 3 for i in range(50)})).startswith("Domain(a0=3, a1=3, ")
    assert repr(Domain({f"a{i}": 3 for i in range(50)})).endswith("a11=3, ...)  # 7.18e+23 cells")
    assert repr(Domain({f"a {i}": 3 for i in range(50)})).endswith("'a 11': 3, ...})  # 7.18e+23 cells")
    assert repr(Domain.binary(100)) == "Domain.binary(100)  # 1.27e+30 cells"


def test_equal_domains_are_equal_and_hash_alike() -> None:
    assert Domain(a=2, b=3) == Domain({"a": 2, "b": 3})
    assert hash(Domain(a=2, b=3)) == hash(Domain({"a": 2}, b=3))
    for other in (Domain(b=3, a=2), Domain(a=2, b=[0, 1, 2]), Domain(a=2, b=4), Domain(a=2), (2, 3)):
        assert Domain(a=2, b=3) != other


def test_values_and_their_codes() -> None:
    assert DOMAIN.code("age", 3) == 3
    assert DOMAIN.code("age", np.uint8(3)) == 3
    assert DOMAIN.code("sex", True) == 1
    assert DOMAIN.code("sex", np.False_) == 0
    assert DOMAIN.code("region", "east") == 2
    assert Domain(a=np.array([10, 20])).code("a", 20) == 1
    assert Domain(a=[None, 1.5, "x"]).code("a", None) == 0


def test_projections_keep_labels_and_the_order_asked_for() -> None:
    assert DOMAIN.project(["sex", "region"]) == Domain(sex=2, region=["north", "south", "east"])


def test_queries_show_how_they_are_written() -> None:
    north = r"Conjunction\(\{'region': 'north'\}\)$"
    for make, message in (
        (lambda: Conjunction(region="north"), r"^region='north': must be given in a mapping, as "),
        (lambda: Conjunction({"sex": 1}, region="north"), r"^region='north': must be given in a mapping, as "),
        (
            lambda: Conjunction("region"),
            "^allowed='region': must be a mapping from attributes to allowed values, such as ",
        ),
        (lambda: Conjunction(), "^allowed=None: must be a mapping from attributes to allowed values, such as "),
    ):
        with pytest.raises(ValueError, match=message + north):
            make()
    with pytest.raises(
        ValueError, match=r"^age=\[0, 1\]: must be given in a mapping, as Product\(\{'age': \[0, 1\]\}\)$"
    ):
        Product(age=[0, 1])


def test_masks_of_floats_and_of_too_many_cells() -> None:
    assert Mask([1.0, 0.0, 1.0]) == Mask([True, False, True])
    for wrong in ([1.0, 0.5], [1, 2], [math.nan]):
        with pytest.raises(
            ValueError, match=r"^cells: dtype .*: must be True and False, or 0 and 1; for other values "
        ):
            Mask(wrong)
    with pytest.raises(ValueError, match=r"^cells: shape \(5,\): must be") as caught:
        Mask(np.ones(5, bool)).bind(Domain.binary(100))
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize("called_before", [False, True])
def test_predicates_raise_what_their_function_raises_and_leave_it_alone(called_before: bool) -> None:
    divides = numba.njit(lambda cell: 10 // cell > 3)
    helper = numba.njit(lambda cell: 10 // cell)
    outer = numba.njit(lambda cell: helper(cell) > 3)
    for function, first in ((divides, divides), (outer, helper)):
        if called_before:
            first(1)
        before = list(first.signatures)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                Predicate(function).bind(Domain.binary(3))
        assert list(divides.signatures) == before or first is helper
        with pytest.raises(ZeroDivisionError):
            first(0)
    numpy_rules = numba.njit(error_model="numpy")(lambda cell: 10 // cell > 3)
    assert Predicate(numpy_rules).bind(Domain.binary(3)).values.tolist() == [0, 1, 1, 0, 0, 0, 0, 0]


def nothing_for_some(cell: int) -> Any:
    return True if cell > 3 else None


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: True, r"^function=.*: must be a function of one cell number \(too many positional arguments\)$"),
        (
            lambda a, b: a < b,
            r"^function=.*: must be a function of one cell number \(missing a required argument: 'b'\)$",
        ),
        (lambda cell: cell * 0.5, r"^function=.*: returns float64: must return True or False; for values use Linear$"),
        (lambda cell: None, r"^function=.*: returns none: must return True or False"),
        (nothing_for_some, r"^function=.*: returns OptionalType\(bool\): must return True or False"),
        (lambda cell: cell.nothing, r"^function=.*: must compile for a cell number: Unknown attribute 'nothing'"),
    ],
)
def test_what_is_no_predicate_is_told(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Predicate(numba.njit(function)).bind(Domain.binary(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Domain(), "^attributes: must be at least one$"),
        (lambda: Domain(a=0), r"^a=0: must be a number of values from 1 to 2\^31$"),
        (lambda: Domain(a=-3), "^a=-3: must be a number of values"),
        (lambda: Domain(a=2**31 + 1), "^a=2147483649: must be a number of values"),
        (lambda: Domain(a=True), "^a=True: must be a number of values, or a sequence of labels$"),
        (lambda: Domain(a=2.0), "^a=2.0: must be"),
        (lambda: Domain(a=None), "^a=None: must be"),
        (lambda: Domain(a="abc"), "^a='abc': must be a number of values, or a sequence of labels$"),
        (lambda: Domain(a=[]), r"^a=\[\]: must have at least one label$"),
        (lambda: Domain(a=["x", "x"]), r"^a=\['x', 'x'\]: labels must be distinct, and not NaN$"),
        (lambda: Domain(a=[1, True]), "labels must be distinct"),
        (lambda: Domain(a=[1.0, float("nan")]), "labels must be distinct, and not NaN$"),
        (lambda: Domain(a=[[1]]), "^a: labels must be hashable$"),
        (lambda: Domain({"": 2}), "^attributes: '': names must be strings, not empty$"),
        (lambda: Domain({3: 2}), "^attributes: 3: names must be strings"),
        (lambda: Domain({"a": 2}, a=3), "^attributes: 'a': must be given once$"),
        (lambda: Domain.binary(0), "^d=0: must be a whole number >= 1$"),
        (lambda: Domain(a={"x", "y"}), "^a: a set of labels: must be a list; sets are in another order in every "),
        (lambda: Domain(a=frozenset({1, 2})), "^a: a set of labels: must be a list"),
        (lambda: Domain(["a", "b"]), r"^attributes: type list: must be a mapping from names to numbers of values or"),
        (
            lambda: Domain(pandas.DataFrame({"a": [1]})),
            r"^attributes: type DataFrame: must be a mapping .* they are public, so not taken from the data$",
        ),
        (lambda: Domain(3), "^attributes: type int: must be a mapping"),
        (lambda: Domain([]), "^attributes: type list: must be a mapping"),
        (lambda: Domain.binary(2.0), "^d=2.0: must be"),
        (lambda: Domain.binary(True), "^d=True: must be"),
        (lambda: DOMAIN.position("height"), "^attribute='height': must be one of 'age', 'region', 'sex'$"),
        (lambda: DOMAIN.position([1]), "^attribute="),
        (lambda: DOMAIN.positions(["age", "age"]), r"^attributes=\['age', 'age'\]: must not repeat$"),
        (lambda: DOMAIN.code("age", 4), "^age=4: must be a code from 0 to 3$"),
        (lambda: DOMAIN.code("age", -1), "^age=-1: must be a code"),
        (lambda: DOMAIN.code("age", 1.0), "^age=1.0: must be a code"),
        (lambda: DOMAIN.code("region", "west"), r"^region='west': must be one of \['north', 'south', 'east'\]$"),
        (lambda: DOMAIN.code("region", ["north"]), "^region="),
        (lambda: DOMAIN.project([]), "^attributes: must be at least one$"),
        (lambda: Domain.binary(63).cells([np.zeros(1, np.uint8)] * 63), r"cells: must be at most 2\^62"),
    ],
)
def test_what_is_no_domain_is_told(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_many_names_are_not_all_listed() -> None:
    with pytest.raises(ValueError, match=r"'v12', \.\.\.$"):
        Domain.binary(30).position("v31")


def test_cells_are_numbered_in_c_order() -> None:
    columns = [np.random.default_rng(1).integers(0, size, 100) for size in DOMAIN.sizes]
    assert (DOMAIN.cells(columns) == np.ravel_multi_index(columns, DOMAIN.sizes)).all()


# --- columns


def test_codes_of_every_kind_of_number() -> None:
    right = [0, 3, 2, 1, 1]
    for values in (
        right,
        np.array(right, np.int8),
        np.array(right, np.uint64),
        np.array(right, ">i4"),
        np.array(right, float),
        np.array(right, np.float32),
        np.array(right, object),
        np.array([0, np.int8(3), np.uint64(2), True, 1], object),
        np.array(right * 2)[::2][:0].tolist() + right,
    ):
        made = DOMAIN.encode_column(0, values)
        assert made.dtype == np.uint8
        assert made.tolist() == right
    assert DOMAIN.encode_column(2, np.array([True, False])).tolist() == [1, 0]
    assert DOMAIN.encode_column(0, []).size == 0
    assert DOMAIN.encode_column(1, []).size == 0


def test_small_codes_are_not_copied() -> None:
    values = np.array([0, 1, 3], np.uint8)
    assert np.shares_memory(DOMAIN.encode_column(0, values), values)


@pytest.mark.parametrize(("size", "dtype"), [(2, "u1"), (256, "u1"), (257, "u2"), (65536, "u2"), (65537, "u4")])
def test_the_least_type_that_holds_the_codes(size: int, dtype: str) -> None:
    assert np.dtype(code_type(size)) == np.dtype(dtype)
    assert Domain(a=size).encode_column(0, [size - 1, 0]).tolist() == [size - 1, 0]


def test_labels() -> None:
    assert DOMAIN.encode_column(1, ["east", "north", "east"]).tolist() == [2, 0, 2]
    assert DOMAIN.encode_column(1, np.array(["south", "north"], object)).tolist() == [1, 0]
    mixed = Domain(a=[None, "x", 3])
    assert mixed.encode_column(0, np.array(["x", None, 3, None], object)).tolist() == [1, 0, 2, 0]
    assert Domain(a=[10, 20]).encode_column(0, [20.0, 10.0]).tolist() == [1, 0]
    assert Domain(a=[False, True]).encode_column(0, np.array([True, False])).tolist() == [1, 0]
    assert DOMAIN.decode_column(1, np.array([2, 0])).tolist() == ["east", "north"]
    assert mixed.decode_column(0, np.array([2, 0])).tolist() == [3, None]
    codes = np.array([1, 0], np.uint8)
    assert DOMAIN.decode_column(0, codes) is codes


SECRET = 987_654_321
OUTSIDE = [
    ("age", [0, SECRET]),
    ("age", [-SECRET]),
    ("age", np.array([2**63 + SECRET], np.uint64)),
    ("age", [1.5 + SECRET]),
    ("age", [0.5]),
    ("age", [float("inf")]),
    ("age", [1.0, float("nan")]),
    ("age", np.array([np.nan], np.float32)),
    ("age", np.array([1.0, SECRET], object)),
    ("age", np.array([1, None], object)),
    ("age", np.array([str(SECRET)], object)),
    ("age", np.array([10**30 + SECRET], object)),
    ("region", ["north", str(SECRET)]),
    ("region", [SECRET]),
    ("region", [float("nan")]),
    ("region", np.array([None, "north"], object)),
    ("region", np.array(["north", [SECRET]], object)),
    ("region", [b"north"]),
]


@pytest.mark.parametrize(("name", "values"), OUTSIDE)
def test_records_outside_are_named_by_column_and_never_shown(name: str, values: Any) -> None:
    with pytest.raises(DomainError, match=rf"^column '{name}': must") as caught:
        DOMAIN.encode_column(DOMAIN.position(name), values)
    shown: BaseException | None = caught.value
    assert "987" not in str(shown)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_clipping_takes_the_nearest_code() -> None:
    assert DOMAIN.encode_column(0, [-5, 0, 3, 4, 10**12], "clip").tolist() == [0, 0, 3, 3, 3]
    assert DOMAIN.encode_column(0, np.array([2**64 - 1], np.uint64), "clip").tolist() == [3]
    assert DOMAIN.encode_column(0, [-0.5, 7.25, float("inf"), -float("inf")], "clip").tolist() == [0, 3, 3, 0]
    for values in ([float("nan")], [0.5], np.array([None], object)):
        with pytest.raises(DomainError, match=r"^column 'age': must"):
            DOMAIN.encode_column(0, values, "clip")
    with pytest.raises(DomainError, match=r"^column 'region': must hold the labels"):  # labels have no nearest one
        DOMAIN.encode_column(1, ["west"], "clip")


def test_clipping_takes_the_nearest_of_labels_that_are_increasing_numbers() -> None:
    ages = Domain(age=range(18, 81), steps=[-1, 0.5, 10])
    for values in (
        np.array([-3, 18, 40, 80, 81, 10**12]),
        np.array([-3, 18, 40, 80, 81, 10**12], float),
        np.array([-3, 18, 40, 80, 81, 10**30], object),
        np.array([0, 18, 40, 80, 81, 2**64 - 1], np.uint64),
        [-math.inf, 18.0, 40.0, 80.0, 80.5, math.inf],
    ):
        assert ages.encode_column(0, values, "clip").tolist() == [0, 0, 22, 62, 62, 62]
        with pytest.raises(DomainError, match=r"^column 'age': must hold the labels of the domain only"):
            ages.encode_column(0, values)
    assert ages.encode_column(1, [-7, 0.5, 10.5], "clip").tolist() == [0, 1, 2]
    for values in ([40.5], [math.nan], ["18"], np.array([None, 20], object), np.array([np.datetime64(1, "D")])):
        with pytest.raises(DomainError, match=r"^column 'age': must hold the labels of the domain only"):
            ages.encode_column(0, values, "clip")
    for labels in ([3, 2, 1], [False, True], [1, "x"], ["1", "2"]):
        with pytest.raises(DomainError, match=r"^column 'x': must hold the labels of the domain only"):
            Domain(x=labels).encode_column(0, [9], "clip")
    frame = pandas.DataFrame({"age": pandas.Categorical([17, 20, 99]), "steps": [0.5, 99.0, -9.0]})
    assert encode(frame, ages, "clip")[0].tolist() == [0, 2, 62]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1]], r"^column 'age': shape \(1, 1\): must have one dimension$"),
        (["1"], "^column 'age': dtype <U1: must be integers, the codes 0 to 3$"),
        ([1j], "^column 'age': dtype complex128: must be integers"),
        (np.array(["2020-01-01"], "M8[D]"), "^column 'age': dtype datetime64"),
    ],
)
def test_columns_that_hold_no_codes(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DOMAIN.encode_column(0, values)


# --- queries


def test_products() -> None:
    table = np.array([True, False, True, False])
    for allowed in ([0, 2], (0, 2), {0, 2}, np.array([0, 2]), range(0, 4, 2), table, table.tolist(), iter([2, 0, 2])):
        query = Product({"age": allowed, "region": "south"})
        assert (cells_of(query) == by_hand(lambda a, r, s: a in (0, 2) and r == 1)).all()
    assert (
        cells_of(Product({"region": ["east", "north"], "sex": True})) == by_hand(lambda a, r, s: r != 1 and s)
    ).all()
    assert (cells_of(Product({})) == 1).all()
    for nothing in ([], np.zeros(4, bool), np.array([], int)):
        assert bind(Product({"age": nothing}), DOMAIN).cells == 0
        assert (cells_of(Product({"age": nothing})) == 0).all()


def test_what_a_product_binds_to() -> None:
    bound = Product({"sex": 1, "age": [1, 2], "region": ["north", "south", "east"]}).bind(DOMAIN)
    assert isinstance(bound, BoundProduct)
    assert [p for p, _ in bound.allowed] == [0, 2], "in order; what allows all is left out"
    assert bound.cells == 6
    assert Product({}).bind(DOMAIN).cells == DOMAIN.size
    assert Conjunction({"v7": 1}).bind(Domain.binary(100)).cells == 2**99


def test_sequences_of_true_and_false_are_tables() -> None:
    """[True, False] is a table with the entry of code 0 set; one True is code 1, and labels may be True and False."""
    domain = Domain(a=2, b=[True, False], c=3)
    assert cells_of(Product({"a": [True, False]}), domain)[0].all()
    assert not cells_of(Product({"a": [True, False]}), domain)[1].any()
    assert (cells_of(Product({"a": [np.True_, np.False_]}), domain) == cells_of(Product({"a": 0}), domain)).all()
    assert (cells_of(Product({"a": True}), domain) == cells_of(Product({"a": 1}), domain)).all()
    assert cells_of(Product({"b": [True, False]}), domain).all()
    for wrong in ([True, False], (True,), np.array([True, False])):
        with pytest.raises(ValueError, match=r"^c: table of shape .*: must be \(3,\)$"):
            Product({"c": wrong}).bind(domain)


def test_true_and_false_as_labels_are_given_as_a_list() -> None:
    """An array of booleans is a table, whatever the labels; where it could be labels as well it is refused."""
    message = r"^m: an array of True and False, which are labels: must be a list of labels; an array could also be a"
    for labels in ([False, True], [True, False], [1, 0], [True, "unknown"], [0, 1, 2]):
        domain = Domain(m=labels, k=4)
        with pytest.raises(ValueError, match=message):
            Product({"m": np.array([True, False])}).bind(domain)
        with pytest.raises(ValueError, match=message):
            Product({"m": pandas.Series([True, False])}).bind(domain)
    for labels in ([False, True], [True, False]):
        domain = Domain(m=labels, k=4)
        assert cells_of(Product({"m": [True, False]}), domain).all()
        for true in ([True], True, np.True_, (True,), {True}, [np.True_]):
            kept = cells_of(Product({"m": true}), domain)
            assert kept[labels.index(True)].all()
            assert not kept[labels.index(False)].any()
        assert (cells_of(Range("m", labels[0], labels[0]), domain) == cells_of(Product({"m": labels[0]}), domain)).all()
    strings = Domain(m=["no", "yes"], k=4)
    for table in (np.array([True, False]), pandas.Series([True, False])):
        assert (cells_of(Product({"m": table}), strings) == cells_of(Product({"m": "no"}), strings)).all()
        assert (cells_of(Product({"m": table}), Domain(m=2)) == [1, 0]).all()


def test_labels_that_are_tuples_are_values() -> None:
    domain = Domain(pair=[(0, 1), (1, 0), "ab"])
    assert cells_of(Product({"pair": (0, 1)}), domain).tolist() == [1, 0, 0]
    assert cells_of(Product({"pair": [(0, 1), "ab"]}), domain).tolist() == [1, 0, 1]
    assert cells_of(Product({"pair": ((0, 1), "ab")}), domain).tolist() == [1, 0, 1]


def test_a_query_stays_as_it_was_made() -> None:
    table, mask, values = np.array([True, False, True, False]), np.zeros(24, bool), np.zeros(24)
    listed = [0, 2]
    queries = (
        Product({"age": table}),
        Product({"age": listed}),
        Product({"age": iter(listed)}),
        Mask(mask),
        Linear(values),
    )
    before = [cells_of(query).tolist() for query in queries]
    table[:] = True
    mask[:] = True
    values[:] = 1.0
    listed.append(3)
    assert [cells_of(query).tolist() for query in queries] == before


def test_products_are_equal_if_they_allow_the_same() -> None:
    long, other = np.zeros(5000, bool), np.zeros(5000, bool)
    long[2000] = other[2001] = True
    assert Product({"a": long}) == Product({"a": long.copy()})
    assert hash(Product({"a": long})) == hash(Product({"a": long.copy()}))
    assert Product({"a": long}) != Product({"a": other})
    assert Conjunction({"a": 1}) == Conjunction({"a": 1})
    assert Conjunction({"a": 1}) != Product({"a": 1})
    assert Product({"a": 1}) != "Product({'a': 1})"
    assert repr(Conjunction({"age": 1, "region": "east"})) == "Conjunction({'age': 1, 'region': 'east'})"


def test_conjunctions_take_one_value_each() -> None:
    right = by_hand(lambda a, r, s: a == 2 and r == 0)
    assert (cells_of(Conjunction({"age": 2, "region": "north"})) == right).all()
    for wrong in ([2], (2,), {2}, np.array([2])):
        with pytest.raises(ValueError, match=r"^age=.*: must be a code from 0 to 3$"):
            Conjunction({"age": wrong}).bind(DOMAIN)


def test_ranges_hold_both_ends_and_follow_the_codes() -> None:
    assert (cells_of(Range("age", 1, 2)) == by_hand(lambda a, r, s: 1 <= a <= 2)).all()
    assert (cells_of(Range("age", 3, 3)) == by_hand(lambda a, r, s: a == 3)).all()
    assert (cells_of(Range("region", "south", "east")) == by_hand(lambda a, r, s: r >= 1)).all()
    assert Range("age", 0, 3).bind(DOMAIN).allowed == ()
    assert repr(Range("region", "south", "east")) == "Range('region', 'south', 'east')"


def test_masks_and_linear_queries() -> None:
    mask = np.random.default_rng(1).random(24) < 0.4
    for cells in (
        mask,
        mask.reshape(4, 3, 2),
        mask.astype(np.int8),
        mask.tolist(),
        np.asfortranarray(mask.reshape(4, 3, 2)),
    ):
        bound = Mask(cells).bind(DOMAIN)
        assert bound.values.dtype == np.uint8
        assert (bound.values == mask).all()
    values = np.random.default_rng(2).random((4, 3, 2))
    for given in (values, values.ravel(), np.asfortranarray(values)):
        bound = Linear(given).bind(DOMAIN)
        assert (bound.values * 2**16 == np.rint(values.ravel() * 2**16)).all()
    assert Linear([0, 1] * 12).bind(DOMAIN).values.tolist() == [0.0, 1.0] * 12
    assert repr(Mask([0, 1, 1])) == "Mask(<2 of 3 cells>)"
    assert repr(Linear(np.zeros(5))) == "Linear(<5 cells>)"


def c_library(folder: Path) -> Any:
    """Functions of C, as cffi opens them."""
    source, library = folder / "mine.c", folder / "mine.so"
    source.write_text(
        "#include <stdint.h>\n#include <stdbool.h>\n"
        "int even_int(int64_t cell) { return cell % 2 == 0 ? -256 : 0; }\n"
        "int64_t even_long(int64_t cell) { return cell % 2 == 0 ? (int64_t)1 << 40 : 0; }\n"
        "bool even_bool(int64_t cell) { return cell % 2 == 0; }\n"
        "int narrow(int cell) { return cell; }\ndouble real(int64_t cell) { return cell; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", str(source), "-o", str(library)], check=True)
    ffi = cffi.FFI()
    ffi.cdef("int even_int(int64_t); int64_t even_long(int64_t); bool even_bool(int64_t);")
    ffi.cdef("int narrow(int); double real(int64_t);")
    return ffi, ffi.dlopen(str(library))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_predicates_in_c(tmp_path: Path) -> None:
    ffi, library = c_library(tmp_path)
    wanted = cells_of(Predicate(even)).tolist()
    functions = [library.even_int, library.even_long, library.even_bool, ffi.addressof(library, "even_int")]
    for function in functions:
        predicate = Predicate(function)
        assert cells_of(predicate).tolist() == wanted
        assert repr(predicate) == "Predicate(a C function)"
        assert predicate == Predicate(function)
    null = ffi.cast("int(*)(int64_t)", 0)
    for wrong in (library.narrow, library.real, null, ffi.new("int *")):
        with pytest.raises(
            ValueError, match=r"^function: .*: must take an int64_t and return an int, int64_t or bool$"
        ):
            Predicate(wrong)


def test_predicates_of_cfuncs() -> None:
    wanted = cells_of(Predicate(even)).tolist()
    for signature in ("boolean(int64)", "int64(int64)", "int32(int64)"):
        assert cells_of(Predicate(numba.cfunc(signature)(lambda cell: cell % 2 == 0))).tolist() == wanted
    for signature in ("float64(int64)", "int64(int32)", "int64(int64, int64)"):
        wrong = numba.cfunc(signature)((lambda a, b: a) if "," in signature else (lambda a: a))
        with pytest.raises(ValueError, match=r"^function: a cfunc .*: must take an int64_t"):
            Predicate(wrong)


@numba.njit
def even(cell: int) -> bool:
    return cell % 2 == 0


def test_predicates() -> None:
    assert (cells_of(Predicate(even)) == by_hand(lambda a, r, s: s == 0)).all()
    assert repr(Predicate(even)) == "Predicate(even)"
    with pytest.raises(
        ValueError, match=r"^function=.*: must be compiled by numba \(numba\.njit\), or in C; for others use Mask$"
    ):
        Predicate(lambda cell: True)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^domain: 1.27e\+30 cells: must be at most 2\^31 for a value each"):
        Predicate(even).bind(Domain.binary(100))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Product({"height": 1}), "^attribute='height': must be one of 'age', 'region', 'sex'$"),
        (lambda: Conjunction({"height": 1}), "^attribute='height'"),
        (lambda: Range("height", 0, 1), "^attribute='height'"),
        (lambda: Product({"age": 4}), "^age=4: must be a code from 0 to 3$"),
        (lambda: Product({"age": [0, -1]}), "^age=-1: must be a code"),
        (lambda: Product({"age": "1"}), "^age='1': must be a code"),
        (lambda: Product({"age": 1.0}), "^age=1.0: must be a code"),
        (lambda: Product({"age": np.array([0.0])}), "^age=.*: must be a code"),
        (lambda: Product({"age": None}), "^age=None: must be a code"),
        (lambda: Product({"region": "west"}), "^region='west': must be one of"),
        (lambda: Product({"region": ["north", "west"]}), "^region='west'"),
        (lambda: Product({"region": 0}), "^region=0: must be one of"),
        (lambda: Product({"age": np.zeros(5, bool)}), r"^age: table of shape \(5,\): must be \(4,\)$"),
        (lambda: Product([("age", 1)]), "^allowed=.*: must be a mapping"),
        (lambda: Range("age", 2, 1), "^low=2: must not come after high=1$"),
        (lambda: Range("age", 0, 4), "^age=4: must be a code"),
        (lambda: Range("region", "south", "north"), "^low='south': must not come after high='north'$"),
        (lambda: Mask(np.zeros(23, bool)), r"^cells: shape \(23,\): must be \(24,\), or \(4, 3, 2\)$"),
        (lambda: Mask(np.zeros((2, 3, 4), bool)), r"^cells: shape \(2, 3, 4\): must be"),
        (lambda: Mask([0, 2]), "^cells: dtype int64: must be True and False, or 0 and 1; for other values use Linear$"),
        (lambda: Mask(["0", "1"]), "^cells: dtype <U1: must be True and False, or 0 and 1$"),
        (lambda: Mask([float("nan")]), "^cells: dtype float64: must be"),
        (lambda: Linear(np.zeros(23)), r"^values: shape \(23,\): must be \(24,\), or \(4, 3, 2\)$"),
        (lambda: Linear([1.0000001]), r"^values: must lie in \[0, 1\]; there is another one, or a NaN, among them$"),
        (lambda: Linear([-1e-300]), r"^values: must lie in \[0, 1\]"),
        (lambda: Linear([float("nan")]), r"^values: must lie in \[0, 1\]"),
        (lambda: Linear([float("inf")]), r"^values: must lie in \[0, 1\]"),
        (lambda: 3, r"^query: type int: must be a query, such as Conjunction"),
        (lambda: {"age": 1}, "^query: type dict: must be a query"),
    ],
)
def test_queries_that_do_not_fit_say_why(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bind(make(), DOMAIN)


# --- marginals


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
        (lambda: marginals(DOMAIN, 0), "^k=0: must be a whole number >= 1$"),
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
            "^subsets: 'age': must be a list of names",
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


# --- domains of more cells than a float can say

HUGE = Domain.binary(2000)


def test_numbers_of_cells_are_shown() -> None:
    assert [shown(cells) for cells in (1, 50_880, 10**12 - 1, 2**100)] == ["1", "50,880", "999,999,999,999", "1.27e+30"]
    assert repr(HUGE) == "Domain.binary(2000)  # 1.15e+602 cells"
    assert shown(2**20_000) == "3.98e+6020", "more digits than Python writes out"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: bind(Mask([0, 1]), d), r"^cells: shape \(2,\): must be \(1\.15e\+602,\), or \(2, 2, .*, \.\.\.\)$"),
        (lambda d: bind(Predicate(numba.njit(lambda cell: True)), d), r"^domain: 1\.15e\+602 cells: must be at most"),
        (lambda d: fastdp.SyntheticDistribution([1.0, 2.0], d), r"^weights: shape \(2,\): must be \(1\.15e\+602,\)"),
        (lambda d: fastdp.mwem(ONES, d, [EASY], epsilon=1.0, variant="measured"), r"^domain: 1\.15e\+602 cells: must"),
        (
            lambda d: fastdp.release_marginals(ONES, d, [["v1"]], epsilon=1.0, delta=1e-6, fit="entropic"),
            r"^domain: 1\.15e\+602 cells: the entropic fit holds them all and needs 5\.13e\+594 GiB",
        ),
        (lambda d: pmw_on(d, weights="dense"), r"^domain: dense weights put 2000 attributes .* into 1\.15e\+602 cells"),
        (lambda d: pmw_on(d, epsilon=1e-4), r"no alpha below 1 can be guaranteed for 10 queries on 1\.15e\+602 cells"),
        (lambda d: pmw_on(d, max_queries=10**400), r"^max_queries=10+: must be at most 9,223,372,036,854,775,807$"),
        (lambda d: pmw_on(d).nonprivate_kl(), r"^domain: 1\.15e\+602 cells: must be at most 2\^27 to count"),
        (lambda d: pmw_on(d).synthetic.probabilities(), r"^domain: listing all cells would merge 2000 attributes"),
        (lambda d: d.cells([ONES[:, 0]] * 2000), r"^domain: 1\.15e\+602 cells: must be at most 2\^62"),
    ],
)
def test_huge_domains_are_refused_in_words(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(HUGE)


ONES = np.ones((2000, 2000), np.uint8)
EASY = Conjunction({"v7": 1})


def pmw_on(domain: Domain, **options: Any) -> fastdp.PrivateMultiplicativeWeights:
    return fastdp.PrivateMultiplicativeWeights(ONES, domain, **{"epsilon": 1000.0, "max_queries": 10} | options)


def test_huge_domains_work() -> None:
    run = pmw_on(HUGE, delta=1e-6)
    estimate = fastdp.bounds.private_multiplicative_weights(2000, HUGE, epsilon=1000.0, delta=1e-6, max_queries=10)
    assert estimate.alpha == run.alpha < 1
    assert "1.15e+602 cells" in str(estimate)
    assert "1.15e+602 cells" in repr(run)
    assert abs(run.answer(EASY) - 1) <= run.alpha
    assert "1.15e+602 cells" in repr(run.synthetic)
    assert "and 1980 more" in run.synthetic._repr_html_()
    assert run._repr_html_()
    released = fastdp.release_marginals(ONES, HUGE, [["v1", "v2000"]], epsilon=1.0, delta=1e-6)
    assert released.table(["v2000"])[1] > 0.9
