"""The best of several private runs: the law of their number, the price by enumeration, mutants that cost more."""

from __future__ import annotations

import threading
from collections import Counter
from math import exp, inf, log

import numpy as np
import pytest

import fastdp
from fastdp import AllOf, ApproxDP, Budget, BudgetExceeded, DomainError, PureDP, Randomness, best_of, bounds
from fastdp.mechanisms.private_tuning import number_of_runs
from fastdp.privacy import ORDERS, best_of_runs
from fastdp.privacy.best_of_runs import parameter_of, rho_of_run


def logarithmic(m: int, most: int) -> np.ndarray:
    j = np.arange(1, most + 1)
    return (1 - 1 / m) ** j / (j * log(m))


def released(q: np.ndarray, scores: np.ndarray, power: object) -> np.ndarray:
    """The law of the best of K runs with law q, by the generating function of K; equal scores: the first run."""
    out = np.zeros_like(q)
    for score in np.unique(scores):
        tied = scores == score
        below, there = q[scores < score].sum(), q[tied].sum()
        if there:
            out[tied] = q[tied] / there * (power(below + there) - power(below))
    return out


def of_logarithmic(m: float):
    return lambda x: -np.log1p(-(1 - 1 / m) * x) / log(m)


def neighbours(generator: np.random.Generator, outputs: int, epsilon: float):
    """A law and one whose ratios to it are at most e^epsilon, both ways."""
    weights = generator.random(outputs) ** 6 + 1e-9
    first, second = (weights * np.exp(epsilon / 2 * generator.choice([-1, 1], outputs)) for _ in range(2))
    first, second = first / first.sum(), second / second.sum()
    while np.abs(np.log(first / second)).max() > epsilon:
        second = np.sqrt(first * second)
        second /= second.sum()
    return first, second


# --- the number of runs


@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_number_of_runs_has_the_logarithmic_law(k):
    """Chi-square of 6,000 draws, wrong for a right law with probability 1e-6; a geometric law is seen."""
    m, rng, draws = parameter_of(k), Randomness(seed=k), 6_000
    counts = Counter(number_of_runs(m, rng.key()) for _ in range(draws))
    cells = 6

    def statistic(law: np.ndarray) -> float:
        expected = np.append(law[:cells], 1 - law[:cells].sum()) * draws
        found = np.array([counts[j] for j in range(1, cells + 1)])
        found = np.append(found, draws - found.sum())
        return float(((found - expected) ** 2 / expected).sum())

    assert statistic(logarithmic(m, 100)) < 40  # 6 degrees of freedom: 1e-6 at 38
    mean = (m - 1) / log(m)
    assert statistic((1 - 1 / mean) ** np.arange(100) / mean) > 60
    assert mean >= k > (m - 2) / log(m - 1) if m > 2 else mean >= k


def test_draws_that_few_bits_do_not_decide(monkeypatch):
    """The same number whatever the bits that a look begins with."""
    from fastdp.mechanisms import private_tuning

    keys = [Randomness(seed=3).key() for _ in range(60)]
    expected = [number_of_runs(36, key) for key in keys]
    for bits in (2, 7, 1000):
        monkeypatch.setattr(private_tuning, "_BITS", bits)
        assert [number_of_runs(36, key) for key in keys] == expected


# --- the price, by enumeration


def test_pure_prices_hold_and_are_attained():
    generator = np.random.default_rng(1)
    worst = 0.0
    for _ in range(3_000):
        epsilon = generator.choice([0.1, 1.0, 3.0])
        outputs, m = generator.integers(2, 6), generator.choice([2, 36, 10**6])
        first, second = neighbours(generator, outputs, epsilon)
        scores = generator.integers(0, 4, outputs)
        a, b = (released(q, scores, of_logarithmic(m)) for q in (first, second))
        worst = max(worst, float(np.abs(np.log(a / b)).max() / epsilon))
    assert worst <= 2 + 1e-9
    a, b = (released(q, np.arange(3), of_logarithmic(1e9)) for q in hard(0.1))
    assert 1.99 < np.abs(np.log(a / b)).max() / 0.1 <= 2 + 1e-9


def hard(epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """A rare output, which is less rare for the neighbour, below a likelier one, which is rarer for it."""
    up, down = 1e-6 * np.array([1, exp(epsilon)]), 1e-3 * np.array([exp(epsilon), 1])
    return tuple(np.array([1 - y - above, y, above]) for y, above in zip(up, down, strict=True))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("name", "power"),
    [
        ("a fixed number of runs", lambda x: x**20),
        ("a geometric number", lambda x: x / 10**6 / (1 - x * (1 - 1 / 10**6))),
        ("a Poisson number", lambda x: np.exp(20 * (x - 1))),
    ],
)
def test_other_laws_cost_more(name, power):
    """Mutants that would be charged twice epsilon and are not worth it."""
    generator, epsilon, worst = np.random.default_rng(2), 1.0, 0.0
    pairs = [hard(epsilon), *(neighbours(generator, int(generator.integers(2, 6)), epsilon) for _ in range(1_000))]
    for pair in pairs:
        a, b = (released(q, np.arange(len(q)), power) for q in pair)
        kept = (a > 0) & (b > 0)
        worst = max(worst, float(np.abs(np.log(a[kept] / b[kept])).max()))
    assert worst > 2.1 * epsilon


def divergence(first: np.ndarray, second: np.ndarray, order: float) -> float:
    logs = order * np.log(first) + (1 - order) * np.log(second)
    return float((logs.max() + np.log(np.exp(logs - logs.max()).sum())) / (order - 1))


def test_renyi_prices_hold():
    """Divergences of what is released, beside the bound from the divergences of a run; without ln E[K] it fails."""
    generator, orders = np.random.default_rng(3), [1.5, 2.0, 4.0, 16.0, 64.0]
    failed_without = 0
    for _ in range(400):
        outputs, m = int(generator.integers(2, 6)), int(generator.choice([2, 36, 1000]))
        first, second = neighbours(generator, outputs, float(generator.choice([0.05, 0.5, 2.0])))
        scores = generator.integers(0, 4, outputs)
        a, b = (released(q, scores, of_logarithmic(m)) for q in (first, second))
        grid = [1.01, *orders, 256.0]
        both = {o: max(divergence(first, second, o), divergence(second, first, o)) for o in grid}
        least = min((1 - 1 / o) * value + log(m) / o for o, value in both.items())
        for order in orders:
            bound = both[order] + least + log((m - 1) / log(m)) / (order - 1)
            true = max(divergence(a, b, order), divergence(b, a, order))
            assert true <= bound * (1 + 1e-9) + 1e-12
            failed_without += true > both[order] * 1.05
    assert failed_without > 100  # a choice that is charged as one run


def test_curves_are_those_of_the_theorem():
    price = best_of_runs(fastdp.ZCDP(0.01), 20)
    m = parameter_of(20)
    curve = price.to_renyi().curve
    for order, found in zip(ORDERS[::40], curve[::40], strict=True):
        by_hand = order * 0.01 + 2 * (0.01 * log(m)) ** 0.5 - 0.01 + log((m - 1) / log(m)) / (order - 1)
        assert by_hand <= found <= by_hand * 1.01
    pure = best_of_runs(PureDP(0.5, neighbors="add-remove"), 7)
    assert isinstance(pure, AllOf)
    assert pure.implies(PureDP(1.0, neighbors="add-remove"))
    with pytest.raises(ValueError, match="must hold of a run without a delta"):
        best_of_runs(ApproxDP(1.0, 1e-6), 7)
    rho = rho_of_run(1.0, 1e-6, 20)
    assert best_of_runs(fastdp.ZCDP(rho), 20).to_approx(1e-6).epsilon <= 1.0
    assert best_of_runs(fastdp.ZCDP(rho * 1.001), 20).to_approx(1e-6).epsilon > 1.0


# --- what runs may do


def one(budget):
    noisy = fastdp.laplace(100, sensitivity=1, epsilon=budget.left.epsilon)
    return noisy, noisy


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_a_choice_is_charged_once(neighbors):
    def run(budget):
        return fastdp.laplace(5, sensitivity=1, epsilon=0.25, neighbors=neighbors), 1.0

    budget = Budget(epsilon=1.0, neighbors=neighbors)
    with budget:
        best = best_of(run, 10, epsilon=0.5, neighbors=neighbors)
    assert budget.spent == PureDP(0.5, neighbors=neighbors)
    (row,) = budget.releases
    assert (row.mechanism, dict(row.parameters)) == ("best_of", {"k": 10, "epsilon": 0.5})
    assert best.guarantee == PureDP(0.5, neighbors=neighbors)
    assert "score" in repr(best)
    assert not hasattr(best, "runs")


def test_runs_have_half_and_no_more():
    with pytest.raises(BudgetExceeded, match=r"0\.500001"):
        best_of(lambda budget: (fastdp.laplace(1, sensitivity=1, epsilon=0.500001), 1.0), 5, epsilon=1.0)
    with pytest.raises(BudgetExceeded):
        best_of(lambda budget: (fastdp.laplace(1, sensitivity=1, epsilon=0.500001, budget=budget), 1), 5, epsilon=1.0)
    seen = []

    def run(budget):
        fastdp.gaussian(1, sensitivity=1, rho=budget.total.rho)
        seen.append(budget.total.rho)
        with pytest.raises(BudgetExceeded):
            fastdp.gaussian(1, sensitivity=1, rho=1e-9)
        return None, 0

    budget = Budget(epsilon=1.0, delta=1e-6)
    best = best_of(run, 5, epsilon=1.0, delta=1e-6, budget=budget)
    assert set(seen) == {rho_of_run(1.0, 1e-6, 5)}
    assert best.guarantee.to_approx(1e-6).epsilon <= 1.0
    assert budget.spent == ApproxDP(1.0, 1e-6)


def test_the_best_is_the_first_of_the_best():
    made = []

    def run(budget):
        made.append((len(made), [2.0, 7.0, float("nan"), 7.0, -inf][len(made) % 5]))
        return made[-1]

    for seed in range(12):
        made.clear()
        best = best_of(run, 6, epsilon=1.0, rng=Randomness(seed=seed))
        top = max(score for _, score in made if score == score)
        assert (best.value, best.score) == next(pair for pair in made if pair[1] == top)
        assert best.seeded


def test_errors_and_charges():
    def broken(budget):
        return fastdp.laplace(np.nan, sensitivity=1, epsilon=0.1), 1.0

    budget = Budget(epsilon=2.0)
    with pytest.raises(DomainError):
        best_of(broken, 3, epsilon=1.0, budget=budget)
    assert (budget.spent, budget.refused) == (PureDP(1.0), 1)
    for bad in (3, (1, 2, 3), (1, "x")):
        with pytest.raises(ValueError, match=r"^run: returned"):
            best_of(lambda budget, bad=bad: bad, 3, epsilon=0.1)
    called = []
    with pytest.raises(BudgetExceeded):
        best_of(lambda budget: called.append(1) or (1, 1), 3, epsilon=1.5, budget=budget)
    for options in ({"epsilon": -1.0}, {"epsilon": 1.0, "delta": 2.0}, {"epsilon": 1e-9, "delta": 1e-12}):
        with pytest.raises(ValueError, match=r"must|too small"):
            best_of(lambda budget: called.append(1) or (1, 1), 3, **options)
    assert not called
    with pytest.raises(ValueError, match="run=3: must be a function"):
        best_of(3, 3, epsilon=1.0)  # type: ignore[arg-type]


def test_a_seeded_run_makes_the_choice_seeded():
    def run(budget):
        return fastdp.laplace(1, sensitivity=1, epsilon=0.1, rng=Randomness(seed=1)), 1.0

    assert best_of(run, 2, epsilon=1.0).seeded
    assert not best_of(one, 2, epsilon=1.0).seeded


def test_blocks_around_are_open_again(run_python):
    outer = Budget(epsilon=2.0)
    with outer:
        best_of(one, 3, epsilon=1.0)
        fastdp.laplace(1, sensitivity=1, epsilon=0.25)
    assert outer.spent == PureDP(1.25)
    results = []
    threads = [threading.Thread(target=lambda: results.append(best_of(one, 3, epsilon=0.25, budget=outer)))] * 1
    for thread in threads:
        thread.start()
        thread.join()
    assert len(results) == 1
    assert outer.spent == PureDP(1.5)


# --- how good it is


def test_bounds_are_the_law_s():
    for k, share in ((10, 0.2), (50, 0.05), (3, 0.9)):
        m = parameter_of(k)
        law = logarithmic(m, 200 * m)
        missed = float((law * (1 - share) ** np.arange(1, 200 * m + 1)).sum())
        assert bounds.best_of(k, share=share) == pytest.approx(missed, rel=1e-6)
    k = bounds.best_of_k(share=0.05, beta=0.25)
    assert bounds.best_of(k, share=0.05) <= 0.25 < bounds.best_of(k - 1, share=0.05)
