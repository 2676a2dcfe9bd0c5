"""C functions that users hand in: of cffi, or compiled by numba (`numba.cfunc`)."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

_INTEGERS: dict[str, Any] = {
    "_Bool": ctypes.c_bool,
    "signed char": ctypes.c_byte,
    "unsigned char": ctypes.c_ubyte,
    "short": ctypes.c_short,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "long": ctypes.c_long,
    "long long": ctypes.c_longlong,
    **{f"{name}_t": getattr(ctypes, f"c_{name}") for name in ("int8", "int16", "int32", "int64", "uint8", "uint32")},
}
"""Whole numbers of C, by cffi's names for them."""


class CFunction(NamedTuple):
    """Where it is; what it takes and returns, in C's terms; who made it, and the type in that one's words."""

    address: int
    arguments: tuple[str, ...]
    result: str
    maker: str
    declared: str


def c_function(function: Any) -> CFunction | None:
    """What is known of a C function; None for anything else. NULL has the address 0."""
    if type(function).__module__.partition(".")[0] == "_cffi_backend":
        import cffi

        ffi = cffi.FFI()
        kind = ffi.typeof(function)
        if kind.kind != "function":
            return CFunction(0, (), "", "a C function", kind.cname)
        arguments = tuple(argument.cname for argument in kind.args)
        if kind.ellipsis:
            arguments = (*arguments, "...")
        return CFunction(int(ffi.cast("intptr_t", function)), arguments, kind.result.cname, "a C function", kind.cname)
    if type(function).__module__.partition(".")[0] != "numba":
        return None
    signature = getattr(function, "_sig", None)  # numba keeps it there
    if isinstance(address := getattr(function, "address", None), int) and signature is not None:
        arguments, result = tuple(map(_in_c, signature.args)), _in_c(signature.return_type)
        return CFunction(address, arguments, result, "a numba cfunc", f"a cfunc {signature}")
    return None


def _in_c(kind: Any) -> str:
    """numba's type by cffi's name for it."""
    name = str(kind)
    return {"float64": "double", "boolean": "_Bool", "bool": "_Bool"}.get(name) or f"{name}_t"


def flag_of_number(function: CFunction) -> Any:
    """A C function of one int64 that returns an integer, as numba can call it; None if it is none."""
    if function.result not in _INTEGERS or len(function.arguments) != 1:
        return None
    (argument,) = function.arguments
    if argument not in ("int64_t", "long", "long long") or ctypes.sizeof(_INTEGERS[argument]) != 8:
        return None
    return ctypes.CFUNCTYPE(_INTEGERS[function.result], ctypes.c_int64)(function.address)
