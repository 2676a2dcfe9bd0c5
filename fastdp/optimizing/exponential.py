"""Minimising a loss by the exponential mechanism: a point is the likelier, the less the records lose there.

On the points of a net, for any loss in up to four dimensions; and on a line, for the mean and the median, among as many
points as floats tell apart, of which it looks at a few thousand. Scores are exact integers, and so is the law that is
drawn from. exponential.md has the proofs of privacy and of the promised excess risk.
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import accumulate, count
from math import ceil, comb, exp, floor, frexp, gamma, inf, log, log2, pi, sqrt
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import exact
from ..budget import Budget, charge
from ..checks import one_of, positive, power_of_two, probability, whole
from ..directed import lower
from ..privacy import NEIGHBORS, BoundedRange, Guarantee, Neighbors
from ..progress import Progress, Report, reporting
from ..randomness import Randomness, fresh_key, word_source
from ..rows import Block
from ..scores import terms_of_range
from ..selection import draw_one
from ..threads import run_chunks
from .losses import SIGN, AbsoluteDeviation, Custom, SquaredDistance
from .points import Points
from .problem import OUTSIDE, Outside, Problem, read_points
from .sets import Ball, Box, ConvexSet, Simplex, Vector

Method = Literal["auto", "grid", "exact"]
METHODS = ("auto", "grid", "exact")
Key = NDArray[np.uint32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST_DIMENSIONS = 4
MOST_POINTS = 2**22  # of a net
MOST_WORK = 2**38  # losses, one for each record and point: a minute or several
_DEFAULT_POINTS, _DEFAULT_WORK = 2**20, 2**31  # of a net that nobody asked for: a second
_MOST_UNITS = 2**36  # the largest loss of a record, in units of the grid
_PRIVATE_UNITS = 2**22  # the same where n is private: 2^40 records add up to 2^62 units
_PART = 2**30  # losses between two reports
_CHUNK = 2**20  # losses that are worth a thread
_LINE_BITS, _MOST_LINE = 40, 2**62  # points on a line: by default, and at most
_HALF = 31  # bits of the lower part of a position on a line: sums of either part fit int64
_INSTEAD = "noisy_projected_gradient_descent takes any dimension"
_LN2_UP = Fraction(818323753292969962227, 2**70)  # above ln 2, by less than 2^-70


@dataclass(frozen=True, eq=False)
class PrivateChoice:
    """The point that the exponential mechanism chose.

    w           the point
    method      "grid" or "exact"
    candidates  how many points there were to choose from
    spacing     how far apart they are
    bound       with probability 1 - beta the mean loss at w, regulariser included, exceeds the least one of the set by
                at most this, if the declared bounds hold
    beta        the same
    resolution  the grid that losses were rounded to; None for "exact", which rounds points instead
    guarantee   what the choice promises
    """

    w: Vector
    method: str
    candidates: int
    spacing: float
    bound: float
    beta: float
    resolution: float | None
    guarantee: Guarantee

    def _shown(self) -> list[tuple[str, str]]:
        w = np.array2string(self.w, precision=4)
        grid = "" if self.resolution is None else f", losses on a grid of {self.resolution:.3g}"
        return [
            ("w", w),
            ("method", f"{self.method}: one of {self.candidates:,} points, {self.spacing:.3g} apart{grid}"),
            ("excess risk", f"at most {self.bound:.3g} with probability {1 - self.beta:g}"),
            ("guarantee", str(self.guarantee)),
        ]

    def __repr__(self) -> str:
        rows = self._shown()
        wide = max(len(name) for name, _ in rows)
        return f"{type(self).__name__}\n" + "\n".join(f"  {name:<{wide}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{html.escape(value)}</td></tr>" for name, value in self._shown())
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def exponential_erm(
    X: Any,
    y: Any = None,
    *,
    loss: Any,
    over: ConvexSet,
    epsilon: float,
    method: Method = "auto",
    spacing: float | None = None,
    resolution: float | None = None,
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> PrivateChoice:
    """Minimise the mean loss over a convex set, privately: the exponential mechanism, in up to four dimensions.

    X, y         points and labels: arrays, data frames, Parquet files; y may name a column of X
    loss, over   one of `fastdp.losses`, perhaps + L2(lam); a Ball, a Box or the Simplex of `fastdp.sets`
    method       "grid": any loss, on the points of a net; takes the loss of every record at every point
                 "exact": SquaredDistance and AbsoluteDeviation in one dimension, on a grid as fine as floats
                 "auto": "exact" where there is one, otherwise "grid"
    spacing      how far apart neighbours in the net are; a power of two for "exact". By default where the bound is
                 least, as far as 2^31 losses can do, and for "exact" a 2^40th of the set
    resolution   the grid that losses are rounded to, a power of two, for "grid"
    records      under add-remove neighbours, where n is private: a public number that takes its place; `.bound` holds
                 if there are as many
    progress     for "grid": True for a bar, or a callable (done, total, what)

    Guarantee    bounded range epsilon, which is epsilon-DP and epsilon^2/8-zCDP, for any data, however wrong the bounds
                 that the loss declares
    Proof        exponential.md, theorems 1 to 3
    Accuracy     `.bound` of the result (theorems 4 and 5), if the declared bounds hold
    Cost         "grid": 0.2 ns for each record and point, 1.3 of Logistic; "exact": one pass, or a sort, and 5 ms
    Not covered  the time that a call takes (exponential.md, "Time"); a `Custom` value that looks at more than its score
                 and label
    Raises       ValueError and DomainError before anything is spent: more than four dimensions, nets of more than 2^22
                 points or 2^38 losses, missing bounds

    Examples
    >>> import fastdp, numpy as np
    >>> ages = np.random.default_rng(0).gamma(9.0, 5.0, size=(2_000, 1))
    >>> median = fastdp.exponential_erm(
    ...     ages, loss=fastdp.losses.AbsoluteDeviation(), over=fastdp.sets.Box(0, 120), epsilon=1.0
    ... )
    >>> bool(abs(median.w[0] - np.median(ages)) < 3)
    True
    >>> X = np.random.default_rng(1).normal(size=(5_000, 2)).clip(-1, 1) / 2
    >>> line = fastdp.exponential_erm(
    ...     X, X[:, 0] > 0, loss=fastdp.losses.Hinge(x_norm=1), over=fastdp.sets.Ball(4), epsilon=1.0
    ... )
    >>> bool(line.w[0] > abs(line.w[1]))
    True
    """
    one_of("method", method, METHODS)
    one_of("outside", outside, OUTSIDE)
    one_of("neighbors", neighbors, NEIGHBORS)
    epsilon, beta = positive("epsilon", epsilon, toward=0), probability("beta", beta)
    if spacing is not None:
        spacing = positive("spacing", spacing, toward=inf)
    if resolution is not None:
        resolution = power_of_two("resolution", resolution)
    if (records is None) == (neighbors == "add-remove"):
        need = "given" if records is None else "None"
        raise ValueError(f"records={records!r}: must be {need} with neighbors={neighbors!r}")
    if records is not None:
        records = whole("records", records, least=1)
    points, problem = read_points(X, y, loss, over, None, outside, records)
    n = points.n if records is None else records
    plan = _plan_of(_Terms(problem, points.d, n, epsilon, beta, neighbors), method, spacing, resolution)
    parameters = {"epsilon": epsilon, "method": plan.method, "spacing": plan.spacing}
    with charge(budget, plan.guarantee, "exponential_erm", parameters) as final:
        with reporting(progress, "minimising") as report:
            draw = plan.read(points, report)
        key = fresh_key(rng)
        final()
        w = draw(key)
    return PrivateChoice(
        w, plan.method, plan.candidates, plan.spacing, plan.bound, beta, plan.resolution, plan.guarantee
    )


class _Terms(NamedTuple):
    """What is asked for. All of it is public: n is the number of records, or what takes its place."""

    problem: Problem
    d: int
    n: int
    epsilon: float
    beta: float
    neighbors: Neighbors

    @property
    def one_way(self) -> bool:
        """Whether one record moves all scores in one direction: its own losses are added, or taken away."""
        return self.neighbors == "add-remove"

    @property
    def slope(self) -> float:
        """The Lipschitz constant of what is minimised, regulariser included."""
        return self.problem.loss.lipschitz(self.problem.over) + self.problem.ridge


class _Plan(ABC):
    """One of the methods: public numbers first, then the records, then a draw."""

    method: str
    candidates: int
    spacing: float
    bound: float
    resolution: float | None
    guarantee: Guarantee

    @abstractmethod
    def read(self, points: Points, report: Report) -> Callable[[Key], Vector]:
        """Score the points on the records: the last thing that may fail before the charge is final."""


def _plan_of(terms: _Terms, method: Method, spacing: float | None, resolution: float | None) -> _Plan:
    """The method that is asked for, or that there is; ValueError says why there is none."""
    over = terms.problem.over
    if terms.d > MOST_DIMENSIONS:
        raise ValueError(
            f"X: d={terms.d} columns: must be at most {MOST_DIMENSIONS}, as nets grow like the d-th power; {_INSTEAD}"
        )
    if not isinstance(over, Ball | Box | Simplex):
        raise ValueError(f"over={over!r}: must be a Ball, a Box or the Simplex, which have nets; {_INSTEAD} and set")
    reason = "" if method == "grid" else _no_line(terms, spacing, resolution)
    if reason and method == "exact":
        raise ValueError(f"method='exact': {reason}")
    if reason or method == "grid":
        return _Grid(terms, spacing, resolution)
    return _LINES[type(terms.problem.loss)](terms, spacing)


def expected_excess(problem: Problem, n: int, epsilon: float, neighbors: Neighbors) -> float:
    """What `exponential_erm` promises in expectation; ValueError if it refuses the problem.

    A bound of a + b ln(1/beta) but with probability beta, for every beta, is one of a + b in expectation.
    """
    terms = _Terms(problem, len(problem.start), n, epsilon, exp(-1.0), neighbors)
    return _plan_of(terms, "auto", None, None).bound


# --- what the theorems promise


def net_excess(
    candidates: int, *, n: float, eta: float, resolution: float, cover: float, slope: float, beta: float
) -> float:
    """The excess risk of a choice from a net, but with probability beta: exponential.md, theorem 4.

    eta      what a unit of the grid counts in the exponent
    cover    no point of the set is further from the net
    slope    the Lipschitz constant of what is minimised
    """
    return log(candidates / beta) / eta * resolution / n + cover * slope + 3 * resolution


def line_excess(steps: int, *, n: float, eta: float, range: float, spacing: float, slope: float, beta: float) -> float:
    """The excess risk of a choice among steps + 1 points of a line, but with probability beta: theorem 5.

    eta      what a loss of 1 counts in the exponent
    range    how far apart the losses of all records together may lie
    """
    if not eta:
        return inf
    part = steps / max(1.0, eta * range)  # of the points lose no more than 1 / eta
    by_convexity = 1 + log((steps + 1) / max(1.0, part - 1))
    return (min(by_convexity, log(steps + 1)) - log(beta)) / eta / n + 3 * slope * spacing


# --- nets


class Net(NamedTuple):
    """Points of a set, coordinate by coordinate, with zeros up to four; no point of the set is further than `cover`."""

    points: Floats
    cover: float


def size_of_net(over: ConvexSet, spacing: float) -> tuple[float, float]:
    """Bounds of the number of points of a net, without making it."""
    if isinstance(over, Box):
        size = 1.0
        for low, high in zip(over.lower, over.upper, strict=True):
            size *= float(_cells(high - low, spacing))
        return size, size
    if isinstance(over, Simplex):
        d, parts = over._known(), _cells(over.total, spacing)
        size = float(min(comb(parts + d - 1, d - 1), 2**1000)) if parts < 2**62 or d == 1 else inf
        return size, size
    assert isinstance(over, Ball)
    # cubes around the points cover a smaller ball, and lie in a larger one
    d, ratio = over._known(), over.radius / spacing
    volume, half = (pi ** (d / 2) / gamma(d / 2 + 1), sqrt(d) / 2) if over.order == 2 else (2**d / gamma(d + 1), d / 2)
    most = volume * (ratio + half) ** d * (1 + 1e-9)
    return volume * max(ratio - half, 0.0) ** d * (1 - 1e-9), max(most, 1.0)


def net_of(over: ConvexSet, spacing: float) -> Net:
    """The points of the grid of this spacing that lie in the set: exponential.md, lemma 3."""
    d = over._known()
    if isinstance(over, Box):
        axes, cover = [], 0.0
        for low, high in zip(over.lower, over.upper, strict=True):
            cells = _cells(high - low, spacing)
            step = (high - low) / cells
            axes.append(low + (np.arange(cells) + 0.5) * step)
            cover += (step / 2) ** 2
        return Net(_four([axis.reshape(-1) for axis in np.meshgrid(*axes, indexing="ij")]), sqrt(cover))
    if isinstance(over, Simplex):
        parts = _cells(over.total, spacing)
        places, rest = np.zeros((0, 1), np.int64), np.array([parts])
        for _ in range(d - 1):
            places, numbers, rest = _extended(places, rest + 1, rest)
            rest = rest - numbers
        places = np.concatenate((places, rest[None]))
        return Net(_four(list(places * (over.total / parts))), over.total / parts * sqrt(d) / 2)
    assert isinstance(over, Ball)
    ratio = over.radius / spacing * (1 + 1e-12)
    places, left = np.zeros((0, 1), np.int64), np.array([ratio**over.order])
    for _ in range(d):
        most = np.floor(left ** (1 / over.order) * (1 + 1e-15)).astype(np.int64)
        places, numbers, left = _extended(places, 2 * most + 1, left)
        shift = np.repeat(most, 2 * most + 1)
        places[-1] -= shift
        left = np.maximum(left - np.abs(numbers - shift) ** over.order, 0)
    coordinates = [c + k * spacing for c, k in zip(over.at, places, strict=True)]
    return Net(_four(coordinates), min(spacing * sqrt(d), over.radius))


def _cells(width: float, spacing: float) -> int:
    return max(1, ceil(min(width / spacing * (1 - 1e-12), 2.0**62)))


def _extended(places: Integers, counts: Integers, rest: NDArray[Any]) -> tuple[Integers, Integers, NDArray[Any]]:
    """Each column of places once for every number below its count, which becomes its last entry."""
    total = int(counts.sum())
    numbers = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.concatenate((np.repeat(places, counts, axis=1), numbers[None])), numbers, np.repeat(rest, counts)


def _four(coordinates: list[Any]) -> Floats:
    points = np.zeros((MOST_DIMENSIONS, coordinates[0].size))
    points[: len(coordinates)] = coordinates
    return points


def _default_spacing(over: ConvexSet, d: int, step: float, slope: float, most: float) -> float:
    """Where step ln |net| + slope cover is least, but for no more than so many points."""
    free = d - 1 if isinstance(over, Simplex) else d
    cover = sqrt(d) if isinstance(over, Ball) else sqrt(d) / 2
    best = step * max(free, 1) / (slope * cover) if slope else inf
    coarse, fine = 2 * over.diameter, over.diameter * 2.0**-40
    for _ in range(100):  # the least spacing with few enough points
        middle = sqrt(coarse * fine)
        coarse, fine = (middle, fine) if size_of_net(over, middle)[1] <= most else (coarse, middle)
    return max(min(best, over.diameter / 8), coarse)


# --- the losses of all records at the points of a net

KERNELS = {
    "SQUARED": "add_squared_losses",
    "LOGISTIC": "add_logistic_losses",
    "HINGE": "add_hinge_losses",
    "HUBER": "add_huber_losses",
    "DISTANCE": "add_square_distances",
    "DEVIATION": "add_deviations",
}


class _Grid(_Plan):
    """Theorem 1: scores of the points of a net, and the exponential mechanism on them."""

    method = "grid"

    def __init__(self, terms: _Terms, spacing: float | None, resolution: float | None) -> None:
        self._terms, problem, n = terms, terms.problem, terms.n
        self._over = problem.over
        variation = problem.loss.range(self._over)
        if isinstance(problem.loss, Custom) and problem.loss.phi is None:
            raise ValueError("loss: Custom needs value=, a function of (scores, labels), to be evaluated")
        self.resolution, self._limit = self._units(variation, resolution)
        choice = terms_of_range(
            self._limit, terms.epsilon, 0.0, monotonic=terms.one_way, rounds=1, neighbors=terms.neighbors
        )
        self.eta, self.guarantee = choice.eta, choice.guarantee
        if spacing is None:
            step = self.resolution / (self.eta * n)
            most = max(1, min(_DEFAULT_POINTS, _DEFAULT_WORK // n))
            spacing = _default_spacing(self._over, terms.d, step, terms.slope, most)
        self.spacing = spacing
        self._check_size(size_of_net(self._over, spacing)[0])
        self.net = net_of(self._over, spacing)
        self.candidates = self.net.points.shape[1]
        self._check_size(self.candidates)
        self.bound = net_excess(
            self.candidates, n=n, eta=self.eta, resolution=self.resolution, cover=self.net.cover,
            slope=terms.slope, beta=terms.beta,
        )  # fmt: skip
        self._ridge = self._regularise(problem.lam)

    def _units(self, variation: float, resolution: float | None) -> tuple[float, int]:
        """The grid of the losses, and K."""
        if not 2.0**-900 <= variation <= 2.0**900:
            raise ValueError(f"loss: varies by {variation:g} over the set: must be between 2^-900 and 2^900")
        n = self._terms.n
        private = self._terms.one_way
        most = _PRIVATE_UNITS if private else min(_MOST_UNITS, 2**62 // n - 1)
        if resolution is None:
            useful = ceil(log2(self._terms.epsilon * n + 1)) + 3  # the choice itself is no finer
            bits = 21 if private else min(max(21, useful), 34, most.bit_length() - 2)
            resolution = 2.0 ** (frexp(variation)[1] - 1 - bits)
        limit = ceil(Fraction(variation) / Fraction(resolution))
        if not limit <= most:
            raise ValueError(
                f"resolution={resolution!r}: must be such that a loss has at most {most:,} units; it has {limit:,}"
            )
        return resolution, limit

    def _check_size(self, size: float) -> None:
        n = self._terms.n
        if size > MOST_POINTS or size * n > MOST_WORK:
            raise ValueError(
                f"spacing={self.spacing:.4g}: a net of {size:,.0f} points for {n:,} records: must be at most "
                f"{MOST_POINTS:,} points and {MOST_WORK:.2g} losses; {_INSTEAD}"
            )

    def _regularise(self, lam: float) -> Integers:
        """n lam/2 ||w||^2 in units of the grid, which no record has a say in."""
        assert self.resolution is not None
        points = self.net.points
        values = self._terms.n * lam / 2 * (points * points).sum(axis=0) / self.resolution
        if not values.max() < 2.0**61:
            raise ValueError(f"lam={lam!r}: must be smaller, or the resolution coarser: n lam/2 ||w||^2 has 2^61 units")
        rounded: Integers = np.rint(values).astype(np.int64)
        return rounded

    def read(self, points: Points, report: Report) -> Callable[[Key], Vector]:
        scores, d = self.scores(points, report), self._terms.d
        return lambda key: self.net.points[:d, draw_one(scores, key, self.eta)].copy()

    def scores(self, points: Points, report: Report) -> Integers:
        """-F, in the order of the net."""
        net, custom = self.net.points, points.loss.kernel == "CUSTOM"
        part = self.candidates if custom else max(1, _PART // self._terms.n)
        score = self._custom if custom else self._built_in
        totals = np.empty(self.candidates, np.int64)
        parts = range(0, self.candidates, part)
        for done, first in enumerate(parts):
            report(done, len(parts), f"{min(part, self.candidates - first):,} points")
            some = np.ascontiguousarray(net[:, first : first + part])
            totals[first : first + part] = points.rows.total(partial(score, points, some))
        report(len(parts), len(parts), "")
        return -(totals + self._ridge)

    def _built_in(self, points: Points, net: Floats, block: Block) -> Integers:
        from ..kernels import nets

        columns, labels, norms = self._columns(points, block)
        lowest = self._lowest(points, columns, labels, norms)
        out, add = np.zeros(net.shape[1], np.int64), getattr(nets, KERNELS[points.loss.kernel])
        assert self.resolution is not None
        law = points.loss.parameter, 1 / self.resolution, float(self._limit)

        def run(start: int, stop: int) -> None:
            some = np.ascontiguousarray(net[:, start:stop])
            add(columns, labels, lowest, some, *law, out[start:stop])

        run_chunks(run, out.size, max(1, _CHUNK // max(block.n, 1)))
        return out

    def _columns(self, points: Points, block: Block) -> tuple[Floats, Vector, Vector]:
        """Records coordinate by coordinate, labels and norms, all within the bounds that clip."""
        X, labels, norms = points.parts(block)
        columns = np.zeros((MOST_DIMENSIONS, block.n))
        columns[: points.d] = X.reshape(-1, points.d).T
        bound = points.loss.x_norm
        if points.loss.family == "margin" and bound is not None:
            columns *= np.minimum(1.0, bound / norms)
            norms = np.minimum(norms, bound)
        return columns, labels, norms

    def _lowest(self, points: Points, columns: Floats, labels: Vector, norms: Vector) -> Vector:
        """No more than the loss of each record at any point of the set, and no further from it than the range tells."""
        from ..kernels import gradients, nets

        loss, over, out = points.loss, self._over, np.zeros(labels.size)
        if loss.family == "margin":
            most = norms * (over.norm * (1 + 2.0**-40))
            scores = labels * most if loss.labels == SIGN else np.clip(labels, -most, most)
            nets.losses_into(getattr(gradients, loss.kernel), loss.parameter, scores, labels, out)
        elif loss.family == "deviation":
            own = columns[: points.d]
            if isinstance(over, Simplex):
                above, below = np.maximum(own, 0.0), np.maximum(-own, 0.0)
                out += _added(below) + np.abs(over.total - _added(above))
            else:
                assert isinstance(over, Ball | Box)
                if isinstance(over, Ball):
                    reach = over.radius * (1.0 if over.order == 1 else sqrt(points.d))
                else:
                    reach = sum(high - low for low, high in zip(over.lower, over.upper, strict=True)) / 2
                out += np.maximum(_added(np.abs(own - over.center[:, None])) - reach, 0.0)
        return out

    def _custom(self, points: Points, net: Floats, block: Block) -> Integers:
        """The same in Python: each record's lowest value is taken from its values."""
        assert isinstance(points.loss, Custom)
        assert self.resolution is not None
        columns, labels, _ = self._columns(points, block)
        out, few = np.zeros(net.shape[1], np.int64), max(1, _CHUNK // net.shape[1])
        for first in range(0, block.n, few):
            x, y = columns[:, first : first + few], labels[first : first + few]
            scores = sum(x[j][:, None] * net[j] for j in range(points.d))
            assert isinstance(scores, np.ndarray)
            values = points.loss.value(scores.reshape(-1), np.repeat(y, net.shape[1]))
            if values.shape != (scores.size,):
                raise ValueError(f"loss: value(scores, labels) has shape {values.shape}: must be {(scores.size,)}")
            values = values.reshape(scores.shape)
            lowest = np.where(np.isfinite(values), values, inf).min(axis=1, keepdims=True)
            with np.errstate(invalid="ignore", over="ignore"):
                units = (values - np.where(lowest < inf, lowest, 0.0)) / self.resolution
            units = np.where(units < self._limit, np.maximum(units, 0.0), self._limit)  # a NaN is as bad as it gets
            out += np.floor(units).astype(np.int64).sum(axis=0)
        return out


def _added(columns: Floats) -> Vector:
    """The sum of the rows, one after the other."""
    total: Vector = columns[0].copy()
    for column in columns[1:]:
        total += column
    return total


# --- on a line: convex scores of very many points, of which few are looked at


class Piece(NamedTuple):
    """Points first, first + side, ...: so many, none of which has less than `level` ln 2 of a gap in the exponent."""

    first: int
    side: int
    size: int
    level: int


class ConvexChoice:
    """The law with weights exp(-eta (F(k) - min F)) on 0 .. last, F convex and integer: exponential.md, theorem 3."""

    def __init__(self, function: Callable[[int], int], last: int, eta: Fraction) -> None:
        self._function, self._last, self.eta = function, last, eta
        self.best = self._minimiser()
        self._least = function(self.best)
        self._open = 64 + last.bit_length()  # level of the last pieces, which reach to the ends
        self.pieces = [*self._side(1, 0, last - self.best), *self._side(-1, 1, self.best)]
        self._sums = list(accumulate(piece.size << self._open - piece.level for piece in self.pieces))

    def _minimiser(self) -> int:
        low, high = 0, self._last
        while low < high:
            middle = (low + high) // 2
            if self._function(middle + 1) >= self._function(middle):
                high = middle
            else:
                low = middle + 1
        return low

    def _gap(self, k: int) -> int:
        return self._function(k) - self._least

    def _side(self, side: int, near: int, far: int) -> list[Piece]:
        """The pieces at distances near .. far from the minimiser: each ends about where the next level begins."""

        def gap(distance: int) -> int:
            return self._gap(self.best + side * distance)

        pieces: list[Piece] = []
        step = 1
        while near <= far:
            level = min(self._open, floor(self.eta * gap(near) / _LN2_UP))
            end = far + 1
            if level < self._open:
                above = ceil((level + 1) * _LN2_UP / self.eta)
                end = self._crossing(gap, near, far, above, step)
            step = end - near
            pieces.append(Piece(self.best + side * near, side, step, level))
            near = end
        return pieces

    @staticmethod
    def _crossing(gap: Callable[[int], int], near: int, far: int, above: int, step: int) -> int:
        """A distance soon after the last one with a gap below `above`, or far + 1. Whatever it is, the law is right."""
        low, high = near, near + step
        while high <= far and gap(high) < above:
            low, high, step = high, high + step, 2 * step
        if high > far:
            if gap(far) < above:
                return far + 1
            high = far
        while high - low > 1 + (high - near) // 128:
            middle = (low + high) // 2
            low, high = (middle, high) if gap(middle) < above else (low, middle)
        return max(high, near + 1)

    def draw(self, key: Key) -> int:
        """Proposal t takes word t of streams 0, 2, 4, ..., its coin word t of streams 1, 3, 5, ..."""
        words = word_source(key)
        for t in count():
            place = exact.uniform_below(self._sums[-1], exact.Uniform(0, 0, (words(s, t) for s in count(0, 2))))
            i = bisect_right(self._sums, place)
            piece = self.pieces[i]
            within = place - (self._sums[i - 1] if i else 0) >> self._open - piece.level
            k = piece.first + piece.side * within
            if exact.is_below_exp(exact.proposal_coin(words, t), -self.eta * self._gap(k), piece.level):
                return k
        raise AssertionError("a half of the proposals is accepted")


def _no_line(terms: _Terms, spacing: float | None, resolution: float | None) -> str:
    """Why there is no exact method; empty if there is one."""
    if terms.d > 1:
        return f"d={terms.d} columns: must be 1"
    if type(terms.problem.loss) not in _LINES:
        return f"loss={terms.problem.loss!r}: must be SquaredDistance or AbsoluteDeviation"
    if not isinstance(terms.problem.over, Ball | Box):
        return f"over={terms.problem.over!r}: must be a Ball or a Box"
    if resolution is not None:
        return f"resolution={resolution!r}: must be None, as losses are not rounded"
    if spacing is not None and frexp(spacing)[0] != 0.5:
        return f"spacing={spacing!r}: must be a power of two"
    return ""


class _Line(_Plan):
    """Points start + k spacing, k = 0 .. steps; a record has a position k too, and its loss is an integer."""

    method = "exact"
    resolution = None
    power: int  # a unit of the scores is so many powers of the spacing

    def __init__(self, terms: _Terms, spacing: float | None) -> None:
        self._terms, over = terms, terms.problem.over
        assert isinstance(over, Ball | Box)
        if isinstance(over, Ball):
            low, high = over.at[0] - over.radius, over.at[0] + over.radius
        else:
            low, high = over.lower[0], over.upper[0]
        self._low, self._high = low, high
        if spacing is None:
            widest = max(high - low, self._furthest() * 2.0**-18)
            spacing = 2.0 ** (frexp(widest)[1] - 1 - _LINE_BITS)
        if not 2.0**-400 <= spacing <= 2.0**400:
            raise ValueError(f"spacing={spacing!r}: must be between 2^-400 and 2^400")
        self.spacing = spacing
        self.steps = floor((Fraction(high) - Fraction(low)) / Fraction(spacing))
        self.candidates = self.steps + 1
        self.first, self.last = self._positions_within()
        if max(self.steps, self.last, -self.first) > _MOST_LINE:
            raise ValueError(f"spacing={spacing!r}: must be larger; the set or the records reach over 2^62 of it")
        self.guarantee = BoundedRange(terms.epsilon, neighbors=terms.neighbors)
        self.eta = lower(terms.epsilon) / max(self._moved(), 1)
        unit = Fraction(spacing) ** self.power
        ridge = terms.n * terms.problem.lam / 2 * max(abs(low), abs(high)) ** 2  # the regulariser varies by no more
        self.bound = line_excess(
            self.steps, n=terms.n, eta=float(self.eta / unit), range=terms.n * float(self._varies() * unit) + ridge,
            spacing=spacing, slope=terms.slope, beta=terms.beta,
        )  # fmt: skip

    def _furthest(self) -> float:
        """How far from 0 records and set reach, if the distance of a record counts."""
        return 0.0

    def _positions_within(self) -> tuple[int, int]:
        """The least and the largest position that a record may have."""
        return 0, self.steps

    @abstractmethod
    def _varies(self) -> int:
        """By how much the losses of one record differ between points, at most."""

    @abstractmethod
    def _moved(self) -> int:
        """How far apart a neighbour may move two scores: theorem 2."""

    @abstractmethod
    def _losses(self, points: Points) -> Callable[[int], int]:
        """The sum of all losses at a point."""

    def _positions(self, points: Points, block: Block) -> Integers:
        X, _, _ = points.parts(block)
        places = (X.astype(np.float64, copy=False) - self._low) * (1 / self.spacing)
        np.clip(places, float(self.first), float(self.last), out=places)
        return np.clip(np.rint(places).astype(np.int64), self.first, self.last)

    def read(self, points: Points, report: Report) -> Callable[[Key], Vector]:
        report(0, 1, "records")
        choice = self.choice(points)
        report(1, 1, "")
        return lambda key: self._point(choice.draw(key))

    def choice(self, points: Points) -> ConvexChoice:
        """With the regulariser n lam/2 (low + k spacing)^2, as integers: all times what makes them so."""
        losses, terms = self._losses(points), self._terms
        lam = Fraction(terms.problem.lam)
        if not lam:
            return ConvexChoice(losses, self.steps, self.eta)
        weight = terms.n * lam / 2 * Fraction(self.spacing) ** (2 - self.power)
        shift = Fraction(self._low) / Fraction(self.spacing)
        a, b, c, e = weight.numerator, weight.denominator, shift.numerator, shift.denominator
        times = b * e * e
        return ConvexChoice(lambda k: times * losses(k) + a * (e * k + c) ** 2, self.steps, self.eta / times)

    def _point(self, k: int) -> Vector:
        w = float(Fraction(self._low) + k * Fraction(self.spacing))
        return np.array([min(max(w, self._low), self._high)])


class _Mean(_Line):
    """(k - x)^2: n k^2 - 2 k (sum of x), but for what does not depend on k."""

    power = 2

    def _furthest(self) -> float:
        return self._terms.problem.loss._norm() + max(abs(self._low), abs(self._high))

    def _positions_within(self) -> tuple[int, int]:
        norm, low, unit = Fraction(self._terms.problem.loss._norm()), Fraction(self._low), Fraction(self.spacing)
        return floor((-norm - low) / unit), ceil((norm - low) / unit)

    def _varies(self) -> int:
        def variation(x: int) -> int:
            beside = max(-x, x - self.steps, 0)
            return max(x * x, (self.steps - x) ** 2) - beside * beside

        return max(variation(self.first), variation(self.last))

    def _moved(self) -> int:
        return self._varies() if self._terms.one_way else 2 * self.steps * (self.last - self.first)

    def _losses(self, points: Points) -> Callable[[int], int]:
        def statistic(block: Block) -> list[int]:
            at = self._positions(points, block)
            return [int((at >> _HALF).sum()), int((at & (2**_HALF - 1)).sum())]

        high, low = points.rows.total(statistic).tolist()
        n, total = points.n, (high << _HALF) + low
        return lambda k: k * (n * k - 2 * total)


class _Median(_Line):
    """|k - x|. Records beyond the set count as its ends, which changes no difference."""

    power = 1

    def _varies(self) -> int:
        return self.steps

    def _moved(self) -> int:
        return self.steps if self._terms.one_way else 2 * self.steps

    def _losses(self, points: Points) -> Callable[[int], int]:
        at = np.concatenate(points.rows.merge(lambda block: [self._positions(points, block)], lambda a, b: a + b))
        at.sort()
        below = np.zeros((2, at.size + 1), np.int64)
        np.cumsum(at >> _HALF, out=below[0, 1:])
        np.cumsum(at & (2**_HALF - 1), out=below[1, 1:])
        n, total = at.size, (int(below[0, -1]) << _HALF) + int(below[1, -1])

        def losses(k: int) -> int:
            m = int(np.searchsorted(at, k, "right"))
            return k * (2 * m - n) + total - 2 * ((int(below[0, m]) << _HALF) + int(below[1, m]))

        return losses


_LINES: dict[type, type[_Mean] | type[_Median]] = {SquaredDistance: _Mean, AbsoluteDeviation: _Median}
