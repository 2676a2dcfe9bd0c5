"""The laws of private multiplicative weights on a tiny domain, and what else several tests share."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from fastdp import (  # fmt: skip
    Domain,
    PrivateMultiplicativeWeights,
)
from fastdp.answering import multiplicative_weights_lecture as lecture
from fastdp.answering import multiplicative_weights_measured as measured
from fastdp.answering import multiplicative_weights_parameters as given
from fastdp.answering import multiplicative_weights_plain as plain
from fastdp.answering import multiplicative_weights_run as runs
from fastdp.answering import multiplicative_weights_start as start
from fastdp.answering import true_answers as truth
from fastdp.answering import workload
from fastdp.answering.queries import bound_query
from fastdp.answering.update_schedule import UpdateSchedule, Variant

VARIANTS: list[Variant] = ["sharp", "lecture"]

# --- a tiny instance: one attribute, counts as the grid, any schedule

SIZE = 3
DOMAIN = Domain(a=SIZE)
Counts = tuple[int, ...]
Codes = tuple[int, ...]  # of a query: the allowed ones
# an update: for which query, to which side, and the answer that was given out (lecture)
Key = tuple[Any, ...]


def all_counts(n: int, size: int = SIZE) -> list[Counts]:
    if size == 1:
        return [(n,)]
    return [(first, *rest) for first in range(n + 1) for rest in all_counts(n - first, size - 1)]


def neighbours(n: int) -> list[tuple[Counts, Counts]]:
    pairs = []
    for counts in all_counts(n):
        for i in range(SIZE):
            for j in range(SIZE):
                if i != j and counts[i]:
                    moved = list(counts)
                    moved[i] -= 1
                    moved[j] += 1
                    pairs.append((counts, tuple(moved)))
    return pairs


def updated(weights: list[float], query: Codes, by: float) -> list[float]:
    return [w * math.exp(by) if i in query else w for i, w in enumerate(weights)]


def tiny(
    monkeypatch: pytest.MonkeyPatch,
    variant: Variant,
    T: int,
    b1: float,
    b2: float,
    b3: float,
    updates: int,
    rate: float,
) -> None:
    """Have objects run this schedule, on the grid of whole records."""
    schedule = UpdateSchedule(variant, 0.5, updates, 0.01, b1, b2, b3, T, rate)
    monkeypatch.setattr(given.MultiplicativeWeightsParameters, "schedule", lambda self, n: schedule)
    on_whole_records(monkeypatch)


def on_whole_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have counts, thresholds and noise be on the grid of whole records; nobody searches whether plain noise is
    better, which takes most of the time of an object as small."""
    monkeypatch.setattr(start, "_warn_if_plain_noise_is_better", lambda given, schedule, n: None)
    for module in (runs, lecture, measured, plain):
        monkeypatch.setattr(module, "UNIT", 1)
    monkeypatch.setattr(truth, "GRID_BITS", 0)
    monkeypatch.setattr(bound_query, "GRID_BITS", 0)
    monkeypatch.setattr(workload, "GRID_BITS", 0)


def make(data: Any, domain: Domain, **options: Any) -> PrivateMultiplicativeWeights:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_queries": 10**6, "variant": "sharp"}
    return PrivateMultiplicativeWeights(data, domain, **given | options)


def records(counts: Counts) -> np.ndarray:
    return np.repeat(np.arange(SIZE), counts)[:, None]


QUERIES: list[Codes] = [(0,), (1, 2), (0, 2)]


def one_by_one(run: PrivateMultiplicativeWeights, queries: list[Any]) -> list[float]:
    return [run.answer(query) for query in queries]


def together(run: PrivateMultiplicativeWeights, queries: list[Any]) -> list[float]:
    return list(run.answer_many(queries))


def in_two(run: PrivateMultiplicativeWeights, queries: list[Any]) -> list[float]:
    return [*run.answer_many(iter(queries[:1])), *run.answer_many(queries[1:])]


# --- the interaction without noise, against its definition


QUIET = 2.0**-6  # a scale of which no draw is other than 0: e^-64


# --- accuracy


def skewed(n: int, domain: Domain, seed: int = 0) -> np.ndarray:
    """Records that are far from uniform: attributes tied to a hidden one."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(n)
    return np.stack(
        [np.minimum((size * hidden**2 * rng.random(n) ** 0.3).astype(int), size - 1) for size in domain.sizes], 1
    )


# --- the schedule, from its inequalities


def zcdp_delta(rho: Decimal, epsilon: Decimal) -> Decimal:
    """The least over orders of what Canonne, Kamath and Steinke have: every order is a bound."""

    def power(a: Decimal) -> Decimal:
        return (a - 1) * (a * rho - epsilon) + a * (1 - 1 / a).ln() - (a - 1).ln()

    low, high = Decimal("1.0001"), epsilon / rho + 100
    for _ in range(120):  # it is convex in the order
        one, two = (2 * low + high) / 3, (low + 2 * high) / 3
        low, high = (low, two) if power(one) < power(two) else (one, high)
    return power(low).exp()


# --- estimates, budgets, refusals


SMALL = Domain(a=4, b=3)

PEOPLE = skewed(20_000, SMALL)
