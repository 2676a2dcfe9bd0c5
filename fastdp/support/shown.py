"""How an error shows what was given: numbers and words as they are, anything else by its type and shape.

Whatever it is, showing it raises nothing, prints no data and takes no time: of an unknown class nothing but `shape` is
read, and long numbers and words are cut.
"""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

_MOST = 60  # characters of a word, digits of a number
_MOST_OF_OURS = 200  # of what fastdp made, which shows no data
_EXACT = (type(None), bool, float, complex, int, str, bytes, Decimal)
_SIZED = (list, tuple, dict, set, frozenset, range, bytearray, memoryview)


def shown(value: Any) -> str:
    """A value as errors name it."""
    kind = type(value)
    if kind in (float, int, str, bool) or value is None:  # most of all
        return _short(value)
    with suppress(Exception):  # of classes that are not ours
        return _of_kind(kind, value)
    return f"<{type_name(kind)}>"


def described(value: Any) -> str:
    """What stands where it cannot belong, and may be a record: its type, and its shape if it has one."""
    kind = type(value)
    with suppress(Exception):  # of classes that are not ours
        is_numpy = hasattr(kind, "dtype") and not hasattr(kind, "__array_finalize__")
        if not is_numpy and kind not in _EXACT and kind is not Fraction:
            return shown(value)
    return f"<{type_name(kind)}>"


def _of_kind(kind: type, value: Any) -> str:
    if kind in _EXACT:
        return _short(value)
    if kind is Fraction:
        return f"Fraction({_short(value.numerator)}, {_short(value.denominator)})"
    module = kind.__module__.partition(".")[0]
    if module == "numpy" and hasattr(kind, "dtype") and not hasattr(kind, "__array_finalize__"):  # a scalar
        return _cut(repr(value), _MOST) if value.dtype.kind in "biufcUS" else f"<{type_name(kind)}>"
    if module == "fastdp":
        return _cut(repr(value).partition("\n")[0], _MOST_OF_OURS)
    if isinstance(value, type):
        return f"<class {type_name(value)}>"
    if kind in (FunctionType, BuiltinFunctionType, MethodType):
        return f"<function {_cut(value.__name__, _MOST)}>"
    if kind in _SIZED:
        return f"<{kind.__name__} of length {len(value)}>" if len(value) else repr(value)
    shape = value.shape
    if type(shape) is tuple and all(type(size) is int for size in shape):
        return f"<{type_name(kind)} of shape {shape}>"
    return f"<{type_name(kind)}>"


def _short(value: Any) -> str:
    if type(value) is int and value.bit_length() > 200:
        return f"<int of {value.bit_length():,} bits>"
    if type(value) in (str, bytes) and len(value) > _MOST:
        return f"{value[:_MOST]!r}..."
    return _cut(repr(value), 2 * _MOST + 10)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."


def first_line(error: Exception) -> str:
    """Of what an error says; its class where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def type_of(value: Any) -> str:
    """The name of its class."""
    return type_name(type(value))


def type_name(kind: type) -> str:
    return _cut(type.__dict__["__name__"].__get__(kind), _MOST)
