"""Shared parameters: each declaration takes what it must, rounds the safe way, and names what it refuses."""

import re
from fractions import Fraction
from math import inf, nan, nextafter

import numpy as np
import pytest

from fastdp.support import parameters
from fastdp.support.parameters import DECLARED
from fastdp.support.shown import shown

NUMBERS = {
    "float > 0": ([1e-300, 0.5, 1, 7.25, np.float32(0.5), np.int64(3), Fraction(1, 2)], [0, 0.0, -1, inf, nan]),
    "float >= 0": ([0, 0.0, 0.5, np.int64(3)], [-1, -1e-300, inf, nan]),
    "float in (0, 1)": ([1e-300, 0.5, Fraction(1, 3)], [0, 1, 1.5, -0.1, inf, nan]),
    "float in [0, 1)": ([0, 0.0, 0.5], [1, 1.5, -0.1, inf, nan]),
    "int >= 1": ([1, 5, np.int64(3)], [0, -1, 1.5, 2.0, inf, nan]),
    "power of two, optional": ([None, 0.25, 2.0**-20, 4, 2.0**100], [0.3, 3, 0, -2, inf, nan]),
}
WORDS = {
    '{"replace-one", "add-remove"}': ["replace-one", "add-remove"],
    '{"raise", "clip"}': ["raise", "clip"],
}
NO_NUMBERS = [True, np.True_, "1", [1.0], {}, 1j, object()]


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: f"{declared.name} : {declared.takes}")
def test_declarations_take_what_they_say_and_name_what_they_refuse(declared):
    if declared.takes in WORDS:
        good, wrong = WORDS[declared.takes], [None, "", "REPLACE-ONE", 1, ["raise"], {}, np.array("clip")]
    elif declared.takes in NUMBERS:
        good, wrong = NUMBERS[declared.takes]
        wrong = [*wrong, *NO_NUMBERS, *([] if None in good else [None])]
    else:
        pytest.skip(f"{declared.name} : {declared.takes}: tested in its room")
    for value in good:
        found = declared(value)
        assert found == value or abs(float(found) - float(value)) <= 1e-15 * float(value)
        assert type(found) in (str, int, float, type(None))
    for value in wrong:
        of_array = f"|<{type(value).__name__}>" if isinstance(value, np.generic) else ""  # perhaps an entry: not quoted
        with pytest.raises(ValueError, match=rf"^{declared.name}=({re.escape(shown(value))}{of_array}): must be "):
            declared(value)


def test_what_float64_does_not_hold_is_rounded_to_more_noise():
    third, large = Fraction(1, 3), 2**53 + 1
    for declared in (parameters.epsilon, parameters.rho, parameters.delta, parameters.beta):
        assert Fraction(declared(third)) < third
        assert Fraction(nextafter(declared(third), 1.0)) > third
    assert Fraction(parameters.sensitivity(Fraction(1, 10))) >= Fraction(1, 10)
    assert parameters.sensitivity(large) == 2**53 + 2
    assert parameters.epsilon(large) == 2**53


def test_a_name_and_what_it_takes_are_declared_once():
    declared = [(each.name, each.takes) for each in DECLARED]
    assert len(set(declared)) == len(declared)
    everything = [each for each in vars(parameters).values() if isinstance(each, parameters.Parameter)]
    assert {id(each) for each in everything} == {id(each) for each in DECLARED}
