"""What a lower bound found: numbers, a verdict in words, and a picture."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..privacy.guarantees import Guarantee
from ..support.public_paths import public_as
from ..support.results import DisplayLines, as_html, as_text
from .losses import epsilon_of, mu_of, refutes, rho_of, trade_off_of
from .pictures import trade_off

LIMITS = (
    "It does not prove privacy: another pair of inputs, or an event that was not sought or is rarer than can be "
    "sampled, may lose more."
)


@public_as("fastdp.audit")
@dataclass(frozen=True, repr=False)
class LowerBound:
    """How much privacy a function loses at least, on two inputs.

    Attributes
    ----------
    event : str
        The event by which they were told apart.
    counts : tuple of int
        How often it happened, of `tested` outputs each: on the input for which it is likely, and on the other.
    tested : int
        How many outputs of each input it was counted on.
    limits : tuple of float
        Its probability is at least the first on the one, and at most the second on the other, at `confidence`.
    runs : int
        How many outputs there were of each input.
    confidence : float
        Of all bounds together.
    delta : float
        At which `epsilon` is stated.
    claimed : Guarantee or None
        What is claimed.
    epsilon : float
        The least with which (epsilon, delta)-DP can hold.
    mu : float
        The least with which Gaussian DP can.
    rho : float
        The least with which zCDP can.
    refuted : bool
        Whether the claim cannot hold; False without one.
    """

    event: str
    counts: tuple[int, int]
    tested: int
    limits: tuple[float, float]
    runs: int
    confidence: float
    delta: float
    claimed: Guarantee | None
    _points: tuple[tuple[float, float], ...] = field(repr=False)  # epsilons of the claim at deltas

    @property
    def epsilon(self) -> float:
        return epsilon_of(*self.limits, self.delta)

    @property
    def mu(self) -> float:
        return mu_of(*self.limits)

    @property
    def rho(self) -> float:
        return rho_of(*self.limits)

    @property
    def refuted(self) -> bool:
        return self.claimed is not None and refutes(*self.limits, self.claimed, list(self._points))

    @property
    def verdict(self) -> str:
        """What follows, in words, and what does not."""
        at = f" at delta={self.delta:g}" if self.delta else ""
        found = f"It loses at least epsilon={self.epsilon:.4g}{at} on these inputs, with confidence {self.confidence:g}"
        if self.refuted:
            return f"REFUTED: it is not {self.claimed}. {found}."
        if self.claimed is None:
            return f"{found}. {LIMITS}"
        return f"Not refuted: {self.claimed}. {found}. {LIMITS}"

    def _display(self) -> DisplayLines:
        k, m = self.counts
        return [
            ("verdict", self.verdict),
            ("epsilon", f">= {self.epsilon:.4g}" + f" at delta={self.delta:g}" * bool(self.delta)),
            ("mu, rho", f">= {self.mu:.4g}, {self.rho:.4g}"),
            ("event", self.event),
            ("happened", f"{k:,} and {m:,} times of {self.tested:,}; {self.runs:,} runs each"),
        ]

    def __repr__(self) -> str:
        return f"LowerBound\n{as_text(self._display())}"

    def _repr_html_(self) -> str:
        return as_html("LowerBound", self._display()) + self.svg()

    def svg(self) -> str:
        """The trade-off of the errors of a test: what is claimed, and what was seen. A dot below the curve refutes it.

        Returns
        -------
        str
            An SVG document.
        """
        k, m = self.counts
        seen = m / self.tested, 1 - k / self.tested
        bound = self.limits[1], 1 - self.limits[0]
        curve = trade_off_of(list(self._points)) if self.claimed is not None else []
        title = "no claim" if self.claimed is None else f"claimed: {self.claimed}"
        return trade_off(title[:44], curve, seen, bound, not self.refuted)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for files.

        Returns
        -------
        dict
            With "epsilon", "delta", "mu", "rho", "refuted", "verdict" and what they are from.
        """
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.mu,
            "rho": self.rho,
            "refuted": self.refuted,
            "claimed": None if self.claimed is None else str(self.claimed),
            "verdict": self.verdict,
            "event": self.event,
            "counts": list(self.counts),
            "tested": self.tested,
            "limits": list(self.limits),
            "runs": self.runs,
            "confidence": self.confidence,
        }
