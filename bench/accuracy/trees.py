"""Decision trees of three questions: over the bits of real tables, over their numbers, and on made conjunctions."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np

import fastdp
from fastdp import Randomness

from .boxes import TABLES as NUMBERS
from .boxes import numbers_of_table
from .conjunctions import CONSTANT, GREEDY, LITERALS, TABLES, bits_of_table, greedy_on_table, reported_peers
from .datasets import Array
from .registry import at_most, task

DEPTH = 3
CART = "CART, not private"
SMALL = ((50, 3, 800), (100, 8, 6_400))  # columns, literals, records


def _conjunction(seed: int, *, columns: int, literals: int, n: int) -> float:
    """One literal excludes a quarter of the records, the next one fewer, the last one in 4,000."""
    rng = np.random.default_rng(seed)
    share = np.full(columns, 0.5)
    share[:literals] = 1 - np.geomspace(1 / 4, 1 / 4_000, literals)
    X = rng.random((n, columns)) < share
    y = X[:, :literals].all(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.AccuracyWarning)
        tree = fastdp.learn_tree(X, y, epsilon=1.0, neighbors="add-remove", records=n, rng=Randomness(seed=seed))
        return tree.error(X, y)


for _columns, _literals, _n in SMALL:
    task(
        f"tree-{_columns}-{_literals}",
        f"a tree of {DEPTH} questions for a conjunction of {_literals} of {_columns} columns, {_n:,} records, "
        "epsilon = 1, add-remove",
        table="random bits",
        figure="share of errors",
        target=at_most(0.1),
        columns=_columns,
        literals=_literals,
        n=_n,
    )(_conjunction)


def _cart(X: Array, y: Array) -> float:
    from sklearn.tree import DecisionTreeClassifier

    return float(1 - DecisionTreeClassifier(max_depth=DEPTH, random_state=0).fit(X, y).score(X, y))


@cache
def _cart_of_bits(table: str) -> float:
    return _cart(*bits_of_table(table))


@cache
def _cart_of_numbers(table: str) -> float:
    return _cart(*numbers_of_table(table))


def _of_bits(seed: int, *, of: str) -> dict[str, float]:
    X, y = bits_of_table(of)
    tree = fastdp.learn_tree(X, y, depth=DEPTH, epsilon=1.0, rng=Randomness(seed=seed))
    constant = min(y.mean(), 1 - y.mean())
    return {"fastdp": tree.error(X, y), CONSTANT: constant, GREEDY: greedy_on_table(of), CART: _cart_of_bits(of)}


def _of_numbers(seed: int, *, of: str) -> dict[str, float]:
    X, y = numbers_of_table(of)
    tree = fastdp.learn_tree(X, y, depth=DEPTH, quantiles=15, epsilon=1.0, rng=Randomness(seed=seed))
    return {"fastdp": tree.error(X, y), CONSTANT: min(y.mean(), 1 - y.mean()), CART: _cart_of_numbers(of)}


for _table in TABLES:
    task(
        f"tree-{_table.partition('/')[2].lower()}",
        f"a tree of {DEPTH} questions over bits, beside a rule of {LITERALS} literals, epsilon = 1",
        table=_table,
        figure="share of errors",
        target=at_most(1.0, of=GREEDY),
        reported=reported_peers(_table),
        of=_table,
    )(_of_bits)

for _table in NUMBERS:
    task(
        f"tree-of-numbers-{_table.partition('/')[2].lower()}",
        f"a tree of {DEPTH} questions over {len(NUMBERS[_table][0])} columns of numbers, epsilon = 1",
        table=_table,
        figure="share of errors",
        target=at_most(1.05, of=CART),
        of=_table,
    )(_of_numbers)
