"""What the sums of a budget may reach, by theorem, and which guarantees have no place in them (budget.md)."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, sqrt

from .calibration import zcdp_rho
from .gaussian_curve import mu_of_goal
from .gaussian_dp import GaussianDP
from .ledger import Charge

SUMS = {"basic": ("epsilon", "delta"), "zcdp": ("rho",), "gaussian": ("pure", "mu"), "best": ("pure", "rho")}
"""What is added up, by theorem: what an account may have a limit of."""


def account_limits(theorem: str, epsilon: float, delta: float) -> list[dict[str, float]]:
    """The limits of each account: a release goes through if it keeps within all limits of one of them.

    Parameters
    ----------
    theorem : {"basic", "zcdp", "gaussian", "best"}
        Which sums are kept.
    epsilon, delta : float
        The total.

    Returns
    -------
    list of dict
        By the name of the sum.
    """
    if theorem == "basic":
        return [{"epsilon": epsilon, "delta": delta}]
    accounts = [{"pure": epsilon}] if theorem in ("gaussian", "best") else []
    if theorem == "gaussian":
        accounts.append({"mu": mu_of_goal(epsilon, delta)})
    elif delta:
        accounts.append({"rho": zcdp_rho(epsilon, delta)})
    return accounts


def never_fits(theorem: str, delta: float, amounts: Mapping[str, float]) -> str:
    """Why a release would be refused however small it were; empty if that is not so.

    Parameters
    ----------
    theorem : {"basic", "zcdp", "gaussian", "best"}
        Which sums are kept.
    delta : float
        That of the total.
    amounts : mapping
        What the release would add to the sums.

    Returns
    -------
    str
        What to do, in words.
    """
    if amounts["epsilon"] == inf == amounts["rho"]:
        return (
            "a Renyi curve alone has no sum here: state its PureDP or ZCDP form as well, as in ZCDP(rho) & curve, or "
            "choose a point with to_approx(delta)"
        )
    if theorem == "basic" and amounts["epsilon"] == inf:
        return (
            "theorem='basic' adds up epsilons and deltas, and this has none: give the release an epsilon and a "
            "delta, or make the budget with theorem='zcdp'"
        )
    if theorem != "basic" and amounts["pure"] == inf == amounts["rho"]:
        what = "squares of mu" if theorem == "gaussian" else "rhos"
        return (
            f"theorem={theorem!r} adds up {what} and epsilons without a delta, and this has neither: make "
            "the budget with theorem='basic'"
        )
    needs_delta = amounts["delta"] > 0 if theorem == "basic" else amounts["pure"] == inf
    return "delta=0 holds pure DP only: give the budget a delta" if needs_delta and not delta else ""


def rho_at(mu: float, charge: Charge) -> float:
    """A rho for a release like this charge that costs at most so much mu; 0 where none is known.

    Where mu is near the root of 2 rho, as that of Gaussian noise, it shrinks as fast as this root does, or faster: what
    the discreteness of the noise adds vanishes first (calibration.md, theorem 4). The grid of floats depends on the
    noise, which moves mu by less than a part in 100,000. The result is less than 37 % below the
    largest, which is at most mu^2 / 2.

    Parameters
    ----------
    mu : float > 0
        What it may cost.
    charge : Charge
        A release of the same kind.

    Returns
    -------
    float
        Rounded down.
    """
    rho, asked = charge.amounts["rho"], charge.mu
    if isinstance(charge.guarantee, GaussianDP) or not asked <= 1.25 * sqrt(2 * rho) < inf:
        return 0.0
    return float(f"{rho * (mu / asked) ** 2 * (1 - 1e-4):.6g}")


__all__ = ["SUMS", "account_limits", "never_fits", "rho_at"]
