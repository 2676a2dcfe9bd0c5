"""Guarantees: what a release promises, how promises convert, and what several of them promise together.

A guarantee is a frozen value. It knows its neighbouring relation, converts to (epsilon, delta) at any delta, and may
hold several forms that are all true at once; `compose` uses whichever serves and says which theorem gave the result.
All arithmetic rounds toward more privacy loss (support/rounding.py). guarantees.md has the theorems and their proofs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import exp, fsum, inf, isfinite, log, log1p, nextafter, prod
from numbers import Real
from typing import Any, Literal, Protocol, TypeVar

from ..support import rounding as d
from ..support.checks import integer, non_negative, one_of, positive, probability
from ..support.rounding import down, up

Neighbors = Literal["replace-one", "add-remove"]
NEIGHBORS = ("replace-one", "add-remove")

# Renyi divergences are kept at these orders. Each order by itself gives a valid delta, so a grid is safe; steps of 8 %
# cost less than 0.1 % of epsilon, and orders up to 10^6 let nearly pure guarantees come out as such.
ORDERS: tuple[float, ...] = tuple(1 + 10 ** (k / 28) for k in range(-84, 169))
Curve = tuple[float, ...]  # a bound of the Renyi divergence at each of ORDERS; inf where there is none
_NO_CURVE: Curve = (inf,) * len(ORDERS)


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
        delta = _positive_delta(delta)
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
        from ..connect.dp_accounting import dp_event

        return dp_event(self, accountant, leak=leak)

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
        factor = _geometric_sum(self.epsilon, size) if self.delta else 0.0
        delta = up(Fraction(self.delta) * Fraction(factor)) if factor < inf else inf
        if not delta < 1:
            raise ValueError(f"size={size}: {self} says nothing about groups so large: delta would be {delta:.3g}")
        return ApproxDP(epsilon, delta, neighbors=self.neighbors)

    def __str__(self) -> str:
        return f"({self.epsilon:.6g}, {self.delta:.3g})-DP, {self.neighbors}"


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
        rho = min(up(Fraction(self.eta) ** 2 / 8), _rho_of_pure(self.eta))  # the latter is less from eta = 8 on
        return (Form(pure=self.eta, rho=rho, make_curve=lambda: _range_curve(self.eta), range=self.eta),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        return any(form.range <= self.eta and not form.leak for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        return BoundedRange(up(size * Fraction(self.eta)), neighbors=self.neighbors)

    def __str__(self) -> str:
        return f"{self.eta:.6g}-bounded range, {self.neighbors}"


@dataclass(frozen=True, repr=False)
class Renyi(Guarantee):
    """A bound of the Renyi divergence at every order: a function of the order, or a mapping from orders to bounds.

    It is kept at the orders `privacy.ORDERS`. A mapping's bounds serve the orders between them and below: divergences
    grow with the order, and (order - 1) divergence is convex (guarantees.md, theorem 1).
    """

    curve: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "curve", _on_orders(self.curve))

    @staticmethod
    def laplace(scale: float, *, sensitivity: float = 1.0, neighbors: Neighbors = "replace-one") -> Renyi:
        """Continuous Laplace noise, for L1 sensitivity (guarantees.md, theorem 5)."""
        ratio = up(
            Fraction(positive("sensitivity", sensitivity, toward=inf)) / Fraction(positive("scale", scale, toward=0))
        )
        return Renyi(_laplace_curve(ratio), neighbors=neighbors)

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
        return Renyi(_linear_curve(up(ratio**2 / 2)), neighbors=neighbors)

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
    make_curve: Callable[[], Curve] = lambda: _NO_CURVE  # made when it is asked for: most uses need only a number
    range: float = inf
    mu: float = inf

    @property
    def curve(self) -> Curve:
        return self.make_curve()

    @staticmethod
    def of_pure(epsilon: float) -> Form:
        rho, twice = _rho_of_pure(epsilon), up(2 * Fraction(epsilon))
        return Form(pure=epsilon, rho=rho, make_curve=lambda: _pure_curve(epsilon), range=twice)

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
        return self.curve if self.rho == inf else least((self.curve, _linear_curve(self.rho)))

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


def least(curves: Iterable[Curve]) -> Curve:
    """The lowest of some curves at every order."""
    return tuple(map(min, zip(*curves, _NO_CURVE, strict=True)))


# --- curves. Below SMALL their terms would cancel beyond 60 digits; a x^2 / 2 and a x^2 / 8 hold too, and are as good
# (guarantees.md, arithmetic). Beyond LARGE a pure bound is all there is.

SMALL, LARGE = 1e-9, 1000.0


def _on_orders(curve: Any) -> Curve:
    if isinstance(curve, tuple) and len(curve) == len(ORDERS):
        values = list(curve)
    elif isinstance(curve, Mapping):
        values = _between_orders({positive("order", order, toward=0): value for order, value in curve.items()})
    elif callable(curve):
        values = [curve(order) for order in ORDERS]
    else:
        raise ValueError(
            f"curve: type {type(curve).__name__}: must be a function of the order, or a mapping {{order: bound}}"
        )
    checked = tuple(_bound(order, value) for order, value in zip(ORDERS, values, strict=True))
    if checked == _NO_CURVE:
        raise ValueError(f"curve: no finite bound at an order between {ORDERS[0]} and {ORDERS[-1]:.0f}")
    return checked


def _bound(order: float, value: Any) -> float:
    if isinstance(value, float) and value == inf:
        return inf
    return non_negative(f"curve at order {order:.6g}", value, toward=inf)


def _between_orders(bounds: Mapping[float, Any]) -> list[float]:
    """Bounds at ORDERS: for each the lesser of that of the next order above, and the chord of (a - 1) R(a)."""
    if not bounds or min(bounds) <= 1:
        raise ValueError(f"curve: orders {sorted(bounds)}: must be at least one order, all > 1")
    points = [(Fraction(order), _bound(order, bounds[order])) for order in sorted(bounds)]
    finite = [(order, Fraction(value)) for order, value in points if value < inf]
    values = []
    for order in map(Fraction, ORDERS):
        above = [point for point in finite if point[0] >= order]
        below = [point for point in finite if point[0] < order]
        if not above:
            values.append(inf)
            continue
        found = [value for _, value in above]
        if below:
            (low, at_low), (high, at_high) = below[-1], above[0]
            chord = ((high - order) * (low - 1) * at_low + (order - low) * (high - 1) * at_high) / (high - low)
            found.append(chord / (order - 1))
        values.append(up(min(found)))
    return values


@lru_cache(4096)
def _linear_curve(rho: float, bound: float = inf) -> Curve:
    """a rho, and at most `bound`."""
    if rho == inf:
        return (bound,) * len(ORDERS)
    return tuple(min(bound, up(Fraction(order) * Fraction(rho))) for order in ORDERS)


@lru_cache(4096)
@d.sixty_digits
def _rho_of_pure(epsilon: float) -> float:
    """epsilon tanh(epsilon / 2): guarantees.md, theorem 3."""
    if epsilon < SMALL:
        return up(Fraction(epsilon) ** 2 / 2)
    if epsilon > LARGE:
        return epsilon
    grown = d.exp(Decimal(epsilon))
    return min(epsilon, up(d.multiply(Decimal(epsilon), d.divide(grown - 1, grown + 1))))


@lru_cache(4096)
@d.sixty_digits
def _pure_curve(epsilon: float) -> Curve:
    """Randomised response dominates: (e^(a e) + e^((1-a) e)) / (1 + e^e), with e^((a-1) e) taken out."""
    e, one = Decimal(epsilon), Decimal(1)
    if epsilon < SMALL:
        return _linear_curve(up(Fraction(epsilon) ** 2 / 2), epsilon)
    if epsilon > LARGE:
        return (epsilon,) * len(ORDERS)
    grown = d.exp(e)
    curve = []
    for order in ORDERS:
        a1 = Decimal(order) - one
        inside = d.divide(d.add(grown, d.exp(d.multiply(-2 * a1, e))), d.add(one, grown))
        curve.append(min(epsilon, up(d.add(e, d.divide(d.ln(inside), a1)))))
    return tuple(max(value, 0.0) for value in curve)


@lru_cache(4096)
@d.sixty_digits
def _range_curve(eta: float) -> Curve:
    """The worst pair of eta-bounded range, in closed form: guarantees.md, theorem 4."""
    if eta < SMALL:
        return _linear_curve(up(Fraction(eta) ** 2 / 8), eta)
    if eta > LARGE:
        return (eta,) * len(ORDERS)
    e, one = Decimal(eta), Decimal(1)
    shrunk = d.exp(-e)
    curve = []
    for order in ORDERS:
        a = Decimal(order)
        a1 = a - one
        far = d.exp(d.multiply(-a, e))
        x = d.divide(d.multiply(a1, one - far), d.multiply(a, d.subtract(shrunk, far)))
        rest = d.divide(d.subtract(one, far), d.multiply(a, d.subtract(one, shrunk)))
        curve.append(min(eta, up(d.add(d.ln(x), d.divide(d.ln(rest), a1)))))
    return tuple(max(value, 0.0) for value in curve)


def _mixture_curve(ratio: Decimal, weight: Callable[[Decimal], Decimal], bound: float) -> Curve:
    """ln(A e^((a-1) r) + (1-A) e^(-a r)) / (a-1) at every order a, A = weight(a)."""
    if bound < SMALL:
        return _linear_curve(up(Fraction(bound) ** 2 / 2), bound)
    one = Decimal(1)
    curve = []
    for order in ORDERS:
        a = Decimal(order)
        share = weight(a)
        tail = d.multiply(d.subtract(one, share), d.exp(d.multiply(d.multiply(-2, a) + one, ratio)))
        curve.append(min(bound, up(d.add(ratio, d.divide(d.ln(d.add(share, tail)), a - one)))))
    return tuple(max(value, 0.0) for value in curve)


@lru_cache(4096)
@d.sixty_digits
def _laplace_curve(ratio: float) -> Curve:
    return _mixture_curve(Decimal(ratio), lambda a: d.divide(a, d.multiply(2, a) - 1), ratio)


@lru_cache(4096)
@d.sixty_digits
def discrete_laplace_curve(scale: float, shift: float | Fraction) -> Curve:
    """Of one coordinate that moves by `shift`: exact for integers, else a bound (optimizing/descent.md, lemma 3)."""
    # noise on a finer grid has a lower curve, so steps below 10^-15, where terms would cancel, may be taken as that
    step = max(d.divide(Decimal(1), Decimal(scale)), Decimal("1e-15"))
    one, q = Decimal(1), d.exp(-step)

    def weight(a: Decimal) -> Decimal:
        top = d.subtract(one, d.exp(d.multiply(d.multiply(-2, a), step)))
        return d.divide(
            top,
            d.multiply(d.add(one, q), d.subtract(one, d.exp(d.multiply(one - 2 * a, step)))),
        )

    ratio = Fraction(shift) / Fraction(scale)  # of integers, floats and fractions alike
    return _mixture_curve(_decimal(ratio), weight, up(ratio))


# --- conversions to (epsilon, delta)


def _order_constant(order: Decimal) -> Decimal:
    """(a ln(1 - 1/a) - ln(a - 1)) / (a - 1), as ln(a - 1) - a ln(a) / (a - 1): nothing cancels when a is close to 1."""
    a1 = order - 1
    return d.subtract(d.ln(a1), d.divide(d.multiply(order, d.ln(order)), a1))


@lru_cache(1)
@d.sixty_digits
def _order_constants() -> tuple[tuple[Decimal, Decimal], ...]:
    return tuple((_order_constant(Decimal(order)), Decimal(order) - 1) for order in ORDERS)


@d.sixty_digits
def epsilon_of_curve(curve: Curve, delta: float) -> float:
    """guarantees.md, theorem 1: R(a) + (a ln(1 - 1/a) - ln(a - 1) - ln delta) / (a - 1), at the best of ORDERS."""
    log = d.ln(Decimal(delta))
    found = (
        up(d.add(Decimal(value), d.subtract(constant, d.divide(log, a1))))
        for value, (constant, a1) in zip(curve, _order_constants(), strict=True)
        if value < inf
    )
    return max(min(found, default=inf), 0.0)


@lru_cache(4096)
@d.sixty_digits
def epsilon_of_rho(rho: float, delta: float) -> float:
    """The same for a rho, with the order searched beyond the grid."""
    if rho == 0:
        return 0.0

    log_delta = log(delta)

    def at(log_a1: float) -> float:
        a1 = exp(log_a1)
        return (1 + a1) * rho - ((1 + a1) * log1p(1 / a1) + log_a1 + log_delta) / a1

    low, high = -30.0, 60.0
    for _ in range(120):
        left, right = low + (high - low) * 0.382, low + (high - low) * 0.618
        low, high = (low, right) if at(left) < at(right) else (left, high)
    order = Decimal(max(1 + exp((low + high) / 2), 1 + 2.0**-40))
    value = d.multiply(order, Decimal(rho)) + _order_constant(order) - d.divide(d.ln(Decimal(delta)), order - 1)
    return max(up(value), 0.0)


@d.sixty_digits
def epsilon_of_rho_simply(rho: float, delta: float) -> float:
    """rho + 2 sqrt(rho ln(1 / delta)): the textbook's conversion, for comparison."""
    r = Decimal(rho)
    return up(d.add(r, 2 * d.sqrt(d.multiply(r, -d.ln(Decimal(delta))))))


@d.sixty_digits
def _geometric_sum(epsilon: float, size: int) -> float:
    """1 + e^epsilon + ... + e^((size - 1) epsilon)."""
    e = Decimal(epsilon)
    if size * e > 2 * Decimal(LARGE):
        return inf
    if size * e < Decimal("1e-20"):
        return up(size * (1 + 2 * size * e))
    return up(d.divide(d.exp(size * e) - 1, d.exp(e) - 1 if e > Decimal("1e-20") else e))  # e <= e^e - 1


# --- composition


Counted = Guarantee | tuple[Guarantee, int]
Using = Literal["best", "basic", "advanced", "heterogeneous", "zcdp", "renyi"]
THEOREMS: tuple[Using, ...] = ("best", "basic", "advanced", "heterogeneous", "zcdp", "renyi")


def compose(*guarantees: Counted, delta: float | None = None, using: Using = "best") -> Guarantee:
    """What several releases on the same records promise together.

    Each argument is a guarantee, or (guarantee, k) for k releases of that kind. With `delta`, the result is the
    smallest (epsilon, delta) that a theorem gives; without, all sums that hold: pure, concentrated, Renyi. The result's
    `.theorem` says what gave it. `using` names one theorem instead of the best.

    Guarantee    guarantees.md, theorems 6 and 7. Basic, zCDP and Renyi sums hold when each mechanism is chosen after
                 the
                 results of those before; that the *parameters* are fixed in advance is needed by "advanced" and
                 "heterogeneous" only, and is up to the caller. For parameters chosen on the way use `Budget`.

    Examples
    >>> from fastdp import PureDP, compose
    >>> together = compose((PureDP(0.1), 100), delta=1e-6)
    >>> print(together, "by", together.theorem)
    (5.07467, 1e-06)-DP, replace-one by Renyi
    >>> print(compose(PureDP(1.0), PureDP(0.5)))
    1.5-DP and 0.584576-zCDP and Renyi curve (0.9627 at order 2), replace-one
    """
    if using not in THEOREMS:
        raise ValueError(f"using={using!r}: must be one of {', '.join(map(repr, THEOREMS))}")
    counted = _counted(guarantees)
    if not counted:
        raise ValueError("guarantees: must be at least one, or a pair (guarantee, count)")
    neighbors = one_relation([guarantee for guarantee, _ in counted])
    leak = up(sum(Fraction(guarantee.least_delta()) * k for guarantee, k in counted))
    if delta is not None:
        delta = _positive_delta(delta)
        found = []
        for parts in _choices(counted, limit=64):
            found += [(e, name) for name, e in _at_delta(parts, delta, using) if e < inf]
        if not found:
            raise ValueError(
                f"delta={delta!r}: the deltas of the parts add up to {leak:.3g}; take a larger one"
                if leak >= delta
                else f"using={using!r}: gives no epsilon for these; take 'best' (guarantees.md, theorem 6, says what "
                "each theorem asks for)"
            )
        epsilon, name = min(found)
        return ApproxDP(epsilon, delta, neighbors=neighbors, theorem=name)
    sums: list[Guarantee] = []
    for parts in _choices(counted, limit=1):
        sums += [s for s in _sums(parts, using, neighbors) if s not in sums]
    if not sums:
        raise ValueError(
            f"guarantees: their deltas add up to {leak:.3g}, which promises nothing; take fewer, or smaller deltas"
            if leak >= 1
            else f"using={using!r}: gives no sum without a delta; pass delta="
        )
    return sums[0] if len(sums) == 1 else AllOf(*sums, theorem=", ".join(s.theorem for s in sums))


def _counted(items: Iterable[Any]) -> list[tuple[Guarantee, int]]:
    """Each guarantee once, with how often it comes."""
    counts: dict[Guarantee, int] = {}
    for item in items:
        if isinstance(item, Guarantee):
            guarantee, count = item, 1
        elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Guarantee):
            guarantee, count = item[0], integer("count", item[1], least=1)
        else:
            raise ValueError(f"guarantees: {item!r}: must be a guarantee or a pair (guarantee, count)")
        counts[guarantee] = counts.get(guarantee, 0) + count
    return list(counts.items())


def _positive_delta(delta: Any) -> float:
    try:
        return probability("delta", delta)
    except ValueError as error:
        if isinstance(delta, Real) and delta == 0:
            raise ValueError(
                f"{error}; a delta of 0 leaves pure DP only: compose() without delta gives its sum, where there is one"
            ) from None
        raise


def one_relation(guarantees: Iterable[Guarantee]) -> Neighbors:
    """The relation that all of them have."""
    relations = sorted({guarantee.neighbors for guarantee in guarantees})
    if len(relations) > 1:
        raise ValueError(
            "neighbors: guarantees for 'add-remove' and for 'replace-one' neighbours do not mix; "
            "change the former with .to_replace_one()"
        )
    return relations[0]


Parts = list[tuple[Form, int]]


def _choices(counted: list[tuple[Guarantee, int]], *, limit: int) -> list[Parts]:
    """Which form of each to compose: every combination if they are at most `limit`, else the same rank everywhere.

    Forms are ranked by their leaks: the first choice leaks least.
    """
    forms = [sorted(guarantee.forms(), key=lambda form: form.leak) for guarantee, _ in counted]
    picks: Iterable[Sequence[Form]] = product(*forms)
    if prod(map(len, forms)) > limit:
        picks = [[of[min(rank, len(of) - 1)] for of in forms] for rank in range(max(map(len, forms)))]
    return [[(form, k) for form, (_, k) in zip(pick, counted, strict=True)] for pick in picks]


def _sum(parts: Parts, value: Callable[[Form], float]) -> float:
    values = [(value(form), k) for form, k in parts]
    return inf if any(v == inf for v, _ in values) else up(sum(Fraction(v) * k for v, k in values))


def _sum_of_curves(parts: Parts) -> Curve:
    """By fsum, which rounds the exact sum once: fractions at every order take ten times as long."""
    if len(parts) == 1 and parts[0][1] == 1:
        return parts[0][0].full_curve()
    powers = [[2.0**bit for bit in range(k.bit_length()) if k >> bit & 1] for _, k in parts]  # k times, exactly
    curves = [form.full_curve() for form, _ in parts]
    sums = (
        fsum(power * curve[i] for curve, each in zip(curves, powers, strict=True) for power in each)
        for i in range(len(ORDERS))
    )
    return tuple(nextafter(total, inf) if total else 0.0 for total in sums)


def _sums(parts: Parts, using: Using, neighbors: Neighbors) -> list[Guarantee]:
    leak, pure = _sum(parts, lambda form: form.leak), _sum(parts, lambda form: form.pure)
    sums: list[Guarantee] = []
    if using in ("best", "basic") and pure < inf and leak < 1:
        name = "basic"
        sums.append(
            ApproxDP(pure, leak, neighbors=neighbors, theorem=name)
            if leak
            else PureDP(pure, neighbors=neighbors, theorem=name)
        )
    if leak:
        return sums
    rho = _sum(parts, lambda form: form.rho)
    if using in ("best", "zcdp") and rho < inf:
        sums.append(ZCDP(rho, neighbors=neighbors, theorem="zCDP"))
    if using in ("best", "renyi"):
        curve = _sum_of_curves(parts)
        lower = rho == inf or any(map(operator.lt, curve, _linear_curve(rho)))  # than what rho says already
        if any(map(isfinite, curve)) and (using == "renyi" or lower):
            sums.append(Renyi(curve, neighbors=neighbors, theorem="Renyi"))
    return sums


def _at_delta(parts: Parts, delta: float, using: Using) -> list[tuple[str, float]]:
    """(theorem, epsilon) for every theorem that applies."""
    leak = _sum(parts, lambda form: form.leak)
    rest = down(Fraction(delta) - Fraction(leak))
    if rest < 0:
        return []
    pure = _sum(parts, lambda form: form.pure)
    found = [("basic", pure)] if using in ("best", "basic") else []
    if rest == 0:
        return found
    if pure < inf:
        if using in ("best", "advanced") and len({form.pure for form, _ in parts}) == 1:
            found.append(("advanced (Dwork, Rothblum, Vadhan)", _advanced(parts, rest)))
        if using in ("best", "heterogeneous"):
            found.append(("heterogeneous (Kairouz, Oh, Viswanath)", _heterogeneous(parts, rest)))
    rho = _sum(parts, lambda form: form.rho)
    if using in ("best", "zcdp") and rho < inf:
        found.append(("zCDP, tight conversion", epsilon_of_rho(rho, rest)))
    if using in ("best", "renyi"):
        found.append(("Renyi", epsilon_of_curve(_sum_of_curves(parts), rest)))
    return found


@d.sixty_digits
def _advanced(parts: Parts, slack: float) -> float:
    epsilon, k = Decimal(parts[0][0].pure), sum(count for _, count in parts)
    if epsilon > 100:
        return inf
    spread = d.multiply(epsilon, d.sqrt(d.multiply(2 * k, -d.ln(Decimal(slack)))))
    return up(d.add(spread, d.multiply(k * epsilon, d.exp(epsilon) - 1)))


@d.sixty_digits
def _heterogeneous(parts: Parts, slack: float) -> float:
    squares = sum((Fraction(form.pure) ** 2 * k for form, k in parts), Fraction(0))
    drift = sum((Fraction(_rho_of_pure(form.pure)) * k for form, k in parts), Fraction(0))
    spread = d.sqrt(d.multiply(-2 * d.ln(Decimal(slack)), _decimal(squares)))
    return up(d.add(spread, _decimal(drift)))


@d.sixty_digits
def _decimal(x: Fraction) -> Decimal:
    return d.divide(Decimal(x.numerator), Decimal(x.denominator))


# --- the other direction


G = TypeVar("G", bound=Guarantee)


def share(whole_: Guarantee, count: int, kind: Callable[[float], Guarantee]) -> float:
    """The largest parameter (to 10 digits) of one of `count` releases that together keep within `whole_`.

    `kind` makes the guarantee of one release from its parameter, and must grow with it: PureDP, ZCDP, BoundedRange, or
    any function such as `lambda sigma_inverse: Renyi.gaussian(1 / sigma_inverse)`.

    Examples
    >>> from fastdp import ApproxDP, BoundedRange
    >>> round(share(ApproxDP(1.0, 1e-6), 100, BoundedRange), 4)
    0.0444
    """
    count = integer("count", count, least=1)

    def fits(parameter: float) -> bool:
        one = kind(parameter)
        if one.neighbors == "replace-one" != whole_.neighbors:
            raise ValueError(
                f"kind: makes guarantees for 'replace-one' neighbours, and {whole_} is for {whole_.neighbors!r}; "
                f"pass a function such as lambda x: PureDP(x, neighbors={whole_.neighbors!r})"
            )
        if count == 1 and one.implies(whole_):
            return True
        if isinstance(whole_, ApproxDP) and whole_.delta:
            try:
                together: Guarantee = compose((one, count), delta=whole_.delta)
            except ValueError:
                return False
        else:
            together = compose((one, count))
        return together.implies(whole_)

    guess = _guess_share(whole_, count, kind) or 1.0
    low, high = guess * (1 - 1e-11), guess * (1 + 1e-11)
    while fits(high):
        low, high = high, 2 * high
        if high > 2.0**60:
            raise ValueError(f"whole={whole_}: does not limit the parameter of {kind}")
    while not fits(low):
        low, high = low / 2, low
        if high < 2.0**-200:
            raise ValueError(f"whole={whole_}: too small for {count} releases")
    while high - low > 4e-11 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _guess_share(whole_: Guarantee, count: int, kind: Callable[[float], Guarantee]) -> float:
    """What `share` looks for, nearly: epsilon is close to a power of the parameter, so secants in logarithms do."""
    if isinstance(whole_, PureDP):
        return whole_.epsilon / count
    if not (isinstance(whole_, ApproxDP) and whole_.delta):
        return 0.0
    points: list[tuple[float, float]] = []
    log_parameter, slope = (log(whole_.epsilon) if whole_.epsilon else -30.0) - log(count), 1.0
    for _ in range(12):
        try:
            found = compose((kind(exp(log_parameter)), count), delta=whole_.delta)
        except ValueError:
            return 0.0
        epsilon = found.to_approx(whole_.delta).epsilon
        if not 0 < epsilon < inf or not whole_.epsilon:
            return 0.0
        points.append((log_parameter, log(epsilon / whole_.epsilon)))
        if abs(points[-1][1]) < 1e-12:
            break
        if len(points) > 1 and points[-1][0] != points[-2][0]:
            slope = (points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0])
        step = points[-1][1] / slope if slope > 0.1 else points[-1][1]
        log_parameter -= max(-5.0, min(5.0, step))
        if abs(step) < 1e-13:
            break
    return exp(log_parameter)
