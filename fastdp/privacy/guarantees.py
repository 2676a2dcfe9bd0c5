"""Guarantees: what a release promises about every pair of neighbouring inputs.

A guarantee is a frozen value. It knows its neighbouring relation, converts to (epsilon, delta) at any delta, and may
hold several forms that are all true at once; `compose` uses whichever serves. All arithmetic rounds toward more privacy
loss (support/rounding.py). guarantees.md has the theorems and their proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, isfinite
from typing import Any, Literal, Protocol

from ..support import extensions
from ..support.checks import integer, non_negative, one_of, positive
from ..support.public_paths import public_as
from ..support.rounding import down, up
from .conversions import epsilon_of_curve, epsilon_of_rho, geometric_sum, positive_delta, rho_of_pure
from .curves import (
    NO_CURVE,
    ORDERS,
    Curve,
    discrete_laplace_curve,
    laplace_curve,
    least,
    linear_curve,
    on_orders,
    pure_curve,
    range_curve,
)

Neighbors = Literal["replace-one", "add-remove"]
NEIGHBORS = ("replace-one", "add-remove")


# --- the kinds of guarantees


@dataclass(frozen=True)
class Guarantee:
    """What all guarantees have in common."""

    neighbors: Neighbors = field(default="replace-one", kw_only=True)
    theorem: str = field(default="", kw_only=True, compare=False, repr=False)  # what gave it, if it is a result

    def __post_init__(self) -> None:
        one_of("neighbors", self.neighbors, NEIGHBORS)

    def forms(self) -> tuple[Form, ...]:
        """The same promise in every form that follows from it; each is true by itself."""
        raise AssertionError("every kind of guarantee has forms")

    def to_approx(self, delta: float) -> ApproxDP:
        """The least epsilon at this delta, by whichever conversion gives it."""
        delta = positive_delta(delta)
        best, theorem = min(form.epsilon(delta) for form in self.forms())
        if best == inf:
            raise ValueError(
                f"delta={delta!r}: {self} gives no epsilon at this delta; take a delta above {self.least_delta():.3g}"
            )
        return ApproxDP(best, delta, neighbors=self.neighbors, theorem=theorem)

    def least_delta(self) -> float:
        """No (epsilon, delta) follows from this with a smaller delta."""
        return min(form.leak for form in self.forms())

    def to_zcdp(self) -> ZCDP:
        """The least rho that follows."""
        rho = min((form.rho for form in self.forms() if not form.leak), default=inf)
        if rho == inf:
            raise ValueError(f"{self}: does not imply zero-concentrated DP; only to_approx(delta) is left")
        return ZCDP(rho, neighbors=self.neighbors)

    def to_renyi(self) -> Renyi:
        """The least Renyi curve that follows."""
        curve = least(form.full_curve() for form in self.forms() if not form.leak)
        if not any(map(isfinite, curve)):
            raise ValueError(f"{self}: does not bound a Renyi divergence; only to_approx(delta) is left")
        return Renyi(curve, neighbors=self.neighbors)

    def implies(self, other: Guarantee) -> bool:
        """Whether `other` is proven to follow from this, by a change from add-remove to replace-one if need be."""
        if self.neighbors != other.neighbors:
            if self.neighbors == "replace-one":
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
        """The same under replace-one neighbours: a replacement is a removal and an addition (guarantees.md, theorem
        2)."""
        return self if self.neighbors == "replace-one" else replace(self.group(2), neighbors="replace-one")

    def group(self, size: int) -> Guarantee:
        """The same for groups of `size` records at once (guarantees.md, theorem 2)."""
        size = integer("size", size, least=1)
        return self if size == 1 else self._group(size)

    def _group(self, size: int) -> Guarantee:
        raise AssertionError("every kind of guarantee has a group form")

    def __and__(self, other: Guarantee) -> AllOf:
        """Both at once."""
        return AllOf(self, other)

    def dp_event(self, accountant: Any = None, *, leak: float = 0.0) -> Any:
        """This promise as an event of the library dp-accounting (extra `[accounting]`): connect/dp_accounting.py."""
        return extensions.load("dp_event", "dp-accounting").dp_event(self, accountant, leak=leak)

    def _repr_html_(self) -> str:
        return f"<code>{self}</code>"


class HasGuarantee(Protocol):
    """A release, or what came of one."""

    @property
    def guarantee(self) -> Guarantee | None: ...


class Accounted:
    """Whatever has a guarantee, as something that accountants take."""

    def dp_event(self: HasGuarantee, accountant: Any = None, *, leak: float = 0.0) -> Any:
        """What it promises as an event of dp-accounting (extra `[accounting]`): connect/dp_accounting.py."""
        if self.guarantee is None:
            raise ValueError(f"{type(self).__name__}: promises nothing: there is no event for it")
        return self.guarantee.dp_event(accountant, leak=leak)


@public_as("fastdp")
@dataclass(frozen=True)
class PureDP(Guarantee):
    """epsilon-DP: no output becomes more than e^epsilon times as likely."""

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon, toward=inf))

    def forms(self) -> tuple[Form, ...]:
        return (Form.of_pure(self.epsilon),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        return any(form.pure <= self.epsilon and not form.leak for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        return PureDP(up(size * Fraction(self.epsilon)), neighbors=self.neighbors)

    def __str__(self) -> str:
        return f"{self.epsilon:.6g}-DP, {self.neighbors}"


@public_as("fastdp")
@dataclass(frozen=True)
class ApproxDP(Guarantee):
    """(epsilon, delta)-DP."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", non_negative("epsilon", self.epsilon, toward=inf))
        delta = non_negative("delta", self.delta, toward=inf)
        if delta >= 1:
            raise ValueError(f"delta={self.delta!r}: must be < 1; at 1 the guarantee is empty")
        object.__setattr__(self, "delta", delta)

    def forms(self) -> tuple[Form, ...]:
        return (replace(Form.of_pure(self.epsilon), leak=self.delta),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        if not self.delta:
            return PureDP(self.epsilon, neighbors=self.neighbors)._follows_from(stronger)
        return any(form.epsilon(self.delta)[0] <= self.epsilon for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        epsilon = up(size * Fraction(self.epsilon))
        factor = geometric_sum(self.epsilon, size) if self.delta else 0.0
        delta = up(Fraction(self.delta) * Fraction(factor)) if factor < inf else inf
        if not delta < 1:
            raise ValueError(f"size={size}: {self} says nothing about groups so large: delta would be {delta:.3g}")
        return ApproxDP(epsilon, delta, neighbors=self.neighbors)

    def __str__(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.3g})-DP, {self.neighbors}"


@public_as("fastdp")
@dataclass(frozen=True)
class ZCDP(Guarantee):
    """rho-zero-concentrated DP: the Renyi divergence of every order a > 1 is at most a rho.

    `mu` may say more, where it is Gaussian noise: neighbours are no easier to tell apart than N(0, 1) and N(mu, 1).
    Accountants of privacy loss distributions make use of it (connect/dp_accounting.md); nothing here does.
    """

    rho: float
    mu: float = field(default=inf, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rho", non_negative("rho", self.rho, toward=inf))
        if self.mu != inf:
            object.__setattr__(self, "mu", non_negative("mu", self.mu, toward=inf))

    def forms(self) -> tuple[Form, ...]:
        return (Form(rho=self.rho, mu=self.mu),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        return any(form.rho <= self.rho and not form.leak for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        return ZCDP(up(size**2 * Fraction(self.rho)), neighbors=self.neighbors)

    def __str__(self) -> str:
        return f"{self.rho:.6g}-zCDP, {self.neighbors}"


@public_as("fastdp")
@dataclass(frozen=True)
class BoundedRange(Guarantee):
    """eta-bounded range: the log-likelihood ratios of all outputs lie in one interval of length eta.

    What the exponential mechanism has: eta-DP, and eta^2/8-zCDP, four times better than eta-DP alone.
    """

    eta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eta", non_negative("eta", self.eta, toward=inf))

    def forms(self) -> tuple[Form, ...]:
        rho = min(up(Fraction(self.eta) ** 2 / 8), rho_of_pure(self.eta))  # the latter is less from eta = 8 on
        return (Form(pure=self.eta, rho=rho, make_curve=lambda: range_curve(self.eta), range=self.eta),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        return any(form.range <= self.eta and not form.leak for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        return BoundedRange(up(size * Fraction(self.eta)), neighbors=self.neighbors)

    def __str__(self) -> str:
        return f"{self.eta:.6g}-bounded range, {self.neighbors}"


@public_as("fastdp")
@dataclass(frozen=True, repr=False)
class Renyi(Guarantee):
    """A bound of the Renyi divergence at every order: a function of the order, or a mapping from orders to bounds.

    It is kept at the orders `privacy.ORDERS`. A mapping's bounds serve the orders between them and below: divergences
    grow with the order, and (order - 1) divergence is convex (guarantees.md, theorem 1).
    """

    curve: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "curve", on_orders(self.curve))

    @staticmethod
    def laplace(scale: float, *, sensitivity: float = 1.0, neighbors: Neighbors = "replace-one") -> Renyi:
        """Continuous Laplace noise, for L1 sensitivity (guarantees.md, theorem 5)."""
        ratio = up(
            Fraction(positive("sensitivity", sensitivity, toward=inf)) / Fraction(positive("scale", scale, toward=0))
        )
        return Renyi(laplace_curve(ratio), neighbors=neighbors)

    @staticmethod
    def discrete_laplace(scale: float, *, sensitivity: int = 1, neighbors: Neighbors = "replace-one") -> Renyi:
        """Discrete Laplace noise, for integer L1 sensitivity (guarantees.md, theorem 5)."""
        scale = positive("scale", scale, toward=0)
        return Renyi(discrete_laplace_curve(scale, integer("sensitivity", sensitivity, least=1)), neighbors=neighbors)

    @staticmethod
    def gaussian(sigma: float, *, sensitivity: float = 1.0, neighbors: Neighbors = "replace-one") -> Renyi:
        """Gaussian noise, continuous or discrete, for L2 sensitivity: a sensitivity^2 / (2 sigma^2) at order a."""
        ratio = Fraction(positive("sensitivity", sensitivity, toward=inf)) / Fraction(
            positive("sigma", sigma, toward=0)
        )
        return Renyi(linear_curve(up(ratio**2 / 2)), neighbors=neighbors)

    def forms(self) -> tuple[Form, ...]:
        return (Form(make_curve=lambda: self.curve),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        return any(
            not form.leak and all(a <= b for a, b in zip(form.full_curve(), self.curve, strict=True))
            for form in stronger.forms()
        )

    def _group(self, size: int) -> Guarantee:
        raise ValueError(
            f"size={size}: a Renyi curve has no group form of use here; convert with to_approx(delta), or keep the "
            "PureDP or ZCDP that it came from"
        )

    def __repr__(self) -> str:
        return f"Renyi(<{len(ORDERS)} orders, {self.curve[84]:.4g} at order 2>, neighbors={self.neighbors!r})"

    def __str__(self) -> str:
        return f"Renyi curve ({self.curve[84]:.4g} at order 2), {self.neighbors}"


@public_as("fastdp")
@dataclass(frozen=True, init=False)
class AllOf(Guarantee):
    """Several guarantees of one mechanism, all true: whoever uses it takes whichever serves."""

    parts: tuple[Guarantee, ...]

    def __init__(self, *parts: Guarantee, theorem: str = "") -> None:
        if not parts:
            raise ValueError("parts: must be at least one guarantee")
        flat = [inner for part in parts for inner in (part.parts if isinstance(part, AllOf) else (part,))]
        object.__setattr__(self, "parts", tuple(flat))
        object.__setattr__(self, "neighbors", one_relation(flat))
        object.__setattr__(self, "theorem", theorem)

    def forms(self) -> tuple[Form, ...]:
        forms = [form for part in self.parts for form in part.forms()]
        clean = [form for form in forms if not form.leak]
        merged = [Form.strongest(clean)] if clean else []
        return (*merged, *(form for form in forms if form.leak))

    def _follows_from(self, stronger: Guarantee) -> bool:
        return all(part._follows_from(stronger) for part in self.parts)

    def to_replace_one(self) -> Guarantee:
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
        return AllOf(*changed)

    def __str__(self) -> str:
        return (
            " and ".join(str(part).removesuffix(f", {self.neighbors}") for part in self.parts) + f", {self.neighbors}"
        )


# --- forms: what a guarantee is when it is composed


@dataclass(frozen=True)
class Form:
    """With probability `leak` anything may happen; otherwise all of the rest holds. inf: no such bound."""

    leak: float = 0.0
    pure: float = inf
    rho: float = inf
    make_curve: Callable[[], Curve] = lambda: NO_CURVE  # made when it is asked for: most uses need only a number
    range: float = inf
    mu: float = inf

    @property
    def curve(self) -> Curve:
        return self.make_curve()

    @staticmethod
    def of_pure(epsilon: float) -> Form:
        rho, twice = rho_of_pure(epsilon), up(2 * Fraction(epsilon))
        return Form(pure=epsilon, rho=rho, make_curve=lambda: pure_curve(epsilon), range=twice)

    @staticmethod
    def strongest(forms: Sequence[Form]) -> Form:
        """All of these forms, none of which leaks, at once."""
        return Form(
            pure=min(form.pure for form in forms),
            rho=min(form.rho for form in forms),
            make_curve=lambda: least(form.full_curve() for form in forms),
            range=min(form.range for form in forms),
            mu=min(form.mu for form in forms),
        )

    def full_curve(self) -> Curve:
        """The curve, with that of rho where it is lower."""
        return self.curve if self.rho == inf else least((self.curve, linear_curve(self.rho)))

    def epsilon(self, delta: float) -> tuple[float, str]:
        """The least epsilon at delta, and the theorem that gives it; (inf, "") if there is none."""
        rest = down(Fraction(delta) - Fraction(self.leak))
        if rest < 0:
            return inf, ""
        found = [(self.pure, "pure")]
        if rest > 0:
            found.append((epsilon_of_curve(self.curve, rest), "Renyi conversion"))
            if self.rho < inf:
                found.append((epsilon_of_rho(self.rho, rest), "zCDP, tight conversion"))
        return min(found)


def one_relation(guarantees: Iterable[Guarantee]) -> Neighbors:
    """The relation that all of them have."""
    relations = sorted({guarantee.neighbors for guarantee in guarantees})
    if len(relations) > 1:
        raise ValueError(
            "neighbors: guarantees for 'add-remove' and for 'replace-one' neighbours do not mix; "
            "change the former with .to_replace_one()"
        )
    return relations[0]
