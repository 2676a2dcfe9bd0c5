"""The package: what importing costs, which names exist, who compiles, and what a wheel and an sdist hold."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import fastdp

ROOT = Path(__file__).resolve().parents[2]
MADE = {
    ".git",
    "build",
    "dist",
    "compiled",
    "__pycache__",
    "demo.png",
}  # what git, make and pip leave beside the sources
MADE_PATTERN = re.compile(r"\.venv.*|.*\.egg-info|\..*_cache|\.benchmarks")

BUILD_IR = {ROOT / "kernels" / name for name in ("lanes.py", "pair_lanes.py", "aes_lanes.py", "address_calls.py")}
ASK_LLVMLITE = {  # its version, its lock, how wide the registers are
    ROOT / "kernels" / name
    for name in ("aes_lanes.py", "cache_folder.py", "compile_cache.py", "pair_lanes.py", "parts.py", "shipped.py")
}
COMPILERS = {"jit", "njit", "generated_jit", "cfunc", "vectorize", "guvectorize", "stencil"}


def sources() -> Iterator[Path]:
    """Every file of the repository, links left out."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [
            f for f in folders if not (f in MADE or MADE_PATTERN.fullmatch(f) or Path(folder, f).is_symlink())
        ]
        yield from (Path(folder, f) for f in files if f not in MADE and not Path(folder, f).is_symlink())


def python(code: str, cwd: Path = ROOT, executable: str = sys.executable) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        [executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True, timeout=1800, check=False
    )


# --- importing


def test_importing_compiles_nothing_starts_nothing_and_prints_nothing(tmp_path: Path) -> None:
    code = """
import sys, threading, signal, warnings
before = signal.getsignal(signal.SIGINT), list(warnings.filters)
import fastdp
assert before == (signal.getsignal(signal.SIGINT), list(warnings.filters))
assert not {"numba", "numpy", "llvmlite", "rich", "matplotlib"} & set(sys.modules), sorted(sys.modules)
fastdp.get_num_threads, fastdp.PrivacyWarning, fastdp.Randomness, fastdp.laplace, fastdp.warmup
assert not {"numba", "llvmlite", "rich", "matplotlib"} & set(sys.modules)
assert threading.active_count() == 1
"""
    done = python(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["kernels", "bench"])
def test_a_second_name_for_a_folder_is_refused(name: str) -> None:
    done = python(f"import {name}")
    assert done.returncode == 1
    assert f"ImportError: '{name}': this package is" in done.stderr
    assert f"import fastdp.{name}" in done.stderr


def test_both_folders_are_imported_under_their_one_name() -> None:
    for name in ("kernels", "bench"):
        folder = importlib.import_module(f"fastdp.{name}").__path__[0]
        assert os.path.samefile(folder, ROOT / name)


# --- names


def seen_by_type_checkers(path: Path) -> dict[str, tuple[str, str]]:
    """Each name of the one block that only type checkers read: its module, and its name there."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    seen = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        assert node.level == 1
        seen.update({alias.asname or alias.name: (node.module or "", alias.name) for alias in node.names})
    return seen


@pytest.mark.parametrize("name", ["fastdp", "fastdp.bounds"])
def test_public_names_resolve_and_type_checkers_see_the_same(name: str) -> None:
    package = importlib.import_module(name)
    assert package.__file__ is not None
    seen = seen_by_type_checkers(Path(package.__file__))
    modules = {each: found for each, found in seen.items() if inspect.ismodule(getattr(package, each))}
    assert sorted(modules) == (
        ["audit", "bounds", "kernels", "losses", "privacy", "sets", "statistics"] if name == "fastdp" else []
    )
    version = ["__version__"] if name == "fastdp" else []
    assert sorted([*(seen.keys() - modules), *version]) == sorted(package.__all__)
    for each, (module, attribute) in seen.items():
        home = importlib.import_module(f"fastdp.{module}".strip("."))
        assert getattr(package, each) is getattr(home, attribute), each
    assert len(package.__all__) == len(set(package.__all__))
    assert set(package.__all__) <= set(dir(package))


def test_a_star_import_brings_the_public_names() -> None:
    names: dict[str, object] = {}
    exec("from fastdp import *", names)
    assert set(fastdp.__all__) <= set(names)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'fastdp' has no attribute 'laplase'"):
        fastdp.laplase  # noqa: B018


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        (fastdp, "mean", "; there is fastdp.statistics.mean"),
        (fastdp, "LossDistribution", "; there is fastdp.privacy.LossDistribution"),
        (fastdp, "connect", "; it is a module: import fastdp.connect"),
        (fastdp, "laplase", ""),
        (fastdp, "no.name", ""),
        (fastdp.statistics, "median", "; there is fastdp.median"),
        (fastdp.statistics, "mode", ""),
    ],
)
def test_a_name_that_is_elsewhere_says_where(
    module: ModuleType, name: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(module, name, raising=False)  # a module that something has imported
    with pytest.raises(AttributeError) as error:
        getattr(module, name)
    assert str(error.value) == f"module {module.__name__!r} has no attribute {name!r}{hint}"


def test_the_version_is_the_same_everywhere() -> None:
    from importlib.metadata import version

    assert fastdp.__version__ == version("fastdp")


# --- who compiles


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def test_only_one_file_compiles() -> None:
    for path in [*files("kernels"), *files("fastdp"), *files("bench")]:
        if path == ROOT / "kernels" / "compile.py":
            continue
        for node in ast.walk(parse(path)):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in ("numba", "nb")
            ):
                assert node.attr not in COMPILERS, (path, node.lineno)
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
                assert not COMPILERS & {alias.name for alias in node.names}, (path, node.lineno)


def test_only_lanes_build_ir() -> None:
    for path in [*files("kernels"), *files("fastdp"), *files("bench")]:
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "llvmlite":
                assert path in BUILD_IR, path
            if isinstance(node, ast.Import) and any(alias.name.startswith("llvmlite") for alias in node.names):
                assert path in ASK_LLVMLITE, path
                assert not any(alias.name.startswith("llvmlite.ir") for alias in node.names), path


def test_nothing_is_compiled_parallel() -> None:
    """But what a user might compile: tests/kernels/test_catalogue.py."""
    for path in sources():
        if path.suffix == ".py" and path != ROOT / "tests" / "kernels" / "test_catalogue.py":
            for node in ast.walk(parse(path)):
                if isinstance(node, ast.keyword) and node.arg == "parallel":
                    assert isinstance(node.value, ast.Constant), path
                    assert node.value.value is False, path
                assert not (isinstance(node, ast.Attribute) and node.attr == "prange"), path


def test_no_file_knows_a_machine() -> None:
    """No absolute path of a home, a checkout or an environment."""
    homes = re.compile(r"(?<![\w.:])/(?:home|root|Users|work|farm|mnt|opt/\w+/bin)/[\w.]")
    here = {str(path) for path in (ROOT, Path.home(), Path(sys.prefix)) if len(path.parts) > 2}
    for path in sources():
        text = path.read_text(encoding="utf-8", errors="replace")
        assert not homes.search(text), path
        assert not any(place in text for place in here), path


# --- wheel and sdist


ARCHIVE = Path("kernels", "compiled", "an-archive.zip")  # what `make objects` leaves


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A wheel made from the tree, an sdist, and a wheel made from that: on a copy, in other processes."""
    base = tmp_path_factory.mktemp("package")
    tree = base / "tree"
    shutil.copytree(
        ROOT,
        tree,
        symlinks=True,
        ignore=lambda folder, names: [n for n in names if n in MADE or MADE_PATTERN.fullmatch(n)],
    )

    (tree / ARCHIVE).parent.mkdir()
    (tree / ARCHIVE).touch()

    def build(kind: str, source: Path) -> Path:
        out = base / f"{kind}-of-{source.name}"
        out.mkdir()
        code = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(out)!r}))"
        done = python(code, source)
        assert done.returncode == 0, done.stderr
        return out / done.stdout.splitlines()[-1]

    wheel, sdist = build("wheel", tree), build("sdist", tree)
    with tarfile.open(sdist) as archive:
        archive.extractall(base / "unpacked", filter="data")
    (unpacked,) = (base / "unpacked").iterdir()
    return {"wheel": wheel, "sdist": sdist, "wheel from sdist": build("wheel", unpacked)}


def expected() -> list[str]:
    """Sources, notes, proofs and data of fastdp/, and of the two folders that are installed inside it."""
    kinds = {"fastdp": (".c", ".md", ".py", ".typed", ".v"), "kernels": (".md", ".py", ".v"), "bench": (".json", ".py")}
    paths = [path.relative_to(ROOT) for path in sources()]
    kept = [path.as_posix() for path in paths if path.suffix in kinds.get(path.parts[0], ())]
    return sorted(name if name.startswith("fastdp/") else f"fastdp/{name}" for name in kept)


@pytest.mark.parametrize("which", ["wheel", "wheel from sdist"])
def test_a_wheel_holds_every_module_once(built: dict[str, Path], which: str) -> None:
    names = [name for name in zipfile.ZipFile(built[which]).namelist() if ".dist-info/" not in name]
    of_the_tree = [f"fastdp/{ARCHIVE.as_posix()}"] if which == "wheel" else []  # an sdist is sources alone
    assert sorted(names) == sorted(expected() + of_the_tree)


def test_the_sdist_holds_every_source_once(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        members = [member for member in archive.getmembers() if not member.isdir()]
        names = [member.name.partition("/")[2] for member in members]
    assert not [member.name for member in members if member.issym() or member.islnk()]
    assert len(set(names)) == len(names)
    generated = {"PKG-INFO", "setup.cfg"}
    ours = {name for name in names if name not in generated and not name.startswith("fastdp.egg-info/")}
    everything = {path.relative_to(ROOT).as_posix() for path in sources()} - {".gitignore"}
    assert ours == everything


def test_links_of_the_readme_work_on_a_package_index(built: dict[str, Path]) -> None:
    relative = re.compile(r"\]\((?!https?://|#)[^)]*\)")
    for which in ("wheel", "wheel from sdist"):
        with zipfile.ZipFile(built[which]) as wheel:
            (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
            text = wheel.read(name).decode()
        assert "Description-Content-Type: text/markdown" in text
        assert "# fastdp" in text
        assert relative.findall(text) == []
    spec = importlib.util.spec_from_file_location("setup", ROOT / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    setup = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(setup)
    text = "[a](docs/a.md#b), [c](https://c), [d](#d)"
    assert setup.readme(text, "https://x/y/") == "[a](https://x/y/blob/main/docs/a.md#b), [c](https://c), [d](#d)"
    assert setup.readme(text, "") == "a, [c](https://c), [d](#d)"


def test_a_wheel_works_elsewhere(built: dict[str, Path], tmp_path: Path) -> None:
    """Installed into an empty environment that borrows numpy and numba, and run from another folder."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    executable = str(home / "bin" / "python")
    command = [executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check"]
    subprocess.run([*command, str(built["wheel from sdist"])], check=True, capture_output=True, timeout=1800)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(f"{Path(np.__file__).parent.parent}\n")

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    code = """
import os, fastdp, fastdp.kernels.noise, fastdp.bench.cases.registry
assert os.path.dirname(fastdp.__file__).endswith(os.path.join("site-packages", "fastdp")), fastdp.__file__
assert fastdp.kernels.__path__[0] == os.path.join(os.path.dirname(fastdp.__file__), "kernels")
assert os.path.exists(os.path.join(os.path.dirname(fastdp.__file__), "py.typed"))
print(type(fastdp.laplace(42, sensitivity=1, epsilon=1.0)).__name__, len(fastdp.bench.cases.registry.cases()) > 10)
"""
    done = python(code, elsewhere, executable)
    assert (done.returncode, done.stdout) == (0, "int64 True\n"), done.stderr
    done = subprocess.run(
        [home / "bin" / "fastdp", "info", "--json"], cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert fastdp.__version__ in done.stdout
