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
