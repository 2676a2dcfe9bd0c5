"""The domain: attributes with finitely many values each, and the coding of records into it.

A record has one value of every attribute; a combination of values is a cell. Cells are numbered in C order, the last
attribute fastest, so an array over all cells is `array.reshape(domain.sizes)`. The number of cells may exceed 2^64:
only what is made of the cells one by one needs them to fit in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..support.errors import DomainError

Outside = Literal["raise", "clip"]
OUTSIDE = ("raise", "clip")
Codes = NDArray[Any]  # uint8, uint16 or uint32, whichever is the least that holds all values of an attribute

_MOST_VALUES = 2**31
_MOST_SHOWN = 12  # attributes, and labels of one, that a repr shows
MOST_CELLS = 2**31  # that anything is held of one by one


class Domain:
    """What values records may have: for each attribute how many, or which.

    Domain(age=8, sex=2)                        records hold the codes 0 .. 7 and 0 .. 1
    Domain(age=8, region=["north", "south"])    a region is given by its label
    Domain({"hours worked": 5})                 for names that are no Python names
    Domain.binary(20)                           twenty attributes v1 .. v20 of two values

    names      of the attributes
    sizes      how many values each has
    labels     which: for each attribute a tuple of labels, or None where values are codes
    size       how many cells there are
    strides    by how many cells the next value of each attribute is away

    Whoever reads records takes `outside`: "raise" a DomainError for records outside the domain, or "clip" them to the
    nearest code, or to the nearest label where labels are numbers in increasing order, such as age=range(18, 81).
    Missing entries, fractions and labels of other kinds are refused either way.

    Examples
    >>> from fastdp import Domain
    >>> domain = Domain(age=8, region=["north", "south"])
    >>> domain
    Domain(age=8, region=['north', 'south'])  # 16 cells
    >>> domain.size, domain.sizes
    (16, (8, 2))
    """

    def __init__(self, attributes: Mapping[str, int | Sequence[Any]] | None = None, /, **more: int | Sequence[Any]):
        if attributes is not None and not isinstance(attributes, Mapping):
            raise ValueError(
                f"attributes: type {type(attributes).__name__}: must be a mapping from names to numbers of values or "
                "labels, such as {'age': 8, 'region': ['north', 'south']}; they are public, so not taken from the data"
            )
        both: dict[Any, Any] = dict(attributes or {})
        for name, values in more.items():
            if name in both:
                raise ValueError(f"attributes: {name!r}: must be given once")
            both[name] = values
        if not both:
            raise ValueError("attributes: must be at least one")
        self.names: tuple[str, ...] = tuple(both)
        labels, sizes = [], []
        for name, values in both.items():
            if not isinstance(name, str) or not name:
                raise ValueError(f"attributes: {name!r}: names must be strings, not empty")
            size, of_values = _values(name, values)
            sizes.append(size)
            labels.append(of_values)
        self.sizes: tuple[int, ...] = tuple(sizes)
        self.labels: tuple[tuple[Any, ...] | None, ...] = tuple(labels)
        self.size: int = prod(self.sizes)
        self._positions = {name: position for position, name in enumerate(self.names)}
        self._codes = [None if of is None else {label: code for code, label in enumerate(of)} for of in self.labels]

    @classmethod
    def binary(cls, d: int, *, prefix: str = "v") -> Domain:
        """d attributes of two values, named v1, v2, ..."""
        if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1:
            raise ValueError(f"d={d!r}: must be a whole number >= 1")
        return cls({f"{prefix}{i + 1}": 2 for i in range(int(d))})

    @property
    def is_binary(self) -> bool:
        """Whether every attribute has two values."""
        return set(self.sizes) == {2}

    @property
    def strides(self) -> tuple[int, ...]:
        """By how many cells the next value of each attribute is away."""
        strides, stride = [], 1
        for size in reversed(self.sizes):
            strides.append(stride)
            stride *= size
        return tuple(reversed(strides))

    def __len__(self) -> int:
        """How many attributes there are."""
        return len(self.names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return (self.names, self.sizes, self.labels) == (other.names, other.sizes, other.labels)

    def __hash__(self) -> int:
        return hash((self.names, self.sizes))

    def __repr__(self) -> str:
        pairs = zip(self.sizes, self.labels, strict=True)
        values = [size if labels is None else _Shown(labels) for size, labels in pairs]
        if self.is_binary and self.labels.count(None) == len(self) and self == Domain.binary(len(self)):
            inside = None
        elif all(name.isidentifier() for name in self.names):
            parts = [f"{name}={value!r}" for name, value in zip(self.names, values, strict=True)]
            inside = ", ".join(parts[:_MOST_SHOWN]) + ", ..." * (len(parts) > _MOST_SHOWN)
        else:
            parts = [f"{name!r}: {value!r}" for name, value in zip(self.names, values, strict=True)]
            inside = "{" + ", ".join(parts[:_MOST_SHOWN]) + ", ..." * (len(parts) > _MOST_SHOWN) + "}"
        call = f"Domain.binary({len(self)})" if inside is None else f"Domain({inside})"
        return f"{call}  # {shown(self.size)} cells"

    # --- attributes and values

    def position(self, name: Any) -> int:
        """Which attribute has this name."""
        try:
            return self._positions[name]
        except (KeyError, TypeError):
            raise ValueError(f"attribute={name!r}: must be one of {listed(self.names)}") from None

    def positions(self, names: Iterable[Any]) -> tuple[int, ...]:
        """Which attributes have these names, each once."""
        positions = tuple(self.position(name) for name in ([names] if isinstance(names, str) else names))
        if len(set(positions)) < len(positions):
            raise ValueError(f"attributes={[self.names[p] for p in positions]!r}: must not repeat")
        return positions

    def code(self, name: Any, value: Any) -> int:
        """The code of a value: its place among the labels, or itself."""
        position = self.position(name)
        codes, size = self._codes[position], self.sizes[position]
        if codes is not None:
            try:
                return codes[value]
            except (KeyError, TypeError):
                raise ValueError(f"{name}={value!r}: must be one of {_some(self.labels[position])}") from None
        if isinstance(value, bool | np.bool_):
            value = int(value)
        if not isinstance(value, int | np.integer) or not 0 <= value < size:
            raise ValueError(f"{name}={value!r}: must be a code from 0 to {size - 1}")
        return int(value)

    def project(self, names: Iterable[str]) -> Domain:
        """The domain of some of the attributes, in the order given."""
        positions = self.positions(names)
        return Domain({self.names[p]: self.sizes[p] if self.labels[p] is None else self.labels[p] for p in positions})  # type: ignore[misc]

    # --- coding

    def encode_column(self, position: int, values: Any, outside: Outside = "raise") -> Codes:
        """The codes of a column; DomainError names the column and the rule, never a value."""
        name, size, codes = self.names[position], self.sizes[position], self._codes[position]
        array = np.asarray(values)
        if array.ndim != 1:
            raise ValueError(f"column {name!r}: shape {array.shape}: must have one dimension")
        if codes is not None:
            return _codes_of_labels(name, array, codes, code_type(size), outside)
        if array.dtype.kind == "b":
            array = array.view(np.uint8)
        if array.dtype.kind == "f":
            array = _whole_floats(name, array, outside, size)
        if array.dtype.kind == "O":
            array = _whole_objects(name, array)
        if array.dtype.kind not in "iu":
            raise ValueError(f"column {name!r}: dtype {array.dtype}: must be integers, the codes 0 to {size - 1}")
        if array.size and (array.min() < 0 or array.max() >= size):
            if outside == "raise":
                raise DomainError(f"column {name!r}: must hold codes from 0 to {size - 1} only; there are others")
            array = np.clip(array, 0, size - 1)
        return array.astype(code_type(size), copy=False)

    def decode_column(self, position: int, codes: Codes) -> NDArray[Any]:
        """The labels of codes, or the codes themselves."""
        labels = self.labels[position]
        if labels is None:
            return codes
        values = np.empty(len(labels), object)
        values[:] = labels
        best = np.array(labels) if len({type(label) for label in labels}) == 1 else values
        table = best if best.ndim == 1 and best.dtype.kind in "biufU" else values
        return table[codes]

    def cells(self, columns: Sequence[Codes]) -> NDArray[np.int64]:
        """The cell of every record."""
        if self.size > 2**62:
            raise ValueError(f"domain: {shown(self.size)} cells: must be at most 2^62 to number them")
        cells = np.zeros(len(columns[0]), np.int64)
        for codes, size in zip(columns, self.sizes, strict=True):
            cells *= size
            cells += codes
        return cells


class _Shown:
    """Labels as a domain shows them: integers in a row as a range, of many others the first and the last."""

    def __init__(self, labels: tuple[Any, ...]) -> None:
        self._labels = labels

    def __repr__(self) -> str:
        labels = self._labels
        if len(labels) > 2 and all(type(label) is int for label in labels):
            run = range(labels[0], labels[-1] + 1)
            if len(run) == len(labels) and all(a + 1 == b for a, b in pairwise(labels)):
                return repr(run)
        if len(labels) > _MOST_SHOWN:
            return f"[{', '.join(map(repr, labels[:3]))}, ..., {labels[-1]!r}]"
        return repr(list(labels))


def check_domain(domain: Any) -> None:
    """ValueError if it is none."""
    if not isinstance(domain, Domain):
        raise ValueError(f"domain: type {type(domain).__name__}: must be a fastdp.Domain")


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names as an error lists them: the first ones."""
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def shown(cells: int) -> str:
    """A number of cells as people read it: in full below 10^12; it may be larger than any float."""
    return f"{cells:,}" if cells < 10**12 else f"{Decimal(cells):.3g}"


def code_type(size: int) -> Any:
    """The least unsigned type that holds the codes of so many values."""
    return np.uint8 if size <= 2**8 else np.uint16 if size <= 2**16 else np.uint32


def _values(name: str, values: Any) -> tuple[int, tuple[Any, ...] | None]:
    if isinstance(values, int | np.integer) and not isinstance(values, bool):
        if not 1 <= values <= _MOST_VALUES:
            raise ValueError(f"{name}={values!r}: must be a number of values from 1 to 2^31")
        return int(values), None
    if isinstance(values, set | frozenset):
        raise ValueError(f"{name}: a set of labels: must be a list; sets are in another order in every process")
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ValueError(f"{name}={values!r}: must be a number of values, or a sequence of labels")
    labels = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    if not labels:
        raise ValueError(f"{name}={values!r}: must have at least one label")
    try:
        distinct = len(set(labels))
    except TypeError:
        raise ValueError(f"{name}: labels must be hashable") from None
    if distinct < len(labels) or any(label != label for label in labels):
        raise ValueError(f"{name}={_some(labels)}: labels must be distinct, and not NaN")
    return len(labels), labels


def _some(labels: Any) -> str:
    shown = ", ".join(map(repr, labels[:8]))
    return f"[{shown}, ...]" if len(labels) > 8 else f"[{shown}]"


def _codes_of_labels(name: str, array: NDArray[Any], codes: Mapping[Any, int], dtype: Any, outside: Outside) -> Codes:
    """A label has no nearest other one, so there is nothing to clip to, unless labels are numbers that increase."""
    ends = None
    if outside == "clip" and _increase(labels := list(codes)):
        ends = labels[0], labels[-1]

    def code_of(value: Any) -> int:
        if ends and _is_real(value) and value not in codes:
            value = ends[0] if value < ends[0] else ends[1] if value > ends[1] else value
        return codes[value]

    try:
        try:
            distinct, inverse = np.unique(array, return_inverse=True)
            values = distinct.tolist()
        except TypeError:  # objects that do not compare, such as None beside strings
            places: dict[Any, int] = {}
            inverse = np.empty(array.size, np.intp)
            for i, value in enumerate(array.tolist()):
                inverse[i] = places.setdefault(value, len(places))
            values = list(places)
        table = np.array([code_of(value) for value in values], dtype)
    except (KeyError, TypeError):
        raise DomainError(f"column {name!r}: must hold the labels of the domain only; there are others") from None
    return table[inverse.reshape(-1)] if array.size else np.empty(0, dtype)


def _increase(labels: list[Any]) -> bool:
    return all(map(_is_real, labels)) and all(a < b for a, b in pairwise(labels))


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole_floats(name: str, array: NDArray[Any], outside: Outside, size: int) -> NDArray[Any]:
    if np.isnan(array).any():
        raise DomainError(f"column {name!r}: must not hold NaN")
    if outside == "clip":
        array = np.clip(array, 0, size - 1)
    if not ((array == np.floor(array)) & (abs(array) < 2.0**53)).all():
        raise DomainError(f"column {name!r}: must hold codes from 0 to {size - 1} only; there are others")
    return array.astype(np.int64)


def _whole_objects(name: str, array: NDArray[Any]) -> NDArray[Any]:
    try:
        whole = array.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        raise DomainError(f"column {name!r}: must hold integers only; there are others") from None
    if not all(isinstance(value, int | np.integer) for value in array.tolist()):
        raise DomainError(f"column {name!r}: must hold integers only; there are others")
    return whole
