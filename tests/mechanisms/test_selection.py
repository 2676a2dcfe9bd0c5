"""The exponential mechanism, top-k and permute-and-flip as they are called: their laws against exact ones, the privacy
of those laws by enumeration, what they are charged, scores that come from a function, and what they refuse."""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import re
import warnings
from collections import Counter
from fractions import Fraction

import numba
import numpy as np
import pytest

import fastdp
from fastdp import ApproxDP, BoundedRange, Budget, PureDP, compose
from fastdp.kernels import buckets as kernels
from fastdp.kernels import layout
from fastdp.mechanisms import selection
from fastdp.mechanisms.scores import plan_exponential, plan_permute_and_flip
from fastdp.support.shown import shown
from tests import oracles
from tests.laws import check_cells
from tests.oracles.privacy import range_rho

INF = math.inf


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


class Watched(fastdp.Randomness):
    """Nothing may be drawn."""

    def key(self):
        raise AssertionError("a key was asked for")


def options_of(options):
    return {"sensitivity": 1, "epsilon": 2.0} | options  # eta = 1


def by_gumbel(scores, **options):
    return fastdp.exponential_mechanism(scores, method="gumbel", **options_of(options))


def by_buckets(scores, **options):
    return fastdp.exponential_mechanism(scores, method="buckets", **options_of(options))


def by_auto(scores, **options):
    return fastdp.exponential_mechanism(scores, **options_of(options))


def lazily(scores, **options):
    array = np.asarray(scores)
    return fastdp.exponential_mechanism(lambda i, j: array[i:j], candidates=array.size, **options_of(options))


def several(scores, size=2, **options):
    return fastdp.exponential_mechanism(scores, size=size, **options_of(options))


def top_two(scores, k=2, **options):
    return fastdp.top_k(scores, k, **options_of(options))


def top_two_lazily(scores, k=2, **options):
    array = np.asarray(scores)
    return fastdp.top_k(lambda i, j: array[i:j], k, candidates=array.size, **options_of(options))


def flip(scores, **options):
    return fastdp.permute_and_flip(scores, **options_of(options))


ONE = [by_gumbel, by_buckets, by_auto, lazily]
ARRAYS = [by_gumbel, by_buckets, by_auto, several, top_two, flip]
ALL = [*ARRAYS, lazily, top_two_lazily]


# --- the laws, at false-alarm rate 1e-9; eta off by 3/2 and 2/3 is refuted

OFF = (Fraction(3, 2), Fraction(2, 3))
SMALL = {
    "integers": [0, 2, 1, -1, 2],
    "floats": [0.5, -0.25, 1.75, -INF, 1.5, -2.0],
    "far down": [0.0, -3.25, -5.0, 0.0, -INF, -4.5],
    "two": [3, 4],
}
KINDS = pytest.mark.parametrize("kind", SMALL)
ENOUGH = 6_000  # draws: half as many, of the right law, refute the wrong ones in 40 samples of 40


def counted(draw, n, cells):
    """How often each was chosen in so many calls."""
    return np.bincount([draw() for _ in range(n)], minlength=cells).tolist()


def assert_cells(counts, right, *wrong):
    verdict = check_cells(counts, right)
    assert verdict, str(verdict)
    for law in wrong:
        verdict = check_cells(counts, law)
        assert not verdict, f"a wrong law passes: {verdict}"


def softmax(scores, eta=1):
    return oracles.selection.exponential_law(oracles.selection.choice_weights(scores, eta))


@KINDS
@pytest.mark.parametrize("draw", ONE)
def test_one_draw_has_the_law(draw, kind):
    scores, rng = SMALL[kind], seeded(1)
    counts = counted(lambda: draw(scores, rng=rng), ENOUGH, len(scores))
    assert_cells(counts, softmax(scores), *(softmax(scores, off) for off in OFF))


@KINDS
def test_many_draws_have_the_law_each_and_pair_by_pair(kind):
    """Of 200,000 draws at once: one by one, and each together with the next."""
    scores = SMALL[kind]
    n = len(scores)
    drawn = several(scores, size=200_000, epsilon=2.0 * 200_000, rng=seeded(2))
    assert drawn.dtype == np.int64
    right = softmax(scores)
    assert_cells(np.bincount(drawn, minlength=n), right, *(softmax(scores, off) for off in OFF))
    pairs = np.bincount(n * drawn[::2] + drawn[1::2], minlength=n * n)
    assert_cells(pairs, [p * q for p in right for q in right])


@KINDS
def test_permute_and_flip_has_its_law_and_not_a_softmax(kind):
    scores, rng = SMALL[kind], seeded(3)
    counts = counted(lambda: flip(scores, rng=rng), 30_000 if kind == "far down" else 15_000, len(scores))
    laws = [
        oracles.selection.permute_and_flip_law(oracles.selection.choice_weights(scores, eta))
        for eta in (1, Fraction(3, 2), 2 / 3)
    ]
    assert_cells(counts, laws[0], *laws[1:], softmax(scores))


@pytest.mark.parametrize("draw", [top_two, top_two_lazily])
@pytest.mark.parametrize("k", [2, 3])
def test_top_k_draws_without_replacement(draw, k):
    scores, rng = SMALL["floats"][:5], seeded(4)
    outcomes = list(itertools.permutations([i for i, s in enumerate(scores) if s > -INF], k))

    def law(eta):
        found = oracles.selection.ordered_law(oracles.selection.choice_weights(scores, eta), k)
        return [found[outcome] for outcome in outcomes]

    counts = Counter(tuple(draw(scores, k, epsilon=2.0 * k, rng=rng).tolist()) for _ in range(ENOUGH))
    assert set(counts) <= set(outcomes)
    unordered = [law(1)[outcomes.index(outcome[::-1])] for outcome in outcomes]
    found = [counts[outcome] for outcome in outcomes]
    assert_cells(found, law(1), *(law(off) for off in OFF), *([unordered] if k == 2 else []))


def test_the_oracle_of_permute_and_flip_is_the_integral_of_theorem_3():
    """P(i) = w_i times the integral over 0 <= v <= 1 of the product of 1 - w_j v over j != i."""
    draw = random.Random(5)
    for n in (1, 2, 3, 5):
        weights = [Fraction(draw.randint(0, 9), 9) for _ in range(n - 1)] + [Fraction(1)]
        law = oracles.selection.permute_and_flip_law(weights)
        assert sum(law) == 1
        for i, weight in enumerate(weights):
            product = [Fraction(1)]
            for w in weights[:i] + weights[i + 1 :]:
                product = [a - w * b for a, b in zip([*product, 0], [0, *product], strict=True)]
            assert law[i] == weight * sum(c / (power + 1) for power, c in enumerate(product))


def large(n=20_000):
    """Scores 0, -1, -2, -3 by turns, and -9 in every fifth block; what each candidate counts as; the law of that."""
    numbers = np.arange(n)
    scores = -(numbers % 4) - 9 * (numbers // 2048 % 5 == 1)
    cells = numbers % 4 + 4 * (numbers // 4000)

    def law(eta):
        masses = [Fraction(0)] * (cells.max() + 1)
        weights = dict(
            zip(levels := np.unique(scores).tolist(), oracles.selection.choice_weights(levels, eta), strict=True)
        )
        for (cell, score), count in Counter(zip(cells.tolist(), scores.tolist(), strict=True)).items():
            masses[cell] += count * weights[score]
        return oracles.selection.exponential_law(masses)

    return scores, cells, law


@pytest.mark.parametrize("draw", [by_gumbel, by_buckets, lazily])
def test_many_candidates_in_blocks_have_the_law(draw):
    scores, cells, law = large()
    rng = seeded(6)
    for typed in (scores, scores.astype(float)):
        drawn = [draw(typed, rng=rng) for _ in range(6000)]
        assert_cells(np.bincount(cells[drawn], minlength=cells.max() + 1), law(1), *(law(off) for off in OFF))
    at_once = several(scores, size=50_000, epsilon=1e5, rng=rng)
    assert_cells(np.bincount(cells[at_once], minlength=cells.max() + 1), law(1), *(law(off) for off in OFF))


def test_permute_and_flip_of_many_candidates():
    """5,000 equal scores, each is as likely; and 2,500 that are ln 2 behind, half as likely to be among the heads.

    P(i) = w_i E[1 / (1 + N)]: with many heads about w_i / sum w, within E[1/(1 + N)] at both ends of N's deviations.
    """
    numbers, rng = np.arange(7500), seeded(7)
    scores = np.where(numbers % 3 == 0, -math.log(2), 0.0)
    drawn = np.array([flip(scores, rng=rng) for _ in range(6000)])
    behind = Fraction(2500, 2) / (5000 + Fraction(2500, 2))
    counts = np.bincount((drawn % 3 == 0) + 2 * (drawn // 2500), minlength=6)
    right = [share / 3 for _ in range(3) for share in (1 - behind, behind)]
    assert_cells(counts, [(float(p) * 0.99, float(p) * 1.01) for p in right])
    assert not check_cells(counts, [Fraction(2, 9), Fraction(1, 9)] * 3), "equal chances for all"


def test_both_methods_and_auto_choose_alike():
    """`auto` is Gumbel-max for few candidates and the buckets for many; functions choose as arrays do."""
    draw = np.random.default_rng(8)
    few, many = draw.normal(size=selection.FEW), draw.normal(size=selection.FEW + 1)
    for seed in range(5):
        assert by_auto(few, rng=seeded(seed)) == by_gumbel(few, rng=seeded(seed)) == lazily(few, rng=seeded(seed))
        assert by_auto(many, rng=seeded(seed)) == by_buckets(many, rng=seeded(seed))
        assert several(few, size=1, rng=seeded(seed)).tolist() == [by_buckets(few, rng=seeded(seed))]
        assert top_two(many, 1, rng=seeded(seed)).tolist() == [by_gumbel(many, rng=seeded(seed))]
        assert top_two(many, 3, rng=seeded(seed)).tolist() == top_two_lazily(many, 3, rng=seeded(seed)).tolist()


def test_releases_differ_and_the_default_is_not_seeded():
    scores = np.zeros(10**6, np.int64)
    for draw in (by_gumbel, by_buckets, flip):
        assert len({draw(scores) for _ in range(4)}) > 1
        rng = seeded(1)
        assert len({draw(scores, rng=rng) for _ in range(4)}) > 1
    assert len(set(several(scores, size=20).tolist())) > 1


def test_draws_are_ints_and_arrays_of_int64():
    for draw in (*ONE, flip):
        assert type(draw([0, 1])) is int
    for draw in (several, top_two, top_two_lazily):
        found = draw([0, 1])
        assert (found.dtype, found.shape) == (np.int64, (2,))


def test_scores_of_every_kind_are_taken():
    scores = [3, -40, 2, -50]
    for draw in ARRAYS:
        expected = np.asarray(draw(np.array(scores), rng=seeded(9))).tolist()
        wide = np.full(8, 99)
        wide[::2] = scores
        for kind in (scores, tuple(scores), np.array(scores, np.int8), np.array(scores, ">i8"), wide[::2]):
            assert np.asarray(draw(kind, rng=seeded(9))).tolist() == expected
        for kind in (np.float32, np.float64, ">f8", np.float16):
            assert np.asarray(draw(np.array(scores, kind), rng=seeded(9))).tolist() == expected
        readonly = np.array(scores)
        readonly.flags.writeable = False
        assert np.asarray(draw(readonly, rng=seeded(9))).tolist() == expected
    unsigned = np.array([2**63 - 1, 2**63 - 3, 0], np.uint64)
    for draw in (by_gumbel, by_buckets, flip):
        assert draw(unsigned, rng=seeded(1)) == draw(unsigned.astype(int), rng=seeded(1))


def test_scores_are_left_alone():
    scores = np.random.default_rng(1).normal(size=20_000)
    before = scores.copy()
    for draw in ARRAYS:
        draw(scores)
    np.testing.assert_array_equal(scores, before)


# --- privacy of the laws, by enumeration: e^eta is the fraction `base`, so that all probabilities are fractions


def moved(scores, monotonic):
    """All neighbours: every score moves by at most 1; all in one direction, if monotonic."""
    if not monotonic:
        return [
            tuple(map(sum, zip(scores, step, strict=True)))
            for step in itertools.product((-1, 0, 1), repeat=len(scores))
        ]
    steps = itertools.product((0, 1), repeat=len(scores))
    return [tuple(s + sign * d for s, d in zip(scores, step, strict=True)) for step in steps for sign in (1, -1)]


def weights_of(scores, base):
    return [base ** (s - max(scores)) for s in scores]


def em_law(scores, base):
    return dict(enumerate(oracles.selection.exponential_law(weights_of(scores, base))))


def flip_law(scores, base):
    return dict(enumerate(oracles.selection.permute_and_flip_law(weights_of(scores, base))))


def extremes(law, base, domain, n, monotonic):
    """The largest ratio of two neighbours' probabilities, and the largest quotient of two ratios of one pair."""
    laws = {}

    def at(scores):
        low = min(scores)
        key = tuple(s - low for s in scores)  # only differences count
        if key not in laws:
            laws[key] = law(key, base)
        return laws[key]

    largest = widest = Fraction(1)
    for scores in itertools.product(domain, repeat=n):
        p = at(scores)
        for other in moved(scores, monotonic):
            q = at(other)
            ratios = [p[outcome] / q[outcome] for outcome in p]
            largest, widest = max(largest, *ratios), max(widest, max(ratios) / min(ratios))
    return largest, widest


def without_address(value):
    """A name of a test that is the same in every process."""
    return re.sub(" at 0x[0-9a-f]+", "", repr(value), flags=re.IGNORECASE)


BASES = pytest.mark.parametrize("base", [Fraction(11, 10), Fraction(2), Fraction(7)], ids=str)


@BASES
@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_exponential_mechanism_has_bounded_range(n, base):
    """e^epsilon = base^2, or base if monotonic: it bounds ratios, and their quotients, which reach it."""
    domain = range(4) if n < 4 else range(3)
    for monotonic, price in ((False, base**2), (True, base)):
        largest, widest = extremes(em_law, base, domain, n, monotonic)
        assert largest < price
        assert widest == price
    # twice that eta, as for monotonic scores, is too much for those that are not: epsilon and range are passed
    largest, widest = extremes(em_law, base**2, domain, n, False)
    assert largest > base**2
    assert widest == base**4


@BASES
@pytest.mark.parametrize("k", [2, 3])
def test_top_k_adds_up_to_epsilon(k, base):
    """e^epsilon = base^(2 k), or base^k if monotonic."""

    def law(scores, base):
        return oracles.selection.ordered_law(weights_of(scores, base), k)

    for monotonic, price in ((False, base ** (2 * k)), (True, base**k)):
        largest, _ = extremes(law, base, range(3), 3, monotonic)
        assert 1 < largest < price
    p, q = law((9, 0, 0, 0), base), law((8, 1, 1, 0), base)
    assert max(p[outcome] / q[outcome] for outcome in p) <= base ** (2 * k)


@BASES
@pytest.mark.parametrize("n", [2, 3, 4])
def test_permute_and_flip_keeps_epsilon_and_has_no_bounded_range(n, base):
    domain = range(4) if n < 4 else range(3)
    for monotonic, price in ((False, base**2), (True, base)):
        largest, widest = extremes(flip_law, base, domain, n, monotonic)
        assert largest == price
        assert widest > price
    assert extremes(flip_law, base**2, range(3), n, False)[0] > base**2


@BASES
def test_permute_and_flip_is_not_eighth_of_a_square_concentrated(base):
    """The instance: scores (0, 0), and (1, -1) where a record differs. Its Renyi divergence of order 2 passes
    2 epsilon^2/8, and stays within what PureDP allows at every whole order; the exponential mechanism's stays within
    epsilon^2/8."""
    low, high = oracles.numbers.ln_interval(base**2, 80)  # epsilon

    def divergence(law, a):
        p, q = law((0, 0), base), law((1, -1), base)
        moment = sum(p[i] ** a / q[i] ** (a - 1) for i in p)
        bounds = oracles.numbers.ln_interval(moment, 80)
        return bounds[0] / (a - 1), bounds[1] / (a - 1)

    if base < 7:  # beyond epsilon = 2.4 or so, epsilon is below epsilon^2/4
        assert divergence(flip_law, 2)[0] > 2 * high**2 / 8
    rho = Fraction(PureDP(float(high) * (1 + 1e-15)).to_zcdp().rho)
    for a in range(2, 40):
        assert divergence(flip_law, a)[1] <= a * rho
        assert divergence(em_law, a)[1] <= a * low**2 / 8


def test_a_float_softmax_leaks_and_the_law_does_not():
    """Scores 0 and -1490, or -1492 with a record more, at eta = 1/2: floats say e^-745 > 0 and e^-746 = 0."""
    here, there = (np.exp(0.5 * np.array([0.0, s])) for s in (-1490, -1492))
    here, there = here / here.sum(), there / there.sum()
    assert here[1] > 0 == there[1], "an output that only one of the neighbours has"
    for scores in ((0, -1490), (0, -1492)):
        law = oracles.selection.exponential_law(oracles.selection.choice_weights(scores, Fraction(1, 2)))
        assert law[1] > 0
    heights = np.array([0, -1490, -1492, -(10**6)])
    tops, weights = np.empty(1, np.int64), np.empty(1, np.uint64)
    kernels.sum_blocks_into(heights, 0.72, 60.0, tops, weights)
    assert weights[0] == 2**60 + 3, "nobody's bound is 0"


@pytest.mark.parametrize("rounds", [2, 4])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_draws_at_a_delta_keep_it(rounds, epsilon):
    """All sequences of draws from all neighbours of a few scores, with the eta in use: the mass beyond e^epsilon."""
    delta = 0.01
    eta = plan_exponential(1, epsilon, delta, monotonic=False, rounds=rounds, neighbors="replace-one").eta
    ratio = oracles.numbers.exp_interval(Fraction(epsilon), 80)[0]
    most = Fraction(0)
    for scores in ((0, 0), (0, 1), (0, 3), (2, 0), (0, 0, 0), (0, 1, 2)):
        for other in moved(scores, False):
            p, q = (softmax(side, Fraction(eta)) for side in (scores, other))
            beyond = Fraction(0)
            for outcome in itertools.product(range(len(scores)), repeat=rounds):
                beyond += max(0, math.prod(p[i] for i in outcome) - ratio * math.prod(q[i] for i in outcome))
            most = max(most, beyond)
    assert delta / 40 < most <= Fraction(delta)


# --- terms

WRITTEN = [0.1, 0.2, 0.3, 1.0, 1 / 3, 0.7, 1e-3, 12.5, 3e5, 1e-12]


def written_or_binary(x, choose):
    return choose(Fraction(repr(x)), Fraction(x))


@pytest.mark.parametrize("rounds", [1, 2, 3, 10, 1000])
@pytest.mark.parametrize("monotonic", [False, True, np.True_])
def test_eta_is_rounded_down_and_hardly(rounds, monotonic):
    """epsilon as little, and the sensitivity as much, as their written and binary values allow."""
    reach = 1 if monotonic else 2
    for epsilon, sensitivity in itertools.product(WRITTEN, WRITTEN):
        exact = written_or_binary(epsilon, min) / (rounds * reach * written_or_binary(sensitivity, max))
        options = {"monotonic": monotonic, "neighbors": "replace-one"}
        eta = Fraction(plan_exponential(sensitivity, epsilon, 0.0, rounds=rounds, **options).eta)
        assert exact * (1 - Fraction(1, 2**50)) < eta <= exact
        if rounds == 1:
            assert plan_permute_and_flip(sensitivity, epsilon, **options).eta == eta


def test_parameters_of_every_exact_kind():
    def eta(sensitivity, epsilon):
        return plan_exponential(sensitivity, epsilon, 0, monotonic=False, rounds=1, neighbors="replace-one").eta

    for one in (1, 1.0, np.int8(1), np.uint64(1), np.float32(1), Fraction(1), np.array(1.0)):
        assert eta(one, one) == 0.5
    third = Fraction(1, 3)
    assert Fraction(eta(1, third)) <= third / 2
    assert Fraction(eta(third, 1)) <= Fraction(3, 2)
    assert eta(2**53 + 1, 1) == eta(2**53 + 2, 1)


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("rounds", [1, 2, 10, 300])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (3.0, 0.01)])
def test_a_delta_buys_a_larger_eta_that_compose_proves(epsilon, delta, rounds, monotonic):
    reach = 1 if monotonic else 2
    options = {"monotonic": monotonic, "rounds": rounds, "neighbors": "replace-one"}
    terms, basic = (plan_exponential(0.5, epsilon, d, **options) for d in (delta, 0.0))
    used = Fraction(terms.eta) * reach * Fraction(1, 2)
    assert terms.eta > basic.eta or (rounds == 1 and terms.eta >= basic.eta * (1 - 1e-9))
    if rounds >= 10 and epsilon <= 1:
        assert terms.eta > 1.05 * basic.eta
    each = float(used) if Fraction(float(used)) >= used else math.nextafter(float(used), INF)
    whole = ApproxDP(epsilon, delta)
    if rounds > 1:
        assert compose((BoundedRange(each), rounds), delta=delta).implies(whole)
    else:
        assert BoundedRange(each).to_approx(delta).epsilon <= epsilon or BoundedRange(each).implies(whole)
    assert terms.guarantee.implies(whole)
    said = {"sensitivity": 0.5, "epsilon": epsilon, "delta": delta}
    assert terms.parameters == said | ({"monotonic": True} if monotonic else {})
    more = compose((BoundedRange(each * 1.001), rounds), delta=delta) if rounds > 1 else None
    assert more is None or not more.implies(whole), "the largest"


@pytest.mark.parametrize(
    ("sensitivity", "epsilon"), [(1e-300, 1e300), (1e300, 1e-300), (5e-324, 1.0), (1, 5e-324), (2.0**901, 1)]
)
def test_eta_beyond_its_range_is_refused(sensitivity, epsilon):
    for draw in ALL:
        with pytest.raises(ValueError, match=r"^epsilon=.*, sensitivity=.*: must be .*between 2\^-900 and 2\^900$"):
            draw([1, 2, 3], sensitivity=sensitivity, epsilon=epsilon, rng=Watched())


def test_eta_at_the_ends_of_its_range():
    for sensitivity in (2.0**-899, 2.0**897):
        for draw in ALL:
            assert np.max(draw([0, 0, 0], sensitivity=sensitivity, epsilon=1.0)) <= 2


# --- budgets


def said_by(draw):
    """How many choices a call makes, where it says so."""
    return {several: {"size": 2}, top_two: {"k": 2}, top_two_lazily: {"k": 2}}.get(draw, {})


def charged(draw, **options):
    """The one release of a call, and what is spent after it."""
    budget = Budget(epsilon=10.0, delta=1e-3, neighbors=options.get("neighbors", "replace-one"))
    draw([0, 50, 49, 3], budget=budget, **options)
    (release,) = budget.releases
    return release, budget.spent


@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_a_call_is_charged_what_it_guarantees(neighbors):
    for draw in ALL:
        release, spent = charged(draw, epsilon=0.5, neighbors=neighbors)
        mechanism = {flip: "permute_and_flip", top_two: "top_k", top_two_lazily: "top_k"}
        assert release.mechanism == mechanism.get(draw, "exponential_mechanism")
        assert release.parameters == {"sensitivity": 1.0, "epsilon": 0.5} | said_by(draw)
        assert release.guarantee.neighbors == neighbors
        assert release.guarantee.implies(PureDP(0.5, neighbors=neighbors))
        assert not release.guarantee.implies(PureDP(0.499, neighbors=neighbors))
        assert spent.neighbors == neighbors
        if draw in ONE:
            assert release.guarantee == BoundedRange(0.5, neighbors=neighbors)
        elif draw is flip:
            assert release.guarantee == PureDP(0.5, neighbors=neighbors)
        else:
            each = BoundedRange(0.25, neighbors=neighbors)
            assert release.guarantee.to_zcdp().rho == compose((each, 2)).to_zcdp().rho
            assert release.guarantee.to_zcdp().rho == pytest.approx(2 * float(range_rho(0.25)), rel=1e-15)


def test_a_delta_is_charged_too():
    for draw in [draw for draw in ALL if draw is not flip]:
        release, _ = charged(draw, epsilon=0.5, delta=1e-6)
        assert release.parameters == {"sensitivity": 1.0, "epsilon": 0.5, "delta": 1e-6} | said_by(draw)
        assert release.guarantee.implies(ApproxDP(0.5, 1e-6))
    with pytest.raises(TypeError, match="delta"):
        flip([0, 1], delta=1e-6)


def test_that_scores_are_monotonic_is_written_down():
    for draw in ALL:
        release, _ = charged(draw, monotonic=True)
        assert release.parameters == {"sensitivity": 1.0, "epsilon": 2.0, "monotonic": True} | said_by(draw)


def test_the_open_budget_is_charged_and_a_full_one_refuses():
    for draw in ALL:
        with Budget(epsilon=1.0) as ambient:
            draw([0, 1, 2], epsilon=0.75)
            assert ambient.spent == PureDP(0.75)
            with pytest.raises(fastdp.BudgetExceeded, match=r"asks for .*0\.5"):
                draw([0, 1, 2], epsilon=0.5, rng=Watched())
            assert len(ambient.releases) == 1
        with pytest.raises(ValueError, match=r"^budget=3: must be a fastdp\.Budget or None"):
            draw([0, 1, 2], budget=3)


def test_neighbours_of_two_kinds_do_not_mix():
    for draw in ALL:
        budget = Budget(epsilon=1.0)
        with pytest.raises(ValueError, match="add-remove"):
            draw([0, 1, 2], epsilon=0.5, neighbors="add-remove", budget=budget, rng=Watched())
        assert_uncharged(budget)
        for bad in ("friends", None, ["add-remove"]):
            with pytest.raises(ValueError, match=rf"^neighbors={re.escape(shown(bad))}: must be one of"):
                draw([0, 1, 2], neighbors=bad, budget=budget, rng=Watched())


def assert_uncharged(budget):
    assert budget.spent == PureDP(0.0)
    assert len(budget.releases) == 0


# --- scores from a function


@numba.njit
def squares(start, stop):
    out = np.empty(stop - start)
    for i in range(start, stop):
        out[i - start] = -(((i - 100_000) / 40.0) ** 2)
    return out


N = 2 * selection.LAZY_BLOCK + 1000


def test_functions_in_python_and_numba_choose_what_an_array_does():
    array = squares(0, N)
    for seed in range(3):
        for function in (squares, lambda i, j: array[i:j], lambda i, j: array[i:j].tolist()):
            options = {"sensitivity": 1, "epsilon": 2.0, "candidates": N}
            one = fastdp.exponential_mechanism(function, rng=seeded(seed), **options)
            assert one == by_gumbel(array, rng=seeded(seed))
            assert fastdp.exponential_mechanism(function, method="gumbel", rng=seeded(seed), **options) == one
            five = fastdp.top_k(function, 5, rng=seeded(seed), **options)
            assert five.tolist() == fastdp.top_k(array, 5, sensitivity=1, epsilon=2.0, rng=seeded(seed)).tolist()


def test_blocks_and_progress():
    asked, told = [], []

    def zeros(start, stop):
        asked.append((start, stop))
        return np.zeros(stop - start, np.int64)

    def progress(*report):
        told.append(report)

    options = {"sensitivity": 1, "epsilon": 1.0, "candidates": N, "progress": progress}
    for choose in (fastdp.exponential_mechanism, lambda f, **o: fastdp.top_k(f, 3, **o)):
        asked.clear()
        told.clear()
        choose(zeros, **options)
        block = selection.LAZY_BLOCK
        assert asked == [(0, block), (block, 2 * block), (2 * block, N)]
        said = [f"candidates {i:,} to {j - 1:,}" for i, j in asked]
        assert told == [*((i, N, what) for (i, _), what in zip(asked, said, strict=True)), (N, N, "")]
    with pytest.raises(ValueError, match=r"^progress=3: must be None, False, True or a callable"):
        fastdp.exponential_mechanism(zeros, **options | {"progress": 3})


def test_a_bar_is_drawn_on_standard_error(capsys):
    fastdp.exponential_mechanism(squares, candidates=N, sensitivity=1, epsilon=1.0, progress=True)
    assert capsys.readouterr().out == ""


def late(value):
    """Zeros, and this in the last block."""

    def scores(start, stop):
        out = np.zeros(stop - start)
        if stop == N:
            out[-1] = value
        return out

    return scores


def lazy_calls(function, budget, candidates=N, **options):
    options = {"sensitivity": 1, "epsilon": 1.0, "candidates": candidates, "budget": budget} | options
    return (
        lambda: fastdp.exponential_mechanism(function, **options),
        lambda: fastdp.top_k(function, 2, **options),
    )


@pytest.mark.parametrize("value", [math.nan, -math.nan, INF])
def test_a_bad_score_is_charged_from_the_second_block_on(value):
    """By then scores have met noise, and the code that makes them could look at what was drawn."""
    budget = Budget(epsilon=3.0, refusals=9)
    for call in lazy_calls(lambda i, j: np.full(j - i, value), budget, candidates=10):
        with pytest.raises(fastdp.DomainError, match=r"^scores: must not be NaN or \+inf"):
            call()
    assert_uncharged(budget)
    for call in lazy_calls(late(value), budget):
        with pytest.raises(fastdp.DomainError, match=r"^scores: must not be NaN or \+inf"):
            call()
    assert budget.spent == PureDP(2.0)
    fastdp.exponential_mechanism(late(-INF), candidates=N, sensitivity=1, epsilon=1.0, budget=budget)
    assert budget.spent == PureDP(3.0)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, StopIteration])
def test_an_error_of_the_function_comes_through_and_is_charged_once_noise_is_drawn(error):
    def broken(start, stop):
        if stop == candidates:
            raise error("mine")
        return np.zeros(stop - start)

    budget = Budget(epsilon=2.0)
    for candidates, spent in ((10, 0.0), (N, 2.0)):
        for call in lazy_calls(broken, budget, candidates=candidates):
            with pytest.raises(error, match="mine"):
                call()
        assert budget.spent == PureDP(spent)


def test_the_charge_is_final_whenever_code_of_the_caller_runs_after_a_draw():
    """A function, or a callback, that looks at frames and then raises must not have seen noise for free."""

    def scores(start, stop):
        seen.append((start, len(budget.releases)))
        return np.full(stop - start, -INF) if start < forbidden else np.zeros(stop - start)

    def progress(done, total, what):
        seen.append((done, len(budget.releases)))

    for forbidden in (0, selection.LAZY_BLOCK):  # which meet no noise
        budget, seen = Budget(epsilon=10.0), []
        fastdp.top_k(scores, 2, candidates=N, sensitivity=1, epsilon=1.0, budget=budget, progress=progress)
        assert len(seen) == 7
        assert [final for _, final in seen] == [int(start > forbidden) for start, _ in seen]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda i, j: np.zeros(j - i + 1), "^scores: 11 for candidates 0 to 9: must be 10$"),
        (lambda i, j: np.zeros(3), "^scores: 3 for candidates 0 to 9: must be 10$"),
        (lambda i, j: 0.0, r"^scores: shape \(\): must have one dimension"),
        (lambda i, j: np.zeros((j - i, 1)), r"^scores: shape \(10, 1\): must have one dimension"),
        (lambda i, j: [], "^scores: 0 for candidates 0 to 9: must be 10$"),
        (lambda i, j: None, "^scores: type NoneType"),
        (lambda i, j: np.full(j - i, 1j), "^scores: dtype complex128"),
        (lambda i, j: np.full(j - i, -INF), "^scores: must not all be -inf"),
    ],
)
def test_a_block_of_scores_is_checked_like_an_array(wrong, message):
    budget = Budget(epsilon=1.0)
    for call in lazy_calls(wrong, budget, candidates=10):
        with pytest.raises(ValueError, match=message):
            call()
    assert_uncharged(budget)


def test_fewer_allowed_than_wanted_is_known_at_the_end():
    budget = Budget(epsilon=1.0)
    scores = np.array([1.0, -INF, -INF, 2.0])
    with pytest.raises(ValueError, match=r"^k=3: must be at most the number of candidates that are not -inf, 2$"):
        fastdp.top_k(lambda i, j: scores[i:j], 3, candidates=4, sensitivity=1, epsilon=1.0, budget=budget)
    assert_uncharged(budget)


@pytest.mark.parametrize("candidates", [None, 0, -1, 2.0, True, "5", 1, 2**62 + 1])
def test_how_many_candidates_a_function_has_must_be_said(candidates):
    def never(start, stop):
        raise AssertionError("asked for scores")

    budget = Budget(epsilon=1.0)
    one, two = lazy_calls(never, budget, candidates=candidates)
    calls = [two] if candidates == 1 and candidates is not True else [one, two]
    for call in calls:
        with pytest.raises(ValueError, match=rf"^candidates={re.escape(repr(candidates))}: must be"):
            call()
    assert_uncharged(budget)


def test_what_is_for_arrays_is_refused_for_functions_and_the_other_way_round():
    function = squares
    options = {"sensitivity": 1, "epsilon": 1.0, "rng": Watched()}
    for name, value in (("method", "buckets"), ("size", 3)):
        with pytest.raises(ValueError, match=rf"^{name}={value!r}: must be .* for scores from a function"):
            fastdp.exponential_mechanism(function, candidates=9, **{name: value}, **options)
    for name, value in (("candidates", 3), ("progress", True)):
        for choose in (fastdp.exponential_mechanism, lambda s, **o: fastdp.top_k(s, 2, **o)):
            with pytest.raises(ValueError, match=rf"^{name}={value!r}: must be None for an array"):
                choose([1, 2, 3], **{name: value}, **options)


# --- bad input

NEGATIVE_NAN = np.array([0xFFF8000000000001], np.uint64).view(float)[0]


@pytest.mark.parametrize(
    ("scores", "error", "message"),
    [
        ([], ValueError, "^scores: must hold at least one candidate$"),
        (np.array([], float), ValueError, "^scores: must hold at least one candidate$"),
        ([0.5, math.nan], fastdp.DomainError, r"^scores: must not be NaN or \+inf"),
        ([NEGATIVE_NAN, 0.5], fastdp.DomainError, r"^scores: must not be NaN or \+inf"),
        ([NEGATIVE_NAN, -INF], fastdp.DomainError, r"^scores: must not be NaN or \+inf"),
        ([0.5, INF, 0.5], fastdp.DomainError, r"^scores: must not be NaN or \+inf"),
        ([-INF, -INF, -INF], ValueError, r"-inf"),
        ([[1, 2], [3, 4]], ValueError, r"^scores: shape \(2, 2\): must have one dimension$"),
        (5, ValueError, r"^scores: shape \(\): must have one dimension$"),
        ([1j, 0], ValueError, r"^scores: dtype complex128: must be integers"),
        ([None, 1], ValueError, r"^scores: an entry is neither an int nor a float: must be integers"),
        (np.array([1, 2], object), ValueError, r"^scores: dtype object: must be integers"),
        (["a", "b"], ValueError, r"^scores: dtype <U1: must be integers"),
        (None, ValueError, r"^scores: "),
        ([[1], [2, 3]], ValueError, r"^scores: must be a number or a rectangular array"),
        (np.array([2**63, 0], np.uint64), ValueError, r"^scores: unsigned integers beyond 2\^63 - 1: must be below"),
        (
            np.array([2**63, 2**64 - 1], np.uint64),
            ValueError,
            r"^scores: unsigned integers beyond 2\^63 - 1: must be below",
        ),
        ([2**63, 2**64 - 1], ValueError, r"^scores: a list with integers beyond int64: must be an array"),
        (np.ma.array([1, 2], mask=[0, 1]), ValueError, r"^scores: must not be a masked array"),
        ([2**53 + 1, 0.5], ValueError, r"^scores: a list of floats with integers beyond 2\^53"),
    ],
    ids=without_address,
)
def test_scores_that_are_none(scores, error, message):
    budget = Budget(epsilon=10.0, refusals=9)
    for draw in ARRAYS:
        with pytest.raises(error, match=message):
            draw(scores, budget=budget, rng=Watched())
    assert_uncharged(budget)


@pytest.mark.parametrize("bad", [math.nan, NEGATIVE_NAN, INF])
@pytest.mark.parametrize("place", [0, 5000, 19_999])
def test_a_bad_score_is_found_wherever_it_is_and_the_error_shows_none(bad, place):
    scores = np.full(20_000, 123.456)
    scores[place] = bad
    scores[7] = -INF
    for draw in ARRAYS:
        with pytest.raises(fastdp.DomainError) as caught:
            draw(scores, rng=Watched())
        assert "123" not in str(caught.value)


def test_all_forbidden_is_a_domain_error():
    for draw in (*ONE[:3], several, top_two, flip):
        for n in (2, 5000, 20_000):
            with pytest.raises(
                fastdp.DomainError, match=r"^scores: must not all be -inf, which forbids every candidate$"
            ):
                draw(np.full(n, -INF), rng=Watched())


NOT_POSITIVE = [0, -1.0, math.nan, INF, -INF, 10**400]
NOT_NUMBERS = ["1", None, [1.0], True, 1 + 0j, object()]


@pytest.mark.parametrize("value", [*NOT_POSITIVE, *NOT_NUMBERS], ids=without_address)
@pytest.mark.parametrize("name", ["sensitivity", "epsilon"])
def test_parameters_are_positive_numbers(name, value):
    budget = Budget(epsilon=10.0)
    for draw in ALL:
        with pytest.raises(ValueError, match=rf"^{name}=.*: must be (> 0|a number|below)"):
            draw([1, 2, 3], budget=budget, rng=Watched(), **{name: value})
    assert_uncharged(budget)


@pytest.mark.parametrize("value", [-1e-9, 1, 1.0, 2.5, math.nan, INF, *NOT_NUMBERS], ids=without_address)
def test_a_delta_is_a_probability_below_one(value):
    budget = Budget(epsilon=10.0)
    for draw in [draw for draw in ALL if draw is not flip]:
        with pytest.raises(ValueError, match=r"^delta=.*: must be (between 0 and 1, 1 excluded|a number)"):
            draw([1, 2, 3], delta=value, budget=budget, rng=Watched())
    assert_uncharged(budget)


@pytest.mark.parametrize("value", [0, 1, "yes", None, 2.0], ids=without_address)
def test_monotonic_is_true_or_false(value):
    for draw in ALL:
        with pytest.raises(ValueError, match=rf"^monotonic={value!r}: must be True or False$"):
            draw([1, 2, 3], monotonic=value, rng=Watched())


@pytest.mark.parametrize("value", ["bucket", "", None, 3], ids=without_address)
def test_methods_have_names(value):
    with pytest.raises(ValueError, match=rf"^method={value!r}: must be one of 'auto', 'gumbel', 'buckets'$"):
        fastdp.exponential_mechanism([1, 2], sensitivity=1, epsilon=1.0, method=value, rng=Watched())


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "2", [2]], ids=without_address)
def test_sizes_and_k_are_whole_numbers(value):
    for draw, name in ((several, "size"), (top_two, "k"), (top_two_lazily, "k")):
        with pytest.raises(ValueError, match=rf"^{name}={re.escape(shown(value))}: must be an integer >= 1$"):
            draw([1, 2, 3], **{name: value}, rng=Watched())
    with pytest.raises(ValueError, match=r"^k=None: must be an integer >= 1$"):
        top_two([1, 2], None)


def test_one_method_makes_many_draws():
    with pytest.raises(ValueError, match=r"^size=2: must be None for method='gumbel'"):
        by_gumbel([1, 2], size=2, rng=Watched())
    assert by_buckets([1, 2], size=np.int64(3)).shape == (3,)


def test_k_is_at_most_the_candidates_that_are_allowed():
    budget = Budget(epsilon=10.0)
    for scores, most in (([1, 2, 3], 3), ([1.0, -INF, 3.0, -INF], 2), ([5], 1)):
        for k in (most + 1, 2 * most, 10**6):
            with pytest.raises(
                ValueError, match=rf"^k={k}: must be at most the number of candidates that are not -inf, {most}$"
            ):
                top_two(scores, k, budget=budget, rng=Watched())
        found = top_two(scores, most).tolist()
        assert sorted(found) == [i for i, s in enumerate(scores) if s > -INF]
    assert_uncharged(budget)


@pytest.mark.parametrize("rng", [7, "secure", np.random.default_rng(0), fastdp.Randomness], ids=without_address)
def test_rng_is_fastdps_own_or_nothing_is_charged(rng):
    budget = Budget(epsilon=10.0)
    for draw in ALL:
        with pytest.raises(ValueError, match=r"^rng=.*: must be a fastdp.Randomness or None"):
            draw([1, 2, 3], rng=rng, budget=budget)
    assert_uncharged(budget)


def test_keywords_are_keywords():
    for choose in (fastdp.exponential_mechanism, fastdp.permute_and_flip):
        with pytest.raises(TypeError):
            choose([1, 2], 1, 1.0)
    with pytest.raises(TypeError):
        fastdp.top_k([1, 2], 1, 1, 1.0)


# --- forced escalation: every level decides alike


def forbidden_at(values, places):
    values[places] = -INF
    return values


ESCALATED = {
    "integers": np.random.default_rng(12).integers(-6, 6, 150),
    "floats": forbidden_at(np.random.default_rng(13).normal(size=150) * 3, slice(0, 150, 7)),
    "far apart": np.array([0.0, -1.7e308, 1.7e308, 1.69e308] * 10),
    "two blocks": np.concatenate((np.zeros(2048), -np.arange(60.0))) - 1000.0 * (np.arange(2108) < 2040),
}


@pytest.mark.parametrize("kind", ESCALATED)
def test_every_choice_escalated_is_the_same_choice(kind, monkeypatch):
    scores = ESCALATED[kind]
    draws = [by_buckets, lambda s, **o: several(s, size=30, **o), flip]
    if scores.size < 1000:
        draws += [by_gumbel, lazily, top_two, lambda s, **o: top_two(s, 20, **o)]
    seeds = range(3)
    expected = [np.asarray(draw(scores, rng=seeded(seed))).tolist() for draw in draws for seed in seeds]
    flip(np.resize(scores, 3000), rng=seeded(0))  # loads kernels, whose known answers are those of the slack as it is
    asked = []
    below, compare = (
        selection.Buckets._accepted.__globals__["exact"].is_below_exp,
        fastdp.mechanisms.gumbel_max.exact.compare_arrivals,
    )
    monkeypatch.setattr(fastdp.randomness.exact_draws, "is_below_exp", lambda *a: asked.append("coin") or below(*a))
    monkeypatch.setattr(
        fastdp.randomness.exact_draws, "compare_arrivals", lambda *a: asked.append("arrival") or compare(*a)
    )
    monkeypatch.setattr(layout, "SLACK", 2.0**60)
    found = [np.asarray(draw(scores, rng=seeded(seed))).tolist() for draw in draws for seed in seeds]
    assert found == expected
    assert asked.count("coin") > 50
    assert asked.count("arrival") > 50 or scores.size > 1000


def test_escalated_draws_have_the_law_too(monkeypatch):
    """What integers decide alone, as laws."""
    monkeypatch.setattr(layout, "SLACK", 2.0**60)
    scores = SMALL["integers"]
    rng = seeded(14)
    drawn = several(scores, size=4000, epsilon=8000.0, rng=rng)
    wrong = [softmax(scores, off) for off in OFF]
    assert_cells(np.bincount(drawn, minlength=5), softmax(scores), *wrong)
    assert_cells(counted(lambda: by_gumbel(scores[:3], rng=rng), 1500, 3), softmax(scores[:3]))
    weights = oracles.selection.choice_weights(scores, 1)
    assert_cells(counted(lambda: flip(scores, rng=rng), 2500, 5), oracles.selection.permute_and_flip_law(weights))


# --- the same bits on every machine


def fingerprint():
    """What a seed gives, for few and many candidates, by every method."""
    draw, rng, found = np.random.default_rng(15), seeded(16), []
    for n in (1, 5, 3000, 20_000):
        floats = draw.normal(size=n) * 4
        floats[: n // 3] = -INF
        for scores in (draw.integers(-20, 20, n), floats, floats * 1e300, draw.integers(-(2**62), 2**62, n)):
            for epsilon in (0.02, 2.0, 1e-17):
                options = {"epsilon": epsilon, "rng": rng}
                for choose in (by_gumbel, by_buckets, flip):
                    found += [choose(scores, **options) for _ in range(4)]
                found += several(scores, size=20, **options).tolist()
                found += top_two(scores, min(n - n // 3, 5), **options).tolist()
    shards = fastdp.GumbelMax(sensitivity=1, epsilon=1.0, k=7, rng=rng)
    for start in range(0, 9000, 1000):
        shards.offer(draw.normal(size=1000), start)
    found += shards.winners().tolist()
    return hashlib.sha256(repr(found).encode()).hexdigest()


def test_same_bits_on_other_cpus(fingerprint_elsewhere):
    """Neither the width of the vectors nor a missing fma instruction changes a choice."""
    assert fingerprint_elsewhere(__name__) == fingerprint()


def test_a_sensitivity_too_long_to_be_written_out_is_cut():
    with pytest.raises(ValueError, match=r"^epsilon=1.0, sensitivity=Fraction\(1, <int of 16,610 bits>\): must be"):
        fastdp.exponential_mechanism(np.arange(5.0), sensitivity=Fraction(1, 10**5000), epsilon=1.0)
