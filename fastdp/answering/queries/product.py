"""Queries by the allowed values of attributes, which work on domains of any size."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from copy import copy
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.bins import span_in_bins
from ...records.domain import Domain, check_domain
from ...support.columns import has
from ...support.frozen import frozen
from ...support.public_paths import public_as
from ...support.shown import shown
from .bound_query import BoundProduct
from .query import Query, display, one_value, own


@own
@public_as("fastdp")
class Product(Query):
    """Records whose value of each attribute named is among the allowed ones.

    Parameters
    ----------
    allowed : mapping from str
        For each attribute a value (a code, or a label where the attribute has labels), several values, or a table:
        True or False for each code, in order. A table is an array of booleans; a list of booleans is one, too, where
        the attribute has no labels. Where True and False are labels themselves, a list has labels, and an array is
        refused, since it could mean either.
    **named : values
        Refused, with an error that shows the mapping to give instead.

    Raises
    ------
    ValueError
        If `allowed` is no mapping.

    Examples
    --------
    >>> from fastdp import Product
    >>> Product({"age": [0, 1, 2], "sex": 1})
    Product({'age': [0, 1, 2], 'sex': 1})
    """

    _allowed: Mapping[str, Any]

    def __init__(self, allowed: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        if named:
            texts = {name: _as_given(values) for name, values in named.items()}
            given = ", ".join(f"{name}={text}" for name, text in texts.items())
            mapping = ", ".join(f"{name!r}: {text}" for name, text in texts.items())
            raise ValueError(f"{given}: must be given in a mapping, as {type(self).__name__}({{{mapping}}})")
        if not isinstance(allowed, Mapping):
            form = f"{type(self).__name__}({{'region': 'north'}})"
            raise ValueError(
                f"allowed={shown(allowed)}: must be a mapping from attributes to allowed values, such as {form}"
            )
        self._state(_allowed=MappingProxyType({name: _frozen(values) for name, values in allowed.items()}))

    @property
    def allowed(self) -> Mapping[str, Any]:
        """The allowed values of each attribute that is named."""
        held = self._allowed.items()
        return MappingProxyType({name: given if isinstance(given, np.ndarray) else copy(given) for name, given in held})

    def bind(self, domain: Domain) -> BoundProduct:
        """The tables of allowed values.

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        BoundProduct
            The attributes that are restricted, each with a table of its allowed values.
        """
        check_domain(domain)
        tables = {domain.position(name): _table(domain, name, values) for name, values in self._allowed.items()}
        return BoundProduct(domain, tuple((p, tables[p]) for p in sorted(tables) if not tables[p].all()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self._allowed)!r})"

    def __reduce__(self) -> Any:  # a view of a dictionary does not pickle
        return type(self), (dict(self._allowed),)

    def _key(self) -> Any:
        return frozenset((name, _canonical(values)) for name, values in self._allowed.items())


@own
@public_as("fastdp")
class Conjunction(Product):
    """Records that have all these values, one for each attribute named.

    Parameters
    ----------
    allowed : mapping from str
        For each attribute one value: a code, or a label where the attribute has labels.
    **named : values
        Refused, with an error that shows the mapping to give instead.

    Examples
    --------
    >>> from fastdp import Conjunction
    >>> Conjunction({"age": 2, "sex": "f"})
    Conjunction({'age': 2, 'sex': 'f'})
    """

    def bind(self, domain: Domain) -> BoundProduct:
        """One allowed value each.

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        BoundProduct
            The attributes that are restricted, each with a table of its allowed values.
        """
        check_domain(domain)
        sizes = domain.sizes
        codes = [(domain.position(name), domain.code(name, value)) for name, value in self._allowed.items()]
        codes.sort()
        return BoundProduct.of_codes(domain, tuple([each for each in codes if sizes[each[0]] > 1]))


@own
@public_as("fastdp")
class Range(Query):
    """Records whose value of one attribute lies from `low` to `high`, both included, in the order of the codes.

    With one end it is a threshold: `Range("income", high=40_000)`. Of an attribute with `Bins` the bins that hold the
    ends count whole; ends beyond the edges stand for the nearest one, and missing entries are in no range.

    Parameters
    ----------
    attribute : str
        Its name.
    low, high : int, float or label
        The first and the last value: codes, or labels where the attribute has labels, or numbers where it has bins.
        -inf and inf, the defaults: from the first value, to the last one.

    Examples
    --------
    >>> from fastdp import Range
    >>> Range("age", 2, 5)
    Range('age', 2, 5)
    """

    _attribute: str
    _low: Any
    _high: Any

    def __init__(self, attribute: str, low: Any = -inf, high: Any = inf) -> None:
        self._state(
            _attribute=one_value("attribute", attribute), _low=one_value("low", low), _high=one_value("high", high)
        )

    @property
    def attribute(self) -> str:
        """The attribute that is restricted."""
        return self._attribute

    @property
    def low(self) -> Any:
        """The first value."""
        return self._low

    @property
    def high(self) -> Any:
        """The last value."""
        return self._high

    def bind(self, domain: Domain) -> BoundProduct:
        """The codes from low to high.

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        BoundProduct
            The attributes that are restricted, each with a table of its allowed values.
        """
        check_domain(domain)
        position = domain.position(self._attribute)
        table = np.zeros(domain.sizes[position], bool)
        low, high = self._ends(domain, position)
        table[low : high + 1] = True
        return BoundProduct(domain, () if table.all() else ((position, table),))

    def _ends(self, domain: Domain, position: int) -> tuple[int, int]:
        if (bins := domain.bins[position]) is not None:
            first, last = bins.ends
            low = first if _is_open(self._low, -inf) else self._low
            high = last if _is_open(self._high, inf) else self._high
            return span_in_bins(bins, low, high, f"{self._attribute}: ")
        labels = domain.labels[position] or ()
        low = 0 if _is_open(self._low, -inf, labels) else domain.code(self._attribute, self._low)
        high = domain.sizes[position] - 1
        if not _is_open(self._high, inf, labels):
            high = domain.code(self._attribute, self._high)
        if low > high:
            raise ValueError(f"low={shown(self._low)}: must not come after high={shown(self._high)}")
        return low, high

    def __repr__(self) -> str:
        return f"Range({', '.join(map(display, (self._attribute, self._low, self._high)))})"

    def _key(self) -> Any:
        return self._attribute, _plain(self._low), _plain(self._high)


def _is_open(end: Any, none: float, labels: tuple[Any, ...] = ()) -> bool:
    """Whether this stands for no end, as it is no label itself."""
    return type(end) is float and end == none and end not in labels


# --- allowed values, as anybody gives them


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
    if not many:
        table[domain.code(name, values)] = True
        return table
    for i, value in enumerate(values):
        try:
            table[domain.code(name, value)] = True
        except ValueError:  # which shows it: it may be a record, where arguments were swapped
            rule = f"a code from 0 to {size - 1}" if coded else "a value of the attribute, as the domain declares it"
            raise ValueError(f"{name}[{i}]: must be {rule}") from None
    return table


def _frozen(values: Any) -> Any:
    """Allowed values as they were given, in a copy of their own."""
    if has(values, "__array__") and not isinstance(values, np.generic):  # a column of a data frame, too
        array = np.array(values)
        return frozen(array != 0 if array.dtype == np.bool_ else array)  # of True and False alone, whatever their bytes
    return list(values) if isinstance(values, Iterator) else copy(values)


def _as_given(values: Any) -> str:
    """Allowed values as an error repeats them: a value, or a few in a list."""
    if type(values) is list and len(values) <= 12:
        return f"[{', '.join(map(shown, values))}]"
    return shown(values)


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
    """A value that compares and hashes, whatever was given: what cannot be a value raises when it is bound."""
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, Hashable) else repr(value)


def _is_label(domain: Domain, name: str, value: Any) -> bool:
    try:
        domain.code(name, value)
    except ValueError:
        return False
    return True
