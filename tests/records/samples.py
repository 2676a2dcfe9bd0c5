"""Records of one domain, as every library holds them, for the tests of this room."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from fastdp import Domain
from fastdp.records.rows import Block

N = 2 * 2**16 + 1001  # three blocks

DOMAIN = Domain(a=5, b=2, c=300, d=["x", "y", "z"])

LABELS = np.array(["x", "y", "z"], object)


def codes(n: int = N, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, n).astype(np.uint16 if size > 256 else np.uint8) for size in DOMAIN.sizes]


def columns(n: int = N, seed: int = 0) -> dict[str, np.ndarray]:
    a, b, c, d = codes(n, seed)
    return {"a": a, "b": b.astype(bool), "other": np.linspace(0, 1, n), "c": c.astype(np.int64), "d": LABELS[d]}


def counts(some: list[np.ndarray], domain: Domain = DOMAIN) -> np.ndarray:
    cells = np.ravel_multi_index([each.astype(np.int64) for each in some], domain.sizes)
    return np.bincount(cells, minlength=domain.size)


def frame(data: dict[str, Any], tmp_path: Path, kind: str) -> Any:
    """The same records as each library holds them."""
    table = pa.table(data)
    if kind == "mapping":
        return data
    if kind == "pandas":
        return pd.DataFrame(data)
    if kind == "pandas object":
        return pd.DataFrame(data).astype({"d": object})
    if kind == "pandas categories":
        return pd.DataFrame(data).astype({"d": pd.CategoricalDtype(["unused", "z", "y", "x"])})
    if kind == "pandas nullable":
        return pd.DataFrame(data).convert_dtypes()
    if kind == "pandas arrow":
        return table.to_pandas(types_mapper=pd.ArrowDtype)
    if kind == "polars":
        return pl.DataFrame(data)
    if kind == "polars categories":
        return pl.DataFrame(data).with_columns(pl.col("d").cast(pl.Categorical))
    if kind == "polars enum":
        return pl.DataFrame(data).with_columns(pl.col("d").cast(pl.Enum(["z", "unused", "x", "y"])))
    if kind == "polars chunks":
        whole = pl.DataFrame(data)
        return pl.concat([whole[:70_000], whole[70_000:]], rechunk=False)
    if kind == "arrow":
        return table
    if kind == "arrow chunks":
        return pa.concat_tables([table.slice(0, 70_000), table.slice(70_000)])
    if kind == "arrow dictionaries":
        at = table.column_names.index("d")
        return pa.concat_tables(
            part.set_column(at, "d", part.column("d").dictionary_encode())
            for part in (table.slice(0, 3), table.slice(3, 70_000), table.slice(70_003))
        )
    if kind == "arrow batch":
        return table.combine_chunks().to_batches()[0]
    path = tmp_path / "rows.parquet"
    if kind == "parquet":
        pq.write_table(table, path)
        return path
    if kind == "parquet groups":
        pq.write_table(table, path, row_group_size=777)
        return str(path)
    if kind == "parquet files":
        bounds = [0, 0, min(1, len(table)), min(60_000, len(table)), min(60_063, len(table)), len(table)]
        paths = []
        for i, (start, stop) in enumerate(itertools.pairwise(bounds)):
            paths.append(tmp_path / f"{i}.parquet")
            pq.write_table(table.slice(start, stop - start), paths[-1], row_group_size=[5, 1, 10**6, 7, 9999][i])
        return paths
    raise AssertionError(kind)


FRAMES = [
    *("mapping", "pandas", "pandas object", "pandas categories", "pandas nullable", "pandas arrow"),
    *("polars", "polars categories", "polars enum", "polars chunks"),
    *("arrow", "arrow chunks", "arrow dictionaries", "arrow batch", "parquet", "parquet groups", "parquet files"),
]


def records(block: Block) -> np.ndarray:
    return np.array([block.n, block.column(0).sum(dtype=np.int64), block.first * block.n])


def variants(array: np.ndarray) -> Iterator[np.ndarray]:
    """The same entries in other memory."""
    yield array
    yield np.asfortranarray(array)
    yield np.repeat(array, 2, axis=1)[:, ::2]
    yield np.concatenate([array, array])[::-1][len(array) :][::-1]
    read_only = array.copy()
    read_only.flags.writeable = False
    yield read_only
    yield array.astype(array.dtype.newbyteorder(">"))
    yield array.astype(object)
