"""Estimators for scikit-learn over the functions of fastdp: pipelines, grid search and all that takes an estimator.

They check what scikit-learn checks, scale by declared bounds, call one function and keep what it released. Nothing here
draws noise of its own kind or reads a bound, a class or a category off the data.
"""

from .base import check_version

check_version()

from .concepts import BoxClassifier, ConjunctionClassifier  # noqa: E402
from .linear import PrivateLinearRegression, PrivateLogisticRegression  # noqa: E402
from .location import PrivateMean, PrivateMedian  # noqa: E402
from .synthesis import MWEMSynthesizer  # noqa: E402

__all__ = [
    "BoxClassifier",
    "ConjunctionClassifier",
    "MWEMSynthesizer",
    "PrivateLinearRegression",
    "PrivateLogisticRegression",
    "PrivateMean",
    "PrivateMedian",
]
