"""Choosing one of many candidates by their scores: the exponential mechanism, permute-and-flip, top-k.

Scores are int64 or float64 and taken as the exact numbers that they are. Nothing here is a float softmax: selection.md
proves that every choice has exactly its law, kernels/selection.py finds it, and what float64 cannot decide is decided
in integers (exact.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .buckets import Buckets
from .budget import Budget, charge, counting
from .checks import whole
from .flips import draw_head
from .privacy import Neighbors
from .progress import Progress, reporting
from .race import Race
from .randomness import Randomness, fresh_key
from .scores import (
    MOST_CANDIDATES,
    Terms,
    allowed,
    array_of_scores,
    some_allowed,
    terms_of_pure,
    terms_of_range,
    tops_of,
)

T = TypeVar("T")
Method = Literal["auto", "gumbel", "buckets"]
METHODS = ("auto", "gumbel", "buckets")
ScoreBlocks = Callable[[int, int], ArrayLike]

FEW = 1 << 14  # candidates: up to here the race is over before the buckets are set up
LAZY_BLOCK = 1 << 16  # candidates that a function is asked for at a time


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

    scores       an array; -inf forbids a candidate. Or a function (start, stop) -> scores of candidates start, ...,
                 stop - 1, in Python or numba, called block by block for as many as `candidates` says, with `progress`:
                 the scores are never held together
    sensitivity  by how much one record may move any score
    monotonic    whether one record moves all scores in the same direction: eta is then epsilon / sensitivity
    method       "buckets": one pass over an array at the speed of memory. "gumbel": candidate i uses word i, so arrays,
                 functions, and `GumbelMax` over any division into blocks choose the same. "auto": the faster one
    size         so many independent draws, as int64[size]; epsilon and delta are for all of them together

    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP; epsilon-DP for several draws. With a
                 delta, (epsilon, delta)-DP with a larger eta, the largest that `compose` proves
    Proof        selection.md, theorems 1, 2 and 4
    Accuracy     `bounds.exponential_mechanism`
    Cost         O(n): 0.2 ns a candidate by buckets, 1 ns by "gumbel"; hardly more for many draws
    Not covered  what `sensitivity` claims; which scores are -inf, which must be public; what remains in the time of a
                 call (selection.md, "Time")
    Raises       ValueError "epsilon=-1.0: must be > 0 and finite"; DomainError on NaN, +inf, or if all are -inf

    `rng`, `budget` and `neighbors` as in `laplace`.

    Examples
    >>> import fastdp, numpy as np
    >>> fastdp.exponential_mechanism([0, 50, 3], sensitivity=1, epsilon=8.0)
    1
    >>> fastdp.exponential_mechanism(np.arange(1000), sensitivity=1, epsilon=1.0, size=5).shape
    (5,)
    >>> far = fastdp.exponential_mechanism(lambda i, j: -np.arange(i, j), candidates=10**6, sensitivity=1, epsilon=2.0)
    """
    if method not in METHODS:
        raise ValueError(f"method={method!r}: must be one of {', '.join(map(repr, METHODS))}")
    rounds = 1 if size is None else whole("size", size, least=1)
    terms = terms_of_range(sensitivity, epsilon, delta, monotonic=monotonic, rounds=rounds, neighbors=neighbors)
    if callable(scores):
        if method == "buckets" or size is not None:
            name, value = ("method", method) if method == "buckets" else ("size", size)
            raise ValueError(f"{name}={value!r}: needs an array of scores; those of a function are raced, once")
        return int(_choose_lazily("exponential_mechanism", scores, candidates, 1, terms, progress, rng, budget)[0])
    array = _array(scores, candidates, progress)
    if method == "gumbel" and size is not None:
        raise ValueError(f"method={method!r}: makes one draw; many draws from the same scores are made by 'buckets'")
    if method == "buckets" or (method == "auto" and (size is not None or array.size > FEW)):
        buckets = Buckets(array, terms.eta)
        some_allowed(buckets.top)
        drawn = _release("exponential_mechanism", terms, lambda key: buckets.draw(key, rounds), rng, budget)
        return drawn if size is not None else int(drawn[0])
    return int(_choose("exponential_mechanism", array, 1, terms, rng, budget)[0])


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

    eta is epsilon / (2 k sensitivity), or epsilon / (k sensitivity) if `monotonic`; with a delta it is larger. The
    result has no two entries alike. All else as in `exponential_mechanism`.

    Guarantee    epsilon-DP, and k (epsilon/k)^2/8-zCDP; with a delta (epsilon, delta)-DP
    Proof        selection.md, theorems 2 and 4
    Accuracy     `bounds.top_k`
    Cost         O(n + k ln n): about 1.1 ns a candidate for small k
    Not covered  as in `exponential_mechanism`
    Raises       ValueError if k is larger than the number of candidates that are not forbidden

    Examples
    >>> import fastdp
    >>> fastdp.top_k([0, 90, 3, 60, 30], 3, sensitivity=1, epsilon=12.0)
    array([1, 3, 4])
    """
    k = whole("k", k, least=1)
    terms = terms_of_range(sensitivity, epsilon, delta, monotonic=monotonic, rounds=k, neighbors=neighbors)
    if callable(scores):
        return _choose_lazily("top_k", scores, candidates, k, terms, progress, rng, budget)
    array = _array(scores, candidates, progress)
    return _choose("top_k", array, k, terms, rng, budget)


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
    epsilon / (2 sensitivity), or epsilon / sensitivity if `monotonic`. Parameters as in `exponential_mechanism`.

    Guarantee    epsilon-DP. No bounded range: composed with others, the exponential mechanism pays a quarter of its rho
    Proof        selection.md, theorem 3
    Accuracy     `bounds.permute_and_flip`
    Cost         O(n): about 1 ns a candidate
    Not covered  as in `exponential_mechanism`
    Raises       as in `exponential_mechanism`

    Examples
    >>> import fastdp
    >>> fastdp.permute_and_flip([0.5, 60.25, -float("inf")], sensitivity=1, epsilon=8.0)
    1
    """
    terms = terms_of_pure(sensitivity, epsilon, monotonic=monotonic, neighbors=neighbors)
    array = array_of_scores(scores)
    _, top = tops_of(array)
    some_allowed(top)
    return _release("permute_and_flip", terms, lambda key: draw_head(array, top, key, terms.eta), rng, budget)


# --- the race, over an array or over blocks


def _choose(
    mechanism: str, array: NDArray[Any], k: int, terms: Terms, rng: Randomness | None, budget: Budget | None
) -> NDArray[np.int64]:
    tops, top = tops_of(array)
    some_allowed(top)
    if k > 1 and (most := allowed(array)) < k:
        raise ValueError(f"k={k}: must be at most the number of candidates that are not -inf, {most}")

    def draw(key: NDArray[np.uint32]) -> NDArray[np.int64]:
        race = Race(key, terms.eta, k)
        race.run(array, 0, tops, top)
        return race.ranking()

    return _release(mechanism, terms, draw, rng, budget)


def _choose_lazily(
    mechanism: str,
    blocks: ScoreBlocks,
    candidates: int | None,
    k: int,
    terms: Terms,
    progress: Progress,
    rng: Randomness | None,
    budget: Budget | None,
) -> NDArray[np.int64]:
    n = whole("candidates", candidates, least=1)
    if not k <= n <= MOST_CANDIDATES:
        raise ValueError(f"candidates={candidates!r}: must be at least k={k}, and at most 2^62")

    def draw(key: NDArray[np.uint32]) -> NDArray[np.int64]:
        race = Race(key, terms.eta, k)
        with reporting(progress, "choosing") as report:
            for start in range(0, n, LAZY_BLOCK):
                stop = min(start + LAZY_BLOCK, n)
                report(start, n, "")
                array = array_of_scores(blocks(start, stop))
                if array.size != stop - start:
                    raise ValueError(
                        f"scores: {array.size} of them for candidates {start} to {stop - 1}: must be {stop - start}"
                    )
                race.run(array, start, *tops_of(array))
            report(n, n, "")
        ranking = race.ranking()
        if ranking.size < k:
            raise ValueError(f"k={k}: must be at most the number of candidates that are not -inf, {ranking.size}")
        return ranking

    return _release(mechanism, terms, draw, rng, budget, lazily=True)


# --- pieces


def _array(scores: Any, candidates: int | None, progress: Progress) -> NDArray[Any]:
    if candidates is not None or progress is not None:
        name, value = ("candidates", candidates) if candidates is not None else ("progress", progress)
        raise ValueError(f"{name}={value!r}: is for scores that a function produces; an array is done at once")
    return array_of_scores(scores)


def _release(
    mechanism: str,
    terms: Terms,
    draw: Callable[[NDArray[np.uint32]], T],
    rng: Randomness | None,
    budget: Budget | None,
    *,
    lazily: bool = False,
) -> T:
    """Charge and draw. Lazy scores may still turn out wrong after the first draws, of which nothing has left by then:
    that charge is final when the choice is made."""
    guarantee = terms.guarantee
    if guarantee.neighbors == "replace-one" and not counting(budget):
        return draw(fresh_key(rng))
    with charge(budget, guarantee, mechanism, terms.parameters) as final:
        key = fresh_key(rng)
        if not lazily:
            final()
        chosen = draw(key)
        final()
        return chosen
