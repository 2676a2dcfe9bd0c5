"""The oracle of weights, and random queries and domains for their tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fastdp import Conjunction, Domain, Linear, Mask, Product, Range
from fastdp.answering.queries.bound_query import BoundCells, BoundQuery


def chosen(bound: BoundQuery) -> np.ndarray:
    """The value of a query in every cell."""
    if isinstance(bound, BoundCells):
        return bound.values.astype(np.float64)
    tables = dict(bound.allowed)
    cube = np.zeros(bound.domain.sizes)
    cube[np.ix_(*(tables.get(p, np.ones(size, bool)) for p, size in enumerate(bound.domain.sizes)))] = 1.0
    return cube.ravel()


class Plain:
    """The oracle: the logarithm of every weight, and nothing clever."""

    def __init__(self, domain: Domain) -> None:
        self.logs = np.zeros(domain.size, np.longdouble)

    def scale(self, bound: BoundQuery, rate: float) -> None:
        self.logs += np.longdouble(rate) * chosen(bound)

    def probabilities(self) -> np.ndarray:
        weights = np.exp(self.logs - self.logs.max())
        return (weights / weights.sum()).astype(np.float64)

    def evaluate(self, bound: BoundQuery) -> float:
        return float(self.probabilities() @ chosen(bound))


def some_product(rng: np.random.Generator, domain: Domain) -> Product:
    names = rng.permutation(domain.names)[: int(rng.integers(0, min(len(domain), 4) + 1))]
    allowed: dict[str, Any] = {}
    for name in names:
        size = domain.sizes[domain.position(name)]
        match int(rng.integers(4)):
            case 0:
                allowed[name] = int(rng.integers(size))
            case 1:
                allowed[name] = rng.random(size) < 0.6
            case 2:
                low = int(rng.integers(size))
                allowed[name] = list(range(low, int(rng.integers(low, size)) + 1))
            case _:
                allowed[name] = [] if rng.random() < 0.1 else [int(rng.integers(size)), 0]
    return Product(allowed)


def some_query(rng: np.random.Generator, domain: Domain, products: bool = False) -> Any:
    kind = int(rng.integers(3 if products else 5))
    if kind == 0:
        return some_product(rng, domain)
    if kind == 1:
        names = rng.permutation(domain.names)[: int(rng.integers(1, min(len(domain), 4) + 1))]
        return Conjunction({str(name): int(rng.integers(domain.sizes[domain.position(name)])) for name in names})
    if kind == 2:
        name = str(rng.choice(domain.names))
        low, high = sorted(rng.integers(domain.sizes[domain.position(name)], size=2).tolist())
        return Range(name, low, high)
    if kind == 3:
        return Mask(rng.random(domain.size) < rng.random())
    return Linear(rng.random(domain.size) * rng.random())


def some_domain(rng: np.random.Generator, most: int) -> Domain:
    if rng.random() < 0.4:
        return Domain.binary(int(rng.integers(1, int(math.log2(most)) + 1)))
    sizes = rng.choice([1, 1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 17, 40, 100], int(rng.integers(1, 8))).tolist()
    while math.prod(sizes) > most:
        sizes.pop()
    return Domain({f"a{j}": int(size) for j, size in enumerate(sizes)})
