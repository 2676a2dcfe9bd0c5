"""What the bounds of whole runs return: an error bound, and what the run takes."""

from __future__ import annotations

from dataclasses import dataclass

from ..records.domain import display_count
from ..support.public_paths import public_as
from ..support.results import Displayed, DisplayLines
from .memory import display_bytes


@public_as("fastdp.answering")
@dataclass(frozen=True, repr=False)
class Estimate(Displayed):
    """The error bound of a run, and what it takes.

    Attributes
    ----------
    alpha : float or None
        All answers are within alpha, with probability 1 - beta; None where nothing is guaranteed.
    beta : float
        The probability with which the accuracy may fail.
    rounds : int
        At most so many updates, or rounds.
    cells : int
        Of the domain.
    weight_bytes : int
        What weights take in memory: at first, where they are factored.
    record_bytes : int
        What records take in memory.
    plain_alpha : float or None
        Within which all answers would be if each had plain noise, for the same total; None for release_marginals,
        which is plain noise. Where it is below alpha, plain noise is the better choice.
    bytes : int
        Weights and records together.
    """

    alpha: float | None
    beta: float
    rounds: int
    cells: int
    weight_bytes: int
    record_bytes: int
    plain_alpha: float | None = None

    @property
    def bytes(self) -> int:
        """What weights and records take in memory."""
        return self.weight_bytes + self.record_bytes

    @property
    def _bound(self) -> str:
        return f"{self.alpha:.4g} with probability {1 - self.beta:g}"

    def _display(self) -> DisplayLines:
        lines = [
            ("alpha", "none" if self.alpha is None else self._bound),
            ("rounds", f"at most {self.rounds:,}"),
            ("cells", display_count(self.cells)),
            ("weights", display_bytes(self.weight_bytes)),
            ("records", display_bytes(self.record_bytes)),
        ]
        plain = [] if self.plain_alpha is None else [("plain noise", f"{self.plain_alpha:.4g} on each answer")]
        return lines[:1] + plain + lines[1:]

    def __str__(self) -> str:
        alpha = "no error bound" if self.alpha is None else f"within {self._bound}"
        if self.plain_alpha is not None and self.plain_alpha < (1 if self.alpha is None else self.alpha):
            alpha += f", plain noise on each answer within {self.plain_alpha:.4g}"
        return (
            f"{alpha}; at most {self.rounds:,} round{'s' * (self.rounds != 1)}; {display_count(self.cells)} cells, "
            f"weights of {display_bytes(self.weight_bytes)}, records of {display_bytes(self.record_bytes)}"
        )
