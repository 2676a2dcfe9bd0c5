"""A small service, as users write them: `mypy --strict` accepts it, and its types are those of the results."""

from __future__ import annotations

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import fastdp


def counts(table: NDArray[np.int64], budget: fastdp.Budget) -> NDArray[np.int64]:
    """Counts with noise, charged to the budget of the service."""
    noisy = fastdp.laplace(table, sensitivity=1, epsilon=0.1, budget=budget)
    assert_type(noisy, NDArray[np.int64])
    return noisy


def averages(table: NDArray[np.float64], rng: fastdp.Randomness | None = None) -> NDArray[np.float64]:
    """Averages with noise."""
    noisy = fastdp.gaussian(table, sensitivity=0.5, epsilon=1.0, delta=1e-6, rng=rng)
    assert_type(noisy, NDArray[np.float64])
    return noisy


def total(visits: int, seconds: float) -> tuple[int, float]:
    """Numbers in, numbers out."""
    noisy = fastdp.laplace(visits, sensitivity=1, epsilon=0.5)
    assert_type(noisy, np.int64)
    longer = fastdp.gaussian(seconds, sensitivity=60.0, rho=0.1)
    assert_type(longer, np.float64)
    return int(noisy), float(longer)


def lists() -> int:
    """Lists of one kind of number are arrays of it."""
    assert_type(fastdp.laplace([1, 2, 3], sensitivity=1, epsilon=1.0), NDArray[np.int64])
    assert_type(fastdp.gaussian([0.5, 1.5], sensitivity=1, rho=1.0), NDArray[np.float64])
    return fastdp.laplace([1, 2, 3], sensitivity=1, epsilon=1.0).size


def alarm(readings: list[int], limit: int) -> int | None:
    """The first reading above a limit, for one epsilon."""
    watch = fastdp.AboveThreshold(limit, sensitivity=1, epsilon=1.0)
    return watch.first_above(readings)


def typical(ages: list[int], seconds: list[float]) -> tuple[int, float]:
    """Medians of lists: integers of a declared domain, floats otherwise."""
    age = fastdp.median(ages, domain_bits=7, epsilon=1.0)
    assert_type(age, int)
    duration = fastdp.median(seconds, epsilon=1.0)
    assert_type(duration, float)
    return age, duration


def plan() -> float:
    """What is to be minimised, and how well a number of records supports it."""
    loss, over = fastdp.losses.Logistic(), fastdp.sets.Ball(1.0)
    assert_type(loss, fastdp.losses.Logistic)
    assert_type(over, fastdp.sets.Ball)
    bound = fastdp.bounds.quantile(0.9, epsilon=1.0)
    assert_type(bound, float)
    return bound


def ledger(budget: fastdp.Budget) -> list[tuple[str, str]]:
    """What was released, and what it guarantees."""
    together: fastdp.privacy.Guarantee = fastdp.compose(*(row.guarantee for row in budget.releases), delta=1e-6)
    return [(row.mechanism, str(row.total)) for row in budget.releases] + [("together", str(together))]


def main() -> None:
    """A day of the service."""
    budget = fastdp.Budget(epsilon=1.0, delta=1e-6, theorem="zcdp")
    counts(np.array([120, 64, 0]), budget)
    averages(np.array([0.5, 0.25]))
    total(12, 3.5)
    alarm([3, 5, 5000], 1000)
    typical([40] * 500, [0.5] * 500)
    plan()
    ledger(budget)


if __name__ == "__main__":
    main()
