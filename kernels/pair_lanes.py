"""Lanes of int16 in pairs, for sums of products of 16-bit integers.

A pair is two neighbouring lanes, and an int32 lane in memory. The products of two pairs add up in one int32 lane, which
is one instruction on AVX2 (vpmaddwd) and with AVX-512 one together with the sum (vpdpwssd). They are called by name
where LLVM itself makes them of the plain operations, which other machines get: the integers are the same everywhere, as
int32 wraps in both. Nothing here rounds.
"""

from functools import cache
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils

from .lanes import Lanes, emit

_I16, _I32, _I64 = ir.IntType(16), ir.IntType(32), ir.IntType(64)


def _probe(lanes: int) -> str:
    """Sums of products of so many pairs, in LLVM's words."""
    total, pairs, half = f"<{lanes} x i32>", f"<{2 * lanes} x i16>", f"<{lanes} x i16>"
    parts = []
    for k in (0, 1):
        order = ", ".join(f"i32 {i}" for i in range(k, 2 * lanes, 2))
        for name in "xy":
            parts.append(f"%{name}{k} = shufflevector {pairs} %{name}, {pairs} %{name}, {total} <{order}>")
            parts.append(f"%{name}{k}w = sext {half} %{name}{k} to {total}")
        parts.append(f"%m{k} = mul {total} %x{k}w, %y{k}w")
    parts += [f"%m = add {total} %m0, %m1", f"%sum = add {total} %total, %m", f"ret {total} %sum"]
    return f"define {total} @f({total} %total, {pairs} %x, {pairs} %y) {{\n" + "\n".join(parts) + "\n}"


class _Machine(NamedTuple):
    """How many int32 lanes a register has, and the intrinsic for sums of products of so many, with the sum or alone."""

    lanes: int
    name: str
    with_sum: bool


@cache
def _machine(triple: str, cpu: str, features: str) -> _Machine:
    """What LLVM makes of sums of products on this machine: only what it uses itself can be called without a crash.

    By itself it finds the instruction in some places and not in others, of the same operations: 8 of 20 were vpmulld.
    """
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    for lanes, register, products in _REGISTERS:
        module = llvm.parse_assembly(f'target triple = "{triple}"\n{_probe(lanes)}')
        wide = [line for line in machine.emit_assembly(module).splitlines() if register in line]
        if lanes == 16 and any("vpdpwssd" in line for line in wide):
            return _Machine(lanes, "llvm.x86.avx512.vpdpwssd.512", True)
        if any("pmaddwd" in line or "vpdpwssd" in line for line in wide):
            return _Machine(lanes, products, False)
    return _Machine(4, "", False)


_REGISTERS = (
    (16, "%zmm", "llvm.x86.avx512.pmaddw.d.512"),
    (8, "%ymm", "llvm.x86.avx2.pmadd.wd"),
    (4, "%xmm", "llvm.x86.sse2.pmadd.wd"),
)


def _machine_of(context: Any) -> _Machine:
    return _machine(*context.codegen().magic_tuple())


class _Freeze(ir.Instruction):  # type: ignore[misc]
    """LLVM's freeze, which the optimiser does not look through: otherwise it takes the sum of two products apart."""

    def __init__(self, parent: Any, value: Any) -> None:
        super().__init__(parent, value.type, "freeze", [value])


def _frozen(builder: Any, value: Any) -> Any:
    made = _Freeze(builder.block, value)
    builder._insert(made)
    return made


def _shuffled(builder: Any, x: Any, y: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(x, y, ir.Constant(ir.VectorType(_I32, len(order)), order))


def _every_other(builder: Any, x: Any, first: int) -> Any:
    return _shuffled(builder, x, x, list(range(first, x.type.count, 2)))


def _by_registers(context: Any, builder: Any, function: Any, x: Any, y: Any) -> Any:
    """function(x, y), made of parts that fill a register each."""
    size = min(x.type.count, 2 * _machine_of(context).lanes)
    parts = []
    for start in range(0, x.type.count, size):
        lanes = list(range(start, start + size))
        parts.append(function(*(_shuffled(builder, some, some, lanes) for some in (x, y))))
    return _joined(builder, parts)


def _joined(builder: Any, parts: list[Any]) -> Any:
    while len(parts) > 1:
        both = list(range(2 * parts[0].type.count))
        parts = [_shuffled(builder, a, b, both) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _is_pairs(x: Any) -> bool:
    return isinstance(x, Lanes) and x.dtype == types.int16


@emit
def add_products(typing: Any, total: Any, x: Any, y: Any) -> Any:
    """int32 lanes plus, in each, the two products of a pair of x and a pair of y."""
    if not _is_pairs(x) or x != y or total != Lanes(types.int32, x.n // 2):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        machine = _machine_of(context)

        def products(*some: Any) -> Any:
            """Of what fills a register; before them the sum so far, where the instruction adds to it."""
            wide = some[0].type if machine.with_sum else ir.VectorType(_I32, some[0].type.count // 2)
            if machine.name:
                kinds = [each.type for each in some]
                if machine.with_sum:  # which takes pairs as int32
                    some, kinds = (some[0], *(builder.bitcast(each, wide) for each in some[1:])), [wide] * 3
                made = cgutils.get_or_insert_function(builder.module, ir.FunctionType(wide, kinds), machine.name)
                return builder.call(made, some)
            first, second = (
                [
                    builder.sext(_shuffled(builder, each, each, list(range(k, each.type.count, 2))), wide)
                    for each in some
                ]
                for k in (0, 1)
            )
            return builder.add(builder.mul(*first), builder.mul(*second))

        if machine.with_sum and args[0].type.count == machine.lanes:
            return products(*args)
        if machine.with_sum:
            raise NotImplementedError("sums of products: must fill a register")
        return builder.add(args[0], _by_registers(context, builder, products, *args[1:]))

    return total(total, x, y), generate


@emit
def load_pairs(typing: Any, array: Any, start: Any, n: Any) -> Any:
    """n pairs from array[start] on, of a contiguous array of int16, or of int32 that hold a pair each."""
    if not isinstance(n, types.IntegerLiteral) or getattr(array, "dtype", None) not in (types.int16, types.int32):
        return None
    result = Lanes(types.int16, 2 * n.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        size = min(result.n, 2 * _machine_of(context).lanes)
        first = builder.gep(context.make_array(array)(context, builder, args[0]).data, [args[1]])
        first = builder.bitcast(first, ir.VectorType(_I16, size).as_pointer())
        parts = []
        for k in range(result.n // size):  # LLVM finds no instruction for parts of what was loaded as one
            part = builder.load(builder.gep(first, [ir.Constant(_I64, k)]))
            part.align = context.get_abi_sizeof(context.get_data_type(array.dtype))
            parts.append(part)
        return _joined(builder, parts)

    return result(array, types.intp, n), generate


@emit
def splat_pair(typing: Any, array: Any, at: Any, n: Any) -> Any:
    """n pairs that all are array[at], of a contiguous array of int32."""
    if not isinstance(n, types.IntegerLiteral) or getattr(array, "dtype", None) != types.int32:
        return None
    result = Lanes(types.int16, 2 * n.literal_value)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.gep(context.make_array(array)(context, builder, args[0]).data, [args[1]])
        none = ir.Constant(ir.VectorType(_I32, n.literal_value), ir.Undefined)
        one = builder.insert_element(none, builder.load(place), ir.Constant(_I32, 0))
        every = _shuffled(builder, one, none, [0] * n.literal_value)
        return builder.bitcast(every, ir.VectorType(_I16, result.n))

    return result(array, types.intp, n), generate


def _pick(first: int, text: str) -> Any:
    def describe(typing: Any, x: Any, y: Any) -> Any:
        if not _is_pairs(x) or x != y:
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def pick(x: Any, y: Any) -> Any:
                order = [k for i in range(first, x.type.count, 2) for k in (i, x.type.count + i)]
                return _frozen(builder, _shuffled(builder, x, y, order))

            return _by_registers(context, builder, pick, *args)

        return x(x, y), generate

    describe.__doc__ = text
    return emit(describe)


first_of_pairs = _pick(0, "The first of each pair of x, and the first of that of y, as pairs.")
second_of_pairs = _pick(1, "The second of each pair of x, and the second of that of y, as pairs.")


@emit
def fold(typing: Any, x: Any) -> Any:
    """The two halves of int32 lanes, widened to int64 and added."""
    if not isinstance(x, Lanes) or x.dtype != types.int32:
        return None
    result = Lanes(types.int64, x.n // 2)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def half(first: int) -> Any:
            some = _shuffled(builder, args[0], args[0], list(range(first, first + result.n)))
            return builder.sext(some, ir.VectorType(_I64, result.n))

        return builder.add(half(0), half(result.n))

    return result(x), generate


@emit
def pair_middles(typing: Any, x: Any, y: Any) -> Any:
    """Bits 16 to 31 of int64 lanes of x and of y, as the first and the second of pairs, which are int32 lanes."""
    if not isinstance(x, Lanes) or x.dtype != types.int64 or x != y:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        def every(value: int) -> Any:
            return ir.Constant(args[0].type, [value] * x.n)

        first = builder.and_(builder.lshr(args[0], every(16)), every(0xFFFF))
        return builder.trunc(builder.or_(first, builder.and_(args[1], every(0xFFFF0000))), ir.VectorType(_I32, x.n))

    return Lanes(types.int32, x.n)(x, y), generate


@emit
def sum_four(typing: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """The 4 sums of 16 int32 lanes each, as int64 lanes."""
    if a != Lanes(types.int32, 16) or not a == b == c == d:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.VectorType(_I64, 8)
        half = ir.Constant(wide, [32] * 8)

        def add(x: Any, y: Any, first: list[int], second: list[int]) -> Any:
            return builder.add(_shuffled(builder, x, y, first), _shuffled(builder, x, y, second))

        parts = []
        for each in args:
            pairs = builder.bitcast(each, wide)
            parts.append(builder.add(builder.ashr(builder.shl(pairs, half), half), builder.ashr(pairs, half)))
        both = [add(x, y, [0, 8, 2, 10, 4, 12, 6, 14], [1, 9, 3, 11, 5, 13, 7, 15]) for x, y in (parts[:2], parts[2:])]
        every = add(both[0], both[1], [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15])
        return add(every, every, [0, 1, 4, 5], [2, 3, 6, 7])

    return Lanes(types.int64, 4)(a, b, c, d), generate


@emit
def register_lanes(typing: Any) -> Any:
    """How many int32 lanes a register has, a constant of the machine."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return ir.Constant(_I64, _machine_of(context).lanes)

    return types.int64(), generate


@emit
def transpose_into(typing: Any, rows: Any, start: Any, wide: Any, out: Any) -> Any:
    """out[16 k + i] = rows[start + i wide + k] for i and k below 16, of contiguous arrays of int32."""
    if any(getattr(array, "dtype", None) != types.int32 for array in (rows, out)):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        sixteen = ir.VectorType(_I32, 16)

        def place(array: Any, which: int, at: Any) -> Any:
            data = context.make_array(array)(context, builder, args[which]).data
            return builder.bitcast(builder.gep(data, [at]), sixteen.as_pointer())

        lanes = []
        for i in range(16):
            loaded = builder.load(place(rows, 0, builder.add(args[1], builder.mul(args[2], ir.Constant(_I64, i)))))
            loaded.align = 4
            lanes.append(loaded)
        apart = 8
        while apart:  # lane i of vector k and lane i + apart of vector k + apart change places, and so on by halves
            turned = list(lanes)
            for k in range(16):
                if not k & apart:
                    x, y = lanes[k], lanes[k + apart]
                    first = [i if not i & apart else 16 + i - apart for i in range(16)]
                    second = [i + apart if not i & apart else 16 + i for i in range(16)]
                    turned[k], turned[k + apart] = _shuffled(builder, x, y, first), _shuffled(builder, x, y, second)
            lanes = turned
            apart //= 2
        for k in range(16):
            stored = builder.store(lanes[k], place(out, 3, ir.Constant(_I64, 16 * k)))
            stored.align = 4
        return context.get_dummy_value()

    return types.void(rows, types.intp, types.intp, out), generate
