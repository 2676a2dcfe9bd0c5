"""Kernels as parts of another kernel: compiled to LLVM's code, and to no machine code of their own.

A kernel is made of up to a hundred helpers. numba makes machine code of each, and wrappers for Python and C, and none
of that is ever run: the caller's copy is. As parts they end where they can be linked into their caller: the first
`laplace` on a machine takes two thirds of the time, and the machine code is the same. A part that is called from Python
after all is compiled anew, as a kernel of its own.

LLVM's passes go over a module once, in the library that it is compiled for. A caller optimises its own code and the
small parts, which may be inlined; large ones are linked in when that is done. Without the passes that numba runs on
each function before that, gradients and selection took 6 % more instructions.

Everything here runs under numba's compiler lock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import llvmlite.binding
import numba.core.codegen
import numba.core.compiler
import numba.core.compiler_lock
import numba.core.sigutils

_core: Any = numba.core  # Any: which of its parts have types changes from one numba to the next
_llvm: Any = llvmlite.binding
_LARGE = 250  # instructions
_ONCE = hasattr(_core.codegen, "create_pass_builder")  # whether this numba's passes are those of which that holds
PART = "part"  # what the state of a library says, where numba says "object" or "bitcode"
_JITCodeLibrary: Any = _core.codegen.JITCodeLibrary


class Entry:
    """What stands where a kernel has its function for Python: a part's name in numba's tables; nothing calls it."""


class _Library(_JITCodeLibrary):  # type: ignore[misc]
    """LLVM's code of a kernel or part, optimised without the large functions that it calls.

    They have been optimised before, and LLVM inlines none of them: they are linked in afterwards. A caller's optimiser
    that had them before it went through each again, and so did its caller's.
    """

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._small: dict[Part, None] = {}
        self.calls: dict[str, Any] = {}  # by symbol, libraries of large functions: who is called before who calls

    def add_linking_library(self, library: Any) -> None:
        library._ensure_finalized()
        self.calls |= getattr(library, "calls", {})
        if not isinstance(library, Part) and not _is_large(library):
            super().add_linking_library(library)
            return
        if hasattr(self, "_reload_init"):  # numba 0.61 has none
            self._reload_init |= library._reload_init
        if _is_large(library):
            self.calls[library.symbol] = library
        else:
            self._small[library] = None

    def finalize(self) -> None:
        for part in self._small:
            self._final_module.link_in(part.own_module(), preserve=True)
        super().finalize()

    def _optimize_functions(self, module: Any) -> None:
        """As numba does, but by one manager of passes, and only where there is something to optimise."""
        if not _ONCE:
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """The last of numba's two rounds: code is as fast without the first, which inlines and rotates loops."""
        if not _ONCE:
            super()._optimize_final_module()
            return
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)

    def _link_calls(self, module: Any) -> None:
        for library in reversed(self.calls.values()):  # LLVM links nothing but what is referred to already
            module.link_in(_own_module(library), preserve=True)


class Kernel(_Library):
    """What becomes machine code."""

    def _optimize_final_module(self) -> None:
        super()._optimize_final_module()
        self._link_calls(self._final_module)
        self.calls = {}


class Part(_Library):
    """LLVM's code that waits to be linked into its caller's."""

    def _finalize_final_module(self) -> None:
        """As numba does, but for handing it to the code generator."""
        self._finalize_dynamic_globals()
        for library in self.calls.values():
            self._dynamic_globals += library._dynamic_globals
        self._verify_declare_only_symbols()
        self._finalized = True

    def own_module(self) -> Any:
        """What callers link: with their own code before that is optimised, or afterwards if it is large."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """All of it, for a caller that is not of this house."""
        whole = self.own_module().clone()
        self._link_calls(whole)
        return whole

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        calls = {symbol: (called.name, _own_module(called).as_bitcode()) for symbol, called in self.calls.items()}
        return self.name, PART, (self.own_module().as_bitcode(), calls)

    @classmethod
    def loaded(cls, codegen: Any, name: str, symbol: str, bitcode: bytes) -> Part:
        part = cls(codegen, name)
        part._final_module = part._shared_module = _llvm.parse_bitcode(bitcode)
        part._finalized, part.symbol = True, symbol
        return part


def _own_module(library: Any) -> Any:
    return library.own_module() if isinstance(library, Part) else library._get_module_for_linking()


def _is_large(library: Any) -> bool:
    """Whether this is a function of ours that LLVM inlines nowhere.

    It inlines some hundred instructions at most, of vectors too.
    """
    if not hasattr(library, "symbol"):
        return False
    if not hasattr(library, "is_large"):
        function = _own_module(library).get_function(library.symbol)
        instructions = (each for block in function.blocks for each in block.instructions)
        library.is_large = any(True for _ in islice(instructions, _LARGE, None)) and not any(
            b"alwaysinline" in attributes for attributes in function.attributes
        )
    return bool(library.is_large)


@contextmanager
def compiled_as(library: type[_Library], compiler: Any) -> Iterator[None]:
    """Let this kernel's compiler make such a library of what it compiles meanwhile, not of what that calls."""
    codegen = compiler.targetdescr.target_context.codegen()
    name = compiler.py_func.__qualname__
    outer = codegen.__dict__.get("create_library")  # of the part that this one is a part of
    create = codegen.create_library

    def create_library(wanted: str, **options: Any) -> Any:
        return library(codegen, wanted, **options) if wanted == name else create(wanted, **options)

    def customize(flags: Any) -> Any:
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.no_compile = True
        return flags

    codegen.create_library = create_library
    if library is Part:
        compiler._customize_flags = customize
    try:
        yield
    finally:
        if library is Part:
            del compiler._customize_flags
        if outer is None:
            del codegen.create_library
        else:
            codegen.create_library = outer


def as_part(result: Any) -> Any:
    """What was compiled as a part, known to numba as something that kernels can call."""
    result = with_symbol(result._replace(entry_point=Entry()))
    result.target_context.insert_user_function(result.entry_point, result.fndesc, [result.library])
    return result


def rebuilt(context: Any, reduced: tuple[Any, ...]) -> Any:
    """A kernel or a part from the disk, of which numba's `CompileResult._rebuild` knows kernels."""
    if reduced[0][1] != PART:
        return with_symbol(_core.compiler.CompileResult._rebuild(context, *reduced))
    (name, _, code), fndesc, environment, signature, objectmode, lifted, types, reload_init, environments = reduced
    for function in reload_init:
        function()
    bitcode, calls = code
    library = Part.loaded(context.codegen(), name, fndesc.mangled_name, bitcode)
    for symbol, (called, its_bitcode) in calls.items():
        library.calls[symbol] = Part.loaded(context.codegen(), called, symbol, its_bitcode)
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
    return with_symbol(result._replace(referenced_envs=environments))  # so that they live as long


def with_symbol(result: Any) -> Any:
    """Let callers know which function of the library they call."""
    result.library.symbol = result.fndesc.mangled_name
    return result


def functions_of(library: Any) -> Iterator[Any]:
    """All of a kernel's or a part's, those of the large parts that it calls too."""
    for each in (library, *getattr(library, "calls", {}).values()):
        yield from each._final_module.functions


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
