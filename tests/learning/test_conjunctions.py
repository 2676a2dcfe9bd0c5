"""Learning conjunctions: privacy by enumeration of every method's law over all neighbours of small domains, the
implementation against that law, mutants that must fail, accuracy, and what is refused."""

from __future__ import annotations

import html
import itertools
import math
import pickle
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import Budget, BudgetExceeded, DomainError, Randomness, learn_conjunction, removal
from fastdp.learning import conjunctions, conjunctions_greedy, conjunctions_peel
from fastdp.learning import conjunctions_exhaustive as exhaustive
from fastdp.learning.conjunction_parameters import ConjunctionProblem
from fastdp.learning.conjunctions_counts import CountsParameters, prepare_counts
from fastdp.learning.conjunctions_greedy import GreedyParameters, prepare_greedy
from fastdp.learning.conjunctions_peel import PeelParameters, prepare_peel
from fastdp.learning.examples import Examples
from fastdp.learning.methods import choose_method
from fastdp.learning.privacy_parameters import PrivacyParameters
from fastdp.mechanisms.noise import gaussian_plan, laplace_plan
from fastdp.privacy import PureDP
from fastdp.randomness.charged_keys import ChargedKeys
from tests import oracles
from tests.conftest import Watched
from tests.laws import ALARM, check_cells, log_at_least

pytestmark = pytest.mark.filterwarnings(
    "ignore::fastdp.support.errors.AccuracyWarning", "ignore:method=.elimination"
)  # tiny data

PRIVATE = ("peel", "greedy", "counts", "exhaustive")
RELATIONS = ("replace-one", "add-remove")
SLACK = 1e-11  # of probabilities: products of at most 10 quotients of sums of exponentials, each right to 10^-13


def silent(*now):
    pass


def problem(n, d, k, epsilon=1.0, delta=0.0, beta=0.05, neighbors="replace-one"):
    return ConjunctionProblem(n, d, k, PrivacyParameters(epsilon, delta, beta, neighbors))


def keys_of(rng):
    """Keys that nobody is charged for."""
    return ChargedKeys("test", PureDP(1.0), {}, None, rng)


def sample(n, d, seed=0):
    return np.random.default_rng(seed).random((n, d)) < 0.5


def holds(literals, X):
    """Literals as the result has them: (column, value)."""
    out = np.ones(len(X), bool)
    for column, value in literals:
        out &= np.asarray(X)[:, column] == value
    return out


def as_numbers(literals):
    return sorted(2 * column + (not value) for column, value in literals)


# --- the worked example


LECTURE = ("010101", "010110", "111101", "111111", "000000", "101101", "111101", "000101")
LABELS = [1, 0, 1, 0, 0, 1, 1, 1]


def test_the_worked_example():
    X = np.array([[int(bit) for bit in row] for row in LECTURE])
    h = learn_conjunction(X, LABELS, method="elimination")
    assert str(h) == "v4 ∧ ¬v5 ∧ v6"
    assert h.error(X, LABELS) == 0
    assert h.guarantee is None
    assert h.error_bound is None
    assert "elimination is not private" in repr(h)


@pytest.mark.parametrize("seed", range(20))
def test_elimination_is_right_wherever_a_conjunction_is(seed):
    draw = np.random.default_rng(seed)
    X = sample(int(draw.integers(1, 300)), 5, seed)
    target = [(int(c), bool(draw.integers(2))) for c in draw.permutation(5)[: draw.integers(0, 4)]]
    y = holds(target, X)
    h = learn_conjunction(X, y, method="elimination")
    assert h.error(X, y) == 0
    assert set(target) <= set(h.literals)


# --- all records of d bits with labels, all databases of few of them, and their neighbours


def people(d):
    return [*itertools.product(itertools.product((0, 1), repeat=d), (False, True))]


def neighbourhood(d, n, neighbors):
    """Databases as sorted tuples of records, and all ordered pairs of numbers of neighbours."""
    who = people(d)
    sizes = [n] if neighbors == "replace-one" else range(n + 1)
    databases = [rows for size in sizes for rows in itertools.combinations_with_replacement(who, size)]
    at = {rows: i for i, rows in enumerate(databases)}
    pairs = set()
    for size in [n - 1] if neighbors == "replace-one" else range(n):
        for rest in itertools.combinations_with_replacement(who, size):
            near = [at[tuple(sorted((*rest, one)))] for one in who]
            if neighbors == "replace-one":
                pairs |= {(i, j) for i in near for j in near if i != j}
            else:
                pairs |= {pair for i in near for pair in ((i, at[rest]), (at[rest], i))}
    return databases, sorted(pairs)


def falsifies(bits, literal):
    return bits[literal // 2] == literal % 2


class Counts:
    """N_l, P_l and the number of negatives, for every database and every set of literals drawn before."""

    def __init__(self, databases, d):
        self.d, self.negatives, self.N, self.P = d, {}, {}, {}
        literals = range(2 * d)
        for drawn in itertools.chain.from_iterable(itertools.combinations(literals, r) for r in range(2 * d + 1)):
            left = [
                [(bits, label) for bits, label in rows if not any(falsifies(bits, m) for m in drawn)]
                for rows in databases
            ]

            def of(value, left=left):
                return np.array([
                    [sum(falsifies(bits, m) for bits, label in rows if label == value) for m in literals]
                    for rows in left
                ]).reshape(-1, 2 * d)  # fmt: skip

            key = frozenset(drawn)
            self.negatives[key] = np.array([sum(not label for _, label in rows) for rows in left])
            self.N[key], self.P[key] = of(False), of(True)


def peel_scores(counts, drawn, threshold, dummy):
    scores = np.minimum(counts.N[drawn] - threshold, -counts.P[drawn])
    return np.column_stack((scores, np.full(len(scores), -dummy)))


def scores_by_those_left(counts, drawn, k, dummy):
    """The mutant: greedy's score beside peel's dummy."""
    scores = np.minimum(counts.N[drawn] - counts.negatives[drawn][:, None] / k, -counts.P[drawn])
    return np.column_stack((scores, np.full(len(scores), -dummy)))


def greedy_scores(counts, drawn, k):
    negatives = counts.negatives[drawn][:, None]
    return np.column_stack((np.minimum(k * counts.N[drawn] - negatives, -k * counts.P[drawn]), -negatives))


def softmax(scores, eta):
    weights = np.exp(eta * (scores - scores.max(axis=1, keepdims=True)))
    return weights / weights.sum(axis=1, keepdims=True)


def play(start, databases, chances, follow):
    """The law of the transcripts, [transcript, database], and the literals that each of them draws."""
    leaves, drawn_at, open_ = [], [], [(start, frozenset(), np.ones(databases))]
    seen = {}
    while open_:
        state, drawn, mass = open_.pop()
        if state is None:
            leaves.append(mass)
            drawn_at.append(tuple(sorted(drawn)))
            continue
        if (state, drawn) not in seen:
            seen[state, drawn] = chances(state, drawn)
        for c, chance in enumerate(seen[state, drawn].T):
            literal, after = follow(state, c)
            open_.append((after, drawn | {c} if literal else drawn, mass * chance))
    return np.array(leaves), drawn_at


def peel_law(counts, databases, plan):
    """Of the algorithm as conjunctions.md, theorem 6, has it."""

    def at(phase, rounds):
        """The state where so many rounds of a phase are over."""
        if phase < len(plan.phases) and rounds == plan.phases[phase][1]:
            phase, rounds = phase + 1, 0
        return (phase, rounds) if phase < len(plan.phases) else None

    def chances(state, drawn):
        return softmax(peel_scores(counts, drawn, plan.phases[state[0]][0], plan.dummy), plan.eta)

    def follow(state, c):
        if c == 2 * counts.d:
            return False, at(state[0] + 1, 0)
        return True, at(state[0], state[1] + 1)

    return play(at(0, 0), databases, chances, follow)


def greedy_law(counts, databases, k, rounds, eta):
    """Of theorem 5's; eta is that of scores times k."""

    def follow(done, c):
        return c < 2 * counts.d, done + 1 if done + 1 < rounds else None

    return play(0, databases, lambda done, drawn: softmax(greedy_scores(counts, drawn, k), eta), follow)


def excess(law, pairs, epsilon):
    """The least delta of all pairs at epsilon."""
    return max(float(np.maximum(0, law[:, i] - math.exp(epsilon) * law[:, j]).sum()) for i, j in pairs)


def loss(law, pairs):
    """The least epsilon of all pairs at delta = 0."""
    logs = np.log(law)
    return max(float((logs[:, i] - logs[:, j]).max()) for i, j in pairs)


def own_plan(phases, dummy, eta):
    return PeelParameters(phases, dummy, eta, "own", PureDP(1.0), 0.0)


# --- privacy


PEELS = [  # d, n, (threshold, rounds) of each phase, Gamma, eta
    (1, 4, ((3, 3), (1, 3)), 1, 0.4),
    (1, 3, ((2, 2), (1, 5)), 3, 0.15),
    (1, 6, ((4, 5),), 4, 1.0),
    (2, 3, ((2, 2), (1, 2)), 2, 0.3),
    (2, 2, ((2, 5),), 3, 0.1),
]


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "phases", "dummy", "eta"), PEELS)
def test_peel_keeps_the_removal_lemma(d, n, phases, dummy, eta, neighbors):
    """Thresholds so low that literals are drawn often."""
    databases, pairs = neighbourhood(d, n, neighbors)
    law, _ = peel_law(Counts(databases, d), len(databases), own_plan(phases, dummy, eta))
    np.testing.assert_allclose(law.sum(axis=0), 1, atol=1e-12)
    claim, half = (removal(paid, one_signed=True, neighbors=neighbors) for paid in (eta, eta / 2))
    broken = False
    for epsilon in (0.0, eta / 2, eta, 1.2 * eta, 2 * eta, 2.5 * eta, 3 * eta, 5 * eta, 1.0, 2.0):
        found = excess(law, pairs, epsilon)
        assert found <= claim.delta(epsilon) + SLACK, epsilon
        broken |= found > half.delta(epsilon) + SLACK
    assert broken, "draws at twice the eta that is paid pass"


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "k", "epsilon", "delta"), [
    (2, 3, 2, 0.5, 0.2), (2, 3, 1, 1.0, 1e-6), (1, 5, 1, 0.3, 0.1), (2, 3, 2, 1.0, 0.0), (1, 5, 1, 4.0, 0.0),
])  # fmt: skip
def test_peel_keeps_its_guarantee_with_its_own_parameters(d, n, k, epsilon, delta, neighbors):
    databases, pairs = neighbourhood(d, n, neighbors)
    plan = prepare_peel(problem(n, d, k, epsilon, delta, 0.9, neighbors))
    law, _ = peel_law(Counts(databases, d), len(databases), plan)
    if delta:
        assert excess(law, pairs, epsilon) <= delta + SLACK
    else:
        assert plan.account == "composition"
        assert loss(law, pairs) <= epsilon + SLACK
    if plan.account == "removal lemma":
        claim = removal(plan.eta, one_signed=True, neighbors=neighbors)
        for grown in (0.0, plan.eta, 2 * plan.eta, 0.3, 1.0):
            assert excess(law, pairs, grown) <= claim.delta(grown) + SLACK


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "k", "epsilon"), [(1, 5, 1, 2.0), (2, 3, 2, 1.0), (2, 3, 1, 3.0)])
def test_greedy_keeps_its_guarantee(d, n, k, epsilon, neighbors):
    databases, pairs = neighbourhood(d, n, neighbors)
    counts = Counts(databases, d)
    plan = prepare_greedy(problem(n, d, k, epsilon, neighbors=neighbors))
    law, _ = greedy_law(counts, len(databases), k, plan.rounds, plan.eta)
    assert loss(law, pairs) <= epsilon + SLACK
    delta = 0.05
    plan = prepare_greedy(problem(n, d, k, 0.5, delta, 0.05, neighbors))
    law, _ = greedy_law(counts, len(databases), k, plan.rounds, plan.eta)
    assert excess(law, pairs, 0.5) <= delta + SLACK


def all_conjunctions(d, k):
    """As lists of (column, value), in no order in particular."""
    found = []
    for pattern in itertools.product((None, False, True), repeat=d):
        literals = [(c, value) for c, value in enumerate(pattern) if value is not None]
        if len(literals) <= k:
            found.append(literals)
    return [*found, [(0, True), (0, False)]] if k >= 2 else found


def errors_of(literals, rows):
    return sum(all(bits[c] == value for c, value in literals) != label for bits, label in rows)


def exhaustive_law(databases, d, k, eta):
    scores = np.array([[-errors_of(c, rows) for c in all_conjunctions(d, k)] for rows in databases])
    return softmax(scores, eta).T


def range_of(law, pairs):
    """The largest bounded range of a pair."""
    logs = np.log(law)
    return max(float(np.ptp(logs[:, i] - logs[:, j])) for i, j in pairs)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "k"), [(1, 4, 1), (2, 3, 1), (2, 3, 2)])
def test_exhaustive_keeps_its_guarantee_and_a_range_of_1_would_not(d, n, k, neighbors):
    databases, pairs = neighbourhood(d, n, neighbors)
    plan = choose_method(conjunctions.PRIVATE, "exhaustive", problem(n, d, k, 1.0, neighbors=neighbors))[1]
    law = exhaustive_law(databases, d, k, plan.eta)
    assert range_of(law, pairs) <= 1 + SLACK
    assert plan.guarantee.eta == 1.0
    if neighbors == "replace-one":
        assert range_of(exhaustive_law(databases, d, k, 1.0), pairs) > 1.5, "the mutant goes unseen"
    else:
        assert range_of(law, pairs) > 0.99


def counts_law(counts, cdf, threshold):
    """Of which literals stay: [set, database]."""
    start = frozenset()
    low, high = cdf((threshold - counts.P[start]).ravel())
    assert (high - low).max() < 1e-12
    kept = ((low + high) / 2).reshape(counts.P[start].shape)
    sets = itertools.product((False, True), repeat=2 * counts.d)
    return np.array([np.where(np.array(stay), kept, 1 - kept).prod(axis=1) for stay in sets])


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n"), [(1, 3), (2, 2)])
def test_counts_keep_their_guarantee_and_half_the_sensitivity_would_not(d, n, neighbors):
    """A threshold of 0 has the whole loss: noise that is one too high, or one too low, for all literals."""
    databases, pairs = neighbourhood(d, n, neighbors)
    counts = Counts(databases, d)
    plan = prepare_counts(problem(n, d, 1, 1.0, neighbors=neighbors))
    assert plan.guarantee == PureDP(1.0, neighbors=neighbors)
    for threshold in (0, 1, plan.threshold):
        assert loss(counts_law(counts, oracles.noise.laplace_law(plan.noise.scale).cdf, threshold), pairs) <= 1 + 1e-9
    assert loss(counts_law(counts, oracles.noise.laplace_law(plan.noise.scale).cdf, 0), pairs) > 0.99
    assert loss(counts_law(counts, oracles.noise.laplace_law(plan.noise.scale / 2).cdf, 0), pairs) > 1.5


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_counts_keep_their_guarantee_with_gaussian_noise(neighbors):
    """Where a delta so large, or so many columns, make it the better; many columns cannot be enumerated."""
    databases, pairs = neighbourhood(2, 2, neighbors)
    plan = prepare_counts(problem(2, 2, 2, 0.5, 0.1, neighbors=neighbors))
    assert hasattr(plan.noise, "sigma")
    for threshold in (0, 1, plan.threshold):
        law = counts_law(Counts(databases, 2), oracles.noise.gaussian_law(plan.noise.sigma).cdf, threshold)
        assert excess(law, pairs, 0.5) <= 0.1 + SLACK
    assert (
        excess(counts_law(Counts(databases, 2), oracles.noise.gaussian_law(plan.noise.sigma / 3).cdf, 0), pairs, 0.5)
        > 0.1
    )


# --- mutants


def test_a_score_that_counts_the_negatives_left_is_rejected():
    """One column, records all equal, as many negatives as Gamma and many positives: 50 rounds of a coin that tells how
    many negatives there are. Nothing is ever deleted, so it is no case for the lemma, and its delta is exceeded."""
    eta, rounds, gamma = 0.5, 50, 6
    few = (((0,), False),) * gamma + (((0,), True),) * 200
    more = (((0,), False), *few)
    counts = Counts([few, more], 1)

    def heads(scores):
        chances = softmax(scores, eta)
        assert chances[:, 0].max() < 1e-30, "what would delete records is never drawn"
        coin = chances[:, 1]  # the literal that no record falsifies
        return np.array([math.comb(rounds, h) * coin**h * (1 - coin) ** (rounds - h) for h in range(rounds + 1)])

    claim = removal(eta, one_signed=True, neighbors="add-remove")
    nothing = frozenset()
    for epsilon in (0.5, 1.0, 2.0):
        both = ((0, 1), (1, 0))
        assert excess(heads(scores_by_those_left(counts, nothing, 1, gamma)), both, epsilon) > 1.5 * claim.delta(
            epsilon
        )
        assert excess(heads(peel_scores(counts, nothing, gamma, gamma)), both, epsilon) <= claim.delta(epsilon)
    scores = scores_by_those_left(counts, frozenset({1}), 1, gamma)
    np.testing.assert_array_equal(scores[:, 1], -counts.negatives[nothing], "and drawing it changes nothing")


@pytest.mark.parametrize("rounds", [1, 3])
def test_an_unpaid_round_is_rejected(rounds):
    """All records falsify one literal, of which one too many or not is told by each draw of the other."""
    few = (((0,), False),) * 40
    counts, pairs = Counts([few, (((0,), False), *few)], 1), ((0, 1), (1, 0))
    eta = problem(40, 1, 1, neighbors="add-remove").privacy.eta(rounds)
    paid, _ = greedy_law(counts, 2, 1, rounds, eta)
    assert 0.99 < loss(paid, pairs) <= 1 + SLACK
    unpaid, _ = greedy_law(counts, 2, 1, rounds + 1, eta)
    assert loss(unpaid, pairs) > 1.2
    paid, _ = peel_law(counts, 2, own_plan(((100, rounds),), 150, eta))
    assert 0.99 < loss(paid, pairs) <= 1 + SLACK
    unpaid, _ = peel_law(counts, 2, own_plan(((100, rounds + 1),), 150, eta))
    assert loss(unpaid, pairs) > 1.2


def test_a_range_of_1_under_replace_one_is_rejected():
    databases, pairs = neighbourhood(1, 5, "replace-one")
    counts = Counts(databases, 1)
    for eta, keeps in ((0.5, True), (1.0, False)):
        for law, _ in (
            peel_law(counts, len(databases), own_plan(((2, 1),), 8, eta)),
            greedy_law(counts, len(databases), 1, 1, eta),
        ):
            assert (loss(law, pairs) <= 1 + SLACK) is keeps
    for rounds in (1, 4):
        assert problem(5, 1, 1, 1.0).privacy.eta(rounds) == 1 / (2 * rounds)
        assert problem(5, 1, 1, 1.0, neighbors="add-remove").privacy.eta(rounds) == 1 / rounds


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
    plan = CountsParameters(gaussian_plan(2.5) if gaussian else laplace_plan(2.5), 1, PureDP(1.0), 0.0)
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

    def run(self, scores, first, tops, top):
        for i, score in enumerate(scores.tolist(), first):
            assert i not in Recorder.offered
            Recorder.offered[i] = -score

    def ranking(self):
        return np.array([Recorder.chosen])


def errors_offered(examples, k, monkeypatch, chosen=0):
    monkeypatch.setattr(exhaustive, "Race", Recorder)
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


# --- accuracy


TARGETS = {
    "true": [], "one literal": [(2, False)], "two literals": [(0, True), (4, False)],
    "false": [(1, True), (1, False)],
}  # fmt: skip


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("method", PRIVATE)
@pytest.mark.parametrize("target", TARGETS)
def test_errors_stay_within_their_bound(target, method, neighbors):
    """With probability 1 - beta each time: more failures than 1e-9 allows are refuted. The smallest `n` for which
    there is an error bound, or nearly."""
    n, runs, beta = {"peel": 1500, "greedy": 600, "counts": 400, "exhaustive": 60}[method], 40, 0.2
    X = sample(n, 6, 3)
    y = holds(TARGETS[target], X)
    records = None if neighbors == "replace-one" else n
    rng, wrong = Randomness(seed=2), 0
    for _ in range(runs):
        h = learn_conjunction(
            X, y, k=2, epsilon=2.0, delta=1e-5, method=method, beta=beta, records=records, neighbors=neighbors, rng=rng
        )
        assert h.error_bound < 1, "there is no error bound"
        wrong += h.error(X, y) > h.error_bound
    assert log_at_least(wrong, runs, beta) > math.log(ALARM), f"{wrong} of {runs}"


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("method", PRIVATE)
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_hypotheses_are_found(method, delta, neighbors):
    """beta = 1e-9, so that a false alarm has that probability; records are random, so what is nearly right is right."""
    n = 60_000
    X = sample(n, 8)
    target = [(1, True), (4, False), (7, True)]
    y = holds(target, X)
    records = None if neighbors == "replace-one" else n
    h = learn_conjunction(
        X, y, k=3, epsilon=2.0, delta=delta, beta=1e-9, method=method, neighbors=neighbors, records=records,
        rng=Randomness(seed=3),
    )  # fmt: skip
    assert h.error(X, y) <= h.error_bound < 0.75
    assert sorted(h.literals) == sorted(target), str(h)
    assert str(h) == "v2 ∧ ¬v5 ∧ v8"
    np.testing.assert_array_equal(h.predict(X), y)


@pytest.mark.parametrize("method", PRIVATE)
def test_a_literal_per_column_at_most_and_columns_may_repeat(method):
    """A duplicated column: either of the two will do."""
    X = sample(20_000, 3)
    X = np.hstack((X, X))
    y = X[:, 0] & ~X[:, 2]
    h = learn_conjunction(X, y, k=2, epsilon=4.0, delta=1e-6, method=method, rng=Randomness(seed=4))
    assert h.error(X, y) == 0


@pytest.mark.parametrize("method", [*PRIVATE, "elimination"])
@pytest.mark.parametrize("noise", [0.1, 0.5])
def test_records_that_no_conjunction_fits(method, noise):
    X = sample(5000, 4)
    y = (X[:, 0] & X[:, 1]) ^ (np.random.default_rng(1).random(5000) < noise)
    price = {} if method == "elimination" else {"k": 2, "epsilon": 1.0, "delta": 1e-6, "rng": Randomness(seed=4)}
    h = learn_conjunction(X, y, method=method, **price)
    assert 0 <= h.error(X, y) <= 1
    if method == "exhaustive":  # within theorem 4 of the best, at beta = 1e-9
        best = min(np.count_nonzero(holds(c, X) != y) for c in all_conjunctions(4, 2))
        slack = (math.log(exhaustive.conjunctions(4, 2)) + math.log(1e9)) / 0.5
        assert h.error(X, y) * 5000 <= best + slack


@pytest.mark.parametrize("method", [*PRIVATE, "elimination"])
@pytest.mark.parametrize("label", [True, False])
def test_labels_that_are_all_alike(method, label):
    X = sample(4000, 4)
    price = {} if method == "elimination" else {"k": 2, "epsilon": 2.0, "delta": 1e-6, "rng": Randomness(seed=4)}
    h = learn_conjunction(X, np.full(4000, label), method=method, **price)
    assert str(h) == ("true" if label else "false")
    np.testing.assert_array_equal(h.predict(X), np.full(4000, label))


@pytest.mark.parametrize(("n", "d", "k"), [(1000, 5, 2), (10**6, 100, 10), (10**9, 30, 30), (1, 1, 1), (50, 4, 4)])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_parameters_of_peel_are_as_theorem_7_has_them(n, d, k, delta):
    for neighbors in RELATIONS:
        plan = prepare_peel(problem(n, d, k, 1.0, delta, neighbors=neighbors))
        gamma, p = plan.dummy, len(plan.phases)
        assert plan.eta * gamma >= math.log((2 * d + 1) * plan.rounds / 0.05)
        assert plan.phases[0][0] * 2 * k >= n
        assert p == max(1, math.ceil(math.log2(n / (2 * k * gamma))))
        for j, (threshold, rounds) in enumerate(reversed(plan.phases)):
            assert threshold == 2 ** (j + 1) * gamma
            assert rounds == math.ceil(k / (1 - 2.0 ** -(j + 1)))
        assert plan.rounds <= k * (p + 1.61) + p
        assert plan.bound == 2 * gamma * (k + plan.rounds)
        assert plan.account == "composition" or removal(plan.eta, one_signed=True, neighbors=neighbors).implies(
            fastdp.ApproxDP(1.0, delta, neighbors=neighbors)
        )
        assert plan.account == "removal lemma" or plan.eta <= problem(
            n, d, k, 1.0, delta, neighbors=neighbors
        ).privacy.eta(plan.rounds)


def test_records_that_peel_needs_grow_linearly_in_k():
    def needed(k):
        return prepare_peel(problem(10**7, 200, k, 1.0, 1e-6)).bound

    assert needed(80) / needed(10) < 8.5
    assert (
        prepare_greedy(problem(10**7, 200, 80, 1.0, 1e-6)).bound
        / prepare_greedy(problem(10**7, 200, 10, 1.0, 1e-6)).bound
        > 12
    )


@pytest.mark.parametrize("method", PRIVATE)
def test_parameters_depend_on_public_numbers_only(method):
    """Under add-remove the true number of records stands nowhere."""
    plans = set()
    for n in (1, 50, 3000):
        X = sample(n, 4)
        seen = []

        def watched(*given, seen=seen):
            seen.append(choose_method(*given).plan)
            return choose_method(*given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(conjunctions, "choose_method", watched)
            learn_conjunction(
                X, X[:, 0], k=2, epsilon=1.0, delta=1e-6, method=method, neighbors="add-remove", records=1000
            )
        plan = seen[0]
        plans.add((repr(replace(plan, noise=None)) + str(plan.noise[:2])) if method == "counts" else plan)
    assert len(plans) == 1


def test_no_records_at_all():
    X = np.zeros((0, 3), bool)
    for method in PRIVATE:
        h = learn_conjunction(
            X, X[:, 0], k=2, epsilon=1.0, method=method, neighbors="add-remove", records=100, rng=Randomness(seed=1)
        )
        assert h.predict(X).shape == (0,)
        with pytest.raises(ValueError, match=r"^X: n=0 records: must be at least one$"):
            learn_conjunction(X, X[:, 0], k=2, epsilon=1.0, method=method)


# --- what is refused, and what is charged


def test_parameters_are_checked_before_anything_is_drawn_or_charged():
    X = sample(50, 4)
    y = X[:, 0]
    good = {"epsilon": 1.0, "delta": 1e-6, "k": 2}
    for changes, message in (
        ({"k": 0}, r"k=0: must be a whole number >= 1"),
        ({"k": 5}, r"k=5: must be at most 4"),
        ({"k": 1.5}, r"k=1.5: must be a whole number"),
        ({"epsilon": None}, r"epsilon=None: must be a number > 0; only method='elimination'"),
        ({"epsilon": 0}, r"epsilon=0: must be > 0"),
        ({"epsilon": "1"}, r"epsilon='1': must be a number"),
        ({"delta": 1.0}, r"delta=1.0: must be < 1"),
        ({"beta": 0.0}, r"beta=0.0: must be > 0"),
        ({"method": "magic"}, r"method='magic': must be one of 'peel', 'greedy'"),
        ({"neighbors": "swap"}, r"neighbors='swap': must be one of"),
        ({"neighbors": "add-remove"}, r"records=None: must be given with neighbors='add-remove'"),
        ({"records": 50}, r"records=50: must be None with neighbors='replace-one'"),
        ({"neighbors": "add-remove", "records": 0}, r"records=0: must be a whole number >= 1"),
        ({"rng": np.random.default_rng(0)}, r"rng=Generator"),
        ({"budget": 1.0}, r"budget=1.0: must be a fastdp.Budget"),
        ({"epsilon": 1e-20, "delta": 0}, r"epsilon=1e-20, n=50: the scores of method='peel' would be .*2\^62"),
        ({"epsilon": 1e-20, "delta": 0, "method": "counts"}, r"2d / epsilon="),
        ({"epsilon": 1e300, "method": "exhaustive"}, r"epsilon=1e\+300: must be such that the factor of the scores"),
        ({"epsilon": 1e-300, "delta": 0, "method": "greedy"}, r"epsilon=1e-300: must be such that the factor"),
        ({"neighbors": "add-remove", "records": 10**30}, r"epsilon=1.0, n=1e\+30: the scores of method='peel'"),
    ):  # fmt: skip
        budget = Budget(epsilon=2, delta=0.1, neighbors="add-remove" if "records" in changes else "replace-one")
        with pytest.raises(ValueError, match=f"^{message}"):
            learn_conjunction(X, y, **{"rng": Watched(), "budget": budget} | good | changes)
        assert not budget.releases


@pytest.mark.parametrize("method", PRIVATE)
def test_extremes_that_other_accounts_or_noises_allow(method):
    """A delta too small for the lemma, or for Gaussian noise, is no error: composition or Laplace noise does."""
    X = sample(500, 3)
    for epsilon, delta in ((1.0, 1e-200), (1000.0, 1e-6), (1.0, 0.9), (1e-6, 1e-60)):
        h = learn_conjunction(X, X[:, 0], k=1, epsilon=epsilon, delta=delta, method=method)
        assert h.guarantee.to_approx(delta).epsilon <= epsilon * (1 + 1e-9)


def test_elimination_takes_no_price():
    X = sample(50, 4)
    price = {
        "k": 2,
        "epsilon": 1.0,
        "delta": 1e-6,
        "budget": Budget(epsilon=1),
        "records": 9,
        "rng": Randomness(seed=1),
    }
    for name, value in price.items():
        with pytest.raises(ValueError, match=rf"^{name}=.*: must be left out for method='elimination', which is not"):
            learn_conjunction(X, X[:, 0], method="elimination", **{name: value})
    with Budget(epsilon=1) as budget:
        learn_conjunction(X, X[:, 0], method="elimination")
    assert not budget.releases


@pytest.mark.parametrize("method", PRIVATE)
def test_records_outside_of_0_and_1_cost_nothing(method):
    X, y = sample(200, 3).astype(float), sample(200, 1)[:, 0]
    budget = Budget(epsilon=1, delta=1e-3)
    for value in (np.nan, 2.0, 0.5, -1.0):
        bad = X.copy()
        bad[7, 1] = value
        with pytest.raises(DomainError, match=r"^column 1: must hold 0 and 1 only; there are others$"):
            learn_conjunction(bad, y, epsilon=1.0, delta=1e-6, k=1, method=method, rng=Watched(), budget=budget)
        labels = y.astype(float)
        labels[3] = value if value != -1 else 3
        with pytest.raises(DomainError, match=r"^y: must be 1, and 0 or -1 where it is not; there are other labels$"):
            learn_conjunction(X, labels, epsilon=1.0, delta=1e-6, k=1, method=method, rng=Watched(), budget=budget)
    for labels, message in (
        (None, "y=None: must be the labels"), (y[:-1], r"y: shape \(199,\): must be \(200,\)"),
        (y.astype(str), "y: dtype <U5: must be 0 and 1, or -1 and 1"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"^{message}"):
            learn_conjunction(X, labels, epsilon=1.0, delta=1e-6, method=method, rng=Watched(), budget=budget)
    assert not budget.releases


@pytest.mark.parametrize("method", PRIVATE)
def test_a_budget_pays_once_and_one_that_cannot_reads_nothing(method, monkeypatch):
    X = sample(300, 3)
    budget = Budget(epsilon=1.5, delta=1e-5)
    h = learn_conjunction(X, X[:, 0], epsilon=1.0, delta=1e-6, k=2, method=method, budget=budget)
    assert len(budget.releases) == 1
    assert h.guarantee.implies(fastdp.ApproxDP(1.0, 1e-6))

    def unread(self, *, keep):
        raise AssertionError("records are read")

    monkeypatch.setattr(Examples, "read", unread)
    with pytest.raises(BudgetExceeded):
        learn_conjunction(X, X[:, 0], epsilon=1.0, delta=1e-6, k=2, method=method, budget=budget, rng=Watched())
    assert len(budget.releases) == 1


@pytest.mark.parametrize("method", PRIVATE)
def test_a_charge_is_final_from_the_first_draw_on(method):
    """What fails before gives it back, what fails after does not."""
    X = sample(300, 3)

    class Failing(Randomness):
        def __init__(self, after):
            super().__init__(seed=1)
            self.after = after

        def key(self):
            self.after -= 1
            if self.after < 0:
                raise OSError("no randomness")
            return super().key()

    several = {"peel": [0, 1], "greedy": [0, 1, 2]}.get(method, [0])
    for after in several:
        budget = Budget(epsilon=1, delta=1e-3)
        try:
            learn_conjunction(
                X, X[:, 0], epsilon=1.0, delta=1e-6, k=2, method=method, budget=budget, rng=Failing(after)
            )
        except OSError:
            assert len(budget.releases) == (after > 0)
        else:
            assert method == "peel", "which may stop after one draw"
            assert len(budget.releases) == 1


def test_guarantees_of_the_methods():
    """Rounds of the exponential mechanism add up in concentrated privacy, too: range^2 / 8 each."""
    X = sample(300, 3)
    for method, delta, text in (
        ("peel", 1e-6, "(1, 1e-06)-DP"), ("peel", 0.0, "1-DP"), ("greedy", 1e-6, "(1, 1e-06)-DP"),
        ("greedy", 0.0, "1-DP"), ("exhaustive", 1e-6, "(1, 1e-06)-DP"),
    ):  # fmt: skip
        plan = choose_method(conjunctions.PRIVATE, method, problem(300, 3, 2, 1.0, delta))[1]
        h = learn_conjunction(X, X[:, 0], epsilon=1.0, delta=delta, k=2, method=method)
        rounds, unit = getattr(plan, "rounds", 1), 2 if method == "greedy" else 1
        spent, concentrated = h.guarantee.parts
        assert str(spent) == f"{text}, replace-one"
        assert concentrated.rho == pytest.approx(rounds * (2 * unit * plan.eta) ** 2 / 8, rel=1e-9)
    assert str(learn_conjunction(X, X[:, 0], epsilon=1.0, method="counts").guarantee) == "1-DP, replace-one"
    h = learn_conjunction(X, X[:, 0], epsilon=1.0, k=2, method="exhaustive", neighbors="add-remove", records=300)
    assert h.guarantee == fastdp.BoundedRange(1.0, neighbors="add-remove")


@pytest.mark.parametrize("method", PRIVATE)
def test_no_more_of_epsilon_is_used_than_is_written(method):
    """0.1 is a little above one tenth in binary; budgets charge one tenth."""
    for epsilon, delta in ((0.1, 0.0), (0.3, 1e-6)):
        t = problem(1000, 4, 2, epsilon, delta)
        used, leak = (Fraction(x) for x in t.privacy.allowance)
        assert used <= Fraction(str(epsilon)) <= used + Fraction(1, 2**50)
        assert leak <= Fraction(str(delta))
        plan = choose_method(conjunctions.PRIVATE, method, t)[1]
        if method == "counts" and not delta:
            assert Fraction(plan.noise.scale) * Fraction(str(epsilon)) >= 8
        elif not delta:
            rounds = {"peel": getattr(plan, "rounds", 1), "greedy": getattr(plan, "rounds", 1) * t.k}.get(method, 1)
            assert Fraction(plan.eta) * 2 * rounds <= Fraction(str(epsilon))


# --- what records may be


def forms(X, y, tmp_path):
    names = [f"a{j}" for j in range(X.shape[1])]
    table = {name: X[:, j] for j, name in enumerate(names)}
    labelled = pa.table({"label": y, **table})
    path = tmp_path / "rows.parquet"
    pq.write_table(labelled, path, row_group_size=777)
    return {
        "bool": (X, y),
        "uint8": (X.astype(np.uint8), y.astype(int)),
        "int8": (X.astype(np.int8), np.where(y, 1, -1)),
        "int64": (X.astype(np.int64), y.astype(float)),
        "float": (X.astype(float), y[:, None]),
        "Fortran": (np.asfortranarray(X), y.tolist()),
        "packed": (fastdp.pack(X), y),
        "mapping": (table, y),
        "pandas": (pd.DataFrame(table), pd.Series(y)),
        "pandas with labels": (labelled.to_pandas(), "label"),
        "polars": (pl.DataFrame(table), pl.Series(y)),
        "polars with labels": (pl.DataFrame({"label": y.astype(int), **table}), "label"),
        "arrow": (labelled, "label"),
        "parquet": (path, "label"),
        "array with labels": (np.column_stack((y, X)).astype(np.int64), 0),
    }


@pytest.mark.parametrize("method", [*PRIVATE, "elimination"])
def test_results_depend_on_neither_the_form_of_records_nor_threads(method, tmp_path):
    X = sample(70_001, 5)
    y = X[:, 1] & ~X[:, 3]
    y[:500] = ~y[:500]
    found = set()
    threads = fastdp.get_num_threads()
    try:
        for i, (rows, labels) in enumerate(forms(X, y, tmp_path).values()):
            fastdp.set_num_threads(1 + i % 2)
            price = (
                {} if method == "elimination" else {"k": 2, "epsilon": 0.05, "delta": 1e-6, "rng": Randomness(seed=6)}
            )
            h = learn_conjunction(rows, labels, method=method, **price)
            assert h.width == 5
            assert h.names in (None, ("a0", "a1", "a2", "a3", "a4"))
            found.add((h.literals, h.error(rows, labels)))
    finally:
        fastdp.set_num_threads(threads)
    assert len(found) == 1


def test_blocks_of_every_length_are_counted(tmp_path):
    """Parquet blocks start anywhere in a word, packed ones at words, arrays at 1024s."""
    X = sample(3000, 70)
    y = sample(3000, 1, 5)[:, 0]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({f"c{j}": X[:, j] for j in range(70)}), path, row_group_size=391)
    drawn = [0, 7, 40]
    left = np.ones(3000, bool)
    for literal in drawn:
        left &= X[:, literal // 2] == (literal % 2 == 0)
    for rows in (X, path, fastdp.pack(X), fastdp.pack(path)):
        for keep in (True, False):
            examples = Examples(rows, y)
            examples.read(keep=keep)
            found = examples.falsified(drawn)
            assert (found.negatives, found.positives) == (np.sum(left & ~y), np.sum(left & y))
            for j in range(70):
                assert found.of_positives[2 * j] == np.sum(left & y & ~X[:, j])
                assert found.of_negatives[2 * j] == np.sum(left & ~y & ~X[:, j])
                assert found.of_positives[2 * j + 1] == np.sum(left & y & X[:, j])
                assert found.of_negatives[2 * j + 1] == np.sum(left & ~y & X[:, j])


# --- what is returned


def learned(literals, names=None, width=4):
    return conjunctions.LearnedConjunction(literals, "peel", PureDP(1.0), 0.25, 0.05, width, names)


def test_results_read_as_a_person_would_write_them():
    h = learned(((0, True), (2, False)))
    assert str(h) == "v1 ∧ ¬v3"
    assert repr(h) == (
        "LearnedConjunction\n"
        "  hypothesis  v1 ∧ ¬v3\n"
        "  method      peel\n"
        "  error       at most 0.25 with probability 0.95, if some conjunction fits\n"
        "  guarantee   1-DP, replace-one"
    )
    assert str(learned(())) == "true"
    assert str(learned(((1, False), (1, True)))) == "false"
    named = learned(((0, True), (2, False)), ("smokes", "b", "<old>", "d"))
    assert str(named) == "smokes ∧ ¬<old>"
    assert html.escape("¬<old>") in named._repr_html_()
    assert "<old>" not in named._repr_html_()
    assert "no error bound" in repr(replace(h, error_bound=1.0))


def test_predictions_go_by_names_where_there_are_names():
    X = sample(100, 4)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    h = learned(((0, True), (2, False)), ("a", "b", "c", "d"))
    right = X[:, 0] & ~X[:, 2]
    for rows in (X, frame, frame[["d", "c", "b", "a"]], frame[["c", "a"]], pl.DataFrame(frame), fastdp.pack(X)):
        np.testing.assert_array_equal(h.predict(rows), right)
    with pytest.raises(ValueError, match=r"^data: must have the columns 'a'$"):
        h.predict(frame[["b", "c"]])
    with pytest.raises(ValueError, match=r"^X: 3 columns: must have 4, as the records learned from$"):
        h.predict(X[:, :3])
    for literals, value in (((), True), (((1, True), (1, False)), False)):
        np.testing.assert_array_equal(learned(literals).predict(X), np.full(100, value))
        assert learned(literals).predict(X[:0]).shape == (0,)
    assert h.error(frame, right) == 0
    assert fastdp.error(h, X, ~right) == 1
    assert h.error(frame, "b") == np.mean(right != X[:, 1]), (
        "the label is no column of the records, and none is asked for"
    )


def test_results_pickle():
    X = sample(500, 4)
    h = learn_conjunction(X, X[:, 0], k=2, epsilon=4.0, delta=1e-6, rng=Randomness(seed=1))
    copy = pickle.loads(pickle.dumps(h))
    assert (copy.literals, copy.guarantee, str(copy), repr(copy)) == (h.literals, h.guarantee, str(h), repr(h))
    np.testing.assert_array_equal(copy.predict(X), h.predict(X))
    with pytest.raises(AttributeError):
        h.method = "other"  # type: ignore[misc]


@pytest.mark.parametrize("method", PRIVATE)
def test_progress_is_reported_from_0_to_the_end(method):
    X, seen = sample(500, 4), []
    learn_conjunction(X, X[:, 0], k=2, epsilon=4.0, delta=1e-6, method=method, progress=lambda *now: seen.append(now))
    done = [now[0] for now in seen]
    assert done == sorted(done)
    assert done[0] == 0
    assert seen[-1][0] == seen[-1][1]


def test_seeds_warn_nobody_here():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learn_conjunction(sample(9000, 2), sample(9000, 1)[:, 0], k=1, epsilon=1.0, rng=Randomness(seed=1))


# --- the least error bound, and who is warned


def test_auto_takes_the_method_with_the_least_error_bound():
    for n, d, k, delta in (
        (10**5, 20, 2, 0.0),
        (10**6, 100, 10, 1e-6),
        (10**6, 100, 100, 1e-6),
        (10**7, 1000, 40, 1e-6),
    ):
        name, plan = choose_method(conjunctions.PRIVATE, "auto", problem(n, d, k, 1.0, delta))
        others = {
            other: conjunctions.PRIVATE[other].prepare(problem(n, d, k, 1.0, delta)).bound
            for other in ("peel", "greedy", "counts")
        }
        assert plan.bound <= min(others.values())
        assert name == "exhaustive" or plan.bound == others[name]
        options = {"k": k, "epsilon": 1.0, "delta": delta}
        assert fastdp.bounds.learn_conjunction(n, d, method="auto", **options) == pytest.approx(min(1, plan.bound / n))
    X = sample(20_000, 6)
    h = learn_conjunction(X, X[:, 0] & ~X[:, 3], k=2, epsilon=1.0, method="auto")
    assert (h.method, str(h)) == ("exhaustive", "v1 ∧ ¬v4")
    found = {
        m: fastdp.bounds.learn_conjunction_n(100, k=3, error=0.01, epsilon=1.0, method=m) for m in METHODS_OF_BOUNDS
    }
    assert found["auto"] == min(found.values()) == found["exhaustive"]


METHODS_OF_BOUNDS = ("peel", "greedy", "counts", "exhaustive", "auto")


def test_a_vacuous_error_bound_is_warned_of_before_anything_is_charged():
    X = sample(60, 3)
    budget = Budget(epsilon=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(fastdp.AccuracyWarning, match=r"^learn_conjunction: 60 records are too few .*conjunction_n"):
            learn_conjunction(X, X[:, 0], epsilon=1.0, k=2, budget=budget)
        assert not budget.releases
        with pytest.raises(fastdp.PrivacyWarning, match="not private"):
            learn_conjunction(X, X[:, 0], method="elimination")
        learn_conjunction(sample(9000, 3), sample(9000, 3)[:, 0], epsilon=1.0, k=1, method="exhaustive")


def test_noisy_labels_are_what_exhaustive_is_for():
    X = sample(20_000, 8)
    y = (X[:, 1] & ~X[:, 4]) ^ (np.random.default_rng(5).random(20_000) < 0.2)
    h = learn_conjunction(X, y, k=2, epsilon=1.0, method="exhaustive", rng=Randomness(seed=9))
    assert str(h) == "v2 ∧ ¬v5"


def test_errors_of_other_models_get_the_records_that_they_know():
    frame = pd.DataFrame({"a": [0, 1, 2, 3], "t": [0, 0, 1, 1]})
    assert fastdp.error(lambda X: X["a"] > 1, frame, "t") == 0.0
    assert fastdp.error(lambda X: X["a"] > 1, {"a": np.arange(4), "t": np.array([0, 0, 1, 0])}, "t") == 0.25
    with pytest.raises(ValueError, match=r"^y=1: must be labels, as h takes X without them$"):
        fastdp.error(lambda X: X, frame.to_numpy(), 1)
    with pytest.raises(DomainError, match=r"^h: predictions: must be 1, and 0 or -1"):
        fastdp.error(lambda X: X["a"], frame, "t")
    with pytest.raises(ValueError, match=r"^h: type int: must be a function"):
        fastdp.error(3, frame, "t")
