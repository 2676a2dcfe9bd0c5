"""Cases of the selection room: one of many candidates, the best k, many draws, scores that come in blocks.

Scores are N(0, 10) and sensitivity is 1. Both sides choose by the same eta: epsilon / (2 sensitivity), and in each of k
rounds or draws epsilon / (2 k sensitivity). numpy's ways are neither exact nor secure. OpenDP and diffprivlib take
about as long for a candidate where there are fewer, and are given fewer where a call takes long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import fastdp

from ..peers.inputs import float_scores
from .registry import Call, Case, Pair, Side, beside, faster, make_case, within
from .traffic import NUMBERS, Traffic

M, FEW = 1_000_000, 1_000  # candidates
PEER_M = 100_000
OPENDP_M, OPENDP_CALLS = 10_000, 50  # from draw to draw its time varies 50-fold: the least of single calls means little
K, DRAWS = 10, 1_000
BLOCK = 1 << 16  # candidates offered at a time
CHECKED = 8_000  # choices that a test reads
INPUTS = {"all equal": 0.0, "one at +5": 5.0, "one at +20": 20.0, "one at +100": 100.0}

Scores = Callable[[int], Any]
Choose = Callable[[Any], Any]


def int_scores(n: int) -> Any:
    return np.rint(float_scores(n)).astype(np.int64)


@cache
def equal_scores(n: int) -> Any:
    """Filled: an array of np.zeros would be one page of memory. All inputs of `_with_one_at` are made in this array, so
    that they differ in nothing else, such as what a cache holds of them."""
    return np.full(n, 1.0)


# --- fastdp


def exponential(**arguments: Any) -> Choose:
    return lambda scores: fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=1.0, **arguments)


def _with_one_at(distance: float) -> Choose:
    choose = exponential()

    def set_and_choose(scores: Any) -> Any:
        scores[scores.size // 2] = 1 + distance
        return choose(scores)

    return set_and_choose


def _top_k(epsilon: float) -> Choose:
    return lambda scores: fastdp.top_k(scores, K, sensitivity=1, epsilon=epsilon)


def _permute_and_flip(scores: Any) -> Any:
    return fastdp.permute_and_flip(scores, sensitivity=1, epsilon=1.0)


def _lazily(scores: Any) -> Any:
    """The function only reads its scores from an array: what is timed is the choosing."""
    return exponential(candidates=scores.size)(lambda start, stop: scores[start:stop])


def _offered(scores: Any) -> Any:
    noisy_max = fastdp.GumbelMax(sensitivity=1, epsilon=1.0)
    for start in range(0, scores.size, BLOCK):
        noisy_max.offer(scores[start : start + BLOCK], first_index=start)
    return noisy_max.winner()


def on(scores: Scores, choose: Choose) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        array = scores(n)
        return lambda: choose(array)

    return make


# --- the others


def numpy_choice(name: str, scores: Scores, choose: Callable[[Any, np.random.Generator], Any]) -> Side:
    def make(n: int) -> Call:
        array, rng = scores(n), np.random.default_rng()
        return lambda: choose(array, rng)

    return Side(name, make)


def gumbel(scores: Any, rng: np.random.Generator) -> Any:
    return np.argmax(scores / 2 + rng.gumbel(size=scores.size))


def exponentials(scores: Any, rng: np.random.Generator) -> Any:
    """The same law as `gumbel`, several times as fast: a Gumbel number is -log of an exponential one."""
    noisy = rng.standard_exponential(scores.size)
    np.log(noisy, out=noisy)
    noisy *= -2
    noisy += scores
    return np.argmax(noisy)


def _noisy_max(scores: Any, rng: np.random.Generator) -> Any:
    return np.argmax(scores / 2 + rng.exponential(size=scores.size))


def softmax(scores: Any, rng: np.random.Generator) -> Any:
    sums = np.cumsum(np.exp((scores - scores.max()) / 2))
    return np.searchsorted(sums, rng.random() * sums[-1], side="right")


def _softmax_draws(scores: Any, rng: np.random.Generator) -> Any:
    sums = np.cumsum(np.exp((scores - scores.max()) / (2 * DRAWS)))
    return np.searchsorted(sums, rng.random(DRAWS) * sums[-1], side="right")


# --- cases

RACED = Traffic(read=8, words=0.5, held=8)  # a Gumbel number for each candidate: 32 bits, but for a few


def choices(scores: Scores, choose: Choose, n: int, *, at_once: bool = False) -> Callable[[int], Any]:
    def drawn(size: int) -> tuple[Any, Any]:
        """The scores, and for each choice a row: the winner, or the k best."""
        array = scores(min(size, n))
        first = np.atleast_1d(choose(array))
        if at_once:
            return array, first[:, None]
        return array, np.stack([first, *(np.atleast_1d(choose(array)) for _ in range(CHECKED - 1))])

    return drawn


def _case(
    name: str,
    work: str,
    n: int,
    choose: Choose,
    *pairs: Pair,
    scores: Scores = float_scores,
    oracle: str = "softmax",
    calls: int = 1,
    epsilon: float = 1.0,
    headline: bool = False,
    traffic: Traffic | None = NUMBERS,
    **parameters: Any,
) -> Case:
    return make_case(
        "selection",
        name,
        work,
        n,
        on(scores, choose),
        *pairs,
        traffic=traffic,
        oracle=oracle,
        drawn=choices(scores, choose, n, at_once="draws" in parameters),
        calls=calls,
        epsilon=epsilon,
        headline=headline,
        **parameters,
    )


def _auto_case(kind: str, power: int) -> Case:
    scores = float_scores if kind == "float64" else int_scores
    return _case(
        f"select-{kind}-1e{power}",
        f"exponential mechanism, {kind}, 10^{power} candidates",
        10**power,
        exponential(),
        (numpy_choice("numpy argmax", scores, gumbel), faster("numpy argmax", avx512=15, avx2=12)),
        (numpy_choice("numpy softmax", scores, softmax), faster("numpy softmax", avx512=7, avx2=5)),
        (numpy_choice("numpy exponentials", scores, exponentials), None),
        scores=scores,
        headline=kind == "float64" and power == 6,
    )


def _top_k_case(name: str, epsilon: float, note: str, opendp_n: int | None) -> Case:
    """At two epsilons, since OpenDP takes 25 times as long with a tenth of the noise."""
    times = 300 if epsilon == 1.0 else 1000
    return _case(
        name,
        f"top_k, k = {K}, {note}",
        M,
        _top_k(epsilon),
        (
            beside("opendp", "top_k", opendp_n, k=K, scale=2 * K / epsilon),
            faster("OpenDP", avx512=times, avx2=times / 2),
        ),
        (beside("diffprivlib", "top_k"), None),
        epsilon=epsilon,
        k=K,
        headline=opendp_n is not None,
    )


def _time_case(name: str) -> Case:
    """What the time of a call reveals about the scores: nothing. Each input is held against all others, so that the
    slowest is held against the fastest."""
    others = [other for other in INPUTS if other != name]
    return _case(
        f"select-time-{name.replace(' ', '-').replace('+', '')}",
        f"exponential mechanism, {name}",
        M,
        _with_one_at(INPUTS[name]),
        *((Side(other, on(equal_scores, _with_one_at(INPUTS[other]))), within(other, 1.15)) for other in others),
        scores=equal_scores,
        oracle="softmax, at any scale",
    )


CASES = (
    *(_auto_case(kind, power) for power in (6, 7) for kind in ("float64", "int64")),
    _case(
        "select-opendp",
        f"exponential mechanism, float64, 10^6 candidates, {OPENDP_CALLS} calls in a row",
        M,
        exponential(),
        (beside("opendp", "select", OPENDP_M, scale=2.0), faster("OpenDP", avx512=400, avx2=400)),
        calls=OPENDP_CALLS,
    ),
    _case(
        "select-float64-1e5",
        "exponential mechanism, float64, 10^5 candidates",
        PEER_M,
        exponential(),
        (beside("diffprivlib", "select", epsilon=1.0), faster("diffprivlib", avx512=400, avx2=400)),
        calls=20,  # a single call after 50 ms of somebody else's Python finds cold caches: 150 us instead of 35
    ),
    _case(
        "select-small-call",
        "exponential mechanism, one call on 1,000 candidates",
        FEW,
        exponential(),
        (numpy_choice("numpy argmax", float_scores, gumbel), faster("numpy argmax", avx512=1.5, avx2=1.5)),
        calls=100,
    ),
    _case(
        "select-gumbel",
        "exponential mechanism, method gumbel",
        M,
        exponential(method="gumbel"),
        (numpy_choice("numpy argmax", float_scores, gumbel), faster("numpy argmax", avx512=10, avx2=5.5)),
        (numpy_choice("numpy exponentials", float_scores, exponentials), None),
        traffic=RACED,
    ),
    _case(
        "permute-and-flip",
        "permute and flip",
        M,
        _permute_and_flip,
        (numpy_choice("numpy argmax", float_scores, _noisy_max), faster("numpy argmax", avx512=3.5, avx2=1.7)),
        oracle="permute and flip",
    ),
    _top_k_case("top-k", 1.0, "epsilon 1 for all rounds", None),
    _top_k_case("top-k-epsilon-10", 10.0, "epsilon 1 for each round", PEER_M),
    *map(_time_case, INPUTS),
    _case(
        "select-many-draws",
        f"exponential mechanism, {DRAWS:,} draws",
        M,
        exponential(size=DRAWS),
        (numpy_choice("numpy softmax", float_scores, _softmax_draws), None),
        oracle="softmax, at any scale",
        draws=DRAWS,
    ),
    _case("select-lazily", "exponential mechanism, scores from a function", M, _lazily, traffic=None),
    _case("gumbel-max", "GumbelMax, scores offered in blocks", M, _offered, traffic=RACED),
)
