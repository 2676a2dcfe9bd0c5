"""Elementary functions with proven error bounds: ln and exp in float64, and ln in double-double.

No libm (its bits vary between machines): polynomials of our own, whose every rounding is accounted for in
elementary.md. The bounds are stated there and repeated here as constants; noise.py and the rest of the library may
decide on the strength of these constants and of nothing else. The scalar pieces hold no branch, so that LLVM
vectorises the loops that call them; polynomials are evaluated by halves (Estrin) because the latency of a Horner
chain, not the number of operations, is what limits those loops (1.8 against 1.2 ns a Gaussian proposal with AVX-512).

U is the unit roundoff 2^-53 throughout.
"""

from math import factorial

from .compile import jit
from .lanes import bits_of, float_of, fma, int64, uint64
from .layout import LN2, LOG2_E

# |ln_one(x) - ln x| <= U (LN_FIXED + LN_SLOPE |ln x|) for normal x > 0           elementary.md, theorem 1
LN_FIXED = 1.25
LN_SLOPE = 1.35
# |exp_one(x) - e^x| <= EXP_BOUND U e^x for -708 <= x <= 709                       elementary.md, theorem 2
EXP_BOUND = 2.25
# |exp_rough(x) - e^x| <= EXP_ROUGH_BOUND e^x for -708 <= x <= 709                elementary.md, theorem 3
EXP_ROUGH_BOUND = 2.0**-31
# |ln_pair(x) - ln x| <= LN_PAIR_BOUND (1 + |ln x|) for 2^-900 <= x <= 2^900    elementary.md, theorem 4
LN_PAIR_BOUND = 2.0**-80

LN2_LOW = 2.3190468138462996e-17  # LN2 + LN2_LOW is ln 2 to 2^-109
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, which then stands in the low bits
ROUNDER_BITS = 0x4338000000000000

_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_TWO_52_BITS = 0x4330000000000000
_EXPONENT_BITS = 0x7FF0000000000000

# atanh series: 2 / (2 k + 3) for k = 0 .. 8
_A0, _A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8 = (2 / (2 * k + 3) for k in range(9))
# exponential series: 1 / k! for k = 2 .. 13
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (1 / factorial(k) for k in range(2, 14))
_C3_LOW = 9.25185853854297e-18  # _C3 + _C3_LOW is 1/6 to 2^-109


@jit(inline=True)
def to_integer(x: float) -> int:
    """int64 of an integer-valued float, |x| < 2^51. Unlike a cast it is one add on machines without AVX-512."""
    return bits_of(x + ROUNDER) - int64(ROUNDER_BITS)


@jit(inline=True)
def from_uint52(k: int) -> float:
    """float64 of a uint64 below 2^52, exactly."""
    return float_of(int64(k | uint64(_TWO_52_BITS))) - 4503599627370496.0


@jit(inline=True)
def from_uint64(k: int) -> float:
    """float64 of a uint64, rounded once to nearest; the same bits as a cast, and lanes on machines without AVX-512."""
    high = float_of(int64((k >> uint64(32)) | uint64(0x4530000000000000)))
    low = float_of(int64((k & uint64(0xFFFFFFFF)) | uint64(_TWO_52_BITS)))
    return (high - 19342813118337666422669312.0) + low


@jit(inline=True)
def power_above_inverse(x: float) -> float:
    """A power of two in [1/x, 2/x) for normal x in (2^-1022, 2^1022); 2^1023 for x = 0."""
    return float_of((int64(2046) << int64(52)) - (bits_of(x) & int64(_EXPONENT_BITS)))


@jit(inline=True)
def ln_one(x: float) -> float:
    """Natural logarithm of a normal x > 0, within U (LN_FIXED + LN_SLOPE |ln x|)."""
    bits = bits_of(x)
    # x = 2^e m with sqrt(1/2) <= m < sqrt(2); the exponent is kept unsigned because AVX2 has no signed 64-bit shift
    exponent = (uint64(bits - int64(_SQRT_HALF_BITS)) + uint64(0x4000000000000000)) >> uint64(52)
    m = float_of(bits - ((int64(exponent) - int64(1024)) << int64(52)))
    e = float_of(int64(exponent) | int64(_TWO_52_BITS)) - 4503599627371520.0
    f = m - 1.0
    z = f / (2.0 + f)
    w = z * z
    w2 = w * w
    w4 = w2 * w2
    p0 = fma(w, _A1, _A0)
    p1 = fma(w, _A3, _A2)
    p2 = fma(w, _A5, _A4)
    p3 = fma(w, _A7, _A6)
    p = fma(w4, fma(w4, _A8, fma(w2, p3, p2)), fma(w2, p1, p0))
    return fma(e, LN2, fma(z * w, p, 2.0 * z))


@jit(inline=True)
def _reduce(x: float) -> tuple[float, float]:
    """(t, r) with x = n ln 2 + r, n the integer in the low bits of t, |r| <= 0.347."""
    t = fma(x, LOG2_E, ROUNDER)
    n = t - ROUNDER
    return t, fma(-n, LN2_LOW, fma(-n, LN2, x))


@jit(inline=True)
def _power_of_two(t: float) -> float:
    """2^n, n the integer in the low bits of t."""
    return float_of((bits_of(t) + int64(1023)) << int64(52))


@jit(inline=True)
def exp_one(x: float) -> float:
    """e^x for -708 <= x <= 709, within EXP_BOUND U relative."""
    t, r = _reduce(x)
    r2 = r * r
    r4 = r2 * r2
    p0 = fma(r2, fma(r, _C5, _C4), fma(r, _C3, _C2))
    p1 = fma(r2, fma(r, _C9, _C8), fma(r, _C7, _C6))
    p2 = fma(r2, fma(r, _C13, _C12), fma(r, _C11, _C10))
    p = fma(r4, fma(r4, p2, p1), p0)
    return (1.0 + fma(r2, p, r)) * _power_of_two(t)


@jit(inline=True)
def exp_rough(x: float) -> float:
    """e^x for -708 <= x <= 709, within EXP_ROUGH_BOUND relative: enough for coins of 16 bits and to find candidates."""
    t, r = _reduce(x)
    r2 = r * r
    p0 = fma(r2, fma(r, _C5, _C4), fma(r, _C3, _C2))
    p1 = fma(r2, _C8, fma(r, _C7, _C6))
    return (1.0 + fma(r2, fma(r2 * r2, p1, p0), r)) * _power_of_two(t)


# --- double-double: a number is an unevaluated sum high + low, |low| <= U |high|.
# The operations are those of Joldes, Muller and Popescu (2017); elementary.md cites their bounds.


@jit(inline=True)
def two_sum(a: float, b: float) -> tuple[float, float]:
    """a + b exactly, as (rounded sum, error)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@jit(inline=True)
def fast_two_sum(a: float, b: float) -> tuple[float, float]:
    """The same for |a| >= |b| or a = 0."""
    s = a + b
    return s, b - (s - a)


@jit(inline=True)
def two_product(a: float, b: float) -> tuple[float, float]:
    """a * b exactly, as (rounded product, error)."""
    p = a * b
    return p, fma(a, b, -p)


@jit(inline=True)
def add_pairs(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """(a + a_low) + (b + b_low) within a relative 3 U^2 + 13 U^3."""
    s, s_low = two_sum(a, b)
    t, t_low = two_sum(a_low, b_low)
    s, s_low = fast_two_sum(s, s_low + t)
    return fast_two_sum(s, t_low + s_low)


@jit(inline=True)
def multiply_pairs(a: float, a_low: float, b: float, b_low: float) -> tuple[float, float]:
    """(a + a_low) (b + b_low) within a relative 5 U^2."""
    p, p_low = two_product(a, b)
    return fast_two_sum(p, p_low + fma(a_low, b, a * b_low))


@jit
def ln_pair(x: float, x_low: float) -> tuple[float, float]:
    """ln(x + x_low) as a double-double, within LN_PAIR_BOUND (1 + |ln x|).

    One Newton step from ln_one: ln x = y + ln(1 + h), h = x e^-y - 1, with e^-y in double-double: -y = n ln 2 + 256 r,
    e^r - 1 by its series, then eight times E <- 2 E + E^2.

    Shapes    x + x_low a double-double; so is the result
    Cost      104 ns
    Source    kernels/elementary.md, theorem 4
    Requires  2^-900 <= x <= 2^900
    Used by   noise
    Oracle    mpmath at 120 bits
    """
    y = ln_one(x)
    n = (-y * LOG2_E + ROUNDER) - ROUNDER
    a, a_low = two_product(-n, LN2)
    b, b_low = two_product(-n, LN2_LOW)
    r, r_low = add_pairs(-y, 0.0, a, a_low)
    r, r_low = add_pairs(r, r_low, b, b_low)
    r, r_low = r / 256.0, r_low / 256.0
    # e^r - 1 = r + r^2/2 + r^3/6 + r^4 (1/24 + ...), where float64 does for the bracket
    tail = r * fma(r, fma(r, fma(r, _C7, _C6), _C5), _C4)
    s, s_low = fast_two_sum(_C3, tail + _C3_LOW)
    s, s_low = multiply_pairs(s, s_low, r, r_low)
    s, s_low = add_pairs(0.5, 0.0, s, s_low)
    s, s_low = multiply_pairs(s, s_low, r, r_low)
    s, s_low = add_pairs(1.0, 0.0, s, s_low)
    s, s_low = multiply_pairs(s, s_low, r, r_low)
    for _ in range(8):
        c, c_low = multiply_pairs(s, s_low, s, s_low)
        s, s_low = add_pairs(2.0 * s, 2.0 * s_low, c, c_low)
    s, s_low = add_pairs(1.0, 0.0, s, s_low)
    scale = _power_of_two(n + ROUNDER)
    h, h_low = multiply_pairs(x * scale, x_low * scale, s, s_low)
    h, h_low = add_pairs(h, h_low, -1.0, 0.0)
    h, h_low = add_pairs(h, h_low, -0.5 * h * h, 0.0)
    return add_pairs(y, 0.0, h, h_low)
