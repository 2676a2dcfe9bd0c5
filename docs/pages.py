"""Directives for what may or may not be there when the site is built: pages of other people, adapters, extras."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.directives.other import TocTree
from sphinx.util.docutils import SphinxDirective
from sphinx.util.matching import patfilter

HERE = Path(__file__).parent
HOSTS = HERE / "connect"


class Pages(TocTree):
    """A toctree of those of its pages and patterns that match anything."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        self.options["glob"] = None
        here = Path("/" + self.env.docname).parent
        there = [
            entry
            for entry in self.content
            if list(patfilter(self.env.found_docs, (here / entry).as_posix().removeprefix("/")))
        ]
        self.content = type(self.content)(there, source=self.env.docname)
        return super().run() if there else []


class Hosts(SphinxDirective):
    """A table of the pages in docs/connect, in the order of its rows `page | host | what for`; others by title."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        given = {row[0]: row[1:] for row in ([cell.strip() for cell in line.split("|")] for line in self.content)}
        there = {path.stem: path for path in sorted(HOSTS.glob("*.md")) if path.stem != "index"}
        order = [*(name for name in given if name in there), *(name for name in there if name not in given)]
        table = ["| With | What for |", "|---|---|"]
        for name in order:
            host, what = given.get(name) or _opening(there[name])
            table.append(f"| [{host}]({name}.md) | {what} |")
        toctree = ["", "```{toctree}", ":hidden:", "", *order, "```"]
        return self.parse_text_to_nodes("\n".join([*table, *toctree])) if order else []


def _opening(path: Path) -> tuple[str, str]:
    """The title of a page, and its first sentence."""
    text = path.read_text(encoding="utf-8")
    title, paragraph = re.search(r"^# (.*)\n+(.*)", text, re.MULTILINE).groups()
    return title, re.match(r".*?[.:](?= |$)|.*", paragraph)[0].rstrip(":").replace("|", r"\|")


class Adapters(SphinxDirective):
    """The reference of those of the named modules that there are; of one whose extra is missing here, the reason."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        text = []
        for name in self.content:
            place = HERE.parent / name.replace(".", "/")
            if place.with_suffix(".py").exists() or (place / "__init__.py").exists():
                text += [f"## {name}", "", *_module(name), ""]
        return self.parse_text_to_nodes("\n".join(text), allow_section_headings=True) if text else []


def _module(name: str) -> list[str]:
    try:
        importlib.import_module(name)
    except ImportError as missing:
        return [f"Not installed where this site was built: {missing}"]
    return ["```{eval-rst}", f".. automodule:: {name}", "```"]


def setup(app: Any) -> dict[str, Any]:
    app.add_directive("pages", Pages)
    app.add_directive("hosts", Hosts)
    app.add_directive("adapters", Adapters)
    return {"parallel_read_safe": True}
