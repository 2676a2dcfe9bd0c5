"""SIMD lanes (kernels/lanes.py) against numpy and, for fma, against fractions."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numba.core.errors import TypingError

from fastdp.kernels.compile import jit
from fastdp.kernels.lanes import (
    any_bits,
    bits_of,
    float_of,
    fma,
    high32,
    iota,
    load,
    load_bytes,
    low32,
    mix,
    rotl,
    row_at,
    shl,
    splat,
    stack,
    store,
    tree_sum,
    zip_first,
    zip_last,
)

N = 8
TURN = 13
GUARD = 0x5A5A5A5A5A5A5A5A
MASK = 2**64 - 1
DISTANCES = {32: (1, 7, 8, 12, 16, 31), 64: (1, 13, 31, 32, 33, 63)}
EDGES = [0, 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, MASK]


# ---------------------------------------------------------------------------------------------------------------------
# integer lanes, made of splat, iota, + and ^


@jit
def words_into(a, b, at, out):
    x, y = splat(a, N), splat(b, N) + iota(N)
    z = x ^ y
    store(out, at, x)
    store(out, at + 8, iota(N))
    store(out, at + 16, y)
    store(out, at + 24, z)
    store(out, at + 32, z + rotl(z, TURN))
    store(out, at + 40, rotl(z, 1))
    store(out, at + 48, rotl(z, 13))
    store(out, at + 56, rotl(z, 31))
    store(out, at + 64, rotl(z, 32))
    store(out, at + 72, rotl(z, 33))
    store(out, at + 80, rotl(z, 63))


@jit
def halves_into(a, b, at, out):
    z = splat(a, N) ^ (splat(b, N) + iota(N))
    low, high = low32(z), high32(z)
    store(out, at, low)
    store(out, at + 8, high)
    store(out, at + 16, low + high)
    store(out, at + 24, low ^ high)
    store(out, at + 32, rotl(high, 1))
    store(out, at + 40, rotl(high, 7))
    store(out, at + 48, rotl(high, 8))
    store(out, at + 56, rotl(high, 12))
    store(out, at + 64, rotl(high, 16))
    store(out, at + 72, rotl(high, 31))


def turned(x: int, distance: int, width: int) -> int:
    return (x << distance | x >> width - distance) & 2**width - 1


def words_expected(a: int, b: int) -> np.ndarray:
    z = [a ^ (b + i & MASK) for i in range(N)]
    rows = [
        [a] * N,
        list(range(N)),
        [b + i & MASK for i in range(N)],
        z,
        [x + turned(x, TURN, 64) & MASK for x in z],
        *([turned(x, d, 64) for x in z] for d in DISTANCES[64]),
    ]
    return np.array(rows, np.uint64)


def halves_expected(a: int, b: int) -> np.ndarray:
    z = np.array([a], np.uint64) ^ (np.array([b], np.uint64) + np.arange(N, dtype=np.uint64))
    low, high = z.astype(np.uint32), (z >> np.uint64(32)).astype(np.uint32)
    rows = [low, high, low + high, low ^ high]
    rows += [high << np.uint32(d) | high >> np.uint32(32 - d) for d in DISTANCES[32]]
    return np.array(rows)


def pairs() -> list[tuple[int, int]]:
    source = random.Random(1)
    return [*itertools.product(EDGES, EDGES), *((source.getrandbits(64), source.getrandbits(64)) for _ in range(200))]


def computed(kernel: Any, dtype: Any, a: int, b: int, rows: int, at: int) -> np.ndarray:
    """The kernel's rows, written to a place `at` entries into an array whose other entries must stay as they are."""
    out = np.full(N * rows + 2 * at + 5, GUARD & 2 ** (8 * np.dtype(dtype).itemsize) - 1, dtype)
    guard = out[0]
    kernel(np.uint64(a), np.uint64(b), at, out)
    assert (out[:at] == guard).all()
    assert (out[at + N * rows :] == guard).all()
    return out[at : at + N * rows].reshape(rows, N)


@pytest.mark.parametrize(
    ("kernel", "dtype", "expected"),
    [(words_into, np.uint64, words_expected), (halves_into, np.uint32, halves_expected)],
    ids=["64 bits", "32 bits"],
)
def test_integer_lanes(kernel: Any, dtype: Any, expected: Callable[[int, int], np.ndarray]) -> None:
    """splat, iota, store, +, ^, rotl, low32, high32: wrap-around at the edges, any offset, nothing else written."""
    for at, (a, b) in enumerate(pairs()):
        right = expected(a, b)
        np.testing.assert_array_equal(computed(kernel, dtype, a, b, len(right), at % 11), right)


def splat_kernel(n: int) -> Any:
    @jit
    def splat_into(x, out):
        store(out, 1, splat(x, n))

    return splat_into


@pytest.mark.parametrize(
    ("x", "n"),
    [
        (np.uint32(2**32 - 1), 16),
        (np.uint64(MASK), 1),
        (np.int64(-(2**63)), 4),
        (np.float64(-math.pi), 2),
        (np.float64(5e-324), 32),
        (np.uint64(7), 3),
    ],
    ids=lambda p: getattr(p, "dtype", p),
)
def test_lane_counts_and_dtypes(x: np.generic, n: int) -> None:
    """Lanes wider and narrower than a register, counts that are no power of two; the count may be a closure's."""
    out = np.zeros(n + 3, x.dtype)
    splat_kernel(n)(x, out)
    assert out.tolist() == [0, *[x.item()] * n, 0, 0]


@jit
def count_from_argument(x, n, out):
    store(out, 0, splat(x, n))


@jit
def store_floats_as_words(x, out):
    store(out, 0, splat(x, 4))


@jit
def xor_floats(x, out):
    store(out, 0, splat(x, 4) ^ splat(x, 4))


@jit
def load_rows(x, out):
    store(out, 0, load(x, 0, 4))


@jit
def add_unlike(x, out):
    store(out, 0, splat(x, 4) + splat(x, 8))


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        (count_from_argument, (np.uint64(1), 4, np.zeros(4, np.uint64))),
        (store_floats_as_words, (1.0, np.zeros(4, np.uint64))),
        (xor_floats, (1.0, np.zeros(4))),
        (load_rows, (np.zeros((4, 4)), np.zeros(4))),
        (load_rows, (np.zeros(8)[::2], np.zeros(4))),
        (add_unlike, (np.uint64(1), np.zeros(4, np.uint64))),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_what_does_not_fit_does_not_compile(kernel: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypingError):
        kernel(*arguments)


# ---------------------------------------------------------------------------------------------------------------------
# arithmetic of lanes that were loaded


@jit
def combine_into(x, y, at, out):
    a, b = load(x, at, N), load(y, at + 1, N)
    store(out, 0, a)
    store(out, 8, a + b)
    store(out, 16, a - b)
    store(out, 24, a * b)
    store(out, 32, mix(a, 1))
    store(out, 40, mix(a, 2))
    store(out, 48, mix(a, 4))


def mixed(x: np.ndarray, distance: int) -> np.ndarray:
    first, second = np.moveaxis(x.reshape(-1, 2, distance), 1, 0)
    return np.stack((first + second, first - second), axis=1).ravel()


def _arrays(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(6)
    if dtype == np.float64:
        x, y = np.ldexp(source.uniform(-2, 2, (2, 200)), source.integers(-40, 40, (2, 200)))
    else:
        x, y = source.integers(0, 2**64, (2, 200), np.uint64).astype(dtype)
    return x, y


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.uint64, np.uint32], ids=lambda d: d.__name__)
def test_arithmetic_of_lanes(dtype: Any) -> None:
    """load, +, -, *, mix: as numpy has them, integers wrapped around; any offset, and arrays that must not change."""
    x, y = _arrays(dtype)
    x.flags.writeable = False
    for at in range(150):
        a, b = x[at : at + N], y[at + 1 : at + 1 + N]
        out = np.zeros(7 * N, dtype)
        combine_into(x, y, at, out)
        rows = [a, a + b, a - b, a * b, mixed(a, 1), mixed(a, 2), mixed(a, 4)]
        assert out.tobytes() == np.concatenate(rows).tobytes()


# ---------------------------------------------------------------------------------------------------------------------
# bytes, as lanes of 64 bits; numbers of shifts are the kernel's, as they must be constants


@jit
def bytes_into(x, y, at, out, ors):
    a, b = load_bytes(x, at, N), load_bytes(y, at + 1, N)
    store(out, 0, a)
    store(out, 8, zip_first(a, b))
    store(out, 16, zip_last(a, b))
    store(out, 24, a | b)
    store(out, 32, shl(a, 0))
    store(out, 40, shl(a, 1))
    store(out, 48, shl(a, 7))
    store(out, 56, shl(a, 33))
    store(out, 64, shl(a, 63))
    ors[0] = any_bits(a)
    ors[1] = any_bits(shl(b, 60))


def test_bytes_of_lanes() -> None:
    """load_bytes, zip_first, zip_last, |, shl, any_bits: any offset, and arrays that must not change."""
    x, y = np.random.default_rng(8).integers(0, 256, (2, 300), np.uint8)
    x.flags.writeable = False
    out, ors = np.zeros(9 * N, np.uint64), np.zeros(2, np.uint64)
    for at in range(200):
        bytes_into(x, y, at, out, ors)
        first, second = x[at : at + 8 * N], y[at + 1 : at + 1 + 8 * N]
        by_turns = np.column_stack((first, second)).ravel()
        a, b = first.copy().view("<u8"), second.copy().view("<u8")
        rows = [a, *by_turns.view("<u8").reshape(2, N), a | b, *(a << np.uint64(s) for s in (0, 1, 7, 33, 63))]
        np.testing.assert_array_equal(out.reshape(9, N), rows)
        assert ors.tolist() == [np.bitwise_or.reduce(a), np.bitwise_or.reduce(b << np.uint64(60))]


@jit
def one_bits(x):
    return any_bits(splat(x, N))


@jit
def lane_bits(x, at):
    return any_bits(load(x, at, N))


def test_any_bits_sees_every_lane() -> None:
    for i, bit in itertools.product(range(N), (0, 31, 63)):
        x = np.zeros(N, np.uint64)
        x[i] = 1 << bit
        assert lane_bits(x, 0) == 1 << bit
    assert one_bits(np.uint64(MASK)) == MASK
    assert lane_bits(np.arange(N, dtype=np.uint32), 0) == 7
    with pytest.raises(TypingError):
        lane_bits(np.zeros(N), 0)


@jit
def row_into(rows, i, out):
    row = row_at(rows, i)
    out[0], out[1] = row.size, row.strides[0]
    for j in range(row.size):
        out[2 + j] = row[j]


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.float64, np.uint32], ids=lambda d: d.__name__)
def test_rows_of_arrays(dtype: Any) -> None:
    """Of whole arrays, of slices of their columns and rows, turned upside down, one behind the other, or read-only."""
    whole = np.arange(200).reshape(10, 20).astype(dtype)
    read_only = whole.copy()
    read_only.flags.writeable = False
    narrow = whole[:, 3:3]
    views = [whole, whole[:, 5:18], whole[::3], whole[::-1, 1:], np.broadcast_to(whole[:1], (4, 20)), read_only, narrow]
    for rows in views:
        for i in range(len(rows)):
            out = np.full(24, -1.0)
            row_into(rows, i, out)
            assert out[:2].tolist() == [rows.shape[1], rows.itemsize]
            np.testing.assert_array_equal(out[2 : 2 + rows.shape[1]], rows[i])
            assert (out[2 + rows.shape[1] :] == -1).all()


# ---------------------------------------------------------------------------------------------------------------------
# sums


@jit
def sum_lanes(x, at):
    return tree_sum(load(x, at, N))


def test_tree_sum() -> None:
    """By halves, in that order: floats tell."""
    x, _ = _arrays(np.float64)
    for at in range(150):
        halves = x[at : at + N]
        while halves.size > 1:
            halves = halves[: halves.size // 2] + halves[halves.size // 2 :]
        assert sum_lanes(x, at) == halves[0]


# ---------------------------------------------------------------------------------------------------------------------
# bits of floats


@jit
def bits_into(x, out):
    for i in range(x.size):
        out[i] = bits_of(x[i])


@jit
def floats_into(bits, out):
    for i in range(bits.size):
        out[i] = float_of(bits[i])


def bit_patterns() -> np.ndarray:
    """Zeros, subnormals, normals, infinities, quiet and signalling NaNs of many payloads, all of both signs."""
    exponents = np.array([0, 1, 2, 1022, 1023, 1024, 2045, 2046, 2047], np.uint64) << np.uint64(52)
    fractions = np.array([0, 1, 2, 2**51 - 1, 2**51, 2**51 + 1, 2**52 - 2, 2**52 - 1], np.uint64)
    signs = np.array([0, 2**63], np.uint64)
    classes = (signs[:, None, None] | exponents[:, None] | fractions).ravel()
    source = np.random.default_rng(2)
    return np.concatenate((classes, source.integers(0, 2**64, 5000, np.uint64))).view(np.int64)


def test_bits_and_floats() -> None:
    bits = bit_patterns()
    assert np.isnan(bits.view(np.float64)).sum() > 10
    out = np.zeros_like(bits)
    bits_into(bits.view(np.float64), out)
    np.testing.assert_array_equal(out, bits)
    back = np.zeros(bits.size)
    floats_into(bits, back)
    np.testing.assert_array_equal(back.view(np.int64), bits)


# ---------------------------------------------------------------------------------------------------------------------
# fma


@jit
def fma_into(x, y, z, out):
    for i in range(x.size):
        out[i] = fma(x[i], y[i], z[i])


@jit
def fma_one(x, y, z):
    return fma(x, y, z)


def fma_exact(x: float, y: float, z: float) -> float:
    """x y + z as the rational number that it is, rounded once to nearest even."""
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    if exact == 0:
        return x * y + z if x == 0 or y == 0 or z == 0 else 0.0  # the sign of zero: no rounding takes place
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def fma_arguments() -> np.ndarray:
    """Random numbers, and those for which rounding the product first goes wrong: cancellation, ties, subnormals."""
    source = np.random.default_rng(3)
    x, y, z = source.uniform(-2, 2, (3, 2000))
    wide = np.ldexp(source.uniform(-2, 2, (3, 1000)), source.integers(-300, 300, (3, 1000)))
    wide[2] = np.ldexp(wide[0] * wide[1], source.integers(-110, 110, 1000)) * source.choice([-1.0, 1.0], 1000)
    tiny = np.ldexp(source.uniform(-2, 2, (3, 1000)), source.integers(-560, -515, (3, 1000)))
    tiny[2] = np.ldexp(source.uniform(-2, 2, 1000), -1074 + source.integers(0, 60, 1000))
    near = 1 + source.integers(-(2**20), 2**20, (2, 1000)) * 2.0**-52
    ties = np.array([near[0], near[1], source.choice([-1.0, 1.0], 1000) * 2.0 ** source.integers(-2, 60, 1000)])
    odd = [0.0, -0.0, 1.0, -1.0, 5e-324, 2.0**-1022, 1.5, 2.0**1023, -1.7976931348623157e308]
    edges = np.array(list(itertools.product(odd, odd, odd))).T
    return np.concatenate((np.stack((x, y, -(x * y))), np.stack((x, y, z)), wide, tiny, ties, edges), axis=1)


def test_fma_rounds_once() -> None:
    x, y, z = fma_arguments()
    expected = np.array([fma_exact(*t) for t in zip(x.tolist(), y.tolist(), z.tolist(), strict=True)])
    out = np.empty_like(x)
    fma_into(x, y, z, out)
    np.testing.assert_array_equal(out.view(np.int64), expected.view(np.int64))
    with np.errstate(all="ignore"):
        twice = x * y + z
    assert np.count_nonzero(twice != expected) > 2000  # these arguments do tell one rounding from two
    one = [fma_one(*t) for t in zip(x[::7].tolist(), y[::7].tolist(), z[::7].tolist(), strict=True)]
    np.testing.assert_array_equal(np.array(one).view(np.int64), expected[::7].view(np.int64))


@pytest.mark.parametrize(
    ("x", "y", "z", "expected"),
    [
        (math.inf, 2.0, 1.0, math.inf),
        (math.inf, 0.0, 1.0, math.nan),
        (math.inf, 1.0, -math.inf, math.nan),
        (1.0, 1.0, -math.inf, -math.inf),
        (math.nan, 0.0, 0.0, math.nan),
        (1e300, 1e300, -math.inf, -math.inf),
    ],
)
def test_fma_of_infinities(x: float, y: float, z: float, expected: float) -> None:
    np.testing.assert_equal(fma_one(x, y, z), expected)


# ---------------------------------------------------------------------------------------------------------------------
# stack buffers

LARGE = 1 << 15  # 256 KiB


def stack_kernel(dtype: Any) -> Any:
    @jit
    def describe(out, values):
        buffer = stack(dtype, 37)
        out[0], out[1], out[2], out[3] = buffer.size, buffer.itemsize, buffer.strides[0], buffer.ctypes.data % 64
        for i in range(buffer.size):
            buffer[i] = values[i]
        for i in range(buffer.size):
            values[i + 37] = buffer[i]

    return describe


@pytest.mark.parametrize("dtype", [np.uint64, np.int64, np.uint32, np.float64], ids=lambda d: d.__name__)
def test_stack_array(dtype: Any) -> None:
    """Its size, dtype and strides, its alignment for the widest registers, and that it holds what was written."""
    out = np.zeros(4, np.int64)
    values = np.zeros(74, dtype)
    values[:37] = np.random.default_rng(4).integers(0, 256, (37, values.itemsize), np.uint8).view(dtype).ravel()
    stack_kernel(dtype)(out, values)
    assert out.tolist() == [37, values.itemsize, values.itemsize, 0]
    assert values[37:].tobytes() == values[:37].tobytes()


@jit
def scribble(x):
    buffer = stack(np.uint64, 64)
    for i in range(buffer.size):
        buffer[i] = x + np.uint64(i)
    return buffer[int(x) % 64]


@jit
def keep(x, out):
    """Two buffers, and a callee with one of its own, none of which is another."""
    first, second = stack(np.uint64, 64), stack(np.uint64, 64)
    for i in range(64):
        first[i] = x + np.uint64(i)
    for i in range(64):
        second[i] = x + np.uint64(1000 + i)
    called = scribble(x + np.uint64(5000))
    for i in range(64):
        out[i] = first[i]
        out[64 + i] = second[i]
    out[128] = called


def test_stack_arrays_are_apart() -> None:
    out = np.zeros(129, np.uint64)
    keep(np.uint64(3), out)
    expected = [*range(3, 67), *range(1003, 1067), 5003 + 5003 % 64]
    assert out.tolist() == expected


@jit
def disturbances(x, rounds):
    """How often an entry of this call's buffer is not what this call wrote there."""
    wrong = 0
    for r in range(rounds):
        buffer = stack(np.uint64, 512)
        for i in range(buffer.size):
            buffer[i] = x * np.uint64(r + i)
        for i in range(buffer.size):
            wrong += buffer[i] != x * np.uint64(r + i)
    return wrong


def test_stack_arrays_belong_to_one_call() -> None:
    """Eight threads, none holding the GIL; 4 KiB a round for 20,000 rounds would overflow a stack that grew."""
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda x=x: found.append(disturbances(np.uint64(x), 20000))) for x in range(1, 9)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 8


@jit
def large_sum(x):
    buffer = stack(np.uint64, LARGE)
    for i in range(buffer.size):
        buffer[i] = x ^ np.uint64(i)
    total = np.uint64(0)
    for i in range(buffer.size):
        total += buffer[i]
    return total


def test_large_stack_array() -> None:
    for x in range(20):
        assert large_sum(np.uint64(x)) == LARGE * (LARGE - 1) // 2


# ---------------------------------------------------------------------------------------------------------------------


def _everything() -> Iterator[np.ndarray]:
    for a, b in pairs()[::5]:
        yield computed(words_into, np.uint64, a, b, 11, 3)
        yield computed(halves_into, np.uint32, a, b, 10, 3)
    arguments = fma_arguments()
    out = np.empty(arguments.shape[1])
    fma_into(*arguments, out)
    yield out
    x, y = np.random.default_rng(8).integers(0, 256, (2, 300), np.uint8)
    mixed_bytes = np.zeros(9 * N + 2, np.uint64)
    bytes_into(x, y, 11, mixed_bytes[2:], mixed_bytes)
    yield mixed_bytes


def fingerprint() -> str:
    digest = hashlib.sha256()
    for array in _everything():
        digest.update(array.tobytes())
    return digest.hexdigest()


def test_same_bits_on_other_cpus(fingerprint_elsewhere: Callable[[str], str]) -> None:
    """AVX2 splits 512-bit lanes in two; plain x86-64 has neither wide registers nor an fma instruction."""
    assert fingerprint_elsewhere(__name__) == fingerprint()
