"""Valid calls of every public function and object, small, with what a fuzzer may put in each place.

`CALLS` maps a name to a function that makes (callable, positional arguments, keyword arguments) anew. `HOSTILE` makes
values that no parameter takes, or that only some take: what the fuzzer puts in place of an argument.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fastdp
from fastdp import losses, sets

Call = tuple[Callable[..., Any], list[Any], dict[str, Any]]


def _numbers(rng: np.random.Generator) -> Any:
    return rng.integers(-50, 50, rng.integers(1, 12))


def _table(rng: np.random.Generator, most: int = 20) -> tuple[dict[str, Any], Any]:
    n = int(rng.integers(most // 2, most))
    domain = fastdp.Domain(a=2, b=["x", "y", "z"], c=4)
    return {"a": rng.integers(2, size=n), "b": rng.choice(["x", "y", "z"], n), "c": rng.integers(4, size=n)}, domain


def _points(rng: np.random.Generator) -> tuple[Any, Any]:
    n, d = int(rng.integers(2, 12)), int(rng.integers(1, 4))
    X = rng.uniform(-0.5, 0.5, (n, d))
    return X, rng.integers(2, size=n)


def _noise(name: str) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        values = _numbers(rng) if rng.random() < 0.5 else _numbers(rng).astype(float)
        price = {"epsilon": 1.0} if name == "laplace" else {"epsilon": 1.0, "delta": 1e-6}
        return getattr(fastdp, name), [values], {"sensitivity": 1.0, "resolution": None, "out": None, **price}

    return make


def _selection(name: str) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        keywords: dict[str, Any] = {"sensitivity": 1.0, "epsilon": 1.0, "monotonic": False}
        if name == "top_k":
            keywords |= {"k": 1, "delta": 0.0, "candidates": None, "progress": None}
        if name == "exponential_mechanism":
            keywords |= {"delta": 0.0, "method": "auto", "size": None, "candidates": None, "progress": None}
        return getattr(fastdp, name), [_numbers(rng).astype(rng.choice(["i8", "f8"]))], keywords

    return make


def _rank(name: str) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        keywords: dict[str, Any] = {"epsilon": 1.0, "domain_bits": None, "signed": None, "outside": "raise"}
        if name == "quantile":
            keywords["q"] = 0.25
        if name == "interior_point":
            keywords |= {"delta": 0.0, "method": "exponential", "beta": 0.05}
        return getattr(fastdp, name), [_numbers(rng)], keywords

    return make


def _tables(name: str) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        data, domain = _table(rng, 5_000 if name == "PrivateMultiplicativeWeights" else 20)
        keywords: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "outside": "raise", "progress": None}
        if name == "PrivateMultiplicativeWeights":
            keywords |= {"max_queries": 3, "alpha": None, "beta": 0.05, "variant": "sharp", "weights": "auto"}
            return fastdp.PrivateMultiplicativeWeights, [data, domain], keywords
        if name == "mwem":
            keywords |= {"rounds": 1, "variant": None, "beta": 0.05, "records": None}
            return fastdp.mwem, [data, domain, fastdp.marginals(domain, 1)], keywords
        return fastdp.release_marginals, [data, domain, fastdp.marginals(domain, 1)], {**keywords, "fit": None}

    return make


def _erm(name: str) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        X, y = _points(rng)
        loss: Any = losses.SquaredError(x_norm=1.0, y_bound=1.0)
        keywords: dict[str, Any] = {"loss": loss, "over": sets.Ball(1.0), "outside": "raise", "progress": None}
        if name == "projected_gradient_descent":
            return fastdp.projected_gradient_descent, [X, y], {**keywords, "steps": 2, "start": None}
        keywords |= {"epsilon": 1.0, "records": None}
        if name != "exponential_erm":
            keywords["delta"] = 1e-6
        if name == "noisy_projected_gradient_descent":
            keywords |= {"clip": None, "steps": 2, "step_size": None, "average": None, "start": None, "history": False}
        return getattr(fastdp, name), [X, y], keywords

    return make


def _vectors(name: str) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        keywords = {"clip": 1.0, "epsilon": 1.0, "delta": 1e-6, "noise": "auto", "resolution": None}
        return getattr(fastdp, name), [_points(rng)[0]], keywords

    return make


def _learner(name: str) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        X, y = _points(rng)
        keywords: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "beta": 0.05, "records": None, "progress": None}
        if name == "learn_conjunction":
            return fastdp.learn_conjunction, [X > 0, y], {**keywords, "k": 1, "method": "peel"}
        if name == "learn_box":
            return fastdp.learn_box, [X, y], {**keywords, "domain_bits": None, "signed": None, "method": "auto"}
        return fastdp.learn_from_class, [X.T > 0, y], {**keywords, "X": None}

    return make


def _above(rng: np.random.Generator) -> Call:
    return fastdp.AboveThreshold, [5], {"sensitivity": 1.0, "epsilon": 1.0, "resolution": None}


def _first_above(rng: np.random.Generator) -> Call:
    return fastdp.AboveThreshold(5, sensitivity=1.0, epsilon=1.0).first_above, [_numbers(rng)], {}


def _gumbel(rng: np.random.Generator) -> Call:
    return fastdp.GumbelMax, [], {"sensitivity": 1.0, "epsilon": 1.0, "delta": 0.0, "k": 1, "monotonic": False}


def _offer(rng: np.random.Generator) -> Call:
    return fastdp.GumbelMax(sensitivity=1, epsilon=1.0).offer, [_numbers(rng), 0], {}


def _domain(rng: np.random.Generator) -> Call:
    return fastdp.Domain, [{"a": 3, "b": ["x", "y"]}], {"c": 4}


def _query(name: str) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        arguments: dict[str, list[Any]] = {
            "Conjunction": [{"a": 1}],
            "Product": [{"a": [0, 1]}],
            "Range": ["c", 0, 2],
            "Mask": [rng.random(24) < 0.5],
            "Linear": [rng.random(24)],
            "Predicate": [lambda cell: cell > 3],
        }
        return getattr(fastdp, name), arguments[name], {}

    return make


def _answer(rng: np.random.Generator) -> Call:
    data, domain = _table(rng, 5_000)
    pmw = fastdp.PrivateMultiplicativeWeights(data, domain, epsilon=1.0, delta=1e-6, max_queries=5)
    return pmw.answer, [fastdp.Conjunction({"a": 1})], {}


def _guarantee(name: str, *parameters: float) -> Callable[[np.random.Generator], Call]:
    def make(rng: np.random.Generator) -> Call:
        return getattr(fastdp, name), list(parameters), {"neighbors": "replace-one"}

    return make


def _simple(name: str, arguments: list[Any], **keywords: Any) -> Callable[[np.random.Generator], Call]:
    return lambda rng: (getattr(fastdp, name), list(arguments), dict(keywords))


def _bound(name: str, *arguments: Any, **keywords: Any) -> Callable[[np.random.Generator], Call]:
    return lambda rng: (getattr(fastdp.bounds, name), list(arguments), dict(keywords))


CALLS: dict[str, Callable[[np.random.Generator], Call]] = {
    **{name: _noise(name) for name in ("laplace", "gaussian")},
    **{name: _selection(name) for name in ("exponential_mechanism", "permute_and_flip", "top_k")},
    **{name: _rank(name) for name in ("median", "quantile", "interior_point")},
    **{name: _tables(name) for name in ("PrivateMultiplicativeWeights", "mwem", "release_marginals")},
    **{
        name: _erm(name)
        for name in (
            "noisy_projected_gradient_descent",
            "projected_gradient_descent",
            "noisy_least_squares",
            "exponential_erm",
            "private_erm",
        )
    },
    **{name: _vectors(name) for name in ("vector_sum", "vector_mean")},
    **{name: _learner(name) for name in ("learn_conjunction", "learn_box", "learn_from_class")},
    **{name: _query(name) for name in ("Conjunction", "Product", "Range", "Mask", "Linear", "Predicate")},
    "AboveThreshold": _above,
    "AboveThreshold.first_above": _first_above,
    "GumbelMax": _gumbel,
    "GumbelMax.offer": _offer,
    "Domain": _domain,
    "PrivateMultiplicativeWeights.answer": _answer,
    "PureDP": _guarantee("PureDP", 1.0),
    "ApproxDP": _guarantee("ApproxDP", 1.0, 1e-6),
    "ZCDP": _guarantee("ZCDP", 0.1),
    "BoundedRange": _guarantee("BoundedRange", 0.5),
    "AllOf": _simple("AllOf", [fastdp.PureDP(1.0), fastdp.ZCDP(0.1)]),
    "Budget": _simple("Budget", [], epsilon=1.0, delta=1e-6, theorem="basic", neighbors="replace-one"),
    "compose": _simple("compose", [fastdp.PureDP(0.1), (fastdp.ZCDP(0.1), 3)], delta=1e-6, using="best"),
    "share": _simple("share", [fastdp.PureDP(1.0), 3, fastdp.PureDP]),
    "removal": _simple("removal", [0.1], one_signed=True, neighbors="replace-one"),
    "removal_eta": _simple("removal_eta", [1.0, 1e-6], one_signed=True, neighbors="replace-one"),
    "pack": _simple("pack", [np.eye(5, 3, dtype=bool)]),
    "marginals": lambda rng: (fastdp.marginals, [fastdp.Domain.binary(5), 2], {}),
    "Domain.binary": lambda rng: (fastdp.Domain.binary, [5], {}),
    "Randomness": lambda rng: (fastdp.Randomness, [], {}),
    "Randomness.words": lambda rng: (fastdp.Randomness().words, [5], {}),
    "error": lambda rng: (fastdp.error, [lambda X: np.ones(len(X), bool), np.eye(3, dtype=bool), np.ones(3, bool)], {}),
    "Ball": lambda rng: (sets.Ball, [1.0], {"center": 0.0}),
    "Box": lambda rng: (sets.Box, [[0.0, 0.0], [1.0, 1.0]], {}),
    "Simplex": lambda rng: (sets.Simplex, [1.0], {}),
    "Logistic": lambda rng: (losses.Logistic, [], {"x_norm": 1.0}),
    "Huber": lambda rng: (losses.Huber, [1.0], {"x_norm": 1.0}),
    "bounds.laplace": _bound("laplace", sensitivity=1.0, epsilon=1.0, beta=0.05, count=3),
    "bounds.gaussian": _bound("gaussian", sensitivity=1.0, epsilon=1.0, delta=1e-6, beta=0.05, count=3),
    "bounds.exponential_mechanism": _bound("exponential_mechanism", 10, sensitivity=1.0, epsilon=1.0, beta=0.05),
    "bounds.above_threshold": _bound("above_threshold", 10, sensitivity=1.0, epsilon=1.0, beta=0.05),
    "bounds.median": _bound("median", domain_bits=64, epsilon=1.0, beta=0.05),
    "bounds.learn_conjunction": _bound("learn_conjunction", 1000, 10, k=3, epsilon=1.0, delta=1e-6),
    "bounds.learn_from_class": _bound("learn_from_class", 1000, 10, epsilon=1.0),
}

CHARGED = {
    "laplace", "gaussian", "exponential_mechanism", "permute_and_flip", "top_k", "median", "quantile", "interior_point",
    "PrivateMultiplicativeWeights", "mwem", "release_marginals", "noisy_projected_gradient_descent",
    "noisy_least_squares", "exponential_erm", "private_erm", "vector_sum", "vector_mean", "learn_conjunction",
    "learn_box", "learn_from_class", "AboveThreshold", "GumbelMax",
}  # fmt: skip
"""Functions that take budget= and rng=."""


class Strange:
    """An object that is nothing, and whose text must never be in a message."""

    def __repr__(self) -> str:
        return "<strange>"


class Floaty(float):
    pass


def hostile(rng: np.random.Generator) -> Iterator[Any]:
    """Values of every kind, made anew."""
    import pandas as pd

    yield from (None, True, False, 0, 1, -1, 2, 7, 2**31, 2**62, 2**63, 2**64, -(2**63), 10**400, -(10**400))
    yield from (0.0, -0.0, 0.5, 1.0, 1e-320, 1e-300, 1e300, float("nan"), float("inf"), -float("inf"), 2.0**-1074)
    yield from (1j, "", "x", "replace-one", "add-remove", "1.0", b"1", "é" * 50, "auto")
    yield from (decimal.Decimal("0.5"), decimal.Decimal("NaN"), fractions.Fraction(1, 3), datetime.date(2020, 1, 1))
    yield from (np.float16(0.5), np.float32(0.5), np.float64("nan"), np.int8(3), np.uint64(2**64 - 1), np.bool_(True))
    yield from (np.longdouble(0.5), np.datetime64("2020-01-01"), np.str_("x"), np.complex128(1j))
    yield from ([], [1], [1.0, 2.0], ["a"], [None], [[1, 2], [3]], [float("nan")], (), (1, 2), {}, {"a": 1}, {1, 2})
    yield from (set(), range(3), iter([1, 2]), (x for x in [1]), slice(3), object(), Strange(), Floaty(0.5), int, print)
    yield from (
        lambda *a: 1,
        lambda *a: "x",
        np.array(3),
        np.array(3.5),
        np.empty(0),
        np.empty((0, 3)),
        np.ones((2, 2)),
    )
    yield from (np.ones(3, np.float16), np.ones(3, complex), np.array(["a", "b"]), np.array([None, 1], object))
    yield from (np.ones((2, 2, 2)), np.full(3, np.nan), np.array([1, np.inf]), np.ma.masked_array([1, 2], [0, 1]))
    yield from (np.array([2**63 - 1, -(2**63)]), np.array([2**64 - 1], np.uint64), np.ones(4)[::2], np.array([b"a"]))
    yield from (np.zeros(3, [("a", "i4")]), np.rec.array([(1, 2.0)]), np.matrix([[1, 2]]), np.arange(3).astype(">i8"))
    yield from (pd.NA, pd.NaT, pd.Series([1, 2]), pd.Series([1, None]), pd.Series(["a"]), pd.Index([1, 2]))
    yield from (
        pd.DataFrame({"a": [1, 2]}),
        pd.DataFrame(),
        pd.Timestamp("2020-01-01"),
        pd.Series([pd.NA, 1], dtype="Int64"),
    )
    yield from (fastdp.PureDP(1.0), fastdp.Domain.binary(2), fastdp.Randomness, sets.Ball, losses.Logistic())
    yield from (sets.Ball(1.0), fastdp.Budget, fastdp.Conjunction({"a": 1}), Exception("x"), memoryview(b"12"))
