"""How figures are worded, in the terminal, on a page and in the documentation alike."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...support.machine import SIMD_NAMES
from ..harness.results import Report, Row

METHOD = "least time of several rounds, both sides in turn, one thread unless the row says otherwise"

# how a parameter of the work is worded where "name value" would be no English
_PARAMETERS = {
    "n": "n = {}", "k": "k = {}", "d": "{} columns", "kind": "{}", "loss": "{} loss", "steps": "{} steps",
    "records": "{} records", "cuboids": "{} cuboids", "rounds": "{} rounds", "candidates": "{} candidates",
    "draws": "{} draws", "rate": "step size {}", "deviation": "noise of deviation {}", "most": "values up to {}",
}  # fmt: skip


# --- numbers


def digits(value: float) -> str:
    """Three significant digits, or the integer where it has more."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:#.3g}".rstrip(".")


def rough(ratio: float) -> str:
    """A ratio with one decimal, or the integer where it is large."""
    return f"{ratio:,.0f}x" if ratio >= 99.95 else f"{ratio:.1f}x"


def seconds(value: float | None) -> str:
    """A time with three digits and its unit."""
    if value is None:
        return ""
    number, unit = _in_unit(value)
    return f"{digits(number)} {unit}"


def _in_unit(value: float) -> tuple[float, str]:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * size:
            return value / size, unit
    return value * 1e9, "ns"


def each(value: float | None, n: int | None) -> str:
    """Nanoseconds an element, where there are several."""
    return f"{digits(value / n * 1e9)} ns each" if value is not None and n is not None and n > 1 else ""


def size(value: float) -> str:
    """Bytes, with three digits and their unit."""
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= 0.9995 * one:
            return f"{digits(value / one)} {unit}"
    return f"{value:,.0f} B"


def rate(value: float | None) -> str:
    """Elements a second, with three digits."""
    if value is None:
        return ""
    for unit, one in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * one:
            return f"{digits(value / one)} {unit}/s"
    return f"{digits(value)} /s"


def times(value: float, what: str) -> str:
    """`0.08 of numpy's time`, `1.05 times numpy's time`."""
    if value >= 0.995:
        return f"{max(value, 1.0):.2f} times {what}" if value < 9.995 else f"{digits(value)} times {what}"
    return f"{value:.2f} of {what}" if value >= 0.0095 else f"{value:.1g} of {what}"


def added(value: int | None, of: int) -> str:
    """Bytes, and how much of the input that is."""
    return f"{size(value)}, {times(value / of, 'the input')}" if value else "0 B" if value == 0 else ""


# --- rows


def ratio(row: Row) -> str:
    """How many times as fast; where a time is what is limited, the time."""
    if row.ratio is None:
        return ""
    if row.kind != "within":
        return f"{digits(row.ratio)}x"
    return times(1 / row.ratio, f"{row.rival}'s time" if " " not in str(row.rival) else "the time")


def share(row: Row | None) -> str:
    """Of what the machine could do at most."""
    return "" if row is None or row.share is None else f"{row.share:.0%}" if row.share >= 0.0995 else f"{row.share:.1%}"


def target(row: Row) -> str:
    """In the unit of the ratio beside which it stands."""
    if row.limit is None:
        return ""
    if row.kind == "faster":
        return f"≥ {row.limit:,.4g}x"
    if row.kind == "within":
        return f"≤ {row.limit:,.3g}"
    number, unit = _in_unit(row.limit)
    return f"≤ {number:,.4g} {unit}"


def count(n: int) -> str:
    """How many elements, where they are several."""
    return f"n = {n:,}" if n > 1 else ""


def parameters(row: Row, known: str = "") -> str:
    """Of the work, and how many elements and threads there are; what the words `known` have already is left out."""
    parts = [count(row.n), *_worded(row.parameters), f"{row.threads} threads" if row.threads > 1 else ""]
    return _unknown(parts, known)


def rival_parameters(row: Row, known: str = "") -> str:
    """What another library was given, and on how many elements, where that is not what ours was."""
    parts = [f"n = {row.rival_n:,}"] if row.rival_n is not None and row.rival_n != row.n else []
    return _unknown([*parts, *_worded(row.rival_parameters)], known)


def _unknown(parts: list[str], known: str) -> str:
    return ", ".join(part for part in parts if part and not re.search(rf"(?<![\w.]){re.escape(part)}(?![\w.^])", known))


def _worded(values: Mapping[str, object]) -> list[str]:
    return [_PARAMETERS.get(name, name + " {}").format(_value(value)) for name, value in values.items()]


def _value(value: object) -> str:
    return f"{value:,.10g}" if isinstance(value, float | int) else str(value)


# --- reports


def counted(report: Report) -> str:
    """How many targets hold; nothing is judged by small arrays."""
    if report.quick:
        return "a quick run: no row is judged"
    counts = {word: sum(row.verdict == word for row in report.rows) for word in ("holds", "falls short")}
    others = sum(row.kind is not None and row.verdict not in counts for row in report.rows)
    tail = f", {others} without a verdict" if others else ""
    return f"{counts['holds']} hold, {counts['falls short']} fall short{tail}"


def where(report: Report) -> str:
    """The machine, and what the kernels were compiled for."""
    machine = report.machine
    lesser = "; the others use all that the machine has" if report.avx2 else ""
    compiled = f"{machine['compiled for']} ({SIMD_NAMES.get(machine['simd'], machine['simd'])}){lesser}"
    return f"{machine['cpu']}, {machine['cores']} cores, kernels compiled for {compiled}"


def compiled(report: Report) -> str:
    """The SIMD level alone: `AVX-512`."""
    return str(SIMD_NAMES[report.machine["simd"]]).partition(",")[0]


def versions(report: Report) -> str:
    """Of what was measured, and of the other libraries in their environments."""
    own = [{name: number} for name, number in report.machine["versions"].items()]
    theirs = [other.get("versions", {}) for one in report.measured for other in one["theirs"].values()]
    found = (" with ".join(f"{name} {number}" for name, number in one.items()) for one in [*own, *theirs] if one)
    return ", ".join(dict.fromkeys(found))
