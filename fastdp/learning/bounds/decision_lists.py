"""The error bounds of `learn_decision_list`, and their inverses."""

from __future__ import annotations

from math import ceil

from ...privacy.guarantees import Neighbors
from ...support import parameters
from ...support.checks import integer, large_integer
from ..privacy_parameters import PrivacyParameters
from ..tree_growth import MOST_RULES, prepare_list
from .inverses import least_epsilon


def learn_decision_list(
    n: int,
    *,
    rules: int = 3,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound by how much the share of errors of `learn_decision_list` exceeds the least of any answers to its rules.

    With probability 1 - beta, whatever the labels. "true" and "false" are such answers.

    Parameters
    ----------
    n : int
        The number of records.
    rules : int from 1 to 32
        How many rules there are at most.
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
    >>> round(fastdp.bounds.learn_decision_list(100_000, epsilon=1.0), 4)
    0.0074
    """
    n, privacy = large_integer("n", n, least=1), PrivacyParameters.of(epsilon, delta, beta, neighbors)
    return min(1.0, _excess(rules, privacy) / n)


def learn_decision_list_n(
    *,
    rules: int = 3,
    error: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute how many records make the excess of `learn_decision_list` small enough.

    Parameters
    ----------
    rules : int from 1 to 32
        How many rules there are at most.
    error : float in (0, 1)
        By how much the share of errors may exceed the least of any answers to its rules.
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
    >>> fastdp.bounds.learn_decision_list_n(error=0.01, epsilon=1.0)
    74400
    """
    privacy = PrivacyParameters.of(epsilon, delta, beta, neighbors)
    return ceil(_excess(rules, privacy) / parameters.error_share(error))


def learn_decision_list_epsilon(
    n: int,
    *,
    rules: int = 3,
    error: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `learn_decision_list` has this excess, to a part in a thousand.

    Parameters
    ----------
    n : int
        The number of records.
    rules : int from 1 to 32
        How many rules there are at most.
    error : float in (0, 1)
        By how much the share of errors may exceed the least of any answers to its rules.
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
    >>> round(fastdp.bounds.learn_decision_list_epsilon(100_000, error=0.02), 2)
    0.37
    """
    return least_epsilon(
        lambda epsilon: learn_decision_list(
            n, rules=rules, epsilon=epsilon, delta=delta, beta=beta, neighbors=neighbors
        ),
        error,
    )


def _excess(rules: int, privacy: PrivacyParameters) -> float:
    """In records: neither their number nor that of the columns matters."""
    return prepare_list(integer("rules", rules, least=1, most=MOST_RULES), privacy).excess
