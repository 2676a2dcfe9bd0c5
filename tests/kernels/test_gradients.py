"""Sums of clipped gradients: kernels/gradients.py, fastdp/optimizing/points.py.

Against the oracle, in exact integers where privacy rests on them (descent.md, lemmas 1 and 2), and bit by bit where two
ways must agree: layouts, chunks, threads, one compiled loop or step by step, other CPUs.
"""

from __future__ import annotations

import ctypes
import hashlib
import math
import pickle
import shutil
import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import cffi
import numba
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import DomainError, losses, sets
from fastdp.kernels import clipping, descent, projections
from fastdp.kernels import gradients as kernels
from fastdp.kernels import losses as formulas
from fastdp.optimizing import points as points_module
from fastdp.optimizing import step_noise as scales
from fastdp.optimizing.losses import Loss
from fastdp.optimizing.points import Points as Unchecked
from fastdp.records import arrays, rows
from tests import oracles

Array = np.ndarray[Any, Any]


def least_square(X: Array) -> float:
    return clipping.LEAST_SQUARE_32 if X.dtype == np.float32 else clipping.LEAST_SQUARE


def Points(X: Any, y: Any, loss: Loss, outside: str) -> Unchecked:
    """Records that have been checked, as all public functions do before they sum."""
    points = Unchecked(X, y, loss, outside)
    points.check()
    return points


DIMENSIONS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 40, 41, 63, 64, 65, 96, 127, 128, 129, 130]
COUNTS = [1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 95, 96, 97, 128, 200]
LOSSES: dict[str, Loss] = {
    "SQUARED": losses.SquaredError(),
    "LOGISTIC": losses.Logistic(),
    "HINGE": losses.Hinge(),
    "HUBER": losses.Huber(threshold=0.7),
    "DISTANCE": losses.SquaredDistance(),
    "DEVIATION": losses.AbsoluteDeviation(),
}
ATAN = "double slope(double s, double y) { return (s - y) / (1.0 + (s > y ? s - y : y - s)); }"


def atan_like(s: float, y: float) -> float:
    return (s - y) / (1.0 + abs(s - y))


def limit_of(size: float, d: int) -> float:
    """What descents pass to the kernels for a clip of so many grid units: optimizing.step_noise.SumGrid.limit."""
    return size * (1 - (d + 64) * 2.0**-53)


def instance(
    rng: np.random.Generator, n: int, d: int, dtype: Any = np.float64, sign: bool = False
) -> tuple[Array, Array, Array]:
    """Records, labels and a point, such that some gradients are clipped at 1 and others are not."""
    X = (rng.normal(size=(n, d)) * rng.choice([0.01, 0.3, 1.0, 30.0], (n, 1)) / math.sqrt(d)).astype(dtype)
    X[rng.random((n, d)) < 0.1] = 0.0
    y = np.sign(rng.normal(size=n)) if sign else rng.normal(size=n)
    return X, y, rng.normal(size=d) / math.sqrt(d)


def labels_for(kind: str, y: Array) -> Array | None:
    return None if kind in ("DISTANCE", "DEVIATION") else y


def sums(X: Any, y: Any, w: Array, loss: Loss, unit: float, limit: float, outside: str = "raise") -> Array:
    return Points(X, y, loss, outside).gradients(w, unit, limit)


def inputs(X: Array, y: Any, w: Array, kind: str, bound: float = math.inf, address: int = 0) -> tuple[Any, ...]:
    """What all kernels take, without the class that checks records; `unit` and `limit` come after these."""
    n, d = X.shape
    norms, at = np.empty(n), np.zeros((2, -(-d // 8) * 8))
    clipping.norms_into(X.reshape(-1), d, least_square(X), norms)
    at[0, :d], at[1, :d] = w, 1.0
    parameter = {"HUBER": 0.7, "DISTANCE": 2.0, "DEVIATION": 1.0}.get(kind, 0.0)
    number = 0 if kind in ("DISTANCE", "DEVIATION") else getattr(formulas, kind)
    return X.reshape(-1), np.asarray(y, np.float64), norms, at, (number, parameter, bound), address


def kernel_of(kind: str) -> Any:
    return {"DISTANCE": kernels.sum_differences, "DEVIATION": kernels.sum_signs}.get(kind, kernels.sum_margins)


def kernel_sum(kind: str, some: tuple[Any, ...], unit: float, limit: float, d: int) -> Array:
    out = np.zeros(d, np.int64)
    *records, law, address = some
    rule = np.array([*law, unit, limit])
    kernel_of(kind)(*records, rule, address, np.empty(32 * d + 8, some[0].dtype), np.empty(-(-d // 8) * 8), out)
    return out


def square(q: Array) -> int:
    """The squared L2 norm, in exact integers."""
    return sum(int(v) ** 2 for v in q.tolist())


# --- against the oracle


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", LOSSES)
def test_sums_are_those_of_the_oracle(kind: str, dtype: Any) -> None:
    rng = np.random.default_rng(len(kind))
    shapes = [(int(rng.choice(COUNTS)), d) for d in DIMENSIONS] + [(n, int(rng.integers(1, 20))) for n in COUNTS]
    shapes += [(4095, 2), (4097, 3), (8250, 1)]
    entries = sure = 0
    for n, d in shapes:
        X, y, w = instance(rng, n, d, dtype, kind in ("LOGISTIC", "HINGE"))
        unit, limit = 2.0**27 / math.pi**1.5, limit_of(0.9 * 2.0**25, d)  # of no integers, on which many would lie
        found = sums(X, labels_for(kind, y), w, LOSSES[kind], unit, limit)
        low, high = oracles.optimizing.clipped_gradients(X, y, w, kind, unit=unit, limit=limit, parameter=0.7)
        assert (low <= found).all(), (n, d)
        assert (found <= high).all(), (n, d)
        entries, sure = entries + d, sure + int((low == high).sum())
    assert sure > 0.98 * entries, "the oracle decides nearly all sums to the last unit"


def test_gradients_that_lie_on_the_grid_are_summed_as_they_are() -> None:
    rng = np.random.default_rng(2)
    for d in DIMENSIONS:
        X, y = rng.integers(-64, 65, (100, d)) / 64, np.where(rng.random(100) < 0.5, 1.0, -1.0)
        none, unit, limit = np.zeros(d), 2.0**20, limit_of(2.0**26, d)
        for kind, right in (
            ("HINGE", -y[:, None] * X), ("SQUARED", -2 * y[:, None] * X), ("LOGISTIC", -y[:, None] * X / 2),
            ("DISTANCE", -2 * X), ("DEVIATION", -np.sign(X)),
        ):  # fmt: skip
            found = sums(X, labels_for(kind, y), none, LOSSES[kind], unit, limit)
            np.testing.assert_array_equal(found, (right * unit).sum(axis=0))


@pytest.mark.parametrize("kind", ["SQUARED", "HUBER", "LOGISTIC", "HINGE"])
def test_points_beyond_their_bound_shrink(kind: str) -> None:
    rng = np.random.default_rng(3)
    for d in (1, 5, 20, 33):
        X, y, w = instance(rng, 150, d, sign=kind in ("LOGISTIC", "HINGE"))
        loss = {
            "SQUARED": losses.SquaredError(x_norm=0.8), "HUBER": losses.Huber(0.7, x_norm=0.8),
            "LOGISTIC": losses.Logistic(x_norm=0.8), "HINGE": losses.Hinge(x_norm=0.8),
        }[kind]  # fmt: skip
        unit, limit = 2.0**25, limit_of(2.0**24, d)
        found = sums(X, y, w, loss, unit, limit, "clip")
        low, high = oracles.optimizing.clipped_gradients(
            X, y, w, kind, unit=unit, limit=limit, parameter=0.7, bound=0.8
        )
        assert (low <= found).all()
        assert (found <= high).all()
        with pytest.raises(DomainError, match=r"^X: norms must be at most x_norm=0\.8; there are records beyond: "):
            sums(X, y, w, loss, unit, limit)


def test_points_beyond_their_bound_shrink_before_they_are_compared() -> None:
    rng = np.random.default_rng(4)
    X, _, w = instance(rng, 150, 7)
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    inside = X * np.minimum(1.0, 0.8 / norms)
    for kind, loss in (
        ("DISTANCE", losses.SquaredDistance(x_norm=0.8)),
        ("DEVIATION", losses.AbsoluteDeviation(x_norm=0.8)),
    ):
        unit, limit = 2.0**12, limit_of(2.0**14, 7)
        found = sums(X, None, w, loss, unit, limit, "clip")
        low, high = oracles.optimizing.clipped_gradients(inside, np.zeros(150), w, kind, unit=unit, limit=limit)
        assert (low <= found).all()
        assert (found <= high).all()


def test_the_points_themselves_are_summed_for_vector_sums() -> None:
    rng = np.random.default_rng(5)
    for dtype in (np.float64, np.float32):
        for d in (1, 8, 13, 40):
            X, y, w = instance(rng, 100, d, dtype)
            unit, limit = 2.0**20, limit_of(2.0**20, d)
            found = kernel_sum("LINEAR", inputs(X, np.zeros(100), w, "LINEAR"), unit, limit, d)
            low, high = oracles.optimizing.clipped_gradients(X, y, w, "LINEAR", unit=unit, limit=limit)
            assert (low <= found).all()
            assert (found <= high).all()


def test_labels_of_two_classes_in_every_spelling() -> None:
    rng = np.random.default_rng(6)
    X, y, w = instance(rng, 70, 4, sign=True)
    right = sums(X, y, w, LOSSES["LOGISTIC"], 2.0**20, 2.0**20)
    for other in (y > 0, (y > 0).astype(np.int8), (y > 0).astype(float), y.astype(int), y[:, None], y.tolist()):
        np.testing.assert_array_equal(sums(X, other, w, LOSSES["LOGISTIC"], 2.0**20, 2.0**20), right)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(label=(y > 0).astype(int))
    for other, at in ((frame, "label"), (frame, 4), (pl.from_pandas(frame), "label"), (np.column_stack([X, y]), 4)):
        np.testing.assert_array_equal(sums(other, at, w, LOSSES["LOGISTIC"], 2.0**20, 2.0**20), right)
    for column in (pd.Series(y), pl.Series(y), pa.array(y), pa.chunked_array([y[:30], y[30:]])):
        np.testing.assert_array_equal(sums(X, column, w, LOSSES["LOGISTIC"], 2.0**20, 2.0**20), right)


def test_norms_are_never_too_small() -> None:
    rng = np.random.default_rng(7)
    for dtype in (np.float64, np.float32):
        for d in DIMENSIONS:
            X = np.concatenate([instance(rng, 40, d, dtype)[0], np.zeros((1, d)), np.full((1, d), 1e-30)]).astype(dtype)
            norms = np.empty(len(X))
            assert clipping.norms_into(X.reshape(-1), d, least_square(X), norms) == 0
            for x, norm in zip(X.astype(np.float64).tolist(), norms.tolist(), strict=True):
                exact = sum(Fraction(v) ** 2 for v in x)
                least = Fraction(norm) / (1 - Fraction(d + 128, 16 * 2**53))
                assert least**2 >= exact
                assert Fraction(norm) ** 2 <= exact * (1 + Fraction(d + 128, 2**53)) + 2 * Fraction(least_square(X))
    for value in (math.nan, math.inf, -math.inf, 1e200):
        for at in range(11):
            X = np.ones((3, 11))
            X[1, at] = value
            assert clipping.norms_into(X.reshape(-1), 11, least_square(X), np.empty(3)) == 1


# --- what privacy rests on: lemma 1, lemma 2


def wild_rows(rng: np.random.Generator, n: int, d: int) -> Array:
    """Rows of all sizes and shapes; norms below 2^511, as Points demands."""
    X = rng.normal(size=(n, d))
    kind = rng.integers(0, 9, n)
    X[kind == 1] *= 10.0 ** rng.uniform(-320, 145, ((kind == 1).sum(), 1))  # many underflow
    X[kind == 2] = np.where(rng.random(((kind == 2).sum(), d)) < 1 / d, X[kind == 2], 0.0)  # along an axis, or zero
    X[kind == 3] = np.sign(X[kind == 3])  # all coordinates alike: the norm grows with d
    X[kind == 4] = rng.integers(-4, 5, ((kind == 4).sum(), d))  # integers: exact products
    X[kind == 5] = 5e-324 * rng.integers(-3, 4, ((kind == 5).sum(), d))
    X[kind == 6] *= 10.0 ** rng.uniform(-3, 3, ((kind == 6).sum(), d))
    X[kind == 7, 0] = 3.0
    X[kind == 7, 1:] = 0.0
    X[kind == 7, -1] = 4.0
    X[kind == 8] *= 1e145
    return X


def wild_numbers(rng: np.random.Generator, n: int) -> Array:
    y = rng.normal(size=n) * 10.0 ** rng.uniform(-3, 3, n)
    some = rng.integers(0, 12, n)
    y[some == 0] *= 1e300
    y[some == 1] = 0.0
    y[some == 2] = 5e-324
    return y


SIZES = [1.0, 2.5, 3.0, 64.0, 1000.3, 2.0**20, 2.0**30 * 1.1, 2.0**41]


@pytest.mark.parametrize("kind", [*LOSSES, "LINEAR"])
def test_no_gradient_is_longer_than_the_clip(kind: str) -> None:
    """Lemma 1, in exact integers, for 15,000 records of every loss, most of them adversarial."""
    rng = np.random.default_rng(8)
    at_limit = 0
    for d, n in ((1, 3000), (2, 3000), (3, 2500), (5, 2000), (8, 1500), (13, 1200), (33, 700), (100, 500), (500, 100)):
        X, y, w = wild_rows(rng, n, d), wild_numbers(rng, n), rng.normal(size=d)
        w *= rng.choice([0.0, 1e-300, 1.0, 1e8])
        if kind in ("LOGISTIC", "HINGE"):
            y = np.where(y > 0, 1.0, -1.0)
        X32 = X.astype(np.float32, copy=False) if d in (3, 13) and np.abs(X).max() < 1e38 else X
        parts = inputs(X32, y, w, kind)
        for i in range(n):
            size = SIZES[i % len(SIZES)]
            unit = float(rng.choice([1.0, 2.0**-60, 2.0**20, 2.0**200, 2.0**30])) if i % 3 else size
            one = (parts[0][i * d : i * d + d], parts[1][i : i + 1], parts[2][i : i + 1], *parts[3:])
            q = kernel_sum(kind, one, unit, limit_of(size, d), d)
            length = square(q)
            assert length <= Fraction(size) ** 2, (kind, X[i], y[i], w, unit, size)
            at_limit += length >= 0.8 * size**2
    assert at_limit > 2000, "the limit is reached, not only kept"


def test_a_limit_twice_as_large_breaks_the_lemma() -> None:
    X, y, w = np.array([[3.0, 4.0]]), np.array([100.0]), np.zeros(2)
    some = inputs(X, y, w, "SQUARED")
    assert square(kernel_sum("SQUARED", some, 2.0**20, limit_of(2.0**20, 2), 2)) <= 2**40
    assert square(kernel_sum("SQUARED", some, 2.0**20, 2 * limit_of(2.0**20, 2), 2)) > 2**40


@pytest.mark.parametrize("kind", [*LOSSES, "LINEAR"])
def test_neighbours_move_the_sum_by_at_most_twice_the_clip(kind: str) -> None:
    """docs/algorithms.md 9.F, over groups that are full, in part full, and moved to int64 on the way."""
    rng = np.random.default_rng(9)
    far = 0
    for d, n, pairs in ((1, 1, 1500), (2, 5, 3000), (3, 33, 4000), (8, 40, 3000), (17, 65, 2500), (40, 31, 1000)):
        X, y, w = wild_rows(rng, n, d), wild_numbers(rng, n), rng.normal(size=d)
        others, labels = wild_rows(rng, pairs, d), wild_numbers(rng, pairs)
        if kind in ("LOGISTIC", "HINGE"):
            y, labels = np.where(y > 0, 1.0, -1.0), np.where(labels > 0, 1.0, -1.0)
        size = 1000.3
        before = kernel_sum(kind, inputs(X, y, w, kind), 4096.0, limit_of(size, d), d)
        for i in range(pairs):
            at = int(rng.integers(n))
            X[at], y[at] = others[i], labels[i]
            after = kernel_sum(kind, inputs(X, y, w, kind), 4096.0, limit_of(size, d), d)
            moved = square(after - before)
            assert moved <= 4 * Fraction(size) ** 2, (kind, d, i)
            far += moved > 2 * size**2
            before = after
    assert far > 100, "neighbours are found that move it nearly as far"


def test_a_record_moves_sums_of_many_by_at_most_the_clip() -> None:
    """With and without a record, where sums move to int64 every 4,096 records."""
    rng = np.random.default_rng(10)
    for n in (4096, 4097, 8192 + 33):
        X, y, w = instance(rng, n, 3)
        size = 2.0**41
        whole = kernel_sum("SQUARED", inputs(X, y, w, "SQUARED"), 2.0**41, limit_of(size, 3), 3)
        for at in rng.integers(0, n, 20).tolist():
            rest = kernel_sum(
                "SQUARED", inputs(np.delete(X, at, 0), np.delete(y, at), w, "SQUARED"), 2.0**41, limit_of(size, 3), 3
            )
            assert square(whole - rest) <= Fraction(size) ** 2


def test_sums_are_of_their_records_one_by_one() -> None:
    """The largest sums there are: no rounding hides in them."""
    rng = np.random.default_rng(11)
    for kind in LOSSES:
        X, y, w = instance(rng, 9000, 2, sign=kind in ("LOGISTIC", "HINGE"))
        X[:, 0] = np.abs(X[:, 0]) + 1  # all to one side
        unit, limit = 2.0**41, limit_of(2.0**41, 2)
        whole = kernel_sum(kind, inputs(X, y, w, kind), unit, limit, 2)
        some = inputs(X, y, w, kind)
        total = np.zeros(2, np.int64)
        for i in range(9000):
            one = (some[0][2 * i : 2 * i + 2], some[1][i : i + 1], some[2][i : i + 1], *some[3:])
            total += kernel_sum(kind, one, unit, limit, 2)
        np.testing.assert_array_equal(whole, total)


# --- adversarial records, through the class that checks them


def test_records_of_no_size_and_of_every_size() -> None:
    w = np.array([0.5, -0.25, 1.0])
    for kind, loss in LOSSES.items():
        X = np.array([[0.0] * 3, [5e-324] * 3, [1e-200, 0, 0], [1e150, -1e150, 1e150], [-0.0, 1.0, 1.0]])
        y = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
        unit, limit = 2.0**20, limit_of(2.0**20, 3)
        found = sums(X, labels_for(kind, y), w, loss, unit, limit)
        low, high = oracles.optimizing.clipped_gradients(X, y, w, kind, unit=unit, limit=limit, parameter=0.7)
        assert (low <= found).all(), kind
        assert (found <= high).all(), kind
    for y0 in (1e308, -1e308, 5e-324, 0.0):
        found = sums(np.array([[1.0, 2.0, 2.0]]), [y0], w, LOSSES["SQUARED"], 2.0**20, limit_of(2.0**20, 3))
        assert square(found) <= 2**40


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e155, 1e308])
@pytest.mark.parametrize("kind", LOSSES)
def test_records_without_a_norm_are_refused(kind: str, value: float) -> None:
    for at in (0, 40, 99):
        X, y, _ = instance(np.random.default_rng(12), 100, 9, sign=True)
        X[at, 8] = value
        with pytest.raises(DomainError, match=r"^X: must be finite, with norms below 2\^511; there are records that"):
            Points(X, labels_for(kind, y), LOSSES[kind], "raise")
    X32 = np.ones((3, 2), np.float32)
    X32[1, 1] = np.float32(value) if abs(value) < 3e38 else math.inf
    with pytest.raises(DomainError, match=r"^X: must be finite"):
        Points(X32, labels_for(kind, np.ones(3)), LOSSES[kind], "raise")


def test_labels_that_a_loss_cannot_take() -> None:
    X = np.ones((3, 2))
    for value in (math.nan, math.inf, -math.inf):
        for kind in ("SQUARED", "HUBER", "LOGISTIC"):
            with pytest.raises(
                DomainError, match=r"^y: must be finite; there is a NaN or an infinity among the labels$"
            ):
                Points(X, [1.0, value, 1.0], LOSSES[kind], "raise")
    for some in ([1, 2, 1], [0.5, 1, 1], [2, 2, 2]):
        with pytest.raises(DomainError, match=r"^y: must be 1, and 0 or -1 where it is not; there are other labels$"):
            Points(X, some, LOSSES["HINGE"], "raise")
    for some in ([1, 1], [[1, 1], [1, 1], [1, 1]], 1.0, [], [[1, 1, 1]]):
        with pytest.raises(ValueError, match=r"^y: shape .*: must be \(3,\), a label for each record$"):
            Points(X, np.array(some), LOSSES["SQUARED"], "raise")
    with pytest.raises(ValueError, match=r"^y: dtype .*: must be 0 and 1, or -1 and 1$"):
        Points(X, ["a", "b", "a"], LOSSES["HINGE"], "raise")
    with pytest.raises(ValueError, match=r"^y=None: must be the labels of the records: Hinge has some$"):
        Points(X, None, LOSSES["HINGE"], "raise")
    with pytest.raises(ValueError, match=r"^y: must be None: SquaredDistance has no labels$"):
        Points(X, [1, 2, 3], LOSSES["DISTANCE"], "raise")
    bounded = losses.SquaredError(y_bound=2.0)
    with pytest.raises(DomainError, match=r"^y: must be at most y_bound=2 in magnitude; there are others: .*clip"):
        Points(X, [1, 2.1, 0], bounded, "raise")
    clipped = Points(X, [1, 50, -2.1], bounded, "clip").gradients(np.zeros(2), 2.0**10, 1e9)
    np.testing.assert_array_equal(clipped, [-2048, -2048])
    assert Points(X, [1, 2 * (1 + 1e-12), 0], bounded, "raise").n == 3, "rounding of whoever scaled them"


def test_records_of_other_shapes() -> None:
    for X, message in (
        (np.ones((0, 2)), r"^X: n=0 records: must be at least one$"),
        (np.ones((3, 0)), r"^X: must have at least one column$"),
        (np.ones(3), r"^X: shape \(3,\): must have two dimensions"),
        (np.array([["a", "b"]]), r"^column 0: dtype .*: must be numbers$"),
    ):
        with pytest.raises(ValueError, match=message):
            Points(X, None, LOSSES["DISTANCE"], "raise")
    with pytest.raises(ValueError, match=r"^y='label': must not be the only column$"):
        Points(pd.DataFrame({"label": [1, 2]}), "label", LOSSES["SQUARED"], "raise")
    with pytest.raises(ValueError, match=r"^y='z': must be labels, or the name of their column"):
        Points(pd.DataFrame({"a": [1, 2], "b": [1, 2]}), "z", LOSSES["SQUARED"], "raise")


# --- the same bits


def everything(X: Any, y: Any, sign: Any, w: Array) -> list[tuple[int, ...]]:
    d = len(w)
    return [
        tuple(sums(X, labels_for(k, sign if k in ("LOGISTIC", "HINGE") else y), w, loss, 2.0**30, limit_of(2.0**29, d)))
        for k, loss in LOSSES.items()
    ]


@pytest.mark.parametrize(("n", "d"), [(1, 1), (33, 8), (300, 13), (1000, 3)])
def test_the_same_bits_from_every_container(n: int, d: int, tmp_path: Path) -> None:
    X, y, w = instance(np.random.default_rng(13), n, d, np.float32)
    sign, names = np.where(y > 0, 1.0, -1.0), [f"c{j}" for j in range(d)]
    right = everything(X, y, sign, w)
    wide = X.astype(np.float64)
    padded = np.full((2 * n, 3 * d), np.nan)
    padded[::2, 1 : 3 * d : 3] = wide
    turned = np.ascontiguousarray(wide[::-1, ::-1])[::-1, ::-1]
    frame = pd.DataFrame(wide, columns=names)
    mixed = pd.DataFrame({name: X[:, j] if j % 2 else wide[:, j] for j, name in enumerate(names)})
    path = tmp_path / "records.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=max(1, n // 3))
    readonly = wide.copy()
    readonly.flags.writeable = False
    for other in (
        wide, np.asfortranarray(wide), np.asfortranarray(X), padded[::2, 1 : 3 * d : 3], turned, readonly,
        wide.astype(">f8"), X.astype(">f4"), frame, mixed, pl.from_pandas(mixed), pa.Table.from_pandas(frame),
        {name: wide[:, j] for j, name in enumerate(names)}, path, [str(path)],
    ):  # fmt: skip
        assert everything(other, y, sign, w) == right, type(other)


def test_the_same_bits_for_integers_and_booleans() -> None:
    rng = np.random.default_rng(14)
    X, w = rng.integers(0, 2, (200, 11)), rng.normal(size=11)
    y = rng.integers(-3, 4, 200)
    sign = np.where(y > 0, 1, -1)
    right = everything(X.astype(np.float64), y.astype(float), sign.astype(float), w)
    for kind in (bool, np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32):
        assert everything(X.astype(kind), y, sign, w) == right, kind
    assert everything(fastdp.pack(X.astype(bool)), y, sign, w) == right
    assert everything(pl.DataFrame(X.astype(bool)), y.tolist(), sign > 0, w) == right


@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_bits_for_every_chunking_and_number_of_threads(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    n, d = 9000, 5
    X, y, w = instance(np.random.default_rng(15), n, d, dtype)
    sign = np.where(y > 0, 1.0, -1.0)
    right = everything(X, y, sign, w)
    for block, values in ((2**16, 2**21), (1024, 2**21), (2**16, 1), (2048, 2**14)):
        monkeypatch.setattr(arrays, "BLOCK_RECORDS", block)
        monkeypatch.setattr(arrays, "_BLOCK_VALUES", values)
        for threads in (1, 2, 3, 4):
            fastdp.set_num_threads(threads)
            assert everything(X, y, sign, w) == right
    monkeypatch.setattr(rows, "_MOST_KEPT", 0)
    assert everything(X, y, sign, w) == right, "norms that are computed anew"


@pytest.mark.usefixtures("restored_threads")
def test_plain_sums_have_the_same_bits_for_every_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "BLOCK_RECORDS", 1024)
    X, y, w = instance(np.random.default_rng(16), 9000, 5)
    found = set()
    for threads in (1, 2, 4):
        fastdp.set_num_threads(threads)
        some = Points(X, y, LOSSES["SQUARED"], "raise")
        found.add((some.plain_gradients(w).tobytes(), mean_loss(some, LOSSES["SQUARED"], w)))
    assert len(found) == 1


def test_the_order_of_records_does_not_matter() -> None:
    rng = np.random.default_rng(17)
    X, y, w = instance(rng, 5000, 6)
    sign = np.where(y > 0, 1.0, -1.0)
    right = everything(X, y, sign, w)
    order = rng.permutation(5000)
    assert everything(X[order], y[order], sign[order], w) == right


@pytest.mark.parametrize(
    "over", [sets.Ball(0.7), sets.Ball(0.7, norm=1), sets.Box(-0.2, 0.3), sets.Simplex()], ids=repr
)
@pytest.mark.parametrize("kind", [*LOSSES, "CUSTOM"])
def test_all_loops_come_to_the_same_bits(kind: str, over: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One compiled loop, and step by step; with a callback, too."""
    rng = np.random.default_rng(18)
    loss = LOSSES[kind] if kind != "CUSTOM" else losses.Custom(atan_like)
    for n, d, bound in ((1, 1, None), (33, 9, None), (150, 12, 0.5), (129, 40, None), (4097, 3, None)):
        X, y, _ = instance(rng, n, d, np.float32 if d == 12 else np.float64, kind in ("LOGISTIC", "HINGE"))
        bounded = loss if bound is None or kind == "CUSTOM" else type(loss)(x_norm=bound)

        def path(callback: Any = None, some: tuple[Any, ...] = (X, y, bounded)) -> bytes:
            fit = fastdp.noisy_projected_gradient_descent(
                some[0], labels_for(kind, some[1]), loss=some[2] + losses.L2(0.1), over=over, epsilon=1,
                noise="laplace", clip=1.0, steps=6, step_size=0.5, average=False, outside="clip", history=True,
                callback=callback, resolution=2.0**-20, rng=fastdp.Randomness(seed=18),
            )  # fmt: skip
            assert fit.history is not None
            return fit.history.tobytes()

        right = path()
        assert path(lambda t, w: None) == right
        with monkeypatch.context() as patch:
            patch.setattr(points_module, "_ONE_LOOP", 0)
            assert path() == right, "step by step"
            patch.setattr(rows, "_MOST_KEPT", 0)
            assert path() == right, "norms that are computed anew"


# --- plain sums


def mean_loss(some: Points, loss: Loss, w: Array) -> float:
    return float(some.plain_mean(lambda X, y: loss.values(w, X, y).sum()))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", LOSSES)
def test_plain_sums_and_values_are_numpys(kind: str, dtype: Any) -> None:
    rng = np.random.default_rng(19)
    for n, d in ((1, 1), (5, 3), (33, 8), (100, 17), (257, 33), (4200, 2)):
        X, y, w = instance(rng, n, d, dtype, kind in ("LOGISTIC", "HINGE"))
        some = Points(X, labels_for(kind, y), LOSSES[kind], "raise")
        each = LOSSES[kind].gradients(w, X.astype(np.float64), y)
        size = np.abs(each).sum(axis=0) + 1e-300
        np.testing.assert_allclose(some.plain_gradients(w) / size, each.sum(axis=0) / size, rtol=0, atol=1e-12)
        right = float(LOSSES[kind].values(w, X.astype(np.float64), y).mean())
        assert mean_loss(some, LOSSES[kind], w) == pytest.approx(right, rel=1e-12)


def test_plain_values_are_of_points_within_their_bound() -> None:
    X, y, w = instance(np.random.default_rng(20), 100, 4)
    inside = X * np.minimum(1.0, 0.5 / np.linalg.norm(X, axis=1, keepdims=True))
    for loss, labels in ((losses.SquaredError(x_norm=0.5), y), (losses.SquaredDistance(x_norm=0.5), None)):
        some = Points(X, labels, loss, "clip")
        assert mean_loss(some, loss, w) == pytest.approx(float(loss.values(w, inside, y).mean()), rel=1e-12)
        each = loss.gradients(w, inside, y).sum(axis=0)
        np.testing.assert_allclose(some.plain_gradients(w), each, rtol=1e-10)


# --- losses of the user's own


def c_library(folder: Path) -> str:
    """A real C function, compiled here."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (folder / "slope.c").write_text(ATAN)
    path = folder / "slope.so"
    subprocess.run(
        [compiler, "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", path, folder / "slope.c"], check=True
    )
    return str(path)


def test_a_custom_loss_in_every_spelling(tmp_path: Path) -> None:
    ffi = cffi.FFI()
    ffi.cdef("double slope(double, double);")
    path = c_library(tmp_path)
    library, plain = ffi.dlopen(path), ctypes.CDLL(path)
    address = ctypes.cast(plain.slope, ctypes.c_void_p).value
    assert address is not None
    compiled = numba.cfunc("float64(float64, float64)")(atan_like)
    rng = np.random.default_rng(21)
    X, y, w = instance(rng, 150, 11)
    unit, limit = 2.0**25, limit_of(2.0**24, 11)
    low, high = oracles.optimizing.clipped_gradients(
        X, y, w, "CUSTOM", unit=unit, limit=limit, slope=lambda s, label, _: atan_like(s, label)
    )
    spelled: list[tuple[Any, str]] = [
        (atan_like, "atan_like"), (lambda s, y: (s - y) / (1.0 + abs(s - y)), "<lambda>"),
        (numba.njit(atan_like), "atan_like"), (compiled, "a numba cfunc"), (library.slope, "a C function"),
        (address, "an address"), (np.int64(address), "an address"), (compiled.address, "an address"),
    ]  # fmt: skip
    for function, name in spelled:
        loss = losses.Custom(function)
        assert repr(loss) == f"Custom({name})"
        found = sums(X, y, w, loss, unit, limit)
        assert (low <= found).all(), name
        assert (found <= high).all(), name
        np.testing.assert_array_equal(
            loss.derivative(X @ w, y), [atan_like(s, label) for s, label in zip(X @ w, y, strict=True)]
        )


def test_a_custom_loss_that_says_the_same_is_the_same_to_the_bit() -> None:
    X, y, w = instance(np.random.default_rng(22), 500, 7)
    unit, limit = 2.0**30, limit_of(2.0**29, 7)
    custom = sums(X, y, w, losses.Custom(lambda s, y: 2.0 * (s - y)), unit, limit)
    np.testing.assert_array_equal(custom, sums(X, y, w, LOSSES["SQUARED"], unit, limit))


WRONG: dict[str, Callable[[float, float], float]] = {
    "nan": lambda s, y: np.nan,
    "inf": lambda s, y: np.inf,
    "minus inf": lambda s, y: -np.inf,
    "1e308": lambda s, y: 1e308,
    "minus zero": lambda s, y: -0.0,
    "denormal": lambda s, y: 5e-324,
    "0 by 0": lambda s, y: (s - s) / (s - s),
    "1 by 0": lambda s, y: 1.0 / (y - y),
    "some nan": lambda s, y: np.nan if s > 0 else 1e300 * y,
    "an integer": lambda s, y: 3,
    "a truth": lambda s, y: s > y,
}


@pytest.mark.parametrize("name", WRONG)
def test_no_custom_loss_breaks_the_lemma(name: str) -> None:
    rng = np.random.default_rng(23)
    loss = losses.Custom(WRONG[name], slope_bound=1e-9, x_norm=1e-9)
    for d in (1, 3, 8, 20):
        X, y = wild_rows(rng, 200, d), wild_numbers(rng, 200)
        some = inputs(X, y, rng.normal(size=d), "CUSTOM", address=loss.address)
        for i in range(200):
            one = (some[0][i * d : i * d + d], some[1][i : i + 1], some[2][i : i + 1], *some[3:])
            for size in (1.0, 1000.3, 2.0**41):
                q = kernel_sum("CUSTOM", one, 2.0**20, limit_of(size, d), d)
                assert square(q) <= Fraction(size) ** 2
                if name in ("nan", "inf", "minus inf", "minus zero", "0 by 0", "1 by 0"):
                    assert not q.any(), "not a number counts as 0"
        whole = kernel_sum("CUSTOM", some, 2.0**20, limit_of(1000.3, d), d)
        assert square(whole) <= (200 * Fraction(1000.3)) ** 2


def test_one_record_without_a_number_does_not_spoil_the_others() -> None:
    X, y = np.ones((40, 3)), np.zeros(40)
    y[17] = 5.0
    loss = losses.Custom(lambda s, y: np.nan if y == 5.0 else 1.0)
    np.testing.assert_array_equal(sums(X, y, np.ones(3), loss, 1024.0, 1e6), [39 * 1024] * 3)


def test_functions_that_are_not_a_derivative_are_refused() -> None:
    rule = r"^derivative=.*: must be a function of \(score, label\)$"
    for wrong in ("f", None, 1.5, True, np.True_, [1], object()):
        with pytest.raises(ValueError, match=rule):
            losses.Custom(wrong)
    for wrong in (0, -5):
        with pytest.raises(ValueError, match=r"^derivative=.*: must be the address of a C function$"):
            losses.Custom(wrong)
    for signature in ("float64(float32, float64)", "float32(float64, float64)", "int64(float64, float64)"):
        cfunc = numba.cfunc(signature)(lambda s, y: s - y)
        with pytest.raises(ValueError, match=r"^derivative: a cfunc \(.*: must be float64\(float64, float64\)$"):
            losses.Custom(cfunc)
    with pytest.raises(ValueError, match=r"^derivative: a cfunc \(float64,\) -> float64: must be"):
        losses.Custom(numba.cfunc("float64(float64)")(lambda s: s))

    def unknown(s: float, y: float) -> float:
        return float(str(s).count("1")) + open("x").read()  # type: ignore[operator]

    def of_one(s: float) -> float:
        return s

    for function in (unknown, of_one, lambda s, y: (s, y), lambda s, y: 1j * s, math.atan2, np.arctan2, print):
        with pytest.raises(ValueError, match=r"^derivative=.*: numba must be able to compile it \(.+\)$"):
            losses.Custom(function)


def test_custom_losses_are_not_pickled() -> None:
    loss = losses.Custom(lambda s, y: s - y)
    with pytest.raises(TypeError, match=r"^a Custom loss holds the address of a function of this process: make it"):
        pickle.dumps(loss)


# --- the same bits on every machine


def fingerprint() -> str:
    digest = hashlib.sha256()
    rng = np.random.default_rng(24)
    for n, d, dtype in ((100, 1, np.float64), (70, 13, np.float64), (131, 33, np.float64), (40, 64, np.float64)):
        X, y, w = instance(rng, n, d, dtype)
        X[:20] = wild_rows(rng, 20, d).clip(-1e30, 1e30)
        for kind in ("SQUARED", "LOGISTIC", "HINGE", "HUBER", "LINEAR", "DISTANCE"):  # two kernels to compile
            labels = np.where(y > 0, 1.0, -1.0) if kind in ("LOGISTIC", "HINGE") else y
            digest.update(kernel_sum(kind, inputs(X, labels, w, kind), 2.0**30, limit_of(2.0**30, d), d).tobytes())
    return digest.hexdigest()


def test_same_bits_on_other_cpus(fingerprint_elsewhere: Callable[[str], str]) -> None:
    assert fingerprint_elsewhere(__name__) == fingerprint()


def test_c_functions_of_another_signature() -> None:
    ffi = cffi.FFI()
    ffi.cdef("double sin(double); float fmaxf(float, float);")
    library = ffi.dlopen(None)
    for wrong in (library.sin, library.fmaxf, ffi.new("double *"), ffi.NULL):
        with pytest.raises(ValueError, match=r"^derivative"):
            losses.Custom(wrong)
    with pytest.raises(ValueError, match=r"^derivative"):
        losses.Custom(2**70)


# --- found by review


def test_a_fractional_sensitivity_counts_all_coordinates_that_may_move() -> None:
    """Integer vectors of norm up to Delta may have floor(Delta^2) coordinates: more than floor(Delta)^2."""
    for sensitivity in (1.4143, 2.45, 2.9, 3.99):
        for d in (1, 2, 6, 9, 20):
            b = scales.noise_options(sensitivity, d, 1, 1.0, 0.0)["laplace"].value
            longest = max(k for k in range(d + 1) if k <= sensitivity**2)  # ones: the largest L1 norm
            assert longest / b <= 1


def test_the_sum_meets_the_noise_as_an_integer() -> None:
    """2^53 + 1 is no float: had the sum been rounded before the noise came, the step would tell it from 2^53."""
    nothing, at = np.zeros(1), []
    for s in (2**53, 2**53 + 1, 2**53 + 2):
        w = np.zeros(1)
        everywhere = np.array([projections.EVERYWHERE, 0.0, 0.0, 0.0, 0.0])
        descent.step_once(np.array([s]), np.array([-(2**53)]), np.array([1.0, 0.0]), 1.0, everywhere, w, nothing)
        at.append(-w[0])
    assert at == [0, 1, 2]


def test_sums_of_4103_records_are_exact() -> None:
    some = Points(np.full((4103, 1), 5.0), None, losses.SquaredDistance(), "raise")
    limit = 2.0**41
    total = some.gradients(np.zeros(1), 2.0**41, limit)
    assert total[0] == -4103 * int(limit)


def test_a_norm_that_is_no_number_lets_nothing_through() -> None:
    one = clipping.clipped_one
    assert one(1.0, np.nan, 1.0, 1.0) == 0
    assert one(np.nan, 1.0, 1.0, 1.0) == one(np.inf, 1.0, 1.0, 1.0) == one(1.0, np.inf, 1.0, 1.0) == 0


def test_each_label_means_what_it_means_alone() -> None:
    X = np.ones((4, 1))
    mixed = Points(X, [-1, 0, 1, 1], losses.Hinge(), "raise").gradients(np.zeros(1), 2.0**10, 2.0**10)
    assert mixed[0] == 0
