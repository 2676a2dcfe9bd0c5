"""SparseVector and NumericSparse: their laws by exact sums, privacy of these by enumeration in epsilon and in rho, the
variants of the literature that are not private, and the objects: single values, batches, positives, budgets."""

import copy
import itertools
import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest

import fastdp
from fastdp import Budget, NumericSparse, SparseVector, bounds
from fastdp.mechanisms import sparse_vector_plan as planning
from fastdp.mechanisms import sparse_vector_rho
from fastdp.mechanisms.sparse_vector_plan import scales, sparse_vector_plan
from fastdp.privacy.conversions import rho_of_pure
from fastdp.randomness import noise_draws
from tests.laws import check_cells
from tests.oracles.sparse_vector import excess, law, neighbours, pmf, price, probability, tail, transcripts

# --- models: q1, q2, q3 are those of the noise of threshold, queries and answers


def refreshed_law(values, q1, q2, positives):
    """A new noise of the threshold after each True."""
    return {answers: _refreshed(values, answers, q1, q2) for answers in transcripts(len(values), positives)}


def _refreshed(values, answers, q1, q2):
    total, start = Fraction(1), 0
    for i, yes in enumerate(answers, 1):
        if yes or i == len(answers):
            total *= probability(values[start:i], answers[start:i], q1, q2)
            start = i
    return total


def with_values(transcript_law, values, q3, outputs):
    """With each True a value: one of `outputs`, or below or above them all."""
    first, last = outputs[0], outputs[-1]

    def cells(x):
        found = {v: pmf(v - x, q3) for v in outputs}
        return found | {"below": 1 - tail(first - x, q3), "above": tail(last + 1 - x, q3)}

    result = {}
    for answers, chance in transcript_law.items():
        places = [i for i, yes in enumerate(answers) if yes]
        for given in itertools.product(*(cells(values[i]).items() for i in places)):
            result[answers, tuple(v for v, _ in given)] = chance * math.prod(p for _, p in given)
    return result


def all_pairs(make, domain, length, moved, one_way=False):
    """The laws of all neighbours; with `one_way` of those whose values all rise, or all fall."""
    laws = {values: make(values) for values in itertools.product(domain, repeat=length)}
    for values, p in laws.items():
        for other in neighbours(values, moved, domain):
            steps = [b - a for a, b in zip(values, other, strict=True)]
            if not one_way or min(steps) >= 0 or max(steps) <= 0:
                yield p, laws[other]


def epsilon_ratio(q1, q2, q3=None, *, moved=1, shifts=2, positives=1):
    """e^epsilon by theorem 1."""
    of_answers = 1 if q3 is None else q3 ** (positives * moved)
    return 1 / (q1**moved * q2 ** (shifts * positives * moved) * of_answers)


# --- privacy in epsilon, by enumeration

Q1, Q2, Q3 = Fraction(1, 2), Fraction(2, 3), Fraction(3, 5)


@pytest.mark.parametrize("positives", [1, 2, 3])
def test_a_kept_threshold_costs_what_theorem_1_says(positives):
    """And monotonic values half of it for their queries: no less than that, in pairs that are one step from the end."""
    for shifts, one_way in ((2, False), (1, True)):
        ratio = epsilon_ratio(Q1, Q2, shifts=shifts, positives=positives)
        used = Fraction(1)
        for p, q in all_pairs(lambda v: law(v, Q1, Q2, positives), range(-1, 2), 4, 1, one_way):
            assert excess(p, q, ratio) == 0
            used = max(used, *(p[answers] / q[answers] for answers in p))
        assert used**3 > ratio


@pytest.mark.parametrize("make", [law, refreshed_law])
def test_values_are_paid_for(make):
    outputs = range(-2, 3)
    for shifts, one_way in ((2, False), (1, True)):
        ratio = epsilon_ratio(Q1, Q2, Q3, shifts=shifts, positives=2)
        if make is refreshed_law:
            ratio = epsilon_ratio(Q1, Q2, Q3, shifts=shifts) ** 2
        pairs = all_pairs(lambda v: with_values(make(v, Q1, Q2, 2), v, Q3, outputs), range(-1, 2), 2, 1, one_way)
        assert all(excess(p, q, ratio) == 0 for p, q in pairs)


def test_each_epoch_costs_the_same():
    for positives, length in ((1, 3), (2, 3), (3, 3)):
        ratio = price(Q1, Q2) ** positives
        for p, q in all_pairs(lambda v, c=positives: refreshed_law(v, Q1, Q2, c), range(-1, 2), length, 1):
            assert excess(p, q, ratio) == 0


# --- privacy in rho


def divergence(p, q, order):
    """Renyi."""
    total = sum(float(p[o]) ** order * float(q[o]) ** (1 - order) for o in p)
    return math.log(total) / (order - 1)


@pytest.mark.parametrize("positives", [1, 2, 3])
def test_a_kept_threshold_costs_what_theorem_3_says(positives):
    b1, b2 = 0.4 if positives == 2 else 3.0, 1.3
    q1, q2 = (Fraction(math.exp(-1 / b)) for b in (b1, b2))
    worst = 0.0
    for d, one_way in ((2, False), (1, True)):
        rho = rho_of_pure(1 / b1) + positives * sparse_vector_rho.positive_rho(d, b2)
        for p, q in all_pairs(lambda v: law(v, q1, q2, positives), range(-1, 2), 4, 1, one_way):
            for order in (1.01, 1.5, 3.0, 12.0):
                found = divergence(p, q, order)
                assert found <= order * rho * (1 + 1e-9)
                worst = max(worst, found / (order * rho))
    assert worst > 0.1


def coins(d, b2):
    """r, 1 - r, r', 1 - r' for all places of a query where floats tell them apart."""
    q, x = math.exp(-1 / b2), np.arange(-int(16 * b2) - d, int(12 * b2) + 2)

    def sides(x):
        above, below = q ** np.maximum(x, 1) / (1 + q), q ** (1 - np.minimum(x, 0)) / (1 + q)
        return np.where(x >= 1, above, 1 - below), np.where(x >= 1, 1 - above, below)

    return *sides(x), *sides(x + d)


def best_strategy(d, b2, order, throws):
    """The Renyi divergence that a player reaches who throws the worst coin until it shows True, or stops."""
    r, not_r, other, not_other = coins(d, b2)
    of_true, of_false = r**order * other ** (1 - order), not_r**order * not_other ** (1 - order)
    value = 1.0
    for _ in range(throws):
        value = max(1.0, float((of_true + of_false * value).max()))
    return math.log(value) / (order - 1)


@pytest.mark.parametrize(("d", "b2"), [(1, 0.7), (2, 1.0), (2, 9.0), (4, 3.0), (12, 7.0), (1, 5.0)])
def test_a_positive_costs_the_largest_ratio_of_kl_to_r(d, b2):
    """Lemma 3; no strategy of many throws exceeds it at any order, and for orders near 1 one attains it."""
    r, not_r, other, not_other = coins(d, b2)
    losses = np.log(r / other) + not_r / r * np.log(not_r / not_other)
    kappa = sparse_vector_rho.positive_rho(d, b2)
    assert losses.max() <= kappa * (1 + 1e-12)
    assert kappa <= losses.max() * (1 + 0.01)
    for order in (1.0001, 1.1, 2.0, 5.0, 40.0):
        assert best_strategy(d, b2, order, 1000) <= order * kappa * (1 + 1e-6)
    assert best_strategy(d, b2, 1.0001, 1000) > 0.98 * kappa


def test_half_the_square_of_epsilon_is_too_little_for_a_positive():
    """The price of a release whose epsilon is d / b2 would be refuted by the same strategy."""
    assert best_strategy(2, 20.0, 1.01, 400) > 1.5 * 1.01 * rho_of_pure(2 / 20.0)


def test_scales_spend_what_there_is():
    for d in (1, 2, 2049, 2**30):
        for rho in (1e-12, 1e-4, 0.3, 20.0):
            scale = sparse_vector_rho.scale_for(d, rho)
            assert rho * (1 - 1e-9) < sparse_vector_rho.positive_rho(d, scale) <= rho
    assert sparse_vector_rho.positive_rho(3, 2.0**-20) == 3 * 2.0**20


def test_kept_noise_is_smaller_than_that_of_epochs_of_the_same_rho():
    plan = sparse_vector_plan(Fraction(1), 1.0, 1e-6, 300, monotonic=False, answers=False, paid="one by one")
    epoch = planning.pure_of_rho(planning.zcdp_rho(1.0, 1e-6) / 300)
    b1, b2, _ = scales(Fraction(1), Fraction(epoch), 1, False, False)
    assert math.hypot(plan.of_threshold, plan.of_query) < math.hypot(b1, b2) / 1.4


# --- variants that are not private


def no_noise_on_queries():
    """Stoddard, Chen and Machanavajjhala (2014): noise of the threshold alone, and no limit of positives."""
    q2 = Fraction(0)
    return law((0, 1), Q1, q2, 2), law((1, 0), Q1, q2, 2), epsilon_ratio(Q1, Q2)


def noise_not_scaled_with_positives():
    """Lee and Clifton (2014): four positives with the query noise of one."""
    return law((0,) * 5 + (1,) * 4, Q1, Q2, 4), law((1,) * 5 + (0,) * 4, Q1, Q2, 4), epsilon_ratio(Q1, Q2)


def positives_without_a_limit():
    """Chen et al. (2015): noise on both, priced as one positive, however many there are."""
    m = 4
    return law((0,) * m + (1,) * m, Q1, Q2, 2 * m), law((1,) * m + (0,) * m, Q1, Q2, 2 * m), epsilon_ratio(Q1, Q2)


def the_compared_sum_is_given_out():
    """Roth's lecture notes (2011): the noisy value that crossed is the answer."""
    q1, q2, outputs = Fraction(1, 4), Fraction(1, 2), range(-3, 6)

    def one(values):
        k = len(values) - 1
        found = {v: pmf(v - values[k], q2) * probability(values[:k], (False,) * k, q1, q2, most=v) for v in outputs}
        return found | {"other": 1 - sum(found.values())}

    return one((0,) * 6 + (1,)), one((1,) * 6 + (0,)), epsilon_ratio(q1, q2)


def the_threshold_is_kept_and_the_second_positive_free():
    """An epoch that goes on after its True without being paid again."""
    return law((0, 0, 0, 1, 1), Q1, Q2, 2), law((1, 1, 1, 0, 0), Q1, Q2, 2), epsilon_ratio(Q1, Q2)


def a_second_epoch_is_not_paid():
    return refreshed_law((0, 0, 1, 0, 0, 1), Q1, Q2, 2), refreshed_law((1, 1, 0, 1, 1, 0), Q1, Q2, 2), price(Q1, Q2)


def values_are_given_for_nothing():
    outputs = range(-1, 3)
    p, q = (with_values(law(v, Q1, Q2), v, Q3, outputs) for v in ((0,) * 6 + (1,), (1,) * 6 + (0,)))
    return p, q, epsilon_ratio(Q1, Q2)


def values_are_paid_once_for_all_positives():
    outputs, q3 = range(2), Fraction(1, 3)
    p, q = (with_values(law(v, Q1, Q2, 2), v, q3, outputs) for v in ((0,) * 6 + (1, 1), (1,) * 6 + (0, 0)))
    return p, q, epsilon_ratio(Q1, Q2, positives=2) / q3


def monotonic_under_replace_one():
    """One count rises, another falls."""
    return law((0,) * 5 + (1,), Q1, Q2), law((1,) * 5 + (0,), Q1, Q2), epsilon_ratio(Q1, Q2, shifts=1)


def sensitivity_one_for_two():
    return law((0,) * 5, Q1, Q2, 2), law((2, 2, 2, -2, -2), Q1, Q2, 2), epsilon_ratio(Q1, Q2, positives=2)


MUTANTS = [
    no_noise_on_queries,
    noise_not_scaled_with_positives,
    positives_without_a_limit,
    the_compared_sum_is_given_out,
    the_threshold_is_kept_and_the_second_positive_free,
    a_second_epoch_is_not_paid,
    values_are_given_for_nothing,
    values_are_paid_once_for_all_positives,
    monotonic_under_replace_one,
    sensitivity_one_for_two,
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_variants_that_are_not_private_are_refuted(mutant):
    p, q, ratio = mutant()
    assert sum(p.values()) == sum(q.values()) == 1
    assert excess(p, q, ratio) > 0 or excess(q, p, ratio) > 0


# --- plans


@pytest.mark.parametrize("answers", [False, True])
@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("positives", [1, 7, 400])
def test_a_plan_costs_what_it_may(answers, monotonic, positives):
    shifts = 1 if monotonic else 2
    for moved, epsilon in ((Fraction(1), 1.0), (Fraction(1025), 0.1), (Fraction(3), 20.0)):
        options = {"monotonic": monotonic, "answers": answers}
        for paid, count in (("at once", positives), ("one by one", 1)):
            plan = sparse_vector_plan(moved, epsilon, 0.0, positives, paid=paid, **options)
            spent = moved / Fraction(plan.of_threshold) + shifts * count * moved / Fraction(plan.of_query)
            spent += count * moved / Fraction(plan.of_answer) if answers else 0
            total = spent * (positives if paid == "one by one" else 1)
            assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) < total <= Fraction(epsilon) * (1 + Fraction(1, 10**15))
            assert plan.whole == fastdp.PureDP(epsilon)
            assert bool(plan.of_answer) == answers
            assert plan.refreshed == (paid == "one by one")
        plan = sparse_vector_plan(moved, epsilon, 1e-6, positives, paid="one by one", **options)
        rho = rho_of_pure(float(moved) / plan.of_threshold)
        each = sparse_vector_rho.positive_rho(shifts * int(moved), plan.of_query)
        each += float(moved) ** 2 / (2 * plan.of_answer**2) if answers else 0
        assert each == pytest.approx(plan.each.rho, rel=1e-9)
        assert rho + each == pytest.approx(plan.first.rho, rel=1e-6)
        whole = Fraction(plan.first.rho) + (positives - 1) * Fraction(plan.each.rho)
        assert plan.whole.to_zcdp().rho * (1 - 1e-6) < whole <= Fraction(plan.whole.to_zcdp().rho)
        assert plan.whole.implies(fastdp.ApproxDP(epsilon, 1e-6))


def test_with_a_delta_the_better_of_two_plans():
    kinds = [
        sparse_vector_plan(Fraction(1), 1.0, 1e-6, c, monotonic=False, answers=False, paid="at once").whole
        for c in (1, 30, 60, 1000)
    ]
    assert [isinstance(kind, fastdp.PureDP) for kind in kinds] == [True, True, False, False]


def test_one_positive_is_split_better_than_above_threshold():
    b1, b2, _ = scales(Fraction(1), Fraction(1), 1, False, False)
    assert b1**2 + b2**2 < (1 + 2**0.5) ** 2 + (2 + 2**0.5) ** 2


# --- the implementation has that law

VALUES = [-2, 1, -3, 2, 0]


def one_by_one(watch, values):
    return tuple(
        itertools.takewhile(lambda x: x is not None, (watch.above(v) if not watch.closed else None for v in values))
    )


def in_batches(watch, values):
    answers = []
    for part in (values[:2], values[2:]):
        if not watch.closed:
            before = watch.answered
            places = watch.places_above(part)
            answers += [i in places for i in range(watch.answered - before)]
    return tuple(answers)


def counts_of(ask, runs, center, positives, **options):
    rng = fastdp.Randomness(seed=7)
    found = transcripts(len(VALUES), positives)
    counts = dict.fromkeys(found, 0)
    for _ in range(runs):
        watch = SparseVector(center, positives=positives, rng=rng, **options)
        counts[ask(watch, [center + x for x in VALUES])] += 1
    return [counts[each] for each in found]


def cells(make, b1, b2, positives):
    q1, q2 = (Fraction(math.exp(-1 / b)) for b in (b1, b2))
    exact = make(tuple(VALUES), q1, q2, positives)
    return [(max(0.0, float(p) - 1e-12), float(p) + 1e-12) for p in exact.values()]


@pytest.mark.parametrize("ask", [one_by_one, in_batches])
@pytest.mark.parametrize("paid", ["at once", "one by one"])
def test_answers_have_their_law(ask, paid):
    plan = sparse_vector_plan(Fraction(1), 4.0, 0.0, 2, monotonic=False, answers=False, paid=paid)
    makes = [law, refreshed_law] if paid == "at once" else [refreshed_law, law]
    counts = counts_of(ask, 12_000, 50, 2, sensitivity=1, epsilon=4.0, paid=paid)
    verdict = check_cells(counts, cells(makes[0], plan.of_threshold, plan.of_query, 2))
    assert verdict, str(verdict)
    assert not check_cells(counts, cells(makes[1], plan.of_threshold, plan.of_query, 2)), "the other law passes"
    for first, second in ((1.5, 1), (0.6, 1), (1, 1.5), (1, 0.6)):
        assert not check_cells(counts, cells(makes[0], first * plan.of_threshold, second * plan.of_query, 2))


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_values_have_their_law(delta):
    """Far above the threshold everything is answered: its noise alone is left, single and in batches."""
    positives, runs = 4000, 2
    options = {"sensitivity": 1, "epsilon": 900.0, "delta": delta, "positives": positives, "paid": "at once"}
    if delta:
        options |= {"paid": "one by one", "epsilon": 300.0}
    plan = sparse_vector_plan(
        Fraction(1), options["epsilon"], delta, positives, monotonic=False, answers=True, paid=options["paid"]
    )
    noise, rng = [], fastdp.Randomness(seed=11)
    for _ in range(runs):
        watch = NumericSparse(0, rng=rng, **options)
        places, values = watch.answer_many(np.full(positives // 2, 10**6))
        assert places.tolist() == list(range(positives // 2))
        noise += (values - 10**6).tolist()
        noise += [watch.answer(10**6) - 10**6 for _ in range(positives // 2)]
        assert watch.closed
    scale, reach = plan.of_answer, math.ceil(2.5 * plan.of_answer)
    counts = [sum(z < -reach for z in noise), *(noise.count(z) for z in range(-reach, reach + 1))]
    counts.append(sum(z > reach for z in noise))

    def expected(scale):
        z = np.arange(-40 * reach, 40 * reach + 1)
        weights = np.exp(-(z**2) / (2 * scale**2)) if delta else np.exp(-abs(z) / scale)
        weights /= weights.sum()
        inner = weights[abs(z) <= reach]
        low = weights[z < -reach].sum()
        return [(max(0.0, p - 1e-9), p + 1e-9) for p in (low, *inner, low)]

    assert check_cells(counts, expected(scale))
    assert not check_cells(counts, expected(1.2 * scale))
    assert not check_cells(counts, expected(scale / 1.2))
    assert plan.gaussian == bool(delta)


def test_a_seed_gives_the_same_answers():
    def answers(seed):
        watch = NumericSparse(0.0, sensitivity=1, epsilon=1.0, positives=9, rng=fastdp.Randomness(seed=seed))
        return [watch.answer(float(x)) for x in range(9)]

    assert answers(5) == answers(5)
    assert answers(5) != answers(6)


# --- the objects

QUIET = {"sensitivity": 1, "epsilon": 1e5}


def test_a_batch_is_the_same_as_single_values_and_ends_with_the_positives():
    values = [1, 7, 2, 8, 3, 9, 10, 4]
    watch = SparseVector(5, positives=3, **QUIET)
    assert watch.places_above(values).tolist() == [1, 3, 5]
    assert (watch.closed, watch.answered, watch.positives_left) == (True, 6, 0)
    single = SparseVector(5, positives=3, **QUIET)
    assert [single.above(v) for v in values[:6]] == [False, True] * 3
    assert (single.closed, single.answered) == (True, 6)
    numeric = NumericSparse(5.0, positives=3, **QUIET, resolution=1.0)
    places, given = numeric.answer_many([1.0, 7.0, 2.0])
    assert (places.tolist(), given.tolist(), numeric.answered) == ([1], [7.0], 3)
    assert numeric.answer(6.4) == 6.0
    assert numeric.answer(4.4) is None
    for watch in (SparseVector(5, positives=2, **QUIET), NumericSparse(5, positives=2, **QUIET)):
        empty = watch.places_above([]) if isinstance(watch, SparseVector) else watch.answer_many([])[0]
        assert empty.tolist() == []
        assert empty.dtype == np.int64


@pytest.mark.parametrize("paid", ["at once", "one by one"])
def test_positives_on_both_sides_of_a_chunk(paid, monkeypatch):
    monkeypatch.setattr(noise_draws, "CHUNK", 1024)
    values = np.zeros(5000, np.int64)
    places = [0, 1, 1023, 1024, 2047, 3000, 4095, 4999]
    values[places] = 10
    for positives in (4, 8, 9):
        watch = SparseVector(5, sensitivity=1, epsilon=1e6, positives=positives, paid=paid)
        assert watch.places_above(values).tolist() == places[:positives]
        assert watch.answered == (places[positives - 1] + 1 if positives <= 8 else 5000)
        assert watch.closed == (positives <= 8)


def test_values_of_every_size():
    ends = [-(2**63), 2**63 - 1]
    for center in (0, 2**50, -(2**50)):
        watch = SparseVector(center, sensitivity=1000, epsilon=0.5, positives=2)
        assert [watch.above(v) for v in ends] == [False, True]
        assert watch.places_above(ends).tolist() == [1]
    watch = NumericSparse(1.0, sensitivity=1, epsilon=1e5, positives=4, resolution=2.0**-10)
    assert [watch.answer(x) for x in (-1.7e308, -5e-324, 0.0, 1e300, 1.7e308)] == [None] * 3 + [1e300, 1.7e308]
    assert NumericSparse(0, sensitivity=1, epsilon=1.0, positives=1).answer(2**63 - 1) <= 2**63 - 1
    assert SparseVector(5.0, positives=1, **QUIET).above(np.float32(7))
    assert SparseVector(5, positives=1, **QUIET).above(np.array(7))
    assert SparseVector(5.0, positives=1, **QUIET).above(7)


def test_a_closed_one_refuses():
    sparse, numeric = SparseVector(5, positives=1, **QUIET), NumericSparse(5, positives=1, **QUIET)
    for watch, ask in ((sparse, (sparse.above, sparse.places_above)), (numeric, (numeric.answer, numeric.answer_many))):
        assert ask[0](9)
        for call in (lambda ask=ask: ask[0](1), lambda ask=ask: ask[1]([1]), lambda ask=ask: ask[1]([])):
            with pytest.raises(ValueError, match=r"closed: it has given all its 1 positive answers"):
                call()
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="does not pickle or copy"):
                attempt(watch)
        for name in ("positives", "positives_left", "closed", "paid", "guarantee", "answered", "monotonic", "delta"):
            with pytest.raises(AttributeError):
                setattr(watch, name, 5)
    claimed = fastdp.SparseVector(0, sensitivity=1, epsilon=1.0, positives=1, monotonic=True)
    assert "positives=1, monotonic=True, paid=" in repr(claimed)
    assert repr(watch).endswith("positives=1, paid='at once', neighbors='replace-one')  # closed")


def test_of_many_threads_so_many_hear_true_as_there_are_positives():
    watch = SparseVector(0, sensitivity=1, epsilon=1e5, positives=40)
    heard, errors, start = [], [], threading.Barrier(8)

    def ask():
        start.wait()
        try:
            for _ in range(100):
                heard.append(watch.above(20))
        except ValueError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(heard) == watch.answered == 40
    assert len(errors) == 8


def test_a_forked_child_is_refused(run_python):
    code = """
import os, fastdp
for make in (fastdp.SparseVector, fastdp.NumericSparse):
    watch = make(5, sensitivity=1, epsilon=1.0, positives=2)
    ask = watch.above if make is fastdp.SparseVector else watch.answer
    ask(1)
    child = os.fork() if hasattr(os, "fork") else 0
    if not child:
        try:
            ask(3) if hasattr(os, "fork") else print("refused")
        except RuntimeError as error:
            print("refused" if "parent process" in str(error) else error, flush=True)
        os._exit(0) if hasattr(os, "fork") else None
    else:
        os.waitpid(child, 0)
"""
    assert run_python(code).split() == ["refused", "refused"]


# --- budgets


def test_at_once_is_charged_when_it_is_made():
    with Budget(epsilon=1.0) as budget:
        watch = SparseVector(5, sensitivity=1, epsilon=0.25, positives=10)
        assert budget.spent == watch.guarantee == fastdp.PureDP(0.25)
        watch.places_above([9] * 4)
        assert budget.spent == fastdp.PureDP(0.25)
    (row,) = budget.releases
    assert row.mechanism == "SparseVector"
    assert row.parameters == {"threshold": 5, "sensitivity": 1.0, "epsilon": 0.25, "positives": 10}
    budget = Budget(epsilon=1.0, delta=1e-6, theorem="zcdp")
    NumericSparse(5, sensitivity=1, epsilon=1.0, delta=1e-6, positives=100, budget=budget)
    assert budget.left.epsilon < 1e-3


@pytest.mark.parametrize("where", ["argument", "block"])
def test_one_by_one_is_charged_as_values_are_asked(where):
    budget = Budget(epsilon=1.0)
    options = {"sensitivity": 1e-6, "epsilon": 2.0, "positives": 10, "paid": "one by one"}
    if where == "block":
        with budget:
            watch = SparseVector(5.0, **options)
    else:
        watch = SparseVector(5.0, budget=budget, **options)
    assert budget.spent == fastdp.PureDP(0.0)
    assert watch.places_above([]).tolist() == []
    assert budget.spent == fastdp.PureDP(0.0)
    assert not watch.above(1.0)
    assert budget.spent == fastdp.PureDP(0.2)
    assert watch.above(9.0)
    assert budget.spent == fastdp.PureDP(0.2), "what comes after a positive is charged when it is asked for"
    assert watch.places_above([1.0, 9.0, 9.0, 1.0, 9.0, 9.0, 9.0]).tolist() == [1, 2, 4, 5]
    assert (watch.answered, watch.positives_left) == (8, 5), "the sixth found no room, and what was found is given"
    with pytest.raises(fastdp.BudgetExceeded, match=r"SparseVector asks for 0\.2-DP"):
        watch.above(1.0)
    with pytest.raises(fastdp.BudgetExceeded, match=r"SparseVector asks for 0\.2-DP"):
        watch.places_above([1.0])
    assert watch.answered == 8
    assert len(budget.releases) == 5


def test_one_by_one_in_a_budget_of_rhos():
    budget = Budget(epsilon=1.0, delta=1e-6, theorem="zcdp")
    watch = NumericSparse(5, sensitivity=1, epsilon=1.0, delta=1e-6, positives=50, paid="one by one", budget=budget)
    plan = watch._plan
    for count in (1, 2, 3):
        assert watch.answer(10**6) is not None
        assert budget.spent.implies(fastdp.ApproxDP(1.0, 1e-6))
        expected = Fraction(plan.first.rho) + (count - 1) * Fraction(plan.each.rho)
        assert sum(Fraction(row.guarantee.rho) for row in budget.releases) == expected
    watch.answer_many(np.full(100, 10**6))
    assert watch.closed, "all positives fit into the budget of the same epsilon and delta"
    with pytest.raises(ValueError, match="theorem='basic' adds up epsilons"):
        SparseVector(5, sensitivity=1, epsilon=1.0, delta=1e-6, positives=5, paid="one by one",
                     budget=Budget(epsilon=1.0, delta=1e-6))  # fmt: skip


def test_all_that_the_first_positive_was_charged_to_pay_for_the_others():
    """Also after their blocks have closed, and nobody else: theorem 3 is about all positives together."""
    inner, outer = (Budget(epsilon=9.0, delta=1e-6, theorem="zcdp") for _ in range(2))
    with outer, inner:
        watch = SparseVector(5, sensitivity=1, epsilon=1.0, delta=1e-6, positives=60, paid="one by one")
    other = Budget(epsilon=9.0, delta=1e-6, theorem="zcdp")
    with other:
        watch.places_above([10**6] * 3)
    assert [len(budget.releases) for budget in (inner, outer, other)] == [3, 3, 0]
    tight = Budget(epsilon=0.8, delta=1e-6, theorem="zcdp")
    with outer, tight:
        watch = SparseVector(5, sensitivity=1, epsilon=1.0, delta=1e-6, positives=3, paid="one by one")
        assert watch.above(10**6)
        with pytest.raises(fastdp.BudgetExceeded):
            watch.above(10**6)
    assert [len(budget.releases) for budget in (tight, outer)] == [1, 4], "all of them are charged, or none"


@pytest.mark.parametrize("kind", [SparseVector, NumericSparse])
def test_what_was_made_for_nobody_is_not_asked_in_a_block(kind):
    """Its positives, paid one by one, would be charged to nobody."""
    parameters = {"sensitivity": 1, "epsilon": 1.0, "positives": 4}
    one, many = (kind.above, kind.places_above) if kind is SparseVector else (kind.answer, kind.answer_many)
    watch = kind(600, **parameters, paid="one by one")
    assert one(watch, 10**6), "outside it answers"
    budget = Budget(epsilon=1.0, refusals=0)
    with budget:
        for ask in (lambda: one(watch, 10**6), lambda: many(watch, [10**6])):
            with pytest.raises(RuntimeError, match=rf"^this {kind.__name__} was made outside of every Budget block"):
                ask()
        assert (watch.answered, budget.refused) == (1, 0)
        assert len(budget.releases) == 0
        one(kind(600, **parameters, paid="one by one"), 10**6)
        one(kind(600, **parameters, paid="one by one", budget=Budget(epsilon=1.0)), 10**6)
        assert budget.spent == fastdp.PureDP(0.25)
    assert one(watch, 10**6)
    refused = []

    def elsewhere():
        try:
            one(watch, 10**6)
        except RuntimeError as error:
            refused.append(str(error))

    with Budget(epsilon=1.0):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
    assert refused[0].startswith("budget: a release in a thread that was started while a Budget block is open")


def test_refusals_because_of_values_are_counted():
    for paid in ("at once", "one by one"):
        budget = Budget(epsilon=1.0, refusals=1)
        watch = SparseVector(5.0, sensitivity=1, epsilon=0.5, positives=2, paid=paid, budget=budget)
        for count, ask in enumerate((lambda w=watch: w.above(math.nan), lambda w=watch: w.places_above([math.nan])), 1):
            with pytest.raises(fastdp.DomainError, match=r"^values: must be finite"):
                ask()
            assert budget.refused == count
        for ask in (lambda w=watch: w.above(1.0), lambda w=watch: w.places_above([1.0])):
            with pytest.raises(fastdp.BudgetExceeded, match="closed"):
                ask()


# --- bounds


@pytest.mark.parametrize(("delta", "paid"), [(0.0, "at once"), (0.0, "one by one"), (1e-6, "at once")])
def test_tests_and_values_keep_within_their_bounds(delta, paid):
    """Of 100 runs 20 fail with probability below 1e-7 where one in twenty may; and the bounds are not idle."""
    options = {"positives": 60, "sensitivity": 1, "epsilon": 20.0, "delta": delta, "paid": paid}
    error = bounds.numeric_sparse(400, beta=0.05, **options)
    margin = bounds.sparse_vector(400, beta=0.05, **options)
    assert margin < error <= bounds.numeric_sparse(400, beta=0.001, **options)
    rng, failed, largest = fastdp.Randomness(seed=3), 0, 0.0
    values = np.random.default_rng(4).permutation(
        np.concatenate([np.full(345, -int(2 * error)), np.full(55, int(2 * error))])
    )
    for _ in range(100):
        watch = NumericSparse(0, rng=rng, **options)
        places, given = watch.answer_many(values)
        off = np.abs(given - values[places]).max()
        largest = max(largest, off)
        failed += off > error or places.tolist() != np.flatnonzero(values > 0).tolist()
    assert failed <= 20
    assert largest > error / 4


INVERSES = {
    "sparse_vector": (bounds.sparse_vector, bounds.sparse_vector_epsilon),
    "numeric_sparse": (bounds.numeric_sparse, bounds.numeric_sparse_epsilon),
}


@pytest.mark.parametrize("name", INVERSES)
def test_inverses(name):
    bound, inverse = INVERSES[name]
    for options in ({}, {"delta": 1e-6, "positives": 200}, {"paid": "one by one", "monotonic": True}):
        options = {"positives": 7, "sensitivity": 2} | options
        error = bound(1000, epsilon=0.7, **options)
        found = inverse(1000, error=error, **options)
        assert found == pytest.approx(0.7, rel=1e-6)
        assert bound(1000, epsilon=found, **options) <= error
    assert bound(10, positives=3, sensitivity=1, epsilon=1.0, monotonic=True) < bound(
        10, positives=3, sensitivity=1, epsilon=1.0
    )
    with pytest.raises(ValueError, match=r"^error=1e-300: is out of reach$"):
        inverse(10, error=1e-300, positives=2, sensitivity=1)
    with pytest.raises(ValueError, match=r"^positives=0: must be an integer >= 1"):
        inverse(10, error=1.0, positives=0, sensitivity=1)


# --- bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"positives": 0}, r"^positives=0: must be an integer >= 1$"),
        ({"positives": 2.5}, r"^positives=2\.5: must be an integer >= 1$"),
        ({"positives": 2**30}, r"^positives=1073741824: must be at most 16,777,216$"),
        ({"epsilon": -1.0}, r"^epsilon=-1\.0: must be > 0 and finite$"),
        ({"sensitivity": 0}, r"^sensitivity=0: must be > 0"),
        ({"delta": 1.0}, r"^delta=1\.0: must be"),
        ({"monotonic": 1}, r"^monotonic=1: must be True or False$"),
        ({"paid": "later"}, r"^paid='later': must be one of 'at once', 'one by one'$"),
        ({"resolution": 1.0}, r"^resolution=1\.0: must be None for an integer threshold"),
        ({"rng": 7}, r"^rng=7: must be a fastdp\.Randomness or None"),
        ({"rng": 7, "paid": "one by one"}, r"^rng=7: must be a fastdp\.Randomness or None"),
        ({"budget": 3}, r"^budget=3: must be a fastdp\.Budget or None"),
        ({"neighbors": "friends"}, r"^neighbors='friends'"),
        ({"epsilon": 1e-13}, r"^noise scale of the threshold, in grid units=.*between 2\^-20 and 2\^40"),
    ],
)
def test_parameters_are_checked(options, message):
    for make in (SparseVector, NumericSparse):
        with pytest.raises(ValueError, match=message):
            make(5, **({"sensitivity": 1, "epsilon": 1.0, "positives": 3} | options))


def test_values_are_checked_and_the_object_stays_as_it_was():
    watch = NumericSparse(5, positives=2, **QUIET)
    for value, message in (
        ([1], r"^value: shape \(1,\): must be one number; answer_many takes many$"),
        (1.0, r"^values: dtype float64: must be integers"),
        ("1", r"^values: dtype <U1"),
        (2**70, r"^values: an integer of more than 64 bits"),
    ):
        with pytest.raises(ValueError, match=message):
            watch.answer(value)
    with pytest.raises(ValueError, match=r"^values: shape \(1, 2\): must have one dimension$"):
        watch.answer_many([[1, 2]])
    with pytest.raises(fastdp.DomainError, match=r"^values: must be finite"):
        SparseVector(5.0, positives=2, **QUIET).above(math.inf)
    assert (watch.answered, watch.positives_left) == (0, 2)
    assert watch.answer(7) == 7
