"""The notebooks among the pages: every cell runs, and what is stored with a cell is what it shows."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted(DOCS.glob("**/*.ipynb"))
sys.path.insert(0, str(DOCS))

import notebooks  # noqa: E402

sys.path.remove(str(DOCS))


def cells(path: Path, kind: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


def kinds(outputs: list[dict[str, Any]]) -> list[Any]:
    return [sorted(output.get("data", {"text": 0})) for output in outputs]


def test_there_is_one() -> None:
    assert "day.ipynb" in [path.name for path in NOTEBOOKS]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_every_cell_runs_and_shows_what_is_stored(path: Path) -> None:
    for cell, outputs in zip(cells(path, "code"), notebooks.run(path), strict=True):
        assert kinds(cell["outputs"]) == kinds(outputs), "".join(cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_reads_well(path: Path) -> None:
    assert path.stat().st_size < 250_000
    for cell in [*cells(path, "code"), *cells(path, "markdown")]:
        source = "".join(cell["source"])
        assert all(len(line) <= (120 if cell["cell_type"] == "code" else 100) for line in source.splitlines()), source
        assert not re.search(r"/tmp/|/home/|/root/", json.dumps(cell)), source
    page = notebooks.as_markdown(path.read_text())
    assert page.count("```python\n") == len(cells(path, "code"))
    assert all("".join(cell["source"]) in page for cell in cells(path, "markdown"))


def test_a_cell_that_fails_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": ["1 / 0"]}]}))
    with pytest.raises(ZeroDivisionError) as caught:
        list(notebooks.run(path))
    assert caught.traceback[-1].frame.code.raw.co_filename == "x.ipynb, cell 0"


def test_what_cells_show(tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    sources = ["print('a')\n3", "4;", "x = 5", "import matplotlib.pyplot as plt\nplt.plot([1, x]);"]
    path.write_text(json.dumps({"cells": [{"cell_type": "code", "source": [source]} for source in sources]}))
    notebooks.store(path)
    stored = cells(path, "code")
    assert stored[0]["outputs"][0]["text"] == ["a\n"]
    assert stored[0]["outputs"][1]["data"] == {"text/plain": ["3"]}
    assert stored[1]["outputs"] == stored[2]["outputs"] == []
    assert kinds(stored[3]["outputs"]) == [["image/png"]]
    assert [cell["execution_count"] for cell in stored] == [1, 2, 3, 4]
