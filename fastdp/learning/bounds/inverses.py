"""Solving an error bound of a learner for epsilon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...support import parameters
from ...support.search import in_reach, least_float


def least_epsilon(bound: Callable[[float], float], error: Any) -> float:
    """The least epsilon with which an error bound is as small as a user asks for."""
    error = parameters.error_share(error)
    return in_reach(
        "error", error,
        lambda: least_float(lambda e: bound(e) <= error, tolerance=1e-3, smallest=2.0**-40, largest=2.0**20),
        " with an epsilon of at most 2^20",
    )  # fmt: skip
