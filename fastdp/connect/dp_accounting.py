"""Guarantees as events of the library dp-accounting (extra `[accounting]`), which its accountants add up.

An event stands for a pair of distributions that is at least as easy to tell apart as any two neighbours' releases, so a
total that an accountant computes from events holds for the releases. dp_accounting.md has the proofs, and what the
two accountants make of the same event.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import version
from math import exp, expm1, inf, log1p
from typing import Any

from ..kernels.layout import LN2
from ..privacy.guarantee_forms import Form
from ..privacy.guarantees import A_GUARANTEE, Guarantee, Neighbors, PureDP
from ..privacy.neighbors import check_relation, kind_of
from ..support import rounding
from ..support.checks import instance_of, items_of, small_delta
from ..support.parameters import MOST_QUERIES
from ..support.rounding import down
from .requirements import is_older

NEEDED = "0.6"  # the first with ZCDpEvent
_UP = 1 + 2.0**-30  # on what libm computes, which is good to 15 digits
_NO_COST = 1e9  # of Laplace noise: costs an epsilon of 1e-9 at most


def dp_event(guarantee: Guarantee, accountant: Any = None, *, leak: float = 0.0) -> Any:
    """A dp-accounting event whose composition bounds that of releases with this guarantee.

    Parameters
    ----------
    guarantee : Guarantee
        What the releases guarantee.
    accountant : RdpAccountant or PLDAccountant, optional
        The accountant that it is for, where it is known; for the relation of the guarantee. The event is then the
        tightest that it takes. Without one, the event holds in both, and an accountant for the other relation refuses
        it.
    leak : float in [0, 1)
        A delta to be left out: the event is for what holds otherwise, and the caller adds `leak` to the accountant's
        delta. No event states that a release may fail, so (epsilon, delta)-DP has one only so.

    Returns
    -------
    dp_accounting.DpEvent
        The event.

    Raises
    ------
    ValueError
        Where there is no such event: a Renyi curve by itself, a delta that is not left out.

    Notes
    -----
    Proof    dp_accounting.md, theorems 1 to 3

    Examples
    --------
    >>> from fastdp import PureDP, ZCDP
    >>> PureDP(1.0, neighbors="add-remove").dp_event()
    ComposedDpEvent(events=[...LaplaceDpEvent(noise_multiplier=0.806...)])
    """
    library = _library()
    leak = small_delta("leak", leak)
    form = _form(guarantee, leak)
    neighbors = kind_of(guarantee.neighbors)  # whose they are, no event states
    if accountant is not None:
        _check_relation(library, neighbors, accountant)
        if isinstance(accountant, library.rdp.RdpAccountant):
            return _for_renyi(library.dp_event, form, neighbors)
        if isinstance(accountant, library.pld.PLDAccountant):
            return _for_losses(library, form, neighbors)
    return _for_all(library, form, neighbors)


def composed(guarantees: Iterable[Guarantee], accountant: Any = None) -> Any:
    """One event for several releases.

    Parameters
    ----------
    guarantees : iterable of Guarantee
        What they guarantee.
    accountant : RdpAccountant or PLDAccountant, optional
        As in `dp_event`.

    Returns
    -------
    dp_accounting.DpEvent
        The composition of their events.
    """
    given = items_of("guarantees", guarantees, "several guarantees", most=MOST_QUERIES)
    events = [dp_event(guarantee, accountant) for guarantee in given]
    if len({guarantee.unit for guarantee in given}) > 1:
        raise ValueError("guarantees: must all be for records, or for the same persons")
    made = _library().dp_event
    return made.ComposedDpEvent(events) if events else made.NoOpDpEvent()


def relation_of(neighbors: Neighbors) -> Any:
    """dp-accounting's name of a neighbouring relation, which an accountant is made with.

    Parameters
    ----------
    neighbors : {"replace-one", "add-remove"}
        Our name of it.

    Returns
    -------
    dp_accounting.NeighboringRelation
        Theirs.
    """
    check_relation(neighbors)
    relation = _library().NeighboringRelation
    return relation.REPLACE_ONE if kind_of(neighbors) == "replace-one" else relation.ADD_OR_REMOVE_ONE


# --- what a guarantee states


def _form(guarantee: Guarantee, leak: float) -> Form:
    """All that holds but for the leak."""
    instance_of(Guarantee, "guarantee", guarantee, A_GUARANTEE)
    forms = [form for form in guarantee.forms() if form.leak <= leak]
    if not forms:
        raise ValueError(
            f"{guarantee}: no event holds a delta: dp_event(leak={guarantee.least_delta()!r}) leaves it out, and is to "
            "be added to the accountant's delta; or fastdp.compose, which holds it"
        )
    form = Form.strongest(forms)
    if form.pure == form.rho == form.mu == inf:
        raise ValueError(
            f"{guarantee}: no event holds a Renyi curve: state its ZCDP form as well, as in ZCDP(rho) & curve"
        )
    return form


def _concentrates(form: Form) -> bool:
    """Whether rho implies more than the pure form does."""
    return form.pure == inf or form.rho < PureDP(form.pure).to_zcdp().rho


# --- events


def _for_renyi(events: Any, form: Form, neighbors: Neighbors) -> Any:
    """For an RdpAccountant, which takes Renyi divergences at all orders."""
    if _concentrates(form):
        return events.ZCDpEvent(rho=form.rho)
    if neighbors == "replace-one":
        return _response(events, form.pure)
    laplace = _laplace_of_pure(form.pure)
    # of a large epsilon the divergence is close to it at nearly all orders; Laplace noise would be twice that
    return events.ZCDpEvent(rho=0.0, xi=form.pure) if laplace > 1.25 * form.pure else _laplace(events, laplace)


def _for_losses(library: Any, form: Form, neighbors: Neighbors) -> Any:
    """For a PLDAccountant, which takes the pair itself. It doubles a Gaussian's sensitivity under replace-one."""
    events, mu = library.dp_event, form.least_mu
    if _better_as_gaussian(mu, form):
        return _gaussian(events, mu / 2 if neighbors == "replace-one" else mu)
    if neighbors == "replace-one":
        return _counted_right(library, _response(events, form.pure))
    return events.DiscreteLaplaceDpEvent(form.pure, 1) if form.pure else events.NoOpDpEvent()


def _for_all(library: Any, form: Form, neighbors: Neighbors) -> Any:
    """For both, with parts that cost nothing by which an accountant of the other relation knows that it is wrong."""
    events, mu = library.dp_event, form.least_mu
    gaussian = _better_as_gaussian(mu, form)
    if neighbors == "replace-one":
        guard = events.RandomizedResponseDpEvent(noise_parameter=1.0, num_buckets=1)
        if not gaussian:
            return _counted_right(library, _response(events, form.pure)) if form.pure else guard
        return events.ComposedDpEvent([guard, _gaussian(events, mu)])
    guard = events.PoissonSampledDpEvent(0.0, events.GaussianDpEvent(1.0))  # refused by an RdpAccountant
    if not gaussian:
        return events.ComposedDpEvent([guard, _laplace(events, max(_laplace_of_pure(form.pure), 1 / _NO_COST))])
    return events.ComposedDpEvent([guard, events.LaplaceDpEvent(_NO_COST), _gaussian(events, mu)])


def _better_as_gaussian(mu: float, form: Form) -> bool:
    return form.pure == inf or mu * mu / 2 < PureDP(form.pure).to_zcdp().rho


def _gaussian(events: Any, mu: float) -> Any:
    return events.GaussianDpEvent(noise_multiplier=down(1 / Fraction(mu))) if mu else events.NoOpDpEvent()


def _laplace(events: Any, epsilon: float) -> Any:
    return events.LaplaceDpEvent(noise_multiplier=down(1 / Fraction(epsilon))) if epsilon else events.NoOpDpEvent()


def _laplace_of_pure(epsilon: float) -> float:
    """2 ln((1 + e^epsilon) / 2), the loss of Laplace noise that covers any epsilon-DP: theorem 3."""
    return 2 * (log1p(expm1(epsilon) / 2) if epsilon < 1 else epsilon + log1p(exp(-epsilon)) - LN2) * _UP


@rounding.sixty_digits
def _response(events: Any, epsilon: float) -> Any:
    """Randomised response on a bit, which covers all epsilon-DP: told truly but for a fair coin taken so often."""
    if not epsilon:
        return events.NoOpDpEvent()
    coin = down(2 / (1 + rounding.exp(Decimal(epsilon))))
    return events.RandomizedResponseDpEvent(noise_parameter=coin, num_buckets=2)


# --- counts


class _One(int):
    """The number 1, which an accountant multiplies with its count: all but 1, and the 0 of `supports`, are refused."""

    def __new__(cls) -> _One:
        return super().__new__(cls, 1)

    def __mul__(self, count: int) -> int:
        if count not in (0, 1):
            raise ValueError(
                f"count={count}: must be 1: the PLDAccountant of this version of dp-accounting counts randomised "
                "response once whatever the count is; compose the event that often instead"
            )
        return count

    __rmul__ = __mul__

    def __reduce__(self) -> Any:
        return _One, ()


def _counted_right(library: Any, event: Any) -> Any:
    """The event, so that no accountant counts it once where it comes several times."""
    if isinstance(event, library.dp_event.NoOpDpEvent) or _responses_count(library.pld.PLDAccountant):
        return event
    return library.dp_event.SelfComposedDpEvent(event, _One())


@lru_cache(4)
def _responses_count(kind: Any) -> bool:
    """Whether an accountant minds how often a bit is answered."""
    made = _library().dp_event.RandomizedResponseDpEvent(0.5, 2)  # an epsilon of ln 3
    return bool(kind(relation_of("replace-one")).compose(made, 2).get_epsilon(1e-9) > 2)


# --- pieces


def _check_relation(library: Any, neighbors: Neighbors, accountant: Any) -> None:
    if not isinstance(accountant, library.PrivacyAccountant):
        raise ValueError(
            f"accountant: type {type(accountant).__name__}: must be an accountant of dp_accounting, or None"
        )
    wanted = relation_of(neighbors)
    if accountant.neighboring_relation != wanted:
        raise ValueError(
            f"accountant: is for {accountant.neighboring_relation.name}: must be for {wanted.name}, as the guarantee "
            f"is for {neighbors!r} neighbours" + ("; see .to_replace_one()" if neighbors == "add-remove" else "")
        )


def _library() -> Any:
    try:
        import dp_accounting
        import dp_accounting.pld
        import dp_accounting.rdp
    except ImportError:
        raise ImportError("events need dp-accounting: pip install 'fastdp[accounting]'") from None
    found = version("dp-accounting")
    if is_older(found, NEEDED):
        raise ImportError(f"dp-accounting {found}: must be at least {NEEDED}: pip install 'fastdp[accounting]'")
    return dp_accounting


__all__ = ["composed", "dp_event", "relation_of"]
