"""Releases that are planned and not run: the epsilon that each needs for the error asked of it, and all together.

The error bounds are those of `fastdp.bounds`; what releases cost together is `compose`. Nothing here reads a record or
draws: all numbers are public, and planning.md states what holds of them.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from math import inf
from typing import Any, overload

from ..privacy.composition import compose
from ..privacy.guarantees import ZCDP, ApproxDP, BoundedRange, Guarantee, Neighbors, PureDP
from ..privacy.loss_picture import INK, LINE
from ..privacy.origin import short_form
from ..support import extensions, parameters
from ..support.checks import integer, items_of, positive
from ..support.parameters import MOST_QUERIES
from ..support.public_paths import public_as
from ..support.search import OutOfReachError, least_float
from ..support.shown import described, shown
from .noise import gaussian_noise, laplace_noise

_TOLERANCE = 1e-4  # of an epsilon, and of a common factor of errors
_LARGEST_FACTOR = 2.0**40
_CHOICES = frozenset({"exponential_mechanism", "median", "quantile"})


@public_as("fastdp")
@dataclass(frozen=True)
class PlannedRelease:
    """One row of a plan.

    Parameters
    ----------
    label : str
        What it is called.
    mechanism : str
        The function that will make it.
    price : str
        Which parameter its error depends on: "epsilon" or "rho".
    value : float
        Of this parameter.
    asked : float
        The error that was asked for.
    error : float > 0
        The error bound at this value.
    guarantee : Guarantee
        Of one such release.
    times : int
        How many there are.
    """

    label: str
    mechanism: str
    price: str
    value: float
    asked: float
    error: float
    guarantee: Guarantee
    times: int


@public_as("fastdp")
class Plan(Sequence[PlannedRelease]):
    """Releases with their prices, as a table that prints well; a notebook shows the picture, too.

    Parameters
    ----------
    rows : sequence of PlannedRelease
        At least one.
    total : Guarantee
        What all of them guarantee together.
    factor : float > 0
        The worst error bound over the error asked for.
    """

    def __init__(self, rows: Sequence[PlannedRelease], total: Guarantee, factor: float) -> None:
        self._rows, self._total, self._factor = tuple(rows), total, factor

    @overload
    def __getitem__(self, index: int) -> PlannedRelease: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[PlannedRelease, ...]: ...
    def __getitem__(self, index: int | slice) -> PlannedRelease | tuple[PlannedRelease, ...]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def total(self) -> Guarantee:
        """What all of them guarantee together."""
        return self._total

    @property
    def factor(self) -> float:
        """The worst error bound over the error asked for: at most 1 where the total is enough."""
        return self._factor

    @property
    def guarantees(self) -> tuple[tuple[Guarantee, int], ...]:
        """Those of all releases, as `Budget(declared=...)` and `compose` take them."""
        return tuple((row.guarantee, row.times) for row in self._rows)

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                row.label, row.mechanism, f"{row.times:,}", f"{row.asked:.6g}", f"{row.error:.6g}",
                f"{row.price}={row.value:.6g}", short_form(row.guarantee),
            )
            for row in self._rows
        ]  # fmt: skip

    def _summary(self) -> str:
        return f"together: {self._total}; worst error over asked: {self._factor:.4g}"

    def __repr__(self) -> str:
        rows = [_HEADINGS, *self._cells()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([*lines, self._summary()])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{cell}</th>" for cell in _HEADINGS)
        rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in self._cells())
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{table}<p>{html.escape(self._summary())}</p>{self.svg()}"

    def svg(self) -> str:
        """Draw the price of each release as a bar: its epsilon, or its rho, over the largest of its kind.

        Returns
        -------
        str
            An SVG document, which reads on white and on dark alike.
        """
        most = {price: max(row.value for row in self._rows if row.price == price) for price in _prices(self._rows)}
        bars = []
        for i, row in enumerate(self._rows):
            y, width = 20 * i + 10, 240 * row.value / most[row.price]
            bars.append(
                f'<text x="150" y="{y + 10}" text-anchor="end">{html.escape(row.label[:24])}</text>'
                f'<rect x="156" y="{y}" width="{width:.1f}" height="13" fill="{LINE}"/>'
                f'<text x="{160 + width:.1f}" y="{y + 10}">{row.price}={row.value:.4g}, error {row.error:.4g}</text>'
            )
        size = f'width="580" height="{20 * len(self._rows) + 20}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="DejaVu Sans, Arial, sans-serif" '
            f'font-size="10" fill="{INK}">{"".join(bars)}</svg>'
        )


_HEADINGS = ("release", "mechanism", "times", "asked", "error", "parameter", "guarantee")


def _prices(rows: Iterable[PlannedRelease]) -> set[str]:
    return {row.price for row in rows}


def plan_releases(
    releases: Iterable[Mapping[str, Any]],
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    neighbors: Neighbors = "replace-one",
) -> Plan:
    """Find what releases need for the errors asked of them, before any is run; or what a total leaves to each.

    Parameters
    ----------
    releases : sequence of mapping
        Of each "mechanism", the name of a function of `fastdp.bounds`; "error", the error that is asked for in the
        units of that bound; the parameters that the bound takes, but for epsilon; and "label" and "times" where there
        are several alike. Gaussian noise is priced by rho, or at the "delta" that is given.
    epsilon : float > 0, optional
        A total to share out: all errors are then the same multiple, the least that it pays for, of those asked for.
    delta : float in [0, 1)
        Of all together. With one they are composed by whichever theorem gives the least.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    Plan
        A table; `.total`, `.factor`, `.guarantees` and `.svg()`.

    Raises
    ------
    ValueError
        Where a mechanism has no bound, or an error is out of reach.

    Notes
    -----
    Guarantee    the bound was evaluated at each parameter that is returned, and is at most `error`
    Proof        planning.md
    Cost         some 40 evaluations of each bound; 30 times that with a total to share out
    Not covered  releases that are chosen on the way. All parameters are fixed here, before the first result

    Examples
    --------
    >>> import fastdp
    >>> wanted = [
    ...     {"mechanism": "laplace", "label": "ages", "sensitivity": 2, "count": 100, "error": 40},
    ...     {"mechanism": "exponential_mechanism", "candidates": 1000, "sensitivity": 1, "error": 100},
    ... ]
    >>> plan = fastdp.plan_releases(wanted)
    >>> print(round(plan[0].value, 2), round(plan.total.to_approx(1e-6).epsilon, 2))
    0.38 0.58
    >>> round(fastdp.plan_releases(wanted, epsilon=0.28).factor, 1)
    2.1
    """
    delta, neighbors = parameters.delta_or_none(delta), parameters.neighbors(neighbors)
    listed = items_of("releases", releases, "mappings, one for each release", most=MOST_QUERIES)
    if not listed:
        raise ValueError("releases: must be at least one")
    wanted = [_Wanted.of(one, neighbors) for one in listed]
    if epsilon is None:
        return _planned(wanted, 1.0, delta)
    epsilon = parameters.epsilon(epsilon)
    if not delta and any(one.price == "rho" or one.given.get("delta") for one in wanted):
        raise ValueError(f"delta={delta!r}: must be > 0 to share out an epsilon among releases that need one")

    def fits(factor: float) -> bool:
        try:
            return _epsilon_of(_planned(wanted, factor, delta).total) <= epsilon
        except ValueError:  # a bound that no parameter reaches, at errors so small
            return False

    try:
        factor = least_float(fits, tolerance=_TOLERANCE, smallest=1 / _LARGEST_FACTOR, largest=_LARGEST_FACTOR)
    except OutOfReachError:
        raise ValueError(f"epsilon={epsilon!r}: is too small for any errors in proportion to those asked for") from None
    return _planned(wanted, factor, delta)


def _epsilon_of(total: Guarantee) -> float:
    return min((form.pure for form in total.forms()), default=inf)


def _planned(wanted: Sequence[_Wanted], factor: float, delta: float) -> Plan:
    rows = [one.at(factor) for one in wanted]
    counted = [(row.guarantee, row.times) for row in rows]
    total = compose(*counted, delta=delta) if delta else compose(*counted)
    return Plan(rows, total, max(row.error / row.asked for row in rows))


@dataclass(frozen=True)
class _Wanted:
    """A release that is intended."""

    label: str
    mechanism: str
    times: int
    asked: float
    price: str
    bound: Callable[..., Any]
    given: Mapping[str, Any]
    neighbors: Neighbors

    @staticmethod
    def of(stated: Any, neighbors: Neighbors) -> _Wanted:
        if not isinstance(stated, Mapping) or not all(isinstance(name, str) for name in stated):
            raise ValueError(
                f"releases: {described(stated)}: must be mappings, such as {{'mechanism': 'laplace', ...}}"
            )
        given = dict(stated)
        mechanism, asked, times = given.pop("mechanism", None), given.pop("error", None), given.pop("times", 1)
        known = extensions.load("bounds", "all")
        if not isinstance(mechanism, str) or mechanism not in known.__all__:
            raise ValueError(f"mechanism={shown(mechanism)}: must be the name of a function of fastdp.bounds")
        bound = getattr(known, mechanism)
        takes = signature(bound).parameters
        price = "rho" if "rho" in takes and "delta" not in given else "epsilon"
        if price not in takes:
            raise ValueError(f"mechanism={mechanism!r}: must have an error that depends on epsilon or rho")
        label = given.pop("label", mechanism)
        if not isinstance(label, str):
            raise ValueError(f"label={shown(label)}: must be a text")
        unknown = sorted(given.keys() - takes.keys() | given.keys() & {price, "neighbors"})
        if unknown:
            raise ValueError(f"{unknown[0]}={shown(given[unknown[0]])}: must not be given for {mechanism!r} in a plan")
        if "neighbors" in takes:
            given["neighbors"] = neighbors
        times = integer("times", times, least=1)
        return _Wanted(label, mechanism, times, positive("error", asked, toward=0), price, bound, given, neighbors)

    def error_at(self, value: float) -> float:
        found = self.bound(**self.given, **{self.price: value})
        try:
            return float(found)
        except (TypeError, ValueError):
            raise ValueError(f"mechanism={self.mechanism!r}: must have an error bound that is a number") from None

    def at(self, factor: float) -> PlannedRelease:
        """With the least price at which the bound is at most so many times the error asked for."""
        target = factor * self.asked
        if self.price == "epsilon" and "delta" not in self.given:
            value = self._by_inverse(target)
        else:
            value = self._by_search(target)
        guarantee = _guarantee_of(self.mechanism, self.price, value, self.given, self.neighbors)
        error = self.error_at(value)
        return PlannedRelease(self.label, self.mechanism, self.price, value, self.asked, error, guarantee, self.times)

    def _by_search(self, target: float, guess: float = 1.0) -> float:
        try:
            return least_float(
                lambda value: self._reaches(value, target),
                guess=guess,
                tolerance=_TOLERANCE,
                smallest=1e-12,
                largest=1e6,
            )
        except OutOfReachError:
            raise ValueError(f"error={target!r}: is out of reach of {self.mechanism!r}") from None

    def _by_inverse(self, target: float) -> float:
        """What the bound's own inverse finds, if the bound holds there; a search otherwise."""
        inverse = getattr(extensions.load("bounds", "all"), f"{self.mechanism}_epsilon", None)
        if inverse is not None and self.given.keys() <= signature(inverse).parameters.keys():
            try:
                value = float(inverse(error=target, **self.given))
            except (TypeError, ValueError):
                return self._by_search(target)
            if self._reaches(value, target):
                return value
        return self._by_search(target)

    def _reaches(self, value: float, target: float) -> bool:
        return self.error_at(value) <= target


def _guarantee_of(
    mechanism: str, price: str, value: float, given: Mapping[str, Any], neighbors: Neighbors
) -> Guarantee:
    """What a release will be charged: noise states its losses, too, for integers."""
    count = given.get("count", 1)
    if mechanism == "laplace":
        return laplace_noise(True, count, given["sensitivity"], value, None, neighbors).guarantee
    if mechanism == "gaussian":
        rho, epsilon, delta = (value, None, None) if price == "rho" else (None, value, given["delta"])
        return gaussian_noise(True, count, given["sensitivity"], rho, epsilon, delta, None, neighbors).guarantee
    if price == "rho":
        return ZCDP(value, neighbors=neighbors)
    delta = given.get("delta", 0.0)
    if delta:
        return ApproxDP(value, delta, neighbors=neighbors)
    if mechanism in _CHOICES and given.get("size", 1) == 1:
        return BoundedRange(value, neighbors=neighbors)
    return PureDP(value, neighbors=neighbors)


__all__ = ["Plan", "PlannedRelease", "plan_releases"]
