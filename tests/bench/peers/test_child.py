"""A peer at work in a process of its own: whatever it does is a line, and the rest goes on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from fastdp.bench.harness.child import Child, PeerError


def test_a_peer_is_timed_by_its_own_clock(child: Child) -> None:
    assert child.versions == {"numpy": np.__version__, "a-package-that-nobody-has": "not found"}
    for seconds in (0.01, 0.0):
        child.prepare("works", 1000, {"seconds": seconds})
        before = time.monotonic()
        assert 3 * seconds < child.run(3) < time.monotonic() - before  # less than ours, which waits for the pipes, too


def test_a_peer_stays_on_one_core(child: Child) -> None:
    child.prepare("threads", 1, {})
    child.run(1)


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("late", "RuntimeError: first line"),
        ("raises", "KeyError: 7"),
        ("lacks", "it has no such mechanism"),
        ("imports", "not available: ModuleNotFoundError: No module named 'a_module_that_nobody_has'"),
        ("out_of_date", "not available: ImportError: cannot import name 'DOUBLE' from 'math'"),
        ("exits", "crashed: its process ended with 3: about to go"),
        ("aborts", "crashed: its process ended by SIGABRT"),
        ("fills", "out of memory: "),
        ("dies_of_memory", "out of memory: its process ended by SIGABRT: terminate called"),
        ("a task that nobody wrote", "KeyError: 'a task that nobody wrote'"),
    ],
)
def test_whatever_goes_wrong_is_one_line(child: Child, task: str, why: str) -> None:
    def prepare_and_run() -> None:
        child.prepare(task, 7, {})
        child.run(1)

    with pytest.raises(PeerError) as caught:
        prepare_and_run()
    assert str(caught.value).startswith(why)
    assert "\n" not in str(caught.value)
    with pytest.raises(PeerError, match="its process has ended"):
        child.run(1)


def test_a_call_that_takes_too_long_is_ended(script: Path) -> None:
    child = Child(Path(sys.executable), script, call_seconds=0.3)
    child.prepare("works", 10, {"seconds": 3600.0})
    start = time.monotonic()
    with pytest.raises(PeerError, match=r"took longer than 0\.3 s"):
        child.run(1)
    assert time.monotonic() - start < 1800  # not the hour that the call would take


def test_a_peer_that_does_not_start_says_so(tmp_path: Path, script: Path) -> None:
    with pytest.raises(PeerError, match="does not start: No such file"):
        Child(tmp_path / "no" / "python", script)
    script.write_text("1 +")
    with pytest.raises(PeerError, match="SyntaxError"):
        Child(Path(sys.executable), script)


def test_closing_ends_the_process(child: Child) -> None:
    child.prepare("works", 10, {})
    child.close()
    child.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child._process.pid, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_a_peer_that_hangs_ends_with_a_killed_worker(tmp_path: Path) -> None:
    peer = tmp_path / "peer.py"
    begun = tmp_path / "begun"
    peer.write_text(f"""
import pathlib, time
PACKAGES = ()
TASKS = {{"sleep": lambda n: lambda: (pathlib.Path({str(begun)!r}).touch(), time.sleep(3600))}}
""")
    worker = f"""
from pathlib import Path
import sys
from fastdp.bench.harness.child import Child
child = Child(Path(sys.executable), Path({str(peer)!r}))
child.prepare("sleep", 1, {{}})
print(child._process.pid, flush=True)
child.run(1)
"""
    with subprocess.Popen([sys.executable, "-c", worker], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid, until = int(process.stdout.readline()), time.monotonic() + 1800
        while time.monotonic() < until and not begun.exists():
            time.sleep(0.05)
        process.kill()
    assert begun.exists()
    while time.monotonic() < until and _running(pid):
        time.sleep(0.05)
    assert not _running(pid)


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
