"""Runs of MWEM that several tests share."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

import fastdp
from fastdp import (
    Domain,
)
from fastdp.answering.queries.query import bind
from fastdp.answering.true_answers import TrueAnswers
from fastdp.answering.workload import Workload
from fastdp.support.errors import AccuracyWarning
from tests.answering.multiplicative_weights_laws import (
    skewed,
)

SMALL = Domain(a=4, b=3, c=2, d=5)
PEOPLE = skewed(20_000, SMALL)


def fit(data: Any, domain: Domain, queries: Any, **options: Any) -> Any:
    """`mwem`, whatever it says of Gaussian answers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        return fastdp.mwem(data, domain, queries, **{"epsilon": 1.0, "delta": 1e-6, "variant": "average"} | options)


def plan(kind: Any, data: Any, domain: Domain, queries: Any, **options: Any) -> Any:
    given: dict[str, Any] = {
        "n": len(data), "neighbors": "replace-one", "epsilon": 1.0, "delta": 1e-6, "beta": 0.05, "rounds": None,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AccuracyWarning)
        made = kind(Workload(queries, domain), **given | options)
    made.read(TrueAnswers(data, domain))
    return made


def cells(query: Any, domain: Domain) -> np.ndarray:
    bound = bind(query, domain)
    if hasattr(bound, "values"):
        return bound.values.astype(np.float64)
    tables, cube = dict(bound.allowed), np.zeros(domain.sizes)
    cube[np.ix_(*(tables.get(p, np.ones(size, bool)) for p, size in enumerate(domain.sizes)))] = 1.0
    return cube.ravel()
