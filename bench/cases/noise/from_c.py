"""Laplace noise from a C program."""

from __future__ import annotations

import atexit
import ctypes
import tempfile
from functools import cache, partial
from typing import Any

import numpy as np

from ....capi import build
from ....capi.library import why_not
from ...peers.inputs import int_values
from ..registry import Call, Case, Side, make_case, within
from ..traffic import NOISY_IN_PLACE
from .inputs import N
from .laplace import our_laplace

_case = partial(make_case, "noise")


@cache
def _c_library() -> ctypes.CDLL:
    """The C library, in a folder that goes with the process; it joins this Python, as that of any host."""
    folder = tempfile.TemporaryDirectory(prefix="fastdp-bench-")
    atexit.register(folder.cleanup)
    library = ctypes.CDLL(str(build(folder.name).library))
    library.fastdp_last_error.restype = ctypes.c_char_p
    return library


def _from_c(n: int) -> Call:
    library, numbers, values = _c_library(), np.ctypeslib.ndpointer(np.int64), int_values(n)
    laplace = library.fastdp_laplace_i64
    laplace.argtypes = (numbers, ctypes.c_int64, ctypes.c_double, ctypes.c_double, ctypes.c_int64, numbers)

    def call() -> Any:
        if laplace(values, n, 1.0, 0.01, 0, values):
            raise RuntimeError(library.fastdp_last_error().decode())
        return values

    return call


def _c_cases() -> tuple[Case, ...]:
    """None where no C library can be made, which `python -m fastdp.capi` explains."""
    if why_not() is not None:
        return ()
    case = _case(
        "laplace-from-c-in-place",
        "Laplace noise from C, int64, scale 100, in place",
        N,
        _from_c,
        (Side("Python", our_laplace(int_values, 100.0, in_place=True)), within("Python", 1 / 0.9)),
        traffic=NOISY_IN_PLACE,
        oracle="laplace_law",
        drawn=lambda n: _from_c(n)() - int_values(n),
        scale=100.0,
    )
    return (case,)


CASES = (*_c_cases(),)
