"""Labels that nobody listed, with private counts and sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.accounted import Accounted
from ..privacy.guarantees import Guarantee
from ..support.columns import Array
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from .results import pandas_library

_SHOWN = 8


@dataclass(frozen=True, eq=False, repr=False)
class _Labelled:
    columns: dict[str, Array]
    counts: NDArray[np.int64] | NDArray[np.float64]
    deviation: float
    threshold: float
    guarantee: Guarantee

    def __post_init__(self) -> None:
        for each in (*self.columns.values(), *self._numbers().values()):
            each.flags.writeable = False

    def _numbers(self) -> dict[str, Array]:
        return {"count": self.counts}

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.labels)

    @property
    def labels(self) -> list[Any]:
        """The labels that are released; tuples where there are several columns."""
        columns = [each.tolist() if each.dtype.kind not in "mM" else list(each) for each in self.columns.values()]
        return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))

    @property
    def _main(self) -> Array:
        """The numbers that the release is about, one for each label."""
        return self.counts

    def to_dict(self) -> dict[Any, Any]:
        """The counts by label; of sums the sums."""
        return dict(zip(self.labels, self._main.tolist(), strict=True))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self._main, dtype) if copy or dtype is not None else self._main

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each label."""
        return pandas_library().DataFrame({**self.columns, **self._numbers()})

    def _lines(self, text: str) -> DisplayLines:
        more = f"\nand {len(self) - _SHOWN:,} more" if len(self) > _SHOWN else ""
        return [
            ("labels", f"{len(self):,} of {', '.join(map(str, self.columns))}"),
            ("counts", (text or "none") + more),
            ("deviation", f"{self.deviation:.4g}"),
            ("guarantee", str(self.guarantee)),
        ]


@public_as("fastdp.statistics")
@dataclass(frozen=True, eq=False, repr=False)
class LabelCounts(_Labelled, Accounted, Displayed):
    """Private counts of labels that nobody listed, the largest first.

    Attributes
    ----------
    columns : dict from str to numpy.ndarray
        The labels: an array for each column.
    counts : numpy.ndarray of int64
        The noisy count of each.
    deviation : float
        The standard deviation of the noise of each count, before those below the threshold were left out.
    threshold : float
        The least noisy count that is released.
    guarantee : Guarantee
        Of the release.
    """

    def _display(self) -> DisplayLines:
        some = zip(self.labels[:_SHOWN], self.counts[:_SHOWN].tolist(), strict=True)
        return self._lines("\n".join(f"{count:>12,}  {label}" for label, count in some))


@public_as("fastdp.statistics")
@dataclass(frozen=True, eq=False, repr=False)
class LabelSums(_Labelled, Accounted, Displayed):
    """Private sums, means and counts by labels that nobody listed, the label with the most records first.

    Attributes
    ----------
    columns : dict from str to numpy.ndarray
        The labels: an array for each column.
    counts : numpy.ndarray of float64
        The noisy number of records of each; no integer, as it comes of two sums.
    sums : numpy.ndarray of float64
        The noisy sum of each.
    means : numpy.ndarray of float64
        The noisy mean of each, between the bounds.
    deviation : float
        The standard deviation of the noise of each sum, before labels below the threshold were left out.
    threshold : float
        The least noisy count that is released.
    guarantee : Guarantee
        Of the release.
    """

    sums: NDArray[np.float64]
    means: NDArray[np.float64]

    def _numbers(self) -> dict[str, Array]:
        return {"count": self.counts, "sum": self.sums, "mean": self.means}

    @property
    def _main(self) -> Array:
        return self.sums

    def _display(self) -> DisplayLines:
        some = zip(self.labels[:_SHOWN], self.sums[:_SHOWN].tolist(), self.counts[:_SHOWN].tolist(), strict=True)
        return self._lines("\n".join(f"{total:>14,.6g} of {count:,.0f}  {label}" for label, total, count in some))
