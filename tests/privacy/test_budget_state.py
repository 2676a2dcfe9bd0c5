"""What decides a price cannot be set, copied, subclassed or written into, by anything short of private names."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from dataclasses import FrozenInstanceError, dataclass, replace
from fractions import Fraction
from math import inf, nextafter
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import ZCDP, AllOf, ApproxDP, BoundedRange, Budget, BudgetExceeded, PureDP, Renyi
from fastdp.privacy import ledger
from fastdp.privacy.reservations import Reservation

OWN = ("epsilon", "delta", "theorem", "neighbors", "refusals", "refused", "spent", "left", "releases")


def lap(epsilon: float = 0.25, **options: Any) -> Any:
    return fastdp.laplace(0, sensitivity=1, epsilon=epsilon, **options)


def gauss(**options: Any) -> Any:
    return fastdp.gaussian([1, 2], sensitivity=1, epsilon=0.5, delta=1e-7, **options)


# --- a budget


@pytest.mark.parametrize("name", [*OWN, "fits", "note", "__class__", "__dict__", "__exit__", "_epsilon", "_accounts"])
def test_nothing_of_a_budget_is_set_or_deleted(name: str) -> None:
    class Free(Budget):
        __slots__ = ()

    budget = Budget(epsilon=1, delta=1e-6)
    before = repr(budget)
    with pytest.raises(AttributeError, match="a Budget cannot be changed; make another"):
        setattr(budget, name, Free)
    with pytest.raises(AttributeError, match="a Budget cannot be changed; make another"):
        delattr(budget, name)
    assert repr(budget) == before
    with pytest.raises(TypeError):
        vars(budget)


def test_a_budget_is_made_once() -> None:
    budget = Budget(epsilon=1)
    lap(budget=budget)
    with pytest.raises(AttributeError, match="cannot be changed"):
        budget.__init__(epsilon=100.0)  # type: ignore[misc]
    assert budget.spent == PureDP(0.25)
    assert budget.epsilon == 1


def test_two_budgets_are_two_whatever_they_call_equal() -> None:
    class Equal(Budget):
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    outer, inner = Equal(epsilon=1), Equal(epsilon=1)
    with outer, inner:
        lap()
    assert outer.spent.epsilon == inner.spent.epsilon == 0.25  # type: ignore[attr-defined]


def test_overridden_properties_change_no_price() -> None:
    class Generous(Budget):
        epsilon = property(lambda self: 100.0)  # type: ignore[assignment]
        neighbors = property(lambda self: "add-remove")  # type: ignore[assignment]
        refusals = property(lambda self: 10**6)  # type: ignore[assignment]
        left = property(lambda self: PureDP(100.0))  # type: ignore[assignment]

        def fits(self, guarantee: Any) -> bool:
            return True

    budget = Generous(epsilon=1)
    with pytest.raises(BudgetExceeded):
        lap(2.0, budget=budget)
    with pytest.raises(ValueError, match="this budget is for 'replace-one'"):
        lap(neighbors="add-remove", budget=budget)


# --- rows


def test_rows_keep_what_was_charged() -> None:
    budget, bits = Budget(epsilon=1), [3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fastdp.learn_box(np.array([[5], [1]]), [0, 1], domain_bits=bits, epsilon=0.25, budget=budget)
    bits.append(4)
    row = budget.releases[0]
    assert row.parameters["domain_bits"] == (3,)
    with pytest.raises(FrozenInstanceError):
        row.guarantee = PureDP(0.0)  # type: ignore[misc]
    with pytest.raises(TypeError):
        row.parameters["domain_bits"] = (1,)  # type: ignore[index]
    assert pickle.loads(pickle.dumps(row)).parameters == row.parameters


def write_into(guarantee: Any) -> None:
    """What Python lets anybody do to an object that has a dictionary."""
    for part in (*getattr(guarantee, "parts", ()), guarantee):
        for name in ("epsilon", "delta", "rho", "eta"):
            if name in vars(part):
                vars(part)[name] = 1e-9


@pytest.mark.parametrize("copied", [lambda x: x, copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_whoever_writes_into_a_guarantee_changes_no_price(copied: Any) -> None:
    """Mechanisms remember the guarantees of parameters that come again; what they hand out is not what is charged."""
    scores = np.arange(5.0)
    releases = (
        lap,
        gauss,
        lambda **o: fastdp.gaussian([0.5], sensitivity=1, rho=0.01, **o),
        lambda **o: fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=0.25, **o),
        lambda **o: fastdp.AboveThreshold(5, sensitivity=1, epsilon=0.25, **o),
        lambda **o: fastdp.GumbelMax(sensitivity=1, epsilon=0.25, k=2, **o),
        lambda **o: fastdp.vector_sum(np.ones((9, 2)), clip=1.0, epsilon=0.25, delta=1e-7, **o),
    )
    for release in releases:
        first, second = (Budget(epsilon=9, delta=1e-6, theorem="zcdp") for _ in range(2))
        result = release(budget=first)
        for each in (first.releases[0], first.releases[0], result):
            if hasattr(each, "guarantee"):
                write_into(copied(each.guarantee) if copied is not copy.copy else each.guarantee)
        gc.collect()
        before = repr(first)
        release(budget=second)
        assert repr(first) == repr(second) == before


# --- guarantees


@pytest.mark.parametrize("kind", [PureDP, ApproxDP, BoundedRange, Renyi, AllOf])
def test_the_kinds_of_guarantees_are_those_that_are_proven(kind: Any) -> None:
    with pytest.raises(TypeError, match="Free: must not derive from a guarantee"):
        type("Free", (kind,), {"forms": lambda self: PureDP(0.0).forms(), "__module__": __name__})
    with pytest.raises(TypeError, match="must not derive"):

        @dataclass(frozen=True)
        class Cheap(kind):  # type: ignore[misc]
            pass


def test_a_guarantee_is_checked_when_it_is_replaced() -> None:
    guarantee = PureDP(0.25)
    with pytest.raises(FrozenInstanceError):
        guarantee.epsilon = 0.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="epsilon"):
        replace(guarantee, epsilon=-1.0)
    with pytest.raises(ValueError, match="neighbors"):
        replace(guarantee, neighbors="none")  # type: ignore[arg-type]


class Lying(float):
    """A number whose text, comparisons and conversion say different things."""

    def __repr__(self) -> str:
        return "1e-09"

    __str__ = __repr__

    def __lt__(self, other: object) -> bool:
        return True

    __le__ = __ge__ = __gt__ = __lt__
    __hash__ = float.__hash__


def test_numbers_of_other_classes_are_charged_as_they_are_used() -> None:
    budget = Budget(epsilon=Lying(1.0))
    assert type(budget.epsilon) is float
    lap(Lying(0.25), budget=budget)
    assert budget.spent == PureDP(0.25)
    assert type(budget.releases[0].parameters["epsilon"]) is float
    assert type(PureDP(Lying(0.5)).epsilon) is float


# --- signal handlers and finalisers


def test_handlers_and_finalisers_release_on_what_is_being_charged(run_python: Any) -> None:
    """On a budget that is being charged by `budget=`, in its open block, and in blocks of their own within it."""
    printed = run_python("""
import gc, signal
import fastdp
from fastdp import Budget, laplace

outer, inner, b = Budget(epsilon=1e6), Budget(epsilon=1e6), Budget(epsilon=1e6)
count = dict.fromkeys(["outer", "inner", "b"], 0)

def once(within):
    laplace(1, sensitivity=1, epsilon=0.125, budget=b)
    count["b"] += 1
    if within:  # as often as the block around is open
        laplace(1, sensitivity=1, epsilon=0.125)
        count["outer"] += 1

def nested():
    own = Budget(epsilon=1e6)
    with own:
        laplace(1, sensitivity=1, epsilon=0.125)
    count["outer"] += 1
    assert own.spent.epsilon >= 0.125  # a finaliser may come in between

class Late:
    def __init__(self):
        self.me = self
    def __del__(self):
        once(True)

handled = 0
def handler(*_):
    global handled
    handled += 1
    once(True)
    nested()
    signal.setitimer(signal.ITIMER_REAL, 0.0004)

gc.set_threshold(50)
with outer:
    once(True)
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0004)
    while handled < 300:
        Late()
        once(True)
        try:
            with inner:
                pass
        except RuntimeError:
            pass
    signal.setitimer(signal.ITIMER_REAL, 0)
    gc.collect()
print(count["outer"] - len(outer.releases), count["b"] - len(b.releases))
print(outer.spent.epsilon - 0.125 * len(outer.releases), b.spent.epsilon - 0.125 * len(b.releases))
from fastdp.privacy import blocks
print(blocks.counting(None), count["b"] > 600)
""")
    assert printed.split() == ["0", "0", "0.0", "0.0", "False", "True"]


# --- the ends of float64


@pytest.mark.parametrize("theorem", ["basic", "zcdp", "best"])
@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e-6, 0.9])
@pytest.mark.parametrize(
    "epsilon", [5e-324, 1e-323, 1e-320, 2.0**-1022, 1e-300, 1e300, 1.7e308, 1.7976931348623157e308]
)
def test_what_is_left_at_the_ends_of_float64(epsilon: float, delta: float, theorem: Any) -> None:
    """It is found, it fits, and not much more does: exactly that where it is a remainder."""
    if (theorem == "zcdp" and not delta) or (theorem != "basic" and delta == 5e-324):
        return  # which is refused
    asked = 0

    class Counted(Budget):
        def _has_room(self, sums: Any) -> bool:
            nonlocal asked
            asked += 1
            assert asked < 20_000
            return super()._has_room(sums)

    budget = Counted(epsilon=epsilon, delta=delta, theorem=theorem)
    for _ in range(4):
        left = budget.left.epsilon
        if not left:
            break
        assert budget.fits(PureDP(left))
        more = max(nextafter(left, inf), left * (1 + 1e-8))
        assert more == inf or not budget.fits(PureDP(nextafter(left, inf) if theorem == "basic" else more))
        if left < 1e308:
            with pytest.raises(BudgetExceeded, match="would fit"):
                spend(budget, 1.7976931348623157e308)
        spend(budget, left if left < 1e-323 else left / 2)
    assert asked < 20_000


def spend(budget: Budget, epsilon: float) -> None:
    reservation = Reservation(budget, PureDP(epsilon), "test", {})
    reservation.commit()
    reservation.close()


# --- prices are remembered by their numbers


@pytest.mark.parametrize(
    "pair",
    [
        (PureDP(0.3), PureDP(0.30000000000000004)),
        (PureDP(0.3), BoundedRange(0.3)),
        (ApproxDP(0.3, 1e-9), ApproxDP(0.3, 2e-9)),
        (ZCDP(0.02), ZCDP(0.02, mu=0.2)),
        (PureDP(0.3) & ZCDP(0.01), ZCDP(0.01) & BoundedRange(0.3)),
        (Renyi.laplace(2.0), Renyi.laplace(3.0)),
    ],
    ids=str,
)
def test_what_a_charge_costs_is_that_of_its_own_guarantee(pair):
    """Equal numbers share what was computed; another kind, another number or another mu does not."""
    for first, second in (pair, pair[::-1]):
        ledger._prices.clear()
        for guarantee in (first, second, first):
            charge, forms = ledger.Charge(guarantee), [form for form in guarantee.forms() if not form.leak]
            assert charge.amounts["pure"] == min((form.pure for form in forms), default=inf)
            assert charge.amounts["rho"] == min((form.rho for form in forms), default=inf)
            assert charge.amounts["delta"] == min(form.leak for form in guarantee.forms())
            mu = min((form.least_mu for form in forms), default=inf)
            assert charge.exact("mu") == (None if mu == inf else (Fraction(mu) ** 2).as_integer_ratio())
    with pytest.raises(TypeError):
        ledger.Charge(pair[0]).amounts["rho"] = 0.0


def test_sums_are_exact_whatever_the_denominators():
    some = [0.1, 0.3, 1e-300, 7.0, 0.125, 1e-9, 123456.789] * 30
    sums = ledger.Sums(("epsilon", "rho"))
    for epsilon in some:
        sums = sums.plus(ledger.Charge(PureDP(epsilon)))
    assert sums._sum("epsilon") == sum(Fraction(repr(epsilon)) for epsilon in some)
    assert sums._sum("rho") == sum(Fraction(PureDP(epsilon).to_zcdp().rho) for epsilon in some)


def test_prices_do_not_pile_up():
    ledger._prices.clear()
    for i in range(2 * ledger._MOST_PRICES):
        ledger.Charge(PureDP(1.0 + i))
    assert len(ledger._prices) <= ledger._MOST_PRICES
