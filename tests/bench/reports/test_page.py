"""The page of `fastdp bench --html`."""

import re
from dataclasses import replace
from html.parser import HTMLParser

from fastdp.bench.harness.results import Report
from fastdp.bench.reports import page, wording
from tests.bench.reports.example import REPORT


class _Page(HTMLParser):
    VOID = ("meta", "br", "path", "use", "image")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.targets: list[str] = []
        self.ids: list[str] = []
        self.said = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.targets += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.said += data


def test_the_page_stands_alone() -> None:
    text = page.page(REPORT)
    read = _Page(text)
    assert read.open == []
    assert all(target.startswith("#") and target[1:] in read.ids for target in read.targets)
    assert "@import" not in text
    assert "url(http" not in text
    assert "<script" not in text


def test_the_page_says_what_the_results_say() -> None:
    said = _Page(page.page(REPORT)).said
    for words in (
        "A <CPU> & more, 2 cores", "laplace | int64 <scale 100>", "scale 1,048,576", "8.43x", "≥ 6x", "11.8 ms",
        "crashed: <b>", "falls short", "0.25 of numpy's time", "n = 1,000, scale 200", "16.0 kB, 2.00 times the input",
        "died", "x: it <crashed>", "numpy 2.0.0", "0123456789", "2030-01-02 03:04 UTC", "2 hold, 1 fall short",
        "10.0 times as fast as numpy",
    ):  # fmt: skip
        assert words in said, words


def test_curves_take_the_colours_of_the_page() -> None:
    text = page.page(REPORT)
    svg = text[text.index("<svg") : text.index("</svg>")]
    for name in ("--ink", "--ours", "--other", "--limit"):
        assert f"var({name})" in svg
    assert "fastdp, 2 threads" in svg
    used = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg))
    assert used <= {"#ffffff"}, used  # nothing that cannot be read on a dark screen


def test_a_curve_says_where_fastdp_loses_too() -> None:
    (curve, *_) = REPORT.curves
    points = [dict(curve["points"][0], ours=ours, numpy=1e9) for ours in (2e8, 5e9, None)]
    assert "0.200 to 5.00 times as fast as numpy" in page.page(replace(REPORT, curves=(dict(curve, points=points),)))


def test_nothing_of_the_page_is_lost_on_paper_or_on_a_telephone() -> None:
    text = page.page(REPORT)
    for_paper = "".join(re.findall(r"@media print \{(.*?\})\s*\}", text, flags=re.DOTALL))
    assert ".scroll { overflow: visible; }" in for_paper  # or the verdicts, in the last column, are cut off
    assert "@media screen and (max-width" in text  # paper is narrow, too, and has room for tables
    assert '<td class="number" data-of="fastdp">1.40 ms' in text  # where the heads of the columns are hidden
    assert "content: attr(data-of)" in text


def test_a_quick_run_is_not_judged() -> None:
    assert wording.counted(replace(REPORT, quick=True)) == "a quick run: no row is judged"
    assert "the figures are rough" in page.page(replace(REPORT, quick=True))


def test_a_run_in_which_nothing_was_measured_has_a_page() -> None:
    nothing = Report(machine={}, quick=False, avx2=False, rows=(), measured=(), failed={"words": "no such luck"})
    assert "nothing could be measured" in page.page(nothing)
