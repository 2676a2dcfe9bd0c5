"""Records outside of the domain: refused with a DomainError, or taken as a public value: parameter `outside`.

Errors name the column and the rule, never a value; but that a call was refused tells that there is such a record. Under
"clip" no entry whatever is refused, and each becomes a value of the domain by a function of itself alone, so data sets
that differ in one record still do: every sensitivity holds as it is. Numbers on a line are clipped by number_line.py,
vectors by ../optimizing/points.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import inf, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.columns import NO_LABEL, Coded, Entries, missing_entries, objects, places_of
from ..support.errors import DomainError
from ..support.parameters import Outside


def is_missing(label: Any) -> bool:
    """Whether this stands for no entry: None, NaN, pandas.NA, NaT, numpy.ma.masked."""
    if label is None or label is np.ma.masked:
        return True
    try:
        return bool(label != label)
    except Exception:  # pandas.NA, which is neither; a signalling NaN of decimal; an object of anybody's
        return type(label).__name__ in ("NAType", "Decimal")


# --- codes


def codes_in_range(name: str, entries: Entries, size: int, outside: Outside) -> NDArray[Any]:
    """Integers 0 .. size - 1, the codes of a column; to be clipped, what is no number is 0."""
    array, missing, _ = entries
    if outside == "raise":
        array = entries.complete()
    if array.dtype.kind in "biu":
        array = np.ascontiguousarray(array)  # a column of a C-order array: one slow pass instead of three
    if array.dtype.kind == "b":
        array = array.view(np.uint8)
    if array.dtype.kind == "f":
        array = _integers_of_floats(name, array, outside, size)
    if array.dtype.kind == "O":
        array = _clipped_objects(array, size) if outside == "clip" else _integers_of_objects(name, array)
    if array.dtype.kind not in "iu":
        raise ValueError(f"column {name!r}: dtype {array.dtype}: must be integers, the codes 0 to {size - 1}")
    if array.size and (array.min() < 0 or array.max() >= size):
        if outside == "raise":
            raise DomainError(f"column {name!r}: must hold codes from 0 to {size - 1} only; there are others")
        array = np.clip(array, 0, size - 1)
    return array if missing is None else np.where(missing, 0, array)


def _integers_of_floats(name: str, array: NDArray[Any], outside: Outside, size: int) -> NDArray[Any]:
    if array.dtype == np.float16:  # which cannot be compared with large numbers
        array = array.astype(np.float32)
    if outside == "clip":
        array = np.where(np.isnan(array), 0, array).astype(np.float64)
        return np.asarray(np.rint(np.clip(array, 0, size - 1)), np.int64)
    if np.isnan(array).any():
        raise DomainError(f"column {name!r}: must not hold NaN")
    if not ((array == np.floor(array)) & (abs(array) < 2.0**53)).all():
        raise DomainError(f"column {name!r}: must hold codes from 0 to {size - 1} only; there are others")
    return array.astype(np.int64)


def _integers_of_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """Of integers, and of floats that are integers, as `_integers_of_floats` takes them."""
    try:
        integers = array.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        raise DomainError(f"column {name!r}: must hold integers only; there are others") from None
    if not all(isinstance(value, int | np.integer) or _is_whole(value) for value in array.tolist()):
        raise DomainError(f"column {name!r}: must hold integers only; there are others")
    return integers


def _is_whole(value: Any) -> bool:
    if isinstance(value, Decimal):
        return value.is_finite() and value.copy_abs() < 2**53 and value == int(value)
    return isinstance(value, float | np.floating) and -(2.0**53) < float(value) < 2.0**53 and float(value).is_integer()


def _clipped_objects(array: NDArray[Any], size: int) -> NDArray[np.int64]:
    return np.fromiter((_clipped_object(value, size) for value in array.tolist()), np.int64, array.size)


def _clipped_object(value: Any, size: int) -> int:
    if isinstance(value, float | np.floating | Decimal):
        value = _number_or_nan(value)
        value = 0 if value != value else round(float(min(max(value, 0), size - 1)))
    return min(max(int(value), 0), size - 1) if isinstance(value, int | np.integer | np.bool_) else 0


def bits_of(entries: Entries) -> NDArray[np.bool_]:
    """A column of 0 and 1, from one of whatever numbers and objects."""
    return np.asarray(codes_in_range(entries.label, entries, 2, "clip"), np.bool_)


# --- numbers


def numbers_or_nan(entries: Entries) -> NDArray[np.float64]:
    """Floats; NaN for what is missing or no number, an infinity for an integer beyond every float."""
    array, missing, label = entries
    if array.dtype.kind == "O":
        array = np.fromiter(map(_number_or_nan, array.tolist()), np.float64, array.size)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{label}: dtype {array.dtype}: must be numbers")
    array = np.asarray(array, np.float64)
    return array if missing is None else np.where(missing, np.nan, array)


def floats_of_objects(values: NDArray[Any], outside: str, label: str) -> NDArray[np.float64]:
    """Floats; NaN for what is no number, which is an error unless it is to be clipped."""
    if outside == "raise":
        for value in values.tolist():
            if isinstance(value, str | bytes):
                raise DomainError(f"{label}: column of strings: objects must be numbers; there are others")
            if not isinstance(value, int | float | Decimal | np.integer | np.floating | np.bool_):
                raise DomainError(f"{label}: objects must be numbers; there are others")
    return numbers_or_nan(Entries(values, None, label))


def _number_or_nan(value: Any) -> float:
    if not isinstance(value, int | float | Decimal | np.number | np.bool_) or isinstance(value, np.complexfloating):
        return nan
    try:
        return float(value)
    except ValueError:  # a signalling NaN of decimal
        return nan
    except OverflowError:
        return inf if value > 0 else -inf


# --- labels


def codes_of_labels(name: str, coded: Coded, codes: Mapping[Any, int], dtype: Any, outside: Outside) -> NDArray[Any]:
    """The codes of a column of labels; a missing entry has the code of the label None.

    To be clipped, a number among labels that are increasing numbers is the nearest of them; whatever else is no label
    is None if that is one, and otherwise the first.
    """
    places, labels = coded
    if not places.size:
        return np.empty(0, dtype)
    if places.min() < 0:  # the entries that are missing
        places = np.where(places < 0, len(labels), places.astype(np.intp))
        labels = objects([*labels.tolist(), None])
    numbers = _increasing(codes) if outside == "clip" else []
    table = np.zeros(len(labels), dtype)
    used = np.flatnonzero(np.bincount(places, minlength=len(labels)))  # the others need not be in the domain
    for place, label in zip(used.tolist(), labels[used].tolist(), strict=True):
        table[place] = _code_of(name, label, codes, numbers, outside)
    return np.asarray(table[places])


def distinct(entries: Entries) -> Coded:
    """The labels that occur among entries, and the place of each."""
    array, missing, _ = entries
    if array.dtype.kind == "O":
        places, labels = places_of(array)
    else:
        labels, places = np.unique(array, return_inverse=True)
        places = places.reshape(-1)
    return (places if missing is None else np.where(missing, -1, places)), labels


def _code_of(name: str, label: Any, codes: Mapping[Any, int], numbers: list[Any], outside: Outside) -> int:
    try:
        return codes[label]
    except (KeyError, TypeError, ValueError):  # the last two of what has no hash
        missing = is_missing(label)
    if missing and None in codes:
        return codes[None]
    if outside == "clip":
        label = label.item() if isinstance(label, np.generic) else label
        label = _number_or_nan(label) if isinstance(label, Decimal) else label
        if numbers and isinstance(label, int | float) and not missing:
            return codes[_nearest(label, numbers)]
        return codes.get(None, 0)
    if missing:
        raise DomainError(
            f"{missing_entries(f'column {name!r}')}; or have None among the labels, or pass outside='clip'"
        )
    if label is NO_LABEL:
        raise DomainError(f"column {name!r}: must hold labels only; there are objects without a hash")
    clip = " or, for numbers beyond its ends, outside='clip'" if _increasing(codes) else ""
    raise DomainError(
        f"column {name!r}: must hold the labels of the domain only; there are others: .fillna(label) for missing "
        f"entries, .replace(...) for other labels{clip}"
    )


def _nearest(value: Any, numbers: list[Any]) -> Any:
    """The nearest of increasing numbers; the lower of two at one distance."""
    above = bisect_left(numbers, value)
    if above in (0, len(numbers)):
        return numbers[max(above - 1, 0)]
    low, high = numbers[above - 1], numbers[above]
    return high if 2 * Fraction(value) > Fraction(low) + Fraction(high) else low


def _increasing(codes: Iterable[Any]) -> list[Any]:
    """The labels but None, if they are increasing numbers."""
    labels = [label for label in codes if label is not None]
    return labels if all(map(_is_real, labels)) and all(a < b for a, b in pairwise(labels)) else []


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
