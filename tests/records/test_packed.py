"""Packed records (fastdp/records/packed.py, bit_words.py)."""

from __future__ import annotations

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastdp import Domain, DomainError, set_num_threads
from fastdp.records.encoding import encode, histogram
from fastdp.records.packed import PackedRows, pack
from fastdp.records.rows import Block
from fastdp.records.sources import rows_of
from tests.records.samples import N, counts, variants


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 1000, N])
def test_packed(n: int) -> None:
    array = np.random.default_rng(n).integers(0, 2, (n, 5)).astype(bool)
    packed = pack(array)
    assert (packed.n, packed.d, packed.names) == (n, 5, None)
    assert packed.words.shape == (5, -(-n // 64))
    assert packed.words.dtype == np.uint64
    padded = np.zeros((packed.words.shape[1] * 64, 5), np.uint64)
    padded[:n] = array
    want = (padded.reshape(-1, 64, 5) << np.arange(64, dtype=np.uint64)[:, None]).sum(1, dtype=np.uint64)
    assert np.array_equal(packed.words, want.T)
    assert np.array_equal([packed.column(j) for j in range(5)], array.T)
    assert rows_of(packed) is pack(packed) is packed
    domain = Domain.binary(5)
    assert np.array_equal(encode(packed, domain), array.T)
    assert np.array_equal(histogram(packed, domain), counts(list(array.T), domain))
    assert packed.select([0, 1, 2, 3, 4]) is packed
    assert np.array_equal(packed.select([4, 2]).words, packed.words[[4, 2]])
    assert np.array_equal(pickle.loads(pickle.dumps(packed)).words, packed.words)


def test_packed_rows_of_files_whose_blocks_start_anywhere(tmp_path: Path) -> None:
    names = ["v1", "v2", "v3"]
    array = np.random.default_rng(0).integers(0, 2, (200_000, 3))
    table = pa.table(dict(zip(names, array.T, strict=True)))
    paths = []
    for i, (start, stop) in enumerate(itertools.pairwise([0, 5, 70_001, 70_063, 200_000])):
        paths.append(tmp_path / f"{i}")
        pq.write_table(table.slice(start, stop - start), paths[-1], row_group_size=999)
    packed = pack(paths)
    assert packed.names == ("v1", "v2", "v3")
    assert np.array_equal(packed.words, pack(array).words)
    assert histogram(packed, Domain.binary(3)).sum() == 200_000


def bit_words(array: np.ndarray) -> np.ndarray:
    """Bit i % 64 of word i // 64 of row j is record i's entry in column j."""
    words = [[0] * -(-len(array) // 64) for _ in range(array.shape[1])]
    for i, j in zip(*np.nonzero(array), strict=True):
        words[j][i // 64] |= 1 << int(i) % 64
    return np.array(words, np.uint64).reshape(array.shape[1], -(-len(array) // 64))


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8, np.int64, np.float32])
def test_bits_of_a_block(n: int, dtype: Any) -> None:
    """Of arrays in any memory, and of the middle of one; spare bits are 0."""
    array = np.random.default_rng(n).integers(0, 2, (n, 67)).astype(dtype)
    want = bit_words(array)
    for each in variants(array):
        block = rows_of(each).one_block()
        assert block is not None
        bits = block.bits()
        assert bits.dtype == np.uint64
        assert np.array_equal(bits, want)
        assert np.array_equal(pack(each).words, want)
    long = np.concatenate((np.ones((70, 67), dtype), array, np.ones((9, 67), dtype)))
    for each in (long, np.asfortranarray(long)):
        some = Block(70, n, rows_of(each)._columns, None, 70, each)  # type: ignore[attr-defined]
        assert np.array_equal(some.bits(), want)


@pytest.mark.parametrize("n", [1, 64, 1000, N])
def test_bits_are_the_same_wherever_records_live(n: int, tmp_path: Path) -> None:
    """Blocks of arrays, data frames and files start anywhere; put together they are the same words."""
    array = np.random.default_rng(n).integers(0, 2, (n, 3))
    names = ["v1", "v2", "v3"]
    table = pa.table(dict(zip(names, array.T, strict=True)))
    for i, size in enumerate((77, 10**6)):
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=size)
    want = pack(array).words
    sources = [
        array, array.astype(bool), pd.DataFrame(array, columns=names), pd.DataFrame(array.astype(bool)),
        pl.DataFrame(array, schema=names), pl.DataFrame(array.astype(bool), schema=names), table, pack(array),
        dict(zip(names, array.T.tolist(), strict=True)), tmp_path / "0.parquet", tmp_path / "1.parquet",
    ]  # fmt: skip
    for source in sources:
        for count in (1, 3):
            set_num_threads(count)
            assert np.array_equal(pack(source).words, want)
            parts = rows_of(source).merge(lambda block: [(block.first, block.n, block.bits())], lambda x, y: x + y)
            for first, m, bits in parts:
                assert np.array_equal(bits, pack(array[first : first + m]).words)


def test_bits_of_packed_records_are_views() -> None:
    packed = pack(np.ones((2**18 + 70, 2), bool))
    parts = packed.merge(lambda block: [(block.first, block.n, block.bits())], lambda x, y: x + y)
    assert [(first, n) for first, n, _ in parts] == [(0, 2**18), (2**18, 70)]
    for first, n, bits in parts:
        assert bits.shape == (2, -(-n // 64))
        assert np.shares_memory(bits, packed.words)
        assert np.array_equal(bits, packed.words[:, first // 64 : first // 64 + bits.shape[1]])


def test_packed_rows_may_be_made_of_words_in_any_memory() -> None:
    """Kernels read a row of words as one piece."""
    array = np.random.default_rng(0).random((300, 4)) < 0.5
    for words in variants(pack(array).words):
        if words.dtype == np.uint64:
            packed = PackedRows(words, 300)
            assert packed.words.flags.c_contiguous
            assert np.array_equal([packed.column(j) for j in range(4)], array.T)


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int8])
def test_bytes_that_are_neither_0_nor_1_are_refused(dtype: Any) -> None:
    """Also of bools, whose bytes may be anything; column by column numpy takes those for a 1."""
    array = np.zeros((200, 70), np.uint8)
    array[133, 66] = 255
    columns = np.asfortranarray(array)
    if dtype is bool:
        assert np.array_equal(pack(columns.view(bool)).words, bit_words(array))
    for each in (array,) if dtype is bool else (array, columns):
        with pytest.raises(DomainError, match=r"^column 66: must hold 0 and 1 only; there are others$"):
            pack(each.view(dtype))


@pytest.mark.parametrize("bad", [2, -1, 0.5, np.nan, np.inf, "1"])
def test_what_is_not_a_bit_is_refused(bad: Any) -> None:
    column = np.array([0, 1, bad])
    with pytest.raises(ValueError, match=r"^column 'b': (must hold 0 and 1 only; there are others|dtype .*: must be)"):
        pack({"a": [0, 1, 1], "b": column})
    with pytest.raises(ValueError, match=r"^column 1: must hold 0 and 1 only; there are others$"):
        pack(np.array([[0, bad], [1, 1]], object))


@pytest.mark.parametrize(
    ("words", "n", "message"),
    [
        (np.zeros((2, 1), np.int64), 3, "words: dtype int64: must be uint64"),
        (np.zeros(2, np.uint64), 3, r"words: shape \(2,\): must be \(d, 1\), for n=3"),
        (np.zeros((2, 2), np.uint64), 3, r"words: shape \(2, 2\): must be \(d, 1\), for n=3"),
        (np.full((2, 1), 8, np.uint64), 3, "words: must have 0 in the bits from n=3 on"),
        (np.zeros((2, 1), np.uint64), -1, "n=-1: must be an integer >= 0"),
    ],
)
def test_packed_rows_made_by_hand_are_checked(words: np.ndarray, n: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        PackedRows(words, n)
    if n == 3:
        with pytest.raises(ValueError, match=r"^names: 1: must be 2, as there are columns$"):
            PackedRows(np.zeros((2, 1), np.uint64), 3, ("a",))
