"""Whether an engine of somebody else's reads records as they are read in memory: what its author runs as a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..support.columns import Entries
from ..support.errors import DomainError
from .engine import Engine
from .labels import with_labels
from .rows import Block, Rows
from .sources import opened

_RECORDS = 5_000
_LARGE = 2**61


def check_engine(make: Callable[[Any], Engine]) -> None:
    """Check that an engine gives the same results as memory; AssertionError states what does not hold.

    Parameters
    ----------
    make : callable
        `make(table)` puts a pandas DataFrame into the engine and returns it as an `Engine`: in the order of its
        records, and in two parts at least, unless the table has no records. It is called twice.

    Raises
    ------
    AssertionError
        For whatever does not hold, in words.

    Notes
    -----
    Cost         some twenty jobs
    Not covered  how long jobs take, what the engine keeps or logs of records, and parts that change later
    """
    table = _table(_RECORDS)
    rows, here = make(table.copy()), opened(table)
    _is_described(rows, here)
    _is_read_in_place(rows, table)
    _adds_up(rows, here)
    _selects(rows, table)
    _has_labels(rows, here)
    _holds(rows, here)
    _raises(rows)
    nobody, empty = make(table[:0].copy()), opened(table[:0])
    _is_described(nobody, empty)
    _adds_up(nobody, empty)


def _table(n: int) -> Any:
    import pandas

    draw = np.random.default_rng(0)
    words = draw.choice(np.array(["north", "south", "østvær"], object), n)
    words[::7] = None
    return pandas.DataFrame(
        {
            "age": draw.integers(0, 100, n),
            "income": draw.lognormal(10, 1, n),
            "large": np.where(np.arange(n) % 1_000 == 0, _LARGE, draw.integers(-9, 9, n)),
            "member": draw.random(n) < 0.5,
            "region": pandas.Series(words, dtype=object),
        }
    )


def _must(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(f"engine: must {what}")


def _is_described(rows: Rows, here: Rows) -> None:
    _must(isinstance(rows, Engine), "be a fastdp.records.Engine")
    _must(rows.n == here.n, f"have {here.n} records, has {rows.n}")
    _must(rows.names == here.names, f"have the columns {here.names}, has {rows.names}")
    kinds = ["".join(dtype.kind for dtype in some.dtypes()[:4]) for some in (rows, here)]
    _must(kinds[0] == kinds[1], f"have types of the kinds {kinds[1]}, has {kinds[0]}")
    _must(not rows.gathers and rows.one_block() is None, "leave `gathers` and `one_block` as they are")


def _is_read_in_place(rows: Engine, table: Any) -> None:
    """Every record once, in order, and never two parts at once."""
    parts = [length for length in rows.lengths if length]
    _must(len(parts) > 1, "have two parts with records at least")

    def statistic(block: Block) -> list[tuple[int, int, Any, Entries]]:
        return [(block.first, block.n, block.column("age").copy(), block.entries("region"))]

    blocks = [rows.merge(statistic, lambda a, b: [*a, *b]) for _ in range(2)]
    spans = [[(first, n) for first, n, *_ in found] for found in blocks]
    _must(spans[0] == spans[1], "have the same parts in each pass")
    ends = [first + n for first, n in spans[0]]
    _must([first for first, _ in spans[0]] == [0, *ends[:-1]], "give parts in their order, each once")
    borders = {*rows.starts, rows.n}
    straddled = any(border in range(first + 1, first + n) for first, n in spans[0] for border in borders)
    _must(not straddled, "run a job on one part at a time")
    ages = np.concatenate([age for *_, age, _ in blocks[0]])
    _must(np.array_equal(ages, table["age"]), "keep the order of records")
    words: list[Any] = []
    for *_, (values, missing, _) in blocks[0]:
        gone = np.zeros(len(values), bool) if missing is None else missing
        words += [
            None if out or value is None else str(value) for value, out in zip(values.tolist(), gone, strict=True)
        ]
    _must(words == table["region"].where(table["region"].notna(), None).tolist(), "keep strings and missing entries")


def _adds_up(rows: Rows, here: Rows) -> None:
    def products(block: Block) -> Any:
        large, age = block.column("large"), block.column("age").astype(np.int64)
        return np.array(
            [[np.minimum(large, 2**40).sum(), (age * age).sum()], [block.n, int(block.column("member").sum())]]
        )

    totals = [some.total(products) for some in (rows, here)]
    _must(np.array_equal(totals[0], totals[1]), "add up integers exactly")
    counts = [some.count(lambda block: block.column("age").astype(np.uint32), 100) for some in (rows, here)]
    _must(np.array_equal(counts[0], counts[1]), "count exactly")
    merged = [
        some.merge(lambda block: [float(block.column("income").max(initial=0.0))], lambda a, b: [max(a + b)])
        for some in (rows, here)
    ]
    _must(merged[0] == merged[1], "merge summaries of floats without changing a bit")


def _error_of(rows: Rows, statistic: Callable[[Block], Any]) -> BaseException | None:
    try:
        rows.total(statistic)
    except Exception as error:
        return error
    return None


def _selects(rows: Engine, table: Any) -> None:
    chosen = rows.select(["member", "age"])
    _must(chosen.names == ("member", "age") and chosen.width == 2, "select columns in the order asked for")
    sums = chosen.total(lambda block: [block.n, int(block.column(1)[block.column(0)].sum())])
    _must(
        int(sums[1]) == int(table["age"][table["member"]].sum()), "give the columns that `run` is asked for, in order"
    )
    one = rows["age"]
    _must(
        one.width == 1 and int(one.total(lambda block: [block.column(0).sum()])[0]) == int(table["age"].sum()),
        "give one column",
    )


def _has_labels(rows: Rows, here: Rows) -> None:
    found = []
    for some in (rows, here):
        records, labels = with_labels(some.select(["age", "member"]), "member")
        read = records.label_reader(labels, lambda entries: entries.complete(), np.bool_)
        found.append(int(records.total(lambda block: [block.column("age")[read(block)].sum()])[0]))  # noqa: B023
    _must(found[0] == found[1], "read labels beside their records")


def _holds(rows: Rows, here: Rows) -> None:
    """What is made of blocks once and summed twice, held or made anew."""
    found = []
    for some in (rows, here):
        parts = some.keep_parts(lambda block: (block.first, block.column("age").astype(np.int64)), 8)
        found.append([parts.total(_by_place).tolist() for _ in range(2)])
    _must(found[0] == found[1], "hold what a job made of each part, for all jobs that follow")


def _by_place(part: tuple[int, Any]) -> Any:
    first, ages = part
    return [ages.sum(), (ages * np.arange(first, first + len(ages))).sum()]


def _raises(rows: Rows) -> None:
    def wrong(block: Block) -> Any:
        if block.first:
            raise DomainError("column 'region': must be declared")
        return [block.n]

    error = _error_of(rows, wrong)
    _must(type(error) is DomainError, f"raise the DomainError of a part, not {type(error).__name__}")
    _must(str(error) == "column 'region': must be declared", "raise the errors of parts with their own words")
    _must(
        error is not None and error.__cause__ is error.__context__ is None,
        "raise errors as results, with no other behind",
    )
    beyond = _error_of(rows, lambda block: [2**62])
    _must(type(beyond) is OverflowError, "raise OverflowError where a sum is beyond 2^63")
