"""The domain: attributes with finitely many values each, and the coding of records into it.

A record has one value of every attribute; a combination of values is a cell. Cells are numbered in C order, the last
attribute fastest, so an array over all cells is `array.reshape(domain.sizes)`. The number of cells may exceed 2^64:
only arrays over all cells must fit in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import integer, is_memory, items_of, plain_array, plain_integer
from ..support.columns import Coded, Entries, column_of
from ..support.errors import DomainError
from ..support.frozen import Frozen
from ..support.parameters import MOST_ATTRIBUTES, MOST_LABELS, Outside
from ..support.public_paths import public_as
from ..support.rounding import sixty_digits
from ..support.shown import described, shown
from .bins import Bins, code_in_bins, codes_in_bins
from .outside_domain import codes_in_range, codes_of_labels, distinct, is_missing

Codes = NDArray[Any]  # uint8, uint16 or uint32, whichever is the least that holds all values of an attribute

_MOST_VALUES = 2**31
_MOST_DISPLAYED = 12  # attributes, and labels of an attribute, in a repr
MOST_CELLS = 2**31  # of arrays over all cells


@public_as("fastdp")
class Domain(Frozen):
    """The values that records may have, for each attribute: how many, or which.

    `Domain(age=8, sex=2)` is of records that hold the codes 0 .. 7 and 0 .. 1; in
    `Domain(age=8, region=["north", "south"])` a region is given by its label; `Domain(age=Bins([0, 18, 65, 120]))` has
    a column of numbers, cut at public edges; `Domain.binary(20)` has twenty attributes v1 .. v20 of two values.

    Functions that read records take `outside`: "raise" a DomainError for records outside the domain, or "clip" them to
    the nearest code, or to the nearest label where labels are numbers in increasing order, such as age=range(18, 81).
    What has no nearest one (a missing entry, a NaN, an unknown label) then becomes None if that is a label, and
    otherwise the first value: a list may have the label None, which stands for missing entries of all kinds.

    Parameters
    ----------
    attributes : mapping from str to int, sequence or Bins, optional
        For each attribute its number of values, which are then the codes 0, 1, ..., or a list of labels, or bins of
        numbers. They are public: they must not be read off the records. As a mapping, for names that are no Python
        names.
    **more : int, sequence or Bins
        Attributes as keywords.

    Attributes
    ----------
    names : tuple of str
        The names of the attributes.
    sizes : tuple of int
        How many values each attribute has.
    labels : tuple
        For each attribute the tuple of its labels, or None where values are codes.
    bins : tuple
        For each attribute its Bins, or None where it has none.
    size : int
        How many cells there are: combinations of one value of each attribute.
    strides : tuple of int
        How many cells lie between two cells that differ by 1 in one attribute.

    Raises
    ------
    ValueError
        "attributes: must be at least one", and other messages about names and labels.

    Examples
    --------
    >>> from fastdp import Domain
    >>> domain = Domain(age=8, region=["north", "south"])
    >>> domain
    Domain(age=8, region=['north', 'south'])  # 16 cells
    >>> domain.size, domain.sizes
    (16, (8, 2))
    """

    __slots__ = ("__weakref__", "_codes", "_positions", "bins", "labels", "names", "size", "sizes")

    def __init__(
        self, attributes: Mapping[str, int | Sequence[Any] | Bins] | None = None, /, **more: int | Sequence[Any] | Bins
    ):
        if attributes is not None and not isinstance(attributes, Mapping):
            raise ValueError(
                f"attributes: type {type(attributes).__name__}: must be a mapping from names to numbers of values or "
                "labels, such as {'age': 8, 'region': ['north', 'south']}; they are public, so not taken from the data"
            )
        both: dict[Any, Any] = dict(attributes or {})
        for name, values in more.items():
            if name in both:
                raise ValueError(f"attributes: {shown(name)}: must be given once")
            both[name] = values
        if not 1 <= len(both) <= MOST_ATTRIBUTES:
            raise ValueError(f"attributes: must be at least one{f', at most {MOST_ATTRIBUTES:,}' if both else ''}")
        self.names: tuple[str, ...] = tuple(both)
        labels: list[tuple[Any, ...] | None] = []
        sizes: list[int] = []
        for name, values in both.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"attributes: {shown(name)}: names must be strings, not empty")
            size, of_values = _values(name, values)
            sizes.append(size)
            labels.append(of_values)
        self.sizes: tuple[int, ...] = tuple(sizes)
        self.labels: tuple[tuple[Any, ...] | None, ...] = tuple(labels)
        self.size: int = prod(self.sizes)
        self._positions = {name: position for position, name in enumerate(self.names)}
        self.bins: tuple[Bins | None, ...] = tuple(each if isinstance(each, Bins) else None for each in both.values())
        self._codes = [
            None if of is None or bins is not None else {label: code for code, label in enumerate(of)}
            for of, bins in zip(self.labels, self.bins, strict=True)
        ]

    @classmethod
    def binary(cls, d: int, *, prefix: str = "v") -> Domain:
        """The domain of d attributes of two values, 0 and 1.

        Parameters
        ----------
        d : int >= 1
            How many attributes.
        prefix : str
            What their names begin with: v1, v2, ... by default.

        Returns
        -------
        Domain
            The domain.

        Examples
        --------
        >>> from fastdp import Domain
        >>> Domain.binary(3).names
        ('v1', 'v2', 'v3')
        """
        d = integer("d", d, least=1, most=MOST_ATTRIBUTES)
        if not isinstance(prefix, str):
            raise ValueError(f"prefix={shown(prefix)}: must be a string")
        return cls({f"{prefix}{i + 1}": 2 for i in range(d)})

    @property
    def is_binary(self) -> bool:
        """Whether every attribute has two values."""
        return set(self.sizes) == {2}

    @property
    def strides(self) -> tuple[int, ...]:
        """How many cells lie between two cells that differ by 1 in one attribute."""
        strides, stride = [], 1
        for size in reversed(self.sizes):
            strides.append(stride)
            stride *= size
        return tuple(reversed(strides))

    def __len__(self) -> int:
        """How many attributes there are."""
        return len(self.names)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Domain.__slots__ if name != "__weakref__"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        mine, others = ((each.names, each.sizes, each.labels, each.bins) for each in (self, other))
        return mine == others

    def __hash__(self) -> int:
        return hash((self.names, self.sizes))

    def __repr__(self) -> str:
        values = [_Labels(each) if isinstance(each, tuple) else each for each in map(self.declared, range(len(self)))]
        if self.is_binary and self.labels.count(None) == len(self) and self == Domain.binary(len(self)):
            inside = None
        elif all(name.isidentifier() for name in self.names):
            parts = [f"{name}={value!r}" for name, value in zip(self.names, values, strict=True)]
            inside = ", ".join(parts[:_MOST_DISPLAYED]) + ", ..." * (len(parts) > _MOST_DISPLAYED)
        else:
            parts = [f"{name!r}: {value!r}" for name, value in zip(self.names, values, strict=True)]
            inside = "{" + ", ".join(parts[:_MOST_DISPLAYED]) + ", ..." * (len(parts) > _MOST_DISPLAYED) + "}"
        call = f"Domain.binary({len(self)})" if inside is None else f"Domain({inside})"
        return f"{call}  # {display_count(self.size)} cell{'s' if self.size != 1 else ''}"

    # --- attributes and values

    def position(self, name: Any) -> int:
        """The position of an attribute.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        int
            0 for the first attribute.
        """
        try:
            return self._positions[name]
        except Exception:  # of a class that is not ours
            raise ValueError(f"attribute={shown(name)}: must be one of {listed(self.names)}") from None

    def positions(self, names: Iterable[Any]) -> tuple[int, ...]:
        """The positions of several attributes.

        Parameters
        ----------
        names : iterable of str
            Their names, each once.

        Returns
        -------
        tuple of int
            Their positions, in the order of the names.
        """
        given = [names] if isinstance(names, str) else items_of("names", names, "names of attributes", most=len(self))
        positions = tuple(map(self.position, given))
        if len(set(positions)) < len(positions):
            raise ValueError(f"attributes={[self.names[p] for p in positions]!r}: must not repeat")
        return positions

    def code(self, name: Any, value: Any) -> int:
        """The code of a value of an attribute.

        Parameters
        ----------
        name : str
            The attribute.
        value : Any
            A label, or a code where the attribute has no labels; of bins, a number, which its bin holds.

        Returns
        -------
        int
            The place of the value among the labels, or the code itself.
        """
        position = self.position(name)
        if (bins := self.bins[position]) is not None:
            return code_in_bins(bins, name, value)
        codes, size = self._codes[position], self.sizes[position]
        if codes is not None:
            try:
                return codes[value]
            except Exception:  # of a class that is not ours
                raise ValueError(f"{name}={shown(value)}: must be one of {_some(self.labels[position])}") from None
        code = int(value) if isinstance(value, bool | np.bool_) else plain_integer(value)
        if code is None or not 0 <= code < size:
            raise ValueError(f"{name}={shown(value)}: must be a code from 0 to {size - 1}")
        return code

    def project(self, names: Iterable[str]) -> Domain:
        """The domain of some of the attributes.

        Parameters
        ----------
        names : iterable of str
            The attributes, in the order that they are to have.

        Returns
        -------
        Domain
            The smaller domain.
        """
        positions = self.positions(names)
        return Domain({self.names[p]: self.declared(p) for p in positions})

    def declared(self, position: int) -> int | tuple[Any, ...] | Bins:
        """What an attribute was declared as.

        Parameters
        ----------
        position : int
            The attribute, counted from 0.

        Returns
        -------
        int, tuple or Bins
            Its number of values, its labels or its bins.
        """
        position = self._checked(position)
        labels, bins = self.labels[position], self.bins[position]
        return bins if bins is not None else self.sizes[position] if labels is None else labels

    # --- coding

    @boundary
    def encode_column(self, position: int, values: Any, outside: Outside = "raise") -> Codes:
        """Encode the values of a column as codes.

        Parameters
        ----------
        position : int
            The attribute, counted from 0.
        values : array_like
            Labels, or integers where the attribute has no labels, or numbers where it has bins.
        outside : {"raise", "clip"}
            What becomes of values outside the domain.

        Returns
        -------
        numpy.ndarray
            The codes, of the least unsigned type that holds them all.

        Raises
        ------
        DomainError
            A value is outside the domain; the message names the column and the rule, never a value.
        """
        position, outside = self._checked(position), parameters.outside(outside)
        column = column_of(f"column {self.names[position]!r}", values)
        everything = 0, len(column)
        return encode_entries(
            self, position, lambda: column.entries(*everything), lambda: column.coded(*everything), outside
        )

    @boundary
    def decode_column(self, position: int, codes: Codes) -> NDArray[Any]:
        """Decode the codes of a column.

        Parameters
        ----------
        position : int
            The attribute, counted from 0.
        codes : numpy.ndarray of int
            Codes of that attribute.

        Returns
        -------
        numpy.ndarray
            Labels, or the codes themselves where the attribute has no labels.
        """
        position = self._checked(position)
        labels = self.labels[position]
        array = plain_array("codes", codes, "the codes of an attribute")
        if array.dtype.kind not in "iu" and array.size:
            raise ValueError(f"codes: dtype {array.dtype}: must be integers")
        if array.size and not (array.min() >= 0 and array.max() < self.sizes[position]):
            raise DomainError(f"codes: must be from 0 to {self.sizes[position] - 1}; there are others")
        if labels is None:
            return codes
        values = np.empty(len(labels), object)
        values[:] = labels
        best = np.array(labels) if len({type(label) for label in labels}) == 1 else values
        table = best if best.ndim == 1 and best.dtype.kind in "biufU" else values
        return np.asarray(table[array if array.size else array.astype(np.intp)])

    def _checked(self, position: Any) -> int:
        return integer("position", position, least=0, most=len(self) - 1)

    @boundary
    def cells(self, columns: Sequence[Codes]) -> NDArray[np.int64]:
        """The number of the cell that each record is in.

        Parameters
        ----------
        columns : sequence of numpy.ndarray
            The codes of every attribute, in the order of the domain.

        Returns
        -------
        numpy.ndarray of int64
            Cell numbers in C order, the last attribute fastest.
        """
        if self.size > 2**62:
            raise ValueError(f"domain: {display_count(self.size)} cells: must be at most 2^62 to number them")
        given = items_of("columns", columns, "the codes of every attribute", most=len(self))
        if len(given) < len(self):
            raise ValueError(f"columns: {len(given)}: must be {len(self)}, the codes of every attribute")
        cells: NDArray[np.int64] | None = None
        for j, codes in enumerate(given):
            values = plain_array(f"columns[{j}]", codes, "codes")
            if values.ndim != 1 or (cells is not None and values.shape != cells.shape):
                raise ValueError(f"columns[{j}]: shape {values.shape}: must be one code for each record")
            if values.dtype.kind not in "iub" and values.size:
                raise ValueError(f"columns[{j}]: dtype {values.dtype}: must be integers")
            if values.size and not (values.min() >= 0 and values.max() < self.sizes[j]):
                raise DomainError(f"columns[{j}]: must be codes from 0 to {self.sizes[j] - 1}; there are others")
            if cells is None:
                cells = values.astype(np.int64)
            else:
                cells *= self.sizes[j]
                np.add(cells, values, out=cells, casting="unsafe")
        assert cells is not None
        return cells


class _Labels:
    """Labels as a domain displays them: integers in a row as a range, of many others the first and the last."""

    def __init__(self, labels: tuple[Any, ...]) -> None:
        self._labels = labels

    def __repr__(self) -> str:
        labels = self._labels
        whole = len(labels) > 2 and all(type(label) is int for label in labels)
        if whole and all(a + 1 == b for a, b in pairwise(labels)):
            return repr(range(labels[0], labels[-1] + 1))
        if len(labels) > _MOST_DISPLAYED:
            return f"[{', '.join(map(repr, labels[:3]))}, ..., {labels[-1]!r}]"
        return repr(list(labels))


def encode_entries(
    domain: Domain, position: int, entries: Callable[[], Entries], coded: Callable[[], Coded | None], outside: Outside
) -> Codes:
    """The codes of an attribute, from a column that gives its entries, or places among labels."""
    name, codes, size = domain.names[position], domain._codes[position], domain.sizes[position]
    if (bins := domain.bins[position]) is not None:
        return codes_in_bins(bins, name, entries(), outside, code_type(size))
    if codes is None:
        return codes_in_range(name, entries(), size, outside).astype(code_type(size), copy=False)
    return codes_of_labels(name, coded() or distinct(entries()), codes, code_type(size), outside)


def holds_numbers(domain: Domain, position: int) -> bool:
    """Whether records have numbers there: codes, or what is put in bins between numbers."""
    bins = domain.bins[position]
    return domain._codes[position] is None if bins is None else not bins._dated


def check_domain(domain: Any) -> None:
    """ValueError if it is none."""
    if not isinstance(domain, Domain):
        raise ValueError(f"domain: type {type(domain).__name__}: must be a fastdp.Domain")


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names as an error lists them: the first ones."""
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


@sixty_digits
def display_count(cells: int) -> str:
    """A number of cells as people read it: in full below 10^12; it may be larger than any float."""
    return f"{cells:,}" if cells < 10**12 else f"{Decimal(cells):.3g}"


def code_type(size: int) -> Any:
    """The least unsigned type that holds the codes of so many values."""
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32


def _values(name: str, values: Any) -> tuple[int, tuple[Any, ...] | None]:
    if isinstance(values, Bins):
        return values.size, values.labels
    size = plain_integer(values)
    if size is not None:
        if not 1 <= size <= _MOST_VALUES:
            raise ValueError(f"{name}={shown(values)}: must be a number of values from 1 to 2^31")
        return size, None
    if isinstance(values, set | frozenset):
        raise ValueError(f"{name}: a set of labels: must be a list; sets are in another order in every process")
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        text = shown(values) if values is None or isinstance(values, bool) else described(values)
        raise ValueError(f"{name}={text}: must be a number of values, or a sequence of labels")
    given = items_of(name, values, "a number of values, or a sequence of labels", most=MOST_LABELS)
    labels = tuple(value.item() if isinstance(value, np.generic) else value for value in given)
    if not labels:
        raise ValueError(f"{name}={shown(values)}: must have at least one label")
    try:
        different, unlike_themselves = len(set(labels)), any(map(is_missing, set(labels) - {None}))
    except Exception as error:  # of classes that are not ours
        if is_memory(error, given):
            raise
        raise ValueError(f"{name}: labels must be hashable") from None
    if different < len(labels) or unlike_themselves:
        raise ValueError(f"{name}={shown(list(labels))}: labels must be distinct, and not NaN")
    return len(labels), labels


def _some(labels: Any) -> str:
    some = ", ".join(map(shown, labels[:8]))
    return f"[{some}, ...]" if len(labels) > 8 else f"[{some}]"
