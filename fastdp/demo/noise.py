"""Chapter: the noise, its law, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.text import Text

import fastdp

from .frame import NOISY, TRUE, Strip, duel, say, tidy

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure


@dataclass(frozen=True)
class _Drawn:
    """A million draws beside their exact law."""

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
    clock = duel(
        lambda: fastdp.laplace(values, sensitivity=1, epsilon=1 / 3), lambda: rng.laplace(scale=3, size=values.size)
    )
    say(
        console,
        f"Bars: {DRAWS:,} draws. Dots: the law. The bar that is farthest off is {max(map(np.max, gaps)):.1f} standard "
        f"errors from its dot; by chance alone it is below 3.3 in 95 of 100 runs.\n\n"
        "The noise is exact: integers from a cryptographic generator, no rounding that could give a record away. "
        f"[bold]{DRAWS:,} numbers take {clock.ours * 1e3:.2f} ms[/bold] on one thread. numpy's Generator.laplace, "
        f"neither exact nor cryptographic, takes {clock.theirs * 1e3:.2f} ms: "
        f"[bold]{clock.ratio:.1f} times as long[/bold].",
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
            tidy(axes, each.name)
        panels[0].set_ylabel("probability, log scale")
        clock.draw(panels[2], f"{DRAWS:,} Laplace draws")

    return Strip(3.6, draw)


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
