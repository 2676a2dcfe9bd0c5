"""What an event shows of privacy: it happens with probability at least p on one input, and at most q on the other.

Each function is the least parameter of a guarantee with which such an event is possible: audit.md, lemma 4.
"""

from __future__ import annotations

from math import exp, inf, log, log1p
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import Guarantee

Array = NDArray[np.float64]

_SLACK = 1 + 1e-12  # of logarithms and normal quantiles in float64
_ORDERS = 1 + np.geomspace(1e-3, 1e4, 400)
_DELTAS = np.geomspace(1e-15, 0.9, 60).tolist()


def epsilon_of(p: float, q: float, delta: float) -> float:
    """Of (epsilon, delta)-DP: p <= e^epsilon q + delta."""
    if p - delta <= q:
        return 0.0
    return inf if q == 0 else log((p - delta) / q)


def mu_of(p: float, q: float) -> float:
    """Of Gaussian DP: the normal quantiles of p and q are at most mu apart."""
    if p <= q:
        return 0.0
    if q == 0 or p == 1:
        return inf
    return NormalDist().inv_cdf(p) - NormalDist().inv_cdf(q)


def rho_of(p: float, q: float) -> float:
    """Of zCDP: the divergence of order a of the two coins is at most rho a, for every a > 1."""
    if p <= q:
        return 0.0
    if q == 0:
        return inf
    happens = _ORDERS * log(p) + (1 - _ORDERS) * log(q)
    not_so = _ORDERS * log1p(-p) + (1 - _ORDERS) * log1p(-q) if p < 1 else np.full(_ORDERS.shape, -inf)
    return float(np.max(np.logaddexp(happens, not_so) / ((_ORDERS - 1) * _ORDERS)))


def rhos_of(p: Array, q: Array) -> Array:
    """The same for many events, at a few orders: to choose by."""
    orders = _ORDERS[::20, None]
    happens = orders * np.log(p) + (1 - orders) * np.log(q)
    not_so = orders * np.log1p(-p) + (1 - orders) * np.log1p(-q)
    return np.asarray(np.where(p > q, (np.logaddexp(happens, not_so) / ((orders - 1) * orders)).max(axis=0), 0.0))


def normal_quantile(p: Array) -> Array:
    """To about 5e-4 (Abramowitz and Stegun 26.2.23): to choose by."""
    t = np.sqrt(-2 * np.log(np.minimum(p, 1 - p)))
    x = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)))
    return np.asarray(np.where(p < 0.5, -x, x))


def points_of(guarantee: Guarantee) -> list[tuple[float, float]]:
    """(epsilon, delta) for many deltas, all of which the guarantee implies."""
    forms = guarantee.forms()
    found = [(min((form.pure for form in forms if form.leak == 0), default=inf), 0.0)]
    for delta in sorted({*_DELTAS, *(form.leak for form in forms if 0 < form.leak < 1)}):
        found.append((min(form.epsilon(delta)[0] for form in forms), delta))
    return [(epsilon, delta) for epsilon, delta in found if epsilon < inf]


def refutes(p: float, q: float, guarantee: Guarantee, points: list[tuple[float, float]]) -> bool:
    """Whether such an event is impossible under the guarantee: one of its points, or its rho or mu, forbids it."""
    forms = [form for form in guarantee.forms() if form.leak == 0]
    if mu_of(p, q) > min((form.mu for form in forms), default=inf) * _SLACK:
        return True
    if rho_of(p, q) > min((form.rho for form in forms), default=inf) * _SLACK:
        return True
    return any(
        log(p - delta) > epsilon * _SLACK + (log(q) if q else -inf) for epsilon, delta in points if p > delta * _SLACK
    )


def trade_off_of(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The least rate of missed alarms for each rate of false ones: what the points allow together."""
    curve = []
    for false in np.linspace(0, 1, 201).tolist():
        least = 0.0
        for epsilon, delta in points:
            steep = 1 - delta - (exp(epsilon) if epsilon < 700 else inf) * false if false else 1 - delta
            least = max(least, steep, exp(-epsilon) * (1 - delta - false))
        curve.append((false, least))
    return curve
