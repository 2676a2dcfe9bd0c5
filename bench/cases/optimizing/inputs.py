"""What several subjects of the optimizing room share: losses, the ball, the privacy parameters."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from fastdp import losses

from ..registry import Call

LOSSES: dict[str, Any] = {"squared": losses.SquaredError(x_norm=1, y_bound=1), "logistic": losses.Logistic(x_norm=1)}
RADIUS = 1.0
EPSILON = 1.0
DELTA = 1e-6
MILLION = 1_000_000


def calls(make: Callable[[int], Call], field: str) -> Callable[[int], Call]:
    """Calls that return one attribute of what is found; their input is made beforehand, and counts as such."""

    def prepare(n: int) -> Call:
        find, of = make(n), attrgetter(field)
        return lambda: of(find())

    return prepare
