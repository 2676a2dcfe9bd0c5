"""Numbers that may be int64 or float64, so that one kernel serves both: differences, halves, and their order.

The types are known when a kernel is compiled; each piece becomes the instructions of its type.
"""

from typing import Any

from numba import types

from .lanes import emit


@emit
def gap(typing: Any, top: Any, x: Any) -> Any:
    """top - x for top >= x, as a float64: the difference, rounded once. For integers it may be as large as 2^64 - 1."""
    if top != x or top not in (types.int64, types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if top == types.float64:
            return builder.fsub(*args)
        # a uint64 as a float64 by its halves, like elementary.from_uint64: there is no vector cast before AVX-512
        integer, number = context.get_value_type(types.int64), context.get_value_type(types.float64)
        k = builder.sub(*args)
        high = builder.or_(builder.lshr(k, integer(32)), integer(0x4530000000000000))
        low = builder.or_(builder.and_(k, integer(0xFFFFFFFF)), integer(0x4330000000000000))
        shifted = builder.fsub(builder.bitcast(high, number), number(19342813118337666422669312.0))
        return builder.fadd(shifted, builder.bitcast(low, number))

    return types.float64(top, x), generate


@emit
def part(typing: Any, x: Any, k: Any) -> Any:
    """x / 2^k for k from 0 to 63: floats by their exact factor, integers rounded down."""
    if x not in (types.int64, types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if x == types.int64:
            return builder.ashr(*args)
        integer = context.get_value_type(types.int64)
        exponent = builder.shl(builder.sub(integer(1023), args[1]), integer(52))
        return builder.fmul(args[0], builder.bitcast(exponent, context.get_value_type(types.float64)))

    return x(x, types.int64), generate


_LOWEST_NAN = 2**52 - 1  # ranks of floats are moved down by this, so that those of negative NaN wrap to the top


def _ordered(builder: Any, bits: Any) -> Any:
    """The bits of a float as an integer of the same order, and back."""
    return builder.xor(bits, builder.and_(builder.ashr(bits, bits.type(63)), bits.type(2**63 - 1)))


@emit
def rank_of(typing: Any, x: Any) -> Any:
    """An int64 that orders numbers as they are ordered; a NaN of either sign ranks at or above +inf."""
    if x == types.int64:
        return types.int64(x), lambda context, builder, signature, args: args[0]
    if x != types.float64:
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = context.get_value_type(types.int64)
        return builder.sub(_ordered(builder, builder.bitcast(args[0], integer)), integer(_LOWEST_NAN))

    return types.int64(x), generate


@emit
def of_rank(typing: Any, rank: Any, like: Any) -> Any:
    """The number of this rank; `like` is of its type."""
    if rank != types.int64 or like not in (types.int64, types.float64):
        return None

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if like == types.int64:
            return args[0]
        bits = _ordered(builder, builder.add(args[0], args[0].type(_LOWEST_NAN)))
        return builder.bitcast(bits, context.get_value_type(types.float64))

    return like(rank, like), generate
