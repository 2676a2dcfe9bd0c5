"""Differential privacy for Python: exact mechanisms that run at memory speed, with their proofs beside the code.

Names are resolved when they are first used: `import fastdp` compiles nothing and imports neither numba nor numpy.
"""

from importlib import import_module as _import_module
from sys import modules as _modules
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING, Any

from .support import processes as _processes  # noqa: F401  # which sees every fork from here on
from .support.extensions import register as _register
from .support.version import VERSION as __version__

_HOME = {
    "AboveThreshold": "mechanisms.above_threshold",
    "AccuracyWarning": "support.errors",
    "AllOf": "privacy",
    "ApproxDP": "privacy",
    "BestRun": "mechanisms.private_tuning",
    "Bins": "records.bins",
    "BoundedRange": "privacy",
    "Budget": "privacy.budget",
    "BudgetExceeded": "privacy.budget",
    "Combination": "answering.queries",
    "Conjunction": "answering.queries",
    "ContinualCounter": "answering.continual_counter",
    "Domain": "records.domain",
    "DomainError": "support.errors",
    "GaussianDP": "privacy",
    "GumbelMax": "mechanisms.gumbel_max",
    "LedgerError": "privacy.ledger",
    "Linear": "answering.queries",
    "Mask": "answering.queries",
    "NumericSparse": "mechanisms.numeric_sparse",
    "Partition": "records.partition",
    "Predicate": "answering.queries",
    "Plan": "mechanisms.planning",
    "PlannedRelease": "mechanisms.planning",
    "PrivacyWarning": "support.errors",
    "PrivateMultiplicativeWeights": "answering.multiplicative_weights",
    "Product": "answering.queries",
    "PureDP": "privacy",
    "Randomness": "randomness.keys",
    "Range": "answering.queries",
    "Renyi": "privacy",
    "Scaled": "answering.queries",
    "SparseVector": "mechanisms.sparse_vector",
    "SyntheticDistribution": "answering.synthetic_distribution",
    "ZCDP": "privacy",
    "best_of": "mechanisms.private_tuning",
    "compose": "privacy",
    "error": "learning.hypotheses",
    "exponential_erm": "optimizing.exponential_erm",
    "exponential_mechanism": "mechanisms.selection",
    "gaussian": "mechanisms.noise",
    "get_num_threads": "support.threads",
    "interior_point": "mechanisms.interior_point",
    "laplace": "mechanisms.noise",
    "learn_box": "learning.boxes",
    "learn_conjunction": "learning.conjunctions",
    "learn_decision_list": "learning.decision_lists",
    "learn_from_class": "learning.finite_class",
    "learn_tree": "learning.trees",
    "limit_rows": "records.persons",
    "marginals": "answering.queries",
    "median": "mechanisms.quantiles",
    "mwem": "answering.mwem",
    "noisy_least_squares": "optimizing.moments",
    "noisy_projected_gradient_descent": "optimizing.descent",
    "pack": "records.packed",
    "partition": "records.partition",
    "per_person": "records.person_sums",
    "nonprivate_excess_risk": "optimizing.nonprivate",
    "nonprivate_minimum": "optimizing.nonprivate",
    "peeling_eta": "privacy.removal_lemma",
    "permute_and_flip": "mechanisms.selection",
    "plan_releases": "mechanisms.planning",
    "plan_synthesis": "answering.synthesis.plan_synthesis",
    "private_erm": "optimizing.private_erm",
    "projected_gradient_descent": "optimizing.descent",
    "quantile": "mechanisms.quantiles",
    "quantiles": "mechanisms.many_quantiles",
    "release_marginals": "answering.release_marginals",
    "release_ranges": "answering.release_ranges",
    "removal": "privacy.removal_lemma",
    "removal_eta": "privacy.removal_lemma",
    "set_num_threads": "support.threads",
    "share": "privacy",
    "synthesize": "answering.synthesis.synthesize",
    "top_k": "mechanisms.selection",
    "vector_mean": "optimizing.vector_sums",
    "vector_sum": "optimizing.vector_sums",
    "warmup": "support.warmup",
}

# modules that are public as fastdp.bounds, ...
_MODULES = {
    "audit": "audit",
    "bounds": "bounds",
    "kernels": "kernels",
    "losses": "optimizing.losses",
    "privacy": "privacy",
    "records": "records",
    "sets": "optimizing.sets",
    "statistics": "statistics",
}

__all__ = [
    "ZCDP",
    "AboveThreshold",
    "AccuracyWarning",
    "AllOf",
    "ApproxDP",
    "BestRun",
    "Bins",
    "BoundedRange",
    "Budget",
    "BudgetExceeded",
    "Combination",
    "Conjunction",
    "ContinualCounter",
    "Domain",
    "DomainError",
    "GaussianDP",
    "GumbelMax",
    "LedgerError",
    "Linear",
    "Mask",
    "NumericSparse",
    "Partition",
    "Plan",
    "PlannedRelease",
    "Predicate",
    "PrivacyWarning",
    "PrivateMultiplicativeWeights",
    "Product",
    "PureDP",
    "Randomness",
    "Range",
    "Renyi",
    "Scaled",
    "SparseVector",
    "SyntheticDistribution",
    "__version__",
    "best_of",
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
    "learn_decision_list",
    "learn_from_class",
    "learn_tree",
    "limit_rows",
    "marginals",
    "median",
    "mwem",
    "noisy_least_squares",
    "noisy_projected_gradient_descent",
    "nonprivate_excess_risk",
    "nonprivate_minimum",
    "pack",
    "partition",
    "peeling_eta",
    "per_person",
    "permute_and_flip",
    "plan_releases",
    "plan_synthesis",
    "private_erm",
    "projected_gradient_descent",
    "quantile",
    "quantiles",
    "release_marginals",
    "release_ranges",
    "removal",
    "removal_eta",
    "set_num_threads",
    "share",
    "synthesize",
    "top_k",
    "vector_mean",
    "vector_sum",
    "warmup",
]

# what upper layers bring to lower ones: where it is read, its name there, the module
for _point, _name, _module in (
    ("engine", "dask", "connect.dask"),
    ("engine", "dask_expr", "connect.dask"),
    ("dp_event", "dp-accounting", "connect.dp_accounting"),
    ("bins", "quantiles", "mechanisms.bin_edges"),
    ("profile", "RemovalLemma", "privacy.removal_lemma"),
    ("bounds", "all", "bounds"),
    ("warmup", "randomness", "randomness.warmup"),
    ("warmup", "records", "records.warmup"),
    ("warmup", "noise", "mechanisms.warmup_noise"),
    ("warmup", "mechanisms", "mechanisms.warmup"),
    ("warmup", "answering", "answering.warmup"),
    ("warmup", "learning", "learning.warmup"),
    ("warmup", "optimizing", "optimizing.warmup"),
    ("warmup", "statistics", "statistics.warmup"),
    ("warmup", "capi", "capi.warmup"),
):
    _register(_point, _name, f"{__name__}.{_module}")

if TYPE_CHECKING:
    from . import audit as audit
    from . import bounds as bounds
    from . import kernels as kernels
    from . import privacy as privacy
    from . import statistics as statistics
    from .answering.continual_counter import ContinualCounter
    from .answering.multiplicative_weights import PrivateMultiplicativeWeights
    from .answering.mwem import mwem
    from .answering.queries import Combination, Conjunction, Linear, Mask, Predicate, Product, Range, Scaled, marginals
    from .answering.release_marginals import release_marginals
    from .answering.release_ranges import release_ranges
    from .answering.synthesis.plan_synthesis import plan_synthesis
    from .answering.synthesis.synthesize import synthesize
    from .answering.synthetic_distribution import SyntheticDistribution
    from .learning.boxes import learn_box
    from .learning.conjunctions import learn_conjunction
    from .learning.decision_lists import learn_decision_list
    from .learning.finite_class import learn_from_class
    from .learning.hypotheses import error
    from .learning.trees import learn_tree
    from .mechanisms.above_threshold import AboveThreshold
    from .mechanisms.gumbel_max import GumbelMax
    from .mechanisms.interior_point import interior_point
    from .mechanisms.many_quantiles import quantiles
    from .mechanisms.noise import gaussian, laplace
    from .mechanisms.numeric_sparse import NumericSparse
    from .mechanisms.planning import Plan, PlannedRelease, plan_releases
    from .mechanisms.private_tuning import BestRun, best_of
    from .mechanisms.quantiles import median, quantile
    from .mechanisms.selection import exponential_mechanism, permute_and_flip, top_k
    from .mechanisms.sparse_vector import SparseVector
    from .optimizing import losses as losses
    from .optimizing import sets as sets
    from .optimizing.descent import noisy_projected_gradient_descent, projected_gradient_descent
    from .optimizing.exponential_erm import exponential_erm
    from .optimizing.moments import noisy_least_squares
    from .optimizing.nonprivate import nonprivate_excess_risk, nonprivate_minimum
    from .optimizing.private_erm import private_erm
    from .optimizing.vector_sums import vector_mean, vector_sum
    from .privacy.budget import Budget, BudgetExceeded
    from .privacy.composition import compose, share
    from .privacy.gaussian_dp import GaussianDP
    from .privacy.guarantees import ZCDP, AllOf, ApproxDP, BoundedRange, PureDP, Renyi
    from .privacy.ledger import LedgerError
    from .privacy.removal_lemma import peeling_eta, removal, removal_eta
    from .randomness.keys import Randomness
    from .records.bins import Bins
    from .records.domain import Domain
    from .records.packed import pack
    from .records.partition import Partition, partition
    from .records.person_sums import per_person
    from .records.persons import limit_rows
    from .support.errors import AccuracyWarning, DomainError, PrivacyWarning
    from .support.threads import get_num_threads, set_num_threads
    from .support.warmup import warmup


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f".{_MODULES[name]}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module 'fastdp' has no attribute {name!r}{_elsewhere(name)}")
    try:
        value = getattr(_import_module(f".{_HOME[name]}", __name__), name)
    except ModuleNotFoundError:
        _import_module(".kernels", __name__)  # which says what is missing, and what to do
        raise
    globals()[name] = value
    return value


def _elsewhere(name: str) -> str:
    """Where somebody finds a name that this module does not have."""
    if name.startswith("_") or not name.isidentifier():
        return ""
    from importlib.util import find_spec

    for module in ("statistics", "privacy"):
        if name in dir(_import_module(f".{module}", __name__)):
            return f"; there is fastdp.{module}.{name}"
    return f"; it is a module: import fastdp.{name}" if find_spec(f"{__name__}.{name}") else ""


class _PublicPath(_ModuleType):
    """A module under the name that its classes state, so that `import` and pickles find it; loaded when it is read."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        return getattr(__getattr__(self.__name__.rpartition(".")[2]), name)


for _name in ("losses", "sets"):
    _modules[f"{__name__}.{_name}"] = _PublicPath(f"{__name__}.{_name}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES})
