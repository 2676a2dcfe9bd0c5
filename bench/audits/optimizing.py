"""Audits of sums of vectors, least squares, descents and choices by the mean loss: one point is turned around."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import bounds
from ...mechanisms.noise import gaussian
from ...optimizing import losses, sets
from ...optimizing.descent import noisy_projected_gradient_descent
from ...optimizing.exponential_erm import exponential_erm
from ...optimizing.moments import noisy_least_squares
from ...optimizing.nonprivate import nonprivate_excess_risk
from ...optimizing.private_erm import private_erm
from ...optimizing.vector_sums import vector_mean, vector_sum
from ...privacy.guarantees import ApproxDP, PureDP
from ...sklearn import PrivateMedian
from .registry import Accuracy, Audit, Floats, Many, Outputs, Score, looped

_POINTS = np.array([[1.0, 0.0]] * 9 + [[0.6, 0.8]])
_TURNED = np.append(_POINTS[:-1], [[-0.6, -0.8]], axis=0)
_SPREAD = np.array([0.6, 0.8])
_LINE = np.array([[1.0]])
_LONG = np.repeat(_LINE, 200, axis=0)
_CLAIM = ApproxDP(2.0, 0.01)  # whichever noise is less
_PRICE: dict[str, Any] = {"epsilon": 2.0, "delta": 0.01}
_BALL = sets.Ball(1.0)
_SQUARED: dict[str, Any] = {"loss": losses.SquaredError(x_norm=1.0, y_bound=1.0), "over": _BALL}
_LOGISTIC: dict[str, Any] = {"loss": losses.Logistic(x_norm=1.0), "over": _BALL}
_MANY = np.tile(_POINTS, (20, 1))


def _ones(points: Any) -> Any:
    return np.ones(len(points))


def _along(outputs: Outputs) -> Floats:
    """How far outputs lie in the direction in which the last point was turned."""
    return np.asarray(outputs @ _SPREAD, np.float64)


def _excess(problem: dict[str, Any], points: Any) -> Score:
    def errors(outputs: Outputs) -> Floats:
        given = (points, _ones(points))
        return np.array([nonprivate_excess_risk(w, *given, **problem) for w in outputs])

    return errors


def _half_of_the_clip(points: Any) -> Any:
    """Half of the clip for the sensitivity of a replacement, which is four times as large."""
    return gaussian(points.sum(axis=0), sensitivity=0.5, **_PRICE)


def _squares(epsilon: float) -> Many:
    return looped(lambda x: noisy_least_squares(x, _ones(x), **_SQUARED, epsilon=epsilon, delta=0.01).w)


def _descent(epsilon: float) -> Many:
    return looped(
        lambda x: (
            noisy_projected_gradient_descent(
                x, _ones(x), **_LOGISTIC, epsilon=epsilon, delta=0.01, steps=2, curvature="declared"
            ).w
        )
    )


def _erm(epsilon: float) -> Many:
    return looped(lambda x: private_erm(x, _ones(x), **_LOGISTIC, epsilon=epsilon, delta=0.01).w)


def _center(epsilon: float) -> Many:
    return looped(lambda x: PrivateMedian(epsilon=epsilon, bounds=(-1, 1)).fit(x).center_)


def _net(epsilon: float) -> Many:
    return looped(lambda x: exponential_erm(x, _ones(x), **_SQUARED, epsilon=epsilon).w)


AUDITS: tuple[Audit, ...] = (
    Audit(
        "vector_sum", _CLAIM, looped(lambda x: vector_sum(x, clip=1.0, **_PRICE).value), _POINTS, _TURNED,
        _along, sees=0.4, runs=3_000,
        accuracy=Accuracy(
            bounds.vector_sum_error(10, 2, clip=1.0, **_PRICE),
            lambda out: np.abs(out - _POINTS.sum(axis=0)).max(axis=1),
        ),
        mutants={"half of the clip for the sensitivity of a replacement": looped(_half_of_the_clip)},
    ),
    Audit(
        "vector_mean", _CLAIM, looped(lambda x: vector_mean(x, clip=1.0, **_PRICE).value), _POINTS, _TURNED,
        _along, sees=0.4, runs=3_000,
        accuracy=Accuracy(
            bounds.vector_mean(10, 2, clip=1.0, **_PRICE), lambda out: np.abs(out - _POINTS.mean(axis=0)).max(axis=1)
        ),
        mutants={"half of the clip for the sensitivity": looped(lambda x: _half_of_the_clip(x) / len(x))},
    ),
    Audit(
        "noisy_least_squares", _CLAIM, _squares(2.0), _POINTS, _TURNED, _along, sees=0.0, runs=400,
        accuracy=Accuracy(
            bounds.noisy_least_squares(len(_MANY), 2, **_SQUARED, **_PRICE), _excess(_SQUARED, _MANY), None, _MANY
        ),
        mutants={"twenty times epsilon": _squares(40.0)},
    ),
    Audit(
        "noisy_projected_gradient_descent", _CLAIM, _descent(2.0), _POINTS, _TURNED, _along, sees=0.0, runs=600,
        accuracy=Accuracy(
            bounds.noisy_projected_gradient_descent(len(_MANY), 2, **_LOGISTIC, **_PRICE, steps=2),
            _excess(_LOGISTIC, _MANY), None, _MANY,
        ),
        mutants={"ten times epsilon": _descent(20.0)},
    ),
    Audit(
        "private_erm", _CLAIM, _erm(2.0), _POINTS, _TURNED, _along, sees=0.0, runs=400,
        accuracy=Accuracy(
            min(
                bounds.noisy_projected_gradient_descent(len(_MANY), 2, **_LOGISTIC, **_PRICE),
                bounds.exponential_erm(len(_MANY), 2, **_LOGISTIC, epsilon=2.0),
            ),
            _excess(_LOGISTIC, _MANY), None, _MANY,
        ),
        mutants={"fifty times epsilon": _erm(100.0)},
    ),
    Audit(
        "exponential_erm", PureDP(2.0), _net(2.0), _LINE, -_LINE, lambda out: out[:, 0], sees=0.0, runs=600,
        accuracy=Accuracy(
            bounds.exponential_erm(len(_LONG), 1, **_SQUARED, epsilon=2.0), _excess(_SQUARED, _LONG),
            data=_LONG,
        ),
        mutants={"twenty times epsilon": _net(40.0)},
    ),
    Audit(
        "PrivateMedian", PureDP(2.0), _center(2.0), _LINE, -_LINE, lambda out: out[:, 0], sees=0.0, runs=300,
        mutants={"twenty times epsilon": _center(40.0)},
    ),
)  # fmt: skip
