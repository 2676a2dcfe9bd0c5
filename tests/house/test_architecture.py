"""The plan of the house, kept: layers, no cycles, sizes of files, functions and calls."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import fastdp
from fastdp.support import extensions

ROOT = Path(__file__).resolve().parents[2]

# A layer imports those before it, never one after it; rooms of the same layer do not import each other.
LAYERS = (
    ("kernels",),
    ("support",),
    ("privacy",),
    ("randomness",),
    ("records",),
    ("mechanisms",),
    ("answering", "optimizing", "learning", "statistics"),
    ("bounds",),
    ("audit", "connect", "sklearn", "capi", "demo", "cli", "bench", "__main__"),
)
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
TOP = len(LAYERS) - 1

LONGEST_FILE, LONGEST_FUNCTION, MOST_ARGUMENTS = 500, 60, 10

# What is longer than the plan allows, each with its reason and measurement in a comment there.
EXCEPTIONS: set[str] = {"kernels.function_pointers.sum_gradients"}


def module_of(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[0] == "fastdp":
        parts = parts[1:]
    if parts and parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(parts)


@cache
def sources(*folders: str) -> dict[str, Path]:
    found = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(parent.is_symlink() for parent in path.parents):
                found[module_of(path)] = path
    return found


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported(module: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of ours that a file imports anywhere, functions included; what only type checkers read is left
    out."""
    package = module.split(".") if path.name == "__init__.py" and module else module.split(".")[:-1]
    pending: list[ast.AST] = [tree_of(path)]
    while pending:
        node = pending.pop()
        if checking(node):
            continue
        pending += ast.iter_child_nodes(node)
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = ".".join(package[: len(package) - node.level + 1] + ([node.module] if node.module else []))
            elif (node.module or "").split(".")[0] == "fastdp":
                base = (node.module or "")[len("fastdp.") :]
            else:
                continue
            for alias in node.names:
                inner = f"{base}.{alias.name}".strip(".")
                names.append(inner if inner in known else base)
        elif isinstance(node, ast.Import):
            names += [alias.name[len("fastdp.") :] for alias in node.names if alias.name.startswith("fastdp.")]
        yield from (name for name in names if name and name != module)


@cache
def graph() -> dict[str, set[str]]:
    known = sources("fastdp", "kernels", "bench")
    return {module: set(imported(module, path, known)) for module, path in known.items() if module}


def room_of(module: str) -> str:
    return module.split(".")[0]


def test_every_room_has_its_layer() -> None:
    assert {room_of(module) for module in graph()} == set(LEVEL)


def test_layers_are_one_way() -> None:
    wrong = [
        f"{module} imports {other}"
        for module, others in graph().items()
        for other in sorted(others)
        if room_of(other) != room_of(module) and LEVEL[room_of(other)] >= LEVEL[room_of(module)] < TOP
    ]
    assert wrong == []


def test_modules_that_are_imported_by_name_exist() -> None:
    """What no import statement shows: public names, the rooms of the bounds, what upper layers register."""
    registered = {module.removeprefix("fastdp.") for at in extensions._registered.values() for module in at.values()}
    named = {*fastdp._HOME.values(), *fastdp._MODULES.values(), *fastdp.bounds._ROOMS}
    assert len(registered) > 5
    assert {module for module in named | registered if module not in graph()} == set()
    assert {room_of(module) for module in named if LEVEL[room_of(module)] > LEVEL["bounds"]} == {"audit"}
    assert {module for module in fastdp.bounds._ROOMS if LEVEL[room_of(module)] >= LEVEL["bounds"]} == set()


def test_no_module_imports_itself_in_a_circle() -> None:
    """Lazy imports count: a circle through a function is a circle."""
    edges = {module: {other for other in others if other in graph()} for module, others in graph().items()}
    left = dict(edges)
    while leaves := [module for module, others in left.items() if not others & left.keys()]:
        for module in leaves:
            del left[module]
    # what is left lies on a circle or leads to one; cut off what only leads there
    while roots := [
        module for module in left if not any(module in others for m, others in left.items() if m != module)
    ]:
        for module in roots:
            del left[module]
    assert left == {}


def own_lines(path: Path) -> set[int]:
    """The numbers of the lines of code: no docstrings, comments, blanks."""
    text = path.read_text(encoding="utf-8").splitlines()
    prose: set[int] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                prose |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return {i for i, line in enumerate(text, 1) if i not in prose and line.strip() and not line.strip().startswith("#")}


def too_long() -> Iterator[str]:
    for module, path in sources("fastdp", "kernels").items():
        lines, code = len(path.read_text(encoding="utf-8").splitlines()), own_lines(path)
        if lines > LONGEST_FILE:
            yield f"{module}: {lines} lines"
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = len(code & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))
                if length > LONGEST_FUNCTION:
                    yield f"{module}.{node.name}: {length} lines of code"
                if len(node.args.posonlyargs) + len(node.args.args) > MOST_ARGUMENTS:
                    yield f"{module}.{node.name}: takes {len(node.args.args)} positional arguments"
            elif isinstance(node, ast.Call):
                given = len(node.args)
                if given > MOST_ARGUMENTS:
                    yield f"{module}: {ast.unparse(node.func)} is called with {given} positional arguments"


def test_sizes() -> None:
    found = set(too_long())
    assert {entry for entry in found if not any(entry.startswith(name) for name in EXCEPTIONS)} == set()
    assert len(EXCEPTIONS) <= 5


def named_in(name: str) -> list[str]:
    """The lines of a selection of tests: each a folder, a file or a test of a file, in order, none twice."""
    lines = (ROOT / "tests" / name).read_text(encoding="utf-8").splitlines()
    named = [line for line in lines if line and not line.startswith("#")]
    assert len(named) == len(set(named))
    for line in named:
        path, _, test = line.partition("::")
        assert path.startswith("tests/")
        assert (ROOT / path).exists(), line
        function = test.partition("[")[0]
        assert not test or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), line
    return named


def test_the_quick_suite_is_of_every_room() -> None:
    named = named_in("quick.txt")
    assert named == sorted(named)
    rooms = {path.name for path in (ROOT / "tests").iterdir() if (path / "__init__.py").exists()}
    assert rooms - {name.split("/")[1] for name in named} == {"peers"}


def test_what_pins_the_bits_runs_on_the_oldest_versions() -> None:
    """That no law is drawn again there rests on these; and no room's behaviour may be left out as a whole."""
    left_out = named_in("floor.txt")
    pins = ["house/test_same_bits.py", "house/test_vectors.py", "kernels/test_known_answers.py", "randomness"]
    assert not [name for name in left_out for pin in pins if f"tests/{pin}".startswith(name)]
    whole = {name.split("/")[1] for name in left_out if name.count("/") == 1}
    assert whole <= {"bench", "oracles"}


@pytest.mark.parametrize("room", ["fastdp"])
def test_the_root_holds_only_what_is_said(room: str) -> None:
    names = {path.name for path in (ROOT / room).glob("*.py")}
    assert names == {"__init__.py", "__main__.py", "bounds.py", "cli.py"}
