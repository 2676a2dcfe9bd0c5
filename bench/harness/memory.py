"""How much memory a call holds beside its input, at its height.

Each side of a case runs in a process of its own, `python -m fastdp.bench.harness.memory case side n`, which prints how
far the resident bytes rose during one call.
"""

from __future__ import annotations

import gc
import json
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import fastdp

from ..cases.memory import Memory
from ..cases.registry import Call, Case, Side, cases
from .measure import QUICK_N
from .results import Peak

TIMEOUT = 600.0  # seconds that a process may take


def measure_peak(memory: Memory, environment: Mapping[str, str], *, quick: bool = False) -> Peak:
    """Both sides, each in a process of its own; a side that fails there has a reason instead."""
    case = memory.of
    n = min(case.n, QUICK_N) if quick else case.n
    rival = next(iter(_here(case)[1:]), None)
    found: dict[str, int | None] = {}
    failures: list[str] = []
    for side in (case.ours, *([rival] if rival else [])):
        command = [sys.executable, "-P", "-m", "fastdp.bench.harness.memory", case.name, side.name, str(n)]
        found[side.name], why = _run(command, environment)
        if why:
            failures.append(f"{side.name}: {why}")
    return Peak(
        case=case.name,
        work=case.work,
        n=n,
        input=round(memory.bytes_each * n),
        ours=found[case.ours.name],
        rival=rival.name if rival else None,
        theirs=found[rival.name] if rival else None,
        why_not="; ".join(failures) or None,
        most=memory.most,
    )


def _here(case: Case) -> list[Side]:
    """Ours, and the rivals that need no environment of their own."""
    return [side for side in (case.ours, *case.rivals) if isinstance(side, Side)]


def _run(command: list[str], environment: Mapping[str, str]) -> tuple[int | None, str | None]:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=dict(environment),
            timeout=TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, f"took longer than {TIMEOUT:,.0f} s"
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        return None, f"ended with {done.returncode}: {lines[-1][:200]}"
    return json.loads(done.stdout.splitlines()[-1])["bytes"], None


def _resident(field: str, status: Path = Path("/proc/self/status")) -> int:
    for line in status.read_text().splitlines():
        if line.startswith(field):
            return 1024 * int(line.split()[1])
    raise OSError(f"{field}: not in {status}")


def _highest() -> int:
    """getrusage's high-water mark."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def rise(call: Call) -> int:
    """How far the resident bytes rise above what they are before, during one call.

    Linux lets a process forget its high-water mark. Elsewhere getrusage's stands since the process began (on Linux even
    since its parent's): what making the input took beyond the input hides as much of the call."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
        before = _resident("VmRSS:")
        result = call()
        after = _resident("VmHWM:")
    except OSError:
        before = _highest()
        result = call()
        after = _highest()
    del result
    return max(0, after - before)


def main(arguments: list[str]) -> int:
    name, side_name, n = arguments
    case = next(case for case in cases() if case.name == name)
    side = next(side for side in _here(case) if side.name == side_name)
    fastdp.set_num_threads(side.threads)
    side.make(min(max(int(n) // 10, 1), QUICK_N))()  # loads the kernels; their code is no part of the work
    print(json.dumps({"bytes": rise(side.make(int(n)))}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
