"""Records with other codes: the codes of a domain, each replaced by what a table has for it, block by block.

Several values of an attribute may get one code. Nothing is held of the records, wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

from ..support.columns import Array, Entries, column_of
from ..support.parameters import Outside
from .domain import Codes, Domain
from .encoding import codes_of, of_domain
from .rows import Block, PerRecord, RowsThrough


class RecodedRows(RowsThrough):
    """Records of a domain, as the codes that tables give for its codes; all of its columns, which have no names.

    tables  of each attribute the new code of every old one
    """

    names = None

    def __init__(self, data: Any, domain: Domain, tables: Sequence[Codes], outside: Outside) -> None:
        self._read = of_domain(data, domain, outside)
        self._recode = Recoding(domain, tables, outside)
        self.n, self.width, self.gathers, self._which = self._read.n, len(domain), self._read.gathers, self._read.which
        self._columns = tuple(range(self.width))

    def select(self, columns: Sequence[str | int]) -> RecodedRows:
        twin = object.__new__(RecodedRows)
        twin.__dict__.update(self.__dict__)
        twin._columns = tuple(self._columns[int(j)] for j in columns)
        twin.width = len(twin._columns)
        return twin

    def _making(self) -> Callable[[Block], Block]:
        return partial(self._recode, columns=self._columns)

    def keep(self, function: PerRecord, dtype: Any) -> PerRecord:
        return function

    def attach_labels(self, labels: Any) -> NoReturn:
        raise ValueError("y: records with other codes have no labels")

    def label_reader(self, given: Any, read: Callable[[Entries], Array], dtype: Any) -> NoReturn:
        raise ValueError("y: records with other codes have no labels")

    def dtypes(self) -> tuple[np.dtype[Any], ...]:
        return tuple(self._recode.tables[j].dtype for j in self._columns)


class Recoding:
    """A block with other codes: what may be sent to another process."""

    def __init__(self, domain: Domain, tables: Sequence[Codes], outside: Outside) -> None:
        self._domain, self.tables, self._outside = domain, tuple(tables), outside

    def __call__(self, block: Block, columns: Sequence[int]) -> Block:
        made = [
            column_of(f"column {j}", self.tables[j][codes_of(self._domain, j, block, self._outside)]) for j in columns
        ]
        return Block(block.first, block.n, made, None, 0)
