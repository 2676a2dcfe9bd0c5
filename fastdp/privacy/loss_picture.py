"""Lines as SVG, without a library: axes, ticks at powers of ten or round numbers, a grey that reads on any page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import ceil, floor, inf, log10

Panel = tuple[str, Sequence[tuple[float, float]], bool]  # a title, points, and whether the second axis is logarithmic
INK, LINE = "#7a7a7a", "#2f7ed8"
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BELOW = 380, 260, 52, 30, 14, 30


def picture(panels: Sequence[Panel]) -> str:
    """Panels beside each other; the first axis of each is logarithmic.

    Parameters
    ----------
    panels : sequence of tuple
        Of each a title, its points, and whether the second axis is logarithmic, too.

    Returns
    -------
    str
        An SVG document.
    """
    drawn = "".join(
        f'<g transform="translate({i * _WIDTH},0)">{_panel(title, [p for p in points if p[1] < inf], log)}</g>'
        for i, (title, points, log) in enumerate(panels)
    )
    size = f'width="{_WIDTH * len(panels)}" height="{_HEIGHT}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {_WIDTH * len(panels)} {_HEIGHT}" '
        f'font-family="DejaVu Sans, Arial, sans-serif" font-size="10" fill="{INK}">{drawn}</svg>'
    )


def _panel(title: str, points: Sequence[tuple[float, float]], log: bool) -> str:
    head = f'<text x="{_LEFT}" y="16" font-size="11">{escape(title)}</text>'
    log = log and all(y > 0 for _, y in points)
    if not points:
        return head
    across = _Axis([x for x, _ in points], _LEFT, _WIDTH - _RIGHT, log=True)
    up = _Axis([y for _, y in points], _HEIGHT - _BELOW, _TOP, log=log)
    bottom, right = _HEIGHT - _BELOW, _WIDTH - _RIGHT
    grid = [f"M{across.place(x):.1f} {_TOP}V{bottom}" for x in across.ticks]
    grid += [f"M{_LEFT} {up.place(y):.1f}H{right}" for y in up.ticks]
    texts = [
        f'<text x="{across.place(x):.1f}" y="{bottom + 14}" text-anchor="middle">{x:g}</text>' for x in across.ticks
    ]
    texts += [f'<text x="{_LEFT - 6}" y="{up.place(y) + 3:.1f}" text-anchor="end">{y:g}</text>' for y in up.ticks]
    line = " ".join(f"{across.place(x):.1f},{up.place(y):.1f}" for x, y in points)
    return (
        f'{head}<path d="{"".join(grid)}" stroke="{INK}" stroke-opacity=".25" fill="none"/>{"".join(texts)}'
        f'<polyline points="{line}" fill="none" stroke="{LINE}" stroke-width="1.8"/>'
    )


class _Axis:
    """Where numbers are on a line from `begin` to `end`."""

    def __init__(self, values: Sequence[float], begin: float, end: float, *, log: bool) -> None:
        self._log, self._begin, self._end = log, begin, end
        low, high = (min(values), max(values)) if log else (0.0, max(values) or 1.0)
        if log:
            first, last = floor(log10(low) + 1e-9), ceil(log10(high) - 1e-9)
            last = max(last, first + 1)
            stride = ceil((last - first) / 6)
            self.ticks = [10.0**k for k in range(first, last + 1, stride)]
            self._low, self._high = float(first), float(last)
        else:
            step = 10.0 ** floor(log10(high))
            step *= next(part for part in (0.1, 0.2, 0.5, 1.0, 2.0) if high / (step * part) <= 6)
            self.ticks = [step * k for k in range(ceil(high / step - 1e-9) + 1)]
            self._low, self._high = low, self.ticks[-1]

    def place(self, value: float) -> float:
        at = log10(value) if self._log else value
        return self._begin + (self._end - self._begin) * (at - self._low) / (self._high - self._low)


__all__ = ["picture"]
