"""Records that nobody plans for: one, none that differ, one column or 2,000, the largest and the smallest floats."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, losses, sets

LOGISTIC = losses.Logistic(x_norm=1)
SQUARED = losses.SquaredError(x_norm=1, y_bound=1)
KINDS: dict[str, Callable[[np.random.Generator, int, int], Any]] = {
    "random": lambda rng, n, d: rng.normal(size=(n, d)),
    "constant": lambda _rng, n, d: np.full((n, d), 0.5),
    "collinear": lambda rng, n, d: np.outer(rng.normal(size=n), np.ones(d)),
    "zero": lambda _rng, n, d: np.zeros((n, d)),
    "largest": lambda rng, n, d: rng.choice([np.finfo(float).max, -np.finfo(float).max], size=(n, d)),
    "smallest": lambda _rng, n, d: np.full((n, d), np.nextafter(0, 1)),
}
SHAPES = [(1, 1), (1, 3), (50, 1), (40, 5)]


def fits(X: Any, y: Any, **price: Any) -> list[np.ndarray]:
    """What every way to optimize in private gives for these records."""
    least = fastdp.noisy_least_squares(X, y, loss=SQUARED, over=sets.Ball(1), delta=1e-6, **price).w
    paths = [
        fastdp.noisy_projected_gradient_descent(X, y, loss=loss, over=sets.Ball(1), delta=1e-6, **price).w
        for loss in (LOGISTIC, SQUARED)
    ]
    nets = [fastdp.exponential_erm(X, y, loss=LOGISTIC, over=sets.Ball(1), **price).w] if X.shape[1] <= 3 else []
    return [least, *paths, *nets]


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_odd_records_are_fitted_like_any(kind: str, neighbors: Any) -> None:
    """A point of the set comes out; no error or warning that other records would not have caused."""
    rng = np.random.default_rng(22)
    for n, d in SHAPES:
        X, y = KINDS[kind](rng, n, d), rng.choice([-1.0, 1.0], size=n)
        public = {"records": n} if neighbors == "add-remove" else {}
        for w in fits(X, y, epsilon=1.0, neighbors=neighbors, outside="clip", rng=Randomness(seed=1), **public):
            assert w.shape == (d,)
            assert np.linalg.norm(w) <= 1 + 1e-12


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
@pytest.mark.parametrize("kind", ["random", "largest"])
def test_one_record_of_2000_columns(kind: str) -> None:
    X, y = KINDS[kind](np.random.default_rng(22), 1, 2000), np.ones(1)
    for loss in (LOGISTIC, SQUARED):
        price = {"epsilon": 1.0, "delta": 1e-6, "outside": "clip", "rng": Randomness(seed=1)}
        w = fastdp.noisy_projected_gradient_descent(X, y, loss=loss, over=sets.Ball(1), **price).w
        assert w.shape == (2000,)
        assert np.linalg.norm(w) <= 1 + 1e-12
