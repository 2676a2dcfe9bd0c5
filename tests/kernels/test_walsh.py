"""The Walsh-Hadamard transform and its parts (kernels/walsh.py) against scipy's matrices and the plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.linalg import hadamard

import fastdp
from fastdp.answering import marginal_transform as tables
from fastdp.kernels import walsh


def plain(x: np.ndarray) -> np.ndarray:
    """One pass for each bit."""
    half = 1
    while half < x.size:
        pairs = x.reshape(-1, 2, half)
        x = np.stack((pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]), axis=1).reshape(-1)
        half *= 2
    return x


def counts(d: int) -> np.ndarray:
    return np.random.default_rng(d).integers(-(2**30), 2**30, 1 << d)


def test_the_plain_loop_is_the_matrix() -> None:
    for d in range(1, 11):
        assert (plain(counts(d)) == hadamard(1 << d) @ counts(d)).all()


@pytest.mark.parametrize("d", range(3, 22))
def test_transform(d: int) -> None:
    """d = 15 is one block, 16 to 21 have strips of 1 to 6 bits."""
    x = counts(d)
    right = plain(x)
    done = x.copy()
    tables.transform(done)
    assert (done == right).all()
    floats = x.astype(np.float64)  # integers below 2^53 all the way
    tables.transform(floats)
    assert (floats == right).all()
    tables.transform(done)
    assert (done == x << d).all()  # its own inverse but for 2^d


@pytest.mark.parametrize("bits", range(1, walsh.STRIP_BITS + 1))
def test_strips(bits: int) -> None:
    inner, outer = 128, 3
    x = np.random.default_rng(bits).integers(-(2**40), 2**40, outer * inner << bits)
    right = np.einsum("ab,obi->oai", hadamard(1 << bits).astype(np.int64), x.reshape(outer, -1, inner))
    walsh.transform_strips(x, bits, inner, 0, 3)
    walsh.transform_strips(x, bits, inner, 3, outer * inner // walsh.STRIP)
    assert (x == right.ravel()).all()


def test_integers_wrap_around() -> None:
    """Whatever came in between, what fits is right: here all is taken modulo 2^64."""
    x = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 1 << 17)
    twice = x.copy()
    tables.transform(twice)
    tables.transform(twice)
    assert (twice == x << 17).all()


def test_floats_are_within_their_bound() -> None:
    """d roundings of partial sums, each at most the sum of absolute values, each off by 2^-53 of it."""
    d = 18
    x = np.random.default_rng(1).normal(size=1 << d) * 10.0 ** np.random.default_rng(2).integers(-9, 9, 1 << d)
    scale = 2.0**20
    exact = plain(np.array([int(v) for v in np.rint(x * scale)], object)[: 1 << 10])  # a part, in Python's integers
    done = np.rint(x * scale)[: 1 << 10] / scale
    total = np.abs(done).sum()
    tables.transform(done)
    errors = [abs(float(int(v * scale) - e)) / scale for v, e in zip(done.tolist(), exact.tolist(), strict=True)]
    assert max(errors) <= 10 * 2.0**-53 * total


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize(
    ("high", "bits", "weight"), [(0, 1, 1), (0, 5, 2), (3, 4, 0), (5, 7, 3), (4, 12, 4), (2, 3, 9)]
)
def test_parities_of_few_bits(high: int, bits: int, weight: int, dtype: Any) -> None:
    """Blocks first, then across blocks: every parity of at most `weight` bits above the lowest three is there."""
    d = high + bits + walsh.LANE_BITS
    x = counts(d).astype(dtype)
    rows = np.array([r for r in range(1 << bits) if r.bit_count() <= weight])
    parities = np.zeros(rows.size * 8 << high, dtype)
    blocks = 1 << high
    for first, stop in ((0, blocks // 2), (blocks // 2, blocks)):
        walsh.gather_parities_into(x, bits, weight, rows, first, stop, parities)
    within = hadamard(1 << bits).astype(np.int64)[rows] if bits <= 10 else None
    if within is not None:
        blockwise = np.einsum("qr,brj->bqj", within, x.astype(np.int64).reshape(blocks, -1, 8))
        assert (parities == blockwise.ravel()).all()
    for first, stop in ((0, rows.size // 2), (rows.size // 2, rows.size)):
        walsh.finish_parities(parities, high, weight, rows, first, stop)
    right = plain(x).reshape(blocks, -1, 8)
    for block in range(blocks):
        for i, row in enumerate(rows.tolist()):
            if block.bit_count() + row.bit_count() <= weight:
                assert (parities.reshape(blocks, -1, 8)[block, i] == right[block, row]).all()


@pytest.mark.parametrize(
    ("high", "bits", "weight"), [(0, 1, 1), (0, 5, 2), (3, 4, 0), (5, 7, 3), (4, 12, 4), (2, 3, 9)]
)
def test_cells_from_parities_of_few_bits(high: int, bits: int, weight: int) -> None:
    d = high + bits + walsh.LANE_BITS
    blocks = 1 << high
    rows = np.array([r for r in range(1 << bits) if r.bit_count() <= weight])
    full, parities = np.zeros((blocks, 1 << bits, 8)), np.zeros((blocks, rows.size, 8))
    source = np.random.default_rng(d)
    for block in range(blocks):
        for i, row in enumerate(rows.tolist()):
            if block.bit_count() + row.bit_count() <= weight:
                full[block, row] = parities[block, i] = source.integers(-1000, 1000, 8)
    flat, out = parities.ravel(), np.full(1 << d, np.nan)
    walsh.begin_spreading(flat, high, weight, rows, 0, rows.size)
    for first, stop in ((0, blocks // 2), (blocks // 2, blocks)):
        walsh.spread_parities_into(flat, bits, weight, rows, first, stop, out)
    assert (out == plain(full.ravel())).all()


def fingerprint() -> str:
    """Bits of floats, for conftest's other CPUs."""
    import hashlib

    x = np.random.default_rng(3).normal(size=1 << 17)
    tables.transform(x)
    domain = fastdp.Domain.binary(16)
    workload = fastdp.marginals(domain, 3)
    made = tables.marginal_tables(np.random.default_rng(4).random(domain.size), domain, workload)
    mixed = fastdp.Domain(a=5, b=3, c=16, d=7, e=2)
    few = fastdp.marginals(mixed, 2)
    summed = tables.marginal_tables(np.random.default_rng(5).random(mixed.size), mixed, few)
    back = [tables.spread_tables(made, domain, workload), tables.spread_tables(summed, mixed, few)]
    return hashlib.sha256(b"".join(a.tobytes() for a in (x, *made, *summed, *back))).hexdigest()


def test_same_bits_on_every_machine(fingerprint_elsewhere: Any) -> None:
    assert fingerprint_elsewhere(__name__) == fingerprint()
