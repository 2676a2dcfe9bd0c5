"""The error bounds of single mechanisms, and their inverses. Public as `fastdp.bounds`.

Functions are named after the mechanisms. The plain name gives the error for given parameters; the name with a parameter
behind it solves for that parameter. All hold with probability at least 1 - beta over the noise, for the noise that is
really drawn (discrete tails: docs/algorithms.md, conventions), and for any data. They are stated for integers; for
floats on their default grid add a thousandth, which the charge for the rounding costs, and two units of the grid.
"""

from .noise import (
    above_threshold,
    above_threshold_epsilon,
    gaussian,
    gaussian_epsilon,
    gaussian_rho,
    laplace,
    laplace_epsilon,
)
from .selection import (
    exponential_mechanism,
    exponential_mechanism_epsilon,
    permute_and_flip,
    permute_and_flip_epsilon,
    top_k,
    top_k_epsilon,
)
from .sparse_vector import numeric_sparse, numeric_sparse_epsilon, sparse_vector, sparse_vector_epsilon

__all__ = [
    "above_threshold",
    "above_threshold_epsilon",
    "exponential_mechanism",
    "exponential_mechanism_epsilon",
    "gaussian",
    "gaussian_epsilon",
    "gaussian_rho",
    "laplace",
    "laplace_epsilon",
    "numeric_sparse",
    "numeric_sparse_epsilon",
    "permute_and_flip",
    "permute_and_flip_epsilon",
    "sparse_vector",
    "sparse_vector_epsilon",
    "top_k",
    "top_k_epsilon",
]
