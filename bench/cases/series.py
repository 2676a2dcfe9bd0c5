"""Latency and memory, each a series of its own: what a call costs that hardly has anything to do, and what a large one
holds beside its input.

Latencies are cases like all others. A case of which memory is measured runs in a process of its own,
`python -m fastdp.bench.cases.series case side n`, which says how far the resident bytes rose during one call.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import fastdp

from ..harness.measure import QUICK_N, python_seconds
from ..harness.results import Peak
from ..peers.inputs import float_scores, int_values, numbers
from . import learning, noise, selection
from .registry import Call, Case, Side, cases, make_case

SMALL = (1, 10, 1_000)
COLUMNS, LITERALS = 10, 2  # of the smallest conjunctions
TIMEOUT = 600.0  # seconds that a process of its own may take


# ---------------------------------------------------------------------------------------------------------------------
# latency

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
        "fastdp.learn_conjunction(np.eye(1000, 10, dtype=bool), np.ones(1000, bool), k=2, epsilon=1.0, delta=1e-6)",
        "np.eye(1000, 10, dtype=bool)[np.ones(1000, bool)].sum(0)",
    ),
}


def _timed(module: str, code: str) -> str:
    quiet = "import warnings; warnings.simplefilter('ignore')"  # that so few records support no promise
    return f"{quiet}; import numpy as np, {module}; from time import perf_counter as now; start = now(); {code}; " + (
        "print(now() - start)"
    )


def _first(module: str, code: str, *, cold: bool = False) -> Callable[[int], Call]:
    """The seconds of the first call in a new process, which has imported everything; cold: nothing is compiled yet."""

    def call() -> float:
        if not cold:
            return python_seconds(_timed(module, code))
        with tempfile.TemporaryDirectory() as empty:
            return python_seconds(_timed(module, code), FASTDP_CACHE_DIR=empty)

    return lambda n: call


def _first_case(name: str, *, cold: bool) -> Case:
    ours, theirs = FIRST[name]
    make = _first("fastdp", ours, cold=cold)
    return _case(
        f"first-{'cold' if cold else 'warm'}-{name}",
        f"first call of {name} in a new process, kernel cache {'empty' if cold else 'warm'}, n=1,000",
        1,
        make,
        (Side("numpy", _first("numpy", theirs)), None),
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
    return learning.records(n, COLUMNS, LITERALS)


def _learn(n: int) -> Call:
    X, y = _labelled(n)
    return lambda: fastdp.learn_conjunction(X, y, k=LITERALS, epsilon=1.0, delta=1e-6)


def _drawn_conjunction(n: int) -> Any:
    X, y = _labelled(max(n, 500_000))  # fewer promise nothing with such certainty
    h = fastdp.learn_conjunction(X, y, k=LITERALS, epsilon=1.0, delta=1e-6, beta=1e-9)
    return X, y, h


def _small_cases(n: int) -> tuple[Case, ...]:
    counted = f"{n:,} number{'s' * (n > 1)}"
    exponential = selection.exponential()
    return (
        _case(
            f"small-laplace-{n}", f"one laplace call on {counted}, scale 100", n,
            noise.our_laplace(int_values, 100.0),
            (Side("numpy", noise.numpy_laplace_added(100.0)), None),
            oracle="laplace_law", drawn=noise.laplace_drawn(100.0), calls=500, scale=100.0,
        ),
        _case(
            f"small-exponential_mechanism-{n}", f"one exponential_mechanism call on {n:,} candidate{'s' * (n > 1)}", n,
            selection.on(float_scores, exponential),
            (selection.numpy_choice("numpy argmax", float_scores, selection.gumbel), None),
            oracle="softmax", drawn=selection.choices(float_scores, exponential, 1_000), calls=200, epsilon=1.0,
        ),
        _case(
            f"small-median-{n}", f"one median call on {counted}, int64", n,
            _median, (Side("numpy", _numpy_median), None),
            oracle="a middle rank", drawn=lambda n: (numbers("int64", n), _median(n)()), calls=100,
            epsilon=1.0,
        ),
        _case(
            f"small-learn_conjunction-{n}",
            f"one learn_conjunction call on {n:,} record{'s' * (n > 1)}, d={COLUMNS}, k={LITERALS}",
            n, _learn, (learning.numpy_sums(COLUMNS, LITERALS), None),
            oracle="a conjunction", drawn=_drawn_conjunction, calls=50, epsilon=1.0, delta=1e-6,
        ),
    )  # fmt: skip


@cache
def latencies() -> tuple[Case, ...]:
    """Every latency that is not a row already (`IN_ROWS`)."""
    said = {"small-laplace-10", "small-exponential_mechanism-1000"}
    small = tuple(case for n in SMALL for case in _small_cases(n) if case.name not in said)
    return (*(_first_case(name, cold=cold) for cold in (True, False) for name in FIRST), *small)


# ---------------------------------------------------------------------------------------------------------------------
# memory


@dataclass(frozen=True)
class Memory:
    """A case of which both sides' peaks are of interest, and how large its input is."""

    case: str
    bytes_each: float  # of the input, for one of n

    @property
    def name(self) -> str:
        return f"memory-{self.case}"

    room = "memory"

    @property
    def of(self) -> Case:
        return next(case for case in cases() if case.name == self.case)

    @property
    def work(self) -> str:
        return f"memory: {self.of.work}"


@cache
def memories() -> tuple[Memory, ...]:
    """Cases with inputs of megabytes, and an input that numpy, too, takes as it is."""
    number = 8.0
    point = number * (20 + 1)  # coordinates and label
    return (
        Memory("laplace-int64-100-new", number),
        Memory("laplace-int64-100-in-place", number),
        Memory("gaussian-int64-100", number),
        Memory("above-threshold", number),
        Memory("select-float64-1e7", number),
        Memory("select-gumbel", number),
        Memory("permute-and-flip", number),
        Memory("mask-evaluate", number + 1),
        Memory("mask-update", number + 1),
        Memory("transform", number),
        Memory("descent-squared-1e6x20", point),
        Memory("descent-squared-1e6x20-float32", 4.0 * 20 + number),
        Memory("least-squares", point),
        Memory("literals-100", 100.0 + 1),
        Memory("literals-packed", (100.0 + 8) / 8),
        Memory("peel-10", 100.0 + 1),
        Memory("interior-point-int64", number),
        Memory("gaussian-float64-100", number),
        Memory("values-update", 2 * number),
        Memory("marginal", number),
        Memory("sample-searched", number),
        Memory("vector-sum-gaussian", 20 * number),
        Memory("descent-plain", point),
        Memory("exact-deviation", number),
        Memory("exact-distance", number),
        Memory("pack", 100.0),
        Memory("conjunction-by-greedy", 100.0 + 1),
        Memory("conjunction-by-counts", 100.0 + 1),
        Memory("conjunction-by-elimination", 100.0 + 1),
        Memory("error", 100.0 + 1),
        Memory("quantile", number),
        Memory("interior-point-prefix", number),
    )


def measure_peak(memory: Memory, environment: Mapping[str, str], *, quick: bool = False) -> Peak:
    """Both sides, each in a process of its own; a side that fails there says so."""
    case = memory.of
    n = min(case.n, QUICK_N) if quick else case.n
    rival = next(iter(_here(case)[1:]), None)
    found: dict[str, int | None] = {}
    failures: list[str] = []
    for side in (case.ours, *([rival] if rival else [])):
        command = [sys.executable, "-P", "-m", "fastdp.bench.cases.series", case.name, side.name, str(n)]
        found[side.name], why = _run(command, environment)
        if why:
            failures.append(f"{side.name}: {why}")
    return Peak(
        case=case.name,
        work=case.work,
        n=n,
        input=round(memory.bytes_each * n),
        ours=found[case.ours.name],
        rival=rival.name if rival else None,
        theirs=found[rival.name] if rival else None,
        why_not="; ".join(failures) or None,
    )


def _here(case: Case) -> list[Side]:
    """Ours, and the rivals that need no environment of their own."""
    return [side for side in (case.ours, *case.rivals) if isinstance(side, Side)]


def _run(command: list[str], environment: Mapping[str, str]) -> tuple[int | None, str | None]:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=dict(environment),
            timeout=TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, f"took longer than {TIMEOUT:,.0f} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return None, f"ended with {done.returncode}: {lines[-1][:200]}"
    return json.loads(done.stdout.splitlines()[-1])["bytes"], None


def _resident(field: str, status: Path = Path("/proc/self/status")) -> int:
    for line in status.read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise OSError(f"{field}: not in {status}")


def _highest() -> int:
    """getrusage's high-water mark."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def rise(call: Call) -> int:
    """How far the resident bytes rise above what they are before, during one call.

    Linux lets a process forget its high-water mark. Elsewhere getrusage's stands since the process began (on Linux even
    since its parent's): what making the input took beyond the input hides as much of the call."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _resident("VmRSS:")
        result = call()
        after = _resident("VmHWM:")
    except OSError:
        before = _highest()
        result = call()
        after = _highest()
    del result
    return max(0, after - before)


def main(arguments: list[str]) -> int:
    name, side_name, n = arguments
    case = next(case for case in cases() if case.name == name)
    side = next(side for side in _here(case) if side.name == side_name)
    fastdp.set_num_threads(side.threads)
    side.make(min(max(int(n) // 10, 1), QUICK_N))()  # loads the kernels; their code is no part of the work
    print(json.dumps({"bytes": rise(side.make(int(n)))}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
