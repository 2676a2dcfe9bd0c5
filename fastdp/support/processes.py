"""Which process this is: a number that grows with every fork.

What may be used by one process alone (a budget, a key, an object with noise of its own) remembers the number of the
process that made it, and compares before every draw. Process ids will not do: they are used again, and a child in a
namespace of its own may have its parent's. `import fastdp` imports this, so that no fork goes unseen.
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


def _forked() -> None:
    here.number += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
