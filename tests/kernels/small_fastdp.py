"""A small fastdp in a temporary folder, with the real machinery of kernels/ and kernels of its own.

It runs in processes of its own: forks of one that has imported numba, or new ones where the environment speaks to
numba.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.forked import Forked, Parent

ROOT = Path(__file__).resolve().parents[2]
MAGIC, DIGEST = 16, 32  # bytes: a file is magic, key, checksum, body
AS_ROOT = os.geteuid() == 0
NOT_KEPT = "compiled kernels are not kept"  # how the warning begins
# Python 3.12 warns of a fork with threads around, which is what some of these tests are about; of a cache that is off
# fastdp warns, and so do some of the places that are tried here: a test of its own asks for that.
FLAGS = ["-W", "error", "-W", "ignore:This process:DeprecationWarning", "-W", f"ignore:{NOT_KEPT}"]
Process = Forked | subprocess.Popen[str]

HELPER = """
from .compile import jit

@jit(inline=True)
def bump(x):
    return x * 2 + 1
"""
LOOPS = """
from .compile import compile_callback, jit
from .helper import bump

@jit
def total(a):
    s = bump(a[0])
    for i in range(a.size):
        s += bump(a[i])
    return s

@jit
def apply(f, x):
    return f(x)

@compile_callback("int64(int64)")
def bump_in_c(x):
    return bump(x)
"""
TOTAL = "answer = int(loops.total(np.arange(4)))"  # 1 + (1 + 3 + 5 + 7) = 17
LOOK = "answer = None"  # cache_info alone chooses and makes the directory: no need to compile

INIT = """
import os
from fastdp.kernels import forks
os.register_at_fork(before=forks.before, after_in_parent=forks.in_parent, after_in_child=forks.in_child)
"""

PROBE = """
import contextlib, ctypes, dataclasses, json, os, sys, threading, time
import numba, numba.core.event
import numpy as np

compiled = []

class Listener(numba.core.event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].__name__)
    def on_end(self, event):
        pass

numba.core.event.register("numba:compile", Listener())
{before}
from fastdp.kernels import compile, compile_cache, loops
{code}
print(json.dumps(dict(dataclasses.asdict(compile_cache.cache_info()), answer=answer, compiled=compiled), default=str))
"""


def environment() -> dict[str, str]:
    names = {k: v for k, v in os.environ.items() if not k.startswith(("FASTDP_", "NUMBA_", "XDG_", "PYTHON"))}
    # else Python itself takes an edit within the same second for the old file
    return names | {"PYTHONDONTWRITEBYTECODE": "1"}


class House:
    """A small fastdp with its own kernels, home, temporary folder and cache."""

    def __init__(self, folder: Path, parent: Parent) -> None:
        self.folder = folder
        self.parent = parent
        self.kernels = folder / "fastdp" / "kernels"
        self.cache = folder / "cache"
        for made in (self.kernels, folder / "home", folder / "tmp"):
            made.mkdir(parents=True)
        (folder / "fastdp" / "__init__.py").write_text(INIT)
        machinery = (
            "cache_folder",
            "call_types",
            "compile",
            "compile_cache",
            "forks",
            "known_answers",
            "layout",
            "parts",
            "requirements",
            "shipped",
            "sources",
        )
        for name in ("__init__", *machinery):
            shutil.copy(ROOT / "kernels" / f"{name}.py", self.kernels)
        self.write("helper", HELPER)
        self.write("loops", LOOPS)

    def write(self, module: str, text: str) -> None:
        (self.kernels / f"{module}.py").write_text(text)

    def start(self, code: str = TOTAL, before: str = "", forked: bool = True, **env: str | None) -> Process:
        """Import `loops` and run `code`, which leaves an `answer`; `before` comes before the import.

        Not `forked` where it comes before numba opens its compiler, too.
        """
        names = environment() | {
            "PYTHONPATH": str(self.folder),
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "FASTDP_CACHE_DIR": str(self.cache),
        }
        for name, value in env.items():
            names.pop(name, None)
            if value is not None:
                names[name] = value
        program = PROBE.format(before=before, code=code)
        if forked and sys.platform == "linux" and not any(name.startswith("NUMBA_") for name in names):
            return self.parent.start(program, names, self.folder)
        return subprocess.Popen(
            [sys.executable, *FLAGS, "-c", program],
            env=names,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, code: str = TOTAL, before: str = "", forked: bool = True, **env: str | None) -> dict[str, Any]:
        return finish(self.start(code, before, forked, **env))

    def files(self) -> list[Path]:
        """The kernels that are kept; beside them lies the file of locks."""
        return sorted(file for file in self.cache.glob("*/*") if file.name != ".locks")

    def file(self, kernel: str) -> Path:
        (file,) = (f for f in self.files() if f.name.startswith(kernel))
        return file


def finish(process: Process, seconds: float = 3600) -> dict[str, Any]:
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail(f"still running after {seconds} s")
    assert process.returncode == 0, err
    result: dict[str, Any] = json.loads(out.splitlines()[-1])
    return result
