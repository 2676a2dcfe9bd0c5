"""The error bounds of `learn_box`, and their inverses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...privacy.guarantees import Neighbors
from ...records.number_line import bits_of_each
from ...support.checks import flag, integer, large_integer, one_of
from ...support.parameters import MOST_DIMENSIONS
from .. import boxes
from ..box_parameters import BoxProblem
from ..methods import error_bound, least_records
from ..privacy_parameters import PrivacyParameters
from .inverses import least_epsilon


def learn_box(
    n: int,
    d: int,
    *,
    domain_bits: int | Sequence[int] = 64,
    epsilon: float,
    delta: float = 0.0,
    method: str = "auto",
    realizable: bool = False,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound the share of records that the result of `learn_box` is wrong about.

    With probability 1 - beta, if some box is right about all records; with "exponential" also, for any labels, how much
    more than the least of any.

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
    method : {"auto", "exponential", "grid", "peel", "interior-point"}
        As in `learn_box`; "grid" has no such bound.
    realizable : bool
        Whether some box is asserted to be right about all records: then "auto" is the method with the least bound, and
        no method pays for a guard.
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
    >>> round(fastdp.bounds.learn_box(1_000_000, 5, epsilon=1.0, delta=1e-6, realizable=True), 4)
    0.0137
    """
    problem = _box(n, d, domain_bits, method, PrivacyParameters.of(epsilon, delta, beta, neighbors))
    realizable = flag("realizable", realizable)
    return error_bound(boxes.PRIVATE, method, problem, realizable=realizable)


def learn_box_n(
    d: int,
    *,
    error: float,
    domain_bits: int | Sequence[int] = 64,
    epsilon: float,
    delta: float = 0.0,
    method: str = "auto",
    realizable: bool = False,
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
    method : {"auto", "exponential", "grid", "peel", "interior-point"}
        As in `learn_box`; "grid" has no such bound.
    realizable : bool
        Whether some box is asserted to be right about all records: then "auto" is the method with the least bound, and
        no method pays for a guard.
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
    >>> n = fastdp.bounds.learn_box_n(5, error=0.05, epsilon=1.0, delta=1e-6, realizable=True)
    >>> 200_000 < n < 400_000
    True
    """
    problem = _box(1, d, domain_bits, method, PrivacyParameters.of(epsilon, delta, beta, neighbors))
    realizable = flag("realizable", realizable)
    return least_records(boxes.PRIVATE, method, problem, error, realizable=realizable)


def learn_box_epsilon(
    n: int,
    d: int,
    *,
    error: float,
    domain_bits: int | Sequence[int] = 64,
    delta: float = 0.0,
    method: str = "auto",
    realizable: bool = False,
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
    method : {"auto", "exponential", "grid", "peel", "interior-point"}
        As in `learn_box`; "grid" has no such bound.
    realizable : bool
        Whether some box is asserted to be right about all records: then "auto" is the method with the least bound, and
        no method pays for a guard.
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
    return least_epsilon(
        lambda epsilon: learn_box(
            n,
            d,
            domain_bits=domain_bits,
            epsilon=epsilon,
            delta=delta,
            method=method,
            realizable=realizable,
            beta=beta,
            neighbors=neighbors,
        ),
        error,
    )


def _box(n: Any, d: Any, domain_bits: Any, method: Any, privacy: PrivacyParameters) -> BoxProblem:
    one_of("method", method, ("auto", *boxes.PRIVATE))
    n, d = large_integer("n", n, least=1), integer("d", d, least=1, most=MOST_DIMENSIONS)
    return BoxProblem(n, bits_of_each(domain_bits, d), privacy)
