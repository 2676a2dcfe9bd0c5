"""What a new process pays before its first number."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from ..registry import Call, Side, make_case, within, within_seconds

_case = partial(make_case, "noise")


def python_seconds(code: str, **environment: str) -> float:
    """Run `code` in a new interpreter; the seconds that it prints."""
    command, inherited = [sys.executable, "-P", "-c", code], {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=inherited)
    if done.returncode:
        raise RuntimeError(f"{code!r} in a new interpreter: {done.stderr.strip().splitlines()[-1:]}")
    return float(done.stdout)


def _import(module: str) -> Callable[[int], Call]:
    code = f"from time import perf_counter as now; start = now(); import {module}; print(now() - start)"
    return lambda n: lambda: python_seconds(code)


def _first_number(n: int) -> Call:
    """From just before the process is started until its first noisy number exists, on the clock both share."""
    code = "import time, fastdp; fastdp.laplace(42, sensitivity=1, epsilon=1.0); print(time.monotonic() - {start!r})"
    return lambda: python_seconds(code.format(start=time.monotonic()))


CASES = (
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
        "from the start of a process to its first noisy number, kernels compiled before",
        1,
        _first_number,
        (None, within_seconds(0.25)),
        oracle="a clock",
        drawn=lambda n: _first_number(n)(),
        clock="child",
    ),
)
