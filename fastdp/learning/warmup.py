"""What `fastdp.warmup` calls of this room: boxes and conjunctions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..kernels import literals
from ..randomness.keys import Randomness
from ..records.packed import pack
from ..support.warmup import Steps
from .all_boxes import BoxChoice
from .conjunctions_exhaustive import choose_conjunction
from .examples import Examples


def steps() -> Steps:
    """One step for each learner with kernels of its own."""
    return [("boxes", _choose_box), ("conjunctions", _choose_conjunction)]


def _choose_box() -> None:
    key = Randomness().key()
    BoxChoice(np.zeros((1, 1), np.uint64), np.ones(1, np.bool_), (1,), Fraction(1)).draw(key)


def _choose_conjunction() -> None:
    y = np.array([1, 0, 1])
    examples = Examples(pack(np.eye(3, 2, dtype=np.uint8)), y)
    examples.read(keep=True)
    choose_conjunction(examples, 2, 1.0, Randomness().key, lambda *_: None)
    literals.unrank_into(0, np.empty(1, np.int64), 1)  # of a choice that is no constant
    numbers = np.zeros(0, np.int64), np.zeros(0, np.int64)
    table = np.zeros((2, 2), np.uint64)
    for columns in (table, table[:, :1]):  # of all words, and of some, whose rows lie apart
        one = columns[0].copy()
        literals.satisfying_into(columns, *numbers, one)
        literals.count_among_into(columns, one, one, np.zeros((2, 2), np.int64))
        literals.count_falsified_into(columns, 64, one, *numbers, np.zeros((2, 5), np.int64))
        prefixes = np.zeros((1, literals.WIDE), np.uint64)
        literals.count_subsets_into(columns, one, 1, np.zeros(2, np.int64), prefixes, np.zeros(2, np.int64))
