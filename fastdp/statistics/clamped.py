"""One column of numbers between declared bounds, as integers whose sums are exact: statistics.md, lemma 1.

A number is clamped to the bounds and put on a grid, a power of two, counted from the lower bound: an integer from 0 to
`last`, and a function of that number alone. Integers between integers stay what they are.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, frexp, inf, ldexp, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import Neighbors
from ..records.number_column import one_column
from ..records.number_line import Positions
from ..records.outside_domain import numbers_or_nan
from ..records.rank_search import RankSearch, may_gather
from ..records.rows import Block, Rows
from ..support import parameters
from ..support.checks import MAX_INT64, check_fits, items_of, length_of, plain_integer, remembered
from ..support.columns import Entries, as_compiled, objects
from ..support.errors import DomainError, warn_of_accuracy
from ..support.parameters import Missing
from ..support.shown import shown

_BITS = 30  # of the last integer, where noise does not ask for more
_LEAST_BITS = 8
_EXACT = 50  # bits of a float that the kernels round exactly
_SUMS = 62  # bits of a sum
_ONE_BLOCK = 2**20  # numbers that are read at once; n last < 2^63, as for smaller blocks


class Bits(NamedTuple):
    """Of the integers between two bounds: those that stand for floats, and the most that stand for themselves."""

    floats: int
    integers: int

    def at_most(self, bits: int) -> Bits:
        """No more than these."""
        return Bits(min(self.floats, bits), min(self.integers, bits))


@dataclass(frozen=True)
class Grid:
    """The integers that stand for the numbers between two bounds.

    unit      the distance of two of them, a power of two
    first     the lower bound, in units
    last      the upper bound, in units from the lower one
    integers  whether numbers are integers, and the unit is 1
    """

    unit: float
    first: int
    last: int
    integers: bool

    @classmethod
    def of(cls, bounds: Any, kind: str, bits: Bits, *, from_zero: bool = False) -> Grid:
        """For numbers of a dtype's kind: at most 2^bits integers between the bounds, or from 0 to the further one."""
        low, high = _two(bounds)
        return _grid(low, high, kind in "biu", bits.floats, bits.integers, from_zero)

    def value(self, places: float | Fraction) -> float:
        """The number that is so many units above the lower bound."""
        return float(self.first + Fraction(places)) * self.unit


@remembered
def _grid(least: Any, most: Any, whole: bool, floats: int, integers: int, from_zero: bool) -> Grid:
    low, high = ends_of((least, most))
    span = max(abs(low), abs(high)) if from_zero else high - low
    whole = whole and low.denominator == high.denominator == 1
    if whole and span <= 2**integers and max(abs(low), abs(high)) < 2**63:
        return Grid(1.0, int(low), int(high - low), True)
    finest = frexp(float(max(abs(low), abs(high))))[1] - _EXACT
    unit = ldexp(1.0, max(frexp(float(span))[1] - floats, finest))
    first, end = round(low / Fraction(unit)), round(high / Fraction(unit))
    if first == end:
        raise ValueError(
            f"bounds={_shown((least, most))}: must be further apart: floats between them are not told apart"
        )
    return Grid(unit, first, end - first, False)


def _two(bounds: Any) -> list[Any]:
    ends = items_of("bounds", bounds, "two numbers, the lower and the upper bound", most=2)
    if len(ends) != 2:
        raise ValueError(f"bounds={shown(bounds)}: must be two numbers, the lower and the upper bound")
    return ends


def ends_of(bounds: Any) -> tuple[Fraction, Fraction]:
    ends = _two(bounds)
    low, high = (_end(bounds, end, ends) for end in ends)
    if not low < high:
        raise ValueError(f"bounds={_shown(ends)}: must be in increasing order")
    return low, high


def _end(bounds: Any, end: Any, ends: list[Any]) -> Fraction:
    if (whole := plain_integer(end)) is not None and abs(whole) < 2**64:
        return Fraction(whole)
    if isinstance(end, bool | np.bool_) or not isinstance(end, int | float | np.floating | Fraction):
        raise ValueError(f"bounds={shown(bounds)}: must be two numbers, the lower and the upper bound")
    try:
        number = float(end)
    except OverflowError:
        number = inf
    if end != 0 and not 2.0**-400 <= abs(number) <= 2.0**400:  # a NaN is not
        raise ValueError(f"bounds={_shown(ends)}: must be finite, and each 0 or from 2^-400 to 2^400 in size")
    return Fraction(number)


def _shown(ends: Iterable[Any]) -> str:
    return f"({', '.join(map(shown, ends))})"


def noise_bits(epsilon: float) -> int:
    """The bits of a sensitivity that leave room for its noise: below 2^39 units."""
    return 38 + floor(log2(epsilon))


def within_int64(number: int) -> int:
    """The nearest integer of 64 bits, which moves no two further apart."""
    return max(-MAX_INT64 - 1, min(MAX_INT64, number))


class Sums(NamedTuple):
    """What is known of a column: sums of its integers, and of their squares where they were asked for."""

    total: int
    squares: int
    present: int

    def plus(self, more: Sums) -> Sums:
        """Of two parts of a column; Python's integers are exact."""
        return Sums(self.total + more.total, self.squares + more.squares, self.present + more.present)


class ClampedColumn:
    """A column of numbers, not read yet, and what becomes of missing entries: an error, or they are left out.

    A list holds floats: a type that its entries decided would tell one record from another. Of records with several
    columns it is the one `at` this position; `label` is what a warning calls it.
    """

    def __init__(
        self, values: Any, missing: Any, neighbors: Neighbors, at: int = 0, label: str = "values"
    ) -> None:  # fmt: skip
        self.missing: Missing = parameters.missing(missing)
        self.rows: Rows = values if at else one_column(floats_of_list(values))
        if not self.rows.n and neighbors == "replace-one":
            raise ValueError("values: must hold at least one")
        self._at = at
        self.kind = self.rows.dtypes()[at].kind
        if self.kind not in "biufO":
            raise ValueError(f"values: dtype {self.rows.dtypes()[at]}: must be numbers")
        if self.missing == "skip" and self.rows.untyped(at):  # by its type alone: what the entries are is private
            warn_of_accuracy(
                f"{label}: dtype object: entries that are no numbers are left out, strings such as '12' too, and where "
                "none is a number the result is noise: make it a column of numbers, by .astype(float) or "
                "pandas.to_numeric(column, errors='coerce')"
            )
        #: Whether the number of entries that count is public.
        self.knows_size = neighbors == "replace-one" and self.missing == "raise"

    def __getstate__(self) -> dict[str, Any]:
        """What reads a block where the block is; the rows stay here."""
        return {name: value for name, value in vars(self).items() if name != "rows"}

    @property
    def n(self) -> int:
        """How many entries there are, missing ones too: public only under replace-one neighbours."""
        return self.rows.n

    def bits(self, epsilon: float) -> Bits:
        """How fine a grid should be, by public numbers: rounding is little beside noise, which has its own limit."""
        most = max(_LEAST_BITS, noise_bits(epsilon))
        if not self.knows_size:
            return Bits(min(_BITS, most), min(_BITS + 2, most))
        room = _SUMS - ceil(log2(self.n))
        asked = max(_BITS, ceil(log2(self.n) + log2(epsilon)) + 2)
        return Bits(min(asked, most, room), min(most, room))

    def sums(self, grid: Grid) -> Sums:
        """The sum of the integers, and how many there are."""
        from ..kernels.clamped_sums import sum_clamped_floats, sum_clamped_integers

        first, end = grid.first, grid.first + grid.last

        def statistic(block: Block) -> Sums:
            values, missing = self._read(block, grid)
            if grid.integers:
                return Sums(sum_clamped_integers(values, first, end), 0, block.n - missing)
            total, nans = sum_clamped_floats(values, grid.unit, float(first), float(end))
            return Sums(total, 0, block.n - self._allowed(missing + nans))

        return self._merged(statistic)

    def squares(self, grid: Grid) -> Sums:
        """The same with the sum of squares."""
        from ..kernels.clamped_sums import SHIFT, sum_clamped_squares

        first, end = float(grid.first), float(grid.first + grid.last)

        def statistic(block: Block) -> Sums:
            values, missing = self._read(block, grid)
            values = as_compiled(np.asarray(values, np.float64 if grid.integers else None))
            total, below, above, nans = sum_clamped_squares(values, grid.unit, first, end)
            return Sums(total, (above << SHIFT) + below, block.n - self._allowed(missing + nans))

        return self._merged(statistic)

    def _merged(self, statistic: Callable[[Block], Sums]) -> Sums:
        """Of all blocks; of one that is all, where a number takes less time than a block does."""
        if self.rows.n <= _ONE_BLOCK and (block := self.rows.one_block()) is not None:
            return statistic(block)
        return self.rows.merge(statistic, Sums.plus)

    def _read(self, block: Block, grid: Grid) -> tuple[NDArray[Any], int]:
        """The entries of a block as the kernels take them, and how many are missing beside those that are NaN."""
        values, missing, label = block.numbers(self._at)
        if values.dtype.kind in "biu":
            left_out = 0 if missing is None else self._allowed(int(missing.sum()))
            if left_out and missing is not None:
                values = values[~missing]
            values = _signed(values) if grid.integers else np.ascontiguousarray(values, np.float64)
            return as_compiled(values), left_out
        if values.dtype not in (np.float32, np.float64) or missing is not None:
            values = numbers_or_nan(Entries(values, missing, label))
        return as_compiled(np.ascontiguousarray(values)), 0

    def integers(self, block: Block, grid: Grid) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None]:
        """The integer of every entry of a block, and which are missing; None: no entry is."""
        values, missing, label = block.numbers(self._at)
        first, end = grid.first, grid.first + grid.last
        if grid.integers:
            found = _signed(values).clip(first, end)
        else:
            floats = numbers_or_nan(Entries(values, missing, label))
            missing = np.isnan(floats)
            scaled = np.where(missing, float(first), floats * (1 / grid.unit))
            found = np.rint(scaled.clip(float(first), float(end))).astype(np.int64)
        if missing is None or not self._allowed(int(missing.sum())):
            missing = None
        return found - first, missing

    def positions(self, grid: Grid) -> Positions | RankSearch:
        """The integers of the entries that are not missing, as positions from which quantiles are chosen."""

        def places(block: Block) -> NDArray[np.uint64]:
            found, missing = self.integers(block, grid)
            return (found if missing is None else found[~missing]).astype(np.uint64)

        if may_gather(self.rows):
            parts = self.rows.merge(lambda block: [places(block)], operator.add)
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        m = int(self.rows.total(lambda block: np.array([[places(block).size]], np.int64))[0, 0])
        return RankSearch(self.rows, places, grid.last, m=m)

    def _allowed(self, missing: int) -> int:
        if missing and self.missing == "raise":
            raise DomainError(
                "values: must be numbers; there are missing entries, NaN, or what is no number, such as strings: pass "
                "missing='skip' to leave them all out"
            )
        return missing


def _signed(values: NDArray[Any]) -> NDArray[np.int64]:
    """Integers of any type; those beyond int64 as its end."""
    if values.dtype == np.uint64:
        values = np.minimum(values, np.uint64(2**63 - 1))
    return np.ascontiguousarray(values, np.int64)


def floats_of_list(values: Any) -> Any:
    """A list as floats, with NaN for what is no number; anything else as it is."""
    if not isinstance(values, list | tuple | range):
        return values
    check_fits("values", values, 16 * length_of("values", values), "so many numbers")
    if {*map(type, values)} <= {bool, int, float}:
        with suppress(OverflowError):  # an integer beyond every float
            return np.array(values, np.float64)
    return numbers_or_nan(Entries(objects(values), None, "values"))
