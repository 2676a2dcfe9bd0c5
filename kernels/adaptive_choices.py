"""The worst of several choices that depend on the results before: a recursion on a grid of log-likelihood ratios.

Every step takes, at every point of the grid, the greatest value over one parameter. Where it lies differs little from
point to point: a few values on the way tell, for 128 points at once, in which eighth of the parameters it can be, and
the others are left out. That takes a third of the time. fastdp/privacy/loss_distributions.md, theorem 7.
"""

from .arrays import copy_into
from .compile import jit
from .lanes import F64Array, int64

TILE = 128  # points that are searched together
_DOUBT = 2.0**-48  # what rounding may do to a difference, relative to its terms
_ROUNDING = 2.0**-46  # of a step, relative
_TINY = 1e-300


@jit
def rises_into(grown: F64Array, cells: int, apart: int, shrink: float, n: int, out: F64Array) -> None:
    """By how much chords over one range get steeper from each point to one further on, and what rounding may hide.

    out[i] = max(0, shrink D[i + apart] - D[i]) + 2^-48 (shrink S[i + apart] + S[i])
    D[i], S[i] = grown[i + cells] -+ grown[i]

    Shapes    grown float64[n + cells + apart], out float64[>= n]
    Cost      O(n)
    Used by   follow_choices_into
    Oracle    tests/oracles/loss_distributions.py::worst_choices
    """
    far, near = grown[cells : cells + n], grown[:n]
    next_far, next_near = grown[cells + apart : cells + apart + n], grown[apart : apart + n]
    for i in range(n):
        steeper = shrink * (next_far[i] - next_near[i]) - (far[i] - near[i])
        doubt = shrink * (next_far[i] + next_near[i]) + (far[i] + near[i])
        out[i] = max(0.0, steeper) + _DOUBT * doubt


@jit
def search_tile(
    first: int, shares: F64Array, fall: F64Array, bulges: F64Array, work: F64Array, tile: F64Array, out: F64Array
) -> None:
    """The greatest value at each point of a tile: at the ends of intervals, and how far it may rise between them.

    Shapes    out float64[<= TILE], of the points from `first` on; work and shares as in follow_choices_into
    Cost      about 20 values a point instead of `cells`
    Used by   follow_choices_into
    Oracle    tests/oracles/loss_distributions.py::worst_choices
    """
    grown, rises, wide = work[0], work[1], work[2]
    n, cells, groups = len(out), shares.shape[1] - 1, tile.shape[0] - 3
    group = cells // groups
    best, before = tile[groups + 1, :n], tile[groups + 2, :n]
    best[:] = 0.0
    for g in range(groups + 1):
        at = g * group
        above, below = shares[0, at], shares[1, at]
        high, low = grown[first + cells + at : first + cells + at + n], grown[first + at : first + at + n]
        ends = tile[g]
        for j in range(n):
            ends[j] = high[j] * above + low[j] * below
            best[j] = max(best[j], ends[j])
    copy_into(best, out)
    for g in range(groups):
        at = g * group
        rise, bulge = wide[first + at : first + at + n], bulges[1] * fall[at]
        left, right = tile[g], tile[g + 1]
        higher = 0
        for j in range(n):
            higher += int64(max(left[j], right[j]) + bulge * rise[j] > best[j])
        if not higher:
            continue
        copy_into(left[:n], before)
        for i in range(at + 1, at + group + 1):
            above, below, bulge = shares[0, i], shares[1, i], bulges[0] * fall[i - 1]
            high, low = grown[first + cells + i : first + cells + i + n], grown[first + i : first + i + n]
            rise = rises[first + i - 1 : first + i - 1 + n]
            for j in range(n):
                now = high[j] * above + low[j] * below
                out[j] = max(out[j], max(before[j], now) + bulge * rise[j])
                before[j] = now


@jit
def follow_choices_into(
    count: int, upper: bool, shares: F64Array, fall: F64Array, growth: F64Array, bulges: F64Array, work: F64Array,
    tile: F64Array, out: F64Array,
) -> int:  # fmt: skip
    """U_count at x = ..., -2 h, -h, 0: upper bounds of what `count` choices of range `cells` h reach, or lower ones.

    U_j(x) = max_t  shares[0, t] U_(j-1)(x + t h) + shares[1, t] U_(j-1)(x + t h - cells h),   U_0 = 0 for x <= 0

    Shapes    shares float64[2, cells + 1], fall float64[2 cells + 1] = e^(-i h),
              growth float64[cells + 1] = e^(i h) - 1,
              bulges float64[2]: of intervals h and of cells/groups h (the first 0 for lower bounds),
              work float64[3, len(out) + 2 cells], tile float64[groups + 3, TILE], out float64[points to keep]
    Cost      some 25 multiplications for each step and point; 1000 choices of 32 cells: 60 ms
    Source    Dong, Durfee, Rogers 2020; fastdp/privacy/loss_distributions.md, theorem 7
    Requires  groups divides cells
    Returns   how many points are written, from out[0], the lowest: fewer than out has where no loss is larger
    Used by   fastdp/privacy/choices.py
    Oracle    tests/oracles/loss_distributions.py::worst_choices
    """
    cells, groups, most = shares.shape[1] - 1, tile.shape[0] - 3, len(out)
    group = cells // groups
    grown = work[0]
    sign = 1.0 if upper else -1.0
    n, is_cut = 1, False
    out[0] = 0.0
    for _ in range(count):
        size = min(n + cells, most)
        gap = size + cells - n
        lowest = out[0] if is_cut and upper else 0.0
        for i in range(gap):
            grown[i] = lowest * fall[gap - i] if lowest else 0.0
        copy_into(out[:n], grown[gap : gap + n])
        top = gap + n - 1  # where x = 0
        for i in range(1, cells + 1):
            grown[top + i] = growth[i] + (1 + growth[i]) * grown[top - i]
        rises_into(grown, cells, 1, fall[1], size + cells - 1, work[1])
        rises_into(grown, cells, group, fall[group], size + cells - group, work[2])
        for first in range(0, size, TILE):
            search_tile(first, shares, fall, bulges, work, tile, out[first : min(first + TILE, size)])
        for i in range(size):
            out[i] = out[i] * (1 + sign * _ROUNDING) + (_TINY if upper else 0.0)
        is_cut = is_cut or size < n + cells
        n = size
    return n
