"""Least squares from noisy second moments: kernels/moments.py, fastdp/optimizing/moments.py, moments.md.

The kernel against its oracle and bit by bit; lemma 2 in exact integers, with a mutant that is refuted; the law of the
noise; what theorem 2 guarantees; budgets, and the errors before any of them is spent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import Budget, BudgetExceeded, DomainError, Randomness, losses, sets
from fastdp.kernels import clipping, moments
from fastdp.optimizing import moments as public
from fastdp.optimizing.moments import MomentsPlan, sensitivity
from fastdp.optimizing.points import Points
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.step_noise import NoiseParameters
from fastdp.privacy import ZCDP, AllOf, ApproxDP, PureDP
from fastdp.records import arrays
from tests import oracles
from tests.laws import assert_law, wrong_scales

Array = np.ndarray[Any, Any]
Options = dict[str, Any]

fit_of = fastdp.noisy_least_squares
ERROR = losses.SquaredError(x_norm=1, y_bound=1)
WIDTHS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 23, 24, 25, 33, 64, 65]
COUNTS = [1, 2, 3, 4, 5, 7, 8, 9, 31, 100]


def kernel_sum(X: Array, y: Array, x_norm: float, y_bound: float, unit: float) -> Array:
    """The kernel without the class that checks records; what is left alone is 0."""
    n, d = X.shape
    least = clipping.LEAST_SQUARE_32 if X.dtype == np.float32 else clipping.LEAST_SQUARE
    norms, flat = np.empty(n), np.ascontiguousarray(X).reshape(-1)
    clipping.norms_into(flat, d, least, norms)
    out, wide = np.zeros((d + 2, d), np.int64), -(-d // 8) * 8
    tail, sums = np.empty(4 * d + 8, X.dtype), np.empty((d + 2) * wide)
    moments.add_moments(flat, np.asarray(y, np.float64), norms, x_norm, y_bound, unit, tail, sums, out)
    return out


def instance(seed: int, n: int, d: int, dtype: Any = np.float64) -> tuple[Array, Array]:
    """Records, some beyond the unit ball, some of zeros; labels, some beyond 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.choice([0.0, 0.01, 0.3, 1.0, 30.0], (n, 1)) / math.sqrt(d)
    X[rng.random((n, d)) < 0.1] = 0.0
    return X.astype(dtype), rng.normal(size=n)


def released(q: Array) -> list[int]:
    """The entries that are released, as Python's integers."""
    d = q.shape[1]
    return [*q[:d][np.triu_indices(d, 1)].tolist(), *q[d].tolist(), *q[d + 1].tolist()]


def square(q: list[int]) -> int:
    return sum(v * v for v in q)


# --- the kernel against the oracle


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_the_oracle(dtype: Any) -> None:
    entries = sure = 0
    shapes = [(n, d) for d in WIDTHS for n in (3, 8)] + [(n, d) for n in COUNTS for d in (1, 5, 8)]
    for n, d in [*shapes, (4095, 2), (4096, 3), (4097, 2), (8195, 1)]:
        X, y = instance(n * d, n, d, dtype)
        for x_norm, y_bound, unit in ((1.0, 1.0, 2.0**30), (0.7, 2.0, 2.0**12)):
            if n > 4000 and unit > 2.0**20:
                continue
            found = kernel_sum(X, y, x_norm, y_bound, unit)
            low, high = oracles.optimizing.second_moments(X, y, x_norm, y_bound, unit)
            assert (low <= found).all(), (n, d)
            assert (found <= high).all(), (n, d)
            entries, sure = entries + found.size, sure + int((low == high).sum())
    assert sure > 0.99 * entries, "the oracle decides nearly all sums to the last unit"


def test_no_product_is_off_by_more_than_a_unit_and_none_is_too_large() -> None:
    """Exactly, in fractions: between the product less one unit (and a part of 2^39) and the product."""
    for d in (1, 2, 5, 9):
        X, y = instance(d, 40, d)
        for x, label in zip(X, y, strict=True):
            q = kernel_sum(x[None, :], np.array([label]), 2.0, 1.0, 2.0**20)
            exact, v = [Fraction(a) / 2 for a in x.tolist()], Fraction(min(max(label, -1.0), 1.0))
            squared = sum(a * a for a in exact)
            if squared > 1:
                continue  # the norm is then no fraction
            for j in range(d):
                for found, right in ((q[d, j], exact[j] * v), (q[d + 1, j], exact[j] ** 2)):
                    size = abs(right) * 2**20
                    assert size * (1 - Fraction(1, 2**39)) - 1 <= abs(int(found)) <= size
                    assert found * right >= 0
                for i in range(j):
                    twice = 2 * (exact[i] * exact[j] * 2**20) ** 2  # the square of sqrt(2) times the product
                    assert int(q[i, j]) ** 2 <= twice
                    assert (abs(int(q[i, j])) + 1) ** 2 >= twice * (1 - Fraction(1, 2**38))


def test_no_product_is_too_large_where_records_are_as_long_or_as_short_as_they_may_be() -> None:
    """Reciprocals and products then come close to where float64 loses digits: lemma 1 counts on their not doing so."""
    for exponent in (-400, -60, 0, 300, 508):
        for first, second, whole in ((3, 4, 5), (20, 21, 29), (119, 120, 169)):
            scale = 2.0 ** (exponent - whole.bit_length() + 3)
            for x_norm in (2.0**-400, whole * scale, 2.0**400):
                norm = max(Fraction(x_norm), whole * Fraction(scale))
                u = [Fraction(part) * Fraction(scale) / norm for part in (first, second)] + [Fraction(0)]
                for unit in (2.0**6, 2.0**40):
                    for tiny in (0.0, 2.0**-500, -5e-324):
                        q = kernel_sum(np.array([[first * scale, second * scale, tiny]]), np.ones(1), x_norm, 1.0, unit)
                        for j in range(3):
                            assert 0 <= int(q[3, j]) <= u[j] * Fraction(unit)
                            assert 0 <= int(q[4, j]) <= u[j] ** 2 * Fraction(unit)
                        assert int(q[0, 1]) ** 2 <= 2 * (u[0] * u[1] * Fraction(unit)) ** 2
                        assert (int(q[0, 2]), int(q[1, 2])) == (0, 0)


def test_values_on_a_coarse_grid() -> None:
    """Whole numbers of units, which the factor 1 - 2^-40 brings below: one less in magnitude, unless they are 0."""
    rng = np.random.default_rng(1)
    for d in WIDTHS:
        n = 37
        k, labels = rng.integers(-8, 9, (n, d)), rng.integers(-8, 9, n)
        x_norm, unit = 64.0 * 2.0 ** math.ceil(math.log2(d + 1)), 2.0**30
        found = kernel_sum(k.astype(float), labels.astype(float), x_norm, 8.0, unit)
        whole = int(unit / x_norm**2)

        def below(products: Array) -> Array:
            return (products - np.sign(products)).sum(axis=0)

        np.testing.assert_array_equal(found[d + 1], below(k * k * whole))
        np.testing.assert_array_equal(found[d], below(k * labels[:, None] * int(unit / x_norm / 8)))
        for i, j in zip(*np.triu_indices(d, 1), strict=True):
            products = (k[:, i] * k[:, j] * whole).tolist()
            right = sum(math.isqrt(2 * p * p) * (1 if p > 0 else -1) for p in products)
            assert found[i, j] == right


def test_sums_are_of_their_records_one_by_one() -> None:
    X, y = instance(2, 4101, 3)
    X[:, 0] = np.abs(X[:, 0]) + 1
    whole = kernel_sum(X, y, 1.0, 1.0, 2.0**40)
    one_by_one = sum(kernel_sum(X[i : i + 1], y[i : i + 1], 1.0, 1.0, 2.0**40) for i in range(len(X)))
    np.testing.assert_array_equal(whole, one_by_one)


def test_the_kernel_adds_and_leaves_the_rest_alone() -> None:
    X, y = instance(3, 10, 4)
    once = kernel_sum(X, y, 1.0, 1.0, 2.0**20)
    assert not once[np.tril_indices(4)].any()
    out, sums, tail = np.full((6, 4), 7, np.int64), np.empty(48), np.empty(24)
    norms = np.linalg.norm(X, axis=1)
    for _ in range(2):
        moments.add_moments(X.reshape(-1), y, norms, 1.0, 1.0, 2.0**20, tail, sums, out)
    assert (out[np.tril_indices(4)] == 7).all()
    np.testing.assert_allclose(out[:4][np.triu_indices(4, 1)], 7 + 2 * once[:4][np.triu_indices(4, 1)], atol=2)


# --- the same bits


def sums(X: Any, y: Any, outside: str = "clip") -> bytes:
    points = Points(X, y, ERROR, outside)
    points.check()
    found = points.moments(1.0, 1.0, 2.0**30)
    np.testing.assert_array_equal(found[: points.d][np.tril_indices(points.d)], 0)
    return found.tobytes()


@pytest.mark.parametrize("d", [1, 5, 7, 8, 9, 16, 17])
def test_the_same_bits_from_every_container(d: int) -> None:
    for n in (1, 3, 4, 5, 33):
        X, y = instance(4, n, d, np.float32)
        wide, names = X.astype(np.float64), [f"c{j}" for j in range(d)]
        frame, turned = pd.DataFrame(wide, columns=names), wide[::-1].copy()[::-1]
        right = sums(X, y)
        readonly = wide.copy()
        readonly.flags.writeable = False
        for other in (wide, np.asfortranarray(wide), np.asfortranarray(X), frame, turned, readonly):
            assert sums(other, y) == right, type(other)
        assert sums(frame.assign(label=y), "label") == right
        assert sums(frame.assign(label=y)[["label", *names]], 0) == right


def test_a_column_of_a_parquet_file(tmp_path: Path) -> None:
    X, y = instance(5, 500, 6)
    path, frame = tmp_path / "records.parquet", pd.DataFrame(X, columns=list("abcdef")).assign(label=y)
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=170)
    common: Options = {"loss": ERROR, "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6, "outside": "clip"}
    right = fit_of(X, y, rng=Randomness(seed=1), **common)
    for points, labels in ((frame, "label"), (frame, 6), (path, "label"), (str(path), "label"), (X, y[:, None])):
        other = fit_of(points, labels, rng=Randomness(seed=1), **common)
        assert other.gram.tobytes() == right.gram.tobytes()
        assert other.cross.tobytes() == right.cross.tobytes()
        assert other.w.tobytes() == right.w.tobytes()


@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_bits_for_every_chunking_order_and_number_of_threads(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in (4095, 4096, 4097, 8195):
        X, y = instance(6, n, 9, dtype)
        right = sums(X, y)
        order = np.random.default_rng(n).permutation(n)
        assert sums(X[order], y[order]) == right
        for block, values in ((1024, 2**21), (2**16, 1), (2048, 2**14)):
            with monkeypatch.context() as patch:
                patch.setattr(arrays, "BLOCK_RECORDS", block)
                patch.setattr(arrays, "_BLOCK_VALUES", values)
                for threads in (1, 2, 3):
                    fastdp.set_num_threads(threads)
                    assert sums(X, y) == right


# --- lemma 2


def neighbours(rng: np.random.Generator, d: int, pairs: int) -> tuple[Array, Array]:
    """Pairs of records: at random, at the angle of 60 degrees, beyond the ball, one of zeros, along axes."""
    X = rng.normal(size=(pairs, 2, d))
    y = rng.uniform(-1.5, 1.5, (pairs, 2))
    X /= np.linalg.norm(X, axis=2, keepdims=True)
    kind = rng.integers(0, 6, pairs)
    if d > 1:
        first = X[:, 0]
        across = X[:, 1] - (X[:, 1] * first).sum(axis=1, keepdims=True) * first
        across /= np.maximum(np.linalg.norm(across, axis=1, keepdims=True), 1e-300)
        tilted = 0.5 * first + math.sqrt(0.75) * across * rng.choice([1, -1], (pairs, 1))
        X[:, 1] = np.where((kind <= 2)[:, None], tilted, X[:, 1])
    opposed = kind <= 3
    y[opposed, 0], y[opposed, 1] = 1.0, -1.0
    X[kind == 1] *= 1 + 1e-9
    X[kind == 2] *= 1e6
    X[kind == 4] *= rng.random(((kind == 4).sum(), 2, 1))
    X[kind == 5, 1] = 0.0
    return X, y


def test_neighbours_move_the_moments_by_no_more_than_lemma_2_says() -> None:
    """20,000 pairs, in exact integers; sqrt(4) in place of sqrt(4.5) is refuted, and 1.4 in place of sqrt(2)."""
    rng = np.random.default_rng(7)
    mutants = {"replace-one": 0, "add-remove": 0}
    for d, pairs in ((1, 2500), (2, 6000), (3, 5000), (5, 3000), (8, 2000), (13, 1000), (33, 500)):
        entries = d * (d + 1) // 2 + d
        X, y = neighbours(rng, d, pairs)
        for k in range(pairs):
            unit = 2.0 ** (0, 1, 3, 6, 10, 20, 30, 40)[k % 8]
            q = [released(kernel_sum(X[k, i : i + 1], y[k, i : i + 1], 1.0, 1.0, unit)) for i in (0, 1)]
            for one in q:
                limit = Fraction(sensitivity(unit, entries, "add-remove"))
                assert square(one) <= 2 * Fraction(unit) ** 2 <= limit**2
                mutants["add-remove"] += square(one) > Fraction(1.4) ** 2 * Fraction(unit) ** 2
            moved = square([a - b for a, b in zip(*q, strict=True)])
            assert moved <= Fraction(sensitivity(unit, entries, "replace-one")) ** 2, (d, k)
            mutants["replace-one"] += moved > (2 * unit + math.sqrt(entries)) ** 2
    assert min(mutants.values()) > 1000, "neighbours are found that move the moments nearly as far"


def test_sensitivities_are_those_of_lemma_2_rounded_up() -> None:
    for unit in (1.0, 2.0**7, 2.0**30):
        for d in (1, 3, 20, 4096):
            m = d * (d + 1) // 2 + d
            assert sensitivity(unit, m, "add-remove") == pytest.approx(math.sqrt(2) * unit, rel=1e-14)
            found = sensitivity(unit, m, "replace-one")
            assert found == pytest.approx(math.sqrt(4.5) * unit + math.sqrt(m), rel=1e-14)
            assert Fraction(sensitivity(unit, m, "add-remove")) ** 2 >= 2 * Fraction(unit) ** 2
            square_of_both = (Fraction(found) ** 2 - Fraction(9, 2) * Fraction(unit) ** 2 - m) / 2
            assert square_of_both**2 >= Fraction(9, 2) * Fraction(unit) ** 2 * m, "(a + b)^2 with both rounded up"


# --- the law of the noise


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_noise_has_the_law_that_is_stated(noise: str, neighbors: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Integers of the grid, by their exact law: in the diagonal, sqrt(2) times what is off it, and in the products."""
    monkeypatch.setattr(public.NoisyQuadratic, "minimise", lambda noisy, allowed: (np.zeros(50), 0.0))
    d, n, runs, rng = 50, 3, 60, Randomness(seed=8)
    loss, over = losses.SquaredError(x_norm=2, y_bound=3), sets.Ball(1.0)
    more: Options = {"neighbors": neighbors, "records": n if neighbors == "add-remove" else None}
    asked = NoiseParameters.of(1.0, 1e-6, noise, neighbors)
    plan = MomentsPlan.of(Problem.of(loss, over, d), n, d, asked)
    parts: list[list[Array]] = [[], [], []]
    for _ in range(runs):
        fit = fit_of(np.zeros((n, d)), np.zeros(n), loss=loss, over=over, epsilon=1.0, delta=1e-6, noise=noise,
                     rng=rng, **more)  # fmt: skip
        np.testing.assert_array_equal(fit.gram, fit.gram.T)
        parts[0].append(np.diag(fit.gram) / 4)
        parts[1].append(fit.gram[np.triu_indices(d, 1)] * math.sqrt(2) / 4)
        parts[2].append(fit.cross / 6)
    assert fit.noise.split(" (")[0] == noise
    unit = plan.grid.unit
    assert fit.noise_scale == pytest.approx(4 * plan.grid.noise.value / (n * unit), rel=1e-12)
    factor = math.sqrt(2) if noise == "laplace" else 1.0
    assert plan.deviation == pytest.approx(fit.noise_scale * factor, rel=1e-12)
    make = oracles.noise.gaussian_law if noise == "gaussian" else oracles.noise.laplace_law
    scale = fit.noise_scale / 4 * n * unit
    whole = [np.concatenate(part) * (n * unit) for part in parts]
    for draws in whole:
        np.testing.assert_allclose(draws, np.rint(draws), rtol=1e-12, atol=1e-5)
        assert_law(np.rint(draws[:6000]).astype(np.int64), make(scale), wrong_scales(make, scale))
    assert np.std(parts[1]) == pytest.approx(plan.deviation / 4, rel=0.02)
    assert len(np.unique(np.concatenate(whole))) > 0.99 * sum(map(len, whole)), "no entry repeats another"


def test_noise_is_drawn_anew_unless_a_seed_is_given() -> None:
    X, y = truth(50, 3)
    common: Options = {"loss": ERROR, "over": sets.Ball(1.0), "epsilon": 1.0}
    first, second = (fit_of(X, y, rng=Randomness(seed=8), **common) for _ in range(2))
    np.testing.assert_array_equal(first.gram, second.gram)
    assert (fit_of(X, y, **common).gram != fit_of(X, y, **common).gram).any()
    rng = Randomness(seed=8)
    assert (fit_of(X, y, rng=rng, **common).gram != fit_of(X, y, rng=rng, **common).gram).any()


def test_scales_by_sensitivity_and_calibration() -> None:
    X, y = truth(400, 4)
    common: Options = {"loss": ERROR, "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6}
    normal = fit_of(X, y, noise="gaussian", **common)
    assert normal.noise_scale * 400 == pytest.approx(4.225 * math.sqrt(4.5), rel=1e-3)
    remove = fit_of(X, y, noise="gaussian", neighbors="add-remove", records=400, **common)
    assert remove.noise_scale * 400 == pytest.approx(4.225 * math.sqrt(2), rel=1e-3)
    pure = fit_of(X, y, **common | {"delta": 0.0})
    assert pure.noise == "laplace (pure)"
    assert pure.noise_scale * 400 == pytest.approx(math.sqrt(4.5 * 14), rel=1e-6), "14 numbers, by the L2 norm"
    assert fit_of(X, y, **common).noise_scale == normal.noise_scale, "auto takes the least"


# --- utility


def truth(n: int, d: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X *= rng.random((n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, (X @ np.linspace(0.6, -0.6, d) + 0.1 * rng.normal(size=n)).clip(-1, 1)


def nearest(w: Array) -> Array:
    """In the half of a ball of radius 0.8 where the first coordinate is not negative."""
    w = w.copy()
    w[0] = max(w[0], 0.0)
    return w / max(1.0, float(np.linalg.norm(w)) / 0.8)


SETS: list[Any] = [
    sets.Ball(1.0), sets.Ball(0.4), sets.Ball(0.5, norm=1), sets.Box(-0.5, 0.7), sets.Simplex(),
    sets.Projected(nearest, diameter=1.6, center=[0.1, 0.0, 0.0, 0.0]),
]  # fmt: skip


def least_squares(X: Array, y: Array, over: Any, lam: float = 0.0) -> Array:
    """By a long run of plain descent on the exact moments."""
    A, b = X.T @ X / len(X) + lam / 2 * np.eye(X.shape[1]), X.T @ y / len(X)
    rate = 1 / (2 * np.linalg.eigvalsh(A)[-1])
    path = oracles.optimizing.descent(lambda w: 2 * (A @ w - b), over.project, over.center, [rate] * 2000)
    return path[-1]


def risk(w: Array, X: Array, y: Array, lam: float = 0.0) -> float:
    return float(((X @ w - y) ** 2).mean()) + lam / 2 * float(w @ w)


@pytest.mark.parametrize("lam", [0.0, 0.3])
@pytest.mark.parametrize("over", SETS, ids=repr)
def test_close_to_the_truth_and_within_the_bound(over: Any, lam: float) -> None:
    X, y = truth(3000, 4)
    here, loss = over.of_dimension(4), ERROR + losses.L2(lam) if lam else ERROR
    best = least_squares(X, y, here, lam)
    sharp = fit_of(X, y, loss=loss, over=over, epsilon=300.0, delta=1e-3, rng=Randomness(seed=2))
    np.testing.assert_allclose(sharp.w, best, rtol=0, atol=2e-3)
    assert sharp.ridge == 0
    np.testing.assert_allclose(sharp.gram, X.T @ X / 3000, rtol=0, atol=1e-3)
    np.testing.assert_allclose(sharp.cross, X.T @ y / 3000, rtol=0, atol=1e-3)
    rng, least = Randomness(seed=3), risk(best, X, y, lam)
    for noise, delta in (("gaussian", 1e-6), ("laplace", 0.0)):
        fits = [fit_of(X, y, loss=loss, over=over, epsilon=1.0, delta=delta, noise=noise, rng=rng) for _ in range(10)]
        excess = [risk(fit.w, X, y, lam) - least for fit in fits]
        assert min(excess) > -1e-6
        assert np.mean(excess) <= fits[0].bound
        assert all(here.contains(fit.w) for fit in fits)


def test_labels_and_points_in_other_units() -> None:
    """Points times 5 and labels times 7 take weights times 7/5: by the same draws the same fit."""
    X, y = truth(2000, 3)
    one = fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=1.0, delta=1e-6, rng=Randomness(seed=4))
    other = fit_of(5 * X, 7 * y, loss=losses.SquaredError(x_norm=5, y_bound=7), over=sets.Ball(1.4), epsilon=1.0,
                   delta=1e-6, rng=Randomness(seed=4))  # fmt: skip
    np.testing.assert_allclose(other.w, 1.4 * one.w, rtol=1e-5)
    np.testing.assert_allclose(other.gram, 25 * one.gram, rtol=0, atol=1e-6)
    assert other.bound == pytest.approx(49 * one.bound, rel=1e-9)


def test_the_bound_falls_with_records_and_epsilon_to_no_more_than_the_loss_varies() -> None:
    bounds = [fit_of(*truth(n, 5), loss=ERROR, over=sets.Ball(1.0), epsilon=1.0, delta=1e-6).bound
              for n in (10, 1000, 10_000, 100_000)]  # fmt: skip
    assert bounds[0] == 4.0, "(1 + 1)^2"
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == pytest.approx(bounds[-2] / 10, rel=5e-3), "rounding falls as the root of n"
    # 2 sqrt(2 d) sigma and 2 sqrt(d) sigma times the diameter
    sigma = 4.225 * math.sqrt(4.5) / 100_000
    assert bounds[-1] == pytest.approx(2 * sigma * math.sqrt(10) + 4 * sigma * math.sqrt(5), rel=5e-3)


def test_a_ridge_where_noise_makes_the_matrix_indefinite() -> None:
    X, y = truth(40, 4)
    used = 0
    for seed in range(12):
        fit = fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=0.5, delta=1e-6, rng=Randomness(seed=seed))
        least = float(np.linalg.eigvalsh(fit.gram)[0])
        assert fit.ridge == pytest.approx(max(0.0, -least), rel=1e-12)
        used += fit.ridge > 0
        assert np.linalg.norm(fit.w) <= 1 + 1e-9
        assert f"ridge        {fit.ridge:.4g}" in repr(fit)
    assert used >= 6


def test_outside_clip_cuts_to_the_bounds() -> None:
    X, y = truth(500, 3)
    X, y = 4 * X, 3 * y
    inside = X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    fit = fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=500.0, delta=1e-3, outside="clip",
                 rng=Randomness(seed=5))  # fmt: skip
    np.testing.assert_allclose(fit.gram, inside.T @ inside / 500, rtol=0, atol=2e-3)
    np.testing.assert_allclose(fit.cross, inside.T @ y.clip(-1, 1) / 500, rtol=0, atol=2e-3)


# --- add-remove


def test_under_add_remove_nothing_depends_on_the_number_of_records() -> None:
    X, y = truth(300, 3)
    common: Options = {"loss": ERROR, "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6, "records": 250,
                       "neighbors": "add-remove"}  # fmt: skip
    fits = [fit_of(X[:n], y[:n], **common) for n in (0, 1, 299, 300)]
    assert len({(fit.noise_scale, fit.bound, fit.noise, str(fit.guarantee)) for fit in fits}) == 1
    assert fits[0].guarantee.neighbors == "add-remove"
    asked, problem = NoiseParameters.of(1.0, 1e-6, "auto", "add-remove"), Problem.of(ERROR, sets.Ball(1.0), 3)
    units = {MomentsPlan.of(problem, n, 3, asked).grid.unit for n in (1, 1000, 10**8)}
    assert len(units) == 1
    none, some = (fit_of(X[:n], y[:n], rng=Randomness(seed=6), **common) for n in (0, 300))
    np.testing.assert_allclose(some.gram - none.gram, X.T @ X / 250, rtol=0, atol=1e-6)
    np.testing.assert_allclose(some.cross - none.cross, X.T @ y / 250, rtol=0, atol=1e-6)


# --- guarantees and budgets


def test_guarantees() -> None:
    X, y = truth(100, 3)
    pure = fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=0.5)
    assert pure.guarantee == PureDP(0.5)
    both = fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=0.5, delta=1e-6)
    assert isinstance(both.guarantee, AllOf)
    assert both.guarantee.parts[0] == ApproxDP(0.5, 1e-6)
    rho = both.guarantee.parts[1]
    assert isinstance(rho, ZCDP)
    assert rho.rho == pytest.approx(4.5 / (both.noise_scale * 100) ** 2 / 2, rel=1e-6)


def test_a_release_is_one_charge() -> None:
    X, y = truth(60, 3)
    budget = Budget(epsilon=2.0, delta=1e-5)
    fit = fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=0.5, delta=1e-6, budget=budget)
    (row,) = budget.releases
    assert row.mechanism == "noisy_least_squares"
    assert dict(row.parameters) == {"epsilon": 0.5, "delta": 1e-6, "noise": "gaussian"}
    assert row.guarantee == fit.guarantee
    with budget:
        fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=0.5, delta=1e-6)
    assert len(budget.releases) == 2


def test_a_release_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = truth(60, 3)
    drawn: list[int] = []
    monkeypatch.setattr(public, "integer_noise", lambda *args: drawn.append(1))
    budget = Budget(epsilon=0.4, delta=1e-5)
    with pytest.raises(BudgetExceeded):
        fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=0.5, budget=budget)
    with pytest.raises(ValueError, match="neighbors"):
        fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=0.3, budget=budget, neighbors="add-remove", records=60)
    assert not drawn
    assert not budget.releases


# --- bad input


def refused(message: str, error: type[Exception] = ValueError, **more: Any) -> None:
    """The call fails with this message, and nothing is spent."""
    X, y = truth(60, 3)
    budget = Budget(epsilon=1000.0, delta=0.5)
    common: Options = {"X": X, "y": y, "loss": ERROR, "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(error, match=message):
        fit_of(budget=budget, **common | more)
    assert not budget.releases
    assert budget.left == PureDP(1000.0)


def test_records_that_are_refused() -> None:
    X, y = truth(60, 3)
    for value in (math.nan, math.inf, 1e300):
        spoiled = X.copy()
        spoiled[31, 1] = value
        refused(r"^X: must be finite, with norms below 2\^511", DomainError, X=spoiled, outside="raise")
        meant = X.copy()
        meant[31] = np.where(np.isnan(spoiled[31]), 0.0, np.clip(spoiled[31], -1e100, 1e100))  # shortened, or 0 for NaN
        found, right = (
            fastdp.noisy_least_squares(
                records,
                y,
                loss=ERROR,
                over=sets.Ball(1.0),
                epsilon=1.0,
                delta=1e-6,
                outside="clip",
                rng=Randomness(seed=3),
            ).w
            for records in (spoiled, meant)
        )
        np.testing.assert_allclose(found, right, atol=1e-6)
    refused(r"^X: norms must be at most x_norm=1; there are records beyond: .*clip", DomainError, X=2 * X)
    refused(r"^y: must be at most y_bound=1 in magnitude; .*clip", DomainError, y=np.full(60, 1.1))
    refused(r"^y: must be finite; there is a NaN", DomainError, y=np.full(60, math.nan))
    refused(r"^X: n=0 records: must be at least one$", X=X[:0], y=y[:0])
    refused(r"^y: shape .*: must be \(60,\), a label for each record$", y=y[1:])
    refused(r"^y=None: must be the labels", y=None)
    refused(r"^y='z': must be labels, or the name of", X=pd.DataFrame(X, columns=list("abc")), y="z")
    refused(r"^X: 4097 columns: must be at most 4096; noisy_projected_gradient_descent takes more$",
            X=np.zeros((2, 4097)), y=np.zeros(2))  # fmt: skip


def test_parameters_that_are_refused() -> None:
    labels = np.ones(60)
    refused(r"^loss=Logistic\(x_norm=1\): must be fastdp\.losses\.SquaredError$", loss=losses.Logistic(1), y=labels)
    refused(r"^loss=Huber\(.*\): must be fastdp\.losses\.SquaredError$", loss=losses.Huber(1, x_norm=1))
    refused(r"^loss='squared': must be one of fastdp\.losses", loss="squared")
    refused(r"^loss: SquaredError\(y_bound=1\) needs x_norm=", loss=losses.SquaredError(y_bound=1))
    refused(r"^loss: SquaredError\(x_norm=1\) needs y_bound=", loss=losses.SquaredError(x_norm=1) + losses.L2(1))
    refused(r"^over=1: must be one of fastdp\.sets", over=1)
    refused(r"^Ball\(1\): has dimension 2: must be 3", over=sets.Ball(1, center=[0, 0]))
    for noise in ("normal", "laplace-per-coordinate", "laplace-basic", None, 1):
        refused(r"^noise=.*: must be ", noise=noise)
    refused(r"^noise='gaussian': needs delta > 0", noise="gaussian", delta=0.0)
    refused(r"^outside=", outside="cut")
    refused(r"^neighbors=", neighbors="both")
    refused(r"^records=None: must be given with neighbors='add-remove'$", neighbors="add-remove")
    refused(r"^records=60: must be None with neighbors='replace-one'$", records=60)
    for records in (0, -1, 2.5, "3", True):
        refused(r"^records=", records=records, neighbors="add-remove")
    for epsilon in (0, -1, math.nan, math.inf, "1", 1e300, 1e-300):
        refused("epsilon", epsilon=epsilon)
    for delta in (-1e-9, 1.0, 2, math.nan):
        refused("delta", delta=delta)
    for progress in (3, "yes"):
        refused(r"^progress=.*: must be None, False, True or a callable", progress=progress)


def test_progress_is_reported() -> None:
    X, y = truth(60, 3)
    seen: list[tuple[int, int, str]] = []
    fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=1.0, progress=lambda *said: seen.append(said))
    assert seen == [(0, 2, "checking records"), (1, 2, "second moments"), (2, 2, "")]

    def stop(done: int, total: int, what: str) -> None:
        raise RuntimeError("stop")

    budget = Budget(epsilon=1.0)
    with pytest.raises(RuntimeError, match="stop"):
        fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=1.0, progress=stop, budget=budget)
    assert not budget.releases, "nothing was drawn"


# --- what is shown


def test_what_is_shown() -> None:
    X, y = truth(100, 3)
    fit = fit_of(X, y, loss=ERROR, over=sets.Ball(1.0), epsilon=1.0, delta=1e-6)
    shown = repr(fit)
    for text in ("LeastSquares\n  w            [", "excess risk  at most", "noise        gaussian, scale",
                 "ridge        ", "guarantee    (1, 1e-06)-DP and"):  # fmt: skip
        assert text in shown
    page = fit._repr_html_()
    assert page.startswith("<table><caption>LeastSquares</caption><tr><th>w</th><td>[")
    assert page.endswith("</td></tr></table>")
    assert page.count("<tr>") == 5
    with pytest.raises(AttributeError):
        fit.w = np.zeros(3)
