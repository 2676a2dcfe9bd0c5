"""The privacy curve of Gaussian noise: delta at every epsilon of N(0, 1) against N(mu, 1), and the way back.

`mu` is the sensitivity over the standard deviation. Floats search; decimals decide, rounded toward more privacy loss.
gaussian_curve.md has the formulas, what they prove of other guarantees, and the errors.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import erfc, exp, inf, log, nextafter, pi, sqrt

from ..support.rounding import context_of, decimal_of, sixty_digits, up
from ..support.search import narrow

SMALLEST_MU, LARGEST_MU = 1e-12, 1000.0  # below, the line through 0 is as good; beyond, a delta of 1 or epsilon's line
_SERIES = 6  # where the series of the tail ends and its continued fraction begins
_LINE = 1e-6  # below this epsilon, mu of pure DP is a line but for a part in 10^13


def nearly_delta(r: float, epsilon: float) -> float:
    """The least delta of continuous Gaussian noise of r times the sensitivity, in floats.

    Balle and Wang (2018): Q(epsilon r - 1 / (2 r)) - e^epsilon Q(epsilon r + 1 / (2 r)), Q(x) = Pr[N(0, 1) > x].
    """
    a, b = epsilon * r - 0.5 / r, epsilon * r + 0.5 / r
    if b > 25:  # e^epsilon and Q(b) would leave the range together: e^epsilon Q(b) = phi(a) m(b), m the Mills ratio
        mills = 1 / (b + 1 / (b + 2 / (b + 3 / (b + 4 / b))))
        second = exp(-a * a / 2) / sqrt(2 * pi) * mills
    else:
        second = exp(epsilon) * erfc(b / sqrt(2)) / 2
    return erfc(a / sqrt(2)) / 2 - second


# --- tails in 100 digits, of which 40 and more are right: gaussian_curve.md, arithmetic

_CONTEXT = context_of(100)
_ROOT_TWO_PI = Decimal(
    "2.5066282746310005024157652848110452530069867406099383166299235763422936546078419749"
    "46595838378057266116099726652038879"
)


def _mills(x: Decimal) -> Decimal:
    """(1 - Phi(x)) / phi(x) for x >= 0."""
    c = _CONTEXT
    if x < _SERIES:  # Q = 1/2 - phi (x + x^3/3 + x^5/15 + ...)
        square, term, total, k = c.multiply(x, x), x, x, 1
        while term > Decimal("1e-95"):
            k += 2
            term = c.divide(c.multiply(term, square), Decimal(k))
            total = c.add(total, term)
        half = c.multiply(c.divide(_ROOT_TWO_PI, Decimal(2)), c.exp(c.divide(square, Decimal(2))))
        return c.subtract(half, total)
    found = x
    for k in range(200, 0, -1):
        found = c.add(x, c.divide(Decimal(k), found))
    return c.divide(Decimal(1), found)


def _density(x: Decimal) -> Decimal:
    c = _CONTEXT
    return c.divide(c.exp(c.divide(c.multiply(x, x), Decimal(-2))), _ROOT_TWO_PI)


def _delta(mu: Decimal, epsilon: Decimal) -> tuple[Decimal, Decimal]:
    """delta, and e^epsilon Q(b), which is minus its derivative: with 40 digits."""
    c = _CONTEXT
    a = c.subtract(c.divide(epsilon, mu), c.divide(mu, Decimal(2)))
    b = c.add(a, mu)
    second = _mills(b)
    if a >= 0:
        density = _density(a)
        return c.multiply(density, c.subtract(_mills(a), second)), c.multiply(density, second)
    density = _density(a)
    first = c.subtract(Decimal(1), c.multiply(density, _mills(-a)))
    return c.subtract(first, c.multiply(density, second)), c.multiply(density, second)


@sixty_digits
def delta_of_mu(mu: float, epsilon: float) -> float:
    """The least delta at epsilon of mu-Gaussian DP, rounded up.

    Parameters
    ----------
    mu : float >= 0
        Of Gaussian DP.
    epsilon : float >= 0
        The bound of the privacy loss.

    Returns
    -------
    float
        Rounded up.

    Notes
    -----
    Proof    gaussian_curve.md, theorem 1.
    """
    if mu < SMALLEST_MU:
        mu = SMALLEST_MU if mu else 0.0
    if mu == 0:
        return 0.0
    if mu > LARGEST_MU:
        return 1.0
    if epsilon > 2 * LARGEST_MU**2:
        epsilon = 2 * LARGEST_MU**2
    return min(1.0, up(_delta(Decimal(mu), Decimal(epsilon))[0]))


@lru_cache(4096)
@sixty_digits
def epsilon_of_mu(mu: float, delta: float) -> float:
    """The least epsilon at delta of mu-Gaussian DP, to 12 digits and up.

    Parameters
    ----------
    mu : float >= 0
        Of Gaussian DP.
    delta : float in (0, 1)
        The delta of the result.

    Returns
    -------
    float
        Rounded up.

    Notes
    -----
    Proof    gaussian_curve.md, theorem 1.
    """
    if mu == 0:
        return 0.0
    if mu > LARGEST_MU or delta < 1e-300:
        return inf
    mu = max(mu, SMALLEST_MU)
    shift, goal = Decimal(mu), Decimal(delta)
    if _delta(shift, Decimal(0))[0] <= goal:
        return 0.0
    # the loss is N(mu^2 / 2, mu^2), and its tail at epsilon is above delta
    high = mu * mu / 2 + mu * sqrt(2 * log(1 / delta))
    low = 0.0
    epsilon = Decimal(narrow(lambda e: nearly_delta(1 / mu, e) <= delta, low, high, 1e-9, lambda a, b: (a + b) / 2)[1])
    for _ in range(60):  # Newton's steps on the logarithm, which is concave: from above they do not overshoot
        found, slope = _delta(shift, epsilon)
        step = _CONTEXT.multiply(_CONTEXT.divide(found, slope), _CONTEXT.ln(_CONTEXT.divide(found, goal)))
        epsilon = max(_CONTEXT.add(epsilon, step), Decimal(0))
        if abs(step) <= epsilon * Decimal("1e-25"):
            break
    margin = 1e-15
    candidate = up(epsilon)
    while _delta(shift, Decimal(candidate))[0] * (1 + Decimal("1e-35")) > goal:
        candidate, margin = candidate * (1 + margin) + 1e-300, 2 * margin
    return candidate


# --- what other guarantees imply: gaussian_curve.md, theorems 2 and 3


@lru_cache(4096)
@sixty_digits
def mu_of_pure(epsilon: float) -> float:
    """The least mu of Gaussian DP that epsilon-DP implies: 2 Phi^-1(e^epsilon / (1 + e^epsilon)), rounded up.

    Parameters
    ----------
    epsilon : float >= 0
        The bound of the privacy loss.

    Returns
    -------
    float
        Rounded up, to 12 digits.

    Notes
    -----
    Proof    gaussian_curve.md, theorem 2.
    """
    if epsilon == inf:
        return inf
    line = Decimal(epsilon) * _ROOT_TWO_PI / 2
    if epsilon < _LINE:
        return up(line)
    if epsilon > 4 * LARGEST_MU:  # Q(x) <= e^(-x^2 / 2) / 2
        return up(2 * _CONTEXT.sqrt(2 * Decimal(epsilon)))
    tail = 1 / (1 + Decimal(epsilon).exp())
    goal = -tail.ln()
    x = _CONTEXT.sqrt(2 * goal) if epsilon > 1 else line / 2
    for _ in range(60):  # Newton's steps on -ln Q, which is convex and rises: from above
        mills = _mills(x)
        step = (goal + _CONTEXT.ln(_density(x) * mills)) * mills
        x += step
        if abs(step) <= x * Decimal("1e-30"):
            break
    return min(up(line), up(2 * x * (1 + Decimal("1e-25"))))


def mu_of_range(eta: float) -> float:
    """The least mu of Gaussian DP that eta-bounded range implies: that of (eta / 2)-DP.

    Parameters
    ----------
    eta : float >= 0
        The range.

    Returns
    -------
    float
        Rounded up.

    Notes
    -----
    Proof    gaussian_curve.md, theorem 2.
    """
    return mu_of_pure(eta / 2)


def mu_of_rho(rho: float) -> float:
    """A mu of Gaussian DP that rho-zCDP implies: 2 sqrt(2 rho), rounded up.

    Parameters
    ----------
    rho : float >= 0
        Of zero-concentrated DP.

    Returns
    -------
    float
        Rounded up.

    Notes
    -----
    Proof    connect/dp_accounting.md, theorem 2.
    """
    return inf if rho == inf else root_above(8 * Fraction(rho))


def root_above(square: Fraction) -> float:
    """The least float that is at least the square root of a fraction, or one after it."""
    root = up(_CONTEXT.sqrt(decimal_of(square))) if square else 0.0
    below = nextafter(root, 0.0)
    return below if Fraction(below) ** 2 >= square else root


def root_below(square: Fraction) -> float:
    """The largest float that is at most the square root of a fraction."""
    root = root_above(square)
    return root if Fraction(root) ** 2 <= square else nextafter(root, 0.0)


@lru_cache(1024)
@sixty_digits
def mu_of_goal(epsilon: float, delta: float) -> float:
    """The largest mu found such that mu-Gaussian DP implies (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of the goal.
    delta : float in (0, 1)
        The delta of the goal.

    Returns
    -------
    float
        Rounded down, to 12 digits.
    """

    def holds(mu: float) -> bool:
        return _delta(Decimal(mu), Decimal(epsilon))[0] * (1 + Decimal("1e-35")) <= Decimal(delta)

    if not (1e-100 <= epsilon <= 700 and 1e-300 <= delta < 1 and holds(SMALLEST_MU)):
        raise ValueError(f"epsilon={epsilon!r}, delta={delta!r}: out of reach of Gaussian DP in float64")
    low, high = SMALLEST_MU, 1.0
    while nearly_delta(1 / high, epsilon) <= delta:
        low, high = high, 2 * high
    low = narrow(lambda mu: nearly_delta(1 / mu, epsilon) > delta, low, high, 1e-14)[0]
    margin = 1e-13
    while not holds(found := max(low * (1 - margin), SMALLEST_MU)):
        margin *= 4
    return found
