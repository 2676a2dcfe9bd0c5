"""Bad input: an error that names the parameter, its value and the rule, before anything is drawn or written."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import fastdp

INTS, FLOATS = np.arange(5), np.linspace(0.0, 1.0, 5)


def laplace(values=INTS, sensitivity=1, epsilon=1.0, **options):
    return fastdp.laplace(values, sensitivity=sensitivity, epsilon=epsilon, **options)


def gaussian(values=INTS, sensitivity=1, **options):
    price = {} if options.keys() & {"rho", "epsilon", "delta"} else {"rho": 0.5}
    return fastdp.gaussian(values, sensitivity=sensitivity, **price, **options)


NOT_POSITIVE = [0, 0.0, -0.0, -1.0, -5, math.nan, math.inf, -math.inf, np.float64(-2.5), 10**400]
NOT_NUMBERS = ["1", None, b"1", [1.0], (1,), {}, True, np.True_, 1 + 0j, Decimal("0.5"), np.array([1.0]), object()]


@pytest.mark.parametrize("value", NOT_POSITIVE)
@pytest.mark.parametrize("name", ["sensitivity", "epsilon"])
def test_parameters_must_be_positive_and_finite(name, value):
    for values in (INTS, FLOATS, 3):
        with pytest.raises(ValueError, match=rf"^{name}=.*: must be "):
            laplace(values, **{name: value})
    options = {"sensitivity": 1, "epsilon": 1.0, "delta": 1e-6} | {name: value}
    with pytest.raises(ValueError, match=rf"^{name}=.*: must be "):
        fastdp.gaussian(INTS, **options)


def test_the_message_is_name_value_rule():
    with pytest.raises(ValueError, match=r"^epsilon=-1\.0: must be > 0 and finite$"):
        laplace(epsilon=-1.0)
    with pytest.raises(ValueError, match=r"^sensitivity='1': must be a number$"):
        laplace(sensitivity="1")
    with pytest.raises(ValueError, match=r"^delta=1\.0: must be between 0 and 1, both excluded$"):
        gaussian(epsilon=1.0, delta=1.0)


@pytest.mark.parametrize("value", NOT_NUMBERS)
@pytest.mark.parametrize("name", ["sensitivity", "epsilon"])
def test_parameters_must_be_numbers(name, value):
    with pytest.raises(ValueError, match=rf"^{name}=.*: must be a number$"):
        laplace(**{name: value})


@pytest.mark.parametrize("value", [v for v in [*NOT_POSITIVE, *NOT_NUMBERS] if v is not None])
def test_rho_and_delta_are_checked(value):
    with pytest.raises(ValueError, match=r"^rho="):
        gaussian(rho=value)
    with pytest.raises(ValueError, match=r"^delta="):
        gaussian(epsilon=1.0, delta=value)


def test_the_gaussian_takes_one_price():
    for options in ({"epsilon": 1.0}, {"delta": 1e-6}, {"epsilon": None, "delta": None}):
        with pytest.raises(ValueError, match="give both, or rho instead"):
            gaussian(**options)
    for options in ({"rho": 0.5, "epsilon": 1.0}, {"rho": 0.5, "delta": 1e-6}):
        with pytest.raises(ValueError, match="give either rho, or epsilon and delta"):
            gaussian(**options)
    for delta in (1, 1.0, 1.5):
        with pytest.raises(ValueError, match=r"^delta=.*: must be between 0 and 1, both excluded"):
            gaussian(epsilon=1.0, delta=delta)
    with pytest.raises(ValueError, match=r"^epsilon=1000\.0: must be at most 700"):
        gaussian(epsilon=1000.0, delta=1e-6)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon"), [(1, 2.0**21), (2.0**41, 1), (1e-300, 1e300), (1e300, 1e-300), (5e-324, 1.0)]
)
def test_scales_beyond_the_range_are_refused(sensitivity, epsilon):
    with pytest.raises(ValueError, match=r"sensitivity / epsilon=.*: the noise scale must be between 2\^-20 and 2\^40"):
        laplace(sensitivity=sensitivity, epsilon=epsilon)


def test_grids_beyond_the_range_are_refused():
    for sensitivity in (1e-300, 1e300):
        with pytest.raises(ValueError, match=r"^sensitivity=.*leaves the range of float64"):
            laplace(FLOATS, sensitivity=sensitivity)
    with pytest.raises(ValueError, match=r"the noise scale must be between"):
        laplace(FLOATS, resolution=2.0**-60)
    with pytest.raises(ValueError, match=r"the noise scale must be between"):
        gaussian(FLOATS, rho=0.5, resolution=2.0**-60)


def test_more_floats_than_a_tiny_epsilon_has_room_for():
    """Their rounding alone would take noise beyond the largest scale: said so, and not as a scale."""
    values = np.zeros(10**6)
    with pytest.raises(ValueError, match=r"^epsilon=1e-06: too small for n=1000000 floats"):
        laplace(values, epsilon=1e-6)
    with pytest.raises(ValueError, match=r"^\(sensitivity / resolution \+ n\) / epsilon=.*: the noise scale must be"):
        laplace(values, epsilon=1e-6, resolution=2.0**-20)
    assert laplace(np.zeros(10**6, np.int64), epsilon=1e-6).shape == (10**6,)
    assert gaussian(values, epsilon=1e-6, delta=1e-9).shape == (10**6,)


@pytest.mark.parametrize("sensitivity", [5e-324, 1e-322, 2.0**-1022, 1e-300])
def test_a_sensitivity_next_to_nothing(sensitivity):
    for options in ({}, {"epsilon": 1.0, "delta": 1e-6}):
        with pytest.raises(ValueError, match=r"^sigma=.*: the noise scale must be between"):
            gaussian(INTS, sensitivity=sensitivity, **options)
        for resolution in (None, 2.0**-900, 1.0):
            with pytest.raises(ValueError, match=r"^sensitivity=.*leaves the range of float64"):
                gaussian(FLOATS, sensitivity=sensitivity, resolution=resolution, **options)
    with pytest.raises(ValueError, match=r"^sensitivity / epsilon=.*: the noise scale must be between"):
        laplace(INTS, sensitivity=sensitivity)
    for resolution in (None, 2.0**-900, 1.0):
        with pytest.raises(ValueError, match=r"^sensitivity=.*leaves the range of float64"):
            laplace(FLOATS, sensitivity=sensitivity, resolution=resolution)


@pytest.mark.parametrize("n", [0, 1, 2])
@pytest.mark.parametrize("resolution", [2.0**30, 2.0**100])
def test_a_coarse_grid_is_no_error_for_few_entries_or_none(resolution, n):
    values = np.zeros(n)
    assert laplace(values, sensitivity=1.0, resolution=resolution).shape == (n,)
    assert gaussian(values, sensitivity=1.0, resolution=resolution).shape == (n,)
    assert gaussian(values, sensitivity=1.0, epsilon=1.0, delta=1e-6, resolution=resolution).shape == (n,)


@pytest.mark.parametrize("tiny", [5e-324, 1e-322, 2.0**-1022, 1e-300, 9.99e-101])
@pytest.mark.parametrize("values", [INTS, FLOATS], ids=["integers", "floats"])
def test_gaussian_parameters_that_float64_does_not_calibrate(tiny, values):
    for options in ({"epsilon": tiny, "delta": 1e-6}, {"epsilon": tiny, "delta": tiny}):
        with pytest.raises(ValueError, match=r"^epsilon=.*: must be at least 1e-100"):
            gaussian(values, **options)
    with pytest.raises(ValueError, match=r"^delta=.*: must be at least 1e-100"):
        gaussian(values, epsilon=1.0, delta=tiny)


SMALL = [2e-100, 1e-60, 1e-30, 1e-14, 1e-6]


@pytest.mark.parametrize("values", [INTS, FLOATS], ids=["integers", "floats"])
@pytest.mark.parametrize("epsilon", SMALL)
@pytest.mark.parametrize("delta", SMALL)
def test_small_gaussian_parameters_give_noise_or_a_clear_error(values, epsilon, delta):
    if max(epsilon, delta) > 1e-11:
        assert gaussian(values, epsilon=epsilon, delta=delta).shape == values.shape
    else:
        with pytest.raises(ValueError, match=r"too small for Gaussian noise|the noise scale must be between"):
            gaussian(values, epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("values", [INTS, FLOATS], ids=["integers", "floats"])
def test_one_tiny_gaussian_parameter_is_taken(values):
    assert gaussian(values, epsilon=2e-100, delta=1e-6).shape == values.shape
    assert gaussian(values, epsilon=1.0, delta=2e-100).shape == values.shape


@pytest.mark.parametrize("resolution", [0.3, 3, 0, -1.0, math.nan, "1", True, math.inf])
def test_the_resolution_is_a_power_of_two(resolution):
    with pytest.raises(ValueError, match=r"^resolution="):
        laplace(FLOATS, resolution=resolution)
    with pytest.raises(ValueError, match=r"^resolution="):
        gaussian(FLOATS, rho=0.5, resolution=resolution)


def test_integers_take_no_resolution():
    with pytest.raises(ValueError, match=r"^resolution=0\.5: must be None for integers"):
        laplace(INTS, resolution=0.5)
    with pytest.raises(ValueError, match=r"^resolution=1: must be None for integers"):
        gaussian(INTS, rho=1, resolution=1)


@pytest.mark.parametrize(
    "values",
    [
        "abc",
        ["1", "2"],
        None,
        [None, 1],
        np.array([1, 2], dtype=object),
        [10**30],
        np.array([1 + 2j]),
        np.array(["2026-01-01"], dtype="datetime64[D]"),
        np.array([1.0], dtype=np.longdouble),
        [[1, 2], [3]],
        np.zeros(3, dtype=[("a", int)]),
        np.ma.masked_array([1, 2], mask=[0, 1]),
        {1, 2},
        object(),
    ],
)
def test_values_must_be_numbers(values):
    for mechanism in (laplace, gaussian):
        with pytest.raises(ValueError, match=r"^values: "):
            mechanism(values)


@pytest.mark.parametrize(
    "values",
    [
        [2**60 + 1, 0.5],
        [0.5, -(2**60) - 1],
        (2**53 + 3, 1.5),
        [[2**62, 1.0], [2.0, 3.0]],
        [np.array([2**60 + 1]), np.array([0.5])],
        [2**63, -1],
        [2**53 + 1, 0.5],
        [np.int64(2**60 + 1), 0.5],
        [np.array(2**60 + 1), 0.5],
    ],
    ids=repr,
)
def test_a_list_of_floats_with_integers_that_floats_would_round_is_refused(values):
    for mechanism in (laplace, gaussian):
        with pytest.raises(ValueError, match=r"^values: .*integers beyond 2\^53.*must be an array"):
            mechanism(values)


@pytest.mark.parametrize(
    "values", [[1e300, 0.5], [2.0**60 + 4096, 1], [2**53, 0.5], [-(2**53), 0.5], [3, 0.5], [[1e18], [7]]], ids=repr
)
def test_a_list_of_floats_may_hold_large_floats_and_small_integers(values):
    for mechanism in (laplace, gaussian):
        found = mechanism(values)
        assert found.dtype == np.float64
        assert np.abs(found - np.array(values, float)).max() < 200


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 1, 4097, 99_999])
def test_values_must_be_finite_and_the_error_shows_none_of_them(bad, place):
    values = np.full(100_000, 123.456)
    values[place] = bad
    out = np.full(100_000, 7.0)
    for mechanism in (laplace, gaussian):
        with pytest.raises(fastdp.DomainError, match=r"^values: must be finite") as caught:
            mechanism(values, out=out)
        assert "123" not in str(caught.value)
        assert "nan" not in str(caught.value)
        assert (out == 7.0).all(), "nothing is half-written"
        with pytest.raises(fastdp.DomainError):
            mechanism(values, out=values)
        assert (np.delete(values, place) == 123.456).all()
    with pytest.raises(fastdp.DomainError):
        laplace(bad)


def test_out_is_checked_before_anything_is_drawn():
    class Watched(fastdp.Randomness):
        def key(self):
            raise AssertionError("a key was asked for")

    readonly = INTS.copy()
    readonly.flags.writeable = False
    for out, rule in (
        (readonly, "read-only"),
        (np.empty(4, np.int64), "shape"),
        (np.empty((5, 1), np.int64), "shape"),
        (np.empty(5), "dtype"),
        (np.empty(5, ">i8"), "dtype"),
        (np.empty(5, np.int32), "dtype"),
        ([0] * 5, "must be a numpy array"),
        (np.ma.zeros(5, np.int64), "must be a numpy array"),
    ):
        for mechanism in (laplace, gaussian):
            with pytest.raises(ValueError, match=f"^out: .*{rule}"):
                mechanism(INTS, out=out, rng=Watched())
    for options in ({"epsilon": -1}, {"sensitivity": 0}):
        with pytest.raises(ValueError, match="must be"):
            laplace(INTS, rng=Watched(), **options)
    with pytest.raises(AssertionError, match="a key was asked for"):
        laplace(INTS, rng=Watched())


@pytest.mark.parametrize("rng", [7, "secure", np.random.default_rng(0), object(), fastdp.Randomness])
def test_rng_must_be_fastdps_own(rng):
    for mechanism in (laplace, gaussian):
        with pytest.raises(ValueError, match=r"^rng=.*: must be a fastdp.Randomness or None"):
            mechanism(rng=rng)


def test_numbers_of_every_exact_kind_are_taken():
    for one in (1, 1.0, np.int8(1), np.uint64(1), np.float32(1), Fraction(1), np.array(1.0)):
        assert laplace(sensitivity=one, epsilon=one).shape == (5,)


def test_parameters_are_rounded_toward_more_noise():
    from fastdp.support.checks import positive

    third = Fraction(1, 3)
    assert (
        Fraction(positive("epsilon", third, toward=0))
        < third
        < Fraction(positive("sensitivity", third, toward=math.inf))
    )
    for kind in (int, np.int64, np.uint64, np.array):
        assert positive("epsilon", kind(2**53 + 1), toward=0) == 2.0**53
        assert positive("sensitivity", kind(2**53 + 1), toward=math.inf) == 2.0**53 + 2
        assert positive("epsilon", kind(2**53 + 3), toward=0) == 2.0**53 + 2
        assert positive("sensitivity", kind(2**53 + 3), toward=math.inf) == 2.0**53 + 4


def test_keywords_are_keywords():
    with pytest.raises(TypeError):
        fastdp.laplace(INTS, 1, 1.0)
    with pytest.raises(TypeError):
        fastdp.gaussian(INTS, 1, 0.5)


@pytest.mark.parametrize("value", [0, 1, 0.0, 1.0, -0.5, 1.5, math.inf, math.nan])
def test_a_probability_has_one_rule(value):
    for call in (
        lambda: fastdp.bounds.median(domain_bits=8, epsilon=1.0, beta=value),
        lambda: fastdp.compose(fastdp.PureDP(1.0), delta=value),
    ):
        with pytest.raises(ValueError, match=r"^(beta|delta)=.*: must be between 0 and 1, both excluded"):
            call()
    if value:
        with pytest.raises(ValueError, match=r"^delta=.*: must be between 0 and 1, 1 excluded$"):
            fastdp.ApproxDP(1.0, value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, None], "an entry is neither an int nor a float: must be integers of at most 64 bits or floats"),
        ([2**70, None], "an entry is neither an int nor a float: must be"),
        ([1, 2**70], "an integer of more than 64 bits: must be integers of at most 64 bits or floats"),
        (2**70, "an integer of more than 64 bits: must be"),
        ({1, 2}, "type set: must be a number or an array of numbers$"),
        ((i for i in range(3)), "type generator: must be a number or an array of numbers$"),
        (np.array([1, None], object), r"dtype object: must be .*; convert with \.astype\(float\)$"),
    ],
)
def test_what_numpy_makes_objects_of_is_refused_by_what_it_is(values, message):
    """A list and an int have no dtype to convert."""
    with pytest.raises(ValueError, match=f"^values: {message}"):
        fastdp.laplace(values, sensitivity=1, epsilon=1.0)


def test_strings_are_refused_as_strings_before_any_warning():
    for values in (np.array(["a"]), np.array(["a", 1], object), pd.Series(["a"]), pd.DataFrame({"x": ["a"]})):
        for call in (
            lambda values=values: fastdp.median(values, epsilon=0.01),
            lambda values=values: fastdp.laplace(values, sensitivity=1, epsilon=1.0),
        ):
            with pytest.raises(
                ValueError, match=r"^(values|column 'x'): (column of strings: |d?type (str|<U1): must be )"
            ):
                call()
    with pytest.raises(ValueError, match=r"^values: a list of strings: must be numbers$"):
        fastdp.median(["a"], domain_bits=8, epsilon=1.0)
    with pytest.raises(ValueError, match=r"^values: a mapping: must be an array of numbers, such as list"):
        fastdp.laplace({"a": 1}, sensitivity=1, epsilon=1.0)
    with fastdp.Budget(epsilon=1) as budget, pytest.raises(fastdp.DomainError, match="missing entries"):
        fastdp.median(pd.Series([1, None], dtype="Int64"), epsilon=0.01)
    assert not budget.releases


def test_errors_about_records_name_their_parameter():
    with pytest.raises(ValueError, match=r"^X: type Series: must be .*interface$"):
        fastdp.vector_mean(pd.Series([1.0]), clip=1, epsilon=1.0)
    with pytest.raises(ValueError, match=r"^X: shape \(2,\): .* X\[:, None\]$"):
        fastdp.vector_mean(np.ones(2), clip=1, epsilon=1.0)
    domain = fastdp.Domain(a=2)
    for workload in (3, "a", [], [["a"], ["a"]]):
        with pytest.raises(ValueError, match=r"^workload: "):
            fastdp.release_marginals(np.zeros((9, 1), int), domain, workload, epsilon=1.0, delta=1e-6)
    with pytest.raises(fastdp.losses.MissingBound, match=r"^loss: Logistic\(\) needs x_norm=, [^;]*$"):
        fastdp.private_erm(
            np.ones((9, 2)), np.ones(9), loss=fastdp.losses.Logistic(), over=fastdp.sets.Ball(1), epsilon=1, delta=1e-6
        )
    assert f"{fastdp.losses.MissingBound}" == "<class 'fastdp.losses.MissingBound'>"


def test_dir_lists_what_is_public():
    assert {*fastdp.__all__, "audit", "bounds", "kernels", "losses", "privacy", "records", "sets", "statistics"} == {
        *dir(fastdp)
    }


# --- counts: a largest value, or an estimate, and the error before work begins

PAIR = fastdp.Domain(a=2, c=4)
UNIFORM = fastdp.SyntheticDistribution(np.full(8, 0.125), PAIR)
ONE_STEP = {
    "loss": fastdp.losses.SquaredDistance(x_norm=1.0), "over": fastdp.sets.Ball(1.0), "epsilon": 1.0, "delta": 1e-6,
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: fastdp.bounds.quantiles([0.5], 100, epsilon=1, beta=5e-324), r"^beta=5e-324: must be at least"),
        (lambda: fastdp.bounds.interior_point_n(64, epsilon=5e-324, beta=0.1), r"^epsilon=5e-324: must be greater"),
        (lambda: fastdp.Domain.binary(10**6), r"^d=1000000: must be at most 16,384$"),
        (lambda: fastdp.Domain.binary(10**4300), r"^d=<int of 14,285 bits>: must be at most 16,384$"),
        (lambda: fastdp.Domain(c=range(10**12)), r"^c: type range: must be at most 4,194,304$"),
        (lambda: fastdp.Domain(dict.fromkeys(map(str, range(20_000)), 2)), r"^attributes: must be .* at most 16,384$"),
        (lambda: fastdp.marginals(fastdp.Domain.binary(40), 20), r"^k=20: 137,846,528,820 tables of .*: must be at"),
        (lambda: fastdp.marginals(fastdp.Domain.binary(9000), 4500), r"^k=4500: must be such that there are at most"),
        (lambda: fastdp.marginals(fastdp.Domain.binary(9000), 8999), r"^k=8999: 9,000 tables of .*: must be at most"),
        (lambda: selection(size=10**9), r"^size=1000000000: must be at most 134,217,728$"),
        (lambda: fastdp.top_k(zeros, 10**9, candidates=10**9, sensitivity=1, epsilon=1.0), r"^k=1000000000: must be"),
        (lambda: fastdp.GumbelMax(k=10**9, sensitivity=1, epsilon=1.0), r"^k=1000000000: must be at most 16,777,216$"),
        (lambda: selection(zeros, candidates=10**15), r"^candidates=1000000000000000: must be .* at most 2\^40$"),
        (lambda: UNIFORM.sample(10**13), r"^n=10000000000000: must be smaller: 2 columns of so many "),
        (lambda: UNIFORM.to_frame(10**13), r"^n=10000000000000: must be smaller: .* half of the memory$"),
        (lambda: fastdp.Randomness().words(10**14), r"^n=100000000000000: must be smaller: so many words would take"),
        (lambda: fastdp.Randomness(10**4300), r"^seed=<int of 14,285 bits>: must have at most 4,096 bits$"),
        (lambda: fastdp.median([1], domain_bits=10**7, epsilon=1.0), r"^domain_bits=10000000: must be at most"),
        (lambda: fastdp.bounds.learn_box(1000, 2, epsilon=1.0, beta=5e-324), r"^beta=5e-324: must be at least 1e-250$"),
        (lambda: fastdp.bounds.learn_conjunction_n(9, epsilon=1.0, error=1e-300), r"^error=1e-300: is out of reach"),
        (lambda: fastdp.median(range(10**15), epsilon=1.0), r"^values=<range of length .*>: must be smaller: "),
        (lambda: descent(steps=10**9), r"^steps=1000000000: must be at most 16,777,216$"),
        (lambda: fastdp.sets.Simplex(dimension=10**12), r"^dimension=1000000000000: must be at most 16,777,216$"),
        (lambda: fastdp.sets.Box(0, 1).of_dimension(10**12), r"^d=1000000000000: must be at most 16,777,216$"),
        (lambda: fastdp.bounds.learn_box(10, 10**18, epsilon=1.0), r"^d=1000000000000000000: must be at most"),
        (lambda: fastdp.bounds.top_k(10**4300, 1, sensitivity=1, epsilon=1.0), r"^candidates=<int of .*: must be at"),
        (lambda: fastdp.bounds.learn_conjunction(9, 10**6, k=10**5, epsilon=1.0, method="exhaustive"), r"^method="),
        (lambda: fastdp.PureDP(1.0).group(10**4300), r"^size=<int of 14,285 bits>: must be at most"),
        (lambda: fastdp.set_num_threads(10**9), r"^n=1000000000: must be an integer >= 1, at most 4,096$"),
        (lambda: UNIFORM.answer_many(range(10**12)), r"^queries: type range: must be at most 4,194,304$"),
        (lambda: fastdp.Linear(range(10**15)), r"^values: type range: must be numbers in \[0, 1\]"),
        (lambda: fastdp.laplace(range(10**15), sensitivity=1, epsilon=1.0), r"^values: type range: must be a number"),
        (lambda: laplace(sensitivity=10**4300), r"^sensitivity=<int of 14,285 bits>: must be below 2\^1024$"),
    ],
)  # fmt: skip
def test_counts_have_a_largest_value(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def zeros(start, stop):
    return np.zeros(stop - start)


def selection(scores=(1.0, 2.0), **options):
    return fastdp.exponential_mechanism(scores, sensitivity=1, epsilon=1.0, **options)


def descent(**options):
    return fastdp.noisy_projected_gradient_descent(np.zeros((3, 2)), **ONE_STEP, **options)


def test_counts_below_the_largest_are_taken():
    assert len(fastdp.Domain.binary(16_384)) == 16_384
    assert len(fastdp.marginals(fastdp.Domain.binary(300), 2)) == 4 * math.comb(300, 2)
    assert fastdp.sets.Simplex(dimension=10**4).net_size(1e-9)[0] == 2.0**1000
    assert fastdp.bounds.laplace(sensitivity=1, epsilon=1.0, count=10**30) > 60
    assert fastdp.bounds.learn_conjunction(10**6, 10**6, k=5 * 10**5, epsilon=1.0) == 1.0


# --- what is not what it says, or raises when it is asked


class Raising:
    """Each of its methods raises."""

    def _raise(self, *_, **__):
        raise RuntimeError("secret")

    __repr__ = __len__ = __bool__ = __eq__ = __hash__ = __float__ = __index__ = __iter__ = __array__ = _raise
    __getattr__ = __fspath__ = __lt__ = __le__ = __gt__ = __ge__ = __getitem__ = __contains__ = _raise


class EqualToAll(str):
    __slots__ = ()

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


class Large(int):
    """1, which says that it is below nothing."""

    def __lt__(self, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def __int__(self):
        return -5

    __index__ = __float__ = __int__


NO_ARRAYS = [Raising(), [Raising()], [[1, 2], [3]], np.zeros(2, [("a", "i4")]), object(), print]


@pytest.mark.parametrize("value", NO_ARRAYS, ids=lambda value: type(value).__name__)
def test_what_is_no_array_of_numbers_is_refused_by_name(value):
    for name, call in {
        "scores": selection,
        "cells": fastdp.Mask,
        "X": lambda X: fastdp.vector_sum(X, clip=1.0, epsilon=1.0),
        "weights": lambda weights: fastdp.SyntheticDistribution(weights, PAIR),
        "center": lambda center: fastdp.sets.Ball(1.0, center=center),
        "y": lambda y: fastdp.error(lambda X: X, np.zeros((2, 1)), y),
    }.items():
        if (name == "scores" and callable(value)) or (name == "cells" and isinstance(value, memoryview)):
            continue
        with pytest.raises(ValueError, match=rf"^{name}[:=\[]") as caught:
            call(value)
        assert "secret" not in str(caught.value)


def test_numbers_and_words_of_derived_classes_are_what_they_derive_from():
    assert fastdp.PureDP(Large(1)).epsilon == 1.0
    assert fastdp.Domain.binary(Large(3)) == fastdp.Domain.binary(3)
    with pytest.raises(ValueError, match=r"^neighbors=<EqualToAll>: must be one of 'replace-one', 'add-remove'$"):
        fastdp.PureDP(1.0, neighbors=EqualToAll("add-remove"))
    with pytest.raises(ValueError, match=r"^epsilon=<Raising>: must be a number$"):
        fastdp.PureDP(Raising())
    with pytest.raises(ValueError, match=r"^size=.*timedelta64.*: must be an integer >= 1$"):
        fastdp.PureDP(1.0).group(np.timedelta64(3))


STRANGE = [pd.NA, pd.Series([1, 2]), np.float16(0.5), 10**400, np.array([1, 2]), Raising()]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_relations_guarantees_and_shares_say_what_they_must_be(value):
    for name, call in {
        "neighbors": lambda: fastdp.laplace(3, sensitivity=1, epsilon=1.0, neighbors=value),
        "other": lambda: fastdp.PureDP(1.0).implies(value),
        "whole": lambda: fastdp.share(value, 2, fastdp.PureDP),
        "kind": lambda: fastdp.share(fastdp.PureDP(1.0), 2, lambda epsilon: value),
        "parts": lambda: fastdp.AllOf(value),
        "guarantees": lambda: fastdp.compose(value),
        "using": lambda: fastdp.compose(fastdp.PureDP(1.0), using=value),
        "query": lambda: UNIFORM.answer(value),
        "domain": lambda: fastdp.Conjunction({"a": 1}).bind(value),
        "names": lambda: UNIFORM.marginal(Raising() if isinstance(value, np.ndarray | pd.Series) else value),
    }.items():
        with pytest.raises(ValueError, match=rf"^{name}[:=]"):
            call()


def test_data_in_a_parameters_place_is_not_printed():
    for value in ([771177], np.array([771177]), pd.Series([771177]), {"a": 771177}, (771177,), pd.DataFrame([771177])):
        for call in (
            lambda value=value: laplace(epsilon=value),
            lambda value=value: laplace(rng=value),
            lambda value=value: laplace(budget=value),
            lambda value=value: fastdp.compose(value),
            lambda value=value: fastdp.Domain.binary(value),
            lambda value=value: selection(method=value),
            lambda value=value: fastdp.PureDP(value),
        ):
            with pytest.raises(ValueError, match=r"^\w+[:=]") as caught:
                call()
            assert "771177" not in str(caught.value)


COLUMN = np.full(500, 771177.25)
WORDS = np.full(500, "n771177")
FOR_SEQUENCES = {
    "qs": lambda column: fastdp.quantiles([0.1, 0.5], column, epsilon=1.0),
    "q": lambda column: fastdp.quantile([0.1, 0.5], column, epsilon=1.0),
    "labels": lambda column: fastdp.Domain(a=column),
    "declared": lambda column: fastdp.Budget(epsilon=1.0, declared=column),
    "guarantees": lambda column: fastdp.compose(*column),
    "releases": lambda column: fastdp.privacy.LossDistribution(*column),
    "low": lambda column: fastdp.Range("a", column, 3),
    "high": lambda column: fastdp.Range("a", 3, column),
    "attribute": lambda column: fastdp.Range(column, 3),
    "scaled": lambda column: fastdp.Scaled(column, 1, 3),
    "allowed": lambda column: fastdp.Product({"a": column}).bind(fastdp.Domain(a=3)),
}


@pytest.mark.parametrize("call", FOR_SEQUENCES.values(), ids=FOR_SEQUENCES)
@pytest.mark.parametrize(
    "column", [COLUMN, WORDS, COLUMN.astype(object), pd.Series(COLUMN)], ids=lambda x: str(x.dtype)
)
def test_a_column_in_place_of_a_sequence_is_not_quoted(call, column):
    """Whether as a whole or entry by entry."""
    for given in (column, column.tolist()):
        with pytest.raises(ValueError, match=r"^\w+(\[0\])?[:=]") as caught:
            call(given)
        assert "771177" not in str(caught.value)


def test_a_record_in_a_parameters_place_is_not_quoted():
    for call in (
        lambda: fastdp.ContinualCounter(length=COLUMN[0], bounds=(0, 1), rho=1.0),
        lambda: fastdp.ContinualCounter(length=WORDS[0], bounds=(0, 1), rho=1.0),
        lambda: fastdp.Domain(a=COLUMN[0]),
        lambda: fastdp.Domain(a=WORDS[0]),
        lambda: fastdp.Domain(a=COLUMN.tolist()[0]),
        lambda: fastdp.Domain(a=WORDS.tolist()[0]),
    ):
        with pytest.raises(ValueError, match=r"^(length|a)=<(float64|str_|float|str)>: must be") as caught:
            call()
        assert "771177" not in str(caught.value)


def test_a_range_has_one_value_at_each_end():
    assert repr(fastdp.Range("a", np.array(2), 5)) == f"Range('a', {np.int64(2)!r}, 5)"
    assert repr(fastdp.Range("a", ("x", 1), "y")) == "Range('a', ('x', 1), 'y')"
    assert repr(fastdp.Range("a", tuple(COLUMN.tolist()), 3)) == "Range('a', <tuple of length 500>, 3)"


def test_cells_outside_of_the_domain_are_refused():
    assert PAIR.cells([[0, 1], [3, 2]]).tolist() == [3, 6]
    for columns, message in (
        ([[2], [0]], r"^columns\[0\]: must be codes from 0 to 1; there are others$"),
        ([[0], [-1]], r"^columns\[1\]: must be codes from 0 to 3; there are others$"),
        ([[0]], r"^columns: 1: must be 2"),
        ([[0], [1, 2]], r"^columns\[1\]: shape \(2,\): must be one code for each record$"),
        ([[0.5], [1]], r"^columns\[0\]: dtype float64: must be integers$"),
        (3, r"^columns: type int: must be the codes of every attribute$"),
    ):
        with pytest.raises(ValueError, match=message):
            PAIR.cells(columns)
    with pytest.raises(fastdp.DomainError, match=r"^codes: must be from 0 to 3; there are others$"):
        PAIR.decode_column(1, np.array([4]))
    with pytest.raises(ValueError, match=r"^position=2: must be at most 1$"):
        PAIR.encode_column(2, [1])


def test_the_hosts_decimal_context_changes_nothing():
    import decimal

    def results():
        return (
            fastdp.bounds.gaussian(sensitivity=1.1, rho=0.3, count=7),
            fastdp.bounds.top_k_epsilon(10, 2, error=3.3, sensitivity=1.1, beta=0.07),
            fastdp.bounds.interior_point_n(31, epsilon=0.7, beta=0.013),
            fastdp.bounds.learn_conjunction(1000, 10, epsilon=0.7, delta=1e-7),
            fastdp.removal(0.3, one_signed=True).delta(0.7),
            repr(fastdp.Domain(a=2**31, b=2**31)),
        )

    expected = results()
    everything = [decimal.FloatOperation, decimal.Inexact, decimal.Rounded, decimal.Subnormal, decimal.Underflow]
    with decimal.localcontext(decimal.Context(prec=3, rounding=decimal.ROUND_DOWN, traps=everything)) as context:
        assert results() == expected
        assert not any(context.flags.values())
