"""A case that does nothing and a machine that is none, for tests of the harness."""

from __future__ import annotations

from typing import Any

from fastdp.bench.cases.registry import (
    Case,
    Side,
    faster,
)


def idle_case(**changes: Any) -> Case:
    """A case that does nothing, quickly."""
    nothing = Side("nothing", lambda n: lambda: None)
    fields: dict[str, Any] = {
        "name": "nothing",
        "room": "noise",
        "work": "nothing",
        "n": 1000,
        "ours": Side("fastdp", lambda n: lambda: None),
        "rivals": (nothing,),
        "targets": (faster("nothing", avx512=2, avx2=1),),
        "oracle": "a clock",
        "drawn": lambda n: 1.0,
    }
    return Case(**fields | changes)


MACHINE = {
    "versions": {"fastdp": "0"},
    "cpu": "a CPU",
    "cores": 2,
    "compiled for": "a CPU",
    "simd": "avx2",
}
