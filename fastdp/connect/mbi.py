"""mbi (private-pgm 2): synthetic distributions as its models, records both ways, exact draws for its mechanisms.

A mechanism of private-pgm adds `prng.normal(0, sigma, size)` to tables, and chooses by `prng.choice(n, p=p)`. `Prng` is
such a prng. Its noise is not an array of floats but waits until it meets the table: then it checks that the table
consists of integers (of multiples of `resolution`), and only then is it drawn, on the same grid. Nothing here imports
jax or mbi before it needs them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answering.synthetic_distribution import SyntheticDistribution
from ..mechanisms.noise import Plan, gaussian_plan, laplace_plan, release, scale_in_range
from ..mechanisms.selection import exponential_mechanism, permute_and_flip
from ..privacy.budget import Budget, counting
from ..privacy.guarantees import NEIGHBORS, ZCDP, Guarantee, Neighbors, PureDP
from ..randomness import exact_draws as exact
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness, fresh_key, word_source
from ..records.domain import Domain, Outside, check_domain
from ..records.encoding import encode
from ..support.checks import integer, non_negative, one_of, positive, power_of_two
from ..support.errors import DomainError
from ..support.rounding import lower, up, upper
from .need import need

LEAST = "2.0"  # of mbi: the first with this protocol
_MOST_UNITS = 2**53  # that float64 holds all whole numbers up to


def _mbi() -> Any:
    return need("mbi", extra="mbi", least=LEAST)


# --- domains and records


def to_domain(domain: Domain) -> Any:
    """The `mbi.Domain` of a domain, with its labels where there are any."""
    check_domain(domain)
    labels = None
    if any(of is not None for of in domain.labels):
        labels = [tuple(range(n)) if of is None else of for n, of in zip(domain.sizes, domain.labels, strict=True)]
    return _mbi().Domain(domain.names, domain.sizes, labels=labels)


def from_domain(domain: Any) -> Domain:
    """The domain of an `mbi.Domain`, whose attributes must have strings as names."""
    if not isinstance(domain, _mbi().Domain):
        raise ValueError(f"domain: type {type(domain).__name__}: must be an mbi.Domain")
    labels = domain.labels or [tuple(range(size)) for size in domain.shape]
    values = [size if of == tuple(range(size)) else of for size, of in zip(domain.shape, labels, strict=True)]
    return Domain(dict(zip(domain.attributes, values, strict=True)))


def to_dataset(data: Any, domain: Domain, *, outside: Outside = "raise") -> Any:
    """Records as an `mbi.Dataset` of codes: whatever fastdp reads, without a copy where codes are small integers.

    outside    "raise" a DomainError for records outside the domain, or "clip" them to the nearest code
    """
    made = to_domain(domain)
    return _mbi().Dataset(dict(zip(domain.names, encode(data, domain, outside), strict=True)), made)


def from_dataset(dataset: Any) -> tuple[Mapping[str, NDArray[Any]], Domain]:
    """(records, domain) of an `mbi.Dataset`, as fastdp takes them: a column an attribute, of labels where it has some.

    Every record counts once: a weighted dataset is refused.
    """
    if not isinstance(dataset, _mbi().Dataset):
        raise ValueError(f"dataset: type {type(dataset).__name__}: must be an mbi.Dataset")
    if dataset.weights is not None and not (np.asarray(dataset.weights) == 1).all():
        raise ValueError("dataset: must not be weighted: every record counts once")
    domain = from_domain(dataset.domain)
    codes = encode({name: np.asarray(dataset.data[name]) for name in domain.names}, _coded(domain))
    return {name: domain.decode_column(j, codes[j]) for j, name in enumerate(domain.names)}, domain


def _coded(domain: Domain) -> Domain:
    """The same attributes, with codes for labels."""
    return Domain(dict(zip(domain.names, domain.sizes, strict=True)))


# --- a synthetic distribution as a model


class Model:
    """A synthetic distribution as mbi's `Model`: for whatever there takes a model, or a Projectable.

    synthetic    what `mwem`, `release_marginals` or `PrivateMultiplicativeWeights.synthetic` gives
    total        how many records it stands for; by default the public number, if there is one
    rng          for tests: of the records that `synthetic_data` draws

    It is made of what has been released, so whatever is done with it costs no privacy. It has no `potentials`, so mbi
    cannot warm-start from it.
    """

    def __init__(
        self, synthetic: SyntheticDistribution, *, total: float | None = None, rng: Randomness | None = None
    ) -> None:
        if not isinstance(synthetic, SyntheticDistribution):
            raise ValueError(f"synthetic: type {type(synthetic).__name__}: must be a fastdp.SyntheticDistribution")
        if total is None and synthetic.n is None:
            raise ValueError("total=None: must be given: the distribution has no public number of records")
        self.synthetic = synthetic
        self.domain = to_domain(synthetic.domain)
        self._total = float(synthetic.n) if total is None else non_negative("total", total, toward=inf)  # type: ignore[arg-type]
        self._rng = rng

    @property
    def total(self) -> float:
        """How many records it stands for."""
        return self._total

    def project(self, attrs: str | Sequence[str]) -> Any:
        """The marginal table of some attributes as an `mbi.Factor`, which adds up to `total`."""
        from jax import numpy as jnp

        names = (attrs,) if isinstance(attrs, str) else tuple(attrs)
        table = self.synthetic.marginal(names) if names else np.ones(())
        return _mbi().Factor(self.domain.project(names), jnp.asarray(table * self._total))

    def supports(self, attrs: str | Sequence[str]) -> bool:
        """Whether these attributes can be projected onto: whether they are of its domain."""
        return bool(self.domain.supports(attrs))

    def synthetic_data(self, rows: int | None = None) -> Any:
        """Independent records as an `mbi.Dataset`; by default `total` of them, rounded."""
        rows = round(self._total) if rows is None else integer("rows", rows, least=0)
        codes = self.synthetic.sample(rows, self._rng, codes=True)
        return _mbi().Dataset(dict(zip(self.domain.attributes, codes.T, strict=True)), self.domain)

    def __repr__(self) -> str:
        return f"Model({self.synthetic!r}, total={self._total:.12g})"


# --- noise and choices for its mechanisms


class Prng:
    """What a mechanism of private-pgm takes as its `prng`: exact noise from secure words.

    normal, laplace    discrete noise on the grid, with the sigma or the scale that the mechanism asks for, which
                       promises for integers what the mechanism computes for real numbers. What comes back is a `Noise`,
                       which must be added to the table that it is for
    choice             one of n, with exactly the probabilities given. They are floats that the mechanism has computed
                       from private scores; no care here undoes their rounding. `ExactSelection` chooses by the scores

    Anything else that a mechanism might ask of a prng is an AttributeError, before it is drawn.

    resolution     the grid: of what the tables hold, and of the noise; 1 for counts
    sensitivity    by how much one record moves what noise is added to (L2 for `normal`, L1 for `laplace`); needed where
                   a budget counts, and for nothing else: the mechanism has its own idea of it
    neighbors      the relation of that, and of ExactSelection; private-pgm's mechanisms mean "add-remove", unless
                   they are `bounded`
    """

    def __init__(
        self,
        *,
        resolution: float = 1.0,
        sensitivity: float | None = None,
        neighbors: Neighbors = "replace-one",
        budget: Budget | None = None,
        rng: Randomness | None = None,
    ) -> None:
        self.resolution = power_of_two("resolution", resolution)
        self.sensitivity = None if sensitivity is None else positive("sensitivity", sensitivity, toward=inf)
        self.neighbors = one_of("neighbors", neighbors, NEIGHBORS)
        self.budget = budget
        self.rng = rng

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: int | Sequence[int] | None = None) -> Noise:
        """Discrete Gaussian noise: Pr[z] proportional to exp(-z^2 / (2 scale^2)), z on the grid."""
        _no_location(loc)
        scale = positive("scale", scale, toward=inf)
        return Noise(self, "normal", gaussian_plan(self._units(scale)), scale, _shape(size))

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: int | Sequence[int] | None = None) -> Noise:
        """Discrete Laplace noise: Pr[z] proportional to exp(-|z| / scale), z on the grid."""
        _no_location(loc)
        scale = positive("scale", scale, toward=inf)
        return Noise(self, "laplace", laplace_plan(self._units(scale)), scale, _shape(size))

    def choice(self, a: Any, size: None = None, replace: bool = True, p: Any = None) -> Any:
        """One entry of `a`, or of range(a), with probabilities exactly proportional to p (float64)."""
        if size is not None or not replace:
            raise ValueError(f"size={size!r}, replace={replace!r}: must be None and True: one choice at a time")
        if counting(self.budget):
            raise ValueError(
                "choice: what a choice by probabilities costs cannot be told from them, so no budget can count it; put "
                "fastdp.connect.mbi.ExactSelection before the mechanism's class"
            )
        n = integer("a", a, least=1) if np.ndim(a) == 0 else len(a)
        weights = _weights(np.ones(n) if p is None else np.asarray(p), n)
        i = _choose(weights, fresh_key(self.rng))
        return i if np.ndim(a) == 0 else a[i]

    def _units(self, scale: float) -> float:
        return scale_in_range(scale / self.resolution, "scale / resolution")

    def _guarantee(self, kind: str, scale: float) -> tuple[Guarantee, dict[str, Any]]:
        if self.sensitivity is None:
            raise ValueError(
                "sensitivity=None: must be given where a budget counts: Prng(sensitivity=...) says by how much one "
                "record moves the tables that noise is added to"
            )
        ratio = upper(self.sensitivity) / lower(scale)
        parameters = {"sensitivity": self.sensitivity, "scale": scale}
        if kind == "laplace":
            return PureDP(up(ratio), neighbors=self.neighbors), parameters
        return ZCDP(up(ratio**2 / 2), neighbors=self.neighbors), parameters

    def __repr__(self) -> str:
        return f"Prng(resolution={self.resolution!r}, neighbors={self.neighbors!r})"


class Noise:
    """Noise that waits for the table it is for: table + noise, once.

    Guarantee    the table, on the grid of the prng, plus exact noise of the law that was asked for
    Raises       DomainError, before anything is drawn, if the table has entries off the grid (weights, fractions), NaN,
                 or counts that float32 has rounded; RuntimeError if it has been added already
    """

    __array_ufunc__ = None  # numpy leaves the sum to us, as jax does with all that it does not know

    def __init__(self, prng: Prng, kind: str, plan: Plan, scale: float, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._prng, self._kind, self._plan, self._scale = prng, kind, plan, scale
        self._used = False

    @property
    def size(self) -> int:
        """How many draws it is."""
        return prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of one draw")
        return self.shape[0]

    def __add__(self, values: Any) -> Any:
        if self._used:
            raise RuntimeError(
                "this noise has been added already: ask the prng for more; the same noise must not hide two"
            )
        array = np.asarray(values)
        if array.shape != self.shape:
            raise ValueError(f"values: shape {array.shape}: must be that of the noise, {self.shape}")
        prng = self._prng
        if not counting(prng.budget):
            return self._release(array, partial(fresh_key, prng.rng))
        guarantee, parameters = prng._guarantee(self._kind, self._scale)
        with ChargedKeys(f"mbi {self._kind}", guarantee, parameters, prng.budget, prng.rng) as keys:
            return self._release(array, keys.take)

    def _release(self, array: NDArray[Any], take_key: Callable[[], NDArray[np.uint32]]) -> Any:
        grid = self._prng.resolution
        units = _on_grid(array, grid)
        self._used = True
        return release(units, None, self._plan, take_key) * grid

    __radd__ = __add__

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError(
            "noise of fastdp.connect.mbi.Prng is no array: add it to the table that it is for; by itself it could not "
            "check that the table is on its grid"
        )

    def __repr__(self) -> str:
        return f"<noise: {self._kind}, scale={self._scale!r}, shape {self.shape}>"


class ExactSelection:
    """To put before a mechanism's class: it chooses by the exact exponential mechanism and permute-and-flip of fastdp.

        class AIM(fastdp.connect.mbi.ExactSelection, aim.AIM): ...

    Its `prng` must be a Prng, which says the neighbours and the budget. `generalized_exponential_mechanism`, where the
    class has it, goes through `exponential_mechanism` and so is exact, too.

    Guarantee    as fastdp.exponential_mechanism, for the scores as the floats that they are
    Not covered  what `sensitivity` claims, the rounding of the floats that the mechanism made its scores of included
    """

    prng: Any

    def exponential_mechanism(
        self, qualities: Any, epsilon: float, sensitivity: float = 1.0, base_measure: Any = None
    ) -> Any:
        """One of the candidates, with probability proportional to base exp(epsilon quality / (2 sensitivity)).

        qualities      a mapping from candidates to scores, or an array of scores
        base_measure   the bases, as in private-pgm: for a mapping one to numbers > 0, for an array their logarithms
        """
        prng, keys, scores = self._scores(qualities)
        if base_measure is not None:
            logs = np.log([base_measure[key] for key in keys]) if isinstance(base_measure, Mapping) else base_measure
            scores = scores + np.asarray(logs, np.float64) * (2 * sensitivity / epsilon)
        options = {"rng": prng.rng, "budget": prng.budget, "neighbors": prng.neighbors}
        return keys[exponential_mechanism(scores, sensitivity=sensitivity, epsilon=epsilon, **options)]

    def permute_and_flip(self, qualities: Any, epsilon: float, sensitivity: float = 1.0) -> Any:
        """One of the candidates, by permute-and-flip."""
        prng, keys, scores = self._scores(qualities)
        options = {"rng": prng.rng, "budget": prng.budget, "neighbors": prng.neighbors}
        return keys[permute_and_flip(scores, sensitivity=sensitivity, epsilon=epsilon, **options)]

    def _scores(self, qualities: Any) -> tuple[Prng, Sequence[Any], NDArray[np.float64]]:
        if not isinstance(self.prng, Prng):
            raise ValueError(
                f"prng: type {type(self.prng).__name__}: must be a fastdp.connect.mbi.Prng; the mechanism may have "
                "passed on another than it was given"
            )
        keys: Sequence[Any] = list(qualities) if isinstance(qualities, Mapping) else range(np.size(qualities))
        values: Iterable[Any] = qualities.values() if isinstance(qualities, Mapping) else np.asarray(qualities)
        return self.prng, keys, np.array([float(value) for value in values], np.float64)


# --- pieces


def _no_location(loc: Any) -> None:
    if loc != 0:
        raise ValueError(f"loc={loc!r}: must be 0")


def _shape(size: Any) -> tuple[int, ...]:
    if size is None:
        return ()
    sizes = tuple(size) if isinstance(size, Iterable) else (size,)
    return tuple(integer("size", each, least=0) for each in sizes)


def _on_grid(array: NDArray[Any], grid: float) -> NDArray[np.int64]:
    """The entries in units of the grid; DomainError unless all of them are whole numbers of it."""
    if array.dtype.kind not in "biuf":
        raise ValueError(f"values: dtype {array.dtype}: must be numbers")
    units = array.astype(np.float64) / grid
    if not (np.isfinite(units) & (abs(units) < _MOST_UNITS) & (units == np.floor(units))).all():
        raise DomainError(
            f"values: must be multiples of {grid!r}, the grid on which the noise is drawn, below 2^53 times it; there "
            "are others. Counts are multiples of 1; for fractions give Prng a resolution, and round them to it"
        )
    if array.dtype.kind == "f" and (abs(units) > 2.0 ** (np.finfo(array.dtype).nmant + 1)).any():
        raise DomainError(
            f"values: there are larger counts than dtype {array.dtype} holds exactly, which were rounded before the "
            "noise: jax.config.update('jax_enable_x64', True) before mbi is imported"
        )
    return units.astype(np.int64)


def _weights(p: NDArray[Any], n: int) -> list[int]:
    """Integers proportional to these floats, exactly."""
    p = np.asarray(p, np.float64)
    if p.shape != (n,):
        raise ValueError(f"p: shape {p.shape}: must be ({n},), a probability for each candidate")
    if not (np.isfinite(p) & (p >= 0)).all() or not p.any():
        raise DomainError("p: must be finite and >= 0, not all 0")
    mantissas, exponents = np.frexp(p)
    lowest = int(exponents[p > 0].min())
    whole_ = (mantissas * 2.0**53).astype(np.int64).tolist()
    return [m << max(e - lowest, 0) for m, e in zip(whole_, exponents.tolist(), strict=True)]


def _choose(weights: Sequence[int], key: NDArray[np.uint32]) -> int:
    ends = list(accumulate(weights))
    return bisect_right(ends, exact.uniform_below(ends[-1], exact.choice_uniform(word_source(key))))
