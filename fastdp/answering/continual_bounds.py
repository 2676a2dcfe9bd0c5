"""The error bound of `ContinualCounter`, from public numbers. Public as `fastdp.bounds`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import inf
from typing import Any

from ..mechanisms.bounds.tails import least_parameter, log_ratio
from ..mechanisms.noise import gaussian_price
from ..privacy.calibration import MAX_EPSILON
from ..privacy.guarantees import Neighbors
from ..support import checks, parameters
from ..support.rounding import decimal_of, sixty_digits, up
from .continual_counter import plan_of, values_of
from .running_sums import row_square


@sixty_digits
def continual_counter(
    steps: int,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    length: int | None = None,
    bounds: Any = None,
    dimension: int | None = None,
    norm: float | None = None,
    beta: float = 0.05,
    count: int = 1,
    neighbors: Neighbors = "replace-one",
) -> float:
    """The error that none of `count` numbers among the answers of a `ContinualCounter` exceeds, up to this step.

    Parameters
    ----------
    steps : int >= 1
        Up to which step: later answers have more noise.
    rho : float > 0, optional
        The rho of all answers together; or else epsilon and delta.
    epsilon : float > 0, optional
        The epsilon of all answers together.
    delta : float in (0, 1), optional
        The delta of all answers together.
    length : int, optional
        As of `ContinualCounter`.
    bounds : pair of numbers, optional
        As of `ContinualCounter`.
    dimension : int, optional
        As of `ContinualCounter`.
    norm : float > 0, optional
        As of `ContinualCounter`.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    count : int >= 1
        How many numbers the bound is for: answers, or coordinates of them.
    neighbors : {"replace-one", "add-remove"}
        As of `ContinualCounter`.

    Returns
    -------
    float
        The bound, rounded up.

    Notes
    -----
    Theorem    the noise of an answer is subgaussian, with the variance that `deviation` has; union over the answers
               (continual_counter.md)

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.continual_counter(1000, rho=0.5, length=1000), 2)
    8.87
    """
    plan = plan_of(length, gaussian_price(rho, epsilon, delta), values_of(bounds, dimension, norm, neighbors))
    steps = checks.integer("steps", steps, least=1, most=plan.steps)
    count = checks.integer("count", count, least=1)
    spread = Decimal(plan.noise.sigma) * row_square(plan.mixture, steps).sqrt()
    noise = spread * (2 * log_ratio(2 * count, parameters.beta(beta))).sqrt()
    return up((noise + decimal_of(plan.mixture.rounding) + Decimal(steps) / 2 + 1) / Decimal(2) ** plan.bits)


def continual_counter_rho(
    steps: int,
    *,
    error: float,
    length: int | None = None,
    bounds: Any = None,
    dimension: int | None = None,
    norm: float | None = None,
    beta: float = 0.05,
    count: int = 1,
    neighbors: Neighbors = "replace-one",
) -> float:
    """The least rho with which `ContinualCounter` keeps within this error.

    Parameters
    ----------
    steps : int >= 1
        Up to which step: later answers have more noise.
    error : float > 0
        The error that is asked for.
    length : int, optional
        As of `ContinualCounter`.
    bounds : pair of numbers, optional
        As of `ContinualCounter`.
    dimension : int, optional
        As of `ContinualCounter`.
    norm : float > 0, optional
        As of `ContinualCounter`.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    count : int >= 1
        How many numbers the bound is for: answers, or coordinates of them.
    neighbors : {"replace-one", "add-remove"}
        As of `ContinualCounter`.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    options: dict[str, Any] = {
        "length": length, "bounds": bounds, "dimension": dimension, "norm": norm, "beta": beta, "count": count,
        "neighbors": neighbors,
    }  # fmt: skip
    return _least(lambda rho: continual_counter(steps, rho=rho, **options), error)


def continual_counter_epsilon(
    steps: int,
    *,
    error: float,
    delta: float,
    length: int | None = None,
    bounds: Any = None,
    dimension: int | None = None,
    norm: float | None = None,
    beta: float = 0.05,
    count: int = 1,
    neighbors: Neighbors = "replace-one",
) -> float:
    """The least epsilon with which `ContinualCounter` at this delta keeps within this error.

    Parameters
    ----------
    steps : int >= 1
        Up to which step: later answers have more noise.
    error : float > 0
        The error that is asked for.
    delta : float in (0, 1)
        The delta of all answers together.
    length : int, optional
        As of `ContinualCounter`.
    bounds : pair of numbers, optional
        As of `ContinualCounter`.
    dimension : int, optional
        As of `ContinualCounter`.
    norm : float > 0, optional
        As of `ContinualCounter`.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    count : int >= 1
        How many numbers the bound is for: answers, or coordinates of them.
    neighbors : {"replace-one", "add-remove"}
        As of `ContinualCounter`.

    Returns
    -------
    float
        Rounded up, to 10 digits.

    Raises
    ------
    ValueError
        Where the error is out of reach.
    """
    options: dict[str, Any] = {
        "delta": delta, "length": length, "bounds": bounds, "dimension": dimension, "norm": norm, "beta": beta,
        "count": count, "neighbors": neighbors,
    }  # fmt: skip
    return _least(lambda epsilon: continual_counter(steps, epsilon=epsilon, **options), error)


def _least(bound: Callable[[float], float], error: float) -> float:
    error = parameters.error(error)
    bound(1.0)  # whose parameters are wrong is refused here

    def enough(price: float) -> bool:
        try:
            return bound(price) <= error
        except ValueError:  # so small that no grid holds its noise, or so large that none is needed
            return MAX_EPSILON < price < inf and bound(MAX_EPSILON) <= error

    return least_parameter(enough, "error", error)
