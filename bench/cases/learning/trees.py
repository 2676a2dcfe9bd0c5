"""Grow a decision tree or list, beside one packing of its records; and a box on a grid of quantiles, beside sorts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import fastdp

from ..registry import Call, Case, Side, make_case, within
from ..traffic import read_once, records_of_bits
from .boxes import numbers
from .inputs import EPSILON, MILLION, records

_case = partial(make_case, "learning")

DEPTH, COLUMNS = 3, 5


def _grow(n: int, **arguments: Any) -> Call:
    X, y = records(n, 100, DEPTH)
    return lambda: fastdp.learn_tree(X, y, depth=DEPTH, epsilon=EPSILON, **arguments)


def _list(n: int, **arguments: Any) -> Call:
    X, y = records(n, 100, DEPTH)
    return lambda: fastdp.learn_decision_list(X, y, rules=DEPTH, epsilon=EPSILON, **arguments)


def _pack(n: int) -> Call:
    X, _ = records(n, 100, DEPTH)
    return lambda: fastdp.pack(X)


def _grid(n: int, **arguments: Any) -> Call:
    X, y = numbers(n, COLUMNS)
    return lambda: fastdp.learn_box(X, y, epsilon=EPSILON, method="grid", **arguments)


def _numpy_sorts(n: int) -> Call:
    X, _ = numbers(n, COLUMNS)
    return lambda: [np.sort(column) for column in X.T]


CASES: tuple[Case, ...] = (
    _case(
        "tree",
        f"learn_tree, 100 columns of bits, {DEPTH} questions, beside one packing",
        MILLION,
        _grow,
        (Side("fastdp.pack", _pack), within("fastdp.pack", 3)),
        traffic=records_of_bits(100),
        oracle="a tree",
        drawn=lambda n: (*records(max(n, MILLION), 100, DEPTH), _grow(max(n, MILLION))()),
        epsilon=EPSILON,
    ),
    _case(
        "decision-list",
        f"learn_decision_list, 100 columns of bits, {DEPTH} rules, beside one packing",
        MILLION,
        _list,
        (Side("fastdp.pack", _pack), None),
        traffic=records_of_bits(100),
        oracle="a decision list",
        drawn=lambda n: (*records(max(n, MILLION), 100, DEPTH), _list(max(n, MILLION))()),
        epsilon=EPSILON,
    ),
    _case(
        "box-grid",
        f"learn_box, grid, {COLUMNS} columns of 64-bit integers, beside sorts of them",
        MILLION,
        _grid,
        (Side("numpy", _numpy_sorts), None),
        traffic=read_once(8 * COLUMNS + 1),
        oracle="a box by errors",
        drawn=lambda n: (*numbers(max(n, 200_000), COLUMNS), _grid(max(n, 200_000))()),
        epsilon=EPSILON,
    ),
)
