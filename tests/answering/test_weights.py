"""Dense and factored weights (fastdp/answering, kernels/weights.py, kernels/subcubes.py) against plain logarithms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Conjunction, Domain, Linear, Mask, Product, Range
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.factored_weights import FactoredWeights
from fastdp.answering.queries.bound_query import BoundProduct
from fastdp.answering.queries.query import bind
from tests.answering.plain_weights import Plain, chosen, some_domain, some_query

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


# --- threads


@pytest.mark.usefixtures("restored_threads")
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
