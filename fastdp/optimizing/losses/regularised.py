"""The regulariser, and losses that have one."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from ...support.checks import non_negative


@dataclass(frozen=True)
class _Regulariser:
    """A public term of what is minimised, and its weight."""

    lam: float

    def __post_init__(self) -> None:
        lam = non_negative("lam", self.lam, toward=inf)
        if lam > 2.0**300:
            raise ValueError(f"lam={self.lam!r}: must be at most 2^300")
        object.__setattr__(self, "lam", lam)


@dataclass(frozen=True)
class L2(_Regulariser):
    """lam / 2 ||w||^2, added to the mean loss. It is public: never clipped, and no noise is added for it.

    Parameters
    ----------
    lam : float >= 0
        Its weight.
    """


@dataclass(frozen=True)
class L1(_Regulariser):
    """lam (|w_1| + ... + |w_d|), added to the mean loss: coordinates that matter little become 0.

    It is public, like L2; a loss with both has the elastic net. Over a Box, or a Ball around 0.

    Parameters
    ----------
    lam : float >= 0
        Its weight.

    Examples
    --------
    >>> from fastdp import losses
    >>> losses.Logistic(x_norm=1) + losses.L1(0.01) + losses.L2(0.1)
    Logistic(x_norm=1) + L2(0.1) + L1(0.01)
    """


@dataclass(frozen=True)
class Regularised:
    """A loss and its regularisers, as `loss + L2(lam)` makes it.

    Parameters
    ----------
    loss : Loss
        The loss of a record.
    l2 : L2
        The regulariser.
    l1 : L1
        The other one.
    """

    loss: Any
    l2: L2
    l1: L1 = L1(0.0)

    def __add__(self, other: Any) -> Regularised:
        if isinstance(other, L1):
            return Regularised(self.loss, self.l2, L1(self.l1.lam + other.lam))
        if isinstance(other, L2):
            return Regularised(self.loss, L2(self.l2.lam + other.lam), self.l1)
        return NotImplemented

    def __repr__(self) -> str:
        l2 = f" + L2({self.l2.lam:g})" if self.l2.lam or not self.l1.lam else ""
        return f"{self.loss!r}{l2}" + (f" + L1({self.l1.lam:g})" if self.l1.lam else "")
