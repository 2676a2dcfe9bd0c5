"""The error bounds of `private_erm`: the best method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...privacy.guarantees import Neighbors
from ...support.public_paths import public_as
from ..private_erm import best_of, bounds_of, plans_of
from ..problem import Problem
from ..sets import ConvexSet
from ..step_noise import NoiseParameters
from .inverses import least_epsilon, least_n, sizes


@public_as("fastdp.optimizing")
@dataclass(frozen=True)
class ExcessBounds:
    """The expected excess over the least mean loss, at most, by each method, if the declared bounds hold.

    Attributes
    ----------
    excess : dict of str to float or None
        By method; None: it does not apply, or has no bound.
    refusals : dict of str to str
        Why a method does not apply.
    method : str
        The one that `private_erm` would take.
    """

    excess: dict[str, float | None]
    refusals: dict[str, str]
    method: str

    @property
    def least(self) -> float | None:
        """That of the method that is taken."""
        return self.excess[self.method]


def private_erm(
    n: int, d: int, *, loss: Any, over: ConvexSet, epsilon: float, delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> ExcessBounds:  # fmt: skip
    """Bound the expected excess risk of `private_erm` by each of its methods, with curvature="declared".

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
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    ExcessBounds
        The bounds, and the method that is taken.

    Notes
    -----
    Not covered  descents that buy second moments, the default of `private_erm` where public numbers promise that it
                 helps: their bound is known with the result, `.bound`

    Examples
    --------
    >>> import fastdp
    >>> error, ball = fastdp.losses.SquaredError(x_norm=1, y_bound=1), fastdp.sets.Ball(1)
    >>> fastdp.bounds.private_erm(100_000, 10, loss=error, over=ball, epsilon=1.0, delta=1e-6).method
    'moments'
    """
    n, d = sizes(n, d)
    asked = NoiseParameters.of(epsilon, delta, "auto", neighbors)
    problem = Problem.of(loss, over, d)
    excess, refusals = bounds_of(plans_of(problem, n, asked))
    if all(bound is None for bound in excess.values()):
        raise ValueError(
            f"no method has an error bound: {refusals.get('descent', 'clips below the Lipschitz constant')}"
        )
    return ExcessBounds(excess, refusals, best_of(excess, problem.start_excess()))


def _least_excess(n: int, d: int, **options: Any) -> float:
    return min(bound for bound in private_erm(n, d, **options).excess.values() if bound is not None)


def private_erm_n(
    d: int, *, excess: float, loss: Any, over: ConvexSet, epsilon: float, delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> int:  # fmt: skip
    """Find how many records give `private_erm` so small a bound, with curvature="declared".

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
    return least_n(excess, lambda n: _least_excess(n, d, **options), "excess")


def private_erm_epsilon(
    n: int, d: int, *, excess: float, loss: Any, over: ConvexSet, delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Find the least epsilon that gives `private_erm` so small a bound, with curvature="declared".

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
    return least_epsilon(excess, lambda epsilon: _least_excess(n, d, epsilon=epsilon, **options), "excess")
