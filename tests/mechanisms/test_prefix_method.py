"""The interior point by prefixes: its law in fractions, privacy of that law by enumeration, variants that are not
private, the code against that law and against plain definitions, constants against their formulas, and its accuracy."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from fastdp import ApproxDP, PureDP, Randomness
from fastdp.bounds import interior_point_n
from fastdp.mechanisms.prefix_method import FAILURE, PrefixPlan, _joined, _Light, common_bits, permutation, points_below
from fastdp.randomness.charged_keys import ChargedKeys
from tests.laws import ALARM, check_cells, log_at_least
from tests.oracles.sparse_vector import excess, pmf, tail

Law = dict[Any, Fraction]
Points = tuple[int, ...]


def keys_of(rng: Randomness | None) -> ChargedKeys:
    """Keys that nobody is charged for."""
    return ChargedKeys("test", PureDP(1.0), {}, None, rng)


# --- the model: weights and q are fractions, so that every probability is one


def weighted(weights: dict[Any, Fraction]) -> Law:
    total = sum(weights.values())
    return {outcome: weight / total for outcome, weight in weights.items()}


def shared(x: int, y: int, bits: int) -> int:
    """Leading bits in common, by their writing."""
    pairs = zip(f"{x:0{bits}b}", f"{y:0{bits}b}", strict=True)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def length_scores(lengths: Sequence[int], bits: int, joined: int, parted: int) -> list[int]:
    return [
        min(sum(z_i >= z for z_i in lengths) - joined, sum(z_i <= z for z_i in lengths) - parted)
        for z in range(bits + 1)
    ]


@lru_cache(None)
def length_law(points: Points, bits: int, joined: int, parted: int, weight: Fraction) -> Law:
    """Step 1, over all orders of the records."""
    orders = list(itertools.permutations(points))
    law: Law = Counter()
    for order in orders:
        lengths = [shared(x, y, bits) for x, y in zip(order[0::2], order[1::2], strict=False)]
        chosen = weighted({z: weight**s for z, s in enumerate(length_scores(lengths, bits, joined, parted))})
        for z, probability in chosen.items():
            law[z] += probability / len(orders)
    return law


def prefix_law(counts: dict[str, int], q: Fraction, tau: int, order: Sequence[str] | None = None) -> Law:
    """Step 2: the largest noisy count, if it is at least tau; of equal ones the first in `order`.

    Above all counts every distribution function is 1 - a q^v: a polynomial in q^v, summed in closed form.
    """
    order = sorted(counts) if order is None else order
    top = max([tau, *counts.values()]) + 2
    law: Law = {}
    for i, name in enumerate(order):
        below = [counts[other] + (j < i) for j, other in enumerate(order) if j != i]  # Z_other <= v - below
        total = Fraction(0)
        for v in range(tau, top):
            total += pmf(v - counts[name], q) * math.prod(1 - tail(v - b + 1, q) for b in below)
        coefficients = [Fraction(1)]
        for b in below:
            a = tail(top - b + 1, q)
            coefficients = [x - a * y for x, y in zip([*coefficients, 0], [0, *coefficients], strict=True)]
        total += pmf(top - counts[name], q) * sum(c / (1 - q ** (k + 1)) for k, c in enumerate(coefficients))
        law[name] = total
    law[None] = math.prod((1 - tail(tau - c, q) for c in counts.values()), start=Fraction(1))
    assert sum(law.values()) == 1
    return law


def point_law(points: Points, prefix: str, bits: int, weight: Fraction) -> Law:
    """Step 3."""
    rest = bits - len(prefix)
    ends = {""} if rest == 0 else {"0" * rest, "0" + "1" * (rest - 1), "1" * rest}
    candidates = [int(prefix + end, 2) for end in ends]
    depth = {c: min(sum(x <= c for x in points), sum(x >= c for x in points)) for c in candidates}
    return weighted({c: weight ** depth[c] for c in candidates})


def output_law(
    points: Points, bits: int, joined: int, parted: int, tau: int, a1: Fraction, q: Fraction, a3: Fraction
) -> Law:
    """The point that the whole mechanism returns: eta_1 = ln a1, q = e^(-1/scale), eta_3 = ln a3."""
    law: Law = Counter()
    for z, with_z in length_law(points, bits, joined, parted, a1).items():
        counts = Counter(f"{x:0{bits}b}"[:z] for x in points)
        for prefix, with_prefix in prefix_law(counts, q, tau).items():
            below = {0: Fraction(1)} if prefix is None else point_law(points, prefix, bits, a3)
            for point, probability in below.items():
                law[point] += with_z * with_prefix * probability
    return law


def neighbouring(n: int, bits: int) -> Iterator[tuple[Points, Points]]:
    """All ordered pairs of multisets of n points that differ by one replacement."""
    for rest in itertools.combinations_with_replacement(range(2**bits), n - 1):
        for x, y in itertools.permutations(range(2**bits), 2):
            yield tuple(sorted((*rest, x))), tuple(sorted((*rest, y)))


def worst_excess(n: int, bits: int, ratio: Fraction, **parameters: Any) -> Fraction:
    """The least delta with which (ln ratio, delta) holds for all neighbours."""
    laws: dict[Points, Law] = {}
    for points in itertools.combinations_with_replacement(range(2**bits), n):
        law = output_law(points, bits, **parameters)
        assert sum(law.values()) == 1
        laws[points] = {y: law.get(y, Fraction(0)) for y in range(2**bits)}
    return max(excess(laws[x], laws[y], ratio) for x, y in neighbouring(n, bits))


# --- privacy


def test_the_order_of_the_records_does_not_count():
    terms = (2, 1, 1, 3, Fraction(2), Fraction(1, 3), Fraction(3, 2))
    for points in itertools.combinations_with_replacement(range(4), 3):
        law = output_law(points, *terms)
        assert all(output_law(order, *terms) == law for order in itertools.permutations(points))


@pytest.mark.parametrize(("bits", "n"), [(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (2, 3), (2, 4)])
def test_privacy_by_enumeration(bits: int, n: int):
    """(eps1 + eps2 + eps3, delta)-DP for all neighbours, with delta exactly the tail that tau leaves.

    No condition on delta and eps2: at q = 9/10 and tau = 1 even -ln(1 - delta) <= eps2 / 2 is far from true.
    """
    assert -math.log(1 - tail(0, Fraction(9, 10))) > 5 * -math.log(9 / 10)
    weights = [(Fraction(1), Fraction(1)), (Fraction(3), Fraction(3, 2)), (Fraction(5, 4), Fraction(4))]
    largest = Fraction(0)
    for k, q in itertools.product((0, 1, 3), (Fraction(1, 4), Fraction(9, 10))):
        for (a1, a3), (joined, parted) in itertools.product(weights, [(1, 1), (0, 2), (2, 0)] if n > 3 else [(1, 1)]):
            delta, ratio = tail(k, q), a1**2 / q**2 * a3**2
            parameters = {"joined": joined, "parted": parted, "tau": 1 + k, "a1": a1, "q": q, "a3": a3}
            found = worst_excess(n, bits, ratio, **parameters)
            assert found <= delta
            largest = max(largest, found / delta)
    if bits > 1 and n > 1:
        assert largest > Fraction(1, 5), "the enumeration does not come near the bound: it has no power"


def test_the_prefix_alone_keeps_its_part():
    """Step 2 by itself, up to 5 records of 3 prefixes: (2/scale, delta)-DP, and no smaller delta would do."""
    names = "abc"
    for q, k in itertools.product((Fraction(1, 3), Fraction(4, 5)), (0, 1, 2, 4)):
        largest = Fraction(0)
        for n in range(1, 6):
            for rest in itertools.combinations_with_replacement(names, n - 1):
                for x, y in itertools.permutations(names, 2):
                    p, r = (prefix_law(Counter((*rest, w)), q, 1 + k) for w in (x, y))
                    largest = max(largest, excess(p, Counter(r), 1 / q**2))
        assert largest == tail(k, q)


def test_a_threshold_for_continuous_noise_is_not_private():
    """2 in the place of 1 + q, at eps2 = 4 and delta = e^-4 / 2: the tail of discrete noise is larger.

    The length is uniform (the one pair shares nothing, and K' is far away), the point all but certain.
    """
    q, bits = Fraction(math.exp(-2)), 3  # scale = 2 / eps2
    delta = q**2 / 2
    assert pytest.approx(-2 * math.log(q)) == 4
    terms = {"joined": 0, "parted": 9, "a1": Fraction(2), "q": q, "a3": Fraction(10**6)}
    continuous = 1 + math.ceil(math.log(1 / (2 * delta)) / 2)
    discrete = 1 + math.ceil(math.log(1 / ((1 + q) * delta)) / 2)
    assert (continuous, discrete) == (3, 4)
    x, y = (4, 0), (0, 0)  # 100 needs its own prefix: none of 000, 011, 111 is it
    for tau, allowed in ((continuous, False), (discrete, True)):
        laws = [Counter(output_law(points, bits, tau=tau, **terms)) for points in (x, y)]
        # even with all that steps 1 and 3 might spend: the event {100} has no probability on the other side
        assert laws[1][4] == 0
        assert (excess(*laws, ratio=terms["a1"] ** 2 / q**2 * terms["a3"] ** 2) <= delta) == allowed


def test_a_threshold_that_is_one_lower_is_not_private():
    q, k = Fraction(1, 4), 2
    terms = {"joined": 0, "parted": 9, "a1": Fraction(2), "q": q, "a3": Fraction(10**6), "bits": 3}
    ratio = terms["a1"] ** 2 / q**2 * terms["a3"] ** 2
    laws = [Counter(output_law(points, tau=k, **terms)) for points in ((4, 0), (0, 0))]
    assert excess(*laws, ratio) > tail(k, q)


def test_noise_for_one_count_is_not_private():
    """Replacing a record moves two counts: scale 1/eps2 instead of 2/eps2 spends twice as much."""
    q, tau = Fraction(1, 16), 4
    p, r = (prefix_law(counts, q, tau) for counts in ({"a": 10, "b": 10}, {"a": 9, "b": 11}))
    assert excess(p, r, 1 / q) > 10 * tail(tau - 1, q)


def test_ties_by_the_order_of_the_records_are_not_private():
    """Equal noisy counts go to the prefix of the first record, and that is the record that is replaced."""
    q, tau = Fraction(1, 4), 13
    before, after = {"a": 13, "b": 13}, {"a": 12, "b": 14}
    mutant = [prefix_law(before, q, tau, order="ab"), prefix_law(after, q, tau, order="ba")]
    assert excess(*mutant, 1 / q**2) > 1000 * tail(tau - 1, q)
    for order in ("ab", "ba"):  # any order of the prefixes themselves will do
        assert excess(prefix_law(before, q, tau, order), prefix_law(after, q, tau, order), 1 / q**2) <= tail(tau - 1, q)


@pytest.mark.parametrize("bits", [1, 5, 64, 100])
def test_a_record_moves_no_score_by_more_than_one(bits: int):
    rng = random.Random(bits)
    for _ in range(300):
        n = rng.randint(1, 9)
        points = [rng.choice([rng.getrandbits(bits), rng.getrandbits(max(1, bits // 2))]) for _ in range(n)]
        plan = PrefixPlan.of(n, bits, epsilon=1.0, delta=1e-3, beta=0.1)
        before = plan.length_scores(array(points, bits))
        points[rng.randrange(n)] = rng.getrandbits(bits)
        assert np.abs(plan.length_scores(array(points, bits)) - before).max() <= 1


# --- the code against definitions


def array(points: Sequence[int], bits: int) -> Any:
    return np.array(points, np.uint64 if bits <= 64 else object)


@pytest.mark.parametrize("bits", [1, 2, 31, 33, 53, 63, 64, 65, 300])
def test_common_bits(bits: int):
    """Every length, with ones behind the first difference (which float64 would round up to the next power of two)."""
    rng = random.Random(bits)
    left = [rng.getrandbits(bits) for _ in range(bits + 1)]
    right = [x ^ (2**k - 1) for k, x in enumerate(left)]
    assert common_bits(array(left, bits), array(right, bits), bits).tolist() == [bits - k for k in range(bits + 1)]
    right = [rng.getrandbits(bits) for _ in left]
    expected = [shared(x, y, bits) for x, y in zip(left, right, strict=True)]
    assert common_bits(array(left, bits), array(right, bits), bits).tolist() == expected


@pytest.mark.parametrize("bits", [1, 6, 64, 70])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 12])
def test_length_scores(bits: int, n: int):
    rng = random.Random(n)
    points = [rng.getrandbits(bits) >> rng.randrange(bits) for _ in range(n)]
    plan = PrefixPlan.of(n, bits, epsilon=1.0, delta=1e-3, beta=0.1)
    lengths = [shared(x, y, bits) for x, y in zip(points[0::2], points[1::2], strict=False)]
    expected = length_scores(lengths, bits, plan.joined, plan.parted)
    assert plan.length_scores(array(points, bits)).tolist() == expected


def test_points_below():
    assert points_below(5, 0) == [5]
    assert points_below(5, 1) == [10, 11]
    assert points_below(5, 3) == [40, 43, 47]
    assert points_below(0, 64) == [0, 2**63 - 1, 2**64 - 1]


def test_permutations_are_uniform():
    """4 records, 24 orders; false alarm 1e-9."""
    orders = {order: i for i, order in enumerate(itertools.permutations(range(4)))}
    rng, counts = Randomness(seed=11), [0] * 24
    for _ in range(20_000):
        counts[orders[tuple(permutation(4, rng.key()).tolist())]] += 1
    assert check_cells(counts, [Fraction(1, 24)] * 24)


def test_equal_words_are_drawn_again(monkeypatch: pytest.MonkeyPatch):
    from fastdp.kernels import words as kernels

    streams = {0: [5, 1, 5], 1: [7, 7, 7], 2: [30, 10, 20]}

    def words_into(key: Any, stream: int, first: int, out: Any) -> None:
        out[:] = streams[stream]

    monkeypatch.setattr(kernels, "words_into", words_into)
    assert permutation(3, Randomness(seed=1).key()).tolist() == [1, 2, 0]


@pytest.mark.parametrize(
    ("points", "changes", "draws"),
    [
        ((0, 2, 2, 3), {"joined": 1, "parted": 1}, 20_000),
        ((1, 1, 2), {"joined": 1, "parted": 0}, 5_000),
        ((0, 1, 3, 3), {}, 20_000),
        ((2, 2), {"joined": 0, "parted": 1, "tau": 1}, 20_000),
        ((1, 3), {"joined": 0, "parted": 1, "tau": 1}, 5_000),  # equal counts: ties
    ],
)
def test_the_code_has_the_law(points: Points, changes: dict[str, int], draws: int):
    """At epsilon = 6; false alarm 1e-9. A scale, an eta or a threshold that is off must show."""
    plan = replace(PrefixPlan.of(len(points), 2, epsilon=6.0, delta=0.2, beta=0.5), **changes)
    e1, _, e3 = plan.epsilons
    terms = {
        "joined": plan.joined,
        "parted": plan.parted,
        "tau": plan.tau,
        "a1": Fraction(math.exp(e1 / 2)),
        "q": Fraction(math.exp(-1 / plan.noise_plan.scale)),
        "a3": Fraction(math.exp(e3 / 2)),
    }
    rng = Randomness(seed=sum(points))
    records = np.array(points, np.uint64)
    counts = np.bincount([plan.draw(records, keys_of(rng)) for _ in range(draws)], minlength=4)
    cells = [point for point, probability in output_law(points, 2, **terms).items() if probability]
    assert counts[cells].sum() == draws
    law = output_law(points, 2, **terms)
    assert check_cells(counts[cells], [law[point] for point in cells])
    wrong = [terms | {"tau": plan.tau + 1}, terms | {"a3": terms["a3"] ** 3}, terms | {"q": terms["q"] ** 2}]
    for other in wrong:
        refuted = output_law(points, 2, **other)
        assert not check_cells(counts[cells], [refuted[point] for point in cells]), "a wrong law passes"


@pytest.mark.parametrize("bits", [8, 64, 65, 4096])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_any_number_of_records(n: int, bits: int):
    """Too few for the guarantee: it runs all the same, and mostly fails, which is the point 0."""
    plan = PrefixPlan.of(n, bits, epsilon=1.0, delta=1e-6, beta=0.05)
    assert not plan.enough
    assert [plan.draw(array([2**bits - 1] * n, bits), keys_of(Randomness(seed=s))) for s in range(5)] == [FAILURE] * 5


def test_uint64_and_python_integers_take_the_same_way():
    """64 bits, and the same points with a leading zero bit as Python's integers: same words, shifted lengths."""
    points = sorted(random.Random(3).getrandbits(64) for _ in range(40))
    narrow, wide = (PrefixPlan.of(40, bits, epsilon=50.0, delta=0.1, beta=0.1) for bits in (64, 65))
    a, b = narrow.length_scores(array(points, 64)), wide.length_scores(array(points, 65))
    assert a.tolist() == b[1:].tolist()
    for z in range(65):
        key = Randomness(seed=z).key()
        assert narrow._prefix(array(points, 64), z, key) == wide._prefix(array(points, 65), z + 1, key)


def test_the_number_of_records_is_public():
    plan = PrefixPlan.of(3, 8, epsilon=1.0, delta=1e-6, beta=0.05)
    with pytest.raises(ValueError, match="points: 2 of them: must be n=3"):
        plan.draw(np.zeros(2, np.uint64), keys_of(None))
    with pytest.raises(ValueError, match=r"noise scale of the prefix counts=.*between"):
        PrefixPlan.of(3, 8, epsilon=1e-15, delta=1e-6, beta=0.05)


def test_final_comes_before_the_first_draw():
    """After the keys: an error there spends nothing."""
    seen: list[str] = []

    class Logged(ChargedKeys):
        def take_ahead(self) -> Any:
            seen.append("key")
            return super().take_ahead()

        def commit(self) -> None:
            seen.append("final")
            super().commit()

    plan = PrefixPlan.of(4, 8, epsilon=1.0, delta=1e-6, beta=0.05)
    plan.draw(np.zeros(4, np.uint64), Logged("test", plan.guarantee, {}, None, None))
    assert seen == ["key"] * 4 + ["final"]


# --- constants


def least(condition: Any, start: int = 0) -> int:
    return next(k for k in itertools.count(start) if condition(k))


@pytest.mark.parametrize(
    ("n", "bits", "epsilon", "delta", "beta"),
    [
        (722, 64, 1.0, 1e-6, 1e-3),
        (10_000, 20, 0.5, 1e-3, 0.05),
        (401, 1000, 3.0, 0.3, 0.1),
        (50_000, 8, 0.1, 1e-9, 0.01),
    ],
)
def test_constants(n: int, bits: int, epsilon: float, delta: float, beta: float):
    """Every constant by its definition in prefix_method.md, in decimals, by plain search; K and T as sums over all
    terms."""
    plan = PrefixPlan.of(n, bits, epsilon=epsilon, delta=delta, beta=beta)
    assert sum(map(Fraction, plan.epsilons)) <= Fraction(epsilon)
    assert sum(plan.epsilons) == pytest.approx(epsilon, rel=1e-15)
    assert [e / epsilon for e in plan.epsilons] == pytest.approx([0.35, 0.25, 0.40])
    assert 1 / Fraction(plan.noise_plan.scale) * 2 <= Fraction(plan.epsilons[1])
    assert plan.guarantee == ApproxDP(epsilon, delta)
    with localcontext() as context:
        context.prec = 40
        e1, e2, e3 = (Decimal(epsilon) * part / 100 for part in (35, 25, 40))
        each, q, p = Decimal(beta) / 5, (-e2 / 2).exp(), n // 2

        def reach(t: Decimal) -> int:
            return least(lambda k: q**k / (1 + q) <= t)

        assert plan.tau == 1 + reach(Decimal(delta))
        assert plan.depth == least(lambda k: 2 * (-e3 * k / 2).exp() <= each)
        assert plan.parted == 2 * plan.depth - 1
        rounds = least(lambda k: bits * (-e1 * k / 2).exp() <= each)
        assert plan.spare == least(lambda g: -(-g // 2) + 1 >= rounds, 1)

        def light(m: int) -> Decimal:  # the sum over the differences, term by term as a convolution's closed form
            c = (1 + q * q) / (1 - q * q)
            middle = ((1 - q) / (1 + q)) ** 2
            return middle * q**m * ((m + c) / (1 - q) + q / (1 - q) ** 2)

        def moment(heavy: int, joined: int) -> Decimal:
            found = product = Decimal(1)
            for r in range(1, joined + 1):
                product *= Decimal((p - r + 1) * (heavy - 2)) / ((2 * p - 2 * r + 1) * (joined - r + 1))
                found = min(found, product)
            return found

    def k_of(heavy: int) -> int:
        with localcontext() as context:
            context.prec = 40
            return least(lambda k: moment(heavy, k) <= each, (heavy - 2) // 2)

    low = max(plan.tau + reach(each) - 1, plan.depth)
    assert plan.heavy >= low
    assert plan.joined == k_of(plan.heavy) <= plan.heavy - 2
    worst = max(light(plan.heavy - c) / c for c in range(1, plan.depth))
    assert (2 * p + 1 - plan.heavy) * worst <= each
    if plan.heavy > low:  # no larger than it must be, but for a part in 16 that the search over c gives away
        heavy = plan.heavy - 1
        worst = max(light(heavy - c) / c for c in range(1, plan.depth))
        assert (2 * p + 1 - heavy) * worst * Decimal("1.0625") > each or k_of(heavy) > heavy - 2


def test_the_tail_of_a_difference():
    """Pr[Z - Z' >= m] by convolution."""
    for scale in (0.3, 2.0, 9.5):
        q = math.exp(-1 / scale)
        mass = np.array([(1 - q) / (1 + q) * q ** abs(z) for z in range(-600, 601)])
        difference = np.convolve(mass, mass)  # from -1200
        for m in (1, 2, 7, 40):
            expected = pytest.approx(difference[1200 + m :].sum(), rel=1e-9)
            assert _Light(scale, 5, 0.1)._overtakes(m) == expected


def test_the_bound_on_pairs_of_chance():
    """K against the law of the number of pairs within blocks of T - 1 records, by all pairings; odd n included."""

    def pairs_within(left: tuple[int, ...]) -> Counter[int]:
        """Weights of the number of pairs, over all orders of the records."""
        if sum(left) < 2:
            return Counter({0: 1})
        return _within(tuple(sorted(left)))

    @lru_cache(None)
    def _within(left: tuple[int, ...]) -> Counter[int]:
        found: Counter[int] = Counter()
        for i, j in itertools.product(range(len(left)), repeat=2):
            rest = list(left)
            ways = rest[i]
            rest[i] -= 1
            ways *= rest[j]
            if ways > 0:
                rest[j] -= 1
                for k, weight in pairs_within(tuple(rest)).items():
                    found[k + (i == j)] += ways * weight
        return found

    for n, heavy in [(12, 4), (13, 4), (15, 6), (20, 5), (21, 8), (16, 3)]:
        blocks = (heavy - 1,) * (n // (heavy - 1)) + ((n % (heavy - 1),) if n % (heavy - 1) else ())
        law = pairs_within(blocks)
        total = sum(law.values())
        for t in (0.3, 0.05, 0.01):
            joined = _joined(n // 2, heavy, t)
            assert sum(weight for k, weight in law.items() if k >= joined) <= t * total


def test_sufficient_is_the_least_and_more_is_enough():
    """Lemma 4, on a grid that has every branch."""
    for epsilon, delta, beta, bits in itertools.product((0.3, 1.0, 6.0), (1e-6, 0.5), (1e-3, 0.5), (1, 64)):
        options = {"epsilon": epsilon, "delta": delta, "beta": beta}
        n = PrefixPlan.of(0, bits, **options).sufficient
        assert n % 2 == 0
        assert not PrefixPlan.of(n - 1, bits, **options).enough
        for more in (*range(n, n + 12), n + 50, n + 51, 2 * n, 9 * n + 1, 100 * n):
            assert PrefixPlan.of(more, bits, **options).enough


TABLE = {  # bits: (exponential, prefix), at (1, 1e-6, 1e-3), replace-one
    8: (49, 674), 16: (71, 690), 32: (117, 706), 64: (205, 722), 128: (383, 738), 256: (737, 754), 261: (751, 754),
    262: (755, 754), 330: (943, 758), 1024: (2867, 786), 2**20: (2907297, 942),
}  # fmt: skip


@pytest.mark.parametrize("bits", TABLE)
def test_exponential_against_prefix(bits: int):
    """The table of prefix_method.md: the exponential mechanism needs fewer records up to 2^261 points."""
    terms = {"epsilon": 1.0, "delta": 1e-6, "beta": 1e-3}
    found = tuple(interior_point_n(bits, method=method, **terms) for method in ("exponential", "prefix"))
    assert found == TABLE[bits]


def test_interior_point_n():
    assert interior_point_n(64, epsilon=1.0, beta=1e-3, neighbors="add-remove") == 103
    for bits, beta in itertools.product((1, 7, 40), (0.5, 0.01)):
        n = interior_point_n(bits, epsilon=0.5, beta=beta)
        assert 2**bits * math.exp(-0.25 * ((n + 1) // 2)) <= beta < 2**bits * math.exp(-0.25 * ((n - 1) // 2))
    with pytest.raises(ValueError, match=r"delta=0\.0: must be > 0 for method='prefix'"):
        interior_point_n(64, epsilon=1.0, method="prefix")
    with pytest.raises(ValueError, match="neighbors='add-remove': must be 'replace-one' for method='prefix'"):
        interior_point_n(64, epsilon=1.0, delta=1e-6, method="prefix", neighbors="add-remove")
    with pytest.raises(ValueError, match="bits=0: must be an integer >= 1"):
        interior_point_n(0, epsilon=1.0)


# --- the accuracy guarantee


def instances(n: int, bits: int) -> dict[str, list[int]]:
    """Where an interior point is hard to hit."""
    rng = random.Random(bits)
    top, middle = 2**bits - 1, 2 ** (bits - 1)
    base = rng.getrandbits(bits) & ~(2 ** (bits // 2) - 1)
    return {
        "all equal": [rng.getrandbits(bits) | 1] * n,
        "two neighbours across the largest border": [middle - 1] * (n // 2) + [middle] * (n - n // 2),
        "two neighbours": [base | 1] * (n // 2) + [base | 2] * (n - n // 2),
        "clustered": [base + rng.getrandbits(bits // 2) for _ in range(n)],
        "few clusters": [(rng.randrange(6) << bits // 2) + rng.randrange(3) + base % 7 for _ in range(n)],
        "every scale alike": [(1 << 1 + i * (bits - 1) // n) - 1 for i in range(n)],
        "spread at the top": [top - (i * (top // 3) // n) for i in range(n)],
        "one on either side": [1, top - 1] + [base | 3] * (n - 2),
    }


@pytest.mark.parametrize("odd", [0, 1])
@pytest.mark.parametrize("bits", [8, 64, 4096])
def test_the_accuracy_guarantee(bits: int, odd: int):
    """60 runs of each instance at the least n: failures as beta allows, false alarm 1e-9."""
    beta, runs = 0.05, 60
    n = interior_point_n(bits, epsilon=2.0, delta=1e-4, beta=beta, method="prefix") + odd
    plan = PrefixPlan.of(n, bits, epsilon=2.0, delta=1e-4, beta=beta)
    for name, values in instances(n, bits).items():
        points, rng = array(values, bits), Randomness(seed=bits)
        failures = sum(not min(values) <= plan.draw(points, keys_of(rng)) <= max(values) for _ in range(runs))
        assert log_at_least(failures, runs, beta) > math.log(ALARM), name


def test_a_million_bits():
    rng = random.Random(2)
    bits = 2**20
    plan = PrefixPlan.of(300, bits, epsilon=6.0, delta=1e-3, beta=0.05)
    assert plan.enough
    low = rng.getrandbits(bits) & ~(2**5000 - 1)
    points = [low + rng.getrandbits(5000) for _ in range(300)]
    assert min(points) <= plan.draw(points, keys_of(Randomness(seed=5))) <= max(points)
