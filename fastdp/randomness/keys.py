"""Where random bits come from: a fresh key for every release, from the operating system; AES or ChaCha20 makes words.

Nothing is shared between releases, so nothing can be shared between threads or survive a fork. A release draws its
words as functions of (key, stream, index), by the cipher that the key names: see kernels/words.py. keys.md states what
is assumed and what is not covered.
"""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.layout import AES_MARK
from ..privacy.origin import SECURE, SECURE_BY_AES, SEEDED, Origin
from ..support.checks import check_fits, integer, plain_integer
from ..support.errors import PrivacyWarning
from ..support.parameters import MOST_DIGITS
from ..support.public_paths import public_as
from ..support.shown import shown
from ..support.threads import run_chunks
from .checked_key import checked_key
from .rehearsal import listener

if TYPE_CHECKING:
    from .bit_generator import RandomWords

_WORD = np.dtype(np.uint32)
Key = NDArray[np.uint32]  # of one release: 8 words of ChaCha20, or 9 of AES, the last of which says so
MOST_DRAWS = 2**40  # under one key: keys.md, "How many"
_warned = False
_cipher: bytes | None = None  # what follows the 256 bits of a key; None before the first


@public_as("fastdp")
class Randomness:
    """A source of keys, one for every release.

    Parameters
    ----------
    seed : int, optional
        None takes 256 bits from the operating system for each release: the default everywhere. An integer gives the
        same keys in every run, in the order in which they are asked for: for tests. Whoever knows the seed can subtract
        the noise, so a release made with it is not private.

    Examples
    --------
    >>> from fastdp import Randomness
    >>> Randomness()
    Randomness()
    >>> Randomness().words(4).dtype
    dtype('uint64')
    """

    __slots__ = ("__weakref__", "_releases", "_seed")

    def __init__(self, seed: int | None = None) -> None:
        self._seed = plain_integer(seed)
        if seed is not None and self._seed is None:
            raise ValueError(f"seed={shown(seed)}: must be an integer, or None for secure keys")
        if self._seed is not None and self._seed.bit_length() > MOST_DIGITS:
            raise ValueError(f"seed={shown(seed)}: must have at most {MOST_DIGITS:,} bits")
        self._releases = count()  # which numbers them in one step: no lock for a handler or a fork to find held
        if self._seed is not None:
            _warn_once()

    def key(self) -> NDArray[np.uint32]:
        """The 256-bit key of one release; another one at every call.

        Returns
        -------
        numpy.ndarray of uint32
            Of a seed 8 words, for ChaCha20. Of the operating system 9 where this machine has instructions for AES: the
            256 bits, and a word that names AES-256. It gives the same words on every machine.
        """
        if self._seed is None:
            return _secure_key()
        digest = hashlib.sha256(f"fastdp {self._seed} {next(self._releases)}".encode()).digest()
        return np.frombuffer(bytearray(digest), _WORD)

    def words(self, n: int) -> NDArray[np.uint64]:
        """n random 64-bit words: the first n of stream 0 of a fresh key.

        Parameters
        ----------
        n : int >= 0
            How many.

        Returns
        -------
        numpy.ndarray of uint64
            The words.
        """
        n = integer("n", n, least=0)
        check_fits("n", n, 8 * n, "so many words")
        out, key = np.empty(n, np.uint64), fresh_key(self)
        fill_words(key, out)
        return out

    def bit_generator(self) -> RandomWords:
        """A numpy BitGenerator over the words of a fresh key; numpy's distributions over it are not exact (README)."""
        from .bit_generator import RandomWords

        return RandomWords(self)

    def generator(self) -> np.random.Generator:
        """`np.random.Generator(self.bit_generator())`."""
        return np.random.Generator(self.bit_generator())

    @property
    def secure(self) -> bool:
        """Whether keys come from the operating system."""
        return self._seed is None

    def __repr__(self) -> str:
        return "Randomness()" if self._seed is None else f"Randomness(seed={self._seed})  # for tests: not private"

    def __getstate__(self) -> dict[str, Any]:
        made = int(repr(self._releases).removeprefix("count(").removesuffix(")"))  # a count shows it nowhere else
        return {"_seed": self._seed, "_releases": made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._seed, self._releases = state["_seed"], count(state["_releases"])


def secure_bytes() -> bytes:
    """The bytes of a key from the operating system."""
    return os.urandom(32) + (_cipher_here() if _cipher is None else _cipher)


def _secure_key() -> Key:
    """A key from the operating system."""
    return np.frombuffer(bytearray(secure_bytes()), _WORD)  # of a bytearray: writable, as kernels are compiled


def _cipher_here() -> bytes:
    """The end of the keys of this process: that of AES where the code that is compiled here has its instructions."""
    global _cipher
    from ..kernels.words import AES_HERE

    _cipher = AES_MARK.to_bytes(4, sys.byteorder) if AES_HERE else b""
    return _cipher


def _warn_once() -> None:
    global _warned
    if not _warned:
        _warned = True
        message = "Randomness(seed=...) is for tests: whoever knows the seed can remove the noise"
        warnings.warn(message, PrivacyWarning, stacklevel=3)


def fresh_key(rng: Randomness | None) -> Key:
    """The key of one release, from `rng` or, for None, from the operating system."""
    if (heard := listener()) is not None:
        return heard.key()
    if rng is None:
        return _secure_key()
    if type(rng) is Randomness:
        return rng.key()
    if not isinstance(rng, Randomness):
        raise ValueError(f"rng={shown(rng)}: must be a fastdp.Randomness or None; other generators are not secure")
    return checked_key(rng.key(), type(rng))


def origin_of(rng: Randomness | None) -> Origin:
    """Where the words of a release come from; of the seed itself it states nothing."""
    if listener() is not None:
        return SEEDED
    if isinstance(rng, Randomness):  # what is none is refused when a key is asked for
        if not getattr(rng, "secure", True):
            return SEEDED
        if type(rng) is not Randomness:
            return Origin(type(rng).__name__, cipher="")
    return SECURE_BY_AES if (_cipher_here() if _cipher is None else _cipher) else SECURE


def check_draws(count: int) -> None:
    """ValueError if there are more draws under one key than its cipher is trusted with."""
    if count > MOST_DRAWS:
        raise ValueError(f"n={shown(count)}: must be at most 2^40 random numbers in one release")


def fill_words(key: Key, out: NDArray[np.uint64]) -> None:
    """The first words of stream 0 of a key."""
    check_draws(out.size)
    from ..kernels.words import words_into

    run_chunks(lambda start, stop: words_into(key, 0, start, out[start:stop]), out.size, 1 << 18)


def word_source(key: Key) -> Callable[[int, int], int]:
    """The words of a key one by one, as a function of (stream, index)."""
    return partial(_word_one(), key)


@lru_cache(1)
def _word_one() -> Any:
    from ..kernels.words import word_one

    return word_one


__all__ = ["Randomness", "fill_words", "fresh_key", "word_source"]
