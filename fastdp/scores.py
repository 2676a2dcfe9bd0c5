"""What every selection starts from: scores, checked, and the terms of the choice.

Scores are one-dimensional, int64 or float64; a NaN or +inf is refused, -inf forbids its candidate. The terms say how
strongly a score counts (eta) and what the choice then promises.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import non_negative, numbers_array, positive
from .directed import down, lower, upper
from .errors import DomainError
from .privacy import NEIGHBORS, ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP, compose, share
from .threads import run_chunks

MOST_CANDIDATES = 2**62
CHUNK = 1 << 20  # candidates that one thread looks through at a time: 0.1 ms


class Terms(NamedTuple):
    """How strongly scores count, what the choice promises, and the parameters that say so."""

    eta: float
    guarantee: Guarantee
    parameters: Mapping[str, float]


def terms_of_range(
    sensitivity: Any, epsilon: Any, delta: Any, *, monotonic: Any, rounds: int, neighbors: Neighbors
) -> Terms:
    """Of `rounds` exponential mechanisms that share epsilon and delta: selection.md, theorem 4."""
    sensitivity, epsilon = positive("sensitivity", sensitivity, toward=inf), positive("epsilon", epsilon, toward=0)
    return _terms_of_range(sensitivity, epsilon, small(delta), reach_of(monotonic), rounds, _relation(neighbors))


@lru_cache(1024)
def _terms_of_range(
    sensitivity: float, epsilon: float, delta: float, reach: int, rounds: int, neighbors: Neighbors
) -> Terms:
    each = range_of_each(epsilon, delta, rounds)
    eta = _eta(each, sensitivity, reach, epsilon)
    one = BoundedRange(epsilon if rounds == 1 and not delta else each, neighbors=neighbors)
    guarantee: Guarantee = one if rounds == 1 else compose((one, rounds))
    if delta:
        guarantee = ApproxDP(epsilon, delta, neighbors=neighbors) & guarantee
        return Terms(eta, guarantee, {"sensitivity": sensitivity, "epsilon": epsilon, "delta": delta})
    if rounds > 1:
        guarantee = PureDP(epsilon, neighbors=neighbors) & guarantee.to_zcdp()
    return Terms(eta, guarantee, {"sensitivity": sensitivity, "epsilon": epsilon})


@lru_cache(1024)
def range_of_each(epsilon: float, delta: float, rounds: int) -> float:
    """The largest bounded range of each of so many rounds that together keep within epsilon and delta."""
    if delta:
        return share(ApproxDP(epsilon, delta), rounds, BoundedRange)
    return down(lower(epsilon) / rounds)


def small(delta: Any) -> float:
    """A delta, which may be 0."""
    result = non_negative("delta", delta, toward=0)
    if result >= 1:
        raise ValueError(f"delta={delta!r}: must be < 1")
    return result


def terms_of_pure(sensitivity: Any, epsilon: Any, *, monotonic: Any, neighbors: Neighbors) -> Terms:
    """Of one permute-and-flip, which has no bounded range: selection.md, theorem 3."""
    sensitivity, epsilon = positive("sensitivity", sensitivity, toward=inf), positive("epsilon", epsilon, toward=0)
    return _terms_of_pure(sensitivity, epsilon, reach_of(monotonic), _relation(neighbors))


@lru_cache(1024)
def _terms_of_pure(sensitivity: float, epsilon: float, reach: int, neighbors: Neighbors) -> Terms:
    eta = _eta(down(lower(epsilon)), sensitivity, reach, epsilon)
    return Terms(eta, PureDP(epsilon, neighbors=neighbors), {"sensitivity": sensitivity, "epsilon": epsilon})


def reach_of(monotonic: Any) -> int:
    """How far apart one record may move two scores, in units of the sensitivity."""
    if not isinstance(monotonic, bool | np.bool_):
        raise ValueError(f"monotonic={monotonic!r}: must be True or False")
    return 1 if monotonic else 2


def _relation(neighbors: Any) -> Neighbors:
    if neighbors not in NEIGHBORS:
        raise ValueError(f"neighbors={neighbors!r}: must be one of {', '.join(map(repr, NEIGHBORS))}")
    return cast("Neighbors", neighbors)


def _eta(each: float, sensitivity: float, reach: int, epsilon: float) -> float:
    """range / (reach sensitivity), rounded down: that float, exactly, is what scores are multiplied with."""
    eta = down(lower(each) / (reach * upper(sensitivity)))
    if not 2.0**-900 <= eta <= 2.0**900:
        raise ValueError(
            f"epsilon={epsilon!r}, sensitivity={sensitivity!r}: epsilon / sensitivity must be between 2^-900 and 2^900"
        )
    return eta


# --- scores


def array_of_scores(scores: ArrayLike) -> NDArray[Any]:
    """One-dimensional and not empty, int64 or float64."""
    array = numbers_array("scores", scores)
    if array.ndim != 1:
        raise ValueError(f"scores: shape {array.shape}: must have one dimension")
    if array.size == 0:
        raise ValueError("scores: must hold at least one candidate")
    return array


def tops_of(scores: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """The largest score of every block of candidates, and of all; DomainError on NaN and +inf."""
    find, block = kernels().find_tops_into, kernels().BLOCK
    tops = np.empty(-(-scores.size // block), scores.dtype)
    if scores.size <= CHUNK:
        top = find(scores, tops)
    else:
        run_chunks(lambda i, j: find(scores[i:j], tops[i // block : -(-j // block)]), scores.size, CHUNK)
        top = tops.max().item()
    check_top(top)
    return tops, top


def check_top(top: Any) -> None:
    """DomainError if the largest score, which NaN counts as, is not one."""
    if not top < inf:
        raise DomainError("scores: must not be NaN or +inf, and there is one among them; -inf forbids a candidate")


def some_allowed(top: Any) -> None:
    """DomainError if the largest score is -inf."""
    if top == -inf:
        raise DomainError("scores: are all -inf, which forbids every candidate")


def allowed(scores: NDArray[Any]) -> int:
    """How many candidates are not forbidden."""
    return scores.size if scores.dtype == np.int64 else int(kernels().count_allowed(scores))


def with_floats(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Scores beside others that are floats: the same numbers as float64."""
    if scores.dtype == np.float64:
        return scores
    if scores.size and not -(2**53) <= int(scores.min()) <= int(scores.max()) <= 2**53:
        raise ValueError("scores: floats in one block and integers beyond 2^53 in another: must be all integers")
    return scores.astype(np.float64)


@lru_cache(1)
def kernels() -> Any:
    from .kernels import selection

    return selection
