"""Points as integers: kernels/points.py, kernels/pair_lanes.py, fastdp/optimizing/grid_points.py.

Against the oracle, in exact integers where privacy rests on them (points.md, lemma 1), and bit by bit where two ways
must agree: one compiled loop or step by step, chunks, threads, containers, other CPUs.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.kernels import points as kernels
from fastdp.kernels.rounded_points import round_points
from fastdp.optimizing import grid_points
from fastdp.optimizing.grid_points import GridPoints
from fastdp.optimizing.losses import Loss
from fastdp.optimizing.points import Points
from fastdp.optimizing.step_noise import NoiseParameters, low_bits, point_grid
from fastdp.records import arrays, rows
from tests import oracles
from tests.kernels.test_gradients import instance, wild_numbers, wild_rows

Array = np.ndarray[Any, Any]

KEY = np.arange(1, 9, dtype=np.uint32)
LONGEST = 2**25 + 2**16
UNIT = 2.0**25
LOSSES: dict[str, Loss] = {
    "SQUARED": losses.SquaredError(),
    "LOGISTIC": losses.Logistic(),
    "HINGE": losses.Hinge(),
    "HUBER": losses.Huber(threshold=0.7),
}


def rounded(X: Array, first: int = 0, most: int = LONGEST, bound: float = math.inf) -> tuple[Array, Array]:
    """Tiles and marks of some records."""
    n, d = X.shape
    records = -(-n // kernels.TILE) * kernels.TILE
    out, marks = np.zeros(records * (d + d % 2), np.int16), np.zeros((2, records), np.int16)
    largest: float = round_points(X.reshape(-1), d, bound, 2.0**-1000, most, KEY, first, out, marks)
    with np.errstate(over="ignore", invalid="ignore"):
        norms = np.sqrt((X.astype(np.float64) ** 2).sum(axis=1) + 2.0**-1000)
    np.testing.assert_allclose(largest, norms.max(initial=2.0**-500), rtol=1e-14)
    return out, marks


def coordinates(tiles: Array, n: int, d: int) -> Array:
    """The integers of tiles, a record a row."""
    pairs = (d + 1) // 2
    by_record = tiles.reshape(-1, pairs, kernels.TILE, 2).transpose(0, 2, 1, 3).reshape(-1, 2 * pairs)
    assert not by_record[n:].any(), "what fills the last tile"
    assert not by_record[:, d:].any(), "and an odd number of columns"
    return by_record[:n, :d].astype(np.int64)


def summed(
    tiles: Array, marks: Array, labels: Array, w: Array, kind: str, unit: float = UNIT, stream: int = 1, first: int = 0
) -> Array:
    loss, out = LOSSES[kind], np.zeros(len(w), np.int64)
    rule = np.array([loss.number, loss.parameter, unit])
    kernels.sum_points(tiles, labels, marks, w, rule, loss.address, KEY, stream, first, out)
    return out


def labels_for(kind: str, y: Array) -> Array:
    return np.where(y > 0, 1.0, -1.0) if kind in ("LOGISTIC", "HINGE") else y


# --- against the oracle


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_points_are_those_of_the_oracle(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    for d, n, first in ((1, 40, 0), (2, 130, 7), (5, 20, 511), (17, 30, 2**33 + 500), (64, 9, 3)):
        X = instance(rng, n, d, dtype)[0]
        tiles, marks = rounded(X, first)
        found = coordinates(tiles, n, d)
        for i, x in enumerate(X.astype(np.float64).tolist()):
            right = oracles.points.rounded_point(x, oracles.points.word(KEY.tolist(), 0, first + i))
            assert found[i].tolist() == right.whole
            assert marks[1, i] == min(LONGEST // right.norm, 32767) if right.norm else marks[1, i] == 0
            assert not any(x) or marks[0, i] == right.exponent


def test_coordinates_half_way_between_two_are_those_of_the_oracle() -> None:
    """To 2^-16 of a unit, half to even of the sum with the word."""
    X = np.random.default_rng(4).integers(-(2**31), 2**31, (64, 3)) * 2.0**-32
    X[:, 0] = 0.75  # which keeps the exponent: units of 2^-15, and halves of a 2^-16th of them are 2^-32
    found = coordinates(rounded(X)[0], 64, 3)
    for i, x in enumerate(X.tolist()):
        assert found[i].tolist() == oracles.points.rounded_point(x, oracles.points.word(KEY.tolist(), 0, i)).whole


@pytest.mark.parametrize("at", [0, 31, 32, 40])
@pytest.mark.parametrize("value", [math.nan, math.inf, 2.0**512])
def test_a_norm_that_is_not_finite_is_told(at: int, value: float) -> None:
    X, out, marks = np.full((41, 3), 2.0), np.zeros(128 * 4, np.int16), np.zeros((2, 128), np.int16)
    X[at, 1] = value
    assert not round_points(X.reshape(-1), 3, math.inf, 2.0**-1000, LONGEST, KEY, 0, out, marks) < math.inf


def test_limits_hold_whatever_the_coordinates_became() -> None:
    """A norm that is far too small, as where another thread changes a record: coordinates are then any 16 bits."""
    rng, refused = np.random.default_rng(5), 0
    for d in (1, 2, 3, 17, 64):
        X = rng.choice([-1.0, 1.0], (100, d)) * rng.uniform(1, 1.01, (100, d))
        out, marks = np.zeros(128 * (d + d % 2), np.int16), np.zeros((2, 128), np.int16)
        round_points(X.reshape(-1), d, math.inf, 0.001 - d, LONGEST, KEY, 0, out, marks)
        for whole, limit in zip(coordinates(out, 100, d).tolist(), marks[1].tolist(), strict=False):
            square = sum(v * v for v in whole)
            assert limit**2 * square <= LONGEST**2
            refused += square >= 2**31 and limit == 0
    assert refused == 100


def test_points_do_not_depend_on_what_lies_behind_them() -> None:
    """The memory behind the last one is somebody else's, NaN say, which times 0 is not 0."""
    rng = np.random.default_rng(3)
    for d in (1, 2, 3, 5, 6, 9):
        for n in (1, 15, 16, 17, 18, 32, 130):
            alone = rng.normal(size=(n, d))
            among = np.full(n * d + 16, np.nan)
            among[: n * d] = alone.reshape(-1)
            for one, other in zip(rounded(alone, 5), rounded(among[: n * d].reshape(n, d), 5), strict=True):
                assert (one == other).all()


@pytest.mark.parametrize("kind", LOSSES)
def test_sums_are_those_of_the_oracle(kind: str) -> None:
    rng = np.random.default_rng(2)
    exact = total = 0
    for d, n, first in ((1, 70, 0), (2, 1, 5), (7, 129, 511), (20, 200, 0), (33, 40, 2**20 + 100)):
        X, y, w = instance(rng, n, d)
        labels = labels_for(kind, y)
        tiles, marks = rounded(X, first)
        of_points, of_step = ([oracles.points.word(KEY.tolist(), s, first + i) for i in range(n)] for s in (0, 9))
        some = [oracles.points.rounded_point(x, u) for x, u in zip(X.tolist(), of_points, strict=True)]
        low, high = oracles.points.summed_gradients(
            some, labels.tolist(), w.tolist(), kind, unit=UNIT, most=LONGEST, bits=low_bits(d) + 14, of_step=of_step,
            parameter=LOSSES[kind].parameter,
        )  # fmt: skip
        found = summed(tiles, marks, labels, w, kind, stream=9, first=first)
        assert (low <= found).all()
        assert (found <= high).all()
        exact, total = exact + int((low == high).sum()), total + d
    assert exact > 0.9 * total


def test_sums_are_those_of_numpy_but_for_rounding() -> None:
    """Which is far less than what a wrong column, half or sign would change."""
    rng = np.random.default_rng(3)
    for d in (1, 2, 3, 16, 31, 40, 129, 300):
        X = 0.5 * rng.normal(size=(1500, d)) / math.sqrt(d)
        y, w = 0.2 * rng.normal(size=1500), 0.2 * rng.normal(size=d)
        tiles, marks = rounded(X, most=2**26 - 1)
        found = summed(tiles, marks, y, w, "SQUARED", unit=2.0**23) / 2.0**23
        right = 2 * (X @ w - y) @ X
        assert np.linalg.norm(found - right) <= 0.3
        assert np.linalg.norm(right) > 1


def test_low_bits_are_the_kernels() -> None:
    for d in [*range(1, 70), 255, 256, 257, 1000, 2000, 4096, 2**16]:
        bits = low_bits(d)
        assert kernels.low_bits.py_func(d) == bits
        assert bits == 1 or math.isqrt(d - 1) + 1 <= 2 ** (16 - bits), "the low part keeps int32"


# --- rounding: lemmas 2 and 3


def test_points_are_rounded_without_bias_within_a_unit() -> None:
    """Over 16,000 records that are alike: the mean is off by 6 deviations at most in none of 25 coordinates."""
    rng = np.random.default_rng(4)
    n = 16_000
    x = rng.normal(size=25) * 10.0 ** rng.uniform(-3, 0, 25)
    tiles, marks = rounded(np.tile(x, (n, 1)))
    errors = coordinates(tiles, n, 25) - x * 2.0 ** float(marks[0, 0])
    assert np.abs(errors).max() < 1
    part = x * 2.0 ** float(marks[0, 0]) % 1
    assert (np.abs(errors.mean(axis=0)) <= 6 * np.sqrt(part * (1 - part) / n) + 2.0**-16).all()
    norms = np.linalg.norm(x) * 2.0 ** marks[0].astype(float)[:n]
    assert (norms > 16383).all()
    assert (norms <= 32766).all()


def test_what_lies_on_the_grid_stays() -> None:
    X = np.random.default_rng(5).integers(-1, 2, (300, 9)).astype(np.float64) * 2.0**-7
    tiles, marks = rounded(X)
    np.testing.assert_array_equal(coordinates(tiles, 300, 9) * 2.0 ** -marks[0, :300, None].astype(float), X)


# --- what privacy rests on: lemma 1


@pytest.mark.parametrize("kind", LOSSES)
def test_no_gradient_is_longer_than_k(kind: str) -> None:
    """In exact integers, for 25,000 records of every loss, most of them adversarial."""
    rng = np.random.default_rng(6)
    at_limit = 0
    for d, n in ((1, 6000), (2, 6000), (3, 4000), (8, 4000), (33, 3000), (100, 2000)):
        X, y, w = wild_rows(rng, n, d), wild_numbers(rng, n), rng.normal(size=d)
        w *= rng.choice([0.0, 1e-300, 1.0, 1e8])
        labels = labels_for(kind, y)
        for most in (2**26 - 1, LONGEST, 2**21):
            some = (
                slice(0, n // 2)
                if most == LONGEST
                else slice(n // 2, 3 * n // 4)
                if most == 2**21
                else slice(n * 3 // 4, n)
            )
            unit = float(rng.choice([1.0, 2.0**-60, 2.0**20, 2.0**200, 2.0**30]))
            for i in range(n)[some]:
                tiles, marks = rounded(X[i : i + 1], i, most)
                q = summed(tiles, marks, labels[i : i + 1], w, kind, unit, 1 + i % 3, i)
                length = int((q.astype(object) ** 2).sum()) if d < 4 else int((q * q).sum())
                assert length <= most**2, (X[i], y[i], w, unit)
                at_limit += length >= 0.9 * most**2
    assert at_limit > 1000, "the limit is reached, not only kept"


def test_limits_are_by_norms_that_are_rounded_up() -> None:
    """Norms rounded down, the mutant, let gradients beyond K through."""
    rng = np.random.default_rng(7)
    n, d, most = 5000, 6, LONGEST
    tiles, marks = rounded(rng.normal(size=(n, d)), most=most)
    squares = [int(s) for s in (coordinates(tiles, n, d) ** 2).sum(axis=1)]
    assert all(int(limit) ** 2 * s <= most**2 for limit, s in zip(marks[1, :n], squares, strict=True))
    down = [(most // math.isqrt(s)) ** 2 * s > most**2 for s in squares]
    assert sum(down) > 20


def test_sums_are_of_their_records_one_by_one() -> None:
    """What a record adds is decided by the record, w and its words: not by its tile, its lane or the end of a loop."""
    rng = np.random.default_rng(8)
    n, d = 1100, 5
    X, y, w = wild_rows(rng, n, d), wild_numbers(rng, n), rng.normal(size=d)
    X[700:] = np.roll(X[:400], 3, axis=0)
    for kind in LOSSES:
        labels = labels_for(kind, y)
        tiles, marks = rounded(X, 77)
        whole = summed(tiles, marks, labels, w, kind, first=77)
        alone = np.zeros(d, np.int64)
        for i in range(n):
            one = rounded(X[i : i + 1], 77 + i)
            alone += summed(*one, labels[i : i + 1], w, kind, first=77 + i)
        np.testing.assert_array_equal(whole, alone)


def test_a_run_at_the_limit_fits_int32() -> None:
    """1,100 records that are alike, each with the largest gradient there is, of either sign."""
    most = 2**26 - 1
    for sign in (1.0, -1.0):
        X = np.full((1100, 3), 0.0)
        X[:, 1] = sign * 32766 * 2.0**-20
        y = np.full(1100, -1e9)
        tiles, marks = rounded(X, most=most)
        found = summed(tiles, marks, y, np.zeros(3), "SQUARED", unit=2.0**40)
        point = coordinates(tiles, 1100, 3)[0]
        np.testing.assert_array_equal(found, 1100 * (most // abs(int(point[1]))) * point)
        assert abs(found[1]) > 1100 * 0.99 * most


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_sensitivity_that_is_paid_for(neighbors: Any) -> None:
    for clip in (1.0, 0.3, 1e-5, 7e9):
        for d in (1, 50, 3000):
            found = point_grid(NoiseParameters(1.0, 1e-6, "auto", neighbors), clip=clip, n=5000, d=d, steps=60)
            assert found is not None
            grid = found[0]
            assert grid.longest < 2**26
            assert grid.sensitivity == grid.longest * (2 if neighbors == "replace-one" else 1)
            more = 32767 + math.sqrt(d) + grid.size / 16383 + 1  # a factor and a norm, rounded up
            assert grid.longest >= grid.size * (1 + math.sqrt(d) / 16383) + more, "none within the clip is cut"
            assert grid.longest <= 1.01 * grid.size * (1 + math.sqrt(d) / 16383)


# --- records of any size


def test_records_of_every_size_and_of_none() -> None:
    X = np.array([[0.0, 0.0], [5e-324, -5e-324], [1e-300, 0.0], [1e150, -1e150], [1.0, 1e-200], [-3.0, 4.0]])
    tiles, marks = rounded(X)
    found = coordinates(tiles, 6, 2)
    assert not found[0].any()
    assert marks[1, 0] == 0
    np.testing.assert_allclose(found[2:] * 2.0 ** -marks[0, 2:6, None].astype(float), X[2:], rtol=2e-4, atol=1e-4)
    assert not found[5].any() or (found[5] % 1 == 0).all()
    constant = {"loss": losses.Logistic(x_norm=1), "over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6, "steps": 5}
    wild = np.zeros((5, 17))
    wild[:, 3:5] = [[1e308, -1e308], [math.nan, 0.0], [math.inf, 1.0], [0.0, 0.0], [5e-324, 1.0]]
    fit = fastdp.noisy_projected_gradient_descent(wild, [1, 0, 1, 1, 0], outside="clip", **constant)
    assert fit.coordinates == "int16"
    assert np.isfinite(fit.w).all()


def test_points_beyond_their_bound_are_brought_back() -> None:
    rng = np.random.default_rng(9)
    X = rng.normal(size=(200, 4)) * 10.0 ** rng.uniform(-3, 3, (200, 1))
    short = X * np.minimum(1, 0.5 / np.linalg.norm(X, axis=1, keepdims=True))
    some, marks = rounded(X, bound=0.5)
    back = coordinates(some, 200, 4) * 2.0 ** -marks[0, :200, None].astype(float)
    np.testing.assert_allclose(back, short, rtol=0, atol=0.5 / 16383)


# --- the rule for the width


def test_the_width_is_a_public_rule() -> None:
    asked = NoiseParameters(1.0, 1e-6, "auto", "add-remove")

    def width(n: int, d: int = 20, steps: int = 60, some: NoiseParameters = asked) -> bool:
        return point_grid(some, clip=1.0, n=n, d=d, steps=steps) is not None

    assert width(1)
    assert width(2, d=1, steps=4)
    assert width(10**8)
    assert not width(10**9), "rounding would have more than a tenth of the noise"
    assert width(10**6, some=asked._replace(epsilon=10.0))
    assert not width(10**7, some=asked._replace(epsilon=10.0))
    assert not width(1000, steps=3)
    assert not width(1000, d=2**16 + 1)
    assert not width(1000, steps=1000, some=asked._replace(epsilon=1e-6)), "too coarse"


def test_results_say_the_width() -> None:
    X, y, _ = instance(np.random.default_rng(10), 9000, 20)
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    common: dict[str, Any] = {"over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6, "steps": 8}
    one = fastdp.noisy_projected_gradient_descent
    fit = one(X, y > 0, loss=losses.Logistic(x_norm=1), **common)
    assert fit.coordinates == "int16"
    assert "points as int16" in repr(fit)
    wide = one(X, y > 0, loss=losses.Logistic(x_norm=1), resolution=2.0**-30, **common)
    assert wide.coordinates == "float64"
    assert one(X, loss=losses.SquaredDistance(x_norm=1), **common).coordinates == "float64"
    assert fit.bound is not None
    assert wide.bound is not None
    assert wide.bound < fit.bound < 1.1 * wide.bound


# --- the same bits


def history(X: Any, y: Any, loss: Any, over: Any = None, **more: Any) -> bytes:
    fit = fastdp.noisy_projected_gradient_descent(
        X, y, loss=loss + losses.L2(0.1), over=over or sets.Ball(0.7), epsilon=1, delta=1e-6, clip=1.0, steps=6,
        step_size=0.5, average=False, history=True, rng=fastdp.Randomness(seed=18), **more,
    )  # fmt: skip
    assert fit.coordinates == "int16"
    assert fit.history is not None
    return fit.history.tobytes()


@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize("kind", [*LOSSES, "CUSTOM"])
def test_all_ways_come_to_the_same_bits(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    loss = LOSSES[kind] if kind != "CUSTOM" else losses.Custom(lambda s, y: (s - y) / (1.0 + abs(s - y)))
    X, y, _ = instance(rng, 2500, 18)
    labels = labels_for(kind, y)
    right = history(X, labels, loss)
    assert history(X, labels, loss, callback=lambda t, w: None) == right
    assert history(np.asfortranarray(X), labels, loss) == right
    frame = pd.DataFrame(X, columns=list("abcdefghijklmnopqr")).assign(label=labels)
    assert history(frame, "label", loss) == right
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "some.parquet", row_group_size=700)
    assert history(str(tmp_path / "some.parquet"), "label", loss) == right
    if kind != "CUSTOM":
        chunked = da.from_array(X, chunks=((900, 1, 1599), (18,)))  # type: ignore[no-untyped-call]
        beside = da.from_array(labels, chunks=((900, 1, 1599),))  # type: ignore[no-untyped-call]
        assert history(chunked, beside, loss) == right
    monkeypatch.setattr(grid_points, "_ONE_LOOP", 0)
    assert history(X, labels, loss) == right, "step by step"
    for block in (1024, 2048):
        monkeypatch.setattr(arrays, "BLOCK_RECORDS", block)
        for threads in (1, 2, 3):
            fastdp.set_num_threads(threads)
            assert history(X, labels, loss) == right
    monkeypatch.setattr(rows, "_MOST_PARTS", 0)
    assert history(X, labels, loss) == right, "blocks that are rounded in each step"


def test_sets_that_are_projected_in_python() -> None:
    X, y, _ = instance(np.random.default_rng(12), 300, 17)
    own = sets.Projected(sets.Ball(0.7).project, diameter=1.4, center=[0.0] * 17)
    assert history(X, y, LOSSES["SQUARED"], own) == history(X, y, LOSSES["SQUARED"])


def fingerprint() -> str:
    digest = hashlib.sha256()
    rng = np.random.default_rng(13)
    for n, d in ((300, 1), (70, 13), (131, 33), (40, 64)):
        X, y, w = instance(rng, n, d)
        X[:20] = wild_rows(rng, 20, d).clip(-1e30, 1e30)
        tiles, marks = rounded(X, 5)
        digest.update(tiles.tobytes() + marks.tobytes())
        for kind in LOSSES:
            digest.update(summed(tiles, marks, labels_for(kind, y), w, kind, first=5).tobytes())
    return digest.hexdigest()


def test_same_bits_on_other_cpus(fingerprint_elsewhere: Callable[[str], str]) -> None:
    assert fingerprint_elsewhere(__name__) == fingerprint()


def test_words_of_one_release_are_its_own() -> None:
    """Points of two releases are rounded by different words."""
    X = np.random.default_rng(14).normal(size=(200, 3))
    points = Points(X, np.zeros(200), LOSSES["SQUARED"], "raise")
    points.check(keep_norms=False)
    some = [GridPoints(points, key, LONGEST).gradients(np.ones(3), 0, UNIT) for key in (KEY, KEY + np.uint32(1), KEY)]
    assert (some[0] != some[1]).any()
    np.testing.assert_array_equal(some[0], some[2])
    assert Fraction(int(np.abs(some[0] - some[1]).max()), int(UNIT)) < 0.1
