"""Measured answers: the law that was proved, its privacy by enumeration, and variants without privacy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from fastdp import Product, Randomness
from fastdp.answering import multiplicative_weights_parameters as given
from fastdp.answering.measured_schedule import MeasuredSchedule
from fastdp.answering.multiplicative_weights_plain import PlainSchedule
from fastdp.support.errors import AccuracyWarning
from tests.answering.multiplicative_weights_laws import (
    DOMAIN,
    QUERIES,
    SIZE,
    Codes,
    Counts,
    all_counts,
    in_two,
    make,
    neighbours,
    on_whole_records,
    one_by_one,
    records,
    together,
)
from tests.laws import check_cells
from tests.oracles import sparse_vector
from tests.oracles.sparse_vector import excess, pmf

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")

probability = cache(sparse_vector.probability)
Key = tuple[Any, ...]
Noise = Callable[[int], Any]  # the mass of a value

Q1, Q2, Q3, HALF = Fraction(3, 5), Fraction(7, 10), Fraction(2, 5), Fraction(1, 2)


def laplace(q: Fraction) -> Noise:
    return lambda z: pmf(z, q)


def gaussian(sigma: float) -> Noise:
    total = math.fsum(math.exp(-z * z / (2 * sigma**2)) for z in range(-200, 201))
    return lambda z: math.exp(-z * z / (2 * sigma**2)) / total


def moved(weights: list[float], query: Codes, a: float, n: int, deviation: float) -> list[float]:
    """multiplicative_weights_measured.md, "Moving onto a measurement", on a few cells; without replay."""
    value = sum(weights[i] for i in query) / sum(weights)
    gap = a / n - value
    believed = gap - 4 * deviation**2 / gap if gap else 0.0
    if believed * gap <= 0 or not 0 < value < 1 - 1e-15:
        return weights
    target = min(max(value + believed, 1 / n), 1 - 1 / n)
    factor = target / (1 - target) * (1 - value) / value
    return [w * factor if i in query else w for i, w in enumerate(weights)]


def measured_law(
    counts: Counts, queries: list[Codes], T: int, q1: Fraction, q2: Fraction, noise: Noise, updates: int, *,
    n: int | None = None, deviation: float = 0.3, window: range | None = None, prior: Any = None, kept: bool = False,
) -> dict[Key, Any]:  # fmt: skip
    """The law of what is measured; the other answers follow from it, and from the prior, which is part of the outcome
    where it is one of the records.

    n       the public number of records
    kept    the threshold keeps its noise after a test that fired
    """
    law: dict[Key, Any] = {}
    public = sum(counts) if n is None else n
    span = range(-3, public + 4) if window is None else window
    start = [1.0] * SIZE if prior is None else prior(counts)

    def epochs(key: Key, p: Any, first: int, weights: list[float], left: int, before: Any) -> None:
        """`p` has the probability of all that is over; `before` has the tests whose threshold goes on."""
        tests, fires = (list(each) for each in before)
        for i in range(first, len(queries)) if left else ():
            count = sum(counts[j] for j in queries[i])
            estimate = sum(weights[j] for j in queries[i]) / sum(weights)
            tests.append(abs(count - int(np.rint(estimate * public))) - T)
            chance = probability(tuple(tests), (*fires, True), q1, q2)
            rest: Any = 1
            for a in span:
                mass = noise(a - count)
                rest -= mass
                then = moved(weights, queries[i], a, public, deviation)
                history = (tests, [*fires, True]) if kept else ((), ())
                epochs((*key, (i, a)), p * mass * (1 if kept else chance), i + 1, then, left - 1, history)
            # what lies outside of the window, as one outcome: post-processing
            law[(*key, (i, "far"))] = law.get((*key, (i, "far")), 0) + p * rest * chance
            fires.append(False)
        law[key] = law.get(key, 0) + p * (probability(tuple(tests), tuple(fires), q1, q2) if tests else 1)

    epochs(() if prior is None else (tuple(start),), Fraction(1), 0, start, updates, ([], []))
    return law


def worst(law: Callable[[Counts], dict[Key, Any]], ratio: Any, pairs: list[tuple[Counts, Counts]]) -> Any:
    """The largest delta with which (ln ratio, delta) fails for these neighbours."""
    laws = {counts: law(counts) for counts in {counts for pair in pairs for counts in pair}}
    found = 0
    for a, b in pairs:
        keys = laws[a].keys() | laws[b].keys()
        p, q = ({key: laws[c].get(key, 0) for key in keys} for c in (a, b))
        found = max(found, excess(p, q, ratio))
    return found


def added(n: int) -> list[tuple[Counts, Counts]]:
    """Neighbours that differ in a record that one of them has in addition."""
    pairs = []
    for counts in all_counts(n):
        for i in range(SIZE):
            more = (*counts[:i], counts[i] + 1, *counts[i + 1 :])
            pairs += [(counts, more), (more, counts)]
    return pairs


PRICE = 1 / (Q1 * Q2**2 * Q3)  # of an epoch: e^epsilon


@pytest.mark.parametrize(("n", "T", "updates"), [(3, 1, 1), (2, 0, 2), (3, 1, 2)])
def test_it_keeps_its_price(n: int, T: int, updates: int) -> None:
    queries = QUERIES if updates == 1 else QUERIES[:2]
    law = lambda c: measured_law(c, queries, T, Q1, Q2, laplace(Q3), updates)  # noqa: E731
    assert worst(law, PRICE**updates, neighbours(n)) == 0
    assert sum(law((n, 0, 0)).values()) == 1


@pytest.mark.parametrize(("n", "public", "T", "updates"), [(2, 3, 1, 1), (2, 1, 0, 2)])
def test_it_keeps_its_price_for_records_that_come_or_go(n: int, public: int, T: int, updates: int) -> None:
    """The number that counts are divided by was drawn before, and is the same."""
    law = lambda c: measured_law(c, QUERIES[:2], T, Q1, Q2, laplace(Q3), updates, n=public)  # noqa: E731
    assert worst(law, PRICE**updates, added(n)) == 0


def kappa(d: int, q: Fraction) -> float:
    """The largest KL(r, r') / r of two coins: whether noise reaches x, and whether it reaches x + d."""
    coins = [[float(sparse_vector.tail(k, q)) for k in (x, x + d)] for x in range(-20, 20)]
    return max(math.log(r / o) + (1 - r) / r * math.log((1 - r) / (1 - o)) for r, o in coins)


def rho_of(epsilon: float) -> float:
    return epsilon * math.tanh(epsilon / 2)


def of_rho(rho: float, pairs: list[tuple[Counts, Counts]], queries: list[Codes], q1: Fraction, q2: Fraction,
           noise: Noise, updates: int, *, T: int = 1, **more: Any) -> float:  # fmt: skip
    """The largest divergence in units of what rho allows: D_a <= a rho."""
    laws = {
        c: {k: float(p) for k, p in measured_law(c, queries, T, q1, q2, noise, updates, **more).items()}
        for c in {c for pair in pairs for c in pair}
    }
    largest = 0.0
    for a, b in pairs:
        for order in (1.01, 1.5, 2.0, 8.0):
            moment = math.fsum(
                math.exp(order * math.log(p) + (1 - order) * math.log(q))
                for p, q in ((laws[a][k], q) for k, q in laws[b].items())
                if p > 1e-280
            )
            largest = max(largest, math.log(moment) / (order - 1) / order / rho)
    return largest


PAIRS = {"replace-one": neighbours(3), "add-remove": added(2)}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("relation", PAIRS)
def test_its_divergence_is_within_rho(relation: str, kept: bool) -> None:
    """Of the Gaussian measurement, two epochs, with a threshold for each or one for both."""
    sigma, updates = 1.2, 2
    if kept:
        rho = rho_of(-math.log(Q1)) + updates * (kappa(2, Q2) + 1 / (2 * sigma**2))
    else:
        rho = updates * (rho_of(-math.log(Q1 * Q2**2)) + 1 / (2 * sigma**2))
    found = of_rho(rho, PAIRS[relation], QUERIES[:2], Q1, Q2, gaussian(sigma), updates, kept=kept, n=3)
    assert 0.1 < found <= 1 + 1e-9


def second_positive_free() -> float:
    """One threshold, two positives, the price of one: all tests fire, and both measurements are exact enough to show
    it."""
    rho = rho_of(-math.log(HALF)) + kappa(2, Q2) + 1 / (2 * 0.5**2)
    return of_rho(rho, PAIR, [(0,), (1,)], HALF, Q2, gaussian(0.5), 2, T=-10, kept=True, deviation=0.0)


def measurement_free() -> float:
    rho = rho_of(-math.log(HALF)) + kappa(2, Q2)
    return of_rho(rho, PAIR, [(0,)], HALF, Q2, gaussian(0.5), 1, T=-10, kept=True, deviation=0.0)


def noise_of_queries_and_threshold_of_a_quarter_of_the_scale() -> float:
    rho = rho_of(-math.log(Q1)) + kappa(2, Q2) + 1 / (2 * 6.0**2)
    return of_rho(rho, PAIR, SAME, Q1**4, Q2**4, gaussian(6.0), 1, T=4, kept=True, deviation=0.0)


@pytest.mark.parametrize(
    "mutant", [second_positive_free, measurement_free, noise_of_queries_and_threshold_of_a_quarter_of_the_scale]
)
def test_variants_with_one_threshold_that_are_not_private_are_rejected(mutant: Callable[[], float]) -> None:
    assert mutant() > 1


PAIR = [((7, 5, 0), (8, 4, 0)), ((8, 4, 0), (7, 5, 0))]
SAME: list[Codes] = [*[(0,)] * 4, (1,)]  # the gap of one grows where that of the other falls


def on_pair(queries: list[Codes], q2: Fraction = HALF, noise: Noise | None = None, **more: Any) -> Any:
    """What fails on neighbours whose gaps move apart, at the price of one epoch whose scales are those of HALF."""
    drawn = laplace(HALF) if noise is None else noise

    def law(counts: Counts) -> dict[Key, Any]:
        return measured_law(counts, queries, 1, HALF, q2, drawn, 1, deviation=0.0, **more)

    return worst(law, 1 / HALF**4, PAIR)


def epoch_begun_and_not_paid(**more: Any) -> Any:
    """Measurements take most of the price here, and there are two of them."""
    test, measured = Fraction(9, 10), Fraction(1, 4)

    def law(counts: Counts) -> dict[Key, Any]:
        return measured_law(counts, SAME[:1] * 2, 1, test, test, laplace(measured), 2, deviation=0.0, **more)

    assert worst(law, 1 / (test**3 * measured) ** 2, PAIR) == 0
    return worst(law, 1 / (test**3 * measured), PAIR)


def measurement_forgotten_in_the_price() -> Any:
    """Three parts of the price are paid for, the fourth is not."""
    law = lambda c: measured_law(c, SAME, 1, HALF, HALF, laplace(HALF), 1)  # noqa: E731
    return worst(law, 1 / HALF**3, PAIR)


def measurement_without_noise() -> Any:
    return on_pair(SAME[:1], noise=lambda z: Fraction(int(z == 0)))


def threshold_kept_and_the_next_positive_not_paid() -> Any:
    return epoch_begun_and_not_paid(kept=True)


def prior_made_from_the_records() -> Any:
    return on_pair(SAME[:1], prior=lambda counts: [x + 0.5 for x in counts])


def noise_of_half_the_scale() -> Any:
    return on_pair(SAME, q2=HALF**2)


def number_of_records_used_unpaid() -> Any:
    """Add-remove neighbours, with what the records' own number makes of the answers."""

    def law(counts: Counts) -> dict[Key, Any]:
        found = measured_law(counts, QUERIES[:1], 1, HALF, HALF, laplace(HALF), 1)
        return {(sum(counts), *key): p for key, p in found.items()}

    return worst(law, 1 / HALF**4, added(2))


def test_the_price_is_attained() -> None:
    """Up to a few parts in a hundred, on an instance as small: what is charged cannot be less."""
    law = lambda c: measured_law(c, SAME, 1, HALF, HALF, laplace(HALF), 1)  # noqa: E731
    assert worst(law, Fraction(15), PAIR) > 0
    assert worst(law, Fraction(16), PAIR) == 0


@pytest.mark.parametrize(
    "mutant",
    [
        epoch_begun_and_not_paid, measurement_forgotten_in_the_price, measurement_without_noise,
        threshold_kept_and_the_next_positive_not_paid, prior_made_from_the_records, number_of_records_used_unpaid,
        noise_of_half_the_scale,
    ],
)  # fmt: skip
def test_variants_that_are_not_private_are_rejected(mutant: Callable[[], Any]) -> None:
    assert mutant() > 0


# --- the object against the law


def scale_of(q: Fraction) -> float:
    return 1 / math.log(1 / q)


def run_this(monkeypatch: pytest.MonkeyPatch, schedule: Any) -> None:
    """Have objects run this schedule, on the grid of whole records."""
    monkeypatch.setattr(given.MultiplicativeWeightsParameters, "schedule", lambda self, n: schedule)
    on_whole_records(monkeypatch)


@pytest.mark.parametrize(("ask", "delta"), [(one_by_one, 0.0), (one_by_one, 1e-6), (together, 1e-6), (in_two, 0.0)])
def test_what_runs_has_the_law_that_was_proved(ask: Any, delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is asked; wrong laws are rejected by the same draws, among them that of a threshold which keeps its
    noise, or, with a delta, of one that has new noise in each epoch."""
    counts, updates, T, runs, sigma = (4, 1, 1), 2, 1, 1600 if delta else 1200, 1.3
    noise, scale = (gaussian(sigma), sigma) if delta else (laplace(Q3), scale_of(Q3))
    deviation = 0.3  # records
    run_this(
        monkeypatch,
        MeasuredSchedule(
            0.5,
            0.5,
            updates,
            Fraction(1, 1000),
            scale_of(Q1),
            scale_of(Q2),
            scale,
            deviation,
            T,
            once=Fraction(1, 1000) if delta else Fraction(0),
        ),
    )
    queries = [Product({"a": list(codes)}) for codes in QUERIES]
    rng, seen = Randomness(seed=7), {}  # type: ignore[var-annotated]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        for _ in range(runs):
            run = make(records(counts), DOMAIN, variant="measured", replay=0, delta=delta, rng=rng)
            assert ask(run, queries) == [row.value for row in run.transcript]
            fired = tuple((i, round(row.value * 6) // 3) for i, row in enumerate(run.transcript) if row.updated)
            assert run.updates == len(fired) <= updates
            seen[fired] = seen.get(fired, 0) + 1

    def verdict(q1: Fraction, q2: Fraction, T: int, noise: Noise, **more: Any) -> Any:
        law: dict[Key, float] = {}
        exact = measured_law(
            counts,
            QUERIES,
            T,
            q1,
            q2,
            noise,
            updates,
            deviation=deviation / 6,
            window=range(-9, 16),
            **{"kept": bool(delta)} | more,
        )
        for key, p in exact.items():
            if not any(a == "far" for _, a in key):
                short = tuple((i, min(max(a, 0), 6) // 3) for i, a in key)  # few cells, each of many draws
                law[short] = law.get(short, 0.0) + float(p)
        assert set(seen) <= set(law)
        return check_cells([seen.get(key, 0) for key in law], [(p, p + 1e-3) for p in law.values()])

    assert verdict(Q1, Q2, T, noise), str(verdict(Q1, Q2, T, noise))
    for wrong in ((Q1**2, Q2**2, T), (Q1, Q2, T + 1), (Q1, Q2**3, T)):
        assert not verdict(*wrong, noise)
    assert not verdict(Q1, Q2, T, laplace(Q3**2) if not delta else gaussian(sigma / 2))
    assert not verdict(Q1**3, Q2, T, noise, kept=not delta)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_plain_answers_have_their_noise(delta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    sigma = 1.3
    noise, scale = (gaussian(sigma), sigma) if delta else (laplace(Q3), scale_of(Q3))
    run_this(monkeypatch, PlainSchedule(0.5, Fraction(1, 10**6), scale, scale))
    run = make(records((4, 1, 1)), DOMAIN, variant="plain", delta=delta, rng=Randomness(seed=3), max_queries=10**5)
    queries = [Product({"a": list(codes)}) for codes in QUERIES]
    answers = np.rint(np.concatenate([run.answer_many(queries * 100) for _ in range(30)]) * 6).astype(int)
    for j, codes in enumerate(QUERIES):
        count = sum((4, 1, 1)[i] for i in codes)
        seen = np.bincount(answers[j::3], minlength=7)
        right = [sum(float(noise(a - count)) for a in range(-30, 40) if min(max(a, 0), 6) == v) for v in range(7)]
        assert check_cells(seen.tolist(), right)
        assert not check_cells(seen.tolist(), right[::-1])
