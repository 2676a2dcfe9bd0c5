"""What several subjects of the answering room work on: domains, cells, records, conjunctions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fastdp import Conjunction, Domain
from fastdp.answering.queries import marginals

BINARY = Domain.binary(20)
CELLS = 1 << 24
WAYS = 3  # attributes of a table or a conjunction
QUERIES, FEW = 1_000, 60  # conjunctions; tables or queries of a rival that takes long
RATE = 1e-3  # of an update: after some 590,000 the weights would be kept as logarithms, which is another matter
RECORDS, SAMPLED = 100_000, 1_000_000
THREE = (0, 1, 1)  # the values of three literals
HIGHEST, LOWEST = (21, 22, 23), (0, 1, 2, 3, 4, 5)  # bits of the cell number


def counts(n: int) -> Any:
    return np.random.default_rng(0).integers(0, 1000, n)


def power_below(n: int) -> int:
    return 1 << (n.bit_length() - 1)


def binary(n: int) -> Domain:
    """The largest binary domain of at most n cells."""
    return Domain.binary(n.bit_length() - 1)


def cell_weights(cells: int) -> Any:
    return 1.0 + counts(cells)


def cell_mask(cells: int) -> Any:
    return counts(cells) % 2 == 1


def cell_values(cells: int) -> Any:
    """Eighths."""
    return counts(cells) % 9 / 8


def literals(domain: Domain, bits: tuple[int, ...]) -> Conjunction:
    """A literal on each of these bits of the cell number, or the next one below in a domain that has not so many."""
    d = len(domain)
    return Conjunction({f"v{d - min(bit, d - len(bits) + i)}": THREE[i % 3] for i, bit in enumerate(bits)})


def conjunction_mask(domain: Domain, query: Conjunction) -> Any:
    mask = np.zeros(domain.sizes, bool)
    mask[slices_of(domain, query)] = True
    return mask.reshape(-1)


def slices_of(domain: Domain, query: Conjunction) -> Any:
    return tuple(query.allowed.get(name, slice(None)) for name in domain.names)


def conjunctions(domain: Domain, k: int) -> list[Any]:
    """k three-way conjunctions, as far apart as they can be."""
    every = marginals(domain, WAYS)
    k = min(k, len(every))
    return [every[i * len(every) // k] for i in range(k)]


def of_literals(bits: tuple[int, ...]) -> Callable[[int], Any]:
    return lambda n: conjunction_mask(binary(n), literals(binary(n), bits))
