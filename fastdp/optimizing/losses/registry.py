"""The losses that there are: a row each. A new one is a class in a file beside, a row here, and its formula in
kernels/losses.py; gradients, nets, C and its header read it from here."""

from __future__ import annotations

from typing import Any

from ...support.shown import shown
from .base import Loss
from .classification import Hinge, Logistic
from .custom import Custom
from .distances import AbsoluteDeviation, SquaredDistance
from .regression import Huber, SquaredError
from .regularised import Regularised
from .row import LossRow, register

ROWS = (
    LossRow(SquaredError, "SQUARED"),
    LossRow(Logistic, "LOGISTIC"),
    LossRow(Hinge, "HINGE"),
    LossRow(Huber, "HUBER", from_c=lambda parameter, derivative: Huber(threshold=parameter)),
    LossRow(Custom, "CUSTOM", from_c=lambda parameter, derivative: Custom(derivative)),
    LossRow(SquaredDistance, "SQUARED_DISTANCE"),
    LossRow(AbsoluteDeviation, "ABSOLUTE_DEVIATION"),
)
for row in ROWS:
    register(row)


def parts_of(loss: Any) -> tuple[Loss, float, float]:
    """(the loss of a record, lam of L2, lam of L1)."""
    if isinstance(loss, Regularised):
        return loss.loss, loss.l2.lam, loss.l1.lam
    if not isinstance(loss, Loss):
        raise ValueError(
            f"loss={shown(loss)}: must be one of fastdp.losses, such as fastdp.losses.Logistic(x_norm=1.0)"
        )
    return loss, 0.0, 0.0
