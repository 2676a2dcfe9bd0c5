"""Queries: values in [0, 1] of a record, whose averages over the records are what is asked for.

query.py has the base class, which is the checklist for a new kind; bound_query.py the two forms that every query takes
on a domain, with all that weights and counts are read and updated by; each other file a kind of queries.
"""

from .cell_values import Linear, Mask
from .combined import Combination, Scaled
from .marginals import Marginals, marginals
from .predicate import Predicate
from .product import Conjunction, Product, Range
from .query import Query

__all__ = [
    "Combination", "Conjunction", "Linear", "Marginals", "Mask", "Predicate", "Product", "Query", "Range", "Scaled",
    "marginals",
]  # fmt: skip
