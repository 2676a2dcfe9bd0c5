"""Any finite class: its law, its privacy over all neighbours, and that arrays, packed rows and streams choose alike."""

from __future__ import annotations

import gc
import itertools
import math
import weakref

import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import Budget, DomainError, Randomness, learn_from_class
from tests import laws

pytestmark = pytest.mark.filterwarnings("ignore:Randomness")

RECORDS = [(x, y) for x in (0, 1, 2) for y in (False, True)]
CONCEPTS = np.array(
    [[False, False, False], [True, False, False], [False, True, True], [True, True, True]]
)  # on 0, 1, 2


def errors_of(database):
    return np.array([sum(concept[x] != y for x, y in database) for concept in CONCEPTS])


def law_of(database, eta):
    weights = np.exp(-eta * errors_of(database))
    return weights / weights.sum()


def neighbours(n, relation):
    for database in itertools.product(RECORDS, repeat=n):
        if relation == "add-remove":
            yield from ((database, (*database, record)) for record in RECORDS)
        else:
            yield from ((database, (*database[:i], record, *database[i + 1 :])) for i in range(n) for record in RECORDS)


def worst(n, relation, eta):
    losses = [np.log(law_of(a, eta) / law_of(b, eta)) for a, b in neighbours(n, relation)]
    return max(float(loss.max() - loss.min()) for loss in losses)


# --- privacy


@pytest.mark.parametrize(
    ("relation", "n", "eta", "mutant"), [("replace-one", 2, 0.5, 1.0), ("add-remove", 2, 1.0, 2.0)]
)
def test_the_range_is_kept_for_all_neighbours_and_a_smaller_range_would_not_do(relation, n, eta, mutant):
    assert worst(n, relation, eta) <= 1 + 1e-12
    assert worst(n, relation, eta) > 0.99
    assert worst(n, relation, mutant) > 1.9, "sensitivity 1 for 2"


@pytest.mark.parametrize(("relation", "eta"), [("replace-one", 0.35), ("add-remove", 0.7)])
def test_choices_have_that_law(relation, eta):
    database = [(0, True), (0, True), (1, False), (2, True), (2, False), (1, True)]
    table, y = np.array([[concept[x] for x, _ in database] for concept in CONCEPTS]), [y for _, y in database]
    rng = Randomness(seed=11)
    more = {"neighbors": relation, "records": 6} if relation == "add-remove" else {}
    runs = [learn_from_class(table, y, epsilon=0.7, rng=rng, **more).index for _ in range(4000)]
    counts = np.bincount(runs, minlength=4)
    assert laws.check_cells(counts, law_of(database, eta).tolist()).accepted
    assert not laws.check_cells(counts, law_of(database, 2 * eta).tolist()).accepted


# --- one seed, one choice


def test_arrays_packed_rows_frames_and_streams_choose_alike():
    draw = np.random.default_rng(0)
    table, y = draw.random((1500, 200)) < 0.5, draw.random(200) < 0.5
    X = np.arange(200)
    forms = {
        "bools": (table, {}),
        "bytes": (table.astype(np.uint8), {}),
        "signs": (np.where(table, 1, -1), {}),
        "packed": (fastdp.pack(table.T), {}),
        "frame": (pd.DataFrame(table.T), {}),
        "list of vectors": (list(table), {}),
        "stream": ((row for row in table), {}),
        "functions": ([lambda X, row=row: row[X] for row in table], {"X": X}),
    }
    for epsilon in (0.01, 1.0):
        found = {
            name: learn_from_class(
                (row for row in table) if name == "stream" else form, y, epsilon=epsilon, rng=Randomness(seed=3), **more
            )
            for name, (form, more) in forms.items()
        }
        assert len({chosen.index for chosen in found.values()}) == 1
        assert {chosen.candidates for chosen in found.values()} == {1500}
    chosen = found["functions"]
    assert (chosen.predict(X) == table[chosen.index]).all()
    assert fastdp.error(chosen, X, y) == np.mean(table[chosen.index] != y)
    with pytest.raises(ValueError, match="the class was given as predictions"):
        found["bools"].predict(X)


@pytest.mark.parametrize("relation", ["replace-one", "add-remove"])
def test_the_excess_stays_within_the_theorem(relation):
    draw, rng = np.random.default_rng(1), Randomness(seed=5)
    x = draw.random(3000)
    table, y = x > np.linspace(0, 1, 301)[:, None], (x > 0.37) ^ (draw.random(3000) < 0.1)
    least, runs, beta = (table != y).mean(axis=1).min(), 200, 0.2
    more = {"neighbors": relation, "records": 3000} if relation == "add-remove" else {}
    found = [learn_from_class(table, y, epsilon=0.5, beta=beta, rng=rng, **more) for _ in range(runs)]
    good = sum((table[f.index] != y).mean() - least <= f.excess_bound for f in found)
    assert laws.log_at_most(good, runs, 1 - beta) > math.log(1e-9)
    bound = fastdp.bounds.learn_from_class(3000, 301, epsilon=0.5, beta=beta, neighbors=relation)
    assert found[0].excess_bound == pytest.approx(bound)
    n = fastdp.bounds.learn_from_class_n(301, error=0.01, epsilon=0.5, beta=beta, neighbors=relation)
    bound = [fastdp.bounds.learn_from_class(m, 301, epsilon=0.5, beta=beta, neighbors=relation) for m in (n, n - 1)]
    assert bound[0] <= 0.01 < bound[1]


# --- what is charged, and what is not


def test_a_choice_is_charged_once_and_with_a_delta_in_two_forms():
    table, y = CONCEPTS, [0, 1, 1]
    budget = Budget(epsilon=3.0, delta=1e-5)
    chosen = learn_from_class(table, y, epsilon=1.0, budget=budget)
    assert chosen.guarantee == fastdp.BoundedRange(1.0)
    with_delta = learn_from_class(table, y, epsilon=1.0, delta=1e-6, budget=budget)
    assert with_delta.guarantee.parts[0] == fastdp.ApproxDP(1.0, 1e-6)
    assert with_delta.guarantee.parts[1].rho == pytest.approx(1 / 8, rel=0.02)
    assert [release.mechanism for release in budget.releases] == ["learn_from_class"] * 2


@pytest.mark.parametrize(
    ("predictions", "y", "more", "kind", "said"),
    [
        (CONCEPTS, [0, 1, 2], {}, DomainError, r"^y: must be 1, and 0 or -1"),
        (CONCEPTS * 0.5, [0, 1, 1], {}, DomainError, r"^predictions: must be 1, and 0 or -1"),
        (
            CONCEPTS,
            [0, 1],
            {},
            ValueError,
            r"^predictions: shape \(4, 3\): must be \(hypotheses, 2\), as y has 2 labels",
        ),
        (CONCEPTS, "label", {}, ValueError, r"^y='label': must be the labels"),
        (CONCEPTS, None, {}, ValueError, r"^y=None"),
        (CONCEPTS, [], {}, ValueError, r"^y: n=0 records"),
        (CONCEPTS[:0], [0, 1, 1], {}, ValueError, "at least one hypothesis"),
        ((c for c in ()), [0, 1, 1], {}, ValueError, "at least one hypothesis"),
        (3, [0, 1, 1], {}, ValueError, r"^predictions: type int"),
        (CONCEPTS, [0, 1, 1], {"X": [1, 2, 3]}, ValueError, r"^X: must be None"),
        (fastdp.pack(CONCEPTS), [0, 1, 1], {}, ValueError, r"^predictions: of 4 records: must be of 3"),
        ([lambda X: X, lambda X: None], [0, 1, 1], {"X": np.ones(3)}, DomainError, r"^hypothesis 1: predictions"),
        ((c for c in [[0, 1]]), [0, 1, 1], {}, ValueError, r"^predictions: shape \(2,\): must be \(3,\)"),
        (CONCEPTS, [0, 1, 1], {"epsilon": 0}, ValueError, r"^epsilon=0"),
        (CONCEPTS, [0, 1, 1], {"beta": 2}, ValueError, r"^beta=2"),
        (CONCEPTS, [0, 1, 1], {"records": 5}, ValueError, r"^records=5"),
        (CONCEPTS, [0, 1, 1], {"neighbors": "add-remove"}, ValueError, r"^records=None"),
    ],
)
def test_errors_cost_nothing(predictions, y, more, kind, said):
    budget = Budget(epsilon=1.0)
    with pytest.raises(kind, match=said):
        learn_from_class(predictions, y, **{"epsilon": 1.0, "budget": budget, **more})
    assert not budget.releases


def test_a_stream_that_could_have_seen_who_leads_has_been_paid_for():
    """Concepts that cannot win are dropped, so their lifetimes tell who leads: nothing may come back after that."""

    class Concept:
        def predict(self, X):
            return X

    def stream():
        alive = weakref.WeakSet()
        for i in range(2000):
            if i == 1024:
                gc.collect()
                raise RuntimeError(f"{len(alive)} are alive")
            concept = Concept()
            alive.add(concept)
            yield concept

    budget = Budget(epsilon=1.0)
    with pytest.raises(RuntimeError, match="are alive"):
        learn_from_class(stream(), [0, 1, 1], X=np.array([0, 1, 0]), epsilon=1.0, budget=budget)
    assert len(budget.releases) == 1
    with pytest.raises(RuntimeError, match="at once"):
        learn_from_class(failing(), [0, 1, 1], epsilon=1.0, budget=Budget(epsilon=1.0))


def failing():
    raise RuntimeError("at once")
    yield


def test_no_records_are_no_error_where_their_number_is_private():
    chosen = learn_from_class(np.zeros((4, 0), bool), [], epsilon=1.0, neighbors="add-remove", records=100)
    assert chosen.candidates == 4
    assert chosen.guarantee.neighbors == "add-remove"


# --- how it reads


def test_it_says_what_was_chosen():
    chosen = learn_from_class(CONCEPTS, [1, 1, 1], epsilon=50.0)
    assert "number 3 of 4" in repr(chosen)
    assert "50-bounded range" in chosen._repr_html_()
    told = []
    learn_from_class(iter(CONCEPTS), [1, 1, 1], epsilon=1.0, progress=lambda *now: told.append(now))
    assert told[-1] == (4, 4, "")
