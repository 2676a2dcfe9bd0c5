"""Cases of the noise room: random words, Laplace and Gaussian noise, and what a process pays before its first number.

Where it is open what numpy should be asked for, it is asked for less: for arrays its noise alone is timed, without the
addition to the values; ours adds.
"""

from __future__ import annotations

import atexit
import ctypes
import tempfile
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import fastdp

from ...capi import build
from ...capi.library import why_not
from ..harness.measure import python_seconds
from ..peers.inputs import float_values, int_values
from .registry import Call, Case, Side, beside, faster, make_case, within, within_seconds

N = 1_000_000
OPENDP_N = 100_000
MOST = 1_000  # of values that a mean is taken of
PEER_N = 10_000  # numbers of the others that take more than 10 us for each

_case = partial(make_case, "noise")


def _name(value: float) -> str:
    power = int(np.log2(value)) if value >= 1 else 0
    return f"2^{power}" if value == 2**power and power > 9 else f"{value:g}"


# --- random words


def _our_words(n: int) -> Call:
    return lambda: fastdp.Randomness().words(n)


def _numpy_words(n: int) -> Call:
    rng = np.random.Generator(np.random.PCG64())
    return lambda: rng.integers(0, 2**64, dtype=np.uint64, size=n)


def _doubles(n: int) -> Call:
    """numpy asks for each word by itself, through a pointer."""
    rng = fastdp.Randomness().generator()
    return lambda: rng.random(n)


def _numpy_doubles(n: int) -> Call:
    rng = np.random.Generator(np.random.PCG64())
    return lambda: rng.random(n)


# --- Laplace


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


def _laplace_case(scale: float, *, in_place: bool) -> Case:
    place, short = ("in place", "in-place") if in_place else ("new array", "new")
    opendp = beside("opendp", "laplace", OPENDP_N, kind="int64", scale=scale)
    diffprivlib = beside("diffprivlib", "laplace", PEER_N, kind="int64", scale=scale)
    numpy = Side("numpy", numpy_laplace(scale))
    return _case(
        f"laplace-int64-{_name(scale)}-{short}",
        f"laplace int64, scale {_name(scale)}, {place}",
        N,
        our_laplace(int_values, scale, in_place=in_place),
        (numpy, faster("numpy", avx512=6, avx2=3)),
        *([] if in_place else [(Side("numpy exponentials", numpy_exponentials(scale)), None)]),
        *([] if in_place else [(opendp, faster("OpenDP", avx512=2000, avx2=1000)), (diffprivlib, None)]),
        oracle="laplace_law",
        drawn=laplace_drawn(scale, in_place=in_place),
        headline=scale == 100 and not in_place,
        scale=scale,
    )


def _float_laplace_case(scale: float) -> Case:
    """On the default grid, which is finer for a larger scale: at 2^31 grid units and more a draw takes 64 bits."""

    def drawn(n: int) -> Any:
        values = float_values(n)
        return fastdp.laplace(values, sensitivity=1, epsilon=1 / scale) - values

    return _case(
        f"laplace-float64-{_name(scale)}",
        f"laplace float64, scale {_name(scale)}",
        N,
        our_laplace(float_values, scale),
        (Side("numpy", numpy_laplace(scale)), faster("numpy", avx512=5.5, avx2=3)),
        (Side("numpy exponentials", numpy_exponentials(scale)), None),
        *((beside(peer, "laplace", PEER_N, kind="float64", scale=scale), None) for peer in ("opendp", "diffprivlib")),
        oracle="laplace_law, rounded",
        drawn=drawn,
        scale=scale,
    )


# --- Gaussian


def _gaussian(values: Any, sigma: float) -> Any:
    return fastdp.gaussian(values, sensitivity=1, rho=1 / (2 * sigma**2))


def our_gaussian(sigma: float) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        array = int_values(n)
        return lambda: _gaussian(array, sigma)

    return make


def numpy_gaussian(sigma: float) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        rng = np.random.default_rng()
        return lambda: rng.normal(scale=sigma, size=n)

    return make


def gaussian_drawn(sigma: float) -> Callable[[int], Any]:
    return lambda n: _gaussian(int_values(n), sigma) - int_values(n)


def _gaussian_case(sigma: float) -> Case:
    return _case(
        f"gaussian-int64-{_name(sigma)}",
        f"gaussian int64, sigma {_name(sigma)}",
        N,
        our_gaussian(sigma),
        (Side("numpy", numpy_gaussian(sigma)), faster("numpy", avx512=2, avx2=1.05)),
        (beside("opendp", "gaussian", PEER_N, scale=sigma), None),
        oracle="gaussian_law",
        drawn=gaussian_drawn(sigma),
        headline=sigma == 100,
        sigma=sigma,
    )


def _float_gaussian(n: int) -> Call:
    array = float_values(n)
    return lambda: _gaussian(array, 100.0)


# --- what a budget costs


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


# --- what the time of a call tells about the values: nothing


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
        f"laplace {kind}, scale 100, values at the ends of the range",
        N,
        our_laplace(extreme, 100.0),
        (Side("plain values", our_laplace(plain, 100.0)), within("plain values", 1.05)),
        oracle="laplace_law" if kind == "int64" else "laplace_law, rounded",
        drawn=drawn,
        scale=100.0,
    )


# --- a mean


def _mean(n: int) -> Call:
    """The sum is exact, and so is its noise."""
    values = int_values(n)
    return lambda: fastdp.laplace(int(values.clip(0, MOST).sum()), sensitivity=MOST, epsilon=1.0) / n


def _numpy_mean(n: int) -> Call:
    values, rng = int_values(n), np.random.default_rng()
    return lambda: values.clip(0, MOST).mean() + rng.laplace(scale=MOST / n)


# --- what a new process pays


def _import(module: str) -> Callable[[int], Call]:
    code = f"from time import perf_counter as now; start = now(); import {module}; print(now() - start)"
    return lambda n: lambda: python_seconds(code)


def _first_number(n: int) -> Call:
    """From just before the process is started until its first noisy number exists, on the clock both share."""
    code = "import time, fastdp; fastdp.laplace(42, sensitivity=1, epsilon=1.0); print(time.monotonic() - {start!r})"
    return lambda: python_seconds(code.format(start=time.monotonic()))


# --- from C


@cache
def _c_library() -> ctypes.CDLL:
    """The C library, in a folder that goes with the process; it joins this Python, as that of any host."""
    folder = tempfile.TemporaryDirectory(prefix="fastdp-bench-")
    atexit.register(folder.cleanup)
    library = ctypes.CDLL(str(build(folder.name).library))
    library.fastdp_last_error.restype = ctypes.c_char_p
    return library


def _from_c(n: int) -> Call:
    library, numbers, values = _c_library(), np.ctypeslib.ndpointer(np.int64), int_values(n)
    laplace = library.fastdp_laplace_i64
    laplace.argtypes = (numbers, ctypes.c_int64, ctypes.c_double, ctypes.c_double, ctypes.c_int64, numbers)

    def call() -> Any:
        if laplace(values, n, 1.0, 0.01, 0, values):
            raise RuntimeError(library.fastdp_last_error().decode())
        return values

    return call


def _c_cases() -> tuple[Case, ...]:
    """None where no C library can be made, which `python -m fastdp.capi` explains."""
    if why_not() is not None:
        return ()
    case = _case(
        "laplace-from-c-in-place",
        "laplace int64 from C, scale 100, in place",
        N,
        _from_c,
        (Side("Python", our_laplace(int_values, 100.0, in_place=True)), within("Python", 1 / 0.9)),
        oracle="laplace_law",
        drawn=lambda n: _from_c(n)() - int_values(n),
        scale=100.0,
    )
    return (case,)


CASES = (
    _case(
        "words",
        "random 64-bit words, bulk",
        N,
        _our_words,
        (Side("numpy", _numpy_words), faster("numpy", avx512=1.4, avx2=0.75)),
        oracle="uniform words",
        drawn=lambda n: fastdp.Randomness().words(n),
    ),
    _case(
        "generator",
        "random() of a numpy Generator over our words, beside PCG64's",
        N,
        _doubles,
        (Side("numpy", _numpy_doubles), None),
        oracle="uniform numbers",
        drawn=lambda n: _doubles(n)(),
    ),
    *(_laplace_case(scale, in_place=in_place) for in_place in (False, True) for scale in (1.0, 100.0, 2.0**20)),
    *(_float_laplace_case(scale) for scale in (1.0, 100.0)),
    *(_gaussian_case(sigma) for sigma in (1.0, 4.0, 100.0, 1e6)),
    _case(
        "gaussian-float64-100",
        "gaussian float64, sigma 100",
        N,
        _float_gaussian,
        (Side("numpy", numpy_gaussian(100.0)), None),
        oracle="gaussian_law, rounded",
        drawn=lambda n: _float_gaussian(n)() - float_values(n),
        sigma=100.0,
    ),
    _values_case("int64", int_values, _extreme_ints),
    _values_case("float64", float_values, _extreme_floats),
    _case(
        "laplace-small-call",
        "one laplace call on 10 numbers, scale 100",
        10,
        our_laplace(int_values, 100.0),
        (Side("numpy", numpy_laplace_added(100.0)), within("numpy", 4)),
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
        "mean",
        f"the mean of 10^6 int64 within 0 and {MOST:,}, clipped, with Laplace noise",
        N,
        _mean,
        (Side("numpy", _numpy_mean), None),
        (beside("diffprivlib", "mean", epsilon=1.0, most=MOST), None),
        oracle="a mean",
        drawn=lambda n: (int_values(n), _mean(n)()),
        epsilon=1.0,
    ),
    _case(
        "laplace-two-threads",
        "two threads, laplace int64, scale 100",
        N,
        our_laplace(int_values, 100.0),
        (Side("one thread", our_laplace(int_values, 100.0)), faster("one thread", avx512=1.7, avx2=1.7)),
        oracle="laplace_law",
        drawn=laplace_drawn(100.0),
        threads=2,
        scale=100.0,
    ),
    _case(
        "import",
        "import fastdp, in a new process",
        1,
        _import("fastdp"),
        (Side("numpy", _import("numpy")), within("numpy", 1.2)),
        oracle="a clock",
        drawn=lambda n: _import("fastdp")(n)(),
        clock="child",
        headline=True,
    ),
    _case(
        "first-number",
        "new process to its first noisy number, warm cache",
        1,
        _first_number,
        (None, within_seconds(0.5)),
        oracle="a clock",
        drawn=lambda n: _first_number(n)(),
        clock="child",
    ),
    *_c_cases(),
)
