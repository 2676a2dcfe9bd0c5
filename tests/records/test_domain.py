"""The domain (fastdp/records/domain.py): attributes, cells, and the codes of columns."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
import pandas
import pytest

from fastdp import Conjunction, Domain, DomainError, Mask, Predicate, Product
from fastdp.records.domain import code_type
from fastdp.records.encoding import encode
from tests.answering.kinds_of_domains import DOMAIN

# that plain noise would guarantee more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)


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
    assert repr(Domain(a=1)) == "Domain(a=1)  # 1 cell"
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
        (lambda: Domain(a=2.0), "^a=<float>: must be"),
        (lambda: Domain(a=None), "^a=None: must be"),
        (lambda: Domain(a="abc"), "^a=<str>: must be a number of values, or a sequence of labels$"),
        (lambda: Domain(a=[]), r"^a=\[\]: must have at least one label$"),
        (lambda: Domain(a=["x", "x"]), r"^a=<list of length 2>: labels must be distinct, and not NaN$"),
        (lambda: Domain(a=[1, True]), "labels must be distinct"),
        (lambda: Domain(a=[1.0, float("nan")]), "labels must be distinct, and not NaN$"),
        (lambda: Domain(a=[[1]]), "^a: labels must be hashable$"),
        (lambda: Domain({"": 2}), "^attributes: '': names must be strings, not empty$"),
        (lambda: Domain({3: 2}), "^attributes: 3: names must be strings"),
        (lambda: Domain({"a": 2}, a=3), "^attributes: 'a': must be given once$"),
        (lambda: Domain.binary(0), "^d=0: must be an integer >= 1$"),
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
        (lambda: DOMAIN.declared(3), "^position=3: must be at most 2$"),
        (lambda: DOMAIN.declared("age"), "^position='age': must be an integer >= 0$"),
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
    for values, codes in (
        ([float("nan"), 3.0], [0, 3]),
        ([0.5, 1.5, 2.5, 2.75], [0, 2, 2, 3]),
        (
            np.array([None, 2, "x", 2.75, 10**400, -(10**400), float("nan"), True, [1]], object),
            [0, 2, 0, 3, 3, 0, 0, 1, 0],
        ),
        ([1, "x", None, (2, 3)], [1, 0, 0, 0]),
    ):
        assert DOMAIN.encode_column(0, values, "clip").tolist() == codes
        with pytest.raises(DomainError, match=r"^column 'age': must"):
            DOMAIN.encode_column(0, values)
    assert DOMAIN.encode_column(1, ["west", "south", None], "clip").tolist() == [0, 1, 0]  # the first


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
    for values, codes in (
        ([40.5, 40.75, 80.5], [22, 23, 62]),
        ([math.nan, 20], [0, 2]),
        (["18"], [0]),
        (np.array([None, 20], object), [0, 2]),
        (np.array([np.datetime64(1, "D")]), [0]),
        ([40.5, 10**400, -(10**400)], [22, 62, 0]),
    ):
        assert ages.encode_column(0, values, "clip").tolist() == codes
        with pytest.raises(DomainError, match=r"^column 'age': must"):
            ages.encode_column(0, values)
    assert Domain(x=[0.0, 10**400]).encode_column(0, [1.5, -1, 10**401], "clip").tolist() == [0, 0, 1]
    for labels in ([3, 2, 1], [False, True], [1, "x"], ["1", "2"]):
        assert Domain(x=labels).encode_column(0, [9], "clip").tolist() == [0]
        assert Domain(x=[*labels, None]).encode_column(0, [9, math.nan], "clip").tolist() == [len(labels)] * 2
        with pytest.raises(DomainError, match=r"^column 'x': must hold the labels of the domain only"):
            Domain(x=labels).encode_column(0, [9])
    frame = pandas.DataFrame({"age": pandas.Categorical([17, 20, 99]), "steps": [0.5, 99.0, -9.0]})
    assert encode(frame, ages, "clip")[0].tolist() == [0, 2, 62]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1]], "^column 'age': must hold integers only; there are others$"),
        (np.array(["1"]), "^column 'age': dtype <U1: must be integers, the codes 0 to 3$"),
        (np.array([1j]), "^column 'age': dtype complex128: must be numbers"),
        (["1"], "^column 'age': must hold integers only; there are others$"),  # a list has no type
        ([1j], "^column 'age': must hold integers only; there are others$"),
        (np.array(["2020-01-01"], "M8[D]"), "^column 'age': dtype datetime64"),
    ],
)
def test_columns_that_hold_no_codes(values: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DOMAIN.encode_column(0, values)
