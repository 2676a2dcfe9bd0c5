"""The regulariser, and losses that have one."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from ...support.checks import non_negative


@dataclass(frozen=True)
class L2:
    """lam / 2 ||w||^2, added to the mean loss. It is public: never clipped, and no noise is added for it.

    Parameters
    ----------
    lam : float >= 0
        Its weight.
    """

    lam: float

    def __post_init__(self) -> None:
        lam = non_negative("lam", self.lam, toward=inf)
        if lam > 2.0**300:
            raise ValueError(f"lam={self.lam!r}: must be at most 2^300")
        object.__setattr__(self, "lam", lam)


@dataclass(frozen=True)
class Regularised:
    """A loss and a regulariser, as `loss + L2(lam)` makes it.

    Parameters
    ----------
    loss : Loss
        The loss of a record.
    l2 : L2
        The regulariser.
    """

    loss: Any
    l2: L2

    def __repr__(self) -> str:
        return f"{self.loss!r} + L2({self.l2.lam:g})"
