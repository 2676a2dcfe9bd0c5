"""Other libraries on the same records, in the run that measures ours: each in its own environment, through files.

The table says why a library has no figure; `fastdp bench --accuracy --peers` brings those that a task names.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from ..cases.registry import PeerSide
from ..harness.child import CALL_SECONDS, Child, PeerError
from ..harness.environments import PEERS
from .datasets import Array
from .registry import Missing


class Run(NamedTuple):
    """What one run left, by name, and the seconds that it took on one core."""

    arrays: dict[str, Array]
    seconds: float


def made_by(side: PeerSide, records: Array, *, call_seconds: float = CALL_SECONDS, **public: Any) -> Run | Missing:
    """One run of a side on these records; or why there is none."""
    peer = PEERS[side.peer]
    if (why := peer.why_not()) is not None:
        return Missing(why)
    with TemporaryDirectory() as folder:
        np.save(f"{folder}/records.npy", records)
        files = {"records": f"{folder}/records.npy", "to": f"{folder}/made.npz"}
        try:
            with closing(Child(peer.python, peer.script, call_seconds=call_seconds)) as child:
                child.prepare(side.task, len(records), files | public)
                seconds = child.run(1)
        except PeerError as error:
            return Missing(str(error))
        with np.load(f"{folder}/made.npz") as made:
            return Run(dict(made), seconds)


def names(sides: Iterable[PeerSide]) -> tuple[str, ...]:
    return tuple(side.peer for side in sides)
