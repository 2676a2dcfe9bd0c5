"""Composition: what several releases guarantee together, and the share of each of them in a whole.

`compose` takes whichever theorem gives the least; its result's `.theorem` names it. guarantees.md has the theorems
and their proofs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from inspect import signature
from itertools import product
from math import exp, fsum, inf, isfinite, log, nextafter, prod
from typing import Any, Literal

from ..support import rounding
from ..support.checks import instance_of, integer, one_of
from ..support.rounding import decimal_of, down, up
from ..support.search import LARGEST, greatest_float
from ..support.shown import described, shown
from .conversions import epsilon_of_curve, epsilon_of_rho, positive_delta, rho_of_pure
from .curves import ORDERS, Curve, linear_curve
from .gaussian_curve import epsilon_of_mu, root_above
from .gaussian_dp import GaussianDP
from .guarantee_forms import Form
from .guarantees import A_GUARANTEE, ZCDP, AllOf, ApproxDP, Guarantee, Neighbors, PureDP, Renyi
from .loss_distributions import chosen, epsilon_bounds
from .neighbors import one_relation
from .origin import common_origin, with_origin
from .profiles import Gaussian
from .releases import Release

Counted = Guarantee | tuple[Guarantee, int]
Using = Literal["best", "basic", "advanced", "heterogeneous", "zcdp", "gaussian", "renyi", "pld"]
THEOREMS: tuple[Using, ...] = ("best", "basic", "advanced", "heterogeneous", "zcdp", "gaussian", "renyi", "pld")


def compose(*guarantees: Counted | Release, delta: float | None = None, using: Using = "best") -> Guarantee:
    """What several releases on the same records guarantee together.

    With `delta` the result is the smallest (epsilon, delta) that a theorem gives, and its `.at_least` is an epsilon
    that is too small for all that is known of the releases (0 where that is not known); without, the result is all sums
    that hold: pure, concentrated, Renyi. The result's `.theorem` names what gave it.

    Parameters
    ----------
    *guarantees : Guarantee, tuple of Guarantee and int, or Release
        A guarantee, or (guarantee, k) for k releases of that kind. A row of `Budget.releases` stands for its
        `.guarantee`.
    delta : float in (0, 1), optional
        The delta of the result.
    using : {"best", "basic", "advanced", "heterogeneous", "zcdp", "gaussian", "renyi", "pld"}
        One theorem instead of the best.

    Returns
    -------
    Guarantee
        An ApproxDP with `delta`; without, one sum or AllOf several.

    Raises
    ------
    ValueError
        Where no theorem gives anything, or relations differ.

    Notes
    -----
    Guarantee    guarantees.md, theorems 6 and 7. Basic, zCDP and Renyi sums hold when each mechanism is chosen after
                 the results of those before, and so do loss distributions ("pld", loss_distributions.md, theorem 1);
                 that the *parameters* are fixed in advance is needed by "advanced", "heterogeneous" and "pld", and is
                 up to the caller. For parameters chosen on the way use `Budget`.

    Examples
    --------
    >>> from fastdp import PureDP, compose
    >>> together = compose((PureDP(0.1), 100), delta=1e-6)
    >>> print(together, "by", together.theorem)
    (4.77457, 1e-06)-DP, replace-one by privacy loss distribution
    >>> print(compose(PureDP(1.0), PureDP(0.5)))
    1.5-DP and 0.584576-zCDP and Renyi curve (0.9627 at order 2), replace-one
    """
    one_of("using", using, THEOREMS)
    stated = [item.guarantee if isinstance(item, Release) else item for item in guarantees]
    counted = merge_equal(stated)
    if not counted:
        raise ValueError("guarantees: must be at least one, or a pair (guarantee, count)")
    neighbors = one_relation(guarantee.neighbors for guarantee, _ in counted)
    singly = (item[0] if isinstance(item, tuple) else item for item in stated)
    origin = common_origin(guarantee.origin for guarantee in singly)
    leak = exact_sum([(guarantee.least_delta(), k) for guarantee, k in counted])
    if delta is not None:
        delta = positive_delta(delta)
        found = _all_at_delta(counted, delta, using)
        if not found:
            raise ValueError(
                f"delta={delta!r}: the deltas of the parts add up to {leak:.3g}; take a larger one"
                if leak >= delta
                else f"using={using!r}: gives no epsilon for these; take 'best' (guarantees.md, theorem 6, says what "
                "each theorem asks for)"
            )
        epsilon, name, at_least = min(found)
        result = ApproxDP(epsilon, delta, neighbors=neighbors, theorem=name)
        object.__setattr__(result, "at_least", min(epsilon, at_least))
        return with_origin(result, origin)
    sums: list[Guarantee] = []
    for parts in _choices(counted, limit=1):
        sums += [s for s in _sums(parts, using, neighbors) if s not in sums]
    if not sums:
        raise ValueError(
            f"guarantees: their deltas add up to {leak:.3g}, which guarantees nothing; take fewer, or smaller deltas"
            if leak >= 1
            else f"using={using!r}: gives no sum without a delta; pass delta="
        )
    return with_origin(sums[0] if len(sums) == 1 else AllOf(*sums, theorem=", ".join(s.theorem for s in sums)), origin)


def merge_equal(items: Iterable[Any], name: str = "guarantees") -> list[tuple[Guarantee, int]]:
    """Each guarantee once, with how often it comes; of equal ones, those of which more is known stay apart.

    Parameters
    ----------
    items : iterable of Guarantee or tuple of Guarantee and int
        What a caller gave.
    name : str
        The parameter's name, for errors.

    Returns
    -------
    list of tuple of Guarantee and int
        In the order in which they came first.
    """
    counts: dict[tuple[Any, ...], tuple[Guarantee, int]] = {}
    for item in items:
        if isinstance(item, Guarantee):
            guarantee, count = item, 1
        elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], Guarantee):
            guarantee, count = item[0], integer("count", item[1], least=1)
        else:
            raise ValueError(
                f"{name}: {described(item)}: must be a guarantee or a pair (guarantee, count); "
                "of a budget's rows: compose(*budget.releases)"
            )
        known = all_known(guarantee)
        _, before = counts.get(known, (guarantee, 0))
        counts[known] = guarantee, before + count
    return list(counts.values())


def all_known(guarantee: Guarantee) -> tuple[Any, ...]:
    """What is equal for guarantees of which the same is known, also beyond their numbers.

    Parameters
    ----------
    guarantee : Guarantee
        Any.

    Returns
    -------
    tuple
        It can be hashed.
    """
    known = tuple((part.profile, getattr(part, "mu", inf)) for part in getattr(guarantee, "parts", (guarantee,)))
    return guarantee, known


Parts = list[tuple[Form, int]]
_TRIED = 3  # choices of forms whose loss distributions are composed


def _choices(counted: list[tuple[Guarantee, int]], *, limit: int) -> list[Parts]:
    """Which form of each to compose: every combination if they are at most `limit`, else the same rank everywhere.

    Forms are ranked by their leaks: the first choice leaks least.
    """
    forms = [sorted(guarantee.forms(), key=lambda form: form.leak) for guarantee, _ in counted]
    picks: Iterable[Sequence[Form]] = product(*forms)
    if prod(map(len, forms)) > limit:
        picks = [[of[min(rank, len(of) - 1)] for of in forms] for rank in range(max(map(len, forms)))]
    return [[(form, k) for form, (_, k) in zip(pick, counted, strict=True)] for pick in picks]


def exact_sum(values: Sequence[tuple[float, int]]) -> float:
    """Each number so often, rounded up once.

    Parameters
    ----------
    values : sequence of tuple of float and int
        Numbers, and how often each comes.

    Returns
    -------
    float
        At least the sum.
    """
    # fsum rounds a sum of floats once, and the sign of what is left decides
    if any(k >> 900 or not v < 2.0**100 for v, k in values):
        return inf if any(v == inf for v, _ in values) else up(sum(Fraction(v) * k for v, k in values))
    terms = [v if k == 1 else v * 2.0**bit for v, k in values for bit in range(k.bit_length()) if k >> bit & 1]
    total = fsum(terms)
    return nextafter(total, inf) if fsum([*terms, -total]) > 0 else total


def _sum(parts: Parts, value: Callable[[Form], float]) -> float:
    return exact_sum([(value(form), k) for form, k in parts])


def _gaussian_sum(parts: Parts, using: Using) -> float:
    """The root of the sum of squares of mu: gaussian_curve.md, theorem 3. "best" asks for it if some have a mu."""
    if using == "best" and all(form.mu == inf for form, _ in parts):
        return inf
    values = [(form.least_mu, k) for form, k in parts]
    return (
        inf
        if any(mu == inf for mu, _ in values)
        else root_above(sum((Fraction(mu) ** 2 * k for mu, k in values), Fraction(0)))
    )


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
    if using in ("best", "gaussian") and (mu := _gaussian_sum(parts, using)) < inf:
        sums.append(GaussianDP(mu, neighbors=neighbors, theorem="Gaussian DP"))
    if using in ("best", "renyi"):
        curve = _sum_of_curves(parts)
        lower = rho == inf or any(map(operator.lt, curve, linear_curve(rho)))  # than what rho implies already
        if any(map(isfinite, curve)) and (using == "renyi" or lower):
            sums.append(Renyi(curve, neighbors=neighbors, theorem="Renyi"))
    return sums


Found = tuple[float, str, float]  # an epsilon, the theorem that gives it, and what no theorem can fall below


def _all_at_delta(
    counted: list[tuple[Guarantee, int]], delta: float, using: Using, *, both: bool = True
) -> list[Found]:
    """What every theorem gives, for the choices of forms that are tried.

    Where loss distributions are close to the truth, theorems that know less of the losses are left out, but for two
    that cost next to nothing.
    """
    choices = _choices(counted, limit=64)
    found, close = _by_losses(choices, delta, both) if using in ("best", "pld") else ([], False)
    if using == "pld":
        return [one for one in found if one[0] < inf]  # Gaussian noise alone has a curve of its own
    at_least = min((bound for _, _, bound in found), default=0.0)
    for parts in choices:
        names: tuple[Using, ...] = ("basic", "zcdp") if close else (using,)
        if close and all(form.mu < inf for form, _ in parts):
            names += ("gaussian",)
        for name in names:
            found += [(epsilon, theorem, at_least) for epsilon, theorem in _at_delta(parts, delta, name)]
    return [one for one in found if one[0] < inf]


def _by_losses(choices: list[Parts], delta: float, both: bool) -> tuple[list[Found], bool]:
    """By loss distributions, for the few choices of forms that other theorems favour; and whether that is close."""
    known = []
    for parts in choices:
        leak = _sum(parts, lambda form: form.leak)
        if leak < delta and all(form.has_profile for form, _ in parts):
            quick = min(_at_delta(parts, delta, "basic") + _at_delta(parts, delta, "zcdp")) if choices[1:] else ()
            known.append((quick, leak, [(form.all_profiles(), k) for form, k in parts]))
    found, close = [], bool(known)
    for _, leak, profiles in sorted(known, key=lambda choice: choice[:2])[:_TRIED]:
        bounds = epsilon_bounds(chosen(profiles, delta), delta=delta, leak=leak, both=both)
        if bounds is not None:
            alone = all(kinds == (Gaussian,) for kinds in (tuple(map(type, some)) for some, _ in profiles))
            # of several facts about one release, or forms of it, the worst that has them all may be less bad than each
            several = bool(choices[1:]) or any(some[1:] for some, _ in profiles)
            at_least = 0.0 if several else bounds.at_least
            close = close and bounds.is_close and not several
            # Gaussian noise alone has a curve of its own
            found.append((inf if alone else bounds.at_most, "privacy loss distribution", at_least))
    return found, close and bool(found)


def _at_delta(parts: Parts, delta: float, using: Using) -> list[tuple[float, str]]:
    """(epsilon, theorem) for every theorem that applies."""
    leak = _sum(parts, lambda form: form.leak)
    rest = down(Fraction(delta) - Fraction(leak))
    if rest < 0:
        return []
    pure = _sum(parts, lambda form: form.pure)
    found = [(pure, "basic")] if using in ("best", "basic") else []
    if rest == 0:
        return found
    if pure < inf:
        if using in ("best", "advanced") and len({form.pure for form, _ in parts}) == 1:
            found.append((_advanced(parts, rest), "advanced (Dwork, Rothblum, Vadhan)"))
        if using in ("best", "heterogeneous"):
            found.append((_heterogeneous(parts, rest), "heterogeneous (Kairouz, Oh, Viswanath)"))
    rho = _sum(parts, lambda form: form.rho)
    if using in ("best", "zcdp") and rho < inf:
        found.append((epsilon_of_rho(rho, rest), "zCDP, tight conversion"))
    if using in ("best", "gaussian") and (mu := _gaussian_sum(parts, using)) < inf:
        found.append((epsilon_of_mu(mu, rest), "Gaussian DP"))
    if using in ("best", "renyi"):
        found.append((epsilon_of_curve(_sum_of_curves(parts), rest), "Renyi"))
    return found


@rounding.sixty_digits
def _advanced(parts: Parts, slack: float) -> float:
    epsilon, k = Decimal(parts[0][0].pure), sum(count for _, count in parts)
    if epsilon > 100:
        return inf
    spread = rounding.multiply(epsilon, rounding.sqrt(rounding.multiply(2 * k, -rounding.ln(Decimal(slack)))))
    return up(rounding.add(spread, rounding.multiply(k * epsilon, rounding.exp(epsilon) - 1)))


@rounding.sixty_digits
def _heterogeneous(parts: Parts, slack: float) -> float:
    squares = sum((Fraction(form.pure) ** 2 * k for form, k in parts), Fraction(0))
    drift = sum((Fraction(rho_of_pure(form.pure)) * k for form, k in parts), Fraction(0))
    spread = rounding.sqrt(rounding.multiply(-2 * rounding.ln(Decimal(slack)), decimal_of(squares)))
    return up(rounding.add(spread, decimal_of(drift)))


# --- the other direction


def share(whole: Guarantee, count: int, kind: Callable[[float], Guarantee]) -> float:
    """The largest parameter (to 10 digits) of one of `count` releases that together keep within `whole`.

    Parameters
    ----------
    whole : Guarantee
        What all releases together may cost.
    count : int >= 1
        How many releases there are.
    kind : callable
        Makes the guarantee of one release from its parameter, and must grow with it: PureDP, ZCDP, BoundedRange, or any
        function such as `lambda sigma_inverse: Renyi.gaussian(1 / sigma_inverse)`, or for a kind of two parameters
        `lambda e: ApproxDP(e, 1e-8)`.

    Returns
    -------
    float
        Rounded down.

    Raises
    ------
    ValueError
        Where no parameter is small enough, or none too large.

    Examples
    --------
    >>> from fastdp import ApproxDP, BoundedRange
    >>> round(share(ApproxDP(1.0, 1e-6), 100, BoundedRange), 4)
    0.0474
    """
    instance_of(Guarantee, "whole", whole, A_GUARANTEE)
    count = integer("count", count, least=1)
    if not callable(kind):
        raise ValueError(f"kind={shown(kind)}: must make a guarantee from its parameter, such as PureDP or ZCDP")
    _check_takes_one(kind)

    def fits(parameter: float, whole: Guarantee = whole) -> bool:
        one = instance_of(Guarantee, "kind: its result", kind(parameter), A_GUARANTEE)
        if one.neighbors == "replace-one" != whole.neighbors:
            raise ValueError(
                f"kind: makes guarantees for 'replace-one' neighbours, and {whole} is for {whole.neighbors!r}; "
                f"pass a function such as lambda x: PureDP(x, neighbors={whole.neighbors!r})"
            )
        if count == 1 and one.implies(whole):
            return True
        if isinstance(whole, ApproxDP) and whole.delta:
            epsilon = _least_epsilon(one, count, whole.delta)
            return epsilon < inf and ApproxDP(epsilon, whole.delta, neighbors=one.neighbors).implies(whole)
        return compose((one, count)).implies(whole)

    guess = _guess_share(whole, count, kind) or 1.0
    found = greatest_float(fits, bracket=(guess * (1 - 1e-11), guess * (1 + 1e-11)), tolerance=4e-11)
    if found > LARGEST / 2 and fits(2 * found):
        raise ValueError(f"whole={whole}: does not limit the parameter of {kind}")
    if not found and not fits(guess * 1e-3, _unlimited(whole)):
        raise ValueError(
            f"whole={whole}: {count:,} guarantees such as {kind(guess)} never imply it, however small their parameter"
        )
    if not found:
        raise ValueError(f"whole={whole}: too small for {count} releases")
    return found


def _least_epsilon(one: Guarantee, count: int, delta: float) -> float:
    """That of `compose`; inf where it has none."""
    return min(
        (found[0] for found in _all_at_delta(merge_equal([(one, count)]), delta, "best", both=False)), default=inf
    )


def _check_takes_one(kind: Callable[[float], Guarantee]) -> None:
    try:
        takes = signature(kind)
    except (TypeError, ValueError):  # none is known: of some functions in C
        return
    try:
        takes.bind(1.0)
    except TypeError as error:
        raise ValueError(
            f"kind={shown(kind)}: must make a guarantee from one number ({error}); pass a function that gives the "
            "others, such as lambda e: ApproxDP(e, 1e-8)"
        ) from None


def _unlimited(whole: Guarantee) -> Guarantee:
    """The same kind of guarantee, as weak as can be; `whole` itself where it has no one parameter."""
    limits: dict[str, Any] = {name: LARGEST for name in ("epsilon", "eta", "rho", "mu") if hasattr(whole, name)}
    if isinstance(whole, ApproxDP) and whole.delta:
        limits["delta"] = 0.99
    return replace(whole, **limits)


def _guess_share(whole: Guarantee, count: int, kind: Callable[[float], Guarantee]) -> float:
    """What `share` looks for, nearly: epsilon is close to a power of the parameter, so secants in logarithms do."""
    if isinstance(whole, PureDP):
        return whole.epsilon / count
    if not (isinstance(whole, ApproxDP) and whole.delta):
        return 0.0
    points: list[tuple[float, float]] = []
    log_parameter, slope = (log(whole.epsilon) if whole.epsilon else -30.0) - log(count), 1.0
    for _ in range(12):
        epsilon = _least_epsilon(kind(exp(log_parameter)), count, whole.delta)
        if not 0 < epsilon < inf or not whole.epsilon:
            return 0.0
        points.append((log_parameter, log(epsilon / whole.epsilon)))
        if abs(points[-1][1]) < 1e-12:
            break
        if len(points) > 1 and points[-1][0] != points[-2][0]:
            slope = (points[-1][1] - points[-2][1]) / (points[-1][0] - points[-2][0])
        step = points[-1][1] / slope if slope > 0.1 else points[-1][1]
        log_parameter -= max(-5.0, min(5.0, step))
        if abs(step) < 1e-13:
            break
    return exp(log_parameter)
