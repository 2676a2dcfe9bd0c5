"""The check of keys that a source of the caller's own gives: kernels read eight words wherever a key lies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def checked_key(key: Any, source: type) -> NDArray[np.uint32]:
    """The same key in an array that nobody else holds; ValueError if it is none, without showing it."""
    if isinstance(key, np.ndarray) and key.dtype == np.uint32 and key.dtype.isnative and key.shape == (8,):
        return np.array(key)
    raise ValueError(f"rng: key() of {source.__name__}: must return a numpy array of 8 words, uint32")
