"""Engines: libraries such as Dask that hold records elsewhere, each read by the module that is registered for it.

An engine is registered at the extension point "engine", under the top-level package of its collections' types. Its
module has a function `open_rows(data, name)`, which returns a collection as `Rows`; if there is a name, the collection
is one column, and errors call it so. Nothing here imports an engine before a collection of it arrives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..support import extensions
from .rows import Rows

_PAGES = {"pyspark": "docs/connect/spark.md"}  # libraries that gather their tables where they are asked for an array


def engine_of(data: Any) -> str | None:
    """The engine that a collection belongs to, by the package of its type or a base of it; None for other data."""
    if type(data) is np.ndarray:
        return None
    known = {*extensions.names("engine"), *_PAGES}
    packages = (kind.__module__.partition(".")[0] for kind in type(data).__mro__)
    return next((package for package in packages if package in known), None)


def is_collection(data: Any) -> bool:
    """Whether this is a collection of an engine, of whatever kind."""
    return engine_of(data) is not None


def open_collection(engine: str, data: Any, name: str = "") -> Rows:
    """The collection as rows; with `name` it is one column."""
    if engine not in extensions.names("engine"):
        raise ValueError(
            f"{name or 'data'}: type {type(data).__name__} of {engine}: must be given as a fastdp.records.Engine, or "
            f"it would be gathered in this process; {_PAGES[engine]} has one"
        )
    rows: Rows = extensions.load("engine", engine).open_rows(data, name)
    return rows
