"""The guard and the search for labels that are wrong: privacy by enumeration over all neighbours, mutants that must
fail, laws, and errors on labels of every kind."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastdp
from fastdp import Budget, Randomness, learn_conjunction
from fastdp.learning import conjunctions, conjunctions_search, guard
from fastdp.learning.conjunctions_greedy import prepare_greedy
from fastdp.learning.conjunctions_search import LOST, Move, SearchParameters, prepare_search, subset_errors
from fastdp.learning.examples import Examples
from fastdp.learning.methods import choose_method
from fastdp.privacy import PureDP
from fastdp.randomness.noise_plans import laplace_plan
from tests.laws import ALARM, check_cells, log_at_least
from tests.learning.conjunctions_oracle import (
    RELATIONS,
    SLACK,
    Counts,
    all_conjunctions,
    errors_of,
    greedy_scores,
    holds,
    keys_of,
    loss,
    neighbourhood,
    problem,
    sample,
    silent,
    softmax,
)

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")  # tiny data


def as_pairs(numbers):
    return [(number // 2, number % 2 == 0) for number in numbers]


def choice(databases, candidates, eta, times=1):
    """The law of a choice by errors: [candidate, database]."""
    scores = np.array([[-times * errors_of(as_pairs(c), rows) for c in candidates] for rows in databases], float)
    return softmax(scores, eta).T


# --- the guard: privacy


def guarded_law(databases, d, k, rounds, eta, guard_eta, times=1):
    """Of all draws of greedy and of the guard after them, in their order."""
    counts, out = Counts(databases, d), []
    for drawn in itertools.product(range(2 * d + 1), repeat=rounds):
        mass, found = np.ones(len(databases)), []
        for literal in drawn:
            mass = mass * softmax(greedy_scores(counts, frozenset(found), k), eta)[:, literal]
            if literal < 2 * d and literal not in found:
                found.append(literal)
        candidates = [[0, 1], *(found[:s] for s in range(len(found) + 1))]
        out += [mass * last for last in choice(databases, candidates, guard_eta, times)]
    return np.array(out)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "k", "epsilon"), [(1, 4, 1, 2.0), (2, 2, 1, 1.0)])
def test_a_guarded_method_keeps_its_guarantee(d, n, k, epsilon, neighbors):
    databases, pairs = neighbourhood(d, n, neighbors)
    rest, last = guard.split(problem(n, d, k, epsilon, beta=0.9, neighbors=neighbors).privacy)
    assert rest.epsilon + last.epsilon == epsilon
    rounds = 2
    eta = rest.eta(rounds, unit=k)
    law = guarded_law(databases, d, k, rounds, eta, last.eta)
    np.testing.assert_allclose(law.sum(axis=0), 1, atol=1e-12)
    assert loss(law, pairs) <= epsilon + SLACK


FEW = [(((0,), False),) * n for n in (60, 61)]  # neighbours under add-remove, which attain what a choice may tell
BOTH = ((0, 1), (1, 0))


def test_an_unpaid_guard_is_rejected_and_errors_that_count_twice():
    rest, last = guard.split(problem(60, 1, 1, neighbors="add-remove").privacy)
    eta = rest.eta(1)
    assert 0.95 < loss(guarded_law(FEW, 1, 1, 1, eta, last.eta), BOTH) <= 1 + SLACK
    whole = problem(60, 1, 1, neighbors="add-remove").privacy.eta(1)
    assert loss(guarded_law(FEW, 1, 1, 1, whole, last.eta), BOTH) > 1.03, "guard unpaid"
    assert loss(guarded_law(FEW, 1, 1, 1, eta, last.eta, times=2), BOTH) > 1.03, "errors twice"


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1.0, 7.0])
def test_the_parts_of_epsilon_add_up_to_no_more(epsilon, neighbors):
    """0.1 is a little above one tenth in binary."""
    from fractions import Fraction

    privacy = problem(1000, 3, 2, epsilon, 1e-6, neighbors=neighbors).privacy
    rest, last = guard.split(privacy)
    parts = Fraction(rest.epsilon) + Fraction(last.epsilon)
    assert parts <= min(Fraction(epsilon), Fraction(str(epsilon)))
    assert parts >= Fraction(epsilon) * (1 - Fraction(1, 2**50))
    assert rest.delta == 1e-6
    assert Fraction(last.eta) * privacy.score_range <= Fraction(last.epsilon)
    assert last.guarantee.eta == last.epsilon


@pytest.mark.parametrize("method", ["peel", "greedy", "counts"])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_methods_that_rest_on_a_fit_are_guarded_unless_it_is_asserted(method, delta):
    asked = problem(5000, 4, 2, 1.0, delta)
    guarded = choose_method(conjunctions.PRIVATE, method, asked, realizable=False)
    alone = choose_method(conjunctions.PRIVATE, method, asked, realizable=True)
    assert guarded.guard is not None
    assert alone.guard is None
    assert guarded.plan == conjunctions.PRIVATE[method].prepare(
        problem(5000, 4, 2, guard.split(asked.privacy)[0].epsilon, delta, beta=0.025)
    )
    assert guarded.guarantee.implies(asked.privacy.guarantee)
    error, excess, compared = guarded.bounds(5000)
    assert alone.bounds(5000)[1:] == (None, None)
    assert compared == "found"
    assert excess == min(1, guarded.guard.slack(guarded.plan.candidates, 0.05) / 5000)
    assert error >= alone.bounds(5000).error
    with Budget(epsilon=1.0, delta=1e-6) as budget:
        learn_conjunction(sample(500, 4), sample(500, 4)[:, 0], k=2, epsilon=1.0, delta=delta, method=method)
    assert len(budget.releases) == 1


def test_prefixes_of_counts_are_in_the_order_of_noisy_counts():
    """The order of the true ones would have to be paid for."""
    X = np.ones((400, 3), bool)
    examples = Examples(X, X[:, 0])
    examples.read(keep=True)
    plan = conjunctions.PRIVATE["counts"].prepare(problem(400, 3, 3, 1.0))
    orders = {tuple(plan.learn(examples, keys_of(Randomness(seed=s)), silent)) for s in range(200)}
    assert {(0, 2, 4), (2, 0, 4), (4, 2, 0)} < orders, "their true counts are equal"


@pytest.mark.parametrize("method", ["auto", "search", "peel", "greedy"])
def test_errors_name_the_epsilon_that_was_given(method):
    X = sample(50, 6)
    for epsilon in (1e-300, 1e300):
        with pytest.raises(ValueError, match=rf"^epsilon={epsilon!r}: must be such that".replace("+", r"\+")):
            learn_conjunction(X, X[:, 0], k=3, epsilon=epsilon, method=method)
    if method == "peel":
        with pytest.raises(ValueError, match=r"^epsilon=1e-20, n=50: the scores of method='peel'"):
            learn_conjunction(X, X[:, 0], k=3, epsilon=1e-20, method=method)


def test_the_guard_has_this_law():
    rows = ((1, 0, 0), (1, 1, 1), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 1, 0), (1, 0, 1))
    data, found, eta = np.array(rows), [0, 2], 0.5
    examples = Examples(data[:, :2], data[:, 2])
    examples.read(keep=True)
    last = guard.Guard(1.0, eta, fastdp.BoundedRange(1.0))
    keys = keys_of(Randomness(seed=4))
    drawn = [conjunctions._guarded(last, examples, found, keys) for _ in range(3000)]
    candidates = [[0, 1], [], [0], [0, 2]]

    def verdict(eta):
        law = choice([[(row[:2], bool(row[2])) for row in rows]], candidates, eta)[:, 0]
        return check_cells([drawn.count(c) for c in candidates], [(p - SLACK, p + SLACK) for p in law.tolist()])

    assert verdict(eta)
    for off in (-1, 0.5, 1.5):
        assert not verdict(off * eta), "a wrong law passes"


# --- the guard: accuracy


def test_the_slack_of_a_guard_is_attained_and_a_lesser_one_is_not():
    """c - 1 candidates at a distance t, which theorem 2's bound counts as if all weighed as much."""
    last = guard.split(problem(1000, 3, 2).privacy)[1]
    for candidates, beta in ((2, 0.05), (10, 0.01)):
        t = last.slack(candidates, beta)
        others = (candidates - 1) * math.exp(-last.eta * t)
        assert others == pytest.approx(beta)
        assert others / (1 + others) <= beta
    assert last.slack(10, 0.05) == pytest.approx(32 * math.log(9 / 0.05))


WRONG = {
    "all": lambda y, rng: ~y,
    "of one class": lambda y, rng: y & (rng.random(y.size) < 0.5),
    "of the other class": lambda y, rng: y | (rng.random(y.size) < 0.1),
    "a few": lambda y, rng: y ^ (rng.random(y.size) < 0.02),
    "half": lambda y, rng: rng.random(y.size) < 0.5,
    "none, all negative": lambda y, rng: y & False,
    "none, all positive": lambda y, rng: y | True,
}


def spoilt(kind, n, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 6)) < 0.5
    return X, WRONG[kind](holds([(0, True), (3, False)], X), rng)


@pytest.mark.parametrize("method", ["peel", "greedy", "counts", "search", "exhaustive"])
@pytest.mark.parametrize("kind", WRONG)
def test_no_labels_make_a_result_much_worse_than_a_constant(kind, method):
    n, beta, runs, failed = 3000, 0.2, 20, 0
    X, y = spoilt(kind, n, 1)
    X = fastdp.pack(X)
    constant = min(y.mean(), 1 - y.mean())
    for seed in range(runs):
        h = learn_conjunction(X, y, k=2, epsilon=2.0, method=method, beta=beta, rng=Randomness(seed=seed))
        assert 0 < h.excess_bound < 0.1
        assert h.compared_with == ("class" if method == "exhaustive" else "found")
        failed += h.error(X, y) > constant + h.excess_bound
    assert log_at_least(failed, runs, beta) > math.log(ALARM)


def test_without_a_guard_wrong_labels_are_worse_than_a_constant():
    """What the guard is for: peel alone returns "true"."""
    rng = np.random.default_rng(0)
    X = rng.random((50_000, 30)) < 0.5
    y = holds([(0, True), (1, True), (2, True)], X) ^ (rng.random(50_000) < 0.01)
    how = {"k": 3, "epsilon": 1.0, "delta": 1e-6, "rng": Randomness(seed=1)}
    assert learn_conjunction(X, y, method="peel", realizable=True, **how).error(X, y) > 0.8
    assert learn_conjunction(X, y, method="peel", **how).error(X, y) < 0.14
    h = learn_conjunction(X, y, **how)
    assert str(h) == "v1 ∧ v2 ∧ v3"
    assert h.excess_bound < 0.001


@pytest.mark.parametrize("noise", [0.0, 0.005, 0.02, 0.1])
def test_the_search_finds_four_of_four_hundred(noise):
    rng = np.random.default_rng(2)
    X = rng.random((100_000, 400)) < 0.5
    target = [(5, True), (77, False), (200, True), (399, False)]
    y = holds(target, X) ^ (rng.random(100_000) < noise)
    h = learn_conjunction(X, y, k=4, epsilon=1.0, rng=Randomness(seed=1))
    assert h.method == "search"
    assert h.error(X, y) <= noise + 0.002
    assert sorted(h.literals) == target


def test_the_search_takes_as_many_literals_as_it_is_asked_for():
    """Twenty, of which each excludes few; without a number it goes for twelve."""
    rng = np.random.default_rng(4)
    X = rng.random((100_000, 60)) < 2 ** (-1 / 20)
    y = X[:, :20].all(axis=1)
    how = {"epsilon": 4.0, "rng": Randomness(seed=1)}
    h = learn_conjunction(X, y, k=20, **how)
    assert (h.method, len(h.literals)) == ("search", 20)
    assert h.error(X, y) < 0.01
    plan = prepare_search(problem(100_000, 60, 20, 4.0))
    each = plan.eta * plan.penalty / LOST
    assert math.log(16) <= each < math.log(16) + plan.eta / LOST
    weight = 1 + sum(math.exp(-each * s) for s in range(21))  # "false" and all prefixes
    assert plan.excess == pytest.approx((math.log(weight / 0.05) + 20 * each) / plan.eta)
    assert len(learn_conjunction(X, y, **how).literals) <= 12
    assert sum(prepare_search(problem(100_000, 60, 60, 4.0)).sizes) == 12


# --- the search: privacy, laws, counts


def move_law(databases, d, found, size, of_negative, eta):
    """Of one move: the sets of literals, and [set, database]."""
    taken = {literal // 2 for literal in found}
    sets = [c for c in all_conjunctions(d, size) if len({j for j, _ in c}) == len(c) and not taken & {j for j, _ in c}]

    def cost(rows, c):
        left = [(bits, label) for bits, label in rows if all(bits[j] == v for j, v in as_pairs(found))]
        lost = sum(label and any(bits[j] != v for j, v in c) for bits, label in left)
        kept = sum(not label and all(bits[j] == v for j, v in c) for bits, label in left)
        return LOST * lost + of_negative * kept

    scores = np.array([[-float(cost(rows, c)) for c in sets] for rows in databases])
    return [[2 * j + (not v) for j, v in c] for c in sets], softmax(scores, eta).T


def choice_of_parts(databases, parts, eta, penalty):
    """By errors, and 64ths of an error for each literal; of "false", the first, for none."""
    law = choice(databases, parts, eta)
    law = law * np.array([[math.exp(-eta * penalty / LOST * len(part) * (i > 0))] for i, part in enumerate(parts)])
    return law / law.sum(axis=0)


def search_law(databases, d, sizes, costs, move_eta, eta, penalty=0):
    """Of all moves and the last choice, given what negatives cost in each: (moves, the result, [.., database])."""
    open_ = [([], (), np.ones(len(databases)))]
    for size, of_negative in zip(sizes, costs, strict=True):
        following = []
        for found, moves, mass in open_:
            sets, law = move_law(databases, d, found, size, of_negative, move_eta)
            following += [([*found, *c], (*moves, tuple(c)), mass * p) for c, p in zip(sets, law, strict=True)]
        open_ = following
    keys, out = [], []
    for found, moves, mass in open_:
        parts = [[0, 1], *(c for s in range(len(found) + 1) for c in map(list, itertools.combinations(found, s)))]
        for part, p in zip(parts, choice_of_parts(databases, parts, eta, penalty), strict=True):
            keys.append((moves, tuple(sorted(part))))
            out.append(mass * p)
    return keys, np.array(out)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "sizes"), [(1, 4, (1,)), (2, 2, (1, 1)), (2, 2, (2,))])
def test_the_search_keeps_its_guarantee(d, n, sizes, neighbors):
    """Given the noisy number of positives, of which what a negative costs is a function."""
    databases, pairs = neighbourhood(d, n, neighbors)
    privacy = problem(n, d, 2, 1.0, neighbors=neighbors).privacy
    eta, move_eta = privacy.eta(len(sizes) + 1), privacy.eta(len(sizes) + 1, unit=LOST)
    for cost in (1, 20, 64):
        costs = [cost, *[LOST] * (len(sizes) - 1)]
        law = search_law(databases, d, sizes, costs, move_eta, eta)[1]
        np.testing.assert_allclose(law.sum(axis=0), 1, atol=1e-12)
        assert loss(law, pairs) <= 1 + SLACK


def test_choices_of_the_search_that_are_not_paid_for_are_rejected():
    privacy = problem(60, 1, 1, neighbors="add-remove").privacy
    eta, move_eta = privacy.eta(2), privacy.eta(2, unit=LOST)

    def lost(move_eta, eta):
        return loss(search_law(FEW, 1, (1,), [LOST], move_eta, eta)[1], BOTH)

    assert 0.95 < lost(move_eta, eta) <= 1 + SLACK
    assert lost(move_eta, 2 * eta) > 1.2, "errors counted twice"
    assert lost(privacy.eta(1, unit=LOST), privacy.eta(1)) > 1.2, "the last choice unpaid"
    assert lost(4 * move_eta, eta) > 1.2, "costs taken for less than they are"


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_the_search_pays_for_the_number_of_positives_and_every_choice(neighbors, delta):
    asked = problem(50_000, 100, 8, 1.0, delta, neighbors=neighbors)
    plan = prepare_search(asked)
    rest = problem(50_000, 100, 8, 1 - 2.0**-5, delta, neighbors=neighbors).privacy
    assert plan.count.scale == 32
    assert plan.sizes == (3, 3, 2)
    assert plan.eta == rest.eta(4)
    assert plan.move_eta == rest.eta(4, unit=64)
    assert plan.guarantee.implies(asked.privacy.guarantee)
    each = plan.eta * plan.penalty / LOST
    assert plan.excess == pytest.approx((math.log((1 + (1 + math.exp(-each)) ** 8) / 0.05) + 8 * each) / plan.eta)


@pytest.mark.parametrize("penalty", [0, 60])
@pytest.mark.parametrize("sizes", [(1, 1), (2,)])
def test_the_search_has_this_law(sizes, penalty):
    rows = ((1, 0, 0), (1, 1, 1), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 1, 0), (1, 0, 1)) * 2
    data, eta, move_eta = np.array(rows), 0.7, 0.02
    database = [(row[:2], bool(row[2])) for row in rows]
    examples = Examples(data[:, :2], data[:, 2])
    examples.read(keep=True)
    plan = SearchParameters(14, laplace_plan(0.02), sizes, eta, move_eta, PureDP(1.0), 0.0, penalty=penalty)
    costs = [plan.cost_of_negative(8, done) for done in range(len(sizes))]
    rng = Randomness(seed=3)
    drawn = [tuple(sorted(plan.learn(examples, keys_of(rng), silent))) for _ in range(3000)]

    def verdict(move_eta, eta, penalty=penalty):
        keys, law = search_law([database], 2, sizes, costs, move_eta, eta, penalty)
        cells = {}
        for (_, part), mass in zip(keys, law[:, 0].tolist(), strict=True):
            cells[part] = cells.get(part, 0.0) + mass
        counts = [drawn.count(part) for part in cells]
        assert sum(counts) == len(drawn)
        return check_cells(counts, [(max(0.0, p - SLACK), p + SLACK) for p in cells.values()])

    assert verdict(move_eta, eta)
    assert not verdict(move_eta, eta / 2), "a wrong law passes"
    assert not verdict(move_eta * 4, eta), "a wrong law passes"
    assert not verdict(move_eta, eta, penalty + 40), "a wrong law passes"


# --- one move that is the only choice


def only_law(databases, d, size, eta, penalty):
    """Of all conjunctions of up to so many literals, and "false", the first: by errors and literals."""
    parts = [[0, 1], *([2 * j + (not v) for j, v in c] for c in all_conjunctions(d, size) if not contradicts(c))]
    return parts, choice_of_parts(databases, parts, eta, penalty)


def contradicts(c):
    return len({j for j, _ in c}) < len(c)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("d", "n", "size"), [(1, 4, 1), (2, 3, 2)])
def test_an_only_choice_keeps_its_guarantee(d, n, size, neighbors):
    databases, pairs = neighbourhood(d, n, neighbors)
    eta = problem(n, d, size, 1.0, neighbors=neighbors).privacy.eta(1)
    for penalty in (0, 90):
        law = only_law(databases, d, size, eta, penalty)[1]
        np.testing.assert_allclose(law.sum(axis=0), 1, atol=1e-12)
        assert loss(law, pairs) <= 1 + SLACK
        assert loss(only_law(databases, d, size, 2 * eta, penalty)[1], pairs) > 1.2, "errors counted twice"


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_few_records_are_for_an_only_choice(neighbors, delta):
    asked = problem(300, 20, 20, 1.0, delta, neighbors=neighbors)
    plan = prepare_search(asked)
    assert plan.count is None
    assert len(plan.sizes) == 1
    assert plan.eta == asked.privacy.eta(1)
    assert plan.move_eta == asked.privacy.eta(1, unit=LOST)
    assert plan.guarantee == asked.privacy.guarantee_of(1, plan.eta)
    each, k = plan.eta * plan.penalty / LOST, plan.sizes[0]
    weight = 1 + sum(math.comb(20, s) * 2**s * math.exp(-each * s) for s in range(k + 1))
    assert plan.excess == pytest.approx((math.log(weight / 0.05) + k * each) / plan.eta)
    assert plan.excess <= 60


def test_an_only_choice_has_this_law():
    rows = ((1, 0, 0), (1, 1, 1), (0, 1, 0), (0, 0, 1), (1, 1, 1), (0, 1, 0), (1, 0, 1)) * 2
    data, eta, penalty = np.array(rows), 0.4, 60
    database = [(row[:2], bool(row[2])) for row in rows]
    examples = Examples(data[:, :2], data[:, 2])
    examples.read(keep=True)
    plan = SearchParameters(14, None, (2,), eta, eta / LOST, PureDP(1.0), 0.0, penalty=penalty)
    rng = Randomness(seed=3)
    drawn = [tuple(sorted(plan.learn(examples, keys_of(rng), silent))) for _ in range(3000)]

    def verdict(eta, penalty):
        parts, law = only_law([database], 2, 2, eta, penalty)
        counts = [drawn.count(tuple(sorted(part))) for part in parts]
        assert sum(counts) == len(drawn)
        return check_cells(counts, [(max(0.0, p - SLACK), p + SLACK) for p in law[:, 0].tolist()])

    assert verdict(eta, penalty)
    assert not verdict(eta / 2, penalty), "a wrong law passes"
    assert not verdict(eta, 0), "a wrong law passes"


# --- literals that say nothing, and few records


def test_literals_that_say_nothing_are_seldom_learned():
    """Of columns that are constant, (17/16)^2 - 1 of the time; where no record is positive there is none at all."""
    X = np.random.default_rng(0).random((20_000, 20)) < 0.5
    nobody = np.zeros(len(X), bool)
    assert {str(learn_conjunction(X, nobody, epsilon=1.0, rng=Randomness(seed=s))) for s in range(3)} == {"false"}
    assert str(learn_conjunction(X, ~nobody, epsilon=1.0, rng=Randomness(seed=0))) == "true"
    X[:, 5], X[:, 6] = 1, 0
    for n, d, runs in ((20_000, 20, 4), (500, 10, 40)):
        few = X[:n, :d]
        y = few[:, 0] & few[:, 1]
        how = {"method": "search", "epsilon": 1.0}
        found = [str(learn_conjunction(few, y, rng=Randomness(seed=s), **how)) for s in range(runs)]
        longer = [h for h in found if h != "v1 ∧ v2"]
        assert log_at_least(len(longer), runs, (17 / 16) ** 2 - 1) > math.log(ALARM)
        assert len(longer) <= runs / 4


def test_two_literals_are_found_in_few_records_without_a_number():
    for seed in range(6):
        X = np.random.default_rng(seed).random((200, 20)) < 0.5
        y = X[:, 0] & X[:, 1]
        assert learn_conjunction(X, y, epsilon=1.0, rng=Randomness(seed=seed)).error(X, y) == 0


def test_costs_and_errors_are_counted_as_they_are(tmp_path):
    """On records in memory, in a file and packed, against plain loops."""
    n, d = 1500, 5
    X, y = sample(n, d), sample(n, 1, 4)[:, 0]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({f"c{j}": X[:, j] for j in range(d)}), path, row_group_size=391)
    found = [3, 8]
    left = X[:, 1] == 0
    left &= X[:, 4] == 1
    for rows in (X, path, fastdp.pack(X)):
        examples = Examples(rows, y)
        examples.read(keep=True)
        others = np.array([0, 2, 3])
        sets = conjunctions_search.Sets.of(3, 2)
        wrong, kept, labels = Move(found, 2, 1)._count(examples, others, sets)
        assert labels == (np.sum(left & ~y), np.sum(left & y))
        for place, columns in enumerate(((0,), (2,), (3,), (0, 2), (0, 3), (2, 3))):
            of_set = X[:, columns].all(axis=1) & left
            assert kept[place] == np.sum(of_set)
            assert wrong[place] == np.sum(left & (of_set != y))
        parts, errors = subset_errors(examples, [*found, 1])
        assert sorted(map(sorted, parts)) == sorted([[], [3], [8], [1], [3, 8], [1, 3], [1, 8], [1, 3, 8]])
        for part, error in zip(parts, errors, strict=True):
            assert error == np.sum(holds(as_pairs(part), X) != y)
        prefixes = [np.sum(holds(as_pairs(found[:s]), X) != y) for s in range(3)]
        assert examples.prefix_errors(found).tolist() == prefixes


# --- what is asked for and cannot be had


def test_more_literals_than_the_records_support_are_warned_of():
    X, y = sample(3000, 200), sample(3000, 1, 7)[:, 0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(fastdp.AccuracyWarning, match=r"k=20: method='search' goes for \d literals at most: 3,000"):
            learn_conjunction(X, y, k=20, epsilon=1.0)
        h = learn_conjunction(X, y, epsilon=1.0, rng=Randomness(seed=1))  # as many as it likes: nothing to warn of
    assert h.error(X, y) <= 0.5 + h.excess_bound


@pytest.mark.parametrize("value", [False, True])
def test_constant_columns_and_labels(value):
    X = np.full((2000, 80), value)
    X[:, 0] = sample(2000, 1)[:, 0]
    for y in (X[:, 0], np.zeros(2000, bool), np.ones(2000, bool)):
        for method in ("auto", "search", "peel"):
            h = learn_conjunction(X, y, k=5, epsilon=2.0, method=method, rng=Randomness(seed=2))
            assert h.error(X, y) <= h.excess_bound


def test_auto_is_a_function_of_public_numbers_and_of_what_is_asserted():
    cases = {(50_000, 30, 3): "exhaustive", (100_000, 400, 4): "search", (10**6, 1000, 10): "search"}
    for (n, d, k), name in cases.items():
        assert choose_method(conjunctions.PRIVATE, "auto", problem(n, d, k), realizable=False).method == name
    for n, name in ((1200, "search"), (3000, "exhaustive")):  # with ln(34,282 / .05) / .05 = 269 errors too many
        few = choose_method(conjunctions.PRIVATE, "auto", problem(n, 30, 3, 0.1), realizable=False)
        assert few.method == name
    n = fastdp.bounds.learn_conjunction_n(30, k=3, error=0.5, epsilon=0.1)
    assert 1340 < n < 1350
    assert fastdp.bounds.learn_conjunction(n, 30, k=3, epsilon=0.1) <= 0.2
    asserted = choose_method(conjunctions.PRIVATE, "auto", problem(10**6, 1000, 10, delta=1e-6), realizable=True)
    assert asserted.method == "greedy"
    assert asserted.bound == prepare_greedy(problem(10**6, 1000, 10, delta=1e-6)).bound
    assert fastdp.bounds.learn_conjunction(10**6, 1000, k=10, epsilon=1.0) == 1.0
    assert fastdp.bounds.learn_conjunction(10**6, 1000, k=10, epsilon=1.0, delta=1e-6, realizable=True) < 0.1
    assert fastdp.bounds.learn_conjunction_n(30, k=3, error=0.01, epsilon=1.0) < 3000
    with pytest.raises(
        ValueError, match=r"^method='auto', k=8, d=400, n=9,162: 3.9e\+18 conjunctions would take about"
    ):
        fastdp.bounds.learn_conjunction_n(400, k=8, error=0.01, epsilon=1.0)
