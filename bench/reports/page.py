"""Results as one page: `fastdp bench --html report.html`. Tables, curves, the machine, the versions.

The page is one file without a network: curves are SVG that takes the colours of the page, which follow the reader's
choice of light or dark and are black on white in print. Nothing is measured here.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..harness.results import Report
from . import layout, wording
from .drawing import curve_svg
from .table import Table, to_html

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
th.group { padding-top: 1.2rem; color: var(--ink); } tr.more td { border-top: none; }
.good { color: var(--good); } .bad { color: var(--bad); font-weight: 600; } .quiet, .failed { color: var(--soft); }
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1.2rem; }
figure { margin: 0; padding: .6rem; background: var(--band); border-radius: 8px; }
figure svg { width: 100%; height: auto; display: block; } figcaption { font-size: .85rem; margin-top: .3rem; }
@media screen and (max-width: 44rem) {  /* a row becomes a block: the work, then its figures side by side */
  thead { display: none; } tr { display: grid; grid-template-columns: 1fr 1fr auto; gap: 0 .8rem; padding: .4rem 0;
          border-bottom: 1px solid var(--line); } tr.more { border-top: none; }
  td, th { border: none; padding: .1rem 0; } td:first-child, th.group { grid-column: 1 / -1; font-weight: 600; }
  td:empty { display: none; } td.number, th.number { text-align: left; } td small { font-weight: 400; }
  td[data-of]::before { content: attr(data-of) " "; color: var(--soft); } }  /* the heads are gone */
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; }
dt { color: var(--soft); } dd { margin: 0; }
@media print {  /* nothing scrolls on paper: what does not fit is lost */
  body { max-width: none; padding: 0; font-size: 11px; } .scroll { overflow: visible; } h2 { break-after: avoid; }
  .curves { grid-template-columns: 1fr 1fr; } }
"""


def write(report: Report, path: Path) -> None:
    path.write_text(page(report), encoding="utf-8")


def page(report: Report) -> str:
    parts = [
        ("Rows", "rows", _table(layout.rows(report.rows))),
        ("Curves", "curves", _curves(report.curves)),
        ("Latency", "latency", _table(layout.latency(report.latency))),
        ("Memory", "memory", _table(layout.memory(report.memory))),
        ("Machine", "machine", _machine(report)),
    ]
    parts = [part for part in parts if part[2]]
    where = wording.where(report) if report.machine else "nothing could be measured"
    return document(
        "fastdp bench", f"{where}. {_capital(wording.METHOD)}", wording.counted(report), parts, quick=report.quick
    )


def document(title: str, where: str, counted: str, parts: Sequence[tuple[str, str, str]], *, quick: bool) -> str:
    """A page of parts: heading, anchor, HTML."""
    links = "".join(f'<a href="#{anchor}">{heading}</a>' for heading, anchor, _ in parts)
    body = "".join(f'<h2 id="{anchor}">{heading}</h2>{inner}' for heading, anchor, inner in parts)
    rough = "<p>A quick run on small arrays: the figures are rough.</p>" if quick else ""
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_escape(title)}</title><style>{_STYLE}</style>"
        f'<h1>{_escape(title)}</h1><p class="soft">{_escape(where)}.</p>{rough}'
        f"<p>{_escape(_capital(counted))}. Rows where fastdp loses stay in.</p><nav>{links}</nav>{body}"
        "</html>\n"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _table(table: Table) -> str:
    return to_html(table) if table.lines else ""


def _machine(report: Report) -> str:
    if not report.machine:
        return ""
    facts = {name: value for name, value in report.machine.items() if not isinstance(value, dict)}
    facts |= {"versions": wording.versions(report), "commit of fastdp": report.commit or "", "date": report.date}
    shown = "".join(
        f"<dt>{_escape(name)}</dt><dd>{_escape(value)}</dd>" for name, value in facts.items() if value != ""
    )
    lines = "".join(f"<li>{_escape(name)}: {_escape(why)}</li>" for name, why in report.failed.items())
    return f"<dl>{shown}</dl>" + (f"<p>Not measured:</p><ul>{lines}</ul>" if lines else "")


def _escape(text: object) -> str:
    return html.escape(str(text))


# --- curves


def _curves(curves: Sequence[dict[str, Any]]) -> str:
    if not curves:
        return ""
    figures = "".join(
        f"<figure>{curve_svg(curve)}<figcaption>{_escape(_caption(curve))}</figcaption></figure>" for curve in curves
    )
    return f'<div class="curves">{figures}</div>'


def _caption(curve: dict[str, Any]) -> str:
    ratios = [p["ours"] / p["numpy"] for p in curve["points"] if p["ours"] and p["numpy"]]
    extremes = dict.fromkeys(wording.digits(ratio) for ratio in (min(ratios), max(ratios))) if ratios else ()
    ratio = f" {' to '.join(extremes)} times as fast as {curve['numpy']}." if extremes else ""
    return f"An element is {curve['unit']}.{ratio}"
