"""method="exponential" of `learn_box`: one choice among all boxes of one or two columns.

all_boxes.md, theorems 2 and 3; all_boxes.py has the law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log

from ..privacy.guarantees import Guarantee
from ..randomness.charged_keys import ChargedKeys
from ..records.number_line import NumberLine
from ..support.progress import Report
from .all_boxes import MOST_EXPONENT, MOST_WORK, BoxChoice, class_size, work_of
from .box_parameters import BoxKeys, BoxProblem, Sides
from .extremes import Numbers


@dataclass(frozen=True)
class BoxExponentialParameters:
    """One choice among all boxes."""

    eta: float
    guarantee: Guarantee
    bound: float

    def learn(self, numbers: Numbers, keys: ChargedKeys, report: Report) -> Sides:
        choice = BoxChoice(*numbers.all_positions(), numbers.bits, Fraction(self.eta), report)
        return on_lines(choice.draw(BoxKeys.take(keys).choices), numbers.orders)


def on_lines(found: Sequence[tuple[int, int]] | None, orders: Sequence[NumberLine]) -> Sides:
    """A box of positions below 2^bits, cut off where a line of floats ends before that."""
    if found is None or any(low > order.last for (low, _), order in zip(found, orders, strict=True)):
        return None
    return [(low, min(high, order.last)) for (low, high), order in zip(found, orders, strict=True)]


def prepare_exponential(problem: BoxProblem) -> BoxExponentialParameters:
    """Theorems 2 and 3."""
    eta = problem.privacy.eta(1)
    bound = (log(class_size(problem.bits)) - log(problem.privacy.beta)) / eta
    return BoxExponentialParameters(eta, problem.privacy.guarantee_of(1, eta), bound)


def lengthy(problem: BoxProblem) -> bool:
    """Whether it may take more than two seconds."""
    return len(problem.bits) <= 2 and work_of(problem.n, problem.bits) > MOST_WORK // 5


def refusal(problem: BoxProblem) -> str:
    """Why choosing among all boxes is too much work; empty if it is not."""
    d = len(problem.bits)
    if d > 2:
        return f"d={d} columns: must be 1 or 2"
    if max(problem.bits) > 64:
        return f"domain_bits={max(problem.bits)}: must be at most 64"
    if (work := work_of(problem.n, problem.bits)) > MOST_WORK:
        return (
            f"n={problem.n:,}, d={d}: would take about {10 * work / MOST_WORK:,.0f} s: must be at most 10 s; "
            "method='grid' takes a second"
        )
    if prepare_exponential(problem).eta * problem.n > MOST_EXPONENT:
        return f"epsilon={problem.privacy.epsilon!r}, n={problem.n:,}: must be such that epsilon n is at most 2^48"
    return ""
