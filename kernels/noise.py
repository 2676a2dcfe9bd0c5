"""Exact discrete noise: geometric and Laplace by certified inversion, Gaussian by certified acceptance.

A draw is first taken in float64 on a prefix of its random bits. Where the proven error bound does not decide it, it
is taken again in double-double on 52 bits more (the `_pair` pieces); what even that leaves open is reported to the
caller, who settles it in integers (fastdp/randomness/exact_draws.py, which is also the definition of every draw).
fastdp/mechanisms/noise.md
proves the bounds.

Loops work on blocks that stay in the L1 cache: words, then signed draws as integer-valued float64 with NaN for "not
decided yet", then the addition. A loop that may write where it reads would be compiled with an overlap check and run
scalar in place (1.6 against 5.9 ns an entry): hence the buffer between noise and addition.

What a draw costs does not depend on the values, and, up to the rare second and third levels, not on what is drawn.
"""

from typing import Any

import numpy as np

from .chacha20 import GROUP_HALVES, fill_groups_into, word_one
from .compile import jit
from .elementary import (
    U,
    add_pairs,
    exp_one,
    exp_rough,
    from_uint52,
    from_uint64,
    ln_one,
    ln_pair,
    multiply_pairs,
    power_above_inverse,
    to_integer,
    two_sum,
)
from .lanes import (
    F64Array,
    I64Array,
    U16Array,
    U32Array,
    U64Array,
    bits_of,
    float64,
    float_of,
    fma,
    int64,
    stack,
    uint64,
)

LAPLACE_BLOCK = 1024  # draws that share the buffers
SHORT_CALL = 64  # draws: up to here one escalation would show in the time of a call
BATCH = 512  # Gaussian proposals made at a time
GAUSSIAN_BLOCK = 2208  # draws that share a run of proposals: 5 batches, nearly always
GAUSSIAN_ROOM = GAUSSIAN_BLOCK + BATCH  # the last batch may accept more than are needed
PROPOSALS = 1 << 20  # proposals of a block, as far as words are set aside: 2,560 are needed

# Which words are the bits of a draw: fastdp/mechanisms/noise.md, "Bits".
SHORT_BITS, MEDIUM_EXTRA, LONG_EXTRA, COIN_BITS = 31, 16, 32, 16
U_STREAM, U_EXTRA_STREAM, COIN_STREAM, U_MORE_STREAM, COIN_MORE_STREAM = 0, 1, 2, 3, 4

_NAN = float("nan")
_MAX = 0x7FFFFFFFFFFFFFFF


# --- pieces shared by all noise


@jit(inline=True)
def is_open(y: float, floor: float, error: float) -> bool:
    """Whether floor(y') may differ from floor(y) for some y' within `error` of y."""
    return abs(y - floor - 0.5) > 0.5 - error


@jit(inline=True)
def with_sign(magnitude: float, sign: int) -> float:
    """magnitude, negated if the lowest bit of `sign` is set."""
    return float_of(bits_of(magnitude) | int64(sign << uint64(63)))


@jit
def add_integers_into(values: I64Array, noise: F64Array, out: I64Array) -> None:
    """out = values + noise, held inside int64: a function of the exact sum.

    Shapes    values int64[n], noise float64[n] of integers below 2^51 (overwritten), out int64[n] (may be values)
    Cost      one pass, in two loops that vectorise
    Used by   noise
    Oracle    Python's integers
    """
    for i in range(values.size):
        z = to_integer(noise[i])
        total = values[i] + z
        wrapped = (values[i] ^ total) & (z ^ total)
        noise[i] = float_of(total if wrapped >= 0 else (values[i] >> int64(63)) ^ int64(_MAX))
    for i in range(values.size):
        out[i] = bits_of(noise[i])


@jit
def add_on_grid_into(values: F64Array, grid: float, noise: F64Array, out: F64Array) -> None:
    """out = grid (k + noise), k = values / grid to the nearest integer, rounded once.

    A value of 2^52 grid units and more is a multiple of the grid already. No -0.0 leaves here: its sign would tell.

    Shapes    values float64[n], noise float64[n] of integers below 2^53 (overwritten), out float64[n] (may be values)
    Cost      one pass, in two loops that vectorise
    Requires  grid a power of two with a finite inverse
    Used by   noise
    Oracle    fractions
    """
    cells = 1.0 / grid
    for i in range(values.size):
        # what is below a quarter of the grid rounds to 0 anyway, and its product may be subnormal, which takes longer
        k = (values[i] if abs(values[i]) >= 0.25 * grid else 0.0) * cells
        noise[i] = ((np.rint(k) * grid if abs(k) < 4503599627370496.0 else values[i]) + 0.0) + noise[i] * grid
    for i in range(values.size):
        out[i] = noise[i]


@jit
def count_nan(values: F64Array) -> int:
    """How many entries are NaN: a loop that vectorises, to find the stretches that need a closer look.

    Shapes    values float64[n]
    Cost      at memory speed
    Used by   noise
    Oracle    numpy
    """
    count = 0
    for i in range(values.size):
        count += np.isnan(values[i])
    return count


@jit
def uniform_pair(prefix: int, more: int) -> tuple[float, float]:
    """prefix + (m + 1/2) 2^-52 as a double-double, m the first 52 bits of `more`; within a relative 2^-104.

    Shapes    prefix, more uint64; a double-double is returned
    Cost      a dozen operations
    Source    fastdp/mechanisms/noise.md, lemma 3
    Used by   noise
    Oracle    fractions
    """
    high, low = two_sum(float64(prefix >> uint64(32)) * 4294967296.0, float64(prefix & uint64(0xFFFFFFFF)))
    return add_pairs(high, low, (float64(more >> uint64(12)) + 0.5) * 2.0**-52, 0.0)


@jit
def floor_pair(y: float, y_low: float, error: float) -> float:
    """floor(y + y_low) if every number within `error` has the same floor, else NaN.

    Shapes    y + y_low a double-double
    Cost      a dozen operations
    Source    fastdp/mechanisms/noise.md, lemma 3
    Requires  error below 1/4, |y| below 2^52
    Used by   noise
    Oracle    fractions
    """
    floor = np.floor(y)
    rest = (y - floor) + y_low  # rounded, which the 2^-51 pays for
    error += 2.0**-51
    if rest < 0.0:
        floor -= 1.0
        rest += 1.0
    return _NAN if rest < error or rest > 1.0 - error else floor


# --- the first bits of U: 31 of a 32-bit word, and 16 or 32 more where the scale asks for them


@jit(inline=True)
def short_prefix(halves: U32Array, more: U32Array, i: int) -> int:
    """31 bits of U."""
    return uint64(halves[i]) >> uint64(1)


@jit(inline=True)
def medium_prefix(halves: U32Array, more: U16Array, i: int) -> int:
    """47 bits of U."""
    return (uint64(halves[i]) >> uint64(1)) << uint64(MEDIUM_EXTRA) | uint64(more[i])


@jit(inline=True)
def long_prefix(halves: U32Array, more: U32Array, i: int) -> int:
    """63 bits of U."""
    return (uint64(halves[i]) >> uint64(1)) << uint64(LONG_EXTRA) | uint64(more[i])


@jit
def prefix_one(halves: U32Array, more: U32Array, extra: int, i: int) -> int:
    """The first 31 + extra bits of U of draw i, from the buffers as `fill_words_into` leaves them.

    Shapes    halves, more uint32[1024] as fill_words_into leaves them
    Cost      a dozen operations
    Requires  extra 0, 16 or 32
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    if extra == 0:
        return short_prefix(halves, more, i)
    if extra == MEDIUM_EXTRA:
        return medium_prefix(halves, more.view(np.uint16), i)
    return long_prefix(halves, more, i)


@jit
def fill_words_into(
    key: U32Array, first: int, n: int, extra: int, streams: int, halves: U32Array, more: U32Array, coins: U32Array
) -> None:
    """The words of draws first .. first + n - 1: stream 0 to `halves`, 1 to `more`, 2 (of 3 streams) to `coins`.

    Shapes    key uint32[8]; halves, more, coins uint32[1024], of which as much is written as n draws take
    Cost      that of its words
    Source    fastdp/mechanisms/noise.md, Bits
    Requires  first a multiple of 1,024 or, with three streams, of 512; n at most as much; extra 0, 16 or 32
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    for stream in range(streams):
        target, width = halves, 32
        if stream == U_EXTRA_STREAM:
            target, width = more, extra or 32
        elif stream == COIN_STREAM:
            target, width = coins, COIN_BITS
        per_group = 32 * GROUP_HALVES // width
        used = -(-n // per_group) * GROUP_HALVES
        if stream != U_EXTRA_STREAM or extra:
            fill_groups_into(key, uint64(stream), uint64(first) // uint64(per_group), target[:used])


# --- geometric and Laplace: floor(offset - scale ln U), with a sign or without


def invert_with(prefix: Any, to_float: Any) -> Any:
    """The inversion kernel for one kind of prefix. (One that took `prefix` as an argument could not be cached.)"""

    @jit
    def invert_into(
        halves: U32Array,
        more: Any,
        unit: float,
        scale: float,
        offset: float,
        fixed: float,
        signs: int,
        out: F64Array,
    ) -> int:
        """floor(offset - scale ln U) from the first bits of U, NaN where they do not decide it.

        Shapes    halves and more as `prefix` takes them, out float64[n]
        Cost      O(n), about 0.7 ns an entry with AVX-512
        Source    fastdp/mechanisms/noise.md, lemma 2
        Requires  2^-20 <= scale <= 2^40, 0 <= offset <= scale, fixed >= U (5 scale + 2), unit = 2^-bits;
                  signs 1, or 0 for no sign
        Returns   how many are NaN
        Used by   noise
        Oracle    tests/reference.py::laplace_from_uniform
        """
        count = 0
        gap = 0.625 * scale
        for i in range(out.size):
            k = to_float(prefix(halves, more, i))
            y = fma(-scale, ln_one((k + 0.5) * unit), offset)
            floor = np.floor(y)
            undecided = is_open(y, floor, fma(gap, power_above_inverse(k), fma(3 * U, y, fixed)))
            count += undecided
            out[i] = _NAN if undecided else with_sign(floor, uint64(halves[i]) & signs)
        return count

    return invert_into


invert_short_into = invert_with(short_prefix, from_uint52)
invert_medium_into = invert_with(medium_prefix, from_uint52)
invert_long_into = invert_with(long_prefix, from_uint64)


@jit
def invert_pair(
    prefix: int, bits: int, more: int, scale: float, offset: float, offset_low: float, fixed_pair: float
) -> float:
    """floor(offset - scale ln U) from `bits` + 52 bits of U in double-double, or NaN.

    Shapes    prefix, more uint64; the law as in add_laplace_into
    Cost      about that of ln_pair: 0.1 us
    Source    fastdp/mechanisms/noise.md, lemma 3
    Requires  what add_laplace_into does
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    if prefix == uint64(0) and more >> uint64(12) == uint64(0):
        return _NAN
    x, x_low = uniform_pair(prefix, more)
    gap = 0.75 * 2.0**-52 * scale / x
    unit = 2.0**-bits
    log, log_low = ln_pair(x * unit, x_low * unit)
    y, y_low = multiply_pairs(log, log_low, -scale, 0.0)
    y, y_low = add_pairs(y, y_low, offset, offset_low)
    return floor_pair(y, y_low, gap + fixed_pair * (1.0 - log))


@jit
def laplace_block_into(
    key: U32Array,
    block: int,
    extra: int,
    scale: float,
    offset: float,
    offset_low: float,
    fixed: float,
    fixed_pair: float,
    signs: int,
    out: F64Array,
) -> int:
    """One block of draws, NaN where 52 bits more do not decide either.

    Shapes    key uint32[8]; out float64[n], n <= 1,024
    Cost      most of that of add_laplace_into
    Source    fastdp/mechanisms/noise.md, theorem 1
    Requires  the plan of fastdp/mechanisms/noise.py; signs 1, or 0 for no sign
    Returns   how many are NaN
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    n = out.size
    halves, more = stack(np.uint32, LAPLACE_BLOCK), stack(np.uint32, LAPLACE_BLOCK)
    first = uint64(block) * uint64(LAPLACE_BLOCK)
    fill_words_into(key, first, n, extra, 2, halves, more, more)
    bits = SHORT_BITS + extra
    unit = 2.0**-bits
    sign = uint64(signs)
    if extra == 0:
        count = invert_short_into(halves, more, unit, scale, offset, fixed, sign, out)
    elif extra == MEDIUM_EXTRA:
        count = invert_medium_into(halves, more.view(np.uint16), unit, scale, offset, fixed, sign, out)
    else:
        count = invert_long_into(halves, more, unit, scale, offset, fixed, sign, out)
    if count == 0:
        if n > SHORT_CALL:
            return 0
        # a short call takes one second level in any case, so that its time does not tell whether one was needed
        beyond = word_one(key, uint64(U_MORE_STREAM), first)
        idle = invert_pair(prefix_one(halves, more, extra, 0), bits, beyond, scale, offset, offset_low, fixed_pair)
        return int64(idle < -1.0)  # 0, which the compiler does not know
    count = 0
    for start in range(0, n, 64):
        stop = min(start + 64, n)
        if count_nan(out[start:stop]) == 0:
            continue
        for i in range(start, stop):
            if np.isnan(out[i]):
                beyond = word_one(key, uint64(U_MORE_STREAM), first + uint64(i))
                prefix = prefix_one(halves, more, extra, i)
                draw = invert_pair(prefix, bits, beyond, scale, offset, offset_low, fixed_pair)
                out[i] = with_sign(draw, uint64(halves[i]) & sign)
                count += np.isnan(draw)
    return count


@jit(inline=True)
def take_undecided(noise: F64Array, first: int, undecided: I64Array, found: int) -> int:
    """Append the places of NaN in `noise` to `undecided` and put 0 there; returns the new length."""
    for i in range(noise.size):
        if np.isnan(noise[i]):
            undecided[found] = first + i
            found += 1
            noise[i] = 0.0
    return found


@jit
def add_laplace_into(
    values: I64Array,
    key: U32Array,
    block: int,
    extra: int,
    scale: float,
    offset: float,
    offset_low: float,
    fixed: float,
    fixed_pair: float,
    out: I64Array,
    undecided: I64Array,
) -> int:
    """Add discrete Laplace noise of scale s to every entry.

    out[i] = values[i] + Z_i held inside int64,   Pr[Z = z] proportional to exp(-|z| / s)

    Shapes    values int64[n] (read), out int64[n] (may be values), undecided int64[n]; the draws are those of blocks
              `block`, `block` + 1, ... of 1,024
    Cost      O(n): about 1.4 ns an entry with AVX-512, 1.7 for scales above 2^15
    Source    docs/algorithms.md, exact samplers; proof in fastdp/mechanisms/noise.md, theorem 1
    Requires  the plan of fastdp/mechanisms/noise.py for s
    Returns   number of undecided entries, listed in `undecided`; there out[i] = values[i], and the caller settles them
    Used by   fastdp.laplace
    Oracle    fastdp/randomness/exact_draws.py; tests/reference.py::laplace_from_uniform
    """
    noise = stack(np.float64, LAPLACE_BLOCK)
    found = 0
    for first in range(0, values.size, LAPLACE_BLOCK):
        n = min(LAPLACE_BLOCK, values.size - first)
        z = noise[:n]
        number = block + first // LAPLACE_BLOCK
        if laplace_block_into(key, number, extra, scale, offset, offset_low, fixed, fixed_pair, 1, z):
            found = take_undecided(z, first, undecided, found)
        add_integers_into(values[first : first + n], z, out[first : first + n])
    return found


@jit
def add_laplace_on_grid_into(
    values: F64Array,
    grid: float,
    key: U32Array,
    block: int,
    extra: int,
    scale: float,
    offset: float,
    offset_low: float,
    fixed: float,
    fixed_pair: float,
    out: F64Array,
    undecided: I64Array,
) -> int:
    """Round every entry to the grid and add discrete Laplace noise of s grid units.

    out[i] = grid (k_i + Z_i) rounded once to float64, k_i = values[i] / grid to the nearest integer

    Shapes    values float64[n] (read), out float64[n] (may be values), undecided int64[n]
    Cost      O(n): about 1.4 ns an entry with AVX-512, 1.7 for scales above 2^15
    Source    docs/algorithms.md, exact samplers; proof in fastdp/mechanisms/noise.md, theorem 3
    Requires  the plan of fastdp/mechanisms/noise.py for s; grid a power of two; values finite
    Returns   number of undecided entries, listed in `undecided`; there Z_i = 0 was added, and the caller settles them
    Used by   fastdp.laplace
    Oracle    fastdp/randomness/exact_draws.py
    """
    noise = stack(np.float64, LAPLACE_BLOCK)
    found = 0
    for first in range(0, values.size, LAPLACE_BLOCK):
        n = min(LAPLACE_BLOCK, values.size - first)
        z = noise[:n]
        number = block + first // LAPLACE_BLOCK
        if laplace_block_into(key, number, extra, scale, offset, offset_low, fixed, fixed_pair, 1, z):
            found = take_undecided(z, first, undecided, found)
        add_on_grid_into(values[first : first + n], grid, z, out[first : first + n])
    return found


@jit
def draw_geometric_into(
    key: U32Array,
    block: int,
    extra: int,
    scale: float,
    fixed: float,
    fixed_pair: float,
    out: I64Array,
    undecided: I64Array,
) -> int:
    """Geometric draws: Pr[out[i] >= x] = exp(-x / scale) for every integer x >= 0.

    Shapes    out int64[n], undecided int64[n]
    Cost      O(n): about 1.3 ns an entry with AVX-512, 1.6 for scales above 2^15
    Source    docs/algorithms.md, exact samplers; proof in fastdp/mechanisms/noise.md, theorem 1
    Requires  the plan of fastdp/mechanisms/noise.py for the scale
    Returns   number of undecided entries, listed in `undecided`; there out[i] = 0, and the caller settles them
    Used by   whoever wants geometric draws: in tests, so far
    Oracle    fastdp/randomness/exact_draws.py
    """
    noise = stack(np.float64, LAPLACE_BLOCK)
    found = 0
    for first in range(0, out.size, LAPLACE_BLOCK):
        n = min(LAPLACE_BLOCK, out.size - first)
        z = noise[:n]
        if laplace_block_into(key, block + first // LAPLACE_BLOCK, extra, scale, 0.0, 0.0, fixed, fixed_pair, 0, z):
            found = take_undecided(z, first, undecided, found)
        for i in range(n):
            out[first + i] = to_integer(noise[i])
    return found


# --- Gaussian: propose a magnitude by inverting a flat body and a geometric tail, accept, attach the sign
#
# law = (body, tail, start, start_low, mass, mass_low, tail_mass, tail_mass_low, peak, curvature,
#        fixed, gap, slack, slack_pair, fixed_pair)
# with a, t, T, A, x0 as in fastdp/mechanisms/noise.md: body = a, tail = t, start = a + t ln(T / A), mass = A,
# tail_mass = T,
# peak = x0, curvature = 1 / (2 sigma^2); the second line bounds the errors of both levels.


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
        Oracle    tests/reference.py::gaussian_magnitude_from_uniform
        """
        body, tail, start, mass, tail_mass, fixed, gap = law[0], law[1], law[2], law[4], law[6], law[10], law[11]
        top = body + tail_mass
        step = mass * unit
        count = 0
        for i in range(out.size):
            k = to_float(prefix(halves, more, i))
            u = k + 0.5
            r = u * step
            y = fma(-tail, ln_one(u * unit), start) if r < tail_mass else top - r
            floor = np.floor(y)
            undecided = is_open(y, floor, fma(gap, power_above_inverse(k), fma(3 * U, y, fixed)))
            count += undecided
            out[i] = _NAN if undecided else floor
        return count

    return propose_into


propose_short_into = propose_with(short_prefix, from_uint52)
propose_medium_into = propose_with(medium_prefix, from_uint52)
propose_long_into = propose_with(long_prefix, from_uint64)


@jit(inline=True)
def distance(magnitude: float, law: F64Array) -> float:
    """-ln of the acceptance probability of a proposed magnitude, at most 700."""
    d = magnitude - (law[8] if magnitude >= law[0] else 0.0)
    return min(d * d * law[9], 700.0)


@jit
def accept_into(halves: U32Array, coins: U16Array, law: F64Array, out: F64Array, kept: U64Array) -> int:
    """Accept or reject the magnitudes in `out` and give them their signs; NaN where the coins do not decide it.

    Shapes    halves uint32[n], coins uint16[n], law float64[15], out float64[n], kept uint64[n]
    Cost      O(n), about 0.6 ns an entry with AVX-512
    Source    fastdp/mechanisms/noise.md, lemma 5
    Requires  the plan of fastdp/mechanisms/noise.py
    Returns   how many are NaN, those that came as NaN included
    Used by   noise
    Oracle    tests/reference.py::gaussian_accepts
    """
    body, peak, curvature = law[0], law[8], law[9]
    slack = 0.5 * 2.0**-COIN_BITS + law[12]
    count = 0
    for i in range(out.size):
        magnitude = out[i]
        coin = (from_uint52(uint64(coins[i])) + 0.5) * 2.0**-COIN_BITS
        d = magnitude - (peak if magnitude >= body else 0.0)
        h = d * d * curvature
        lead = exp_rough(-(h if h < 700.0 else 700.0)) - coin
        undecided = not (abs(lead) > slack and magnitude >= 0.0)
        count += undecided
        out[i] = _NAN if undecided else with_sign(magnitude, uint64(halves[i]) & uint64(1))
        kept[i] = lead > 0.0
    return count


@jit
def propose_pair(prefix: int, bits: int, more: int, law: F64Array) -> float:
    """The magnitude proposed by `bits` + 52 bits, in double-double, or NaN.

    Shapes    prefix, more uint64; law float64[15]
    Cost      about that of ln_pair: 0.1 us
    Source    fastdp/mechanisms/noise.md, lemma 4
    Requires  the plan of fastdp/mechanisms/noise.py
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    if prefix == uint64(0) and more >> uint64(12) == uint64(0):
        return _NAN
    body, tail = law[0], law[1]
    x, x_low = uniform_pair(prefix, more)
    gap = 2.0**-52 * (tail + law[4]) / x
    unit = 2.0**-bits
    x, x_low = x * unit, x_low * unit
    r, r_low = multiply_pairs(x, x_low, law[4], law[5])
    r, r_low = add_pairs(law[6], law[7], -r, -r_low)
    log = 0.0
    if r > 0.0:
        log, log_low = ln_pair(x, x_low)
        y, y_low = multiply_pairs(log, log_low, -tail, 0.0)
        y, y_low = add_pairs(y, y_low, law[2], law[3])
    else:
        y, y_low = add_pairs(body, 0.0, r, r_low)
    return floor_pair(y, y_low, gap + law[14] * (1.0 - log))


@jit
def settle_proposal(key: U32Array, at: int, prefix: int, bits: int, sign: int, coin: int, law: F64Array) -> float:
    """The signed draw of one proposal, on 52 bits of U more and 36 of its coin; infinity if rejected, NaN if open.

    Shapes    key uint32[8]; at, prefix, coin uint64; law float64[15]
    Cost      two words by themselves, 0.15 us each, and ln_pair
    Source    fastdp/mechanisms/noise.md, lemma 5
    Requires  the plan of fastdp/mechanisms/noise.py
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    magnitude = propose_pair(prefix, bits, word_one(key, uint64(U_MORE_STREAM), at), law)
    more = float64(word_one(key, uint64(COIN_MORE_STREAM), at) >> uint64(28))
    v = (float64(coin) + (more + 0.5) * 2.0**-36) * 2.0**-COIN_BITS
    lead = exp_one(-distance(magnitude, law)) - v
    if np.isnan(magnitude) or abs(lead) <= law[13]:
        return _NAN
    return with_sign(magnitude, sign) if lead > 0.0 else np.inf


@jit
def gaussian_block_into(key: U32Array, block: int, extra: int, law: F64Array, need: int, out: F64Array) -> bool:
    """The first `need` accepted proposals of a block; false if one of them could not be decided.

    Shapes    law float64[15], out float64[GAUSSIAN_ROOM]
    Cost      most of that of add_gaussian_into
    Source    fastdp/mechanisms/noise.md, theorem 2
    Requires  need <= 2,208; the plan of fastdp/mechanisms/noise.py
    Used by   noise
    Oracle    fastdp/randomness/exact_draws.py
    """
    halves, more, coin_words = stack(np.uint32, BATCH), stack(np.uint32, BATCH), stack(np.uint32, BATCH)
    coins = coin_words.view(np.uint16)
    z, kept = stack(np.float64, BATCH), stack(np.uint64, BATCH)
    bits = SHORT_BITS + extra
    unit = 2.0**-bits
    done = 0
    at = uint64(block) * uint64(PROPOSALS)
    while done < need:
        fill_words_into(key, at, BATCH, extra, 3, halves, more, coin_words)
        if extra == 0:
            propose_short_into(halves, more, unit, law, z)
        elif extra == MEDIUM_EXTRA:
            propose_medium_into(halves, more.view(np.uint16), unit, law, z)
        else:
            propose_long_into(halves, more, unit, law, z)
        if accept_into(halves, coins, law, z, kept):
            for i in range(BATCH):
                if np.isnan(z[i]):
                    prefix, sign = prefix_one(halves, more, extra, i), uint64(halves[i]) & uint64(1)
                    draw = settle_proposal(key, at + uint64(i), prefix, bits, sign, uint64(coins[i]), law)
                    if np.isnan(draw):
                        return False
                    z[i] = draw
                    kept[i] = uint64(draw < np.inf)
        for i in range(BATCH):
            out[done] = z[i]
            done += int64(kept[i])
        at += uint64(BATCH)
    return True


@jit
def add_gaussian_into(
    values: I64Array, key: U32Array, block: int, extra: int, law: F64Array, out: I64Array, undecided: I64Array
) -> int:
    """Add discrete Gaussian noise to every entry.

    out[i] = values[i] + Z_i held inside int64,   Pr[Z = z] proportional to exp(-z^2 / (2 sigma^2))

    Shapes    values int64[n] (read), out int64[n] (may be values), law float64[15], undecided int64[n]; the draws are
              those of blocks `block`, `block` + 1, ... of 2,208
    Cost      O(n): about 3.1 ns an entry with AVX-512
    Source    docs/algorithms.md, exact samplers; proof in fastdp/mechanisms/noise.md, theorem 2
    Requires  the plan of fastdp/mechanisms/noise.py for sigma
    Returns   number of undecided blocks, whose first places are listed in `undecided`; there out = values, and the
              caller settles the whole block
    Used by   fastdp.gaussian
    Oracle    fastdp/randomness/exact_draws.py; tests/reference.py::gaussian_proposal_law
    """
    noise = stack(np.float64, GAUSSIAN_ROOM)
    found = 0
    for first in range(0, values.size, GAUSSIAN_BLOCK):
        n = min(GAUSSIAN_BLOCK, values.size - first)
        z = noise[:n]
        if not gaussian_block_into(key, block + first // GAUSSIAN_BLOCK, extra, law, n, noise):
            z[:] = 0.0
            undecided[found] = first
            found += 1
        add_integers_into(values[first : first + n], z, out[first : first + n])
    return found


@jit
def add_gaussian_on_grid_into(
    values: F64Array,
    grid: float,
    key: U32Array,
    block: int,
    extra: int,
    law: F64Array,
    out: F64Array,
    undecided: I64Array,
) -> int:
    """Round every entry to the grid and add discrete Gaussian noise of sigma grid units.

    out[i] = grid (k_i + Z_i) rounded once to float64, k_i = values[i] / grid to the nearest integer

    Shapes    values float64[n] (read), out float64[n] (may be values), law float64[15], undecided int64[n]
    Cost      O(n): about 3.1 ns an entry with AVX-512
    Source    docs/algorithms.md, exact samplers; proof in fastdp/mechanisms/noise.md, theorem 3
    Requires  the plan of fastdp/mechanisms/noise.py for sigma; grid a power of two; values finite
    Returns   number of undecided blocks, whose first places are listed in `undecided`
    Used by   fastdp.gaussian
    Oracle    fastdp/randomness/exact_draws.py
    """
    noise = stack(np.float64, GAUSSIAN_ROOM)
    found = 0
    for first in range(0, values.size, GAUSSIAN_BLOCK):
        n = min(GAUSSIAN_BLOCK, values.size - first)
        z = noise[:n]
        if not gaussian_block_into(key, block + first // GAUSSIAN_BLOCK, extra, law, n, noise):
            z[:] = 0.0
            undecided[found] = first
            found += 1
        add_on_grid_into(values[first : first + n], grid, z, out[first : first + n])
    return found


@jit
def count_not_finite(values: F64Array) -> int:
    """How many entries are NaN or infinite.

    Shapes    values float64[n]
    Cost      O(n), at memory speed
    Used by   fastdp.laplace, fastdp.gaussian
    Oracle    numpy
    """
    count = 0
    for i in range(values.size):
        count += abs(values[i]) == np.inf or values[i] != values[i]
    return count
