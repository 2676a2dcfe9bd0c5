"""Minimise a loss over a convex set, privately: descent, the exponential mechanism, second moments."""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily

_HOMES = {
    "Descent": "descent",
    "ExcessBounds": "bounds.erm",
    "LeastSquares": "moments",
    "PrivateChoice": "exponential_erm",
    "PrivateDescent": "descent",
    "PrivateMinimum": "private_erm",
    "VectorRelease": "vector_sums",
}

if TYPE_CHECKING:
    from .bounds.erm import ExcessBounds as ExcessBounds
    from .descent import Descent as Descent
    from .descent import PrivateDescent as PrivateDescent
    from .exponential_erm import PrivateChoice as PrivateChoice
    from .moments import LeastSquares as LeastSquares
    from .private_erm import PrivateMinimum as PrivateMinimum
    from .vector_sums import VectorRelease as VectorRelease

__getattr__, __dir__ = lazily(globals(), _HOMES)
