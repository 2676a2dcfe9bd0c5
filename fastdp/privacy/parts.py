"""Guarantees for parts: releases on disjoint parts of the records, and releases on a random sample of them.

For groups of records see `Guarantee.group`. parts.md has the theorems; each asks for one neighbouring relation, and
refuses the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from math import inf, isfinite
from typing import Literal, NamedTuple

from ..support import rounding
from ..support.checks import instance_of, items_of, one_of, positive
from ..support.parameters import MOST_QUERIES
from ..support.rounding import down, up
from .conversions import positive_delta
from .curves import SMALL
from .gaussian_curve import root_above
from .gaussian_dp import GaussianDP
from .guarantee_forms import Form
from .guarantees import A_GUARANTEE, ZCDP, AllOf, ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP, Renyi
from .origin import common_origin, with_origin
from .profiles import Profile, RandomizedResponse, with_profile
from .subsampled_profiles import FixedSizeSubsampled, PoissonSubsampled

Sampling = Literal["poisson", "fixed-size"]
SAMPLINGS: tuple[Sampling, ...] = ("poisson", "fixed-size")


def parallel(*parts: Guarantee, inside: Sequence[Guarantee] | None = None) -> Guarantee:
    """What releases on disjoint parts of the records guarantee together.

    A record is in one part, by what it contains: its region, its year. So whoever adds or removes it changes one part,
    and the whole has the weakest guarantee of all parts.

    Parameters
    ----------
    *parts : Guarantee
        For each part what all releases on it guarantee together, for add-remove neighbours: how many records a part has
        is not public.
    inside : sequence of Guarantee, optional
        The same under the replacement of one record by another of the same part. The result is then for replace-one
        neighbours: a record is replaced inside of a part, or it moves from one part to another.

    Returns
    -------
    Guarantee
        For add-remove neighbours, of which `.to_replace_one()` follows; with `inside` for replace-one neighbours.

    Raises
    ------
    ValueError
        Where a part has another relation, or parts have no kind of guarantee in common.

    Notes
    -----
    Proof        parts.md, theorems 1 and 2
    Not covered  parts that depend on other records, such as "the larger half", and the first thousand rows: where a
                 record is removed, others move up

    Examples
    --------
    >>> from fastdp import PureDP
    >>> from fastdp.privacy import parallel
    >>> north, south = PureDP(0.5, neighbors="add-remove"), PureDP(0.3, neighbors="add-remove")
    >>> print(parallel(north, south))
    0.5-DP, add-remove
    >>> print(parallel(north, south).to_replace_one())
    1-DP, replace-one
    >>> parallel(north, south, inside=[PureDP(0.5), PureDP(0.3)]).implies(PureDP(0.8))  # a move costs the sum
    True
    """
    _check("parts", parts, "add-remove")
    stated = [_Stated.of(part) for part in parts]
    everything = [*parts]
    if inside is not None:
        within = items_of("inside", inside, "a guarantee for each part", most=MOST_QUERIES)
        _check("inside", within, "replace-one")
        if len(within) != len(parts):
            raise ValueError(f"inside: {len(within)} guarantees: must be one for each of {len(parts)} parts")
        stated = [*(_Stated.of(part) for part in within), *([_move(stated)] if len(stated) > 1 else [])]
        everything += within
    origin = common_origin(part.origin for part in everything)
    return with_origin(_weakest(stated, "add-remove" if inside is None else "replace-one"), origin)


def _check(name: str, guarantees: Sequence[Guarantee], relation: Neighbors) -> None:
    if not guarantees:
        raise ValueError(f"{name}: must be at least one guarantee")
    for guarantee in guarantees:
        if instance_of(Guarantee, name, guarantee, A_GUARANTEE).neighbors != relation:
            raise ValueError(
                f"{name}: {guarantee}: must be for {relation!r} neighbours"
                + ("; a replacement may move a record from one part to another" if relation == "add-remove" else "")
            )


class _Stated(NamedTuple):
    """What is known of one part: all that holds without a delta, and one (epsilon, delta)."""

    clean: Form | None
    epsilon: float
    delta: float

    @staticmethod
    def of(guarantee: Guarantee) -> _Stated:
        forms = guarantee.forms()
        clean = [form for form in forms if not form.leak]
        delta, epsilon = min(((form.leak, form.pure) for form in forms if form.pure < inf), default=(inf, inf))
        return _Stated(Form.strongest(clean) if clean else None, epsilon, delta)


def _move(parts: Sequence[_Stated]) -> _Stated:
    """What holds of a record that leaves one part and enters another: of each kind the sum of the two largest."""

    def both(values: Iterable[float]) -> float:
        one, other = sorted(values)[-2:]
        return up(Fraction(one) + Fraction(other)) if other < inf else inf

    forms = [part.clean for part in parts if part.clean is not None]
    epsilon, delta = both(part.epsilon for part in parts), both(part.delta for part in parts)
    if len(forms) < len(parts):
        return _Stated(None, epsilon, delta)
    mu = inf
    if any(form.mu < inf for form in forms):
        one, other = sorted(form.least_mu for form in forms)[-2:]
        mu = root_above(Fraction(one) ** 2 + Fraction(other) ** 2) if other < inf else inf
    curves = list(zip(*(form.full_curve() for form in forms), strict=True))
    clean = Form(
        pure=both(form.pure for form in forms),
        rho=both(form.rho for form in forms),
        make_curve=lambda: tuple(both(values) for values in curves),
        range=both(form.range for form in forms),
        mu=mu,
    )
    return _Stated(clean, epsilon, delta)


def _weakest(parts: Sequence[_Stated], neighbors: Neighbors) -> Guarantee:
    """What holds if any one of these does, of every kind that all of them imply."""
    forms = [part.clean for part in parts if part.clean is not None]
    found = _of_kinds(forms, neighbors) if len(forms) == len(parts) else []
    epsilon, delta = max(part.epsilon for part in parts), max(part.delta for part in parts)
    if 0 < delta < 1 and epsilon < inf:
        found.append(ApproxDP(epsilon, delta, neighbors=neighbors))
    if not found:
        raise ValueError("parts: have no kind of guarantee in common; convert each with to_approx(delta)")
    return found[0] if len(found) == 1 else AllOf(*found)


def _of_kinds(forms: Sequence[Form], neighbors: Neighbors) -> list[Guarantee]:
    """The weakest of each kind; what follows from those before is left out."""
    found: list[Guarantee] = []

    def keep(value: float, kind: Callable[..., Guarantee]) -> None:
        if value < inf:
            made = kind(value, neighbors=neighbors)
            found.extend([] if any(one.implies(made) for one in found) else [made])

    pure, width = max(form.pure for form in forms), max(form.range for form in forms)
    if Fraction(width) < 2 * Fraction(pure) if pure < inf else width < inf:
        keep(width, BoundedRange)
    keep(pure, PureDP)
    if any(form.mu < inf for form in forms):
        keep(max(form.least_mu for form in forms), GaussianDP)
    keep(max(form.rho for form in forms), ZCDP)
    curve = tuple(map(max, *(form.full_curve() for form in forms))) if len(forms) > 1 else forms[0].full_curve()
    if any(map(isfinite, curve)):
        made = Renyi(curve, neighbors=neighbors)
        found.extend([] if any(one.implies(made) for one in found) else [made])
    return found


def subsampled(guarantee: Guarantee, *, rate: float, sampling: Sampling, delta: float | None = None) -> Guarantee:
    """What a mechanism guarantees that is run on a random sample of the records, which nobody sees.

    Parameters
    ----------
    guarantee : Guarantee
        What it guarantees of the sample: for add-remove neighbours with "poisson", for replace-one neighbours with
        "fixed-size".
    rate : float in (0, 1]
        The probability of a record to be in the sample: with "fixed-size" the size of the sample over the number of
        records, both of which are public then.
    sampling : {"poisson", "fixed-size"}
        "poisson": each record is in it or not, independently. "fixed-size": all samples of that size are equally
        likely.
    delta : float in (0, 1), optional
        The delta of the result, for guarantees that imply an (epsilon, delta) and state none, such as ZCDP.

    Returns
    -------
    Guarantee
        For the same neighbours: epsilon becomes ln(1 + rate (e^epsilon - 1)), a delta rate times as large. Without
        `delta` it carries the profile of the sampled mechanism for `compose`.

    Raises
    ------
    ValueError
        For the other relation; and without `delta` for a guarantee that states no epsilon.

    Notes
    -----
    Proof        parts.md, theorem 3
    Not covered  samples under the other relation of each kind; what else the sample is used for; samplers whose
                 randomness is guessed. No curve is kept: for many samples of a mechanism that states no epsilon, as of
                 DP-SGD, take `LossDistribution(PoissonSubsampled(Gaussian(mu), rate))`

    Examples
    --------
    >>> from fastdp import PureDP, ZCDP
    >>> from fastdp.privacy import subsampled
    >>> print(subsampled(PureDP(1.0, neighbors="add-remove"), rate=0.01, sampling="poisson"))
    0.0170369-DP, add-remove
    >>> print(subsampled(ZCDP(0.1), rate=0.01, sampling="fixed-size", delta=1e-6))
    (0.0415704, 1e-06)-DP, replace-one
    """
    one_of("sampling", sampling, SAMPLINGS)
    rate = positive("rate", rate, toward=inf)
    if rate > 1:
        raise ValueError(f"rate={rate!r}: must be at most 1")
    relation: Neighbors = "add-remove" if sampling == "poisson" else "replace-one"
    if instance_of(Guarantee, "guarantee", guarantee, A_GUARANTEE).neighbors != relation:
        raise ValueError(f"guarantee: {guarantee}: must be for {relation!r} neighbours with sampling={sampling!r}")
    if delta is not None:
        delta = positive_delta(delta)
        before = down(Fraction(delta) / Fraction(rate))
        epsilon = guarantee.to_approx(before).epsilon if before < 1 else 0.0
        made: Guarantee = ApproxDP(_amplified(epsilon, rate), delta, neighbors=relation)
        return with_origin(made, guarantee.origin)
    found: list[Guarantee] = []
    for form in guarantee.forms():
        if form.pure < inf:
            epsilon, leak = _amplified(form.pure, rate), up(Fraction(form.leak) * Fraction(rate))
            stated: Guarantee = PureDP(epsilon, neighbors=relation)
            if leak:
                stated = ApproxDP(epsilon, leak, neighbors=relation)
            found.append(with_profile(stated, _sampled_profile(form, rate, sampling)))
    if not found:
        raise ValueError(f"guarantee: {guarantee}: states no epsilon; pass delta=")
    return with_origin(found[0] if len(found) == 1 else AllOf(*found), guarantee.origin)


def _sampled_profile(form: Form, rate: float, sampling: Sampling) -> Profile:
    """What is known of the losses of a mechanism with this form on a sample."""
    base = form.profiles[0] if form.profiles else RandomizedResponse(form.pure)
    return PoissonSubsampled(base, rate) if sampling == "poisson" else FixedSizeSubsampled(base, rate)


@rounding.sixty_digits
def _amplified(epsilon: float, rate: float) -> float:
    """ln(1 + rate (e^epsilon - 1)) = epsilon + ln(rate + (1 - rate) e^-epsilon)."""
    if rate == 1 or not epsilon:
        return epsilon
    if epsilon < SMALL:  # at most rate (e^epsilon - 1)
        return min(epsilon, up(Fraction(rate) * Fraction(epsilon) * (1 + Fraction(epsilon))))
    shrunk, share = rounding.exp(-Decimal(epsilon)) if epsilon < 10**5 else Decimal(0), Decimal(rate)
    return min(epsilon, up(Decimal(epsilon) + rounding.ln(share + (1 - share) * shrunk)))
