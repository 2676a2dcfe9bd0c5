"""Noisy projected gradient descent, one pass of clipped gradients, and descent without noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import fastdp
from fastdp import sets
from fastdp.optimizing.grid_points import GridPoints
from fastdp.optimizing.points import Points

from ...peers.inputs import labels_of
from ...peers.inputs import points as records
from ..plain_sum import plain_sum
from ..registry import Call, Case, Pair, PeerSide, Side, beside, faster, make_case, within
from ..traffic import Traffic, read_once
from .inputs import DELTA, EPSILON, LOSSES, MILLION, RADIUS, calls

_case = partial(make_case, "optimizing")

CLIP = 1.0
DEVIATION, RATE = 85.0, 0.05  # of the others' noise in a sum, and of their steps: about what ours takes
OTHERS = {"clip": CLIP, "radius": RADIUS, "deviation": DEVIATION, "rate": RATE}
UNIT = 2.0**30
POINTS_UNIT = 2.0**25  # of integer points
ENTRIES = 20_000_000  # that a pass over integer points reads


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


def _points_pass(d: int) -> Callable[[int], Call]:
    """A step of a descent: points that are integers already are read, and nothing else is done."""

    def make(n: int) -> Call:
        X, y = records(n, d, "float64")
        points, w = Points(X, y, LOSSES["squared"], "raise"), start(d)
        integers = GridPoints(points, np.arange(8, dtype=np.uint32), int(POINTS_UNIT))
        return lambda: integers.gradients(w, 0, POINTS_UNIT)

    return make


def _sum_of_bytes(size: float) -> Callable[[int], Call]:
    """As fast as memory is read: as many bytes a record as a step reads."""

    def make(n: int) -> Call:
        numbers = np.ones(max(1, int(n * size) // 8))
        return lambda: plain_sum(numbers)

    return make


def start(d: int) -> Any:
    """A point of the ball that is not its center."""
    return np.full(d, 0.5 / np.sqrt(d))


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


def drawn_descent(loss: str, n: int, d: int, kind: str, steps: int, **more: Any) -> Callable[[int], Any]:
    def drawn(size: int) -> Any:
        few = min(size, n)
        X, y = records(few, d, kind)
        return loss, X, labels_of(loss, y), fit(loss, few, d, kind, steps, history=True, **more)()

    return drawn


def _traffic(d: int, kind: str, steps: int) -> Traffic:
    """The input once; with each step a record's points, whose coordinates are pairs, its label, exponent and limit."""
    points = 2 * (d + d % 2) + 12
    return Traffic(read=np.dtype(kind).itemsize * d + steps * points, held=points)


def _descent_case(
    name: str, loss: str, n: int, d: int, kind: str, steps: int, *pairs: Pair, calls: int = 1, threads: int = 1
) -> Case:
    return _case(
        name,
        f"noisy gradient descent, {loss} loss, {d} columns, {kind}, {steps:,} steps{', two threads' * (threads == 2)}",
        n,
        our_descent(loss, d, kind, steps),
        *pairs,
        traffic=_traffic(d, kind, steps),
        oracle="clipped descent",
        headline=name == "descent-squared-1e6x20",
        # where noise would throw each step back to the rim of the ball, short ones show it
        drawn=drawn_descent(loss, n, d, kind, steps, **({"step_size": 1e-3} if d >= 200 else {})),
        calls=calls,
        threads=threads,
        epsilon=EPSILON,
        delta=DELTA,
    )


class _Size(NamedTuple):
    """Records, columns and steps, and how many times faster than numpy squared loss is to be with each vector unit."""

    name: str
    n: int
    d: int
    steps: int
    avx512: float
    avx2: float


_SIZES = (
    _Size("1e6x20", MILLION, 20, 60, 6, 5),
    _Size("1e5x50", 100_000, 50, 100, 8, 5),
    _Size("1e4x200", 10_000, 200, 100, 3.5, 2.2),
    _Size("4000x500", 4_000, 500, 100, 3.5, 2.2),
    _Size("1000x2000", 1_000, 2_000, 100, 3.5, 2.2),
    _Size("60000x784", 60_000, 784, 40, 5, 3),
)


def _size_cases(size: _Size) -> Iterator[Case]:
    """float64 beside numpy and jax; float32 beside jax and opacus. Logistic loss: 0.8 of what squared loss is to be."""
    name, n, d, steps, avx512, avx2 = size
    for loss, part in (("squared", 1.0), ("logistic", 0.8)):
        yield _descent_case(
            f"descent-{loss}-{name}", loss, n, d, "float64", steps,
            (numpy_descent(loss, d, "float64", steps), faster("numpy", avx512=part * avx512, avx2=part * avx2)),
            (_jax(loss, d, "float64", steps), faster("jax jit", avx512=2, avx2=2)),
        )  # fmt: skip
        of_opacus = (beside("opacus", "descent", d=d, steps=steps, **OTHERS), faster("opacus", avx512=14, avx2=14))
        yield _descent_case(
            f"descent-{loss}-{name}-float32", loss, n, d, "float32", steps,
            (_jax(loss, d, "float32", steps), faster("jax jit", avx512=3, avx2=2)),
            *([of_opacus] if loss == "logistic" and n == MILLION else []),
        )  # fmt: skip


def _pass_case(loss: str, share: float) -> Case:
    def drawn(n: int) -> Any:
        X, y = records(n, 20, "float64")
        return loss, X, labels_of(loss, y), start(20), _gradient_pass(loss, 20)(n)() / UNIT

    return _case(
        f"gradient-pass-{loss}",
        f"the sum of all clipped gradients, {loss} loss, 20 columns, float64",
        MILLION,
        _gradient_pass(loss, 20),
        (Side("numba sum", _stream(20)), within("numba sum", 1 / share)),
        traffic=read_once(8 * 20),
        oracle="clipped gradients",
        drawn=drawn,
    )


def _points_case(d: int) -> Case:
    """The share of the machine's limit: a label, an exponent and a limit are read with the coordinates of a record."""
    size = 2 * (d + d % 2) + 12

    def drawn(n: int) -> Any:
        X, y = records(n, d, "float64")
        return "squared", X, y, start(d), _points_pass(d)(n)() / POINTS_UNIT

    return _case(
        f"points-pass-{d}",
        f"the sum of all clipped gradients, squared loss, {d} columns, points of 16 bits",
        ENTRIES // d,
        _points_pass(d),
        (Side("numba sum of these bytes", _sum_of_bytes(size)), within("numba sum of these bytes", 2)),
        traffic=read_once(size),
        oracle="clipped gradients of rounded points",
        drawn=drawn,
    )


def _small_case(loss: str) -> Case:
    rival = numpy_descent(loss, 10, "float64", 1_000)
    avx512, avx2 = (10, 6) if loss == "squared" else (8, 4.8)  # 0.8 of it, as for all sizes
    target = faster("numpy", avx512=avx512, avx2=avx2)
    return _descent_case(f"descent-{loss}-small", loss, 1_000, 10, "float64", 1_000, (rival, target), calls=5)


def _tiny_case() -> Case:
    """Ten steps: what a call costs besides."""
    rival = (numpy_descent("squared", 8, "float64", 10), faster("numpy", avx512=1, avx2=1))
    return _descent_case("descent-squared-tiny", "squared", 1_000, 8, "float64", 10, rival, calls=50)


CASES = (
    *(case for size in _SIZES for case in _size_cases(size)),
    *(_pass_case(loss, share) for loss, share in (("squared", 0.6), ("logistic", 0.5))),
    *map(_points_case, (20, 50, 200, 500, 2_000)),
    *map(_small_case, LOSSES),
    _tiny_case(),
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
        "projected gradient descent, not private, squared loss, 20 columns, float64, 50 steps",
        MILLION,
        calls(our_plain_descent, "w"),
        (Side("numpy", _numpy_plain_descent), None),
        traffic=Traffic(read=50 * 8 * 20, held=8 * 20),
        oracle="descent",
        drawn=lambda n: (*records(n, 20, "float64"), our_plain_descent(n, history=True)()),
    ),
)
