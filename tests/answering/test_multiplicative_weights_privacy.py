"""Private multiplicative weights: the law that was proved, its privacy by enumeration, and variants without privacy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fastdp import (  # fmt: skip
    Product,
    Randomness,
)
from fastdp.answering.update_schedule import Variant
from fastdp.support.errors import AccuracyWarning
from tests.answering.multiplicative_weights_laws import (
    DOMAIN,
    QUERIES,
    QUIET,
    SIZE,
    VARIANTS,
    Codes,
    Counts,
    Key,
    in_two,
    make,
    neighbours,
    one_by_one,
    records,
    tiny,
    together,
    updated,
)
from tests.laws import audit, check_cells
from tests.oracles.sparse_vector import excess, pmf, probability, tail

# that plain noise would guarantee more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)


# --- a tiny instance: one attribute, counts as the grid, any schedule


def gap(counts: Counts, weights: list[float], query: Codes) -> tuple[int, int]:
    """What the query has in the records, and how much more that is than in the distribution."""
    estimate = sum(weights[i] for i in query) / sum(weights)
    count = sum(counts[i] for i in query)
    return count, count - int(np.rint(estimate * sum(counts)))


def sharp_law(
    counts: Counts, queries: list[Codes], T: int, q1: Fraction, q2: Fraction, updates: int, rate: float
) -> dict[Key, Fraction]:
    """The law of the updates, as multiplicative_weights.md says it is run; answers follow from them."""
    law: dict[Key, Fraction] = {}

    def epochs(key: Key, p: Fraction, first: int, weights: list[float], left: int) -> None:
        if not left:
            law[key] = law.get(key, Fraction(0)) + p
            return
        tests: list[int] = []
        for i in range(first, len(queries)):
            _, g = gap(counts, weights, queries[i])
            for side in (1, -1):
                tests.append(side * g - T)
                fires = probability(tuple(tests), (*(False,) * (len(tests) - 1), True), q1, q2)
                epochs((*key, (i, side)), p * fires, i, updated(weights, queries[i], side * rate), left - 1)
        law[key] = law.get(key, Fraction(0)) + p * probability(tuple(tests), (False,) * len(tests), q1, q2)

    epochs((), Fraction(1), 0, [1.0] * SIZE, updates)
    return law


def lecture_law(
    counts: Counts, queries: list[Codes], T: int, q1: Fraction, q2: Fraction, updates: int, rate: float,
    q3: Fraction | None = None, reused: bool = False,
) -> dict[Key, Fraction]:  # fmt: skip
    """The same for the lecture's variant; noisy answers outside a window count as one on each side.

    `reused`: the noise of the test that fired is that of the answer as well.
    """
    law: dict[Key, Fraction] = {}
    n, q3 = sum(counts), q2 if q3 is None else q3
    window = range(-2, n + 3)

    def epochs(key: Key, p: Fraction, first: int, weights: list[float], left: int) -> None:
        if not left:
            law[key] = law.get(key, Fraction(0)) + p
            return
        tests: list[int] = []
        quiet = Fraction(1)
        for i in range(first, len(queries)):
            count, g = gap(counts, weights, queries[i])
            none = (False,) * len(tests)
            estimate = sum(weights[j] for j in queries[i]) / sum(weights) * n
            if reused:
                answers = {
                    v: pmf(v - count, q2) * probability(tuple(tests), none, q1, q2, most=abs(g) + v - count - T)
                    for v in window
                }
            else:
                fires = probability((*tests, abs(g) - T), (*none, True), q1, q2)
                answers = {v: fires * pmf(v - count, q3) for v in window}
                answers["low"] = fires * tail(count - window[0] + 1, q3)  # type: ignore[index]
                answers["high"] = fires * tail(window[-1] + 1 - count, q3)  # type: ignore[index]
            for v, chance in answers.items():
                over = v == "high" or (v != "low" and v > estimate)
                by = rate if over else -rate
                epochs((*key, (i, v)), p * chance, i + 1, updated(weights, queries[i], by), left - 1)
            tests.append(abs(g) - T)
            quiet = probability(tuple(tests), (False,) * len(tests), q1, q2)
        law[key] = law.get(key, Fraction(0)) + p * quiet

    epochs((), Fraction(1), 0, [1.0] * SIZE, updates)
    if reused:  # what lies outside the window
        law[("rest",)] = 1 - sum(law.values())
    return law


def scale_of(q: Fraction) -> float:
    return 1 / math.log(1 / q)


Q1, Q2, HALF = Fraction(3, 5), Fraction(7, 10), Fraction(1, 2)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("ask", [one_by_one, together, in_two])
def test_what_runs_has_the_law_that_was_proved(variant: Variant, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The object itself against exact probabilities, however it is asked; wrong laws are rejected by the same draws."""
    counts, updates, rate, T, runs = (4, 1, 1), 2, 0.7, 2, 1500
    tiny(monkeypatch, variant, T, scale_of(Q1), scale_of(Q2), scale_of(Q2) * (variant == "lecture"), updates, rate)
    queries = [Product({"a": list(codes)}) for codes in QUERIES]
    rng, seen = Randomness(seed=7), {}  # type: ignore[var-annotated]
    for _ in range(runs):
        run = make(records(counts), DOMAIN, variant=variant, rng=rng)
        steps: list[Any] = []
        scale = run._run.weights.scale

        def log_scale(bound: Any, by: float, steps: list[Any] = steps, run: Any = run, scale: Any = scale) -> None:
            last = len(run.transcript) - (variant == "lecture")
            value = round(run.transcript[-1].value * 6) if variant == "lecture" else 0
            steps.append((last, 1 if by > 0 else -1) if variant == "sharp" else (last, value))
            scale(bound, by)

        run._run.weights.scale = log_scale  # type: ignore[method-assign]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AccuracyWarning)
            answers = ask(run, queries)
        assert [row.value for row in run.transcript] == answers
        assert [row.query for row in run.transcript] == queries
        changed = {step[0] for step in steps}
        assert [row.updated for row in run.transcript] == [i in changed for i in range(len(queries))]
        assert run.updates == len(steps) <= updates
        seen[tuple(steps)] = seen.get(tuple(steps), 0) + 1

    def clipped(law: dict[Key, Fraction]) -> dict[Key, Fraction]:
        """Noisy answers as they are given out, within 0 and 1."""
        result: dict[Key, Fraction] = {}
        for key, p in law.items():
            short = tuple((i, {"low": 0, "high": 6}[v] if isinstance(v, str) else min(max(v, 0), 6)) for i, v in key)
            result[short] = result.get(short, Fraction(0)) + p
        return result

    def verdict(q1: Fraction, q2: Fraction, T: int) -> Any:
        law = sharp_law if variant == "sharp" else lecture_law
        right = law(counts, QUERIES, T, q1, q2, updates, rate)
        right = right if variant == "sharp" else clipped(right)
        assert sum(right.values()) == 1
        assert set(seen) <= set(right)
        return check_cells([seen.get(key, 0) for key in right], list(right.values()))

    assert verdict(Q1, Q2, T), str(verdict(Q1, Q2, T))
    for wrong in ((Q1**2, Q2**2, T), (Q1, Q2, T + 1), (Q1, Q2**3, T)):
        assert not verdict(*wrong)


# --- privacy of the interaction, by enumeration


def worst(
    law: Callable[[Counts], dict[Key, Fraction]],
    ratio: Fraction,
    n: int,
    pairs: list[tuple[Counts, Counts]] | None = None,
) -> Fraction:
    """The largest delta with which (ln ratio, delta) fails for neighbours of n records."""
    pairs = neighbours(n) if pairs is None else pairs
    laws = {counts: law(counts) for counts in {counts for pair in pairs for counts in pair}}
    found = Fraction(0)
    for a, b in pairs:
        assert laws[a].keys() == laws[b].keys()
        found = max(found, excess(laws[a], laws[b], ratio))
    return found


@pytest.mark.parametrize(
    ("n", "T", "updates", "rate"), [(3, 1, 1, 1.0), (3, 1, 2, 1.0), (4, 2, 2, 0.5), (2, 0, 2, 2.0)]
)
@pytest.mark.parametrize(("q1", "q2"), [(Q1, Q2), (Fraction(1, 4), Fraction(1, 2))])
def test_sharp_keeps_its_price(n: int, T: int, updates: int, rate: float, q1: Fraction, q2: Fraction) -> None:
    price = 1 / (q1 * q2**2)
    assert worst(lambda counts: sharp_law(counts, QUERIES, T, q1, q2, updates, rate), price**updates, n) == 0


@pytest.mark.parametrize(("n", "T", "updates", "rate"), [(3, 1, 1, 1.0), (3, 1, 2, 1.0), (2, 0, 2, 2.0)])
@pytest.mark.parametrize("q", [Fraction(3, 5), Fraction(1, 3)])
def test_lecture_keeps_four_times_its_price(n: int, T: int, updates: int, rate: float, q: Fraction) -> None:
    queries = QUERIES if updates == 1 else QUERIES[:2]
    assert worst(lambda counts: lecture_law(counts, queries, T, q, q, updates, rate), (1 / q**4) ** updates, n) == 0


def test_the_prices_are_attained() -> None:
    """Up to a few parts in a hundred, on instances as small as these: what is charged cannot be less."""
    sharp = lambda counts: sharp_law(counts, [(0,)] * 4, 1, HALF, HALF, 1, 1.0)  # noqa: E731
    assert worst(sharp, Fraction(15, 2), 12, [((0, 9, 3), (1, 8, 3)), ((1, 8, 3), (0, 9, 3))]) > 0
    assert worst(sharp, Fraction(8), 12) == 0
    lecture = lambda counts: lecture_law(counts, [*[(0,)] * 4, (1,)], 1, HALF, HALF, 1, 1.0)  # noqa: E731
    assert worst(lecture, Fraction(15), 12, [((7, 5, 0), (8, 4, 0))]) > 0
    assert worst(lecture, Fraction(16), 12) == 0


SAME: list[Codes] = [(0,)] * 6

EDGE = [((3, 0, 0), (2, 1, 0)), ((2, 1, 0), (3, 0, 0)), ((1, 2, 0), (0, 3, 0)), ((0, 3, 0), (1, 2, 0))]


def no_query_noise() -> Fraction:
    return worst(lambda counts: sharp_law(counts, SAME[:2], 1, Q1, Fraction(0), 1, 1.0), 1 / (Q1 * Q2**2), 3)


def noise_not_scaled() -> Fraction:
    """Half of the scale, for the price of the whole."""
    q = HALF
    return worst(lambda counts: sharp_law(counts, SAME, 2, q**2, q**2, 1, 1.0), 1 / q**3, 3, EDGE)


def query_noise_of_half_the_scale() -> Fraction:
    return worst(lambda counts: sharp_law(counts, SAME, 2, Q1, HALF**4, 1, 1.0), 1 / (Q1 * HALF**4), 3, EDGE)


def one_epoch_paid_and_two_run() -> Fraction:
    return worst(lambda counts: sharp_law(counts, SAME[:3], 2, HALF, HALF, 2, 0.1), 1 / HALF**3, 3, EDGE)


def noise_reused_in_the_answer() -> Fraction:
    """What is given out bounds the threshold's noise, so every query before costs; four prices are not enough."""
    q, queries = HALF, [(0,)] * 9
    return worst(lambda counts: lecture_law(counts, queries, 3, q, q, 1, 1.0, reused=True), 1 / q**4, 3, EDGE)


def one_price_for_three_noises() -> Fraction:
    return worst(lambda counts: lecture_law(counts, SAME[:2], 1, HALF, HALF, 1, 1.0), 1 / HALF, 3)


def no_noise_in_the_answer() -> Fraction:
    law = lambda counts: lecture_law(counts, SAME[:2], 1, HALF, HALF, 1, 1.0, q3=Fraction(0))  # noqa: E731
    return worst(law, 1 / HALF**4, 3)


@pytest.mark.parametrize(
    "mutant",
    [
        no_query_noise, noise_not_scaled, query_noise_of_half_the_scale, one_epoch_paid_and_two_run,
        noise_reused_in_the_answer, one_price_for_three_noises, no_noise_in_the_answer,
    ],
)  # fmt: skip
def test_variants_that_are_not_private_are_rejected(mutant: Callable[[], Fraction]) -> None:
    assert mutant() > 0


# --- audit: what the object itself gives out, for neighbours


ONCE_IN = 1e-6  # so rarely an audit finds what is not there


@dataclass(frozen=True)
class Audited:
    """Runs of an instance whose noises all have the law `q`, and of a mutant."""

    neighbours: tuple[Counts, Counts]
    asked: list[Codes]
    part: float  # of the price, which the audit finds
    runs: int
    T: int
    q: Fraction
    mutant: tuple[int, int, Fraction]  # its runs, its T, its q: as few as show it

    def samples(self, monkeypatch: pytest.MonkeyPatch, variant: Variant, T: int, scales: tuple[float, ...],
                runs: int) -> list[np.ndarray]:  # fmt: skip
        """The answers for either neighbour: a row for each run."""
        tiny(monkeypatch, variant, T, *scales, 1, 1.0)
        queries, found = [Product({"a": list(codes)}) for codes in self.asked], []
        for seed, counts in enumerate(self.neighbours, 1):
            rng, data, rows = Randomness(seed=seed), records(counts), np.empty((runs, len(queries)))
            for i in range(runs):
                rows[i] = make(data, DOMAIN, variant=variant, rng=rng).answer_many(queries)
            found.append(rows)
        return found


AUDITED: dict[Variant, Audited] = {
    "sharp": Audited(
        ((1, 2, 0), (2, 1, 0)), [(0,), (0,), (0,), (1,)], 0.5, 6000, 1, Fraction(1, 3), (5000, 1, Fraction(1, 3))
    ),
    "lecture": Audited(((5, 1, 0), (4, 2, 0)), [(0,)], 0.3, 4500, 3, Fraction(1, 4), (1500, 1, HALF)),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")
def test_an_audit_finds_the_price_and_not_more(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what the object says; the noise of half the scale, or left out of answers, is found by no more runs."""
    one, noisy_answers = AUDITED[variant], variant == "lecture"

    def refuted(pair: list[np.ndarray], epsilon: float) -> bool:
        return any(audit(*each, epsilon, alarm=ONCE_IN).refuted for each in (pair, pair[::-1]))

    scale = scale_of(one.q)
    price = (4 if noisy_answers else 3) / scale
    right = one.samples(monkeypatch, variant, one.T, (scale, scale, scale * noisy_answers), one.runs)
    assert not refuted(right, price)
    assert refuted(right, price * one.part), "the audit has no power"

    runs, T, q = one.mutant
    scale = scale_of(q)
    mutant = (scale, scale, QUIET) if noisy_answers else (scale, scale / 2, 0.0)
    price = (4 if noisy_answers else 3) / scale
    assert refuted(one.samples(monkeypatch, variant, T, mutant, runs), price)
