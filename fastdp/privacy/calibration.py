"""What a guarantee costs: how much Gaussian noise a pair (epsilon, delta) or a rho asks for.

All arithmetic rounds toward more noise: float64 finds a candidate, decimal arithmetic of 60 digits and more checks it,
and a candidate that does not pass is enlarged. calibration.md has the proofs.
"""

from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from math import exp, inf, log, log1p, nextafter, pi, sqrt

from ..support.rounding import sixty_digits
from ..support.search import narrow
from ..support.shown import shown
from .discrete_gaussian import discrete_sigma, greatest_square
from .gaussian_curve import nearly_delta

MAX_EPSILON = 700.0  # beyond it e^epsilon leaves float64, and no noise of use is that weak
COARSE = 100.0  # a sigma in units of the grid, up to which it matters how the noise is discrete: a part in 10,000
SMALLEST = 1e-100  # of epsilon and delta: below it float64 does not find the candidates


@lru_cache(1024)
def gaussian_sigma(
    sensitivity: float, *, epsilon: float, delta: float, dimension: int, adaptive: bool = False
) -> float:
    """The least sigma proven here for discrete Gaussian noise on integer vectors: (epsilon, delta)-DP.

    `sensitivity` is in L2 and in units of the grid. The smallest of three calibrations: concentrated DP with the tight
    conversion, and the analytic Gaussian curve with a little variance on top that pays for the discreteness of the
    noise in every coordinate (calibration.md, theorems 2 and 3); and, where the grid is coarse, the curve of the
    discrete noise itself (discrete_gaussian.md). The last is for one vector; where parts of it are chosen after the
    noise of others, `adaptive` leaves it out.
    """
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value < SMALLEST * (1 - 1e-9):  # callers may have rounded it down
            raise ValueError(f"{name}={shown(value)}: must be at least {SMALLEST:g} for Gaussian noise")
    through_zcdp = zcdp_sigma(sensitivity, rho=zcdp_rho(epsilon, delta))
    exact = inf
    if not adaptive and (near := sensitivity * gaussian_ratio(epsilon, delta)) <= COARSE:
        exact = discrete_sigma(sensitivity, epsilon=epsilon, delta=delta, dimension=dimension, near=near)
        dimension = min(dimension, max(greatest_square(sensitivity), 1))  # as many coordinates differ at most
    # theorem 3: variance tau^2 + s^2, theta = 2.001 exp(-2 pi^2 s^2) with 3.1 dimension theta <= loss
    loss = min(epsilon, 1.0) * 2.0**-20
    spread = log(2.001 * 3.1 * max(dimension, 1) / loss) / (2 * pi**2)
    tau = sensitivity * gaussian_ratio(epsilon - 2 * loss, delta * (1 - 2.0**-19))
    analytic = sqrt(tau * tau + spread) * (1 + 2.0**-48)
    return min(through_zcdp, analytic, exact)


@sixty_digits
def zcdp_sigma(sensitivity: float, *, rho: float) -> float:
    """The least sigma with sensitivity^2 / (2 sigma^2) <= rho."""
    context = Context(prec=40, rounding=ROUND_CEILING)
    square = context.divide(context.multiply(Decimal(sensitivity), Decimal(sensitivity)), Decimal(2 * rho))
    root = context.sqrt(square)  # to nearest, whatever the rounding of the context
    return _ceiling(root if Context(prec=100).multiply(root, root) >= square else context.next_plus(root))


@lru_cache(1024)
def gaussian_mu(sensitivity: float, sigma: float, dimension: int) -> float:
    """A mu such that discrete Gaussian noise on integer vectors is mu-Gaussian DP (calibration.md, theorem 4).

    For every s: K / sqrt(sigma^2 - s^2) + 4 dimension theta, theta = 2.001 exp(-2 pi^2 s^2) <= 0.1; the least of a few
    is taken. inf where the noise is too small for any of them.
    """
    found = inf
    for step in range(200):
        square = 0.152 + 0.02 * step
        if square > 0.99 * sigma * sigma:
            break
        theta = 2.001 * exp(-2 * pi**2 * square)
        found = min(found, sensitivity / sqrt(sigma * sigma - square) + 4 * max(dimension, 1) * theta)
    return found * (1 + 2.0**-40)


@lru_cache(1024)
@sixty_digits
def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho found such that rho-zCDP implies (epsilon, delta)-DP, by the tight conversion.

    Every order a > 1 bounds delta by exp((a - 1)(a rho - epsilon)) (1 - 1/a)^a / (a - 1), so each allows the rho that
    `at` solves for; the search over a need not be exact.
    """

    def at(log_a: float) -> float:
        a = 1 + exp(log_a)
        return (log(delta) + log_a - a * (log_a - log1p(exp(log_a)))) / (a - 1) / a + epsilon / a

    low, high = -20.0, 60.0
    for _ in range(200):
        left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (left, high) if at(left) < at(right) else (low, right)
    context = Context(prec=60)
    order = Decimal(1 + exp(max((low + high) / 2, -20.0)))
    a1 = context.subtract(order, Decimal(1))
    shrink = context.multiply(order, context.ln(context.divide(a1, order)))
    top = context.subtract(context.add(context.ln(Decimal(delta)), context.ln(a1)), shrink)
    exact = context.divide(context.add(context.divide(top, a1), Decimal(epsilon)), order)
    rho = float(exact) * (1 - 2.0**-50)
    if not rho > 0:
        raise ValueError(f"epsilon={shown(epsilon)}, delta={shown(delta)}: too small for Gaussian noise in float64")
    return rho


@lru_cache(1024)
@sixty_digits
def gaussian_ratio(epsilon: float, delta: float) -> float:
    """The least sigma / sensitivity for which continuous Gaussian noise is (epsilon, delta)-DP, to 9 digits and up.

    Balle and Wang (2018): with r = sigma / sensitivity and Q(x) = Pr[N(0, 1) > x],
    delta = Q(epsilon r - 1 / (2 r)) - e^epsilon Q(epsilon r + 1 / (2 r)), which falls in r.
    """
    low, high = 1e-3, 1.0
    while nearly_delta(low, epsilon) < delta:
        low /= 2
    while nearly_delta(high, epsilon) > delta:
        high *= 2
    high = narrow(
        lambda r: nearly_delta(r, epsilon) <= delta, low, high, tolerance=0.0, middle_of=lambda a, b: (a + b) / 2
    )[1]
    margin = 1e-12
    digits = 1 - Decimal(delta).adjusted()
    while _delta_decimal(high * (1 + margin), epsilon, digits) > Decimal(delta):
        margin *= 4
    return high * (1 + margin)


@sixty_digits
def _delta_decimal(r: float, epsilon: float, digits: int) -> Decimal:
    """An upper bound, close, of a delta of at least 10^-digits."""
    x = epsilon * r + 0.5 / r
    context = Context(prec=60 + int(0.9 * x * x) + digits)
    er = context.multiply(Decimal(epsilon), Decimal(r))
    half = context.divide(Decimal("0.5"), Decimal(r))
    first = _upper_tail(context.subtract(er, half), context)
    second = context.multiply(context.exp(Decimal(epsilon)), _upper_tail(context.add(er, half), context))
    return context.multiply(context.subtract(first, second), Decimal(1) + Decimal(10) ** -20)


def _upper_tail(x: Decimal, context: Context) -> Decimal:
    """Q(x) = 1/2 - phi(x) (x + x^3/3 + x^5/15 + ...), to an absolute 10^-(digits - 10)."""
    square = context.multiply(x, x)
    term = total = x
    k = 1
    while term and (term.adjusted() > -context.prec or 2 * square > k):
        k += 2
        term = context.divide(context.multiply(term, square), Decimal(k))
        total = context.add(total, term)
    root = context.sqrt(context.multiply(Decimal(2), _pi(context.prec)))
    density = context.divide(context.exp(context.divide(square, Decimal(-2))), root)
    return context.subtract(Decimal("0.5"), context.multiply(density, total))


@lru_cache(8)
def _pi(digits: int) -> Decimal:
    """pi by Machin's formula in integers."""
    one: int = 10 ** (digits + 10)

    def arctan_inverse(n: int) -> int:
        term = total = one // n
        k = 1
        while term:
            term //= -(n * n)
            k += 2
            total += term // k
        return total

    return Decimal(4 * (4 * arctan_inverse(5) - arctan_inverse(239))).scaleb(-(digits + 10), Context(prec=digits))


def _ceiling(x: Decimal) -> float:
    """The least float >= x, or the one after it."""
    result = float(x)
    return result if Decimal(result) >= x else nextafter(result, inf)


__all__ = ["MAX_EPSILON", "gaussian_mu", "gaussian_ratio", "gaussian_sigma", "zcdp_rho", "zcdp_sigma"]
