"""The disk cache of compiled kernels: machine code that is never stale, and a warm start.

It never runs bytes from a directory that another user could write, and never touches numba's configuration.

It replaces numba's own cache, which does not notice a change in a helper of another file, and whose index loses updates
between processes and can then serve the wrong code (docs/design.md, "Compiling"). There is no index here: one file per
overload, in a directory named by a digest of everything that the machine code was made from.

    <root>/<digest of kernel sources and versions>/<kernel>-<digest of signature, CPU and compiler options>
    file = magic | key (32 bytes) | sha256 of the body (32 bytes) | body, a pickled numba CompileResult
"""

from __future__ import annotations

import hashlib
import itertools
import os
import pickle
import re
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba.core.bytecode
import numba.core.compiler
import numba.core.compiler_lock
import numba.core.config
import numba.core.serialize
import numba.core.sigutils
import numba.core.types
import numpy as np

from . import forks

_core: Any = numba.core  # Any: which of its parts have types changes from one numba to the next
_types = _core.types
compiler_lock = _core.compiler_lock.global_compiler_lock

_PACKAGE = __name__.rpartition(".")[0]
_SOURCES = os.path.dirname(__file__)
_IMPORTED = time.time_ns()
_MAGIC = b"fastdp kernel 1\n"
_DIGESTS_KEPT = 4  # several interpreters or branches side by side; 3 MB each

# What numba reads from its configuration while it generates code. numba's own cache leaves these out: code without
# bounds checks would answer a run that asked for them, and code that calls SVML would be loaded where there is none.
_CONFIG = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML")


@dataclass(frozen=True)
class CacheInfo:
    """What the disk cache has done in this process, and what it holds now."""

    place: Path | None  # the directory in use
    state: str  # "in use", or why not
    hits: int  # overloads loaded from disk
    misses: int  # overloads compiled because the disk did not have them
    bad: int  # files that were truncated, corrupt or of another kernel: compiled and overwritten
    written: int
    unwritable: int  # overloads that could not be written: compiled by every process
    private: int  # overloads that are never written, such as those typed on a user's function
    files: int
    bytes: int


def cache_info() -> CacheInfo:
    """The state of the disk cache; chooses and makes its directory if no kernel has been compiled yet."""
    with compiler_lock:
        store = _store()
        sizes = []
        if store.path is not None:
            with suppress(OSError), os.scandir(store.path) as entries:
                sizes = [e.stat(follow_symlinks=False).st_size for e in entries if not e.name.startswith(".")]
        return CacheInfo(
            place=None if store.path is None else Path(store.path),
            state=store.state,
            hits=_counts["hits"],
            misses=_counts["misses"],
            bad=_counts["bad"],
            written=_counts["written"],
            unwritable=_counts["unwritable"],
            private=_counts["private"],
            files=len(sizes),
            bytes=sum(sizes),
        )


# ---------------------------------------------------------------------------------------------------------------------
# one overload: its key, reading it, writing it. All of this runs under numba's compiler lock.

_counts: Counter[str] = Counter()


class KernelCache:
    """numba's cache interface for one kernel, as Dispatcher and CFunc call it."""

    def __init__(self, function: Any, kind: str) -> None:
        self._function = function
        self._kind = kind

    @property
    def cache_path(self) -> str | None:
        return _store().path

    def load_overload(self, signature: Any, context: Any) -> Any:
        context.refresh()
        if (found := self._name_and_key(signature, context.codegen())) is None:
            return None
        name, key = found
        store = _store()
        try:
            body = store.read(name, key)
            result = None if body is None else _core.compiler.CompileResult._rebuild(context, *pickle.loads(body))
        except Exception:
            # Truncated, corrupt or foreign: whatever is wrong with a cached file, compiling afresh is right.
            _counts["bad"] += 1
            return None
        _counts["misses" if result is None else "hits"] += 1
        return result

    def save_overload(self, signature: Any, result: Any) -> None:
        found = self._name_and_key(signature, result.library.codegen)
        if found is None or result.library.has_dynamic_globals or _holds_common_numbers(result.library):
            _counts["private"] += 1
            return
        name, key = found
        store = _store()
        if store.path is None:
            return
        try:
            _counts["written"] += store.write(name, key, _core.serialize.dumps(result._reduce()))
        except Exception:
            # A full disk, a place that is gone: the kernel works all the same, and `fastdp info` says so.
            _counts["unwritable"] += 1

    def flush(self) -> None:
        """numba calls this when it recompiles; the new code overwrites the file."""

    def _name_and_key(self, signature: Any, codegen: Any) -> tuple[str, bytes] | None:
        identity = _identity(self._function)
        arguments, result = _core.sigutils.normalize_signature(signature)
        if identity is None or not all(_is_plain(t) for t in (*arguments, result or _types.none)):
            return None
        options = tuple((name, getattr(_core.config, name, None)) for name in _CONFIG)
        described = repr((self._kind, identity, arguments, result, codegen.magic_tuple(), options))
        key = hashlib.sha256(described.encode())
        kernel = f"{self._function.__module__.rpartition('.')[2]}.{self._function.__qualname__}"
        return f"{re.sub('[^A-Za-z0-9_.]+', '-', kernel)[:100]}-{key.hexdigest()[:24]}", key.digest()


def _identity(function: Any, within: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
    """Name a kernel in words that mean the same in every process, or None if there are none."""
    code = function.__code__
    folder, file = os.path.split(code.co_filename)
    if folder != _SOURCES or file not in _store().sources or "<lambda>" in function.__qualname__:
        return None  # not covered by the digest, or not known by its name and line
    if function in within:
        return ("recursion",)
    cells = []
    for cell in function.__closure__ or ():
        if (described := _describe(cell.cell_contents, (*within, function))) is None:
            return None
        cells.append(described)
    return (file, function.__qualname__, code.co_firstlineno, tuple(cells))


def _describe(value: Any, within: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Describe what a kernel holds from the function that made it: a constant, a type or another kernel."""
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return (type(value).__name__, repr(value))
    if isinstance(value, _types.Type) and _is_plain(value):
        return ("type", repr(value))
    if isinstance(getattr(value, "_cache", None), KernelCache):
        return _identity(value.py_func, within)
    return None


def _is_plain(kind: Any) -> bool:
    """Whether a numba type has a name that means the same in every process (a function's holds an address)."""
    module = type(kind).__module__
    if module.startswith(_PACKAGE + "."):
        return True
    if not module.startswith("numba."):
        return False
    if isinstance(kind, _types.Literal):
        return isinstance(kind.literal_value, bool | int | str)
    if isinstance(kind, _types.Omitted):
        return kind.value is None or isinstance(kind.value, bool | int | float | str)
    if isinstance(kind, _types.Array | _types.CPointer):
        return _is_plain(kind.dtype)
    if isinstance(kind, _types.Optional):
        return _is_plain(kind.type)
    if isinstance(kind, _types.BaseNamedTuple) and not kind.instance_class.__module__.startswith(_PACKAGE + "."):
        return False
    if isinstance(kind, _types.BaseTuple):
        return all(_is_plain(t) for t in kind.types)
    if isinstance(kind, _types.Record):
        return all(_is_plain(field.type) for field in kind.fields.values())
    return isinstance(kind, _types.Number | _types.Boolean | _types.NoneType | _types.RawPointer)


# ---------------------------------------------------------------------------------------------------------------------
# symbols

# Closures of one definition and one signature get symbols that differ by a number alone, which numba counts from 1 in
# every process. Machine code carries those symbols to disk, and where two files define the same one, the linker takes
# whichever came first: np.argsort of one kernel then calls the np.sort of another, with no error. So kernels take their
# numbers from a range that belongs to this process.
_COMMON = 1 << 62
_numbers = itertools.count(_COMMON + secrets.randbits(62))


def number_apart(compiler: Any) -> None:
    """Let a kernel's compiler, and whatever it compiles on the way, take numbers of this process."""
    compile_common = compiler.compile

    def compile_apart(arguments: Any, result: Any) -> Any:
        identity = _core.bytecode.FunctionIdentity
        common = identity._unique_ids
        identity._unique_ids = _numbers  # under numba's compiler lock, so nobody else sees it
        try:
            return compile_common(arguments, result)
        finally:
            identity._unique_ids = common

    compiler.compile = compile_apart


def _holds_common_numbers(library: Any) -> bool:
    """Whether code holds a closure that the host, not a kernel, had compiled before, such as its own np.sort."""
    for function in library._final_module.functions:
        number = re.search(r"_3clocals_3e.*?B\d+v(\d+)", function.name)
        if number and int(number[1]) < _COMMON and not function.is_declaration:
            return True
    return False


# ---------------------------------------------------------------------------------------------------------------------
# where the files live


class _Refused(OSError):
    """A directory that somebody else could have written: its contents would be executed."""


class _Store:
    """The directory of this process's kernels; `path` is None when there is no disk cache, and `state` says why."""

    def __init__(self) -> None:
        self.path: str | None = None
        self.sources: dict[str, tuple[int, ...]] = {}
        try:
            self.sources, self._digest = _digest_sources()
        except OSError as error:
            self.state = f"off: kernel sources cannot be read: {error}"
            return
        if any(stamp[0] >= _IMPORTED for stamp in self.sources.values()):  # ctime: archives and editors can set mtime
            self.state = _CHANGED
            return
        refusals = []
        for root in _roots():
            try:
                self.path = _prepare(root, self._digest)
                break
            except OSError as error:
                refusals.append(str(error) if isinstance(error, _Refused) else f"{root}: {error.strerror}")
        because = "; ".join(refusals)
        if self.path is not None:
            self.state = f"in use, instead of {because}" if because else "in use"
        elif os.environ.get("FASTDP_CACHE_DIR") == "":
            self.state = "off: FASTDP_CACHE_DIR is empty"
        else:
            self.state = f"off: {because or 'no home and no temporary directory'}"

    def read(self, name: str, key: bytes) -> memoryview | None:
        """The body of a file, None if there is none; ValueError unless it is what was written under this key."""
        if (path := self._usable_path()) is None:
            return None
        try:
            with (
                self._folder(path) as folder,
                open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=folder), "rb") as file,
            ):
                content = memoryview(file.read())
        except FileNotFoundError:
            return None
        header, body = content[: len(_MAGIC) + 64], content[len(_MAGIC) + 64 :]
        if header != _MAGIC + key + hashlib.sha256(body).digest():
            raise ValueError(f"{name}: not what was written")
        return body

    def write(self, name: str, key: bytes, body: bytes) -> bool:
        """Write a file at once or not at all: readers and other writers see the old content or the new."""
        if (path := self._usable_path()) is None:
            return False
        os.makedirs(path, mode=0o700, exist_ok=True)  # another process may have cleared it away
        partial = f".{secrets.token_hex(8)}"
        with self._folder(path) as folder:
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                with open(os.open(partial, flags, 0o600, dir_fd=folder), "wb") as file:
                    file.write(_MAGIC + key + hashlib.sha256(body).digest())
                    file.write(body)
                os.replace(partial, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(partial, dir_fd=folder)
                raise
        return True

    @contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        try:
            with _directory(path) as folder:
                yield folder
        except _Refused as refused:
            self.path, self.state = None, f"off: {refused}"
            raise FileNotFoundError(path) from refused

    def _usable_path(self) -> str | None:
        """The directory, but None once a source has changed under this process.

        What was imported is then not what was digested, and the code of the one would be filed under the other.
        """
        if self.path is None:
            return None
        with suppress(OSError):
            if self.sources == {name: _stamp(os.stat(os.path.join(_SOURCES, name))) for name in self.sources}:
                return self.path
            sources, digest = _digest_sources()
            if digest == self._digest:  # touched or linked, not edited
                self.sources = sources
                return self.path
        self.path, self.state = None, _CHANGED
        return None


_CHANGED = "off: kernel sources changed after this process imported them"
_opened: _Store | None = None


def _store() -> _Store:
    global _opened
    if _opened is None:
        with compiler_lock:
            if _opened is None:
                _opened = _Store()
    return _opened


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino


def _digest_sources() -> tuple[dict[str, tuple[int, ...]], str]:
    """Digest all kernel sources, since any may be compiled into any other; and numpy, whose promotion rules are too."""
    python = (sys.implementation.cache_tag, sys.abiflags, sys.flags.optimize)
    digest = hashlib.sha256(repr((numba.__version__, llvmlite.__version__, np.__version__, python)).encode())
    sources = {}
    for name in sorted(name for name in os.listdir(_SOURCES) if re.fullmatch(r"\w+\.py", name)):
        with open(os.path.join(_SOURCES, name), "rb") as file:
            sources[name] = _stamp(os.fstat(file.fileno()))
            content = file.read()
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    if not sources:
        raise FileNotFoundError(f"no .py file in {_SOURCES}")
    return sources, digest.hexdigest()[:32]


def _roots() -> list[str]:
    """Where the cache may live, best first. What the user names is the only choice; an empty name means nowhere."""
    named = os.environ.get("FASTDP_CACHE_DIR")
    if named is not None:
        return [os.path.abspath(named)] if named else []
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


def _prepare(root: str, digest: str) -> str:
    """Make the directory of a digest and clear old ones away, or raise OSError."""
    os.makedirs(root, mode=0o700, exist_ok=True)
    with _directory(root):
        pass
    path = os.path.join(root, digest)
    try:
        os.mkdir(path, mode=0o700)
    except FileExistsError:
        with _directory(path) as folder, suppress(OSError):
            os.utime(folder)  # in use: `_clear_old` goes by age
    else:
        _clear_old(root)
    return path


@contextmanager
def _directory(path: str) -> Iterator[int]:
    """Open a directory that only this user can write. Files are then reached through it, so it cannot be swapped."""
    if os.path.islink(path):
        raise _Refused(f"{path} is a symbolic link")
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid():
            raise _Refused(f"{path} belongs to user {status.st_uid}, not to {os.geteuid()}")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _Refused(f"{path} has mode {stat.S_IMODE(status.st_mode):04o}: others can write to it")
        yield descriptor
    finally:
        os.close(descriptor)


def _clear_old(root: str) -> None:
    """Remove all but the newest digests. A process that still uses one compiles what it misses and writes it anew."""
    with suppress(OSError), os.scandir(root) as entries:
        digests = [e for e in entries if re.fullmatch("[0-9a-f]{32}", e.name) and e.is_dir(follow_symlinks=False)]
        digests.sort(key=lambda e: e.stat(follow_symlinks=False).st_mtime_ns, reverse=True)
        for entry in digests[_DIGESTS_KEPT:]:
            shutil.rmtree(entry.path, ignore_errors=True)


# ---------------------------------------------------------------------------------------------------------------------
# fork

forks.guard(compiler_lock, getattr(llvmlite.binding.ffi.lib, "_lock", None))


def _after_fork_in_child() -> None:
    global _numbers
    _numbers = itertools.count(_COMMON + secrets.randbits(62))  # the parent and other children go on from the old ones


os.register_at_fork(after_in_child=_after_fork_in_child)
