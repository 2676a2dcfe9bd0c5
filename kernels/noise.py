"""Exact discrete noise added to arrays, of integers and of floats on a grid.

The draws are those of discrete_laplace.py and discrete_gaussian.py. Loops work on blocks that stay in the L1 cache:
signed draws as integer-valued float64, then the addition. A loop that may write where it reads would be compiled with
an overlap check and run scalar in place (1.6 against 5.9 ns an entry): hence the buffer between noise and addition.

What a draw costs does not depend on the values.
"""

import numpy as np

from .arrays import seen_as
from .compile import jit
from .discrete_gaussian import gaussian_block_into
from .discrete_laplace import laplace_block_into
from .elementary import to_integer
from .lanes import F64Array, I64Array, U32Array, bits_of, float_of, int64, stack
from .layout import GAUSSIAN_BATCH, GAUSSIAN_BLOCK, LAPLACE_BLOCK, SCHEDULE
from .words import expanded

_MAX = 0x7FFFFFFFFFFFFFFF
_GAUSSIAN_ROOM = GAUSSIAN_BLOCK + GAUSSIAN_BATCH  # the last batch may accept more than are needed


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


@jit(reads=("values",))
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


@jit(inline=True)
def take_undecided(noise: F64Array, first: int, undecided: I64Array, found: int) -> int:
    """Append the places of NaN in `noise` to `undecided` and put 0 there; returns the new length."""
    for i in range(noise.size):
        if np.isnan(noise[i]):
            undecided[found] = first + i
            found += 1
            noise[i] = 0.0
    return found


# --- the four loops: what is drawn, and what it is added to. Each is written out: one loop for each law, inlined with
# its addition, takes 0.05 us more a call (counted references), 0.96 against 1.01 us for 10 entries.


@jit(reads=("values", "law"))
def add_laplace_into(
    values: I64Array, key: U32Array, block: int, extra: int, law: F64Array, out: I64Array, undecided: I64Array
) -> int:
    """Add discrete Laplace noise of scale s to every entry.

    out[i] = values[i] + Z_i held inside int64,   Pr[Z = z] proportional to exp(-|z| / s)

    Shapes    values int64[n] (read), out int64[n] (may be values), law float64[5], undecided int64[n]; the draws are
              those of blocks `block`, `block` + 1, ... of 1,024
    Cost      O(n): about 1.4 ns an entry with AVX-512, 1.7 for scales above 2^15
    Source    docs/algorithms.md, exact samplers; proof in fastdp/mechanisms/noise.md, theorem 1
    Requires  extra and law of the plan of fastdp/randomness/noise_plans.py for s
    Returns   number of undecided entries, listed in `undecided`; there out[i] = values[i], and the caller resolves them
    Used by   fastdp.laplace
    Oracle    fastdp/randomness/exact_draws.py; tests/oracles/exact_draws.py::laplace_from_uniform
    """
    noise = stack(np.float64, LAPLACE_BLOCK)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    found = 0
    for first in range(0, values.size, LAPLACE_BLOCK):
        n = min(LAPLACE_BLOCK, values.size - first)
        z = noise[:n]
        if laplace_block_into(source, block + first // LAPLACE_BLOCK, extra, law, z):
            found = take_undecided(z, first, undecided, found)
        add_integers_into(values[first : first + n], z, out[first : first + n])
    return found


@jit(reads=("values", "law"))
def add_laplace_on_grid_into(
    values: F64Array, grid: float, key: U32Array, block: int, extra: int, law: F64Array, out: F64Array,
    undecided: I64Array,
) -> int:  # fmt: skip
    """Round every entry to the grid and add discrete Laplace noise of s grid units.

    out[i] = grid (k_i + Z_i) rounded once to float64, k_i = values[i] / grid to the nearest integer

    Shapes    values float64[n] (read), out float64[n] (may be values), law float64[5], undecided int64[n]
    Cost      O(n): about 1.4 ns an entry with AVX-512, 1.7 for scales above 2^15
    Source    docs/algorithms.md, exact samplers; proof in fastdp/mechanisms/noise.md, theorem 3
    Requires  extra and law of the plan of fastdp/randomness/noise_plans.py for s; grid a power of two; values finite
    Returns   number of undecided entries, listed in `undecided`; there Z_i = 0 was added, and the caller resolves them
    Used by   fastdp.laplace
    Oracle    fastdp/randomness/exact_draws.py
    """
    noise = stack(np.float64, LAPLACE_BLOCK)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    found = 0
    for first in range(0, values.size, LAPLACE_BLOCK):
        n = min(LAPLACE_BLOCK, values.size - first)
        z = noise[:n]
        if laplace_block_into(source, block + first // LAPLACE_BLOCK, extra, law, z):
            found = take_undecided(z, first, undecided, found)
        add_on_grid_into(values[first : first + n], grid, z, out[first : first + n])
    return found


@jit(reads=("values", "law"))
def add_gaussian_into(
    values: I64Array, key: U32Array, block: int, extra: int, law: F64Array, out: I64Array, undecided: I64Array
) -> int:
    """Add discrete Gaussian noise to every entry.

    out[i] = values[i] + Z_i held inside int64,   Pr[Z = z] proportional to exp(-z^2 / (2 sigma^2))

    Shapes    values int64[n] (read), out int64[n] (may be values), law float64[15], undecided int64[n]; the draws are
              those of blocks `block`, `block` + 1, ... of 2,208
    Cost      O(n): about 3.1 ns an entry with AVX-512
    Source    docs/algorithms.md, exact samplers; proof in fastdp/mechanisms/noise.md, theorem 2
    Requires  extra and law of the plan of fastdp/randomness/noise_plans.py for sigma
    Returns   number of undecided blocks, whose first places are listed in `undecided`; there out = values, and the
              caller resolves the whole block
    Used by   fastdp.gaussian
    Oracle    fastdp/randomness/exact_draws.py; tests/oracles/exact_draws.py::gaussian_proposal_law
    """
    noise = stack(np.float64, _GAUSSIAN_ROOM)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    found = 0
    for first in range(0, values.size, GAUSSIAN_BLOCK):
        n = min(GAUSSIAN_BLOCK, values.size - first)
        z = noise[:n]
        if not gaussian_block_into(source, block + first // GAUSSIAN_BLOCK, extra, law, n, noise):
            z[:] = 0.0
            undecided[found] = first
            found += 1
        add_integers_into(values[first : first + n], z, out[first : first + n])
    return found


@jit(reads=("values", "law"))
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
    Requires  extra and law of the plan of fastdp/randomness/noise_plans.py for sigma; grid a power of two; values
              finite
    Returns   number of undecided blocks, whose first places are listed in `undecided`
    Used by   fastdp.gaussian
    Oracle    fastdp/randomness/exact_draws.py
    """
    noise = stack(np.float64, _GAUSSIAN_ROOM)
    source = expanded(key, stack(np.uint32, SCHEDULE))
    found = 0
    for first in range(0, values.size, GAUSSIAN_BLOCK):
        n = min(GAUSSIAN_BLOCK, values.size - first)
        z = noise[:n]
        if not gaussian_block_into(source, block + first // GAUSSIAN_BLOCK, extra, law, n, noise):
            z[:] = 0.0
            undecided[found] = first
            found += 1
        add_on_grid_into(values[first : first + n], grid, z, out[first : first + n])
    return found


# --- short calls: in place, with what Python looks at least, three arguments. `law` has the grid and the bits before.


@jit(brief=True)
def add_laplace_to_few(values: I64Array, key: bytes, law: F64Array) -> int:
    """The draws of add_laplace_into from block 0 on, in place; what is undecided is counted and not listed.

    Shapes    values int64[n], n <= 1,024 (overwritten), key bytes[32 or 36], law float64[7]: 1, extra and the law
    Cost      0.25 us for 10 entries
    Source    add_laplace_into
    Returns   0, or the number of undecided entries: the caller makes all anew, with the same key
    Used by   fastdp.laplace
    Oracle    add_laplace_into
    """
    undecided = stack(np.int64, LAPLACE_BLOCK)
    return add_laplace_into(values, seen_as(key, np.uint32), 0, int64(law[1]), law[2:], values, undecided)


@jit(brief=True)
def add_laplace_to_few_on_grid(values: F64Array, key: bytes, law: F64Array) -> int:
    """The draws of add_laplace_on_grid_into from block 0 on, in place; what is undecided is counted and not listed.

    Shapes    values float64[n], n <= 1,024 (overwritten), key bytes[32 or 36], law float64[7]: grid, extra and the law
    Cost      0.25 us for 10 entries
    Source    add_laplace_on_grid_into
    Returns   0; or more, where an entry is undecided or not finite with its noise: the caller makes all anew, with the
              same key
    Used by   fastdp.laplace
    Oracle    add_laplace_on_grid_into
    """
    words, undecided = seen_as(key, np.uint32), stack(np.int64, LAPLACE_BLOCK)
    found = add_laplace_on_grid_into(values, law[0], words, 0, int64(law[1]), law[2:], values, undecided)
    return found + count_not_finite(values)


@jit(brief=True)
def add_gaussian_to_few(values: I64Array, key: bytes, law: F64Array) -> int:
    """The draws of add_gaussian_into from block 0 on, in place.

    Shapes    values int64[n], n <= 1,024 (overwritten), key bytes[32 or 36], law float64[17]: 1, extra and the law
    Cost      1.2 us for 10 entries
    Source    add_gaussian_into
    Returns   0, or 1 where the block is undecided: the caller makes all anew, with the same key
    Used by   fastdp.gaussian
    Oracle    add_gaussian_into
    """
    undecided = stack(np.int64, 1)
    return add_gaussian_into(values, seen_as(key, np.uint32), 0, int64(law[1]), law[2:], values, undecided)


@jit(brief=True)
def add_gaussian_to_few_on_grid(values: F64Array, key: bytes, law: F64Array) -> int:
    """The draws of add_gaussian_on_grid_into from block 0 on, in place.

    Shapes    values float64[n], n <= 1,024 (overwritten), key bytes[32 or 36], law float64[17]: grid, extra and the law
    Cost      1.2 us for 10 entries
    Source    add_gaussian_on_grid_into
    Returns   0; or more, where the block is undecided or an entry not finite with its noise: the caller makes all anew,
              with the same key
    Used by   fastdp.gaussian
    Oracle    add_gaussian_on_grid_into
    """
    words, undecided = seen_as(key, np.uint32), stack(np.int64, 1)
    found = add_gaussian_on_grid_into(values, law[0], words, 0, int64(law[1]), law[2:], values, undecided)
    return found + count_not_finite(values)
