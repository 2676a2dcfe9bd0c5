"""Whatever has a guarantee, as something that the accountants of dp-accounting take."""

from __future__ import annotations

from typing import Any, Protocol

from .guarantees import Guarantee
from .origin import Origin


class HasGuarantee(Protocol):
    """A release, or what came of one."""

    @property
    def guarantee(self) -> Guarantee | None: ...


class Accounted:
    """Whatever has a guarantee, as something that accountants take."""

    @property
    def origin(self: HasGuarantee) -> Origin | None:
        """What its noise was drawn from, and by which version of fastdp; None where it is of no one release."""
        return None if self.guarantee is None else self.guarantee.origin

    @property
    def seeded(self: HasGuarantee) -> bool:
        """Whether its noise came from a seed: then nothing is private from whoever knows that."""
        return self.guarantee is not None and self.guarantee.seeded

    def dp_event(self: HasGuarantee, accountant: Any = None, *, leak: float = 0.0) -> Any:
        """What it guarantees as an event of the library dp-accounting (extra `[accounting]`).

        Parameters
        ----------
        accountant : accountant of dp_accounting, optional
            Whom the event is for, where it is known: the event is then the tightest that it takes.
        leak : float in [0, 1)
            A delta to be left out of the event; the caller adds it to the accountant's.

        Returns
        -------
        dp_accounting.DpEvent
            connect/dp_accounting.md states what it stands for.
        """
        if self.guarantee is None:
            raise ValueError(f"{type(self).__name__}: has no guarantee: there is no event for it")
        return self.guarantee.dp_event(accountant, leak=leak)
