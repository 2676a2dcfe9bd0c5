"""Throughput, from sizes that fit into the first cache to sizes that fill memory: a `Curve` is a case at every point.

A curve owes its readers three lines over one axis: ours, numpy's, and what this machine could do at most (`limits.py`)
with the bytes and random words that the work cannot do without. It measures nothing itself and, as cases do, names the
oracle that the tests hold ours against.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Any, Literal

from fastdp import sets

from ..peers.inputs import float_scores, int_values
from . import selection
from .answering import weights
from .learning import literals
from .noise import gaussian, laplace
from .optimizing import descent
from .optimizing.inputs import DELTA, EPSILON
from .registry import Call, Case, Side
from .traffic import Traffic

Axis = Literal["domain cells", "dimension", "records", "candidates"]
Make = Callable[[int], Call]  # as of a Side: prepares n records, cells or candidates

ENTRIES = 2_000_000  # of points, where d varies
BITS = 1 << 26  # of records, where d varies
STEPS = 10
NARROW, COLUMNS = 8, 32  # of the points and of the bits, where n varies
SECONDS = 0.5  # that the rounds of a point take, about


@dataclass(frozen=True)
class Curve:
    """The same work at growing sizes x."""

    name: str
    room: str
    title: str
    axis: Axis
    unit: str  # what an element is
    points: tuple[int, ...]
    ours: Callable[[int], Make]
    numpy: Callable[[int], Make]
    traffic: Callable[[int], Traffic]  # of an element
    oracle: str
    drawn: Callable[[int], Callable[[int], Any]]
    size: Callable[[int], int] = lambda x: x  # the n at x: other than x where x is the dimension
    elements: Callable[[int], int] = lambda x: 1  # in one of n
    burst: int = 1  # of the n in one timed round, at least: a call on few is too short for the clock
    numpy_name: str = "numpy"
    parameters: tuple[tuple[str, float], ...] = ()
    threads: int = 1

    def case(self, x: int) -> Case:
        """The work at x."""
        n = self.size(x)
        return Case(
            name=f"{self.name}@{x}",
            room=self.room,
            work=f"{self.title}, {x:,} {self.axis}",
            n=n,
            ours=Side("fastdp", self.ours(x), threads=self.threads),
            rivals=(Side(self.numpy_name, self.numpy(x)),),
            targets=(),
            oracle=self.oracle,
            drawn=self.drawn(x),
            parameters=MappingProxyType(dict(self.parameters)),
            calls=-(-self.burst // n),
        )

    def quick_points(self, most: int) -> tuple[int, ...]:
        """The points of a run that only shows that everything works."""
        return tuple(x for x in self.points if x <= most)


def _domains() -> tuple[int, ...]:
    return tuple(1 << power for power in range(10, 27, 2))


def _powers() -> tuple[int, ...]:
    return tuple(10**power for power in range(3, 8))


def _always(make: Any) -> Callable[[int], Any]:
    return lambda x: make


def _select_curve(method: str, title: str, words: float) -> Curve:
    choose = selection.exponential(method=method)
    return Curve(
        name=f"curve-select-{method}",
        room="selection",
        title=f"exponential mechanism, {title}, float64",
        axis="candidates",
        unit="a candidate",
        points=_domains(),
        ours=_always(selection.on(float_scores, choose)),
        numpy=_always(selection.numpy_choice("numpy exponentials", float_scores, selection.exponentials).make),
        traffic=_always(Traffic(read=8, words=words, held=8)),
        oracle="softmax",
        drawn=lambda x: selection.choices(float_scores, choose, x),
        burst=100_000,
        numpy_name="numpy exponentials",
        parameters=(("epsilon", 1.0),),
    )


def _descent_curve(name: str, title: str, points: tuple[int, ...], axis: Axis, *, box: bool = False) -> Curve:
    """What a call does once (norms, checks, the noise's scale) counts among its steps."""
    more = {"over": sets.Box(-1.0, 1.0)} if box else {}
    by_dimension = axis == "dimension"

    def width(x: int) -> int:
        return x if by_dimension else NARROW

    def size(x: int) -> int:
        return ENTRIES // x if by_dimension else x

    def read(x: int) -> float:
        """Integer points and, for each record, a label, an exponent and a limit."""
        return 2 + 12 / width(x)

    return Curve(
        name=f"curve-descent-{name}",
        room="optimizing",
        title=f"noisy gradient descent, squared loss, {STEPS} steps, {title}",
        axis=axis,
        unit="a coordinate of a record, in a step",
        points=points,
        ours=lambda x: descent.our_descent("squared", width(x), "float64", STEPS, **more),
        numpy=lambda x: descent.numpy_descent("squared", width(x), "float64", STEPS, box=box).make,
        traffic=lambda x: Traffic(read=read(x), held=read(x) / STEPS),
        oracle=f"clipped descent{' in a box' * box}",
        drawn=lambda x: descent.drawn_descent("squared", size(x), width(x), "float64", STEPS, **more),
        size=size,
        elements=lambda x: STEPS * width(x),
        burst=1 if by_dimension else 20_000,
        parameters=(("epsilon", EPSILON), ("delta", DELTA)),
    )


def _count_curve(name: str, points: tuple[int, ...], axis: Axis, *, packed: bool) -> Curve:
    by_dimension = axis == "dimension"
    counting = literals.count_packed if packed else literals.count

    def width(x: int) -> int:
        return x if by_dimension else COLUMNS

    def size(x: int) -> int:
        return BITS // x if by_dimension else x

    def rival(x: int) -> Make:
        return (literals.numpy_words if packed else literals.numpy_products)(width(x)).make

    share = 1 / 8 if packed else 1.0

    def traffic(x: int) -> Traffic:
        touched = share + share / width(x)  # a label for each record
        return Traffic(read=touched, held=touched)

    of = "n d = 2^26" if by_dimension else f"{COLUMNS} columns"
    return Curve(
        name=f"curve-literals-{name}",
        room="learning",
        title=f"records that falsify each literal, {'packed' if packed else 'packing included'}, {of}",
        axis=axis,
        unit="a bit of a record",
        points=points,
        ours=lambda x: partial(counting, d=width(x)),
        numpy=rival,
        traffic=traffic,
        oracle="sums of bits",
        drawn=lambda x: literals.drawn_counts(counting, size(x), width(x)),
        size=size,
        elements=width,
        burst=1 if by_dimension else 1_000_000,
        numpy_name="numpy, packed" if packed else "numpy",
    )


def _noise_curve(name: str, title: str, ours: Make, numpy: Make, drawn: Any, words: float, **of: float) -> Curve:
    return Curve(
        name=f"curve-{name}",
        room="noise",
        title=f"{title}, new array",
        axis="records",
        unit="a number",
        points=_powers(),
        ours=_always(ours),
        numpy=_always(numpy),
        traffic=_always(Traffic(read=0, copied=16, words=words, held=16)),
        oracle=f"{name}_law",
        drawn=_always(drawn),
        burst=100_000,
        parameters=tuple(of.items()),
    )


@cache
def curves() -> tuple[Curve, ...]:
    """Every curve, in the order of the report."""
    wide = (1, 2, 5, 8, 20, 50, 200, 500, 2_000)
    narrow = (1, 4, 16, 64, 250, 500, 1_000, 2_000)
    scale = 100.0
    return (
        Curve(
            name="curve-mask",
            room="answering",
            title="multiplicative weights, a mask, evaluate and update",
            axis="domain cells",
            unit="a cell",
            points=_domains(),
            ours=_always(weights.mask_both),
            numpy=_always(weights.numpy_both),
            traffic=_always(Traffic(read=10, changed=16, held=9)),  # both twice; weights are written, too
            oracle="values before updates",
            drawn=_always(weights.drawn_values(weights.mask_both, weights.half, 3)),
            burst=1_000_000,
        ),
        _select_curve("buckets", "by buckets", 0.0),
        _select_curve("gumbel", "by Gumbel-max", 0.5),  # 32 bits each, but for a few
        _descent_curve("ball-d", "ball, n d = 2,000,000", wide, "dimension"),
        _descent_curve("box-d", "box, n d = 2,000,000", wide, "dimension", box=True),
        _descent_curve("ball-n", f"ball, {NARROW} columns", _powers(), "records"),
        _descent_curve("box-n", f"box, {NARROW} columns", _powers(), "records", box=True),
        _count_curve("packed-d", narrow, "dimension", packed=True),
        _count_curve("d", narrow, "dimension", packed=False),
        _count_curve("packed-n", _powers(), "records", packed=True),
        _noise_curve(
            "laplace", "Laplace noise, int64, scale 100", laplace.our_laplace(int_values, scale),
            laplace.numpy_exponentials(scale), laplace.laplace_drawn(scale), 0.5, scale=scale,
        ),
        _noise_curve(
            "gaussian", "Gaussian noise, int64, sigma 100", gaussian.our_gaussian(scale),
            gaussian.numpy_gaussian(scale), gaussian.gaussian_drawn(scale),
            0.9, sigma=scale,  # 32 bits and a coin of 16; 0.85 are accepted
        ),
    )  # fmt: skip
