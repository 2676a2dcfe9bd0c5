"""Losses of one record, and what is known of them before any record is seen: public as `fastdp.losses`."""

from ...support.public_paths import publish
from .base import Loss, MissingBound
from .classification import Hinge, Logistic
from .custom import Custom
from .distances import AbsoluteDeviation, SquaredDistance
from .gradient import Gradient
from .registry import parts_of as parts_of
from .regression import Huber, SquaredError
from .regularised import L1, L2, Regularised
from .softmax import Softmax

__all__ = [
    "L1",
    "L2",
    "AbsoluteDeviation",
    "Custom",
    "Gradient",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "MissingBound",
    "Regularised",
    "Softmax",
    "SquaredDistance",
    "SquaredError",
]

publish(globals(), __all__, "fastdp.losses")
