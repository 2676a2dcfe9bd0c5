"""Sums over an attribute of a table, and back: what marginal tables of domains of any sizes are made of.

A step takes a table of shape (outer, size, inner) to one of (outer, inner). fastdp/answering/marginal_transform.py
plans the steps
so that tables share them; they run here one after the other. Every entry is added up in an order that depends on the
shape alone, so the bits are the same for any number of threads and on every machine.
"""

from typing import Any

from .compile import jit
from .lanes import F64Array, I64Array, load, mix, stack, store
from .layout import LANES

_TILE = 1024  # sums that are added to at a time: 8 KiB
_LONG = 4  # entries of the middle axis, from which on


@jit
def sum_axis_into(x: Any, at: int, out: Any, to: int, size: int, inner: int, start: int, stop: int) -> None:
    """Entries `start` to `stop` of a table summed over its middle axis.

    out[o, i] = sum over m of x[o, m, i]

    Shapes    x int64 or float64[outer, size, inner] from place `at` on; out[outer, inner] of that type, from `to` on
    Cost      one read of x
    Requires  start a multiple of 4; stop, too, or the end
    Used by   fastdp/answering/marginal_transform.py
    Oracle    numpy sum over axes
    """
    if inner < LANES and LANES % inner == 0 and size * inner >= 2 * LANES:
        sum_runs_into(x, at, out, to, size * inner, inner, start // inner, stop // inner)
        return
    for o in range(start // inner, (stop + inner - 1) // inner):
        i = max(start - o * inner, 0)
        end = min(stop - o * inner, inner)
        first = at + o * size * inner
        put = to + o * inner
        while size >= _LONG and i + 4 * LANES <= end:
            n = min(_TILE, (end - i) // (4 * LANES) * (4 * LANES))
            sum_tile_into(x, first + i, size, inner, out, put + i, n)
            i += n
        while i + 8 * LANES <= end:
            p = first + i
            a, b, c, d = load(x, p, LANES), load(x, p + 8, LANES), load(x, p + 16, LANES), load(x, p + 24, LANES)
            e, f, g, h = load(x, p + 32, LANES), load(x, p + 40, LANES), load(x, p + 48, LANES), load(x, p + 56, LANES)
            for p in range(first + inner + i, first + size * inner, inner):
                a, b = a + load(x, p, LANES), b + load(x, p + 8, LANES)
                c, d = c + load(x, p + 16, LANES), d + load(x, p + 24, LANES)
                e, f = e + load(x, p + 32, LANES), f + load(x, p + 40, LANES)
                g, h = g + load(x, p + 48, LANES), h + load(x, p + 56, LANES)
            store(out, put + i, a)
            store(out, put + i + 8, b)
            store(out, put + i + 16, c)
            store(out, put + i + 24, d)
            store(out, put + i + 32, e)
            store(out, put + i + 40, f)
            store(out, put + i + 48, g)
            store(out, put + i + 56, h)
            i += 8 * LANES
        while i + LANES <= end:
            a = load(x, first + i, LANES)
            for p in range(first + inner + i, first + size * inner, inner):
                a = a + load(x, p, LANES)
            store(out, put + i, a)
            i += LANES
        while i < end:
            total = x[first + i]
            for p in range(first + inner + i, first + size * inner, inner):
                total += x[p]
            out[put + i] = total
            i += 1


@jit(inline=True)
def sum_tile_into(x: Any, first: int, size: int, inner: int, out: Any, put: int, n: int) -> None:
    """The same for n neighbours, whose sums stay in the L1 cache: x is read in long pieces, 1.6 times as fast."""
    for i in range(0, n, LANES):
        store(out, put + i, load(x, first + i, LANES))
    for p in range(first + inner, first + size * inner, inner):
        for i in range(0, n, 4 * LANES):
            a, b = load(out, put + i, LANES), load(out, put + i + 8, LANES)
            c, d = load(out, put + i + 16, LANES), load(out, put + i + 24, LANES)
            store(out, put + i, a + load(x, p + i, LANES))
            store(out, put + i + 8, b + load(x, p + i + 8, LANES))
            store(out, put + i + 16, c + load(x, p + i + 16, LANES))
            store(out, put + i + 24, d + load(x, p + i + 24, LANES))


@jit(inline=True)
def sum_runs_into(x: Any, at: int, out: Any, to: int, run: int, inner: int, start: int, stop: int) -> None:
    """The same for 1, 2 or 4 columns: 8 neighbours at a time, folded at the end."""
    last = stack(x.dtype, LANES)
    for o in range(start, stop):
        p, end = at + o * run, at + (o + 1) * run
        a = load(x, p, LANES)
        p += LANES
        while p + LANES <= end:
            a = a + load(x, p, LANES)
            p += LANES
        a = mix(a, 4)
        if inner < 4:
            a = mix(a, 2)
        if inner < 2:
            a = mix(a, 1)
        store(last, 0, a)
        for i in range(end - p):
            last[i % inner] += x[p + i]
        for i in range(inner):
            out[to + o * inner + i] = last[i]


@jit
def spread_axis(
    x: F64Array, at: int, out: F64Array, to: int, size: int, inner: int, add: int, start: int, stop: int
) -> None:
    """`sum_axis_into` the other way round: out[o, m, i] = x[o, i], plus what is there if `add` is 1.

    Shapes    x float64[outer, inner] from place `at` on, entries `start` to `stop` of it; out [outer, size, inner]
    Cost      one write of out, and one read if add
    Used by   fastdp/answering/marginal_transform.py
    Oracle    numpy broadcasts
    """
    for o in range(start // inner, (stop + inner - 1) // inner):
        begin = max(start - o * inner, 0)
        end = min(stop - o * inner, inner)
        get = at + o * inner
        for p in range(to + o * size * inner, to + (o + 1) * size * inner, inner):
            i = begin
            if add:
                while i + LANES <= end:
                    store(out, p + i, load(out, p + i, LANES) + load(x, get + i, LANES))
                    i += LANES
                while i < end:
                    out[p + i] += x[get + i]
                    i += 1
            else:
                while i + LANES <= end:
                    store(out, p + i, load(x, get + i, LANES))
                    i += LANES
                while i < end:
                    out[p + i] = x[get + i]
                    i += 1


@jit
def run_sums(x: Any, space: Any, steps: I64Array, first: int, stop: int) -> None:
    """Take steps `first` to `stop` of a plan.

    Shapes    x int64 or float64, the whole table; space of the same type; steps int64[s, 6]: where the table is in
              `space`, or -1 for x; where its sums go in `space`; outer, size, inner; and a flag for `run_spreads`
    Cost      that of its steps
    Requires  steps as fastdp/answering/marginal_transform.py plans them
    Used by   fastdp/answering/marginal_transform.py
    Oracle    numpy sums over axes
    """
    for s in range(first, stop):
        at, to, outer, size, inner = steps[s, 0], steps[s, 1], steps[s, 2], steps[s, 3], steps[s, 4]
        if at < 0:
            sum_axis_into(x, 0, space, to, size, inner, 0, outer * inner)
        else:
            sum_axis_into(space, at, space, to, size, inner, 0, outer * inner)


@jit
def run_spreads(x: F64Array, space: F64Array, steps: I64Array, first: int, stop: int) -> None:
    """Take steps `stop` - 1 down to `first` of a plan the other way round; the flag says whether to add.

    Like      run_sums, from the last step to the first
    Shapes    as there, of float64
    Cost      that of its steps
    Requires  steps as fastdp/answering/marginal_transform.py plans them
    Used by   fastdp/answering/marginal_transform.py
    Oracle    numpy broadcasts
    """
    for s in range(stop - 1, first - 1, -1):
        at, to, outer, size, inner, add = steps[s, 0], steps[s, 1], steps[s, 2], steps[s, 3], steps[s, 4], steps[s, 5]
        if at < 0:
            spread_axis(space, to, x, 0, size, inner, add, 0, outer * inner)
        else:
            spread_axis(space, to, space, at, size, inner, add, 0, outer * inner)
