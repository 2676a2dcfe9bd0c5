"""What the documentation shows is run: the examples in docstrings, and the Python in README.md and docs/."""

import ast
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
AT_THE_ROOT = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
WIDEST_CODE = 100  # docs/site.css has room for so many characters
COLUMNS, LONG = 100, re.compile(r"\S{60,}|!?\[[^\]]*\]\([^)]*\)")  # a link or a word that cannot be broken


def prose(text):
    """The lines of a page that are wrapped: no tables, code, figures that are filled in, or indented formulas."""
    text = re.sub(r"<!-- figures: .*?<!-- end of figures -->", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL)
    text = re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE)
    return [(i, line) for i, line in enumerate(text.split("\n"), 1) if not line.startswith(("|", "    "))]


def skip_without(library):
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"needs {library}, which make test-peers brings")


class Finder(doctest.DocTestFinder):
    """Also the examples of classes that are published under another path than that of their module."""

    def _from_module(self, module, object):
        if isinstance(object, type):
            functions = (getattr(each, "fget", each) for each in vars(object).values())
            return any(getattr(each, "__globals__", None) is vars(module) for each in functions)
        return super()._from_module(module, object)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    if name in ADAPTERS:
        skip_without(ADAPTERS[name])
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in Finder(exclude_empty=True).find(module, name):
        runner.run(test)
    assert runner.failures == 0


def test_the_public_functions_have_examples():
    for name in ("laplace", "gaussian", "compose", "exponential_mechanism", "mwem", "release_marginals"):
        assert ">>> " in getattr(fastdp, name).__doc__, name


@pytest.mark.parametrize("page", [*PAGES, *AT_THE_ROOT], ids=lambda page: page.name)
def test_python_on_the_pages(page, capsys):
    if needed := NEEDS.match(page.read_text()):
        skip_without(needed[1])
    namespace: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), namespace)


def test_only_these_pages_may_be_skipped():
    """Every other page is run wherever the tests are."""
    skippable = {page.name: needed[1] for page in PAGES if (needed := NEEDS.match(page.read_text()))}
    assert skippable == {"mbi.md": "mbi", "smartnoise.md": "snsynth", "spark.md": "pyspark"}


def test_the_first_example_prints_four_counts(capsys):
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).group(1)
    assert len(block.strip().splitlines()) == 4
    exec(block, {})
    printed = capsys.readouterr().out
    assert len(re.findall(r"-?\d+", printed)) == 4


@pytest.mark.parametrize("page", [*PAGES, *NOTES, *AT_THE_ROOT], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [*PAGES, *NOTES, *AT_THE_ROOT], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_labels_that_name_a_file_name_the_file_of_the_link(page):
    links = re.findall(r"\[`?([\w./-]+\.(?:md|py|c|h|json|toml))`?\]\(([^)#]+)", page.read_text())
    assert [(label, target) for label, target in links if Path(label).name != Path(target).name] == []


NAMED_TEST = re.compile(r"\[`(test_\w+)`\]\(([^)#]+\.py)\)")
WITH_TESTS = {"known-defects.md": 70, "threat-model.md": 25, "test-vectors.md": 4}  # how many tests they name, at least


def _missing_tests(text, folder):
    """The tests that a page links to and that are not in the file of the link."""
    for name, target in NAMED_TEST.findall(text):
        file = (folder / target).resolve()
        found = ast.walk(ast.parse(file.read_text())) if file.exists() else ()
        if name not in {each.name for each in found if isinstance(each, ast.FunctionDef)}:
            yield name, target


@pytest.mark.parametrize("page", [*PAGES, *NOTES], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_tests_that_a_page_names_are_where_it_says(page):
    assert list(_missing_tests(page.read_text(), page.parent)) == []


def test_a_test_that_is_gone_is_noticed():
    here = "[`test_a_test_that_is_gone_is_noticed`](test_docs.py)"
    assert not list(_missing_tests(here, Path(__file__).parent))
    assert list(_missing_tests(here.replace("gone", "lost"), Path(__file__).parent))
    assert list(_missing_tests(here.replace("test_docs.py", "test_dogs.py"), Path(__file__).parent))


@pytest.mark.parametrize("name", WITH_TESTS)
def test_pages_that_point_to_tests_do(name):
    assert len(NAMED_TEST.findall((ROOT / "docs" / name).read_text())) >= WITH_TESTS[name]


def test_every_known_defect_names_what_forbids_it():
    text = (ROOT / "docs" / "known-defects.md").read_text()
    defects = re.findall(r"^\*\*(.+?)\*\*(.*?)(?=^\*\*|^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert len(defects) >= 30
    for title, what in defects:
        assert NAMED_TEST.search(what[what.index("*Here*") :]), title


@pytest.mark.parametrize("page", [*PAGES, *NOTES, *AT_THE_ROOT], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_prose_is_wrapped(page):
    if page.name == "kernels.md":
        pytest.skip("made from docstrings")
    long = [i for i, line in prose(page.read_text()) if len(line) > COLUMNS and not LONG.search(line)]
    assert long == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_code_fits_the_column_of_the_site(page):
    for block in re.findall(r"```\w+\n(.*?)```", page.read_text(), re.DOTALL):
        assert [line for line in block.splitlines() if len(line) > WIDEST_CODE] == []


@pytest.mark.parametrize("page", [*PAGES, *AT_THE_ROOT], ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_are_there(page):
    text = re.sub(r"<!-- figures: .*?<!-- end of figures -->", "", page.read_text(), flags=re.DOTALL)
    names = re.findall(r"`((?:fastdp|kernels|tests|bench|docs)/[\w./-]*)`", text)
    assert [name for name in names if not (ROOT / name).exists()] == []


def own_files():
    """The paths of all files, each with those of the folders above it left out; `fastdp/kernels` is `kernels`."""
    folders = ("fastdp", "kernels", "bench", "tests", "docs")
    paths = [*ROOT.glob("*.*"), *(path for folder in folders for path in (ROOT / folder).rglob("*.*"))]
    names = [path.relative_to(ROOT).as_posix() for path in paths]
    names += [f"fastdp/{name}" for name in names if name.startswith(("kernels/", "bench/"))]
    return {"/".join(parts[i:]) for parts in (name.split("/") for name in names) for i in range(len(parts))}


def words_of(path):
    """What is said, not run: a page or note without its blocks of code; docstrings and comments of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)
        return re.sub(r"\]\([^)]*\)", "]", text).replace("\\_", "_")  # links have a test of their own
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    strings = [ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    return "\n".join([*filter(None, strings), *re.findall(r"(?:^|\s)# .*", text)])


@pytest.mark.parametrize("folder", ["docs", "fastdp", "kernels", "bench", "tests", "."])
def test_files_that_are_named_anywhere_are_there(folder):
    files = own_files()
    read = (ROOT / folder).glob("*.*" if folder == "." else "**/*.*")
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in read
        if path.suffix in {".md", ".py"}
        for name in re.findall(r"(?<![\w./*-])(?:\.\.?/)*([\w/.-]*\w\.(?:py|md))\b", words_of(path))
        if name not in files
    ]
    assert missing == []
