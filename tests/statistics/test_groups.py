"""Labels that nobody listed: the exact law of what is released, the same bits from any order, oracles of the counts."""

from collections import Counter
from datetime import datetime
from itertools import product
from math import ceil, exp, log

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, statistics
from fastdp.records.sources import column_rows, rows_of
from fastdp.statistics import groups, label_tallies, thresholds
from fastdp.statistics.label_tallies import _counts_of, _of_block, label_rows, merged, tally_labels
from fastdp.statistics.noise import deviation_of
from fastdp.statistics.thresholds import group_threshold, label_threshold

RELATIONS = ("replace-one", "add-remove")
EPSILON, DELTA = 1.0, 0.01
WIDE = 60  # draws beyond have probabilities below 1e-12


# --- the law of the output, written down


OUTCOMES = np.arange(-WIDE, WIDE + 20)


def noisy(total, scale):
    """The probabilities of the outcomes."""
    q = exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** np.abs(OUTCOMES - total)


def shown_counts(count, scale, least):
    """The law of what is shown of one label, and last that it is not."""
    chances = np.where(least <= OUTCOMES, noisy(count, scale), 0.0) if count else np.zeros(OUTCOMES.size)
    return np.append(chances, 1 - chances.sum())


def shown_sums(records, most, scale, least):
    """The same of a group, for its integers."""
    both = np.outer(noisy(sum(records), scale), noisy(sum(most - q for q in records), scale))
    reached = np.add.outer(OUTCOMES, OUTCOMES) >= least
    chances = np.where(reached, both if records else 0.0, 0.0).ravel()
    return np.append(chances, 1 - chances.sum())


def losses(law, other):
    """The pairs of probabilities with the same ratio, added up."""
    there = (law > 1e-12) | (other > 1e-12)
    p, r = law[there], other[there]
    with np.errstate(divide="ignore"):
        _, kinds = np.unique(np.log(p).round(6) - np.log(r).round(6), return_inverse=True)
    return list(zip(np.bincount(kinds, p), np.bincount(kinds, r), strict=True))


def delta_of(laws, others, epsilon):
    """The least delta at epsilon between products of the laws of labels."""
    each = [losses(law, other) for law, other in zip(laws, others, strict=True)]
    return sum(
        max(0.0, np.prod([p for p, _ in chosen]) - exp(epsilon) * np.prod([r for _, r in chosen]))
        for chosen in product(*each)
    )


def tables(relation):
    """Neighbouring counts of two labels."""
    for a, b in product((0, 1, 2, 15), repeat=2):
        if relation == "add-remove":
            yield (a, b), (a + 1, b)
        elif a:
            yield (a, b), (a - 1, b + 1)


def worst_of_counts(scale, least, relation):
    law = {count: shown_counts(count, scale, least) for count in (0, 1, 2, 3, 14, 15, 16)}
    return max(
        delta_of([law[c] for c in one], [law[c] for c in other], EPSILON)
        for pair in tables(relation)
        for one, other in (pair, pair[::-1])
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_counts_of_neighbours(relation):
    """The law is (epsilon, delta)-DP, with nearly all of delta; with a threshold one lower it is not."""
    noise = groups._noise(1, EPSILON, relation)
    least = label_threshold(noise.plan.scale, DELTA)
    worst = worst_of_counts(noise.plan.scale, least, relation)
    q = exp(-1 / noise.plan.scale)
    assert q * DELTA < worst <= DELTA * (1 + 1e-6)
    assert worst_of_counts(noise.plan.scale, least - 1, relation) > DELTA


def test_mutants_of_counts():
    """The threshold of the continuous law; replacement at the scale of add-remove."""
    scale, delta = 1.0, 0.012
    continuous = 1 + ceil(scale * log(1 / (2 * delta)))
    assert worst_of_counts(scale, continuous, "add-remove") > delta
    assert worst_of_counts(scale, label_threshold(scale, delta), "add-remove") <= delta
    assert worst_of_counts(1.0, label_threshold(1.0, DELTA), "replace-one") > 10 * DELTA


def test_a_threshold_of_the_continuous_law_is_refuted(monkeypatch):
    """As patched code: the tail 1/2 e^(-k/scale) in place of q^k/(1 + q), which is larger."""
    scale, delta = 1.0, 0.012
    least = label_threshold(scale, delta)
    monkeypatch.setattr(thresholds, "_one_draw", lambda step, q, k: (step * k).exp() / 2)
    label_threshold.cache_clear()
    try:
        assert label_threshold(scale, delta) < least
        assert worst_of_counts(scale, label_threshold(scale, delta), "add-remove") > delta
    finally:
        label_threshold.cache_clear()


def neighbouring_groups(relation, most):
    """Records of two labels, as lists of integers."""
    few = [[], [0], [most], [0, most], [1, most, most]]
    for one in few:
        for q in range(most + 1):
            if relation == "add-remove":
                yield (one, []), ([*one, q], [])
                continue
            yield ([*one, q], []), (one, [0])
            yield ([*one, q], [1]), (one, [1, most])
            yield ([*one, q], []), ([*one, most - q], [])


def worst_of_sums(scale, least, relation, most):
    known = {}

    def law(records):
        key = (sum(records), len(records))
        return known.setdefault(key, shown_sums(records, most, scale, least))

    return max(
        delta_of([law(r) for r in one], [law(r) for r in other], EPSILON)
        for pair in neighbouring_groups(relation, most)
        for one, other in (pair, pair[::-1])
    )


@pytest.mark.parametrize("relation", RELATIONS)
def test_sums_of_neighbours(relation):
    most, delta = 2, 0.05
    noise = groups._noise(most, EPSILON, relation)
    least = group_threshold(noise.plan.scale, delta, most)
    assert worst_of_sums(noise.plan.scale, least, relation, most) <= delta * (1 + 1e-6)
    assert worst_of_sums(noise.plan.scale, least - 1, relation, most) > delta


def test_mutants_of_sums():
    """The threshold of one draw, and replacement at the scale of add-remove."""
    most, delta = 2, 0.05
    assert worst_of_sums(2.0, most + label_threshold(2.0, delta) - 1, "add-remove", most) > delta
    assert worst_of_sums(2.0, group_threshold(2.0, delta, most), "replace-one", most) > delta


@pytest.mark.parametrize("scale", [0.3, 1.0, 17.5])
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_thresholds_against_sums_of_the_law(scale, delta):
    q = exp(-1 / scale)
    far = ceil(40 * scale)
    one = {z: (1 - q) / (1 + q) * q ** abs(z) for z in range(-far, far + 1)}

    def least_of(law):
        tail, k = 0.0, max(law)
        while tail + law[k] <= delta:
            tail += law[k]
            k -= 1
        return k + 1

    assert label_threshold(scale, delta) == 1 + least_of(one)
    masses = np.array([one[z] for z in sorted(one)])
    two = dict(zip(range(-2 * far, 2 * far + 1), np.convolve(masses, masses), strict=True))
    assert group_threshold(scale, delta, 5) == 5 + least_of(two)


# --- what is released


def test_what_reaches_the_threshold_is_released(monkeypatch):
    monkeypatch.setattr(groups, "integer_noise", lambda plan, key, n: np.zeros(n, np.int64))
    for relation in RELATIONS:
        least = label_threshold(groups._noise(1, 0.5, relation).plan.scale, 1e-6)
        counts = {"c": least - 1, "a": least, "b": least + 5, "d": least}
        words = np.array(list(counts)).repeat(list(counts.values()))
        found = statistics.count_by(words, epsilon=0.5, delta=1e-6, neighbors=relation)
        assert found.to_dict() == {"b": least + 5, "a": least, "d": least}
        assert found.labels == ["b", "a", "d"]
        assert found.threshold == least
        numbers = np.ones(len(words))
        sums = statistics.sum_by(
            {"w": words, "x": numbers}, "x", "w", bounds=(0, 1), epsilon=0.5, delta=1e-6, neighbors=relation
        )
        most = 2**29
        scale = groups._noise(most, 0.5, relation).plan.scale
        assert sums.threshold == group_threshold(scale, 1e-6, most) / most
        assert sums.labels == [label for label in found.labels if counts[label] >= sums.threshold]
        assert sums.sums.tolist() == sums.counts.tolist() == [counts[label] for label in sums.labels]
        assert np.array_equal(sums.means, np.ones(len(sums)))
        assert found.deviation == deviation_of(groups._noise(1, 0.5, relation))


def test_counts_spread_as_the_noise_does():
    """20,000 labels: the sample deviation is 5 % off with a chance below 1e-6; the other relation's is 50 % off."""
    words = np.arange(20_000).repeat(60)
    for relation in RELATIONS:
        found = statistics.count_by(words, epsilon=1.0, delta=1e-6, neighbors=relation, rng=Randomness(3))
        assert len(found) > 19_900
        assert 0.95 < (found.counts - 60).std() / found.deviation < 1.05
        table = {"w": words, "x": np.full(len(words), 0.25)}
        sums = statistics.sum_by(
            table, "x", "w", bounds=(0, 1), epsilon=1.0, delta=1e-6, neighbors=relation, rng=Randomness(3)
        )
        assert len(sums) > 19_900
        assert 0.95 < (sums.sums - 15).std() / sums.deviation < 1.05
        assert 0.9 < (sums.counts - 60).std() / (2**0.5 * found.deviation) < 1.1


OBJECTS = [1, True, 1.0, "1", None, np.nan, 2**70, 0.5, b"1"]
COLUMNS = {
    "narrow": np.random.default_rng(1).integers(-50, 50, 3_000),
    "wide": np.random.default_rng(2).choice(np.random.default_rng(3).integers(-(2**63), 2**63 - 1, 40), 3_000),
    "unsigned": np.random.default_rng(4).choice(np.array([0, 1, 2**64 - 1, 2**63], np.uint64), 3_000),
    "small": np.random.default_rng(5).integers(-128, 128, 3_000).astype(np.int8),
    "flags": np.random.default_rng(6).integers(0, 2, 3_000).astype(bool),
    "floats": np.random.default_rng(7).choice([0.0, -0.0, 1.5, np.nan, np.inf, -np.inf, 5e-324], 3_000),
    "halves": np.random.default_rng(8).choice([0.5, -0.0, np.nan], 3_000).astype(np.float32),
    "dates": np.random.default_rng(9).choice(np.array(["2020-01-01", "NaT", "1969-05-05"], "M8[s]"), 3_000),
    "words": np.random.default_rng(10).choice(["a", "b", "\u00e9", ""], 3_000),
    "bytes": np.random.default_rng(11).choice([b"a", b"\xff"], 3_000),
    "objects": np.random.default_rng(12).choice(np.array(OBJECTS, object), 3_000),
}


def plain(value):
    """A label as Python has it; None for none."""
    if value is None or value != value:
        return None
    return int(value) if isinstance(value, bool | float) and float(value).is_integer() else value


def counted(*columns):
    return Counter(
        record for record in zip(*([plain(v) for v in c.tolist()] for c in columns), strict=True) if None not in record
    )


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("by_blocks", [False, True])
def test_tallies_are_those_of_python(name, by_blocks):
    column, other = COLUMNS[name], COLUMNS["words"]
    weights = np.arange(3_000) % 7
    for labels, extra in (([column], []), ([column, other], []), ([other, column], [weights])):
        rows, k = label_rows({str(j): c for j, c in enumerate([*labels, *extra])}, [str(j) for j in range(len(labels))])
        if extra:
            rows = rows_of({str(j): c for j, c in enumerate([*labels, *extra])})
        numbers = (lambda block: (block.entries(2).values, None)) if extra else None
        if by_blocks:
            step = 100
            pieces = [rows._block(first, step) for first in range(0, 3_000, step)]
            tally = merged([_of_block(block, k, numbers) for block in pieces])
        else:
            tally = tally_labels(rows, k, numbers)
        found = list(zip(*([plain(v) for v in c.tolist()] for c in tally.labels), strict=True))
        wanted = counted(*labels)
        assert dict(zip(found, tally.totals[0].tolist(), strict=True)) == wanted
        assert len(found) == len(wanted)
        if all(isinstance(value, type(found[0][0])) for value, *_ in found) and k == 1:
            assert found == sorted(found)
        if extra:
            sums = Counter()
            records = zip(*(map(plain, c.tolist()) for c in labels), strict=True)
            for record, weight in zip(records, weights, strict=True):
                sums[record] += int(weight)
            assert dict(zip(found, tally.totals[1].tolist(), strict=True)) == {key: sums[key] for key in wanted}


@pytest.mark.parametrize("name", COLUMNS)
def test_the_order_of_records_decides_nothing(name):
    column = COLUMNS[name]
    one, other = (
        statistics.count_by(c, epsilon=1.0, delta=1e-3, rng=Randomness(2))
        for c in (column, np.random.default_rng(0).permutation(column))
    )
    assert list(map(str, one.labels)) == list(map(str, other.labels))
    assert one.counts.tolist() == other.counts.tolist()


def test_what_labels_are_read_from(tmp_path):
    """The same bits from every library and layout."""
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    words = np.random.default_rng(3).choice(["ab", "c", "d", "rare"], 3_000, p=[0.5, 0.3, 0.199, 0.001])
    numbers = np.random.default_rng(4).normal(size=3_000)
    frame = pandas.DataFrame({"w": words, "x": numbers})
    path = tmp_path / "x.parquet"
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.table(frame), path, row_group_size=700)
    unused = frame.assign(w=pandas.Categorical(words, categories=["unused", "d", "rare", "c", "ab"]))
    given = [frame, unused, path, pyarrow.table(frame), {"w": list(words), "x": list(numbers)}]
    given += [pyarrow.table({"w": pyarrow.array(words).dictionary_encode(), "x": numbers})]
    if dask := pytest.importorskip("dask.dataframe"):
        given.append(dask.from_pandas(frame, npartitions=5))
    counts = {repr(statistics.count_by(g, "w", epsilon=0.5, delta=1e-4, rng=Randomness(5)).to_dict()) for g in given}
    assert len(counts) == 1
    assert "rare" not in next(iter(counts))
    sums = set()
    for each in given:
        found = statistics.sum_by(each, "x", "w", bounds=(-2, 2), epsilon=0.5, delta=1e-4, rng=Randomness(5))
        sums.add(repr((found.to_dict(), found.means.tolist(), found.counts.tolist())))
    assert len(sums) == 1
    assert len({repr(statistics.count_by(g, epsilon=0.5, delta=1e-4, rng=Randomness(5)).to_dict())
                for g in (words, list(words), frame["w"], unused["w"])}) == 1  # fmt: skip


def test_no_record_decides_a_type():
    """A list with one more float, or one other label, gives results of the same types."""
    for values in ([1, 2, 3], [1, 2, 2.5], [1, True, 2]):
        assert type(statistics.sum(values, bounds=(0, 6), epsilon=1.0).value) is float
        table = {"k": [7] * 60 + values, "x": [1] * 60 + values}
        found = statistics.sum_by(table, "x", "k", bounds=(0, 6), epsilon=1.0, delta=0.1)
        assert found.columns["k"].dtype == object
        assert statistics.count_by(table["k"], epsilon=1.0, delta=0.1).columns["label"].dtype == object


def test_missing_numbers():
    table = {"k": np.zeros(200, int), "x": np.where(np.arange(200) % 2, 1.0, np.nan)}
    options = {"bounds": (0, 1), "epsilon": 50.0, "delta": 1e-6}
    with pytest.raises(fastdp.DomainError, match="missing='skip'"):
        statistics.sum_by(table, "x", "k", **options)
    found = statistics.sum_by(table, "x", "k", missing="skip", **options)
    assert found.counts[0] == pytest.approx(100, abs=3)
    assert found.sums[0] == pytest.approx(100, abs=3)


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_labels_at_all(relation):
    for nothing in (np.zeros(0), np.full(5, np.nan), [], [None], np.zeros(0, object)):
        found = statistics.count_by(nothing, epsilon=1.0, delta=1e-6, neighbors=relation)
        assert found.labels == []
        assert "0 of label" in repr(found)
    empty = {"k": np.zeros(0), "x": np.zeros(0)}
    assert len(statistics.sum_by(empty, "x", "k", bounds=(0, 1), epsilon=1.0, delta=1e-6, neighbors=relation)) == 0


@pytest.mark.parametrize(
    ("by", "message"),
    [("z", "by"), (["k", "k"], "different"), ([], "by"), (3.5, "column=3.5: must be a name"), (["k", "z"], "by")],
)
def test_columns_that_are_none(by, message):
    with pytest.raises(ValueError, match=message):
        statistics.count_by({"k": np.zeros(3)}, by, epsilon=1.0, delta=1e-6)


def test_charges_and_frames():
    pytest.importorskip("pandas")
    with fastdp.Budget(epsilon=3.0, delta=1e-5) as budget:
        found = statistics.count_by({"a": ["x"] * 90, "b": [1] * 90}, ["a", "b"], epsilon=1.0, delta=1e-6)
        statistics.sum_by({"a": ["x"] * 90, "b": [1] * 90}, "b", "a", bounds=(0, 2), epsilon=1.0, delta=1e-6)
    assert [row.mechanism for row in budget.releases] == ["count_by", "sum_by"]
    assert found.to_frame().columns.tolist() == ["a", "b", "count"]
    assert found.labels == [("x", 1)]
    assert np.asarray(found).tolist() == found.to_frame()["count"].tolist() == list(found.to_dict().values())


def test_wide_integers_do_not_wrap():
    values = np.array([2**64 - 1] * 40 + [0] * 40, np.uint64)
    rows = column_rows("values", values)
    assert tally_labels(rows, 1).labels[0].tolist() == [0, 2**64 - 1]


@pytest.mark.parametrize("most", [2**20, 1], ids=["by a table", "sorted where they are many"])
@pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "float32", "M8[us]"])
@pytest.mark.parametrize("different", [3, 60_000])
def test_labels_far_apart_against_numpy(monkeypatch, most, dtype, different):
    monkeypatch.setattr(label_tallies, "_MOST_HASHED", most)
    rng = np.random.default_rng(different)
    some = rng.integers(-(2**62), 2**62, different)
    labels = some.astype(np.uint64) if dtype == "uint64" else some.astype(np.int64).astype(dtype)
    if dtype.startswith("float"):
        labels[:3] = 0.0, -np.inf, np.inf
    values = labels[rng.integers(0, different, 70_000)]
    shown = np.where(values == 0, -values, values) if dtype.startswith("float") else values  # zeros of either sign
    tally = tally_labels(*label_rows(shown, None))
    found, counts = np.unique(values, return_counts=True)
    assert tally.labels[0].dtype == found.dtype
    assert np.array_equal(tally.labels[0], found)
    assert tally.totals.tolist() == [counts.tolist()]
    pairs = tally_labels(*label_rows({"a": shown, "b": np.arange(70_000) % 2}, ["a", "b"]))
    keys, counts = np.unique(np.searchsorted(found, values) * 2 + np.arange(70_000) % 2, return_counts=True)
    assert np.array_equal(pairs.labels[0], found[keys // 2])
    assert np.array_equal(pairs.labels[1], keys % 2)
    assert pairs.totals.tolist() == [counts.tolist()]


def test_equal_objects_are_one_label_in_any_order():
    """What stands first decides nothing: an object that equals a label and is none is not counted with it."""

    class Sly(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            return str.__eq__(self, other)

    class Other:
        def __hash__(self):
            return hash("a")

        def __eq__(self, other):
            return other == "a"

    kinds = [1, True, 1.0, np.int8(1), "a", np.str_("a"), Sly("a"), Other(), None, float("nan"), b"a"]
    rng = np.random.default_rng(4)
    found = set()
    for _ in range(20):
        values = np.empty(50 * len(kinds), object)
        values[:] = [kinds[i] for i in rng.permutation(np.repeat(np.arange(len(kinds)), 50))]
        tally = tally_labels(*label_rows(values, None))
        found.add(repr((tally.labels[0].tolist(), tally.totals.tolist())))
    assert found == {repr(([1, b"a", "a"], [[200, 50, 150]]))}
    plain = np.array(["b", "a", None, "a", 2, 2.0], object)
    tally = tally_labels(*label_rows(plain, None))
    assert (tally.labels[0].tolist(), tally.totals.tolist()) == ([2, "a", "b"], [[2, 2, 1]])


def test_what_does_not_compare_is_not_shown_of_a_label() -> None:
    """The second of two equal hours, when clocks are turned back: one record in a thousand says so."""
    hour = datetime(2024, 10, 27, 2, 30)
    shown = [
        repr(statistics.count_by([*[hour] * 999, hour.replace(fold=fold)][::order], epsilon=1.0, delta=1e-6).labels)
        for fold in (0, 1)
        for order in (1, -1)
    ]
    assert len(set(shown)) == 1


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.int64])
def test_places_of_any_width_are_counted(dtype):
    """All of those that the type has, at most 2^16, and those below 0, which are of missing entries."""
    labels = min(np.iinfo(dtype).max + 1, 2**16)
    places = np.random.default_rng(4).integers(0 if dtype in (np.uint8, np.uint16) else -1, labels, 10**5).astype(dtype)
    places[:2] = labels - 1, 0
    for some in (places, places[::-3], places[:0]):
        assert (_counts_of(some, labels) == np.bincount(some[some >= 0], minlength=labels)).all()
