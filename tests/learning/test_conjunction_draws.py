"""Conjunctions: the implementation has the enumerated laws, and scores change by one record as the note says."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fastdp import Budget, Randomness, learn_conjunction
from fastdp.learning import conjunctions_exhaustive as exhaustive
from fastdp.learning import conjunctions_greedy, conjunctions_peel
from fastdp.learning.conjunctions_counts import CountsParameters
from fastdp.learning.conjunctions_greedy import GreedyParameters
from fastdp.learning.conjunctions_peel import PeelParameters
from fastdp.learning.examples import Examples
from fastdp.privacy import PureDP
from fastdp.randomness.noise_plans import gaussian_plan, laplace_plan
from tests import oracles
from tests.conftest import Watched
from tests.laws import check_cells
from tests.learning.conjunctions_oracle import (
    SLACK,
    Counts,
    all_conjunctions,
    as_numbers,
    counts_law,
    exhaustive_law,
    greedy_law,
    holds,
    keys_of,
    own_plan,
    peel_law,
    sample,
    silent,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::fastdp.support.errors.AccuracyWarning", "ignore:method=.elimination"
)  # tiny data


# --- the implementation against these laws


def run(plan, X, y, seeds):
    """The literals of many runs of a plan, as numbers."""
    examples = Examples(X, y)
    examples.read(keep=plan.rereads)
    rng = Randomness(seed=5)
    return [tuple(sorted(plan.learn(examples, keys_of(rng), silent))) for _ in range(seeds)]


def assert_law(drawn, law_of, eta):
    """A false alarm has probability 1e-9. The laws of eta off by 3/2 and 2/3 must be refuted."""

    def verdict(eta):
        law, sets = law_of(eta)
        cells = {}
        for literals, mass in zip(sets, law[:, 0].tolist(), strict=True):
            cells[literals] = cells.get(literals, 0.0) + mass
        counts = [drawn.count(literals) for literals in cells]
        assert sum(counts) == len(drawn), "what has no probability is never drawn"
        return check_cells(counts, [(max(0.0, p - SLACK), p + SLACK) for p in cells.values()])

    assert verdict(eta), str(verdict(eta))
    for off in (3 / 2, 2 / 3):
        assert not verdict(off * eta), "a wrong law passes"


DRAWS = 5000


LAWS = [  # bits and label
    ((1, 0, 0), (1, 1, 1), (0, 1, 0), (0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 0, 1)) * 2,
    ((0, 0, 1), (1, 0, 0), (1, 1, 1), (1, 1, 1)) * 2,
    ((0, 0, 0), (0, 1, 0), (1, 0, 0), (0, 1, 0), (1, 1, 1)) * 2,
]


@pytest.mark.parametrize("rows", LAWS)
@pytest.mark.parametrize(("phases", "dummy", "eta"), [(((3, 1), (1, 2)), 2, 0.6), (((1, 4),), 3, 0.9)])
def test_peel_has_this_law(rows, phases, dummy, eta):
    counts = Counts([[(row[:2], bool(row[2])) for row in rows]], 2)
    data = np.array(rows)
    drawn = run(own_plan(phases, dummy, eta), data[:, :2], data[:, 2], DRAWS)
    assert_law(drawn, lambda eta: peel_law(counts, 1, own_plan(phases, dummy, eta)), eta)


@pytest.mark.parametrize("rows", LAWS)
@pytest.mark.parametrize(("k", "rounds", "eta"), [(1, 2, 0.7), (2, 3, 0.5)])
def test_greedy_has_this_law(rows, k, rounds, eta):
    counts = Counts([[(row[:2], bool(row[2])) for row in rows]], 2)
    data = np.array(rows)
    drawn = run(GreedyParameters(k, rounds, eta, PureDP(1.0), 0.0), data[:, :2], data[:, 2], DRAWS)
    assert_law(drawn, lambda eta: greedy_law(counts, 1, k, rounds, eta), eta)


@pytest.mark.parametrize("rows", LAWS)
@pytest.mark.parametrize("k", [1, 2])
def test_exhaustive_has_this_law(rows, k):
    """Through the front door."""
    data, epsilon = np.array(rows), 1.2
    options = {"k": k, "epsilon": epsilon, "method": "exhaustive", "rng": Randomness(seed=8)}
    found = [learn_conjunction(data[:, :2], data[:, 2], **options) for _ in range(DRAWS)]
    drawn = [tuple(as_numbers(h.literals)) for h in found]
    sets = [tuple(as_numbers(c)) for c in all_conjunctions(2, k)]
    database = [(row[:2], bool(row[2])) for row in rows]
    assert_law(drawn, lambda eta: (exhaustive_law([database], 2, k, eta), sets), epsilon / 2)


@pytest.mark.parametrize("gaussian", [False, True])
def test_counts_have_this_law(gaussian):
    rows = LAWS[0]
    counts = Counts([[(row[:2], bool(row[2])) for row in rows]], 2)
    data, law = np.array(rows), oracles.noise.gaussian_law if gaussian else oracles.noise.laplace_law
    plan = CountsParameters(gaussian_plan(2.5) if gaussian else laplace_plan(2.5), 1, PureDP(1.0), 0.0, 6)
    drawn = run(plan, data[:, :2], data[:, 2], DRAWS)
    sets = [tuple(np.flatnonzero(stay).tolist()) for stay in itertools.product((False, True), repeat=4)]
    assert_law(drawn, lambda rate: (counts_law(counts, law(1 / rate).cdf, 1), sets), 1 / 2.5)


# --- what one record changes


class Script:
    """Draws what it is given, and remembers the scores."""

    def __init__(self, draws):
        self.draws, self.scores = itertools.cycle(draws), []

    def __call__(self, scores, key, eta):
        self.scores.append(scores.copy())
        return next(self.draws)


def scores_along(rows, labels, plan, draws):
    examples = Examples(rows, labels, may_be_empty=True)
    examples.read(keep=True)
    script = Script(draws)
    module = conjunctions_peel if isinstance(plan, PeelParameters) else conjunctions_greedy
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "draw_one", script)
        plan.learn(examples, keys_of(None), silent)
    return np.array(script.scores)


@pytest.mark.parametrize("seed", range(150))
def test_scores_change_as_the_note_says(seed):
    """Random neighbours of both kinds, labels flipped among them, along random transcripts."""
    draw = np.random.default_rng(seed)
    n, d = int(draw.integers(1, 80)), int(draw.integers(1, 5))
    k = int(draw.integers(1, d + 1))
    X, y = draw.random((n, d)) < 0.5, draw.random(n) < 0.5
    x, label = draw.random(d) < 0.5, bool(draw.integers(2))
    if seed % 3 == 0:
        x, label = X[0], not y[0]  # its label flipped
    draws = draw.integers(0, 2 * d + 1, 6).tolist()
    plans = own_plan(((5, 3), (2, 3)), 4, 1.0), GreedyParameters(k, 6, 1.0, PureDP(1.0), 0.0)
    falsified = [(2 * c + (bits[c] == 1)) for bits in (x, X[0]) for c in range(d)]
    for plan in plans:
        unit = 1 if isinstance(plan, PeelParameters) else k
        here = scores_along(X, y, plan, draws)
        replaced = scores_along(np.vstack((x, X[1:])), np.append(label, y[1:]), plan, draws)
        fewer = scores_along(X[1:], y[1:], plan, draws)
        moved, less = replaced - here, here - fewer
        assert np.ptp(moved, axis=1).max() <= 2 * unit
        assert np.ptp(less, axis=1).max() <= unit
        if isinstance(plan, PeelParameters):  # the setting of the removal lemma
            assert np.abs(moved).max() <= 1
            assert not np.delete(moved, falsified, axis=1).any()
            assert not np.delete(less, falsified[d:], axis=1).any()
            assert (less * (-1 if y[0] else 1) >= 0).all()
            deleted = [i for i, c in enumerate(draws) if c in falsified[d:]]
            if deleted and 2 * d not in draws:
                assert not less[deleted[0] + 1 :].any(), "a record that is deleted changes nothing any more"


@pytest.mark.parametrize("seed", range(30))
def test_counts_and_errors_change_as_the_note_says(seed, monkeypatch):
    draw = np.random.default_rng(seed)
    n, d, k = int(draw.integers(1, 80)), 3, 2
    X, y = draw.random((n, d)) < 0.5, draw.random(n) < 0.5
    x, label = ~X[0] if seed % 2 else draw.random(d) < 0.5, bool(draw.integers(2))

    def of(rows, labels):
        examples = Examples(rows, labels, may_be_empty=True)
        examples.read(keep=True)
        return examples.falsified().of_positives, errors_offered(examples, k, monkeypatch)

    here, there = of(X, y), of(np.vstack((x, X[1:])), np.append(label, y[1:]))
    fewer = of(X[1:], y[1:])
    assert np.abs(here[0] - there[0]).sum() <= 2 * d
    assert ((here[0] - there[0]) ** 2).sum() <= 2 * d
    assert np.abs(here[0] - fewer[0]).sum() == (d if y[0] else 0)
    assert np.abs(here[1] - there[1]).max() <= 1
    assert set((here[1] - fewer[1]).tolist()) <= {0, 1}


def test_the_sensitivity_of_counts_is_attained():
    X = np.array([[0, 1, 1]])
    moved = Examples(X, [1]), Examples(1 - X, [1])
    for each in moved:
        each.read(keep=False)
    assert np.abs(moved[0].falsified().of_positives - moved[1].falsified().of_positives).sum() == 2 * X.shape[1]


# --- exhaustive: candidates, their numbers and their errors


class Recorder:
    """Takes the place of Gumbel-max: the candidate that is given wins."""

    chosen = 0
    offered: dict[int, int]

    def __init__(self, key, eta, k):
        Recorder.offered = {}

    def admit(self, dtype):
        assert dtype == np.int64

    def add(self, scores, first, tops, top):
        for i, score in enumerate(scores.tolist(), first):
            assert i not in Recorder.offered
            Recorder.offered[i] = -score

    def ranking(self):
        return np.array([Recorder.chosen])


def errors_offered(examples, k, monkeypatch, chosen=0):
    monkeypatch.setattr(exhaustive, "GumbelState", Recorder)
    Recorder.chosen = chosen
    exhaustive.choose_conjunction(examples, k, 1.0, Randomness(seed=1).key, silent)
    assert sorted(Recorder.offered) == [*range(len(Recorder.offered))]
    return np.array([Recorder.offered[i] for i in range(len(Recorder.offered))])


@pytest.mark.parametrize(("n", "d", "k"), [(70, 4, 1), (64, 4, 2), (130, 5, 3), (9, 4, 4), (1, 1, 1), (300, 7, 2)])
@pytest.mark.parametrize("step", [2**20, 8])
def test_every_conjunction_takes_part_once_with_its_errors(n, d, k, step, monkeypatch):
    monkeypatch.setattr(exhaustive, "_BLOCK", step)
    X, y = sample(n, d, n), sample(n, 1, n + 1)[:, 0]
    examples = Examples(X, y)
    examples.read(keep=True)
    offered = errors_offered(examples, k, monkeypatch)
    assert len(offered) == exhaustive.conjunctions(d, k) == len(all_conjunctions(d, k))
    found = set()
    for i in range(len(offered)):
        Recorder.chosen = i
        numbers = exhaustive.choose_conjunction(examples, k, 1.0, Randomness(seed=1).key, silent)
        literals = [(m // 2, m % 2 == 0) for m in numbers]
        assert offered[i] == np.count_nonzero(holds(literals, X) != y)
        found.add(tuple(sorted(numbers)))
    assert found == {tuple(as_numbers(c)) for c in all_conjunctions(d, k)}


def test_exhaustive_refuses_what_takes_too_long():
    X = np.zeros((1000, 100), bool)
    budget = Budget(epsilon=1)
    message = r"^method='exhaustive', k=50, d=100, n=1,000: .* would take about .*: must be at most .*method='peel'"
    with pytest.raises(ValueError, match=message):
        learn_conjunction(X, X[:, 0], k=50, epsilon=1.0, method="exhaustive", budget=budget, rng=Watched())
    assert not budget.releases
    for n, d, k, unit in ((10**6, 100, 5, "minutes|hours"), (10**6, 1000, 4, "hours|days"), (10**9, 20000, 9, "years")):
        assert any(each in exhaustive.refusal(n, d, k) for each in unit.split("|"))
    assert not exhaustive.refusal(10**6, 100, 3)
    learn_conjunction(X, X[:, 0], k=2, epsilon=1.0, method="exhaustive")
