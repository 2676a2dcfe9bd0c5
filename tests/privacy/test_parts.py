"""Disjoint parts, groups and samples, by enumeration of all results on tiny inputs."""

import itertools
import math
import warnings

import mpmath
import pytest

import fastdp
from fastdp import ZCDP, AllOf, ApproxDP, BoundedRange, GaussianDP, PureDP, Renyi
from fastdp.privacy import parallel, subsampled

AR = {"neighbors": "add-remove"}

# --- laws of mechanisms on tiny inputs


def two_noisy_counts(records, first, second):
    """Truncated geometric noise on the number of records of part 0 and of part 1: the joint law."""
    counts = [sum(1 for part, _ in records if part == i) for i in (0, 1)]
    laws = [truncated_geometric(count, epsilon) for count, epsilon in zip(counts, (first, second), strict=True)]
    return {(a, b): p * q for a, p in laws[0].items() for b, q in laws[1].items()}


def truncated_geometric(count, epsilon, top=4):
    """Exactly epsilon-DP for counts that differ by 1, on 0 .. top."""
    ratio = math.exp(-epsilon)
    law = {z: ratio ** abs(z - count) * ((1 - ratio) if 0 < z < top else 1) / (1 + ratio) for z in range(top + 1)}
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    return law


def loss(law, other):
    return max(abs(math.log(law[z] / other[z])) for z in law)


def delta_at(law, other, epsilon):
    both = [(law, other), (other, law)]
    return max(math.fsum(max(0.0, p[z] - math.exp(epsilon) * q[z]) for z in p) for p, q in both)


RECORDS = [(part, value) for part in (0, 1) for value in (0, 1)]
TABLES = [list(table) for n in range(4) for table in itertools.combinations_with_replacement(RECORDS, n)]


def neighbors_of(table):
    """(relation, a neighbour, whether a record moves) of everything that is one change away."""
    for i in range(len(table)):
        rest = table[:i] + table[i + 1 :]
        yield "add-remove", rest, False
        for record in RECORDS:
            yield "replace-one", [*rest, record], record[0] != table[i][0]


@pytest.mark.parametrize(("first", "second"), [(0.5, 0.5), (1.0, 0.3)])
def test_parallel_composition_by_enumeration(first, second):
    parts = PureDP(first, **AR), PureDP(second, **AR)
    added = parallel(*parts)
    replaced = parallel(*parts, inside=[PureDP(2 * first), PureDP(2 * second)])
    worst = {"add-remove": 0.0, "replace-one": 0.0}
    for table in TABLES:
        law = two_noisy_counts(table, first, second)
        for relation, neighbor, _ in neighbors_of(table):
            worst[relation] = max(worst[relation], loss(law, two_noisy_counts(neighbor, first, second)))
    assert worst["add-remove"] == pytest.approx(added.epsilon, rel=1e-12)
    assert worst["replace-one"] == pytest.approx(first + second, rel=1e-12), "a move costs both"
    assert worst["replace-one"] <= replaced.epsilon * (1 + 1e-12)
    assert worst["replace-one"] <= added.to_replace_one().epsilon * (1 + 1e-12)
    assert worst["replace-one"] > added.epsilon * (1 + 1e-9), "the largest part's alone is not what replacement costs"


def test_what_parallel_composition_gives_of_every_kind():
    assert parallel(PureDP(0.5, **AR), PureDP(0.3, **AR)) == PureDP(0.5, **AR)
    assert parallel(ZCDP(0.5, **AR), ZCDP(0.3, **AR)) == ZCDP(0.5, **AR)
    assert parallel(BoundedRange(0.5, **AR), BoundedRange(0.3, **AR)) == BoundedRange(0.5, **AR)
    assert parallel(GaussianDP(0.5, **AR), GaussianDP(0.3, **AR)) == GaussianDP(0.5, **AR)
    assert parallel(PureDP(0.1, **AR), ZCDP(0.3, **AR)) == ZCDP(0.3, **AR)
    assert parallel(ApproxDP(0.5, 1e-6, **AR), PureDP(0.7, **AR)) == ApproxDP(0.7, 1e-6, **AR)
    assert parallel(ApproxDP(0.5, 1e-6, **AR), ApproxDP(0.4, 1e-5, **AR)) == ApproxDP(0.5, 1e-5, **AR)
    curves = Renyi.laplace(2.0, **AR), Renyi.laplace(3.0, **AR)
    assert parallel(*curves) == curves[0]
    noise = AllOf(ApproxDP(0.5, 1e-6, **AR), ZCDP(0.01, mu=0.15, **AR))
    both = parallel(noise, noise)
    assert both.implies(ApproxDP(0.5, 1e-6, **AR))
    assert both.implies(ZCDP(0.01, **AR))
    assert both.implies(GaussianDP(0.15, **AR))


def test_replacement_inside_and_between_parts():
    parts = ZCDP(0.5, **AR), ZCDP(0.3, **AR), ZCDP(0.4, **AR)
    assert parallel(*parts).to_replace_one() == ZCDP(2.0), "4 rho from add-remove guarantees alone"
    assert parallel(*parts, inside=[ZCDP(0.1)] * 3).rho == pytest.approx(0.9), "a move: the two largest"
    assert parallel(*parts, inside=[ZCDP(0.1), ZCDP(1.0), ZCDP(0.1)]) == ZCDP(1.0)
    gaussians = GaussianDP(0.3, **AR), GaussianDP(0.4, **AR)
    assert GaussianDP.of(parallel(*gaussians, inside=[GaussianDP(0.1)] * 2)).mu == pytest.approx(0.5)
    deltas = [ApproxDP(0.1, 1e-6, **AR), ApproxDP(0.2, 2e-6, **AR), ApproxDP(0.3, 3e-6, **AR)]
    moved = parallel(*deltas, inside=[ApproxDP(0.1, 1e-6)] * 3)
    assert (moved.epsilon, moved.delta) == (pytest.approx(0.5), pytest.approx(5e-6))
    ranges = BoundedRange(0.3, **AR), BoundedRange(0.4, **AR)
    assert parallel(*ranges, inside=[BoundedRange(0.1)] * 2).implies(BoundedRange(0.7 + 1e-15))
    assert parallel(ZCDP(0.5, **AR), inside=[ZCDP(0.1)]) == ZCDP(0.1), "one part: nothing moves"
    two = Renyi.laplace(2.0, **AR), Renyi.laplace(3.0, **AR)
    moved = parallel(*two, inside=[Renyi.laplace(5.0)] * 2)
    assert all(m >= a + b for m, a, b in zip(moved.to_renyi().curve, two[0].curve, two[1].curve, strict=True))


def test_what_parallel_composition_refuses():
    with pytest.raises(ValueError, match="a replacement may move a record"):
        parallel(PureDP(0.5))
    with pytest.raises(ValueError, match="must be for 'replace-one' neighbours"):
        parallel(PureDP(0.5, **AR), inside=[PureDP(0.5, **AR)])
    with pytest.raises(ValueError, match="no kind of guarantee in common"):
        parallel(ApproxDP(0.5, 1e-6, **AR), ZCDP(0.1, **AR))
    with pytest.raises(ValueError, match="must be one for each of 2 parts"):
        parallel(PureDP(0.5, **AR), PureDP(0.5, **AR), inside=[PureDP(1.0)])
    with pytest.raises(ValueError, match="at least one guarantee"):
        parallel()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_groups_by_enumeration(size):
    """Counts that differ by the whole group, with and without a delta."""
    law, far = truncated_geometric(0, 0.4), truncated_geometric(size, 0.4)
    assert loss(law, far) <= PureDP(0.4).group(size).epsilon * (1 + 1e-12)
    epsilon = 0.3
    delta = delta_at(truncated_geometric(0, 0.4), truncated_geometric(1, 0.4), epsilon)
    group = ApproxDP(epsilon, delta).group(size)
    assert delta_at(law, far, group.epsilon) <= group.delta


# --- samples


def response(bits, epsilon):
    """Whether the sum of the bits is above 1, through randomised response: epsilon-DP, for both relations."""
    told = 1 / (1 + math.exp(-epsilon))
    high = sum(bits) > 1
    return {True: told if high else 1 - told, False: 1 - told if high else told}


def leaky(bits, epsilon, delta=0.05):
    """The same, but with probability delta it tells the sum."""
    law = {("told", sum(bits)): delta}
    law |= {("noisy", z): (1 - delta) * p for z, p in response(bits, epsilon).items()}
    return law


def mixed(laws):
    whole = {}
    for weight, law in laws:
        for z, p in law.items():
            whole[z] = whole.get(z, 0.0) + weight * p
    return whole


def poisson(bits, rate, mechanism):
    kept = itertools.product([False, True], repeat=len(bits))
    return mixed(
        (
            math.prod(rate if k else 1 - rate for k in which),
            mechanism(list(itertools.compress(bits, which))),
        )
        for which in kept
    )


def fixed_size(bits, size, mechanism):
    samples = list(itertools.combinations(bits, size))
    return mixed((1 / len(samples), mechanism(sample)) for sample in samples)


INPUTS = [list(bits) for n in range(1, 5) for bits in itertools.product([0, 1], repeat=n)]


def closeness(pairs, epsilon):
    worst = 0.0
    for law, other in pairs:
        every = set(law) | set(other)
        full = [{z: side.get(z, 0.0) for z in every} for side in (law, other)]
        worst = max(worst, delta_at(*full, epsilon))
    return worst


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.8])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_poisson_samples_by_enumeration(rate, epsilon):
    laws = {tuple(bits): poisson(bits, rate, lambda kept: response(kept, epsilon)) for bits in INPUTS}
    pairs = [(law, laws[bits[:-1]]) for bits, law in laws.items() if len(bits) > 1]
    claimed = subsampled(PureDP(epsilon, **AR), rate=rate, sampling="poisson")
    assert closeness(pairs, claimed.epsilon) <= 1e-15
    laws = {tuple(bits): poisson(bits, rate, lambda kept: leaky(kept, epsilon)) for bits in INPUTS}
    pairs = [(law, laws[bits[:-1]]) for bits, law in laws.items() if len(bits) > 1]
    claimed = subsampled(ApproxDP(epsilon, 0.05, **AR), rate=rate, sampling="poisson")
    found = closeness(pairs, claimed.epsilon)
    assert found <= claimed.delta * (1 + 1e-12)
    assert claimed.delta == pytest.approx(0.05 * rate)
    assert found > 0.5 * claimed.delta, "it is not far from the truth"


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_samples_of_fixed_size_by_enumeration(size, epsilon):
    n = 4
    claimed = subsampled(ApproxDP(epsilon, 0.05), rate=size / n, sampling="fixed-size")
    laws = {
        bits: fixed_size(bits, size, lambda kept: leaky(kept, epsilon)) for bits in itertools.product([0, 1], repeat=n)
    }
    pairs = [(laws[bits], laws[(1 - bits[0], *bits[1:])]) for bits in laws]
    found = closeness(pairs, claimed.epsilon)
    assert found <= claimed.delta * (1 + 1e-12)
    assert found > 0.5 * claimed.delta


def test_a_poisson_sample_of_what_is_private_under_replacement_only_is_not():
    """The number of records of the sample, which is public under replacement, given away: refused."""
    with pytest.raises(ValueError, match="must be for 'add-remove' neighbours with sampling='poisson'"):
        subsampled(PureDP(1.0), rate=0.5, sampling="poisson")
    with pytest.raises(ValueError, match="must be for 'replace-one' neighbours with sampling='fixed-size'"):
        subsampled(PureDP(1.0, **AR), rate=0.5, sampling="fixed-size")


@pytest.mark.parametrize("epsilon", [1e-30, 1e-12, 1e-9, 1e-4, 0.3, 1.0, 20.0, 700.0, 1e5, 1e7])
@pytest.mark.parametrize("rate", [1e-12, 1e-3, 0.5, 0.999, 1.0])
def test_the_amplified_epsilon_is_rounded_up(epsilon, rate):
    with mpmath.workdps(120):
        e, q = mpmath.mpf(epsilon), mpmath.mpf(rate)
        exact = e + mpmath.log(q + (1 - q) * mpmath.exp(-e))
        found = subsampled(PureDP(epsilon), rate=rate, sampling="fixed-size").epsilon
        assert exact <= found <= exact * (1 + mpmath.mpf("3e-9" if epsilon < 1e-9 else "1e-15"))


def test_samples_of_what_states_no_epsilon():
    made = subsampled(ZCDP(0.1), rate=0.01, sampling="fixed-size", delta=1e-6)
    before = ZCDP(0.1).to_approx(1e-4).epsilon
    assert made.delta == 1e-6
    assert made.epsilon == pytest.approx(math.log1p(0.01 * math.expm1(before)), rel=1e-9)
    assert subsampled(ZCDP(50.0), rate=0.01, sampling="fixed-size", delta=0.02) == ApproxDP(0.0, 0.02)
    with pytest.raises(ValueError, match="pass delta="):
        subsampled(ZCDP(0.1), rate=0.01, sampling="fixed-size")
    several = subsampled(PureDP(1.0) & ApproxDP(0.5, 1e-6), rate=0.1, sampling="fixed-size")
    assert several.implies(PureDP(math.log1p(0.1 * math.expm1(1.0)) * (1 + 1e-12)))
    for rate in (0, -1, 1.5, math.nan):
        with pytest.raises(ValueError, match=r"^rate="):
            subsampled(PureDP(1.0), rate=rate, sampling="fixed-size")


def test_a_seeded_release_stays_marked():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        rng = fastdp.Randomness(seed=1)
    with fastdp.Budget(epsilon=1, **AR) as budget:
        fastdp.laplace(3, sensitivity=1, epsilon=0.5, rng=rng, neighbors="add-remove")
    guarantee = budget.releases[0].guarantee
    assert parallel(guarantee, PureDP(0.1, **AR)).seeded
    assert subsampled(guarantee, rate=0.5, sampling="poisson").seeded
