"""Oracles of optimizing: sums of clipped gradients, descent, nearest points, losses, nets, a line, second moments.

docs/algorithms.md 5.5 and 6; fastdp/optimizing/moments.md, lemma 1. Everything is computed record by record.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.oracles.numbers import Interval, Real, exp_interval, ln_interval

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


def slopes_of_net(
    kind: str, X: NDArray[Any], labels: NDArray[Any], net: NDArray[Any], parameter: float, unit: float, slack: float
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bounds of the summed gradients at every point, a point a row, in units, rounded to the nearest record by record.

    A subgradient at a corner may be any between the two sides.
    """
    low, high = np.zeros((len(net), X.shape[1]), object), np.zeros((len(net), X.shape[1]), object)
    for x, y in zip(X.tolist(), labels.tolist(), strict=True):
        for p, w in enumerate(net.tolist()):
            for j, ends in enumerate(_gradient_ends(kind, x, w, y, parameter, slack)):
                low[p, j] += math.floor(min(ends) * Fraction(unit) + Fraction(1, 2) - Fraction(slack) * Fraction(unit))
                high[p, j] += math.ceil(max(ends) * Fraction(unit) - Fraction(1, 2) + Fraction(slack) * Fraction(unit))
    return low, high


def _gradient_ends(
    kind: str, x: list[float], w: list[float], y: float, parameter: float, slack: float
) -> list[tuple[Fraction, Fraction]]:
    """What each coordinate of a record's gradient lies between."""
    own, at, label, bound = [Fraction(a) for a in x], [Fraction(a) for a in w], Fraction(y), Fraction(parameter)
    if kind == "DISTANCE":
        return [(2 * (b - a), 2 * (b - a)) for a, b in zip(own, at, strict=True)]
    if kind == "DEVIATION":
        return [
            (Fraction(0),) * 2 if a == b else (Fraction(1 if b > a else -1),) * 2 for a, b in zip(own, at, strict=True)
        ]
    score = sum((a * b for a, b in zip(own, at, strict=True)), Fraction(0))
    if kind == "SQUARED":
        ends = (2 * (score - label),) * 2
    elif kind == "HUBER":
        ends = (2 * min(max(score - label, -bound), bound),) * 2
    elif kind == "HINGE":
        margin, off = 1 - label * score, Fraction(slack)
        ends = (-label if margin > -off else Fraction(0), -label if margin > off else Fraction(0))
    else:
        slope = Fraction(-y / (1 + math.exp(float(label * score))))
        ends = (slope, slope)
    return [(ends[0] * a, ends[1] * a) for a in own]


def bound_of_tangents(
    net: NDArray[Any], values: NDArray[Any], slopes: NDArray[Any], at: NDArray[Any], slack: float
) -> list[Fraction]:
    """The largest tangent at every point, less the slack."""
    found = []
    for p in net.T.tolist():
        each = [
            Fraction(v)
            + sum((Fraction(s) * (Fraction(w) - Fraction(t)) for s, w, t in zip(*k, strict=True)), Fraction(0))
            for v, *k in zip(values.tolist(), slopes.tolist(), [p] * len(values), at.tolist(), strict=True)
        ]
        found.append(max(each) - Fraction(slack))
    return found
