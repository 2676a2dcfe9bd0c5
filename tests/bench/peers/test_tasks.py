"""The peers' files: every task exists and does the work."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from fastdp.bench.accuracy import summaries, synthesis
from fastdp.bench.cases.registry import PeerSide, cases
from fastdp.bench.harness import environments
from fastdp.bench.harness.environments import PEERS


def _tasks(name: str) -> dict[str, Any]:
    tasks: dict[str, Any] = import_module(f"fastdp.bench.peers.{name}").TASKS
    return tasks


def test_every_peer_has_a_row_and_every_task_exists() -> None:
    asked = {(side.peer, side.task) for case in cases() for side in case.rivals if isinstance(side, PeerSide)}
    asked |= {(side.peer, side.task) for side in (*summaries.OTHERS, *synthesis.OTHERS)}
    assert asked == {(name, task) for name in PEERS for task in _tasks(name)}


def test_the_files_of_peers_know_no_fastdp() -> None:
    allowed = set(PEERS) | {"torch", "snsynth", "__future__", "numpy", *sys.stdlib_module_names}
    for path in environments.SCRIPTS.glob("*.py"):
        words = [line.split() for line in path.read_text().splitlines()]
        imported = {w[1].partition(".")[0] for w in words if len(w) > 1 and w[0] in ("import", "from")} - {""}
        assert imported <= allowed, path


@pytest.mark.filterwarnings("ignore")  # of other libraries
def test_the_tasks_of_what_is_installed_here_do_the_work() -> None:
    """Where a library is beside fastdp anyway, as dp-accounting is for other tests."""
    sides = [side for case in cases() for side in case.rivals if isinstance(side, PeerSide)]
    for side in sides:
        if side.peer not in ("opendp", "dp_accounting") or find_spec(side.peer) is None:
            continue
        make = _tasks(side.peer)[side.task]
        if side.task == "above_threshold":
            with pytest.raises(NotImplementedError, match="OpenDP"):
                make(100, **side.parameters)
            continue
        made = make(100, **side.parameters)()
        if side.task in ("laplace", "gaussian"):
            assert len(made) == 100
            values = np.linspace(-1e3, 1e3, 100) if side.parameters.get("kind") == "float64" else np.arange(100)
            assert np.any(made != values)
            assert abs(np.subtract(made, values)).max() < 50 * side.parameters["scale"]
        elif side.task == "select":
            assert 0 <= made < 100
        elif side.task == "top_k":
            assert len(set(made)) == 10
        elif side.task == "compose":
            assert 0 < made < 1
        else:
            assert abs(made) <= 2.0**63
