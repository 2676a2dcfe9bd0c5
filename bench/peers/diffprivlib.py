"""diffprivlib: mechanisms for one number at a time, a selection that takes a list, and statistics of a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .inputs import float_scores, float_values, int_values, numbers, save

PACKAGES = ("diffprivlib", "scikit-learn")


def laplace(n: int, *, kind: str, scale: float) -> Callable[[], Any]:
    from diffprivlib import mechanisms

    if kind == "int64":
        noise, values = mechanisms.Geometric(epsilon=1 / scale, sensitivity=1), int_values(n).tolist()
    else:
        noise, values = mechanisms.Laplace(epsilon=1 / scale, sensitivity=1.0), float_values(n).tolist()
    return lambda: [noise.randomise(value) for value in values]


def select(n: int, *, epsilon: float) -> Callable[[], Any]:
    """It takes a list, and weighs the scores when it is made."""
    from diffprivlib.mechanisms import Exponential

    utility = float_scores(n).tolist()
    return lambda: Exponential(epsilon=epsilon, sensitivity=1.0, utility=utility).randomise()


def median(n: int, *, epsilon: float) -> Callable[[], Any]:
    from diffprivlib.tools import median

    array = numbers("float64", n)
    return lambda: median(array, epsilon=epsilon, bounds=(-(2.0**63), 2.0**63))


def mean(n: int, *, epsilon: float, most: float) -> Callable[[], Any]:
    from diffprivlib.tools import mean

    array = int_values(n)
    return lambda: mean(array, epsilon=epsilon, bounds=(0, most))


def statistics(
    n: int, *, records: str, to: str, bounds: list[float], edges: list[float], shares: list[float], epsilon: float,
    releases: dict[str, int],
) -> Callable[[], Any]:  # fmt: skip
    """Releases of one column; n is public to it, but for counts of bins."""
    from diffprivlib import tools

    values, ends = np.load(records), (bounds[0], bounds[1])
    each: dict[str, Callable[[], Any]] = {
        "mean": lambda: tools.mean(values, epsilon=epsilon, bounds=ends),
        "variance": lambda: tools.var(values, epsilon=epsilon, bounds=ends),
        "histogram": lambda: tools.histogram(values, epsilon=epsilon, bins=len(edges) - 1, range=ends)[0],
        "quantiles": lambda: tools.quantile(values, shares, epsilon=epsilon, bounds=ends),
    }
    return lambda: save(to, {name: [release() for _ in range(releases[name])] for name, release in each.items()})


def top_k(n: int) -> Callable[[], Any]:
    from diffprivlib import __version__, mechanisms

    if not [name for name in dir(mechanisms) if "top" in name.lower()]:
        raise NotImplementedError(f"diffprivlib {__version__} has no top-k selection")
    raise NotImplementedError(f"diffprivlib {__version__} has a top-k selection that this row does not know yet")


TASKS = {"laplace": laplace, "select": select, "median": median, "mean": mean, "statistics": statistics, "top_k": top_k}
