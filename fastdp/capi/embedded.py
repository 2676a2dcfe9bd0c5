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

from ..budget import BudgetExceeded
from ..errors import DomainError
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
    in_shapes = {part for a in arguments for part in a.shape or ()}
    passed = [a for a in arguments if a.name not in in_shapes]

    def take(*raw: Any) -> None:
        values = dict(zip((a.name for a in arguments), raw, strict=True))
        for a in arguments:
            if a.least is not None and not a.least <= values[a.name] <= _LONGEST:
                raise ValueError(f"{a.name}={values[a.name]}: must be at least {a.least}, and at most 2^48")
        call(*(_converted(ffi, a, values) for a in passed))

    return take


def _converted(ffi: Any, argument: Argument, values: dict[str, Any]) -> Any:
    value = values[argument.name]
    if argument.shape is None:
        return int(ffi.cast("intptr_t", value)) if argument.ctype == "fastdp_derivative" else value
    return _array(ffi, argument, value, values)


def _array(ffi: Any, argument: Argument, pointer: Any, values: dict[str, Any]) -> NDArray[Any] | None:
    """The memory at a pointer, as an array."""
    shape = tuple(values[part] if isinstance(part, str) else part for part in argument.shape or ())
    dtype, numbers = _DTYPES[argument.ctype]
    numbers = numbers or ffi.sizeof(argument.ctype) // dtype.itemsize
    count = prod(shape) * numbers
    if count > _LONGEST:
        raise ValueError(f"{argument.name}: {count} entries: must be at most 2^48")
    if not pointer:
        if argument.optional:
            return None
        if count:
            raise ValueError(f"{argument.name}=NULL: must point to {count} numbers")
        return np.empty(shape, dtype)
    if int(ffi.cast("uintptr_t", pointer)) % dtype.alignment:
        raise ValueError(f"{argument.name}: its address must be a multiple of {dtype.alignment}")
    if not count:
        return np.empty(shape, dtype)
    flat = np.frombuffer(ffi.buffer(pointer, count * dtype.itemsize), dtype)
    return flat if len(shape) < 2 else flat.reshape(shape)


def _fill(ffi: Any, table: Any) -> None:
    for name, address in _addresses().items():
        field = dict(ffi.typeof("fastdp_kernel_table").fields)[name]
        setattr(table, name, ffi.cast(field.type, address))
    table.version, table.size = VERSION, ffi.sizeof("fastdp_kernel_table")


@lru_cache(1)
def _addresses() -> dict[str, int]:
    from ..kernels.exported import TABLE

    return {name: callback.address for name, callback in TABLE.items()}
