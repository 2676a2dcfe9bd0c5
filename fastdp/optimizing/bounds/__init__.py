"""The error bounds of this room, from public numbers: nothing is read, nothing is spent. Public as `fastdp.bounds`.

Functions are named after the mechanisms and take their parameters, with the number of records and of columns in place
of the data. A name with `_n` or `_epsilon` behind it solves for that parameter, to a part in a thousand and up.
"""

from .choice import (
    exponential_erm,
    exponential_erm_epsilon,
    exponential_erm_n,
    exponential_mechanism_over_ball,
    exponential_mechanism_over_ball_epsilon,
    exponential_mechanism_over_ball_n,
)
from .descent import (
    noisy_projected_gradient_descent,
    noisy_projected_gradient_descent_epsilon,
    noisy_projected_gradient_descent_n,
    projected_gradient_descent,
    projected_gradient_descent_steps,
)
from .erm import (
    ExcessBounds,
    private_erm,
    private_erm_epsilon,
    private_erm_n,
)
from .sums import (
    noisy_least_squares,
    noisy_least_squares_epsilon,
    noisy_least_squares_n,
    vector_mean,
    vector_mean_epsilon,
    vector_mean_n,
    vector_sum,
    vector_sum_error,
    vector_sum_error_epsilon,
)

__all__ = [
    "ExcessBounds",
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
]
