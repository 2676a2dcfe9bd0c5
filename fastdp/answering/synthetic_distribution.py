"""The synthetic distribution: public weights over the cells of a domain, as something to ask, tabulate and sample.

It is made of what has been released, so everything here is post-processing: it costs no privacy and uses floats. It
never sees a record.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.guarantees import Accounted
from ..randomness.keys import Randomness, fresh_key
from ..records.domain import Domain, code_type, shown
from ..support.checks import integer, one_of
from ..support.threads import run_chunks
from .dense_weights import DenseWeights
from .factored_weights import FactoredWeights
from .marginal_transform import marginal_tables
from .memory import check_memory
from .queries.bound_query import BoundCells, BoundProduct, BoundQuery, as_row
from .queries.marginals import Marginals
from .queries.query import bind
from .workload import Workload

if TYPE_CHECKING:
    from ..privacy.guarantees import Guarantee

RECORDS = 1 << 14  # that one thread draws at a time: half a millisecond, and its words stay in L2
Library = Literal["pandas", "polars", "pyarrow"]
LIBRARIES = ("pandas", "polars", "pyarrow")
SEARCHED = 1 << 24  # cells of a block above which no alias table is made: it takes twice the memory of the weights

Factor = tuple[tuple[int, ...], NDArray[np.float64]]  # positions of attributes, and the distribution over their cells


@runtime_checkable
class HasProbabilities(Protocol):
    """Weights over all cells, such as DenseWeights."""

    @property
    def domain(self) -> Domain: ...
    def probabilities(self) -> NDArray[np.float64]: ...


@runtime_checkable
class HasFactors(Protocol):
    """Weights as a product of blocks, such as FactoredWeights."""

    @property
    def domain(self) -> Domain: ...
    def factors(self) -> Sequence[Factor]: ...


Weights = HasProbabilities | HasFactors


class SyntheticDistribution(Accounted):
    """A public distribution over the cells of a domain.

    weights    DenseWeights or FactoredWeights, or several of them for their mixture in equal parts (the average of
               iterates); or an array of weights of all cells, with the domain. They are copied: a distribution does not
               change
    guarantee  what the release that it comes from promises
    n          the public number of records, if there is one
    domain     the domain of the records
    blocks     the attributes that are independent of all others, block by block

    Examples
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
        weights: Weights | Sequence[Weights] | ArrayLike,
        domain: Domain | None = None,
        *,
        guarantee: Guarantee | None = None,
        n: int | None = None,
    ) -> None:
        several = list(weights) if isinstance(weights, list | tuple) and _all_weights(weights) else [weights]
        parts = [_Product(each, domain) for each in several]
        if any(part.domain != parts[0].domain for part in parts):
            raise ValueError("weights: must all be on the same domain")
        self.domain: Domain = parts[0].domain
        self.guarantee = guarantee
        self.n = None if n is None else integer("n", n, least=0)
        self._parts = parts if len(parts) == 1 or not all(part.is_dense for part in parts) else [_average(parts)]
        self._tables: _AliasTables | None = None

    @property
    def blocks(self) -> tuple[tuple[str, ...], ...]:
        """The attributes that are independent of all others, block by block; those of the first part of a mixture."""
        return tuple(tuple(self.domain.names[p] for p in positions) for positions in self._parts[0].blocks)

    # --- asking

    def answer(self, query: Any) -> float:
        """The query's value, in [0, 1]."""
        return self._evaluate(bind(query, self.domain))

    def answer_many(self, queries: Iterable[Any]) -> NDArray[np.float64]:
        """The values of many queries; of `marginals(domain, k)` all at once."""
        if isinstance(queries, Marginals):
            if queries.domain != self.domain:
                raise ValueError("queries: must be marginals of the domain of the distribution")
            return np.concatenate([table.reshape(-1) for table in self.marginal_tables(queries)])
        workload = Workload(list(queries), self.domain)
        if len(self._parts) == 1 and self._parts[0].is_dense and len(workload):
            (weights,) = self._parts[0].blocks.values()
            return np.clip(workload.evaluate(weights), 0.0, 1.0)
        return np.array([self._evaluate(workload.bound(i)) for i in range(len(workload))], np.float64)

    def marginal(self, names: Iterable[str]) -> NDArray[np.float64]:
        """The distribution of some attributes, as an array with an axis for each, in the order given."""
        positions = self.domain.positions(names)
        workload = Marginals(self.domain, [[self.domain.names[p] for p in positions]])
        table = self.marginal_tables(workload)[0]
        return np.ascontiguousarray(table.transpose([sorted(positions).index(p) for p in positions]))

    def marginal_tables(self, workload: Marginals) -> list[NDArray[np.float64]]:
        """The tables of a workload, each with its attributes in the order of the domain."""
        made = [part.tables(workload) for part in self._parts]
        return [np.asarray(sum(tables) / len(made)) for tables in zip(*made, strict=True)]

    def probabilities(self) -> NDArray[np.float64]:
        """The distribution over all cells, in C order; a ValueError if they are too many for the memory."""
        return np.asarray(sum(part.joint() for part in self._parts) / len(self._parts))

    def _evaluate(self, bound: BoundQuery) -> float:
        value = sum(part.evaluate(bound) for part in self._parts) / len(self._parts)
        return min(max(value, 0.0), 1.0)

    # --- sampling

    def sample(self, n: int, rng: Randomness | None = None, *, codes: bool = False) -> NDArray[Any]:
        """n independent records as the domain declares them, which is how everything here reads them: an array (n, d).

        Where an attribute has labels the records hold labels, elsewhere codes. The array is of numbers if all of them
        are (of the least unsigned type that holds them, if no attribute has labels), otherwise of objects.

        It lies in memory column by column. The same key gives the same records for any number of threads, and the
        records of a shorter sample are the first of a longer one.

        codes     True: codes for attributes with labels, too, which only a domain without labels would read back

        Cost      once 6 ns a cell; then 10 ns a record, and 40 where the cells exceed the cache. No more for labels
                  that are numbers; 10 ns for each other one. Blocks of more than 2^24 cells: a microsecond a record
        """
        n = integer("n", n, least=0)
        if self._tables is None:
            self._tables = _AliasTables(self.domain, self._parts)
        out = np.empty((len(self.domain), n), np.result_type(*map(code_type, self.domain.sizes)))
        self._tables.sample_into(fresh_key(rng), out)
        if codes or self.domain.labels.count(None) == len(self.domain):
            return out.T
        columns = [self.domain.decode_column(j, column) for j, column in enumerate(out)]
        records = np.empty(out.shape, _common_type([column.dtype for column in columns]))
        for j, column in enumerate(columns):
            records[j] = column
        return records.T

    def to_frame(self, n: int | None = None, rng: Randomness | None = None, *, library: Library = "pandas") -> Any:
        """A data frame of n sampled records; n is by default the public number.

        library   "pandas", "polars" or "pyarrow" (a Table). The same key gives the same records in all of them

        Labels that are strings become categories, in the order of the domain (an Enum in polars, a dictionary in
        Arrow); other labels keep their type, and codes are int64. Everything here reads it back.
        """
        one_of("library", library, LIBRARIES)
        try:
            made = import_module(library)
        except ImportError:
            raise ImportError(
                f"to_frame needs {library}: pip install {library}; sample() gives arrays without it"
            ) from None
        if n is None:
            if self.n is None:
                raise ValueError("n: must be given, as there is no public number of records")
            n = self.n
        columns: dict[str, Any] = {}
        for j, codes in enumerate(self.sample(n, rng, codes=True).T):
            name, labels = self.domain.names[j], self.domain.labels[j]
            if labels is None:
                columns[name] = codes.astype(np.int64)
            elif all(isinstance(label, str) for label in labels):
                columns[name] = _CATEGORIES[library](made, codes.astype(np.int64), list(labels))
            else:
                columns[name] = self.domain.decode_column(j, codes)
        return _FRAMES[library](made, columns)

    # --- showing and pickling

    def __repr__(self) -> str:
        said = [f"{len(self.domain)} attributes", f"{shown(self.domain.size)} cells"]
        if len(self._parts) > 1:
            said.append(f"{len(self._parts)} parts")
        if len(self.blocks) > 1:
            said.append(f"{len(self.blocks)} blocks")
        if self.n is not None:
            said.append(f"n={self.n:,}")
        if self.guarantee is not None:
            said.append(str(self.guarantee))
        return f"SyntheticDistribution({', '.join(said)})"

    def _repr_html_(self) -> str:
        shown = self.domain.names[:20]
        tables = self.marginal_tables(Marginals(self.domain, [[name] for name in shown]))
        rows = "".join(
            f"<tr><td>{html.escape(name)}</td><td>{table.size:,}</td><td>{_bars(table)}</td></tr>"
            for name, table in zip(shown, tables, strict=True)
        )
        more = f"<p>and {len(self.domain) - 20} more</p>" if len(self.domain) > 20 else ""
        head = "<tr><th>attribute</th><th>values</th><th>distribution</th></tr>"
        return f"<p><code>{html.escape(repr(self))}</code></p><table>{head}{rows}</table>{more}"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_tables": None}


# --- data frames of all libraries

_CATEGORIES: dict[str, Callable[[Any, NDArray[np.int64], list[str]], Any]] = {
    "pandas": lambda pandas, codes, labels: pandas.Categorical.from_codes(codes, labels),
    "polars": lambda polars, codes, labels: polars.Series(labels, dtype=polars.Enum(labels)).gather(codes),
    "pyarrow": lambda pyarrow, codes, labels: pyarrow.DictionaryArray.from_arrays(codes.astype(np.int32), labels),
}
_FRAMES: dict[str, Callable[[Any, dict[str, Any]], Any]] = {
    "pandas": lambda pandas, columns: pandas.DataFrame(columns, copy=True),
    "polars": lambda polars, columns: polars.DataFrame(columns),
    "pyarrow": lambda pyarrow, columns: pyarrow.table(columns),
}


# --- one part of a mixture: a product of dense blocks


class _Product:
    """A product of blocks; a dense distribution has one."""

    def __init__(self, weights: Any, domain: Domain | None) -> None:
        made: dict[tuple[int, ...], DenseWeights]
        if isinstance(weights, FactoredWeights):
            self.domain, made = weights.domain, weights.copy().parts()  # in the same memory, until they change
        elif isinstance(weights, HasFactors):
            self.domain = on = weights.domain
            made = {
                positions: DenseWeights(on.project([on.names[p] for p in positions]), x=np.array(shares, np.float64))
                for positions, shares in weights.factors()
            }
        else:
            if isinstance(weights, DenseWeights):
                block = weights.own().view()
            elif isinstance(weights, HasProbabilities):
                block = DenseWeights(weights.domain, x=np.array(weights.probabilities(), np.float64))
            elif domain is None:
                raise ValueError("domain: must be given with an array of weights")
            else:
                block = DenseWeights(domain, x=_distribution(weights, domain))
            self.domain, made = block.domain, {tuple(range(len(block.domain))): block}
        if domain is not None and domain != self.domain:
            raise ValueError("domain: must be that of the weights")
        self.blocks = made  # never updated
        self.of = {p: positions for positions in made for p in positions}

    @property
    def is_dense(self) -> bool:
        return len(self.blocks) == 1

    def evaluate(self, bound: BoundQuery) -> float:
        if self.is_dense:
            (block,) = self.blocks.values()
            return block.evaluate(bound)  # the plan of the query is kept with it
        if isinstance(bound, BoundCells):
            return float(self.joint() @ bound.values)
        assert isinstance(bound, BoundProduct)
        value = 1.0
        for positions in dict.fromkeys(self.of[p] for p in bound.attributes):
            block = self.blocks[positions]
            value *= block.evaluate(bound.within(positions, block.domain))
        return value

    def tables(self, workload: Marginals) -> list[NDArray[np.float64]]:
        """The tables of a workload: of one block at once, of several as products."""
        if self.is_dense:
            (block,) = self.blocks.values()
            # sums of floats through parities may end just below 0
            tables = marginal_tables(block.weights, self.domain, workload)
            return [np.maximum(table, 0.0) / block.total for table in tables]
        made: dict[tuple[int, ...], NDArray[np.float64]] = {}
        return [self._table(positions, made) for positions in workload.positions]

    def _table(self, positions: tuple[int, ...], made: dict[Any, Any]) -> NDArray[np.float64]:
        table = np.ones((1,) * len(positions))
        for at in dict.fromkeys(self.of[p] for p in positions):
            wanted = tuple(p for p in at if p in positions)
            if wanted not in made:
                block = self.blocks[at]
                outside = tuple(i for i, p in enumerate(at) if p not in positions)
                made[wanted] = block.weights.reshape(block.domain.sizes).sum(axis=outside) / block.total
            table = table * made[wanted].reshape([self.domain.sizes[p] if p in wanted else 1 for p in positions])
        return table

    def joint(self) -> NDArray[np.float64]:
        """The probability of every cell."""
        if not self.is_dense:
            check_memory(self.domain, range(len(self.domain)), "float64", "listing all cells would merge")
        everything = tuple(range(len(self.domain)))
        if self.is_dense:
            return self.blocks[everything].probabilities()
        joint: NDArray[np.float64] = self._table(everything, {}).reshape(-1)
        return joint


def _common_type(types: Sequence[np.dtype[Any]]) -> np.dtype[Any]:
    """The type of an array of columns of all these types: of objects, where another one would change values."""
    if not all(each.kind in "biuf" for each in types):
        return np.dtype(object)
    common = np.result_type(*types)
    long = any(each.kind in "iu" and each.itemsize == 8 for each in types)
    return np.dtype(object) if common.kind == "f" and long else common


def _all_weights(values: Sequence[Any]) -> bool:
    return bool(values) and all(isinstance(value, HasProbabilities | HasFactors) for value in values)


def _average(parts: Sequence[_Product]) -> _Product:
    total = np.zeros(parts[0].domain.size)
    for part in parts:
        (block,) = part.blocks.values()
        block.add_into(total, 1.0)
    return _Product(total, parts[0].domain)


def _distribution(weights: Any, domain: Domain) -> NDArray[np.float64]:
    array = np.asarray(weights, np.float64)
    flat = as_row("weights", array, domain)
    total = flat.sum()
    if not (flat >= 0).all() or not 0 < total < np.inf:
        raise ValueError("weights: must be >= 0 and finite, not all 0")
    return np.asarray(flat / float(total))


# --- alias tables of all blocks, as kernels/sampling.py takes them


class _Searched(NamedTuple):
    """A block that is too large for an alias table."""

    part: int
    stream: int
    x: NDArray[Any]
    ends: NDArray[np.float64]
    attributes: NDArray[np.int64]  # the last first
    sizes: NDArray[np.int64]


class _AliasTables:
    """Alias tables of all blocks but those of more than 2^24 cells, which are searched.

    Which way is taken depends on the size of the block alone, so a shorter sample is the beginning of a longer one.
    """

    def __init__(self, domain: Domain, parts: Sequence[_Product]) -> None:
        from ..kernels.sampling import GROUP, build_aliases_into, sum_groups_into

        every = [block.domain.size for part in parts for block in part.blocks.values()]
        self.table = np.empty((sum(size if size <= SEARCHED else 1 for size in every), 2), np.uint64)
        self.searched: list[_Searched] = []
        starts: list[int] = [0]
        blocks: list[tuple[int, int, int, int]] = []
        attributes: list[int] = []
        at = 0
        for i, part in enumerate(parts):
            for stream, (positions, block) in enumerate(part.blocks.items(), 1):
                size, backward = block.domain.size, positions[::-1]
                if size <= SEARCHED:
                    scaled = block.probabilities()
                    scaled *= size / scaled.sum()
                else:
                    ends = np.empty(-(-size // GROUP))
                    sum_groups_into(block.x, ends)
                    steps = np.array(backward, np.int64), np.array([domain.sizes[p] for p in backward], np.int64)
                    self.searched.append(_Searched(i, stream, block.x, ends, *steps))
                    size, backward, scaled = 1, (), np.ones(1)  # in the loop over all blocks it says nothing
                build_aliases_into(scaled, self.table[at : at + size])
                blocks.append((at, size, len(attributes), len(attributes) + len(backward)))
                attributes += backward
                at += size
            starts.append(len(blocks))
        self.parts = np.array(starts, np.int64)
        self.blocks = np.array(blocks, np.int64)
        self.attributes = np.array(attributes, np.int64)
        self.sizes = np.array([domain.sizes[p] for p in attributes], np.int64)
        self.streams = 1 + int(np.diff(self.parts).max())

    def sample_into(self, key: NDArray[np.uint32], out: NDArray[Any]) -> None:
        from ..kernels.sampling import sample_records_into, search_records_into

        count = self.parts.size - 1

        def run(first: int, stop: int) -> None:
            n = stop - first
            words, cells = np.empty((self.streams + 1, n), np.uint64), np.empty(n, np.int32)
            law = (self.table, self.parts, self.blocks, self.attributes, self.sizes)
            sample_records_into(key, first, *law, words, cells, out[:, first:stop])
            for each in self.searched:
                mine = np.arange(n) if count == 1 else np.flatnonzero((words[0] >> 32) * count >> 32 == each.part)
                block = words[each.stream], mine, each.x, each.ends, each.attributes, each.sizes
                search_records_into(*block, out[:, first:stop])

        run_chunks(run, out.shape[1], max(1 << 10, RECORDS // self.streams))


_SHADES = " ▁▂▃▄▅▆▇█"


def _bars(table: NDArray[np.float64]) -> str:
    """A row of bars; of many values neighbours are added up."""
    groups = np.array([group.sum() for group in np.array_split(table.reshape(-1), min(table.size, 40))])
    heights = np.ceil(groups / max(groups.max(), 1e-300) * 8).astype(int)
    return "".join(_SHADES[height] for height in heights)
