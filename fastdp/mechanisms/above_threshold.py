"""AboveThreshold, the sparse vector technique: which of many queries is the first above a threshold, for one epsilon.

Values and threshold are integers inside (counts, or multiples of a grid), so both noises are exact; above_threshold.md
has the proof and the optimal split. One positive answer closes the object: another one needs another epsilon, and
sparse_vector.py is for several.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Neighbors, PureDP
from ..randomness import noise_draws, noise_plans
from ..randomness.charged_keys import ChargedKeys, check_open
from ..randomness.keys import Randomness
from ..support import parameters, processes
from ..support.boundary import quick_boundary
from ..support.public_paths import public_as
from ..support.rounding import lower, up
from ..support.turns import new_turn, refuse_again
from .tested_values import TestsOfValues, refuse_many, tested_grid, tested_values

LARGEST = 1.7976931348623157e308  # of finite floats
_ROOT_2 = Fraction(1414213562373096, 10**15)  # rounded up


def split(sensitivity: Fraction, epsilon: float) -> tuple[float, float]:
    """The scales of the noise of the threshold, b1, and of a query, b2: s / b1 + 2 s / b2 <= epsilon, b1 + b2 least."""
    unit = sensitivity / lower(epsilon)
    return up((1 + _ROOT_2) * unit), up((2 + _ROOT_2) * unit)


@lru_cache(1024)
def _plans(moved: Fraction, epsilon: float) -> tuple[noise_plans.LaplacePlan, noise_plans.LaplacePlan]:
    """Of the noise of the threshold and of the queries, for values that a record moves by `moved` grid units."""
    first, second = (
        noise_plans.laplace_plan(noise_plans.scale_in_range(scale, f"noise scale of the {name}, in grid units"))
        for scale, name in zip(split(moved, epsilon), ("threshold", "queries"), strict=True)
    )
    return first, second


@public_as("fastdp")
class AboveThreshold(TestsOfValues, Accounted):
    """Report which query of a sequence is the first to lie above a threshold.

    Parameters
    ----------
    threshold : int or float
        An integer for integer values; a float for values of any kind, which are then rounded to a grid.
    sensitivity : float > 0
        By how much one record may change each of the values (the threshold is public).
    epsilon : float > 0
        For all answers together.
    resolution : power of two, optional
        The grid for floats; by default the largest that is at most sensitivity / 1024. The rounding, one unit a value,
        is charged.
    rng : Randomness, optional
        Where the key comes from; by default the operating system. A seeded one is for tests.
    budget : Budget, optional
        The budget to charge; by default those whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation under which `sensitivity` holds.

    Raises
    ------
    ValueError
        "epsilon=-1.0: must be > 0 and finite".
    DomainError
        On NaN or an infinity among values.
    RuntimeError
        In a forked child, which is a copy.

    Notes
    -----
    Guarantee    epsilon-DP for all answers together, any number of adaptively chosen queries, up to and including the
                 first True; then it is closed. Charged when it is made
    Proof        above_threshold.md, theorem 1
    Accuracy     `bounds.above_threshold`
    Cost         about 2 ns a query in `first_above`
    Not covered  what `sensitivity` claims; the time a caller takes to choose the next query

    Examples
    --------
    >>> import fastdp
    >>> watch = fastdp.AboveThreshold(1000, sensitivity=1, epsilon=1.0)
    >>> watch.above(3), watch.above(5)
    (False, False)
    >>> watch.first_above([7, 2, 5000, 9])
    2
    >>> watch.closed
    True
    """

    def __init__(
        self,
        threshold: float,
        *,
        sensitivity: float,
        epsilon: float,
        resolution: float | None = None,
        rng: Randomness | None = None,
        budget: Budget | None = None,
        neighbors: Neighbors = "replace-one",
    ) -> None:
        self._threshold, self._resolution, center, moved = tested_grid(threshold, sensitivity, resolution)
        self._sensitivity, self._neighbors = parameters.sensitivity(sensitivity), neighbors
        self._epsilon = parameters.epsilon(epsilon)
        threshold_plan, self._plan = _plans(moved, self._epsilon)
        guarantee = PureDP(self._epsilon, neighbors=neighbors)
        row = {"threshold": self._threshold, "sensitivity": self._sensitivity, "epsilon": self._epsilon}
        with ChargedKeys("AboveThreshold", guarantee, row, budget, rng) as keys:
            key, self._key = keys.take(), keys.take()
            self._payers, self._heard = keys.payers, keys.heard
            noisy_threshold = center + int(noise_draws.integer_noise(threshold_plan, key, 1)[0])
        self._limit = noisy_threshold * (self._resolution or 1)  # exact: below 2^53 units
        self._kind: type[float] = int if self._resolution is None else float
        self._most = 2**63 - 1 if self._resolution is None else LARGEST
        self._one: NDArray[Any] = np.zeros(1, np.int64 if self._resolution is None else np.float64)
        self._guarantee = keys.stating(guarantee)
        self._closed = False
        self._drawn = 0
        self._turn = new_turn()
        self._process = processes.here.number

    @property
    def guarantee(self) -> PureDP:
        """That of all answers together."""
        return self._guarantee

    @property
    def closed(self) -> bool:
        """Whether it has answered True."""
        return self._closed

    @quick_boundary
    def above(self, value: float) -> bool:
        """Whether this value lies above the threshold, both with their noise; True closes the object.

        Parameters
        ----------
        value : int or float
            The value of the next query.

        Returns
        -------
        bool
            The answer.
        """
        if self._heard is not None:
            value = self._heard.reads(value, None, 1, 1)
        if type(value) is self._kind and -self._most <= value <= self._most:  # which a NaN is not
            check_open(self._payers)
            return self._is_above(value)
        if type(value) is not int and type(value) is not float:
            refuse_many(value, "first_above")
        return self._first([value]) is not None

    @quick_boundary
    def first_above(self, values: ArrayLike) -> int | None:
        """The first of these values that lies above the threshold; the same as asking `above` one by one.

        Parameters
        ----------
        values : array_like of int or float
            The values of the next queries, in one dimension.

        Returns
        -------
        int or None
            An index, or None where all lie below.
        """
        if self._heard is not None:
            values = self._heard.reads(values, None, 1, 1)
        return self._first(values)

    def _first(self, values: ArrayLike) -> int | None:
        check_open(self._payers)
        array = tested_values(values, self._threshold, self._resolution)
        self._check_process()
        refuse_again(self._turn)
        with self._turn:
            self._check_not_closed()
            for start in range(0, array.size, noise_draws.CHUNK):
                hit = self._first_in_chunk(array[start : start + noise_draws.CHUNK])
                if hit is not None:
                    self._closed = True
                    return start + hit
        return None

    def _is_above(self, value: float) -> bool:
        """The same as `first_above` of one value, bit by bit, without making arrays: 2 us for 5."""
        self._check_process()
        refuse_again(self._turn)
        with self._turn:
            self._check_not_closed()
            one, first = self._one, self._drawn
            self._drawn = first + noise_draws.CHUNK
            one[0] = value
            noise_draws.add_noise(self._plan, self._resolution, self._key, one, one, first)
            self._check_process()  # a signal handler may have forked
            self._closed = one.item() >= self._limit
            one[0] = 0
            return self._closed

    def _check_not_closed(self) -> None:
        if self._closed:
            raise ValueError(
                "this AboveThreshold is closed: it has said True, and its epsilon is spent; make another to go on"
            )

    def _check_process(self) -> None:
        if processes.here.number != self._process:
            raise RuntimeError("this AboveThreshold belongs to the parent process, which could say True as well")

    def _first_in_chunk(self, values: NDArray[Any]) -> int | None:
        noisy = np.empty_like(values)
        first, self._drawn = self._drawn, self._drawn + -(-values.size // noise_draws.CHUNK) * noise_draws.CHUNK
        noise_draws.add_noise(self._plan, self._resolution, self._key, values, noisy, first)
        self._check_process()  # a signal handler may have forked
        over = noisy >= self._limit
        hit = int(over.argmax())
        return hit if over[hit] else None

    def __repr__(self) -> str:
        state = ("closed" if self.closed else "open") + ", seeded: no privacy" * self.seeded
        return (
            f"AboveThreshold({self.threshold!r}, sensitivity={self.sensitivity!r}, epsilon={self.epsilon!r}, "
            f"neighbors={self.neighbors!r})  # {state}"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("an AboveThreshold does not pickle or copy: each copy could say True once, for one epsilon")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce__()
