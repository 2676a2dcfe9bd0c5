"""What each function of the C interface does, on arrays and numbers: thin calls of the library.

Arguments are those of `table.py`, arrays in place of pointers and None in place of NULL; lengths come only where no
array has them. What is wrong is an exception, as everywhere in fastdp; `embedded.py` makes statuses of them.
"""

from __future__ import annotations

import itertools
from math import exp, inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

import fastdp

from ..kernels import layout
from ..mechanisms import noise
from ..optimizing.losses.registry import ROWS
from ..optimizing.sets import number_of
from ..randomness import noise_draws, noise_plans
from ..randomness.keys import Randomness, fill_words, fresh_key
from ..support.checks import integer, moderate, non_negative, power_of_two
from ..support.errors import DomainError
from ..support.shown import shown
from ..support.threads import run_chunks

Vector = NDArray[np.float64]
Mask = NDArray[np.uint8]

CELLS = 1 << 20  # that one thread works on at a time: 0.2 ms


# --- sources of keys

_sources: dict[int, Randomness] = {}
_numbers = itertools.count(1)


def rng_seeded(seed: int, rng: NDArray[np.int64]) -> None:
    number = next(_numbers)
    source = Randomness()
    source.__setstate__({"_seed": seed, "_releases": 0})  # the warning would be printed; the header has it
    _sources[number] = source
    rng[0] = number


def rng_free(rng: int) -> None:
    if _sources.pop(rng, None) is None:
        raise ValueError(f"rng={rng}: must come from fastdp_rng_seeded")


def _source(rng: int) -> Randomness | None:
    if not rng:
        return None
    try:
        return _sources[rng]
    except KeyError:
        raise ValueError(f"rng={rng}: must be 0, for fresh keys, or come from fastdp_rng_seeded") from None


def random_words(rng: int, out: NDArray[np.uint64]) -> None:
    fill_words(fresh_key(_source(rng)), out)


# --- noise and selection


def _one_of(values: Any, out: Any) -> Any:
    """`out` for values that lie there: noise in place writes what it has just read, and takes a tenth less time."""
    return out if isinstance(out, np.ndarray) and values.ctypes.data == out.ctypes.data else values


def _add_noise(release: Any, values: Any, sensitivity: float, rest: Any, **privacy: float) -> None:
    *resolution, rng, out = rest
    grid, source = _grid(*resolution), _source(rng)
    release(_one_of(values, out), sensitivity=sensitivity, resolution=grid, out=out, rng=source, **privacy)


def laplace(values: Any, sensitivity: float, epsilon: float, *rest: Any) -> None:
    _add_noise(fastdp.laplace, values, sensitivity, rest, epsilon=epsilon)


def gaussian(values: Any, sensitivity: float, epsilon: float, delta: float, *rest: Any) -> None:
    _add_noise(fastdp.gaussian, values, sensitivity, rest, epsilon=epsilon, delta=delta)


def gaussian_zcdp(values: Any, sensitivity: float, rho: float, *rest: Any) -> None:
    _add_noise(fastdp.gaussian, values, sensitivity, rest, rho=rho)


def _grid(resolution: float = 0.0) -> float | None:
    return resolution if resolution != 0 else None  # which NaN is not


def _choose(select: Any, scores: Any, sensitivity: float, epsilon: float, rest: Any) -> None:
    monotonic, rng, chosen = rest
    flag = bool(integer("monotonic", monotonic, least=0, most=1))
    chosen[0] = select(scores, sensitivity=sensitivity, epsilon=epsilon, monotonic=flag, rng=_source(rng))


def exponential_mechanism(scores: Any, sensitivity: float, epsilon: float, *rest: Any) -> None:
    _choose(fastdp.exponential_mechanism, scores, sensitivity, epsilon, rest)


def permute_and_flip(scores: Any, sensitivity: float, epsilon: float, *rest: Any) -> None:
    _choose(fastdp.permute_and_flip, scores, sensitivity, epsilon, rest)


# --- counting


def literal_counts(records: Mask, labels: Mask, of_negatives: Any, of_positives: Any) -> None:
    from ..learning.examples import Examples

    examples = Examples(records, labels)
    examples.read(keep=False)
    found = examples.falsified()
    of_negatives.reshape(-1)[:] = found.of_negatives
    of_positives.reshape(-1)[:] = found.of_positives


# --- multiplicative weights


def evaluate_mask(weights: Vector, mask: Mask, total: float, value: Vector) -> None:
    from ..kernels.weights import sum_where

    _evaluate(weights, lambda i, j: sum_where(weights[i:j], mask[i:j]), total, value)


def evaluate_values(weights: Vector, values: Vector, total: float, value: Vector) -> None:
    from ..kernels.weights import sum_valued

    _evaluate(weights, lambda i, j: sum_valued(weights[i:j], values[i:j]), total, value)


def update_mask(weights: Vector, mask: Mask, rate: float, total: Vector) -> None:
    from ..kernels.weights import scale_masked

    by = exp(_rate(rate))
    _update(weights, lambda i, j: scale_masked(weights[i:j], mask[i:j], by), total)


def update_values(weights: Vector, values: Vector, rate: float, total: Vector) -> None:
    from ..kernels.weights import scale_valued

    _check_values(values)
    rate = _rate(rate)
    _update(weights, lambda i, j: scale_valued(weights[i:j], values[i:j], rate), total)


def _evaluate(weights: Vector, kernel: Any, total: float, value: Vector) -> None:
    from ..kernels.weights import sum_cells

    if non_negative("total", total, toward=0) == 0:
        total = _over(lambda i, j: sum_cells(weights[i:j]), weights)
    share = _over(kernel, weights) / total if total > 0 else inf
    if not isfinite(share):
        raise DomainError("weights: must be finite, and at least 0, and not all 0")
    value[0] = share


def _update(weights: Vector, kernel: Any, total: Vector) -> None:
    from ..kernels.weights import multiply_cells, sum_cells

    after = _over(kernel, weights)
    if not 0 < after < inf:
        raise DomainError("weights: must be finite, and at least 0, and not all 0")
    if not 1e-20 < after < 1e20:
        factor = weights.size / after
        run_chunks(lambda i, j: multiply_cells(weights[i:j], factor), weights.size, CELLS)
        after = _over(lambda i, j: sum_cells(weights[i:j]), weights)
    total[0] = after


def _over(kernel: Any, weights: Vector) -> float:
    return float(sum(run_chunks(kernel, weights.size, CELLS)))


def _rate(rate: float) -> float:
    if not -300 <= rate <= 300:
        raise ValueError(f"rate={shown(rate)}: must be between -300 and 300")
    return rate


def _check_values(values: Vector) -> None:
    from ..kernels.weights import count_outside

    if any(run_chunks(lambda i, j: count_outside(values[i:j]), values.size, CELLS)):
        raise ValueError("values: must lie in [0, 1]; there is another one, or a NaN, among them")


# --- gradients

LOSSES = {row.name: row for row in ROWS}


def gradient_sum(
    records: Vector, labels: Vector | None, w: Vector, loss: int, parameter: float, derivative: int, clip: float,
    resolution: float, out: NDArray[np.int64],
) -> None:  # fmt: skip
    from ..optimizing.points import Points
    from ..optimizing.step_noise import limit_of

    name = list(LOSSES)[integer("loss", loss, least=0, most=len(LOSSES) - 1)]
    if name != "HUBER" and parameter != 0:
        raise ValueError(f"parameter={shown(parameter)}: must be 0 for every loss but FASTDP_HUBER")
    if (derivative != 0) != (name == "CUSTOM"):
        need = "must be a function" if name == "CUSTOM" else "must be NULL for every loss but FASTDP_CUSTOM"
        raise ValueError(f"derivative: {need}")
    n, d = records.shape
    size = moderate("clip", clip, toward=0) / power_of_two("resolution", resolution)
    if not size * n < 2.0**62 or not 1 <= size <= 2.0**41:
        raise ValueError(
            f"clip={clip!r}, resolution={resolution!r}: clip / resolution must be at least 1, at most 2^41, and below "
            "2^62 / n"
        )
    if not np.isfinite(w).all():
        raise ValueError("w: must be finite; there is a NaN or an infinity in it")
    if not (np.abs(w) <= 2.0**400).all():
        raise ValueError("w: must be at most 2^400 in magnitude")
    points = Points(records, labels, LOSSES[name].for_c(parameter, derivative), "raise")
    points.check()
    out[:] = points.gradients(w, 1 / resolution, limit_of(size, d))


# --- projections


def project_ball(point: Vector, center: Vector | None, radius: float) -> None:
    _project("BALL", point, np.zeros(point.size) if center is None else center, radius=radius, named="radius")


def project_ball_l1(point: Vector, center: Vector | None, radius: float) -> None:
    _project("BALL_L1", point, np.zeros(point.size) if center is None else center, radius=radius, named="radius")


def project_box(point: Vector, lower: Vector, upper: Vector) -> None:
    if not (lower <= upper).all():
        raise ValueError("lower: must be at most upper in every coordinate, and neither NaN")
    _project("BOX", point, lower, upper)


def project_simplex(point: Vector, total: float) -> None:
    nothing = np.zeros(point.size)
    _project("SIMPLEX", point, nothing, radius=total, named="total")


def _project(
    kind: str, point: Vector, a: Vector, b: Vector | None = None, radius: float = 1.0, named: str = "radius"
) -> None:
    from ..kernels.projections import project_one

    radius = moderate(named, radius, toward=inf)
    b = a if b is None else b
    if not np.isfinite(point).all():
        raise DomainError("point: must be finite; there is a NaN or an infinity in it")
    for name, corner in (("center" if b is a else "lower", a), ("upper", b)):
        if not (np.abs(corner) <= 2.0**400).all():
            raise ValueError(f"{name}: must be finite, and at most 2^400 in magnitude")
    project_one(
        number_of(kind), a.copy(), b.copy(), radius, point, np.empty(point.size)
    )  # copies: they may be the point


# --- for hosts that call kernels themselves


_PLAN = layout.LAPLACE_LAW + 2  # and how many bits more, and the grid


def plan_laplace_i64(sensitivity: float, epsilon: float, plan: Vector) -> None:
    _write_plan(plan, noise.laplace_noise(True, 1, sensitivity, epsilon, None))


def plan_laplace_f64(n: int, sensitivity: float, epsilon: float, resolution: float, plan: Vector) -> None:
    _write_plan(plan, noise.laplace_noise(False, n, sensitivity, epsilon, _grid(resolution)))


def plan_gaussian_i64(n: int, sensitivity: float, epsilon: float, delta: float, plan: Vector) -> None:
    _write_plan(plan, noise.gaussian_noise(True, n, sensitivity, None, epsilon, delta, None))


def plan_gaussian_f64(
    n: int, sensitivity: float, epsilon: float, delta: float, resolution: float, plan: Vector
) -> None:
    _write_plan(plan, noise.gaussian_noise(False, n, sensitivity, None, epsilon, delta, _grid(resolution)))


def _write_plan(plan: Vector, made: noise.CalibratedNoise) -> None:
    """A grid of 0 stands for integers."""
    grid, law = made.grid, made.plan
    if isinstance(law, noise_plans.LaplacePlan):
        plan[:] = (law.extra, *law.law, grid or 0.0)
    else:
        plan[:] = (law.extra, law.sigma, grid or 0.0, *law.law)


def _read_plan(plan: Vector) -> tuple[float | None, noise_plans.NoisePlan]:
    extra, scale, *rest = plan.tolist()
    if extra not in (0.0, 16.0, 32.0) or not noise_plans.MIN_SCALE <= scale <= noise_plans.MAX_SCALE:
        raise ValueError("plan: must come from fastdp_plan_laplace_* or fastdp_plan_gaussian_*")
    if plan.size == _PLAN:
        return rest[-1] or None, noise_plans.LaplacePlan(int(extra), scale, plan[1:-1].copy())
    return rest[0] or None, noise_plans.GaussianPlan(int(extra), scale, np.array(rest[1:]))


def resolve_undecided(
    key: NDArray[np.uint32], block: int, plan: Vector, out: Any, undecided: NDArray[np.int64]
) -> None:
    grid, law = _read_plan(plan)
    if (grid is None) != (out.dtype == np.int64):
        raise ValueError("plan: must be that of the entries of out, int64 or double")
    each = layout.LAPLACE_BLOCK if isinstance(law, noise_plans.LaplacePlan) else layout.GAUSSIAN_BLOCK
    integer("block", block, least=0, most=2**62 // each)
    places = undecided.tolist()
    if any(not 0 <= i < out.size for i in places):
        raise ValueError(f"undecided: must be places in out, which has n={out.size} entries")
    noise_draws.resolve_exactly(law, grid, key, out, places, block * each)
