"""A point between the least and the greatest of some values, their median, a quantile: pure differential privacy.

On lines of any length: integers of 1 to 2^20 bits, floats by their order. The exponential mechanism over all points,
exactly, in the time of a partial sort; interior_point.md has the proofs. `method="prefix"` is for lines so long that
their logarithm is too much, and prefix_method.md says when that is.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import log
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..privacy.budget import Budget, charge
from ..privacy.guarantees import NEIGHBORS, BoundedRange, Guarantee, Neighbors
from ..randomness.keys import Randomness, fresh_key
from ..records.engines import is_collection
from ..records.number_line import OUTSIDE, NumberLine, Outside, Positions, bits_of_columns, check_bits, check_signed
from ..records.rank_search import RankSearch, may_gather
from ..records.rows import Rows
from ..records.sources import column_rows, rows_of
from ..support.checks import one_of, positive, probability, small_delta
from ..support.errors import AccuracyWarning, levels_to_caller
from ..support.rounding import decimal_value, lower
from .prefix_method import PrefixPlan, check_prefix
from .rank_selection import choose_by_rank

METHODS = ("exponential", "prefix")
_BETA = 0.05  # of the promise that decides about a warning

Final = Callable[[], None]
# (positions, last of the line, what is called before it draws)
Draw = Callable[[Positions | RankSearch, int, Final], int]


def quantile(
    values: Any,
    q: float,
    *,
    domain_bits: int | None = None,
    signed: bool | None = None,
    epsilon: float,
    outside: Outside = "raise",
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Any:
    """A point of the line whose rank among the values is about q of their number.

    values       one column of numbers: an array, a Series, a data frame or Parquet file of one column; a list, which is
                 taken as whole numbers if domain_bits is given and as floats otherwise, whatever it holds
    q            strictly between 0 and 1; taken as it is written, so that 0.1 is a tenth
    domain_bits  the domain: integers of so many bits, 0 .. 2^bits - 1, or -2^(bits-1) .. 2^(bits-1) - 1 if they are
                 signed; all finite floats of 64, 32 or 16 bits, in their order, to which floats are rounded. None: as
                 many as the type has. The fewer, the fewer values it takes: 200 for 64 bits at epsilon 1, 25 for 7
    signed       None: integers are signed if their type is, and has no more than domain_bits; means nothing for floats
    outside      "clip" takes what is not in the domain to its nearest end; a NaN is always an error

    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP
    Proof        interior_point.md, theorems 1 and 2
    Accuracy     `bounds.quantile`: the rank is off by at most ln(2^bits / beta) / eta, with eta = epsilon / 2 under
                 replace-one and epsilon / (2 max(q, 1 - q)) under add-remove; mostly much less, as only the part of the
                 line that is closer to the values than that counts
    Cost         a partial sort: 3 ms for 1e6 values, less than sorting them
    Not covered  the time that a call takes
    Raises       ValueError and DomainError before anything is spent

    Examples
    >>> import fastdp, numpy as np
    >>> incomes = np.random.default_rng(0).lognormal(10.5, 0.8, size=10_000)
    >>> top_tenth = fastdp.quantile(incomes, 0.9, epsilon=1.0)
    >>> bool(abs(np.mean(incomes < top_tenth) - 0.9) < 0.01)
    True
    """
    try:
        tau = decimal_value(probability("q", q))
    except ValueError:
        raise ValueError(f"q={q!r}: must be a number strictly between 0 and 1") from None
    return _by_rank(
        "quantile", values, tau, {"q": float(q)}, domain_bits, signed, epsilon, outside, rng, budget, neighbors
    )


def median(
    values: Any,
    *,
    domain_bits: int | None = None,
    signed: bool | None = None,
    epsilon: float,
    outside: Outside = "raise",
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Any:
    """`quantile` at 1/2.

    Examples
    >>> import fastdp, numpy as np
    >>> ages = np.random.default_rng(0).integers(18, 90, size=1_000)
    >>> 50 <= fastdp.median(ages, domain_bits=7, epsilon=1.0) <= 57
    True
    """
    half = Fraction(1, 2)
    return _by_rank("median", values, half, {}, domain_bits, signed, epsilon, outside, rng, budget, neighbors)


def interior_point(
    values: Any,
    *,
    domain_bits: int | None = None,
    signed: bool | None = None,
    epsilon: float,
    delta: float = 0.0,
    method: Literal["exponential", "prefix"] = "exponential",
    beta: float = 0.05,
    outside: Outside = "raise",
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Any:
    """A point of the line that lies between the least and the greatest value.

    method       "exponential": what `median` does, which for interior points is the best pure mechanism up to a factor
                 of 4. "prefix": one logarithm less in the length of the line; needs a delta, takes replace-one
                 neighbours only, and more values than "exponential" on any line of fewer than some 260 bits
                 (prefix_method.md)
    beta         "prefix" is set up to fail with at most this probability; the least point of the line then stands for
                 a failure that it notices

    `values`, `domain_bits`, `signed` and `outside` as in `quantile`.

    Guarantee    "exponential": bounded range epsilon; "prefix": (epsilon, delta)-DP
    Proof        interior_point.md, theorems 1 and 2; prefix_method.md
    Accuracy     interior with probability 1 - beta if there are `bounds.interior_point_n` values
    Cost         as `quantile`
    Not covered  the time that a call takes
    Raises       ValueError and DomainError before anything is spent

    Examples
    >>> import fastdp
    >>> 100 <= fastdp.interior_point([100] * 60 + [107] * 60, domain_bits=32, epsilon=1.0) <= 107
    True
    """
    one_of("method", method, METHODS)
    beta, delta = probability("beta", beta), small_delta("delta", delta)
    if method == "exponential":
        if delta:
            raise ValueError(f"delta={delta!r}: must be 0 for method='exponential', which is pure")
        half = Fraction(1, 2)
        return _by_rank(
            "interior_point", values, half, {}, domain_bits, signed, epsilon, outside, rng, budget, neighbors
        )
    epsilon = positive("epsilon", epsilon, toward=0)
    rows, bits = _one_column(values, domain_bits)
    check_prefix(delta, neighbors)
    if not may_gather(rows):
        raise ValueError(f"method='prefix': must be 'exponential' for {rows.n:,} values that are not in memory")
    plan = PrefixPlan.of(rows.n, bits, epsilon=epsilon, delta=delta, beta=beta)
    if not plan.enough:
        _warn(f"{rows.n:,} values are fewer than method='prefix' takes to fail with probability {beta:g} at most")
    parameters = {"epsilon": epsilon, "delta": delta, "beta": beta}

    def draw(positions: Positions | RankSearch, last: int, final: Final) -> int:
        assert not isinstance(positions, RankSearch)
        return min(plan.draw(positions if bits <= 64 else positions.tolist(), rng, final), last)

    return _release("interior_point", rows, draw, parameters, bits, signed, outside, budget, plan.guarantee)


def eta_of_rank(epsilon: float, tau: Fraction, neighbors: Neighbors) -> Fraction:
    """What a rank counts in the exponent: interior_point.md, theorem 1."""
    moved = 2 * max(tau, 1 - tau) if neighbors == "add-remove" else 2
    return lower(epsilon) / moved


def _by_rank(
    name: str, values: Any, tau: Fraction, parameters: dict[str, float], domain_bits: Any, signed: bool | None,
    epsilon: float, outside: str, rng: Randomness | None, budget: Budget | None, neighbors: Neighbors,
) -> Any:  # fmt: skip
    epsilon = positive("epsilon", epsilon, toward=0)
    one_of("neighbors", neighbors, NEIGHBORS)
    eta = eta_of_rank(epsilon, tau, neighbors)

    def draw(positions: Positions | RankSearch, last: int, final: Final) -> int:
        key = fresh_key(rng)
        final()
        return choose_by_rank(positions, tau, last, eta).draw(key)

    rows, bits = _one_column(values, domain_bits)
    off = rank_error(bits, eta, _BETA)
    if neighbors == "replace-one" and rows.n and off > rows.n * min(tau, 1 - tau):
        _warn(
            f"{rows.n:,} values are too few for {bits} bits and epsilon={epsilon:g}, which may put the rank off by "
            f"{off:.0f}: any number of the domain may come out; declare fewer domain_bits if the domain is smaller"
        )
    guarantee = BoundedRange(epsilon, neighbors=neighbors)
    return _release(name, rows, draw, {**parameters, "epsilon": epsilon}, bits, signed, outside, budget, guarantee)


def rank_error(bits: int, eta: Fraction, beta: float) -> float:
    """What the rank is off at most, but with probability beta: interior_point.md, theorem 3."""
    return (bits * log(2.0) - log(beta)) / float(eta)


def _warn(what: str) -> None:
    warnings.warn(what, AccuracyWarning, stacklevel=levels_to_caller())


def _release(
    name: str, rows: Rows, draw: Draw, parameters: dict[str, float], bits: int, signed: bool | None, outside: str,
    budget: Budget | None, guarantee: Guarantee,
) -> Any:  # fmt: skip
    """Read the values, draw a position, and say what stands there."""
    one_of("outside", outside, OUTSIDE)
    signed = check_signed(signed)
    if not rows.n and guarantee.neighbors == "replace-one":
        raise ValueError("values: must hold at least one")
    with charge(budget, guarantee, name, {**parameters, "domain_bits": bits}) as final:
        order, positions = read_positions(rows, 0, bits, signed, outside, "values")
        return order.value(draw(positions, order.last, final))


def read_positions(
    rows: Rows, column: int, bits: int, signed: bool | None, outside: str, label: str
) -> tuple[NumberLine, Positions | RankSearch]:
    """A column as positions, and the line that they are on."""
    if not may_gather(rows) and bits <= 64:
        line = NumberLine.of(rows.dtypes()[column], bits, signed, label)
        return line, RankSearch(rows, lambda block: line.positions(block.column(column), outside, label), line.last)
    if not rows.gathers:
        raise ValueError(f"domain_bits={bits}: must be at most 64 for a Dask collection")

    def statistic(block: Any) -> list[tuple[NumberLine, Positions]]:
        found = block.column(column)
        order = NumberLine.of(found.dtype, bits, signed, label)
        return [(order, order.positions(found, outside, label))]

    parts: list[tuple[NumberLine, Positions]] = rows.merge(statistic, lambda a, b: a + b)
    order = parts[0][0]
    if any(other != order for other, _ in parts):
        raise ValueError(f"{label}: must have one type in all parts")
    return order, np.concatenate([positions for _, positions in parts]) if len(parts) > 1 else parts[0][1]


def _one_column(values: Any, domain_bits: Any) -> tuple[Rows, int]:
    """The values as records of one column, and the number of bits of its domain."""
    if isinstance(values, list | tuple | range):
        values = _array_of(values, whole=domain_bits is not None)
    is_table = getattr(values, "ndim", 1) == 2 or hasattr(values, "columns")
    if isinstance(values, str | os.PathLike | Rows) or (is_table and not is_collection(values)):
        rows = rows_of(values)
        if rows.width != 1:
            raise ValueError(f"values: {rows.width} columns: must be one")
    else:
        rows = column_rows("values", values)
    return rows, bits_of_columns(None if domain_bits is None else check_bits(domain_bits), rows)[0]


def _array_of(values: Sequence[Any], *, whole: bool) -> NDArray[Any]:
    """A list as an array of one type, which its entries have no part in: public parameters decide.

    numpy would make floats of all because of one; the type decides about the line, and about what is released.
    """
    if whole:
        array = np.empty(len(values), object)
        for i, value in enumerate(values):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise ValueError(
                    "values: a list is taken as whole numbers where domain_bits is given, and there are others: "
                    "np.asarray(values, float) is taken as floats"
                )
            array[i] = int(value)
        return array
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("values: a list must hold numbers, one for each entry, below 2^1024") from None
