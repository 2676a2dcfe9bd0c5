"""A measured table beside the fitted one, as an SVG picture: bars of one attribute, shaded cells of several."""

from __future__ import annotations

import html
from math import prod

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.float64]

MOST_CELLS = 4096  # of a table that is drawn
_WIDTH, _HEIGHT, _TOP, _GAP = 200, 90, 18, 24


def picture_of(columns: tuple[str, ...], noisy: Table, fitted: Table) -> str:
    """Both with the same scale; of three attributes and more, the last ones together along the second axis.

    A table of more than 4,096 cells is named alone.
    """
    name = html.escape(" x ".join(columns))
    shapes, width = [], 2 * _WIDTH + _GAP
    most = max(float(noisy.max()), float(fitted.max()), 1e-9)
    for place, (title, table) in enumerate((("noisy", noisy), ("fitted", fitted))):
        left = place * (_WIDTH + _GAP)
        shapes.append(f'<text x="{left}" y="12">{name}: {title}</text>')
        if table.size <= MOST_CELLS:
            draw = _bars if table.ndim == 1 else _cells
            shapes += draw(np.clip(table / most, 0.0, 1.0), left)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{_TOP + _HEIGHT}" font-family="sans-serif" '
        f'font-size="11" fill="#7a7a7a">{"".join(shapes)}</svg>'
    )


def _bars(heights: Table, left: int) -> list[str]:
    each = _WIDTH / heights.size
    return [
        f'<rect x="{left + i * each:.1f}" y="{_TOP + _HEIGHT * (1 - height):.1f}" width="{0.9 * each:.1f}" '
        f'height="{_HEIGHT * height:.1f}" fill="#3355cc"/>'
        for i, height in enumerate(heights.tolist())
    ]


def _cells(shades: Table, left: int) -> list[str]:
    rows = shades.reshape(shades.shape[0], prod(shades.shape[1:]))
    high, wide = _HEIGHT / rows.shape[0], _WIDTH / rows.shape[1]
    return [
        f'<rect x="{left + j * wide:.1f}" y="{_TOP + i * high:.1f}" width="{wide:.1f}" height="{high:.1f}" '
        f'fill="rgb({(level := round(255 * (1 - shade)))},{level},255)"/>'
        for i, row in enumerate(rows.tolist())
        for j, shade in enumerate(row)
    ]
