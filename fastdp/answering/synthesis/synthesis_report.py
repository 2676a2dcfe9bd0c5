"""What a synthesis measured, for people: which tables with which noise, and how the fitted ones compare with them."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...records.domain import Domain, display_count
from ...support.checks import items_of
from ...support.frozen import frozen
from ...support.public_paths import public_as
from ...support.results import Displayed, DisplayLines
from ...support.shown import shown
from .junction_tree import JunctionTree
from .measured import Measured
from .measuring import Measurements
from .synthesis_plan import SynthesisPlan
from .table_picture import MOST_CELLS, picture_of
from .tree_fit import TreeFit

_MOST_LISTED = 12
_MOST_DRAWN = 60  # columns of the picture


@public_as("fastdp.answering")
@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A table that was measured, and what was fitted to it.

    Attributes
    ----------
    columns : tuple of str
        Its attributes.
    sigma : float
        The standard deviation of the noise of each cell, in records.
    noisy : numpy.ndarray
        As measured, in records: with an axis for each attribute, negative entries included.
    fitted : numpy.ndarray
        The same table of the synthetic distribution, in records.
    """

    columns: tuple[str, ...]
    sigma: float
    noisy: NDArray[np.float64]
    fitted: NDArray[np.float64]

    @property
    def residual(self) -> float:
        """The mean square of the differences, in units of the variance of the noise."""
        return float(((self.noisy - self.fitted) ** 2).mean() / self.sigma**2)

    def picture(self) -> str:
        """The noisy table beside the fitted one, as an SVG picture: bars, or shaded cells of several attributes.

        Returns
        -------
        str
            SVG, for a page or a file.
        """
        return picture_of(self.columns, self.noisy, self.fitted)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>{self.picture()}"

    def __repr__(self) -> str:
        return f"MeasuredTable({' x '.join(self.columns)}, {self.noisy.size:,} cells, sigma={self.sigma:.4g})"


@public_as("fastdp.answering")
@dataclass(frozen=True, repr=False, eq=False)
class SynthesisReport(Displayed):
    """What a synthesis measured, and the tree that it fitted.

    Attributes
    ----------
    columns : tuple of str
        The attributes.
    cliques : tuple of tuple of str
        The attributes of each clique of the tree; a distribution has all dependences within them.
    cells : int
        How many cells all cliques have.
    tables : tuple of MeasuredTable
        What was measured: first each attribute by itself, then the tables of two and three, in the order in which they
        were chosen. A table that was measured twice is there once, as the mean.
    distance_sigma : float
        The standard deviation of the noise of the distances, as a fraction of the records.
    rounds : int
        How many times distances were measured, each time from what was known by then; 0 where there was nothing to
        choose, as one tree holds all tables of the workload, and of a network.
    n : float
        The number of records: known, or released.
    mu : float
        What all measurements cost, in Gaussian DP.
    steps : int
        How many steps the fit took.
    residual : float
        The mean square of the differences between fitted and noisy tables, in units of the variance of the noise. Far
        above 1 the distribution has not converged, or cannot hold what was measured.
    """

    columns: tuple[str, ...]
    cliques: tuple[tuple[str, ...], ...]
    cells: int
    tables: tuple[MeasuredTable, ...]
    distance_sigma: float
    rounds: int
    n: float
    mu: float
    steps: int
    residual: float
    _distances: tuple[tuple[str, str, float], ...]
    _families: tuple[tuple[str, tuple[str, ...]], ...] = ()
    _merged: tuple[tuple[str, tuple[Any, ...]], ...] = ()

    @property
    def distances(self) -> dict[tuple[str, str], float]:
        """Of each pair of attributes how far it is from independent: the noisy L1 distance, as a fraction of the
        records. From 0 to 2, but for the noise."""
        return {(one, other): distance for one, other, distance in self._distances}

    @property
    def parents(self) -> dict[str, tuple[str, ...]]:
        """Of a network the attributes that each attribute was chosen to depend on; the first one has none."""
        return dict(self._families)

    @property
    def merged(self) -> dict[str, tuple[Any, ...]]:
        """Of each attribute of many values the rare ones, labels or codes: in all tables here they are one, the last of
        its axis. Records have them by the shares that the attribute's first table gave them."""
        return dict(self._merged)

    def table(self, names: Iterable[str]) -> MeasuredTable:
        """The measured table of these attributes.

        Parameters
        ----------
        names : iterable of str
            The attributes, in any order.

        Returns
        -------
        MeasuredTable
            With its attributes in the order of the domain.

        Raises
        ------
        ValueError
            If it was not measured.
        """
        given = [names] if isinstance(names, str) else items_of("names", names, "names of attributes", most=2**14)
        for each in self.tables:
            if sorted(each.columns) == sorted(map(str, given)):
                return each
        raise ValueError(f"names={shown(given)}: must be those of a table that was measured; `.tables` lists them")

    def _display(self) -> DisplayLines:
        several = [each for each in self.tables if len(each.columns) > 1]
        singles = [each.sigma for each in self.tables if len(each.columns) == 1]
        measured = "\n".join(
            f"{' x '.join(each.columns)}: {each.noisy.size:,} cells, sigma {each.sigma:.4g}, "
            f"residual {each.residual:.2g}"
            for each in several[:_MOST_LISTED]
        )
        more = f"\nand {len(several) - _MOST_LISTED} more" if len(several) > _MOST_LISTED else ""
        if self.rounds:
            sigma = f"sigma {self.distance_sigma:.2g} of the records, in round 1 of {self.rounds}"
            chosen = ("distances", f"{len(self.distances):,} pairs, {sigma}")
        elif self._families:
            hang = sum(bool(parents) for parents in self.parents.values())
            chosen = ("network", f"{len(self._families):,} choices, {hang:,} of a column that depends on others")
        else:
            chosen = ("distances", "not needed: one tree holds all tables of the workload")
        merged = ", ".join(f"{len(values):,} of {name} are one" for name, values in self._merged[:_MOST_LISTED])
        cliques = "\n".join(", ".join(each) for each in self.cliques[:_MOST_LISTED])
        others = f"\nand {len(self.cliques) - _MOST_LISTED} more" if len(self.cliques) > _MOST_LISTED else ""
        return [
            ("columns", f"{len(self.columns):,}, each measured with sigma {min(singles):.4g} to {max(singles):.4g}"),
            chosen,
            *([("rare values", merged)] if merged else []),
            ("tables", (measured + more) or "none of several columns"),
            ("cliques", cliques + others),
            ("cells", f"{display_count(self.cells)} in {len(self.cliques):,} cliques"),
            ("fit", f"{self.steps:,} steps, residual {self.residual:.3g} of the noise's variance"),
            ("price", f"{self.mu:.4g}-Gaussian DP"),
        ]

    def _repr_html_(self) -> str:
        drawn = [each for each in self.tables if each.noisy.size <= MOST_CELLS]
        some = [[each for each in drawn if len(each.columns) == k][: _MOST_LISTED // 2] for k in (1, 2)]
        tables = "".join(f"<div>{each.picture()}</div>" for of_a_kind in some for each in of_a_kind)
        return super()._repr_html_() + (self.picture() if self.distances else "") + tables

    def picture(self) -> str:
        """The distances of all pairs as an SVG picture, measured tables framed; a name on the diagonal is its column's.

        Returns
        -------
        str
            SVG, for a page or a file.
        """
        names = self.columns[:_MOST_DRAWN]
        at = {name: i for i, name in enumerate(names)}
        side, room, top = 16, 8 + 7 * max(map(len, names)), 20
        measured = {each.columns for each in self.tables}
        most = max([*self.distances.values(), 1e-9])
        says = f"how far two columns are from independent (darkest: {most:.2g}); framed: measured"
        boxes = [f'<text x="0" y="12">{says}</text>']
        for (one, other), distance in self.distances.items():
            if one in at and other in at:
                shade = round(255 * (1 - max(0.0, distance) / most))
                frame = ' stroke="#f28e2b" stroke-width="2"' if (one, other) in measured else ""
                boxes.append(
                    f'<rect x="{room + side * at[one]}" y="{top + side * at[other]}" width="{side - 3}" '
                    f'height="{side - 3}" fill="rgb({shade},{shade},255)"{frame}>'
                    f"<title>{html.escape(f'{one} x {other}')}: {distance:.3g}</title></rect>"
                )
        words = "".join(
            f'<text x="{room - 4}" y="{top + side * i + 11}" text-anchor="end">{html.escape(name)}</text>'
            f'<text x="{room + side * i}" y="{top + side * i + 11}">{html.escape(name)}</text>'
            for name, i in at.items()
        )
        width, height = max(430, 2 * room + side * len(names)), top + side * len(names)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
            f'font-size="11" fill="#7a7a7a">{"".join(boxes)}{words}</svg>'
        )


def report_of(plan: SynthesisPlan, measured: Measurements, tree: JunctionTree, fit: TreeFit) -> SynthesisReport:
    """What there is to say of a synthesis; everything has been released."""
    names = plan.domain.names
    order: dict[tuple[int, ...], int] = {each.columns: i for i, each in enumerate(measured.plan.tables)}
    tables = sorted(_joined(measured.tables), key=lambda each: (order.get(each.columns, -1), each.columns))
    return SynthesisReport(
        columns=names,
        cliques=tuple(tuple(names[p] for p in clique) for clique in tree.cliques),
        cells=tree.cells,
        tables=tuple(
            MeasuredTable(
                tuple(names[p] for p in each.columns),
                each.sigma,
                frozen(each.values),
                frozen(measured.total * fit.distribution.marginal(each.columns)),
            )
            for each in tables
        ),
        _distances=tuple(
            (names[each.columns[0]], names[each.columns[1]], each.distance / measured.total)
            for each in measured.candidates
        ),
        distance_sigma=measured.distances.sigma / measured.total if measured.distances and measured.candidates else 0.0,
        rounds=measured.rounds,
        n=measured.total,
        mu=measured.mu,
        steps=fit.steps,
        residual=fit.residual,
        _merged=tuple((names[p], values_of(plan.domain, p, merge.rare)) for p, merge in measured.merges.items()),
        _families=tuple((names[each.column], tuple(names[p] for p in each.parents)) for each in measured.families),
    )


def values_of(domain: Domain, p: int, codes: NDArray[np.intp]) -> tuple[Any, ...]:
    """The labels of these codes of an attribute, or the codes where it has none."""
    labels = domain.labels[p]
    return tuple(codes.tolist()) if labels is None else tuple(labels[code] for code in codes)


def _joined(tables: Sequence[Measured]) -> list[Measured]:
    """Each table once: of two measurements the mean, weighted by their precisions."""
    found: dict[tuple[int, ...], Measured] = {}
    for each in tables:
        if each.columns in found:
            before = found[each.columns]
            one, other = before.sigma**-2, each.sigma**-2
            values = (one * before.values + other * each.values) / (one + other)
            each = Measured(each.columns, values, (one + other) ** -0.5)
        found[each.columns] = each
    return list(found.values())
