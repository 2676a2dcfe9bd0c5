"""What kernels do with whole arrays, in fewer functions than numba makes of it.

`out[a:b] = x` has numba compile the message about shapes that do not fit, 40 functions of texts and formats: a second
and a half of a first call. `x.view(dtype)` has it compile a check of shapes: a sixth of the first `laplace`.
"""

from typing import Any

from numba import types

from .compile import jit
from .lanes import array_at, emit, is_vector


@jit(inline=True)
def copy_into(x: Any, out: Any) -> None:
    """out = x, two arrays of one length that do not overlap."""
    for i in range(out.size):
        out[i] = x[i]


@emit
def seen_as(typing: Any, array: Any, dtype: Any) -> Any:
    """The memory of a contiguous array, or of `bytes` that are only read, as entries of another type.

    It is not counted: who calls must hold the array.
    """
    if not is_vector(array) and not isinstance(array, types.Bytes):
        return None
    seen = types.Array(dtype.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        held = context.make_array(array)(context, builder, args[0])
        old, new = (context.get_data_type(kind.dtype) for kind in (array, seen))
        size, each = (context.get_constant(types.intp, context.get_abi_sizeof(kind)) for kind in (old, new))
        length = builder.udiv(builder.mul(builder.extract_value(held.shape, 0), size), each)
        return array_at(context, builder, seen, builder.bitcast(held.data, new.as_pointer()), length)

    return seen(array, dtype), generate
