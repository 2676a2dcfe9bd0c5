"""Learn a conjunction by every method; its error."""

from __future__ import annotations

import warnings
from functools import lru_cache, partial
from typing import Any

import numpy as np

import fastdp
from fastdp.records.bit_words import all_bits

from ..registry import Call, Case, Side, faster, make_case, within
from ..traffic import records_of_bits
from .inputs import DELTA, EPSILON, MILLION, SURE, K, count_ones, enough, numpy_sums, records

_case = partial(make_case, "learning")

WIDTH, MOST = 30, 3  # columns for which all conjunctions are tried, and literals of one
CHUNK = 2048  # words: numpy's arrays for them stay in the cache


def _fit(n: int, d: int, k: int, **arguments: Any) -> Any:
    X, y = records(n, d, k)
    arguments = dict[str, Any](k=k, epsilon=EPSILON, delta=DELTA, method="peel", realizable=True) | arguments
    return lambda: fastdp.learn_conjunction(X, y, **arguments)


def _numpy_counts(n: int) -> Call:
    """Records that falsify each literal, with noise; those that hardly any positive record falsifies."""
    X, y = records(n, 100, K)
    rng, deviation = np.random.default_rng(), 4.225 * np.sqrt(2 * 100)

    def call() -> Any:
        ones, positives = X[y].sum(0), y.sum()
        falsified = np.concatenate((positives - ones, ones)) + rng.normal(0, deviation, 2 * 100)
        return np.flatnonzero(falsified < 4 * deviation)

    return call


def _eliminated(X: Any, y: Any) -> Any:
    with warnings.catch_warnings():  # that it is not private
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.learn_conjunction(X, y, method="elimination")


def _eliminate(n: int) -> Any:
    X, y = records(n, 100, K)
    return lambda: _eliminated(X, y)


def _numpy_eliminate(n: int) -> Call:
    X, y = records(n, 100, K)

    def call() -> Any:
        positive = X[y]
        return np.flatnonzero(positive.all(axis=0)), np.flatnonzero(~positive.any(axis=0))

    return call


@lru_cache(maxsize=1)
def judged(n: int) -> tuple[Any, Any, Any]:
    """A conjunction of the first k columns, and labels of which a tenth are wrong about it."""
    X, y = records(n, 100, K)
    return _eliminated(X, y), X, y ^ (np.random.default_rng(1).random(n) < 0.1)


def _judge(n: int) -> Call:
    h, X, y = judged(n)
    return lambda: fastdp.error(h, X, y)


def _numpy_judge(n: int) -> Call:
    h, X, y = judged(n)
    columns = [(column, bool(value)) for column, value in h.literals]

    def call() -> Any:
        (first, value), *more = columns
        holds = X[:, first] == value
        for column, value in more:
            holds &= X[:, column] == value
        return np.mean(holds != y)

    return call


def _try_all(n: int, **arguments: Any) -> Any:
    return _fit(n, WIDTH, MOST, delta=0.0, method="exhaustive", **arguments)


def _numpy_try_all(n: int) -> Call:
    """The third literals of a pair are counted together."""
    X, y = records(n, WIDTH, MOST)
    rng, everyone = np.random.default_rng(), all_bits(n)

    def pack(bits: Any) -> Any:
        words = np.zeros((len(bits), 8 * everyone.size), np.uint8)
        words[:, : -(-n // 8)] = np.packbits(bits, axis=1, bitorder="little")
        return words.view(np.uint64)

    def call() -> Any:
        ones, labels = pack(np.ascontiguousarray(X.T)), pack(y[None])[0]
        literals = np.stack([ones, ones ^ everyone], axis=1).reshape(2 * WIDTH, -1)  # 2 j, 2 j + 1: of column j
        errors: Any = 0
        for start in range(0, labels.size, CHUNK):
            some, right = literals[:, start : start + CHUNK], labels[start : start + CHUNK]
            parts = [count_ones(right[None]), count_ones(some ^ right)]
            for i in range(2 * WIDTH):
                pairs = some[i // 2 * 2 + 2 :] & some[i]
                parts.append(count_ones(pairs ^ right))
                parts += [count_ones((pairs[j // 2 * 2 + 2 :] & pairs[j]) ^ right) for j in range(len(pairs))]
            errors = errors + np.concatenate(parts)
        return np.argmax(rng.gumbel(size=errors.size) - EPSILON / 2 * errors)

    return call


def _peel_case(k: int) -> Case:
    def drawn(n: int) -> Any:
        return (*records(enough(n), 100, k), _fit(enough(n), 100, k, beta=SURE)())

    target = within("numpy", 0.5) if k == K else None
    return _case(
        f"peel-{k}",
        f"learn_conjunction, 100 columns, k = {k}, beside two sums of bytes",
        MILLION,
        lambda n: _fit(n, 100, k),
        (numpy_sums(100, k), target),
        traffic=records_of_bits(100),
        oracle="a conjunction",
        drawn=drawn,
        epsilon=EPSILON,
        delta=DELTA,
        headline=k == K,
        k=k,
    )


def _fit_case(method: str, work: str, *pairs: Any, oracle: str = "a conjunction") -> Case:
    def drawn(n: int) -> Any:
        return (*records(enough(n), 100, K), _fit(enough(n), 100, K, method=method, beta=SURE)())

    return _case(
        f"conjunction-by-{method}",
        f"learn_conjunction, {method}, 100 columns, k = {K}, {work}",
        MILLION,
        lambda n: _fit(n, 100, K, method=method),
        *pairs,
        traffic=records_of_bits(100),
        oracle=oracle,
        drawn=drawn,
        epsilon=EPSILON,
        delta=DELTA,
        k=K,
    )


def _guard_case() -> Case:
    """What a guard costs: the same method with one and without."""
    alone = Side("without a guard", lambda n: _fit(n, 100, K))
    return _case(
        f"peel-{K}-guarded",
        f"learn_conjunction, peel and its guard, 100 columns, k = {K}",
        MILLION,
        lambda n: _fit(n, 100, K, realizable=False),
        (alone, within("without a guard", 1.1)),
        traffic=records_of_bits(100),
        oracle="a conjunction",
        drawn=lambda n: (*records(enough(n), 100, K), _fit(enough(n), 100, K, realizable=False, beta=SURE)()),
        epsilon=EPSILON,
        delta=DELTA,
        k=K,
    )


CASES = (
    _case(
        "all-conjunctions",
        f"learn_conjunction, exhaustive, {WIDTH} columns: all 34,281 conjunctions of at most {MOST} literals",
        MILLION,
        _try_all,
        (Side("numpy, packed", _numpy_try_all), faster("numpy, packed", avx512=10, avx2=10)),
        traffic=records_of_bits(WIDTH),
        oracle="a conjunction",
        drawn=lambda n: (*records(n, WIDTH, MOST), _try_all(n, beta=SURE)()),
        epsilon=EPSILON,
        k=MOST,
    ),
    *map(_peel_case, (1, 3, K, 30)),
    _guard_case(),
    _fit_case(
        "search", "beside two sums of bytes", (numpy_sums(100, K), None), oracle="a conjunction that was searched for"
    ),
    _fit_case("greedy", "beside two sums of bytes", (numpy_sums(100, K), None)),
    _fit_case("counts", "beside sums of bytes with noise", (Side("numpy", _numpy_counts), None)),
    _case(
        "conjunction-by-elimination",
        f"learn_conjunction, elimination, not private, 100 columns, {K} literals",
        MILLION,
        _eliminate,
        (Side("numpy", _numpy_eliminate), None),
        traffic=records_of_bits(100),
        oracle="what no positive record falsifies",
        drawn=lambda n: (*records(n, 100, K), _eliminate(n)()),
    ),
    _case(
        "error",
        f"error of a conjunction of {K} literals, 100 columns",
        MILLION,
        _judge,
        (Side("numpy", _numpy_judge), None),
        traffic=records_of_bits(100),
        oracle="a share of errors",
        drawn=lambda n: (judged(n)[1], judged(n)[2], _judge(n)()),
    ),
)
