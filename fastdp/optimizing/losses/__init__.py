"""Losses of one record, and what can be said of them before any record is seen: public as `fastdp.losses`."""

from .base import REAL, SIGN, DistanceLoss, Loss, MarginLoss, MissingBound, Summand
from .classification import Hinge, Logistic
from .custom import Custom
from .distances import AbsoluteDeviation, SquaredDistance
from .registry import LossRow, register
from .regression import Huber, SquaredError
from .regularised import L2, Regularised
from .table import ROWS, parts_of

__all__ = [
    "L2",
    "AbsoluteDeviation",
    "Custom",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "Regularised",
    "SquaredDistance",
    "SquaredError",
]
