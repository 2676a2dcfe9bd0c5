"""Records outside of the domain: refused with a DomainError, or clipped to the nearest value: parameter `outside`.

Errors name the column and the rule, never a value. Missing entries, fractions and labels of other kinds have no nearest
value and are refused either way. Numbers beyond a line of positions are clipped by number_line.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.errors import DomainError
from ..support.parameters import Outside


def codes_in_range(name: str, array: NDArray[Any], size: int, outside: Outside) -> NDArray[Any]:
    """Integers 0 .. size - 1, the codes of a column."""
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    if array.dtype.kind == "f":
        array = _integers_of_floats(name, array, outside, size)
    if array.dtype.kind == "O":
        array = _integers_of_objects(name, array)
    if array.dtype.kind not in "iu":
        raise ValueError(f"column {name!r}: dtype {array.dtype}: must be integers, the codes 0 to {size - 1}")
    if array.size and (array.min() < 0 or array.max() >= size):
        if outside == "raise":
            raise DomainError(f"column {name!r}: must hold codes from 0 to {size - 1} only; there are others")
        array = np.clip(array, 0, size - 1)
    return array


def codes_of_labels(
    name: str, array: NDArray[Any], codes: Mapping[Any, int], dtype: Any, outside: Outside
) -> NDArray[Any]:
    """The codes of a column of labels; only labels that are increasing numbers have a nearest one to clip to."""
    ends = None
    if outside == "clip" and _increase(labels := list(codes)):
        ends = labels[0], labels[-1]

    def code_of(value: Any) -> int:
        if ends and _is_real(value) and value not in codes:
            value = ends[0] if value < ends[0] else ends[1] if value > ends[1] else value
        return codes[value]

    try:
        try:
            distinct, inverse = np.unique(array, return_inverse=True)
            values = distinct.tolist()
        except TypeError:  # objects that do not compare, such as None beside strings
            places: dict[Any, int] = {}
            inverse = np.empty(array.size, np.intp)
            for i, value in enumerate(array.tolist()):
                inverse[i] = places.setdefault(value, len(places))
            values = list(places)
        table = np.array([code_of(value) for value in values], dtype)
    except (KeyError, TypeError):
        clip = " or, for numbers beyond its ends, outside='clip'" if outside == "raise" and _increase([*codes]) else ""
        raise DomainError(
            f"column {name!r}: must hold the labels of the domain only; there are others: .fillna(label) for missing "
            f"entries, .replace(...) for other labels{clip}"
        ) from None
    return table[inverse.reshape(-1)] if array.size else np.empty(0, dtype)


def _increase(labels: list[Any]) -> bool:
    return all(map(_is_real, labels)) and all(a < b for a, b in pairwise(labels))


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integers_of_floats(name: str, array: NDArray[Any], outside: Outside, size: int) -> NDArray[Any]:
    if np.isnan(array).any():
        raise DomainError(f"column {name!r}: must not hold NaN")
    if outside == "clip":
        array = np.clip(array, 0, size - 1)
    if not ((array == np.floor(array)) & (abs(array) < 2.0**53)).all():
        raise DomainError(f"column {name!r}: must hold codes from 0 to {size - 1} only; there are others")
    return array.astype(np.int64)


def _integers_of_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    try:
        integers = array.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        raise DomainError(f"column {name!r}: must hold integers only; there are others") from None
    if not all(isinstance(value, int | np.integer) for value in array.tolist()):
        raise DomainError(f"column {name!r}: must hold integers only; there are others")
    return integers
