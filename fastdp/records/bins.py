"""Columns of numbers cut into bins at public edges: an attribute of a domain, and what release_ranges counts in.

The search for the bin of a value is exact at every edge, whatever the types of values and edges: bins.md has the proof,
bin_search.py the search. Edges that are bought with private quantiles are made by ../mechanisms/bin_edges.py.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from math import floor, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.keys import Randomness
from ..support import extensions
from ..support.boundary import boundary
from ..support.checks import MAX_INT64, flag, integer, plain_integer
from ..support.columns import Entries, as_compiled, missing_entries
from ..support.errors import DomainError
from ..support.frozen import Frozen, frozen
from ..support.parameters import Outside
from ..support.progress import Progress
from ..support.public_paths import public_as
from ..support.shown import shown
from ..support.threads import run_chunks
from .bin_edges import INSTANT, checked_edges, is_open, middles_of, numbers_within
from .bin_search import Search, search_of_floats, search_of_integers
from .outside_domain import is_missing

_CHUNK = 2**16  # values that a thread codes at a time


@public_as("fastdp")
class Bins(Accounted, Frozen):
    """The values of a column of numbers as bins between public edges: an attribute of a `Domain`.

    A bin has its lower edge and not its upper one, but for the last bin, which has both, as in `numpy.histogram`. With
    `edges=range(0, 101)` a column of integers 0 .. 99 has a bin for each. Edges may begin with -inf and end with inf;
    no number is outside then. The least and the largest integer of 64 bits are such ends of integers: what they bound
    has no middle. A value is compared with the edges exactly, whatever the two types are.

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
        A number for each bin, in its middle (of unit bins of integers the integer itself; of a bin without an end the
        number next to its other edge); what sampled records have. None for the bin of missing entries.
    guarantee : Guarantee or None
        What buying the edges guarantees; None for edges that were given.

    Raises
    ------
    ValueError
        "edges[3]: must be above edges[2]: edges are in increasing order", and other messages about edges.

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

    guarantee: Guarantee | None

    def __init__(self, edges: Any, *, missing: bool = False) -> None:
        self._take(edges, missing, None)

    def _take(self, edges: Any, missing: bool, guarantee: Guarantee | None) -> None:
        array = checked_edges(edges)
        self.edges = frozen(array)
        self.missing, self.guarantee = flag("missing", missing), guarantee
        self.size = array.size - 1 + self.missing
        self.labels = (*middles_of(array), *[None] * self.missing)

    @classmethod
    @boundary
    def quantiles(
        cls,
        values: Any,
        bins: int,
        *,
        epsilon: float,
        delta: float = 0.0,
        low: Any = None,
        high: Any = None,
        missing: bool = False,
        domain_bits: int | None = None,
        signed: bool | None = None,
        outside: Outside = "raise",
        progress: Progress = None,
        rng: Randomness | None = None,
        budget: Budget | None = None,
        neighbors: Neighbors = "replace-one",
    ) -> Bins:
        """Buy edges that cut a column into bins of about equal numbers, with `fastdp.quantiles`.

        A value that many records have gets a bin of its own.

        Parameters
        ----------
        values : array_like of int or float
            One column of numbers, as `quantiles` takes it. A missing entry or NaN is an error, unless it has a bin.
        bins : int
            How many bins, from 2 on; there are others where many values are equal.
        epsilon : float > 0
            The epsilon of the edges.
        delta : float in [0, 1)
            The delta of the edges; 0 for pure differential privacy.
        low, high : int or float, optional
            The first and the last edge, public; None for -inf and inf, or for the ends of the integers of 64 bits. Then
            labels and quantiles of the first and the last bin are next to their inner edges: where ends are known,
            state them.
        missing : bool
            Whether missing entries, and NaN, have a bin of their own. Edges then are quantiles of the other values,
            whose number is private under either relation.
        domain_bits : int, optional
            The domain of the values, as `quantiles` takes it.
        signed : bool, optional
            Whether integers are signed, as `quantiles` takes it.
        outside : {"raise", "clip"}
            Values outside the domain of `domain_bits`: a DomainError, or the nearest end.
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
        Bins
            What was paid for them is `.guarantee`.

        Examples
        --------
        >>> import numpy as np
        >>> from fastdp import Bins
        >>> incomes = np.random.default_rng(0).lognormal(10, 1, size=10_000)
        >>> bins = Bins.quantiles(incomes, 4, low=0.0, epsilon=1.0)
        >>> bins.size, str(bins.guarantee).partition(" ")[0]
        (4, '1-DP')
        """
        missing = flag("missing", missing)
        buy = extensions.load("bins", "quantiles").buy_edges
        edges, guarantee = buy(
            values, bins, low, high, skip_missing=missing, epsilon=epsilon, delta=delta, domain_bits=domain_bits,
            signed=signed, outside=outside, progress=progress, rng=rng, budget=budget, neighbors=neighbors,
        )  # fmt: skip
        made = cls.__new__(cls)
        made._take(edges, missing, guarantee)
        return made

    # --- values

    @property
    def ends(self) -> tuple[Any, Any]:
        """The first and the last edge, as Python's numbers or dates."""
        return self.edges[0].item(), self.edges[-1].item()

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
            From the lower edge on, and below the upper one; in a bin without an end its finite edge, or the integer
            that is nearest to it.
        """
        code = integer("code", code, least=0, most=self.edges.size - 2)
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            raise ValueError(f"share={shown(share)}: must be in [0, 1]")
        low, high = self.edges[code].item(), self.edges[code + 1].item()
        if self.edges.dtype == np.float64:
            if high - low < inf:
                return low + share * (high - low)
            return low if high == inf and low > -inf else high if low == -inf and high < inf else self.labels[code]
        if is_open(low, high, self.edges.dtype):
            return self.labels[code]
        if self._dated:
            return low + share * (high - low)
        return min(low + floor(share * (high - low)), high - 1)

    def _place(self, number: Any) -> int:
        """The bin of a number, or of the edge that is nearest to it."""
        return bisect_right(self._line, number, 1, self.edges.size - 1, key=_plain) - 1

    @property
    def _line(self) -> NDArray[Any]:
        """The edges as numbers: instants in microseconds."""
        return self.edges.view(np.int64) if self._dated else self.edges

    @property
    def _limits(self) -> tuple[Any, Any]:
        """The first and the last edge, as numbers."""
        return self._line[0].item(), self._line[-1].item()

    def _number(self, name: str, value: Any) -> Any:
        if self._dated:
            if isinstance(value, np.datetime64 | date) and not is_missing(value):
                with suppress(Exception):  # of a class that is not ours
                    return _instant(value)
        elif (number := plain_integer(value)) is not None:
            return number
        elif isinstance(value, float | np.floating):
            plain = float.__float__(value) if isinstance(value, float) else float(value)
            if plain == plain:
                return plain
        raise ValueError(f"{name}={shown(value)}: must be {self._rule}")

    @property
    def _rule(self) -> str:
        low, high = self.ends
        what = "a date" if self.edges.dtype == INSTANT else "a number"
        return f"{what} from {low} to {high}" + (", or None" if self.missing else "")

    # --- columns

    def _encode_into(self, name: str, values: NDArray[Any], outside: Outside, out: NDArray[Any]) -> None:
        from ..kernels.bins import find_float_bins_into, find_integer_bins_into
        from ..kernels.number_line import NAN

        places = np.empty(values.size, np.uint32)
        if (values.dtype.kind == "M") != (self.edges.dtype == INSTANT):
            raise ValueError(f"column {name!r}: dtype {values.dtype}: must be {'dates' if self._dated else 'numbers'}")
        if values.dtype.kind == "f":
            search = self.search_of_floats
            array: NDArray[Any] = np.ascontiguousarray(values, np.float64)
            beyond = find_float_bins_into(as_compiled(array), *search[:5], places)
        else:
            search, array = self._of_integers, _as_integers(name, values)
            beyond = find_integer_bins_into(as_compiled(array), *search[:5], places)
        flags_allowed(self, name, beyond, outside)
        np.minimum(places + np.uint32(search.before), self.edges.size - 2, out=out, casting="unsafe")
        if beyond & NAN:
            out[np.isnan(array)] = self.size - 1 if self.missing else 0

    def _encode_objects(self, name: str, values: NDArray[Any], outside: Outside) -> NDArray[np.int64]:
        """One by one: Python's integers, floats and dates, of any size, and missing entries."""
        codes = np.empty(values.size, np.int64)
        low, high = self._limits
        for i, value in enumerate(values.tolist()):
            try:
                number = self._number(name, _as_number(value))
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
        return self.edges.dtype == INSTANT

    @cached_property
    def _of_integers(self) -> Search:
        return search_of_integers(self.edges)

    @cached_property
    def search_of_floats(self) -> Search:
        """The edges as floats are searched."""
        return search_of_floats(self.edges)

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
        return {"edges": np.array(self.edges), "missing": self.missing, "guarantee": self.guarantee}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._take(**state)

    def __repr__(self) -> str:
        edges = self.edges.astype(str).tolist() if self._dated else self.edges.tolist()
        if self.edges.dtype == np.int64 and len(edges) > 2 and edges[-1] - edges[0] == len(edges) - 1:
            text = repr(range(edges[0], edges[-1] + 1))
        elif len(edges) > 8:
            text = f"<{len(edges):,} edges from {edges[0]} to {edges[-1]}>"
        else:
            text = repr(edges)
        bought = "" if self.guarantee is None else f", guarantee=<{self.guarantee}>"
        return f"Bins({text}{', missing=True' * self.missing}{bought})"


def flags_allowed(bins: Bins, name: str, flags: int, outside: Outside) -> None:
    """DomainError if what a kernel has met is outside, unless it is to be clipped."""
    from ..kernels.number_line import BEYOND, NAN

    if flags & BEYOND and outside == "raise":
        raise bins._beyond(name)
    if flags & NAN and not bins.missing and outside == "raise":
        raise _lacks_bin(name)


def code_in_bins(bins: Bins, name: str, value: Any) -> int:
    """The code of the bin that holds a number, or of the bin of missing entries for None; `name` is what errors say."""
    if bins.missing and value is None:
        return bins.size - 1
    place = bins._number(name, value)
    low, high = bins._limits
    if not low <= place <= high:
        raise ValueError(f"{name}={shown(value)}: must be {bins._rule}")
    return bins._place(place)


def span_in_bins(bins: Bins, low: Any, high: Any, of: str = "") -> tuple[int, int]:
    """The first and the last bin that meet the numbers from low to high; beyond the edges these are the nearest."""
    least, most = bins._number(f"{of}low", low), bins._number(f"{of}high", high)
    if least > most:
        raise ValueError(f"low={shown(low)}: must not come after high={shown(high)}")
    first, last = bins._limits
    if least > last or most < first:
        raise ValueError(f"low={shown(low)}, high={shown(high)}: one of them must be {bins._rule}")
    return bins._place(least), bins._place(most)


def end_in_bins(bins: Bins, name: str, high: Any) -> int:
    """The last bin of the numbers up to `high`: the bin that holds it; -1 below the first edge."""
    most = bins._number(name, high)
    return -1 if most < bins._limits[0] else bins._place(most)


def spread_in_bins(bins: Bins, codes: NDArray[Any], words: NDArray[np.uint64]) -> NDArray[Any]:
    """Numbers of these bins, each spread evenly over its bin by a uniform word; None of missing entries, dates and all
    that is beside None as objects."""
    gaps = codes == bins.edges.size - 1
    numbers = numbers_within(bins.edges, np.where(gaps, 0, codes), words)
    if numbers.dtype == INSTANT or gaps.any():
        numbers = numbers.astype(object)
        numbers[gaps] = None
    return numbers


def codes_in_bins(bins: Bins, name: str, entries: Entries, outside: Outside, dtype: Any) -> NDArray[Any]:
    """The bins of the entries of a column, as codes of this type; DomainError for entries outside, unless clipped."""
    values, missing, _ = entries
    if missing is not None and missing.any():
        if not bins.missing and outside == "raise":
            raise _lacks_bin(name)
        kept = values[~missing]
        codes = np.full(values.size, bins.size - 1 if bins.missing else 0, dtype)
        codes[~missing] = codes_in_bins(bins, name, Entries(kept, None, name), outside, dtype)
        return codes
    if values.dtype.kind == "O":
        return bins._encode_objects(name, values, outside).astype(dtype)
    if values.dtype == np.uint64 and (large := values > np.uint64(MAX_INT64)).any():  # a few, if at all
        codes = np.empty(values.size, dtype)
        codes[large] = bins._encode_objects(name, values[large].astype(object), outside)
        codes[~large] = codes_in_bins(bins, name, Entries(values[~large], None, name), outside, dtype)
        return codes
    out = np.empty(values.size, dtype)
    run_chunks(lambda i, j: bins._encode_into(name, values[i:j], outside, out[i:j]), values.size, _CHUNK)
    return out


def _plain(edge: Any) -> Any:
    return edge.item()


def _as_number(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return int(value)
    return float(value) if isinstance(value, Decimal) else value


def _lacks_bin(name: str) -> DomainError:
    return DomainError(f"{missing_entries(f'column {name!r}')}; or have Bins(edges, missing=True), or outside='clip'")


def _as_integers(name: str, values: NDArray[Any]) -> NDArray[np.int64]:
    """Values of any integer type below 2^63, or instants."""
    if values.dtype.kind == "M":
        values = _instants(values)
    if values.dtype.kind not in "biu":
        raise ValueError(f"column {name!r}: dtype {values.dtype}: must be numbers")
    return np.ascontiguousarray(values, np.int64)


_COARSE = ("Y", "M", "W", "D", "h", "m", "s", "ms")  # units of which 64 bits hold more than microseconds do


def _instants(values: NDArray[Any]) -> NDArray[np.int64]:
    """Dates as microseconds since 1970, rounded down; the largest or the least int64 for those that are beyond it."""
    found = values.astype(INSTANT)
    whole = found.view(np.int64)
    if np.datetime_data(values.dtype)[0] in _COARSE and (lost := found.astype(values.dtype) != values).any():
        whole[lost] = np.where(values[lost].astype(np.int64) > 0, MAX_INT64, -MAX_INT64)
    return whole


def _instant(value: Any) -> int:
    """The same of one date, of any class; a time with a zone as what it is in UTC."""
    if not isinstance(value, datetime) or (apart := value.utcoffset()) is None:
        return int(_instants(np.array([value], None if isinstance(value, np.datetime64) else INSTANT))[0])
    return _instant(value.replace(tzinfo=None)) - apart // timedelta(microseconds=1)
