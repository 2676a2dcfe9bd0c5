"""What tests of queries and domains share."""

from __future__ import annotations

from typing import Any

import numpy as np

import fastdp
from fastdp import Conjunction, Domain
from fastdp.answering.queries.bound_query import BoundCells
from fastdp.answering.queries.query import bind

DOMAIN = Domain(age=4, region=["north", "south", "east"], sex=2)


def cells_of(query: Any, domain: Domain = DOMAIN) -> np.ndarray:
    """The value of a query in every cell, in the shape of the domain."""
    bound = bind(query, domain)
    if isinstance(bound, BoundCells):
        return bound.values.reshape(domain.sizes)
    cube = np.zeros(domain.sizes, np.uint8)
    tables = dict(bound.allowed)
    cube[np.ix_(*(tables.get(p, np.ones(size, bool)) for p, size in enumerate(domain.sizes)))] = 1
    return cube


# --- domains of more cells than a float can say


ONES = np.ones((2000, 2000), np.uint8)

EASY = Conjunction({"v7": 1})


def pmw_on(domain: Domain, **options: Any) -> fastdp.PrivateMultiplicativeWeights:
    return fastdp.PrivateMultiplicativeWeights(ONES, domain, **{"epsilon": 1000.0, "max_queries": 10} | options)
