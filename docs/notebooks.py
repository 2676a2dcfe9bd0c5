"""Notebooks among the pages: what runs their cells, keeps the results with them, and makes pages of them.

`python docs/notebooks.py docs/day.ipynb` runs a notebook and stores what its cells show. The suite runs the cells too;
the site shows what is stored. Nothing of Jupyter is needed for either.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import html
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_BACK = "`" * 3


def run(path: Path) -> Iterator[list[dict[str, Any]]]:
    """What each cell of code shows, in the format of notebooks, one after the other."""
    import matplotlib

    matplotlib.use("Agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] == "code":
            yield _run_cell("".join(cell["source"]), f"{path.name}, cell {number}", namespace)


def _run_cell(source: str, name: str, namespace: dict[str, Any]) -> list[dict[str, Any]]:
    import matplotlib.pyplot as plt

    """A value at the end is shown, unless a semicolon follows it."""
    tree = ast.parse(source)
    quiet = source.rstrip().endswith(";")
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), namespace)
        if last is not None:
            value = eval(compile(last, name, "eval"), namespace)
    shown: list[dict[str, Any]] = []
    if printed.getvalue():
        shown.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    for figure in map(plt.figure, plt.get_fignums()):
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=80, bbox_inches="tight")
        encoded = base64.b64encode(picture.getvalue()).decode()
        shown.append({"output_type": "display_data", "metadata": {}, "data": {"image/png": encoded}})
    plt.close("all")
    if value is not None and not quiet:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_") and (rich := value._repr_html_()) is not None:
            data["text/html"] = _lines(rich)
        shown.append({"output_type": "display_data", "metadata": {}, "data": data})
    return shown


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def store(path: Path) -> None:
    """Run a notebook, and keep with each cell what it shows."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, (cell, outputs) in enumerate(zip(code, run(path), strict=True), 1):
        cell["outputs"], cell["execution_count"] = outputs, count
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def as_markdown(text: str) -> str:
    """A notebook as a page: its words, its code, what is stored with it."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"{_BACK}python\n{source}\n{_BACK}")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![](data:image/png;base64,{''.join(data['image/png'])})")
            elif "text/html" in data:
                parts.append(f"{_BACK}{{raw}} html\n<div class='output'>{''.join(data['text/html'])}</div>\n{_BACK}")
            else:
                shown = "".join(output.get("text") or data["text/plain"]).rstrip()
                parts.append(f"{_BACK}{{raw}} html\n<pre>{html.escape(shown)}</pre>\n{_BACK}")
    return "\n\n".join(parts) + "\n"


def setup(app: Any) -> dict[str, Any]:
    """Let Sphinx take notebooks as pages."""
    from myst_parser.parsers.sphinx_ import MystParser

    class Notebook(MystParser):
        supported = ("notebook",)

        def parse(self, inputstring: str, document: Any) -> None:
            super().parse(as_markdown(inputstring), document)

    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(Notebook)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    for given in sys.argv[1:]:
        store(Path(given))
