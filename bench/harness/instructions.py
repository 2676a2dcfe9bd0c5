"""How many instructions a few cases of the registry take, beside a baseline in the repository: for CI, where times lie.

    python -m fastdp.bench.harness.instructions [--record]

Callgrind counts them, on kernels compiled for AVX2 (it knows no AVX-512), in a process that does the same every time
(`counted.py`): two runs agree within 0.2 %, for large n within 0.05 %. What lies in kernels depends on numba and LLVM
alone; the rest, Python's and numpy's, on their versions too, and is judged only against a baseline made with the same.
A count shows nothing of memory or of how long an instruction takes: `fastdp bench` does.

Exit code 1 where a case takes more than 3 % more than its baseline; 2 where nothing can be counted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ...support.machine import SIMD_NAMES, simd_level, target
from ..cases.registry import SIMD_LEVELS
from ..reports.table import Column, Line, Table, cell, to_text
from ..reports.wording import digits
from .counted import calls
from .workers import AVX2, ONE_THREAD

BASELINE = Path(__file__).with_name("instructions.json")
TOLERANCE = 0.03
FORMAT = 1

SUBSET: Mapping[str, int] = {  # case: n, such that Python's part is small
    "words": 1_000_000,
    "laplace-int64-100-new": 1_000_000,
    "gaussian-int64-100": 500_000,
    "select-float64-1e6": 1_000_000,
    "select-gumbel": 1_000_000,
    "mask-evaluate": 1 << 22,
    "mask-update": 1 << 22,
    "marginals-binary": 1_140,
    "gradient-pass-logistic": 300_000,
    "literals-packed": 1_000_000,
    "literals-100": 400_000,
    "interior-point-int64": 1_000_000,
    "laplace-small-call": 10,  # Python's part, on purpose
}

DECISIVE = ("numba", "llvmlite")  # a baseline made with other minor versions of these means nothing
OTHERS = ("Python", "numpy")  # with other minor versions of these only kernels are judged


class CannotCountError(Exception):
    """Why nothing can be counted here, in one line."""


@dataclass(frozen=True)
class Count:
    """Instructions of one call."""

    kernels: float
    total: float


@dataclass(frozen=True)
class Row:
    case: str
    n: int
    count: Count
    baseline: Count | None
    ratio: float | None  # to the baseline: of the total, or of kernels where only they can be judged
    verdict: str

    @property
    def takes_more(self) -> bool:
        return self.ratio is not None and self.ratio > 1 + TOLERANCE


# ---------------------------------------------------------------------------------------------------------------------
# counting


def count(subset: Mapping[str, int]) -> dict[str, Count]:
    """Run the cases on n elements each under callgrind."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise CannotCountError(f"needs Linux on x86-64; this is {platform.system()} on {platform.machine()}")
    if (valgrind := shutil.which("valgrind")) is None:
        raise CannotCountError("needs valgrind, which is not installed (apt-get install valgrind)")
    if (level := simd_level(*target())) not in SIMD_LEVELS:
        raise CannotCountError(f"needs AVX2; this machine has {SIMD_NAMES[level]}")
    child = [sys.executable, "-P", "-m", "fastdp.bench.harness.counted", *(f"{name}:{n}" for name, n in subset.items())]
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(folder)
        _run(child, environment)  # compiles what the disk cache has not
        out = Path(folder, "counts")
        options = ["--tool=callgrind", "--instr-atstart=no", "--combine-dumps=yes", "--dump-line=no"]
        _run([valgrind, "-q", *options, f"--callgrind-out-file={out}", *child], environment)
        found = parse(out.read_text(encoding="utf-8", errors="replace"))
    if missing := [name for name in subset if name not in found]:
        raise CannotCountError(f"callgrind wrote nothing of {', '.join(missing)}")
    return {name: found[name] for name in subset}


def _environment(folder: str) -> dict[str, str]:
    """Nothing of the caller's but where things are: what else is set would change what Python does as it runs."""
    kept = ("HOME", "PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "FASTDP_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    if environment.get("FASTDP_CACHE_DIR") == "":  # no disk cache: callgrind would watch the compiler
        environment["FASTDP_CACHE_DIR"] = folder
    return environment | ONE_THREAD | AVX2 | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        *_, last = ["no message", *done.stderr.strip().splitlines()]
        raise CannotCountError(f"{Path(command[0]).name} ended with {done.returncode}: {last[:200]}")


def parse(text: str) -> dict[str, Count]:
    """What callgrind wrote, a part for each case: lines of cost below the object whose code it is.

    Compiled kernels lie in no object, "???". The line after `calls=` is the cost of what was called, counted there.
    """
    found: dict[str, Count] = {}
    objects: dict[str, str] = {}  # "(7)": its name, given where the number first occurs
    label, inside, called = "", "", False
    kernels = total = 0
    for line in text.splitlines():
        if line.startswith("desc: Trigger: "):
            label, kernels, total = line.removeprefix("desc: Trigger: ").removeprefix("Client Request: "), 0, 0
        elif match := re.match(r"(c?)ob=(\(\d+\))(?: (.*))?$", line):
            if match[3]:
                objects[match[2]] = match[3]
            if not match[1]:
                inside = objects.get(match[2], "")
        elif line.startswith("calls="):
            called = True
        elif match := re.match(r"[+\-*\d]\S* (\d+)$", line):
            if not called:
                total += int(match[1])
                kernels += int(match[1]) if inside == "???" else 0
            called = False
        elif line.startswith("totals:"):
            name, _, n = label.partition(":")
            if n.isdecimal():
                found[name] = Count(kernels / calls(int(n)), total / calls(int(n)))
    return found


# ---------------------------------------------------------------------------------------------------------------------
# the baseline


def versions() -> dict[str, str]:
    return {"Python": platform.python_version(), **{name: version(name) for name in ("numpy", "numba", "llvmlite")}}


def _same(one: Mapping[str, str], other: Mapping[str, str], names: tuple[str, ...]) -> bool:
    """Whether these versions agree but for the last number."""
    return all(one[name].split(".")[:2] == other[name].split(".")[:2] for name in names)


def read(path: Path) -> list[dict[str, Any]]:
    """The baselines of a file, one for each numba and llvmlite; none where there is no file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise CannotCountError(f"{str(path)!r}: cannot be read ({error})") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CannotCountError(f"{str(path)!r}: not a baseline of format {FORMAT}")
    return list(content["baselines"])


def record(path: Path, counts: Mapping[str, Count], subset: Mapping[str, int]) -> None:
    """Put the counts in the place of the baseline of the same numba and llvmlite; those of others stay."""
    made_with = versions()
    others = [baseline for baseline in read(path) if not _same(baseline["versions"], made_with, DECISIVE)]
    cases = {
        name: {"n": subset[name], "kernels": round(found.kernels), "total": round(found.total)}
        for name, found in counts.items()
    }
    baselines = sorted([*others, {"versions": made_with, "cases": cases}], key=lambda one: str(one["versions"]))
    path.write_text(json.dumps({"format": FORMAT, "baselines": baselines}, indent=1) + "\n", encoding="utf-8")


def judge(counts: Mapping[str, Count], subset: Mapping[str, int], baseline: dict[str, Any] | None) -> list[Row]:
    """Each case beside its baseline."""
    comparable = baseline is not None and _same(baseline["versions"], versions(), OTHERS)
    return [_judge(name, subset[name], found, baseline, comparable) for name, found in counts.items()]


def _judge(name: str, n: int, found: Count, baseline: dict[str, Any] | None, comparable: bool) -> Row:
    if baseline is None or name not in baseline["cases"]:
        return Row(name, n, found, None, None, "no baseline")
    before = baseline["cases"][name]
    if before["n"] != n:
        return Row(name, n, found, None, None, f"no baseline: it has n={before['n']:,}")
    then = Count(before["kernels"], before["total"])
    if not comparable and n <= 1000:
        return Row(name, n, found, then, None, "other Python or numpy")
    ratio = found.total / then.total if comparable else found.kernels / then.kernels
    verdict = "MORE" if ratio > 1 + TOLERANCE else "fewer" if ratio < 1 - TOLERANCE else "same"
    return Row(name, n, found, then, ratio, verdict + ("" if comparable else ", kernels alone"))


# ---------------------------------------------------------------------------------------------------------------------
# the command


def table(rows: list[Row]) -> Table:
    """In instructions per element."""
    lines = []
    for row in rows:
        before = "" if row.baseline is None else digits(row.baseline.total / row.n)
        ratio = "" if row.ratio is None else f"{row.ratio:.4f}"
        share = f"{100 * row.count.kernels / row.count.total:.1f} %"
        texts = (row.case, f"{row.n:,}", digits(row.count.total / row.n), share, before, ratio, row.verdict)
        lines.append(Line(tuple(map(cell, texts))))
    numbers = [Column(heading, number=True) for heading in ("n", "each", "in kernels", "baseline", "ratio")]
    return Table((Column("case"), *numbers, Column("verdict")), tuple(lines))


def show(rows: list[Row], baseline: dict[str, Any] | None, path: Path) -> None:
    """The table, and a line that sums it up."""
    print(to_text(table(rows)))
    print(f"\ninstructions per element, kernels compiled for {AVX2['NUMBA_CPU_NAME']}; {_listed(versions())}")
    more = [row.case for row in rows if row.takes_more]
    fewer = [row.case for row in rows if row.ratio is not None and row.ratio < 1 - TOLERANCE]
    if baseline is None:
        print(f"{path.name} has no baseline for this numba and llvmlite: nothing is judged (--record makes one)")
        return
    print(f"baseline made with {_listed(baseline['versions'])}")
    if fewer:
        print(f"fewer than before: {', '.join(fewer)} (--record keeps it so)")
    if more:
        print(f"more than {100 * TOLERANCE:g} % above the baseline: {', '.join(more)}")
    else:
        print(f"no case is more than {100 * TOLERANCE:g} % above the baseline")


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def main(arguments: list[str], counting: Callable[[Mapping[str, int]], dict[str, Count]] = count) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fastdp.bench.harness.instructions", description="Count instructions."
    )
    parser.add_argument("--record", action="store_true", help="make these counts the baseline")
    options = parser.parse_args(arguments)
    try:
        baselines = read(BASELINE)
        counts = counting(SUBSET)
    except CannotCountError as error:
        print(f"fastdp.bench.harness.instructions: {error}", file=sys.stderr)
        return 2
    made_with = versions()
    baseline = next((one for one in baselines if _same(one["versions"], made_with, DECISIVE)), None)
    rows = judge(counts, SUBSET, baseline)
    show(rows, baseline, BASELINE)
    if options.record:
        record(BASELINE, counts, SUBSET)
        print(f"recorded in {BASELINE}")
        return 0
    return int(any(row.takes_more for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
