"""What each theorem guarantees in numbers: how large an error to expect, and what it takes to have a smaller one.

Functions are named after the mechanisms. The plain name gives the error for given parameters; the name with a parameter
behind it solves for that parameter. They are defined in the rooms of the mechanisms and gathered here; nothing below
imports this module.
"""

from importlib import import_module
from typing import Any

from .mechanisms.bounds import (
    above_threshold,
    above_threshold_epsilon,
    exponential_mechanism,
    exponential_mechanism_epsilon,
    gaussian,
    gaussian_epsilon,
    gaussian_rho,
    laplace,
    laplace_epsilon,
    permute_and_flip,
    permute_and_flip_epsilon,
    top_k,
    top_k_epsilon,
)

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
    "permute_and_flip",
    "permute_and_flip_epsilon",
    "top_k",
    "top_k_epsilon",
]

# whole runs: they load what they estimate, so on demand only
_ROOMS = {
    "answering.bounds": (
        "mwem",
        "mwem_epsilon",
        "mwem_n",
        "private_multiplicative_weights",
        "private_multiplicative_weights_epsilon",
        "private_multiplicative_weights_n",
        "release_marginals",
        "release_marginals_epsilon",
        "release_marginals_n",
    ),
    "learning.bounds": (
        "learn_box",
        "learn_box_epsilon",
        "learn_box_n",
        "learn_conjunction",
        "learn_conjunction_epsilon",
        "learn_conjunction_n",
        "learn_from_class",
        "learn_from_class_epsilon",
        "learn_from_class_n",
    ),
    "mechanisms.rank_bounds": (
        "interior_point",
        "interior_point_epsilon",
        "interior_point_n",
        "median",
        "median_epsilon",
        "median_n",
        "quantile",
        "quantile_epsilon",
        "quantile_n",
    ),
    "optimizing.bounds": (
        "exponential_erm",
        "exponential_erm_epsilon",
        "exponential_erm_n",
        "exponential_mechanism_over_ball",
        "exponential_mechanism_over_ball_epsilon",
        "exponential_mechanism_over_ball_n",
        "noisy_least_squares",
        "noisy_least_squares_epsilon",
        "noisy_least_squares_n",
        "noisy_projected_gradient_descent",
        "noisy_projected_gradient_descent_epsilon",
        "noisy_projected_gradient_descent_n",
        "private_erm",
        "private_erm_epsilon",
        "private_erm_n",
        "projected_gradient_descent",
        "projected_gradient_descent_steps",
        "vector_mean",
        "vector_mean_epsilon",
        "vector_mean_n",
        "vector_sum",
        "vector_sum_error",
        "vector_sum_error_epsilon",
    ),
}
_RUNS = {name: module for module, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _RUNS:
        return getattr(import_module(f".{_RUNS[name]}", __package__), name)
    raise AttributeError(f"module 'fastdp.bounds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_RUNS})
