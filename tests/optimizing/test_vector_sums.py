"""Sums and means of vectors of bounded norm: fastdp/optimizing/vector_sums.py, vector_sums.md.

The law of the noise and its scales, the privacy of a release on a coarse grid by exact laws, clips and grids, budgets,
and the errors before any of them is spent.
"""

from __future__ import annotations

import itertools
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
from fastdp import Budget, BudgetExceeded, DomainError, Randomness
from fastdp.kernels.clipping import LEAST_SQUARE, LEAST_SQUARE_32
from fastdp.kernels.vector_sums import sum_vectors
from fastdp.optimizing import vector_sums
from fastdp.optimizing.step_noise import limit_of
from fastdp.privacy import ZCDP, AllOf, ApproxDP, PureDP
from tests import oracles
from tests.kernels.test_gradients import instance, wild_rows
from tests.laws import assert_law, wrong_scales

Array = np.ndarray[Any, Any]
Options = dict[str, Any]

KINDS = ["gaussian", "laplace", "laplace-per-coordinate", "laplace-basic"]
PRICE: Options = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture
def _no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_sums, "integer_noise", lambda law, key, n: np.zeros(n, np.int64))


def some(n: int, d: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * rng.choice([0.0, 0.1, 1.0, 10.0], (n, 1)) / math.sqrt(d)


def shortened(X: Array, clip: float) -> Array:
    return X * np.minimum(1.0, clip / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300))


# --- the kernel


def summed(X: Array, unit: float, limit: float) -> tuple[Array, bool]:
    out, least = np.zeros(X.shape[1], np.int64), LEAST_SQUARE_32 if X.dtype == np.float32 else LEAST_SQUARE
    return out, sum_vectors(X.reshape(-1), least, unit, limit, out)


def test_sums_are_those_of_the_oracle() -> None:
    rng = np.random.default_rng(5)
    exact = total = 0
    for dtype in (np.float64, np.float32):
        for d, n in ((1, 31), (2, 64), (8, 33), (13, 100), (20, 97), (33, 50), (40, 32), (70, 5)):
            X = instance(rng, n, d, dtype)[0]
            unit, limit = 2.0**20, limit_of(2.0**20, d)
            found, wild = summed(X, unit, limit)
            low, high = oracles.optimizing.clipped_gradients(
                X, np.zeros(n), np.zeros(d), "LINEAR", unit=unit, limit=limit
            )
            assert not wild
            assert (low <= found).all()
            assert (found <= high).all()
            exact, total = exact + int((low == high).sum()), total + d
    assert exact > 0.9 * total


def test_no_vector_is_longer_than_k() -> None:
    """In exact integers, for 100,000 adversarial records, in groups of one that is repeated and one by one."""
    rng = np.random.default_rng(6)
    at_limit = 0
    for d, n in ((1, 20_000), (2, 20_000), (3, 20_000), (8, 20_000), (33, 12_000), (100, 8_000)):
        X = wild_rows(rng, n, d)
        for i in range(n):
            unit = float((1.0, 2.0**-60, 2.0**20, 2.0**200)[i % 4])
            size = float((2**30, 2**41, 64, 12345)[i // 4 % 4])
            found, wild = summed(X[i : i + 1], unit, limit_of(size, d))
            assert not wild
            length = sum(int(v) ** 2 for v in found.tolist())
            assert length <= size**2, (X[i], unit, size)
            at_limit += length >= 0.9 * size**2
    assert at_limit > 10_000, "the limit is reached, not only kept"


def test_sums_are_of_their_records_one_by_one() -> None:
    """What a vector adds is its own: neither its group nor what lies behind the last one decides about it."""
    rng = np.random.default_rng(7)
    for d in (1, 5, 8, 20, 40):
        X = wild_rows(rng, 150, d)
        limit = limit_of(2.0**30, d)
        among = np.full(X.size + 16, np.nan)
        among[: X.size] = X.reshape(-1)
        whole, wild = summed(among[: X.size].reshape(X.shape), 2.0**20, limit)
        assert not wild
        np.testing.assert_array_equal(whole, sum(summed(row[None], 2.0**20, limit)[0] for row in X))
    many = np.tile(rng.normal(size=(1, 3)), (9_001, 1))  # more than a float holds of the largest
    np.testing.assert_array_equal(
        summed(many, 2.0**39, limit_of(2.0**41, 3))[0], 9_001 * summed(many[:1], 2.0**39, limit_of(2.0**41, 3))[0]
    )


@pytest.mark.usefixtures("_no_noise")
def test_no_vector_is_refused_to_be_clipped_whatever_its_squares_add_up_to() -> None:
    """The squares of this one are finite if they are added up in one order, and infinite in another."""
    wild = [float.fromhex(x) for x in ("0x1.4aa74ad72491ep+510", "0x1.ccdc56316d063p+511", "0x1.2b74c4713717ep+510")]
    one, other, third = (x * x for x in wild)
    assert (one + third) + other < math.inf == (one + other) + third
    X = some(40, 8)
    X[3] = 0.0
    X[3, [0, 1, 4]] = wild
    alone, both = (fastdp.vector_sum(x, clip=1.0, outside="clip", **PRICE).value for x in (np.delete(X, 3, 0), X))
    assert np.allclose(both - alone, X[3] / 2.0**512, atol=1e-6)


@pytest.mark.parametrize("value", [2.0**511, 1.7 * 2.0**510, 2.0**511.9])
def test_vectors_below_the_largest_norm_add_the_same_bits_beside_any_other(value: float) -> None:
    """A second pass brings them nearer, by a power of two."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 9))
    X[:20] *= (value / np.linalg.norm(X[:20], axis=1))[:, None]
    points = vector_sums._vectors(X, "clip", "replace-one")
    first = points.vectors(2.0**10, 2.0**20)
    points._wild = True
    assert np.array_equal(points.vectors(2.0**10, 2.0**20), first)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 2.0**600])
def test_a_norm_that_is_not_finite_is_noticed_and_nothing_is_added(value: float) -> None:
    for n in (1, 31, 64, 100):
        for at in {0, n // 2, n - 1}:
            X = np.ones((n, 5))
            X[at, 3] = value
            found, wild = summed(X, 2.0**20, 2.0**20)
            assert wild
            assert not found.any()


# --- the law of the noise


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("noise", KINDS)
def test_the_noise_has_the_law_that_is_stated(noise: str, neighbors: str) -> None:
    """Integers of the grid, by their exact law; scales of 3/2 and 2/3 are refuted by the same draws."""
    found = fastdp.vector_sum(np.zeros((1, 20_000)), clip=1.0, noise=noise, resolution=2.0**-12, neighbors=neighbors,
                              rng=Randomness(seed=1), **PRICE)  # fmt: skip
    assert found.resolution == 2.0**-12
    draws = np.rint(found.value / found.resolution).astype(np.int64)
    np.testing.assert_array_equal(draws * found.resolution, found.value)
    make = oracles.noise.gaussian_law if noise == "gaussian" else oracles.noise.laplace_law
    scale = found.noise_scale / found.resolution
    assert_law(draws, make(scale), wrong_scales(make, scale))
    assert found.noise_scale == found.scales[noise]
    assert found.noise.startswith(noise[:7])


@pytest.mark.parametrize("noise", KINDS)
def test_a_mean_has_the_noise_of_a_sum_over_n(noise: str) -> None:
    X = some(40, 3000)
    common: Options = {"clip": 2.0, "noise": noise, **PRICE}
    whole, mean = (f(X, rng=Randomness(seed=2), **common) for f in (fastdp.vector_sum, fastdp.vector_mean))
    np.testing.assert_allclose(mean.value, whole.value / 40, rtol=1e-14)
    assert mean.noise_scale == pytest.approx(whole.noise_scale / 40, rel=1e-14)
    other = fastdp.vector_mean(X, records=30, neighbors="add-remove", rng=Randomness(seed=2), **common)
    assert other.noise_scale == pytest.approx(whole.noise_scale / 60, rel=1e-4), "half the sensitivity, over 30"
    off = (other.value - shortened(X, 2.0).sum(axis=0) / 30) / other.noise_scale
    assert np.std(off) == pytest.approx(1 if noise == "gaussian" else math.sqrt(2), rel=0.1)


def test_noise_is_drawn_anew_unless_a_seed_is_given() -> None:
    X = some(50, 3)
    first, second = (fastdp.vector_sum(X, clip=1.0, rng=Randomness(seed=8), **PRICE).value for _ in range(2))
    np.testing.assert_array_equal(first, second)
    rng = Randomness(seed=8)
    for more in ({}, {"rng": rng}):
        one, other = (fastdp.vector_sum(X, clip=1.0, **PRICE, **more).value for _ in range(2))
        assert (one != other).any()


def test_scales_at_epsilon_1_and_delta_1e6() -> None:
    for d, laplace in ((1, 1.0), (2, 1.414), (4, 2.0), (16, 3.837), (64, 4.373)):
        found = fastdp.vector_sum(np.zeros((3, d)), clip=0.5, **PRICE)
        assert found.scales == pytest.approx(fastdp.bounds.vector_sum(3, d, clip=0.5, **PRICE), rel=1e-12)
        assert found.scales["gaussian"] == pytest.approx(4.225, abs=5e-4)
        assert found.scales["laplace"] == pytest.approx(laplace, abs=6e-4)
        assert found.scales["laplace-basic"] == pytest.approx(d, rel=1e-9)
        assert found.scales["laplace-per-coordinate"] <= d * (1 + 1e-9)
        best = min(found.scales, key=lambda name: found.scales[name] * (1 if name == "gaussian" else math.sqrt(2)))
        assert found.noise_scale == found.scales[best]
        assert found.noise.startswith("laplace" if d <= 4 else "gaussian")
        remove = fastdp.vector_sum(np.zeros((3, d)), clip=1.0, neighbors="add-remove", **PRICE)
        assert remove.scales == pytest.approx(found.scales, rel=1e-6)
        pure = fastdp.vector_sum(np.zeros((3, d)), clip=0.5, epsilon=1.0)
        assert set(pure.scales) == set(KINDS[1:])
        assert pure.noise_scale == pytest.approx(math.sqrt(d), rel=1e-9)
    strong = fastdp.vector_sum(np.zeros((1, 400)), clip=0.5, **PRICE).scales["laplace-per-coordinate"]
    assert strong == pytest.approx(20 * found.scales["laplace"], rel=0.1), "sqrt(d) more than by the L2 norm"


# --- the privacy of a release on a coarse grid, by exact laws

CLIP = 1.4143  # a little more than sqrt(2): the norm of (1, 1)


def coordinate_losses(z: int, b: float) -> dict[int, float]:
    """The law of (|x - z| - |x|), b times the privacy loss, for discrete Laplace noise x of scale b."""
    q = math.exp(-1 / b)
    z = abs(z)
    law = {z: 1 / (1 + q)}
    for x in range(1, z):
        law[z - 2 * x] = law.get(z - 2 * x, 0.0) + (1 - q) / (1 + q) * q**x
    law[-z] = law.get(-z, 0.0) + q**z / (1 + q)
    return law


def delta_of_laplace(z: tuple[int, ...], b: float, epsilon: float) -> float:
    total = {0: 1.0}
    for shift in filter(None, z):
        law = coordinate_losses(shift, b)
        assert sum(law.values()) == pytest.approx(1, abs=1e-12)
        following: dict[int, float] = {}
        for (a, p), (c, r) in itertools.product(total.items(), law.items()):
            following[a + c] = following.get(a + c, 0.0) + p * r
        total = following
    return sum(p * -math.expm1(epsilon - k / b) for k, p in total.items() if k / b > epsilon * (1 + 1e-12))


def delta_of_gaussian(z: tuple[int, ...], sigma: float, epsilon: float) -> float:
    """The privacy loss is (|z|^2 - 2 <x, z>) / (2 sigma^2)."""
    window = math.ceil(12 * sigma) + 2
    x = np.arange(-window, window + 1)
    pmf = np.exp(-(x**2) / (2 * sigma**2))
    pmf /= pmf.sum()
    law = np.ones(1)
    for shift in filter(None, z):
        spread = np.zeros(2 * window * abs(shift) + 1)
        spread[:: abs(shift)] = pmf
        law = np.convolve(law, spread)
    inner = np.arange(len(law)) - len(law) // 2
    loss = (sum(v * v for v in z) - 2 * inner) / (2 * sigma**2)
    over = loss > epsilon
    return float((law[over] * -np.expm1(epsilon - loss[over])).sum())


def differences(d: int, neighbors: str) -> set[tuple[int, ...]]:
    """All by which a neighbour may move the sum, up to symmetries."""
    within = [q for q in itertools.product((-1, 0, 1), repeat=d) if sum(v * v for v in q) <= Fraction(CLIP) ** 2]
    others = within if neighbors == "replace-one" else [(0,) * d]
    return {tuple(sorted(abs(a - c) for a, c in zip(p, q, strict=True))) for p in within for q in others}


@pytest.mark.usefixtures("_no_noise")
def test_sums_on_a_coarse_grid_are_short_integer_vectors() -> None:
    """What the enumeration below enumerates: all integer vectors of norm at most the clip, and no others, come out."""
    rng = np.random.default_rng(3)
    for d in (1, 2, 3):
        seen = set()
        for x in [*rng.normal(size=(300, d)) * 3, *(1e6 * rng.integers(-1, 2, (300, d))), np.full(d, 1.0)]:
            q = fastdp.vector_sum(x[None, :], clip=CLIP, resolution=1.0, **PRICE).value
            np.testing.assert_array_equal(q, np.rint(q))
            seen.add(tuple(np.abs(q).astype(int).tolist()))
        assert max(sum(v * v for v in q) for q in seen) == min(d, 2)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("noise", KINDS)
def test_privacy_on_a_coarse_grid_by_exact_laws(noise: str, neighbors: str) -> None:
    tightest = 0.0
    for d, (epsilon, delta) in itertools.product(
        (1, 2, 3, 5), ((1.0, 1e-6), (0.3, 1e-4), (4.0, 1e-3), (2.0, 0.1), (1.0, 0.0))
    ):
        if noise == "gaussian" and not delta:
            continue
        found = fastdp.vector_sum(np.zeros((1, d)), clip=CLIP, resolution=1.0, noise=noise, neighbors=neighbors,
                                  epsilon=epsilon, delta=delta)  # fmt: skip
        assert found.resolution == 1.0
        spent = delta_of_gaussian if noise == "gaussian" else delta_of_laplace
        worst = max(spent(z, found.noise_scale, epsilon) for z in differences(d, neighbors) if any(z))
        assert worst <= delta * (1 + 1e-9), (d, epsilon, delta)
        tightest = max(tightest, worst / delta if delta else 0.0)
        if neighbors == "replace-one" and noise in ("gaussian", "laplace") and d > 1:
            mutant = max(spent(z, found.noise_scale / 2, epsilon) for z in differences(d, neighbors) if any(z))
            assert mutant > delta, "a scale for half the sensitivity is refuted"
    assert tightest > 0.9 or noise != "gaussian", "the bound is nearly used up"


# --- clips and grids


@pytest.mark.usefixtures("_no_noise")
@pytest.mark.parametrize("clip", [0.01, 0.7, 3.0, 1e6])
def test_vectors_are_shortened_to_the_clip(clip: float) -> None:
    for d in (1, 2, 7, 8, 9, 33):
        X = some(120, d)
        right = shortened(X, clip)
        found = fastdp.vector_sum(X, clip=clip, **PRICE)
        assert found.clip == clip
        np.testing.assert_allclose(found.value, right.sum(axis=0), rtol=0, atol=130 * found.resolution)
        mean = fastdp.vector_mean(X, clip=clip, **PRICE)
        np.testing.assert_allclose(mean.value, right.mean(axis=0), rtol=0, atol=2 * found.resolution)
        one = fastdp.vector_sum(X[:1] + 9.0, clip=clip, **PRICE)
        off = np.abs(shortened(X[:1] + 9.0, clip)[0]) - np.abs(one.value)
        assert (off > -1e-12 * clip).all(), "rounded toward zero"
        assert (off < 1.001 * found.resolution).all()
        assert sum(Fraction(v) ** 2 for v in one.value.tolist()) <= Fraction(clip) ** 2


@pytest.mark.usefixtures("_no_noise")
def test_the_grid_by_default_and_as_given() -> None:
    X = np.array([[0.3, -0.3], [0.8, 0.1]])
    assert 2.0**-31 < fastdp.vector_sum(X, clip=1.0, **PRICE).resolution / 1.0 <= 2.0**-29
    found = fastdp.vector_sum(X, clip=1.0, resolution=0.25, **PRICE)
    np.testing.assert_array_equal(found.value, [1.0, -0.25])
    assert found.resolution == 0.25
    np.testing.assert_array_equal(fastdp.vector_mean(X, clip=1.0, resolution=0.25, **PRICE).value, [0.5, -0.125])
    assert math.log2(fastdp.vector_sum(X, clip=0.3, **PRICE).resolution).is_integer()


@pytest.mark.parametrize("d", [1, 8, 13])
def test_the_same_bits_from_every_container(d: int, tmp_path: Path) -> None:
    X = some(301, d).astype(np.float32)
    wide = X.astype(np.float64)
    frame = pd.DataFrame(wide, columns=[f"c{j}" for j in range(d)])
    path = tmp_path / "records.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, row_group_size=100)
    for f in (fastdp.vector_sum, fastdp.vector_mean):
        found = {
            f(other, clip=1.0, rng=Randomness(seed=4), **PRICE).value.tobytes()
            for other in (X, wide, np.asfortranarray(X), np.asfortranarray(wide), frame, path, str(path),
                          wide[np.random.default_rng(0).permutation(301)])
        }  # fmt: skip
        assert len(found) == 1


def test_the_same_bits_for_every_number_of_threads() -> None:
    X, before = some(20_000, 11), fastdp.get_num_threads()
    found = set()
    try:
        for threads in (1, 2, 3):
            fastdp.set_num_threads(threads)
            found.add(fastdp.vector_sum(X, clip=1.0, rng=Randomness(seed=4), **PRICE).value.tobytes())
    finally:
        fastdp.set_num_threads(before)
    assert len(found) == 1


def test_under_add_remove_nothing_depends_on_the_number_of_records() -> None:
    X = some(5000, 3)

    def public(found: Any) -> tuple[Any, ...]:
        return found.resolution, found.noise, found.noise_scale, found.scales, found.clip, str(found.guarantee)

    for noise in ("auto", *KINDS):
        common: Options = {"clip": 1.0, "noise": noise, "neighbors": "add-remove", **PRICE}
        sums = [fastdp.vector_sum(X[:n], **common) for n in (0, 1, 4999, 5000)]
        means = [fastdp.vector_mean(X[:n], records=4000, **common) for n in (0, 1, 4999, 5000)]
        for found in (sums, means):
            assert all(public(each) == public(found[0]) for each in found)
    assert sums[0].guarantee.neighbors == "add-remove"
    none = fastdp.vector_sum(np.zeros((0, 20_000)), clip=1.0, neighbors="add-remove", noise="gaussian",
                             rng=Randomness(seed=5), **PRICE)  # fmt: skip
    assert np.std(none.value) == pytest.approx(4.225, rel=0.05)


def test_a_grid_that_only_a_public_number_would_allow_is_refused() -> None:
    for n in (0, 1, 9):
        with pytest.raises(ValueError, match=r"^resolution=9.09\S+: must be larger: sums of 2147483648 records"):
            fastdp.vector_sum(np.ones((n, 1)), clip=1.0, resolution=2.0**-40, neighbors="add-remove", epsilon=1.0)


# --- guarantees and budgets


def test_guarantees() -> None:
    X = some(100, 3)
    assert fastdp.vector_sum(X, clip=1.0, epsilon=0.5).guarantee == PureDP(0.5)
    assert fastdp.vector_sum(X, clip=1.0, **PRICE).guarantee == PureDP(1.0), "pure where that takes the least noise"
    both = fastdp.vector_mean(X, clip=1.0, noise="gaussian", **PRICE).guarantee
    assert isinstance(both, AllOf)
    assert both.parts[0] == ApproxDP(1.0, 1e-6)
    assert isinstance(both.parts[1], ZCDP)
    assert both.parts[1].rho == pytest.approx(0.5 / 4.225**2, rel=1e-3)


@pytest.mark.parametrize("name", ["vector_sum", "vector_mean"])
def test_a_release_is_one_charge(name: str) -> None:
    X, budget = some(60, 3), Budget(epsilon=2.0, delta=1e-5)
    found = getattr(fastdp, name)(X, clip=1.5, epsilon=0.5, delta=1e-6, budget=budget)
    (row,) = budget.releases
    assert row.mechanism == name
    assert dict(row.parameters) == {"epsilon": 0.5, "delta": 1e-6, "clip": 1.5}
    assert row.guarantee == found.guarantee
    with budget:
        getattr(fastdp, name)(X, clip=1.5, epsilon=0.5)
    assert len(budget.releases) == 2


def test_a_release_that_does_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    monkeypatch.setattr(vector_sums, "integer_noise", lambda *args: drawn.append(1))
    budget = Budget(epsilon=0.4)
    with pytest.raises(BudgetExceeded):
        fastdp.vector_sum(some(9, 2), clip=1.0, epsilon=0.5, budget=budget)
    with pytest.raises(ValueError, match="neighbors"):
        fastdp.vector_sum(some(9, 2), clip=1.0, epsilon=0.3, budget=budget, neighbors="add-remove")
    assert not drawn
    assert not budget.releases


# --- bad input


def refused(message: str, error: type[Exception] = ValueError, mean: bool = False, **more: Any) -> None:
    """The call fails with this message, and nothing is spent."""
    budget = Budget(epsilon=1000.0, delta=0.5)
    for f in (fastdp.vector_mean,) if mean else (fastdp.vector_mean, fastdp.vector_sum):
        with pytest.raises(error, match=message):
            f(budget=budget, **{"X": some(60, 3), "clip": 1.0, **PRICE} | more)
    assert not budget.releases
    assert budget.left == PureDP(1000.0)


def test_bad_input_is_refused() -> None:
    for value in (math.nan, math.inf, -math.inf, 1e300):
        X = some(60, 3)
        X[31, 1] = value
        refused(r"^X: must be finite, with norms below 2\^511; there are records that are not$", DomainError, X=X)
    refused(r"^X: n=0 records: must be at least one$", X=np.ones((0, 3)))
    refused(r"^X: must have at least one column$", X=np.ones((3, 0)))
    refused(r"^X: shape \(3,\): must have two dimensions", X=np.ones(3))
    refused(r"dtype .*: must be numbers", X=np.array([["a"]]))
    for clip in (0, -1, math.nan, math.inf, "1", None):
        refused("clip", clip=clip)
    for clip in (5e-324, 1e-300, 1e250):
        refused(r"^clip=.*: must be between 2\^-400 and 2\^400$", clip=clip)
    for noise in ("normal", None, 1, "Laplace"):
        refused(r"^noise=.*: must be ", noise=noise)
    refused(r"^noise='gaussian': needs delta > 0", noise="gaussian", delta=0.0)
    for resolution in (0.3, 3, 0, -1, math.inf):
        refused(r"^resolution=", resolution=resolution)
    refused(r"^resolution=.*: must be larger", resolution=2.0**-60)
    for epsilon in (0, -1, math.nan, math.inf, "1", 1e300, 1e-300):
        refused("epsilon", epsilon=epsilon)
    for delta in (-1e-9, 1.0, 2, math.nan):
        refused("delta", delta=delta)
    refused(r"^neighbors=", neighbors="both", records=3, mean=True)
    refused(r"^records=None: must be given with neighbors='add-remove'$", neighbors="add-remove", mean=True)
    refused(r"^records=60: must be None with neighbors='replace-one'$", records=60, mean=True)
    for records in (0, -1, 2.5, "3", True):
        refused(r"^records=", records=records, neighbors="add-remove", mean=True)


# --- what is shown


def test_what_is_shown() -> None:
    found = fastdp.vector_sum(some(100, 3), clip=0.5, noise="laplace", **PRICE)
    shown = repr(found)
    for text in ("VectorRelease\n  value      [", "noise      laplace (pure), standard deviation 2.449",
                 "kinds      gaussian 4.225, laplace 2.449, laplace-per-coordinate 4.243, laplace-basic 4.243",
                 "clip       0.5", "guarantee  1-DP"):  # fmt: skip
        assert text in shown
    page = found._repr_html_()
    assert page.startswith("<table><caption>VectorRelease</caption><tr><th>value</th><td>[")
    assert page.endswith("</td></tr></table>")
    assert page.count("<tr>") == 5
    assert len(repr(fastdp.vector_sum(some(9, 500), clip=0.5, **PRICE))) < 400
    with pytest.raises(AttributeError):
        found.value = np.zeros(3)


def test_a_release_is_an_array() -> None:
    found = fastdp.vector_mean(some(100, 3), clip=0.5, **PRICE)
    np.testing.assert_array_equal(np.asarray(found), found.value)
    assert np.asarray(found) is found.value
    copied = np.array(found)
    copied[:] = 7
    assert (found.value != 7).all()
    assert np.asarray(found, np.float32).dtype == np.float32
    assert np.linalg.norm(found) == np.linalg.norm(found.value)
