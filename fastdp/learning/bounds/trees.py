"""The error bounds of `learn_tree`, and their inverses."""

from __future__ import annotations

from math import ceil

from ...privacy.guarantees import Neighbors
from ...support import parameters
from ...support.checks import integer, large_integer
from ..privacy_parameters import PrivacyParameters
from ..tree_growth import MOST_DEPTH, TreeProblem, prepare_tree
from .inverses import least_epsilon


def learn_tree(
    n: int,
    *,
    depth: int = 3,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound by how much the share of errors of `learn_tree` exceeds the least of any answers to its questions.

    With probability 1 - beta, whatever the labels. "true" and "false" are such answers.

    Parameters
    ----------
    n : int
        The number of records.
    depth : int from 1 to 8
        How many questions a path has at most.
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
    >>> round(fastdp.bounds.learn_tree(100_000, epsilon=1.0), 4)
    0.0166
    """
    n, privacy = large_integer("n", n, least=1), PrivacyParameters.of(epsilon, delta, beta, neighbors)
    return min(1.0, _excess(depth, privacy) / n)


def learn_tree_n(
    *,
    depth: int = 3,
    error: float,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute how many records make the excess of `learn_tree` small enough.

    Parameters
    ----------
    depth : int from 1 to 8
        How many questions a path has at most.
    error : float in (0, 1)
        By how much the share of errors may exceed the least of any answers to its questions.
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
    >>> fastdp.bounds.learn_tree_n(error=0.01, epsilon=1.0)
    166400
    """
    privacy = PrivacyParameters.of(epsilon, delta, beta, neighbors)
    return ceil(_excess(depth, privacy) / parameters.error_share(error))


def learn_tree_epsilon(
    n: int,
    *,
    depth: int = 3,
    error: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute the least epsilon with which `learn_tree` has this excess, to a part in a thousand.

    Parameters
    ----------
    n : int
        The number of records.
    depth : int from 1 to 8
        How many questions a path has at most.
    error : float in (0, 1)
        By how much the share of errors may exceed the least of any answers to its questions.
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
    >>> round(fastdp.bounds.learn_tree_epsilon(100_000, error=0.02), 2)
    0.83
    """
    return least_epsilon(
        lambda epsilon: learn_tree(n, depth=depth, epsilon=epsilon, delta=delta, beta=beta, neighbors=neighbors),
        error,
    )


def _excess(depth: int, privacy: PrivacyParameters) -> float:
    """In records: neither their number nor that of the columns matters."""
    return prepare_tree(TreeProblem(1, 1, integer("depth", depth, least=1, most=MOST_DEPTH), privacy)).excess
