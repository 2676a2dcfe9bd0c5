"""Choosing one of many candidates by their scores: the exponential mechanism, permute-and-flip, top-k.

Scores are int64 or float64 and taken as the exact numbers that they are. Nothing here is a float softmax: selection.md
proves that every choice has exactly its law, kernels/selection.py finds it, and what float64 cannot decide is decided
in integers (exact.py).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.budget import Budget, charge, counting
from ..privacy.guarantees import Neighbors
from ..randomness.keys import Randomness, fresh_key
from ..support.checks import integer, one_of
from ..support.progress import Progress, reporting
from .buckets import Buckets
from .gumbel_max import Race
from .permute_and_flip import draw_head
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
Key = NDArray[np.uint32]
Method = Literal["auto", "gumbel", "buckets"]
METHODS = ("auto", "gumbel", "buckets")
ScoreBlocks = Callable[[int, int], ArrayLike]

FEW = 1 << 14  # candidates: up to here the race is over before the buckets are set up
LAZY_BLOCK = 1 << 20  # candidates that a function is asked for at a time


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
                 stop - 1, in Python or numba, called for 2^20 candidates at a time until `candidates` of them are done:
                 they are never held together. All its blocks must be integers, or all floats
    sensitivity  by how much one record may move any score
    monotonic    whether one record moves all scores in the same direction, as it does counts under add-remove, but not
                 under replace-one, which moves one count up and one down; eta is then epsilon / sensitivity
    method       "buckets": one pass over an array at the speed of memory. "gumbel": candidate i uses word i, so arrays,
                 functions, and `GumbelMax` over any division into blocks choose the same; one draw. "auto": the faster
    size         so many independent draws from an array, as int64[size]; epsilon and delta are for all of them together
    progress     for functions: True for a bar, or a callable (done, total, what)
    Returns      the position of the candidate, counted from 0 (in pandas: scores.index[position])

    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP; epsilon-DP for several draws. With a
                 delta, (epsilon, delta)-DP with a larger eta, the largest that `compose` proves
    Proof        selection.md, theorems 1, 2 and 4
    Accuracy     `bounds.exponential_mechanism`
    Cost         O(n): 0.2 ns a candidate by buckets, 1 ns by "gumbel"; 0.2 to 0.6 us for each further draw
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
    one_of("method", method, METHODS)
    rounds = 1 if size is None else integer("size", size, least=1)
    terms = terms_of_range(sensitivity, epsilon, delta, monotonic=monotonic, rounds=rounds, neighbors=neighbors)
    if size is not None:
        terms.parameters["size"] = rounds
    if callable(scores):
        if method == "buckets":
            raise ValueError(
                f"method={method!r}: must be 'auto' or 'gumbel' for scores from a function, which are raced"
            )
        if size is not None:
            raise ValueError(f"size={size!r}: must be None for scores from a function: they make one draw")
        return int(_choose_lazily("exponential_mechanism", scores, candidates, 1, terms, progress, rng, budget)[0])
    if method == "gumbel" and size is not None:
        raise ValueError(f"size={size!r}: must be None for method='gumbel'; 'buckets' makes many draws at once")
    array = _array(scores, candidates, progress)
    if method == "gumbel" or (method == "auto" and size is None and array.size <= FEW):
        return int(_choose("exponential_mechanism", array, 1, terms, rng, budget)[0])

    def prepare() -> Callable[[Key], NDArray[np.int64]]:
        buckets = Buckets(array, terms.eta)
        some_allowed(buckets.top)
        return lambda key: buckets.draw(key, rounds)

    drawn = _release("exponential_mechanism", terms, prepare, rng, budget)
    return drawn if size is not None else int(drawn[0])


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
    k = integer("k", k, least=1)
    terms = terms_of_range(sensitivity, epsilon, delta, monotonic=monotonic, rounds=k, neighbors=neighbors)
    terms.parameters["k"] = k
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
    epsilon / (2 sensitivity), or epsilon / sensitivity if `monotonic`. Takes an array; its parameters are as in
    `exponential_mechanism`.

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

    def prepare() -> Callable[[Key], int]:
        _, top = tops_of(array)
        some_allowed(top)
        return lambda key: draw_head(array, top, key, terms.eta)

    return _release("permute_and_flip", terms, prepare, rng, budget)


# --- the race, over an array or over blocks


def _choose(
    mechanism: str, array: NDArray[Any], k: int, terms: Terms, rng: Randomness | None, budget: Budget | None
) -> NDArray[np.int64]:
    def prepare() -> Callable[[Key], NDArray[np.int64]]:
        tops, top = tops_of(array)
        some_allowed(top)
        if k > 1 and (most := allowed(array)) < k:
            raise ValueError(f"k={k}: must be at most the number of candidates that are not -inf, {most}")

        return lambda key: _first(array, tops, top, key, terms.eta, k)

    return _release(mechanism, terms, prepare, rng, budget)


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
    if candidates is None:
        raise ValueError("candidates=None: must be the number of candidates, where a function produces their scores")
    n = integer("candidates", candidates, least=1)
    if not k <= n <= MOST_CANDIDATES:
        raise ValueError(f"candidates={candidates!r}: must be at least k={k}, and at most 2^62")

    def race_of(key: Key) -> Race:
        """Errors here depend on the scores alone, never on what was drawn."""
        race, found = Race(key, terms.eta, k), 0
        with reporting(progress, "choosing") as report:
            for start in range(0, n, LAZY_BLOCK):
                stop = min(start + LAZY_BLOCK, n)
                report(start, n, f"candidates {start:,} to {stop - 1:,}")
                array = array_of_scores(blocks(start, stop), empty=True)
                if array.size != stop - start:
                    raise ValueError(
                        f"scores: {array.size} for candidates {start} to {stop - 1}: must be {stop - start}"
                    )
                race.admit(array.dtype)
                race.run(array, start, *tops_of(array))
                found += allowed(array) if found < k else 0
            report(n, n, "")
        if not found:
            some_allowed(-inf)
        if found < k:
            raise ValueError(f"k={k}: must be at most the number of candidates that are not -inf, {found}")
        return race

    if terms.guarantee.neighbors == "replace-one" and not counting(budget):
        return race_of(fresh_key(rng)).ranking()
    with charge(budget, terms.guarantee, mechanism, terms.parameters) as final:
        race = race_of(fresh_key(rng))  # what is drawn in here stays in here if the scores turn out wrong
        final()
        return race.ranking()


# --- pieces


def draw_one(array: NDArray[Any], key: Key, eta: float) -> int:
    """One choice, for mechanisms that validate and charge themselves; not all scores may be -inf."""
    if array.size > FEW:
        return int(Buckets(array, eta).draw(key, 1)[0])
    return int(_first(array, *tops_of(array), key, eta, 1)[0])


def _first(array: NDArray[Any], tops: NDArray[Any], top: Any, key: Key, eta: float, k: int) -> NDArray[np.int64]:
    """The k that arrive first."""
    race = Race(key, eta, k)
    race.admit(array.dtype)
    race.run(array, 0, tops, top)
    return race.ranking()


def _array(scores: Any, candidates: int | None, progress: Progress) -> NDArray[Any]:
    for name, value in (("candidates", candidates), ("progress", progress)):
        if value is not None:
            raise ValueError(f"{name}={value!r}: must be None for an array; it is for scores that a function produces")
    return array_of_scores(scores)


def _release(
    mechanism: str,
    terms: Terms,
    prepare: Callable[[], Callable[[Key], T]],
    rng: Randomness | None,
    budget: Budget | None,
) -> T:
    """Reserve, look at the scores, draw."""
    if terms.guarantee.neighbors == "replace-one" and not counting(budget):
        return prepare()(fresh_key(rng))
    with charge(budget, terms.guarantee, mechanism, terms.parameters) as final:
        draw = prepare()
        key = fresh_key(rng)
        final()
        return draw(key)
