"""Chapter: releases under one budget, and what many of them cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console

import fastdp

from ..privacy.origin import short_form
from .frame import LAW, MUTED, NOISY, TRUE, Strip, say, show, table_of, tidy

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure


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
    table = table_of(("mechanism", "guarantee", "total"), texts=3)
    for row in budget.releases:
        table.add_row(row.mechanism, _bare(row.guarantee), _bare(row.total))
    show(console, table)
    counts = [1, 2, 5, 10, 20, 50, 100, 200, 500]
    epsilons = {
        name: [
            fastdp.compose((fastdp.PureDP(0.05), count), delta=1e-6, using=using).to_approx(1e-6).epsilon
            for count in counts
        ]
        for name, using in _THEOREMS.items()
    }
    least = [min(curve[i] for curve in epsilons.values()) for i in range(len(counts))]
    say(
        console,
        "with fastdp.Budget(epsilon=1, delta=1e-6): three releases, each charged. "
        f"One more is refused: [italic]{refused}[/italic].\n\n"
        "Many small releases cost less than their sum: 500 of epsilon 0.05 are together "
        f"[bold]{least[-1]:.2f}[/bold] at delta 1e-6, not 25. `fastdp.compose` takes the theorem that gives the least.",
    )

    def draw(part: SubFigure) -> None:
        axes = part.subplots()
        styles = ((":", MUTED), ("--", TRUE), ("-.", TRUE), ("-", LAW), ("--", LAW), ("-", NOISY))
        for (name, curve), (style, color) in zip(epsilons.items(), styles, strict=True):
            axes.plot(counts, curve, style, label=name, linewidth=1.6, color=color)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("releases of epsilon 0.05 each")
        axes.set_ylabel("total epsilon at delta = 1e-6")
        axes.legend(frameon=False, fontsize=8)
        tidy(axes, "What many releases cost together, by theorem")

    return Strip(3.4, draw)


def _bare(guarantee: Any) -> str:
    """The first form of a guarantee, without its relation."""
    return short_form(guarantee).split(" and ")[0]


_THEOREMS: dict[str, Any] = {
    "sum": "basic",
    "advanced composition": "advanced",
    "Kairouz, Oh, Viswanath": "heterogeneous",
    "zCDP": "zcdp",
    "Renyi": "renyi",
    "loss distributions": "pld",
}
