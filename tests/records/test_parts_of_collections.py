"""Parts and rows of persons of Dask collections: the same bits as in memory, whatever their blocks are."""

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, statistics
from fastdp.records.subsets import held

AR = {"neighbors": "add-remove"}


def test_dask_parts_have_the_same_bits():
    frame = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    table = pandas.DataFrame({"k": rng.choice(["a", "b"], 300), "x": rng.normal(size=300)})
    given = table, frame.from_pandas(table, npartitions=4)
    here, there = (fastdp.partition(data, by="k", keys=["a", "b"]) for data in given)
    options = {"bounds": (-2, 2), "epsilon": 1.0, **AR}
    for key in "ab":
        medians = [fastdp.median(parts[key]["x"], epsilon=1.0, rng=Randomness(3), **AR) for parts in (here, there)]
        assert medians[0] == medians[1]
        both = [float(statistics.mean(parts[key]["x"], rng=Randomness(3), **options)) for parts in (here, there)]
        assert both[0] == both[1]


@pytest.mark.parametrize("kind", ["part", "nested", "rows"])
@pytest.mark.filterwarnings("ignore")
def test_models_on_parts_of_collections_have_the_same_bits(kind):
    """Labels are a column of the part; and the first block has no record of it, so that the next one begins at 0, too.

    The descent buys a metric, and holds points in its coordinates: of blocks that are told apart.
    """
    frame = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    rng, n = np.random.default_rng(1), 12_000
    X = rng.uniform(-0.5, 0.5, (n, 3)) * [1, 1, 0.1]
    columns = {"k": np.arange(n) // 5_000, "j": rng.integers(2, size=n), "u": np.arange(n) // 3, "y": X.sum(1) > 0}
    table = pandas.DataFrame(columns | {f"x{j}": X[:, j] for j in range(3)})
    loss, ball = fastdp.losses.Logistic(x_norm=1), fastdp.sets.Ball(10)
    options = {"epsilon": 2.0, "delta": 1e-6, "records": 6_000, **AR}
    found = []
    for data in (table, frame.from_pandas(table, npartitions=4, sort=False)):
        part = fastdp.partition(data, by="k", keys=[1])[1]
        if kind == "nested":
            part = fastdp.partition(part, by="j", keys=[1])[1]
        if kind == "rows":
            part = fastdp.limit_rows(data, unit="u", at_most=2, rng=Randomness(1))
        result = fastdp.noisy_projected_gradient_descent(
            part[["x0", "x1", "x2"]], part["y"], loss=loss, over=ball, rng=Randomness(2), **options
        )
        tree = fastdp.learn_tree(part[["y", "j"]], "j", depth=1, records=6_000, epsilon=1.0, rng=Randomness(2), **AR)
        found.append((result.w.tolist(), str(tree)))
        other = fastdp.partition(data, by="k", keys=[0])[0]
        with pytest.raises(ValueError, match="y: type "):
            fastdp.learn_tree(part["y"], other["j"], depth=1, records=6_000, epsilon=1.0, **AR)
    assert result.metric is not None
    assert found[0] == found[1]


@pytest.mark.parametrize("nested", [False, True])
def test_blocks_of_wide_parts_follow_each_other(nested):
    """Records of many columns are read in smaller blocks than the column that divides them; all know their places."""
    frame = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    n, width = 80_000, 60
    rng = np.random.default_rng(2)
    columns = {"k": rng.integers(2, size=n), "j": rng.integers(2, size=n)}
    table = pandas.DataFrame({**columns, **{f"x{i}": np.arange(n, dtype=np.int32) for i in range(width)}})
    part = fastdp.partition(frame.from_pandas(table, npartitions=2), by="k", keys=[0, 1])[1]
    wanted = table[table.k == 1]
    if nested:
        part, wanted = fastdp.partition(part, by="j", keys=[0, 1])[0], wanted[wanted.j == 0]
    for wide in (width, 31, 2):  # of a part in a part the blocks are those of two columns more
        names = [f"x{i}" for i in range(wide)]
        blocks = held(part[names]).merge(lambda block: [(block.first, block.column("x0"))], lambda a, b: a + b)
        sizes = [len(values) for _, values in blocks]
        assert [first for first, _ in blocks] == np.cumsum([0, *sizes])[:-1].tolist()
        assert np.array_equal(np.concatenate([values for _, values in blocks]), wanted.x0)
        assert wide < width or len(blocks) > 2


LOSS, BALL = fastdp.losses.SquaredError(x_norm=2, y_bound=1), fastdp.sets.Ball(1)
LEARNERS = {
    "tree of thresholds": lambda X, y, **how: str(fastdp.learn_tree(X, y, depth=2, quantiles=7, **how)),
    "boxes": lambda X, y, **how: repr(fastdp.learn_box(X, y, domain_bits=32, **how)),
    "a grid": lambda X, y, **how: repr(fastdp.learn_box(X, y, domain_bits=32, method="grid", **how)),
    "squares": lambda X, y, **how: fastdp.noisy_least_squares(X, y, loss=LOSS, over=BALL, **how).w.tolist(),
    "a net": lambda X, y, **how: fastdp.exponential_erm(X, y, loss=LOSS, over=BALL, **how).w.tolist(),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.filterwarnings("ignore")
def test_learners_on_parts_of_files_have_the_same_bits(name, tmp_path):
    """Files end anywhere: the blocks of a part have any number of records, and begin anywhere."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng, n = np.random.default_rng(1), 2_000
    a, b = rng.uniform(-1, 1, (2, n)).astype(np.float32)
    table = {"k": np.arange(n) // 150 % 3, "a": a, "b": b, "y": a > 0.3}
    files = [tmp_path / f"{i}.parquet" for i in range(20)]
    for i, file in enumerate(files):
        rows = slice(i * 97, (i + 1) * 97 if i < 19 else n)
        parquet.write_table(arrow.table({column: values[rows] for column, values in table.items()}), file)
    found = []
    for data in (table, files):
        part = fastdp.partition(data, by="k", keys=[1])[1]
        options = {"epsilon": 5.0, "records": 700, "rng": Randomness(3), **AR}
        found.append(LEARNERS[name](part[["a", "b"]], part["y"], **options))
    assert found[0] == found[1]
