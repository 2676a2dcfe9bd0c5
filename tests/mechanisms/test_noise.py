"""Laplace and Gaussian noise: the kernels against the definition, the laws, the grid, the ends of int64."""

import hashlib
import math
import random
import warnings
from fractions import Fraction
from functools import lru_cache, partial
from types import SimpleNamespace

import numpy as np
import pytest

import fastdp
from fastdp.kernels import discrete_laplace, layout
from fastdp.kernels import noise as kernels
from fastdp.mechanisms import noise
from fastdp.randomness import exact_draws as exact
from fastdp.randomness import keys, noise_draws, noise_plans
from fastdp.randomness.keys import word_source
from tests import oracles
from tests.laws import assert_law, audit, check_low_bits, wrong_scales

SCALES = [2.0**-20, 0.1, 1.0, 3.3, 100.0, 2.0**15, 2.0**15 + 1, 2.0**20, 2.0**31, 2.0**31 + 1, 2.0**40]
SIGMAS = [2.0**-20, 0.05, 0.3, 0.5, 1.0, 1.3, 4.0, 100.0, 2.0**15, 1e6, 2.0**31, 2.0**31 + 1, 2.0**40]
BLOCK = layout.GAUSSIAN_BLOCK
KEY = np.arange(3, 11, dtype=np.uint32) * np.uint32(0x9E3779B9)


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def draws(plan, n, first=0):
    """The noise of one release, by the kernel and the settling of what it leaves."""
    out = np.zeros(n, np.int64)
    noise_draws.add_noise(plan, None, KEY, out.copy(), out, first)
    return out


# --- the kernels are the definition, bit for bit


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_kernel_meets_the_definition(scale):
    words = word_source(KEY)
    found = draws(noise_plans.laplace_plan(scale), 3000)
    for i in range(0, 3000, 13):
        assert found[i] == exact.geometric_draw(words, i, scale, two_sided=True)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_kernel_meets_the_definition(sigma):
    words = word_source(KEY)
    found = draws(noise_plans.gaussian_plan(sigma), BLOCK + 60)
    assert found[:80].tolist() == exact.gaussian_block(words, 0, 80, sigma)
    assert found[BLOCK:].tolist() == exact.gaussian_block(words, 1, 60, sigma)


def test_chunks_are_whole_blocks():
    assert noise_draws.CHUNK % layout.LAPLACE_BLOCK == noise_draws.CHUNK % layout.GAUSSIAN_BLOCK == 0


# --- forced escalation: every level decides alike


def escalated(plan, *, third=False):
    """The same noise, of which nothing is decided in float64, and, at the third level, nor in double-double."""
    law = plan.law.copy()
    if isinstance(plan, noise_plans.LaplacePlan):
        first, pair = [layout.LAPLACE_ERROR], [layout.LAPLACE_ERROR_PAIR]
    else:
        first, pair = [layout.ERROR, layout.COIN_ERROR], [layout.COIN_ERROR_PAIR, layout.ERROR_PAIR]
    law[first + pair if third else first] = 2.0
    return plan._replace(law=law)


@pytest.mark.parametrize("scale", SCALES)
def test_every_laplace_draw_escalated_is_the_same_draw(scale):
    plan = noise_plans.laplace_plan(scale)
    expected = draws(plan, 2500)
    values, out, undecided = np.zeros(2500, np.int64), np.empty(2500, np.int64), np.empty(2500, np.int64)
    second = escalated(plan)
    assert kernels.add_laplace_into(values, KEY, 0, second.extra, second.law, out, undecided) == 0
    np.testing.assert_array_equal(out, expected)
    third = escalated(plan, third=True)
    assert kernels.add_laplace_into(values, KEY, 0, third.extra, third.law, out, undecided) == 2500
    assert not out.any()
    np.testing.assert_array_equal(draws(third, 300), expected[:300])


@pytest.mark.parametrize("sigma", SIGMAS)
def test_every_gaussian_draw_escalated_is_the_same_draw(sigma):
    plan = noise_plans.gaussian_plan(sigma)
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
    plan = escalated(noise_plans.laplace_plan(2.0), third=True)
    assert_law(draws(plan, 4000), oracles.noise.laplace_law(2), wrong_scales(oracles.noise.laplace_law, 2))


def test_escalation_on_the_grid_gives_the_same_floats():
    values = np.random.default_rng(5).normal(size=400) * 50
    plan, grid = noise_plans.laplace_plan(700.0), 2.0**-8
    expected, found = np.empty(400), np.empty(400)
    noise_draws.add_noise(plan, grid, KEY, values, expected, 0)
    noise_draws.add_noise(escalated(plan, third=True), grid, KEY, values, found, 0)
    np.testing.assert_array_equal(found, expected)
    gauss = noise_plans.gaussian_plan(70.0)
    noise_draws.add_noise(gauss, grid, KEY, values[:50], expected[:50], 0)
    noise_draws.add_noise(escalated(gauss, third=True), grid, KEY, values[:50], found[:50], 0)
    np.testing.assert_array_equal(found[:50], expected[:50])


# --- which words the kernels read: the table of noise.md, "Bits", and the ChaCha20 of tests/oracles/words.py


@lru_cache
def stream_word(stream, index):
    return oracles.words.stream_word(KEY.tolist(), stream, index)


def short_uniform(index):
    """The 31 bits of U that stand in stream 0, and the sign."""
    half = stream_word(0, index // 2) >> 32 * (index % 2) & 0xFFFFFFFF
    return half >> 1, half & 1


def bits_of_word(stream, index):
    """The bits of word `index` of this stream, and then of every second stream."""
    while True:
        yield from (stream_word(stream, index) >> (63 - j) & 1 for j in range(64))
        stream += 2


def test_the_second_level_of_laplace_reads_its_own_words():
    """31 bits do not settle a draw of this scale: every draw is made of the word in stream 3 that has its number."""
    scale, block = 2.0**30, 3
    plan = noise_plans.laplace_plan(scale)
    out, undecided = np.zeros(1100, np.int64), np.empty(1100, np.int64)
    assert kernels.add_laplace_into(out.copy(), KEY, block, 0, plan.law, out, undecided) == 0
    for i in [*range(0, 1024, 31), *range(1024, 1100, 5)]:
        index = 1024 * block + i
        prefix, sign = short_uniform(index)
        oracle = lambda n, b: oracles.exact_draws.laplace_from_uniform(n, b, Fraction(scale))  # noqa: E731
        magnitude, _ = oracles.exact_draws.resolve(oracle, bits_of_word(3, index), prefix, 31)
        assert out[i] == (-magnitude if sign else magnitude)


def test_the_second_level_of_the_gaussian_reads_its_own_words():
    sigma, block = 2.0**30, 2
    plan, law = noise_plans.gaussian_plan(sigma), exact.gaussian_proposal(sigma)
    sure = plan.law.copy()
    sure[layout.COIN_ERROR] = 2.0  # no coin of 16 bits decides
    out, undecided = np.zeros(BLOCK + 30, np.int64), np.empty(BLOCK + 30, np.int64)
    assert kernels.add_gaussian_into(out.copy(), KEY, block, 0, sure, out, undecided) == 0
    for start, number in ((0, block), (BLOCK, block + 1)):
        expected, index = [], number << 20
        while len(expected) < 30:
            prefix, sign = short_uniform(index)
            oracle = lambda n, b: oracles.exact_draws.gaussian_magnitude_from_uniform(n, b, sigma, law.t, law.a)  # noqa: E731
            m, _ = oracles.exact_draws.resolve(oracle, bits_of_word(3, index), prefix, 31)
            coin = stream_word(2, index // 4) >> 16 * (index % 4) & 0xFFFF
            keeps = lambda n, b, m=m: oracles.exact_draws.gaussian_accepts(n, b, m, sigma, law.t, law.a)  # noqa: E731
            kept, _ = oracles.exact_draws.resolve(keeps, bits_of_word(4, index), coin, 16)
            if kept:
                expected.append(-m if sign else m)
            index += 1
        assert out[start : start + 30].tolist() == expected


@pytest.mark.parametrize("first", [0, noise_draws.CHUNK])
def test_what_is_settled_is_the_draw_of_its_place(first):
    """In a later chunk of a release: draw number first + i, and the blocks that start at `first`."""
    words = word_source(KEY)
    plan = noise_plans.laplace_plan(2.0**20)
    third = escalated(plan, third=True)
    expected = [exact.geometric_draw(words, first + i, plan.scale, two_sided=True) for i in range(300)]
    assert draws(third, 300, first).tolist() == draws(plan, 300, first).tolist() == expected
    gauss = noise_plans.gaussian_plan(1.3)
    expected = exact.gaussian_block(words, first // BLOCK, 40, gauss.sigma)
    third = escalated(gauss, third=True)
    assert draws(third, 40, first).tolist() == draws(gauss, 40, first).tolist() == expected


def open_to_the_third_level(monkeypatch):
    """Every draw of the public functions is left to fastdp/randomness/exact_draws.py: scale and sigma 3, grid 1/4."""
    laplace = escalated(noise_plans.laplace_plan(3.0), third=True)
    gaussian = escalated(noise_plans.gaussian_plan(3.0), third=True)
    monkeypatch.setattr(noise, "_laplace_for_integers", lambda *_: laplace)
    monkeypatch.setattr(noise, "_laplace_for_floats", lambda *_: (0.25, laplace))
    monkeypatch.setattr(noise, "_gaussian_for_integers", lambda *_: gaussian)
    monkeypatch.setattr(noise, "_gaussian_for_floats", lambda *_: (0.25, gaussian))


def number_of_draw(words, index, scale, *, two_sided):
    assert two_sided
    return index


def numbers_of_block(words, block, count, sigma):
    return [BLOCK * block + j for j in range(count)]


def test_a_release_of_several_chunks_settles_each_draw_once(monkeypatch):
    """Draws are replaced by their numbers: every entry gets its own, whatever chunk it is in."""
    open_to_the_third_level(monkeypatch)
    monkeypatch.setattr(exact, "geometric_draw", number_of_draw)
    monkeypatch.setattr(exact, "gaussian_block", numbers_of_block)
    n = 2 * noise_draws.CHUNK + 100
    for values, unit in ((np.arange(n) * 7, 1), (np.arange(n) * 7.0, 0.25)):
        expected = values + np.arange(n) * unit
        np.testing.assert_array_equal(fastdp.laplace(values, sensitivity=1, epsilon=1), expected)
        np.testing.assert_array_equal(fastdp.gaussian(values, sensitivity=1, rho=1), expected)


def test_a_settled_sum_on_the_grid_is_rounded_once():
    """However large the draw is, and whatever is in the value's low bits."""
    draw = random.Random(7)
    for _ in range(500):
        value = np.array([draw.uniform(-1, 1) * 2.0 ** draw.randint(-40, 60)])
        size = draw.choice([2**10, 2**52, 2**53, 2**54, 2**60])
        z, grid = draw.randint(-size, size), 2.0 ** draw.randint(-30, 30)
        exact_sum = Fraction(value.item()) + z * Fraction(grid)
        noise_draws._add_draw(value, 0, z, grid)
        assert value.item() == float(exact_sum)


@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 66])
@pytest.mark.parametrize("scale", [0.3, 50.0, 2.0**20, 2.0**35])
def test_short_calls_are_the_definition_however_far_they_escalate(n, scale):
    words, plan = word_source(KEY), noise_plans.laplace_plan(scale)
    expected = [exact.geometric_draw(words, i, scale, two_sided=True) for i in range(n)]
    for forced in (plan, escalated(plan), escalated(plan, third=True)):
        assert draws(forced, n).tolist() == expected


def test_a_short_call_of_a_large_scale_takes_a_second_level_in_any_case():
    """Up to 64 draws, one second level is computed even if the first level has decided all of them.

    A call for an impossible law shows it: with such an offset every value is negative, which the kernel reports if and
    only if it came to the second level. With 65 draws it does not.
    """
    law = noise_plans.laplace_plan(2.0**20).law.copy()
    law[layout.LAPLACE_OFFSET] = -1000.0 * 2**20
    law[layout.LAPLACE_OFFSET_LOW] = 0.0
    for n, reported in ((1, 1), (2, 1), (63, 1), (64, 1), (65, 0), (1024, 0)):
        out = np.empty(n)
        found = discrete_laplace.laplace_block_into(KEY, 0, 16, law, out)
        assert not np.isnan(out).any()
        assert found == reported, n


def test_a_short_call_of_a_small_scale_takes_no_second_level():
    """Up to 64 draws are decided by 63 bits each; of as many that are a part of 65, the first 31 leave some open.

    Nothing is decided at a second level whose error bound is infinite, so the kernel reports what came to it.
    """
    law = noise_plans.laplace_plan(2.0**15).law.copy()
    law[layout.LAPLACE_ERROR_PAIR] = np.inf
    found = dict.fromkeys((1, 63, 64, 65), 0)
    for block in range(2000):
        for n in found:
            found[n] += discrete_laplace.laplace_block_into(KEY, block, 0, law, np.empty(n))
    assert found[1] == found[63] == found[64] == 0 < found[65]


@pytest.mark.parametrize("third", [False, True])
@pytest.mark.parametrize("values", [np.arange(-5, 5) * 10**17, np.linspace(-3.5, 1e9, 10)], ids=["integers", "floats"])
def test_few_values_get_the_draws_that_many_begin_with(values, third, monkeypatch):
    """The short way, without an `out`, and the long one: the same bits of one key, also where all is left open."""
    monkeypatch.setattr(keys, "os", SimpleNamespace(urandom=lambda n: bytes(range(n))))
    if third:
        open_to_the_third_level(monkeypatch)
        noise.laplace_noise.cache_clear()
        noise.gaussian_noise.cache_clear()
    for shape in ((), (0,), (1,), (10,), (2, 5)) if third else ((), (0,), (1,), (2, 5), (64,), (65,), (1024,), (1025,)):
        given = np.resize(values, shape)
        for scale in (3.0, 2.0**20, 2.0**33):
            for release in (
                partial(fastdp.laplace, given, sensitivity=scale, epsilon=1.0),
                partial(fastdp.gaussian, given, sensitivity=scale, rho=0.5),
                partial(fastdp.gaussian, given, sensitivity=scale, epsilon=1.0, delta=1e-6),
            ):
                short, long = release(), release(out=np.empty_like(given))
                assert type(short) is (type(given[()]) if shape == () else np.ndarray)
                assert short.dtype == given.dtype
                np.testing.assert_array_equal(short, long, strict=True)
    noise.laplace_noise.cache_clear()
    noise.gaussian_noise.cache_clear()


def test_few_values_are_left_as_they_are():
    """Read-only, without alignment, in rows of Fortran's order: what is drawn on is a copy."""
    bytes_of = np.zeros(8 * 12 + 1, np.uint8)
    odd = bytes_of[1:].view(np.int64).reshape(3, 4)
    odd.flags.writeable = False
    assert not odd.flags.aligned
    for values in (odd, np.asfortranarray(odd), odd[1], odd[2, 1:2].astype(float)):
        assert fastdp.laplace(values, sensitivity=1, epsilon=0.01).shape == values.shape
        assert fastdp.gaussian(values, sensitivity=1, rho=0.01).any()
    assert not bytes_of.any()


# --- the laws


@pytest.mark.parametrize("scale", [0.5, 1, 2.5, 100, 2**14, 2**20, 2**30, 2**40])
def test_laplace_has_its_law(scale):
    found = fastdp.laplace(np.zeros(200_000, np.int64), sensitivity=scale, epsilon=1, rng=seeded(1))
    assert_law(found, oracles.noise.laplace_law(Fraction(scale)), wrong_scales(oracles.noise.laplace_law, scale))
    assert check_low_bits(found, oracles.noise.laplace_law(Fraction(scale)))


@pytest.mark.parametrize("sigma", [0.5, 1, 1.3, 4, 100, 10**6, 2**23, 2**40])
def test_gaussian_has_its_law(sigma):
    found = fastdp.gaussian(np.zeros(200_000, np.int64), sensitivity=sigma, rho=0.5, rng=seeded(2))
    law = noise._gaussian_for_integers(float(sigma), (0.5, None), 200_000).sigma
    assert sigma <= law < sigma * (1 + 1e-15)
    assert_law(found, oracles.noise.gaussian_law(Fraction(law)), wrong_scales(oracles.noise.gaussian_law, sigma))
    assert check_low_bits(found, oracles.noise.gaussian_law(Fraction(law)))


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
    assert_law(
        z.astype(np.int64), oracles.noise.laplace_law(plan.scale), wrong_scales(oracles.noise.laplace_law, plan.scale)
    )
    grid, gauss = noise._gaussian_for_floats(1.0, (1.0, 1e-6), None, values.size)
    found = fastdp.gaussian(values, sensitivity=1.0, epsilon=1.0, delta=1e-6, rng=seeded(3))
    z = (found / grid) - np.rint(values / grid)
    law = oracles.noise.gaussian_law(gauss.sigma)
    assert_law(z.astype(np.int64), law, wrong_scales(oracles.noise.gaussian_law, gauss.sigma))


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
    values, found = np.tile([-1e-9, -0.0, -5e-324, -0.2, -0.25, -0.3, -0.5], 3000), np.empty(21_000)
    for plan in (noise_plans.laplace_plan(1.0), noise_plans.gaussian_plan(1.0), noise_plans.laplace_plan(2.0**-20)):
        noise_draws.add_noise(plan, 1.0, KEY, values, found, 0)
        zeros = found[found == 0]
        assert zeros.size > 1000
        assert not np.signbit(zeros).any()


# --- parameters, as the public functions pass them on


@pytest.fixture
def planned(monkeypatch):
    """The arguments and results of all plans that are asked for."""
    calls = []
    noise.laplace_noise.cache_clear()
    noise.gaussian_noise.cache_clear()

    def spy(original, *arguments):
        calls.append((arguments, original(*arguments)))
        return calls[-1][1]

    for name in ("_laplace_for_integers", "_laplace_for_floats", "_gaussian_for_integers", "_gaussian_for_floats"):
        monkeypatch.setattr(noise, name, partial(spy, getattr(noise, name)))
    return calls


def least_above(x):
    result = float(Fraction(x))
    return result if Fraction(result) >= x else math.nextafter(result, math.inf)


def largest_below(x):
    result = float(Fraction(x))
    return result if Fraction(result) <= x else math.nextafter(result, 0.0)


# float64 has neither of these; the nearest float is below 1/3 and 2^53 + 1, above 1/10 and 2^53 + 3
FRACTIONS = [Fraction(1, 3), Fraction(1, 10)]
LARGE = [np.int64(2**53 + 1), np.int64(2**53 + 3), np.uint64(2**53 + 1), np.uint64(2**53 + 3), 2**53 + 1, 2**53 + 3]
PUBLIC_VALUES = [np.arange(5), np.linspace(0.0, 1.0, 5)]


@pytest.mark.parametrize("values", PUBLIC_VALUES, ids=["integers", "floats"])
@pytest.mark.parametrize("parameter", [*FRACTIONS, *LARGE], ids=repr)
def test_parameters_of_releases_are_rounded_toward_more_noise(values, parameter, planned):
    x = Fraction(parameter) if isinstance(parameter, Fraction) else Fraction(int(parameter))
    near = 2.0 ** math.frexp(float(x))[1]
    fastdp.laplace(values, sensitivity=parameter, epsilon=near)
    fastdp.gaussian(values, sensitivity=parameter, rho=near)
    fastdp.laplace(values, sensitivity=near, epsilon=parameter)
    fastdp.gaussian(values, sensitivity=near, rho=parameter)
    arguments = [call for call, _ in planned]
    assert [call[0] for call in arguments] == [least_above(x), least_above(x), near, near]
    assert arguments[2][1] == arguments[3][1][0] == largest_below(x)
    if x < 1:
        fastdp.gaussian(values, sensitivity=parameter, epsilon=parameter, delta=parameter)
        assert planned[-1][0][:2] == (least_above(x), (largest_below(x), largest_below(x)))


def test_noise_of_integers_is_never_below_what_the_parameters_ask_for(planned):
    """scale * epsilon >= sensitivity and 2 rho sigma^2 >= sensitivity^2, in fractions, and with no more to spare than
    a few roundings."""
    draw = random.Random(3)
    for _ in range(300):
        sensitivity, price = (Fraction(draw.randint(1, 10**6), draw.randint(1, 10**6)) for _ in range(2))
        fastdp.laplace([0], sensitivity=sensitivity, epsilon=price)
        scale = Fraction(planned[-1][1].scale)
        assert sensitivity <= scale * price <= sensitivity * (1 + Fraction(1, 2**49))
        fastdp.gaussian([0], sensitivity=sensitivity, rho=price)
        sigma = Fraction(planned[-1][1].sigma)
        assert sensitivity**2 <= 2 * price * sigma**2 <= sensitivity**2 * (1 + Fraction(1, 2**47))


# --- the grid


def test_a_grid_as_fine_as_many_entries_ask_for_is_not_finer_than_the_scale_allows(planned):
    """Past 2^38 units of noise the default grid stays where it is, and the rounding is charged."""
    for epsilon in (1e-3, 1e-4, 1e-5):
        fastdp.laplace(np.zeros(10**6), sensitivity=1.0, epsilon=epsilon)
        grid, plan = planned[-1][1]
        assert 2.0**38 <= 1 / epsilon / grid < 2.0**39 or epsilon == 1e-3
        assert Fraction(plan.scale) * Fraction(epsilon) >= math.floor(1 / Fraction(grid)) + 10**6
    for epsilon, delta in ((1e-6, 1e-9), (1e-8, 1e-12)):
        fastdp.gaussian(np.zeros(10**6), sensitivity=1.0, epsilon=epsilon, delta=delta)
        grid, plan = planned[-1][1]
        assert 2.0**38 <= plan.sigma / (1 + 1000 * grid) < 2.0**39  # without the charge, sqrt(n) units


def test_ties_go_to_even_multiples_of_the_grid():
    """A half rounds to the even neighbour, on both sides of 0 and beside numbers that are no ties."""
    for grid in (2.0**-10, 1.0, 2.0**20):
        k = np.array([0.5, 1.5, 2.5, 3.5, 1e6 + 0.5, 2.0**51 + 0.5, 2.0**51 + 1.5])
        halves = np.concatenate([k, -k])
        for values in (halves, np.nextafter(halves, np.inf), np.nextafter(halves, -np.inf)):
            out = np.empty(values.size)
            kernels.add_on_grid_into(values * grid, grid, np.zeros(values.size), out)
            assert (out / grid).tolist() == [round(Fraction(value)) for value in values.tolist()]


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
    without = noise._sigma(1.0, (epsilon, 1e-6), n, any_grid=True) * sensitivity / grid
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


def l2_rows(values):
    return np.sqrt((values**2).sum(1))


@pytest.mark.parametrize("n", [1, 2, 16, 100])
def test_rounding_moves_neighbours_in_l2_by_at_most_what_is_charged(n):
    """10,000 neighbours: random ones, and ones that step over a tie with every coordinate."""
    rng = np.random.default_rng(n)
    grid = 2.0**-6
    a = rng.choice([0.0, 0.5, 1.5, 2.0**-7, 3 * 2.0**-7, 1e-300, 1e3], size=(5000, n))
    a += rng.normal(size=a.shape) * rng.choice([0.0, 1e-12, 1.0], size=(5000, 1))
    b = a + rng.normal(size=a.shape) * rng.choice([0.01, 0.1, 1.0], size=(5000, 1))
    # just short of a tie, and one step of 20.01 units, with either sign, past it: k moves by 21
    tie = (rng.integers(-1000, 1000, (5000, n)) + 0.5) * grid
    sign = rng.choice([-1, 1], (5000, n))
    a, b = np.concatenate([a, tie - 1e-6 * sign]), np.concatenate([b, tie + (20.01 * grid - 1e-6) * sign])
    k = []
    for values in (a, b):
        out = np.empty(values.size)
        kernels.add_on_grid_into(values.ravel(), grid, np.zeros(values.size), out)
        k.append((out / grid).reshape(a.shape))
    apart, moved = l2_rows(a - b) * (1 + 1e-12), l2_rows(k[0] - k[1])
    charged = np.array([noise._l2_on_grid(d, grid, n) for d in apart.tolist()])
    assert (moved <= charged * (1 + 1e-15)).all()
    assert (moved[5000:] >= charged[5000:] - 0.02 * math.sqrt(n)).all(), "some neighbours do use up the charge"


def test_the_l2_charge_is_rounded_up():
    draw = random.Random(5)
    for _ in range(2000):
        sensitivity, n = draw.uniform(0.5, 2) * 2.0 ** draw.randint(-20, 20), draw.randint(1, 10**6)
        grid = 2.0 ** draw.randint(-30, 2)
        rest = Fraction(noise._l2_on_grid(sensitivity, grid, n)) - Fraction(sensitivity) / Fraction(grid)
        assert rest > 0
        assert rest**2 >= n
        assert rest**2 <= n * (1 + Fraction(1, 10**9)) + Fraction(sensitivity) / Fraction(grid)


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
    third = escalated(noise_plans.laplace_plan(5.0), third=True)
    edge = np.array([2**63 - 1, -(2**63)] * 40)
    out = edge.copy()
    noise_draws.add_noise(third, None, KEY, out, out, 0)
    z = draws(noise_plans.laplace_plan(5.0), 80)
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


# --- out= of every kind


class Contrary(np.ndarray):
    """An array whose own methods are of no use to anybody else."""

    def __setitem__(self, *arguments):
        raise AssertionError("__setitem__ of a subclass")

    def __getitem__(self, *arguments):
        raise AssertionError("__getitem__ of a subclass")

    def reshape(self, *arguments, **options):
        raise AssertionError("reshape of a subclass")

    def fill(self, *arguments):
        raise AssertionError("fill of a subclass")


def matrix(array):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return array.view(np.matrix)


@pytest.mark.parametrize("kind", [matrix, lambda a: a.view(Contrary)], ids=["matrix", "contrary"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_out_may_be_of_an_array_subclass(release, kind, dtype):
    """The right entries are written, in their order, and nothing around them is."""
    plain = np.arange(60).astype(dtype).reshape(5, 12)
    expected = release(plain, rng=seeded(3))
    memory = np.full((9, 30), -77, dtype)
    places = {
        "contiguous": (slice(2, 4), slice(0, 30)),  # 60 entries in a row
        "strided": (slice(1, 6), slice(3, 27, 2)),
        "reversed": (slice(6, 1, -1), slice(14, 2, -1)),
    }
    for place in places.values():
        memory[:] = -77
        part = memory[place]
        target = kind(part.reshape(5, 12) if part.shape != (5, 12) else part)
        assert np.may_share_memory(target, memory)
        assert release(plain, out=target, rng=seeded(3)) is target
        np.testing.assert_array_equal(target.view(np.ndarray), expected)
        memory[place] = -77
        assert (memory == -77).all(), "written outside of out"
    work = plain.copy()
    in_place = kind(work)
    assert release(in_place, out=in_place, rng=seeded(3)) is in_place
    np.testing.assert_array_equal(work, expected)
    work[:] = plain
    release(work, out=kind(work), rng=seeded(3))
    np.testing.assert_array_equal(work, expected)


def test_a_matrix_is_never_one_dimensional(release):
    row = matrix(np.zeros((1, 5), np.int64))
    with pytest.raises(ValueError, match=r"^out: shape \(1, 5\): must be that of values, \(5,\)"):
        release(np.arange(5), out=row)
    assert not row.any()


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_out_may_be_a_memory_map(release, dtype, tmp_path):
    plain = np.arange(100_000).astype(dtype)
    expected = release(plain, rng=seeded(4))
    path = tmp_path / "noisy"
    mapped = np.memmap(path, dtype, "w+", shape=(plain.size + 2,))
    mapped[:] = -77
    target = mapped[1:-1]
    assert release(plain, out=target, rng=seeded(4)) is target
    mapped.flush()
    stored = np.fromfile(path, dtype)
    np.testing.assert_array_equal(stored[1:-1], expected)
    assert stored[0] == stored[-1] == -77
    mapped[1:-1] = plain
    release(target, out=target, rng=seeded(4))
    np.testing.assert_array_equal(target, expected)
    with pytest.raises(ValueError, match=r"^out: is read-only"):
        release(plain, out=np.memmap(path, dtype, "r")[1:-1])


# --- interrupts


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize(
    ("n", "threads"), [(50, 1), (1000, 1), (noise_draws.CHUNK + 100, 1), (noise_draws.CHUNK + 100, 2)]
)
def test_an_interrupt_leaves_no_value_without_noise(monkeypatch, dtype, n, threads):
    """Ctrl-C while the draws of the last chunk are settled: that chunk becomes zeros, those before it are done."""
    open_to_the_third_level(monkeypatch)
    last = n - n % noise_draws.CHUNK

    def draw(words, index, scale, *, two_sided):
        if index == last + 20:
            raise KeyboardInterrupt
        return index

    def block(words, number, count, sigma):
        if BLOCK * number >= last:
            raise KeyboardInterrupt
        return numbers_of_block(words, number, count, sigma)

    monkeypatch.setattr(exact, "geometric_draw", draw)
    monkeypatch.setattr(exact, "gaussian_block", block)
    monkeypatch.setattr(fastdp.support.threads, "_count", threads)
    values = (np.arange(n) + 10**9).astype(dtype)
    expected = values + np.arange(n) * (1 if dtype is np.int64 else 0.25)
    expected[last:] = 0
    for release in MECHANISMS.values():
        out, in_place, strided = np.full(n, -7, dtype), values.copy(), np.full(2 * n, -7, dtype)[::2]
        for source, target in ((values, out), (in_place, in_place), (values, strided)):
            with pytest.raises(KeyboardInterrupt):
                release(source, out=target)
        np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(in_place, expected)
        assert (strided == -7).all(), "written in one piece at the end, or not at all"


# --- the same bits on every machine


def fingerprint():
    """What a seed gives, in integers and floats, at scales that take 31, 47 and 63 bits."""
    rng, found = seeded(11), []
    ints, floats = np.arange(-1500, 1500), np.linspace(-40.0, 40.0, 3000)
    for scale in (0.4, 3.0, 2.0**14, 2.0**25, 2.0**39):
        found.append(fastdp.laplace(ints, sensitivity=scale, epsilon=1.0, rng=rng))
        found.append(fastdp.gaussian(ints, sensitivity=scale, rho=0.5, rng=rng))
    for resolution in (2.0**-2, 2.0**-20, 2.0**-35):
        found.append(fastdp.laplace(floats, sensitivity=1.0, epsilon=1.0, resolution=resolution, rng=rng))
        found.append(fastdp.gaussian(floats, sensitivity=1.0, epsilon=1.0, delta=1e-6, resolution=resolution, rng=rng))
    return hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest()


def test_same_bits_on_other_cpus(fingerprint_elsewhere):
    """Neither the width of the vectors nor a missing fma instruction changes a bit of a release."""
    assert fingerprint_elsewhere(__name__) == fingerprint()


def test_what_is_remembered_of_parameters_is_by_value_and_type():
    """True is no 1, however often 1 was right; what has no hash is taken or refused as ever."""
    values = np.arange(3)
    for _ in range(2):
        for one in (1, 1.0, np.int64(1), np.float32(1), Fraction(1), np.array(1)):
            assert fastdp.laplace(values, sensitivity=one, epsilon=one).shape == (3,)
            assert fastdp.gaussian(values, sensitivity=one, rho=one).shape == (3,)
        for name in ("sensitivity", "epsilon"):
            for wrong in (True, np.True_, [1], {}, "1", None, math.nan):
                with pytest.raises(ValueError, match=rf"^{name}=.*: must be"):
                    fastdp.laplace(values, **{"sensitivity": 1, "epsilon": 1, name: wrong})
        for neighbors in (["replace-one"], {}, None, "friends", np.array("replace-one")):
            with pytest.raises(ValueError, match=r"^neighbors=.*: must be one of 'replace-one', 'add-remove'$"):
                fastdp.laplace(values, sensitivity=1, epsilon=1, neighbors=neighbors)
            with pytest.raises(ValueError, match=r"^neighbors=.*: must be one of 'replace-one', 'add-remove'$"):
                fastdp.gaussian(values, sensitivity=1, rho=1, neighbors=neighbors)


class Changing(float):
    """A number that equals every other; what it is worth is read at each call."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def test_numbers_of_a_users_own_type_are_not_mistaken_for_others():
    """What is remembered is keyed by plain numbers alone."""
    with fastdp.Budget(epsilon=1e6) as budget:
        for sensitivity in (1.0, 100.0):
            fastdp.laplace([0], sensitivity=Changing(sensitivity), epsilon=1.0)
            fastdp.gaussian(
                [0],
                sensitivity=Changing(sensitivity),
                epsilon=1.0,
                delta=1e-6,
                budget=fastdp.Budget(epsilon=1, delta=0.1),
            )
    assert [row.parameters["sensitivity"] for row in budget.releases] == [1.0, 100.0]


def test_plans_of_one_scale_are_equal():
    assert noise_plans.laplace_plan(3.0) == noise_plans.laplace_plan(3.0) != noise_plans.laplace_plan(4.0)
    assert len({noise_plans.gaussian_plan(3.0), noise_plans.gaussian_plan(3.0)}) == 1
    assert noise_plans.laplace_plan(3.0) != noise_plans.gaussian_plan(3.0)
