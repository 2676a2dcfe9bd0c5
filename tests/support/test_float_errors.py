"""What a host does about float errors, and about warnings, changes no call: otherwise a record would end one."""

import warnings
from contextlib import suppress

import numpy as np
import pytest

import fastdp
from fastdp import Randomness
from tests.machinery.calls import CALLS, CHARGED
from tests.records.test_clip import _calls as clipped_calls

WILD = [float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 5e-324, 1e-310, 0.0, -0.0, 2.0**63, -(2.0**63), 1e16]


def outcome(make, name, *, wild=None):
    """What a call gives, or how it ends."""
    function, arguments, keywords = make(np.random.default_rng(11))
    if name in CHARGED:
        keywords["rng"] = Randomness(seed=5)
    if wild is not None:
        arguments = [spoiled(value, wild) for value in arguments]
    try:
        found = function(*arguments, **keywords)
    except Exception as error:
        return type(error).__name__, str(error)
    return text(found) if name in CHARGED else type(found).__name__


def spoiled(value, wild):
    """Floats of an argument, with hostile ones in a few places."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "if" or value.dtype == np.bool_ or not value.size:
        return value
    array = value.astype(np.float64)
    array.flat[:: max(1, array.size // 3)] = wild
    return array


def text(found):
    with np.printoptions(floatmode="unique", threshold=10**6):
        if isinstance(found, np.ndarray | np.generic):
            return repr(found)
        for attribute in ("w", "value", "tables", "index", "literals", "intervals", "position"):
            if hasattr(found, attribute):
                return repr(getattr(found, attribute))
    return type(found).__name__


@pytest.fixture
def _strict():
    """The strictest host: floating-point errors raise, and so does every warning of numpy's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=RuntimeWarning)
        with np.errstate(all="raise"):
            yield


def relaxed(make, name, wild=None):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return outcome(make, name, wild=wild)


@pytest.mark.usefixtures("_strict")
@pytest.mark.parametrize("name", CALLS)
def test_every_call_ends_as_it_would_otherwise(name):
    _, arguments, _ = CALLS[name](np.random.default_rng(11))
    reads_floats = any(spoiled(value, 0.5) is not value for value in arguments)
    for wild in (None, *WILD) if reads_floats else (None,):
        assert outcome(CALLS[name], name, wild=wild) == relaxed(CALLS[name], name, wild)
    assert np.geterr()["invalid"] == "raise"


@pytest.mark.usefixtures("_strict")
@pytest.mark.parametrize("name", list(clipped_calls()))
def test_clipping_is_not_stopped_either(name):
    function, arguments, keywords = clipped_calls()[name]
    function(*arguments, outside="clip", **keywords)


@pytest.mark.usefixtures("_strict")
@pytest.mark.parametrize("wild", WILD)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_noise_selection_and_thresholds_on_wild_floats(wild, dtype):
    with np.errstate(all="ignore"):
        values = np.array([0.5, wild, 3.0], dtype)
    for held in (values, values.tolist(), values[::-1], values.astype(object), values[1], float(values[1])):
        for function, keywords in (
            (fastdp.laplace, {"sensitivity": 1.0, "epsilon": 1.0}),
            (fastdp.gaussian, {"sensitivity": 1.0, "rho": 0.5}),
            (fastdp.exponential_mechanism, {"sensitivity": 1.0, "epsilon": 1.0}),
            (fastdp.permute_and_flip, {"sensitivity": 1.0, "epsilon": 1.0}),
            (fastdp.top_k, {"sensitivity": 1.0, "epsilon": 1.0, "k": 1}),
            (fastdp.AboveThreshold(1.0, sensitivity=1.0, epsilon=1.0).first_above, {}),
            (lambda v: fastdp.GumbelMax(sensitivity=1.0, epsilon=1.0).offer(v, 0), {}),
        ):
            with suppress(ValueError):
                function(held, **keywords)
    assert np.geterr()["over"] == "raise"


@pytest.mark.usefixtures("_strict")
def test_a_list_of_floats_that_hold_no_large_numbers():
    """2^53, with which its entries are compared, overflows float16."""
    assert fastdp.laplace([np.float16(0.5)], sensitivity=1.0, epsilon=1.0).shape == (1,)
    assert fastdp.AboveThreshold(1.0, sensitivity=1.0, epsilon=1e5).above(np.float16(7.5))


@pytest.mark.usefixtures("_strict")
def test_threads_of_the_pool_are_as_quiet():
    X = np.full((400_000, 4), 1e200)
    X[300_000] = 5e-324
    before = fastdp.get_num_threads()
    try:
        for threads in (1, 4):
            fastdp.set_num_threads(threads)
            fastdp.vector_sum(X, clip=1.0, epsilon=1.0, outside="clip")
            fastdp.quantile(X[:, 0], 0.5, epsilon=1.0, domain_bits=32, outside="clip")
    finally:
        fastdp.set_num_threads(before)


@pytest.mark.parametrize("value", [np.longdouble("1e-4000"), np.longdouble("1e4000"), np.longdouble("nan")], ids=str)
@pytest.mark.usefixtures("_strict")
def test_a_long_double_is_refused_by_its_type(value):
    with pytest.raises(ValueError, match=r"^values: ") as wrong:
        fastdp.SparseVector(10.0, sensitivity=1.0, epsilon=1.0, positives=1).above(value)
    assert "withheld" not in str(wrong.value)
