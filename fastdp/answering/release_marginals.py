"""Measure and fit: all tables of a workload of marginals with discrete Gaussian noise, and then made consistent.

The tables are integers when they meet the noise; what follows sees the noisy ones alone (fits.py). marginals.md has the
sensitivity, the grid and the proof.
"""

from __future__ import annotations

import html
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, log2, prod, sqrt
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.noise import Plan, gaussian_plan, laplace_plan, release, scale_in_range
from ..privacy.budget import Budget
from ..privacy.calibration import MAX_EPSILON, SMALLEST, gaussian_mu, gaussian_ratio, gaussian_sigma
from ..privacy.guarantees import NEIGHBORS, ZCDP, Accounted, AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..records.domain import MOST_CELLS, OUTSIDE, Domain, Outside, check_domain, code_type, shown
from ..records.encoding import check_codes, encode, histogram, of_domain
from ..records.rows import Rows
from ..records.sources import rows_of
from ..support.checks import one_of, positive, small_delta
from ..support.errors import AccuracyWarning
from ..support.progress import Progress, reporting
from ..support.rounding import down, lower, up
from .entropic_fit import MOST_STEPS, Residuals, Table, bytes_of_fit, cut_of, fit_entropic, flat_of, residuals_of
from .marginal_transform import marginal_tables
from .memory import shown_bytes, usable_memory
from .queries.bound_query import BoundProduct
from .queries.marginals import Marginals
from .queries.query import bind
from .synthetic_distribution import SyntheticDistribution

Fit = Literal["auto", "entropic", "least-squares"]
FITS = ("auto", "entropic", "least-squares")

_HISTOGRAM_CELLS = 2**24  # up to here all tables come from one histogram
_GROUP_CELLS = 2**18  # of the histograms beyond; counts of so many stay in the cache
_FIT_CELLS = 2**22  # up to here "auto" fits a distribution: a minute at most
_FIT_STEPS = 1000  # and only if it is expected to take no more steps than this
_FINE = 1024  # grid units that the noise should measure, so that its discreteness costs a part in a million
_FINEST = 20  # bits that the grid may have below 1


@dataclass(frozen=True, eq=False)
class MarginalsRelease(Accounted):
    """Noisy tables of a workload, made to fit together.

    guarantee   what the release promises
    workload    which tables
    tables      one array for each, as fractions of n (times n they are counts), with the attributes in the order of the
                domain. Least squares: at least 0. fit=None: as measured, negative entries included
    n           the number of records: as it is under replace-one neighbours; under add-remove, where it is private,
                what the tables say it is, at least 1
    sigma       the standard deviation of the noise in every cell, in records: of fractions it is sigma / n
    fit         "entropic", "least-squares" or None: which one there was
    synthetic   the fitted distribution; only the entropic fit has one, after others an AttributeError says so
    steps       how many the entropic fit took
    domain      the domain of the records
    """

    guarantee: Guarantee
    workload: Marginals
    tables: tuple[Table, ...]
    n: float
    sigma: float
    fit: str | None
    steps: int
    _synthetic: SyntheticDistribution | None = field(repr=False)
    _signed: tuple[Table, ...] = field(repr=False)  # before entries below 0 were cut off, which adds up to a bias

    @property
    def synthetic(self) -> SyntheticDistribution:
        """The fitted distribution, if the fit is entropic."""
        if self._synthetic is None:
            raise AttributeError(
                f"synthetic: fit={self.fit!r} has tables only: must be released with fit='entropic', which holds all "
                f"cells in memory ({shown(self.domain.size)} here); `.fit` tells which fit there was"
            )
        return self._synthetic

    @property
    def domain(self) -> Domain:
        """The domain of the records."""
        return self.workload.domain

    def answer(self, query: Any) -> float:
        """The query's value: any query of the synthetic distribution; else a product within one of the tables."""
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
        value = float(self._signed[found][np.ix_(*choice)].sum() if positions else self._signed[found])
        return min(max(value, 0.0), 1.0)

    def table(self, names: Iterable[str]) -> Table:
        """The table of some attributes that lie in a table of the workload, with an axis for each in that order."""
        positions = self.domain.positions(names)
        found = self._smallest(positions)
        if found is None:
            shown = [self.domain.names[p] for p in positions]
            raise ValueError(f"names={shown!r}: must be among the attributes of one table")
        of = self.workload.positions[found]
        signed = self._signed[found].sum(axis=tuple(i for i, p in enumerate(of) if p not in positions))
        ordered = signed.transpose([sorted(positions).index(p) for p in positions])
        return np.array(ordered if self.fit is None else np.maximum(ordered, 0.0))

    def _smallest(self, positions: Iterable[int]) -> int | None:
        wanted = set(positions)
        found = [i for i, of in enumerate(self.workload.positions) if wanted <= set(of)]
        return min(found, key=lambda i: prod(self.workload.shapes[i]), default=None)

    def __repr__(self) -> str:
        cells = len(self.workload)
        n = f"{self.n:,.0f}" if float(self.n).is_integer() else f"about {self.n:,.1f}"
        fit = "as measured" if self.fit is None else f"{self.fit} fit" + (f" of {self.steps} steps" * bool(self.steps))
        return (
            f"MarginalsRelease({self.workload.tables:,} tables of fractions, {cells:,} cells, {fit}, n={n}, "
            f"sigma={self.sigma:.4g} records, {self.guarantee})"
        )

    def _repr_html_(self) -> str:
        below = "" if self._synthetic is None else self._synthetic._repr_html_()
        return f"<p><code>{html.escape(repr(self))}</code></p>{below}"


def release_marginals(
    data: Any,
    domain: Domain,
    workload: Marginals | Iterable[Iterable[str]],
    *,
    epsilon: float,
    delta: float,
    fit: Fit | None = "auto",
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> MarginalsRelease:
    """Release all tables of a workload of marginals with noise, and fit what is consistent to them.

    workload  `marginals(domain, k)`, or sets of attributes
    delta     0 takes discrete Laplace noise, which pays for every table in full: mostly much more of it
    fit       "entropic": the tables of one distribution, found by multiplicative weights from independent attributes;
              needs all cells of the domain in memory. "least-squares": consistent tables, each entry with the least
              variance, then cut off at 0; works on domains of any size. None: as measured. "auto" takes the entropic
              fit up to 2^22 cells if it is expected to end within 1,000 steps, which depends on public numbers alone
    outside   what is done with records outside the domain: "raise" a DomainError, or "clip" them to the nearest code,
              or to the nearest label where labels are increasing numbers; missing entries and other labels raise

    Guarantee    (epsilon, delta)-DP, and rho-zCDP for the rho of its sigma; epsilon-DP for delta = 0
    Proof        marginals.md, theorem 1
    Accuracy     as measured, every cell is within sigma sqrt(2 ln(2/beta)) with probability 1 - beta; fits come closer:
                 marginals.md has figures
    Cost         a pass over the records (one for each group of attributes where the domain exceeds 2^24 cells);
                 the entropic fit of 56 tables of 50,880 cells a tenth of a second
    Not covered  under add-remove neighbours, the time that the call takes, which depends on the number of records
    Raises       ValueError for parameters, unknown attributes, domains too large for the fit; DomainError for records
                 outside the domain

    Returns   a MarginalsRelease: `.tables` are fractions of `.n`, `.sigma` is in records. `.synthetic` is there after
              the entropic fit: `.fit == "entropic"`, of which fit="entropic" makes sure

    `rng`, `budget` and `neighbors` as in `laplace`.

    Examples
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
    one_of("neighbors", neighbors, NEIGHBORS)
    one_of("outside", outside, OUTSIDE)
    noise = noise_of(workload, epsilon, delta, neighbors)
    rows = rows_of(data)
    if neighbors == "replace-one" and rows.n == 0:
        raise ValueError("data: n=0 records: must be at least one; with neighbors='add-remove' there may be none")
    parameters = {"epsilon": noise.epsilon, "delta": noise.delta, "tables": workload.tables}
    with reporting(progress, "releasing") as report:
        with ChargedKeys("release_marginals", noise.guarantee, parameters, budget, rng) as keys:
            report(0, 3, "counting")
            counts = count_tables(rows, workload, outside)
            counts <<= noise.bits
            report(1, 3, "drawing noise")
            noisy = release(counts, None, noise.plan, keys.take, counts)
        report(2, 3, "fitting")
        tables = cut_of(noisy * 2.0**-noise.bits, workload)
        made = _fitted(tables, workload, noise, rows.n if neighbors == "replace-one" else None, fit, report)
        report(3, 3, "")
    return made


def checked_workload(domain: Any, workload: Any, fit: Any) -> Marginals:
    """The workload as marginals of the domain, which this fit can be made to."""
    check_domain(domain)
    if fit is not None:
        one_of("fit", fit, FITS)
    checked = workload if isinstance(workload, Marginals) else Marginals(domain, workload)
    if checked.domain != domain:
        raise ValueError("workload: must be marginals of `domain`")
    if fit == "entropic":
        _check_fit(domain)
    return checked


def bytes_of_release(n: int, workload: Marginals, fit: Fit | None) -> tuple[int, int]:
    """What tables, with the fit, and records take at most."""
    domain = workload.domain
    fitted = fit == "entropic" or (fit == "auto" and domain.size <= _FIT_CELLS)
    codes = sum(int(np.dtype(code_type(size)).itemsize) for size in domain.sizes)
    records = 8 * domain.size if domain.size <= _HISTOGRAM_CELLS else n * codes + 16 * _GROUP_CELLS
    return 24 * len(workload) + (bytes_of_fit(domain) if fitted else 0), records


# --- noise


@dataclass(frozen=True)
class _Noise:
    """The noise, and what it promises: marginals.md, theorem 1."""

    epsilon: float
    delta: float
    bits: int  # the grid is 2^-bits
    plan: Plan
    sigma: float  # in records
    guarantee: Guarantee


def noise_of(workload: Marginals, epsilon: float, delta: float, neighbors: Neighbors) -> _Noise:
    epsilon, delta = positive("epsilon", epsilon, toward=0), small_delta("delta", delta)
    moved = workload.tables * (1 if neighbors == "add-remove" else 2)  # cells that one record moves, each by 1
    if not delta:
        plan = laplace_plan(scale_in_range(up(moved / lower(epsilon)), "tables / epsilon"))
        return _Noise(epsilon, delta, 0, plan, sqrt(2) * plan.scale, PureDP(epsilon, neighbors=neighbors))
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        if value < SMALLEST:
            raise ValueError(f"{name}={value!r}: must be at least {SMALLEST:g} for Gaussian noise")
    if epsilon > MAX_EPSILON:
        raise ValueError(f"epsilon={epsilon!r}: must be at most {MAX_EPSILON:g}")
    asked = down(lower(epsilon)), down(lower(delta))
    bits = min(max(0, round(log2(_FINE / (sqrt(moved) * gaussian_ratio(*asked))))), _FINEST)
    sensitivity = root_up(moved << 2 * bits)
    sigma = gaussian_sigma(sensitivity, epsilon=asked[0], delta=asked[1], dimension=len(workload))
    gaussian = gaussian_plan(scale_in_range(sigma, "sigma"))
    rho = up(Fraction(moved << 2 * bits) / Fraction(gaussian.sigma) ** 2 / 2)
    mu = gaussian_mu(sensitivity, gaussian.sigma, len(workload))
    guarantee = AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), ZCDP(rho, mu=mu, neighbors=neighbors))
    return _Noise(epsilon, delta, bits, gaussian, gaussian.sigma * 2.0**-bits, guarantee)


def root_up(x: int) -> float:
    """The square root, rounded up."""
    root = sqrt(x)
    while Fraction(root) ** 2 < x:
        root = float(np.nextafter(root, inf))
    return root


# --- counting


def count_tables(data: Any, workload: Marginals, outside: Outside = "raise") -> NDArray[np.int64]:
    """How many records are in each cell of all tables, one after the other."""
    domain = workload.domain
    if domain.size <= _HISTOGRAM_CELLS:
        return flat_of(marginal_tables(histogram(data, domain, outside), domain, workload))
    rows = data if isinstance(data, Rows) else rows_of(data)
    tables_of = _counter(rows, domain, outside)
    tables: list[Any] = [None] * workload.tables
    for attributes, which in groups_of(workload):
        if not attributes:  # the table of no attributes
            tables[which[0]] = np.array(rows.n)
            continue
        part, counts = tables_of(attributes)
        wanted = Marginals(part, [[part.names[attributes.index(p)] for p in workload.positions[i]] for i in which])
        for i, table in zip(which, marginal_tables(counts, part, wanted), strict=True):
            tables[i] = table
    return flat_of(tables)


def _counter(
    rows: Rows, domain: Domain, outside: Outside
) -> Callable[[tuple[int, ...]], tuple[Domain, NDArray[np.int64]]]:
    """What counts the records in the cells of some attributes: from codes of all of them, kept where records are."""
    if not rows.gathers:
        placed = of_domain(rows, domain, outside)
        check_codes(placed, domain, outside)

        def read(attributes: tuple[int, ...]) -> tuple[Domain, NDArray[np.int64]]:
            part = domain.project([domain.names[p] for p in attributes])
            return part, histogram(placed.select(attributes), part, outside)

        return read
    codes = encode(rows, domain, outside)

    def count(attributes: tuple[int, ...]) -> tuple[Domain, NDArray[np.int64]]:
        part = Domain({f"a{p}": domain.sizes[p] for p in attributes})
        return part, histogram({f"a{p}": codes[p] for p in attributes}, part)

    return count


def groups_of(workload: Marginals) -> list[tuple[tuple[int, ...], list[int]]]:
    """Attributes whose joint histogram is small, and the tables to take from it; each table once.

    Attributes are cut into runs that have at most the k-th root of a histogram's cells; a table of k attributes lies
    in the union of the k runs that they belong to.
    """
    sizes = workload.domain.sizes
    k = max(1, *(len(positions) for positions in workload.positions))
    room = _GROUP_CELLS ** (1 / k)
    runs: list[list[int]] = [[]]
    for p in sorted({p for positions in workload.positions for p in positions}):
        if runs[-1] and prod(sizes[q] for q in runs[-1]) * sizes[p] > room:
            runs.append([])
        runs[-1].append(p)
    run_of = {p: i for i, run in enumerate(runs) for p in run}
    by_runs: dict[tuple[int, ...], list[int]] = {}
    for i, positions in enumerate(workload.positions):
        by_runs.setdefault(tuple(sorted({run_of[p] for p in positions})), []).append(i)
    for touched in sorted(by_runs, key=len):  # tables of few runs go where others need more
        larger = next((other for other in by_runs if set(touched) < set(other)), None) if len(touched) < k else None
        if larger is not None:
            by_runs[larger] += by_runs.pop(touched)
    groups = []
    for touched, which in by_runs.items():
        attributes = tuple(p for i in touched for p in runs[i])
        if prod(sizes[p] for p in attributes) <= 2 * _GROUP_CELLS:
            groups.append((attributes, which))
        else:  # attributes of many values
            groups += [(workload.positions[i], [i]) for i in which]
    return groups


# --- fitting


def _fitted(
    tables: Sequence[Table], workload: Marginals, noise: _Noise, n: int | None, fit: Fit | None, report: Any
) -> MarginalsRelease:
    residuals = residuals_of(workload)
    pieces = residuals.solve(tables)
    # the number of records: known, or what all tables together say
    total = float(max(1.0, pieces[()][0])) if n is None else n
    domain, sigma, steps, synthetic = workload.domain, noise.sigma / total, 0, None
    if fit is None:
        signed = [table / total for table in tables]
    else:
        pieces[()][0] = total
        signed = [table / total for table in residuals.build(pieces)]
    if fit == "auto":
        fit = "entropic" if _is_quick(domain, residuals, sigma) else "least-squares"
    if fit == "entropic":
        found = fit_entropic(signed, residuals, sigma, report)
        if found.steps == MOST_STEPS:
            warnings.warn(
                f"the entropic fit is still {sqrt(found.residual):.2g} times as far from the tables as the noise "
                f"accounts for after {found.steps:,} steps; fit='least-squares' is closer here",
                AccuracyWarning,
                stacklevel=3,
            )
        signed, steps = found.tables, found.steps
        synthetic = SyntheticDistribution(found.probabilities, domain, guarantee=noise.guarantee, n=round(total))
    shown = signed if fit is None else [np.maximum(table, 0.0) for table in signed]
    return MarginalsRelease(
        noise.guarantee, workload, tuple(shown), total, noise.sigma, fit, steps, synthetic, tuple(signed)
    )


def _is_quick(domain: Domain, residuals: Residuals, sigma: float) -> bool:
    """Whether the entropic fit is worth its time, by the steps that it is likely to take (within a factor of 2)."""
    if domain.size > _FIT_CELLS or bytes_of_fit(domain) > usable_memory():
        return False
    return sqrt(residuals.workload.tables / max(1, residuals.rank)) / sigma / 20 <= _FIT_STEPS / 2


def _check_fit(domain: Domain) -> None:
    """ValueError if the entropic fit would not fit into memory."""
    needed = bytes_of_fit(domain)
    if domain.size > MOST_CELLS or needed > usable_memory():
        raise ValueError(
            f"domain: {shown(domain.size)} cells: the entropic fit holds them all and needs {shown_bytes(needed)}, "
            f"of at most {shown_bytes(usable_memory())} and 2^31 cells; fit='least-squares' works on tables alone"
        )
