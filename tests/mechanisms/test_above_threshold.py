"""AboveThreshold: its law by exact sums, privacy of that law by enumeration, the variants that are not private, and
the object around it: batches, chunk borders, values of every size, one True, budgets, threads."""

import copy
import itertools
import math
import pickle
import random
import threading
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

import fastdp
from fastdp import AboveThreshold, Budget
from fastdp.mechanisms import tested_values
from fastdp.mechanisms.above_threshold import split
from fastdp.randomness import noise_draws
from tests.laws import audit, check_cells
from tests.oracles.sparse_vector import excess, law, law_with_values, neighbours, pmf, price, probability, tail


def test_the_model_is_the_definition():
    """The closed sums against a plain one over |theta| <= 200, for random values; and the laws sum to 1."""
    rng = random.Random(1)
    for _ in range(30):
        q1, q2 = Fraction(rng.randint(1, 5), 7), Fraction(rng.randint(0, 5), 7)
        values = tuple(rng.randint(-4, 4) for _ in range(rng.randint(0, 4)))
        answers = tuple(rng.random() < 0.5 for _ in values)
        most = rng.choice([None, -2, 0, 3])
        plain = 0.0
        for theta in range(-200, 201 if most is None else most + 1):
            above = [float(tail(theta - x, q2)) for x in values]
            plain += float(pmf(theta, q1)) * math.prod(
                p if yes else 1 - p for p, yes in zip(above, answers, strict=True)
            )
        assert float(probability(values, answers, q1, q2, most)) == pytest.approx(plain, rel=1e-9, abs=1e-15)
    for positives in (1, 2, 3):
        assert sum(law((0, 2, -1, 1), Fraction(1, 3), Fraction(2, 5), positives).values()) == 1


# --- privacy, by enumeration: all values of a small range, all neighbours, all transcripts


@pytest.mark.parametrize(
    ("q1", "q2", "moved", "domain", "length"),
    [
        (Fraction(4, 9), Fraction(2, 3), 1, range(-2, 3), 3),  # b2 = 2 b1, Dwork and Roth's scales
        (Fraction(1, 2), Fraction(2, 3), 1, range(-2, 3), 3),
        (Fraction(1, 4), Fraction(1, 2), 1, range(-1, 3), 4),
        (Fraction(4, 9), Fraction(2, 3), 2, range(-2, 3), 3),
        (Fraction(9, 10), Fraction(9, 10), 3, range(-3, 4), 2),
        (Fraction(3, 4), Fraction(1, 3), 1, range(-3, 4), 2),
    ],
)
def test_all_pairs_of_neighbours_keep_the_price(q1, q2, moved, domain, length):
    laws = {values: law(values, q1, q2) for values in itertools.product(domain, repeat=length)}
    ratio, used = price(q1, q2, moved), Fraction(1)
    for values, p in laws.items():
        for other in neighbours(values, moved, domain):
            assert excess(p, laws[other], ratio) == 0
            used = max(used, *(p[answers] / laws[other][answers] for answers in p))
    assert used**2 > ratio, "even these short ones use more than half of epsilon"


def test_the_price_is_attained():
    """Twenty-four answers False and one True use the whole of epsilon, to nine digits."""
    q1, q2 = Fraction(4, 9), Fraction(2, 3)
    answers = (False,) * 24 + (True,)
    ratio = probability((0,) * 25, answers, q1, q2) / probability((1,) * 24 + (-1,), answers, q1, q2)
    assert 1 - 1e-9 < math.log(ratio) / math.log(price(q1, q2)) <= 1


def test_a_threshold_kept_over_positives_that_are_all_paid_is_private():
    """Not a mutant: moved / b1 + 2 c moved / b2, by the proof of theorem 1 with c crossings."""
    q1, q2, domain = Fraction(1, 2), Fraction(2, 3), range(-1, 2)
    for positives, length in ((2, 3), (2, 4), (3, 4)):
        laws = {values: law(values, q1, q2, positives) for values in itertools.product(domain, repeat=length)}
        ratio = price(q1, q2, positives=positives)
        for values, p in laws.items():
            for other in neighbours(values, 1, domain):
                assert excess(p, laws[other], ratio) == 0


def squared(p):
    """Two runs, independent."""
    return {(first, second): p[first] * p[second] for first in p for second in p}


def no_query_noise():
    q1, q2 = Fraction(4, 9), Fraction(2, 3)
    return law((0, 1), q1, Fraction(0)), law((1, 0), q1, Fraction(0)), price(q1, q2)


def query_noise_not_scaled():
    """Four positives from one threshold, with the query noise of one."""
    q1, q2 = Fraction(1, 2), Fraction(2, 3)
    return law((0,) * 5 + (1,) * 4, q1, q2, 4), law((1,) * 5 + (0,) * 4, q1, q2, 4), price(q1, q2)


def noisy_value_given_out():
    """The sum that crossed shows that theta lies below it."""
    q1, q2, outputs = Fraction(1, 4), Fraction(1, 2), range(-3, 6)
    p = law_with_values((0,) * 6 + (1,), q1, q2, outputs)
    return p, law_with_values((1,) * 6 + (0,), q1, q2, outputs), price(q1, q2)


def one_epoch_paid_and_two_run():
    q1, q2 = Fraction(1, 2), Fraction(2, 3)
    return squared(law((0, 0, 0, 2), q1, q2)), squared(law((1, 1, 1, 1), q1, q2)), price(q1, q2)


def sensitivity_one_for_two():
    """Values that a replacement moves by 2 (a vote from -1 to 1, say), with the noise for 1."""
    q1, q2 = Fraction(4, 9), Fraction(2, 3)
    return law((0, 0, 0), q1, q2), law((2, 2, -2), q1, q2), price(q1, q2)


MUTANTS = [
    no_query_noise,
    query_noise_not_scaled,
    noisy_value_given_out,
    one_epoch_paid_and_two_run,
    sensitivity_one_for_two,
]


@pytest.mark.parametrize("mutant", MUTANTS)
def test_variants_that_are_not_private_are_rejected(mutant):
    """Exactly, and by the audit from a million samples at a false-alarm rate of 1e-9."""
    p, q, ratio = mutant()
    assert sum(p.values()) == sum(q.values()) == 1
    assert excess(p, q, ratio) > 0
    rng = np.random.default_rng(3)
    drawn = [rng.choice(len(p), size=10**6, p=[float(side[outcome]) for outcome in p]) for side in (p, q)]
    assert audit(*drawn, math.log(ratio)).refuted


def test_the_audit_does_not_reject_what_is_private():
    """One run of the pair whose two runs are rejected, and the kept threshold of the mutant with all positives paid."""
    q1, q2 = Fraction(1, 2), Fraction(2, 3)
    one = law((0, 0, 0, 2), q1, q2), law((1, 1, 1, 1), q1, q2), price(q1, q2)
    kept = *query_noise_not_scaled()[:2], price(q1, q2, positives=4)
    for p, q, ratio in (one, kept):
        assert excess(p, q, ratio) == 0
        rng = np.random.default_rng(3)
        drawn = [rng.choice(len(p), size=10**6, p=[float(side[outcome]) for outcome in p]) for side in (p, q)]
        assert not audit(*drawn, math.log(ratio)).refuted


# --- the implementation has that law


def in_batch(watch, values):
    return watch.first_above(values)


def one_by_one(watch, values):
    return next((i for i, value in enumerate(values) if watch.above(value)), None)


def in_two_batches(watch, values):
    first = watch.first_above(values[:2])
    if first is not None:
        return first
    second = watch.first_above(values[2:])
    return None if second is None else 2 + second


def over_chunks(watch, values):
    """One value at the start of each chunk; the others are far below."""
    spread = np.full(len(values) * noise_draws.CHUNK, -(10**9))
    spread[:: noise_draws.CHUNK] = values
    first = watch.first_above(spread)
    if first is None:
        return None
    assert first % noise_draws.CHUNK == 0
    return first // noise_draws.CHUNK


def counts_of(ask, runs, values, center, seed=0, **options):
    """How often each value was the first above, and at last how often none was."""
    rng = fastdp.Randomness(seed=seed)
    counts = [0] * (len(values) + 1)
    for _ in range(runs):
        first = ask(AboveThreshold(center, rng=rng, **options), values)
        counts[len(values) if first is None else first] += 1
    return counts


def cells_of(cells_above, b1, b2):
    """The probabilities that counts_of counts. float64 rounds q by 2^-53, which moves them by far less than 1e-12."""
    q1, q2 = (Fraction(math.exp(-1 / b)) for b in (b1, b2))
    exactly = [probability(cells_above[: k + 1], (False,) * k + (True,), q1, q2) for k in range(len(cells_above))]
    exactly.append(probability(cells_above, (False,) * len(cells_above), q1, q2))
    return [(max(0.0, float(p) - 1e-12), float(p) + 1e-12) for p in exactly]


def assert_first_above_has_its_law(counts, cells_above, moved, epsilon):
    b1, b2 = split(Fraction(moved), epsilon)
    verdict = check_cells(counts, cells_of(cells_above, b1, b2))
    assert verdict, str(verdict)
    for wrong in ((1.5, 1), (2 / 3, 1), (1, 1.5), (1, 2 / 3), (1.5, 1.5), (2 / 3, 2 / 3), (b2 / b1, b1 / b2)):
        verdict = check_cells(counts, cells_of(cells_above, wrong[0] * b1, wrong[1] * b2))
        assert not verdict, f"scales off by {wrong} pass: {verdict}"


VALUES = [-3, -3, -1, -3, 1, 2]  # above the threshold, by so much
# Runs: half as many of the right law refute each of the wrong ones in 40 samples of 40.
ENOUGH, ENOUGH_OF_FLOATS = 10_000, 20_000


@pytest.mark.parametrize("ask", [in_batch, one_by_one, in_two_batches, over_chunks])
def test_answers_have_the_law_however_they_are_asked_for(ask, monkeypatch):
    if ask is over_chunks:
        monkeypatch.setattr(noise_draws, "CHUNK", 1024)
    center = 1000
    counts = counts_of(ask, ENOUGH, [center + x for x in VALUES], center, sensitivity=1, epsilon=2.0)
    assert_first_above_has_its_law(counts, VALUES, 1, 2.0)


def test_floats_have_the_law_of_their_grid():
    """Sensitivity 0.6 on a grid of 1/2: one cell, and one for the rounding. Halves of a cell go to the even one."""
    values = [-1.0 - 0.1, -1.25, -0.5, -0.75 - 1e-9, 0.3, 0.75]
    cells = [-2, -2, -1, -2, 1, 2]
    options = {"sensitivity": 0.6, "epsilon": 2.0, "resolution": 0.5}
    counts = counts_of(in_batch, ENOUGH_OF_FLOATS, [7.0 + v for v in values], 7.0, **options)
    assert_first_above_has_its_law(counts, cells, 2, 2.0)


def test_a_seed_gives_the_same_answers_and_another_seed_others():
    def answers(seed):
        return counts_of(in_batch, 50, VALUES, 0, seed=seed, sensitivity=1, epsilon=1.0), [
            in_batch(AboveThreshold(0, sensitivity=1, epsilon=0.1, rng=rng), [0] * 50)
            for rng in [fastdp.Randomness(seed=seed)]
            for _ in range(20)
        ]

    assert answers(5) == answers(5)
    assert answers(5) != answers(6)


def test_every_object_and_every_query_has_noise_of_its_own():
    """Without a seed: that forty objects say True in the same five places has probability below 10^-40."""
    first = {AboveThreshold(150, sensitivity=1, epsilon=0.1).first_above([0] * 5000) for _ in range(40)}
    assert len(first) > 5


# --- the split of epsilon


def test_the_split_never_guarantees_too_much_and_wastes_nothing():
    rng = random.Random(7)
    for _ in range(3000):
        moved = rng.choice([Fraction(1), Fraction(rng.randint(1, 10**6), rng.randint(1, 10**6)), Fraction(2**40)])
        epsilon = rng.choice([1.0, 1e-9, rng.uniform(0.001, 10.0), math.exp(rng.uniform(-40, 40))])
        b1, b2 = map(Fraction, split(moved, epsilon))
        spent = moved / b1 + 2 * moved / b2
        assert spent <= Fraction(epsilon)
        assert spent >= Fraction(epsilon) * (1 - Fraction(1, 10**14))


def test_the_split_makes_the_sum_of_the_scales_least():
    with localcontext() as context:
        context.prec = 50
        root = Decimal(2).sqrt()
        b1, b2 = split(Fraction(3), 0.25)
        assert abs(Decimal(b1) + Decimal(b2) - (3 + 2 * root) * 12) < Decimal("1e-12")
    for share in np.linspace(0.05, 0.95, 181):  # 1 / b1 = share, 2 / b2 = 1 - share
        assert 1 / share + 2 / (1 - share) >= 3 + 2 * math.sqrt(2) - 1e-12


def test_the_scales_in_use_are_those_of_the_split():
    for center, options, moved in (
        (5, {"sensitivity": 1}, 1),
        (5, {"sensitivity": 2.5}, Fraction(5, 2)),
        (5.0, {"sensitivity": 1.0}, 1025),
        (5.0, {"sensitivity": 1.0, "resolution": 0.25}, 5),
        (5.0, {"sensitivity": 0.99, "resolution": 0.25}, 4),
        (5.0, {"sensitivity": 0.01, "resolution": 0.25}, 1),
        (5.0, {"sensitivity": 3.0, "resolution": 2.0}, 2),
    ):
        watch = AboveThreshold(center, epsilon=0.7, **options)
        assert watch._plan.scale == split(Fraction(moved), 0.7)[1]
    assert AboveThreshold(5.0, sensitivity=3.0, epsilon=1.0).resolution == 2.0**-9  # the largest at most 3 / 1024


# --- places: noise so weak that it is 0 (another draw of any of these has probability below e^-100)

QUIET = {"sensitivity": 1, "epsilon": 1e6}
CHUNK = noise_draws.CHUNK


@pytest.mark.parametrize("place", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 10**6 - 1])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_the_first_above_is_found_on_either_side_of_a_border(place, dtype):
    assert CHUNK == 70_656
    values = np.full(10**6, 4, dtype)
    values[place] = 5
    values[place + 1 :: 2] = 9
    watch = AboveThreshold(dtype(5).item(), **QUIET)
    assert watch.first_above(values) == place
    assert watch.closed


def test_all_below_is_none_and_leaves_it_open():
    watch = AboveThreshold(5, **QUIET)
    for size in (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK):
        assert watch.first_above(np.full(size, 4)) is None
        assert not watch.closed
    assert watch.above(5) is True
    assert watch.closed


def test_at_the_threshold_is_above_and_the_tie_is_on_the_grid_for_floats():
    assert AboveThreshold(5, **QUIET).above(5)
    assert not AboveThreshold(5, **QUIET).above(4)
    for value, expected in ((0.99, True), (0.87, False), (1.0, True), (1.2, True), (0.875, True)):  # grid 1/4
        assert AboveThreshold(1.0, **QUIET, resolution=0.25).above(value) is expected


def test_draws_are_never_used_twice():
    watch, drawn = AboveThreshold(5, **QUIET), [0]
    for size in (1, 3, 0, CHUNK, CHUNK + 1, 1):
        watch.first_above(np.zeros(size, np.int64))
        drawn.append(watch._drawn)
    assert np.diff(drawn).tolist() == [CHUNK, CHUNK, 0, CHUNK, 2 * CHUNK, CHUNK]


def test_values_of_every_kind_are_taken():
    def last(values, center=5, **options):
        return AboveThreshold(center, **QUIET, **options).first_above(values)

    for values in (
        [1, 7],
        (1, 7),
        np.array([1, 7], np.int8),
        np.array([1, 7], np.uint64),
        np.array([1, 7], ">i4"),
        np.array([1, 0, 7])[::2],
    ):
        assert last(values) == 1
        assert last(values, 5.0, resolution=1.0) == 1
    for values in ([1.0, 7.5], np.array([1, 7.5], np.float32), np.array([1, 7], np.float16), np.array([1, 7.5], ">f8")):
        assert last(values, 5.0, resolution=1.0) == 1
    assert last([False, True], 1) == 1
    assert last([]) is None
    assert last(np.empty(0), 5.0, resolution=1.0) is None
    readonly = np.array([1, 7])
    readonly.flags.writeable = False
    assert last(readonly) == 1
    assert AboveThreshold(5, **QUIET).above(np.int64(7))
    assert AboveThreshold(5, **QUIET).above(np.array(7))
    assert AboveThreshold(np.int32(5), **QUIET).above(7)
    assert AboveThreshold(np.float32(5.0), resolution=1.0, **QUIET).above(7)


def test_the_values_are_left_alone():
    for values in (np.arange(1000), np.linspace(0, 1, 1000)):
        before = values.copy()
        AboveThreshold(values.dtype.type(10**6).item(), sensitivity=1, epsilon=1.0).first_above(values)
        np.testing.assert_array_equal(values, before)


# --- large values


def test_values_at_the_ends_of_int64():
    ends = [-(2**63), 2**63 - 1]
    for center in (0, 2**50, -(2**50)):
        for _ in range(20):
            watch = AboveThreshold(center, sensitivity=1000, epsilon=0.5)
            assert watch.first_above(ends) == 1
            watch = AboveThreshold(center, sensitivity=1000, epsilon=0.5)
            assert watch.first_above(np.array([2**64 - 1], np.uint64)) == 0
    assert AboveThreshold(2**50, **QUIET).first_above([2**50 - 1, 2**50]) == 1
    assert AboveThreshold(-(2**50), **QUIET).first_above([-(2**50) - 1, -(2**50)]) == 1


def test_floats_of_every_size():
    values = [-1.7e308, -1e300, -(2.0**53), -5e-324, 0.0, 5e-324, 1e300]
    assert AboveThreshold(1.0, **QUIET, resolution=2.0**-10).first_above(values) == 6
    assert AboveThreshold(2.0**40, **QUIET, resolution=2.0**-10).first_above([2.0**40 - 2.0**-10, 2.0**40]) == 1
    assert AboveThreshold(1e270, sensitivity=1e260, epsilon=1e5).first_above([1e269, 0.9999e270, 1.7e308]) == 2
    assert AboveThreshold(-1e-200, sensitivity=1e-205, epsilon=1e5).first_above([-1.0, -2e-200, -1e-203]) == 2


@pytest.mark.parametrize("width", [-3, 0, 1, 9, 12, 40, 62, 63, 64, 100])
def test_integers_are_rounded_to_a_float_grid_once(width):
    """Neighbours at distance s end up within floor(s / grid) + 1 cells, also beyond 2^53; within half a cell."""
    grid, rng = 2.0**width, np.random.default_rng(width + 5)
    for moved in {1, 2**9 - 1, 2**20 + 1, max(1, 2047 * int(grid) - 1), 3 * max(1, int(grid)) - 1}:
        if moved >= 2**62:
            continue
        size = 2.0 ** rng.uniform(0, 62, 5000)
        values = (size * rng.choice([-1, 1], size.size)).astype(np.int64)
        values += rng.integers(-3, 4, size.size)
        cells = [tested_values._floats(v, grid) / grid for v in (values, values + moved)]
        charged = math.floor(Fraction(moved) / Fraction(grid)) + 1
        assert np.max(np.abs(cells[1] - cells[0])) <= charged
        for value, cell in zip(values[:300].tolist(), cells[0][:300].tolist(), strict=True):
            if abs(cell) < 2**53:
                assert abs(Fraction(value) / Fraction(grid) - Fraction(cell)) <= Fraction(1, 2)
            else:
                assert abs(value) >= 2**53 * min(1, grid)


def test_rounding_integers_twice_would_move_them_further_than_is_charged():
    """By way of float64, with steps of 2^9 at 2^61, a move by less than a cell of 2^12 crosses two of its borders."""
    grid, odd = 2**12, 2**49 + 1
    low, high = odd * grid - 2**11 + 2**8, odd * grid + 2**11 - 2**8
    assert high - low < grid
    assert [round(float(v) / grid) for v in (low, high)] == [odd - 1, odd + 1]
    assert (tested_values._floats(np.array([low, high]), float(grid)) / grid).tolist() == [odd, odd]
    center, options = float((odd + 1) * grid), {"sensitivity": high - low, "epsilon": 1e6, "resolution": float(grid)}
    assert not AboveThreshold(center, **options).above(high)
    assert AboveThreshold(center, **options).above(high + 2**9)


# --- one True, then closed; one object, one run


def closed():
    watch = AboveThreshold(5, **QUIET)
    assert watch.above(6)
    return watch


def test_a_closed_one_refuses_and_says_what_to_do():
    watch = closed()
    for ask in (lambda: watch.above(1), lambda: watch.first_above([1, 2]), lambda: watch.first_above([])):
        with pytest.raises(ValueError, match=r"closed: it has said True, and its epsilon is spent; make another"):
            ask()
    with pytest.raises(AttributeError):
        watch.closed = False


def test_no_copies():
    for watch in (AboveThreshold(5, **QUIET), closed()):
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps, lambda w: copy.deepcopy([w])):
            with pytest.raises(TypeError, match="does not pickle or copy"):
                attempt(watch)


def test_a_forked_child_is_a_copy_too(run_python):
    code = """
import os, fastdp
if not hasattr(os, "fork"):
    print("refused")
    raise SystemExit
watch = fastdp.AboveThreshold(5, sensitivity=1, epsilon=1.0)
child = os.fork()
if not child:
    try:
        watch.above(3)
    except RuntimeError as error:
        print("refused" if "parent process" in str(error) else error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
watch.above(-10**6)
"""
    assert run_python(code).split() == ["refused"]


def test_the_repr_shows_parameters_and_nothing_else():
    watch = AboveThreshold(5, sensitivity=2, epsilon=0.25, neighbors="add-remove")
    assert repr(watch) == "AboveThreshold(5, sensitivity=2.0, epsilon=0.25, neighbors='add-remove')  # open"
    assert repr(closed()).endswith("# closed")
    assert watch.guarantee == fastdp.PureDP(0.25, neighbors="add-remove")


def race(watch, threads=8):
    """The answers, and the errors, that threads get which ask at the same time."""
    heard, errors, start = [], [], threading.Barrier(threads)

    def ask():
        start.wait()
        try:
            for _ in range(100):
                heard.append(watch.above(20))
        except ValueError as error:
            errors.append(str(error))

    racers = [threading.Thread(target=ask) for _ in range(threads)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()
    return heard, errors


def test_of_many_threads_at_most_one_hears_true():
    closed_ones = 0
    for seed in range(20):
        watch = AboveThreshold(50, sensitivity=1, epsilon=0.2, rng=fastdp.Randomness(seed=seed))
        heard, errors = race(watch)
        assert sum(heard) == watch.closed
        assert all("closed" in error for error in errors)
        assert watch._drawn == len(heard) * CHUNK, "every answer had draws of its own"
        closed_ones += watch.closed
    assert closed_ones > 10


# --- budgets


class Watched(fastdp.Randomness):
    def key(self):
        raise AssertionError("a key was asked for")


def test_it_is_charged_when_it_is_made_and_never_again():
    with Budget(epsilon=1.0) as ambient:
        watch = AboveThreshold(5, sensitivity=1, epsilon=0.25)
        assert ambient.spent == fastdp.PureDP(0.25)
        watch.above(3)
        assert ambient.spent == fastdp.PureDP(0.25)
    explicit = Budget(epsilon=0.5)
    AboveThreshold(5, sensitivity=1, epsilon=0.5, budget=explicit)
    assert explicit.spent == fastdp.PureDP(0.5)
    (row,) = explicit.releases
    assert (row.mechanism, row.parameters) == ("AboveThreshold", {"threshold": 5, "sensitivity": 1.0, "epsilon": 0.5})
    with pytest.raises(fastdp.BudgetExceeded, match=r"AboveThreshold asks for 0\.5-DP"):
        AboveThreshold(5, sensitivity=1, epsilon=0.5, budget=explicit, rng=Watched())
    assert len(explicit.releases) == 1


def test_an_error_before_the_first_draw_returns_the_charge():
    budget = Budget(epsilon=1.0)
    for options in (
        {"rng": Watched()},
        {"rng": np.random.default_rng(1)},
        {"sensitivity": -1},
        {"sensitivity": 2.0**50},
        {"neighbors": "add-remove"},
        {"neighbors": "friends"},
    ):
        with pytest.raises((ValueError, AssertionError)):
            AboveThreshold(5, **({"sensitivity": 1, "epsilon": 0.5, "budget": budget} | options))
    assert budget.spent == fastdp.PureDP(0.0)
    assert len(budget.releases) == 0
    with pytest.raises(ValueError, match=r"^budget=3: must be a fastdp\.Budget or None"):
        AboveThreshold(5, sensitivity=1, epsilon=0.5, budget=3)


def test_a_thread_inside_a_block_is_refused_as_nobody_is_charged():
    caught = []

    def make():
        try:
            AboveThreshold(5, sensitivity=1, epsilon=0.5)
        except RuntimeError as error:
            caught.append(str(error))

    with Budget(epsilon=1.0) as budget:
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
    assert len(caught) == 1
    assert "pass budget=, open a block" in caught[0]
    assert budget.spent == fastdp.PureDP(0.0)


# --- bad input


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 3, 99_999])
def test_values_that_are_not_finite_are_refused_before_anything_is_compared(bad, place):
    values = np.full(100_000, 1e9)  # the first of them would be above
    values[place] = bad
    watch = AboveThreshold(5.0, **QUIET, resolution=1.0)
    with pytest.raises(fastdp.DomainError, match=r"^values: must be finite"):
        watch.first_above(values)
    with pytest.raises(fastdp.DomainError, match=r"^values: must be finite"):
        watch.above(bad)
    assert not watch.closed
    assert watch._drawn == 0
    assert not watch.above(1.0)
    assert watch.first_above([1.0, 7.0]) == 1


@pytest.mark.parametrize(
    "center",
    [
        None,
        "5",
        True,
        np.True_,
        math.nan,
        math.inf,
        np.float64("nan"),
        1j,
        [5],
        np.array([5]),
        Fraction(1, 2),
        object(),
    ],
)
def test_the_threshold_is_a_finite_number(center):
    with pytest.raises(ValueError, match=r"^threshold=.*: must be a finite number"):
        AboveThreshold(center, sensitivity=1, epsilon=1.0)


@pytest.mark.parametrize(
    ("center", "grid"),
    [
        (2**50 + 1, "1"),
        (-(2**50) - 1, "1"),
        (10**400, "1"),
        (np.int64(-(2**63)), "1"),
        (np.uint64(2**64 - 1), "1"),
        (2.0**41, "0.000976562"),
        (1e300, "0.000976562"),
    ],
)
def test_the_threshold_lies_within_2_to_the_50_cells(center, grid):
    with pytest.raises(ValueError, match=rf"^threshold=.*: must be within 2\^50 units of its grid, {grid}$"):
        AboveThreshold(center, sensitivity=1, epsilon=1.0)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "1", None, True, [1.0]])
@pytest.mark.parametrize("name", ["sensitivity", "epsilon"])
def test_parameters_are_positive_numbers(name, value):
    for center in (5, 5.0):
        with pytest.raises(ValueError, match=rf"^{name}=.*: must be "):
            AboveThreshold(center, **({"sensitivity": 1, "epsilon": 1.0} | {name: value}))


def test_the_message_is_name_value_rule():
    with pytest.raises(ValueError, match=r"^epsilon=-1\.0: must be > 0 and finite$"):
        AboveThreshold(5, sensitivity=1, epsilon=-1.0)
    with pytest.raises(ValueError, match=r"^resolution=1\.0: must be None for an integer threshold, whose grid is 1$"):
        AboveThreshold(5, sensitivity=1, epsilon=1.0, resolution=1.0)
    for resolution in (0.3, 0.0, -1.0, math.nan, "1"):
        with pytest.raises(ValueError, match=r"^resolution="):
            AboveThreshold(5.0, sensitivity=1, epsilon=1.0, resolution=resolution)
    for center, options, name in (
        (5, {"sensitivity": 1, "epsilon": 2.0**22}, "threshold"),
        (5, {"sensitivity": 2.0**38.5, "epsilon": 1.0}, "queries"),
        (0.0, {"sensitivity": 1, "epsilon": 1.0, "resolution": 2.0**-60}, "threshold"),
    ):
        with pytest.raises(ValueError, match=rf"^noise scale of the {name}, in grid units=.*between 2\^-20 and 2\^40$"):
            AboveThreshold(center, **options)
    for sensitivity in (1e-300, 1e300, 5e-324):
        with pytest.raises(ValueError, match=r"^sensitivity=.*leaves the range of float64$"):
            AboveThreshold(5.0, sensitivity=sensitivity, epsilon=1.0)
    with pytest.raises(ValueError, match=r"^rng=7: must be a fastdp.Randomness or None"):
        AboveThreshold(5, sensitivity=1, epsilon=1.0, rng=7)
    with pytest.raises(ValueError, match=r"^neighbors='friends'"):
        AboveThreshold(5, sensitivity=1, epsilon=1.0, neighbors="friends")
    with pytest.raises(TypeError):
        AboveThreshold(5, 1, 1.0)


def test_values_are_checked_and_the_object_stays_as_it_was():
    watch = AboveThreshold(5, **QUIET)
    for values, message in (
        ([[1, 2]], r"^values: shape \(1, 2\): must have one dimension$"),
        (3, r"^values: shape \(\): must have one dimension$"),
        ([1.0, 2.0], r"^values: dtype float64: must be integers, as the threshold 5 is$"),
        (["a"], r"^values: dtype <U1: must be integers"),
        ([None], r"^values: an entry is neither an int nor a float"),
        ([2**70], r"^values: an integer of more than 64 bits"),
        ([1 + 2j], r"^values: dtype complex128"),
        ([[1], [2, 3]], r"^values: must be a number or a rectangular array"),
        (np.ma.masked_array([1, 2], mask=[0, 1]), r"^values: must not be a masked array"),
    ):
        with pytest.raises(ValueError, match=message):
            watch.first_above(values)
    for value, message in (
        ([1], r"^value: shape \(1,\): must be one number; first_above takes many$"),
        (1.0, r"^values: dtype float64: must be integers"),
        ("1", r"^values: dtype <U1"),
        (None, r"^values: an entry is neither an int nor a float"),
    ):
        with pytest.raises(ValueError, match=message):
            watch.above(value)
    with pytest.raises(ValueError, match=r"^values: dtype float128|^values: dtype longdouble|^values: dtype float96"):
        watch.first_above(np.zeros(2, np.longdouble))
    assert watch._drawn == 0
    assert watch.first_above([4, 5]) == 1


@pytest.mark.parametrize("name", ["threshold", "sensitivity", "epsilon", "resolution", "neighbors", "guarantee"])
def test_what_decides_cannot_be_set(name):
    """A caller who could set the resolution would read the values behind the noise."""
    watch = AboveThreshold(5.0, sensitivity=1.0, epsilon=0.01)
    before = getattr(watch, name)
    with pytest.raises(AttributeError):
        setattr(watch, name, 2.0**40)
    assert getattr(watch, name) == before
