"""OpenDP measurements over the mechanisms of this library (extra `[opendp]`): the same laws, as `Measurement`s.

Compiled kernels draw the noise; OpenDP's maps and compositors do the accounting. The maps are exact rationals, rounded
up once. No fastdp.Budget is charged by a measurement: only OpenDP knows the distance of the inputs.
"""

from .inputs import array_domain
from .noise import make_gaussian, make_laplace
from .partial import then_exponential_mechanism, then_gaussian, then_laplace, then_permute_and_flip
from .selection import make_exponential_mechanism, make_permute_and_flip

__all__ = [
    "array_domain",
    "make_exponential_mechanism",
    "make_gaussian",
    "make_laplace",
    "make_permute_and_flip",
    "then_exponential_mechanism",
    "then_gaussian",
    "then_laplace",
    "then_permute_and_flip",
]
