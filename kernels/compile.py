"""How kernels are compiled: the one file that calls numba's compiler.

It owes its callers lazy compilation (importing compiles nothing); what was compiled is kept by `compile_cache`. It
never turns on `parallel=True` (numba's threading layers abort or hang in forked and multi-threaded hosts), and never
touches numba's configuration or the environment.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ParamSpec, TypeVar, overload

import numba.core.ccallback
import numba.core.sigutils
import numba.core.types

from . import requirements
from .compile_cache import KernelCache, compiler_lock, is_compiling
from .parts import is_part, let_be_part

SUMS = ("reassoc", "contract", "nsz")  # what a sum over public weights may do

P = ParamSpec("P")
R = TypeVar("R")

_core: Any = numba.core  # Any: which of its parts have types changes from one numba to the next
_types = _core.types
_carray: Any = numba.carray


@overload
def jit(function: Callable[P, R], /) -> Callable[P, R]: ...
@overload
def jit(
    *, inline: bool = False, fastmath: Collection[str] = (), literals: bool = False, brief: bool = False,
    reads: Collection[str] = (),
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...  # fmt: skip
def jit(
    function: Any = None,
    /,
    *,
    inline: bool = False,
    fastmath: Collection[str] = (),
    literals: bool = False,
    brief: bool = False,
    reads: Collection[str] = (),
) -> Any:
    """Compile a kernel at its first call, once per argument types; later processes load it from disk.

    inline    for small scalar and SIMD helpers that must vanish into their caller's vectorised loop
    fastmath  a subset of {"reassoc", "contract", "nsz"}, over public weights only: with `reassoc` a sum has other bits
              on AVX2, on AVX-512 and for Fortran order
    literals  compile anew for each number that stands in a caller's text: where loops step by it
    brief     keep Python's lock, for calls of a microsecond: to let it go and take it again is 0.04 of it
    reads     arrays that are only read and may be read-only: compiled once, for both kinds of them
    """
    if unknown := sorted(set(fastmath) - set(SUMS)):
        raise ValueError(f"fastmath={unknown}: must be a subset of {{'reassoc', 'contract', 'nsz'}}")
    # forceinline: with neither it nor inline="always" a long helper stays a call under numba 0.61, and its loop runs 8
    # times slower; the two are equally fast (ChaCha20: 8.8 GB/s), and inline="always" takes 10 % longer to compile.
    # fastmath and error_model in any case: what is not said here is taken over from whoever calls first, a user's own
    # function with fastmath=True too, and would be kept for all, on disk.
    options: dict[str, Any] = {
        "nogil": not brief, "error_model": "numpy", "forceinline": inline, "fastmath": set(fastmath) or False,
    }  # fmt: skip

    def decorate(function: Any) -> Any:
        njit: Any = numba.njit
        dispatcher = njit(**options)(function)
        if dispatcher is function:
            raise ImportError(requirements.NO_COMPILER)
        dispatcher._cache = KernelCache(function, "kernel")
        dispatcher._cache.adopt(dispatcher._compiler)
        let_be_part(dispatcher, is_compiling)
        if not literals:
            without_literals(dispatcher)
        if reads:
            as_read_only(dispatcher, reads)
        # A string is a global's name to pickle: numba's own way ships the source, and compiles it without our cache
        dispatcher.__reduce_ex__ = lambda protocol: function.__qualname__
        return dispatcher

    return decorate if function is None else decorate(function)


def machine_code(kernel: Any, *given: Any) -> Callable[..., Any]:
    """The machine code of a kernel for arguments of these types, as Python calls it once it knows the types.

    A kernel that is called by name looks at each argument first, for 0.05 us. Here nothing is looked at: an array of
    another type is read as if it were of this one. So it is for arrays of a caller's own making.
    """
    found: Callable[..., Any] = kernel.compile(tuple(map(numba.typeof, given)))
    return found


def without_literals(dispatcher: Any) -> None:
    """Let callers in kernels share one compilation for a number, whether it stands in their text or not.

    numba compiles a function for `f(0)` by itself, also where 0 is only what a variable begins with. LLVM knows the
    number in any case where it inlines the function. Of `fastdp warmup` it was a fifth.
    """
    template_of = dispatcher.get_call_template

    def of_types(arguments: Any, keywords: Any) -> Any:
        unliteral = _types.unliteral
        return template_of(tuple(map(unliteral, arguments)), {name: unliteral(kind) for name, kind in keywords.items()})

    dispatcher.get_call_template = of_types


def as_read_only(dispatcher: Any, names: Collection[str]) -> None:
    """Compile a kernel for arrays of these names as if they were read-only, and call it for others, too.

    numba has two types for them, which look alike in memory. The one that is compiled is the one that it checks: a
    kernel that wrote to such an array would not compile.
    """
    compile_, template_of = dispatcher.compile, dispatcher.get_call_template
    positions = [dispatcher.py_func.__code__.co_varnames.index(name) for name in names]
    known: set[Any] = set()

    def read_only(kind: Any) -> Any:
        return kind.copy(readonly=True) if isinstance(kind, _types.Array) else kind

    def of_arguments(kinds: Any) -> Any:
        return tuple(read_only(kind) if i in positions else kind for i, kind in enumerate(kinds))

    def compile_for_both(signature: Any) -> Any:
        with compiler_lock:
            kinds, result = _core.sigutils.normalize_signature(signature)
            compiled = of_arguments(kinds)
            address = compile_(compiled if result is None else result(*compiled))
            found = dispatcher.overloads[compiled]
            if compiled != tuple(kinds) and kinds not in known and not is_part(found):
                known.add(kinds)
                dispatcher._insert([kind._code for kind in kinds], found.entry_point, found.objectmode)
            return address

    def of_types(arguments: Any, keywords: Any) -> Any:
        said = {name: read_only(kind) if name in names else kind for name, kind in keywords.items()}
        return template_of(of_arguments(arguments), said)

    dispatcher.compile, dispatcher.get_call_template = compile_for_both, of_types


class Callback:
    """A kernel as a C function pointer, compiled or loaded from disk when `address` is first read."""

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:
        self._function = function
        self._signature = signature
        self._compiled: Any = None

    @property
    def function(self) -> Callable[..., Any]:
        """The kernel in Python."""
        return self._function

    @property
    def signature(self) -> Any:
        """Its arguments and result, as numba names them."""
        return _core.sigutils.normalize_signature(self._signature)

    @property
    def address(self) -> int:
        if self._compiled is None:
            with compiler_lock:
                if self._compiled is None:
                    options = {"nopython": True, "error_model": "numpy"}
                    compiled = _core.ccallback.CFunc(self._function, self.signature, {}, options)
                    compiled._cache = KernelCache(self._function, "callback")
                    compiled._cache.adopt(compiled._compiler)
                    compiled.compile()
                    self._compiled = compiled
        return int(self._compiled.address)


def compile_callback(signature: Any) -> Callable[[Callable[..., Any]], Callback]:
    """Make a C function pointer of a kernel; `signature` as numba writes it, such as "float64(int64)"."""
    return lambda function: Callback(function, signature)


def compile_derivative(function: Any) -> Any:
    """A C function pointer of a user's function of two floats, by numpy's rules of division: never written to disk."""
    signature = _core.sigutils.normalize_signature("float64(float64, float64)")
    python = getattr(function, "py_func", function)
    compiled = _core.ccallback.CFunc(python, signature, {}, {"nopython": True, "error_model": "numpy"})
    compiled.compile()
    return compiled


_MEANING = ("error_model", "fastmath", "boundscheck")  # of what users tell numba.njit: what changes what is computed
_NUMBERS = "CPointer(float64)"


def compile_gradient(function: Any, labelled: bool) -> tuple[Any, Any]:
    """A C function pointer of a user's function (w, x, y, out) of arrays, y a float: never written to disk.

    Without `labelled` it is one of (w, x, out). The pointer's function returns 0, or 1 where the user's raises, as it
    does at a wrong index: these are checked.

    Returns   what keeps it alive and has the address, and numba's type of what the function returns
    """
    njit: Any = numba.njit
    vector = _types.Array(_types.float64, 1, "C")
    given = getattr(function, "targetoptions", {})
    options = {"error_model": "numpy", **{name: given[name] for name in _MEANING if name in given}, "boundscheck": True}
    one = njit(**options)(getattr(function, "py_func", function))
    one.compile((vector, vector, _types.float64, vector) if labelled else (vector, vector, vector))

    def with_label(w: Any, p: Any, x: Any, d: Any, y: Any, out: Any) -> int:
        try:
            one(_carray(w, (p,)), _carray(x, (d,)), y, _carray(out, (p,)))
        except Exception:
            return 1
        return 0

    def without(w: Any, p: Any, x: Any, d: Any, y: Any, out: Any) -> int:
        try:
            one(_carray(w, (p,)), _carray(x, (d,)), _carray(out, (p,)))
        except Exception:
            return 1
        return 0

    signature = _core.sigutils.normalize_signature(f"int64({_NUMBERS}, int64, {_NUMBERS}, int64, float64, {_NUMBERS})")
    compiled = _core.ccallback.CFunc(
        with_label if labelled else without, signature, {}, {"nopython": True, "error_model": "numpy"}
    )
    compiled.compile()
    return (compiled, one), one.nopython_signatures[0].return_type


def compile_predicate(function: Any) -> tuple[Any, Any]:
    """A user's compiled function of a cell number as a loop, fill(out): out[i] = 1 where it says True of i, else 0.

    It is compiled anew, from Python and with the user's options, so division by zero raises unless the user told numba
    otherwise. Called from a kernel, the user's own dispatcher would be compiled by numpy's rules of division, for good:
    it would say False where, called first from Python, it raises. Never written to disk.

    Returns   the loop, and numba's type of what the function returns
    """
    njit: Any = numba.njit
    options = {name: function.targetoptions[name] for name in _MEANING if name in function.targetoptions}
    one = njit(**options)(function.py_func)
    one.compile((_types.intp,))  # by itself: what it calls takes over options of its caller
    return compile_filler(one), one.nopython_signatures[0].return_type


def compile_filler(one: Any) -> Any:
    """The loop of `compile_predicate` over a function that is compiled, or is a C function of ctypes."""
    njit: Any = numba.njit

    def fill(out: Any) -> None:
        for i in range(out.size):
            out[i] = 1 if one(i) else 0

    return njit(nogil=True, error_model="python")(fill)
