"""Domains and records of fastdp as those of mbi, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.domain import Domain, check_domain
from ...records.encoding import encode
from ...support.boundary import boundary
from ...support.parameters import Outside
from .library import need_mbi


def to_domain(domain: Domain) -> Any:
    """The `mbi.Domain` of a domain, with its labels where there are any.

    Parameters
    ----------
    domain : fastdp.Domain
        The domain.

    Returns
    -------
    mbi.Domain
        The same attributes, with the same numbers of values.
    """
    check_domain(domain)
    labels = None
    if any(of is not None for of in domain.labels):
        labels = [tuple(range(n)) if of is None else of for n, of in zip(domain.sizes, domain.labels, strict=True)]
    return need_mbi().Domain(domain.names, domain.sizes, labels=labels)


def from_domain(domain: Any) -> Domain:
    """The domain of an `mbi.Domain`.

    Parameters
    ----------
    domain : mbi.Domain
        A domain whose attributes have strings as names.

    Returns
    -------
    fastdp.Domain
        The same attributes, with labels where they are not 0, 1, ...
    """
    if not isinstance(domain, need_mbi().Domain):
        raise ValueError(f"domain: type {type(domain).__name__}: must be an mbi.Domain")
    labels = domain.labels or [tuple(range(size)) for size in domain.shape]
    values = [size if of == tuple(range(size)) else of for size, of in zip(domain.shape, labels, strict=True)]
    return Domain(dict(zip(domain.attributes, values, strict=True)))


@boundary
def to_dataset(data: Any, domain: Domain, *, outside: Outside = "raise") -> Any:
    """Records as an `mbi.Dataset` of codes, without a copy where codes are small integers.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files or mapping
        The records, whatever fastdp reads.
    domain : fastdp.Domain
        The values that they may have.
    outside : {"raise", "clip"}
        What becomes of records outside the domain: a DomainError, or the value that `Domain` states.

    Returns
    -------
    mbi.Dataset
        The codes, a column for each attribute.
    """
    made = to_domain(domain)
    return need_mbi().Dataset(dict(zip(domain.names, encode(data, domain, outside), strict=True)), made)


def from_dataset(dataset: Any) -> tuple[Mapping[str, NDArray[Any]], Domain]:
    """The records and the domain of an `mbi.Dataset`, as fastdp takes them.

    Parameters
    ----------
    dataset : mbi.Dataset
        A dataset without weights, as every record counts once.

    Returns
    -------
    (mapping, fastdp.Domain)
        A column for each attribute, of labels where it has some, and the domain.
    """
    if not isinstance(dataset, need_mbi().Dataset):
        raise ValueError(f"dataset: type {type(dataset).__name__}: must be an mbi.Dataset")
    if dataset.weights is not None and not (np.asarray(dataset.weights) == 1).all():
        raise ValueError("dataset: must not be weighted: every record counts once")
    domain = from_domain(dataset.domain)
    codes = encode({name: np.asarray(dataset.data[name]) for name in domain.names}, _coded(domain))
    return {name: domain.decode_column(j, codes[j]) for j, name in enumerate(domain.names)}, domain


def _coded(domain: Domain) -> Domain:
    """The same attributes, with codes for labels."""
    return Domain(dict(zip(domain.names, domain.sizes, strict=True)))
