"""Cases of the optimizing room: noisy descent beside the loops that others write, and what else minimises a loss.

An element is a record, or a coordinate or a loss where the row says so. Points have norm 1 and labels are noisy; all
sides clip gradients to norm 1 by the norms of the points, which they compute once a call, add Gaussian noise and stay
in a ball of radius 1. numpy's and jax's noise is neither discrete nor secure. Where a row says 50 steps, what a call
does only once (checks, norms, noise) counts twice as much against us as in 100.
"""

from ..registry import Case
from . import descent, exponential, moments, projections, vector_sums

CASES: tuple[Case, ...] = (
    *descent.CASES,
    *vector_sums.CASES,
    *projections.CASES,
    *moments.CASES,
    *exponential.CASES,
)
