"""Error bounds of statistics: they hold as often as they say and hardly more often, and their inverses find them."""

from math import inf

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, bounds, statistics
from tests.laws import ALARM, log_at_least

RELATIONS = ("replace-one", "add-remove")
N = 300
CASES = [
    (name, relation, missing, delta)
    for name in ("count", "histogram", "sum", "mean", "variance")
    for relation in RELATIONS
    for missing in ("raise", "skip")
    for delta in (0.0, 1e-2)
    if missing == "raise" or name in ("sum", "mean", "variance")
]


def released(name, seed, **options):
    """The largest error of a release."""
    values = np.random.default_rng(4).uniform(0, 10, N)
    values[::3] = 0.0
    if name == "count":
        return abs(int(statistics.count(values, rng=Randomness(seed), **options)) - N)
    if name == "histogram":
        edges = np.linspace(0, 10, 21)
        found = statistics.histogram(values, edges, rng=Randomness(seed), **options)
        return np.abs(found.counts - np.histogram(values, edges)[0]).max()
    truth = {"sum": values.sum(), "mean": values.mean(), "variance": values.var()}[name]
    found = getattr(statistics, name)(values, bounds=(0.0, 10.5), rng=Randomness(seed), **options)
    return abs(float(found) - truth)


@pytest.mark.parametrize(("name", "relation", "missing", "delta"), CASES)
def test_a_bound_fails_as_often_as_it_may_and_not_much_less(name, relation, missing, delta):
    """200 releases at beta = 0.25; the chance of so many failures, were each as likely as that, is above ALARM."""
    beta, epsilon = 0.25, 1.0
    given = {"epsilon": epsilon, "delta": delta, "neighbors": relation}
    first = {"count": (), "histogram": (20,), "sum": (), "mean": (N,), "variance": (N,)}[name]
    more = {} if name in ("count", "histogram") else {"missing": missing}
    ranges = {} if name in ("count", "histogram") else {"bounds": (0.0, 10.5)}
    bound = getattr(bounds, name)(*first, beta=beta, **given, **more, **ranges)
    errors = [released(name, seed, **given, **more) for seed in range(200)]
    failures = sum(error > bound * (1 + 1e-6) for error in errors)
    assert log_at_least(failures, 200, beta) > np.log(ALARM)
    private = missing == "skip" or relation == "add-remove"
    step = 1 if name in ("count", "histogram") else 0  # of errors that are integers
    loose = 3 if name in ("mean", "variance") and private else 1.6  # for the union of two draws
    assert bound <= loose * np.quantile(errors, 1 - beta) + step


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("missing", ["raise", "skip"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_inverses(relation, missing, delta):
    options = {"delta": delta, "neighbors": relation}
    for name, first in (("count", ()), ("histogram", (50,))):
        error = getattr(bounds, name)(*first, epsilon=0.3, **options)
        found = getattr(bounds, f"{name}_epsilon")(*first, error=error, **options)
        assert found == pytest.approx(0.3, rel=1e-4)
        assert getattr(bounds, name)(*first, epsilon=found, **options) <= error
    options |= {"bounds": (-3, 7), "missing": missing}
    error = bounds.sum(epsilon=0.3, **options)
    assert bounds.sum_epsilon(error=error, **options) == pytest.approx(0.3, rel=1e-4)
    for name in ("mean", "variance"):
        bound = getattr(bounds, name)
        error = bound(5_000, epsilon=0.3, **options)
        assert getattr(bounds, f"{name}_epsilon")(5_000, error=error, **options) == pytest.approx(0.3, rel=1e-4)
        n = getattr(bounds, f"{name}_n")(error=error, epsilon=0.3, **options)
        assert abs(n - 5_000) <= 1
        assert bound(n, epsilon=0.3, **options) <= error < bound(n - 2, epsilon=0.3, **options)


def test_no_error_is_above_what_is_possible():
    for relation in RELATIONS:
        assert bounds.mean(3, bounds=(0, 10), epsilon=1e-3, neighbors=relation) == 10
        assert bounds.variance(3, bounds=(0, 10), epsilon=1e-3, neighbors=relation) == 25
    assert bounds.mean(10, bounds=(0, 10), epsilon=0.5) < bounds.mean(10, bounds=(0.0, 10.5), epsilon=0.5) < inf


def test_plans_take_them():
    wanted = [
        {"mechanism": "mean", "n": 10_000, "bounds": (0, 100), "error": 0.5},
        {"mechanism": "variance", "n": 10_000, "bounds": (0, 100), "error": 20.0, "missing": "skip"},
        {"mechanism": "sum", "bounds": (0, 1), "error": 100.0},
        {"mechanism": "histogram", "bins": 20, "error": 40.0, "times": 2},
        {"mechanism": "count", "error": 20.0},
    ]
    for relation in RELATIONS:
        plan = fastdp.plan_releases(wanted, neighbors=relation)
        for row, asked in zip(plan, wanted, strict=True):
            assert 0.99 * asked["error"] < row.error <= asked["error"]
    shared = fastdp.plan_releases(wanted[3:], epsilon=0.1)
    assert shared.factor == pytest.approx(max(row.error / row.asked for row in shared))


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"error=0: must be"):
        bounds.count_epsilon(error=0)
    with pytest.raises(ValueError, match=r"missing='drop'"):
        bounds.sum(bounds=(0, 1), epsilon=1.0, missing="drop")
    with pytest.raises(ValueError, match=r"neighbors='some'"):
        bounds.count(epsilon=1.0, neighbors="some")
    with pytest.raises(ValueError, match="in increasing order"):
        bounds.mean(5, bounds=(1, 0), epsilon=1.0)
    with pytest.raises(ValueError, match=r"bins=0"):
        bounds.histogram(0, epsilon=1.0)
