"""The error bounds of the exponential mechanism over convex sets."""

from __future__ import annotations

from math import inf, log
from typing import Any

from ...privacy.guarantees import Neighbors
from ...support import parameters
from ...support.checks import positive
from ..choice import ChoiceParameters
from ..exponential_erm import plan_of
from ..problem import Problem
from ..sets import ConvexSet
from .inverses import least_epsilon, least_n, sizes


def exponential_erm(
    n: int, d: int, *, loss: Any, over: ConvexSet, epsilon: float, beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Bound the excess risk of `exponential_erm`.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : Ball, Box or Simplex
        One of `fastdp.sets`.
    epsilon : float > 0
        The privacy parameter epsilon.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    float
        With probability 1 - beta at most this, if the declared bounds hold: `.bound` of a run.

    Notes
    -----
    Theorem      exponential_erm.md, theorems 4 and 5: 2 Delta ln(|net| / beta) / (epsilon n), and the net's distance
                 from the set times the Lipschitz constant

    Examples
    --------
    >>> import fastdp
    >>> hinge, ball = fastdp.losses.Hinge(x_norm=1), fastdp.sets.Ball(1)
    >>> fastdp.bounds.exponential_erm(20_000, 2, loss=hinge, over=ball, epsilon=1.0) < 0.02
    True
    """
    n, d = sizes(n, d)
    asked = ChoiceParameters(
        Problem.of(loss, over, d), d, n, parameters.epsilon(epsilon), parameters.neighbors(neighbors)
    )
    return plan_of(asked).bound(parameters.beta(beta))


def exponential_erm_n(
    d: int, *, excess: float, loss: Any, over: ConvexSet, epsilon: float, beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:  # fmt: skip
    """Find how many records give `exponential_erm` so small an excess risk.

    Parameters
    ----------
    d : int >= 1
        The number of columns.
    excess : float > 0
        The excess risk that is asked for.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : Ball, Box or Simplex
        One of `fastdp.sets`.
    epsilon : float > 0
        The privacy parameter epsilon.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    int
        The number of records, to a part in a thousand and up.
    """
    options: dict[str, Any] = {"loss": loss, "over": over, "epsilon": epsilon, "beta": beta, "neighbors": neighbors}
    return least_n(excess, lambda n: exponential_erm(n, d, **options), "excess")


def exponential_erm_epsilon(
    n: int, d: int, *, excess: float, loss: Any, over: ConvexSet, beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Find the least epsilon that gives `exponential_erm` so small an excess risk.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    excess : float > 0
        The excess risk that is asked for.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : Ball, Box or Simplex
        One of `fastdp.sets`.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    float
        The epsilon, to a part in a thousand and up.
    """
    options: dict[str, Any] = {"loss": loss, "over": over, "beta": beta, "neighbors": neighbors}
    return least_epsilon(excess, lambda epsilon: exponential_erm(n, d, epsilon=epsilon, **options), "excess")


def exponential_mechanism_over_ball(
    n: int, d: int, *, radius: float, lipschitz: float, epsilon: float, beta: float = 0.05
) -> float:
    """Bound the excess risk of the exponential mechanism over all points of a ball, for any dimension.

    It is the theorem of the course. `exponential_erm` draws from a net in at most four dimensions, and exactly in one:
    no sampler with a proven distance from this law is known for more.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    radius : float > 0
        Of the ball.
    lipschitz : float > 0
        The largest norm of a gradient.
    epsilon : float > 0
        The privacy parameter epsilon.
    beta : float in (0, 1)
        The probability with which the bound may fail.

    Returns
    -------
    float
        With probability 1 - beta at most this, for losses that are convex and have gradients of norm at most
        `lipschitz`, under replacement of a record.

    Notes
    -----
    Theorem      (2 Delta / (epsilon n)) (d + d ln(max(1, epsilon n / (2 d))) + ln(1 / beta)), Delta = 2 R G the range
                 of a loss: by convexity, of the ball's volume the part t^d has an excess of at most t Delta

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.exponential_mechanism_over_ball(100_000, 5, radius=1.0, lipschitz=1.0, epsilon=1.0), 4)
    0.0022
    """
    n, d = sizes(n, d)
    loss_range = 2 * positive("radius", radius, toward=inf) * positive("lipschitz", lipschitz, toward=inf)
    epsilon, beta = parameters.epsilon(epsilon), parameters.beta(beta)
    exponent = d + d * log(max(1.0, epsilon * n / (2 * d))) - log(beta)
    return 2 * loss_range / (epsilon * n) * exponent


def exponential_mechanism_over_ball_n(
    d: int, *, excess: float, radius: float, lipschitz: float, epsilon: float, beta: float = 0.05
) -> int:
    """Find how many records give `exponential_mechanism_over_ball` so small an excess risk.

    Parameters
    ----------
    d : int >= 1
        The number of columns.
    excess : float > 0
        The excess risk that is asked for.
    radius : float > 0
        Of the ball.
    lipschitz : float > 0
        The largest norm of a gradient.
    epsilon : float > 0
        The privacy parameter epsilon.
    beta : float in (0, 1)
        The probability with which the bound may fail.

    Returns
    -------
    int
        The number of records, to a part in a thousand and up.
    """
    options: dict[str, Any] = {"radius": radius, "lipschitz": lipschitz, "epsilon": epsilon, "beta": beta}
    return least_n(excess, lambda n: exponential_mechanism_over_ball(n, d, **options), "excess")


def exponential_mechanism_over_ball_epsilon(
    n: int, d: int, *, excess: float, radius: float, lipschitz: float, beta: float = 0.05
) -> float:
    """Find the least epsilon that gives `exponential_mechanism_over_ball` so small an excess risk.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    excess : float > 0
        The excess risk that is asked for.
    radius : float > 0
        Of the ball.
    lipschitz : float > 0
        The largest norm of a gradient.
    beta : float in (0, 1)
        The probability with which the bound may fail.

    Returns
    -------
    float
        The epsilon, to a part in a thousand and up.
    """
    options: dict[str, Any] = {"radius": radius, "lipschitz": lipschitz, "beta": beta}
    return least_epsilon(
        excess, lambda epsilon: exponential_mechanism_over_ball(n, d, epsilon=epsilon, **options), "excess"
    )
