"""Learning an axis-parallel box from labelled records: an interval for each column.

The default allows for labels that are wrong: it chooses by errors, among all boxes where they are one column or two of
few records ("exponential"), and otherwise on a grid of private quantiles ("grid"). The other methods rest on a box that
fits all records, and are guarded unless the caller asserts it. boxes.md, all_boxes.md, boxes_grid.md and guard.md have
the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.rehearsal import RECORDS
from ..records.column_names import label_of
from ..records.number_line import NumberLine
from ..records.rows import Block
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import flag, one_of, public_count
from ..support.parameters import Outside
from ..support.progress import Progress, reporting
from ..support.public_paths import public_as
from ..support.results import DisplayLines
from . import boxes_exponential as exponential
from . import boxes_grid as grid
from .box_parameters import BoxProblem, Sides, least_of_sides, side_refusal
from .boxes_interior_point import prepare_interior_point
from .boxes_peel import prepare_peel
from .extremes import Numbers
from .guard import Guard
from .hypotheses import Hypothesis, error_lines, number_text
from .methods import NO_BOUND, Comparison, Method, choose_method
from .privacy_parameters import PrivacyParameters

MethodName = Literal["auto", "exponential", "grid", "peel", "interior-point"]
PRIVATE: dict[str, Method[BoxProblem, Any]] = {  # "auto" asks in this order: the first needs no accounting
    "exponential": Method(
        exponential.prepare_exponential, exponential.refusal, any_n=True, lengthy=exponential.lengthy
    ),
    "peel": Method(prepare_peel, side_refusal, least_of_sides, rests="a fit"),
    "interior-point": Method(prepare_interior_point, side_refusal, least_of_sides, rests="a fit"),
    "grid": Method(grid.prepare_grid, side_refusal, lambda problem: NO_BOUND, rests="the guard"),
}


@public_as("fastdp.learning")
@dataclass(frozen=True, eq=False, repr=False)
class LearnedBox(Hypothesis, Accounted):
    """A box: a record is in it if each of its numbers is in the interval of its column.

    An interval that begins or ends where the domain does has no end there: it holds for what is beyond, too.

    Parameters
    ----------
    intervals : tuple of (int, int) or (float, float), or None
        (least, greatest) for each column, both included; None: no record is in it.
    method : str
        The method that learned it.
    guarantee : Guarantee
        The privacy guarantee of its release.
    error_bound : float
        With probability 1 - beta it is wrong about at most this share of the records that it was learned from, if some
        box is right about all of them; at 1.0 there is no error bound.
    excess_bound : float or None
        With probability 1 - beta, whatever the labels, its share of errors exceeds by at most this the least of what it
        is compared with; None where there is no such bound.
    compared_with : {"class", "found"} or None
        "class": all boxes. "found": "true", "false", and the boxes that the method found one after the other.
    beta : float
        The probability with which a bound may fail.
    orders : tuple of NumberLine
        The domain of each column.
    width : int
        The number of columns.
    names : tuple of str, or None
        The names of the columns.
    """

    intervals: tuple[tuple[Any, Any], ...] | None
    method: str
    guarantee: Guarantee
    error_bound: float
    excess_bound: float | None
    compared_with: Comparison | None
    beta: float
    orders: tuple[NumberLine, ...]
    width: int
    names: tuple[str, ...] | None

    def __str__(self) -> str:
        if self.intervals is None:
            return "false"
        columns = zip(self.intervals, self.orders, strict=True)
        intervals = (_interval(self.name_of(j), *column) for j, column in enumerate(columns))
        return " and ".join(filter(None, intervals)) or "true"

    def _display(self) -> DisplayLines:
        return [
            ("hypothesis", str(self)),
            ("method", self.method),
            *error_lines(self, "box"),
            ("guarantee", str(self.guarantee)),
        ]

    def _columns_read(self) -> Sequence[int]:
        return range(self.width) if self.intervals is not None else ()

    def _holds(self, block: Block, columns: Sequence[int]) -> NDArray[np.bool_]:
        inside = np.full(block.n, self.intervals is not None)
        for i, (low, high) in enumerate(self.intervals or ()):
            inside &= self.orders[i].between(block.column(columns[i]), low, high, label_of(i, self.names))
        return inside


def _interval(name: str, interval: tuple[Any, Any], order: NumberLine) -> str:
    """As a person would write it; nothing for an end that is the end of the domain."""
    low, high = map(number_text, interval)
    first, last = interval[0] == order.value(0), interval[1] == order.value(order.last)
    if interval[0] == interval[1]:
        return f"{name} = {low}"
    if first and last:
        return ""
    if first:
        return f"{name} ≤ {high}"
    return f"{low} ≤ {name}" if last else f"{low} ≤ {name} ≤ {high}"


@boundary
def learn_box(
    X: Any,
    y: Any,
    *,
    domain_bits: int | Sequence[int] | None = None,
    signed: bool | None = None,
    epsilon: float,
    delta: float = 0.0,
    method: MethodName = "auto",
    realizable: bool = False,
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> LearnedBox:
    """Learn a box such as 18 ≤ age ≤ 65 and hours ≤ 40 from labelled records of numbers, privately.

    Parameters
    ----------
    X : array_like of int or float
        Records: an array, a data frame, a Parquet file, a Dask collection.
    y : array_like or str
        Labels of 0 and 1, or -1 and 1, or the name of a column of X.
    domain_bits : int or sequence of int, optional
        The number of bits of the domain of all columns, or of each, as in `quantile`; None for as many as the types
        have. Columns of objects are taken as integers if it is given and as floats otherwise, whatever they hold. For
        two columns the fewer bits, the more records "exponential" can take.
    signed : bool, optional
        Whether integers are signed. None: they are if their type is, and has no more than `domain_bits`. Without effect
        on floats.
    epsilon : float > 0
        The privacy parameter of the release.
    delta : float in [0, 1)
        0 for pure differential privacy.
    method : {"auto", "exponential", "grid", "peel", "interior-point"}
        "auto": "exponential" where it takes no more than two seconds, otherwise "grid"; with `realizable` the one of
        "exponential", "peel" and "interior-point" with the least error bound, from public numbers.
        "exponential": over all boxes in one or two columns, by errors, pure; for any labels it is nearly the best box.
        It takes n log n time for one column and n^2 for two, and refuses what would take more than 10 s.
        "grid": by errors, too, on a grid of private quantiles: among all boxes of it for up to four columns, and then
        column by column, among some four hundred ends of each.
        "peel": an error that grows linearly with the number of columns if a box fits; wants a delta.
        "interior-point": the lecture's; d^2 without a delta, d^1.5 with one.
    realizable : bool
        True asserts that some box is right about all records, which "peel" and "interior-point" need. Without it a
        sixteenth of epsilon pays for a guard: a last choice among "true", "false" and what they found of the first
        column, of the first two, and so on. Privacy does not depend on it.
    beta : float in (0, 1)
        The probability with which the error bound of the result may fail.
    records : int, optional
        Under add-remove neighbours, where n is private: a public number that takes its place; `.error_bound` holds if
        there are as many.
    outside : {"raise", "clip"}
        What happens to a value that is not in the domain: an error, or it is replaced by the nearest end; NaN, missing
        entries and what is no number by the lower one, and labels other than 1 by 0.
    progress : bool or callable, optional
        True for a bar; or a callable (done, total, what is being done).
    rng : Randomness, optional
        Where the keys of the release come from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    LearnedBox
        It predicts, prints as inequalities, and has its guarantee and its error bounds.

    Raises
    ------
    ValueError
        For parameters and types that are not as above, before anything is charged.
    DomainError
        For a NaN, labels other than those above, and values outside of the domain unless they are clipped; nothing is
        charged.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP for any records in the domain; "exponential" with delta=0 has bounded range epsilon
    Proof        boxes.md; all_boxes.md for "exponential", boxes_grid.md for "grid"; guard.md
    Accuracy     `.excess_bound` for any labels, `.error_bound` if a box fits; `bounds.learn_box` and
                 `bounds.learn_box_n` beforehand, where there is one
    Cost         "peel" and "interior-point": three passes over each column, 0.3 s for 1e6 records of 10 numbers.
                 "grid": each column is sorted, and read d times: a second for as many. With a delta, the first call
                 with new parameters takes 0.5 s more, for the accounting
    Not covered  the time that a call takes; "exponential" under add-remove neighbours with 2^24 records and more, and
                 many more than `records` (all_boxes.md)

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(0, 128, 200_000), rng.integers(0, 64, 200_000)])
    >>> y = (X[:, 0] >= 18) & (X[:, 0] <= 65) & (X[:, 1] <= 40)
    >>> h = fastdp.learn_box(X, y, domain_bits=[7, 6], epsilon=1.0, delta=1e-6)
    >>> h.error(X, y) < 0.02
    True
    """
    one_of("method", method, ("auto", *PRIVATE))
    parameters.outside(outside)
    realizable = flag("realizable", realizable)
    privacy = PrivacyParameters.of(epsilon, delta, beta, neighbors)
    records = public_count(records, neighbors)
    numbers = Numbers(X, y, domain_bits, signed, outside, may_be_empty=neighbors == "add-remove")
    n = records or numbers.n
    chosen = choose_method(PRIVATE, method, BoxProblem(n, numbers.bits, privacy), realizable=realizable)
    taken, plan, guard = chosen.method, chosen.plan, chosen.guard
    chosen.warn_if_vacuous("learn_box", n, f"method={taken!r}, {numbers.d} columns, epsilon={privacy.epsilon:g}")
    row = privacy.row(method=taken, domain_bits=domain_bits)
    with ChargedKeys("learn_box", chosen.guarantee, row, budget, rng) as keys:
        numbers = keys.reads(numbers, RECORDS)
        numbers.read()
        with reporting(progress, "learning") as report:
            sides = plan.learn(numbers, keys, report)
            if guard is not None:
                sides = _guarded(guard, numbers, sides, keys)
    intervals = None
    if sides is not None:
        orders = zip(numbers.orders, sides, strict=True)
        intervals = tuple((order.value(low), order.value(high)) for order, (low, high) in orders)
    guarantee = keys.stating(chosen.guarantee)
    bounds = chosen.bounds(n)
    return LearnedBox(intervals, taken, guarantee, *bounds, privacy.beta, numbers.orders, numbers.d, numbers.names)


def _guarded(guard: Guard, numbers: Numbers, sides: Sides, keys: ChargedKeys) -> Sides:
    """The chosen one of "false" and of the sides of the first columns, of which none is "true"."""
    place = guard.draw([numbers.positives, *numbers.prefix_errors(sides or []).tolist()], keys.take())
    if place == 0:
        return None
    found = (sides or [])[: place - 1]
    return [*found, *((0, order.last) for order in numbers.orders[len(found) :])]
