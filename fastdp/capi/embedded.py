"""Calls from C: pointers become arrays, exceptions become statuses and a message.

Runs inside the library that `library.py` made, as the Python side of its functions. No exception leaves here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.budget import BudgetExceeded
from ..support.errors import DomainError
from .table import FUNCTIONS, STATUS, STRUCTS, VERSION, Argument, Function
from .text import digest

_CODES = {name: code for code, name in enumerate(STATUS)}
_LONGEST = 2**48
_DTYPES: dict[str, tuple[np.dtype[Any], int]] = {
    **{f"{name}_t": (np.dtype(name), 1) for name in ("int64", "uint64", "uint32", "uint8")},
    "double": (np.dtype(np.float64), 1),
    **{f"fastdp_{name}": (np.dtype(np.float64), 0) for name in STRUCTS},
}  # of an entry, and how many numbers it is; 0: see its struct


def attach(ffi: Any, lib: Any, made_for: str) -> None:
    """Fill in the functions of a library."""
    if made_for != digest():
        raise ImportError("another version of fastdp made this library: write it anew with python -m fastdp.capi")

    def report(error: BaseException) -> int:
        text = str(error).strip() or type(error).__name__
        status = _status(error)
        if status == "INTERNAL":
            text = f"{type(error).__name__}: {text}"
        lib.fastdp_set_error(text.encode()[:1000].decode(errors="ignore").encode())
        return _CODES[status]

    def attach_one(name: str, call: Callable[..., None]) -> None:
        def guarded(*raw: Any) -> int:
            try:
                call(*raw)
            except BaseException as error:  # an interrupt, too: it becomes a status
                return report(error)
            return _CODES["OK"]

        guarded.__name__ = name
        ffi.def_extern(name=name, error=_CODES["INTERNAL"])(guarded)

    for function in FUNCTIONS:
        attach_one(f"inner_{function.name}", _taking_pointers(ffi, function))
    attach_one("inner_kernels", lambda table: _fill(ffi, table))


def _status(error: BaseException) -> str:
    for kinds, status in _STATUS_OF:
        if isinstance(error, kinds):
            return status
    return "INTERNAL"


_STATUS_OF: tuple[tuple[Any, str], ...] = (
    (DomainError, "DOMAIN"),
    (BudgetExceeded, "REFUSED"),
    (ValueError, "INVALID"),
    (MemoryError, "MEMORY"),
    (KeyboardInterrupt, "INTERRUPTED"),
)


def _taking_pointers(ffi: Any, function: Function) -> Callable[..., None]:
    """The function as C calls it."""
    arguments, call = function.arguments, function.call
    places = {a.name: at for at, a in enumerate(arguments)}
    in_shapes = {part for a in arguments for part in a.shape or ()}
    lengths = [(at, a.name, a.least) for at, a in enumerate(arguments) if a.least is not None]
    readers = [(at, _reader(ffi, a, places)) for at, a in enumerate(arguments) if a.name not in in_shapes]

    def take(*raw: Any) -> None:
        for at, name, least in lengths:
            if not least <= raw[at] <= _LONGEST:
                raise ValueError(f"{name}={raw[at]}: must be at least {least}, and at most 2^48")
        call(*[raw[at] if read is None else read(raw[at], raw) for at, read in readers])

    return take


def _reader(ffi: Any, argument: Argument, places: dict[str, int]) -> Callable[[Any, tuple[Any, ...]], Any] | None:
    """What makes of a pointer, given all arguments, the array of its memory; None for numbers, which stay."""
    address = ffi.typeof("uintptr_t")
    cast, buffer, frombuffer = ffi.cast, ffi.buffer, np.frombuffer
    if argument.shape is None:
        return (lambda pointer, raw: int(cast(address, pointer))) if argument.ctype == "fastdp_derivative" else None
    name, optional = argument.name, argument.optional
    dtype, numbers = _DTYPES[argument.ctype]
    numbers = numbers or ffi.sizeof(argument.ctype) // dtype.itemsize
    size, alignment = dtype.itemsize, dtype.alignment
    named = [places[part] for part in argument.shape if isinstance(part, str)]
    fixed = prod(part for part in argument.shape if isinstance(part, int)) * numbers
    flat = len(argument.shape) < 2

    def read(pointer: Any, raw: tuple[Any, ...]) -> NDArray[Any] | None:
        count = fixed
        for at in named:
            count *= raw[at]
        if count > _LONGEST:
            raise ValueError(f"{name}: {count} entries: must be at most 2^48")
        if not pointer:
            if optional:
                return None
            if count:
                raise ValueError(f"{name}=NULL: must point to {count} numbers")
        elif int(cast(address, pointer)) % alignment:
            raise ValueError(f"{name}: its address must be a multiple of {alignment}")
        array = frombuffer(buffer(pointer, count * size), dtype) if count else np.empty(0, dtype)
        return array if flat else array.reshape([raw[at] for at in named] + [-1] * (fixed > 1))

    return read


def _fill(ffi: Any, table: Any) -> None:
    for name, address in _addresses().items():
        field = dict(ffi.typeof("fastdp_kernel_table").fields)[name]
        setattr(table, name, ffi.cast(field.type, address))
    table.version, table.size = VERSION, ffi.sizeof("fastdp_kernel_table")


@lru_cache(1)
def _addresses() -> dict[str, int]:
    from ..kernels.function_pointers import TABLE

    return {name: callback.address for name, callback in TABLE.items()}
