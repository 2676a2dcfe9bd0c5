"""The removal lemma by exact enumeration: random tiny instances, each direction against its own bound, and a mutant."""

import functools
import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from fastdp import ApproxDP, Budget
from fastdp.privacy.removal_lemma import Removal, peeling_eta, removal, removal_eta
from fastdp.privacy.reservations import Reservation

RELATIONS = ("add-remove", "replace-one")


def bound(form: str, eta: float, epsilon: float) -> float:
    """The four forms as removal_lemma.md states them, written down a second time; (b) and (d) in their non-pure
    direction."""
    k = math.expm1(eta)
    if form == "a":
        return math.tanh(eta / 2) * math.exp(-epsilon / k)
    if form == "b":
        return -math.expm1(-eta) * math.exp(-(epsilon + eta) / k)
    if form == "c":
        return two_records(eta)(math.exp(epsilon))
    shift = epsilon + 2 * eta
    both = (-math.expm1(-2 * eta) + shift * math.exp(-eta)) * math.exp(-shift / k)
    return max(both, k * math.exp(-epsilon / k))


def both_ways(beyond_one):
    """A function W with W(y) = 1 - y + y W(1/y), from its values at y >= 1."""
    return lambda y: beyond_one(y) if y >= 1 else 1 - y + y * beyond_one(1 / y)


def one_record(eta):
    k = math.expm1(eta)
    return both_ways(lambda y: math.tanh(eta / 2) * y ** (-1 / k))


def two_records(eta):
    k, D = math.expm1(eta), math.tanh(eta / 2)
    m = D * math.exp(-eta / k)
    return both_ways(lambda y: y ** (-1 / k) * ((k + 2 * m) / (k + 2) + m / k * math.log(y)))


FORMS = {"a": (False, "add-remove"), "b": (True, "add-remove"), "c": (False, "replace-one"), "d": (True, "replace-one")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("eta", [1e-3, 0.08, 0.5, 2.0])
def test_delta_is_the_formula_rounded_up(form, eta):
    one_signed, neighbors = FORMS[form]
    guarantee = removal(eta, one_signed=one_signed, neighbors=neighbors)
    for epsilon in (2 * eta, 3 * eta, 0.7 + 2 * eta, 2 * eta + 2):
        general = bound("a" if neighbors == "add-remove" else "c", eta, epsilon)
        expected = min(1.0, bound(form, eta, epsilon), general)
        assert guarantee.delta(epsilon) == pytest.approx(expected, rel=1e-9) or expected < 1e-300
        exact = min(guarantee._delta(Decimal(epsilon), one_signed=each) for each in {False, one_signed})
        assert Decimal(guarantee.delta(epsilon)) >= min(1, exact)


def test_the_values_that_the_note_states():
    for form, eta in (("a", 0.0893), ("b", 0.0916), ("c", 0.0777), ("d", 0.0795)):
        one_signed, neighbors = FORMS[form]
        assert removal_eta(1.0, 1e-6, one_signed=one_signed, neighbors=neighbors) == pytest.approx(eta, abs=5e-5)
    for neighbors, least in (("add-remove", 27), ("replace-one", 10)):
        names = [peeling_eta(1.0, 1e-6, r, one_signed=True, neighbors=neighbors)[1] for r in (least - 1, least)]
        assert names == ["composition", "removal lemma"]


@pytest.mark.parametrize("form", FORMS)
def test_conversions_are_inverses(form):
    one_signed, neighbors = FORMS[form]
    for epsilon, delta in ((1.0, 1e-6), (0.1, 1e-9), (3.0, 1e-2), (0.5, 0.2)):
        eta = removal_eta(epsilon, delta, one_signed=one_signed, neighbors=neighbors)
        assert removal(eta, one_signed=one_signed, neighbors=neighbors).implies(
            ApproxDP(epsilon, delta, neighbors=neighbors)
        )
        larger = removal(eta * (1 + 1e-6), one_signed=one_signed, neighbors=neighbors)
        assert not larger.implies(ApproxDP(epsilon, delta, neighbors=neighbors))
        point = removal(eta, one_signed=one_signed, neighbors=neighbors).to_approx(delta)
        assert point.epsilon == pytest.approx(epsilon, rel=1e-9)
        assert point.epsilon <= epsilon * (1 + 1e-9)
        assert point.theorem == "removal lemma"


# --- exact enumeration. e^eta is rational; weights are (e^eta)^score; every transcript's probability is a fraction.


class Instance:
    """A few records that move the scores of the candidates in their removal sets, by -1, 0 or 1, round by round."""

    def __init__(self, rng: random.Random, *, one_signed: bool) -> None:
        self.base = rng.choice([Fraction(11, 10), Fraction(3, 2), Fraction(2), Fraction(4)])
        self.eta = math.log(self.base)
        self.candidates = rng.randint(2, 4)
        self.rounds = rng.randint(1, 4 if self.candidates < 4 else 3)
        self.rng_seed = rng.randrange(10**9)
        self.one_signed = one_signed
        self.others = [self.record(rng) for _ in range(rng.randint(0, 2))]

    def record(self, rng: random.Random, sign: int = 0) -> tuple[frozenset[int], int, int]:
        """(removal set, sign or 0 for both, seed of its moves)."""
        chosen = frozenset(c for c in range(self.candidates) if rng.random() < 0.6)
        return chosen, (sign or rng.choice((-1, 1))) if self.one_signed else 0, rng.randrange(10**9)

    def move(self, record: tuple[frozenset[int], int, int], past: tuple[int, ...], c: int) -> int:
        """By how much an alive record moves the score of c, given the released past."""
        chosen, sign, seed = record
        if c not in chosen:
            return 0
        local = random.Random(f"{seed} {past} {c}")
        return sign * local.randint(0, 1) if sign else local.randint(-1, 1)

    def weights(self, alive, past):
        """Weights of the remaining records; some candidates have weight 0 and some rounds lean to one of them."""
        local = random.Random(f"{self.rng_seed} {past}")
        weights = []
        for c in range(self.candidates):
            lean = local.choice((0, 0, 1, 3, -2))
            closed = local.random() < 0.1 and c > 0
            score = lean + sum(self.move(record, past, c) for record in alive)
            weights.append(Fraction(0) if closed else self.base**score)
        return weights

    def law(self, records) -> dict[tuple[int, ...], Fraction]:
        """The probability of every transcript; some pasts end the run early, whatever the records are."""
        law: dict[tuple[int, ...], Fraction] = {}

        def go(past, alive, probability):
            stop = random.Random(f"stop {self.rng_seed} {past}").random() < 0.15
            if len(past) == self.rounds or (stop and past):
                law[past] = probability
                return
            weights = self.weights(alive, past)
            total = sum(weights)
            for c, w in enumerate(weights):
                if w:
                    go((*past, c), [r for r in alive if c not in r[0]], probability * w / total)

        go((), records, Fraction(1))
        return law


def delta_of(p, q, grown: Fraction) -> Fraction:
    """The least delta of p against q at e^epsilon = grown."""
    return sum((max(Fraction(0), p[t] - grown * q.get(t, Fraction(0))) for t in p), Fraction(0))


GRID = [Fraction(1), Fraction(21, 20), Fraction(5, 4), Fraction(3, 2), Fraction(2), Fraction(4), Fraction(9)]


def check(p, q, eta, form, counted):
    for grown in GRID:
        epsilon = math.log(grown)
        delta = float(delta_of(p, q, grown))
        allowed = bound(form, eta, epsilon)
        assert delta <= allowed * (1 + 1e-9) + 1e-15, (form, eta, epsilon, delta, allowed)
        if delta > 0:
            counted.append(delta / allowed)


@pytest.mark.parametrize("one_signed", [False, True])
def test_add_remove_on_random_instances(one_signed):
    rng = random.Random(f"add-remove {one_signed}")
    tightness: list[float] = []
    for _ in range(200):
        instance = Instance(rng, one_signed=one_signed)
        x = instance.record(rng)
        small, large = instance.law(instance.others), instance.law([*instance.others, x])
        if not one_signed:
            check(small, large, instance.eta, "a", tightness)
            check(large, small, instance.eta, "a", tightness)
            continue
        low, high = (small, large) if x[1] > 0 else (large, small)
        check(low, high, instance.eta, "b", tightness)
        assert delta_of(high, low, instance.base) == 0, "the other direction is pure eta"
    assert len(tightness) > 200
    assert max(tightness) > 0.4, "the instances come near the bound"


@pytest.mark.parametrize("one_signed", [False, True])
def test_replace_one_on_random_instances(one_signed):
    rng = random.Random(f"replace-one {one_signed}")
    tightness: list[float] = []
    done = 0
    while done < 200:
        instance = Instance(rng, one_signed=one_signed)
        x, x2 = instance.record(rng), instance.record(rng)
        pasts = [p for r in range(instance.rounds) for p in itertools.product(range(instance.candidates), repeat=r)]
        moves = [instance.move(x, p, c) - instance.move(x2, p, c) for p in pasts for c in range(instance.candidates)]
        if max(map(abs, moves)) > 1:
            continue  # outside of the setting: one replacement must move every score by at most 1
        done += 1
        p, q = instance.law([*instance.others, x]), instance.law([*instance.others, x2])
        for one, other in ((p, q), (q, p)):
            if not one_signed:
                check(one, other, instance.eta, "c", tightness)
                continue
            for grown in GRID:
                if grown >= instance.base**2:
                    allowed = bound("d", instance.eta, math.log(grown))
                    delta = float(delta_of(one, other, grown))
                    assert delta <= allowed * (1 + 1e-9) + 1e-15
                    tightness.append(delta / allowed)
    assert max(tightness) > (0.3 if not one_signed else 0)  # form (d) wants long games: see below


def test_a_long_game_comes_near_the_bound_in_form_b():
    """One record, one candidate of small weight that would delete it, many rounds: the bound is nearly attained."""
    eta, rounds, p = 0.5, 400, 0.01
    k = math.expm1(eta)
    low, high = p / 1.0, p * (1 + k) / (1 + k * p)
    for epsilon in (0.6, 1.0, 2.0):
        delta = sum(
            max(0.0, (1 - low) ** t * low - math.exp(epsilon) * (1 - high) ** t * high) for t in range(rounds)
        ) + max(0.0, (1 - low) ** rounds - math.exp(epsilon) * (1 - high) ** rounds)
        assert delta <= bound("b", eta, epsilon)
        assert delta > 0.9 * bound("b", eta, epsilon)


def test_a_long_game_comes_near_the_bound_in_form_d():
    """Two records that each have a candidate of small weight: the run with the smaller weights against the other.

    The time of the first hit decides y, the time of the second the rest: a double sum.
    """
    eta, rounds, p = 0.3, 1500, 0.01
    k = math.expm1(eta)
    both, one = 1 + 2 * k * p, 1 + k * p
    t = np.arange(rounds)

    def single(y):
        """The expected (1 - y)_+ when one record is left."""
        hits = (1 - p) ** t * p * np.maximum(0, 1 - y[:, None] * (1 + k) / one ** (t + 1))
        return hits.sum(1) + (1 - p) ** rounds * np.maximum(0, 1 - y / one**rounds)

    for epsilon in (0.6, 1.0, 1.5):
        y = math.exp(epsilon) / both**t
        delta = ((1 - 2 * p) ** t * 2 * p * single(y * (1 + k) / both)).sum()
        delta += (1 - 2 * p) ** rounds * max(0.0, 1 - math.exp(epsilon) / both**rounds)
        assert delta <= bound("d", eta, epsilon)
        shift = epsilon + 2 * eta  # the part of (d) that is for one record that raises and one that lowers
        assert delta > 0.95 * (-math.expm1(-2 * eta) + shift * math.exp(-eta)) * math.exp(-shift / k)


@pytest.mark.parametrize("eta", [1e-3, 0.05, 0.3, 1.0, 3.0, 8.0])
def test_the_functions_of_the_note_are_worth_no_more_after_a_round(eta):
    """The inequalities (*') and (3), at random masses and values of y."""
    rng, U = random.Random(1), math.exp(eta)
    W, W2 = one_record(eta), two_records(eta)
    for _ in range(4000):
        cuts = sorted(rng.random() ** 3 for _ in range(2))
        p1, p2, q = rng.sample([cuts[0], cuts[1] - cuts[0], 1 - cuts[1]], 3)
        Y = math.exp(rng.gauss(0, 1.5 * eta))
        f = p1 * U + p2 / U + q
        once = p1 * max(0.0, 1 - U * Y) + p2 * max(0.0, 1 - Y / U) + q * W(Y)
        assert once <= W(f * Y) + 1e-14
        assert p1 * W(U * Y) + p2 * W(Y / U) + q * W2(Y) <= W2(f * Y) + 1e-14
        assert W2(Y) >= W(Y) >= max(0.0, 1 - Y)
    response = U / (U + 1) * (1 - 1 / U)  # randomised response, at y = 1
    assert response == pytest.approx(W(1.0)), "no lesser function will do"


@pytest.mark.parametrize("eta", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_long_games_come_near_the_bounds_in_forms_a_and_c(eta, epsilon):
    """A small mass until y = 1, then randomised response: the same for one record; for two, the game of one follows."""
    p, k, U = 1e-3 * math.exp(-eta), math.expm1(eta), math.exp(eta)
    f = 1 + k * p
    rounds = round(epsilon / math.log(f))
    survives, y = (1 - p) ** rounds, math.exp(epsilon) / f**rounds
    found = survives * (U - y) / (U + 1)
    assert 0.95 * bound("a", eta, epsilon) < found <= bound("a", eta, epsilon) * (1 + 1e-9)
    W = one_record(eta)
    hits = sum((1 - p) ** t * p * W(math.exp(epsilon) * U / f ** (t + 1)) for t in range(rounds))
    found = hits + survives * (W(y * U) + U * W(y / U)) / (U + 1)
    assert 0.95 * bound("c", eta, epsilon) < found <= bound("c", eta, epsilon) * (1 + 1e-9)


def test_a_schedule_that_counts_the_remaining_records_is_rejected():
    """Peeling with one literal and a dummy, all records equal, and as threshold the *current* number of negatives.

    The scores are then a literal's N - threshold = 0 and a dummy's -Gamma with Gamma = |X0|: a coin whose bias tells
    the number of records in every round, while nothing is ever removed: fifty rounds, a binomial law, and the claim of
    form (b) fails. With a public threshold the same rounds keep it.
    """
    eta, rounds, gamma = 0.5, 50, 6

    def law(negatives: int, *, counting: bool) -> list[float]:
        # score of the literal, capped by many positives at -gamma; the dummy's score is -(current count) or -gamma
        literal = math.exp(eta * -gamma)
        dummy = math.exp(eta * -(negatives if counting else gamma))
        chosen = literal / (literal + dummy)
        return [math.comb(rounds, j) * chosen**j * (1 - chosen) ** (rounds - j) for j in range(rounds + 1)]

    for epsilon in (0.5, 1.0, 2.0):
        allowed = bound("b", eta, epsilon)
        p, q = law(gamma, counting=True), law(gamma + 1, counting=True)
        worst = max(
            sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(one, other, strict=True))
            for one, other in ((p, q), (q, p))
        )
        assert worst > 1.5 * allowed, "the mutant breaks the claim by far"
        p, q = law(gamma, counting=False), law(gamma + 1, counting=False)
        assert sum(max(0.0, a - math.exp(epsilon) * b) for a, b in zip(p, q, strict=True)) <= allowed


# --- the object


def test_it_is_a_guarantee_that_wants_a_delta():
    guarantee = removal(0.1, one_signed=True)
    assert guarantee == Removal(0.1, True)
    assert str(guarantee) == "one-signed removal at eta=0.1, replace-one"
    charged = functools.partial(Reservation, Budget(epsilon=1, delta=1e-6), guarantee, "rounds", {})
    for use in (charged, lambda: guarantee.group(2), guarantee.to_zcdp):
        with pytest.raises(ValueError, match=r"to_approx\(delta\)"):
            use()
    assert guarantee.implies(removal(0.2, one_signed=True))
    assert not guarantee.implies(removal(0.05, one_signed=True))
    assert not guarantee.implies(removal(0.2, one_signed=True, neighbors="add-remove"))
    assert guarantee.delta(0.15) == removal(0.1, one_signed=False).delta(0.15), "below 2 eta form (d) says nothing"


@pytest.mark.parametrize("eta", [0, -1, math.nan, math.inf, "0.1", True, 11, 1e-60])
def test_bad_eta(eta):
    with pytest.raises(ValueError, match=r"^eta="):
        removal(eta, one_signed=True)


def test_bad_goals():
    with pytest.raises(ValueError, match=r"^one_signed='no'"):
        removal(0.1, one_signed="no")
    with pytest.raises(ValueError, match="too small for the lemma"):
        removal_eta(1e-17, 1e-300, one_signed=True)
    with pytest.raises(ValueError, match=r"^delta="):
        removal_eta(1.0, 0.0, one_signed=True)
    with pytest.raises(ValueError, match=r"^delta="):
        removal(0.1, one_signed=True).to_approx(1)
    with pytest.raises(ValueError, match=r"^rounds=0"):
        peeling_eta(1.0, 1e-6, 0, one_signed=True)
    with pytest.raises(ValueError, match=r"^neighbors="):
        removal(0.1, one_signed=True, neighbors="swap")
