"""How many records learning takes, as docs/learning.svg: errors that are measured, and their bounds, dashed.

    python -m fastdp.bench.studies.samples

Four panels show errors of `learn_conjunction` on several tasks: of these the one that a method finds hardest is drawn,
as theorems speak of the worst records. The labels ask for a 1 in each of k columns, which are 1 equally often, so that
half of the records have all of them, or of which one decides about a quarter of the records, the next about fewer, the
last about one in 4,000. The other columns are 1 in half of the records, in a sixteenth, or in few.

Two panels show how many records the bounds ask for. Needs matplotlib; takes some two minutes. It also prints the
numbers as tables, and how often an error exceeded its bound.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import log, nan
from pathlib import Path
from typing import Any

import numpy as np

import fastdp
from fastdp import PrivacyWarning, Randomness, bounds
from fastdp.records.bit_words import all_bits
from fastdp.records.packed import PackedRows

from ..reports.table import Column, Line, Table, cell, to_markdown
from .style import COLOURS, INK, MARKS, finish, style

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "learning.svg"
SEEDS = 5
EPSILON, DELTA, BETA = 1.0, 1e-6, 0.05
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
WIDTHS, LITERALS = (100, 1_000), (3, 10)
THINNED = (1, 4, 8)  # other columns are 1 with probability 2^-1, 2^-4, 2^-8
ERROR, COUNTS = 0.05, (1, 4, 16, 64)
LEAST, MOST = 1e-5, 1.5  # of the axis of errors

CONJUNCTIONS = ("peel", "greedy", "counts", "exhaustive")
STYLES = dict(zip((*CONJUNCTIONS, "interior-point"), zip(COLOURS, MARKS, strict=True), strict=True))


@dataclass(frozen=True)
class Point:
    """A method at some n: the median error over seeds, on the task that is hardest for it, and its bound."""

    n: int
    error: float
    bound: float


@dataclass
class Kept:
    """How often an error exceeded its bound, of how many that had one."""

    stated: int = 0
    exceeded: int = 0


Errors = dict[str, list[Point]]
Needs = dict[tuple[str, float], list[int]]  # records, by method and delta


def records(n: int, d: int, k: int, *, evenly: bool, thinned: int) -> tuple[PackedRows, Any]:
    rng = np.random.default_rng(0)
    shape = d, -(-n // 64)
    words = rng.integers(0, 2**64, shape, np.uint64)
    for _ in range(thinned - 1):
        words &= rng.integers(0, 2**64, shape, np.uint64)
    words &= all_bits(n)
    y = np.ones(n, np.bool_)
    for j, missing in enumerate(np.full(k, 1 - 2 ** (-1 / k)) if evenly else np.geomspace(1 / 4, 1 / 4_000, k)):
        column = rng.random(n, np.float32) >= missing
        words[j] = fastdp.pack(column[:, None]).words[0]
        y &= column
    return PackedRows(words, n), y


def measure(d: int, k: int, kept: Kept) -> Errors:
    found: Errors = {}
    for n in SIZES:
        errors: dict[str, list[float]] = {}
        bound: dict[str, float] = {}
        for evenly, thinned in product((True, False), THINNED):
            X, y = records(n, d, k, evenly=evenly, thinned=thinned)
            for method in CONJUNCTIONS:
                if method == "exhaustive" and not _feasible(d, k):
                    continue
                learned = [_learn(X, y, k, method, seed) for seed in range(SEEDS)]
                some = [h.error(X, y) for h in learned]
                bound[method] = learned[0].error_bound
                if bound[method] < 1:
                    kept.stated += SEEDS
                    kept.exceeded += sum(error > bound[method] for error in some)
                errors.setdefault(method, []).append(float(np.median(some)))
        for method, medians in errors.items():
            point = Point(n, max(medians), bound[method])
            found.setdefault(method, []).append(point)
            print(
                f"d={d:<6} k={k:<4} n={n:<10,} {method:12} error {point.error:.2e}  bound {point.bound:.2e}", flush=True
            )
    return found


def _learn(X: PackedRows, y: Any, k: int, method: Any, seed: int) -> Any:
    return fastdp.learn_conjunction(
        X, y, k=k, epsilon=EPSILON, delta=DELTA, method=method, realizable=True, beta=BETA, rng=Randomness(seed=seed)
    )


def _feasible(d: int, k: int) -> bool:
    return k == 3 and d == 100  # 1,333,501 conjunctions; with more columns 2^30, and with more literals 2^53


def needed(methods: tuple[str, ...], need: Callable[..., int]) -> Needs:
    """How many records bound the error by 5 %, with a delta and without one."""
    found: Needs = {}
    for method in methods:
        for delta in (DELTA, 0.0):
            many = [
                need(count, error=ERROR, epsilon=EPSILON, delta=delta, method=method, beta=BETA) for count in COUNTS
            ]
            found[method, delta] = many
            print(f"{method:15} delta={delta:<6g} " + "  ".join(f"{n:,}" for n in many), flush=True)
    return found


def _for_literals(k: int, **terms: Any) -> int:
    return int(bounds.learn_conjunction_n(WIDTHS[-1], k=k, realizable=True, **terms))


def _power(many: list[int]) -> float:
    """Of the growth over the last factor."""
    return log(many[-1] / many[-2]) / log(COUNTS[-1] / COUNTS[-2])


# --- tables and pictures


def tables(errors: dict[tuple[int, int], Errors], needs: dict[str, Needs]) -> str:
    """The numbers as Markdown: errors, and bounds in brackets; then records."""
    parts = []
    for (k, d), curves in errors.items():
        rows = [(method, *(f"{_share(p.error)} ({_share(p.bound)})" for p in of)) for method, of in curves.items()]
        parts.append(_table((f"k = {k}, d = {d:,}", *(f"n = {n:,}" for n in SIZES)), rows))
    for axis, found in needs.items():
        rows = [
            (f"{method}, delta = {delta:g}", *(f"{n:,}" for n in many), f"{axis}^{_power(many):.2f}")
            for (method, delta), many in found.items()
        ]
        parts.append(_table((f"{axis} =", *map(str, COUNTS), "grows like"), rows))
    return "\n".join(parts)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    first, *others = headings
    columns = (Column(first), *(Column(other, number=True) for other in others))
    return to_markdown(Table(columns, tuple(Line(tuple(map(cell, row))) for row in rows)))


def _share(value: float) -> str:
    return "-" if value >= 1 else f"{100 * value:.2g} %"


def draw(errors: dict[tuple[int, int], Errors], needs: dict[str, Needs], path: Path) -> None:
    """Four panels of errors, two of numbers of records."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(style()):
        figure = Figure(figsize=(10, 11.5), layout="constrained")
        panels = figure.subplots(3, 2)
        for axes, ((k, d), curves) in zip(panels[:2].flat, errors.items(), strict=True):
            _draw_errors(axes, curves)
            axes.set(title=f"k = {k} literals, d = {d:,} columns", xlabel="records", ylabel="error", ylim=(LEAST, MOST))
        for axes, (axis, found) in zip(panels[2], needs.items(), strict=True):
            _draw_needs(axes, axis, found)
        panels[2][0].set_title(f"error bound {ERROR:.0%}: literals k (d = {WIDTHS[-1]:,})")
        panels[2][1].set_title(f"error bound {ERROR:.0%}: boxes in d dimensions (64 bits)")
        for axes in panels.flat:
            finish(axes)
        figure.legend(handles=_legend(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
        figure.savefig(path, transparent=True, metadata={"Date": None})


def _draw_errors(axes: Any, curves: Errors) -> None:
    """What was measured, and dashed where there is one, the bound."""
    for method, points in curves.items():
        colour, mark = STYLES[method]
        at, measured = [p.n for p in points], [max(p.error, LEAST / 100) for p in points]
        axes.loglog(at, measured, mark + "-", color=colour, markersize=4, linewidth=1.6)
        axes.loglog(at, [p.bound if p.bound < 1 else nan for p in points], "--", color=colour, linewidth=1)


def _draw_needs(axes: Any, axis: str, found: Needs) -> None:
    """With a delta, and dotted without one; what they grow like beside where they end."""
    for (method, delta), many in found.items():
        colour, mark = STYLES[method]
        axes.loglog(COUNTS, many, mark + ("-" if delta else ":"), color=colour, markersize=4, linewidth=1.6)
    axes.set(xlim=(COUNTS[0] / 1.2, COUNTS[-1] * 2.4), xlabel=axis, ylabel="records")
    axes.set_xticks(COUNTS, [str(count) for count in COUNTS])
    for (method, delta), (power, higher) in GROWTH[axis].items():
        end = COUNTS[-1], found[method, delta][-1]
        axes.annotate(f"~ {axis}{power}", end, (6, higher), "data", "offset points", va="center")


def _legend() -> list[Any]:
    from matplotlib.lines import Line2D

    return [
        *(
            Line2D([], [], color=colour, marker=mark, linestyle="-", markersize=4, linewidth=1.6, label=method)
            for method, (colour, mark) in STYLES.items()
        ),
        Line2D([], [], color=INK, linestyle="--", linewidth=1, label="error bound"),
        Line2D([], [], color=INK, linestyle=":", linewidth=1.6, label="delta = 0"),
    ]


# what the bounds grow like, and by how much a label stands higher than its curve ends
GROWTH: dict[str, dict[tuple[str, float], tuple[str, int]]] = {
    "k": {
        ("peel", DELTA): ("", 0),
        ("greedy", DELTA): ("$^{1.5}$", 0),
        ("peel", 0.0): ("²", 0),
        ("greedy", 0.0): ("²", 0),
    },
    "d": {
        ("peel", DELTA): ("", 0),
        ("interior-point", DELTA): ("$^{1.5}$", 0),
        ("peel", 0.0): ("²", 3),
        ("interior-point", 0.0): ("²", -3),
    },
}


def main() -> None:
    kept = Kept()
    with warnings.catch_warnings():  # that whoever knows a seed knows the noise
        warnings.simplefilter("ignore", PrivacyWarning)
        errors = {(k, d): measure(d, k, kept) for k in LITERALS for d in WIDTHS}
    needs = {
        "k": needed(("peel", "greedy"), _for_literals),
        "d": needed(("peel", "interior-point"), partial(bounds.learn_box_n, realizable=True)),
    }
    print(tables(errors, needs))
    print(f"{kept.exceeded} of {kept.stated} errors exceeded their bounds, each with probability at most {BETA:g}")
    assert kept.exceeded <= BETA * kept.stated
    draw(errors, needs, PICTURE)


if __name__ == "__main__":
    main()
