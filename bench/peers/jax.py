"""jax: noisy descent as one compiled loop. Its noise is neither discrete nor secure."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np

from .inputs import labels_of, points

PACKAGES = ("jax", "jaxlib")


def descent(
    n: int, *, loss: str, d: int, kind: str, steps: int, clip: float, radius: float, deviation: float, rate: float
) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    X, y = points(n, d, kind)
    inputs = jax.device_put(X), jax.device_put(labels_of(loss, y).astype(kind))

    def descend(X: Any, labels: Any, key: Any) -> Any:
        norms = jnp.sqrt((X * X).sum(axis=1))

        def step(w: Any, key: Any) -> Any:
            score = X @ w
            slope = 2 * (score - labels) if loss == "squared" else -labels / (1 + jnp.exp(labels * score))
            slope = slope / jnp.maximum(jnp.abs(slope) * norms, clip)
            w = w - rate / n * (clip * (slope @ X) + deviation * jax.random.normal(key, (d,), X.dtype))
            return w * jnp.minimum(1, radius / jnp.linalg.norm(w)), None

        return jax.lax.scan(step, jnp.zeros(d, X.dtype), jax.random.split(key, steps))[0]

    compiled, seeds = jax.jit(descend), count()
    return lambda: np.asarray(compiled(*inputs, jax.random.key(next(seeds))))


TASKS = {"descent": descent}
