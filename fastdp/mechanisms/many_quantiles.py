"""Many quantiles of numbers without bounds, in one release.

The middle quantile is chosen privately and divides the values; those on either side are found among the values on that
side. So a value takes part in a few choices only, seven for 99 quantiles. Where there are enough values, parts are
counted as well, so that errors do not add up (counted_quantiles.py). many_quantiles.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.budget import Budget
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.rehearsal import RECORDS
from ..records.number_column import NumberColumn
from ..records.number_line import NumberLine, Positions
from ..records.rank_search import RankSearch
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import items_of, probability
from ..support.parameters import Missing, Outside
from ..support.progress import Progress, Report, reporting
from ..support.rounding import decimal_value, lower, up
from .counted_quantiles import FOR_SIZE, HALVED, CountedPlan, choose_method, noisy_size, rho_of_any
from .quantile_draws import Division, draw_quantiles
from .quantile_plan import QuantilePlan, Shares, in_order

MOST_QUANTILES = 2**17
Column = tuple[NumberLine, Positions | RankSearch]


@boundary
def quantiles(
    values: Any,
    qs: ArrayLike | Sequence[float],
    *,
    domain_bits: int | None = None,
    signed: bool | None = None,
    epsilon: float,
    delta: float = 0.0,
    outside: Outside = "raise",
    missing: Missing = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> NDArray[Any]:
    """Release many quantiles at once: numbers of the domain below which about shares `qs` of the values are.

    Parameters
    ----------
    values : array_like of int or float
        One column of numbers: an array, a Series, a data frame or Parquet file of one column, a Dask collection. A list
        or a column of objects (or strings) is taken as integers if `domain_bits` is given and as floats otherwise,
        whatever it holds. A NaN is an error.
    qs : sequence of float in (0, 1)
        The shares of the values below the results, in any order; read as their decimal values: 0.1 is a tenth. At most
        131,072 of them.
    domain_bits : int, optional
        The domain: integers of so many bits, or all finite floats of 64, 32 or 16 bits; None for as many as the type
        has. See `quantile`. It matters little here: many_quantiles.md, "The line".
    signed : bool, optional
        Whether integers are signed. None: they are if their type is, and has no more than `domain_bits`. Without effect
        on floats.
    epsilon : float > 0
        The privacy parameter of the release: of all quantiles together.
    delta : float in [0, 1)
        The delta of the release; above 0 it makes many quantiles more accurate.
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
    ndarray
        A number for each of `qs`, in their order; larger shares have larger numbers, or equal ones. Of type float64 for
        floats; int64, uint64 or object for integers, by their domain.

    Raises
    ------
    ValueError
        For a parameter or a type that is not as above, before anything is charged.
    DomainError
        For a NaN, missing entries and values outside of the domain, unless they are clipped or left out; nothing is
        charged.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP
    Proof        many_quantiles.md, theorems 1, 2 and 4
    Accuracy     of 54,000 values, 99 quantiles are off by 6 ranks on average at epsilon 1 under add-remove, and by some
                 two or three times that under replace-one; `bounds.quantiles` for the worst case
    Cost         a sort of the values, and a fraction of a millisecond for each quantile
    Not covered  the time that a call takes

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> incomes = np.random.default_rng(0).lognormal(10.5, 0.8, size=10_000)
    >>> deciles = fastdp.quantiles(incomes, np.arange(1, 10) / 10, epsilon=1.0)
    >>> shares = [float(np.mean(incomes < decile)) for decile in deciles]
    >>> bool(np.abs(np.array(shares) - np.arange(1, 10) / 10).max() < 0.02)
    True
    """
    found, _ = release_quantiles(
        values, qs, skip_missing=parameters.missing(missing) == "skip", domain_bits=domain_bits, signed=signed,
        epsilon=epsilon, delta=delta, outside=outside, progress=progress, rng=rng, budget=budget, neighbors=neighbors,
    )  # fmt: skip
    return found


def release_quantiles(
    values: Any, qs: Any, *, skip_missing: bool, domain_bits: Any, signed: Any, epsilon: Any, delta: Any, outside: Any,
    progress: Progress, rng: Randomness | None, budget: Budget | None, neighbors: Any,
) -> tuple[NDArray[Any], Guarantee]:  # fmt: skip
    """The quantiles, and what they guarantee: of the entries that are there, or of all, where none may be missing."""
    shares, order = _ordered(tuple(_floats_of(qs)))
    plan = ManyQuantiles.of(shares, epsilon, delta, neighbors, private_size=skip_missing)
    column = NumberColumn(
        values, domain_bits, signed, outside, may_be_empty=neighbors == "add-remove", skip_missing=skip_missing
    )
    row = {**plan.row, "domain_bits": column.bits}
    guarantee = plan.guarantee(column.n)
    with ChargedKeys("quantiles", guarantee, row, budget, rng) as keys, reporting(progress, "choosing") as report:
        report(0, len(plan.shares), "quantiles")
        line, positions = keys.reads(column, RECORDS).read()
        found = plan.release(line, positions, keys, report)
    return _array_of([found[place] for place in order], line), keys.stating(guarantee)


@dataclass(frozen=True)
class ManyQuantiles:
    """The release of quantiles of one column, by whichever method should be more accurate.

    private_size    whether the number of values is private under replace-one, too: some records have none
    """

    shares: Shares
    epsilon: float
    delta: float
    neighbors: Neighbors
    private_size: bool = False

    @classmethod
    def of(
        cls, shares: Sequence[Fraction], epsilon: Any, delta: Any, neighbors: Any, *, private_size: bool = False
    ) -> ManyQuantiles:
        """Of parameters as users give them."""
        epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
        return cls(in_order(shares), epsilon, delta, parameters.neighbors(neighbors), private_size)

    @property
    def row(self) -> dict[str, Any]:
        """Its row in a budget."""
        return {"epsilon": self.epsilon, **({"delta": self.delta} if self.delta else {}), "quantiles": len(self.shares)}

    @property
    def _knows_size(self) -> bool:
        """Whether the method is chosen before anything is read: the number of records is public, or does not matter."""
        public = self.neighbors == "replace-one" and not self.private_size
        return public or len(self.shares) <= HALVED

    def _method(self, n: int) -> QuantilePlan | CountedPlan:
        return choose_method(self.shares, lower(self.epsilon), self.delta, self.neighbors, n, n)

    def guarantee(self, n: int) -> Guarantee:
        """Of the release: many_quantiles.md, theorems 1 and 4. Where the size is private it does not depend on n."""
        if self._knows_size:
            method = self._method(n)
            if isinstance(method, QuantilePlan):
                return method.guarantee
            rho = method.rho
        else:
            rho = rho_of_any(self.shares, lower(self.epsilon), self.delta, self.neighbors)
        concentrated = ZCDP(up(rho), neighbors=self.neighbors)
        if self.delta:
            return AllOf(ApproxDP(self.epsilon, self.delta, neighbors=self.neighbors), concentrated)
        return AllOf(PureDP(self.epsilon, neighbors=self.neighbors), concentrated)

    def release(
        self, line: NumberLine, positions: Positions | RankSearch, keys: ChargedKeys, report: Report
    ) -> list[int | float]:
        """The quantiles, in order; the release has been charged."""
        total = len(self.shares)
        m = positions.m if isinstance(positions, RankSearch) else len(positions)
        for_choices, for_counts, for_size = (keys.take_ahead() for _ in range(3))
        keys.commit()
        if self._knows_size:
            method = self._method(m)
        else:
            epsilon = lower(self.epsilon)
            size = noisy_size(m, epsilon, for_size)
            method = choose_method(self.shares, epsilon * (1 - FOR_SIZE), self.delta, self.neighbors, size, None)

        def tell(done: int) -> object:
            return report(done, total, "quantiles" if done < total else "")

        if isinstance(method, CountedPlan):
            division = Division(positions, line, for_choices)
            found = division.numbers(method.draw(division, for_counts, tell))
        else:
            found = draw_quantiles(positions, line, method, for_choices, tell)
        return [line.value(position) for position in found]


def shares_of(qs: Any) -> list[Fraction]:
    """The decimal values of shares as users give them; ValueError unless there is one, and all lie between 0 and 1."""
    return list(map(decimal_value, _floats_of(qs)))


def shares_in_order(qs: Any) -> Shares:
    """The same, each once and in order; there may be none."""
    given = items_of("qs", qs, "a sequence of numbers between 0 and 1", most=MOST_QUANTILES)
    return in_order(shares_of(given)) if given else Shares()


def _floats_of(qs: Any) -> list[float]:
    given = items_of("qs", qs, "a sequence of numbers between 0 and 1", most=MOST_QUANTILES)
    if not given:
        raise ValueError("qs: must hold at least one")
    shares = []
    for i, q in enumerate(given):
        try:
            shares.append(probability("qs", q))
        except ValueError:  # it may be a record, where arguments were swapped: not shown
            raise ValueError(f"qs[{i}]: must be between 0 and 1, both excluded") from None
    return shares


@lru_cache(16)
def _ordered(qs: tuple[float, ...]) -> tuple[Shares, tuple[int, ...]]:
    """The shares in order, each once, and where each of those that were given is among them."""
    distinct = sorted(set(qs))
    places = {q: i for i, q in enumerate(distinct)}
    return Shares(map(decimal_value, distinct)), tuple(places[q] for q in qs)


def _array_of(numbers: list[int | float], line: NumberLine) -> NDArray[Any]:
    """Numbers of a line, as the type that holds all of the line."""
    if line.least is None:
        return np.array(numbers, np.float64)
    kinds = [kind for kind in (np.int64, np.uint64) if np.iinfo(kind).min <= line.least]
    for kind in kinds:
        if line.least + line.last <= np.iinfo(kind).max:
            return np.array(numbers, kind)
    array = np.empty(len(numbers), object)
    array[:] = numbers
    return array
