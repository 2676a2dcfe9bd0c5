"""Learn from any finite class."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

import fastdp

from ..registry import Call, Side, make_case
from ..traffic import records_of_bits
from .inputs import EPSILON, SURE, count_ones

_case = partial(make_case, "learning")

HYPOTHESES = 1_000
LABELLED = 100_000


@lru_cache(maxsize=1)
def thresholds(n: int) -> tuple[Any, Any]:
    """Thresholds on a line, packed; the labels are those of number 370, but for a tenth."""
    rng = np.random.default_rng(0)
    x, cuts = rng.random(n, np.float32), np.linspace(0, 1, HYPOTHESES, dtype=np.float32)
    return fastdp.pack(x[:, None] > cuts), (x > cuts[370]) ^ (rng.random(n) < 0.1)


def _choose(n: int, **arguments: Any) -> Any:
    predictions, y = thresholds(n)
    return lambda: fastdp.learn_from_class(predictions, y, epsilon=EPSILON, **arguments)


def _numpy_choose(n: int) -> Call:
    predictions, y = thresholds(n)
    labels, rng = fastdp.pack(y[:, None]).words[0], np.random.default_rng()

    def call() -> Any:
        errors = np.array([count_ones(own ^ labels) for own in predictions.words])
        return np.argmax(rng.gumbel(size=HYPOTHESES) - EPSILON / 2 * errors)

    return call


CASES = (
    _case(
        "concepts",
        f"learn_from_class, {HYPOTHESES:,} hypotheses, packed",
        LABELLED,
        _choose,
        (Side("numpy, packed", _numpy_choose), None),
        traffic=records_of_bits(HYPOTHESES, packed=True),
        oracle="a good hypothesis",
        drawn=lambda n: (*thresholds(n), _choose(n, beta=SURE)()),
        epsilon=EPSILON,
    ),
)
