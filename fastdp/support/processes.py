"""Which process this is: a number that grows with every fork.

What may be used by one process alone (a budget, a key, an object with noise of its own) remembers the number of the
process that made it, and compares before every draw. Process ids will not do: they are used again, and a child in a
namespace of its own may have its parent's. `import fastdp` imports this, so that no fork goes unseen; what a fork waits
for is read when one comes (kernels/forks.py).
"""

from __future__ import annotations

import os


class _Process:
    """This process, and how many forks lie between the first import of fastdp and it.

    The number is read, not asked for: smallest calls compare it three times.
    """

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0


here = _Process()


def _before() -> None:
    from ..kernels import forks

    forks.before()


def _in_parent() -> None:
    from ..kernels import forks

    forks.in_parent()


def _in_child() -> None:
    here.number += 1
    from ..kernels import forks

    forks.in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
