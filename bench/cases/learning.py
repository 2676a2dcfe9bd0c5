"""Cases of the learning room: how many records falsify each literal, and what is learned from such counts; boxes,
interior points, finite classes.

An element is a record, or a value. Half of the records are positive: those that have a 1 in each of the first k
columns. Others sum bytes or sort, or count the ones in words that they packed beforehand where the row says "packed";
what they find is exact and not private, except for OpenDP's and diffprivlib's medians.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

import fastdp
from fastdp.learning.examples import Examples
from fastdp.records.bits import all_bits

from ..peers.inputs import numbers as values
from .registry import Call, Case, Side, beside, faster, make_case, within

MILLION = 1_000_000
EPSILON, DELTA = 1.0, 1e-6
K = 10
WIDTH, MOST = 30, 3  # of records that all conjunctions are looked at for, and literals of one
CANDIDATES = 1_000  # of the others' medians
CONCEPTS, LABELLED = 1_000, 100_000
CHUNK = 2048  # words: numpy's arrays for them stay in the cache
IN_PLANE, FEW_IN_PLANE = 2_000, 40  # records of which all boxes are looked at; of numpy's
TENTH = 0.9  # the rank above which a tenth lies
SURE = 1e-9  # beta of what a test looks at

_case = partial(make_case, "learning")


@lru_cache(maxsize=1)  # all sides of a case read the same memory
def records(n: int, d: int, k: int) -> tuple[Any, Any]:
    """Bits, a byte each: each of the first k columns is 1 so often that half of the records have all of them."""
    rng = np.random.default_rng(0)
    X = np.unpackbits(rng.integers(0, 256, (n, -(-d // 8)), np.uint8), axis=1, count=d).view(np.bool_)
    for j in range(k):
        X[:, j] = rng.random(n, np.float32) < 2 ** (-1 / k)
    return X, X[:, :k].all(axis=1)


@lru_cache(maxsize=1)
def packed(n: int, d: int) -> tuple[Any, Any]:
    X, y = records(n, d, 1)
    return fastdp.pack(X), y


# --- counts


def count(n: int, d: int) -> Any:
    X, y = records(n, d, 1)

    def call() -> Any:
        examples = Examples(X, y)
        examples.read(keep=False)
        return examples.falsified()

    return call


def count_packed(n: int, d: int) -> Any:
    examples = Examples(*packed(n, d))
    examples.read(keep=True)
    return examples.falsified


def numpy_sums(d: int, k: int = 1) -> Side:
    def make(n: int) -> Call:
        X, y = records(n, d, k)
        return lambda: (X[y].sum(0), X[~y].sum(0))

    return Side("numpy", make)


def numpy_products(d: int, k: int = 1) -> Side:
    """The same sums as products of float32, which are exact below 2^24, by parts that stay in the cache."""

    def make(n: int) -> Call:
        X, y = records(n, d, k)
        part = max(1, (1 << 18) // d)

        def call() -> Any:
            labels, sums = np.stack([y, ~y]).astype(np.float32), np.zeros((2, d))
            for start in range(0, n, part):
                sums += labels[:, start : start + part] @ X[start : start + part].astype(np.float32)
            return sums

        return call

    return Side("numpy products", make)


_ONES = np.array([byte.bit_count() for byte in range(256)], np.uint8)


def _ones(words: Any) -> Any:
    """How many ones each row has; numpy counts them itself from 2.0 on."""
    if hasattr(np, "bitwise_count"):
        return np.bitwise_count(words).sum(axis=-1)
    return _ONES[words.view(np.uint8)].sum(axis=-1)


def numpy_words(d: int) -> Side:
    """Column by column, so that what is between stays in the cache."""

    def make(n: int) -> Call:
        rows, y = packed(n, d)
        positive, both, counts = fastdp.pack(y[:, None]).words[0], np.empty(-(-n // 64), np.uint64), np.empty((2, d))

        def call() -> Any:
            for j, column in enumerate(rows.words):
                counts[0, j] = _ones(np.bitwise_and(column, positive, out=both))
                counts[1, j] = _ones(column) - counts[0, j]
            return counts

        return call

    return Side("numpy, packed", make)


# --- packing


def _pack(n: int) -> Call:
    X, _ = records(n, 100, 1)
    return lambda: fastdp.pack(X).words


def _numpy_pack(n: int) -> Call:
    X, _ = records(n, 100, 1)
    return lambda: np.packbits(np.ascontiguousarray(X.T), axis=1, bitorder="little")


# --- conjunctions


def _fit(n: int, d: int, k: int, **arguments: Any) -> Any:
    X, y = records(n, d, k)
    arguments = dict[str, Any](k=k, epsilon=EPSILON, delta=DELTA) | arguments
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


def _look_at_all(n: int, **arguments: Any) -> Any:
    return _fit(n, WIDTH, MOST, delta=0.0, method="exhaustive", **arguments)


def _numpy_look_at_all(n: int) -> Call:
    """The third literals of a pair are looked at together."""
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
            parts = [_ones(right[None]), _ones(some ^ right)]
            for i in range(2 * WIDTH):
                pairs = some[i // 2 * 2 + 2 :] & some[i]
                parts.append(_ones(pairs ^ right))
                parts += [_ones((pairs[j // 2 * 2 + 2 :] & pairs[j]) ^ right) for j in range(len(pairs))]
            errors = errors + np.concatenate(parts)
        return np.argmax(rng.gumbel(size=errors.size) - EPSILON / 2 * errors)

    return call


# --- boxes


@lru_cache(maxsize=1)
def numbers(n: int, d: int) -> tuple[Any, Any]:
    """A tenth of the records is outside in each column."""
    X = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, (n, d))
    side = int(0.9 * 2**63)
    return X, (np.abs(X) < side).all(axis=1)


def _box(n: int, d: int, method: str, **arguments: Any) -> Any:
    X, y = numbers(n, d)
    arguments = dict[str, Any](epsilon=EPSILON, delta=DELTA, method=method) | arguments
    return lambda: fastdp.learn_box(X, y, **arguments)


def _numpy_box(n: int) -> Call:
    X, y = numbers(n, K)

    def call() -> Any:
        inside = X[y]
        return inside.min(axis=0), inside.max(axis=0)

    return call


@lru_cache(maxsize=1)
def plane(n: int) -> tuple[Any, Any]:
    X = np.random.default_rng(0).integers(0, 1 << 16, (n, 2))
    return X, (np.abs(X - (1 << 15)) < int(0.9 * (1 << 15))).all(axis=1)


def _any_box(n: int, **arguments: Any) -> Any:
    X, y = plane(n)
    arguments = dict[str, Any](domain_bits=16, signed=False, epsilon=EPSILON, method="exponential") | arguments
    return lambda: fastdp.learn_box(X, y, **arguments)


def _numpy_any_box(n: int) -> Call:
    """Gumbel noise for each of the n^4 / 4 boxes whose sides are at records; for each two of the one column, those of
    the other at once."""
    X, y = plane(n)
    by_first, by_second = np.sort(X[:, 0]), np.argsort(X[:, 1])
    first, gains, rng = X[by_second, 0], np.where(y[by_second], 1, -1), np.random.default_rng()
    upper = np.triu(np.ones((n + 1, n + 1), np.bool_))

    def call() -> Any:
        best, box = -np.inf, None
        for i, low in enumerate(by_first):
            for high in by_first[i:]:
                sums = np.concatenate(([0], np.cumsum(gains * ((first >= low) & (first <= high)))))
                scores = np.where(upper, EPSILON / 2 * (sums[None] - sums[:, None]), -np.inf)
                scores += rng.gumbel(size=scores.shape)
                at = int(np.argmax(scores))
                if scores.flat[at] > best:
                    best, box = scores.flat[at], (low, high, *divmod(at, n + 1))
        return box

    return call


# --- interior points


def _point(kind: str) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        array = values(kind, n)
        return lambda: fastdp.interior_point(array, epsilon=EPSILON)

    return make


def _sort(kind: str) -> Side:
    def make(n: int) -> Call:
        array = values(kind, n)
        return lambda: np.sort(array)

    return Side("np.sort", make)


def _in_between(n: int, **more: Any) -> Any:
    array = few_apart(n)
    return lambda: fastdp.interior_point(array, epsilon=EPSILON, delta=DELTA, method="prefix", **more)


def _numpy_in_between(n: int) -> Call:
    array = few_apart(n)
    return lambda: (array.min(), array.max())


def few_apart(n: int) -> Any:
    """Values of which all lie in a thousandth of the line."""
    return values("int64", n) // 1024 + 2**61


def _quantile(n: int) -> Any:
    array = values("float64", n)
    return lambda: fastdp.quantile(array, TENTH, epsilon=EPSILON)


def _numpy_quantile(n: int) -> Call:
    array, place = values("float64", n), int(TENTH * n)
    return lambda: np.partition(array, place)[place]


# --- finite classes


@lru_cache(maxsize=1)
def concepts(n: int) -> tuple[Any, Any]:
    """Thresholds on a line, packed; the labels are those of number 370, but for a tenth."""
    rng = np.random.default_rng(0)
    x, thresholds = rng.random(n, np.float32), np.linspace(0, 1, CONCEPTS, dtype=np.float32)
    return fastdp.pack(x[:, None] > thresholds), (x > thresholds[370]) ^ (rng.random(n) < 0.1)


def _choose(n: int, **arguments: Any) -> Any:
    predictions, y = concepts(n)
    return lambda: fastdp.learn_from_class(predictions, y, epsilon=EPSILON, **arguments)


def _numpy_choose(n: int) -> Call:
    predictions, y = concepts(n)
    labels, rng = fastdp.pack(y[:, None]).words[0], np.random.default_rng()

    def call() -> Any:
        errors = np.array([_ones(said ^ labels) for said in predictions.words])
        return np.argmax(rng.gumbel(size=CONCEPTS) - EPSILON / 2 * errors)

    return call


# --- cases


def drawn_counts(counting: Callable[[int, int], Any], n: int, d: int) -> Callable[[int], Any]:
    def drawn(size: int) -> Any:
        few = min(max(size, 100_000), n)  # several blocks
        return (*records(few, d, 1), counting(few, d)())

    return drawn


def _counts_case(name: str, work: str, n: int, d: int, *pairs: Any, are_packed: bool = False, **more: Any) -> Case:
    counting = count_packed if are_packed else count
    drawn = drawn_counts(counting, n, d)
    return _case(name, work, n, lambda n: counting(n, d), *pairs, oracle="sums of bits", drawn=drawn, **more)


def _bytes_case(d: int) -> Case:
    return _counts_case(
        f"literals-{d}",
        f"who falsifies each literal, of positives and negatives, d={d}, packing included",
        MILLION,
        d,
        (numpy_sums(d), faster("numpy", avx512=8, avx2=8)),
        (numpy_products(d), None),
        headline=d == 100,
    )


def _enough(n: int) -> int:
    """So many records that something is promised with certainty."""
    return max(n, 500_000)


def _peel_case(k: int) -> Case:
    def drawn(n: int) -> Any:
        return (*records(_enough(n), 100, k), _fit(_enough(n), 100, k, beta=SURE)())

    target = within("numpy", 0.5) if k == K else None
    return _case(
        f"peel-{k}",
        f"learn_conjunction, d=100, k={k}, beside two sums of bytes",
        MILLION,
        lambda n: _fit(n, 100, k),
        (numpy_sums(100, k), target),
        oracle="a conjunction",
        drawn=drawn,
        epsilon=EPSILON,
        delta=DELTA,
        headline=k == K,
        k=k,
    )


def _box_case(method: str) -> Case:
    def drawn(n: int) -> Any:
        return (*numbers(_enough(n), K), _box(_enough(n), K, method, beta=SURE)())

    return _case(
        f"box-{method}",
        f"learn_box, {method}, {K} columns of 64-bit integers, beside the least and greatest of positives",
        MILLION,
        lambda n: _box(n, K, method),
        (Side("numpy", _numpy_box), None),
        oracle="a box",
        drawn=drawn,
        epsilon=EPSILON,
        delta=DELTA,
    )


def _fit_case(method: str, work: str, *pairs: Any) -> Case:
    def drawn(n: int) -> Any:
        return (*records(_enough(n), 100, K), _fit(_enough(n), 100, K, method=method, beta=SURE)())

    return _case(
        f"conjunction-by-{method}",
        f"learn_conjunction, {method}, d=100, k={K}, {work}",
        MILLION,
        lambda n: _fit(n, 100, K, method=method),
        *pairs,
        oracle="a conjunction",
        drawn=drawn,
        epsilon=EPSILON,
        delta=DELTA,
        k=K,
    )


def _point_case(name: str, work: str, kind: str, *pairs: Any) -> Case:
    return _case(
        name, work, MILLION, _point(kind), *pairs, oracle="a middle rank",
        drawn=lambda n: (values(kind, n), _point(kind)(n)()), epsilon=EPSILON, headline=name.endswith("-int64"),
    )  # fmt: skip


CASES = (
    _counts_case(
        "literals-packed",
        "who falsifies each literal, of positives and negatives, d=100, packed",
        MILLION,
        100,
        (numpy_words(100), faster("numpy, packed", avx512=6, avx2=3.8)),
        are_packed=True,
        calls=5,
    ),
    *map(_bytes_case, (100, 103)),
    _case(
        "all-conjunctions",
        f"learn_conjunction, exhaustive, d={WIDTH}: all 34,281 conjunctions of at most {MOST} literals",
        MILLION,
        _look_at_all,
        (Side("numpy, packed", _numpy_look_at_all), faster("numpy, packed", avx512=10, avx2=10)),
        oracle="a conjunction",
        drawn=lambda n: (*records(n, WIDTH, MOST), _look_at_all(n, beta=SURE)()),
        epsilon=EPSILON,
        k=MOST,
    ),
    *map(_peel_case, (1, 3, K, 30)),
    *(
        _point_case(
            f"interior-point-{kind}",
            f"interior point of 10^6 values, {kind}",
            kind,
            (_sort(kind), within("np.sort", 1.5)),
        )
        for kind in ("int64", "float64")
    ),
    _point_case(
        "interior-point-candidates",
        f"interior point among all floats, beside medians, OpenDP's among {CANDIDATES:,} candidates",
        "float64",
        (beside("opendp", "median", candidates=CANDIDATES, epsilon=EPSILON), None),
        (beside("diffprivlib", "median", epsilon=EPSILON), None),
    ),
    _counts_case(
        "literals-two-threads",
        "two threads, who falsifies each literal, d=100, packing included",
        MILLION,
        100,
        (Side("one thread", lambda n: count(n, 100)), faster("one thread", avx512=1.6, avx2=1.6)),
        threads=2,
    ),
    _case(
        "pack",
        "pack, d=100",
        MILLION,
        _pack,
        (Side("numpy", _numpy_pack), None),
        oracle="packed bits",
        drawn=lambda n: (records(n, 100, 1)[0], _pack(n)()),
    ),
    _fit_case("greedy", "beside two sums of bytes", (numpy_sums(100, K), None)),
    _fit_case("counts", "beside sums of bytes with noise", (Side("numpy", _numpy_counts), None)),
    _case(
        "conjunction-by-elimination",
        f"learn_conjunction, elimination, not private, d=100, {K} literals",
        MILLION,
        _eliminate,
        (Side("numpy", _numpy_eliminate), None),
        oracle="what no positive record falsifies",
        drawn=lambda n: (*records(n, 100, K), _eliminate(n)()),
    ),
    _case(
        "error",
        f"error of a conjunction of {K} literals, d=100",
        MILLION,
        _judge,
        (Side("numpy", _numpy_judge), None),
        oracle="a share of errors",
        drawn=lambda n: (judged(n)[1], judged(n)[2], _judge(n)()),
    ),
    *map(_box_case, ("peel", "interior-point")),
    _case(
        "box-exponential",
        "learn_box, exponential: all boxes in the plane, 2 columns of 16 bits",
        IN_PLANE,
        _any_box,
        (Side("numpy", _numpy_any_box, n=FEW_IN_PLANE), None),
        oracle="a box",
        drawn=lambda n: (*plane(IN_PLANE), _any_box(IN_PLANE, beta=SURE)()),
        rounds=5,
        epsilon=EPSILON,
    ),
    _case(
        "quantile",
        f"quantile {TENTH:g} of 10^6 values, float64",
        MILLION,
        _quantile,
        (Side("np.partition", _numpy_quantile), None),
        oracle="a rank",
        drawn=lambda n: (values("float64", n), TENTH, _quantile(n)()),
        epsilon=EPSILON,
    ),
    _case(
        "interior-point-prefix",
        "interior point of 10^6 values, int64, method prefix, beside the least and greatest",
        MILLION,
        _in_between,
        (Side("numpy", _numpy_in_between), None),
        oracle="a point in between",
        drawn=lambda n: (few_apart(n), _in_between(n, beta=SURE)()),
        epsilon=EPSILON,
        delta=DELTA,
    ),
    _case(
        "concepts",
        f"learn_from_class, {CONCEPTS:,} concepts, packed",
        LABELLED,
        _choose,
        (Side("numpy, packed", _numpy_choose), None),
        oracle="a good concept",
        drawn=lambda n: (*concepts(n), _choose(n, beta=SURE)()),
        epsilon=EPSILON,
    ),
)
