"""Compiling ahead of time for every user of an installation: the archives of `kernels/shipped.py`.

`fastdp warmup --install` makes the one for this machine, as an image of a container wants it; `make objects` those for
each class of processors whose code can run here, which `make wheel` then packs. Each is an ordinary warm-up for that
class, into a cache of its own, of which what a warm process loads goes into the archive.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from zipfile import ZipFile

from ..kernels.shipped import TARGETS, Target, archive_of, target_of, targets_within, write_archive
from . import machine

_HOME = Path(__file__).resolve().parents[2]  # where this fastdp is imported from
_USED = """
import json, sys
import fastdp
from fastdp.kernels.compile_cache import cache_info, files_used
fastdp.warmup(rooms=sys.argv[1:] or None)
print(json.dumps([str(cache_info().place), list(files_used)]))
"""


class NotHere(ValueError):
    """This machine is of no class for which there are archives."""


def own_target() -> Target:
    """The class of this machine."""
    if (target := target_of(*machine.target())) is None:
        names = ", ".join(target.name for target in TARGETS)
        raise NotHere(f"compiled for {' '.join(machine.target()[:2])}: must be one of {names}")
    return target


def targets_here() -> tuple[Target, ...]:
    """The classes whose code can run on this machine: an archive is made by running what is in it."""
    triple, _, features = machine.target()
    return tuple(targets_within(features)) if triple.startswith("x86_64") else ()


def install(target: Target, rooms: Iterable[str] = ()) -> tuple[Path, int]:
    """Compile what these rooms call, all by default, into the package's folder; what has it already stays as it is.

    Returns   the archive, and how many kernels it has
    """
    path = Path(archive_of(target))
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {
            "NUMBA_CPU_NAME": target.cpu,
            "NUMBA_CPU_FEATURES": target.features,
            "FASTDP_CACHE_DIR": cache,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(_HOME), os.environ.get("PYTHONPATH")])),
        }

        def run(*arguments: str) -> str:
            command = [sys.executable, *arguments, *rooms]
            return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

        run("-m", "fastdp", "warmup")
        if path.exists():
            if not any(file for file in Path(cache).glob("*/*") if not file.name.startswith(".")):
                with ZipFile(path) as archive:
                    return path, len(archive.namelist())
            path.unlink()  # else what it has would be loaded from it, and left out of the next
            run("-m", "fastdp", "warmup")
        folder, files = json.loads(run("-c", _USED))
        write_archive(str(path), [os.path.join(folder, file) for file in files])
    return path, len(files)


def main(rooms: Sequence[str]) -> int:
    if not targets_here():
        raise SystemExit("there are archives for x86-64 processors with AES instructions alone")
    for target in targets_here():
        path, kernels = install(target, rooms)
        print(f"{target.name}: {kernels} kernels, {path.stat().st_size / 1e6:.1f} MB, {path}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
