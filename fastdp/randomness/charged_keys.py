"""How every release is paid for and drawn: reserve, read the records, take a key, draw.

`with ChargedKeys(...) as keys` reserves the guarantee before a record is read; an error inside the block gives it back.
The first key that is taken makes the charge final, so no noise is ever drawn for free, and none is paid for that a
wrong parameter or a record outside the domain has prevented. ../privacy/budget.md says why that order is sound.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.budget import Budget, Reservation, counting
from ..privacy.guarantees import Guarantee
from ..support import processes
from .keys import Randomness, fresh_key


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
    budget : Budget, optional
        Whom to charge; None for the budgets whose blocks are open.
    rng : Randomness, optional
        Where keys come from; None for the operating system.
    """

    __slots__ = ("_ahead", "_ended", "_process", "_reservation", "_rng")

    def __init__(
        self,
        mechanism: str,
        guarantee: Guarantee,
        parameters: Mapping[str, Any],
        budget: Budget | None,
        rng: Randomness | None,
    ) -> None:
        self._rng = rng
        self._ahead = self._ended = False
        self._process = processes.generation()
        self._reservation = Reservation(budget, guarantee, mechanism, parameters) if counting(budget) else None

    def __enter__(self) -> ChargedKeys:
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None and self._ahead:
            self.commit()
        self._ended = True
        if self._reservation is not None:
            self._reservation.close()
        self._check_process()  # a child that a callback has forked returns nothing of what its parent has begun

    def _check(self) -> None:
        if self._ended:
            raise RuntimeError("this release has ended: keys are for draws inside its block")
        self._check_process()

    def _check_process(self) -> None:
        if processes.generation() != self._process:
            raise RuntimeError("this release was begun in the parent process, which goes on with it; make another here")

    def take(self) -> NDArray[np.uint32]:
        """A fresh key. From the first one on the charge is final."""
        self._check()
        key = fresh_key(self._rng)
        if self._reservation is not None:
            self._reservation.commit()
        return key

    def take_ahead(self) -> NDArray[np.uint32]:
        """A key for draws that nobody sees until `commit`, or the end of the block: an error before that gives the
        charge back."""
        self._check()
        self._ahead = True
        return fresh_key(self._rng)

    def commit(self) -> None:
        """Make the charge final, as `take` does."""
        self._check()
        if self._reservation is not None:
            self._reservation.commit()
