"""The total of a budget, and what keeps within it: the filters of budget.md, by the sums of a ledger.

Everything here is a function of public numbers, and nothing of it changes: which sums there are, their limits, what
sums promise together, and how much more would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf, nextafter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from ..support import parameters
from ..support.checks import integer, positive, small_delta
from ..support.search import greatest_float
from ..support.shown import shown
from .account_limits import SUMS, account_limits, never_fits, rho_at
from .conversions import epsilon_of_rho, pure_of_rho
from .declared import Declared, DeclaredSums
from .gaussian_curve import epsilon_of_mu
from .gaussian_dp import GaussianDP
from .guarantees import ZCDP, ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP
from .ledger import Charge, Sums
from .neighbors import check_relation
from .origin import SEEDED, with_origin
from .refusals import ALLOWED, MOST
from .stored_forms import as_json, from_json

Theorem = Literal["basic", "zcdp", "gaussian", "best"]
THEOREMS = ("basic", "zcdp", "gaussian", "best")
Concentrated = type[PureDP] | type[ZCDP] | type[GaussianDP] | type[BoundedRange]
HasRoom = Callable[[Sums], bool]


class Totals(NamedTuple):
    """What a budget is made with: one of epsilon (with a delta), rho and mu; the others are None."""

    epsilon: float | None
    delta: float
    rho: float | None
    mu: float | None
    theorem: Theorem
    neighbors: Neighbors
    refusals: int
    declared: Declared | None

    @staticmethod
    def of(
        *, epsilon: Any, delta: Any, rho: Any, mu: Any, theorem: Any, neighbors: Any, refusals: Any, declared: Any
    ) -> Totals:
        """Totals as a caller states them, checked."""
        stated = {name: value for name, value in (("epsilon", epsilon), ("rho", rho), ("mu", mu)) if value is not None}
        if len(stated) != 1:
            what = " and ".join(f"{name}={shown(value)}" for name, value in stated.items()) or "epsilon=None"
            raise ValueError(f"{what}: must be one of epsilon, rho and mu: the total of the budget")
        (name,) = stated
        if name != "epsilon" and theorem == "basic":  # the default
            theorem = _OF_TOTAL[name]
        if name == "epsilon":
            epsilon = positive("epsilon", epsilon, toward=0)
        elif name == "rho":
            rho = parameters.rho(rho)
        else:
            mu = positive("mu", mu, toward=0)
        delta = small_delta("delta", delta)
        if not isinstance(theorem, str) or theorem not in THEOREMS:
            raise ValueError(
                f"theorem={shown(theorem)}: must be one of {', '.join(map(repr, THEOREMS))}; other theorems need all "
                "parameters fixed in advance, use compose() for those"
            )
        if name != "epsilon":
            _check_one_sum(name, delta, theorem, declared)
        elif theorem in ("zcdp", "gaussian") and not delta:
            raise ValueError(f"theorem={theorem!r}: needs a delta > 0; with delta=0 use theorem='basic'")
        neighbors = check_relation(neighbors)
        totals = Totals(epsilon, delta, rho, mu, theorem, neighbors, ALLOWED, None)  # type: ignore[arg-type]
        if declared is not None:
            totals = totals._replace(declared=Declared(declared, totals.bounds_epsilon, theorem))
        return totals._replace(refusals=integer("refusals", refusals, least=0, most=MOST))

    @property
    def whole(self) -> Guarantee:
        """What all releases together may have."""
        if self.rho is not None:
            return ZCDP(self.rho, neighbors=self.neighbors)
        if self.mu is not None:
            return GaussianDP(self.mu, neighbors=self.neighbors)
        return self.bounds_epsilon

    @property
    def bounds_epsilon(self) -> PureDP | ApproxDP:
        """The same of totals that have an epsilon."""
        assert self.epsilon is not None
        if self.delta:
            return ApproxDP(self.epsilon, self.delta, neighbors=self.neighbors)
        return PureDP(self.epsilon, neighbors=self.neighbors)

    def as_json(self) -> dict[str, Any]:
        """For files: every number with all its digits."""
        stated = {name: value for name, value in self._asdict().items() if value is not None}
        if self.declared is not None:
            stated["declared"] = [[as_json(guarantee), count] for guarantee, count in self.declared.items]
        return stated

    @staticmethod
    def from_json(stored: Mapping[str, Any]) -> Totals:
        """What `as_json` has written, checked as a caller's."""
        declared = stored.get("declared")
        if declared is not None:
            declared = [(from_json(guarantee), count) for guarantee, count in declared]
        given = {name: stored.get(name) for name in Totals._fields}
        return Totals.of(**(given | {"declared": declared}))


_OF_TOTAL: dict[str, Theorem] = {"epsilon": "basic", "rho": "zcdp", "mu": "gaussian"}


def _check_one_sum(name: str, delta: float, theorem: str, declared: Any) -> None:
    """Of totals that are a rho or a mu: what goes with those."""
    if delta:
        raise ValueError(f"delta={delta!r}: must come with epsilon; a {name} has an epsilon at every delta")
    if theorem != _OF_TOTAL[name]:
        raise ValueError(f"theorem={theorem!r}: must be {_OF_TOTAL[name]!r} with {name}, which says what is added up")
    if declared is not None:
        raise ValueError(f"declared: must come with epsilon, not with {name}")


class Filter:
    """Which sums keep within the totals of one budget."""

    __slots__ = ("accounts", "declared", "nothing", "totals")

    def __init__(self, totals: Totals) -> None:
        self.totals = totals
        self.declared = totals.declared
        if self.declared is not None:
            limits = [self.declared.limits()]
        elif totals.epsilon is None:
            limits = [{"rho": totals.rho} if totals.rho is not None else {"mu": totals.mu or 0.0}]
        else:
            limits = account_limits(totals.theorem, totals.epsilon, totals.delta)
        self.accounts = tuple(MappingProxyType(account) for account in limits)
        self.nothing = Sums(SUMS[totals.theorem]) if self.declared is None else DeclaredSums(self.declared)

    def has_room(self, sums: Sums) -> bool:
        """Theorem 1 for sums of (epsilon, delta), 2 for sums of rho, 3 for "best", 3a for squares of mu."""
        return any(all(sums.within(name, limit) for name, limit in account.items()) for account in self.accounts)

    def promise(self, sums: Sums) -> Guarantee:
        """What charges with these sums, which have room, promise together."""
        totals = self.totals
        promise: Guarantee | None = None
        if isinstance(sums, DeclaredSums):
            epsilon, delta = sums.declared.promise(sums)
        elif totals.rho is not None:
            promise = ZCDP(min(sums.total("rho"), totals.rho), neighbors=totals.neighbors)
        elif totals.mu is not None:
            promise = GaussianDP(min(sums.total("mu"), totals.mu), neighbors=totals.neighbors)
        elif totals.theorem == "basic":
            epsilon, delta = sums.total("epsilon"), sums.total("delta")
        else:
            pure = sums.total("pure") if totals.theorem != "zcdp" else inf
            total = sums.total("mu" if totals.theorem == "gaussian" else "rho")
            epsilon = min(pure, self._concentrated(total))
            delta = totals.delta if total and epsilon < pure else 0.0
        if promise is None:
            promise = PureDP(epsilon, neighbors=totals.neighbors)
            if delta:
                promise = ApproxDP(epsilon, delta, neighbors=totals.neighbors)
        return with_origin(promise, SEEDED if sums.seeded else None)

    def _concentrated(self, total: float) -> float:
        """The epsilon of this rho, or this mu, at the budget's delta."""
        if total == 0:
            return 0.0
        delta, most = self.totals.delta, self.totals.epsilon
        epsilon_of = epsilon_of_mu if self.totals.theorem == "gaussian" else epsilon_of_rho
        return min(epsilon_of(total, delta), most or inf) if total < inf and delta else inf

    # --- how much more

    def largest(self, kind: Concentrated, sums: Sums, has_room: HasRoom) -> float:
        """The largest parameter of one more release of this kind that fits; 0 if none does.

        Exact where it is what is left of a sum, and to 9 digits, rounded down, where a conversion comes between.
        """

        def fits(parameter: float) -> bool:
            return parameter < inf and has_room(sums.plus(Charge(kind(parameter, neighbors=self.totals.neighbors))))

        names = (_PARAMETER[kind],) if kind in _PARAMETER else ("epsilon", "pure")
        limits = ((name, account[name]) for account in self.accounts for name in names if name in account)
        exact = max((sums.left(name, limit) for name, limit in limits), default=0.0)
        if exact and not fits(max(exact * (1 + 1e-9), nextafter(exact, inf))):
            return exact
        size = self._size
        found = greatest_float(
            fits, guess=max(size, min(2 * exact, 2.0**1023)), tolerance=1e-11, smallest=1e-12 * size, largest=inf
        )
        return max(exact, float(f"{found * (1 - 6e-10):.9e}"))

    @property
    def _size(self) -> float:
        """About the epsilon of a release that takes it all."""
        totals = self.totals
        return totals.epsilon or totals.mu or pure_of_rho(totals.rho or 0.0)

    def why_never(self, amounts: Mapping[str, float]) -> str:
        """Why a release would be refused however small it were; empty if that is not so."""
        return never_fits(self.totals.theorem, self.totals.delta > 0 or self.totals.epsilon is None, amounts)

    # --- in words

    def left(self, sums: Sums) -> str:
        """What is left of each sum that has a limit."""
        return " or ".join(
            ", ".join(f"{_NAMES[name]}={sums.left(name, limit)!r}" for name, limit in account.items() if limit)
            for account in self.accounts
        )

    def fitting(self, charge: Charge, sums: Sums, has_room: HasRoom) -> str:
        """What would fit of the kind that was asked for."""
        theorem = self.totals.theorem
        kind: Concentrated = GaussianDP if theorem == "gaussian" else ZCDP
        if theorem == "basic" or isinstance(charge.guarantee, PureDP):
            kind = PureDP
        elif isinstance(charge.guarantee, BoundedRange):  # one choice, whose epsilon is its range
            kind = BoundedRange
        largest = self.largest(kind, sums, has_room)
        if not largest:
            return "nothing more fits"
        leak = theorem == "basic" and charge.amounts["delta"] and self.declared is None
        delta = f", delta={sums.left('delta', self.totals.delta)!r}" if leak else ""
        rho = rho_at(largest, charge) if kind is GaussianDP else 0.0
        also = f"rho={rho!r} of Gaussian noise, or " if rho else ""
        return f"{also}{_PARAMETER.get(kind, 'epsilon')}={largest!r}{delta} would fit"


_NAMES = {"epsilon": "epsilon", "delta": "delta", "pure": "epsilon", "rho": "rho", "mu": "mu"}  # of sums, in messages
_PARAMETER: dict[Concentrated, str] = {ZCDP: "rho", GaussianDP: "mu"}


__all__ = ["Filter", "Theorem", "Totals"]
