"""The discrete Gaussian sampler: exact draws by certified acceptance.

A magnitude is proposed by inverting a flat body and a geometric tail, accepted or not, and given its sign. Proposals
are made in batches that stay in the L1 cache; kernels/noise.py adds what is accepted to arrays. What a draw costs does
not, up to the rare second and third levels, depend on what is drawn.
"""

from typing import Any

import numpy as np

from . import layout
from .arrays import seen_as
from .compile import jit
from .draw_bits import (
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
from .elementary import (
    add_pairs,
    exp_one,
    exp_rough,
    from_uint52,
    from_uint64,
    ln_one,
    ln_pair,
    multiply_pairs,
    power_above_inverse,
)
from .lanes import F64Array, U16Array, U32Array, U64Array, float64, fma, int64, stack, uint64
from .layout import (
    COIN_BITS,
    COIN_MORE_STREAM,
    GAUSSIAN_BATCH,
    MEDIUM_EXTRA,
    PROPOSALS,
    SHORT_BITS,
    U_MORE_STREAM,
    UNDECIDED,
    U,
)
from .words import word_one


def propose_with(prefix: Any, to_float: Any) -> Any:
    """The proposal kernel for one kind of prefix."""

    @jit
    def propose_into(halves: U32Array, more: Any, unit: float, law: F64Array, out: F64Array) -> int:
        """Magnitudes proposed for the Gaussian, from the first bits of U; NaN where they do not decide it.

        Shapes    halves and more as `prefix` takes them, law float64[15], out float64[n]
        Cost      O(n), about 0.7 ns an entry with AVX-512
        Source    fastdp/mechanisms/noise.md, lemma 4
        Requires  unit = 2^-bits
        Returns   how many are NaN
        Used by   noise
        Oracle    tests/oracles/exact_draws.py::gaussian_magnitude_from_uniform
        """
        tail, start, tail_mass = law[layout.TAIL], law[layout.START], law[layout.TAIL_MASS]
        error, gap = law[layout.ERROR], law[layout.ERROR_OF_CELL]
        top = law[layout.BODY] + tail_mass
        step = law[layout.MASS] * unit
        count = 0
        for i in range(out.size):
            k = to_float(prefix(halves, more, i))
            u = k + 0.5
            r = u * step
            y = fma(-tail, ln_one(u * unit), start) if r < tail_mass else top - r
            floor = np.floor(y)
            undecided = is_open(y, floor, fma(gap, power_above_inverse(k), fma(3 * U, y, error)))
            count += undecided
            out[i] = UNDECIDED if undecided else floor
        return count

    return propose_into


propose_short_into = propose_with(short_prefix, from_uint52)
propose_medium_into = propose_with(medium_prefix, from_uint52)
propose_long_into = propose_with(long_prefix, from_uint64)


@jit(inline=True)
def distance(magnitude: float, law: F64Array) -> float:
    """-ln of the acceptance probability of a proposed magnitude, at most 700."""
    d = magnitude - (law[layout.PEAK] if magnitude >= law[layout.BODY] else 0.0)
    return min(d * d * law[layout.CURVATURE], 700.0)


@jit
def accept_into(halves: U32Array, coins: U16Array, law: F64Array, out: F64Array, kept: U64Array) -> int:
    """Accept or reject the magnitudes in `out` and give them their signs; NaN where the coins do not decide it.

    Shapes    halves uint32[n], coins uint16[n], law float64[15], out float64[n], kept uint64[n]
    Cost      O(n), about 0.6 ns an entry with AVX-512
    Source    fastdp/mechanisms/noise.md, lemma 5
    Requires  the plan of fastdp/randomness/noise_plans.py
    Returns   how many are NaN, those that came as NaN included
    Used by   noise
    Oracle    tests/oracles/exact_draws.py::gaussian_accepts
    """
    body, peak, curvature = law[layout.BODY], law[layout.PEAK], law[layout.CURVATURE]
    slack = 0.5 * 2.0**-COIN_BITS + law[layout.COIN_ERROR]
    count = 0
    for i in range(out.size):
        magnitude = out[i]
        coin = (from_uint52(uint64(coins[i])) + 0.5) * 2.0**-COIN_BITS
        d = magnitude - (peak if magnitude >= body else 0.0)
        h = d * d * curvature
        lead = exp_rough(-(h if h < 700.0 else 700.0)) - coin
        undecided = not (abs(lead) > slack and magnitude >= 0.0)
        count += undecided
        out[i] = UNDECIDED if undecided else with_sign(magnitude, uint64(halves[i]) & uint64(1))
        kept[i] = lead > 0.0
    return count


@jit
def propose_pair(prefix: int, bits: int, more: int, law: F64Array) -> float:
    """The magnitude proposed by `bits` + 52 bits, in double-double, or NaN.

    Shapes    prefix, more uint64; law float64[15]
    Cost      about that of ln_pair: 0.1 us
    Source    fastdp/mechanisms/noise.md, lemma 4
    Requires  the plan of fastdp/randomness/noise_plans.py
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    if prefix == uint64(0) and more >> uint64(12) == uint64(0):
        return UNDECIDED
    tail, mass = law[layout.TAIL], law[layout.MASS]
    x, x_low = uniform_pair(prefix, more)
    gap = 2.0**-52 * (tail + mass) / x
    unit = 2.0**-bits
    x, x_low = x * unit, x_low * unit
    r, r_low = multiply_pairs(x, x_low, mass, law[layout.MASS_LOW])
    r, r_low = add_pairs(law[layout.TAIL_MASS], law[layout.TAIL_MASS_LOW], -r, -r_low)
    log = 0.0
    if r > 0.0:
        log, log_low = ln_pair(x, x_low)
        y, y_low = multiply_pairs(log, log_low, -tail, 0.0)
        y, y_low = add_pairs(y, y_low, law[layout.START], law[layout.START_LOW])
    else:
        y, y_low = add_pairs(law[layout.BODY], 0.0, r, r_low)
    return floor_pair(y, y_low, gap + law[layout.ERROR_PAIR] * (1.0 - log))


@jit
def resolve_proposal(key: U32Array, at: int, prefix: int, bits: int, sign: int, coin: int, law: F64Array) -> float:
    """The signed draw of one proposal, on 52 bits of U more and 36 of its coin; infinity if rejected, NaN if open.

    Shapes    key uint32[8]; at, prefix, coin uint64; law float64[15]
    Cost      two words by themselves, 0.15 us each, and ln_pair
    Source    fastdp/mechanisms/noise.md, lemma 5
    Requires  the plan of fastdp/randomness/noise_plans.py
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    magnitude = propose_pair(prefix, bits, word_one(key, uint64(U_MORE_STREAM), at), law)
    more = float64(word_one(key, uint64(COIN_MORE_STREAM), at) >> uint64(28))
    v = (float64(coin) + (more + 0.5) * 2.0**-36) * 2.0**-COIN_BITS
    lead = exp_one(-distance(magnitude, law)) - v
    if np.isnan(magnitude) or abs(lead) <= law[layout.COIN_ERROR_PAIR]:
        return UNDECIDED
    return with_sign(magnitude, sign) if lead > 0.0 else np.inf


@jit
def gaussian_block_into(key: U32Array, block: int, extra: int, law: F64Array, need: int, out: F64Array) -> bool:
    """The first `need` accepted proposals of a block; false if one of them could not be decided.

    Shapes    law float64[15], out float64[2720]: the last batch may accept more than are needed
    Cost      most of that of add_gaussian_into
    Source    fastdp/mechanisms/noise.md, theorem 2
    Requires  need <= 2,208; the plan of fastdp/randomness/noise_plans.py
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    halves, more = stack(np.uint32, GAUSSIAN_BATCH), stack(np.uint32, GAUSSIAN_BATCH)
    coin_words = stack(np.uint32, GAUSSIAN_BATCH)
    coins = seen_as(coin_words, np.uint16)
    z, kept = stack(np.float64, GAUSSIAN_BATCH), stack(np.uint64, GAUSSIAN_BATCH)
    bits = SHORT_BITS + extra
    unit = 2.0**-bits
    done = 0
    at = uint64(block) * uint64(PROPOSALS)
    while done < need:
        fill_words_into(key, at, GAUSSIAN_BATCH, extra, 3, halves, more, coin_words)
        if extra == 0:
            propose_short_into(halves, more, unit, law, z)
        elif extra == MEDIUM_EXTRA:
            propose_medium_into(halves, seen_as(more, np.uint16), unit, law, z)
        else:
            propose_long_into(halves, more, unit, law, z)
        if accept_into(halves, coins, law, z, kept):
            for i in range(GAUSSIAN_BATCH):
                if np.isnan(z[i]):
                    prefix, sign = prefix_one(halves, more, extra, i), uint64(halves[i]) & uint64(1)
                    draw = resolve_proposal(key, at + uint64(i), prefix, bits, sign, uint64(coins[i]), law)
                    if np.isnan(draw):
                        return False
                    z[i] = draw
                    kept[i] = uint64(draw < np.inf)
        for i in range(GAUSSIAN_BATCH):
            out[done] = z[i]
            done += int64(kept[i])
        at += uint64(GAUSSIAN_BATCH)
    return True
