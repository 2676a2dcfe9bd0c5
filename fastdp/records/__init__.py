"""Where records live and how they are read: arrays, packed bits, frames, files; domains and labels."""

from typing import TYPE_CHECKING

from ..support.public_paths import lazily

_HOMES = {
    "PackedRows": "packed",
}

if TYPE_CHECKING:
    from .packed import PackedRows as PackedRows

__getattr__, __dir__ = lazily(globals(), _HOMES)
