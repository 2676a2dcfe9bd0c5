"""The one way to pay and to draw (fastdp/randomness/charged_keys.py): no key without a charge, and the reverse."""

from __future__ import annotations

from contextlib import suppress

import pytest

from fastdp import Budget, BudgetExceeded, PureDP, Randomness
from fastdp.randomness.charged_keys import ChargedKeys

HALF = PureDP(0.5)


class Failing(Randomness):
    def key(self):
        raise OSError("no random bits")


def keys_of(budget: Budget, rng: Randomness | None = None) -> ChargedKeys:
    return ChargedKeys("test", HALF, {"epsilon": 0.5}, budget, rng)


def test_the_charge_is_reserved_before_and_final_at_the_first_key() -> None:
    budget = Budget(epsilon=1)
    with keys_of(budget) as keys:
        assert (budget.spent, len(budget.releases)) == (HALF, 0)
        first = keys.take()
        assert (budget.spent, len(budget.releases)) == (HALF, 1)
        assert keys.take().tolist() != first.tolist()
    assert (budget.spent, len(budget.releases)) == (HALF, 1)
    assert budget.releases[0].parameters == {"epsilon": 0.5}


def test_without_a_key_nothing_is_charged() -> None:
    budget = Budget(epsilon=1)
    with keys_of(budget):
        pass
    with pytest.raises(ValueError, match="wrong record"), keys_of(budget):
        raise ValueError("wrong record")
    assert (budget.spent, len(budget.releases)) == (PureDP(0), 0)


def test_an_error_after_the_first_key_costs_what_was_asked() -> None:
    budget = Budget(epsilon=1)
    with suppress(ValueError), keys_of(budget) as keys:
        keys.take()
        raise ValueError("late")
    assert (budget.spent, len(budget.releases)) == (HALF, 1)


def test_a_source_without_bits_costs_nothing() -> None:
    budget = Budget(epsilon=1)
    with pytest.raises(OSError, match="no random bits"), keys_of(budget, Failing()) as keys:
        keys.take()
    assert budget.spent == PureDP(0)


def test_draws_ahead_are_paid_for_at_the_end_of_the_block() -> None:
    """A mechanism that forgets to commit is charged all the same."""
    budget = Budget(epsilon=1)
    with keys_of(budget) as keys:
        keys.take_ahead()
        assert not budget.releases
    assert (budget.spent, len(budget.releases)) == (HALF, 1)


def test_an_error_gives_back_what_was_drawn_ahead() -> None:
    budget = Budget(epsilon=1)
    with suppress(ValueError), keys_of(budget) as keys:
        keys.take_ahead()
        raise ValueError("wrong score")
    assert (budget.spent, len(budget.releases)) == (PureDP(0), 0)


@pytest.mark.parametrize("call", ["take", "take_ahead", "commit"])
@pytest.mark.parametrize("charged", [True, False])
def test_there_are_no_keys_after_the_block(call: str, charged: bool) -> None:
    with ChargedKeys("test", HALF, {}, Budget(epsilon=1) if charged else None, None) as keys:
        pass
    with pytest.raises(RuntimeError, match="this release has ended"):
        getattr(keys, call)()


def test_what_does_not_fit_is_refused_before_the_block() -> None:
    budget = Budget(epsilon=0.25)
    with pytest.raises(BudgetExceeded), keys_of(budget):
        raise AssertionError("the block began")
    assert budget.spent == PureDP(0)
