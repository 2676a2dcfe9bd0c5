"""The synthetic distribution: public weights over the cells of a domain, to ask, tabulate and sample.

It is made of what has been released, so everything here is post-processing: it costs no privacy and uses floats. It
never sees a record.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.accounted import Accounted
from ..randomness.keys import Randomness, fresh_key
from ..records.bins import spread_in_bins
from ..records.domain import Domain, code_type, display_count
from ..support.checks import check_fits, flag, integer, items_of, one_of
from ..support.frozen import Frozen
from ..support.parameters import MOST_QUERIES
from ..support.public_paths import public_as
from ..support.results import as_code
from .marginal_transform import flat_of
from .product_distribution import Factor, ProductDistribution, Weights, are_weights, average_of
from .queries.bound_query import BoundQuery
from .queries.marginals import Marginals
from .queries.query import bind
from .synthesis.tree_distribution import TreeDistribution
from .synthesis.tree_part import OnTree, TreePart
from .synthesis.weighted_tree import WeightedTree, part_of_tree
from .synthetic_sampling import AliasTables
from .workload import Workload

if TYPE_CHECKING:
    from ..privacy.guarantees import Guarantee

Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES = ("pandas", "polars", "pyarrow")
_NUMBERS = 1 << 32  # and above: streams of numbers within bins; records are drawn by fewer


@public_as("fastdp")
class SyntheticDistribution(Frozen, Accounted):
    """A public distribution over the cells of a domain.

    Parameters
    ----------
    weights : array_like, DenseWeights, FactoredWeights, TreeDistribution or sequence of these
        Weights of all cells, with the domain; or an object that has them; or several of those for their mixture in
        equal parts (the average of iterates). They are copied: a distribution does not change. A distribution on a
        junction tree is no part of a mixture.
    domain : Domain, optional
        The domain of the records; must be given with an array, or with a distribution on a tree.
    guarantee : Guarantee, optional
        What the release that it comes from guarantees.
    n : int, optional
        The public number of records, if there is one.

    Attributes
    ----------
    domain, guarantee, n
        As given.
    blocks : tuple of tuple of str
        The attributes that are independent of all others, block by block.

    Raises
    ------
    ValueError
        "weights: must be >= 0 and finite, not all 0".

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import Conjunction, Domain, Randomness, SyntheticDistribution
    >>> domain = Domain(age=3, sex=["f", "m"])
    >>> synthetic = SyntheticDistribution(np.array([1, 1, 2, 2, 2, 0]), domain)
    >>> synthetic
    SyntheticDistribution(2 attributes, 6 cells)
    >>> synthetic.answer(Conjunction({"sex": "f"}))
    0.625
    >>> synthetic.marginal(["age"])
    array([0.25, 0.5 , 0.25])
    >>> synthetic.sample(4).shape
    (4, 2)
    """

    def __init__(
        self,
        weights: Weights | OnTree | WeightedTree | Sequence[Weights] | ArrayLike,
        domain: Domain | None = None,
        *,
        guarantee: Guarantee | None = None,
        n: int | None = None,
    ) -> None:
        each = list(weights) if isinstance(weights, list | tuple) and are_weights(weights) else [weights]
        on_tree = part_of_tree(weights, domain)
        parts = [] if on_tree is not None else [ProductDistribution(one, domain) for one in each]
        if any(part.domain != parts[0].domain for part in parts):
            raise ValueError("weights: must all be on the same domain")
        if len(parts) > 1 and all(part.is_dense for part in parts):
            parts = [average_of(parts)]
        self._products = parts
        self._parts: Sequence[ProductDistribution | TreePart] = parts if on_tree is None else [on_tree]
        self.domain: Domain = self._parts[0].domain
        self.guarantee = guarantee
        self.n = None if n is None else integer("n", n, least=0)
        self._tables: AliasTables | TreePart | None = None

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The attributes that are independent of all others, block by block; those of the first part of a mixture."""
        return self._names(self._parts[0].independent)

    @property
    def structure(self) -> tuple[tuple[str, ...], ...]:
        """The attributes whose joint distribution is held: the blocks, or the cliques of a junction tree."""
        return self._names(self._parts[0].cliques)

    @property
    def on_tree(self) -> TreeDistribution | None:
        """The distribution on a junction tree that this is, if it is one."""
        (first, *_) = self._parts
        return first.on_tree if isinstance(first, TreePart) else None

    def _names(self, sets: Iterable[tuple[int, ...]]) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.domain.names[p] for p in positions) for positions in sets)

    # --- asking

    def answer(self, query: Any) -> float:
        """The query's value.

        Parameters
        ----------
        query : Query
            What is asked.

        Returns
        -------
        float
            In [0, 1].
        """
        return self._evaluate(bind(query, self.domain))

    def answer_many(self, queries: Iterable[Any]) -> NDArray[np.float64]:
        """The values of many queries; of `marginals(domain, k)` all at once.

        Parameters
        ----------
        queries : iterable of Query
            What is asked.

        Returns
        -------
        numpy.ndarray of float64
            One value in [0, 1] for each.
        """
        if isinstance(queries, Marginals):
            if queries.domain != self.domain:
                raise ValueError("queries: must be marginals of the domain of the distribution")
            return flat_of(self.marginal_tables(queries))
        workload = Workload(items_of("queries", queries, "queries", most=MOST_QUERIES), self.domain)
        if len(self._products) == 1 and self._products[0].is_dense and len(workload):
            (weights,) = self._products[0].blocks.values()
            return np.clip(workload.evaluate(weights), 0.0, 1.0)
        return np.array([self._evaluate(workload.bound(i)) for i in range(len(workload))], np.float64)

    def marginal(self, names: Iterable[str]) -> NDArray[np.float64]:
        """The distribution of some attributes.

        Parameters
        ----------
        names : iterable of str
            The attributes.

        Returns
        -------
        numpy.ndarray of float64
            With an axis for each, in the order given.
        """
        positions = self.domain.positions(names)
        workload = Marginals(self.domain, [[self.domain.names[p] for p in positions]])
        table = self.marginal_tables(workload)[0]
        return np.ascontiguousarray(table.transpose([sorted(positions).index(p) for p in positions]))

    def marginal_tables(self, workload: Marginals) -> list[NDArray[np.float64]]:
        """The tables of a workload.

        Parameters
        ----------
        workload : Marginals
            Which tables.

        Returns
        -------
        list of numpy.ndarray
            Each with its attributes in the order of the domain.
        """
        workload = Marginals.of(self.domain, workload)
        made = [part.tables(workload) for part in self._parts]
        return [np.asarray(sum(tables) / len(made)) for tables in zip(*made, strict=True)]

    def probabilities(self) -> NDArray[np.float64]:
        """The distribution over all cells, in C order; a ValueError if they are too many for the memory."""
        return np.asarray(sum(part.joint() for part in self._parts) / len(self._parts))

    def _count(self, n: Any, size: int) -> int:
        """So many records, if they fit into the memory with so many bytes for each of their values."""
        count = integer("n", n, least=0)
        check_fits("n", n, count * len(self.domain) * size, f"{len(self.domain)} columns of so many records")
        return count

    def _evaluate(self, bound: BoundQuery) -> float:
        value = sum(part.evaluate(bound) for part in self._parts) / len(self._parts)
        return min(max(value, 0.0), 1.0)

    # --- sampling

    def sample(self, n: int, rng: Randomness | None = None, *, codes: bool = False) -> NDArray[Any]:
        """n records as the domain declares them, which is how everything here reads them.

        Where an attribute has labels the records hold labels, elsewhere codes; where it has bins, numbers that are
        spread evenly over their bin, or the number next to its edge in one without an end. The array lies in memory
        column by column. The same key gives the same records for any number of threads. Records are independent, and
        those of a shorter sample are the first of a longer one; not so where the distribution is one on a junction
        tree. There each record has the law of the distribution, but how many have the same values in a clique's columns
        is the expected number, rounded up or down at random: tables of the sample are nearer to the distribution.

        Parameters
        ----------
        n : int
            How many.
        rng : Randomness, optional
            Where the key comes from; None for the operating system.
        codes : bool
            Codes for attributes with labels, too, which only a domain without labels would read back.

        Returns
        -------
        numpy.ndarray
            Of shape (n, d). Of numbers if all records are (of the least unsigned type that holds them, if no attribute
            has labels), otherwise of objects.

        Notes
        -----
        Cost         once 6 ns a cell; then 10 ns a record, and 40 where the cells exceed the cache. No more for labels
                     that are numbers; 10 ns for each other one. Blocks of more than 2^24 cells: a microsecond a record.
                 On a junction tree 30 ns a record and clique
        """
        coded = flag("codes", codes) or self.domain.labels.count(None) == len(self.domain)
        n = self._count(n, self._kind.itemsize if coded else self._kind.itemsize + 16)
        key = fresh_key(rng)
        out = self._drawn(key, n)
        if coded:
            return out.T
        columns = [self._decoded(key, j, column) for j, column in enumerate(out)]
        records = np.empty(out.shape, _common_type([column.dtype for column in columns]))
        for j, column in enumerate(columns):
            records[j] = column
        return records.T

    @property
    def _kind(self) -> np.dtype[Any]:
        """The type that holds all codes."""
        return np.result_type(*map(code_type, self.domain.sizes))

    def _drawn(self, key: NDArray[np.uint32], n: int) -> NDArray[Any]:
        """Codes of n records, a row for each attribute."""
        if self._tables is None:
            (first, *_) = self._parts
            self._tables = first if isinstance(first, TreePart) else AliasTables(self.domain, self._products)
        out = np.empty((len(self.domain), n), self._kind)
        self._tables.sample_into(key, out)
        return out

    def _decoded(self, key: NDArray[np.uint32], position: int, codes: NDArray[Any]) -> NDArray[Any]:
        """Labels of codes; numbers that are spread over their bins, each by a word of a stream of its attribute."""
        bins = self.domain.bins[position]
        if bins is None:
            return self.domain.decode_column(position, codes)
        from ..kernels.words import words_into

        words = np.empty(codes.size, np.uint64)
        words_into(key, _NUMBERS + position, 0, words)
        return spread_in_bins(bins, codes, words)

    def to_frame(self, n: int | None = None, rng: Randomness | None = None, *, library: Library = "pandas") -> Any:
        """A data frame of sampled records.

        Labels that are strings become categories, in the order of the domain (an Enum in polars, a dictionary in
        Arrow); other labels keep their type, numbers are spread evenly over their bins, and codes are int64. The label
        None is a missing entry. Everything here reads it back. The same key gives the same records in all libraries.

        Parameters
        ----------
        n : int, optional
            How many; by default the public number of records.
        rng : Randomness, optional
            Where the key comes from; None for the operating system.
        library : {"pandas", "polars", "pyarrow"}
            Which data frame; of pyarrow a Table.

        Returns
        -------
        DataFrame or Table
            With a column for each attribute.

        Raises
        ------
        ValueError
            If n is not given and there is no public number.
        ImportError
            If the library is not installed.
        """
        made = library_of(library)
        if n is None:
            if self.n is None:
                raise ValueError("n: must be given, as there is no public number of records")
            n = self.n
        n = self._count(n, 17)  # a code, a number or label, and the library's copy
        key = fresh_key(rng)
        codes = dict(enumerate(self._drawn(key, n)))
        return frame_of_codes(library, self.domain, codes, {}, made, partial(self._decoded, key))

    # --- showing and pickling

    def __repr__(self) -> str:
        parts = [f"{len(self.domain)} attributes", f"{display_count(self.domain.size)} cells"]
        if len(self._parts) > 1:
            parts.append(f"{len(self._parts)} parts")
        if len(self.blocks) > 1:
            parts.append(f"{len(self.blocks)} blocks")
        if self.n is not None:
            parts.append(f"n={self.n:,}")
        if self.guarantee is not None:
            parts.append(str(self.guarantee))
        return f"{type(self).__name__}({', '.join(parts)})"

    def _repr_html_(self) -> str:
        displayed = self.domain.names[:20]
        tables = self.marginal_tables(Marginals(self.domain, [[name] for name in displayed]))
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{table.size:,}</td><td>{_bars(table)}</td></tr>"
            for name, table in zip(displayed, tables, strict=True)
        )
        more = f"<p>and {len(self.domain) - 20} more</p>" if len(self.domain) > 20 else ""
        head = "<tr><th>attribute</th><th>values</th><th>distribution</th></tr>"
        return f"{as_code(repr(self))}<table>{head}{rows}</table>{more}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tables": None}


def factors_of(distribution: SyntheticDistribution) -> list[Factor] | None:
    """The distribution as a product of blocks: positions of attributes, and shares of their cells; None of a
    mixture."""
    return distribution._parts[0].factors() if len(distribution._parts) == 1 else None


# --- data frames of all libraries

_MISSING = -1  # among the numbers of categories

_CATEGORIES: dict[str, Callable[[Any, NDArray[np.int64], list[str]], Any]] = {
    "pandas": lambda pandas, codes, labels: pandas.Categorical.from_codes(codes, labels),
    "polars": lambda polars, codes, labels: polars.Series(labels, dtype=polars.Enum(labels)).gather(
        polars.Series(codes).replace(_MISSING, None)
    ),
    "pyarrow": lambda pyarrow, codes, labels: pyarrow.DictionaryArray.from_arrays(
        pyarrow.array(codes.astype(np.int32), mask=codes == _MISSING), pyarrow.array(labels, pyarrow.string())
    ),
}
_WITH_MISSING: dict[str, Callable[[Any, list[Any], list[Any]], Any]] = {
    "pandas": lambda pandas, values, known: pandas.array(values, pandas.array(known).dtype),  # Int64 and its like
    "polars": lambda polars, values, known: polars.Series(values, dtype=polars.Series(known).dtype),
    "pyarrow": lambda pyarrow, values, known: pyarrow.array(values, pyarrow.array(known).type),
}
_FRAMES: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "pandas": lambda pandas, columns: pandas.DataFrame(columns, copy=True),
    "polars": lambda polars, columns: polars.DataFrame(columns),
    "pyarrow": lambda pyarrow, columns: pyarrow.table(columns),
}


def library_of(library: Any) -> Any:
    """The module of a library of data frames; ImportError where it is not installed."""
    one_of("library", library, LIBRARIES)
    try:
        return import_module(library)
    except ImportError:
        raise ImportError(
            f"to_frame needs {library}: pip install {library}; sample() gives arrays without it"
        ) from None


def frame_of_codes(
    library: Any, domain: Domain, codes: Mapping[int, NDArray[Any]], more: Mapping[str, Any], made: Any = None,
    decode: Callable[[int, NDArray[Any]], NDArray[Any]] | None = None,
) -> Any:  # fmt: skip
    """A data frame with a column for each attribute, by its position, and more columns.

    decode  what the codes of an attribute stand for, if not what the domain says
    """
    decode = decode or domain.decode_column
    made = library_of(library) if made is None else made
    columns: dict[str, Any] = {}
    for j, of in codes.items():
        name, labels = domain.names[j], domain.labels[j]
        if labels is None:
            columns[name] = of.astype(np.int64)
            continue
        known = [label for label in labels if label is not None]
        if all(isinstance(label, str) for label in known):
            places = np.cumsum([label is not None for label in labels]) - 1
            places[[label is None for label in labels]] = _MISSING
            columns[name] = _CATEGORIES[library](made, places[of], known)
            continue
        columns[name] = decode(j, of)
        if None in labels and {type(label) for label in known} in ({bool}, {int}, {float}):
            columns[name] = _WITH_MISSING[library](made, columns[name].tolist(), known)
    return _FRAMES[library](made, columns | dict(more))


def _common_type(types: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The type of an array of columns of all these types: of objects, where another one would change values."""
    if not all(each.kind in "biuf" for each in types):
        return np.dtype(object)
    common = np.result_type(*types)
    long = any(each.kind in "iu" and each.itemsize == 8 for each in types)
    return np.dtype(object) if common.kind == "f" and long else common


_SHADES = " ▁▂▃▄▅▆▇█"


def _bars(table: NDArray[np.float64]) -> str:
    """A row of bars; of many values neighbours are added up."""
    groups = np.array([group.sum() for group in np.array_split(table.reshape(-1), min(table.size, 40))])
    heights = np.ceil(groups / max(groups.max(), 1e-300) * 8).astype(int)
    return "".join(_SHADES[height] for height in heights)
