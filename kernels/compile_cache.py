"""The disk cache of compiled kernels: machine code that is never stale, and a warm start.

`cache_folder` reads and writes the files, none that another user could have written; `known_answers` tries every
kernel that draws. Nothing here touches numba's configuration.

It replaces numba's own cache, which does not notice a change in a helper of another file, and whose index loses updates
between processes and can then serve the wrong code (docs/design.md, "Compiling"). There is no index here: one file per
overload, named by a digest of everything that the machine code was made from (`sources` says of which files).

    <root>/<digest of versions>/<kernel>-<digest of sources, signature, CPU and compiler options>
    file = magic | key (32 bytes) | sha256 of the body (32 bytes) | body, a pickled numba CompileResult
"""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import os
import pickle
import re
import secrets
import sys
import warnings
from _thread import get_ident
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import llvmlite.binding
import numba.core.bytecode
import numba.core.compiler
import numba.core.compiler_lock
import numba.core.config
import numba.core.registry
import numba.core.runtime.nrt
import numba.core.serialize
import numba.core.sigutils
import numba.core.types
import numba.core.typing.ctypes_utils
import numpy as np

from . import forks
from .cache_folder import BY_USER, CacheFolder
from .call_types import resolved_once
from .known_answers import ask_callback, ask_kernel
from .parts import PART, Kernel, Part, as_part, compiled_as, functions_of, is_part, rebuilt, with_parts
from .shipped import ShippedKernels, target_of
from .sources import FOLDER

Machine = tuple[str, str, str]  # triple, CPU, features: what LLVM compiles for
_core: Any = numba.core  # Any: which of its parts have types changes from one numba to the next
_types = _core.types
compiler_lock = _core.compiler_lock.global_compiler_lock

_PACKAGE = __name__.rpartition(".")[0]
_ENGINE: Any = llvmlite.binding.ExecutionEngine
_CALLBACKS = [_ENGINE._raw_object_cache_notify.__code__, _ENGINE._raw_object_cache_getbuffer.__code__]

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
    shipped: int  # of the hits, those that came with the package
    shipped_state: str  # "in use", or why none can


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
            shipped=_counts["shipped"],
            shipped_state=_shipped().state,
        )


def counted() -> tuple[int, int]:
    """How many kernels this process has compiled, and how many it has loaded."""
    return _counts["misses"] + _counts["bad"], _counts["hits"]


# ---------------------------------------------------------------------------------------------------------------------
# one overload: its key, reading it, writing it. All of this runs under numba's compiler lock.

_counts: Counter[str] = Counter()
files_used: dict[str, None] = {}  # by name, what this process has loaded


class KernelCache:
    """numba's cache interface for one kernel, as Dispatcher and CFunc call it, and what its compiler does about it."""

    def __init__(self, function: Any, kind: str) -> None:
        self._function = function
        self._kind = kind

    @property
    def cache_path(self) -> str | None:
        return _store().path

    def load_overload(self, signature: Any, context: Any) -> Any:
        with _interrupts_of_callbacks():
            _give_runtime(context)
            places = self._places(signature, context.codegen().magic_tuple())
            if not places:
                return None
            bad = False
            for store, name, key in places:
                result, damaged = self._load(store, name, key, context)
                bad |= damaged
                if result is not None:
                    _counts["hits"] += 1
                    _counts["shipped"] += isinstance(store, ShippedKernels)
                    return result
            _counts["bad" if bad else "misses"] += 1
            return None

    def _places(self, signature: Any, machine: Machine) -> list[tuple[Any, str, bytes]]:
        """Where this overload may lie, best first; nowhere, if it has no name."""
        parts = (True, False) if self._is_part() else (False,)
        asked: list[tuple[Any, Machine, bool]] = [(_store(), machine, part) for part in parts]
        shipped = _shipped()
        if shipped.path is not None and shipped.target is not None:
            asked.append((shipped, (machine[0], shipped.target.cpu, shipped.target.features), False))
        named = [(store, self._name_and_key(signature, machine, part)) for store, machine, part in asked]
        return [(store, *found) for store, found in named if found is not None]

    def _is_part(self) -> bool:
        """Whether another kernel is being compiled, which this one is then a part of."""
        return self._kind == "kernel" and is_compiling()

    def _load(self, store: CacheFolder | ShippedKernels, name: str, key: bytes, context: Any) -> tuple[Any, bool]:
        """What is kept there, and whether it was unusable."""
        try:
            body = store.read(name, key)
            if body is None:
                return None, False
            result = rebuilt(context, pickle.loads(body))
        except Exception:
            # Truncated, corrupt or foreign: whatever is wrong with a cached file, compiling afresh is right.
            return None, True
        if not is_part(result):
            self._ask(result, f"{store.path}/{name}")
        files_used[name] = None
        return result, False

    def save_overload(self, signature: Any, result: Any) -> None:
        """numba calls this last; it has been saved already."""

    def flush(self) -> None:
        """numba calls this when it recompiles; the new code overwrites the file."""

    def adopt(self, compiler: Any) -> None:
        """Let this kernel's compiler save what it makes, and wait for a process that makes the same just now."""
        compile_common = compiler.compile
        context = compiler.targetdescr.target_context

        def compile_once(arguments: Any, result_type: Any) -> Any:
            signature = arguments if result_type is None else result_type(*arguments)
            with _interrupts_of_callbacks():
                context.refresh()  # which compiles numba's own runtime, once a process
            part = self._is_part()
            found = self._name_and_key(signature, context.codegen().magic_tuple(), part)
            if found is None:
                _counts["private"] += 1
                return compile_now(arguments, result_type, part)
            with _store().alone(found[1], nested=is_compiling()):
                result, _ = self._load(_store(), *found, context)  # what another process has finished meanwhile
                if result is not None:
                    _counts["misses"] -= 1
                    _counts["hits"] += 1
                    if self._kind == "kernel":  # as numba does with what it finds before it compiles
                        context.insert_user_function(result.entry_point, result.fndesc, [result.library])
                    return result
                result = compile_now(arguments, result_type, part)
                self._save(*found, result)
                return result

        def compile_now(arguments: Any, result_type: Any, part: bool) -> Any:
            if part:
                with compiled_as(Part, compiler):
                    return as_part(_compile_apart(compile_common, arguments, result_type))
            with compiled_as(Kernel, compiler):
                result = with_parts(_compile_apart(compile_common, arguments, result_type))
            self._ask(result, "this machine's compiler")
            return result

        compiler.compile = compile_once

    def _save(self, name: str, key: bytes, result: Any) -> None:
        if result.library.has_dynamic_globals or _holds_common_numbers(result.library):
            _counts["private"] += 1
            return
        store = _store()
        why_not = store.state
        if store.path is not None:
            try:
                reduced = result._replace(type_annotation="")._reduce()  # it names places of this machine
                if store.write(name, key, _core.serialize.dumps(reduced)):
                    _counts["written"] += 1
                    return
                why_not = store.state
            except Exception as error:
                # A full disk, a place that is gone: the kernel works all the same, and `fastdp info` says so.
                _counts["unwritable"] += 1
                why_not = f"{store.path} cannot be written to: {getattr(error, 'strerror', None) or error}"
        if why_not != BY_USER:
            _warn_once(why_not)

    def _ask(self, result: Any, where: str) -> None:
        """KnownAnswerError unless a kernel that draws answers as it must."""
        module = self._function.__module__
        if not module.startswith(f"{_PACKAGE}."):
            return
        name = f"{module[len(_PACKAGE) + 1 :]}.{self._function.__qualname__}"
        if self._kind == "kernel":
            ask_kernel(name, result.signature.args, result.entry_point, where)
            return
        of_c = _core.typing.ctypes_utils.to_ctypes
        prototype = ctypes.CFUNCTYPE(of_c(result.signature.return_type), *map(of_c, result.signature.args))
        address = result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
        ask_callback(name, prototype(address), where)

    def _name_and_key(self, signature: Any, machine: Machine, part: bool) -> tuple[str, bytes] | None:
        modules: set[str] = set()
        arguments, result = _core.sigutils.normalize_signature(signature)
        identity = _identity(self._function, modules)
        if identity is None or not all(_is_plain(t, modules) for t in (*arguments, result or _types.none)):
            return None
        options = tuple((name, getattr(_core.config, name, None)) for name in _CONFIG)
        made_of = _store().sources.digest(modules)
        kind = PART if part else self._kind
        described = repr((kind, identity, arguments, result, made_of, machine, options))
        key = hashlib.sha256(described.encode())
        kernel = f"{self._function.__module__.rpartition('.')[2]}.{self._function.__qualname__}"
        return f"{re.sub('[^A-Za-z0-9_.]+', '-', kernel)[:100]}-{key.hexdigest()[:24]}", key.digest()


def _give_runtime(context: Any) -> None:
    """Let the linker find numba's runtime, which is all that compiled code refers to and the process does not export.

    numba would read its tables of all types and functions, import what they name (scipy, f2py) and compile a part of
    the runtime: a third of a new process's time and memory to its first number. A compilation does so by itself.
    """
    helpers = _runtime_of_numba()
    if helpers is None:
        context.refresh()
        return
    for name, address in helpers.items():
        llvmlite.binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


def _runtime_of_numba() -> dict[str, int] | None:
    """Functions of numba's runtime and their addresses; None for a numba that keeps them elsewhere."""
    return getattr(getattr(_core.runtime.nrt, "_nrt", None), "c_helpers", None)


def _identity(function: Any, modules: set[str], within: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
    """Name a kernel in words that mean the same in every process, or None if there are none; add what it is made of."""
    code = function.__code__
    folder, file = os.path.split(code.co_filename)
    if folder != FOLDER or file not in _store().sources.stamps or "<lambda>" in function.__qualname__:
        return None  # not covered by the digest, or not known by its name and line
    modules.add(file.removesuffix(".py"))
    if function in within:
        return ("recursion",)
    cells = []
    for cell in function.__closure__ or ():
        if (described := _describe(cell.cell_contents, modules, (*within, function))) is None:
            return None
        cells.append(described)
    return (file, function.__qualname__, code.co_firstlineno, tuple(cells))


def _describe(value: Any, modules: set[str], within: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Describe what a kernel holds from the function that made it: a constant, a type or another kernel."""
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return (type(value).__name__, repr(value))
    if isinstance(value, _types.Type) and _is_plain(value, modules):
        return ("type", repr(value))
    if isinstance(getattr(value, "_cache", None), KernelCache):
        return _identity(value.py_func, modules, within)
    return None


def _is_plain(kind: Any, modules: set[str]) -> bool:
    """Whether a numba type has a name that means the same in every process (a function's holds an address)."""
    if _is_ours(type(kind), modules):
        return True
    if not type(kind).__module__.startswith("numba."):
        return False
    if isinstance(kind, _types.Literal):
        return isinstance(kind.literal_value, bool | int | str)
    if isinstance(kind, _types.Omitted):
        return kind.value is None or isinstance(kind.value, bool | int | float | str)
    if isinstance(kind, _types.Array | _types.Bytes | _types.CPointer):
        return _is_plain(kind.dtype, modules)
    if isinstance(kind, _types.Optional):
        return _is_plain(kind.type, modules)
    if isinstance(kind, _types.BaseNamedTuple) and not _is_ours(kind.instance_class, modules):
        return False
    if isinstance(kind, _types.BaseTuple):
        return all(_is_plain(t, modules) for t in kind.types)
    if isinstance(kind, _types.Record):
        return all(_is_plain(field.type, modules) for field in kind.fields.values())
    return isinstance(kind, _types.Number | _types.Boolean | _types.NoneType | _types.RawPointer)


def _is_ours(kind: type, modules: set[str]) -> bool:
    """Whether a class is defined here: then its module is one of those that a kernel is made of."""
    package, _, module = kind.__module__.rpartition(".")
    if package == _PACKAGE:
        modules.add(module)
    return package == _PACKAGE


# ---------------------------------------------------------------------------------------------------------------------
# symbols

# Closures of one definition and one signature get symbols that differ by a number alone, which numba counts from 1 in
# every process. Machine code carries those symbols to disk, and where two files define the same one, the linker takes
# whichever came first: np.argsort of one kernel then calls the np.sort of another, with no error. So kernels take their
# numbers from a range that belongs to this process.
_COMMON = 1 << 62


class _Numbers:
    """Numbers of this process: a forked child takes others than its parent from then on."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._next = itertools.count(_COMMON + secrets.randbits(62)).__next__

    def __next__(self) -> int:
        return self._next()

    def __iter__(self) -> _Numbers:
        return self


_numbers = _Numbers()


def is_compiling() -> bool:
    """Whether the kernel that is to be compiled is a part of another one that is being compiled."""
    return _core.bytecode.FunctionIdentity._unique_ids is _numbers


def _compile_apart(compile_common: Callable[[Any, Any], Any], arguments: Any, result: Any) -> Any:
    """Let a kernel, and whatever is compiled on the way, take numbers of this process."""
    identity = _core.bytecode.FunctionIdentity
    common = identity._unique_ids
    typing = numba.core.registry.cpu_target.typing_context
    identity._unique_ids = _numbers  # under numba's compiler lock, so nobody else sees it
    try:
        with _interrupts_of_callbacks(), resolved_once(typing, lambda kind: _is_plain(kind, set())):
            return compile_common(arguments, result)
    finally:
        identity._unique_ids = common


@contextmanager
def _interrupts_of_callbacks() -> Iterator[None]:
    """Raise at the end what a signal handler raised in the callbacks by which LLVM hands numba its machine code.

    Most signals that arrive while LLVM works are handled there, in a function that ctypes calls, from which no
    exception can leave: ctypes gives it to `sys.unraisablehook`, and numba goes on without the code. That hook alone
    knows which exception it was, so it is asked while a kernel is compiled, and is given everything else as before.
    """
    outer, thread = sys.unraisablehook, get_ident()
    lost: list[BaseException] = []

    def hook(unraisable: Any) -> None:
        trace = unraisable.exc_traceback
        if compiling and trace is not None and trace.tb_frame.f_code in _CALLBACKS and get_ident() == thread:
            lost.append(unraisable.exc_value or unraisable.exc_type())
        else:
            outer(unraisable)

    compiling = True
    sys.unraisablehook = hook
    try:
        yield
    finally:
        compiling = False
        if sys.unraisablehook is hook:
            sys.unraisablehook = outer
    if lost:
        try:
            raise lost[0]
        finally:
            lost.clear()  # it refers to this frame


def _holds_common_numbers(library: Any) -> bool:
    """Whether code holds a closure that the host, not a kernel, had compiled before, such as its own np.sort."""
    for function in functions_of(library):
        number = re.search(r"_3clocals_3e.*?B\d+v(\d+)", function.name)
        if number and int(number[1]) < _COMMON and not function.is_declaration:
            return True
    return False


# ---------------------------------------------------------------------------------------------------------------------
# what this process reads

_opened: CacheFolder | None = None
_brought: ShippedKernels | None = None
_warned = False


def _store() -> CacheFolder:
    global _opened
    if _opened is None:
        with compiler_lock:
            if _opened is None:
                _opened = CacheFolder()
    return _opened


def _shipped() -> ShippedKernels:
    global _brought
    if _brought is None:
        with compiler_lock:
            if _brought is None:
                machine = numba.core.registry.cpu_target.target_context.codegen().magic_tuple()
                _brought = ShippedKernels(_store().sources, target_of(*machine))
    return _brought


def _warn_once(why: str) -> None:
    """Once a process, where the code that called fastdp stands: every process will wait for the compiler."""
    global _warned
    if _warned:
        return
    _warned = True
    frame: FrameType | None = sys._getframe()
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INNER:
        frame = frame.f_back
        level += 1
    message = (
        f"compiled kernels are not kept, so every process will compile its own: {why.removeprefix('off: ')}; name a "
        "folder in FASTDP_CACHE_DIR, or set it to nothing to do without"
    )
    warnings.warn(message, RuntimeWarning, stacklevel=level)


_INNER = ("fastdp", "numba", "contextlib")


# ---------------------------------------------------------------------------------------------------------------------
# fork

forks.guard(compiler_lock, getattr(llvmlite.binding.ffi.lib, "_lock", None))


def _after_fork_in_child() -> None:
    _numbers.begin()
    if _opened is not None:
        _opened.locks.forget()


os.register_at_fork(after_in_child=_after_fork_in_child)
