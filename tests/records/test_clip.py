"""outside="clip": nothing is refused, and each entry becomes a legal one by itself, in every container."""

import datetime
import decimal
import itertools
import warnings
from pathlib import Path
from typing import Any

import dask
import dask.dataframe
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import Bins, Budget, Domain, DomainError, Randomness, losses, sets
from fastdp.records.encoding import encode
from fastdp.records.labels import label_vector
from fastdp.records.number_column import NumberColumn
from fastdp.records.outside_domain import is_missing
from fastdp.support.checks import numbers_array
from fastdp.support.columns import column_of, objects
from tests.oracles import clipping

NAN, INF = float("nan"), float("inf")
NUMBERS = [NAN, INF, -INF, -0.0, 0.4, 0.5, 1.5, 2.5, 1e308, -1e308, 5e-324, 2.0**53 + 2, 3.0, 7.25, -7.0]
OBJECTS = [
    None, pd.NA, pd.NaT, NAN, INF, -INF, "a", "x", "1", b"1", "", (1, 2), [1], {}, object(), 1j, True, False, np.True_,
    0, 1, 2, 3, -1, 2**70, -(2**70), 10**400, -(10**400), 0.5, 1.5, 2.75, 1e308, np.float32(1.5), np.int8(2),
    np.uint64(2**64 - 1), np.str_("a"), np.datetime64("NaT"), np.datetime64("2020-01-01"), decimal.Decimal("sNaN"),
    decimal.Decimal(1), decimal.Decimal("2.5"), decimal.Decimal("1e999"), datetime.date(2020, 1, 1), print,
]  # fmt: skip
LABELS: list[list[Any]] = [
    ["a", "b"], ["b", "a", None], [1, 2, 3], [None, 1, 2, 10**400], [-0.5, 0.5, 2.5], [3, 1], [True, False, None],
    [0, "a", (1, 2), None],
]  # fmt: skip


def of_objects(values: list[Any]) -> np.ndarray:
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def columns_of(values: list[Any]) -> dict[str, Any]:
    """The same objects as columns."""
    return {"list": values, "array": of_objects(values), "Series": pd.Series(of_objects(values), dtype=object)}


# --- domains


@pytest.mark.parametrize("labels", [*LABELS, 1, 2, 5, 300], ids=str)
def test_every_entry_of_a_domain_is_what_the_oracle_says(labels: Any) -> None:
    domain = Domain(g=labels)
    of_one = clipping.code if isinstance(labels, int) else clipping.label
    for kind, column in columns_of(OBJECTS).items():
        expected = [of_one(value, labels) for value in OBJECTS]
        assert encode({"g": column}, domain, "clip")[0].tolist() == expected, kind
    floats = [of_one(value, labels) for value in NUMBERS]
    for column in (
        np.array(NUMBERS), NUMBERS, pd.Series(NUMBERS), pl.Series(NUMBERS), pa.array(NUMBERS),
        pd.array(NUMBERS, "Float64"),
    ):  # fmt: skip
        assert encode({"g": column}, domain, "clip")[0].tolist() == floats


def test_no_entry_changes_another() -> None:
    """A list of numbers with one string among them is not a list of strings, and so on."""
    for labels in (["1", 1, "a"], [1, 2, 3], ["a", "b"], [None, 5, 7]):
        domain = Domain(g=labels)
        for one, other in itertools.product(OBJECTS, [1, "1", 1.5, None, "a", 2**60 + 1, 0, True]):
            for column in columns_of([other, one]).values():
                alone = encode({"g": columns_of([other])["list"]}, domain, "clip")[0][0]
                assert encode({"g": column}, domain, "clip")[0][0] == alone, (labels, one, other)
    assert encode({"g": [2**53 + 1, 0.5]}, Domain(g=[2**53, 2**53 + 1, 2**53 + 2]), "clip")[0][0] == 1


def test_strings_and_nulls_of_libraries() -> None:
    values = ["b", None, "west", "a"]
    for labels, codes in ((["a", "b"], [1, 0, 0, 0]), (["a", None, "b"], [2, 1, 1, 0])):
        domain = Domain(g=labels)
        for column in (
            pd.Series(values), pd.Series(values, dtype="string"), pd.Series(values, dtype="category"),
            pl.Series(values), pl.Series(values, dtype=pl.Categorical), pa.array(values),
            pa.array(values).dictionary_encode(),
        ):  # fmt: skip
            assert encode({"g": column}, domain, "clip")[0].tolist() == codes
    whole = [2, None, 700, -3]
    for column in (
        pd.array(whole, "Int64"),
        pl.Series(whole),
        pa.array(whole),
        pd.array(whole, pd.ArrowDtype(pa.int32())),
    ):
        assert encode({"g": column}, Domain(g=5), "clip")[0].tolist() == [2, 0, 4, 0]
    flags = [True, None, False]
    for column in (pd.array(flags, "boolean"), pl.Series(flags), pa.array(flags)):
        assert encode({"g": column}, Domain(g=2), "clip")[0].tolist() == [1, 0, 0]


# --- numbers on a line


@pytest.mark.parametrize("signed", [False, True])
def test_integers_on_a_line(signed: bool) -> None:
    least, last = (-8, 15) if signed else (0, 15)
    for column in (OBJECTS, of_objects(OBJECTS)):
        _, positions = NumberColumn(column, 4, signed, "clip", may_be_empty=False).read()
        expected = []
        for value in OBJECTS:
            found = clipping.number(value)
            floor = found if found is None or abs(found) == INF else found // 1
            expected.append(0 if floor is None else int(min(max(floor - least, 0), last)))
        assert np.asarray(positions).tolist() == expected
    for column in (pd.array([1, None, 99], "Int64"), pl.Series([1, None, 99]), pa.array([1, None, 99])):
        assert np.asarray(NumberColumn(column, 4, signed, "clip", may_be_empty=False).read()[1]).tolist() == [
            1 - least, 0, 15,
        ]  # fmt: skip
        with pytest.raises(DomainError, match="must not have missing entries"):
            NumberColumn(column, 10, signed, "raise", may_be_empty=False).read()


def test_floats_on_a_line() -> None:
    line, alone = NumberColumn(np.array([1.5]), 64, None, "clip", may_be_empty=False).read()
    largest = float(np.finfo(float).max)
    for column in (OBJECTS, [1.5, None, "x", INF, -INF, NAN]):
        found = NumberColumn(column, None, None, "clip", may_be_empty=False).read()[1]
        values = [line.value(int(place)) for place in np.asarray(found)]
        for value, entry in zip(values, column, strict=True):
            exact = clipping.number(entry)
            expected = -largest if exact is None else float(min(max(exact, -largest), largest))
            assert value == expected, entry
    assert np.asarray(alone).size == 1


@pytest.mark.parametrize("release", [fastdp.median, fastdp.interior_point], ids=lambda f: f.__name__)
def test_objects_are_floats_or_integers_by_the_parameters_alone(release: Any) -> None:
    """One dirty cell makes pandas' column of floats one of objects: the same bits as the list has."""
    dirty: list[Any] = ["n/a", None, *([0.1, 0.2, 0.9, 0.95, 0.99] * 200)]
    of_strings = ["a", "b"] * 300
    for values, least in ((dirty, 0.1), (of_strings, -np.finfo(float).max), ([1, 2, 3] * 200, 1.0)):
        for domain_bits in (None, 4):
            options: dict[str, Any] = {"domain_bits": domain_bits, "epsilon": 1.0, "outside": "clip"}
            expected = release(values, rng=Randomness(seed=1), **options)
            assert type(expected) is (float if domain_bits is None else int)
            assert domain_bits or expected >= least
            series = pd.Series(values, dtype=object)
            with dask.config.set({"dataframe.convert-string": False}):  # its default makes strings of all objects
                frame = dask.dataframe.from_pandas(pd.DataFrame({"a": series}), npartitions=3)
            for column in (of_objects(values), series, pd.DataFrame({"a": series}), frame["a"]):
                assert release(column, rng=Randomness(seed=1), **options) == expected, type(column)
    for column in (pl.Series(of_strings), pa.array(of_strings), pd.Series(of_strings, dtype="string")):
        with pytest.raises(ValueError, match=r"^values: type [sS]tring: must be numbers$"):
            release(column, epsilon=1.0, outside="clip")


def test_objects_that_are_no_numbers_are_refused_where_floats_are_read() -> None:
    for wrong, message in (
        ("n/a", "column of strings: objects must be numbers"), (None, "objects must be numbers; there are others$"),
        (1j, "objects must be numbers; there are others$"), (NAN, "must not be NaN"),
        (10**400, "must be finite floats"),
    ):  # fmt: skip
        with Budget(epsilon=1) as budget, pytest.raises(DomainError, match=f"^values: {message}"):
            fastdp.median(of_objects([0.5, wrong]), epsilon=0.5)
        assert not budget.releases
    line, places = NumberColumn(of_objects([0.5, 2, np.True_]), None, None, "raise", may_be_empty=False).read()
    assert [line.value(int(place)) for place in np.asarray(places)] == [0.5, 2.0, 1.0]


def test_a_box_takes_columns_of_objects_as_it_takes_floats() -> None:
    values = np.linspace(0, 1, 600)
    y = (values > 0.3) & (values < 0.6)
    options: dict[str, Any] = {"epsilon": 5.0, "delta": 1e-4, "outside": "clip"}
    plain = fastdp.learn_box(pd.DataFrame({"a": values}), y, rng=Randomness(seed=3), **options)
    objects = pd.DataFrame({"a": of_objects(values.tolist())}, dtype=object)
    found = fastdp.learn_box(objects, y, rng=Randomness(seed=3), **options)
    assert found.intervals == plain.intervals is not None
    assert (found.predict(objects) == plain.predict(pd.DataFrame({"a": values}))).all()
    objects.loc[5, "a"] = "n/a"
    assert not found.predict(objects)[5]
    for low, high in fastdp.learn_box(objects, y, domain_bits=8, rng=Randomness(seed=3), **options).intervals or ():
        assert isinstance(low, int)
        assert isinstance(high, int)


# --- vectors


def gradients(X: Any, clip: float) -> tuple[np.ndarray, float]:
    """The sum before noise, and its grid, as the release makes it."""
    from fastdp.optimizing.step_noise import NoiseParameters
    from fastdp.optimizing.vector_sums import VectorRequest, _vectors

    points = _vectors(X, "clip", "replace-one")
    asked = NoiseParameters.of(1.0, 1e-6, "gaussian", "replace-one")
    request = VectorRequest.of("vector_sum", points, clip, asked)
    return points.vectors(request.grid.unit, request.grid.limit(points.d)), request.grid.unit


EXTREMES = [
    NAN,
    INF,
    -INF,
    0.0,
    1.0,
    -3.5,
    1e308,
    -1.7e308,
    5e-324,
    1e-310,
    1e-160,
    2.0**500,
    2.0**510.9,
    2.0**511,
    1e154,
    1e200,
]


@pytest.mark.parametrize("clip", [0.01, 1.0, 3.0, 2.0**-300, 2.0**399])
def test_vectors_of_any_norm_are_shortened(clip: float) -> None:
    vectors = [*itertools.product(EXTREMES, repeat=2), *([value] * 20 for value in EXTREMES)]
    for vector in vectors:
        row = np.array([vector])
        total, unit = gradients(row, clip)
        right = clipping.shortened(list(vector), clip)
        assert max(abs(t / unit - r) for t, r in zip(total.tolist(), right, strict=True)) <= (
            1.001 / unit + 1e-9 * clip
        ), vector
        assert sum(int(t) ** 2 for t in total) <= (clip * unit) ** 2 * (1 + 1e-15)


def test_a_wild_record_changes_no_other() -> None:
    rng = np.random.default_rng(3)
    for dtype, d in ((np.float64, 3), (np.float32, 3), (np.float64, 17)):
        tame = (rng.normal(size=(50, d)) * rng.choice([1e-3, 1.0, 1e30, 1e38], (50, 1))).astype(dtype)
        tame[7] = np.finfo(dtype).max / 2 if dtype == np.float32 else 2.0**505
        alone, unit = gradients(tame, 2.0)
        for value in (NAN, INF, -INF, 1e308):
            wild = np.full((1, d), value if dtype == np.float64 or value != 1e308 else INF, dtype)
            one, _ = gradients(np.repeat(wild, 51, axis=0), 2.0)
            both, again = gradients(np.concatenate([tame[:20], wild, tame[20:]]), 2.0)
            if again == unit:
                assert (both == alone + one // 51).all()


def test_vectors_of_objects_and_nulls(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"a": [0.25, None, 0.5, 3.0], "b": [None, 0.5, None, 4.0]}
    filled = np.array([[0.25, 0], [0, 0.5], [0.5, 0], [3, 4]])
    right, _ = gradients(filled, 1.0)
    path = tmp_path / "vectors.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=2)
    for data in (
        columns, pd.DataFrame(columns), pd.DataFrame(columns, dtype="Float64"), pl.DataFrame(columns),
        pa.table(columns), path, {"a": [0.25, "x", 0.5, 3], "b": [(), 0.5, NAN, 4.0]},
    ):  # fmt: skip
        assert (gradients(data, 1.0)[0] == right).all()


# --- every function that reads records


def _tables() -> tuple[Any, Domain]:
    return {"a": [0, 1, NAN, None, 7, "x"] * 20, "b": ["u", "v", None, pd.NA, "w", 3] * 20}, Domain(a=2, b=["u", "v"])


def _points() -> tuple[Any, Any]:
    X = np.array([[0.5, 0.1], [NAN, 0.2], [INF, 1.0], [-INF, NAN], [1e308, 1e308], [3.0, 4.0]] * 5)
    return X, np.array([1.0, -1.0, NAN, INF, -INF, 0.0] * 5)


def _calls() -> dict[str, Any]:
    data, domain = _tables()
    X, y = _points()
    line = [NAN, None, "x", 3.5, -INF, INF, 10**400] * 5
    erm: dict[str, Any] = {"over": sets.Ball(1.0), "epsilon": 1.0}
    squared, logistic = losses.SquaredError(x_norm=1.0, y_bound=1.0), losses.Logistic(x_norm=1.0)
    bits, labels = of_objects([0, 1, 2, NAN, None, "x"] * 10).reshape(-1, 2), [1, 0, None, NAN, "x", 7] * 5
    marginals = fastdp.marginals(domain, 2)
    return {
        "release_marginals": (fastdp.release_marginals, (data, domain, marginals), {"epsilon": 1.0, "delta": 1e-6}),
        "mwem": (fastdp.mwem, (data, domain, marginals), {"epsilon": 1.0, "delta": 1e-6}),
        "PrivateMultiplicativeWeights": (
            fastdp.PrivateMultiplicativeWeights, ({name: column * 200 for name, column in data.items()}, domain),
            {"epsilon": 1.0, "delta": 1e-6, "max_queries": 1},
        ),
        "median": (fastdp.median, (line,), {"epsilon": 1.0, "domain_bits": 8}),
        "quantile": (fastdp.quantile, (line,), {"q": 0.25, "epsilon": 1.0}),
        "interior_point": (fastdp.interior_point, (line,), {"epsilon": 1.0, "domain_bits": 8}),
        "learn_box": (fastdp.learn_box, (X, labels), {"epsilon": 1.0, "delta": 1e-6, "domain_bits": 16}),
        "learn_conjunction": (fastdp.learn_conjunction, (bits, labels), {"epsilon": 1.0, "delta": 1e-6}),
        "exhaustive": (fastdp.learn_conjunction, (bits, labels), {"epsilon": 1.0, "method": "exhaustive"}),
        "learn_from_class": (fastdp.learn_from_class, (bits.T.copy(), labels), {"epsilon": 1.0}),
        "stream": (fastdp.learn_from_class, (iter([bits[:, 0], bits[:, 1]]), labels), {"epsilon": 1.0}),
        "vector_sum": (fastdp.vector_sum, (X,), {"clip": 1.0, "epsilon": 1.0, "delta": 1e-6}),
        "vector_mean": (fastdp.vector_mean, (X,), {"clip": 1.0, "epsilon": 1.0, "delta": 1e-6}),
        "noisy_projected_gradient_descent": (
            fastdp.noisy_projected_gradient_descent, (X, y), {"loss": logistic, "delta": 1e-6, "steps": 3, **erm},
        ),
        "projected_gradient_descent": (
            fastdp.projected_gradient_descent, (X, y), {"loss": logistic, "over": sets.Ball(1.0), "steps": 3},
        ),
        "noisy_least_squares": (fastdp.noisy_least_squares, (X, y), {"loss": squared, "delta": 1e-6, **erm}),
        "exponential_erm": (fastdp.exponential_erm, (X, y), {"loss": squared, **erm}),
        "private_erm": (fastdp.private_erm, (X, y), {"loss": squared, "delta": 1e-6, **erm}),
        "a mean": (fastdp.private_erm, (X,), {"loss": losses.SquaredDistance(x_norm=1.0), "delta": 1e-6, **erm}),
        "nonprivate_minimum": (fastdp.nonprivate_minimum, (X, y), {"loss": squared, "over": sets.Ball(1.0)}),
        "pack": (fastdp.pack, (bits,), {}),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(_calls()))
def test_no_function_refuses_a_record(name: str) -> None:
    """The bad records above, which every one of them refuses otherwise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function, arguments, keywords = _calls()[name]
        function(*arguments, outside="clip", **keywords)
        function, arguments, keywords = _calls()[name]
        with pytest.raises(ValueError):  # noqa: PT011  # what it is called is tested with each function
            function(*arguments, **keywords)


def test_the_same_bits_as_on_the_records_that_are_meant() -> None:
    X, y = _points()
    legal = np.array([[0.5, 0.1], [0, 0.2], [1, 0], [-1, 0], [0.6, 0.6], [0.6, 0.8]] * 5)
    legal_y = np.array([1.0, -1.0, 0.0, 1.0, -1.0, 0.0] * 5)
    legal[4::6] = np.sqrt(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        squared = losses.SquaredError(x_norm=1.0, y_bound=1.0)
        options: dict[str, Any] = {"loss": squared, "over": sets.Ball(1.0), "epsilon": 100.0, "delta": 1e-6}
        for function in (fastdp.noisy_least_squares, fastdp.noisy_projected_gradient_descent):
            found = function(X, y, outside="clip", rng=Randomness(seed=1), **options).w
            right = function(legal, legal_y, outside="clip", rng=Randomness(seed=1), **options).w
            np.testing.assert_allclose(found, right, atol=1e-6)


def test_sklearn_estimators_refuse_no_record() -> None:
    import fastdp.sklearn as sk

    X = of_objects([0.5, None, NAN, INF, "x", pd.NA, 10**400, -3, 0.25, 1, 0, -INF] * 5).reshape(-1, 2)
    frame = pd.DataFrame({"a": [0.5, NAN, INF, None] * 10, "b": pd.array([1, None, 3, 4] * 10, "Int64")})
    y: Any = [0, 1, 1, 0, 0, 1] * 5  # of which scikit-learn's contract asks that others be refused
    common: dict[str, Any] = {"epsilon": 1.0, "random_state": 1, "outside": "clip"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for data, targets in ((X, y), (X.tolist(), np.array(y)), (frame, pd.Series([0, 1, 1, 0] * 10))):
            bounds = (-1.0, 1.0)
            sk.PrivateLogisticRegression(delta=1e-6, bounds=bounds, classes=(0, 1), **common).fit(data, targets)
            sk.PrivateLinearRegression(delta=1e-6, bounds=bounds, y_bounds=(0, 1), **common).fit(data, targets)
            sk.PrivateLinearRegression(delta=1e-6, data_norm=2.0, y_bounds=(0, 1), **common).fit(data, targets)
            sk.BoxClassifier(delta=1e-6, bounds=bounds, classes=(0, 1), **common).fit(data, targets)
            sk.ConjunctionClassifier(delta=1e-6, classes=(0, 1), **common).fit(data, targets)
            sk.PrivateMean(delta=1e-6, bounds=bounds, **common).fit(data)
            sk.PrivateMedian(bounds=bounds, **common).fit(data)
            sk.MWEMSynthesizer(delta=1e-6, bounds=bounds, bins=4, **common).fit(data)


def test_the_bisection_of_refusals_learns_nothing() -> None:
    """A decoy column with a smaller domain made 24 free calls tell the exact maximum of a column."""
    x = np.random.default_rng(0).integers(0, 10**6, 1000)
    x[17] = 7_654_321
    answers = set()
    with Budget(epsilon=1.0, delta=1e-6) as budget:
        for middle in [1, 2, 100, 7_654_321, 7_654_322, 2**20]:
            try:
                fastdp.release_marginals(
                    {"v": x, "w": np.full(1000, 5)}, Domain(v=middle, w=1), [["v"]], epsilon=1e-3, delta=1e-9, fit=None,
                    outside="clip",
                )  # fmt: skip
                answers.add("released")
            except DomainError as error:
                answers.add(str(error))
    assert answers == {"released"}
    assert len(budget.releases) == 6, "each was paid for"


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, which Dask uses when it reads files
@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning", "ignore::fastdp.PrivacyWarning")
def test_the_same_bits_from_frames_files_and_dask(tmp_path: Path) -> None:
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(8)
    n = 300
    frame = pd.DataFrame({
        "a": np.where(rng.random(n) < 0.2, NAN, rng.normal(size=n) * 10.0 ** rng.integers(-3, 300, n)),
        "b": np.where(rng.random(n) < 0.1, INF, rng.normal(size=n)),
        "s": pd.Series(rng.choice(of_objects(["u", "v", "w", None]), n), dtype="str"),
        "y": pd.array(rng.choice([0, 1, 7, None], n), "Int64"),
    })  # fmt: skip
    path = tmp_path / "records.parquet"
    frame.to_parquet(path, row_group_size=70)
    domain = Domain(s=["u", "v"], y=2)
    releases = {
        "tables": lambda data: fastdp.release_marginals(
            data, domain, fastdp.marginals(domain, 2), epsilon=1.0, delta=1e-6, outside="clip", rng=Randomness(seed=2)
        ).tables,
        "median": lambda data: fastdp.median(data["a"], epsilon=1.0, outside="clip", rng=Randomness(seed=2)),
        "box": lambda data: fastdp.learn_box(
            data[["a", "b", "y"]], "y", epsilon=1.0, delta=1e-6, outside="clip", rng=Randomness(seed=2)
        ).intervals,
        "sum": lambda data: fastdp.vector_sum(
            data[["a", "b"]], clip=1.0, epsilon=1.0, delta=1e-6, outside="clip", rng=Randomness(seed=2)
        ).value,
        "descent": lambda data: fastdp.noisy_projected_gradient_descent(
            data[["a", "b", "y"]], "y", loss=losses.Logistic(x_norm=1.0), over=sets.Ball(1.0), epsilon=1.0, delta=1e-6,
            steps=3, outside="clip", rng=Randomness(seed=2),
        ).w,
        "conjunction": lambda data: fastdp.learn_conjunction(
            data[["a", "b", "y"]], "y", epsilon=1.0, delta=1e-6, outside="clip", rng=Randomness(seed=2)
        ).literals,
    }  # fmt: skip
    for name, release in releases.items():
        right = repr(release(frame))
        for data in (
            dd.from_pandas(frame, npartitions=4),
            pl.from_pandas(frame),
            dd.read_parquet(path, dtype_backend="numpy_nullable"),
        ):
            assert repr(release(data)) == right, name
    for width in (1, 2):
        X = frame[["a", "b"]].to_numpy()[:, :width]
        right = fastdp.vector_sum(X, clip=1.0, epsilon=1.0, outside="clip", rng=Randomness(seed=2)).value
        for data in (da.from_array(X, chunks=(77, width)), X.astype(object)):
            found = fastdp.vector_sum(data, clip=1.0, epsilon=1.0, outside="clip", rng=Randomness(seed=2)).value
            assert (found == right).all()
    X = frame[["a", "b"]].to_numpy()
    one = fastdp.vector_sum(X, clip=1.0, epsilon=1.0, outside="clip", rng=Randomness(seed=2)).value
    frame[["a", "b"]].to_parquet(path, row_group_size=70)
    again = fastdp.vector_sum(path, clip=1.0, epsilon=1.0, outside="clip", rng=Randomness(seed=2)).value
    assert (one == again).all()


@pytest.mark.parametrize(
    "row", [[1, "a", 0], [1, b"x", 0], [1, 1j, 0], [1, [2], 0], [1, None, 0], [1, 2**70, 0], (1, "1", 0)]
)
def test_a_list_of_predictions_is_clipped_entry_by_entry(row: Any) -> None:
    """Neither a call nor the other entries depend on what one of them is."""
    y = [1, int(row[1] == 2**70), 0]
    options: dict[str, Any] = {"epsilon": 100.0, "outside": "clip"}
    assert fastdp.learn_from_class([[0, 1, 0], row], y, **options).index == 1
    assert fastdp.learn_from_class(iter([[0, 1, 0], row]), y, **options).index == 1
    assert fastdp.learn_from_class([lambda X: 1 - X, lambda X: row], y, X=np.array(y), **options).index == 1


def test_nested_predictions_are_0_each() -> None:
    nested = [[1]] * 3
    for class_ in ([nested, [1, 1, 0]], iter([nested, [1, 1, 0]])):
        assert fastdp.learn_from_class(class_, [1, 1, 0], epsilon=100.0, outside="clip").index == 1


@pytest.mark.parametrize("others", [[1, 3], [1.5, 3.0], ["a"], [2**70], [None, 1], [True], [2**63], []])
def test_a_masked_entry_of_a_list_is_missing_whatever_the_others_are(others: Any) -> None:
    for masked in (np.ma.masked, np.ma.array(3, mask=True)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # numpy's, which would tell that there is one
            entries = column_of("x", [masked, *others]).entries(0, 1 + len(others))
        assert is_missing(entries.values.tolist()[0])
        assert entries.values.tolist()[1:] == others
        assert is_missing(objects([*others, masked]).tolist()[-1])
    assert column_of("x", [np.ma.array(3, mask=False), 2]).entries(0, 2).values.tolist() == [3, 2]
    assert is_missing(np.ma.masked)


def test_masked_entries_are_in_the_bin_of_missing_ones_and_clipped_as_they_are() -> None:
    masked = np.ma.masked
    assert Domain(x=Bins([0, 2, 4], missing=True)).encode_column(0, [masked, 1, 3]).tolist() == [2, 0, 1]
    assert Domain(x=["a", None]).encode_column(0, ["a", masked]).tolist() == [0, 1]
    for others in ([5.0, 6.0, 7.0], [5.0, 6.0, 2**70]):
        given: dict[str, Any] = {"epsilon": 50.0, "outside": "clip"}
        found = fastdp.quantile([masked, *others] * 100, 0.1, **given, rng=Randomness(2))
        assert found == fastdp.quantile([float("nan"), *others] * 100, 0.1, **given, rng=Randomness(2))


@pytest.mark.parametrize("other", [2**63, 1, -1, 0.5, 2**64])
def test_an_integer_beyond_int64_in_a_list_is_refused_whatever_the_others_are(other: Any) -> None:
    """An array of uint64 has a type of its own: there it is the largest int64, as it is for any others."""
    for entry in (2**63, 2**64 - 1):
        with pytest.raises(DomainError, match=r"values: an? (list|integer)"):
            numbers_array("values", [entry, other])
        found = numbers_array("values", np.array([entry, 7], np.uint64))
        assert found.tolist() == [2**63 - 1, 7]


@pytest.mark.parametrize("wild", ["a", None, np.ma.masked, 2**70, 0.5])
def test_labels_in_a_column_of_lists_are_taken_one_by_one(wild: Any) -> None:
    labels = label_vector([[1], [wild], [0]], "clip").values
    assert labels.tolist()[::2] == [1.0, 0.0]
    np.testing.assert_array_equal(labels, label_vector([1, wild, 0], "clip").values)
