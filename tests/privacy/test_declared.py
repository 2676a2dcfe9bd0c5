"""Releases that are declared before the first result: any order is sound, and each takes one item, once.

Worst analysts of tiny mechanisms are found by enumeration of all that they can do after every result.
"""

import gc
import itertools
import math
import os
import threading

import numpy as np
import pytest

import fastdp
from fastdp import ApproxDP, BoundedRange, Budget, BudgetExceeded, GaussianDP, PureDP, Renyi, compose
from fastdp.privacy import ZCDP, DiscreteLaplace, Gaussian, Laplace, RandomizedResponse, declared, with_profile
from fastdp.privacy.declared import Declared, DeclaredSums, covers
from fastdp.privacy.reservations import Reservation

# --- the worst analyst: (P, Q) of every outcome of a pair


def response(epsilon):
    p = 1 / (1 + math.exp(-epsilon))
    return ((p, 1 - p), (1 - p, p))


def leaking(epsilon, delta):
    return ((delta, 0.0), (0.0, delta), *(((1 - delta) * p, (1 - delta) * q) for p, q in response(epsilon)))


def noise(scale, shift):
    """Discrete Laplace noise, all that is below and above in one outcome each."""
    q = math.exp(-1 / scale)

    def law(z):
        return (1 - q) / (1 + q) * q ** abs(z)

    near, far = 1 / (1 + q), q**shift / (1 + q)
    return ((near, far), *((law(z), law(z - shift)) for z in range(1, shift)), (far, near))


def product(pairs):
    return [
        (math.prod(p for p, _ in outcome), math.prod(q for _, q in outcome)) for outcome in itertools.product(*pairs)
    ]


def hockey_stick(outcomes, epsilon):
    return math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in outcomes)


def worst(items, epsilon, *, choices, p=1.0, q=1.0):
    """The most that any analyst gets: after each result stop, or ask whatever `choices` of the open items allow."""
    best = max(0.0, p - math.exp(epsilon) * q)
    if p <= 0 or not items:
        return best
    for pair, left in choices(items):
        best = max(best, math.fsum(worst(left, epsilon, choices=choices, p=p * a, q=q * b) for a, b in pair))
    return best


def one_of_them(items):
    """What the rule allows: any open item, or something weaker that it covers."""
    for i, (pair, weaker) in enumerate(items):
        left = items[:i] + items[i + 1 :]
        yield pair, left
        yield weaker, left


TINY = [
    [(response(0.3), response(0.1)), (noise(2.0, 2), response(0.5)), (leaking(0.2, 1e-3), response(0.2))],
    [(response(1.0), response(0.6)), (response(0.2), response(0.1)), (noise(1.0, 3), noise(1.0, 1))],
    [(leaking(0.5, 0.01), response(0.5)), (noise(4.0, 3), noise(4.0, 2))],
]


@pytest.mark.parametrize("items", TINY, ids=range(len(TINY)))
@pytest.mark.parametrize("epsilon", [0.0, 0.05, 0.3, 0.9, 1.7])
def test_whoever_chooses_the_order_on_the_way_gets_no_more_than_the_product(items, epsilon):
    together = hockey_stick(product([pair for pair, _ in items]), epsilon)
    assert worst(items, epsilon, choices=one_of_them) == pytest.approx(together, abs=1e-13)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.6])
def test_an_item_that_is_taken_twice_or_with_more_epsilon_is_noticed(epsilon):
    items = TINY[1][:2]
    together = hockey_stick(product([pair for pair, _ in items]), epsilon)
    assert worst(items, epsilon, choices=one_of_them) <= together + 1e-13

    assert worst([items[0], *items], epsilon, choices=one_of_them) > together + 1e-3
    assert worst([items[0], (response(1.2), items[1][1])], epsilon, choices=one_of_them) > together + 1e-4


def test_an_item_that_is_chosen_after_the_result_would_cost_more():
    """Why a release keeps its item when another gives its own back: what is left would go by the result."""
    flat, steep = leaking(0.0, 0.02), response(0.4)
    first, gain = response(0.2), []
    for epsilon in (0.1, 0.2, 0.3):
        chosen = math.fsum(
            max(worst([(left, left)], epsilon, choices=one_of_them, p=p, q=q) for left in (flat, steep))
            for p, q in first
        )
        fixed = max(hockey_stick(product([first, left]), epsilon) for left in (flat, steep))
        gain.append(chosen - fixed)
    assert max(gain) > 1e-3


@pytest.mark.parametrize("beside", [0.0, 0.15, 0.5])
@pytest.mark.parametrize("epsilon", [0.2, 0.5])
def test_what_is_spent_beside_them_is_one_more_item(beside, epsilon):
    items = TINY[1][:2]
    together = hockey_stick(product([pair for pair, _ in items] + [response(beside)]), epsilon)
    parts = [beside * share for share in (0.2, 0.5, 0.8, 1.0)]

    def game(items, left, p, q):
        best = max(0.0, p - math.exp(epsilon) * q)
        for pair, rest in one_of_them(items) if items else ():
            best = max(best, math.fsum(game(rest, left, p * a, q * b) for a, b in pair))
        for part in parts:
            if 0 < part <= left:
                after = left - part if left - part > 0.1 * beside else 0.0
                best = max(best, math.fsum(game(items, after, p * a, q * b) for a, b in response(part)))
        return best

    assert game(items, beside, 1.0, 1.0) <= together + 1e-13


# --- the budget


COUNTS = [3, 5]


def laplace(epsilon=0.1, **options):
    return fastdp.laplace(COUNTS, sensitivity=2, epsilon=epsilon, **options)


def promised(items, epsilon, delta):
    """Whether the guarantees of a budget's rows, worst case, keep within (epsilon, delta)."""
    exact = hockey_stick(product([response(e) for e in items]), epsilon)
    return exact <= delta


def test_declared_releases_cost_what_compose_says_of_them():
    total = compose((PureDP(0.1), 40), delta=1e-6).epsilon
    budget = Budget(epsilon=total, delta=1e-6, declared=[(PureDP(0.1), 40)])
    with budget:
        for _ in range(40):
            laplace()
        with pytest.raises(
            BudgetExceeded, match=r"no declared release covers that is open \(nothing\); .*nothing more"
        ):
            laplace()
    assert budget.spent == ApproxDP(total, 1e-6)
    assert budget.still_open == ()
    assert budget.left == PureDP(0.0)
    assert not budget.fits(PureDP(0.1))
    ten_times = Budget(epsilon=1, delta=1e-6)
    with ten_times:
        for _ in range(10):
            laplace()
    assert total < 0.1 * 40


def test_what_is_known_of_losses_counts_and_must_be_there():
    known = with_profile(PureDP(0.1), Laplace(0.1))
    worst_case = compose((PureDP(0.1), 100), delta=1e-6).epsilon
    total = compose((known, 100), delta=1e-6).epsilon
    assert total < 0.99 * worst_case
    budget = Budget(epsilon=total, delta=1e-6, declared=[(known, 100)])
    assert budget.fits(known)
    assert not budget.fits(PureDP(0.1)), "the worst of that epsilon loses more than Laplace noise"
    assert budget.fits(with_profile(PureDP(0.05), Laplace(0.05)))
    with pytest.raises(ValueError, match=r"^declared: must keep within .* together; they cost epsilon="):
        Budget(epsilon=total, delta=1e-6, declared=[(PureDP(0.1), 100)])


def test_rows_of_a_rehearsal_declare_a_run():
    with Budget(epsilon=100.0, delta=1e-6) as rehearsal:
        for _ in range(20):
            laplace(0.2)
    items = rehearsal.releases
    total = compose(*items, delta=1e-6).epsilon
    with Budget(epsilon=total, delta=1e-6, declared=items):
        for _ in range(20):
            laplace(0.2)
        with pytest.raises(BudgetExceeded):
            laplace(0.2)
    assert total < 20 * 0.2


def rehearsed_plan(order):
    """Two releases of which an epsilon is known and one of which more is: it covers theirs as well."""
    rows = np.random.default_rng(5).random((500, 3)) < 0.5
    steps = (
        lambda: fastdp.release_ranges([1.0, 2.0] * 99, [0, 10, 20, 40], epsilon=0.2),
        lambda: fastdp.learn_tree(rows, rows[:, 0], depth=2, epsilon=0.2),
        lambda: fastdp.NumericSparse(3, sensitivity=1, epsilon=0.2, positives=3).answer(3),
    )
    for step in order:
        steps[step]()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
def test_a_rehearsed_plan_fits_in_any_order(order):
    with Budget(epsilon=9) as rehearsal:
        rehearsed_plan(range(3))
    with Budget(epsilon=0.6, delta=1e-6, declared=rehearsal.releases) as run:
        rehearsed_plan(order)
    assert run.still_open == ()


CHAIN = (  # each covers those before it
    PureDP(0.3),
    PureDP(0.2),
    with_profile(PureDP(0.2), Laplace(0.2)),
    with_profile(PureDP(0.1), Laplace(0.1)),
)


@pytest.mark.parametrize("declared_in", list(itertools.permutations(range(4))))
def test_equal_items_are_taken_first_then_the_tightest(declared_in):
    items = [CHAIN[i] for i in declared_in]
    for order in itertools.permutations(CHAIN):
        budget = Budget(epsilon=0.8, declared=items)
        for guarantee in order:
            Reservation(budget, guarantee, "one", {}).commit()
        assert [row.declared for row in budget.releases] == list(order)
    budget = Budget(epsilon=0.8, declared=items)
    for _ in range(4):
        Reservation(budget, CHAIN[-1], "strong", {}).commit()
    assert [row.declared for row in budget.releases] == list(reversed(CHAIN))


def on_integers(sensitivity):
    return with_profile(PureDP(0.1), DiscreteLaplace(20.0, sensitivity))


PURE, KNOWN = PureDP(0.1), with_profile(PureDP(0.1), Laplace(0.1))


@pytest.mark.parametrize(
    ("release", "item", "holds"),
    [
        (PURE, PURE, True),
        (PureDP(0.05), PURE, True),
        (PureDP(math.nextafter(0.1, 1)), PURE, False),
        (KNOWN, PURE, True),
        (PURE, KNOWN, False),
        (with_profile(PureDP(0.1), Laplace(0.0999)), KNOWN, True),
        (with_profile(PureDP(0.1), DiscreteLaplace(10.0)), KNOWN, False),
        (
            with_profile(PureDP(0.1), DiscreteLaplace(20.0, 1)),
            with_profile(PureDP(0.1), DiscreteLaplace(20.0, 2)),
            True,
        ),
        (
            with_profile(PureDP(0.1), DiscreteLaplace(20.0, 2)),
            with_profile(PureDP(0.1), DiscreteLaplace(20.0, 1)),
            False,
        ),
        (PURE, with_profile(PureDP(0.1), RandomizedResponse(0.1)), True),
        (PureDP(0.1, neighbors="add-remove"), PURE, False),
        (BoundedRange(0.1), PURE, True),
        (PURE, BoundedRange(0.1), False),
        (PureDP(0.05), BoundedRange(0.1), True),
        (PURE, ApproxDP(0.1, 1e-9), True),
        (ApproxDP(0.1, 1e-9), PURE, False),
        (ApproxDP(0.1, 1e-9), ApproxDP(0.1, 1e-10), False),
        (GaussianDP(0.1), GaussianDP(0.2), True),
        (GaussianDP(0.2), GaussianDP(0.1), False),
        (GaussianDP(0.1), ZCDP(0.00501), True),
        (ZCDP(0.005, mu=0.1), GaussianDP(0.1), True),
        (ZCDP(0.005), GaussianDP(0.1), False),
        (ZCDP(0.005), ZCDP(0.005, mu=0.1), False),
        (PureDP(1.0), GaussianDP(1.24), True),
        (PureDP(1.0), GaussianDP(1.2), False),
        (with_profile(PureDP(1.0), RandomizedResponse(1.0)), with_profile(PureDP(1.0), Gaussian(1.24)), True),
        (ZCDP(0.1), Renyi({2: 0.2}), True),
        (Renyi({2: 0.2}), ZCDP(0.1), False),
        (PURE & ZCDP(0.004), PURE, True),
        (PURE, PURE & ZCDP(0.004), False),
        (PureDP(0.1) & ApproxDP(0.05, 1e-9), ApproxDP(0.05, 1e-9), True),
        (ApproxDP(0.05, 1e-9), PureDP(0.1) & ApproxDP(0.05, 1e-9), False),
    ],
    ids=str,
)
def test_which_release_covers_which_item(release, item, holds):
    assert covers(release, item) is holds


@pytest.mark.parametrize("theorem", ["basic", "zcdp", "gaussian"])
def test_what_is_left_beside_them_is_spent_by_sums(theorem):
    items = [(GaussianDP(0.1), 20), (PureDP(0.2), 3)]
    budget = Budget(epsilon=4.0, delta=1e-6, theorem=theorem, declared=items)
    beside = budget._declared.beside
    kind = {"basic": PureDP, "zcdp": ZCDP, "gaussian": GaussianDP}[theorem]
    assert compose(*items, kind(beside), delta=1e-6).epsilon <= 4.0
    assert compose(*items, kind(beside * 1.001), delta=1e-6).epsilon > 4.0
    assert budget.left.epsilon > 0.1
    with budget:
        laplace(0.2)
        left = budget.left
        laplace(0.21)
        assert budget.left.epsilon < left.epsilon
        laplace(budget.left.epsilon)
        assert budget.left.epsilon < 1e-3, "to 9 digits"
        with pytest.raises(BudgetExceeded, match=r"which no declared release covers that is open \(20 x 0\.1-Gaussian"):
            laplace(0.3)
        laplace(0.2)
    assert [row.declared for row in budget.releases] == [PureDP(0.2), None, None, PureDP(0.2)]
    assert budget.spent.epsilon <= 4.0


def test_pure_totals_count_decimals():
    with Budget(epsilon=1, declared=[(PureDP(0.1), 9)]) as budget:
        assert budget.left == PureDP(0.1)
        for _ in range(10):
            laplace()
        with pytest.raises(BudgetExceeded):
            laplace(1e-9)
    assert [row.declared for row in budget.releases] == [PureDP(0.1)] * 9 + [None]
    assert budget.spent == PureDP(1.0)
    Budget(epsilon=1, delta=1e-9, declared=[(PureDP(0.1), 10)])


def test_it_prints_what_is_declared_and_still_open():
    with Budget(epsilon=1, declared=[(PureDP(0.1), 3), PureDP(0.5)]) as budget:
        laplace()
    assert repr(budget) == (
        "Budget(epsilon=1.0, theorem='basic', neighbors='replace-one', declared=<4>)  # spent 0.1-DP, 1 release, "
        "3 of 4 declared are open"
    )
    assert budget.declared == ((PureDP(0.1), 3), (PureDP(0.5), 1))
    assert budget.still_open == ((PureDP(0.1), 2), (PureDP(0.5), 1))
    lines = repr(budget.releases).splitlines()
    assert lines[0].split() == ["mechanism", "parameters", "guarantee", "total", "declared"]
    assert lines[-1] == "declared and still open: 2 x 0.1-DP, 1 x 0.5-DP"
    assert "still open: 2 x 0.1-DP" in budget._repr_html_()
    assert repr(budget.releases[:1]) == repr(budget.releases)
    assert "declared" not in repr(Budget(epsilon=1).releases)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"declared": 3}, r"^declared: type int: must be a guarantee, or a pair \(guarantee, count\)"),
        ({"declared": [0.1]}, r"^declared: <float>: must be a guarantee or a pair \(guarantee, count\)"),
        ({"declared": [(PureDP(0.1), 0)]}, r"^count=0: must be"),
        ({"declared": [PureDP(0.1, neighbors="add-remove")]}, r"^declared: .*must be for 'replace-one' neighbours"),
        ({"declared": [PureDP(0.1)], "theorem": "best"}, r"^theorem='best': must be 'basic', 'zcdp' or 'gaussian'"),
        (
            {"declared": [PureDP(1.1)], "delta": 0.0},
            r"^declared: must keep within 1-DP .* cost epsilon=1\.1",
        ),
        ({"declared": [ApproxDP(0.1, 1e-5)]}, r"^declared: must keep within .* together; they never do"),
        ({"declared": [GaussianDP(0.1)], "delta": 0.0}, r"^declared: must keep within 1-DP together; they never do"),
    ],
)
def test_bad_declarations_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Budget(**{"epsilon": 1, "delta": 1e-6, **options})


def test_nothing_declared_is_a_budget_of_one_part():
    with Budget(epsilon=1, declared=[]) as budget:
        laplace(1.0)
    assert budget.spent == PureDP(1.0)
    assert budget.declared == ()


# --- reservations, threads, forks


def test_what_is_returned_opens_its_item_and_moves_nobody():
    small, large = PureDP(0.1), with_profile(PureDP(0.2), Laplace(0.2))
    budget = Budget(epsilon=0.3, declared=[small, large])
    strong = with_profile(PureDP(0.1), Laplace(0.1))  # covers both
    first = Reservation(budget, strong, "first", {})
    second = Reservation(budget, strong, "second", {})
    assert budget.still_open == ()
    second.commit()
    first.close()
    assert budget.still_open == ((small, 1),), "the second keeps what it took"
    assert not budget.fits(large)
    assert budget.fits(small)
    assert budget.releases[0].declared == large


def test_an_orphaned_reservation_gives_its_item_back():
    budget = Budget(epsilon=0.1, declared=[PureDP(0.1)])
    reserved = Reservation(budget, PureDP(0.1), "orphan", {})
    assert not budget.fits(PureDP(0.1))
    del reserved
    gc.collect()
    assert budget.fits(PureDP(0.1))


def test_threads_take_each_item_once():
    budget = Budget(epsilon=10, delta=1e-6, declared=[(PureDP(0.1), 60)], refusals=0)
    extra = budget._declared.beside
    went = []

    def ask():
        for _ in range(20):
            try:
                held = Reservation(budget, PureDP(0.1), "one", {})
            except BudgetExceeded:
                continue
            held.commit()
            went.append(1)

    threads = [threading.Thread(target=ask) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = [row.declared for row in budget.releases]
    assert taken.count(PureDP(0.1)) == 60
    assert taken.count(None) == min(40, int(extra / 0.1 + 1e-9))
    assert len(went) == len(taken)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_takes_nothing():
    budget = Budget(epsilon=1, declared=[(PureDP(0.1), 3)])
    child = os.fork()
    if not child:
        try:
            refused = not budget.fits(PureDP(0.1))
            try:
                Reservation(budget, PureDP(0.1), "child", {})
            except RuntimeError:
                os._exit(0 if refused else 2)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert budget.still_open == ((PureDP(0.1), 3),)


# --- mutants: a budget that gives away more than its total


def gives_away(delta=1e-3):
    """Whether some release that a budget lets through leaves it with more delta than it has, by enumeration."""
    items = [PureDP(0.2)] * 2 + [PureDP(0.5)]
    total = compose(*items, delta=delta).epsilon
    budget = Budget(epsilon=total, delta=delta, declared=items)
    went = []
    for epsilon in (0.7, 0.5, 0.5, 0.3, 0.3, 0.2, 0.2, 0.2):
        guarantee = PureDP(epsilon)
        if budget.fits(guarantee):
            Reservation(budget, guarantee, "one", {}).commit()
            went.append(epsilon)
    return not promised(went, total, delta)


def test_the_budget_keeps_its_total():
    assert not gives_away()


def test_an_item_that_two_releases_take_is_noticed(monkeypatch):
    before = DeclaredSums.plus

    def forgets(self, charge, count=1):
        sums = before(self, charge, count)
        sums.taken = {}
        return sums

    monkeypatch.setattr(DeclaredSums, "plus", forgets)
    assert gives_away()


def test_an_item_taken_with_more_epsilon_is_noticed(monkeypatch):
    monkeypatch.setattr(declared, "covers", lambda release, item: release.epsilon <= 1.5 * item.epsilon)
    assert gives_away()


def test_more_beside_than_fits_is_noticed(monkeypatch):
    monkeypatch.setattr(Declared, "_greatest_beside", lambda self: 0.35)
    assert gives_away()
