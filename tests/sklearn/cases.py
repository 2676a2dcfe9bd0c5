"""Estimators with records that they can be fitted to."""

from __future__ import annotations

from typing import Any

import numpy as np

from fastdp.sklearn import (
    BoxClassifier,
    ConjunctionClassifier,
    MWEMSynthesizer,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateMedian,
    TreeClassifier,
)

# scikit-learn's checks ask for more than half of the variance, or 83 % of the labels, of 200 records, which no private
# fit at epsilon=1 gives; everything else in them is the same at any epsilon.
EXACT = 1e4

RNG = np.random.default_rng(0)
N = 20_000
SQUARE = RNG.uniform(0, 100, size=(N, 3))
LINE = 2 * SQUARE[:, 0] - SQUARE[:, 1] + 7
ABOVE = (SQUARE[:, 0] > SQUARE[:, 1]).astype(int)
INSIDE = ((SQUARE[:, 0] > 30) & (SQUARE[:, 1] <= 60)).astype(int)
BOX = ([0, 0, 0], [100, 100, 100])


def cases() -> list[tuple[Any, Any, Any]]:
    """Estimators with what they can be fitted to."""
    return [
        (ConjunctionClassifier(thresholds=range(10, 100, 10), max_literals=2), SQUARE, INSIDE),
        (BoxClassifier(bounds=BOX), SQUARE, INSIDE),
        (PrivateLogisticRegression(bounds=BOX, method="descent"), SQUARE, ABOVE),
        (PrivateLinearRegression(bounds=BOX, y_bounds=(-100, 300)), SQUARE, LINE),
        (PrivateMean(bounds=BOX), SQUARE, None),
        (PrivateMedian(bounds=BOX), SQUARE, None),
        (MWEMSynthesizer(bounds=BOX, bins=5), SQUARE, None),
        (TreeClassifier(depth=2), SQUARE, INSIDE),
    ]


def named(case: Any) -> str:
    return type(case[0]).__name__ if isinstance(case, tuple) else repr(case)
