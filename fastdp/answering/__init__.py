"""Answering many counting queries.

release_marginals.py: marginal tables, measured (table_noise.py, residual_plan.py) and fitted (least_squares_fit.py,
entropic_fit.py). release_ranges.py: histograms whose ranges have little noise (range_noise.py, range_tree.py,
running_sums.py). mwem.py: a synthetic distribution for a workload. multiplicative_weights.py: answers to queries as
they come. All hold weights over the cells of a domain (dense_weights.py, factored_weights.py), count on the records
(true_answers.py, marginal_counts.py) and give a synthetic distribution (synthetic_distribution.py), which is sampled
(synthetic_sampling.py). The queries are in queries/.
"""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily

_HOMES = {
    "Answer": "multiplicative_weights_run",
    "Estimate": "estimate",
    "FittedDistribution": "mwem",
    "Marginals": "queries.marginals",
    "MarginalsRelease": "marginals_release",
    "MeasuredTable": "synthesis.synthesis_report",
    "Query": "queries.query",
    "Ratio": "ratio",
    "RangesRelease": "release_ranges",
    "SynthesisEstimate": "synthesis.plan_synthesis",
    "SynthesisReport": "synthesis.synthesis_report",
    "SynthesizedDistribution": "synthesis.synthesize",
}

if TYPE_CHECKING:
    from .estimate import Estimate as Estimate
    from .marginals_release import MarginalsRelease as MarginalsRelease
    from .multiplicative_weights_run import Answer as Answer
    from .mwem import FittedDistribution as FittedDistribution
    from .queries.marginals import Marginals as Marginals
    from .queries.query import Query as Query
    from .ratio import Ratio as Ratio
    from .release_ranges import RangesRelease as RangesRelease
    from .synthesis.plan_synthesis import SynthesisEstimate as SynthesisEstimate
    from .synthesis.synthesis_report import MeasuredTable as MeasuredTable
    from .synthesis.synthesis_report import SynthesisReport as SynthesisReport
    from .synthesis.synthesize import SynthesizedDistribution as SynthesizedDistribution

__getattr__, __dir__ = lazily(globals(), _HOMES)
