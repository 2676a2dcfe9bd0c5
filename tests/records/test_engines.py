"""Engines (fastdp/records/engines.py): a library's collections are read by the module registered for its package."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fastdp
from fastdp.records import Engine, check_engine
from fastdp.records.engine_jobs import Failure
from fastdp.records.engines import engine_of, is_collection
from fastdp.records.rows import Rows
from fastdp.records.sources import column_rows, rows_of
from fastdp.support import extensions
from tests.conftest import run_python


class Frame:
    """A collection of a library that is called toylib."""

    __module__ = "toylib.frames"

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class Derived(Frame):
    __module__ = "users_own"


@pytest.fixture
def toylib(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that gathers what it opens; its module is found by its name alone."""

    def open_rows(data: Frame, name: str = "") -> Rows:
        return column_rows(name, data.array) if name else rows_of(data.array)

    module: Any = ModuleType("engine_of_toylib")
    module.open_rows = open_rows
    monkeypatch.setitem(sys.modules, "engine_of_toylib", module)
    monkeypatch.setattr(extensions, "_registered", {**extensions._registered})
    extensions._registered["engine"] = dict(extensions._registered["engine"])
    extensions.register("engine", "toylib", "engine_of_toylib")


@pytest.mark.usefixtures("toylib")
@pytest.mark.parametrize("kind", [Frame, Derived])
def test_a_registered_engine_opens_its_collections(kind: type[Frame]) -> None:
    bits = np.random.default_rng(0).random((500, 4)) < 0.5
    far = kind(bits)
    assert engine_of(far) == "toylib"
    assert rows_of(far).n == 500
    assert column_rows("y", kind(bits[:, 0])).width == 1
    ours = fastdp.vector_sum(kind(bits * 1.0), clip=2.0, epsilon=1.0, delta=1e-6, rng=fastdp.Randomness(seed=1))
    here = fastdp.vector_sum(bits * 1.0, clip=2.0, epsilon=1.0, delta=1e-6, rng=fastdp.Randomness(seed=1))
    assert np.array_equal(ours.value, here.value)


class Shelves(Engine):
    """Parts in a list, whose jobs travel as they would to another process; what else it does, mutants change."""

    def __init__(self, table: Any, cuts: tuple[int, ...] = (0, 700, 700, 3_001)) -> None:
        ends = [*cuts[1:], len(table)]
        self.parts = [table[start:stop] for start, stop in zip(cuts, ends, strict=True)]
        super().__init__(table[:0], [len(part) for part in self.parts])

    def results(self, job: Any, columns: list[int]) -> list[Any]:
        job = cloudpickle.loads(cloudpickle.dumps(job))
        return [
            pickle.loads(cloudpickle.dumps(job(part.iloc[:, columns], first)))
            for part, first in zip(self.parts, self.starts, strict=True)
        ]

    def run(self, job: Any, columns: list[int]) -> Any:
        first, second, *others = self.results(job, columns)
        return job.combine(first, job.combine(second, *others))


def test_an_engine_is_some_ten_lines() -> None:
    check_engine(Shelves)
    check_engine(lambda table: Shelves(table, (0, 1, 2, 4_999)))


class Holds(Shelves):
    """Holds what jobs make, beside the parts."""

    made = 0

    def hold(self, job: Any, columns: list[int], size: int) -> Any:
        found = [found for found, part in zip(self.results(job, columns), self.parts, strict=True) if len(part)]
        type(self).made += 1
        return lambda other: other.combine(*self.jobs(other, found))

    def jobs(self, other: Any, found: Any) -> list[Any]:
        return [other(each, each.first, each.stop - each.first) for each in found]


class LosesWhatItHolds(Holds):
    def jobs(self, other: Any, found: Any) -> list[Any]:
        return super().jobs(other, found)[1:]


class GivesOneTwice(Holds):
    def jobs(self, other: Any, found: Any) -> list[Any]:
        return [other(found[0], each.first, each.stop - each.first) for each in found]


class LosesAPart(Shelves):
    def run(self, job: Any, columns: list[int]) -> Any:
        return job.combine(*self.results(job, columns)[:-1])


class CombinesTwice(Shelves):
    def run(self, job: Any, columns: list[int]) -> Any:
        found = self.results(job, columns)
        return job.combine(found[0], *found)


class OutOfOrder(Shelves):
    def run(self, job: Any, columns: list[int]) -> Any:
        return job.combine(*reversed(self.results(job, columns)))


class Gathers(Shelves):
    def run(self, job: Any, columns: list[int]) -> Any:
        return job(pd.concat(self.parts).iloc[:, columns], 0)


class OnePart(Shelves):
    def __init__(self, table: Any) -> None:
        super().__init__(table, (0,))

    def run(self, job: Any, columns: list[int]) -> Any:
        return job(self.parts[0].iloc[:, columns], 0)


class AllColumns(Shelves):
    def results(self, job: Any, columns: list[int]) -> list[Any]:
        return super().results(job, list(range(5)))


class Shuffles(Shelves):
    def results(self, job: Any, columns: list[int]) -> list[Any]:
        return [job(part[::-1].iloc[:, columns], first) for part, first in zip(self.parts, self.starts, strict=True)]


class LosesStrings(Shelves):
    def __init__(self, table: Any) -> None:
        super().__init__(table.fillna({"region": "none"}))


class Floats(Shelves):
    def __init__(self, table: Any) -> None:
        super().__init__(table.astype({"age": float}))


class Raises(Shelves):
    def run(self, job: Any, columns: list[int]) -> Any:
        found = super().run(job, columns)
        if isinstance(found, Failure):
            raise RuntimeError("a worker failed") from found.error
        return found


class ReturnsRecords(Shelves):
    def run(self, job: Any, columns: list[int]) -> Any:
        return self.parts


def test_an_engine_may_hold_what_is_read_in_every_step() -> None:
    check_engine(Holds)
    check_engine(lambda table: Holds(table, (0, 1, 2, 4_999)))
    table = np.random.default_rng(0).normal(size=(5_000, 20)) / 8
    frame = pd.DataFrame(table, columns=[f"x{j}" for j in range(20)]).assign(y=table[:, 0] > 0)
    Holds.made = 0

    def fit(rows: Any) -> Any:
        return fastdp.noisy_projected_gradient_descent(
            rows, "y", loss=fastdp.losses.Logistic(x_norm=1), over=fastdp.sets.Ball(1), epsilon=1.0, delta=1e-6,
            steps=5, outside="clip", rng=fastdp.Randomness(seed=1),
        )  # fmt: skip

    found, right = fit(Holds(frame)), fit(frame)
    assert found.coordinates == "int16"
    assert Holds.made == 1
    np.testing.assert_array_equal(found.w, right.w)
    for kind in (LosesWhatItHolds, GivesOneTwice):
        with pytest.raises(ValueError, match=r"^data: records that were left out, read twice or out of order"):
            fit(kind(frame))


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (LosesWhatItHolds, "ValueError: data: records that were left out, read twice or out of order"),
        (GivesOneTwice, "ValueError: data: records that were left out, read twice or out of order"),
        (LosesAPart, "ValueError: data: records that were left out, read twice or out of order"),
        (CombinesTwice, "ValueError: data: records that were left out, read twice or out of order"),
        (OutOfOrder, "ValueError: data: records that were left out, read twice or out of order"),
        (Gathers, "AssertionError: engine: must run a job on one part at a time"),
        (OnePart, "AssertionError: engine: must have two parts with records at least"),
        (AllColumns, "ValueError: data: a partition with other columns: must have those"),
        (Shuffles, "AssertionError: engine: must keep the order of records"),
        (LosesStrings, "AssertionError: engine: must keep strings and missing entries"),
        (Floats, "AssertionError: engine: must have types of the kinds ifib, has ffib"),
        (Raises, "AssertionError: engine: must raise the DomainError of a part, not RuntimeError"),
        (ReturnsRecords, "TypeError: run: type list: must return what job.combine returns"),
    ],
)
def test_engines_that_are_wrong_are_noticed(kind: type[Shelves], why: str) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        check_engine(kind)
    assert f"{caught.type.__name__}: {caught.value}".startswith(why)


def test_a_record_that_would_count_twice_is_never_released() -> None:
    table = pd.DataFrame({"x": np.arange(5_000.0)})
    for kind in (LosesAPart, CombinesTwice, OutOfOrder):
        with pytest.raises(ValueError, match=r"^data: records that were left out, read twice or out of order"):
            fastdp.vector_sum(kind(table), clip=1.0, epsilon=1.0)


def test_what_an_engine_is_made_of_is_checked() -> None:
    table = pd.DataFrame({"x": np.arange(5_000.0)})
    with pytest.raises(ValueError, match=r"^empty: 5000 records: must be none$"):
        Engine.__init__(Shelves(table), table, [5_000])
    with pytest.raises(ValueError, match=r"^lengths: must be 0 or greater$"):
        Engine.__init__(Shelves(table), table[:0], [5_000, -1])
    with pytest.raises(ValueError, match=r"^y: type Shelves: must be the name of a column of X$"):
        Shelves(table).attach_labels(Shelves(table))
    with pytest.raises(TypeError, match=r"^Shelves: rows stay where they were made"):
        pickle.dumps(Shelves(table))


def test_parts_of_arrow_and_numpy() -> None:
    table = pd.DataFrame({"x": np.arange(5_000.0), "in": np.arange(5_000) > 2_000})

    def boxes(rows: Any, label: Any) -> Any:
        seed = fastdp.Randomness(seed=3)
        return fastdp.learn_box(rows, label, epsilon=1.0, delta=1e-6, method="peel", rng=seed).intervals

    class Arrow(Engine):
        def __init__(self, table: Any) -> None:
            super().__init__(table[:0], [2_000, 3_000])
            self.table = table

        def run(self, job: Any, columns: list[int]) -> Any:
            pieces = self.table.select(columns).to_batches(max_chunksize=900)
            starts = np.cumsum([0, *map(len, pieces)])
            return job.combine(*(job(piece, int(first)) for piece, first in zip(pieces, starts, strict=False)))

    class Numpy(Engine):
        def __init__(self, table: Any) -> None:
            super().__init__(table[:0], [0, 2_000, 3_000])
            self.table = table

        def run(self, job: Any, columns: list[int]) -> Any:
            parts = zip(np.split(self.table, [0, 2_000]), self.starts, strict=True)
            return job.combine(*(job(part[:, columns], first) for part, first in parts))

    assert boxes(Arrow(pa.Table.from_pandas(table)), "in") == boxes(table, "in")
    array = table.to_numpy(float)
    assert boxes(Numpy(array), 1) == boxes(array, 1)


def test_a_table_of_spark_is_not_gathered() -> None:
    """Whatever it offers by which it would be read here."""

    class DataFrame:
        __module__ = "pyspark.sql.dataframe"
        columns = ("x",)

        @property
        def ndim(self) -> int:  # a column of Spark has whatever it is asked for
            raise AssertionError("asked")

        def gather(self, *given: Any, **named: Any) -> Any:
            raise AssertionError("gathered")

        __array__ = __arrow_c_stream__ = __len__ = __iter__ = to_numpy = toPandas = gather

    for call in (
        lambda frame: fastdp.median(frame, epsilon=1.0),
        lambda frame: fastdp.statistics.mean(frame, bounds=(0, 1), epsilon=1.0),
        lambda frame: fastdp.statistics.count(frame, epsilon=1.0),
        lambda frame: fastdp.learn_tree(frame, "x", epsilon=1.0),
        lambda frame: fastdp.learn_tree(np.ones((3, 2)), frame, epsilon=1.0),
        lambda frame: fastdp.partition(frame, by="x", keys=[1]),
        lambda frame: fastdp.vector_sum(frame, clip=1.0, epsilon=1.0),
        lambda frame: fastdp.release_ranges(frame, [0.0, 1.0], epsilon=1.0),
        lambda frame: fastdp.synthesize(frame, fastdp.Domain(x=2), epsilon=1.0, delta=1e-6),
        lambda frame: fastdp.learn_from_class(frame, np.ones(3), epsilon=1.0),
    ):
        with pytest.raises(ValueError, match=r"of pyspark: must be given as a fastdp\.records\.Engine.*spark\.md"):
            call(DataFrame())


def test_other_data_belong_to_no_engine() -> None:
    assert not any(map(is_collection, (np.zeros(3), [1, 2], {"a": [1]}, "records.parquet", None, Frame(np.zeros(3)))))
    with pytest.raises(ValueError, match="data: type Frame: must be a 2-D numpy array"):
        rows_of(Frame(np.zeros((3, 2))))


def test_engines_are_imported_when_a_collection_arrives() -> None:
    run_python(
        """
import sys
import numpy as np
import fastdp
from fastdp.records.sources import rows_of

assert rows_of(np.zeros((3, 2))).n == 3
assert not {"dask", "fastdp.connect.dask"} & set(sys.modules)
import dask.array as da
assert rows_of(da.zeros((3, 2))).n == 3
assert "fastdp.connect.dask" in sys.modules
"""
    )
