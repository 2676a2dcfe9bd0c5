"""Whether the time of a call depends on the values of the records: `python -m tests.machinery.timing`.

Two classes of records of one shape, interleaved at random; Welch's t of the times that remain when the slowest tenth is
left out. Beyond 4.5 the time depends on the class. It measures the wall clock, so it is no part of `make test`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fastdp

THRESHOLD = 4.5


def welch(a: Any, b: Any) -> float:
    """Welch's t of two samples."""
    return float((a.mean() - b.mean()) / math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b)))


def compare(call: Callable[[Any], object], classes: list[Any], runs: int, seed: int) -> float:
    """Welch's t of the times of two classes."""
    order = np.random.default_rng(seed).integers(2, size=runs)
    taken = np.zeros(runs)
    for i, kind in enumerate(order):
        start = time.perf_counter_ns()
        call(classes[kind])
        taken[i] = time.perf_counter_ns() - start
    kept = taken <= np.quantile(taken, 0.9)
    return welch(taken[kept & (order == 0)], taken[kept & (order == 1)])


def cases(rng: np.random.Generator) -> dict[str, tuple[Callable[[Any], object], list[Any]]]:
    """Of each call that the page calls independent: the call, and two classes of records."""
    n = 1000
    points = rng.normal(size=(n, 4))
    integers = [np.zeros(n, np.int64), rng.integers(-(2**40), 2**40, n)]
    vectors = [np.full((n, 4), 0.1), points / np.linalg.norm(points, axis=1, keepdims=True)]
    return {
        "laplace": (lambda x: fastdp.laplace(x, sensitivity=1, epsilon=1.0), integers),
        "gaussian": (lambda x: fastdp.gaussian(x, sensitivity=1, epsilon=1.0, delta=1e-6), integers),
        "vector_sum": (lambda x: fastdp.vector_sum(x, clip=1.0, epsilon=1.0, delta=1e-6), vectors),
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.machinery.timing", description=__doc__)
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    fastdp.set_num_threads(1)
    failed = False
    for name, (call, classes) in cases(np.random.default_rng(options.seed)).items():
        for each in classes:
            call(each)
        t = compare(call, classes, options.runs, options.seed)
        failed |= abs(t) > THRESHOLD
        print(f"{name:12} t = {t:6.1f}, {options.runs:,} runs", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
