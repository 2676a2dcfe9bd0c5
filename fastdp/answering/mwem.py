"""MWEM: a synthetic distribution for a workload that is known in advance.

Each round chooses the query on which the distribution is furthest off, by the exponential mechanism, and updates by it.
mwem.md has the theorem for the averaged iterate, and the privacy of both variants.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, inf, log, prod, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import bounds, noise
from ..mechanisms.selection import draw_one
from ..privacy.budget import Budget, charge
from ..privacy.calibration import MAX_EPSILON, SMALLEST, zcdp_rho
from ..privacy.guarantees import NEIGHBORS, ZCDP, BoundedRange, Guarantee, Neighbors
from ..randomness.keys import Randomness, fresh_key
from ..records.domain import OUTSIDE, Domain, Outside, check_domain, shown
from ..records.sources import rows_of
from ..support import rounding
from ..support.checks import (
    MAX_INT64,
    check_records,
    integer,
    large_integer,
    one_of,
    positive,
    probability,
    small_delta,
)
from ..support.errors import AccuracyWarning, levels_to_caller
from ..support.progress import Progress, Report, reporting
from ..support.rounding import down, lower, up
from .dense_weights import DenseWeights
from .entropic_fit import Residuals, bytes_of_fit, fit_entropic
from .factored_weights import FactoredWeights
from .memory import check_memory, check_room
from .multiplicative_weights import DENSE_CELLS
from .queries.bound_query import UNIT
from .queries.marginals import Marginals
from .queries.query import as_sequence
from .synthetic_distribution import SyntheticDistribution
from .true_answers import TrueAnswers
from .update_schedule import promise, share_of
from .workload import Workload

Variant = Literal["average", "measured"]
VARIANTS = ("average", "measured")
MOST_ROUNDS = 10_000  # of "average", by default
_FACTORED_ROUNDS = 300  # of "average" by default, where every round's blocks are kept
_ROUNDS = 100  # of "measured", by default, where they take ten seconds at most
_TABLE_WORK = 1 << 26  # cells times rounds of "measured" on marginals in ten seconds: 150 ns each
_QUERY_WORK = 1 << 30  # of other queries, the cells that one touches times the rounds squared: each fit takes all again
_QUICK_CELLS = 1 << 20  # up to which marginals are measured by default
_CHOOSING = 10  # one part in so many chooses, the rest measures
_PASSES = 20
_LEAST = 1e-290  # of a cell's probability, since fits keep logarithms


@dataclass(frozen=True)
class Rounds:
    """The numbers of one run of the averaged variant: mwem.md, theorem 2."""

    alpha: float  # all answers are within alpha, with probability 1 - beta; inf if nothing can be promised
    count: int
    range: float  # the bounded range of one choice
    rate: float

    @classmethod
    def of(
        cls, count: int, *, n: int, log_cells: float, queries: int, epsilon: float, delta: float, beta: float
    ) -> Rounds:
        """So many rounds."""
        each = range_of_round(count, epsilon, delta)
        slack = 2 / each * log(2 * queries * count / beta) if each else inf
        alpha = sqrt(log_cells / (2 * count)) + slack / max(n, 1) + 1 / UNIT
        return cls(alpha, count, each, sqrt(8 * log_cells / count))

    @classmethod
    def best(cls, most: int, **numbers: Any) -> Rounds:
        """The number of rounds, up to `most`, that promises most."""
        counts = {min(most, ceil(1.05**i)) for i in range(200)}
        return min((cls.of(count, **numbers) for count in sorted(counts)), key=lambda rounds: rounds.alpha)


def range_of_round(count: int, epsilon: float, delta: float) -> float:
    """The largest bounded range of so many choices that keep within the total: by sums, or as zCDP."""
    return share_of(count, epsilon, delta, 8)


def plain_error(queries: int, moved: int, epsilon: float, delta: float, beta: float) -> float:
    """The error of plain noise on all answers, in records, where a record moves so many of them by one."""
    if not delta:
        return bounds.laplace(sensitivity=moved, epsilon=epsilon, beta=beta, count=queries)
    if min(epsilon, delta) < SMALLEST:
        return inf
    sensitivity, epsilon = sqrt(moved), min(epsilon, MAX_EPSILON)
    return bounds.gaussian(sensitivity=sensitivity, epsilon=epsilon, delta=delta, beta=beta, count=queries)


class FittedDistribution(SyntheticDistribution):
    """What `mwem` returns: a synthetic distribution that knows how it came about.

    alpha       its answers to the workload are within alpha, with probability 1 - beta; None: nothing is promised
    chosen      the query, or the attributes of the table, of every round
    rounds      how many rounds there were
    domain, guarantee, n, blocks    as of every SyntheticDistribution
    """

    alpha: float | None
    chosen: list[Any]

    def __init__(self, weights: Any, domain: Domain | None, *, alpha: float | None, chosen: list[Any], **more: Any):
        super().__init__(weights, domain, **more)
        self.alpha, self.chosen = alpha, chosen

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return len(self.chosen)

    def __repr__(self) -> str:
        promise = "" if self.alpha is None else f", alpha={self.alpha:.4g}"
        return f"{super().__repr__()[:-1]}, {self.rounds} rounds{promise})"


def mwem(
    data: Any,
    domain: Domain,
    queries: Iterable[Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    rounds: int | None = None,
    variant: Variant | None = None,
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> FittedDistribution:
    """Fit a synthetic distribution to a workload of queries.

    queries     any queries, or `marginals(domain, k)`
    rounds      how many; by default as many as make the promised error least ("average"), or one for each query or
                table ("measured", where there cannot be more), 100 at most and no more than take about ten seconds:
                for marginals 2^26 / cells, 64 of them on 2^20 cells and 8 on 2^23
    variant     "average": a choice and an update a round, answers from the average of all iterates: has a theorem
                "measured": each round also measures what it chose with noise, and all measurements are fitted again
                (Hardt, Ligett and McSherry); of marginals it chooses and measures whole tables. Promises nothing, and
                on real tables its error is a tenth of the other's and less. Needs all cells in memory, and under
                add-remove neighbours marginals, whose tables say how many records there are
                None: "measured" for marginals of a domain of at most 2^20 cells, otherwise "average"
    records     under add-remove neighbours, where the number of records is private: a public lower bound of it;
                `.alpha` holds if there are as many
    outside     what is done with records outside the domain: "raise" a DomainError, or "clip" them to the nearest code,
                or label where labels are increasing numbers; missing entries and other labels raise as ever

    Guarantee    (epsilon, delta)-DP
    Proof        mwem.md, theorems 1 to 3
    Accuracy     "average": `.alpha` of the result, and of `bounds.mwem` beforehand. An AccuracyWarning tells when plain
                 noise on the same answers would promise less error; `release_marginals` gives those, and fits them
    Cost         a round of "average" evaluates the workload: 5 ms for 1,000 conjunctions on 2^20 cells. "measured" fits
                 in every round: 56 rounds on 50,880 cells take a quarter of a second at epsilon = 0.1, one at 10
    Not covered  the choice of the workload, which must not depend on the records
    Raises       ValueError and DomainError before anything is spent

    Examples
    >>> import fastdp, numpy as np
    >>> domain = fastdp.Domain.binary(10)
    >>> people = np.random.default_rng(0).random((50_000, 10)) < 0.3
    >>> queries = [fastdp.Conjunction({"v1": 1, "v2": 1}), fastdp.Conjunction({"v3": 0})]
    >>> fitted = fastdp.mwem(people, domain, queries, epsilon=1.0, delta=1e-6, variant="measured")
    >>> abs(fitted.answer(queries[0]) - 0.09) < 0.1
    True
    """
    one_of("outside", outside, OUTSIDE)
    rows = rows_of(data)
    plan = plan_of(rows.n, domain, queries, epsilon, delta, rounds, variant, beta, records, neighbors)
    check_room(plan.weight_bytes, plan.weight_bytes, TrueAnswers.bytes(plan.n, domain, rows.gathers))
    plan.hint()
    parameters = {"epsilon": plan.epsilon, "delta": plan.delta, "rounds": plan.rounds, "variant": plan.variant}
    with charge(budget, plan.guarantee, "mwem", parameters) as final, reporting(progress, "fitting") as report:
        plan.read(TrueAnswers(rows, domain, outside, n=plan.n))
        key = fresh_key(rng)
        final()
        return plan.run(key, rng, report)


def plan_of(
    n: int, domain: Any, queries: Any, epsilon: Any, delta: Any, rounds: Any, variant: Any, beta: Any, records: Any,
    neighbors: Any,
) -> Plan:  # fmt: skip
    """Checked parameters, and all that follows from them; `n` counts under replace-one neighbours only."""
    check_domain(domain)
    one_of("neighbors", neighbors, NEIGHBORS)
    epsilon, delta = positive("epsilon", epsilon, toward=0), small_delta("delta", delta)
    beta = probability("beta", beta)
    if rounds is not None:
        rounds = integer("rounds", rounds, least=1, most=MAX_INT64)
    check_records(records, neighbors)
    if records is not None:
        records = large_integer("records", records, least=1, most=MAX_INT64)
    if isinstance(queries, Marginals) and queries.domain != domain:
        raise ValueError("queries: must be marginals of `domain`, whose attributes or sizes differ")
    if variant is None:
        variant = "measured" if isinstance(queries, Marginals) and domain.size <= _QUICK_CELLS else "average"
    one_of("variant", variant, VARIANTS)
    workload = Workload(as_sequence(queries), domain)
    if not len(workload):
        raise ValueError("queries: must be at least one")
    if not n and records is None:
        raise ValueError("data: n=0 records: must be at least one")
    kind = _Average if variant == "average" else _Measured
    return kind(workload, n if records is None else records, neighbors, epsilon, delta, beta, rounds)


class Plan:
    """What both variants have in common: the records, the workload, and what a choice is worth."""

    variant: Variant
    alpha = inf  # what is promised

    def __init__(
        self, workload: Workload, n: int, neighbors: Neighbors, epsilon: float, delta: float,
        beta: float, rounds: int | None,
    ) -> None:  # fmt: skip
        self.workload, self.domain, self.n, self.neighbors = workload, workload.domain, n, neighbors
        self.epsilon, self.delta, self.beta = epsilon, delta, beta
        self.numbers: dict[str, Any] = {
            "n": n, "log_cells": sum(map(log, self.domain.sizes)), "queries": len(workload), "epsilon": epsilon,
            "delta": delta, "beta": beta,
        }  # fmt: skip
        self.rounds, self.guarantee = self.prepare(rounds)

    @property
    def most_rounds(self) -> int:
        """Of "average", by default."""
        return MOST_ROUNDS if self.domain.size <= DENSE_CELLS else _FACTORED_ROUNDS

    @property
    def weight_bytes(self) -> int:
        """What distributions take, those at hand and the average or what the fit needs."""
        return bytes_of_fit(self.domain) if self.variant == "measured" else 16 * self.domain.size

    @property
    def plain_error(self) -> float:
        """The error of plain noise on all answers, in records."""
        queries = self.workload.queries
        moved = queries.tables if isinstance(queries, Marginals) else len(queries)
        if isinstance(queries, Marginals) and self.neighbors == "replace-one":
            moved *= 2  # a replacement moves two cells of each table
        return plain_error(len(queries), moved, self.epsilon, self.delta, self.beta)

    def hint(self) -> None:
        """An AccuracyWarning if plain noise on all answers promises less error than this does."""

    def read(self, truth: TrueAnswers) -> None:
        """Count the queries on the records: the last thing that may fail before the charge is final."""
        self.records, self.counts = truth.n, self.workload.counts(truth)

    def prepare(self, rounds: int | None) -> tuple[int, Guarantee]:
        raise AssertionError("every variant has a schedule")

    def run(self, key: Any, rng: Randomness | None, report: Report) -> FittedDistribution:
        raise AssertionError("every variant runs")

    def promise(self, *parts: tuple[Guarantee, int]) -> Guarantee:
        return promise(self.epsilon, self.delta, *parts, neighbors=self.neighbors)

    def gaps(self, counts: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.int64]:
        """By how much each query has more in the records than in the distribution, in units of 2^-16 records.

        A sum over the records of f(x) - v, v the value f(Xh) rounded down to a multiple of 2^-16: one record moves it
        by at most one, and the cells of a table together by at most two.
        """
        gaps: NDArray[np.int64] = counts - self.records * np.floor(np.clip(values, 0.0, 1.0) * UNIT).astype(np.int64)
        return gaps


class _Average(Plan):
    """mwem.md, theorem 2."""

    variant: Variant = "average"

    def prepare(self, rounds: int | None) -> tuple[int, Guarantee]:
        dense = self.domain.size <= DENSE_CELLS
        if rounds is None:
            self.schedule = Rounds.best(self.most_rounds, **self.numbers)
        else:
            self.schedule = Rounds.of(rounds, **self.numbers)
        self.alpha = self.schedule.alpha
        if not dense:
            self.check_blocks(self.schedule.count)
        choice = BoundedRange(self.schedule.range, neighbors=self.neighbors)
        return self.schedule.count, self.promise((choice, self.schedule.count))

    @property
    def weight_bytes(self) -> int:
        """Of factored weights at first, once for every round."""
        if self.domain.size <= DENSE_CELLS:
            return super().weight_bytes
        return 8 * self.schedule.count * sum(self.domain.sizes)

    def hint(self) -> None:
        error = self.plain_error
        if error < self.alpha * self.n:
            name = "Gaussian" if self.delta else "Laplace"
            few = f", and the same from {ceil(error / self.alpha):,} records on" if self.alpha < 1 else ""
            warnings.warn(
                f"mwem promises an error of at most {self.alpha:.3g}, plain {name} answers to these "
                f"{len(self.workload):,} queries {error / self.n:.3g}{few}: see release_marginals, or "
                f"fastdp.{name.lower()}",
                AccuracyWarning,
                stacklevel=levels_to_caller(),
            )

    def check_blocks(self, rounds: int) -> None:
        """ValueError if the blocks that updates may merge, once for every round, do not fit into the memory."""
        block_of = {p: {p} for p in range(len(self.domain))}
        for i in range(len(self.workload)):
            merged = set().union(*(block_of[p] for p in self.workload.bound(i).attributes))
            block_of.update(dict.fromkeys(merged, merged))
        largest = max(block_of.values(), key=lambda block: sum(log(self.domain.sizes[p]) for p in block))
        check_memory(self.domain, sorted(largest), "float64", f"{rounds} rounds with these queries may merge", rounds)

    def run(self, key: Any, rng: Randomness | None, report: Report) -> FittedDistribution:
        weights, counts = new_weights(self.domain), self.counts
        eta = down(lower(self.schedule.range) / (2 * UNIT))
        average, iterates, chosen = None, [], []
        for t in range(self.rounds):
            report(t, self.rounds, "choosing and updating")
            if isinstance(weights, DenseWeights):
                average = np.zeros(self.domain.size) if average is None else average
                weights.add_into(average, 1.0 / self.rounds)
            else:
                iterates.append(weights.copy())
            gaps = self.gaps(counts, self.workload.evaluate(weights))
            which = draw_one(np.concatenate((gaps, -gaps)), key if t == 0 else fresh_key(rng), eta)
            sign, i = (1, which) if which < gaps.size else (-1, which - gaps.size)
            weights.scale(self.workload.bound(i), sign * self.schedule.rate)
            chosen.append(self.workload.queries[i])
        report(self.rounds, self.rounds, "")
        alpha = self.alpha if self.alpha < 1 else None
        known = {"guarantee": self.guarantee, "n": self.n if self.neighbors == "replace-one" else None}
        if average is None:
            return FittedDistribution(iterates, None, alpha=alpha, chosen=chosen, **known)
        return FittedDistribution(average, self.domain, alpha=alpha, chosen=chosen, **known)


class _Measured(Plan):
    """mwem.md, theorem 3: a tenth of each round's budget chooses, the rest measures."""

    variant: Variant = "measured"

    def prepare(self, rounds: int | None) -> tuple[int, Guarantee]:
        if self.domain.size > DENSE_CELLS:
            raise ValueError(
                f"domain: {shown(self.domain.size)} cells: must be at most 2^24 for variant='measured'; take 'average'"
            )
        queries = self.workload.queries
        self.tables = queries if isinstance(queries, Marginals) else None
        if self.tables is None and self.neighbors == "add-remove":
            raise ValueError(
                "queries: must be marginals for variant='measured' under add-remove neighbours: their tables say how "
                "many records there are; take 'average'"
            )
        candidates = len(queries) if self.tables is None else self.tables.tables
        if rounds is not None and rounds > candidates:
            what = "queries" if self.tables is None else "tables"
            raise ValueError(
                f"rounds={rounds}: must be at most {candidates}, the number of {what}, for variant='measured', which "
                "measures each once"
            )
        count = min(candidates, self.quick_rounds) if rounds is None else rounds
        # how far apart one record moves two scores; by how much (L1, and L2 squared) it moves what is measured
        self.reach = 2 if self.tables is None else 4
        moved = 1 if self.tables is None or self.neighbors == "add-remove" else 2
        if self.delta:
            rho = Fraction(zcdp_rho(self.epsilon, self.delta)) / count
            self.range = sqrt(8 * float(rho) / _CHOOSING) * (1 - 2.0**-50)
            rest = rho - Fraction(self.range) ** 2 / 8
            ratio = moved / (2 * rest)
            root = up(rounding.sqrt(rounding.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))))
            self.sigma = root
            self.noise: noise.Plan = noise.gaussian_plan(noise.scale_in_range(root * UNIT, "sigma / 2^-16"))
            one = BoundedRange(self.range, neighbors=self.neighbors)
            return count, self.promise((one, count), (ZCDP(up(rest), neighbors=self.neighbors), count))
        each = lower(self.epsilon) / count
        self.range = down(each / _CHOOSING)
        scale = up(moved / (each - Fraction(self.range)))
        self.sigma = sqrt(2) * scale
        self.noise = noise.laplace_plan(noise.scale_in_range(scale * UNIT, "scale / 2^-16"))
        return count, self.promise()

    @property
    def quick_rounds(self) -> int:
        """As many as take about ten seconds, by public numbers."""
        if self.tables is not None:
            return max(1, min(_ROUNDS, _TABLE_WORK // self.domain.size))
        return max(1, min(_ROUNDS, int(sqrt(_QUERY_WORK / self.workload.cells_of_one))))

    def run(self, key: Any, rng: Randomness | None, report: Report) -> FittedDistribution:
        counts = self.counts
        sizes = [1] * counts.size if self.tables is None else [prod(shape) for shape in self.tables.shapes]
        starts = np.cumsum([0, *sizes])
        eta = down(lower(self.range) / (self.reach * UNIT))
        measured: dict[int, NDArray[np.float64]] = {}
        weights: Any = DenseWeights(self.domain)
        for t in range(self.rounds):
            report(t, self.rounds, "choosing, measuring, fitting")
            off = np.abs(self.gaps(counts, self.workload.evaluate(weights)))
            scores = np.add.reduceat(off, starts[:-1]).astype(np.float64)
            scores[list(measured)] = -inf  # it is public what has been measured
            i = draw_one(scores, key if t == 0 else fresh_key(rng), eta)
            part = counts[starts[i] : starts[i + 1]]
            measured[i] = (part + noise.integer_noise(self.noise, fresh_key(rng), part.size)) / UNIT
            last = t == self.rounds - 1
            weights = self._fit_queries(measured) if self.tables is None else self._fit_tables(measured, weights, last)
        report(self.rounds, self.rounds, "")
        chosen = [self.workload.queries[i] if self.tables is None else self.tables.subsets[i] for i in measured]
        n = self.n if self.neighbors == "replace-one" else None
        return FittedDistribution(weights, self.domain, alpha=None, chosen=chosen, guarantee=self.guarantee, n=n)

    def _fit_tables(self, measured: dict[int, NDArray[np.float64]], before: DenseWeights, last: bool) -> DenseWeights:
        """The entropic fit to the tables measured so far; the number of records is read off them.

        Fits that only serve the next choice go on from the one before, which takes an eighth of the time; the last
        begins afresh, or what was fitted to noise on the way would stay (five times the error at epsilon = 10).
        """
        assert self.tables is not None
        some = Marginals(self.domain, [self.tables.subsets[i] for i in measured])
        order = [self.tables.positions.index(positions) for positions in some.positions]
        total = float(np.mean([table.sum() for table in measured.values()]))
        n = self.n if self.neighbors == "replace-one" else max(total, 1.0)
        residuals = Residuals(some)
        tables = [measured[i].reshape(self.tables.shapes[i]) / n for i in order]
        target = residuals.build(residuals.solve(tables))
        start = None if last else np.maximum(before.probabilities(), _LEAST)
        found = fit_entropic(target, residuals, self.sigma / n, start=start)
        return DenseWeights(self.domain, x=found.probabilities, span=inf)

    def _fit_queries(self, measured: dict[int, NDArray[np.float64]]) -> DenseWeights:
        """Multiplicative weights with every measurement in turn, several times: what Hardt, Ligett and McSherry do."""
        weights = DenseWeights(self.domain)
        for _ in range(_PASSES):
            for i, value in measured.items():
                bound = self.workload.bound(i)
                gap = min(max(float(value[0]) / self.n, 0.0), 1.0) - weights.evaluate(bound)
                weights.scale(bound, 2 * gap)
        return weights


def new_weights(domain: Domain) -> DenseWeights | FactoredWeights:
    """Uniform weights, one by one where there is room."""
    return DenseWeights(domain) if domain.size <= DENSE_CELLS else FactoredWeights(domain)
