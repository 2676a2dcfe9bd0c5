"""Tables of counts: all three-way marginals of the census, released together."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import fastdp
from fastdp import Randomness, marginals
from fastdp.answering.marginal_counts import count_tables

from .datasets import census
from .registry import BEST, Reported, at_most, task

DELTA = 1e-6
SOURCE = "measured once, on the same tables, median of 3 to 5"
AT = (0.1, 1.0, 10.0)
# max / mean error at each of these epsilons
PEERS = {
    "AIM (private-pgm)": ((0.0072, 1.1e-4), (0.0014, 3.4e-5), (6.0e-4, 1.1e-5)),
    "MWEM + PGM (private-pgm)": ((0.016, 2.1e-4), (0.0020, 4.3e-5), (0.0057, 4.0e-5)),
    "MST (private-pgm)": ((0.015, 2.3e-4), (0.011, 1.1e-4), (0.011, 1.1e-4)),
}
WORST, MEAN = "largest error of a cell / n", "mean error of a cell / n"


@cache
def _errors(seed: int, epsilon: float) -> tuple[float, float]:
    codes, domain = census()
    workload = marginals(domain, 3)
    made = fastdp.release_marginals(
        codes, domain, workload, epsilon=epsilon, delta=DELTA, neighbors="add-remove", rng=Randomness(seed=seed)
    )
    off = abs(np.concatenate([table.reshape(-1) for table in made.tables]) - _right())
    return float(off.max()), float(off.mean())


@cache
def _right() -> Any:
    codes, domain = census()
    return count_tables(codes, marginals(domain, 3)) / len(codes)


def _error(seed: int, *, epsilon: float, which: int) -> float:
    return _errors(seed, epsilon)[which]


for _i, _epsilon in enumerate(AT):
    for _which, (_short, _figure) in enumerate((("max", WORST), ("mean", MEAN))):
        task(
            f"marginals-{_epsilon:g}-{_short}",
            f"all 56 three-way tables, epsilon = {_epsilon:g}, delta = 1e-6, add-remove",
            table="AER/Fertility",
            figure=_figure,
            target=at_most(1, of=BEST),
            reported=tuple(Reported(name, figures[_i][_which], SOURCE) for name, figures in PEERS.items()),
            epsilon=_epsilon,
            which=_which,
        )(_error)
