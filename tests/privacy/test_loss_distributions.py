"""Privacy profiles on grids and their composition: against sums over all outcomes in 60 digits, against losses rounded
up and down on fine grids, against closed forms; and what must fail when a rounding or a direction is forgotten."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

import fastdp
from fastdp import ZCDP, ApproxDP, BoundedRange, PureDP, compose
from fastdp.privacy import loss_distributions, loss_grid
from fastdp.privacy.loss_distributions import CLOSE, epsilon_bounds
from fastdp.privacy.profiles import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    RandomizedResponse,
    with_profile,
)
from tests.oracles.loss_distributions import (
    epsilon_of_rounded_down,
    epsilon_of_rounded_up,
    exact_delta,
    laplace_losses,
)

PROFILES = [
    RandomizedResponse(0.3),
    RandomizedResponse(3.0),
    Laplace(0.01),
    Laplace(1.0),
    Laplace(6.0),
    DiscreteLaplace(2.5, 1),
    DiscreteLaplace(2.5, 7),
    DiscreteLaplace(40.0, 37),
    Exponential(0.2),
    Exponential(4.0),
    Gaussian(0.05),
    Gaussian(1.0),
    Gaussian(8.0),
    DiscreteGaussian(0.6, 1),
    DiscreteGaussian(5.0, 3),
]


# --- profiles


def profile_in_digits(profile, loss):
    """The same from the definition of the pair, in 60 digits."""
    e = mpf(loss)
    if isinstance(profile, Exponential):
        eta = mpf(profile.eta)
        points = [eta * i / 400 for i in range(401)]
        return max(two_point_delta(t, eta, e) for t in points)
    if isinstance(profile, Gaussian):
        mu = mpf(profile.mu)
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
    if isinstance(profile, Laplace):
        s = mpf(profile.epsilon)
        grid = [mpf(-40), mpf(0), s, s + 40]
        crossing = (s - e) / 2  # |x - s| - |x| > e below it
        grid = sorted({*grid, min(max(crossing, mpf(-40)), s + 40)})
        return mpmath.quad(lambda x: max(mpf(0), mpmath.exp(-abs(x)) - mpmath.exp(e - abs(x - s))) / 2, grid)
    if isinstance(profile, RandomizedResponse):
        grown = mpmath.exp(mpf(profile.epsilon))
        pairs = [(grown / (1 + grown), 1 / (1 + grown)), (1 / (1 + grown), grown / (1 + grown))]
    elif isinstance(profile, DiscreteLaplace):
        q, k = mpmath.exp(-1 / mpf(profile.scale)), profile.sensitivity
        some = range(-int(60 * profile.scale) - k, int(60 * profile.scale) + 2 * k)
        law = lambda z: (1 - q) / (1 + q) * q ** abs(z)  # noqa: E731
        pairs = [(law(z), law(z - k)) for z in some]
    else:
        s, k = mpf(profile.sigma), profile.sensitivity
        some = range(-int(30 * profile.sigma) - 5, int(30 * profile.sigma) + 6 + k)
        total = mpmath.fsum(mpmath.exp(-(mpf(z) ** 2) / (2 * s * s)) for z in some)
        law = lambda z: mpmath.exp(-(mpf(z) ** 2) / (2 * s * s)) / total  # noqa: E731
        pairs = [(law(z), law(z - k)) for z in some]
    return mpmath.fsum(max(mpf(0), p - mpmath.exp(e) * q) for p, q in pairs)


def two_point_delta(t, eta, e):
    """The pair with log-likelihood ratios t and t - eta."""
    w = (mpmath.exp(-t) - mpmath.exp(-eta)) / (1 - mpmath.exp(-eta))
    return sum(max(mpf(0), q * mpmath.exp(loss) - mpmath.exp(e) * q) for q, loss in ((w, t), (1 - w, t - eta)))


@pytest.mark.parametrize("profile", PROFILES, ids=repr)
def test_profiles_are_what_their_pairs_have(profile):
    end = profile.end(1e-12)
    losses = np.linspace(-end, end, 14 if isinstance(profile, (DiscreteLaplace, Exponential)) else 30)[:-1]
    delta, error = profile.values(losses)
    with mpmath.workdps(40):
        for loss, found, doubt in zip(losses, delta, error, strict=True):
            truth = profile_in_digits(profile, float(loss))
            slack = mpf("1e-4") * truth if isinstance(profile, Exponential) else mpf("1e-25")  # of 400 points
            assert found + doubt >= truth - mpf("1e-25")
            assert found - doubt <= truth + slack
            assert doubt <= 1e-8 * found + 1e-11


def test_no_pair_of_bounded_range_is_above_the_profile():
    draw = np.random.default_rng(3)
    for _ in range(300):
        eta, size = draw.choice([0.1, 1.0, 5.0]), draw.integers(2, 6)
        q = draw.dirichlet(np.full(size, draw.choice([0.2, 1.0])))
        ratio = draw.uniform(0, eta, size)
        ratio -= math.log(np.sum(q * np.exp(ratio)))
        losses = np.linspace(-eta, eta, 21)
        delta, _ = Exponential(eta).values(losses)
        for p, log_ratio in ((q * np.exp(ratio), ratio), (q, -ratio)):
            found = [np.sum(p * np.maximum(0.0, -np.expm1(loss - log_ratio))) for loss in losses]
            assert np.all(found <= delta + 1e-12)


def test_several_coordinates_cost_no_more_than_one_that_takes_the_whole_shift():
    """loss_distributions.md, theorem 6, by sums over all outcomes in two dimensions."""
    q = math.exp(-1 / 3.0)
    z = np.arange(-150, 160)
    law = (1 - q) / (1 + q) * q ** np.abs(z)
    for first, second in [(1, 1), (2, 3), (1, 6)]:
        moved = [(1 - q) / (1 + q) * q ** np.abs(z - shift) for shift in (first, second)]
        before, after = np.outer(law, law), np.outer(moved[0], moved[1])
        for loss in np.linspace(-1.5, 2.4, 27):
            together = np.sum(np.maximum(0.0, before - math.exp(loss) * after))
            assert together <= DiscreteLaplace(3.0, first + second).values(np.array([loss]))[0][0] + 1e-12


def test_a_profile_of_several_is_each_of_them():
    for kind, parameters in [(Laplace, [0.1, 0.5, 2.0]), (RandomizedResponse, [0.1, 2.0]), (Exponential, [0.3, 1.0])]:
        profiles = [kind(parameter) for parameter in parameters]
        losses = np.linspace(-3, 3, 97)
        delta, error = kind.stacked(profiles).values(losses)
        for row, profile in enumerate(profiles):
            alone, doubt = profile.values(losses)
            assert np.array_equal(delta[row], alone)
            assert np.array_equal(error[row], doubt)


# --- the grid


@pytest.mark.parametrize("profile", PROFILES, ids=repr)
@pytest.mark.parametrize("cells", [3.0, 20.0, 333.0])
def test_the_masses_on_a_grid_dominate_the_profile_and_hardly_more(profile, cells):
    step = loss_distributions._short(profile.end(1e-12) / cells)
    rows = loss_grid.rows_on_grid([(profile, 1)], step, 1e-12)[0]
    losses = rows.indices * step
    for epsilon in np.linspace(-losses[-1], losses[-1], 61):
        weights = -np.expm1(np.minimum(epsilon - losses, 0.0))
        joined = float(rows.masses[0] @ weights) + rows.infinite[0]
        delta, error = profile.values(np.array([epsilon]))
        assert joined >= delta[0] - error[0] - 1e-14
        ends = np.floor(epsilon / step) * step, np.floor(epsilon / step) * step + step
        at_ends = [float(profile.values(np.array([end]))[0][0]) for end in ends]
        assert joined <= max(at_ends) + 1e-9 + rows.excess.sum()  # between two dots


def test_the_transform_s_error_is_within_its_bound():
    """Against convolutions in 50 digits."""
    draw = np.random.default_rng(8)
    for size, count in [(64, 3), (256, 17), (1024, 200)]:
        width = 9
        masses = draw.dirichlet(np.ones(width))[None, :]
        rows = loss_grid.Rows(masses, 0 * masses, -4, np.zeros(1), np.zeros(1), np.array([float(count)]))
        tilted = loss_grid.Tilted.of(rows, 1e-9, 0.01)
        found, bound = loss_grid.convolved([tilted], -size // 2, size)
        with mpmath.workdps(50):
            exact = [mpf(0)] * size
            exact[0] = mpf(1)
            base = [mpf(float(x)) for x in tilted.masses[0]]
            power, times = base_on_circle(base, -4, size), count
            while times:
                if times & 1:
                    exact = convolve(exact, power)
                times >>= 1
                if times:
                    power = convolve(power, power)
            exact = np.array([float(x) for x in exact])
        truth = exact[np.arange(-size // 2, size // 2) % size]
        error = math.sqrt(np.sum((found - truth) ** 2))
        assert error <= bound
        assert bound < 1e-9


def base_on_circle(base, first, size):
    circle = [mpf(0)] * size
    for i, mass in enumerate(base):
        circle[(first + i) % size] += mass
    return circle


def convolve(a, b):
    """On a circle, by integers: exact but for 160 bits."""
    size, bits = len(a), 160
    packed = [
        sum(int(mpmath.floor(mpmath.ldexp(x, bits))) << (2 * bits + 20) * i for i, x in enumerate(v)) for v in (a, b)
    ]
    product, mask = packed[0] * packed[1], (1 << (2 * bits + 20)) - 1
    linear = [(product >> (2 * bits + 20) * i) & mask for i in range(2 * size)]
    return [mpmath.ldexp(mpf(linear[i] + linear[i + size]), -2 * bits) for i in range(size)]


# --- epsilon: above the truth, and close to it

RESPONSES = [
    [(0.05, 30)],
    [(0.1, 30)],
    [(0.3, 60)],
    [(1.0, 2)],
    [(1.0, 25)],
    [(3.0, 6)],
    [(0.01, 100), (0.25, 8)],
    [(0.0703, 40), (0.7, 3)],
    [(0.1, 10), (0.3, 8), (0.8, 3)],
]


@pytest.mark.parametrize("kinds", RESPONSES, ids=str)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-20, 1e-60])
def test_randomised_responses_against_the_sum_over_all_outcomes(kinds, delta):
    bounds = epsilon_bounds([(RandomizedResponse(e), k) for e, k in kinds], delta=delta)
    assert exact_delta(kinds, bounds.at_most) <= mpf(delta)
    assert exact_delta(kinds, bounds.at_least) >= mpf(delta)
    top = sum(e * k for e, k in kinds)
    closer = bounds.at_most * (1 - 1e-3)
    assert exact_delta(kinds, closer) > delta or bounds.at_most < 1e-3 * top
    assert bounds.at_least <= bounds.at_most <= bounds.at_least * (1 + 4 * CLOSE) or bounds.at_least < 1e-3 * top


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 100), (0.5, 10), (1.0, 60), (3.0, 20)])
@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-12, 1e-30])
def test_laplace_noise_against_losses_rounded_up_and_down(epsilon, count, delta):
    bounds = epsilon_bounds([(Laplace(epsilon), count)], delta=delta)
    fine = 2.0**-11
    losses, masses = laplace_losses(epsilon, fine)
    above = epsilon_of_rounded_up(losses, masses, count, delta, epsilon * fine)
    below = epsilon_of_rounded_down(losses - (losses[1] - losses[0]), masses, count, delta, epsilon * fine)
    assert below <= bounds.at_most <= above * (1 + 2e-4)
    assert bounds.at_least <= above


@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-9, 1e-15, 1e-40, 1e-100])
@pytest.mark.parametrize(("mu", "count"), [(0.01, 1000), (0.3, 10), (1.0, 1), (2.0, 9)])
def test_gaussian_noise_against_its_own_curve(mu, count, delta):
    bounds = epsilon_bounds([(Gaussian(mu), count)], delta=delta)
    with mpmath.workdps(150):
        whole = mpf(mu) * mpmath.sqrt(count)

        def exact(e):
            e = mpf(e)
            return mpmath.ncdf(whole / 2 - e / whole) - mpmath.exp(e) * mpmath.ncdf(-whole / 2 - e / whole)

        assert exact(bounds.at_most) <= delta
        assert exact(bounds.at_most * (1 - 1e-6)) > delta
        assert exact(bounds.at_least) >= delta


@pytest.mark.parametrize("delta", [1e-4, 1e-8, 1e-15, 1e-40])
def test_gaussian_noise_on_the_grid_as_one_of_many(delta):
    """Beside so little of something else that the curve of the whole is known."""
    parts = [(Gaussian(1.0), 1), (Laplace(1e-7), 1)]
    mixed, alone = epsilon_bounds(parts, delta=delta), epsilon_bounds(parts[:1], delta=delta)
    assert alone.at_most * (1 - 1e-9) <= mixed.at_most <= (alone.at_most + 1e-7) * 1.001
    assert mixed.at_least <= alone.at_most + 1e-7
    assert mixed.at_least > alone.at_most * 0.99


def test_discrete_noise_of_one_step_is_a_randomised_response():
    for count, delta in itertools.product([1, 7, 100], [1e-5, 1e-12]):
        coin = epsilon_bounds([(RandomizedResponse(0.5), count)], delta=delta)
        noise = epsilon_bounds([(DiscreteLaplace(2.0, 1), count)], delta=delta)
        assert noise.at_most == pytest.approx(coin.at_most, rel=1e-9)


def test_fine_discrete_noise_is_nearly_continuous():
    for noise, limit in [(DiscreteLaplace(1e5, 30_000), Laplace(0.3)), (DiscreteGaussian(400.0, 120), Gaussian(0.3))]:
        found = epsilon_bounds([(noise, 50)], delta=1e-7)
        near = epsilon_bounds([(limit, 50)], delta=1e-7)
        assert found.at_most == pytest.approx(near.at_most, rel=1e-3)


@pytest.mark.parametrize("delta", [1e-4, 1e-6, 1e-12])
@pytest.mark.parametrize(
    "parts",
    [
        [(Laplace(0.1), 1000)],
        [(Laplace(0.01), 10_000)],
        [(Laplace(0.3), 3), (Gaussian(0.4), 2)],
        [(RandomizedResponse(0.2), 40), (Laplace(0.15), 30), (Gaussian(0.5), 1)],
        [(DiscreteLaplace(4.0, 3), 10), (DiscreteGaussian(3.0), 12)],
        [(Laplace(1.0), 1), (RandomizedResponse(1e-3), 1000)],
        [(Laplace(5.0), 1), (Laplace(0.01), 3000)],
    ],
    ids=str,
)
def test_the_bounds_are_close(parts, delta):
    bounds = epsilon_bounds(parts, delta=delta)
    assert bounds.at_least <= bounds.at_most <= bounds.at_least * 1.0025


def test_epsilon_falls_with_delta_and_grows_with_what_is_released():
    for parts in ([(Laplace(0.1), 50)], [(Gaussian(0.2), 3), (RandomizedResponse(0.1), 9)]):
        found = [epsilon_bounds(parts, delta=delta) for delta in (1e-40, 1e-15, 1e-9, 1e-6, 1e-3, 0.05)]
        assert all(a.at_most >= b.at_least for a, b in itertools.pairwise(found))
        assert all(a.at_most > b.at_most for a, b in itertools.pairwise(found))
        for more in (Laplace(0.02), Gaussian(0.05), Exponential(0.1)):
            assert epsilon_bounds([*parts, (more, 1)], delta=1e-6).at_most > found[3].at_least
    grown = [epsilon_bounds([(Laplace(0.1), k)], delta=1e-6) for k in (1, 2, 5, 20, 100, 1000)]
    assert all(a.at_most < b.at_least for a, b in itertools.pairwise(grown))


def test_what_fails_is_added():
    for leak in (1e-9, 5e-7, 9.9e-7):
        parts = [(RandomizedResponse(0.1), 100)]
        bounds = epsilon_bounds(parts, delta=1e-6, leak=leak)
        clean = epsilon_bounds(parts, delta=1e-6 - leak)
        assert bounds.at_most == pytest.approx(clean.at_most, rel=1e-6)
        assert bounds.at_least <= bounds.at_most
    assert epsilon_bounds(parts, delta=1e-6, leak=1e-6) is None


def test_nothing_costs_nothing():
    assert epsilon_bounds([(RandomizedResponse(0.0), 5)], delta=1e-6).at_most == 0
    assert epsilon_bounds([(Laplace(1e-9), 5)], delta=1e-6).at_most == 0
    assert epsilon_bounds([(Laplace(1e-200), 5)], delta=1e-6).at_most == 0


# --- what compose makes of it


def test_compose_takes_what_is_known_of_each_release():
    known = with_profile(PureDP(0.1), Laplace(0.1))
    assert known == PureDP(0.1)
    apart, worst = compose((known, 100), delta=1e-6), compose((PureDP(0.1), 100), delta=1e-6)
    assert apart.epsilon < 0.99 * worst.epsilon
    both = compose((known, 50), (PureDP(0.1), 50), delta=1e-6)
    assert apart.epsilon < both.epsilon < worst.epsilon
    assert both.epsilon == compose((PureDP(0.1), 50), (known, 50), delta=1e-6).epsilon
    assert both.theorem == "privacy loss distribution"
    assert both.at_least <= both.epsilon <= both.at_least * 1.002
    assert compose((ZCDP(0.005, mu=0.1), 100), delta=1e-6).epsilon == pytest.approx(4.8865541, rel=1e-7)
    assert compose((ZCDP(0.005, mu=0.1), 50), (ZCDP(0.005), 50), delta=1e-6).theorem == "zCDP, tight conversion"


def test_compose_knows_when_it_is_far_from_the_truth():
    assert compose((BoundedRange(0.1), 100), delta=1e-6).at_least > 2.24  # of choices that depend on results
    assert compose((ZCDP(0.1), 3), delta=1e-6).at_least == 0
    assert compose((ApproxDP(0.1, 1e-9), 30), delta=1e-6).at_least > 0
    assert compose(PureDP(1.0), PureDP(2.0)).at_least == 0


def test_rows_of_a_budget_keep_what_is_known():
    with fastdp.Budget(epsilon=100.0) as budget:
        for _ in range(30):
            fastdp.laplace([1.5, 2.5], sensitivity=1.0, epsilon=0.1)
        fastdp.laplace([1, 2], sensitivity=7, epsilon=0.1)
    assert all(row.guarantee == PureDP(0.1) for row in budget.releases)
    profile = budget.releases[-1].guarantee.profile
    assert isinstance(profile, DiscreteLaplace)
    assert profile.sensitivity == 7
    assert profile.bound <= 0.1 * (1 + 1e-15)
    known = compose(*(row.guarantee for row in budget.releases), delta=1e-6)
    worst = compose((PureDP(0.1), 31), delta=1e-6)
    continuous = compose((with_profile(PureDP(0.1), Laplace(0.1)), 31), delta=1e-6)
    assert continuous.at_least <= known.epsilon < 0.999 * worst.epsilon
    assert known.epsilon == pytest.approx(continuous.epsilon, rel=2e-3)


def test_what_is_known_does_not_follow_into_groups():
    known = with_profile(PureDP(0.1, neighbors="add-remove"), Laplace(0.1))
    assert known.to_replace_one().profile is None
    assert known.group(3).profile is None
    with pytest.raises(ValueError, match=r"^profile=.*: must be a profile, such as Laplace\(0\.1\)"):
        with_profile(PureDP(0.1), 0.1)


# --- mutants: what must be noticed


def refuted(kinds=((0.0703, 40), (0.7, 3)), delta=1e-6):
    bounds = epsilon_bounds([(RandomizedResponse(e), k) for e, k in kinds], delta=delta)
    return exact_delta(kinds, bounds.at_most) > delta


def test_losses_rounded_the_wrong_way_are_noticed(monkeypatch):
    assert not refuted()
    joined = loss_grid.connect_dots

    def down(delta, error, step):
        masses, excess, infinite = joined(delta, error, step)
        moved = np.zeros_like(masses)
        moved[..., :-1] = masses[..., 1:]
        return moved, excess, infinite

    monkeypatch.setattr(loss_grid, "connect_dots", down)
    assert refuted()


def test_truncated_mass_that_is_dropped_is_noticed(monkeypatch):
    joined = loss_grid.connect_dots

    def cut(delta, error, step):
        masses, excess, infinite = joined(delta, error, step)
        masses = masses.copy()
        masses[..., -masses.shape[-1] // 4 :] = 0.0
        return masses, excess, infinite

    monkeypatch.setattr(loss_grid, "connect_dots", cut)
    assert refuted(((0.7003, 3), (0.31, 4)), 1e-4)


def test_a_window_that_is_too_small_says_so(monkeypatch):
    """Sums beyond the window are in the bound, however little of them the window holds."""
    truth = epsilon_bounds([(Laplace(0.3), 30)], delta=1e-6).at_most
    monkeypatch.setattr(loss_grid, "SPREAD", 1.0)
    monkeypatch.setattr(loss_grid, "OUTSIDE", 2.0)
    assert epsilon_bounds([(Laplace(0.3), 30)], delta=1e-6).at_most >= truth * (1 - 1e-3)


def test_bounds_hold_whatever_the_tilt_and_the_step(monkeypatch):
    kinds = [(0.0703, 40), (0.7, 3)]
    parts = [(RandomizedResponse(e), k) for e, k in kinds]
    chosen = loss_distributions._tilt
    for factor, close in itertools.product([0.3, 0.7, 1.5], [1e-1, 1e-5]):
        monkeypatch.setattr(loss_distributions, "CLOSE", close)
        monkeypatch.setattr(loss_distributions, "_tilt", lambda *a, f=factor: (chosen(*a)[0] * f, *chosen(*a)[1:]))
        bounds = epsilon_bounds(parts, delta=1e-6)
        assert exact_delta(kinds, bounds.at_most) <= 1e-6
        assert exact_delta(kinds, bounds.at_least) >= 1e-6
