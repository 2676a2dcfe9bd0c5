"""Statistical tests of sampled laws, each with a stated probability of a false alarm: docs/algorithms.md 9.B and 9.C.

Every bound holds for every sample size (exact binomial tails, Dvoretzky-Kiefer-Wolfowitz with Massart's constant), so
the stated rate is an upper bound and no test leans on a normal approximation. A test that accepts everything is worth
nothing: `assert_law` also demands that wrong laws are rejected on the same sample. Standard library and numpy only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

ALARM = 1e-9

Probability = float | Fraction | tuple[float | Fraction, float | Fraction]
Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


class Law(Protocol):
    """A law on the integers: `cdf(z)` bounds Pr[Z <= z] from below and from above; tests/oracles/noise.py has some."""

    @property
    def name(self) -> str: ...

    @property
    def cdf(self) -> Callable[[NDArray[Any]], Bounds]: ...


@dataclass(frozen=True)
class Verdict:
    """The outcome of a test. `p_value` is already corrected for the number of comparisons; false means rejected."""

    accepted: bool
    p_value: float
    message: str

    def __bool__(self) -> bool:
        return self.accepted

    def __str__(self) -> str:
        return self.message


# ---------------------------------------------------------------------------------------------------------------------
# Binomial tails
# ---------------------------------------------------------------------------------------------------------------------


def _log_tail(c: int, n: int, p: float, log_p: float, log_not_p: float) -> float:
    """An upper bound for ln Pr[Bin(n, p) >= c], exact to about 1e-8 where c > n p, and 0 elsewhere.

    The tail is summed outwards from c; beyond the mean the ratios (n - k)/(k + 1) p/(1 - p) fall and are below 1, so
    what is left after a term is at most the term times ratio/(1 - ratio). `slack` pays for the rounding of lgamma.
    """
    if c <= n * p:
        return 0.0
    if p <= 0.0 or c > n:
        return -math.inf
    parts = (math.lgamma(n + 1), -math.lgamma(c + 1), -math.lgamma(n - c + 1), c * log_p, (n - c) * log_not_p)
    odds = math.exp(log_p - log_not_p)
    total, term, k = 1.0, 1.0, c
    while k < n:
        ratios = (n - np.arange(k, min(k + 4096, n))) / np.arange(k + 1, min(k + 4096, n) + 1) * odds
        terms = term * np.cumprod(ratios)
        total += float(terms.sum())
        term, k = float(terms[-1]), k + len(terms)
        rest = term * float(ratios[-1]) / (1.0 - float(ratios[-1])) if ratios[-1] < 1.0 else math.inf
        if rest <= 1e-10 * total:
            total += rest
            break
    slack = 2.0**-49 * sum(abs(part) for part in parts) + 1e-9
    return min(0.0, sum(parts) + math.log(total) + slack)


def log_at_least(c: int, n: int, p: float) -> float:
    """Upper bound for ln Pr[Bin(n, p) >= c]."""
    if c <= 0 or p >= 1.0:
        return 0.0
    return _log_tail(c, n, p, math.log(p) if p > 0.0 else -math.inf, math.log1p(-p))


def log_at_most(c: int, n: int, p: float) -> float:
    """Upper bound for ln Pr[Bin(n, p) <= c], which is Pr[Bin(n, 1 - p) >= n - c]."""
    if c >= n or p <= 0.0:
        return 0.0
    return _log_tail(n - c, n, 1.0 - p, math.log1p(-p) if p < 1.0 else -math.inf, math.log(p))


def at_least(c: int, n: int, alarm: float) -> float:
    """Clopper-Pearson: a p that the success probability exceeds with confidence 1 - alarm, given c successes of n."""
    lo, hi = 0.0, c / n
    for _ in range(60):
        middle = (lo + hi) / 2
        lo, hi = (middle, hi) if log_at_least(c, n, middle) <= math.log(alarm) else (lo, middle)
    return lo


def at_most(c: int, n: int, alarm: float) -> float:
    """Clopper-Pearson: a p that the success probability stays below with confidence 1 - alarm."""
    lo, hi = c / n, 1.0
    for _ in range(60):
        middle = (lo + hi) / 2
        lo, hi = (lo, middle) if log_at_most(c, n, middle) <= math.log(alarm) else (middle, hi)
    return hi


# ---------------------------------------------------------------------------------------------------------------------
# Tests
# ---------------------------------------------------------------------------------------------------------------------


def _outward(probability: Probability) -> tuple[float, float]:
    """The probability as an interval of floats."""
    lo, hi = probability if isinstance(probability, tuple) else (probability, probability)
    low, high = float(lo), float(hi)
    if Fraction(low) > lo:
        low = math.nextafter(low, 0.0)
    if Fraction(high) < hi:
        high = math.nextafter(high, 1.0)
    return low, high


def check_cells(counts: ArrayLike, probabilities: Sequence[Probability], alarm: float = ALARM) -> Verdict:
    """Whether the counts of independent draws fit these cell probabilities (numbers, or intervals that hold them).

    Two exact binomial tails a cell, Bonferroni over cells and sides: equivalent to Clopper-Pearson intervals.
    """
    observed = [int(count) for count in np.asarray(counts).ravel()]
    bounds = [_outward(probability) for probability in probabilities]
    n, cells = sum(observed), len(observed)
    if len(bounds) != cells:
        raise ValueError(f"len(probabilities)={len(bounds)}: must be {cells}, the number of counts")
    if sum(lo for lo, _ in bounds) > 1.0 + 1e-9 or sum(hi for _, hi in bounds) < 1.0 - 1e-9:
        raise ValueError("probabilities: the cells must cover every outcome once")
    worst, cell = math.inf, 0
    for i, (count, (lo, hi)) in enumerate(zip(observed, bounds, strict=True)):
        tail = min(log_at_least(count, n, hi), log_at_most(count, n, lo))
        if tail < worst:
            worst, cell = tail, i
    p_value = min(1.0, 2 * cells * math.exp(worst))
    lo, hi = bounds[cell]
    message = (
        f"{'accepted' if p_value >= alarm else 'REJECTED'}: of {n} draws in {cells} cells, cell {cell} is furthest "
        f"off: {observed[cell]} draws, expected {n * lo:.6g} .. {n * hi:.6g}; p={p_value:.3g}, alarm={alarm:.3g}"
    )
    return Verdict(p_value >= alarm, p_value, message)


def check_dkw(
    samples: ArrayLike, cdf: Callable[[NDArray[Any]], NDArray[np.float64] | Bounds], alarm: float = ALARM
) -> Verdict:
    """Whether independent draws fit this distribution function: Pr[sup |F_n - F| > e] <= 2 exp(-2 n e^2) (Massart).

    Integer samples: F is constant between integers, and its left limit at z is cdf(z - 1). Float samples: F must be
    continuous. `cdf` is vectorised and may return (lo, hi).
    """
    values, multiplicity = np.unique(np.asarray(samples), return_counts=True)
    lattice = values.dtype.kind in "iu"
    if lattice:
        values = values.astype(np.int64)
    n = int(multiplicity.sum())
    empirical = np.cumsum(multiplicity) / n
    before = np.concatenate(([0.0], empirical[:-1]))

    def bounds(z: NDArray[Any]) -> Bounds:
        value = cdf(z)
        return value if isinstance(value, tuple) else (value, value)

    lo, hi = bounds(values)
    left_lo, left_hi = bounds(values - 1) if lattice else (lo, hi)
    gaps = np.maximum(
        np.maximum(empirical - hi, lo - empirical), np.maximum(before - left_hi, left_lo - before)
    )  # on [v, next v) and just below v
    worst = int(np.argmax(gaps))
    distance = max(0.0, float(gaps[worst]))
    p_value = min(1.0, 2.0 * math.exp(-2.0 * n * distance**2))
    message = (
        f"{'accepted' if p_value >= alarm else 'REJECTED'}: of {n} draws, the distribution function is furthest off "
        f"at {values[worst]}: by {distance:.3g}, allowed {math.sqrt(math.log(2.0 / alarm) / (2.0 * n)):.3g}; "
        f"p={p_value:.3g}, alarm={alarm:.3g}"
    )
    return Verdict(p_value >= alarm, p_value, message)


@dataclass(frozen=True)
class Cells:
    """A partition of the integers: cell i is edges[i-1] < z <= edges[i], and the first and last are half-lines."""

    edges: NDArray[np.int64]
    probabilities: list[Probability]

    def count(self, samples: ArrayLike) -> NDArray[np.int64]:
        where = np.searchsorted(self.edges, np.asarray(samples), side="left")
        return np.bincount(where, minlength=len(self.edges) + 1)


def cells_for(law: Law, n: int, cells: int = 32) -> Cells:
    """A partition for n draws that depends on the law alone: cells of probability about 1/cells, towards either end
    halving down to about 16/n. Where a single integer weighs more it is a cell of its own. The outermost cells have
    probability below 1e-11, so that two or three wild draws, or an impossible one, raise the alarm."""
    levels = [j / cells for j in range(1, cells)]
    tail = 0.5 / cells
    while tail * n > 16.0:
        levels += [tail, 1.0 - tail]
        tail /= 2.0
    inner = _quantiles(law, np.array(levels))
    first, last = _quantiles(law, np.array([1e-12, 1.0 - 1e-12]))
    edges = np.unique([first - 1, *inner, last])
    lo, hi = law.cdf(edges)
    upper = np.concatenate((hi, [1.0])), np.concatenate((lo, [1.0]))
    below = np.concatenate(([0.0], lo)), np.concatenate(([0.0], hi))
    highest, lowest = upper[0] - below[0], np.maximum(upper[1] - below[1], 0.0)
    return Cells(edges, [(float(a), float(b)) for a, b in zip(lowest, highest, strict=True)])


def _quantiles(law: Law, levels: NDArray[np.float64]) -> NDArray[np.int64]:
    """The least integers z, within +-2^61, at which the distribution function reaches the levels (by its bounds)."""
    lo, hi = np.full(levels.shape, -(2**61), dtype=np.int64), np.full(levels.shape, 2**61, dtype=np.int64)
    while np.any(hi - lo > 1):
        middle = lo + (hi - lo) // 2
        reached = law.cdf(middle)[0] >= levels
        lo, hi = np.where(reached, lo, middle), np.where(reached, middle, hi)
    return hi


def check_law(samples: ArrayLike, law: Law, alarm: float = ALARM) -> Verdict:
    """Cells and distribution function together, each at half the alarm rate."""
    drawn = np.asarray(samples)
    cells = cells_for(law, drawn.size)
    worse = min(
        check_cells(cells.count(drawn), cells.probabilities, alarm / 2),
        check_dkw(drawn, law.cdf, alarm / 2),
        key=lambda verdict: verdict.p_value,
    )
    return Verdict(worse.accepted, min(1.0, 2.0 * worse.p_value), f"{law.name}: {worse}")


def check_low_bits(samples: ArrayLike, law: Law, modulus: int = 16, alarm: float = ALARM) -> Verdict:
    """Whether sign and low bits are as the law has them, for laws that fall on either side of 0, of large scale.

    Quantile cells do not see a low bit that is stuck or tied to the sign. On z > 0 the residue classes of a falling
    law interleave, so their probabilities differ by at most Pr[z = 1] <= Pr[z = 0], and each is within that of the
    side's mean; z < 0 likewise. The test is always valid, and sharp once Pr[z = 0] is small against 1/modulus.
    """
    z = np.asarray(samples)
    (below_lo, upto_lo), (below_hi, upto_hi) = (bound.tolist() for bound in law.cdf(np.array([-1, 0])))
    zero = upto_hi - below_lo
    residue = np.abs(z) % modulus
    counts = [int(np.count_nonzero(z == 0))]
    probabilities: list[Probability] = [(max(0.0, upto_lo - below_hi), zero)]
    for side, lo, hi in ((z > 0, 1.0 - upto_hi, 1.0 - upto_lo), (z < 0, below_lo, below_hi)):
        counts += np.bincount(residue[side], minlength=modulus).tolist()
        probabilities += [(max(0.0, lo / modulus - zero), hi / modulus + zero)] * modulus
    verdict = check_cells(counts, probabilities, alarm)
    return Verdict(verdict.accepted, verdict.p_value, f"{law.name}, sign and |z| mod {modulus}: {verdict}")


def wrong_scales(make: Callable[[Any], Law], scale: Any) -> list[Law]:
    """The laws whose scale is off by 3/2 and 2/3."""
    return [make(Fraction(scale) * factor) for factor in (Fraction(3, 2), Fraction(2, 3))]


def assert_law(samples: ArrayLike, right: Law, wrong_laws: Sequence[Law] = (), alarm: float = ALARM) -> None:
    """Assert that the sample fits the right law and that the same sample refutes each wrong one."""
    verdict = check_law(samples, right, alarm)
    assert verdict, str(verdict)
    for wrong in wrong_laws:
        verdict = check_law(samples, wrong, alarm)
        assert not verdict, f"the test has no power, a wrong law passes (draw more?): {verdict}"


# ---------------------------------------------------------------------------------------------------------------------
# Audit
# ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Audit:
    """What samples of two neighbouring runs say about a claim (epsilon, delta): p_lo and q_hi bound the probability of
    the event under either, and `epsilon_lower` is the epsilon that they prove to be exceeded at this delta."""

    refuted: bool
    event: str
    p_lo: float
    q_hi: float
    epsilon_lower: float
    message: str

    def __str__(self) -> str:
        return self.message


def audit(
    p_samples: ArrayLike, q_samples: ArrayLike, epsilon: float, delta: float = 0.0, alarm: float = ALARM
) -> Audit:
    """Test the claim Pr_P[event] <= e^epsilon Pr_Q[event] + delta for every event (docs/algorithms.md 9.C).

    The samples are independent draws: numbers, or rows of numbers. An event is chosen on the even-numbered draws
    (half-lines, and sets of the outcomes most typical of P) and tested on the odd-numbered ones: the claim is refuted
    if p_lo > e^epsilon q_hi + delta, Clopper-Pearson bounds at alarm/2 each. A true claim is refuted with probability
    at most `alarm`. One direction only: call it again with the samples exchanged.
    """
    p, q = np.asarray(p_samples), np.asarray(q_samples)
    if p.ndim > 1:  # rows: number them in lexicographic order, which no count influences
        codes = np.unique(np.concatenate((p, q)), axis=0, return_inverse=True)[1].ravel()
        p, q = codes[: len(p)], codes[len(p) :]
    p_choose, p_test, q_choose, q_test = p[0::2], p[1::2], q[0::2], q[1::2]
    ratio = math.exp(epsilon) * (1.0 + 1e-12)

    # Bins: the distinct outcomes, or where there are many, intervals that end at quantiles of both samples. Outcome x
    # falls in the first bin whose edge is >= x; what lies above all edges is the last bin.
    edges = np.unique(np.concatenate((p_choose, q_choose)))
    if len(edges) > 1024:
        edges = np.unique([np.quantile(half, np.linspace(0, 1, 257), method="lower") for half in (p_choose, q_choose)])
    bins = len(edges) + 1
    p_count = np.bincount(np.searchsorted(edges, p_choose), minlength=bins)
    q_count = np.bincount(np.searchsorted(edges, q_choose), minlength=bins)

    # Events: initial pieces of three orders of the bins. Best: most standard deviations above the claim.
    rising = np.arange(bins)
    typical = np.argsort(-(p_count + 0.5) / (q_count + 0.5), kind="stable")
    score, chosen, event = -math.inf, rising[:0], "nothing"
    for name, order in (("<=", rising), (">", rising[::-1]), ("typical", typical)):
        p_mass = np.cumsum(p_count[order]) / len(p_choose)
        q_mass = np.cumsum(q_count[order]) / len(q_choose)
        variance = (p_mass * (1 - p_mass) + 1 / len(p_choose)) / len(p_choose)
        variance = variance + ratio**2 * (q_mass * (1 - q_mass) + 1 / len(q_choose)) / len(q_choose)
        scores = (p_mass - ratio * q_mass - delta) / np.sqrt(variance)
        best = int(np.argmax(scores[:-1]))  # the last is everything
        if scores[best] > score:
            score, chosen = float(scores[best]), order[: best + 1]
            if name == "<=":
                event = f"outcome <= {edges[best]}"
            elif name == ">":
                event = f"outcome > {edges[bins - 2 - best]}"
            else:
                event = f"{len(chosen)} of {bins} bins of outcomes"
    member = np.zeros(bins, dtype=bool)
    member[chosen] = True

    p_hits = int(np.count_nonzero(member[np.searchsorted(edges, p_test)]))
    q_hits = int(np.count_nonzero(member[np.searchsorted(edges, q_test)]))
    p_lo, q_hi = at_least(p_hits, len(p_test), alarm / 2), at_most(q_hits, len(q_test), alarm / 2)
    refuted = p_lo > ratio * q_hi + delta
    epsilon_lower = math.log((p_lo - delta) / q_hi) if p_lo > delta else -math.inf
    message = (
        f"epsilon={epsilon}, delta={delta} {'REFUTED' if refuted else 'not refuted'} by the event '{event}': "
        f"P in {p_hits} of {len(p_test)} draws (at least {p_lo:.4g}), Q in {q_hits} of {len(q_test)} "
        f"(at most {q_hi:.4g}); epsilon is above {epsilon_lower:.4g} at alarm {alarm:.3g}"
    )
    return Audit(refuted, event, p_lo, q_hi, epsilon_lower, message)
