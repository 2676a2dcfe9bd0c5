"""What every selection starts from: scores, checked, and the plan of the choice.

Scores are one-dimensional, int64 or float64; a NaN or +inf is refused, -inf forbids its candidate. The plan states how
strongly a score counts (eta) and what the choice then guarantees.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import layout
from ..privacy.budget import Budget
from ..privacy.composition import compose, share
from ..privacy.guarantees import ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP
from ..privacy.releases import RowParameters
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..support import parameters
from ..support.checks import MAX_INT64, are_nested, numbers_array, remembered
from ..support.errors import DomainError
from ..support.rounding import down, lower, upper
from ..support.shown import shown
from ..support.threads import run_chunks

MOST_CANDIDATES = 2**62
CHUNK = 1 << 20  # candidates that one thread reads at a time: 0.1 ms


class SelectionPlan(NamedTuple):
    """How a choice is called, how strongly scores count, what the choice guarantees, and the parameters of that."""

    mechanism: str
    eta: float
    guarantee: Guarantee
    parameters: Mapping[str, Any]

    def stating(self, **more: Any) -> SelectionPlan:
        """The same with more in the row of a budget."""
        return self._replace(parameters={**self.parameters, **more})

    def keys(self, budget: Budget | None, rng: Randomness | None) -> ChargedKeys:
        """The keys of the choice, to be charged."""
        return ChargedKeys(self.mechanism, self.guarantee, self.parameters, budget, rng)


def plan_exponential(
    sensitivity: Any, epsilon: Any, delta: Any, *, monotonic: Any, rounds: int, neighbors: Neighbors
) -> SelectionPlan:
    """Of `rounds` exponential mechanisms that share epsilon and delta: selection.md, theorem 4."""
    return _plan("exponential_mechanism", sensitivity, epsilon, delta, monotonic, rounds, neighbors)


def plan_permute_and_flip(sensitivity: Any, epsilon: Any, *, monotonic: Any, neighbors: Neighbors) -> SelectionPlan:
    """Of one permute-and-flip, which has no bounded range: selection.md, theorem 3."""
    return _plan("permute_and_flip", sensitivity, epsilon, 0.0, monotonic, 0, neighbors)


@remembered
def _plan(
    mechanism: str, sensitivity: Any, epsilon: Any, delta: Any, monotonic: Any, rounds: int, neighbors: Neighbors
) -> SelectionPlan:
    delta = parameters.delta_or_none(delta)
    sensitivity_, epsilon_ = parameters.sensitivity(sensitivity), parameters.epsilon(epsilon)
    parameters.neighbors(neighbors)
    eta, guarantee = _eta_and_guarantee(sensitivity_, epsilon_, delta, pair_factor(monotonic), rounds, neighbors)
    if not 2.0**-900 <= eta <= 2.0**900:
        raise ValueError(
            f"epsilon={shown(epsilon)}, sensitivity={shown(sensitivity)}: must be such that the factor of the "
            f"scores, {eta!r}, is between 2^-900 and 2^900"
        )
    row: dict[str, Any] = {"sensitivity": sensitivity_, "epsilon": epsilon_}
    if delta:
        row["delta"] = delta
    if monotonic:
        row["monotonic"] = True
    return SelectionPlan(mechanism, eta, guarantee, RowParameters(row))


@lru_cache(1024)
def _eta_and_guarantee(
    sensitivity: float, epsilon: float, delta: float, factor: int, rounds: int, neighbors: Neighbors
) -> tuple[float, Guarantee]:
    """0 rounds stand for permute-and-flip."""
    each = range_of_each(epsilon, delta, max(rounds, 1))
    guarantee: Guarantee = BoundedRange(each, neighbors=neighbors)
    if not rounds:
        guarantee = PureDP(epsilon, neighbors=neighbors)
    elif delta:
        concentrated = compose((guarantee, rounds)).to_zcdp()
        guarantee = ApproxDP(epsilon, delta, neighbors=neighbors) & concentrated
    elif rounds > 1:
        guarantee = PureDP(epsilon, neighbors=neighbors) & compose((guarantee, rounds)).to_zcdp()
    else:
        guarantee = BoundedRange(epsilon, neighbors=neighbors)
    return eta_of(each, sensitivity, factor), guarantee


@lru_cache(1024)
def range_of_each(epsilon: float, delta: float, rounds: int) -> float:
    """The largest bounded range of each of so many rounds that together keep within epsilon and delta."""
    if delta:
        return share(ApproxDP(down(lower(epsilon)), down(lower(delta))), rounds, BoundedRange)
    return down(lower(epsilon) / rounds)


def pair_factor(monotonic: Any) -> int:
    """The sensitivity of the difference of two scores, in units of the sensitivity of one."""
    if not isinstance(monotonic, bool | np.bool_):
        raise ValueError(f"monotonic={shown(monotonic)}: must be True or False")
    return 1 if monotonic else 2


def eta_of(each: float, sensitivity: float, factor: int) -> float:
    """range / (factor sensitivity), rounded down: that float, exactly, is what scores are multiplied with."""
    return down(lower(each) / (factor * upper(sensitivity)))


# --- scores


def array_of_scores(scores: ArrayLike, *, empty: bool = False) -> NDArray[Any]:
    """One-dimensional and, unless allowed, not empty; int64 or float64."""
    array = numbers_array("scores", scores)
    if array is not scores and array.dtype == np.int64 and array.size:
        given = np.asarray(scores)
        if given.dtype.kind == "u" and given.max() > MAX_INT64:
            raise DomainError(
                "scores: unsigned integers beyond 2^63 - 1: must be below; subtract a constant from all, which changes "
                "no choice"
            )
    if array.ndim != 1:
        wrong = DomainError if are_nested(scores, array, 1) else ValueError
        raise wrong(f"scores: shape {array.shape}: must have one dimension")
    if array.size == 0 and not empty:
        raise ValueError("scores: must hold at least one candidate")
    return array


def check_scores(scores: NDArray[Any]) -> None:
    """DomainError on NaN and +inf, and if all are -inf."""
    if scores.dtype.kind == "f":
        top = _kernels().find_top(scores)
        check_top(top)
        some_allowed(top)


def tops_of(scores: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """The largest score of every block of candidates, and of all; DomainError on NaN and +inf."""
    find = _kernels().find_tops_into
    n = scores.size
    tops = np.empty(-(-n // layout.CANDIDATE_BLOCK), scores.dtype)
    if n <= CHUNK:
        top = find(scores, tops)
    else:
        run_chunks(lambda i, j: find(scores[i:j], tops[blocks_of(i, j)]), n, CHUNK)
        top = tops.max().item()
    check_top(top)
    return tops, top


def blocks_of(start: int, stop: int) -> slice:
    """Where the blocks of candidates start, ..., stop - 1 stand in an array of one entry a block."""
    return slice(start // layout.CANDIDATE_BLOCK, -(-stop // layout.CANDIDATE_BLOCK))


def check_top(top: Any) -> None:
    """DomainError if the largest score, which NaN counts as, is not one."""
    if not top < inf:
        raise DomainError(
            "scores: must not be NaN or +inf, and one of them is; -inf forbids a candidate, which must be public"
        )


def some_allowed(top: Any) -> None:
    """DomainError if the largest score is -inf."""
    if top == -inf:
        raise DomainError("scores: must not all be -inf, which forbids every candidate")


def changed() -> DomainError:
    """What to raise where scores are read again and are not what they were."""
    return DomainError("scores: must not change during the call, and they did")


def check_again(scores: NDArray[Any], top: Any) -> None:
    """DomainError unless these candidates, which were not forbidden, have scores of at most `top` still."""
    if not (
        all(-inf < score <= top for score in scores.tolist())
        if scores.size <= 64  # half a microsecond, and numpy takes four
        else bool(((scores > -inf) & (scores <= top)).all())
    ):
        raise changed()


def allowed(scores: NDArray[Any]) -> int:
    """How many candidates are not forbidden."""
    return scores.size if scores.dtype == np.int64 else int(_kernels().count_allowed(scores))


@lru_cache(1)
def _kernels() -> Any:
    from ..kernels import scores

    return scores
