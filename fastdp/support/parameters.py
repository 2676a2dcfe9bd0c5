"""The parameters that public functions share, each declared once: its name, what it takes, which way it is rounded.

A declaration is called with what the user gave and returns what mechanisms compute with, or raises a ValueError that
names the parameter, its value and the rule. `takes` is the text that stands behind the parameter's name in every
docstring; a test compares them, so that signatures, errors and documentation cannot disagree. What belongs to one
function alone is checked there, by the functions of checks.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, Generic, Literal, TypeVar

from . import checks

T = TypeVar("T")


@dataclass(frozen=True)
class Parameter(Generic[T]):
    """A parameter under one name, wherever it occurs."""

    name: str
    takes: str
    check: Callable[[str, Any], T]

    def __call__(self, value: Any) -> T:
        return self.check(self.name, value)


# The largest counts: more would take the memory or the hours of any machine, so they are refused before work begins.
# Where what fits depends on the machine, checks.check_fits compares an estimate with its memory.
MOST_ATTRIBUTES = 2**14  # of a domain
MOST_LABELS = 2**22  # of an attribute: objects of Python, 100 bytes each
MOST_BINS = 2**20  # of a column of numbers
MOST_TABLES = 2**22  # of a workload: objects of Python, 250 bytes each
MOST_TABLE_CELLS = 2**40  # of all tables of a workload together
MOST_QUERIES = 2**22  # of a list: objects of Python, 250 bytes each
MOST_DIMENSIONS = 2**24  # of points, vectors and records that are numbers
MOST_STEPS = 2**24  # of a descent: 20 microseconds each
MOST_DRAWS = 2**27  # of one call of the exponential mechanism: half a minute, 1 GiB
MOST_CHOSEN = 2**24  # k of top-k: 100 bytes each
MOST_CANDIDATES = 2**40  # whose scores a function produces: half an hour
MOST_DIGITS = 2**12  # bits of a number that is written out

NEIGHBORS = ("replace-one", "add-remove")
Outside = Literal["raise", "clip"]  # of records outside the domain: a DomainError, or the nearest value
OUTSIDE = ("raise", "clip")
Missing = Literal["raise", "skip"]  # what becomes of missing entries: a DomainError, or they are left out
MISSING = ("raise", "skip")


epsilon: Parameter[float] = Parameter("epsilon", "float > 0", partial(checks.positive, toward=0))
least_epsilon: Parameter[float] = Parameter("epsilon", "float >= 0", partial(checks.non_negative, toward=inf))
least_rho: Parameter[float] = Parameter("rho", "float >= 0", partial(checks.non_negative, toward=inf))
rho: Parameter[float] = Parameter("rho", "float > 0", partial(checks.positive, toward=0))
delta: Parameter[float] = Parameter("delta", "float in (0, 1)", partial(checks.probability, toward=0))
delta_or_none: Parameter[float] = Parameter("delta", "float in [0, 1)", checks.small_delta)
beta: Parameter[float] = Parameter("beta", "float in (0, 1)", partial(checks.probability, toward=0))
sensitivity: Parameter[float] = Parameter("sensitivity", "float > 0", partial(checks.positive, toward=inf))
integer_sensitivity: Parameter[int] = Parameter("sensitivity", "int >= 1", partial(checks.integer, least=1))
error: Parameter[float] = Parameter("error", "float > 0", partial(checks.positive, toward=0))
error_share: Parameter[float] = Parameter("error", "float in (0, 1)", partial(checks.probability, toward=0))
resolution: Parameter[float | None] = Parameter("resolution", "power of two, optional", checks.optional_power_of_two)
neighbors: Parameter[Any] = Parameter(
    "neighbors", '{"replace-one", "add-remove"}', partial(checks.one_of, choices=NEIGHBORS)
)

outside: Parameter[Outside] = Parameter("outside", '{"raise", "clip"}', partial(checks.one_of, choices=OUTSIDE))

DECLARED: tuple[Parameter[Any], ...] = (
    epsilon, least_epsilon, rho, least_rho, delta, delta_or_none, beta, sensitivity, integer_sensitivity,
    error, error_share, resolution, neighbors, outside,
)  # fmt: skip


def missing(value: Any) -> Missing:
    """Not among those: of `Bins` it is a flag."""
    found: Missing = checks.one_of("missing", value, MISSING)
    return found
