"""Directed rounding, against fractions and 300-bit arithmetic: never on the wrong side, never far."""

import decimal
import math
import operator
import random
import threading
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest

from fastdp.support import rounding
from fastdp.support.rounding import down, root_up, up

BITS = 300
ALLOWED = 1e-50  # the absolute allowance of a decimal


def numbers(seed, count, low=-300, high=300, signs=(1, -1)):
    """Floats of all magnitudes between 10^low and 10^high."""
    draw = random.Random(seed)
    for _ in range(count):
        yield draw.choice(signs) * draw.uniform(1, 10) * 10.0 ** draw.randint(low, high - 1)


def exact(x):
    """A float, decimal or 300-bit number as a fraction."""
    if isinstance(x, mpmath.mpf):
        sign, mantissa, exponent, _ = x._mpf_
        return Fraction(-mantissa if sign else mantissa) * Fraction(2) ** exponent
    return Fraction(x)


# --- exact values: the least float above, the largest below


@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_of_exact_values_the_nearest_float_on_the_right_side(operation):
    on_a_float = 0
    for x, y in zip(numbers(1, 4000, -150, 150), numbers(2, 4000, -150, 150), strict=True):
        if random.Random(x).random() < 0.1:
            y = 2.0 ** int(math.log2(abs(x)))  # sums and products that are floats
        value = operation(Fraction(x), Fraction(y))
        above, below = up(value), down(value)
        assert Fraction(below) <= value <= Fraction(above)
        if above == below:
            on_a_float += 1
            assert Fraction(above) == value
        else:
            assert math.nextafter(below, math.inf) == above
    assert 200 < on_a_float < 2000


def test_what_float64_holds_stays_as_it_is():
    assert up(Fraction(1) + Fraction(1)) == down(Fraction(1) + Fraction(1)) == 2.0
    assert up(0) == down(0) == 0.0
    for x in [*numbers(3, 500), 5e-324, -5e-324, 2.0**-1074, 1.7976931348623157e308, math.inf, -math.inf]:
        assert up(x) == down(x) == x
    assert up(2**53 + 1) == 2**53 + 2
    assert down(2**53 + 1) == 2**53


def test_the_ends_of_the_range():
    largest, least = 1.7976931348623157e308, 5e-324
    tiny, huge = Fraction(1, 10**400), Fraction(10**400)
    assert (up(tiny), down(tiny)) == (least, 0.0)
    assert (up(-tiny), down(-tiny)) == (0.0, -least)
    assert (up(huge), down(huge)) == (math.inf, largest)
    assert (up(-huge), down(-huge)) == (-largest, -math.inf)
    assert (up(10**400), down(10**400)) == (math.inf, largest)
    assert (up(Decimal("1e400")), down(Decimal("1e400"))) == (math.inf, largest)
    assert (up(Decimal("-1e400")), down(Decimal("-1e400"))) == (-largest, -math.inf)


def test_up_and_down_mirror_each_other():
    for x in numbers(4, 300):
        third = Fraction(x) / 3
        assert up(-third) == -down(third)
        value = rounding.divide(Decimal(x), Decimal(3))
        assert up(-value) == -down(value)


def test_a_root_is_the_least_float_above():
    given = [*numbers(1, 500, signs=(1,)), *(draw for k in range(2, 40) for draw in (k, k * k, 10**k + 1, k / 7))]
    for x in given:
        root = root_up(x)
        assert Fraction(root) ** 2 >= Fraction(x) > Fraction(math.nextafter(root, 0)) ** 2
    assert (root_up(0), root_up(math.inf)) == (0.0, math.inf)


# --- decimals: formulas, rounded 60 digits at a time


FORMULAS = {
    "exp": (lambda x: rounding.exp(Decimal(x)), mpmath.exp, (-6, 2)),
    "exp near 1": (lambda x: rounding.exp(Decimal(x)), mpmath.exp, (-300, -6)),
    "ln": (lambda x: rounding.ln(Decimal(abs(x))), lambda x: mpmath.log(abs(x)), (-300, 300)),
    "sqrt": (lambda x: rounding.sqrt(Decimal(abs(x))), lambda x: mpmath.sqrt(abs(x)), (-300, 300)),
    "reciprocal": (lambda x: rounding.divide(Decimal(1), Decimal(x)), lambda x: 1 / x, (-300, 300)),
    "product": (
        lambda x: rounding.multiply(Decimal(x), rounding.exp(Decimal(1))),
        lambda x: x * mpmath.e,
        (-300, 300),
    ),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_of_decimals_never_the_wrong_side_and_never_far(name):
    formula, oracle, (low, high) = FORMULAS[name]
    with mpmath.workprec(BITS):
        for x in numbers(name, 1500, low, high):
            truth = oracle(mpmath.mpf(x))
            value = formula(x)
            above, below = up(value), down(value)
            assert below <= truth <= above
            assert above - below <= 2 * math.ulp(float(truth)) + 2.001 * ALLOWED


def test_a_decimal_that_was_rounded_to_a_float_is_not_taken_for_it():
    rounded = rounding.add(Decimal(1), Decimal("1e-62"))  # 1 in 60 digits
    assert rounded == 1
    assert up(rounded) > 1
    assert down(rounding.subtract(Decimal(1), Decimal("1e-62"))) < 1
    assert up(Decimal(0)) >= ALLOWED
    assert down(Decimal(0)) <= -ALLOWED


def test_the_allowance_is_what_the_page_says():
    for x in numbers(6, 500, -45, 300):
        value, slack = Fraction(x) * (1 + Fraction(1, 10**21)), Fraction(abs(x)) / 10**20
        decimal_value = rounding.divide(Decimal(value.numerator), Decimal(value.denominator))
        assert Fraction(up(decimal_value)) >= value + slack * Fraction(9, 10)
        assert Fraction(down(decimal_value)) <= value - slack * Fraction(9, 10)


def test_chains_of_operations_stay_inside():
    """Sums of products of exponentials and logarithms with no cancellation: a hundred roundings at a time."""
    draw = random.Random(7)
    for _ in range(40):
        terms = [(draw.uniform(0.1, 5), draw.uniform(-5, 5)) for _ in range(50)]
        value = Decimal(0)
        for x, y in terms:
            value = rounding.add(value, rounding.multiply(Decimal(x), rounding.exp(Decimal(y))))
        value = rounding.ln(rounding.add(Decimal(1), value))
        with mpmath.workprec(BITS):
            truth = mpmath.log(1 + mpmath.fsum(mpmath.mpf(x) * mpmath.exp(mpmath.mpf(y)) for x, y in terms))
            assert down(value) <= truth <= up(value)


# --- a guest in its host


def hostile():
    context = decimal.Context(prec=3, rounding=decimal.ROUND_DOWN)
    for signal in (decimal.Inexact, decimal.Rounded, decimal.FloatOperation):
        context.traps[signal] = True
    return context


@rounding.sixty_digits
def _two_thirds(x):
    return up(Decimal(x) * 2 / 3 - (Decimal(x) - Decimal(x)))


def test_the_context_of_the_host_does_not_matter_and_is_left_alone():
    expected = [
        (up(rounding.exp(Decimal(x))), down(rounding.ln(Decimal(x))), up(-Fraction(x) / 3), _two_thirds(x))
        for x in (0.1, 3.7, 55.5)
    ]
    with decimal.localcontext(hostile()) as host:
        before = str(host)
        found = [
            (
                up(rounding.exp(Decimal.from_float(x))),
                down(rounding.ln(Decimal.from_float(x))),
                up(-Fraction(x) / 3),
                _two_thirds(x),
            )
            for x in (0.1, 3.7, 55.5)
        ]
        assert str(decimal.getcontext()) == before
    assert found == expected


def test_the_default_context_of_new_threads_does_not_matter(run_python):
    """A host may change `decimal.DefaultContext` before fastdp is imported."""
    code = """
import decimal
decimal.DefaultContext.prec = 4
decimal.DefaultContext.rounding = decimal.ROUND_DOWN
decimal.DefaultContext.traps[decimal.Inexact] = True
decimal.DefaultContext.Emin, decimal.DefaultContext.Emax = -3, 3
decimal.setcontext(decimal.Context())
from fastdp import BoundedRange, PureDP, compose
print(compose((BoundedRange(0.3), 20), PureDP(20.0), delta=1e-7).epsilon)
"""
    from fastdp import BoundedRange, PureDP, compose

    expected = compose((BoundedRange(0.3), 20), PureDP(20.0), delta=1e-7).epsilon
    assert float(run_python(code)) == expected


def test_sixty_digits_come_back_after_an_error_and_hold_in_threads():
    @rounding.sixty_digits
    def fail():
        raise KeyError

    before = decimal.getcontext().prec
    with pytest.raises(KeyError):
        fail()
    assert decimal.getcontext().prec == before
    results = []
    threads = [threading.Thread(target=lambda: results.append(_two_thirds(0.7))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [_two_thirds(0.7)] * 4
    assert exact(results[0]) >= Fraction(0.7) * Fraction(2, 3)
