"""The error bounds of sums: of vectors, and of second moments for least squares."""

from __future__ import annotations

from math import exp, log, log1p, sqrt
from typing import Any

from ...privacy.guarantees import Neighbors
from ...support import parameters
from ...support.checks import positive
from ..moments import MomentsPlan
from ..problem import Problem
from ..sets import ConvexSet
from ..step_noise import NoiseParameters, sum_grid
from .inverses import least_epsilon, least_n, sizes


def vector_sum(
    n: int, d: int, *, clip: float, epsilon: float, delta: float = 0.0, neighbors: Neighbors = "replace-one"
) -> dict[str, float]:
    """Compute the scale of the noise in each coordinate of a `vector_sum`, by every kind of noise.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    clip : float > 0
        The largest norm of a vector.
    epsilon : float > 0
        The privacy parameter epsilon.
    delta : float in [0, 1)
        The privacy parameter delta.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    dict of str to float
        sigma of Gaussian, b of Laplace noise, by kind.

    Examples
    --------
    >>> import fastdp
    >>> scales = fastdp.bounds.vector_sum(1000, 4, clip=0.5, epsilon=1.0, delta=1e-6)
    >>> {name: round(scale, 2) for name, scale in scales.items()}
    {'gaussian': 4.22, 'laplace': 2.0, 'laplace-per-coordinate': 4.0, 'laplace-basic': 4.0}
    """
    n, d = sizes(n, d)
    asked = NoiseParameters.of(epsilon, delta, "auto", neighbors)
    grid, found = sum_grid(asked, clip=positive("clip", clip, toward=0), n=n, d=d, steps=1)
    return {name: noise.value / grid.unit for name, noise in found.items()}


def vector_sum_error(
    n: int, d: int, *, clip: float, epsilon: float, delta: float = 0.0, beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Bound the error of every coordinate of a `vector_sum`, of the sum of the shortened vectors.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    clip : float > 0
        The largest norm of a vector.
    epsilon : float > 0
        The privacy parameter epsilon.
    delta : float in [0, 1)
        The privacy parameter delta.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    float
        With probability 1 - beta no coordinate is further off, with the kind of noise that "auto" takes.

    Notes
    -----
    Theorem      sigma sqrt(2 ln(2 d / beta)) for Gaussian noise; s (ln(2 d / beta) - ln(1 + e^(-1/s))) for Laplace
                 noise of scale s on the grid; and n units of the grid, to which vectors are rounded

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.vector_sum_error(1000, 4, clip=0.5, epsilon=1.0, delta=1e-6), 2)
    8.76
    """
    n, d = sizes(n, d)
    asked, beta = NoiseParameters.of(epsilon, delta, "auto", neighbors), parameters.beta(beta)
    grid, _ = sum_grid(asked, clip=positive("clip", clip, toward=0), n=n, d=d, steps=1)
    scale, ratio = grid.noise.value, log(2 * d / beta)
    gaussian = grid.noise.noise == "gaussian"
    error = scale * sqrt(2 * ratio) if gaussian else scale * (ratio - log1p(exp(-1 / scale)))
    return (error + n) / grid.unit


def vector_sum_error_epsilon(
    n: int, d: int, *, error: float, clip: float, delta: float = 0.0, beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Find the least epsilon that gives `vector_sum_error` so small an error.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    error : float > 0
        The error that is asked for.
    clip : float > 0
        The largest norm of a vector.
    delta : float in [0, 1)
        The privacy parameter delta.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    float
        The epsilon, to a part in a thousand and up.
    """
    options: dict[str, Any] = {"clip": clip, "delta": delta, "beta": beta, "neighbors": neighbors}
    return least_epsilon(error, lambda epsilon: vector_sum_error(n, d, epsilon=epsilon, **options), "error")


def vector_mean(
    n: int, d: int, *, clip: float, epsilon: float, delta: float = 0.0, beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Bound the error of every coordinate of a `vector_mean`, of the mean of the shortened vectors.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    clip : float > 0
        The largest norm of a vector.
    epsilon : float > 0
        The privacy parameter epsilon.
    delta : float in [0, 1)
        The privacy parameter delta.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    float
        With probability 1 - beta no coordinate is further off, with the kind of noise that "auto" takes: an n-th of
        `vector_sum_error`.

    Examples
    --------
    >>> from fastdp import bounds
    >>> round(bounds.vector_mean(1000, 4, clip=0.5, epsilon=1.0, delta=1e-6), 5)
    0.00876
    """
    error = vector_sum_error(n, d, clip=clip, epsilon=epsilon, delta=delta, beta=beta, neighbors=neighbors)
    return error / n


def vector_mean_n(
    d: int, *, error: float, clip: float, epsilon: float, delta: float = 0.0, beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:  # fmt: skip
    """Find how many records give `vector_mean` so small an error.

    Parameters
    ----------
    d : int >= 1
        The number of columns.
    error : float > 0
        The error that is asked for.
    clip : float > 0
        The largest norm of a vector.
    epsilon : float > 0
        The privacy parameter epsilon.
    delta : float in [0, 1)
        The privacy parameter delta.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    int
        The number of records, to a part in a thousand and up.
    """
    options: dict[str, Any] = {"clip": clip, "epsilon": epsilon, "delta": delta, "beta": beta, "neighbors": neighbors}
    return least_n(error, lambda n: vector_mean(n, d, **options), "error")


def vector_mean_epsilon(
    n: int, d: int, *, error: float, clip: float, delta: float = 0.0, beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Find the least epsilon that gives `vector_mean` so small an error.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    error : float > 0
        The error that is asked for.
    clip : float > 0
        The largest norm of a vector.
    delta : float in [0, 1)
        The privacy parameter delta.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        Which data sets are neighbours.

    Returns
    -------
    float
        The epsilon, to a part in a thousand and up.
    """
    options: dict[str, Any] = {"clip": clip, "delta": delta, "beta": beta, "neighbors": neighbors}
    return least_epsilon(error, lambda epsilon: vector_mean(n, d, epsilon=epsilon, **options), "error")


def noisy_least_squares(
    n: int, d: int, *, loss: Any, over: ConvexSet, epsilon: float, delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Bound the expected excess risk of `noisy_least_squares`.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    loss : SquaredError
        `fastdp.losses.SquaredError(x_norm=, y_bound=)`, perhaps + L2(lam) or + L1(lam).
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
    float
        At most this in expectation, if the declared bounds hold: `.bound` of a run.

    Notes
    -----
    Theorem      moments.md, theorem 2

    Examples
    --------
    >>> import fastdp
    >>> error, ball = fastdp.losses.SquaredError(x_norm=1, y_bound=1), fastdp.sets.Ball(1)
    >>> fastdp.bounds.noisy_least_squares(100_000, 10, loss=error, over=ball, epsilon=1.0, delta=1e-6) < 0.01
    True
    """
    n, d = sizes(n, d)
    return MomentsPlan.of(Problem.of(loss, over, d), n, d, NoiseParameters.of(epsilon, delta, "auto", neighbors)).bound


def noisy_least_squares_n(
    d: int, *, excess: float, loss: Any, over: ConvexSet, epsilon: float, delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> int:  # fmt: skip
    """Find how many records give `noisy_least_squares` so small an excess risk.

    Parameters
    ----------
    d : int >= 1
        The number of columns.
    excess : float > 0
        The excess risk that is asked for.
    loss : SquaredError
        `fastdp.losses.SquaredError(x_norm=, y_bound=)`, perhaps + L2(lam) or + L1(lam).
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
    return least_n(excess, lambda n: noisy_least_squares(n, d, **options), "excess")


def noisy_least_squares_epsilon(
    n: int, d: int, *, excess: float, loss: Any, over: ConvexSet, delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> float:  # fmt: skip
    """Find the least epsilon that gives `noisy_least_squares` so small an excess risk.

    Parameters
    ----------
    n : int >= 1
        The number of records.
    d : int >= 1
        The number of columns.
    excess : float > 0
        The excess risk that is asked for.
    loss : SquaredError
        `fastdp.losses.SquaredError(x_norm=, y_bound=)`, perhaps + L2(lam) or + L1(lam).
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
    return least_epsilon(excess, lambda epsilon: noisy_least_squares(n, d, epsilon=epsilon, **options), "excess")
