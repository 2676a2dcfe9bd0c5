"""The synthetic distribution (fastdp/answering/synthetic_distribution.py, kernels/sampling.py) against brute force."""

from __future__ import annotations

import pickle
import re
import sys
import tracemalloc
from collections.abc import Iterator
from itertools import product
from typing import Any

import numba
import numpy as np
import pytest

import fastdp
from fastdp import Conjunction, Domain, Linear, Mask, Predicate, Product, Randomness, Range, SyntheticDistribution
from fastdp.answering import synthetic_sampling as module
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.factored_weights import FactoredWeights
from fastdp.kernels.sampling import GROUP, build_aliases_into, search_records_into, sum_groups_into
from fastdp.records.encoding import histogram
from tests import laws, oracles

MIXED = Domain(a=3, b=["x", "y"], c=5, d=1, e=4)


def some_weights(domain: Domain, seed: int = 0, holes: float = 0.3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    weights = rng.random(domain.size) ** 4
    weights[rng.random(domain.size) < holes] = 0
    return weights


def factored(domain: Domain, seed: int = 0) -> FactoredWeights:
    """Two attributes tied together, three others tied together, the rest apart."""
    rng, weights = np.random.default_rng(seed), FactoredWeights(domain)
    for names in (("a", "c"), ("b", "e"), ("c",), ("d",)):
        for _ in range(3):
            allowed = {name: rng.random(domain.sizes[domain.position(name)]) < 0.5 for name in names}
            weights.scale(Product(allowed).bind(domain), float(rng.normal()))
    return weights


def joint(weights: Any) -> np.ndarray:
    """All probabilities of a product of blocks, cell by cell."""
    domain, out = weights.domain, []
    for cell in product(*map(range, domain.sizes)):
        value = 1.0
        for positions, block in weights.factors():
            at = tuple(cell[p] for p in positions)
            value *= block.reshape([domain.sizes[p] for p in positions])[at]
        out.append(value)
    return np.array(out)


def cases() -> Iterator[tuple[str, SyntheticDistribution, np.ndarray]]:
    """Each kind of distribution, and the probabilities of its cells."""
    weights = some_weights(MIXED)
    yield "array", SyntheticDistribution(weights, MIXED), weights / weights.sum()
    yield "shaped", SyntheticDistribution(weights.reshape(MIXED.sizes), MIXED), weights / weights.sum()
    dense = DenseWeights(MIXED)
    dense.scale(Product({"a": [0, 2], "c": 1}).bind(MIXED), 1.5)
    yield "dense", SyntheticDistribution(dense), dense.probabilities()
    one, two = factored(MIXED), factored(MIXED, 1)
    yield "factored", SyntheticDistribution(one), joint(one)
    yield "mixture", SyntheticDistribution([one, two, dense]), (joint(one) + joint(two) + dense.probabilities()) / 3
    float32 = DenseWeights(MIXED, "float32")
    yield "average", SyntheticDistribution([dense, float32]), (dense.probabilities() + 1 / MIXED.size) / 2


CASES = [pytest.param(made, right, id=name) for name, made, right in cases()]


@pytest.mark.parametrize(("made", "right"), CASES)
def test_answers(made: SyntheticDistribution, right: np.ndarray) -> None:
    cells = np.array(list(product(*map(range, MIXED.sizes))))
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2**16 + 1, MIXED.size) / 2**16
    even = numba.njit(lambda cell: cell % 2 == 0)
    queries = {
        Conjunction({"b": "y", "e": 3}): (cells[:, 1] == 1) & (cells[:, 4] == 3),
        Product({"a": [0, 1], "c": [4], "d": 0}): (cells[:, 0] < 2) & (cells[:, 2] == 4),
        Range("c", 1, 3): (cells[:, 2] >= 1) & (cells[:, 2] <= 3),
        Product({}): np.ones(MIXED.size),
        Product({"a": []}): np.zeros(MIXED.size),
        Mask(values < 0.5): values < 0.5,
        Linear(values): values,
        Predicate(even): np.arange(MIXED.size) % 2 == 0,
    }
    expected = [float(right @ value) for value in queries.values()]
    assert np.allclose([made.answer(query) for query in queries], expected, rtol=0, atol=1e-12)
    assert np.allclose(made.answer_many(queries), expected, rtol=0, atol=1e-12)
    assert np.allclose(made.probabilities(), right, rtol=0, atol=1e-14)
    assert made.answer_many([]).shape == (0,)


@pytest.mark.parametrize(("made", "right"), CASES)
def test_marginals(made: SyntheticDistribution, right: np.ndarray) -> None:
    cube = right.reshape(MIXED.sizes)
    assert np.allclose(made.marginal(["a", "c"]), cube.sum(axis=(1, 3, 4)), rtol=0, atol=1e-13)
    assert np.allclose(made.marginal(("e", "b", "a")), cube.sum(axis=(2, 3)).transpose(2, 1, 0), rtol=0, atol=1e-13)
    assert np.allclose(made.marginal("b"), cube.sum(axis=(0, 2, 3, 4)), rtol=0, atol=1e-13)
    assert np.allclose(made.marginal([]), 1.0)
    workload = fastdp.marginals(MIXED, 2)
    assert np.allclose(made.answer_many(workload), [made.answer(query) for query in workload], rtol=0, atol=1e-12)
    assert (made.answer_many(workload) >= 0).all()


# --- sampling


def test_an_alias_table_implies_its_distribution() -> None:
    rng = np.random.default_rng(5)
    for size in (1, 2, 3, 7, 64, 1000):
        for power in (0, 1, 30):
            weights = rng.random(size) ** power
            weights[rng.random(size) < 0.4] = 0
            weights[0] = 1.0
            right = weights / weights.sum()
            table = np.empty((size, 2), np.uint64)
            build_aliases_into(right * size, table)
            kept = table[:, 0] / 2.0**64
            implied = kept / size
            np.add.at(implied, table[:, 1].astype(np.int64), (1 - kept) / size)
            assert np.allclose(implied, right, rtol=0, atol=1e-14)
            assert (implied[right == 0] == 0).all()


@pytest.mark.parametrize(("made", "right"), CASES)
def test_records_follow_the_law(made: SyntheticDistribution, right: np.ndarray) -> None:
    """A right law is refused with probability 1e-9; another one must be."""
    by_code = Domain(dict(zip(MIXED.names, MIXED.sizes, strict=True)))
    counts = histogram(made.sample(400_000, Randomness(seed=11), codes=True), by_code)
    verdict = laws.check_cells(counts, right.tolist())
    assert verdict, str(verdict)
    assert (counts[right == 0] == 0).all()
    other = np.roll(right, 1)
    assert not laws.check_cells(counts, other.tolist())


def slowly(made: SyntheticDistribution, key: np.ndarray, n: int) -> list[list[int]]:
    """The same records, one by one, in Python's integers."""
    tables = module.AliasTables(made.domain, made._parts)
    count, records = len(tables.parts) - 1, []
    words = [oracles.words.stream_words(key.tobytes(), stream, 0, n).tolist() for stream in range(tables.streams)]
    searched = {(each.part, each.stream): each for each in tables.searched}
    for i in range(n):
        part = (words[0][i] >> 32) * count >> 32
        record = [-1] * len(made.domain)
        for b in range(tables.parts[part], tables.parts[part + 1]):
            at, size, first, last = tables.blocks[b].tolist()
            cell, rest = divmod(words[1 + b - tables.parts[part]][i] * size, 2**64)
            keep, other = tables.table[at + cell].tolist()
            cell = cell if rest < keep else other
            if each := searched.get((part, 1 + b - tables.parts[part])):
                ends, share = np.cumsum(each.x, dtype=np.float64), words[each.stream][i] / 2**64
                cell = int(np.searchsorted(ends, share * ends[-1], side="right"))
                for attribute, size in zip(each.attributes.tolist(), each.sizes.tolist(), strict=True):
                    cell, record[attribute] = divmod(cell, size)
            for a in range(first, last):
                cell, record[tables.attributes[a]] = divmod(cell, int(tables.sizes[a]))
        records.append(record)
    return records


@pytest.mark.parametrize("largest", [0, 2, 10])
def test_large_blocks_are_searched(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same law, whichever blocks are too large for an alias table."""
    monkeypatch.setattr(module, "SEARCHED", largest)
    by_code = Domain(dict(zip(MIXED.names, MIXED.sizes, strict=True)))
    for _, made, right in cases():
        sample = made.sample(100_000, Randomness(seed=12), codes=True)
        assert made._tables is not None
        assert made._tables.searched
        assert sample[:200].tolist() == slowly(made, Randomness(seed=12).key(), 200)
        assert (made.sample(200, Randomness(seed=12), codes=True) == sample[:200]).all()
        counts = histogram(sample, by_code)
        verdict = laws.check_cells(counts, right.tolist())
        assert verdict, str(verdict)
        assert (counts[right == 0] == 0).all()


def test_a_search_finds_cells_at_the_ends() -> None:
    x, out = np.zeros(3 * GROUP + 7), np.empty((1, 4), np.uint32)
    x[[5, GROUP + 1, 3 * GROUP + 3]] = 1.0, 0.1, 0.1
    words = np.array([0, 2**64 - 1, int(2**64 * 1.05 / 1.2), int(2**64 * 0.8)], np.uint64)
    ends = np.empty(4)
    sum_groups_into(x, ends)
    assert ends.tolist() == np.cumsum(x)[[GROUP - 1, 2 * GROUP - 1, 3 * GROUP - 1, -1]].tolist()
    where = np.zeros(1, np.int64), np.array([x.size])
    search_records_into(words, np.arange(4), x, ends, *where, out)
    assert out.tolist() == [[5, 3 * GROUP + 3, GROUP + 1, 5]]


def test_a_large_block_takes_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEARCHED", 1 << 16)
    for size in (1 << 18, 1 << 20):
        domain = Domain(a=size, b=2)
        weights = FactoredWeights(domain)
        weights.scale(Conjunction({"a": 3, "b": 1}).bind(domain), 2.0)
        made = SyntheticDistribution(weights)
        made.sample(2)
        made = SyntheticDistribution(weights)
        tracemalloc.start()
        try:
            made.sample(2)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 16 * size / 50


@pytest.mark.parametrize(("made", "right"), CASES)
def test_records_are_a_function_of_the_key(made: SyntheticDistribution, right: np.ndarray) -> None:
    few = made.sample(200, Randomness(seed=3), codes=True)
    assert few.tolist() == slowly(made, Randomness(seed=3).key(), 200)
    assert (made.sample(70_001, Randomness(seed=3), codes=True)[:200] == few).all()
    assert few.dtype == np.uint8
    assert few.shape == (200, 5)
    assert made.sample(0).shape == (0, 5)
    assert (made.sample(200) != made.sample(200)).any()


def test_the_same_records_for_any_number_of_threads() -> None:
    found, threads = [], fastdp.get_num_threads()
    try:
        for count in (1, 2, 3):
            fastdp.set_num_threads(count)
            for _, made, _ in cases():
                found.append(made.sample(100_000, Randomness(seed=4), codes=True).tobytes())
    finally:
        fastdp.set_num_threads(threads)
    assert found[: len(CASES)] * 3 == found


def test_codes_of_attributes_with_many_values() -> None:
    """The quotient by multiplication is exact up to the largest block."""
    for sizes in [(2, 3_000_017), (70_000, 41), (1 << 22,), (3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3)]:
        domain = Domain({f"v{i}": size for i, size in enumerate(sizes)})
        made = SyntheticDistribution(np.ones(domain.size), domain)
        sample = made.sample(100_000, Randomness(seed=1))
        assert sample.dtype == (np.uint32 if max(sizes) > 65536 else np.uint8)
        words = oracles.words.stream_words(Randomness(seed=1).key().tobytes(), 1, 0, 1000).tolist()
        expected = np.unravel_index([word * domain.size >> 64 for word in words], sizes)
        assert (sample[:1000] == np.stack(expected, axis=1)).all()


def test_a_hundred_attributes() -> None:
    domain = Domain.binary(100)
    weights = FactoredWeights(domain)
    weights.scale(Conjunction({"v1": 1, "v100": 1}).bind(domain), 2.0)
    made = SyntheticDistribution(weights, n=50_000)
    assert "1.27e+30 cells, 99 blocks, n=50,000" in repr(made)
    sample = made.sample(50_000, Randomness(seed=2))
    pairs = np.bincount(2 * sample[:, 0] + sample[:, 99], minlength=4)
    assert laws.check_cells(pairs, made.marginal(["v1", "v100"]).reshape(-1).tolist())
    assert abs(sample[:, 1:99].mean() - 0.5) < 0.01
    with pytest.raises(ValueError, match=r"domain: listing all cells would merge 100 attributes .* GiB"):
        made.probabilities()


# --- frames, showing, pickling, bad input


def test_a_frame_has_the_labels() -> None:
    domain = Domain(region=["north", "south"], size=3, code=[10, 20])
    made = SyntheticDistribution(some_weights(domain, holes=0), domain, n=40)
    frame = made.to_frame(rng=Randomness(seed=1))
    assert list(frame.columns) == ["region", "size", "code"]
    assert len(frame) == 40
    codes = made.sample(40, Randomness(seed=1), codes=True)
    assert frame["region"].tolist() == [["north", "south"][c] for c in codes[:, 0]]
    assert frame["size"].tolist() == codes[:, 1].tolist()
    assert frame["code"].tolist() == [[10, 20][c] for c in codes[:, 2]]
    assert (histogram(frame, domain).sum(), len(made.to_frame(7)), len(made.to_frame(0))) == (40, 7, 0)
    frame.loc[0, "size"] = 2  # its own memory


KINDS = {
    "codes": Domain(a=3, b=5),
    "integers in another order": Domain(x=[3, 2, 1, 0], z=2),
    "ages": Domain(age=range(18, 81), sex=2),
    "booleans": Domain(m=[True, False], k=[False, True]),
    "booleans and codes": Domain(m=[True, False], k=4),
    "strings": Domain(region=["north", "south", "east"], sex=["f", "m"]),
    "strings and codes": Domain(region=["2", "1", "0"], sex=2, x=[1, 0]),
    "floats": Domain(x=[0.5, -1.0, 2.0], y=3),
    "floats and long integers": Domain(x=[0.5, 1.5], y=[2**60 + 1, 2**60]),
    "integers beyond int64": Domain(x=[2**64, 1, 0], y=[1, 0]),
    "mixed": Domain(a=["x", 1, 0, 2.5, None], b=[(1, 0), (0, 1)]),
}


@pytest.mark.parametrize("domain", KINDS.values(), ids=KINDS)
def test_samples_are_read_back_as_what_they_are(domain: Domain) -> None:
    made = SyntheticDistribution(some_weights(domain, holes=0), domain)
    codes = made.sample(5000, Randomness(seed=1), codes=True)
    assert codes.dtype == np.uint8
    right = np.bincount(np.ravel_multi_index(codes.T, domain.sizes), minlength=domain.size)
    records = made.sample(5000, Randomness(seed=1))
    assert records.shape == (5000, len(domain))
    assert (histogram(records, domain) == right).all()
    assert (made.sample(200, Randomness(seed=1)) == records[:200]).all()
    assert made.sample(0).shape == (0, len(domain))
    if None not in (domain.labels[0] or ()):  # which pandas takes for a missing entry
        frame = made.to_frame(5000, Randomness(seed=1))
        assert (histogram(frame, domain) == right).all()
    released = fastdp.release_marginals(records, domain, [domain.names], epsilon=600.0, delta=1e-6, fit=None)
    assert np.allclose(released.tables[0].ravel(), right / 5000, atol=1e-4)


def test_samples_and_frames_have_plain_types() -> None:
    types = {name: SyntheticDistribution(np.ones(d.size), d).sample(3).dtype.kind for name, d in KINDS.items()}
    assert [name for name, kind in types.items() if kind == "O"] == [
        "strings", "strings and codes", "floats and long integers", "integers beyond int64", "mixed",
    ]  # fmt: skip
    assert (types["codes"], types["booleans"], types["ages"], types["floats"]) == ("u", "b", "i", "f")
    domain = Domain(region=["south", "north"], size=300, age=range(18, 81), member=[False, True], x=[0.5, 1.5])
    frame = SyntheticDistribution(np.ones(domain.size), domain).to_frame(10)
    assert [str(dtype) for dtype in frame.dtypes] == ["category", "int64", "int64", "bool", "float64"]
    assert list(frame["region"].cat.categories) == ["south", "north"]


def test_a_frame_needs_a_number_and_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SyntheticDistribution(np.ones(8), Domain.binary(3))
    with pytest.raises(ValueError, match=r"^n: must be given, as there is no public number of records"):
        made.to_frame()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"^to_frame needs pandas: pip install pandas; sample\(\)"):
        made.to_frame(3)


@pytest.mark.parametrize(("made", "right"), CASES)
def test_it_pickles_and_shows(made: SyntheticDistribution, right: np.ndarray) -> None:
    made.sample(3)
    again = pickle.loads(pickle.dumps(made))
    assert (again.sample(100, Randomness(seed=1)) == made.sample(100, Randomness(seed=1))).all()
    assert repr(again) == repr(made)
    assert re.match(r"SyntheticDistribution\(5 attributes, 120 cells", repr(made))
    page = made._repr_html_()
    assert page.count("<tr>") == 6
    assert "<table>" in page


def test_what_is_public_is_shown() -> None:
    made = SyntheticDistribution(np.ones(2), Domain({"<b>": 2}), guarantee=fastdp.PureDP(0.5), n=1234)
    assert repr(made) == "SyntheticDistribution(1 attributes, 2 cells, n=1,234, 0.5-DP, replace-one)"
    assert made.guarantee == fastdp.PureDP(0.5)
    assert "&lt;b&gt;" in made._repr_html_()


def test_weights_that_go_on_do_not_change_it() -> None:
    for weights in (DenseWeights(MIXED), FactoredWeights(MIXED)):
        made = SyntheticDistribution(weights)
        query = Conjunction({"a": 1})
        weights.scale(query.bind(MIXED), 3.0)
        assert made.answer(query) == pytest.approx(1 / 3)


def test_bad_input() -> None:
    domain = Domain(a=2, b=3)
    for weights in (np.ones(5), np.ones((3, 2)), np.ones(())):
        with pytest.raises(ValueError, match=r"^weights: shape .*: must be \(6,\), or \(2, 3\)"):
            SyntheticDistribution(weights, domain)
    for bad in (np.zeros(6), np.full(6, np.nan), np.array([1, 1, 1, 1, 1, -1.0]), np.array([1, 1, 1, 1, 1, np.inf])):
        with pytest.raises(ValueError, match=r"^weights: must be >= 0 and finite, not all 0"):
            SyntheticDistribution(bad, domain)
    with pytest.raises(ValueError, match=r"^domain: must be given with an array"):
        SyntheticDistribution(np.ones(6))
    with pytest.raises(ValueError, match=r"^domain: must be that of the weights"):
        SyntheticDistribution(DenseWeights(MIXED), domain)
    with pytest.raises(ValueError, match=r"^weights: must all be on the same domain"):
        SyntheticDistribution([DenseWeights(MIXED), DenseWeights(domain)])
    made = SyntheticDistribution(np.ones(6), domain)
    with pytest.raises(ValueError, match=r"^attribute='c': must be one of 'a', 'b'"):
        made.marginal(["c"])
    with pytest.raises(ValueError, match="must not repeat"):
        made.marginal(["a", "a"])
    with pytest.raises(ValueError, match=r"^queries: must be marginals of the domain"):
        made.answer_many(fastdp.marginals(MIXED, 1))
    with pytest.raises(ValueError, match=r"^query: type int: must be a query"):
        made.answer(3)
    for n in (-1, 2.5, True, None):
        with pytest.raises(ValueError, match=r"^n="):
            made.sample(n)
    with pytest.raises(ValueError, match=r"^rng="):
        made.sample(3, rng=np.random.default_rng(1))


class Given:
    """Weights of somebody's own."""

    def __init__(self, domain, **shares):
        self.domain = domain
        for name, value in shares.items():
            setattr(self, name, lambda value=value: value)


GIVEN = Domain(a=3, b=2)
WRONG = {
    "few": {"probabilities": np.ones(5)},
    "none": {"probabilities": np.empty(0)},
    "below 0": {"probabilities": -np.ones(6)},
    "NaN": {"probabilities": np.full(6, np.nan)},
    "all 0": {"probabilities": np.zeros(6)},
    "a short block": {"factors": [((0,), np.ones(2)), ((1,), np.ones(2))]},
    "a block too few": {"factors": [((0,), np.ones(3))]},
    "an attribute twice": {"factors": [((0,), np.ones(3)), ((0, 1), np.ones(6))]},
    "in another order": {"factors": [((1, 0), np.ones(6))]},
    "from behind": {"factors": [((0,), np.ones(3)), ((-1,), np.ones(2))]},
}


@pytest.mark.parametrize("kind", WRONG)
def test_weights_of_somebodys_own_are_checked(kind):
    """Kernels read as many cells as the domain has: the memory behind a short array would be in the answers."""
    with pytest.raises(ValueError, match=r"^weights: "):
        SyntheticDistribution(Given(GIVEN, **WRONG[kind]))


def test_weights_of_somebodys_own_are_copied():
    shares = np.arange(6.0)
    for given in ({"probabilities": shares}, {"factors": [((0, 1), shares)]}):
        shares[:] = np.arange(6.0)
        made = SyntheticDistribution(Given(GIVEN, **given))
        shares[:] = -1e9
        assert made.probabilities().tolist() == (np.arange(6.0) / 15).tolist()
    with pytest.raises(ValueError, match=r"^domain: type int"):
        SyntheticDistribution(Given(7, probabilities=np.ones(7)))
