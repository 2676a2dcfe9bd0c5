"""Releases that are declared before the first result: what a budget holds of them, and which release takes which.

Loss distributions bound what such releases guarantee together, in whatever order they come (budget.md, theorem 6).
What is not declared has a part of the total beside them, of one kind, which is spent as every budget is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

from ..support.checks import items_of
from ..support.parameters import MOST_QUERIES
from ..support.search import greatest_float
from .account_limits import SUMS
from .composition import all_known, compose, merge_equal
from .gaussian_dp import GaussianDP
from .guarantee_forms import Form
from .guarantees import ZCDP, ApproxDP, Guarantee, PureDP
from .ledger import Charge, Sums
from .origin import SEEDED, short_form
from .profiles import DiscreteLaplace, Exponential, Gaussian, Laplace, Profile, RandomizedResponse
from .releases import Release

KINDS: dict[str, type[PureDP] | type[ZCDP] | type[GaussianDP]] = {"basic": PureDP, "zcdp": ZCDP, "gaussian": GaussianDP}
SUMMED = {"basic": "epsilon", "zcdp": "rho", "gaussian": "mu"}  # what is added up of releases that were not declared
_SMALLEST = 2.0**-20  # of the part beside, relative to the total: less is none
_PLANS = 1024  # whose guarantees are remembered

Item = tuple[Guarantee, int]


def covers(release: Guarantee, item: Guarantee) -> bool:
    """Whether a release has all that is known of an item, also what its numbers do not state.

    Parameters
    ----------
    release, item : Guarantee
        Of a release, and what was declared.

    Returns
    -------
    bool
        False where it is not proven.
    """
    if release.neighbors != item.neighbors:
        return False
    has = release.forms()
    return all(any(_as_good(one, form) for one in has) for form in item.forms())


def _is_tighter(one: Guarantee, other: Guarantee) -> bool:
    """Whether it covers the other, which does not cover it."""
    return covers(one, other) and not covers(other, one)


def _as_good(one: Form, other: Form) -> bool:
    """Whether every bound of `other` holds of what has the form `one`."""
    if one.leak > other.leak or one.pure > other.pure or one.range > other.range or one.least_mu > other.least_mu:
        return False
    if one.rho > other.rho and not (one.mu < inf and Fraction(one.mu) ** 2 / 2 <= Fraction(other.rho)):
        return False
    if not all(_has_profile(one, profile) for profile in other.profiles):
        return False
    return one.curve == other.curve or all(a <= b for a, b in zip(one.full_curve(), other.curve, strict=True))


def _has_profile(form: Form, profile: Profile) -> bool:
    """Whether this profile is above one that the form has: budget.md, theorem 6."""
    if profile in form.profiles:
        return True
    if isinstance(profile, RandomizedResponse):
        return form.pure <= profile.epsilon
    if isinstance(profile, Gaussian):
        return form.least_mu <= profile.mu
    if isinstance(profile, Exponential):
        return form.range <= profile.eta
    same = [one for one in form.profiles if type(one) is type(profile)]
    if isinstance(profile, Laplace):
        return any(isinstance(one, Laplace) and one.epsilon <= profile.epsilon for one in same)
    if isinstance(profile, DiscreteLaplace):
        return any(
            isinstance(one, DiscreteLaplace) and one.scale == profile.scale and one.sensitivity <= profile.sensitivity
            for one in same
        )
    return False


class Declared:
    """The releases of one budget that were declared, and the part of the total beside them. It does not change.

    Parameters
    ----------
    items : sequence of Guarantee or tuple of Guarantee and int
        What was declared.
    whole : Guarantee
        The total of the budget.
    theorem : str
        How the part beside is spent.
    """

    __slots__ = ("__weakref__", "_places", "beside", "items", "kind", "neighbors", "theorem", "whole")

    def __init__(self, items: Any, whole: PureDP | ApproxDP, theorem: str) -> None:
        listed = items_of("declared", items, "a guarantee, or a pair (guarantee, count)", most=MOST_QUERIES)
        self.whole, self.theorem, self.neighbors = whole, theorem, whole.neighbors
        if theorem not in KINDS:
            raise ValueError(
                f"theorem={theorem!r}: must be 'basic', 'zcdp' or 'gaussian' with declared releases: it says how what "
                "was not declared is added up"
            )
        self.kind = KINDS[theorem]
        listed = [item.guarantee if isinstance(item, Release) else item for item in listed]
        self.items: tuple[Item, ...] = tuple(merge_equal(listed, "declared"))
        for guarantee, _ in self.items:
            if guarantee.neighbors != self.neighbors:
                raise ValueError(f"declared: {guarantee}: must be for {self.neighbors!r} neighbours, as the budget is")
        if self.cost(self.items) > whole.epsilon:
            together = self.cost(self.items)
            cost = "never do, at no epsilon" if together == inf else f"cost epsilon={together!r} at its delta"
            raise ValueError(f"declared: must keep within {short_form(whole)} together; they {cost}")
        self.beside = self._greatest_beside()
        self._places = {all_known(guarantee): i for i, (guarantee, _) in enumerate(self.items)}

    def item_for(self, release: Guarantee, taken: Mapping[int, int]) -> int | None:
        """Which open item this release takes: its equal, else one than which none that it covers is tighter.

        Parameters
        ----------
        release : Guarantee
            Of a release.
        taken : mapping of int to int
            How many of each item are taken.

        Returns
        -------
        int or None
            Its place among `items`; None if it covers none that is open.
        """
        equal = self._places.get(all_known(release))
        if equal is not None and taken.get(equal, 0) < self.items[equal][1]:
            return equal
        tightest = None
        for i, (guarantee, count) in enumerate(self.items):
            if taken.get(i, 0) >= count or not covers(release, guarantee):
                continue
            if tightest is None or _is_tighter(guarantee, self.items[tightest][0]):
                tightest = i
        return tightest

    @property
    def delta(self) -> float:
        return self.whole.delta if isinstance(self.whole, ApproxDP) else 0.0

    def cost(self, items: Sequence[Item]) -> float:
        """The least epsilon at the budget's delta that is known of these together; inf if there is none."""
        if not items:
            return 0.0
        sums = self._sums(items)
        by_sums = sums.total("epsilon") if sums.within("delta", self.delta) else inf
        if not self.delta:
            return by_sums
        try:
            composed: Guarantee = compose(*items, delta=self.delta)
        except ValueError:
            return by_sums
        assert isinstance(composed, ApproxDP)
        return min(by_sums, composed.epsilon)

    def _sums(self, items: Iterable[Item]) -> Sums:
        sums = Sums(("epsilon", "delta"))
        for guarantee, count in items:
            sums = sums.plus(Charge(guarantee), count)
        return sums

    def _greatest_beside(self) -> float:
        """How much of its kind fits beside all that is declared: what is left of sums, or by loss distributions."""
        exact, sums = 0.0, self._sums(self.items)
        if self.theorem == "basic" and sums.within("delta", self.delta):
            exact = sums.left("epsilon", self.whole.epsilon)
        if not self.delta:
            return exact

        def fits(parameter: float) -> bool:
            more = self.kind(parameter, neighbors=self.neighbors)
            return self.cost((*self.items, (more, 1))) <= self.whole.epsilon

        epsilon = self.whole.epsilon
        found = greatest_float(fits, guess=epsilon / 8, tolerance=1e-6, smallest=_SMALLEST * epsilon)
        return max(exact, found)

    def limits(self) -> dict[str, float]:
        """What the sums of releases that were not declared may reach."""
        if self.theorem == "basic":
            return {"epsilon": self.beside, "delta": 0.0}
        return {SUMMED[self.theorem]: self.beside}

    def promise(self, sums: DeclaredSums) -> tuple[float, float]:
        """(epsilon, delta) of the items that were taken and of what was spent beside them."""
        spent = sums.total(SUMMED[self.theorem])
        epsilon = _remembered(self, tuple(sorted(sums.taken.items())), spent)
        pure = self.theorem == "basic" and not sums.taken and spent <= epsilon
        return min(epsilon, self.whole.epsilon), 0.0 if pure or not epsilon else self.delta

    def open_after(self, sums: DeclaredSums) -> tuple[Item, ...]:
        """What nobody has taken yet."""
        left = ((guarantee, count - sums.taken.get(i, 0)) for i, (guarantee, count) in enumerate(self.items))
        return tuple((guarantee, count) for guarantee, count in left if count)


@lru_cache(_PLANS)
def _remembered(declared: Declared, taken: tuple[tuple[int, int], ...], spent: float) -> float:
    items = [(declared.items[i][0], count) for i, count in taken]
    if spent:
        items.append((declared.kind(spent, neighbors=declared.neighbors), 1))
    return declared.cost(items)


class DeclaredSums(Sums):
    """Which items are taken, and the sums of all that was not declared."""

    __slots__ = ("declared", "taken")

    def __init__(self, declared: Declared) -> None:
        super().__init__(SUMS[declared.theorem])
        self.declared = declared
        self.taken: dict[int, int] = {}

    def placed(self, charge: Charge) -> Sums:
        """With this charge, which takes an item that is open from now on, or counts among the others.

        It keeps the item whatever becomes of other charges: who chose between items after a result would choose what
        is left by it.
        """
        if not charge.part:  # items are of all records
            charge.item = self.declared.item_for(charge.guarantee, self.taken)
        return self.plus(charge)

    def plus(self, charge: Charge, count: int = 1, depth: int = 0) -> Sums:
        if charge.item is None:
            sums = super().plus(charge, count, depth)
            assert isinstance(sums, DeclaredSums)
            sums.taken = self.taken
        else:
            sums = DeclaredSums.__new__(DeclaredSums)
            sums._finite, sums._missing, sums._parts = self._finite, self._missing, self._parts
            sums.seeded = self.seeded or charge.origin == SEEDED
            sums.taken = {**self.taken, charge.item: self.taken.get(charge.item, 0) + count}
        sums.declared = self.declared
        return sums


def stated(items: Iterable[Item]) -> str:
    """Items in a line, for people."""
    return ", ".join(f"{count} x {short_form(guarantee)}" for guarantee, count in items)


__all__ = ["Declared", "DeclaredSums", "covers", "stated"]
