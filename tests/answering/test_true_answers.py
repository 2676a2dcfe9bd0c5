"""Counts on the records and workloads (fastdp/answering/true_answers.py, workload.py, kernels/literals.py)."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from fastdp import Conjunction, Domain, Mask, Product, marginals
from fastdp.answering import true_answers as truth
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.factored_weights import FactoredWeights
from fastdp.answering.queries.query import bind
from fastdp.answering.true_answers import TrueAnswers
from fastdp.answering.workload import Workload
from fastdp.kernels.literals import count_all, pack_allowed_into
from tests.answering.plain_weights import chosen, some_domain, some_query


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, 100_003])
def test_literals_are_packed_and_counted(n: int) -> None:
    rng = np.random.default_rng(n)
    words = -(-n // 64)
    columns = np.full((5, words), 2**64 - 1, np.uint64)
    right = []
    for j, (size, dtype) in enumerate(
        [(2, np.uint8), (200, np.uint8), (300, np.uint16), (70_000, np.uint32), (1, np.uint8)]
    ):
        codes, table = rng.integers(0, size, n).astype(dtype), rng.random(size) < 0.7
        table[0] |= size == 1
        pack_allowed_into(codes, table.view(np.uint8), columns[j])
        bits = table[codes]
        right.append(bits)
        packed = np.packbits(np.pad(bits, (0, 64 * words - n)), bitorder="little").view("<u8")
        assert (columns[j] == packed).all()
    for some in ([0], [1, 2], [3, 0, 1], [0, 1, 2, 3, 4], [2, 2]):
        count = int(np.all([right[j] for j in some], axis=0).sum())
        assert count_all(columns, np.array(some)) == count


def records(rng: np.random.Generator, domain: Domain, n: int) -> np.ndarray:
    return np.stack([rng.integers(0, size, n) for size in domain.sizes], 1)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 5000])
def test_truth_is_the_count_both_ways(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n)
    domain = Domain(a=3, b=1, c=40, d=2, e=7)
    data = records(rng, domain, n)
    cells = np.ravel_multi_index(tuple(data.T), domain.sizes)
    by_cells = TrueAnswers(data, domain)
    monkeypatch.setattr(truth, "_FEW_CELLS", 0)
    monkeypatch.setattr(truth, "_PACKED_BYTES", 0)  # few packed columns are kept: the rest is made again
    packed = TrueAnswers(data, domain)
    assert by_cells.n == packed.n == n
    assert packed.histogram is None
    for _ in range(150):
        query = some_query(rng, domain)
        bound = bind(query, domain)
        right = int((np.rint(chosen(bound) * 2**16).astype(np.int64))[cells].sum())
        assert by_cells.count(bound) == packed.count(bound) == right
    assert packed.cells().tolist() == np.bincount(cells, minlength=domain.size).tolist()
    assert packed.count(bind(Product({}), domain)) == n << 16


def test_which_way_is_counted_depends_on_public_numbers() -> None:
    """Many records in few cells: a histogram. Few in many: bits, from which a histogram is made for many queries."""
    domain = Domain.binary(18)
    data = np.random.default_rng(1).random((2000, 18)) < 0.4
    assert TrueAnswers(data[:, :17], Domain.binary(17)).histogram is not None
    few = TrueAnswers(data, domain)
    assert few.histogram is None
    assert TrueAnswers(data, domain, n=10**7).histogram is not None, "the number that is given decides"
    assert [few.has_cells_for(k) for k in (1, 100, 1000)] == [False, False, True]
    assert not TrueAnswers(data, Domain(**dict.fromkeys(domain.names, 200)), "clip").has_cells_for(10**9)
    for n, where in ((2000, domain), (10**7, domain), (2000, Domain.binary(100))):
        assert TrueAnswers.bytes(n, where) >= (8 * where.size if n == 10**7 else n * (len(where) + 8))
    work, masks = marginals(domain, 2), [Mask(np.arange(2**18) % 7 == 0)]
    right = Workload(work, domain).counts(TrueAnswers(data, domain, n=10**7))
    assert (Workload(work, domain).counts(few) == right).all()
    assert few.count(bind(masks[0], domain)) == TrueAnswers(data, domain, n=10**7).count(bind(masks[0], domain))


def test_a_product_may_restrict_every_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few columns are kept: how many depends on the number of records, which is private under add-remove."""
    monkeypatch.setattr(truth, "_FEW_CELLS", 0)
    monkeypatch.setattr(truth, "_PACKED_BYTES", 0)
    domain = Domain.binary(9)
    data = np.random.default_rng(1).random((1000, 9)) < 0.9
    packed = TrueAnswers(data, domain)
    for value in (1, 0, 1):
        for k in (1, 4, 5, 9):
            bound = bind(Conjunction({f"v{i}": value for i in range(1, k + 1)}), domain)
            assert packed.count(bound) == int((data[:, :k] == value).all(1).sum()) << 16


def test_records_that_change_later_do_not_change_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(truth, "_FEW_CELLS", 0)
    column = np.zeros(100, np.uint8)
    domain = Domain(a=2, b=2)
    counted = TrueAnswers({"a": column, "b": column}, domain)
    column[:] = 200
    assert counted.count(bind(Conjunction({"a": 0, "b": 0}), domain)) == 100 << 16


@pytest.mark.parametrize("seed", range(12))
def test_a_workload_is_its_queries_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = some_domain(rng, 5000)
    data = records(rng, domain, 300)
    counted = TrueAnswers(data, domain)
    exact, blocks = DenseWeights(domain), FactoredWeights(domain)
    for _ in range(5):
        bound = bind(some_query(rng, domain, products=True), domain)
        exact.scale(bound, 0.8)
        blocks.scale(bound, 0.8)
    for queries in (
        [some_query(rng, domain) for _ in range(90)],
        [some_query(rng, domain) for _ in range(5)],
        [Mask(rng.random(domain.size) < 0.5) for _ in range(70)],
        marginals(domain, min(2, len(domain))),
        marginals(Domain(dict(zip(domain.names, domain.sizes, strict=True))), 1),
    ):
        work = Workload(queries, domain)
        bounds = [bind(query, domain) for query in queries]
        counts = work.counts(counted)
        assert counts.dtype == np.int64
        assert counts.tolist() == [counted.count(bound) for bound in bounds]
        right = np.array([exact.evaluate(bound) for bound in bounds])
        np.testing.assert_allclose(work.evaluate(exact), right, rtol=0, atol=1e-12)
        np.testing.assert_allclose(work.evaluate(blocks), right, rtol=0, atol=1e-12)
        for start, stop in ((0, 3), (2, len(work)), (len(work) - 1, len(work))):
            np.testing.assert_allclose(work.evaluate(exact, start, stop), right[start:stop], rtol=0, atol=1e-12)


def test_a_workload_on_packed_records(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    domain = Domain(a=3, b=4, c=2)
    data = records(rng, domain, 500)
    work = Workload(marginals(domain, 2), domain)
    right = work.counts(TrueAnswers(data, domain))
    monkeypatch.setattr(truth, "_FEW_CELLS", 0)
    assert (work.counts(TrueAnswers(data, domain)) == right).all()


def test_tables_too_large_to_make_are_walked_over() -> None:
    domain = Domain(a=200, b=100, c=2)
    rng = np.random.default_rng(2)
    queries = [Product({"a": rng.random(200) < 0.5, "b": rng.random(100) < 0.5}) for _ in range(35)]
    queries += [Product({"a": rng.random(200) < 0.5, "c": 1}) for _ in range(35)]
    weights = DenseWeights(domain)
    for query in queries[::7]:
        weights.scale(bind(query, domain), 0.3)
    work = Workload(queries, domain)
    right = [weights.evaluate(bind(query, domain)) for query in queries]
    np.testing.assert_allclose(work.evaluate(weights), right, rtol=0, atol=1e-12)
    assert len(work._cells.alone) == 35


def test_all_cells_one_by_one() -> None:
    domain = Domain(a=2, b=1, c=3)
    weights = DenseWeights(domain)
    weights.scale(bind(Conjunction({"a": 1, "c": 2}), domain), 1.0)
    for codes in product(*map(range, domain.sizes)):
        bound = bind(Conjunction(dict(zip(domain.names, codes, strict=True))), domain)
        right = math.e if codes == (1, 0, 2) else 1.0
        assert weights.evaluate(bound) == pytest.approx(right / (5 + math.e), abs=1e-15)
