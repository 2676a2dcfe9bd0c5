"""A count that goes on: after each step the sum so far, with noise that hides what any one step brought.

The noise of each answer is correlated with that of the others as by the square root of the matrix of running sums;
running_sums.py has it, with its price and its size. All is paid for when the counter is made. continual_counter.md says
what a step is, what one record is, and why there must be one counter only.
"""

from __future__ import annotations

import secrets
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..mechanisms.noise import Price, gaussian_price
from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.calibration import gaussian_mu
from ..privacy.guarantees import ZCDP, AllOf, ApproxDP, Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys, check_open
from ..randomness.keys import Randomness, fresh_key
from ..randomness.rehearsal import STEPS, HeardRelease, read_on
from ..support import checks, parameters, processes
from ..support.boundary import boundary, quick_boundary
from ..support.parameters import Outside
from ..support.public_paths import public_as
from ..support.results import DisplayedOnOneLine
from ..support.rounding import sixty_digits, up
from ..support.turns import new_turn, refuse_again
from .running_sums import MOST_STEPS, CorrelatedNoise, SumsPlan, column_square, mixture_for, plan_sums
from .step_values import MOST_INT64, Numbers, Vectors

Values = Numbers | Vectors

_INTERRUPTED = "an answer was interrupted, and some noise is lost"
_resumed: dict[bytes, object] = {}  # the pickles that this process has gone on with


def values_of(
    bounds: Any, dimension: int | None, norm: float | None, neighbors: str, outside: Outside = "raise"
) -> Values:
    """What a counter with these parameters takes at each step."""
    neighbors, outside = parameters.neighbors(neighbors), parameters.outside(outside)
    if dimension is None and norm is None:
        return Numbers((0, 1) if bounds is None else bounds, neighbors, outside)
    if bounds is not None or dimension is None or norm is None:
        raise ValueError("bounds, dimension, norm: give either bounds, of numbers, or dimension and norm, of vectors")
    return Vectors(dimension, norm, neighbors, outside)


@sixty_digits
def plan_of(length: int | None, price: Price, values: Values) -> SumsPlan:
    """The noise of a counter."""
    length = None if length is None else checks.integer("length", length, least=1, most=MOST_STEPS)
    column = column_square(mixture_for(length), MOST_STEPS if length is None else length).sqrt()
    return plan_sums(
        length, rho=price[0], delta=price[1], stretch=values.moved * column, rounded=values.rounded * column,
        dimension=values.dimension,
    )  # fmt: skip


@sixty_digits
def guarantee_of(price: Price, plan: SumsPlan, neighbors: Neighbors) -> Guarantee:
    """What that noise guarantees."""
    mu = gaussian_mu(plan.distance, plan.noise.sigma, plan.steps * plan.dimension)
    if price[1] is None:
        return ZCDP(price[0], mu=mu, neighbors=neighbors)
    rho = up((Fraction(plan.distance) / Fraction(plan.noise.sigma)) ** 2 / 2)
    return AllOf(ApproxDP(price[0], price[1], neighbors=neighbors), ZCDP(rho, mu=mu, neighbors=neighbors))


@public_as("fastdp")
class ContinualCounter(Accounted, DisplayedOnOneLine):
    """Count, or add up, step by step: after each the sum so far, of numbers or of vectors, with noise.

    A record is what one step brings. All answers together, of which each may decide what is added next, have the
    guarantee.

    Parameters
    ----------
    rho : float > 0, optional
        The parameter of zero-concentrated DP, for all answers together; or else epsilon and delta.
    epsilon : float > 0, optional
        The epsilon at `delta`, for all answers together.
    delta : float in (0, 1), optional
        The delta at `epsilon`.
    length : int, optional
        How many steps there will be at most, which is public. By default up to 2^40: the noise of the last answer is
        then larger than for a length that is known, by 51 % at 24 steps, 31 % at 1,000, 22 % at 2^20, 20 % at 2^40.
    bounds : pair of numbers, optional
        The least and the largest number that a step may bring; by default (0, 1).
    dimension : int, optional
        For steps that bring vectors: of how many coordinates.
    norm : float > 0, optional
        Of such vectors, the largest Euclidean norm.
    outside : {"raise", "clip"}
        What becomes of a number out of bounds, or a vector that is too long: a DomainError, or the nearest that is not.
        Clipped, what is no number is the lower bound, and 0 in a vector: no step is refused.
    rng : Randomness, optional
        Where the key comes from; by default the operating system. A seeded one is for tests.
    budget : Budget, optional
        What is charged, when the counter is made; by default the budget whose block is open.
    neighbors : {"replace-one", "add-remove"}
        Two sequences are neighbours if they differ in one step: in what it brings, or in whether it brings anything, a
        step without a record counting as 0.

    Raises
    ------
    ValueError
        "rho=0: must be > 0 and finite"; a step after the last one.
    DomainError
        A value is no number, or out of bounds, and `outside` is "raise". The budgets that were charged count it among
        those that they allow.
    RuntimeError
        In a forked child, which is a copy; by a signal handler, while an answer is made.
    TypeError
        It is copied.

    Notes
    -----
    Guarantee    rho-zCDP, or (epsilon, delta)-DP, and the Gaussian DP of that noise, for all answers together, whoever
                 chooses what is added in view of them; for one step
    Proof        continual_counter.md; running_sums.md, theorem 1
    Accuracy     within .2 % of the square root of the matrix of running sums; where the length is not known 1.28 of it
                 after 2^10 steps, 1.25 after 2^12 and 1.19 after 2^20, as the root mean square over all steps;
                 `deviation`, `bounds.continual_counter`
    Cost         about 1 us a step, in `add_many` of 10^4 some 40 ns; a few kB, whatever the length is
    Not covered  a person who appears in several steps; the time a caller takes; a pickle that several processes go on
                 with, each of which costs as much again. It is as secret as the data

    Examples
    --------
    >>> import fastdp
    >>> visitors = fastdp.ContinualCounter(rho=0.5)
    >>> for came in (1, 0, 1, 1):
    ...     so_far = visitors.add(came)
    >>> visitors.steps, type(so_far).__name__
    (4, 'float')
    >>> fastdp.ContinualCounter(rho=0.5, length=2**20).deviation(2**20) < 5.5
    True
    """

    _heard: HeardRelease | None = None  # in a replay; what is loaded from a pickle is not heard

    def __init__(
        self,
        *,
        rho: float | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        length: int | None = None,
        bounds: Any = None,
        dimension: int | None = None,
        norm: float | None = None,
        outside: Outside = "raise",
        rng: Randomness | None = None,
        budget: Budget | None = None,
        neighbors: Neighbors = "replace-one",
    ) -> None:
        values, price = values_of(bounds, dimension, norm, neighbors, outside), gaussian_price(rho, epsilon, delta)
        plan = plan_of(length, price, values)
        self._price = {"rho": price[0]} if price[1] is None else {"epsilon": price[0], "delta": price[1]}
        row: dict[str, Any] = self._price | ({} if length is None else {"length": plan.steps})
        guarantee = guarantee_of(price, plan, neighbors)
        with ChargedKeys("ContinualCounter", guarantee, row, budget, rng) as keys:
            self._payers, self._heard = keys.payers, keys.heard
            noise = CorrelatedNoise(plan, keys.take())
        self._guarantee = keys.stating(guarantee)
        self._length = None if length is None else plan.steps
        self._begin(values, noise, 0, 0 if isinstance(values, Numbers) else np.zeros(plan.dimension, np.int64))

    def _begin(self, values: Values, noise: CorrelatedNoise, steps: int, sums: Any) -> None:
        self._values, self._noise, self._plan = values, noise, noise.plan
        values.on_grid(noise.plan.bits)
        self._grid = noise.plan.grid
        self._steps = steps  # whose noise is used
        self._sums = sums  # an integer of Python's, or an array: exact
        self._block: NDArray[Any] = np.empty((0, noise.dimension), np.int64)  # of noise, and how much of it is used
        self._used = 0
        self._before = noise.state()  # the block
        self._closed = ""
        self._turn = new_turn()
        self._process = processes.here.number

    @property
    def guarantee(self) -> Guarantee:
        """That of all answers together."""
        return self._guarantee

    @property
    def length(self) -> int | None:
        """How many steps there are at most; None where that is not known."""
        return self._length

    @property
    def steps(self) -> int:
        """How many there have been."""
        return self._steps

    @quick_boundary
    def add(self, value: ArrayLike) -> Any:
        """Take one step.

        Parameters
        ----------
        value : number, or array_like of `dimension` numbers
            What it brings.

        Returns
        -------
        float, or numpy.ndarray
            The sum of all steps so far, this one included, with noise.
        """
        check_open(self._payers)
        units = self._values.one(self._read(value))
        self._check_process()
        refuse_again(self._turn)
        with self._turn:
            if self._closed or self._steps >= self._plan.steps:
                self._check_room(1)
            if self._used == len(self._block):
                self._refill()
            place = self._used
            self._steps += 1  # before the noise is used: interrupted, it counts too many, not too few
            self._used += 1
            self._sums = sums = self._sums_with_room() + units
            noise = self._block.item(place) if type(units) is int else self._block[place]
            self._check_process()  # a signal handler may have forked
        if type(units) is int:
            return (sums + noise) * self._grid
        answer: NDArray[np.float64] = (sums + noise).astype(np.float64) * self._grid
        return answer

    @boundary
    def add_many(self, values: ArrayLike) -> NDArray[np.float64]:
        """Take many steps: the same as `add` of each.

        Parameters
        ----------
        values : array_like
            What they bring: a number for each, or a row of `dimension` numbers.

        Returns
        -------
        numpy.ndarray
            The sum after each step, with noise: float64 of the shape of `values`.
        """
        check_open(self._payers)
        units = self._values.many(self._read(values))
        self._check_process()
        refuse_again(self._turn)
        with self._turn:
            self._check_room(len(units))
            noise = self._next(len(units))
            fits = units.dtype == noise.dtype == np.int64
            fits = fits and (self._steps + 1) * self._values.most < MOST_INT64  # whatever was added
            sums = (units if fits else units.astype(object)).cumsum(axis=0)
            sums += np.array(self._sums_with_room(), sums.dtype)
            if len(sums):
                self._sums = int(sums[-1, 0]) if isinstance(self._values, Numbers) else sums[-1].copy()
            self._check_process()
        answers: NDArray[np.float64] = (sums + noise).astype(np.float64) * self._grid
        return answers[:, 0] if isinstance(self._values, Numbers) else answers

    def deviation(self, step: int | None = None) -> float:
        """The standard deviation of the noise of an answer, in each coordinate.

        Parameters
        ----------
        step : int >= 1, optional
            After which step; by default the last.

        Returns
        -------
        float
            It grows with the logarithm of the step.
        """
        step = max(1, self._steps) if step is None else checks.integer("step", step, least=1, most=self._plan.steps)
        return self._plan.deviation(step)

    def _read(self, values: ArrayLike) -> ArrayLike:
        """What is given, but in a replay what was given then: rehearsal.py."""
        return read_on(self._heard, values, STEPS)

    # --- inside a turn

    def _check_room(self, steps: int) -> None:
        if self._closed:
            raise ValueError(f"this ContinualCounter: must be open, but {self._closed}")
        if steps > self._plan.steps - self._steps:
            raise ValueError(
                f"length={self._plan.steps:,}: {self._steps:,} steps have been taken, and there is no room for "
                f"{steps:,} more; make another counter to go on"
            )

    def _sums_with_room(self) -> Any:
        """The sums before the steps that are counted already: of Python's integers where those could leave int64."""
        sums = self._sums
        if type(sums) is not int and sums.dtype == np.int64 and (self._steps + 1) * self._values.most >= MOST_INT64:
            self._sums = sums = sums.astype(object)
        return sums

    def _refill(self) -> None:
        self._closed = _INTERRUPTED  # between its noise and a block of it
        self._before = self._noise.state()
        self._block, self._used = self._noise.block(), 0
        self._closed = ""

    def _next(self, steps: int) -> NDArray[Any]:
        """The noise of the next steps, [steps, dimension]; it is used from here on."""
        parts = [self._block[:0]]
        self._steps += steps
        while steps:
            if self._used == len(self._block):
                self._refill()
            part = self._block[self._used : self._used + steps]
            self._used += len(part)
            steps -= len(part)
            parts.append(part)
        return np.concatenate(parts)

    def _check_process(self) -> None:
        if processes.here.number != self._process:
            raise RuntimeError("this ContinualCounter belongs to the parent process, which goes on with its noise")

    # --- copies

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Hand the counter on: this object is closed, and goes on where the pickle is loaded, once."""
        self._check_process()
        refuse_again(self._turn)
        with self._turn:
            self._check_room(0)
            self._closed = "it was pickled, and goes on where that is loaded"
            if self._used < len(self._block):
                self._noise.restore(self._before)
                if self._used:
                    self._noise.block(self._used)
            state = self._noise.state()
        key = self._noise.key if self._guarantee.seeded else None
        common = self._values, self._plan, self._guarantee, self._price, self._length, self._steps, self._sums
        return _go_on, (secrets.token_bytes(16), common, state, key)

    def __reduce__(self) -> Any:
        return self.__reduce_ex__(2)

    def __copy__(self) -> NoReturn:
        raise TypeError(
            "a ContinualCounter does not copy: two that go on with the same noise would give away what is added"
        )

    def __getstate__(self) -> NoReturn:
        self.__copy__()

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__copy__()

    def __repr__(self) -> str:
        length = f"length={self._length}, " if self._length is not None else ""
        seeded = ", seeded: no privacy" * self.seeded
        closed = ", closed" * bool(self._closed)
        price = ", ".join(f"{name}={value!r}" for name, value in self._price.items())
        return (
            f"ContinualCounter({price}, {length}{self._values}, "
            f"neighbors={self._guarantee.neighbors!r})  # {self._steps:,} steps{closed}{seeded}"
        )


def _go_on(token: bytes, common: Any, state: Any, key: Any) -> ContinualCounter:
    """What a pickle becomes: a counter with the same past and fresh noise. A process goes on with it once."""
    mine = object()
    if _resumed.setdefault(token, mine) is not mine:  # in one step, whatever other threads do
        raise TypeError("this pickle of a ContinualCounter was loaded before: one goes on with it, and not two")
    made = ContinualCounter.__new__(ContinualCounter)
    values, plan, made._guarantee, made._price, made._length, steps, sums = common
    noise = CorrelatedNoise(plan, fresh_key(None) if key is None else key)
    noise.restore(state)
    made._payers = []  # budgets stay where they are; this was paid for
    made._begin(values, noise, steps, sums)
    return made
