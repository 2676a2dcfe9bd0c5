"""The number of threads is put back after each test of this room."""

from __future__ import annotations

import pytest

from fastdp.support import threads


@pytest.fixture(autouse=True)
def _restore_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_count", threads._count)
