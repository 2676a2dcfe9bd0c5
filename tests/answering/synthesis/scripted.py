"""Synthesis with outputs that are given: what then meets noise for a set of records, and what two sets differ by.

Whatever a synthesis releases is fixed beforehand, so that all that it reads of the records afterwards can be compared,
exactly, between neighbours: the privacy of a sequence of Gaussian measurements, each chosen by those before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

import numpy as np
import pytest

from fastdp import BoundedRange, Domain, GaussianDP, Randomness
from fastdp.answering.marginal_transform import as_tables
from fastdp.answering.residual_measurement import residuals_of
from fastdp.answering.synthesis import gaussian_prices, network, rounds, whole_workload
from fastdp.answering.synthesis.measuring import measure
from fastdp.answering.synthesis.synthesis_plan import SynthesisPlan, synthesis_plan
from fastdp.answering.synthesis.tree_fit import fit_tree
from fastdp.randomness.charged_keys import ChargedKeys
from fastdp.records.sources import rows_of


class Step(NamedTuple):
    """What meets noise, and its sigma in units of the grid; or scores, and what a choice multiplies them with."""

    scale: float
    values: tuple[int, ...]
    chooses: bool = False


Records = tuple[tuple[int, ...], ...]

DEFAULTS: dict[str, Any] = {
    "epsilon": 2.0, "delta": 1e-6, "workload": None, "importance": None, "impossible": None,
    "max_seconds": None, "max_bytes": None, "method": "auto",
}  # fmt: skip


def plan_of(domain: Domain, relation: Any, *, whole: bool = False, **options: Any) -> SynthesisPlan:
    """The plan; unless `whole` one that chooses its tables, though a tree could hold all of them."""
    made = synthesis_plan(domain, **{**DEFAULTS, **options}, neighbors=relation)
    return made if whole else replace(made, whole=())


_FITS: dict[Any, Any] = {}


def _fit_once(tree: Any, tables: Any, total: float, *, zeros: Any) -> Any:
    """The fit, made once for all records whose releases are the same: of these it is a function."""
    key = tree, total, tuple((each.columns, each.values.tobytes(), each.sigma) for each in tables)
    assert not zeros
    if key not in _FITS:
        _FITS[key] = fit_tree(tree, tables, total)
    return _FITS[key]


def steps_of(
    records: Records,
    plan: SynthesisPlan,
    script: int,
    patch: pytest.MonkeyPatch,
    *,
    level: float = 2.0,
    n: int | None = None,
) -> list[Step]:
    """All that meets noise, where every release has the outputs of this script.

    n  the public number of records, where it is to be another one
    """
    outputs = np.random.default_rng(script)
    steps: list[Step] = []

    def added(noise: gaussian_prices.Noise, values: Any, key: Any) -> Any:
        steps.append(Step(noise.plan.sigma, tuple(np.asarray(values).reshape(-1).tolist())))
        return level + 4 * outputs.random(np.shape(values))

    def residuals(counts: Any, tables: Any, noise: Any, key: Any, least_squares: Any) -> Any:
        of_sets = zip(noise.sigmas, as_tables(counts << noise.bits, tables), strict=True)
        for sigma, table in of_sets:  # what meets noise: the rest of a table is forgotten
            steps.append(Step(sigma, tuple(residuals_of(table[None]).reshape(-1).tolist())))
        shapes = ((shape, (len(group), *shape)) for shape, group in least_squares.subsets.items())
        return {shape: level + 4 * outputs.random(size) for shape, size in shapes}

    def chosen(scores: Any, key: Any, rate: float) -> int:
        steps.append(Step(rate, tuple(scores.tolist()), chooses=True))
        return int(outputs.integers(len(scores)))

    with patch.context() as inside:
        inside.setattr(network, "draw_one", chosen)
        inside.setattr(whole_workload, "measure_residuals", residuals)
        inside.setattr(gaussian_prices.Noise, "added", added)
        inside.setattr(rounds, "fit_tree", _fit_once)
        array = np.array(records, np.uint8).reshape(len(records), len(plan.domain))
        public = (n or len(records)) if plan.neighbors == "replace-one" else None
        with ChargedKeys("synthesize", plan.guarantee, {}, None, Randomness(seed=1)) as keys:
            measure(rows_of(array), plan, public, "raise", keys)
            keys.take()
    return steps


def price(one: list[Step], other: list[Step]) -> Fraction:
    """The square of mu by which these can be told apart; more than any budget where the releases themselves differ."""
    if [(step.scale, len(step.values)) for step in one] != [(step.scale, len(step.values)) for step in other]:
        return Fraction(10) ** 9
    return sum((_price_of(step, twin) for step, twin in zip(one, other, strict=True)), Fraction(0))


def _price_of(one: Step, other: Step) -> Fraction:
    if one.chooses:
        return Fraction(GaussianDP.of(BoundedRange(width_of(one, other))).mu) ** 2
    moved = [a - b for a, b in zip(one.values, other.values, strict=True)]
    return Fraction(sum(each * each for each in moved)) / Fraction(one.scale) ** 2


def width_of(one: Step, other: Step) -> float:
    """The range in which the logarithms of the ratios of two choices' probabilities lie."""
    moved = [a - b for a, b in zip(one.values, other.values, strict=True)]
    return float(Fraction(one.scale) * (max(moved) - min(moved)))


def all_records(sizes: tuple[int, ...], n: int) -> list[Records]:
    """All collections of n records, in whatever order."""
    return list(combinations_with_replacement(product(*map(range, sizes)), n))


def neighbours(sizes: tuple[int, ...], n: int, relation: str) -> Iterator[tuple[Records, Records]]:
    """All pairs of neighbouring collections of n records, or of n and n - 1."""
    others = all_records(sizes, n if relation == "replace-one" else n - 1)
    for one in all_records(sizes, n):
        for other in others:
            if relation == "replace-one" and one >= other:
                continue
            shared = (Counter(one) & Counter(other)).total()
            if shared == n - 1:
                yield one, other


def largest_price(
    plan: SynthesisPlan,
    n: int,
    script: int,
    patch: pytest.MonkeyPatch,
    *,
    level: float = 2.0,
    public: int | None = None,
) -> Fraction:
    """The largest price over all neighbours, under this script."""
    known: dict[Records, list[Step]] = {}

    def steps(records: Records) -> list[Step]:
        if records not in known:
            known[records] = steps_of(records, plan, script, patch, level=level, n=public)
        return known[records]

    pairs = neighbours(plan.domain.sizes, n, plan.neighbors)
    return max((price(steps(one), steps(other)) for one, other in pairs), default=Fraction(0))
