"""What the tests of the oracles ask of an enclosing interval."""

from __future__ import annotations

from fractions import Fraction

import mpmath

from tests.oracles.numbers import Interval


def mp(x: Fraction | float) -> mpmath.mpf:
    x = Fraction(x)
    return mpmath.mpf(x.numerator) / x.denominator


def holds(interval: Interval, value: mpmath.mpf) -> bool:
    return bool(mp(interval[0]) <= value <= mp(interval[1]))


def width(interval: Interval) -> Fraction:
    return (interval[1] - interval[0]) / interval[0]
