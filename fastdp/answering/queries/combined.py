"""Queries that are made of others, and of the values of a numeric column: one value for each cell of a domain."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.domain import Domain, check_domain
from ...support.checks import finite, items_of, numbers_array
from ...support.parameters import MOST_QUERIES
from ...support.public_paths import public_as
from ...support.shown import shown
from .bound_query import GRID_BITS, BoundCells, BoundProduct, BoundQuery, check_cells
from .product import Product
from .query import Query, bind, display, one_value, own

_SLACK = 2.0**-20  # of sums of floats beyond 0 and 1


@own
@public_as("fastdp")
class Scaled(Query):
    """The value of a numeric column between bounds: 0 at `low`, 1 at `high`, and 0 outside of a part of the records.

    Its average over the records, times `high - low`, is a bounded sum divided by their number. The value of a record is
    the label of the attribute: a number, the middle of a bin, the code itself where there are no labels; beyond the
    bounds it is the bound. A missing entry counts 0.

    Parameters
    ----------
    attribute : str
        Its name.
    low, high : float
        The bounds. Public: must not be read off the records.
    among : Product, Conjunction or Range, optional
        Which records count; by default all.

    Raises
    ------
    ValueError
        "low=5.0: must be below high=5.0".

    Examples
    --------
    >>> from fastdp import Domain, Product, Scaled
    >>> domain = Domain(age=[20, 40, 60], sex=["f", "m"])
    >>> Scaled("age", 20, 60, among=Product({"sex": "f"})).bind(domain).values.tolist()
    [0.0, 0.0, 0.5, 0.0, 1.0, 0.0]
    """

    keeps_bound = False

    _attribute: str
    _low: float
    _high: float
    _among: Query | None

    def __init__(self, attribute: str, low: float, high: float, among: Query | None = None) -> None:
        least, most = finite("low", low), finite("high", high)
        if not least < most:
            raise ValueError(f"low={shown(low)}: must be below high={shown(high)}")
        finite("high - low", most - least)
        self._state(_attribute=one_value("attribute", attribute), _low=least, _high=most, _among=checked_part(among))

    @property
    def attribute(self) -> str:
        """The attribute whose value it is."""
        return self._attribute

    @property
    def low(self) -> float:
        """What counts 0."""
        return self._low

    @property
    def high(self) -> float:
        """What counts 1."""
        return self._high

    @property
    def among(self) -> Query | None:
        """Which records count; None for all."""
        return self._among

    def bind(self, domain: Domain) -> BoundCells:
        """The scaled value of each cell, rounded to a multiple of 2^-16.

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        BoundCells
            The value for each cell.
        """
        check_cells(domain)
        position = domain.position(self._attribute)
        steps = self._steps(numbers_of(domain, position))
        cube = np.zeros(domain.sizes)
        cube += steps.reshape([-1 if p == position else 1 for p in range(len(domain))])
        values = cube.reshape(-1)
        if self._among is not None:
            values *= values_of(bind(self._among, domain))
        np.multiply(values, 2.0**GRID_BITS, out=values)
        return BoundCells(domain, np.multiply(np.rint(values, out=values), 2.0**-GRID_BITS, out=values))

    def _steps(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each value counts; NaN stands for a missing one."""
        scaled = (np.clip(numbers, self._low, self._high) - self._low) / (self._high - self._low)
        steps: NDArray[np.float64] = np.nan_to_num(scaled)
        return steps

    def part(self, domain: Domain) -> Query:
        """The records that its average is over: those of `among` that have a value.

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        Query
            0 or 1 for each record.
        """
        check_domain(domain)
        known = ~np.isnan(numbers_of(domain, domain.position(self._attribute)))
        if known.all():
            return Product({}) if self._among is None else self._among
        return _Known(self._attribute, self._low, self._high, self._among)

    def __repr__(self) -> str:
        among = "" if self._among is None else f", among={self._among!r}"
        return f"Scaled({display(self._attribute)}, {self._low!r}, {self._high!r}{among})"

    def _key(self) -> Any:
        return self._attribute, self._low, self._high, self._among


@own
class _Known(Scaled):
    """Whether there is a value."""

    def _steps(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        return (~np.isnan(numbers)).astype(np.float64)


@own
@public_as("fastdp")
class Combination(Query):
    """A constant and a weighted sum of other queries, whose value is in [0, 1] everywhere: rounded to 2^-16.

    One query costs less noise than several whose answers are added. The complement of a query is
    `Combination([query], [-1], constant=1)`.

    Parameters
    ----------
    queries : iterable of Query
        What is added.
    weights : array_like of float, optional
        One for each; by default 1.
    constant : float
        What is added to the sum.

    Raises
    ------
    ValueError
        "weights: 2 of them: must be one for each of 3 queries"; when it is asked, if a value is not in [0, 1].

    Examples
    --------
    >>> from fastdp import Combination, Conjunction, Domain
    >>> either = Combination([Conjunction({"age": 0}), Conjunction({"age": 2})])
    >>> either.bind(Domain(age=3)).values.tolist()
    [1.0, 0.0, 1.0]
    >>> Combination([either], [-0.5], constant=1).bind(Domain(age=3)).values.tolist()
    [0.5, 1.0, 0.5]
    """

    keeps_bound = False

    _queries: tuple[Query, ...]
    _weights: tuple[float, ...]
    _constant: float

    def __init__(self, queries: Iterable[Query], weights: Any = None, *, constant: float = 0.0) -> None:
        given = tuple(items_of("queries", queries, "queries", most=MOST_QUERIES))
        if not given or not all(isinstance(query, Query) for query in given):
            raise ValueError("queries: must be at least one query, and nothing else")
        numbers = np.ones(len(given)) if weights is None else numbers_array("weights", weights).astype(np.float64)
        if numbers.shape != (len(given),):
            raise ValueError(f"weights: shape {numbers.shape}: must be one for each of {len(given)} queries")
        if not np.isfinite(numbers).all():
            raise ValueError("weights: must be finite")
        self._state(_queries=given, _weights=tuple(numbers.tolist()), _constant=finite("constant", constant))

    @property
    def queries(self) -> tuple[Query, ...]:
        """What is added."""
        return self._queries

    @property
    def weights(self) -> tuple[float, ...]:
        """One for each query."""
        return self._weights

    @property
    def constant(self) -> float:
        """What is added to the sum."""
        return self._constant

    def bind(self, domain: Domain) -> BoundCells:
        """The sum for each cell; ValueError where it is not in [0, 1].

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        BoundCells
            The value for each cell.
        """
        check_cells(domain)
        values = np.full(domain.size, self._constant)
        for query, weight in zip(self._queries, self._weights, strict=True):
            values += weight * values_of(bind(query, domain))
        if not (values.min() >= -_SLACK and values.max() <= 1 + _SLACK):
            raise ValueError(
                f"weights: values from {values.min():.4g} to {values.max():.4g}: must lie in [0, 1] for every record"
            )
        return BoundCells(domain, np.rint(np.clip(values, 0.0, 1.0) * 2.0**GRID_BITS) / 2.0**GRID_BITS)

    def __repr__(self) -> str:
        constant = f", constant={self._constant!r}" if self._constant else ""
        return f"Combination({list(self._queries)!r}, {list(self._weights)!r}{constant})"

    def _key(self) -> Any:
        return self._queries, self._weights, self._constant


def checked_part(among: Any) -> Query | None:
    """Which records count; ValueError unless it is a query, or None."""
    if among is not None and not isinstance(among, Query):
        raise ValueError(f"among: type {type(among).__name__}: must be a query, such as Product({{...}}), or None")
    return among


def values_of(bound: BoundQuery) -> NDArray[np.float64]:
    """The value of a query in every cell."""
    if isinstance(bound, BoundCells):
        return bound.values.astype(np.float64, copy=False)
    assert isinstance(bound, BoundProduct)
    tables = dict(bound.allowed)
    cube = np.ones(bound.domain.sizes)
    for position, table in tables.items():
        cube *= table.reshape([-1 if p == position else 1 for p in range(len(bound.domain))])
    return cube.reshape(-1)


def numbers_of(domain: Domain, position: int) -> NDArray[np.float64]:
    """What the values of an attribute stand for; NaN for the label None."""
    labels, name = domain.labels[position], domain.names[position]
    if labels is None:
        return np.arange(domain.sizes[position], dtype=np.float64)
    if not all(label is None or (isinstance(label, int | float) and not isinstance(label, bool)) for label in labels):
        raise ValueError(f"attribute={name!r}: must have labels that are numbers, or bins, or none")
    return np.array([np.nan if label is None else float(label) for label in labels])
