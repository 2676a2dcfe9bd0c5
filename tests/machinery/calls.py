"""Valid calls of every public function, class, method and property (surface.py finds them), small, made anew each time.

`ARGUMENTS` has a value for each parameter by its name, whatever takes it; `SPECIAL` what a function or class needs
instead; `OBJECTS` an object of each class, for its methods. A public name for which a required parameter has no value
here fails the fuzzer and a test, so that new names get an entry.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np

import fastdp
from fastdp import losses, sets

from . import surface

Call = tuple[Callable[..., Any], list[Any], dict[str, Any]]
POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)

DOMAIN = fastdp.Domain(a=2, b=["x", "y", "z"], c=4)  # 24 cells


def _above_half(cell: int) -> bool:
    return cell > 3


def _slope(score: float, label: float) -> float:
    return score - label


def _toward(w: Any, x: Any, y: float, out: Any) -> None:
    out[0] = w[0] - x[0] - y


PREDICATE, SLOPE = numba.njit(_above_half), numba.njit(_slope)


class Scene:
    """What the arguments of one call have in common: one number of records, of columns, one domain."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.n, self.d = int(rng.integers(8, 20)), int(rng.integers(1, 4))

    def numbers(self) -> Any:
        return self.rng.integers(-50, 50, self.n).astype(self.rng.choice(["i8", "f8"]))

    def points(self) -> Any:
        return self.rng.uniform(-0.5, 0.5, (self.n, self.d))

    def labels(self) -> Any:
        return self.rng.integers(2, size=self.n)

    def table(self, n: int | None = None) -> dict[str, Any]:
        n, rng = n or self.n, self.rng
        return {"a": rng.integers(2, size=n), "b": rng.choice(["x", "y", "z"], n), "c": rng.integers(4, size=n)}


ARGUMENTS: dict[str, Callable[[Scene], Any]] = {
    "X": Scene.points,
    "y": Scene.labels,
    "data": Scene.table,
    "values": Scene.numbers,
    "scores": Scene.numbers,
    "predictions": lambda s: s.rng.random((3, s.n)) < 0.5,
    "domain": lambda s: DOMAIN,
    "queries": lambda s: [fastdp.Conjunction({"a": 1}), fastdp.Range("c", 0, 2)],
    "query": lambda s: fastdp.Conjunction({"a": 1}),
    "workload": lambda s: fastdp.marginals(DOMAIN, 1),
    "importance": lambda s: [1.0, 2.0, 0.5],
    "impossible": lambda s: [fastdp.Conjunction({"a": 1, "c": 2})],
    "max_seconds": lambda s: 1.0,
    "max_bytes": lambda s: 2**24,
    "names": lambda s: ["a", "c"],
    "edges": lambda s: [-51, -7, 3, 51],
    "bins": lambda s: 4,
    "code": lambda s: 1,
    "share": lambda s: 0.5,
    "allowed": lambda s: {"a": 1},
    "attributes": lambda s: {"a": 3, "b": ["x", "y"]},
    "attribute": lambda s: "c",
    "low": lambda s: 0,
    "high": lambda s: 2,
    "cells": lambda s: s.rng.random(24) < 0.5,
    "weights": lambda s: np.full(24, 1 / 24),
    "function": lambda s: PREDICATE,
    "derivative": lambda s: SLOPE,
    "classes": lambda s: 2,
    "dimension": lambda s: 1,
    "epsilon": lambda s: 1.0,
    "delta": lambda s: 1e-6,
    "rho": lambda s: 0.1,
    "eta": lambda s: 0.5,
    "alpha": lambda s: 0.2,
    "beta": lambda s: 0.05,
    "error": lambda s: 0.25,
    "failure": lambda s: 1e-4,
    "sample_error": lambda s: 0.1,
    "excess": lambda s: 0.25,
    "sensitivity": lambda s: 1.0,
    "threshold": lambda s: 5,
    "scale": lambda s: 2.0,
    "sigma": lambda s: 2.0,
    "mu": lambda s: 0.5,
    "rate": lambda s: 0.1,
    "sampling": lambda s: "fixed-size",
    "curve": lambda s: {2.0: 0.1, 10.0: 0.5},
    "guarantee": lambda s: fastdp.PureDP(0.1),
    "guarantees": lambda s: [fastdp.PureDP(0.1), (fastdp.ZCDP(0.1), 3)],
    "parts": lambda s: [fastdp.PureDP(1.0), fastdp.ZCDP(0.1)],
    "whole": lambda s: fastdp.PureDP(1.0),
    "kind": lambda s: fastdp.PureDP,
    "other": lambda s: fastdp.PureDP(2.0),
    "base": lambda s: fastdp.privacy.Gaussian(0.5),
    "profile": lambda s: fastdp.privacy.Laplace(0.1),
    "one_signed": lambda s: True,
    "neighbors": lambda s: "replace-one",
    "n": lambda s: 1000,
    "d": lambda s: 3,
    "k": lambda s: 1,
    "q": lambda s: 0.25,
    "qs": lambda s: [0.25, 0.5],
    "count": lambda s: 3,
    "size": lambda s: 2,
    "rounds": lambda s: 2,
    "steps": lambda s: 2,
    "queries_count": lambda s: 5,
    "max_queries": lambda s: 3,
    "candidates": lambda s: 10,
    "positives": lambda s: 3,
    "domain_bits": lambda s: 16,
    "first_index": lambda s: 0,
    "position": lambda s: 0,
    "codes": lambda s: np.array([0, 1, 1], np.uint8),
    "columns": lambda s: [np.array([0, 1]), np.array([2, 0]), np.array([3, 1])],
    "column": lambda s: 0,
    "name": lambda s: "a",
    "value": lambda s: 1,
    "which": lambda s: 0,
    "labels": lambda s: np.ones(5, int),
    "clip": lambda s: 1.0,
    "loss": lambda s: losses.SquaredError(x_norm=1.0, y_bound=1.0),
    "over": lambda s: sets.Ball(1.0),
    "start": lambda s: np.zeros(s.d),
    "at": lambda s: 0.5,
    "radius": lambda s: 1.0,
    "lipschitz": lambda s: 1.0,
    "smoothness": lambda s: 1.0,
    "total": lambda s: 1.0,
    "center": lambda s: np.zeros(2),
    "diameter": lambda s: 2.0,
    "lower": lambda s: [0.0, 0.0],
    "upper": lambda s: [1.0, 1.0],
    "lam": lambda s: 0.1,
    "l2": lambda s: losses.L2(0.1),
    "w": lambda s: np.zeros(s.d),
    "point": lambda s: np.zeros(2),
    "spacing": lambda s: 0.5,
    "width": lambda s: 0.5,
    "largest": lambda s: 1.0,
    "score": lambda s: np.zeros(3),
    "on_records": lambda s: 0.1,
    "vc_dimension": lambda s: None,
    "realizable": lambda s: False,
    "label": lambda s: np.ones(3),
    "h": lambda s: lambda X: np.ones(len(X), bool),
    "more": lambda s: {"c": 4},
    "named": lambda s: {},
    "sets": lambda s: 1,
    "T": lambda s: "i64" if _opendp() else "",
    "input_metric": lambda s: _opendp().l1_distance(T="i64"),
    "input_domain": lambda s: _opendp().vector_domain(_opendp().atom_domain(T="i64")),
    "forms": lambda s: fastdp.PureDP(1.0).forms(),
    "releases": lambda s: PLANNED,
    "run": lambda s: lambda budget: (1, 2.0),
    "stored": lambda s: fastdp.privacy.as_json(fastdp.PureDP(0.1)),
    "x": lambda s: 1.0,
    "by": lambda s: "a",
    "keys": lambda s: [0, 1],
    "unit": lambda s: "a",
    "at_most": lambda s: 2,
    "bounds": lambda s: (-60, 60),
}
"""A valid value of each parameter."""


PLANNED = [{"mechanism": "laplace", "sensitivity": 1, "error": 10.0}]


def _url() -> str:
    return f"sqlite:///{tempfile.mkdtemp()}/budget.db"


def _stored() -> str:
    url = _url()
    fastdp.Budget.open(url, epsilon=1.0)
    return url


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")
    return dp


class _Named(dict):  # type: ignore[type-arg]
    """Arguments of a call by the names of parameters, instead of those of ARGUMENTS and of the defaults."""

    def __init__(self, **makers: Any) -> None:
        super().__init__({k: v if callable(v) else (lambda s, v=v: v) for k, v in makers.items()})


_SYNTHETIC = _Named(delta=0.0, beta=0.05)
SPECIAL: dict[str, _Named] = {
    "gaussian": _Named(epsilon=1.0, delta=1e-6),
    "Budget": _Named(epsilon=1.0, delta=1e-6, rho=None, mu=None),
    "Budget.open": _Named(url=lambda s: _url(), name="a", epsilon=1.0, delta=1e-6, rho=None, mu=None),
    "bounds.best_of": _Named(share=0.5),
    "bounds.best_of_k": _Named(share=0.5, beta=0.5),
    "Plan": _Named(rows=lambda s: list(fastdp.plan_releases(PLANNED)), total=lambda s: fastdp.PureDP(1.0), factor=1.0),
    "PlannedRelease": _Named(
        label="a",
        mechanism="laplace",
        price="epsilon",
        value=1.0,
        asked=1.0,
        error=1.0,
        times=1,
        guarantee=lambda s: fastdp.PureDP(1.0),
    ),
    "Budget.stored": _Named(url=lambda s: _stored()),
    "Renyi.discrete_laplace": _Named(sensitivity=1),
    "Linear": _Named(values=lambda s: s.rng.random(24)),
    "Scaled": _Named(attribute="a", low=0.0, high=2.0),
    "Combination": _Named(queries=lambda s: [fastdp.Conjunction({"a": 1})], weights=None, constant=0.0),
    "PrivateMultiplicativeWeights.average": _Named(attribute="a", low=0.0, high=2.0),
    "AboveThreshold.above": _Named(value=3),
    "AboveThreshold.first_above": _Named(values=lambda s: s.rng.integers(-50, 50, s.n)),
    "ContinualCounter.add_many": _Named(values=lambda s: s.rng.random(3)),
    "SparseVector.above": _Named(value=3),
    "SparseVector.places_above": _Named(values=lambda s: s.rng.integers(-50, 50, s.n)),
    "NumericSparse.answer": _Named(value=3),
    "NumericSparse.answer_many": _Named(values=lambda s: s.rng.integers(-50, 50, s.n)),
    "GumbelMax.merge": _Named(other=lambda s: None),
    "Domain.encode_column": _Named(values=[0, 1]),
    "Domain.__getitem__": _Named(),
    "SyntheticDistribution": _Named(domain=lambda s: DOMAIN),
    "SyntheticDistribution.sample": _Named(n=5),
    "SyntheticDistribution.to_frame": _Named(n=5),
    "answering.FittedDistribution.sample": _Named(n=5),
    "answering.FittedDistribution.to_frame": _Named(n=5),
    "PrivateMultiplicativeWeights": _Named(data=lambda s: RECORDS, delta=1e-6, max_queries=3),
    "mwem": _Named(rounds=1),
    "pack": _Named(data=lambda s: np.eye(5, 3, dtype=bool)),
    "ContinualCounter": _Named(rho=0.5, length=8),
    "bounds.histogram": _Named(bins=20),
    "bounds.histogram_epsilon": _Named(bins=20),
    "bounds.continual_counter": _Named(rho=0.5, length=8),
    "bounds.quantiles_epsilon": _Named(error=100.0),
    "Partition": _Named(by="a", parts=lambda s: {0: fastdp.partition(RECORDS, by="a", keys=[0])[0]}),
    "audit.replay": _Named(run=lambda s: _released, data=1, neighbor=2),
    "audit.lower_bound": _Named(run=lambda s: _released, data=1, neighbor=2, runs=64),
    "statistics.histogram": _Named(bins=lambda s: [-51, -7, 3, 51]),
    "statistics.bincount": _Named(values=lambda s: s.rng.integers(2, size=s.n), size=2),
    "statistics.count_by": _Named(by="a", delta=1e-6),
    "statistics.sum_by": _Named(by="b", column="a", bounds=(0.0, 3.0), delta=1e-6),
    "statistics.describe": _Named(
        data=lambda s: {"a": s.rng.integers(9, size=s.n), "b": s.rng.choice(["x", "y"], s.n)},
        bounds=lambda s: {"a": (0, 9)},
        categories=lambda s: {"b": ["x", "y"]},
        qs=[0.5],
    ),
    "statistics.variance": _Named(values=lambda s: s.rng.uniform(-50, 50, s.n)),
    "learn_tree": _Named(X=lambda s: s.points() > 0),
    "learning.LearnedTree.predict": _Named(X=lambda s: s.points() > 0),
    "learning.LearnedTree.error": _Named(X=lambda s: s.points() > 0),
    "bounds.learn_box_n": _Named(d=2),
    "bounds.learn_box_epsilon": _Named(d=2),
    "learn_decision_list": _Named(X=lambda s: s.points() > 0),
    "learning.LearnedDecisionList.predict": _Named(X=lambda s: s.points() > 0),
    "learning.LearnedDecisionList.error": _Named(X=lambda s: s.points() > 0),
    "learn_conjunction": _Named(X=lambda s: s.points() > 0, k=1, epsilon=1.0, delta=1e-6),
    "learn_box": _Named(delta=1e-6),
    "bounds.population_error": _Named(candidates=10),
    "bounds.population_error_n": _Named(candidates=10),
    "interior_point": _Named(delta=0.0, values=lambda s: s.rng.integers(-50, 50, s.n)),
    "exponential_erm": _Named(resolution=None),
    "losses.Gradient": _Named(function=lambda s: _toward, labels=True, value=None),
    **{
        f"losses.Softmax.{name}": _Named(w=lambda s: np.zeros(2 * s.d))  # a row for each class
        for name in ("coefficients", "probabilities", "values", "gradients", "smooth_gradient")
    },
    "noisy_projected_gradient_descent": _Named(delta=1e-6, steps=2),
    "projected_gradient_descent": _Named(steps=2),
    "noisy_least_squares": _Named(delta=1e-6),
    "private_erm": _Named(delta=1e-6),
    "vector_sum": _Named(delta=1e-6),
    "bounds.above_threshold": _Named(queries=5),
    "bounds.above_threshold_epsilon": _Named(queries=5),
    "bounds.sparse_vector": _Named(queries=5),
    "bounds.sparse_vector_epsilon": _Named(queries=5),
    "bounds.numeric_sparse": _Named(queries=5),
    "bounds.numeric_sparse_epsilon": _Named(queries=5),
    "bounds.projected_gradient_descent_steps": _Named(lipschitz=1.0),
    "bounds.projected_gradient_descent": _Named(lipschitz=1.0),
    "bounds.gaussian": _Named(rho=0.1),
    "learning.Chosen.predict": _Named(X=lambda s: np.ones((4, 3))),
    "answering.MarginalsRelease.table": _Named(names=["a"]),
    "answering.MarginalsRelease.to_frame": _Named(names=["a"]),
    "statistics.LabelCounts.dp_event": _Named(leak=1e-6),
    "statistics.LabelSums.dp_event": _Named(leak=1e-6),
    "answering.SynthesisReport.table": _Named(names=["a"]),
    "records.PackedRows.select": _Named(columns=[0]),
    "compose": _Named(delta=1e-6),
    "bounds.private_multiplicative_weights": _Named(n=10**6),
    "connect.dp_accounting.composed": _Named(guarantees=lambda s: [fastdp.PureDP(0.1), fastdp.ZCDP(0.1)]),
    **{
        f"connect.opendp.make_{name}": _Named(input_metric=lambda s: _opendp().linf_distance(T="i64"))
        for name in ("exponential_mechanism", "permute_and_flip")
    },
    "connect.opendp.make_gaussian": _Named(input_metric=lambda s: _opendp().l2_distance(T="i64")),
    "privacy.parallel": _Named(parts=lambda s: [fastdp.PureDP(0.1, neighbors="add-remove")]),
    "privacy.discrete_laplace_curve": _Named(sensitivity=1),
    "privacy.epsilon_of_curve": _Named(curve=lambda s: tuple(0.1 * a for a in fastdp.privacy.ORDERS)),
}

RECORDS = Scene(np.random.default_rng(1)).table(5_000)  # the fewest that multiplicative weights take with an alpha


def _fitted(kind: str) -> Any:
    """An estimator, fitted to a few records."""
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 1, (60, 2))
    made = getattr(surface.module_of("fastdp.sklearn"), kind)
    parameters = inspect.signature(made).parameters
    options = {"epsilon": 50.0, "random_state": 1} | ({"bounds": (0, 1)} if "bounds" in parameters else {})
    options |= {"y_bounds": (0, 1)} if "y_bounds" in parameters else {}
    options |= {"thresholds": [0.5]} if "thresholds" in parameters else {}
    options |= {name: value for name, value in _searched().items() if name in parameters}
    return made(**options).fit(X, (X[:, 0] > 0.5).astype(int))


def _searched() -> dict[str, Any]:
    """What a search is over."""
    box = surface.module_of("fastdp.sklearn").BoxClassifier
    return {"estimator": box(bounds=(0, 1)), "param_grid": {"method": ["auto", "peel"]}, "k": 3}


def _learned(name: str, **options: Any) -> Any:
    rng = np.random.default_rng(2)
    X = rng.uniform(0, 1, (200, 3))
    y = (X[:, 0] > 0.5).astype(int)
    first = (
        (X > 0.5).T
        if name == "learn_from_class"
        else X > 0.5
        if name in ("learn_conjunction", "learn_tree", "learn_decision_list")
        else X
    )
    return getattr(fastdp, name)(first, y, epsilon=5.0, rng=fastdp.Randomness(1), **options)


def _minimum(name: str, **options: Any) -> Any:
    X = np.random.default_rng(2).uniform(-0.5, 0.5, (200, 2))
    options |= {"epsilon": 1.0, "over": sets.Ball(1.0), "rng": fastdp.Randomness(1)}
    return getattr(fastdp, name)(X, (X[:, 0] > 0).astype(float), **{"loss": ARGUMENTS["loss"](None), **options})  # type: ignore[arg-type]


def _multiplicative_weights() -> Any:
    return fastdp.PrivateMultiplicativeWeights(RECORDS, DOMAIN, epsilon=1.0, delta=1e-6, max_queries=5)


def _spent() -> Any:
    budget = fastdp.Budget(epsilon=9.0, delta=1e-3)
    fastdp.laplace(3, sensitivity=1, epsilon=1.0, budget=budget)
    return budget


def _gumbel() -> Any:
    return fastdp.GumbelMax(sensitivity=1, epsilon=1.0)


_CHANGES: dict[str, Callable[[], Any]] = {  # made anew for each call
    "AboveThreshold": lambda: fastdp.AboveThreshold(5, sensitivity=1.0, epsilon=1.0),
    "ContinualCounter": lambda: fastdp.ContinualCounter(rho=0.5, length=8),
    "SparseVector": lambda: fastdp.SparseVector(5, sensitivity=1.0, epsilon=1.0, positives=3),
    "NumericSparse": lambda: fastdp.NumericSparse(5, sensitivity=1, epsilon=1, positives=3, rng=fastdp.Randomness(5)),
    "GumbelMax": _gumbel,
    "Budget": _spent,
    "PrivateMultiplicativeWeights": _multiplicative_weights,
    "Randomness": fastdp.Randomness,
}


def _released(value: Any) -> Any:
    return fastdp.laplace(3, sensitivity=1, epsilon=1.0)


_STAYS: dict[str, Callable[[], Any]] = {  # frozen, so made once
    "PureDP": lambda: fastdp.PureDP(1.0),
    "ApproxDP": lambda: fastdp.ApproxDP(1.0, 1e-6),
    "ZCDP": lambda: fastdp.ZCDP(0.1),
    "GaussianDP": lambda: fastdp.GaussianDP(0.5),
    "BoundedRange": lambda: fastdp.BoundedRange(0.5),
    "Renyi": lambda: fastdp.Renyi.gaussian(2.0),
    "AllOf": lambda: fastdp.PureDP(1.0) & fastdp.ZCDP(0.1),
    "Plan": lambda: fastdp.plan_releases(PLANNED),
    "PlannedRelease": lambda: fastdp.plan_releases(PLANNED)[0],
    "BestRun": lambda: fastdp.best_of(lambda budget: (1, 2.0), 2, epsilon=1.0),
    "statistics.Number": lambda: fastdp.statistics.count(np.zeros(9), epsilon=1.0),
    "statistics.LabelCounts": lambda: fastdp.statistics.count_by(np.zeros(99), epsilon=1.0, delta=1e-6),
    "statistics.LabelSums": lambda: fastdp.statistics.sum_by(
        {"a": np.zeros(99), "b": np.ones(99)}, "b", "a", bounds=(0, 1), epsilon=1.0, delta=1e-6
    ),
    "statistics.ColumnSummary": lambda: fastdp.statistics.describe(
        {"a": np.arange(9)}, {"a": (0, 9)}, epsilon=1.0
    )["a"],
    "statistics.Description": lambda: fastdp.statistics.describe(
        np.array([[0, 1], [1, 0]] * 9), {0: (0, 1)}, {1: [0, 1]}, epsilon=1.0
    ),
    "statistics.Counts": lambda: fastdp.statistics.histogram(np.zeros(9), [-1.0, 0.0, 1.0], epsilon=1.0),
    "audit.Finding": lambda: fastdp.audit.Finding("order", 1, "laplace", "a key is taken"),
    "audit.ReplayedRead": lambda: fastdp.audit.ReplayedRead(1, "laplace", "L1", 1.0, 1.0, "epsilon 1"),
    "audit.Replay": lambda: fastdp.audit.replay(_released, 1, 2),
    "audit.LowerBound": lambda: fastdp.audit.lower_bound(_released, 1, 2, runs=64, claimed=fastdp.PureDP(1.0)),
    "Partition": lambda: fastdp.partition(RECORDS, by="a", keys=[0, 1]),
    "Domain": lambda: DOMAIN,
    "Bins": lambda: fastdp.Bins([0.0, 1.0, 2.0], missing=True),
    "Conjunction": lambda: fastdp.Conjunction({"a": 1}),
    "Product": lambda: fastdp.Product({"a": [0, 1], "b": "x"}),
    "Range": lambda: fastdp.Range("c", 0, 2),
    "Mask": lambda: fastdp.Mask(np.arange(24) < 9),
    "Linear": lambda: fastdp.Linear(np.linspace(0, 1, 24)),
    "Scaled": lambda: fastdp.Scaled("a", 0, 2),
    "Combination": lambda: fastdp.Combination([fastdp.Conjunction({"a": 1})], [-1], constant=1),
    "Predicate": lambda: fastdp.Predicate(PREDICATE),
    "SyntheticDistribution": lambda: fastdp.SyntheticDistribution(np.full(24, 1 / 24), DOMAIN),
    "answering.FittedDistribution": lambda: fastdp.mwem(
        RECORDS, DOMAIN, fastdp.marginals(DOMAIN, 1), epsilon=1.0, rounds=1, rng=fastdp.Randomness(1)
    ),
    "answering.MarginalsRelease": lambda: fastdp.release_marginals(
        RECORDS, DOMAIN, fastdp.marginals(DOMAIN, 1), epsilon=1.0, delta=1e-6, rng=fastdp.Randomness(1)
    ),
    "answering.SynthesizedDistribution": lambda: fastdp.synthesize(
        RECORDS, DOMAIN, epsilon=1.0, delta=1e-6, rng=fastdp.Randomness(1)
    ),
    "answering.SynthesisEstimate": lambda: fastdp.plan_synthesis(1000, DOMAIN, epsilon=1.0, delta=1e-6),
    "answering.SynthesisReport": lambda: fastdp.synthesize(
        RECORDS, DOMAIN, epsilon=1.0, delta=1e-6, rng=fastdp.Randomness(1)
    ).report,
    "answering.MeasuredTable": lambda: fastdp.synthesize(
        RECORDS, DOMAIN, epsilon=1.0, delta=1e-6, rng=fastdp.Randomness(1)
    ).report.tables[0],
    "answering.RangesRelease": lambda: fastdp.release_ranges(
        np.arange(50.0), [0.0, 9.0, 20.0, 49.0], epsilon=1.0, rng=fastdp.Randomness(1)
    ),
    "answering.Ratio": lambda: fastdp.answering.Ratio(0.5, 0.1),
    "answering.Answer": lambda: _multiplicative_weights().answer(fastdp.Conjunction({"a": 1})),
    "answering.Estimate": lambda: fastdp.bounds.mwem(10**4, DOMAIN, fastdp.marginals(DOMAIN, 1), epsilon=1.0),
    "answering.Marginals": lambda: fastdp.marginals(DOMAIN, 1),
    "learning.Chosen": lambda: _learned("learn_from_class"),
    "learning.LearnedBox": lambda: _learned("learn_box", delta=1e-6),
    "learning.LearnedDecisionList": lambda: _learned("learn_decision_list"),
    "learning.Rule": lambda: fastdp.learning.Rule(0, True, True, 1, 2),
    "learning.LearnedTree": lambda: _learned("learn_tree"),
    "learning.Leaf": lambda: fastdp.learning.Leaf(True, 1, 2),
    "learning.Question": lambda: fastdp.learning.Question(0, None, *2 * [fastdp.learning.Leaf(True, 1, 2)]),
    "learning.LearnedConjunction": lambda: _learned("learn_conjunction", delta=1e-6),
    "optimizing.Descent": lambda: fastdp.projected_gradient_descent(
        np.zeros((4, 2)), np.zeros(4), loss=losses.SquaredError(x_norm=1.0, y_bound=1.0), over=sets.Ball(1.0), steps=2
    ),
    "optimizing.ExcessBounds": lambda: fastdp.bounds.private_erm(
        1000, 3, loss=losses.SquaredError(x_norm=1.0, y_bound=1.0), over=sets.Ball(1.0), epsilon=1.0
    ),
    "optimizing.LeastSquares": lambda: _minimum("noisy_least_squares", delta=1e-6),
    "optimizing.PrivateChoice": lambda: _minimum("exponential_erm"),
    "optimizing.PrivateDescent": lambda: _minimum("noisy_projected_gradient_descent", delta=1e-6),
    "optimizing.PrivateMinimum": lambda: _minimum("private_erm", delta=1e-6),
    "optimizing.VectorRelease": lambda: fastdp.vector_mean(np.zeros((9, 2)), clip=1.0, epsilon=1.0),
    "privacy.Laplace": lambda: fastdp.privacy.Laplace(0.5),
    "privacy.Gaussian": lambda: fastdp.privacy.Gaussian(0.5),
    "privacy.Exponential": lambda: fastdp.privacy.Exponential(0.5),
    "privacy.DiscreteLaplace": lambda: fastdp.privacy.DiscreteLaplace(2.0),
    "privacy.DiscreteGaussian": lambda: fastdp.privacy.DiscreteGaussian(2.0),
    "privacy.PoissonSubsampled": lambda: fastdp.privacy.PoissonSubsampled(fastdp.privacy.Gaussian(0.5), 0.1),
    "privacy.FixedSizeSubsampled": lambda: fastdp.privacy.FixedSizeSubsampled(fastdp.privacy.Gaussian(0.5), 0.1),
    "privacy.RandomizedResponse": lambda: fastdp.privacy.RandomizedResponse(0.5),
    "privacy.Release": lambda: _spent().releases[0],
    "privacy.Releases": lambda: _spent().releases,
    "privacy.Removal": lambda: fastdp.removal(1.0, one_signed=True),
    "records.PackedRows": lambda: fastdp.pack(np.eye(5, 3, dtype=bool)),
    "records.Subset": lambda: fastdp.partition(RECORDS, by="a", keys=[0])[0],
    **{f"losses.{name}": (lambda name=name: getattr(losses, name)(x_norm=1.0)) for name in (
        "AbsoluteDeviation", "Hinge", "Huber", "Logistic", "SquaredDistance"
    )},
    "losses.SquaredError": lambda: losses.SquaredError(x_norm=1.0, y_bound=1.0),
    "losses.Custom": lambda: losses.Custom(
        SLOPE, lambda score, label: (score - label) ** 2 / 2, slope_bound=2.0, curvature=1.0, x_norm=1.0, y_bound=1.0
    ),
    "losses.Softmax": lambda: losses.Softmax(2, x_norm=1.0),
    "losses.Gradient": lambda: losses.Gradient(
        _toward, 1, value=lambda w, X, y: (X[:, 0] + y - w[0]) ** 2 / 2, lipschitz=2.0, curvature=1.0, convex=True
    ),
    "losses.L1": lambda: losses.L1(0.1),
    "losses.L2": lambda: losses.L2(0.1),
    "losses.Regularised": lambda: losses.Hinge(x_norm=1.0) + losses.L2(0.1),
    "sets.Ball": lambda: sets.Ball(1.0, center=np.zeros(2)),
    "sets.Box": lambda: sets.Box([0.0, 0.0], [1.0, 1.0]),
    "sets.Simplex": lambda: sets.Simplex(dimension=2),
    "sets.Projected": lambda: sets.Projected(lambda w: np.clip(w, -1, 1), diameter=4.0, center=np.zeros(2)),
}  # fmt: skip


@cache
def _once(name: str) -> Any:
    return _STAYS[name]() if name in _STAYS else _fitted(name.removeprefix("sklearn."))


def object_of(name: str) -> Any:
    """An object of this public class; KeyError where there is no entry for it."""
    return _CHANGES[name]() if name in _CHANGES else _once(name)


def _value(owner: str, parameter: inspect.Parameter, scene: Scene) -> Any:
    special = SPECIAL.get(owner, {})
    if parameter.name in special:
        return special[parameter.name](scene)
    if parameter.default is not inspect.Parameter.empty and parameter.name != "y":
        return parameter.default
    return ARGUMENTS[parameter.name](scene)


def _call(name: str, scene: Scene, function: Callable[..., Any]) -> Call:
    """A valid call of this; `budget` and `rng` are left to the caller."""
    arguments: list[Any] = []
    keywords: dict[str, Any] = {}
    for each in inspect.signature(function).parameters.values():
        if each.name in ("budget", "rng"):
            continue
        if each.kind is inspect.Parameter.VAR_KEYWORD:
            keywords |= ARGUMENTS[each.name](scene)
        elif each.kind is inspect.Parameter.VAR_POSITIONAL:
            arguments += _value(name, each, scene)
        elif each.kind in POSITIONAL:
            arguments.append(ARGUMENTS[each.name](scene))
        else:
            keywords[each.name] = _value(name, each, scene)
    return function, arguments, keywords


def _read(name: str) -> Callable[[np.random.Generator], Call]:
    """All properties of an object, and its text."""

    def read() -> None:
        thing = object_of(name)
        for each in surface.properties(type(thing)):
            try:
                getattr(thing, each)
            except (AttributeError, NotImplementedError):  # it has none
                continue
        repr(thing)

    return lambda rng: (read, [], {})


def _method(name: str, owner: str, attribute: str) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        thing = object_of(owner)
        scene = Scene(rng)
        if attribute in surface.OPERATORS:
            others: list[Any] = [] if attribute in ("__len__", "__hash__", "__repr__", "_repr_html_") else [0]
            return getattr(thing, attribute), [fastdp.PureDP(1.0)] if attribute == "__and__" else others, {}
        function = getattr(thing, attribute)
        if name == "GumbelMax.merge":
            return function, [], {"other": thing.shard()}
        scene.d = 3 if owner.startswith("learning.") else 2
        function, arguments, keywords = _call(name, scene, function)
        if owner.startswith(("sklearn.", "learning.LearnedConjunction")) and "X" in keywords:
            keywords["X"] = (keywords["X"] > 0).astype(float)
        changes = {"over": sets.Ball(1.0, center=np.zeros(2)), "columns": np.zeros((2, 3)), "d": 2}
        keywords |= {key: value for key, value in changes.items() if key in keywords and surface.is_seam(name)}
        return function, arguments, keywords

    return make


def _function(name: str, thing: Any) -> Callable[[np.random.Generator], Call]:
    return lambda rng: _call(name, Scene(rng), thing)


def _estimator(name: str, kind: Any) -> Callable[[np.random.Generator], Call]:
    """An estimator is made and fitted in one call, as its parameters are checked when it is fitted."""

    def fit(**parameters: Any) -> Any:
        X, y = parameters.pop("X"), parameters.pop("y")
        return kind(**parameters).fit(X, y)

    def make(rng: np.random.Generator) -> Call:
        _, arguments, keywords = _call(name, Scene(rng), kind)
        X = rng.uniform(0, 1, (60, 2))
        known = {"bounds": (0, 1), "y_bounds": (0, 1), "thresholds": [0.5], "random_state": 1} | _searched()
        keywords |= {key: value for key, value in known.items() if key in keywords}
        return fit, arguments, {**keywords, "X": X, "y": (X[:, 0] > 0.5).astype(int)}

    return make


@cache
def _calls() -> dict[str, Callable[[np.random.Generator], Call]]:
    made: dict[str, Callable[[np.random.Generator], Call]] = {}
    for name, thing in surface.things().items():
        if name.startswith("sklearn."):
            made[name] = _estimator(name, thing)
        elif not surface.left_out(name):
            made[name] = _function(name, thing)
            if inspect.isclass(thing) and (name in _STAYS or name in _CHANGES):
                made[f"{name} properties"] = _read(name)
                if not name.startswith(MADE_BY_USERS):
                    del made[name]
    for name, (owner, attribute) in surface.members().items():
        made[name] = _method(name, owner, attribute)
    return made


MADE_BY_USERS = tuple(
    [name for name in fastdp.__all__ if name[0] != "_"]
    + ["losses.", "sets.", *(f"privacy.{name}" for name in surface.PROFILES)]
)
"""Classes whose constructors users call; others are results."""

CALLS = _calls()
CHARGED = {
    name
    for name, thing in surface.things().items()
    if {"budget", "rng"} <= set(inspect.signature(thing).parameters) and not name.startswith("connect.")
}
"""Functions that take budget= and rng=."""

_NEITHER_RHO_NOR_EPSILON = {"statistics.count_by", "statistics.sum_by"}


def large_budget(name: str) -> fastdp.Budget:
    """A budget that takes what this call charges: "best" adds up rhos and epsilons, "basic" epsilons with deltas."""
    return fastdp.Budget(epsilon=1e6, delta=0.5, theorem="basic" if name in _NEITHER_RHO_NOR_EPSILON else "best")
