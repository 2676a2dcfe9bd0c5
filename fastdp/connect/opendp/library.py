"""The constructors of OpenDP, imported when they are first needed."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from ..requirements import is_older

NEEDED = "0.12"


def need_opendp() -> Any:
    """The functions of OpenDP that are used here. Features are the user's to enable: OpenDP's error names them."""
    try:
        import opendp.prelude
    except ImportError:
        raise ImportError("this adapter needs OpenDP: pip install 'fastdp[opendp]'") from None
    found = version("opendp")
    if is_older(found, NEEDED):
        raise ImportError(f"opendp {found}: must be at least {NEEDED}: pip install 'fastdp[opendp]'")
    return _Functions(opendp.prelude)


class _Functions:
    """OpenDP's constructors, by one name each."""

    def __init__(self, dp: Any) -> None:
        self.user_domain, self.make_user_measurement = dp.user_domain, dp.m.make_user_measurement
        self.max_divergence = dp.max_divergence
        self.zero_concentrated_divergence = dp.zero_concentrated_divergence
