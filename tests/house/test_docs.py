"""What the documentation shows is run: the examples in docstrings, and the Python in README.md and docs/."""

import doctest
import importlib
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

import fastdp

ROOT = Path(__file__).parents[2]
FRONTS = ("fastdp.__main__", "fastdp.bench")
MODULES = [
    "fastdp",
    *sorted(m.name for m in pkgutil.walk_packages(fastdp.__path__, "fastdp.") if not m.name.startswith(FRONTS)),
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
NEEDS = re.compile(r"<!-- needs: (\w+) -->\n")  # the first line of a page whose library only `make test-peers` brings
ADAPTERS = {"fastdp.connect.smartnoise": "snsynth"}  # modules that cannot be imported without their library
NOTES = [*sorted(ROOT.glob("fastdp/**/*.md")), *sorted(ROOT.glob("kernels/*.md"))]


def skip_without(library):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}, which make test-peers brings")


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    if name in ADAPTERS:
        skip_without(ADAPTERS[name])
    results = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert results.failed == 0


def test_the_public_functions_have_examples():
    for name in ("laplace", "gaussian", "compose", "exponential_mechanism", "mwem", "release_marginals"):
        assert ">>> " in getattr(fastdp, name).__doc__, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_the_pages(page, capsys):
    if needed := NEEDS.match(page.read_text()):
        skip_without(needed[1])
    namespace: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), namespace)


def test_only_these_pages_may_be_skipped():
    """Every other page is run wherever the tests are."""
    skippable = {page.name: needed[1] for page in PAGES if (needed := NEEDS.match(page.read_text()))}
    assert skippable == {"mbi.md": "mbi", "smartnoise.md": "snsynth"}


def test_the_first_example_prints_four_counts(capsys):
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    assert len(block.strip().splitlines()) == 5
    exec(block, {})
    printed = capsys.readouterr().out
    assert len(re.findall(r"-?\d+", printed)) == 4


@pytest.mark.parametrize("page", [*PAGES, *NOTES], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
