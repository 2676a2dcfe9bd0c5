"""The discrete Laplace sampler: exact draws by certified inversion, floor(offset - scale ln U) with a sign.

Draws are made in blocks that stay in the L1 cache: words, then signed draws as integer-valued float64 with NaN for "not
decided yet". kernels/noise.py adds them to arrays. What a draw costs does not, up to the rare second and third levels,
depend on what is drawn.
"""

from typing import Any

import numpy as np

from . import layout
from .arrays import seen_as
from .compile import jit
from .draw_bits import (
    continued_prefix,
    count_nan,
    fill_words_into,
    floor_pair,
    is_open,
    long_prefix,
    medium_prefix,
    prefix_one,
    short_prefix,
    uniform_pair,
    with_sign,
)
from .elementary import add_pairs, from_uint52, from_uint64, ln_one, ln_pair, multiply_pairs, power_above_inverse
from .lanes import F64Array, U32Array, fma, int64, stack, uint64
from .layout import GROUP_HALVES, LAPLACE_BLOCK, MEDIUM_EXTRA, SHORT_BITS, U_MORE_STREAM, U_STREAM, UNDECIDED, U
from .words import GROUP, fill_half_into, word_one

SHORT_CALL = GROUP // 2  # 64 draws: up to here one escalation would show in the time of a call


def invert_with(prefix: Any, to_float: Any) -> Any:
    """The inversion kernel for one kind of prefix. (One that took `prefix` as an argument could not be cached.)"""

    @jit
    def invert_into(
        halves: U32Array, more: Any, unit: float, scale: float, offset: float, error: float, out: F64Array
    ) -> int:
        """floor(offset - scale ln U) with its sign, from the first bits of U; NaN where they do not decide it.

        Shapes    halves and more as `prefix` takes them, out float64[n]
        Cost      O(n), about 0.7 ns an entry with AVX-512
        Source    fastdp/mechanisms/noise.md, lemma 2
        Requires  2^-20 <= scale <= 2^40, 0 <= offset <= scale, error >= U (5 scale + 2), unit = 2^-bits
        Returns   how many are NaN
        Used by   laplace_block_into
        Oracle    tests/oracles/exact_draws.py::laplace_from_uniform
        """
        count = 0
        gap = 0.625 * scale
        for i in range(out.size):
            k = to_float(prefix(halves, more, i))
            y = fma(-scale, ln_one((k + 0.5) * unit), offset)
            floor = np.floor(y)
            undecided = is_open(y, floor, fma(gap, power_above_inverse(k), fma(3 * U, y, error)))
            count += undecided
            out[i] = UNDECIDED if undecided else with_sign(floor, uint64(halves[i]) & uint64(1))
        return count

    return invert_into


invert_short_into = invert_with(short_prefix, from_uint52)
invert_medium_into = invert_with(medium_prefix, from_uint52)
invert_long_into = invert_with(long_prefix, from_uint64)
invert_continued_into = invert_with(continued_prefix, from_uint64)


@jit
def invert_pair(prefix: int, bits: int, more: int, law: F64Array) -> float:
    """floor(offset - scale ln U) from `bits` + 52 bits of U in double-double, or NaN.

    Shapes    prefix, more uint64; law float64[5]
    Cost      about that of ln_pair: 0.1 us
    Source    fastdp/mechanisms/noise.md, lemma 3
    Requires  the plan of fastdp/randomness/noise_plans.py
    Used by   laplace_block_into
    Oracle    fastdp/randomness/exact_draws.py
    """
    if prefix == uint64(0) and more >> uint64(12) == uint64(0):
        return UNDECIDED
    scale = law[layout.LAPLACE_SCALE]
    x, x_low = uniform_pair(prefix, more)
    gap = 0.75 * 2.0**-52 * scale / x
    unit = 2.0**-bits
    log, log_low = ln_pair(x * unit, x_low * unit)
    y, y_low = multiply_pairs(log, log_low, -scale, 0.0)
    y, y_low = add_pairs(y, y_low, law[layout.LAPLACE_OFFSET], law[layout.LAPLACE_OFFSET_LOW])
    return floor_pair(y, y_low, gap + law[layout.LAPLACE_ERROR_PAIR] * (1.0 - log))


@jit
def laplace_block_into(key: U32Array, block: int, extra: int, law: F64Array, out: F64Array) -> int:
    """One block of draws, NaN where 52 bits more do not decide either.

    Shapes    key uint32[8]; law float64[5]; out float64[n], n <= 1,024
    Cost      most of that of add_laplace_into
    Source    fastdp/mechanisms/noise.md, theorem 1
    Requires  the plan of fastdp/randomness/noise_plans.py
    Returns   how many are NaN
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    n = out.size
    halves, more = stack(np.uint32, LAPLACE_BLOCK), stack(np.uint32, LAPLACE_BLOCK)
    first = uint64(block) * uint64(LAPLACE_BLOCK)
    short = extra == 0 and n <= SHORT_CALL
    if short:
        fill_half_into(key, uint64(U_STREAM), first // uint64(GROUP_HALVES), halves[: GROUP_HALVES // 2])
    else:
        fill_words_into(key, first, n, extra, 2, halves, more, more)
    bits = SHORT_BITS + extra
    unit = 2.0**-bits
    scale, offset, error = law[layout.LAPLACE_SCALE], law[layout.LAPLACE_OFFSET], law[layout.LAPLACE_ERROR]
    if short:
        # as many bits of each draw as a float takes: one such call in 2^28 needs more, and has a time that shows it
        continued = stack(np.uint64, SHORT_CALL)
        fill_half_into(key, uint64(U_MORE_STREAM), first // uint64(GROUP), seen_as(continued, np.uint32))
        count = invert_continued_into(halves, continued, 2.0**-63, scale, offset, error, out)
    elif extra == 0:
        count = invert_short_into(halves, more, unit, scale, offset, error, out)
    elif extra == MEDIUM_EXTRA:
        count = invert_medium_into(halves, seen_as(more, np.uint16), unit, scale, offset, error, out)
    else:
        count = invert_long_into(halves, more, unit, scale, offset, error, out)
    if count == 0:
        if n > SHORT_CALL or short:
            return 0
        # a short call takes one second level in any case, so that its time does not show whether one was needed
        beyond = word_one(key, uint64(U_MORE_STREAM), first)
        idle = invert_pair(prefix_one(halves, more, extra, 0), bits, beyond, law)
        return int64(idle < -1.0)  # 0, which the compiler does not know
    count = 0
    for start in range(0, n, 64):
        stop = min(start + 64, n)
        if count_nan(out[start:stop]) == 0:
            continue
        for i in range(start, stop):
            if np.isnan(out[i]):
                beyond = word_one(key, uint64(U_MORE_STREAM), first + uint64(i))
                draw = invert_pair(prefix_one(halves, more, extra, i), bits, beyond, law)
                out[i] = with_sign(draw, uint64(halves[i]) & uint64(1))
                count += np.isnan(draw)
    return count
