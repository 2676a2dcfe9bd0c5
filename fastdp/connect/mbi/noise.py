"""Exact noise and choices for the mechanisms of private-pgm.

A mechanism adds `prng.normal(0, sigma, size)` to tables, and chooses by `prng.choice(n, p=p)`. `Prng` is such a prng.
Its noise is not an array of floats but waits until it meets the table: then it checks that the table consists of
integers (of multiples of `resolution`), and only then is it drawn, on the same grid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate
from math import inf, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.noise import release
from ...privacy.blocks import counting
from ...privacy.budget import Budget
from ...privacy.guarantees import ZCDP, Guarantee, Neighbors, PureDP
from ...randomness import exact_draws as exact
from ...randomness.charged_keys import ChargedKeys
from ...randomness.keys import Randomness, fresh_key, word_source
from ...randomness.noise_plans import NoisePlan, gaussian_plan, laplace_plan, scale_in_range
from ...support import parameters
from ...support.checks import integer, positive, power_of_two
from ...support.errors import DomainError
from ...support.rounding import lower, up, upper
from ...support.shown import shown

_MOST_UNITS = 2**53  # float64 holds all integers up to this


class Prng:
    """What a mechanism of private-pgm takes as its `prng`: exact noise from secure words.

    `normal` and `laplace` are discrete noise on the grid, with the sigma or the scale that the mechanism asks for; for
    integers it has the guarantee that the mechanism computes for real numbers. Each returns a `Noise`, which must be
    added to the table that it is for. `choice` is one of n, with exactly the probabilities given; they are floats that
    the mechanism has computed from private scores, and nothing here undoes their rounding: `ExactSelection` chooses by
    the scores. Anything else that a mechanism might ask of a prng is an AttributeError, before it is drawn.

    Parameters
    ----------
    resolution : power of two, optional
        The grid of the entries of tables and of the noise; 1 for counts.
    sensitivity : float > 0, optional
        By how much one record changes what noise is added to, in L2 for `normal`, in L1 for `laplace`. Needed only
        where a budget is charged: the mechanism has its own value of it.
    neighbors : {"replace-one", "add-remove"}
        The relation of `sensitivity`, and of ExactSelection; private-pgm's mechanisms mean "add-remove", unless they
        are `bounded`.
    budget : fastdp.Budget, optional
        What draws are charged to; by default the budgets whose blocks are open.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.
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
        self.sensitivity = None if sensitivity is None else parameters.sensitivity(sensitivity)
        self.neighbors = parameters.neighbors(neighbors)
        self.budget = budget
        self.rng = rng

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: int | Sequence[int] | None = None) -> Noise:
        """Discrete Gaussian noise: Pr[z] proportional to exp(-z^2 / (2 scale^2)), z on the grid.

        Parameters
        ----------
        loc : float
            Must be 0.
        scale : float > 0
            The sigma.
        size : int or sequence of int, optional
            The shape; None for one draw.

        Returns
        -------
        Noise
            Noise to be added to a table of this shape.
        """
        _no_location(loc)
        scale = positive("scale", scale, toward=inf)
        return Noise(self, "normal", gaussian_plan(self._units(scale)), scale, _shape(size))

    def laplace(self, loc: float = 0.0, scale: float = 1.0, size: int | Sequence[int] | None = None) -> Noise:
        """Discrete Laplace noise: Pr[z] proportional to exp(-|z| / scale), z on the grid.

        Parameters
        ----------
        loc : float
            Must be 0.
        scale : float > 0
            The scale.
        size : int or sequence of int, optional
            The shape; None for one draw.

        Returns
        -------
        Noise
            Noise to be added to a table of this shape.
        """
        _no_location(loc)
        scale = positive("scale", scale, toward=inf)
        return Noise(self, "laplace", laplace_plan(self._units(scale)), scale, _shape(size))

    def choice(self, a: Any, size: None = None, replace: bool = True, p: Any = None) -> Any:
        """One entry of `a`, or of range(a), with probabilities exactly proportional to p.

        Parameters
        ----------
        a : int or sequence
            The candidates, or how many there are.
        size : None
            Must be None: one choice at a time.
        replace : bool
            Must be True.
        p : array_like of float64, optional
            The weights of the candidates; by default equal ones.

        Returns
        -------
        Any
            The chosen candidate.
        """
        if size is not None or not replace:
            raise ValueError(
                f"size={shown(size)}, replace={shown(replace)}: must be None and True: one choice at a time"
            )
        if counting(self.budget):
            raise ValueError(
                "choice: the cost of a choice does not follow from its probabilities, so no budget can count it; put "
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
                "sensitivity=None: must be given where a budget counts: Prng(sensitivity=...) is by how much one "
                "record changes the tables that noise is added to"
            )
        ratio = upper(self.sensitivity) / lower(scale)
        parameters = {"sensitivity": self.sensitivity, "scale": scale}
        if kind == "laplace":
            return PureDP(up(ratio), neighbors=self.neighbors), parameters
        return ZCDP(up(ratio**2 / 2), neighbors=self.neighbors), parameters

    def __repr__(self) -> str:
        return f"Prng(resolution={self.resolution!r}, neighbors={self.neighbors!r})"


class Noise:
    """Noise that waits for the table it is for: table + noise, once. `Prng` makes it.

    Parameters
    ----------
    prng : Prng
        What was asked for noise.
    kind : {"normal", "laplace"}
        The law.
    plan : tuple
        The noise in units of the grid.
    scale : float > 0
        Its sigma or scale, as the mechanism asked for it.
    shape : tuple of int
        The shape of the table.

    Raises
    ------
    DomainError
        When it is added, before anything is drawn: the table has entries off the grid (weights, fractions), NaN, or
        counts that float32 has rounded.
    RuntimeError
        It has been added already.

    Notes
    -----
    Guarantee    the table, on the grid of the prng, plus exact noise of the law that was asked for.
    """

    __array_ufunc__ = None  # numpy leaves the sum to us, as jax does with all that it does not know

    def __init__(self, prng: Prng, kind: str, plan: NoisePlan, scale: float, shape: tuple[int, ...]) -> None:
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


def _no_location(loc: Any) -> None:
    if loc != 0:
        raise ValueError(f"loc={shown(loc)}: must be 0")


def _shape(size: Any) -> tuple[int, ...]:
    if size is None:
        return ()
    sizes = tuple(size) if isinstance(size, Iterable) else (size,)
    return tuple(integer("size", each, least=0) for each in sizes)


def _on_grid(array: NDArray[Any], grid: float) -> NDArray[np.int64]:
    """The entries in units of the grid; DomainError unless all of them are integer multiples of it."""
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
