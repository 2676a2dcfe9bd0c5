"""Python processes that have imported numba already: forks of one that did, and nothing more.

Each is as good as new: its environment, folder, paths and `__main__` are its own, numba has read its settings and
opened its compiler but compiled nothing, and it ends as a process of its own does. What a start costs, numba's import
and its tables of types, is paid once.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PARENT = """
import contextlib, ctypes, dataclasses, json, os, select, sys, threading, time
import numba, numba.core.event
import numpy as np
from numba.core.registry import cpu_target
BEFORE
cpu_target.typing_context.refresh()
cpu_target.target_context.refresh()
ends = {}
while True:
    if not select.select([0], [], [], 0.005 if ends else None)[0]:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            end = ends.pop(pid)
            with open(end + ".part", "w") as file:
                file.write(str(os.waitstatus_to_exitcode(status)))
            os.rename(end + ".part", end)
        continue
    if not (line := sys.stdin.readline()):
        os._exit(0)
    asked = json.loads(line)
    if not (pid := os.fork()):
        break
    ends[pid] = asked["end"]
    os.write(1, b"%d\\n" % pid)

for number, name in enumerate((os.devnull, asked["out"], asked["err"])):
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.dup2(file, number)
    os.close(file)
os.environ.clear()
os.environ.update(asked["env"])
os.chdir(asked["cwd"])
sys.path[1:1] = filter(None, asked["env"].get("PYTHONPATH", "").split(os.pathsep))
__code = compile(asked["code"], "<string>", "exec")
for __name in [name for name in globals() if not name.startswith("__")]:
    del globals()[__name]
exec(__code)
"""


class Forked:
    """What the tests use of `subprocess.Popen`."""

    def __init__(self, pid: int, place: Path) -> None:
        self.pid, self._place = pid, place
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and (end := self._place / "end").exists():
            self.returncode = int(end.read_text())
        return self.returncode

    def wait(self, timeout: float) -> int:
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.005)
        return code

    def communicate(self, timeout: float = 3600) -> tuple[str, str]:
        self.wait(timeout)
        return (self._place / "out").read_text(), (self._place / "err").read_text()

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class Parent:
    """A process with numba, that forks the others."""

    def __init__(self, flags: list[str], env: dict[str, str], before: str = "") -> None:
        """`before` is what it imports besides numba."""
        self._places = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, *flags, "-c", PARENT.replace("BEFORE", before)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, code: str, env: dict[str, str], cwd: Path) -> Forked:
        assert self._process.stdin
        assert self._process.stdout
        place = Path(tempfile.mkdtemp(dir=self._places.name))
        asked = {"code": code, "env": env, "cwd": str(cwd)}
        asked |= {name: str(place / name) for name in ("out", "err", "end")}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Forked(int(self._process.stdout.readline()), place)

    def close(self) -> None:
        self._process.communicate()
        self._places.cleanup()
