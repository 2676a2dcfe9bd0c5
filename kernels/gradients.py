"""The sum of the clipped gradients at w over points, as integers.

A record's gradient is c r (clipping.py); every coordinate is rounded toward zero and added up as an integer. So sums
have the same bits for any order and any number of threads, and no record moves them by more than K:
fastdp/optimizing/descent.md, lemmas 1 and 2. A descent (descent.py) is such sums and steps by turns.

There is a kernel for each family of losses, by what r is, for points of float64 and of float32; and one that sums in
floats, not private. Scores and norms are computed with 8 lanes, fma, one tree. Integers are carried in float64, which
holds them exactly: at most 2^41 times 4,096 records, then they move to int64.
"""

from typing import Any, NamedTuple

from .arrays import copy_into
from .clipping import ClipRule, clip_differences_into, clip_margins_into, rule_of
from .compile import jit
from .lanes import (
    F64Array,
    I64Array,
    fma,
    int64,
    load,
    load_wide,
    prefetch,
    signs,
    splat,
    stack,
    store,
    sum_each,
    truncate,
)
from .layout import LANES, MOST_SUMMED

GROUP = 32  # records that are looked at together: their points stay in the L1 cache up to 128 columns
AHEAD = 64  # records to prefetch; 0: 7.9 ms instead of 5.2 for 1e6 x 20


class Records(NamedTuple):
    """Points (flat), labels and norms."""

    X: Any
    labels: F64Array
    norms: F64Array


class Place(NamedTuple):
    """Where gradients are taken: w, and ones; after d entries both have zeros, up to a multiple of 8."""

    w: F64Array
    mask: F64Array


class Work(NamedTuple):
    """Work space: room for 32 points and 8 entries, and for a sum."""

    tail: Any
    sums: F64Array


# --- what is multiplied by the factor, and what the factor is made from


@jit(inline=True)
def point_itself(x: Any, w: Any) -> Any:
    """The gradient's direction of margin losses."""
    return x


@jit(inline=True)
def difference(x: Any, w: Any) -> Any:
    """The gradient's direction of squared distances."""
    return x - w


@jit(inline=True)
def sign_of_difference(x: Any, w: Any) -> Any:
    """The gradient's direction of absolute deviations."""
    return signs(x - w)


class Family(NamedTuple):
    """A family of losses.

    direction   r of a gradient c r
    clip        the factors, from the score <x, w> of margin losses and the squared norm of r of others
    margin      which of the two
    filler      the norm of what only fills a group
    """

    direction: Any
    clip: Any
    margin: bool
    filler: float


MARGINS = Family(point_itself, clip_margins_into, True, 1.0)
DIFFERENCES = Family(difference, clip_differences_into, False, 0.0)
SIGNS = Family(sign_of_difference, clip_differences_into, False, 0.0)


def make_scores(direction: Any, margin: bool) -> Any:
    @jit(inline=True)
    def add_term(a: Any, x: Any, w: Any, mask: Any) -> Any:
        if margin:
            return fma(x, w, a)
        r = direction(x, w) * mask
        return fma(r, r, a)

    @jit(inline=True)
    def scores_into(X: Any, p: int, d: int, w: F64Array, mask: F64Array, out: F64Array, i: int) -> None:
        """<x, w>, or the squared norm of r, of 8 points from place p on."""
        a = splat(0.0, 8)
        b, c, e, f, g, h, k = a, a, a, a, a, a, a
        for j in range(0, d, LANES):
            v, m = load(w, j, 8), load(mask, j, 8)
            q = p + j
            a = add_term(a, load_wide(X, q, 8), v, m)
            b = add_term(b, load_wide(X, q + d, 8), v, m)
            c = add_term(c, load_wide(X, q + 2 * d, 8), v, m)
            e = add_term(e, load_wide(X, q + 3 * d, 8), v, m)
            f = add_term(f, load_wide(X, q + 4 * d, 8), v, m)
            g = add_term(g, load_wide(X, q + 5 * d, 8), v, m)
            h = add_term(h, load_wide(X, q + 6 * d, 8), v, m)
            k = add_term(k, load_wide(X, q + 7 * d, 8), v, m)
        store(out, i, sum_each(a, b, c, e, f, g, h, k))

    return scores_into


# --- sums of a group: up to 32 columns at a time, in at most four accumulators that stay in registers


def make_products(direction: Any, exact: bool) -> Any:
    """a + c r, rounded toward zero to integers where sums are `exact`."""

    @jit(inline=True)
    def add_product(a: Any, x: Any, w: Any, factor: Any) -> Any:
        if exact:
            return a + truncate(direction(x, w) * factor)
        return fma(direction(x, w), factor, a)

    return add_product


def make_columns(add_product: Any, parts: int, ahead: int = AHEAD) -> Any:
    """Add columns j to j + 8 parts - 1 of a group of records; what lies so many records ahead is prefetched."""

    @jit(inline=True)
    def add_columns(X: Any, p: int, d: int, w: F64Array, j: int, factors: F64Array, sums: F64Array) -> None:
        a, s = load(sums, j, 8), load(w, j, 8)
        b, c, e = a, a, a
        t, u, v = s, s, s
        if parts > 1:
            b, t = load(sums, j + 8, 8), load(w, j + 8, 8)
        if parts > 2:
            c, u = load(sums, j + 16, 8), load(w, j + 16, 8)
        if parts > 3:
            e, v = load(sums, j + 24, 8), load(w, j + 24, 8)
        for i in range(GROUP):
            factor = splat(factors[i], 8)
            q = p + i * d + j
            if ahead:
                for part in range(parts):
                    prefetch(X, q + ahead * d + 8 * part)
            a = add_product(a, load_wide(X, q, 8), s, factor)
            if parts > 1:
                b = add_product(b, load_wide(X, q + 8, 8), t, factor)
            if parts > 2:
                c = add_product(c, load_wide(X, q + 16, 8), u, factor)
            if parts > 3:
                e = add_product(e, load_wide(X, q + 24, 8), v, factor)
        store(sums, j, a)
        if parts > 1:
            store(sums, j + 8, b)
        if parts > 2:
            store(sums, j + 16, c)
        if parts > 3:
            store(sums, j + 24, e)

    return add_columns


def _make_group(family: Family, exact: bool) -> Any:
    """Add the gradients of 32 records from place p on; up to 7 entries beyond the last are read."""
    clip, scores_into = family.clip, make_scores(family.direction, family.margin)
    add_product = make_products(family.direction, exact)
    add_one, add_two, add_three, add_four = (make_columns(add_product, parts) for parts in (1, 2, 3, 4))

    # arrays one by one: in a tuple, each is counted whenever it is read, which takes 1.5 times as long at 1,000 x 20
    @jit
    def add_group(
        X: Any, p: int, d: int, labels: F64Array, norms: F64Array, w: F64Array, mask: F64Array, rule: ClipRule,
        sums: F64Array,
    ) -> None:  # fmt: skip
        scores, factors = stack(w.dtype, GROUP), stack(w.dtype, GROUP)
        for i in range(0, GROUP, LANES):
            scores_into(X, p + i * d, d, w, mask, scores, i)
        clip(rule, scores, labels, norms, factors)
        j = 0
        while j < d:
            left = d - j
            if left > 24:
                add_four(X, p, d, w, j, factors, sums)
                j += 32
            elif left > 16:
                add_three(X, p, d, w, j, factors, sums)
                j += 24
            elif left > 8:
                add_two(X, p, d, w, j, factors, sums)
                j += 16
            else:
                add_one(X, p, d, w, j, factors, sums)
                j += 8

    return add_group


# --- sums of all


@jit(inline=True)
def all_columns(rule: ClipRule, out: Any) -> int:
    """How many columns points have: as many as the sum has entries."""
    return int64(out.size)


@jit(inline=True)
def move_integers(sums: F64Array, out: I64Array, d: int) -> None:
    """Add to `out` what has been summed, and begin anew."""
    for j in range(out.size):
        out[j] += int64(sums[j])
    sums[:] = 0.0


@jit(inline=True)
def move_floats(sums: F64Array, out: F64Array, d: int) -> None:
    """The same, where sums are floats."""
    for j in range(out.size):
        out[j] += sums[j]
    sums[:] = 0.0


def _make_sum(family: Family, exact: bool) -> Any:
    """add(records, place, rule, work, out) for a family, which is inlined."""
    move = move_integers if exact else move_floats
    return make_loop(_make_group(family, exact), move, all_columns, family.filler)


def make_loop(add_group: Any, move: Any, columns: Any, filler: float) -> Any:
    """add(records, place, rule, work, out), which is inlined: the full groups of records, and the last one."""

    @jit(inline=True)
    def add_gradients(some: Records, at: Place, rule: ClipRule, work: Work, out: Any) -> None:
        X, labels, norms, w, mask = some.X, some.labels, some.norms, at.w, at.mask
        tail, sums = work.tail, work.sums
        n, d = norms.size, columns(rule, out)
        group = done = 0
        sums[:] = 0.0
        while (done + GROUP) * d + LANES <= n * d:
            end = done + GROUP
            add_group(X, done * d, d, labels[done:end], norms[done:end], w, mask, rule, sums)
            done = end
            group += 1
            if group == MOST_SUMMED // GROUP:
                move(sums, out, d)
                group = 0
        move(sums, out, d)
        some_labels, some_norms = stack(w.dtype, GROUP), stack(w.dtype, GROUP)
        while done < n:  # the last ones, among zeros, so that nothing is read beyond them
            few = min(GROUP, n - done)
            copy_into(X[done * d : (done + few) * d], tail[: few * d])
            tail[few * d :] = 0
            for i in range(GROUP):
                some_labels[i] = labels[done + i] if i < few else 0.0
                some_norms[i] = norms[done + i] if i < few else filler
            add_group(tail, 0, d, some_labels, some_norms, w, mask, rule, sums)
            done += few
        move(sums, out, d)

    return add_gradients


def make_kernel(add_gradients: Any) -> Any:
    """The sum as Python calls it."""

    @jit
    def sum_gradients(
        X: Any, labels: F64Array, norms: F64Array, at: Any, rule: F64Array, address: int, tail: Any, sums: F64Array,
        out: Any,
    ) -> None:  # fmt: skip
        some, place, work = Records(X, labels, norms), Place(at[0], at[1]), Work(tail, sums)
        add_gradients(some, place, rule_of(rule, address), work, out)

    return sum_gradients


add_margins, add_differences, add_signs = (_make_sum(family, True) for family in (MARGINS, DIFFERENCES, SIGNS))
for _add, _name in ((add_margins, "margins"), (add_differences, "differences"), (add_signs, "signs")):
    _add.__doc__ = f"""`sum_{_name}` with its arguments in groups."""

sum_margins, sum_differences, sum_signs = map(make_kernel, (add_margins, add_differences, add_signs))
sum_plain_margins, sum_plain_differences, sum_plain_signs = (
    make_kernel(_make_sum(family, False)) for family in (MARGINS, DIFFERENCES, SIGNS)
)
sum_margins.__doc__ = """Add the clipped gradients of margin losses, in units of the grid, as integers.

    out[j] += sum over records of trunc(c_i x_ij),   c_i = phi'(<x_i, w>, y_i) unit, or less: |c_i| ||x_i|| <= limit

    Shapes    X float64 or float32[n d]; labels, norms float64[n]; at float64[2, D]: w and ones, d entries each, then
              zeros, D a multiple of 8; rule float64[5]: number and parameter of the loss (losses.py), the norm that
              points are brought back to, or inf, unit, limit; address of the derivative of CUSTOM, else 0; tail of
              X's type[32 d + 8], sums float64[D]: work space; out int64[d]
    Cost      one read of X: 5.2 ms for 1e6 x 20 with AVX-512 and AVX2 alike
    Source    fastdp/optimizing/descent.md, lemmas 1 and 2
    Requires  limit <= 2^41; n limit < 2^62 over all calls
    Used by   fastdp/optimizing/points.py
    Oracle    tests/oracles/optimizing.py::clipped_gradients
    """
for _kernel, _gradients, _parameter in (
    (sum_differences, "squared distances", 2), (sum_signs, "absolute deviations", 1),
):  # fmt: skip
    _kernel.__doc__ = f"""Add the clipped gradients of {_gradients}, in units of the grid, as integers.

    Like      sum_margins; the parameter is {_parameter}, and number, bound and address mean nothing
    Shapes    as there; X float64
    Cost      as there
    Used by   fastdp/optimizing/points.py
    Oracle    tests/oracles/optimizing.py::clipped_gradients
    """
for _kernel, _name in (
    (sum_plain_margins, "sum_margins"), (sum_plain_differences, "sum_differences"), (sum_plain_signs, "sum_signs"),
):  # fmt: skip
    _kernel.__doc__ = f"""Add gradients as floats, neither rounded nor, with a limit of infinity, clipped; NOT PRIVATE.

    Like      {_name}
    Shapes    as there; out float64[d]
    Cost      as there
    Requires  unit 1; the last bits depend on nothing but the order of the records
    Used by   fastdp/optimizing/points.py
    Oracle    numpy
    """
