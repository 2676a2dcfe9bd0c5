"""OpenDP measurements: the maps against exact quotients and OpenDP's own, the laws against fastdp's, chaining."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from importlib.metadata import version
from math import inf, isqrt, nextafter
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp.connect import opendp as connect
from fastdp.connect.opendp import library
from fastdp.randomness.keys import Randomness
from tests.oracles.privacy import range_rho

dp = pytest.importorskip("opendp.prelude")
VERSION = tuple(map(int, version("opendp").split(".")[:2]))
SCALES = [0.1, 0.5, 1.0, 3.0, 7.3, 1e4, 2.0**20 + 1 / 3]


@pytest.fixture(autouse=True)
def features() -> Iterator[None]:
    dp.enable_features("contrib", "honest-but-curious")
    yield
    dp.disable_features("contrib", "honest-but-curious")


def atom(T: str) -> Any:
    return dp.atom_domain(T=T, nan=False) if T[0] == "f" and VERSION >= (0, 13) else dp.atom_domain(T=T)


def vector(T: str, size: int | None = None) -> Any:
    return dp.vector_domain(atom(T), size=size)


def seeded() -> Randomness:
    return Randomness(seed=5)


def ulps(a: float, b: float) -> int:
    """How many floats lie between two positive ones."""
    return int(np.float64(b).view(np.int64) - np.float64(a).view(np.int64))


def least_above(x: Fraction) -> float:
    """The least float >= x."""
    nearest = float(x)
    return nearest if nearest >= x else nextafter(nearest, inf)


def noisy_max(space: tuple[Any, Any], measure: Any, scale: float) -> Any:
    if VERSION >= (0, 14):
        return dp.m.make_noisy_max(*space, measure, scale)
    return dp.m.make_report_noisy_max_gumbel(*space, scale, optimize="max")


# --- maps


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("T", ["i32", "i64"])
def test_the_laplace_map_on_integers_is_openDPs_to_the_bit(T: str, scale: float) -> None:
    space = vector(T), dp.l1_distance(T=T)
    ours, theirs = connect.make_laplace(*space, scale), dp.m.make_laplace(*space, scale)
    for d_in in (0, 1, 2, 3, 7, 100, 12345):
        truth = Fraction(d_in) / Fraction(scale)
        assert ours.map(d_in) == least_above(truth) == theirs.map(d_in)


@pytest.mark.parametrize("scale", SCALES)
def test_the_gaussian_map_on_integers_is_the_least_float(scale: float) -> None:
    space = vector("i64"), dp.l2_distance(T="f64")
    ours, theirs = connect.make_gaussian(*space, scale), dp.m.make_gaussian(*space, scale)
    for d_in in (0.0, 0.1, 1.0, 1.4142135623730951, 2.0, 77.7):
        truth = (Fraction(d_in) / Fraction(scale)) ** 2 / 2
        assert ours.map(d_in) == least_above(truth)
        assert 0 <= ulps(ours.map(d_in), theirs.map(d_in)) <= 4  # OpenDP rounds up after every operation, until 0.13


@pytest.mark.parametrize("k", [-30, -10, -3])
@pytest.mark.parametrize("scale", [0.3, 1.0, 12.5])
@pytest.mark.parametrize("size", [1, 3, 4, 1000])
def test_the_maps_on_floats_charge_the_rounding_as_openDP_does(size: int, scale: float, k: int) -> None:
    grid = Fraction(2) ** k
    laplace = vector("f64", size), dp.l1_distance(T="f64")
    ours, theirs = connect.make_laplace(*laplace, scale, k=k), dp.m.make_laplace(*laplace, scale, k=k)
    for d_in in (0.0, 0.1, 1.0, 2.75):
        # an L1 distance on the grid is an integer, of which OpenDP does not make use: up to one unit less
        least = (Fraction(d_in) // grid + size) * grid / Fraction(scale)
        assert ours.map(d_in) == least_above(least)
        assert ours.map(d_in) <= theirs.map(d_in) <= (ours.map(d_in) + float(grid) / scale) * (1 + 1e-14)
        if (Fraction(d_in) / grid).denominator == 1:
            assert 0 <= ulps(ours.map(d_in), theirs.map(d_in)) <= 3
    gaussian = vector("f64", size), dp.l2_distance(T="f64")
    ours, theirs = connect.make_gaussian(*gaussian, scale, k=k), dp.m.make_gaussian(*gaussian, scale, k=k)
    for d_in in (0.1, 1.0, 2.75):
        low = Fraction(isqrt(size << 200), 2**100)  # sqrt(size), to 2^-100
        least = ((Fraction(d_in) + low * grid) / Fraction(scale)) ** 2 / 2
        assert least <= Fraction(ours.map(d_in)) <= least * (1 + Fraction(1, 2**51))
        assert ours.map(d_in) <= theirs.map(d_in)  # OpenDP 0.12 charges n in place of sqrt(n)
        assert VERSION < (0, 14) or ulps(ours.map(d_in), theirs.map(d_in)) <= 12


def test_the_default_grid_adds_a_millionth_to_epsilon() -> None:
    for size in (1, 100, 10**5):
        space = vector("f64", size), dp.l1_distance(T="f64")
        assert 1.0 <= connect.make_laplace(*space, 1.0).map(1.0) <= 1 + 2.0**-20 + 1e-15
        space = vector("f64", size), dp.l2_distance(T="f64")
        assert 0.5 <= connect.make_gaussian(*space, 1.0).map(1.0) <= 0.5 * (1 + 2.0**-20 + 1e-15) ** 2


@pytest.mark.parametrize("monotonic", [False, True])
@pytest.mark.parametrize("scale", SCALES)
def test_the_maps_of_choices_agree_with_openDP(scale: float, monotonic: bool) -> None:
    space = vector("i64"), dp.linf_distance(T="i64", monotonic=monotonic)
    pure = dp.max_divergence()
    exponential, flip = connect.make_exponential_mechanism(*space, scale), connect.make_permute_and_flip(*space, scale)
    theirs = noisy_max(space, pure, scale)
    for d_in in (0, 1, 3, 100):
        truth = (1 if monotonic else 2) * Fraction(d_in) / Fraction(scale)
        assert exponential.map(d_in) == flip.map(d_in) == least_above(truth)
        assert 0 <= ulps(exponential.map(d_in), theirs.map(d_in)) <= 1
    concentrated = connect.make_exponential_mechanism(*space, scale, output_measure=dp.zero_concentrated_divergence())
    for d_in in (0, 1, 3):
        width = (1 if monotonic else 2) * Fraction(d_in) / Fraction(scale)
        assert concentrated.map(d_in) <= width**2 / 8  # what OpenDP gives
        if width < 300:
            truth = float(range_rho(float(width))) if width > 1e-9 else float(width**2 / 8)
            assert concentrated.map(d_in) == pytest.approx(truth, rel=1e-14)
            assert concentrated.map(d_in) >= truth * (1 - 1e-15)
        if VERSION >= (0, 14):
            theirs = noisy_max(space, dp.zero_concentrated_divergence(), scale)
            assert concentrated.map(d_in) <= theirs.map(d_in)


def test_a_map_refuses_what_is_no_distance() -> None:
    measurement = connect.make_laplace(connect.array_domain("i64"), dp.l1_distance(T=float), 1.0)
    for d_in in (-1.0, inf, float("nan")):
        with pytest.raises(Exception, match=r"d_in=.*must be >= 0 and finite"):
            measurement.map(d_in)


# --- laws: the same bits as the functions of this library


def test_noise_is_that_of_fastdp() -> None:
    counts, points = np.arange(1000), np.linspace(-3, 3, 1000)
    noisy = connect.make_laplace(connect.array_domain("i64"), dp.l1_distance(T=float), 3.5, rng=seeded())
    assert (noisy(counts) == fastdp.laplace(counts, sensitivity=3.5, epsilon=1.0, rng=seeded())).all()
    noisy = connect.make_gaussian(connect.array_domain("i64"), dp.l2_distance(T=float), 3.5, rng=seeded())
    assert (noisy(counts) == fastdp.gaussian(counts, sensitivity=3.5, rho=0.5, rng=seeded())).all()
    # on floats: integer noise of scale 2^10 scale, in units of 2^-10
    noisy = connect.make_laplace(connect.array_domain("f64", 1000), dp.l1_distance(T=float), 3.5, k=-10, rng=seeded())
    on_grid = np.rint(points * 1024).astype(np.int64)
    want = fastdp.laplace(on_grid, sensitivity=3584, epsilon=1.0, rng=seeded()) / 1024
    assert (noisy(points) == want).all()


def test_choices_are_those_of_fastdp() -> None:
    scores = np.arange(50) % 17
    space = connect.array_domain("i64"), dp.linf_distance(T=float)
    rng, same = seeded(), seeded()
    choose = connect.make_exponential_mechanism(*space, 2.0, rng=rng)
    want = [fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=1.0, rng=same) for _ in range(50)]
    assert [choose(scores) for _ in range(50)] == want
    choose = connect.make_permute_and_flip(*space, 2.0, rng=rng)
    want = [fastdp.permute_and_flip(scores, sensitivity=1, epsilon=1.0, rng=same) for _ in range(50)]
    assert [choose(scores) for _ in range(50)] == want
    assert len(set(want)) > 1


@pytest.mark.parametrize("T", ["i32", "i64", "u32", "f32", "f64"])
def test_lists_and_numbers_come_back_as_such(T: str) -> None:
    make = float if T[0] == "f" else int
    far = connect.make_laplace(vector(T, 3), dp.l1_distance(T=T), 0.01)([make(5), make(60), make(7)])
    assert isinstance(far, list)
    assert far == pytest.approx([5, 60, 7], abs=0.5)
    one = connect.make_gaussian(atom(T), dp.absolute_distance(T=T), 0.01)(make(9))
    assert isinstance(one, make)
    assert one == pytest.approx(9, abs=0.5)


def test_a_list_of_another_length_than_was_declared_is_refused() -> None:
    """The rounding of so many floats is charged, so that of more would not be."""
    floats = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=3)
    measurement = connect.make_laplace(floats, dp.l1_distance(T=float), 1.0)
    assert len(measurement([1.0, 2.0, 3.0])) == 3
    for wrong in ([12345.5] * 4, [12345.5] * 2):
        with pytest.raises(
            Exception, match=rf"{len(wrong)} entries: must be 3, the size of the input domain"
        ) as refused:
            measurement(wrong)
        assert "12345" not in str(refused.value)


def test_sums_beyond_a_narrow_type_become_its_ends() -> None:
    measurement = connect.make_laplace(vector("i32"), dp.l1_distance(T="i32"), 1e6, rng=seeded())
    values = measurement([2**31 - 1, -(2**31)] * 50)
    assert max(values) == 2**31 - 1
    assert min(values) == -(2**31)
    values = connect.make_laplace(vector("u32"), dp.l1_distance(T="u32"), 10.0, rng=seeded())([0] * 100)
    assert min(values) == 0 < max(values)


# --- arrays


def test_arrays_make_no_lists_and_no_copies_of_the_input() -> None:
    values = np.zeros(1 << 20, np.int64)
    measurement = connect.make_laplace(connect.array_domain("i64"), dp.l1_distance(T=float), 1.0)
    measurement(values[:1000])
    tracemalloc.start()
    noisy = measurement(values)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(noisy, np.ndarray)
    assert not np.shares_memory(noisy, values)
    assert not values.any()
    assert peak < 2.5 * values.nbytes  # the result, and what its noise takes; a list alone would be 4 times the array


def test_an_array_of_another_kind_is_refused_and_not_shown() -> None:
    measurement = connect.make_laplace(connect.array_domain("f64", 3), dp.l1_distance(T=float), 1.0)
    for wrong in (np.arange(3), np.full(4, 12345.5), np.full((1, 3), 12345.5), [12345.5] * 3):
        with pytest.raises(Exception, match=r"must be a numpy array float64\[3\]") as refused:
            measurement(wrong)
        assert "12345" not in str(refused.value)
    for bad in (np.nan, np.inf):
        with pytest.raises(Exception, match="DomainError"):
            measurement(np.array([1.0, bad, 2.0]))


def test_membership_is_dtype_shape_and_finiteness() -> None:
    domain = connect.array_domain("f64", 2)
    assert domain.member(np.array([1.0, 2.0]))
    assert not domain.member(np.array([1.0, np.nan]))
    assert not domain.member(np.array([1, 2]))
    assert not domain.member(np.array([1.0]))
    assert connect.array_domain("i64").member(np.arange(9))
    assert str(connect.array_domain("i64")) != str(connect.array_domain("i64", 9))


# --- chaining and composing


def counts_by_code() -> Any:
    """A transformation from records to four counts."""
    return dp.t.make_user_transformation(
        connect.array_domain("i64"),
        dp.symmetric_distance(),
        connect.array_domain("i64", 4),
        dp.l1_distance(T=float),
        lambda codes: np.bincount(codes, minlength=4),
        float,
    )


def test_measurements_chain_after_transformations_and_before_functions() -> None:
    counts = counts_by_code()
    chained = counts >> connect.then_laplace(0.01) >> (lambda noisy: noisy.max())
    assert chained(np.array([0, 1, 1, 3])) == 2
    assert chained.map(2) == connect.make_laplace(counts.output_domain, counts.output_metric, 0.01).map(2.0)
    categories = dp.t.then_count_by_categories(categories=["a", "b"], MO=dp.L1Distance["f64"])
    chain = (dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()) >> categories
    assert (chain >> connect.then_laplace(0.01))(["a", "b", "a"]) == [2, 1, 0]
    with pytest.raises(Exception, match=r"size=4[\s\S]*size=5"):  # OpenDP compares the domains
        counts >> connect.make_laplace(connect.array_domain("i64", 5), dp.l1_distance(T=float), 1.0)


def test_choices_chain() -> None:
    counts = dp.t.make_user_transformation(
        connect.array_domain("i64"),
        dp.symmetric_distance(),
        connect.array_domain("i64", 4),
        dp.linf_distance(T=float, monotonic=True),
        lambda codes: np.bincount(codes, minlength=4),
        float,
    )
    codes = np.repeat([0, 1, 2, 3], [100, 2000, 10, 10])
    for then in (connect.then_exponential_mechanism, connect.then_permute_and_flip):
        choose = counts >> then(10.0)
        assert choose(codes) == 1
        assert choose.map(1) == least_above(1 / Fraction(10.0))


def test_measurements_compose_under_openDPs_adaptive_composition() -> None:
    make = getattr(dp.c, "make_adaptive_composition", None) or dp.c.make_sequential_composition
    space = connect.array_domain("i64"), dp.l1_distance(T=float)
    noisy = connect.make_laplace(*space, 2.0)
    composed = make(*space, dp.max_divergence(), d_in=1.0, d_mids=[0.5, 0.5, 0.25])
    assert composed.map(1.0) == 1.25
    ask = composed(np.array([10_000, 0]))
    first = ask(noisy)
    scale = 2.0 if first[0] > 5_000 else 100.0  # chosen after the first answer
    assert abs(int(ask(connect.make_laplace(*space, scale))[0]) - 10_000) < 200
    with pytest.raises(Exception, match=r"budget|d_mid|exceed"):
        ask(noisy)  # 0.5 where 0.25 is left
    ask(connect.make_laplace(*space, 4.0))
    with pytest.raises(dp.OpenDPException):
        ask(connect.make_laplace(*space, 4.0))


def test_concentrated_measurements_compose_too() -> None:
    make = getattr(dp.c, "make_adaptive_composition", None) or dp.c.make_sequential_composition
    space = connect.array_domain("i64"), dp.l2_distance(T=float)
    composed = make(*space, dp.zero_concentrated_divergence(), d_in=1.0, d_mids=[0.125] * 3)
    ask = composed(np.arange(4))
    for _ in range(3):
        assert ask(connect.make_gaussian(*space, 2.0)).shape == (4,)
    assert composed.map(1.0) == 0.375
    approximate = dp.c.make_zCDP_to_approxDP(connect.make_gaussian(*space, 2.0))
    assert approximate.map(1.0).epsilon(1e-6) == pytest.approx(fastdp.ZCDP(0.125).to_approx(1e-6).epsilon, rel=0.05)


# --- refusals


def test_wrong_spaces_and_parameters() -> None:
    ints, l1 = vector("i64"), dp.l1_distance(T="i64")
    for scale in (0, -1.0, inf, float("nan"), "a"):
        with pytest.raises(ValueError, match="scale="):
            connect.make_laplace(ints, l1, scale)
    with pytest.raises(ValueError, match=r"scale=1e-07: the noise scale must be between"):
        connect.make_laplace(ints, l1, 1e-7)
    with pytest.raises(ValueError, match=r"input_metric=L2Distance\(f64\): must be L1Distance"):
        connect.make_laplace(ints, dp.l2_distance(T=float), 1.0)
    with pytest.raises(ValueError, match=r"must be L2Distance"):
        connect.make_gaussian(ints, l1, 1.0)
    with pytest.raises(ValueError, match="must be linf_distance"):
        connect.make_permute_and_flip(ints, l1, 1.0)
    with pytest.raises(ValueError, match="must be a vector of scores"):
        connect.make_exponential_mechanism(atom("i64"), dp.absolute_distance(T="i64"), 1.0)
    with pytest.raises(ValueError, match=r"k=-3: must be None for integers"):
        connect.make_laplace(ints, l1, 1.0, k=-3)
    with pytest.raises(ValueError, match="must have a size"):
        connect.make_laplace(vector("f64"), dp.l1_distance(T="f64"), 1.0)
    with pytest.raises(ValueError, match=r"input_domain=.*: must be atom_domain or vector_domain"):
        connect.make_laplace(dp.vector_domain(dp.atom_domain(T=str)), l1, 1.0)
    measure = dp.approximate(dp.max_divergence())
    with pytest.raises(ValueError, match=r"output_measure="):
        connect.make_exponential_mechanism(ints, dp.linf_distance(T="i64"), 1.0, output_measure=measure)
    with pytest.raises(ValueError, match="T='i32': must be one of 'i64', 'f64'"):
        connect.array_domain("i32")
    if VERSION >= (0, 13):
        with pytest.raises(ValueError, match=r"must not have NaNs"):
            connect.make_laplace(dp.vector_domain(dp.atom_domain(T=float), size=2), dp.l1_distance(T=float), 1.0)


def test_features_are_the_users_to_enable() -> None:
    space = vector("i64"), dp.l1_distance(T="i64")
    dp.disable_features("honest-but-curious")
    with pytest.raises(dp.OpenDPException, match="honest-but-curious"):
        connect.make_laplace(*space, 1.0)
    with pytest.raises(dp.OpenDPException, match="honest-but-curious"):
        connect.array_domain("i64")
    dp.enable_features("honest-but-curious")  # for the fixture to disable


def test_a_missing_or_old_opendp_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "version", lambda name: "0.11.1")
    with pytest.raises(ImportError, match=r"opendp 0\.11\.1: must be at least 0\.12: pip install 'fastdp\[opendp\]'"):
        connect.array_domain("i64")
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(ImportError, match=r"pip install 'fastdp\[opendp\]'"):
        connect.array_domain("i64")
