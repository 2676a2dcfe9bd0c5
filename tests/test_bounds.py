"""The bounds: formulas against high precision, mechanisms that stay inside them as often as guaranteed, inverses."""

import decimal
import inspect
import itertools
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from mpmath import mp, mpf

import fastdp
from fastdp import bounds
from fastdp.mechanisms import noise
from fastdp.mechanisms.above_threshold import split
from fastdp.privacy.calibration import gaussian_sigma, zcdp_sigma
from tests import oracles
from tests.laws import ALARM, log_at_least, log_at_most


@pytest.fixture(autouse=True)
def _sixty_digits():
    with mp.workdps(60):
        yield


def assert_just_above(found, exactly):
    """`found` is the exact number rounded up, by a few steps."""
    assert exactly <= found <= exactly * (1 + mpf(2) ** -48)


# --- the formulas

SCALES = [(1, 1.0), (1, 0.1), (3.5, 0.01), (1, 30.0), (2.0**-10, 1.0), (1e6, 1e-3), (1e300, 1e-300)]
BETAS = [(0.05, 1), (1e-9, 1), (0.9999, 1), (0.05, 1000), (0.3, 10**9), (5e-324, 10**30)]


def laplace_tail(sensitivity, epsilon, beta, count):
    s = mpf(sensitivity) / mpf(epsilon)
    return s * mp.log(2 * count / (mpf(beta) * (1 + mp.exp(-1 / s))))


@pytest.mark.parametrize(("sensitivity", "epsilon"), SCALES[:-1])
@pytest.mark.parametrize(("beta", "count"), BETAS)
def test_laplace_is_its_formula(sensitivity, epsilon, beta, count):
    found = bounds.laplace(sensitivity=sensitivity, epsilon=epsilon, beta=beta, count=count)
    assert_just_above(found, laplace_tail(sensitivity, epsilon, beta, count))


@pytest.mark.parametrize(("beta", "count"), BETAS)
def test_gaussian_is_its_formula(beta, count):
    for sensitivity, rho in ((1, 0.5), (3.5, 1e-6), (1e6, 20.0)):
        found = bounds.gaussian(sensitivity=sensitivity, rho=rho, beta=beta, count=count)
        sigma = zcdp_sigma(float(sensitivity), rho=rho)
        assert_just_above(found, mpf(sigma) * mp.sqrt(2 * mp.log(2 * count / mpf(beta))))
    found = bounds.gaussian(sensitivity=2, epsilon=0.7, delta=1e-6, beta=beta, count=count)
    sigma = gaussian_sigma(2.0, epsilon=0.7, delta=1e-6, dimension=count)
    assert_just_above(found, mpf(sigma) * mp.sqrt(2 * mp.log(2 * count / mpf(beta))))


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize(("beta", "candidates"), BETAS)
def test_exponential_mechanism_is_its_formula(beta, candidates, monotonic):
    for sensitivity, epsilon in SCALES[:-1]:
        options = {"sensitivity": sensitivity, "epsilon": epsilon, "beta": beta, "monotonic": monotonic}
        found = bounds.exponential_mechanism(candidates, **options)
        reach = mpf(sensitivity) / mpf(epsilon) * (1 if monotonic else 2)
        assert_just_above(found, reach * mp.log(candidates / mpf(beta)))


@pytest.mark.parametrize(("beta", "queries"), BETAS)
def test_above_threshold_is_its_formula(beta, queries):
    for sensitivity, epsilon in SCALES[:-1]:
        found = bounds.above_threshold(queries, sensitivity=sensitivity, epsilon=epsilon, beta=beta)
        b1, b2 = split(Fraction(sensitivity), epsilon)
        exactly = laplace_tail(b1, 1, beta, 2) + laplace_tail(b2, 1, beta, 2 * queries)
        assert_just_above(found, exactly)


def test_scales_beyond_float64_give_infinity():
    options = {"sensitivity": 1e300, "epsilon": 1e-300}
    assert bounds.laplace(**options) == math.inf
    assert bounds.above_threshold(5, **options) == math.inf
    assert bounds.exponential_mechanism(5, **options) == math.inf


# --- the theorems behind them, exactly


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 3.3, 100.0])
@pytest.mark.parametrize(("beta", "count"), [(0.05, 1), (0.9, 1), (1e-6, 1), (0.05, 1000)])
def test_laplace_noise_has_that_tail_and_the_bound_is_the_least(scale, beta, count):
    bound = bounds.laplace(sensitivity=scale, epsilon=1, beta=beta, count=count)
    share = Fraction(beta) / count
    assert 2 * oracles.noise.laplace_tail(math.floor(bound) + 1, scale)[1] <= share  # Pr[|Z| > bound]
    if bound >= 1:
        assert 2 * oracles.noise.laplace_tail(math.floor(bound), scale)[0] > share * (1 - Fraction(1, 10**12))


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 1.7, 6.0])
def test_gaussian_noise_has_that_tail(sigma):
    for t in range(1, math.ceil(9 * sigma)):
        outside = 2 * sum(oracles.noise.gaussian_pmf(z, sigma)[1] for z in range(t, math.ceil(14 * sigma) + 2))
        bound = oracles.numbers.exp_interval(-(Fraction(t) ** 2) / (2 * Fraction(sigma) ** 2), 96)[0]
        assert outside < 2 * bound


def softmax(scores, eta):
    """The exponential mechanism's law, at 60 digits."""
    weights = [mp.exp(mpf(eta) * (score - max(scores))) for score in scores]
    return [w / mp.fsum(weights) for w in weights]


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("beta", [0.05, 0.5, 1e-6])
def test_the_exponential_mechanism_keeps_within_the_bound_for_all_scores(beta, monotonic):
    rng = np.random.default_rng(4)
    for candidates in (1, 2, 10, 300):
        options = {"sensitivity": 2, "epsilon": 0.5, "beta": beta, "monotonic": monotonic}
        bound = bounds.exponential_mechanism(candidates, **options)
        eta = mpf(1) / (4 if monotonic else 8)
        worst = [0.0] + [-math.ceil(bound)] * (candidates - 1)  # all others just where they count as failures
        for scores in (
            worst,
            [0.0] + [-bound - 1e-9] * (candidates - 1),
            rng.integers(-50, 50, candidates).tolist(),
            (rng.normal(size=candidates) * bound).tolist(),
            [0.0] * candidates,
        ):
            law, best = softmax(scores, eta), max(scores)
            failing = mp.fsum(p for p, score in zip(law, scores, strict=True) if score <= best - bound)
            assert failing <= beta
        if candidates >= 10:
            law = softmax([0.0] + [-bound] * (candidates - 1), eta)
            assert 1 - law[0] > 0.6 * beta, "the theorem is nearly attained"


# --- the mechanisms


def assert_rate(exceeded, runs, beta, least):
    """Exceedances of `runs` independent runs fit a probability of at most beta, and of at least `least` beta."""
    assert log_at_least(exceeded, runs, beta) >= math.log(ALARM), f"{exceeded} of {runs}, at most {beta}"
    assert log_at_most(exceeded, runs, least * beta) >= math.log(ALARM), f"{exceeded} of {runs}: {beta} is loose"


@pytest.mark.parametrize(("epsilon", "beta", "count"), [(0.01, 0.05, 1), (0.1, 0.3, 1), (0.01, 0.05, 50)])
def test_laplace_stays_inside(epsilon, beta, count):
    """At scales of 10 and 100 the bound is nearly the quantile; the union over 50 costs little."""
    bound = bounds.laplace(sensitivity=1, epsilon=epsilon, beta=beta, count=count)
    runs, rng, options = 4000, fastdp.Randomness(seed=1), {"sensitivity": 1, "epsilon": epsilon}
    values = np.zeros(count, np.int64)
    exceeded = sum(np.abs(fastdp.laplace(values, rng=rng, **options)).max() > bound for _ in range(runs))
    assert_rate(int(exceeded), runs, beta, 0.9)


@pytest.mark.parametrize(
    ("price", "beta", "count"),
    [
        ({"rho": 0.001}, 0.3, 1),
        ({"rho": 0.001}, 0.3, 50),
        ({"epsilon": 0.5, "delta": 1e-6}, 0.3, 10),
    ],
)
def test_gaussian_stays_inside(price, beta, count):
    """The bound is that of the moment generating function: the quantile itself is up to 1.3 times smaller."""
    bound = bounds.gaussian(sensitivity=1, beta=beta, count=count, **price)
    runs, rng, values = 3000, fastdp.Randomness(seed=2), np.zeros(count, np.int64)
    exceeded = sum(np.abs(fastdp.gaussian(values, sensitivity=1, rng=rng, **price)).max() > bound for _ in range(runs))
    assert_rate(int(exceeded), runs, beta, 0.1)


@pytest.mark.parametrize(("queries", "epsilon"), [(1, 0.2), (100, 0.2), (1000, 1.0)])
def test_above_threshold_stays_inside(queries, epsilon):
    """Both kinds of error at their worst: all values just too low to be answered True, one too high for False."""
    beta, runs, rng = 0.3, 1500, fastdp.Randomness(seed=3)
    margin = bounds.above_threshold(queries, sensitivity=1, epsilon=epsilon, beta=beta)
    low, high = math.ceil(-margin) - 1, math.floor(margin) + 1
    assert low < -margin
    assert high > margin

    def wrong(values):
        watch = fastdp.AboveThreshold(0, sensitivity=1, epsilon=epsilon, rng=rng)
        first = watch.first_above(values)
        return bool((values[:first] >= margin).any()) or (first is not None and values[first] < -margin)

    assert_rate(sum(wrong(np.full(queries, low)) for _ in range(runs)), runs, beta, 0.05)
    assert_rate(sum(wrong(np.array([high])) for _ in range(runs)), runs, beta, 0.0)
    mixed = np.array(([-(10**6)] * (queries - 1)) + [high])
    assert_rate(sum(wrong(mixed) for _ in range(runs)), runs, beta, 0.0)


def test_floats_cost_a_thousandth_and_two_units_of_the_grid():
    for sensitivity, epsilon, beta, n in itertools.product((1e-3, 1.0, 5e6), (0.01, 1.0, 9.0), (0.4, 1e-9), (1, 1000)):
        common = {"sensitivity": sensitivity, "beta": beta}
        grid, plan = noise._laplace_for_floats(sensitivity, epsilon, None, n)
        entry = grid * (0.5 + bounds.laplace(sensitivity=plan.scale, epsilon=1, beta=beta, count=n))
        assert entry <= 1.001 * bounds.laplace(epsilon=epsilon, count=n, **common) + 2 * grid
        rho = epsilon**2 / 2
        grid, gauss = noise._gaussian_for_floats(sensitivity, (rho, None), None, n)
        entry = grid * (0.5 + bounds.gaussian(sensitivity=gauss.sigma, rho=0.5, beta=beta, count=n))
        assert entry <= 1.001 * bounds.gaussian(rho=rho, count=n, **common) + 2 * grid
        watch = fastdp.AboveThreshold(0.0, sensitivity=sensitivity, epsilon=epsilon)
        cells = Fraction(watch._plan.scale) / split(Fraction(1), epsilon)[1]
        margin = watch.resolution * (1 + bounds.above_threshold(n, sensitivity=cells, epsilon=epsilon, beta=beta))
        assert margin <= 1.001 * bounds.above_threshold(n, epsilon=epsilon, **common) + 2 * watch.resolution


# --- inverses: (bound at a parameter, its inverse at an error)

INVERSES = {
    "laplace": (
        lambda epsilon, **o: bounds.laplace(epsilon=epsilon, sensitivity=3, **o),
        lambda error, **o: bounds.laplace_epsilon(error=error, sensitivity=3, **o),
    ),
    "laplace of many": (
        lambda epsilon, **o: bounds.laplace(epsilon=epsilon, sensitivity=0.5, count=777, **o),
        lambda error, **o: bounds.laplace_epsilon(error=error, sensitivity=0.5, count=777, **o),
    ),
    "gaussian": (
        lambda rho, **o: bounds.gaussian(rho=rho, sensitivity=3, count=20, **o),
        lambda error, **o: bounds.gaussian_rho(error=error, sensitivity=3, count=20, **o),
    ),
    "exponential mechanism": (
        lambda epsilon, **o: bounds.exponential_mechanism(500, epsilon=epsilon, sensitivity=3, **o),
        lambda error, **o: bounds.exponential_mechanism_epsilon(500, error=error, sensitivity=3, **o),
    ),
    "exponential mechanism, monotonic": (
        lambda epsilon, **o: bounds.exponential_mechanism(9, epsilon=epsilon, sensitivity=1, monotonic=True, **o),
        lambda error, **o: bounds.exponential_mechanism_epsilon(9, error=error, sensitivity=1, monotonic=True, **o),
    ),
    "permute and flip": (
        lambda epsilon, **o: bounds.permute_and_flip(500, epsilon=epsilon, sensitivity=3, **o),
        lambda error, **o: bounds.permute_and_flip_epsilon(500, error=error, sensitivity=3, **o),
    ),
    "top k": (
        lambda epsilon, **o: bounds.top_k(500, 7, epsilon=epsilon, sensitivity=3, **o),
        lambda error, **o: bounds.top_k_epsilon(500, 7, error=error, sensitivity=3, **o),
    ),
    "above threshold": (
        lambda epsilon, **o: bounds.above_threshold(1000, epsilon=epsilon, sensitivity=3, **o),
        lambda error, **o: bounds.above_threshold_epsilon(1000, error=error, sensitivity=3, **o),
    ),
}


@pytest.mark.parametrize("name", INVERSES)
@pytest.mark.parametrize("beta", [0.05, 1e-9])
def test_inverses_are_inverses(name, beta):
    bound, inverse = INVERSES[name]
    for parameter in (1e-7, 0.013, 1.0, 2.0, 40.0):
        error = bound(parameter, beta=beta)
        found = inverse(error, beta=beta)
        assert found == pytest.approx(parameter, rel=1e-9)
        assert bound(found, beta=beta) <= error
        assert bound(found * (1 - 1e-9), beta=beta) > error
    for error in (1e-3, 0.5, 10.0, 1e6):
        found = inverse(error, beta=beta)
        assert bound(found, beta=beta) <= error < bound(found * (1 - 1e-9), beta=beta)


@pytest.mark.parametrize("name", INVERSES)
def test_an_error_that_no_parameter_reaches_says_so(name):
    with pytest.raises(ValueError, match=r"^error=1e-300: is out of reach$"):
        INVERSES[name][1](1e-300)


# --- monotone in everything


def assert_falls(values):
    assert all(a > b for a, b in itertools.pairwise(values))


def test_more_of_a_good_thing_is_never_worse():
    grow = [1e-3, 0.04, 0.9, 1.0, 1.5, 20.0]
    betas = [1e-12, 1e-3, 0.05, 0.5, 0.99]
    counts = [10**6, 100, 2, 1]
    plain = {"sensitivity": 1, "beta": 0.05}
    assert_falls([bounds.laplace(epsilon=e, **plain) for e in grow])
    assert_falls([bounds.gaussian(rho=r, **plain) for r in grow])
    assert_falls([bounds.gaussian(epsilon=e, delta=1e-6, **plain) for e in grow])
    assert_falls([bounds.gaussian(epsilon=1, delta=d, **plain) for d in (1e-12, 1e-6, 1e-3)])
    assert_falls([bounds.exponential_mechanism(10, epsilon=e, **plain) for e in grow])
    assert_falls([bounds.above_threshold(10, epsilon=e, **plain) for e in grow])
    sizes = grow[::-1]
    assert_falls([bounds.laplace(sensitivity=s, epsilon=1) for s in sizes])
    assert_falls([bounds.gaussian(sensitivity=s, rho=1) for s in sizes])
    assert_falls([bounds.exponential_mechanism(10, sensitivity=s, epsilon=1) for s in sizes])
    assert_falls([bounds.above_threshold(10, sensitivity=s, epsilon=1) for s in sizes])
    assert_falls([bounds.laplace(sensitivity=1, epsilon=1, beta=b) for b in betas])
    assert_falls([bounds.gaussian(sensitivity=1, rho=1, beta=b) for b in betas])
    assert_falls([bounds.exponential_mechanism(10, sensitivity=1, epsilon=1, beta=b) for b in betas])
    assert_falls([bounds.above_threshold(10, sensitivity=1, epsilon=1, beta=b) for b in betas])
    assert_falls([bounds.laplace(sensitivity=1, epsilon=1, count=c) for c in counts])
    assert_falls([bounds.gaussian(sensitivity=1, rho=1, count=c) for c in counts])
    assert_falls([bounds.exponential_mechanism(c, sensitivity=1, epsilon=1) for c in counts])
    assert_falls([bounds.above_threshold(c, sensitivity=1, epsilon=1) for c in counts])
    for c in counts:
        kinds = [bounds.exponential_mechanism(c, sensitivity=1, epsilon=1, monotonic=m) for m in (False, True)]
        assert kinds[0] == pytest.approx(2 * kinds[1], rel=1e-15)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 50.0])
def test_gaussian_epsilon_is_the_inverse_at_its_delta(epsilon):
    options = {"sensitivity": 2, "delta": 1e-6, "count": 30}
    error = bounds.gaussian(epsilon=epsilon, **options)
    found = bounds.gaussian_epsilon(error=error, **options)
    assert found == pytest.approx(epsilon, rel=1e-6)
    assert bounds.gaussian(epsilon=found, **options) <= error
    with pytest.raises(ValueError, match=r"^error=1e-09: is out of reach"):
        bounds.gaussian_epsilon(error=1e-9, **options)


# --- bad input

CALLS = {
    "laplace": (bounds.laplace, (), {"sensitivity": 1, "epsilon": 1.0}),
    "laplace_epsilon": (bounds.laplace_epsilon, (), {"sensitivity": 1, "error": 1.0}),
    "gaussian": (bounds.gaussian, (), {"sensitivity": 1, "rho": 0.5}),
    "gaussian, two prices": (bounds.gaussian, (), {"sensitivity": 1, "epsilon": 1.0, "delta": 1e-6}),
    "gaussian_rho": (bounds.gaussian_rho, (), {"sensitivity": 1, "error": 1.0}),
    "gaussian_epsilon": (bounds.gaussian_epsilon, (), {"sensitivity": 1, "error": 1.0, "delta": 1e-6}),
    "exponential_mechanism": (bounds.exponential_mechanism, (5,), {"sensitivity": 1, "epsilon": 1.0}),
    "exponential_mechanism_epsilon": (bounds.exponential_mechanism_epsilon, (5,), {"sensitivity": 1, "error": 1.0}),
    "above_threshold": (bounds.above_threshold, (5,), {"sensitivity": 1, "epsilon": 1.0}),
    "above_threshold_epsilon": (bounds.above_threshold_epsilon, (5,), {"sensitivity": 1, "error": 1.0}),
}


@pytest.mark.parametrize("name", CALLS)
def test_parameters_are_checked(name):
    function, arguments, options = CALLS[name]
    for parameter in options:
        for value in (0, -1.0, math.nan, math.inf, "1", None, True, [1.0]):
            if value is None and parameter in ("rho", "epsilon", "delta") and function is bounds.gaussian:
                continue
            with pytest.raises(ValueError, match=rf"^{parameter}=.*: must be "):
                function(*arguments, **options | {parameter: value})
    for beta in (0, 1, 1.5, -0.1, math.nan, "1", None):
        with pytest.raises(ValueError, match=r"^beta=.*: must be "):
            function(*arguments, **options, beta=beta)
    for count in (0, -3, 1.5, 2.0, "2", None, True, math.inf):
        if arguments:
            with pytest.raises(ValueError, match=r"^(candidates|queries)=.*: must be an integer >= 1$"):
                function(count, **options)
        else:
            with pytest.raises(ValueError, match=r"^count=.*: must be an integer >= 1$"):
                function(**options, count=count)


def test_the_gaussian_takes_one_price():
    for price in ({}, {"epsilon": 1.0}, {"delta": 1e-6}, {"rho": 0.5, "epsilon": 1.0}, {"rho": 0.5, "delta": 1e-6}):
        with pytest.raises(ValueError, match=r"give either rho, or epsilon and delta$"):
            bounds.gaussian(sensitivity=1, **price)
    for epsilon in (701, 1e5, 1e300):
        with pytest.raises(ValueError, match=r"^epsilon=.*: must be at most 700$"):
            bounds.gaussian(sensitivity=1, epsilon=epsilon, delta=1e-6)
    with pytest.raises(ValueError, match=r"^delta=1: must be between 0 and 1, both excluded$"):
        bounds.gaussian(sensitivity=1, epsilon=1.0, delta=1)


def test_every_bound_has_a_theorem_in_its_docstring_and_an_inverse_beside_it():
    names = ("laplace", "gaussian", "exponential_mechanism", "above_threshold")
    for name in names:
        assert "Theorem " in getattr(bounds, name).__doc__
        assert any(hasattr(bounds, f"{name}_{parameter}") for parameter in ("epsilon", "rho"))


# --- docs/sample-sizes.md, whose Python tests/house/test_docs.py runs as well


def test_the_table_of_sample_sizes_is_what_its_page_computes():
    page = (Path(__file__).parents[1] / "docs" / "sample-sizes.md").read_text()
    namespace = {}
    exec(re.search(r"```python\n(.*?)```", page, re.DOTALL).group(1), namespace)
    rows = re.findall(r"^\| \W*(\w+)\W*, ([\d,]+) quer(?:y|ies) \|(.*)\|$", page, re.MULTILINE)
    assert len(rows) == 10
    for name, k, cells in rows:
        error = {"Laplace": "laplace", "Gaussian": "gaussian", "AboveThreshold": "above_threshold"}[name]
        printed = [int(cell.replace(",", "")) for cell in cells.split("|")]
        assert namespace["records"](namespace[error], int(k.replace(",", ""))) == printed


def test_that_many_records_do():
    """Ten fractions within 5 % at epsilon 1: 1,070 records by Laplace, 928 by Gaussian noise; and half do not."""
    counts, beta, runs, rng = np.arange(10) * 50, 0.05, 1000, fastdp.Randomness(seed=6)
    releases = {
        1070: lambda: fastdp.laplace(counts, sensitivity=10, epsilon=1.0, rng=rng),
        928: lambda: fastdp.gaussian(counts, sensitivity=math.sqrt(10), epsilon=1.0, delta=1e-6, rng=rng),
    }
    for n, release in releases.items():
        errors = np.array([np.abs(release() - counts).max() for _ in range(runs)])
        assert log_at_least(int((errors / n > 0.05).sum()), runs, beta) >= math.log(ALARM)
        assert log_at_least(int((errors / (n / 2) > 0.05).sum()), runs, beta) < math.log(ALARM)


# --- every mechanism has its bound


def mechanisms():
    """Every public function and class that takes a budget, under the name of its bound."""
    for name in fastdp.__all__:
        thing = getattr(fastdp, name)
        if not callable(thing) or (inspect.isclass(thing) and issubclass(thing, Exception)):
            continue
        if "budget" in inspect.signature(thing).parameters:
            yield re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


# a choice of the best in parts: the bound is that of exponential_mechanism, or of top_k
SAME = {"gumbel_max": "exponential_mechanism"}
NOT_YET = {"synthesize"}  # plan_synthesis states the noise that is expected, which is no bound


@pytest.mark.parametrize("name", sorted(mechanisms()))
def test_every_mechanism_has_a_function_of_its_name(name):
    found = callable(getattr(bounds, SAME.get(name, name), None))
    assert found != (name in NOT_YET), "the list may only become shorter"


def test_gaussian_bounds_leave_the_decimal_context_of_the_host_alone():
    host = decimal.Context(prec=3, traps=[decimal.Inexact, decimal.Rounded, decimal.FloatOperation], flags=[])
    calls = (
        lambda: bounds.gaussian(sensitivity=1.0, rho=0.5),
        lambda: bounds.numeric_sparse(100, positives=60, sensitivity=1.0, epsilon=1.0, delta=1e-6),
    )
    for call in calls:
        found = call()
        with decimal.localcontext(host) as within:
            assert call() == found
            assert not any(within.flags.values())
