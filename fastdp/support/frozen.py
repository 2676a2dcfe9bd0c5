"""Objects and arrays that do not change: who holds one cannot set what decides noise, price or what kernels read."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


class Frozen:
    """An object whose public attributes are set once, in its constructor."""

    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        if name[:1] != "_" and hasattr(self, name):
            self.__delattr__(name)
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{name}: cannot be set: a {type(self).__name__} does not change; make another")


def frozen(array: NDArray[T]) -> NDArray[T]:
    """A copy of an array of numbers or text that nobody can write to: its memory is a `bytes`."""
    if not array.size or array.dtype.hasobject:  # which numpy makes of no buffer
        array = array.copy()
        array.flags.writeable = False
        return array
    made: NDArray[T] = np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)
    return made
