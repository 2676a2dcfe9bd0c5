"""smartnoise-synth: MWEM, whose queries are slices of the cube of all cells, and MST. Choices are not drawn securely.

Its AIM fits a thousand steps after each of some two hundred rounds, which takes more than a quarter of an hour.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .inputs import binary_records

PACKAGES = ("smartnoise-synth", "opendp")


def mwem(n: int, *, records: int, cuboids: int, rounds: int) -> Callable[[], Any]:
    """n cells of binary columns; so many cuboids of at most three columns, each with all its slices, drawn afresh."""
    from snsynth.mwem import MWEMSynthesizer

    d = n.bit_length() - 1
    codes = binary_records(records, d).astype(int)

    def call() -> Any:
        made = MWEMSynthesizer(
            epsilon=1.0, q_count=cuboids, iterations=rounds, mult_weights_iterations=1, marginal_width=3, split_factor=d
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.fit(codes, categorical_columns=list(range(d)))
        return made.synthetic_histograms[0][0]

    return call


def mst(n: int, *, records: str, to: str, sizes: list[int], epsilon: float, delta: float) -> Callable[[], Any]:
    """A synthesis of the codes in one file, by a spanning tree; n synthetic records go to another."""
    from snsynth.mst import MSTSynthesizer

    codes = np.load(records).astype(int)

    def call() -> Any:
        made = MSTSynthesizer(epsilon=epsilon, delta=delta)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made.fit(codes, categorical_columns=list(range(len(sizes))))
        np.savez(to, made=np.asarray(made.sample(n)).astype(np.int64))

    return call


TASKS = {"mst": mst, "mwem": mwem}
