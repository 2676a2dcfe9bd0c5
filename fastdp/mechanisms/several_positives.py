"""What SparseVector and NumericSparse share: parameters, payment, noise, and the tests of values against a threshold.

What the positives cost and how noise is split is planned in sparse_vector_plan.py and proved in sparse_vector.md.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..kernels import layout
from ..privacy.blocks import counting
from ..privacy.budget import Budget, BudgetExceeded
from ..privacy.guarantees import Guarantee, Neighbors
from ..privacy.origin import with_origin
from ..privacy.reservations import check_open, payers_of
from ..randomness import noise_draws
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Key, Randomness, fresh_key, origin_of
from ..randomness.noise_plans import NoisePlan
from ..randomness.rehearsal import read_on
from ..support import parameters, processes
from ..support.checks import integer, one_of
from ..support.results import as_code
from ..support.turns import new_turn, refuse_again
from .scores import pair_factor
from .sparse_vector_plan import MOST_POSITIVES, PAID, Paid, sparse_vector_plan
from .tested_values import TestsOfValues, cell_of, refuse_many, tested_grid, tested_values

_AHEAD = 256  # noises of queries that are drawn at once, for values that come one by one
_BLOCK = layout.LAPLACE_BLOCK  # calls that draw begin at a block of their own


class SeveralPositives(TestsOfValues):
    """Tests of values against a threshold, up to a number of positives."""

    _answers = False  # whether positives come with their values

    def __init__(
        self,
        threshold: float,
        *,
        sensitivity: float,
        epsilon: float,
        positives: int,
        delta: float = 0.0,
        monotonic: bool = False,
        paid: Paid = "at once",
        resolution: float | None = None,
        rng: Randomness | None = None,
        budget: Budget | None = None,
        neighbors: Neighbors = "replace-one",
    ) -> None:
        self._threshold, self._resolution, self._center, moved = tested_grid(threshold, sensitivity, resolution)
        self._sensitivity, self._epsilon = parameters.sensitivity(sensitivity), parameters.epsilon(epsilon)
        self._delta = parameters.delta_or_none(delta)
        self._positives = integer("positives", positives, least=1, most=MOST_POSITIVES)
        self._monotonic = pair_factor(monotonic) == 1
        self._paid: Paid = one_of("paid", paid, PAID)
        self._neighbors: Neighbors = parameters.neighbors(neighbors)
        if rng is not None and not isinstance(rng, Randomness):
            fresh_key(rng)  # which refuses it
        self._rng = rng
        plan = sparse_vector_plan(
            moved,
            self._epsilon,
            self._delta,
            self._positives,
            monotonic=self._monotonic,
            answers=self._answers,
            paid=self._paid,
            neighbors=self._neighbors,
        )
        self._plan = plan
        self._of_threshold, self._of_query, self._of_answer = plan.plans()
        self._limit: int | None = None  # the noisy threshold in units of the grid; None before the next is drawn
        self._keys: tuple[Key, ...] = ()  # of the noise of thresholds, queries and answers; none before they are paid
        self._ahead: list[int] = []  # noise of queries
        self._drawn = self._measured = self._found = self._answered = 0
        self._turn = new_turn()
        self._process = processes.here.number
        self._guarantee = with_origin(plan.whole, origin_of(rng))
        self._due = self._paid == "one by one"  # whether the next positive is still to be paid
        with self._charge(plan.first if self._due else plan.whole, budget) as keys:
            self._payers, self._heard = keys.payers, keys.heard
            self._unpaid = self._due and not self._payers  # nor ever: theorem 3 holds for the same payers throughout
            if not self._due:
                self._keys = keys.take(), keys.take(), keys.take()

    @property
    def delta(self) -> float:
        """The delta of all answers together."""
        return self._delta

    @property
    def positives(self) -> int:
        """How many positive answers it gives at most."""
        return self._positives

    @property
    def positives_left(self) -> int:
        """How many it still gives."""
        return self._positives - self._found

    @property
    def answered(self) -> int:
        """How many values it has answered."""
        return self._answered

    @property
    def closed(self) -> bool:
        """Whether it has given all its positive answers."""
        return self._found >= self._positives

    @property
    def monotonic(self) -> bool:
        """Whether a record is declared to move all values in one direction."""
        return self._monotonic

    @property
    def paid(self) -> Paid:
        """When its positives are charged."""
        return self._paid

    @property
    def guarantee(self) -> Guarantee:
        """That of all answers together, all positives included."""
        return self._guarantee

    # --- payment, and the noise of the threshold

    def _charge(self, guarantee: Guarantee, budget: Budget | None) -> ChargedKeys:
        row = {"threshold": self._threshold, "sensitivity": self._sensitivity, "epsilon": self._epsilon}
        if self._delta:
            row["delta"] = self._delta
        row["positives"] = self._positives
        return ChargedKeys(type(self).__name__, guarantee, row, budget, self._rng)

    def _pay(self, guarantee: Guarantee) -> None:
        """Charge the next positive to whom the first was: theorem 3 holds for all of them together."""
        with ExitStack() as together:
            for keys in [together.enter_context(self._charge(guarantee, each)) for each in self._payers]:
                keys.commit()
        if not self._keys:
            self._keys = fresh_key(self._rng), fresh_key(self._rng), fresh_key(self._rng)

    def _ready(self) -> int:
        """The noisy threshold: paid for where that is due, and drawn where there is none."""
        if self._due:
            self._pay(self._plan.each if self._found else self._plan.first)
            self._due = False
        if self._limit is None:
            first = self._found * noise_draws.CHUNK
            drawn = int(noise_draws.integer_noise_from(self._of_threshold, self._keys[0], first, 1)[0])
            self._limit = self._center + drawn
        return self._limit

    def _count(self, found: int) -> None:
        self._found += found
        if found and self._plan.refreshed:
            self._limit = None
        self._due = self._due or (found > 0 and self._paid == "one by one")

    def _read(self, values: Any) -> Any:
        """What is given, but in a replay what was given then: rehearsal.py."""
        return read_on(self._heard, values)

    # --- one value

    def _test(self, value: float) -> bool:
        """Whether it lies above, both with their noise; inside of a turn."""
        cell, limit = cell_of(value, self._resolution), self._ready()
        if not self._ahead:
            first, self._drawn = self._drawn, self._drawn + _BLOCK
            self._ahead = noise_draws.integer_noise_from(self._of_query, self._keys[1], first, _AHEAD).tolist()
        above = cell + self._ahead.pop() >= limit
        self._check_process()  # a signal handler may have forked
        self._answered += 1
        if above:
            self._count(1)
        return above

    def _plain(self, value: Any, instead: str) -> float:
        """One value as an int or a finite float, of the kind that the threshold has."""
        kind = type(value)
        if self._resolution is None:
            if kind is int and -(2**63) <= value < 2**63:
                return int(value)
        elif kind is float and abs(value) < float("inf"):
            return float(value)
        if kind is not int and kind is not float:
            refuse_many(value, instead)
        plain: float = tested_values([value], self._threshold, self._resolution).item()
        return plain

    def _begin(self) -> None:
        """What every question asks first; the turn is taken by the caller."""
        check_open(self._payers)
        if self._unpaid and counting(None) and payers_of(None):
            raise RuntimeError(
                f"this {type(self).__name__} was made outside of every Budget block, and its positives are paid one by "
                "one: the block that is open here would not be charged for them; make it inside of the block, or pass "
                "budget= to it"
            )
        self._check_process()
        refuse_again(self._turn)

    def _check_not_closed(self) -> None:
        if self._found >= self._positives:
            raise ValueError(
                f"this {type(self).__name__} is closed: it has given all its {self._positives:,} positive answers; "
                "make another to go on"
            )

    def _check_process(self) -> None:
        if processes.here.number != self._process:
            raise RuntimeError(
                f"this {type(self).__name__} belongs to the parent process, which could give the same answers as well"
            )

    # --- many values

    def _places(self, values: NDArray[Any]) -> list[int]:
        """The places of those that lie above, until nothing is left to pay for a positive; inside of a turn."""
        places: list[int] = []
        start = position = end = 0  # noise is drawn for values[start:end]
        noisy = values
        while position < values.size and not self.closed:
            try:
                limit = self._ready()
            except BudgetExceeded:
                if not places:
                    raise
                break  # what was found has been paid for
            if position == end:
                start, end = position, min(position + noise_draws.CHUNK, values.size)
                noisy = self._with_noise(self._of_query, self._keys[1], values[start:end], self._drawn)
                self._drawn += -(-(end - start) // _BLOCK) * _BLOCK
            found = np.flatnonzero(noisy[position - start :] >= limit * (self._resolution or 1)) + position
            found = found[: 1 if self._paid == "one by one" else self.positives_left]
            self._check_process()
            places += found.tolist()
            self._count(found.size)
            following = int(found[-1]) + 1 if found.size and (self._due or self.closed) else end
            self._answered += following - position
            position = following
        return places

    def _with_noise(self, plan: NoisePlan, key: Key, values: NDArray[Any], first: int) -> NDArray[Any]:
        noisy = np.empty_like(values)
        noise_draws.add_noise(plan, self._resolution, key, values, noisy, first)
        return noisy

    def _measure(self, values: NDArray[Any]) -> NDArray[Any]:
        """These values, which have been found, with the noise of answers; inside of a turn."""
        first, self._measured = (
            self._measured,
            self._measured + -(-values.size // noise_draws.CHUNK) * noise_draws.CHUNK,
        )
        measured = self._with_noise(self._of_answer or self._of_query, self._keys[2], values, first)
        self._check_process()
        return measured

    def __repr__(self) -> str:
        state = "closed" if self.closed else f"{self.positives_left:,} left, {self._answered:,} answered"
        delta = f", delta={self._delta!r}" if self._delta else ""
        monotonic = ", monotonic=True" if self.monotonic else ""
        return (
            f"{type(self).__name__}({self.threshold!r}, sensitivity={self.sensitivity!r}, epsilon={self.epsilon!r}"
            f"{delta}, positives={self.positives!r}{monotonic}, paid={self.paid!r}, "
            f"neighbors={self.neighbors!r})  # {state}{', seeded: no privacy' * self._guarantee.seeded}"
        )

    def _repr_html_(self) -> str:
        return as_code(repr(self))

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} does not pickle or copy: each copy could give the positive answers once more"
        )

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce__()
