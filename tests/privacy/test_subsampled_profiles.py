"""Profiles of mechanisms on samples, and of the removal lemma: against mechanisms on all samples of small collections,
against the pairs in 60 digits, and what must fail where a direction is forgotten."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from fastdp import ApproxDP, PureDP, compose, removal
from fastdp.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    FixedSizeSubsampled,
    Gaussian,
    Laplace,
    LossDistribution,
    PoissonSubsampled,
    RandomizedResponse,
    RemovalLemma,
    loss_distributions,
    loss_grid,
    subsampled,
    with_profile,
)
from fastdp.privacy.loss_distributions import epsilon_bounds
from tests.privacy.test_loss_distributions import profile_in_digits

BASES = [
    RandomizedResponse(0.3),
    RandomizedResponse(4.0),
    Laplace(1.0),
    DiscreteLaplace(2.5, 7),
    Exponential(1.0),
    Gaussian(0.05),
    Gaussian(1.0),
    DiscreteGaussian(5.0, 3),
]
RATES = [1e-6, 0.01, 0.3, 0.999, 1.0]
LOSSES = [-20.0, -3.0, -0.7, -0.011, -1e-6, 0.0, 1e-9, 1e-4, 0.009, 0.1, 0.33, 0.9, 2.5, 6.0]


def base_in_digits(base, g):
    if g <= 0:
        return 1 - g
    if isinstance(base, Exponential):
        eta, loss = mpf(base.eta), mpmath.log(g)
        if abs(loss) >= eta:
            return max(mpf(0), 1 - g)
        return (1 - mpmath.exp((loss - eta) / 2)) ** 2 / (1 - mpmath.exp(-eta))
    return profile_in_digits(base, mpmath.log(g))


def in_digits(profile, loss):
    """Of the mixture of the base's pair, by the definition: (Q, R), R = (1 - rate) Q + rate P."""
    q, g = mpf(profile.rate), mpmath.exp(mpf(loss))
    if isinstance(profile, FixedSizeSubsampled):
        return q * base_in_digits(profile.base, 1 + (g - 1) / q) if g >= 1 else 1 - g + g * in_digits(profile, -loss)
    if profile.forward:
        return 1 - g if g <= 1 - q else q * base_in_digits(profile.base, 1 + (g - 1) / q)
    left = 1 - (1 - q) * g
    return left * base_in_digits(profile.base, q * g / left) if left > 0 else mpf(0)


@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("rate", RATES)
def test_values_are_within_their_bounds_of_the_formula_in_60_digits(base, rate):
    removing = PoissonSubsampled(base, rate)
    with mpmath.workdps(60):
        for profile in (removing, removing.reversed(), FixedSizeSubsampled(base, rate)):
            delta, error = profile.values(np.array(LOSSES))
            for loss, value, doubt in zip(LOSSES, delta, error, strict=True):
                exact = in_digits(profile, loss)
                assert abs(mpf(float(value)) - exact) <= mpf(float(doubt)) + mpf(10) ** -200, (profile, loss)
            assert np.all(error <= 1e-9 * delta + 1e-14)


@pytest.mark.parametrize("base", BASES, ids=repr)
@pytest.mark.parametrize("rate", RATES)
def test_no_loss_is_above_the_bound_and_ends_leave_little(base, rate):
    removing = PoissonSubsampled(base, rate)
    with mpmath.workdps(60):
        for profile in (removing, removing.reversed(), FixedSizeSubsampled(base, rate)):
            end = float(profile.end(1e-9))
            assert in_digits(profile, end) <= (mpf(10) ** -60 if profile.bound < math.inf else 1e-9)
            if 0 < profile.bound < math.inf and not isinstance(base, (Exponential, DiscreteGaussian)):
                assert in_digits(profile, end * (1 - 1e-6)) > 0


# --- mechanisms on samples, by all samples

COUNT, SCALE, PLACES = 4, 1.5, np.arange(-40, 60)


def on_counts(count):
    """Noise on the number of ones."""
    law = np.exp(-np.abs(PLACES - count) / SCALE)
    return law / law.sum()


def on_samples(records, weight_of):
    total = sum(weight_of(sample) for sample in itertools.product((0, 1), repeat=len(records)))
    return sum(
        weight_of(sample) / total * on_counts(sum(r for r, s in zip(records, sample, strict=True) if s))
        for sample in itertools.product((0, 1), repeat=len(records))
    )


def hockey_stick(p, q, loss):
    return float(np.maximum(p - math.exp(loss) * q, 0).sum())


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_poisson_samples_of_small_collections_have_the_profile_and_attain_it(rate):
    def weight(sample):
        return rate ** sum(sample) * (1 - rate) ** (len(sample) - sum(sample))

    profile = PoissonSubsampled(DiscreteLaplace(SCALE, 1), rate)
    for others in itertools.product((0, 1), repeat=3):
        without, with_it = on_samples(others, weight), on_samples((*others, 1), weight)
        for loss in np.linspace(-0.7, 0.7, 29):
            removing = profile.values(np.array([loss]))[0][0]
            adding = profile.reversed().values(np.array([loss]))[0][0]
            found = hockey_stick(with_it, without, loss), hockey_stick(without, with_it, loss)
            assert found[0] <= removing + 1e-9
            assert found[1] <= adding + 1e-9
            if not any(others):
                assert found == pytest.approx((removing, adding), abs=1e-9)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_samples_of_fixed_size_of_small_collections_are_below_the_profile(size):
    def weight(sample):
        return float(sum(sample) == size)

    profile = FixedSizeSubsampled(DiscreteLaplace(SCALE, 1), size / COUNT)
    for others in itertools.product((0, 1), repeat=COUNT - 1):
        laws = [on_samples((*others, last), weight) for last in (0, 1)]
        for loss in np.linspace(-0.7, 0.7, 29):
            bound = profile.values(np.array([loss]))[0][0]
            assert max(hockey_stick(*laws, loss), hockey_stick(*laws[::-1], loss)) <= bound + 1e-9


@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_poisson_samples_under_replacement_are_below_it_too(rate):
    def weight(sample):
        return rate ** sum(sample) * (1 - rate) ** (len(sample) - sum(sample))

    profile = FixedSizeSubsampled(DiscreteLaplace(SCALE, 1), rate)
    for others in itertools.product((0, 1), repeat=3):
        laws = [on_samples((*others, last), weight) for last in (0, 1)]
        for loss in np.linspace(-0.7, 0.7, 29):
            bound = profile.values(np.array([loss]))[0][0]
            assert max(hockey_stick(*laws, loss), hockey_stick(*laws[::-1], loss)) <= bound + 1e-9


# --- composition


def exact_delta(pair, count, epsilon):
    """Of `count` releases with two outcomes of this (P, Q), each direction, by the binomial sum."""
    (a, b), (c, d) = [[mpf(x) for x in outcome] for outcome in pair]
    found = []
    for turned in (False, True):
        first, second = ((b, a), (d, c)) if turned else ((a, b), (c, d))
        terms = (
            mpmath.binomial(count, k)
            * max(
                mpf(0),
                first[0] ** k * second[0] ** (count - k)
                - mpmath.exp(mpf(epsilon)) * first[1] ** k * second[1] ** (count - k),
            )
            for k in range(count + 1)
        )
        found.append(mpmath.fsum(terms))
    return found


def sampled_response(epsilon, rate):
    """(R, Q) of both outcomes, R = (1 - rate) Q + rate P."""
    p, q = mpf(rate), 1 / (1 + mpmath.exp(mpf(epsilon)))
    return [((1 - p) * b + p * a, b) for a, b in ((1 - q, q), (q, 1 - q))]


PLANS = [(1.0, 0.01, 400), (0.3, 0.2, 60), (3.0, 0.05, 30), (1.0, 0.9, 12)]


@pytest.mark.parametrize(("epsilon", "rate", "count"), PLANS)
@pytest.mark.parametrize("delta", [1e-4, 1e-8, 1e-15, 1e-40])
def test_sampled_responses_against_the_binomial_sum(epsilon, rate, count, delta):
    with mpmath.workdps(60):
        pair = sampled_response(epsilon, rate)
        bounds = epsilon_bounds([(PoissonSubsampled(RandomizedResponse(epsilon), rate), count)], delta=delta)
        assert max(exact_delta(pair, count, bounds.at_most)) <= mpf(delta)
        assert bounds.at_least == 0 or max(exact_delta(pair, count, bounds.at_least)) >= mpf(delta) * (1 - 1e-12)
        assert bounds.at_most <= bounds.at_least * 1.004 or bounds.at_most < 1e-3 or delta < 1e-15
        upper = epsilon_bounds([(FixedSizeSubsampled(RandomizedResponse(epsilon), rate), count)], delta=delta)
        assert upper.at_least == 0
        assert upper.at_most >= bounds.at_least


def test_one_direction_of_the_pair_is_not_enough():
    epsilon, rate, count, delta = PLANS[0][0], PLANS[0][1], PLANS[0][2], 1e-8
    removing = PoissonSubsampled(RandomizedResponse(epsilon), rate)
    with mpmath.workdps(60):
        pair = sampled_response(epsilon, rate)
        for profile, theirs in ((removing, 0), (removing.reversed(), 1)):
            alone = loss_distributions._one_direction([(profile, count)], (delta, delta))
            assert exact_delta(pair, count, alone.at_most)[theirs] <= delta
            assert alone.at_most <= alone.at_least * 1.01
            if theirs:
                assert exact_delta(pair, count, alone.at_most)[0] > delta


def test_the_direction_that_is_forgotten_is_noticed(monkeypatch):
    epsilon, rate, count = PLANS[0]
    both = loss_distributions._one_direction

    def adding_alone(parts, goals):
        return both([(one.reversed() if one.forward else one, k) for one, k in parts], goals)

    monkeypatch.setattr(loss_distributions, "_one_direction", adding_alone)
    bounds = epsilon_bounds([(PoissonSubsampled(RandomizedResponse(epsilon), rate), count)], delta=1e-8)
    with mpmath.workdps(60):
        assert max(exact_delta(sampled_response(epsilon, rate), count, bounds.at_most)) > 1e-8


def test_losses_below_the_grid_are_in_the_lower_bound():
    """The losses of adding a record to Gaussian noise have no least: what the grid's end moves is stated."""
    adding = PoissonSubsampled(Gaussian(1.0), 0.1).reversed()
    rows = loss_grid.rows_on_grid([(adding, 3)], 2.0**-10, 1e-9)[0]
    assert rows.infinite[0] == 0
    assert 0 < rows.cut[0] < 1e-6


def test_sampled_gaussian_noise_of_many_steps():
    """A thousand steps at 1 % and sigma 1, beside losses of the two mixtures rounded up and down."""
    bounds = epsilon_bounds([(PoissonSubsampled(Gaussian(1.0), 0.01), 1000)], delta=1e-6)
    assert bounds.at_least <= bounds.at_most <= 1.002 * bounds.at_least
    assert bounds.at_most == pytest.approx(2.1235, rel=2e-3)
    mixed = epsilon_bounds([(PoissonSubsampled(Gaussian(1.0), 0.01), 1000), (Laplace(0.2), 10)], delta=1e-6)
    assert bounds.at_most < mixed.at_least <= mixed.at_most <= 1.002 * mixed.at_least


def test_samples_of_different_rates_and_kinds_together():
    parts = [(PoissonSubsampled(Laplace(0.5), 0.01 * i), 20) for i in range(1, 9)]
    parts += [(PoissonSubsampled(RandomizedResponse(0.4), 0.05), 50), (Gaussian(0.2), 3)]
    bounds = epsilon_bounds(parts, delta=1e-6)
    assert bounds.at_least <= bounds.at_most <= 1.004 * bounds.at_least
    more = epsilon_bounds([*parts, (PoissonSubsampled(Laplace(1.0), 0.3), 3)], delta=1e-6)
    assert more.at_least > bounds.at_most


# --- what subsampled hands on


@pytest.mark.parametrize(("sampling", "neighbors"), [("poisson", "add-remove"), ("fixed-size", "replace-one")])
def test_subsampled_hands_its_profile_on(sampling, neighbors):
    kind = PoissonSubsampled if sampling == "poisson" else FixedSizeSubsampled
    plain = PureDP(1.0, neighbors=neighbors)
    for whole, base in ((plain, RandomizedResponse(1.0)), (with_profile(plain, Laplace(1.0)), Laplace(1.0))):
        one = subsampled(whole, rate=0.01, sampling=sampling)
        assert one.profile == kind(base, 0.01)
        assert one == PureDP(one.epsilon, neighbors=neighbors)
        together = compose((one, 1000), delta=1e-6)
        assert together.epsilon < 0.8 * compose((PureDP(one.epsilon, neighbors=neighbors), 1000), delta=1e-6).epsilon
        assert (together.at_least > 0) is (sampling == "poisson")
    again = subsampled(one, rate=0.5, sampling=sampling)
    assert again.profile == kind(kind(Laplace(1.0), 0.01), 0.5)
    assert compose((again, 100), delta=1e-6).epsilon < compose((one, 100), delta=1e-6).epsilon


@pytest.mark.parametrize(
    ("guarantee", "profile"),
    [
        (PureDP(1.0), PoissonSubsampled(Laplace(1.0), 0.5)),
        (PureDP(1.0, neighbors="add-remove"), PoissonSubsampled(Laplace(1.0), 0.5).reversed()),
    ],
)
def test_a_profile_of_two_directions_is_one_of_removing(guarantee, profile):
    with pytest.raises(ValueError, match=r"must be that of removing a record, for add-remove neighbours"):
        with_profile(guarantee, profile)


@pytest.mark.parametrize("rate", [0, -1, 1.5, math.nan, "x"])
def test_bad_rates_are_refused(rate):
    for kind in (PoissonSubsampled, FixedSizeSubsampled):
        with pytest.raises(ValueError, match=r"^rate="):
            kind(Laplace(1.0), rate)
    with pytest.raises(ValueError, match=r"^base=.*must be a profile"):
        kind(1.0, 0.5)
    with pytest.raises(ValueError, match=r"^base=.*must be the same in both directions"):
        FixedSizeSubsampled(PoissonSubsampled(Laplace(1.0), 0.5), 0.5)


# --- the removal lemma


@pytest.mark.parametrize("eta", [1e-9, 0.01, 0.08, 0.7, 5.0])
@pytest.mark.parametrize("one_signed", [False, True])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_lemma_s_curve_is_a_profile(eta, one_signed, neighbors):
    lemma, profile = removal(eta, one_signed=one_signed, neighbors=neighbors), RemovalLemma(eta, one_signed, neighbors)
    losses = np.array([0.0, 0.3 * eta, 1.7 * eta, 2.5 * eta, 10 * math.expm1(eta)])
    delta, error = profile.values(losses)
    curve = np.array([lemma.delta(float(loss)) for loss in losses])
    assert np.all(delta - error <= curve)
    outside = losses >= profile._inner_end
    assert delta[outside] == pytest.approx(curve[outside], rel=1e-9)
    assert np.all((delta + error)[outside] >= curve[outside] * (1 - 1e-12))
    below, _ = profile.values(-losses)
    mirrored = np.minimum(1.0, -np.expm1(-losses) + np.exp(-losses) * delta)
    assert below == pytest.approx(mirrored, rel=1e-9), "the profile is the same in both orders"
    assert not profile.attained


def test_several_runs_of_the_lemma_compose():
    one = removal(0.0794, one_signed=True)
    assert compose(one, delta=1e-6).epsilon == pytest.approx(one.to_approx(1e-6).epsilon, rel=1e-6)
    assert compose(one, delta=1e-6).epsilon >= one.to_approx(1e-6).epsilon * (1 - 1e-12)
    three = compose((one, 3), delta=1e-6)
    assert three.theorem == "privacy loss distribution"
    assert three.at_least == 0
    assert three.epsilon < 0.6 * compose((one.to_approx(1e-6 / 3), 3), delta=1e-6).epsilon
    assert three.epsilon > one.to_approx(1e-6).epsilon
    with_noise = compose((one, 3), with_profile(PureDP(0.3), Laplace(0.3)), delta=1e-6)
    assert three.epsilon < with_noise.epsilon < three.epsilon + 0.3


@pytest.mark.parametrize("one_signed", [False, True])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_the_lemma_s_profile_is_above_a_run_that_nearly_attains_it(one_signed, neighbors):
    """Rounds of one candidate that deletes the record: by the recursion over both runs."""
    eta, p = 0.5, 0.01
    profile, k = RemovalLemma(eta, one_signed, neighbors), math.expm1(eta)
    f = 1 + k * p
    times = np.arange(4000)
    hit_p, hit_q = p * (1 - p) ** times, (p * math.exp(eta) / f) * ((1 - p) / f) ** times
    for loss in np.linspace(-3, 3, 41):
        for first, second in ((hit_p, hit_q), (hit_q, hit_p)):
            found = np.maximum(first - math.exp(loss) * second, 0).sum()
            assert found <= profile.values(np.array([loss]))[0][0] + 1e-9


def test_a_point_is_no_smaller_guarantee_than_the_curve():
    one = removal(0.0794, one_signed=True)
    assert not one.implies(ApproxDP(0.5, 1e-6))


# --- what fails with some probability, on samples


@pytest.mark.parametrize(
    ("epsilon", "leak", "rate", "count"), [(1.0, 0.05, 0.3, 3), (2.0, 0.2, 0.7, 2), (0.5, 0.01, 0.1, 4)]
)
def test_leaks_on_samples_against_all_outcomes(epsilon, leak, rate, count):
    """The worst pair that is (epsilon, leak)-DP, on samples, in both directions; and no profile costs more."""
    right, wrong = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    base = [
        (leak, 0.0),
        ((1 - leak) * right, (1 - leak) * wrong),
        ((1 - leak) * wrong, (1 - leak) * right),
        (0.0, leak),
    ]
    pair = [((1 - rate) * q + rate * p, q) for p, q in base]
    sampled = subsampled(ApproxDP(epsilon, leak, neighbors="add-remove"), rate=rate, sampling="poisson")
    plan = LossDistribution((sampled, count))
    for at in np.linspace(0, count * 0.9 * epsilon, 12):
        for first, second in ((0, 1), (1, 0)):
            exact = math.fsum(
                max(0.0, math.prod(one[first] for one in each) - math.exp(at) * math.prod(one[second] for one in each))
                for each in itertools.product(pair, repeat=count)
            )
            assert exact <= plan.delta(at) * (1 + 1e-12)
    stated = ApproxDP(sampled.epsilon, sampled.delta, neighbors="add-remove")
    delta = count * sampled.delta + 1e-3
    assert compose((sampled, count), delta=delta).epsilon < compose((stated, count), delta=delta).epsilon


def test_many_samples_of_what_leaks_add_up_by_their_profile():
    sampled = subsampled(ApproxDP(1.0, 1e-9, neighbors="add-remove"), rate=0.01, sampling="poisson")
    stated = ApproxDP(sampled.epsilon, sampled.delta, neighbors="add-remove")
    known = compose((sampled, 500), delta=1e-6)
    assert known.epsilon < 0.65 * compose((stated, 500), delta=1e-6).epsilon
    clean = compose((subsampled(PureDP(1.0, neighbors="add-remove"), rate=0.01, sampling="poisson"), 500), delta=1e-6)
    assert clean.epsilon < known.epsilon < 1.01 * clean.epsilon
