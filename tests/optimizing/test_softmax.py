"""Several classes: kernels/class_gradients.py, losses/softmax.py, families.py.

Sums against an oracle that shares no code, their sensitivity in exact integers, a variant that forgets classes and is
refuted; the same bits from every chunking and container; constants against records that attain them.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import DomainError, losses, sets
from fastdp.optimizing.points import Points
from fastdp.optimizing.step_noise import limit_of
from fastdp.records import arrays
from tests.oracles import softmax as oracle

Array = np.ndarray[Any, Any]
K = 2**29

noisy = fastdp.noisy_projected_gradient_descent
plain = fastdp.projected_gradient_descent


def sums(
    X: Any, y: Any, W: Array, unit: float = 2.0**30, size: float = K, x_norm: float | None = None, outside: str = "clip"
) -> Array:
    """The sum of clipped gradients, of norm at most `size`, a row for each class."""
    points = Points(X, y, losses.Softmax(len(W), x_norm), outside)
    points.check()
    return points.gradients(W.reshape(-1), unit, limit_of(size, W.size)).reshape(W.shape)


def instance(seed: int, n: int, d: int, k: int, dtype: Any = np.float64) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(dtype), rng.integers(0, k, n), rng.normal(size=(k, d)) / np.sqrt(d)


# --- sums


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("n", "d", "k"),
    [(1, 1, 2), (31, 7, 3), (32, 8, 2), (33, 9, 10), (65, 17, 4), (97, 25, 3), (40, 33, 5), (64, 64, 7)],
)
def test_sums_are_those_of_the_oracle(n: int, d: int, k: int, dtype: Any) -> None:
    X, y, W = instance(n + d, n, d, k, dtype)
    W[0] *= 8  # probabilities from 0 to 1
    for x_norm, size in ((None, 2.0**40), (None, 2.0**21), (0.7, 2.0**40)):
        found = sums(X, y, W, 2.0**22, size, x_norm)
        low, high = oracle.clipped_gradients(
            X, y, W, unit=2.0**22, limit=limit_of(size, W.size), bound=np.inf if x_norm is None else x_norm
        )
        assert (low <= found).all()
        assert (found <= high).all()
        assert (high - low <= 0.02 * n + 1).all(), "the oracle says something"


def test_many_records_and_classes() -> None:
    X, y, W = instance(1, 9000, 3, 300)
    found = sums(X, y, W, size=2.0**40)
    points = losses.Softmax(300).gradients(W.reshape(-1), X, y).sum(axis=0).reshape(W.shape)
    assert np.abs(found / 2.0**30 - points).max() < 1e-5
    assert abs(found.sum()) < 300 * 3 * 9000, "factors of a record add up to 0, but for rounding"


def adversarial(rng: np.random.Generator, n: int, d: int) -> Array:
    """Points of every size, along axes and in between: none of them finite in float32 only."""
    X = rng.normal(size=(n, d)) * 2.0 ** rng.integers(-1060, 500, (n, 1))
    X[rng.random((n, d)) < 0.3] = 0.0
    X[::7] = np.sign(X[::7]) * 2.0 ** rng.integers(-500, 500, (len(X[::7]), 1))
    X[::11] *= 2.0 ** rng.integers(-40, 1, (len(X[::11]), d))
    return X


@pytest.mark.parametrize("k", [2, 3, 11])
def test_no_record_moves_the_sum_by_more_than_the_clip(k: int) -> None:
    """10,000 records of any size and label, at W for which all classes but one, or none, are certain."""
    rng = np.random.default_rng(k)
    close = 0
    for d in (1, 2, 5, 8, 19):
        for x in adversarial(rng, 2000 // 3, d):
            W = rng.normal(size=(k, d)) * 2.0 ** rng.integers(-3, 390)
            q = sums(x[None, :], [int(rng.integers(k))], W, 2.0**30, K).reshape(-1).tolist()
            square = sum(each * each for each in q)
            assert square <= K * K
            close += square > (K - 100) ** 2
    assert close > 200, "the clip is attained"


def forgetful(X: Array, y: Array, W: Array, norm_of: Callable[[Array], Any]) -> Array:
    """The sum in floats, each record clipped to 1 by a norm of its factors."""
    f = losses.Softmax(len(W)).probabilities(W, X)
    f[np.arange(len(X)), y] -= 1
    size = np.array([norm_of(each) for each in f]) * np.linalg.norm(X, axis=1)
    return np.einsum("nc,nd->cd", f / np.maximum(1.0, size)[:, None], X)


def test_neighbours_differ_by_what_is_paid_for_and_a_norm_that_forgets_classes_is_refuted() -> None:
    """All pairs of data sets of up to two records from a small domain, under both relations."""
    records = [(np.array(x), c) for x in ((0.0, 0.0), (3.0, 4.0), (0.0, -1.5), (1e9, -1e9)) for c in range(3)]
    W = np.array([[9.0, -2.0], [-7.0, 5.0], [0.0, 0.0]])
    unit = float(2**20)

    def worst(total: Callable[[Array, Array], Any]) -> tuple[float, float]:
        sets_of = {
            some: total(np.array([records[i][0] for i in some]), np.array([records[i][1] for i in some]))
            for size in (1, 2)
            for some in itertools.combinations_with_replacement(range(len(records)), size)
        }
        replaced = added = 0.0
        for first in (some for some in sets_of if len(some) == 2):
            for i, j in itertools.product(range(2), range(len(records))):
                other = tuple(sorted((first[1 - i], j)))
                replaced = max(replaced, float(np.linalg.norm(sets_of[first] - sets_of[other])))
                added = max(added, float(np.linalg.norm(sets_of[first] - sets_of[(first[1 - i],)])))
        return added, replaced

    added, replaced = worst(lambda X, y: sums(X, y, W, unit, unit).astype(float))
    assert 0.999 * unit < added <= unit
    assert 1.4 * unit < replaced <= 2 * unit
    right = worst(lambda X, y: forgetful(X, y, W, np.linalg.norm))
    assert right[0] <= 1 + 1e-9
    for mutant in (lambda f: np.abs(f).max(), lambda f: f.max(), lambda f: np.linalg.norm(f) / np.sqrt(len(f))):
        wrong = worst(lambda X, y, norm=mutant: forgetful(X, y, W, norm))
        assert wrong[0] > 1.05, "a norm of one class alone"
    unclipped = worst(lambda X, y: forgetful(X, y, W, lambda f: 0.0))
    assert unclipped[0] > 2, "a clip that is skipped"


# --- the same bits


def fingerprint() -> str:
    digest = hashlib.sha256()
    for n, d, k in ((1, 1, 2), (300, 13, 3), (1000, 40, 10)):
        for dtype in (np.float64, np.float32):
            X, y, W = instance(3, n, d, k, dtype)
            digest.update(sums(X, y, W).tobytes())
            digest.update(sums(X, y, 5 * W, x_norm=0.5).tobytes())
    return digest.hexdigest()


def test_same_bits_on_other_cpus(fingerprint_elsewhere: Callable[[str], str]) -> None:
    assert fingerprint_elsewhere("tests.optimizing.test_softmax") == fingerprint()


@pytest.mark.usefixtures("restored_threads")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_same_bits_for_every_chunking_order_and_number_of_threads(
    dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, W = instance(4, 5000, 5, 4, dtype)
    right = sums(X, y, W).tobytes()
    assert sums(X.astype(np.float64), y.astype(np.uint8), W).tobytes() == right
    assert sums(np.asfortranarray(X)[::-1], y[::-1], W).tobytes() == right
    assert sums(pd.DataFrame(X), pd.Series(y), W).tobytes() == right
    one_by_one = sum(sums(X[i : i + 1], y[i : i + 1], W) for i in range(500))
    assert one_by_one.tobytes() == sums(X[:500], y[:500], W).tobytes()
    for block, values in ((1024, 2**21), (2**16, 1), (2048, 2**12)):
        monkeypatch.setattr(arrays, "BLOCK_RECORDS", block)
        monkeypatch.setattr(arrays, "_BLOCK_VALUES", values)
        for threads in (1, 3):
            fastdp.set_num_threads(threads)
            assert sums(X, y, W).tobytes() == right


# --- what is known of the loss


def test_gradients_are_those_of_the_values() -> None:
    X, y, W = instance(5, 40, 3, 4)
    loss, w, step = losses.Softmax(4), W.reshape(-1), 1e-6
    gradients = loss.gradients(w, X, y)
    for j, unit in enumerate(np.eye(len(w))):
        slope = (loss.values(w + step * unit, X, y) - loss.values(w - step * unit, X, y)) / (2 * step)
        assert np.abs(slope - gradients[:, j]).max() < 1e-8
    assert loss.smooth_gradient(w, X, y, 0.0) == pytest.approx(gradients.sum(axis=0), abs=1e-12)
    assert loss.probabilities(w, X).sum(axis=1) == pytest.approx(1.0)
    assert loss.probabilities(1e300 * w, X).max(axis=1) == pytest.approx(1.0), "no overflow"


@pytest.mark.parametrize("k", [2, 3, 10])
def test_constants_hold_and_are_attained(k: int) -> None:
    rng = np.random.default_rng(k)
    loss, over = losses.Softmax(k, x_norm=2.0), sets.Ball(0.7).of_dimension(3 * k)
    lipschitz, curvature, spread = loss.lipschitz(over), loss.curvature(), loss.range(over)
    x = np.array([[2.0, 0.0, 0.0]])
    worst = np.zeros((k, 3))
    worst[0, 0], worst[1, 0] = 0.7 / np.sqrt(2), -0.7 / np.sqrt(2)
    longest = max(
        np.linalg.norm(loss.gradients(W.reshape(-1), x, np.array([1])))
        for W in [worst, *(over.project(rng.normal(size=3 * k) * 9).reshape(k, 3) for _ in range(2000))]
    )
    assert longest <= lipschitz
    assert longest > (0.999 if k == 2 else 0.7) * lipschitz
    apart = loss.values(worst.reshape(-1), x, np.array([1])) - loss.values(-worst.reshape(-1), x, np.array([1]))
    assert 0.5 * spread < apart[0] <= spread * (1 + 1e-12)
    flat = np.full((k, 3), 0.0)
    flat[2:, 0] = -1e3  # two classes share all probability: the steepest turn
    turn = np.zeros((k, 3))
    turn[0, 0], turn[1, 0] = 1e-4, -1e-4
    change = loss.gradients((flat + turn).reshape(-1), x, np.array([0])) - loss.gradients(
        (flat - turn).reshape(-1), x, np.array([0])
    )
    ratio = np.linalg.norm(change) / np.linalg.norm(2 * turn)
    assert 0.999 * curvature < ratio <= curvature


def test_two_classes_are_logistic_regression() -> None:
    X, y, W = instance(6, 200, 3, 2)
    two, one = losses.Softmax(2), losses.Logistic()
    sign = np.where(y == 1, 1.0, -1.0)
    assert two.values(W.reshape(-1), X, y) == pytest.approx(one.values(W[1] - W[0], X, sign), abs=1e-12)
    ball = sets.Ball(50.0)
    w, least = fastdp.nonprivate_minimum(X, y, loss=two, over=ball)
    v, known = fastdp.nonprivate_minimum(X, sign, loss=one, over=ball)
    assert least == pytest.approx(known, abs=1e-6)
    assert two.coefficients(w)[1] - two.coefficients(w)[0] == pytest.approx(v, abs=1e-2)


# --- descents


def clusters(n: int, seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return np.array([[0.5, 0.0], [0.0, 0.5], [-0.4, -0.4]])[y] + rng.uniform(-0.3, 0.3, (n, 2)), y


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_private_descents_learn_and_keep_their_bound(neighbors: Any) -> None:
    X, y = clusters(20_000)
    problem: dict[str, Any] = {"loss": losses.Softmax(3, x_norm=1.0), "over": sets.Ball(10.0)}
    how: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "neighbors": neighbors, "outside": "clip"}
    if neighbors == "add-remove":
        how["records"] = 20_000
    with fastdp.Budget(epsilon=5.0, delta=1e-5, neighbors=neighbors) as budget:
        fits = [
            noisy(X, y, rng=fastdp.Randomness(seed=1), **problem, **how),
            fastdp.private_erm(X, y, rng=fastdp.Randomness(seed=1), **problem, **how),
        ]
    assert len(budget.releases) == 2
    assert fits[0].w.tobytes() == fits[1].w.tobytes(), "which is the only method"
    assert fits[1].method == "descent"
    assert "a descent takes this one" in fits[1].refusals["exponential"] or "columns" in fits[1].refusals["exponential"]
    fit = fits[0]
    assert fit.w.shape == (6,)
    assert fit.clip == pytest.approx(np.sqrt(2), rel=1e-3)
    accuracy = (problem["loss"].probabilities(fit.w, X).argmax(axis=1) == y).mean()
    assert accuracy > 0.95
    excess = fastdp.nonprivate_excess_risk(fit.w, X, y, outside="clip", **problem)
    assert fit.bound is not None
    assert -1e-6 <= excess <= fit.bound


def test_noise_is_for_the_norm_over_all_classes() -> None:
    """sigma over the sensitivity of a sum of clipped vectors, as for any of 6 coordinates."""
    X, y = clusters(100)
    loss, over = losses.Softmax(3, x_norm=1.0), sets.Ball(10.0)
    for neighbors, records, times in (("replace-one", None, 2), ("add-remove", 100, 1)):
        fit = noisy(
            X, y, loss=loss, over=over, epsilon=1.0, delta=1e-6, clip=0.5, steps=3, neighbors=neighbors,  # type: ignore[arg-type]
            records=records, noise="gaussian",
        )  # fmt: skip
        other = noisy(
            np.zeros((100, 6)), np.zeros(100), loss=losses.Logistic(), over=over, epsilon=1.0, delta=1e-6, clip=0.5,
            steps=3, neighbors=neighbors, records=records, noise="gaussian",  # type: ignore[arg-type]
        )  # fmt: skip
        assert fit.noise_scale == pytest.approx(other.noise_scale, rel=1e-6)
        assert fit.noise_scale > 0.5 * times * np.sqrt(3)


def test_plain_descent_and_regularised() -> None:
    X, y = clusters(3000)
    loss, over = losses.Softmax(3, x_norm=1.0) + losses.L2(0.1), sets.Ball(5.0)
    fit = plain(X, y, loss=loss, over=over, steps=2000, step_size=1.0, average=False)
    w, _ = fastdp.nonprivate_minimum(X, y, loss=loss, over=over)
    assert fit.w == pytest.approx(w, abs=1e-3)
    again = plain(X, y, loss=loss, over=over, steps=2000, step_size=1.0, average=False)
    assert again.w.tobytes() == fit.w.tobytes()


def test_one_record_one_column_and_sets_of_any_kind() -> None:
    for over in (sets.Ball(1.0), sets.Box(-1, 1), sets.Ball(1.0, norm=1), sets.Simplex()):
        fit = noisy(
            np.array([[0.5]]), [1], loss=losses.Softmax(2, x_norm=1.0), over=over, epsilon=1.0, delta=1e-6, steps=4
        )
        assert fit.w.shape == (2,)
        assert over.of_dimension(2).contains(fit.w)
    huge = noisy(
        np.array([[1e200, -1e300], [np.inf, np.nan]]), [0, 1], loss=losses.Softmax(2, x_norm=1.0), over=sets.Ball(1.0),
        epsilon=1.0, delta=1e-6, outside="clip",
    )  # fmt: skip
    assert np.isfinite(huge.w).all()


# --- bad input


def test_labels_that_are_no_classes() -> None:
    X = np.eye(3)
    problem: dict[str, Any] = {"loss": losses.Softmax(3, x_norm=1.0), "over": sets.Ball(1.0), "epsilon": 1.0}
    with fastdp.Budget(epsilon=10.0, delta=1e-5, refusals=9) as budget:
        for labels in ([0, 1, 3], [0, 1, -1], [0, 1, 1.5]):
            rule = "^y: must be classes, which are the numbers 0 to 2; there are others: outside='clip' takes the near"
            with pytest.raises(DomainError, match=rule):
                noisy(X, labels, delta=1e-6, **problem)
        for labels in ([0, 1, np.nan], [0, 1, np.inf]):
            with pytest.raises(DomainError, match=r"^y: must be finite"):
                noisy(X, labels, delta=1e-6, **problem)
        with pytest.raises(ValueError, match=r"^y: dtype <U1: must be 0 to 2$"):
            noisy(X, np.array(["a", "b", "c"]), delta=1e-6, **problem)
        with pytest.raises(ValueError, match=r"^y=None: must be the labels"):
            noisy(X, delta=1e-6, **problem)
        assert not budget.releases
    given = ([0, 1, 7], [0, 1, 1.6], [np.nan, 1, 2], [-np.inf, 1, np.inf], ["zero", 1, 2])
    W = np.zeros((3, 3))
    for labels in given:
        assert (sums(X, labels, W) == sums(X, [0, 1, 2], W)).all(), labels


def test_parameters() -> None:
    for classes in (1, 0, -1, 2**16 + 1):
        with pytest.raises(ValueError, match=rf"^classes={classes}: must be"):
            losses.Softmax(classes)
    for wrong in (2.5, "2", None, [0, 1]):
        with pytest.raises(ValueError, match=r"^classes="):
            losses.Softmax(wrong)  # type: ignore[arg-type]
    with pytest.raises(losses.MissingBound, match=r"Softmax\(3\) needs x_norm=, .*; or give clip=$"):
        noisy(np.eye(3), [0, 1, 2], loss=losses.Softmax(3), over=sets.Ball(1.0), epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match=r"has dimension 3: must be 9, a column of the records for each class$"):
        noisy(np.eye(3), [0, 1, 2], loss=losses.Softmax(3, 1.0), over=sets.Ball(1.0, center=np.zeros(3)), epsilon=1.0)
    with pytest.raises(ValueError, match=r"^start: 3 coordinates: must be 9, a column of the records for each class$"):
        noisy(np.eye(3), [0, 1, 2], loss=losses.Softmax(3, 1.0), over=sets.Ball(1.0), epsilon=1.0, start=[0, 0, 0])
    with pytest.raises(ValueError, match=r"1048580 coordinates of w: must be at most 2\^20"):
        noisy(np.ones((1, 20)), [0], loss=losses.Softmax(52429, 1.0), over=sets.Ball(1.0), epsilon=1.0)
    for call in (fastdp.exponential_erm, fastdp.noisy_least_squares):
        with pytest.raises(ValueError, match="Softmax"):
            call(np.ones((9, 1)), np.zeros(9), loss=losses.Softmax(2, 1.0), over=sets.Ball(1.0), epsilon=1.0)
