"""The other end of `fastdp.bench.harness.child`: runs a peer's file, one line of JSON in, one line of JSON out.

    python -I protocol.py FILE BYTES

    (first)                                                -> {"versions": {...}} or {"why_not": "..."}
    {"prepare": task, "n": 1000, "parameters": {...}}      -> {"prepared": task} or {"why_not": "..."}
    {"run": calls}                                         -> {"seconds": 0.5} or {"why_not": "..."}

It stays on one core and within so many bytes of address space, takes the time itself, and ends with its input. What the
library prints goes to standard error. It knows no fastdp: it runs wherever the library does.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, version
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).parent


def load(path: Path) -> Any:
    """The peer's file as a module of the package `peers`: its folder, whose files are named like libraries, is not on
    sys.path, and `from .inputs import ...` works."""
    package = module_from_spec(ModuleSpec("peers", None, is_package=True))
    package.__path__ = [str(HERE)]
    sys.modules["peers"] = package
    spec = spec_from_file_location(f"peers.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not found"
    return found


def why_not(error: BaseException) -> str:
    """In one line. A feature that the library lacks is named by the peer's file, in words."""
    if isinstance(error, NotImplementedError):
        return f"{error}"
    lines = f"{error}".strip().splitlines() or ["no message"]
    kind = type(error).__name__
    if isinstance(error, MemoryError):
        return f"out of memory: {kind}: {lines[0][:200]}"
    return f"{'not available: ' * isinstance(error, ImportError)}{kind}: {lines[0][:200]}"


def limit(most_bytes: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # prctl(PR_SET_PDEATHSIG): a call that hangs must not outlive who would have ended it
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    if hasattr(os, "sched_setaffinity"):  # before the library counts the cores, as jax does
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


class Server:
    def __init__(self, path: Path) -> None:
        self.peer = load(path)
        self.call: Any = None

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        if "prepare" in asked:
            self.call = self.peer.TASKS[asked["prepare"]](asked["n"], **asked["parameters"])
            return {"prepared": asked["prepare"]}
        start = perf_counter()
        for _ in range(asked["run"]):
            self.call()
        return {"seconds": perf_counter() - start}


def main(path: str, most_bytes: str) -> None:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def send(answer: dict[str, Any]) -> None:
        print(json.dumps(answer), file=answers, flush=True)

    try:
        limit(int(most_bytes))
        server = Server(Path(path))
        send({"versions": versions(server.peer.PACKAGES)})
    except Exception as error:
        send({"why_not": why_not(error)})
        return
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:
            answer = {"why_not": why_not(error)}
        send(answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
