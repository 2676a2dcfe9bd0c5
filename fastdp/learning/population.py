"""From errors on the records to errors on the population that they come from: population.md has the theorems.

Public as `fastdp.bounds.population_error` and its inverse. Nothing here is private or reads records.
"""

from __future__ import annotations

from math import e, inf, log, sqrt
from typing import Any

from ..support import parameters
from ..support.checks import integer, large_integer, non_negative
from ..support.parameters import MOST_DIGITS
from ..support.search import MOST_RECORDS, in_reach, least_float, least_integer
from ..support.shown import shown


def population_error(
    n: int,
    *,
    on_records: float = 0.0,
    candidates: int | None = None,
    vc_dimension: int | None = None,
    beta: float = 0.05,
) -> float:
    """Bound the error of a hypothesis on a population, of which n records were drawn independently.

    With probability 1 - beta over the records, for all hypotheses of a class at once: so for whichever was learned from
    them, by whatever method.

    Parameters
    ----------
    n : int
        The number of records.
    on_records : float in [0, 1]
        The share of the records that the hypothesis is wrong about, or a bound of it: `.error_bound` of a result, whose
        beta is then to be added to this one.
    candidates : int, optional
        The number of hypotheses of the class: at most `sum(comb(d, s) * 2**s for s in range(k + 1)) + 1` for
        conjunctions of at most k literals of d columns. Either this or `vc_dimension`.
    vc_dimension : int, optional
        The VC dimension of the class: 2 d for boxes in d columns, 1 for thresholds.
    beta : float in (0, 1)
        The probability with which the bound may fail.

    Returns
    -------
    float
        About `log(candidates / beta) / n` if there are no errors on the records; with errors it exceeds their share by
        about the root of twice their share of that. 1.0 where nothing is known.

    Raises
    ------
    ValueError
        Unless one of `candidates` and `vc_dimension` is given.

    Notes
    -----
    Proof        population.md, theorems 1 and 2
    Not covered  records that are not drawn independently, or from another population

    Examples
    --------
    >>> import fastdp
    >>> from math import comb
    >>> class_ = sum(comb(30, s) * 2**s for s in range(4)) + 1
    >>> round(fastdp.bounds.population_error(50_000, candidates=class_), 5)
    0.00027
    >>> round(fastdp.bounds.population_error(50_000, on_records=0.1, candidates=class_), 3)
    0.107
    >>> round(fastdp.bounds.population_error(50_000, vc_dimension=4), 4)
    0.0039
    """
    n = large_integer("n", n, least=1, most=MOST_RECORDS)
    class_ = _Class.of(candidates, vc_dimension, beta)
    return class_.bound(n, _share(on_records))


def population_error_n(
    *,
    error: float,
    on_records: float = 0.0,
    candidates: int | None = None,
    vc_dimension: int | None = None,
    beta: float = 0.05,
) -> int:
    """Compute how many records make the bound of `population_error` small enough, to a part in a thousand.

    Parameters
    ----------
    error : float in (0, 1)
        The error on the population; above `on_records`.
    on_records : float in [0, 1]
        The share of the records that the hypothesis is wrong about, or a bound of it.
    candidates : int, optional
        The number of hypotheses of the class. Either this or `vc_dimension`.
    vc_dimension : int, optional
        The VC dimension of the class.
    beta : float in (0, 1)
        The probability with which the bound may fail.

    Returns
    -------
    int

    Examples
    --------
    >>> import fastdp
    >>> fastdp.bounds.population_error_n(error=0.01, candidates=34_282)
    1338
    """
    error, on_records = parameters.error_share(error), _share(on_records)
    class_ = _Class.of(candidates, vc_dimension, beta)
    return in_reach(
        "error", error,
        lambda: least_integer(
            lambda n: class_.bound(n, on_records) <= error, low=1, largest=MOST_RECORDS, within=1e-3
        ),
        f", with {MOST_RECORDS:,} records too",
    )  # fmt: skip


def _share(on_records: Any) -> float:
    found = non_negative("on_records", on_records, toward=inf)
    if found > 1:
        raise ValueError(f"on_records={found!r}: must be between 0 and 1, a share of the records")
    return found


class _Class:
    """A class of hypotheses: how many there are, or its VC dimension."""

    def __init__(self, log_candidates: float | None, vc_dimension: int, log_beta: float) -> None:
        self._log_candidates, self._vc_dimension, self._log_beta = log_candidates, vc_dimension, log_beta

    @classmethod
    def of(cls, candidates: Any, vc_dimension: Any, beta: Any) -> _Class:
        log_beta = log(parameters.beta(beta))
        if (candidates is None) == (vc_dimension is None):
            raise ValueError(
                f"candidates={shown(candidates)}, vc_dimension={shown(vc_dimension)}: must be one of them, and the "
                "other None"
            )
        if candidates is not None:
            number = large_integer("candidates", candidates, least=1, most=inf)
            if number.bit_length() > MOST_DIGITS:
                raise ValueError(f"candidates={shown(number)}: must have at most {MOST_DIGITS:,} bits")
            return cls(log(number), 0, log_beta)
        return cls(None, integer("vc_dimension", vc_dimension, least=1), log_beta)

    def bound(self, n: int, on_records: float) -> float:
        if self._log_candidates is not None:
            return binomial_bound(on_records, (self._log_candidates - self._log_beta) / n)
        v = self._vc_dimension
        log_growth = v * log(2 * e * n / v) if 2 * n >= v else 2 * n * log(2)
        eta = sqrt(4 * (log_growth + log(4) - self._log_beta) / n)
        return min(1.0, ((eta + sqrt(eta * eta + 4 * on_records)) / 2) ** 2)


def binomial_bound(q: float, t: float) -> float:
    """The largest p >= q with divergence(q, p) <= t, rounded up."""
    if q >= 1 or divergence(q, 1.0) <= t:
        return 1.0
    beyond = least_float(lambda more: q + more >= 1 or divergence(q, q + more) >= t, guess=t, tolerance=1e-12)
    return min(1.0, q + beyond)


def divergence(q: float, p: float) -> float:
    """Of a coin of q from one of p >= q: q ln(q / p) + (1 - q) ln((1 - q) / (1 - p))."""
    if p >= 1:
        return 0.0 if q >= 1 else inf
    of_ones = q * log(q / p) if q else 0.0
    return of_ones + (1 - q) * log((1 - q) / (1 - p))
