"""Numbers as positions on a line: 0, 1, 2, ... in their order, whatever their type."""

from typing import Any

import numpy as np

from .compile import jit
from .lanes import F64Array, U64Array, bits_of, int64, uint64

INFINITE = 0x7FF0_0000_0000_0000  # the bits of an infinity: so many floats are >= 0 and finite
NAN, BEYOND = 1, 2  # flags that these kernels return


@jit
def place_floats_into(values: F64Array, out: U64Array) -> int:
    """out[i] is how many finite floats are less than values[i], where -0.0 is 0.0; infinities go to the ends.

    Shapes    values float64[n], out uint64[n]
    Cost      0.5 ns a number
    Returns   NAN if there is one (its place means nothing), BEYOND if there is an infinity, their sum, or 0
    Used by   fastdp/records/number_line.py
    Oracle    numpy sort
    """
    top = np.int64(0)
    infinite = np.int64(0)
    for i in range(values.size):
        bits = bits_of(values[i])
        size = bits & int64(0x7FFF_FFFF_FFFF_FFFF)
        top = max(top, size)
        infinite |= int64(size == int64(INFINITE))
        size = min(size, int64(INFINITE - 1))
        out[i] = uint64(int64(INFINITE - 1) + (size if bits >= 0 else -size))
    return (NAN if top > int64(INFINITE) else 0) + (BEYOND if infinite else 0)


@jit
def place_integers_into(values: Any, least: Any, last: Any, out: U64Array) -> int:
    """out[i] = values[i] - least, clipped to 0 .. last.

    Shapes    values of any integer type, int64 and uint64 included, least of the same type, last uint64, out uint64[n]
    Cost      0.3 ns a number
    Returns   BEYOND if one is clipped, otherwise 0
    Used by   fastdp/records/number_line.py
    Oracle    Python's integers
    """
    beyond = False
    for i in range(values.size):
        place = uint64(values[i]) - uint64(least)  # of int64 and uint64 alike: differences wrap to what they are
        below = values[i] < least
        above = place > last
        beyond |= below | above
        out[i] = uint64(0) if below else (last if above else place)
    return BEYOND if beyond else 0
