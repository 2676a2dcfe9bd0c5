"""Columns of numbers cut into bins at public edges: an attribute of a domain, and what release_ranges counts in.

The search for the bin of a value is exact at every edge, whatever the types of values and edges: bins.md has the proof.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import date
from functools import cached_property
from math import ceil, floor, inf, nextafter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..support.checks import MAX_INT64, flag, plain_integer
from ..support.columns import Entries, as_compiled, missing_entries
from ..support.errors import DomainError
from ..support.frozen import Frozen, frozen
from ..support.parameters import MOST_BINS, Outside
from ..support.public_paths import public_as
from ..support.rounding import down, up
from ..support.shown import shown, type_of
from ..support.threads import run_chunks
from .outside_domain import is_missing

_CHUNK = 2**16  # values that a thread codes at a time
_LEAST_CELLS, _MOST_CELLS = 2**10, 2**20  # of the grid over the edges
_INSTANT = np.dtype("M8[us]")


class _Search(NamedTuple):
    """What kernels/bins.py takes: the edges in the type of the values, and the grid over them."""

    ends: NDArray[Any]
    step: Any  # `shift` of integers, `scale` of floats
    inner: NDArray[Any]
    starts: NDArray[np.uint32]
    steps: int
    before: int  # inner edges below every value of the type


@public_as("fastdp")
class Bins(Frozen):
    """The values of a column of numbers as bins between public edges: an attribute of a `Domain`.

    A bin has its lower edge and not its upper one, but for the last bin, which has both, as in `numpy.histogram`. With
    `edges=range(0, 101)` a column of integers 0 .. 99 has a bin for each. Edges may begin with -inf and end with inf;
    no number is outside then. A value is compared with the edges exactly, whatever the two types are.

    Where a function asks for a value of the attribute, a number stands for the bin that holds it: in
    `Range("age", 18, 64)` the bins of 18 and of 64 count whole. Missing entries and NaN are in the bin `None`, where
    there is one; otherwise they are outside of the domain. Under outside="clip" numbers beyond the edges are in the
    first or the last bin, and what is no number is in the bin None, or else in the first.

    Parameters
    ----------
    edges : array_like
        2 to 2^20 + 1 numbers in increasing order, or dates and times. Public: must not be read off the records.
    missing : bool
        Whether missing entries have a bin of their own, the last: its label is None.

    Attributes
    ----------
    edges : numpy.ndarray
        The edges: int64, float64, or datetime64 in microseconds.
    missing : bool
        Whether missing entries have a bin of their own.
    size : int
        How many bins there are, that of missing entries included.
    labels : tuple
        A number for each bin, in its middle (of unit bins of integers the integer itself); what sampled records have.
        None for the bin of missing entries.

    Raises
    ------
    ValueError
        "edges: must be in increasing order", and other messages about edges.

    Examples
    --------
    >>> from fastdp import Bins, Domain, Range
    >>> age = Bins([0, 18, 65, 120], missing=True)
    >>> age.labels
    (8, 41, 92, None)
    >>> domain = Domain(age=age, income=Bins(range(0, 100_001, 1000)))
    >>> domain.sizes
    (4, 100)
    >>> domain.encode_column(0, [17.9, 18, 120, float("nan")])
    array([0, 1, 2, 3], dtype=uint8)
    >>> adults = Range("age", 18, 120)
    """

    edges: NDArray[Any]
    missing: bool
    size: int
    labels: tuple[Any, ...]

    def __init__(self, edges: Any, *, missing: bool = False) -> None:
        array = _edges_of(edges)
        self.edges = frozen(array)
        self.missing = flag("missing", missing)
        self.size = array.size - 1 + self.missing
        self.labels = (*_middles(array), *[None] * self.missing)

    # --- values

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first and the last edge, as Python's numbers or dates."""
        return self.edges[0].item(), self.edges[-1].item()

    def code(self, name: str, value: Any) -> int:
        """The code of the bin that holds a number, or of the bin of missing entries for None.

        Parameters
        ----------
        name : str
            What errors call the attribute.
        value : int or float
            A number, a date or time where edges are; None for missing entries.

        Returns
        -------
        int
            The place of the bin.

        Raises
        ------
        ValueError
            "age=130: must be a number from 0 to 120".
        """
        if self.missing and value is None:
            return self.size - 1
        place = self._number(name, value)
        low, high = self.ends
        if not low <= place <= high:
            raise ValueError(f"{name}={shown(value)}: must be {self._rule}")
        return self._place(place)

    def span(self, name: str, low: Any, high: Any) -> tuple[int, int]:
        """The first and the last bin that meet the numbers from low to high, both included.

        Parameters
        ----------
        name : str
            What errors call the attribute.
        low, high : int or float
            Numbers; beyond the edges they stand for the nearest one.

        Returns
        -------
        tuple of int
            The codes of the two bins.
        """
        least, most = self._number(name, low), self._number(name, high)
        if least > most:
            raise ValueError(f"low={shown(low)}: must not come after high={shown(high)}")
        first, last = self.ends
        if least > last or most < first:
            raise ValueError(f"low={shown(low)}, high={shown(high)}: one of them must be {self._rule}")
        return self._place(least), self._place(most)

    def end(self, name: str, high: Any) -> int:
        """The last bin of the numbers up to `high`: the bin that holds it; -1 below the first edge.

        Parameters
        ----------
        name : str
            What errors call the attribute.
        high : int or float
            A number; beyond the last edge it stands for that.

        Returns
        -------
        int
            The code of the bin, or -1.
        """
        most = self._number(name, high)
        return -1 if most < self.ends[0] else self._place(most)

    def within(self, code: int, share: float) -> Any:
        """The number that has a share of a bin below it, if values are spread evenly.

        Parameters
        ----------
        code : int
            The bin.
        share : float in [0, 1]
            How much of it.

        Returns
        -------
        int, float or datetime
            From the lower edge on, and below the upper one; in a bin without an end its finite edge.
        """
        low, high = self.edges[code].item(), self.edges[code + 1].item()
        if self.edges.dtype == np.float64:
            if high - low < inf:
                return low + share * (high - low)
            return low if high == inf and low > -inf else high if low == -inf and high < inf else self.labels[code]
        if self._dated:
            return low + share * (high - low)
        return min(low + floor(share * (high - low)), high - 1)

    def _place(self, number: Any) -> int:
        """The bin of a number, or of the edge that is nearest to it."""
        return bisect_right(self.edges, number, 1, self.edges.size - 1, key=_plain) - 1

    def _number(self, name: str, value: Any) -> Any:
        if self.edges.dtype == _INSTANT:
            if isinstance(value, np.datetime64 | date) and not is_missing(value):
                return np.array(value, _INSTANT).item()
        elif (number := plain_integer(value)) is not None:
            return number
        elif isinstance(value, float | np.floating) and value == value:
            return float(value)
        raise ValueError(f"{name}={shown(value)}: must be {self._rule}")

    @property
    def _rule(self) -> str:
        low, high = self.ends
        what = "a date" if self.edges.dtype == _INSTANT else "a number"
        return f"{what} from {low} to {high}" + (", or None" if self.missing else "")

    # --- columns

    def encode(self, name: str, entries: Entries, outside: Outside, dtype: Any) -> NDArray[Any]:
        """Find the bins of the entries of a column.

        Parameters
        ----------
        name : str
            What errors call the column.
        entries : Entries
            The entries, and which are missing.
        outside : {"raise", "clip"}
            What becomes of entries outside.
        dtype : numpy.dtype
            An unsigned type that holds all codes.

        Returns
        -------
        numpy.ndarray
            The codes.
        """
        values, missing, _ = entries
        if missing is not None and missing.any():
            if not self.missing and outside == "raise":
                raise _lacks_bin(name)
            kept = values[~missing]
            codes = np.full(values.size, self.size - 1 if self.missing else 0, dtype)
            codes[~missing] = self.encode(name, Entries(kept, None, name), outside, dtype)
            return codes
        if values.dtype.kind == "O":
            return self._encode_objects(name, values, outside).astype(dtype)
        if values.dtype == np.uint64 and (large := values > np.uint64(MAX_INT64)).any():  # a few, if at all
            codes = np.empty(values.size, dtype)
            codes[large] = self._encode_objects(name, values[large].astype(object), outside)
            codes[~large] = self.encode(name, Entries(values[~large], None, name), outside, dtype)
            return codes
        out = np.empty(values.size, dtype)
        run_chunks(lambda i, j: self._encode_into(name, values[i:j], outside, out[i:j]), values.size, _CHUNK)
        return out

    def _encode_into(self, name: str, values: NDArray[Any], outside: Outside, out: NDArray[Any]) -> None:
        from ..kernels.bins import find_float_bins_into, find_integer_bins_into
        from ..kernels.number_line import BEYOND, NAN

        places = np.empty(values.size, np.uint32)
        if (values.dtype.kind == "M") != (self.edges.dtype == _INSTANT):
            raise ValueError(f"column {name!r}: dtype {values.dtype}: must be {'dates' if self._dated else 'numbers'}")
        if values.dtype.kind == "f":
            search = self._of_floats
            array: NDArray[Any] = np.ascontiguousarray(values, np.float64)
            beyond = find_float_bins_into(as_compiled(array), *search[:5], places)
        else:
            search, array = self._of_integers, _as_integers(name, values)
            beyond = find_integer_bins_into(as_compiled(array), *search[:5], places)
        if beyond & BEYOND and outside == "raise":
            raise self._beyond(name)
        np.minimum(places + np.uint32(search.before), self.edges.size - 2, out=out, casting="unsafe")
        if beyond & NAN:
            if not self.missing and outside == "raise":
                raise _lacks_bin(name)
            out[np.isnan(array)] = self.size - 1 if self.missing else 0

    def _encode_objects(self, name: str, values: NDArray[Any], outside: Outside) -> NDArray[np.int64]:
        """One by one: Python's integers, floats and dates, of any size, and missing entries."""
        codes = np.empty(values.size, np.int64)
        low, high = self.ends
        for i, value in enumerate(values.tolist()):
            try:
                number = self._number(name, int(value) if isinstance(value, bool | np.bool_) else value)
            except ValueError:
                if outside == "raise" and not is_missing(value):
                    raise DomainError(f"column {name!r}: must hold numbers only; there are others") from None
                if outside == "raise" and not self.missing:
                    raise _lacks_bin(name) from None
                codes[i] = self.size - 1 if self.missing else 0
                continue
            if outside == "raise" and not low <= number <= high:
                raise self._beyond(name)
            codes[i] = self._place(number)
        return codes

    def _beyond(self, name: str) -> DomainError:
        low, high = self.ends
        return DomainError(
            f"column {name!r}: must be from {low} to {high}, the first and the last edge; there are others: begin with "
            "-inf and end with inf, or pass outside='clip'"
        )

    @property
    def _dated(self) -> bool:
        return self.edges.dtype == _INSTANT

    @cached_property
    def _of_integers(self) -> _Search:
        """The search for values of int64: an edge e is at most v where ceil(e) is."""
        if self.edges.dtype.kind != "f":
            edges = self.edges.view(np.int64)
            first, last, inner, before = int(edges[0]), int(edges[-1]), edges[1:-1], 0
        else:
            first, last = _integer_ends(float(self.edges[0]), float(self.edges[-1]))
            whole = [ceil(edge) for edge in self.edges[1:-1].tolist()]
            before = sum(edge < -MAX_INT64 - 1 for edge in whole)  # such an edge is at most as large as every value
            inner = np.array([edge for edge in whole if -MAX_INT64 - 1 <= edge <= MAX_INT64], np.int64)
        low, high = (int(inner[0]), int(inner[-1])) if inner.size else (0, 0)
        cells = _cells(inner.size)
        shift = max(0, (high - low).bit_length() - cells.bit_length() + 1)
        above = inner.view(np.uint64) - np.array([low], np.int64).view(np.uint64)
        numbers = (above >> np.uint64(shift)).astype(np.int64)
        ends = frozen(np.array([first, last, low, high], np.int64))
        return _Search(ends, shift, *_starts(inner, numbers, cells, MAX_INT64), before)

    @cached_property
    def _of_floats(self) -> _Search:
        """The search for values of float64: an edge e is at most v where the least float >= e is."""
        if self.edges.dtype.kind == "f":
            edges = self.edges
            last = float(edges[-1])
        else:
            edges = np.array([up(edge) for edge in self.edges.tolist()])
            last = down(self.edges[-1].item())
        inner = np.array(edges[1:-1])
        low, high, scale, cells = 0.0, 0.0, 0.0, _cells(inner.size)
        if inner.size:
            with np.errstate(all="ignore"):
                scale = float((cells - 1) / (inner[-1] - inner[0]))
            if 0 < scale < inf:
                low, high = float(inner[0]), float(inner[-1])
            else:  # one inner edge, or some too far apart or too close: all in one cell
                scale = 0.0
        numbers = ((np.clip(inner, low, high) - low) * scale).astype(np.int64)
        ends = frozen(np.array([float(edges[0]), last, low, high]))
        return _Search(ends, scale, *_starts(inner, numbers, cells, inf), 0)

    # --- as an object

    def __len__(self) -> int:
        """How many bins there are, that of missing entries included."""
        return self.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Bins):
            return NotImplemented
        return self.missing == other.missing and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.missing, self._key()))

    def _key(self) -> tuple[str, bytes]:
        return self.edges.dtype.str, self.edges.tobytes()

    def __getstate__(self) -> dict[str, Any]:
        return {"edges": np.array(self.edges), "missing": self.missing}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        edges = self.edges.astype(str).tolist() if self._dated else self.edges.tolist()
        run = range(edges[0], edges[-1] + 1) if self.edges.dtype == np.int64 and len(edges) > 2 else []
        if len(run) == len(edges):
            text = repr(run)
        elif len(edges) > 8:
            text = f"<{len(edges):,} edges from {edges[0]} to {edges[-1]}>"
        else:
            text = repr(edges)
        return f"Bins({text}{', missing=True' * self.missing})"


def _plain(edge: Any) -> Any:
    return edge.item()


def _lacks_bin(name: str) -> DomainError:
    return DomainError(f"{missing_entries(f'column {name!r}')}; or have Bins(edges, missing=True), or outside='clip'")


def _as_integers(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Values of any integer type below 2^63, or instants."""
    if values.dtype.kind == "M":
        values = values.astype(_INSTANT).view(np.int64)
    if values.dtype.kind not in "biu":
        raise ValueError(f"column {name!r}: dtype {values.dtype}: must be numbers")
    return np.ascontiguousarray(values, np.int64)


def _edges_of(edges: Any) -> NDArray[Any]:
    """Edges as int64, float64 or instants, checked."""
    rule = f"2 to {MOST_BINS + 1:,} numbers in increasing order"
    if isinstance(edges, str | bytes) or not (isinstance(edges, Iterable) or hasattr(edges, "__array__")):
        raise ValueError(f"edges={shown(edges)}: must be {rule}")
    try:
        if len(edges) > MOST_BINS + 1:
            raise ValueError(f"edges: {len(edges):,}: must be {rule}")
        array = np.asarray(edges)
    except (TypeError, OverflowError):
        raise ValueError(f"edges: type {type_of(edges)}: must be {rule}") from None
    if array.ndim != 1 or not 2 <= array.size <= MOST_BINS + 1:
        raise ValueError(f"edges: shape {array.shape}: must be {rule}")
    if array.dtype.kind == "O" and all(isinstance(edge, date) for edge in array.tolist()):
        array = array.astype(_INSTANT)
    if array.dtype.kind == "M":
        array = array.astype(_INSTANT)
        if not all(isinstance(array[at].item(), date) for at in (0, -1)) or np.isnat(array).any():
            raise ValueError("edges: must be dates of the years 1 to 9999, not NaT")
    elif array.dtype.kind == "f" and array.dtype.itemsize <= 8 and not _rounds_integers(edges):
        array = array.astype(np.float64) + 0.0  # -0.0 is 0.0
        if np.isnan(array).any():
            raise ValueError("edges: must not be NaN")
    elif array.dtype.kind in "iu" and int(array.max()) <= MAX_INT64:
        array = array.astype(np.int64)
    else:
        raise ValueError(f"edges: dtype {array.dtype}: must be {rule}, integers below 2^63 or floats")
    falls = np.flatnonzero(~(array[1:] > array[:-1]))
    if falls.size:
        at = int(falls[0])
        raise ValueError(f"edges[{at + 1}]={array[at + 1]}: must be in increasing order, above edges[{at}]={array[at]}")
    return array


def _rounds_integers(edges: Any) -> bool:
    """Whether a list has integers that a float may not hold."""
    return isinstance(edges, list | tuple) and any(abs(plain_integer(edge) or 0) > 2**53 for edge in edges)


def _middles(edges: NDArray[Any]) -> list[Any]:
    """A number inside each bin: of unit bins of integers the integer itself."""
    low, high = edges[:-1], edges[1:]
    if edges.dtype != np.float64:
        a, b = low.view(np.int64), high.view(np.int64)
        half = ((b.view(np.uint64) - a.view(np.uint64) - np.uint64(1)) >> np.uint64(1)).view(np.int64)
        between: list[Any] = (a + half).view(edges.dtype).tolist()
        return between
    with np.errstate(invalid="ignore"):
        middle = low / 2 + high / 2
    middle = np.where((middle >= low) & (middle < high), middle, low)
    middles: list[float] = np.where(np.isinf(high), low, middle).tolist()
    if middles[0] == -inf:
        middles[0] = nextafter(float(high[0]), -inf) if high[0] < inf else 0.0
    return middles


def _integer_ends(low: float, high: float) -> tuple[int, int]:
    """The least and the greatest integer of 64 bits from low to high; if there is none, the greatest comes first."""
    least = -MAX_INT64 - 1
    first = ceil(max(low, float(least))) if low < inf else MAX_INT64 + 1
    last = floor(min(high, 2.0**63)) if high > -inf else least - 1
    return (first, min(last, MAX_INT64)) if first <= MAX_INT64 and last >= least else (MAX_INT64, least)


def _cells(edges: int) -> int:
    """Of the grid: a power of two, four for each edge where that is not too many."""
    return min(max(_LEAST_CELLS, 1 << (4 * edges).bit_length()), _MOST_CELLS) if edges else 1


def _starts(
    inner: NDArray[Any], numbers: NDArray[np.int64], cells: int, last: Any
) -> tuple[NDArray[Any], NDArray[np.uint32], int]:
    """Edges with sentinels behind them, where the search in a cell begins, and how many steps it takes."""
    in_cell = np.bincount(numbers, minlength=cells)
    steps = int(in_cell.max(initial=0)).bit_length()
    starts = np.concatenate([[0], np.cumsum(in_cell)]).astype(np.uint32)
    padded = np.concatenate([inner, np.full(1 << steps, last, inner.dtype)])
    return frozen(padded), frozen(starts), steps
