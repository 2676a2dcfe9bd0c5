"""OpenDP measurements over the mechanisms of this library (extra `[opendp]`): the same laws, as `Measurement`s.

What is invoked is the compiled kernel; what is accounted for is OpenDP's: its maps, its compositors. The maps are exact
rationals rounded up once. No fastdp.Budget is charged by a measurement: only OpenDP knows the distance of the inputs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from importlib.metadata import version
from math import floor, inf, isfinite, isqrt, ldexp
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..mechanisms import noise
from ..mechanisms.permute_and_flip import draw_head
from ..mechanisms.scores import array_of_scores, some_allowed, tops_of
from ..mechanisms.selection import draw_one
from ..privacy.guarantees import PureDP
from ..randomness.keys import Randomness, fresh_key
from ..support.checks import integer, numbers_array, positive
from ..support.rounding import down, up
from .need import is_older

if TYPE_CHECKING:
    from collections.abc import Sequence

NEEDED = "0.12"
_DTYPES = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}
_DTYPES |= {"usize": "u8", "f32": "f4", "f64": "f8"}
_OF_ARRAYS = ("i64", "f64")
_PER_SCALE = 20  # the default grid: the rounding of all entries together adds at most 2^-20 to epsilon


# --- what inputs are


def array_domain(T: str, size: int | None = None) -> Any:
    """The OpenDP domain of one-dimensional numpy arrays of dtype int64 (T="i64") or float64 (T="f64").

    Arrays of it go to a measurement and come back as they are: no list is made of them. `size` is how many entries
    they have, which float noise needs to know.

    Guarantee    of floats, that they are finite is part of the domain; a measurement refuses others (DomainError)
    Raises       OpenDP's own error unless dp.enable_features("contrib", "honest-but-curious")
    """
    dp = _opendp()
    if T not in _OF_ARRAYS:
        raise ValueError(f"T={T!r}: must be one of {', '.join(map(repr, _OF_ARRAYS))}")
    size = None if size is None else integer("size", size, least=0)
    space = _Domain("array", T, size)

    def member(value: Any) -> bool:
        return space.holds(value) and (T == "i64" or bool(np.isfinite(value).all()))

    return dp.user_domain(f"fastdp.array(T={T}{'' if size is None else f', size={size}'})", member)


class _Domain(NamedTuple):
    """What an input domain of OpenDP says."""

    kind: str  # "array" of numpy, "vector" (a list), "atom" (a number)
    T: str
    size: int | None

    @staticmethod
    def of(domain: Any) -> _Domain:
        """Read from what a domain prints, which is the same in all versions of OpenDP."""
        text = str(domain)
        size = re.search(r", size=(\d+)\)$", text)
        count = int(size.group(1)) if size else None
        if array := re.match(r"fastdp\.array\(T=(\w+)[,)]", text):
            return _Domain("array", array.group(1), count)
        kind = str(domain.type)
        atom = re.fullmatch(r"(VectorDomain<)?AtomDomain<(\w+)>>?", kind)
        if not atom or atom.group(2) not in _DTYPES:
            raise ValueError(
                f"input_domain={text}: must be atom_domain or vector_domain(atom_domain) of numbers, or array_domain"
            )
        if "nan=true" in text:
            raise ValueError(f"input_domain={text}: must not have NaNs: atom_domain(T=..., nan=False)")
        return _Domain("vector", atom.group(2), count) if atom.group(1) else _Domain("atom", atom.group(2), 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(_DTYPES[self.T])

    @property
    def output_type(self) -> str:
        return {"array": "ExtrinsicObject", "vector": f"Vec<{self.T}>", "atom": self.T}[self.kind]

    def holds(self, value: Any) -> bool:
        """Whether an array has the dtype and the shape of the domain."""
        return (
            isinstance(value, np.ndarray)
            and value.dtype == self.dtype
            and value.ndim == 1
            and self.size in (None, value.size)
        )

    def read(self, value: Any) -> NDArray[Any]:
        """The input as int64 or float64; an array of the domain is taken as it is."""
        if self.kind == "array":
            if not self.holds(value):
                kind = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
                raise ValueError(
                    f"arg: {kind}: must be a numpy array {self.dtype}[{'n' if self.size is None else self.size}]"
                )
            return numbers_array("arg", value)
        values = np.atleast_1d(np.array(value, self.dtype))
        if self.size not in (None, values.size):  # the rounding of so many is what is charged
            raise ValueError(f"arg: {values.size} entries: must be {self.size}, as the input domain says")
        return numbers_array("arg", values)

    def write(self, values: NDArray[Any]) -> Any:
        """The output as the domain has it; sums beyond a narrow integer type become its ends."""
        if self.kind == "array":
            return values
        if self.dtype.kind in "iu":
            ends = np.iinfo(self.dtype)
            values = np.clip(values, max(ends.min, -(2**63)), min(ends.max, 2**63 - 1))
        made = values.astype(self.dtype).tolist()
        return made if self.kind == "vector" else made[0]


# --- noise


def make_laplace(
    input_domain: Any, input_metric: Any, scale: float, *, k: int | None = None, rng: Randomness | None = None
) -> Any:
    """An OpenDP `Measurement` that adds Laplace noise of this scale to a number, a vector or a numpy array.

    input_domain    atom_domain, vector_domain(atom_domain), or `array_domain` for numpy arrays
    input_metric    absolute_distance for a number, l1_distance for the others
    k               of floats: the noise lives on the grid 2^k. By default so fine that rounding adds at most 2^-20 to
                    epsilon; the domain must say how many entries there are, as the rounding of each is charged

    Guarantee    max_divergence; map(d_in) = d_in / scale for integers, (floor(d_in / 2^k) + n) 2^k / scale for floats,
                 rounded up to float64
    Proof        noise.md, theorems 1 and 3
    Raises       ValueError "scale=0: must be > 0 and finite"; OpenDP's own error unless its features "contrib" and
                 "honest-but-curious" are enabled
    """
    dp, domain = _opendp(), _Domain.of(input_domain)
    _metric(input_metric, domain, "L1Distance")
    plan, grid = _plan(scale, k, domain, noise.laplace_plan, root=False)
    unit, noisy_scale = _rational(grid), Fraction(plan.scale)

    def privacy_map(d_in: float) -> float:
        # the L1 distance on the grid is an integer; OpenDP charges the same n, of a distance not rounded down
        moved = Fraction(floor(_distance(d_in) / unit) + (domain.size or 0)) if grid else _distance(d_in)
        return up(moved / noisy_scale)

    return _noisy(dp, input_domain, input_metric, dp.max_divergence(), domain, plan, grid, privacy_map, rng)


def make_gaussian(
    input_domain: Any, input_metric: Any, scale: float, *, k: int | None = None, rng: Randomness | None = None
) -> Any:
    """An OpenDP `Measurement` that adds Gaussian noise of this standard deviation; arguments as in `make_laplace`.

    input_metric    absolute_distance for a number, l2_distance for the others

    Guarantee    zero_concentrated_divergence; map(d_in) = (d / scale)^2 / 2, where d is d_in for integers and
                 d_in + 2^k sqrt(n) for floats, rounded up to float64
    Proof        noise.md, theorems 2 and 3; calibration.md, theorem 1
    """
    dp, domain = _opendp(), _Domain.of(input_domain)
    _metric(input_metric, domain, "L2Distance")
    plan, grid = _plan(scale, k, domain, noise.gaussian_plan, root=True)
    unit, sigma = _rational(grid), Fraction(plan.sigma)
    rounding = _root_up(domain.size or 0) if grid else Fraction(0)

    def privacy_map(d_in: float) -> float:
        return up(((_distance(d_in) / unit + rounding) / sigma) ** 2 / 2)

    measure = dp.zero_concentrated_divergence()
    return _noisy(dp, input_domain, input_metric, measure, domain, plan, grid, privacy_map, rng)


def _plan(scale: float, k: int | None, domain: _Domain, make: Callable[[float], Any], *, root: bool) -> Any:
    """The plan of the noise in units of its grid, and the grid (None for integers, whose grid is 1)."""
    scale = positive("scale", scale, toward=inf)
    if domain.dtype.kind in "iu":
        if k is not None:
            raise ValueError(f"k={k!r}: must be None for integers, whose grid is 1")
        return make(noise.scale_in_range(scale, "scale")), None
    if domain.size is None:
        raise ValueError(
            "input_domain: must have a size, as the rounding of each float is charged: vector_domain(..., size=n), or "
            "array_domain('f64', n)"
        )
    if k is None:
        share = ldexp(1.0, -_PER_SCALE) / max(1, isqrt(domain.size - 1) + 1 if root and domain.size else domain.size)
        grid = max(noise.power_below(scale * share), noise.power_below(scale) * 2.0**-38)
    else:
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not -900 <= k <= 900:
            raise ValueError(f"k={k!r}: must be a whole number from -900 to 900, for the grid 2^k")
        grid = ldexp(1.0, int(k))
    grid = noise.usable_grid(grid, scale)
    return make(noise.scale_in_range(scale / grid, "scale / 2^k")), grid


def _noisy(
    dp: Any,
    input_domain: Any,
    input_metric: Any,
    measure: Any,
    domain: _Domain,
    plan: noise.Plan,
    grid: float | None,
    privacy_map: Callable[[float], float],
    rng: Randomness | None,
) -> Any:
    def function(arg: Any) -> Any:
        return domain.write(noise.release(domain.read(arg), grid, plan, partial(fresh_key, rng)))

    return dp.make_user_measurement(input_domain, input_metric, measure, function, privacy_map, domain.output_type)


# --- choices


def make_exponential_mechanism(
    input_domain: Any,
    input_metric: Any,
    scale: float,
    *,
    output_measure: Any = None,
    rng: Randomness | None = None,
) -> Any:
    """An OpenDP `Measurement` that chooses an index with probability proportional to exp(score / scale).

    input_domain      vector_domain(atom_domain) of scores, or `array_domain`; a score of -inf forbids its candidate,
                      and which are forbidden must be public
    input_metric      linf_distance(T); with monotonic=True where one change moves all scores in the same direction
    output_measure    max_divergence() (the default) or zero_concentrated_divergence(), which is a quarter of what the
                      former gives, and what to take where several choices are composed

    Guarantee    with r = 2 d_in / scale, or d_in / scale if monotonic: max_divergence r; zero_concentrated_divergence
                 r^2/8, or r tanh(r/2) where that is less; rounded up to float64
    Proof        selection.md, theorem 1; guarantees.md, theorems 3 and 4
    """
    dp = _opendp()
    measure = dp.max_divergence() if output_measure is None else output_measure
    concentrated = str(measure) == "ZeroConcentratedDivergence"
    if not concentrated and str(measure) != "MaxDivergence":
        raise ValueError(
            f"output_measure={measure}: must be max_divergence() or zero_concentrated_divergence(); combinators convert"
        )

    def loss(reached: Fraction) -> float:
        pure = up(reached)
        return min(up(reached**2 / 8), PureDP(pure).to_zcdp().rho) if concentrated else pure

    def draw(scores: NDArray[Any], eta: float) -> int:
        some_allowed(tops_of(scores)[1])
        return draw_one(scores, fresh_key(rng), eta)

    return _choice(dp, input_domain, input_metric, scale, measure, loss, draw)


def make_permute_and_flip(input_domain: Any, input_metric: Any, scale: float, *, rng: Randomness | None = None) -> Any:
    """An OpenDP `Measurement` that chooses an index by permute-and-flip; arguments as in `make_exponential_mechanism`.

    OpenDP's report-noisy-max with exponential noise has the same law.

    Guarantee    max_divergence; map(d_in) = 2 d_in / scale, or d_in / scale if the metric is monotonic, rounded up
    Proof        selection.md, theorem 3
    """
    dp = _opendp()

    def draw(scores: NDArray[Any], eta: float) -> int:
        _, top = tops_of(scores)
        some_allowed(top)
        return draw_head(scores, top, fresh_key(rng), eta)

    return _choice(dp, input_domain, input_metric, scale, dp.max_divergence(), up, draw)


def _choice(
    dp: Any,
    input_domain: Any,
    input_metric: Any,
    scale: float,
    measure: Any,
    loss: Callable[[Fraction], float],
    draw: Callable[[NDArray[Any], float], int],
) -> Any:
    domain = _Domain.of(input_domain)
    if domain.kind == "atom":
        raise ValueError(f"input_domain={input_domain}: must be a vector of scores")
    metric = str(input_metric)
    if not metric.startswith("LInfDistance("):
        raise ValueError(f"input_metric={metric}: must be linf_distance")
    reach = 1 if "monotonic" in metric else 2
    scale = positive("scale", scale, toward=inf)
    eta = down(1 / Fraction(scale))
    if not 2.0**-900 <= eta <= 2.0**900:
        raise ValueError(f"scale={scale!r}: must be between 2^-900 and 2^900")

    def function(arg: Any) -> int:
        return draw(array_of_scores(domain.read(arg)), eta)

    def privacy_map(d_in: float) -> float:
        return loss(reach * _distance(d_in) / Fraction(scale))

    return dp.make_user_measurement(input_domain, input_metric, measure, function, privacy_map, "usize")


# --- partial constructors, for `input_space >> then_laplace(scale=1.0)`


def then_laplace(scale: float, *, k: int | None = None, rng: Randomness | None = None) -> Any:
    """`make_laplace` of whatever space it is chained to."""
    return _then(lambda domain, metric: make_laplace(domain, metric, scale, k=k, rng=rng))


def then_gaussian(scale: float, *, k: int | None = None, rng: Randomness | None = None) -> Any:
    """`make_gaussian` of whatever space it is chained to."""
    return _then(lambda domain, metric: make_gaussian(domain, metric, scale, k=k, rng=rng))


def then_exponential_mechanism(scale: float, *, output_measure: Any = None, rng: Randomness | None = None) -> Any:
    """`make_exponential_mechanism` of whatever space it is chained to."""
    return _then(lambda d, m: make_exponential_mechanism(d, m, scale, output_measure=output_measure, rng=rng))


def then_permute_and_flip(scale: float, *, rng: Randomness | None = None) -> Any:
    """`make_permute_and_flip` of whatever space it is chained to."""
    return _then(lambda domain, metric: make_permute_and_flip(domain, metric, scale, rng=rng))


def _then(make: Callable[[Any, Any], Any]) -> Any:
    _opendp()
    import opendp.mod

    names = vars(opendp.mod)
    return names["_PartialConstructor" if "_PartialConstructor" in names else "PartialConstructor"](make)


# --- pieces


def _opendp() -> Any:
    """The functions of OpenDP that are used here. Features are the user's to enable: OpenDP says how."""
    try:
        import opendp.prelude
    except ImportError:
        raise ImportError("this adapter needs OpenDP: pip install 'fastdp[opendp]'") from None
    found = version("opendp")
    if is_older(found, NEEDED):
        raise ImportError(f"opendp {found}: must be at least {NEEDED}: pip install 'fastdp[opendp]'")
    return _Functions(opendp.prelude)


class _Functions:
    """OpenDP's constructors, by one name each."""

    def __init__(self, dp: Any) -> None:
        self.user_domain, self.make_user_measurement = dp.user_domain, dp.m.make_user_measurement
        self.max_divergence = dp.max_divergence
        self.zero_concentrated_divergence = dp.zero_concentrated_divergence


def _metric(metric: Any, domain: _Domain, of_vectors: str) -> None:
    wanted = "AbsoluteDistance" if domain.kind == "atom" else of_vectors
    if not str(metric).startswith(f"{wanted}("):
        raise ValueError(f"input_metric={metric}: must be {wanted} for a domain of kind {domain.kind!r}")


def _distance(d_in: Any) -> Fraction:
    if not (isfinite(d_in) and d_in >= 0):
        raise ValueError(f"d_in={d_in!r}: must be >= 0 and finite")
    return Fraction(d_in)


def _rational(grid: float | None) -> Fraction:
    return Fraction(1 if grid is None else grid)


def _root_up(n: int) -> Fraction:
    """A rational >= sqrt(n), to 2^-64; exact for squares."""
    scaled = n << 128
    root = isqrt(scaled)
    return Fraction(root + (root * root < scaled), 1 << 64)


__all__: Sequence[str] = [
    "array_domain",
    "make_exponential_mechanism",
    "make_gaussian",
    "make_laplace",
    "make_permute_and_flip",
    "then_exponential_mechanism",
    "then_gaussian",
    "then_laplace",
    "then_permute_and_flip",
]
