"""What a peer's failure looks like in a row."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastdp.bench.cases.registry import PeerSide, beside
from fastdp.bench.harness import environments, judging, measure
from fastdp.bench.harness.environments import MISSING, PEERS, Peer
from fastdp.cli import main
from tests.bench.example import MACHINE, idle_case


def _fake_peer(monkeypatch: pytest.MonkeyPatch, script: Path) -> None:
    """A peer whose environment is this one."""

    class Fake(Peer):
        script = property(lambda self: script)  # type: ignore[assignment]
        python = property(lambda self: Path(sys.executable))  # type: ignore[assignment]

        def why_not(self) -> str | None:
            return None

    monkeypatch.setitem(PEERS, "fake", Fake("fake", "Fake", ()))


def test_peers_take_turns_and_fail_alone(monkeypatch: pytest.MonkeyPatch, script: Path) -> None:
    _fake_peer(monkeypatch, script)
    parameters = {"seconds": 0.002}
    sides = [PeerSide(task, "fake", task, 500) for task in ("exits", "lacks", "fills")]
    case = idle_case(
        rivals=(PeerSide("works", "fake", "works", 500, parameters), beside("jax", "x"), *sides), targets=()
    )
    with measure.Duel(case, quick=True) as duel:
        for _ in range(duel.rounds):
            duel.before_round()
            duel.round()
    result = duel.result([1.0] * duel.rounds)
    theirs = result["theirs"]
    works = theirs.pop("works")
    assert len(works["seconds"]) >= 3
    assert all(seconds >= 0.002 for seconds in works["seconds"])
    assert (works["n"], works["why_not"], works["parameters"]) == (500, None, parameters)
    assert works["versions"]["numpy"] == np.__version__
    whys = {name: other["why_not"] for name, other in theirs.items()}
    assert whys.pop("fills").startswith("out of memory: ")
    assert whys == {
        "jax jit": MISSING,
        "exits": "crashed: its process ended with 3: about to go",
        "lacks": "it has no such mechanism",
    }
    assert all(rival.child is None or rival.child._process.poll() is not None for rival in duel.rivals)

    rows = judging.judge(case, result | {"theirs": {**theirs, "works": works}}, None, MACHINE)
    assert {row.rival: row.verdict for row in rows} == {
        "works": "no target",
        "jax jit": MISSING,
        "exits": whys["exits"],
        "lacks": whys["lacks"],
        "fills": theirs["fills"]["why_not"],
    }
    assert rows[0].theirs is not None


def test_peers_are_asked_for_by_a_flag(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Only those that the chosen cases name; a cell says what happened."""

    def make(peer: Peer, say: Any) -> str:
        peer.folder.mkdir(mode=0o700)
        return "could not be installed: no luck"

    monkeypatch.setattr(environments, "_make", make)
    assert main(["bench", "--quick", "--peers", "--only", "above"]) == 0
    assert "could not be installed: no luck" in " ".join(capsys.readouterr().out.split())
    assert [path.name.split("-")[0] for path in (tmp_path / "peers").iterdir() if path.is_dir()] == ["opendp"]
