"""Tables of counts: what is nearest to estimates of them, by sorting and in fractions."""

from fractions import Fraction
from itertools import accumulate


def nearest_table(values: list[float], total: float) -> list[float]:
    """The point with entries >= 0 and this sum that is nearest: the largest k entries, less what they have too much.

    k is the largest number of entries that all stay above 0.
    """
    exact = sorted((Fraction(value) for value in values), reverse=True)
    cuts = [(above - Fraction(total)) / k for k, above in enumerate(accumulate(exact), 1)]
    cut = next(cuts[k - 1] for k in range(len(exact), 0, -1) if exact[k - 1] > cuts[k - 1])
    return [float(max(Fraction(value) - cut, Fraction(0))) for value in values]
