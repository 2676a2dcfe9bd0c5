"""Curves of Laplace noise in floats of 64 digits: beside 100 digits, within a float above, and not used elsewhere."""

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from fastdp.privacy import ORDERS, curves, long_floats

pytestmark = pytest.mark.skipif(not long_floats.has_64_bits(), reason="long doubles have fewer digits here")


def divergence(order, ratio):
    with mpmath.workdps(100):
        a, r = mpf(order), mpf(ratio)
        share = a / (2 * a - 1)
        return mpmath.log(share * mpmath.exp((a - 1) * r) + (1 - share) * mpmath.exp(-a * r)) / (a - 1)


@pytest.mark.parametrize("ratio", [1.0000001e-9, 3e-7, 1e-4, 0.0123, 0.1, 0.5, 1.0, 3.3, 3.999, 4.0, 17.0, 1000.0])
def test_a_divergence_is_the_exact_one_rounded_up_or_the_next_float(ratio):
    found = long_floats.laplace_divergences(ORDERS, ratio)
    for value, order in zip(found, ORDERS, strict=True):
        truth = divergence(order, ratio)
        assert truth <= mpf(value) * (1 + mpf(10) ** -60) or value == ratio
        assert np.nextafter(np.nextafter(value, 0.0), 0.0) < truth
    assert list(found) == sorted(found)


def test_decimals_serve_where_long_doubles_are_short(monkeypatch):
    quick = curves.laplace_curve(0.37)
    monkeypatch.setattr(curves, "has_64_bits", lambda: False)
    curves.laplace_curve.cache_clear()
    slow = curves.laplace_curve(0.37)
    curves.laplace_curve.cache_clear()
    assert all(b <= a <= np.nextafter(b, np.inf) for a, b in zip(quick, slow, strict=True))


def test_an_emulator_of_53_digits_is_noticed(monkeypatch):
    monkeypatch.setattr(np, "expm1", lambda x: np.longdouble(float(np.exp(x) - 1)))
    assert not long_floats.has_64_bits.__wrapped__()


def test_too_small_a_margin_is_noticed(monkeypatch):
    monkeypatch.setattr(long_floats, "_ERROR", -(2.0**-50))
    found = long_floats.laplace_divergences(ORDERS, 0.1)
    assert any(divergence(order, 0.1) > value for value, order in zip(found, ORDERS, strict=True))
