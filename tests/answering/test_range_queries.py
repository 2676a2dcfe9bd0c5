"""Intervals and thresholds on columns of numbers, wherever queries are answered."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Bins, Domain, Range

AGES = Bins([0, 18, 30, 65, 120], missing=True)
DOMAIN = Domain(age=AGES, income=Bins(np.linspace(0.0, 1.0, 9)), sex=2)
HUGE = Domain({f"x{i}": Bins(np.linspace(0.0, 1.0, 65)) for i in range(20)})


def codes_of(low: Any = -inf, high: Any = inf, domain: Domain = DOMAIN, name: str = "age") -> list[int]:
    bound = Range(name, low, high).bind(domain)
    if not bound.allowed:
        return list(range(domain.sizes[domain.position(name)]))
    ((position, table),) = bound.allowed
    assert position == domain.position(name)
    return np.flatnonzero(table).tolist()


def test_bins_that_hold_an_end_count_whole() -> None:
    assert codes_of(18, 64) == [1, 2]
    assert codes_of(17.5, 30) == [0, 1, 2]
    assert codes_of(40, 40) == [2]
    assert codes_of(119, 120) == [3]
    assert codes_of(np.int64(18), np.float32(64)) == [1, 2]


def test_one_end_is_a_threshold_and_missing_entries_are_in_no_range() -> None:
    assert codes_of(high=29) == [0, 1]
    assert codes_of(low=30) == [2, 3]
    assert codes_of() == [0, 1, 2, 3]
    assert codes_of(name="income") == list(range(8))


def test_ends_beyond_the_edges_stand_for_the_nearest() -> None:
    assert codes_of(-5, 20) == [0, 1]
    assert codes_of(60, 10**30) == [2, 3]
    for low, high in ((121, 130), (-9, -1)):
        with pytest.raises(ValueError, match=f"low={low}, high={high}: one of them must be a number from 0 to 120"):
            codes_of(low, high)


@pytest.mark.parametrize("end", [nan, "x", None, True, 1j])
def test_ends_that_are_no_numbers(end: Any) -> None:
    with pytest.raises(ValueError, match=r"^age: (low|high)=.*: must be a number from 0 to 120, or None$"):
        codes_of(end, 30)
    with pytest.raises(ValueError, match="must not come after"):
        codes_of(30, 20)


def test_open_ends_of_codes_and_labels() -> None:
    domain = Domain(a=5, b=["x", "y", "z"], c=[1.0, inf, 2.0])
    assert codes_of(high=2, domain=domain, name="a") == [0, 1, 2]
    assert codes_of("y", domain=domain, name="b") == [1, 2]
    assert codes_of(1.0, inf, domain=domain, name="c") == [0, 1]  # where it is a label itself
    assert repr(Range("a", high=2)) == "Range('a', -inf, 2)"


def records(n: int, domain: Domain) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(11)
    made = {name: generator.beta(2, 5, n) for name in domain.names}
    if domain == DOMAIN:
        made["age"] = np.where(generator.random(n) < 0.1, nan, generator.uniform(0, 120, n))
        made["sex"] = generator.integers(0, 2, n)
    return made


def shares(data: dict[str, np.ndarray], queries: list[Range], domain: Domain) -> list[float]:
    """By comparing values with edges."""
    found = []
    for query in queries:
        edges, values = domain.bins[domain.position(query.attribute)].edges, data[query.attribute]  # type: ignore[union-attr]
        low = edges[edges <= query.low].max() if query.low >= edges[0] else edges[0]
        above = edges[edges > query.high]
        high = above.min() if above.size else inf
        found.append(float(np.mean((values >= low) & (values < high))))
    return found


QUERIES = [
    Range("age", 18, 64), Range("age", high=29), Range("income", 0.25, 0.6), Range("income", low=0.5), Range("age"),
]  # fmt: skip


def test_tables_answer_ranges() -> None:
    data = records(20_000, DOMAIN)
    released = fastdp.release_marginals(
        data, DOMAIN, [["age", "income"]], epsilon=5.0, delta=1e-6, rng=fastdp.Randomness(1)
    )
    for query, share in zip(QUERIES, shares(data, QUERIES, DOMAIN), strict=True):
        assert abs(released.answer(query) - share) < 0.003


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
@pytest.mark.parametrize("variant", ["measured", "average"])
def test_mwem_answers_ranges(variant: Any) -> None:
    data = records(20_000, DOMAIN)
    fitted = fastdp.mwem(
        data, DOMAIN, QUERIES, epsilon=5.0, delta=1e-6, rounds=5, variant=variant, rng=fastdp.Randomness(1)
    )
    worst = max(abs(fitted.answer(q) - share) for q, share in zip(QUERIES, shares(data, QUERIES, DOMAIN), strict=True))
    assert worst < (0.01 if variant == "measured" else 0.25)


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")  # so few are answered better with plain noise
@pytest.mark.parametrize("variant", ["measured", "sharp"])
@pytest.mark.parametrize("domain", [DOMAIN, HUGE], ids=["dense", "factored"])
def test_online_answers_to_ranges(domain: Domain, variant: Any) -> None:
    data = records(20_000, domain)
    name = domain.names[1]
    queries = [Range(name, 0.1, 0.4), Range(name, high=0.2), Range(name, 0.5, 0.9)]
    pmw = fastdp.PrivateMultiplicativeWeights(
        data, domain, epsilon=100.0, delta=1e-6, max_queries=10, variant=variant, rng=fastdp.Randomness(1)
    )
    before = pmw.updates_left
    for query, share in zip(queries, shares(data, queries, domain), strict=True):
        assert abs(pmw.answer(query) - share) <= pmw.alpha
    assert pmw.updates_left < before
