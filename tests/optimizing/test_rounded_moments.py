"""Second moments of points that are rounded first: kernels/rounded_moments.py, fastdp/optimizing/rounded_moments.py.

The kernel against its oracle; the same bits; lemma 3 of moments.md in exact integers, with mutants that are refuted;
that rounding is right in the mean and within lemma 4; when it is taken; and errors before anything is spent.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Budget, DomainError, Randomness, losses, sets
from fastdp.kernels import clipping
from fastdp.kernels import rounded_moments as kernels
from fastdp.optimizing import rounded_moments as public
from fastdp.optimizing.moments import MomentsPlan
from fastdp.optimizing.points import Points
from fastdp.optimizing.problem import Problem
from fastdp.optimizing.rounded_moments import RoundedMoments, times_root_two
from fastdp.optimizing.step_noise import NoiseParameters
from fastdp.records import arrays
from tests import oracles

Array = np.ndarray[Any, Any]

ERROR = losses.SquaredError(x_norm=1, y_bound=1)
KEY = np.arange(7, 15, dtype=np.uint32)
NEIGHBORS: list[Any] = ["add-remove", "replace-one"]


def kernel_sum(X: Array, y: Array, size: int, first: int = 0, x_norm: float = 1.0, key: Array = KEY) -> Array:
    d = X.shape[1]
    least = clipping.LEAST_SQUARE_32 if X.dtype == np.float32 else clipping.LEAST_SQUARE
    out, numbers = np.zeros((d + 2, d), np.int64), np.array([x_norm, 1.0, least, size])
    kernels.add_rounded_moments(np.ascontiguousarray(X).reshape(-1), y, numbers, key, first, out)
    return out


def size_of(d: int) -> int:
    found = RoundedMoments.of(10**4, d, "add-remove")
    assert found is not None
    return found.size


def instance(seed: int, n: int, d: int, dtype: Any = np.float64) -> tuple[Array, Array]:
    """Records, some beyond the unit ball, some of zeros; labels, some beyond 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * rng.choice([0.0, 0.01, 0.3, 1.0, 30.0], (n, 1)) / math.sqrt(d)
    X[rng.random((n, d)) < 0.1] = 0.0
    return X.astype(dtype), rng.normal(size=n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_are_those_of_the_oracle(dtype: Any) -> None:
    shapes = [(3, d) for d in (1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33, 64)]
    for n, d in [*shapes, (511, 3), (512, 2), (513, 5), (514, 7), (1030, 1), (1100, 4)]:
        X, y = instance(n * d, n, d, dtype)
        for first, x_norm, size in ((0, 1.0, size_of(d)), (1025, 0.7, 100)):
            right = oracles.points.rounded_moments(X, y, x_norm, size, KEY.tolist(), first)
            np.testing.assert_array_equal(kernel_sum(X, y, size, first, x_norm), right, err_msg=f"{n} x {d}")


def test_the_kernel_adds_and_returns_the_largest_norm() -> None:
    X, y = instance(3, 700, 4)
    numbers, out = np.array([1.0, 1.0, 0.0, 99.0]), np.full((6, 4), 7, np.int64)
    for _ in range(2):
        largest = kernels.add_rounded_moments(X.reshape(-1), y, numbers, KEY, 0, out)
    once = kernel_sum(X, y, 99)
    assert largest == pytest.approx(np.linalg.norm(X, axis=1).max(), rel=1e-14)
    assert (out[np.tril_indices(4)] == 7).all()
    np.testing.assert_array_equal(out[:4][np.triu_indices(4, 1)], 7 + 2 * once[:4][np.triu_indices(4, 1)])
    np.testing.assert_array_equal(out[4:], 7 + 2 * once[4:])
    for value in (math.nan, -math.nan, math.inf, 1e300):
        for i in (0, 5, 699):
            spoiled = X.copy()
            spoiled[i, 1] = value
            assert not kernels.add_rounded_moments(spoiled.reshape(-1), y, numbers, KEY, 0, out) < math.inf


# --- the same bits


def sums(X: Any, y: Any, outside: str = "clip") -> bytes:
    points = Points(X, y, ERROR, outside)
    return points.rounded_moments(1.0, 1.0, 8000, KEY).tobytes()


@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_bits_for_every_chunking_and_number_of_threads(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for n, d in ((4097, 9), (8195, 3)):
        X, y = instance(6, n, d, dtype)
        right = sums(X, y)
        assert sums(np.asfortranarray(X), y) == right
        assert sums(X.astype(np.float64), y) == right
        for block, values in ((1024, 2**21), (2**16, 1), (2048, 2**14)):
            with monkeypatch.context() as patch:
                patch.setattr(arrays, "BLOCK_RECORDS", block)
                patch.setattr(arrays, "_BLOCK_VALUES", values)
                for threads in (1, 3):
                    fastdp.set_num_threads(threads)
                    assert sums(X, y) == right
    parts = sum(kernel_sum(X[a:b], y[a:b], 8000, a) for a, b in ((0, 1000), (1000, 1001), (1001, n)))
    np.testing.assert_array_equal(parts, kernel_sum(X, y, 8000))


# --- lemma 3


def adversarial(rng: np.random.Generator, n: int, d: int, size: int) -> tuple[Array, Array]:
    """As long as may be, or beyond, such that nearly all coordinates are a little above an integer: rounding up then
    moves them by nearly one, away from 0 where they are positive."""
    X = np.abs(rng.normal(size=(n, d)))
    X[: n // 4] = 1.0
    X *= size / np.linalg.norm(X, axis=1, keepdims=True)
    X[n // 4 : n // 2] = np.floor(X[n // 4 : n // 2]) + 0.01
    X *= rng.choice([1.0, 1e9, 1e-3], (n, 1), p=[0.8, 0.1, 0.1]) * rng.choice([1, -1], (n, d), p=[0.9, 0.1])
    return X / size, np.where(rng.random(n) < 0.5, 5.0, rng.uniform(-1, 1, n))


def rounded_by_numpy(X: Array, y: Array, size: int, words: Array) -> Array:
    """All records, their labels in the last column, in float64: off by nothing that matters here."""
    scaled = X * (size / np.maximum(1.0, np.linalg.norm(X, axis=1)))[:, None]
    scaled = np.column_stack([scaled, np.clip(y, -1, 1) * size])
    mixed = words[:, None] ^ (0x9E37 * np.arange(X.shape[1] + 1) & 0xFFFF)
    return (np.rint(scaled * 2**16).astype(np.int64) + mixed) >> 16


def test_no_rounded_record_is_too_long() -> None:
    """100,000 of them; without the room for rounding, some would be."""
    rng, mutants = np.random.default_rng(1), 0
    for d, n in ((1, 20_000), (2, 20_000), (4, 20_000), (20, 20_000), (60, 10_000), (200, 10_000)):
        size = size_of(d)
        X, y = adversarial(rng, n, d, size)
        words = rng.integers(0, 2**16, n)
        for taken, bad in ((size, False), (public.LONGEST, True)):
            q = rounded_by_numpy(X, y, taken, words)
            longest = (q[:, :d] ** 2).sum(axis=1).max()
            assert bad or longest <= public.LONGEST**2
            assert bad or np.abs(q[:, d]).max() <= public.LONGEST
            mutants += bad and longest > public.LONGEST**2
        one = kernel_sum(X[:1], y[:1], size)
        assert one[d + 1].sum() <= public.LONGEST**2
    assert mutants >= 5, "records are found that are as long as may be"
    assert public.LONGEST == kernels.LONGEST
    lanes = kernels.RUN // 16  # products that add up in a lane of int32 before it is widened
    assert lanes * public.LONGEST**2 < 2**31 < lanes * (public.LONGEST + 2) ** 2


def released(sums: Array) -> list[int]:
    d = sums.shape[1]
    return [*times_root_two(sums[:d])[np.triu_indices(d, 1)].tolist(), *sums[d:].ravel().tolist()]


def test_neighbours_move_the_moments_by_no_more_than_lemma_3_says() -> None:
    """Sums beside those of other records, in exact integers; sqrt(4) in place of sqrt(4.5) is refuted, and 1.4 in place
    of sqrt(2)."""
    rng, mutants = np.random.default_rng(2), dict.fromkeys(NEIGHBORS, 0)
    for d, pairs in ((1, 100), (2, 400), (3, 400), (8, 200), (33, 50)):
        size, limits = size_of(d), {}
        for neighbors in NEIGHBORS:
            plan = RoundedMoments.of(10**4, d, neighbors)
            assert plan is not None
            limits[neighbors] = plan.sensitivity
        for _ in range(pairs):
            X, y = adversarial(rng, 2, d, size)
            if d > 1 and rng.random() < 0.7:  # at 60 degrees, with opposed labels
                first = X[0] / np.linalg.norm(X[0])
                across = rng.normal(size=d)
                across -= (across @ first) * first
                X[0], X[1] = first, 0.5 * first + math.sqrt(0.75) * across / np.linalg.norm(across)
                y = np.array([1.0, -1.0])
            base = rng.integers(-(2**55), 2**55, (d + 2, d))
            one, other = (base + kernel_sum(X[i : i + 1], y[i : i + 1], size) for i in (0, 1))
            for neighbors, before in (("add-remove", base), ("replace-one", other)):
                moved = sum((a - b) ** 2 for a, b in zip(released(one), released(before), strict=True))
                assert moved <= limits[neighbors] ** 2, (d, neighbors)
                mutants[neighbors] += moved > ((1.4 if neighbors == "add-remove" else 2.0) * size**2 + d) ** 2
    assert min(mutants.values()) > 100, mutants


def test_sensitivities_are_those_of_lemma_3_rounded_up() -> None:
    for d in (1, 3, 20, 4096):
        for neighbors, square in (("add-remove", 2.0), ("replace-one", 4.5)):
            found = RoundedMoments.of(10**5, d, neighbors)  # type: ignore[arg-type]
            assert found is not None
            right = math.sqrt(square) * 8191**2 + math.sqrt(d * (d - 1) / 2)
            assert right <= found.sensitivity <= right * (1 + 1e-14)
            assert found.size + math.sqrt(d) + 1 <= 8191 < found.size + math.sqrt(d) + 3


def test_times_root_two_in_integers() -> None:
    rng = np.random.default_rng(3)
    some = np.concatenate([rng.integers(-(2**61), 2**61, 500), rng.integers(-(2**20), 2**20, 500), [0, 1, -1]])
    root = math.isqrt(2 * 2**60)
    for value, found in zip(some.tolist(), times_root_two(some).tolist(), strict=True):
        assert found == value * root >> 30


# --- lemma 4


def test_rounding_is_right_in_the_mean() -> None:
    """Over 300 keys, to five deviations; rounding to the nearest is refuted."""
    rng, d, n, size = np.random.default_rng(4), 3, 40, 50
    X = np.tile(rng.normal(size=(1, d)), (n, 1)) / 3
    y = np.full(n, 0.3)
    keys = rng.integers(0, 2**32, (300, 8), dtype=np.uint32)
    found = np.array([kernel_sum(X, y, size, key=key) for key in keys]) / size**2
    exact = np.vstack([np.triu(X.T @ X, 1), X.T @ y, (X**2).sum(axis=0)])
    spread = found.std(axis=0) / math.sqrt(len(keys)) + 1e-9
    bias = n * 0.25 / size**2  # of products of roundings: lemma 4
    assert (np.abs(found.mean(axis=0) - exact) <= 5 * spread + bias).all()
    nearest = np.rint(np.column_stack([X, y])[0] * size) / size
    off = n * np.abs(nearest[:d] * nearest[d] - X[0] * 0.3)
    assert (off > 5 * spread[d] + bias).any()


def test_the_error_is_within_lemma_4() -> None:
    for n, d in ((5000, 3), (20_000, 20), (5000, 70)):
        rng = np.random.default_rng(n + d)
        X = rng.normal(size=(n, d))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = rng.choice([-1.0, 1.0], n)
        plan = RoundedMoments.of(n, d, "replace-one")
        assert plan is not None
        found = Points(X, y, ERROR, "raise").rounded_moments(1.0, 1.0, plan.size, KEY) / plan.unit / n
        off = np.triu(found[:d] / math.sqrt(2), 1) - np.triu(X.T @ X / n, 1)
        matrix = off + off.T + np.diag(found[d + 1] - (X**2).sum(axis=0) / n)
        assert 0 < np.linalg.norm(matrix, 2) <= plan.error
        assert 0 < np.linalg.norm(found[d] - X.T @ y / n) <= plan.error
        assert np.linalg.norm(matrix) > plan.error / 20, "and the bound is no idle one"


# --- when it is taken


def plan_of(n: int, d: int, epsilon: float = 1.0, radius: float = 1.0, **more: Any) -> MomentsPlan:
    asked = NoiseParameters.of(epsilon, more.pop("delta", 1e-6), "auto", more.pop("neighbors", "add-remove"))
    return MomentsPlan.of(Problem.of(ERROR, sets.Ball(radius), d), n, d, asked)


@pytest.mark.parametrize("radius", [1.0, 10.0])
def test_which_sums_are_taken(radius: float) -> None:
    """Rounded points where their error is a tenth of the noise's at most, by public numbers alone."""
    for n, d, epsilon, right in (
        (10**6, 20, 1.0, True), (10**5, 200, 1.0, True), (4095, 20, 1.0, False), (4096, 20, 1.0, True),
        (10**6, 20, 100.0, False), (10**9, 20, 1.0, False), (10**6, 20, 1e-5, False), (10**7, 20, 0.5, True),
    ):  # fmt: skip
        plan = plan_of(n, d, epsilon, radius)
        assert (plan.rounded is not None) == right, (n, d, epsilon)
        assert (plan.correction is not None) == (radius == 10.0)
        if plan.rounded is not None:
            assert (plan.grid.unit, plan.grid.sensitivity) == (plan.rounded.unit, plan.rounded.sensitivity)
            noise = plan.grid.deviation / n
            assert plan.rounded.error <= 0.1 * noise * (math.sqrt(2 * d) + math.sqrt(d * (d + 1) / 2))
            exact = math.sqrt(2) * plan.grid.noise.value / plan.grid.sensitivity
            assert 1 <= plan.deviation * n / exact <= 1.01, "a hundredth more noise at most"


def test_a_fit_on_rounded_points() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6000, 4))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = np.clip(X @ [0.6, -0.3, 0.2, 0.1] + 0.1 * rng.normal(size=6000), -1, 1)
    for radius in (1.0, 10.0):
        for neighbors in NEIGHBORS:
            common: dict[str, Any] = {"loss": ERROR, "over": sets.Ball(radius), "epsilon": 1.0, "delta": 1e-6}
            common |= {"neighbors": neighbors, "records": 6000 if neighbors == "add-remove" else None}
            budget = Budget(epsilon=1.0, delta=1e-6, neighbors=neighbors)
            fit = fastdp.noisy_least_squares(X, y, rng=Randomness(seed=1), budget=budget, **common)
            assert plan_of(6000, 4, radius=radius, neighbors=neighbors).rounded is not None
            assert len(budget.releases) == 1
            again = fastdp.noisy_least_squares(X, y, rng=Randomness(seed=1), **common)
            assert fit.gram.tobytes() == again.gram.tobytes()
            np.testing.assert_allclose(fit.gram, X.T @ X / 6000, rtol=0, atol=6 * fit.noise_scale)
            np.testing.assert_allclose(fit.cross, X.T @ y / 6000, rtol=0, atol=6 * fit.noise_scale)
            np.testing.assert_allclose(fit.w, [0.6, -0.3, 0.2, 0.1], rtol=0, atol=0.1)


def test_records_that_are_refused_before_anything_is_spent() -> None:
    """They are found in the read that sums, after a key was taken for rounding."""
    X, y = instance(7, 6000, 3)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = np.clip(y, -1, 1)
    common: dict[str, Any] = {"loss": ERROR, "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6}
    wild, far, nan, label = X.copy(), X.copy(), X.copy(), y.copy()
    wild[4321], far[17], nan[5999, 2], label[3000] = 1e300, 2.0, math.nan, 1.5
    for points, labels, message in (
        (wild, y, r"^X: must be finite, with norms below 2\^511"), (nan, y, "^X: must be finite"),
        (far, y, "^X: norms must be at most x_norm=1"), (X, label, "^y: must be at most y_bound=1"),
    ):  # fmt: skip
        budget = Budget(epsilon=1.0, delta=1e-6)
        with pytest.raises(DomainError, match=message):
            fastdp.noisy_least_squares(points, labels, budget=budget, **common)
        assert not budget.releases
        fastdp.noisy_least_squares(points, labels, budget=budget, outside="clip", **common)
        assert len(budget.releases) == 1
    meant = wild.copy()
    meant[4321] = 1 / math.sqrt(3)
    assert sums(wild, y) == sums(meant, y)
