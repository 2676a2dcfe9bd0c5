"""What `release_marginals` returns: tables, the estimates behind them, and how far off they are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod, sqrt
from typing import Any, NamedTuple

import numpy as np

from ..privacy.accounted import Accounted
from ..privacy.guarantees import Guarantee
from ..records.domain import Domain, display_count
from ..support.checks import flag
from ..support.public_paths import public_as
from ..support.results import as_code
from ..support.shown import shown
from .least_squares_fit import Axes, Table, least_squares_of
from .nearest_tables import nearest_tables
from .queries.bound_query import BoundProduct
from .queries.marginals import Marginals
from .queries.query import bind
from .simulated_fits import deviation_of_values, root_mean_square, simulate_fits
from .synthetic_distribution import Library, SyntheticDistribution, frame_of_codes


class Estimates(NamedTuple):
    """What is known without bias, as fractions."""

    unbiased: tuple[Table, ...]  # consistent sums, negative entries included; of no fit, as measured
    variances: dict[Axes, Table] | None  # of their components, by shape; None for as measured
    sigma: float  # of every entry as measured, or the root of the mean square


@public_as("fastdp.answering")
@dataclass(frozen=True, eq=False)
class MarginalsRelease(Accounted):
    """Noisy tables of a workload, made to fit together.

    Attributes
    ----------
    guarantee : Guarantee
        What the release guarantees.
    workload : Marginals
        Which tables.
    tables : tuple of numpy.ndarray
        One for each, as fractions of n (times n they are counts), with the attributes in the order of the domain.
        Each is a table: no negative entries, 1 in all (near the least-squares estimates, or that of the fitted
        distribution). fit=None: as measured, negative entries included.
    n : float
        The number of records: as it is under replace-one neighbours; under add-remove, where it is private, what the
        tables state it is, at least 1.
    sigma : float
        The standard deviation of the noise in every cell as measured, in records: of fractions it is sigma / n. Where
        noise is planned (`allocation`) cells are not measured one by one: that of the unbiased tables, the root of
        the mean square over all cells.
    deviation : tuple of numpy.ndarray
        The standard deviation of every cell of every table, as fractions of n.
    fit : {"entropic", "least-squares"} or None
        Which fit there was.
    synthetic : SyntheticDistribution
        The fitted distribution; only the entropic fit has one, after others an AttributeError states it.
    steps : int
        How many the entropic fit took.
    domain : Domain
        The domain of the records.
    """

    guarantee: Guarantee
    workload: Marginals
    tables: tuple[Table, ...]
    n: float
    sigma: float
    fit: str | None
    steps: int
    _synthetic: SyntheticDistribution | None = field(repr=False)
    _estimates: Estimates = field(repr=False)

    @property
    def synthetic(self) -> SyntheticDistribution:
        """The fitted distribution, if the fit is entropic."""
        if self._synthetic is None:
            raise AttributeError(
                f"synthetic: fit={self.fit!r} has tables only: must be released with fit='entropic', which holds all "
                f"cells in memory ({display_count(self.domain.size)} here) or a tree of the tables; `.fit` names the "
                "fit that was taken"
            )
        return self._synthetic

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self.workload.domain

    @cached_property
    def deviation(self) -> tuple[Table, ...]:
        """The standard deviation of every cell of every table, as fractions of n: tables like `.tables`.

        As measured and after least squares it is that of the unbiased estimates, exactly; the nearest tables come
        closer. After the entropic fit it is the root mean square error of eight fits to the released distribution with
        fresh noise, which takes as long as eight fits: right within a quarter or so, and without what a distribution of
        that kind cannot express. Under add-remove neighbours n counts as known.
        """
        if self._synthetic is not None:
            return tuple(self._simulated(positions) for positions in self.workload.positions)
        of_tables = zip(self.workload.positions, self.workload.shapes, strict=True)
        return tuple(np.broadcast_to(self._exact(positions), shape) for positions, shape in of_tables)

    def answer(self, query: Any, *, deviation: bool = False) -> Any:
        """The query's value: any query of the synthetic distribution; else a product within one of the tables.

        Without a distribution it is a sum of the unbiased estimates (`table(names, unbiased=True)`), whose errors
        cancel: sums of `.tables` would keep what each lost below 0.

        Parameters
        ----------
        query : Query
            What is asked.
        deviation : bool
            Whether to return the standard deviation of the value as well, of which `.deviation` says what it is.

        Returns
        -------
        float or tuple of float
            In [0, 1]; with `deviation`, the pair of value and deviation.

        Raises
        ------
        ValueError
            If there is no distribution, and the query is no product over attributes of one table.
        """
        wanted = flag("deviation", deviation)
        if self._synthetic is not None:
            right = self._synthetic.answer(query)
            return (right, deviation_of_values([one.answer(query) for one in self._fits], right)) if wanted else right
        bound = bind(query, self.domain)
        allowed = dict(bound.allowed) if isinstance(bound, BoundProduct) else None
        found = None if allowed is None else self._smallest(allowed)
        if allowed is None or found is None:
            raise ValueError(
                "query: must be a product over attributes of one table; fit='entropic' answers others as well"
            )
        positions, shape = self.workload.positions[found], self.workload.shapes[found]
        taken = [
            np.asarray(allowed[p], bool) if p in allowed else np.ones(size, bool)
            for p, size in zip(positions, shape, strict=True)
        ]
        choice = np.ix_(*map(np.flatnonzero, taken))
        value = float(self._estimates.unbiased[found][choice].sum() if positions else self._estimates.unbiased[found])
        value = min(max(value, 0.0), 1.0)
        if not wanted:
            return value
        if self._estimates.variances is None:
            return value, self._estimates.sigma * sqrt(prod(int(one.sum()) for one in taken))
        least_squares = least_squares_of(self.workload)
        return value, sqrt(least_squares.variance_of_sum(positions, taken, self._estimates.variances))

    def table(self, names: Iterable[str], *, unbiased: bool = False) -> Table:
        """The table of some attributes that a table of the workload has, with an axis for each in that order.

        Parameters
        ----------
        names : iterable of str
            The attributes.
        unbiased : bool
            False: a table as `.tables` are, no entry below 0 and 1 in all. True: the least-squares estimate, which is
            right on average and adds up consistently from table to table, and may have entries below 0; of fit=None
            what was measured.

        Returns
        -------
        numpy.ndarray of float64
            Fractions of n.

        Raises
        ------
        ValueError
            If no table has all of them.
        """
        positions = self.domain.positions(names)
        found = self._table_with(positions)

        def summed(table: Table) -> Table:
            of = self.workload.positions[found]
            kept = table.sum(axis=tuple(i for i, p in enumerate(of) if p not in positions))
            return np.array(kept.transpose([sorted(positions).index(p) for p in positions]))

        if flag("unbiased", unbiased) or self.fit is None:
            return summed(self._estimates.unbiased[found])
        if self._synthetic is not None or len(positions) == len(self.workload.positions[found]):
            return summed(self.tables[found])
        return nearest_tables([summed(self._estimates.unbiased[found])])[0]

    def to_frame(self, names: Iterable[str], *, unbiased: bool = False, library: Library = "pandas") -> Any:
        """A table as a data frame: a row for each cell, with its fraction of n and the deviation of that.

        Parameters
        ----------
        names : iterable of str
            The attributes, as `table` takes them.
        unbiased : bool
            As `table` takes it.
        library : {"pandas", "polars", "pyarrow"}
            Which data frame; of pyarrow a Table.

        Returns
        -------
        DataFrame or Table
            Columns for the attributes, as `SyntheticDistribution.to_frame` has them, "fraction" and "deviation".

        Raises
        ------
        ValueError
            If no table has all attributes, or one of them is called "fraction" or "deviation".
        ImportError
            If the library is not installed.
        """
        positions = self.domain.positions(names)
        if not positions or len({*positions}) < len(positions):
            raise ValueError(f"names={shown(names)}: must be names of attributes, none of them twice")
        table = self.table([self.domain.names[p] for p in positions], unbiased=unbiased)
        taken = {"fraction", "deviation"} & {self.domain.names[p] for p in positions}
        if taken:
            raise ValueError(f"names: must not have an attribute called {sorted(taken)[0]!r} for a data frame")
        if self._synthetic is not None and not unbiased:
            simulated = self._simulated(tuple(sorted(positions)))
            deviation = simulated.transpose([sorted(positions).index(p) for p in positions])
        else:
            deviation = np.broadcast_to(self._exact(tuple(sorted(positions))), table.shape)
        codes = np.indices(table.shape).reshape(len(positions), table.size)
        columns = {"fraction": table.reshape(-1), "deviation": deviation.reshape(-1)}
        return frame_of_codes(library, self.domain, dict(zip(positions, codes, strict=True)), columns)

    def _exact(self, positions: Axes) -> float:
        """The deviation of a cell of the unbiased table of some attributes, in the order of the domain."""
        if self._estimates.variances is not None:
            return sqrt(least_squares_of(self.workload).variance_of(positions, self._estimates.variances))
        found = self._table_with(positions)
        rest = prod(self.workload.shapes[found]) // prod(self.domain.sizes[p] for p in positions)
        return self._estimates.sigma * sqrt(rest)

    def _simulated(self, positions: Axes) -> Table:
        """The deviation of the cells of a fitted table, attributes in the order of the domain."""
        names = [self.domain.names[p] for p in positions]
        right = self.synthetic.marginal(names)
        return root_mean_square([one.marginal(names) - right for one in self._fits])

    @cached_property
    def _fits(self) -> list[SyntheticDistribution]:
        variances = self._estimates.variances
        assert variances is not None
        return simulate_fits(self.synthetic, least_squares_of(self.workload), variances)

    def _table_with(self, positions: Sequence[int]) -> int:
        """The number of the smallest table that has all these attributes."""
        found = self._smallest(positions)
        if found is None:
            listed = [self.domain.names[p] for p in positions]
            raise ValueError(f"names={listed!r}: must be among the attributes of one table")
        return found

    def _smallest(self, positions: Iterable[int]) -> int | None:
        wanted = set(positions)
        found = [i for i, of in enumerate(self.workload.positions) if wanted <= set(of)]
        return min(found, key=lambda i: prod(self.workload.shapes[i]), default=None)

    def __repr__(self) -> str:
        cells = len(self.workload)
        n = f"{self.n:,.0f}" if float(self.n).is_integer() else f"about {self.n:,.0f}"
        fit = "as measured" if self.fit is None else f"{self.fit} fit" + (f" of {self.steps} steps" * bool(self.steps))
        typical = self._estimates.sigma
        if self._estimates.variances is not None:
            squares = least_squares_of(self.workload).variances_of_tables(self._estimates.variances)
            typical = sqrt(np.dot(squares, [prod(shape) for shape in self.workload.shapes]) / cells)
        before = "" if self._synthetic is None else " before the fit"
        return (
            f"MarginalsRelease({self.workload.tables:,} tables of fractions, {cells:,} cells, {fit}, n={n}, "
            f"sigma={self.sigma:.4g} records, deviation={typical:.3g}{before}, {self.guarantee})"
        )

    def _repr_html_(self) -> str:
        below = "" if self._synthetic is None else self._synthetic._repr_html_()
        return as_code(repr(self)) + below
