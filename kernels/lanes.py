"""SIMD lanes as values: what a loop cannot say, said in the words of the formula.

`Lanes(dtype, n)` is a numba type: n numbers that sit side by side in vector registers. It has the operators +, -, *
and, for integers, ^, | and &, and the few functions below, so that a vector kernel reads as its formula. Beside them
stand the three scalar operations that Python has no word for: the bits of a float, the float of bits, and fma. LLVM
splits or widens the lanes to what the machine has; no operation here rounds differently from one machine to another, so
the bits are the same everywhere.

LLVM IR is built here, in pair_lanes.py for lanes of int16, in aes_lanes.py for AES, in int_or_float.py for numbers of
either type and in address_calls.py for calls; nowhere else. Lane counts and rotation distances are compile-time
constants: literals, or globals that hold a plain int.
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
int32: Any = numba.int32
uint32: Any = numba.uint32
uint64: Any = numba.uint64
float64: Any = numba.float64

U8Array = np.ndarray[Any, np.dtype[np.uint8]]
U16Array = np.ndarray[Any, np.dtype[np.uint16]]
I16Array = np.ndarray[Any, np.dtype[np.int16]]
I32Array = np.ndarray[Any, np.dtype[np.int32]]
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


_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)
_ELEMENT = {
    types.int16: _I16, types.int32: _I32, types.uint32: _I32, types.uint64: _I64, types.int64: _I64,
    types.float64: ir.DoubleType(),
}  # fmt: skip


class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        super().__init__(manager, lanes, ir.VectorType(_ELEMENT[lanes.dtype], lanes.n))


register_model(Lanes)(_LanesModel)


# makes a numba intrinsic of a function that returns (signature, code generator)
emit: Callable[[Callable[..., Any]], Any] = intrinsic(prefer_literal=True)


def _constant(lanes: Any, value: int) -> Any:
    return ir.Constant(lanes, [value] * lanes.count)


@emit
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


@emit
def iota(typing: Any, n: Any) -> Any:
    """The uint64 lanes 0, 1, ..., n - 1."""
    if not isinstance(n, types.IntegerLiteral):
        return None
    result = Lanes(types.uint64, n.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(ir.VectorType(_I64, result.n), list(range(result.n)))

    return result(n), generate


def is_vector(array: Any) -> bool:
    return isinstance(array, types.Array) and array.layout == "C" and array.ndim == 1


def place_of(context: Any, builder: Any, array: Any, args: Any) -> Any:
    """A pointer to entry args[1] of the array args[0]."""
    return builder.gep(context.make_array(array)(context, builder, args[0]).data, [args[1]])


@emit
def store(typing: Any, out: Any, start: Any, lanes: Any) -> Any:
    """out[start : start + n] = lanes, with no bounds check and no alignment asked; out is contiguous."""
    if not isinstance(lanes, Lanes) or not is_vector(out) or out.dtype != lanes.dtype or not out.mutable:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = place_of(context, builder, signature.args[0], args)
        stored = builder.store(args[2], builder.bitcast(place, args[2].type.as_pointer()))
        stored.align = context.get_abi_sizeof(args[2].type.element)
        return context.get_dummy_value()

    return types.void(out, types.intp, lanes), generate


def _load(lanes_of: dict[Any, Any], text: str) -> Any:
    """A load of entries of the types named, as lanes of the types that they are given."""

    def describe(typing: Any, array: Any, start: Any, n: Any) -> Any:
        if not isinstance(n, types.IntegerLiteral) or not is_vector(array) or array.dtype not in lanes_of:
            return None
        result = Lanes(lanes_of[array.dtype], n.literal_value)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide = ir.VectorType(_ELEMENT[result.dtype], result.n)
            kept = ir.VectorType(ir.FloatType(), result.n) if array.dtype == types.float32 else wide
            place = place_of(context, builder, signature.args[0], args)
            loaded = builder.load(builder.bitcast(place, kept.as_pointer()))
            loaded.align = context.get_abi_sizeof(context.get_data_type(array.dtype))
            return loaded if kept == wide else builder.fpext(loaded, wide)

        return result(array, types.intp, n), generate

    describe.__doc__ = text
    return emit(describe)


load = _load(
    {dtype: dtype for dtype in _ELEMENT},
    "The lanes array[start : start + n], with no bounds check and no alignment asked; array is contiguous.",
)
load_wide = _load(
    {types.float32: types.float64, types.float64: types.float64},
    "`load` of float32 or float64 entries, as float64 lanes.",
)
load_bytes = _load(
    {types.uint8: types.uint64},
    "8n bytes from array[start] on, as uint64 lanes, the first byte of a lane lowest; array is uint8, contiguous.",
)


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
    return emit(describe)


zip_first = _zip(0, "The bytes of the first halves of two uint64 lanes by turns: x0 y0 x1 y1 ...")
zip_last = _zip(1, "The bytes of the last halves of two uint64 lanes by turns.")


@emit
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


def _prefetch(level: int, text: str) -> Any:
    def describe(typing: Any, array: Any, start: Any) -> Any:
        if not isinstance(array, types.Array):
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            byte = ir.IntType(8).as_pointer()
            hint = ir.FunctionType(ir.VoidType(), [byte, _I32, _I32, _I32])
            function = cgutils.get_or_insert_function(builder.module, hint, "llvm.prefetch.p0")
            place = builder.bitcast(place_of(context, builder, array, args), byte)
            builder.call(function, [place, _I32(0), _I32(level), _I32(1)])
            return context.get_dummy_value()

        return types.void(array, types.intp), generate

    describe.__doc__ = text
    return emit(describe)


prefetch = _prefetch(3, "Ask for the cache line of array[start], which may lie beyond its end.")
prefetch_far = _prefetch(2, "The same, into the second-level cache alone.")


def _on_lanes(builder: Any, name: str, *args: Any) -> Any:
    """Call an LLVM intrinsic of float64 lanes, whose name llvmlite cannot make."""
    kind = args[0].type
    signature = ir.FunctionType(kind, [kind] * len(args))
    return builder.call(
        cgutils.get_or_insert_function(builder.module, signature, f"llvm.{name}.v{kind.count}f64"), args
    )


@emit
def truncate(typing: Any, x: Any) -> Any:
    """Float64 lanes rounded toward zero."""
    if not isinstance(x, Lanes) or x.dtype != types.float64:
        return None
    return x(x), lambda context, builder, signature, args: _on_lanes(builder, "trunc", args[0])


@emit
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


@emit
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


@emit
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


@emit
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


@emit
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
    return emit(describe)


low32 = _half(0, "The low halves of uint64 lanes, as uint32 lanes.")
high32 = _half(32, "The high halves of uint64 lanes, as uint32 lanes.")


def _operator(symbol: Callable[[Any, Any], Any], integers: str, floats: str = "") -> None:
    """Give lanes the operator `symbol`, as the LLVM instruction named: for integers, and for floats if there is one."""

    def describe(typing: Any, x: Any, y: Any) -> Any:
        instruction = integers if isinstance(x.dtype, types.Integer) else floats

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, instruction)(args[0], args[1])

        return x(x, y), generate

    emitted = emit(describe)

    def fits(x: Any, y: Any) -> bool:
        return isinstance(x, Lanes) and x == y and (floats != "" or isinstance(x.dtype, types.Integer))

    # lambdas, because numba wants both signatures alike to the letter, annotations included
    overload(symbol)(lambda x, y: (lambda x, y: emitted(x, y)) if fits(x, y) else None)


_operator(operator.add, "add", "fadd")
_operator(operator.sub, "sub", "fsub")
_operator(operator.mul, "mul", "fmul")
_operator(operator.xor, "xor")
_operator(operator.or_, "or_")
_operator(operator.and_, "and_")


@emit
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
        several = isinstance(x, Lanes) and x.dtype == source

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], ir.VectorType(_ELEMENT[target], x.n) if several else _ELEMENT[target])

        return (Lanes(target, x.n)(x) if several else target(source)), generate

    describe.__doc__ = text
    return emit(describe)


bits_of = _reinterpret(types.float64, types.int64, "The 64 bits of a float, or of each lane, as an int64.")
float_of = _reinterpret(types.int64, types.float64, "The float that has these 64 bits, or those of each lane.")


@emit
def fma(typing: Any, x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding, in hardware or in software: the same bits either way."""

    if isinstance(x, Lanes):
        return x(x, y, z), lambda context, builder, signature, args: _on_lanes(builder, "fma", *args)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), generate


@emit
def popcount(typing: Any, x: Any) -> Any:
    """How many bits of a uint64 are set, as an int64."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


# --- memory


def array_at(context: Any, builder: Any, array: Any, data: Any, length: Any) -> Any:
    """A contiguous array of one dimension over memory that somebody else owns."""
    made = context.make_array(array)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(array.dtype))
    item = context.get_constant(types.intp, size)
    arrayobj.populate_array(made, data=data, shape=[length], strides=[item], itemsize=item, meminfo=None)
    return made._getvalue()


@emit
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
        return array_at(context, builder, row, data, builder.extract_value(array.shape, 1))

    return row(rows, types.intp), generate


@emit
def lent(typing: Any, array: Any) -> Any:
    """A contiguous array that pieces may be given without being counted, 5 ns each time: who calls must hold it."""
    if not is_vector(array):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        held = context.make_array(array)(context, builder, args[0])
        return array_at(context, builder, array, held.data, builder.extract_value(held.shape, 0))

    return array(array), generate


@emit
def stack(typing: Any, dtype: Any, n: Any) -> Any:
    """n uninitialised entries on the stack, gone when the calling kernel returns: for small buffers only."""
    if not isinstance(n, types.IntegerLiteral):
        return None
    array = types.Array(dtype.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = cgutils.alloca_once(builder, context.get_data_type(array.dtype), size=n.literal_value)
        data.align = 64
        return array_at(context, builder, array, data, context.get_constant(types.intp, n.literal_value))

    return array(dtype, n), generate
