"""Records in Dask collections: the same bits as on one machine, for any partitions and on any threads."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask.callbacks import Callback

import fastdp
from fastdp import losses, sets
from fastdp.answering import true_answers as truth
from fastdp.connect.dask import DaskRows
from fastdp.support.threads import alone, run_chunks
from tests.connect.dask.cases import (
    CASES,
    CUTS,
    Data,
    N,
    chunked,
    descent,
    equal,
    far_counts,
    frame_of,
    partitioned,
    same,
    seeded,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning"),
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # of pandas, which Dask uses when it reads files
]


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


@pytest.mark.parametrize(
    "name", ["multiplicative weights", "measured answers", "measured answers, add-remove", "mwem", "marginals"]
)
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
        # labels, counts; and the errors of prefixes
        (1 + 1, lambda: fastdp.learn_conjunction(X, y, epsilon=1.0, method="counts", realizable=True)),
        (2 + 1, lambda: fastdp.learn_conjunction(X, y, epsilon=1.0, method="counts")),
        # integer points, which the workers keep; whether the records are legal; a sum a step
        (1 + 1 + 5, lambda: CASES["logistic"](chunked, data, steps=5)),
        (1 + 1, lambda: fastdp.vector_sum(chunked(data.points), clip=1.0, epsilon=1.0)),
        (1, lambda: CASES["marginals"](chunked, data)),
        (5, lambda: fastdp.median(chunked(data.incomes), epsilon=1.0)),
    ):
        counted: list[int] = []
        with Counter(counted), dask.config.set(scheduler="synchronous"):
            call()
        assert 0 < len(counted) <= most


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
        barrier = threading.Barrier(2, timeout=1800)
        run_chunks(lambda i, j: barrier.wait(), 2, 1)  # helpers come again
    finally:
        fastdp.set_num_threads(before)


@pytest.mark.parametrize(("scheduler", "passes"), [("threads", 1), ("synchronous", 1), ("processes", 5)])
def test_a_descent_reads_its_records_once(scheduler: str, passes: int, data: Data, tmp_path: Path) -> None:
    """To check them and make integers of them, which stay; but not where they would come to this process."""
    log = tmp_path / "reads"

    def noted(part: Any) -> Any:
        with log.open("a") as file:
            file.write(f"{len(part)}\n")
        return part

    def fit(X: Any, y: Any) -> Any:
        return fastdp.noisy_projected_gradient_descent(
            X, y, loss=losses.Logistic(x_norm=1), over=sets.Ball(2), epsilon=1.0, delta=1e-6, steps=4, clip=1.0,
            outside="clip", rng=seeded(),
        )  # fmt: skip

    points = np.tile(data.points, (1, 20 // data.points.shape[1] + 1))
    right = fit(points, data.side)
    with dask.config.set(scheduler=scheduler):
        X = da.from_array(points, chunks=(2_500, -1)).map_blocks(noted, meta=np.empty((0, 0)))
        log.write_text("")
        found = fit(X, da.from_array(data.side, chunks=2_500))
    assert right.coordinates == "int16"
    np.testing.assert_array_equal(found.w, right.w)
    assert sum(map(int, log.read_text().split())) == passes * len(points)
