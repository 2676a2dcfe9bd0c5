"""pandas, polars, Arrow and whatever speaks its C interface: the same results as arrays, without copies, no gaps."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Domain, DomainError, Randomness, SyntheticDistribution
from fastdp.records.sources import rows_of
from fastdp.support.columns import column_of

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")


class Foreign:
    """A table or column of a library that nobody here has heard of."""

    def __init__(self, made: Any) -> None:
        self._made = made

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._made.__arrow_c_stream__(requested_schema)


def typed(values: np.ndarray, missing: bool = False) -> list[Any]:
    return [None, *values[1:].tolist()] if missing else values.tolist()


NULLABLE = {"b": "boolean", "i": "Int64", "u": "UInt8", "f": "Float64"}
COLUMNS: dict[str, Callable[..., Any]] = {
    "pandas": lambda v: pd.Series(v),
    "pandas, from 5": lambda v: pd.Series(v, index=range(5, 5 + len(v))),
    "pandas nullable": lambda v: pd.Series(v).astype(NULLABLE[v.dtype.kind]),
    "pandas Arrow": lambda v: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(v)]))),
    "polars": lambda v: pl.Series(v),
    "polars chunks": lambda v: pl.concat([pl.Series(v[:7]), pl.Series(v[7:])], rechunk=False),
    "arrow": lambda v: pa.array(v),
    "arrow chunks": lambda v: pa.chunked_array([v[:7], v[7:]]),
}
FRAMES: dict[str, Callable[[np.ndarray], Any]] = {
    "pandas": lambda X: pd.DataFrame(named(X)),
    "pandas nullable": lambda X: pd.DataFrame(named(X)).convert_dtypes(),
    "pandas Arrow": lambda X: pa.table(named(X)).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda X: pl.DataFrame(named(X)),
    "arrow": lambda X: pa.table(named(X)),
    "batch": lambda X: pa.RecordBatch.from_pydict({k: pa.array(v) for k, v in named(X).items()}),
    "stream": lambda X: Foreign(pa.table(named(X))),
}
GAPS: dict[str, Callable[[np.ndarray], Any]] = {
    "pandas nullable": lambda v: pd.Series(typed(v, True), dtype=NULLABLE[v.dtype.kind]),
    "pandas Arrow": lambda v: pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([typed(v, True)]))),
    "polars": lambda v: pl.Series(typed(v, True)),
    "arrow": lambda v: pa.array(typed(v, True)),
    "arrow chunks": lambda v: pa.chunked_array([typed(v, True), typed(v)]),
}


def named(X: np.ndarray) -> dict[str, np.ndarray]:
    return {f"c{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}


def seeded() -> Randomness:
    return Randomness(seed=11)


# --- numbers: noise, choices, thresholds


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_numbers_are_released_as_arrays_are(kind: str) -> None:
    make = COLUMNS[kind]
    counts, shares = np.arange(20) * 3 - 7, np.linspace(-1, 1, 20)
    price: dict[str, Any] = {"sensitivity": 1, "epsilon": 0.7}
    for values in (counts, shares, counts % 2 == 0, (counts % 5).astype(np.uint8)):
        noisy = fastdp.laplace(make(values), **price, rng=seeded())
        assert type(noisy) is np.ndarray
        assert noisy.dtype == (np.float64 if values.dtype.kind == "f" else np.int64)
        assert (noisy == fastdp.laplace(values, **price, rng=seeded())).all()
    given = fastdp.gaussian(make(shares), sensitivity=1, rho=0.1, rng=seeded())
    assert (given == fastdp.gaussian(shares, sensitivity=1, rho=0.1, rng=seeded())).all()
    for choose in (fastdp.exponential_mechanism, fastdp.permute_and_flip):
        for scores in (counts, shares):
            assert choose(make(scores), **price, rng=seeded()) == choose(scores, **price, rng=seeded())
    top = fastdp.top_k(make(counts), 3, **price, rng=seeded())
    assert (top == fastdp.top_k(counts, 3, **price, rng=seeded())).all()
    first = fastdp.AboveThreshold(20, **price, rng=seeded()).first_above(make(counts))
    assert first == fastdp.AboveThreshold(20, **price, rng=seeded()).first_above(counts)
    race, same = (fastdp.GumbelMax(**price, rng=seeded()) for _ in range(2))
    race.offer(make(counts), 0)
    same.offer(counts, 0)
    assert race.winner() == same.winner()


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_numbers_have_medians(kind: str) -> None:
    values = np.random.default_rng(2).integers(0, 1000, 3000)
    for each in (values, values / 7):
        want = fastdp.median(each, epsilon=1.0, rng=seeded())
        assert fastdp.median(COLUMNS[kind](each), epsilon=1.0, rng=seeded()) == want


@pytest.mark.parametrize("kind", GAPS)
def test_missing_numbers_are_refused_by_name_and_nothing_is_spent(kind: str) -> None:
    price: dict[str, Any] = {"sensitivity": 1, "epsilon": 0.7}
    with fastdp.Budget(epsilon=10, delta=1e-3, refusals=9) as budget:
        for values in (np.arange(3000), np.arange(3000) / 4):
            gappy = GAPS[kind](values)
            with pytest.raises(DomainError, match=r"^values: must not have missing entries; fill them"):
                fastdp.laplace(gappy, **price)
            with pytest.raises(DomainError, match=r"^values: must not have missing entries; fill them"):
                fastdp.gaussian(gappy, sensitivity=1, rho=0.01)
            with pytest.raises(DomainError, match=r"^scores: must not have missing entries; fill them"):
                fastdp.exponential_mechanism(gappy, **price)
            with pytest.raises(DomainError, match=r"must not have missing entries; fill them"):
                fastdp.median(gappy, epsilon=1.0)
        assert not budget.releases
        assert budget.left.epsilon == 10


# --- records and labels


def bits() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).random((3000, 4)) < 0.5
    return X, X[:, 0] & ~X[:, 2]


def points() -> tuple[np.ndarray, np.ndarray]:
    P = np.random.default_rng(1).uniform(-0.5, 0.5, (3000, 2))
    return P, P[:, 0] > 0.1


def whole() -> tuple[np.ndarray, np.ndarray]:
    W = np.random.default_rng(2).integers(0, 100, (3000, 2))
    return W, W[:, 0] < 50


BOTH: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
LOGISTIC, SQUARED = fastdp.losses.Logistic(x_norm=1.0), fastdp.losses.SquaredError(x_norm=1.0, y_bound=1.0)
BALL = fastdp.sets.Ball(1.0)
LEARNERS: dict[str, tuple[Callable[[], Any], Callable[[Any, Any], Any]]] = {
    "conjunction": (
        bits,
        lambda X, y: fastdp.learn_conjunction(X, y, k=2, epsilon=4.0, rng=seeded()).predict(X).tolist(),
    ),
    "box": (whole, lambda X, y: fastdp.learn_box(X, y, domain_bits=8, epsilon=1.0, rng=seeded()).predict(X).tolist()),
    "pgd": (
        points,
        lambda X, y: fastdp.noisy_projected_gradient_descent(
            X, y, loss=LOGISTIC, over=BALL, steps=4, rng=seeded(), **BOTH
        ).w.tolist(),
    ),
    "least squares": (
        points,
        lambda X, y: fastdp.noisy_least_squares(X, y, loss=SQUARED, over=BALL, rng=seeded(), **BOTH).w.tolist(),
    ),
    "erm": (points, lambda X, y: fastdp.private_erm(X, y, loss=LOGISTIC, over=BALL, rng=seeded(), **BOTH).w.tolist()),
    "plain": (
        points,
        lambda X, y: fastdp.projected_gradient_descent(X, y, loss=LOGISTIC, over=BALL, steps=3).w.tolist(),
    ),
    "mean": (points, lambda X, y: fastdp.vector_mean(X, clip=1.0, epsilon=1.0, rng=seeded()).value.tolist()),
    "pack": (bits, lambda X, y: fastdp.pack(X).words.tolist()),
}


@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_see_the_same_in_every_library(learner: str) -> None:
    data, learn = LEARNERS[learner]
    X, y = data()
    want = learn(X, y)
    for name, frame in FRAMES.items():
        found = learn(frame(X), y)
        assert found == want, name
    for name, column in COLUMNS.items():
        if name != "pandas, from 5":  # its index is not that of X
            assert str(learn(X, column(y))) == str(want), name
            if learner != "least squares":  # whose labels are numbers
                assert str(learn(X, column(y.astype(np.int64) * 2 - 1))) == str(want), name
    assert str(learn(pd.DataFrame(X), pd.DataFrame({"y": y}))) == str(want)
    assert str(learn(X, pl.DataFrame({"y": y}))) == str(want)


@pytest.mark.parametrize("kind", GAPS)
def test_missing_labels_are_refused(kind: str) -> None:
    X, y = bits()
    gappy = GAPS[kind](y[: 1500 if kind == "arrow chunks" else 3000])
    for learn in (
        lambda: fastdp.learn_conjunction(X, gappy, k=2, epsilon=1.0),
        lambda: fastdp.learn_box(X.astype(int), gappy, domain_bits=1, epsilon=1.0),
        lambda: fastdp.learn_from_class(np.stack([y, ~y]), gappy, epsilon=1.0),
        lambda: fastdp.noisy_projected_gradient_descent(X / 2, gappy, loss=LOGISTIC, over=BALL, steps=2, **BOTH),
    ):
        with pytest.raises(DomainError, match=r"^y: must not have missing entries; fill them"):
            learn()


@pytest.mark.parametrize("kind", FRAMES)
def test_predictions_go_by_names(kind: str) -> None:
    X, y = bits()
    frame = FRAMES[kind](X)
    rule = fastdp.learn_conjunction(frame, y, k=2, epsilon=8.0, rng=seeded())
    assert (rule.predict(frame) == y).all()
    assert rule.error(frame, COLUMNS["arrow"](y)) == 0
    turned = pa.table({name: named(X)[name] for name in ("c3", "c2", "c1", "c0")})
    assert (rule.predict(turned) == y).all()


# --- without copies


def addresses(kind: str, values: np.ndarray) -> tuple[Any, np.ndarray]:
    """A column, and its numbers as its own library gives them without a copy."""
    if kind == "numpy":
        return values, values
    if kind == "pandas":
        made = pd.Series(values, copy=False)
        return made, made.to_numpy()
    if kind == "pandas nullable":
        made = pd.array(values, dtype={"i": "Int64", "f": "Float64", "u": "UInt8"}[values.dtype.kind])
        return pd.Series(made, copy=False), made._data
    if kind == "pandas Arrow":
        array = pa.array(values)
        made = pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])), copy=False)
        return made, array.to_numpy(zero_copy_only=True)
    if kind == "polars":
        made = pl.Series(values)
        return made, made.to_numpy(allow_copy=False)
    made = pa.array(values)
    if kind == "stream":
        return Foreign(pa.chunked_array([made])), made.to_numpy(zero_copy_only=True)
    return made, made.to_numpy(zero_copy_only=True)


@pytest.mark.parametrize("kind", ["numpy", "pandas", "pandas nullable", "pandas Arrow", "polars", "arrow", "stream"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint8])
def test_columns_share_the_memory_of_their_library(kind: str, dtype: Any) -> None:
    if kind == "stream" and tuple(map(int, pa.__version__.split(".")[:1])) < (15,):
        pytest.skip("columns by a stream need pyarrow 15")
    column, memory = addresses(kind, np.arange(10_000).astype(dtype))
    read = column_of("values", column).values(100, 9000)
    assert read.dtype == dtype
    assert np.shares_memory(read, memory)
    assert read.ctypes.data == memory[100:].ctypes.data


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "batch", "stream"])
def test_blocks_of_frames_are_views(kind: str) -> None:
    X = np.random.default_rng(0).random((10_000, 2))
    frame = FRAMES[kind](X)
    if kind == "pandas":
        memory = frame["c1"].to_numpy()
    elif kind == "polars":
        memory = frame["c1"].to_numpy(allow_copy=False)
    else:
        table = frame._made if kind == "stream" else frame
        column = table.column("c1")
        memory = (column if kind == "batch" else column.chunk(0)).to_numpy(zero_copy_only=True)
    block = rows_of(frame).one_block()
    assert block is not None
    assert np.shares_memory(block.column("c1"), memory)
    assert (block.column("c1") == X[:, 1]).all()


def test_what_speaks_arrow_only_needs_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Foreign(pa.table({"a": [1, 2]}))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'fastdp\[arrow\]'"):
        rows_of(table)


# --- labels as records


def test_categories_and_strings_are_labels_everywhere() -> None:
    domain = Domain(region=["north", "south"], age=3)
    regions, ages = np.array(["north", "south", "south", "north"] * 50), np.array([0, 1, 2, 1] * 50)
    frames = [
        {"region": regions, "age": ages},
        pd.DataFrame({"region": pd.Categorical(regions), "age": ages}),
        pd.DataFrame({"region": pd.array(regions.tolist(), "string"), "age": pd.array(ages, "Int64")}),
        pl.DataFrame({"region": pl.Series(regions.tolist()).cast(pl.Categorical), "age": ages}),
        pl.DataFrame({"region": pl.Series(regions.tolist(), dtype=pl.Enum(["south", "north"])), "age": ages}),
        pa.table({"region": pa.array(regions.tolist()).dictionary_encode(), "age": ages}),
        Foreign(pa.table({"region": regions.tolist(), "age": ages})),
    ]
    tables = [
        fastdp.release_marginals(f, domain, fastdp.marginals(domain, 2), epsilon=1.0, delta=0, rng=seeded()).tables[0]
        for f in frames
    ]
    assert all((table == tables[0]).all() for table in tables)
    for gappy in (
        pd.DataFrame({"region": pd.Categorical([*regions[1:], None]), "age": ages}),
        pl.DataFrame({"region": [*regions[1:].tolist(), None], "age": ages}),
        pa.table({"region": pa.array([*regions[1:].tolist(), None]), "age": ages}),
    ):
        with pytest.raises(DomainError, match="column 'region': must not have missing entries"):
            fastdp.release_marginals(gappy, domain, fastdp.marginals(domain, 2), epsilon=1.0, delta=0)


# --- out


def synthetic() -> SyntheticDistribution:
    domain = Domain(region=["north", "south"], age=3, size=[1.5, 2.5])
    return SyntheticDistribution(np.arange(1.0, 13.0), domain, n=400)


def test_frames_out_hold_the_same_records_in_every_library() -> None:
    made = {library: synthetic().to_frame(rng=seeded(), library=library) for library in ("pandas", "polars", "pyarrow")}
    assert type(made["pandas"]) is pd.DataFrame
    assert type(made["polars"]) is pl.DataFrame
    assert type(made["pyarrow"]) is pa.Table
    want = {name: made["pandas"][name].tolist() for name in ("region", "age", "size")}
    assert made["polars"].to_dict(as_series=False) == want == made["pyarrow"].to_pydict()
    assert made["polars"].schema["region"] == pl.Enum(["north", "south"])
    assert pa.types.is_dictionary(made["pyarrow"].schema.field("region").type)
    assert made["polars"].schema["age"] == pl.Int64
    assert made["pyarrow"].schema.field("age").type == pa.int64()
    assert list(made["pandas"]["region"].cat.categories) == ["north", "south"]
    domain = synthetic().domain
    for frame in made.values():  # and is read back
        truth = fastdp.release_marginals(
            frame, domain, fastdp.marginals(domain, 3), epsilon=1e5, delta=0, fit=None
        ).tables[0]
        assert truth.sum() == pytest.approx(1, abs=1e-2)
    assert made["polars"].equals(pickle.loads(pickle.dumps(made["polars"])))


def test_frames_out_name_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"library='dask': must be one of 'pandas', 'polars', 'pyarrow'"):
        synthetic().to_frame(library="dask")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match="to_frame needs polars: pip install polars"):
        synthetic().to_frame(library="polars")
    assert len(synthetic().to_frame(0)) == 0
