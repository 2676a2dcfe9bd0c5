"""The columns that `describe` summarises: what each of them reads, what its releases cost, how they are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.counted_quantiles import halving_error
from ..mechanisms.many_quantiles import ManyQuantiles
from ..mechanisms.noise import CalibratedNoise
from ..privacy.composition import compose
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.noise_draws import add_noise, integer_noise
from ..randomness.rehearsal import RECORDS
from ..records.column_names import called_column
from ..records.domain import Domain
from ..records.number_line import NumberLine, Positions
from ..records.partition import NOWHERE, KeyCoder
from ..records.rank_search import RankSearch
from ..records.rows import Block, Rows
from ..support import parameters
from ..support.errors import DomainError
from ..support.search import greatest_float
from ..support.shown import shown
from .clamped import Bits, ClampedColumn, Grid, Sums
from .description import ColumnSummary
from .moments import MomentSums
from .noise import deviation_of, noise_at
from .results import Counts
from .shares import Errors, Price

_LINE = Bits(32, 62)  # of the integers that quantiles are chosen from
_ROOT_TWO = sqrt(2)


class NumbersToDescribe:
    """A column of numbers between bounds."""

    def __init__(
        self, name: str | int, rows: Rows, bounds: Any, shares: Sequence[Fraction], missing: Any, neighbors: Neighbors
    ) -> None:
        self.name, self._bounds, self._shares, self._neighbors = name, bounds, shares, neighbors
        self._column = ClampedColumn(rows, missing, neighbors, label=f"column {shown(name)}")
        self._line = Grid.of(bounds, self._column.kind, _LINE)
        self._private = not self._column.knows_size
        self.prices: list[Price] = []
        self._sums: Sums | None = None
        self._positions: Positions | RankSearch | None = None
        self._noisy: list[int] = []
        self._chosen: list[int | float] = []

    @property
    def errors(self) -> list[Errors]:
        """Of the moments in ranges of the bounds, and of the quantiles in ranks."""
        twice = 2 if self._neighbors == "replace-one" and self._private else 1
        moved = 1.0 if self._private else 9 / 8
        found = [Errors(_ROOT_TWO * twice * moved, sqrt(twice / 2))]
        if self._shares:
            levels = len(self._shares).bit_length()
            of_range = halving_error(1.0, levels, self._neighbors)
            found.append(Errors(levels * of_range, sqrt(levels / 8) * of_range))
        return found

    def set_prices(self, prices: Sequence[Price]) -> None:
        """What its releases may cost, in the order of their errors."""
        self.prices = [*prices]
        self._moments = MomentSums.of(self._column, self._bounds, prices[0].like_epsilon)
        self._noise = noise_at(self._moments.entries, *self._moments.moved(self._neighbors), prices[0], self._neighbors)
        if self._shares:
            epsilon = prices[1].epsilon or _epsilon_at(
                self._private, self._column.n if self._column.knows_size else None, tuple(self._shares),
                prices[1].rho or 0.0, self._neighbors,
            )  # fmt: skip
            self._quantiles = ManyQuantiles.of(self._shares, epsilon, 0.0, self._neighbors, private_size=self._private)

    @property
    def guarantee(self) -> Guarantee:
        """Of all that is released of this column."""
        if not self._shares:
            return self._noise.guarantee
        return compose(self._noise.guarantee, self._quantiles.guarantee(self._column.n))

    def read(self) -> None:
        """Sums and positions."""
        with called_column(self.name):
            self._sums = self._column.squares(self._moments.grid)
            if self._shares:
                self._positions = self._column.positions(self._line)

    def draw(self, keys: ChargedKeys) -> None:
        assert self._sums is not None
        parts = keys.reads(self._moments.exact(self._sums), self._noise.plan)
        drawn = integer_noise(self._noise.plan, keys.take(), len(parts)).tolist()
        self._noisy = [part + draw for part, draw in zip(parts, drawn, strict=True)]
        if self._positions is not None:
            line = NumberLine(max(self._line.last.bit_length(), 1), 0, self._line.last)
            positions = keys.reads(self._positions, RECORDS)
            self._chosen = self._quantiles.release(line, positions, keys, lambda done, total, what: None)
            self._positions = None

    def summary(self, guarantee: Guarantee) -> ColumnSummary:
        """What was drawn, as it is shown."""
        count, mean, std = self._moments.estimates(self._noisy, self._noise)
        values = {"count": count.value, "mean": mean.value, "std": std.value}
        deviations = {"count": count.deviation, "mean": mean.deviation, "std": std.deviation}
        for share, position in zip(self._shares, self._chosen, strict=True):
            row = f"{float(100 * share):.6g}%"
            values[row] = self._line.value(Fraction(position))
            levels = len(self._shares).bit_length()
            deviations[row] = halving_error(self._quantiles.epsilon / levels, levels, self._neighbors)
        return ColumnSummary(self.name, values, deviations, guarantee)


@lru_cache(256)
def _epsilon_at(private: bool, n: int | None, shares: tuple[Fraction, ...], rho: float, neighbors: Neighbors) -> float:
    """The largest epsilon, or nearly, of quantiles that cost at most this rho."""

    def fits(epsilon: float) -> bool:
        quantiles = ManyQuantiles.of(shares, epsilon, 0.0, neighbors, private_size=private)
        return quantiles.guarantee(n or 0).to_zcdp().rho <= rho

    return greatest_float(fits, guess=sqrt(8 * rho), tolerance=1e-6)


class LabelsToDescribe:
    """A column of categories."""

    def __init__(self, name: str | int, rows: Rows, labels: Any, missing: Any, neighbors: Neighbors) -> None:
        self.name, self._rows, self._neighbors = name, rows, neighbors
        self._skips = parameters.missing(missing) == "skip"
        self._domain = Domain({str(name): labels})
        found = self._domain.labels[0]
        if found is None:
            raise ValueError(f"categories: column {shown(name)}: must have a list of labels")
        self._coder = KeyCoder(found)
        self.prices: list[Price] = []
        self._counts: NDArray[np.int64] | None = None
        self._noise: CalibratedNoise | None = None

    @property
    def _moved(self) -> int:
        return 1 if self._neighbors == "add-remove" else 2

    @property
    def errors(self) -> list[Errors]:
        """Of a count."""
        return [Errors(_ROOT_TWO * self._moved, sqrt(self._moved / 2))]

    def set_prices(self, prices: Sequence[Price]) -> None:
        """What the counts may cost."""
        self.prices = [*prices]
        self._noise = noise_at(self._domain.size, self._moved, self._moved, prices[0], self._neighbors)

    @property
    def guarantee(self) -> Guarantee:
        """Of the counts."""
        assert self._noise is not None
        return self._noise.guarantee

    def read(self) -> None:
        """How often each label occurs."""
        coder, size, name, skips = self._coder, self._domain.size, self.name, self._skips

        def statistic(block: Block) -> NDArray[np.int64]:
            codes = coder(block.entries(0), block.coded(0))
            counts = np.bincount(codes - NOWHERE, minlength=size + 1)
            if counts[0] and not skips:
                raise DomainError(
                    f"column {shown(name)}: must hold the labels that are listed only; there are others, or missing "
                    "entries: pass missing='skip' to leave them out"
                )
            return counts[1:]

        self._counts = self._rows.total(statistic)

    def draw(self, keys: ChargedKeys) -> None:
        assert self._noise is not None
        assert self._counts is not None
        self._counts = keys.reads(self._counts, self._noise.plan)
        add_noise(self._noise.plan, None, keys.take(), self._counts, self._counts)

    def counts(self, guarantee: Guarantee) -> Counts:
        """What was drawn."""
        assert self._noise is not None
        assert self._counts is not None
        return Counts(self._counts, self._domain, deviation_of(self._noise), guarantee)
