"""Chapter: many queries on census records, one after the other and all at once."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

import fastdp

from ..answering.true_answers import TrueAnswers
from ..answering.workload import Workload
from ..support.errors import AccuracyWarning
from .frame import MUTED, NOISY, TRUE, Strip, say, show, table_of, tidy
from .records import census

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure


def many_queries(console: Console) -> Strip:
    """Private multiplicative weights on census records: true against private answers."""
    records = census()
    domain = fastdp.Domain({name: sorted(set(column.tolist())) for name, column in records.items()})
    workload = fastdp.marginals(domain, 2)
    privacy: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    start = perf_counter()
    with warnings.catch_warnings():  # of the smaller error bound of plain noise for so few queries: see the text below
        warnings.simplefilter("ignore", AccuracyWarning)
        pmw = fastdp.PrivateMultiplicativeWeights(
            records, domain, max_queries=len(workload), variant="measured", **privacy
        )
    online = pmw.answer_many(workload)
    seconds = perf_counter() - start
    n = pmw.n
    exact = _true_answers(records, domain, workload)
    offline = fastdp.mwem(records, domain, workload, variant="measured", **privacy).answer_many(workload)

    table = table_of(("share of mothers with", "true", "online", "offline"))
    some = np.argsort(-exact)[np.linspace(0, 120, 6).astype(int)]
    for i in some.tolist():
        what = ", ".join(f"{name} = {value}" for name, value in workload[i].allowed.items())
        table.add_row(what, *(f"{answers[i]:.4f}" for answers in (exact, online, offline)))
    show(console, table)
    say(
        console,
        f"{n:,} records of the 1980 US census (AER/Fertility), {domain.size:,} cells, {len(workload):,} queries, all "
        "for epsilon = 1, delta = 1e-6. PrivateMultiplicativeWeights takes them one by one, in "
        f"[bold]{seconds:.2f} s[/bold], with every answer within {pmw.alpha:.3f}, its error bound; the worst is off by "
        f"{np.abs(online - exact).max():.4f}. It counted {pmw.updates} of them on the records, and paid for these "
        "alone, which is worth it from thousands of queries on; for fewer its default is plain noise. mwem "
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
            tidy(axes, name)
        low, high = np.array([0.0, 1.0]) - pmw.alpha, np.array([0.0, 1.0]) + pmw.alpha
        panels[0].fill_between([0, 1], low, high, color=MUTED, alpha=0.15, label=f"error bound: within {pmw.alpha:.3f}")
        panels[0].legend(frameon=False, fontsize=8, loc="upper left")

    return Strip(3.6, draw)


def _true_answers(records: dict[str, Any], domain: fastdp.Domain, workload: Any) -> Any:
    truth = TrueAnswers(records, domain)
    return Workload(workload, domain).counts(truth) / (truth.n * 2.0**16)
