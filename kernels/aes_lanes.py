"""AES rounds on lanes, and whether the machine code that is compiled here may use the instructions for them.

`BLOCK_LANES` is decided when this file is imported, from what numba compiles for: the name and the features that
NUMBA_CPU_NAME and NUMBA_CPU_FEATURES state, or those of this machine, as the operating system or a hypervisor shows
them. An instruction that the compiler was not told of would end the process, so a name that is not listed has none.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.binding
import numba.core.config
from llvmlite import ir
from numba import types
from numba.core import cgutils

from .lanes import Lanes, emit, is_vector, place_of

_AES = (
    "skylake", "skx", "cascadelake", "cooperlake", "cannonlake", "goldmont", "tremont", "bdver", "btver2", "znver1",
    "znver2",
)  # fmt: skip
_VAES = ("icelake", "rocketlake", "tigerlake", "alderlake", "raptorlake", "sapphirerapids", "znver3", "znver4")
_WIDE = (
    "icelake", "rocketlake", "tigerlake", "sapphirerapids", "znver4", "x86-64-v4", "skylake-avx512", "skx",
    "cascadelake", "cooperlake", "cannonlake",
)  # fmt: skip


def lanes_of_target(name: str | None, features: str | None) -> int:
    """How many uint64 lanes one AES instruction of a target of LLVM takes: 8, 4 or 2, or 0 where there is none.

    `name` and `features` are numba's: None for those of this machine. A feature that is named decides, whatever the
    processor is called.
    """
    if not llvmlite.binding.get_process_triple().startswith(("x86_64", "i686")):
        return 0
    name = llvmlite.binding.get_host_cpu_name() if name is None else name
    if features is None:
        features = "" if name == "generic" else llvmlite.binding.get_host_cpu_features().flatten()
    named = set(features.split(","))

    def has(feature: str, names: tuple[str, ...]) -> bool:
        return f"+{feature}" in named or (f"-{feature}" not in named and name.startswith(names))

    if not has("aes", _AES + _VAES):
        return 0
    if not has("vaes", _VAES) or "-avx2" in named:
        return 2
    return 8 if has("avx512f", _WIDE) else 4


_config: Any = numba.core.config
BLOCK_LANES = lanes_of_target(_config.CPU_NAME, _config.CPU_FEATURES)
_SUFFIX = {2: "", 4: ".256", 8: ".512"}
_I64 = ir.IntType(64)


def _round(instruction: str, text: str) -> Any:
    def describe(typing: Any, x: Any, k: Any) -> Any:
        if not isinstance(x, Lanes) or x != k or x.dtype != types.uint64 or x.n != BLOCK_LANES:
            return None

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = args[0].type
            function = ir.FunctionType(kind, [kind, kind])
            name = f"llvm.x86.aesni.{instruction}{_SUFFIX[kind.count]}"
            return builder.call(cgutils.get_or_insert_function(builder.module, function, name), args)

        return x(x, k), generate

    describe.__doc__ = text
    return emit(describe)


aes_round = _round("aesenc", "One round of AES (FIPS 197) on blocks of two uint64 lanes each, with round key k.")
aes_last_round = _round("aesenclast", "The last round of AES, which mixes no columns.")


def _repeated(builder: Any, two: Any, count: int) -> Any:
    order = ir.Constant(ir.VectorType(ir.IntType(32), count), [i % 2 for i in range(count)])
    return builder.shuffle_vector(two, two, order)


@emit
def turns(typing: Any, a: Any, b: Any, n: Any) -> Any:
    """n lanes a, b, a, b, ..."""
    if not isinstance(n, types.IntegerLiteral):
        return None
    count = n.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        two: Any = ir.Constant(ir.VectorType(_I64, 2), ir.Undefined)
        for i in range(2):
            two = builder.insert_element(two, args[i], ir.Constant(ir.IntType(32), i))
        return _repeated(builder, two, count)

    return Lanes(types.uint64, count)(types.uint64, types.uint64, n), generate


@emit
def load_turns(typing: Any, array: Any, start: Any, n: Any) -> Any:
    """n lanes array[start], array[start + 1], array[start], ...; array is uint64, contiguous."""
    if not isinstance(n, types.IntegerLiteral) or not is_vector(array) or array.dtype != types.uint64:
        return None
    count = n.literal_value

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = ir.VectorType(_I64, 2).as_pointer()
        two = builder.load(builder.bitcast(place_of(context, builder, array, args), pointer))
        two.align = 8
        return _repeated(builder, two, count)

    return Lanes(types.uint64, count)(array, types.intp, n), generate


@emit
def swap_bytes(typing: Any, x: Any) -> Any:
    """A uint64 with its bytes in the other order."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bswap(args[0])

    return types.uint64(types.uint64), generate


def _move(source: Callable[[int, int, int], int], text: str) -> Any:
    """16 lanes, one for each byte of a block as FIPS 197 numbers them: lane 4 c + r comes from source(c, r, n)."""

    def describe(typing: Any, x: Any, n: Any) -> Any:
        if not isinstance(x, Lanes) or x.n != 16 or not isinstance(n, types.IntegerLiteral):
            return None
        order = [source(c, r, n.literal_value) for c in range(4) for r in range(4)]

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 16), order)
            return builder.shuffle_vector(args[0], args[0], mask)

        return x(x, n), generate

    describe.__doc__ = text
    return emit(describe)


shift_rows = _move(lambda c, r, n: 4 * ((c + n * r) % 4) + r, "ShiftRows n times, on one lane for each byte.")
turn_columns = _move(lambda c, r, n: 4 * c + (r + n) % 4, "Every column upward by n bytes, on one lane for each byte.")
