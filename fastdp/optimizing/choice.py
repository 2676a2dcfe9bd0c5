"""What the exponential mechanism over a set is asked for; what its methods answer
(covering_nets.py, one_dimension.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.keys import Key
from ..support.progress import Report
from .points import Points
from .problem import Problem
from .sets import Vector

Integers = NDArray[np.int64]

INSTEAD = "noisy_projected_gradient_descent takes any dimension"


class ChoiceParameters(NamedTuple):
    """What is asked for. All of it is public: n is the number of records, or what takes its place."""

    problem: Problem
    d: int
    n: int
    epsilon: float
    neighbors: Neighbors

    @property
    def monotonic(self) -> bool:
        """Whether scores are monotonic: a record's losses are added, or taken away."""
        return self.neighbors == "add-remove"

    @property
    def lipschitz(self) -> float:
        """The Lipschitz constant of what is minimised, regulariser included."""
        return self.problem.loss.lipschitz(self.problem.over) + self.problem.ridge + self.problem.steepest_l1


class ChoicePlan(ABC):
    """One of the methods: public numbers first, then the records, then a draw."""

    asked: ChoiceParameters
    method: str
    spacing: float
    resolution: float | None
    guarantee: Guarantee

    @property
    @abstractmethod
    def candidates(self) -> int:
        """How many points there are to choose from."""

    @abstractmethod
    def bound(self, beta: float) -> float:
        """The excess risk, but with probability beta, if the declared bounds hold."""

    def uncapped(self, beta: float) -> float | None:
        """The bound with as many points as it is the least with; None where there are as many."""
        return None

    @abstractmethod
    def read(self, points: Points, report: Report) -> Callable[[Key], Vector]:
        """Check the records and score the points on them: the last thing that may fail before the charge is final."""
