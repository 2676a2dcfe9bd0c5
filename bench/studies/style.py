"""How the pictures of studies look: ink and colours that are read on white and on dark alike, no background."""

from __future__ import annotations

from typing import Any

INK = "#7a7a7a"  # of letters and axes: as far from white as from the dark of a screen
COLOURS = ("#2f7ed8", "#d9822b", "#c23b5a", "#2a9d6f", "#8a63c9")
MARKS = ("o", "s", "^", "D", "v")


def style() -> Any:
    """For matplotlib's rc_context. The same numbers give the same bytes."""
    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color")
    return dict.fromkeys(inked, INK) | {
        "svg.fonttype": "none",
        "svg.hashsalt": "fastdp",
        "font.size": 9,
        "font.family": "sans-serif",
        "font.sans-serif": ["DejaVu Sans", "Arial"],
    }


def finish(axes: Any) -> None:
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.patch.set_alpha(0)
