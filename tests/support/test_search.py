"""The one search: on the safe side, within its tolerance, from any start, and at an end at the ends."""

import itertools
import math
import random

import pytest

from fastdp.support import search

STARTS = [{}, {"guess": 1e-30}, {"guess": 1e12}, {"bracket": (0.3, 0.4)}, {"bracket": (1e-9, 1e9)}]


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("tolerance", [1e-3, 1e-10, 0.0])
def test_floats_are_found_within_the_tolerance_and_on_the_safe_side(start, tolerance):
    draw = random.Random(5)
    for _ in range(200):
        turn = math.exp(draw.uniform(-60, 40))
        least = search.least_float(lambda x, turn=turn: x >= turn, tolerance=tolerance, **start)
        assert turn <= least <= turn * (1 + tolerance) * (1 + 2.0**-52)
        greatest = search.greatest_float(lambda x, turn=turn: x <= turn, tolerance=tolerance, **start)
        assert turn * (1 - tolerance) * (1 - 2.0**-52) <= greatest <= turn


def test_without_a_tolerance_the_very_float_is_found():
    for turn in (0.1, 1.0, math.pi, 1e-20, 2.0**59):
        assert search.least_float(lambda x, turn=turn: x >= turn, tolerance=0.0) == turn
        assert search.least_float(lambda x, turn=turn: x > turn, tolerance=0.0) == math.nextafter(turn, math.inf)
        assert search.greatest_float(lambda x, turn=turn: x <= turn, tolerance=0.0) == turn
        assert search.greatest_float(lambda x, turn=turn: x < turn, tolerance=0.0) == math.nextafter(turn, 0.0)


@pytest.mark.parametrize("start", STARTS)
def test_the_condition_is_asked_between_the_limits_only(start):
    limits = {"smallest": 1e-31, "largest": 1e13}
    for turn in (0.0, 1e-31, 1e-5, 1.0, 1e10, 1e13, math.inf):
        asked = []

        def enough(x, turn=turn, asked=asked):
            asked.append(x)
            return x >= turn

        def fits(x, turn=turn, asked=asked):
            asked.append(x)
            return x <= turn

        if turn < math.inf:
            try:
                assert search.least_float(enough, **limits, **start) >= turn
            except search.OutOfReachError:
                assert turn > limits["largest"] / 2
        else:
            with pytest.raises(search.OutOfReachError):
                search.least_float(enough, **limits, **start)
        found = search.greatest_float(fits, **limits, **start)
        assert found <= turn
        assert found > 0 or turn < 2 * limits["smallest"]
        assert min(asked) >= limits["smallest"]
        assert max(asked) <= limits["largest"]


def test_floats_at_the_ends():
    assert search.least_float(lambda x: True, smallest=2.0**-10) == 2.0**-10
    assert search.greatest_float(lambda x: False) == 0.0
    assert search.greatest_float(lambda x: True, largest=2.0**10) == 2.0**10
    assert search.greatest_float(lambda x: True, largest=1.5 * 2.0**10) == 2.0**10
    with pytest.raises(search.OutOfReachError):
        search.least_float(lambda x: False)


def test_integers_are_found():
    for turn, guess in itertools.product((1, 2, 3, 10, 12345, 2**40 + 7, 2**62), (None, 1, 500, 2**50)):
        calls = []

        def enough(n, turn=turn, calls=calls):
            calls.append(n)
            return n >= turn

        assert search.least_integer(enough, guess=guess) == turn
        assert len(calls) < 200
        assert turn <= search.least_integer(enough, guess=guess, within=0.01) <= 1.01 * turn
    assert search.least_integer(lambda n: n >= 5, low=9) == 9
    assert search.least_integer(lambda n: n >= -3, low=-8) == -3
    assert search.least_integer(lambda n: n >= 12, largest=12) == 12
    with pytest.raises(search.OutOfReachError):
        search.least_integer(lambda n: n >= 13, largest=12)


def test_the_greatest_integer_of_a_range():
    for low, high in ((0, 0), (0, 1), (3, 1000), (-7, 2**62)):
        for turn in {low, low + 1, (low + high) // 2, high - 1, high} - {high + 1, low - 1}:
            assert search.greatest_integer(lambda n, turn=turn: n <= turn, low=low, high=high) == turn


def test_a_guess_that_is_no_number_ends() -> None:
    with pytest.raises(search.OutOfReachError):
        search.least_float(lambda x: x >= 1, guess=math.nan)
    assert search.greatest_float(lambda x: x <= 1, guess=math.nan) == 0.0


class Endless(Exception):
    """A search that goes on."""


def counted(condition, most=3000):
    asked = itertools.count()

    def ask(x):
        if next(asked) > most:
            raise Endless
        return condition(x)

    return ask


ENDS = [5e-324, 1e-323, 1e-320, 2.0**-1022, 2.0**-1021, 1e-300, 1.0, 1e300, 2.0**1023, 1.7976931348623157e308]


@pytest.mark.parametrize("guess", [5e-324, 1e-310, 1.0, 2.0**1023, 1.7e308])
@pytest.mark.parametrize("turn", ENDS)
def test_searches_of_all_floats_end_and_are_right(turn, guess):
    limits = {"guess": guess, "smallest": 0.0, "largest": math.inf, "tolerance": 0.0}
    assert search.greatest_float(counted(lambda x: x <= turn), **limits) == turn
    assert search.least_float(counted(lambda x: x >= turn), **limits) == turn


@pytest.mark.parametrize("guess", [0.0, 5e-324, 1.0, 1.7e308, math.inf, math.nan])
@pytest.mark.parametrize("largest", [1.0, math.inf])
def test_every_search_ends(guess, largest):
    limits = {"guess": guess, "smallest": 0.0, "largest": largest}
    for answer in (True, False):
        search.greatest_float(counted(lambda _, answer=answer: answer), **limits)
        try:
            search.least_float(counted(lambda _, answer=answer: answer), **limits)
        except search.OutOfReachError:
            assert not answer
    search.narrow(counted(lambda x: x > 1e-320), 5e-324, 1.7e308, 0.0)
    assert search.narrow(counted(lambda x: x >= 1e-320), 5e-324, 1.7e308, 0.0)[1] == 1e-320
