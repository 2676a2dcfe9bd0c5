"""A peer at work: its own process, in its own environment and within limits, which `peers/protocol.py` runs.

Whatever happens to it is a line for the table: an exception of the library, a crash, too much memory, too much time.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from .environments import SCRIPTS

MOST_BYTES = 8 << 30  # of address space
START_SECONDS, CALL_SECONDS = 120.0, 60.0  # to import and prepare; for a call, or a round of several


class PeerError(Exception):
    """Why a peer has no figure, in one line."""


class Child:
    """`prepare` a task, `run` it so many times; `close`, which also the garbage collector does."""

    def __init__(
        self,
        python: Path,
        script: Path,
        *,
        most_bytes: int = MOST_BYTES,
        start_seconds: float = START_SECONDS,
        call_seconds: float = CALL_SECONDS,
    ) -> None:
        self.most_bytes, self.start_seconds, self.call_seconds = most_bytes, start_seconds, call_seconds
        self._buffer = b""
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  closed by `close`
        command = [str(python), "-I", str(SCRIPTS / "protocol.py"), str(script), str(most_bytes)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
            )
        except OSError as error:
            self._log.close()
            raise PeerError(f"does not start: {error.strerror}") from None
        try:
            self.versions: dict[str, str] = self._receive(start_seconds)["versions"]
        except BaseException:
            self.close()
            raise

    def prepare(self, task: str, n: int, parameters: Mapping[str, Any]) -> None:
        self._ask(self.start_seconds, prepare=task, n=n, parameters=dict(parameters))

    def run(self, calls: int) -> float:
        """The seconds that all the calls took, on the child's clock."""
        return float(self._ask(self.call_seconds, run=calls)["seconds"])

    def close(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):  # what was sent last, it had not read
                stream.close()
        self._log.close()

    def __del__(self) -> None:
        if hasattr(self, "_process") and not self._log.closed:
            self.close()

    def _ask(self, seconds: float, **asked: Any) -> dict[str, Any]:
        if self._log.closed:
            raise PeerError("its process has ended")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._end()
        return self._receive(seconds)

    def _receive(self, seconds: float) -> dict[str, Any]:
        """The next line, or an end: a process that is late, or says why not, is not asked again."""
        assert self._process.stdout is not None
        until = monotonic() + seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, until - monotonic()))
            if not ready:
                self.close()
                raise PeerError(f"took longer than {seconds:g} s")
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                self._end()
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "why_not" in answer:
            self.close()
            raise PeerError(answer["why_not"])
        return answer

    def _end(self) -> None:
        """It has ended without an answer: report how."""
        code = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        self.close()
        how = f"ended with {code}" if code >= 0 else f"ended by {signal.Signals(-code).name}"
        memory = any("alloc" in line.lower() or "memory" in line.lower() for line in lines[-5:])
        last = f": {lines[-1].strip()[:200]}" if lines else ""
        raise PeerError(f"{'out of memory' if memory else 'crashed'}: its process {how}{last}")
