"""Budgets: a total that releases are charged to, in the order in which they happen, by whoever makes them.

A release is charged in three steps: it reserves its guarantee before it reads a record, the reservation becomes final
when the first noise is drawn, and an error before that returns it. budget.md says which theorem makes the running total
sound when parameters are chosen on the way, and why the others are not offered here.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from math import inf
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..support import processes
from ..support.checks import instance_of
from ..support.public_paths import public_as
from ..support.results import as_code
from ..support.shown import shown
from .blocks import Exit, Holders, open_block
from .composition import Counted
from .declared import Declared, DeclaredSums, stated
from .filters import Filter, Theorem, Totals
from .guarantees import A_GUARANTEE, Guarantee, Neighbors, PureDP
from .ledger import FINAL, Charge, Ledger, MemoryLedger, Sums
from .neighbors import kind_of, mismatch, of_persons, unit_of
from .origin import ELSEWHERE, short_form, with_origin
from .refusals import ALLOWED, Refusals, reason
from .releases import Release, Releases


@public_as("fastdp")
class BudgetExceeded(ValueError):
    """A release was refused: it would have passed the total. Nothing was read, nothing was charged."""


@public_as("fastdp")
class Budget:
    """A total epsilon (and delta), rho or mu that several releases share.

    `with Budget(epsilon=1, delta=1e-6) as b:` charges every release of this thread, and of asyncio tasks begun in it;
    `fastdp.laplace(x, ..., budget=b)` charges this release, from any thread, inside or outside a block. Epsilons and
    deltas add up exactly, by their decimal values: ten releases of 0.1 fit in 1.

    Parameters
    ----------
    epsilon : float > 0, optional
        The epsilon of all releases together.
    delta : float in [0, 1)
        Their delta.
    rho : float > 0, optional
        In place of an epsilon: the rho of all releases together, of concentrated DP.
    mu : float > 0, optional
        In place of an epsilon: their mu, of Gaussian DP.
    theorem : {"basic", "zcdp", "gaussian", "best"}
        "basic": epsilons add up, and deltas add up. "zcdp": concentrated DP, rhos add up and are converted at the end,
        which is what many releases want. "gaussian": Gaussian DP, squares of mu add up and are converted exactly, for
        Gaussian noise above all; a release goes through when they or the pure epsilons have room. "best": the same with
        rhos. A total that is a rho or a mu has one sum, of rhos or of squares of mu.
    neighbors : {"replace-one", "add-remove"}
        The relation that all its releases must have.
    unit : str, optional
        For persons: the column that tells them apart. All releases must be for such persons, as those on
        `fastdp.limit_rows(data, unit=...)` are; what is for records is refused.
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

    __slots__ = ("__weakref__", "_filter", "_holders", "_home", "_ledger", "_process", "_refusals")

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        mu: float | None = None,
        theorem: Theorem = "basic",
        neighbors: Neighbors = "replace-one",
        unit: str | None = None,
        refusals: int = ALLOWED,
        declared: Iterable[Counted] | None = None,
    ) -> None:
        totals = Totals.of(
            epsilon=epsilon, delta=delta, rho=rho, mu=mu, theorem=theorem, neighbors=of_persons(neighbors, unit),
            refusals=refusals, declared=declared,
        )  # fmt: skip
        kept = Filter(totals)
        self._begin(kept, MemoryLedger(kept.nothing), None)

    def _begin(self, kept: Filter, ledger: Ledger, home: tuple[str, str] | None) -> None:
        self._filter, self._ledger, self._home = kept, ledger, home
        self._refusals = Refusals(kept.totals.refusals, ledger)
        self._holders: Holders = {}
        self._process = processes.here.number  # the last: nothing can be set from here on

    @classmethod
    def open(
        cls,
        url: str,
        *,
        name: str = "default",
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        mu: float | None = None,
        theorem: Theorem | None = None,
        neighbors: Neighbors | None = None,
        unit: str | None = None,
        refusals: int | None = None,
        declared: Iterable[Counted] | None = None,
    ) -> Budget:
        """A budget in a file, which many processes share and which outlives them.

        It is made where a total is given and there is none of this name, and opened otherwise. Whoever opens it again
        may leave out whatever was stated; another total, theorem, relation and so on is an error.

        Parameters
        ----------
        url : str
            "sqlite:///" and a path: three slashes before a relative path, four before an absolute one.
        name : str
            Which budget of the file.
        epsilon : float > 0, optional
            As of `Budget`, here and below.
        delta : float in [0, 1), optional
            The delta; 0 where an epsilon is given without.
        rho : float > 0, optional
            The total of concentrated DP, instead of epsilon.
        mu : float > 0, optional
            The total of Gaussian DP, instead of epsilon.
        theorem : {"basic", "zcdp", "gaussian", "best"}, optional
            Which sums are kept.
        neighbors : {"replace-one", "add-remove"}, optional
            The relation that all its releases must have.
        unit : str, optional
            The column that tells persons apart.
        refusals : int >= 0, optional
            How many releases may fail because of their records.
        declared : sequence of Guarantee or tuple of Guarantee and int, optional
            Releases that are known beforehand.

        Returns
        -------
        Budget
            It may be used in forked children, and pickles: other processes of this machine open the same one.

        Raises
        ------
        LedgerError
            Where the file cannot be used: it is damaged, of a newer fastdp, may not be written to, or others may
            write to it. A release that needs it and finds it so, or the disk full, raises it, too, and draws nothing.
        ValueError
            Where there is no such budget and no total, or another total.

        Notes
        -----
        Guarantee    that of `Budget`, for all releases of all processes together. What was reserved by a process that
                     has died counts as spent
        Proof        sqlite_ledger.md
        Cost         a charge .3 ms, of which the disk takes most
        Not covered  a file that is restored from an older copy, which forgets what came after; network file systems

        Examples
        --------
        >>> import fastdp, os, tempfile
        >>> file = os.path.join(tempfile.mkdtemp(), "budget.db")
        >>> first = fastdp.Budget.open(f"sqlite:///{file}", epsilon=1.0)
        >>> noisy = fastdp.laplace(3, sensitivity=1, epsilon=0.25, budget=first)
        >>> print(fastdp.Budget.open(f"sqlite:///{file}").left)  # in any process
        0.75-DP, replace-one
        """
        from .sqlite_ledger import SqliteLedger, open_budget  # which imports sqlite3

        relation: Neighbors = "replace-one" if neighbors is None else neighbors
        given: dict[str, Any] = {
            "epsilon": epsilon, "delta": delta, "rho": rho, "mu": mu, "theorem": theorem,
            "neighbors": neighbors if unit is None else of_persons(relation, unit),
            "refusals": refusals, "declared": declared,
        }  # fmt: skip
        file, key, totals = open_budget(url, name, given)
        kept = Filter(totals)
        budget = cls.__new__(cls)
        budget._begin(kept, SqliteLedger(file, key, kept.nothing, totals.refusals), (f"sqlite:///{file.path}", name))
        return budget

    @staticmethod
    def stored(url: str) -> list[str]:
        """The names of all budgets in a file.

        Parameters
        ----------
        url : str
            As of `open`.

        Returns
        -------
        list of str
            In the order in which they were made.
        """
        from .sqlite_ledger import budgets_of

        return budgets_of(url)

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
    def total(self) -> Guarantee:
        """What all releases together may have."""
        return self._filter.totals.whole

    @property
    def epsilon(self) -> float:
        """The epsilon of all releases together; inf where the total is a rho or a mu."""
        epsilon = self._filter.totals.epsilon
        return inf if epsilon is None else epsilon

    @property
    def delta(self) -> float:
        """The delta of all releases together."""
        return self._filter.totals.delta

    @property
    def theorem(self) -> Theorem:
        """Which sums are kept."""
        return self._filter.totals.theorem

    @property
    def neighbors(self) -> Neighbors:
        """The relation that all releases have."""
        return self._filter.totals.neighbors

    @property
    def unit(self) -> str | None:
        """What tells persons apart; None where the budget is for records."""
        return unit_of(self._filter.totals.neighbors)

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
        return self._filter.promise(self._ledger.sums())

    @property
    def left(self) -> PureDP:
        """The largest further release of pure DP that fits, and was not declared."""
        if self._refusals.exceeded:
            return PureDP(0.0, neighbors=self._filter.totals.neighbors)
        largest = self._filter.largest(PureDP, self._ledger.sums(), self._has_room)
        return PureDP(largest, neighbors=self._filter.totals.neighbors)

    @property
    def releases(self) -> Releases:
        """All releases that have drawn noise; of a stored budget also those of which that is not known."""
        rows = []
        for charge, sums in self._ledger.running():
            guarantee = with_origin(charge.guarantee, charge.origin)
            item = None if self._declared is None or charge.item is None else self._declared.items[charge.item][0]
            state = charge.fate or "reserved"
            total = self._filter.promise(sums)
            rows.append(Release(charge.mechanism, charge.parameters, guarantee, total, item, state, charge.made))
        return Releases(rows, still_open=None if self._declared is None else stated(self.still_open))

    @property
    def _declared(self) -> Declared | None:
        return self._filter.declared

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
            False also for another relation, and in a forked process, unless the budget is stored.
        """
        if not isinstance(guarantee, Guarantee):
            raise ValueError(f"guarantee={shown(guarantee)}: must be a guarantee, such as PureDP(0.1)")
        mine = processes.here.number == self._process or self._ledger.is_stored
        ours = mine and guarantee.neighbors == self._filter.totals.neighbors
        return ours and not self._refusals.exceeded and self._has_room(self._ledger.sums().placed(Charge(guarantee)))

    def __repr__(self) -> str:
        totals = self._filter.totals
        name, value = next((name, value) for name in ("epsilon", "rho", "mu") if (value := getattr(totals, name)))
        delta = f", delta={totals.delta!r}" if totals.delta else ""
        refusals = f", refusals={self.refusals}" if self.refusals != ALLOWED else ""
        states = [charge.fate for charge, _ in self._ledger.running()]
        releases, reserved = states.count(FINAL), len(states) - states.count(FINAL)
        doubt = f" and {reserved} reserved" if reserved else ""
        refused = f", {self.refused} refused because of records" if self.refused else ""
        items = sum(count for _, count in self.declared)
        declared = f", declared=<{items}>" if self._declared else ""
        still_open = f", {sum(k for _, k in self.still_open)} of {items} declared are open" if self._declared else ""
        made = "Budget(" if self._home is None else f"Budget.open({self._home[0]!r}, name={self._home[1]!r}, "
        unit = "" if self.unit is None else f", unit={self.unit!r}"
        return (
            f"{made}{name}={value!r}{delta}, theorem={totals.theorem!r}, neighbors={kind_of(totals.neighbors)!r}"
            f"{unit}{refusals}{declared})  # spent {short_form(self.spent)}, {releases} "
            f"release{'s' if releases != 1 else ''}{doubt}{still_open}{refused}"
            f"{': closed' if self._refusals.exceeded else ''}"
        )

    def _repr_html_(self) -> str:
        return as_code(repr(self)) + self.releases._repr_html_()

    # --- one budget is one budget

    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: Any) -> Budget:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._home is not None:
            return _opened, (type(self), *self._home)
        raise TypeError(
            "a Budget does not pickle: two processes would spend it twice; give each process its own share, or share "
            "one by Budget.open"
        )

    def _check_process(self) -> None:
        if processes.here.number != self._process and not self._ledger.is_stored:
            raise RuntimeError(
                "this budget belongs to the parent process, which could spend it as well; make another and pass "
                "budget= (inside of the parent's block its own block is not enough: the releases are charged to both)"
            )

    # --- charging

    def _check_open(self) -> None:
        if self._refusals.exceeded:
            raise BudgetExceeded(f"budget: {reason(self._refusals)}")

    def charge(self, guarantee: Guarantee, name: str, *, parameters: Mapping[str, Any] | None = None) -> None:
        """Charge a release that a mechanism of another library is about to make.

        Call it before that mechanism runs: the charge is final when this returns.

        Parameters
        ----------
        guarantee : Guarantee
            What the whole release guarantees, under the budget's relation.
        name : str
            What the row of `releases` is called.
        parameters : mapping, optional
            What the row states of it; public numbers only.

        Raises
        ------
        BudgetExceeded
            Where it does not fit. Nothing is charged then.

        Notes
        -----
        Not covered  whether the guarantee is true

        Examples
        --------
        >>> import fastdp
        >>> budget = fastdp.Budget(rho=0.5)
        >>> budget.charge(fastdp.ZCDP(0.125), "opendp.make_gaussian", parameters={"scale": 2.0})
        >>> print(budget.spent)
        0.125-zCDP, replace-one
        """
        instance_of(Guarantee, "guarantee", guarantee, A_GUARANTEE)
        if not isinstance(name, str) or not name:
            raise ValueError(f"name={shown(name)}: must be a text")
        if parameters is not None and not isinstance(parameters, Mapping):
            raise ValueError(f"parameters={shown(parameters)}: must be a mapping of names to public numbers")
        made = Charge(guarantee, str(name), parameters, None, guarantee.origin or ELSEWHERE)
        self._reserve(made)
        if not self._ledger.decide(made, FINAL):
            self._check_open()
            raise RuntimeError("budget: this charge was begun in another process; make another here")

    def _reserve(self, charge: Charge) -> None:
        self._check_process()
        self._check_open()
        guarantee = charge.guarantee
        relation = self._filter.totals.neighbors  # not the property, which a subclass may answer otherwise
        if guarantee.neighbors != relation:
            raise ValueError(mismatch(relation, guarantee.neighbors))
        before = self._ledger.reserve(charge, self._has_room)
        if before is None:
            return
        if self._declared is not None:
            raise BudgetExceeded(self._not_declared(charge, before))
        if why := self._filter.why_never(charge.amounts):
            raise ValueError(f"budget: {charge.mechanism} asks for {short_form(guarantee)}; {why}")
        raise BudgetExceeded(
            f"budget: {charge.mechanism} asks for {short_form(guarantee)}; left of {short_form(self.total)} "
            f"({self.theorem}): {self._filter.left(before)}; {self._fitting(charge, before)}"
        )

    def _not_declared(self, charge: Charge, before: Sums) -> str:
        still_open, left = stated(self.still_open) or "nothing", self._filter.left(before)
        beside = f"beside what was declared ({self.theorem}): {left}; " if left else ""
        return (
            f"budget: {charge.mechanism} asks for {short_form(charge.guarantee)}, which no declared release covers "
            f"that is open ({still_open}); {beside}{self._fitting(charge, before)}"
        )

    def _fitting(self, charge: Charge, sums: Sums) -> str:
        return self._filter.fitting(charge, sums, self._has_room)

    def _has_room(self, sums: Sums) -> bool:
        return self._filter.has_room(sums)


def _opened(kind: type[Budget], url: str, name: str) -> Budget:
    return kind.open(url, name=name)
