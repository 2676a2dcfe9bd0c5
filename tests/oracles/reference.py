"""Oracles: what fastdp computes, written down a second time, slowly and so that it can be checked by reading.

Random words (ChaCha20), certified exp and ln, the noise laws, the exact decisions behind the noise samplers, and the
choices of private selection with their laws. Everything here is integers and Fractions, except the distribution
functions of the statistical tests, which state their error. The file imports the standard library and numpy, and
shares no code with what it judges.

An interval is a pair (lo, hi) of Fractions with lo <= true value <= hi. A real parameter given as a float stands for
the rational number that the float is.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cmp_to_key, lru_cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Real = Fraction | float | int
Interval = tuple[Fraction, Fraction]
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]
Cdf = Callable[[NDArray[Any]], Bounds]
Value = TypeVar("Value")

# ---------------------------------------------------------------------------------------------------------------------
# Random words: docs/algorithms.md 7.1
# ---------------------------------------------------------------------------------------------------------------------

MASK = 0xFFFFFFFF
BLOCKS = 16  # blocks in a group: block 16 g + l is lane l of group g
GROUP = 16 * BLOCKS  # 32-bit words in a group


def _words(data: bytes | Sequence[int]) -> list[int]:
    """Little-endian 32-bit words of a byte string; a sequence of words is returned as it is."""
    if isinstance(data, bytes):
        return list(struct.unpack(f"<{len(data) // 4}I", data))
    return [int(word) for word in data]


def _quarter_round(x: list[int], a: int, b: int, c: int, d: int) -> None:
    """RFC 8439, 2.1."""
    for into, plus, mixed, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        x[into] = (x[into] + x[plus]) & MASK
        y = x[mixed] ^ x[into]
        x[mixed] = (y << turn | y >> (32 - turn)) & MASK


def chacha_block(key: bytes | Sequence[int], counter: int, nonce: bytes | Sequence[int]) -> list[int]:
    """The block function of RFC 8439, 2.3: sixteen 32-bit words, in the order in which they are serialised."""
    state = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *_words(key), counter & MASK, *_words(nonce)]
    assert len(state) == 16
    x = list(state)
    for _ in range(10):
        for column in range(4):
            _quarter_round(x, column, 4 + column, 8 + column, 12 + column)
        for column in range(4):
            _quarter_round(x, column, 4 + (column + 1) % 4, 8 + (column + 2) % 4, 12 + (column + 3) % 4)
    return [(after + before) & MASK for after, before in zip(x, state, strict=True)]


def half_word_index(b: int, r: int) -> int:
    """Where state word r of block b stands in its stream, counted in 32-bit words."""
    return GROUP * (b // BLOCKS) + BLOCKS * r + b % BLOCKS


@lru_cache(maxsize=512)
def _group(key: tuple[int, ...], s: int, g: int) -> list[int]:
    """The 256 32-bit words of group g of stream s."""
    words = [0] * GROUP
    for lane in range(BLOCKS):
        b = BLOCKS * g + lane
        block = chacha_block(key, b & MASK, (b >> 32, s & MASK, s >> 32))
        for r in range(16):
            words[BLOCKS * r + lane] = block[r]
    return words


def stream_half_words(key: bytes | Sequence[int], s: int, start: int, n: int) -> NDArray[np.uint32]:
    """32-bit words start .. start + n - 1 of stream s: word j is word j % 256 of group j // 256."""
    words = tuple(_words(key))
    return np.array([_group(words, s, j // GROUP)[j % GROUP] for j in range(start, start + n)], dtype=np.uint32)


def stream_words(key: bytes | Sequence[int], s: int, start: int, n: int) -> NDArray[np.uint64]:
    """64-bit words start .. start + n - 1 of stream s: word i is 32-bit words 2 i (low half) and 2 i + 1 (high)."""
    halves = [int(half) for half in stream_half_words(key, s, 2 * start, 2 * n)]
    return np.array([halves[2 * i] | halves[2 * i + 1] << 32 for i in range(n)], dtype=np.uint64)


def stream_word(key: bytes | Sequence[int], s: int, i: int) -> int:
    """64-bit word i of stream s."""
    return int(stream_words(key, s, i, 1)[0])


class Vector(NamedTuple):
    """A test vector of RFC 8439: the key stream that (key, counter, nonce) starts."""

    section: str
    key: bytes
    nonce: bytes
    counter: int
    stream: bytes

    @property
    def position(self) -> tuple[int, int]:
        """(stream, block) of fastdp's layout at which this key stream starts."""
        first, low, high = _words(self.nonce)
        return low | high << 32, self.counter | first << 32


def _block_vector(section: str, key: str, nonce: str, counter: int, stream: str) -> Vector:
    return Vector(section, bytes.fromhex(key), bytes.fromhex(nonce), counter, bytes.fromhex(stream))


def _cipher_vector(section: str, key: str, nonce: str, counter: int, plain: bytes, cipher: str) -> Vector:
    stream = bytes(p ^ c for p, c in zip(plain, bytes.fromhex(cipher), strict=True))
    return Vector(section, bytes.fromhex(key), bytes.fromhex(nonce), counter, stream)


# Each vector was recomputed with OpenSSL's chacha20; the test repeats that where the openssl command exists.
RFC_VECTORS = (
    _block_vector(
        "2.3.2",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "000000090000004a00000000",
        1,
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
    ),
    _block_vector(
        "A.1 #1",
        "00" * 32,
        "00" * 12,
        0,
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    _block_vector(
        "A.1 #2",
        "00" * 32,
        "00" * 12,
        1,
        "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
        "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    ),
    _block_vector(
        "A.1 #3",
        "00" * 31 + "01",
        "00" * 12,
        1,
        "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
        "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0",
    ),
    _block_vector(
        "A.1 #4",
        "00ff" + "00" * 30,
        "00" * 12,
        2,
        "72d54dfbf12ec44b362692df94137f328fea8da73990265ec1bbbea1ae9af0ca"
        "13b25aa26cb4a648cb9b9d1be65b2c0924a66c54d545ec1b7374f4872e99f096",
    ),
    _block_vector(
        "A.1 #5",
        "00" * 32,
        "00" * 11 + "02",
        0,
        "c2c64d378cd536374ae204b9ef933fcd1a8b2288b3dfa49672ab765b54ee27c7"
        "8a970e0e955c14f3a88e741b97c286f75f8fc299e8148362fa198a39531bed6d",
    ),
    _cipher_vector(
        "2.4.2",
        "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
        "000000000000004a00000000",
        1,
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
        b"sunscreen would be it.",
        "6e2e359a2568f98041ba0728dd0d6981e97e7aec1d4360c20a27afccfd9fae0b"
        "f91b65c5524733ab8f593dabcd62b3571639d624e65152ab8f530c359f0861d8"
        "07ca0dbf500d6a6156a38e088a22b65e52bc514d16ccf806818ce91ab7793736"
        "5af90bbf74a35be6b40b8eedf2785e42874d",
    ),
    _cipher_vector(
        "A.2 #1",
        "00" * 32,
        "00" * 12,
        0,
        bytes(64),
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
        "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586",
    ),
    _cipher_vector(
        "A.2 #2",
        "00" * 31 + "01",
        "00" * 11 + "02",
        1,
        b"Any submission to the IETF intended by the Contributor for publication as all or part of an IETF "
        b"Internet-Draft or RFC and any statement made within the context of an IETF activity is considered an "
        b'"IETF Contribution". Such statements include oral statements in IETF sessions, as well as written and '
        b"electronic communications made at any time or place, which are addressed to",
        "a3fbf07df3fa2fde4f376ca23e82737041605d9f4f4f57bd8cff2c1d4b7955ec"
        "2a97948bd3722915c8f3d337f7d370050e9e96d647b7c39f56e031ca5eb6250d"
        "4042e02785ececfa4b4bb5e8ead0440e20b6e8db09d881a7c6132f420e527950"
        "42bdfa7773d8a9051447b3291ce1411c680465552aa6c405b7764d5e87bea85a"
        "d00f8449ed8f72d0d662ab052691ca66424bc86d2df80ea41f43abf937d3259d"
        "c4b2d0dfb48a6c9139ddd7f76966e928e635553ba76c5c879d7b35d49eb2e62b"
        "0871cdac638939e25e8a1e0ef9d5280fa8ca328b351c3c765989cbcf3daa8b6c"
        "cc3aaf9f3979c92b3720fc88dc95ed84a1be059c6499b9fda236e7e818b04b0b"
        "c39c1e876b193bfe5569753f88128cc08aaa9b63d1a16f80ef2554d7189c411f"
        "5869ca52c5b83fa36ff216b9c1d30062bebcfd2dc5bce0911934fda79a86f6e6"
        "98ced759c3ff9b6477338f3da4f9cd8514ea9982ccafb341b2384dd902f3d1ab"
        "7ac61dd29c6f21ba5b862f3730e37cfdc4fd806c22f221",
    ),
    _cipher_vector(
        "A.2 #3",
        "1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0",
        "00" * 11 + "02",
        42,
        b"'Twas brillig, and the slithy toves\nDid gyre and gimble in the wabe:\n"
        b"All mimsy were the borogoves,\nAnd the mome raths outgrabe.",
        "62e6347f95ed87a45ffae7426f27a1df5fb69110044c0d73118effa95b01e5cf"
        "166d3df2d721caf9b21e5fb14c616871fd84c54f9d65b283196c7fe4f60553eb"
        "f39c6402c42234e32a356b3e764312a61a5532055716ead6962568f87d3f3f77"
        "04c6a8d1bcd1bf4d50d6154b6da731b187b58dfd728afa36757a797ac188d1",
    ),
)


# ---------------------------------------------------------------------------------------------------------------------
# Certified real numbers: fixed-point sums rounded down and up, and a bound for the terms left out
# ---------------------------------------------------------------------------------------------------------------------


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def _fixed(x: Fraction, p: int) -> tuple[int, int]:
    """Integers lo <= x 2^p <= hi, at most one apart."""
    scaled = x * 2**p
    return math.floor(scaled), math.ceil(scaled)


def _tight(interval: Interval, bits: int) -> bool:
    lo, hi = interval
    return (hi - lo) * (1 << bits) <= min(abs(lo), abs(hi))


def _twice_atanh(z: Fraction, p: int) -> Interval:
    """2 atanh z = 2 (z + z^3/3 + z^5/5 + ...) for 0 < z <= 1/3.

    The terms from z^n/n on sum to at most z^n / (1 - z^2) <= 2 z^n.
    """
    z_lo, z_hi = _fixed(z, p)
    power_lo, power_hi, n, lo, hi = z_lo, z_hi, 1, 0, 0
    while True:
        lo += power_lo // n
        hi += _ceil_div(power_hi, n)
        power_lo = power_lo * z_lo * z_lo >> 2 * p
        power_hi = _ceil_div(power_hi * z_hi * z_hi, 1 << 2 * p)
        n += 2
        if power_hi <= 1:
            return Fraction(2 * lo, 2**p), Fraction(2 * (hi + 2 * power_hi), 2**p)


@lru_cache(maxsize=64)
def _ln2(p: int) -> Interval:
    return _twice_atanh(Fraction(1, 3), p)


def ln_interval(x: Real, bits: int) -> Interval:
    """ln x for rational x > 0, of relative width at most 2^-bits (also where x is close to 1).

    x = m 2^e with 2/3 <= m <= 4/3, and ln m = 2 atanh((m - 1)/(m + 1)). Unless e = 0, |ln x| >= ln 2 - ln(4/3).
    """
    x = Fraction(x)
    if x <= 0:
        raise ValueError(f"x={x}: must be > 0")
    if x == 1:
        return Fraction(0), Fraction(0)
    e = x.numerator.bit_length() - x.denominator.bit_length()
    m = x / Fraction(2) ** e  # in (1/2, 2)
    if m > Fraction(4, 3):
        m, e = m / 2, e + 1
    elif m < Fraction(2, 3):
        m, e = m * 2, e - 1
    z = (m - 1) / (m + 1)
    p = bits + 16
    if z:
        p += max(0, z.denominator.bit_length() - abs(z.numerator).bit_length())
    while True:
        lo, hi = _twice_atanh(abs(z), p) if z else (Fraction(0), Fraction(0))
        if z < 0:
            lo, hi = -hi, -lo
        two_lo, two_hi = _ln2(p + abs(e).bit_length())
        result = lo + e * (two_lo if e > 0 else two_hi), hi + e * (two_hi if e > 0 else two_lo)
        if _tight(result, bits):
            return result
        p += 16


def exp_interval(x: Real, bits: int) -> Interval:
    """e^x for rational x, |x| <= 2^20, of relative width at most 2^-bits.

    x = k ln 2 + r with 0 <= r < 1, and e^r = 1 + r + r^2/2! + ...: after the term r^n/n!, n >= 1, the rest is at most
    r^n/n! (1/2 + 1/6 + ...) < r^n/n!.
    """
    x = Fraction(x)
    if x == 0:
        return Fraction(1), Fraction(1)
    if abs(x) > 2**20:
        raise ValueError(f"x={float(x)}: must be within -2^20 .. 2^20")
    p = bits + 16
    while True:
        two_lo, two_hi = _ln2(p + 24)
        k = math.floor(x / two_hi)
        r_lo = min(x - k * two_lo, x - k * two_hi)
        if r_lo < 0:
            k -= 1
        r_lo, r_hi = sorted((x - k * two_lo, x - k * two_hi))
        assert 0 <= r_lo <= r_hi < 1
        low, high = _fixed(r_lo, p)[0], _fixed(r_hi, p)[1]
        term_lo = term_hi = lo = hi = 1 << p
        n = 0
        while n == 0 or term_hi > 1:
            n += 1
            term_lo = term_lo * low // (n << p)
            term_hi = _ceil_div(term_hi * high, n << p)
            lo += term_lo
            hi += term_hi
        hi += term_hi
        if (hi - lo) << bits <= lo:
            scale = Fraction(2) ** (k - p)
            return lo * scale, hi * scale
        p += 16


def pi_interval(bits: int) -> Interval:
    """pi = 16 arctan(1/5) - 4 arctan(1/239) (Machin), of relative width at most 2^-bits.

    The series of arctan(1/n) alternates and falls, so what is left out is below the first term left out; rounding
    down costs at most one unit for the power and one for the quotient of each term.
    """
    p = bits + 16

    def arctan_inverse(n: int) -> tuple[int, int]:
        power, total, count = (1 << p) // n, 0, 0
        while power:
            total += (-1) ** count * (power // (2 * count + 1))
            power //= n * n
            count += 1
        return total - 2 * count - 1, total + 2 * count + 1

    (five_lo, five_hi), (other_lo, other_hi) = arctan_inverse(5), arctan_inverse(239)
    result = Fraction(16 * five_lo - 4 * other_hi, 2**p), Fraction(16 * five_hi - 4 * other_lo, 2**p)
    assert _tight(result, bits)
    return result


def sqrt_interval(x: Interval, p: int) -> Interval:
    """Square root of a positive interval, rounded outwards to multiples of 2^-p."""
    lo, hi = math.isqrt(math.floor(x[0] * 4**p)), math.isqrt(math.floor(x[1] * 4**p)) + 1
    return Fraction(lo, 2**p), Fraction(hi, 2**p)


def _times(*factors: Interval) -> Interval:
    """Product of intervals of non-negative numbers."""
    lo = hi = Fraction(1)
    for factor in factors:
        lo, hi = lo * factor[0], hi * factor[1]
    return lo, hi


def _over(x: Interval, y: Interval) -> Interval:
    """Quotient of intervals, x non-negative, y positive."""
    return x[0] / y[1], x[1] / y[0]


# ---------------------------------------------------------------------------------------------------------------------
# The laws of the noise: docs/algorithms.md, conventions, 7.2 and 7.3
# ---------------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _q(s: Fraction, bits: int) -> Interval:
    """q = e^{-1/s}."""
    return exp_interval(-1 / s, bits)


def geometric_tail(k: int, s: Real, bits: int = 96) -> Interval:
    """Pr[X >= k] = q^k for k >= 0, q = e^{-1/s}; relative width 2^-bits."""
    return exp_interval(-max(k, 0) / Fraction(s), bits)


def geometric_pmf(k: int, s: Real, bits: int = 96) -> Interval:
    """Pr[X = k] = (1 - q) q^k for k >= 0."""
    if k < 0:
        return Fraction(0), Fraction(0)
    lo, hi = _q(Fraction(s), bits + 72)  # 1 - q loses about log2(s) bits
    return _times((1 - hi, 1 - lo), geometric_tail(k, s, bits + 8))


def laplace_tail(k: int, s: Real, bits: int = 96) -> Interval:
    """Pr[Z >= k] for Pr[Z = z] proportional to e^{-|z|/s}: q^k/(1 + q) for k >= 1, one minus that of 1 - k else."""
    if k < 1:
        lo, hi = laplace_tail(1 - k, s, bits + 8)
        return 1 - hi, 1 - lo
    lo, hi = _q(Fraction(s), bits + 8)
    return _over(geometric_tail(k, s, bits + 8), (1 + lo, 1 + hi))


def laplace_pmf(z: int, s: Real, bits: int = 96) -> Interval:
    """Pr[Z = z] = (1 - q)/(1 + q) q^|z|."""
    lo, hi = _q(Fraction(s), bits + 8)
    return _over(geometric_pmf(abs(z), s, bits + 8), (1 + lo, 1 + hi))


@lru_cache(maxsize=256)
def gaussian_normaliser(sigma: Real, bits: int = 96) -> Interval:
    """Sum of e^{-z^2/(2 sigma^2)} over all integers z, of relative width about 2^-bits.

    sigma < 1: term by term; beyond z the terms fall by e^{-3/2} or faster, so the rest is below twice the next term.
    Otherwise Poisson summation: sigma sqrt(2 pi) (1 + 2 sum_k e^{-2 pi^2 sigma^2 k^2}); as 2 pi^2 > 19, a term
    is below 2^-(19 sigma^2 k^2), and the rest below twice its first term.
    """
    sigma = Fraction(sigma)
    p = bits + 16
    z = k = 1
    lo = hi = Fraction(1)
    if sigma < 1:
        while True:
            exponent = z * z / (2 * sigma * sigma)
            if exponent >= p:  # e^-exponent < 2^-p; both sides, and the rest
                return lo, hi + Fraction(4, 2**p)
            term = exp_interval(-exponent, p)
            lo, hi = lo + 2 * term[0], hi + 2 * term[1]
            z += 1
    pi_lo, pi_hi = pi_interval(p)
    while 19 * sigma * sigma * k * k < p:
        term_lo = exp_interval(-2 * pi_hi**2 * sigma**2 * k * k, p)[0]
        term_hi = exp_interval(-2 * pi_lo**2 * sigma**2 * k * k, p)[1]
        lo, hi = lo + 2 * term_lo, hi + 2 * term_hi
        k += 1
    hi += Fraction(4, 2**p)
    return _times((sigma, sigma), sqrt_interval((2 * pi_lo, 2 * pi_hi), p), (lo, hi))


def gaussian_pmf(z: int, sigma: Real, bits: int = 96) -> Interval:
    """Pr[Z = z] = e^{-z^2/(2 sigma^2)} / normaliser."""
    weight = exp_interval(-z * z / (2 * Fraction(sigma) ** 2), bits + 8)
    return _over(weight, gaussian_normaliser(sigma, bits + 8))


@dataclass(frozen=True)
class Law:
    """A law on the integers, for the statistical tests: `cdf(z)` bounds Pr[Z <= z] from below and from above."""

    name: str
    cdf: Cdf


CDF_ERROR = 1e-13  # covers every float computation of a distribution function below; each derives less than a third


def _around(value: NDArray[np.float64]) -> Bounds:
    return np.maximum(value - CDF_ERROR, 0.0), np.minimum(value + CDF_ERROR, 1.0)


def geometric_law(s: Real) -> Law:
    """Pr[X <= x] = 1 - e^{-(x+1)/s}. The relative error of y = (x+1)/s moves e^-y by y e^-y 2^-52 < 1e-15."""
    scale = float(s)

    def cdf(x: NDArray[Any]) -> Bounds:
        lo, hi = _around(-np.expm1(-np.maximum(np.asarray(x) + 1.0, 0.0) / scale))
        return lo, np.where(np.asarray(x) < 0, 0.0, hi)  # a negative outcome is impossible

    return Law(f"geometric(s={scale})", cdf)


def laplace_law(s: Real) -> Law:
    """Discrete Laplace: q^k/(1 + q) on either side; the error is that of `geometric_law`."""
    scale = float(s)
    q = math.exp(-1.0 / scale)

    def cdf(z: NDArray[Any]) -> Bounds:
        z = np.asarray(z, dtype=np.float64)
        outside = np.exp(-np.where(z >= 0, z + 1.0, -z) / scale) / (1.0 + q)
        return _around(np.where(z >= 0, 1.0 - outside, outside))

    return Law(f"laplace(s={scale})", cdf)


GAUSSIAN_BY_SUM = 64  # up to this sigma the distribution function is a table of certified terms


def gaussian_law(sigma: Real) -> Law:
    """Discrete Gaussian, Pr[Z = z] proportional to e^{-z^2/(2 sigma^2)}, for sigma from 2^-5 to 2^50.

    Below sigma = 0.3 almost every draw is 0 and no affordable sample tells a wrong scale; use `gaussian_pmf`.
    """
    by = _gaussian_cdf_by_sum if sigma < GAUSSIAN_BY_SUM else _gaussian_cdf_by_integral
    return Law(f"gaussian(sigma={float(sigma)})", by(sigma))


def _gaussian_cdf_by_sum(sigma: Real) -> Cdf:
    """Partial sums over |z| <= 10 sigma + 1, in units of 2^-120; the mass outside is below e^-50."""
    variance = Fraction(sigma) ** 2
    window = math.ceil(10 * sigma) + 1
    side = [math.floor(exp_interval(-z * z / (2 * variance), 128)[0] * 2**120) for z in range(1, window + 1)]
    weights = [*reversed(side), 2**120, *side]
    total, partial, table = sum(weights), 0, [0.0]
    for weight in weights:
        partial += weight
        table.append(partial / total)  # quotient of integers: correctly rounded
    values = np.array(table)

    def cdf(z: NDArray[Any]) -> Bounds:
        return _around(values[np.clip(z, -window - 1, window) + window + 1])

    return cdf


def _gaussian_cdf_by_integral(sigma: Real) -> Cdf:
    """Euler-Maclaurin at mid-points. With f the density of N(0, sigma^2) and x = z + 1/2,

        sum_{y <= z} f(y) = integral_{-oo}^x f - f'(x)/24 + 7 f'''(x)/5760 + R,   |R| <= 2 |B_6|/6! integral |f^(6)|,

    and integral |f^(6)| <= sqrt(6!)/sigma^6 (Cauchy-Schwarz for the Hermite polynomial He_6), so |R| < 0.0018/sigma^6:
    below 3e-14 from sigma = 64 on. The sum of f over all integers is 1 + 2 e^{-2 pi^2 sigma^2} + ... = 1 in a double.
    """
    scale = float(sigma)

    def cdf(z: NDArray[Any]) -> Bounds:
        u = (np.asarray(z, dtype=np.float64) + 0.5) / scale
        u = np.clip(u, -30.0, 30.0)
        below = 0.5 * np.array([math.erfc(v) for v in (-u / math.sqrt(2.0)).ravel()]).reshape(u.shape)
        density = np.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)
        first = u * density / (24.0 * scale**2)
        third = 7.0 * (u**3 - 3.0 * u) * density / (5760.0 * scale**4)
        return _around(below + first - third)

    return cdf


def finite_law(probabilities: Sequence[Real], name: str = "finite") -> Law:
    """The law on 0 .. len(probabilities) - 1 with these probabilities, which sum to 1 up to 1e-14.

    Its partial sums are correctly rounded and not widened, so that an impossible outcome keeps probability 0.
    (laws.cells_for puts light outcomes together; where each must be seen, count them and use laws.check_cells.)
    """
    partial = [Fraction(0)]
    for probability in probabilities:
        partial.append(partial[-1] + Fraction(probability))
    if abs(partial[-1] - 1) > 1e-14:
        raise ValueError(f"sum(probabilities)={float(partial[-1])}: must be 1")
    values = np.array([float(value) for value in partial])

    def cdf(z: NDArray[Any]) -> Bounds:
        value = values[np.clip(z, -1, len(probabilities) - 1) + 1]
        return value, value

    return Law(name, cdf)


# ---------------------------------------------------------------------------------------------------------------------
# Exact decisions from a prefix of the random bits: docs/algorithms.md 7.2 and 7.3
#
# A uniform U of which the first b bits are N lies in [N/2^b, (N+1)/2^b]. Every sampler below is floor(h(U)) with h
# continuous and strictly decreasing, so the value is decided as soon as it is the same at both ends; at U = 0, where
# h is infinite, it never is. (At the right end h is approached from above, and floor is continuous from above: the
# end point itself gives the value next to it.) At rational U other than those treated exactly, h is never an integer
# (Lindemann-Weierstrass: it would be an algebraic relation among powers of e), so refining always ends.
# ---------------------------------------------------------------------------------------------------------------------

START_BITS = 128


def _certified_floor(h: Callable[[int], Interval | None]) -> int:
    """floor of the real number that h(bits) encloses, by doubling the precision until both ends agree."""
    bits = START_BITS
    while bits <= 2**15:
        interval = h(bits)
        if interval is not None and math.floor(interval[0]) == math.floor(interval[1]):
            return math.floor(interval[0])
        bits *= 2
    raise ArithmeticError("an integer to within 2^-32768: h(U) is rational, which the proof excludes")


def _decide(h: Callable[[Fraction, int], Interval | None], N: int, b: int) -> int | None:
    """floor(h(U)) for U in [N/2^b, (N+1)/2^b], or None while the prefix leaves it open."""
    if not 0 <= N < 2**b:
        raise ValueError(f"N={N}: must be within 0 .. 2^{b} - 1")
    if N == 0:
        return None
    least = _certified_floor(lambda bits: h(Fraction(N + 1, 2**b), bits))
    most = _certified_floor(lambda bits: h(Fraction(N, 2**b), bits))
    return least if least == most else None


def _minus_ln(lo: Fraction, hi: Fraction, scale: Fraction, bits: int) -> Interval:
    """-scale ln w for lo <= w <= hi."""
    below, above = ln_interval(hi, bits), ln_interval(lo, bits)
    return -scale * below[1], -scale * above[0]


def geometric_from_uniform(N: int, b: int, s: Real) -> int | None:
    """floor(-s ln U): Pr[X >= x] = e^{-x/s} (docs/algorithms.md 7.2)."""
    scale = Fraction(s)
    return _decide(lambda u, bits: _minus_ln(u, u, scale, bits), N, b)


def laplace_from_uniform(N: int, b: int, s: Real) -> int | None:
    """|Z| = floor(-s ln(U (1 + q)/2)), q = e^{-1/s}: Pr[|Z| >= x] = 2 q^x/(1 + q) (docs/algorithms.md 7.2)."""
    scale = Fraction(s)

    def h(u: Fraction, bits: int) -> Interval:
        lo, hi = _q(scale, bits)
        return _minus_ln(u * (1 + lo) / 2, u * (1 + hi) / 2, scale, bits)

    return _decide(h, N, b)


@lru_cache(maxsize=4096)
def _tail_mass(sigma: Fraction, t: Fraction, a: int, bits: int) -> Interval:
    """T = g/(1 - q), g = exp(sigma^2/(2 t^2) - a/t), q = e^{-1/t}."""
    lo, hi = _q(t, bits + 64)
    return _over(exp_interval(sigma**2 / (2 * t**2) - a / t, bits), (1 - hi, 1 - lo))


def gaussian_magnitude_from_uniform(N: int, b: int, sigma: Real, t: Real, a: int) -> int | None:
    """The proposed |Z| of the discrete Gaussian sampler (docs/algorithms.md 7.3).

    R = U (B + T) with B = a - 1/2. If R < T: a + floor(-t ln(R/T)), a geometric tail from a on; otherwise
    floor(a - (R - T)), uniform on a-1 .. 0 with half a cell at 0.
    """
    sigma, t, body = Fraction(sigma), Fraction(t), Fraction(2 * a - 1, 2)

    def h(u: Fraction, bits: int) -> Interval | None:
        lo, hi = _tail_mass(sigma, t, a, bits)
        excess_lo, excess_hi = u * body - (1 - u) * hi, u * body - (1 - u) * lo  # R - T
        if excess_lo >= 0:
            return a - excess_hi, a - excess_lo
        if excess_hi >= 0:
            return None
        past_lo, past_hi = _minus_ln(u * (1 + body / hi), u * (1 + body / lo), t, bits)
        return a + past_lo, a + past_hi

    return _decide(h, N, b)


def _acceptance_exponent(m: int, sigma: Real, t: Real, a: int) -> Fraction:
    sigma, t = Fraction(sigma), Fraction(t)
    mu = Fraction(0) if m < a else sigma**2 / t
    return (m - mu) ** 2 / (2 * sigma**2)


def gaussian_accepts(N: int, b: int, m: int, sigma: Real, t: Real, a: int) -> bool | None:
    """Whether V <= exp(-(m - mu)^2/(2 sigma^2)) for V in [N/2^b, (N+1)/2^b]; mu = 0 below a, sigma^2/t from a on.

    None while the prefix of V leaves it open. At exponent 0 every V is accepted.
    """
    exponent = _acceptance_exponent(m, sigma, t, a)
    if exponent == 0:
        return True
    if exponent >= b:  # the bound is below 2^-b
        return False if N else None
    bits = START_BITS
    while True:  # the bound is irrational, so this ends
        lo, hi = exp_interval(-exponent, bits)
        if Fraction(N + 1, 2**b) <= lo:
            return True
        if Fraction(N, 2**b) >= hi:
            return False
        if Fraction(N, 2**b) <= lo and hi <= Fraction(N + 1, 2**b):
            return None
        bits *= 2


def gaussian_proposal_tail(m: int, sigma: Real, t: Real, a: int, bits: int = 96) -> Interval:
    """Pr[proposal >= m]: 1 at 0, (T + a - m)/(B + T) for 1 <= m <= a, T q^{m-a}/(B + T) from a on."""
    sigma, t = Fraction(sigma), Fraction(t)
    if m <= 0:
        return Fraction(1), Fraction(1)
    lo, hi = _tail_mass(sigma, t, a, bits + 64)
    total = lo + a - Fraction(1, 2), hi + a - Fraction(1, 2)
    if m <= a:
        return _over((lo + a - m, hi + a - m), total)
    return _over(_times((lo, hi), exp_interval((a - m) / t, bits + 64)), total)


def gaussian_acceptance(m: int, sigma: Real, t: Real, a: int, bits: int = 96) -> Interval:
    """The probability with which the proposal m is accepted."""
    return exp_interval(-_acceptance_exponent(m, sigma, t, a), bits)


def gaussian_proposal_law(sigma: Real, t: Real, a: int, n: int, bits: int = 96) -> list[Interval]:
    """Pr[m is proposed and accepted] for m = 0 .. n-1. That it is proportional to e^{-m^2/(2 sigma^2)}, with half the
    weight at 0, is the correctness of the sampler: a fair sign, ignored at 0, completes the discrete Gaussian."""
    law = []
    for m in range(n):
        above, beyond = (gaussian_proposal_tail(m + i, sigma, t, a, bits + 64) for i in (0, 1))
        proposed = above[0] - beyond[1], above[1] - beyond[0]
        law.append(_times(proposed, gaussian_acceptance(m, sigma, t, a, bits + 8)))
    return law


def settle(
    decide: Callable[[int, int], Value | None], bits: Iterable[int], N: int = 0, b: int = 0
) -> tuple[Value, int]:
    """The value that `decide` takes for the prefix (N, b) followed by `bits`, and how many bits were read in all."""
    source = iter(bits)
    while (value := decide(N, b)) is None:
        N, b = 2 * N + next(source), b + 1
    return value, b


def enumerate_law(decide: Callable[[int, int], Value | None], depth: int) -> tuple[dict[Value, Fraction], Fraction]:
    """The exact probability of each value within `depth` bits, and the probability of being undecided by then."""
    law: dict[Value, Fraction] = {}
    prefixes = [0]
    for b in range(depth + 1):
        undecided = []
        for N in prefixes:
            value = decide(N, b)
            if value is None:
                undecided.append(N)
            else:
                law[value] = law.get(value, Fraction(0)) + Fraction(1, 2**b)
        prefixes = [2 * N + bit for N in undecided for bit in (0, 1)]
    return law, Fraction(len(undecided), 2**depth)


# ---------------------------------------------------------------------------------------------------------------------
# Private selection: docs/algorithms.md 7.4 to 7.6; which bits decide what: fastdp/mechanisms/selection.md, "Bits"
#
# Scores are ints, or floats of which -inf forbids its candidate; both stand for exact numbers. `word(stream, index)`
# is where the random words come from. A number U of which the bits read so far are N, b of them, lies in
# [N/2^b, (N+1)/2^b]; each function below reads on until that decides.
# ---------------------------------------------------------------------------------------------------------------------

Score = int | float
Words = Callable[[int, int], int]
Prefixes = Iterator[tuple[int, int]]

SELECTION_BLOCK = 2048  # candidates whose weights are summed before anything is rounded
LAST_LEVEL = 64  # of a block's weight


def words_of(key: bytes | Sequence[int]) -> Words:
    """The words of a key, one by one."""
    words = tuple(_words(key))

    def word(stream: int, index: int) -> int:
        group, at = _group(words, stream, 2 * index // GROUP), 2 * index % GROUP
        return group[at] | group[at + 1] << 32

    return word


def _prefixes(word: Words, stream: int, index: int, N: int = 0, b: int = 0) -> Prefixes:
    """(N, b), then with word `index` of this stream and of every second one after it."""
    while True:
        yield N, b
        N, b, stream = N << 64 | word(stream, index), b + 64, stream + 2


def candidate_prefixes(word: Words, i: int) -> Prefixes:
    """Candidate i: its 32 bits of stream 0, then 64 of streams 1, 3, 5, ..."""
    return _prefixes(word, 1, i, word(0, i // 2) >> 32 * (i % 2) & MASK, 32)


def _is_forbidden(score: Score) -> bool:
    return score == -math.inf


def _rounded(x: Fraction) -> float:
    """To nearest, ties to even: a quotient of integers is rounded correctly."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


# by buckets


def level_height(distance: Fraction, f: float, levels: int) -> int:
    """levels - l of fastdp/mechanisms/selection.md, lemma 1, rounding for rounding."""
    rounded = _rounded(distance)
    if math.isinf(rounded):
        return 0
    z = _rounded(levels + Fraction(1, 2) - Fraction(1, 2**44) - Fraction(rounded) * Fraction(f))
    return round(Fraction(max(z, 0.0)))


def block_weights(scores: Sequence[Score], f: float, levels: int) -> list[tuple[Score, list[int]]]:
    """Of every block of 2,048 candidates: the largest score, and everybody's weight, 2^(levels - l)."""
    blocks = []
    for start in range(0, len(scores), SELECTION_BLOCK):
        block = scores[start : start + SELECTION_BLOCK]
        top = max(block)
        weights = [0] * len(block)
        if not _is_forbidden(top):
            for i, score in enumerate(block):
                height = 0 if _is_forbidden(score) else level_height(Fraction(top) - Fraction(score), f, levels)
                weights[i] = 2**height
        blocks.append((top, weights))
    return blocks


def bucket_draws(word: Words, scores: Sequence[Score], eta: float, f: float, count: int) -> list[int]:
    """The candidates of the first `count` accepted proposals.

    Proposal t: 128 bits, the upper half cut to the length of the total's; void if not below the total. It falls in the
    weight of a candidate, and is accepted with probability 2^l e^(-eta gap).
    """
    levels = 62 - (len(scores) - 1).bit_length()
    blocks = block_weights(scores, f, levels)
    top = max(scores)
    shifts = [0 if _is_forbidden(t) else level_height(Fraction(top) - Fraction(t), f, LAST_LEVEL) for t, _ in blocks]
    sums = [sum(weights) << shift for (_, weights), shift in zip(blocks, shifts, strict=True)]
    total = sum(sums)
    cut = (1 << (total >> 64).bit_length()) - 1
    found: list[int] = []
    t = -1
    while len(found) < count:
        t += 1
        rest = (word(0, 2 * t) & cut) << 64 | word(0, 2 * t + 1)
        if rest >= total:
            continue
        b = 0
        while rest >= sums[b]:
            rest -= sums[b]
            b += 1
        rest >>= shifts[b]
        weights, i = blocks[b][1], 0
        while rest >= weights[i]:
            rest -= weights[i]
            i += 1
        score = scores[b * SELECTION_BLOCK + i]
        level = levels + 1 - weights[i].bit_length() + LAST_LEVEL - shifts[b]
        if not _is_forbidden(score):
            exponent = -Fraction(eta) * (Fraction(top) - Fraction(score))
            if is_below_exp(_prefixes(word, 1, t), exponent, level):
                found.append(b * SELECTION_BLOCK + i)
    return found


def is_below_exp(prefixes: Prefixes, exponent: Fraction, doublings: int = 0) -> bool:
    """Whether U <= 2^doublings e^exponent, which is at most 1."""
    if exponent == doublings == 0:
        return True
    for N, b in prefixes:
        if exponent < -(2**20):  # below 2^-(10^6), which no prefix here comes close to, unless all its bits are 0
            if N:
                return False
            continue
        lo, hi = exp_interval(exponent, b + 40)
        if Fraction(N + 1, 2**b) <= lo * 2**doublings:
            return True
        if Fraction(N, 2**b) >= hi * 2**doublings:
            return False
    raise AssertionError("there is always another prefix")


# as a race


def log_exponential(N: int, b: int, bits: int) -> Interval | None:
    """ln E, E = -ln(1 - U); None where an end is infinite."""
    if N == 0 or 2**b == N + 1:
        return None
    least = -ln_interval(1 - Fraction(N, 2**b), bits)[1]
    most = -ln_interval(1 - Fraction(N + 1, 2**b), bits)[0]
    return ln_interval(least, bits)[0], ln_interval(most, bits)[1]


def _log_arrival(word: Words, i: int, lead: Fraction, bits: int) -> Interval:
    """ln E + lead, to about so many bits."""
    for N, b in candidate_prefixes(word, i):
        if b > bits and (found := log_exponential(N, b, bits)) is not None:
            return found[0] + lead, found[1] + lead
    raise AssertionError("there is always another prefix")


def race(word: Words, scores: Sequence[Score], eta: float, k: int, first: int = 0) -> list[int]:
    """The k candidates that arrive first, at E e^(-eta score), in their order; the first of them is number `first`."""
    top, rate = Fraction(max(scores)), Fraction(eta)
    leads = {first + i: rate * (top - Fraction(s)) for i, s in enumerate(scores) if not _is_forbidden(s)}
    # Logarithms of libm are not off by 1/4: the k first are among those that are at most 1 behind the k-th by these.
    rough = {}
    for i, lead in leads.items():
        N, b = next(itertools.islice(candidate_prefixes(word, i), 1, None))
        rough[i] = lead + Fraction(math.log(-math.log1p(-min((N + 0.5) / 2**b, 1 - 2.0**-53))))
    last = sorted(rough.values())[min(k, len(rough)) - 1]

    @lru_cache(None)
    def arrival(i: int, bits: int) -> Interval:
        return _log_arrival(word, i, leads[i], bits)

    def compare(i: int, j: int) -> int:
        bits = 60
        while i != j:
            (i_lo, i_hi), (j_lo, j_hi) = arrival(i, bits), arrival(j, bits)
            if i_hi < j_lo or j_hi < i_lo:
                return -1 if i_hi < j_lo else 1
            bits += 64
        return 0

    return sorted((i for i in rough if rough[i] <= last + 1), key=cmp_to_key(compare))[:k]


# permute-and-flip


def flips(word: Words, scores: Sequence[Score], eta: float, first: int = 0) -> list[int]:
    """The candidates whose coins, of probability e^(-eta (top - score)), show heads."""
    top, rate = Fraction(max(scores)), Fraction(eta)
    return [
        first + i
        for i, s in enumerate(scores)
        if not _is_forbidden(s) and is_below_exp(candidate_prefixes(word, first + i), -rate * (top - Fraction(s)))
    ]


def chosen_head(word: Words, heads: Sequence[int]) -> int:
    """Head number floor(U len(heads)); U is word 0 of streams 2, 4, 6, ..."""
    for N, b in _prefixes(word, 2, 0):
        if len(heads) * N // 2**b == (len(heads) * (N + 1) - 1) // 2**b:
            return heads[len(heads) * N // 2**b]
    raise AssertionError("there is always another prefix")


# the laws, exact where weights are: w = e^(eta (score - top)), 0 if forbidden


def choice_weights(scores: Sequence[Score], eta: Real, bits: int = 128) -> list[Fraction]:
    """The weights, within a relative 2^-bits."""
    top = Fraction(max(scores))
    return [
        Fraction(0) if _is_forbidden(s) else exp_interval(Fraction(eta) * (Fraction(s) - top), bits)[0] for s in scores
    ]


def exponential_law(weights: Sequence[Fraction]) -> list[Fraction]:
    """Of the exponential mechanism: a softmax."""
    total = sum(weights)
    return [w / total for w in weights]


def ordered_law(weights: Sequence[Fraction], k: int) -> dict[tuple[int, ...], Fraction]:
    """Of k draws one after the other, none of which comes back."""
    law = {(): Fraction(1)}
    for _ in range(k):
        longer = {}
        for drawn, probability in law.items():
            left = {i: w for i, w in enumerate(weights) if w and i not in drawn}
            for i, w in left.items():
                longer[(*drawn, i)] = probability * w / sum(left.values())
        law = longer
    return law


def permute_and_flip_law(weights: Sequence[Fraction]) -> list[Fraction]:
    """As it is defined: in every order, the first whose coin shows heads; the largest weight is 1."""
    law = [Fraction(0)] * len(weights)
    for order in itertools.permutations(range(len(weights))):
        left = Fraction(1, math.factorial(len(weights)))
        for i in order:
            law[i] += left * weights[i]
            left *= 1 - weights[i]
    return law


# ---------------------------------------------------------------------------------------------------------------------
# Sums of clipped gradients: docs/algorithms.md 5.5
# ---------------------------------------------------------------------------------------------------------------------

SLOPES: dict[str, Callable[[float, float, float], float]] = {  # of score, label, parameter; all rise with the score
    "SQUARED": lambda s, y, _: 2 * (s - y),
    "LOGISTIC": lambda s, y, _: -y / (1 + math.exp(min(max(y * s, -700.0), 700.0))),
    "HINGE": lambda s, y, _: -y if y * s < 1 else 0.0,
    "HUBER": lambda s, y, threshold: 2 * min(max(s - y, -threshold), threshold),
    "LINEAR": lambda s, y, _: 1.0,
}
SLACK = 2.0**-42  # relative, of everything that is computed here and there in floats

Clipped = tuple[NDArray[np.int64], NDArray[np.int64]]


def _clipped(residual: NDArray[np.float64], slopes: Iterable[float], unit: float, limit: float) -> Clipped:
    """One record: bounds of its gradient in units of the grid, clipped to `limit` and rounded toward zero."""
    norm = math.hypot(*residual.tolist())
    ends = []
    for slope in slopes:
        size = abs(slope) * unit * norm
        factor = slope * unit * (limit / size if size > limit else 1.0)
        ends += [residual * factor * (1 - SLACK), residual * factor * (1 + SLACK)]
    whole = np.trunc(ends).astype(np.int64)
    return whole.min(axis=0), whole.max(axis=0)


def clipped_gradients(
    X: NDArray[Any], labels: NDArray[Any], w: NDArray[np.float64], kind: str, *, unit: float, limit: float,
    parameter: float = 0.0, bound: float = math.inf, slope: Callable[[float, float, float], float] | None = None,
) -> Clipped:  # fmt: skip
    """Bounds of the sum of clipped gradients in units of the grid; they meet unless an entry is within a relative
    SLACK of an integer, or a score of a corner of the loss."""
    low, high = np.zeros(len(w), np.int64), np.zeros(len(w), np.int64)
    for x, y in zip(X.astype(np.float64), np.asarray(labels, np.float64).tolist(), strict=True):
        if kind in ("DISTANCE", "DEVIATION"):
            residual = x - w if kind == "DISTANCE" else np.sign(x - w)
            slopes = [-2.0 if kind == "DISTANCE" else -1.0]
        else:
            shrink = min(1.0, bound / math.hypot(*x.tolist())) if x.any() else 1.0
            residual, terms = x * shrink, (x * w).tolist()
            score, error = math.fsum(terms) * shrink, SLACK * math.fsum(map(abs, terms)) * shrink
            slopes = [(slope or SLOPES[kind])(score + e, y, parameter) for e in (-error, error)]
        for total, part in zip((low, high), _clipped(residual, slopes, unit, limit), strict=True):
            total += part
    return low, high


def descent(
    gradient: Callable[[NDArray[np.float64]], NDArray[Any]], project: Callable[[NDArray[np.float64]], NDArray[Any]],
    start: NDArray[np.float64], rates: Sequence[float],
) -> NDArray[np.float64]:  # fmt: skip
    """w_0 .. w_T of w_(t+1) = project(w_t - rate_t gradient(w_t))."""
    path = [np.asarray(start, np.float64)]
    for rate in rates:
        path.append(np.asarray(project(path[-1] - rate * gradient(path[-1]))))
    return np.array(path)


# ---------------------------------------------------------------------------------------------------------------------
# Nearest points of convex sets, by the conditions of optimality
# ---------------------------------------------------------------------------------------------------------------------


def furthest_along(direction: NDArray[np.float64], name: str, a: Any, b: Any) -> float:
    """The largest <direction, c> over a set: the balls (center a, radius b), the box (a to b), the simplex (total b).

    w* of the set is the nearest point to w exactly if that is <w - w*, w*> for the direction w - w*.
    """
    if name == "ball":
        return float(direction @ a) + b * math.hypot(*direction.tolist())
    if name == "ball_l1":
        return float(direction @ a) + b * float(np.abs(direction).max())
    if name == "box":
        return float(np.where(direction > 0, direction * b, direction * a).sum())
    assert name == "simplex"
    return b * float(direction.max())


# ---------------------------------------------------------------------------------------------------------------------
# Minimising by the exponential mechanism: docs/algorithms.md 6
# ---------------------------------------------------------------------------------------------------------------------


def loss_of(kind: str, x: Sequence[Real], w: Sequence[Real], y: Real, parameter: Real = 0) -> Interval:
    """The loss of one record at one point."""
    pairs = [(Fraction(a), Fraction(b)) for a, b in zip(x, w, strict=True)]
    score, label = sum((a * b for a, b in pairs), Fraction(0)), Fraction(y)
    rest = abs(score - label)
    if kind == "LOGISTIC":  # ln(1 + e^-z), which is ln(1 + e^z) - z
        z = label * score
        low, high = Fraction(0), Fraction(1, 2**80)  # for z above 80 ln 2
        if abs(z) < 56:
            bounds = exp_interval(-abs(z), 80)
            low, high = ln_interval(1 + bounds[0], 80)[0], ln_interval(1 + bounds[1], 80)[1]
        return low + max(-z, Fraction(0)), high + max(-z, Fraction(0))
    exact = {
        "SQUARED": lambda: rest**2,
        "HINGE": lambda: max(Fraction(0), 1 - label * score),
        "HUBER": lambda: rest**2 if rest <= parameter else parameter * (2 * rest - Fraction(parameter)),
        "DISTANCE": lambda: sum((a - b) ** 2 for a, b in pairs),
        "DEVIATION": lambda: sum(abs(a - b) for a, b in pairs),
    }[kind]()
    return Fraction(exact), Fraction(exact)


def scores_of_net(
    kind: str, X: NDArray[Any], labels: NDArray[Any], lowest: NDArray[Any], net: NDArray[Any],
    parameter: float, unit: float, limit: int, slack: float = 0.0,
) -> tuple[list[int], list[int]]:  # fmt: skip
    """Bounds of the summed losses at every point, in units, rounded down one by one and brought within 0 .. limit.

    slack   how far off the losses may be, relative to their size and that of what is subtracted
    """
    low, high = [0] * len(net), [0] * len(net)
    for x, y, least in zip(X.tolist(), labels.tolist(), lowest.tolist(), strict=True):
        for p, w in enumerate(net.tolist()):
            below, above = loss_of(kind, x, w, y, parameter)
            off = Fraction(slack) * (1 + above + abs(Fraction(least)))
            ends = [(below - off - Fraction(least)) * Fraction(unit), (above + off - Fraction(least)) * Fraction(unit)]
            first, last = (min(max(math.floor(end), 0), limit) for end in ends)
            low[p] += first
            high[p] += last
    return low, high


def line_scores(
    power: int, records: Iterable[Real], low: Real, spacing: Real, steps: int, ends: tuple[int, int], ridge: Real = 0
) -> list[Fraction]:
    """The sum of |k - t|^power over the records' positions t, and ridge (low + k spacing)^2 in spacing^power."""
    places = [min(max(round((Fraction(x) - Fraction(low)) / Fraction(spacing)), ends[0]), ends[1]) for x in records]
    return [
        sum((Fraction(abs(k - t) ** power) for t in places), Fraction(0))
        + Fraction(ridge) * (Fraction(low) + k * Fraction(spacing)) ** 2 / Fraction(spacing) ** power
        for k in range(steps + 1)
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Second moments: fastdp/optimizing/moments.md, lemma 1
# ---------------------------------------------------------------------------------------------------------------------

MOMENTS_SLACK = 2.0**-46  # relative; more than the roundings here and there, and less than the factor 1 - 2^-40


def second_moments(
    X: NDArray[Any], labels: NDArray[Any], x_norm: float, y_bound: float, unit: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bounds of the summed moments, rounded toward zero record by record: rows 0 .. d - 1 the matrix above its diagonal
    times sqrt(2), row d the products with the label, row d + 1 the diagonal."""
    d = X.shape[1]
    low, high = np.zeros((d + 2, d), np.int64), np.zeros((d + 2, d), np.int64)
    for x, y in zip(X.astype(np.float64), np.asarray(labels, np.float64).tolist(), strict=True):
        u = x / max(x_norm, math.hypot(*x.tolist()))
        v = min(max(y / y_bound, -1.0), 1.0)
        exact = np.vstack([math.sqrt(2) * np.triu(np.outer(u, u), 1), u * v, u * u]) * (unit * (1 - 2.0**-40))
        ends = np.trunc([exact * (1 - MOMENTS_SLACK), exact * (1 + MOMENTS_SLACK)]).astype(np.int64)
        low += ends.min(axis=0)
        high += ends.max(axis=0)
    return low, high
