"""OpenDP: noise, selection, statistics of a column. Its vectors go in as numpy arrays and come out as lists."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from .inputs import float_scores, float_values, int_values, numbers, save

PACKAGES = ("opendp",)


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def laplace(n: int, *, kind: str, scale: float) -> Callable[[], Any]:
    dp = _opendp()
    domain = dp.atom_domain(T="i64") if kind == "int64" else dp.atom_domain(T="f64", nan=False)
    space = dp.vector_domain(domain), dp.l1_distance(T="i64" if kind == "int64" else "f64")
    release, array = dp.m.make_laplace(*space, scale=scale), (int_values if kind == "int64" else float_values)(n)
    return lambda: release(array)


def gaussian(n: int, *, scale: float) -> Callable[[], Any]:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="i64")
    release, array = dp.m.make_gaussian(*space, scale=scale), int_values(n)
    return lambda: release(array)


def select(n: int, *, scale: float) -> Callable[[], Any]:
    """With Gumbel noise of this scale, 1 / eta, which is what zCDP makes of it."""
    return _selection(n, "make_noisy_max", scale=scale)


def top_k(n: int, *, k: int, scale: float) -> Callable[[], Any]:
    return _selection(n, "make_noisy_top_k", k=k, scale=scale)


def _selection(n: int, constructor: str, **arguments: Any) -> Callable[[], Any]:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64")
    choose = getattr(dp.m, constructor)(*space, dp.zero_concentrated_divergence(), **arguments)
    array = float_scores(n)
    return lambda: choose(array)


def median(n: int, *, candidates: int, epsilon: float) -> Callable[[], Any]:
    """Of floats, as integers of such a size, too, are compared with candidates as they are; eta is 1 / scale."""
    dp = _opendp()
    array = numbers("float64", n)
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False), size=n), dp.symmetric_distance()
    grid = np.linspace(-(2.0**63), 2.0**63, candidates).tolist()
    choose = dp.m.make_private_quantile(*space, dp.max_divergence(), grid, alpha=0.5, scale=2 / epsilon)
    return lambda: choose(array)


def above_threshold(n: int) -> Callable[[], Any]:
    dp = _opendp()
    if not [name for name in dir(dp.m) if "threshold" in name and "above" in name]:
        raise NotImplementedError(f"OpenDP {version('opendp')} has no AboveThreshold")
    raise NotImplementedError(f"OpenDP {version('opendp')} has an AboveThreshold that this row does not know yet")


def statistics(
    n: int, *, records: str, to: str, bounds: list[float], edges: list[float], shares: list[float], epsilon: float,
    releases: dict[str, int],
) -> Callable[[], Any]:  # fmt: skip
    """Releases of one column: mean and variance with a public n, counts of bins and quantiles with a private one.

    Quantiles are chosen among 2,001 candidates between the bounds, each with its share of epsilon.
    """
    dp, values = _opendp(), np.load(records)
    column = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    clamped = column >> dp.t.then_clamp((bounds[0], bounds[1])) >> dp.t.then_resize(size=n, constant=bounds[0])
    grid = np.linspace(bounds[0], bounds[1], 2001).tolist()

    def noisy(statistic: Any, distance: int) -> Any:
        return dp.binary_search_chain(lambda scale: statistic >> dp.m.then_laplace(scale=scale), distance, epsilon)

    binned = column >> dp.t.then_find_bin(edges=edges[1:-1])
    counted = binned >> dp.t.then_count_by_categories(categories=[*range(len(edges) - 1)], null_category=False)
    mean, variance = noisy(clamped >> dp.t.then_mean(), 2), noisy(clamped >> dp.t.then_variance(), 2)
    histogram = noisy(counted, 1)
    space = (*column, dp.max_divergence(), grid)
    chosen = [
        dp.binary_search_chain(
            lambda scale, q=q: dp.m.make_private_quantile(*space, alpha=q, scale=scale), 1, epsilon / len(shares)
        )
        for q in shares
    ]
    each: dict[str, Callable[[], Any]] = {
        "mean": lambda: mean(values), "variance": lambda: variance(values), "histogram": lambda: histogram(values),
        "quantiles": lambda: [choose(values) for choose in chosen],
    }  # fmt: skip
    return lambda: save(to, {name: [release() for _ in range(releases[name])] for name, release in each.items()})


TASKS = {
    "laplace": laplace,
    "gaussian": gaussian,
    "select": select,
    "top_k": top_k,
    "median": median,
    "above_threshold": above_threshold,
    "statistics": statistics,
}
