"""The removal lemma: where a record that an answer concerns is deleted, it pays once, however many rounds there are.

A learner that peels (draws a candidate by the exponential mechanism, deletes the records that the candidate concerns,
goes on) uses each record's privacy until that record is deleted, and never again. removal_lemma.md states the
setting exactly and proves the four forms. Where few rounds are made, composition may still be the better account:
`peeling_eta` takes the larger parameter of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property, lru_cache
from math import exp as exp_of
from math import expm1, inf
from typing import NoReturn

import numpy as np

from ..support import parameters
from ..support.checks import flag, integer, non_negative, positive
from ..support.public_paths import public_as
from ..support.rounding import add, divide, down, exp, lower, multiply, sixty_digits, subtract, up
from ..support.search import greatest_float, least_float
from ..support.shown import shown
from .composition import share
from .guarantee_forms import Form
from .guarantees import ApproxDP, BoundedRange, Guarantee, Neighbors
from .profiles import Array, Profile, U

LEAST_ETA, MOST_ETA = 1e-12, 10.0  # the lemma gives nothing of use beyond


@public_as("fastdp.privacy")
@dataclass(frozen=True)
class RemovalLemma(Profile):
    """Any number of rounds at eta under the removal lemma: an upper bound (loss_distributions.md, theorem 9).

    Parameters
    ----------
    eta : float in [1e-12, 10]
        As in `removal`.
    one_signed : bool
        As in `removal`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.
    """

    eta: float
    one_signed: bool
    neighbors: Neighbors = "replace-one"

    def __post_init__(self) -> None:
        object.__setattr__(self, "eta", _eta(self.eta))
        object.__setattr__(self, "one_signed", flag("one_signed", self.one_signed))
        parameters.neighbors(self.neighbors)

    @property
    def attained(self) -> bool:
        return False

    def values(self, losses: Array) -> tuple[Array, Array]:
        delta = self._both(losses)
        ends = np.array([-1.0, 1.0]) * self._inner_end
        low, high = self._both(ends)
        inside = np.abs(losses) < self._inner_end
        x = np.where(inside, losses, 0.0)
        chord = high + (low - high) * np.exp(x) * np.expm1(ends[1] - x) / (exp_of(ends[1]) - exp_of(ends[0]))
        delta = np.minimum(np.where(inside, np.minimum(delta, chord), delta), 1.0)
        return delta, U * delta * (16 + np.abs(losses) / expm1(self.eta))

    def _both(self, losses: Array) -> Array:
        """The curve at losses from 0 on; what follows from it in the other order below."""
        size, negative = np.abs(losses), np.minimum(losses, 0.0)
        curve = self._general(size)
        if self.one_signed:
            curve = np.where(size >= self._least, np.minimum(curve, self._one_signed(size)), curve)
        return np.exp(negative) * curve - np.expm1(negative)

    @property
    def _least(self) -> float:
        """Where the one-signed form holds, or a little above."""
        return self.eta * (1 if self.neighbors == "add-remove" else 2) * (1 + 2.0**-40)

    @cached_property
    def _inner_end(self) -> float:
        """Between -this and this the profile, being convex, is below a chord: that which is lowest at 0, nearly."""
        ends = (self._least if self.one_signed else 0.0) + expm1(self.eta) * np.linspace(0.01, 4.0, 100)
        ends = ends[ends < 600.0] if ends[0] < 600.0 else ends[:1]
        share = np.expm1(ends) / (np.exp(ends) - np.exp(-ends))
        at_zero = share * self._both(-ends) + (1 - share) * self._both(ends)
        return float(ends[np.argmin(at_zero)])

    def _general(self, size: Array) -> Array:
        """removal_lemma.md, forms (a) and (c)."""
        kappa = expm1(self.eta)
        response = kappa / (kappa + 2)  # D of the note
        before: Array | float = response
        if self.neighbors == "replace-one":
            m = response * exp_of(-self.eta / kappa)
            before = (kappa + 2 * m) / (kappa + 2) + m / kappa * size
        with np.errstate(under="ignore"):
            return before * np.exp(-size / kappa)

    def _one_signed(self, size: Array) -> Array:
        """Forms (b) and (d)."""
        eta, kappa = self.eta, expm1(self.eta)
        with np.errstate(under="ignore"):
            if self.neighbors == "add-remove":
                return -expm1(-eta) * np.exp(-(size + eta) / kappa)
            shifted = size + 2 * eta
            both = (-expm1(-2 * eta) + shifted * exp_of(-eta)) * np.exp(-shifted / kappa)
            return np.maximum(kappa * np.exp(-size / kappa), both)


def _eta(eta: object) -> float:
    found = positive("eta", eta, toward=inf)
    if not LEAST_ETA <= found <= MOST_ETA:
        raise ValueError(f"eta={shown(eta)}: must be between 1e-12 and 10; the lemma gives no useful bound beyond")
    return found


@public_as("fastdp.privacy")
@dataclass(frozen=True, repr=False)
class Removal(Guarantee):
    """The guarantee of any number of rounds at eta under the removal lemma: a delta for every epsilon.

    Parameters
    ----------
    eta : float in [1e-12, 10]
        As in `removal`.
    one_signed : bool
        As in `removal`.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.
    """

    eta: float
    one_signed: bool

    def __post_init__(self) -> None:
        parameters.neighbors(self.neighbors)  # of records: a curve has no form for groups
        super().__post_init__()
        eta = _eta(self.eta)
        if not isinstance(self.one_signed, bool):
            raise ValueError(f"one_signed={shown(self.one_signed)}: must be True or False")
        object.__setattr__(self, "eta", eta)

    @sixty_digits
    def delta(self, epsilon: float) -> float:
        """Compute the delta at epsilon: of the general form or, from `least_epsilon` on, the lesser of both.

        Parameters
        ----------
        epsilon : float >= 0
            The privacy parameter.

        Returns
        -------
        float
        """
        epsilon = non_negative("epsilon", epsilon, toward=0)
        best = up(self._delta(Decimal(epsilon), one_signed=False))
        if self.one_signed and epsilon >= self.least_epsilon():
            best = min(best, up(self._delta(Decimal(epsilon), one_signed=True)))
        return min(best, 1.0)

    def least_epsilon(self) -> float:
        """Where the one-signed form begins: it has a direction that is pure eta, or 2 eta."""
        return self.eta if self.neighbors == "add-remove" else 2 * self.eta

    @sixty_digits
    def _delta(self, e: Decimal, *, one_signed: bool) -> Decimal:
        """removal_lemma.md, forms (a) to (d)."""
        eta = Decimal(self.eta)
        kappa = subtract(exp(eta), Decimal(1))
        if not one_signed:
            response = divide(kappa, add(kappa, Decimal(2)))  # D of the note
            if self.neighbors == "add-remove":
                return multiply(response, exp(divide(-e, kappa)))
            m = multiply(response, exp(divide(-eta, kappa)))
            c = divide(add(kappa, 2 * m), add(kappa, Decimal(2)))
            return multiply(add(c, multiply(divide(m, kappa), e)), exp(divide(-e, kappa)))
        if self.neighbors == "add-remove":
            return multiply(subtract(Decimal(1), exp(-eta)), exp(divide(-add(e, eta), kappa)))
        shifted = add(e, 2 * eta)
        twice = subtract(Decimal(1), exp(-2 * eta))
        both = multiply(add(twice, multiply(shifted, exp(-eta))), exp(divide(-shifted, kappa)))
        return max(both, multiply(kappa, exp(divide(-e, kappa))))

    def to_approx(self, delta: float) -> ApproxDP:
        """Compute the least epsilon at this delta, to 12 digits.

        Parameters
        ----------
        delta : float in (0, 1)
            The probability with which the pure guarantee may fail.

        Returns
        -------
        ApproxDP
        """
        delta = parameters.delta(delta)
        if self.delta(0.0) <= delta:
            return ApproxDP(0.0, delta, neighbors=self.neighbors, theorem="removal lemma")
        least = least_float(lambda epsilon: self.delta(epsilon) <= delta, guess=self.eta, tolerance=1e-12)
        return ApproxDP(least, delta, neighbors=self.neighbors, theorem="removal lemma")

    def _follows_from(self, stronger: Guarantee) -> bool:
        return isinstance(stronger, Removal) and stronger.one_signed >= self.one_signed and stronger.eta <= self.eta

    def implies(self, other: Guarantee) -> bool:
        """Decide whether another guarantee follows: a point of the curve, or a weaker curve.

        Parameters
        ----------
        other : Guarantee
            The guarantee in question.

        Returns
        -------
        bool
        """
        if self.neighbors == other.neighbors and isinstance(other, ApproxDP) and other.delta:
            return self.delta(other.epsilon) <= other.delta
        return self.neighbors == other.neighbors and isinstance(other, Removal) and other._follows_from(self)

    def forms(self) -> tuple[Form, ...]:
        return (Form(profiles=(RemovalLemma(self.eta, self.one_signed, self.neighbors),)),)

    def _group(self, size: int) -> NoReturn:
        raise ValueError(f"size={size}: choose a point with .to_approx(delta) first")

    def _stated(self) -> str:
        kind = "one-signed " if self.one_signed else ""
        return f"{kind}removal at eta={self.eta:.6g}"


def removal(eta: float, *, one_signed: bool, neighbors: Neighbors = "replace-one") -> Removal:
    """The guarantee of any number of rounds of the exponential mechanism at eta, under the removal lemma.

    Parameters
    ----------
    eta : float in [1e-12, 10]
        Of `Pr[c] proportional to exp(eta * score)`, with scores that one record (under replace-one: one replacement)
        moves by at most 1, and only those of candidates that would delete it.
    one_signed : bool
        Whether a given record moves all scores of all rounds in one direction only.
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.

    Returns
    -------
    Guarantee
        A delta for every epsilon; `.to_approx(delta)` chooses a point.

    Notes
    -----
    Proof    removal_lemma.md.

    Examples
    --------
    >>> from fastdp import removal
    >>> print(removal(0.0794, one_signed=True).to_approx(1e-6))
    (0.999059, 1e-06)-DP, replace-one
    """
    return Removal(eta, one_signed, neighbors=neighbors)


def removal_eta(epsilon: float, delta: float, *, one_signed: bool, neighbors: Neighbors = "replace-one") -> float:
    """The largest eta (to 12 digits) for which `removal` gives (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of all rounds together.
    delta : float in (0, 1)
        Their delta.
    one_signed : bool
        Whether a given record moves all scores of all rounds in one direction only.
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.

    Returns
    -------
    float
        Rounded down.

    Raises
    ------
    ValueError
        Where epsilon and delta are too small for the lemma.
    """
    goal = ApproxDP(parameters.epsilon(epsilon), parameters.delta(delta), neighbors=neighbors)
    return _removal_eta(goal, flag("one_signed", one_signed))


@lru_cache(1024)
def _removal_eta(goal: ApproxDP, one_signed: bool) -> float:
    def fits(eta: float) -> bool:
        return eta < MOST_ETA and Removal(eta, one_signed, neighbors=goal.neighbors).implies(goal)

    found = greatest_float(fits, bracket=(LEAST_ETA, MOST_ETA), tolerance=1e-12, smallest=LEAST_ETA)
    if not found:
        raise ValueError(
            f"epsilon={goal.epsilon!r}, delta={goal.delta!r}: too small for the lemma, whose eta is at least 1e-12"
        )
    return found


def peeling_eta(
    epsilon: float, delta: float, rounds: int, *, one_signed: bool, neighbors: Neighbors = "replace-one"
) -> tuple[float, str]:
    """The largest eta that `rounds` rounds may use, and the account that allows it: the lemma, or composition.

    Composition takes a round as eta r-bounded range, r = 1 for one-signed scores under add-remove neighbours and r = 2
    otherwise, and the best that `compose` knows of it. For few rounds it is the better account.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of all rounds together.
    delta : float in (0, 1)
        Their delta.
    rounds : int >= 1
        How many rounds there are at most.
    one_signed : bool
        Whether a given record moves all scores of all rounds in one direction only.
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.

    Returns
    -------
    tuple of float and str
        Eta, and "removal lemma" or "composition".

    Examples
    --------
    >>> from fastdp import peeling_eta
    >>> peeling_eta(1.0, 1e-6, 4, one_signed=True)[1], peeling_eta(1.0, 1e-6, 40, one_signed=True)[1]
    ('composition', 'removal lemma')
    """
    rounds = integer("rounds", rounds, least=1)
    goal = ApproxDP(parameters.epsilon(epsilon), parameters.delta(delta), neighbors=neighbors)
    one_signed = flag("one_signed", one_signed)
    by_lemma = lemma_eta(epsilon, delta, one_signed=one_signed, neighbors=neighbors)
    score_range = 1 if one_signed and neighbors == "add-remove" else 2
    composed = share(goal, rounds, lambda eta: BoundedRange(eta, neighbors=neighbors)) / score_range
    return max((by_lemma, "removal lemma"), (composed, "composition"))


def lemma_eta(epsilon: float, delta: float, *, one_signed: bool, neighbors: Neighbors) -> float:
    """`removal_eta` of the lesser of decimal and binary values; 0 where the lemma gives nothing of use."""
    if not delta:
        return 0.0
    try:
        return removal_eta(down(lower(epsilon)), down(lower(delta)), one_signed=one_signed, neighbors=neighbors)
    except ValueError:  # delta below 1e-50 or so
        return 0.0
