"""The statistical tests themselves: exact where they claim exactness, quiet on right laws, awake on wrong ones."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from tests import laws
from tests.oracles import noise

N = 200_000


def laplace_sample(rng: np.random.Generator, s: float, n: int = N) -> np.ndarray:
    """Discrete Laplace as the difference of two geometrics."""
    p = -math.expm1(-1.0 / s)
    return rng.geometric(p, n) - rng.geometric(p, n)


def gaussian_sample(rng: np.random.Generator, sigma: float, n: int = N) -> np.ndarray:
    """From a table of weights while it is short; a rounded normal is within 1/sigma^2 of the law where it is not."""
    if sigma > 1000:
        return np.rint(rng.normal(0.0, sigma, n)).astype(np.int64)
    z = np.arange(-math.ceil(12 * sigma) - 2, math.ceil(12 * sigma) + 3)
    weights = np.exp(-0.5 * (z / sigma) ** 2)
    return rng.choice(z, n, p=weights / weights.sum())


def false_alarms_are_rare(alarms: int, repetitions: int, rate: float) -> bool:
    """As many alarms have probability above 1e-6, if each has probability `rate`."""
    return laws.log_at_least(alarms, repetitions, rate) > math.log(1e-6)


# Binomial tails


@pytest.mark.parametrize("n", [1, 7, 40])
@pytest.mark.parametrize("p", [Fraction(1, 1000), Fraction(1, 3), Fraction(1, 2), Fraction(31, 32)])
def test_binomial_tails_are_exact_beyond_the_mean_and_never_too_small(n, p):
    mass = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    for c in range(n + 1):
        for bound, exact, tail in (
            (laws.log_at_least(c, n, float(p)), sum(mass[c:]), c > n * p),
            (laws.log_at_most(c, n, float(p)), sum(mass[: c + 1]), c < n * p),
        ):
            assert bound >= math.log(exact) - 1e-12
            if tail:
                assert bound <= math.log(exact) + 1e-8


@pytest.mark.parametrize(
    ("c", "n", "p"), [(501_500, 10**6, 0.5), (130, 10**6, 1e-4), (3, 10**7, 1e-12), (10**6, 10**6, 0.99)]
)
def test_binomial_tails_at_large_n(c, n, p):
    with mpmath.workprec(200):
        term = mpmath.binomial(n, c) * mpmath.mpf(p) ** c * (1 - mpmath.mpf(p)) ** (n - c)
        total, k = mpmath.mpf(0), c
        while k <= n and term > total * mpmath.mpf(2) ** -100:
            total += term
            term *= mpmath.mpf(n - k) / (k + 1) * p / (1 - mpmath.mpf(p))
            k += 1
        exact = mpmath.log(total)
        assert exact <= laws.log_at_least(c, n, p) <= exact + 1e-6
    assert laws.log_at_most(n - c, n, 1 - p) == pytest.approx(laws.log_at_least(c, n, p), abs=1e-3)


def test_binomial_tails_at_the_edges():
    assert laws.log_at_least(0, 10, 0.0) == 0.0
    assert laws.log_at_least(1, 10, 0.0) == -math.inf
    assert laws.log_at_least(10, 10, 1.0) == 0.0
    assert laws.log_at_most(10, 10, 1.0) == 0.0
    assert laws.log_at_most(9, 10, 1.0) == -math.inf
    assert laws.log_at_most(0, 10, 0.0) == 0.0


def test_clopper_pearson():
    assert laws.at_least(0, 100, 0.01) == 0.0
    assert laws.at_most(100, 100, 0.01) == 1.0
    assert laws.at_least(100, 100, 0.01) == pytest.approx(0.01**0.01)
    assert laws.at_most(0, 100, 0.01) == pytest.approx(1 - 0.01**0.01)
    assert laws.at_least(10, 100, 0.025) == pytest.approx(0.04900469, abs=1e-7)  # the textbook 95 % interval
    assert laws.at_most(10, 100, 0.025) == pytest.approx(0.17622260, abs=1e-7)


# Cells and distribution functions


def test_check_cells():
    rng = np.random.default_rng(1)
    counts = rng.multinomial(10_000, [0.5, 0.3, 0.2])
    assert laws.check_cells(counts, [0.5, Fraction(3, 10), (0.19, 0.21)])
    verdict = laws.check_cells(counts, [0.4, 0.4, 0.2])
    assert not verdict
    assert "REJECTED" in str(verdict)
    assert verdict.p_value < 1e-9
    assert laws.check_cells(counts, [(0.3, 0.6), (0.3, 0.6), 0.2])  # too wide to be refuted
    assert not laws.check_cells([5000, 5000, 1], [0.5, 0.5, 0.0])  # an impossible outcome
    with pytest.raises(ValueError, match="must be 3"):
        laws.check_cells(counts, [0.5, 0.5])
    with pytest.raises(ValueError, match="cover every outcome"):
        laws.check_cells(counts, [0.5, 0.3, 0.1])


def test_check_dkw_on_floats_and_integers():
    rng = np.random.default_rng(2)
    u = rng.random(N)
    assert laws.check_dkw(u, lambda x: np.clip(x, 0, 1))
    assert not laws.check_dkw(u**1.1, lambda x: np.clip(x, 0, 1))
    coin = rng.integers(0, 2, 1000)
    assert laws.check_dkw(coin, noise.finite_law([0.5, 0.5]).cdf)
    assert not laws.check_dkw(coin, noise.finite_law([0.25, 0.75]).cdf)
    # mass that the sample skips counts too: the gap is just below a sample point
    assert not laws.check_dkw(np.full(1000, 2), noise.finite_law([0, 0.5, 0.5]).cdf)
    assert laws.check_dkw(np.full(1000, 2, dtype=np.uint8), noise.finite_law([0, 0, 1]).cdf)


@pytest.mark.parametrize(
    "law",
    [
        noise.laplace_law(0.2),
        noise.laplace_law(50.0),
        noise.geometric_law(3.0),
        noise.gaussian_law(1.0),
        noise.gaussian_law(2.0**40),
    ],
    ids=lambda law: law.name,
)
def test_cells_cover_the_integers_and_have_useful_mass(law):
    cells = laws.cells_for(law, N)
    assert np.all(np.diff(cells.edges) > 0)
    lo, hi = np.array(cells.probabilities).T
    assert 1 - 1e-10 <= lo.sum() <= 1 <= hi.sum() <= 1 + 1e-10
    assert hi[0] <= 1e-11
    assert hi[-1] <= 1e-11
    assert hi.max() <= 1 / 16 or len(cells.edges) < 32
    edges = cells.edges
    assert np.array_equal(cells.count(edges), [1] * len(edges) + [0])
    assert cells.count([edges[0] - 1, edges[0] + 1, edges[-1] + 1])[[0, 1, -1]].tolist() == [1, 1, 1]


@pytest.mark.parametrize("s", [0.5, 1.0, 3.0, 1000.0, 2.0**30, 2.0**40])
def test_laplace_samples(s):
    rng = np.random.default_rng(3)
    laws.assert_law(laplace_sample(rng, s), noise.laplace_law(s), laws.wrong_scales(noise.laplace_law, s))
    p = -math.expm1(-1.0 / s)
    laws.assert_law(rng.geometric(p, N) - 1, noise.geometric_law(s), laws.wrong_scales(noise.geometric_law, s))


@pytest.mark.parametrize("sigma", [0.5, 1.0, 7.5, 100.0, 2.0**20, 2.0**40])
def test_gaussian_samples(sigma):
    rng = np.random.default_rng(4)
    laws.assert_law(
        gaussian_sample(rng, sigma),
        noise.gaussian_law(sigma),
        laws.wrong_scales(noise.gaussian_law, sigma),
    )


def test_gaussian_and_laplace_are_told_apart():
    rng = np.random.default_rng(5)
    sigma = 10.0
    assert not laws.check_law(gaussian_sample(rng, sigma), noise.laplace_law(sigma / math.sqrt(2)))
    assert not laws.check_law(laplace_sample(rng, sigma), noise.gaussian_law(sigma * math.sqrt(2)))


def test_finite_laws():
    rng = np.random.default_rng(6)
    right, wrong = (
        noise.finite_law([0.5, 0.0, 0.3, 0.2], "right"),
        noise.finite_law([0.5, 0.0, 0.28, 0.22], "wrong"),
    )
    sample = rng.choice(4, N, p=[0.5, 0.0, 0.3, 0.2])
    laws.assert_law(sample, right, [wrong])
    sample[0] = 4  # a single outcome that cannot be
    assert not laws.check_law(sample, right)
    sample[0] = 1  # inside the range it shares a cell: here the outcomes are the cells to test
    assert not laws.check_cells(np.bincount(sample), [0.5, 0.0, 0.3, 0.2])


def test_assert_law_demands_power():
    rng = np.random.default_rng(7)
    sample = laplace_sample(rng, 5.0, 1000)
    with pytest.raises(AssertionError, match="no power"):
        laws.assert_law(sample, noise.laplace_law(5.0), [noise.laplace_law(5.01)])
    with pytest.raises(AssertionError, match="REJECTED"):
        laws.assert_law(sample, noise.laplace_law(50.0))


def test_wild_draws_are_seen():
    rng = np.random.default_rng(8)
    sample = laplace_sample(rng, 5.0)
    assert laws.check_law(sample, noise.laplace_law(5.0))
    sample[:3] = 2**50
    assert not laws.check_law(sample, noise.laplace_law(5.0))
    sample = rng.geometric(0.5, N) - 1
    assert laws.check_law(sample, noise.geometric_law(1 / math.log(2)))
    sample[0] = -1
    assert not laws.check_law(sample, noise.geometric_law(1 / math.log(2)))


@pytest.mark.parametrize("make", [noise.laplace_law, noise.gaussian_law])
def test_low_bits(make):
    rng = np.random.default_rng(9)
    scale = 2.0**20
    sample = laplace_sample(rng, scale) if make is noise.laplace_law else gaussian_sample(rng, scale)
    law = make(scale)
    assert laws.check_low_bits(sample, law)
    assert laws.check_low_bits(laplace_sample(rng, 2.0), noise.laplace_law(2.0))  # valid, if blunt, at any scale
    stuck = sample | 4
    tied = np.where((sample ^ (sample >> 63)) & 1 == sample >> 63 & 1, sample, sample + 1)
    for wrong in (stuck, tied):
        assert laws.check_law(wrong, law)  # invisible to quantiles
        assert not laws.check_low_bits(wrong, law)
    one_sided = np.abs(sample)
    assert not laws.check_low_bits(one_sided, law)


@pytest.mark.parametrize("make", [noise.laplace_law, noise.gaussian_law])
def test_false_alarm_rate_is_at_most_what_is_stated(make):
    rng = np.random.default_rng(10)
    rate, repetitions, n, scale = 0.05, 300, 1500, 4.0
    law = make(scale)
    cells = laws.cells_for(law, n)
    draw = laplace_sample if make is noise.laplace_law else gaussian_sample
    alarms = np.zeros(4, dtype=int)
    for _ in range(repetitions):
        sample = draw(rng, scale, n)
        alarms += [
            not laws.check_cells(cells.count(sample), cells.probabilities, rate),
            not laws.check_dkw(sample, law.cdf, rate),
            not laws.check_law(sample, law, rate),
            not laws.check_low_bits(sample, law, 4, rate),
        ]
    assert all(false_alarms_are_rare(int(count), repetitions, rate) for count in alarms), alarms
    assert alarms[:3].sum() > 0  # not idle either


# Audit


def response_sample(rng: np.random.Generator, truth: int, epsilon: float, n: int) -> np.ndarray:
    """Randomised response: as different as epsilon allows."""
    return np.where(rng.random(n) < 1 / (1 + math.exp(-epsilon)), truth, 1 - truth)


def test_audit_refutes_what_is_false_and_nothing_else():
    rng = np.random.default_rng(11)
    p, q = (response_sample(rng, truth, 1.0, N) for truth in (1, 0))
    assert not laws.audit(p, q, 1.0).refuted
    assert not laws.audit(p, q, 0.9, 0.1).refuted
    found = laws.audit(p, q, 0.9)
    assert found.refuted
    assert "REFUTED" in str(found)
    assert 0.9 < found.epsilon_lower < 1.0
    assert not laws.audit(p, p, 0.0).refuted


@pytest.mark.parametrize("s", [2.0, 300.0])
def test_audit_sees_halved_noise(s):
    rng = np.random.default_rng(12)
    sensitivity = round(s)
    epsilon = sensitivity / s
    right = laplace_sample(rng, s), laplace_sample(rng, s) + sensitivity
    halved = laplace_sample(rng, s / 2), laplace_sample(rng, s / 2) + sensitivity
    for p, q in (right, right[::-1]):
        assert not laws.audit(p, q, epsilon).refuted
    for p, q in (halved, halved[::-1]):
        assert laws.audit(p, q, epsilon).refuted
        assert laws.audit(p / 7.0, q / 7.0, epsilon).refuted  # floats
    rows = [np.stack((sample, np.zeros_like(sample)), axis=1) for sample in halved]
    assert laws.audit(*rows, epsilon).refuted


def test_audit_finds_a_rare_event_and_respects_delta():
    rng = np.random.default_rng(13)
    p, q = rng.integers(0, 10, N), rng.integers(0, 10, N)
    p[rng.random(N) < 0.003] = 77  # an outcome that Q never has
    assert laws.audit(p, q, 2.0).refuted
    assert laws.audit(p, q, 0.1, 0.001).refuted
    assert not laws.audit(p, q, 0.1, 0.003).refuted
    assert not laws.audit(q, p, 0.1).refuted


def test_audit_bounds_are_clopper_pearson_at_half_the_alarm():
    found = laws.audit(np.ones(200, dtype=int), np.zeros(200, dtype=int), 1.0, 0.0, 0.01)
    assert found.p_lo == pytest.approx(0.005**0.01)
    assert found.q_hi == pytest.approx(1 - 0.005**0.01)
    assert found.refuted


def test_audit_false_alarm_rate():
    rng = np.random.default_rng(14)
    rate, repetitions = 0.05, 300
    alarms = sum(
        laws.audit(*(response_sample(rng, truth, 1.0, 1000) for truth in (1, 0)), 1.0, 0.0, rate).refuted
        for _ in range(repetitions)
    )
    assert false_alarms_are_rare(alarms, repetitions, rate)
