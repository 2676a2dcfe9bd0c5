"""How many records theorems about interior points ask for, from public numbers. Public as `fastdp.bounds`."""

from __future__ import annotations

from decimal import Decimal
from math import ceil
from typing import Literal

from .. import directed
from ..checks import one_of, positive, probability, small_delta, whole
from ..directed import down, lower, up
from ..privacy import NEIGHBORS, Neighbors
from .prefix import PrefixPlan

Method = Literal["exponential", "prefix"]
METHODS = ("exponential", "prefix")


def interior_point_n(
    bits: int,
    *,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    method: Method = "exponential",
    neighbors: Neighbors = "replace-one",
) -> int:
    """How many records are enough for a point between the least and the greatest, but with probability beta.

    bits       the domain has 2^bits points
    Theorem    "exponential", pure DP: 2 ceil(ln(2^bits / beta) / eta) - 1 records, eta = epsilon / 2 under replace-one,
               epsilon under add-remove: the median has a score of half the records, rounded up, a point outside them 0.
               "prefix", replace-one only, takes a delta: learning/prefix.md, theorem 2

    Examples
    >>> from fastdp.learning.promises import interior_point_n
    >>> interior_point_n(64, epsilon=1.0, beta=1e-3)
    205
    >>> interior_point_n(2**20, epsilon=1.0, delta=1e-6, beta=1e-3, method="prefix")
    942
    """
    bits = whole("bits", bits, least=1)
    epsilon, beta = positive("epsilon", epsilon, toward=0), probability("beta", beta)
    delta = small_delta("delta", delta)
    one_of("method", method, METHODS)
    one_of("neighbors", neighbors, NEIGHBORS)
    if method == "prefix":
        if neighbors != "replace-one":
            raise ValueError(f"neighbors={neighbors!r}: must be 'replace-one' for method='prefix', whose n is public")
        if not delta:
            raise ValueError(f"delta={delta!r}: must be > 0 for method='prefix'")
        return PrefixPlan.of(0, bits, epsilon=epsilon, delta=delta, beta=beta).sufficient
    eta = down(lower(epsilon) / (2 if neighbors == "replace-one" else 1))
    log = directed.subtract(
        directed.multiply(Decimal(bits), directed.ln(Decimal(2))), directed.ln(Decimal(down(lower(beta))))
    )
    return 2 * ceil(up(directed.divide(log, Decimal(eta)))) - 1
