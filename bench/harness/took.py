"""How long each case took to measure when it was measured last on this machine: what the time left is estimated from.

Seconds, by the name of the case, in a file of the user's cache; where it cannot be read or written nothing is known.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

from .environments import root


def _file() -> Path:
    return root().with_name("bench-seconds.json")


def expected(names: Iterable[str], *, quick: bool) -> list[float]:
    """What each of these will take: what it took before; the median of what is known where it is new; else 1."""
    known = _read(quick)
    usual = median(known.values()) if known else 1.0
    return [known.get(name, usual) for name in names]


def remember(seconds: Mapping[str, float], *, quick: bool) -> None:
    """Add to what is known."""
    path = _file()
    whole = {kind: _read(kind == "quick") for kind in ("quick", "full")}
    whole["quick" if quick else "full"].update({name: round(took, 3) for name, took in seconds.items()})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".", delete=False) as file:
            json.dump(whole, file)
        os.replace(file.name, path)
    except OSError:  # a full disk, a read-only home: the next estimate counts cases alike
        return


def _read(quick: bool) -> dict[str, float]:
    try:
        kept = json.loads(_file().read_text())["quick" if quick else "full"]
        return {str(name): max(float(took), 0.001) for name, took in kept.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
