"""What statistics return: a number or counts, with the noise that is in them and what they guarantee."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.accounted import Accounted
from ..privacy.guarantees import Guarantee
from ..records.domain import Domain
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines


def pandas_library() -> Any:
    """pandas, for who asks for a frame."""
    try:
        return import_module("pandas")
    except ImportError:
        raise ImportError("to_frame needs pandas: pip install pandas") from None


@public_as("fastdp.statistics")
@dataclass(frozen=True, eq=False, repr=False)
class Number(Accounted, Displayed):
    """A private number; `float()`, `int()` and `np.asarray()` convert it.

    Attributes
    ----------
    value : int or float
        The number; an int where it counts records or sums integers.
    deviation : float
        The standard deviation of its noise. Of means whose number of records is private, and of variances, as the
        released numbers state it.
    guarantee : Guarantee
        Of the release.
    """

    value: int | float
    deviation: float
    guarantee: Guarantee
    statistic: str = field(default="number", repr=False)

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __round__(self, digits: int | None = None) -> int | float:
        return round(self.value, digits)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.value, dtype)

    def __format__(self, specification: str) -> str:
        return format(self.value, specification) if specification else str(self)

    def _display(self) -> DisplayLines:
        shown = f"{self.value:,}" if isinstance(self.value, int) else f"{self.value:.6g}"
        return [
            (self.statistic, shown),
            ("deviation", f"{self.deviation:.4g}"),
            ("guarantee", str(self.guarantee)),
        ]


@public_as("fastdp.statistics")
@dataclass(frozen=True, eq=False, repr=False)
class Counts(Accounted, Displayed):
    """Private counts of the cells of one column or two; `np.asarray()` converts them.

    Attributes
    ----------
    counts : numpy.ndarray of int64
        The noisy count of each cell, with an axis for each column. Noise is not cut off: a count may be below 0.
    domain : Domain
        The columns and the values, or bins, of each.
    deviation : float
        The standard deviation of the noise of each count.
    guarantee : Guarantee
        Of the release.
    """

    counts: NDArray[np.int64]
    domain: Domain
    deviation: float
    guarantee: Guarantee

    def __post_init__(self) -> None:
        self.counts.flags.writeable = False

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.counts, dtype) if copy or dtype is not None else self.counts

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, place: Any) -> Any:
        try:
            return self.counts[place]
        except (OverflowError, ValueError):
            raise IndexError("place: must be a place in the counts, as numpy takes it") from None

    @property
    def edges(self) -> Any:
        """The edges of the bins of a column, or of both: None where its values are listed."""
        each = tuple(None if bins is None else bins.edges for bins in self.domain.bins)
        return each[0] if len(each) == 1 else each

    def to_frame(self) -> Any:
        """The counts as a pandas DataFrame: a row for each cell, with its label or the interval of its bin."""
        pandas = pandas_library()
        places = np.indices(self.counts.shape).reshape(self.counts.ndim, -1)
        frame: dict[str, Any] = {}
        for j, (name, bins) in enumerate(zip(self.domain.names, self.domain.bins, strict=True)):
            if bins is None:
                frame[name] = self.domain.decode_column(j, places[j])
            else:
                intervals = pandas.IntervalIndex.from_breaks(bins.edges, closed="left")
                listed = [*intervals, np.nan]  # the place after the last interval is of missing entries
                frame[name] = [listed[place] for place in places[j].tolist()]
        return pandas.DataFrame({**frame, "count": self.counts.ravel()})

    def _display(self) -> DisplayLines:
        each = zip(self.domain.names, self.domain.sizes, strict=True)
        return [
            ("columns", ", ".join(f"{name}, {size:,} cells" for name, size in each)),
            ("counts", np.array2string(self.counts, threshold=8, edgeitems=3)),
            ("deviation", f"{self.deviation:.4g}"),
            ("guarantee", str(self.guarantee)),
        ]
