"""How results read, in a terminal and in a notebook: a table of names and values, or one line."""

from __future__ import annotations

import html
from abc import ABC, abstractmethod

DisplayLines = list[tuple[str, str]]


class Displayed(ABC):
    """A result that prints as a few lines of names and values. Dataclasses of it take repr=False, to keep this one."""

    @abstractmethod
    def _display(self) -> DisplayLines:
        """Names and values."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}\n{as_text(self._display())}"

    def _repr_html_(self) -> str:
        return as_html(type(self).__name__, self._display())


class DisplayedOnOneLine:
    """A result whose repr is one line: in a notebook the same, as code."""

    def _repr_html_(self) -> str:
        return as_code(repr(self))


def as_code(line: str) -> str:
    """One line as code; it is escaped."""
    return f"<p><code>{html.escape(line)}</code></p>"


def as_text(lines: DisplayLines) -> str:
    """The values below one another, beside their names; the further lines of a value below its first."""
    wide = max(len(name) for name, _ in lines)
    further = "\n" + " " * (wide + 4)
    return "\n".join(f"  {name:<{wide}}  {value.replace(chr(10), further)}" for name, value in lines)


def as_html(caption: str, lines: DisplayLines) -> str:
    """The same as a table; values are escaped."""
    rows = "".join(f"<tr><th>{name}</th><td>{_as_cell(value)}</td></tr>" for name, value in lines)
    return f"<table><caption>{caption}</caption>{rows}</table>"


def _as_cell(value: str) -> str:
    escaped = html.escape(value)
    return f"<pre>{escaped}</pre>" if "\n" in value else escaped
