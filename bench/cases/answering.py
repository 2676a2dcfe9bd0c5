"""Cases of the answering room: evaluate a query on weights over all cells, update them by it, and what is made of that.

An element is a table, a query or a record where the row says so, else a cell. numpy sums each table and each slice by
itself, and is given fewer of them. Masks are laid out beforehand; a conjunction is bound, and its walk planned, in
every call. Updates go up and down in turn, so that the weights stay where they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import combinations, cycle
from math import expm1, log, prod, sqrt
from typing import Any

import numpy as np

from fastdp import Conjunction, Domain, Linear, Mask, PrivateMultiplicativeWeights, SyntheticDistribution
from fastdp.answering.dense_weights import DenseWeights
from fastdp.answering.marginal_transform import marginal_tables, spread_tables, transform
from fastdp.answering.mwem import mwem
from fastdp.answering.queries import Marginals, marginals
from fastdp.answering.release_marginals import release_marginals
from fastdp.support.errors import AccuracyWarning

from ..harness.limits import plain_sum
from ..peers.inputs import binary_records
from .registry import Call, Case, Side, beside, faster, make_case, within, within_seconds

BINARY = Domain.binary(20)
CENSUS = Domain(age=15, work=53, kids=2, first=2, second=2, a=2, b=2, c=2)  # the sizes of AER/Fertility
DECIMAL = Domain(**dict.fromkeys("abcdef", 10))
WAYS = 3
CELLS = 1 << 24
FEW = 60  # tables, or queries
RATE = 1e-3  # of an update: after some 590,000 the weights would be kept as logarithms, which is another matter
QUERIES, ROUNDS, RECORDS = 1_000, 10, 100_000  # of mwem
FEW_QUERIES = 200
PAIRED, SIGMA = 16, 65.45  # columns of which all pairs are released; the noise that our guarantee takes
STEPS = 200  # of the others: after 50 the largest error is still seven times what it comes to
SAMPLED, SEARCHED = 1_000_000, 10_000
THREE = (0, 1, 1)  # the values of three literals
HIGHEST = (21, 22, 23)  # bits of the cell number
PREPARED = 4  # objects that answer, for a row in which each answer changes them
PAIR_SHARE = 0.52  # of records, beside a quarter of the cells: off by more than the threshold until one update
LOWEST = (0, 1, 2, 3, 4, 5)
IN_A_ROW = 10


def counts(n: int) -> Any:
    return np.random.default_rng(0).integers(0, 1000, n)


def power_below(n: int) -> int:
    return 1 << (n.bit_length() - 1)


def binary(n: int) -> Domain:
    """The largest binary domain of at most n cells."""
    return Domain.binary(n.bit_length() - 1)


def workload(domain: Domain, n: int) -> Marginals:
    """n of the three-way tables, as far apart as they can be."""
    subsets = list(combinations(domain.names, WAYS))
    n = min(n, len(subsets))
    return Marginals(domain, [subsets[i * len(subsets) // n] for i in range(n)])


def _numpy_tables(cells: Any, domain: Domain, asked: Marginals) -> Any:
    cube, axes = cells.reshape(domain.sizes), range(len(domain))
    return [cube.sum(axis=tuple(a for a in axes if a not in own)) for own in asked.positions]


def _numpy_spread(tables: Any, domain: Domain, asked: Marginals) -> Any:
    cube = np.zeros(domain.sizes)
    for table, own in zip(tables, asked.positions, strict=True):
        cube += table.reshape([size if p in own else 1 for p, size in enumerate(domain.sizes)])
    return cube.ravel()


def _on_cells(domain: Domain, function: Callable[[Any, Domain, Marginals], Any]) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        cells, asked = counts(domain.size), workload(domain, n)
        return lambda: function(cells, domain, asked)

    return make


def tables_of(asked: Marginals) -> list[Any]:
    return [counts(prod(shape)).reshape(shape) / 8 for shape in asked.shapes]


def _on_tables(domain: Domain, function: Callable[[Any, Domain, Marginals], Any]) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        asked = workload(domain, n)
        tables = tables_of(asked)
        return lambda: function(tables, domain, asked)

    return make


def _transform(n: int) -> Call:
    cells = counts(power_below(n))

    def call() -> Any:
        transform(cells)
        return cells

    return call


def _copy(n: int) -> Call:
    cells, out = counts(power_below(n)), counts(power_below(n))

    def call() -> Any:
        np.copyto(out, cells)
        return out

    return call


# --- masks


def cell_weights(cells: int) -> Any:
    return 1.0 + counts(cells)


def cell_mask(cells: int) -> Any:
    return counts(cells) % 2 == 1


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


def two_passes(domain: Domain, mask: Any) -> Call:
    """The dense path: what the query comes to, then the update."""
    weights, bound, rates = dense(domain), Mask(mask).bind(domain), cycle((RATE, -RATE))

    def call() -> float:
        value = weights.evaluate(bound)
        weights.scale(bound, next(rates))
        return value

    return call


def mask_both(n: int) -> Call:
    return two_passes(binary(n), cell_mask(power_below(n)))


def numpy_both(n: int) -> Call:
    cells, rates = power_below(n), cycle((RATE, -RATE))
    x, mask = cell_weights(cells), cell_mask(cells)
    x /= x.sum()

    def call() -> Any:
        nonlocal x
        value = np.dot(mask, x)
        x *= np.exp(next(rates) * mask)
        x /= x.sum()
        return value

    return call


def cell_values(cells: int) -> Any:
    """Eighths."""
    return counts(cells) % 9 / 8


def _values_both(n: int) -> Call:
    domain, rates = binary(n), cycle((RATE, -RATE))
    weights, bound = dense(domain), Linear(cell_values(domain.size)).bind(domain)

    def call() -> float:
        value = weights.evaluate(bound)
        weights.scale(bound, next(rates))
        return value

    return call


def _numpy_values_both(n: int) -> Call:
    cells, rates = power_below(n), cycle((RATE, -RATE))
    x, values = cell_weights(cells), cell_values(cells)
    x /= x.sum()

    def call() -> Any:
        nonlocal x
        value = np.dot(values, x)
        x *= np.exp(next(rates) * values)
        x /= x.sum()
        return value

    return call


# --- conjunctions


def literals(domain: Domain, bits: tuple[int, ...]) -> Conjunction:
    """A literal on each of these bits of the cell number, or the next one below in a domain that has not so many."""
    d = len(domain)
    return Conjunction({f"v{d - min(bit, d - len(bits) + i)}": THREE[i % 3] for i, bit in enumerate(bits)})


def conjunction_mask(domain: Domain, query: Conjunction) -> Any:
    mask = np.zeros(domain.sizes, bool)
    mask[_index(domain, query)] = True
    return mask.reshape(-1)


def _index(domain: Domain, query: Conjunction) -> Any:
    return tuple(query.allowed.get(name, slice(None)) for name in domain.names)


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
        return two_passes(domain, conjunction_mask(domain, literals(domain, bits)))

    return make


# --- one answer at a time


def _asked(n: int, literals_each: int, share: float | None) -> tuple[Domain, list[Conjunction], Any]:
    """Queries, each on attributes of its own; each holds for this share of the records, or, if None, for as many as
    where all cells are equally frequent."""
    domain, rng = binary(n), np.random.default_rng(0)
    names, codes = domain.names, rng.integers(0, 2, (RECORDS, len(domain)), np.uint8)
    blocks = [slice(j, j + literals_each) for j in range(0, len(domain) - literals_each + 1, literals_each)]
    if share is not None:
        for block in blocks:
            codes[codes[:, block].all(axis=1), block.start] = 0
            codes[rng.random(RECORDS) < share, block] = 1
    return domain, [Conjunction(dict.fromkeys(names[block], 1)) for block in blocks], codes


def _online(codes: Any, domain: Domain) -> PrivateMultiplicativeWeights:
    return PrivateMultiplicativeWeights(codes, domain, epsilon=1.0, delta=1e-6, max_queries=10**6)


def _answer(n: int) -> Call:
    domain, (query, *_), codes = _asked(n, 3, None)
    online = _online(codes, domain)
    return lambda: online.answer(query)


def of_all_cells(kind: str, cells: int) -> Any:
    return cell_mask(cells) if kind == "a mask" else cell_values(cells)


def _answer_on_all(kind: str, n: int) -> Any:
    domain, _, codes = _asked(n, 3, None)
    online, values = _online(codes, domain), of_all_cells(kind, domain.size)
    query = Mask(values) if kind == "a mask" else Linear(values)
    return online, lambda: online.answer(query)


def _numpy_answer_on_all(kind: str) -> Side:
    def make(n: int) -> Call:
        domain, _, codes = _asked(n, 3, None)
        x, values = np.full(domain.size, 1 / domain.size), of_all_cells(kind, domain.size).astype(np.float64)
        histogram = np.bincount(codes @ np.array(domain.strides), minlength=domain.size).astype(np.float64)
        rng = np.random.default_rng()
        threshold = 0.2 * RECORDS + rng.laplace(scale=250)

        def call() -> float:
            value = np.dot(values, x)
            gap = np.dot(values, histogram) - RECORDS * value
            if max(gap + rng.laplace(scale=250), -gap + rng.laplace(scale=250)) >= threshold:
                raise RuntimeError("the records are not uniform")
            return float(value)

        return call

    return Side("numpy", make)


def _answer_and_update(n: int) -> Call:
    """Each object answers a query a block of attributes; they are made beforehand, for some 40 calls."""
    domain, queries, codes = _asked(n, 2, PAIR_SHARE)

    def more() -> list[tuple[PrivateMultiplicativeWeights, Conjunction]]:
        online = _online(codes, domain)
        return [(online, query) for query in queries]

    ready = [each for _ in range(PREPARED) for each in more()]

    def call() -> float:
        if not ready:
            ready.extend(more())
        online, query = ready.pop()
        return online.answer(query)

    return call


def _numpy_online(codes: Any, domain: Domain, query: Conjunction) -> Call:
    """Two tests, as ours, and weights that are kept normalised; small updates, so that the answer stays as far off."""
    rng, index = np.random.default_rng(), _index(domain, query)
    columns = [np.ascontiguousarray(codes[:, domain.names.index(name)] == 1) for name in query.allowed]
    x, n = np.full(domain.sizes, 1 / domain.size), len(codes)
    threshold = 0.2 * n + rng.laplace(scale=250)

    def call() -> float:
        nonlocal x
        truth = np.count_nonzero(np.logical_and.reduce(columns))
        value = float(x[index].sum())
        gap = truth - n * value
        if max(gap + rng.laplace(scale=250), -gap + rng.laplace(scale=250)) >= threshold:
            x[index] *= np.exp(np.sign(gap) * RATE)
            x /= x.sum()
            value = float(x[index].sum())
        return value

    return call


def _numpy_answer(n: int) -> Call:
    domain, (query, *_), codes = _asked(n, 3, None)
    return _numpy_online(codes, domain, query)


def _numpy_answer_and_update(n: int) -> Call:
    domain, (query, *_), codes = _asked(n, 2, PAIR_SHARE)
    return _numpy_online(codes, domain, query)


def _drawn_answers(literals_each: int, share: float | None) -> Callable[[int], Any]:
    """The truth, and per query: the answer, and after how many updates it was given."""

    def drawn(n: int) -> Any:
        domain, queries, codes = _asked(n, literals_each, share)
        online, found = _online(codes, domain), []
        for query in queries:
            before = online.updates
            found.append((online.answer(query), online.updates - before))
        return codes, literals_each, online.alpha, found

    return drawn


# --- mwem


def conjunctions(domain: Domain, k: int) -> list[Any]:
    """k three-way conjunctions, as far apart as they can be."""
    every = marginals(domain, WAYS)
    k = min(k, len(every))
    return [every[i * len(every) // k] for i in range(k)]


def records(domain: Domain, n: int = RECORDS) -> Any:
    return binary_records(n, len(domain))


def _mwem(k: int) -> Callable[[int], Call]:
    def make(n: int) -> Call:
        domain = binary(n)
        queries, codes = conjunctions(domain, k), records(domain)
        return lambda: _fitted(codes, domain, queries, epsilon=1.0)

    return make


def _fitted(codes: Any, domain: Domain, queries: Any, **promise: Any) -> Any:
    with warnings.catch_warnings():  # that plain noise would promise more than so few rounds do
        warnings.simplefilter("ignore", AccuracyWarning)
        return mwem(codes, domain, queries, variant="average", rounds=ROUNDS, **promise)


def _numpy_mwem(n: int) -> Call:
    """np.dot(mask, x) for every query; the masks, a byte a cell, are made beforehand."""
    domain = binary(n)
    masks = [conjunction_mask(domain, query) for query in conjunctions(domain, QUERIES)]
    codes, rng = records(domain), np.random.default_rng()
    strides, rate = np.array(domain.strides), mwem_rate(domain)

    def call() -> Any:
        histogram = np.bincount(codes @ strides, minlength=domain.size).astype(np.float64)
        truth = np.array([np.dot(mask, histogram) for mask in masks])
        x = np.full(domain.size, 1 / domain.size)
        average = np.zeros(domain.size)
        for _ in range(ROUNDS):
            average += x / ROUNDS
            gaps = truth - RECORDS * np.array([np.dot(mask, x) for mask in masks])
            i = np.argmax(np.abs(gaps) / (2 * ROUNDS) + rng.gumbel(size=gaps.size))
            x *= np.exp(np.sign(gaps[i]) * rate * masks[i])
            x /= x.sum()
        return average

    return call


def _many_records(domain: Domain, n: int) -> Any:
    return records(domain, max(n, 200_000))  # fewer support no promise below 1


def _end_to_end(d: int) -> Callable[[int], Call]:
    """From records to answers asked one after the other, to a distribution fitted to all of them, to new records."""

    def make(n: int) -> Call:
        domain = Domain.binary(d)
        codes, asked = _many_records(domain, n), marginals(domain, 2)
        promise: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "beta": 1e-9}

        def call() -> Any:
            with warnings.catch_warnings():  # that plain noise would promise more for so few queries
                warnings.simplefilter("ignore", AccuracyWarning)
                online = PrivateMultiplicativeWeights(codes, domain, max_queries=len(asked), **promise)
            answers = online.answer_many(asked)
            return answers, online.alpha, _fitted(codes, domain, asked, **promise).sample(len(codes))

        return call

    return make


def _release_pairs(n: int) -> Call:
    domain = Domain.binary(PAIRED)
    codes, asked = binary_records(n, PAIRED), marginals(domain, 2)
    return lambda: release_marginals(codes, domain, asked, epsilon=1.0, delta=1e-6, fit="entropic").tables


def _drawn_pairs(n: int) -> tuple[Any, ...]:
    return binary_records(n, PAIRED), _release_pairs(n)(), SIGMA


def mwem_rate(domain: Domain) -> float:
    return sqrt(8 * log(domain.size) / ROUNDS)


# --- the synthetic distribution


def _answer_slice(n: int, bits: tuple[int, ...] = HIGHEST) -> Call:
    domain = binary(n)
    synthetic, query = SyntheticDistribution(cell_weights(domain.size), domain), literals(domain, bits)
    return lambda: synthetic.answer(query)


def _numpy_slice(n: int, bits: tuple[int, ...] = HIGHEST) -> Call:
    domain = binary(n)
    cube, index = cell_weights(domain.size).reshape(domain.sizes), _index(domain, literals(domain, bits))
    cube /= cube.sum()
    return lambda: cube[index].sum()


def _marginal(n: int) -> Call:
    domain = binary(n)
    synthetic = SyntheticDistribution(cell_weights(domain.size), domain)
    return lambda: synthetic.marginal(domain.names[1:4])


def _numpy_marginal(n: int) -> Call:
    domain = binary(n)
    cube = cell_weights(domain.size).reshape(domain.sizes)
    cube /= cube.sum()
    return lambda: cube.sum(axis=(0, *range(4, len(domain))))


def _answer_many(n: int) -> Call:
    synthetic, queries = SyntheticDistribution(cell_weights(BINARY.size), BINARY), conjunctions(BINARY, n)
    return lambda: synthetic.answer_many(queries)


def _numpy_slices(n: int) -> Call:
    cube = cell_weights(BINARY.size).reshape(BINARY.sizes)
    cube /= cube.sum()
    indices = [_index(BINARY, query) for query in conjunctions(BINARY, n)]
    return lambda: np.array([cube[index].sum() for index in indices])


def rising_weights(cells: int) -> Any:
    return np.sort(cell_weights(cells))


def _sample(n: int) -> Call:
    synthetic = SyntheticDistribution(rising_weights(BINARY.size), BINARY)
    return lambda: synthetic.sample(n)


def _numpy_sample(n: int) -> Call:
    sums, rng = np.cumsum(rising_weights(BINARY.size)), np.random.default_rng()

    def call() -> Any:
        cells = np.searchsorted(sums, rng.random(n) * sums[-1], side="right")
        out = np.empty((len(BINARY), n), np.uint8)
        for j, stride in enumerate(BINARY.strides):
            out[j] = (cells // stride) & 1
        return out.T

    return call


def rising(cells: int) -> Any:
    return np.arange(1.0, cells + 1)


def _search(n: int) -> Call:
    domain = binary(n)
    synthetic = SyntheticDistribution(rising(domain.size), domain)
    return lambda: synthetic.sample(SEARCHED)


def _numpy_search(n: int) -> Call:
    domain, rng = binary(n), np.random.default_rng()
    sums = np.cumsum(rising(domain.size))

    def call() -> Any:
        cells = np.searchsorted(sums, rng.random(SEARCHED) * sums[-1], side="right")
        return (cells[:, None] // np.array(domain.strides) & 1).astype(np.uint8)

    return call


# --- cases


_case = partial(make_case, "answering")


def _on_all_case(kind: str) -> Case:
    def drawn(n: int) -> Any:
        domain, _, codes = _asked(n, 3, None)
        online, answer = _answer_on_all(kind, n)
        return codes, of_all_cells(kind, domain.size), online.alpha, answer(), online.updates

    return _case(
        f"pmw-answer-{kind.split()[-1]}",
        f"one answer of PMW that needs no update, {RECORDS:,} records, 2^16 cells, {kind}",
        1 << 16,
        lambda n: _answer_on_all(kind, n)[1],
        (_numpy_answer_on_all(kind), None),
        oracle="an answer",
        drawn=drawn,
        calls=20,
        epsilon=1.0,
        delta=1e-6,
    )


def _drawn_tables(domain: Domain) -> Any:
    def drawn(n: int) -> tuple[Any, ...]:
        asked, cells = workload(domain, n), counts(domain.size)
        return cells.reshape(domain.sizes), asked.positions, marginal_tables(cells, domain, asked)

    return drawn


def _drawn_spread(domain: Domain) -> Any:
    def drawn(n: int) -> tuple[Any, ...]:
        asked = workload(domain, n)
        tables = tables_of(asked)
        return domain.sizes, tables, asked.positions, spread_tables(tables, domain, asked)

    return drawn


def drawn_values(make: Callable[[int], Call], mask: Callable[[int], Any], times: int) -> Callable[[int], Any]:
    """Weights and mask as they were at first, and what so many calls returned."""

    def drawn(n: int) -> tuple[Any, ...]:
        call = make(n)
        return cell_weights(power_below(n)), mask(n), [call() for _ in range(times)]

    return drawn


def half(n: int) -> Any:
    return cell_mask(power_below(n))


def _of_literals(bits: tuple[int, ...]) -> Callable[[int], Any]:
    return lambda n: conjunction_mask(binary(n), literals(binary(n), bits))


def _drawn_fit(k: int) -> Callable[[int], tuple[Any, ...]]:
    def drawn(n: int) -> tuple[Any, ...]:
        domain = binary(n)
        return domain, records(domain), conjunctions(domain, k), _mwem(k)(n)(), mwem_rate(domain)

    return drawn


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
        oracle="values before updates",
        drawn=drawn_values(_in_one_pass(bits), _of_literals(bits), 3),
        calls=1 if cold else IN_A_ROW,
    )


def _end_to_end_case(d: int, seconds: float) -> Case:
    return _case(
        f"end-to-end-{d}",
        f"{SAMPLED:,} records of {d} binary columns, {1 << d:,} cells: PMW on all two-way tables, mwem of "
        f"{ROUNDS} rounds, as many sampled records",
        SAMPLED,
        _end_to_end(d),
        (None, within_seconds(seconds)),
        oracle="two-way tables",
        drawn=lambda n: (_many_records(Domain.binary(d), n), marginals(Domain.binary(d), 2), *_end_to_end(d)(n)()),
    )


CASES = (
    _case(
        "mask-evaluate",
        "evaluate a 0/1 mask, 2^24 cells",
        CELLS,
        _evaluate,
        (Side("numpy", _numpy_evaluate), faster("numpy", avx512=4, avx2=4)),
        (Side("numba sum", _stream), within("numba sum", 1.25)),
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
        oracle="values before updates",
        drawn=drawn_values(_values_both, lambda n: cell_values(power_below(n)), 3),
    ),
    _case(
        "marginals-binary",
        "all 1,140 three-way marginals of 2^20 binary cells",
        1140,
        _on_cells(BINARY, marginal_tables),
        (Side("numpy", _on_cells(BINARY, _numpy_tables), n=FEW), faster("numpy", avx512=200, avx2=200)),
        headline=True,
        oracle="sums over axes",
        drawn=_drawn_tables(BINARY),
    ),
    _case(
        "marginals-mixed",
        "all 56 three-way marginals of 8 attributes, 50,880 cells",
        56,
        _on_cells(CENSUS, marginal_tables),
        (Side("numpy", _on_cells(CENSUS, _numpy_tables)), None),
        oracle="sums over axes",
        drawn=_drawn_tables(CENSUS),
    ),
    _case(
        "spread-binary",
        "1,140 three-way tables back to 2^20 binary cells",
        1140,
        _on_tables(BINARY, spread_tables),
        (Side("numpy", _on_tables(BINARY, _numpy_spread), n=FEW), None),
        oracle="broadcasts",
        drawn=_drawn_spread(BINARY),
    ),
    _case(
        "marginals-decimal",
        "all 20 three-way marginals of 6 attributes of 10 values, 10^6 cells",
        20,
        _on_cells(DECIMAL, marginal_tables),
        (Side("numpy", _on_cells(DECIMAL, _numpy_tables)), None),
        oracle="sums over axes",
        drawn=_drawn_tables(DECIMAL),
    ),
    _case(
        "spread-decimal",
        "20 three-way tables back to 10^6 cells of 6 attributes of 10 values",
        20,
        _on_tables(DECIMAL, spread_tables),
        (Side("numpy", _on_tables(DECIMAL, _numpy_spread)), None),
        oracle="broadcasts",
        drawn=_drawn_spread(DECIMAL),
    ),
    _case(
        "spread-mixed",
        "56 three-way tables back to 50,880 cells of 8 attributes",
        56,
        _on_tables(CENSUS, spread_tables),
        (Side("numpy", _on_tables(CENSUS, _numpy_spread)), None),
        oracle="broadcasts",
        drawn=_drawn_spread(CENSUS),
    ),
    _case(
        "transform",
        "Walsh-Hadamard transform, int64, 2^24 cells, in place",
        CELLS,
        _transform,
        (Side("a copy", _copy), None),
        oracle="parities",
        drawn=lambda n: (counts(power_below(n)), _transform(n)()),
    ),
    _case(
        "mwem",
        f"mwem, 2^20 cells, {QUERIES:,} conjunctions, {ROUNDS} rounds, end to end",
        BINARY.size,
        _mwem(QUERIES),
        (Side("numpy", _numpy_mwem), faster("numpy", avx512=20, avx2=20)),
        oracle="a replay",
        drawn=_drawn_fit(QUERIES),
        headline=True,
    ),
    _case(
        "mwem-small",
        f"mwem, 2^12 cells, {FEW_QUERIES} conjunctions, {ROUNDS} rounds; beside cuboids, each of up to 8 conjunctions",
        1 << 12,
        _mwem(FEW_QUERIES),
        (beside("smartnoise_synth", "mwem", records=RECORDS, cuboids=FEW_QUERIES, rounds=ROUNDS), None),
        (beside("mbi", "mwem"), None),
        oracle="a replay",
        drawn=lambda n: _drawn_fit(FEW_QUERIES)(min(n, 1 << 12)),
        epsilon=1.0,
    ),
    _case(
        "release-pairs",
        f"release all two-way tables of {PAIRED} binary columns and fit a distribution; beside {STEPS} steps of "
        "mirror descent",
        RECORDS,
        _release_pairs,
        (beside("mbi", "fit_pairs", d=PAIRED, sigma=SIGMA, steps=STEPS), None),
        oracle="released tables",
        drawn=_drawn_pairs,
        epsilon=1.0,
        delta=1e-6,
    ),
    _end_to_end_case(16, 1.0),
    _end_to_end_case(23, 5.0),
    _case(
        "answer-slice",
        "one answer of the synthetic distribution, 2^20 cells, 3 literals, a slice of memory",
        BINARY.size,
        _answer_slice,
        (Side("numpy slice", _numpy_slice), None),
        oracle="values",
        drawn=drawn_values(_answer_slice, _of_literals(HIGHEST), 1),
        calls=100,
    ),
    _case(
        "answer-scattered",
        "one answer of the synthetic distribution, 2^20 cells, 6 literals, cells far apart",
        BINARY.size,
        partial(_answer_slice, bits=LOWEST),
        (Side("numpy slice", partial(_numpy_slice, bits=LOWEST)), None),
        oracle="values",
        drawn=drawn_values(partial(_answer_slice, bits=LOWEST), _of_literals(LOWEST), 1),
        calls=100,
    ),
    _case(
        "marginal",
        "a three-way table of the synthetic distribution, 2^20 cells",
        BINARY.size,
        _marginal,
        (Side("numpy", _numpy_marginal), None),
        oracle="a table",
        drawn=lambda n: (cell_weights(power_below(n)).reshape(binary(n).sizes), _marginal(n)()),
    ),
    _case(
        "pmw-answer",
        f"one answer of PMW that needs no update, {RECORDS:,} records, 2^20 cells, 3 literals",
        BINARY.size,
        _answer,
        (Side("numpy", _numpy_answer), None),
        oracle="answers after updates",
        drawn=_drawn_answers(3, None),
        calls=20,
        epsilon=1.0,
        delta=1e-6,
    ),
    *map(_on_all_case, ("a mask", "a query of values")),
    _case(
        "pmw-update",
        f"one answer of PMW after one update, {RECORDS:,} records, 2^20 cells, 2 literals",
        BINARY.size,
        _answer_and_update,
        (Side("numpy", _numpy_answer_and_update), None),
        oracle="answers after updates",
        drawn=_drawn_answers(2, PAIR_SHARE),
        rounds=30,
        epsilon=1.0,
        delta=1e-6,
    ),
    _case(
        "answer-conjunctions",
        f"answers of the synthetic distribution, 2^20 cells, {QUERIES:,} conjunctions",
        QUERIES,
        _answer_many,
        (Side("numpy slices", _numpy_slices, n=FEW), None),
        oracle="slices",
        drawn=lambda n: (cell_weights(BINARY.size), conjunctions(BINARY, FEW), _answer_many(FEW)()),
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
    _case(
        "sample",
        "sample 10^6 records from 2^20 cells, tables ready",
        SAMPLED,
        _sample,
        (Side("numpy", _numpy_sample), None),
        oracle="rising weights",
        drawn=lambda n: _sample(n)(),
    ),
    _case(
        "sample-searched",
        f"sample {SEARCHED:,} records from 2^25 cells, for which no tables are made",
        1 << 25,
        _search,
        (Side("numpy", _numpy_search), None),
        oracle="cells that rise",
        drawn=lambda n: _search(1 << 25)(),
    ),
)
