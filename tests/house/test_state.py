"""What decides noise or price cannot be set: attributes of public objects, the arrays and the mappings in them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any

import numba
import numpy as np
import pytest

import fastdp
from fastdp import answering, learning, losses, optimizing, sets

DOMAIN = fastdp.Domain(a=3, b=["f", "m"])
CODES = fastdp.Domain(a=3, b=2)
RECORDS = np.random.default_rng(0).integers(0, [3, 2], (20_000, 2))
X = np.random.default_rng(1).uniform(-0.5, 0.5, (2000, 2))
Y = X @ [0.3, 0.2]
BITS = np.random.default_rng(2).random((4000, 5)) < 0.5
PRICE = {"epsilon": 1.0, "delta": 1e-6}
FITS = {"loss": losses.SquaredError(x_norm=1, y_bound=1), "over": sets.Ball(1.0)} | PRICE


def spent() -> fastdp.Budget:
    budget = fastdp.Budget(epsilon=1.0)
    fastdp.laplace(3, sensitivity=1, epsilon=0.5, budget=budget)
    return budget


def above(cell: int) -> bool:
    return cell > 2


DECIDING: dict[str, Callable[[], Any]] = {
    "AboveThreshold": lambda: fastdp.AboveThreshold(3.0, sensitivity=1, epsilon=1.0),
    "ContinualCounter": lambda: fastdp.ContinualCounter(rho=0.5),
    "SparseVector": lambda: fastdp.SparseVector(3.0, sensitivity=1, epsilon=1.0, positives=2),
    "NumericSparse": lambda: fastdp.NumericSparse(3, sensitivity=1, epsilon=1.0, positives=2),
    "GumbelMax": lambda: fastdp.GumbelMax(sensitivity=1, epsilon=1.0),
    "a shard": lambda: fastdp.GumbelMax(sensitivity=1, epsilon=1.0).shard(),
    "PrivateMultiplicativeWeights": lambda: fastdp.PrivateMultiplicativeWeights(
        RECORDS, CODES, max_queries=10, **PRICE
    ),
    "Budget": spent,
    "Releases": lambda: spent().releases,
    "Randomness": fastdp.Randomness,
    "PureDP": lambda: fastdp.PureDP(1.0),
    "ApproxDP": lambda: fastdp.ApproxDP(1.0, 1e-6),
    "ZCDP": lambda: fastdp.ZCDP(1.0),
    "BoundedRange": lambda: fastdp.BoundedRange(1.0),
    "Renyi": lambda: fastdp.Renyi.gaussian(1.0),
    "GaussianDP": lambda: fastdp.GaussianDP(1.0),
    "AllOf": lambda: fastdp.PureDP(1.0) & fastdp.ZCDP(1.0),
    "LossDistribution": lambda: fastdp.privacy.LossDistribution(fastdp.privacy.Gaussian(1.0)),
    "Domain": lambda: DOMAIN,
    "Partition": lambda: fastdp.partition({"a": [1, 2], "x": [3, 4]}, by="a", keys=[1]),
    "a part": lambda: fastdp.partition({"a": [1, 2], "x": [3, 4]}, by="a", keys=[1])[1],
    "Plan": lambda: fastdp.plan_releases([{"mechanism": "laplace", "sensitivity": 1, "error": 10.0}]),
    "Bins": lambda: fastdp.Bins([0.0, 1.0, 2.0]),
    "Conjunction": lambda: fastdp.Conjunction({"a": 1}),
    "Product": lambda: fastdp.Product({"a": np.array([True, False, True]), "b": ["f"]}),
    "Range": lambda: fastdp.Range("a", 0, 1),
    "Mask": lambda: fastdp.Mask(np.arange(6) % 2 == 0),
    "Linear": lambda: fastdp.Linear(np.arange(6) / 6),
    "Scaled": lambda: fastdp.Scaled("a", 0, 2),
    "Combination": lambda: fastdp.Combination([fastdp.Conjunction({"a": 1})], [-1], constant=1),
    "Predicate": lambda: fastdp.Predicate(numba.njit(above)),
    "Ratio": lambda: answering.Ratio(0.5, None),
    "Marginals": lambda: fastdp.marginals(DOMAIN, 1),
    "Ball": lambda: sets.Ball(1.0),
    "Box": lambda: sets.Box(np.zeros(2), np.ones(2)),
    "Simplex": sets.Simplex,
    "Projected": lambda: sets.Projected(lambda w: w, diameter=1.0, center=np.zeros(2)),
    "SquaredError": lambda: losses.SquaredError(x_norm=1, y_bound=1),
    "Hinge": losses.Hinge,
    "Huber": lambda: losses.Huber(1.0),
    "Logistic": losses.Logistic,
    "Softmax": lambda: losses.Softmax(2),
    "AbsoluteDeviation": losses.AbsoluteDeviation,
    "L2": lambda: losses.L2(0.1),
    "SquaredDistance": losses.SquaredDistance,
    "Regularised": lambda: losses.Regularised(losses.Logistic(), 0.1),
}  # fmt: skip

MADE: dict[str, Callable[[], Any]] = DECIDING | {
    "SyntheticDistribution": lambda: fastdp.SyntheticDistribution(np.ones(6), DOMAIN, n=10),
    "mwem": lambda: fastdp.mwem(RECORDS, CODES, fastdp.marginals(CODES, 1), rounds=1, **PRICE),
    "release_marginals": lambda: fastdp.release_marginals(RECORDS, CODES, [["a"]], fit="entropic", **PRICE),
    "synthesize": lambda: fastdp.synthesize(RECORDS, CODES, **PRICE),
    "a planned release": lambda: made("Plan")[0],
    "a number": lambda: fastdp.statistics.count(RECORDS[:, 0], epsilon=1.0),
    "a description": lambda: fastdp.statistics.describe(RECORDS, {0: (0, 1)}, epsilon=1.0),
    "counts": lambda: fastdp.statistics.bincount(RECORDS[:, 1], 2, epsilon=1.0),
    "best_of": lambda: fastdp.best_of(lambda budget: (1, 2.0), 2, epsilon=1.0),
    "a report": lambda: fastdp.synthesize(RECORDS, CODES, **PRICE).report,
    "release_ranges": lambda: fastdp.release_ranges(np.arange(9.0), [0.0, 4.0, 9.0], **PRICE),
    "Estimate": lambda: fastdp.bounds.mwem(10_000, CODES, fastdp.marginals(CODES, 1), **PRICE),
    "Release": lambda: spent().releases[0],
    "Removal": lambda: fastdp.removal(0.1, one_signed=True),
    "Form": lambda: fastdp.PureDP(1.0).forms()[0],
    "Origin": fastdp.privacy.Origin,
    "a bound product": lambda: fastdp.Product({"a": [0, 1]}).bind(DOMAIN),
    "a bound table": lambda: fastdp.Product({"a": np.array([True, False, True])}).bind(DOMAIN),
    "a bound mask": lambda: fastdp.Mask(np.arange(6) % 2 == 0).bind(DOMAIN),
    "bound values": lambda: fastdp.Linear(np.arange(6) / 6).bind(DOMAIN),
    "a bound predicate": lambda: fastdp.Predicate(numba.njit(above)).bind(DOMAIN),
    "Answer": lambda: answering.Answer(fastdp.Conjunction({"a": 1}), 0.5, False),
    "Ratio": lambda: answering.Ratio(0.5, 0.1),
    "PackedRows": lambda: fastdp.pack(BITS),
    "descent": lambda: fastdp.noisy_projected_gradient_descent(X, Y, history=True, **FITS),
    "without noise": lambda: fastdp.projected_gradient_descent(
        X, Y, loss=FITS["loss"], over=FITS["over"], steps=3, step_size=0.1
    ),
    "least squares": lambda: fastdp.noisy_least_squares(X, Y, **FITS),
    "private_erm": lambda: fastdp.private_erm(X, Y, **FITS),
    "exponential_erm": lambda: fastdp.exponential_erm(
        Y[:, None], loss=losses.AbsoluteDeviation(), over=sets.Box(-1, 1), epsilon=1.0
    ),
    "vector_sum": lambda: fastdp.vector_sum(X, clip=1.0, **PRICE),
    "learn_conjunction": lambda: fastdp.learn_conjunction(BITS, BITS[:, 0], k=1, **PRICE),
    "learn_box": lambda: fastdp.learn_box(BITS[:, :1].astype(int), BITS[:, 0], domain_bits=1, **PRICE),
    "learn_decision_list": lambda: fastdp.learn_decision_list(BITS, BITS[:, 0], rules=1, epsilon=1.0),
    "learn_tree": lambda: fastdp.learn_tree(BITS, BITS[:, 0], depth=1, epsilon=1.0),
    "learn_from_class": lambda: fastdp.learn_from_class(BITS.T, BITS[:, 0], epsilon=1.0),
}  # fmt: skip


@cache
def made(kind: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return MADE[kind]()


def public(thing: Any) -> Iterator[tuple[str, Any]]:
    """The attributes of an object that are no methods."""
    for name in dir(thing):
        if not name.startswith("_"):
            try:
                value = getattr(thing, name)
            except (AttributeError, ValueError):
                continue
            if not callable(value) or name in getattr(thing, "__dict__", ()):
                yield name, value


# no objects of these: what others are derived from, protocols, exceptions; and losses that know an address
BASES = {"Accounted", "Custom", "ConvexSet", "Gradient", "Guarantee", "HasGuarantee", "Hypothesis"}
BASES |= {"Loss", "Profile", "Query"}


def test_every_public_class_is_among_them() -> None:
    modules = [fastdp, fastdp.privacy, losses, sets, answering, learning, optimizing, fastdp.statistics]
    public_names = {(module, name) for module in modules for name in dir(module) if not name.startswith("_")}
    classes = {getattr(module, name) for module, name in public_names if isinstance(getattr(module, name), type)}
    homes = {module.__name__ for module in modules}
    ours = {each for each in classes if each.__module__ in homes and not issubclass(each, Exception)}
    known = {kind for made_one in map(made, MADE) for kind in type(made_one).__mro__}
    frozen = {each for each in ours if is_dataclass(each) and each.__dataclass_params__.frozen}  # type: ignore[attr-defined]
    assert {each.__name__ for each in ours - known - frozen} <= BASES


@pytest.mark.parametrize("kind", MADE)
def test_attributes_cannot_be_set(kind: str) -> None:
    thing = made(kind)
    settable = []
    for name, _ in public(thing):
        before = getattr(thing, name, None)
        try:
            setattr(thing, name, before)
        except AttributeError:
            continue
        settable.append(name)
    assert settable == []


def parts(value: Any) -> Iterator[Any]:
    """A value and all that it holds."""
    yield value
    inner: list[Any] = []
    if isinstance(value, Mapping):
        inner = list(value.values())
    elif isinstance(value, list | tuple | set | frozenset):
        inner = list(value)
    for each in inner:
        yield from parts(each)


def changes(value: Any) -> bool:
    """Whether somebody could change it in place."""
    if isinstance(value, np.ndarray):
        if not value.flags.writeable:
            try:
                value.flags.writeable = True
            except ValueError:
                return False
        return value.size > 0
    return isinstance(value, dict | list | set | bytearray)


READ = ["Domain", "Marginals", "PackedRows", "Randomness", *(kind for kind in DECIDING if "DP" in kind)]
READ += ["Conjunction", "Product", "Range", "Mask", "Linear", "Predicate", "Ball", "Box", "Simplex", "Logistic"]


@pytest.mark.parametrize("kind", READ)
def test_methods_cannot_be_set(kind: str) -> None:
    """Of what fastdp itself asks, once it is given it."""
    thing = made(kind)
    for name in dir(thing):
        if not name.startswith("_"):
            with pytest.raises(AttributeError):
                setattr(thing, name, lambda *_: 0)


@pytest.mark.parametrize("kind", DECIDING)
def test_what_attributes_hold_does_not_change(kind: str) -> None:
    """Arrays and containers are read-only for good, or a copy at every look."""
    thing = made(kind)
    shared = []
    for name, value in public(thing):
        again = {id(part) for part in parts(getattr(thing, name))}
        shared += [name for part in parts(value) if changes(part) and id(part) in again]
    assert shared == []
