"""The library mbi, imported when it is first needed."""

from __future__ import annotations

from typing import Any

from ..requirements import need

LEAST = "2.0"  # the first version with this protocol


def need_mbi() -> Any:
    """The module `mbi`; an ImportError if it is missing or too old."""
    return need("mbi", extra="mbi", least=LEAST)
