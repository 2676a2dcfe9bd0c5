"""Which files the kernels of fastdp are made of: held against Python's own parser, and against what kernels refer to.

That an edit compiles anew what is made of it, and nothing else, is tried in test_compile_cache.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest

from fastdp.kernels import catalogue
from fastdp.kernels.compile import Callback
from fastdp.kernels.sources import Sources

FOLDER = Path(__file__).resolve().parents[2] / "kernels"
PACKAGE = "fastdp.kernels"
NO_SAY = {
    "cache_folder",
    "forks",
    "known_answers",
    "requirements",
    "shipped",
    "sources",
}  # of the machinery, in what is compiled
COMPILED = (*catalogue.MODULES, "bit_generator", "function_pointers", "layout")
KERNELS = {f"{PACKAGE}.{module}" for module in COMPILED}


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources()


def statements(module: str) -> Iterator[str]:
    """The modules that a file imports, as the parser sees it."""
    for node in ast.walk(ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1
            yield from [node.module] if node.module else [alias.name for alias in node.names]


@pytest.mark.parametrize("module", COMPILED)
def test_imports_are_those_of_the_parser(module: str, sources: Sources) -> None:
    found, pending = {"__init__", "call_types", "compile", "compile_cache", "parts"}, {module}
    while pending:
        found.add(at := pending.pop())
        pending |= set(statements(at)) - found
    assert sources.made_of([module]) == found
    assert not found & NO_SAY


def references(value: Any, seen: set[int]) -> Iterator[str]:
    """The modules of ours that a kernel, function, intrinsic, class or what is in them comes from."""
    if id(value) in seen:
        return
    seen.add(id(value))
    value = getattr(value, "py_func", None) or getattr(value, "_defn", None) or value
    if isinstance(value, Callback):
        value = value.function
    if isinstance(value, ModuleType):
        yield value.__name__
        return
    if isinstance(value, tuple | list | set | frozenset | dict):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from references(each, seen)
        return
    yield str(getattr(value, "__module__", ""))
    yield type(value).__module__
    if hasattr(value, "__code__") and value.__module__ in KERNELS:
        for name in names(value.__code__):
            yield from references(value.__globals__.get(name), seen)
        for cell in value.__closure__ or ():
            yield from references(cell.cell_contents, seen)


def names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names(constant)


@pytest.mark.parametrize("module", COMPILED)
def test_what_a_kernel_refers_to_is_what_it_is_made_of(module: str, sources: Sources) -> None:
    """No import statement would show what one module puts into another."""
    at = import_module(f"{PACKAGE}.{module}")
    own = [value for value in vars(at).values() if getattr(value, "__module__", None) == at.__name__]
    own += [value for value in vars(at).values() if isinstance(value, tuple | dict | Callback)]
    found = {name for value in own for name in references(value, set())}
    ours = {name.removeprefix(f"{PACKAGE}.") for name in found if name.startswith(f"{PACKAGE}.")}
    assert ours <= sources.made_of([module])
    assert module == "layout" or len(found) > 1


def test_few_files_are_part_of_every_kernel(sources: Sources) -> None:
    """An edit compiles anew what it must: histograms and boxes know nothing of noise."""
    assert "noise" in sources.made_of(["noise"]) & sources.made_of(["function_pointers"])
    assert "chacha20_blocks" in sources.made_of(["bins", "noise"])
    assert {"noise", "chacha20_blocks", "points"}.isdisjoint(sources.made_of(["histograms", "boxes"]))
