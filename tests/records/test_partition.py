"""Parts of records: what they hold, what they cost, and that nothing treats their number of records as public."""

import datetime
import inspect
import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, statistics
from fastdp.privacy.ledger import Charge, Sums
from fastdp.records import Subset
from fastdp.records.subsets import held
from tests.machinery.calls import CALLS

AR = {"neighbors": "add-remove"}
SOME = {"k": np.array(["a", "b", None, "a", "c", "b", "a"], object), "x": np.arange(7)}


def seen(part):
    """All records of a part, in order."""
    rows = held(part)
    columns = range(rows.width)
    parts = rows.merge(lambda block: [[block.entries(j).values.tolist() for j in columns]], lambda a, b: a + b)
    return [[entry for part in parts for entry in part[j]] for j in columns]


def test_parts_hold_the_records_of_their_keys():
    parts = fastdp.partition(SOME, by="k", keys=["a", "b", None, "z"])
    assert list(parts) == ["a", "b", None, "z"]
    assert seen(parts["a"]) == [["a"] * 3, [0, 3, 6]]
    assert seen(parts["b"]["x"]) == [[1, 5]]
    assert seen(parts[None]["x"]) == [[2]]
    assert seen(parts["z"]["x"]) == [[]]
    assert seen(parts["a"][["x", "k"]]) == [[0, 3, 6], ["a"] * 3]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i8", "u8", "f4", "f8", "O", "U"])
def test_keys_of_every_type(dtype):
    values = np.array([3, 1, 2, 3, 100, 1, 3]).astype(dtype)
    keys = np.array([1, 3, 7]).astype(dtype).tolist()
    parts = fastdp.partition({"k": values, "x": np.arange(7)}, by="k", keys=keys)
    assert [seen(parts[key]["x"]) for key in keys] == [[[1, 5]], [[0, 3, 6]], [[]]]


def test_integer_keys_at_the_ends():
    values = np.array([-(2**63), 2**63 - 1, 0])
    for keys in ([-(2**63), 0], [2**63 - 1], [2**63, 0], [2**70]):
        parts = fastdp.partition({"k": values, "x": np.arange(3)}, by="k", keys=keys)
        for key in keys:
            assert seen(parts[key]["x"]) == [np.flatnonzero(values.astype(object) == key).tolist()]


def test_missing_entries_have_the_key_none():
    pandas = pytest.importorskip("pandas")
    for values in (
        [1.0, np.nan, 2.0],
        pandas.Series([1, None, 2], dtype="Int64"),
        pandas.Categorical(["u", None, "v"]),
    ):
        parts = fastdp.partition({"k": values, "x": np.arange(3)}, by="k", keys=[None])
        assert seen(parts[None]["x"]) == [[1]]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([], "at least one"),
        (["a", "a"], "must not repeat"),
        ([1, 1.0], "must not repeat"),
        ([None, np.nan], "must not repeat"),
        ([[]], "must have a hash"),
        (3, "keys"),
    ],
)
def test_keys_that_are_none(keys, message):
    with pytest.raises(ValueError, match=message):
        fastdp.partition(SOME, by="k", keys=keys)


def test_names_that_are_none_of_the_columns_or_keys():
    wide = {f"c{j}": np.arange(4) for j in range(13)}
    with pytest.raises(ValueError, match=r"^by='k': must be one of 'c0', .*, 'c11', \.\.\.$"):
        fastdp.partition(wide, by="k", keys=[1])
    with pytest.raises(ValueError, match=r"^by=13: must be a name, or a position from 0 to 12$"):
        fastdp.partition(wide, by=13, keys=[1])
    parts = fastdp.partition(wide, by="c0", keys=[1, 2])
    assert 3 not in parts
    assert parts.get(3) is None
    with pytest.raises(KeyError, match="key=3: must be one of the keys that have a part"):
        parts[3]


def test_a_part_tells_nobody_how_many_records_it_has():
    part = fastdp.partition(SOME, by="k", keys=["a"])["a"]
    assert "3" not in repr(part)
    assert "7" not in repr(part)


# --- every function that reads records: the same on a part as on its records; and refused where n would be public

RECORDS = ("X", "data", "values")
# which take arrays that somebody has computed: numbers, predictions
NO_RECORDS = {"laplace", "gaussian", "learn_from_class", "partition"}
READERS = [
    name
    for name, make in CALLS.items()
    if "." not in name.removeprefix("statistics.") and name not in NO_RECORDS
    for function in (make(np.random.default_rng(1))[0],)
    if "neighbors" in inspect.signature(function).parameters
    and any(each in inspect.signature(function).parameters for each in RECORDS)
]


def test_all_readers_are_here():
    assert {"median", "mwem", "private_erm", "learn_tree", "release_ranges", "vector_sum", "synthesize"} <= {*READERS}
    assert len(READERS) >= 20


def with_part(name, path=None):
    """A call on records, and the same on a part that holds them among others."""
    function, arguments, options = CALLS[name](np.random.default_rng(7))
    bound = inspect.signature(function).bind(*arguments, **options)
    given = {each: bound.arguments[each] for each in ("X", "y", "data", "values") if each in bound.arguments}
    n = len(given["values"]) if "values" in given else len(given["X"]) if "X" in given else len(given["data"]["a"])
    inside = np.sort(np.random.default_rng(3).permutation(2 * n)[:n])
    frame, which = {"key": np.where(np.isin(np.arange(2 * n), inside), "in", "out")}, {}
    for each, value in given.items():
        columns = value if isinstance(value, dict) else dict(enumerate(np.atleast_2d(np.asarray(value).T)))
        names = [column if isinstance(value, dict) else f"{each}{column}" for column in columns]
        for column, values in zip(names, columns.values(), strict=True):
            frame[column] = np.repeat(np.asarray(values)[:1], 2 * n)
            frame[column][inside] = values
        which[each] = names
    if path is not None:  # several blocks, of which the first has no record of the part
        pyarrow = pytest.importorskip("pyarrow.parquet")
        import pyarrow as arrow

        table = arrow.table(frame)
        others = table.filter(arrow.compute.equal(table["key"], "out"))
        pieces = [others.slice(0, 5), *(table.slice(first, 7) for first in range(0, 2 * n, 7))]
        frame = [path / f"{i}.parquet" for i in range(len(pieces))]
        for file, piece in zip(frame, pieces, strict=True):
            pyarrow.write_table(piece, file)
    part = fastdp.partition(frame, by="key", keys=["out", "in"])["in"]
    options = dict(bound.arguments) | AR
    options |= {"records": n} if "records" in inspect.signature(function).parameters else {}
    return function, options, {each: part[names] for each, names in which.items()}


def run(function, options):
    options = options | ({"rng": Randomness(5)} if "rng" in inspect.signature(function).parameters else {})
    return told(function(**options))


def told(found):
    for attribute in ("w", "value", "tables", "counts", "literals", "intervals", "text"):
        if hasattr(found, attribute):
            return repr(getattr(found, attribute))
    return repr(found) if isinstance(found, int | float | np.ndarray | np.generic) else type(found).__name__


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore")
def test_functions_read_parts_as_records(name):
    function, options, parts = with_part(name)
    with fastdp.Budget(epsilon=60.0, delta=1e-3, **AR) as plain:
        wanted = run(function, options)
    with fastdp.Budget(epsilon=60.0, delta=1e-3, **AR) as budget:
        assert run(function, options | parts) == wanted
    assert [row.guarantee for row in budget.releases] == [row.guarantee for row in plain.releases]
    assert all(row.parameters["part"] == "key='in'" for row in budget.releases)
    with pytest.raises(ValueError, match="must be 'add-remove' for a part"):
        function(**options | parts | {"neighbors": "replace-one"} | ({"records": None} if "records" in options else {}))


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore")
def test_parts_of_files_are_the_same(name, tmp_path):
    function, options, _ = with_part(name)
    _, _, parts = with_part(name, tmp_path)
    assert run(function, options | parts) == run(function, options)


def test_what_is_not_for_a_part_refuses_it():
    part = fastdp.partition(SOME, by="k", keys=["a"])["a"]["x"]
    for call in (
        lambda: fastdp.pack(part),
        lambda: fastdp.laplace(part, sensitivity=1.0, epsilon=1.0),
        lambda: fastdp.nonprivate_minimum(part, loss=fastdp.losses.SquaredDistance(), over=fastdp.sets.Ball(1)),
        lambda: fastdp.sklearn.PrivateMedian(epsilon=1.0).fit(part),
    ):
        with pytest.raises(ValueError, match="must be"):
            call()


def test_two_parts_are_not_one():
    parts = fastdp.partition({"k": ["a", "b"], "x": [0.5, 0.1], "y": [1.0, 0.0]}, by="k", keys=["a", "b"])
    loss, ball = fastdp.losses.SquaredError(x_norm=1, y_bound=1), fastdp.sets.Ball(1)
    with pytest.raises(ValueError, match="y: "):
        fastdp.private_erm(
            parts["a"]["x"], parts["b"]["y"], loss=loss, over=ball, epsilon=1.0, delta=1e-6, records=1, **AR
        )


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_no_error_on_labels_tells_how_many_records_a_part_has(n):
    """An array of labels would be refused by its shape, and not by that of one length."""
    columns = {"k": ["a", "b", "a"], "x": [0.5, 0.1, 0.2], "z": [1.0, 0.0, 1.0]}
    part = fastdp.partition(columns, by="k", keys=["a"])["a"]
    options = {"epsilon": 1.0, "delta": 1e-6, **AR}
    loss, ball = fastdp.losses.SquaredError(x_norm=1, y_bound=1), fastdp.sets.Ball(1)
    for call in (
        lambda y: fastdp.private_erm(part["x"], y, loss=loss, over=ball, records=2, **options),
        lambda y: fastdp.noisy_projected_gradient_descent(part["x"], y, loss=loss, over=ball, records=2, **options),
        lambda y: fastdp.learn_from_class(part["x"], y, epsilon=1.0, records=2, **AR),
        lambda y: fastdp.learn_tree(part["x"], y, records=2, epsilon=1.0, **AR),
    ):
        for y in (np.ones(n), [1] * n):
            with pytest.raises(ValueError, match=r"y: type .*: must be a column of the same part as X, or its name"):
                call(y)


# --- what parts cost


def spent_of(charges, theorem, neighbors, total=None):
    """The budget's account of releases [(path, epsilon)], by hand: the largest sum over the records that differ."""
    found = Fraction(0)
    tree = {}
    for path, price in charges:
        tree.setdefault(path, Fraction(0))
        tree[path] += price

    def at(prefix):
        own = tree.get(prefix, Fraction(0))
        below = {}
        for path in tree:
            if len(path) > len(prefix) and path[: len(prefix)] == prefix:
                number, key = path[len(prefix)]
                below.setdefault(number, set()).add(key)
        return own + sum(max(at((*prefix, (number, key))) for key in keys) for number, keys in below.items())

    return found + at(())


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_the_largest_over_parts(seed):
    """Random charges on nested parts of two partitions, against the tree by hand; in any order, counts included."""
    rng = np.random.default_rng(seed)
    sums, charges = Sums(("epsilon", "delta")), []
    for _ in range(30):
        path = tuple((f"p{rng.integers(2)}{depth}", f"k{rng.integers(3)}") for depth in range(rng.integers(3)))
        epsilon, times = float(rng.choice([0.1, 0.25, 0.3])), int(rng.integers(1, 3))
        sums = sums.plus(Charge(fastdp.PureDP(epsilon), part=path), times)
        charges.append((path, times * Fraction(str(epsilon))))
        assert Fraction(str(sums.total("epsilon"))) == pytest.approx(spent_of(charges, "basic", None), abs=1e-12)
        assert sums.within("epsilon", sums.total("epsilon"))


def test_enumeration_of_a_budget_on_parts():
    """Releases on parts of two partitions and on all records: the worst log-ratio of any two neighbours.

    A release costs two neighbours its epsilon if what it reads differs, as randomised response on the parity of some
    bit does. The budget's account bounds the sum over all neighbours of both relations; add-remove ones attain it.
    """
    releases = [(("group", 0), 0.3), (("group", 0), 0.2), (("group", 1), 0.4), (("sex", 1), 0.25), ((), 0.1)]

    def losses(one, other):
        """By how much, at most, the laws of all outputs together differ."""
        return sum(epsilon for part, epsilon in releases if in_part(one, part) != in_part(other, part))

    def in_part(records, part):
        return tuple(sorted(r for r in records if not part or r[0 if part[0] == "group" else 1] == part[1]))

    domain = [(group, sex, bit) for group in (0, 1) for sex in (0, 1) for bit in (0, 1)]
    worst = {"add-remove": 0.0, "replace-one": 0.0}
    for a in domain:
        worst["add-remove"] = max(worst["add-remove"], losses((a,), ()))
        for b in domain:
            worst["replace-one"] = max(worst["replace-one"], losses((a,), (b,)))
    spent = {}
    for relation in worst:
        budget = fastdp.Budget(epsilon=9.0, neighbors=relation)
        records = {"group": [0, 0, 1], "sex": [0, 1, 1], "x": [1.0, 2.0, 3.0]}
        parts = {name: fastdp.partition(records, by=name, keys=[0, 1]) for name in ("group", "sex")}
        for part, epsilon in releases:
            if part:
                statistics.count(parts[part[0]][part[1]]["x"], epsilon=epsilon, budget=budget, **AR)
            else:
                statistics.count(records["x"], epsilon=epsilon, budget=budget, neighbors=relation)
        spent[relation] = budget.spent.epsilon
    assert spent["add-remove"] == pytest.approx(worst["add-remove"]) == pytest.approx(0.5 + 0.25 + 0.1)
    assert spent["replace-one"] == pytest.approx(2 * 0.5 + 2 * 0.25 + 0.1)
    assert spent["replace-one"] >= worst["replace-one"]


def test_a_move_between_parts_costs_two_of_them():
    """The mutant that charges a replacement as an addition is caught: both parts of a move are paid for."""
    budget = fastdp.Budget(epsilon=1.0)
    parts = fastdp.partition(SOME, by="k", keys=["a", "b"])
    for key in "ab":
        statistics.count(parts[key]["x"], epsilon=0.25, budget=budget, **AR)
    assert budget.spent.epsilon == 0.5
    with pytest.raises(fastdp.BudgetExceeded):
        statistics.count(parts["a"]["x"], epsilon=0.3, budget=budget, **AR)


@pytest.mark.parametrize("theorem", ["basic", "zcdp", "gaussian", "best"])
def test_disjoint_parts_cost_what_one_does(theorem):
    parts = fastdp.partition(SOME, by="k", keys=["a", "b", "c"])
    budget = fastdp.Budget(epsilon=4.0, delta=1e-6, theorem=theorem, **AR)
    alone = fastdp.Budget(epsilon=4.0, delta=1e-6, theorem=theorem, **AR)
    for key, part in parts.items():
        statistics.count(part["x"], epsilon=0.25, budget=budget, **AR)
        if key == "a":
            statistics.count(part["x"], epsilon=0.25, budget=alone, **AR)
    assert budget.spent == alone.spent
    assert len(budget.releases) == 3
    again = fastdp.partition(SOME, by="k", keys=["b"])  # whose parts are not known to be those
    statistics.count(again["b"]["x"], epsilon=0.25, budget=budget, **AR)
    assert budget.spent != alone.spent


def test_a_refused_release_is_returned():
    budget = fastdp.Budget(epsilon=1.0, **AR)
    parts = fastdp.partition({"k": [1, 1], "x": [1.0, np.nan]}, by="k", keys=[1])
    with pytest.raises(fastdp.DomainError):
        statistics.mean(parts[1]["x"], bounds=(0, 1), epsilon=0.5, budget=budget, **AR)
    assert budget.spent.epsilon == 0


def test_declared_releases_are_of_all_records():
    budget = fastdp.Budget(epsilon=1.0, declared=[fastdp.PureDP(0.25, **AR)], **AR)
    part = fastdp.partition(SOME, by="k", keys=["a"])["a"]
    statistics.count(part["x"], epsilon=0.25, budget=budget, **AR)
    assert len(budget.still_open) == 1
    assert budget.left.epsilon == 0.5


def test_stored_budgets_remember_parts(tmp_path):
    url = f"sqlite:///{tmp_path}/b.db"
    parts = fastdp.partition(SOME, by="k", keys=["a", "b"])
    for key in "ab":
        statistics.count(parts[key]["x"], epsilon=0.25, budget=fastdp.Budget.open(url, epsilon=1.0, **AR), **AR)
    opened = fastdp.Budget.open(url)
    assert opened.spent.epsilon == 0.25
    assert [row.parameters["part"] for row in opened.releases] == ["k='a'", "k='b'"]
    assert json.dumps(opened.releases[0].parameters["part"])


def test_what_is_paid_later_is_paid_by_the_part():
    """Epochs of multiplicative weights begin in other calls than that which read the records."""
    rng = np.random.default_rng(0)
    table = {"k": rng.integers(2, size=20_000), "a": rng.integers(4, size=20_000), "b": (np.arange(20_000) > 3000) * 1}
    domain = fastdp.Domain(a=4, b=2)
    parts = fastdp.partition(table, by="k", keys=[0, 1])
    budget = fastdp.Budget(epsilon=2.0, delta=1e-5, theorem="zcdp", **AR)
    for part in parts.values():
        pmw = fastdp.PrivateMultiplicativeWeights(
            part[["a", "b"]], domain, epsilon=1.0, delta=1e-6, max_queries=50, variant="measured", budget=budget, **AR
        )
        for b in (0, 1):
            pmw.answer(fastdp.Conjunction({"b": b}))
    assert {row.parameters["part"] for row in budget.releases} == {"k=0", "k=1"}
    half = fastdp.Budget(epsilon=2.0, delta=1e-5, theorem="zcdp", **AR)
    for row in budget.releases:
        if row.parameters["part"] == "k=0":
            half.charge(row.guarantee, "again")
    assert budget.spent.epsilon < 1.5 * half.spent.epsilon


def test_parts_of_parts():
    parts = fastdp.partition({"k": ["a", "a", "b"], "j": [1, 2, 1], "x": [5, 6, 7]}, by="k", keys=["a"])
    inner = fastdp.partition(parts["a"], by="j", keys=[1, 2])
    assert seen(inner[2]["x"]) == [[6]]
    budget = fastdp.Budget(epsilon=1.0, **AR)
    for part in inner.values():
        statistics.count(part["x"], epsilon=0.5, budget=budget, **AR)
    assert budget.spent.epsilon == 0.5
    assert isinstance(inner[1], Subset)


def test_rows_pickle_with_their_part():
    part = fastdp.partition(SOME, by="k", keys=["a"])["a"]
    assert pickle.loads(pickle.dumps(part)).which == part.which


@pytest.mark.parametrize(
    "keys",
    [
        [datetime.date(2024, 1, day) for day in (1, 2, 3)],
        ["x" * 99 + end for end in "abc"],
        [Fraction(10**80, 3), Fraction(10**80 + 1, 3)],
    ],
)
def test_keys_that_are_shown_alike_are_parts_of_their_own(keys):
    """A path that is the text of its key alone would add up what is released on different keys."""
    parts = fastdp.partition({"k": np.array([*keys, *keys], object), "x": np.arange(2 * len(keys))}, "k", keys)
    assert len({part.which for part in parts.values()}) == len(keys)
    budget = fastdp.Budget(epsilon=1.0, **AR)
    for part in parts.values():
        statistics.count(part["x"], epsilon=0.5, budget=budget, **AR)
    assert budget.spent.epsilon == 0.5


@pytest.mark.parametrize("part", [[["a", "k"]], 3])
def test_no_parameter_of_a_stored_charge_is_taken_for_a_part(part, tmp_path):
    budget = fastdp.Budget.open(f"sqlite:///{tmp_path}/b.db", epsilon=1.0, **AR)
    for _ in range(3):
        with pytest.raises(ValueError, match="parameters: '@part': must be another name"):
            budget.charge(fastdp.PureDP(0.5, **AR), "mine", parameters={"@part": part})
    assert budget.spent.epsilon == 0
    budget.charge(fastdp.PureDP(0.5, **AR), "mine", parameters={"part": part})
    assert fastdp.Budget.open(f"sqlite:///{tmp_path}/b.db").spent.epsilon == 0.5


# --- what a callback does is not the call's


def with_callback(function):
    """Medians of two parts, in which a callback runs once each; what a budget was charged."""
    rng = np.random.default_rng(0)
    parts = fastdp.partition({"k": np.arange(400) % 2, "x": rng.random(400)}, by="k", keys=[0, 1])
    budget = fastdp.Budget(epsilon=9.0, **AR)
    done = set()
    for key, part in parts.items():

        def progress(*_, key=key):
            if key not in done:
                done.add(key)
                function(budget)

        fastdp.quantiles(part["x"], [0.25, 0.5], epsilon=0.25, budget=budget, progress=progress, **AR)
    assert done == {0, 1}
    return budget


@pytest.mark.parametrize(
    "release",
    [
        lambda budget: fastdp.laplace(400, sensitivity=1.0, epsilon=0.5, budget=budget, **AR),
        lambda budget: fastdp.AboveThreshold(1.0, sensitivity=1.0, epsilon=0.5, budget=budget, **AR),
        lambda budget: statistics.count(np.arange(400), epsilon=0.5, budget=budget, **AR),
    ],
)
def test_releases_of_callbacks_are_not_on_the_part(release):
    """The mutant that charges the part for whatever is released while a call reads it is caught."""
    budget = with_callback(release)
    mine = [row for row in budget.releases if row.mechanism == "quantiles"]
    others = [row for row in budget.releases if row.mechanism != "quantiles"]
    assert len(others) == 2
    assert all("part" in row.parameters for row in mine)
    assert not any("part" in row.parameters for row in others)
    assert budget.spent.epsilon == pytest.approx(0.25 + 0.5 * len(others))


def test_callbacks_read_no_part_because_the_call_may():
    part = fastdp.partition(SOME, by="k", keys=["a"])["a"]["x"]

    def refused(_):
        with pytest.raises(ValueError, match="must be 'add-remove' for a part"):
            fastdp.pack(part)

    with_callback(refused)
