"""The inverses of the room's error bounds (fastdp/answering/bounds.py) invert them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastdp import Conjunction, Domain, Randomness, bounds, marginals, release_marginals

DOMAIN = Domain(a=4, b=3, c=2, d=5)
QUERIES = [Conjunction({"a": i, "b": j}) for i in range(4) for j in range(3)]


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("variant", ["sharp", "lecture"])
def test_private_multiplicative_weights(variant: Any, delta: float) -> None:
    given: dict[str, Any] = {"max_queries": 1000, "delta": delta, "variant": variant, "beta": 0.1}
    n = bounds.private_multiplicative_weights_n(DOMAIN, alpha=0.3, epsilon=1.0, **given)
    assert bounds.private_multiplicative_weights(n, DOMAIN, alpha=0.3, epsilon=1.0, **given).alpha == 0.3
    with pytest.raises(ValueError, match="must be"):
        bounds.private_multiplicative_weights(n - 1, DOMAIN, alpha=0.3, epsilon=1.0, **given)
    epsilon = bounds.private_multiplicative_weights_epsilon(n, DOMAIN, alpha=0.3, **given)
    assert 0.999 < epsilon <= 1.0
    assert bounds.private_multiplicative_weights(n, DOMAIN, alpha=0.3, epsilon=epsilon, **given).alpha == 0.3
    with pytest.raises(ValueError, match="must be"):
        bounds.private_multiplicative_weights(n, DOMAIN, alpha=0.3, epsilon=epsilon * 0.999, **given)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_mwem(delta: float) -> None:
    given: dict[str, Any] = {"delta": delta, "beta": 0.1}

    def alpha(n: int, epsilon: float) -> float:
        found = bounds.mwem(n, DOMAIN, QUERIES, epsilon=epsilon, variant="average", **given).alpha
        return 1.0 if found is None else found

    n = bounds.mwem_n(DOMAIN, QUERIES, alpha=0.2, epsilon=1.0, **given)
    assert alpha(n, 1.0) <= 0.2 < alpha(n - 1, 1.0)
    epsilon = bounds.mwem_epsilon(n, DOMAIN, QUERIES, alpha=0.2, **given)
    assert 0.99 < epsilon <= 1.0
    assert alpha(n, epsilon) <= 0.2 < alpha(n, epsilon * 0.999)


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_release_marginals(delta: float, neighbors: Any) -> None:
    work = marginals(DOMAIN, 2)
    given: dict[str, Any] = {"delta": delta, "beta": 0.1, "neighbors": neighbors}

    def alpha(n: int, epsilon: float) -> float:
        found = bounds.release_marginals(n, DOMAIN, work, epsilon=epsilon, **given).alpha
        assert found is not None
        return found

    n = bounds.release_marginals_n(DOMAIN, work, alpha=0.01, epsilon=1.0, **given)
    assert alpha(n, 1.0) <= 0.01 < alpha(n - 1, 1.0)
    epsilon = bounds.release_marginals_epsilon(n, DOMAIN, work, alpha=0.01, **given)
    assert 0.99 < epsilon <= 1.0
    assert alpha(n, epsilon) <= 0.01 < alpha(n, epsilon * 0.99)


@pytest.mark.parametrize("objective", ["maximum", "total", (1.0, 2.0, 30.0)])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_release_marginals_with_planned_noise(neighbors: Any, objective: Any) -> None:
    domain = Domain(a=4, b=3, c=5)
    work = marginals(domain, 2)
    given: dict[str, Any] = {"delta": 1e-6, "neighbors": neighbors, "allocation": "planned", "objective": objective}

    def alpha(n: int, epsilon: float, beta: float = 0.1) -> float:
        found = bounds.release_marginals(n, domain, work, epsilon=epsilon, beta=beta, **given).alpha
        assert found is not None
        return found

    n = bounds.release_marginals_n(domain, work, alpha=0.01, epsilon=1.0, beta=0.1, **given)
    assert alpha(n, 1.0) <= 0.01 < alpha(n - 1, 1.0)
    epsilon = bounds.release_marginals_epsilon(n, domain, work, alpha=0.01, beta=0.1, **given)
    assert 0.99 < epsilon <= 1.0
    assert alpha(n, epsilon) <= 0.01 < alpha(n, epsilon * 0.99)
    # against releases: off by more with probability beta at most, 1e-6 of all 20 together
    codes = np.random.default_rng(0).integers(0, domain.sizes, (5000, 3))
    exact = [np.zeros(shape) for shape in work.shapes]
    for table, positions in zip(exact, work.positions, strict=True):
        np.add.at(table, tuple(codes[:, list(positions)].T), 1 / 5000)
    released = [
        release_marginals(codes, domain, work, epsilon=1.0, fit="least-squares", rng=Randomness(seed=seed), **given)
        for seed in range(20)
    ]
    worst = [
        max(
            float(np.abs(one.table(names, unbiased=True) * (one.n / 5000) - table).max())
            for names, table in zip(work.subsets, exact, strict=True)
        )
        for one in released
    ]
    assert max(worst) <= alpha(5000, 1.0, 5e-8)
    assert alpha(5000, 1.0, 0.5) < 1.5 * float(np.median(worst))  # and no looser than sums of chances are


def test_planned_noise_is_no_laplace_noise() -> None:
    work = marginals(DOMAIN, 2)
    with pytest.raises(ValueError, match=r"^allocation='planned': must come with Gaussian noise"):
        bounds.release_marginals(100, DOMAIN, work, epsilon=1.0, delta=0.0, allocation="planned")
    with pytest.raises(ValueError, match=r"^allocation='planned': must come with Gaussian noise"):
        bounds.release_marginals_epsilon(100, DOMAIN, work, alpha=0.1, delta=0.0, allocation="planned")
    with pytest.raises(ValueError, match=r"^allocation='auto': must be"):
        bounds.release_marginals(100, DOMAIN, work, epsilon=1.0, delta=1e-6, allocation="auto")  # type: ignore[arg-type]


def test_what_no_number_of_records_and_no_epsilon_supports() -> None:
    with pytest.raises(ValueError, match=r"^alpha=1e-300: is out of reach$"):
        bounds.private_multiplicative_weights_n(DOMAIN, alpha=1e-300, epsilon=1.0, max_queries=10)
    with pytest.raises(ValueError, match=r"^alpha=1e-05: is out of reach$"):
        bounds.private_multiplicative_weights_epsilon(10, DOMAIN, alpha=1e-5, max_queries=10)
    with pytest.raises(ValueError, match=r"^alpha=1e-05: is out of reach$"):
        bounds.mwem_epsilon(10, DOMAIN, QUERIES, alpha=1e-5)
    with pytest.raises(ValueError, match=r"^alpha=1e-05: is out of reach$"):
        bounds.release_marginals_epsilon(10, DOMAIN, marginals(DOMAIN, 2), alpha=1e-5, delta=1e-6)
    with pytest.raises(ValueError, match=r"^alpha=1e-300: is out of reach$"):
        bounds.release_marginals_n(DOMAIN, marginals(DOMAIN, 2), alpha=1e-300, epsilon=1.0, delta=1e-6)


def test_an_estimate_prints_as_a_table() -> None:
    estimate = bounds.mwem(10_000, DOMAIN, QUERIES, epsilon=1.0, variant="average")
    assert [line.split()[0] for line in repr(estimate).splitlines()] == [
        "Estimate", "alpha", "plain", "rounds", "cells", "weights", "records",
    ]  # fmt: skip
