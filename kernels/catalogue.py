"""What there is in here, read off the modules: every kernel, its arguments and its contract, as a page of Markdown.

A kernel is a compiled function without an underscore; one that is inlined into its callers' loops is a piece. The
contract is the docstring: what it computes, and the fields of FIELDS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import cleandoc, signature
from re import match, sub
from typing import Any

FIELDS = ("Like", "Shapes", "Cost", "Source", "Requires", "Returns", "Used by", "Oracle")
"""Of a contract: whose it is but for what is said here; arguments; time; where from; what the caller owes; ..."""

# in the order of the page; the rest of the package is machinery
MODULES = (
    "words", "chacha20_blocks", "aes", "aes_software", "noise", "discrete_laplace", "discrete_gaussian", "draw_bits",
    "scores", "buckets", "gumbel_max", "permute_and_flip", "weights", "subcubes", "walsh", "sums", "fits",
    "junction_trees", "isotonic", "sampling", "histograms", "short_strings", "bins", "persons", "clamped_sums",
    "square_root", "literals", "losses", "clipping", "gradients", "class_gradients", "given_gradients",
    "vector_sums", "descent", "points", "rounded_points", "projections", "moments", "rounded_moments",
    "covering_nets", "tangents", "number_line", "ordering", "cuts", "ranks", "boxes", "adaptive_choices", "elementary",
    "arrays", "lanes", "pair_lanes", "aes_lanes", "address_calls", "int_or_float",
)  # fmt: skip
_WIDEST = 100  # of a formula, in characters: the column of the site
MACHINERY = (
    "bit_generator", "cache_folder", "call_types", "catalogue", "chacha20", "compile", "compile_cache", "forks",
    "function_pointers", "known_answers", "layout", "parts", "requirements", "shipped", "sources",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A kernel, or a piece of one: its name and arguments, and its docstring."""

    name: str
    function: Any
    inline: bool
    text: str

    @property
    def call(self) -> str:
        """As it is called."""
        python = getattr(self.function, "py_func", None) or self.function._defn
        names = list(signature(python).parameters)
        return f"{self.name}({', '.join(names if hasattr(self.function, 'py_func') else names[1:])})"

    @property
    def summary(self) -> str:
        """The first line."""
        return self.text.partition("\n")[0]

    @property
    def fields(self) -> dict[str, str]:
        """The contract, field by field."""
        found: dict[str, str] = {}
        current = None
        for line in self.text.splitlines()[1:]:
            if (field := match(r"([A-Z][a-z]+(?: [a-z]+)?)  +(\S.*)", line)) and field[1] in FIELDS:
                current = field[1]
                found[current] = field[2]
            elif current and line.startswith(" "):
                found[current] += " " + line.strip()
            else:
                current = None
        return found

    @property
    def formula(self) -> str:
        """What stands between the first line and the fields."""
        lines = []
        for line in self.text.splitlines()[1:]:
            if any(line.startswith(f"{field}  ") for field in FIELDS):
                break
            lines.append(line)
        return "\n".join(lines).strip("\n")


def entries(module: str) -> list[Entry]:
    """What a module offers, in the order in which it is written."""
    return list(_entries(import_module(f"{__package__}.{module}")))


def _entries(module: Any) -> Iterator[Entry]:
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        if hasattr(value, "py_func") and value.py_func.__module__ == module.__name__:
            inline = bool(value.targetoptions.get("forceinline"))
            yield Entry(name, value, inline, cleandoc(value.__doc__ or ""))
        elif hasattr(value, "_defn") and value._defn.__module__ == module.__name__:  # an operation of lanes
            yield Entry(name, value, True, cleandoc(value._defn.__doc__ or ""))


def page() -> str:
    """docs/kernels.md."""
    parts = [_HEAD]
    for module in MODULES:
        text = cleandoc(import_module(f"{__package__}.{module}").__doc__ or "")
        found = entries(module)
        kernels, pieces = [e for e in found if not e.inline], [e for e in found if e.inline]
        parts.append(f"## {module}\n\n{_prose(text)}")
        if kernels:
            rows = [(f"[`{e.name}`](#{e.name})", _plain(e.summary), _plain(e.fields.get("Cost", ""))) for e in kernels]
            parts.append(_table("kernel", "computes", "cost", rows=rows))
        parts += [_contract(e) for e in kernels]
        if pieces:
            parts.append(f"*Pieces* of {module}, for loops of your own, into which they are inlined:")
            parts.append(_table("piece", "what it is", rows=[(f"`{e.call}`", _plain(e.summary)) for e in pieces]))
    return "\n\n".join(parts) + "\n"


def _table(*names: str, rows: Sequence[tuple[str, ...]]) -> str:
    lines = [names, ("---",) * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _contract(entry: Entry) -> str:
    formula = "".join(f"\n\n{_explained(part)}" for part in entry.formula.split("\n\n") if part)
    fields = "\n".join(f"- **{name}**: {_plain(text)}" for name, text in entry.fields.items())
    return f"### {entry.name}\n\n`{entry.call}`\n\n{_plain(entry.summary)}{formula}\n\n{fields}"


def _explained(part: str) -> str:
    """A paragraph between the first line and the fields: a formula, whose parts stand two spaces apart, or prose."""
    if not match(r"[\w.]+(\[.*?\])? \+?=|\(.*\)\[", part) and "\n  " not in part:
        return _plain(part)
    lines = [line if len(line) <= _WIDEST else sub(r"(?<=\S) {2,}", "\n", line) for line in part.splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```"


def _prose(text: str) -> str:
    """Paragraphs of a module's docstring; indented lines stay as they are."""
    return "\n\n".join(
        f"```text\n{part}\n```" if part.startswith("  ") else _plain(part) for part in text.split("\n\n")
    )


def _plain(text: str) -> str:
    """Text in which Markdown sees nothing but text, and `code`."""
    parts = text.split("`")
    parts[::2] = [sub(r"([\\*_<>|\[\]])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [part.replace("|", "\\|") for part in parts[1::2]]
    return "`".join(parts)


_HEAD = """\
# Kernels

Every compiled loop of fastdp, with its contract. They are public: call them from Python, from a function that you
compile with numba, serial or in `prange` ([how](connect/numba.md)), or some of them from C ([how](connect/c.md)).
This page is made from their docstrings by `python -m fastdp.kernels > docs/kernels.md`.

What holds for all of them:

- They check nothing, raise nothing and charge no budget. **Requires** is the caller's part: an array that is too short
  is a crash or a wrong number, a scale without its plan is noise of another law. Nothing here is private by itself; the
  functions of `fastdp` are what checks, charges and resolves exactly.
- Arrays are C-contiguous and aligned, of exactly the types that **Shapes** names; `float64[n]` has n entries. Shape
  letters: n records or entries, d dimensions, D cells, k queries or literals, T rounds.
- A draw is a function of (key, stream, index). Whoever draws owes a key of 8 uint32 words, fresh for every release
  (`fastdp.Randomness().key()`), and no index twice under one key.
- They release Python's lock, keep nothing between calls, and write only to what is called `out` or said to be
  overwritten; work space and `out` of two calls that run at once must be different.
- The same arguments give the same bits, whatever the number of threads; on every machine, too, but for sums over
  public weights, which may be reordered.

**Like** names a kernel whose contract holds but for what is said."""
