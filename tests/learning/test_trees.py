"""Decision trees: levels by enumeration over all neighbours, with mutants; counts by hand; accuracy and results."""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import fastdp
from fastdp import Randomness
from fastdp.learning import tree_growth, trees
from fastdp.learning.comparisons import Above, Bits
from fastdp.learning.examples import Examples
from fastdp.learning.privacy_parameters import PrivacyParameters
from fastdp.learning.tree_growth import (
    LEAF_SHARE,
    UNIT,
    GrownTree,
    LeafCounts,
    TreeParameters,
    TreeProblem,
    count_leaves,
    count_nodes,
    impurity,
    prepare_tree,
    scores_of,
)
from fastdp.privacy.composition import compose
from fastdp.privacy.guarantees import BoundedRange, PureDP
from fastdp.randomness.noise_plans import laplace_plan
from fastdp.records.number_line import NumberLine
from tests.laws import ALARM, log_at_least
from tests.learning.paths import NoKeys, Paths, law_of, multisets, neighbours, widest

RELATIONS = ("replace-one", "add-remove")
ETA = 1.0
KINDS = [(a, b, a & b, label) for a, b, label in product((0, 1), repeat=3)]  # three columns and a label


def examples_of(rows):
    table = np.array(rows, np.uint8).reshape(len(rows), 4)
    return bits_of(table[:, :3], table[:, 3])


def bits_of(X, y):
    examples = Examples(X, y, may_be_empty=True)
    examples.read(keep=True)
    return Bits(examples, "raise")


@pytest.fixture(scope="module", params=[False, True], ids=["by itself", "looking ahead"])
def grown(request):
    """The laws of the columns of a tree of two levels, for all multisets of up to three records."""
    plan = TreeParameters(ETA / UNIT, laplace_plan(1.0), (request.param, False), PureDP(1.0), 1.0)
    laws = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tree_growth, "integer_noise", lambda plan, key, size: np.zeros(size, np.int64))
        for rows in multisets(KINDS, 3):
            paths, examples = Paths(), examples_of(rows)
            patch.setattr(tree_growth, "draw_one", paths.draw_one)

            def run(examples=examples):
                columns = plan.grow(examples, NoKeys(), lambda *_: None).columns
                return columns[()], tuple(sorted(columns.items()))

            laws[rows] = law_of(paths, run)
    return laws


def roots(law):
    found = {}
    for (root, _), p in law.items():
        found[root] = found.get(root, 0.0) + math.exp(p)
    return {root: math.log(p) for root, p in found.items()}


def given(root, law):
    """The law of the second level."""
    at = roots(law)[root]
    return {outcome: p - at for outcome, p in law.items() if outcome[0] == root}


@pytest.mark.parametrize("relation", RELATIONS)
def test_a_level_has_the_range_that_is_charged(grown, relation):
    """The root, and both nodes of the second level together, for each root; and the two levels one after the other."""
    each = ETA * (2 if relation == "replace-one" else 1)
    pairs = list(neighbours(KINDS, 3, relation))
    levels = [{rows: roots(law) for rows, law in grown.items()}]
    levels += [{rows: given(root, law) for rows, law in grown.items()} for root in (0, 1, 2)]
    for laws in levels:
        spread, _ = widest(laws, pairs)
        assert spread <= each + 1e-9
    assert widest(grown, pairs)[1] <= 2 * each + 1e-9


def test_sizes_of_nodes_are_not_public_under_replace_one():
    """A mutant that charges for one of the nodes that a replaced record leaves and enters is refuted."""

    def log_laws(rows):
        """Of the columns of the two nodes, but for the first, which divides them."""
        nodes = count_nodes(examples_of(rows), [(0,), (1,)], pairs=False)
        scores = [ETA / UNIT * scores_of(counts)[1:] for counts in nodes]
        return [s - math.log(np.exp(s).sum()) for s in scores]

    common = [(x, *rest) for x in (0, 1) for rest in 20 * [(0, 1, 0)] + 20 * [(1, 0, 1)]]
    one, other = (log_laws([*common, (x, 1, 1, 1)]) for x in (0, 1))
    ranges = [np.ptp(p - q) for p, q in zip(one, other, strict=True)]
    assert all(0.9 * ETA < each <= ETA for each in ranges)
    assert sum(ranges) > 1.8 * ETA


def test_an_impurity_that_is_the_gini_itself_would_be_charged_too_little(grown, monkeypatch):
    """A mutant: 2 p q / (p + q) rises by up to 2 a record."""
    p, q = np.indices((60, 60))
    for larger in (impurity(np.stack([p + 1, q])), impurity(np.stack([p, q + 1]))):
        rise = larger - impurity(np.stack([p, q]))
        assert rise.min() >= 0
        assert 0.9 * UNIT < rise.max() <= UNIT
        assert (2 * rise).max() > UNIT


def test_impurities_of_all_counts():
    """Against fractions; monotone, with steps of at most a unit, up to counts that products do not hold."""
    draw = np.random.default_rng(0)
    numbers = [0, 1, 2, 3, 1000, 2**31 - 1, 2**31, 2**31 + 1, 2**40, *draw.integers(0, 2**33, 20).tolist()]
    for p, q in product(numbers, repeat=2):
        capped = min(p, 2**31), min(q, 2**31)
        exactly = math.floor(UNIT * Fraction(capped[0] * capped[1], max(sum(capped), 1)))
        assert impurity(np.array([p, q])) == exactly
        assert 0 <= impurity(np.array([p + 1, q])) - exactly <= UNIT
        assert 0 <= impurity(np.array([p, q + 1])) - exactly <= UNIT


@pytest.mark.parametrize("n", [0, 5, 1000, 70_000])
def test_counts_of_nodes_pairs_and_leaves(n):
    draw = np.random.default_rng(n)
    X, y = draw.random((n, 5)) < 0.5, draw.random(n) < 0.3
    examples = bits_of(X, y)
    paths = [(0, 3), (0, 2), (1, 4), (1, 5)]
    for path, counts in zip(paths, count_nodes(examples, paths, pairs=True), strict=True):
        here = np.logical_and.reduce([X[:, a // 2] == (a % 2 == 0) for a in path])
        for label in (0, 1):
            some = X[here & (y == label)].astype(int)
            assert counts.everyone[label] == len(some)
            assert (counts.ones[label] == some.sum(0)).all()
            assert (counts.both[label] == some.T @ some).all()
        for j, score in enumerate(scores_of(counts)):
            least = 0
            for value in (0, 1):
                part = here & (X[:, j] == value)
                least += min(
                    sum(int(impurity(np.bincount(y[part & (X[:, k] == v)], minlength=2))) for v in (0, 1))
                    for k in range(5)
                )
            assert score == -least
    leaves = count_leaves(examples, paths)
    assert leaves.sum() == n
    assert leaves[:, 1].sum() == y.sum()


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.1, 1e-6), (20.0, 1e-9)])
@pytest.mark.parametrize("depth", [1, 3, 8])
def test_parameters_use_all_of_epsilon_and_delta(depth, epsilon, delta, relation):
    plan = prepare_tree(TreeProblem(10**5, 20, depth, PrivacyParameters(epsilon, delta, 0.05, relation)))
    s = 2 if relation == "replace-one" else 1
    each = s * UNIT * plan.eta
    parts = [(BoundedRange(each), depth), (PureDP(epsilon * LEAF_SHARE), 1)]
    used = compose(*parts, delta=delta).to_approx(delta).epsilon if delta else depth * each + epsilon * LEAF_SHARE
    assert 0.999 * epsilon <= used <= epsilon * (1 + 1e-12)
    assert plan.noise.scale >= s / (epsilon * LEAF_SHARE)
    assert plan.guarantee.neighbors == relation


@pytest.mark.parametrize("relation", RELATIONS)
def test_quantiles_are_paid_for(relation):
    """Of the columns whose lines are longer than the thresholds are many; the others are free."""
    privacy = PrivacyParameters(1.0, 0.0, 0.05, relation)
    s = 2 if relation == "replace-one" else 1
    plan = prepare_tree(TreeProblem(10**5, 20, 3, privacy, 15, (64, 4, 1, 5)))
    levels = plan.quantiles.levels * plan.quantiles.columns
    assert levels == 4 * 2
    assert 0.999 <= levels * plan.quantiles.each + 3 * s * UNIT * plan.eta + LEAF_SHARE <= 1
    assert prepare_tree(TreeProblem(10**5, 20, 3, privacy, 15, (4, 1))).quantiles is None


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("quantiles", [4, 5, 7, 10, 23])
def test_no_choice_of_a_quantile_has_more_range_than_its_level(relation, quantiles):
    """Loss distributions of levels, by which a delta is used up, hold for no others."""
    plan = prepare_tree(TreeProblem(10**5, 20, 1, PrivacyParameters(1.0, 1e-6, 0.05, relation), quantiles, (64,)))
    for level, nodes in enumerate(plan.quantiles.nodes):
        for node in nodes:
            share = 2 * max(node.tau, 1 - node.tau)  # by which one record changes a loss, and of two one each
            moved = share if relation == "add-remove" else 2 * share if level else 2
            assert node.eta * moved <= Fraction(plan.quantiles.each)


@pytest.mark.parametrize("columns", [1, 2])
def test_numbers_at_the_end_of_their_domain_grow_a_tree(columns):
    """Nothing is above them; whether a call returns is not for records to decide."""
    y = np.arange(1000) % 2
    for X, options in (
        (np.full((1000, columns), 255), {"domain_bits": 8}), (np.full((1000, columns), np.finfo(float).max), {}),
    ):  # fmt: skip
        tree = fastdp.learn_tree(X, y, quantiles=3, depth=2, epsilon=50.0, rng=Randomness(seed=0), **options)
        assert tree.width == columns
    X = np.full((1000, 1), 255)
    X[::2] = 3
    tree = fastdp.learn_tree(X, X[:, 0] > 3, quantiles=1, depth=1, domain_bits=8, epsilon=9.0, rng=Randomness(seed=0))
    assert tree.error(X, X[:, 0] > 3) == 0


def test_looking_ahead_is_decided_by_public_numbers():
    privacy = PrivacyParameters(1.0, 0.0, 0.05)
    assert prepare_tree(TreeProblem(1000, 50, 4, privacy)).looks_ahead == (True, True, True, False)
    assert prepare_tree(TreeProblem(1_000_000, 100, 3, privacy)).looks_ahead == (False, False, False)
    assert prepare_tree(TreeProblem(100, 3000, 3, privacy)).looks_ahead == (False, False, False)


# --- accuracy


def conjunction(n, d, k, seed):
    """Half of the records have all of k columns."""
    draw = np.random.default_rng(seed)
    X = draw.random((n, d)) < np.where(np.arange(d) < k, 0.5 ** (1 / k), 0.5)
    return X, X[:, :k].all(1)


@pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning")
def test_a_tree_of_three_questions_finds_a_conjunction_of_three():
    """Of 50 columns, with 800 records at epsilon 1."""
    errors = []
    for seed in range(9):
        X, y = conjunction(800, 50, 3, seed)
        errors.append(fastdp.learn_tree(X, y, epsilon=1.0, rng=Randomness(seed=seed)).error(X, y))
    assert np.median(errors) <= 0.1


def test_looking_ahead_finds_what_no_column_says_alone():
    draw = np.random.default_rng(0)
    X = draw.random((5000, 20)) < 0.5
    y = X[:, 4] ^ X[:, 7]
    tree = fastdp.learn_tree(X, y, depth=2, epsilon=1.0, rng=Randomness(seed=0))
    assert tree.error(X, y) == 0


@pytest.mark.parametrize("kind", ["all wrong", "one class", "the other class", "coins", "constant columns"])
def test_no_labels_make_a_tree_much_worse_than_a_constant(kind):
    n = 20_000
    X, y = conjunction(n, 10, 3, 0)
    labels = {
        "all wrong": ~y, "one class": np.zeros(n, bool), "the other class": np.ones(n, bool),
        "coins": np.random.default_rng(1).random(n) < 0.2, "constant columns": y,
    }[kind]  # fmt: skip
    if kind == "constant columns":
        X = np.ones_like(X)
    tree = fastdp.learn_tree(X, labels, epsilon=1.0, rng=Randomness(seed=1))
    assert tree.excess_bound < 0.1
    assert tree.error(X, labels) <= min(labels.mean(), 1 - labels.mean()) + tree.excess_bound
    if "class" in kind:
        assert str(tree) == ("false" if kind == "one class" else "true")


def test_the_stated_excess_fails_as_seldom_as_it_says():
    """Over the best answers to its questions; with a scale for the noise that is too small for the bound, often."""
    failures, runs = 0, 200
    draw = np.random.default_rng(2)
    for seed in range(runs):
        X, labels = draw.random((400, 1)) < 0.5, draw.random(400) < 0.5
        tree = fastdp.learn_tree(X, labels, depth=1, epsilon=4.0, beta=0.3, rng=Randomness(seed=seed))
        ones = labels[X[:, 0]]
        zeros = labels[~X[:, 0]]
        best = sum(min(np.count_nonzero(part), np.count_nonzero(~part)) for part in (ones, zeros)) / 400
        failures += tree.error(X, labels) > best + tree.excess_bound
    assert log_at_least(failures, runs, 0.3) > math.log(ALARM)


# --- results and input


def test_a_tree_reads_as_a_person_would_write_it():
    draw = np.random.default_rng(0)
    X = {"smoker": draw.random(20_000) < 0.3, "adult": draw.random(20_000) < 0.7, "odd": draw.random(20_000) < 0.5}
    y = X["adult"] & ~X["smoker"]
    tree = fastdp.learn_tree(X, y, depth=2, epsilon=2.0, rng=Randomness(seed=0))
    assert str(tree) in (
        "if smoker: false\nelse:\n    if adult: true\n    else: false",
        "if adult:\n    if smoker: false\n    else: true\nelse: false",
    )
    assert (tree.predict(X) == y).all()
    assert tree.predict({"adult": X["adult"], **X}).tolist() == y.tolist()
    again = pickle.loads(pickle.dumps(tree))
    assert again.root == tree.root
    assert (again.predict(X) == y).all()
    for shown in (repr(tree), tree._repr_html_()):
        assert "adult" in shown
        assert "replace-one" in shown
    assert "\n              else" in repr(tree)  # in the column of values
    assert "<pre>if " in tree._repr_html_()
    leaf = tree.root.yes if isinstance(tree.root.yes, fastdp.learning.Leaf) else tree.root.no
    assert abs(leaf.positives - np.count_nonzero(y)) < 20_000


def answer(node, bits_above):
    """What a tree says of a record of which it is known whether a column is above a number."""
    while not isinstance(node, fastdp.learning.Leaf):
        node = node.yes if bits_above(node.column, node.above) else node.no
    return node.label


def paths_of(node, before=()):
    """The questions of each path, with the answers."""
    if isinstance(node, fastdp.learning.Leaf):
        yield before
        return
    yield from paths_of(node.yes, (*before, (node, True)))
    yield from paths_of(node.no, (*before, (node, False)))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("of_numbers", [False, True])
def test_questions_that_change_no_answer_are_left_out(seed, of_numbers):
    """Of any columns that were chosen, again on the same path too: the same answers, by no needless question."""
    draw = np.random.default_rng(seed)
    lines = (NumberLine(2, 0, 3),) * 2 if of_numbers else None
    asked = [Above(j, p) for j in range(2) for p in range(3)] if of_numbers else [Above(j, None) for j in range(2)]
    paths, columns = [()], {}
    for _ in range(4):
        columns |= {path: int(draw.integers(len(asked))) for path in paths}
        paths = [(*path, 2 * columns[path] + side) for path in paths for side in (0, 1)]
    counts = {path: LeafCounts(*map(int, draw.integers(0, 9, 2))) for path in paths}
    root = trees._tree(GrownTree(columns, counts), (), asked, lines)

    def grown_answer(record):
        path = ()
        while path in columns:
            above = asked[columns[path]]
            path = (*path, 2 * columns[path] + (record[above.column] <= (above.position or 0)))
        return counts[path].positives > counts[path].negatives

    for record in product(range(4 if of_numbers else 2), repeat=2):
        assert answer(root, lambda j, number: record[j] > (number or 0)) == grown_answer(record)  # noqa: B023
    for path in paths_of(root):
        ends = {0: [0, 3], 1: [0, 3]}  # where records of the path may be
        for node, yes in path:
            number = node.above or 0
            low, high = ends[node.column]
            assert low <= number < (high if of_numbers else 1)
            ends[node.column] = [number + 1, high] if yes else [low, number]
    for node in {id(node): node for path in paths_of(root) for node, _ in path}.values():
        assert without_counts(node.yes) != without_counts(node.no)


def without_counts(node):
    if isinstance(node, fastdp.learning.Leaf):
        return node.label
    return node.column, node.above, without_counts(node.yes), without_counts(node.no)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.uint8])
def test_numbers_are_compared_as_they_were_learned(dtype):
    """What a tree predicts for its own records is what its leaves counted; and it errs by little more than labels."""
    draw = np.random.default_rng(0)
    X = {"a": (200 * draw.random(30_000)).astype(dtype), "b": draw.random(30_000) < 0.5}
    wrong = draw.random(30_000) < 0.05
    y = ((X["a"] > 100) & X["b"]) ^ wrong
    tree = fastdp.learn_tree(X, y, depth=2, quantiles=31, epsilon=2.0, rng=Randomness(seed=0))
    assert tree.error(X, y) < 0.08
    assert "a > " in str(tree)
    assert "if b:" in str(tree)

    def leaves(node, here):
        if isinstance(node, fastdp.learning.Leaf):
            assert abs(node.negatives - np.count_nonzero(here & ~y)) < 200
            assert abs(node.positives - np.count_nonzero(here & y)) < 200
            return
        asked = list(X.values())[node.column] > node.above
        leaves(node.yes, here & asked)
        leaves(node.no, here & ~asked)

    leaves(tree.root, np.ones(len(y), bool))


def test_thresholds_of_short_lines_are_all_their_points():
    draw = np.random.default_rng(0)
    X = draw.integers(0, 8, (20_000, 2))
    y = (X[:, 0] > 2) & (X[:, 0] <= 5)
    tree = fastdp.learn_tree(X, y, depth=2, quantiles=7, domain_bits=3, epsilon=5.0, rng=Randomness(seed=0))
    assert tree.error(X, y) == 0
    for n in (0, 200):
        options = {"neighbors": "add-remove", "records": 20_000, "quantiles": 3, "domain_bits": 3}
        assert fastdp.learn_tree(X[:n], y[:n], epsilon=1.0, **options).width == 2


def test_parameters_of_numbers_are_checked():
    X, y = conjunction(20_000, 3, 2, 0)
    for options, match in (
        ({"domain_bits": 3}, "^domain_bits=3: must be left out"), ({"signed": True}, "^signed=True: must be left out"),
        ({"quantiles": -1}, "^quantiles=-1"), ({"quantiles": 256}, "^quantiles=256"),
        ({"quantiles": 3, "domain_bits": 65}, "^domain_bits=65: must be at most 64"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            fastdp.learn_tree(X.astype(int), y, epsilon=1.0, **options)
    with pytest.raises(fastdp.DomainError):
        fastdp.learn_tree(np.full((20_000, 1), np.nan), y, quantiles=3, epsilon=1.0)


def test_a_tree_is_charged_once_and_a_wrong_value_costs_nothing():
    X, y = conjunction(20_000, 5, 2, 0)
    with fastdp.Budget(epsilon=1.0) as budget:
        fastdp.learn_tree(X, y, depth=2, epsilon=0.5)
        with pytest.raises(fastdp.DomainError):
            fastdp.learn_tree(X.astype(int) * 2, y, epsilon=0.5)
    assert [release.mechanism for release in budget.releases] == ["learn_tree"]
    assert budget.releases[0].parameters["depth"] == 2


def test_parameters_are_checked():
    X, y = conjunction(500, 5, 2, 0)
    for depth in (0, 9, 1.5, "3", None):
        with pytest.raises(ValueError, match=r"^depth="):
            fastdp.learn_tree(X, y, depth=depth, epsilon=1.0)
    with pytest.raises(ValueError, match="records"):
        fastdp.learn_tree(X, y, epsilon=1.0, records=100)
    with pytest.warns(fastdp.AccuracyWarning, match="^learn_tree: 500 records are too few"):
        fastdp.learn_tree(X, y, epsilon=0.1)


def test_the_number_of_records_is_private_under_add_remove():
    X, y = conjunction(500, 5, 2, 0)
    options = {"neighbors": "add-remove", "epsilon": 1.0, "records": 10_000}
    some = fastdp.learn_tree(X, y, **options)
    none = fastdp.learn_tree(X[:0], y[:0], **options)
    assert some.excess_bound == none.excess_bound
    assert none.width == 5
