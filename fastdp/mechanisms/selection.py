"""Choosing one of many candidates by their scores: the exponential mechanism, permute-and-flip, top-k.

Scores are int64 or float64 and taken as the exact numbers that they are. Nothing here is a float softmax: selection.md
proves that every choice has exactly its law. Buckets or Gumbel-max find it (buckets.py, gumbel_max.py), and what
float64 cannot decide is decided in integers (../randomness/exact_draws.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import layout
from ..privacy.budget import Budget
from ..privacy.guarantees import Neighbors
from ..randomness.charged_keys import is_plain
from ..randomness.keys import Key, Randomness, fresh_key
from ..support.boundary import quick_boundary
from ..support.checks import integer, one_of
from ..support.parameters import MOST_CANDIDATES, MOST_CHOSEN, MOST_DRAWS
from ..support.progress import Progress, reporting
from ..support.shown import shown
from .buckets import Buckets
from .gumbel_max import GumbelState
from .permute_and_flip import draw_head, draw_head_of_few
from .scores import (
    SelectionPlan,
    allowed,
    array_of_scores,
    changed,
    check_scores,
    plan_exponential,
    plan_permute_and_flip,
    some_allowed,
    tops_of,
)

Method = Literal["auto", "gumbel", "buckets"]
METHODS = ("auto", "gumbel", "buckets")
ScoreBlocks = Callable[[int, int], ArrayLike]

FEW = 1 << 14  # candidates: up to here Gumbel-max is done before the buckets are set up
LAZY_BLOCK = 1 << 20  # candidates that a function is asked for at a time


@overload
def exponential_mechanism(
    scores: ArrayLike | ScoreBlocks, *, sensitivity: float, epsilon: float, delta: float = 0.0,
    monotonic: bool = False, method: Method = "auto", size: None = None, candidates: int | None = None,
    progress: Progress = None, rng: Randomness | None = None, budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> int: ...  # fmt: skip
@overload
def exponential_mechanism(
    scores: ArrayLike, *, sensitivity: float, epsilon: float, delta: float = 0.0, monotonic: bool = False,
    method: Method = "auto", size: int, candidates: int | None = None, progress: Progress = None,
    rng: Randomness | None = None, budget: Budget | None = None, neighbors: Neighbors = "replace-one",
) -> NDArray[np.int64]: ...  # fmt: skip
@quick_boundary
def exponential_mechanism(
    scores: ArrayLike | ScoreBlocks,
    *,
    sensitivity: float,
    epsilon: float,
    delta: float = 0.0,
    monotonic: bool = False,
    method: Method = "auto",
    size: int | None = None,
    candidates: int | None = None,
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Any:
    """Choose a candidate with probability proportional to exp(eta score), eta = epsilon / (2 sensitivity).

    Parameters
    ----------
    scores : array_like of int or float, or callable
        One score for each candidate; -inf forbids a candidate. Or a function (start, stop) -> scores of candidates
        start, ..., stop - 1, in Python or numba, called for 2^20 candidates at a time until `candidates` of them are
        done: they are never held together. All its blocks must be integers, or all floats.
    sensitivity : float > 0
        By how much one record may change any score.
    epsilon : float > 0
        The bounded range of the choice, which is epsilon-DP.
    delta : float in [0, 1)
        With a delta above 0 the guarantee is (epsilon, delta)-DP and eta is larger, the largest that `compose` proves.
    monotonic : bool
        Whether one record changes all scores in the same direction, as it does counts under add-remove, but not under
        replace-one, which raises one count and lowers another; eta is then epsilon / sensitivity.
    method : {"auto", "gumbel", "buckets"}
        "buckets": one pass over an array at the speed of memory. "gumbel": candidate i uses word i, so arrays,
        functions, and `GumbelMax` over any division into blocks choose the same; one draw. "auto": the faster.
    size : int, optional
        So many independent draws from an array; epsilon and delta are for all of them together.
    candidates : int, optional
        The number of candidates, where a function produces their scores; None for an array.
    progress : bool or callable, optional
        For functions: True for a bar, or a callable (done, total, what).
    rng : Randomness, optional
        For tests; by default every call draws a fresh key from the operating system.
    budget : Budget, optional
        What is charged; by default the budget whose block is open.
    neighbors : {"replace-one", "add-remove"}
        The relation under which `sensitivity` holds.

    Returns
    -------
    int or numpy.ndarray
        The position of the candidate, counted from 0 (in pandas: scores.index[position]); int64[size] with a size.

    Raises
    ------
    ValueError
        "epsilon=-1.0: must be > 0 and finite".
    DomainError
        A score is NaN or +inf, or all are -inf.

    Notes
    -----
    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP; epsilon-DP for several draws. With a
                 delta, (epsilon, delta)-DP
    Proof        selection.md, theorems 1, 2 and 4
    Accuracy     `bounds.exponential_mechanism`
    Cost         O(n): 0.2 ns a candidate by buckets, 1 ns by "gumbel"; 0.2 to 0.6 us for each further draw
    Not covered  what `sensitivity` claims; which scores are -inf, which must be public; what remains in the time of a
                 call (selection.md, "Time")

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> fastdp.exponential_mechanism([0, 50, 3], sensitivity=1, epsilon=8.0)
    1
    >>> fastdp.exponential_mechanism(np.arange(1000), sensitivity=1, epsilon=1.0, size=5).shape
    (5,)
    >>> far = fastdp.exponential_mechanism(lambda i, j: -np.arange(i, j), candidates=10**6, sensitivity=1, epsilon=2.0)
    """
    one_of("method", method, METHODS)
    rounds = 1 if size is None else integer("size", size, least=1, most=MOST_DRAWS)
    plan = plan_exponential(sensitivity, epsilon, delta, monotonic=monotonic, rounds=rounds, neighbors=neighbors)
    if size is not None:
        plan = plan.stating(size=rounds)
    if callable(scores):
        if method == "buckets":
            raise ValueError(
                f"method={method!r}: must be 'auto' or 'gumbel' for scores from a function, read block by block"
            )
        if size is not None:
            raise ValueError(f"size={shown(size)}: must be None for scores from a function: they make one draw")
        return int(_first_of_blocks(scores, candidates, 1, plan, progress, budget, rng)[0])
    if method == "gumbel" and size is not None:
        raise ValueError(f"size={shown(size)}: must be None for method='gumbel'; 'buckets' makes many draws at once")
    array = _array(scores, candidates, progress)
    if method == "gumbel" or (method == "auto" and size is None and array.size <= FEW):
        if array.size <= FEW and is_plain(budget, rng):
            return _first_of_few(array, fresh_key(None), plan.eta)
        with plan.keys(budget, rng) as keys:
            array = keys.reads(array, plan.eta)
            if array.size <= FEW:
                check_scores(array)
                return _first_of_few(array, keys.take(), plan.eta)
            tops, top = tops_of(array)
            some_allowed(top)
            return _first_of(array, tops, top, keys.take(), plan.eta)
    with plan.keys(budget, rng) as keys:
        array = keys.reads(array, plan.eta, times=rounds)
        buckets = Buckets(array, plan.eta)
        some_allowed(buckets.top)
        drawn = buckets.draw(keys.take(), rounds)
    return drawn if size is not None else int(drawn[0])


@quick_boundary
def top_k(
    scores: ArrayLike | ScoreBlocks,
    k: int,
    *,
    sensitivity: float,
    epsilon: float,
    delta: float = 0.0,
    monotonic: bool = False,
    candidates: int | None = None,
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> NDArray[np.int64]:
    """Choose k candidates, best first: k rounds of the exponential mechanism without replacement, in one pass.

    eta is epsilon / (2 k sensitivity), or epsilon / (k sensitivity) if `monotonic`; with a delta it is larger.

    Parameters
    ----------
    scores : array_like of int or float, or callable
        As in `exponential_mechanism`.
    k : int >= 1
        How many candidates to choose.
    sensitivity : float > 0
        By how much one record may change any score.
    epsilon : float > 0
        For all k choices together.
    delta : float in [0, 1)
        For all k choices together; above 0 the guarantee is (epsilon, delta)-DP and eta is larger.
    monotonic : bool
        Whether one record changes all scores in the same direction.
    candidates : int, optional
        The number of candidates, where a function produces their scores; None for an array.
    progress : bool or callable, optional
        For functions: True for a bar, or a callable (done, total, what).
    rng : Randomness, optional
        For tests; by default every call draws a fresh key from the operating system.
    budget : Budget, optional
        What is charged; by default the budget whose block is open.
    neighbors : {"replace-one", "add-remove"}
        The relation under which `sensitivity` holds.

    Returns
    -------
    numpy.ndarray
        The positions of the candidates, int64[k], no two of them alike.

    Raises
    ------
    ValueError
        k is larger than the number of candidates that are not forbidden.
    DomainError
        A score is NaN or +inf, or all are -inf.

    Notes
    -----
    Guarantee    epsilon-DP, and k (epsilon/k)^2/8-zCDP; with a delta (epsilon, delta)-DP
    Proof        selection.md, theorems 2 and 4
    Accuracy     `bounds.top_k`
    Cost         O(n + k ln n): about 1.1 ns a candidate for small k
    Not covered  as in `exponential_mechanism`

    Examples
    --------
    >>> import fastdp
    >>> fastdp.top_k([0, 90, 3, 60, 30], 3, sensitivity=1, epsilon=12.0)
    array([1, 3, 4])
    """
    k = integer("k", k, least=1, most=MOST_CHOSEN)
    plan = plan_exponential(sensitivity, epsilon, delta, monotonic=monotonic, rounds=k, neighbors=neighbors)
    plan = plan._replace(mechanism="top_k").stating(k=k)
    if callable(scores):
        return _first_of_blocks(scores, candidates, k, plan, progress, budget, rng)
    return _first_of_array(_array(scores, candidates, progress), k, plan, budget, rng)


@quick_boundary
def permute_and_flip(
    scores: ArrayLike,
    *,
    sensitivity: float,
    epsilon: float,
    monotonic: bool = False,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> int:
    """Choose a candidate by permute-and-flip, whose score is in expectation never below the exponential mechanism's.

    In random order, each candidate is taken with probability exp(eta (score - best)), until one is; eta is
    epsilon / (2 sensitivity), or epsilon / sensitivity if `monotonic`.

    Parameters
    ----------
    scores : array_like of int or float
        One score for each candidate; -inf forbids a candidate.
    sensitivity : float > 0
        By how much one record may change any score.
    epsilon : float > 0
        The choice is epsilon-DP.
    monotonic : bool
        Whether one record changes all scores in the same direction.
    rng : Randomness, optional
        For tests; by default every call draws a fresh key from the operating system.
    budget : Budget, optional
        What is charged; by default the budget whose block is open.
    neighbors : {"replace-one", "add-remove"}
        The relation under which `sensitivity` holds.

    Returns
    -------
    int
        The position of the candidate, counted from 0.

    Raises
    ------
    ValueError
        "epsilon=-1.0: must be > 0 and finite".
    DomainError
        A score is NaN or +inf, or all are -inf.

    Notes
    -----
    Guarantee    epsilon-DP. No bounded range: composed with others, the exponential mechanism pays a quarter of its rho
    Proof        selection.md, theorem 3
    Accuracy     `bounds.permute_and_flip`
    Cost         O(n): about 1 ns a candidate
    Not covered  as in `exponential_mechanism`

    Examples
    --------
    >>> import fastdp
    >>> fastdp.permute_and_flip([0.5, 60.25, -float("inf")], sensitivity=1, epsilon=8.0)
    1
    """
    plan = plan_permute_and_flip(sensitivity, epsilon, monotonic=monotonic, neighbors=neighbors)
    array = array_of_scores(scores)
    if array.size <= layout.CANDIDATE_BLOCK and is_plain(budget, rng):
        check_scores(array)
        return draw_head_of_few(array, fresh_key(None), plan.eta)
    with plan.keys(budget, rng) as keys:
        array = keys.reads(array)
        _, top = tops_of(array)
        some_allowed(top)
        return draw_head(array, top, keys.take(), plan.eta)


def draw_one(array: NDArray[Any], key: Key, eta: float) -> int:
    """One choice, for mechanisms that validate and charge themselves; not all scores may be -inf."""
    if array.size > FEW:
        return int(Buckets(array, eta).draw(key, 1)[0])
    return _first_of_few(array, key, eta)


def _all_of(ranking: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """k candidates, which are found unless their scores changed after they were counted."""
    if ranking.size < k:
        raise changed()
    return ranking


# --- Gumbel-max, over an array or over blocks


def _first_of_few(scores: NDArray[Any], key: Key, eta: float) -> int:
    """The first of an array: mostly one alone may be, and needs no state. DomainError where scores are none."""
    first: int = _kernels().choose_gumbel(scores, key, eta, layout.SLACK)
    if first >= 0:
        return first
    tops, top = tops_of(scores)
    some_allowed(top)
    return _first_of(scores, tops, top, key, eta)  # from the same words


def _first_of(scores: NDArray[Any], tops: NDArray[Any], top: Any, key: Key, eta: float) -> int:
    """The first of an array, some of which are not forbidden; `tops` and `top` as `tops_of` found them."""
    state = GumbelState(key, eta, 1)
    state.add(scores, 0, tops, top)
    return int(_all_of(state.ranking(), 1)[0])


def _first_of_array(
    array: NDArray[Any], k: int, plan: SelectionPlan, budget: Budget | None, rng: Randomness | None
) -> NDArray[np.int64]:
    """The k best of an array; errors come before a key is drawn."""
    with plan.keys(budget, rng) as keys:
        array = keys.reads(array, plan.eta, times=k)
        tops, top = tops_of(array)
        some_allowed(top)
        if k > 1:
            _enough(k, allowed(array))
        state = GumbelState(keys.take(), plan.eta, k)
        state.add(array, 0, tops, top)
        return _all_of(state.ranking(), k)


def _first_of_blocks(
    blocks: ScoreBlocks,
    candidates: int | None,
    k: int,
    plan: SelectionPlan,
    progress: Progress,
    budget: Budget | None,
    rng: Randomness | None,
) -> NDArray[np.int64]:
    """The k best of what a function produces. Its code runs between draws, so the charge is final before the first."""
    if candidates is None:
        raise ValueError("candidates=None: must be the number of candidates, where a function produces their scores")
    n = integer("candidates", candidates, least=1)
    if not k <= n <= MOST_CANDIDATES:
        raise ValueError(f"candidates={shown(candidates)}: must be at least k={k}, and at most 2^40")
    with plan.keys(budget, rng) as keys:
        state, found = GumbelState(keys.take_ahead(), plan.eta, k), 0  # nothing is drawn yet
        with reporting(progress, "choosing") as report:
            for start in range(0, n, LAZY_BLOCK):
                stop = min(start + LAZY_BLOCK, n)
                report(start, n, f"candidates {start:,} to {stop - 1:,}")
                array = array_of_scores(blocks(start, stop), empty=True)
                if array.size != stop - start:
                    raise ValueError(
                        f"scores: {array.size} for candidates {start} to {stop - 1}: must be {stop - start}"
                    )
                array = keys.reads(array, plan.eta, times=k)
                state.admit(array.dtype)
                tops, top = tops_of(array)
                found += allowed(array) if found < k else 0
                if stop == n:
                    some_allowed(0 if found else -inf)
                    _enough(k, found)
                if top > -inf:
                    keys.commit()
                    state.add(array, start, tops, top)
            report(n, n, "")
        return state.ranking()


def _enough(k: int, found: int) -> None:
    if found < k:
        raise ValueError(f"k={k}: must be at most the number of candidates that are not -inf, {found}")


def _array(scores: Any, candidates: int | None, progress: Progress) -> NDArray[Any]:
    if candidates is None and progress is None:
        return array_of_scores(scores)
    name, value = ("progress", progress) if candidates is None else ("candidates", candidates)
    raise ValueError(f"{name}={shown(value)}: must be None for an array; it is for scores that a function produces")


@lru_cache(1)
def _kernels() -> Any:
    from ..kernels import gumbel_max

    return gumbel_max
