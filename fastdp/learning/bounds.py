"""The error bounds of the learners and their inverses, from public numbers. Public as `fastdp.bounds`.

Functions are named after the learners and take their parameters, with the number of records and of columns in place of
the data. A name with `_n` behind it solves for the number of records, one with `_epsilon` for epsilon.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from ..privacy.guarantees import Neighbors
from ..records.number_line import bits_of_each
from ..support import parameters
from ..support.checks import flag, integer, large_integer, one_of
from ..support.parameters import MOST_DIMENSIONS
from ..support.search import in_reach, least_float
from . import boxes, conjunctions
from .box_parameters import BoxProblem
from .conjunction_parameters import ConjunctionProblem
from .finite_class import excess
from .methods import choose_method, least_records
from .privacy_parameters import PrivacyParameters


def learn_conjunction(
    n: int,
    d: int,
    *,
    k: int | None = None,
    epsilon: float,
    delta: float = 0.0,
    method: str = "auto",
    realizable: bool = False,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound the share of records that the result of `learn_conjunction` is wrong about.

    With probability 1 - beta, if some conjunction of at most k literals is right about all records; with "exhaustive"
    also, for any labels, how much more than the least of any.

    Parameters
    ----------
    n : int
        The number of records.
    d : int
        The number of columns.
    k : int, optional
        The largest number of literals; None for d.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        0 for pure differential privacy.
    method : {"auto", "exhaustive", "search", "peel", "greedy", "counts"}
        As in `learn_conjunction`; "search" has no such bound.
    realizable : bool
        Whether some conjunction is asserted to be right about all records: then "auto" is the method with the least
        bound, and no method pays for a guard.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        1.0 where there is no error bound.

    Examples
    --------
    >>> import fastdp
    >>> round(fastdp.bounds.learn_conjunction(100_000, 100, k=3, epsilon=1.0), 5)
    0.00034
    >>> peel = {"method": "peel", "realizable": True, "delta": 1e-6}
    >>> round(fastdp.bounds.learn_conjunction(1_000_000, 100, k=3, epsilon=1.0, **peel), 4)
    0.015
    """
    problem = _conjunction(n, d, k, method, PrivacyParameters.of(epsilon, delta, beta, neighbors))
    realizable = flag("realizable", realizable)
    return choose_method(conjunctions.PRIVATE, method, problem, realizable=realizable).bounds(problem.n).error


def learn_conjunction_n(
    d: int,
    *,
    k: int | None = None,
    error: float,
    epsilon: float,
    delta: float = 0.0,
    method: str = "auto",
    realizable: bool = False,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute how many records make the error bound of `learn_conjunction` small enough, to a part in a thousand.

    Parameters
    ----------
    d : int
        The number of columns.
    k : int, optional
        The largest number of literals; None for d.
    error : float in (0, 1)
        The share of records that the result may be wrong about.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        0 for pure differential privacy.
    method : {"auto", "exhaustive", "search", "peel", "greedy", "counts"}
        As in `learn_conjunction`; "search" has no such bound.
    realizable : bool
        Whether some conjunction is asserted to be right about all records: then "auto" is the method with the least
        bound, and no method pays for a guard.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int

    Examples
    --------
    >>> import fastdp
    >>> n = fastdp.bounds.learn_conjunction_n(100, k=3, error=0.05, epsilon=1.0)
    >>> 500 < n < 1_000
    True
    """
    problem = _conjunction(1, d, k, method, PrivacyParameters.of(epsilon, delta, beta, neighbors))
    realizable = flag("realizable", realizable)
    return least_records(conjunctions.PRIVATE, method, problem, error, realizable=realizable)


def learn_conjunction_epsilon(
    n: int,
    d: int,
    *,
    k: int | None = None,
    error: float,
    delta: float = 0.0,
    method: str = "auto",
    realizable: bool = False,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `learn_conjunction` has this error bound, to a part in a thousand.

    Parameters
    ----------
    n : int
        The number of records.
    d : int
        The number of columns.
    k : int, optional
        The largest number of literals; None for d.
    error : float in (0, 1)
        The share of records that the result may be wrong about.
    delta : float in [0, 1)
        0 for pure differential privacy.
    method : {"auto", "exhaustive", "search", "peel", "greedy", "counts"}
        As in `learn_conjunction`; "search" has no such bound.
    realizable : bool
        Whether some conjunction is asserted to be right about all records: then "auto" is the method with the least
        bound, and no method pays for a guard.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float

    Examples
    --------
    >>> import fastdp
    >>> fastdp.bounds.learn_conjunction_epsilon(100_000, 20, k=2, error=0.01, method="exhaustive") < 1
    True
    """
    return _least_epsilon(
        lambda epsilon: learn_conjunction(
            n,
            d,
            k=k,
            epsilon=epsilon,
            delta=delta,
            method=method,
            realizable=realizable,
            beta=beta,
            neighbors=neighbors,
        ),
        error,
    )


def _conjunction(n: Any, d: Any, k: Any, method: Any, privacy: PrivacyParameters) -> ConjunctionProblem:
    one_of("method", method, (*conjunctions.PRIVATE, "auto"))
    n, d = large_integer("n", n, least=1), integer("d", d, least=1)
    return ConjunctionProblem(n, d, d if k is None else integer("k", k, least=1, most=d), privacy)


def learn_box(
    n: int,
    d: int,
    *,
    domain_bits: int | Sequence[int] = 64,
    epsilon: float,
    delta: float = 0.0,
    method: str = "auto",
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound the share of records that the result of `learn_box` is wrong about.

    With probability 1 - beta, if some box is right about all records.

    Parameters
    ----------
    n : int
        The number of records.
    d : int
        The number of columns.
    domain_bits : int or sequence of int
        The number of bits of the domain of all columns, or of each.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        0 for pure differential privacy.
    method : {"auto", "peel", "interior-point", "exponential"}
        As in `learn_box`.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        1.0 where there is no error bound.

    Examples
    --------
    >>> import fastdp
    >>> round(fastdp.bounds.learn_box(1_000_000, 5, epsilon=1.0, delta=1e-6), 4)
    0.0137
    """
    problem = _box(n, d, domain_bits, method, PrivacyParameters.of(epsilon, delta, beta, neighbors))
    return min(1.0, choose_method(boxes.PRIVATE, method, problem).bound / problem.n)


def learn_box_n(
    d: int,
    *,
    error: float,
    domain_bits: int | Sequence[int] = 64,
    epsilon: float,
    delta: float = 0.0,
    method: str = "auto",
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute how many records make the error bound of `learn_box` small enough, to a part in a thousand.

    Parameters
    ----------
    d : int
        The number of columns.
    error : float in (0, 1)
        The share of records that the result may be wrong about.
    domain_bits : int or sequence of int
        The number of bits of the domain of all columns, or of each.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        0 for pure differential privacy.
    method : {"auto", "peel", "interior-point", "exponential"}
        As in `learn_box`.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int

    Examples
    --------
    >>> import fastdp
    >>> n = fastdp.bounds.learn_box_n(5, error=0.05, epsilon=1.0, delta=1e-6)
    >>> 200_000 < n < 400_000
    True
    """
    problem = _box(1, d, domain_bits, method, PrivacyParameters.of(epsilon, delta, beta, neighbors))
    return least_records(boxes.PRIVATE, method, problem, error)


def learn_box_epsilon(
    n: int,
    d: int,
    *,
    error: float,
    domain_bits: int | Sequence[int] = 64,
    delta: float = 0.0,
    method: str = "auto",
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `learn_box` has this error bound, to a part in a thousand.

    Parameters
    ----------
    n : int
        The number of records.
    d : int
        The number of columns.
    error : float in (0, 1)
        The share of records that the result may be wrong about.
    domain_bits : int or sequence of int
        The number of bits of the domain of all columns, or of each.
    delta : float in [0, 1)
        0 for pure differential privacy.
    method : {"auto", "peel", "interior-point", "exponential"}
        As in `learn_box`.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float

    Examples
    --------
    >>> import fastdp
    >>> fastdp.bounds.learn_box_epsilon(100_000, 1, error=0.01) < 1
    True
    """
    return _least_epsilon(
        lambda epsilon: learn_box(
            n, d, domain_bits=domain_bits, epsilon=epsilon, delta=delta, method=method, beta=beta, neighbors=neighbors
        ),
        error,
    )


def _box(n: Any, d: Any, domain_bits: Any, method: Any, privacy: PrivacyParameters) -> BoxProblem:
    one_of("method", method, ("auto", *boxes.PRIVATE))
    n, d = large_integer("n", n, least=1), integer("d", d, least=1, most=MOST_DIMENSIONS)
    return BoxProblem(n, bits_of_each(domain_bits, d), privacy)


def learn_from_class(
    n: int,
    candidates: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound by how much the share of errors of `learn_from_class` exceeds the least of the class.

    With probability 1 - beta, whatever the labels.

    Parameters
    ----------
    n : int
        The number of records.
    candidates : int
        The number of hypotheses.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        0 for pure differential privacy.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
        1.0 where there is no error bound.

    Examples
    --------
    >>> import fastdp
    >>> round(fastdp.bounds.learn_from_class(10_000, 101, epsilon=1.0), 5)
    0.00152
    """
    n, privacy = large_integer("n", n, least=1), PrivacyParameters.of(epsilon, delta, beta, neighbors)
    return min(1.0, excess(privacy, large_integer("candidates", candidates, least=1)) / n)


def learn_from_class_n(
    candidates: int,
    *,
    error: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute how many records make the excess of `learn_from_class` small enough.

    Parameters
    ----------
    candidates : int
        The number of hypotheses.
    error : float in (0, 1)
        By how much the share of errors may exceed the least of the class.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        0 for pure differential privacy.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int

    Examples
    --------
    >>> import fastdp
    >>> fastdp.bounds.learn_from_class_n(101, error=0.01, epsilon=1.0)
    1523
    """
    privacy = PrivacyParameters.of(epsilon, delta, beta, neighbors)
    return ceil(excess(privacy, large_integer("candidates", candidates, least=1)) / parameters.error_share(error))


def learn_from_class_epsilon(
    n: int,
    candidates: int,
    *,
    error: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `learn_from_class` has this excess, to a part in a thousand.

    Parameters
    ----------
    n : int
        The number of records.
    candidates : int
        The number of hypotheses.
    error : float in (0, 1)
        By how much the share of errors may exceed the least of the class.
    delta : float in [0, 1)
        0 for pure differential privacy.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float

    Examples
    --------
    >>> import fastdp
    >>> round(fastdp.bounds.learn_from_class_epsilon(1523, 101, error=0.01), 2)
    1.0
    """
    return _least_epsilon(
        lambda epsilon: learn_from_class(n, candidates, epsilon=epsilon, delta=delta, beta=beta, neighbors=neighbors),
        error,
    )


def _least_epsilon(bound: Callable[[float], float], error: Any) -> float:
    error = parameters.error_share(error)
    return in_reach(
        "error", error,
        lambda: least_float(lambda e: bound(e) <= error, tolerance=1e-3, smallest=2.0**-40, largest=2.0**20),
        " with an epsilon of at most 2^20",
    )  # fmt: skip
