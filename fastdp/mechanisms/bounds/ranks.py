"""The error bounds of quantiles and interior points, and their inverses. Public as `fastdp.bounds`.

A quantile is off by ranks, an interior point fails. A name with `_n` behind it solves for the number of values, one
with `_epsilon` for epsilon.
"""

from __future__ import annotations

from decimal import Decimal
from math import ceil, inf, isfinite, log2
from typing import Any

from ...privacy.guarantees import Neighbors
from ...records.number_line import check_bits
from ...support import parameters, rounding
from ...support.checks import large_integer, one_of, probability
from ...support.rounding import decimal_value, down, lower, up
from ...support.search import in_reach, least_float
from ...support.shown import shown
from ..interior_point import METHODS
from ..line_weights import widest_total
from ..prefix_method import PrefixPlan, check_prefix
from ..quantiles import HALF, RankSelection, rank_error


def quantile(
    q: float,
    *,
    domain_bits: int = 64,
    epsilon: float,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound by how many ranks `quantile` is off, whatever the values.

    Parameters
    ----------
    q : float in (0, 1)
        The share of the values below the result.
    domain_bits : int
        The number of bits of the domain.
    epsilon : float > 0
        The privacy parameter.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float

    Examples
    --------
    >>> import fastdp
    >>> round(fastdp.bounds.quantile(0.5, epsilon=1.0), 1)
    109.3
    """
    selection = RankSelection.of(decimal_value(probability("q", q)), epsilon, neighbors)
    return rank_error(log2(widest_total(check_bits(domain_bits))), selection.eta, parameters.beta(beta))


def quantile_n(
    q: float,
    *,
    error: float,
    domain_bits: int = 64,
    epsilon: float,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute of how many values the ranks by which `quantile` is off are a small enough share.

    Parameters
    ----------
    q : float in (0, 1)
        The share of the values below the result.
    error : float in (0, 1)
        By how much that share may be off.
    domain_bits : int
        The number of bits of the domain.
    epsilon : float > 0
        The privacy parameter.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int

    Examples
    --------
    >>> import fastdp
    >>> fastdp.bounds.quantile_n(0.5, error=0.01, epsilon=1.0)
    10932
    """
    ranks = quantile(q, domain_bits=domain_bits, epsilon=epsilon, beta=beta, neighbors=neighbors)
    found = ranks / parameters.error_share(error)
    if not isfinite(found):
        raise ValueError(f"error={shown(error)}: is out of reach")
    return ceil(found)


def quantile_epsilon(
    q: float, *, error: float, domain_bits: int = 64, beta: float = 0.05, neighbors: Neighbors = "replace-one"
) -> float:
    """Compute the least epsilon with which `quantile` is off by at most so many ranks, to 10 digits.

    Parameters
    ----------
    q : float in (0, 1)
        The share of the values below the result.
    error : float > 0
        By how many ranks the result may be off.
    domain_bits : int
        The number of bits of the domain.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float

    Examples
    --------
    >>> import fastdp
    >>> round(fastdp.bounds.quantile_epsilon(0.5, error=109.4), 2)
    1.0
    """
    error = parameters.error(error)
    options: dict[str, Any] = {"domain_bits": domain_bits, "beta": beta, "neighbors": neighbors}
    return in_reach("error", error, lambda: least_float(lambda e: quantile(q, epsilon=e, **options) <= error))


def median(*, domain_bits: int = 64, epsilon: float, beta: float = 0.05, neighbors: Neighbors = "replace-one") -> float:
    """Bound by how many ranks `median` is off: `quantile` at q = 1/2.

    Parameters
    ----------
    domain_bits : int
        The number of bits of the domain.
    epsilon : float > 0
        The privacy parameter.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
    """
    return quantile(0.5, domain_bits=domain_bits, epsilon=epsilon, beta=beta, neighbors=neighbors)


def median_n(
    *,
    error: float,
    domain_bits: int = 64,
    epsilon: float,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute of how many values the ranks by which `median` is off are a small enough share.

    Parameters
    ----------
    error : float in (0, 1)
        By how much the share of the values below the result may differ from 1/2.
    domain_bits : int
        The number of bits of the domain.
    epsilon : float > 0
        The privacy parameter.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int
    """
    return quantile_n(0.5, error=error, domain_bits=domain_bits, epsilon=epsilon, beta=beta, neighbors=neighbors)


def median_epsilon(
    *, error: float, domain_bits: int = 64, beta: float = 0.05, neighbors: Neighbors = "replace-one"
) -> float:
    """Compute the least epsilon with which `median` is off by at most so many ranks, to 10 digits.

    Parameters
    ----------
    error : float > 0
        By how many ranks the result may be off.
    domain_bits : int
        The number of bits of the domain.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
    """
    return quantile_epsilon(0.5, error=error, domain_bits=domain_bits, beta=beta, neighbors=neighbors)


def interior_point(
    n: int,
    domain_bits: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    method: str = "exponential",
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound the probability that `interior_point` fails, to six digits.

    Parameters
    ----------
    n : int
        The number of values.
    domain_bits : int
        The number of bits of the domain.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        0 for "exponential"; above 0 for "prefix".
    method : {"exponential", "prefix"}
        As in `interior_point`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        1.0 where there is no bound.

    Examples
    --------
    >>> from fastdp.bounds import interior_point
    >>> interior_point(205, 64, epsilon=1.0) <= 1e-3
    True
    """
    n = large_integer("n", n, least=1)
    options: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "method": method, "neighbors": neighbors}

    def enough(beta: float) -> bool:
        return beta >= 1 or interior_point_n(domain_bits, beta=beta, **options) <= n

    return min(1.0, least_float(enough, guess=0.5, tolerance=1e-6))


@rounding.sixty_digits
def interior_point_n(
    domain_bits: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    method: str = "exponential",
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute how many values `interior_point` takes to succeed with probability 1 - beta.

    Parameters
    ----------
    domain_bits : int
        The number of bits of the domain.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        0 for "exponential"; above 0 for "prefix".
    beta : float in (0, 1)
        The probability with which it may fail.
    method : {"exponential", "prefix"}
        As in `interior_point`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records; "prefix" takes replace-one only.

    Returns
    -------
    int

    Notes
    -----
    Theorem    "exponential", pure DP: 2 ceil(ln(2^bits / beta) / eta) - 1 values, eta = epsilon / 2 under replace-one,
               epsilon under add-remove: the median has a score of half the values, rounded up, a point outside them 0.
               "prefix": prefix_method.md, theorem 2

    Examples
    --------
    >>> from fastdp.bounds import interior_point_n
    >>> interior_point_n(64, epsilon=1.0, beta=1e-3)
    205
    >>> interior_point_n(2**20, epsilon=1.0, delta=1e-6, beta=1e-3, method="prefix")
    942
    """
    bits = check_bits(domain_bits)
    epsilon, beta, delta = parameters.epsilon(epsilon), parameters.beta(beta), parameters.delta_or_none(delta)
    one_of("method", method, METHODS)
    parameters.neighbors(neighbors)
    if method == "prefix":
        check_prefix(delta, neighbors)
        return PrefixPlan.of(0, bits, epsilon=epsilon, delta=delta, beta=beta).sufficient
    eta = down(RankSelection(HALF, epsilon, neighbors).eta)
    log = rounding.subtract(
        rounding.multiply(Decimal(bits), rounding.ln(Decimal(2))), rounding.ln(Decimal(down(lower(beta))))
    )
    half = up(rounding.divide(log, Decimal(eta))) if eta else inf
    if not isfinite(half):
        raise ValueError(f"epsilon={shown(epsilon)}: must be greater: as many values as it takes are no float")
    return 2 * ceil(half) - 1


def interior_point_epsilon(
    n: int,
    domain_bits: int,
    *,
    delta: float = 0.0,
    beta: float = 0.05,
    method: str = "exponential",
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `interior_point` succeeds on so many values, to six digits.

    Parameters
    ----------
    n : int
        The number of values.
    domain_bits : int
        The number of bits of the domain.
    delta : float in [0, 1)
        0 for "exponential"; above 0 for "prefix".
    beta : float in (0, 1)
        The probability with which it may fail.
    method : {"exponential", "prefix"}
        As in `interior_point`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records; "prefix" takes replace-one only.

    Returns
    -------
    float

    Examples
    --------
    >>> from fastdp.bounds import interior_point_epsilon
    >>> interior_point_epsilon(205, 64, beta=1e-3) <= 1.0
    True
    """
    n = large_integer("n", n, least=1)
    options: dict[str, Any] = {"delta": delta, "beta": beta, "method": method, "neighbors": neighbors}

    def enough(epsilon: float) -> bool:
        return interior_point_n(domain_bits, epsilon=epsilon, **options) <= n

    return in_reach("n", n, lambda: least_float(enough, tolerance=1e-6))
