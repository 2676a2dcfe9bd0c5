"""Medians and quantiles of numbers without bounds: pure differential privacy.

On lines of any length: integers of 1 to 2^20 bits, floats by their order. The exponential mechanism over all points,
exactly, in the time of a partial sort; interior_point.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import inf, log
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.budget import Budget
from ..privacy.guarantees import BoundedRange, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.rehearsal import RECORDS
from ..records.number_column import NumberColumn
from ..records.number_line import NumberLine
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import probability, remembered
from ..support.columns import has
from ..support.errors import warn_of_accuracy
from ..support.parameters import Missing, Outside
from ..support.progress import Progress, reporting
from ..support.rounding import decimal_value, lower
from .line_weights import LineWeights, line_weights
from .many_quantiles import quantiles
from .rank_selection import RankLaw, draw_by_rank

HALF = Fraction(1, 2)
_BETA = 0.05  # of the error bound that decides about a warning


@overload
def quantile(
    values: NDArray[np.floating[Any]], q: float, *, domain_bits: int | None = ..., signed: bool | None = ...,
    epsilon: float, outside: Outside = ..., missing: Missing = ..., progress: Progress = ...,
    rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> float: ...  # fmt: skip
@overload
def quantile(
    values: NDArray[np.integer[Any] | np.bool_], q: float, *, domain_bits: int | None = ..., signed: bool | None = ...,
    epsilon: float, outside: Outside = ..., missing: Missing = ..., progress: Progress = ...,
    rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> int: ...  # fmt: skip
@overload
def quantile(
    values: Sequence[int], q: float, *, domain_bits: int, signed: bool | None = ...,
    epsilon: float, outside: Outside = ..., missing: Missing = ..., progress: Progress = ...,
    rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> int: ...  # fmt: skip
@overload
def quantile(
    values: Sequence[float], q: float, *, domain_bits: None = ..., signed: bool | None = ...,
    epsilon: float, outside: Outside = ..., missing: Missing = ..., progress: Progress = ...,
    rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> float: ...  # fmt: skip
@overload
def quantile(
    values: Any, q: ArrayLike, *, domain_bits: int | None = ..., signed: bool | None = ..., epsilon: float,
    outside: Outside = ..., missing: Missing = ..., progress: Progress = ..., rng: Randomness | None = ...,
    budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> Any: ...  # fmt: skip
@boundary
def quantile(
    values: Any,
    q: ArrayLike,
    *,
    domain_bits: int | None = None,
    signed: bool | None = None,
    epsilon: float,
    outside: Outside = "raise",
    missing: Missing = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Any:
    """Release a number whose rank among the values is about the share q of them.

    Parameters
    ----------
    values : array_like of int or float
        One column of numbers: an array, a Series, a data frame or Parquet file of one column, a Dask collection. A list
        or a column of objects (or strings) is taken as integers if `domain_bits` is given and as floats otherwise,
        whatever it holds. A NaN is an error.
    q : float in (0, 1), or a sequence of such
        The share of the values below the result; read as its decimal value: 0.1 is a tenth. Of several this is
        `quantiles`.
    domain_bits : int, optional
        The domain: integers of so many bits, 0 .. 2^bits - 1, or -2^(bits-1) .. 2^(bits-1) - 1 if they are signed; all
        finite floats of 64, 32 or 16 bits, in their order, to which floats are rounded. None: as many as the type has.
        The fewer bits, the fewer values are needed: 200 for 64 bits at epsilon 1, 25 for 7.
    signed : bool, optional
        Whether integers are signed. None: they are if their type is, and has no more than `domain_bits`. Without effect
        on floats.
    epsilon : float > 0
        The privacy parameter of the release.
    outside : {"raise", "clip"}
        What happens to a value that is not in the domain: an error, or it is replaced by the nearest end; NaN, missing
        entries and what is no number by the lower one.
    missing : {"raise", "skip"}
        "skip": missing entries and NaN are left out; how many values there are is private then. "raise": they are as
        `outside` says.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int or float
        An integer for integers, a float for floats; an array for several shares.

    Raises
    ------
    ValueError
        For a parameter or a type that is not as above, before anything is charged.
    DomainError
        For a NaN, missing entries and values outside of the domain, unless they are clipped or left out; nothing is
        charged.

    Notes
    -----
    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP
    Proof        interior_point.md, theorems 1 and 2
    Accuracy     `bounds.quantile`: the rank is off by at most ln(W / beta) / eta, with eta = epsilon / 2 under
                 replace-one and epsilon / (2 max(q, 1 - q)) under add-remove, W = 2^bits for up to 16 bits, 2^65 for
                 integers of 64 and 2^75 for floats; mostly much less, as numbers of ordinary size weigh more
    Cost         a partial sort: 3 ms for 1e6 values, less than sorting them
    Not covered  the time that a call takes

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> incomes = np.random.default_rng(0).lognormal(10.5, 0.8, size=10_000)
    >>> top_tenth = fastdp.quantile(incomes, 0.9, epsilon=1.0)
    >>> bool(abs(np.mean(incomes < top_tenth) - 0.9) < 0.01)
    True
    """
    given: Any = q
    if isinstance(q, list | tuple | range) or (has(q, "ndim") and isinstance(given.ndim, int) and given.ndim > 0):
        return quantiles(
            values, q, domain_bits=domain_bits, signed=signed, epsilon=epsilon, outside=outside, missing=missing,
            progress=progress, rng=rng, budget=budget, neighbors=neighbors,
        )  # fmt: skip
    share = probability("q", q)
    selection = RankSelection.of(decimal_value(share), epsilon, neighbors)
    column = NumberColumn(
        values, domain_bits, signed, outside, may_be_empty=neighbors == "add-remove",
        skip_missing=parameters.missing(missing) == "skip",
    )  # fmt: skip
    row = {"q": share, **selection.row, "domain_bits": column.bits}
    with ChargedKeys("quantile", selection.guarantee, row, budget, rng) as keys:
        return selection.release(keys.reads(column, RECORDS), keys, progress)


@overload
def median(
    values: NDArray[np.floating[Any]], *, domain_bits: int | None = ..., signed: bool | None = ..., epsilon: float,
    outside: Outside = ..., missing: Missing = ..., progress: Progress = ..., rng: Randomness | None = ...,
    budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> float: ...  # fmt: skip
@overload
def median(
    values: NDArray[np.integer[Any] | np.bool_], *, domain_bits: int | None = ..., signed: bool | None = ...,
    epsilon: float, outside: Outside = ..., missing: Missing = ..., progress: Progress = ...,
    rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> int: ...  # fmt: skip
@overload
def median(
    values: Sequence[int], *, domain_bits: int, signed: bool | None = ...,
    epsilon: float, outside: Outside = ..., missing: Missing = ..., progress: Progress = ...,
    rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> int: ...  # fmt: skip
@overload
def median(
    values: Sequence[float], *, domain_bits: None = ..., signed: bool | None = ...,
    epsilon: float, outside: Outside = ..., missing: Missing = ..., progress: Progress = ...,
    rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> float: ...  # fmt: skip
@overload
def median(
    values: Any, *, domain_bits: int | None = ..., signed: bool | None = ..., epsilon: float,
    outside: Outside = ..., missing: Missing = ..., progress: Progress = ..., rng: Randomness | None = ...,
    budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> Any: ...  # fmt: skip
@boundary
def median(
    values: Any,
    *,
    domain_bits: int | None = None,
    signed: bool | None = None,
    epsilon: float,
    outside: Outside = "raise",
    missing: Missing = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Any:
    """Release a median: `quantile` at q = 1/2.

    Parameters
    ----------
    values : array_like of int or float
        One column of numbers: an array, a Series, a data frame or Parquet file of one column, a Dask collection. A list
        or a column of objects (or strings) is taken as integers if `domain_bits` is given and as floats otherwise,
        whatever it holds. A NaN is an error.
    domain_bits : int, optional
        The domain: integers of so many bits, or all finite floats of 64, 32 or 16 bits; None for as many as the type
        has. See `quantile`.
    signed : bool, optional
        Whether integers are signed. None: they are if their type is, and has no more than `domain_bits`. Without effect
        on floats.
    epsilon : float > 0
        The privacy parameter of the release.
    outside : {"raise", "clip"}
        What happens to a value that is not in the domain: an error, or it is replaced by the nearest end; NaN, missing
        entries and what is no number by the lower one.
    missing : {"raise", "skip"}
        "skip": missing entries and NaN are left out; how many values there are is private then. "raise": they are as
        `outside` says.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int or float
        An integer for integers, a float for floats.

    Raises
    ------
    ValueError
        For a parameter or a type that is not as above, before anything is charged.
    DomainError
        For a NaN, missing entries and values outside of the domain, unless they are clipped or left out; nothing is
        charged.

    Notes
    -----
    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP
    Proof        interior_point.md, theorems 1 and 2
    Accuracy     `bounds.median`: the rank is off by at most ln(W / beta) / eta, with eta = epsilon / 2 under
                 replace-one and epsilon under add-remove, and W as for `quantile`
    Cost         a partial sort: 3 ms for 1e6 values, less than sorting them
    Not covered  the time that a call takes

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 90, size=1_000)
    >>> 50 <= fastdp.median(ages, domain_bits=7, epsilon=1.0) <= 57
    True
    """
    selection = RankSelection.of(HALF, epsilon, neighbors)
    column = NumberColumn(
        values, domain_bits, signed, outside, may_be_empty=neighbors == "add-remove",
        skip_missing=parameters.missing(missing) == "skip",
    )  # fmt: skip
    row = {**selection.row, "domain_bits": column.bits}
    with ChargedKeys("median", selection.guarantee, row, budget, rng) as keys:
        return selection.release(keys.reads(column, RECORDS), keys, progress)


@dataclass(frozen=True)
class RankSelection:
    """The choice of a point by its rank, from public numbers: interior_point.md, theorems 1 to 3.

    even    whether all numbers of the line weigh alike, whatever their size
    """

    tau: Fraction
    epsilon: float
    neighbors: Neighbors
    even: bool = False

    @classmethod
    def of(cls, tau: Fraction, epsilon: Any, neighbors: Any, *, even: bool = False) -> RankSelection:
        """Of parameters as users give them."""
        selection: RankSelection = _rank_selection(tau.numerator, tau.denominator, *_checked(epsilon, neighbors), even)
        return selection

    @cached_property
    def eta(self) -> Fraction:
        """The weight of a rank in the exponent: theorem 1."""
        sensitivity = max(self.tau, 1 - self.tau) if self.neighbors == "add-remove" else 1
        return lower(self.epsilon) / (2 * sensitivity)

    @cached_property
    def guarantee(self) -> BoundedRange:
        return BoundedRange(self.epsilon, neighbors=self.neighbors)

    @cached_property
    def _off(self) -> dict[float, float]:
        """By how much the rank is off at most, on lines of so many bits."""
        return {}

    @cached_property
    def _lesser_share(self) -> float:
        return float(min(self.tau, 1 - self.tau))

    def law(self, line: NumberLine) -> RankLaw:
        """On the points of a line."""
        if (law := self._laws.get(line)) is None:
            law = RankLaw(self.tau, line.last, self.eta, None if self.even else line_weights(line))
            self._laws[line] = law
        return law

    @cached_property
    def _laws(self) -> dict[NumberLine, RankLaw]:
        """By their lines: fractions take a microsecond to be found in a cache."""
        return {}

    @property
    def row(self) -> dict[str, Any]:
        """Its row in a budget."""
        return {"epsilon": self.epsilon}

    def warn_if_few(self, column: NumberColumn, weights: LineWeights | None = None) -> None:
        """Warn where the number of values is public, and too small for any point of the line to be unlikely."""
        if self.neighbors != "replace-one" or not column.n:
            return
        bits = column.bits if weights is None else weights.bits
        off = self._off.get(bits)
        if off is None:
            off = self._off[bits] = rank_error(bits, self.eta, _BETA)
        if off > column.n * self._lesser_share:
            warn_of_accuracy(
                f"{column.n:,} values are too few for {column.bits} bits and epsilon={self.epsilon:g}, which may put "
                f"the rank off by {off:.0f}: any number of the domain may come out; declare fewer domain_bits if the "
                "domain is smaller"
            )

    def release(self, column: NumberColumn, keys: ChargedKeys, progress: Progress = None) -> int | float:
        """Read the values, and draw a number of the line; what is wrong with them comes before a warning."""
        with reporting(progress, "choosing") as report:
            report(0, 2, "reading")
            line, positions = column.read()
            law = self.law(line)
            self.warn_if_few(column, law.weights)
            report(1, 2, "choosing")
            found = line.value(draw_by_rank(positions, law, keys.take))
            report(2, 2, "")
        return found


@remembered
def _checked(epsilon: Any, neighbors: Any) -> tuple[float, Neighbors]:
    return parameters.epsilon(epsilon), parameters.neighbors(neighbors)


@lru_cache(256)
def _rank_selection(
    numerator: int, denominator: int, epsilon: float, neighbors: Neighbors, even: bool
) -> RankSelection:
    """By integers, whose hash takes a tenth of that of a fraction."""
    return RankSelection(Fraction(numerator, denominator), epsilon, neighbors, even)


def rank_error(bits: float, eta: Fraction, beta: float) -> float:
    """By how much the rank is off at most, but with probability beta: interior_point.md, theorem 3."""
    return (bits * log(2.0) - log(beta)) / float(eta) if float(eta) else inf
