"""Which noise tables get (fastdp/answering/marginal_noise.py): by true variances, the relation and who pays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Budget, Domain, PureDP, Randomness
from fastdp.answering.marginal_noise import marginal_noise
from fastdp.answering.queries.marginals import Marginals
from fastdp.randomness.noise_plans import LaplacePlan, laplace_variance
from tests.conftest import Watched

WIDE = Domain({f"a{i}": 2 + i % 3 for i in range(20)})


def tables(count: int) -> Marginals:
    return Marginals(WIDE, [[name] for name in WIDE.names[:count]])


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 7.0, 300.0])
def test_the_variance_of_discrete_laplace_noise(scale: float) -> None:
    far = np.arange(1, 60 * math.ceil(scale) + 60)
    weights = np.exp(-far / scale)
    direct = 2 * (far**2 * weights).sum() / (1 + 2 * weights.sum())
    assert laplace_variance(scale) == pytest.approx(direct, rel=1e-10)


@pytest.mark.parametrize(
    ("epsilon", "neighbors", "last"),
    [
        (0.1, "add-remove", 6), (1.0, "add-remove", 8), (10.0, "add-remove", 15),
        (0.1, "replace-one", 3), (1.0, "replace-one", 4), (10.0, "replace-one", 7),
    ],
)  # fmt: skip
def test_auto_takes_the_smaller_variance(epsilon: float, neighbors: Any, last: int) -> None:
    for count in range(1, 21):
        given = (tables(count), epsilon, 1e-6, neighbors)
        by_law = {kind: marginal_noise(*given, kind) for kind in ("laplace", "gaussian")}  # type: ignore[arg-type]
        chosen = marginal_noise(*given)
        assert chosen.sigma == min(noise.sigma for noise in by_law.values())
        assert isinstance(chosen.plan, LaplacePlan) == (count <= last)
        pure = isinstance(chosen.guarantee, PureDP)
        assert pure == (count <= last)
        assert chosen.guarantee.implies(fastdp.ApproxDP(epsilon, 1e-6, neighbors=neighbors))


def test_one_table_at_large_epsilon_by_true_variances() -> None:
    both = [marginal_noise(tables(1), 10.0, 1e-6, "add-remove", kind).sigma for kind in ("laplace", "gaussian")]  # type: ignore[arg-type]
    assert both[1] / both[0] > 50  # by the continuous formula it would be 3.8


def released(count: int = 2, **options: Any) -> Any:
    codes = np.zeros((40, 20), np.uint8)
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "rng": Randomness(seed=2), "fit": None} | options
    return fastdp.release_marginals(codes, WIDE, tables(count), **given)


def test_who_pays_decides() -> None:
    assert released().guarantee == PureDP(1.0)
    assert not isinstance(released(noise="gaussian").guarantee, PureDP)
    assert released(8, noise="laplace").guarantee == PureDP(1.0)
    assert released(8).sigma < released(8, noise="laplace").sigma
    for theorem, pure in (("basic", True), ("zcdp", False), ("gaussian", False), ("best", False)):
        budget = Budget(epsilon=3.0, delta=1e-5, theorem=theorem)
        made = released(budget=budget)
        assert isinstance(made.guarantee, PureDP) == pure
        assert budget.releases[0].guarantee == made.guarantee
        with Budget(epsilon=3.0, delta=1e-5), Budget(epsilon=3.0, delta=1e-5, theorem=theorem):
            assert isinstance(released().guarantee, PureDP) == pure
    declared = Budget(epsilon=3.0, delta=1e-5, declared=[(released(noise="gaussian").guarantee, 2)])
    assert not isinstance(released(budget=declared).guarantee, PureDP)
    asked = Budget(epsilon=9.0, delta=1e-5, theorem="zcdp")
    assert released(budget=asked, noise="laplace").guarantee == PureDP(1.0)


def test_two_tables_of_one_attribute_have_half_the_deviation() -> None:
    before = marginal_noise(tables(2), 1.0, 1e-6, "add-remove", "gaussian")
    assert released(neighbors="add-remove").sigma <= 0.5 * before.sigma


def test_bounds_know_the_noise() -> None:
    known = [
        fastdp.bounds.release_marginals(500, WIDE, tables(2), epsilon=1.0, delta=1e-6, noise=noise, fit=None).alpha
        for noise in ("auto", "laplace", "gaussian")
    ]
    assert known[0] == known[1] != known[2]


def test_bad_noise() -> None:
    with pytest.raises(ValueError, match=r"^noise='uniform': must be one of 'auto', 'laplace', 'gaussian'"):
        released(noise="uniform", rng=Watched())
    with pytest.raises(ValueError, match=r"^noise='gaussian': must come with delta > 0"):
        released(noise="gaussian", delta=0.0, rng=Watched())
    with pytest.raises(ValueError, match=r"^noise=None"):
        fastdp.bounds.release_marginals(5, WIDE, tables(2), epsilon=1.0, delta=1e-6, noise=None)  # type: ignore[arg-type]
