"""What a synthesis does before it reads a record: which tables it counts, with which noise, under which limits.

All of it follows from public numbers: the domain, the workload, epsilon and delta, the relation, limits of time and
memory. synthesize.md, theorem 1, has the prices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, inf, prod, sqrt
from typing import Any, Literal

import numpy as np

from ...privacy.gaussian_dp import GaussianDP
from ...privacy.guarantees import AllOf, ApproxDP, Guarantee, Neighbors
from ...records.domain import Domain, check_domain, display_count
from ...support import parameters
from ...support.checks import integer, items_of, one_of, positive
from ...support.machine import display_bytes
from ...support.rounding import down
from ...support.shown import shown
from ..queries.bound_query import BoundProduct
from ..queries.marginals import Marginals
from ..queries.query import bind
from .chordal_graph import Limits, Pair
from .gaussian_prices import Noise, Priced, most_mu, noise_of, squared_change, squared_change_of_distances, total_mu
from .junction_tree import MOST_CELLS, JunctionTree
from .known_tables import columns_held
from .measured import Measured, Zeros
from .structure import MEAN_NOISE
from .tree_fit import fit_tree

Columns = tuple[int, ...]
Method = Literal["auto", "tree", "network"]
METHODS = ("auto", "tree", "network")

SINGLE_SHARE = Fraction(1, 20)  # of mu^2, for the tables of single columns
DISTANCE_SHARE = Fraction(3, 100)  # at most, of what is left, for the distances of a round
_RELATIVE_NOISE = 0.25  # of distances, as a fraction of the noise of tables, where less costs little
LEAST_MU = 2.0**-36  # of a table: no less can be drawn, and nothing would be seen
_SIZE_POWER = 2 / 3  # with which shares grow with the cells of a table: least sum of L1 errors
MOST_PAIRS = 1 << 17  # whose tables are counted
MANY_VALUES = 256  # of a column with more the rare ones may be merged
CELLS_A_SECOND = 100_000  # of a tree, for which a fit takes a second
DEFAULT_SECONDS = 4.0
DEFAULT_BYTES = 1 << 29


@dataclass(frozen=True)
class SynthesisPlan:
    """What is public of a synthesis before the records are read.

    domain      the values that records may have
    neighbors   the relation
    guarantee   of the whole synthesis
    mu          that all measurements may cost together
    singles     the noise of the table of each column
    pairs       whose distances from independence are measured, with their weights
    distances   the noise of all distances; None if there are no pairs
    room        bytes for the tables that are counted
    whole       tables that a tree within the limits has all together, the larger workload first, with their weights
    limits      of the tree
    zeros       tables of cells that hold no record
    forced      sets of columns that share a clique: those of the zeros
    method      how tables are chosen; "network" where there are more pairs than can be counted
    weights     how much the tables of the workload count
    asked       whether these are the user's
    many_valued columns whose rare values may become one, once their tables have been measured
    known       tables that were released before
    held        the columns of those that the tree holds
    """

    domain: Domain
    neighbors: Neighbors
    guarantee: Guarantee
    mu: float
    singles: tuple[Noise, ...]
    pairs: Mapping[Pair, float]
    distances: Noise | None
    limits: Limits
    zeros: tuple[Zeros, ...]
    room: int
    whole: tuple[Mapping[Columns, float], ...]
    method: Method
    weights: Mapping[Columns, float]
    asked: bool
    many_valued: tuple[int, ...]
    known: tuple[Measured, ...] = ()
    held: tuple[Columns, ...] = ()

    @property
    def forced(self) -> tuple[tuple[int, ...], ...]:
        """Columns that must share a clique."""
        return (*(zeros.columns for zeros in self.zeros), *self.held)

    def rest(self, spent: Sequence[Priced]) -> float:
        """The mu that is left for tables, rounded down."""
        return root_down(Fraction(self.mu) ** 2 - Fraction(total_mu(spent)) ** 2)

    def workload(self) -> Marginals:
        """The tables that are counted: of each column, of each pair, and those that may be measured together."""
        columns: list[Columns] = [(p,) for p in range(len(self.domain))]
        every = dict.fromkeys([*columns, *self.pairs, *(each for tables in self.whole for each in tables)])
        names = self.domain.names
        return Marginals(self.domain, [[names[p] for p in each] for each in every])


def distance_share(sizes: Sequence[int], pairs: Iterable[Pair], entries: int, neighbors: Neighbors) -> Fraction:
    """The part of mu^2 for so many distances: with it their noise is a quarter of what tables are off by for all of
    mu^2, as many as there are columns and of the mean size of a pair; at most `DISTANCE_SHARE`."""
    cells = [sizes[p] * sizes[q] for p, q in pairs]
    table = MEAN_NOISE * sum(cells) / len(cells) * len(sizes) ** 0.5
    changed = squared_change_of_distances(neighbors, entries) / squared_change(neighbors)
    return min(DISTANCE_SHARE, Fraction(changed / (_RELATIVE_NOISE * table) ** 2))


def root_down(x: Fraction) -> float:
    """A float below the square root; 0 of what is not positive."""
    return max(0.0, float(np.nextafter(sqrt(down(x)), -inf))) if x > 0 else 0.0


def synthesis_plan(
    domain: Any,
    *,
    epsilon: float,
    delta: float,
    workload: Any,
    importance: Any,
    impossible: Any,
    max_seconds: float | None,
    max_bytes: int | None,
    method: Method,
    neighbors: Neighbors,
    known: tuple[Measured, ...] = (),
) -> SynthesisPlan:
    """The plan for these parameters, which are checked."""
    check_domain(domain)
    parameters.neighbors(neighbors)
    one_of("method", method, METHODS)
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta(delta)
    limits = limits_of(domain, max_seconds, max_bytes)
    zeros = zeros_of(domain, impossible)
    check_zeros_fit(domain, zeros, limits)
    if workload is None and method == "auto" and comb(len(domain), 2) > MOST_PAIRS:
        method = "network"
    held = tuple(columns_held(domain.sizes, [each.columns for each in zeros], known, limits))
    weights, room = weighted_tables(domain, workload, importance, method), room_of(max_bytes)
    pairs = pairs_of(domain.sizes, weights, limits, room)
    many_valued = many_valued_of(domain.sizes, weights, [*zeros, *known])
    mu = most_mu(epsilon, delta)
    square = Fraction(mu) ** 2
    shares = np.array(domain.sizes, np.float64) ** _SIZE_POWER
    for_singles = square * (SINGLE_SHARE if pairs or many_valued else 1)
    each = [root_down(for_singles * Fraction(float(share))) for share in shares / (shares.sum() * (1 + 1e-12))]
    changed = squared_change(neighbors)
    singles = tuple(noise_of(part, changed, changed) for part in each)
    distances = distances_of(domain.sizes, pairs, mu, singles, neighbors, method)
    guarantee = AllOf(ApproxDP(epsilon, delta, neighbors=neighbors), GaussianDP(mu, neighbors=neighbors))
    forced, asked = [*(each.columns for each in zeros), *held], workload is not None
    whole = whole_workloads(domain.sizes, weights if asked else None, forced, limits, room, method)
    return SynthesisPlan(
        domain=domain, neighbors=neighbors, guarantee=guarantee, mu=mu, singles=singles, pairs=pairs,
        distances=distances, limits=limits, zeros=zeros, room=room, whole=whole, method=method, known=known,
        held=held, weights=weights, asked=asked, many_valued=many_valued,
    )  # fmt: skip


def distances_of(
    sizes: Sequence[int], pairs: Mapping[Pair, float], mu: float, singles: Sequence[Priced], neighbors: Neighbors,
    method: Method,
) -> Noise | None:  # fmt: skip
    """The noise of the distances of these pairs, by what the columns leave of mu; None if there are no pairs, and of a
    network, which measures none."""
    if not pairs or method == "network":
        return None
    left = Fraction(mu) ** 2 - Fraction(total_mu(singles)) ** 2
    share = distance_share(sizes, pairs, len(pairs), neighbors)
    return noise_of(root_down(left * share), squared_change_of_distances(neighbors, len(pairs)), len(pairs))


def many_valued_of(
    sizes: Sequence[int], weights: Iterable[Columns], fixed: Iterable[Measured | Zeros]
) -> tuple[int, ...]:
    """The columns of many values that count in tables with others, those left out whose cells are spoken of."""
    named = {p for each in fixed for p in each.columns}
    beside = {p for columns in weights if len(columns) > 1 for p in columns}
    return tuple(p for p in sorted(beside - named) if sizes[p] > MANY_VALUES)


def limits_of(domain: Domain, max_seconds: float | None, max_bytes: int | None) -> Limits:
    """How large a tree may be. A limit that leaves no room for the columns by themselves is an error."""
    seconds = DEFAULT_SECONDS if max_seconds is None else positive("max_seconds", max_seconds, toward=0)
    room = DEFAULT_BYTES if max_bytes is None else integer("max_bytes", max_bytes, least=1)
    by_time = int(min(seconds * CELLS_A_SECOND, 2.0**40))
    by_memory = room // 2 // 8 // 4
    least = sum(domain.sizes)
    if by_time < least:
        raise ValueError(
            f"max_seconds={shown(max_seconds)}: must be at least {least / CELLS_A_SECOND:.2g}: the columns alone have "
            f"{least:,} values"
        )
    if by_memory < least:
        raise ValueError(
            f"max_bytes={shown(max_bytes)}: must be at least {display_bytes(64 * least)}: the columns alone have "
            f"{least:,} values"
        )
    most = min(by_time, by_memory)
    return Limits(min(most, MOST_CELLS), most)


def room_of(max_bytes: int | None) -> int:
    """Bytes for the tables that are counted."""
    return (DEFAULT_BYTES if max_bytes is None else max_bytes) // 2


def weighted_tables(domain: Domain, workload: Any, importance: Any, method: Method = "tree") -> dict[Columns, float]:
    """The tables of the workload, which are all pairs by default, and how much each counts."""
    if workload is None:
        if comb(len(domain), 2) <= MOST_PAIRS:
            every: Sequence[Columns] = list(combinations(range(len(domain)), min(2, len(domain))))
        elif method == "network":
            every = some_pairs(len(domain))
        else:
            raise ValueError(
                f"workload: {len(domain):,} columns have more than {MOST_PAIRS:,} pairs: must be given, with the "
                "tables that matter; method='network' does without"
            )
    else:
        tables = Marginals.of(domain, workload)
        if tables.domain != domain:
            raise ValueError("workload: must be marginals of `domain`")
        every = tables.positions
    return dict(zip(every, _checked(importance, len(every)), strict=True))


def some_pairs(columns: int) -> list[Pair]:
    """Of more pairs than can be counted: each column with the one before it, and with others that everybody can draw
    alike."""
    each = MOST_PAIRS // columns
    if not each:
        raise ValueError(f"domain: {columns:,} columns: must be at most {MOST_PAIRS:,}")
    rng = np.random.default_rng(0)
    found: list[Pair] = []
    for q in range(1, columns):
        others = rng.choice(q, min(q, each), replace=False).tolist()
        found += [(p, q) for p in dict.fromkeys([q - 1, *others])][:each]
    return found


def pairs_of(
    sizes: Sequence[int], weights: Mapping[Columns, float], limits: Limits, room: int
) -> dict[Pair, float]:  # fmt: skip
    """The pairs of columns whose tables may be measured, and how much each counts."""
    of_pairs: dict[Pair, float] = {}
    for subset, weight in weights.items():
        for pair in combinations(subset, 2):
            of_pairs[pair] = of_pairs.get(pair, 0.0) + weight
    found: dict[Pair, float] = {}
    for pair in sorted(of_pairs, key=lambda pair: (sizes[pair[0]] * sizes[pair[1]], pair)):
        cells = sizes[pair[0]] * sizes[pair[1]]
        room -= 8 * cells
        if min(sizes[p] for p in pair) > 1 and cells <= limits.clique and room >= 0:
            found[pair] = of_pairs[pair]
    if len(found) > MOST_PAIRS:
        raise ValueError(f"workload: {len(found):,} pairs of columns: must be at most {MOST_PAIRS:,}")
    return {pair: found[pair] for pair in sorted(found)}


def whole_workloads(
    sizes: Sequence[int], asked: Mapping[Columns, float] | None, forced: Sequence[Columns], limits: Limits, room: int,
    method: Method,
) -> tuple[Mapping[Columns, float], ...]:  # fmt: skip
    """The workloads that one tree holds within the limits, so that all their tables may be measured without a choice;
    none for a network, which chooses.

    Without a workload of the user's those of all triples and of all pairs of columns, in this order.
    """
    found = []
    if method == "network" or (asked is None and len(sizes) > 1 and prod(sizes) > limits.clique):
        return ()  # of all pairs one clique has all columns
    if asked is None:
        orders = [k for k in (3, 2) if k <= len(sizes) and comb(len(sizes), k) <= MOST_PAIRS]
        each: list[Mapping[Columns, float]] = [dict.fromkeys(combinations(range(len(sizes)), k), 1.0) for k in orders]
    else:
        each = [asked]
    for tables in each:
        if sum(8 * prod(sizes[p] for p in columns) for columns in tables) > room:
            continue
        tree = JunctionTree(sizes, [*tables, *forced])
        if tree.largest <= limits.clique and tree.cells <= limits.tree:
            found.append(tables)
    return tuple(found)


def _checked(importance: Any, tables: int) -> list[float]:
    if importance is None:
        return [1.0] * tables
    given = items_of("importance", importance, "a number for each table of the workload", most=parameters.MOST_TABLES)
    if len(given) != tables:
        raise ValueError(f"importance: {len(given)} numbers: must be {tables}, one for each table of the workload")
    return [positive(f"importance[{i}]", weight, toward=0) for i, weight in enumerate(given)]


# --- cells that hold no record


def zeros_of(domain: Domain, impossible: Any) -> tuple[Zeros, ...]:
    """The cells of products that no record satisfies, as tables; those of the same columns in one."""
    if impossible is None:
        return ()
    rule = "products that no record satisfies, such as [Product({'kind': ['child'], 'works': ['yes']})]"
    found: dict[tuple[int, ...], Any] = {}
    for i, query in enumerate(items_of("impossible", impossible, rule, most=MOST_PAIRS)):
        bound = bind(query, domain)
        if not isinstance(bound, BoundProduct):
            raise ValueError(f"impossible[{i}]: must be a product, such as Conjunction, Product or Range")
        columns = bound.attributes
        if not columns:
            raise ValueError(f"impossible[{i}]: has every cell of the domain: must leave some")
        shape = tuple(domain.sizes[p] for p in columns)
        if prod(shape) > MOST_CELLS:
            raise ValueError(
                f"impossible[{i}]: its columns have {display_count(prod(shape))} cells: must be at most {MOST_CELLS:,}"
            )
        cells = np.ones(shape, np.bool_)
        for axis, (_, allowed) in enumerate(bound.allowed):
            cells &= allowed.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        found[columns] = found[columns] | cells if columns in found else cells
    return tuple(Zeros(columns, cells) for columns, cells in found.items())


def check_zeros_fit(domain: Domain, zeros: Sequence[Zeros], limits: Limits) -> None:
    """ValueError if the cliques that hold these tables exceed the limits."""
    tree = JunctionTree(domain.sizes, [each.columns for each in zeros])
    if tree.largest > limits.clique or tree.cells > limits.tree:
        raise ValueError(
            f"impossible: its columns hang together in cliques of {display_count(tree.largest)} cells, "
            f"{display_count(tree.cells)} in all: must be at most {limits.tree:,} within the limits of time and memory"
        )
    if zeros:
        try:
            fit_tree(tree, (), 1.0, zeros=zeros)  # of public numbers alone, before anything is paid
        except ValueError:
            raise ValueError("impossible: excludes all cells of the domain: must leave some") from None
