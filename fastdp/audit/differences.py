"""What is different between two runs: how far a statistic moved, which records changed, whether results are the same.

All of it is about values that an audit holds twice; nothing here knows of releases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..records.rows import Rows


@dataclass(frozen=True)
class Moved:
    """How far a statistic is from what it was: the norms of the difference, and its least and greatest entry."""

    l1: float
    l2: float
    linf: float
    low: float
    high: float

    @property
    def nothing(self) -> bool:
        return self.linf == 0

    def with_more(self, other: Moved) -> Moved:
        """Of two parts of one vector."""
        return Moved(
            self.l1 + other.l1,
            hypot(self.l2, other.l2),
            max(self.linf, other.linf),
            min(self.low, other.low),
            max(self.high, other.high),
        )


def moved_by(then: Any, now: Any) -> Moved | str:
    """The difference of two statistics; where they have none, why: other shapes or types."""
    before, after = _numbers(then), _numbers(now)
    if before is None or after is None:
        return f"is a {type(now).__name__}, and was a {type(then).__name__}"
    if before.shape != after.shape:
        return f"has shape {after.shape}, and had {before.shape}"
    if (before.dtype.kind == "f") != (after.dtype.kind == "f"):
        return f"has type {after.dtype}, and had {before.dtype}"
    if not before.size:
        return Moved(0, 0, 0, 0, 0)
    a, b = before.astype(np.longdouble), after.astype(np.longdouble)  # exact for int64
    with np.errstate(all="ignore"):
        apart = np.where(a == b, np.longdouble(0), b - a).reshape(-1)  # of two infinities, too
    size = np.abs(apart)
    root = float(np.sqrt(np.sum(np.square(size / max(size.max(), 1e-300))))) * float(size.max())
    return Moved(float(size.sum()), root, float(size.max()), float(apart.min()), float(apart.max()))


def _numbers(value: Any) -> NDArray[Any] | None:
    try:
        array = np.asarray(value)
        if array.dtype == object:
            array = array.astype(np.longdouble)  # integers of Python's beyond int64
    except (TypeError, ValueError):
        return None
    return array if array.dtype.kind in "biuf" else None


# --- records


def records_changed(then: Any, now: Any) -> tuple[int, int] | None:
    """How many records went, and how many came; None of what is not compared."""
    before, after = _columns(then), _columns(now)
    if before is None or after is None or len(before) != len(after):
        return None
    old, new = Counter(zip(*before, strict=True)), Counter(zip(*after, strict=True))
    return (old - new).total(), (new - old).total()


def allowed_records(value: Any) -> int:
    """How many records neighbours may differ in: one, or those of one person."""
    rows = value if isinstance(value, Rows) else getattr(value, "rows", None)
    persons = rows.which.persons if isinstance(rows, Rows) else None
    return 1 if persons is None else persons.at_most


def _columns(value: Any) -> list[list[Any]] | None:
    """The columns of what a mechanism reads records from: an array, rows, or an object that holds rows and labels."""
    if isinstance(value, np.ndarray):
        table = value.reshape(len(value), -1)
        return [_plain(table[:, i]) for i in range(table.shape[1])]
    rows = value if isinstance(value, Rows) else getattr(value, "rows", None)
    if not isinstance(rows, Rows) or not rows.gathers:
        return None
    parts = rows.merge(
        lambda block: [[_plain(block.entries(i).values) for i in range(block.width)]], lambda a, b: [*a, *b]
    )
    columns = [[entry for part in parts for entry in part[i]] for i in range(rows.width)]
    labels = getattr(getattr(value, "given", getattr(value, "_given", None)), "values", None)
    return columns if labels is None else [*columns, _plain(np.asarray(labels))]


def _plain(column: Any) -> list[Any]:
    """Entries that compare: a NaN is one value."""
    return ["NaN" if isinstance(entry, float) and isnan(entry) else entry for entry in np.asarray(column).tolist()]


# --- results


@dataclass(frozen=True)
class Difference:
    """Where two results differ."""

    kind: str  # "shape" or "result"
    text: str


def difference(then: Any, now: Any, where: str = "the result") -> Difference | str | None:
    """How a result differs from what it was; None if it does not, and a text of what was not compared."""
    if type(then) is not type(now):
        return Difference("shape", f"{where} is a {type(now).__name__}, and was a {type(then).__name__}")
    if isinstance(then, Mapping):
        if list(then) != list(now):
            return Difference("shape", f"{where} has other keys")
        return _first(then.values(), now.values(), [f"{where}[{key!r}]" for key in then])
    if isinstance(then, list | tuple):
        if len(then) != len(now):
            return Difference("shape", f"{where} has {len(now)} entries, and had {len(then)}")
        return _first(then, now, [f"{where}[{i}]" for i in range(len(then))])
    if isinstance(then, np.ndarray | np.generic):
        if then.shape != now.shape or then.dtype != now.dtype:
            return Difference(
                "shape", f"{where} has shape {now.shape} of {now.dtype}, and had {then.shape} of {then.dtype}"
            )
        same = np.array_equal(then, now, equal_nan=then.dtype.kind in "fc")
        return None if same else Difference("result", f"{where} has other entries")
    return _of_objects(then, now, where)


def _of_objects(then: Any, now: Any, where: str) -> Difference | str | None:
    if isinstance(then, float) and isnan(then) and isnan(now):
        return None
    if isinstance(then, bool | int | float | complex | str | bytes | set | frozenset | type(None)):
        return None if then == now else Difference("result", f"{where} is another")
    if hasattr(then, "equals"):  # a frame or a column
        return None if bool(then.equals(now)) else Difference("result", f"{where} has other entries")
    if " at 0x" in repr(then):
        return f"{where}, a {type(then).__name__}, which has no repr that says what is in it"
    return None if repr(then) == repr(now) else Difference("result", f"{where} reads differently")


def _first(then: Any, now: Any, places: list[str]) -> Difference | str | None:
    found = [difference(a, b, where) for a, b, where in zip(then, now, places, strict=True)]
    return next((each for each in found if isinstance(each, Difference)), next((e for e in found if e), None))
