"""Numbers that may be int64 or float64 (kernels/int_or_float.py) against Python's integers and numpy."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from fastdp.kernels.compile import jit
from fastdp.kernels.int_or_float import gap, of_rank, part, rank_of

INT_EDGES = [0, 1, -1, 2**63 - 1, -(2**63), 2**53, 2**53 + 1, -(2**53) - 1, 2**62, -(2**62), 2**32 - 1, -(2**32)]
TINY = 5e-324
FLOAT_EDGES = [0.0, TINY, 2.5e-310, 2.0**-1022, 1.0, math.pi, 2.0**53, 1e300, 1.7976931348623157e308]


@jit
def gaps_into(tops, x, out):
    for i in range(x.size):
        out[i] = gap(tops[i], x[i])


@jit
def ranks_into(x, ranks, back):
    for i in range(x.size):
        ranks[i] = rank_of(x[i])
        back[i] = of_rank(ranks[i], x[i])


def gaps(pairs: list[tuple[Any, Any]], kind: Any) -> np.ndarray:
    tops, x = (np.array(side, kind) for side in zip(*pairs, strict=True))
    out = np.empty(tops.size)
    gaps_into(tops, x, out)
    return out


def test_gap_of_integers_is_rounded_once() -> None:
    """Up to 2^64 - 1, which no int64 holds."""
    draw = random.Random(21)
    values = INT_EDGES + [draw.randint(-(2**63), 2**63 - 1) >> draw.randint(0, 60) for _ in range(200)]
    ordered = [(max(p), min(p)) for p in itertools.product(values, values)]
    ordered += [(k - 2**62, -(2**62)) for b in range(53, 63) for k in (2**b - 1, 2**b, 2**b + 1, 2**b + 2 ** (b - 53))]
    expected = np.array([float(top - x) for top, x in ordered])
    np.testing.assert_array_equal(gaps(ordered, np.int64), expected)
    assert expected.max() == 2.0**64


def test_gap_of_floats_is_their_difference() -> None:
    """Subnormal, or beyond float64; that of a number and -inf is inf, that of -inf and itself NaN."""
    values = [sign * x for x in FLOAT_EDGES for sign in (1, -1)]
    values += np.random.default_rng(22).normal(size=60).tolist()
    ordered = [(max(p), min(p)) for p in itertools.product(values, values)]
    with np.errstate(over="ignore"):
        expected = np.subtract(*np.array(ordered).T)
    np.testing.assert_array_equal(gaps(ordered, np.float64), expected)
    assert gaps([(3 * TINY, TINY)], np.float64)[0] == 2 * TINY
    found = gaps([(1.7e308, -1.7e308), (0.0, -math.inf), (-math.inf, -math.inf)], np.float64)
    np.testing.assert_array_equal(found, [math.inf, math.inf, math.nan])


def ranks(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found, back = np.empty(x.size, np.int64), np.empty_like(x)
    ranks_into(x, found, back)
    return found, back


def test_ranks_of_integers_are_the_integers() -> None:
    x = np.array(INT_EDGES)
    found, back = ranks(x)
    np.testing.assert_array_equal(found, x)
    np.testing.assert_array_equal(back, x)


def test_ranks_order_floats_with_nan_on_top() -> None:
    """-inf has the lowest rank of all, -0.0 comes right before 0.0, and any NaN after +inf, whatever its sign."""
    negative = [-x for x in FLOAT_EDGES[::-1]]
    rising = np.array([-math.inf, *negative, *FLOAT_EDGES, math.inf])
    found, back = ranks(rising)
    assert (np.diff(found.astype(object)) > 0).all()
    assert found[0] == -(2**63)
    zero = FLOAT_EDGES.index(0.0) + 1 + len(negative)
    assert found[zero] - found[zero - 1] == 1
    np.testing.assert_array_equal(back.view(np.int64), rising.view(np.int64))
    positive = [0x7FF0000000000001, 0x7FF8000000000000, 0x7FFFFFFFFFFFFFFF]
    nans = np.array([sign | bits for sign in (0, 2**63) for bits in positive], np.uint64)
    above, back = ranks(nans.view(np.float64))
    assert (above > found[-1]).all()
    np.testing.assert_array_equal(back.view(np.uint64), nans)


def test_ranks_of_random_bits() -> None:
    """Every float has a rank of its own, in the order of floats, and comes back from it bit for bit."""
    x = np.random.default_rng(23).integers(0, 2**64, 20_000, np.uint64).view(np.float64)
    x = np.concatenate((x, (x.view(np.int64) ^ 1).view(np.float64), np.random.default_rng(24).normal(size=5000)))
    found, back = ranks(x)
    np.testing.assert_array_equal(back.view(np.int64), x.view(np.int64))
    ordered = x[np.argsort(found, kind="stable")]
    numbers = ordered[~np.isnan(ordered)]
    assert np.isnan(ordered[numbers.size :]).all()
    assert (np.diff(numbers) >= 0).all()
    assert np.unique(found).size == np.unique(x.view(np.int64)).size


def test_gap_and_ranks_are_for_two_types() -> None:
    for pair in ((1, 2.0), (np.float32(1), np.float32(2)), (np.uint64(2), np.uint64(1))):
        with pytest.raises(TypingError):
            gap_one(*pair)


@jit
def gap_one(top, x):
    return gap(top, x)


@jit
def part_of(x, k):
    return part(x, k)


def test_part() -> None:
    """x / 2^k: integers rounded down, floats by a factor that is exact."""
    draw = random.Random(25)
    integers = [*INT_EDGES, *(draw.randint(-(2**63), 2**63 - 1) >> draw.randint(0, 60) for _ in range(30))]
    floats = [draw.uniform(-1, 1) * 2.0 ** draw.randint(-60, 60) for _ in range(30)]
    for k in range(64):
        for a in integers:
            assert part_of(a, k) == a >> k
        for b in floats:
            assert part_of(b, k) == math.ldexp(b, -k)


def fingerprint() -> str:
    integers = [(2**63 - 1, -(2**63) + i * 3**k) for k in range(35) for i in range(8)]
    bits = np.random.default_rng(8).integers(0, 2**64, 3000, np.uint64)
    digest = hashlib.sha256()
    for array in (gaps(integers, np.int64), *ranks(bits.view(np.float64))):
        digest.update(array.tobytes())
    return digest.hexdigest()


def test_same_bits_on_other_cpus(fingerprint_elsewhere: Callable[[str], str]) -> None:
    """Plain x86-64 has no wide registers."""
    assert fingerprint_elsewhere(__name__) == fingerprint()
