"""What errors show of what was given: numbers and words; of everything else its type and shape, whatever it does."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp.support.shown import shown


class Hostile:
    """Each of its methods raises."""

    def __getattribute__(self, name):
        raise RuntimeError("secret")

    __repr__ = __str__ = __len__ = __bool__ = __eq__ = __hash__ = __float__ = __index__ = __iter__ = __getattribute__


class Lying(str):
    def __repr__(self):
        return "secret"

    __str__ = __format__ = __repr__


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "None"),
        (True, "True"),
        (-1, "-1"),
        (0.5, "0.5"),
        ("best", "'best'"),
        (b"x", "b'x'"),
        (1j, "1j"),
        (Decimal("0.5"), "Decimal('0.5')"),
        (Fraction(1, 3), "Fraction(1, 3)"),
        (10**4300, "<int of 14,285 bits>"),
        (Fraction(1, 10**5000), "Fraction(1, <int of 16,610 bits>)"),
        ("x" * 5000, f"'{'x' * 60}'..."),
        ([], "[]"),
        ([7, 8, 9], "<list of length 3>"),
        ({"name": 7}, "<dict of length 1>"),
        (range(10**9), "<range of length 1000000000>"),
        (np.array([7, 8]), "<ndarray of shape (2,)>"),
        (np.array(7), "<ndarray of shape ()>"),
        (pd.Series([7, 8]), "<Series of shape (2,)>"),
        (pd.DataFrame({"name": [7]}), "<DataFrame of shape (1, 1)>"),
        (np.zeros(1, [("name", "i4")])[0], "<void>"),
        (int, "<class int>"),
        (len, "<function len>"),
        (lambda: 7, "<function <lambda>>"),
        (Hostile(), "<Hostile>"),
        (Lying("seven"), "<Lying>"),
        (fastdp.PureDP(1.0), "PureDP(neighbors='replace-one', epsilon=1.0)"),
    ],
    ids=lambda value: value[:20] if type(value) is str else type(value).__name__,
)
def test_what_is_shown(value, text):
    assert shown(value) == text


def test_numpy_numbers_are_shown_as_numpy_does():
    for value in (np.int8(3), np.float64(-2.5), np.float16(0.5), np.bool_(True), np.str_("x")):
        assert shown(value) == repr(value)
