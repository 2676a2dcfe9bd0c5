"""A stand-in for a library: a file made on the spot, run by this Python, in a cache of the test's own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fastdp.bench.harness.child import Child

FAKE = '''
"""A library that does what a test asks of it."""
import os, sys, time
import numpy as np
from .inputs import int_values

PACKAGES = ("numpy", "a-package-that-nobody-has")

def works(n, *, seconds=0.0):
    print("libraries talk")
    values = int_values(n)
    def call():
        print("and talk")
        time.sleep(seconds)
        return values.sum()
    return call

def late(n):
    def call():
        raise RuntimeError("first line\\nsecond line")
    return call

def raises(n):
    raise KeyError(n)

def lacks(n):
    raise NotImplementedError("it has no such mechanism")

def imports(n):
    import a_module_that_nobody_has

def out_of_date(n):
    from math import DOUBLE

def exits(n):
    print("about to go", file=sys.stderr, flush=True)
    return lambda: os._exit(3)

def aborts(n):
    return lambda: os.abort()

def fills(n):
    return lambda: np.ones(1 << 40)

def dies_of_memory(n):
    def call():
        print("terminate called after throwing an instance of 'std::bad_alloc'", file=sys.stderr, flush=True)
        os.abort()
    return call

def threads(n):
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
    if len(cores) != 1:
        raise AssertionError(cores)
    return lambda: None

TASKS = {f.__name__: f for f in (works, late, raises, lacks, imports, out_of_date, exits, aborts, fills, dies_of_memory,
    threads)}
'''


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTDP_PEERS_DIR", str(tmp_path / "peers"))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "fake.py"
    path.write_text(FAKE)
    return path


@pytest.fixture
def child(script: Path) -> Iterator[Child]:
    child = Child(Path(sys.executable), script, most_bytes=4 << 30)
    yield child
    child.close()
