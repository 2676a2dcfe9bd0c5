"""Counts, sums, means, variances and histograms of columns, shaped as numpy and pandas have them.

Each reads whatever records can be read from, and gives a result that converts by `float()`, `int()` or `np.asarray()`
and says how large its noise is. statistics.md has the proofs.
"""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily

_HOMES = {
    "Counts": "results",
    "Number": "results",
    "bincount": "counts",
    "count": "counts",
    "histogram": "counts",
    "mean": "means",
    "quantiles": ".mechanisms.many_quantiles",
    "sum": "means",
    "variance": "means",
}

__all__ = ["Counts", "Number", "bincount", "count", "histogram", "mean", "quantiles", "sum", "variance"]

if TYPE_CHECKING:
    from ..mechanisms.many_quantiles import quantiles as quantiles
    from .counts import bincount as bincount
    from .counts import count as count
    from .counts import histogram as histogram
    from .means import mean as mean
    from .means import sum as sum
    from .means import variance as variance
    from .results import Counts as Counts
    from .results import Number as Number

__getattr__, __dir__ = lazily(globals(), _HOMES)
