"""The warnings and errors that are fastdp's own."""

import sys
import warnings
from types import FrameType

from .public_paths import public_as


@public_as("fastdp")
class DomainError(ValueError):
    """A record or value lies outside the declared domain. Raised before any noise is drawn; never shows the value."""


@public_as("fastdp")
class PrivacyWarning(UserWarning):
    """Something was done that weakens privacy."""


@public_as("fastdp")
class AccuracyWarning(UserWarning):
    """Something was done that costs accuracy."""


def levels_to_caller() -> int:
    """The `stacklevel` with which a warning of the calling function points at the code that called fastdp."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("fastdp", "contextlib"):
        frame = frame.f_back
        level += 1
    return level


def warn_of_accuracy(message: str) -> None:
    """An AccuracyWarning that points at the code that called fastdp."""
    warnings.warn(message, AccuracyWarning, stacklevel=levels_to_caller())
