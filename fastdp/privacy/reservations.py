"""What mechanisms call to be paid for: reservations on one budget, or on all whose blocks are open, or on none.

A reservation is made before a record is read, becomes final right before the first draw, and is returned by an error
before that. budget.md says why that order is sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..support import boundary
from ..support.calls import ALL, Which
from ..support.parts_read import what_is_read
from ..support.shown import shown
from .blocks import around, check_thread
from .budget import Budget, BudgetExceeded
from .guarantees import Guarantee
from .ledger import FINAL, RETURNED, Charge
from .origin import SECURE, Origin
from .persons import for_persons
from .refusals import depends_on_records, forget, reason


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
        payers = payers_of(budget)
        part, persons = payers.which
        stated = guarantee
        if part:
            parameters = {**parameters, "part": ", ".join(text for _, text in part)}
        if persons is not None:
            parameters = {**parameters, "person": f"{persons.unit}, at most {persons.at_most} rows"}
            stated = for_persons(guarantee, persons.unit, at_most=persons.at_most)
        try:
            for each in payers:
                owed = stated
                if payers.which != ALL and each.neighbors != stated.neighbors:  # of a part, for add-remove neighbours
                    owed = stated.to_replace_one()
                made = Charge(owed, mechanism, parameters, self, origin, part)
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
        for budget, made in self._reserved:
            if not budget._ledger.decide(made, FINAL):
                budget._check_open()
                raise RuntimeError("this release has ended, and its charge was returned; make another")

    def close(self, error: BaseException | None = None) -> None:
        """Return what is not final, and count what ended the release if that depends on records."""
        for budget, made in self._reserved:
            budget._ledger.decide(made, RETURNED)
        if error is not None:
            _count_refusal(error, self.budgets, boundary.is_raised_by_us(error), boundary.is_told_again())


class Payers(tuple[Budget, ...]):
    """Those whom a release is charged to, and which of the records it is on.

    Its later steps are charged to the same, wherever they are taken.
    """

    which: Which = ALL

    @classmethod
    def on(cls, which: Which, budgets: Iterable[Budget]) -> Payers:
        payers = cls(budgets)
        payers.which = which
        return payers


def payers_of(budget: Budget | Payers | None) -> Payers:
    """Whom a release that is made here and now is charged to."""
    if isinstance(budget, Payers):
        return budget
    if budget is not None and not isinstance(budget, Budget):
        raise ValueError(f"budget={shown(budget)}: must be a fastdp.Budget or None")
    return Payers.on(what_is_read(), _ambient() if budget is None else [budget])


def prefers_gaussian(payers: Iterable[Budget]) -> bool:
    """Whether one of these budgets adds up rhos or squares of mu, or what has been declared to it.

    Laplace noise of the same variance takes many times as much of those: "auto" is Gaussian noise there.
    """
    return any(budget.theorem != "basic" or budget.declared for budget in payers)


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


__all__ = ["Payers", "Reservation", "check_open", "payers_of"]
