"""The ratio of two answers, and its error bound: an average over a part of the records.

From `a` within `e` of `A`, and `b` within `f` of `B`, with `0 <= A <= B` and `b > f`:
`|a/b - A/B| = |(a - A) - (a/b)(b - B)| / B <= (e + (a/b) f) / (b - f)`. To cut `a/b` off at 1 brings it no further
away. Values of the column were rounded to 2^-16, by half of it at most, which `e` takes on top.
"""

from __future__ import annotations

from typing import NamedTuple

from ..support.public_paths import public_as
from .multiplicative_weights_run import Answer

_ROUNDED = 2.0**-17


@public_as("fastdp.answering")
class Ratio(NamedTuple):
    """The average of a column over a part of the records."""

    value: float
    bound: float | None  # within which it is, if the accuracy does not fail; None where nothing is guaranteed


def ratio_of(above: Answer, below: Answer, low: float, high: float) -> Ratio:
    """What the share `above / below` stands for between two bounds; each with its error bound."""
    a, e, b, f = above.value, above.bound, below.value, below.bound
    share = a / b if b > 0 else 0.5
    bound = None
    if e is not None and f is not None and b > f:
        bound = min(1.0, (e + _ROUNDED + share * f) / (b - f)) * (high - low)
    return Ratio(low + min(max(share, 0.0), 1.0) * (high - low), bound)
