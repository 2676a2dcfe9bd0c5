"""The nearest point of a ball or a box."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fastdp import sets
from fastdp.kernels.projections import project_one

from ..registry import Call, Case, Side, Target, faster, make_case
from ..traffic import copied_once
from .inputs import RADIUS

_case = partial(make_case, "optimizing")


def far_away(n: int) -> Any:
    return np.random.default_rng(0).normal(0, 3, n)


def _project(over: Any) -> Callable[[int], Call]:
    """As a step of a descent does: the compiled function, on a point that lies outside."""

    def make(n: int) -> Call:
        far, w, space, here = far_away(n), np.empty(n), np.empty(n), over.of_dimension(n).projection
        move: Any = project_one

        def call() -> Any:
            w[:] = far
            move(here.kind, here.a, here.b, here.radius, w, space)
            return w

        return call

    return make


def _numpy_ball(n: int) -> Call:
    far = far_away(n)
    return lambda: far * min(1.0, RADIUS / np.linalg.norm(far))


def _numpy_box(n: int) -> Call:
    far = far_away(n)
    return lambda: far.clip(-1, 1)


def _projection_case(name: str, over: Any, rival: Callable[[int], Call], target: Target | None = None) -> Case:
    return _case(
        f"project-{name}",
        f"the nearest point of a {name}, 1,000 coordinates, compiled function",
        1_000,
        _project(over),
        (Side("numpy", rival), target),
        traffic=copied_once(16),
        oracle=f"nearest point of a {name}",
        drawn=lambda n: (far_away(n), _project(over)(n)()),
        calls=1_000,
    )


CASES = (
    _projection_case("ball", sets.Ball(RADIUS), _numpy_ball, faster("numpy", avx512=1.2, avx2=1.2)),
    _projection_case("box", sets.Box(-1, 1), _numpy_box),
)
