"""What the types of other libraries' columns say: which hold no numbers, and which hold nothing that is ever read here.

Types are public, entries are not: a column of strings is refused by its type wherever numbers are read, whatever
becomes of entries that are no numbers. A column of objects may hold anything, and says nothing.
"""

from __future__ import annotations

from typing import Any

_NUMBERS = "biuf"
_PLAIN = (bool, int, float)


def pandas_without_numbers(dtype: Any) -> str | None:
    """The name of a pandas type whose entries are no numbers."""
    if (categories := getattr(dtype, "categories", None)) is not None:
        if categories.dtype.kind in _NUMBERS or any(isinstance(each, _PLAIN) for each in categories):
            return None
        return "category" if len(categories) else None
    held = dtype.subtype if str(dtype).startswith("Sparse") else dtype
    plain = (getattr(held, "kind", "O") in _NUMBERS and str(held) != "str") or str(held) == "object"
    return None if plain else str(dtype)


def polars_without_numbers(dtype: Any) -> str | None:
    """The same of a polars type."""
    plain = dtype.is_numeric() or str(dtype) == "Boolean" or str(dtype).startswith("Object")
    return None if plain else str(dtype).partition("(")[0]


def arrow_without_numbers(kind: Any) -> str | None:
    """The same of an Arrow type."""
    from pyarrow import types

    held = kind.value_type if types.is_dictionary(kind) else kind
    plain = types.is_integer(held) or types.is_floating(held) or types.is_decimal(held) or types.is_boolean(held)
    return None if plain else str(kind)


def polars_unread(dtype: Any) -> bool:
    """Whether the entries of a polars type are read by nobody: several in one, or of more bits than numpy has."""
    return bool(dtype.is_nested()) or str(dtype) in ("Int128", "UInt128")
