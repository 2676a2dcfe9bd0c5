"""What fastdp needs of the environment in which it is imported, each stated in one sentence that says what to do.

Asked before the first module of kernels is imported, and so before anything is charged or drawn. It imports neither
numpy nor numba: their versions are those that their installers wrote down.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from re import findall

LEAST = {"numpy": (1, 26), "llvmlite": (0, 44), "numba": (0, 61)}  # numba brings llvmlite

NO_COMPILER = (
    "fastdp's kernels are compiled, and have no form in plain Python: NUMBA_DISABLE_JIT must be unset, or 0, in a "
    "process that calls fastdp"
)


def check() -> None:
    """ImportError where something is missing, too old or switched off."""
    for name, least in LEAST.items():
        if problem := problem_with(name, least):
            wanted = f"{name}>={'.'.join(map(str, least))}"
            raise ImportError(f"fastdp needs {wanted}, {problem}: pip install '{wanted}'", name=name)
    if os.environ.get("NUMBA_DISABLE_JIT", "").strip() not in ("", "0"):
        raise ImportError(NO_COMPILER, name="numba")


def problem_with(name: str, least: tuple[int, ...]) -> str | None:
    """What is wrong with an installed package, or None; one that has no version written down is taken as it is."""
    try:
        if find_spec(name) is None:
            return "which is not installed"
        found = version(name)
    except (PackageNotFoundError, ValueError):  # a module without a spec
        return None
    given = tuple(int(part) for part in findall(r"\d+", found.partition("+")[0])[: len(least)])
    return None if given >= least else f"and {found} is installed"
