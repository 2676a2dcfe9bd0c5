"""Theorems of privacy in 200 digits, from their statements: what a guarantee costs as another."""

from __future__ import annotations

from decimal import Decimal, localcontext

import mpmath

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


SCALE = 220  # bits of a probability below; a sum of them is packed into one integer, 512 bits each


def discrete_gaussian_delta(sigma: float, epsilon: float, shift: tuple[int, ...]) -> mpmath.mpf:
    """The least delta of discrete Gaussian noise on integer vectors that differ by `shift`: (P - e^epsilon Q)_+ summed.

    The loss depends on <z, shift> alone, whose law is a product of polynomials: one product of integers each.
    """
    with mpmath.workdps(70):
        variance = mpmath.mpf(sigma) ** 2
        window = int(22 * sigma) + 3
        weights = [mpmath.exp(-mpmath.mpf(z * z) / (2 * variance)) for z in range(-window, window + 1)]
        norm = mpmath.fsum(weights)
        probabilities = [int(mpmath.floor(w / norm * 2**SCALE)) for w in weights]
        law, size = [2**SCALE], 1
        for v in shift:
            spread = [0] * (v * (len(probabilities) - 1) + 1)
            spread[::v] = probabilities
            size += len(spread) - 1
            law = _unpacked(_packed(law) * _packed(spread), size)
        square, found = sum(v * v for v in shift), mpmath.mpf(0)
        for y, p in enumerate(law, start=-window * sum(shift)):
            loss = (square + 2 * y) / (2 * variance)
            if p and loss > epsilon:
                found -= p * mpmath.expm1(epsilon - loss)
        return found / 2**SCALE


def _packed(law: list[int]) -> int:
    return int.from_bytes(b"".join(p.to_bytes(64, "little") for p in law), "little")


def _unpacked(product: int, size: int) -> list[int]:
    packed = product.to_bytes(64 * size, "little")
    return [int.from_bytes(packed[i : i + 64], "little") >> SCALE for i in range(0, 64 * size, 64)]
