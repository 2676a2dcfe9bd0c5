"""Docstrings of fastdp as Sphinx reads them.

They are numpydoc: a line, paragraphs, then underlined sections. Parameters, Returns and their like hold items `name :
type` with a text below; Notes hold rows of a name, two spaces or more and a text that goes on below itself; indented
blocks are meant as they stand. Nothing in them is markup but `names`, and references to proof notes.
"""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import stringify_signature
from sphinx.util.typing import stringify_annotation

ROOT = Path(__file__).parents[1]
PAGES = {
    path.name: "/" + path.relative_to(ROOT).with_suffix("").as_posix()
    for pattern in ("docs/*.md", "fastdp/**/*.md", "kernels/*.md")
    for path in sorted(ROOT.glob(pattern))
    if not path.is_relative_to(ROOT / "fastdp" / "kernels")
}

ROW = re.compile(r"(?P<label>\S(?:.*?\S)??)  +(?P<text>\S.*)")
CHOICE = re.compile(r'("[\w-]+"|None)(:|  +) *(?=\S)')  # a choice that a text lists on a line of its own
MARKED = re.compile(r"`(?P<code>[^`]+)`|(?P<path>[\w/]*\b(?P<page>\w+\.md))\b")


def inline(text: str) -> str:
    """A line of text with its names as code, its pages as links, and nothing else that reStructuredText would read."""
    parts, at = [], 0
    for match in MARKED.finditer(text):
        parts.append(_escape(text[at : match.start()]))
        if match["code"]:
            parts.append(f"``{match['code']}``\\ ")
        elif match["page"] in PAGES:
            parts.append(f":doc:`{match['path']} <{PAGES[match['page']]}>`\\ ")
        else:
            parts.append(_escape(match["path"]))
        at = match.end()
    return "".join([*parts, _escape(text[at:])])


def _escape(text: str) -> str:
    return re.sub(r"([\\*_|`<>\[\]])", r"\\\1", text)


ITEMS = {"Parameters", "Other Parameters", "Returns", "Yields", "Raises", "Warns", "Attributes", "Methods"}
QUIET = {"Notes"}  # its rows speak for themselves


def restructured(lines: list[str]) -> list[str]:
    """What a docstring says, as reStructuredText."""
    done: list[str] = []
    for title, body in sections(lines):
        if title and title not in QUIET:
            done += [f".. rubric:: {title}", ""]
        if title in ITEMS:
            for name, text in items(body):
                below = "\n".join(restructured(text)).strip("\n").split("\n")
                done += [_term(name, title), *(f"    {line}" for line in below), ""]
        else:
            for paragraph in _paragraphs(body):
                done += [*_block(paragraph), ""]
    return done


def sections(lines: list[str]) -> list[tuple[str, list[str]]]:
    """(title, lines) of a docstring; what stands before the first title has none."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in lines:
        body = found[-1][1]
        if set(line) == {"-"} and len(line) > 2 and body and len(body[-1]) == len(line):
            found.append((body.pop(), []))
        else:
            body.append(line)
    return found


def items(lines: list[str]) -> list[tuple[str, list[str]]]:
    """(name and type, lines of the text below it) of a section such as Parameters."""
    found: list[tuple[str, list[str]]] = []
    for line in lines:
        if line.strip() and not line.startswith(" "):
            found.append((line.strip(), []))
        elif found:
            found[-1][1].append(line)
    return [(name, textwrap.dedent("\n".join(text)).split("\n")) for name, text in found]


def _term(item: str, section: str) -> str:
    """`name : type`: the name as code, the type as text. Where there is no name, as in Returns, all is a type."""
    name, colon, kind = item.partition(" : ")
    if not colon:
        return f"``{item}``" if section in ("Raises", "Warns", "Parameters", "Methods") else inline(item)
    return f"``{name}`` : *{_escape(kind.replace('`', ''))}*"


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    paragraph: list[str] = []
    for line in [*lines, ""]:
        if line.strip() and not (line.startswith(">>> ") and paragraph == ["Examples"]):
            paragraph.append(line.rstrip())
        else:
            if paragraph:
                yield paragraph
            paragraph = [line] if line.strip() else []


def _block(lines: list[str]) -> list[str]:
    if lines == ["Examples"]:
        return [".. rubric:: Examples"]
    if lines[0].startswith(">>> "):
        return lines
    rows = _rows(lines)
    if rows is None:
        return ["::", "", *(f"    {line}" for line in lines)]
    done = []
    for label, text in rows:
        if label is None:
            done += ["", inline(" ".join(text)), ""]
        else:
            term = f"**{_escape(label)}**" if label[0].isupper() and label.isalpha() else f"``{label}``"
            if label in HEADS:
                term = f"**{label}**"
            done += [term]
            for each in text:
                done += [f"    {inline(each)}", ""]
    return done


HEADS = {"Not covered"}


def _rows(lines: list[str]) -> list[tuple[str | None, list[str]]] | None:
    """(label, its texts), or (None, lines of a paragraph); None if lines are indented otherwise than to go on."""
    rows: list[tuple[str | None, list[str]]] = []
    column = 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        row = ROW.fullmatch(line)
        if indent:
            if not rows or indent != column:
                return None
            text = rows[-1][1]
            if CHOICE.match(line.strip()):
                text.append(line.strip())
            else:
                text[-1] += " " + line.strip()
        elif row:
            column = row.start("text")
            rows.append((row["label"], [row["text"]]))
        else:
            column = 0
            if rows and rows[-1][0] is None:
                rows[-1][1].append(line)
            else:
                rows.append((None, [line]))
    return rows


def signature_of(thing: Any) -> tuple[str, str]:
    """Parameters and result as the source has them, but for names of choices, which are spelt out."""
    found = inspect.signature(thing)
    names = vars(sys.modules[thing.__module__])
    kept = [each for each in found.parameters.values() if each.name != "self"]
    spelt = [each.replace(annotation=_spelt(each.annotation, names)) for each in kept]
    result = _spelt(found.return_annotation, names)
    shown = "" if isinstance(thing, type) or result is inspect.Signature.empty else stringify_annotation(result)
    return stringify_signature(found.replace(parameters=spelt, return_annotation=inspect.Signature.empty)), shown


def _spelt(annotation: Any, names: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation

    def choices(match: re.Match[str]) -> str:
        value = names.get(match[0])
        return " | ".join(map(repr, get_args(value))) if get_origin(value) is Literal else match[0]

    return "'" + re.sub(r"\b\w+\b", choices, annotation) + "'"  # as a quoted name, which is shown without quotes


def sign(app: Any, kind: str, name: str, thing: Any, options: Any, given: str | None, result: Any) -> Any:
    """Sphinx asks for every signature; one that the page itself gives stays."""
    return signature_of(thing) if given and given != "()" and kind in ("function", "method", "class") else None


def process(app: Any, kind: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Sphinx asks for every docstring."""
    lines[:] = restructured(lines)


def skip(app: Any, kind: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Sphinx asks which members to leave out: besides its own choice, those that others put into our classes."""
    home = getattr(thing, "__module__", None) or "fastdp"
    return None if home.partition(".")[0] == "fastdp" else True


def without_overloads(analyzer: ModuleAnalyzer) -> None:
    """Signatures are shown as they are defined: overloads are for type checkers, and hide the parameters' names."""
    analyze(analyzer)
    analyzer.overloads = {}


analyze = ModuleAnalyzer.analyze


def setup(app: Any) -> dict[str, Any]:
    ModuleAnalyzer.analyze = without_overloads
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", sign)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
