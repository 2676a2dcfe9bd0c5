"""The error bound of many quantiles at once, and its inverses. Public as `fastdp.bounds`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from math import log, ulp
from typing import Any

from numpy.typing import ArrayLike

from ...privacy.guarantees import Neighbors
from ...records.number_line import check_bits
from ...support import parameters
from ...support.checks import large_integer
from ...support.rounding import down, lower
from ...support.search import in_reach, least_float, least_integer
from ...support.shown import shown
from ..counted_quantiles import FOR_SIZE, HALVED, CountedPlan, halving_error, of_one_record, room_of, splits
from ..cut_line import LOW_BITS
from ..line_weights import widest_total
from ..many_quantiles import shares_of
from ..quantile_plan import Node, QuantilePlan, levels_of_all

_SMALLEST = ulp(0.0)
_EVENTS = 4  # that may fail, each with probability beta / 4: the size, the cuts, the counts, the answers


def quantiles(
    qs: ArrayLike | Sequence[float],
    n: int,
    *,
    domain_bits: int = 64,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Bound by how many ranks any of the `quantiles` is off, whatever the values.

    Parameters
    ----------
    qs : sequence of float in (0, 1)
        The shares of the values below the results.
    n : int
        The number of values.
    domain_bits : int
        The number of bits of the domain.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float

    Notes
    -----
    Theorem    many_quantiles.md, theorems 3 and 5: all ranks at once, for the method that is chosen, and where the
               number of values is private for all that may be

    Examples
    --------
    >>> from fastdp.bounds import quantiles
    >>> quantiles([0.25, 0.5, 0.75], 10_000_000, epsilon=1.0) < 1_000
    True
    """
    shares = tuple(sorted(set(shares_of(qs))))
    n, bits = large_integer("n", n, least=1), check_bits(domain_bits)
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
    tail = parameters.beta(beta) / _EVENTS
    if not tail:
        raise ValueError(f"beta={shown(beta)}: must be at least {_EVENTS * _SMALLEST:g}")
    methods = _methods(shares, lower(epsilon), delta, parameters.neighbors(neighbors), n, tail)
    return min(float(n), max(_error(method, n, bits, tail) for method in methods))


def quantiles_n(
    qs: ArrayLike | Sequence[float],
    *,
    error: float,
    domain_bits: int = 64,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> int:
    """Compute of how many values the ranks by which `quantiles` are off are a small enough share.

    Parameters
    ----------
    qs : sequence of float in (0, 1)
        The shares of the values below the results.
    error : float in (0, 1)
        By how much those shares may be off.
    domain_bits : int
        The number of bits of the domain.
    epsilon : float > 0
        The privacy parameter.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int
    """
    error = parameters.error_share(error)
    options: dict[str, Any] = {
        "domain_bits": domain_bits, "epsilon": epsilon, "delta": delta, "beta": beta, "neighbors": neighbors,
    }  # fmt: skip
    given = list(map(float, shares_of(qs)))
    return in_reach("error", error, lambda: least_integer(lambda n: quantiles(given, n, **options) <= error * n, low=1))


def quantiles_epsilon(
    qs: ArrayLike | Sequence[float],
    n: int,
    *,
    error: float,
    domain_bits: int = 64,
    delta: float = 0.0,
    beta: float = 0.05,
    neighbors: Neighbors = "replace-one",
) -> float:
    """Compute an epsilon with which `quantiles` are off by at most so many ranks, to three digits.

    Parameters
    ----------
    qs : sequence of float in (0, 1)
        The shares of the values below the results.
    n : int
        The number of values.
    error : float > 0
        By how many ranks the results may be off.
    domain_bits : int
        The number of bits of the domain.
    delta : float in [0, 1)
        The delta of the release.
    beta : float in (0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    float
    """
    error = parameters.error(error)
    options: dict[str, Any] = {"domain_bits": domain_bits, "delta": delta, "beta": beta, "neighbors": neighbors}
    given = list(map(float, shares_of(qs)))

    def enough(epsilon: float) -> bool:
        return quantiles(given, n, epsilon=epsilon, **options) <= error

    return in_reach("error", error, lambda: least_float(enough, tolerance=1e-3))


def _methods(
    shares: tuple[Fraction, ...], epsilon: Fraction, delta: float, neighbors: Neighbors, n: int, tail: float
) -> Iterator[QuantilePlan | CountedPlan]:
    """All that may be chosen: by the number of values, or by one with noise of which is known how far it may be off."""
    least, most = float(n), float(n)
    if neighbors == "add-remove" and len(shares) > HALVED:
        off = log(1 / tail) / float(epsilon * FOR_SIZE) + 1
        least, most, epsilon = max(n - off, 0.0), n + off, epsilon * (1 - FOR_SIZE)
    halving = QuantilePlan.of(shares, epsilon=down(epsilon), delta=delta, neighbors=neighbors)
    if len(shares) <= HALVED:
        yield halving
        return
    one = of_one_record(epsilon, neighbors)
    worst, best = list(splits(shares, one, least)), list(splits(shares, one, most))
    limit, halved = min(split.error for split in worst), halving_error(halving.each, halving.levels, neighbors)
    public = n if neighbors == "replace-one" else None
    if halved <= limit or least == 0:
        yield halving
    for split in best:
        if split.error <= min(limit, halved) and most > 0:
            counted = CountedPlan(shares, split, epsilon, neighbors, public)
            yield counted if counted.can_count else halving


def _error(method: QuantilePlan | CountedPlan, n: int, bits: int, tail: float) -> float:
    """Theorem 3 for halving, theorem 5 for counted parts."""
    log_weight = log(_widest(bits)) + log(2 * len(method.shares) / tail)
    if isinstance(method, QuantilePlan):
        return _along_a_way(method.nodes, log_weight)
    cuts = _along_a_way(levels_of_all(method.between, method.cut_prices, divide=True), log_weight)
    split, prices = method.split, method.answer_prices
    noise = method.scale * log(2 * len(method.shares) * split.depth / tail) + 1
    counts = 4 * split.depth * method.width * noise
    steepest = 2 if method.neighbors == "add-remove" else 4  # the greatest price of a choice in units of its exponent
    answers = split.group.bit_length() * (log_weight * steepest / prices.each + 1)
    return max(cuts - n * room_of(method.shares, split.group), 0.0) + counts + answers


def _along_a_way(levels: Iterable[Sequence[Node]], log_weight: float) -> float:
    """The largest sum of errors of the choices that a record may take part in."""
    sums: dict[tuple[int, int], float] = {}
    largest = 0.0
    for nodes in levels:
        for node in nodes:
            total = sums.get((node.first, node.stop), 0.0) + log_weight / float(node.eta) + 1
            sums[node.first, node.middle] = sums[node.middle + 1, node.stop] = total
            largest = max(largest, total)
    return largest


def _widest(bits: int) -> int:
    """How many cuts a line of so many bits may have."""
    return widest_total(bits) << LOW_BITS


__all__ = ["quantiles", "quantiles_epsilon", "quantiles_n"]
