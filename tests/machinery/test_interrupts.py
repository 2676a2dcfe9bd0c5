"""The suite of interrupts can fail: each of its invariants, broken on purpose, is found."""

from __future__ import annotations

import pytest
from numba.core.compiler_lock import global_compiler_lock

import fastdp

from .interrupts import Suite


@pytest.fixture
def budget() -> fastdp.Budget:
    return fastdp.Budget(epsilon=1e6, delta=0.5)


def found(budget: fastdp.Budget, returned: int = 0) -> str:
    suite = Suite(1)
    suite.check("call", budget, returned)
    return " ".join(suite.failures)


def test_a_budget_that_is_as_it_should_be(budget: fastdp.Budget) -> None:
    fastdp.laplace(1, sensitivity=1, epsilon=1.0, budget=budget)
    assert found(budget, 1) == ""


def test_a_block_that_is_left_open(budget: fastdp.Budget) -> None:
    budget.__enter__()
    try:
        assert "cannot be used again" in found(budget)
    finally:
        budget.__exit__(None, None, None)


def test_a_release_that_is_not_listed(budget: fastdp.Budget) -> None:
    assert "1 returned, 0 listed" in found(budget, 1)


def test_a_lock_that_is_held(budget: fastdp.Budget) -> None:
    with global_compiler_lock:
        assert "lock is held" in found(budget)
