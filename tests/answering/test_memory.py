"""What weights take in memory, and what is refused (fastdp/answering/memory.py)."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from fastdp import Conjunction, Domain, SyntheticDistribution
from fastdp.answering import memory
from fastdp.answering.dense_weights import LARGEST, DenseWeights
from fastdp.answering.factored_weights import FactoredWeights
from fastdp.answering.queries.query import bind
from fastdp.support import machine


def test_blocks_that_would_not_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "usable_memory", lambda: 2**20 + 2**11)  # the others take 84 * 16 bytes
    domain = Domain.binary(100)
    blocks = FactoredWeights(domain)
    fits = bind(Conjunction({f"v{i}": 1 for i in range(1, 17)}), domain)
    blocks.check(fits)
    blocks.scale(fits, 0.1)  # 2^16 cells and a copy: 1 MiB
    before = blocks.blocks
    too_large = bind(Conjunction({"v16": 1, "v20": 1}), domain)
    message = (
        r"^domain: an update by this query would merge the blocks of 'v16' with 15 more \('v1', 'v2', 'v3', \.\.\.\); "
        r"'v20' into 131,072 cells, which take 1 MiB: twice that, and the 1.30 KiB of other weights, must fit into "
        r"1.00 MiB, half of the memory$"
    )
    for attempt in (lambda: blocks.check(too_large), lambda: blocks.scale(too_large, 0.1)):
        with pytest.raises(ValueError, match=message):
            attempt()
    assert blocks.blocks == before
    assert blocks.evaluate(too_large) == pytest.approx(0.25, abs=1e-5), "asking needs no memory"
    monkeypatch.setattr(memory, "usable_memory", lambda: 100)
    three = bind(Conjunction({"v3": 1, "v1": 0, "v2": 1}), domain)
    with pytest.raises(ValueError, match=r"^domain: an update .* merge the blocks of 'v1'; 'v2'; 'v3' into 8 cells"):
        FactoredWeights(domain).scale(three, 1.0)


@pytest.mark.parametrize("logs", ["never", "later", "in the block that is merged"])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_an_update_takes_the_memory_that_it_says(precision: Any, logs: str) -> None:
    domain, block = Domain.binary(40), (8 if precision == "float64" else 4) << 18
    half = bind(Conjunction({f"v{i}": 1 for i in range(1, 18)}), domain)
    whole = bind(Conjunction({"v1": 1, "v18": 1}), domain)
    large = 0.7 * LARGEST[precision]
    rates = {"never": (0.1, 0.1), "later": (0.1, large), "in the block that is merged": (2 * large, 0.1)}[logs]
    for _ in range(2):  # the first run compiles
        weights = FactoredWeights(domain, precision)
        tracemalloc.start()
        try:
            weights.scale(half, rates[0])
            for _ in range(3):
                weights.scale(whole, rates[1])
            peak = tracemalloc.get_traced_memory()[1]
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            seen = SyntheticDistribution(weights)
            seen.answer(Conjunction({"v2": 1, "v30": 1}))
            seen.marginal(["v2", "v30"])
            assert "blocks" in repr(seen)
            asking = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
    said = 2 * (block + (8 << 18)) if logs.startswith("in") else (2 if precision == "float64" else 3) * block
    assert block < peak < 1.03 * said, peak / block
    assert weights._blocks[tuple(range(18))].in_logs == (logs != "never")
    assert asking < (0.1 if precision == "float64" else 2.1) * block, "a distribution copies no block of float64"


def test_the_memory_of_a_control_group_counts(tmp_path: Path) -> None:
    groups, own, all_of_it = tmp_path / "groups", tmp_path / "own", machine.memory_limit(tmp_path, tmp_path / "none")
    (groups / "a/b").mkdir(parents=True)
    (groups / "memory/c").mkdir(parents=True)

    def limit(line: str) -> int:
        own.write_text(f"5:cpu,cpuacct:/elsewhere\n{line}\n")
        machine.memory_limit.cache_clear()
        return machine.memory_limit(groups, own)

    (groups / "a/b/memory.max").write_text("max\n")
    assert limit("0::/a/b") == all_of_it
    (groups / "a/memory.max").write_text(f"{2**30}\n")
    assert limit("0::/a/b") == 2**30
    assert limit("0::/not/here") == all_of_it
    (groups / "memory.max").write_text(f"{2**29}\n")
    assert limit("0::/not/here") == 2**29, "the container's own, whatever its name outside"
    (groups / "memory/c/memory.limit_in_bytes").write_text("1000\n")
    assert limit("3:memory:/c") == 1000


def test_float32_takes_half() -> None:
    domain = Domain.binary(10)
    assert DenseWeights(domain).bytes == 2 * DenseWeights(domain, "float32").bytes == 8192
    assert FactoredWeights(domain).bytes == 2 * FactoredWeights(domain, "float32").bytes == 160
