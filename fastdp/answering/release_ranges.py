"""Ranges of a column of numbers, or of two: all counts of a histogram with little noise on every interval.

The counts are integers when they meet the noise; what follows sees noisy ones alone. range_noise.py has the noise,
range_tree.py the fit; release_ranges.md has the sensitivity, the choice and the proofs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import inf, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys, charged_here
from ..randomness.keys import Randomness
from ..randomness.rehearsal import GIVEN
from ..records.bins import Bins, end_in_bins, span_in_bins
from ..records.domain import Domain
from ..records.encoding import histogram
from ..records.number_column import one_column
from ..records.rows import Rows
from ..records.sources import rows_of
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import one_of, plain_array
from ..support.parameters import MOST_BINS, Outside
from ..support.progress import Progress, reporting
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from ..support.shown import shown
from .range_noise import Digits, RangeNoise, SquareRoot, Sum, auto_noise

Method = Literal["auto", "digits", "square-root"]
METHODS = ("auto", "digits", "square-root")

_COLUMN = "values"  # what a column without a name is called


@public_as("fastdp.answering")
@dataclass(frozen=True, eq=False, repr=False)
class RangesRelease(Accounted, Displayed):
    """Noisy counts of all bins whose sums over intervals have little noise.

    Attributes
    ----------
    guarantee : Guarantee
        What the release guarantees.
    counts : numpy.ndarray of float64
        The number of records in each bin, with an axis for each attribute: at least 0, and n in all. Where missing
        entries have a bin it is the last, as in `Bins.labels`: no range has it, and `cdf` and `quantile` are of the
        records that have a number.
    n : float
        The number of records: as it is under replace-one neighbours; under add-remove, where it is private, what the
        noisy counts state it is, at least 1.
    bins : tuple of Bins
        The bins of each attribute.
    names : tuple of str
        The attributes.
    method : {"digits", "square-root"}
        How they were measured.
    sigma : float
        The root of the mean variance of the counts of ranges that begin with the first bin, in records, before the fit
        to counts >= 0, which mostly comes closer. By "digits" the ranges of no bin and, under replace-one neighbours,
        of all bins are averaged in, which have no noise: of few bins the `deviation` of a range is larger.
    """

    guarantee: Guarantee
    counts: NDArray[np.float64]
    n: float
    bins: tuple[Bins, ...]
    names: tuple[str, ...]
    _noise: RangeNoise = field(repr=False)

    def __post_init__(self) -> None:
        self.counts.flags.writeable = False

    @property
    def method(self) -> str:
        """How the counts were measured."""
        return self._noise.method

    @property
    def sigma(self) -> float:
        """The root of the mean variance of ranges from the first bin, in records, before the fit."""
        return self._noise.typical

    def range(self, low: Any = -inf, high: Any = inf) -> float:
        """How many records lie from `low` to `high`, both included; the bins that hold the ends count whole.

        Parameters
        ----------
        low, high : int or float
            The ends, as `fastdp.Range` takes them. Of two attributes both low ends, then both high ends:
            `range((18, 0), (29, 39_999))` for ages from 18 to 29 and incomes from 0 to 39,999.

        Returns
        -------
        float
            The number of records; over n it is their share.
        """
        return float(self.counts[self._cells(low, high)].sum())

    def deviation(self, low: Any = -inf, high: Any = inf) -> float:
        """The standard deviation of the noise in `range(low, high)`, before the fit to counts >= 0.

        Parameters
        ----------
        low, high : int or float
            The ends, as `range` takes them.

        Returns
        -------
        float
            In records.
        """
        weights = np.zeros(self.counts.shape)
        weights[self._cells(low, high)] = 1.0
        return self._noise.deviation(weights)

    def cdf(self, x: Any) -> Any:
        """The share of the records that are at most x: the bin that holds x counts whole.

        For integers in unit bins it is the distribution function. Of two attributes, x is a pair of numbers, and both
        values are at most as large.

        Parameters
        ----------
        x : int or float, or array_like of them
            Where; several places only for one attribute.

        Returns
        -------
        float or numpy.ndarray
            From 0 to 1.
        """
        if len(self.bins) == 1 and isinstance(x, Sequence | np.ndarray) and not isinstance(x, str):
            several = plain_array("x", x, "numbers")
            if several.ndim != 1 or several.dtype.kind not in "iufM" or (several != several).any():
                raise ValueError(f"x: shape {several.shape}, dtype {several.dtype}: must be numbers, in one dimension")
            return np.array([self.cdf(each) for each in several.tolist()])
        ends = self._ends("x", x)
        places = [end_in_bins(bins, name, end) for name, bins, end in zip(self.names, self._ordered, ends, strict=True)]
        if min(places) < 0:
            return 0.0
        return float(self._running[tuple(places)])

    def quantile(self, q: Any) -> Any:
        """The number below which the share q of the records lies, by values spread evenly within a bin.

        Parameters
        ----------
        q : float in [0, 1], or array_like of them
            The shares.

        Returns
        -------
        float, int or numpy.ndarray
            Numbers between the first and the last edge; integers where edges are integers.
        """
        if len(self.bins) > 1:
            raise ValueError("quantile: two attributes have no order: must be a release of one attribute")
        if isinstance(q, Sequence | np.ndarray) and not isinstance(q, str):
            shares = plain_array("q", q, "numbers in [0, 1]")
            if shares.ndim != 1 or shares.dtype.kind not in "iuf" or not ((shares >= 0) & (shares <= 1)).all():
                raise ValueError(f"q: shape {shares.shape}, dtype {shares.dtype}: must be numbers in [0, 1]")
            return np.array([self.quantile(each) for each in shares.tolist()])
        if isinstance(q, bool) or not isinstance(q, int | float | np.integer | np.floating) or not 0 <= q <= 1:
            raise ValueError(f"q={shown(q)}: must be in [0, 1]")
        running = self._running
        place = min(int(np.searchsorted(running, q)), running.size - 1)
        before, here = (running[place - 1] if place else 0.0), running[place]
        with np.errstate(all="ignore"):
            share = (q - before) / (here - before) if here > before else 0.0
        return self.bins[0].within(place, min(max(float(share), 0.0), 1.0))

    @cached_property
    def _ordered(self) -> tuple[Bins, ...]:
        """The bins of numbers alone."""
        return tuple(Bins(each.edges) if each.missing else each for each in self.bins)

    @property
    def _running(self) -> NDArray[np.float64]:
        shares = self.counts / self.n
        if any(each.missing for each in self.bins):
            present = self.counts[tuple(slice(each.size) for each in self._ordered)]
            shares = present / max(float(present.sum()), 1.0)
        for axis in range(shares.ndim):
            shares = shares.cumsum(axis=axis)
        return np.minimum(shares, 1.0)

    def _cells(self, low: Any, high: Any) -> tuple[slice, ...]:
        lows, highs = self._ends("low", low), self._ends("high", high)
        found = []
        for name, bins, first, last in zip(self.names, self._ordered, lows, highs, strict=True):
            ends = bins.ends
            first = ends[0] if type(first) is float and first == -inf else first
            last = ends[1] if type(last) is float and last == inf else last
            try:
                code, until = span_in_bins(bins, first, last)
            except ValueError as wrong:
                if len(self.bins) == 1:
                    raise
                raise ValueError(f"{name}: {wrong}: {self._pairs}") from None
            found.append(slice(code, until + 1))
        return tuple(found)

    def _ends(self, name: str, given: Any) -> list[Any]:
        """One number for each attribute."""
        if len(self.bins) == 1:
            return [given]
        if type(given) is float and abs(given) == inf:
            return [given] * len(self.bins)
        if not isinstance(given, list | tuple | np.ndarray) or len(given) != len(self.bins):
            both = f": {self._pairs}" if name != "x" else ""
            raise ValueError(f"{name}={shown(given)}: must be a number for each of {', '.join(self.names)}{both}")
        return list(given)

    @property
    def _pairs(self) -> str:
        low, high = (", ".join(f"{end} of {name}" for name in self.names) for end in ("low", "high"))
        return f"of two attributes low=({low}), high=({high})"

    def _display(self) -> DisplayLines:
        about = "about " if self.guarantee.neighbors == "add-remove" else ""
        return [
            (
                "attributes",
                ", ".join(f"{name}, {b.size:,} bins" for name, b in zip(self.names, self.bins, strict=True)),
            ),
            ("n", f"{about}{self.n:,.0f}"),
            ("method", self.method),
            ("sigma", f"{self.sigma:.4g} records"),
            ("guarantee", str(self.guarantee)),
        ]


@boundary
def release_ranges(
    values: Any,
    edges: Any,
    *,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "auto",
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> RangesRelease:
    """Release the counts of all bins of a column of numbers, or of two, such that every range has little noise.

    From the result come counts, ranges, the distribution function and quantiles, all of them for one price.

    Parameters
    ----------
    values : array_like, Series, DataFrame, Arrow table, Parquet files, Dask collection or mapping
        One column of numbers; or records with the attributes that `edges` names.
    edges : array_like, Bins or mapping from str
        The edges of 2 to 2^20 bins, in increasing order, as `numpy.histogram` has them. For one or two attributes of
        records, a mapping from their names to edges; two have at most 2^20 bins together, one times the other. With
        `Bins(edges, missing=True)` missing entries are counted in a bin of their own, which is in no range. Public:
        must not be read off the records.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release; 0 for pure differential privacy, by "digits".
    method : {"auto", "digits", "square-root"}
        "digits": counts of a tree over the bins, with Laplace noise, and from the top the nearest ones that are >= 0
        and add up. "square-root", for one attribute and a delta: running sums with correlated Gaussian noise, and the
        nearest increasing ones; a fraction of the price for a budget in zCDP. "auto" takes what is expected to err
        less, by public numbers alone: at this epsilon and delta, or at the same rho or mu if the budget that pays adds
        those up.
    outside : {"raise", "clip"}
        Values beyond the edges: a DomainError, or the first or the last bin; NaN and missing entries the first, unless
        they have a bin.
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
    RangesRelease
        With `.counts`, `.range(low, high)`, `.cdf(x)`, `.quantile(q)`, `.deviation(low, high)`.

    Raises
    ------
    ValueError
        For parameters and edges.
    DomainError
        For values beyond the edges and missing ones, unless they are clipped; nothing is charged.

    Notes
    -----
    Guarantee    epsilon-DP by "digits", (epsilon, delta)-DP by "square-root"; rho-zCDP for the rho of its noise by both
    Proof        release_ranges.md, theorems 1 and 2
    Accuracy     `bounds.release_ranges` for the counts of ranges from the first bin before the fit, which comes closer:
                 release_ranges.md has figures
    Cost         a pass over the records, 10 ns each, and 300 ns a bin
    Not covered  under add-remove neighbours, the time that the call takes, which depends on the number of records

    Examples
    --------
    >>> import numpy as np
    >>> import fastdp
    >>> ages = np.random.default_rng(1).integers(18, 90, size=20_000)
    >>> released = fastdp.release_ranges(ages, range(18, 91), epsilon=1.0)
    >>> bool(abs(released.cdf(53) - 0.5) < 0.02)
    True
    >>> released.counts.shape, round(released.range(30, 39) / 1000)
    ((72,), 3)
    >>> people = {"age": ages, "children": ages % 4}
    >>> both = fastdp.release_ranges(people, {"age": range(18, 91), "children": range(5)}, epsilon=1.0)
    >>> young = both.range((18, 2), (29, 3))  # from 18 to 29 years, with 2 or 3 children
    >>> bool(abs(young - 1667) < 500)
    True
    """
    domain, rows = _opened(values, edges)
    parameters.outside(outside)
    payers = charged_here(budget)
    noise = plan_ranges(domain.sizes, epsilon, delta, neighbors, method, payers)
    n = rows.n if neighbors == "replace-one" else None
    if n == 0:
        raise ValueError("values: n=0 records: must be at least one; with neighbors='add-remove' there may be none")
    listed = {"epsilon": float(epsilon), "delta": float(delta), "bins": domain.size, "method": noise.method}
    with reporting(progress, "releasing") as report:
        with ChargedKeys("release_ranges", noise.guarantee, listed, payers, rng) as keys:
            report(0, 3, "counting")
            counts = histogram(keys.reads(rows, GIVEN), domain, outside).reshape(domain.sizes)
            report(1, 3, "drawing noise")
            noisy = noise.measure(counts, keys)
        report(2, 3, "fitting")
        fitted = noise.fit(noisy, n)
        report(3, 3, "")
    total = float(fitted.sum()) if n is None else float(n)
    bins = tuple(each for each in domain.bins if each is not None)
    return RangesRelease(keys.stating(noise.guarantee), fitted, total, bins, domain.names, noise)


def plan_ranges(
    sizes: tuple[int, ...], epsilon: Any, delta: Any, neighbors: Any, method: Any, payers: Sequence[Budget] = ()
) -> RangeNoise:
    """The noise of a release with these parameters, which are checked; `payers` are those that "auto" is to spare."""
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
    parameters.neighbors(neighbors)
    one_of("method", method, METHODS)
    if method == "square-root":
        if len(sizes) > 1:
            raise ValueError("method='square-root': must be 'digits' for two attributes, which have no running sums")
        if not delta:
            raise ValueError(f"delta={delta!r}: must be > 0 for method='square-root', whose noise is Gaussian")
    if method == "auto" and not all(each.delta for each in payers):
        method = "digits"  # which alone such a budget can pay
    return _planned(sizes, epsilon, delta, neighbors, method, _sum_of(payers))


def _sum_of(payers: Sequence[Budget]) -> Sum:
    """What the budgets add up: rho or mu, if one of them does."""
    theorems = {each.theorem for each in payers}
    return "mu" if "gaussian" in theorems else "rho" if theorems & {"zcdp", "best"} else "epsilon"


@lru_cache(64)
def _planned(
    sizes: tuple[int, ...], epsilon: float, delta: float, neighbors: Neighbors, method: Method, paid_in: Sum
) -> RangeNoise:
    if method == "digits":
        return Digits.of(sizes, epsilon, neighbors)
    if method == "square-root":
        return SquareRoot.of(sizes[0], epsilon, delta, neighbors)
    return auto_noise(sizes, epsilon, delta, neighbors, paid_in)


def bins_of(edges: Any, name: str = "edges") -> Bins:
    """The bins that edges stand for; ValueError for what is none, or too few."""
    bins = edges if isinstance(edges, Bins) else Bins(edges)
    if bins.edges.size < 3:
        raise ValueError(f"{name}: one bin: must be at least 2 bins, 3 edges")
    return bins


def domain_of(edges: Any, column: str = _COLUMN) -> Domain:
    """The attributes that the parameter `edges` of a release states."""
    if not isinstance(edges, Mapping):
        return _within_bounds(Domain({column: bins_of(edges)}))
    if not 1 <= len(edges) <= 2:
        raise ValueError(f"edges: {len(edges)} attributes: must be one or two")
    return _within_bounds(Domain({name: bins_of(each, f"edges[{shown(name)}]") for name, each in edges.items()}))


def _within_bounds(domain: Domain) -> Domain:
    if prod(domain.sizes) > MOST_BINS:
        both = ", one attribute times the other" if len(domain.sizes) > 1 else ", that of missing entries included"
        raise ValueError(f"edges: {domain.size:,} bins: must be at most {MOST_BINS:,}{both}")
    return domain


def _opened(values: Any, edges: Any) -> tuple[Domain, Rows]:
    """The attributes, and the records, which are not read yet."""
    if isinstance(edges, Mapping):
        return domain_of(edges), rows_of(values)
    rows = one_column(values)
    return domain_of(edges, _COLUMN if rows.names is None else rows.names[0]), rows
