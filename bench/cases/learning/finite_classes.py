"""Learn from any finite class."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

import fastdp

from ..registry import Call, Side, make_case
from .inputs import EPSILON, SURE, count_ones

_case = partial(make_case, "learning")

CONCEPTS = 1_000
LABELLED = 100_000


@lru_cache(maxsize=1)
def concepts(n: int) -> tuple[Any, Any]:
    """Thresholds on a line, packed; the labels are those of number 370, but for a tenth."""
    rng = np.random.default_rng(0)
    x, thresholds = rng.random(n, np.float32), np.linspace(0, 1, CONCEPTS, dtype=np.float32)
    return fastdp.pack(x[:, None] > thresholds), (x > thresholds[370]) ^ (rng.random(n) < 0.1)


def _choose(n: int, **arguments: Any) -> Any:
    predictions, y = concepts(n)
    return lambda: fastdp.learn_from_class(predictions, y, epsilon=EPSILON, **arguments)


def _numpy_choose(n: int) -> Call:
    predictions, y = concepts(n)
    labels, rng = fastdp.pack(y[:, None]).words[0], np.random.default_rng()

    def call() -> Any:
        errors = np.array([count_ones(said ^ labels) for said in predictions.words])
        return np.argmax(rng.gumbel(size=CONCEPTS) - EPSILON / 2 * errors)

    return call


CASES = (
    _case(
        "concepts",
        f"learn_from_class, {CONCEPTS:,} concepts, packed",
        LABELLED,
        _choose,
        (Side("numpy, packed", _numpy_choose), None),
        oracle="a good concept",
        drawn=lambda n: (*concepts(n), _choose(n, beta=SURE)()),
        epsilon=EPSILON,
    ),
)
