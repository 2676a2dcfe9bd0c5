"""Telling a person how far long work has come: the one reading of every `progress=` argument.

`None` or `False` prints nothing, `True` draws a bar on standard error (extra `[cli]`), and a callable is called as
`progress(done, total, what)`: before each step with what is about to be done, and once more at the end with "".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import accumulate
from math import inf
from time import monotonic
from typing import TypeAlias

from .shown import shown

Report: TypeAlias = Callable[[int, int, str], object]
Progress: TypeAlias = Report | bool | None

_SECONDS = 0.1  # between two pictures of a bar


def reporting(
    progress: Progress, title: str, seconds: Sequence[float] = ()
) -> AbstractContextManager[Report]:  # fmt: skip
    """The callable to report to; the bar, if there is one, stands for as long as the block runs.

    seconds   what each step is expected to take; the bar counts steps alike without it
    """
    if progress is None or progress is False:
        return _TO_NOBODY
    if progress is True:
        return _bar(title, seconds)
    if callable(progress):
        return nullcontext(progress)
    raise ValueError(_wrong(progress))


_TO_NOBODY: AbstractContextManager[Report] = nullcontext(lambda done, total, what: None)


def check_progress(progress: Progress) -> None:
    """ValueError unless `reporting` takes it, for who opens that after the charge."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ValueError(_wrong(progress))


def _wrong(progress: object) -> str:
    return f"progress={shown(progress)}: must be None, False, True or a callable (done, total, what)"


@contextmanager
def one_pass(progress: Progress, what: str) -> Iterator[None]:
    """The same for what is done in one pass over the records: said before it, and after it."""
    with reporting(progress, what) as report:
        report(0, 1, what)
        yield
        report(1, 1, "")


class PublicSteps:
    """So many steps, each reported once, whatever the records are: they decide when, and not what is told."""

    def __init__(self, report: Report, steps: int, what: str) -> None:
        self._report, self._steps, self._what = report, steps, what
        self._told = 0

    def begin(self, step: int) -> None:
        """Report all steps up to this one; none beyond the last."""
        while self._told <= min(step, self._steps - 1):
            self._report(self._told, self._steps, self._what)
            self._told += 1

    def end(self) -> None:
        """Report those that are left, and the end."""
        self.begin(self._steps - 1)
        self._report(self._steps, self._steps, "")


@contextmanager
def _bar(title: str, seconds: Sequence[float]) -> Iterator[Report]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[counted]}"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[what]}", style="dim"),
    )
    # refreshed by itself it would leave a thread, which ends some time after the bar does
    with Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False) as bar:
        task, drawn = bar.add_task(title, total=None, counted="", what=""), -inf

        def report(done: int, total: int, what: str) -> None:
            nonlocal drawn
            due = monotonic() >= drawn + _SECONDS
            so_far, whole = weighed(done, total, seconds)
            counted = f"{done}/{total}"
            bar.update(task, completed=so_far, total=whole, counted=counted, what=what, refresh=due)
            drawn = monotonic() if due else drawn

        yield report


def weighed(done: int, total: int, seconds: Sequence[float]) -> tuple[float, float]:
    """How much of how much is done, where the steps take so long each."""
    if len(seconds) != total:
        return done, total
    sums = [0.0, *accumulate(seconds)]
    return sums[done], sums[total]
