"""How many quantiles are found by halving, and what that costs: from public numbers alone.

The middle one divides the records, those on either side are found among the records on that side, and so on: a record
takes part in one choice of a level. many_quantiles.md has the prices and their proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ..privacy.composition import compose, share
from ..privacy.conversions import rho_of_range
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP
from ..support import parameters
from ..support.rounding import down, lower, up
from .cut_choice import steps_of

_FINEST = 2**28
_ROOT_TWO = Fraction(14142135, 10**7)  # not above it

Share = Fraction | int


class Shares(tuple[Fraction, ...]):
    """Fractions, whose hash is found once: caches ask for it again and again, and it takes a microsecond a share."""

    _hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash


def in_order(shares: Sequence[Fraction]) -> Shares:
    """Each once, in order."""
    return shares if isinstance(shares, Shares) else Shares(sorted(set(shares)))


class Terms(NamedTuple):
    """A choice as the kernel reads it: tau = a / b, and rate = eta / b, of which step / 2^bits halves a weight."""

    a: int
    b: int
    step: int
    bits: int
    rate: float

    @classmethod
    def of(cls, tau: Fraction, eta: Fraction) -> Terms:
        rate = eta / tau.denominator
        if not rate:
            raise ValueError("epsilon: is too small for so many quantiles: must be larger")
        return cls(tau.numerator, tau.denominator, *steps_of(rate), float(rate))


class Node(NamedTuple):
    """A choice: quantile number `middle` of those from `first` to before `stop`, in a part that ends at its neighbours.

    tau      its share of the records of the part
    eta      the weight of a rank in the exponent
    divides  whether others are found on one of its sides
    terms    the numbers of the choice for the kernel
    offset   what is added to that share, in units of 1 / the denominator of tau
    """

    middle: int
    first: int
    stop: int
    tau: Fraction
    eta: Fraction
    divides: bool
    terms: Terms
    offset: int = 0


@dataclass(frozen=True)
class QuantilePlan:
    """Many quantiles of one column, or the same ones of each of several columns.

    shares     the quantiles: fractions in (0, 1), each once, in order
    each       the range of log-likelihood ratios that one level has
    columns    how many columns there are
    pure       whether the last two levels are added up as they are, or by their squares
    even       whether no choice has a larger range than a level, as loss distributions of levels ask for
    """

    shares: tuple[Fraction, ...]
    each: float
    neighbors: Neighbors
    columns: int
    pure: bool
    epsilon: float | None = None
    delta: float = 0.0
    even: bool = False

    @classmethod
    def of(
        cls, shares: Sequence[Fraction], *, epsilon: Any, delta: Any = 0.0, neighbors: Any = "replace-one",
        columns: int = 1,
    ) -> QuantilePlan:  # fmt: skip
        """With the largest exponents that (epsilon, delta) allows."""
        epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
        ordered = in_order(shares)
        levels = columns * len(ordered).bit_length()
        pure = down(lower(epsilon) / max(levels, 1))
        each = max(pure, _range_of_level(epsilon, delta, levels)) if delta and levels > 1 else pure
        return cls(ordered, each, parameters.neighbors(neighbors), columns, each == pure, epsilon, delta)

    @classmethod
    def at(
        cls, shares: Sequence[Fraction], each: float, neighbors: Neighbors = "replace-one", columns: int = 1, *,
        even: bool = False,
    ) -> QuantilePlan:  # fmt: skip
        """With levels of a given range."""
        return cls(in_order(shares), each, neighbors, columns, False, even=even)

    @property
    def levels(self) -> int:
        """How many choices a record takes part in, of one column."""
        return len(self.shares).bit_length()

    @property
    def guarantee(self) -> Guarantee:
        """Of the quantiles of all columns together: many_quantiles.md, theorem 1."""
        return _guarantee(
            self.each, self.levels, self.columns, self._has_short_paths, self.pure, self.epsilon, self.delta,
            self.neighbors,
        )  # fmt: skip

    @property
    def rho(self) -> Fraction:
        """The same in zCDP."""
        return _rho(self.each, self.levels, self.columns, self._has_short_paths, self.pure)

    @property
    def _has_short_paths(self) -> bool:
        """Whether a quantile that divides nothing may be found one level before the last."""
        return self.levels > 1 and len(self.shares) + 1 < 3 * 2 ** (self.levels - 2)

    @cached_property
    def nodes(self) -> tuple[tuple[Node, ...], ...]:
        """The choices of each level, in order."""
        early = 1 if self.even else 2 if self.pure else _ROOT_TWO
        prices = Prices(self.each, self.neighbors, early)
        return levels_of_all(self.shares, prices, divide=False)


class Prices(NamedTuple):
    """What a choice costs: the range of a level, and how many of it a quantile has that is found a level early."""

    each: float
    neighbors: Neighbors
    early: Fraction | int

    def eta(self, tau: Fraction, times: Fraction | int, *, everything: bool) -> Fraction:
        """The exponent of a choice; `everything`: of a part that every record is in, whatever it is replaced by."""
        a, b = tau.numerator, tau.denominator
        top, bottom = self.each.as_integer_ratio()
        if self.neighbors == "add-remove":
            a, b = 2 * max(a, b - a), b
        elif everything:
            a, b = 2, 1
        else:
            a, b = 4 * max(a, b - a), b
        return Fraction(top * b * times.numerator, bottom * a * times.denominator)


def _coarse(tau: Fraction) -> Fraction:
    """The same, or near it where its denominator is large: a part of a rank in 2^28 records."""
    if tau.denominator <= _FINEST:
        return tau
    return Fraction(min(max(round(tau * _FINEST), 1), _FINEST - 1), _FINEST)


def levels_of(
    shares: Sequence[Share], ends: tuple[Share, Share], prices: Prices, *, everything: bool = True,
    divide: bool = False,
) -> Iterator[tuple[Node, ...]]:  # fmt: skip
    """The choices of each level for shares of all records, in a part that ends at these; in any unit.

    everything    the part is all records
    divide        every choice divides its part: what is asked for are the parts
    """
    at = (ends[0], *shares, ends[1])
    parts, level, last = [(0, len(shares))] if shares else [], 0, len(shares).bit_length() - 1
    while parts:
        found, inner = [], []
        for first, stop in parts:
            low, high = at[first], at[stop + 1]
            middle = first + stop >> 1
            if not (stop - first) % 2 and at[middle] + at[middle + 1] >= low + high:
                middle -= 1  # of the two in the middle the one that is closer to it
            tau = _coarse(Fraction(at[middle + 1] - low, high - low))
            times = prices.early if stop - first == 1 and level == last - 1 else 1
            eta = prices.eta(tau, times, everything=everything and not level)
            found.append(Node(middle, first, stop, tau, eta, divide or stop - first > 1, Terms.of(tau, eta)))
            inner += [part for part in ((first, middle), (middle + 1, stop)) if part[0] < part[1]]
        yield tuple(found)
        parts, level = inner, level + 1


@lru_cache(64)
def levels_of_all(shares: tuple[Fraction, ...], prices: Prices, *, divide: bool) -> tuple[tuple[Node, ...], ...]:
    """The choices of each level, where the part is everything."""
    return tuple(levels_of(shares, (Fraction(0), Fraction(1)), prices, divide=divide))


@lru_cache(1024)
def _range_of_level(epsilon: float, delta: float, levels: int) -> float:
    """By sums of Renyi curves, which hold on every path of choices: many_quantiles.md, theorem 1."""
    whole = ApproxDP(down(lower(epsilon)), down(lower(delta)))
    return share(whole, levels, lambda each: BoundedRange(each).to_renyi())


def _rho(each: float, levels: int, columns: int, short: bool, pure: bool) -> Fraction:
    one, both = Fraction(rho_of_range(each)), Fraction(rho_of_range(up(2 * Fraction(each))))
    rho = levels * columns * one
    if short and pure:  # a choice of twice the range stands for the last two
        rho = max(rho, rho + columns * (both - 2 * one))
    return rho


@lru_cache(1024)
def _guarantee(
    each: float, levels: int, columns: int, short: bool, pure: bool, epsilon: float | None, delta: float,
    neighbors: Neighbors,
) -> Guarantee:  # fmt: skip
    count = levels * columns
    if not count:
        return PureDP(0.0, neighbors=neighbors)
    if count == 1:
        return BoundedRange(each if epsilon is None else epsilon, neighbors=neighbors)
    concentrated = ZCDP(up(_rho(each, levels, columns, short, pure)), neighbors=neighbors)
    if epsilon is None:
        return compose((BoundedRange(each, neighbors=neighbors), count))
    if pure:
        return AllOf(PureDP(epsilon, neighbors=neighbors), concentrated)
    return AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), concentrated)
