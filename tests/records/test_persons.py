"""Rows of persons: which are kept, what a person costs, and that nothing treats how many they are as public."""

import datetime
import decimal
import inspect
import itertools
import math
import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats

import fastdp
from fastdp import ApproxDP, Randomness, statistics
from fastdp.privacy import for_persons
from tests.machinery.calls import CALLS
from tests.oracles.persons import kept_rows, sums_of_persons
from tests.records.test_partition import READERS, run, seen

AR = {"neighbors": "add-remove"}
KEY = np.arange(1, 9, dtype=np.uint32)
pytestmark = pytest.mark.filterwarnings("ignore")


def kept_by(units, at_most, key=KEY):
    """What the library keeps of a column."""
    rows = fastdp.limit_rows({"u": units, "i": np.arange(len(units))}, "u", at_most=at_most, rng=Fixed(key))
    return [int(i) for i in seen(rows["i"])[0]]


class Fixed(Randomness):
    """One key for all."""

    def __init__(self, key):
        super().__init__()
        self._key = key

    def key(self):
        return np.array(self._key, np.uint32)


# --- which rows are kept


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("spread", [1, 10**6, -(2**40)])
def test_kept_rows_are_those_of_the_oracle(seed, spread):
    """Integers of a narrow range and of a wide one, signed and not."""
    rng = np.random.default_rng(seed)
    units = rng.integers(0, 1 + 7 * seed, 300) * spread
    key = rng.integers(0, 2**32, 8, np.uint32)
    for at_most in (1, 3, 400):
        wanted = np.flatnonzero(kept_rows(units.tolist(), at_most, key)).tolist()
        assert kept_by(units, at_most, key) == wanted
        counts = np.unique(units[wanted], return_counts=True)[1]
        assert (counts == np.minimum(np.unique(units, return_counts=True)[1], at_most)).all()


def test_more_persons_than_a_table_has():
    units = np.random.default_rng(0).integers(-(2**62), 2**62, 50_000).repeat(2)
    np.random.default_rng(1).shuffle(units)
    wanted = np.flatnonzero(kept_rows(units.tolist(), 1, KEY)).tolist()
    assert kept_by(units, 1) == wanted


def does_not_depend_on_others(keep, trials=200):
    """Whether what is kept of each person stays when another person's rows are taken out."""
    rng = np.random.default_rng(5)
    for _ in range(trials):
        units = rng.choice([3, 5, 8, 10**12], rng.integers(2, 12))
        key = rng.integers(0, 2**32, 8, np.uint32)
        for gone in {*units.tolist()}:
            rest = np.flatnonzero(units != gone)
            kept = [i for i in keep(units, 2, key) if units[i] != gone]
            if [int(rest[i]) for i in keep(units[rest], 2, key)] != kept:
                return False
    return True


def by_global_position(units, at_most, key):
    """A mutant: the rows of a person with the smallest hashes of their positions among all rows."""
    order = sorted(range(len(units)), key=lambda i: hash((int(key[0]), i)))
    return sorted(i for u in {*units.tolist()} for i in [j for j in order if units[j] == u][:at_most])


def by_number_of_person(units, at_most, key):
    """A mutant: the choice goes by the place of a person among all persons, and not by who it is."""
    return np.flatnonzero(kept_rows(np.unique(units, return_inverse=True)[1].tolist(), at_most, key)).tolist()


def test_kept_rows_depend_on_no_other_person():
    assert does_not_depend_on_others(kept_by, 60)
    assert not does_not_depend_on_others(by_global_position)
    assert not does_not_depend_on_others(by_number_of_person)


def test_each_choice_is_equally_likely():
    """All subsets of 2 of 5 rows, over keys and over persons: chi-square, false alarm 1e-6; first rows alone fail."""
    rng = np.random.default_rng(11)
    subsets = dict.fromkeys(itertools.combinations(range(5), 2), 0)
    over_persons = dict(subsets)
    for _ in range(40):
        kept = np.array(kept_by(np.arange(200).repeat(5), 2, rng.integers(0, 2**32, 8, np.uint32))) % 5
        for pair in map(tuple, kept.reshape(-1, 2).tolist()):
            subsets[pair] += 1
    assert stats.chisquare([*subsets.values()]).pvalue > 1e-6
    for pair in map(tuple, (np.array(kept_by(np.arange(5000).repeat(5), 2)) % 5).reshape(-1, 2).tolist()):
        over_persons[pair] += 1
    assert stats.chisquare([*over_persons.values()]).pvalue > 1e-6
    assert stats.chisquare([5000, *[1e-9] * 9], f_exp=[500] * 10, sum_check=False).pvalue < 1e-6


TYPES = {
    "int8": np.array([3, 1, 3, 3, 1, 2, 3], "i1"),
    "uint64": np.array([3, 2**64 - 1, 3, 3, 2**64 - 1, 2, 3], "u8"),
    "float": np.array([0.0, np.nan, -0.0, 0.0, np.nan, 2.0, -0.0]),
    "bool": np.array([True, False, True, True, False, False, True]),
    "date": np.array(["2024-01-01", "NaT", "2024-01-01", "2024-01-01", "NaT", "2024-01-02", "2024-01-01"], "M8[D]"),
    "text": np.array(["a", "", "a", "a", "", "c", "a"]),
    "objects": np.array([1, None, 1.0, True, float("nan"), "c", decimal.Decimal(1)], object),
    "no hash": np.array([(1, 2), [], (1, 2), (1, 2), {}, "c", (1, 2)], object),
    "dates": np.array([datetime.date(2024, 1, d) if d else None for d in (1, 0, 1, 1, 0, 2, 1)], object),
}


@pytest.mark.parametrize("name", TYPES)
def test_units_of_every_type(name):
    """Equal entries are one person, whatever their types; what is missing, or has no hash, is nobody's."""
    units = TYPES[name]
    is_somebody = [not (u is None or u != u or isinstance(u, list | dict)) for u in units.tolist()]
    if name == "date":
        is_somebody = (~np.isnat(units)).tolist()
    people = {}
    for i in np.flatnonzero(is_somebody).tolist():
        people.setdefault(units[i].item() if isinstance(units[i], np.generic) else units[i], []).append(i)
    assert kept_by(units, 10) == np.flatnonzero(is_somebody).tolist()
    for at_most in (1, 2, 3):
        kept = kept_by(units, at_most)
        assert sorted(len({*rows} & {*kept}) for rows in people.values()) == sorted(
            min(len(rows), at_most) for rows in people.values()
        )
    assert seen(fastdp.per_person({"u": units}, "u"))[0] == [len(rows) for rows in people.values()]


@pytest.mark.parametrize("units", [[], [7], [7] * 1000, [None] * 5, [math.nan] * 5])
def test_few_persons(units):
    units = np.array(units, object if None in units else None)
    n = 0 if None in units.tolist() or (units != units).any() else len(units)
    kept = kept_by(units, 3)
    assert len(kept) == min(n, 3)
    persons = fastdp.per_person({"u": units, "x": np.ones(len(units))}, "u", sums={"x": (0, 5)})
    assert seen(persons) == [[n], [min(n, 5.0)]] if n else [[], []]
    rows = fastdp.limit_rows({"u": units, "x": np.ones(len(units))}, "u", at_most=3)
    budget = fastdp.Budget(epsilon=1.0, unit="u", **AR)
    assert abs(int(statistics.count(rows["x"], epsilon=0.5, budget=budget, **AR)) - len(kept)) < 300
    assert budget.spent.epsilon <= 0.5


FRAMES = ("pandas", "polars", "arrow", "parquet", "dask")


def as_frame(kind, columns, folder):
    if kind == "pandas":
        return pytest.importorskip("pandas").DataFrame(columns)
    if kind == "polars":
        return pytest.importorskip("polars").DataFrame(columns)
    if kind == "dask":
        pandas = pytest.importorskip("pandas")
        return pytest.importorskip("dask.dataframe").from_pandas(pandas.DataFrame(columns), npartitions=5, sort=False)
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table(columns)
    if kind == "arrow":
        return table
    parquet.write_table(table.slice(0, 130), folder / "1.parquet", row_group_size=37)
    parquet.write_table(table.slice(130), folder / "2.parquet", row_group_size=50)
    return [folder / "1.parquet", folder / "2.parquet"]


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("unit", ["number", "text"])
def test_the_same_bits_wherever_records_are(kind, unit, tmp_path):
    rng = np.random.default_rng(4)
    columns = {
        "number": rng.integers(0, 40, 300) * 10**9,
        "text": rng.choice(["ann", "bob", "eve", "\u00e9"], 300).astype(object),
        "x": rng.normal(size=300),
        "c": rng.integers(0, 3, 300),
    }
    frame = as_frame(kind, columns, tmp_path)
    held, there = (fastdp.limit_rows(each, unit, at_most=3, rng=Randomness(2)) for each in (columns, frame))
    assert seen(there) == seen(held)
    released = []
    for rows in (held, there):
        mean = statistics.mean(rows["x"], bounds=(-2, 2), epsilon=1.0, rng=Randomness(3), **AR)
        part = fastdp.partition(rows, "c", [2])[2]
        total = statistics.sum(part["x"], bounds=(-2, 2), epsilon=1.0, rng=Randomness(3), **AR)
        released.append((float(mean), float(total)))
    assert released[0] == released[1]
    both = [fastdp.per_person(each, unit, sums={"x": (-1, 1), "c": (0, 20)}) for each in (columns, frame)]
    assert seen(both[0]) == seen(both[1])
    assert sum(seen(both[0])[0]) == 300


def test_rows_pickle_with_whose_they_are():
    rows = fastdp.limit_rows({"u": [1, 1], "x": [2, 3]}, "u", at_most=1)
    assert pickle.loads(pickle.dumps(rows)).which == rows.which


# --- one record a person


@pytest.mark.parametrize("seed", range(5))
def test_sums_of_persons_are_those_of_the_oracle(seed):
    rng = np.random.default_rng(seed)
    units = rng.integers(0, 9, 60).tolist()
    values = np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60) * 3).tolist()
    people = fastdp.per_person({"u": units, "x": values, "i": rng.integers(-5, 9, 60)}, "u", sums={"x": (-4, 3.5)})
    wanted = sums_of_persons(units, values, -4, 3.5, 2.0**-27)
    assert [*zip(*seen(people), strict=True)] == [*wanted.values()]


def test_integers_of_persons_are_exact_at_the_ends():
    ends = np.array([2**63 - 1, 2**63 - 1, -(2**63), 5, -3])
    people = fastdp.per_person({"u": [1, 1, 1, 2, 2], "x": ends}, "u", sums={"x": (-10, 2**30)})
    assert seen(people)[1] == [2**30, 2]
    assert seen(fastdp.per_person({"u": [1, 1], "x": [True, True]}, "u", sums={"x": (0, 3)}))[1] == [2]


def test_a_person_is_one_record_however_many_rows_there_are():
    """Whoever adds all rows of a person adds one record, and moves no other."""
    rng = np.random.default_rng(8)
    for _ in range(100):
        units, values = rng.integers(0, 5, 12), rng.normal(size=12) * 100
        gone = units != rng.integers(0, 5)
        every = {"u": units, "x": values}, {"u": units[gone], "x": values[gone]}
        more, less = ([*zip(*seen(fastdp.per_person(each, "u", sums={"x": (0, 9)})), strict=True)] for each in every)
        firsts = [*dict.fromkeys(units.tolist())]
        missing = {*units.tolist()} - {*units[gone].tolist()}
        assert less == [record for person, record in zip(firsts, more, strict=True) if person not in missing]


@pytest.mark.parametrize(
    ("sums", "message"),
    [
        ({"x": (0, 0)}, "increasing order"),
        ({"x": (0,)}, "two numbers"),
        ({"x": (0, math.inf)}, "two numbers"),
        ({"z": (0, 1)}, "^sums: column='z': must be one of 'u', 'column 1', 'x', 't', 'rows'$"),
        ({"t": (0, 1)}, "must be numbers"),
        ({"x": (0, 1), 1: (0, 2)}, "different columns"),
        ({"rows": (0, 1)}, "different columns"),
        ([], "mapping"),
    ],
)
def test_sums_that_are_none(sums, message):
    data = {"u": [1], "column 1": [1.0], "x": [1.0], "t": np.array(["a"]), "rows": [2]}
    if 1 in sums:
        sums = {"column 1": (0, 1), 1: (0, 2)}
    with pytest.raises(ValueError, match=message):
        fastdp.per_person(data, "u", sums=sums)


@pytest.mark.parametrize("limited", [fastdp.per_person, partial(fastdp.limit_rows, at_most=1)])
def test_a_unit_that_is_no_column(limited):
    with pytest.raises(ValueError, match=r"^unit='person': must be one of 'u', 'x'$"):
        limited({"u": [1], "x": [2]}, unit="person")


# --- every function that reads records: on rows of persons as on records, at the price of a person


def of_persons(name, at_most):
    """A call on records, and the same on rows of persons that are these records."""
    function, arguments, options = CALLS[name](np.random.default_rng(7))
    bound = inspect.signature(function).bind(*arguments, **options)
    given = {each: bound.arguments[each] for each in ("X", "y", "data", "values") if each in bound.arguments}
    n = len(given["values"]) if "values" in given else len(given["X"]) if "X" in given else len(given["data"]["a"])
    frame, which = {"who": np.arange(n) // at_most}, {}
    for each, value in given.items():
        columns = value if isinstance(value, dict) else dict(enumerate(np.atleast_2d(np.asarray(value).T)))
        names = [column if isinstance(value, dict) else f"{each}{column}" for column in columns]
        for column, values in zip(names, columns.values(), strict=True):
            frame[column] = np.asarray(values)
        which[each] = names
    rows = fastdp.limit_rows(frame, "who", at_most=at_most)
    options = dict(bound.arguments) | AR
    options |= {"records": n} if "records" in inspect.signature(function).parameters else {}
    return function, options, {each: rows[names] for each, names in which.items()}


def share(epsilon, delta):
    """What a record may cost, if three of them may cost this together."""
    least = max(each for each in (epsilon / 3, np.nextafter(epsilon / 3, 0)) if 3 * Fraction(each) <= Fraction(epsilon))
    return {"epsilon": least} | ({"delta": delta / sum(math.exp(i * least) for i in range(3))} if delta else {})


@pytest.mark.parametrize("name", READERS)
def test_functions_read_rows_of_persons_at_the_price_of_a_person(name):
    """The same numbers as at what a record may cost; budgets state the person's price, at most what was asked."""
    function, options, rows = of_persons(name, 3)
    epsilon, delta = options["epsilon"], options.get("delta") or 0.0
    plain = fastdp.Budget(epsilon=60.0, delta=1e-3, **AR)
    budget = fastdp.Budget(epsilon=60.0, delta=1e-3, unit="who", **AR)
    try:
        wanted = run(function, options | share(epsilon, delta) | {"budget": plain})
    except ValueError:  # too small a share for the method
        with pytest.raises(ValueError, match="must"):
            run(function, options | rows | {"budget": budget})
        return
    found = run(function, options | rows | {"budget": budget})
    assert delta or found == wanted  # of a delta the last bit is rounded down
    assert budget.spent.unit == "who"
    for row, of_record in zip(budget.releases, plain.releases, strict=True):
        assert row.parameters["person"] == "who, at most 3 rows"
        assert row.guarantee.unit == "who"
        assert delta or row.guarantee == for_persons(of_record.guarantee, "who", at_most=3)
    assert budget.spent.implies(ApproxDP(epsilon, delta, neighbors=budget.neighbors))
    assert budget.spent.forms()[0].pure > 0.9 * epsilon
    with pytest.raises(ValueError, match="must be 'add-remove' for rows of persons"):
        function(**options | rows | {"neighbors": "replace-one"} | ({"records": None} if "records" in options else {}))


@pytest.mark.parametrize("name", READERS)
def test_results_state_what_they_guarantee_a_person(name):
    function, options, rows = of_persons(name, 2)
    budget = fastdp.Budget(epsilon=60.0, delta=1e-2, unit="who", **AR)
    try:
        found = function(**options | rows | {"budget": budget})
    except ValueError:
        pytest.skip("too small a share")
    for stated in (getattr(found, "guarantee", None), getattr(found, "guarantee_", None)):
        if stated is not None:
            assert stated.unit == "who"
            assert "of a person (who)" in str(stated)


@pytest.mark.parametrize("name", READERS)
def test_no_function_takes_a_relation_of_persons(name):
    """Which would be stated of what was made for records."""
    function, arguments, options = CALLS[name](np.random.default_rng(7))
    with pytest.raises(ValueError, match="neighbors="):
        function(*arguments, **options | {"neighbors": "add-remove of a person (u)"})
