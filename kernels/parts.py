"""Kernels as parts of another kernel: compiled to LLVM's code, and to no machine code of their own.

A kernel is made of up to a hundred helpers. numba makes machine code of each, and wrappers for Python and C, and none
of that is ever run: the caller's copy is. As parts they end where they can be linked into their caller: the first
`laplace` on a machine takes two thirds of the time, and the machine code is the same. A part that is called from Python
after all is compiled anew, as a kernel of its own. Without passes of LLVM of their own it would be another tenth less,
but Gaussian noise took 16 % more instructions; with those alone that inline, 9 %, and gradients 10 %.

Everything here runs under numba's compiler lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding
import numba.core.codegen
import numba.core.compiler
import numba.core.compiler_lock
import numba.core.sigutils

_core: Any = numba.core  # Any: which of its parts have types changes from one numba to the next
_llvm: Any = llvmlite.binding
PART = "part"  # what the state of a library says, where numba says "object" or "bitcode"
_JITCodeLibrary: Any = _core.codegen.JITCodeLibrary


class Entry:
    """What stands where a kernel has its function for Python: a part's name in numba's tables; nothing calls it."""


class _Part(_JITCodeLibrary):  # type: ignore[misc]
    """LLVM's code that waits to be linked into its caller's."""

    def _finalize_final_module(self) -> None:
        """As numba does, but for handing it to the code generator."""
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        return self.name, PART, self._get_module_for_linking().as_bitcode()


@contextmanager
def compiled_as_part(compiler: Any) -> Iterator[None]:
    """Let this kernel's compiler make a part of what it compiles meanwhile; what that calls is not concerned."""
    codegen = compiler.targetdescr.target_context.codegen()
    name = compiler.py_func.__qualname__
    outer = codegen.__dict__.get("create_library")  # of the part that this one is a part of
    create = codegen.create_library

    def create_library(wanted: str, **options: Any) -> Any:
        return _Part(codegen, wanted, **options) if wanted == name else create(wanted, **options)

    def customize(flags: Any) -> Any:
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        return flags

    codegen.create_library, compiler._customize_flags = create_library, customize
    try:
        yield
    finally:
        del compiler._customize_flags
        if outer is None:
            del codegen.create_library
        else:
            codegen.create_library = outer


def as_part(result: Any) -> Any:
    """What `compiled_as_part` has compiled, known to numba as something that kernels can call."""
    result = result._replace(entry_point=Entry())
    result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
    return result


def load_part(context: Any, reduced: tuple[Any, ...]) -> Any:
    """A part from the disk, in place of numba's `CompileResult._rebuild`."""
    (name, _, bitcode), fndesc, environment, signature, objectmode, lifted, types, reload_init, environments = reduced
    for function in reload_init:
        function()
    library = _Part(context.codegen(), name)
    library._final_module = _llvm.parse_bitcode(bitcode)
    library._finalize_final_module()
    result = dict.fromkeys(_core.compiler.CR_FIELDS) | {
        "target_context": context, "typing_context": context.typing_context, "library": library,
        "environment": environment, "entry_point": Entry(), "fndesc": fndesc, "type_annotation": types,
        "signature": signature, "objectmode": objectmode, "lifted": lifted, "reload_init": reload_init,
        "referenced_envs": environments,
    }  # fmt: skip
    return _core.compiler.CompileResult(**result)


def with_parts(result: Any) -> Any:
    """A kernel whose machine code knows the environments of its parts, as numba has it do for what it loads."""
    if is_part(result):
        return result
    result.library._ensure_finalized()  # numba leaves a C function's to whoever asks for its address
    environments = tuple(result._find_referenced_environments())
    for environment in environments:
        result.library.codegen.set_env(environment.env_name, environment)
    return result._replace(referenced_envs=environments)  # so that they live as long


def is_part(result: Any) -> bool:
    return isinstance(result.entry_point, Entry)


def let_be_part(dispatcher: Any, is_compiling: Any) -> None:
    """Keep parts from Python: numba's table of what Python may call gets kernels alone.

    is_compiling   whether a call for a kernel comes from another one of ours that is being compiled
    """
    add_overload, compile_ = dispatcher.add_overload, dispatcher.compile

    def add(result: Any) -> None:
        if is_part(result):
            dispatcher.overloads[tuple(result.signature.args)] = result
        else:
            add_overload(result)

    def compile_whole(signature: Any) -> Any:
        with _core.compiler_lock.global_compiler_lock:
            types, _ = _core.sigutils.normalize_signature(signature)
            found = dispatcher.overloads.get(tuple(types))
            if found is not None and is_part(found) and not is_compiling():
                del dispatcher.overloads[tuple(types)]
            return compile_(signature)

    dispatcher.add_overload, dispatcher.compile = add, compile_whole
