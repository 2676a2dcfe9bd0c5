"""Many quantiles by division, from the definition: laws over all results on tiny lines, and ranks with ties.

Imports nothing of fastdp. Cuts are 0 .. size - 1; a record is a cut, the first that has it on its left; a cut z stands
for the number z // step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def weights_of_part(
    records: Sequence[int],
    low: int,
    high: int,
    tau: Any,
    eta: Any,
    *,
    divides: bool,
    step: int = 1,
    m: Any = None,
    offset: Any = 0,
) -> dict[int, float]:
    """exp(-eta F(z)) of each cut of a part; `m` in place of the number of records, for mutants."""
    target = tau * (len(records) if m is None else m) + offset
    found = {}
    for z in range(low, high + 1):
        if divides:
            loss = abs(sum(x <= z for x in records) - target)
        else:
            v = z // step
            below, up_to = sum(x // step < v for x in records), sum(x // step <= v for x in records)
            loss = max(below - target, target - up_to)
        found[z] = math.exp(-float(eta) * float(loss))
    return found


def law_of_all(
    records: Sequence[int], size: int, nodes: Sequence[Any], count: int, *, step: int = 1, public_sizes: Any = None
) -> dict[tuple[int, ...], float]:
    """The probability of every tuple of cuts; nodes have first, stop, middle, tau, eta, divides, in order of levels.

    `public_sizes` is a mutant: the number of records of a part is taken to be so many times its share.
    """
    laws: dict[tuple[Any, ...], float] = {(None,) * count: 1.0}
    for node in nodes:
        extended: dict[tuple[Any, ...], float] = {}
        for cuts, probability in laws.items():
            low = cuts[node.first - 1] if node.first else -1
            high = cuts[node.stop] if node.stop < count else size - 1
            inside = [x for x in records if low < x <= high]
            m = None if public_sizes is None else public_sizes(node)
            weights = weights_of_part(
                inside, max(low, 0), high, node.tau, node.eta, divides=node.divides, step=step, m=m
            )
            total = sum(weights.values())
            for z, weight in weights.items():
                drawn = (*cuts[: node.middle], z, *cuts[node.middle + 1 :])
                extended[drawn] = extended.get(drawn, 0.0) + probability * weight / total
        laws = extended
    return laws


def rank_errors(values: NDArray[Any], answers: Sequence[Any], qs: Sequence[float]) -> NDArray[np.float64]:
    """How far q n is from the ranks that an answer has among the values: any in #{x < v} .. #{x <= v} is right."""
    ordered, target = np.sort(values), np.asarray(qs, float) * len(values)
    below, up_to = np.searchsorted(ordered, answers, "left"), np.searchsorted(ordered, answers, "right")
    return np.maximum(0.0, np.maximum(below - target, target - up_to))


def weight_of_float(z: float, mantissa: int, least: int) -> float:
    """What a float with so many bits of mantissa weighs among others: those from 2^e to 2^(e + 1) share W(e).

    W(e) = 1 from 2^-8 to 2^32, 1/16 up to 2^96; it halves with each second power below 2^-8, and with each fourth below
    2^-16, no further than 2^-16 for 64 bits, 2^-13 for 32 and 2^-10 for 16, which is what the largest have; 0 weighs
    1/16. `least` is e of the least normal number; those below it share W(least - 1).
    """
    lightest = {52: -16, 23: -13, 10: -10}[mantissa]
    if not z:
        return 2.0**-4
    e = max(math.frexp(z)[1] - 1, least - 1)
    if -8 <= e < 96:
        return 2.0 ** (-4 * (e >= 32) - mantissa)
    if e >= 96:
        return 2.0 ** (lightest - mantissa)
    together = -math.ceil((-8 - e) / 2) if e >= -16 else -4 - math.ceil((-16 - e) / 4)
    return 2.0 ** (max(together, lightest) - mantissa)


def weight_of_integer(z: int, bits: int) -> int:
    """What an integer of so many bits weighs among others: at least 1, and by its size.

    From 2^e - 1 to 2^(e + 1) - 2 in size together at least 2^(bits - 6) up to 2^16, a fourth of that for the next 32
    powers of two, and a 16th beyond.
    """
    e = (abs(z) + 1).bit_length() - 1
    together = bits - 6 - (0 if e < 16 else 2 if e < 48 else 4)
    return int(2 ** max(together - e, 0))
