"""Laplace and Gaussian noise: the kernels against the definition, the laws, the grid, the ends of int64."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
import reference
from laws import assert_law, audit, check_low_bits, wrong_scales

import fastdp
from fastdp import exact, noise
from fastdp.kernels import noise as kernels

SCALES = [2.0**-20, 0.1, 1.0, 3.3, 100.0, 2.0**15, 2.0**15 + 1, 2.0**20, 2.0**31, 2.0**31 + 1, 2.0**40]
SIGMAS = [2.0**-20, 0.05, 0.3, 0.5, 1.0, 1.3, 4.0, 100.0, 2.0**15, 1e6, 2.0**31, 2.0**31 + 1, 2.0**40]
BLOCK = exact.GAUSSIAN_BLOCK
KEY = np.arange(3, 11, dtype=np.uint32) * np.uint32(0x9E3779B9)


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def draws(plan, n, first=0):
    """The noise of one release, by the kernel and the settling of what it leaves."""
    out = np.zeros(n, np.int64)
    noise.add_noise(plan, None, KEY, out.copy(), out, first)
    return out


# --- the kernels are the definition, bit for bit


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_kernel_meets_the_definition(scale):
    words = noise._words(KEY)
    found = draws(noise.laplace_plan(scale), 3000)
    for i in range(0, 3000, 13):
        assert found[i] == exact.geometric_draw(words, i, scale, two_sided=True)


@pytest.mark.parametrize("scale", SCALES)
def test_geometric_kernel_meets_the_definition(scale):
    words, plan = noise._words(KEY), noise.laplace_plan(scale)
    out, undecided = np.empty(2100, np.int64), np.empty(2100, np.int64)
    found = kernels.draw_geometric_into(KEY, 0, plan.extra, scale, plan.fixed, plan.fixed_pair, out, undecided)
    assert found == 0
    for i in range(0, 2100, 19):
        assert out[i] == exact.geometric_draw(words, i, scale, two_sided=False)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_kernel_meets_the_definition(sigma):
    words = noise._words(KEY)
    found = draws(noise.gaussian_plan(sigma), BLOCK + 60)
    assert found[:80].tolist() == exact.gaussian_block(words, 0, 80, sigma)
    assert found[BLOCK:].tolist() == exact.gaussian_block(words, 1, 60, sigma)


def test_the_kernels_and_the_definition_have_the_same_constants():
    names = [name for name in vars(exact) if name.endswith(("_BITS", "_EXTRA", "_STREAM")) or name in ("PROPOSALS",)]
    assert len(names) == 10
    for name in (*names, "GAUSSIAN_BLOCK"):
        assert getattr(kernels, name) == getattr(exact, name), name
    assert noise.CHUNK % kernels.LAPLACE_BLOCK == noise.CHUNK % kernels.GAUSSIAN_BLOCK == 0


# --- forced escalation: every level decides alike


@pytest.mark.parametrize("scale", SCALES)
def test_every_laplace_draw_escalated_is_the_same_draw(scale):
    plan = noise.laplace_plan(scale)
    expected = draws(plan, 2500)
    values, out, undecided = np.zeros(2500, np.int64), np.empty(2500, np.int64), np.empty(2500, np.int64)
    second = plan._replace(fixed=2.0)  # nothing is decided in float64
    assert kernels.add_laplace_into(values, KEY, 0, *second, out, undecided) == 0
    np.testing.assert_array_equal(out, expected)
    third = second._replace(fixed_pair=1.0)  # nor in double-double
    assert kernels.add_laplace_into(values, KEY, 0, *third, out, undecided) == 2500
    assert not out.any()
    np.testing.assert_array_equal(draws(third, 300), expected[:300])


def escalated(plan, *, third=False):
    law = plan.law.copy()
    law[10] = law[12] = 2.0
    if third:
        law[13] = law[14] = 2.0
    return plan._replace(law=law)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_every_gaussian_draw_escalated_is_the_same_draw(sigma):
    plan = noise.gaussian_plan(sigma)
    expected = draws(plan, 3000)
    values, out, undecided = np.zeros(3000, np.int64), np.empty(3000, np.int64), np.empty(3000, np.int64)
    second = escalated(plan)
    assert kernels.add_gaussian_into(values, KEY, 0, plan.extra, second.law, out, undecided) == 0
    np.testing.assert_array_equal(out, expected)
    third = escalated(plan, third=True)
    assert kernels.add_gaussian_into(values, KEY, 0, plan.extra, third.law, out, undecided) == 2
    assert undecided[:2].tolist() == [0, BLOCK]
    np.testing.assert_array_equal(draws(third, 100), expected[:100])


def test_escalated_draws_have_the_law_too():
    """The third level alone, as a law: 4,000 draws that integers have settled, at false-alarm rate 1e-9."""
    plan = noise.laplace_plan(2.0)._replace(fixed=2.0, fixed_pair=1.0)
    assert_law(draws(plan, 4000), reference.laplace_law(2), wrong_scales(reference.laplace_law, 2))


def test_escalation_on_the_grid_gives_the_same_floats():
    values = np.random.default_rng(5).normal(size=400) * 50
    plan, grid = noise.laplace_plan(700.0), 2.0**-8
    expected, found = np.empty(400), np.empty(400)
    noise.add_noise(plan, grid, KEY, values, expected, 0)
    noise.add_noise(plan._replace(fixed=2.0, fixed_pair=1.0), grid, KEY, values, found, 0)
    np.testing.assert_array_equal(found, expected)
    gauss = noise.gaussian_plan(70.0)
    noise.add_noise(gauss, grid, KEY, values[:50], expected[:50], 0)
    noise.add_noise(escalated(gauss, third=True), grid, KEY, values[:50], found[:50], 0)
    np.testing.assert_array_equal(found[:50], expected[:50])


# --- the laws


@pytest.mark.parametrize("scale", [0.5, 1, 2.5, 100, 2**14, 2**20, 2**30, 2**40])
def test_laplace_has_its_law(scale):
    found = fastdp.laplace(np.zeros(200_000, np.int64), sensitivity=scale, epsilon=1, rng=seeded(1))
    assert_law(found, reference.laplace_law(Fraction(scale)), wrong_scales(reference.laplace_law, scale))
    assert check_low_bits(found, reference.laplace_law(Fraction(scale)))


@pytest.mark.parametrize("sigma", [0.5, 1, 1.3, 4, 100, 10**6, 2**23, 2**40])
def test_gaussian_has_its_law(sigma):
    found = fastdp.gaussian(np.zeros(200_000, np.int64), sensitivity=sigma, rho=0.5, rng=seeded(2))
    law = noise._gaussian_for_integers(float(sigma), (0.5, None), 200_000).sigma
    assert sigma <= law < sigma * (1 + 1e-15)
    assert_law(found, reference.gaussian_law(Fraction(law)), wrong_scales(reference.gaussian_law, sigma))
    assert check_low_bits(found, reference.gaussian_law(Fraction(law)))


@pytest.mark.parametrize("scale", [0.4, 1.0, 30.0, 2.0**33])
def test_geometric_has_its_law(scale):
    plan = noise.laplace_plan(scale)
    out, undecided = np.empty(200_000, np.int64), np.empty(200_000, np.int64)
    assert kernels.draw_geometric_into(KEY, 0, plan.extra, scale, plan.fixed, plan.fixed_pair, out, undecided) == 0
    assert_law(out, reference.geometric_law(scale), wrong_scales(reference.geometric_law, scale))


def test_tiny_scales_leave_integers_alone():
    """At scale 2^-20 a draw other than 0 has probability 2 e^-1048576."""
    values = np.arange(1000)
    np.testing.assert_array_equal(fastdp.laplace(values, sensitivity=2.0**-20, epsilon=1), values)
    np.testing.assert_array_equal(fastdp.gaussian(values, sensitivity=2.0**-20, rho=0.5), values)


def test_floats_get_the_planned_law_on_the_grid():
    values = np.random.default_rng(8).normal(size=200_000) * 1e3
    grid, plan = noise._laplace_for_floats(1.0, 0.5, None, values.size)
    found = fastdp.laplace(values, sensitivity=1.0, epsilon=0.5, rng=seeded(3))
    z = (found / grid) - np.rint(values / grid)
    assert_law(z.astype(np.int64), reference.laplace_law(plan.scale), wrong_scales(reference.laplace_law, plan.scale))
    grid, gauss = noise._gaussian_for_floats(1.0, (1.0, 1e-6), None, values.size)
    found = fastdp.gaussian(values, sensitivity=1.0, epsilon=1.0, delta=1e-6, rng=seeded(3))
    z = (found / grid) - np.rint(values / grid)
    law = reference.gaussian_law(gauss.sigma)
    assert_law(z.astype(np.int64), law, wrong_scales(reference.gaussian_law, gauss.sigma))


def test_draws_of_one_release_are_uncorrelated():
    """Neighbours, and entries one block apart: |correlation| < 6.1 / sqrt(n), false-alarm rate 1e-9 each."""
    z = fastdp.laplace(np.zeros(10**6, np.int64), sensitivity=100, epsilon=1, rng=seeded(4)).astype(float)
    g = fastdp.gaussian(np.zeros(10**6, np.int64), sensitivity=100, rho=0.5, rng=seeded(4)).astype(float)
    for sample in (z, g):
        for lag in (1, 2, 4, 16, 128, 256, 512, 1024, BLOCK):
            r = np.mean(sample[:-lag] * sample[lag:]) / np.mean(sample**2)
            assert abs(r) < 6.1 / math.sqrt(z.size - lag), lag


# --- privacy: what the calibration claims, and mutants that an audit refutes


def audited(mechanism, epsilon, delta=0.0):
    one, two = mechanism(0), mechanism(1)
    return audit(one, two, epsilon, delta).refuted or audit(two, one, epsilon, delta).refuted


def test_laplace_keeps_its_epsilon_and_halved_noise_does_not():
    n = 300_000

    def mechanism(scale):
        return lambda v: fastdp.laplace(np.full(n, v), sensitivity=scale, epsilon=1, rng=seeded(10 + v))

    assert not audited(mechanism(1), 1.0)
    assert audited(mechanism(0.5), 1.0)
    assert audited(mechanism(1), 0.9), "the audit has power: epsilon is attained"


def test_gaussian_keeps_its_epsilon_and_halved_noise_does_not():
    n, delta = 300_000, 1e-2

    def mechanism(factor):
        options = {"sensitivity": factor, "epsilon": 1.0, "delta": delta}
        return lambda v: fastdp.gaussian(np.full(n, v), **options, rng=seeded(20 + v))

    assert not audited(mechanism(1), 1.0, delta)
    assert audited(mechanism(0.5), 1.0, delta)


def low_bits_tell(sample):
    """1 where a small result is a multiple of 2^-53: with float noise, all of those from 1, few of those from 0."""
    return ((np.abs(sample) < 2.0**-4) & (np.rint(sample * 2.0**53) == sample * 2.0**53)).astype(int)


def test_float_noise_leaks_through_its_low_bits_and_ours_does_not():
    """Mironov (2012), at epsilon = 1/2 on one million releases of 0 and of 1."""
    n = 10**6
    rng = np.random.default_rng(1)
    naive = [low_bits_tell(v + rng.laplace(scale=2.0, size=n)) for v in (0.0, 1.0)]
    assert audit(naive[1], naive[0], 0.5).refuted
    # one number a release: the grid is that of n = 1
    grid, _ = noise._laplace_for_floats(1.0, 0.5, None, 1)
    ours = [
        low_bits_tell(fastdp.laplace(np.full(n, v), sensitivity=1.0, epsilon=0.5, resolution=grid, rng=seeded(6)))
        for v in (0.0, 1.0)
    ]
    assert not audit(ours[1], ours[0], 0.5).refuted
    assert not audit(ours[0], ours[1], 0.5).refuted


def test_no_result_is_negative_zero():
    """-0.0 would tell that a value was rounded to zero from below."""
    values, found = np.full(20_000, -1e-9), np.empty(20_000)
    for plan in (noise.laplace_plan(1.0), noise.gaussian_plan(1.0), noise.laplace_plan(2.0**-20)):
        noise.add_noise(plan, 1.0, KEY, values, found, 0)
        zeros = found[found == 0]
        assert zeros.size > 1000
        assert not np.signbit(zeros).any()


# --- the grid


@pytest.mark.parametrize("n", [1, 10, 1000, 10**6])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("sensitivity", [1e-6, 1.0, 3e7])
def test_the_rounding_of_floats_is_charged(n, epsilon, sensitivity):
    grid, plan = noise._laplace_for_floats(sensitivity, epsilon, None, n)
    assert math.frexp(grid)[0] == 0.5
    charged = Fraction(sensitivity) / Fraction(grid)
    moved = math.floor(charged) + n
    assert Fraction(plan.scale) * Fraction(epsilon) >= moved
    assert plan.scale * epsilon <= float(charged) * (1 + 1.01 / 1024)
    if plan.scale < 2.0**38:
        assert grid > min(sensitivity, sensitivity / epsilon) / (2048 * n)
    grid, gauss = noise._gaussian_for_floats(sensitivity, (epsilon, 1e-6), None, n)
    without = noise._sigma(1.0, (epsilon, 1e-6), n) * sensitivity / grid
    assert gauss.sigma <= without * (1 + 1.5 / 1024)
    assert gauss.sigma >= noise._sigma(sensitivity / grid + math.sqrt(n), (epsilon, 1e-6), n)


def test_rounding_moves_neighbours_by_at_most_what_is_charged():
    """9.F: 10^5 random neighbours at L1 distance at most 1, adversarial ties and tiny values among them."""
    rng = np.random.default_rng(12)
    n, grid = 8, 2.0**-6
    moved = math.floor(1 / grid) + n
    worst = 0
    for _ in range(10):
        a = rng.choice([0.0, 0.5, 1.5, 2.0**-7, 3 * 2.0**-7, 1e-300, 1e6], size=(10_000, n)) * rng.choice([-1, 1])
        a += rng.normal(size=a.shape) * rng.choice([0.0, 1e-12, 1.0], size=(10_000, 1))
        step = rng.exponential(size=a.shape) * rng.choice([-1, 1], size=a.shape)
        b = a + step / np.maximum(np.abs(step).sum(1, keepdims=True), 1e-300) * (1 - 1e-9)
        k = []
        for values in (a, b):
            out = np.empty(values.size)
            kernels.add_on_grid_into(values.reshape(-1), grid, np.zeros(values.size), out)
            k.append((out / grid).reshape(a.shape))
        distance = np.abs(k[0] - k[1]).sum(1)
        worst = max(worst, distance.max())
        assert distance.max() <= moved
    assert worst > 1 / grid + 2, "the neighbours do make use of the charge"


def test_floats_of_every_size_are_released():
    values = np.array([0.0, -0.0, 5e-324, -5e-324, 1e-300, 2.0**52, -(2.0**60) - 4096, 1e300, -1.7e308, 0.1])
    grid = 2.0**-4
    found = fastdp.laplace(values, sensitivity=1.0, epsilon=1.0, resolution=grid, rng=seeded(9))
    z = fastdp.laplace(np.zeros(values.size), sensitivity=1.0, epsilon=1.0, resolution=grid, rng=seeded(9))
    for v, out, noise_of_zero in zip(values.tolist(), found.tolist(), z.tolist(), strict=True):
        k = Fraction(v) / Fraction(grid)
        nearest = round(k)  # ties to even, as in IEEE arithmetic
        exact_sum = nearest * Fraction(grid) + Fraction(noise_of_zero)
        assert out == float(exact_sum)
    assert np.all(np.abs(found[:5] / grid - np.rint(found[:5] / grid)) == 0)


def test_no_sum_leaves_the_range_of_floats():
    """The coarsest grid and the largest scale stay below half a unit in the last place of the largest float."""
    big = np.array([np.finfo(float).max, -np.finfo(float).max] * 500)
    found = fastdp.laplace(big, sensitivity=2.0**939, epsilon=1.0, resolution=2.0**900, rng=seeded(1))
    np.testing.assert_array_equal(found, big)


# --- the ends of int64


def test_sums_saturate_at_the_ends_of_int64():
    edge = np.array([2**63 - 1, 2**63 - 3, -(2**63), -(2**63) + 2, 0, 2**62, -(2**62)] * 500)
    z = fastdp.laplace(np.zeros_like(edge), sensitivity=5, epsilon=1, rng=seeded(2))
    found = fastdp.laplace(edge, sensitivity=5, epsilon=1, rng=seeded(2))
    expected = [max(-(2**63), min(2**63 - 1, v + d)) for v, d in zip(edge.tolist(), z.tolist(), strict=True)]
    assert found.tolist() == expected
    assert (found == 2**63 - 1).sum() > 100
    assert (found == -(2**63)).sum() > 100


def test_saturation_of_settled_draws():
    third = noise.laplace_plan(5.0)._replace(fixed=2.0, fixed_pair=1.0)
    edge = np.array([2**63 - 1, -(2**63)] * 40)
    out = edge.copy()
    noise.add_noise(third, None, KEY, out, out, 0)
    z = draws(noise.laplace_plan(5.0), 80)
    expected = [max(-(2**63), min(2**63 - 1, v + d)) for v, d in zip(edge.tolist(), z.tolist(), strict=True)]
    assert out.tolist() == expected


# --- arrays of every kind


MECHANISMS = {
    "laplace": lambda v, **o: fastdp.laplace(v, sensitivity=3, epsilon=1, **o),
    "gaussian": lambda v, **o: fastdp.gaussian(v, sensitivity=3, epsilon=1, delta=1e-6, **o),
}


@pytest.fixture(params=MECHANISMS)
def release(request):
    return MECHANISMS[request.param]


def test_threads_do_not_change_a_bit(release):
    ints, floats = np.arange(300_001), np.linspace(-5, 5, 300_001)
    before = fastdp.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 7):
            fastdp.set_num_threads(threads)
            results.append((release(ints, rng=seeded(1)).tobytes(), release(floats, rng=seeded(1)).tobytes()))
    finally:
        fastdp.set_num_threads(before)
    assert len(set(results)) == 1


@pytest.mark.parametrize("n", [1, 2, 7, 255, 256, 257, 513, 1024, 1025, 2207, 2208, 2209, 70_656, 70_657])
def test_every_length_and_a_prefix_is_a_prefix(release, n):
    long = release(np.zeros(75_000, np.int64), rng=seeded(1))
    short = release(np.zeros(n, np.int64), rng=seeded(1))
    if release is MECHANISMS["laplace"]:  # the sigma of the Gaussian depends on the dimension
        np.testing.assert_array_equal(short, long[:n])
    assert short.shape == (n,)
    assert np.unique(short).size > min(n, 8) / 8


def test_in_place_is_the_same_as_to_a_new_array(release):
    for values in (np.arange(100_000), np.linspace(0, 1, 100_000), np.arange(24).reshape(2, 3, 4)):
        expected = release(values, rng=seeded(5))
        work = values.copy()
        assert release(work, out=work, rng=seeded(5)) is work
        np.testing.assert_array_equal(work, expected)
        other = np.empty_like(values)
        release(values, out=other, rng=seeded(5))
        np.testing.assert_array_equal(other, expected)


def test_out_may_overlap_the_values_in_any_way(release):
    base = np.arange(50_000)
    for make in (lambda a: a[::-1], lambda a: a[::-1][:], lambda a: a):
        work = base.copy()
        expected = release(work, rng=seeded(5))
        release(work, out=make(work), rng=seeded(5))
        np.testing.assert_array_equal(make(work), expected)
    work = np.arange(30_001)
    expected = release(work[:-1], rng=seeded(5))
    release(work[:-1], out=work[1:], rng=seeded(5))
    np.testing.assert_array_equal(work[1:], expected)


def test_shapes_strides_dtypes_and_orders(release):
    plain = np.arange(60).reshape(5, 12)
    expected = release(plain, rng=seeded(3))
    big_endian = plain.astype(">i8")
    readonly = plain.copy()
    readonly.flags.writeable = False
    wide = np.zeros((10, 24), np.int64)
    wide[::2, ::2] = plain
    variants = [
        plain.tolist(),
        np.asfortranarray(plain),
        wide[::2, ::2],
        big_endian,
        readonly,
        plain.astype(np.int8),
        plain.astype(np.uint16),
        plain.astype(np.uint64),
        plain.astype(">u4"),
    ]
    for variant in variants:
        found = release(variant, rng=seeded(3))
        assert found.dtype == np.int64
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, expected)
    strided = np.empty((5, 24), np.int64)[:, ::2]
    release(plain, out=strided, rng=seeded(3))
    np.testing.assert_array_equal(strided, expected)
    floats = release(plain.astype(float), rng=seeded(3))
    for dtype in (np.float16, np.float32, ">f8", ">f4"):
        np.testing.assert_array_equal(release(plain.astype(dtype), rng=seeded(3)), floats)


def test_scalars_and_empty_arrays(release):
    for scalar, dtype in ((7, np.int64), (2.5, np.float64), (True, np.int64), (np.float32(1), np.float64)):
        found = release(scalar)
        assert isinstance(found, dtype)
        assert np.ndim(found) == 0
    assert isinstance(release(np.array(3)), np.int64)
    for shape in ((0,), (3, 0), (0, 2)):
        for dtype in (np.int64, np.float64):
            found = release(np.empty(shape, dtype))
            assert found.shape == shape
            assert found.dtype == dtype
    zero_d = np.array(5)
    assert release(zero_d, out=zero_d) is zero_d


def test_uint64_beyond_int64_is_clamped():
    values = np.array([2**64 - 1, 2**63, 5], np.uint64)
    found = fastdp.laplace(values, sensitivity=2.0**-20, epsilon=1)
    assert found.tolist() == [2**63 - 1, 2**63 - 1, 5]


def test_releases_differ_and_the_default_is_not_seeded(release):
    zeros = np.zeros(64, np.int64)
    assert len({release(zeros).tobytes() for _ in range(50)}) == 50
