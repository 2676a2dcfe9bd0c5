"""The one search: where a monotone condition turns from false to true, or from true to false.

Every calibration that has no formula ends here: the least noise that is enough, the largest epsilon that fits, the
fewest records. What is returned has been seen to satisfy the condition, so the direction of rounding is safe whatever
the tolerance: `least_...` rounds up, `greatest_...` rounds down. Conditions are called with finite numbers only, and
every search ends.
"""

from __future__ import annotations

from collections.abc import Callable


class OutOfReachError(ArithmeticError):
    """No number within the limits satisfies the condition."""


def least_float(
    enough: Callable[[float], bool],
    *,
    guess: float = 1.0,
    tolerance: float = 1e-10,
    smallest: float = 2.0**-200,
    largest: float = 2.0**60,
) -> float:
    """The least x > 0 that is enough, up to a relative `tolerance` above it; more is never worse.

    Where even numbers below `smallest` are enough, such a number is returned. OutOfReachError if none up to twice
    `largest` is.
    """
    high = guess
    while not enough(high):
        high *= 2
        if high > largest:
            raise OutOfReachError
    low = high / 2
    while enough(low):
        low, high = low / 2, low
        if low < smallest:
            return high
    return _narrow(enough, low, high, tolerance)[1]


def greatest_float(
    fits: Callable[[float], bool],
    *,
    guess: float = 1.0,
    tolerance: float = 1e-10,
    smallest: float = 2.0**-200,
    largest: float = 2.0**60,
) -> float:
    """The greatest x > 0 that fits, up to a relative `tolerance` below it; less is never worse.

    Where even numbers above `largest` fit, such a number is returned; 0.0 where none down to `smallest` does.
    """
    low = guess
    while not fits(low):
        low /= 2
        if low < smallest:
            return 0.0
    high = 2 * low
    while fits(high):
        low, high = high, 2 * high
        if low > largest:
            return low
    return _narrow(lambda x: not fits(x), low, high, tolerance)[0]


def _narrow(holds: Callable[[float], bool], low: float, high: float, tolerance: float) -> tuple[float, float]:
    """A bracket of this relative width: the condition is false at its lower end and true at the upper one."""
    while high - low > tolerance * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def least_integer(
    enough: Callable[[int], bool], *, low: int = 0, guess: int | None = None, largest: int = 2**62, within: float = 0.0
) -> int:
    """The least integer >= `low` that is enough, or one that is larger by at most the share `within`; more is never
    worse.

    `guess` says where to begin. OutOfReachError if none up to `largest` is enough.
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
