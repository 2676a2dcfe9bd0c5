"""The build backend: setuptools, and kernels that are compiled for this machine when fastdp is installed from sources.

`pip install .`, `pip install -e .` and `pip install git+...` come here; a wheel does not. Before setuptools packs
anything, `fastdp warmup --install` runs in a process of its own. It leaves an archive in `kernels/compiled`: the wheel
packs it, and a checkout that is installed in place reads it where it is (kernels/shipped.py: who is given it, and on
what trust). No installation fails for it: what is not compiled is compiled at the first call, as if this were
setuptools alone, and why is printed (`pip -v` shows it).

FASTDP_COMPILE_AT_INSTALL names the rooms that are compiled, as `fastdp warmup` does, all by default; empty, it turns
this off.
"""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (  # noqa: F401  (frontends ask for them here)
    build_sdist,
    get_requires_for_build_sdist,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

ROOT = Path(__file__).resolve().parent
SETTING = "FASTDP_COMPILE_AT_INSTALL"
MOST_SECONDS = 3600  # against a compiler that hangs
_ISOLATION = ("PYTHONPATH", "PYTHONNOUSERSITE")  # how pip hides from a build what is installed


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_wheel(config_settings), *requirements()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    return [*build_meta.get_requires_for_build_editable(config_settings), *requirements()]


def build_wheel(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    compile_kernels()
    return build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    compile_kernels()
    return build_meta.build_editable(wheel_directory, config_settings, metadata_directory)


def requirements() -> list[str]:
    """What the compilation needs beyond setuptools: what fastdp needs, unless that is installed already."""
    if _why_not() or _environment() is not None:
        return []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["dependencies"])


def _why_not() -> str:
    """Why nothing is to be compiled, or nothing."""
    if os.environ.get(SETTING, "all").strip() == "":
        return f"{SETTING} is empty"
    if os.name != "posix" or platform.machine().lower() not in ("x86_64", "amd64"):
        return f"there are no archives for {platform.system()} on {platform.machine()}"
    return ""


def _environment() -> dict[str, str] | None:
    """Variables under which this Python finds what kernels are compiled with, or None.

    Archives are for one version of numba: best is the one that fastdp will run with, which a build is isolated from by
    variables alone. Where it is still to be installed, what was fetched for the build is as new.
    """
    isolated = dict(os.environ)
    outer = {name: value for name, value in isolated.items() if name not in _ISOLATION}
    for environment in (outer, isolated):
        command = [sys.executable, "-c", "import cffi, numba, numpy"]
        if subprocess.run(command, env=environment, cwd=os.sep, capture_output=True, check=False).returncode == 0:
            return environment
    return None


def compile_kernels() -> None:
    """Make the archive of this machine, or say why there is none."""
    why_not = _why_not()
    environment = None if why_not else _environment()
    if environment is None:
        _say(f"no kernels are compiled: {why_not or 'numba, numpy or cffi is not installed'}")
        return
    rooms = os.environ.get(SETTING, "").split()
    _say(f"compiling kernels, which takes a minute or two; {SETTING}= leaves them to first calls")
    try:
        with _importable():
            _run([sys.executable, "-m", "fastdp", "warmup", "--install", *rooms], environment)
    except (OSError, subprocess.SubprocessError) as error:
        _say(f"no kernels are compiled: {error}")


@contextmanager
def _importable() -> Iterator[None]:
    """Meanwhile, an sdist has the links of a checkout: two folders of the package lie beside it."""
    links = [link for name in ("kernels", "bench") if not os.path.lexists(link := ROOT / "fastdp" / name)]
    try:
        for link in links:
            link.symlink_to(Path("..", link.name))
        yield
    finally:
        for link in links:
            link.unlink(missing_ok=True)


def _run(command: list[str], environment: dict[str, str]) -> None:
    path = os.pathsep.join(filter(None, [str(ROOT), environment.get("PYTHONPATH")]))
    process = subprocess.Popen(command, env=environment | {"PYTHONPATH": path}, cwd=os.sep, start_new_session=True)
    try:
        status = process.wait(MOST_SECONDS)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # those, too, that it has started
        process.wait()
        raise
    if status:
        raise subprocess.CalledProcessError(status, command)


def _say(what: str) -> None:
    print(f"fastdp: {what}", file=sys.stderr, flush=True)
