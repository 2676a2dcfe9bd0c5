"""Gaussian DP: guarantees that compare neighbours with N(0, 1) and N(mu, 1), the exact currency of Gaussian noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf

from ..support.checks import instance_of, non_negative
from ..support.public_paths import public_as
from ..support.rounding import up
from .guarantee_forms import Form
from .guarantees import A_GUARANTEE, Guarantee
from .origin import with_origin


@public_as("fastdp")
@dataclass(frozen=True, repr=False)
class GaussianDP(Guarantee):
    """mu-Gaussian DP: no test tells neighbours apart better than N(0, 1) from N(mu, 1).

    Gaussian noise has it, with mu its sensitivity over its standard deviation. The squares of mu add up, and what they
    add up to converts to (epsilon, delta) exactly: `compose`, and `Budget(theorem="gaussian")`.

    Parameters
    ----------
    mu : float >= 0
        The distance of the two normal distributions.
    neighbors : {"replace-one", "add-remove"}
        The neighbouring relation.
    theorem : str, optional
        What gave the guarantee, if it is a result.

    Notes
    -----
    Proof    gaussian_curve.md

    Examples
    --------
    >>> from fastdp import GaussianDP, compose
    >>> print(GaussianDP(0.5).to_approx(1e-6))
    (2.25408, 1e-06)-DP, replace-one
    >>> print(compose((GaussianDP(0.1), 25), delta=1e-6))  # as one of 0.5
    (2.25408, 1e-06)-DP, replace-one
    """

    mu: float

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mu", non_negative("mu", self.mu, toward=inf))

    @staticmethod
    def of(guarantee: Guarantee) -> GaussianDP:
        """The least mu that is proven to follow from a guarantee.

        Parameters
        ----------
        guarantee : Guarantee
            Pure, of bounded range, or concentrated; an `AllOf` gives the least of what its parts do.

        Returns
        -------
        GaussianDP
            For the same neighbours.

        Raises
        ------
        ValueError
            Where none follows: from a delta, or from a Renyi curve alone.

        Notes
        -----
        Proof    gaussian_curve.md, theorems 2 and 3

        Examples
        --------
        >>> from fastdp import GaussianDP, PureDP
        >>> print(GaussianDP.of(PureDP(1.0)))
        1.23204-Gaussian DP, replace-one
        """
        instance_of(Guarantee, "guarantee", guarantee, A_GUARANTEE)
        mu = min((form.least_mu for form in guarantee.forms() if not form.leak), default=inf)
        if mu == inf:
            raise ValueError(f"{guarantee}: does not imply Gaussian DP; only to_approx(delta) is left")
        return with_origin(GaussianDP(mu, neighbors=guarantee.neighbors), guarantee.origin)

    def forms(self) -> tuple[Form, ...]:
        return (Form(rho=up(Fraction(self.mu) ** 2 / 2), mu=self.mu),)

    def _follows_from(self, stronger: Guarantee) -> bool:
        return any(form.least_mu <= self.mu and not form.leak for form in stronger.forms())

    def _group(self, size: int) -> Guarantee:
        return GaussianDP(up(size * Fraction(self.mu)), neighbors=self.neighbors)

    def _stated(self) -> str:
        return f"{self.mu:.6g}-Gaussian DP"
