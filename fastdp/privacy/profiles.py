"""Privacy profiles: for each kind of release the least delta at every epsilon, which a pair of distributions attains.

The profile of a kind is all that composition needs to know of it (loss_distributions.md, theorem 1). Here it is a
formula, evaluated at many losses at once, with a bound of the error of its floats; how profiles are put on a grid and
composed is told in loss_grid.py. Parameters may be columns, so that profiles of one kind are evaluated together.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from math import exp, expm1, inf, isfinite, log
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np

from ..support import parameters
from ..support.checks import instance_of, non_negative, positive
from ..support.columns import has
from ..support.public_paths import public_as
from ..support.search import least_float
from ..support.shown import shown
from .normal_tails import mills_ratio, upper_tail

U = 2.0**-45
"""What functions of numpy and libm are trusted with, relative: they are right to 2^-50 and better."""

Array = Any
P = TypeVar("P", bound="Profile")


@public_as("fastdp.privacy")
class Profile:
    """A privacy profile: the least delta of a kind of release at every epsilon."""

    directions: ClassVar[int] = 1  # 2 where removing and adding a record differ
    forward: bool = True  # False for the direction that `reversed` has made

    @property
    def attained(self) -> bool:
        """Whether one pair has it, so that nothing less holds however often it is composed."""
        return True

    @property
    def kind(self) -> Hashable:
        """Profiles of one kind can be `stacked`."""
        return type(self).__name__

    @property
    def bound(self) -> Any:
        """No loss is larger; inf where there is none."""
        return inf

    @property
    def mass_at_bound(self) -> float:
        """With at least which probability the loss is `bound`."""
        return 0.0

    @property
    def spacing(self) -> float:
        """All losses are multiples of it; 0 where there is no such number, or they are too many."""
        return 0.0

    def atoms(self) -> Array:
        """The probability of each multiple of `spacing`, from the least loss to the greatest, with a relative 2^-45."""
        raise AssertionError("a profile with a spacing has atoms")

    def values(self, losses: Array) -> tuple[Array, Array]:
        """Evaluate the profile at some losses.

        Parameters
        ----------
        losses : ndarray of float
            Epsilons, negative ones included; taken as what they are as floats.

        Returns
        -------
        tuple of ndarray
            The deltas, and a bound of the error of each.
        """
        raise AssertionError("every profile has values")

    def reversed(self) -> Profile:
        """The profile of the pair with its distributions exchanged."""
        return self

    def end(self, tail: float) -> float:
        """Find a loss beyond which the profile is small.

        Parameters
        ----------
        tail : float > 0
            How small.

        Returns
        -------
        float
            The profile is at most `tail` there and beyond.
        """
        if isfinite(self.bound):
            return float(self.bound)
        return least_float(lambda loss: bool(self.values(np.array([loss]))[0][0] <= tail), tolerance=0.01)

    def width(self, tail: float) -> float:
        """Find how far a grid must reach, to either side.

        Parameters
        ----------
        tail : float > 0
            How small profiles are to be beyond.

        Returns
        -------
        float
            `end` of both directions.
        """
        return self.end(tail) if self.directions == 1 else max(self.end(tail), self.reversed().end(tail))

    @classmethod
    def stacked(cls: type[P], profiles: Sequence[P]) -> P:
        """Several of one kind as one, whose parameters are columns.

        Parameters
        ----------
        profiles : sequence of Profile
            All of this kind.

        Returns
        -------
        Profile
            Its values are a row for each of them.
        """
        columns = object.__new__(cls)
        for each in fields(cls):  # type: ignore[arg-type]  # every kind is a dataclass
            object.__setattr__(columns, each.name, np.array([[getattr(one, each.name)] for one in profiles]))
        return columns

    def delta(self, epsilon: float) -> float:
        """The least delta at this epsilon.

        Parameters
        ----------
        epsilon : float >= 0
            The bound of the privacy loss.

        Returns
        -------
        float
            Rounded up.
        """
        epsilon = non_negative("epsilon", epsilon, toward=0)
        found = [
            one.values(np.array([epsilon])) for one in ((self,) if self.directions == 1 else (self, self.reversed()))
        ]
        return float(min(1.0, max(delta[0] + error[0] for delta, error in found)))


class HasProfile(Protocol):
    """A guarantee that may know more of its losses than its numbers state."""

    @property
    def profile(self) -> Profile | None: ...
    @property
    def neighbors(self) -> str: ...


G = TypeVar("G", bound=HasProfile)


def with_profile(guarantee: G, profile: Profile) -> G:
    """The same guarantee of a release whose losses have this profile.

    Parameters
    ----------
    guarantee : Guarantee
        What is stated in numbers.
    profile : Profile
        What is known beyond them: it bounds the privacy profile of every pair of neighbours, under the same relation;
        of an ApproxDP, what holds but with probability delta.

    Returns
    -------
    Guarantee
        Equal to the one that was given; `compose` uses what it knows.
    """
    if isinstance(guarantee, type) or not is_dataclass(guarantee) or not has(guarantee, "profile"):
        raise ValueError(f"guarantee={shown(guarantee)}: must be a guarantee, such as PureDP(0.1)")
    twin = copy(guarantee)
    instance_of(Profile, "profile", profile, "a profile, such as Laplace(0.1)")
    if not profile.forward or (profile.directions > 1 and guarantee.neighbors != "add-remove"):
        raise ValueError(f"profile={shown(profile)}: must be that of removing a record, for add-remove neighbours")
    object.__setattr__(twin, "profile", profile)
    return twin


def _bounded(losses: Array, bound: Any, within: Array) -> tuple[Array, Array]:
    """A profile that is `within` from -bound to bound, 0 from there on, and as large as can be below -bound."""
    delta = np.where(losses >= -bound, within, -np.expm1(np.minimum(losses, 0.0)))
    delta = np.where(losses >= bound, 0.0, delta)
    return delta, U * delta


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class RandomizedResponse(Profile):
    """Randomised response on a bit, the worst of all that is epsilon-DP.

    Parameters
    ----------
    epsilon : float >= 0
        The bound of the privacy loss.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", parameters.least_epsilon(self.epsilon))

    @property
    def bound(self) -> Any:
        return self.epsilon

    @property
    def mass_at_bound(self) -> float:
        return 0.5

    @property
    def spacing(self) -> float:
        return self.epsilon

    def atoms(self) -> Array:
        return np.array([1 / (1 + exp(min(self.epsilon, 700.0))), 0.0, 1 / (1 + exp(-self.epsilon))])

    def values(self, losses: Array) -> tuple[Array, Array]:
        e = self.epsilon
        return _bounded(losses, e, -np.expm1(np.minimum(losses - e, 0.0)) / (1 + np.exp(-e)))


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class Laplace(Profile):
    """Laplace noise, in any dimension.

    Parameters
    ----------
    epsilon : float >= 0
        The L1 sensitivity over the scale.
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", parameters.least_epsilon(self.epsilon))

    @property
    def bound(self) -> Any:
        return self.epsilon

    @property
    def mass_at_bound(self) -> float:
        return 0.5

    def values(self, losses: Array) -> tuple[Array, Array]:
        return _bounded(losses, self.epsilon, -np.expm1(np.minimum(losses - self.epsilon, 0.0) / 2))


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class DiscreteLaplace(Profile):
    """Discrete Laplace noise on integers, in any dimension.

    Parameters
    ----------
    scale : float > 0
        The scale of the noise.
    sensitivity : int >= 1
        The L1 sensitivity.
    """

    scale: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", positive("scale", self.scale, toward=0))
        object.__setattr__(self, "sensitivity", parameters.integer_sensitivity(self.sensitivity))

    @property
    def bound(self) -> Any:
        return self.sensitivity / self.scale * (1 + 2.0**-52)  # at least the quotient, whichever way it was rounded

    @property
    def mass_at_bound(self) -> float:
        return 0.5

    @property
    def spacing(self) -> float:
        return 1 / self.scale if self.sensitivity <= 4096 else 0.0

    def atoms(self) -> Array:
        t, k = self.scale, self.sensitivity
        odds = np.exp(-np.arange(k, -1, -1) / t) / (1 + exp(-1 / t))  # of noise k, ..., 1, 0 against 0 and above
        odds[1:-1] *= -expm1(-1 / t)
        masses = np.zeros(2 * k + 1)
        masses[::2] = odds
        return masses

    def values(self, losses: Array) -> tuple[Array, Array]:
        # 1 - q^((k-y)/2) (q^f + q^(1-f)) / (1 + q), q = e^(-1/t), y = loss t, f what (k-y)/2 lacks to an integer
        t, k = self.scale, self.sensitivity
        half = (k - losses * t) / 2
        f = np.ceil(half) - half
        between = np.log1p(-np.expm1(-f / t) * np.expm1((f - 1) / t) / (1 + np.exp(-1 / t)))
        delta, error = _bounded(losses, self.bound, -np.expm1(np.minimum(losses - self.bound, 0.0) / 2 + between))
        return delta, error + np.where(losses < self.bound, 2.0**-50 * self.bound, 0.0)


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class Exponential(Profile):
    """A choice of bounded range, such as the exponential mechanism's.

    No pair attains it under composition: it is the greatest profile of all pairs of this range.

    Parameters
    ----------
    eta : float >= 0
        The range of the log-likelihood ratios.
    """

    eta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", non_negative("eta", self.eta, toward=inf))

    @property
    def attained(self) -> bool:
        return False

    @property
    def bound(self) -> Any:
        return self.eta

    def values(self, losses: Array) -> tuple[Array, Array]:
        root = np.expm1(np.minimum(losses - self.eta, 0.0) / 2)
        return _bounded(losses, self.eta, root * root / -np.expm1(-self.eta))


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class Gaussian(Profile):
    """Gaussian noise, and all that is mu-Gaussian DP.

    Parameters
    ----------
    mu : float > 0
        The L2 sensitivity over sigma.
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", positive("mu", self.mu, toward=inf))

    def values(self, losses: Array) -> tuple[Array, Array]:
        mu = self.mu
        z = losses / mu - mu / 2
        above = upper_tail(z)
        far = z + mu
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
            second = np.where(far > 20, density * mills_ratio(far), np.exp(losses) * upper_tail(far))
        delta = np.maximum(above - second, 0.0)
        spread = 1 + (far * far + z * z + np.abs(losses) + mu * mu) * 2.0**-4
        return delta, np.minimum(U * (above + second) * spread, 1.0)

    def end(self, tail: float) -> float:
        return float(self.mu * (self.mu / 2 + np.sqrt(-2 * log(tail))))  # Pr[Z > x] <= e^(-x^2/2)


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class DiscreteGaussian(Profile):
    """Discrete Gaussian noise on one integer.

    Parameters
    ----------
    sigma : float in (0, 512]
        The scale of the noise.
    sensitivity : int >= 1
        How far one record moves the integer.
    """

    sigma: float
    sensitivity: int = 1

    def __post_init__(self) -> None:
        sigma = positive("sigma", self.sigma, toward=0)
        if sigma > 512:
            raise ValueError(f"sigma={sigma!r}: must be at most 512; beyond, take Gaussian, whose mu covers it")
        object.__setattr__(self, "sigma", sigma)
        object.__setattr__(self, "sensitivity", parameters.integer_sensitivity(self.sensitivity))

    @cached_property
    def _tails(self) -> tuple[int, Array]:
        """Pr[Z <= z] from the least z that counts to beyond the greatest."""
        most = int(40 * self.sigma) + 2
        z = np.arange(-most, most + 1, dtype=np.float64)
        weights = np.exp(-((z / self.sigma) ** 2) / 2)
        below = np.cumsum(weights)
        return most, np.concatenate(([0.0], below / below[-1]))

    def _at_most(self, z: Array) -> Array:
        most, tails = self._tails
        return tails[np.clip(z + most + 1, 0, 2 * most + 1).astype(np.int64)]

    def values(self, losses: Array) -> tuple[Array, Array]:
        s = self.sensitivity
        last = np.ceil(s / 2 - losses * (self.sigma * self.sigma / s)) - 1
        first, moved = self._at_most(last), self._at_most(last - s)
        with np.errstate(over="ignore", invalid="ignore"):
            second = np.where(moved > 0, np.exp(np.minimum(losses, 700.0)) * moved, 0.0)
        delta = np.maximum(first - second, 0.0)
        return delta, 2.0**-36 * (first + second)


__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Profile",
    "RandomizedResponse",
    "with_profile",
]
