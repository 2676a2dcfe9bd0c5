"""Values that are written during a call: `python -m tests.machinery.races --seconds 1`.

An array is filled with other values, infinities, NaNs and the ends of int64 among them, while every function that takes
an array reads it: by a thread, as fast as it can, and right before each call of a compiled kernel, which is where a
thread would do most. Whatever is read, the process survives, no call runs for longer than SECONDS, an error is one of
ours, no index is beyond the candidates, and no value leaves without noise.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import fastdp
from fastdp import losses, sets

from .fuzz import NAMED

SECONDS = 1800  # against hangs
MANY = 40_000  # candidates, for which other kernels are called than for few
LEAST = 2_000  # calls, where a machine with much else to do gets few into the time
Take = Callable[[Any], Any]

FLOATS = (0.0, 50.0, -1e9, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.5, 2.0**60, -0.0, 5e-324)
INTEGERS = (0, 50, -(10**9), 2**63 - 1, -(2**63), 2**62, 1)


def _index(found: Any, size: int) -> None:
    assert all(0 <= each < size for each in np.atleast_1d(found)), f"index {found} of {size}"


def _chosen(name: str, **options: Any) -> Take:
    def take(array: Any) -> None:
        call = getattr(fastdp, name)
        _index(call(array, sensitivity=1, epsilon=1.0, **options), array.size)

    return take


def _offered(array: Any) -> None:
    choice = fastdp.GumbelMax(sensitivity=1, epsilon=1.0, k=2)
    for start in range(0, array.size, 1000):
        choice.offer(array[start : start + 1000], start)
    _index(choice.winners(), array.size)


def _finite(name: str, **options: Any) -> Take:
    def take(array: Any) -> None:
        assert np.isfinite(getattr(fastdp, name)(array, sensitivity=1, **options)).all(), "not finite"

    return take


def _points(array: Any) -> Any:
    return array[: array.size // 2 * 2].reshape(-1, 2)


def _erm(name: str, **options: Any) -> Take:
    def take(array: Any) -> None:
        loss: Any = losses.SquaredDistance(x_norm=100.0)
        if name == "noisy_least_squares":
            loss = losses.SquaredError(x_norm=100.0, y_bound=1.0)
            options["y"] = np.zeros(array.size // 2)
        getattr(fastdp, name)(_points(array), loss=loss, over=sets.Ball(1.0), epsilon=1.0, **options)

    return take


ANY: dict[str, Take] = {
    "exponential_mechanism": _chosen("exponential_mechanism"),
    "gumbel": _chosen("exponential_mechanism", method="gumbel"),
    "buckets": _chosen("exponential_mechanism", method="buckets"),
    "draws": _chosen("exponential_mechanism", size=40),
    "top_k": lambda array: _index(fastdp.top_k(array, 3, sensitivity=1, epsilon=1.0), array.size),
    "permute_and_flip": _chosen("permute_and_flip"),
    "GumbelMax": _offered,
    "median": lambda array: fastdp.median(array, epsilon=1.0, domain_bits=64),
    "quantile": lambda array: fastdp.quantile(array, 0.9, epsilon=1.0, domain_bits=64, outside="clip"),
    "interior_point": lambda array: fastdp.interior_point(array, epsilon=1.0, domain_bits=64),
    "first_above": lambda array: fastdp.AboveThreshold(array.dtype.type(10**6), sensitivity=1, epsilon=1.0).first_above(
        array
    ),
    "vector_sum": lambda array: fastdp.vector_sum(_points(array), clip=1.0, epsilon=1.0, delta=1e-6),
    "error": lambda array: fastdp.error(lambda X: X[:, 0] > 0, _points(array), np.zeros(array.size // 2, int)),
    "learn_box": lambda array: fastdp.learn_box(
        _points(array), np.arange(array.size // 2) % 2, domain_bits=64, epsilon=1.0, delta=1e-6
    ),
}
OF_FLOATS: dict[str, Take] = {
    "laplace": _finite("laplace", epsilon=1.0),
    "gaussian": _finite("gaussian", rho=1.0),
    "descent": _erm("noisy_projected_gradient_descent", delta=1e-6, steps=3, outside="clip"),
    "least squares": _erm("noisy_least_squares", delta=1e-6, outside="clip"),
}
OF_INTEGERS: dict[str, Take] = {
    "laplace": _finite("laplace", epsilon=1.0),
    "learn_conjunction": lambda array: fastdp.learn_conjunction(
        _points(array), np.arange(array.size // 2) % 2, k=1, epsilon=1.0
    ),
    "release_marginals": lambda array: fastdp.release_marginals(
        {"a": array}, fastdp.Domain(a=51), [["a"]], epsilon=1.0, delta=1e-6
    ),
    "release_ranges": lambda array: fastdp.release_ranges(array, range(0, 61, 10), epsilon=1.0),
    "mwem": lambda array: fastdp.mwem({"a": array}, fastdp.Domain(a=51), [fastdp.Range("a", 0, 5)], epsilon=1.0),
    "PrivateMultiplicativeWeights": lambda array: fastdp.PrivateMultiplicativeWeights(
        {"a": array}, fastdp.Domain(a=51), epsilon=100.0, delta=1e-6, max_queries=3
    ).answer(fastdp.Range("a", 0, 5)),
}


@contextmanager
def written(array: Any, values: Any) -> Iterator[None]:
    """An array that a thread fills with these values in turn, often with the first, which every function takes."""
    stop = threading.Event()
    rng = np.random.default_rng(0)

    def write() -> None:
        while not stop.is_set():
            array[...] = values[0]
            time.sleep(1e-5)
            array[rng.integers(array.size, size=4)] = values[rng.integers(len(values))]
            array[...] = values[rng.integers(3)]

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def rewritten(array: Any, values: Any) -> Iterator[None]:
    """An array some of whose entries change right before a kernel is called, now and then."""
    rng = np.random.default_rng(0)
    changed = []

    def wrapped(kernel: Any) -> Any:
        def call(*arguments: Any) -> Any:
            if rng.random() < 0.5:
                if rng.random() < 0.5:
                    array[...] = values[rng.integers(len(values))]
                array[rng.integers(array.size, size=4)] = values[rng.integers(len(values))]
            return kernel(*arguments)

        return call

    for path, module in list(sys.modules.items()):
        if path.startswith("fastdp.kernels."):
            for name, kernel in list(vars(module).items()):
                if hasattr(kernel, "py_func"):
                    changed.append((module, name, kernel))
                    setattr(module, name, wrapped(kernel))
    try:
        yield
    finally:
        for module, name, kernel in changed:
            setattr(module, name, kernel)


def race(take: Take, array: Any, values: Any, seconds: float, how: Any = written) -> tuple[Counter[str], list[str]]:
    """Outcomes of calls for so long, and until one has returned, within LEAST calls; and what must not be."""
    outcomes: Counter[str] = Counter()
    found: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for some in (array, np.zeros(MANY, array.dtype)):  # compiles kernels, which call one another by their names
            for _ in range(5):
                take(some)
    with how(array, values), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        until = time.monotonic() + seconds
        while time.monotonic() < until or (not outcomes["returned"] and outcomes.total() + len(found) < LEAST):
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            try:
                array[...] = values[0]
                take(array)
                outcomes["returned"] += 1
            except (ValueError, RuntimeError) as error:
                outcomes[type(error).__name__] += 1
                if not NAMED.match(str(error)):
                    found.append(f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}")
            except Exception as error:
                found.append(f"{type(error).__name__}: {error} {getattr(error, '__notes__', '')}")
            finally:
                faulthandler.cancel_dump_traceback_later()
    return outcomes, found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.races", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each function, type and size")
    parser.add_argument("--only", help="one function")
    options = parser.parse_args(arguments)
    wrong = 0
    sys.setswitchinterval(1e-5)
    for dtype, values, takes in (
        (np.float64, FLOATS, ANY | OF_FLOATS),
        (np.int64, INTEGERS, ANY | OF_INTEGERS),
    ):
        for size in (300, MANY):
            for name, take in takes.items():
                if options.only not in (None, name):
                    continue
                for how in (written, rewritten):
                    array = np.zeros(size, dtype)
                    outcomes, found = race(take, array, np.array(values, dtype), options.seconds, how)
                    wrong += len(found)
                    print(f"{name}, {size:,} of {np.dtype(dtype)}, {how.__name__}: {dict(outcomes)}", flush=True)
                    for each, times in Counter(found).most_common(5):
                        print(f"    {times} times: {each[:300]}", flush=True)
    print(f"{wrong} calls broke an invariant")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
