"""Theorems of privacy in 200 digits, from their statements: what a guarantee costs as another."""

from __future__ import annotations

from decimal import Decimal, localcontext

DIGITS = 200


def range_rho(eta: float) -> Decimal:
    """The least rho of eta-bounded range: r - 1 - ln r, r = eta / (e^eta - 1)."""
    with localcontext() as context:
        context.prec = DIGITS
        r = Decimal(eta) / (Decimal(eta).exp() - 1)
        return r - 1 - r.ln()


def pure_rho(epsilon: float) -> Decimal:
    """The least rho of epsilon-DP: epsilon tanh(epsilon / 2)."""
    with localcontext() as context:
        context.prec = DIGITS
        grown = Decimal(epsilon).exp()
        return Decimal(epsilon) * (grown - 1) / (grown + 1)
