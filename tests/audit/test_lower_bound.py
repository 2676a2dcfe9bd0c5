"""Lower bounds: never above the truth but with the stated probability, and close below it; wrong claims are refuted."""

from __future__ import annotations

from math import exp, log
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp.audit import LowerBound, lower_bound
from fastdp.audit.intervals import log_tail, lower_limit, upper_limit
from fastdp.audit.losses import epsilon_of, mu_of, rho_of
from fastdp.privacy import GaussianDP

RNG = np.random.default_rng(11)


def laplace_of(scale: float) -> Any:
    rng = np.random.default_rng(1)
    return lambda x, count: x + rng.laplace(scale=scale, size=count)


def normal_of(sigma: float) -> Any:
    rng = np.random.default_rng(2)
    return lambda x, count: x + rng.normal(scale=sigma, size=count)


# --- limits


@pytest.mark.parametrize(("k", "n"), [(0, 10), (1, 10), (5, 10), (10, 10), (3, 1000), (40_000, 100_000)])
def test_limits_are_those_of_scipy(k: int, n: int) -> None:
    from scipy.stats import beta

    alpha = 0.01
    low = 0.0 if k == 0 else beta.ppf(alpha, k, n - k + 1)
    high = 1.0 if k == n else beta.ppf(1 - alpha, k + 1, n - k)
    assert lower_limit(k, n, alpha) == pytest.approx(low, rel=1e-7)
    assert upper_limit(k, n, alpha) == pytest.approx(high, rel=1e-7)
    assert lower_limit(k, n, alpha) <= low * (1 + 1e-12)
    assert upper_limit(k, n, alpha) >= high * (1 - 1e-12)


@pytest.mark.parametrize(("k", "n", "p"), [(7, 10, 0.5), (700, 1000, 0.65), (30, 10**6, 1e-5), (9, 9, 0.1)])
def test_tails_are_those_of_scipy(k: int, n: int, p: float) -> None:
    from scipy.stats import binom

    assert log_tail(k, n, p) == pytest.approx(binom.logsf(k - 1, n, p), rel=1e-6)
    assert log_tail(k, n, p) >= binom.logsf(k - 1, n, p) - 1e-9


def test_losses_of_an_event() -> None:
    assert epsilon_of(0.5, 0.25, 0.0) == pytest.approx(log(2))
    assert epsilon_of(0.5, 0.25, 0.1) == pytest.approx(log(0.4 / 0.25))
    assert epsilon_of(0.25, 0.5, 0.0) == mu_of(0.25, 0.5) == rho_of(0.25, 0.5) == 0
    assert mu_of(0.8413447460685429, 0.5) == pytest.approx(1.0)
    # randomised response at epsilon is its own test: its divergences are those of the two coins
    p = exp(1) / (1 + exp(1))
    orders = np.linspace(1.001, 50, 5000)
    exact = max(np.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1) / a for a in orders.tolist())
    assert rho_of(p, 1 - p) == pytest.approx(exact, rel=1e-3)


# --- power, and how often it is wrong


def test_laplace_noise_is_seen_to_what_it_is() -> None:
    found = lower_bound(laplace_of(1.0), 0, 1, runs=400_000, many=True, claimed=fastdp.PureDP(1.0))
    assert 0.97 < found.epsilon <= 1.0
    assert not found.refuted
    assert lower_bound(laplace_of(1.0), 0, 1, runs=400_000, many=True, claimed=fastdp.PureDP(0.96)).refuted


def test_gaussian_noise_is_seen_to_what_it_is() -> None:
    found = lower_bound(normal_of(1.0), 0, 1, runs=400_000, many=True, claimed=GaussianDP(1.0))
    assert 0.97 < found.mu <= 1.0
    assert not found.refuted
    assert lower_bound(normal_of(1.0), 0, 1, runs=400_000, many=True, claimed=GaussianDP(0.95)).refuted
    rho = lower_bound(normal_of(1.0), 0, 1, runs=400_000, many=True, claimed=fastdp.ZCDP(0.5))
    assert 0.33 < rho.rho <= 0.5
    assert not rho.refuted
    assert lower_bound(normal_of(1.0), 0, 1, runs=400_000, many=True, claimed=fastdp.ZCDP(0.32)).refuted
    at = lower_bound(normal_of(1.0), 0, 1, runs=400_000, many=True, claimed=fastdp.ApproxDP(2.0, 0.0205))
    assert at.delta == 0.0205
    assert at.refuted == (at.epsilon > 2.0)
    assert lower_bound(normal_of(1.0), 0, 1, runs=400_000, many=True, claimed=fastdp.ApproxDP(1.5, 0.0205)).refuted


def test_a_bound_is_wrong_as_seldom_as_it_says() -> None:
    """200 bounds of confidence .9 each: Pr[more than 40 of Bin(200, .1)] is below 1e-5."""
    run = laplace_of(2.0)
    wrong = sum(lower_bound(run, 0, 1, runs=400, many=True, confidence=0.9).epsilon > 0.5 for _ in range(200))
    assert wrong <= 40
    same = [lower_bound(run, 0, 0, runs=400, many=True, confidence=0.9).epsilon > 0 for _ in range(200)]
    assert sum(same) <= 40


# --- outputs of every kind


def test_vectors_add_up() -> None:
    def run(x: Any, count: int) -> Any:
        return x + RNG.laplace(scale=4.0, size=(count, 4))

    found = lower_bound(run, np.zeros(4), np.ones(4) * 2, runs=100_000, many=True)
    assert 1.75 < found.epsilon <= 2.0
    assert "all numbers" in found.event


@pytest.mark.parametrize(
    "shape",
    [
        lambda x: x,
        lambda x: "yes" if x else "no",
        lambda x: (None, "a") if x else (3.5, "a"),
        lambda x: {"a": [x, 1]},
        lambda x: [1] * (1 + x),
        lambda x: np.array([x, x]),
        lambda x: None if x else float("nan"),
    ],
    ids=["bool", "text", "none", "nested", "lengths", "array", "nan"],
)
def test_outputs_of_any_kind(shape: Any) -> None:
    rng = np.random.default_rng(3)
    found = lower_bound(lambda p: shape(bool(rng.random() < p)), 0.7, 0.3, runs=4000)
    assert 0.7 < found.epsilon <= log(7 / 3)


def test_a_certain_event() -> None:
    found = lower_bound(lambda x, count: np.full(count, x), 0, 1, runs=1000, many=True, claimed=fastdp.PureDP(3.0))
    assert found.refuted
    assert found.epsilon > 4
    assert found.verdict.startswith("REFUTED: it is not 3-DP")


def test_outputs_that_say_nothing() -> None:
    found = lower_bound(lambda x: 7, 0, 1, runs=100, claimed=fastdp.PureDP(0.1))
    assert (found.epsilon, found.mu, found.rho, found.refuted) == (0, 0, 0, False)
    assert found.event == "none was found"


def test_a_report_reads_and_draws() -> None:
    found = lower_bound(laplace_of(1.0), 0, 1, runs=2000, many=True, claimed=fastdp.PureDP(0.3))
    assert isinstance(found, LowerBound)
    assert found.refuted
    assert "#d7263d" in found.svg()
    assert "<table>" in found._repr_html_()
    assert "does not prove" not in found.verdict
    plain = found.to_dict()
    assert plain["epsilon"] == found.epsilon
    assert plain["claimed"] == "0.3-DP, replace-one"
    quiet = lower_bound(laplace_of(1.0), 0, 1, runs=2000, many=True)
    assert "does not prove privacy" in quiet.verdict
    assert "<polyline" not in quiet.svg()


def test_progress_is_told() -> None:
    told: list[tuple[int, int, str]] = []
    lower_bound(lambda x: 1, 0, 1, runs=300, progress=lambda *report: told.append(report))
    assert told[0] == (0, 600, "sampling")
    assert told[-1] == (600, 600, "")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"run": 3}, "run=3: must be a function of the records"),
        ({"runs": 3}, "runs=3: must be an integer >= 64"),
        ({"claimed": 1.0}, "claimed=1.0: must be a guarantee"),
        ({"delta": 1.0}, r"delta=1.0: must be "),
        ({"confidence": 1.0}, r"confidence=1.0: must be "),
        ({"many": 1}, "many=1: must be True or False"),
        ({"run": lambda x, count: np.zeros(count + 1), "many": True, "runs": 64}, r"run: shape \(65,\) for 64 outputs"),
        (
            {"run": lambda x, count: np.zeros((count, x + 1)), "many": True, "runs": 64},
            "run: 1 and 2 numbers an output: must be alike",
        ),
    ],
)
def test_bad_input(given: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"run": lambda x: x, "data": 0, "neighbor": 1} | given
    with pytest.raises(ValueError, match="^" + message):
        lower_bound(**arguments)
