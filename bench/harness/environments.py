"""The other libraries that cases are measured against, and the virtual environment of each, made on demand.

`fastdp bench --peers` makes the environments that the chosen cases need, with pip and its configured registry, in a
folder of the user's cache; later runs use those that are there. Why a library cannot be installed is kept in a line
with its folder, so that the table can show it. Nothing is ever installed beside fastdp itself.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ...support.progress import Report

SCRIPTS = Path(__file__).parents[1] / "peers"
INSTALL_SECONDS = 1800.0
MISSING = "not installed: fastdp bench --peers brings it"

Note = Callable[[str], object]


@dataclass(frozen=True)
class Peer:
    """A library, and what pip is asked to install, one call after the other."""

    name: str
    title: str  # as the table calls it
    pip: tuple[str, ...]

    @property
    def script(self) -> Path:
        return SCRIPTS / f"{self.name}.py"

    @property
    def digest(self) -> str:
        """Changes with whatever makes an environment another one."""
        python = (sys.implementation.cache_tag, platform.machine(), platform.system())
        asked = json.dumps([python, self.pip])
        return hashlib.sha256(asked.encode()).hexdigest()[:12]

    @property
    def folder(self) -> Path:
        return root() / f"{self.name}-{self.digest}"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def why_not(self) -> str | None:
        """Why the environment cannot be used; None when it can."""
        try:
            _check(self.folder)
            return (self.folder / "outcome").read_text(encoding="utf-8").strip() or None
        except FileNotFoundError:
            return MISSING
        except OSError as error:
            return f"not usable: {error.strerror or error}"


def _peers(*peers: Peer) -> dict[str, Peer]:
    return {peer.name: peer for peer in peers}


PEERS = _peers(
    Peer("opendp", "OpenDP", ("opendp>=0.14 numpy",)),
    # with scikit-learn 1.8 its models fail, with 1.9 it does not import
    Peer("diffprivlib", "diffprivlib", ("diffprivlib>=0.6.6 scikit-learn<1.8",)),
    Peer("dp_accounting", "dp-accounting", ("dp-accounting>=0.5",)),
    Peer("jax", "jax jit", ("jax>=0.5",)),
    # the torch that opacus would bring has several GB of CUDA; pip prefers 2.13.0+cpu to 2.13.0 where it finds both
    Peer(
        "opacus",
        "opacus",
        (
            "--no-deps --retries 1 --find-links https://download.pytorch.org/whl/cpu/torch/ torch==2.13.0",
            "opacus>=1.5 torch==2.13.0",
        ),
    ),
    Peer("mbi", "mbi", ("mbi>=2,<3",)),  # private-pgm
    # it asks for torch, opacus and more, for synthesizers that are not measured here
    Peer(
        "smartnoise_synth",
        "smartnoise-synth",
        (
            "smartnoise-sql==1.0.10 opendp==0.14.2 faker>=17 disjoint-set>=0.9,<0.10 mbi>=1.1,<2 numpy scipy",
            "--no-deps smartnoise-synth==1.0.8",
        ),
    ),
)


def root() -> Path:
    """$FASTDP_PEERS_DIR, else fastdp/peers in the user's cache: a few GB, if all are there."""
    if named := os.environ.get("FASTDP_PEERS_DIR"):
        return Path(named).absolute()
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fastdp" / "peers"
    return (Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache") / "fastdp" / "peers"


def _check(folder: Path) -> None:
    """What is run from here must be this user's own, and nobody else's to write."""
    for path in (folder.parent, folder):
        status = path.lstat()
        if path.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise PermissionError(0, f"{path} must be a folder of this user that nobody else can write to")


# ---------------------------------------------------------------------------------------------------------------------
# installing


def install(names: Iterable[str], report: Report) -> dict[str, str]:
    """Make the environments that are not there yet; those that failed before are tried again. Name: why not."""
    chosen = [PEERS[name] for name in dict.fromkeys(names)]
    failed = {}
    for done, peer in enumerate(chosen):

        def note(line: str, done: int = done, peer: Peer = peer) -> None:
            report(done, len(chosen), f"installing {peer.title}: {line[:60]}")

        if (why_not := bring(peer, note)) is not None:
            failed[peer.name] = why_not
    report(len(chosen), len(chosen), "")
    return failed


def bring(peer: Peer, note: Note = lambda line: None) -> str | None:
    """Make the environment of one peer unless it is there. Why not, in a line; None when it can be used."""
    try:
        root().mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(peer):
            if peer.why_not() is None:
                return None
            outcome = _make(peer, note)
            _check(peer.folder)
            (peer.folder / "outcome").write_text(outcome, encoding="utf-8")
    except OSError as error:
        return f"could not be installed: {error.strerror or error}"
    return outcome or None


@contextmanager
def _alone(peer: Peer) -> Iterator[None]:
    """Two commands at once make one environment; the second waits for the first."""
    descriptor = os.open(f"{peer.folder}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _make(peer: Peer, note: Note) -> str:
    """The outcome: nothing, or why it failed. What was there is made anew; a failure leaves an empty folder."""
    if peer.folder.is_symlink():
        peer.folder.unlink()
    shutil.rmtree(peer.folder, ignore_errors=True)
    peer.folder.mkdir(mode=0o700)
    pip = [str(peer.python), "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "install"]
    venv = [sys.executable, "-I", "-m", "venv", str(peer.folder)]
    for step in (venv, *([*pip, *arguments.split()] for arguments in peer.pip)):
        if (why_not := _run(step, note)) is not None:
            shutil.rmtree(peer.folder, ignore_errors=True)
            peer.folder.mkdir(mode=0o700, exist_ok=True)
            return f"could not be installed: {why_not}"
    return ""


def _run(command: list[str], note: Note) -> str | None:
    """Pass on every line that it prints; return why it failed, if it did: the first line that begins with ERROR, or its
    last."""
    environment = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_USER")
    }
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            start_new_session=True,  # so that what it started ends with it
        ) as process,
    ):
        assert process.stdout is not None
        late = threading.Event()

        def end() -> None:
            late.set()
            os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(INSTALL_SECONDS, end)
        timer.start()
        try:
            last = ""
            for line in process.stdout:
                last = line.strip() or last
                note(last)
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        finally:
            timer.cancel()
        if code == 0:
            return None
        if late.is_set():
            return f"took longer than {INSTALL_SECONDS:,.0f} s"
        errors.seek(0)
        lines = [line.strip() for line in errors if line.strip()] or [last or f"ended with {code}"]
    return next((line for line in reversed(lines) if line.startswith("ERROR: ")), lines[-1])[:300]
