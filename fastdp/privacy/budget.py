"""Budgets: a total that releases are charged to, in the order in which they happen, by whoever makes them.

A release is charged in three steps: it reserves its guarantee before it reads a record, the reservation becomes final
when the first noise is drawn, and an error before that returns it. budget.md says which theorem makes the running total
sound when parameters are chosen on the way, and why the others are not offered here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from math import inf, nextafter
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from ..support import boundary, processes
from ..support.checks import integer, one_of, positive, small_delta
from ..support.public_paths import public_as
from ..support.results import as_code
from ..support.search import greatest_float
from ..support.shown import shown
from .account_limits import SUMS, account_limits, never_fits, rho_at
from .blocks import Exit, Holders, around, check_thread, open_block
from .composition import Counted
from .conversions import epsilon_of_rho
from .declared import Declared, DeclaredSums, stated
from .gaussian_curve import epsilon_of_mu
from .gaussian_dp import GaussianDP
from .guarantees import NEIGHBORS, ZCDP, ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP
from .ledger import FINAL, RETURNED, Charge, Ledger, Release, Releases, Sums
from .origin import SECURE, SEEDED, Origin, short_form, with_origin
from .refusals import ALLOWED, MOST, Refusals, depends_on_records, forget, reason

Theorem = Literal["basic", "zcdp", "gaussian", "best"]
THEOREMS = ("basic", "zcdp", "gaussian", "best")
Concentrated = type[PureDP] | type[ZCDP] | type[GaussianDP] | type[BoundedRange]


@public_as("fastdp")
class BudgetExceeded(ValueError):
    """A release was refused: it would have passed the total. Nothing was read, nothing was charged."""


@public_as("fastdp")
class Budget:
    """A total epsilon (and delta) that several releases share.

    `with Budget(epsilon=1, delta=1e-6) as b:` charges every release of this thread, and of asyncio tasks begun in it;
    `fastdp.laplace(x, ..., budget=b)` charges this release, from any thread, inside or outside a block. Epsilons and
    deltas add up exactly, by their decimal values: ten releases of 0.1 fit in 1.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of all releases together.
    delta : float in [0, 1)
        Their delta.
    theorem : {"basic", "zcdp", "gaussian", "best"}
        "basic": epsilons add up, and deltas add up. "zcdp": concentrated DP, rhos add up and are converted at the end,
        which is what many releases want. "gaussian": Gaussian DP, squares of mu add up and are converted exactly, for
        Gaussian noise above all; a release goes through when they or the pure epsilons have room. "best": the same with
        rhos.
    neighbors : {"replace-one", "add-remove"}
        The relation that all its releases must have.
    refusals : int >= 0
        How many releases may fail because of their records (a value outside of the domain, a missing entry), which is
        told without noise. One more closes the budget: whatever is asked of it then is refused. Errors of parameters
        do not count.
    declared : sequence of Guarantee or tuple of Guarantee and int, optional
        Releases that are known beforehand: a guarantee, (guarantee, k) for k of them, or a row of another budget. They
        are accounted together as `compose` does, which is the least, and may come in any order. A release takes an open
        one that is equal, else the tightest that its guarantee covers. What they leave of the total is for others,
        whose epsilons, rhos or squares of mu add up as `theorem` says (not "best"): `left` states how much that is.

    Notes
    -----
    Guarantee    all that is released under one budget together is (epsilon, delta)-DP, however later releases depend on
                 earlier results: budget.md, theorems 1 to 3a and 6; and `refusals` bounds what errors add: theorem
                 4
    Not covered  what is released outside of it, as in processes that are started inside of a block: a forked one may
                 not use its parent's budget, one that is spawned knows nothing of it, and releases uncharged. A
                 generator that suspends inside of a block leaves it open for its caller, who is charged until then

    Examples
    --------
    >>> import fastdp
    >>> with fastdp.Budget(epsilon=1.0) as b:
    ...     noisy = fastdp.laplace([3, 5], sensitivity=2, epsilon=0.25)  # replacing one person moves two counts
    >>> print(b.spent)
    0.25-DP, replace-one
    >>> print(b.left)
    0.75-DP, replace-one
    >>> b.releases
       mechanism  parameters                     guarantee  total
    -  ---------  -----------------------------  ---------  -------
    1  laplace    sensitivity=2.0, epsilon=0.25  0.25-DP    0.25-DP
    """

    __slots__ = (
        "__weakref__", "_accounts", "_declared", "_delta", "_epsilon", "_holders", "_ledger", "_neighbors", "_process",
        "_refusals", "_theorem",
    )  # fmt: skip

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        theorem: Theorem = "basic",
        neighbors: Neighbors = "replace-one",
        refusals: int = ALLOWED,
        declared: Iterable[Counted] | None = None,
    ) -> None:
        self._epsilon = positive("epsilon", epsilon, toward=0)
        self._delta = small_delta("delta", delta)
        if not isinstance(theorem, str) or theorem not in THEOREMS:
            raise ValueError(
                f"theorem={shown(theorem)}: must be one of {', '.join(map(repr, THEOREMS))}; other theorems need all "
                "parameters fixed in advance, use compose() for those"
            )
        if theorem in ("zcdp", "gaussian") and not self._delta:
            raise ValueError(f"theorem={theorem!r}: needs a delta > 0; with delta=0 use theorem='basic'")
        one_of("neighbors", neighbors, NEIGHBORS)
        self._theorem, self._neighbors = theorem, neighbors
        self._declared = None if declared is None else Declared(declared, self._whole(), theorem)
        own = (
            account_limits(theorem, self._epsilon, self._delta) if self._declared is None else [self._declared.limits()]
        )
        self._accounts = tuple(MappingProxyType(account) for account in own)
        self._refusals = Refusals(integer("refusals", refusals, least=0, most=MOST))
        sums = Sums(SUMS[theorem]) if self._declared is None else DeclaredSums(self._declared)
        self._ledger = Ledger(sums)
        self._holders: Holders = {}
        self._process = processes.here.number  # the last: nothing can be set from here on

    def __setattr__(self, name: str, value: object) -> None:
        self._refuse_change()
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        self._refuse_change()
        super().__delattr__(name)

    def _refuse_change(self) -> None:
        if hasattr(self, "_process"):
            raise AttributeError("a Budget cannot be changed; make another")

    @property
    def epsilon(self) -> float:
        """The epsilon of all releases together."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The delta of all releases together."""
        return self._delta

    @property
    def theorem(self) -> Theorem:
        """Which sums are kept."""
        return self._theorem

    @property
    def neighbors(self) -> Neighbors:
        """The relation that all releases have."""
        return self._neighbors

    @property
    def refusals(self) -> int:
        """How many releases may fail because of their records before the budget is closed."""
        return self._refusals.allowed

    @property
    def refused(self) -> int:
        """How many have."""
        return len(self._refusals)

    # --- the block

    def __enter__(self) -> Budget:
        self._check_process()
        open_block(self, sys._getframe(1))
        return self

    if TYPE_CHECKING:

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
        ) -> None: ...

    else:
        __exit__ = Exit()

    # --- what it holds

    @property
    def spent(self) -> Guarantee:
        """What all releases so far promise together, reservations included.

        Where parameters depended on earlier results, the promise is that of the whole budget: budget.md.
        """
        return self._promise(self._ledger.sums())

    @property
    def left(self) -> PureDP:
        """The largest further release of pure DP that fits, and was not declared."""
        largest = 0.0 if self._refusals.exceeded else self._largest(PureDP, self._ledger.sums())
        return PureDP(largest, neighbors=self._neighbors)

    @property
    def releases(self) -> Releases:
        """All releases that have drawn noise."""
        rows = []
        for charge, sums in self._ledger.running():
            guarantee = with_origin(charge.guarantee, charge.origin)
            item = None if self._declared is None or charge.item is None else self._declared.items[charge.item][0]
            rows.append(Release(charge.mechanism, charge.parameters, guarantee, self._promise(sums), item))
        return Releases(rows, still_open=None if self._declared is None else stated(self.still_open))

    @property
    def declared(self) -> tuple[tuple[Guarantee, int], ...]:
        """What was declared, each kind once, with how many there are of it."""
        return () if self._declared is None else self._declared.items

    @property
    def still_open(self) -> tuple[tuple[Guarantee, int], ...]:
        """What was declared and has not been taken, by releases that have drawn or are about to."""
        sums = self._ledger.sums()
        return sums.declared.open_after(sums) if isinstance(sums, DeclaredSums) else ()

    def fits(self, guarantee: Guarantee) -> bool:
        """Whether a release with this guarantee would go through now.

        Parameters
        ----------
        guarantee : Guarantee
            Of one release.

        Returns
        -------
        bool
            False also for another relation and in a forked process.
        """
        if not isinstance(guarantee, Guarantee):
            raise ValueError(f"guarantee={shown(guarantee)}: must be a guarantee, such as PureDP(0.1)")
        ours = guarantee.neighbors == self._neighbors and processes.here.number == self._process
        return ours and not self._refusals.exceeded and self._has_room(self._ledger.sums().placed(Charge(guarantee)))

    def __repr__(self) -> str:
        delta = f", delta={self._delta!r}" if self._delta else ""
        refusals = f", refusals={self.refusals}" if self.refusals != ALLOWED else ""
        releases = len(self._ledger.final())
        refused = f", {self.refused} refused because of records" if self.refused else ""
        items = sum(count for _, count in self.declared)
        declared = f", declared=<{items}>" if self._declared else ""
        still_open = f", {sum(k for _, k in self.still_open)} of {items} declared are open" if self._declared else ""
        return (
            f"Budget(epsilon={self._epsilon!r}{delta}, theorem={self._theorem!r}, neighbors={self._neighbors!r}"
            f"{refusals}{declared})  # spent {short_form(self.spent)}, {releases} "
            f"release{'s' if releases != 1 else ''}{still_open}{refused}"
            f"{': closed' if self._refusals.exceeded else ''}"
        )

    def _repr_html_(self) -> str:
        return as_code(repr(self)) + self.releases._repr_html_()

    # --- one budget is one budget

    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: Any) -> Budget:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Budget does not pickle: two processes would spend it twice; give each process its own share")

    def _check_process(self) -> None:
        if processes.here.number != self._process:
            raise RuntimeError(
                "this budget belongs to the parent process, which could spend it as well; make another and pass "
                "budget= (inside of the parent's block its own block is not enough: the releases are charged to both)"
            )

    # --- charging

    def _check_open(self) -> None:
        if self._refusals.exceeded:
            raise BudgetExceeded(f"budget: {reason(self._refusals)}")

    def _reserve(self, charge: Charge) -> None:
        self._check_process()
        self._check_open()
        guarantee = charge.guarantee
        if guarantee.neighbors != self._neighbors:
            raise ValueError(
                f"neighbors={guarantee.neighbors!r}: this budget is for {self._neighbors!r} neighbours; state the "
                "release's sensitivity under that relation, or use another budget"
            )
        before = self._ledger.reserve(charge, self._has_room)
        if before is None:
            return
        if self._declared is not None:
            raise BudgetExceeded(self._not_declared(charge, before))
        if why := never_fits(self._theorem, self._delta, charge.amounts):
            raise ValueError(f"budget: {charge.mechanism} asks for {short_form(guarantee)}; {why}")
        raise BudgetExceeded(
            f"budget: {charge.mechanism} asks for {short_form(guarantee)}; left of {short_form(self._whole())} "
            f"({self._theorem}): {self._left(before)}; {self._fitting(charge, before)}"
        )

    def _whole(self) -> PureDP | ApproxDP:
        if self._delta:
            return ApproxDP(self._epsilon, self._delta, neighbors=self._neighbors)
        return PureDP(self._epsilon, neighbors=self._neighbors)

    # --- what a refusal says

    def _not_declared(self, charge: Charge, before: Sums) -> str:
        still_open = stated(self.still_open) or "nothing"
        beside = f"beside what was declared ({self._theorem}): {self._left(before)}; " if self._left(before) else ""
        return (
            f"budget: {charge.mechanism} asks for {short_form(charge.guarantee)}, which no declared release covers "
            f"that is open ({still_open}); {beside}{self._fitting(charge, before)}"
        )

    def _left(self, sums: Sums) -> str:
        """What is left of each sum that has a limit."""
        return " or ".join(
            ", ".join(f"{_NAMES[name]}={sums.left(name, limit)!r}" for name, limit in account.items() if limit)
            for account in self._accounts
        )

    def _fitting(self, charge: Charge, sums: Sums) -> str:
        """What would fit of the kind that was asked for."""
        kind: Concentrated = GaussianDP if self._theorem == "gaussian" else ZCDP
        if self._theorem == "basic" or isinstance(charge.guarantee, PureDP):
            kind = PureDP
        elif isinstance(charge.guarantee, BoundedRange):  # one choice, whose epsilon is its range
            kind = BoundedRange
        largest = self._largest(kind, sums)
        if not largest:
            return "nothing more fits"
        leak = self._theorem == "basic" and charge.amounts["delta"] and self._declared is None
        delta = f", delta={sums.left('delta', self._delta)!r}" if leak else ""
        rho = rho_at(largest, charge) if kind is GaussianDP else 0.0
        also = f"rho={rho!r} of Gaussian noise, or " if rho else ""
        return f"{also}{_PARAMETER.get(kind, 'epsilon')}={largest!r}{delta} would fit"

    def _largest(self, kind: Concentrated, sums: Sums) -> float:
        """The largest parameter of one more release of this kind that fits; 0 if none does.

        Exact where it is what is left of a sum, and to 9 digits, rounded down, where a conversion comes between.
        """

        def fits(parameter: float) -> bool:
            return parameter < inf and self._has_room(sums.plus(Charge(kind(parameter, neighbors=self._neighbors))))

        names = (_PARAMETER[kind],) if kind in _PARAMETER else ("epsilon", "pure")
        limits = ((name, account[name]) for account in self._accounts for name in names if name in account)
        exact = max((sums.left(name, limit) for name, limit in limits), default=0.0)
        if exact and not fits(max(exact * (1 + 1e-9), nextafter(exact, inf))):
            return exact
        found = greatest_float(
            fits, guess=max(self._epsilon, min(2 * exact, 2.0**1023)), tolerance=1e-11,
            smallest=1e-12 * self._epsilon, largest=inf,
        )  # fmt: skip
        return max(exact, float(f"{found * (1 - 6e-10):.9e}"))

    # --- the filters: budget.md, theorem 1 for sums of (epsilon, delta), 2 for sums of rho, 3 for "best"

    def _has_room(self, sums: Sums) -> bool:
        return any(all(sums.within(name, limit) for name, limit in account.items()) for account in self._accounts)

    def _promise(self, sums: Sums) -> Guarantee:
        """What charges with these sums, which have room, promise together."""
        if isinstance(sums, DeclaredSums):
            epsilon, delta = sums.declared.promise(sums)
        elif self._theorem == "basic":
            epsilon, delta = sums.total("epsilon"), sums.total("delta")
        else:
            pure = sums.total("pure") if self._theorem != "zcdp" else inf
            total = sums.total("mu" if self._theorem == "gaussian" else "rho")
            epsilon = min(pure, self._concentrated(total))
            delta = self._delta if total and epsilon < pure else 0.0
        promise: Guarantee = PureDP(epsilon, neighbors=self._neighbors)
        if delta:
            promise = ApproxDP(epsilon, delta, neighbors=self._neighbors)
        return with_origin(promise, SEEDED if sums.seeded else None)

    def _concentrated(self, total: float) -> float:
        """The epsilon of this rho, or this mu, at the budget's delta."""
        if total == 0:
            return 0.0
        epsilon_of = epsilon_of_mu if self._theorem == "gaussian" else epsilon_of_rho
        return min(epsilon_of(total, self._delta), self._epsilon) if total < inf and self._delta else inf


_NAMES = {"epsilon": "epsilon", "delta": "delta", "pure": "epsilon", "rho": "rho", "mu": "mu"}  # of sums, in messages
_PARAMETER: dict[Concentrated, str] = {ZCDP: "rho", GaussianDP: "mu"}


# --- what mechanisms call


class Reservation:
    """A release that is reserved on `budget`, or on the budgets whose blocks are open here, and on all of them or none.

    `commit` makes it final, right before the first noise is drawn; `close` returns it if that has not happened, and so
    does the end of this object.
    """

    __slots__ = ("__weakref__", "_reserved")

    def __init__(
        self,
        budget: Budget | Payers | None,
        guarantee: Guarantee,
        mechanism: str,
        parameters: Mapping[str, Any],
        origin: Origin = SECURE,
    ) -> None:
        self._reserved: list[tuple[Budget, Charge]] = []
        try:
            for each in payers_of(budget):
                made = Charge(guarantee, mechanism, parameters, self, origin)
                self._reserved.append((each, made))
                each._reserve(made)
        except BaseException:
            self.close()  # what budgets say depends on no record
            raise

    @property
    def budgets(self) -> list[Budget]:
        """Those that are charged."""
        return [budget for budget, _ in self._reserved]

    def commit(self) -> None:
        """Make it final; RuntimeError where it was returned, BudgetExceeded where the budget was closed meanwhile."""
        for budget, made in self._reserved:
            if made.fate is None:
                budget._check_open()
        for _, made in self._reserved:
            if not made.decide(FINAL):
                raise RuntimeError("this release has ended, and its charge was returned; make another")

    def close(self, error: BaseException | None = None) -> None:
        """Return what is not final, and count what ended the release if that depends on records."""
        for _, made in self._reserved:
            made.decide(RETURNED)
        if error is not None:
            _count_refusal(error, self.budgets, boundary.is_raised_by_us(error), boundary.is_told_again())


class Payers(tuple[Budget, ...]):
    """Those whom a release is charged to. Its later steps are charged to the same, wherever they are taken."""


def payers_of(budget: Budget | Payers | None) -> Payers:
    """Whom a release that is made here and now is charged to."""
    if isinstance(budget, Payers):
        return budget
    if budget is not None and not isinstance(budget, Budget):
        raise ValueError(f"budget={shown(budget)}: must be a fastdp.Budget or None")
    return Payers(_ambient() if budget is None else [budget])


def _ambient() -> list[Budget]:
    """The budgets whose blocks are open around this code, the innermost first."""
    budgets = list({id(block.budget): block.budget for block in around()}.values())
    if not budgets:
        check_thread()
    return budgets


def check_open(budgets: Sequence[Budget]) -> None:
    """BudgetExceeded if one of these is closed: for what goes on reading records after it has paid."""
    for budget in budgets:
        budget._check_open()


def _count_refusal(error: BaseException, payer: Any, by_us: bool, again: bool) -> None:
    """Count an error that depends on records; BudgetExceeded where the budget was closed by then, and nothing is told.

    A release that was under way and would have gone through is refused in the same words, by `commit`. `payer`: a
    budget, some budgets, or None for those whose blocks are open. `again`: the same call will tell of it once more.
    """
    if isinstance(error, BudgetExceeded) or not depends_on_records(error, by_us=by_us):
        return
    if payer is None:
        payer = [block.budget for block in around()]
    budgets = [each for each in (payer if isinstance(payer, list) else [payer]) if isinstance(each, Budget)]
    late = [each for each in budgets if each._refusals.count(error)]
    if not again:
        forget()
    for budget in late:
        raise BudgetExceeded(f"budget: {reason(budget._refusals)}") from None


boundary.when_refused(_count_refusal)
