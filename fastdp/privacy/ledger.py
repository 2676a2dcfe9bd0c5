"""The ledger of a budget: what was charged, and the exact sums of it.

Epsilons and deltas count by their decimal values, so that ten releases of 0.1 fit in 1. Nothing here decides whether a
release fits: that is the budget's part.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache, partial
from math import inf, lcm
from types import MappingProxyType
from typing import Any, Protocol

from ..support import processes
from ..support.calls import PartPath
from ..support.public_paths import public_as
from ..support.rounding import decimal_value, decimal_value_down, decimal_value_up, down, up
from .gaussian_curve import root_above, root_below
from .gaussian_dp import GaussianDP
from .guarantees import ZCDP, AllOf, ApproxDP, BoundedRange, Guarantee, PureDP
from .origin import SECURE, SEEDED, Origin
from .releases import RowParameters

FINAL, RETURNED = "final", "returned"


@public_as("fastdp")
class LedgerError(RuntimeError):
    """A stored ledger cannot be read or written. What asked for it released nothing."""


class Charge:
    """One release on one budget; identity is what tells it from others.

    Its fate is decided once, by whoever comes first: FINAL when the first noise is drawn, RETURNED when the release
    ended before that. Until then it is reserved, for as long as its `owner` is alive: where an interrupt has kept the
    owner from returning it, its end does.
    """

    __slots__ = (
        "__weakref__", "_fate", "_owner", "_price", "guarantee", "item", "made", "mechanism", "origin", "parameters",
        "part", "place", "process",
    )  # fmt: skip

    def __init__(
        self,
        guarantee: Guarantee,
        mechanism: str = "",
        parameters: Mapping[str, Any] | None = None,
        owner: object | None = None,
        origin: Origin = SECURE,
        part: PartPath = (),
    ) -> None:
        self.guarantee, self.mechanism, self.origin = guarantee, mechanism, origin
        self.part = part  # of a partition, which alone it was released on
        self.parameters = parameters if type(parameters) is RowParameters else RowParameters(parameters or {})
        self.item: int | None = None  # which declared release it is: decided before it is written, and for good
        self._fate: dict[int, str] = {}
        self._owner = None if owner is None else weakref.ref(owner)
        self._price = _price_of(guarantee)
        self.process = processes.here.number  # which alone decides its fate
        self.place: Any = None  # in a stored ledger
        self.made = ""  # when, for rows of stored ledgers

    @property
    def amounts(self) -> Mapping[str, float]:
        """What it costs by each of BASIC; inf where it has none."""
        return self._price.amounts

    @property
    def mu(self) -> float:
        """What it costs in Gaussian DP; inf where it has none."""
        return self._price.least_mu()

    def exact(self, name: str) -> Ratio | None:
        """The same as what is added up."""
        return self._price.mu if name == "mu" else self._price.exact.get(name)

    def decide(self, fate: str) -> bool:
        """Whether this is the fate of the charge, which it is unless the other was decided before; atomic."""
        return self._fate.setdefault(0, fate) == fate

    @property
    def fate(self) -> str | None:
        """FINAL, RETURNED, or None as long as it is reserved."""
        fate = self._fate.get(0)
        if fate is None and self._owner is not None and self._owner() is None:
            return self._fate.setdefault(0, RETURNED)  # or what the owner decided in between, before its end
        return fate


Ratio = tuple[int, int]  # a numerator and a denominator, not always in lowest terms: to reduce takes longer than to add
_NOTHING: Ratio = (0, 1)
BASIC = ("epsilon", "delta", "pure", "rho")  # what has a price at once; "mu" has one where it is asked for


def _exactly(name: str, amount: float) -> Ratio:
    """An epsilon or delta is what it is written as; a rho, often the result of a formula, what it is in binary.

    Of a mu it is the square that adds up.
    """
    if name == "mu":
        return (Fraction(amount) ** 2).as_integer_ratio()
    return amount.as_integer_ratio() if name == "rho" else decimal_value(amount).as_integer_ratio()


_limit = lru_cache(1024)(_exactly)


class _Price:
    """What guarantees with the same numbers cost by each sum."""

    def __init__(self, guarantee: Guarantee) -> None:
        forms = guarantee.forms()
        clean = [form for form in forms if not form.leak]
        delta, epsilon = min(((form.leak, form.pure) for form in forms if form.pure < inf), default=(0.0, inf))
        amounts = {
            "epsilon": epsilon,  # of a pure form where there is one, of an approximate one elsewhere
            "delta": delta,
            "pure": min((form.pure for form in clean), default=inf),
            "rho": min((form.rho for form in clean), default=inf),
        }
        self._clean = clean
        self._mu: tuple[Ratio | None, ...] = ()
        self.amounts = MappingProxyType(amounts)
        self.exact = MappingProxyType(
            {name: _exactly(name, amount) for name, amount in amounts.items() if amount < inf}
        )

    @property
    def mu(self) -> Ratio | None:
        """Of Gaussian DP, which takes a thousandth of a second: for budgets that add it up."""
        if not self._mu:  # no cached_property, which takes a lock
            mu = self.least_mu()
            self._mu = (_exactly("mu", mu) if mu < inf else None,)
        return self._mu[0]

    def least_mu(self) -> float:
        return min((form.least_mu for form in self._clean), default=inf)


_NUMBERS: dict[type, Callable[[Any], Any]] = {
    PureDP: lambda one: (one.epsilon,),
    ApproxDP: lambda one: (one.epsilon, one.delta),
    ZCDP: lambda one: (one.rho, one.mu),
    BoundedRange: lambda one: (one.eta,),
    GaussianDP: lambda one: (one.mu,),
}
"""All numbers that the price of a guarantee of one of these kinds follows from."""

_prices: dict[tuple[Any, ...], _Price] = {}
_MOST_PRICES = 4096


def _price_of(guarantee: Guarantee) -> _Price:
    kind = type(guarantee)
    if kind is AllOf:
        key: tuple[Any, ...] = tuple(x for part in guarantee.parts for x in _key_of(part))  # type: ignore[attr-defined]
    else:
        key = _key_of(guarantee)
    if None in key:
        return _Price(guarantee)
    price = _prices.get(key)
    if price is None:
        if len(_prices) >= _MOST_PRICES:
            _prices.clear()
        price = _prices.setdefault(key, _Price(guarantee))
    return price


def _key_of(guarantee: Guarantee) -> tuple[Any, ...]:
    """Equal for two guarantees only if their prices are; (None,) where it is of a kind that has curves."""
    numbers = _NUMBERS.get(type(guarantee))
    return (None,) if numbers is None else (type(guarantee), *numbers(guarantee))


class Sums:
    """Exact sums of the amounts of some charges, as they are written; inf while one of them has none.

    Of charges on the parts of a partition it is the largest sum of any part that counts: budget.md, theorem 7.
    """

    __slots__ = ("_finite", "_missing", "_parts", "seeded")

    def __init__(self, names: Sequence[str] = BASIC) -> None:
        self._finite = dict.fromkeys(names, _NOTHING)
        self._missing: frozenset[str] = frozenset()
        self._parts: Mapping[str, _Parts] = {}  # by partition
        self.seeded = False  # whether one of them is

    def placed(self, charge: Charge) -> Sums:
        """With a charge that has not been written yet."""
        return self.plus(charge)

    def plus(self, charge: Charge, count: int = 1, depth: int = 0) -> Sums:
        """With so many charges like this one; `depth`: of nested partitions, those that these sums are a part of."""
        sums = type(self).__new__(type(self))
        sums._finite, sums._missing, sums._parts = self._finite.copy(), self._missing, self._parts
        sums.seeded = self.seeded or charge.origin == SEEDED
        amounts: Callable[[str], Ratio | None] = charge.exact
        if len(charge.part) > depth:
            number, key = charge.part[depth]
            before = self._parts.get(number) or _Parts({}, {})
            after = before.plus(key, self._finite, charge, count, depth)
            sums._parts = {**self._parts, number: after}
            amounts, count = partial(_growth, before, after), 1
        for name, (numerator, denominator) in self._finite.items():
            if (amount := amounts(name)) is None:
                sums._missing |= {name}
            elif amount[0]:
                more = amount[0] if count == 1 else amount[0] * count
                if amount[1] == denominator:
                    sums._finite[name] = numerator + more, denominator
                else:
                    common = lcm(denominator, amount[1])
                    sums._finite[name] = numerator * (common // denominator) + more * (common // amount[1]), common
        return sums

    def _sum(self, name: str) -> Fraction:
        return Fraction(*self._finite[name])

    def total(self, name: str) -> float:
        if name in self._missing:
            return inf
        if name == "mu":
            return root_above(self._sum(name))
        return up(self._sum(name)) if name == "rho" else decimal_value_up(self._sum(name))

    def left(self, name: str, limit: float) -> float:
        """What may be added before the limit is passed."""
        if name in self._missing:
            return 0.0
        rest = Fraction(*_limit(name, limit)) - self._sum(name)
        if name == "mu":
            return root_below(rest) if rest > 0 else 0.0
        return max(0.0, down(rest) if name == "rho" else decimal_value_down(rest))

    def within(self, name: str, limit: float) -> bool:
        (numerator, denominator), (most, of) = self._finite[name], _limit(name, limit)
        return name not in self._missing and numerator * of <= most * denominator


class _Parts:
    """The sums of each part of one partition, and the largest of them by name."""

    __slots__ = ("largest", "sums")

    def __init__(self, sums: Mapping[str, Sums], largest: Mapping[str, Fraction | None]) -> None:
        self.sums, self.largest = sums, largest

    def plus(self, key: str, names: Iterable[str], charge: Charge, count: int, depth: int) -> _Parts:
        """With charges on the part of this key."""
        after = (self.sums.get(key) or Sums(tuple(names))).plus(charge, count, depth + 1)
        largest = {}
        for name in names:
            before = self.largest.get(name, Fraction(0))
            missing = name in after._missing or before is None
            largest[name] = None if missing or before is None else max(before, after._sum(name))
        return _Parts({**self.sums, key: after}, largest)


def _growth(before: _Parts, after: _Parts, name: str) -> Ratio | None:
    """By how much the largest sum of a part has grown; None where a charge has no amount of this name."""
    most = after.largest[name]
    return None if most is None else (most - (before.largest.get(name) or Fraction(0))).as_integer_ratio()


TRIES = 1_000_000  # of one entry: each that fails is an entry of somebody else's


class Ledger(Protocol):
    """Where the charges of one budget are written: here in memory, or in a file that outlives the process.

    A charge is reserved, then final or returned, which is decided once. What is reserved counts; a ledger that cannot
    write that something was returned goes on counting it.
    """

    @property
    def is_stored(self) -> bool:
        """Whether other processes may use the same one, forked children among them."""

    def sums(self) -> Sums:
        """The sums of all that is reserved or final."""

    def reserve(self, charge: Charge, has_room: Callable[[Sums], bool]) -> Sums | None:
        """Write a charge if it has room; None, or the sums without it where it has none."""

    def decide(self, charge: Charge, fate: str) -> bool:
        """Whether this is the fate of a charge, which it is unless another was decided, or the budget is closed."""

    def running(self) -> Iterator[tuple[Charge, Sums]]:
        """All that is final, and what of others' is not decided, each with the sums of it and all before it."""

    def refuse(self) -> int:
        """Count a release that failed because of its records; how many had before it."""

    def refused(self) -> int:
        """How many have."""


class MemoryLedger:
    """The charges of one budget, in the order in which they were reserved.

    Nothing here takes a lock, so threads, signal handlers and finalisers may charge at any moment, and a fork finds
    nothing held. Entry n is written by whoever calls `setdefault` first, which is atomic; whoever comes later counts
    anew, with that entry among the others. All else is derived from the entries: what is remembered is a prefix whose
    fates are decided, and any prefix that was ever right stays right.
    """

    __slots__ = ("_charges", "_decided", "_nothing", "_placed", "_refused")

    is_stored = False

    def __init__(self, nothing: Sums) -> None:
        self._charges: dict[int, Charge] = {}
        self._nothing = nothing
        self._decided = 0, nothing  # how many charges of the beginning have a fate, and the sums of the final ones
        # the last charge, and the sums without and with it
        self._placed: tuple[Charge | None, Sums, Sums] = None, nothing, nothing
        self._refused: list[object] = []

    def sums(self) -> Sums:
        return self._counted()[1]

    def _counted(self) -> tuple[int, Sums]:
        n = len(self._charges)
        first, sums = self._decided
        last, before, after = self._placed
        all_decided = True
        for i in range(first, n):
            charge = self._charges[i]
            fate = charge.fate
            if fate != RETURNED:
                sums = after if charge is last and sums is before else sums.plus(charge)
            all_decided = all_decided and fate is not None
            if all_decided:
                self._decided = i + 1, sums
        return n, sums

    def reserve(self, charge: Charge, has_room: Callable[[Sums], bool]) -> Sums | None:
        for _ in range(TRIES):
            n, before = self._counted()
            after = before.placed(charge)
            if not has_room(after):
                return before
            if self._charges.setdefault(n, charge) is charge:
                self._placed = charge, before, after
                return None
        raise RuntimeError("budget: others charge it without a pause; try again")

    def decide(self, charge: Charge, fate: str) -> bool:
        return charge.decide(fate)

    def running(self) -> Iterator[tuple[Charge, Sums]]:
        sums = self._nothing
        for i in range(len(self._charges)):
            charge = self._charges[i]
            if charge.fate == FINAL:
                sums = sums.plus(charge)
                yield charge, sums

    def refuse(self) -> int:
        this = object()
        self._refused.append(this)  # one step, which gives each its place
        return self._refused.index(this)

    def refused(self) -> int:
        return len(self._refused)


__all__ = ["FINAL", "RETURNED", "Charge", "Ledger", "LedgerError", "MemoryLedger", "Sums"]
