"""Noise for running sums: the recursion against fractions, its price against explanations of the same answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from fastdp import Randomness
from fastdp.answering import running_sums
from fastdp.answering.running_sums import (
    CorrelatedNoise,
    Mixture,
    SumsPlan,
    column_square,
    correlate_one,
    mixture_for,
    pair_square,
    plan_sums,
    row_square,
)
from fastdp.randomness.noise_plans import gaussian_plan
from tests.oracles import running_sums as oracle

LENGTHS = (1, 2, 3, 17, 100)


def powers(mixture: Mixture) -> list[tuple[int, Fraction]]:
    return [(e, Fraction(w, 2 ** (11 + s))) for e, s, w in zip(*mixture, strict=True)]


def plan_for(length: int | None, rho: float = 0.5, dimension: int = 1) -> SumsPlan:
    mixture = mixture_for(length)
    stretch = column_square(mixture, length or running_sums.MOST_STEPS).sqrt()
    return plan_sums(length, rho=rho, stretch=stretch, dimension=dimension)


def histories(mixture: Mixture, z: list[int]) -> list[int]:
    """The noise of every step, by the definition in Python's integers."""
    buffers, remainders = [0] * len(mixture.weights), [0] * len(mixture.weights)
    return [correlate_one(fresh, mixture, buffers, remainders) for fresh in z]


# --- the mixtures


@pytest.mark.parametrize("length", [1, 2, 1000, 2**20, 2**40, None])
def test_mixtures_are_as_the_proof_has_them(length: int | None) -> None:
    mixture = mixture_for(length)
    assert sum(a / (1 - Fraction(1, 2**e)) for e, a in powers(mixture)) <= 1
    assert all(w > 0 for w in mixture.weights)
    assert list(mixture.exponents) == list(range(1, 2 * len(mixture.weights), 2))
    assert 2 <= mixture.rounding < 5


def test_the_coefficients_are_those_of_the_square_root() -> None:
    found = oracle.coefficients(powers(mixture_for(300)), 300)
    ratios = [float(a / b) for a, b in zip(found, oracle.square_root(300), strict=True)]
    assert ratios[0] == 1
    assert max(abs(ratio - 1) for ratio in ratios) < 0.04  # at the end, where slower powers are left out
    assert max(abs(ratio - 1) for ratio in ratios[:30]) < 0.02


def test_the_weights_are_their_formulas() -> None:
    tail = 2 * math.log(2) / math.pi * 2**-0.5 * 2**8  # c 2^(-e/2), e odd, in units of 2^-(11 + shift)
    assert round(tail) == running_sums._SQUARE_ROOT[-1]
    for i, weight in enumerate(running_sums._UNBOUNDED[3:], 3):
        assert weight == pytest.approx(80 * ((2 * i + 1 + 4.8) / 9.8) ** 0.6, abs=0.51)


@pytest.mark.parametrize("length", LENGTHS)
def test_norms_are_those_of_the_matrices(length: int) -> None:
    mixture = mixture_for(length)
    row = oracle.coefficients(powers(mixture), length)
    column = oracle.solved(row, [1] * length)
    assert float(column_square(mixture, length)) == pytest.approx(float(sum(r * r for r in column)), rel=1e-14)
    assert float(row_square(mixture, length)) == pytest.approx(float(sum(r * r for r in row)), rel=1e-14)
    assert all(a > b > 0 for a, b in pairwise(column))
    inverse = oracle.solved(row, [1] + [0] * (length - 1))
    assert sum(map(abs, inverse)) < 2
    columns = [[Fraction(0)] * j + column[: length - j] for j in range(length)]
    largest = max(
        (sum((a - b) ** 2 for a, b in zip(first, second, strict=True)) for first in columns[:3] for second in columns),
        default=Fraction(0),
    )
    found = float(pair_square(mixture, length))
    assert float(largest) <= found <= float(largest) + 3e-9


# --- the recursion


@pytest.mark.parametrize("dimension", [1, 3])
def test_the_kernel_is_the_recursion_in_integers(dimension: int) -> None:
    plan = plan_for(5000, dimension=dimension)
    noise = CorrelatedNoise(plan, Randomness(seed=1).key())
    found = noise.take(5000)
    again = CorrelatedNoise(plan, Randomness(seed=1).key())
    per = again.steps * dimension
    for j in range(dimension):
        fresh: list[int] = []
        for block in range(-(-5000 // again.steps)):
            z = running_sums.integer_noise_from(plan.noise, again.key, block * running_sums.GAUSSIAN_BLOCK, per)
            fresh += z[j::dimension].tolist()
        assert histories(plan.mixture, fresh[:5000]) == found[:, j].tolist()


def test_histories_are_close_to_the_product() -> None:
    rng = np.random.default_rng(5)
    for length in (60, None):
        mixture = mixture_for(length)
        row = oracle.coefficients(powers(mixture), 60)
        for size in (2, 1000, 2**40):
            one, two = (rng.integers(-size, size, 60).tolist() for _ in range(2))
            cut = [
                f - g - p
                for f, g, p in zip(
                    histories(mixture, one), histories(mixture, two),
                    oracle.product(row, [a - b for a, b in zip(one, two, strict=True)]), strict=True,
                )
            ]  # fmt: skip
            assert max(map(abs, cut)) < mixture.rounding


def test_numbers_that_leave_int64_are_computed_in_pythons() -> None:
    plan = plan_for(3000)
    noise = CorrelatedNoise(plan, Randomness(seed=2).key())
    plain = CorrelatedNoise(plan, Randomness(seed=2).key())
    expected = plain.take(3000)
    huge = 2**63 + 11
    noise.buffers = np.array([[huge] + [0] * (len(plan.mixture.weights) - 1)], object)
    first = noise.block()
    assert first.dtype == object
    alone = histories(plan.mixture, [0] * 0)
    assert alone == []
    buffers, remainders = [huge] + [0] * (len(plan.mixture.weights) - 1), [0] * len(plan.mixture.weights)
    more = [correlate_one(0, plan.mixture, buffers, remainders) for _ in range(len(first))]
    slack = math.ceil(plan.mixture.rounding)
    together = zip(first[:, 0], expected[: len(first), 0].tolist(), more, strict=True)
    assert all(abs(f - e - m) <= slack for f, e, m in together)
    assert noise.buffers.dtype == np.int64  # the large number has decayed


def test_exact_blocks_are_those_of_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_for(5000, dimension=2)
    expected = CorrelatedNoise(plan, Randomness(seed=3).key()).take(3000)
    monkeypatch.setattr(CorrelatedNoise, "_fits", lambda self, noise: False)
    assert (CorrelatedNoise(plan, Randomness(seed=3).key()).take(3000) == expected).all()


# --- the price: two neighbours' explanations of the same answers


def explained(mixture: Mixture, answers: list[int], x: list[int], history: Callable[..., int]) -> list[int]:
    """The noise with which these inputs give these answers."""
    z: list[int] = []
    total, state = 0, ([0] * len(mixture.weights), [0] * len(mixture.weights))
    for answer, value in zip(answers, x, strict=True):
        total += value
        before = history(0, mixture, [*state[0]], [*state[1]])
        z.append(answer - total - before)
        history(z[-1], mixture, *state)
    return z


def distances(plan: SumsPlan, length: int, history: Callable[..., int], trials: int = 60) -> float:
    """The largest distance of two explanations, over random answers, and all places of the change."""
    rng = np.random.default_rng(7)
    unit, largest = 2**plan.bits, 0.0
    for trial in range(trials):
        x = rng.integers(0, 2, length) * unit
        z = [round(v) for v in rng.normal(0, plan.noise.sigma, length)]
        buffers, remainders = [0] * len(plan.mixture.weights), [0] * len(plan.mixture.weights)
        noise = [history(fresh, plan.mixture, buffers, remainders) for fresh in z]
        answers = [int(s) + w for s, w in zip(np.cumsum(x), noise, strict=True)]
        assert explained(plan.mixture, answers, x.tolist(), history) == z
        for place in {0, min(1, length - 1), trial % length}:
            other = x.copy()
            other[place] = unit - other[place]
            moved = explained(plan.mixture, answers, other.tolist(), history)
            largest = max(largest, math.dist(z, moved))
    return largest


def coarse(plan: SumsPlan, bits: int) -> SumsPlan:
    """The same on a grid so coarse that rounding counts."""
    histories = 2 * float(plan.mixture.rounding) * math.sqrt(plan.steps)
    distance = float(column_square(plan.mixture, plan.steps).sqrt()) * 2**bits + histories
    return plan._replace(bits=bits, distance=distance, noise=gaussian_plan(distance))


def drops_remainders(fresh: int, mixture: Mixture, buffers: list[int], remainders: list[int]) -> int:
    answer = correlate_one(fresh, mixture, buffers, remainders)
    for i in range(len(remainders)):
        remainders[i] = 0
    return answer


@pytest.mark.parametrize("bits", [0, 3, None])
@pytest.mark.parametrize("length", [1, 5, 40])
def test_explanations_are_within_the_distance_that_is_paid_for(length: int, bits: int | None) -> None:
    plan = plan_for(length) if bits is None else coarse(plan_for(length), bits)
    largest = distances(plan, length, correlate_one)
    assert largest <= plan.distance
    if bits is None:
        assert largest > 0.999 * plan.distance / (1 + 2.0**-10)  # the first step's column, whatever is cut off


def test_a_distance_without_the_histories_is_too_small() -> None:
    plan = coarse(plan_for(40), 1)
    bare = float(column_square(plan.mixture, 40).sqrt()) * 2
    assert distances(plan, 40, correlate_one) > bare


def test_columns_counted_for_fewer_steps_are_too_short() -> None:
    plan = plan_for(40)
    short = plan_sums(40, rho=0.5, stretch=column_square(plan.mixture, 20).sqrt())
    assert distances(plan, 40, correlate_one, 5) / 2**plan.bits > short.distance / 2**short.bits


def test_without_remainders_the_buffers_drift() -> None:
    """Adversarial noise: a buffer of 2^e - 1 never decays."""
    mixture = mixture_for(2**12)
    ones = [1] * 2000
    z: list[list[int]] = []
    for history in (correlate_one, drops_remainders):
        buffers, remainders = [0] * len(mixture.weights), [0] * len(mixture.weights)
        z.append([history(fresh, mixture, buffers, remainders) for fresh in ones])
    row = [float(a) for a in oracle.coefficients(powers(mixture), 50)]
    k = np.arange(1, 2000)
    right = 1 + sum(float(a) * ((1 - 2.0**-e) ** (k - 1)).sum() for e, a in powers(mixture))
    assert len(row) == 50
    assert abs(z[0][-1] - right) < float(mixture.rounding)
    assert abs(z[1][-1] - right) > float(mixture.rounding)


def log_likelihood(mixture: Mixture, answers: Any, x: list[int], sigma: float) -> Any:
    """Of every row of answers, up to a constant."""
    state = [np.zeros(len(answers[0]), np.int64) for _ in mixture.weights], [0 for _ in mixture.weights]
    total, log = 0, np.zeros(len(answers[0]))
    for answer, value in zip(answers, x, strict=True):
        total += value
        before = correlate_one(0, mixture, list(state[0]), list(state[1]))  # type: ignore[arg-type]
        z = answer - total - before
        log -= z.astype(float) ** 2 / (2 * sigma**2)
        correlate_one(z, mixture, *state)  # type: ignore[arg-type]
    return log


def test_divergences_of_all_neighbours_by_enumeration() -> None:
    """All answers of three steps, all pairs of neighbours; a scale for half the distance is rejected."""
    plan, sigma = coarse(plan_for(3), 3), 6.0
    unit, reach = 2**plan.bits, 30
    ends = [slice(-reach, reach + (t + 1) * unit + 1) for t in range(3)]
    answers = [part.reshape(-1) for part in np.mgrid[ends[0], ends[1], ends[2]]]
    inputs = [[unit * (code >> i & 1) for i in range(3)] for code in range(8)]
    logs = [log_likelihood(plan.mixture, answers, x, sigma) for x in inputs]
    probabilities = [np.exp(log) / np.exp(log).sum() for log in logs]
    largest = 0.0
    for alpha in (1.5, 3):
        for i in range(8):
            for place in range(3):
                j = i ^ (1 << place)
                moment = float((np.exp(alpha * (logs[i] - logs[j])) * probabilities[j]).sum())
                largest = max(largest, math.log(moment) / (alpha - 1) / alpha)
    assert largest <= plan.distance**2 / (2 * sigma**2)
    assert largest > (plan.distance / 2) ** 2 / (2 * sigma**2)


# --- plans


def test_plans_pay_for_rho_and_little_more_than_the_matrix() -> None:
    for length, rho in ((1, 0.5), (2**20, 0.5), (2**20, 1e-4), (None, 0.5), (None, 0.02), (1000, 10.0)):
        plan = plan_for(length, rho)
        assert Fraction(plan.distance) ** 2 / (2 * Fraction(plan.noise.sigma) ** 2) <= Fraction(rho)
        stretch = float(column_square(plan.mixture, plan.steps).sqrt())
        assert 1 <= plan.distance * plan.grid / stretch < 1.001
        assert plan.noise.sigma <= 2.0**36


def test_a_rho_that_the_grid_cannot_hold_is_refused() -> None:
    plan = plan_for(None, 1e-6)
    assert plan.noise.sigma <= 2.0**36
    with pytest.raises(ValueError, match="rho=1e-18: too small for 1,099,511,627,776 steps"):
        plan_for(None, 1e-18)


def ideal(steps: int) -> float:
    """The root mean square of the running sums' noise by the square root itself, at rho = .5."""
    k = np.arange(1, steps)
    squares = np.cumsum(np.concatenate(([1.0], np.cumprod((2 * k - 1) / (2 * k)) ** 2)))
    return math.sqrt(squares[-1] * squares.mean())


@pytest.mark.parametrize(
    ("length", "steps", "limit"), [(2**16, 2**16, 1.005), (50, 50, 1.008), (None, 2**12, 1.26), (None, 2**16, 1.22)]
)
def test_deviations_are_near_those_of_the_square_root(length: int | None, steps: int, limit: float) -> None:
    plan = plan_for(length)
    places = np.unique(np.geomspace(1, steps, 60).astype(int))
    variances = np.interp(np.arange(1, steps + 1), places, [plan.deviation(int(t)) ** 2 for t in places])
    assert 0.99 < math.sqrt(variances.mean()) / ideal(steps) < limit


def test_noise_has_the_deviations_that_are_stated() -> None:
    """Of the sum of squares of 4,000 coordinates at three steps: a false alarm once in 10^9, by chi-square tails."""
    plan = plan_for(64, dimension=4000)
    found = CorrelatedNoise(plan, Randomness(seed=9).key()).take(64) * plan.grid
    for step in (1, 7, 64):
        ratio = float((found[step - 1] ** 2).mean()) / plan.deviation(step) ** 2
        assert abs(ratio - 1) < 6.2 * math.sqrt(2 / 4000)
        assert abs(ratio * 1.5 - 1) > 6.2 * math.sqrt(2 / 4000)
    assert abs(float(np.corrcoef(found[10], found[11])[0, 1])) > 0.3  # correlated, as L has it


def test_decimals_do_not_depend_on_the_host(monkeypatch: Any) -> None:
    import decimal

    mixture = mixture_for(77)
    expected = column_square(mixture, 77), row_square(mixture, 5)
    for cached in (running_sums._poles, column_square, row_square):
        cached.cache_clear()
    with decimal.localcontext() as context:
        context.prec = 3
        assert (column_square(mixture, 77), row_square(mixture, 5)) == expected
    assert isinstance(expected[0], Decimal)
