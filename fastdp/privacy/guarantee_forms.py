"""Forms: what a guarantee is when it is composed or converted. Each follows from the guarantee by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf

from ..support.rounding import down, up
from .conversions import epsilon_of_curve, epsilon_of_rho, rho_of_pure
from .curves import NO_CURVE, Curve, least, linear_curve, pure_curve
from .gaussian_curve import epsilon_of_mu, mu_of_range, mu_of_rho
from .loss_distributions import epsilon_bounds
from .profiles import Exponential, Gaussian, Profile, RandomizedResponse


def no_curve() -> Curve:
    """No bound at any order."""
    return NO_CURVE


@dataclass(frozen=True)
class Form:
    """One form of a guarantee: with probability `leak` anything may happen, otherwise all of the rest holds.

    Parameters
    ----------
    leak : float in [0, 1)
        The delta that every bound may fail with.
    pure : float
        The bound of the privacy loss; inf for none, here as below.
    rho : float >= 0
        The bound of zero-concentrated DP.
    make_curve : callable
        Makes the Renyi curve when it is asked for: most uses need only a number.
    range : float
        The bound of the range of log-likelihood ratios.
    mu : float
        The bound of Gaussian DP.
    profiles : tuple of Profile
        What is known of the losses beyond these bounds: each bounds the privacy profile.
    """

    leak: float = 0.0
    pure: float = inf
    rho: float = inf
    make_curve: Callable[[], Curve] = no_curve
    range: float = inf
    mu: float = inf
    profiles: tuple[Profile, ...] = ()

    @property
    def curve(self) -> Curve:
        return self.make_curve()

    @staticmethod
    def of_pure(epsilon: float, profile: Profile | None = None) -> Form:
        """The form of epsilon-DP.

        Parameters
        ----------
        epsilon : float >= 0
            The bound of the privacy loss.
        profile : Profile, optional
            What more is known of it.

        Returns
        -------
        Form
            With all that follows from it.
        """
        rho, twice = rho_of_pure(epsilon), up(2 * Fraction(epsilon))
        return Form(
            pure=epsilon,
            rho=rho,
            make_curve=lambda: pure_curve(epsilon),
            range=twice,
            profiles=() if profile is None else (profile,),
        )

    @staticmethod
    def strongest(forms: Sequence[Form]) -> Form:
        """All of these forms, none of which leaks, at once.

        Parameters
        ----------
        forms : sequence of Form
            At least one.

        Returns
        -------
        Form
            The least of every bound.
        """
        return Form(
            pure=min(form.pure for form in forms),
            rho=min(form.rho for form in forms),
            make_curve=lambda: least(form.full_curve() for form in forms),
            range=min(form.range for form in forms),
            mu=min(form.mu for form in forms),
            profiles=tuple(dict.fromkeys(profile for form in forms for profile in form.profiles)),
        )

    @property
    def has_profile(self) -> bool:
        """Whether anything but moments of its losses is known."""
        return bool(self.profiles) or min(self.pure, self.range, self.mu) < inf

    def all_profiles(self) -> tuple[Profile, ...]:
        """All profiles that are known of it, each of which holds by itself."""
        found = list(self.profiles)
        if self.mu < inf:
            found.append(Gaussian(self.mu) if self.mu else RandomizedResponse(0.0))
        if self.range < inf and self.range < 2 * self.pure:
            found.append(Exponential(self.range))
        if self.pure < inf and not any(profile.bound <= self.pure * (1 + 2.0**-40) for profile in found):
            found.append(RandomizedResponse(self.pure))
        return tuple(found)

    @property
    def least_mu(self) -> float:
        """The least mu of Gaussian DP that follows, leak aside: gaussian_curve.md, theorem 2."""
        return min(self.mu, mu_of_range(self.range), mu_of_rho(self.rho))

    def full_curve(self) -> Curve:
        """The curve, with that of rho where it is lower."""
        return self.curve if self.rho == inf else least((self.curve, linear_curve(self.rho)))

    def epsilon(self, delta: float) -> tuple[float, str]:
        """The least epsilon at delta, and the theorem that gives it.

        Parameters
        ----------
        delta : float in (0, 1)
            The delta of the result.

        Returns
        -------
        tuple of float and str
            (inf, "") if there is none.
        """
        rest = down(Fraction(delta) - Fraction(self.leak))
        if rest < 0:
            return inf, ""
        found = [(self.pure, "pure")]
        if rest > 0:
            found.append((epsilon_of_curve(self.curve, rest), "Renyi conversion"))
            if self.rho < inf:
                found.append((epsilon_of_rho(self.rho, rest), "zCDP, tight conversion"))
            if self.mu < inf:
                found.append((epsilon_of_mu(self.mu, rest), "Gaussian DP"))
            for profile in self.all_profiles():
                if self.profiles or isinstance(profile, Exponential):  # else the bounds above say as much
                    bounds = epsilon_bounds([(profile, 1)], delta=delta, leak=self.leak)
                    if bounds is not None:
                        found.append((bounds.at_most, "privacy loss distribution"))
        return min(found)
