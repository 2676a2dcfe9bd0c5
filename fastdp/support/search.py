"""The one search: where a monotone condition turns from false to true, or from true to false.

Every calibration that has no formula ends here: the least noise that is enough, the largest epsilon that fits, the
fewest records. What is returned has been seen to satisfy the condition, so the direction of rounding is safe whatever
the tolerance: `least_...` rounds up, `greatest_...` rounds down. The condition is asked of numbers from `smallest` to
`largest` only, and every search ends.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, TypeVar

from .shown import shown

SMALLEST, LARGEST = 2.0**-200, 2.0**60
_LARGEST_FLOAT = (2 - 2.0**-52) * 2.0**1023
MOST_RECORDS = 2**40  # of a search for the number of records that is enough

T = TypeVar("T")


class OutOfReachError(ArithmeticError):
    """No number within the limits satisfies the condition."""


def in_reach(name: str, value: Any, search: Callable[[], T], limit: str = "") -> T:
    """What the search finds; a ValueError for the parameter that asks for it if it finds nothing up to its limit."""
    try:
        return search()
    except OutOfReachError:
        raise ValueError(f"{name}={shown(value)}: is out of reach{limit}") from None


def middle_of_bracket(low: float, high: float) -> float:
    """Where a bracket is cut: geometrically as long as it spans powers of two."""
    if high < 4 * low:
        return low + (high - low) / 2 if high > 2.0**1022 else (low + high) / 2
    product = low * high
    return float(product**0.5 if 0 < product < inf else low**0.5 * high**0.5)


def _finite(low: float, high: float) -> tuple[float, float]:
    return min(low, _LARGEST_FLOAT / 2), min(high, _LARGEST_FLOAT)


def least_float(
    enough: Callable[[float], bool],
    *,
    guess: float = 1.0,
    bracket: tuple[float, float] | None = None,
    tolerance: float = 1e-10,
    smallest: float = SMALLEST,
    largest: float = LARGEST,
    middle_of: Callable[[float, float], float] = middle_of_bracket,
) -> float:
    """The least x > 0 that is enough, up to a relative `tolerance` above it; more is never worse.

    The search begins at `guess`, or with a `bracket` where the answer is expected; both may be wrong. Brackets are cut
    where `middle_of` decides. Where all that is tried down to `smallest` is enough, the last of it is returned.
    OutOfReachError if nothing up to `largest` is enough.
    """
    low, high = _finite(*(bracket or (guess / 2, guess)))
    while not enough(high):
        low, high = high, min(2 * high, _LARGEST_FLOAT)
        if not low < high <= largest:  # an infinity and a NaN, too
            raise OutOfReachError
    while low >= smallest and low > 0 and enough(low):
        low, high = low / 2, low
    return high if low < smallest or low == 0 else narrow(enough, low, high, tolerance, middle_of)[1]


def greatest_float(
    fits: Callable[[float], bool],
    *,
    guess: float = 1.0,
    bracket: tuple[float, float] | None = None,
    tolerance: float = 1e-10,
    smallest: float = SMALLEST,
    largest: float = LARGEST,
) -> float:
    """The greatest x > 0 that fits, up to a relative `tolerance` below it; less is never worse.

    The search begins at `guess`, or with a `bracket` where the answer is expected; both may be wrong. Where all that
    is tried up to `largest` fits, the last of it, more than half of `largest`, is returned; 0.0 where nothing down to
    `smallest` fits.
    """
    low, high = _finite(*(bracket or (guess, 2 * guess)))
    while not fits(low):
        low, high = low / 2, low
        if not (low >= smallest and low > 0):  # a NaN, too
            return 0.0
    while low < high <= largest and fits(high):
        low, high = high, min(2 * high, _LARGEST_FLOAT)
    return low if not low < high <= largest else narrow(lambda x: not fits(x), low, high, tolerance)[0]


def narrow(
    holds: Callable[[float], bool],
    low: float,
    high: float,
    tolerance: float,
    middle_of: Callable[[float, float], float] = middle_of_bracket,
) -> tuple[float, float]:
    """A bracket cut down to this relative width: `holds` is false at its lower end and true at the upper one.

    For brackets that are known; a tolerance of 0.0 leaves neighbouring floats.
    """
    while high - low > tolerance * high:
        middle = middle_of(low, high)
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def least_integer(
    enough: Callable[[int], bool], *, low: int = 0, guess: int | None = None, largest: int = 2**62, within: float = 0.0
) -> int:
    """The least integer >= `low` that is enough, or one larger by at most the share `within`; more is never worse.

    The search begins at `guess`, or right above `low`. OutOfReachError if nothing up to `largest` is enough.
    """
    if enough(low):
        return low
    high = max(low + 1, guess if guess is not None else low + 1)
    while not enough(high):
        if high >= largest:
            raise OutOfReachError
        low, high = high, min(high + 2 * (high - low), largest)
    while high - low > max(1, int(within * low)):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def greatest_integer(fits: Callable[[int], bool], *, low: int, high: int) -> int:
    """The greatest integer from `low` to `high` that fits; `low` is known to, and less is never worse."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
