"""Packed records of 0 and 1: one bit a value, column by column; `fastdp.pack` makes them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import integer
from ..support.columns import BitColumn, Column
from ..support.frozen import Frozen
from ..support.parameters import Outside
from ..support.public_paths import public_as
from .arrays import MemoryRows
from .column_names import Names, at_least_one, label_of, names_at, position_of, positions_of
from .rows import Block, LocalRows, Rows
from .sources import rows_of

_BLOCK_BITS = 2**18  # packed records of a block: 20 us a column


class _PackedBlock(Block):
    """Some consecutive packed records, from a multiple of 64 on, up to another one or to the last record."""

    _words: NDArray[np.uint64]

    def bits(self, outside: Outside = "raise") -> NDArray[np.uint64]:
        return self._words


class _BitColumns(Sequence[Column]):
    """The columns of packed records, each made when it is read: kernels read the words."""

    def __init__(self, words: NDArray[np.uint64], n: int, names: Names) -> None:
        self._words, self._n, self._names = words, n, names

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, j: Any) -> Any:
        return BitColumn(label_of(j, self._names), self._words[j], self._n)


@public_as("fastdp.records")
class PackedRows(Frozen, MemoryRows):
    """Records of 0 and 1, packed by columns; `pack` makes them.

    Parameters
    ----------
    words : numpy.ndarray of uint64, shape (d, ceil(n / 64))
        The columns: bit i % 64 of word i // 64 is record i; spare bits are 0.
    n : int >= 0
        How many records there are.
    names : tuple of str, optional
        The names of the columns.
    """

    words: NDArray[np.uint64]

    def __init__(self, words: NDArray[np.uint64], n: int, names: Names = None) -> None:
        n = integer("n", n, least=0)
        if words.dtype != np.uint64:
            raise ValueError(f"words: dtype {words.dtype}: must be uint64")
        if words.ndim != 2 or words.shape[1] != -(-n // 64):
            raise ValueError(f"words: shape {words.shape}: must be (d, {-(-n // 64)}), for n={n}")
        if n % 64 and (words[:, -1] >> np.uint64(n % 64)).any():
            raise ValueError(f"words: must have 0 in the bits from n={n} on")
        if names is not None and len(names) != len(words):
            raise ValueError(f"names: {len(names)}: must be {len(words)}, as there are columns")
        self._hold(np.ascontiguousarray(words), n, names)

    @classmethod
    def made(cls, words: NDArray[np.uint64], n: int, names: Names) -> PackedRows:
        """Of words that have been packed here."""
        rows = object.__new__(cls)
        rows._hold(words, n, names)
        return rows

    def _hold(self, words: NDArray[np.uint64], n: int, names: Names) -> None:
        columns = _BitColumns(words, n, names)
        self.__dict__.update(  # at once: one by one they take 2 us
            words=words, n=n, width=at_least_one(columns), names=names, _columns=columns, _matrix=None,
            _step=_BLOCK_BITS, _tasks=-(-n // _BLOCK_BITS),
        )  # fmt: skip

    @property
    def d(self) -> int:
        """How many columns there are."""
        return self.width

    @boundary
    def column(self, which: str | int) -> NDArray[np.bool_]:
        """A column, unpacked."""
        return self._columns[position_of(which, self.names, self.width)].values(0, self.n)

    def _block(self, first: int, n: int) -> Block:
        block = _PackedBlock(first, n, self._columns, self.names, first)
        block._words = self.words[:, first // 64 : -(-(first + n) // 64)]
        return block

    def select(self, columns: Sequence[str | int]) -> PackedRows:
        at = positions_of(columns, self.names, self.width)
        return (
            self
            if at == tuple(range(self.width))
            else PackedRows(self.words[list(at)], self.n, names_at(at, self.names))
        )


@boundary
def pack(data: Any, *, outside: Outside = "raise") -> PackedRows:
    """Pack records of 0 and 1 into bits, column by column.

    Packed records take an eighth of the memory of bools and can be given to several learners, none of which then packs
    them again.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files or mapping
        Records whose columns hold 0 and 1 only.
    outside : {"raise", "clip"}
        What becomes of other values: a DomainError, or the nearest of the two, and 0 for what is missing or no number.

    Returns
    -------
    PackedRows
        The records, with the words as `words`, uint64[d, ceil(n / 64)]: bit i % 64 of word i // 64 is record i.

    Raises
    ------
    ValueError
        "data: a Dask collection is not packed into this process: learners pack it where it is".
    DomainError
        A column holds other values than 0 and 1, which are not to be clipped.

    Examples
    --------
    >>> import fastdp
    >>> import numpy as np
    >>> packed = fastdp.pack(np.array([[True, False], [True, True], [False, True]]))
    >>> packed
    <PackedRows: 3 records, 2 columns>
    >>> packed.words
    array([[3],
           [6]], dtype=uint64)
    """
    parameters.outside(outside)
    rows = rows_of(data)
    if not isinstance(rows, LocalRows):
        raise ValueError("data: a Dask collection is not packed into this process: learners pack it where it is")
    return _packed(rows, outside)


def _packed(rows: LocalRows, outside: Outside) -> PackedRows:
    if isinstance(rows, PackedRows):
        return rows
    block = rows.one_block()
    if block is not None and not block.by_records:  # column by column: blocks would be short pieces of each
        return PackedRows.made(block.bits(outside), rows.n, rows.names)
    words = joined_words(rows, rows.width, lambda block: block.bits(outside))
    return PackedRows.made(words, rows.n, rows.names)


def joined_words(rows: Rows, columns: int, bits_of: Callable[[Block], NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Bits of all blocks, a row for each column, where each has its own from bit 0 of a word on."""
    words = np.zeros((columns, -(-rows.n // 64)), np.uint64)
    lock = threading.Lock()

    def write(block: Block) -> None:
        bits = bits_of(block)
        word, skip = divmod(block.first, 64)
        after = -(-(block.first + block.n) // 64) - word
        with lock:  # blocks of files, and of parts of them, may share a word
            if not skip:
                words[:, word : word + after] |= bits
                return
            words[:, word : word + bits.shape[1]] |= bits << np.uint64(skip)
            words[:, word + 1 : word + after] |= bits[:, : after - 1] >> np.uint64(64 - skip)

    rows.merge(write, lambda before, after: None)
    return words


def pack_if_local(rows: Rows, outside: Outside) -> Rows:
    """The records packed, where this process reads them; an engine's as they are, whose workers pack each block."""
    return _packed(rows, outside) if isinstance(rows, LocalRows) else rows
