"""Numbers of persons and the choice of their rows: kernels/persons.py against plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from fastdp.kernels.persons import (
    choose_rows_into,
    count_rows_into,
    name_persons_into,
    number_keys_into,
    place_keys_into,
    scramble_one,
)
from tests.oracles.persons import kept_rows, scramble


def test_words_are_scrambled_as_splitmix_does() -> None:
    words = [0, 1, 2**63, 2**64 - 1, 0x9E3779B97F4A7C15]
    assert [int(scramble_one(np.uint64(word))) for word in words] == [scramble(word) for word in words]
    assert int(scramble_one(np.uint64(0x9E3779B97F4A7C15))) == 0xE220A8397B1DCDAF  # its first word of seed 0


@pytest.mark.parametrize("bits", [1, 3, 12, 64])
def test_keys_are_numbered_as_they_come(bits: int) -> None:
    """Through tables that fill up: each stops at half, and a larger one goes on."""
    keys = np.random.default_rng(bits).integers(0, 2**bits - 1, 3000, np.uint64, endpoint=True)
    wanted: dict[int, int] = {}
    want = [wanted.setdefault(key, len(wanted)) for key in keys.tolist()]
    out, seed = np.empty(keys.size, np.int32), np.uint64(7)
    size, done, known = 4, 0, 0
    distinct = np.empty(4096, np.uint64)
    while done < keys.size:
        table = np.full(size, -1, np.int32)
        place_keys_into(distinct, known, seed, table)
        done, known = number_keys_into(keys, seed, done, known, table, distinct, out)
        assert known <= size // 2
        size *= 2
    assert out.tolist() == want
    assert distinct[:known].tolist() == [*wanted]


@pytest.mark.parametrize("buffer", [1, 3, 64])
def test_rows_are_chosen_as_in_plain_python(buffer: int) -> None:
    rng = np.random.default_rng(buffer)
    for at_most in (1, 2, 5):
        codes = rng.integers(-1, 6, 100).astype(np.int32)
        key = rng.integers(0, 2**32, 8, np.uint32)
        first, second = key[:4].copy().view(np.uint64)
        people, out = np.empty((6, 2), np.uint64), np.empty(100, np.bool_)
        name_persons_into(np.arange(6, dtype=np.uint64), first, second, np.uint64(at_most), people)
        count_rows_into(codes, people)
        assert (people[:, 0] >> np.uint64(32)).tolist() == np.bincount(codes[codes >= 0], minlength=6).tolist()
        choose_rows_into(codes, people, np.empty(buffer, np.uint64), out)
        assert out.tolist() == kept_rows([None if code < 0 else code for code in codes.tolist()], at_most, key)
