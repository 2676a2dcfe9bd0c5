"""Rules of a few literals: their errors on the records that they were learned from, whatever share of labels is wrong.

Columns of numbers are cut at seven ranks of the public table and other columns have a bit for each of their most
frequent values: cuts are public here, and the same for every method.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

import fastdp
from fastdp import Randomness

from .datasets import Array, frame
from .registry import Reported, at_most, task

CUTS, VALUES = 7, 15  # of a column of numbers; of another column
LITERALS = 5
NOISE = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1)
MADE = ((30, 3, 50_000), (400, 4, 100_000))  # columns, literals, records
SOURCE = "0.6.6, on the same bits, median of 5"
CONSTANT, GREEDY, LOGISTIC = "the constant", "greedy, not private", "fastdp, logistic regression"


@cache
def _made(d: int, k: int, n: int) -> tuple[Any, Array]:
    X = np.random.default_rng(d).random((n, d)) < 0.5
    return fastdp.pack(X), np.asarray(X[:, :k].all(axis=1))


def _noisy(seed: int, *, columns: int, literals: int, n: int, noise: float) -> dict[str, float]:
    X, right = _made(columns, literals, n)
    y = right ^ (np.random.default_rng(seed).random(n) < noise)
    h = fastdp.learn_conjunction(X, y, k=literals, epsilon=1.0, rng=Randomness(seed=seed))
    return {"fastdp": h.error(X, y), CONSTANT: min(y.mean(), 1 - y.mean())}


for _columns, _literals, _n in MADE:
    for _noise in NOISE:
        task(
            f"conjunction-{_columns}-{100 * _noise:g}",
            f"a conjunction of {_literals} of {_columns} columns, {_n:,} records, epsilon = 1, {_noise:.1%} of the "
            "labels wrong",
            table="random bits",
            figure="share of errors",
            target=at_most(_noise + 0.02),
            columns=_columns,
            literals=_literals,
            n=_n,
            noise=_noise,
        )(_noisy)

LENGTHS = (3, 5, 8)  # of rules of 100 columns, of which a quarter of the records have all


@cache
def _dense(literals: int) -> tuple[Any, Array, Array]:
    rng, n, d = np.random.default_rng(literals), 100_000, 100
    X = rng.random((n, d)) < 0.25 ** (1 / literals)
    return fastdp.pack(X), X, np.asarray(X[:, :literals].all(axis=1))


def _beside_greedy(seed: int, *, literals: int) -> dict[str, float]:
    packed, X, right = _dense(literals)
    y = right ^ (np.random.default_rng(seed).random(len(right)) < 0.1)
    h = fastdp.learn_conjunction(packed, y, k=literals, epsilon=1.0, rng=Randomness(seed=seed))
    return {"fastdp": h.error(packed, y), CONSTANT: min(y.mean(), 1 - y.mean()), GREEDY: greedy(X, y, literals)}


for _literals in LENGTHS:
    task(
        f"conjunction-of-100-{_literals}",
        f"a conjunction of {_literals} of 100 columns, 100,000 records, epsilon = 1, a tenth of the labels wrong",
        table="random bits",
        figure="share of errors",
        target=at_most(1.05, of=GREEDY),
        literals=_literals,
    )(_beside_greedy)

# table: the column of labels, the label in question, columns that are left out as well
TABLES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "stevedata/gss_wages": ("gender", "Female", ()),
    "modeldata/credit_data": ("Status", "bad", ()),
    "modeldata/mlc_churn": ("churn", "yes", ()),
    "ggplot2/diamonds": ("cut", "Ideal", ()),
    "DAAG/nassCDS": ("seatbelt", "none", ()),
}
PEERS = {  # a forest and a logistic regression at epsilon = 1, default parameters, bounds of 0 and 1
    "stevedata/gss_wages": (0.364, 0.293),
    "modeldata/credit_data": (0.278, 0.316),
    "modeldata/mlc_churn": (0.141, 0.247),
    "ggplot2/diamonds": (0.359, 0.177),
    "DAAG/nassCDS": (0.292, 0.308),
}


@cache
def bits_of_table(table: str) -> tuple[Array, Array]:
    """Bits of all other columns, and labels."""
    label, positive, left_out = TABLES[table]
    records = frame(*table.split("/"))
    bits = []
    for name in records.columns:
        if name == label or name in left_out:
            continue
        column = records[name]
        if column.dtype.kind in "iuf" and column.nunique() > 2:
            numbers = column.to_numpy(np.float64)
            ranks = np.nanquantile(numbers, np.linspace(0, 1, CUTS + 2)[1:-1])
            some = [np.nan_to_num(numbers, nan=-np.inf) > cut for cut in np.unique(ranks)]
        else:
            words = column.astype(str)
            common = words.value_counts().index[:VALUES]
            some = [(words == value).to_numpy() for value in (common if len(common) > 2 else common[:1])]
        bits += [bit for bit in some if 0 < np.count_nonzero(bit) < bit.size]
    return np.stack(bits, axis=1), (records[label].astype(str) == positive).to_numpy()


@cache
def greedy_on_table(table: str) -> float:
    return greedy(*bits_of_table(table), LITERALS)


def greedy(X: Array, y: Array, literals: int) -> float:
    """The errors of the best prefix of the rule that takes, without privacy, the literal with the least errors."""
    left, found = np.ones(len(y), bool), [float(np.mean(~y))]
    for _ in range(literals):
        of_positives, of_negatives = X[left & y].sum(axis=0), X[left & ~y].sum(axis=0)
        gains = np.concatenate([of_positives - of_negatives, of_negatives - of_positives])
        gains[X.shape[1] :] += np.count_nonzero(left & y) - np.count_nonzero(left & ~y)
        best = int(np.argmax(gains))
        left &= X[:, best % X.shape[1]] == (best < X.shape[1])
        found.append(float(np.mean(left != y)))
    return min(*found, float(np.mean(y)))


def logistic_error(X: Array, y: Array, bounds: Any, seed: int) -> float:
    """The share of errors of a logistic regression of ours."""
    from fastdp.sklearn import PrivateLogisticRegression

    points, labels = X.astype(float), y.astype(int)
    logistic = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, bounds=bounds, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)  # of the seed
        return float(1 - logistic.fit(points, labels).score(points, labels))


def reported_peers(table: str) -> tuple[Reported, ...]:
    """What another library has on the same bits."""
    forest, regression = PEERS[table]
    return (
        Reported("diffprivlib, forest", forest, SOURCE),
        Reported("diffprivlib, logistic regression", regression, SOURCE),
    )


def _on_table(seed: int, *, of: str) -> dict[str, float]:
    X, y = bits_of_table(of)
    h = fastdp.learn_conjunction(X, y, k=LITERALS, epsilon=1.0, rng=Randomness(seed=seed))
    return {
        "fastdp": h.error(X, y),
        CONSTANT: min(y.mean(), 1 - y.mean()),
        GREEDY: greedy_on_table(of),
        LOGISTIC: logistic_error(X, y, (0, 1), seed),
    }


for _table in TABLES:
    task(
        f"rule-{_table.partition('/')[2].lower()}",
        f"a rule of at most {LITERALS} literals, epsilon = 1",
        table=_table,
        figure="share of errors",
        target=at_most(1.02, of=GREEDY),
        reported=reported_peers(_table),
        of=_table,
    )(_on_table)
