"""Compiling ahead of time: every kernel that the public functions reach, at a moment that the caller chooses.

Kernels compile at their first call; with the disk cache, once per machine. `warmup` makes those first calls, as the
public functions make them, on a few numbers of fresh secure noise that nobody sees. It never touches data or a budget.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from .progress import Progress, reporting

if TYPE_CHECKING:
    from numpy.typing import NDArray


def warmup(progress: Progress = None) -> None:
    """Compile every kernel, or load it from the disk cache, so that no later call waits for the compiler.

    Cost      tens of seconds on a machine that has never run this version of fastdp, well under a second after that
    progress  None; True for a bar (extra `[cli]`); or a callable (done, total, what is being compiled)

    Examples:
    >>> import fastdp
    >>> fastdp.warmup()
    """
    with reporting(progress, "compiling") as report:
        steps = _steps()
        for done, (name, step) in enumerate(steps):
            report(done, len(steps), name)
            step()
        report(len(steps), len(steps), "")


def _steps() -> list[tuple[str, Callable[[], object]]]:
    """(what it compiles, a call that does): one for each kernel and argument type that a public call can reach."""
    import numpy as np

    from . import noise, scores
    from .buckets import Buckets
    from .flips import draw_head
    from .kernels.chacha import word_one
    from .race import Race
    from .randomness import Randomness

    def read_only(array: NDArray[Any]) -> NDArray[Any]:  # a type of its own to the compiler
        array.flags.writeable = False
        return array

    def generator() -> None:
        draw = Randomness().generator()
        draw.integers(0, 2**64, dtype=np.uint64, size=3)
        draw.standard_normal(3)

    def choose(array: NDArray[Any]) -> None:
        key = Randomness().key()
        tops, top = scores.tops_of(array)
        race = Race(key, 1.0, 2)
        race.admit(array.dtype)
        race.run(array, 0, tops, top)
        scores.allowed(array)
        Buckets(array, 1.0).draw(key, 1)
        draw_head(array, top, key, 1.0)

    steps: list[tuple[str, Callable[[], object]]] = [
        ("random words", lambda: Randomness().words(3)),
        ("one random word", lambda: word_one(Randomness().key(), 0, 0)),
        ("numpy generator", generator),
    ]
    arrays = {
        "int64": np.arange(3, dtype=np.int64),
        "int64, read-only": read_only(np.arange(3, dtype=np.int64)),
        "float64": np.arange(3.0),
        "float64, read-only": read_only(np.arange(3.0)),
    }
    for name, array in arrays.items():
        grid = 1.0 if array.dtype == np.float64 else None
        steps.append((f"laplace, {name}", partial(noise.release, array, grid, noise.laplace_plan(1.0))))
        steps.append((f"gaussian, {name}", partial(noise.release, array, grid, noise.gaussian_plan(1.0))))
        steps.append((f"selection, {name}", partial(choose, array)))
    return steps
