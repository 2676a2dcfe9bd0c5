"""What the optimizing room's cases must have produced."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats


def _clipped_sum(loss: str, X: Any, labels: Any, w: Any) -> Any:
    """The gradients of all records, each cut to norm 1, added up."""
    return _clipped_rows(loss, X, labels, w).sum(axis=0)


def _clipped_rows(loss: str, X: Any, labels: Any, w: Any) -> Any:
    """They themselves, one a row."""
    X = X.astype(np.float64)
    scores = X @ w
    slopes = 2 * (scores - labels) if loss == "squared" else -labels / (1 + np.exp(labels * scores))
    rows = slopes[:, None] * X
    return rows / np.maximum(np.linalg.norm(rows, axis=1), 1)[:, None]


def _check_clipped_gradients(drawn: Any, parameters: Any) -> None:
    loss, X, labels, w, total = drawn
    assert np.allclose(total, _clipped_sum(loss, X, labels, w), rtol=0, atol=len(X) * X.shape[1] * 2.0**-30)


def _check_clipped_gradients_of_rounded_points(drawn: Any, parameters: Any) -> None:
    """Rounded at random, within 8 deviations (points.md, lemmas 3 and 4), and limits down, to whole factors."""
    loss, X, labels, w, total = drawn
    deviation = np.sqrt(len(X)) * (2 * np.linalg.norm(w) + 1) / 16383 + np.sqrt(len(X)) * 2.0**14 / 2.0**25
    rows = _clipped_rows(loss, X, labels, w)
    exact, limits = rows.sum(axis=0), 2.0**-9 * np.abs(rows).sum(axis=0)
    assert (np.abs(total - exact) <= 8 * deviation + limits).all()
    assert (np.abs(exact) > 8 * deviation + limits).mean() > 0.2, "no gradients at all would not pass"


def _check_clipped_descent(drawn: Any, parameters: Any, order: float = 2) -> None:
    """What a step inside the ball does beyond the sum of the gradients is Gaussian noise; all others end on its rim."""
    loss, X, labels, fit = drawn
    (n, d), steps, path = X.shape, fit.steps, fit.history
    assert path.shape == (steps + 1, d)
    assert np.array_equal(path[-1], fit.w)
    norms, most = np.linalg.norm(path, ord=order, axis=1), 20
    assert norms.max() <= 1 + 1e-12
    inside = np.flatnonzero(norms[1:] < 1 - 1e-9)[:most]
    assert inside.size >= 3
    rates = fit.step_size * (1 - np.arange(steps) / steps)
    noise = [(path[t] - path[t + 1]) / rates[t] * n - _clipped_sum(loss, X, labels, path[t]) for t in inside]
    z = np.array(noise) / fit.noise_scale
    assert abs(z.mean()) < 6.2 / np.sqrt(z.size)
    assert abs((z**2).mean() - 1) < 9 * np.sqrt(2 / z.size)  # of so few, squares have a longer tail
    longest = 1.0 if fit.coordinates == "float64" else 1 + np.sqrt(d) / 16383 + 40960 * fit.resolution  # points.md
    assert longest < 1.005
    assert fit.noise_scale == pytest.approx(4.225 * 2 * np.sqrt(steps) * longest, rel=1e-3)  # replace-one, (1, 1e-6)


def _check_descent(drawn: Any, parameters: Any) -> None:
    """Step by step from zero: gradients of all records, back into the ball, and at last the mean of the points."""
    X, y, fit = drawn
    w, path = np.zeros(X.shape[1]), []
    for _ in range(51):
        path.append(w)
        w = w - 0.05 * (2 / len(X)) * (X.T @ (X @ w - y))
        w = w / max(1.0, float(np.linalg.norm(w)))
    assert np.linalg.norm(path[-1]) > 0.1
    assert np.allclose(fit.history, path, rtol=0, atol=1e-12)
    assert np.allclose(fit.w, np.mean(path[:-1], axis=0), rtol=0, atol=1e-12)


def _check_vectors(drawn: Any, parameters: Any) -> None:
    """What a release is beyond the sum of the shortened vectors is noise of the kind and scale that it names."""
    kind, X, clip, mean, found = drawn
    norms = np.linalg.norm(X, axis=1)
    assert 0.2 < (norms > clip).mean() < 0.8
    exact = (X * np.minimum(1, clip / norms)[:, None]).sum(axis=0)
    scale = clip * (2 * 4.225 if kind == "gaussian" else 2 * np.sqrt(X.shape[1]))  # replace-one, at (1, 1e-6) and 1
    factor = len(X) if mean else 1
    assert all(one.noise_scale * factor == pytest.approx(scale, rel=1e-3) for one in found)
    z = np.concatenate([one.value * factor - exact for one in found]) / scale
    shape = stats.norm() if kind == "gaussian" else stats.laplace()
    assert stats.kstest(z, shape.cdf).pvalue > 1e-9
    assert stats.kstest(z, lambda x: shape.cdf(x / 1.5)).pvalue < 1e-9


def _check_good_number(drawn: Any, parameters: Any) -> None:
    """As near to the least mean loss as the bound says, which few numbers are."""
    kind, x, choice = drawn

    def losses(points: Any) -> Any:
        away = np.abs(x - np.asarray(points)[..., None])
        return (away if kind == "absolute deviation" else away**2).mean(axis=-1)

    least = losses(np.median(x) if kind == "absolute deviation" else x.mean())
    some = losses(np.arange(0, 121, 2.0)) - least
    assert losses(choice.w[0]) - least <= choice.bound < np.quantile(some, 0.2)


def _check_clipped_descent_in_a_box(drawn: Any, parameters: Any) -> None:
    _check_clipped_descent(drawn, parameters, order=np.inf)


def _check_nearest_point_of_a_ball(drawn: Any, parameters: Any) -> None:
    far, w = drawn
    assert np.allclose(w, far / math.hypot(*far), rtol=1e-12)


def _check_nearest_point_of_a_box(drawn: Any, parameters: Any) -> None:
    far, w = drawn
    assert np.array_equal(w, [min(max(v, -1.0), 1.0) for v in far])


def _check_noisy_moments(drawn: Any, parameters: Any) -> None:
    """Means within 8 standard deviations of the exact ones; least squares of them, in the ball."""
    X, y, fit = drawn
    deviation = fit.noise_scale
    exact = 4.225 * np.sqrt(4.5) / len(X)
    assert 0.999 * exact <= deviation <= 1.005 * exact  # points that are rounded first lie a little farther apart
    assert np.abs(fit.gram - X.T @ X / len(X)).max() < 8 * deviation
    assert np.abs(fit.cross - X.T @ y / len(X)).max() < 8 * deviation
    assert np.linalg.norm(fit.w) <= 1 + 1e-12
    gradient = 2 * (fit.gram + fit.ridge * np.eye(len(fit.w))) @ fit.w - 2 * fit.cross
    assert gradient @ fit.w + np.linalg.norm(gradient) < 1e-6  # nothing in the ball lies further downhill


def _check_good_point(drawn: Any, parameters: Any) -> None:
    """Of some thousand points, one that is nearly as good as any of the ball."""
    X, labels, choice = drawn

    def losses(points: Any) -> Any:  # one by one: all at once they take gigabytes
        return np.array([np.log1p(np.exp(-labels * (X @ w))).mean() for w in points])

    ticks = np.linspace(-4, 4, 41)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    of_grid = losses(grid)
    excess = of_grid[np.linalg.norm(grid, axis=1) <= 4]
    excess -= excess.min()
    by_luck = 2 * 4.02 / len(X) * (math.log(1000) + 20)  # of e^-20
    assert 900 < choice.candidates < 1100
    assert losses(choice.w[None])[0] - of_grid.min() < by_luck + 0.005 < np.median(excess) / 5


ORACLES: dict[str, Any] = {
    "descent": _check_descent,
    "clipped sums with noise": _check_vectors,
    "a good number": _check_good_number,
    "clipped gradients": _check_clipped_gradients,
    "clipped gradients of rounded points": _check_clipped_gradients_of_rounded_points,
    "clipped descent": _check_clipped_descent,
    "clipped descent in a box": _check_clipped_descent_in_a_box,
    "nearest point of a ball": _check_nearest_point_of_a_ball,
    "nearest point of a box": _check_nearest_point_of_a_box,
    "noisy moments": _check_noisy_moments,
    "a good point": _check_good_point,
}
