"""A distribution on a junction tree: its marginals, its values of queries, and records of it, by messages.

Post-processing of what has been released, in floats. It never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...support.frozen import Frozen, frozen
from ...support.machine import display_bytes, usable_memory
from .junction_tree import JunctionTree
from .tree_layout import TreeLayout, layout_of
from .tree_sampling import sample_cliques

Flat = NDArray[np.float64]
Message = tuple[tuple[int, ...], Flat]  # columns, and a table with an axis for each

_einsum: Any = np.einsum  # its types have no lists of axes
_LEAST = 1e-130  # a share whose logarithm a fit begins with: from 0 there is no way back


class TreeDistribution(Frozen):
    """A distribution whose dependences are those of a junction tree.

    shares  the probabilities of the cells of all cliques, one clique after the other, as a layout of the tree has them
    total   the number of records that it was fitted to
    """

    def __init__(self, tree: JunctionTree, shares: Flat, total: float) -> None:
        self.tree, self.total = tree, total
        self._layout = layout_of(tree)
        self._shares = frozen(shares)
        home: dict[int, int] = {}  # of each column the first clique that has it
        for i, clique in enumerate(tree.cliques):
            for p in clique:
                home.setdefault(p, i)
        self._home = home
        self._depths = [0]
        for parent in tree.parents[1:]:
            self._depths.append(self._depths[parent] + 1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each column has."""
        return self.tree.sizes

    @property
    def bytes(self) -> int:
        """What it holds in memory, once it was asked for more than the tables of its cliques."""
        return 2 * self._shares.nbytes

    @cached_property
    def _conditionals(self) -> Flat:
        """The probabilities of the cells of each clique, given the cell of its separator."""
        made = np.empty_like(self._shares)
        for i in range(len(self.tree.cliques)):
            rows = self._layout.rows_of(self._shares, i)
            sums = rows.sum(axis=1, keepdims=True)
            np.divide(rows, sums, out=self._layout.rows_of(made, i), where=sums > 0)
            self._layout.rows_of(made, i)[sums[:, 0] <= 0] = 0.0
        return made

    @cached_property
    def _given_separators(self) -> list[Message]:
        layout, made = self._layout, self._conditionals
        return [(layout.axes(clique), layout.clique(made, i)) for i, clique in enumerate(self.tree.cliques)]

    def clique(self, i: int) -> Message:
        """The columns of a clique, in the order of the tree, and their distribution. To be read only."""
        return self._layout.axes(self.tree.cliques[i]), self._layout.clique(self._shares, i)

    def sample_into(self, key: NDArray[np.uint32], out: NDArray[Any]) -> None:
        """Codes of records, into unsigned [d, n] of a type that holds all codes: tree_sampling.py."""
        sample_cliques(self.tree, map(self.clique, range(len(self.tree.cliques))), key, out)

    # --- by messages

    def marginal(self, columns: Sequence[int]) -> Flat:
        """The distribution of some columns, with an axis for each, in the order given.

        ValueError if a sum on the way would need more than half of the memory.
        """
        at = self.tree.clique_of(columns)
        made = self._gather(tuple(columns), {}) if at is None else self.clique(at)
        return _arranged(made, tuple(columns))

    def marginals(self, tables: Iterable[tuple[int, ...]]) -> Iterator[Flat]:
        """The distributions of many sets of columns, one after the other; of pairs in a row with the same first column
        all at once, which takes far less time than one by one."""
        for first, group in groupby(tables, lambda these: these[0] if len(these) == 2 else None):
            if first is None:
                yield from (self.marginal(these) for these in group)
            else:
                yield from self._with_others(first, [q for _, q in group])

    def _with_others(self, p: int, others: Sequence[int]) -> list[Flat]:
        """The distributions of a column with each of others: on the way from the column's clique through the tree each
        clique learns how the column depends on its separator."""
        found: dict[int, Flat] = {}
        left, home = set(others), self._home[p]
        front: list[tuple[int, int, Message | None]] = [(home, home, None)]
        for at, before, message in front:
            mine = left.intersection(self.tree.cliques[at])
            found.update((q, self._joint(p, message, at, (q,))) for q in mine)
            left -= mine
            if not left:
                break
            for other, separator in self._beside[at]:
                if other != before:
                    joint = None if p in separator else self._joint(p, message, at, separator)
                    front.append((other, at, joint if joint is None else (separator, _given_rest(joint))))
        return [found[q] for q in others]

    def _joint(self, p: int, message: Message | None, at: int, columns: tuple[int, ...]) -> Flat:
        """The distribution of a column and of columns of a clique. Without a message the clique has the column, too;
        otherwise it is how the column depends on those that the message names."""
        if message is None:
            return _arranged(self.clique(at), (p, *columns))
        separator, told = message
        both = tuple(dict.fromkeys((*separator, *columns)))
        table = _arranged(self.clique(at), both)
        _check_cells(told.shape[0] * table.size, 1 + len(both))
        names = {q: i for i, q in enumerate((p, *both))}
        out: Flat = _einsum(
            told,
            [names[q] for q in (p, *separator)],
            table,
            [names[q] for q in both],
            [names[q] for q in (p, *columns)],
        )
        return out

    @cached_property
    def _beside(self) -> list[list[tuple[int, tuple[int, ...]]]]:
        """Of each clique those next to it in the tree, with what they share."""
        found: list[list[tuple[int, tuple[int, ...]]]] = [[] for _ in self.tree.cliques]
        for i, (parent, separator) in enumerate(zip(self.tree.parents, self.tree.separators, strict=True)):
            if parent >= 0:
                found[parent].append((i, separator))
                found[i].append((parent, separator))
        return found

    def expectation(self, allowed: Mapping[int, NDArray[Any]]) -> float:
        """The mean of a product of values of columns, such as 1 where a value is allowed and 0 elsewhere."""
        return float(self._gather((), allowed)[1]) if allowed else 1.0

    def logs_on(self, layout: TreeLayout) -> Flat:
        """Logarithms of weights on any tree, with the marginals that this distribution has on its cliques."""
        logs = np.empty(layout.cells)
        for i, clique in enumerate(layout.tree.cliques):
            cube = layout.clique(logs, i)
            cube[...] = self.marginal(layout.axes(clique))
            rows = layout.rows_of(logs, i)
            with np.errstate(invalid="ignore"):
                rows /= rows.sum(axis=1, keepdims=True)
            np.log(np.fmax(rows, _LEAST), out=rows)
        return logs

    def _gather(self, keep: tuple[int, ...], allowed: Mapping[int, NDArray[Any]]) -> Message:
        """The table of the columns to keep, of the distribution times the values of columns."""
        wanted = {self._home[p] for p in (*keep, *allowed)}
        top = min(wanted)
        used = set(wanted)
        for i in sorted(wanted, reverse=True):  # until all paths up have met
            while i != top:
                j = max(i, top, key=lambda k: (self._depths[k], k))
                parent = self.tree.parents[j]
                i, top = (parent, top) if j == i else (i, parent)
                used.add(parent)
        told: dict[int, list[Message]] = {}
        for i in sorted(used, reverse=True):
            axes, table = self.clique(i) if i == top else self._given_separators[i]
            for p in axes:
                if p in allowed and self._home[p] == i:
                    table = table * np.asarray(allowed[p], np.float64).reshape([-1 if q == p else 1 for q in axes])
            onward = set(keep) if i == top else set(keep) | set(self.tree.separators[i])
            message = _combined((axes, table), told.pop(i, []), onward)
            if i == top:
                return message
            told.setdefault(self.tree.parents[i], []).append(message)
        raise AssertionError("the paths end at their top")


def _combined(own: Message, told: Sequence[Message], onward: set[int]) -> Message:
    """The product of a clique's table with messages, summed over all columns but those that go on."""
    axes, table = own
    inside = [each for each in told if set(each[0]) <= set(axes)]
    for columns, message in inside:
        table = table * _spread_over(axes, columns, message)
    outside = [each for each in told if not set(each[0]) <= set(axes)]
    for k, (columns, message) in enumerate(outside):
        rest = {p for others, _ in outside[k + 1 :] for p in others} | onward
        out = tuple(p for p in dict.fromkeys((*axes, *columns)) if p in rest)
        sizes = {**dict(zip(axes, table.shape, strict=True)), **dict(zip(columns, message.shape, strict=True))}
        _check_cells(prod(sizes[p] for p in out), len(out))
        names = {p: i for i, p in enumerate(sizes)}
        # never with optimize: BLAS has other bits for another number of threads
        table = _einsum(table, [names[p] for p in axes], message, [names[p] for p in columns], [names[p] for p in out])
        axes = out
    left = tuple(p for p in axes if p in onward)
    return left, table.sum(axis=tuple(i for i, p in enumerate(axes) if p not in onward))


def _given_rest(joint: Flat) -> Flat:
    """The distribution along the first axis, given the others; 0 where these have none."""
    sums = joint.sum(axis=0)
    given: Flat = np.divide(joint, sums, out=np.zeros_like(joint), where=sums > 0)
    return given


def _spread_over(axes: tuple[int, ...], columns: tuple[int, ...], message: Flat) -> Flat:
    order = sorted(range(len(columns)), key=lambda i: axes.index(columns[i]))
    sizes = dict(zip(columns, message.shape, strict=True))
    return message.transpose(order).reshape([sizes.get(p, 1) for p in axes])


def _arranged(message: Message, columns: tuple[int, ...]) -> Flat:
    axes, table = message
    summed = table.sum(axis=tuple(i for i, p in enumerate(axes) if p not in columns))
    left = [p for p in axes if p in columns]
    return np.array(np.transpose(summed, [left.index(p) for p in columns]), order="C")


def _check_cells(cells: int, columns: int) -> None:
    if 16 * cells > usable_memory():
        raise ValueError(
            f"columns: a sum on the way has {columns} columns and {cells:,} cells, which take "
            f"{display_bytes(8 * cells)}: twice that must fit into {display_bytes(usable_memory())}, half of the memory"
        )
