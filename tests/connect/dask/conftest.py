"""Records and what comes of them on one machine, made once for all tests of Dask."""

from __future__ import annotations

from typing import Any

import pytest

from tests.connect.dask.cases import (
    CASES,
    Data,
    same,
)


@pytest.fixture(scope="session")
def data() -> Data:
    return Data()


@pytest.fixture(scope="session")
def here(data: Data) -> dict[str, Any]:
    """What comes out on one machine."""
    return {name: case(same, data) for name, case in CASES.items()}
