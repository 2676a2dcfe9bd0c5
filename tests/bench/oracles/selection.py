"""What the selection room's cases must have produced."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests import laws


def _softmax_law(scores: Any, eta: float) -> Any:
    weights = np.exp(eta * (scores - scores.max()))
    return weights / weights.sum()


def _permute_and_flip_law(scores: Any, eta: float) -> Any:
    """A head's chance to be the first: w_i, times the integral of the others' 1 - w_j t over t in [0, 1]."""
    weights = np.exp(eta * (scores - scores.max()))
    points, shares = np.polynomial.legendre.leggauss(200)
    law = np.zeros_like(weights)
    for t, share in zip((points + 1) / 2, shares / 2, strict=True):
        factors = np.log1p(-t * weights)
        law += share * weights * np.exp(factors.sum() - factors)
    return law


def _check_choices(make: Any, other: Any = None, *, sharp: bool = True) -> Any:
    """How the winners, or the first of the k best, rank by score. The laws of wrong scales, or another law, are
    refuted; but not where the law is flat at any scale, or certain."""

    def check(drawn: Any, parameters: Any) -> None:
        scores, choices = drawn
        k = parameters.get("k", 1)
        eta = parameters["epsilon"] / (2 * k * parameters.get("draws", 1))
        assert all(len(set(row)) == k for row in choices.tolist())
        order = np.argsort(scores, kind="stable")
        ranks = np.argsort(order)[choices[:, 0]]

        def verdict(law: Any) -> Any:
            sums = np.concatenate(([0.0], np.cumsum(law[order])))
            return laws.check_dkw(ranks, lambda z: sums[np.clip(z + 1, 0, scores.size)])

        right = verdict(make(scores, eta))
        assert right, str(right)
        wrong = [make(scores, eta * factor) for factor in (1.5, 1 / 1.5)] + ([other(scores, eta)] if other else [])
        assert not (sharp and any(verdict(law) for law in wrong))

    return check


ORACLES: dict[str, Any] = {
    "softmax": _check_choices(_softmax_law),
    "softmax, at any scale": _check_choices(_softmax_law, sharp=False),
    "permute and flip": _check_choices(_permute_and_flip_law, _softmax_law),
}
