"""Docstrings in the form that IDEs read (numpydoc): every parameter of every public name, in order, and no other.

What is written about a parameter that several functions share begins as fastdp/support/parameters.py declares it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import fastdp
from fastdp.support import parameters

MODULES = ("fastdp", "fastdp.privacy", "fastdp.bounds", "fastdp.losses", "fastdp.sets", "fastdp.sklearn")
ADAPTERS = tuple(f"fastdp.connect.{name}" for name in ("dp_accounting", "mbi", "opendp", "smartnoise"))
SECTIONS = (
    "Parameters",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "Attributes",
    "See Also",
    "Notes",
    "References",
    "Examples",
)


def module_of(name: str) -> Any:
    if name in ("fastdp.losses", "fastdp.sets"):
        return getattr(fastdp, name.rpartition(".")[2])
    return pytest.importorskip(name) if name.startswith("fastdp.sklearn") else importlib.import_module(name)


def public_in(name: str) -> Iterator[tuple[str, Any]]:
    """The functions and classes of ours that a module offers."""
    module = module_of(name)
    listed = getattr(module, "__all__", []) if name != "fastdp.bounds" else []  # bounds loads some when asked
    for each in listed or dir(module):
        thing = getattr(module, each)
        if each.startswith("_") or not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        if thing.__module__.partition(".")[0] == "fastdp" and not (
            inspect.isclass(thing) and issubclass(thing, Exception | Warning)
        ):
            yield f"{name}.{each}", thing


def adapters() -> Iterator[tuple[str, Any]]:
    for name in ADAPTERS:
        try:
            importlib.import_module(name)
        except ImportError:
            continue  # its library is not installed
        yield from (pair for pair in public_in(name) if f"{pair[1].__module__}.".startswith(f"{name}."))


def documented() -> dict[str, Any]:
    """Every public function, class and method by one name."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for name, thing in [pair for module in MODULES for pair in public_in(module)] + list(adapters()):
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        found[name] = thing
        if inspect.isclass(thing):
            for method, raw in vars(thing).items():
                function = raw.__func__ if isinstance(raw, classmethod | staticmethod) else raw
                if method.startswith("_") or not inspect.isfunction(function) or function.__name__ == "<lambda>":
                    continue
                if id(function) not in seen:
                    seen.add(id(function))
                    found[f"{name}.{method}"] = function
    return found


def taken(thing: Callable[..., Any]) -> list[str]:
    """The parameters of a signature as numpydoc writes them."""
    if inspect.isclass(thing) and (getattr(thing, "_is_protocol", False) or inspect.isabstract(thing)):
        return []
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = inspect.signature(thing).parameters.values()
    return [stars.get(p.kind, "") + p.name for p in found if p.name not in ("self", "cls") and p.name[0] != "_"]


def sections(thing: Any) -> dict[str, list[str]]:
    lines = (inspect.getdoc(thing) or "").splitlines()
    found: dict[str, list[str]] = {"": []}
    title = ""
    for line, under in zip(lines, [*lines[1:], ""], strict=True):
        if line and under == "-" * len(line):
            title = line
            found[title] = []
        elif not (line and set(line) == {"-"}):
            found[title].append(line)
    return found


def described(thing: Any) -> list[tuple[str, str, str]]:
    """(name, type, text) of every parameter that a docstring describes."""
    found: list[tuple[list[str], str, list[str]]] = []
    for line in sections(thing).get("Parameters", []):
        if line and not line.startswith(" "):
            names, _, kind = line.partition(" : ")
            found.append((names.split(", "), kind, []))
        elif found and line.strip():
            found[-1][2].append(line.strip())
    return [(name, kind, " ".join(text)) for names, kind, text in found for name in names]


THINGS = documented()


def complaints(name: str) -> list[str]:
    thing = THINGS[name]
    lines = (inspect.getdoc(thing) or "").splitlines() if "__doc__" in vars(thing) or inspect.isfunction(thing) else []
    if not lines:
        return ["has no docstring"]
    wrong = []
    if not lines[0].endswith((".", ":")):
        wrong.append("the first line is no sentence")
    if unknown := [title for title in sections(thing) if title and title not in SECTIONS]:
        wrong.append(f"sections {unknown}")
    found = described(thing)
    if [each for each, _, _ in found] != taken(thing):
        wrong.append(f"describes {[each for each, _, _ in found]}, takes {taken(thing)}")
    for each, kind, text in found:
        shared = [declared.takes for declared in parameters.DECLARED if declared.name == each]
        if shared and not any(kind == takes or kind.startswith(takes + ", ") for takes in shared):
            wrong.append(f"{each} : {kind!r} should begin as {' or '.join(map(repr, shared))}")
        if not kind or not text:
            wrong.append(f"{each}: {'no text' if kind else 'no type'}")
    return wrong


def test_there_is_much_to_describe() -> None:
    assert len(THINGS) > 150
    assert sum(len(taken(thing)) for thing in THINGS.values()) > 300


@pytest.mark.parametrize("name", sorted(THINGS))
def test_every_parameter_is_described(name: str) -> None:
    assert complaints(name) == []


def test_what_a_wrong_docstring_looks_like() -> None:
    def release(values, epsilon, *, budget=None):
        """Release values.

        Parameters
        ----------
        values : array_like
            What is released.
        epsilon : float
            The privacy parameter.
        """

    THINGS["release"] = release
    try:
        found = complaints("release")
    finally:
        del THINGS["release"]
    assert found == [
        "describes ['values', 'epsilon'], takes ['values', 'epsilon', 'budget']",
        "epsilon : 'float' should begin as 'float > 0' or 'float >= 0'",
    ]
