"""Decision lists: every rule by enumeration over all neighbours, with a mutant; accuracy and results."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import fastdp
from fastdp import Randomness
from fastdp.learning import decision_lists
from fastdp.learning.comparisons import Bits
from fastdp.learning.decision_lists import grow_list, scores_of_rules
from fastdp.learning.examples import Examples
from fastdp.learning.tree_growth import UNIT, TreeParameters, count_nodes, impurity
from fastdp.privacy.guarantees import PureDP
from fastdp.randomness.noise_plans import laplace_plan
from tests.learning.paths import NoKeys, Paths, law_of, multisets, neighbours, widest

ETA = 1.0
KINDS = list(product((0, 1), repeat=3))  # two columns and a label


def bits_of(X, y):
    examples = Examples(X, y, may_be_empty=True)
    examples.read(keep=True)
    return Bits(examples, "raise")


def laws_of(eta, rules):
    """Of the literals, for all multisets of up to three records."""
    plan = TreeParameters(eta / UNIT, laplace_plan(1.0), (False,) * rules, PureDP(1.0), 1.0)
    laws = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decision_lists, "integer_noise", lambda plan, key, size: np.zeros(size, np.int64))
        for rows in multisets(KINDS, 3):
            table, paths = np.array(rows, np.uint8).reshape(len(rows), 3), Paths()
            patch.setattr(decision_lists, "draw_one", paths.draw_one)
            bits = bits_of(table[:, :2], table[:, 2])
            laws[rows] = law_of(
                paths,
                lambda bits=bits: tuple(grow_list(plan, rules, bits, NoKeys(), lambda *_: None).literals),
            )
    return laws


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_rules_keep_the_range_that_is_charged(relation):
    """Of one rule, and the sum of two; with twice the weight a rule is beyond it."""
    each = ETA * (2 if relation == "replace-one" else 1)
    pairs = list(neighbours(KINDS, 3, relation))
    assert widest(laws_of(ETA, 1), pairs)[0] <= each + 1e-9
    assert widest(laws_of(ETA, 2), pairs)[1] <= 2 * each + 1e-9
    assert widest(laws_of(2 * ETA, 1), pairs)[0] > 1.2 * each


def test_scores_of_rules_by_hand():
    draw = np.random.default_rng(0)
    X, y = draw.random((3000, 4)) < 0.4, draw.random(3000) < 0.3
    scores = scores_of_rules(count_nodes(bits_of(X, y), [()], pairs=False)[0])
    for j, value in product(range(4), (1, 0)):
        here, rest = (np.bincount(y[part], minlength=2) for part in (X[:, j] == value, X[:, j] != value))
        assert scores[2 * j + 1 - value] == -UNIT * here.min() - impurity(rest)


def test_a_list_is_found_and_reads_as_a_person_would_write_it():
    draw = np.random.default_rng(0)
    X = {"a": draw.random(20_000) < 0.3, "b": draw.random(20_000) < 0.6, "c": draw.random(20_000) < 0.5}
    y = X["a"] | ~X["b"]
    found = fastdp.learn_decision_list(X, y ^ (draw.random(20_000) < 0.05), epsilon=2.0, rng=Randomness(seed=0))
    assert (found.predict(X) == y).all()
    assert str(found) in ("if ¬b: true\nelse if a: true\nelse: false", "if a: true\nelse if ¬b: true\nelse: false")
    assert "replace-one" in repr(found)
    assert "¬b" in found._repr_html_()


@pytest.mark.parametrize("kind", ["one class", "the other class", "coins", "one column"])
def test_no_labels_make_a_list_much_worse_than_a_constant(kind):
    draw = np.random.default_rng(1)
    X, coins = draw.random((20_000, 5)) < 0.5, draw.random(20_000) < 0.2
    labels = {"one class": np.zeros(20_000, bool), "the other class": np.ones(20_000, bool)}.get(kind, coins)
    if kind == "one column":
        X = X[:, :1]
    found = fastdp.learn_decision_list(X, labels, epsilon=1.0, rng=Randomness(seed=1))
    assert found.excess_bound < 0.1
    assert found.error(X, labels) <= min(labels.mean(), 1 - labels.mean()) + found.excess_bound
    if "class" in kind:
        assert str(found) == ("false" if kind == "one class" else "true")


def test_a_list_is_charged_once_and_parameters_are_checked():
    X = np.random.default_rng(0).random((20_000, 4)) < 0.5
    with fastdp.Budget(epsilon=1.0) as budget:
        fastdp.learn_decision_list(X, X[:, 0], epsilon=0.5)
        with pytest.raises(fastdp.DomainError):
            fastdp.learn_decision_list(X.astype(int) * 2, X[:, 0], epsilon=0.5)
    assert [release.mechanism for release in budget.releases] == ["learn_decision_list"]
    for rules in (0, 33, 1.5, None):
        with pytest.raises(ValueError, match=r"^rules="):
            fastdp.learn_decision_list(X, X[:, 0], rules=rules, epsilon=1.0)
    with pytest.warns(fastdp.AccuracyWarning, match=r"^learn_decision_list: 100 records are too few"):
        fastdp.learn_decision_list(X[:100], X[:100, 0], epsilon=0.1)
