"""The error bounds of `learn_conjunction`, and their inverses."""

from __future__ import annotations

from typing import Any

from ...privacy.guarantees import Neighbors
from ...support.checks import flag, integer, large_integer, one_of
from .. import conjunctions
from ..conjunction_parameters import ConjunctionProblem
from ..methods import error_bound, least_records
from ..privacy_parameters import PrivacyParameters
from .inverses import least_epsilon


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
    return error_bound(conjunctions.PRIVATE, method, problem, realizable=realizable)


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
    return least_epsilon(
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
