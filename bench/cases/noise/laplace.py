"""Laplace noise: arrays, small calls, a budget, extreme values, two threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import fastdp

from ...peers.inputs import float_values, int_values
from ..registry import Call, Case, Pair, Side, Target, beside, faster, make_case, within, within_seconds
from ..traffic import NOISY, NOISY_IN_PLACE
from .inputs import PEER_N, N, in_words

_case = partial(make_case, "noise")

OPENDP_N = 100_000


def our_laplace(values: Callable[[int], Any], scale: float, *, in_place: bool = False) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        array, epsilon = values(n), 1 / scale
        out = array if in_place else None
        return lambda: fastdp.laplace(array, sensitivity=1, epsilon=epsilon, out=out)

    return make


def numpy_laplace(scale: float) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        rng = np.random.default_rng()
        return lambda: rng.laplace(scale=scale, size=n)

    return make


def numpy_exponentials(scale: float) -> Callable[[int], Call]:
    """The same law, three times as fast as Generator.laplace: exponentials by ziggurat, with signs."""

    def make(n: int) -> Call:
        rng = np.random.default_rng()

        def call() -> Any:
            noise = rng.standard_exponential(n)
            noise *= scale
            return np.copysign(noise, rng.integers(-128, 128, n, np.int8), out=noise)

        return call

    return make


def numpy_laplace_added(scale: float) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        rng, array = np.random.default_rng(), int_values(n)
        return lambda: array + rng.laplace(scale=scale, size=n)

    return make


def laplace_drawn(scale: float, *, in_place: bool = False) -> Callable[[int], Any]:
    def drawn(n: int) -> Any:
        values = int_values(n)
        before = values.copy()
        out = fastdp.laplace(values, sensitivity=1, epsilon=1 / scale, out=values if in_place else None)
        return out - before

    return drawn


def _beside_exponentials(scale: float, small: bool) -> Pair:
    name = "numpy exponentials"
    return Side(name, numpy_exponentials(scale)), faster(name, avx512=3.4, avx2=1.65) if small else None


def _laplace_case(scale: float, *, in_place: bool) -> Case:
    place, short = ("in place", "in-place") if in_place else ("new array", "new")
    opendp = beside("opendp", "laplace", OPENDP_N, kind="int64", scale=scale)
    diffprivlib = beside("diffprivlib", "laplace", PEER_N, kind="int64", scale=scale)
    numpy = Side("numpy", numpy_laplace(scale))
    small = scale <= 2**15  # above that a draw takes more words
    times = faster("numpy", avx512=10, avx2=5) if small else faster("numpy", avx512=6, avx2=3)
    return _case(
        f"laplace-int64-{in_words(scale)}-{short}",
        f"Laplace noise, int64, scale {in_words(scale)}, {place}",
        N,
        our_laplace(int_values, scale, in_place=in_place),
        (numpy, times),
        *([] if in_place else [_beside_exponentials(scale, small)]),
        *([] if in_place else [(opendp, faster("OpenDP", avx512=2000, avx2=1000)), (diffprivlib, None)]),
        traffic=NOISY_IN_PLACE if in_place else NOISY,
        oracle="laplace_law",
        drawn=laplace_drawn(scale, in_place=in_place),
        headline=scale == 100 and not in_place,
        scale=scale,
    )


def _float_target(scale: float) -> Target:
    """Of the row that was asked for; the finer grid of a small scale takes as many bits."""
    return faster("numpy", avx512=7, avx2=3.5) if scale == 100 else faster("numpy", avx512=5.5, avx2=3)


def _float_laplace_case(scale: float) -> Case:
    """On the default grid, which is finer for a larger scale: at 2^31 grid units and more a draw takes 64 bits."""

    def drawn(n: int) -> Any:
        values = float_values(n)
        return fastdp.laplace(values, sensitivity=1, epsilon=1 / scale) - values

    return _case(
        f"laplace-float64-{in_words(scale)}",
        f"Laplace noise, float64, scale {in_words(scale)}",
        N,
        our_laplace(float_values, scale),
        (Side("numpy", numpy_laplace(scale)), _float_target(scale)),
        (Side("numpy exponentials", numpy_exponentials(scale)), None),
        *((beside(peer, "laplace", PEER_N, kind="float64", scale=scale), None) for peer in ("opendp", "diffprivlib")),
        traffic=NOISY,
        oracle="laplace_law, rounded",
        drawn=drawn,
        scale=scale,
    )


def charged(n: int) -> Callable[[], tuple[Any, Any]]:
    """Every call is charged to the same budget, which is never used up."""
    array, budget = int_values(n), fastdp.Budget(epsilon=1e9)
    return lambda: (fastdp.laplace(array, sensitivity=1, epsilon=1 / 100, budget=budget), budget)


def _in_budget(n: int) -> Call:
    release = charged(n)
    return lambda: release()[0]


def _drawn_in_budget(n: int) -> tuple[Any, Any]:
    noisy, budget = charged(n)()
    return noisy - int_values(n), budget


def _extreme_ints(n: int) -> Any:
    """The ends of int64 in turn: every sum saturates or comes near to it."""
    return np.where(np.arange(n) % 2, np.iinfo(np.int64).max, np.iinfo(np.int64).min)


def _extreme_floats(n: int) -> Any:
    """Subnormal, huge, negative and nothing, in turn."""
    return np.resize(np.array([5e-324, 1.7e308, -3e-310, 0.0, -1e300, 2.0**52 + 1]), n)


def _values_case(kind: str, plain: Callable[[int], Any], extreme: Callable[[int], Any]) -> Case:
    def drawn(n: int) -> Any:
        return fastdp.laplace(plain(n), sensitivity=1, epsilon=1 / 100) - plain(n)

    return _case(
        f"laplace-{kind}-extreme-values",
        f"Laplace noise, {kind}, scale 100, values at the ends of the range",
        N,
        our_laplace(extreme, 100.0),
        (Side("plain values", our_laplace(plain, 100.0)), within("plain values", 1.05)),
        traffic=NOISY,
        oracle="laplace_law" if kind == "int64" else "laplace_law, rounded",
        drawn=drawn,
        scale=100.0,
    )


CASES = (
    *(_laplace_case(scale, in_place=in_place) for in_place in (False, True) for scale in (1.0, 100.0, 2.0**20)),
    *(_float_laplace_case(scale) for scale in (1.0, 100.0)),
    _values_case("int64", int_values, _extreme_ints),
    _values_case("float64", float_values, _extreme_floats),
    _case(
        "laplace-small-call",
        "one laplace call on 10 numbers, scale 100",
        10,
        our_laplace(int_values, 100.0),
        (Side("numpy", numpy_laplace_added(100.0)), within("numpy", 4)),
        (None, within_seconds(2e-6)),
        oracle="laplace_law",
        drawn=laplace_drawn(100.0),
        calls=2000,
        scale=100.0,
    ),
    _case(
        "laplace-in-budget",
        "one laplace call on 10 numbers, charged to a budget, beside the same without",
        10,
        _in_budget,
        (Side("no budget", our_laplace(int_values, 100.0)), None),
        oracle="laplace_law, charged",
        drawn=_drawn_in_budget,
        calls=500,
        scale=100.0,
    ),
    _case(
        "laplace-two-threads",
        "two threads, Laplace noise, int64, scale 100",
        N,
        our_laplace(int_values, 100.0),
        (Side("one thread", our_laplace(int_values, 100.0)), faster("one thread", avx512=1.7, avx2=1.7)),
        oracle="laplace_law",
        drawn=laplace_drawn(100.0),
        threads=2,
        scale=100.0,
    ),
)
