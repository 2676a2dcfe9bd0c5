"""The oracle of real numbers against mpmath."""

from __future__ import annotations

import random
from fractions import Fraction

import mpmath
import pytest

from tests.oracles import numbers
from tests.oracles.enclosures import holds, mp, width


@pytest.mark.parametrize("bits", [8, 53, 200, 700])
def test_exp_and_ln_intervals(bits):
    source = random.Random(bits)
    tiny = [1 + Fraction(1, 2**k) for k in (1, 40, 300)] + [1 - Fraction(1, 2**k) for k in (1, 40, 300)]
    points = [
        Fraction(source.getrandbits(80) + 1, source.getrandbits(70) + 1) * Fraction(2) ** source.randint(-90, 60)
        for _ in range(60)
    ]
    points += [*tiny, Fraction(2), Fraction(1, 2), Fraction(2, 3), Fraction(4, 3), Fraction(2**100), Fraction(1, 3**99)]
    with mpmath.workprec(bits + 800):
        for x in points:
            interval = numbers.ln_interval(x, bits)
            assert holds(interval, mpmath.log(mp(x)))
            assert (interval[1] - interval[0]) * 2**bits <= min(map(abs, interval))
        for x in [y for point in points for y in (point, -point) if point < 2**12]:
            interval = numbers.exp_interval(x, bits)
            assert holds(interval, mpmath.exp(mp(x)))
            assert width(interval) <= Fraction(1, 2**bits)


def test_exp_and_ln_at_the_edges():
    assert numbers.exp_interval(0, 50) == (1, 1)
    assert numbers.ln_interval(1, 50) == (0, 0)
    with pytest.raises(ValueError, match="must be > 0"):
        numbers.ln_interval(0, 50)
    with pytest.raises(ValueError, match="must be within"):
        numbers.exp_interval(2**21, 50)
    for x in (-(2**15), -700.5, 2**15):
        with mpmath.workprec(300):
            assert holds(numbers.exp_interval(x, 60), mpmath.exp(x))


@pytest.mark.parametrize("bits", [10, 100, 500])
def test_pi_and_sqrt(bits):
    with mpmath.workprec(bits + 100):
        pi = numbers.pi_interval(bits)
        assert holds(pi, +mpmath.pi)
        assert width(pi) <= Fraction(1, 2**bits)
        root = numbers.sqrt_interval(pi, bits)
        assert holds(root, mpmath.sqrt(mpmath.pi))
        assert root[1] - root[0] <= Fraction(4, 2**bits)
