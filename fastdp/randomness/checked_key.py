"""The check of keys that a source of the caller's own gives: kernels take its length for its cipher."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..kernels.layout import AES_KEY, AES_MARK, CHACHA20_KEY


def checked_key(key: Any, source: type) -> NDArray[np.uint32]:
    """The same key in an array that nobody else holds; ValueError if it is none, without showing it."""
    if isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.dtype.isnative:
        own = np.array(key)
        if own.shape == (CHACHA20_KEY,) or (own.shape == (AES_KEY,) and own[-1] == AES_MARK):
            return own
    raise ValueError(
        f"rng: key() of {source.__name__}: must return a numpy array of 8 words, uint32, or a key that fastdp made"
    )
