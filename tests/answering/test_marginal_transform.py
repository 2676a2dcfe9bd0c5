"""Marginal tables and their adjoint (fastdp/answering/marginal_transform.py) against numpy's sums over axes and
broadcasts."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Domain, marginals
from fastdp.answering import marginal_transform as tables
from fastdp.answering.queries.marginals import Marginals


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def direct(array: np.ndarray, domain: Domain, workload: Marginals) -> list[np.ndarray]:
    cube = array.reshape(domain.sizes)
    out = [tuple(p for p in range(len(domain)) if p not in positions) for positions in workload.positions]
    return [np.asarray(cube.sum(axis=axes)) for axes in out]


def direct_spread(values: list[np.ndarray], domain: Domain, workload: Marginals) -> np.ndarray:
    cube = np.zeros(domain.sizes)
    for table, positions in zip(values, workload.positions, strict=True):
        cube += table.reshape([size if p in positions else 1 for p, size in enumerate(domain.sizes)])
    return cube.ravel()


def both_plans(domain: Domain, workload: Marginals) -> Iterator[Any]:
    yield tables.sum_plan(domain.sizes, workload.positions)
    if domain.is_binary and len(domain) > 3:
        yield tables._Parities(len(domain), workload.positions)


def check(domain: Domain, workload: Marginals, seed: int = 0) -> None:
    counts = rng(seed).integers(-(2**40), 2**40, domain.size)
    right = direct(counts, domain, workload)
    values = [rng(seed + 1).integers(-1000, 1000, shape) for shape in workload.shapes]
    back = direct_spread(values, domain, workload)
    for plan in both_plans(domain, workload):
        assert (plan.tables(counts) == np.concatenate([table.ravel() for table in right])).all()
        flat = np.concatenate([table.ravel() for table in values]).astype(np.float64)
        # integers over 2^k: floats are exact, so this holds to the bit
        assert (plan.spread(flat) == back).all()
    made = tables.marginal_tables(counts, domain, workload)
    assert [table.shape for table in made] == list(workload.shapes)
    assert all((a == b).all() for a, b in zip(made, right, strict=True))
    assert all(table.dtype == np.int64 for table in made)
    assert (tables.spread_tables(values, domain, workload) == back).all()


@pytest.mark.parametrize("d", range(1, 13))
def test_binary(d: int) -> None:
    domain = Domain.binary(d)
    for k in range(1, d + 1):
        check(domain, marginals(domain, k), seed=k)


@pytest.mark.parametrize("d", [16, 17, 19])
def test_binary_of_several_blocks(d: int) -> None:
    domain = Domain.binary(d)
    some = [domain.names[:5], domain.names[-3:], (), (domain.names[0], domain.names[-1]), domain.names[4:9]]
    check(domain, Marginals(domain, some))
    check(domain, marginals(domain, 2))


@pytest.mark.parametrize("seed", range(120))
def test_mixed(seed: int) -> None:
    """Sizes from 1 to 40, any sets of attributes: the empty one, all, some within others."""
    source = rng(seed)
    sizes = source.choice([1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17, 40], int(source.integers(1, 7))).tolist()
    while np.prod(sizes) > 200_000:
        sizes.pop()
    domain = Domain({f"a{j}": int(size) for j, size in enumerate(sizes)})
    subsets = [s for k in range(len(domain) + 1) for s in combinations(domain.names, k)]
    chosen = source.permutation(len(subsets))[: int(source.integers(1, len(subsets) + 1))]
    check(domain, Marginals(domain, [subsets[i] for i in chosen]), seed)


@pytest.mark.parametrize("k", range(1, 9))
def test_census_sizes(k: int) -> None:
    domain = Domain(a=2, b=53, c=2, d=2, e=15, f=2, g=2, h=2)
    check(domain, marginals(domain, k))


@pytest.mark.parametrize("sizes", [(1,), (7,), (1, 1), (2,), (100_000,), (1, 300_000, 1), (2, 3, 90_000), (90_000, 3)])
def test_odd_domains(sizes: tuple[int, ...]) -> None:
    domain = Domain({f"a{j}": size for j, size in enumerate(sizes)})
    for k in range(1, len(domain) + 1):
        check(domain, marginals(domain, k))
    check(domain, Marginals(domain, [()]))


def test_large_counts_are_exact() -> None:
    """Up to 2^63 through sums, up to 2^(63 - k) through parities."""
    domain = Domain(a=3, b=5, c=4)
    counts = np.zeros(domain.size, np.int64)
    counts[[0, 7, 59]] = 2**63 - 5, 2, 2
    for table in tables.marginal_tables(counts, domain, marginals(domain, 1)):
        assert table.sum() == 2**63 - 1
    binary = Domain.binary(14)
    for k in (1, 3, 6):
        counts = rng(k).integers(0, 2 ** (63 - k) // binary.size, binary.size)
        counts[5] += 2 ** (63 - k) - 1 - int(counts.sum())
        plan = tables._Parities(14, marginals(binary, k).positions)
        made = tables.as_tables(plan.tables(counts), marginals(binary, k))
        for table, right in zip(made, direct(counts, binary, marginals(binary, k)), strict=True):
            assert (table == right).all()


@pytest.mark.parametrize("domain", [Domain.binary(14), Domain(a=31, b=2, c=3, d=64, e=2)], ids=["binary", "mixed"])
def test_floats_are_within_the_bound(domain: Domain) -> None:
    """Against rational sums, for values of very different sizes and both signs."""
    x = rng(1).normal(size=domain.size) * 10.0 ** rng(2).integers(-12, 3, domain.size)
    workload = Marginals(domain, [(a, b) for a, b in combinations(domain.names, 2)][:10])
    allowed = 2.0**-53 * sum(max(size, 64) for size in domain.sizes) * float(np.abs(x).sum())
    exact = np.array([Fraction(v) for v in x.tolist()], object)
    right = direct(exact, domain, workload)
    for plan in both_plans(domain, workload):
        for made, sums in zip(tables.as_tables(plan.tables(x), workload), right, strict=True):
            assert (
                max(abs(float(Fraction(a) - b)) for a, b in zip(made.ravel().tolist(), sums.ravel(), strict=True))
                <= allowed
            )


def test_sums_of_positive_floats_stay_positive() -> None:
    domain = Domain(a=40, b=30, c=20)
    x = rng(3).random(domain.size) * 10.0 ** rng(4).integers(-300, 0, domain.size)
    assert all((table > 0).all() for table in tables.marginal_tables(x, domain, marginals(domain, 2)))


@pytest.mark.parametrize(
    "domain",
    [Domain.binary(21), Domain(a=6, b=1000, c=7, d=50), Domain(a=2_100_000), Domain(a=3, b=700_001)],
    ids=["binary", "mixed", "one", "wide"],
)
def test_threads_do_not_change_bits(domain: Domain) -> None:
    workload = marginals(domain, min(2, len(domain)))
    few = Marginals(domain, [domain.names[:1], domain.names[-1:]] if len(domain) > 1 else [()])
    x = rng(5).normal(size=domain.size)

    def run() -> bytes:
        made = []
        for asked in (workload, few):
            values = tables.marginal_tables(x, domain, asked)
            made += [*values, tables.spread_tables(values, domain, asked)]
        return b"".join(array.tobytes() for array in made)

    before = fastdp.get_num_threads()
    try:
        results = set()
        for n in (1, 2, 5):
            fastdp.set_num_threads(n)
            results.add(run())
    finally:
        fastdp.set_num_threads(before)
    assert len(results) == 1


def test_spread_is_the_adjoint() -> None:
    for domain in (Domain.binary(10), Domain(a=5, b=1, c=12, d=3)):
        workload = marginals(domain, 2)
        x = rng(6).integers(-50, 50, domain.size)
        values = [rng(7).integers(-50, 50, shape) for shape in workload.shapes]
        made = tables.marginal_tables(x, domain, workload)
        left = sum(int((a * b).sum()) for a, b in zip(made, values, strict=True))
        assert left == float(x @ tables.spread_tables(values, domain, workload))


def test_arguments_stay_as_they_are() -> None:
    for domain in (Domain.binary(8), Domain(a=5, b=6, c=2)):
        workload = marginals(domain, 2)
        x = rng(8).integers(0, 9, domain.sizes)
        kept = x.copy()
        x.flags.writeable = False
        made = tables.marginal_tables(x, domain, workload)
        assert (x == kept).all()
        flipped = tables.marginal_tables(np.asfortranarray(x), domain, workload)
        assert all((a == b).all() for a, b in zip(made, flipped, strict=True))
        values = [table.astype(np.float64) for table in made]
        once = tables.spread_tables(values, domain, workload)
        assert (once == tables.spread_tables(made, domain, workload)).all()
        assert all((a == b).all() for a, b in zip(values, made, strict=True))


def test_few_tables_of_binary_domains_are_summed_and_many_are_not() -> None:
    domain = Domain.binary(12)
    assert isinstance(tables._plan_of(Marginals(domain, [domain.names[:3]])), tables._Sums)
    assert isinstance(tables._plan_of(marginals(domain, 3)), tables._Parities)


def test_bad_arguments() -> None:
    domain = Domain(a=2, b=3)
    workload = marginals(domain, 1)
    with pytest.raises(ValueError, match="dtype float32: must be int64 or float64"):
        tables.marginal_tables(np.zeros(6, np.float32), domain, workload)
    with pytest.raises(ValueError, match="7 entries: must be one for each of 6 cells"):
        tables.marginal_tables(np.zeros(7), domain, workload)
    with pytest.raises(ValueError, match=r"domain: sizes \(3, 2\): must be those of the workload, \(2, 3\)"):
        tables.marginal_tables(np.zeros(6), Domain(a=3, b=2), workload)
    with pytest.raises(ValueError, match="must have the shapes of the workload"):
        tables.spread_tables([np.zeros(3), np.zeros(2)], domain, workload)
