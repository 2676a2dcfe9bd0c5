"""Queries: values in [0, 1] of a record, whose averages over the records are what is asked for.

A query is a small frozen object that knows no domain. `bind` makes it concrete: a product of allowed values per
attribute, which touches only its cells and also works where the cells are too many to list, or one value per cell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from itertools import combinations, product
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..records.domain import MOST_CELLS, Domain, check_domain, shown
from ..support.c_functions import c_function, flag_of_number
from ..support.checks import integer

if TYPE_CHECKING:
    from .query_plans import Pattern, Runs, Walk


GRID_BITS = 16  # values of queries are multiples of 2^-16, so that their sums over records are integers


@dataclass(frozen=True)
class BoundProduct:
    """1 for records that have an allowed value of every attribute listed; in order, none with all values allowed."""

    domain: Domain
    allowed: tuple[tuple[int, NDArray[np.bool_]], ...]

    @property
    def attributes(self) -> tuple[int, ...]:
        """The positions of the attributes that it looks at."""
        return tuple(position for position, _ in self.allowed)

    @property
    def cells(self) -> int:
        """How many cells it has."""
        counts = {position: int(table.sum()) for position, table in self.allowed}
        return prod(counts.get(position, size) for position, size in enumerate(self.domain.sizes))

    @cached_property
    def plan(self) -> Runs | Pattern:
        """How to walk over its cells."""
        from .query_plans import plan_of

        return plan_of(self)

    @cached_property
    def complement(self) -> tuple[BoundProduct, ...]:
        """All other cells, as products that share none: outside A1; in A1 but outside A2; in both but not A3; ..."""
        return tuple(
            BoundProduct(self.domain, (*self.allowed[:i], (position, ~table)))
            for i, (position, table) in enumerate(self.allowed)
        )

    @cached_property
    def walk(self) -> Walk:
        """The plans of its cells, or of all others where that reads less."""
        from .query_plans import walk_of

        return walk_of(self)


@dataclass(frozen=True)
class BoundCells:
    """One value for each cell: uint8, 0 or 1, or float64, multiples of 2^-16 in [0, 1]."""

    domain: Domain
    values: NDArray[Any]

    @property
    def attributes(self) -> tuple[int, ...]:
        """The positions of the attributes that it looks at: all."""
        return tuple(range(len(self.domain)))


Bound = BoundProduct | BoundCells


class Query:
    """A value in [0, 1] of a record. Queries do not change, and are equal if they say the same."""

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{name}: a query does not change; make another")

    def _key(self) -> Any:
        """What it says, as something hashable."""
        raise AssertionError("every kind of query says something")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def bind(self, domain: Domain) -> Bound:
        """The query on this domain; ValueError names what does not fit."""
        raise AssertionError("every kind of query can be bound")


class Product(Query):
    """Records whose value of each attribute named is among the allowed ones.

    Allowed is a value (a code, or a label where the attribute has labels), several values, or a table: True or False
    for each code, in order. A table is an array of booleans; a list of booleans is one, too, where the attribute has no
    labels. Where True and False are labels themselves, a list has labels, and an array is refused, since it could mean
    either.

    Examples
    >>> from fastdp import Product
    >>> Product({"age": [0, 1, 2], "sex": 1})
    Product({'age': [0, 1, 2], 'sex': 1})
    """

    allowed: Mapping[str, Any]

    def __init__(self, allowed: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        if named:
            given = ", ".join(f"{name}={value!r}" for name, value in named.items())
            raise ValueError(f"{given}: must be given in a mapping, as {type(self).__name__}({named!r})")
        if not isinstance(allowed, Mapping):
            form = f"{type(self).__name__}({{'region': 'north'}})"
            raise ValueError(
                f"allowed={allowed!r}: must be a mapping from attributes to allowed values, such as {form}"
            )
        self.__dict__["allowed"] = MappingProxyType({name: _frozen(values) for name, values in allowed.items()})

    def bind(self, domain: Domain) -> BoundProduct:
        """The tables of allowed values."""
        tables = {domain.position(name): _table(domain, name, values) for name, values in self.allowed.items()}
        return BoundProduct(domain, tuple((p, tables[p]) for p in sorted(tables) if not tables[p].all()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.allowed)!r})"

    def __reduce__(self) -> Any:  # a view of a dictionary does not pickle
        return type(self), (dict(self.allowed),)

    def _key(self) -> Any:
        return frozenset((name, _canonical(values)) for name, values in self.allowed.items())


class Conjunction(Product):
    """Records that have all these values, one for each attribute named."""

    def bind(self, domain: Domain) -> BoundProduct:
        """One allowed value each."""
        for name, value in self.allowed.items():
            domain.code(name, value)
        return super().bind(domain)


class Range(Query):
    """Records whose value of one attribute lies from `low` to `high`, both included, in the order of the codes."""

    attribute: str
    low: Any
    high: Any

    def __init__(self, attribute: str, low: Any, high: Any) -> None:
        self.__dict__.update(attribute=attribute, low=low, high=high)

    def bind(self, domain: Domain) -> BoundProduct:
        """The codes from low to high."""
        low, high = domain.code(self.attribute, self.low), domain.code(self.attribute, self.high)
        if low > high:
            raise ValueError(f"low={self.low!r}: must not come after high={self.high!r}")
        table = np.zeros(domain.sizes[domain.position(self.attribute)], bool)
        table[low : high + 1] = True
        return BoundProduct(domain, () if table.all() else ((domain.position(self.attribute), table),))

    def __repr__(self) -> str:
        return f"Range({self.attribute!r}, {self.low!r}, {self.high!r})"

    def _key(self) -> Any:
        return self.attribute, _plain(self.low), _plain(self.high)


class Mask(Query):
    """Records in the cells where `cells` is True: one entry for each cell, as one row or in the shape of the domain."""

    cells: NDArray[np.uint8]

    def __init__(self, cells: ArrayLike) -> None:
        array = np.asarray(cells)
        if array.dtype != np.bool_ and not (array.dtype.kind in "iuf" and ((array == 0) | (array == 1)).all()):
            hint = "; for other values use Linear" if array.dtype.kind in "iuf" else ""
            raise ValueError(f"cells: dtype {array.dtype}: must be True and False, or 0 and 1{hint}")
        self.__dict__["cells"] = _read_only(np.array(array, np.uint8, order="C"))

    def bind(self, domain: Domain) -> BoundCells:
        """Its cells, if they are as many as the domain has."""
        return BoundCells(domain, as_row("cells", self.cells, domain))

    def __repr__(self) -> str:
        return f"Mask(<{int(self.cells.sum(dtype=np.int64)):,} of {self.cells.size:,} cells>)"

    def _key(self) -> Any:
        return self.cells.tobytes()


class Linear(Query):
    """A value in [0, 1] for each cell, as one row or in the shape of the domain; rounded to multiples of 2^-16."""

    values: NDArray[np.float64]

    def __init__(self, values: ArrayLike) -> None:
        given = np.asarray(values)
        if given.dtype.kind not in "biuf":
            raise ValueError(f"values: dtype {given.dtype}: must be numbers in [0, 1]")
        array = np.array(given, np.float64, order="C")
        if not ((array >= 0) & (array <= 1)).all():
            raise ValueError("values: must lie in [0, 1]; there is another one, or a NaN, among them")
        self.__dict__["values"] = _read_only(np.rint(array * 2.0**GRID_BITS) / 2.0**GRID_BITS)

    def bind(self, domain: Domain) -> BoundCells:
        """Its values, if they are as many as the domain has cells."""
        return BoundCells(domain, as_row("values", self.values, domain))

    def __repr__(self) -> str:
        return f"Linear(<{self.values.size:,} cells>)"

    def _key(self) -> Any:
        return self.values.tobytes()


class Predicate(Query):
    """Records in the cells for whose number a function, compiled by numba or in C, says True.

    The function gets the number of a cell, from 0 to domain.size - 1, and is called for each cell, not for records.
    The last attribute counts fastest: the code of attribute i is `cell // domain.strides[i] % domain.sizes[i]`. It is
    compiled anew for this, by Python's rules of division; what it raises for any cell is raised. A C function (of cffi,
    or a numba.cfunc) takes an int64_t and returns an int, int64_t or bool; who hands it in keeps its library open.

    Examples
    >>> import numba
    >>> from fastdp import Domain, Predicate
    >>> domain = Domain(age=4, sex=2)
    >>> (age_stride, sex_stride), (ages, sexes) = domain.strides, domain.sizes
    >>> def old_or_first(cell):
    ...     age, sex = cell // age_stride % ages, cell // sex_stride % sexes
    ...     return age >= 3 or sex == 0
    >>> Predicate(numba.njit(old_or_first)).bind(domain).values.reshape(domain.sizes).tolist()
    [[1, 0], [1, 0], [1, 0], [1, 1]]
    """

    function: Any

    def __init__(self, function: Callable[[int], bool]) -> None:
        if not hasattr(function, "py_func") or not hasattr(function, "targetoptions"):
            _check_c_function(function)
        self.__dict__["function"] = function

    def bind(self, domain: Domain) -> BoundCells:
        """Its value for every cell; what it raises for one of them is raised."""
        check_cells(domain)
        values = np.empty(domain.size, np.uint8)
        _filler(self.function)(values)
        return BoundCells(domain, values)

    def __repr__(self) -> str:
        python = getattr(self.function, "py_func", None)
        return f"Predicate({python.__name__ if python else 'a C function'})"

    def _key(self) -> Any:
        return self.function


def bind(query: Any, domain: Domain) -> Bound:
    """The query on this domain, if it is one."""
    if not isinstance(query, Query):
        raise ValueError(f"query: type {type(query).__name__}: must be a query, such as Conjunction({{...}})")
    return query.bind(domain)


def several(queries: Any) -> Sequence[Any]:
    """Queries in a row, as anybody gives them."""
    if isinstance(queries, Query):
        raise ValueError(f"queries={queries!r}: must be several queries, such as a list of them")
    if isinstance(queries, str | bytes | Mapping) or not isinstance(queries, Iterable):
        raise ValueError(f"queries: type {type(queries).__name__}: must be a sequence of queries")
    return queries if isinstance(queries, Sequence) else list(queries)


# --- workloads


class Marginals(Sequence[Query]):
    """All cells of some marginal tables, as a workload: a sequence of conjunctions that also knows its tables."""

    def __init__(self, domain: Domain, subsets: Iterable[Iterable[str]]) -> None:
        check_domain(domain)
        self.domain = domain
        if not isinstance(subsets, Iterable):
            raise ValueError(f"subsets: type {type(subsets).__name__}: must be sets of attributes")
        given = [subsets] if isinstance(subsets, str) else list(subsets)
        if alone := [subset for subset in given if isinstance(subset, str)]:
            raise ValueError(
                f"subsets: {alone[0]!r}: must be a list of names, such as [['age', 'sex'], ['region']] for two tables"
            )
        subsets = [tuple(subset) for subset in given]
        if not subsets:
            raise ValueError("subsets: must be at least one set of attributes")
        # each table with its attributes in the order of the domain
        self.positions: tuple[tuple[int, ...], ...] = tuple(tuple(sorted(domain.positions(s))) for s in subsets)
        if len(set(self.positions)) < len(self.positions):
            raise ValueError("subsets: must not repeat")
        self.shapes = tuple(tuple(domain.sizes[p] for p in positions) for positions in self.positions)
        self._starts = np.concatenate(([0], np.cumsum([prod(shape) for shape in self.shapes]))).tolist()

    @property
    def subsets(self) -> tuple[tuple[str, ...], ...]:
        """The attributes of every table."""
        return tuple(tuple(self.domain.names[p] for p in positions) for positions in self.positions)

    @property
    def tables(self) -> int:
        """How many tables there are."""
        return len(self.positions)

    def __len__(self) -> int:
        """How many cells all tables have together."""
        return int(self._starts[-1])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"index={index}: must be below {len(self)}")
        index %= len(self)
        table = int(np.searchsorted(self._starts, index, side="right")) - 1
        codes = np.unravel_index(index - self._starts[table], self.shapes[table])
        return self._query(table, [int(code) for code in codes])

    def __iter__(self) -> Iterator[Query]:
        for table, shape in enumerate(self.shapes):
            for codes in product(*map(range, shape)):
                yield self._query(table, codes)

    def _query(self, table: int, codes: Sequence[int]) -> Query:
        values = {}
        for position, code in zip(self.positions[table], codes, strict=True):
            labels = self.domain.labels[position]
            values[self.domain.names[position]] = code if labels is None else labels[code]
        return Conjunction(values)

    def __repr__(self) -> str:
        return f"Marginals(<{self.tables:,} tables, {len(self):,} cells>)"


def marginals(domain: Domain, k: int) -> Marginals:
    """The workload of all marginal tables of k attributes.

    Examples
    >>> from fastdp import Domain, marginals
    >>> marginals(Domain.binary(20), 3)
    Marginals(<1,140 tables, 9,120 cells>)
    """
    check_domain(domain)
    if integer("k", k, least=1) > len(domain):
        raise ValueError(f"k={k}: must be at most the number of attributes, {len(domain)}")
    return Marginals(domain, combinations(domain.names, k))


# --- pieces


def check_cells(domain: Domain) -> None:
    """ValueError if the cells are too many to have a value each."""
    if domain.size > MOST_CELLS:
        raise ValueError(
            f"domain: {shown(domain.size)} cells: must be at most 2^31 for a value each; use product queries"
        )


def as_row(name: str, values: NDArray[Any], domain: Domain) -> NDArray[Any]:
    """An array over all cells, in the shape of the domain or flat, as one row."""
    if values.shape not in ((domain.size,), domain.sizes):
        sizes = domain.sizes if len(domain) <= 8 else f"({str(domain.sizes[:8])[1:-1]}, ...)"
        raise ValueError(f"{name}: shape {values.shape}: must be ({shown(domain.size)},), or {sizes}")
    return values.reshape(-1)


def _check_c_function(function: Any) -> None:
    known = c_function(function)
    if known is None:
        raise ValueError(f"function={function!r}: must be compiled by numba (numba.njit), or in C; for others use Mask")
    if not known.address or flag_of_number(known) is None:
        null = "" if known.address else " NULL"
        raise ValueError(f"function: {known.declared}{null}: must take an int64_t and return an int, int64_t or bool")


_fillers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # compiling takes a tenth of a second


def _filler(function: Any) -> Any:
    """The loop of a predicate over the cells; ValueError if its function cannot be one of a cell number."""
    if function in _fillers:
        return _fillers[function]
    from numba import types

    from ..kernels.compile import compile_filler, compile_predicate

    if (known := c_function(function)) is not None:
        fill = compile_filler(flag_of_number(known))
        _fillers[function] = fill
        return fill
    try:
        signature(function.py_func).bind(0)
    except TypeError as error:
        raise ValueError(f"function={function!r}: must be a function of one cell number ({error})") from None
    try:
        fill, kind = compile_predicate(function)
    except Exception as error:  # of numba's many kinds; what it says is the reason
        lines = (line for line in str(error).splitlines() if line.strip() and not line.startswith("Failed in"))
        said = next(lines, type(error).__name__)
        raise ValueError(f"function={function!r}: must compile for a cell number: {said}") from error
    if not isinstance(kind, types.Boolean | types.Integer):
        raise ValueError(f"function={function!r}: returns {kind}: must return True or False; for values use Linear")
    _fillers[function] = fill
    return fill


def _table(domain: Domain, name: str, values: Any) -> NDArray[np.bool_]:
    size = domain.sizes[domain.position(name)]
    table = np.zeros(size, bool)
    coded = domain.labels[domain.position(name)] is None
    if coded and isinstance(values, list | tuple) and values and all(isinstance(v, bool | np.bool_) for v in values):
        values = np.array(values)
    if isinstance(values, np.ndarray) and values.dtype == np.bool_:
        if not coded and any(_is_label(domain, name, value) for value in (True, False)):
            raise ValueError(
                f"{name}: an array of True and False, which are labels: must be a list of labels; an array could also "
                "be a table of which are allowed"
            )
        if values.shape != (size,):
            raise ValueError(f"{name}: table of shape {values.shape}: must be ({size},)")
        return values
    many = isinstance(values, Iterable) and not isinstance(values, str | bytes)
    if not coded and not isinstance(values, list | set | frozenset | np.ndarray):
        many = many and not _is_label(domain, name, values)
    for value in values if many else [values]:
        table[domain.code(name, value)] = True
    return table


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _frozen(values: Any) -> Any:
    """Allowed values as they were given, in a copy of their own."""
    if hasattr(values, "__array__") and not isinstance(values, np.generic):  # a column of a data frame, too
        return _read_only(np.array(values))
    return list(values) if isinstance(values, Iterator) else copy(values)


def _canonical(values: Any) -> Any:
    """The same for the same values in another order, or another container; tables of True and False keep theirs."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list) and values and all(isinstance(v, bool | np.bool_) for v in values):
        return tuple(map(bool, values))
    if isinstance(values, list | set | frozenset | range):
        return frozenset(map(_plain, values))
    return _plain(values)


def _plain(value: Any) -> Any:
    """A value that compares and hashes, whatever was given: what cannot be a value is told when it is bound."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, Hashable) else repr(value)


def _is_label(domain: Domain, name: str, value: Any) -> bool:
    try:
        domain.code(name, value)
    except ValueError:
        return False
    return True
