"""The site that is made of docs/: it builds without a warning, holds every public name, and works without a network."""

from __future__ import annotations

import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import pytest

import fastdp

for needed in ("sphinx", "myst_parser", "furo"):
    pytest.importorskip(needed, reason="the site wants pip install 'fastdp[docs]'")

ROOT = Path(__file__).parents[2]
MADE_BY_SPHINX = {"genindex.html", "py-modindex.html", "search.html"}  # reached from the search field, if at all


class Page(HTMLParser):
    """Where a page leads, what it loads, and which anchors it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link" and "href" in found and found.get("rel") not in ("canonical", "author"):
            self.loads.append(found["href"])
        elif "src" in found or "data" in found:
            self.loads.append(found.get("src") or found["data"])
        if tag == "meta" and found.get("http-equiv") == "refresh":
            self.links.append(found["content"].partition("url=")[2])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made by the command of `make docs`, with warnings as errors."""
    place = tmp_path_factory.mktemp("site")
    command = f"-m sphinx -q -W --keep-going -c docs -d {place}/trees . {place}/site".split()
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return place / "site"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path) for path in site.rglob("*.html")}


def inside(path: Path, page: Page) -> Iterator[tuple[Path, str]]:
    """(file, anchor) for every link of a page that stays in the site."""
    for link in page.links:
        parts = urlsplit(link)
        if not parts.scheme and not parts.netloc:
            yield (path.parent / unquote(parts.path)).resolve() if parts.path else path, unquote(parts.fragment)


def test_every_page_and_proof_note_is_in_the_site(site: Path) -> None:
    for source in [*ROOT.glob("docs/**/*.md"), *ROOT.glob("fastdp/**/*.md"), *ROOT.glob("kernels/*.md")]:
        if not source.is_relative_to(ROOT / "fastdp" / "kernels"):
            assert (site / source.relative_to(ROOT)).with_suffix(".html").exists(), source


def test_every_page_is_reached_from_the_index(site: Path, pages: dict[Path, Page]) -> None:
    seen, waiting = set(), [site / "index.html"]
    while waiting:
        path = waiting.pop()
        if path not in seen and path in pages:
            seen.add(path)
            waiting += [target for target, _ in inside(path, pages[path])]
    assert len(seen) > 40
    assert {path.name for path in set(pages) - seen} <= MADE_BY_SPHINX


def test_links_within_the_site_lead_somewhere(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for target, anchor in inside(path, page):
            assert target.exists(), (path, target)
            if anchor and target in pages:
                assert anchor in pages[target].anchors, (path, target, anchor)


def test_nothing_is_loaded_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        for load in page.loads:
            parts = urlsplit(load)
            assert not parts.scheme or parts.scheme == "data", (path, load)
            assert not parts.netloc, (path, load)
            assert parts.scheme == "data" or (path.parent / unquote(parts.path)).exists(), (path, load)
    for path in site.rglob("*.css"):
        style = path.read_text(encoding="utf-8")
        assert "@import" not in style, path
        assert "url(http" not in style.replace("'", "").replace('"', ""), path
        assert "url(//" not in style.replace("'", "").replace('"', ""), path


def public_names() -> Iterator[str]:
    yield from (f"fastdp.{name}" for name in fastdp.__all__ if name != "__version__")
    for module in ("losses", "sets"):
        yield from (f"fastdp.{module}.{name}" for name in getattr(fastdp, module).__all__)
    for name in dir(fastdp.bounds):
        thing = getattr(fastdp.bounds, name)
        if not name.startswith("_") and inspect.isfunction(thing) and thing.__module__.startswith("fastdp"):
            yield f"fastdp.bounds.{name}"


@pytest.fixture(scope="module")
def reference(site: Path) -> set[str]:
    return set().union(*(Page(path).anchors for path in site.glob("docs/api/*.html")))


def test_every_public_name_is_in_the_reference(reference: set[str]) -> None:
    names = list(public_names())
    assert len(names) > 90
    assert [name for name in names if name not in reference] == []


def test_every_adapter_with_a_page_is_in_the_reference(site: Path) -> None:
    pages = {page.stem.replace("-", "_") for page in ROOT.glob("docs/connect/*.md")}
    modules = {path.stem for path in ROOT.glob("fastdp/connect/*.py")}
    text = (site / "docs" / "api" / "adapters.html").read_text(encoding="utf-8")
    assert [name for name in sorted(pages & modules) if f"fastdp.connect.{name}" not in text] == []


def test_every_page_about_a_host_is_on_the_landing_page(site: Path) -> None:
    links = Page(site / "docs" / "connect" / "index.html").links
    assert [p for p in ROOT.glob("docs/connect/*.md") if p.stem != "index" and f"{p.stem}.html" not in links] == []


def test_docstrings_are_shown_as_they_are_meant(site: Path) -> None:
    text = (site / "docs" / "api" / "noise.html").read_text(encoding="utf-8")
    assert "<dt><strong>Not covered</strong></dt>" in text
    assert text.count("system-message") == 0
    assert (
        '<a class="reference internal" href="../../fastdp/mechanisms/noise.html">' in text
    )  # "Proof  noise.md, theorems 1 and 3"
    assert "resolution" in text.partition('id="fastdp.laplace"')[2].partition("</dt>")[0]
    assert "'add-remove'" in text.replace("&#39;", "'")


def test_formulas_are_typeset_without_a_network(site: Path) -> None:
    for page in ("fastdp/mechanisms/noise.html", "docs/algorithms.html", "docs/course.html"):
        text = (site / page).read_text(encoding="utf-8")
        assert text.count("<math>") == text.count("</math>") > 5, page
        assert "MathJax" not in text, page


@pytest.fixture(scope="module")
def formulas() -> Any:
    spec = importlib.util.spec_from_file_location("formulas", ROOT / "docs" / "formulas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("e^(-eta x_i)", ["<msup><mi>e</mi>", "<mo>\u2212</mo>", "<mi>\u03b7</mi>", "<msub><mi>x</mi>"]),
        ("sqrt(ln|D| / c) <= 2^-16", ["<msqrt>", "<mi>ln</mi>", "<mo>\u2264</mo>", "<msup><mn>2</mn>"]),
        ("floor(x) + ceil(b1)", ["\u230a", "\u2309", "<msub><mi>b</mi><mn>1</mn></msub>"]),
        ("L'(w)", ["<msup><mi>L</mi><mo>\u2032</mo></msup>"]),
    ],
)
def test_a_formula_is_mathml(formulas: Any, text: str, parts: list[str]) -> None:
    found = formulas.mathml(text)
    ElementTree.fromstring(found)
    assert [part for part in parts if part not in found] == []


@pytest.mark.parametrize(
    "text",
    ["sensitivity=2", "fastdp.laplace", "domain_bits", "laplace", "f(x", "'add-remove'", "a[0] == 1", "x**2", "sum"],
)
def test_code_is_no_formula(formulas: Any, text: str) -> None:
    with pytest.raises(formulas.NotAFormula):
        formulas.mathml(text)
