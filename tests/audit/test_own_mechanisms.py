"""Every mechanism passes a replay, and says what it reads; and every mechanism that there is, is replayed."""

from __future__ import annotations

import warnings
from functools import cache

import pytest

from fastdp.audit import Replay, replay

from .pipelines import DATA, ELSEWHERE, FEWER, OTHER, PIPELINES, names_that_are_charged


@cache
def replayed(name: str, *, fewer: bool = False) -> Replay:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if fewer:
            return replay(PIPELINES[name], DATA, FEWER, neighbors="add-remove")
        return replay(PIPELINES[name], DATA, OTHER)


@pytest.mark.parametrize("name", PIPELINES)
def test_nothing_changes_outside_of_releases(name: str) -> None:
    found = replayed(name)
    assert found.passed, found
    assert not found.not_followed, found
    assert found.releases
    assert found.reads
    assert any(read.moved for read in found.reads), "neighbours that move nothing show nothing"
    of = name.partition(",")[0]
    assert of not in names_that_are_charged() or of in {read.mechanism for read in found.reads}


@pytest.mark.parametrize("name", ["laplace of floats", "sum", "count", "bincount", "count_by", "sum_by", "median"])
def test_guarantees_for_replacements_say_nothing_of_removals(name: str) -> None:
    kinds = {each.kind for each in replayed(name, fewer=True).findings}
    assert "charge" in kinds


def test_every_name_that_is_charged_is_replayed() -> None:
    charged = names_that_are_charged()
    assert len(charged) > 20
    assert charged - {name.partition(",")[0] for name in PIPELINES} - ELSEWHERE == set()
