"""Numbers as positions on a line (number_line.py of kernels and records) against Python integers and a sort."""

from __future__ import annotations

import hashlib
import itertools
import math

import numpy as np
import pytest

from fastdp import DomainError
from fastdp.kernels import number_line as kernels
from fastdp.records.number_line import MOST_BITS, NumberLine, bits_of_each, check_signed

INTEGERS = ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
FLOATS = [(16, np.float16), (32, np.float32), (64, np.float64)]


def order_of(dtype, bits, signed=None):
    return NumberLine.of(np.dtype(dtype), bits, signed, "x")


def ends_of(dtype):
    """Values of a type around every power of two that it holds, and its ends."""
    if dtype == "bool":
        return np.array([False, True])
    kind = np.iinfo(dtype)
    near = {s * 2**k + off for s in (-1, 1) for k in range(65) for off in (-1, 0, 1)} | {0, kind.min, kind.max}
    return np.array(sorted(v for v in near if kind.min <= v <= kind.max), dtype)


# --- integers


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("bits", [1, 7, 8, 9, 31, 32, 33, 63, 64, 65, 100])
@pytest.mark.parametrize("signed", [None, False, True])
def test_integers_stand_where_python_says(dtype, bits, signed):
    """Every type in every line: int8 on 64 signed bits, uint64 on signed ones, bools, lines beyond 64 bits."""
    values, order = ends_of(dtype), order_of(dtype, bits, signed)
    means_signed = np.dtype(dtype).kind == "i" and 8 * np.dtype(dtype).itemsize <= bits if signed is None else signed
    least = -(2 ** (bits - 1)) if means_signed else 0
    assert (order.least, order.last) == (least, 2**bits - 1)
    within = [0 <= int(v) - least < 2**bits for v in values]
    right = [min(max(int(v) - least, 0), 2**bits - 1) for v in values]
    found = order.positions(values, "clip", "x")
    assert found.dtype == (np.uint64 if bits <= 64 else object)
    assert found.tolist() == right
    if all(within):
        assert order.positions(values, "raise", "x").tolist() == right
    else:
        with pytest.raises(DomainError, match=r"^x: must be from .*outside='clip'"):
            order.positions(values, "raise", "x")
    inside = np.array(within)
    assert order.positions(values[inside], "raise", "x").tolist() == [
        p for p, w in zip(right, within, strict=True) if w
    ]
    for value, place in zip(values[inside].tolist(), found[inside].tolist(), strict=True):
        assert order.value(place) == value


def test_the_kernel_of_integers_against_python():
    for dtype in (np.int64, np.uint64):
        values = ends_of(np.dtype(dtype).str[1:])
        for least, last in itertools.product(values.tolist()[::7], (0, 1, 5, 2**31, 2**63 - 1, 2**63, 2**64 - 1)):
            out = np.empty(values.size, np.uint64)
            flag = kernels.place_integers_into(values, dtype(least), np.uint64(last), out)
            right = [min(max(v - least, 0), last) for v in values.tolist()]
            assert out.tolist() == right
            assert flag == (
                kernels.BEYOND if any(v - p != least for v, p in zip(values.tolist(), right, strict=True)) else 0
            )


def test_whole_numbers_as_objects():
    values = np.empty(4, object)
    values[:] = [2**99, np.int64(7), 0, -1]
    order = order_of(object, 100)
    assert order.positions(values[:3], "raise", "x").tolist() == [2**99, 7, 0]
    assert order.positions(values, "clip", "x").tolist() == [2**99, 7, 0, 0]
    assert order_of(object, 100, True).value(2**99 - 1) == -1
    with pytest.raises(DomainError, match=r"^x: must be from 0 to \(2\^100 - 1\)"):
        order.positions(values, "raise", "x")
    narrow = order_of(object, 8).positions(values[1:3], "raise", "x")
    assert narrow.dtype == np.uint64
    for other, place in (
        (True, 1), (1.0, 1), ("1", 0), (None, 0), (1j, 0), (7.75, 7), (-0.5, 0), (np.nan, 0), (np.inf, 2**100 - 1),
        (-np.inf, 0), (np.float32(3.5), 3), (10**400, 2**100 - 1),
    ):  # fmt: skip
        values[0] = other
        if not isinstance(other, int) or other is True:
            with pytest.raises(ValueError, match="objects must be integers;"):
                order.positions(values, "raise", "x")
        assert order.positions(values, "clip", "x").tolist() == [place, 7, 0, 0]
    assert order.positions(np.empty(0, object), "raise", "x").size == 0


# --- floats


@pytest.mark.parametrize(("bits", "dtype"), FLOATS)
def test_floats_stand_in_their_order(bits, dtype):
    """Neighbouring floats are neighbouring positions, through the subnormals and both zeros to the ends."""
    order, top = order_of(dtype, bits), np.finfo(dtype)
    assert order.value(0) == float(top.min)
    assert order.value(order.last) == float(top.max)
    assert order.value(order.last // 2) == 0.0
    draw = np.random.default_rng(bits)
    values = draw.integers(0, 256, (2000, bits // 8), np.uint8).view(dtype)[:, 0]
    small = np.array([0.0, -0.0, top.tiny, -top.tiny, top.smallest_subnormal, -top.smallest_subnormal, 1, -1], dtype)
    values = np.concatenate((values[np.isfinite(values)], small, np.array([top.max, top.min], dtype)))
    places = order.positions(values, "raise", "x")
    assert places.dtype == np.uint64
    distinct, first = np.unique(values, return_index=True)
    assert (np.diff(places[first].astype(object)) > 0).all()
    assert places.max() == order.last
    assert places.min() == 0
    assert len(np.unique(places)) == len(distinct)
    for value, place in zip(values.tolist(), places.tolist(), strict=True):
        assert order.value(place) == value
    inner = values[np.abs(values) < top.max / 2]
    with np.errstate(all="ignore"):
        after = np.nextafter(inner, dtype(np.inf))
    assert (order.positions(after, "raise", "x") == order.positions(inner, "raise", "x") + np.uint64(1)).all()


@pytest.mark.parametrize(("bits", "dtype"), FLOATS)
def test_infinities_are_clipped_to_the_ends_and_a_nan_to_the_lower(bits, dtype):
    order = order_of(dtype, bits)
    values = np.array([np.inf, 1.0, -np.inf], dtype)
    assert order.positions(values, "clip", "x").tolist()[::2] == [order.last, 0]
    with pytest.raises(DomainError, match=f"finite floats of {bits} bits"):
        order.positions(values, "raise", "x")
    for nan in (np.nan, -np.nan):
        with pytest.raises(DomainError, match="must not be NaN"):
            order.positions(np.array([1.0, nan, np.inf], dtype), "raise", "x")
        assert order.positions(np.array([1.0, nan, np.inf], dtype), "clip", "x").tolist()[1:] == [0, order.last]


def test_wide_floats_on_narrow_lines_are_rounded():
    draw = np.random.default_rng(0)
    values = draw.standard_cauchy(1000)
    for bits, dtype in FLOATS[:2]:
        order = order_of(np.float64, bits)
        assert (order.positions(values, "raise", "x") == order.positions(values.astype(dtype), "raise", "x")).all()
        assert order.positions(np.array([1e300, -1e300]), "clip", "x").tolist() == [order.last, 0]
        with pytest.raises(DomainError):
            order.positions(np.array([1e300]), "raise", "x")
        assert order.positions(np.array([1e-300, -1e-300]), "raise", "x").tolist() == [order.last // 2] * 2
    wide = order_of(np.float32, 64)
    assert wide.value(int(wide.positions(np.array([0.1], np.float32), "raise", "x")[0])) == float(np.float32(0.1))


def test_arrays_that_are_read_only_or_strided():
    values = np.arange(20, dtype=np.int64)
    values.flags.writeable = False
    assert order_of("i8", 8, False).positions(values[::2], "raise", "x").tolist() == list(range(0, 20, 2))
    floats = np.linspace(-1, 1, 20)
    floats.flags.writeable = False
    assert (np.diff(order_of("f8", 64).positions(floats, "raise", "x").astype(object)) > 0).all()


# --- what a box asks


@pytest.mark.parametrize("dtype", INTEGERS)
def test_between_is_exact_at_the_limits_of_types(dtype):
    values = ends_of(dtype)
    for bits, signed in ((64, True), (64, False), (8, True), (8, False)):
        order = order_of(dtype, bits, signed)
        top = order.least + order.last
        ends = [order.least, order.least + 1, -1, 0, 1, 127, 2**31, 2**63 - 1, 2**63, order.least + order.last]
        for low, high in itertools.combinations_with_replacement(sorted(set(ends)), 2):
            right = [(low <= int(v) or low <= order.least) and (int(v) <= high or high >= top) for v in values]
            assert order.between(values, low, high, "x").tolist() == right


def test_between_does_not_round_what_it_compares():
    """A float32 just below a float64 end is outside; integers that floats do not hold are not rounded to them."""
    order, values = order_of(np.float64, 64), np.array([0.1, 1.0, np.nan, np.inf, -np.inf], np.float32)
    assert order.between(values, 0.1000000015, 1.0, "x").tolist() == [False, True, False, False, False]
    whole = order.value(0), order.value(order.last)  # which holds for what is beyond, too
    assert order.between(values, *whole, "x").tolist() == [True, True, False, True, True]
    line = order_of(np.int64, 64)
    assert line.between(np.array([2.0**62, 2.0**62 + 1024]), 2**62 + 1, 2**63 - 1, "x").tolist() == [False, True]
    assert line.between(np.array([2.0**63]), 0, 2**63 - 2, "x").tolist() == [False]
    assert line.between(np.array([2.0**24], np.float32), 2**24 + 1, 2**25, "x").tolist() == [False]
    half = order_of(np.float16, 16)
    assert half.between(np.array([1 + 2.0**-13, 1.1]), 1.0, 1.0, "x").tolist() == [True, False]
    assert order.between(np.array([3, 5]), 3.5, math.inf, "x").tolist() == [False, True]


# --- bad input


def test_lines_that_are_refused():
    for dtype, bits, signed, said in [
        ("f8", 8, None, "must be 16, 32 or 64"), ("U3", 8, None, "dtype <U3"),
        ("c16", 64, None, "dtype complex128"), ("M8[s]", 64, None, "dtype datetime64"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=said):
            order_of(dtype, bits, signed)
    if np.dtype(np.longdouble).itemsize > 8:
        with pytest.raises(ValueError, match=r"longdouble|float128"):
            order_of(np.longdouble, 64)
    for bits in (0, -1, 1.0, True, "8", None, MOST_BITS + 1):
        with pytest.raises(ValueError, match=r"^domain_bits="):
            bits_of_each(bits, 2)
    with pytest.raises(ValueError, match="3 numbers: must be one, or 2"):
        bits_of_each([1, 2, 3], 2)
    assert bits_of_each(np.array([3, 4]), 2) == (3, 4)
    for signed in (0, 1, "yes", 1.0):
        with pytest.raises(ValueError, match=r"^signed="):
            check_signed(signed)
    assert check_signed(np.True_) is True


@pytest.mark.parametrize(
    ("dtype", "bits", "signed", "text"),
    [
        ("i8", 8, True, "from -128 to 127"), ("i8", 64, False, "from 0 to (2^64 - 1)"),
        ("i8", 64, None, "from -2^63 to (2^63 - 1)"), ("f4", 32, None, "finite floats of 32 bits"),
    ],
)  # fmt: skip
def test_lines_say_what_they_are(dtype, bits, signed, text):
    assert str(order_of(dtype, bits, signed)) == text


# --- sums of positions


LINES = {
    "bits of a float": (-1.0, 2.0**50, 0.0, 2.0**62, math.inf),
    "between points": (0.25, 8.0, -(2.0**40), 2.0**31 + 1, 1e9),
    "cut": (0.0, 2.0**-3, -5.0, 7.0, 40.0),
}


def oracle_of_positions(values, low, scale, first, last, limit):
    """Python's integers, one by one."""
    each = [min(max((min(max(float(v), -limit), limit) - low) * scale, first), last) for v in values]
    return [round(k) for k in each]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("line", LINES)
def test_positions_add_up_as_python_adds_them(line, dtype):
    rng = np.random.default_rng(3)
    ends = np.array([0.0, -0.0, 5e-324, math.inf, -math.inf, 1e300, -1e300, 0.3125, -0.0625, 4.0, 12.0, 20.0])
    for n in (0, 1, 63, 64, 65, 3000):
        with np.errstate(over="ignore", under="ignore"):
            values = (rng.normal(size=n) * 2.0 ** rng.integers(-4, 9, n)).astype(dtype)
            values[: min(n, len(ends))] = ends[:n].astype(dtype)
        out = np.array([5, -7])
        largest = kernels.sum_positions(values, np.array(LINES[line]), out)
        right = oracle_of_positions(values, *LINES[line])
        assert out.tolist() == [5 + sum(k >> 31 for k in right), -7 + sum(k & (2**31 - 1) for k in right)]
        assert largest == np.abs(values).max(initial=0.0)


@pytest.mark.parametrize("at", [0, 63, 64, 99])
def test_sums_of_positions_tell_of_a_nan(at):
    values = np.full(100, math.inf)
    values[at] = -math.nan
    assert math.isnan(kernels.sum_positions(values, np.array(LINES["cut"]), np.zeros(2, np.int64)))


def fingerprint():
    values = np.random.default_rng(4).normal(size=1001) * 3
    found = []
    for line in LINES.values():
        for dtype in (np.float64, np.float32):
            out = np.zeros(2, np.int64)
            found += [kernels.sum_positions(values.astype(dtype), np.array(line), out), *out.tolist()]
    return hashlib.sha256(repr(found).encode()).hexdigest()


def test_sums_of_positions_have_the_same_bits_on_other_cpus(fingerprint_elsewhere):
    assert fingerprint_elsewhere(__name__) == fingerprint()
