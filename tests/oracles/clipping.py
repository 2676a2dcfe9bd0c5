"""What outside="clip" makes of one entry, entry by entry, in exact arithmetic: the definition of the parameter."""

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any


def number(value: Any) -> Fraction | float | None:
    """The number that an entry is, an infinity among them; None for what is missing or none."""
    if isinstance(value, bool | int):
        return Fraction(int(value))
    if type(value).__name__.startswith(("int", "uint", "bool")) and hasattr(value, "item"):
        return Fraction(int(value))
    if isinstance(value, Decimal):
        value = float("nan" if value.is_snan() else value)
    if isinstance(value, float) or type(value).__name__.startswith("float"):
        held = float(value)
        return None if held != held else held if math.isinf(held) else Fraction(held)
    return None


def code(value: Any, size: int) -> int:
    """Of an attribute without labels: the nearest code, of two the even one; 0 for no number."""
    found = number(value)
    if found is None:
        return 0
    if found <= 0:
        return 0
    return size - 1 if found >= size - 1 else round(found)


def label(value: Any, labels: list[Any]) -> int:
    """Of an attribute with labels."""
    for place, one in enumerate(labels):
        try:
            if one is not None and bool(one == value):
                return place
        except Exception:
            continue
    numbers = [one for one in labels if one is not None]
    found = number(value)
    increasing = numbers and all(type(one) in (int, float) for one in numbers) and sorted(set(numbers)) == numbers
    if increasing and found is not None:
        return labels.index(min(numbers, key=lambda one: (_distance(found, one), one)))
    return labels.index(None) if None in labels else 0


def _distance(found: Fraction | float, one: Any) -> Any:
    if isinstance(found, float):  # an infinity: the label at its end is nearest
        return -Fraction(one) if found > 0 else Fraction(one)
    return abs(found - Fraction(one))


def coordinate(value: Any) -> Fraction:
    """Of a vector, before it is shortened: 0 for no number, the largest float for an infinity."""
    found = number(value)
    if found is None:
        return Fraction(0)
    largest = Fraction(1.7976931348623157e308)
    return (largest if found > 0 else -largest) if isinstance(found, float) else max(min(found, largest), -largest)


def shortened(vector: list[Any], clip: float) -> list[float]:
    """A vector of exact coordinates, brought to norm `clip` where it is longer."""
    exact = [coordinate(value) for value in vector]
    square = sum(c * c for c in exact)
    if square <= Fraction(clip) ** 2:
        return [float(c) for c in exact]
    scale = 10**40
    norm = Fraction(math.isqrt(int(square * scale**2)), scale)  # 40 places: enough to compare with floats
    return [float(c * Fraction(clip) / norm) for c in exact]
