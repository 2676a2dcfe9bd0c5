"""What several subjects of the optimizing room share: losses, the ball, the privacy parameters."""

from __future__ import annotations

from typing import Any

from fastdp import losses

LOSSES: dict[str, Any] = {"squared": losses.SquaredError(x_norm=1, y_bound=1), "logistic": losses.Logistic(x_norm=1)}
RADIUS = 1.0
EPSILON = 1.0
DELTA = 1e-6
MILLION = 1_000_000
