"""What a run would promise, from public numbers: nothing is read, nothing is spent. Public as `fastdp.bounds`.

Functions are named after the mechanisms and take their parameters, with the number of records and of columns in place
of the data. A name with `_n` behind it solves for the number of records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..privacy.guarantees import NEIGHBORS, Neighbors
from ..support.checks import MAX_INT64, integer, one_of, positive, small_delta
from .private_erm import promises_of, taken
from .problem import Problem
from .sets import ConvexSet
from .step_noise import plan

_MOST_RECORDS = 2**40


@dataclass(frozen=True)
class Promises:
    """The expected excess over the least mean loss that each method promises, if the declared bounds hold.

    excess     by method; None: it does not apply, or promises nothing
    refusals   why a method does not apply
    method     the one that `private_erm` would take
    """

    excess: dict[str, float | None]
    refusals: dict[str, str]
    method: str

    @property
    def least(self) -> float | None:
        """What the method that is taken promises."""
        return self.excess[self.method]


def private_erm(
    n: int,
    d: int,
    *,
    loss: Any,
    over: ConvexSet,
    epsilon: float,
    delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> Promises:
    """What the methods of `private_erm` promise on n records of d columns.

    Examples
    >>> import fastdp
    >>> error, ball = fastdp.losses.SquaredError(x_norm=1, y_bound=1), fastdp.sets.Ball(1)
    >>> fastdp.bounds.private_erm(100_000, 10, loss=error, over=ball, epsilon=1.0, delta=1e-6).method
    'moments'
    """
    n, d = integer("n", n, least=1, most=MAX_INT64), integer("d", d, least=1, most=2**20)
    one_of("neighbors", neighbors, NEIGHBORS)
    epsilon, delta = positive("epsilon", epsilon, toward=0), small_delta("delta", delta)
    found, refusals = promises_of(Problem.of(loss, over, d), n, epsilon, delta, neighbors)
    if all(promised is None for promised in found.values()):
        raise ValueError(
            f"no method promises anything: {refusals.get('descent', 'clips below the Lipschitz constant')}"
        )
    return Promises(found, refusals, taken(found))


def private_erm_n(
    d: int,
    *,
    excess: float,
    loss: Any,
    over: ConvexSet,
    epsilon: float,
    delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> int:
    """How many records it takes for some method to promise so little excess, to a part in a thousand.

    Examples
    >>> import fastdp
    >>> error, ball = fastdp.losses.Logistic(x_norm=1), fastdp.sets.Ball(2)
    >>> n = fastdp.bounds.private_erm_n(10, excess=0.05, loss=error, over=ball, epsilon=1.0, delta=1e-6)
    >>> 1_000 < n < 100_000
    True
    """
    excess = positive("excess", excess, toward=0)
    options: dict[str, Any] = {
        "loss": loss, "over": over, "epsilon": epsilon, "delta": delta, "neighbors": neighbors,
    }  # fmt: skip

    def enough(n: int) -> bool:
        found = private_erm(n, d, **options).excess.values()
        return any(promised is not None and promised <= excess for promised in found)

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST_RECORDS:
            raise ValueError(f"excess={excess!r}: is out of reach, with {_MOST_RECORDS:,} records too")
    while high - low > max(1, high // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def vector_sum(
    n: int, d: int, *, clip: float, epsilon: float, delta: float = 0.0, neighbors: Neighbors = "replace-one"
) -> dict[str, float]:
    """The scale of the noise in each coordinate of a sum of n vectors of d coordinates, by every kind of noise.

    Examples
    >>> import fastdp
    >>> scales = fastdp.bounds.vector_sum(1000, 4, clip=0.5, epsilon=1.0, delta=1e-6)
    >>> {name: round(scale, 2) for name, scale in scales.items()}
    {'gaussian': 4.22, 'laplace': 2.0, 'laplace-per-coordinate': 4.0, 'laplace-basic': 4.0}
    """
    n, d = integer("n", n, least=1, most=MAX_INT64), integer("d", d, least=1, most=2**20)
    one_of("neighbors", neighbors, NEIGHBORS)
    clip, epsilon = positive("clip", clip, toward=0), positive("epsilon", epsilon, toward=0)
    delta = small_delta("delta", delta)
    grid, found = plan(
        clip=clip, n=n, d=d, steps=1, epsilon=epsilon, delta=delta, noise="auto", neighbors=neighbors
    )  # fmt: skip
    return {name: scale.value / grid.unit for name, scale in found.items()}
