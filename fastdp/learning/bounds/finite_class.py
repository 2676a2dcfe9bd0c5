"""The error bounds of `learn_from_class`, and their inverses."""

from __future__ import annotations

from math import ceil

from ...privacy.guarantees import Neighbors
from ...support import parameters
from ...support.checks import large_integer
from ..finite_class import excess
from ..privacy_parameters import PrivacyParameters
from .inverses import least_epsilon


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
    return least_epsilon(
        lambda epsilon: learn_from_class(n, candidates, epsilon=epsilon, delta=delta, beta=beta, neighbors=neighbors),
        error,
    )
