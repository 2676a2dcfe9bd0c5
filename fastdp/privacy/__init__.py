"""Privacy as an account: guarantees, conversions, composition, budgets, calibration, the removal lemma."""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily, publish
from .accounted import Accounted, HasGuarantee
from .best_of_runs import best_of_runs
from .composition import Counted, Using, compose, share
from .conversions import epsilon_of_curve, epsilon_of_rho, epsilon_of_rho_simply
from .curves import ORDERS, Curve, discrete_laplace_curve
from .gaussian_dp import GaussianDP
from .guarantee_forms import Form
from .guarantees import NEIGHBORS, ZCDP, AllOf, ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP, Renyi
from .origin import Origin
from .parts import parallel, subsampled
from .persons import for_persons
from .profiles import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Profile,
    RandomizedResponse,
    with_profile,
)
from .stored_forms import as_json, from_json
from .subsampled_profiles import FixedSizeSubsampled, PoissonSubsampled

__all__ = [
    "NEIGHBORS",
    "ORDERS",
    "ZCDP",
    "Accounted",
    "AllOf",
    "ApproxDP",
    "BoundedRange",
    "Counted",
    "Curve",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "FixedSizeSubsampled",
    "Form",
    "Gaussian",
    "GaussianDP",
    "Guarantee",
    "HasGuarantee",
    "Laplace",
    "Neighbors",
    "Origin",
    "PoissonSubsampled",
    "Profile",
    "PureDP",
    "RandomizedResponse",
    "Renyi",
    "Using",
    "as_json",
    "best_of_runs",
    "compose",
    "discrete_laplace_curve",
    "epsilon_of_curve",
    "epsilon_of_rho",
    "epsilon_of_rho_simply",
    "for_persons",
    "from_json",
    "parallel",
    "share",
    "subsampled",
    "with_profile",
]

publish(globals(), ("Accounted", "Form", "Guarantee", "HasGuarantee"), __name__)

_HOMES = {
    "LossDistribution": "accountant",
    "Release": "releases",
    "Releases": "releases",
    "Removal": "removal_lemma",
    "RemovalLemma": "removal_lemma",
}

if TYPE_CHECKING:
    from .accountant import LossDistribution as LossDistribution
    from .releases import Release as Release
    from .releases import Releases as Releases
    from .removal_lemma import Removal as Removal
    from .removal_lemma import RemovalLemma as RemovalLemma

__getattr__, __dir__ = lazily(globals(), _HOMES)
