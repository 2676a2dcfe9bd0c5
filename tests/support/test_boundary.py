"""What an error brings out of a call: its type, message and notes, and no frame, cause or message with a record."""

import asyncio
import copy
import inspect
import itertools
import pickle
import traceback
import types
import typing
import warnings

import numpy as np
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.support.boundary import boundary, quick_boundary, without_values
from tests.machinery.calls import CALLS
from tests.machinery.hostile import everything_hostile

SECRET = 8_675_309.25  # an entry that must not be found


def chain(error):
    """An error, and all that led to it."""
    found, left = [], [error]
    while left:
        each = left.pop()
        if each is not None and each not in found:
            found.append(each)
            left += [each.__cause__, each.__context__]
    return found


def frames_of(error):
    """The frames that a traceback leads to and that are not this test's or pytest's, by whatever way."""
    for each in chain(error):
        found = each.__traceback__
        while found is not None:
            frame = found.tb_frame
            while frame is not None and is_inside(frame):
                yield frame
                frame = frame.f_back
            found = found.tb_next


def is_inside(frame):
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    return package not in ("tests", "_pytest", "pytest", "pluggy", "__main__", "asyncio", "hypothesis")


def assert_empty(error):
    for frame in frames_of(error):
        held = {name: value for name, value in frame.f_locals.items() if value is not None and name != "error"}
        assert not held, f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name} holds {sorted(held)}"
    for each in chain(error):
        assert str(SECRET) not in str(each) + repr(each.args) + "".join(getattr(each, "__notes__", ()))


def error_of(function, *arguments, **keywords):
    try:
        function(*arguments, **keywords)
    except BaseException as error:
        return error
    return None


READ_RECORDS = {
    "best_of", "error", "exponential_erm", "exponential_mechanism", "gaussian", "interior_point", "laplace",
    "learn_box",
    "learn_conjunction", "learn_decision_list", "learn_from_class", "learn_tree", "median", "mwem",
    "noisy_least_squares", "noisy_projected_gradient_descent", "nonprivate_excess_risk", "nonprivate_minimum", "pack",
    "limit_rows", "partition", "per_person", "permute_and_flip",
    "private_erm", "projected_gradient_descent", "quantile", "quantiles",
    "release_marginals", "release_ranges", "synthesize", "top_k", "vector_mean", "vector_sum",
}  # fmt: skip
METHODS = {
    "AboveThreshold.above", "AboveThreshold.first_above", "SparseVector.above", "SparseVector.places_above",
    "NumericSparse.answer", "NumericSparse.answer_many", "GumbelMax.offer", "GumbelMax.merge", "GumbelMax.winner",
    "GumbelMax.winners", "PrivateMultiplicativeWeights.__init__", "PrivateMultiplicativeWeights.answer",
    "PrivateMultiplicativeWeights.answer_many", "PrivateMultiplicativeWeights.nonprivate_kl", "Domain.encode_column",
    "Domain.cells", "Bins.quantiles",
}  # fmt: skip
PUBLIC_NUMBERS = {
    "compose", "get_num_threads", "marginals", "peeling_eta", "plan_releases", "plan_synthesis", "removal",
    "removal_eta", "set_num_threads", "share", "warmup",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CALLS.keys() & {*READ_RECORDS, *METHODS, "PrivateMultiplicativeWeights"}))
def test_no_error_of_any_call_holds_a_value(name):
    """Every parameter of every function of the machinery that reads records, replaced by everything hostile."""
    make, met = CALLS[name], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function, arguments, keywords = make(np.random.default_rng(5))
        for number, place in enumerate([*range(len(arguments)), *keywords]):
            for bad in itertools.islice(everything_hostile(), number % 3, None, 3):
                if isinstance(bad, int | float | np.number) and not (isinstance(place, int) and abs(bad) < 2**20):
                    continue  # numbers in place of parameters: accounting may take long
                function, given, named = make(np.random.default_rng(5))
                target = given if isinstance(place, int) else named
                target[place] = bad
                if (error := error_of(function, *given, **named)) is not None:
                    met += 1
                    assert_empty(error)
    assert met > 10 or not (arguments or keywords)


def test_every_function_of_the_package_is_behind_the_boundary_or_takes_public_numbers():
    functions = {name for name in fastdp.__all__ if inspect.isfunction(getattr(fastdp, name))}
    assert functions == READ_RECORDS | PUBLIC_NUMBERS
    behind = {name for name in functions if getattr(fastdp, name).__code__.co_names[-1] == "_without_values"}
    assert behind == READ_RECORDS


@pytest.mark.parametrize("method", sorted(METHODS))
def test_methods_that_read_records_are_behind_the_boundary(method):
    owner, name = method.split(".")
    assert getattr(getattr(fastdp, owner), name).__code__.co_names[-1] == "_without_values"


def test_estimators_are_behind_the_boundary():
    import fastdp.sklearn as estimators

    for name in estimators.__all__:
        kind = getattr(estimators, name)
        for method in ("fit", "predict", "transform", "predict_proba", "decision_function", "score_samples"):
            own = next((vars(base)[method] for base in kind.__mro__ if method in vars(base)), None)
            if own is not None and own.__module__.startswith("fastdp"):
                while "_without_values" not in own.__code__.co_names:  # what scikit-learn wraps around it
                    own = own.__wrapped__


# --- what stays


def test_a_function_behind_the_boundary_is_the_function_to_whoever_asks():
    def plain(a, b=2, *rest, c, d=4, **more):
        """Its words."""
        return a, b, rest, c, d, more

    plain.mark = "kept"
    for decorate in (boundary, quick_boundary):
        made = decorate(plain)
        assert inspect.signature(made) == inspect.signature(plain)
        assert made(1, 3, 5, c=6, e=7) == (1, 3, (5,), 6, 4, {"e": 7})
        assert made(1, c=0) == (1, 2, (), 0, 4, {})
        assert (made.__name__, made.__doc__, made.mark, made.__module__) == ("plain", "Its words.", "kept", __name__)
        assert made.__defaults__ == (2,)
        assert made.__kwdefaults__ == {"d": 4}
        with pytest.raises(TypeError, match=r"plain\(\) missing 1 required keyword-only argument: 'c'"):
            made(1)
    assert pickle.loads(pickle.dumps(fastdp.laplace)) is fastdp.laplace
    assert copy.deepcopy(fastdp.laplace) is fastdp.laplace
    assert inspect.getsource(fastdp.vector_sum).startswith("@boundary\ndef vector_sum(")
    assert inspect.getsourcefile(fastdp.vector_sum).endswith("vector_sums.py")
    assert typing.get_type_hints(fastdp.learn_conjunction)["return"].__name__ == "LearnedConjunction"
    assert len(typing.get_overloads(fastdp.laplace)) > 3


def test_the_one_frame_of_ours_stands_where_the_function_is_defined():
    error = error_of(fastdp.laplace, [SECRET, float("nan")], sensitivity=1.0, epsilon=1.0)
    assert type(error) is fastdp.DomainError
    _, ours = traceback.extract_tb(error.__traceback__)
    assert ours.filename.endswith("noise.py")
    assert ours.name == "laplace"
    assert ours.line == "@quick_boundary"
    assert (error.__cause__, error.__context__) == (None, None)


def test_a_warning_points_at_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        rng = fastdp.Randomness(seed=1)
        fastdp.learn_conjunction(np.eye(4, dtype=bool), [1, 0, 1, 0], epsilon=0.01, rng=rng)
    assert {each.filename for each in caught if issubclass(each.category, fastdp.AccuracyWarning)} == {__file__}


def test_an_error_that_is_being_handled_outside_stays_the_context():
    mine = KeyError("mine")
    try:
        raise mine
    except KeyError:
        error = error_of(fastdp.laplace, [np.nan], sensitivity=1.0, epsilon=1.0)
    assert error.__context__ is mine
    assert mine.__traceback__ is not None


def test_errors_are_shown_as_they_were_suppressed_or_not():
    def inside():
        try:
            int("x")
        except ValueError:
            raise KeyError("ours") from None

    assert without_values(error_of(inside)).__suppress_context__


# --- callbacks


def test_an_error_of_a_callback_keeps_its_own_frames_and_none_of_ours():
    def fails(done, total, what):
        return helper_of_fails(total)

    X, y = np.full((20, 2), 0.25), np.ones(20)
    error = error_of(
        fastdp.noisy_projected_gradient_descent,
        X, y, loss=losses.Logistic(x_norm=1.0), over=sets.Ball(1.0), epsilon=1.0, delta=1e-6, steps=2, progress=fails,
    )  # fmt: skip
    assert type(error) is ZeroDivisionError
    assert str(error) == "division by zero"  # its own message
    names = [each.name for each in traceback.extract_tb(error.__traceback__)]
    assert names[-3:] == ["noisy_projected_gradient_descent", "fails", "helper_of_fails"]
    frame = error.__traceback__
    while frame is not None:  # no way back from the callback to what fastdp had in hand
        outer = frame.tb_frame
        while outer is not None:
            if outer.f_globals.get("__name__", "").startswith("fastdp"):
                assert not {k for k, v in outer.f_locals.items() if v is not None}, outer
            outer = outer.f_back
        frame = frame.tb_next


def helper_of_fails(total):
    return total / 0


def test_an_error_of_a_hypothesis_keeps_its_cause():
    def hypothesis(X):
        try:
            raise KeyError("first")
        except KeyError as error:
            raise RuntimeError("second") from error

    error = error_of(fastdp.learn_from_class, [hypothesis], [1, 0, 1], X=np.eye(3, dtype=bool), epsilon=1.0)
    assert [type(each) for each in chain(error)][:2] == [RuntimeError, KeyError]
    assert not {each for each in frames_of(error) if {k for k, v in each.f_locals.items() if v is not None}}


@pytest.mark.parametrize("n", [5, 70_000])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError, asyncio.CancelledError])
def test_exits_of_every_kind_bring_nothing_along(kind, n, monkeypatch):
    """From the sum over one block of records, which needs no threads, and from that over several."""
    from fastdp.records import arrays, rows

    namespace = {"__name__": "fastdp.records.rows", "np": np, "kind": kind, "SECRET": SECRET}
    exec("def leave(*_):\n  secret = np.full(3, SECRET)\n  raise kind", namespace)
    monkeypatch.setattr(*((arrays.MemoryRows, "total") if n == 5 else (rows.LocalRows, "total")), namespace["leave"])
    error = error_of(fastdp.vector_sum, np.full((n, 2), SECRET), clip=1.0, epsilon=1.0)
    assert type(error) is kind
    assert_empty(error)


ON_PERSONS = {
    "with a delta": lambda X: fastdp.vector_sum(X, clip=1.0, epsilon=1.0, delta=1e-6, neighbors="add-remove"),
    "without": lambda X: fastdp.quantile(X, 0.5, epsilon=1.0, neighbors="add-remove"),
}


@pytest.mark.parametrize("name", ON_PERSONS)
def test_an_error_on_rows_of_persons_holds_neither_how_many_nor_their_share(name):
    people = fastdp.limit_rows({"u": np.arange(60) % 20, "x": np.full(60, np.nan)}, "u", at_most=2)
    error = error_of(ON_PERSONS[name], people["x"])
    assert type(error) is fastdp.DomainError
    assert_empty(error)


# --- messages of libraries


class Refuses:
    """An entry that a library's conversion meets."""

    def __float__(self):
        raise ValueError(f"my own {SECRET}")


def test_a_library_s_message_is_withheld_and_the_place_is_told():
    def reads(values):
        return float(values[0])

    inside = types.FunctionType(reads.__code__, {"__name__": "fastdp.somewhere", "__builtins__": __builtins__})
    error = error_of(boundary(reads_of(inside)), [f"{SECRET} is what I have"])
    assert type(error) is ValueError
    assert str(error) == "the message is withheld, as it comes from a library and may quote a record"
    assert error.__notes__[0].startswith("raised at fastdp.somewhere:")
    assert_empty(error)


def reads_of(inside):
    def call(values):
        return inside(values)

    return types.FunctionType(
        call.__code__, {"__name__": "fastdp.other", "__builtins__": __builtins__}, "call", None, call.__closure__
    )


def test_a_unicode_error_keeps_no_text():
    error = without_values(error_of(lambda: None) or UnicodeDecodeError("utf-8", b"secret\xff", 6, 7, "invalid"))
    assert isinstance(error, UnicodeDecodeError)


def test_messages_of_users_objects_are_theirs():
    error = error_of(fastdp.laplace, [Refuses()], sensitivity=1.0, epsilon=1.0)
    assert error is not None
    assert str(SECRET) not in str(error)


@pytest.mark.parametrize("state", ["raise", "warn", "ignore"])
def test_numpy_s_state_is_the_caller_s_before_and_after(state):
    with np.errstate(all=state):
        before = np.geterr()
        fastdp.vector_sum(np.ones((4, 2)), clip=1.0, epsilon=1.0)
        error_of(fastdp.vector_sum, np.full((4, 2), np.nan), clip=1.0, epsilon=1.0)
        assert np.geterr() == before
