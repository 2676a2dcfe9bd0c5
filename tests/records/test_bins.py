"""Bins: the search against Python's own comparisons, what is outside, and bins as attributes of a domain."""

from __future__ import annotations

import copy
import ctypes
import pickle
import warnings
from contextlib import suppress
from datetime import date, datetime, timedelta, timezone, tzinfo
from fractions import Fraction
from itertools import product
from math import inf, nan, nextafter
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Bins, Domain, DomainError
from fastdp.kernels.bins import find_float_bins_into, find_integer_bins_into
from fastdp.kernels.number_line import BEYOND, NAN
from fastdp.records.bins import spread_in_bins
from fastdp.records.encoding import histogram
from fastdp.records.even_bins import counter_of

EVEN = np.linspace(0.0, 1.0, 1001)
NUMBERS = {
    "even": EVEN,
    "logarithmic": np.geomspace(1e-3, 1e12, 800),
    "one inner edge": np.array([-1.0, 0.5, 7.0]),
    "one bin": np.array([2.0, 3.0]),
    "open": np.array([-inf, -3.5, 0.0, 0.1, 4.0, inf]),
    "far apart": np.array([-1.7e308, -1e308, 0.0, 1e308, 1.7e308]),
    "neighbouring floats": np.array([1.0, nextafter(1.0, 2.0), nextafter(nextafter(1.0, 2.0), 2.0), 2.0]),
    "subnormal": np.array([0.0, 5e-324, 1e-323, 1.5e-323, 1e-300]),
    "clustered": np.concatenate([np.linspace(0, 1e-9, 300), [0.5, 1.0, 1e9]]),
    "integers": np.arange(-50, 60, 7),
    "large integers": np.array([-(2**63), -(2**53) - 1, 0, 2**53 + 1, 2**60 + 1, 2**63 - 1]),
    "halves": np.array([-2.5, -0.5, 0.5, 0.75, 2.5]),
    "beyond 64 bits": np.array([-1e30, -1e20, 0.5, 2.0**63, 1e20]),
}


def bin_of(edges: list[Any], value: Any) -> int:
    """By Python, which compares integers with floats exactly."""
    return sum(edge <= value for edge in edges[1:-1])


def near(edges: Any) -> list[float]:
    """Floats at and beside every edge, and others."""
    found = [0.0, -0.0, 1e300, -1e300, inf, -inf]
    for edge in edges.tolist():
        at = float(edge)
        found += [at, nextafter(at, inf), nextafter(at, -inf)]
    generator = np.random.default_rng(3)
    return found + generator.uniform(-2, 2, 500).tolist() + (10 ** generator.uniform(-5, 15, 500)).tolist()


@pytest.mark.parametrize("kind", NUMBERS)
def test_floats_are_in_their_bins(kind: str) -> None:
    edges = NUMBERS[kind]
    bins, exact = Bins(edges), edges.tolist()
    values = np.array(near(edges))
    found = Domain(x=bins).encode_column(0, values, outside="clip")
    assert found.tolist() == [bin_of(exact, value) for value in values.tolist()]
    inside = [exact[0] <= value <= exact[-1] for value in values.tolist()]
    for some, is_inside in zip(values, inside, strict=True):
        if is_inside:
            Domain(x=bins).encode_column(0, np.array([some]))
        else:
            with pytest.raises(DomainError, match="the first and the last edge; there are others"):
                Domain(x=bins).encode_column(0, np.array([some]))


@pytest.mark.parametrize("kind", NUMBERS)
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, np.uint64])
def test_integers_are_in_their_bins(kind: str, dtype: Any) -> None:
    edges, limits = NUMBERS[kind], np.iinfo(dtype)
    exact = edges.tolist()
    wanted = {0, 1, limits.min, limits.max, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, 2**63}
    wanted |= {int(edge) + step for edge in exact if abs(edge) < 2.0**64 for step in (-1, 0, 1)}
    values = np.array(sorted(value for value in wanted if limits.min <= value <= limits.max), dtype)
    domain = Domain(x=Bins(edges))
    assert domain.encode_column(0, values, outside="clip").tolist() == [bin_of(exact, v) for v in values.tolist()]
    for value in values.tolist():
        if exact[0] <= value <= exact[-1]:
            domain.encode_column(0, np.array([value], dtype))
        else:
            with pytest.raises(DomainError):
                domain.encode_column(0, np.array([value], dtype))


def test_many_values_over_threads_and_chunks() -> None:
    values = np.random.default_rng(5).random(300_000)
    found = Domain(x=Bins(EVEN)).encode_column(0, values)
    assert (found == np.searchsorted(EVEN[1:-1], values, side="right")).all()


def test_a_narrow_float_is_compared_as_it_is() -> None:
    domain = Domain(x=Bins([0.0, 0.1, 1.0]))
    for dtype in (np.float16, np.float32):
        value = np.array([0.1], dtype)
        assert domain.encode_column(0, value)[0] == (Fraction(float(value[0])) >= Fraction(0.1))
    assert domain.encode_column(0, np.array([True, False])).tolist() == [1, 0]


def test_the_kernels_report_what_they_meet() -> None:
    bins, out = Bins([0.0, 1.0, 2.0]), np.empty(3, np.uint32)
    assert find_float_bins_into(np.array([0.0, 1.0, 2.0]), *bins.search_of_floats[:5], out) == 0
    assert out.tolist() == [0, 1, 1]
    assert find_float_bins_into(np.array([0.0, nan, 2.0]), *bins.search_of_floats[:5], out) == NAN
    assert find_float_bins_into(np.array([-1.0, nan, 2.0]), *bins.search_of_floats[:5], out) == NAN + BEYOND
    assert find_integer_bins_into(np.array([0, 1, 2]), *bins._of_integers[:5], out) == 0
    assert find_integer_bins_into(np.array([0, 1, 3]), *bins._of_integers[:5], out) == BEYOND


# --- counting without a search


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "edges",
    [
        np.linspace(0, 1, 1001), np.linspace(-1e9, 1e-9, 64), np.arange(9), [0.0, 1.0, 2.0], [-np.inf, 0.0, np.inf],
        [-np.inf, *np.linspace(0, 1, 12), np.inf], np.linspace(1e300, 1.7e308, 17), np.arange(100) / 7,
        np.linspace(5e-324, 5e-322, 99), np.linspace(1.0, 1.0 + 2.0**-44, 257), [0.0, 1.0],
        np.arange(200) + 0.24 * np.cos(np.arange(200.0) ** 2), -np.exp(np.linspace(0, 0.002, 300))[::-1],
    ],
)  # fmt: skip
def test_counts_without_a_search_are_those_of_a_search(edges: Any, dtype: Any) -> None:
    for missing in (False, True):
        bins = Bins(edges, missing=missing)
        inner = np.array(bins.edges, np.float64)
        rng = np.random.default_rng(6)
        finite = inner[np.isfinite(inner)]
        beside = np.concatenate([finite, np.nextafter(finite, -np.inf), np.nextafter(finite, np.inf)])
        wild = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, 1.7e308, -1.7e308])
        with np.errstate(over="ignore"):
            values = np.concatenate([beside, wild, rng.uniform(finite[0] / 2, finite[-1] / 2, 3_000) * 2]).astype(dtype)
        codes = Domain(x=bins).encode_column(0, values, "clip")
        found = histogram({"x": values}, Domain(x=bins), "clip")
        assert found.tolist() == np.bincount(codes, minlength=bins.size).tolist()
        for outside in (values[np.isnan(values)], values[values > finite[-1]]):
            if outside.size and not (missing and np.isnan(outside).all()) and np.isfinite(inner[-1]):
                with pytest.raises(DomainError):
                    histogram({"x": outside}, Domain(x=bins))


def test_an_infinity_above_one_inner_edge() -> None:
    bins = Bins([0.0, 1.0, inf], missing=True)
    assert histogram({"x": np.array([inf, 0.5, nan, 1.0])}, Domain(x=bins)).tolist() == [1, 2, 1]


def test_which_edges_are_even_enough() -> None:
    def is_direct(edges: Any, dtype: Any = np.float64) -> bool:
        return counter_of(Bins(edges), np.dtype(dtype), "x", "raise") is not None

    assert all(map(is_direct, [np.linspace(0, 1, 1001), np.arange(9), [0.0, 1.0, 2.0], np.linspace(-3, 1e9, 8192)]))
    assert not any(
        map(is_direct, [[0.0, 1.0], [0, 1, 2, 4, 8, 16, 32, 64], np.arange(2**14), [0.0, 1.0, 2.0, 2.1, 3.0]])
    )
    assert not is_direct(np.arange(9), np.int64)
    many = np.linspace(0, 1, 101)
    many[50] = many[51] - 1e-12  # one edge that a guess would pass over
    assert not is_direct(many)


# --- what is missing or outside


MISSING: dict[str, Any] = {
    "list": [1, None, 3], "floats": np.array([1.0, nan, 3.0]), "objects": np.array([1, None, 3.0], object),
}  # fmt: skip


@pytest.mark.parametrize("kind", MISSING)
def test_missing_entries_have_a_bin_or_are_outside(kind: str) -> None:
    values = MISSING[kind]
    assert Domain(x=Bins([0, 2, 4], missing=True)).encode_column(0, values).tolist() == [0, 2, 1]
    with pytest.raises(DomainError, match=r"missing=True"):
        Domain(x=Bins([0, 2, 4])).encode_column(0, values)
    assert Domain(x=Bins([0, 2, 4])).encode_column(0, values, outside="clip").tolist() == [0, 0, 1]


def test_frames_with_missing_entries() -> None:
    pandas, polars, arrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    domain = Domain(x=Bins([0, 2, 4], missing=True))
    for column in (
        pandas.Series([1, None, 3], dtype="Int64"), pandas.Series([1.0, nan, 3.0]), polars.Series([1, None, 3]),
        arrow.array([1, None, 3]), pandas.Series([1, 0, 3]).astype("category"),
    ):  # fmt: skip
        assert domain.encode_column(0, column).tolist()[0::2] == [0, 1]
    assert domain.encode_column(0, polars.Series([1, None, 3])).tolist() == [0, 2, 1]


def test_what_is_no_number_is_refused_or_clipped() -> None:
    domain = Domain(x=Bins([0, 2, 4], missing=True))
    with pytest.raises(DomainError, match="must hold numbers only"):
        domain.encode_column(0, [1, "a", 3])
    assert domain.encode_column(0, [1, "a", 2**70], outside="clip").tolist() == [0, 2, 1]
    with pytest.raises(DomainError, match="there are others"):
        domain.encode_column(0, [1, 2**70])
    with pytest.raises(ValueError, match=r"dtype <U1: must be numbers"):
        domain.encode_column(0, np.array(["a", "b"]))
    with pytest.raises(ValueError, match="must be numbers"):
        domain.encode_column(0, np.array(["2020-01-01"], "M8[D]"))


def test_an_error_never_names_a_value() -> None:
    for values in ([77.125], [77.125, "77.125"], [nan]):
        with pytest.raises(DomainError) as caught:
            Domain(x=Bins([0, 2, 4])).encode_column(0, values)
        assert "77.125" not in str(caught.value)


def test_dates() -> None:
    bins = Bins([date(2020, 1, 1), date(2021, 1, 1), date(2022, 1, 1)], missing=True)
    domain = Domain(day=bins)
    values = np.array(["2020-01-01", "2020-12-31", "2021-01-01", "2022-01-01", "NaT"], "M8[D]")
    assert domain.encode_column(0, values).tolist() == [0, 0, 1, 1, 2]
    assert domain.encode_column(0, values.astype("M8[ns]")).tolist() == [0, 0, 1, 1, 2]
    assert domain.encode_column(0, [datetime(2021, 6, 1, 12), None]).tolist() == [1, 2]
    with pytest.raises(DomainError):
        domain.encode_column(0, np.array(["2022-01-02"], "M8[D]"))
    with pytest.raises(ValueError, match="must be dates"):
        domain.encode_column(0, np.arange(3))
    assert fastdp.Range("day", date(2021, 3, 1)).bind(domain).allowed[0][1].tolist() == [False, True, False]
    assert bins.labels[0] == datetime(2020, 7, 1, 23, 59, 59, 999999)


@pytest.mark.parametrize("gather", [list, lambda values: np.array([*values, None], object)[:-1]])
def test_a_date_of_any_year_and_unit_is_clipped_by_itself(gather: Any) -> None:
    first, second = datetime(2020, 1, 1), datetime(2020, 1, 1, microsecond=1)
    domain = Domain(day=Bins([first, second, datetime(2021, 1, 1)]))
    fine, far = np.datetime64(second).astype("M8[ns]"), np.datetime64(290_000, "Y")
    zoned = datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2)))
    for more, code in [(far, 1), (np.datetime64(-290_000, "Y"), 0), (np.datetime64(2**62, "s"), 1), (zoned, 0)]:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert domain.encode_column(0, gather([fine, more]), outside="clip").tolist() == [1, code]
    with pytest.raises(DomainError, match="others"):
        domain.encode_column(0, gather([second, far]))
    assert domain.encode_column(0, gather([fine, fine])).tolist() == [1, 1]


class OddFloat(float):
    def __float__(self) -> float:
        raise KeyError

    __eq__ = __float__  # type: ignore[assignment]
    __hash__ = float.__hash__


class OddZone(tzinfo):
    pass


ODD = [
    np.array(3.0), ctypes.c_double(3.0), np.array(2), np.longdouble(3), OddFloat(3), np.array(None), Fraction(3),
    datetime(2020, 5, 1, tzinfo=OddZone()), np.datetime64(5, "ns"), [3.0], None, "3", b"3", 3j, 2**53 + 1, 2**64, -1,
]  # fmt: skip


@pytest.mark.parametrize(
    "edges", [[0, 3, 2**53], [-inf, 2.5, inf], [datetime(1970, 1, 1), datetime(2020, 1, 1), datetime.max]]
)
def test_no_entry_of_a_list_changes_how_another_is_taken(edges: Any) -> None:
    """Whatever numpy makes of all of them: or else one record would change the codes of all."""
    domain = Domain(x=Bins(edges))
    alone = [domain.encode_column(0, [None, each], outside="clip")[1] for each in ODD]
    for (i, one), (j, other) in product(enumerate(ODD), repeat=2):
        codes = None
        with suppress(DomainError, ValueError):  # a list of lists, numbers in place of dates: by types alone
            codes = domain.encode_column(0, [one, other], outside="clip").tolist()
        assert codes in (None, [alone[i], alone[j]]), (one, other)
        assert codes is not None or [3.0] in (one, other) or isinstance(edges[0], datetime)


@pytest.mark.parametrize("unit", ["D", "s", "ms"])
def test_dates_beyond_microseconds_are_outside(unit: str) -> None:
    domain = Domain(day=Bins([datetime(1969, 1, 1), datetime(1970, 1, 1), datetime(1971, 1, 1)]))
    values = np.array([2**62, -(2**62)], np.int64).view(f"M8[{unit}]")
    assert domain.encode_column(0, values, outside="clip").tolist() == [1, 0]
    for each in values:  # 2^62 days would wrap to 1970
        with pytest.raises(DomainError):
            domain.encode_column(0, np.array([each]))


# --- edges


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([1, 2, 2, 3], r"edges\[2\]: must be above edges\[1\]: edges are in increasing order"),
        ([3, 1], r"edges\[1\]: must be above edges\[0\]"),
        ([1.0, nan], "must not be NaN"),
        ([1], "2 to 1,048,577 numbers in increasing order"),
        ([], "2 to 1,048,577"),
        (range(2**20 + 2), "edges: 1,048,578: must be 2 to 1,048,577"),
        (np.zeros((2, 2)), r"shape \(2, 2\)"),
        (["a", "b"], "dtype <U1"),
        ([True, False], "dtype bool"),
        ([0, 2**63], "integers below 2\\^63"),
        ("ab", "edges: type str"),
        (7, "edges: type int"),
        (None, "edges: type NoneType"),
        ([-inf, inf, inf], "increasing"),
        (np.array(["NaT", "2020-01-01"], "M8[D]"), "not NaT"),
    ],
)
def test_edges_that_are_none(edges: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bins(edges)


def test_most_edges() -> None:
    bins = Bins(range(2**20 + 1))
    assert bins.size == len(bins) == 2**20
    assert Domain(x=bins).encode_column(0, [0, 2**20 - 1, 2**20]).tolist() == [0, 2**20 - 1, 2**20 - 1]


def test_labels_lie_in_their_bins() -> None:
    for edges in NUMBERS.values():
        bins = Bins(edges)
        assert [Domain(x=bins).code("x", label) for label in bins.labels] == list(range(bins.size))
        assert len(set(bins.labels)) == bins.size
    assert Bins(range(5, 10)).labels == (5, 6, 7, 8)
    assert Bins([-inf, inf]).labels == (0.0,)
    assert Bins([0, 1], missing=True).labels == (0, None)


LEAST, MOST = -(2**63), 2**63 - 1


@pytest.mark.parametrize(
    ("edges", "labels", "inside"),
    [
        ([LEAST, 10, 20, MOST], (9, 14, 20), [9, 15, 20]),
        ([LEAST, MOST], (0,), [0]),
        ([LEAST, 5], (4,), [4]),
        ([5, MOST], (5,), [5]),
        ([LEAST, LEAST + 1, MOST - 1, MOST], (LEAST, -1, MOST - 1), [LEAST, -1, MOST - 1]),
        ([LEAST + 1, 3, MOST - 1], (-(2**62) + 1, 2**62), [-(2**62) + 2, 2**62 + 1]),
    ],
)
def test_bins_of_integers_without_an_end_are_next_to_their_inner_edge(
    edges: list[int], labels: tuple[int, ...], inside: list[int]
) -> None:
    bins = Bins(edges)
    assert bins.labels == labels
    assert [Domain(x=bins).code("x", label) for label in labels] == list(range(bins.size))
    assert [bins.within(code, 0.5) for code in range(bins.size)] == pytest.approx(inside, abs=2)


def test_integers_of_unstated_ends_are_released_near_the_data() -> None:
    x = np.arange(1000)
    bins = Bins.quantiles(x, 10, epsilon=1e3, rng=fastdp.Randomness(seed=1))
    released = fastdp.release_ranges(x, bins, epsilon=1e3, rng=fastdp.Randomness(seed=2))
    assert min(bins.labels) > 50
    assert max(bins.labels) < 950
    assert released.quantile([0.0, 0.05, 0.5, 0.95, 1.0]).tolist() == pytest.approx([100, 100, 500, 900, 900], abs=9)


@pytest.mark.parametrize("edges", [[-(2**62), 0, 2**62], [LEAST, 0, MOST], range(2**62, 2**62 + 3), [*range(9), MOST]])
def test_edges_far_apart_are_displayed(edges: Any) -> None:
    bins = Bins(edges)
    assert repr(bins) == ("Bins(<10 edges from 0 to 9223372036854775807>)" if bins.size == 9 else f"Bins({edges})")
    assert repr(bins) in repr(Domain(a=bins))
    few = list(edges)[:3]
    assert repr(few[0]) in repr(Domain(a=few))


def test_bins_are_values_that_do_not_change() -> None:
    bins = Bins([0.0, -0.0 + 1, 2], missing=True)
    assert bins == Bins(np.array([0.0, 1.0, 2.0]), missing=True)
    assert bins != Bins([0, 1, 2], missing=True)
    assert bins != Bins([0.0, 1.0, 2.0])
    assert hash(bins) == hash(pickle.loads(pickle.dumps(bins)))
    assert copy.deepcopy(bins) == bins
    with pytest.raises(AttributeError, match="does not change"):
        bins.missing = False
    with pytest.raises(ValueError, match="read-only"):
        bins.edges[0] = 7
    given = np.array([0.0, 1.0, 2.0])
    made = Bins(given)
    given[1] = 1.5
    assert made.edges[1] == 1.0
    assert repr(bins) == "Bins([0.0, 1.0, 2.0], missing=True)"
    assert repr(Bins(range(101))) == "Bins(range(0, 101))"
    assert repr(Bins(EVEN)) == "Bins(<1,001 edges from 0.0 to 1.0>)"


# --- in a domain


def test_a_domain_of_bins() -> None:
    domain = Domain(age=Bins([0, 18, 65, 120], missing=True), sex=["f", "m"])
    assert domain.sizes == (4, 2)
    assert domain.labels[0] == (8, 41, 92, None)
    assert domain.project(["age"]) == Domain(age=Bins([0, 18, 65, 120], missing=True))
    assert domain != Domain(age=[8, 41, 92, None], sex=["f", "m"])
    assert pickle.loads(pickle.dumps(domain)) == domain
    assert domain.code("age", 18) == 1
    assert domain.code("age", 17.99) == 0
    assert domain.code("age", None) == 3
    assert domain.decode_column(0, np.array([0, 3])).tolist() == [8, None]
    assert repr(domain) == "Domain(age=Bins([0, 18, 65, 120], missing=True), sex=['f', 'm'])  # 8 cells"
    for wrong in (130, "x", True, nan, 120.5):
        with pytest.raises(ValueError, match="must be a number from 0 to 120, or None"):
            domain.code("age", wrong)


def test_records_read_alike_wherever_they_are(tmp_path: Any) -> None:
    pandas, polars, dataframe = (pytest.importorskip(name) for name in ("pandas", "polars", "dask.dataframe"))
    generator = np.random.default_rng(7)
    frame = pandas.DataFrame({"x": generator.normal(size=70_000), "k": generator.integers(0, 90, 70_000)})
    frame.loc[::1000, "x"] = nan
    frame.to_parquet(tmp_path / "records.parquet", row_group_size=9_000)
    domain = Domain(x=Bins([-inf, -1.0, 0.0, 1.0, inf], missing=True), k=Bins(range(0, 91, 10)))
    tables = [["x"], ["x", "k"]]
    released = [
        fastdp.release_marginals(
            data, domain, tables, epsilon=1.0, delta=1e-6, fit=None, rng=fastdp.Randomness(3)
        ).tables
        for data in (
            frame, polars.from_pandas(frame), str(tmp_path / "records.parquet"),
            dataframe.from_pandas(frame, npartitions=5), frame.to_numpy(),
        )
    ]  # fmt: skip
    for other in released[1:]:
        assert all((a == b).all() for a, b in zip(released[0], other, strict=True))
    assert abs(released[0][0][4] * 70_000 - 70) < 60


# --- edges that are bought


def test_quantiles_buy_edges_and_say_their_price() -> None:
    generator = np.random.default_rng(9)
    values = generator.lognormal(0, 1, 20_000)
    budget = fastdp.Budget(epsilon=2.0)
    bins = Bins.quantiles(values, 10, epsilon=1.0, low=0.0, missing=True, budget=budget, rng=fastdp.Randomness(1))
    assert bins.size == 11
    assert bins.ends == (0.0, inf)
    counts = np.bincount(Domain(x=bins).encode_column(0, values), minlength=11)
    assert counts[10] == 0
    assert np.abs(counts[:10] / 2000 - 1).max() < 0.1
    assert [row.mechanism for row in budget.releases] == ["quantiles"]
    assert bins.guarantee is not None
    assert bins.guarantee.seeded
    assert str(bins.guarantee).startswith("1-DP")
    assert budget.spent.epsilon == 1.0
    assert pickle.loads(pickle.dumps(bins)).guarantee == bins.guarantee
    assert Bins([0.0, 1.0]).guarantee is None


def test_edges_of_a_part_and_of_rows_of_persons_cost_what_quantiles_of_them_cost() -> None:
    units, x = np.arange(3_000) % 500, np.random.default_rng(4).normal(size=3_000)
    people: Any = fastdp.limit_rows({"u": units, "x": x}, "u", at_most=3)
    parts: Any = fastdp.partition({"g": units % 2, "x": x}, "g", [0, 1])
    given: dict[str, Any] = {"epsilon": 3.0, "neighbors": "add-remove"}
    shares = [1 / 4, 2 / 4, 3 / 4]
    for column, unit in ((people["x"], "u"), (parts[0]["x"], None), (parts[1]["x"], None)):
        budgets = [fastdp.Budget(epsilon=3.0, neighbors="add-remove", unit=unit) for _ in range(2)]
        bins = Bins.quantiles(column, 4, **given, budget=budgets[0], rng=fastdp.Randomness(3))
        wanted = fastdp.quantiles(column, shares, **given, budget=budgets[1], rng=fastdp.Randomness(3))
        assert bins.edges[1:-1].tolist() == wanted.tolist()
        assert [each.releases[0].guarantee for each in budgets] == [bins.guarantee] * 2
        with pytest.raises(ValueError, match="must be 'add-remove'"):
            Bins.quantiles(column, 4, epsilon=3.0)
    both = fastdp.Budget(epsilon=3.0, neighbors="add-remove")
    for part in (0, 1):
        Bins.quantiles(parts[part]["x"], 4, **given, budget=both)


SOME = np.where(np.arange(9_000) % 3 == 0, nan, np.random.default_rng(2).normal(size=9_000).round(2))


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_edges_are_quantiles_of_the_values_that_are_there(delta: float, relation: Any, monkeypatch: Any) -> None:
    """The same for all kinds of columns; what is stated is what was charged."""
    pandas = pytest.importorskip("pandas")
    given: dict[str, Any] = {"epsilon": 2.0, "delta": delta, "missing": True, "neighbors": relation}
    budget = fastdp.Budget(epsilon=4.0, delta=1e-5 if delta else 0.0, neighbors=relation)
    bins = Bins.quantiles(SOME, 10, **given, budget=budget, rng=fastdp.Randomness(3))
    assert bins.guarantee == budget.releases[0].guarantee
    true = np.nanquantile(SOME, np.arange(1, 10) / 10)
    assert np.abs(bins.edges[1:-1] - true).max() < 0.06
    columns = [
        [None if np.isnan(value) else value for value in SOME], pandas.Series(SOME),
        pandas.Series(SOME, dtype="Float64"),
        SOME.astype(object), SOME[:, None],
    ]  # fmt: skip
    for column in columns:
        assert Bins.quantiles(column, 10, **given, rng=fastdp.Randomness(3)) == bins
    if relation == "add-remove":
        assert Bins.quantiles(SOME[~np.isnan(SOME)], 10, **given, rng=fastdp.Randomness(3)) == bins
    with monkeypatch.context() as patch:
        patch.setattr("fastdp.records.number_column.may_gather", lambda rows: False)
        assert Bins.quantiles(SOME, 10, **given, rng=fastdp.Randomness(3)) == bins
    with pytest.raises(DomainError, match="NaN"):
        Bins.quantiles(SOME, 10, **given | {"missing": False})


def test_edges_of_columns_without_any_value_are_edges() -> None:
    for relation in ("replace-one", "add-remove"):
        nothing = Bins.quantiles([nan] * 50, 4, epsilon=1.0, missing=True, neighbors=relation)  # type: ignore[arg-type]
        assert nothing.size >= 2
    whole = Bins.quantiles([3, None] * 50, 2, epsilon=20.0, missing=True, domain_bits=8, low=0, high=9)
    assert 3 in whole.edges.tolist()


def test_a_value_that_many_have_gets_a_bin_of_its_own() -> None:
    values = np.where(np.arange(20_000) % 10 == 0, np.random.default_rng(1).integers(1, 1000, 20_000), 0)
    bins = Bins.quantiles(
        values, 20, epsilon=5.0, domain_bits=10, signed=False, low=-1, high=2000, neighbors="add-remove"
    )
    assert bins.ends == (-1, 2000)
    assert {0, 1} <= set(bins.edges.tolist())
    floats = Bins.quantiles(values.astype(float), 20, epsilon=5.0)
    assert {0.0, 5e-324} <= set(floats.edges.tolist())
    assert floats.ends == (-inf, inf)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bins": 1}, "bins=1: must be an integer >= 2"),
        ({"bins": 2**18}, "bins=262144: must be at most"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"low": 3.0, "high": 1.0}, "in increasing order"),
        ({"missing": 1}, "missing=1"),
    ],
)
def test_bad_purchases(options: Any, message: str) -> None:
    budget = fastdp.Budget(epsilon=2.0)
    with pytest.raises(ValueError, match=message):
        Bins.quantiles(np.arange(50.0), **{"bins": 4, "epsilon": 1.0} | options, budget=budget)
    assert not budget.releases


@pytest.mark.parametrize(
    "edges",
    [
        [0.0, 0.5, 8.0], [-1e308, 1e308], [5e-324, 1e-323], [1.0, float(np.nextafter(1.0, 2.0)), 2.0], [0, 1, 10, 95],
        [-(2**62), 2**62], [float("-inf"), 0.0, 1.0, float("inf")], [-(2**63), 5, 6, 2**63 - 1],
        np.array(["2020-01-01", "2020-02-01", "2021-01-01"], "datetime64[us]"),
    ],
)  # fmt: skip
def test_numbers_are_spread_over_their_bins(edges: Any) -> None:
    bins = Bins(edges, missing=True)
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, 3000, dtype=np.uint64)
    words[:2] = 0, 2**64 - 1
    last = bins.size - 1
    for code in range(last):
        codes = np.full(words.size, code, np.uint8)
        numbers = spread_in_bins(bins, codes, words)
        assert (Domain(x=bins).encode_column(0, numbers) == code).all()
    mixed = spread_in_bins(bins, np.array([0, last, 0], np.uint8), words[:3])
    assert mixed[1] is None
    assert mixed[0] is not None


def test_floats_are_even_within_a_bin() -> None:
    words = np.random.default_rng(4).integers(0, 2**64, 30_000, dtype=np.uint64)
    numbers = spread_in_bins(Bins([1.0, 3.0, 4.0]), np.zeros(30_000, int), words)
    assert abs(numbers.mean() - 2) < 5 * (1 / 3 / 30_000) ** 0.5
    assert np.histogram(numbers, 4, (1, 3))[0] == pytest.approx(7500, abs=400)


def test_unit_bins_of_integers_have_one_number_each() -> None:
    words = np.random.default_rng(2).integers(0, 2**64, 77, dtype=np.uint64)
    assert spread_in_bins(Bins(range(18, 96)), np.arange(77), words).tolist() == list(range(18, 95))


def test_integers_of_a_bin_are_all_as_likely() -> None:
    words = np.random.default_rng(3).integers(0, 2**64, 30_000, dtype=np.uint64)
    counts = np.bincount(spread_in_bins(Bins([0, 3, 100]), np.zeros(30_000, int), words))
    assert abs(counts - 10_000).max() < 400  # 4.9 standard deviations
