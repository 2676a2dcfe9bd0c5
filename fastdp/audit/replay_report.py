"""What a replay found: findings, what every release read, a verdict in words, and a picture."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..privacy.guarantees import Guarantee
from ..support.public_paths import public_as
from ..support.results import DisplayLines, as_html, as_text
from .pictures import bars

_SHOWN = 12  # lines of a repr

LIMITS = (
    "It does not prove privacy: it compares two inputs, for one course of outputs, and no more; noise, random numbers "
    "and records that fastdp does not see are not followed."
)


@public_as("fastdp.audit")
@dataclass(frozen=True)
class Finding:
    """Something that changed outside of the releases.

    Attributes
    ----------
    kind : str
        "statistic" (moved by more than the declared sensitivity), "records" (more than one is another), "price" (the
        noise costs more than was charged), "charge", "parameters", "order" (of releases, reads and draws), "shape" (of
        a statistic or the result), "exception" or "result".
    release : int or None
        The number of the release, counted from 1; None where it is of none.
    mechanism : str
        Its name.
    text : str
        What it is. It shows values of the two inputs.
    """

    kind: str
    release: int | None
    mechanism: str
    text: str

    def __str__(self) -> str:
        where = "" if self.release is None else f" in release {self.release}, {self.mechanism}" * bool(self.mechanism)
        return f"{self.kind}{where}: {self.text}"


@public_as("fastdp.audit")
@dataclass(frozen=True)
class ReplayedRead:
    """What a release read on both inputs.

    Attributes
    ----------
    release : int
        The number of the release, counted from 1.
    mechanism : str
        Its name.
    norm : str
        "L1", "L2" or "Linf"; "records" where it is they that were compared.
    moved : float
        How far the two are apart.
    allowed : float or None
        How far neighbours may be; None where no sensitivity is declared.
    cost : str
        What its noise loses of privacy on these inputs; empty where that does not follow.
    """

    release: int
    mechanism: str
    norm: str
    moved: float
    allowed: float | None
    cost: str


@public_as("fastdp.audit")
@dataclass(frozen=True, repr=False)
class Replay:
    """What changed outside of the releases, between a run and its replay on a neighbour.

    Attributes
    ----------
    findings : tuple of Finding
        What changed; empty if nothing did.
    reads : tuple of ReplayedRead
        What each release read, and by how much it moved.
    releases : int
        How many releases the run on the first input made.
    guarantee : Guarantee or None
        What they cost together; None without a release, or where their relations differ.
    not_followed : tuple of str
        What could not be compared.
    passed : bool
        Whether there is no finding.
    """

    findings: tuple[Finding, ...]
    reads: tuple[ReplayedRead, ...]
    releases: int
    guarantee: Guarantee | None
    not_followed: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.findings

    @property
    def verdict(self) -> str:
        """What follows, in words, and what does not."""
        count = f"{self.releases} releases" if self.releases != 1 else "1 release"
        if self.findings:
            found = f"{len(self.findings)} findings" if len(self.findings) > 1 else "a finding"
            return f"NOT PRIVATE as it stands: {found} in {count}."
        if not self.releases:
            return f"Nothing was released, and the result is the same on both inputs. {LIMITS}"
        rest = f" {len(self.not_followed)} things were not compared." if self.not_followed else ""
        return f"No finding: outside of {count} nothing changed.{rest} {LIMITS}"

    def _display(self) -> DisplayLines:
        lines = [("verdict", self.verdict), ("charged", "nothing" if self.guarantee is None else str(self.guarantee))]
        lines += [("finding", str(each)) for each in self.findings[:_SHOWN]]
        if len(self.findings) > _SHOWN:
            lines.append(("", f"and {len(self.findings) - _SHOWN} more: .findings"))
        lines += [("not compared", text) for text in self.not_followed[:_SHOWN]]
        return lines

    def __repr__(self) -> str:
        return f"Replay\n{as_text(self._display())}"

    def _repr_html_(self) -> str:
        return as_html("Replay", [(name, html.unescape(value)) for name, value in self._display()]) + self.svg()

    def svg(self) -> str:
        """How far what each release reads moved, as a share of what neighbours may: beyond the line is a finding.

        Returns
        -------
        str
            An SVG document.
        """
        limited = [read for read in self.reads if read.allowed]
        rows = [
            (f"{read.release} {read.mechanism}", read.moved / (read.allowed or 1), _words(read)) for read in limited
        ]
        return bars("moved, as a share of the declared sensitivity", _largest_of_each(rows), 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values, for files.

        Returns
        -------
        dict
            With "passed", "verdict", "findings", "reads", "releases", "guarantee" and "not_followed".
        """
        return {
            "passed": self.passed,
            "verdict": self.verdict,
            "findings": [asdict(each) for each in self.findings],
            "reads": [asdict(each) for each in self.reads],
            "releases": self.releases,
            "guarantee": None if self.guarantee is None else str(self.guarantee),
            "not_followed": list(self.not_followed),
        }


def _words(read: ReplayedRead) -> str:
    return f"{read.moved:.4g} of {read.allowed:.4g} {read.norm}" + f", {read.cost}" * bool(read.cost)


def _largest_of_each(rows: Sequence[tuple[str, float, str]]) -> list[tuple[str, float, str]]:
    """A bar for each release."""
    found: dict[str, tuple[str, float, str]] = {}
    for row in rows:
        if row[0] not in found or found[row[0]][1] < row[1]:
            found[row[0]] = row
    return list(found.values())
