"""What the kernels certify in floats, tried where it is hardest: in the cells of U and V that hold a threshold.

A draw is decided by a prefix of its bits, that is, by a cell of U. The cell that holds a threshold has no single value,
so it must stay open at every level; a cell beside it has one, and where float error reaches, the kernel must find that
value or leave the cell open. Random draws hardly ever come to such places: here they are worked out by mpmath at 400
bits and handed to the kernels directly. Two oracles of tests/oracles, which use rational intervals, confirm the places.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Protocol

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from fastdp.kernels import discrete_gaussian, discrete_laplace, layout
from fastdp.randomness import noise_plans
from tests import oracles

MP = mpmath.mp.clone()
MP.prec = 400
U = 2.0**-53
OPEN = -1  # stands for "no single value"; magnitudes are never negative
KEY = np.arange(3, 11, dtype=np.uint32) * np.uint32(0x9E3779B9)

SCALES = [2.0**-20, 0.05, 2.0**-3, 1.0, 3.3, 100.0, 2.0**15, 2.0**20, 2.0**31, 2.0**31 + 1, 2.0**36, 2.0**40]
SIGMAS = [0.3, 0.5, 1.0, 1.3, 4.0, 100.0, 2.0**15, 2.0**20, 2.0**31, 2.0**31 + 1, 2.0**36, 2.0**40]


# --- the laws, by their thresholds: a magnitude is at least m iff U <= threshold(m)


class Law(Protocol):
    @property
    def bits(self) -> int: ...

    def edge(self, m: int, bits: int) -> int:
        """The number of the cell of U, among 2^bits, that holds the threshold of m >= 1."""

    def magnitude(self, u: float) -> int:
        """About the value at U = u: where to look for thresholds."""


class Laplace:
    def __init__(self, scale: float) -> None:
        self.plan = noise_plans.laplace_plan(scale)
        self.bits = 31 if scale <= 2**15 else 47 if scale <= 2**31 else 63
        self._scale = MP.mpf(scale)
        self._top = 2 / (1 + MP.exp(-1 / self._scale))

    def edge(self, m: int, bits: int) -> int:
        return int(self._top * MP.exp(-m / self._scale) * MP.mpf(2) ** bits)

    def magnitude(self, u: float) -> int:
        return int(-self.plan.scale * math.log(u / float(self._top)))


class Gaussian:
    """The proposals of noise.md, lemma 4, for the a and t that the plan chose: any are right."""

    def __init__(self, sigma: float) -> None:
        self.plan = noise_plans.gaussian_plan(sigma)
        self.sigma = sigma
        self.bits = 31 if sigma <= 2**15 else 47 if sigma <= 2**31 else 63
        self.a, self.t = int(self.plan.law[layout.BODY]), float(self.plan.law[layout.TAIL])
        self._a, self._t, self._sigma = MP.mpf(self.a), MP.mpf(self.t), MP.mpf(sigma)
        self.peak = self._sigma**2 / self._t
        g = MP.exp(self._sigma**2 / (2 * self._t**2) - self._a / self._t)
        self.tail = g / (1 - MP.exp(-1 / self._t))
        self.mass = self._a - MP.mpf(1) / 2 + self.tail

    def edge(self, m: int, bits: int) -> int:
        past = m - self._a
        above = self.tail * MP.exp(-past / self._t) if m >= self.a else self.tail - past
        return int(above / self.mass * MP.mpf(2) ** bits)

    def magnitude(self, u: float) -> int:
        r, tail = u * float(self.mass), float(self.tail)
        return self.a + int(self.t * math.log(tail / r)) if r < tail else int(self.a + tail - r)

    def acceptance(self, m: int) -> Any:
        """The probability with which a proposed m is kept."""
        d = m - (self.peak if m >= self.a else 0)
        return MP.exp(-d * d / (2 * self._sigma**2))


@lru_cache
def laplace_law(scale: float) -> Laplace:
    return Laplace(scale)


@lru_cache
def gaussian_law(sigma: float) -> Gaussian:
    return Gaussian(sigma)


# --- where to look


def magnitudes(law: Law, bits: int, seed: int) -> list[int]:
    """Values at U = 2^-x: all sizes of U, those near 1, and those where |ln U| has just passed a power of two, which
    is where a float logarithm is off by most."""
    draw = random.Random(seed)
    exponents = [draw.uniform(0, bits - 1) for _ in range(200)] + [draw.uniform(0, 1) for _ in range(100)]
    exponents += [log * draw.uniform(1, 1.1) / math.log(2) for log in (4, 8) for _ in range(60)]
    return sorted({1, 2, 3} | {m for x in exponents if (m := law.magnitude(2.0**-x)) >= 1})


def cells_near_thresholds(
    law: Law, bits: int, error: Callable[[int, int], float], seed: int
) -> tuple[list[int], NDArray[np.float64], NDArray[np.bool_]]:
    """Cells of U that hold a threshold, cells beside them, and cells about as far away as the proven error reaches;
    with the value that each has, or OPEN, and whether it is so far from any threshold that it must be decided.

    `error(m, k)` bounds the error of a value near m, computed from cell k.
    """
    draw = random.Random(seed)
    cells, values, sure = [0], [OPEN], [False]
    for m in magnitudes(law, bits, seed):
        below, edge = law.edge(m + 1, bits), law.edge(m, bits)
        above = law.edge(m - 1, bits) if m > 1 else 1 << bits
        cells.append(edge)
        values.append(OPEN)
        sure.append(False)
        width = error(m, max(edge, 1)) * (above - edge)  # in cells
        far = int(4 * width) + 4
        for sign in (1, -1):
            steps = {1, 2, far} | {int(draw.uniform(0, 1.5) * width) for _ in range(8)}
            steps |= {int(far ** draw.random()) for _ in range(4)}
            for step in steps - {0}:
                cell = edge + sign * step
                if below < cell < above:
                    cells.append(cell)
                    values.append(m - 1 if sign > 0 else m)
                    sure.append(step == far and below + far <= cell <= above - far)
    return cells, np.array(values, float), np.array(sure)


def assert_certified(found: NDArray[np.float64], expected: NDArray[np.float64], sure: NDArray[np.bool_]) -> None:
    """Decided rightly or not at all; and decided where a decision is `sure`."""
    decided = ~np.isnan(found)
    assert not decided[expected == OPEN].any(), "decided without the bits to do so"
    np.testing.assert_array_equal(found[decided], expected[decided])
    assert decided[sure].all(), "left open without need"
    assert sure.any()


def as_words(prefixes: Iterable[int], extra: int) -> tuple[NDArray[np.uint32], NDArray[Any]]:
    """The words of streams 0 and 1 whose first bits are these; the signs are 0."""
    prefixes = list(prefixes)
    halves = np.array([k >> extra << 1 for k in prefixes], np.uint32)
    more = np.array([k & (1 << extra) - 1 for k in prefixes], np.uint16 if extra == 16 else np.uint32)
    return halves, more


def split(cell: int) -> tuple[np.uint64, np.uint64]:
    """A prefix, and a word whose first 52 bits follow it."""
    return np.uint64(cell >> 52), np.uint64((cell & (1 << 52) - 1) << 12)


# --- the places are right


@pytest.mark.parametrize("scale", [0.05, 1.0, 3.3, 2.0**20, 2.0**40])
def test_laplace_thresholds_are_those_of_the_oracle(scale: float) -> None:
    law = laplace_law(scale)
    for bits in (law.bits, law.bits + 52):
        for m in magnitudes(law, bits, 1)[::60]:
            below, edge = law.edge(m + 1, bits), law.edge(m, bits)
            assert oracles.exact_draws.laplace_from_uniform(edge, bits, scale) is None
            if edge > below + 1:
                assert oracles.exact_draws.laplace_from_uniform(edge - 1, bits, scale) == m


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.0, 2.0**20, 2.0**40])
def test_gaussian_thresholds_are_those_of_the_oracle(sigma: float) -> None:
    law = gaussian_law(sigma)
    for bits in (law.bits, law.bits + 52):
        for m in magnitudes(law, bits, 1)[::60]:
            below, edge = law.edge(m + 1, bits), law.edge(m, bits)
            assert oracles.exact_draws.gaussian_magnitude_from_uniform(edge, bits, sigma, law.t, law.a) is None
            if edge > below + 1:
                assert oracles.exact_draws.gaussian_magnitude_from_uniform(edge - 1, bits, sigma, law.t, law.a) == m


# --- plans hold their constants as sums of two floats


def assert_pair(high: float, low: float, exact: Any) -> None:
    assert abs(MP.mpf(high) + MP.mpf(low) - exact) <= abs(exact) * MP.mpf(2) ** -105


@pytest.mark.parametrize("scale", SCALES)
def test_constants_of_a_laplace_plan(scale: float) -> None:
    law, s = noise_plans.laplace_plan(scale).law, MP.mpf(scale)
    assert_pair(law[layout.LAPLACE_OFFSET], law[layout.LAPLACE_OFFSET_LOW], -s * MP.log((1 + MP.exp(-1 / s)) / 2))


@pytest.mark.parametrize("sigma", SIGMAS)
def test_constants_of_a_gaussian_plan(sigma: float) -> None:
    law = gaussian_law(sigma)
    start = law.a + MP.mpf(law.t) * MP.log(law.tail / law.mass)
    for first, exact in ((layout.START, start), (layout.MASS, law.mass), (layout.TAIL_MASS, law.tail)):
        assert_pair(law.plan.law[first], law.plan.law[first + 1], exact)


# --- Laplace and geometric: lemmas 2 and 3


@pytest.mark.parametrize("scale", SCALES)
def test_first_level_of_laplace(scale: float) -> None:
    law = laplace_law(scale)
    plan, fixed = law.plan, law.plan.law[layout.LAPLACE_ERROR]
    cells, expected, sure = cells_near_thresholds(law, law.bits, lambda m, k: 1.25 * scale / k + 3 * U * m + fixed, 2)
    kernel = {
        0: discrete_laplace.invert_short_into,
        16: discrete_laplace.invert_medium_into,
        32: discrete_laplace.invert_long_into,
    }[plan.extra]
    out = np.empty(len(cells))
    words = as_words(cells, plan.extra)
    kernel(*words, 2.0**-law.bits, scale, plan.law[layout.LAPLACE_OFFSET], fixed, out)
    assert_certified(out, expected, sure)


@pytest.mark.parametrize("scale", SCALES)
def test_second_level_of_laplace(scale: float) -> None:
    law = laplace_law(scale)
    plan, fixed = law.plan, law.plan.law[layout.LAPLACE_ERROR_PAIR]
    cells, expected, sure = cells_near_thresholds(
        law, law.bits + 52, lambda m, k: 0.75 * scale / k + fixed * (1 + m / scale) + 2.0**-51, 3
    )
    found = []
    for prefix, more in map(split, cells):
        found.append(discrete_laplace.invert_pair(prefix, law.bits, more, plan.law))
    assert_certified(np.array(found), expected, sure)


# --- Gaussian proposals: lemma 4


@pytest.mark.parametrize("sigma", SIGMAS)
def test_first_level_of_gaussian_proposals(sigma: float) -> None:
    law = gaussian_law(sigma)
    plan = law.plan
    cells, expected, sure = cells_near_thresholds(
        law, law.bits, lambda m, k: 2 * plan.law[layout.ERROR_OF_CELL] / k + 3 * U * m + plan.law[layout.ERROR], 4
    )
    kernel = {
        0: discrete_gaussian.propose_short_into,
        16: discrete_gaussian.propose_medium_into,
        32: discrete_gaussian.propose_long_into,
    }[plan.extra]
    out = np.empty(len(cells))
    kernel(*as_words(cells, plan.extra), 2.0**-law.bits, plan.law, out)
    assert_certified(out, expected, sure)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_second_level_of_gaussian_proposals(sigma: float) -> None:
    law = gaussian_law(sigma)
    plan, bits = law.plan, law.bits + 52

    def error(m: int, k: int) -> float:
        log = max(m - law.a, 0) / law.t + 1
        return (law.t + plan.law[layout.MASS]) / k + plan.law[layout.ERROR_PAIR] * (1 + log) + 2.0**-51

    cells, expected, sure = cells_near_thresholds(law, bits, error, 5)
    found = []
    for prefix, more in map(split, cells):
        found.append(discrete_gaussian.propose_pair(prefix, law.bits, more, plan.law))
    assert_certified(np.array(found), expected, sure)


# --- Gaussian acceptance: lemma 5. V <= p, p the probability of the magnitude


def verdict(p: Any, cell: int, bits: int, slack: float) -> tuple[float, bool]:
    """1 if all of a cell of V is kept, 0 if none of it is, OPEN if p is inside; and whether that must be found, p being
    further away than the error bound `slack` is wide."""
    past = p * MP.mpf(2) ** bits - cell
    value = 1 if past >= 1 else 0 if past <= 0 else OPEN
    return value, abs(past - MP.mpf("0.5")) > 1 + 2 * slack * 2.0**bits


def magnitudes_at(law: Gaussian, probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Real numbers, in the body and on both sides of the peak, that are accepted with these probabilities."""
    d = law.sigma * np.sqrt(-2 * np.log(probability))
    peak = float(law.peak)
    places = (np.where(d < law.a, d, np.nan), np.where(peak - d >= law.a, peak - d, np.nan), peak + d)
    return np.stack(places)


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 4.0, 100.0, 2.0**20, 2.0**40])
def test_first_level_of_acceptance(sigma: float) -> None:
    """The coin that p falls on, and its neighbours; at large sigma, magnitudes whose p is next to a coin's end."""
    law, draw = gaussian_law(sigma), random.Random(6)
    chosen = {draw.randint(0, int(6 * sigma) + 2) for _ in range(500)}
    if sigma >= 2.0**20:
        ends = np.array([draw.randint(1, 2**16 - 1) for _ in range(300)]) / 2**16
        for m in magnitudes_at(law, ends).ravel():
            if not math.isnan(m):
                reach = sigma * 2.0**-29  # p moves by a few times 2^-31, the error of the exponential
                chosen |= {round(m), round(m + draw.uniform(-reach, reach)), round(m + draw.uniform(-reach, reach))}
    rows = []
    for m in chosen:
        p = law.acceptance(m)
        coin = int(p * 2**16)
        near = (coin - 2, coin - 1, coin, coin + 1, coin + 2)
        rows += [(m, c, *verdict(p, c, 16, law.plan.law[layout.COIN_ERROR])) for c in near if 0 <= c < 2**16]
    out, coins = np.array([float(row[0]) for row in rows]), np.array([row[1] for row in rows], np.uint16)
    kept = np.zeros(len(rows), np.uint64)
    discrete_gaussian.accept_into(np.zeros(len(rows), np.uint32), coins, law.plan.law, out, kept)
    expected, sure = np.array([row[2] for row in rows]), np.array([row[3] for row in rows])
    assert_certified(np.where(np.isnan(out), np.nan, kept), expected, sure)


@pytest.mark.parametrize("at", [5, (7 << 20) + 1000])
def test_second_level_of_acceptance(at: int) -> None:
    """36 bits of stream 4 follow the 16 of the coin. Of all coins and magnitudes, those where p is next to V."""
    law = gaussian_law(2.0**40)
    more = oracles.words.stream_word(KEY.tolist(), 4, at) >> 28
    coins = np.arange(1, 2**16)
    places = magnitudes_at(law, (coins + (more + 0.5) * 2.0**-36) * 2.0**-16)
    nearest = np.rint(places)
    found, rows = [], []
    for branch, i in np.argwhere(abs(places - nearest) < 2.0**-7).tolist():
        m, coin = int(nearest[branch, i]), int(coins[i])
        prefix = np.uint64((law.edge(m, law.bits) + law.edge(m + 1, law.bits)) // 2)  # proposes m, surely
        sign = np.uint64(m & 1)
        draw = discrete_gaussian.resolve_proposal(
            KEY, np.uint64(at), prefix, law.bits, sign, np.uint64(coin), law.plan.law
        )
        assert math.isnan(draw) or math.isinf(draw) or draw == (-m if m & 1 else m)
        found.append(math.nan if math.isnan(draw) else float(draw < math.inf))
        rows.append(verdict(law.acceptance(m), coin << 36 | more, 52, law.plan.law[layout.COIN_ERROR_PAIR]))
    expected, sure = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    assert np.count_nonzero(expected == OPEN) > 10
    assert_certified(np.array(found), expected, sure)
