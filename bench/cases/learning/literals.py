"""How many records falsify each literal; packing."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

import fastdp
from fastdp.learning.examples import Examples

from ..registry import Call, Case, Side, faster, make_case
from ..traffic import copied_once, records_of_bits
from .inputs import MILLION, count_ones, numpy_sums, records

_case = partial(make_case, "learning")


@lru_cache(maxsize=1)
def packed(n: int, d: int) -> tuple[Any, Any]:
    X, y = records(n, d, 1)
    return fastdp.pack(X), y


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


def numpy_words(d: int) -> Side:
    """Column by column, so that what is between stays in the cache."""

    def make(n: int) -> Call:
        rows, y = packed(n, d)
        positive, both, counts = fastdp.pack(y[:, None]).words[0], np.empty(-(-n // 64), np.uint64), np.empty((2, d))

        def call() -> Any:
            for j, column in enumerate(rows.words):
                counts[0, j] = count_ones(np.bitwise_and(column, positive, out=both))
                counts[1, j] = count_ones(column) - counts[0, j]
            return counts

        return call

    return Side("numpy, packed", make)


def _pack(n: int) -> Call:
    X, _ = records(n, 100, 1)
    return lambda: fastdp.pack(X).words


def _numpy_pack(n: int) -> Call:
    X, _ = records(n, 100, 1)
    return lambda: np.packbits(np.ascontiguousarray(X.T), axis=1, bitorder="little")


def drawn_counts(counting: Callable[[int, int], Any], n: int, d: int) -> Callable[[int], Any]:
    def drawn(size: int) -> Any:
        few = min(max(size, 100_000), n)  # several blocks
        return (*records(few, d, 1), counting(few, d)())

    return drawn


def _counts_case(name: str, work: str, n: int, d: int, *pairs: Any, are_packed: bool = False, **more: Any) -> Case:
    counting = count_packed if are_packed else count
    return _case(
        name,
        work,
        n,
        lambda n: counting(n, d),
        *pairs,
        traffic=records_of_bits(d, packed=are_packed),
        oracle="sums of bits",
        drawn=drawn_counts(counting, n, d),
        **more,
    )


def _bytes_case(d: int) -> Case:
    return _counts_case(
        f"literals-{d}",
        f"count the records that falsify each literal, {d} columns, packing included",
        MILLION,
        d,
        (numpy_sums(d), faster("numpy", avx512=8, avx2=8)),
        (numpy_products(d), None),
        headline=d == 100,
    )


CASES = (
    _counts_case(
        "literals-packed",
        "count the records that falsify each literal, 100 columns, packed",
        MILLION,
        100,
        (numpy_words(100), faster("numpy, packed", avx512=6, avx2=3.8)),
        are_packed=True,
        calls=5,
    ),
    *map(_bytes_case, (100, 103)),
    _counts_case(
        "literals-two-threads",
        "two threads, count the records that falsify each literal, 100 columns, packing included",
        MILLION,
        100,
        (Side("one thread", lambda n: count(n, 100)), faster("one thread", avx512=1.6, avx2=1.6)),
        threads=2,
    ),
    _case(
        "pack",
        "pack, 100 columns",
        MILLION,
        _pack,
        (Side("numpy", _numpy_pack), None),
        traffic=copied_once(100 + 100 / 8),
        oracle="packed bits",
        drawn=lambda n: (records(n, 100, 1)[0], _pack(n)()),
    ),
)
