"""Differential privacy as a compiled-core backend: exact mechanisms at memory speed.

Names are resolved when they are first used: `import fastdp` compiles nothing and imports neither numba nor numpy.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AboveThreshold": "threshold",
    "AccuracyWarning": "errors",
    "AllOf": "privacy",
    "ApproxDP": "privacy",
    "BoundedRange": "privacy",
    "Budget": "budget",
    "BudgetExceeded": "budget",
    "Conjunction": "answering.queries",
    "Domain": "answering.domain",
    "DomainError": "errors",
    "GumbelMax": "race",
    "Linear": "answering.queries",
    "Mask": "answering.queries",
    "Predicate": "answering.queries",
    "PrivacyWarning": "errors",
    "PrivateMultiplicativeWeights": "answering.pmw",
    "Product": "answering.queries",
    "PureDP": "privacy",
    "Randomness": "randomness",
    "Range": "answering.queries",
    "Renyi": "privacy",
    "SyntheticDistribution": "answering.synthetic",
    "ZCDP": "privacy",
    "compose": "privacy",
    "error": "learning.hypotheses",
    "exponential_erm": "optimizing.exponential",
    "exponential_mechanism": "selection",
    "gaussian": "noise",
    "get_num_threads": "threads",
    "interior_point": "learning.interior_point",
    "laplace": "noise",
    "learn_box": "learning.boxes",
    "learn_conjunction": "learning.conjunctions",
    "learn_from_class": "learning.finite_class",
    "marginals": "answering.queries",
    "median": "learning.interior_point",
    "mwem": "answering.mwem",
    "noisy_least_squares": "optimizing.moments",
    "noisy_projected_gradient_descent": "optimizing.descent",
    "pack": "rows",
    "nonprivate_excess_risk": "optimizing.solvers",
    "nonprivate_minimum": "optimizing.solvers",
    "peeling_eta": "peeling",
    "permute_and_flip": "selection",
    "private_erm": "optimizing.erm",
    "projected_gradient_descent": "optimizing.descent",
    "quantile": "learning.interior_point",
    "release_marginals": "answering.release",
    "removal": "peeling",
    "removal_eta": "peeling",
    "set_num_threads": "threads",
    "share": "privacy",
    "top_k": "selection",
    "vector_mean": "optimizing.vectors",
    "vector_sum": "optimizing.vectors",
    "warmup": "warm",
}

# modules that are public as fastdp.bounds, ...
_MODULES = {
    "bounds": "bounds",
    "kernels": "kernels",
    "losses": "optimizing.losses",
    "privacy": "privacy",
    "sets": "optimizing.sets",
}

__all__ = [
    "ZCDP",
    "AboveThreshold",
    "AccuracyWarning",
    "AllOf",
    "ApproxDP",
    "BoundedRange",
    "Budget",
    "BudgetExceeded",
    "Conjunction",
    "Domain",
    "DomainError",
    "GumbelMax",
    "Linear",
    "Mask",
    "Predicate",
    "PrivacyWarning",
    "PrivateMultiplicativeWeights",
    "Product",
    "PureDP",
    "Randomness",
    "Range",
    "Renyi",
    "SyntheticDistribution",
    "__version__",
    "compose",
    "error",
    "exponential_erm",
    "exponential_mechanism",
    "gaussian",
    "get_num_threads",
    "interior_point",
    "laplace",
    "learn_box",
    "learn_conjunction",
    "learn_from_class",
    "marginals",
    "median",
    "mwem",
    "noisy_least_squares",
    "noisy_projected_gradient_descent",
    "nonprivate_excess_risk",
    "nonprivate_minimum",
    "pack",
    "peeling_eta",
    "permute_and_flip",
    "private_erm",
    "projected_gradient_descent",
    "quantile",
    "release_marginals",
    "removal",
    "removal_eta",
    "set_num_threads",
    "share",
    "top_k",
    "vector_mean",
    "vector_sum",
    "warmup",
]

if TYPE_CHECKING:
    from .answering.domain import Domain
    from .answering.mwem import mwem
    from .answering.pmw import PrivateMultiplicativeWeights
    from .answering.queries import Conjunction, Linear, Mask, Predicate, Product, Range, marginals
    from .answering.release import release_marginals
    from .answering.synthetic import SyntheticDistribution
    from .budget import Budget, BudgetExceeded
    from .errors import AccuracyWarning, DomainError, PrivacyWarning
    from .learning.boxes import learn_box
    from .learning.conjunctions import learn_conjunction
    from .learning.finite_class import learn_from_class
    from .learning.hypotheses import error
    from .learning.interior_point import interior_point, median, quantile
    from .noise import gaussian, laplace
    from .optimizing.descent import noisy_projected_gradient_descent, projected_gradient_descent
    from .optimizing.erm import private_erm
    from .optimizing.exponential import exponential_erm
    from .optimizing.moments import noisy_least_squares
    from .optimizing.solvers import nonprivate_excess_risk, nonprivate_minimum
    from .optimizing.vectors import vector_mean, vector_sum
    from .peeling import peeling_eta, removal, removal_eta
    from .privacy import ZCDP, AllOf, ApproxDP, BoundedRange, PureDP, Renyi, compose, share
    from .race import GumbelMax
    from .randomness import Randomness
    from .rows import pack
    from .selection import exponential_mechanism, permute_and_flip, top_k
    from .threads import get_num_threads, set_num_threads
    from .threshold import AboveThreshold
    from .warm import warmup


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f".{_MODULES[name]}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'fastdp' has no attribute {name!r}")
    value = getattr(_import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
