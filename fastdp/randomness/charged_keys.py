"""How every release is paid for and drawn: reserve, read the records, take a key, draw.

`with ChargedKeys(...) as keys` reserves the guarantee before a record is read; an error inside the block gives it back.
The first key that is taken makes the charge final, so no noise is ever drawn for free, and none is paid for that a
wrong parameter or a record outside the domain has prevented. ../privacy/budget.md says why that order is sound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..privacy.blocks import counting
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee
from ..privacy.origin import with_origin
from ..privacy.persons import for_persons
from ..privacy.reservations import Payers, Reservation, payers_of
from ..privacy.reservations import check_open as check_open
from ..support.parts_read import what_is_read
from ..support.processes import here
from .keys import Randomness, fresh_key, origin_of
from .rehearsal import HeardRelease, listener, open_rehearsals

Stated = TypeVar("Stated", bound=Guarantee)
T = TypeVar("T")


def charged_here(budget: Budget | None) -> Payers:
    """Whom a release that is made here and now is charged to: for what is paid step by step, also later."""
    return payers_of(budget) if counting(budget) else Payers()


def is_plain(budget: Budget | None, rng: Randomness | None) -> bool:
    """Whether a release made here and now is nobody's to pay for, to seed or to hear: all that it needs is a key.

    A call of two microseconds has no time for the half that a `ChargedKeys` takes to find the same.
    """
    return rng is None and not counting(budget) and not open_rehearsals


class ChargedKeys:
    """The keys of one release, charged to `budget` or to the budgets whose blocks are open here.

    Parameters
    ----------
    mechanism : str
        What the row of `budget.releases` is called.
    guarantee : Guarantee
        What the whole release promises.
    parameters : mapping
        What the row says of it; public numbers only.
    budget : Budget or Payers, optional
        Whom to charge; None for the budgets whose blocks are open, Payers for those of a step before.
    rng : Randomness, optional
        Where keys come from; None for the operating system.
    """

    __slots__ = ("_ahead", "_heard", "_process", "_reservation", "_rng")

    def __init__(
        self,
        mechanism: str,
        guarantee: Guarantee,
        parameters: Mapping[str, Any],
        budget: Budget | Payers | None,
        rng: Randomness | None,
    ) -> None:
        self._rng = rng
        self._ahead = False
        self._process = here.number  # _ENDED after the block
        self._reservation: Reservation | None = None
        self._heard: HeardRelease | None = None
        if budget is not None or counting(None):
            self._reservation = Reservation(budget, guarantee, mechanism, parameters, origin_of(rng))
        if (who := listener()) is not None:
            self._heard = who.begins(mechanism, guarantee, parameters, len(self.payers))

    def __enter__(self) -> ChargedKeys:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if self._ahead and kind is None:
            self.commit()
        forked, self._process = self._process != here.number, _ENDED
        if self._reservation is not None:
            self._reservation.close(error)
        if self._heard is not None:
            self._heard.ended(error)
        if forked:  # a child that a callback has forked returns nothing of what its parent has begun
            raise RuntimeError(_BEGUN_ELSEWHERE)

    def take(self) -> NDArray[np.uint32]:
        """A fresh key. From the first one on the charge is final."""
        if self._process != here.number:
            self._refuse()
        key = fresh_key(self._rng)
        if self._reservation is not None:
            self._reservation.commit()
        if self._heard is not None:
            self._heard.drew()
        return key

    def take_bytes(self) -> bytes:
        """The bytes of what `take` returns."""
        return self.take().tobytes()

    def take_ahead(self) -> NDArray[np.uint32]:
        """A key for draws that nobody sees until `commit`, or the end of the block: an error before that gives the
        charge back."""
        if self._process != here.number:
            self._refuse()
        self._ahead = True
        if self._heard is not None:
            self._heard.drew()
        return fresh_key(self._rng)

    def commit(self) -> None:
        """Make the charge final, as `take` does."""
        if self._process != here.number:
            self._refuse()
        if self._reservation is not None:
            self._reservation.commit()

    def reads(self, statistic: T, law: Any = None, unit: float = 1.0, times: int = 1) -> T:
        """What meets noise from here on: `statistic` itself, but in a replay what was read then (rehearsal.py).

        law    the plan of its noise, the factor of scores in a choice as a float, or None for neither
        unit   the grid of floats
        times  how many draws read it
        """
        return statistic if self._heard is None else self._heard.reads(statistic, law, unit, times)

    @property
    def heard(self) -> HeardRelease | None:
        """Who hears what an object reads after the block; None outside of rehearsals."""
        return self._heard

    @property
    def payers(self) -> list[Budget]:
        """The budgets that are charged. What reads records after the block asks `check_open` of them before each."""
        return [] if self._reservation is None else self._reservation.budgets

    def stating(self, guarantee: Stated) -> Stated:
        """The guarantee of the release, which states what its keys came from, and for persons what it is for them."""
        persons = what_is_read().persons
        if persons is not None:  # of the same kind, or several kinds
            guarantee = cast("Stated", for_persons(guarantee, persons.unit, at_most=persons.at_most))
        return with_origin(guarantee, origin_of(self._rng))

    def _refuse(self) -> NoReturn:
        if self._process == _ENDED:
            raise RuntimeError("this release has ended: keys are for draws inside its block")
        raise RuntimeError(_BEGUN_ELSEWHERE)


_ENDED = -1
_BEGUN_ELSEWHERE = "this release was begun in the parent process, which goes on with it; make another here"
