"""What `fastdp.warmup` calls of this room: the kernels that C, C++ and Rust call by their address."""

from __future__ import annotations

from functools import partial

from ..kernels import function_pointers
from ..support.warmup import Steps


def steps() -> Steps:
    """One step for each address."""
    return [
        (f"function pointer, {name}", partial(getattr, kernel, "address"))
        for name, kernel in function_pointers.TABLE.items()
    ]
