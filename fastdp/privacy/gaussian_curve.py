"""The privacy curve of Gaussian noise: delta at every epsilon."""

from __future__ import annotations

from math import erfc, exp, pi, sqrt


def nearly_delta(r: float, epsilon: float) -> float:
    """The least delta of continuous Gaussian noise of r times the sensitivity, in floats.

    Balle and Wang (2018): Q(epsilon r - 1 / (2 r)) - e^epsilon Q(epsilon r + 1 / (2 r)), Q(x) = Pr[N(0, 1) > x].
    """
    a, b = epsilon * r - 0.5 / r, epsilon * r + 0.5 / r
    if b > 25:  # e^epsilon and Q(b) would leave the range together: e^epsilon Q(b) = phi(a) m(b), m the Mills ratio
        mills = 1 / (b + 1 / (b + 2 / (b + 3 / (b + 4 / b))))
        second = exp(-a * a / 2) / sqrt(2 * pi) * mills
    else:
        second = exp(epsilon) * erfc(b / sqrt(2)) / 2
    return erfc(a / sqrt(2)) / 2 - second
