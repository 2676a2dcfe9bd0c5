"""Around a sort of positions: numpy's takes half the time for 32 bits, and two keys for one.

They owe fastdp/records/ordering.py and fastdp/mechanisms/cut_records.py one pass each; what is sorted when is decided
there.
"""

from typing import Any

from .compile import jit
from .lanes import U32Array, U64Array, uint32, uint64


@jit
def find_span(values: U64Array) -> tuple[int, int, int]:
    """The least and the greatest of all values, and the bits in which some two of them differ.

    least = min values[i],  greatest = max values[i],  differing = OR of values[i] ^ values[0]

    Shapes    values uint64[n], n >= 1
    Cost      0.2 ns a value
    Returns   least, greatest, differing
    Used by   fastdp/records/ordering.py
    Oracle    numpy min, max, bitwise_or
    """
    first = values[0]
    least, greatest, differing = first, first, uint64(0)
    for i in range(values.size):
        value = values[i]
        least = min(least, value)
        greatest = max(greatest, value)
        differing |= value ^ first
    return least, greatest, differing


@jit
def narrow_into(values: U64Array, least: Any, shift: Any, out: U32Array) -> None:
    """Values as offsets of 32 bits from the least one.

    out[i] = (values[i] - least) >> shift

    Shapes    values uint64[n]; least, shift uint64; out uint32[n]
    Cost      0.3 ns a value
    Requires  offsets below 2^(32 + shift), multiples of 2^shift
    Used by   fastdp/records/ordering.py
    Oracle    Python's integers
    """
    for i in range(values.size):
        out[i] = uint32((values[i] - least) >> shift)


@jit
def widen_into(values: U32Array, least: Any, shift: Any, out: U64Array) -> None:
    """Offsets as the values that narrow_into had.

    out[i] = least + (values[i] << shift)

    Shapes    values uint32[n]; least, shift uint64; out uint64[n]
    Cost      0.4 ns a value
    Used by   fastdp/records/ordering.py
    Oracle    Python's integers
    """
    for i in range(values.size):
        out[i] = least + (uint64(values[i]) << shift)


@jit
def count_equal_runs(values: U64Array) -> int:
    """How many runs of equal values there are.

    #{i : i = 0 or values[i] != values[i - 1]}

    Shapes    values uint64[n]
    Cost      0.2 ns a value
    Used by   fastdp/mechanisms/cut_records.py
    Oracle    itertools.groupby
    """
    found = uint64(values.size > 0)
    before, after = values[: values.size - 1], values[1:]
    for i in range(after.size):
        found += uint64(after[i] != before[i])
    return int(found)


@jit
def key_runs_into(values: U64Array, lows: U32Array, keys: U64Array) -> None:
    """The number of the run of equal values that an entry is in, and its low bits, as one key.

    keys[i] = 2^32 #{0 < j <= i : values[j] != values[j - 1]} + lows[i]

    Shapes    values uint64[n], lows uint32[n], keys uint64[n]
    Cost      0.7 ns a value
    Requires  n <= 2^32
    Used by   fastdp/mechanisms/cut_records.py
    Oracle    itertools.groupby
    """
    run = uint64(0)
    for i in range(values.size):
        run += uint64(i > 0 and values[i] != values[i - 1])
        keys[i] = (run << uint64(32)) | uint64(lows[i])
