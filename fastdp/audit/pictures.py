"""Pictures of audits, as SVG without a library, in the manner of loss_picture.py."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..privacy.loss_picture import INK, LINE

Bar = tuple[str, float, str]  # its name, its length, what stands beside it
Line = Sequence[tuple[float, float]]

BAD = "#d7263d"
_MOST_BARS = 40
_SIDE, _LEFT, _TOP = 260, 46, 30


def _document(width: int, height: int, drawn: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="DejaVu Sans, Arial, sans-serif" font-size="10" fill="{INK}">{drawn}</svg>'
    )


def bars(title: str, rows: Sequence[Bar], limit: float) -> str:
    """A bar for each row, beside a line at the limit; a bar beyond it has another colour.

    Parameters
    ----------
    title : str
        What the bars are.
    rows : sequence of tuple
        Of each its name, its length, and what stands beside it.
    limit : float > 0
        Where the line is.

    Returns
    -------
    str
        An SVG document.
    """
    rows = rows[:_MOST_BARS]
    unit = 220 / max(2 * limit, min(4 * limit, max((length for _, length, _ in rows), default=limit)))
    drawn = [f'<text x="4" y="14" font-size="11">{escape(title)}</text>']
    for i, (name, length, text) in enumerate(rows):
        y, width = 26 + 18 * i, unit * min(length, 4 * limit)
        colour = BAD if length > limit * (1 + 1e-9) else LINE
        drawn.append(
            f'<text x="150" y="{y + 10}" text-anchor="end">{escape(name[:26])}</text>'
            f'<rect x="156" y="{y}" width="{max(width, 1):.1f}" height="13" fill="{colour}"/>'
            f'<text x="{max(160 + width, 160 + unit * limit):.1f}" y="{y + 10}">{escape(text)}</text>'
        )
    at = 156 + unit * limit
    drawn.append(f'<path d="M{at:.1f} 22V{26 + 18 * len(rows)}" stroke="{INK}" stroke-dasharray="4 3"/>')
    return _document(640, 34 + 18 * len(rows), "".join(drawn))


def trade_off(title: str, claimed: Line, seen: tuple[float, float], bound: tuple[float, float], passed: bool) -> str:
    """The errors of a test of one input against the other: the least that a claim allows, and those that were made.

    Parameters
    ----------
    title : str
        What stands above.
    claimed : sequence of tuple
        Points of the claimed trade-off, each a false and a missed alarm; empty without a claim.
    seen : tuple of float
        The rates of the test.
    bound : tuple of float
        The same at the ends of their confidence intervals: where this lies below the claim, the claim is refuted.
    passed : bool
        Whether it does not.

    Returns
    -------
    str
        An SVG document.
    """

    def place(point: tuple[float, float]) -> str:
        return f"{_LEFT + _SIDE * point[0]:.1f},{_TOP + _SIDE * (1 - point[1]):.1f}"

    ticks = [k / 4 for k in range(5)]
    grid = [f"M{_LEFT + _SIDE * t:.0f} {_TOP}v{_SIDE}M{_LEFT} {_TOP + _SIDE * t:.0f}h{_SIDE}" for t in ticks]
    drawn = [
        f'<text x="{_LEFT}" y="16" font-size="11">{escape(title)}</text>',
        f'<path d="{"".join(grid)}" stroke="{INK}" stroke-opacity=".25" fill="none"/>',
        *(
            f'<text x="{_LEFT + _SIDE * t:.0f}" y="{_TOP + _SIDE + 14}" text-anchor="middle">{t:g}</text>'
            f'<text x="{_LEFT - 6}" y="{_TOP + _SIDE * (1 - t) + 3:.0f}" text-anchor="end">{t:g}</text>'
            for t in ticks
        ),
        f'<text x="{_LEFT + _SIDE / 2}" y="{_TOP + _SIDE + 30}" text-anchor="middle">false alarms</text>',
        f'<text x="12" y="{_TOP + _SIDE / 2}" text-anchor="middle" '
        f'transform="rotate(-90 12 {_TOP + _SIDE / 2})">missed</text>',
        f'<path d="M{place((0, 1))}L{place((1, 0))}" stroke="{INK}" stroke-dasharray="2 4"/>',
    ]
    if claimed:
        points = " ".join(place(point) for point in claimed)
        drawn.append(f'<polyline points="{points}" fill="none" stroke="{LINE}" stroke-width="1.8"/>')
    colour = LINE if passed else BAD
    x, y = place(bound).split(",")
    drawn.append(f'<path d="M{place(seen)}L{place(bound)}" stroke="{colour}"/>')
    drawn.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>')
    return _document(_LEFT + _SIDE + 20, _TOP + _SIDE + 40, "".join(drawn))
