"""What every query is: the base class, which is the checklist for a new kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NoReturn, TypeVar, cast

import numpy as np

from ...records.domain import Domain
from ...support.checks import items_of
from ...support.frozen import frozen
from ...support.parameters import MOST_QUERIES
from ...support.public_paths import public_as
from ...support.shown import shown
from .bound_query import BoundProduct, BoundQuery, checked


@public_as("fastdp.answering")
class Query(ABC):
    """A value in [0, 1] of a record. Queries do not change, and are equal if they state the same.

    A new kind of query is a class of this one with a constructor, `bind`, `_key` and `__repr__`. `bind` makes one of
    the forms of bound_query.py, `BoundProduct` or `BoundCells`; weights, counts, workloads and mechanisms know these
    alone. Attributes are set in the constructor by `_state`, and never after it. What the `bind` of a class that is not
    fastdp's own returns is checked and copied before anything reads it.
    """

    keeps_bound: ClassVar[bool] = True
    """Whether a workload keeps what `bind` returns. False where that is an array over all cells which the query itself
    does not hold: fifty would fill the memory, so it is made whenever it is needed."""

    @abstractmethod
    def bind(self, domain: Domain) -> BoundQuery:
        """The query on a domain; a ValueError names what does not fit.

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        BoundQuery
            The allowed values of each attribute, or one value for each cell.
        """

    @abstractmethod
    def _key(self) -> Any:
        """What it states, as something hashable: queries of one kind with equal keys are equal."""

    @abstractmethod
    def __repr__(self) -> str: ...

    def _state(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._state(**{name: frozen(each) if isinstance(each, np.ndarray) else each for name, each in state.items()})

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"{name}: a query does not change; make another")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))


def one_value(name: str, given: Any) -> Any:
    """One value, as a label is; ValueError for a collection, which may be a column of records."""
    if isinstance(given, np.ndarray) and not given.ndim:
        return given[()]
    if not isinstance(given, Hashable):
        raise ValueError(f"{name}={shown(given)}: must be one value")
    return given


def display(value: Any) -> str:
    """A value as it is; of many in one, how many."""
    return shown(value) if isinstance(value, tuple | range | frozenset) and len(value) > 12 else repr(value)


def bind(query: Any, domain: Domain) -> BoundQuery:
    """The query on this domain, if it is one."""
    if not isinstance(query, Query):
        raise ValueError(f"query: type {type(query).__name__}: must be a query, such as Conjunction({{...}})")
    kind = type(query)
    bound = kind.bind(query, domain)
    return bound if kind in _OWN else checked(bound, domain)


class RecentlyBound:
    """What the products that were asked last are bound to on a domain: a service asks the same ones again and again.

    Known by identity: to compare queries takes longer than to bind one. Only of fastdp's own kinds, which never change,
    and no values of all cells, which would keep the memory of queries that nobody holds any more.
    """

    def __init__(self, domain: Domain) -> None:
        self._domain, self._kept = domain, dict[int, tuple[Any, BoundQuery]]()

    def of(self, query: Any) -> BoundQuery:
        """The query on this domain."""
        kept = self._kept.get(id(query))
        if kept is not None:  # it holds the query: no other one has its id
            return kept[1]
        bound = bind(query, self._domain)
        if type(bound) is BoundProduct and type(query) in _OWN:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[id(query)] = query, bound
        return bound


_MOST_KEPT = 64  # queries: their plans take some hundredths of what the weights of all cells take
_OWN: set[type] = set()
Q = TypeVar("Q", bound=type[Query])


def own(kind: Q) -> Q:
    """Let the `bind` of a class of ours be taken at its word: what it binds to, nobody can change."""
    _OWN.add(kind)
    return kind


def as_sequence(queries: Any) -> Sequence[Any]:
    """Several queries as a sequence, whatever iterable they were given in."""
    if isinstance(queries, Query):
        raise ValueError(f"queries={shown(queries)}: must be several queries, such as a list of them")
    if isinstance(queries, str | bytes | Mapping) or not isinstance(queries, Iterable):
        raise ValueError(f"queries: type {type(queries).__name__}: must be a sequence of queries")
    if type(queries) in (list, tuple) or type(queries).__module__.partition(".")[0] == "fastdp":
        return cast("Sequence[Any]", queries)
    return items_of("queries", queries, "a sequence of queries", most=MOST_QUERIES)
