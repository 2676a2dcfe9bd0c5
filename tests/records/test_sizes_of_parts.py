"""How many records a part has, or how many rows a person, is told by nothing but the noisy numbers of a release."""

import copy
import inspect
import pickle
import warnings

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, statistics
from fastdp.statistics import clamped
from tests.machinery.calls import CALLS
from tests.records.test_partition import AR, READERS

TWO = {"k": np.array(list("aababa")), "x": np.arange(6.0)}

ATTEMPTS = {
    "n": lambda part: part.n,
    "len": len,
    "shape": lambda part: part.shape,
    "size": lambda part: part.size,
    "list": list,
    "bool": bool,
    "slice": lambda part: part[:1],
    "array": np.asarray,
    "a block": lambda part: part.one_block(),
    "a sum": lambda part: part.total(lambda block: [block.n]),
    "a merge": lambda part: part.merge(lambda block: block.n, lambda a, b: a + b),
    "attributes": vars,
    "text": lambda part: (repr(part), str(part), f"{part}"),
    "names": lambda part: [name for name in dir(part) if name[0] != "_"],
    "copy": lambda part: repr(copy.copy(part)),
    "no column": lambda part: part["z"],
    "no position": lambda part: part[9],
    "no relation": lambda part: statistics.count(part["x"], epsilon=1.0),
    "an array of it": lambda part: fastdp.laplace(part, sensitivity=1, epsilon=1.0, **AR),
    "packed": lambda part: fastdp.pack(part),
    "its minimum": lambda part: fastdp.nonprivate_minimum(
        part, loss=fastdp.losses.SquaredDistance(), over=fastdp.sets.Ball(1)
    ),
}


def outcome(attempt, part):
    try:
        return attempt(part)
    except Exception as error:
        return type(error), str(error)


def of_sizes(kind):
    """Subsets of different sizes that are called the same."""
    for times in (0, 1, 300):
        columns = {name: np.tile(values, times) for name, values in TWO.items()}
        columns = {"k": np.append(columns["k"], "c"), "x": np.append(columns["x"], 0.0)}
        if kind == "part":
            yield fastdp.partition(columns, by="k", keys=["a", "b"])["a"]
        elif kind == "rows":
            yield fastdp.limit_rows(columns, unit="k", at_most=2)[["k", "x"]]
        else:
            yield fastdp.per_person({"k": columns["x"], "x": columns["x"]}, unit="k", sums={"x": (0, 9)})


@pytest.mark.parametrize("kind", ["part", "rows", "persons"])
@pytest.mark.parametrize("name", ATTEMPTS)
def test_nothing_reads_the_size_of_a_subset(name, kind):
    found = [outcome(ATTEMPTS[name], part) for part in of_sizes(kind)]
    assert found[0] == found[1] == found[2]


def test_a_pickle_is_a_subset_again():
    part = pickle.loads(pickle.dumps(next(of_sizes("part"))))
    assert repr(part) == "<part of a partition, k='a': 2 columns>"
    assert not hasattr(part, "n")


# --- results, rows of the budget, refusals

NOISY_SHAPES = {"statistics.count_by", "statistics.sum_by", "learn_conjunction"}  # which labels, which literals


def with_records(name, times):
    """A call on a part whose records are those of the example, so many times."""
    function, arguments, options = CALLS[name](np.random.default_rng(7))
    bound = inspect.signature(function).bind(*arguments, **options)
    given = {each: bound.arguments[each] for each in ("X", "y", "data", "values") if each in bound.arguments}
    tables = {
        each: value if isinstance(value, dict) else dict(enumerate(np.atleast_2d(np.asarray(value).T)))
        for each, value in given.items()
    }
    n = len(next(iter(next(iter(tables.values())).values())))
    frame, names = {"key": np.repeat([0, 1], [3, int(times * n)])}, {}
    for each, columns in tables.items():
        names[each] = [name if isinstance(given[each], dict) else f"{each}{name}" for name in columns]
        for name, values in zip(names[each], columns.values(), strict=True):
            values = np.asarray(values)
            frame[name] = np.append(np.repeat(values[:1], 3), np.resize(values, int(times * n)))
    part = fastdp.partition(frame, by="key", keys=[0, 1])[1]
    options = dict(bound.arguments) | AR | {each: part[columns] for each, columns in names.items()}
    return function, options | ({"records": n} if "records" in inspect.signature(function).parameters else {})


def public_numbers(name, times, seed):
    """What a call tells besides noise, where `seed` makes no difference: fields, shapes, rows, errors, reports."""
    function, options = with_records(name, times)
    takes, reports = inspect.signature(function).parameters, []
    if "rng" in takes:
        options["rng"] = Randomness(seed)
    if "progress" in takes:
        options["progress"] = lambda *told: reports.append(told)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with fastdp.Budget(epsilon=1e4, delta=0.5, **AR) as budget:
            result = outcome(lambda _: function(**options), None)
    found = {"rows": repr([(row.mechanism, row.parameters, row.guarantee) for row in budget.releases])}
    found |= {"progress": repr(reports), "warnings": repr(sorted(str(each.message) for each in warned))}
    if isinstance(result, tuple | np.ndarray):
        return found | {"result": result if isinstance(result, tuple) else result.shape}
    for attribute in [each for each in dir(result) if each[0] != "_"]:
        value = getattr(result, attribute)
        if isinstance(value, int | float | str | np.generic):
            found[attribute] = repr(value)
        found[f"{attribute}.shape"] = np.shape(value) if isinstance(value, np.ndarray) else type(value).__name__
    return found


def told_by(name):
    """What differs with the size of the part, of all that does not differ with the noise."""
    one, other = (public_numbers(name, 1, seed) for seed in (1, 2))
    fixed = {key for key, value in one.items() if other.get(key) == value}
    assert "rows" in fixed
    assert one["rows"] != "[]"
    sizes = [public_numbers(name, times, 3) for times in (0, 0.5, 2)]
    return {key for key in fixed for found in sizes if found.get(key) != one[key]}


@pytest.mark.parametrize("name", [name for name in READERS if name not in NOISY_SHAPES])
@pytest.mark.filterwarnings("ignore")
def test_no_release_on_a_part_tells_its_size(name):
    assert told_by(name) == set()


def test_a_size_that_is_public_is_found(monkeypatch):
    """The mutant takes a grid as fine as the number of records allows: the deviation that it states gives it away."""
    monkeypatch.setattr(clamped.ClampedColumn, "bits", lambda self, _: clamped.Bits(9 + self.n.bit_length(), 5))
    assert "deviation" in told_by("statistics.sum")
