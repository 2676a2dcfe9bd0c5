"""A results file as one page: `fastdp bench --html report.html`. Tables, curves, the machine, the versions.

The page is one file without a network: curves are SVG that takes the colours of the page, which follow the reader's
choice of light or dark and are black on white in print. Nothing is measured here, and every number comes from the file.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..machine import SIMD_NAMES
from .runner import digits, seconds

INK, OURS, OTHER, LIMIT = "#010203", "#040506", "#070809", "#0a0b0c"  # stand for the colours of the page in drawings
_VARIABLES = {INK: "--ink", OURS: "--ours", OTHER: "--other", LIMIT: "--limit"}

_STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #24292f; --soft: #6b737c; --line: #d8dee4; --ours: #c4314b;
        --other: #2f6fb3; --limit: #8a8f98; --good: #1a7f37; --bad: #b35900; --band: #f6f8fa; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #14171c; --ink: #dfe3e8; --soft: #98a1ab; --line: #343a43; --ours: #ff7b91; --other: #6fb0f2;
          --limit: #7d848e; --good: #56d364; --bad: #e3a04f; --band: #1b1f26; } }
@media print { :root { --paper: #fff; --ink: #000; --soft: #444; --line: #bbb; --ours: #a01030; --other: #1f4f8a;
          --limit: #777; --good: #0a5c25; --bad: #8a4500; --band: #fff; } figure, tr { break-inside: avoid; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem clamp(0.75rem, 3vw, 2.5rem); max-width: 78rem; background: var(--paper);
       color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
p, li { max-width: 46rem; } .soft, small, figcaption { color: var(--soft); }
nav a { margin-right: 1rem; } a { color: var(--other); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); }
th { font-weight: 600; color: var(--soft); } td.number, th.number { text-align: right; white-space: nowrap; }
.holds { color: var(--good); } .short { color: var(--bad); font-weight: 600; } .none { color: var(--soft); }
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1.2rem; }
figure { margin: 0; padding: .6rem; background: var(--band); border-radius: 8px; }
figure svg { width: 100%; height: auto; display: block; } figcaption { font-size: .85rem; margin-top: .3rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; }
"""


def write(results: dict[str, Any], path: Path) -> None:
    """The page of a results file."""
    path.write_text(page(results), encoding="utf-8")


def page(results: dict[str, Any]) -> str:
    machine = results["machine"]
    parts = [
        ("Rows", "rows", _rows(results["rows"])),
        ("Curves", "curves", _curves(results.get("curves", []))),
        ("Latency", "latency", _plain(results.get("latency", []))),
        ("Memory", "memory", _plain(results.get("memory", []))),
        ("Machine", "machine", _machine(results)),
    ]
    parts = [part for part in parts if part[2]]
    links = "".join(f'<a href="#{anchor}">{title}</a>' for title, anchor, _ in parts)
    body = "".join(f'<h2 id="{anchor}">{title}</h2>{inner}' for title, anchor, inner in parts)
    simd = SIMD_NAMES.get(machine.get("simd", ""), "")
    rough = "<p>A quick run on small arrays: the figures are rough.</p>" if results.get("quick") else ""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>fastdp bench</title><style>{_STYLE}</style>"
        f'<h1>fastdp bench</h1><p class="soft">{_escape(machine.get("cpu", ""))}, {machine.get("cores", "?")} cores, '
        f"{_escape(simd)}. Both sides in turn in one process, one thread unless a row says otherwise, the least time "
        f"of several rounds.</p>{rough}<p>{_sum(results['rows'])}</p><nav>{links}</nav>{body}</html>\n"
    )


# --- tables


def _sum(rows: Sequence[dict[str, Any]]) -> str:
    counts = {word: sum(row["verdict"] == word for row in rows) for word in ("holds", "falls short")}
    return (
        f'<span class="holds">{counts["holds"]} targets hold</span>, '
        f'<span class="short">{counts["falls short"]} fall short</span>, of {len(rows)} rows. '
        "Rows where fastdp loses stay in."
    )


def _rows(rows: Sequence[dict[str, Any]]) -> str:
    lines, room = [], None
    for row in rows:
        if row["room"] != room:
            room = row["room"]
            lines.append(f'<tr><th colspan="6">{_escape(room)}</th></tr>')
        lines.append(
            "<tr>"
            + _cell(row["work"], _details(row))
            + _number(_time(row["ours"]), _each(row["ours"], row["n"]))
            + _cell(row["rival"] or "")
            + _number(_time(row["theirs"]), _each(row["theirs"], row["rival_n"]))
            + _number(_ratio(row), _target(row))
            + _verdict(row["verdict"])
            + "</tr>"
        )
    number = ("fastdp", "takes", "ratio")
    names = ("work", "fastdp", "against", "takes", "ratio", "target")
    head = "".join(f'<th class="{"number" if name in number else ""}">{name}</th>' for name in names)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


def _details(row: dict[str, Any]) -> str:
    parameters = [f"{name}={value:g}" for name, value in row["parameters"].items()]
    threads = [f"{row['threads']} threads"] if row["threads"] > 1 else []
    return ", ".join([*([f"n={row['n']:,}"] if row["n"] > 1 else []), *parameters, *threads])


def _time(value: float | None) -> str:
    return "" if value is None else seconds(value)


def _each(value: float | None, n: int | None) -> str:
    return f"{digits(value / n * 1e9)} ns each" if value is not None and n is not None and n > 1 else ""


def _ratio(row: dict[str, Any]) -> str:
    if row["ratio"] is None:
        return ""
    within = row["kind"] == "within"
    return f"{digits(1 / row['ratio'] if within else row['ratio'])}{' times its time' if within else 'x'}"


def _target(row: dict[str, Any]) -> str:
    if row["limit"] is None:
        return ""
    return {"faster": "at least {:g}x", "within": "at most {:g}", "seconds": "at most {:g} s"}[row["kind"]].format(
        row["limit"]
    )


def _verdict(verdict: str) -> str:
    kind = {"holds": "holds", "falls short": "short"}.get(verdict, "none")
    return f'<td class="{kind}">{_escape("" if verdict == "no target" else verdict)}</td>'


def _cell(text: str, detail: str = "") -> str:
    return f"<td>{_escape(text)}{f'<br><small>{_escape(detail)}</small>' if detail else ''}</td>"


def _number(text: str, detail: str = "") -> str:
    return f'<td class="number">{_escape(text)}{f"<br><small>{_escape(detail)}</small>" if detail else ""}</td>'


def _plain(lines: Sequence[dict[str, Any]]) -> str:
    """A table of whatever columns the lines have."""
    if not lines:
        return ""
    names = list(lines[0])
    head = "".join(f"<th>{_escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(_cell(_said(line.get(name))) for name in names) + "</tr>" for line in lines)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _said(value: Any) -> str:
    if value is None:
        return ""
    return digits(value) if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _machine(results: dict[str, Any]) -> str:
    machine = dict(results["machine"])
    versions = machine.pop("versions", {})
    facts = {**{name: value for name, value in machine.items() if not isinstance(value, dict)}, **versions}
    said = "".join(f"<dt>{_escape(name)}</dt><dd>{_escape(str(value))}</dd>" for name, value in facts.items())
    failed = results.get("failed", {})
    lines = "".join(f"<li>{_escape(name)}: {_escape(why)}</li>" for name, why in failed.items())
    return f"<dl>{said}</dl>" + (f"<p>Not measured:</p><ul>{lines}</ul>" if lines else "")


def _escape(text: str) -> str:
    return html.escape(str(text))


# --- curves

_LINES = (
    ("ours", "fastdp", OURS, "o-"), ("numpy", "numpy", OTHER, "s-"), ("limit", "limit of the machine", LIMIT, "--"),
)  # fmt: skip


def _curves(curves: Sequence[dict[str, Any]]) -> str:
    if not curves:
        return ""
    figures = "".join(
        f"<figure>{_drawing(curve)}<figcaption>{_caption(curve)}</figcaption></figure>" for curve in curves
    )
    return f'<div class="curves">{figures}</div>'


def _caption(curve: dict[str, Any]) -> str:
    best = max((p["ours"] / p["numpy"] for p in curve["points"] if p.get("numpy")), default=None)
    said = "" if best is None else f" At best {digits(best)}x numpy."
    return _escape(f"{curve['unit']} against {curve['axis']}, both logarithmic; higher is faster.{said}")


def _drawing(curve: dict[str, Any]) -> str:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK)
    style |= {"svg.fonttype": "none", "svg.hashsalt": "fastdp", "font.size": 9, "grid.color": LIMIT}
    with rc_context(style):
        figure = Figure(figsize=(5.2, 3.2), layout="constrained")
        axes = figure.subplots()
        for key, label, color, look in _LINES:
            points = [(p["x"], p[key]) for p in curve["points"] if p.get(key)]
            if points:
                axes.loglog(*zip(*points, strict=True), look, color=color, label=label, markersize=3.5, linewidth=1.6)
        axes.set(title=curve["title"], xlabel=curve["axis"], ylabel=curve["unit"])
        axes.grid(alpha=0.25)
        axes.minorticks_off()
        axes.patch.set_alpha(0)
        axes.legend(frameon=False, fontsize=8)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _in_colours_of_the_page(out.getvalue())


def _in_colours_of_the_page(svg: str) -> str:
    svg = svg[svg.index("<svg") :]
    for colour, variable in _VARIABLES.items():
        svg = re.sub(colour, f"var({variable})", svg, flags=re.IGNORECASE)
    return re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
