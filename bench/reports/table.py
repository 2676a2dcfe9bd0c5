"""What a table is, and how it looks: one model, and a back end each for a terminal, plain text, a page and Markdown.

A cell has a text, notes that stand below it (beside it, in text and Markdown), and a tone. Which tables there are is in
`layout.py`. A back end knows nothing of benchmarks.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Tone = Literal["plain", "good", "fair", "bad", "failed", "quiet"]

_STYLES: dict[Tone, str] = {
    "plain": "", "good": "green", "fair": "yellow", "bad": "bold yellow", "failed": "red", "quiet": "dim",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    text: str = ""
    notes: tuple[str, ...] = ()
    tone: Tone = "plain"


def cell(text: object = "", *notes: str, tone: Tone = "plain") -> Cell:
    """A cell; notes that are empty are left out."""
    return Cell(str(text), tuple(note for note in notes if note), tone)


@dataclass(frozen=True)
class Column:
    heading: str
    number: bool = False  # aligned to the right, on one line
    label: str = ""  # before the text where a narrow page hides the headings


@dataclass(frozen=True)
class Line:
    cells: tuple[Cell, ...]
    group: str = ""  # a heading of its own stands above the first line of a group
    continues: bool = False  # the work of the line above


@dataclass(frozen=True)
class Table:
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]

    def groups(self) -> list[tuple[str, list[Line]]]:
        """Neighbouring lines of the same group."""
        found: list[tuple[str, list[Line]]] = []
        for line in self.lines:
            if not found or found[-1][0] != line.group:
                found.append((line.group, []))
            found[-1][1].append(line)
        return found


# --- in a terminal


def to_rich(table: Table) -> Any:
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in table.columns:
        drawn.add_column(column.heading, overflow="fold")
    for group, lines in table.groups():
        if group:
            drawn.add_row(Text(group, style="bold"))
        for line in lines:
            drawn.add_row(*(_rich_cell(one) for one in line.cells))
    return drawn


def _rich_cell(one: Cell) -> Any:
    from rich.text import Text

    above, *below = [*([one.text] if one.text else []), *one.notes] or [""]
    return Text.assemble((above, _STYLES[one.tone]), *(("\n" + note, "dim") for note in below))


# --- as plain text, for logs


def to_text(table: Table) -> str:
    rows = [
        [column.heading for column in table.columns],
        *(list(map(_in_one_line, line.cells)) for line in table.lines),
    ]
    widths = [max(map(len, texts)) for texts in zip(*rows, strict=True)]
    padded = (
        "  ".join(
            text.rjust(width) if column.number else text.ljust(width)
            for text, width, column in zip(row, widths, table.columns, strict=True)
        )
        for row in rows
    )
    return "\n".join(line.rstrip() for line in padded)


def _in_one_line(one: Cell) -> str:
    return ", ".join(part for part in (one.text, *one.notes) if part)


# --- on a page


def to_html(table: Table) -> str:
    head = "".join(
        f'<th class="{"number" if column.number else ""}">{html.escape(column.heading)}</th>'
        for column in table.columns
    )
    body = ""
    for group, lines in table.groups():
        if group:
            body += f'<tr><th colspan="{len(table.columns)}" class="group">{html.escape(group)}</th></tr>'
        body += "".join(_html_line(table.columns, line) for line in lines)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _html_line(columns: Sequence[Column], line: Line) -> str:
    cells = "".join(_html_cell(column, one) for column, one in zip(columns, line.cells, strict=True))
    return f"<tr{' class=' + chr(34) + 'more' + chr(34) if line.continues else ''}>{cells}</tr>"


def _html_cell(column: Column, one: Cell) -> str:
    classes = " ".join(["number"] * column.number + [one.tone] * (one.tone != "plain"))
    label = f' data-of="{html.escape(column.label)}"' if column.label and one.text else ""
    notes = "".join(f"<br><small>{html.escape(note)}</small>" for note in one.notes)
    opened = f'<td class="{classes}"{label}>' if classes else f"<td{label}>"
    return f"{opened}{html.escape(one.text)}{notes}</td>"


# --- in Markdown


def to_markdown(table: Table) -> str:
    """Groups are left out; a bad cell is bold."""
    rule = ["--:" if column.number else "---" for column in table.columns]
    rows = [[column.heading for column in table.columns], rule]
    rows += [[_markdown_cell(one) for one in line.cells] for line in table.lines]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def _markdown_cell(one: Cell) -> str:
    text = _in_one_line(one).replace("|", r"\|")
    return f"**{text}**" if one.tone == "bad" and text else text
