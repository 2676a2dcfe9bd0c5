"""Where compiled kernels lie on disk: which folder, who may write there, reading and writing its files, and waiting.

Reading a file means running it. So the folder, the folder above it and every file are opened first, and what was opened
must belong to this user, or to root, and be writable by nobody else. Nothing here knows what is in the files.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import llvmlite
import numba
import numpy as np

from .sources import Sources

try:
    import fcntl
except ImportError:  # no such locks: every process compiles for itself
    fcntl = None  # type: ignore[assignment]

_MAGIC = b"fastdp kernel 1\n"
_INTERPRETERS_KEPT = 4  # side by side; 50 MB each once `fastdp warmup` has run
_MOST_BYTES = 200_000_000  # of one interpreter's: several branches and CPUs side by side
_WRITES_BETWEEN = 100  # a look at how much there is takes some milliseconds
_DAY = 86_400.0
_LOCKS = ".locks"
_PATIENCE = 120.0  # seconds that one process waits for another to compile a kernel, which takes up to ten
_CHANGED = "off: kernel sources changed after this process imported them"
BY_USER = "off: FASTDP_CACHE_DIR is empty"


class Refused(OSError):
    """A folder or file that somebody else could have written: its contents would be executed."""


def body_of(name: str, key: bytes, content: memoryview) -> memoryview:
    """What a file holds; an error unless it is what was written under this key."""
    header, body = content[: len(_MAGIC) + 64], content[len(_MAGIC) + 64 :]
    if header != _MAGIC + key + hashlib.sha256(body).digest():
        raise ValueError(f"{name}: not what was written")
    return body


class CacheFolder:
    """The folder of this process's kernels; `path` is None when there is no disk cache, and `state` says why."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.locks = _Locks()
        self._written = 0
        self.sources = Sources()
        if self.sources.unreadable:
            self.state = f"off: kernel sources cannot be read: {self.sources.unreadable}"
            return
        if self.sources.changed_since_import:
            self.state = _CHANGED
            return
        refusals = []
        for root in _roots():
            try:
                self.path = _prepare(root, interpreter())
                break
            except OSError as error:
                refusals.append(str(error) if isinstance(error, Refused) else f"{root}: {error.strerror}")
        because = "; ".join(refusals)
        if self.path is not None:
            self.state = f"in use, instead of {because}" if because else "in use"
        elif os.environ.get("FASTDP_CACHE_DIR") == "":
            self.state = BY_USER
        else:
            self.state = f"off: {because or 'no home and no temporary directory'}"

    def read(self, name: str, key: bytes) -> memoryview | None:
        """The body of a file, None if there is none; an error unless it is what was written under this key, by us."""
        if (path := self._usable_path()) is None:
            return None
        try:
            with self._folder(path) as folder, open(_open_file(name, folder, os.O_RDONLY), "rb") as file:
                content = memoryview(file.read())
                _mark_used(file.fileno())
        except FileNotFoundError:
            return None
        return body_of(name, key, content)

    def write(self, name: str, key: bytes, body: bytes) -> bool:
        """Write a file at once or not at all: readers and other writers see the old content or the new."""
        if (path := self._usable_path()) is None:
            return False
        os.makedirs(path, mode=0o700, exist_ok=True)  # another process may have cleared it away
        partial = f".{secrets.token_hex(8)}"
        with self._folder(path) as folder:
            try:
                with open(_open_file(partial, folder, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
                    file.write(_MAGIC + key + hashlib.sha256(body).digest())
                    file.write(body)
                os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise
            if self._written % _WRITES_BETWEEN == 0:
                _clear_unused(folder)
            self._written += 1
        return True

    @contextmanager
    def alone(self, key: bytes, *, nested: bool) -> Iterator[None]:
        """Compile a kernel that no other process compiles meanwhile: whoever enters looks for its file first.

        Whoever has waited holds no lock: the file is there, or the other process could not write it, and then neither
        need the next one wait. Locks that fail (some network file systems) and folders that cannot be written to lock
        nothing.

        nested   whether this process compiles another kernel, of which this one is a part
        """
        at = int.from_bytes(key[:7], "big")
        try:
            if (path := self._usable_path()) is not None:
                with suppress(OSError), self._folder(path) as folder:
                    self.locks.take(folder, at, nested=nested)
            yield
        finally:
            self.locks.leave(at, nested=nested)

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        try:
            folder = _open_directory(path)
        except Refused as refused:
            self.path, self.state = None, f"off: {refused}"
            raise FileNotFoundError(path) from refused
        try:
            yield folder
        finally:
            os.close(folder)

    def _usable_path(self) -> str | None:
        """The folder, but None once a source has changed under this process.

        What was imported is then not what was digested, and the code of the one would be filed under the other.
        """
        if self.path is None:
            return None
        if self.sources.unchanged():
            return self.path
        self.path, self.state = None, _CHANGED
        return None


# ---------------------------------------------------------------------------------------------------------------------
# waiting for each other


class _Locks:
    """The kernels that this process compiles just now, of which each locks one byte of one file.

    POSIX locks, which belong to a process: it releases them when it ends in any way, a forked child has none of them,
    and what a child does with the descriptor that it inherits changes nothing for its parent. All of this runs under
    numba's compiler lock, so threads exclude each other already.
    """

    def __init__(self) -> None:
        self._file: int | None = None
        self._patient = True

    def take(self, folder: int, at: int, *, nested: bool) -> None:
        """Lock a byte of the file in this folder; if another process has it, wait until it has not, and do without."""
        if not nested:
            self._close()  # what an interrupt may have left
        if fcntl is None or not self._patient:
            return
        if self._file is None:
            self._file = _open_file(_LOCKS, folder, os.O_RDWR | os.O_CREAT)
        if self._try(at):
            return
        pause, until = 0.01, time.monotonic() + _PATIENCE
        while not self._try(at):
            if time.monotonic() > until:  # it stands still: wait for no other kernel, either
                self._patient = False
                return
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)
        self.leave(at, nested=True)

    def leave(self, at: int, *, nested: bool) -> None:
        """Release this byte, or with the outermost of nested kernels all that is left."""
        if not nested:
            self._close()
        elif self._file is not None:
            with suppress(OSError):
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, at)

    def _try(self, at: int) -> bool:
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, at)  # type: ignore[arg-type]
        except (BlockingIOError, PermissionError):
            return False
        return True

    def _close(self) -> None:
        if self._file is not None:
            file, self._file = self._file, None
            os.close(file)

    def forget(self) -> None:
        """In a forked child: close what is the parent's, who keeps its locks."""
        with suppress(OSError):
            self._close()


def interpreter() -> str:
    """Name what compiles, but not what is compiled: numpy, too, whose promotion rules decide types.

    Of numpy the last of the three numbers is left out: such a release changes neither rules nor arrays.
    """
    python = (sys.implementation.cache_tag, sys.abiflags, sys.flags.optimize)
    versions = repr((numba.__version__, llvmlite.__version__, np.__version__.split(".")[:2], python))
    return hashlib.sha256(versions.encode()).hexdigest()[:32]


def _roots() -> list[str]:
    """Where the cache may live, best first. What the user names is the only choice; an empty name means nowhere."""
    named = os.environ.get("FASTDP_CACHE_DIR")
    if named is not None:
        return [os.path.abspath(os.path.expanduser(named))] if named else []
    roots = []
    home, xdg = os.path.expanduser("~"), os.environ.get("XDG_CACHE_HOME", "")
    if sys.platform != "darwin" and os.path.isabs(xdg):
        roots.append(os.path.join(xdg, "fastdp", "kernels"))
    elif os.path.isdir(home):
        caches = os.path.join(home, *(("Library", "Caches") if sys.platform == "darwin" else (".cache",)))
        roots.append(os.path.join(caches, "fastdp", "kernels"))
    with suppress(OSError):
        roots.append(os.path.join(tempfile.gettempdir(), f"fastdp-kernels-{os.geteuid()}"))
    return roots


def _prepare(root: str, interpreter: str) -> str:
    """Make the directory of an interpreter and clear old ones away, or raise OSError."""
    os.makedirs(root, mode=0o700, exist_ok=True)
    os.close(_open_directory(root))
    path = os.path.join(root, interpreter)
    try:
        os.mkdir(path, mode=0o700)
    except FileExistsError:
        folder = _open_directory(path)
        with suppress(OSError):
            os.utime(folder)  # in use: `_clear_old` goes by age
        os.close(folder)
    else:
        _clear_old(root)
    return path


def _open_directory(path: str) -> int:
    """Open a directory that only this user can write. Files are then reached through it, so it cannot be swapped."""
    if os.path.islink(path):
        raise Refused(f"{path} is a symbolic link")
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _check_owner(os.fstat(descriptor), path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_owner(status: os.stat_result, path: str) -> None:
    """Refuse what was opened if another user than this one and root could have written it."""
    if status.st_uid not in (os.geteuid(), 0):
        raise Refused(f"{path} belongs to user {status.st_uid}, not to {os.geteuid()}")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Refused(f"{path} has mode {stat.S_IMODE(status.st_mode):04o}: others can write to it")


def _open_file(name: str, folder: int, flags: int, mode: int = 0o600) -> int:
    """Open a regular file of a folder that only this user can write; anything else that has this name is refused."""
    # without O_NONBLOCK a FIFO would be waited for
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused(f"{name} is not a regular file")
        _check_owner(status, name)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _clear_old(root: str) -> None:
    """Remove all but the newest folders. A process that still uses one compiles what it misses and writes it anew."""
    with suppress(OSError), os.scandir(root) as entries:
        folders = [e for e in entries if re.fullmatch("[0-9a-f]{32}", e.name) and e.is_dir(follow_symlinks=False)]
        folders.sort(key=lambda e: e.stat(follow_symlinks=False).st_mtime_ns, reverse=True)
        for entry in folders[_INTERPRETERS_KEPT:]:
            shutil.rmtree(entry.path, ignore_errors=True)


def _mark_used(file: int) -> None:
    """Let `_clear_unused` see that somebody reads this file, to the day; whose it is not, that may not."""
    if time.time() - os.fstat(file).st_mtime > _DAY:
        with suppress(OSError):
            os.utime(file)


def _clear_unused(folder: int) -> None:
    """Remove the files that were not read for longest where all together take too much: edits leave them behind."""
    with suppress(OSError), os.scandir(folder) as entries:
        files = [(e.stat(follow_symlinks=False), e.name) for e in entries if e.name != _LOCKS]
        left = sum(status.st_size for status, _ in files)
        for status, name in sorted(files, key=lambda file: file[0].st_mtime_ns):
            if left <= _MOST_BYTES:
                return
            os.unlink(name, dir_fd=folder)
            left -= status.st_size
