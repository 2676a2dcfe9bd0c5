"""Where records live and how they are read: arrays, packed bits, frames, files; domains and labels."""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily

_HOMES = {
    "Engine": "engine",
    "PackedRows": "packed",
    "Subset": "subsets",
    "check_engine": "engine_check",
}

if TYPE_CHECKING:
    from .engine import Engine as Engine
    from .engine_check import check_engine as check_engine
    from .packed import PackedRows as PackedRows
    from .subsets import Subset as Subset

__getattr__, __dir__ = lazily(globals(), _HOMES)
