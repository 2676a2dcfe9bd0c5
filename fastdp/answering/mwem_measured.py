"""MWEM that measures what it chose and fits all measurements again: mwem.md, theorem 3. No error bound."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import inf, prod, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.selection import draw_one
from ..privacy.calibration import gaussian_mu, zcdp_rho
from ..privacy.conversions import range_of_rho, rho_of_range
from ..privacy.guarantees import ZCDP, BoundedRange, Guarantee, Neighbors, PureDP
from ..privacy.loss_distributions import epsilon_bounds
from ..privacy.profiles import Exponential, Gaussian
from ..randomness import noise_draws, noise_plans
from ..randomness.charged_keys import ChargedKeys
from ..records.domain import display_count
from ..support import rounding
from ..support.progress import Report
from ..support.rounding import down, lower, root_up, up
from ..support.search import greatest_float
from .dense_weights import DenseWeights
from .entropic_fit import fit_entropic
from .least_squares_fit import LeastSquares
from .memory import DENSE_CELLS
from .mwem_plan import MwemPlan, Variant
from .queries.bound_query import UNIT
from .queries.marginals import Marginals

_ROUNDS = 100  # by default, where they take ten seconds at most
_TABLE_WORK = 1 << 26  # cells times rounds on marginals in ten seconds: 150 ns each
_QUERY_WORK = 1 << 30  # of other queries, the cells that one touches times the rounds squared: each fit takes all again
_CHOOSING = 10  # one part in so many of a round's privacy chooses, the rest measures
_PASSES = 20
_LEAST = 1e-290  # of a cell's probability, since fits keep logarithms


class Round(NamedTuple):
    """What one round takes of rho: a tenth for the choice, the rest for the noise of a measurement."""

    range: float
    rest: Fraction
    sensitivity: int  # of what is measured, in L2, squared
    sigma: float

    @classmethod
    def of(cls, rho: Fraction, sensitivity: int) -> Round:
        width = range_of_rho(down(rho / _CHOOSING))
        rest = rho - Fraction(rho_of_range(width))
        ratio = sensitivity / (2 * rest)
        sigma = rounding.sqrt(rounding.divide(Decimal(ratio.numerator), Decimal(ratio.denominator)))
        return cls(width, rest, sensitivity, up(sigma))

    @property
    def mu(self) -> float:
        """Of the measurement, whose noise lies on a grid of 2^-16 records."""
        return gaussian_mu(root_up(self.sensitivity) * UNIT, self.sigma * UNIT, DENSE_CELLS)

    def guarantees(self, neighbors: Neighbors) -> tuple[Guarantee, Guarantee]:
        """Of the choice, and of the measurement."""
        return BoundedRange(self.range, neighbors=neighbors), ZCDP(up(self.rest), mu=self.mu, neighbors=neighbors)


@lru_cache(1024)
def _round_of(epsilon: float, delta: float, count: int, sensitivity: int) -> Round:
    """The round with the largest rho such that so many keep within the total: by loss distributions, or by moments."""
    most, failing = down(lower(epsilon)), down(lower(delta))
    least = zcdp_rho(epsilon, delta)

    def fits(rho: float) -> bool:
        one = Round.of(Fraction(rho) / count, sensitivity)
        losses = [(Exponential(one.range), count), (Gaussian(one.mu), count)]
        bounds = epsilon_bounds(losses, delta=failing, both=False)
        return bounds is not None and bounds.at_most <= most

    more = greatest_float(fits, bracket=(least, 1.2 * least), tolerance=1e-3, smallest=least)
    return Round.of(Fraction(max(least, more)) / count, sensitivity)


class MeasuredPlan(MwemPlan):
    """Every round chooses a query, or a whole table, and measures it with noise: a tenth of the round's share of the
    privacy chooses, the rest measures."""

    variant: ClassVar[Variant] = "measured"

    def prepare(self, rounds: int | None) -> tuple[int, Guarantee]:
        if self.domain.size > DENSE_CELLS:
            raise ValueError(
                f"domain: {display_count(self.domain.size)} cells: must be at most 2^24 for variant='measured'; "
                "take 'average'"
            )
        queries = self.workload.queries
        self.tables = queries if isinstance(queries, Marginals) else None
        if self.tables is None and self.neighbors == "add-remove":
            raise ValueError(
                "queries: must be marginals for variant='measured' under add-remove neighbours: their tables give "
                "the number of records; take 'average'"
            )
        candidates = len(queries) if self.tables is None else self.tables.tables
        if rounds is not None and rounds > candidates:
            what = "queries" if self.tables is None else "tables"
            raise ValueError(
                f"rounds={rounds}: must be at most {candidates}, the number of {what}, for variant='measured', which "
                "measures each once"
            )
        count = min(candidates, self.quick_rounds) if rounds is None else rounds
        return count, self._share(count)

    def _share(self, count: int) -> Guarantee:
        """Divide the privacy among rounds, and each round's among choice and noise; returns what all guarantee."""
        # by how much a record changes the difference of two scores; and what is measured, in L1 and in L2 squared
        self.score_sensitivity = 2 if self.tables is None else 4
        sensitivity = 1 if self.tables is None or self.neighbors == "add-remove" else 2
        each = lower(self.epsilon) / count
        width = down(each / _CHOOSING)
        scale = up(sensitivity / (each - Fraction(width)))
        made = _round_of(self.epsilon, self.delta, count, sensitivity) if self.delta else None
        if made and not (self.may_be_pure and sqrt(2) * scale < made.sigma):
            self.range, self.sigma = made.range, made.sigma
            self.noise: noise_plans.NoisePlan = noise_plans.gaussian_plan(
                noise_plans.scale_in_range(self.sigma * UNIT, "sigma / 2^-16")
            )
            return self.guarantee_of(*((part, count) for part in made.guarantees(self.neighbors)))
        self.range, self.sigma = width, sqrt(2) * scale
        self.noise = noise_plans.laplace_plan(noise_plans.scale_in_range(scale * UNIT, "scale / 2^-16"))
        return PureDP(self.epsilon, neighbors=self.neighbors)

    def warn_if_plain_noise_is_better(self) -> None:
        """Nothing: there is no error bound to compare with."""

    @property
    def quick_rounds(self) -> int:
        """As many as take about ten seconds, by public numbers."""
        if self.tables is not None:
            return max(1, min(_ROUNDS, _TABLE_WORK // self.domain.size))
        return max(1, min(_ROUNDS, int(sqrt(_QUERY_WORK / self.workload.cells_of_one))))

    def run(self, keys: ChargedKeys, report: Report) -> tuple[Any, list[Any]]:
        counts = self.counts
        sizes = [1] * counts.size if self.tables is None else [prod(shape) for shape in self.tables.shapes]
        starts = np.cumsum([0, *sizes])
        eta = down(lower(self.range) / (self.score_sensitivity * UNIT))
        measured: dict[int, NDArray[np.float64]] = {}
        weights = DenseWeights(self.domain)
        for t in range(self.rounds):
            report(t, self.rounds, "choosing, measuring, fitting")
            off = np.abs(self.gaps(counts, self.workload.evaluate(weights)))
            scores = np.add.reduceat(off, starts[:-1]).astype(np.float64)
            scores[list(measured)] = -inf  # it is public what has been measured
            i = draw_one(scores, keys.take(), eta)
            part = counts[starts[i] : starts[i + 1]]
            measured[i] = (part + noise_draws.integer_noise(self.noise, keys.take(), part.size)) / UNIT
            last = t == self.rounds - 1
            weights = self._fit_queries(measured) if self.tables is None else self._fit_tables(measured, weights, last)
        report(self.rounds, self.rounds, "")
        return weights, [self.workload.queries[i] if self.tables is None else self.tables.subsets[i] for i in measured]

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
        least_squares = LeastSquares(some)
        tables = [measured[i].reshape(self.tables.shapes[i]) / n for i in order]
        target = least_squares.build(least_squares.solve(tables))
        start = None if last else np.maximum(before.probabilities(), _LEAST)
        found = fit_entropic(target, least_squares, self.sigma / n, start=start)
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
