"""mbi, which is private-pgm: a distribution fitted to noisy tables. It has no mechanism: aim.py is ours, and the noise
is numpy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.metadata import version
from itertools import combinations
from typing import Any

import numpy as np

from .aim import Aim, most_mu
from .inputs import TREE_COLUMNS, binary_records, tree_tables

PACKAGES = ("mbi", "jax")


def _mbi() -> Any:
    import jax

    jax.config.update("jax_enable_x64", True)  # or it warns that it may not converge
    import mbi

    return mbi


def fit_pairs(n: int, *, d: int, sigma: float, steps: int) -> Callable[[], Any]:
    """All two-way tables of n records, with Gaussian noise, and so many steps of mirror descent from the uniform."""
    mbi = _mbi()
    names = [f"v{j}" for j in range(d)]
    domain = mbi.Domain(names, [2] * d)
    codes, rng = binary_records(n, d), np.random.default_rng()
    records = mbi.Dataset(dict(zip(names, codes.T, strict=True)), domain)

    def call() -> Any:
        measured = []
        for pair in combinations(names, 2):
            table = np.asarray(records.project(pair).datavector())
            noisy = table + rng.normal(0, sigma, table.size)
            measured.append(mbi.LinearMeasurement(noisy, pair, stddev=sigma))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = mbi.estimation.MirrorDescent().estimate(domain, measured, known_total=float(n), iters=steps)
        return [np.asarray(model.project(pair).datavector()) for pair in combinations(names, 2)]

    return call


def _tree_model(mbi: Any, cells: int, steps: int) -> Any:
    size, sigma, tables = tree_tables(cells)
    domain = mbi.Domain(range(TREE_COLUMNS), [size] * TREE_COLUMNS)
    measured = [mbi.LinearMeasurement(table.ravel(), columns, stddev=sigma) for columns, table in tables]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mbi.estimation.MirrorDescent().estimate(domain, measured, known_total=1e5, iters=steps)


def fit_tree(n: int, *, steps: int) -> Callable[[], Any]:
    """So many steps of mirror descent on a junction tree of n cells, compiled beforehand."""
    mbi = _mbi()
    return lambda: _tree_model(mbi, n, steps)


def sample_tree(n: int, *, cells: int) -> Callable[[], Any]:
    """n records, of counts rounded at random."""
    model = _tree_model(_mbi(), cells, 10)
    return lambda: model.synthetic_data(n)


def mwem(n: int) -> Callable[[], Any]:
    mbi = _mbi()
    if not [name for name in dir(mbi) if "mwem" in name.lower() or "mechanism" in name.lower()]:
        raise NotImplementedError(f"mbi {version('mbi')} has no mechanism: neither MWEM nor AIM, only what fits tables")
    raise NotImplementedError(f"mbi {version('mbi')} has a mechanism that this row does not know yet")


def aim(n: int, *, records: str, to: str, sizes: list[int], epsilon: float, delta: float) -> Callable[[], Any]:
    """A synthesis of the codes in one file; n synthetic records go to another."""
    mbi, codes = _mbi(), np.load(records)

    def call() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = Aim(mbi, codes, sizes, 0).run(most_mu(epsilon, delta))
            made = model.synthetic_data(rows=n)
        columns = made.to_dict()
        np.savez(to, made=np.stack([np.asarray(columns[f"a{p}"]) for p in range(len(sizes))], axis=1).astype(np.int64))

    return call


TASKS = {"aim": aim, "fit_pairs": fit_pairs, "fit_tree": fit_tree, "mwem": mwem, "sample_tree": sample_tree}
