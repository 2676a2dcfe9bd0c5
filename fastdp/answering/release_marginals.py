"""Marginal tables: all tables of a workload with noise, and then made consistent.

The tables are integers when they meet the noise; what follows sees the noisy ones alone (least_squares_fit.py,
entropic_fit.py). release_marginals.md has the sensitivity, the grid and the proof.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import prod, sqrt
from typing import Any, Literal

import numpy as np

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys, charged_here
from ..randomness.keys import Randomness
from ..randomness.noise_draws import add_noise
from ..records.domain import MOST_CELLS, Domain, check_domain, display_count
from ..records.sources import rows_of
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import flag, one_of
from ..support.errors import AccuracyWarning, levels_to_caller
from ..support.parameters import Outside
from ..support.progress import Progress, reporting
from ..support.public_paths import public_as
from ..support.results import as_code
from .entropic_fit import MOST_STEPS, bytes_of_fit, fit_entropic
from .least_squares_fit import LeastSquares, Table, least_squares_of
from .marginal_counts import bytes_of_records, count_tables
from .marginal_noise import NOISES, MarginalNoise, NoiseKind, marginal_noise, prefers_gaussian
from .marginal_transform import as_tables
from .memory import display_bytes, usable_memory
from .nearest_tables import nearest_tables
from .queries.bound_query import BoundProduct
from .queries.marginals import Marginals
from .queries.query import bind
from .synthetic_distribution import SyntheticDistribution

Fit = Literal["auto", "entropic", "least-squares"]
FITS = ("auto", "entropic", "least-squares")

_FIT_CELLS = 2**24  # up to here "auto" fits a distribution
_FIT_STEPS = 1000  # and only if it is expected to take no more steps than this,
_FIT_WORK = 2**32  # and no more steps times cells: a minute or two
_ARRAYS = 4  # of all cells of all tables that are held at a time


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
        Each is a table: no negative entries, 1 in all (the nearest such table to the least-squares estimate, or that
        of the fitted distribution). fit=None: as measured, negative entries included.
    n : float
        The number of records: as it is under replace-one neighbours; under add-remove, where it is private, what the
        tables state it is, at least 1.
    sigma : float
        The standard deviation of the noise in every cell, in records: of fractions it is sigma / n.
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
    _unbiased: tuple[Table, ...] = field(repr=False)  # consistent sums, negative entries included

    @property
    def synthetic(self) -> SyntheticDistribution:
        """The fitted distribution, if the fit is entropic."""
        if self._synthetic is None:
            raise AttributeError(
                f"synthetic: fit={self.fit!r} has tables only: must be released with fit='entropic', which holds all "
                f"cells in memory ({display_count(self.domain.size)} here); `.fit` names the fit that was taken"
            )
        return self._synthetic

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self.workload.domain

    def answer(self, query: Any) -> float:
        """The query's value: any query of the synthetic distribution; else a product within one of the tables.

        Without a distribution it is a sum of the unbiased estimates (`table(names, unbiased=True)`), whose errors
        cancel: sums of `.tables` would keep what each lost below 0.

        Parameters
        ----------
        query : Query
            What is asked.

        Returns
        -------
        float
            In [0, 1].

        Raises
        ------
        ValueError
            If there is no distribution, and the query is no product over attributes of one table.
        """
        if self._synthetic is not None:
            return self._synthetic.answer(query)
        bound = bind(query, self.domain)
        allowed = dict(bound.allowed) if isinstance(bound, BoundProduct) else None
        found = None if allowed is None else self._smallest(allowed)
        if allowed is None or found is None:
            raise ValueError(
                "query: must be a product over attributes of one table; fit='entropic' answers others as well"
            )
        positions = self.workload.positions[found]
        choice = [
            np.flatnonzero(allowed[p]) if p in allowed else np.arange(size)
            for p, size in zip(positions, self.workload.shapes[found], strict=True)
        ]
        value = float(self._unbiased[found][np.ix_(*choice)].sum() if positions else self._unbiased[found])
        return min(max(value, 0.0), 1.0)

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
        found = self._smallest(positions)
        if found is None:
            listed = [self.domain.names[p] for p in positions]
            raise ValueError(f"names={listed!r}: must be among the attributes of one table")

        def summed(table: Table) -> Table:
            of = self.workload.positions[found]
            kept = table.sum(axis=tuple(i for i, p in enumerate(of) if p not in positions))
            return np.array(kept.transpose([sorted(positions).index(p) for p in positions]))

        if flag("unbiased", unbiased) or self.fit is None:
            return summed(self._unbiased[found])
        if self._synthetic is not None:
            return summed(self.tables[found])
        return nearest_tables([summed(self._unbiased[found])])[0]

    def _smallest(self, positions: Iterable[int]) -> int | None:
        wanted = set(positions)
        found = [i for i, of in enumerate(self.workload.positions) if wanted <= set(of)]
        return min(found, key=lambda i: prod(self.workload.shapes[i]), default=None)

    def __repr__(self) -> str:
        cells = len(self.workload)
        n = f"{self.n:,.0f}" if float(self.n).is_integer() else f"about {self.n:,.0f}"
        fit = "as measured" if self.fit is None else f"{self.fit} fit" + (f" of {self.steps} steps" * bool(self.steps))
        return (
            f"MarginalsRelease({self.workload.tables:,} tables of fractions, {cells:,} cells, {fit}, n={n}, "
            f"sigma={self.sigma:.4g} records, {self.guarantee})"
        )

    def _repr_html_(self) -> str:
        below = "" if self._synthetic is None else self._synthetic._repr_html_()
        return as_code(repr(self)) + below


@boundary
def release_marginals(
    data: Any,
    domain: Domain,
    workload: Marginals | Iterable[Iterable[str]],
    *,
    epsilon: float,
    delta: float,
    fit: Fit | None = "auto",
    noise: NoiseKind = "auto",
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> MarginalsRelease:
    """Release all tables of a workload of marginals with noise, and fit what is consistent to them.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files, Dask collection or mapping
        The records, with a column for each attribute of the domain.
    domain : Domain
        The values that records may have. Public: not read off the data.
    workload : Marginals or iterable of iterable of str
        The tables: `marginals(domain, k)`, or sets of attributes.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release. 0 takes discrete Laplace noise, which pays for every table in full: of many tables
        much more of it.
    fit : {"auto", "entropic", "least-squares"}, optional
        "entropic": the tables of one distribution, found by multiplicative weights from independent attributes; needs
        all cells of the domain in memory. "least-squares": consistent estimates, each entry with the least variance,
        then for each the nearest table without negative entries; works on domains of any size. None: as measured.
        "auto" takes the entropic fit up to 2^24 cells, where memory allows, if it is expected to end within 1,000
        steps, or a minute or two, which depends on public numbers alone.
    noise : {"auto", "laplace", "gaussian"}
        Discrete noise of one law on every cell. "auto" takes what has the smaller variance: by epsilon, delta and
        `neighbors`, Laplace for up to 3 to 15 tables, Gaussian beyond; and Gaussian under a budget that adds up rhos
        or squares of mu, which Laplace noise takes many times more of. The guarantee states which: Laplace noise has
        no delta.
    outside : {"raise", "clip"}
        Records outside the domain: a DomainError, or the nearest code, or the nearest label where labels are
        increasing numbers; what has none, such as a missing entry, is None if that is a label, or the first value.
    progress : bool or callable, optional
        True for a bar, or a callable (done, total, what is being done).
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    MarginalsRelease
        `.tables` are fractions of `.n`, `.sigma` is in records. `.synthetic` is there after the entropic fit:
        `.fit == "entropic"`, of which fit="entropic" makes sure.

    Raises
    ------
    ValueError
        For parameters, unknown attributes, domains too large for the fit.
    DomainError
        For records outside the domain.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP, and rho-zCDP for the rho of its sigma; epsilon-DP where the noise is Laplace's
    Proof        release_marginals.md, theorem 1
    Accuracy     as measured, every cell is within sigma sqrt(2 ln(2/beta)) with probability 1 - beta; fits come closer:
                 release_marginals.md has figures
    Cost         a pass over the records (one for each group of attributes where the domain exceeds 2^24 cells);
                 the entropic fit of 56 tables of 50,880 cells a tenth of a second
    Not covered  under add-remove neighbours, the time that the call takes, which depends on the number of records

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import Domain, marginals, release_marginals
    >>> domain = Domain(age=4, sex=2, smokes=2)
    >>> records = np.random.default_rng(1).integers(0, [4, 2, 2], (5000, 3))
    >>> released = release_marginals(records, domain, marginals(domain, 2), epsilon=1.0, delta=1e-6)
    >>> [table.shape for table in released.tables]
    [(4, 2), (4, 2), (2, 2)]
    >>> released.synthetic.sample(3).shape
    (3, 3)
    """
    workload = checked_workload(domain, workload, fit)
    parameters.neighbors(neighbors)
    parameters.outside(outside)
    one_of("noise", noise, NOISES)
    payers = charged_here(budget)
    planned = marginal_noise(workload, epsilon, delta, neighbors, noise, concentrated=prefers_gaussian(payers))
    rows = rows_of(data)
    if neighbors == "replace-one" and rows.n == 0:
        raise ValueError("data: n=0 records: must be at least one; with neighbors='add-remove' there may be none")
    listed = {"epsilon": planned.epsilon, "delta": planned.delta, "tables": workload.tables}
    with reporting(progress, "releasing") as report:
        with ChargedKeys("release_marginals", planned.guarantee, listed, payers, rng) as keys:
            report(0, 3, "counting")
            counts = count_tables(rows, workload, outside) << planned.bits
            report(1, 3, "drawing noise")
            key = keys.take()
            add_noise(planned.plan, None, key, counts, counts)
        report(2, 3, "fitting")
        tables = as_tables(counts * 2.0**-planned.bits, workload)
        planned = replace(planned, guarantee=keys.stating(planned.guarantee))
        made = _fitted(tables, workload, planned, rows.n if neighbors == "replace-one" else None, fit, report)
        report(3, 3, "")
    return made


def checked_workload(domain: Any, workload: Any, fit: Any) -> Marginals:
    """The workload as marginals of the domain, which this fit can be made to."""
    check_domain(domain)
    if fit is not None:
        one_of("fit", fit, FITS)
    checked = Marginals.of(domain, workload)
    if checked.domain != domain:
        raise ValueError("workload: must be marginals of `domain`")
    if fit == "entropic":
        _check_fit(domain)
    if (needed := _bytes_of_tables(checked)) > usable_memory():
        raise ValueError(
            f"workload: {display_count(len(checked))} cells in all tables need {display_bytes(needed)}: must be at "
            f"most {display_bytes(usable_memory())}, half of the memory"
        )
    return checked


def bytes_of_release(n: int, workload: Marginals, fit: Fit | None) -> tuple[int, int]:
    """What tables, with the fit, and records take at most."""
    domain = workload.domain
    fitted = fit == "entropic" or (fit == "auto" and _has_room(domain))
    return _bytes_of_tables(workload) + (bytes_of_fit(domain) if fitted else 0), bytes_of_records(n, domain)


def _bytes_of_tables(workload: Marginals) -> int:
    return _ARRAYS * 8 * len(workload)


def _has_room(domain: Domain) -> bool:
    """Whether "auto" may fit a distribution on this domain."""
    return domain.size <= _FIT_CELLS and bytes_of_fit(domain) <= usable_memory()


# --- fitting


def _fitted(
    tables: Sequence[Table], workload: Marginals, noise: MarginalNoise, n: int | None, fit: Fit | None, report: Any
) -> MarginalsRelease:
    least_squares = least_squares_of(workload)
    components = least_squares.solve(tables)
    # the number of records: known, or the least-squares total of all tables
    total = float(max(1.0, components[()][0])) if n is None else n
    domain, sigma, steps, synthetic = workload.domain, noise.sigma / total, 0, None
    if fit is None:
        unbiased = tables = [table / total for table in tables]
    else:
        components[()][0] = total
        unbiased = [table / total for table in least_squares.build(components)]
    if fit == "auto":
        fit = "entropic" if _is_quick(domain, least_squares, sigma) else "least-squares"
    if fit == "entropic":
        found = fit_entropic(unbiased, least_squares, sigma, report)
        if found.steps == MOST_STEPS:
            warnings.warn(
                f"the entropic fit is still {sqrt(found.residual):.2g} times as far from the tables as the noise "
                f"accounts for after {found.steps:,} steps; fit='least-squares' is closer here",
                AccuracyWarning,
                stacklevel=levels_to_caller(),
            )
        tables, steps = found.tables, found.steps
        synthetic = SyntheticDistribution(found.probabilities, domain, guarantee=noise.guarantee, n=round(total))
    elif fit == "least-squares":
        tables = nearest_tables(unbiased)
    return MarginalsRelease(
        noise.guarantee, workload, tuple(tables), total, noise.sigma, fit, steps, synthetic, tuple(unbiased)
    )


def _is_quick(domain: Domain, least_squares: LeastSquares, sigma: float) -> bool:
    """Whether the entropic fit is worth its time, by the steps that it is likely to take (within a factor of 2)."""
    if not _has_room(domain):
        return False
    steps = sqrt(least_squares.workload.tables / max(1, least_squares.rank)) / sigma / 10
    return steps <= _FIT_STEPS and steps * domain.size <= _FIT_WORK


def _check_fit(domain: Domain) -> None:
    """ValueError if the entropic fit would not fit into memory."""
    needed = bytes_of_fit(domain)
    if domain.size > MOST_CELLS or needed > usable_memory():
        raise ValueError(
            f"domain: {display_count(domain.size)} cells: the entropic fit holds them all and needs "
            f"{display_bytes(needed)}, of at most {display_bytes(usable_memory())} and 2^31 cells; "
            "fit='least-squares' works on tables alone"
        )
