"""The environments of other libraries. No network is asked: what pip is asked for does not exist."""

from __future__ import annotations

import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from fastdp.bench.cases.registry import beside
from fastdp.bench.harness import environments
from fastdp.bench.harness.environments import MISSING, Peer, bring, install


def _peer(*pip: str) -> Peer:
    return Peer("fake", "Fake", pip)


def test_a_digest_is_of_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {_peer(*pip).digest for pip in (("a",), ("b",), ("a", "b"), ("a b",))}
    assert len(digests) == 4
    assert _peer("a").digest == _peer("a").digest
    monkeypatch.setattr(sys, "implementation", type("Other", (), {"cache_tag": "cpython-399"}))
    assert _peer("a").digest not in digests


def test_an_environment_that_is_not_there_says_what_brings_it() -> None:
    assert _peer("a").why_not() == MISSING == "not installed: fastdp bench --peers brings it"


def test_a_requirement_that_cannot_be_met_is_a_clear_line() -> None:
    """With an index that is empty; a second try is a try."""
    peer, said = _peer("--no-index --find-links /nowhere no-such-library-at-all==1.0"), list[str]()
    why_not = bring(peer, said.append)
    assert why_not == (
        "could not be installed: ERROR: No matching distribution found for no-such-library-at-all==1.0"
    ), why_not
    assert peer.why_not() == why_not
    assert stat.S_IMODE(peer.folder.stat().st_mode) == 0o700
    assert not peer.python.exists()
    assert said


def test_an_environment_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nothing but Python and pip."""
    peer = _peer()
    assert bring(peer) is None
    assert peer.why_not() is None
    assert stat.S_IMODE(peer.folder.stat().st_mode) == stat.S_IMODE(peer.folder.parent.stat().st_mode) == 0o700
    monkeypatch.setattr(environments, "_make", None)
    assert bring(peer) is None
    peer.folder.chmod(0o777)
    assert str(peer.why_not()).startswith("not usable: ")


def test_a_cache_that_cannot_be_written_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FASTDP_PEERS_DIR", str(tmp_path / "file" / "peers"))
    assert bring(_peer()) == "could not be installed: Not a directory"
    assert str(_peer().why_not()).startswith("not usable: Not a directory")


def test_an_install_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "INSTALL_SECONDS", 0.2)
    why_not = environments._run([sys.executable, "-c", "import time; time.sleep(60)"], lambda line: None)
    assert why_not == "took longer than 0 s"


def test_each_peer_is_told_as_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(peer: Peer, say: Any) -> str:
        say(f"Collecting {peer.name}")
        peer.folder.mkdir(mode=0o700)
        return "could not be installed: no luck" if peer.name == "jax" else ""

    monkeypatch.setattr(environments, "_make", make)
    seen: list[tuple[int, int, str]] = []
    failed = install(["opendp", "jax", "opendp"], lambda *now: seen.append(now))
    assert failed == {"jax": "could not be installed: no luck"}
    assert seen == [
        (0, 2, "installing OpenDP: Collecting opendp"),
        (1, 2, "installing jax jit: Collecting jax"),
        (2, 2, ""),
    ]


def test_environments_live_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert environments.root() == tmp_path / "peers"
    monkeypatch.delenv("FASTDP_PEERS_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform != "darwin":
        assert environments.root() == tmp_path / "fastdp" / "peers"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert environments.root() == tmp_path / ".cache" / "fastdp" / "peers"


def test_peers_are_known_by_name() -> None:
    with pytest.raises(ValueError, match="peer='nobody'"):
        beside("nobody", "nothing")
