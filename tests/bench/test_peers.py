"""Other libraries in processes of their own: whatever a peer does is a line, and the rest goes on.

No library is installed here and no network is asked: peers are files made on the spot, run by this Python, and what pip
is asked for does not exist.
"""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fastdp.bench.cases.registry import Case, PeerSide, Side, beside, cases
from fastdp.bench.harness import environments, judging, measure
from fastdp.bench.harness.child import Child, PeerError
from fastdp.bench.harness.environments import MISSING, PEERS, Peer, bring, install
from fastdp.cli import main

MACHINE = {"versions": {"fastdp": "0"}, "cpu": "a CPU", "cores": 2, "compiled for": "a CPU", "simd": "avx2"}
FAKE = '''
"""A library that does what a test asks of it."""
import os, sys, time
import numpy as np
from .inputs import int_values

PACKAGES = ("numpy", "a-package-that-nobody-has")

def works(n, *, seconds=0.0):
    print("libraries talk")
    values = int_values(n)
    def call():
        print("and talk")
        time.sleep(seconds)
        return values.sum()
    return call

def late(n):
    def call():
        raise RuntimeError("first line\\nsecond line")
    return call

def raises(n):
    raise KeyError(n)

def lacks(n):
    raise NotImplementedError("it has no such mechanism")

def imports(n):
    import a_module_that_nobody_has

def out_of_date(n):
    from math import DOUBLE

def exits(n):
    print("about to go", file=sys.stderr, flush=True)
    return lambda: os._exit(3)

def aborts(n):
    return lambda: os.abort()

def fills(n):
    return lambda: np.ones(1 << 40)

def dies_of_memory(n):
    def call():
        print("terminate called after throwing an instance of 'std::bad_alloc'", file=sys.stderr, flush=True)
        os.abort()
    return call

def threads(n):
    cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else {0}
    if len(cores) != 1:
        raise AssertionError(cores)
    return lambda: None

TASKS = {f.__name__: f for f in (works, late, raises, lacks, imports, out_of_date, exits, aborts, fills, dies_of_memory,
    threads)}
'''


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTDP_PEERS_DIR", str(tmp_path / "peers"))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "fake.py"
    path.write_text(FAKE)
    return path


@pytest.fixture
def child(script: Path) -> Iterator[Child]:
    child = Child(Path(sys.executable), script, most_bytes=4 << 30)
    yield child
    child.close()


# --- the process


def test_a_peer_is_timed_by_its_own_clock(child: Child) -> None:
    assert child.versions == {"numpy": np.__version__, "a-package-that-nobody-has": "not found"}
    child.prepare("works", 1000, {"seconds": 0.01})
    assert 0.03 <= child.run(3) < 1
    child.prepare("works", 1000, {})
    assert 0 < child.run(1) < 0.01


def test_a_peer_stays_on_one_core(child: Child) -> None:
    child.prepare("threads", 1, {})
    child.run(1)


@pytest.mark.parametrize(
    ("task", "why"),
    [
        ("late", "RuntimeError: first line"),
        ("raises", "KeyError: 7"),
        ("lacks", "it has no such mechanism"),
        ("imports", "not available: ModuleNotFoundError: No module named 'a_module_that_nobody_has'"),
        ("out_of_date", "not available: ImportError: cannot import name 'DOUBLE' from 'math'"),
        ("exits", "crashed: its process ended with 3: about to go"),
        ("aborts", "crashed: its process ended by SIGABRT"),
        ("fills", "out of memory: "),
        ("dies_of_memory", "out of memory: its process ended by SIGABRT: terminate called"),
        ("a task that nobody wrote", "KeyError: 'a task that nobody wrote'"),
    ],
)
def test_whatever_goes_wrong_is_one_line(child: Child, task: str, why: str) -> None:
    def prepare_and_run() -> None:
        child.prepare(task, 7, {})
        child.run(1)

    with pytest.raises(PeerError) as caught:
        prepare_and_run()
    assert str(caught.value).startswith(why)
    assert "\n" not in str(caught.value)
    with pytest.raises(PeerError, match="its process has ended"):
        child.run(1)


def test_a_call_that_takes_too_long_is_ended(script: Path) -> None:
    child = Child(Path(sys.executable), script, call_seconds=0.3)
    child.prepare("works", 10, {"seconds": 60.0})
    start = time.monotonic()
    with pytest.raises(PeerError, match=r"took longer than 0\.3 s"):
        child.run(1)
    assert time.monotonic() - start < 10


def test_a_peer_that_does_not_start_says_so(tmp_path: Path, script: Path) -> None:
    with pytest.raises(PeerError, match="does not start: No such file"):
        Child(tmp_path / "no" / "python", script)
    script.write_text("1 +")
    with pytest.raises(PeerError, match="SyntaxError"):
        Child(Path(sys.executable), script)


def test_closing_ends_the_process(child: Child) -> None:
    child.prepare("works", 10, {})
    child.close()
    child.close()
    with pytest.raises(ProcessLookupError):
        os.kill(child._process.pid, 0)


# --- environments


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


# --- cells


def _case(*rivals: Side) -> Case:
    return Case(
        name="nothing",
        room="noise",
        work="nothing",
        n=1000,
        ours=Side("fastdp", lambda n: lambda: None),
        rivals=rivals,
        targets=(),
        oracle="a clock",
        drawn=lambda n: 1.0,
    )


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
    case = _case(PeerSide("works", "fake", "works", 500, parameters), beside("jax", "x"), *sides)
    with measure.Duel(case, quick=True) as duel:
        for _ in range(duel.rounds):
            duel.before_round()
            duel.round()
    result = duel.result([1.0] * duel.rounds)
    theirs = result["theirs"]
    works = theirs.pop("works")
    assert len(works["seconds"]) >= 3
    assert all(0.002 <= seconds < 0.2 for seconds in works["seconds"])
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


# --- the peers' files


def _tasks(name: str) -> dict[str, Any]:
    tasks: dict[str, Any] = import_module(f"fastdp.bench.peers.{name}").TASKS
    return tasks


def test_every_peer_has_a_row_and_every_task_exists() -> None:
    asked = {(side.peer, side.task) for case in cases() for side in case.rivals if isinstance(side, PeerSide)}
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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has died")
def test_a_peer_that_hangs_ends_with_a_killed_worker(tmp_path: Path) -> None:
    peer = tmp_path / "peer.py"
    begun = tmp_path / "begun"
    peer.write_text(f"""
import pathlib, time
PACKAGES = ()
TASKS = {{"sleep": lambda n: lambda: (pathlib.Path({str(begun)!r}).touch(), time.sleep(60))}}
""")
    worker = f"""
from pathlib import Path
import sys
from fastdp.bench.harness.child import Child
child = Child(Path(sys.executable), Path({str(peer)!r}))
child.prepare("sleep", 1, {{}})
print(child._process.pid, flush=True)
child.run(1)
"""
    with subprocess.Popen([sys.executable, "-c", worker], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid, until = int(process.stdout.readline()), time.monotonic() + 10
        while time.monotonic() < until and not begun.exists():
            time.sleep(0.05)
        process.kill()
    assert begun.exists()
    while time.monotonic() < until and _running(pid):
        time.sleep(0.05)
    assert not _running(pid)


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
