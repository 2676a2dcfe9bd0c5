"""Guarantees: what a release guarantees about every pair of neighbouring inputs.

A guarantee is a frozen value. It knows its neighbouring relation, converts to (epsilon, delta) at any delta, and may
hold several forms that are all true at once; `compose` uses whichever serves. All arithmetic rounds toward more privacy
loss (support/rounding.py). guarantees.md has the theorems and their proofs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, isfinite
from typing import Any

from ..support import extensions, parameters
from ..support.checks import instance_of, integer, non_negative, positive, small_delta
from ..support.public_paths import public_as
from ..support.rounding import up
from .conversions import geometric_sum, positive_delta, rho_of_range
from .curves import ORDERS, discrete_laplace_curve, laplace_curve, least, linear_curve, on_orders, range_curve
from .guarantee_forms import Form
from .neighbors import NEIGHBORS as NEIGHBORS
from .neighbors import Neighbors as Neighbors
from .neighbors import check_relation, kind_of, one_relation, replacing
from .origin import Origin, Originated, common_origin, with_origin
from .profiles import DiscreteLaplace, Laplace, Profile, with_profile

A_GUARANTEE = "a guarantee, such as PureDP(0.1)"  # what errors ask for


@dataclass(frozen=True, repr=False)
class Guarantee(Originated):
    """What all guarantees have in common.

    Parameters
    ----------
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.
    theorem : str, optional
        What gave the guarantee, if it is a result.
    """

    neighbors: Neighbors = field(default="replace-one", kw_only=True)
    theorem: str = field(default="", kw_only=True, compare=False, repr=False)  # what gave it, if it is a result
    origin: Origin | None = field(default=None, init=False, compare=False, repr=False)  # of a release, if it is of one
    profile: Profile | None = field(default=None, init=False, compare=False, repr=False)  # what more is known of it
    at_least: float = field(default=0.0, init=False, compare=False, repr=False)  # of a result: no less could follow

    def __post_init__(self) -> None:
        check_relation(self.neighbors)

    def forms(self) -> tuple[Form, ...]:
        """The same guarantee in every form that follows from it; each is true by itself."""
        raise AssertionError("every kind of guarantee has forms")

    def to_approx(self, delta: float) -> ApproxDP:
        """The least epsilon at this delta, by whichever conversion gives it.

        Parameters
        ----------
        delta : float in (0, 1)
            The delta of the result.

        Returns
        -------
        ApproxDP
            Its `.theorem` names the conversion.

        Raises
        ------
        ValueError
            Where no epsilon holds at this delta.
        """
        delta = positive_delta(delta)
        best, theorem = min(form.epsilon(delta) for form in self.forms())
        if best == inf:
            raise ValueError(
                f"delta={delta!r}: {self} gives no epsilon at this delta; take a delta above {self.least_delta():.3g}"
            )
        return with_origin(ApproxDP(best, delta, neighbors=self.neighbors, theorem=theorem), self.origin)

    def least_delta(self) -> float:
        """No (epsilon, delta) follows from this with a smaller delta."""
        return min(form.leak for form in self.forms())

    def to_zcdp(self) -> ZCDP:
        """The least rho that follows."""
        rho = min((form.rho for form in self.forms() if not form.leak), default=inf)
        if rho == inf:
            raise ValueError(f"{self}: does not imply zero-concentrated DP; only to_approx(delta) is left")
        return with_origin(ZCDP(rho, neighbors=self.neighbors), self.origin)

    def to_renyi(self) -> Renyi:
        """The least Renyi curve that follows."""
        curve = least(form.full_curve() for form in self.forms() if not form.leak)
        if not any(map(isfinite, curve)):
            raise ValueError(f"{self}: does not bound a Renyi divergence; only to_approx(delta) is left")
        return with_origin(Renyi(curve, neighbors=self.neighbors), self.origin)

    def implies(self, other: Guarantee) -> bool:
        """Whether `other` is proven to follow from this, by a change from add-remove to replace-one if need be.

        Parameters
        ----------
        other : Guarantee
            The weaker one.

        Returns
        -------
        bool
            False where it is false, and where it is not proven.
        """
        if self.neighbors != instance_of(Guarantee, "other", other, A_GUARANTEE).neighbors:
            if kind_of(self.neighbors) == "replace-one":
                return False
            try:
                changed = self.to_replace_one()
            except ValueError:
                return False
            return changed.implies(other)
        return other._follows_from(self)

    def _follows_from(self, stronger: Guarantee) -> bool:
        raise AssertionError("every kind of guarantee can be compared")

    def to_replace_one(self) -> Guarantee:
        """The same under replace-one neighbours: a replacement is a removal and an addition.

        Returns
        -------
        Guarantee
            This one where it is for replace-one already.

        Notes
        -----
        Proof    guarantees.md, theorem 2.
        """
        if kind_of(self.neighbors) == "replace-one":
            return self
        return with_origin(replace(self.group(2), neighbors=replacing(self.neighbors)), self.origin)

    def group(self, size: int) -> Guarantee:
        """The same for groups of `size` records at once.

        Parameters
        ----------
        size : int >= 1
            How many records differ.

        Returns
        -------
        Guarantee
            Of the same kind.

        Notes
        -----
        Proof    guarantees.md, theorem 2.
        """
        size = integer("size", size, least=1)
        return with_origin(self if size == 1 else self._group(size), self.origin)

    def _group(self, size: int) -> Guarantee:
        raise AssertionError("every kind of guarantee has a group form")

    def __and__(self, other: Guarantee) -> AllOf:
        """Both at once."""
        return AllOf(self, other)

    def dp_event(self, accountant: Any = None, *, leak: float = 0.0) -> Any:
        """This guarantee as an event of the library dp-accounting (extra `[accounting]`).

        Parameters
        ----------
        accountant : accountant of dp_accounting, optional
            Whom the event is for, where it is known: the event is then the tightest that it takes.
        leak : float in [0, 1)
            A delta to be left out of the event; the caller adds it to the accountant's.

        Returns
        -------
        dp_accounting.DpEvent
            connect/dp_accounting.md states what it stands for.
        """
        return extensions.load("dp_event", "dp-accounting").dp_event(self, accountant, leak=leak)


@public_as("fastdp")
@dataclass(frozen=True, repr=False)
class PureDP(Guarantee):
    """epsilon-DP: no output becomes more than e^epsilon times as likely.

    Parameters
    ----------
    epsilon : float >= 0
        The bound of the privacy loss.
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.
    theorem : str, optional
        What gave the guarantee, if it is a result.
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", parameters.least_epsilon(self.epsilon))

    def forms(self) -> tuple[Form, ...]:
        return (Form.of_pure(self.epsilon, self.profile),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        return any(form.pure <= self.epsilon and not form.leak for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        return PureDP(up(size * Fraction(self.epsilon)), neighbors=self.neighbors)

    def _stated(self) -> str:
        return f"{self.epsilon:.6g}-DP"


@public_as("fastdp")
@dataclass(frozen=True, repr=False)
class ApproxDP(Guarantee):
    """(epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : float >= 0
        The bound of the privacy loss.
    delta : float in [0, 1)
        The probability with which the bound may fail.
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.
    theorem : str, optional
        What gave the guarantee, if it is a result.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", parameters.least_epsilon(self.epsilon))
        delta = small_delta("delta", self.delta, toward=inf)
        object.__setattr__(self, "delta", delta)

    def forms(self) -> tuple[Form, ...]:
        return (replace(Form.of_pure(self.epsilon, self.profile), leak=self.delta),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        if not self.delta:
            return PureDP(self.epsilon, neighbors=self.neighbors)._follows_from(stronger)
        return any(form.epsilon(self.delta)[0] <= self.epsilon for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        epsilon = up(size * Fraction(self.epsilon))
        factor = geometric_sum(self.epsilon, size) if self.delta else 0.0
        delta = up(Fraction(self.delta) * Fraction(factor)) if factor < inf else inf
        if not delta < 1:
            raise ValueError(f"size={size}: {self} has no guarantee for groups so large: delta would be {delta:.3g}")
        return ApproxDP(epsilon, delta, neighbors=self.neighbors)

    def _stated(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.3g})-DP"


@public_as("fastdp")
@dataclass(frozen=True, repr=False)
class ZCDP(Guarantee):
    """rho-zero-concentrated DP: the Renyi divergence of every order a > 1 is at most a rho.

    Parameters
    ----------
    rho : float >= 0
        The bound per unit of the order.
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.
    theorem : str, optional
        What gave the guarantee, if it is a result.
    mu : float, optional
        What more is known of Gaussian noise: neighbours are no easier to distinguish than N(0, 1) and N(mu, 1).
    """

    rho: float
    mu: float = field(default=inf, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rho", parameters.least_rho(self.rho))
        if not (type(self.mu) is float and self.mu == inf):
            object.__setattr__(self, "mu", non_negative("mu", self.mu, toward=inf))

    def forms(self) -> tuple[Form, ...]:
        return (Form(rho=self.rho, mu=self.mu),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        return any(form.rho <= self.rho and not form.leak for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        mu = inf if self.mu == inf else up(size * Fraction(self.mu))
        return ZCDP(up(size**2 * Fraction(self.rho)), neighbors=self.neighbors, mu=mu)

    def _stated(self) -> str:
        return f"{self.rho:.6g}-zCDP"


@public_as("fastdp")
@dataclass(frozen=True, repr=False)
class BoundedRange(Guarantee):
    """eta-bounded range: the log-likelihood ratios of all outputs lie in one interval of length eta.

    The exponential mechanism has it: eta-DP, and less than eta^2/8-zCDP, four times better than eta-DP alone.

    Parameters
    ----------
    eta : float >= 0
        The length of the interval.
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.
    theorem : str, optional
        What gave the guarantee, if it is a result.
    """

    eta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eta", non_negative("eta", self.eta, toward=inf))

    def forms(self) -> tuple[Form, ...]:
        return (
            Form(pure=self.eta, rho=rho_of_range(self.eta), make_curve=lambda: range_curve(self.eta), range=self.eta),
        )

    def _follows_from(self, stronger: Guarantee) -> bool:
        return any(form.range <= self.eta and not form.leak for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        return BoundedRange(up(size * Fraction(self.eta)), neighbors=self.neighbors)

    def _stated(self) -> str:
        return f"{self.eta:.6g}-bounded range"


@public_as("fastdp")
@dataclass(frozen=True, repr=False)
class Renyi(Guarantee):
    """A bound of the Renyi divergence at every order.

    It is kept at the orders `privacy.ORDERS`. A mapping's bounds serve the orders between them and below: divergences
    grow with the order, and (order - 1) divergence is convex (guarantees.md, theorem 1).

    Parameters
    ----------
    curve : callable or mapping
        A function of the order, or a mapping from orders to bounds.
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.
    theorem : str, optional
        What gave the guarantee, if it is a result.
    """

    curve: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "curve", on_orders(self.curve))

    @staticmethod
    def laplace(scale: float, *, sensitivity: float = 1.0, neighbors: Neighbors = "replace-one") -> Renyi:
        """Continuous Laplace noise (guarantees.md, theorem 5).

        Parameters
        ----------
        scale : float > 0
            The scale of the noise.
        sensitivity : float > 0
            The L1 sensitivity.
        neighbors : {"replace-one", "add-remove"}
            The neighbouring relation.
        """
        ratio = up(Fraction(parameters.sensitivity(sensitivity)) / Fraction(positive("scale", scale, toward=0)))
        return with_profile(Renyi(laplace_curve(ratio), neighbors=neighbors), Laplace(ratio))

    @staticmethod
    def discrete_laplace(scale: float, *, sensitivity: int = 1, neighbors: Neighbors = "replace-one") -> Renyi:
        """Discrete Laplace noise (guarantees.md, theorem 5).

        Parameters
        ----------
        scale : float > 0
            The scale of the noise.
        sensitivity : int >= 1
            The L1 sensitivity.
        neighbors : {"replace-one", "add-remove"}
            The neighbouring relation.
        """
        noise = DiscreteLaplace(scale, sensitivity)
        return with_profile(Renyi(discrete_laplace_curve(noise.scale, noise.sensitivity), neighbors=neighbors), noise)

    @staticmethod
    def gaussian(sigma: float, *, sensitivity: float = 1.0, neighbors: Neighbors = "replace-one") -> Renyi:
        """Gaussian noise, continuous or discrete: order * sensitivity^2 / (2 sigma^2).

        Parameters
        ----------
        sigma : float > 0
            The scale of the noise.
        sensitivity : float > 0
            The L2 sensitivity.
        neighbors : {"replace-one", "add-remove"}
            The neighbouring relation.
        """
        ratio = Fraction(parameters.sensitivity(sensitivity)) / Fraction(positive("sigma", sigma, toward=0))
        return Renyi(linear_curve(up(ratio**2 / 2)), neighbors=neighbors)

    def forms(self) -> tuple[Form, ...]:
        return (Form(make_curve=lambda: self.curve, profiles=() if self.profile is None else (self.profile,)),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        curves = (form.full_curve() for form in stronger.forms() if not form.leak)
        return any(all(a <= b for a, b in zip(curve, self.curve, strict=True)) for curve in curves)

    def _group(self, size: int) -> Guarantee:
        raise ValueError(
            f"size={size}: a Renyi curve has no group form of use here; convert with to_approx(delta), or keep the "
            "PureDP or ZCDP that it came from"
        )

    def __repr__(self) -> str:
        of = f"Renyi(<{len(ORDERS)} orders, {self.curve[84]:.4g} at order 2>, neighbors={self.neighbors!r}"
        return of + ", seeded=True" * self.seeded + ")"

    def _stated(self) -> str:
        return f"Renyi curve ({self.curve[84]:.4g} at order 2)"


@public_as("fastdp")
@dataclass(frozen=True, init=False, repr=False)
class AllOf(Guarantee):
    """Several guarantees of one mechanism, all true: whoever uses it takes whichever serves.

    Parameters
    ----------
    *parts : Guarantee
        At least one, all for the same neighbouring relation.
    theorem : str, optional
        What gave the guarantee, if it is a result.
    """

    parts: tuple[Guarantee, ...]

    def __init__(self, *parts: Guarantee, theorem: str = "") -> None:
        if not parts:
            raise ValueError("parts: must be at least one guarantee")
        for part in parts:
            instance_of(Guarantee, "parts", part, A_GUARANTEE)
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, AllOf) else (part,))]
        object.__setattr__(self, "parts", tuple(flat))
        object.__setattr__(self, "neighbors", one_relation(part.neighbors for part in flat))
        object.__setattr__(self, "theorem", theorem)
        object.__setattr__(self, "origin", common_origin(part.origin for part in flat))

    def forms(self) -> tuple[Form, ...]:
        forms = [form for part in self.parts for form in part.forms()]
        clean = [form for form in forms if not form.leak]
        merged = [Form.strongest(clean)] if clean else []
        return (*merged, *(form for form in forms if form.leak))

    def _follows_from(self, stronger: Guarantee) -> bool:
        return all(part._follows_from(stronger) for part in self.parts)

    def to_replace_one(self) -> Guarantee:
        """The same under replace-one neighbours, of every part that has such a form.

        Returns
        -------
        Guarantee
            At least one part has one.
        """
        return self._each(lambda part: part.to_replace_one())

    def _group(self, size: int) -> Guarantee:
        return self._each(lambda part: part.group(size))

    def _each(self, change: Callable[[Guarantee], Guarantee]) -> Guarantee:
        """Change every part that can be; at least one must."""
        changed, errors = [], []
        for part in self.parts:
            try:
                changed.append(change(part))
            except ValueError as error:
                errors.append(error)
        if not changed:
            raise errors[0]
        return with_origin(AllOf(*changed), self.origin)

    def _stated(self) -> str:
        return " and ".join(part._stated() for part in self.parts)
