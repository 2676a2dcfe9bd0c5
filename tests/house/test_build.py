"""The build backend (build_kernels.py): an installation from sources compiles kernels, and never fails for them."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from fastdp.kernels.shipped import target_of
from fastdp.support import machine
from tests.house.test_package import MADE, MADE_PATTERN, ROOT

HAS_CLASS = target_of(*machine.target()) is not None
ROOM = "statistics"  # three kernels
CALL = """
import numpy as np
from fastdp.statistics import warmup
from fastdp.kernels.compile_cache import cache_info
for _, step in warmup.steps():
    step()
found = cache_info()
print(found.misses + found.bad, found.shipped > 0, found.place)
"""


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("build_kernels", ROOT / "build_kernels.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.delenv(module.SETTING, raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return module


def test_pyproject_names_it() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    assert (table["build-backend"], table["backend-path"]) == ("build_kernels", ["."])


@pytest.mark.skipif(not HAS_CLASS, reason="there are archives for classes of x86-64 processors")
def test_a_wheel_from_sources_brings_its_kernels(tmp_path: Path) -> None:
    tree, out, away = tmp_path / "tree", tmp_path / "out", tmp_path / "away"
    shutil.copytree(
        ROOT, tree, symlinks=True, ignore=lambda _, names: [n for n in names if n in MADE or MADE_PATTERN.fullmatch(n)]
    )
    names = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "FASTDP_", "NUMBA_"))}

    def python(code: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "ignore", "-c", code]
        return subprocess.run(
            command, cwd=folder, env=names | more, capture_output=True, text=True, timeout=3600, check=True
        )

    links = [tree / "fastdp" / name for name in ("kernels", "bench")]
    for link in links:  # which an sdist does not have
        link.unlink()
    build = f"import sys; sys.path.insert(0, '.'); import build_kernels; build_kernels.build_wheel({str(out)!r})"
    said = python(build, tree, FASTDP_COMPILE_AT_INSTALL=ROOM).stderr
    assert "fastdp: compiling kernels" in said
    assert not any(link.exists() for link in links)
    (wheel,) = out.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(away)
    assert len(list((away / "fastdp" / "kernels" / "compiled").iterdir())) == 1
    nowhere = {"PYTHONPATH": str(away), "FASTDP_CACHE_DIR": os.devnull + "/none"}
    assert python(CALL, tmp_path, **nowhere).stdout == "0 True None\n"

    # what is there is not compiled again, nor in a checkout
    for link in links:
        link.symlink_to(Path("..", link.name))
    (made,) = (tree / "kernels" / "compiled").iterdir()
    before = made.stat()
    python(build, tree, FASTDP_COMPILE_AT_INSTALL=ROOM)
    after = made.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_nothing_is_compiled_where_it_is_turned_off(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(backend, "_run", lambda *_: pytest.fail("started"))
    monkeypatch.setenv(backend.SETTING, "")
    backend.compile_kernels()
    assert capfd.readouterr().err == f"fastdp: no kernels are compiled: {backend.SETTING} is empty\n"
    assert backend.requirements() == []
    monkeypatch.delenv(backend.SETTING)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    backend.compile_kernels()
    assert "there are no archives for" in capfd.readouterr().err
    assert backend.requirements() == []


def test_numba_is_fetched_for_a_build_only_where_it_is_not_installed(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert backend.requirements() == []
    assert backend.get_requires_for_build_wheel() == backend.get_requires_for_build_editable() == []
    monkeypatch.setattr(backend, "_environment", lambda: None)
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert backend.requirements() == needed
    backend.compile_kernels()
    assert capfd.readouterr().err == "fastdp: no kernels are compiled: numba, numpy or cffi is not installed\n"


def test_an_isolated_build_sees_what_is_installed(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A folder on PYTHONPATH hides numba, as pip hides what it installs into."""
    (tmp_path / "numba.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert "PYTHONPATH" not in backend._environment()
    monkeypatch.setattr(backend, "_ISOLATION", ())
    assert backend._environment() is None


@pytest.mark.parametrize("rooms", [None, "noise mechanisms"])
def test_a_compilation_that_fails_is_told_and_no_error(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], rooms: str | None
) -> None:
    if rooms is not None:
        monkeypatch.setenv(backend.SETTING, rooms)
    commands = []

    def fail(command: list[str], environment: dict[str, str]) -> None:
        commands.append(command[1:])
        run([sys.executable, "-c", "raise SystemExit(3)"], environment)

    run = backend._run
    monkeypatch.setattr(backend, "_run", fail)
    backend.compile_kernels()
    assert commands == [["-m", "fastdp", "warmup", "--install", *(rooms or "").split()]]
    assert "fastdp: no kernels are compiled: " in (said := capfd.readouterr().err)
    assert "exit status 3" in said


def test_a_compilation_that_hangs_is_ended(
    backend: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With what it has started, which holds a lock for as long as it lives."""
    lock, ready = tmp_path / "lock", tmp_path / "ready"
    child = (
        f"import fcntl, time; file = open({str(lock)!r}, 'w'); fcntl.flock(file, fcntl.LOCK_EX); "
        f"open({str(ready)!r}, 'w').close(); time.sleep(3600)"
    )
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"

    class Hanging(subprocess.Popen[bytes]):
        def wait(self, timeout: float | None = None) -> int:
            if timeout is None:
                return super().wait()
            while not ready.exists():
                time.sleep(0.01)
            raise subprocess.TimeoutExpired("fastdp", timeout)

    monkeypatch.setattr(subprocess, "Popen", Hanging)
    with pytest.raises(subprocess.TimeoutExpired):
        backend._run([sys.executable, "-c", code], dict(os.environ))
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
