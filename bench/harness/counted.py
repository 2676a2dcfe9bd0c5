"""The process whose instructions are counted: it does the work of some cases, and marks for callgrind what counts.

`instructions.py` runs it as `python -m fastdp.bench.harness.counted case:n ...`: once by itself, so that the disk
cache has every kernel, then under valgrind. It replaces the operating system's keys by those of a seed, so that it does
the same in every run.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import random
import sys
import warnings
from collections.abc import Callable
from types import SimpleNamespace

import fastdp
from fastdp import PrivacyWarning
from fastdp.randomness import keys

from ..cases.registry import choose

# callgrind.h: requests, counted from the letters CT
ZERO, DUMP, START, STOP = (0x43540000 + number for number in (1, 3, 4, 5))

# valgrind.h, x86-64. Valgrind reads the rotations and the exchange as a request: rax points to it and to its arguments.
# For a processor they come to nothing, as rdi is turned by 128 bits in all.
_REQUEST = bytes.fromhex(
    "4889f8"  # mov rax, rdi
    "31d2"  # xor edx, edx
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol rdi, 3; 13; 61; 51
    "4887db"  # xchg rbx, rbx
    "c3"  # ret
)


class Callgrind:
    """What a program may ask of callgrind from inside; without callgrind nobody hears it.

    callgrind_control does the same from outside, but at some instruction, not at a certain one, and by ptrace, which
    containers refuse.
    """

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._page.write(_REQUEST)
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._request = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(start)

    def ask(self, number: int, argument: int = 0) -> None:
        words = (ctypes.c_uint64 * 6)(number, argument)  # named, so that it lives during the call
        self._request(ctypes.addressof(words))

    def count(self, label: str, call: Callable[[], object], times: int) -> None:
        """Write how many instructions so many calls take: the part of callgrind's file that has this label."""
        text = ctypes.create_string_buffer(label.encode())
        self.ask(START)
        self.ask(ZERO)
        for _ in range(times):
            call()
        self.ask(DUMP, ctypes.addressof(text))
        self.ask(STOP)


def calls(n: int) -> int:
    """An even number, as some cases do one thing and undo it at the next call; many where all is Python's overhead."""
    return 2 if n > 1000 else 100


def _take_keys_of(seed: int) -> None:
    """Let the operating system's keys be those of a generator, and of ChaCha20, as seeds are."""
    vars(keys).update(os=SimpleNamespace(urandom=random.Random(seed).randbytes), _cipher=b"")


def main(arguments: list[str]) -> int:
    warnings.simplefilter("ignore", PrivacyWarning)  # that whoever knows a seed knows the noise
    fastdp.set_num_threads(1)
    gc.disable()
    callgrind = Callgrind()
    for argument in arguments:
        name, _, n = argument.partition(":")
        (case,) = (case for case in choose((name,)) if case.name == name)
        _take_keys_of(1)
        call, times = case.ours.make(int(n)), calls(int(n))
        for _ in range(times):
            call()  # loads kernels, fills whatever is kept
        gc.collect()
        _take_keys_of(2)
        callgrind.count(argument, call, times)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
