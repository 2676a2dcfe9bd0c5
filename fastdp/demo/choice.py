"""Chapter: one of a few candidates, and one of a million."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

import fastdp

from .frame import LAW, NOISY, TRUE, Strip, duel, say, show, table_of, tidy

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

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

    table = table_of(("", "score", *shares, "law"))
    for i, (name, score) in enumerate(surveys.items()):
        table.add_row(name, str(score), *(f"{share[i]:.3f}" for share in shares.values()), f"{law[i]:.3f}")
    show(console, table)

    many = np.random.default_rng(0).normal(scale=10, size=CANDIDATES)
    rng = np.random.default_rng()
    clock = duel(
        lambda: fastdp.exponential_mechanism(many, **terms),
        lambda: np.argmax(many / 2 + rng.gumbel(size=CANDIDATES)),
    )
    say(
        console,
        "Which clinic had the most visitors? fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=1) names one, "
        f"better ones exponentially likelier: the shares of {draws:,} draws of this law, and of permute-and-flip, "
        "which picks the best ones more often for the same epsilon.\n\n"
        f"[bold]One of {CANDIDATES:,} candidates takes {clock.ours * 1e3:.2f} ms[/bold], exactly, on one thread; "
        f"numpy's argmax of Gumbel noise, in floats, {clock.theirs * 1e3:.1f} ms: "
        f"[bold]{clock.ratio:.0f} times as long[/bold].",
    )

    def draw(part: SubFigure) -> None:
        axes, right = part.subplots(1, 2, width_ratios=[2.4, 0.8])
        place = np.arange(scores.size)
        for i, ((name, share), color) in enumerate(zip(shares.items(), (TRUE, NOISY), strict=True)):
            axes.bar(place + 0.36 * i - 0.18, share, width=0.34, color=color, label=name)
        axes.plot(place - 0.18, law, "o", color=LAW, markersize=4, label="the law of the former")
        axes.set_xticks(place, [f"{name}\n{score}" for name, score in surveys.items()])
        axes.set_ylabel("chosen")
        axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.6, 1))
        tidy(axes, f"One of five, epsilon = 1, {draws:,} times")
        clock.draw(right, f"One of {CANDIDATES:,}")

    return Strip(3.0, draw)
