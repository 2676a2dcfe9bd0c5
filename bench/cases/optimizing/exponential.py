"""The exponential mechanism over points: exactly in one dimension, on a net in two."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

import fastdp
from fastdp import losses, sets

from ...peers.inputs import labels_of
from ...peers.inputs import points as records
from ..registry import Call, Case, Side, Target, faster, make_case
from ..traffic import NUMBERS
from .inputs import EPSILON, LOSSES, MILLION, calls

_case = partial(make_case, "optimizing")

OLDEST = 120.0
POINT_LOSSES: dict[str, Any] = {
    "absolute deviation": losses.AbsoluteDeviation(),
    "squared distance": losses.SquaredDistance(x_norm=OLDEST),
}
NET, NET_RADIUS = 0.225, 4.0  # the spacing of about a thousand points in the plane


def _choose(n: int) -> Any:
    X, y = records(n, 2, "float64")
    signs = labels_of("logistic", y)
    return lambda: fastdp.exponential_erm(
        X, signs, loss=LOSSES["logistic"], over=sets.Ball(NET_RADIUS), epsilon=EPSILON, method="grid", spacing=NET
    )


def _numpy_choose(n: int) -> Call:
    """The losses of a block of records at all points of the net at a time; Gumbel noise."""
    X, y = records(n, 2, "float64")
    signed = X * labels_of("logistic", y)[:, None]
    ticks = np.arange(-NET_RADIUS, NET_RADIUS, NET)
    net = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    net = net[np.linalg.norm(net, axis=1) <= NET_RADIUS]
    rng = np.random.default_rng()
    largest = np.log1p(np.exp(NET_RADIUS))  # no loss lies above

    def call() -> Any:
        scores = np.zeros(len(net))
        for first in range(0, n, 100):
            scores += np.log1p(np.exp(-signed[first : first + 100] @ net.T)).sum(axis=0)
        return net[np.argmax(-EPSILON / (2 * largest) * scores + rng.gumbel(size=len(net)))]

    return call


@lru_cache(maxsize=1)
def ages(n: int) -> Any:
    return np.random.default_rng(0).gamma(9.0, 5.0, (n, 1)).clip(0, OLDEST)


def choose_point(loss: str, n: int, **more: Any) -> Any:
    X = ages(n)
    arguments = {"loss": POINT_LOSSES[loss], "over": sets.Box(0, OLDEST), "epsilon": EPSILON, "method": "exact"}
    return lambda: fastdp.exponential_erm(X, **arguments, **more)


def _numpy_median_point(n: int) -> Call:
    """The density falls and rises exponentially between neighbours; Gumbel noise takes one of the intervals."""
    x, rng, eta = ages(n).ravel(), np.random.default_rng(), EPSILON / (2 * OLDEST)

    def call() -> Any:
        edges = np.concatenate(([0.0], np.sort(x), [OLDEST]))
        slopes, widths = eta * (2 * np.arange(n + 1) - n), np.diff(edges)
        heights = np.concatenate(([0.0], np.cumsum(slopes * widths)))  # the loss at each edge
        falls = slopes * widths
        with np.errstate(divide="ignore", invalid="ignore"):
            masses = np.where(slopes == 0, widths, -np.expm1(-falls) / slopes)
            i = np.argmax(np.log(masses) - (heights[:-1] - heights.min()) + rng.gumbel(size=n + 1))
        u = rng.random()
        return edges[i] + (u * widths[i] if slopes[i] == 0 else -np.log1p(u * np.expm1(-falls[i])) / slopes[i])

    return call


def _numpy_mean_point(n: int) -> Call:
    """A bell around the mean, drawn again until it is within the bounds."""
    x, rng = ages(n).ravel(), np.random.default_rng()
    deviation = OLDEST / np.sqrt(EPSILON * n)

    def call() -> Any:
        mean = x.mean()
        while not 0 <= (w := rng.normal(mean, deviation)) <= OLDEST:
            pass
        return w

    return call


def _point_case(name: str, loss: str, rival: Callable[[int], Call], target: Target | None = None) -> Case:
    return _case(
        name,
        f"exponential_erm, {loss} in one dimension, exactly, on a grid of 2^40 points",
        MILLION,
        calls(partial(choose_point, loss), "w"),
        (Side("numpy", rival), target),
        traffic=NUMBERS,
        oracle="a good number",
        drawn=lambda n: (loss, ages(n).ravel(), choose_point(loss, n, beta=1e-9)()),
        epsilon=EPSILON,
    )


def _drawn_choice(n: int) -> Any:
    X, y = records(n, 2, "float64")
    return X, labels_of("logistic", y), _choose(n)()


CASES = (
    _point_case("exact-deviation", "absolute deviation", _numpy_median_point),
    _point_case("exact-distance", "squared distance", _numpy_mean_point, faster("numpy", avx512=2, avx2=2)),
    _case(
        "net",
        "exponential_erm, logistic loss, a net of some 1,000 points in 2 dimensions",
        20_000,
        calls(_choose, "w"),
        (Side("numpy", _numpy_choose), faster("numpy", avx512=2, avx2=2)),
        oracle="a good point",
        drawn=_drawn_choice,
    ),
)
