"""Gradients of the user's own: kernels/given_gradients.py, losses/gradient.py.

What a function leaves behind is clipped, whatever it does: sums against an oracle, sensitivity in exact integers for
functions that attack it, the same bits as losses of the library, and a small network.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.optimizing.points import Points
from fastdp.optimizing.step_noise import limit_of
from fastdp.records import arrays
from tests.oracles import softmax as oracle

Array = np.ndarray[Any, Any]
noisy = fastdp.noisy_projected_gradient_descent


def sums(loss: Any, X: Any, y: Any, w: Any, unit: float = 2.0**20, size: float = 2.0**40) -> Array:
    points = Points(X, y, loss, "clip")
    points.check()
    return points.gradients(np.asarray(w, np.float64), unit, limit_of(size, len(w)))


def squared(w: Array, x: Array, y: float, out: Array) -> None:
    r = -y
    for j in range(x.size):
        r += w[j] * x[j]
    for j in range(x.size):
        out[j] = 2.0 * r * x[j]


def its_own(w: Array, x: Array, y: float, out: Array) -> None:
    """The point itself, in the first entries; the label in the last."""
    out[: x.size] = x
    out[-1] = y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (33, 7), (100, 8), (5000, 9)])
def test_sums_are_those_of_the_oracle(n: int, d: int, dtype: Any) -> None:
    rng = np.random.default_rng(n)
    X, y = (rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 3, (n, 1))).astype(dtype), rng.normal(size=n)
    loss, G = losses.Gradient(its_own, d + 1), np.column_stack([X.astype(np.float64), y])
    for size in (2.0**40, 2.0**19):
        low, high = oracle.clipped_vectors(G, unit=2.0**20, limit=limit_of(size, d + 1))
        found = sums(loss, X, y, np.zeros(d + 1), size=size)
        assert (low <= found).all()
        assert (found <= high).all()
        assert (high - low <= 0.3 * n + 3).all(), "the oracle says something"


def test_it_is_the_loss_of_the_library_that_it_computes() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.uniform(-0.5, 0.5, (3000, 4)), rng.uniform(-1, 1, 3000)
    how: dict[str, Any] = {"over": sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6, "steps": 50, "step_size": 0.3}
    fits = [
        noisy(X, y, loss=loss, clip=1.5, resolution=2.0**-20, rng=fastdp.Randomness(seed=1), **how)
        for loss in (losses.Gradient(squared, 4), losses.Gradient(numba.njit(squared), 4), losses.SquaredError())
    ]
    assert fits[0].w.tobytes() == fits[1].w.tobytes()
    assert fits[0].w == pytest.approx(fits[2].w, abs=1e-4)
    assert fits[0].noise_scale == fits[2].noise_scale
    plain = [
        fastdp.projected_gradient_descent(X, y, loss=loss, over=sets.Ball(1.0), steps=50, step_size=0.3).w
        for loss in (losses.Gradient(squared, 4), losses.SquaredError())
    ]
    assert plain[0] == pytest.approx(plain[1], abs=1e-12)


# --- functions that attack the clip


def huge(w: Array, x: Array, y: float, out: Array) -> None:
    out[:] = 8e307 * y


def undefined(w: Array, x: Array, y: float, out: Array) -> None:
    out[0] = np.nan


def infinite(w: Array, x: Array, y: float, out: Array) -> None:
    out[:] = 1.0
    out[1] = -np.inf


def raises(w: Array, x: Array, y: float, out: Array) -> None:
    out[:] = 1.0
    if y > 0:
        raise ValueError("of the user's")


def beyond(w: Array, x: Array, y: float, out: Array) -> None:
    out[:] = 1.0
    out[w.size + int(abs(y))] = 1.0


def tiny(w: Array, x: Array, y: float, out: Array) -> None:
    out[:] = 5e-324


def changes_all(w: Array, x: Array, y: float, out: Array) -> None:
    """Leaves what it can for the next record: in w, in x, and in what it did not clear."""
    out[0] += w[0] + x[0]
    out[1] += y
    w[:] = 1e9 * y
    x[:] = -1e9


ATTACKS: dict[Any, Any] = {huge: 1.0, undefined: 0.0, infinite: 0.0, raises: 0.0, beyond: 0.0, tiny: 0.0}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_no_function_adds_more_than_the_clip(attack: Callable[..., None], capfd: pytest.CaptureFixture[str]) -> None:
    K, loss = 2**25, losses.Gradient(attack, 3)
    q = sums(loss, np.ones((1, 2)), [2.0], np.zeros(3), 2.0**30, K).tolist()
    square = sum(each * each for each in q)
    assert (ATTACKS[attack] * (K - 10)) ** 2 <= square <= (ATTACKS[attack] * K) ** 2
    assert capfd.readouterr() == ("", ""), "nothing is printed, either"


def test_nothing_of_a_record_is_left_for_the_next() -> None:
    """A sum over records is the sum of what each adds alone: with what a call before left behind, it would not be."""
    loss, rng = losses.Gradient(changes_all, 2), np.random.default_rng(2)
    X, y, w = rng.normal(size=(200, 3)), rng.normal(size=200), np.array([0.25, 0.5])
    alone = sum(sums(loss, X[i : i + 1], y[i : i + 1], w) for i in range(200))
    assert (sums(loss, X, y, w) == alone).all()
    assert (w == [0.25, 0.5]).all()
    carried, left = np.zeros(2), np.zeros(2)  # what a kernel that did not clear `out` would sum
    for x, label in zip(X, y, strict=True):
        left = left + np.array([w[0] + x[0], label])
        carried += np.trunc(left * 2.0**20)
    assert np.abs(carried - alone).max() > 2.0**24


def test_random_vectors_of_any_size_keep_the_clip() -> None:
    rng, K = np.random.default_rng(3), 2**25
    close = 0
    for p in (1, 2, 8, 13):
        loss = losses.Gradient(its_own, p + 1)
        for _ in range(500):
            x = rng.normal(size=(1, p)) * 2.0 ** rng.integers(-1070, 500, (1, p)) * (rng.random((1, p)) < 0.8)
            y = rng.normal(size=1) * 2.0 ** float(rng.integers(-1000, 1000))
            q = sums(loss, x, y, np.zeros(p + 1), 2.0**30, K).tolist()
            square = sum(each * each for each in q)
            assert square <= K * K
            close += square > (K - 100) ** 2
    assert close > 300, "the clip is attained"


@pytest.mark.usefixtures("restored_threads")
def test_the_same_bits_for_every_chunking_and_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, loss = np.random.default_rng(4), losses.Gradient(squared, 5)
    X, y, w = rng.normal(size=(5000, 5)).astype(np.float32), rng.normal(size=5000), rng.normal(size=5)
    right = sums(loss, X, y, w, size=2.0**20).tobytes()
    assert sums(loss, X[::-1].astype(np.float64), y[::-1], w, size=2.0**20).tobytes() == right
    for block in (1024, 2048):
        monkeypatch.setattr(arrays, "BLOCK_RECORDS", block)
        for threads in (1, 3):
            fastdp.set_num_threads(threads)
            assert sums(loss, X, y, w, size=2.0**20).tobytes() == right


# --- what is known of it


def toward(w: Array, x: Array, out: Array) -> None:
    for j in range(w.size):
        out[j] = w[j] - x[j]


def test_without_labels_and_with_constants() -> None:
    rng = np.random.default_rng(5)
    X = rng.uniform(-0.5, 0.5, (20_000, 2)) + np.array([0.3, -0.2])
    loss = losses.Gradient(
        toward, 2, labels=False, lipschitz=3.0, curvature=1.0, convex=True,
        value=lambda w, X, y: ((w - X) ** 2).sum(axis=1) / 2,
    )  # fmt: skip
    over = sets.Ball(1.0)
    fit = fastdp.private_erm(X, loss=loss, over=over, epsilon=1.0, delta=1e-6, rng=fastdp.Randomness(seed=1))
    assert fit.method == "descent"
    excess = fastdp.nonprivate_excess_risk(fit.w, X, loss=loss, over=over)
    assert fit.bound is not None
    assert -1e-9 <= excess <= fit.bound
    assert fastdp.nonprivate_minimum(X, loss=loss, over=over)[0] == pytest.approx(X.mean(axis=0), abs=1e-5)
    flat = losses.Gradient(toward, 2, labels=False, lipschitz=3.0, curvature=1.0)
    assert noisy(X, loss=flat, over=over, epsilon=1.0, delta=1e-6).bound is None, "it is not said to be convex"
    assert fastdp.projected_gradient_descent(X, loss=flat, over=over, steps=3).bound is None
    with pytest.raises(ValueError, match=r"^y: must be None: Gradient has no labels$"):
        noisy(X, X[:, 0], loss=flat, over=over, epsilon=1.0, delta=1e-6)


def two_many(w: Array, x: Array) -> None:
    pass


def returns(w: Array, x: Array, y: float, out: Array) -> Array:
    return out


def test_bad_input() -> None:
    for wrong in (3, None, "f"):
        with pytest.raises(ValueError, match=r"^function=.*: must be a function of \(w, x, y, out\)$"):
            losses.Gradient(wrong, 2)
    for wrong in (two_many, toward, lambda w, x, y, out: out.nothing(w)):
        with pytest.raises(ValueError, match=r"must be a function of \(w, x, y, out\) that numba can compile \("):
            losses.Gradient(wrong, 2)
    with pytest.raises(ValueError, match=r"must fill `out` and return nothing; it returns array\(float64, 1d, C\)$"):
        losses.Gradient(returns, 2)
    for dimension in (0, -1, 2.5, None, 2**20 + 1):
        with pytest.raises(ValueError, match=r"^dimension="):
            losses.Gradient(its_own, dimension)  # type: ignore[arg-type]
    for option, value in (("lipschitz", -1.0), ("curvature", -1.0), ("y_bound", 0.0), ("labels", 2), ("convex", None)):
        with pytest.raises(ValueError, match=rf"^{option}="):
            losses.Gradient(its_own, 2, **{option: value})
    with pytest.raises(ValueError, match=r"^value=3: must be a function of arrays"):
        losses.Gradient(its_own, 2, value=3)  # type: ignore[arg-type]
    loss, X, y = losses.Gradient(its_own, 3), np.ones((9, 2)), np.ones(9)
    problem: dict[str, Any] = {"loss": loss, "over": sets.Ball(1.0), "epsilon": 1.0}
    with pytest.raises(losses.MissingBound, match=r"Gradient\(its_own, 3\) needs lipschitz=.*; or give clip=$"):
        noisy(X, y, delta=1e-6, **problem)
    with pytest.raises(losses.MissingBound):
        fastdp.private_erm(X, y, delta=1e-6, **problem)
    with pytest.raises(ValueError, match=r"^start: 2 coordinates: must be 3, the dimension that the loss declares$"):
        noisy(X, y, clip=1.0, start=[0, 0], delta=1e-6, **problem)
    with pytest.raises(ValueError, match=r"^loss: Gradient needs value="):
        fastdp.nonprivate_excess_risk(np.zeros(3), X, y, loss=loss, over=sets.Ball(1.0), least=0.0)
    with pytest.raises(ValueError, match=r"^loss: Gradient needs curvature="):
        fastdp.nonprivate_minimum(X, y, loss=loss, over=sets.Ball(1.0))
    with pytest.raises(TypeError, match=r"^a Gradient holds the address of a function of this process"):
        pickle.dumps(loss)
