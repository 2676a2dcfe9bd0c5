"""opacus: noisy descent of logistic regression, whole batch, by its hooks, which keep a gradient for each record."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .inputs import labels_of, points

PACKAGES = ("opacus", "torch")


def descent(
    n: int, *, d: int, steps: int, clip: float, radius: float, deviation: float, rate: float
) -> Callable[[], Any]:
    import torch
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    torch.set_num_threads(1)
    X, y = points(n, d, "float32")
    inputs, labels = torch.from_numpy(X), torch.from_numpy(labels_of("logistic", y).astype(np.float32))
    layer = torch.nn.Linear(d, 1, bias=False)
    model = GradSampleModule(layer)
    optimizer = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=rate),
        noise_multiplier=deviation / clip,
        max_grad_norm=clip,
        expected_batch_size=n,
    )

    def call() -> Any:
        torch.nn.init.zeros_(layer.weight)
        for _ in range(steps):
            optimizer.zero_grad()
            with warnings.catch_warnings():  # of a hook on points that need no gradient
                warnings.simplefilter("ignore")
                torch.nn.functional.softplus(-labels * model(inputs)[:, 0]).mean().backward()
            optimizer.step()
            with torch.no_grad():
                layer.weight *= min(1.0, radius / float(layer.weight.norm()))
        return layer.weight.detach().numpy()[0].copy()

    return call


TASKS = {"descent": descent}
