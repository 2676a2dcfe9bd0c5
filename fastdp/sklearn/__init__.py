"""Estimators for scikit-learn over the functions of fastdp: pipelines, grid search and all that takes an estimator.

They check what scikit-learn checks, scale by declared bounds, call one function and keep what it released. Nothing here
draws noise of its own kind or reads a bound, a class or a category off the data.
"""

from ..support.public_paths import publish
from . import base  # noqa: F401  first: its error names scikit-learn if it is missing or too old
from .classifiers import BoxClassifier, ConjunctionClassifier
from .linear import PrivateLinearRegression, PrivateLogisticRegression
from .location import PrivateMean, PrivateMedian
from .search import PrivateSearch
from .synthesis import MWEMSynthesizer
from .trees import TreeClassifier

__all__ = [
    "BoxClassifier",
    "ConjunctionClassifier",
    "MWEMSynthesizer",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateMean",
    "PrivateMedian",
    "PrivateSearch",
    "TreeClassifier",
]

publish(globals(), __all__, __name__)
