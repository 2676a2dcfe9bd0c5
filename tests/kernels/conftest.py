"""The small fastdp that tests of the cache drive from outside."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.forked import Parent
from tests.kernels.small_fastdp import FLAGS, House, environment


@pytest.fixture(scope="module")
def parent() -> Iterator[Parent]:
    parent = Parent(FLAGS, environment())
    yield parent
    parent.close()


@pytest.fixture
def house(tmp_path: Path, parent: Parent) -> House:
    return House(tmp_path, parent)
