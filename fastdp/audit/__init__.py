"""Audits of pipelines, those of users and our own: a replay on a neighbour, and a lower bound of epsilon by sampling.

`replay` runs a pipeline on two neighbouring inputs with every release frozen, and reports what else has changed.
`lower_bound` runs any function many times on both, and states how much privacy it is seen to lose. Neither proves
privacy: each can find that it is missing. audit.md says what they do, and why a finding is one.
"""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily

_HOMES = {
    "Finding": "replay_report",
    "LowerBound": "bound_report",
    "Replay": "replay_report",
    "ReplayedRead": "replay_report",
    "lower_bound": "lower_bounds",
    "replay": "replaying",
}

__all__ = ["Finding", "LowerBound", "Replay", "ReplayedRead", "lower_bound", "replay"]

if TYPE_CHECKING:
    from .bound_report import LowerBound as LowerBound
    from .lower_bounds import lower_bound as lower_bound
    from .replay_report import Finding as Finding
    from .replay_report import Replay as Replay
    from .replay_report import ReplayedRead as ReplayedRead
    from .replaying import replay as replay

__getattr__, __dir__ = lazily(globals(), _HOMES)
