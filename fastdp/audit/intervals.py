"""Confidence limits of a probability, exact for every sample size: Clopper and Pearson 1934."""

from __future__ import annotations

from math import inf, lgamma, log, log1p, nextafter

import numpy as np

from ..support.search import greatest_float

_TERMS = 4096  # of a tail that are added up at a time


def lower_limit(k: int, n: int, alpha: float) -> float:
    """The largest p below which k or more of n happen with probability at most alpha: one side, rounded down."""
    if k == 0:
        return 0.0
    goal = log(alpha)
    return min(
        greatest_float(lambda p: p < 1 and log_tail(k, n, p) <= goal, guess=k / n / 2, tolerance=1e-12, largest=1.0),
        1.0,
    )


def upper_limit(k: int, n: int, alpha: float) -> float:
    """The same from above, rounded up."""
    return min(nextafter(1.0 - lower_limit(n - k, n, alpha), inf), 1.0)


def log_tail(k: int, n: int, p: float) -> float:
    """An upper bound of ln Pr[Bin(n, p) >= k], exact to about 1e-9 where k > n p, and 0 elsewhere.

    The tail is summed outwards from k. Beyond the mean the ratios of its terms fall and are below 1, so what is left
    after a term is at most the term times ratio / (1 - ratio). `slack` pays for the rounding of lgamma.
    """
    if k <= n * p:
        return 0.0
    if p <= 0 or k > n:
        return -inf
    parts = (lgamma(n + 1), -lgamma(k + 1), -lgamma(n - k + 1), k * log(p), (n - k) * log1p(-p))
    odds, total, term, at = p / (1 - p), 1.0, 1.0, k
    while at < n:
        stop = min(at + _TERMS, n)
        ratios = (n - np.arange(at, stop)) / np.arange(at + 1, stop + 1) * odds
        terms = term * np.cumprod(ratios)
        total += float(terms.sum())
        term, at, ratio = float(terms[-1]), stop, float(ratios[-1])
        rest = term * ratio / (1 - ratio) if ratio < 1 else inf
        if rest <= 1e-11 * total:
            total += rest
            break
    slack = 2.0**-49 * sum(abs(part) for part in parts) + 1e-10
    return min(0.0, sum(parts) + log(total) + slack)
