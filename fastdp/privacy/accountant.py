"""An accountant that needs no mechanism: the privacy losses of releases that are described by their profiles.

It composes them, reads epsilon and delta off, and prints a table and a picture. What it computes is proven in
loss_distributions.md; everything here is a function of public numbers.
"""

from __future__ import annotations

import html
from functools import lru_cache
from math import inf
from typing import Any

from ..support import parameters
from ..support.checks import instance_of, integer, non_negative
from ..support.public_paths import public_as
from ..support.shown import described, shown
from .composition import exact_sum
from .guarantees import Guarantee
from .loss_distributions import chosen, delta_bound, epsilon_bounds
from .loss_picture import picture
from .neighbors import Neighbors, one_relation
from .profiles import Profile

Part = tuple[tuple[Profile, ...], int]
DELTAS = (1e-3, 1e-5, 1e-6, 1e-8, 1e-10, 1e-12)
TIMES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
MOST_RELEASES = 2**40


@public_as("fastdp.privacy")
class LossDistribution:
    """The privacy losses of releases whose parameters are fixed in advance.

    Parameters
    ----------
    *releases : Profile, Guarantee or a pair of one and int
        What each release is known to lose: a profile, such as `Gaussian(0.5)`, or a guarantee. A pair (release, k)
        stands for k of them.

    Raises
    ------
    ValueError
        Where nothing but moments is known of one (a rho, a Renyi curve), or relations differ.

    Notes
    -----
    Guarantee    `epsilon` and `delta` are proven bounds, rounded up, and `at_least` is one rounded down
    Proof        loss_distributions.md
    Cost         some milliseconds for each number
    Not covered  parameters that are chosen on the way: for those, `Budget`

    Examples
    --------
    >>> from fastdp.privacy import Gaussian, Laplace, LossDistribution, PoissonSubsampled
    >>> step = LossDistribution(PoissonSubsampled(Gaussian(1.0), rate=0.01))
    >>> training = step**1000
    >>> round(training.epsilon(delta=1e-6), 2)
    2.12
    >>> count = LossDistribution((Laplace(0.1), 10))
    >>> together = training * count
    >>> round(together.epsilon(delta=1e-6), 2)
    2.51
    """

    __slots__ = ("__weakref__", "_leak", "_neighbors", "_parts")

    def __init__(self, *releases: Profile | Guarantee | tuple[Profile | Guarantee, int]) -> None:
        parts: list[Part] = []
        leaks: list[tuple[float, int]] = []
        relations: list[Neighbors] = []
        for item in releases:
            release, count = item if isinstance(item, tuple) and len(item) == 2 else (item, 1)
            count = integer("count", count, least=1, most=MOST_RELEASES)
            if isinstance(release, Guarantee):
                relations.append(release.neighbors)
                profiles, leak = _known(release)
                leaks.append((leak, count))
            elif isinstance(release, Profile):
                profiles = (release,)
                if not release.forward:
                    raise ValueError(f"releases: {shown(release)}: must be the profile of removing a record")
            else:
                raise ValueError(
                    f"releases: {described(release)}: must be profiles or guarantees, such as Gaussian(0.5)"
                )
            relations += ["add-remove" for profile in profiles if profile.directions > 1]
            parts.append((profiles, count))
        if not parts:
            raise ValueError("releases: must be at least one profile or guarantee, such as Gaussian(0.5)")
        self._set(tuple(parts), exact_sum(leaks), one_relation(relations) if relations else None)

    def _set(self, parts: tuple[Part, ...], leak: float, neighbors: Neighbors | None) -> None:
        self._parts, self._leak, self._neighbors = parts, leak, neighbors

    @property
    def neighbors(self) -> Neighbors | None:
        """The neighbouring relation, where a release states one."""
        return self._neighbors

    @property
    def releases(self) -> int:
        """How many releases there are."""
        return sum(count for _, count in self._parts)

    def epsilon(self, delta: float) -> float:
        """The least epsilon that is proven at this delta.

        Parameters
        ----------
        delta : float in (0, 1)
            The probability that the bound may fail with.

        Returns
        -------
        float
            inf where none is: at a delta that is not above what the releases leak.
        """
        return _epsilons(self._parts, self._leak, parameters.delta(delta))[0]

    def at_least(self, delta: float) -> float:
        """An epsilon that is too small at this delta, so that the distance from the truth is known.

        Parameters
        ----------
        delta : float in (0, 1)
            As in `epsilon`.

        Returns
        -------
        float
            0 where several facts are known of one release, or bounds that no pair attains.
        """
        return _epsilons(self._parts, self._leak, parameters.delta(delta))[1]

    def delta(self, epsilon: float) -> float:
        """The least delta that is proven at this epsilon.

        Parameters
        ----------
        epsilon : float >= 0
            The bound of the privacy loss.

        Returns
        -------
        float
            Rounded up; at most 1.
        """
        epsilon = non_negative("epsilon", epsilon, toward=0)
        guess = chosen(self._parts, 1e-6)
        return delta_bound(guess, epsilon=epsilon, leak=self._leak)

    def compose(self, *others: LossDistribution) -> LossDistribution:
        """All releases of this and of others together.

        Parameters
        ----------
        *others : LossDistribution
            On the same records.

        Returns
        -------
        LossDistribution
        """
        every = [self, *(instance_of(LossDistribution, "others", other, "a LossDistribution") for other in others)]
        made = object.__new__(LossDistribution)
        stated = [one._neighbors for one in every if one._neighbors is not None]
        parts: dict[tuple[Profile, ...], int] = {}
        for profiles, count in (part for one in every for part in one._parts):
            parts[profiles] = parts.get(profiles, 0) + count
        leak = exact_sum([(one._leak, 1) for one in every])
        made._set(tuple(parts.items()), leak, one_relation(stated) if stated else None)
        return made

    def __mul__(self, other: object) -> LossDistribution:
        if not isinstance(other, LossDistribution):
            return NotImplemented
        return self.compose(other)

    def __pow__(self, count: int) -> LossDistribution:
        count = integer("count", count, least=1, most=MOST_RELEASES)
        made = object.__new__(LossDistribution)
        parts = tuple((profiles, k * count) for profiles, k in self._parts)
        made._set(parts, exact_sum([(self._leak, count)]), self._neighbors)
        return made

    # --- a table and a picture

    def _title(self) -> str:
        named = ", ".join(f"{count:,} x {' & '.join(map(repr, profiles))}" for profiles, count in self._parts[:4])
        more = f" and {len(self._parts) - 4} more" if len(self._parts) > 4 else ""
        leak = f", delta {self._leak:.3g} besides" if self._leak else ""
        relation = f", {self._neighbors}" if self._neighbors else ""
        return f"LossDistribution: {named}{more}{leak}{relation}"

    def _cells(self) -> list[tuple[str, str, str]]:
        rows = [(delta, self.epsilon(delta), self.at_least(delta)) for delta in DELTAS]
        return [(f"{delta:g}", f"{most:.5g}", f"{least:.5g}" if least else "?") for delta, most, least in rows]

    def __repr__(self) -> str:
        lines = [f"{delta:<7}  {most:<9}  {least}" for delta, most, least in [_HEADINGS, *self._cells()]]
        return "\n".join([self._title(), *lines])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{cell}</th>" for cell in _HEADINGS)
        body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in self._cells())
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p>{html.escape(self._title())}</p>{table}{self.svg()}"

    def svg(self, *, delta: float = 1e-6) -> str:
        """Draw epsilon against delta, and against how often all of this is done.

        Parameters
        ----------
        delta : float in (0, 1)
            Of the second picture.

        Returns
        -------
        str
            An SVG document, which reads on white and on dark alike.
        """
        delta = parameters.delta(delta)
        deltas = [10.0**-k for k in range(2, 13)]
        by_delta = [(each, self.epsilon(each)) for each in deltas]
        by_count = [(float(k), (self**k).epsilon(delta)) for k in TIMES]
        return picture(
            [
                ("epsilon against delta", by_delta, False),
                (f"epsilon at delta = {delta:g} against how often it is done", by_count, True),
            ]
        )


_HEADINGS = ("delta", "epsilon", "at least")


def _known(guarantee: Guarantee) -> tuple[tuple[Profile, ...], float]:
    """All profiles of the form that leaks least of those that have one, and what it leaks."""
    forms = sorted((form for form in guarantee.forms() if form.has_profile), key=lambda form: form.leak)
    if not forms:
        raise ValueError(f"releases: {guarantee}: nothing but moments is known of its losses; use compose()")
    return forms[0].all_profiles(), forms[0].leak


@lru_cache(1024)
def _epsilons(parts: tuple[Part, ...], leak: float, delta: float) -> tuple[float, float]:
    bounds = epsilon_bounds(chosen(parts, delta), delta=delta, leak=leak)
    if bounds is None:
        return inf, 0.0
    several = any(profiles[1:] for profiles, _ in parts)
    return bounds.at_most, 0.0 if several else min(bounds.at_least, bounds.at_most)


__all__: list[Any] = ["LossDistribution"]
