"""What fastdp says where something that it needs is missing, too old or switched off."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fastdp.kernels import requirements

ROOT = Path(__file__).resolve().parents[2]


def last_line(code: str, **environment: str) -> str:
    """What Python says at the end of a program that fails."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize("use", ["fastdp.laplace", "fastdp.Budget", "import fastdp.kernels", "import fastdp.sklearn"])
@pytest.mark.parametrize(("name", "least"), [("numpy", "1.26"), ("numba", "0.61"), ("llvmlite", "0.44")])
def test_missing(name: str, least: str, use: str) -> None:
    if use == "fastdp.Budget" and name != "numpy":
        pytest.skip("budgets compile nothing")
    if use == "import fastdp.sklearn" and name == "numpy":
        pytest.skip("scikit-learn is imported first, and says so itself")
    said = last_line(f"import sys; sys.modules[{name!r}] = None; import fastdp; {use}")
    assert said == (f"ImportError: fastdp needs {name}>={least}, which is not installed: pip install '{name}>={least}'")


@pytest.mark.parametrize(("name", "old"), [("numpy", "1.25.9"), ("numba", "0.60.0rc1"), ("llvmlite", "0.43.2")])
def test_too_old(name: str, old: str) -> None:
    patch = f"""
import importlib.metadata as metadata
true = metadata.version
metadata.version = lambda name: {old!r} if name == {name!r} else true(name)
import fastdp
with fastdp.Budget(epsilon=1) as budget:
    try:
        fastdp.laplace(1, sensitivity=1, epsilon=1)
    finally:
        assert len(budget.releases) == 0
"""
    least = ".".join(map(str, requirements.LEAST[name]))
    said = f"ImportError: fastdp needs {name}>={least}, and {old} is installed: pip install '{name}>={least}'"
    assert last_line(patch) == said


def test_no_compiler() -> None:
    code = """
import fastdp
with fastdp.Budget(epsilon=1) as budget:
    try:
        fastdp.laplace(1, sensitivity=1, epsilon=1)
    finally:
        assert len(budget.releases) == 0
"""
    assert last_line(code, NUMBA_DISABLE_JIT="1") == f"ImportError: {requirements.NO_COMPILER}"


@pytest.mark.parametrize("command", ["info", "warmup"])
@pytest.mark.parametrize(("name", "least"), [("numba", "0.61"), ("numpy", "1.26")])
def test_the_commands_say_it_in_one_line(command: str, name: str, least: str) -> None:
    code = f"import sys; sys.modules[{name!r}] = None; from fastdp.cli import main; sys.exit(main([{command!r}]))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = f"fastdp {command}: fastdp needs {name}>={least}, which is not installed: pip install '{name}>={least}'\n"
    assert (done.returncode, done.stderr) == (2, said)
    assert done.stdout.startswith("fastdp  ") if command == "info" else not done.stdout


@pytest.mark.parametrize("found", ["1.26", "1.26.0", "2.0.0rc1", "2.5.dev0+gabc", "10.0"])
def test_new_enough(found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "version", lambda name: found)
    assert requirements.problem_with("numpy", (1, 26)) is None


def test_the_least_versions_are_those_of_the_package() -> None:
    with open(ROOT / "pyproject.toml", "rb") as file:
        stated = tomllib.load(file)["project"]["dependencies"]
    for name in ("numpy", "numba"):
        assert f"{name}>={'.'.join(map(str, requirements.LEAST[name]))}" in stated


def test_asking_imports_neither_numba_nor_numpy() -> None:
    assert last_line("import sys, fastdp.kernels; sys.exit(repr({'numpy', 'numba'} & set(sys.modules)))") == "set()"
