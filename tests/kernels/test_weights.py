"""Weights of the synthetic distribution, dense and by blocks, and counts on the records, against plain numpy.

fastdp/answering/dense_weights.py, factored.py, plans.py, truth.py, workload.py; kernels/weights.py, subcubes.py,
literals.py.
"""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Conjunction, Domain, Linear, Mask, Product, Range, SyntheticDistribution, marginals
from fastdp.answering import memory
from fastdp.answering import true_answers as truth
from fastdp.answering.dense_weights import LARGEST, DenseWeights
from fastdp.answering.factored_weights import FactoredWeights
from fastdp.answering.queries.bound_query import BoundCells, BoundProduct, BoundQuery
from fastdp.answering.queries.query import bind
from fastdp.answering.queries.walks import Pattern, Runs
from fastdp.answering.true_answers import TrueAnswers
from fastdp.answering.workload import Workload
from fastdp.kernels.literals import count_all, pack_allowed_into
from fastdp.support import machine


def chosen(bound: BoundQuery) -> np.ndarray:
    """The value of a query in every cell."""
    if isinstance(bound, BoundCells):
        return bound.values.astype(np.float64)
    tables = dict(bound.allowed)
    cube = np.zeros(bound.domain.sizes)
    cube[np.ix_(*(tables.get(p, np.ones(size, bool)) for p, size in enumerate(bound.domain.sizes)))] = 1.0
    return cube.ravel()


class Plain:
    """The oracle: the logarithm of every weight, and nothing clever."""

    def __init__(self, domain: Domain) -> None:
        self.logs = np.zeros(domain.size, np.longdouble)

    def scale(self, bound: BoundQuery, rate: float) -> None:
        self.logs += np.longdouble(rate) * chosen(bound)

    def probabilities(self) -> np.ndarray:
        weights = np.exp(self.logs - self.logs.max())
        return (weights / weights.sum()).astype(np.float64)

    def evaluate(self, bound: BoundQuery) -> float:
        return float(self.probabilities() @ chosen(bound))


def some_product(rng: np.random.Generator, domain: Domain) -> Product:
    names = rng.permutation(domain.names)[: int(rng.integers(0, min(len(domain), 4) + 1))]
    allowed: dict[str, Any] = {}
    for name in names:
        size = domain.sizes[domain.position(name)]
        match int(rng.integers(4)):
            case 0:
                allowed[name] = int(rng.integers(size))
            case 1:
                allowed[name] = rng.random(size) < 0.6
            case 2:
                low = int(rng.integers(size))
                allowed[name] = list(range(low, int(rng.integers(low, size)) + 1))
            case _:
                allowed[name] = [] if rng.random() < 0.1 else [int(rng.integers(size)), 0]
    return Product(allowed)


def some_query(rng: np.random.Generator, domain: Domain, products: bool = False) -> Any:
    kind = int(rng.integers(3 if products else 5))
    if kind == 0:
        return some_product(rng, domain)
    if kind == 1:
        names = rng.permutation(domain.names)[: int(rng.integers(1, min(len(domain), 4) + 1))]
        return Conjunction({str(name): int(rng.integers(domain.sizes[domain.position(name)])) for name in names})
    if kind == 2:
        name = str(rng.choice(domain.names))
        low, high = sorted(rng.integers(domain.sizes[domain.position(name)], size=2).tolist())
        return Range(name, low, high)
    if kind == 3:
        return Mask(rng.random(domain.size) < rng.random())
    return Linear(rng.random(domain.size) * rng.random())


def some_domain(rng: np.random.Generator, most: int) -> Domain:
    if rng.random() < 0.4:
        return Domain.binary(int(rng.integers(1, int(math.log2(most)) + 1)))
    sizes = rng.choice([1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17, 40, 100], int(rng.integers(1, 8))).tolist()
    while math.prod(sizes) > most:
        sizes.pop()
    return Domain({f"a{j}": int(size) for j, size in enumerate(sizes)})


# --- evaluations and updates


@pytest.mark.parametrize("seed", range(60))
def test_dense_factored_and_plain_weights_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = some_domain(rng, 3000)
    plain, exact, blocks = Plain(domain), DenseWeights(domain), FactoredWeights(domain)
    rough, rough_blocks = DenseWeights(domain, "float32"), FactoredWeights(domain, "float32")
    for step in range(40):
        # products alone for a while, so that there are blocks; of one sign in a third of the runs
        bound = bind(some_query(rng, domain, products=step < 25), domain)
        rate = float(rng.normal()) if seed % 3 else -float(rng.random())
        for weights, tolerance in ((exact, 1e-9), (blocks, 1e-9), (rough, 1e-4), (rough_blocks, 1e-4)):
            assert weights.evaluate(bound) == pytest.approx(plain.evaluate(bound), rel=0, abs=tolerance)
            weights.scale(bound, rate)
        plain.scale(bound, rate)
    right = plain.probabilities()
    np.testing.assert_allclose(exact.probabilities(), right, rtol=1e-9, atol=0)
    np.testing.assert_allclose(rough.probabilities(), right, rtol=1e-3, atol=1e-7)
    together = np.ones(1)
    for _, part in sorted(blocks.factors()):
        together = np.multiply.outer(together, part).ravel()
    if len(blocks.blocks) == 1:
        np.testing.assert_allclose(together, right, rtol=1e-9, atol=0)


@pytest.mark.parametrize("seed", range(10))
def test_larger_domains(seed: int) -> None:
    """Outer lists, patterns and long runs: the rooms of kernels/subcubes.py that small domains never enter."""
    rng = np.random.default_rng(100 + seed)
    domain = Domain.binary(17) if seed % 2 else Domain(a=3, b=17, c=1, d=40, e=5, f=2, g=9)
    plain, exact, rough = Plain(domain), DenseWeights(domain), DenseWeights(domain, "float32")
    for _ in range(12):
        bound, rate = bind(some_query(rng, domain), domain), float(rng.normal())
        assert exact.evaluate(bound) == pytest.approx(plain.evaluate(bound), rel=0, abs=1e-9)
        assert rough.evaluate(bound) == pytest.approx(plain.evaluate(bound), rel=0, abs=1e-4)
        for weights in (plain, exact, rough):
            weights.scale(bound, rate)
    np.testing.assert_allclose(exact.probabilities(), plain.probabilities(), rtol=1e-9, atol=0)
    assert exact.total == pytest.approx(exact.weights.sum(), rel=1e-12)


def test_blocks_multiply_to_the_distribution() -> None:
    domain = Domain(a=3, b=2, c=4, d=2, e=1, f=5)
    plain, blocks = Plain(domain), FactoredWeights(domain)
    for query, rate in (
        (Conjunction({"a": 1, "f": 2}), 0.7),
        (Product({"c": [0, 3]}), -1.2),
        (Range("f", 1, 3), 0.4),
        (Conjunction({"d": 1, "c": 2}), 0.9),
        (Product({}), 3.0),
    ):
        plain.scale(bind(query, domain), rate)
        blocks.scale(bind(query, domain), rate)
    assert blocks.blocks == (("a", "f"), ("b",), ("c", "d"), ("e",))
    cube = np.ones(domain.sizes)
    for positions, part in blocks.factors():
        cube = cube * part.reshape([size if p in positions else 1 for p, size in enumerate(domain.sizes)])
    np.testing.assert_allclose(cube.ravel(), plain.probabilities(), rtol=1e-12)
    before = blocks.copy()
    query = bind(Conjunction({"a": 0, "b": 1}), domain)
    kept = before.evaluate(query)
    blocks.scale(query, 2.0)
    assert blocks.blocks == (("a", "b", "f"), ("c", "d"), ("e",))
    assert before.blocks == (("a", "f"), ("b",), ("c", "d"), ("e",))
    assert before.evaluate(query) == kept


def test_a_query_of_all_cells_merges_all_blocks() -> None:
    domain = Domain(a=3, b=2, c=4)
    plain, blocks, exact = Plain(domain), FactoredWeights(domain), DenseWeights(domain)
    mask = bind(Mask(np.arange(24) % 3 == 0), domain)
    for weights in (plain, blocks, exact):
        weights.scale(bind(Conjunction({"a": 1}), domain), 1.0)
        weights.scale(mask, -0.5)
    assert blocks.blocks == (("a", "b", "c"),)
    np.testing.assert_allclose(blocks.factors()[0][1], plain.probabilities(), rtol=1e-12)
    np.testing.assert_allclose(exact.probabilities(), plain.probabilities(), rtol=1e-12)


def test_a_hundred_attributes() -> None:
    domain = Domain.binary(100)
    blocks = FactoredWeights(domain)
    assert blocks.evaluate(bind(Conjunction({f"v{i}": 1 for i in range(1, 101)}), domain)) == 2.0**-100
    for i in range(1, 100, 3):
        blocks.scale(
            bind(Conjunction({f"v{i}": 1, f"v{i + 1}": 1, f"v{i + 2}": 0} if i < 99 else {f"v{i}": 1}), domain), 1.0
        )
    share = math.e / (math.e + 7)
    assert blocks.evaluate(bind(Conjunction({"v1": 1, "v2": 1, "v3": 0}), domain)) == pytest.approx(share, abs=1e-12)
    both = Conjunction({"v1": 1, "v2": 1, "v3": 0, "v4": 1, "v5": 1, "v6": 0})
    assert blocks.evaluate(bind(both, domain)) == pytest.approx(share**2, abs=1e-12)
    assert max(len(block) for block in blocks.blocks) == 3


def test_copies_stay_as_they_were() -> None:
    domain = Domain(a=4, b=3)
    bound = bind(Product({"a": [0, 1], "b": 2}), domain)
    for weights in (DenseWeights(domain), FactoredWeights(domain)):
        for _ in range(2):
            twin = weights.copy()
            before = twin.evaluate(bound)
            weights.scale(bound, 10.0)
            assert twin.evaluate(bound) == before < weights.evaluate(bound)


def test_averages_are_added_up() -> None:
    domain = Domain(a=4, b=3)
    out = np.full(12, 0.5)
    for precision, tolerance in (("float64", 1e-15), ("float32", 1e-7)):
        weights = DenseWeights(domain, precision)  # type: ignore[arg-type]
        weights.scale(bind(Conjunction({"a": 1}), domain), 1.0)
        before = out.copy()
        weights.add_into(out, 0.25)
        np.testing.assert_allclose(out, before + 0.25 * weights.probabilities(), atol=tolerance)


# --- which cells a plan walks over


def cells_of_plan(plan: Runs | Pattern) -> np.ndarray:
    if isinstance(plan, Pattern):
        return (plan.outer[:, None] + np.flatnonzero(plan.marks)).ravel()
    return (plan.outer[:, None, None] + plan.inner[:, None] + np.arange(plan.length)).ravel()


def check_plan(bound: BoundProduct) -> Runs | Pattern:
    sizes, tables = bound.domain.sizes, dict(bound.allowed)
    axes = [np.flatnonzero(tables.get(p, np.ones(size, bool))) for p, size in enumerate(sizes)]
    numbers = np.arange(bound.domain.size).reshape(sizes)[np.ix_(*axes)].ravel()
    plan = bound.plan
    walked = cells_of_plan(plan)
    assert walked.size == bound.cells == numbers.size
    assert (np.sort(walked) == numbers).all()
    counts = np.random.default_rng(1).integers(0, 2**50, bound.domain.size)
    assert bound.count(counts) >> 16 == int(counts[numbers].sum())
    return plan


@pytest.mark.parametrize("seed", range(150))
def test_plans_cover_the_right_cells_once(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = some_domain(rng, 200_000)
    for _ in range(4):
        bound = bind(some_product(rng, domain), domain)
        assert isinstance(bound, BoundProduct)
        check_plan(bound)


def test_every_kind_of_plan() -> None:
    domain = Domain.binary(18)
    few: Any = {  # bit 0 is the last attribute
        (15, 16, 17): (Runs, 2**15),
        (5, 11, 17): (Runs, 32),
        (0, 1, 2): (Pattern, None),
        (0, 2, 4, 6, 8, 10): (Runs, 1),
        (): (Runs, 2**18),
    }
    for bits, (kind, length) in few.items():
        bound = bind(Conjunction({f"v{18 - bit}": 1 for bit in bits}), domain)
        assert isinstance(bound, BoundProduct)
        plan = check_plan(bound)
        assert isinstance(plan, kind)
        assert length is None or (isinstance(plan, Runs) and plan.length == length)
    every_other = bind(Product({"v18": 0, "v1": 1}), domain)
    assert isinstance(every_other, BoundProduct)
    check_plan(every_other)
    wide = Domain(a=3, b=5000, c=3)
    for allowed in ({"b": np.arange(5000) % 2 == 0}, {"b": range(10, 4000), "c": 1}, {"a": 2, "c": [0, 2]}):
        bound = bind(Product(allowed), wide)
        assert isinstance(bound, BoundProduct)
        check_plan(bound)


# --- many updates


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_a_hundred_thousand_updates_do_not_underflow(precision: Any) -> None:
    """Up by e^12500 and down again, by steps that floats hold exactly: back where it was to the last digit."""
    domain = Domain(a=4, b=2)
    up, other = bind(Product({"a": [0, 1], "b": 1}), domain), bind(Conjunction({"b": 0}), domain)
    for weights in (DenseWeights(domain, precision), FactoredWeights(domain, precision)):
        for rate in (0.25, -0.25):
            for _ in range(50_000):
                weights.scale(up, rate)
            if rate > 0:
                assert weights.evaluate(up) == 1.0
                assert weights.evaluate(other) < 1e-300
        assert weights.evaluate(up) == pytest.approx(0.25, abs=1e-9 if precision == "float64" else 1e-6)
        weights.scale(up, 1.0)
        assert weights.evaluate(up) == pytest.approx(
            math.e / (math.e + 3), abs=1e-9 if precision == "float64" else 1e-6
        )


def test_logarithms_are_kept_where_weights_cannot_show_them() -> None:
    domain = Domain(a=3, b=4, c=2)
    rng = np.random.default_rng(5)
    plain, exact, blocks = Plain(domain), DenseWeights(domain), FactoredWeights(domain)
    low = bind(Conjunction({"a": 0}), domain)
    kept = exact.copy()
    for step in range(900):
        bound, rate = bind(some_query(rng, domain), domain), float(rng.normal())
        if step % 2:
            bound, rate = low, -3.0  # to e^-1350
        for weights in (plain, exact, blocks):
            weights.scale(bound, rate)
        if step % 10 == 0:
            for asked in (bound, low, bind(some_query(rng, domain), domain)):
                right = plain.evaluate(asked)
                for weights in (exact, blocks):
                    assert weights.evaluate(asked) == pytest.approx(right, rel=0, abs=1e-9)
        if step == 800:
            kept = exact.copy()
            before = exact.logarithms().copy()
    assert exact.in_logs
    assert exact.bytes == 2 * 8 * domain.size
    assert (kept.logarithms() == before).all(), "a copy has logarithms of its own"
    for _ in range(500):
        for weights in (plain, exact, blocks):
            weights.scale(low, 2.7)
    np.testing.assert_allclose(exact.probabilities(), plain.probabilities(), rtol=0, atol=1e-9)
    assert 0.1 < blocks.evaluate(low) == pytest.approx(plain.evaluate(low), abs=1e-9)


@pytest.mark.parametrize("rate", [-0.5, 0.5, -3.0, 3.0])
def test_the_total_is_that_of_the_weights_also_when_it_falls(rate: float) -> None:
    """Each half down in turn: the total falls by e^-1 every time, and what is left must not be rounding errors."""
    domain = Domain.binary(4)
    halves = [bind(Conjunction({"v1": 1, **more}), domain) for more in ({"v2": 0}, {"v2": 1})]
    halves.append(bind(Conjunction({"v1": 0}), domain))
    for mask in (None, bind(Mask(np.arange(16) < 8), domain)):
        weights = DenseWeights(domain)
        for _ in range(60):
            for half in halves if mask is None else [*halves, mask]:
                if weights.span > 590:
                    break
                weights.scale(half, rate)
                assert weights.total == pytest.approx(float(weights.weights.sum()), rel=1e-12, abs=0)
        assert not weights.in_logs


def test_weights_are_rescaled_before_they_leave_the_range() -> None:
    domain = Domain(a=2, b=3)
    for sign in (1, -1):
        weights, plain = DenseWeights(domain), Plain(domain)
        for _ in range(250):
            for query in (Conjunction({"a": 0}), Conjunction({"a": 1, "b": 1}), Product({"b": [0, 2]})):
                for each in (weights, plain):
                    each.scale(bind(query, domain), sign * 0.75)
        assert not weights.in_logs
        assert 1e-35 < weights.total < 1e35
        np.testing.assert_allclose(weights.probabilities(), plain.probabilities(), rtol=1e-9)


@pytest.mark.parametrize(("precision", "steps"), [("float64", 1000), ("float32", 100)])
@pytest.mark.parametrize("rate", [0.5, 3.0])
def test_merged_blocks_do_not_underflow(precision: Any, steps: int, rate: float) -> None:
    """Blocks that can show their own weights but not the product; and blocks that are kept as logarithms."""
    domain = Domain(a=2, b=2, c=3)
    plain, blocks = Plain(domain), FactoredWeights(domain, precision)
    low = bind(Conjunction({"a": 0, "b": 0}), domain)

    def scale(query: Any, by: float) -> None:
        for weights in (plain, blocks):
            weights.scale(bind(query, domain), by)

    for name in ("a", "b"):
        for _ in range(steps):
            scale(Conjunction({name: 1}), rate)
    assert blocks.evaluate(low) == pytest.approx(0.0, abs=1e-40)
    for _ in range(2 * steps):
        scale(Conjunction({"a": 0, "b": 0}), rate)
    scale(Conjunction({"a": 0, "b": 0}), 0.5)
    assert ("a", "b") in blocks.blocks
    tolerance = 1e-9 if precision == "float64" else 1e-4
    assert blocks.evaluate(low) == pytest.approx(plain.evaluate(low), abs=tolerance)
    assert blocks.evaluate(low) == pytest.approx(1 / (1 + math.exp(-0.5)), abs=tolerance)
    scale(Conjunction({"c": 1}), 1.0)
    scale(Conjunction({"b": 0, "c": 1}), 1.0)
    assert blocks.blocks == (("a", "b", "c"),)
    for asked in (Conjunction({"a": 0, "c": 1}), Conjunction({"b": 1}), Range("c", 0, 1)):
        assert blocks.evaluate(bind(asked, domain)) == pytest.approx(plain.evaluate(bind(asked, domain)), abs=tolerance)


# --- memory


def test_blocks_that_would_not_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "usable_memory", lambda: 2**20 + 2**11)  # the others take 84 * 16 bytes
    domain = Domain.binary(100)
    blocks = FactoredWeights(domain)
    fits = bind(Conjunction({f"v{i}": 1 for i in range(1, 17)}), domain)
    blocks.check(fits)
    blocks.scale(fits, 0.1)  # 2^16 cells and a copy: 1 MiB
    before = blocks.blocks
    too_large = bind(Conjunction({"v16": 1, "v20": 1}), domain)
    message = (
        r"^domain: an update by this query would merge the blocks of 'v16' with 15 more \('v1', 'v2', 'v3', \.\.\.\); "
        r"'v20' into 131,072 cells, which take 1 MiB: twice that, and the 1.30 KiB of other weights, must fit into "
        r"1.00 MiB, half of the memory$"
    )
    for attempt in (lambda: blocks.check(too_large), lambda: blocks.scale(too_large, 0.1)):
        with pytest.raises(ValueError, match=message):
            attempt()
    assert blocks.blocks == before
    assert blocks.evaluate(too_large) == pytest.approx(0.25, abs=1e-5), "asking needs no memory"
    monkeypatch.setattr(memory, "usable_memory", lambda: 100)
    three = bind(Conjunction({"v3": 1, "v1": 0, "v2": 1}), domain)
    with pytest.raises(ValueError, match=r"^domain: an update .* merge the blocks of 'v1'; 'v2'; 'v3' into 8 cells"):
        FactoredWeights(domain).scale(three, 1.0)


@pytest.mark.parametrize("logs", ["never", "later", "in the block that is merged"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_an_update_takes_the_memory_that_it_says(precision: Any, logs: str) -> None:
    domain, block = Domain.binary(40), (8 if precision == "float64" else 4) << 18
    half = bind(Conjunction({f"v{i}": 1 for i in range(1, 18)}), domain)
    whole = bind(Conjunction({"v1": 1, "v18": 1}), domain)
    large = 0.7 * LARGEST[precision]
    rates = {"never": (0.1, 0.1), "later": (0.1, large), "in the block that is merged": (2 * large, 0.1)}[logs]
    for _ in range(2):  # the first run compiles
        weights = FactoredWeights(domain, precision)
        tracemalloc.start()
        try:
            weights.scale(half, rates[0])
            for _ in range(3):
                weights.scale(whole, rates[1])
            peak = tracemalloc.get_traced_memory()[1]
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            seen = SyntheticDistribution(weights)
            seen.answer(Conjunction({"v2": 1, "v30": 1}))
            seen.marginal(["v2", "v30"])
            assert "blocks" in repr(seen)
            asking = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
    said = 2 * (block + (8 << 18)) if logs.startswith("in") else (2 if precision == "float64" else 3) * block
    assert block < peak < 1.03 * said, peak / block
    assert weights._blocks[tuple(range(18))].in_logs == (logs != "never")
    assert asking < (0.1 if precision == "float64" else 2.1) * block, "a distribution copies no block of float64"


def test_the_memory_of_a_control_group_counts(tmp_path: Path) -> None:
    groups, own, all_of_it = tmp_path / "groups", tmp_path / "own", machine.memory_limit(tmp_path, tmp_path / "none")
    (groups / "a/b").mkdir(parents=True)
    (groups / "memory/c").mkdir(parents=True)

    def limit(line: str) -> int:
        own.write_text(f"5:cpu,cpuacct:/elsewhere\n{line}\n")
        machine.memory_limit.cache_clear()
        return machine.memory_limit(groups, own)

    (groups / "a/b/memory.max").write_text("max\n")
    assert limit("0::/a/b") == all_of_it
    (groups / "a/memory.max").write_text(f"{2**30}\n")
    assert limit("0::/a/b") == 2**30
    assert limit("0::/not/here") == all_of_it
    (groups / "memory.max").write_text(f"{2**29}\n")
    assert limit("0::/not/here") == 2**29, "the container's own, whatever its name outside"
    (groups / "memory/c/memory.limit_in_bytes").write_text("1000\n")
    assert limit("3:memory:/c") == 1000


def test_float32_takes_half() -> None:
    domain = Domain.binary(10)
    assert DenseWeights(domain).bytes == 2 * DenseWeights(domain, "float32").bytes == 8192
    assert FactoredWeights(domain).bytes == 2 * FactoredWeights(domain, "float32").bytes == 160


# --- threads


@pytest.fixture
def _restore_threads() -> Iterator[None]:
    before = fastdp.get_num_threads()
    yield
    fastdp.set_num_threads(before)


@pytest.mark.usefixtures("_restore_threads")
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_the_same_bits_for_every_number_of_threads(precision: Any) -> None:
    domain = Domain(a=3, b=2**11, c=5, d=2**7)  # 3.9 million cells
    rng = np.random.default_rng(1)
    queries = [
        Conjunction({"a": 1}),
        Product({"d": rng.random(2**7) < 0.3, "b": rng.random(2**11) < 0.9}),
        Conjunction({"d": 5}),
        Range("b", 100, 1900),
        Conjunction({"c": 2, "d": 100}),
        Mask(rng.random(domain.size) < 0.5),
        Linear(rng.random(domain.size)),
    ]
    bounds = [bind(query, domain) for query in queries]
    results = set()
    for threads in (1, 2, 5):
        fastdp.set_num_threads(threads)
        weights = DenseWeights(domain, precision)
        seen: list[Any] = []
        for bound in bounds:
            weights.scale(bound, 0.3)
            seen += [weights.evaluate(each) for each in bounds]
        weights._add_up()
        results.add((tuple(seen), weights.total, weights.weights.tobytes()))
    assert len(results) == 1


# --- counts on the records


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


@pytest.mark.parametrize("rate", [0.3, 1.0, 3.0])
def test_a_rise_and_a_fall_leave_no_rounding_errors_behind(rate: float) -> None:
    domain = Domain(a=4, c=3)
    weights, logs = DenseWeights(domain), np.zeros((4, 3))
    for step in range(40):
        bound = bind(Conjunction({"a": 0, "c": step % 3}), domain)
        sign = 1 if step < 20 else -1
        weights.scale(bound, sign * rate)
        logs[0, step % 3] += sign * rate
    expected = np.exp(logs) / np.exp(logs).sum()
    assert weights.evaluate(bind(Conjunction({"a": 1, "c": 1}), domain)) == pytest.approx(expected[1, 1], rel=1e-9)


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


def test_the_smaller_side_is_updated_and_evaluated() -> None:
    domain = Domain(a=10, b=30, c=4)
    bound = bind(Product({"a": range(8)}), domain)
    weights = DenseWeights(domain)
    weights.scale(bound, 0.5)
    assert weights.total < domain.size, "those outside have got lighter"
    assert weights.evaluate(bound) == pytest.approx(0.8 * math.exp(0.5) / (0.8 * math.exp(0.5) + 0.2), abs=1e-12)
    both = bind(Product({"a": range(9), "b": range(1, 30)}), domain)
    assert isinstance(both, BoundProduct)
    assert both.walk.outside
    assert [part.cells for part in both.complement] == [120, 36]
    assert sum(chosen(part) for part in both.complement).tolist() == (1 - chosen(both)).tolist()
    small, last = bind(Product({"a": 1}), domain), bind(Product({"c": [0, 1, 2]}), domain)
    assert not small.walk.outside
    assert not last.walk.outside, "every line of memory has cells of both sides"


@pytest.mark.parametrize("seed", range(30))
def test_products_of_most_cells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Domain(a=int(rng.integers(4, 12)), b=8, c=int(rng.integers(1, 20)), d=5)
    plain, exact, rough = Plain(domain), DenseWeights(domain), DenseWeights(domain, "float32")
    outside = 0
    for _ in range(15):
        names = rng.permutation(domain.names)[: int(rng.integers(1, 5))]
        bound = bind(Product({name: rng.random(domain.sizes[domain.position(name)]) < 0.9 for name in names}), domain)
        outside += bound.walk.outside
        rate = float(rng.normal())
        for weights, tolerance in ((exact, 1e-11), (rough, 1e-4)):
            assert weights.evaluate(bound) == pytest.approx(plain.evaluate(bound), abs=tolerance)
            weights.scale(bound, rate)
        plain.scale(bound, rate)
    np.testing.assert_allclose(exact.probabilities(), plain.probabilities(), rtol=1e-10, atol=0)
    assert outside


def test_all_cells_one_by_one() -> None:
    domain = Domain(a=2, b=1, c=3)
    weights = DenseWeights(domain)
    weights.scale(bind(Conjunction({"a": 1, "c": 2}), domain), 1.0)
    for codes in product(*map(range, domain.sizes)):
        bound = bind(Conjunction(dict(zip(domain.names, codes, strict=True))), domain)
        right = math.e if codes == (1, 0, 2) else 1.0
        assert weights.evaluate(bound) == pytest.approx(right / (5 + math.e), abs=1e-15)
