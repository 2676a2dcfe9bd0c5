"""Answers that are interleaved (budget.md, theorem 5), by enumeration in fractions: the simulation by a randomised
response, and the worst analyst of two mechanisms whose questions come between each other's."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from functools import cache

import pytest

import fastdp
from fastdp import AboveThreshold, Budget, PureDP

History = tuple[int, ...]  # question, answer, question, answer, ...
ROUNDS, QUESTIONS, ANSWERS = 2, (0, 1), (0, 1)


class Interactive:
    """P_b(h) of a mechanism of two rounds: two bits are asked, two are answered."""

    def __init__(self, p: dict[History, tuple[Fraction, Fraction]]) -> None:
        self.p = p

    @property
    def odds(self) -> Fraction:
        """e^eps of the least eps for which it is eps-DP."""
        return max(max(p / q, q / p) for p, q in self.p.values())

    def next(self, bit: int, history: History, question: int, answer: int) -> Fraction:
        return self.p[*history, question, answer][bit] / self.p[history][bit]


def answers_of(laws: dict[History, tuple[Fraction, Fraction]]) -> Interactive:
    """Of the probabilities (for either bit) of the answer 1 to a question after a history."""
    p = {(): (Fraction(1), Fraction(1))}
    for rounds in range(ROUNDS):
        for history in [h for h in p if len(h) == 2 * rounds]:
            for question in QUESTIONS:
                law = laws[*history, question]
                for answer in ANSWERS:
                    p[*history, question, answer] = tuple(  # type: ignore[assignment]
                        before * (one if answer else 1 - one) for before, one in zip(p[history], law, strict=True)
                    )
    return Interactive(p)


def some_mechanism(rng: random.Random) -> Interactive:
    laws: dict[History, tuple[Fraction, Fraction]] = {}
    for history in [(q,) for q in QUESTIONS] + list(itertools.product(QUESTIONS, ANSWERS, QUESTIONS)):
        center, apart = Fraction(rng.randint(25, 75), 100), Fraction(rng.randint(-20, 20), 100)
        laws[history] = center, min(max(center + apart, Fraction(1, 50)), Fraction(49, 50))
    return answers_of(laws)


def simulated(mechanism: Interactive, odds: Fraction) -> dict[History, tuple[Fraction, Fraction]]:
    """R_0 and R_1 of the lemma."""
    return {h: tuple((odds * p[c] - p[1 - c]) / (odds - 1) for c in (0, 1)) for h, p in mechanism.p.items()}  # type: ignore[misc]


def is_interactive(r: dict[History, tuple[Fraction, Fraction]]) -> bool:
    """Whether these are the probabilities of answers, whatever is asked."""
    return r[()] == (1, 1) and all(
        min(value) >= 0
        and (
            len(h) == 2 * ROUNDS
            or all(sum(r[*h, q, a][c] for a in ANSWERS) == value[c] for q in QUESTIONS for c in (0, 1))
        )
        for h, value in r.items()
    )


@pytest.mark.parametrize("seed", range(40))
def test_an_interactive_mechanism_is_a_randomised_response_and_post_processing(seed: int) -> None:
    mechanism = some_mechanism(random.Random(seed))
    odds = mechanism.odds
    for enough in (odds, odds * 2):
        r = simulated(mechanism, enough)
        assert is_interactive(r)
        for h, p in mechanism.p.items():
            for bit in (0, 1):
                assert (enough * r[h][bit] + r[h][1 - bit]) / (1 + enough) == p[bit]
    assert not is_interactive(simulated(mechanism, 1 + (odds - 1) * Fraction(9, 10)))  # of less than it costs


def worst(mechanisms: tuple[Interactive, ...], moves: int) -> Fraction:
    """The largest ratio of a transcript, of any analyst who asks any of them next, by all answers so far."""

    @cache
    def ratio(histories: tuple[History, ...], left: int) -> Fraction:
        found = Fraction(1)
        for i, mechanism in enumerate(mechanisms):
            h = histories[i]
            if left and len(h) < 2 * ROUNDS:
                for question in QUESTIONS:
                    for answer in ANSWERS:
                        after = (*histories[:i], (*h, question, answer), *histories[i + 1 :])
                        one = mechanism.next(0, h, question, answer) / mechanism.next(1, h, question, answer)
                        found = max(found, one * ratio(after, left - 1))
        return found

    return ratio(((),) * len(mechanisms), moves)


def least_delta(mechanisms: tuple[Interactive, ...], factor: Fraction) -> Fraction:
    """The least delta at e^eps = factor, of the best deterministic analyst of any interleaving."""

    @cache
    def best(histories: tuple[History, ...]) -> Fraction:
        p, q = Fraction(1), Fraction(1)
        for mechanism, h in zip(mechanisms, histories, strict=True):
            p, q = p * mechanism.p[h][0], q * mechanism.p[h][1]
        found = max(p - factor * q, Fraction(0))  # stop here
        for i, h in enumerate(histories):
            if len(h) < 2 * ROUNDS:
                for question in QUESTIONS:
                    after = [(*histories[:i], (*h, question, a), *histories[i + 1 :]) for a in ANSWERS]
                    found = max(found, sum(map(best, after), Fraction(0)))
        return found

    return best(((),) * len(mechanisms))


def of_responses(odds: list[Fraction], factor: Fraction) -> Fraction:
    """The same of the randomised responses that take their places: what the price is computed from."""
    found = Fraction(0)
    for outcome in itertools.product((0, 1), repeat=len(odds)):
        p = q = Fraction(1)
        for each, true in zip(odds, outcome, strict=True):
            a, b = each / (1 + each), 1 / (1 + each)
            p, q = (p * a, q * b) if true else (p * b, q * a)
        found += max(p - factor * q, Fraction(0))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_worst_interleaving_costs_no_more_than_the_responses(seed: int) -> None:
    rng = random.Random(f"two {seed}")
    mechanisms = some_mechanism(rng), some_mechanism(rng)
    odds = [mechanism.odds for mechanism in mechanisms]
    assert worst(mechanisms, 2 * ROUNDS) <= odds[0] * odds[1]
    for factor in (Fraction(1), Fraction(5, 4), Fraction(2), odds[0], odds[0] * odds[1]):
        assert least_delta(mechanisms, factor) <= of_responses(odds, factor)
    assert least_delta(mechanisms, odds[0] * odds[1]) == 0


def test_the_bound_has_teeth() -> None:
    """A mechanism that is priced by one of its rounds is found out."""
    mechanism = answers_of(
        {
            h: (Fraction(2, 3), Fraction(1, 3))
            for h in [(q,) for q in QUESTIONS] + list(itertools.product(QUESTIONS, ANSWERS, QUESTIONS))
        }
    )
    assert mechanism.odds == 4
    assert not is_interactive(simulated(mechanism, Fraction(2)))
    assert least_delta((mechanism, mechanism), Fraction(4)) > 0 == least_delta((mechanism, mechanism), Fraction(16))


def test_interleaved_mechanisms_are_charged_when_they_are_made() -> None:
    """And what is asked of them in between other releases costs nothing more."""
    budget = Budget(epsilon=1)
    with budget:
        watch = AboveThreshold(2**40, sensitivity=1, epsilon=0.25)
        choice = fastdp.GumbelMax(sensitivity=1, epsilon=0.25)
        assert budget.spent == PureDP(0.5)
        for i in range(3):
            assert watch.above(i) is False
            choice.offer([int(fastdp.laplace(i, sensitivity=1, epsilon=0.125))], i)
        choice.winner()
    assert budget.spent == PureDP(0.875)
    assert [row.mechanism for row in budget.releases] == ["AboveThreshold", "GumbelMax", *["laplace"] * 3]
