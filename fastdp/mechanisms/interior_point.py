"""A point between the least and the greatest of some values.

`method="exponential"` is the choice of a median, pure; interior_point.md has the proofs. `method="prefix"` is for lines
so long that their logarithm is too much, and prefix_method.md states when that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ..privacy.budget import Budget
from ..privacy.guarantees import Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.rehearsal import RECORDS
from ..records.number_column import NumberColumn
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import one_of
from ..support.parameters import Outside
from ..support.progress import Progress, one_pass
from ..support.shown import shown
from .prefix_method import PrefixPlan
from .quantiles import HALF, RankSelection

Method = Literal["exponential", "prefix"]
METHODS = ("exponential", "prefix")


@overload
def interior_point(
    values: NDArray[np.floating[Any]], *, domain_bits: int | None = ..., signed: bool | None = ..., epsilon: float,
    delta: float = ..., method: Method = ..., beta: float = ..., outside: Outside = ..., progress: Progress = ...,
    rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> float: ...  # fmt: skip
@overload
def interior_point(
    values: NDArray[np.integer[Any] | np.bool_], *, domain_bits: int | None = ..., signed: bool | None = ...,
    epsilon: float, delta: float = ..., method: Method = ..., beta: float = ..., outside: Outside = ...,
    progress: Progress = ..., rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> int: ...  # fmt: skip
@overload
def interior_point(
    values: Sequence[int], *, domain_bits: int, signed: bool | None = ...,
    epsilon: float, delta: float = ..., method: Method = ..., beta: float = ..., outside: Outside = ...,
    progress: Progress = ..., rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> int: ...  # fmt: skip
@overload
def interior_point(
    values: Sequence[float], *, domain_bits: None = ..., signed: bool | None = ...,
    epsilon: float, delta: float = ..., method: Method = ..., beta: float = ..., outside: Outside = ...,
    progress: Progress = ..., rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> float: ...  # fmt: skip
@overload
def interior_point(
    values: Any, *, domain_bits: int | None = ..., signed: bool | None = ..., epsilon: float, delta: float = ...,
    method: Method = ..., beta: float = ..., outside: Outside = ..., progress: Progress = ...,
    rng: Randomness | None = ..., budget: Budget | None = ..., neighbors: Neighbors = ...,
) -> Any: ...  # fmt: skip
@boundary
def interior_point(
    values: Any,
    *,
    domain_bits: int | None = None,
    signed: bool | None = None,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "exponential",
    beta: float = 0.05,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Any:
    """Release a point of the line that lies between the least and the greatest value.

    Parameters
    ----------
    values : array_like of int or float
        One column of numbers: an array, a Series, a data frame or Parquet file of one column, a Dask collection. A list
        or a column of objects (or strings) is taken as integers if `domain_bits` is given and as floats otherwise,
        whatever it holds. A NaN is an error.
    domain_bits : int, optional
        The domain: integers of so many bits, or all finite floats of 64, 32 or 16 bits; None for as many as the type
        has. See `quantile`.
    signed : bool, optional
        Whether integers are signed. None: they are if their type is, and has no more than `domain_bits`. Without effect
        on floats.
    epsilon : float > 0
        The privacy parameter of the release.
    delta : float in [0, 1)
        0 for "exponential"; above 0 for "prefix".
    method : {"exponential", "prefix"}
        "exponential": what `median` does, which for interior points is the best pure mechanism up to a factor of 4.
        "prefix": one logarithm less in the length of the line; replace-one neighbours only, and more values than
        "exponential" on any line of fewer than some 260 bits (prefix_method.md).
    beta : float in (0, 1)
        "prefix" is set up to fail with at most this probability; the least point of the line then stands for a failure
        that it notices.
    outside : {"raise", "clip"}
        What happens to a value that is not in the domain: an error, or it is replaced by the nearest end; NaN, missing
        entries and what is no number by the lower one.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where the keys of the release come from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    int or float
        An integer for integers, a float for floats.

    Raises
    ------
    ValueError
        For a parameter or a type that is not as above, before anything is charged.
    DomainError
        For a NaN, missing entries and values outside of the domain, unless they are clipped; nothing is charged.

    Notes
    -----
    Guarantee    "exponential": bounded range epsilon; "prefix": (epsilon, delta)-DP
    Proof        interior_point.md, theorems 1 and 2; prefix_method.md
    Accuracy     interior with probability 1 - beta if there are `bounds.interior_point_n` values
    Cost         a partial sort: 3 ms for 1e6 values; "prefix" sorts them, 0.05 to 0.15 s
    Not covered  the time that a call takes

    Examples
    --------
    >>> import fastdp
    >>> 100 <= fastdp.interior_point([100] * 60 + [107] * 60, domain_bits=32, epsilon=1.0) <= 107
    True
    """
    one_of("method", method, METHODS)
    beta, delta = parameters.beta(beta), parameters.delta_or_none(delta)
    if delta and method == "exponential":
        raise ValueError(f"delta={shown(delta)}: must be 0 for method='exponential', which is pure")
    selection = RankSelection.of(HALF, epsilon, neighbors, even=True)  # for the worst case, which has no size
    column = NumberColumn(values, domain_bits, signed, outside, may_be_empty=neighbors == "add-remove")
    plan: PrefixPlan | RankSelection = selection
    if method == "prefix":
        plan = PrefixPlan.of_column(column, selection, delta, beta)
    plan.warn_if_few(column)
    row = {**plan.row, "domain_bits": column.bits}
    with ChargedKeys("interior_point", plan.guarantee, row, budget, rng) as keys, one_pass(progress, "choosing"):
        return plan.release(keys.reads(column, RECORDS), keys)
