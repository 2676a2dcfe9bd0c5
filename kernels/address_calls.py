"""Calls of functions by their address: of what a user has compiled, from within a kernel.

Nothing is checked: who calls vouches for the address, and that the function takes these arguments.
"""

from typing import Any

from llvmlite import ir
from numba import types

from .lanes import emit


@emit
def call_at(typing: Any, address: Any, x: Any, y: Any) -> Any:
    """What the C function `double f(double, double)` at an address says of x and y."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = ir.DoubleType()
        function = builder.inttoptr(args[0], ir.FunctionType(number, [number, number]).as_pointer())
        return builder.call(function, args[1:])

    return types.float64(types.int64, types.float64, types.float64), generate


@emit
def call_into(typing: Any, address: Any, w: Any, x: Any, y: Any, d: Any, out: Any) -> Any:
    """What the C function `int64 f(double *w, int64 p, double *x, int64 d, double y, double *out)` returns.

    w and out have p entries, as many as w says; x has d and perhaps more.
    """
    if not (all(isinstance(each, types.Array) and each.ndim == 1 and each.layout == "C" for each in (w, x, out))):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole, number = ir.IntType(64), ir.DoubleType()
        kinds = [number.as_pointer(), whole, number.as_pointer(), whole, number, number.as_pointer()]
        function = builder.inttoptr(args[0], ir.FunctionType(whole, kinds).as_pointer())
        held = [context.make_array(array)(context, builder, arg) for array, arg in ((w, args[1]), (x, args[2]))]
        size = builder.extract_value(held[0].shape, 0)
        into = context.make_array(out)(context, builder, args[5]).data
        return builder.call(function, [held[0].data, size, held[1].data, args[4], args[3], into])

    return types.int64(types.int64, w, x, types.float64, types.int64, out), generate
