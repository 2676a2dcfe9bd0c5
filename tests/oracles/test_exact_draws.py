"""The decisions from prefixes of bits: they have the laws, and mpmath agrees."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import mpmath
import pytest

from tests.oracles import exact_draws, noise, numbers
from tests.oracles.enclosures import holds, mp, width

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


@pytest.mark.parametrize("s", SCALES[:4])
def test_laplace_and_geometric_inversion_have_the_law(s):
    depth = 18
    law, undecided = exact_draws.enumerate_law(lambda N, b: exact_draws.laplace_from_uniform(N, b, s), depth)
    assert sum(law.values()) + undecided == 1
    assert undecided < Fraction(1, 2**6)
    for k in sorted(law)[:6]:
        pmf = noise.laplace_pmf(k, s) if k == 0 else numbers.times((Fraction(2), Fraction(2)), noise.laplace_pmf(k, s))
        # a value is an interval of U: at most one dyadic cell is open at either end
        assert law[k] <= pmf[1]
        assert pmf[0] <= law[k] + Fraction(2, 2**depth)
    law, undecided = exact_draws.enumerate_law(lambda N, b: exact_draws.geometric_from_uniform(N, b, s), depth)
    for k in sorted(law)[:6]:
        assert law[k] <= noise.geometric_pmf(k, s)[1]
        assert noise.geometric_pmf(k, s)[0] <= law[k] + Fraction(2, 2**depth)


@pytest.mark.parametrize("s", [Fraction(1, 3), 1.0, 1234.5, 2.0**31 + 0.5, 2.0**40])
def test_inversion_at_63_bits_against_mpmath(s):
    source = random.Random(7)
    with mpmath.workprec(300):
        q = mpmath.exp(-1 / mp(s))
        for _ in range(150):
            N, b = source.getrandbits(source.choice([20, 50, 63])), 63
            u = (mpmath.mpf(N) + mpmath.mpf(1) / 2) / 2**b
            value = exact_draws.laplace_from_uniform(N, b, s)
            if value is not None:
                assert value == mpmath.floor(-mp(s) * mpmath.log(u * (1 + q) / 2))
            value = exact_draws.geometric_from_uniform(N, b, s)
            if value is not None:
                assert value == mpmath.floor(-mp(s) * mpmath.log(u))


def test_undecided_prefixes():
    s = 1000.0
    assert exact_draws.laplace_from_uniform(0, 63, s) is None  # reaches down to U = 0
    assert exact_draws.geometric_from_uniform(0, 0, s) is None
    for k in (1, 17, 4000):  # the cell that holds the end of [X >= k] is open, its neighbours are not
        N = math.floor(noise.geometric_tail(k, s)[0] * 2**63)
        assert [exact_draws.geometric_from_uniform(N + i, 63, s) for i in (-1, 0, 1)] == [k, None, k - 1]
        N = math.floor(2 * noise.laplace_tail(k, s)[0] * 2**63)
        assert [exact_draws.laplace_from_uniform(N + i, 63, s) for i in (-1, 0, 1)] == [k, None, k - 1]
    assert exact_draws.geometric_from_uniform(2**63 - 1, 63, s) == 0  # the cell that ends at U = 1, where -s ln U = 0
    with pytest.raises(ValueError, match="must be within"):
        exact_draws.geometric_from_uniform(8, 3, s)


def test_settle_reads_as_many_bits_as_it_needs():
    source = random.Random(3)
    for _ in range(50):
        bits = [source.getrandbits(1) for _ in range(80)]
        value, used = exact_draws.resolve(lambda N, b: exact_draws.laplace_from_uniform(N, b, 20), bits)
        assert exact_draws.laplace_from_uniform(int("".join(map(str, bits)), 2), 80, 20) == value
        prefix = int("0" + "".join(map(str, bits[: used - 1])), 2)
        assert exact_draws.laplace_from_uniform(prefix, used - 1, 20) is None
        first = int("".join(map(str, bits[:2])), 2)
        assert exact_draws.resolve(lambda N, b: exact_draws.laplace_from_uniform(N, b, 20), bits[2:], first, 2) == (
            value,
            used,
        )


@pytest.mark.parametrize(("sigma", "t", "a"), PROPOSALS)
def test_gaussian_proposal_times_acceptance_is_the_gaussian(sigma, t, a):
    """docs/algorithms.md 7.3: an accepted magnitude has law e^{-m^2/(2 sigma^2)}/(B + T), and half of it at 0."""
    variance, n = Fraction(sigma) ** 2, min(a + math.ceil(8 * sigma) + 2, 140)
    law = exact_draws.gaussian_proposal_law(sigma, t, a, n)
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
    law = exact_draws.gaussian_proposal_law(sigma, t, a, n)
    accepted = sum(lo for lo, _ in law)
    for z in range(-5, 6):
        lo, hi = law[abs(z)]
        assert abs((lo if z == 0 else lo / 2) / accepted - noise.gaussian_pmf(z, sigma)[0]) < Fraction(1, 2**60), hi


@pytest.mark.parametrize(("sigma", "t", "a"), PROPOSALS)
def test_gaussian_magnitude_has_the_proposal_law(sigma, t, a):
    depth = 14 if sigma > 10 else 18
    law, undecided = exact_draws.enumerate_law(
        lambda N, b: exact_draws.gaussian_magnitude_from_uniform(N, b, sigma, t, a), depth
    )
    assert sum(law.values()) + undecided == 1
    for m in sorted(law)[: a + 3]:
        above, beyond = (exact_draws.gaussian_proposal_tail(m + i, sigma, t, a) for i in (0, 1))
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
            value = exact_draws.gaussian_magnitude_from_uniform(N, b, sigma, t, a)
            assert value is None or value == m
    assert (
        exact_draws.gaussian_magnitude_from_uniform(2**39 - 1, 39, 2.0, 2.0, 2) == 0
    )  # U = 1 is the middle of the cell of 0


@pytest.mark.parametrize(("sigma", "t", "a"), PROPOSALS)
def test_gaussian_acceptance(sigma, t, a):
    depth = 16
    for m in {0, 1, a - 1, a, a + 1, a + 5}:
        law, _ = exact_draws.enumerate_law(lambda N, b, m=m: exact_draws.gaussian_accepts(N, b, m, sigma, t, a), depth)
        lo, hi = exact_draws.gaussian_acceptance(m, sigma, t, a)
        assert law.get(True, 0) <= hi
        assert lo <= law.get(True, 0) + Fraction(1, 2**depth)
        assert law.get(True, 0) + law.get(False, 0) >= 1 - Fraction(1, 2**depth)
    assert exact_draws.gaussian_accepts(0, 24, a + 10**9, sigma, t, a) is None
    assert exact_draws.gaussian_accepts(1, 24, a + 10**9, sigma, t, a) is False


def test_decisions_are_kept_when_bits_are_added():
    decisions = [
        lambda N, b: exact_draws.laplace_from_uniform(N, b, 3.5),
        lambda N, b: exact_draws.geometric_from_uniform(N, b, 3.5),
        lambda N, b: exact_draws.gaussian_magnitude_from_uniform(N, b, 3.5, 4.0, 3),
        lambda N, b: exact_draws.gaussian_accepts(N, b, 5, 3.5, 4.0, 3),
    ]
    for decide, N in itertools.product(decisions, range(2**7)):
        value = decide(N, 7)
        assert value is None or {decide(2 * N, 8), decide(2 * N + 1, 8)} == {value}
