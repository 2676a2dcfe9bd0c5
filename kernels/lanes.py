"""SIMD lanes as values: what a loop cannot say, said in the words of the formula.

`Lanes(dtype, n)` is a numba type: n numbers that sit side by side in vector registers. It has the operators +, -, *
and, for integers, ^ and |, and the few functions below, so that a vector kernel reads as its formula. Beside them stand
the three scalar operations that Python has no word for: the bits of a float, the float of bits, and fma. LLVM splits or
widens the lanes to what the machine has; no operation here rounds differently from one machine to another, so the bits
are the same everywhere.

This is the only file that builds LLVM IR. Lane counts and rotation distances are compile-time constants: literals,
or globals that hold a plain int.
"""

import operator
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.extending import intrinsic, models, overload, register_model
from numba.np import arrayobj

# numba's scalar types as kernels use them: conversions inside compiled code
int64: Any = numba.int64
uint32: Any = numba.uint32
uint64: Any = numba.uint64
float64: Any = numba.float64

U8Array = np.ndarray[Any, np.dtype[np.uint8]]
U16Array = np.ndarray[Any, np.dtype[np.uint16]]
U32Array = np.ndarray[Any, np.dtype[np.uint32]]
U64Array = np.ndarray[Any, np.dtype[np.uint64]]
I64Array = np.ndarray[Any, np.dtype[np.int64]]
F64Array = np.ndarray[Any, np.dtype[np.float64]]


class Lanes(types.Type):
    """The numba type of n lanes of one dtype."""

    def __init__(self, dtype: Any, n: int) -> None:
        self.dtype, self.n = dtype, n
        super().__init__(name=f"Lanes({dtype}, {n})")

    @property
    def key(self) -> tuple[Any, int]:
        return self.dtype, self.n


_ELEMENT = {
    types.uint32: ir.IntType(32),
    types.uint64: ir.IntType(64),
    types.int64: ir.IntType(64),
    types.float64: ir.DoubleType(),
}
_I32 = ir.IntType(32)


class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, ir.VectorType(_ELEMENT[lanes.dtype], lanes.n))


register_model(Lanes)(_LanesModel)


def _emit(describe: Callable[..., Any]) -> Any:
    """Make a numba intrinsic of a function that returns (signature, code generator)."""
    return intrinsic(prefer_literal=True)(describe)


def _constant(lanes: Any, value: int) -> Any:
    return ir.Constant(lanes, [value] * lanes.count)


@_emit
def splat(typing: Any, x: Any, n: Any) -> Any:
    """n lanes that all hold x."""
    if not isinstance(n, types.IntegerLiteral):
        return None
    count, scalar = n.literal_value, types.unliteral(x)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        first = ir.Constant(ir.VectorType(args[0].type, count), ir.Undefined)
        one = builder.insert_element(first, args[0], ir.Constant(_I32, 0))
        return builder.shuffle_vector(one, first, ir.Constant(ir.VectorType(_I32, count), [0] * count))

    return Lanes(scalar, count)(scalar, n), generate


@_emit
def iota(typing: Any, n: Any) -> Any:
    """The uint64 lanes 0, 1, ..., n - 1."""
    if not isinstance(n, types.IntegerLiteral):
        return None
    result = Lanes(types.uint64, n.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.VectorType(ir.IntType(64), result.n), list(range(result.n)))

    return result(n), generate


@_emit
def store(typing: Any, out: Any, start: Any, lanes: Any) -> Any:
    """out[start : start + n] = lanes, with no bounds check and no alignment asked; out is contiguous."""
    if not isinstance(lanes, Lanes) or not isinstance(out, types.Array) or out.dtype != lanes.dtype:
        return None
    if out.layout != "C" or out.ndim != 1 or not out.mutable:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(data, [args[1]]), args[2].type.as_pointer())
        builder.store(args[2], place).align = context.get_abi_sizeof(args[2].type.element)
        return context.get_dummy_value()

    return types.void(out, types.intp, lanes), generate


@_emit
def load(typing: Any, array: Any, start: Any, n: Any) -> Any:
    """The lanes array[start : start + n], with no bounds check and no alignment asked; array is contiguous."""
    if not isinstance(array, types.Array) or not isinstance(n, types.IntegerLiteral):
        return None
    if array.layout != "C" or array.ndim != 1 or array.dtype not in _ELEMENT:
        return None
    result = Lanes(array.dtype, n.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        lanes = ir.VectorType(_ELEMENT[array.dtype], result.n)
        place = builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer())
        loaded = builder.load(place)
        loaded.align = context.get_abi_sizeof(lanes.element)
        return loaded

    return result(array, types.intp, n), generate


@_emit
def load_wide(typing: Any, array: Any, start: Any, n: Any) -> Any:
    """`load` of float32 or float64 entries, as float64 lanes."""
    if not isinstance(array, types.Array) or not isinstance(n, types.IntegerLiteral):
        return None
    if array.layout != "C" or array.ndim != 1 or array.dtype not in (types.float32, types.float64):
        return None
    result = Lanes(types.float64, n.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        stored = ir.VectorType(context.get_data_type(array.dtype), result.n)
        loaded = builder.load(builder.bitcast(builder.gep(data, [args[1]]), stored.as_pointer()))
        loaded.align = context.get_abi_sizeof(stored.element)
        return (
            loaded if array.dtype == types.float64 else builder.fpext(loaded, ir.VectorType(ir.DoubleType(), result.n))
        )

    return result(array, types.intp, n), generate


@_emit
def load_bytes(typing: Any, array: Any, start: Any, n: Any) -> Any:
    """8n bytes from array[start] on, as uint64 lanes, the first byte of a lane lowest; array is uint8, contiguous."""
    if not isinstance(array, types.Array) or not isinstance(n, types.IntegerLiteral):
        return None
    if array.layout != "C" or array.ndim != 1 or array.dtype != types.uint8:
        return None
    result = Lanes(types.uint64, n.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        lanes = ir.VectorType(ir.IntType(64), result.n)
        loaded = builder.load(builder.bitcast(builder.gep(data, [args[1]]), lanes.as_pointer()))
        loaded.align = 1
        return loaded

    return result(array, types.intp, n), generate


def _zip(half: int, text: str) -> Any:
    def describe(typing: Any, x: Any, y: Any) -> Any:
        if not isinstance(x, Lanes) or x != y or x.dtype != types.uint64:
            return None
        count = 8 * x.n

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            of_bytes = ir.VectorType(ir.IntType(8), count)
            first = range(half * count // 2, (half + 1) * count // 2)
            order = ir.Constant(ir.VectorType(_I32, count), [i for k in first for i in (k, k + count)])
            mixed = builder.shuffle_vector(*(builder.bitcast(arg, of_bytes) for arg in args), order)
            return builder.bitcast(mixed, args[0].type)

        return x(x, y), generate

    describe.__doc__ = text
    return _emit(describe)


zip_first = _zip(0, "The bytes of the first halves of two uint64 lanes by turns: x0 y0 x1 y1 ...")
zip_last = _zip(1, "The bytes of the last halves of two uint64 lanes by turns.")


@_emit
def any_bits(typing: Any, x: Any) -> Any:
    """All lanes of x, one or-ed with the other."""
    if not isinstance(x, Lanes) or not isinstance(x.dtype, types.Integer):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        parts = [builder.extract_element(args[0], ir.Constant(_I32, i)) for i in range(x.n)]
        total = parts[0]
        for part in parts[1:]:
            total = builder.or_(total, part)
        return total

    return x.dtype(x), generate


@_emit
def prefetch(typing: Any, array: Any, start: Any) -> Any:
    """Ask for the cache line of array[start], which may lie beyond its end."""
    if not isinstance(array, types.Array):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        hint = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
        function = cgutils.get_or_insert_function(builder.module, hint, "llvm.prefetch.p0")
        place = builder.bitcast(builder.gep(data, [args[1]]), byte)
        builder.call(function, [place, _I32(0), _I32(3), _I32(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _on_lanes(builder: Any, name: str, *args: Any) -> Any:
    """Call an LLVM intrinsic of float64 lanes, whose name llvmlite cannot make."""
    kind = args[0].type
    signature = ir.FunctionType(kind, [kind] * len(args))
    return builder.call(
        cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.v{kind.count}f64"), args
    )


@_emit
def truncate(typing: Any, x: Any) -> Any:
    """Float64 lanes rounded toward zero."""
    if not isinstance(x, Lanes) or x.dtype != types.float64:
        return None
    return x(x), lambda context, builder, signature, args: _on_lanes(builder, "trunc", args[0])


@_emit
def signs(typing: Any, x: Any) -> Any:
    """-1, 0 or 1 for each of the float64 lanes; 0 for a NaN."""
    if not isinstance(x, Lanes) or x.dtype != types.float64:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        zero = ir.Constant(args[0].type, [0.0] * x.n)
        above = builder.uitofp(builder.fcmp_ordered(">", args[0], zero), args[0].type)
        below = builder.uitofp(builder.fcmp_ordered("<", args[0], zero), args[0].type)
        return builder.fsub(above, below)

    return x(x), generate


@_emit
def sum_each(typing: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any) -> Any:
    """The 8 sums of 8 float64 lanes each, as lanes: neighbours first, in one order on every machine."""
    if not isinstance(a, Lanes) or a.dtype != types.float64 or a.n != 8:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def shuffle(x: Any, y: Any, order: list[int]) -> Any:
            return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_I32, 8), order))

        values, apart = list(args), 1
        while len(values) > 1:  # lanes i and i + apart of x are parts of one sum, and so are those of y
            first = [i + (8 - apart) * (i // apart % 2) for i in range(8)]
            values = [
                builder.fadd(shuffle(x, y, first), shuffle(x, y, [i + apart for i in first]))
                for x, y in zip(values[::2], values[1::2], strict=True)
            ]
            apart *= 2
        return values[0]

    return a(a, b, c, d, e, f, g, h), generate


@_emit
def tree_sum(typing: Any, x: Any) -> Any:
    """The sum of float64 lanes, by halves: lane i and lane i + n/2 first."""
    if not isinstance(x, Lanes) or x.dtype != types.float64:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes, n = args[0], x.n
        while n > 1:
            n //= 2
            halves = [
                builder.shuffle_vector(lanes, lanes, ir.Constant(ir.VectorType(_I32, n), list(range(first, first + n))))
                for first in (0, n)
            ]
            lanes = builder.fadd(*halves)
        return builder.extract_element(lanes, ir.Constant(_I32, 0))

    return x.dtype(x), generate


@_emit
def rotl(typing: Any, x: Any, distance: Any) -> Any:
    """Rotate the bits of every lane left by a constant distance."""
    if not isinstance(x, Lanes) or not isinstance(distance, types.IntegerLiteral):
        return None
    left = distance.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = args[0].type
        up = builder.shl(args[0], _constant(lanes, left))
        return builder.or_(up, builder.lshr(args[0], _constant(lanes, lanes.element.width - left)))

    return x(x, distance), generate


@_emit
def shl(typing: Any, x: Any, distance: Any) -> Any:
    """Shift the bits of every lane left by a constant distance."""
    if not isinstance(x, Lanes) or not isinstance(distance, types.IntegerLiteral):
        return None
    left = distance.literal_value
    return x(x, distance), lambda context, builder, signature, args: builder.shl(args[0], _constant(args[0].type, left))


def _half(shift: int, text: str) -> Any:
    def describe(typing: Any, x: Any) -> Any:
        if not isinstance(x, Lanes) or x.dtype != types.uint64:
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            moved = builder.lshr(args[0], _constant(args[0].type, shift)) if shift else args[0]
            return builder.trunc(moved, ir.VectorType(_I32, x.n))

        return Lanes(types.uint32, x.n)(x), generate

    describe.__doc__ = text
    return _emit(describe)


low32 = _half(0, "The low halves of uint64 lanes, as uint32 lanes.")
high32 = _half(32, "The high halves of uint64 lanes, as uint32 lanes.")


def _operator(symbol: Callable[[Any, Any], Any], integers: str, floats: str = "") -> None:
    """Give lanes the operator `symbol`, as the LLVM instruction named: for integers, and for floats if there is one."""

    def describe(typing: Any, x: Any, y: Any) -> Any:
        instruction = integers if isinstance(x.dtype, types.Integer) else floats

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(args[0], args[1])

        return x(x, y), generate

    emitted = _emit(describe)

    def fits(x: Any, y: Any) -> bool:
        return isinstance(x, Lanes) and x == y and (floats != "" or isinstance(x.dtype, types.Integer))

    # lambdas, because numba wants both signatures alike to the letter, annotations included
    overload(symbol)(lambda x, y: (lambda x, y: emitted(x, y)) if fits(x, y) else None)


_operator(operator.add, "add", "fadd")
_operator(operator.sub, "sub", "fsub")
_operator(operator.mul, "mul", "fmul")
_operator(operator.xor, "xor")
_operator(operator.or_, "or_")


@_emit
def mix(typing: Any, x: Any, distance: Any) -> Any:
    """Of lanes i and i + distance the sum in the first and the first minus the second in the other.

    distance is a power of two below n, and i the lanes whose number does not contain it.
    """
    if not isinstance(x, Lanes) or not isinstance(distance, types.IntegerLiteral):
        return None
    apart = distance.literal_value
    add, subtract = ("add", "sub") if isinstance(x.dtype, types.Integer) else ("fadd", "fsub")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def shuffle(x: Any, y: Any, lanes: list[int]) -> Any:
            return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_I32, len(lanes)), lanes))

        others = shuffle(args[0], args[0], [i ^ apart for i in range(x.n)])
        sums, differences = getattr(builder, add)(args[0], others), getattr(builder, subtract)(others, args[0])
        return shuffle(sums, differences, [i + x.n if i & apart else i for i in range(x.n)])

    return x(x, distance), generate


# --- scalars: LLVM's vectoriser turns these into lanes by itself


def _reinterpret(source: Any, target: Any, text: str) -> Any:
    def describe(typing: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], _ELEMENT[target])

        return target(source), generate

    describe.__doc__ = text
    return _emit(describe)


bits_of = _reinterpret(types.float64, types.int64, "The 64 bits of a float, as an int64.")
float_of = _reinterpret(types.int64, types.float64, "The float that has these 64 bits.")


@_emit
def fma(typing: Any, x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding, in hardware or in software: the same bits either way."""

    if isinstance(x, Lanes):
        return x(x, y, z), lambda context, builder, signature, args: _on_lanes(builder, "fma", *args)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), generate


@_emit
def call_at(typing: Any, address: Any, x: Any, y: Any) -> Any:
    """What the C function `double f(double, double)` at an address says of x and y."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        number = ir.DoubleType()
        function = builder.inttoptr(args[0], ir.FunctionType(number, [number, number]).as_pointer())
        return builder.call(function, args[1:])

    return types.float64(types.int64, types.float64, types.float64), generate


@_emit
def popcount(typing: Any, x: Any) -> Any:
    """How many bits of a uint64 are set, as an int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


# --- numbers that may be int64 or float64: one kernel serves both


@_emit
def gap(typing: Any, top: Any, x: Any) -> Any:
    """top - x for top >= x, as a float64: the difference, rounded once. For integers it may be as large as 2^64 - 1."""
    if top != x or top not in (types.int64, types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if top == types.float64:
            return builder.fsub(*args)
        # a uint64 as a float64 by its halves, like elementary.from_uint64: there is no vector cast before AVX-512
        integer, number = ir.IntType(64), ir.DoubleType()
        k = builder.sub(*args)
        high = builder.or_(builder.lshr(k, integer(32)), integer(0x4530000000000000))
        low = builder.or_(builder.and_(k, integer(0xFFFFFFFF)), integer(0x4330000000000000))
        shifted = builder.fsub(builder.bitcast(high, number), number(19342813118337666422669312.0))
        return builder.fadd(shifted, builder.bitcast(low, number))

    return types.float64(top, x), generate


@_emit
def part(typing: Any, x: Any, k: Any) -> Any:
    """x / 2^k for k from 0 to 63: floats by their exact factor, integers rounded down."""
    if x not in (types.int64, types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if x == types.int64:
            return builder.ashr(*args)
        integer = ir.IntType(64)
        exponent = builder.shl(builder.sub(integer(1023), args[1]), integer(52))
        return builder.fmul(args[0], builder.bitcast(exponent, ir.DoubleType()))

    return x(x, types.int64), generate


_LOWEST_NAN = 2**52 - 1  # ranks of floats are moved down by this, so that those of negative NaN wrap to the top


@_emit
def rank_of(typing: Any, x: Any) -> Any:
    """An int64 that orders numbers as they are ordered; a NaN of either sign ranks at or above +inf."""
    if x == types.int64:
        return types.int64(x), lambda context, builder, signature, args: args[0]
    if x != types.float64:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(64)
        bits = builder.bitcast(args[0], integer)
        flip = builder.and_(builder.ashr(bits, integer(63)), integer(2**63 - 1))
        return builder.sub(builder.xor(bits, flip), integer(_LOWEST_NAN))

    return types.int64(x), generate


@_emit
def of_rank(typing: Any, rank: Any, like: Any) -> Any:
    """The number of this rank; `like` is of its type."""
    if rank != types.int64 or like not in (types.int64, types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if like == types.int64:
            return args[0]
        integer = ir.IntType(64)
        bits = builder.add(args[0], integer(_LOWEST_NAN))
        flip = builder.and_(builder.ashr(bits, integer(63)), integer(2**63 - 1))
        return builder.bitcast(builder.xor(bits, flip), ir.DoubleType())

    return like(rank, like), generate


# --- memory


def _array_at(context: Any, builder: Any, array: Any, data: Any, length: Any) -> Any:
    """A contiguous array of one dimension over memory that somebody else owns."""
    made = context.make_array(array)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(array.dtype))
    item = context.get_constant(types.intp, size)
    arrayobj.populate_array(made, data=data, shape=[length], strides=[item], itemsize=item, meminfo=None)
    return made._getvalue()


@_emit
def row_at(typing: Any, rows: Any, i: Any) -> Any:
    """Row i of a two-dimensional array whose rows are contiguous: slices of columns are, which numba cannot know."""
    if not isinstance(rows, types.Array) or rows.ndim != 2 or rows.layout == "F":
        return None
    row = types.Array(rows.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        array = context.make_array(rows)(context, builder, args[0])
        stride = builder.extract_value(array.strides, 0)
        start = builder.ptrtoint(array.data, stride.type)
        data = builder.inttoptr(builder.add(start, builder.mul(args[1], stride)), array.data.type)
        return _array_at(context, builder, row, data, builder.extract_value(array.shape, 1))

    return row(rows, types.intp), generate


@_emit
def stack(typing: Any, dtype: Any, n: Any) -> Any:
    """n uninitialised entries on the stack, gone when the calling kernel returns: for small buffers only."""
    if not isinstance(n, types.IntegerLiteral):
        return None
    array = types.Array(dtype.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = cgutils.alloca_once(builder, context.get_data_type(array.dtype), size=n.literal_value)
        data.align = 64
        return _array_at(context, builder, array, data, context.get_constant(types.intp, n.literal_value))

    return array(dtype, n), generate
