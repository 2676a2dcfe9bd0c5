"""What the time left is estimated from: seconds of earlier runs, kept in the user's cache."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastdp.bench.harness import took
from fastdp.support.progress import weighed


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FASTDP_PEERS_DIR", str(tmp_path / "cache" / "peers"))
    return tmp_path / "cache"


def test_cases_weigh_what_they_took_before() -> None:
    assert took.expected(["a", "b"], quick=False) == [1.0, 1.0]
    took.remember({"a": 10.0, "b": 1.0, "c": 4.0}, quick=False)
    took.remember({"b": 2.0}, quick=False)
    took.remember({"a": 0.5}, quick=True)
    assert took.expected(["b", "a", "new"], quick=False) == [2.0, 10.0, 4.0]
    assert took.expected(["a", "new"], quick=True) == [0.5, 0.5]


def test_a_damaged_or_unwritable_file_is_no_error(cache: Path) -> None:
    took.remember({"a": 3.0}, quick=False)
    (file,) = cache.iterdir()
    for damage in ("", "[]", '{"full": 3}', '{"full": {"a": "x"}}'):
        file.write_text(damage)
        assert took.expected(["a"], quick=False) == [1.0]
    file.unlink()
    cache.rmdir()
    cache.write_text("a file, where a folder is needed")
    took.remember({"a": 3.0}, quick=False)
    assert took.expected(["a"], quick=False) == [1.0]


def test_the_bar_is_as_far_as_the_seconds_are() -> None:
    assert [weighed(done, 3, [1.0, 7.0, 2.0]) for done in range(4)] == [
        (0.0, 10.0),
        (1.0, 10.0),
        (8.0, 10.0),
        (10.0, 10.0),
    ]
    assert weighed(1, 3, ()) == (1, 3)
