"""Edges of bins that are bought with private quantiles: what `Bins.quantiles` calls."""

from __future__ import annotations

from math import ceil, floor, inf, nextafter
from typing import Any

import numpy as np

from ..privacy.guarantees import Guarantee
from ..records.bin_edges import checked_edges
from ..support.checks import MAX_INT64, integer
from ..support.parameters import MOST_BINS
from .many_quantiles import MOST_QUANTILES, release_quantiles


def buy_edges(values: Any, bins: Any, low: Any, high: Any, **options: Any) -> tuple[list[Any], Guarantee]:
    """The edges, and what they guarantee: what is done with quantiles that were released costs nothing more.

    Where a number is more than one of the quantiles it has a bin of its own, up to the next number of its type.
    """
    count = integer("bins", bins, least=2, most=min(MOST_BINS, MOST_QUANTILES))
    checked_edges([-inf if low is None else low, inf if high is None else high])  # before anything is paid
    released, guarantee = release_quantiles(values, [i / count for i in range(1, count)], **options)
    found, often = np.unique(released, return_counts=True)
    whole = found.dtype.kind != "f"
    first, last = _ends(low, high, whole)
    inner: list[Any] = []
    for number, times in zip(found.tolist(), often.tolist(), strict=True):
        own = [number, number + 1 if whole else nextafter(number, inf)]
        inner += [each for each in own[: 2 if times > 1 else 1] if first < each < last and each not in inner[-1:]]
    return [first, *inner, last], guarantee


def _ends(low: Any, high: Any, whole: bool) -> tuple[Any, Any]:
    """The first and the last edge, of the type of the quantiles, so that no error comes after the payment."""
    if not whole:
        return -inf if low is None else float(low), inf if high is None else float(high)
    first = -MAX_INT64 - 1 if low is None or low < -MAX_INT64 else ceil(low)
    last = MAX_INT64 if high is None or high > MAX_INT64 else floor(high)
    return (first, last) if first < last else (min(first, MAX_INT64 - 1), min(first, MAX_INT64 - 1) + 1)
