"""How results are said, in the terminal, on a page and in the documentation alike."""

from __future__ import annotations

from ...support.machine import SIMD_NAMES
from ..harness.results import Report, Row


def digits(value: float) -> str:
    """Three significant digits, or the whole number where it has more."""
    return f"{value:,.0f}" if value >= 999.5 else f"{value:#.3g}".rstrip(".")


def seconds(value: float | None) -> str:
    """A time with three digits and its unit."""
    if value is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= 0.9995 * size:
            return f"{digits(value / size)} {unit}"
    return f"{digits(value * 1e9)} ns"


def each(value: float | None, n: int | None) -> str:
    """Nanoseconds an element, where there are several."""
    return f"{digits(value / n * 1e9)} ns" if value is not None and n is not None and n > 1 else ""


def size(value: float) -> str:
    """Bytes, with three digits and their unit."""
    for unit, one in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= 0.9995 * one:
            return f"{digits(value / one)} {unit}"
    return f"{value:,.0f} B"


def against(value: int | None, of: int) -> str:
    """Bytes, and how many times the input that is."""
    return f"{size(value)}, {digits(value / of)}x" if value else "0 B" if value == 0 else ""


def rate(value: float | None) -> str:
    """Elements a second, with three digits."""
    if value is None:
        return ""
    for unit, one in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= 0.9995 * one:
            return f"{digits(value / one)} {unit}/s"
    return f"{digits(value)} /s"


def ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    return f"{digits(1 / row.ratio)}x time" if row.kind == "within" else f"{digits(row.ratio)}x"


def target(row: Row) -> str:
    if row.limit is None:
        return ""
    wording = {"faster": "≥ {}x", "within": "≤ {}x time", "seconds": "≤ {} s"}
    return wording[row.kind or "seconds"].format(f"{row.limit:,.4g}")


def parameters(row: Row) -> str:
    """Of the work, as far as they are not 1."""
    said = [f"n={row.n:,}"] if row.n > 1 else []
    said += [f"{name}={_value(value)}" for name, value in row.parameters.items()]
    return ", ".join(said + ([f"{row.threads} threads"] if row.threads > 1 else []))


def rival_parameters(row: Row) -> str:
    """What another library was given, and on how many elements, where that is not what ours was."""
    said = [f"n={row.rival_n:,}"] if row.rival_n is not None and row.rival_n != row.n else []
    return ", ".join(said + [f"{name}={_value(value)}" for name, value in row.rival_parameters.items()])


def _value(value: object) -> str:
    return f"{value:,.10g}" if isinstance(value, float | int) else str(value)


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


def versions(report: Report) -> str:
    """Of what was measured, and of the other libraries in their environments."""
    own = [{name: number} for name, number in report.machine["versions"].items()]
    theirs = [other.get("versions", {}) for one in report.measured for other in one["theirs"].values()]
    said = (" with ".join(f"{name} {number}" for name, number in found.items()) for found in [*own, *theirs] if found)
    return ", ".join(dict.fromkeys(said))


METHOD = "least time of several rounds, both sides in turn, one thread unless the row says otherwise"
