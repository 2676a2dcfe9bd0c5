"""Random words, by themselves and through numpy's Generator."""

from __future__ import annotations

from functools import partial

import numpy as np

import fastdp

from ..registry import Call, Side, faster, make_case
from ..traffic import Traffic
from .inputs import N

_case = partial(make_case, "noise")


def _our_words(n: int) -> Call:
    return lambda: fastdp.Randomness().words(n)


def _numpy_words(n: int) -> Call:
    rng = np.random.Generator(np.random.PCG64())
    return lambda: rng.integers(0, 2**64, dtype=np.uint64, size=n)


def _doubles(n: int) -> Call:
    """numpy asks for each word by itself, through a pointer."""
    rng = fastdp.Randomness().generator()
    return lambda: rng.random(n)


def _numpy_doubles(n: int) -> Call:
    rng = np.random.Generator(np.random.PCG64())
    return lambda: rng.random(n)


CASES = (
    _case(
        "words",
        "random 64-bit words, bulk",
        N,
        _our_words,
        (Side("numpy", _numpy_words), faster("numpy", avx512=4.5, avx2=1.5)),
        traffic=Traffic(copied=8, words=1, held=8),
        oracle="uniform words",
        drawn=lambda n: fastdp.Randomness().words(n),
    ),
    _case(
        "generator",
        "random() of a numpy Generator over fastdp's words, beside PCG64's",
        N,
        _doubles,
        (Side("numpy", _numpy_doubles), faster("numpy", avx512=0.8, avx2=0.6)),
        traffic=Traffic(copied=8, words=1, held=8),
        oracle="uniform numbers",
        drawn=lambda n: _doubles(n)(),
    ),
)
