"""Dense weights over all cells: evaluate and update by masks, values and conjunctions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import cycle
from math import expm1, log
from typing import Any

import numpy as np

from fastdp import Domain, Linear, Mask, SyntheticDistribution
from fastdp.answering.dense_weights import DenseWeights

from ..plain_sum import plain_sum
from ..registry import Call, Case, Side, faster, make_case, within
from ..traffic import Traffic, lines_of_cells, read_once
from .inputs import (
    CELLS,
    HIGHEST,
    LOWEST,
    RATE,
    binary,
    cell_mask,
    cell_values,
    cell_weights,
    conjunction_mask,
    literals,
    of_literals,
    power_below,
)

_case = partial(make_case, "answering")

IN_A_ROW = 10


def dense(domain: Domain) -> DenseWeights:
    return DenseWeights(domain, x=cell_weights(domain.size).astype(np.float64), span=log(1000))


def _evaluate(n: int) -> Call:
    domain = binary(n)
    synthetic = SyntheticDistribution(cell_weights(domain.size), domain)
    query = Mask(cell_mask(domain.size))
    return lambda: synthetic.answer(query)


def _numpy_evaluate(n: int) -> Call:
    cells = power_below(n)
    x, mask = cell_weights(cells), cell_mask(cells)
    x /= x.sum()
    return lambda: np.dot(mask, x)


def _stream(n: int) -> Call:
    """As fast as memory is read: the bytes of the weights and of the mask, eight at a time."""
    cells = power_below(n)
    x, words = cell_weights(cells), cell_mask(cells).view(np.uint64)
    plain_sum(x), plain_sum(words)
    return lambda: (plain_sum(x), plain_sum(words))


def _update(n: int) -> Call:
    domain, rates = binary(n), cycle((RATE, -RATE))
    weights, bound = dense(domain), Mask(cell_mask(domain.size)).bind(domain)

    def call() -> Any:
        weights.scale(bound, next(rates))
        return weights.total

    return call


def _numpy_update(n: int) -> Call:
    cells, rates = power_below(n), cycle((RATE, -RATE))
    x, mask = cell_weights(cells), cell_mask(cells)
    x /= x.sum()

    def call() -> Any:
        nonlocal x
        x *= np.exp(next(rates) * mask)
        total = x.sum()
        x /= total
        return total

    return call


def two_passes(domain: Domain, query: Mask | Linear) -> Call:
    """The dense path: what the query comes to, then the update."""
    weights, bound, rates = dense(domain), query.bind(domain), cycle((RATE, -RATE))

    def call() -> float:
        value = weights.evaluate(bound)
        weights.scale(bound, next(rates))
        return value

    return call


def mask_both(n: int) -> Call:
    return two_passes(binary(n), Mask(cell_mask(power_below(n))))


def _values_both(n: int) -> Call:
    return two_passes(binary(n), Linear(cell_values(power_below(n))))


def _numpy_two_passes(values_of: Callable[[int], Any]) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        cells, rates = power_below(n), cycle((RATE, -RATE))
        x, values = cell_weights(cells), values_of(cells)
        x /= x.sum()

        def call() -> Any:
            nonlocal x
            value = np.dot(values, x)
            x *= np.exp(next(rates) * values)
            x /= x.sum()
            return value

        return call

    return make


numpy_both, _numpy_values_both = _numpy_two_passes(cell_mask), _numpy_two_passes(cell_values)


def _in_one_pass(bits: tuple[int, ...]) -> Callable[[int], Call]:
    """An update; what the query came to before it is seen from the totals, since the same pass adds it up."""

    def make(n: int) -> Call:
        domain, rates = binary(n), cycle((RATE, -RATE))
        weights, query = dense(domain), literals(domain, bits)

        def call() -> float:
            before, rate = weights.total, next(rates)
            weights.scale(query.bind(domain), rate)
            return (weights.total / before - 1) / expm1(rate)

        return call

    return make


def _in_two_passes(bits: tuple[int, ...]) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        domain = binary(n)
        return two_passes(domain, Mask(conjunction_mask(domain, literals(domain, bits))))

    return make


def drawn_values(make: Callable[[int], Call], mask: Callable[[int], Any], times: int) -> Callable[[int], Any]:
    """Weights and mask as they were at first, and what so many calls returned."""

    def drawn(n: int) -> tuple[Any, ...]:
        call = make(n)
        return cell_weights(power_below(n)), mask(n), [call() for _ in range(times)]

    return drawn


def half(n: int) -> Any:
    return cell_mask(power_below(n))


def _conjunction_case(
    kind: str, work: str, bits: tuple[int, ...], times: float | None, *, cold: bool | None = None
) -> Case:
    """With a target, calls in a row: the 16 MB of the cells touched then stay in a large L3. Without one, a single call
    after a rival that has read and written all weights: what it takes to fetch them."""
    rival = Side("mask, two passes", _in_two_passes(bits))
    cold = times is None if cold is None else cold
    return _case(
        f"conjunction-{kind}{'-cold' * cold}",
        f"{len(bits)} literals, 2^24 cells, evaluate and update as one call, {work} "
        f"(bits {', '.join(map(str, bits))}), " + ("caches cold" if cold else f"{IN_A_ROW} calls in a row"),
        CELLS,
        _in_one_pass(bits),
        (rival, None if times is None else faster(rival.name, avx512=times, avx2=times)),
        traffic=Traffic(changed=16 * lines_of_cells(bits), held=8 * lines_of_cells(bits)),
        oracle="values before updates",
        drawn=drawn_values(_in_one_pass(bits), of_literals(bits), 3),
        calls=1 if cold else IN_A_ROW,
    )


CASES = (
    _case(
        "mask-evaluate",
        "evaluate a 0/1 mask, 2^24 cells",
        CELLS,
        _evaluate,
        (Side("numpy", _numpy_evaluate), faster("numpy", avx512=4, avx2=4)),
        (Side("numba sum", _stream), within("numba sum", 1.25)),
        traffic=read_once(9),
        oracle="values",
        drawn=drawn_values(_evaluate, half, 2),
        headline=True,
    ),
    _case(
        "mask-update",
        "update by a mask, with the normaliser, 2^24 cells",
        CELLS,
        _update,
        (Side("numpy", _numpy_update), faster("numpy", avx512=9, avx2=9)),
        traffic=Traffic(read=1, changed=16, held=9),
        oracle="totals after updates",
        drawn=drawn_values(_update, half, 3),
        headline=True,
    ),
    _conjunction_case("runs", "cells in runs of 32", (5, 11, 20), 6),
    _conjunction_case("runs", "cells in runs of 32", (5, 11, 20), None),
    _conjunction_case("long-runs", "cells in long runs", HIGHEST, 15),
    _conjunction_case("long-runs", "cells in long runs", HIGHEST, None),
    _conjunction_case("cells", "single cells", (0, 1, 2), 1.5),
    _conjunction_case("scattered", "cells far apart", LOWEST, None, cold=False),
    _case(
        "values-update",
        "evaluate and update by a query with a value for each cell, 2^24 cells",
        CELLS,
        _values_both,
        (Side("numpy", _numpy_values_both), None),
        traffic=Traffic(read=8, changed=16, held=16),
        oracle="values before updates",
        drawn=drawn_values(_values_both, lambda n: cell_values(power_below(n)), 3),
    ),
    _case(
        "mask-two-threads",
        "two threads, a mask, 2^24 cells, evaluate and update",
        CELLS,
        mask_both,
        (Side("one thread", mask_both), faster("one thread", avx512=1.5, avx2=1.5)),
        oracle="values before updates",
        drawn=drawn_values(mask_both, half, 3),
        threads=2,
    ),
)
