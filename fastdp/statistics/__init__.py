"""Counts, sums, means, variances, histograms and summaries of columns, shaped as numpy and pandas have them.

Each reads whatever records can be read from, and gives a result that converts by `float()`, `int()` or `np.asarray()`
and says how large its noise is. statistics.md has the proofs.
"""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily

_HOMES = {
    "ColumnSummary": "description",
    "Counts": "results",
    "Description": "description",
    "LabelCounts": "label_results",
    "LabelSums": "label_results",
    "Number": "results",
    "bincount": "counts",
    "count": "counts",
    "count_by": "groups",
    "describe": "summaries",
    "histogram": "counts",
    "mean": "means",
    "quantiles": ".mechanisms.many_quantiles",
    "sum": "means",
    "sum_by": "groups",
    "variance": "means",
}

__all__ = [
    "ColumnSummary",
    "Counts",
    "Description",
    "LabelCounts",
    "LabelSums",
    "Number",
    "bincount",
    "count",
    "count_by",
    "describe",
    "histogram",
    "mean",
    "quantiles",
    "sum",
    "sum_by",
    "variance",
]

if TYPE_CHECKING:
    from ..mechanisms.many_quantiles import quantiles as quantiles
    from .counts import bincount as bincount
    from .counts import count as count
    from .counts import histogram as histogram
    from .description import ColumnSummary as ColumnSummary
    from .description import Description as Description
    from .groups import count_by as count_by
    from .groups import sum_by as sum_by
    from .label_results import LabelCounts as LabelCounts
    from .label_results import LabelSums as LabelSums
    from .means import mean as mean
    from .means import sum as sum
    from .means import variance as variance
    from .results import Counts as Counts
    from .results import Number as Number
    from .summaries import describe as describe

__getattr__, __dir__ = lazily(globals(), _HOMES)
