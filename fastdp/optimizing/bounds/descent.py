"""The error bounds of projected gradient descent, plain and noisy."""

from __future__ import annotations

from math import ceil, inf, sqrt
from typing import Any

from ...privacy.guarantees import Neighbors
from ...support.checks import integer, optional_flag, positive
from ...support.parameters import MOST_STEPS
from ...support.shown import shown
from ..problem import Problem
from ..sets import ConvexSet
from ..step_noise import Noise, NoiseParameters
from ..step_schedule import DescentSchedule, GivenSteps
from .inverses import least_epsilon, least_n, sizes


def projected_gradient_descent(
    steps: int, *, radius: float, lipschitz: float | None = None, smoothness: float | None = None
) -> float:
    """Bound the excess risk of `projected_gradient_descent`, which is not private.

    Parameters
    ----------
    steps : int >= 1
        How many steps are taken: T.
    radius : float > 0
        The largest distance from the start to a point of the set: R.
    lipschitz : float > 0, optional
        The largest norm of a gradient, G: the bound is that of the average of w_0 .. w_(T-1) after steps of length
        R / (G sqrt(T)), the default.
    smoothness : float > 0, optional
        The smoothness beta, in place of `lipschitz`: the bound is that of the last point (average=False) after steps of
        length 1 / beta.

    Returns
    -------
    float
        At most this, for a convex mean loss.

    Notes
    -----
    Theorem      R G / sqrt(T), the lecture's Theorem 1 (descent.md, theorem 4 without noise); beta R^2 / (2 T), its
                 smooth case, where gradients at points that are t apart differ by at most beta t (theorem 6 without
                 noise)

    Examples
    --------
    >>> from fastdp import bounds
    >>> bounds.projected_gradient_descent(100, radius=2.0, lipschitz=1.0)
    0.2
    >>> bounds.projected_gradient_descent(100, radius=2.0, smoothness=0.5)
    0.01
    """
    steps = integer("steps", steps, least=1)
    radius = positive("radius", radius, toward=inf)
    if (lipschitz is None) == (smoothness is None):
        raise ValueError(f"lipschitz={shown(lipschitz)}, smoothness={shown(smoothness)}: give one of them")
    if lipschitz is not None:
        return radius * positive("lipschitz", lipschitz, toward=inf) / sqrt(steps)
    return positive("smoothness", smoothness, toward=inf) * radius**2 / (2 * steps)


def projected_gradient_descent_steps(
    *, excess: float, radius: float, lipschitz: float | None = None, smoothness: float | None = None
) -> int:
    """Find how many steps give `projected_gradient_descent` so small a bound.

    Parameters
    ----------
    excess : float > 0
        The excess risk that is asked for.
    radius : float > 0
        The largest distance from the start to a point of the set: R.
    lipschitz : float > 0, optional
        The largest norm of a gradient, G.
    smoothness : float > 0, optional
        The smoothness beta, in place of `lipschitz`.

    Returns
    -------
    int
        The number of steps.
    """
    excess = positive("excess", excess, toward=0)
    one = projected_gradient_descent(1, radius=radius, lipschitz=lipschitz, smoothness=smoothness)
    ratio = one / excess
    if lipschitz is not None:
        ratio = min(ratio, 2.0**62) ** 2
    if ratio > 2.0**62:
        raise ValueError(f"excess={shown(excess)}: is out of reach, with 2^62 steps too")
    return max(1, ceil(ratio))


def noisy_projected_gradient_descent(
    n: int, d: int, *, loss: Any, over: ConvexSet, epsilon: float, delta: float = 0.0, noise: Noise = "auto",
    steps: int | None = None, average: bool | None = None, neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Bound the expected excess risk of `noisy_projected_gradient_descent` by the declared bounds.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : ConvexSet
        One of `fastdp.sets`.
    epsilon : float > 0
        The privacy parameter epsilon.
    delta : float in [0, 1)
        The privacy parameter delta.
    noise : {"auto", "gaussian", "laplace", "laplace-per-coordinate"}
        The kind of noise.
    steps : int >= 1, optional
        How many steps are taken; by default as many as the theorem can use, up to 1,000.
    average : bool, optional
        None: falling steps, the last point. True: constant steps, the average.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    float
        At most this in expectation, if the declared bounds hold: `.bound` of a run with curvature="declared".

    Notes
    -----
    Not covered  runs that buy second moments (`.moments` of the result is not None), the default where delta > 0 and
                 public numbers promise that it helps: their bound follows from what was bought, and is `.bound` of
                 the result. It may be larger than this one, although outcomes are usually far better
    Theorem      R^2/(2 eta T) + eta (G^2 + V)/2 for average=True, the lecture's Theorem 3 (descent.md, theorem 4);
                 falling steps and the last point: theorems 5 and 6

    Examples
    --------
    >>> import fastdp
    >>> hinge, ball = fastdp.losses.Hinge(x_norm=1), fastdp.sets.Ball(1)
    >>> at = {"loss": hinge, "over": ball, "epsilon": 1.0, "delta": 1e-6}
    >>> fastdp.bounds.noisy_projected_gradient_descent(100_000, 10, **at) < 0.05
    True
    """
    n, d = sizes(n, d)
    asked = NoiseParameters.of(epsilon, delta, noise, neighbors)
    steps = None if steps is None else integer("steps", steps, least=1, most=MOST_STEPS)
    average = optional_flag("average", average)
    schedule = DescentSchedule.of(Problem.of(loss, over, d), n, d, asked, GivenSteps(steps=steps, average=average))
    if schedule.bound is None:
        raise ValueError(f"average={shown(average)}: there is no bound for the last point of constant steps")
    return schedule.bound


def noisy_projected_gradient_descent_n(
    d: int, *, excess: float, loss: Any, over: ConvexSet, epsilon: float, delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> int:  # fmt: skip
    """Find how many records give `noisy_projected_gradient_descent` so small a bound, with curvature="declared".

    Parameters
    ----------
    d : int >= 1
        The number of columns.
    excess : float > 0
        The excess risk that is asked for.
    loss : Loss
        One of `fastdp.losses`, perhaps + L2(lam) or + L1(lam).
    over : ConvexSet
        One of `fastdp.sets`.
    epsilon : float > 0
        The privacy parameter epsilon.
    delta : float in [0, 1)
        The privacy parameter delta.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    int
        The number of records, to a part in a thousand and up.
    """
    options: dict[str, Any] = {"loss": loss, "over": over, "epsilon": epsilon, "delta": delta, "neighbors": neighbors}
    return least_n(excess, lambda n: noisy_projected_gradient_descent(n, d, **options), "excess")


def noisy_projected_gradient_descent_epsilon(
    n: int, d: int, *, excess: float, loss: Any, over: ConvexSet, delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Find the least epsilon that gives `noisy_projected_gradient_descent` so small a bound, with curvature="declared".

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
    over : ConvexSet
        One of `fastdp.sets`.
    delta : float in [0, 1)
        The privacy parameter delta.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    float
        The epsilon, to a part in a thousand and up.
    """
    options: dict[str, Any] = {"loss": loss, "over": over, "delta": delta, "neighbors": neighbors}
    return least_epsilon(
        excess, lambda epsilon: noisy_projected_gradient_descent(n, d, epsilon=epsilon, **options), "excess"
    )
