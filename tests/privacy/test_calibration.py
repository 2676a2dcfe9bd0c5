"""Calibration of the Gaussian, against closed forms at high precision and the exact privacy curve of the noise."""

import math

import mpmath
import numpy as np
import pytest

import fastdp
from fastdp.mechanisms import noise
from fastdp.privacy import calibration
from fastdp.randomness.noise_draws import FewDraws

GRID = [(e, d) for e in (1e-3, 0.1, 1.0, 4.0, 20.0, 300.0) for d in (0.3, 1e-2, 1e-6, 1e-12, 1e-60)]


def discrete_delta(sigma: float, epsilon: float, shift: tuple[int, ...]) -> float:
    """The least delta of discrete Gaussian noise on vectors that differ by `shift`: the sum of (P - e^eps Q)_+."""
    window = int(12 * sigma + 3 * max(map(abs, shift))) + 3
    z = np.arange(-window, window + 1, dtype=float)
    weights = np.exp(-(z**2) / (2 * sigma**2))
    pmf = weights / math.fsum(weights)
    loss, mass = np.zeros(1), np.ones(1)
    for v in shift:  # privacy losses add over coordinates
        one = -(z**2 - (z - v) ** 2) / (2 * sigma**2)
        loss = (loss[:, None] + one[None, :]).ravel()
        mass = (mass[:, None] * pmf[None, :]).ravel()
        keep = mass > 1e-30
        loss, mass = loss[keep], mass[keep]
    return math.fsum(np.maximum(mass * -np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0))


def continuous_delta(r: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workprec(400):
        r, epsilon = mpmath.mpf(r), mpmath.mpf(epsilon)
        tail = lambda x: mpmath.erfc(x / mpmath.sqrt(2)) / 2  # noqa: E731
        return tail(epsilon * r - 0.5 / r) - mpmath.exp(epsilon) * tail(epsilon * r + 0.5 / r)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_gaussian_ratio_is_valid_and_close(epsilon, delta):
    r = calibration.gaussian_ratio(epsilon, delta)
    assert continuous_delta(r, epsilon) <= delta
    assert continuous_delta(r * (1 - 1e-8), epsilon) > delta


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_zcdp_rho_is_valid_and_near_the_best_order(epsilon, delta):
    rho = calibration.zcdp_rho(epsilon, delta)

    def log_delta(a, rho):
        return (a - 1) * (a * rho - epsilon) + a * mpmath.log(1 - 1 / a) - mpmath.log(a - 1)

    def least(rho):
        """The best order for rho, by a grid and then by thirds."""
        low, high = -20.0, 40.0
        for _ in range(4):
            grid = np.linspace(low, high, 200)
            best = min(grid, key=lambda x: log_delta(1 + mpmath.exp(x), rho))
            low, high = best - grid[1] + grid[0], best + grid[1] - grid[0]
        return min(log_delta(1 + mpmath.exp(x), rho) for x in np.linspace(low, high, 200))

    with mpmath.workprec(150):
        assert least(mpmath.mpf(rho)) <= mpmath.log(delta)
        assert least(mpmath.mpf(rho) * (1 + 1e-9)) > mpmath.log(delta)
        simple = (math.sqrt(-math.log(delta) + epsilon) - math.sqrt(-math.log(delta))) ** 2
        assert rho >= simple * (1 - 1e-12)


def test_the_values_that_the_documentation_quotes():
    assert calibration.zcdp_rho(1.0, 1e-6) == pytest.approx(0.02436, abs=5e-6)
    assert 1 / math.sqrt(2 * calibration.zcdp_rho(1.0, 1e-6)) == pytest.approx(4.531, abs=5e-4)
    assert calibration.gaussian_ratio(1.0, 1e-6) == pytest.approx(4.225, abs=5e-4)
    fine = calibration.gaussian_sigma(2.0**20, epsilon=1.0, delta=1e-6, dimension=10**6) / 2.0**20
    assert fine == pytest.approx(calibration.gaussian_ratio(1.0, 1e-6), rel=1e-5)


SHIFTS = [(1,), (2,), (5,), (1, 1), (3, 4), (1, -2), (1, 1, 1)]


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.05), (1.0, 1e-2), (1.0, 1e-6), (3.0, 1e-4), (8.0, 1e-3)])
def test_sigma_keeps_delta_for_the_noise_that_is_drawn(shift, epsilon, delta):
    """The exact privacy curve of the discrete Gaussian, summed outcome by outcome, stays below the claim."""
    norm = math.sqrt(sum(v * v for v in shift))
    sigma = calibration.gaussian_sigma(norm, epsilon=epsilon, delta=delta, dimension=len(shift))
    assert discrete_delta(sigma, epsilon, shift) <= delta * (1 + 1e-9)
    if epsilon <= 3:  # beyond, on so coarse a grid, the calibration is generous
        assert discrete_delta(sigma / 2, epsilon, shift) > delta, "half the noise must break the claim"


def test_sigma_is_never_above_the_tight_conversion():
    for epsilon, delta in GRID:
        for sensitivity in (1.0, 3.0, 1e4):
            options = {"epsilon": epsilon, "delta": delta, "dimension": 1000}
            sigma = calibration.gaussian_sigma(sensitivity, **options, adaptive=True)
            assert calibration.gaussian_sigma(sensitivity, **options) <= sigma
            tight = calibration.zcdp_sigma(sensitivity, rho=calibration.zcdp_rho(epsilon, delta))
            assert sigma <= tight
            assert sigma >= sensitivity * calibration.gaussian_ratio(epsilon, delta) * (1 - 1e-9) or sigma == tight


def test_zcdp_sigma_is_rounded_up():
    for sensitivity in (1.0, math.sqrt(2), 1e9 / 7):
        for rho in (0.5, 0.1, 1e-9, 3.0):
            sigma = calibration.zcdp_sigma(sensitivity, rho=rho)
            with mpmath.workprec(200):
                best = mpmath.mpf(sensitivity) / mpmath.sqrt(2 * mpmath.mpf(rho))
                assert best <= sigma <= best * (1 + mpmath.mpf(2) ** -51)


def test_the_smoothing_bound_of_theorem_3():
    """P_v / Q_v lies inside [((1 - theta)/(1 + theta))^d, (1 + theta)^d]: one coordinate, at high precision."""
    with mpmath.workprec(70):
        sigma, s = mpmath.mpf(2), mpmath.mpf("0.8")
        tau = mpmath.sqrt(sigma**2 - s**2)
        theta = mpmath.mpf("2.001") * mpmath.exp(-2 * mpmath.pi**2 * s**2)
        discrete = mpmath.nsum(lambda k: mpmath.exp(-(k**2) / (2 * sigma**2)), [-mpmath.inf, mpmath.inf])

        def smoothed(x):
            def density(y):
                total = mpmath.fsum(mpmath.exp(-((k - y) ** 2) / (2 * s**2)) for k in range(x - 12, x + 13))
                return mpmath.npdf(y, 0, tau) * mpmath.exp(-((x - y) ** 2) / (2 * s**2)) / total

            return mpmath.quad(density, [x - 8 + 2 * i for i in range(9)])

        for x in (0, 1, 4, 9):
            ratio = mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * sigma**2)) / discrete / smoothed(x)
            assert (1 - theta) / (1 + theta) <= ratio <= 1 + theta


# --- sigma, derived a second time


MP = mpmath.mp.clone()
MP.prec = 150


def curve(r, epsilon):
    """The least delta of continuous Gaussian noise of r times the sensitivity."""
    tail = lambda x: MP.erfc(x / MP.sqrt(2)) / 2  # noqa: E731
    return tail(epsilon * r - 1 / (2 * r)) - MP.exp(epsilon) * tail(epsilon * r + 1 / (2 * r))


def least_ratio(epsilon, delta):
    low, high = MP.mpf("1e-3"), MP.mpf(1)
    while curve(high, epsilon) > delta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if curve(middle, epsilon) > delta else (low, middle)
    return high


def through_theorem_2(epsilon, delta):
    """The least sigma / sensitivity of all orders, by concentrated DP and the tight conversion."""

    def rho(log):
        a = 1 + MP.exp(log)
        return ((MP.log(delta) + log - a * MP.log(1 - 1 / a)) / (a - 1) + epsilon) / a

    low, high = MP.mpf(-20), MP.mpf(60)
    for _ in range(120):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        low, high = (left, high) if rho(left) < rho(right) else (low, right)
    return 1 / MP.sqrt(2 * rho(low))


def derived_sigma(sensitivity, epsilon, delta, dimension):
    """calibration.md, theorems 2 and 3, with the share of epsilon and delta that calibration.py sets aside."""
    epsilon, delta = MP.mpf(epsilon), MP.mpf(delta)
    loss = min(epsilon, 1) / 2**20
    square = MP.log(MP.mpf("2.001") * MP.mpf("3.1") * dimension / loss) / (2 * MP.pi**2)
    tau = sensitivity * least_ratio(epsilon - 2 * loss, delta * (1 - MP.mpf(2) ** -19))
    return min(MP.sqrt(tau**2 + square), sensitivity * through_theorem_2(epsilon, delta))


CASES = [(0.1, 1e-9), (1.0, 1e-6), (0.5, 1e-2), (3.0, 1e-12)]


@pytest.mark.parametrize("dimension", [1, 7, 10**6])
@pytest.mark.parametrize("sensitivity", [1.0, 5.5, 2.0**20])
@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_sigma_is_what_the_theorems_give(sensitivity, epsilon, delta, dimension):
    """To nine digits: not less, which would break the claim, and not more."""
    derived = derived_sigma(sensitivity, epsilon, delta, dimension)
    options = {"epsilon": epsilon, "delta": delta, "dimension": dimension}
    sigma = calibration.gaussian_sigma(sensitivity, **options, adaptive=True)
    assert derived * (1 - MP.mpf("1e-12")) <= sigma <= derived * (1 + MP.mpf("1e-9"))


@pytest.mark.parametrize("dimension", [1, 10**6])
@pytest.mark.parametrize("sensitivity", [1.0, 40.0, 2.0**30])
@pytest.mark.parametrize(("epsilon", "delta"), CASES)
def test_theorem_3_holds_with_what_is_set_aside(sensitivity, epsilon, delta, dimension):
    """A split of sigma^2 into tau^2 and s^2 proves (epsilon, delta) by theorem 3: 3.1 d theta <= loss, and the
    continuous curve at tau has room for the loss. Unless theorem 2, which needs no split, gave the smaller sigma."""
    options = {"epsilon": epsilon, "delta": delta, "dimension": dimension}
    sigma = MP.mpf(calibration.gaussian_sigma(sensitivity, **options, adaptive=True))
    if sigma >= sensitivity * through_theorem_2(epsilon, delta) * (1 - MP.mpf("1e-12")):
        assert sensitivity == 1
        return
    loss = MP.mpf(min(epsilon, 1.0)) / 2**20
    square = MP.log(MP.mpf("2.001") * MP.mpf("3.1") * dimension / loss) / (2 * MP.pi**2) + MP.mpf("1e-15")
    theta = MP.mpf("2.001") * MP.exp(-2 * MP.pi**2 * square)
    assert 3.1 * dimension * theta <= loss
    assert theta <= 0.1
    tau = MP.sqrt(sigma**2 - square)
    claimed_epsilon, claimed_delta = epsilon - 3.1 * dimension * theta, delta * MP.exp(-dimension * theta)
    assert curve(tau / sensitivity, claimed_epsilon) <= claimed_delta


@pytest.mark.parametrize("n", [1, 1000, 10**6])
def test_releases_are_drawn_with_the_sigma_of_their_dimension(n, monkeypatch):
    """Through the public function: every entry counts as a dimension, and sigma reaches the kernel as it is."""
    plans = []
    add, few = noise.add_noise, FewDraws.release
    monkeypatch.setattr(noise, "add_noise", lambda plan, *rest: (plans.append(plan), add(plan, *rest)))
    monkeypatch.setattr(FewDraws, "release", lambda made, *rest: (plans.append(made.plan), few(made, *rest)))
    for values in (np.zeros(n, np.int64), np.zeros(n)):
        for options in ({"epsilon": 0.7, "delta": 1e-7}, {"rho": 0.3}):
            resolution = None if values.dtype == np.int64 else 0.5
            fastdp.gaussian(values, sensitivity=125, resolution=resolution, **options)
            moved = MP.mpf(125) if resolution is None else 2 * MP.mpf(125) + MP.sqrt(n)
            wanted = moved / MP.sqrt(MP.mpf("0.6")) if "rho" in options else derived_sigma(moved, 0.7, 1e-7, n)
            assert wanted * (1 - MP.mpf("1e-12")) <= plans[-1].sigma <= wanted * (1 + MP.mpf("1e-9"))
            assert plans[-1].law[9] == pytest.approx(0.5 / plans[-1].sigma ** 2, rel=1e-15)
