"""`pytest bench`: the folder is imported as `fastdp.bench` and under no other name, by pytest too."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parent / "bench"


class BenchModule(pytest.Module):
    def _getobj(self) -> Any:
        return import_module(f"fastdp.bench.{self.path.stem}")


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return pytest.Dir.from_parent(parent, path=path) if path == BENCH else None  # a Package would import `bench`


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return BenchModule.from_parent(parent, path=module_path) if module_path.parent == BENCH else None
