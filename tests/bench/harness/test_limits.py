"""What the machine could do at most."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count

import pytest

from fastdp.bench.harness import limits
from fastdp.bench.harness.limits import Limits, Traffic

KNOWN = Limits(
    read=((1_000, 8e9), (1_000_000, 2e9)), copy=((1_000, 4e9), (1_000_000, 1e9)), change=((1_000, 4e9),), words=1e9
)


def test_limits_are_what_was_done_by_the_time_that_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock of the test's own: every try takes 10 ms."""
    ticks = count()
    monkeypatch.setattr(limits, "perf_counter", lambda: next(ticks) / 100)
    found = limits.measure(quick=True)
    for speeds in (found.read, found.copy, found.change):
        sizes, rates = zip(*speeds, strict=True)
        assert list(sizes) == sorted(sizes)
        assert rates == pytest.approx([limits.TRY_BYTES * 100 * (2 if speeds is found.change else 1)] * len(rates))
    assert found.words == pytest.approx(limits.TRY_BYTES * 100 / 8)
    assert Limits.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_the_loops_do_their_work() -> None:
    """Faster than any machine would be loops that the compiler left out."""
    found = limits.measure(quick=True)
    for speeds in (found.read, found.copy, found.change):
        assert all(0 < rate < 1e13 for _, rate in speeds)
    assert 0 < found.words < 1e11


def test_limits_between_sizes_and_beyond() -> None:
    assert limits.at(KNOWN.read, 10) == 8e9
    assert limits.at(KNOWN.read, 1e9) == 2e9
    assert limits.at(KNOWN.read, 1_000) == pytest.approx(8e9)
    assert limits.at(KNOWN.read, 10**4.5) == pytest.approx(4e9)


def test_the_slower_of_memory_and_words_is_the_limit() -> None:
    moving = Traffic(read=8, copied=16, held=1_000)
    assert KNOWN.seconds(moving, 1) == pytest.approx(8 / 8e9 + 16 / 4e9)
    assert KNOWN.seconds(moving, 1_000) == pytest.approx(1_000 * (8 / 2e9 + 16 / 1e9))
    assert KNOWN.seconds(replace(moving, words=100), 1) == pytest.approx(100 / 1e9)
