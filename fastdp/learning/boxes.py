"""Learning an axis-parallel box from labelled records: for each column an interval, and a record is in all of them.

The default takes what promises least: `peel`, whose number of records grows linearly with the number of columns, the
lecture's interior points, or for one and two columns the exponential mechanism over all boxes. boxes.md and
all_boxes.md have the proofs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.noise import integer_noise
from ..mechanisms.rank_selection import choose_by_rank
from ..mechanisms.weighted_intervals import Levels, Piece, PieceChoice
from ..privacy.budget import Budget, charge
from ..privacy.guarantees import Accounted, Guarantee, Neighbors
from ..randomness.keys import Randomness, fresh_key
from ..records.column_names import label_of
from ..records.number_line import OUTSIDE, NumberLine, Outside
from ..records.rows import Block
from ..support.checks import check_records, integer, one_of
from ..support.progress import Progress, Report, reporting
from ..support.results import DisplayLines
from .all_boxes import BoxChoice
from .box_parameters import METHODS, ClassPlan, SidesPlan, Terms, choose_plan
from .extremes import KEY_BITS, Key, Numbers
from .hypotheses import Hypothesis, promised, warn_if_vacuous
from .privacy_parameters import checked, parameters_of

Method = Literal["auto", "peel", "interior-point", "exponential"]
Sides = list[tuple[int, int]] | None  # the first and the last position in each column; None: nothing is in the box


@dataclass(frozen=True, eq=False, repr=False)
class LearnedBox(Hypothesis, Accounted):
    """A box: a record is in it if each of its numbers is in the interval of its column.

    An interval that begins or ends where the domain does has no end there: it holds for what is beyond, too.

    intervals    (least, greatest) for each column, both included; None: no record is in it
    method       that learned it
    guarantee    what its release promises
    error_bound  with probability 1 - beta it is wrong about at most this share of the records that it was learned from,
                 if some box is right about all of them; 1.0 promises nothing
    beta         the same
    orders       what values each column may have
    width, names of the columns of the records
    """

    intervals: tuple[tuple[Any, Any], ...] | None
    method: str
    guarantee: Guarantee
    error_bound: float
    beta: float
    orders: tuple[NumberLine, ...]
    width: int
    names: tuple[str, ...] | None

    def __str__(self) -> str:
        if self.intervals is None:
            return "false"
        said = zip(self.intervals, self.orders, strict=True)
        intervals = (_interval(self.name_of(j), *column) for j, column in enumerate(said))
        return " and ".join(filter(None, intervals)) or "true"

    def _display(self) -> DisplayLines:
        return [
            ("concept", str(self)),
            ("method", self.method),
            ("error", promised(self.error_bound, self.beta, "box")),
            ("guarantee", str(self.guarantee)),
        ]

    def _looks_at(self) -> Sequence[int]:
        return range(self.width) if self.intervals is not None else ()

    def _holds(self, block: Block, columns: Sequence[int]) -> NDArray[np.bool_]:
        inside = np.full(block.n, self.intervals is not None)
        for i, (low, high) in enumerate(self.intervals or ()):
            inside &= self.orders[i].between(block.column(columns[i]), low, high, label_of(i, self.names))
        return inside


def _interval(name: str, interval: tuple[Any, Any], order: NumberLine) -> str:
    """As a person would write it; nothing for an end that is the end of the domain."""
    low, high = (str(value) if isinstance(value, int) else _short(value) for value in interval)
    first, last = interval[0] == order.value(0), interval[1] == order.value(order.last)
    if interval[0] == interval[1]:
        return f"{name} = {low}"
    if first and last:
        return ""
    if first:
        return f"{name} ≤ {high}"
    return f"{low} ≤ {name}" if last else f"{low} ≤ {name} ≤ {high}"


def _short(value: float) -> str:
    """Whole numbers in full, others to six digits."""
    return f"{value:.0f}" if abs(value) < 2**53 and value == int(value) else f"{value:.6g}"


def learn_box(
    X: Any,
    y: Any,
    *,
    domain_bits: int | Sequence[int] | None = None,
    signed: bool | None = None,
    epsilon: float,
    delta: float = 0.0,
    method: Method = "auto",
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> LearnedBox:
    """Learn a box such as 18 ≤ age ≤ 65 and hours ≤ 40 from labelled records of numbers, privately.

    X, y         records of numbers (arrays, data frames, Parquet files), and labels of 0 and 1, or -1 and 1; y may name
                 a column of X
    domain_bits  of all columns, or of each; with `signed` (of integers) and `outside` as in `quantile`. For two columns
                 the fewer bits, the more records "exponential" can take
    method       "peel": linear in the number of columns; wants a delta
                 "interior-point": the lecture's; d^2 without a delta, d^1.5 with one
                 "exponential": over all boxes in one or two columns, pure; takes n log n time for one column and n^2
                 for two, and refuses what would take more than 10 s. The only one that promises something where no
                 box fits, as with noisy labels: its errors exceed the least of any box by that much
                 "auto": the one of them that promises the fewest errors, from public numbers
    records      under add-remove neighbours, where n is private: a public number that takes its place; `.error_bound`
                 holds if there are as many

    Guarantee    (epsilon, delta)-DP for any records in the domain; "exponential" with delta=0 has bounded range epsilon
    Proof        boxes.md; all_boxes.md for "exponential"
    Accuracy     `.error_bound` of the result; `bounds.learn_box` and `bounds.learn_box_n` beforehand
    Cost         three passes over each column: 0.3 s for 1e6 records of 10 numbers; with a delta, the first call with
                 new parameters takes 0.5 s more, for the accounting
    Not covered  the time that a call takes; "exponential" under add-remove neighbours with 2^24 records and more, and
                 many more than `records` says (all_boxes.md)
    Raises       ValueError and DomainError before anything is spent

    Examples
    >>> import fastdp, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(0, 128, 200_000), rng.integers(0, 64, 200_000)])
    >>> y = (X[:, 0] >= 18) & (X[:, 0] <= 65) & (X[:, 1] <= 40)
    >>> h = fastdp.learn_box(X, y, domain_bits=[7, 6], epsilon=1.0, delta=1e-6)
    >>> h.error(X, y) < 0.02
    True
    """
    one_of("method", method, METHODS)
    one_of("outside", outside, OUTSIDE)
    spent = checked(epsilon, delta, beta, neighbors)
    check_records(records, neighbors)
    numbers = Numbers(X, y, domain_bits, signed, outside, may_be_empty=neighbors == "add-remove")
    n = numbers.n if records is None else integer("records", records, least=1)
    terms = Terms(n, numbers.bits, *spent)
    taken, plan = choose_plan(method, terms)
    warn_if_vacuous("learn_box", plan.bound, n, f"method={taken!r}, {numbers.d} columns, epsilon={terms.epsilon:g}")
    parameters = parameters_of(terms, method=taken, domain_bits=domain_bits)
    with charge(budget, plan.guarantee, "learn_box", parameters) as final:
        numbers.read()
        with reporting(progress, "learning") as report:
            sides = _learn(taken, plan, numbers, (fresh_key(rng), fresh_key(rng), fresh_key(rng)), final, report)
    intervals = None
    if sides is not None:
        orders = zip(numbers.orders, sides, strict=True)
        intervals = tuple((order.value(low), order.value(high)) for order, (low, high) in orders)
    bound = min(1.0, plan.bound / n)
    return LearnedBox(intervals, taken, plan.guarantee, bound, terms.beta, numbers.orders, numbers.d, numbers.names)


def _learn(
    method: str, plan: SidesPlan | ClassPlan, numbers: Numbers, keys: tuple[Key, Key, Key], final: Callable[[], None],
    report: Report,
) -> Sides:  # fmt: skip
    for_choices, for_test, for_records = keys
    if isinstance(plan, ClassPlan):
        choice = BoxChoice(*numbers.all_positions(), numbers.bits, Fraction(plan.eta), report)
        final()
        return _on_lines(choice.draw(for_choices), numbers.orders)
    final()
    enough = numbers.positives + int(integer_noise(plan.test.noise, for_test, 1)[0])
    if enough < plan.test.threshold:
        return None
    sides = []
    for i in range(numbers.d):
        report(i, numbers.d, f"column {i + 1} of {numbers.d}")
        sides.append((_peel if method == "peel" else _interior)(plan, numbers, i, for_choices, for_records))
    report(numbers.d, numbers.d, "")
    return None if any(low > high for low, high in sides) else sides


def _on_lines(found: Sequence[tuple[int, int]] | None, orders: Sequence[NumberLine]) -> Sides:
    """A box of positions below 2^bits, cut off where a line of floats ends before that."""
    if found is None or any(low > order.last for (low, _), order in zip(found, orders, strict=True)):
        return None
    return [(low, min(high, order.last)) for (low, high), order in zip(found, orders, strict=True)]


def _interior(plan: SidesPlan, numbers: Numbers, i: int, key: Key, of_records: Key) -> tuple[int, int]:
    """An interior point of the least positives, and one of the greatest."""
    last, half = numbers.orders[i].last, Fraction(1, 2)
    least, greatest = numbers.extremes(i, plan.slice, of_records)
    low = choose_by_rank(least.positions, half, last, Fraction(plan.eta)).draw(key, 2 * i)
    high = choose_by_rank(np.uint64(last) - greatest.positions, half, last, Fraction(plan.eta)).draw(key, 2 * i + 1)
    return low, last - high


def _peel(plan: SidesPlan, numbers: Numbers, i: int, key: Key, of_records: Key) -> tuple[int, int]:
    """A cut on the left, then one on the right; who is beyond them is deleted.

    The greatest are found together with the least: of those that the cut on the left spares, the greatest are the same,
    or these are all.
    """
    size = numbers.orders[i].last + 1 << KEY_BITS
    least, greatest = (places.fine() for places in numbers.extremes(i, plan.slice, of_records))
    low = size - 1 - _choose_cut([size - 1 - y for y in reversed(least)], plan, size).draw(key, 2 * i)
    high = _choose_cut([y for y in greatest if y >= low], plan, size).draw(key, 2 * i + 1)
    if i + 1 < numbers.d:
        numbers.delete_beyond(i, low, high, of_records)
    return low >> KEY_BITS, high >> KEY_BITS


def _choose_cut(greatest: list[int], plan: SidesPlan, size: int) -> PieceChoice:
    """The law with weights exp(-eta min(|N(c) - M/2|, M/2)) on 0 .. size - 1, N(c) = how many are above c.

    greatest    the M greatest, in ascending order; all if there are fewer
    """
    eta, half = Fraction(plan.eta), plan.slice // 2
    levels, full = Levels(eta), size.bit_length() + 64
    begins = [*reversed(greatest), 0]  # of the points that have so many above them
    ends = [size, *begins[:-1]]

    def distance(above: int) -> int:
        return min(abs(above - half), half)

    # losses count from the least there is: with hardly a record left all are large, and no proposal would be accepted
    least = min(distance(above) for above, (y, end) in enumerate(zip(begins, ends, strict=True)) if y < end)
    pieces = [
        Piece(y, 1, end - y, min(full, levels.of(distance(above) - least)))
        for above, (y, end) in enumerate(zip(begins, ends, strict=True))
        if y < end
    ]
    return PieceChoice(pieces, lambda c: eta * (distance(len(greatest) - bisect_right(greatest, c)) - least))
