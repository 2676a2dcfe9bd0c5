"""Engines (fastdp/records/engines.py): a library's collections are read by the module registered for its package."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp.records.engines import engine_of, is_collection
from fastdp.records.rows import Rows
from fastdp.records.sources import column_rows, rows_of
from fastdp.support import extensions
from tests.conftest import run_python


class Frame:
    """A collection of a library that is called toylib."""

    __module__ = "toylib.frames"

    def __init__(self, array: np.ndarray) -> None:
        self.array = array


class Derived(Frame):
    __module__ = "users_own"


@pytest.fixture
def toylib(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that gathers what it opens; its module is found by its name alone."""

    def open_rows(data: Frame, name: str = "") -> Rows:
        return column_rows(name, data.array) if name else rows_of(data.array)

    module: Any = ModuleType("engine_of_toylib")
    module.open_rows = open_rows
    monkeypatch.setitem(sys.modules, "engine_of_toylib", module)
    monkeypatch.setattr(extensions, "_registered", {**extensions._registered})
    extensions._registered["engine"] = dict(extensions._registered["engine"])
    extensions.register("engine", "toylib", "engine_of_toylib")


@pytest.mark.usefixtures("toylib")
@pytest.mark.parametrize("kind", [Frame, Derived])
def test_a_registered_engine_opens_its_collections(kind: type[Frame]) -> None:
    bits = np.random.default_rng(0).random((500, 4)) < 0.5
    far = kind(bits)
    assert engine_of(far) == "toylib"
    assert rows_of(far).n == 500
    assert column_rows("y", kind(bits[:, 0])).width == 1
    ours = fastdp.vector_sum(kind(bits * 1.0), clip=2.0, epsilon=1.0, delta=1e-6, rng=fastdp.Randomness(seed=1))
    here = fastdp.vector_sum(bits * 1.0, clip=2.0, epsilon=1.0, delta=1e-6, rng=fastdp.Randomness(seed=1))
    assert np.array_equal(ours.value, here.value)


def test_other_data_belong_to_no_engine() -> None:
    assert not any(map(is_collection, (np.zeros(3), [1, 2], {"a": [1]}, "records.parquet", None, Frame(np.zeros(3)))))
    with pytest.raises(ValueError, match="data: type Frame: must be a 2-D numpy array"):
        rows_of(Frame(np.zeros((3, 2))))


def test_engines_are_imported_when_a_collection_arrives() -> None:
    run_python(
        """
import sys
import numpy as np
import fastdp
from fastdp.records.sources import rows_of

assert rows_of(np.zeros((3, 2))).n == 3
assert not {"dask", "fastdp.connect.dask"} & set(sys.modules)
import dask.array as da
assert rows_of(da.zeros((3, 2))).n == 3
assert "fastdp.connect.dask" in sys.modules
"""
    )
