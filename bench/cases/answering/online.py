"""Private multiplicative weights, one answer at a time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fastdp import Conjunction, Domain, Linear, Mask, PrivateMultiplicativeWeights
from fastdp.answering.queries.cell_runs import Pattern
from fastdp.answering.queries.query import bind
from fastdp.answering.true_answers import TrueAnswers
from fastdp.kernels import literals, subcubes, weights

from ..registry import Call, Case, Side, make_case, within, within_seconds
from ..traffic import read_once
from .inputs import BINARY, QUERIES, RATE, RECORDS, binary, cell_mask, cell_values, conjunctions, slices_of

_case = partial(make_case, "answering")

PREPARED = 4  # objects that answer, for a row in which each answer changes them
MEASURED: dict[str, Any] = {"variant": "measured", "replay": 0}
PAIR_SHARE = 0.52  # of records, beside a quarter of the cells: off by more than the threshold until one update


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


def _online(codes: Any, domain: Domain, **options: Any) -> PrivateMultiplicativeWeights:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "max_queries": 10**6, "variant": "sharp"}
    return PrivateMultiplicativeWeights(codes, domain, **given | options)


def _answer(n: int, variant: str = "sharp") -> Call:
    domain, (query, *_), codes = _asked(n, 3, None)
    online = _online(codes, domain, variant=variant)
    return lambda: online.answer(query)


def _uniform(n: int) -> tuple[PrivateMultiplicativeWeights, Any]:
    domain, _, codes = _asked(n, 3, None)
    return _online(codes, domain, max_queries=2**60), conjunctions(domain, QUERIES)


def _answer_many(n: int) -> Call:
    online, queries = _uniform(n)
    return lambda: online.answer_many(queries)


def _answer_each(n: int) -> Call:
    online, queries = _uniform(n)
    return lambda: np.array([online.answer(query) for query in queries])


def of_all_cells(kind: str, cells: int) -> Any:
    return cell_mask(cells) if kind == "a mask" else cell_values(cells)


def _answer_on_all(kind: str, n: int) -> Any:
    domain, _, codes = _asked(n, 3, None)
    online, values = _online(codes, domain), of_all_cells(kind, domain.size)
    query = Mask(values) if kind == "a mask" else Linear(values)
    return online, lambda: online.answer(query)


def _kernels_on_all(kind: str) -> Side:
    """What an answer cannot do without: the query's value on the weights, and its count."""

    def make(n: int) -> Call:
        domain, _, codes = _asked(n, 3, None)
        x, values = np.full(domain.size, 1.0), of_all_cells(kind, domain.size)
        histogram = TrueAnswers(codes, domain).cells()
        if kind == "a mask":
            mask = values.astype(np.uint8)
            return lambda: weights.sum_masked(x, mask) / domain.size + 0 * weights.count_masked(histogram, mask)
        bound: Any = bind(Linear(values), domain)
        of_cells = bound.values

        def call() -> float:
            weights.count_valued(histogram, bound.units(slice(None)))
            return float(weights.sum_valued(x, of_cells)) / domain.size

        return call

    return Side("kernels", make)


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


def _answer_and_update(n: int, **options: Any) -> Call:
    """Each object answers a query a block of attributes; they are made beforehand, for some 40 calls."""
    domain, queries, codes = _asked(n, 2, PAIR_SHARE)

    def more() -> list[tuple[PrivateMultiplicativeWeights, Conjunction]]:
        online = _online(codes, domain, **options)
        for query in queries:  # the columns of its literals are packed when they are first asked
            online._run.true_answers.count(bind(query, domain))
        return [(online, query) for query in queries]

    ready = [each for _ in range(PREPARED) for each in more()]

    def call() -> float:
        if not ready:
            ready.extend(more())
        online, query = ready.pop()
        return online.answer(query)

    return call


def _update_kernels(n: int) -> Call:
    """What an answer with an update cannot do without, on the weights of as many objects: the query's count, its value
    on the weights, and the pass that changes them."""
    domain, queries, codes = _asked(n, 2, PAIR_SHARE)
    packed: Any = TrueAnswers(codes, domain)._literals
    of_runs: Any = subcubes.sum_runs, subcubes.scale_runs
    of_pattern: Any = subcubes.sum_pattern, subcubes.scale_pattern

    def more() -> list[tuple[Any, Any, Any]]:
        x, each = np.full(domain.size, 1.0), []
        for query in queries:
            bound: Any = bind(query, domain)
            slots = None if packed is None else np.array([packed._slot(p, table) for p, table in bound.allowed])
            each.append((x, bound.walk.plans[0], slots))
        return each

    ready = [each for _ in range(PREPARED) for each in more()]

    def call() -> float:
        if not ready:
            ready.extend(more())
        x, plan, slots = ready.pop()
        if slots is not None:
            literals.count_all(packed._columns, slots)
        add_up, scale = of_pattern if isinstance(plan, Pattern) else of_runs
        add_up(x, *plan)
        return float(scale(x, *plan, 1.001))

    return call


def _numpy_online(codes: Any, domain: Domain, query: Conjunction) -> Call:
    """Two tests, as ours, and weights that are kept normalised; small updates, so that the answer stays as far off."""
    rng, index = np.random.default_rng(), slices_of(domain, query)
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


def _drawn_answers(literals_each: int, share: float | None, **options: Any) -> Callable[[int], Any]:
    """The truth, and per query: the answer, and after how many updates it was given."""

    def drawn(n: int) -> Any:
        domain, queries, codes = _asked(n, literals_each, share)
        online, found = _online(codes, domain, **options), []
        for query in queries:
            before = online.updates
            found.append((online.answer(query), online.updates - before))
        return codes, literals_each, online.alpha, found

    return drawn


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
        (_kernels_on_all(kind), within("kernels", 1.5)),
        traffic=read_once(9 if kind == "a mask" else 16),
        oracle="an answer",
        drawn=drawn,
        calls=20,
        epsilon=1.0,
        delta=1e-6,
    )


CASES = (
    _case(
        "pmw-answer",
        f"one answer of PMW that needs no update, {RECORDS:,} records, 2^20 cells, 3 literals",
        BINARY.size,
        _answer,
        (Side("numpy", _numpy_answer), within_seconds(12e-6)),
        oracle="answers after updates",
        drawn=_drawn_answers(3, None),
        calls=20,
        epsilon=1.0,
        delta=1e-6,
    ),
    _case(
        "pmw-answer-measured",
        f"the same, measured answers, {RECORDS:,} records, 2^20 cells, 3 literals",
        BINARY.size,
        partial(_answer, variant="measured"),
        (Side("numpy", _numpy_answer), within_seconds(12e-6)),
        oracle="answers after updates",
        drawn=_drawn_answers(3, None, variant="measured"),
        calls=20,
        epsilon=1.0,
        delta=1e-6,
    ),
    _case(
        "pmw-answer-many",
        f"{QUERIES:,} conjunctions that need no update, asked together, {RECORDS:,} records, 2^20 cells",
        BINARY.size,
        _answer_many,
        (Side("one by one", _answer_each), within("one by one", 1)),
        oracle="uniform answers",
        drawn=lambda n: (conjunctions(binary(n), QUERIES), _answer_many(n)()),
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
        "pmw-update-measured",
        f"one measured answer with its update, no replay, {RECORDS:,} records, 2^20 cells, 2 literals",
        BINARY.size,
        partial(_answer_and_update, **MEASURED),
        (Side("kernels", _update_kernels), within("kernels", 1.2)),
        oracle="measured answers",
        drawn=_drawn_answers(2, PAIR_SHARE, **MEASURED),
        rounds=30,
        epsilon=1.0,
        delta=1e-6,
    ),
)
