"""The oracles against published vectors, against mpmath, and against each other."""

from __future__ import annotations

import itertools
import math
import random
import shutil
import struct
import subprocess
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tests.oracles import reference as ref

SCALES = [Fraction(1, 5), Fraction(7, 10), Fraction(3), 37.25, 1000.0]
# (sigma, t, a): t may be any positive number and a any integer from 1 on
PROPOSALS = [
    (0.125, 0.125, 1),
    (0.5, 0.75, 1),
    (1.0, 1.0, 1),
    (1.0, 1.0, 2),
    (2.5, 2.0, 3),
    (2.5, 4.0, 1),
    (6.0, 7.5, 5),
    (20.0, 13.0, 31),
    (100.0, 100.0, 100),
]


def mp(x: Fraction | float) -> mpmath.mpf:
    x = Fraction(x)
    return mpmath.mpf(x.numerator) / x.denominator


def holds(interval: ref.Interval, value: mpmath.mpf) -> bool:
    return bool(mp(interval[0]) <= value <= mp(interval[1]))


def width(interval: ref.Interval) -> Fraction:
    return (interval[1] - interval[0]) / interval[0]


# Random words


@pytest.mark.parametrize("vector", ref.RFC_VECTORS, ids=lambda vector: vector.section)
def test_rfc_vectors(vector):
    words = []
    for i in range(-(-len(vector.stream) // 64)):
        words += ref.chacha_block(vector.key, vector.counter + i, vector.nonce)
    stream = struct.pack(f"<{len(words)}I", *words)
    assert stream[: len(vector.stream)] == vector.stream


def openssl(key: bytes, counter: int, nonce: bytes, n: int) -> bytes:
    iv = struct.pack("<I", counter) + nonce
    command = ["openssl", "enc", "-chacha20", "-nosalt", "-K", key.hex(), "-iv", iv.hex()]
    done = subprocess.run(command, input=bytes(n), capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"openssl: {done.stderr.decode().strip()}")
    return done.stdout


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl command")
def test_openssl_agrees():
    for vector in ref.RFC_VECTORS:
        assert openssl(vector.key, vector.counter, vector.nonce, len(vector.stream)) == vector.stream, vector.section
    source = random.Random(1)
    for _ in range(3):
        key, nonce, counter = source.randbytes(32), source.randbytes(12), source.getrandbits(32)
        block = ref.chacha_block(key, counter, nonce)
        assert openssl(key, counter, nonce, 64) == struct.pack("<16I", *block)


@pytest.mark.parametrize("vector", ref.RFC_VECTORS, ids=lambda vector: vector.section)
def test_rfc_vectors_in_the_stream_layout(vector):
    s, b = vector.position
    for i in range(len(vector.stream) // 64):
        words = struct.unpack("<16I", vector.stream[64 * i : 64 * i + 64])
        for r in (0, 1, 7, 15):
            j = ref.half_word_index(b + i, r)
            assert ref.stream_half_words(vector.key, s, j, 1)[0] == words[r]
            assert ref.stream_word(vector.key, s, j // 2) >> 32 * (j % 2) & 0xFFFFFFFF == words[r]


def test_stream_layout_word_by_word():
    key, source = list(range(1, 9)), random.Random(2)
    for _ in range(12):
        s, i = source.getrandbits(64), source.getrandbits(source.choice([6, 20, 36, 44, 63]))
        halves = []
        for p in (2 * (i % 128), 2 * (i % 128) + 1):
            b = 16 * (i // 128) + p % 16
            halves.append(ref.chacha_block(key, b % 2**32, [b // 2**32, s % 2**32, s // 2**32])[p // 16])
        assert ref.stream_word(key, s, i) == halves[0] + 2**32 * halves[1]


def test_stream_does_not_depend_on_chunks_and_passes_block_2_to_the_32():
    key = bytes(range(32))
    start = 2**35 - 130  # 64-bit words; block 2^32 begins at word 2^35
    whole = ref.stream_words(key, 5, start, 300)
    assert whole.dtype == np.uint64
    assert np.array_equal(np.concatenate([ref.stream_words(key, 5, start + 100 * k, 100) for k in range(3)]), whole)
    assert np.array_equal(ref.stream_half_words(key, 5, 2 * start, 600).view("<u8"), whole)
    assert len(set(whole.tolist())) == 300
    streams = [tuple(ref.stream_words(key, s, 0, 4)) for s in (0, 1, 255, 256, 2**32, 2**63)]
    assert len(set(streams)) == len(streams)


# Certified real numbers


@pytest.mark.parametrize("bits", [8, 53, 200, 700])
def test_exp_and_ln_intervals(bits):
    source = random.Random(bits)
    tiny = [1 + Fraction(1, 2**k) for k in (1, 40, 300)] + [1 - Fraction(1, 2**k) for k in (1, 40, 300)]
    points = [
        Fraction(source.getrandbits(80) + 1, source.getrandbits(70) + 1) * Fraction(2) ** source.randint(-90, 60)
        for _ in range(60)
    ]
    points += [*tiny, Fraction(2), Fraction(1, 2), Fraction(2, 3), Fraction(4, 3), Fraction(2**100), Fraction(1, 3**99)]
    with mpmath.workprec(bits + 800):
        for x in points:
            interval = ref.ln_interval(x, bits)
            assert holds(interval, mpmath.log(mp(x)))
            assert (interval[1] - interval[0]) * 2**bits <= min(map(abs, interval))
        for x in [y for point in points for y in (point, -point) if point < 2**12]:
            interval = ref.exp_interval(x, bits)
            assert holds(interval, mpmath.exp(mp(x)))
            assert width(interval) <= Fraction(1, 2**bits)


def test_exp_and_ln_at_the_edges():
    assert ref.exp_interval(0, 50) == (1, 1)
    assert ref.ln_interval(1, 50) == (0, 0)
    with pytest.raises(ValueError, match="must be > 0"):
        ref.ln_interval(0, 50)
    with pytest.raises(ValueError, match="must be within"):
        ref.exp_interval(2**21, 50)
    for x in (-(2**15), -700.5, 2**15):
        with mpmath.workprec(300):
            assert holds(ref.exp_interval(x, 60), mpmath.exp(x))


@pytest.mark.parametrize("bits", [10, 100, 500])
def test_pi_and_sqrt(bits):
    with mpmath.workprec(bits + 100):
        pi = ref.pi_interval(bits)
        assert holds(pi, +mpmath.pi)
        assert width(pi) <= Fraction(1, 2**bits)
        root = ref.sqrt_interval(pi, bits)
        assert holds(root, mpmath.sqrt(mpmath.pi))
        assert root[1] - root[0] <= Fraction(4, 2**bits)


# Laws


@pytest.mark.parametrize("s", SCALES)
def test_laplace_and_geometric_laws(s):
    bits = 96
    with mpmath.workprec(200):
        q = mpmath.exp(-1 / mp(Fraction(s)))
        for k in (0, 1, 2, 5, 40):
            assert holds(ref.geometric_tail(k, s, bits), q**k)
            assert holds(ref.geometric_pmf(k, s, bits), (1 - q) * q**k)
            assert holds(ref.laplace_tail(k + 1, s, bits), q ** (k + 1) / (1 + q))
            assert holds(ref.laplace_tail(-k, s, bits), 1 - q ** (k + 1) / (1 + q))
            assert holds(ref.laplace_pmf(-k, s, bits), q**k * (1 - q) / (1 + q))
            for interval in (ref.geometric_pmf(k, s, bits), ref.laplace_tail(k, s, bits), ref.laplace_pmf(k, s, bits)):
                assert width(interval) <= Fraction(1, 2**bits)
    window = 30
    mass = [ref.laplace_pmf(z, s) for z in range(-window, window + 1)]
    beyond = ref.laplace_tail(window + 1, s)
    assert sum(lo for lo, _ in mass) + 2 * beyond[0] < 1 < sum(hi for _, hi in mass) + 2 * beyond[1]
    assert ref.geometric_pmf(-1, s) == (0, 0)
    assert ref.geometric_tail(-3, s) == (1, 1)


@pytest.mark.parametrize("sigma", [0.125, 0.3, 0.99, 1.0, 1.5, 4.0, 11.25])
def test_gaussian_pmf_sums_to_one(sigma):
    window = math.ceil(12 * sigma) + 4
    mass = [ref.gaussian_pmf(z, sigma) for z in range(-window, window + 1)]
    assert all(width(interval) <= Fraction(1, 2**96) for interval in mass)
    assert sum(lo for lo, _ in mass) < 1 < sum(hi for _, hi in mass) + Fraction(1, 2**80)
    assert 1 - sum(lo for lo, _ in mass) < Fraction(1, 2**80)


@pytest.mark.parametrize("sigma", [2.0**-5, 0.125, 0.9375, 1.0, 3.0, 1000.0, 2.0**40])
def test_gaussian_normaliser(sigma):
    normaliser = ref.gaussian_normaliser(sigma, 120)
    assert width(normaliser) <= Fraction(1, 2**120)
    with mpmath.workprec(250):
        if sigma < 100:
            assert holds(normaliser, mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2))))
        else:
            assert holds(normaliser, sigma * mpmath.sqrt(2 * mpmath.pi))


@pytest.mark.parametrize("s", [*SCALES, 2.0**-6, 2.0**30, 2.0**40])
def test_cdfs_of_laplace_and_geometric(s):
    scale = max(1, round(s))
    points = np.array([-5 * scale, -scale, -2, -1, 0, 1, 2, scale, 5 * scale, 33 * scale])
    lo, hi = ref.laplace_law(s).cdf(points)
    geometric_lo, geometric_hi = ref.geometric_law(s).cdf(points)
    assert np.all(hi - lo <= 2.01 * ref.CDF_ERROR)
    for i, z in enumerate(points.tolist()):
        below, above = ref.laplace_tail(z + 1, s)
        assert lo[i] <= 1 - above
        assert 1 - below <= hi[i]
        below, above = ref.geometric_tail(z + 1, s)
        assert geometric_lo[i] <= 1 - above
        assert 1 - below <= geometric_hi[i]


@pytest.mark.parametrize("sigma", [2.0**-3, 0.5, 1.0, 3.75, 17.0])
def test_gaussian_cdf_by_sum(sigma):
    window = math.ceil(8 * sigma) + 2
    lo, hi = ref.gaussian_law(sigma).cdf(np.arange(-window, window + 1))
    partial_lo = partial_hi = Fraction(0)
    for i, z in enumerate(range(-window, window + 1)):
        below, above = ref.gaussian_pmf(z, sigma)
        partial_lo, partial_hi = partial_lo + below, partial_hi + above
        assert lo[i] <= partial_hi + Fraction(1, 2**40)
        assert float(partial_lo) <= hi[i]
        assert hi[i] - lo[i] <= 2.01 * ref.CDF_ERROR
        assert abs((lo[i] + hi[i]) / 2 - float(partial_lo)) <= ref.CDF_ERROR


@pytest.mark.parametrize("sigma", [64.0, 90.5])
def test_gaussian_cdf_by_integral_agrees_with_the_sum(sigma):
    points = np.arange(-6 * int(sigma), 6 * int(sigma), 7)
    exact = np.mean(ref._gaussian_cdf_by_sum(sigma)(points), axis=0)
    smooth = np.mean(ref._gaussian_cdf_by_integral(sigma)(points), axis=0)
    assert np.max(np.abs(exact - smooth)) < ref.CDF_ERROR / 3


@pytest.mark.parametrize("sigma", [2.0**12, 2.0**20, 2.0**40])
def test_gaussian_cdf_at_large_scale(sigma):
    law = ref.gaussian_law(sigma)
    with mpmath.workprec(120):
        for u in (-6, -2, -0.3, 0, 0.7, 1, 5):
            z = math.floor(u * sigma)
            x = (z + mpmath.mpf(1) / 2) / sigma
            density = mpmath.npdf(x)
            value = mpmath.ncdf(x) + x * density / (24 * sigma**2) - 7 * (x**3 - 3 * x) * density / (5760 * sigma**4)
            lo, hi = law.cdf(np.array([z]))
            assert lo[0] <= value <= hi[0]
    # one cell's probability, by certified pmf against differences of the distribution function
    z = np.array([0, 1, int(sigma)])
    mass = [float(ref.gaussian_pmf(int(k), sigma)[0]) for k in z]
    assert np.allclose(np.mean(law.cdf(z), axis=0) - np.mean(law.cdf(z - 1), axis=0), mass, atol=1e-13, rtol=0)


def test_finite_law():
    law = ref.finite_law([Fraction(1, 3), 0, Fraction(2, 3)])
    assert np.array_equal(law.cdf(np.array([-1, 0, 1, 2, 3]))[0], [0, 1 / 3, 1 / 3, 1, 1])
    with pytest.raises(ValueError, match="must be 1"):
        ref.finite_law([0.5, 0.4])


# Exact decisions


@pytest.mark.parametrize("s", SCALES[:4])
def test_laplace_and_geometric_inversion_have_the_law(s):
    depth = 18
    law, undecided = ref.enumerate_law(lambda N, b: ref.laplace_from_uniform(N, b, s), depth)
    assert sum(law.values()) + undecided == 1
    assert undecided < Fraction(1, 2**6)
    for k in sorted(law)[:6]:
        pmf = ref.laplace_pmf(k, s) if k == 0 else ref._times((Fraction(2), Fraction(2)), ref.laplace_pmf(k, s))
        # a value is an interval of U: at most one dyadic cell is open at either end
        assert law[k] <= pmf[1]
        assert pmf[0] <= law[k] + Fraction(2, 2**depth)
    law, undecided = ref.enumerate_law(lambda N, b: ref.geometric_from_uniform(N, b, s), depth)
    for k in sorted(law)[:6]:
        assert law[k] <= ref.geometric_pmf(k, s)[1]
        assert ref.geometric_pmf(k, s)[0] <= law[k] + Fraction(2, 2**depth)


@pytest.mark.parametrize("s", [Fraction(1, 3), 1.0, 1234.5, 2.0**31 + 0.5, 2.0**40])
def test_inversion_at_63_bits_against_mpmath(s):
    source = random.Random(7)
    with mpmath.workprec(300):
        q = mpmath.exp(-1 / mp(s))
        for _ in range(150):
            N, b = source.getrandbits(source.choice([20, 50, 63])), 63
            u = (mpmath.mpf(N) + mpmath.mpf(1) / 2) / 2**b
            value = ref.laplace_from_uniform(N, b, s)
            if value is not None:
                assert value == mpmath.floor(-mp(s) * mpmath.log(u * (1 + q) / 2))
            value = ref.geometric_from_uniform(N, b, s)
            if value is not None:
                assert value == mpmath.floor(-mp(s) * mpmath.log(u))


def test_undecided_prefixes():
    s = 1000.0
    assert ref.laplace_from_uniform(0, 63, s) is None  # reaches down to U = 0
    assert ref.geometric_from_uniform(0, 0, s) is None
    for k in (1, 17, 4000):  # the cell that holds the end of [X >= k] is open, its neighbours are not
        N = math.floor(ref.geometric_tail(k, s)[0] * 2**63)
        assert [ref.geometric_from_uniform(N + i, 63, s) for i in (-1, 0, 1)] == [k, None, k - 1]
        N = math.floor(2 * ref.laplace_tail(k, s)[0] * 2**63)
        assert [ref.laplace_from_uniform(N + i, 63, s) for i in (-1, 0, 1)] == [k, None, k - 1]
    assert ref.geometric_from_uniform(2**63 - 1, 63, s) == 0  # the cell that ends at U = 1, where -s ln U = 0
    with pytest.raises(ValueError, match="must be within"):
        ref.geometric_from_uniform(8, 3, s)


def test_settle_reads_as_many_bits_as_it_needs():
    source = random.Random(3)
    for _ in range(50):
        bits = [source.getrandbits(1) for _ in range(80)]
        value, used = ref.settle(lambda N, b: ref.laplace_from_uniform(N, b, 20), bits)
        assert ref.laplace_from_uniform(int("".join(map(str, bits)), 2), 80, 20) == value
        prefix = int("0" + "".join(map(str, bits[: used - 1])), 2)
        assert ref.laplace_from_uniform(prefix, used - 1, 20) is None
        first = int("".join(map(str, bits[:2])), 2)
        assert ref.settle(lambda N, b: ref.laplace_from_uniform(N, b, 20), bits[2:], first, 2) == (value, used)


@pytest.mark.parametrize(("sigma", "t", "a"), PROPOSALS)
def test_gaussian_proposal_times_acceptance_is_the_gaussian(sigma, t, a):
    """docs/algorithms.md 7.3: an accepted magnitude has law e^{-m^2/(2 sigma^2)}/(B + T), and half of it at 0."""
    variance, n = Fraction(sigma) ** 2, min(a + math.ceil(8 * sigma) + 2, 140)
    law = ref.gaussian_proposal_law(sigma, t, a, n)
    with mpmath.workprec(300):
        g = mpmath.exp(mp(variance) / (2 * mp(t) ** 2) - a / mp(t))
        total = mp(Fraction(2 * a - 1, 2)) + g / (1 - mpmath.exp(-1 / mp(t)))
        for m, interval in enumerate(law):
            assert holds(interval, mpmath.exp(-m * m / (2 * mp(variance))) / total / (2 if m == 0 else 1))
            assert width(interval) <= Fraction(1, 2**60)


@pytest.mark.parametrize(("sigma", "t", "a"), PROPOSALS[:7])
def test_gaussian_proposal_law_makes_the_pmf(sigma, t, a):
    """With a fair sign, ignored at 0, and normalised by what is accepted in all, it is the pmf."""
    n = a + math.ceil(12 * sigma) + 4
    law = ref.gaussian_proposal_law(sigma, t, a, n)
    accepted = sum(lo for lo, _ in law)
    for z in range(-5, 6):
        lo, hi = law[abs(z)]
        assert abs((lo if z == 0 else lo / 2) / accepted - ref.gaussian_pmf(z, sigma)[0]) < Fraction(1, 2**60), hi


@pytest.mark.parametrize(("sigma", "t", "a"), PROPOSALS)
def test_gaussian_magnitude_has_the_proposal_law(sigma, t, a):
    depth = 14 if sigma > 10 else 18
    law, undecided = ref.enumerate_law(lambda N, b: ref.gaussian_magnitude_from_uniform(N, b, sigma, t, a), depth)
    assert sum(law.values()) + undecided == 1
    for m in sorted(law)[: a + 3]:
        above, beyond = (ref.gaussian_proposal_tail(m + i, sigma, t, a) for i in (0, 1))
        assert law[m] <= above[1] - beyond[0]
        assert above[0] - beyond[1] <= law[m] + Fraction(2, 2**depth)


@pytest.mark.parametrize(("sigma", "t", "a"), [*PROPOSALS, (2.0**30 + 0.25, 2.0**30, 2**30 - 7), (2.0**40, 2.0**40, 1)])
def test_gaussian_magnitude_at_39_bits_against_mpmath(sigma, t, a):
    source = random.Random(11)
    with mpmath.workprec(300):
        variance, scale = mp(sigma) ** 2, mp(t)
        tail = mpmath.exp(variance / (2 * scale**2) - a / scale) / (1 - mpmath.exp(-1 / scale))
        for _ in range(100):
            N, b = source.getrandbits(source.choice([12, 38, 39])), 39
            r = (mpmath.mpf(N) + mpmath.mpf(1) / 2) / 2**b * (a - mpmath.mpf(1) / 2 + tail)
            m = a + mpmath.floor(-scale * mpmath.log(r / tail)) if r < tail else mpmath.floor(a - (r - tail))
            value = ref.gaussian_magnitude_from_uniform(N, b, sigma, t, a)
            assert value is None or value == m
    assert ref.gaussian_magnitude_from_uniform(2**39 - 1, 39, 2.0, 2.0, 2) == 0  # U = 1 is the middle of the cell of 0


@pytest.mark.parametrize(("sigma", "t", "a"), PROPOSALS)
def test_gaussian_acceptance(sigma, t, a):
    depth = 16
    for m in {0, 1, a - 1, a, a + 1, a + 5}:
        law, _ = ref.enumerate_law(lambda N, b, m=m: ref.gaussian_accepts(N, b, m, sigma, t, a), depth)
        lo, hi = ref.gaussian_acceptance(m, sigma, t, a)
        assert law.get(True, 0) <= hi
        assert lo <= law.get(True, 0) + Fraction(1, 2**depth)
        assert law.get(True, 0) + law.get(False, 0) >= 1 - Fraction(1, 2**depth)
    assert ref.gaussian_accepts(0, 24, a + 10**9, sigma, t, a) is None
    assert ref.gaussian_accepts(1, 24, a + 10**9, sigma, t, a) is False


def test_decisions_are_kept_when_bits_are_added():
    decisions = [
        lambda N, b: ref.laplace_from_uniform(N, b, 3.5),
        lambda N, b: ref.geometric_from_uniform(N, b, 3.5),
        lambda N, b: ref.gaussian_magnitude_from_uniform(N, b, 3.5, 4.0, 3),
        lambda N, b: ref.gaussian_accepts(N, b, 5, 3.5, 4.0, 3),
    ]
    for decide, N in itertools.product(decisions, range(2**7)):
        value = decide(N, 7)
        assert value is None or {decide(2 * N, 8), decide(2 * N + 1, 8)} == {value}
