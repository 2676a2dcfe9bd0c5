"""How good the best of several private runs is, by how many there are in the mean. Public as `fastdp.bounds`."""

from __future__ import annotations

from decimal import Decimal

from ...privacy.best_of_runs import parameter_of
from ...support import parameters, rounding
from ...support.checks import integer, probability
from ...support.parameters import MOST_STEPS
from ...support.rounding import up
from ...support.search import in_reach, least_integer


@rounding.sixty_digits
def best_of(k: int, *, share: float) -> float:
    """The probability that `best_of` makes no run that is among this share of the best.

    Parameters
    ----------
    k : int >= 1
        The mean number of runs.
    share : float in (0, 1)
        Which runs are good enough: the probability that one is.

    Returns
    -------
    float
        Rounded up.

    Notes
    -----
    Theorem    E[(1 - q)^K] of the logarithmic law: ln(g + (1 - g) q) / ln g

    Examples
    --------
    >>> from fastdp.bounds import best_of
    >>> round(best_of(50, share=0.1), 3)
    0.402
    """
    m = Decimal(parameter_of(integer("k", k, least=1, most=MOST_STEPS)))
    q = Decimal(probability("share", share, toward=0))
    inside = rounding.divide(1 + rounding.multiply(m - 1, q), m)
    return up(rounding.divide(-rounding.ln(inside), rounding.ln(m)))


def best_of_k(*, share: float, beta: float = 0.05) -> int:
    """The least mean number of runs with which one is among this share of the best, but for probability beta.

    Parameters
    ----------
    share : float in (0, 1)
        Which runs are good enough: the probability that one is.
    beta : float in (0, 1)
        The probability with which there may be none.

    Returns
    -------
    int
    """
    share, beta = probability("share", share, toward=0), parameters.beta(beta)
    return in_reach(
        "beta",
        beta,
        lambda: least_integer(lambda k: best_of(k, share=share) <= beta, low=1, largest=MOST_STEPS),
        "; the logarithmic law has few runs with a probability that falls slowly",
    )


__all__ = ["best_of", "best_of_k"]
