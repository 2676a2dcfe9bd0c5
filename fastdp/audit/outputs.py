"""Outputs of any kind as a table of numbers: what events are about.

Arrays are their entries; lists, tuples and mappings what is in them; what is no number is a category. A column that has
both is two: which kind, and the number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..support.checks import check_fits
from ..support.progress import Report

D = TypeVar("D")

KIND = "kind of"  # what columns of categories are called: their numbers say how those are ordered, and no more
_CHUNK = 1 << 16  # outputs that are drawn at once
_MOST_COLUMNS = 4096


class Outputs(NamedTuple):
    """The outputs on both inputs, a row each, and what the columns are called."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    names: tuple[str, ...]


def sampled(run: Callable[..., Any], inputs: tuple[D, D], runs: int, many: bool, report: Report) -> Outputs:
    """So many outputs on each of the two inputs."""
    found: list[Any] = []
    for i, data in enumerate(inputs):
        drawn: list[Any] = []
        for start in range(0, runs, _CHUNK if many else 1):
            if many or start % 256 == 0:
                report(i * runs + start, 2 * runs, "sampling")
            if many:
                count = min(_CHUNK, runs - start)
                drawn.append(_checked(np.asarray(run(data, count)), count))
            else:
                drawn.append(run(data))
        found.append(np.concatenate(drawn) if many else drawn)
    report(2 * runs, 2 * runs, "")
    return _table(found[0], found[1])


def _checked(outputs: NDArray[Any], count: int) -> NDArray[Any]:
    if outputs.ndim == 0 or len(outputs) != count:
        raise ValueError(f"run: shape {outputs.shape} for {count} outputs: must have one row for each, with many=True")
    return outputs.reshape(count, -1)


def _table(first: Any, second: Any) -> Outputs:
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        if first.shape[1] != second.shape[1]:
            raise ValueError(f"run: {first.shape[1]} and {second.shape[1]} numbers an output: must be alike")
        if first.dtype.kind in "biuf" and second.dtype.kind in "biuf":
            check_fits("runs", len(first), 16 * first.size, "so many outputs")
            names = tuple(f"output[{i}]" if first.shape[1] > 1 else "output" for i in range(first.shape[1]))
            return Outputs(first.astype(np.float64), second.astype(np.float64), names)
        first, second = first.tolist(), second.tolist()
    n = len(first)
    rows = [dict(_leaves(output, "output")) for output in (*first, *second)]
    places = list(dict.fromkeys(place for row in rows for place in row))
    if len(places) > _MOST_COLUMNS:
        raise ValueError(f"run: {len(places):,} numbers an output: must be at most {_MOST_COLUMNS:,}; return fewer")
    named = [each for place in places for each in _columns_of(place, [row.get(place) for row in rows])]
    table = np.column_stack([column for _, column in named])
    return Outputs(table[:n], table[n:], tuple(name for name, _ in named))


def _leaves(output: Any, where: str) -> Iterator[tuple[str, Any]]:
    if isinstance(output, np.ndarray):
        output = output.tolist()
    if isinstance(output, Mapping):
        for key, value in output.items():
            yield from _leaves(value, f"{where}[{key!r}]")
    elif isinstance(output, Sequence) and not isinstance(output, str | bytes):
        yield f"len({where})", len(output)
        for i, value in enumerate(output):
            yield from _leaves(value, f"{where}[{i}]")
    else:
        yield where, output


def _columns_of(place: str, values: list[Any]) -> Iterator[tuple[str, NDArray[np.float64]]]:
    is_number = [isinstance(value, bool | int | float | np.number) for value in values]
    if not all(is_number):
        kinds = ["a number" if number else repr(value) for value, number in zip(values, is_number, strict=True)]
        codes = {kind: code for code, kind in enumerate(sorted(set(kinds)))}
        yield f"{KIND} {place}", np.array([codes[kind] for kind in kinds], np.float64)
    if any(is_number):
        yield (
            place,
            np.array([float(value) if number else -np.inf for value, number in zip(values, is_number, strict=True)]),
        )
