"""What a run of `fastdp bench` found, and the file that keeps it: rows, curves, latency, memory, all times.

A results file records on which machine, with which versions and from which commit of fastdp it is. Tables and pages are
made from it (`terminal.py`, `page.py`, `publish.py`), and later runs are set beside it (`compare.py`).
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FORMAT = 2  # of the file; another one wherever its content changes


class ResultsError(Exception):
    """What is wrong with a results file, in one line."""


@dataclass(frozen=True)
class Row:
    """One line of the table: a case beside one other way of doing it, or beside a limit in seconds."""

    case: str
    room: str
    work: str
    parameters: dict[str, float]
    threads: int
    n: int
    ours: float | None  # seconds a call, least of the rounds
    rival: str | None
    rival_n: int | None
    rival_parameters: dict[str, Any]
    theirs: float | None
    ratio: float | None  # how many times as fast as the rival ours is, per element
    kind: str | None
    limit: float | None
    verdict: str  # "holds", "falls short", "no target", or why there is no figure
    share: float | None = None  # of what the machine could do at most, with these bytes and random words


@dataclass(frozen=True)
class Peak:
    """One line of the memory table; bytes, in full."""

    case: str
    work: str
    n: int
    input: int
    ours: int | None  # what one call adds to what is resident, at its height
    rival: str | None
    theirs: int | None
    why_not: str | None = None
    most: float | None = None  # times the input that ours is to add

    @property
    def verdict(self) -> str:
        """Whether it does; empty where no target is set, or nothing was measured."""
        if self.most is None or self.ours is None:
            return ""
        return "holds" if self.ours <= self.most * self.input else "falls short"


@dataclass(frozen=True)
class Report:
    machine: dict[str, Any]
    quick: bool
    avx2: bool  # ours was compiled for less than the machine has; the others were not
    rows: tuple[Row, ...]
    measured: tuple[dict[str, Any], ...]  # every time of every round
    failed: dict[str, str]  # case: why
    threads: tuple[int, ...] = ()  # that ours was measured with beside those that a row says
    curves: tuple[dict[str, Any], ...] = ()  # elements a second
    limits: dict[str, Any] | None = None
    latency: tuple[Row, ...] = ()
    memory: tuple[Peak, ...] = ()
    commit: str | None = None  # of fastdp's source, where that is known
    date: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    @staticmethod
    def from_json(content: dict[str, Any]) -> Report:
        """ResultsError unless it is as `to_json` gives it."""
        if not isinstance(content, dict) or not {"format", "machine", "measured"} <= set(content):
            raise ResultsError("not a results file of fastdp bench")
        if content["format"] != FORMAT:
            raise ResultsError(f"has format {content['format']!r}; this fastdp reads {FORMAT}")
        given = {name: value for name, value in content.items() if name != "format"}
        try:
            for name, kind in (("rows", Row), ("latency", Row), ("memory", Peak)):
                given[name] = tuple(kind(**one) for one in given[name])
            for name in ("measured", "threads", "curves"):
                given[name] = tuple(given[name])
            return Report(**given)
        except (KeyError, TypeError) as error:
            raise ResultsError(f"not as fastdp bench writes it ({type(error).__name__}: {error})") from None

    @property
    def name(self) -> str:
        """By machine and commit: what the file is called where a folder is given."""
        machine = [str(self.machine.get(key, "unknown")) for key in ("cpu", "compiled for")]
        parts = [re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") for part in machine]
        return "_".join([*parts, self.commit or "installed"]) + ".json"

    def write(self, path: Path) -> None:
        write_lines(self.to_json(), path)


def write_lines(content: dict[str, Any], path: Path) -> None:
    """One line for each row, so that two files can be compared as text."""
    parts = []
    for name, value in content.items():
        if isinstance(value, tuple | list) and value:
            text = "[\n" + ",\n".join(json.dumps(_short(one)) for one in value) + "\n]"
        else:
            text = json.dumps(_short(value))
        parts.append(f"{json.dumps(name)}: {text}")
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _short(value: Any) -> Any:
    """Six digits are more than any clock has; an integer is a parameter."""
    if isinstance(value, float) and not value.is_integer():
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, list | tuple) else value


def load(path: Path) -> Report:
    """A results file; ResultsError, which names it, if it is none."""
    content = read_json(path)
    try:
        return Report.from_json(content)
    except ResultsError as error:
        raise ResultsError(f"{str(path)!r}: {error}") from None


def read_json(path: Path) -> Any:
    """What a file holds; ResultsError, which names it, if it is no JSON."""
    name = repr(str(path))
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ResultsError(f"{name}: cannot be read ({error.strerror})") from None
    except ValueError:
        raise ResultsError(f"{name}: not a results file of fastdp bench (no JSON)") from None


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def commit() -> str | None:
    """Of the checkout that this file is in, with a mark where files of it were changed; None where it is installed."""
    here = Path(__file__).resolve().parent
    asked = (
        ["ls-files", "--error-unmatch", Path(__file__).name],  # not in a checkout of something else
        ["describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"],
    )
    printed = ""
    for words in asked:
        try:
            done = subprocess.run(["git", "-C", str(here), *words], capture_output=True, text=True, check=False)
        except OSError:  # no git
            return None
        if done.returncode:
            return None
        printed = done.stdout.strip()
    return printed
