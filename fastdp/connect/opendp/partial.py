"""Partial constructors, for `input_space >> then_laplace(scale=1.0)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...randomness.keys import Randomness
from .library import need_opendp
from .noise import make_gaussian, make_laplace
from .selection import make_exponential_mechanism, make_permute_and_flip


def then_laplace(scale: float, *, k: int | None = None, rng: Randomness | None = None) -> Any:
    """`make_laplace` for the input space that it is chained to.

    Parameters
    ----------
    scale : float > 0
        The scale of the noise.
    k : int, optional
        As in `make_laplace`.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.

    Returns
    -------
    opendp.mod.PartialConstructor
        To be chained to an input space: `input_space >> then_laplace(scale=1.0)`.
    """
    return _then(lambda domain, metric: make_laplace(domain, metric, scale, k=k, rng=rng))


def then_gaussian(scale: float, *, k: int | None = None, rng: Randomness | None = None) -> Any:
    """`make_gaussian` for the input space that it is chained to.

    Parameters
    ----------
    scale : float > 0
        The standard deviation of the noise.
    k : int, optional
        As in `make_gaussian`.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.

    Returns
    -------
    opendp.mod.PartialConstructor
        To be chained to an input space: `input_space >> then_gaussian(scale=1.0)`.
    """
    return _then(lambda domain, metric: make_gaussian(domain, metric, scale, k=k, rng=rng))


def then_exponential_mechanism(scale: float, *, output_measure: Any = None, rng: Randomness | None = None) -> Any:
    """`make_exponential_mechanism` for the input space that it is chained to.

    Parameters
    ----------
    scale : float > 0
        What scores are divided by.
    output_measure : opendp.mod.Measure, optional
        As in `make_exponential_mechanism`.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.

    Returns
    -------
    opendp.mod.PartialConstructor
        To be chained to an input space: `input_space >> then_exponential_mechanism(scale=1.0)`.
    """
    return _then(lambda d, m: make_exponential_mechanism(d, m, scale, output_measure=output_measure, rng=rng))


def then_permute_and_flip(scale: float, *, rng: Randomness | None = None) -> Any:
    """`make_permute_and_flip` for the input space that it is chained to.

    Parameters
    ----------
    scale : float > 0
        What scores are divided by.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.

    Returns
    -------
    opendp.mod.PartialConstructor
        To be chained to an input space: `input_space >> then_permute_and_flip(scale=1.0)`.
    """
    return _then(lambda domain, metric: make_permute_and_flip(domain, metric, scale, rng=rng))


def _then(make: Callable[[Any, Any], Any]) -> Any:
    need_opendp()
    import opendp.mod

    names = vars(opendp.mod)
    return names["_PartialConstructor" if "_PartialConstructor" in names else "PartialConstructor"](make)
