"""Planned noise with a fault in it: each variant of the code must fail the check that the code passes.

The check is that of test_residual_planning.py: what the guarantee states is at least what the worst pair of neighbours
can be told apart by, found by brute force over vectors that an oracle makes; and the plan is the same for all records.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
import pytest

from fastdp import Domain, Randomness, marginals, release_marginals
from fastdp.answering import release_marginals as release
from fastdp.answering import residual_plan, residual_prices, table_noise
from fastdp.answering.least_squares_fit import LeastSquares
from fastdp.answering.residual_plan import plan_residuals
from tests.answering.test_residual_planning import brute_force

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")
MIXED = Domain(a=3, b=2, c=4)


@pytest.fixture(autouse=True)
def _nothing_is_remembered() -> Any:
    """What the plans and prices of a variant were must not be taken for those of the code."""
    remembered = (residual_prices.distance_square, residual_prices._differences, residual_plan._worst,
                  residual_plan._shares)  # fmt: skip
    for function in remembered:
        function.cache_clear()
    yield
    for function in remembered:
        function.cache_clear()


def stated_and_true(relation: Any, domain: Domain = MIXED) -> tuple[float, float]:
    """The rho of the guarantee, and the largest of all pairs of neighbours."""
    workload = marginals(domain, min(2, len(domain)))
    plan = plan_residuals(LeastSquares(workload), 1.0, 1e-6, relation)
    true = brute_force(plan.sets, domain, plan.bits, 1 / np.array(plan.sigmas) ** 2, relation) / 2
    return min(form.rho for form in plan.guarantee.forms()), true  # type: ignore[attr-defined]


def _without_rounding(patch: pytest.MonkeyPatch) -> None:
    """The price of a residual on the real line: a table's, times prod (1 - 1/s)."""

    def distance_square(shape: Any, bits: int, differ: int | None = None) -> Any:
        own = 4**bits * prod(1 - Fraction(1, size) for size in shape)
        if differ is None:
            return own
        met = [size for i, size in enumerate(shape) if differ >> i & 1]
        return 2 * own * (1 - prod((Fraction(-1, size - 1) for size in met), start=Fraction(1)))

    patch.setattr(residual_prices, "distance_square", distance_square)


def _as_add_remove(patch: pytest.MonkeyPatch) -> None:
    """Replaced records at the price of a record more or less."""
    real = residual_plan.worst_pair
    patch.setattr(residual_plan, "worst_pair", lambda *args, known: real(*args, known=False))


def _as_twice_add_remove(patch: pytest.MonkeyPatch) -> None:
    """Replaced records at twice that price, as those of whole tables: one binary attribute costs four times."""
    real = residual_plan.worst_pair

    class Twice(residual_prices.WorstPair):
        fixed = True

        def __init__(self, pair: Any) -> None:
            self.pair = pair

        def bound(self, numbers: Any) -> float:
            return float(2 * self.pair.bound(numbers))

        def prices(self, numbers: Any) -> Any:
            return 2 * self.pair.prices(numbers)

    patch.setattr(residual_plan, "worst_pair", lambda *args, known: Twice(real(*args, known=False)))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_code_states_what_is_true(relation: Any) -> None:
    stated, true = stated_and_true(relation)
    assert true <= stated <= true * (1 + 1e-9)


@pytest.mark.parametrize(
    ("mutant", "relation"),
    [
        (_without_rounding, "add-remove"), (_without_rounding, "replace-one"), (_as_add_remove, "replace-one"),
    ],
)  # fmt: skip
def test_prices_that_are_too_low_are_found(mutant: Any, relation: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    stated, true = stated_and_true(relation)
    assert stated < true * (1 - 1e-7)


def test_twice_the_price_is_too_low_where_one_binary_attribute_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Domain(a=2)
    stated, true = stated_and_true("replace-one", one)
    assert true <= stated
    _as_twice_add_remove(monkeypatch)
    stated, true = stated_and_true("replace-one", one)
    assert stated < 0.6 * true


# --- the plan is public


def plan_for(n: int, patch: pytest.MonkeyPatch, **options: Any) -> Any:
    """What the tables of n records are measured with."""
    seen: list[Any] = []

    def noted(self: Any, counts: Any, key: Any) -> Any:
        seen.append((self.plan.sets, self.plan.sigmas, self.plan.bits))
        return real(self, counts, key)

    real = table_noise.PlannedNoise.measure
    codes = np.random.default_rng(1).integers(0, [3, 2, 4], (n, 3))
    with patch.context() as inside:
        inside.setattr(table_noise.PlannedNoise, "measure", noted)
        release_marginals(codes, MIXED, marginals(MIXED, 2), epsilon=1.0, delta=1e-6, rng=Randomness(seed=1), **options)
    (found,) = seen
    return found


def _objective_of_records(patch: pytest.MonkeyPatch) -> None:
    """Tables matter as much as there are records in them, which is private."""
    rows: list[Any] = []
    opened: Callable[..., Any] = release.rows_of
    planned: Callable[..., Any] = release.planned_noise

    def rows_of(data: Any) -> Any:
        rows.append(opened(data))
        return rows[-1]

    def planned_noise(*args: Any) -> Any:
        given = list(args)
        given[7] = tuple(1.0 + (rows[-1].n + i) % 3 for i in range(3))
        return planned(*given)

    patch.setattr(release, "rows_of", rows_of)
    patch.setattr(release, "planned_noise", planned_noise)


@pytest.mark.parametrize("mutant", [None, _objective_of_records])
def test_the_plan_is_that_of_any_records(mutant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"neighbors": "add-remove", "allocation": "planned", "fit": "least-squares"}
    if mutant is not None:
        mutant(monkeypatch)
    plans = [plan_for(n, monkeypatch, **options) for n in (50, 51, 5000)]
    assert (plans[0] == plans[1] == plans[2]) == (mutant is None)
