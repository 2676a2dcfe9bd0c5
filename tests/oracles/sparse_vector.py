"""The laws of AboveThreshold and of its kin as fractions: noise of rational q = e^(-1/scale).

Threshold 0; values are integers. What is summed over the noise of the threshold are closed geometric sums, so every
probability is exact and privacy is decided by comparing fractions.
"""

import itertools
import math
from fractions import Fraction


def pmf(z, q):
    """Pr[Z = z] of discrete Laplace noise."""
    return (1 - q) / (1 + q) * q ** abs(z)


def tail(k, q):
    """Pr[Z >= k]; q = 0 is no noise."""
    return q**k / (1 + q) if k >= 1 else 1 - q ** (1 - k) / (1 + q)


def geometric_sum(q1, q2, factors):
    """Sum over i >= 0 of q1^i times the product of (c + s q2^i) over the pairs (c, s)."""
    coefficients = [Fraction(1)]
    for c, s in factors:
        coefficients = [
            c * a + s * b for a, b in zip([*coefficients, 0], [0, *coefficients], strict=True)
        ]  # times c + s y
    return sum(a / (1 - q1 * q2**j) for j, a in enumerate(coefficients))


def probability(values, answers, q1, q2, most=None):
    """The probability of these answers to these values at threshold 0, with its noise theta at most `most`.

    Exact: beyond all values every factor is a + b q2^|theta|, and geometric sums take care of the rest.
    """
    top = max((0, *values)) + 1 if most is None else most + 1
    bottom = min((0, *values, top - 1))
    total = Fraction(0)
    for theta in range(bottom + 1, top):
        above = [tail(theta - x, q2) for x in values]
        total += pmf(theta, q1) * math.prod(p if yes else 1 - p for p, yes in zip(above, answers, strict=True))
    weights = [q2 ** (1 + x - bottom) / (1 + q2) for x in values]  # of False at theta = bottom
    factors = [(1, -w) if yes else (0, w) for w, yes in zip(weights, answers, strict=True)]
    total += pmf(bottom, q1) * geometric_sum(q1, q2, factors)
    if most is None:
        weights = [q2 ** (top - x) / (1 + q2) for x in values]  # of True at theta = top
        factors = [(0, w) if yes else (1, -w) for w, yes in zip(weights, answers, strict=True)]
        total += pmf(top, q1) * geometric_sum(q1, q2, factors)
    return total


def transcripts(m, positives):
    """All sequences of at most m answers that end after so many True."""
    if m == 0 or positives == 0:
        return [()]
    return [(False, *rest) for rest in transcripts(m - 1, positives)] + [
        (True, *rest) for rest in transcripts(m - 1, positives - 1)
    ]


def law(values, q1, q2, positives=1):
    """The law of the transcript, the threshold's noise being kept over `positives` positive answers."""
    found = transcripts(len(values), positives)
    return {answers: probability(values[: len(answers)], answers, q1, q2) for answers in found}


def law_with_values(values, q1, q2, outputs):
    """The law of (place of the first True, noisy value that crossed); the rest as one outcome."""
    result = {
        (k, v): pmf(v - values[k], q2) * probability(values[:k], (False,) * k, q1, q2, most=v)
        for k in range(len(values))
        for v in outputs
    }
    result["other"] = 1 - sum(result.values())
    return result


def price(q1, q2, moved=1, positives=1):
    """e^epsilon for epsilon = moved / b1 + 2 positives moved / b2."""
    return 1 / (q1**moved * q2 ** (2 * positives * moved))


def excess(p, q, ratio):
    """The least delta with which (ln ratio, delta) holds in this direction."""
    return sum(max(0, p[outcome] - ratio * q[outcome]) for outcome in p)


def neighbours(values, moved, domain):
    return itertools.product(*([v for v in domain if abs(v - x) <= moved] for x in values))
