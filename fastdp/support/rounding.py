"""Arithmetic for guarantees: formulas in decimals of 60 digits, results rounded the safe way to float64.

A formula here is a handful of operations on floats. Where terms cancel, its callers see to it that 60 digits still
leave an error below what `up` and `down` allow for, a relative 10^-20 and an absolute 10^-50: both vanish when the
result is rounded to float64. Sums and products of floats are exact as fractions and get no allowance: 1 + 1 is 2.
Python's decimal exp, ln and sqrt are correctly rounded on every machine; libm is not, and is not used here. Nor is the
decimal context of the host, which may have few digits or strange traps: formulas with plain operators or conversions
stand under `sixty_digits`.
"""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from fractions import Fraction
from functools import wraps
from math import inf, nextafter
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def context_of(digits: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """A decimal context of our own, with nothing taken from the host's."""
    return Context(
        prec=digits,
        rounding=rounding,
        Emin=-999999,
        Emax=999999,
        capitals=1,
        clamp=0,
        flags=[],
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )


_CONTEXT = context_of(60)
_RELATIVE, _ABSOLUTE = Decimal("1e-20"), Decimal("1e-50")

add = _CONTEXT.add
subtract = _CONTEXT.subtract
multiply = _CONTEXT.multiply
divide = _CONTEXT.divide
exp = _CONTEXT.exp
ln = _CONTEXT.ln
sqrt = _CONTEXT.sqrt

Exact = Fraction | int | float


def decimal_value(x: float) -> Fraction:
    """The number that a float's shortest decimal form stands for: 0.1 is one tenth, and ten of them are 1.

    Budgets add up what they are charged so. It is within half a unit in the last place of the binary value.
    """
    return Fraction(repr(x))


def lower(x: float) -> Fraction:
    """The lesser of the decimal and the binary value: as much of an epsilon as a mechanism may use."""
    return min(decimal_value(x), Fraction(x))


def upper(x: float) -> Fraction:
    """The greater of the two: as much of a sensitivity as a mechanism must allow for."""
    return max(decimal_value(x), Fraction(x))


def sixty_digits(formula: Callable[P, R]) -> Callable[P, R]:
    """Inside `formula`, all that decimals do has 60 digits."""

    @wraps(formula)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        with localcontext(_CONTEXT):
            return formula(*args, **kwargs)

    return inside


@sixty_digits
def decimal_of(x: Fraction) -> Decimal:
    """A fraction in 60 digits."""
    return divide(Decimal(x.numerator), Decimal(x.denominator))


def up(x: Decimal | Exact) -> float:
    """A float >= x: the least one if x is exact, and for a decimal one that allows for its rounding errors."""
    if isinstance(x, Decimal):
        x = add(x, _allowance(x))
    return _next_if(x, -1)


def down(x: Decimal | Exact) -> float:
    """A float <= x, likewise."""
    if isinstance(x, Decimal):
        x = subtract(x, _allowance(x))
    return _next_if(x, 1)


def root_up(x: float) -> float:
    """The least float >= sqrt(x): integers decide whether math.sqrt, to nearest on every machine, has rounded down."""
    root = math.sqrt(x)
    if not root < inf:
        return root
    over, under = x.as_integer_ratio()
    while True:
        numerator, denominator = root.as_integer_ratio()
        if numerator * numerator * under >= over * denominator * denominator:
            return root
        root = nextafter(root, inf)


def decimal_value_up(x: Fraction) -> float:
    """The least float whose decimal value is >= x."""
    nearest = float(x)
    return nextafter(nearest, inf) if decimal_value(nearest) < x else nearest


def decimal_value_down(x: Fraction) -> float:
    """The largest float whose decimal value is <= x."""
    nearest = float(x)
    return nextafter(nearest, -inf) if decimal_value(nearest) > x else nearest


def _allowance(x: Decimal) -> Decimal:
    return add(multiply(x.copy_abs(), _RELATIVE), _ABSOLUTE)


def _next_if(x: Decimal | Exact, side: int) -> float:
    try:
        nearest = float(x)
    except OverflowError:
        nearest = inf if x > 0 else -inf
    if isinstance(x, Decimal):
        excess = int(_CONTEXT.compare(Decimal.from_float(nearest), x))
    else:
        excess = (nearest > x) - (nearest < x)
    if excess == side:
        return nextafter(nearest, -side * inf)
    return nearest
