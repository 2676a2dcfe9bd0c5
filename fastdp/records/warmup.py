"""What `fastdp.warmup` calls of this room: counting, packing, positions of numbers on their line."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..kernels import literals
from ..kernels.persons import place_keys_into
from ..support.warmup import Steps
from .bins import Bins
from .domain import Domain
from .encoding import histogram
from .number_line import NumberLine
from .persons import limit_rows


def steps() -> Steps:
    """One step for each width of codes, one for each kind of number."""
    made: Steps = []
    for sizes in ((2, 2), (300,), (70_000,)):
        made.append((f"counting records of {sizes} values", partial(_count, sizes)))
    made.append(("packed records", _pack_codes))
    made.append(("rows of persons", _limit_rows))
    for dtype in (np.int64, np.uint64, np.float64):
        made.append((f"positions of {np.dtype(dtype)}", partial(_find_positions, np.dtype(dtype))))
    for dtype in (np.int64, np.float64):
        made.append((f"bins of {np.dtype(dtype)}", partial(_find_bins, np.dtype(dtype))))
    return made


def _count(sizes: tuple[int, ...]) -> None:
    domain = Domain({f"a{i}": size for i, size in enumerate(sizes)})
    histogram(np.zeros((3, len(sizes)), np.int64), domain)


def _pack_codes() -> None:
    for dtype in (np.uint8, np.uint16, np.uint32):
        out = np.zeros((4, 1), np.uint64)
        literals.pack_allowed_into(np.zeros(3, dtype), np.ones(1, np.uint8), out[0])
        literals.count_all(out, np.zeros(1, np.int64))


def _limit_rows() -> None:
    limit_rows({"warmup": np.array([-(2**60), 2**60])}, "warmup", at_most=1)
    table = np.full(2, -1, np.int32)
    place_keys_into(np.zeros(1, np.uint64), 1, np.uint64(0), table)


def _find_bins(dtype: np.dtype[np.generic]) -> None:
    domain = Domain(warmup=Bins([0, 1, 2, 3]))
    domain.encode_column(0, np.zeros(3, dtype))
    histogram(np.zeros((3, 1), dtype), domain)


def _find_positions(dtype: np.dtype[np.generic]) -> None:
    line = NumberLine.of(dtype, 64, None, "warmup")
    line.positions(np.zeros(3, dtype), "raise", "warmup")
