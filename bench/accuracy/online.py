"""Answers to queries as they come: conjunctions of the census, an adversary, a hundred attributes."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

import fastdp
from fastdp import Conjunction, Domain, PrivateMultiplicativeWeights, Randomness
from fastdp.answering.true_answers import TrueAnswers
from fastdp.answering.workload import Workload

from .datasets import census
from .registry import Target, at_most, task

PRICE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
QUERIES, ADAPTIVE, WORST_OF = 3000, 10_000, 50
WHOLE, FEW = 254_654, 5_000
PLAIN, SHARP, INDEPENDENT = "plain noise on each", 'variant="sharp"', "independent attributes"
Array = np.ndarray[Any, Any]


def conjunctions(domain: Domain, count: int, seed: int = 0) -> list[Conjunction]:
    """Of one to three attributes and any of their values, by chance."""
    rng, made = np.random.default_rng(seed), []
    for _ in range(count):
        chosen = rng.choice(len(domain), int(rng.integers(1, 4)), replace=False)
        made.append(Conjunction({domain.names[p]: int(rng.integers(domain.sizes[p])) for p in chosen}))
    return made


@cache
def records(n: int, seed: int) -> Array:
    """So many of the census, by chance."""
    codes, _ = census()
    return codes if n == len(codes) else codes[np.random.default_rng(seed).permutation(len(codes))[:n]]


def exact(data: Array, domain: Domain, queries: Any) -> Array:
    counts: Array = Workload(queries, domain).counts(TrueAnswers(data, domain)) / (2.0**16 * len(data))
    return counts


def online(data: Array, domain: Domain, queries: int, seed: int, **options: Any) -> PrivateMultiplicativeWeights:
    with warnings.catch_warnings():  # that plain noise has a smaller error bound
        warnings.simplefilter("ignore", fastdp.AccuracyWarning)
        return PrivateMultiplicativeWeights(
            data, domain, max_queries=queries, rng=Randomness(seed=seed), **PRICE | options
        )


@cache
def errors(n: int, seed: int, variant: str, prior: Any = None, queries: int = QUERIES) -> tuple[float, float]:
    """The largest and the mean error of random conjunctions."""
    _, domain = census()
    data, asked = records(n, seed), conjunctions(domain, queries)
    run = online(data, domain, queries, seed, variant=variant, prior=prior)
    with warnings.catch_warnings():  # that all updates are spent
        warnings.simplefilter("ignore", fastdp.AccuracyWarning)
        off = abs(run.answer_many(asked) - exact(data, domain, asked))
    return float(off.max()), float(off.mean())


def _conjunctions(seed: int, *, n: int, prior: Any, which: int) -> dict[str, float]:
    return {
        "fastdp": errors(n, seed, "measured", prior)[which],
        PLAIN: errors(n, seed, "plain")[which],
        SHARP: errors(n, seed, "sharp")[which],
    }


TARGETS: dict[tuple[int, Any], tuple[float, float]] = {
    (WHOLE, "marginals"): (0.008, 4e-4),
    (WHOLE, None): (0.03, 0.0022),
    (FEW, "marginals"): (0.03, 0.0035),
    (FEW, None): (0.18, 0.013),
}
for (_n, _prior), _limits in TARGETS.items():
    for _which, (_short, _limit) in enumerate(zip(("max", "mean"), _limits, strict=True)):
        task(
            f"online-{_n}-{'tables' if _prior else 'uniform'}-{_short}",
            f"{QUERIES:,} conjunctions, n = {_n:,}, {'tables first' if _prior else 'no prior'}, (1, 1e-6)",
            table="AER/Fertility",
            figure=f"{'largest' if _short == 'max' else 'mean'} error of an answer",
            target=at_most(_limit),
            n=_n,
            prior=_prior,
            which=_which,
        )(_conjunctions)


# --- an adversary


def attacked(run: PrivateMultiplicativeWeights, data: Array, domain: Domain, seed: int) -> tuple[float, float]:
    """Who knows the records asks, each time, the worst of so many random conjunctions for the current distribution.

    Returns the largest error of all answers, and that of those with a bound in units of their bound.
    """
    rng, pool = np.random.default_rng(seed), conjunctions(domain, 1000, seed + 1)
    true = exact(data, domain, pool)
    largest, against, seen = 0.0, 0.0, -1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.AccuracyWarning)
        for _ in range(ADAPTIVE):
            if run.updates != seen:
                gaps, seen = abs(run.synthetic.answer_many(pool) - true), run.updates
            drawn = rng.integers(len(pool), size=WORST_OF)
            i = int(drawn[gaps[drawn].argmax()])
            off = abs(run.answer(pool[i]) - true[i])
            largest = max(largest, off)
            bound = run._run.transcript[-1].bound
            against = against if bound is None else max(against, off / bound)
    return float(largest), float(against)


@cache
def _attack(seed: int, variant: str, prior: Any) -> tuple[float, float]:
    _, domain = census()
    data = records(WHOLE, seed)
    return attacked(online(data, domain, ADAPTIVE, seed, variant=variant, prior=prior), data, domain, seed)


@task(
    "online-adversary",
    f"{ADAPTIVE:,} conjunctions, each the worst of {WORST_OF} for the distribution, (1, 1e-6), by default",
    table="AER/Fertility",
    figure="largest error of an answer",
    target=at_most(1 / 3, of=SHARP),
)
def adversary(seed: int) -> dict[str, float]:
    return {"fastdp": _attack(seed, "auto", None)[0], SHARP: _attack(seed, "sharp", None)[0]}


@task(
    "online-adversary-uniform",
    "the same without a prior",
    table="AER/Fertility",
    figure="largest error of an answer",
    target=at_most(1 / 3, of=SHARP),
)
def adversary_uniform(seed: int) -> dict[str, float]:
    return {"fastdp": _attack(seed, "measured", None)[0], SHARP: _attack(seed, "sharp", None)[0]}


@task(
    "online-certificate",
    "the same adversary: the error of answers that have a bound",
    table="AER/Fertility",
    figure="largest error / its bound",
    target=Target("at most", 1.0),
)
def certificate(seed: int) -> float:
    return max(_attack(seed, "auto", None)[1], _attack(seed, "measured", None)[1])


# --- a hundred attributes


@task(
    "online-wide",
    "pairs of 100 binary attributes in groups of 5 that agree, 200,000 records made by chance, (1, 1e-6)",
    table="made by chance",
    figure="mean error of the distribution on pairs that updates have merged",
    target=at_most(0.5, of=INDEPENDENT),
)
def wide(seed: int) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    data = np.repeat(rng.random((200_000, 20)) < 0.3, 5, axis=1) ^ (rng.random((200_000, 100)) < 0.05)
    domain = Domain.binary(100)
    run = online(data, domain, 2000, seed, variant="measured", prior="marginals")
    before = run.synthetic
    asked = [Conjunction({f"v{5 * j + 1}": x, f"v{5 * j + 3}": y}) for j in range(20) for x in (0, 1) for y in (0, 1)]
    run.answer_many(asked)
    after, merged = run.synthetic, {block for block in run.synthetic.blocks if len(block) > 1}
    inside = [query for query in asked if any(set(query.allowed) <= set(block) for block in merged)]
    true = exact(data, domain, inside)
    return {
        name: float(abs(d.answer_many(inside) - true).mean()) for name, d in (("fastdp", after), (INDEPENDENT, before))
    }
