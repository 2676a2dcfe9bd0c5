"""OpenDP: noise, selection, a median. Its vectors go in as numpy arrays and come out as lists."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import numpy as np

from .inputs import float_scores, float_values, int_values, numbers

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


TASKS = {
    "laplace": laplace,
    "gaussian": gaussian,
    "select": select,
    "top_k": top_k,
    "median": median,
    "above_threshold": above_threshold,
}
