"""What `fastdp.warmup` calls of this room: gradients and moments of every shape of loss, losses at points of
covering nets."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..kernels import covering_nets, losses, tangents
from ..support.warmup import Steps
from .grid_points import GridPoints
from .losses import AbsoluteDeviation, Gradient, Logistic, Loss, Softmax, SquaredDistance
from .points import DescentSteps, Points
from .problem import Problem
from .sets import Box
from .stepwise import walk


def steps() -> Steps:
    """One step for each kernel and type of its arguments."""
    made: Steps = [("losses at points", _add_losses)]
    for loss, dtype in (
        (Logistic(), np.float64),
        (Logistic(), np.float32),
        (SquaredDistance(), np.float64),
        (AbsoluteDeviation(), np.float64),
    ):
        made.append((f"gradients of {type(loss).__name__}, {np.dtype(dtype)}", partial(_descend, loss, dtype)))
    for dtype in (np.float64, np.float32):
        made.append((f"gradients of classes, {np.dtype(dtype)}", partial(_sum, lambda: Softmax(2), dtype)))
        made.append((f"gradients that are given, {np.dtype(dtype)}", partial(_sum, lambda: Gradient(_none, 4), dtype)))
    return made


def _none(w: Any, x: Any, y: Any, out: Any) -> None:
    """No gradient."""


def _sum(make: Callable[[], Loss], dtype: Any) -> None:
    points = Points(np.ones((3, 2), dtype), np.ones(3), make(), "raise")
    points.check()
    points.gradients(np.zeros(4), 1.0, 1.0)
    points.plain_gradients(np.zeros(4))


def _add_losses() -> None:
    columns, net, one, out = np.zeros((4, 3)), np.zeros((4, 2)), np.ones(3), np.zeros(2, np.int64)
    for number, add in covering_nets.ADDERS.items():
        if number != losses.CUSTOM:  # which calls a function that is not there
            add(columns, one, one, net, 1.0, 0, 1.0, 1.0, out)
    losses.losses_into(losses.SQUARED, 1.0, 0, one, one, np.empty(3))
    sums, two = np.zeros((2, tangents.SUMS), np.int64), np.zeros((2, 4))
    for add in tangents.TANGENTS.values():
        add(columns, one, one, net, 1.0, 0, 1.0, 1.0, 1.0, sums)
    tangents.raise_bounds(net, np.zeros(2), two, two, 0.0, 0.0, np.zeros(2))


def _descend(loss: Any, dtype: Any) -> None:
    points = Points(np.ones((3, 2), dtype), None if loss.labels is None else np.ones(3), loss, "raise")
    points.check()
    problem = Problem.of(loss, Box(-1, 1), points.d)
    step = DescentSteps(1.0, 0.0, np.ones(1), problem.projection)
    noise = np.zeros((1, points.d), np.int64)
    points.descend(problem.start, 1.0, 1.0, noise, step)
    points.gradients(problem.start, 1.0, 1.0)
    walk(lambda w, _: points.plain_gradients(w), problem, step, noise, None, lambda *_: None)
    walk(lambda w, _: points.gradients(w, 1.0, 1.0), problem, step, noise, None, lambda *_: None)
    if loss.family == "margin":
        integers = GridPoints(points, np.zeros(8, np.uint32), 2**25)
        integers.descend(problem.start, 1.0, noise, step)
        integers.gradients(problem.start, 0, 1.0)
    points.vectors(1.0, 1.0)
    points.moments(1.0, 1.0, 1.0)
    if loss.family == "margin":
        points.rounded_moments(1.0, 1.0, 1, np.zeros(8, np.uint32))
    problem.over.project(problem.start)
