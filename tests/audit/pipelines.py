"""Every mechanism as a pipeline over neighbouring records, for replays: each reads the record that differs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fastdp
from fastdp import losses, sets, statistics
from fastdp.sklearn import PrivateMedian

ROOM = Path(fastdp.__file__).parent
# Charged under these names, and audited where their libraries are: what is theirs is not followed.
ELSEWHERE = {"smartnoise bounds"}

RNG = np.random.default_rng(5)
N = 200
NUMBERS = RNG.integers(0, 100, N)
LABELS = RNG.integers(0, 2, N)
POINTS = RNG.uniform(-0.5, 0.5, (N, 2))
BITS = RNG.integers(0, 2, (N, 4))
DOMAIN = fastdp.Domain(a=2, b=3)
TABLE = np.column_stack((RNG.integers(0, 2, N), RNG.integers(0, 3, N)))
QUERIES = [fastdp.Conjunction({"a": 1}), fastdp.Conjunction({"b": 2}), fastdp.Conjunction({"a": 0, "b": 1})]


class Records(NamedTuple):
    """n records, each with everything that some mechanism reads."""

    numbers: Any
    labels: Any
    points: Any
    bits: Any
    table: Any

    @property
    def floats(self) -> Any:
        return self.numbers.astype(float)


DATA = Records(NUMBERS, LABELS, POINTS, BITS, TABLE)


def changed(first: Any, to: Any) -> Any:
    """The same records, but the first."""
    other = first.copy()
    other[0] = to
    return other


OTHER = Records(
    changed(NUMBERS, 99 if NUMBERS[0] < 50 else 0),
    changed(LABELS, 1 - LABELS[0]),
    changed(POINTS, [0.5, -0.5]),
    changed(BITS, BITS[0] ^ [1, 0, 0, 0]),
    changed(TABLE, [1 - TABLE[0, 0], (TABLE[0, 1] + 1) % 3]),
)
FEWER = Records(*(part[1:] for part in DATA))

Pipeline = Callable[[Records], Any]


def tests_of_values(kind: Any, **more: Any) -> Pipeline:
    def run(r: Records) -> Any:
        watch = kind(20, sensitivity=1, epsilon=1.0, **more)
        ask = getattr(watch, "above", None) or watch.answer
        many = getattr(watch, "first_above", None) or getattr(watch, "places_above", None) or watch.answer_many
        found = [ask(int((r.numbers > 50).sum()) - 80)]
        return found if watch.closed else [*found, many([int((r.numbers > t).sum()) - 80 for t in (51, 52)])]

    return run


def gumbel(r: Records) -> Any:
    choice = fastdp.GumbelMax(sensitivity=1, epsilon=1.0)
    counts = np.bincount(r.numbers, minlength=100)
    choice.offer(counts[:50], 0)
    choice.offer(counts[50:], 50)
    return choice.winner


def counter(r: Records) -> Any:
    counter = fastdp.ContinualCounter(rho=0.5, length=N)
    return [counter.add(int(r.labels[0])), counter.add_many(r.labels[1:])]


def online(variant: str) -> Pipeline:
    def run(r: Records) -> Any:
        more = {} if variant in ("sharp", "lecture") else {"delta": 1e-6}
        answers = fastdp.PrivateMultiplicativeWeights(
            r.table, DOMAIN, epsilon=500.0, max_queries=9, variant=variant, **more
        )
        return [answers.answer(query) for query in QUERIES], answers.answer_many(QUERIES)

    return run


def best(r: Records) -> Any:
    def attempt(budget: Any) -> Any:
        return 0, float(fastdp.laplace(int(r.labels.sum()), sensitivity=1, epsilon=budget.left.epsilon))

    return fastdp.best_of(attempt, 3, epsilon=1.0).score


def partitioned(r: Records) -> Any:
    with fastdp.Budget(epsilon=1.0, neighbors="replace-one") as budget:
        parts = fastdp.partition({"a": r.table[:, 0], "v": r.floats}, by="a", keys=[0, 1])
        found = [
            float(statistics.sum(part["v"], bounds=(0, 100), epsilon=0.25, neighbors="add-remove"))
            for part in parts.values()
        ]
    return found, len(budget.releases)


ERM = {"loss": losses.Logistic(x_norm=1.0), "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6}
SQUARED = {"loss": losses.SquaredError(x_norm=1.0, y_bound=1.0), "over": sets.Ball(1.0), "epsilon": 1.0}

PIPELINES: dict[str, Pipeline] = {
    "laplace": lambda r: fastdp.laplace(np.bincount(r.numbers), sensitivity=2, epsilon=0.5),
    "laplace of floats": lambda r: fastdp.laplace(r.floats / 100, sensitivity=1.0, epsilon=0.5),
    "gaussian": lambda r: fastdp.gaussian(r.points.sum(axis=0), sensitivity=2.0, rho=0.1),
    "gaussian by delta": lambda r: fastdp.gaussian(r.floats.sum(), sensitivity=100.0, epsilon=1.0, delta=1e-6),
    "exponential_mechanism": lambda r: fastdp.exponential_mechanism(
        np.bincount(r.numbers, minlength=100), sensitivity=1, epsilon=1.0
    ),
    "buckets": lambda r: fastdp.exponential_mechanism(
        np.bincount(r.numbers, minlength=5000), sensitivity=1, epsilon=1.0, size=3
    ),
    "blocks of scores": lambda r: fastdp.exponential_mechanism(
        lambda i, j: np.bincount(r.numbers, minlength=200_000)[i:j], candidates=200_000, sensitivity=1, epsilon=1.0
    ),
    "top_k": lambda r: fastdp.top_k(np.bincount(r.numbers, minlength=100), 3, sensitivity=1, epsilon=1.0),
    "permute_and_flip": lambda r: fastdp.permute_and_flip(
        np.bincount(r.numbers, minlength=100), sensitivity=1, epsilon=1.0
    ),
    "GumbelMax": gumbel,
    "AboveThreshold": tests_of_values(fastdp.AboveThreshold),
    "SparseVector": tests_of_values(fastdp.SparseVector, positives=2),
    "NumericSparse": tests_of_values(fastdp.NumericSparse, positives=2),
    "SparseVector, paid one by one": lambda r: tests_of_values(
        fastdp.SparseVector, positives=2, paid="one by one", budget=fastdp.Budget(epsilon=2.0)
    )(r),
    "median": lambda r: fastdp.median(r.numbers, domain_bits=7, epsilon=1.0),
    "quantile": lambda r: fastdp.quantile(r.numbers, 0.1, domain_bits=7, epsilon=1.0),
    "quantiles": lambda r: fastdp.quantiles(r.numbers, [0.1, 0.5], domain_bits=7, epsilon=1.0),
    "interior_point": lambda r: fastdp.interior_point(r.numbers, domain_bits=7, epsilon=1.0),
    "interior_point, prefixes": lambda r: fastdp.interior_point(
        r.numbers, domain_bits=7, epsilon=1.0, delta=1e-6, method="prefix"
    ),
    "best_of": best,
    "partition": partitioned,
    "count": lambda r: statistics.count(np.where(r.labels == 1, r.floats, np.nan), epsilon=1.0),
    "sum": lambda r: statistics.sum(r.numbers, bounds=(0, 100), epsilon=1.0),
    "mean": lambda r: statistics.mean(r.floats, bounds=(0, 100), epsilon=1.0),
    "mean of some": lambda r: statistics.mean(
        np.where(r.labels == 1, r.floats, np.nan), bounds=(0, 100), epsilon=1.0, missing="skip"
    ),
    "variance": lambda r: statistics.variance(r.floats, bounds=(0, 100), epsilon=1.0),
    "histogram": lambda r: statistics.histogram(r.floats, [0, 20, 50, 100], epsilon=1.0),
    "histogram, gaussian": lambda r: statistics.histogram(r.floats, np.arange(101), epsilon=1.0, delta=1e-6),
    "bincount": lambda r: statistics.bincount(r.labels, 2, epsilon=1.0),
    "count_by": lambda r: statistics.count_by(r.labels, epsilon=1.0, delta=1e-6),
    "sum_by": lambda r: statistics.sum_by(
        {"g": r.labels, "v": r.floats}, "g", "v", bounds=(0, 100), epsilon=1.0, delta=1e-6
    ),
    "describe": lambda r: statistics.describe(
        {"v": r.floats, "g": r.labels}, {"v": (0, 100)}, {"g": [0, 1]}, epsilon=1.0
    ),
    "vector_sum": lambda r: fastdp.vector_sum(r.points, clip=1.0, epsilon=1.0, delta=1e-6),
    "vector_mean": lambda r: fastdp.vector_mean(r.points, clip=0.5, epsilon=1.0, delta=1e-6),
    "noisy_least_squares": lambda r: fastdp.noisy_least_squares(r.points, r.labels, **SQUARED, delta=1e-6),
    "noisy_projected_gradient_descent": lambda r: fastdp.noisy_projected_gradient_descent(
        r.points, r.labels, **ERM, steps=5
    ),
    "noisy_projected_gradient_descent, in a measured metric": lambda r: fastdp.noisy_projected_gradient_descent(
        r.points, r.labels, **ERM | {"epsilon": 50.0}
    ),
    "private_erm": lambda r: fastdp.private_erm(r.points, r.labels, **ERM),
    "exponential_erm": lambda r: fastdp.exponential_erm(r.points, r.labels, **SQUARED),
    "release_marginals": lambda r: fastdp.release_marginals(
        r.table, DOMAIN, fastdp.marginals(DOMAIN, 2), epsilon=1.0, delta=1e-6
    ),
    "release_ranges": lambda r: fastdp.release_ranges(r.floats, np.linspace(0, 100, 33), epsilon=1.0),
    "release_ranges, square roots": lambda r: fastdp.release_ranges(
        r.floats, np.linspace(0, 100, 33), epsilon=1.0, delta=1e-6, method="square-root"
    ),
    "mwem": lambda r: fastdp.mwem(r.table, DOMAIN, QUERIES, epsilon=1.0, rounds=2),
    "mwem, measured": lambda r: fastdp.mwem(r.table, DOMAIN, QUERIES, epsilon=1.0, rounds=2, variant="measured"),
    "synthesize": lambda r: fastdp.synthesize(r.table, DOMAIN, epsilon=1.0, delta=1e-6),
    "ContinualCounter": counter,
    **{f"online, {variant}": online(variant) for variant in ("sharp", "lecture", "measured", "plain")},
    "learn_from_class": lambda r: fastdp.learn_from_class(r.bits.T.astype(bool), r.labels, epsilon=1.0),
    **{
        f"learn_conjunction, {method}": lambda r, method=method: fastdp.learn_conjunction(
            r.bits, r.labels, method=method, epsilon=1.0, delta=1e-6
        )
        for method in ("exhaustive", "greedy", "peel", "counts", "search")
    },
    **{
        f"learn_box, {method}": lambda r, method=method: fastdp.learn_box(
            r.numbers.reshape(-1, 1) // 8, r.labels, method=method, domain_bits=4, epsilon=1.0, delta=1e-6
        )
        for method in ("peel", "interior-point")
    },
    "learn_decision_list": lambda r: fastdp.learn_decision_list(r.bits, r.labels, rules=2, epsilon=1.0),
    "learn_tree": lambda r: fastdp.learn_tree(r.bits, r.labels, depth=2, epsilon=1.0),
    "PrivateMedian": lambda r: PrivateMedian(epsilon=1.0, bounds=(-1, 1)).fit(r.points).center_,
}


@cache
def names_that_are_charged() -> frozenset[str]:
    found = set()
    for path in ROOM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "ChargedKeys":
                given = node.args[0]
                if isinstance(given, ast.Constant):
                    found.add(str(given.value))
    return frozenset(found)
