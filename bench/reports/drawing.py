"""Throughput curves as SVG: ours, numpy's and what the machine could do at most, on logarithmic axes.

The lines take the colours of the page that they stand in (--ink, --ours, --other, --limit), so that they can be read on
a dark screen and in print; `standing_alone` brings colours of its own.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

INK, OURS, MORE, OTHER, LIMIT = "#010203", "#040506", "#0d0e0f", "#070809", "#0a0b0c"  # stand for the page's colours
_VARIABLES = {INK: "--ink", OURS: "--ours", MORE: "--ours", OTHER: "--other", LIMIT: "--limit"}
_ALONE = """<style>
svg { --ink: #24292f; --ours: #c4314b; --other: #2f6fb3; --limit: #8a8f98; }
@media (prefers-color-scheme: dark) { svg { --ink: #dfe3e8; --ours: #ff7b91; --other: #6fb0f2; --limit: #7d848e; } }
</style>"""


def curve_svg(curve: dict[str, Any]) -> str:
    """One curve."""
    return svg_of(_drawn([curve], columns=1))


def curves_svg(curves: Sequence[dict[str, Any]], columns: int = 3) -> str:
    """All curves as one picture that needs no page."""
    return standing_alone(svg_of(_drawn(curves, columns)))


def standing_alone(svg: str) -> str:
    """A picture with colours of its own."""
    head, tail = svg[: svg.index(">") + 1], svg[svg.index(">") + 1 :]
    return f"{head}{_ALONE}{tail}"


def style() -> Any:
    """For matplotlib's rc_context. The same numbers give the same bytes."""
    style: Any = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    return style | {"svg.fonttype": "none", "svg.hashsalt": "fastdp", "font.size": 9, "grid.color": LIMIT}


def _drawn(curves: Sequence[dict[str, Any]], columns: int) -> str:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = -(-len(curves) // columns)
    with rc_context(style()):
        figure = Figure(figsize=(5.2 * columns, 3.5 * rows), layout="constrained")
        every = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, curve in zip(every, curves, strict=False):
            _draw(axes, curve)
        for axes in every[len(curves) :]:
            axes.set_axis_off()
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return out.getvalue()


def _draw(axes: Any, curve: dict[str, Any]) -> None:
    points = curve["points"]
    threads = sorted({number for point in points for number in point["threads"]}, key=int)
    lines: list[tuple[str, str, str, list[float | None]]] = [
        ("fastdp", OURS, "o-", [point["ours"] for point in points]),
        *(
            (f"fastdp, {number} threads", MORE, "o:", [point["threads"].get(number) for point in points])
            for number in threads
        ),
        (curve["numpy"], OTHER, "s-", [point["numpy"] for point in points]),
        ("limit of the machine", LIMIT, "--", [point["limit"] for point in points]),
    ]
    for label, color, line, speeds in lines:
        known = [(point["x"], speed) for point, speed in zip(points, speeds, strict=True) if speed]
        if known:
            axes.loglog(*zip(*known, strict=True), line, color=color, label=label, markersize=3.5, linewidth=1.6)
    axes.set(title=curve["title"], xlabel=curve["axis"], ylabel="elements a second")
    axes.grid(alpha=0.25)
    axes.minorticks_off()
    axes.patch.set_alpha(0)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3)


def svg_of(svg: str) -> str:
    """What matplotlib wrote, in the colours of the page that it stands in."""
    svg = svg[svg.index("<svg") :]
    for colour, variable in _VARIABLES.items():
        svg = re.sub(colour, f"var({variable})", svg, flags=re.IGNORECASE)
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
