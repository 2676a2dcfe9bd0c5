"""One table, four looks: what a back end must keep of it."""

from __future__ import annotations

import pytest
from rich.console import Console

from fastdp.bench.reports.table import Cell, Column, Line, Table, cell, to_html, to_markdown, to_rich, to_text

TABLE = Table(
    (Column("work"), Column("time", number=True, label="fastdp"), Column("verdict")),
    (
        Line((cell("a | b <c>", "n = 10", ""), cell("1 ms"), cell("holds", tone="good")), group="noise"),
        Line((cell(), cell(), cell("falls short", tone="bad")), group="noise", continues=True),
        Line((cell("d"), cell("20 ms", "2 ns each"), cell()), group="learning"),
    ),
)


def test_notes_that_are_empty_are_left_out() -> None:
    assert cell("a", "", "b") == Cell("a", ("b",))


def test_markdown() -> None:
    assert to_markdown(TABLE).splitlines() == [
        "| work | time | verdict |",
        "| --- | --: | --- |",
        r"| a \| b <c>, n = 10 | 1 ms | holds |",
        "|  |  | **falls short** |",
        "| d | 20 ms, 2 ns each |  |",
    ]


def test_text() -> None:
    assert to_text(TABLE).splitlines() == [
        "work                           time  verdict",
        "a | b <c>, n = 10              1 ms  holds",
        "                                     falls short",
        "d                  20 ms, 2 ns each",
    ]


def test_html() -> None:
    text = to_html(TABLE)
    assert "<td>a | b &lt;c&gt;<br><small>n = 10</small></td>" in text
    assert '<td class="number" data-of="fastdp">20 ms<br><small>2 ns each</small></td>' in text
    assert '<td class="good">holds</td>' in text
    assert '<tr class="more"><td></td><td class="number"></td><td class="bad">falls short</td></tr>' in text
    assert text.count('class="group">noise<') == text.count('class="group">learning<') == 1
    assert text.count("<tr") == text.count("</tr>") == 6


def test_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Console(width=100).print(to_rich(TABLE))
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines == [
        ["work", "time", "verdict"],
        ["noise"],
        ["a", "|", "b", "<c>", "1", "ms", "holds"],
        ["n", "=", "10"],
        ["falls", "short"],
        ["learning"],
        ["d", "20", "ms"],
        ["2", "ns", "each"],
    ]
