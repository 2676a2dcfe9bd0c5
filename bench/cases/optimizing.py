"""Cases of the optimizing room: noisy descent beside the loops that others write, and what else minimises a loss.

An element is a record, or a coordinate or a loss where the row says so. Points have norm 1 and labels are noisy; all
sides clip gradients to norm 1 by the norms of the points, which they compute once a call, add Gaussian noise and stay
in a ball of radius 1. numpy's and jax's noise is neither discrete nor secure. Where a row says 50 steps, what a call
does only once (checks, norms, noise) counts twice as much against us as in 100.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np

import fastdp
from fastdp import losses, sets
from fastdp.kernels.projections import project_one
from fastdp.optimizing.points import Points

from ..harness.limits import plain_sum
from ..peers.inputs import labels_of
from ..peers.inputs import points as records
from .registry import Call, Case, Pair, PeerSide, Side, beside, faster, make_case, within

LOSSES: dict[str, Any] = {"squared": losses.SquaredError(x_norm=1, y_bound=1), "logistic": losses.Logistic(x_norm=1)}
CLIP, RADIUS, EPSILON, DELTA = 1.0, 1.0, 1.0, 1e-6
DEVIATION, RATE = 85.0, 0.05  # of the others' noise in a sum, and of their steps: about what ours takes
OTHERS = {"clip": CLIP, "radius": RADIUS, "deviation": DEVIATION, "rate": RATE}
UNIT = 2.0**30
MILLION = 1_000_000
VECTOR_CLIP = 4.0
VECTOR_NOISE = {"gaussian": 4.225 * 2 * VECTOR_CLIP, "laplace": 2 * VECTOR_CLIP * np.sqrt(20)}
OLDEST = 120.0
POINT_LOSSES: dict[str, Any] = {
    "absolute deviation": losses.AbsoluteDeviation(),
    "squared distance": losses.SquaredDistance(x_norm=OLDEST),
}
NET, NET_RADIUS = 0.225, 4.0  # the spacing of about a thousand points in the plane


# --- fastdp


def fit(loss: str, n: int, d: int, kind: str, steps: int, **more: Any) -> Any:
    X, y = records(n, d, kind)
    labels = labels_of(loss, y)
    arguments: dict[str, Any] = {"loss": LOSSES[loss], "over": sets.Ball(RADIUS), "clip": CLIP, "steps": steps} | more
    arguments |= {"epsilon": EPSILON, "delta": DELTA, "noise": "gaussian"}
    return lambda: fastdp.noisy_projected_gradient_descent(X, labels, **arguments)


def our_descent(loss: str, d: int, kind: str, steps: int, **more: Any) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        descend = fit(loss, n, d, kind, steps, **more)
        return lambda: descend().w

    return make


def _gradient_pass(loss: str, d: int) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        X, y = records(n, d, "float64")
        points, w = Points(X, labels_of(loss, y), LOSSES[loss], "raise"), start(d)
        points.check()
        return lambda: points.gradients(w, UNIT, CLIP * UNIT)

    return make


def start(d: int) -> Any:
    """A point of the ball that is not its center."""
    return np.full(d, 0.5 / np.sqrt(d))


# --- the others


def numpy_descent(loss: str, d: int, kind: str, steps: int, *, box: bool = False) -> Side:
    """Two passes a step, in buffers that are made beforehand."""

    def make(n: int) -> Call:
        X, y = records(n, d, kind)
        labels = labels_of(loss, y).astype(kind)
        norms, score, size = (np.empty(n, kind) for _ in range(3))
        rng = np.random.default_rng()

        def slopes() -> None:
            """phi' in place of the score."""
            if loss == "squared":
                np.subtract(score, labels, out=score)
                np.multiply(score, 2, out=score)
            else:
                np.multiply(score, labels, out=score)
                np.exp(score, out=score)
                np.add(score, 1, out=score)
                np.divide(labels, score, out=score)
                np.negative(score, out=score)

        def call() -> Any:
            w = np.zeros(d, kind)
            np.sqrt(np.einsum("ij,ij->i", X, X, out=norms), out=norms)
            for _ in range(steps):
                np.dot(X, w, out=score)
                slopes()
                np.abs(score, out=size)
                np.multiply(size, norms, out=size)
                np.maximum(size, CLIP, out=size)
                np.divide(score, size, out=score)
                w -= RATE / n * (CLIP * (score @ X) + rng.normal(0, DEVIATION, d).astype(kind))
                if box:
                    np.clip(w, -RADIUS, RADIUS, out=w)
                else:
                    w *= min(1.0, RADIUS / float(np.linalg.norm(w)))
            return w

        return call

    return Side("numpy", make)


def _jax(loss: str, d: int, kind: str, steps: int) -> PeerSide:
    return beside("jax", "descent", loss=loss, d=d, kind=kind, steps=steps, **OTHERS)


def _stream(d: int) -> Callable[[int], Call]:
    """As fast as memory is read: the bytes of the points."""

    def make(n: int) -> Call:
        flat = records(n, d, "float64")[0].reshape(-1)
        return lambda: plain_sum(flat)

    return make


def our_plain_descent(n: int, **more: Any) -> Any:
    X, y = records(n, 20, "float64")
    arguments: dict[str, Any] = {"loss": LOSSES["squared"], "over": sets.Ball(RADIUS), "steps": 50, "step_size": RATE}
    return lambda: fastdp.projected_gradient_descent(X, y, **arguments, **more)


def _numpy_plain_descent(n: int) -> Call:
    """Two passes a step; the average of the points."""
    X, y = records(n, 20, "float64")
    score = np.empty(n)

    def call() -> Any:
        w, total = np.zeros(20), np.zeros(20)
        for _ in range(50):
            total += w
            np.dot(X, w, out=score)
            np.subtract(score, y, out=score)
            w -= 2 * RATE / n * (score @ X)
            w *= min(1.0, RADIUS / float(np.linalg.norm(w)))
        return total / 50

    return call


# --- sums of vectors


@lru_cache(maxsize=1)
def vectors(n: int) -> Any:
    """About half of them are longer than the norm that they are cut to."""
    return np.random.default_rng(0).normal(size=(n, 20))


def release(function: Any, kind: str, n: int) -> Any:
    X = vectors(n)
    delta = DELTA if kind == "gaussian" else 0.0
    return lambda: function(X, clip=VECTOR_CLIP, epsilon=EPSILON, delta=delta, noise=kind)


def _numpy_release(kind: str, *, mean: bool) -> Side:
    def make(n: int) -> Call:
        X, rng = vectors(n), np.random.default_rng()
        draw = rng.normal if kind == "gaussian" else rng.laplace

        def call() -> Any:
            norms = np.sqrt(np.einsum("ij,ij->i", X, X))
            total = np.minimum(1, VECTOR_CLIP / norms) @ X + draw(scale=VECTOR_NOISE[kind], size=20)
            return total / n if mean else total

        return call

    return Side("numpy", make)


# --- projections, second moments, nets


def far_away(n: int) -> Any:
    return np.random.default_rng(0).normal(0, 3, n)


def _project(over: Any) -> Callable[[int], Call]:
    """As a step of a descent does: the compiled function, on a point that lies outside."""

    def make(n: int) -> Call:
        far, w, space, numbers = far_away(n), np.empty(n), np.empty(n), over.of_dimension(n).projection
        move: Any = project_one

        def call() -> Any:
            w[:] = far
            move(*numbers, w, space)
            return w

        return call

    return make


def _numpy_ball(n: int) -> Call:
    far = far_away(n)
    return lambda: far * min(1.0, RADIUS / np.linalg.norm(far))


def _numpy_box(n: int) -> Call:
    far = far_away(n)
    return lambda: far.clip(-1, 1)


def _least_squares(d: int) -> Callable[[int], Any]:
    def make(n: int) -> Call:
        X, y = records(n, d, "float64")
        return lambda: fastdp.noisy_least_squares(
            X, y, loss=LOSSES["squared"], over=sets.Ball(RADIUS), epsilon=EPSILON, delta=DELTA, noise="gaussian"
        )

    return make


def _numpy_moments(d: int) -> Callable[[int], Call]:
    """Neither cut to the bounds, nor with noise, nor minimised over the ball."""

    def make(n: int) -> Call:
        X, y = records(n, d, "float64")
        return lambda: np.linalg.solve(X.T @ X, X.T @ y)

    return make


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


# --- exactly, in one dimension


@lru_cache(maxsize=1)
def ages(n: int) -> Any:
    return np.random.default_rng(0).gamma(9.0, 5.0, (n, 1)).clip(0, OLDEST)


def choose_point(loss: str, n: int, **more: Any) -> Any:
    X = ages(n)
    arguments = {"loss": POINT_LOSSES[loss], "over": sets.Box(0, OLDEST), "epsilon": EPSILON, "method": "exact"}
    return lambda: fastdp.exponential_erm(X, **arguments, **more)


def _numpy_median_point(n: int) -> Call:
    """The density falls and rises exponentially between neighbours; Gumbel noise takes one of the pieces."""
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


# --- cases

_case = partial(make_case, "optimizing")


def drawn_descent(loss: str, n: int, d: int, kind: str, steps: int, **more: Any) -> Callable[[int], Any]:
    def drawn(size: int) -> Any:
        few = min(size, n)
        X, y = records(few, d, kind)
        return loss, X, labels_of(loss, y), fit(loss, few, d, kind, steps, history=True, **more)()

    return drawn


def _descent_case(
    name: str, loss: str, n: int, d: int, kind: str, steps: int, *pairs: Pair, calls: int = 1, threads: int = 1
) -> Case:
    return _case(
        name,
        f"noisy descent, {loss}, d={d}, {kind}, {steps:,} steps{', two threads' * (threads == 2)}",
        n,
        our_descent(loss, d, kind, steps),
        *pairs,
        oracle="clipped descent",
        headline=name == "descent-squared-1e6x20",
        drawn=drawn_descent(loss, n, d, kind, steps),
        calls=calls,
        threads=threads,
        epsilon=EPSILON,
        delta=DELTA,
    )


def _large_cases(n: int, d: int, steps: int) -> Iterator[Case]:
    """float64 beside numpy and jax; float32 beside jax and opacus. Targets were asked for AVX-512; with AVX2 they are
    the same where they hold, else what is measured: with d=50 converting to float64 costs more than reading saves."""
    for loss, numpy_times, jax_times in (("squared", 2.8, 1.5), ("logistic", 2.3, 1.3)):
        size = f"1e{len(str(n)) - 1}x{d}"
        yield _descent_case(
            f"descent-{loss}-{size}", loss, n, d, "float64", steps,
            (numpy_descent(loss, d, "float64", steps), faster("numpy", avx512=numpy_times, avx2=numpy_times)),
            (_jax(loss, d, "float64", steps), faster("jax jit", avx512=2, avx2=2)),
        )  # fmt: skip
        of_opacus = (beside("opacus", "descent", d=d, steps=steps, **OTHERS), faster("opacus", avx512=14, avx2=14))
        yield _descent_case(
            f"descent-{loss}-{size}-float32", loss, n, d, "float32", steps,
            (_jax(loss, d, "float32", steps), faster("jax jit", avx512=jax_times, avx2=jax_times if d == 20 else 1.1)),
            *([of_opacus] if loss == "logistic" and n == MILLION else []),
        )  # fmt: skip


def _pass_case(loss: str, share: float) -> Case:
    def drawn(n: int) -> Any:
        X, y = records(n, 20, "float64")
        return loss, X, labels_of(loss, y), start(20), _gradient_pass(loss, 20)(n)() / UNIT

    return _case(
        f"gradient-pass-{loss}",
        f"the sum of all clipped gradients, {loss}, d=20, float64",
        MILLION,
        _gradient_pass(loss, 20),
        (Side("numba sum", _stream(20)), within("numba sum", 1 / share)),
        oracle="clipped gradients",
        drawn=drawn,
    )


def _small_case(loss: str) -> Case:
    """With AVX2 the target is what is measured."""
    rival = numpy_descent(loss, 10, "float64", 1_000)
    return _descent_case(
        f"descent-{loss}-small", loss, 1_000, 10, "float64", 1_000, (rival, faster("numpy", avx512=10, avx2=4)),
        calls=5,
    )  # fmt: skip


def _projection_case(name: str, over: Any, rival: Callable[[int], Call]) -> Case:
    return _case(
        f"project-{name}",
        f"the nearest point of a {name}, 1,000 coordinates, compiled function",
        1_000,
        _project(over),
        (Side("numpy", rival), None),
        oracle=f"nearest point of a {name}",
        drawn=lambda n: (far_away(n), _project(over)(n)()),
        calls=1_000,
    )


def _vector_case(function: Any, kind: str) -> Case:
    def drawn(n: int) -> Any:
        few, again = min(n, 5_000), release(function, kind, min(n, 5_000))
        return kind, vectors(few), VECTOR_CLIP, function is fastdp.vector_mean, [again() for _ in range(200)]

    name = function.__name__.replace("_", "-")
    return _case(
        f"{name}-{kind}",
        f"{function.__name__} of 20 coordinates, float64, {kind} noise",
        MILLION,
        lambda n: lambda: release(function, kind, n)().value,
        (_numpy_release(kind, mean=function is fastdp.vector_mean), None),
        oracle="clipped sums with noise",
        drawn=drawn,
        epsilon=EPSILON,
    )


def _point_case(name: str, loss: str, rival: Callable[[int], Call]) -> Case:
    return _case(
        name,
        f"exponential_erm, {loss} in one dimension, exactly, on a grid of 2^40 points",
        MILLION,
        lambda n: lambda: choose_point(loss, n)().w,
        (Side("numpy", rival), None),
        oracle="a good number",
        drawn=lambda n: (loss, ages(n).ravel(), choose_point(loss, n, beta=1e-9)()),
        epsilon=EPSILON,
    )


def _erm(n: int) -> Any:
    X, y = records(n, 20, "float64")
    arguments: dict[str, Any] = {"loss": LOSSES["squared"], "over": sets.Ball(RADIUS)}
    return lambda: fastdp.private_erm(X, y, **arguments, epsilon=EPSILON, delta=DELTA)


def _drawn_minimum(n: int) -> Any:
    found = _erm(n)()
    return (*records(n, 20, "float64"), found.details)


def _drawn_moments(n: int) -> Any:
    return (*records(n, 20, "float64"), _least_squares(20)(n)())


def _drawn_choice(n: int) -> Any:
    X, y = records(n, 2, "float64")
    return X, labels_of("logistic", y), _choose(n)()


CASES = (
    *_large_cases(MILLION, 20, 50),
    *_large_cases(100_000, 50, 100),
    *(_pass_case(loss, share) for loss, share in (("squared", 0.6), ("logistic", 0.5))),
    *map(_small_case, LOSSES),
    _descent_case(
        "descent-two-threads",
        "squared",
        MILLION,
        20,
        "float64",
        20,
        (Side("one thread", our_descent("squared", 20, "float64", 20)), faster("one thread", avx512=1.7, avx2=1.7)),
        threads=2,
    ),
    _case(
        "descent-plain",
        "projected descent, not private, squared, d=20, float64, 50 steps",
        MILLION,
        lambda n: lambda: our_plain_descent(n)().w,
        (Side("numpy", _numpy_plain_descent), None),
        oracle="descent",
        drawn=lambda n: (*records(n, 20, "float64"), our_plain_descent(n, history=True)()),
    ),
    *(_vector_case(fastdp.vector_sum, kind) for kind in ("gaussian", "laplace")),
    _vector_case(fastdp.vector_mean, "gaussian"),
    _projection_case("ball", sets.Ball(RADIUS), _numpy_ball),
    _projection_case("box", sets.Box(-1, 1), _numpy_box),
    _case(
        "least-squares",
        "noisy_least_squares, d=20, float64",
        MILLION,
        lambda n: lambda: _least_squares(20)(n)().w,
        (Side("numpy X.T @ X", _numpy_moments(20)), None),
        oracle="noisy moments",
        drawn=_drawn_moments,
    ),
    _case(
        "private-erm",
        "private_erm, squared, d=20, float64: it takes noisy_least_squares",
        MILLION,
        lambda n: lambda: _erm(n)().w,
        (Side("noisy_least_squares", lambda n: lambda: _least_squares(20)(n)().w), None),
        (Side("numpy X.T @ X", _numpy_moments(20)), None),
        oracle="noisy moments",
        drawn=_drawn_minimum,
        epsilon=EPSILON,
        delta=DELTA,
    ),
    _point_case("exact-deviation", "absolute deviation", _numpy_median_point),
    _point_case("exact-distance", "squared distance", _numpy_mean_point),
    _case(
        "net",
        "exponential_erm, logistic, a net of some 1,000 points in 2 dimensions",
        20_000,
        lambda n: lambda: _choose(n)().w,
        (Side("numpy", _numpy_choose), None),
        oracle="a good point",
        drawn=_drawn_choice,
    ),
)
