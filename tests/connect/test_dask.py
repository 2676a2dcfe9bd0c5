"""Records in Dask collections: the same bits as on one machine, for any partitions, on any scheduler, come what may."""

from __future__ import annotations

import logging
import os
import pickle
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask.callbacks import Callback

import fastdp
from fastdp import losses, sets
from fastdp.answering import marginal_counts
from fastdp.answering import true_answers as truth
from fastdp.connect.dask import DaskRows
from fastdp.kernels import literals
from fastdp.records.arrays import MemoryRows
from fastdp.records.number_column import read_positions
from fastdp.records.packed import pack
from fastdp.records.rank_search import RankSearch, may_gather
from fastdp.records.sources import rows_of
from fastdp.support.errors import DomainError
from fastdp.support.threads import alone, run_chunks

pytestmark = [
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning"),
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # of pandas, which Dask uses when it reads files
]

N = 4_000


def seeded() -> Any:
    return fastdp.Randomness(seed=11)


class Data:
    """One set of records, as arrays, from which all cases take what they need."""

    def __init__(self, n: int = N, seed: int = 0) -> None:
        draw = np.random.default_rng(seed)
        self.n = n
        self.bits = draw.random((n, 9)) < [0.9, 0.2, 0.5, 0.6, 0.5, 0.4, 0.1, 0.8, 0.5]
        self.rule = self.bits[:, 2] & ~self.bits[:, 4]
        self.points = draw.uniform(-0.4, 0.4, (n, 4))
        self.side = self.points @ [1.0, -2.0, 0.5, 0.0] > 0
        self.response = np.clip(self.points @ [1.0, -1.0, 0.5, 0.2], -1, 1)
        self.places = np.column_stack([draw.integers(0, 64, n), draw.integers(0, 32, n)])
        self.inside = (self.places[:, 0] > 15) & (self.places[:, 0] < 50) & (self.places[:, 1] < 20)
        self.incomes = np.where(draw.random(n) < 0.3, 2.5e4, draw.lognormal(10, 1, n))
        self.codes = draw.integers(0, [5, 3, 4], (n, 3))


Call = Callable[[Callable[[Any], Any], Data], Any]  # (how arrays are given, the records) -> what came out


def conjunction(give: Any, data: Data, **how: Any) -> Any:
    h = fastdp.learn_conjunction(give(data.bits), give(data.rule), epsilon=0.04, delta=1e-6, rng=seeded(), **how)
    return h.literals, h.error(give(data.bits), give(data.rule))


def box(give: Any, data: Data, epsilon: float = 6.0, **how: Any) -> Any:
    h = fastdp.learn_box(give(data.places), give(data.inside), epsilon=epsilon, rng=seeded(), **how)
    return h.intervals, h.error(give(data.places), give(data.inside))


def box_of_floats(give: Any, data: Data, **how: Any) -> Any:
    X = np.column_stack([data.incomes, data.points[:, :2]])  # three: the cuts of two count in the third
    return fastdp.learn_box(give(X), give(data.incomes > 2e4), epsilon=20.0, delta=1e-6, rng=seeded(), **how).intervals


def one_column(give: Any, data: Data, of: str = "incomes", function: Any = fastdp.median, **how: Any) -> Any:
    values = getattr(data, of)
    return function(give(values if values.ndim == 1 else values[:, 0]), epsilon=0.5, rng=seeded(), **how)


def of_class(give: Any, data: Data) -> Any:
    table = np.array([data.points[:, 0] > t for t in np.linspace(-0.4, 0.4, 41)])
    predictions = table if give is same else give(table.T).T
    return fastdp.learn_from_class(predictions, give(data.points[:, 0] > 0.1), epsilon=0.1, rng=seeded()).index


def queries(d: int) -> list[Any]:
    pairs = [fastdp.Conjunction({f"v{i}": 1, f"v{j}": 0}) for i in range(1, d) for j in range(i + 1, d + 1)]
    return [*pairs, fastdp.Product({"v1": [0, 1], "v3": [1]})]


def multiplicative_weights(give: Any, data: Data) -> Any:
    domain = fastdp.Domain.binary(9)
    pmw = fastdp.PrivateMultiplicativeWeights(
        give(data.bits), domain, epsilon=40.0, delta=1e-6, alpha=0.25, max_queries=100, rng=seeded()
    )
    table = fastdp.Linear(np.linspace(0, 1, domain.size))
    return [*pmw.answer_many([*queries(9), table]), pmw.answer(queries(9)[3]), pmw.updates]


def fitted(give: Any, data: Data, **how: Any) -> Any:
    found = fastdp.mwem(
        give(data.bits), fastdp.Domain.binary(9), queries(9), epsilon=2.0, delta=1e-6, rng=seeded(), **how
    )
    return found.probabilities()


def tables(give: Any, data: Data, **how: Any) -> Any:
    domain = fastdp.Domain(a=5, b=3, c=4)
    workload = fastdp.marginals(domain, 2)
    found = fastdp.release_marginals(give(data.codes), domain, workload, epsilon=1.0, delta=1e-6, rng=seeded(), **how)
    return np.concatenate([table.reshape(-1) for table in found.tables])


def descent(give: Any, data: Data, loss: Any, y: str, **how: Any) -> Any:
    labels = give(getattr(data, y)) if y else None
    how = {"delta": 1e-6, "steps": 12, "over": sets.Ball(2.0), **how}
    X = give(data.points)
    return fastdp.noisy_projected_gradient_descent(X, labels, loss=loss, epsilon=1.0, rng=seeded(), **how).w


def least_squares(give: Any, data: Data, function: Any = fastdp.noisy_least_squares) -> Any:
    loss = losses.SquaredError(x_norm=1, y_bound=1)
    return function(
        give(data.points), give(data.response), loss=loss, over=sets.Ball(2), epsilon=1.0, delta=1e-6, rng=seeded()
    ).w


def net(give: Any, data: Data) -> Any:
    X, y = give(data.points[:, :2].copy()), give(data.side)
    loss, over = losses.Logistic(x_norm=1), sets.Ball(3)
    return fastdp.exponential_erm(X, y, loss=loss, over=over, epsilon=1.0, method="grid", rng=seeded(), spacing=0.2).w


def line(give: Any, data: Data, loss: Any, **how: Any) -> Any:
    X = give(data.incomes[:, None])
    return fastdp.exponential_erm(
        X, loss=loss, over=sets.Box(0, 1e5), epsilon=0.1, method="exact", outside="clip", rng=seeded(), **how
    ).w


def vectors(give: Any, data: Data, function: Any) -> Any:
    return function(give(data.points), clip=0.5, epsilon=1.0, delta=1e-6, rng=seeded()).value


CASES: dict[str, Call] = {
    "peel": partial(conjunction, k=3),
    "greedy": partial(conjunction, k=3, method="greedy"),
    "counts": partial(conjunction, k=3, method="counts"),
    "exhaustive": partial(conjunction, k=2, method="exhaustive"),
    "add-remove": partial(conjunction, k=3, neighbors="add-remove", records=N),
    "box, peel": partial(box, method="peel", delta=1e-6, domain_bits=[6, 5]),
    "box, interior points": partial(box, method="interior-point", delta=1e-6, domain_bits=[6, 5]),
    "box, all": partial(box, epsilon=0.02, method="exponential", domain_bits=[6, 5]),
    "box of floats": partial(box_of_floats, method="peel"),
    "box of floats, interior points": partial(box_of_floats, method="interior-point"),
    "median": one_column,
    "quantile": partial(one_column, function=fastdp.quantile, q=0.9),
    "interior point": partial(one_column, function=fastdp.interior_point),
    "median of ages": partial(one_column, of="places", domain_bits=6),
    "median of 64 bits": partial(one_column, of="places"),
    "median, clipped": partial(one_column, of="places", domain_bits=4, outside="clip"),
    "finite class": of_class,
    "multiplicative weights": multiplicative_weights,
    "mwem": partial(fitted, variant="average", rounds=4),
    "mwem, measured": partial(fitted, variant="measured", rounds=3),
    "marginals": tables,
    "logistic": partial(descent, loss=losses.Logistic(x_norm=1), y="side"),
    "hinge": partial(descent, loss=losses.Hinge(x_norm=0.3), y="side", outside="clip"),
    "squared": partial(descent, loss=losses.SquaredError(x_norm=1, y_bound=1), y="response"),
    "medians": partial(descent, loss=losses.AbsoluteDeviation(), y="", noise="laplace", delta=0),
    "least squares": least_squares,
    "private_erm": partial(least_squares, function=fastdp.private_erm),
    "net": net,
    "line, mean": partial(line, loss=losses.SquaredDistance(x_norm=1e5)),
    "line, median": partial(line, loss=losses.AbsoluteDeviation()),
    "line, median, regularised": partial(line, loss=losses.AbsoluteDeviation() + losses.L2(1e-3)),
    "sum": partial(vectors, function=fastdp.vector_sum),
    "mean": partial(vectors, function=fastdp.vector_mean),
}

CUTS = {
    "one": (N,),
    "even": (1000, 1000, 1000, 1000),
    "uneven": (1, 63, 0, 2049, 0, 887, 1000),
    "many": (*(97,) * 41, N - 97 * 41),
}


def same(array: Any) -> Any:
    return array


def chunked(array: Any, cuts: tuple[int, ...] = CUTS["uneven"]) -> Any:
    return da.from_array(array, chunks=(cuts, -1) if array.ndim == 2 else (cuts,))


def equal(one: Any, other: Any) -> None:
    if isinstance(one, tuple):
        assert one == other
    else:
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@pytest.fixture(scope="module")
def data() -> Data:
    return Data()


@pytest.fixture(scope="module")
def here(data: Data) -> dict[str, Any]:
    """What comes out on one machine."""
    return {name: case(same, data) for name, case in CASES.items()}


@contextmanager
def far_counts(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if domains were too large for the counts of all cells."""
    with patch.context() as patched:
        patched.setattr(truth, "_FEW_FAR_CELLS", 1)
        patched.setattr(truth, "_FEW_CELLS", 1)
        patched.setattr(truth, "_A_RECORD", 0.0)
        patched.setattr(marginal_counts, "_HISTOGRAM_CELLS", 1)
        patched.setattr(marginal_counts, "_GROUP_CELLS", 16)
        yield


# --- the same bits


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("name", CASES)
def test_any_partitions_give_the_same_bits(name: str, cuts: str, data: Data, here: dict[str, Any]) -> None:
    scheduler = "synchronous" if cuts == "even" else "threads"
    with dask.config.set(scheduler=scheduler):
        equal(CASES[name](partial(chunked, cuts=CUTS[cuts]), data), here[name])


def test_cases_tell_seeds_and_records_apart(here: dict[str, Any]) -> None:
    """Otherwise they would say little: most depend on every record."""
    other = Data(seed=1)
    alike = [name for name in CASES if str(CASES[name](same, other)) == str(here[name])]
    assert len(alike) < len(CASES) / 3, alike


def test_blocks_within_a_partition_do_not_matter(
    data: Data, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastdp.records.arrays.BLOCK_RECORDS", 128)
    monkeypatch.setattr("fastdp.records.arrays._BLOCK_VALUES", 0)
    for name in ("peel", "box, peel", "box of floats, interior points", "median", "marginals", "logistic", "net"):
        equal(CASES[name](partial(chunked, cuts=(1500, 2500)), data), here[name])


@pytest.mark.parametrize("name", ["multiplicative weights", "mwem", "marginals"])
def test_large_domains_are_counted_where_the_records_are(
    name: str, data: Data, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with far_counts(monkeypatch):
        equal(CASES[name](chunked, data), here[name])
        monkeypatch.setattr(truth, "_ONE_PASS", 7)
        equal(CASES[name](chunked, data), here[name])


def test_a_domain_of_any_size() -> None:
    """2^60 cells: neither the cells nor the records are brought together."""
    bits = np.random.default_rng(4).random((3000, 60)) < 0.4
    domain = fastdp.Domain.binary(60)
    asked = [fastdp.Conjunction({"v1": 1, "v60": 0}), fastdp.Conjunction({"v7": 1})]
    found = []
    for X in (bits, chunked(bits, (1000, 0, 2000))):
        pmw = fastdp.PrivateMultiplicativeWeights(
            X, domain, epsilon=10.0, delta=1e-6, max_queries=10, alpha=0.7, rng=seeded()
        )
        workload = fastdp.marginals(domain, 1)
        released = fastdp.release_marginals(X, domain, workload, epsilon=1.0, delta=1e-6, fit=None, rng=seeded())
        found.append([*pmw.answer_many(asked), *np.concatenate(released.tables)])
    equal(*found)


def frame_of(data: Data) -> Any:
    return pd.DataFrame(
        {
            "income": data.incomes,
            "age": data.places[:, 0],
            "hours": data.places[:, 1].astype(np.int16),
            "place": pd.Categorical.from_codes(data.codes[:, 0], list("vwxyz")),
            "word": np.array(["no", "yes", "perhaps"])[data.codes[:, 1]],
            "in": data.inside.astype(int),
        }
    )


def partitioned(frame: Any, cuts: tuple[int, ...] = CUTS["uneven"]) -> Any:
    """A DataFrame whose partitions Dask knows nothing of but their types."""
    ends = np.cumsum(cuts)
    pieces = [frame.iloc[end - length : end] for end, length in zip(ends, cuts, strict=True)]
    return dd.from_map(lambda i: pieces[i], range(len(cuts)), meta=frame.iloc[:0])


def test_data_frames_and_labels_in_them(data: Data) -> None:
    frame = frame_of(data)
    far = partitioned(frame)
    domain = fastdp.Domain(place=list("vwxyz"), word=["no", "yes", "perhaps"], age=64)
    workload = fastdp.marginals(domain, 2)
    columns = ["age", "hours"]

    def of(frame: Any, y: Any = "in") -> list[Any]:
        """Columns of labels are found by name, whatever else there is."""
        some = frame[[*columns, "in"]] if isinstance(y, str) else frame[columns]
        learned = fastdp.learn_box(
            some, y, domain_bits=6, epsilon=4.0, delta=1e-6, method="peel", outside="clip", rng=seeded()
        )
        released = fastdp.release_marginals(frame, domain, workload, epsilon=1.0, delta=1e-6, rng=seeded())
        fit = fastdp.noisy_least_squares(
            some, y, loss=losses.SquaredError(x_norm=99, y_bound=1), over=sets.Ball(1), epsilon=1.0, delta=1e-6,
            outside="clip", rng=seeded(),
        )  # fmt: skip
        middle = fastdp.median(frame["income"], epsilon=1.0, rng=seeded())
        assert learned.names == ("age", "hours")
        parts = [[middle], *(table.reshape(-1) for table in released.tables), fit.w]
        return [learned.intervals, np.concatenate(parts).tolist()]

    expected = of(frame)
    assert of(far) == expected
    assert of(far, far["in"]) == expected
    assert of(far, far["in"].to_dask_array()) == expected
    assert of(dd.from_pandas(frame, npartitions=3)) == expected


def test_parquet_is_read_by_partitions(tmp_path: Path, data: Data) -> None:
    frame = frame_of(data)[["income", "age", "in"]]
    for i in range(4):
        table = pa.Table.from_pandas(frame.iloc[1000 * i : 1000 * (i + 1)], preserve_index=False)
        pq.write_table(table, tmp_path / f"{i}.parquet")
    far = dd.read_parquet(tmp_path)
    assert far.npartitions > 1
    boxes = [
        fastdp.learn_box(d, "in", epsilon=4.0, delta=1e-6, method="peel", rng=seeded()).intervals for d in (frame, far)
    ]
    assert boxes[0] == boxes[1]
    medians = [fastdp.median(d["age"], domain_bits=6, epsilon=1.0, rng=seeded()) for d in (frame, far)]
    assert medians[0] == medians[1]


def test_partitions_of_parquet_are_not_merged(tmp_path: Path, data: Data) -> None:
    """Dask optimises few columns of what is computed from Parquet to fewer partitions than it says there are."""
    frame = frame_of(data)[["income", "age", "hours", "in"]]
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), tmp_path / "x.parquet", row_group_size=400)
    far = dd.read_parquet(tmp_path, split_row_groups=True)
    assert far["in"].to_frame().optimize().npartitions < far.npartitions

    def boxes(d: Any) -> list[Any]:
        adults = d[d["age"] > 3]
        old = d[["age", "hours"]].assign(old=d["age"] > 9)
        return [
            fastdp.learn_box(X, y, domain_bits=6, epsilon=4.0, delta=1e-6, method=method, rng=seeded()).intervals
            for X, y in (
                (d[["age", "hours"]], d["in"]), (adults[["age", "hours"]], adults["in"]), (old, "old"),
            )
            for method in ("peel", "interior-point")
        ]  # fmt: skip

    assert boxes(far) == boxes(frame)
    rows = DaskRows(far[["age", "hours"]].assign(old=far["age"] > 9))
    assert {len(rows._collection.partitions(some)) for some in ((0,), (2,), (0, 1), (0, 1, 2))} == {far.npartitions}


def test_chunks_of_columns_and_unknown_lengths(data: Data, here: dict[str, Any]) -> None:
    def give(array: Any) -> Any:
        if array.ndim == 1:
            return dd.from_dask_array(da.from_array(array, chunks=900)).to_dask_array()  # lengths are NaN
        return da.from_array(array, chunks=(900, 2))

    assert np.isnan(give(data.rule).chunks[0][0])
    for name in ("peel", "logistic", "median"):
        equal(CASES[name](give, data), here[name])


def test_lengths_are_computed_once(data: Data) -> None:
    counted = []
    far = partitioned(frame_of(data)[["age", "hours", "in"]])
    with Counter(counted), dask.config.set(scheduler="synchronous"):
        rows = DaskRows(far)
        assert rows.n == N
        lengths = len(counted)
        for _ in range(2):
            fastdp.learn_box(rows, "in", domain_bits=6, epsilon=1.0, delta=1e-6, method="peel")
    assert lengths == 1
    assert len(counted) > 3


class Counter(Callback):  # type: ignore[misc]
    """Computations of Dask's."""

    def __init__(self, counted: list[int]) -> None:
        super().__init__(start=lambda dsk: counted.append(1))


def test_one_computation_for_each_statistic(data: Data) -> None:
    """And a few for an order statistic."""
    X, y = chunked(data.bits), chunked(data.rule)
    for most, call in (
        (1 + 1, lambda: fastdp.learn_conjunction(X, y, epsilon=1.0, delta=1e-6, method="counts")),  # labels, counts
        (1 + 5, lambda: CASES["logistic"](chunked, data, steps=5)),
        (1 + 1, lambda: fastdp.vector_sum(chunked(data.points), clip=1.0, epsilon=1.0)),
        (1, lambda: CASES["marginals"](chunked, data)),
        (5, lambda: fastdp.median(chunked(data.incomes), epsilon=1.0)),
    ):
        counted: list[int] = []
        with Counter(counted), dask.config.set(scheduler="synchronous"):
            call()
        assert 0 < len(counted) <= most


# --- numbers in their order


@pytest.mark.parametrize("kind", ["spread", "ties", "ends", "nothing"])
def test_ordered_numbers_answer_as_sorted_ones(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastdp.records.rank_search._PARTS", 8)
    monkeypatch.setattr("fastdp.records.rank_search._LISTED", 40)
    draw = np.random.default_rng(3)
    last = 2**64 - 2
    values = {
        "spread": draw.integers(0, last, 700, np.uint64, endpoint=True),
        "ties": np.repeat(draw.integers(0, 2**40, 9, np.uint64), 100),
        "ends": np.array([0] * 300 + [last] * 300 + [1, last - 1, 2**63], np.uint64),
        "nothing": np.empty(0, np.uint64),
    }[kind]
    rows = rows_of(chunked(values[:, None], (values.size // 3, values.size - values.size // 3)))
    ordered = RankSearch(rows, lambda block: block.column(0), last, add=True)
    inside = sorted(values.tolist())
    assert (ordered.m, ordered.total) == (len(inside), sum(inside))
    around = [z + step for z in inside[::37] for step in (-1, 0, 1)]
    asked = [-1, 0, last, last + 5, 2**63, *around, *draw.integers(0, last, 40, np.uint64).tolist()]
    for z in draw.permutation(np.array(asked, object)).tolist():
        below = [x for x in inside if x <= z]
        assert ordered.up_to(z) == (len(below), sum(below))
    for rank in draw.permutation(np.arange(1, len(inside) + 1)).tolist():
        assert ordered.at(rank) == inside[rank - 1]


def test_parquet_files_too_large_to_gather(tmp_path: Path, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"x": data.incomes})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=700)
    path = tmp_path / "x.parquet"
    loss, over = losses.AbsoluteDeviation(), sets.Box(0, 1e5)

    def both() -> tuple[Any, Any]:
        erm = fastdp.exponential_erm(path, loss=loss, over=over, epsilon=0.1, outside="clip", rng=seeded())
        return fastdp.median(path, epsilon=1.0, rng=seeded()), erm.w[0]

    gathered = both()
    monkeypatch.setattr("fastdp.records.rank_search._GATHERED", 100)
    assert not may_gather(rows_of(path))
    assert isinstance(read_positions(rows_of(path), 0, 64, None, "raise", "x")[1], RankSearch)
    assert both() == gathered


# --- what travels


def bytes_of_results(call: Callable[[], Any]) -> list[int]:
    """The sizes of what tasks of ours give back, whether a partition's or several's."""
    sizes: list[int] = []

    def keep(key: Any, value: Any, *rest: Any) -> None:
        if str(key).startswith("fastdp-"):
            sizes.append(len(cloudpickle.dumps(value)))

    with Callback(posttask=keep), dask.config.set(scheduler="synchronous"):
        call()
    assert sizes
    return sizes


@pytest.mark.parametrize("name", CASES)
def test_what_travels_does_not_grow_with_the_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same partitions, of ten times as many records: a partition sends no more."""
    monkeypatch.setattr("fastdp.records.rank_search._LISTED", 200)
    monkeypatch.setattr("fastdp.records.rank_search._PARTS", 512)
    sizes = {}
    for n in (4_000, 40_000):
        cuts = (n // 4,) * 4
        sizes[n] = max(bytes_of_results(lambda n=n, cuts=cuts: CASES[name](partial(chunked, cuts=cuts), Data(n))))
    # a sum of more than 2^32 has 12 bytes in place of 4; slices of a box are full only where there are enough
    assert sizes[40_000] <= max(3.1 * sizes[4_000], 24_000 if name.startswith("box") else 4_000)
    most = 40_000 if name != "box, all" else 32 * 2**11 + 1_000  # the cells, and how many are in each
    assert sizes[40_000] < most, "a partition has 10,000 records, of 8 bytes and more"


def test_positions_travel_only_as_far_as_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    """The M most extreme of a box, and their keys; a listing of at most so many."""
    monkeypatch.setattr("fastdp.records.rank_search._LISTED", 500)
    monkeypatch.setattr("fastdp.records.rank_search._PARTS", 64)
    big = Data(40_000)
    values = np.random.default_rng(0).permutation(40_000)
    cuts = (10_000,) * 4
    largest = max(bytes_of_results(lambda: fastdp.median(chunked(values, cuts), epsilon=1.0)))
    assert 64 * 4 < largest < 500 * 16 + 1_000
    found = []
    Numbers = fastdp.learning.boxes.Numbers
    real = Numbers.extremes
    monkeypatch.setattr(Numbers, "extremes", lambda *given: found.append(given[2]) or real(*given))
    sizes = bytes_of_results(lambda: CASES["box, peel"](partial(chunked, cuts=cuts), big))
    assert max(sizes) < 4 * 8 * found[0] + 2_000


def test_statistics_know_nothing_of_where_records_are(data: Data) -> None:
    rows = DaskRows(chunked(data.points))
    with pytest.raises(TypeError, match="stay where they were made"):
        pickle.dumps(rows)
    assert pickle.loads(pickle.dumps(literals.count_among_into)) is literals.count_among_into
    assert len(pickle.dumps(literals.count_among_into)) < 200


# --- threads


def test_a_loss_of_ones_own_on_threads(data: Data) -> None:
    loss = losses.Custom(lambda score, label: score - label, slope_bound=1.0, x_norm=1.0)
    with dask.config.set(scheduler="threads"):
        equal(*(descent(give, data, loss=loss, y="response") for give in (chunked, same)))


def test_tasks_work_without_helpers() -> None:
    before = fastdp.get_num_threads()
    try:
        fastdp.set_num_threads(4)
        with alone():
            workers = set(run_chunks(lambda i, j: threading.get_ident(), 64, 1))
            with alone():
                pass
            workers |= set(run_chunks(lambda i, j: threading.get_ident(), 64, 1))
        assert workers == {threading.get_ident()}
        barrier = threading.Barrier(2, timeout=20)
        run_chunks(lambda i, j: barrier.wait(), 2, 1)  # helpers come again
    finally:
        fastdp.set_num_threads(before)


# --- bad input


@pytest.mark.parametrize("where", [0, N - 1])
def test_a_record_outside_the_domain_costs_nothing(where: int, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(array: Any, value: Any) -> Any:
        array = array.astype(np.result_type(array, np.array(value)))
        array[where] = value
        return chunked(array)

    domain = fastdp.Domain(a=5, b=3, c=4)
    bits = spoiled(data.bits.astype(np.int8), 2)
    codes, places = spoiled(data.codes, 9), spoiled(data.places, 64)
    inside, rule = chunked(data.inside), chunked(data.rule)
    of_domain: list[Callable[[], Any]] = [
        lambda: fastdp.release_marginals(codes, domain, fastdp.marginals(domain, 1), epsilon=1.0, delta=1e-6),
        lambda: fastdp.mwem(codes, domain, [fastdp.Conjunction({"a": 1})], epsilon=1.0, delta=1e-6),
        lambda: fastdp.PrivateMultiplicativeWeights(codes, domain, epsilon=1.0, delta=1e-6, max_queries=9),
    ]
    calls: list[Callable[[], Any]] = [
        *of_domain,
        lambda: fastdp.learn_conjunction(bits, rule, epsilon=1.0, delta=1e-6),
        lambda: fastdp.learn_conjunction(
            chunked(data.bits), spoiled(data.rule.astype(int), 7), epsilon=1.0, delta=1e-6
        ),
        *(
            partial(fastdp.learn_conjunction, bits, rule, k=2, epsilon=1.0, delta=1e-6, method=method)
            for method in ("greedy", "counts", "exhaustive")
        ),
        *(
            partial(fastdp.learn_box, places, inside, domain_bits=6, epsilon=1.0, delta=1e-6, method=method)
            for method in ("peel", "interior-point", "exponential")
        ),
        lambda: fastdp.median(spoiled(data.incomes, np.nan), epsilon=1.0),
        lambda: fastdp.quantile(spoiled(data.places[:, 0], -1), 0.2, domain_bits=6, signed=False, epsilon=1.0),
        lambda: fastdp.vector_sum(spoiled(data.points, np.inf), clip=1.0, epsilon=1.0),
        lambda: CASES["logistic"](lambda a: spoiled(a, 5.0) if a.ndim == 2 else chunked(a), data),
        lambda: CASES["squared"](lambda a: spoiled(a, 5.0) if a.ndim == 1 else chunked(a), data),
        *(partial(CASES[name], lambda a: spoiled(a, np.nan), data) for name in ("line, mean", "line, median")),
        lambda: CASES["net"](lambda a: spoiled(a, 5.0) if a.ndim == 2 else chunked(a), data),
        *(
            partial(CASES[name], lambda a: spoiled(a, 5.0) if a.ndim == 2 else chunked(a), data)
            for name in ("least squares", "private_erm")
        ),
        lambda: fastdp.learn_from_class(bits.T, rule, epsilon=1.0),
    ]
    with fastdp.Budget(epsilon=1.0, delta=1e-6) as budget:
        for call in calls:
            with pytest.raises(DomainError):
                call()
        with far_counts(monkeypatch):
            for call in of_domain:
                with pytest.raises(DomainError):
                    call()
    assert budget.left.epsilon == 1.0
    assert not budget.releases


def test_the_first_error_is_the_one_that_is_raised(data: Data) -> None:
    values = data.places.copy().astype(float)
    values[3, 1], values[-3, 0] = np.nan, np.nan
    for cuts in (CUTS["even"], CUTS["uneven"], CUTS["many"]):
        with pytest.raises(DomainError, match=r"^column 1: must not be NaN"):
            fastdp.learn_box(chunked(values, cuts), chunked(data.inside, cuts), epsilon=1.0, delta=1e-6)


X, Y = np.zeros((6, 2), int), np.array([0, 1, 0, 1, 0, 1])
FAR, LABELS = da.from_array(X, chunks=(3, 2)), da.from_array(Y, chunks=3)


@pytest.mark.parametrize(
    ("data", "y", "message"),
    [
        (FAR, Y, "y: type ndarray: must be a Dask array or Series with the partitions of X, or the name of one of its"),
        (X, LABELS, "y: a Dask collection: must be an array, as the records are in this process"),
        (
            FAR,
            LABELS.rechunk(2),
            "y: 3 partitions: must be 2, as X has; of labels beside the records, give the DataFrame",
        ),
        (FAR, LABELS.rechunk(((2, 4),)), "y: 2 labels in partition 0: must be 3, as X has records there"),
        (FAR, da.stack([LABELS, LABELS], axis=1), "y: 2 columns: must be one"),
        (FAR, None, "y=None: must be the labels of the records, or the name of their column"),
        (FAR, 5, "y=5: must be labels, or the name of their column"),
        (FAR, "y", "y='y': must be labels, or the name of their column"),
        (FAR[:, 0], LABELS, "data: shape (6,): must have two dimensions, records and columns; of one column, data[:,"),
        (da.zeros((2, 2, 2)), LABELS, "data: shape (2, 2, 2): must have two dimensions, records and columns"),
        (
            dask.delayed(X),
            LABELS,
            "data: type DelayedLeaf: must be a Dask array of two dimensions, or a Dask DataFrame",
        ),
        (FAR[:0], LABELS[:0], "X: n=0 records: must be at least one"),
        (da.zeros((6, 0), chunks=3), LABELS, "data: must have at least one column"),
        (
            da.zeros((6, 1), chunks=3, dtype=[("a", int)]),
            LABELS,
            "data: must not be a structured array; give {name: data[name], ...}",
        ),
        (
            da.ma.masked_array(FAR, FAR > 0),
            LABELS,
            "data: must not be a masked array; fill or drop the masked entries first",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(data: Any, y: Any, message: str) -> None:
    with fastdp.Budget(epsilon=1.0, delta=1e-6) as budget:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            fastdp.learn_conjunction(data, y, epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            fastdp.learn_box(data, y, epsilon=1.0, delta=1e-6)
    assert budget.left.epsilon == 1.0


def test_types_that_are_no_numbers_are_refused(data: Data) -> None:
    words = pd.DataFrame({"a": ["x", "y"] * 3, "b": range(6), "y": Y})
    far = partitioned(words, (2, 4))
    logistic: Any = {"loss": losses.Logistic(x_norm=1), "over": sets.Ball(1), "epsilon": 1.0, "delta": 1e-6}
    with fastdp.Budget(epsilon=1.0, delta=1e-6) as budget:
        with pytest.raises(ValueError, match=r"^column 'a': dtype .*: must be numbers$"):
            fastdp.noisy_projected_gradient_descent(far, "y", **logistic)
        with pytest.raises(ValueError, match=r"^y: dtype .*: must be numbers$"):
            fastdp.noisy_projected_gradient_descent(far[["b"]], far["a"], **logistic)
        with pytest.raises(DomainError, match=r"^column 'a': must hold 0 and 1 only; there are others$"):
            fastdp.learn_conjunction(far, "y", epsilon=1.0, delta=1e-6)
        with pytest.raises(
            ValueError, match=r"^column 'a': dtype .*: must be integers or floats$|must be whole numbers"
        ):
            fastdp.learn_box(far, "y", epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=r"^values: 3 columns: must be one$"):
            fastdp.median(far, epsilon=1.0)
        with pytest.raises(ValueError, match=r"^domain_bits=100: must be at most 64 for a Dask collection$"):
            fastdp.median(far["b"], domain_bits=100, epsilon=1.0)
        with pytest.raises(ValueError, match=r"^method='prefix': must be 'exponential' for 6 values that are not in"):
            fastdp.interior_point(far["b"], method="prefix", epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=r"^data: must have the columns 'z'$"):
            fastdp.mwem(far, fastdp.Domain(z=2), [fastdp.Conjunction({"z": 1})], epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=r"^data: type Series: must be a Dask array of two dimensions"):
            fastdp.learn_conjunction(far["b"], far["y"], epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=r"^data: a Dask collection is not packed into this process"):
            pack(far)
    assert budget.left.epsilon == 1.0


def test_categories_may_differ_between_partitions() -> None:
    draw = np.random.default_rng(2)
    words = pd.DataFrame({"a": draw.choice(list("xyz"), 400), "b": draw.integers(0, 3, 400)})
    pieces = [words[:100].astype("category"), words[100:].iloc[::-1].astype("category")]
    known = dd.from_map(lambda i: pieces[i], range(2), meta=pieces[0][:0])
    unknown = dd.from_pandas(words, npartitions=3, sort=False).astype("category")
    domain = fastdp.Domain(a=["z", "y", "x"], b=[2, 1, 0])
    found = [
        np.concatenate(
            fastdp.release_marginals(
                frame, domain, fastdp.marginals(domain, 1), epsilon=1.0, delta=1e-6, fit=None, rng=seeded()
            ).tables
        ).tolist()
        for frame in (words, known, unknown)
    ]
    assert found[0] == found[1] == found[2]


def test_partitions_that_are_not_what_they_seemed(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """Types decide about domains, and lengths about which record is which."""
    monkeypatch.setattr("fastdp.records.rank_search._LISTED", 10)
    frame = pd.DataFrame({"a": np.arange(6), "y": Y})
    pieces = [frame[:3], frame[3:].astype({"a": float})]
    far = dd.from_map(lambda i: pieces[i], range(2), meta=frame[:0])
    with pytest.raises(
        ValueError, match=r"^column 'a': a partition of dtype float64: must be int64, as the collection"
    ):
        fastdp.learn_box(far, "y", epsilon=1.0, delta=1e-6)

    turned = [frame[:3], frame[3:][["y", "a"]]]
    far = dd.from_map(lambda i: turned[i], range(2), meta=frame[:0])
    with pytest.raises(ValueError, match=r"^data: a partition with other columns: must have those of the collection"):
        fastdp.learn_box(far, "y", epsilon=1.0, delta=1e-6)

    for odd in (np.ones((3, 3)), np.ones((3, 1)), np.ones(3)):
        graph = {("odd", i, 0): (lambda array=array: array,) for i, array in enumerate([np.ones((3, 2)), odd])}
        with pytest.raises(ValueError, match=r"^data: a partition with other columns: must have those of the"):
            fastdp.vector_sum(da.Array(graph, "odd", ((3, 3), (2,)), float), clip=1.0, epsilon=1.0)

    draws = np.random.default_rng(0)
    restless = da.Array(
        {("restless", i): (lambda: draws.integers(0, 2**60, 3000),) for i in range(2)}, "restless", ((3000,) * 2,), int
    )
    with pytest.raises(ValueError, match=r"^data: must not change between two passes; there are other numbers"):
        fastdp.median(restless, epsilon=1.0)

    lengths = iter([3, 3, 2, 2])
    growing = da.Array(
        {("grow", i, 0): (lambda: np.zeros((next(lengths), 1)),) for i in range(2)},
        "grow",
        ((np.nan,) * 2, (1,)),
        float,
    )
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match=r"a partition of 2 records: must have"),
    ):
        fastdp.vector_sum(growing, clip=1.0, epsilon=1.0)

    shifted = frame["y"].copy()
    shifted.index = shifted.index + 1
    with pytest.raises(ValueError, match=r"^y: its index differs from that of X$"):
        fastdp.learn_conjunction(
            partitioned(frame[["y"]], (2, 4)), partitioned(shifted.to_frame(), (2, 4))["y"], epsilon=1.0, delta=1e-6
        )


def test_nobody_at_all() -> None:
    """Where n is private, no records are as good as any."""
    bits, labels = np.zeros((0, 3), bool), np.zeros(0, bool)
    found = [
        fastdp.learn_conjunction(
            give(bits), give(labels), epsilon=1.0, delta=1e-6, neighbors="add-remove", records=100, rng=seeded()
        ).literals
        for give in (same, partial(chunked, cuts=(0, 0)))
    ]
    assert found[0] == found[1]
    domain = fastdp.Domain.binary(3)
    for X in (bits, chunked(bits, (0, 0))):
        released = fastdp.release_marginals(
            X, domain, fastdp.marginals(domain, 1), epsilon=1.0, delta=1e-6, neighbors="add-remove", rng=seeded()
        )
        found.append(np.concatenate(released.tables).tolist())
    assert found[2] == found[3]
    sums = [
        fastdp.vector_sum(X, clip=1.0, epsilon=1.0, neighbors="add-remove", rng=seeded()).value.tolist()
        for X in (bits.astype(float), chunked(bits.astype(float), (0, 0)))
    ]
    assert sums[0] == sums[1]


def test_what_is_not_private_stays_with_arrays(data: Data) -> None:
    h = fastdp.learn_conjunction(data.bits, data.rule, k=2, epsilon=9.0, delta=1e-6, rng=seeded())
    with pytest.raises(ValueError, match=r"^X: a Dask collection: map_partitions\(h\.predict\), or map_blocks"):
        h.predict(chunked(data.bits))
    far = chunked(data.bits).map_blocks(h.predict, drop_axis=1, dtype=bool)
    equal(far.compute(), h.predict(data.bits))
    with pytest.raises(ValueError, match=r"^y: a Dask collection: must be an array here$"):
        fastdp.learn_from_class(data.bits.T, chunked(data.rule), epsilon=1.0)


def test_a_dask_that_is_too_old_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "__version__", "2024.7.1")
    with pytest.raises(ImportError, match=r"^dask 2024\.7\.1: must be 2024\.8 or newer"):
        DaskRows(FAR)


def test_rows_read_well() -> None:
    assert repr(DaskRows(FAR)) == "<DaskRows: 6 records, 2 columns>"
    assert not isinstance(rows_of(FAR), MemoryRows)
    assert rows_of(FAR).dtypes() == (np.dtype(int),) * 2


# --- worker processes: the last tests, as a client is the scheduler of all that follow


@contextmanager
def two_workers() -> Iterator[Any]:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it tells of workers that we kill
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with two_workers() as client:
        yield client


@pytest.fixture
def mortals() -> Iterator[Any]:
    """For a test that kills one of its own: the other works on, whether Dask replaces the first or gives it up."""
    with two_workers() as client:
        yield client


@pytest.mark.parametrize("name", CASES)
def test_worker_processes_give_the_same_bits(name: str, client: Any, data: Data, here: dict[str, Any]) -> None:
    equal(CASES[name](chunked, data), here[name])


def test_large_domains_on_worker_processes(
    client: Any, data: Data, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with far_counts(monkeypatch):
        for name in ("multiplicative weights", "marginals"):
            equal(CASES[name](chunked, data), here[name])


def test_a_record_outside_is_found_on_workers_too(client: Any, data: Data) -> None:
    values = data.places[:, 0].copy()
    values[-1] = 64
    with fastdp.Budget(epsilon=1.0) as budget, pytest.raises(DomainError, match=r"^values: must be from 0 to 63"):
        fastdp.median(chunked(values), domain_bits=6, epsilon=1.0)
    assert budget.left.epsilon == 1.0
    assert not budget.releases


def test_a_loss_of_ones_own_does_not_travel(client: Any, data: Data) -> None:
    loss = losses.Custom(lambda score, label: score - label, slope_bound=1.0, x_norm=1.0)
    with fastdp.Budget(epsilon=1.0, delta=1e-6) as budget, pytest.raises(TypeError):
        CASES["logistic"](chunked, data, loss=loss, y="response")
    assert budget.left.epsilon == 1.0


def test_a_worker_that_dies_between_two_steps(mortals: Any, data: Data) -> None:
    """Its partitions were persisted, and are computed anew."""
    X, y = mortals.persist([chunked(data.points), chunked(data.side)])
    distributed.wait([X, y])
    pids = mortals.run(os.getpid)
    killed = []

    def kill(done: int, total: int, what: str) -> None:
        if done == 4 and not killed:
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    def run(X: Any, y: Any, progress: Any) -> Any:
        return fastdp.noisy_projected_gradient_descent(
            X, y, loss=losses.Logistic(x_norm=1), over=sets.Ball(2), epsilon=1.0, delta=1e-6, steps=12, rng=seeded(),
            progress=progress,
        ).w  # fmt: skip

    with fastdp.Budget(epsilon=1.0, delta=1e-6) as budget:
        found = run(X, y, kill)
    equal(found, run(data.points, data.side, None))
    assert killed
    assert budget.left.epsilon == 0


def _deadly(block: Any, path: str, pid: int) -> Any:
    """A partition whose computation takes its worker down, once."""
    if block.size and os.getpid() != pid:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return block
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.parametrize("name", ["peel", "box, peel", "median", "multiplicative weights"])
def test_a_worker_that_dies_at_work(name: str, mortals: Any, data: Data, here: dict[str, Any], tmp_path: Path) -> None:
    path = str(tmp_path / "died")

    def give(array: Any) -> Any:
        return chunked(array).map_blocks(_deadly, path, os.getpid(), dtype=array.dtype, meta=array[:0])

    equal(CASES[name](give, data), here[name])
    assert os.path.exists(path)
