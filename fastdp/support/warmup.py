"""Compiling ahead of time: every kernel that the public functions reach, at a moment that the caller chooses.

Kernels compile at their first call; with the disk cache, once per machine. `warmup` makes those first calls, as the
public functions make them, on a few numbers of fresh secure noise that nobody sees. It never touches data or a budget.
Each room's module `warmup` has its `steps()`: what a step compiles, and a call that does, one for each kernel and
argument type that a public call can reach. `fastdp/__init__.py` registers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from . import extensions
from .checks import one_of
from .progress import Progress, reporting

Steps = list[tuple[str, Callable[[], object]]]


def warmup(progress: Progress = None, *, rooms: str | Iterable[str] | None = None) -> None:
    """Compile every kernel, or load it from the disk cache, so that no later call waits for the compiler.

    Parameters
    ----------
    progress : bool or callable, optional
        True for a bar (extra `[cli]`), or a callable (done, total, what is being compiled).
    rooms : str or iterable of str, optional
        Only what these rooms call: "noise" (laplace, gaussian), "randomness" (words, numpy's generators), "records",
        "mechanisms" (noise, selection, sparse vector, quantiles), "answering", "learning", "optimizing", "statistics",
        "capi". By default all of them.

    Raises
    ------
    ValueError
        "progress=1: must be None, False, True or a callable (done, total, what)"; a room that is none of these.

    Notes
    -----
    Cost    tens of seconds on a machine that has never run this version of fastdp, well under a second after that

    Examples
    --------
    >>> import fastdp
    >>> fastdp.warmup(rooms="noise")
    """
    asked = rooms_of(rooms)
    with reporting(progress, "compiling") as report:
        steps = steps_of(asked)
        for done, (name, step) in enumerate(steps):
            report(done, len(steps), name)
            step()
        report(len(steps), len(steps), "")


def rooms_of(rooms: str | Iterable[str] | None) -> tuple[str, ...]:
    """The rooms that are asked for, each once; all for None."""
    every = extensions.names("warmup")
    asked = every if rooms is None else tuple((rooms,) if isinstance(rooms, str) else rooms)
    for room in asked:
        one_of("rooms", room, every)
    return tuple(dict.fromkeys(asked))


def steps_of(rooms: Iterable[str]) -> Steps:
    """What these rooms compile; two of them may have the same step."""
    return list(dict(step for room in rooms for step in extensions.load("warmup", room).steps()).items())
