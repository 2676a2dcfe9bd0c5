"""Queries (fastdp/answering/queries): products, masks, values for each cell, predicates."""

from __future__ import annotations

import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import cffi
import numba
import numpy as np
import pandas
import pytest

from fastdp import Conjunction, Domain, Linear, Mask, Predicate, Product, Range
from fastdp.answering.queries.bound_query import GRID_BITS, BoundProduct
from fastdp.answering.queries.query import bind
from tests.answering.kinds_of_domains import DOMAIN, cells_of

# that plain noise would guarantee more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)


def by_hand(rule: Any, domain: Domain = DOMAIN) -> np.ndarray:
    """The same from a function of the codes."""
    cube = np.zeros(domain.sizes, np.uint8)
    for codes in product(*map(range, domain.sizes)):
        cube[codes] = rule(*codes)
    return cube


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


def test_masks_of_many_cells_are_counted_block_by_block() -> None:
    domain = Domain.binary(21)
    rng = np.random.default_rng(3)
    mask, counts = rng.random(domain.size) < 0.3, rng.integers(0, 1000, domain.size)
    assert Mask(mask).bind(domain).count(counts) == int(counts[mask].sum()) << GRID_BITS


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
        (lambda: Product({"age": [0, -1]}), r"^age\[1\]: must be a code from 0 to 3$"),
        (lambda: Product({"age": "1"}), "^age='1': must be a code"),
        (lambda: Product({"age": 1.0}), "^age=1.0: must be a code"),
        (lambda: Product({"age": np.array([0.0])}), r"^age\[0\]: must be a code"),
        (lambda: Product({"age": None}), "^age=None: must be a code"),
        (lambda: Product({"region": "west"}), "^region='west': must be one of"),
        (
            lambda: Product({"region": ["north", "west"]}),
            r"^region\[1\]: must be a value of the attribute, as the domain declares it$",
        ),
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
