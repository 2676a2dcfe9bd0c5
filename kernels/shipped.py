"""Compiled kernels that came with the package, in its folder `compiled`: read, never written, by any user.

One archive holds the kernels of one class of x86-64 processors and of certain versions of Python, numba, llvmlite and
numpy; `fastdp warmup --install` and `make objects` make them (fastdp/support/shipping.py). A processor is given the
code of its own class alone, which is as wide as what would be compiled on it. What is in an archive are files of the
disk cache, under the same names, keys and checksums.

Reading one means running it. It lies beside the sources and is trusted as they are: nobody may write it who could not
write them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import llvmlite.binding

from .cache_folder import Refused, body_of, interpreter
from .sources import FOLDER, Sources

COMPILED = "compiled"


class Target(NamedTuple):
    """A class of processors: its name and features as LLVM is told them, and what a processor of it has."""

    cpu: str
    features: str
    needs: frozenset[str]

    @property
    def name(self) -> str:
        return self.cpu + "".join(feature for feature in self.features.split(",") if feature[0] == "+")


_V2 = frozenset({"cx16", "sahf", "popcnt", "sse3", "ssse3", "sse4.1", "sse4.2"})
_V3 = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
_V4 = _V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
# Of processors with AVX-512 the newer have VAES and VNNI, and are quick in all 512 bits, which LLVM takes x86-64-v4 not
# to be: with 256 Laplace noise takes 1.2 times as long on a Zen 4. The first that a processor has is its class.
TARGETS = (
    Target("x86-64-v4", "+aes,+vaes,+avx512vnni,-prefer-256-bit", _V4 | {"aes", "vaes", "avx512vnni"}),
    Target("x86-64-v4", "+aes", _V4 | {"aes"}),
    Target("x86-64-v3", "+aes,+vaes", _V3 | {"aes", "vaes"}),
    Target("x86-64-v3", "+aes", _V3 | {"aes"}),
    Target("x86-64-v2", "+aes", _V2 | {"aes"}),
)


def target_of(triple: str, cpu: str, features: str) -> Target | None:
    """The class of what numba compiles for, None if that is none: another architecture, or a name that a user chose."""
    if not triple.startswith("x86_64"):
        return None
    for target in TARGETS:
        if (cpu, features) == (target.cpu, target.features):
            return target
    if cpu != llvmlite.binding.get_host_cpu_name():
        return None
    return next((target for target in targets_within(features)), None)


def targets_within(features: str) -> Iterable[Target]:
    """The classes whose code runs where these features are, "+avx,-avx2,..." as LLVM writes them."""
    has = {feature[1:] for feature in features.split(",") if feature.startswith("+")}
    return (target for target in TARGETS if target.needs <= has)


def archive_of(target: Target) -> str:
    """Where the kernels of a class lie, for the versions that run now."""
    return os.path.join(FOLDER, COMPILED, f"{interpreter()}-{target.name}.zip")


class ShippedKernels:
    """The archive of this process; `path` is None where there is none, and `state` says why."""

    def __init__(self, sources: Sources, target: Target | None) -> None:
        self._sources = sources
        self.path: str | None = None
        self.target = target
        if target is None:
            self.state = "none for this processor"
        elif os.environ.get("FASTDP_CACHE_DIR") == "":
            self.state = "off: FASTDP_CACHE_DIR is empty"
        elif sources.unreadable or sources.changed_since_import:
            self.state = "off: kernel sources changed or cannot be read"
        elif not os.path.lexists(path := archive_of(target)):
            self.state = f"none for {target.name} and these versions"
        else:
            self.path, self.state = path, "in use"

    def read(self, name: str, key: bytes) -> memoryview | None:
        """The body of a kernel, None if it is not here; an error unless it is what was made under this key."""
        if self.path is None:
            return None
        if not self._sources.unchanged():
            self.path, self.state = None, "off: kernel sources changed after this process imported them"
            return None
        try:
            # opened anew each time: a forked child would share the place at which its parent reads
            with open(_open_trusted(self.path), "rb") as file, ZipFile(file) as archive:
                content = archive.read(name)
        except (FileNotFoundError, KeyError):
            return None
        except Refused as refused:
            self.path, self.state = None, f"off: {refused}"
            return None
        return body_of(name, key, memoryview(content))


def write_archive(path: str, files: Iterable[str]) -> None:
    """Make an archive of these files of a cache, at once or not at all; the same files make the same archive."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    partial = f"{path}.{os.getpid()}"
    try:
        with ZipFile(partial, "w", ZIP_DEFLATED, compresslevel=9) as archive:
            for file in sorted(files, key=os.path.basename):
                member = ZipInfo(os.path.basename(file))
                member.compress_type, member.external_attr = ZIP_DEFLATED, 0o644 << 16
                with open(file, "rb") as content:
                    archive.writestr(member, content.read())
        os.chmod(partial, stat.S_IMODE(os.stat(__file__).st_mode) & 0o644)  # for all who may read the sources
        os.replace(partial, path)
    finally:
        if os.path.lexists(partial):
            os.unlink(partial)


def _open_trusted(path: str) -> int:
    """Open a file and the folder that it is in; refuse them if they are open to others than the sources' folder is."""
    sources = os.stat(FOLDER)
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a FIFO would be waited for
    folder = os.open(os.path.dirname(path), flags | os.O_DIRECTORY)
    try:
        _check_writers(os.fstat(folder), sources, os.path.dirname(path))
        descriptor = os.open(os.path.basename(path), flags, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{path} is not a regular file")
        _check_writers(status, sources, path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_writers(status: os.stat_result, sources: os.stat_result, path: str) -> None:
    owners = {0, os.geteuid(), sources.st_uid}
    by_group = status.st_mode & stat.S_IWGRP and not (
        sources.st_mode & stat.S_IWGRP and status.st_gid == sources.st_gid
    )
    by_others = status.st_mode & stat.S_IWOTH and not sources.st_mode & stat.S_IWOTH
    if status.st_uid not in owners or by_group or by_others:
        raise Refused(f"{path} can be written by others than {FOLDER}")
