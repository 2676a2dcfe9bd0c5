"""Latency: what a call costs that hardly has anything to do.

Its cases are like all others, in a table of their own; what has a target is a row, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import fastdp

from ..peers.inputs import float_scores, int_values, numbers
from . import selection
from .learning.inputs import numpy_sums, records
from .noise import laplace
from .noise.new_process import python_seconds
from .registry import Call, Case, Pair, Side, make_case, within_seconds

SMALL = (1, 10, 1_000)
COLUMNS, LITERALS = 10, 2  # of the smallest conjunctions

IN_ROWS = ("import", "first-number", "laplace-small-call", "select-small-call")  # they have targets, and stay rows

_case = partial(make_case, "latency")

FIRST = {  # ours, numpy's
    "laplace": (
        "fastdp.laplace(np.arange(1000), sensitivity=1, epsilon=1.0)",
        "np.arange(1000) + np.random.default_rng().laplace(size=1000)",
    ),
    "exponential_mechanism": (
        "fastdp.exponential_mechanism(np.arange(1000.0), sensitivity=1, epsilon=1.0)",
        "np.argmax(np.arange(1000.0) / 2 + np.random.default_rng().gumbel(size=1000))",
    ),
    "median": ("fastdp.median(np.arange(1000), epsilon=1.0)", "np.median(np.arange(1000))"),
    "learn_conjunction": (
        "fastdp.learn_conjunction(np.eye(1000, 10, dtype=bool), np.ones(1000, bool), k=2, epsilon=1.0, delta=1e-6,"
        " method='peel', realizable=True)",
        "np.eye(1000, 10, dtype=bool)[np.ones(1000, bool)].sum(0)",
    ),
    "noisy_projected_gradient_descent": (
        "fastdp.noisy_projected_gradient_descent(np.eye(1000, 10), np.ones(1000), loss=fastdp.losses.Logistic(1.0),"
        " over=fastdp.sets.Ball(1.0), epsilon=1.0, delta=1e-6)",
        "np.eye(1000, 10).T @ (1 / (1 + np.exp(np.eye(1000, 10) @ np.zeros(10))))",
    ),
    "PrivateMultiplicativeWeights": (
        "fastdp.PrivateMultiplicativeWeights(np.eye(1000, 10, dtype=np.int64), fastdp.Domain.binary(10), epsilon=1.0,"
        " delta=1e-6, max_queries=10)",
        "np.bincount(np.eye(1000, 10, dtype=np.int64) @ (1 << np.arange(10)), minlength=1024)",
    ),
}
COLD, WARM = 2.0, 0.6  # seconds of a first call: on a machine that has compiled nothing, and on one that has

MICROSECONDS = {  # of a call
    ("exponential_mechanism", 10): 4, ("median", 10): 25, ("median", 1_000): 80, ("learn_conjunction", 10): 50,
}  # fmt: skip


def _asked(name: str, n: int) -> tuple[Pair, ...]:
    return ((None, within_seconds(MICROSECONDS[name, n] * 1e-6)),) if (name, n) in MICROSECONDS else ()


def _timed(module: str, code: str) -> str:
    quiet = "import warnings; warnings.simplefilter('ignore')"  # that so few records support no error bound
    return f"{quiet}; import numpy as np, {module}; from time import perf_counter as now; start = now(); {code}; " + (
        "print(now() - start)"
    )


# what an installation from sources, or `make objects`, has left in the package's folder is not read
_NOTHING_SHIPPED = "from fastdp.kernels import shipped; shipped.COMPILED = 'nothing'"


def _first(module: str, code: str, *, cold: bool = False) -> Callable[[int], Call]:
    """The seconds of the first call in a new process, which has imported everything; cold: nothing is compiled yet."""

    def call() -> float:
        if not cold:
            return python_seconds(_timed(module, code))
        with tempfile.TemporaryDirectory() as empty:
            return python_seconds(_timed(module, f"{_NOTHING_SHIPPED}; {code}"), FASTDP_CACHE_DIR=empty)

    return lambda n: call


def _first_case(name: str, *, cold: bool) -> Case:
    ours, theirs = FIRST[name]
    make = _first("fastdp", ours, cold=cold)
    return _case(
        f"first-{'cold' if cold else 'warm'}-{name}",
        f"first call of {name} in a new process, kernel cache {'empty' if cold else 'warm'}, n = 1,000",
        1,
        make,
        (Side("numpy", _first("numpy", theirs)), None),
        (None, within_seconds(COLD if cold else WARM)),
        oracle="a clock",
        drawn=lambda n: make(n)(),
        clock="child",
        rounds=1 if cold else 5,
    )


def _median(n: int) -> Call:
    array = numbers("int64", n)
    return lambda: fastdp.median(array, epsilon=1.0)


def _numpy_median(n: int) -> Call:
    array = numbers("int64", n)
    return lambda: np.median(array)


def _labelled(n: int) -> tuple[Any, Any]:
    return records(n, COLUMNS, LITERALS)


_PEEL = dict[str, Any](k=LITERALS, epsilon=1.0, delta=1e-6, method="peel", realizable=True)


def _learn(n: int) -> Call:
    X, y = _labelled(n)
    return lambda: fastdp.learn_conjunction(X, y, **_PEEL)


def _drawn_conjunction(n: int) -> Any:
    X, y = _labelled(max(n, 500_000))  # fewer have no error bound with such certainty
    h = fastdp.learn_conjunction(X, y, **_PEEL, beta=1e-9)
    return X, y, h


def _small_cases(n: int) -> tuple[Case, ...]:
    counted = f"{n:,} number{'s' * (n > 1)}"
    exponential = selection.exponential()
    return (
        _case(
            f"small-laplace-{n}", f"one laplace call on {counted}, scale 100", n,
            laplace.our_laplace(int_values, 100.0),
            (Side("numpy", laplace.numpy_laplace_added(100.0)), None),
            oracle="laplace_law", drawn=laplace.laplace_drawn(100.0), calls=500, scale=100.0,
        ),
        _case(
            f"small-exponential_mechanism-{n}", f"one exponential_mechanism call on {n:,} candidate{'s' * (n > 1)}", n,
            selection.on(float_scores, exponential),
            (selection.numpy_choice("numpy argmax", float_scores, selection.gumbel), None),
            *_asked("exponential_mechanism", n),
            oracle="softmax", drawn=selection.choices(float_scores, exponential, 1_000), calls=200, epsilon=1.0,
        ),
        _case(
            f"small-median-{n}", f"one median call on {counted}, int64", n,
            _median, (Side("numpy", _numpy_median), None), *_asked("median", n),
            oracle="a middle rank", drawn=lambda n: (numbers("int64", n), _median(n)()), calls=100,
            epsilon=1.0,
        ),
        _case(
            f"small-learn_conjunction-{n}",
            f"one learn_conjunction call on {n:,} record{'s' * (n > 1)}, {COLUMNS} columns, k = {LITERALS}",
            n, _learn, (numpy_sums(COLUMNS, LITERALS), None), *_asked("learn_conjunction", n),
            oracle="a conjunction", drawn=_drawn_conjunction, calls=50, epsilon=1.0, delta=1e-6,
        ),
    )  # fmt: skip


@cache
def latencies() -> tuple[Case, ...]:
    """Every latency that is not a row already (`IN_ROWS`)."""
    in_rows = {"small-laplace-10", "small-exponential_mechanism-1000"}
    small = tuple(case for n in SMALL for case in _small_cases(n) if case.name not in in_rows)
    return (*(_first_case(name, cold=cold) for cold in (True, False) for name in FIRST), *small)
