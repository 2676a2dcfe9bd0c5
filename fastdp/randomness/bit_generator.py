"""Random words as a numpy BitGenerator, so that `np.random.Generator` can draw from secure words.

numpy calls a bit generator through four C function pointers; compiled callbacks fill them, so no C extension is needed.
The words are those of stream 0 of one fresh key, in order, and after 64 GiB of AES of another. A used word is wiped
from the buffer. In a forked child the generator takes a new key before its next word, so parent and child never share
one; a seeded one goes on as it was.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.bit_generator import BUFFER, CIPHER, POSITION, STATE_WORDS, next_double, next_uint32, next_uint64
from ..kernels.layout import AES_KEY, AES_MARK
from .checked_key import checked_key

if TYPE_CHECKING:
    from .keys import Randomness

_KEY = slice(0, 4)


class _Interface(ctypes.Structure):
    """numpy/random/bitgen.h: the state and the functions that numpy's distributions call with it."""

    _fields_ = (
        ("state", ctypes.c_void_p),
        ("next_uint64", ctypes.c_void_p),
        ("next_uint32", ctypes.c_void_p),
        ("next_double", ctypes.c_void_p),
        ("next_raw", ctypes.c_void_p),
    )


_pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_alive: weakref.WeakSet[RandomWords] = weakref.WeakSet()


class _NoSeedSequence(np.random.bit_generator.ISeedSequence):
    """What numpy takes a bit generator to be seeded with: here nothing, and so nothing can be derived from it."""

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        raise TypeError("a bit generator of fastdp has no seed sequence: use .spawn(n), or Randomness().generator()")

    def spawn(self, n_children: int) -> Any:
        return self.generate_state(n_children)


class RandomWords(np.random.BitGenerator):
    """A numpy BitGenerator over the words of a key; made by `Randomness().bit_generator()`."""

    def __init__(self, rng: Randomness) -> None:
        super().__init__(_NoSeedSequence())  # type: ignore[arg-type]
        self._rng = rng
        self._words = np.zeros(STATE_WORDS, np.uint64)
        self._rekey()
        interface = _Interface.from_address(_pointer_of(self.capsule, b"BitGenerator"))
        interface.state = self._words.ctypes.data
        interface.next_uint64 = interface.next_raw = next_uint64.address
        interface.next_uint32 = next_uint32.address
        interface.next_double = next_double.address
        _alive.add(self)

    def _rekey(self) -> None:
        self._words[:] = 0
        key = checked_key(self._rng.key(), type(self._rng))
        self._words[_KEY] = key[:8].view(np.uint64)
        self._words[CIPHER] = key[8] if key.size == AES_KEY else 0
        self._words[POSITION] = BUFFER  # the buffer counts as used up

    @property
    def state(self) -> Mapping[str, Any]:
        """The state, which numpy's users may save and put back: it holds the key, so treat it as a secret."""
        return {"bit_generator": type(self).__name__, "words": self._words.copy()}

    @state.setter
    def state(self, value: Mapping[str, Any]) -> None:
        named = isinstance(value, Mapping) and value.get("bit_generator") == type(self).__name__
        words = value.get("words") if named else None
        fits = isinstance(words, np.ndarray) and words.dtype == np.uint64 and words.shape == self._words.shape
        if words is None or not fits or words[POSITION] > BUFFER or words[CIPHER] not in (0, AES_MARK):
            raise ValueError("state: must be the state of a fastdp RandomWords")
        self._words[:] = words

    def __reduce__(self) -> Any:
        raise TypeError(
            "a bit generator of fastdp does not pickle or copy: two copies would repeat each other's words; "
            "make another with Randomness().bit_generator()"
        )

    def __deepcopy__(self, memo: Any) -> Any:
        return self.__reduce__()

    def spawn(self, n_children: int) -> list[RandomWords]:
        """Bit generators with keys of their own."""
        return [RandomWords(self._rng) for _ in range(n_children)]

    def __repr__(self) -> str:
        return f"RandomWords({self._rng!r})"


def _after_fork_in_child() -> None:
    for generator in list(_alive):
        if generator._rng.secure:
            generator._rekey()


os.register_at_fork(after_in_child=_after_fork_in_child)
