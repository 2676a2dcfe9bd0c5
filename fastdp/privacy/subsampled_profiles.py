"""Privacy profiles of mechanisms that are run on a random sample of the records (loss_distributions.md, theorem 8)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from copy import copy
from dataclasses import dataclass, field
from math import exp, expm1, inf, log, log1p
from typing import Any, ClassVar

import numpy as np

from ..support.checks import instance_of, positive
from ..support.public_paths import public_as
from ..support.shown import shown
from .profiles import Array, Profile, U

_ROUNDING = 2.0**-48  # of a few operations


class _Several(Profile):
    """Profiles of any kind as rows."""

    def __init__(self, profiles: Sequence[Profile]) -> None:
        self._profiles = profiles

    @property
    def bound(self) -> Any:
        return np.array([[profile.bound] for profile in self._profiles])

    def values(self, losses: Array) -> tuple[Array, Array]:
        rows = losses if losses.ndim == 2 else [losses] * len(self._profiles)
        found = [profile.values(row) for profile, row in zip(self._profiles, rows, strict=True)]
        return np.stack([delta for delta, _ in found]), np.stack([error for _, error in found])


def _between(base: Profile, losses: Array, doubt: Array) -> tuple[Array, Array]:
    """The least and the most that a profile can be where each loss is only known up to a doubt."""
    high, above = base.values(losses - doubt)
    low, below = base.values(losses + doubt)
    return np.maximum(low - below, 0.0), high + above


def _as_value(low: Array, high: Array) -> tuple[Array, Array]:
    middle = (low + high) / 2
    return middle, (high - low) / 2 + U * middle


def _sampled(base: Profile, rate: float, losses: Array) -> tuple[Array, Array]:
    """rate H(1 + (g - 1)/rate) at losses ln g >= 0, least and most."""
    near = np.minimum(losses, 30.0)
    inner = np.log1p(np.expm1(near) / rate) + (losses - near)
    inner = np.where(losses > 30.0, losses - log(rate) + np.log1p((rate - 1) * np.exp(-losses)), inner)
    low, high = _between(base, inner, _ROUNDING * inner)
    return rate * low, rate * high


def _unsampled(base: Profile, rate: float, losses: Array) -> tuple[Array, Array]:
    """(1 - (1 - rate) g)_+ H(rate g / (1 - (1 - rate) g)) / g at losses ln g >= 0, least and most."""
    fall = np.expm1(-losses) / rate  # from 0 down
    share = 1 + fall
    inside = share > _ROUNDING
    sure = np.where(inside, share, 1.0)
    inner = -np.log1p(np.where(inside, fall, 0.0))
    doubt = _ROUNDING * (np.abs(fall) / sure + inner)
    low, high = _between(base, inner, np.minimum(doubt, inner))
    wrong = _ROUNDING * np.abs(fall)
    low = np.where(inside, rate * np.maximum(share - wrong, 0.0) * low, 0.0)
    high = np.where(inside, rate * (share + wrong) * high, rate * np.maximum(share + 2 * _ROUNDING, 0.0))
    return low, high


def _rate(base: Any, rate: Any) -> float:
    instance_of(Profile, "base", base, "a profile, such as Gaussian(0.5)")
    found: float = positive("rate", rate, toward=inf)
    if found > 1:
        raise ValueError(f"rate={shown(rate)}: must be at most 1")
    return found


def _amplified(bound: float, rate: float) -> float:
    """ln(1 + rate (e^bound - 1)), up."""
    most = log1p(rate * expm1(bound)) if bound < 700 else bound + log(rate) + exp(-600)
    return min(bound, most * (1 + _ROUNDING))


class _OnSample(Profile):
    """What the profiles of mechanisms on samples have in common."""

    base: Profile
    rate: float

    def end(self, tail: float) -> float:
        if self.bound < inf:
            return float(self.bound)
        return _amplified(self.base.end(min(tail / self.rate, 0.5)), self.rate)

    @classmethod
    def stacked(cls, profiles: Sequence[Profile]) -> Profile:  # type: ignore[override]
        """Several as one, whose values are a row for each of them.

        Parameters
        ----------
        profiles : sequence of Profile
            Of any kind.

        Returns
        -------
        Profile
        """
        return _Several(profiles)


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class PoissonSubsampled(_OnSample):
    """A mechanism on a sample that has each record with this probability, for add-remove neighbours.

    Removing and adding a record have different profiles: this is that of removing, `reversed()` that of adding.

    Parameters
    ----------
    base : Profile
        Of the mechanism on the sample, for add-remove neighbours.
    rate : float in (0, 1]
        The probability of a record to be in the sample.
    """

    directions: ClassVar[int] = 2
    base: Profile
    rate: float
    forward: bool = field(default=True, init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _rate(self.base, self.rate))

    @property
    def kind(self) -> Hashable:
        return type(self).__name__, self.forward

    @property
    def attained(self) -> bool:
        return self.base.attained

    def reversed(self) -> PoissonSubsampled:
        """The profile of adding a record, or of removing one if this is that of adding."""
        other = copy(self)
        object.__setattr__(other, "forward", not self.forward)
        return other

    @property
    def bound(self) -> Any:
        if self.forward:
            return _amplified(self.base.bound, self.rate)
        bound = self.base.reversed().bound
        lost = -self.rate * expm1(-bound) * (1 + _ROUNDING)
        return bound if lost >= 1 else min(bound, -log1p(-lost) * (1 + _ROUNDING))

    @property
    def mass_at_bound(self) -> float:
        if self.forward:
            return self.rate * self.base.mass_at_bound * (1 - 2.0**-40)
        backward = self.base.reversed()
        return backward.mass_at_bound if backward.bound < inf else 0.0

    def values(self, losses: Array) -> tuple[Array, Array]:
        if self.rate == 1:
            return (self.base if self.forward else self.base.reversed()).values(losses)
        size = np.abs(losses)
        removed = _as_value(*_sampled(self.base, self.rate, size))
        added = _as_value(*_unsampled(self.base.reversed(), self.rate, size))
        trivial = -np.expm1(np.minimum(losses, 0.0))  # 1 - g, which every profile has at least
        found, mirrored = (removed, added) if self.forward else (added, removed)
        scale = np.ones_like(size) if self.forward else np.exp(np.minimum(losses, 700.0))
        positive_side = losses >= 0
        delta = np.where(positive_side, scale * found[0], trivial + (1.0 if self.forward else scale) * mirrored[0])
        error = np.where(positive_side, scale * found[1], (1.0 if self.forward else scale) * mirrored[1] + U * delta)
        error = error + U * delta
        over = losses >= self.bound
        return np.where(over, 0.0, delta), np.where(over, 0.0, error)


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class FixedSizeSubsampled(_OnSample):
    """A mechanism on a sample of fixed size, for replace-one neighbours: an upper bound.

    It also bounds Poisson sampling under replace-one neighbours, where `base` bounds what replacing, adding and
    removing a record of the sample do.

    Parameters
    ----------
    base : Profile
        Of the mechanism on the sample, for replace-one neighbours.
    rate : float in (0, 1]
        The size of the sample over the number of records.
    """

    base: Profile
    rate: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _rate(self.base, self.rate))
        if self.base.directions > 1:
            raise ValueError(f"base={shown(self.base)}: must be the same in both directions, as under replace-one")

    @property
    def attained(self) -> bool:
        return False

    @property
    def bound(self) -> Any:
        return _amplified(self.base.bound, self.rate)

    def values(self, losses: Array) -> tuple[Array, Array]:
        found, doubt = _as_value(*_sampled(self.base, self.rate, np.abs(losses)))
        below = np.exp(np.minimum(losses, 0.0))
        delta = below * found - np.expm1(np.minimum(losses, 0.0))
        over = losses >= self.bound
        return np.where(over, 0.0, delta), np.where(over, 0.0, below * doubt + U * delta)


__all__ = ["FixedSizeSubsampled", "PoissonSubsampled"]
