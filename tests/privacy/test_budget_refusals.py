"""Refusals that depend on records: what counts, what does not, and that a closed budget tells nothing more."""

from __future__ import annotations

import concurrent.futures
import itertools
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import ApproxDP, Budget, BudgetExceeded, Domain, DomainError, PrivacyWarning, PureDP, Randomness
from fastdp.privacy.ledger import MemoryLedger
from fastdp.privacy.refusals import Refusals
from fastdp.randomness.charged_keys import ChargedKeys

NAN = [1.0, float("nan")]


def lap(values: Any = 0, epsilon: float = 2.0**-10, **options: Any) -> Any:
    return fastdp.laplace(values, sensitivity=1, epsilon=epsilon, **options)


def test_more_than_are_allowed_close_it() -> None:
    budget = Budget(epsilon=1, refusals=2)
    assert (budget.refusals, budget.refused) == (2, 0)
    for count in (1, 2):
        with pytest.raises(DomainError):
            lap(NAN, budget=budget)
        lap(budget=budget)
        assert budget.refused == count
        assert budget.left.epsilon > 0
    with pytest.raises(DomainError):
        lap(NAN, budget=budget)
    for values in (0, NAN):
        with pytest.raises(BudgetExceeded, match="this budget is closed"):
            lap(values, budget=budget)
    with pytest.raises(ValueError, match="must be integers"):
        lap("no numbers", budget=budget)
    with (
        pytest.raises(BudgetExceeded, match=r"^budget: this budget is closed: more than refusals=2 of its releases"),
        budget,
    ):
        lap()
    assert budget.refused == 3
    assert budget.left == PureDP(0)
    assert not budget.fits(PureDP(0))
    assert budget.spent == PureDP(2.0**-9)
    assert repr(budget).startswith("Budget(epsilon=1.0, theorem='basic', neighbors='replace-one', refusals=2)  # spent")
    assert repr(budget).endswith(", 3 refused because of records: closed")


@pytest.mark.parametrize("refusals", [-1, 1.5, "3", None, True, 10**9 + 1])
def test_bad_limits(refusals: Any) -> None:
    with pytest.raises(ValueError, match=r"^refusals=.*: must be "):
        Budget(epsilon=1, refusals=refusals)


def test_none_may_be_allowed() -> None:
    budget = Budget(epsilon=1, refusals=0)
    lap(budget=budget)
    with pytest.raises(DomainError):
        lap(NAN, budget=budget)
    with pytest.raises(BudgetExceeded):
        lap(budget=budget)


def test_bisection_of_a_column_ends() -> None:
    """An exact maximum was read off which of two columns an error names, for nothing."""
    x = np.random.default_rng(0).integers(0, 10**6, 1000)
    x[17] = 7_654_321
    learned, low, high = 0, 1, 2**24
    records = {"v": x, "w": np.full(1000, 1)}
    with Budget(epsilon=1.0, delta=1e-6) as budget:
        while high - low > 1:
            middle = (low + high) // 2
            try:
                fastdp.release_marginals(records, Domain(v=middle, w=1), [["v"]], epsilon=1e-3, delta=1e-9, fit=None)
            except DomainError as error:
                low, high = (middle, high) if "'v'" in str(error) else (low, middle)
                learned += 1
            except BudgetExceeded:
                break
    assert learned == 4
    assert high - low > 2**19
    assert budget.spent == PureDP(0)


def test_all_budgets_around_count() -> None:
    outer, inner, other = Budget(epsilon=1), Budget(epsilon=1, refusals=0), Budget(epsilon=1)
    with outer, inner:
        with pytest.raises(DomainError):
            lap(NAN)
        with pytest.raises(BudgetExceeded):
            lap()
        with pytest.raises(DomainError):
            lap(NAN, budget=other)
    assert (outer.refused, inner.refused, other.refused) == (1, 1, 1)


# --- what counts

LARGE = np.array([1, 2**63], np.uint64)


class Lazy:
    """An array whose store fails because of what is in it."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise OSError("no such block")


def vectors(X: Any, **options: Any) -> Any:
    return fastdp.vector_sum(X, clip=1.0, epsilon=0.1, delta=1e-9, **options)


def descent(y: Any, X: Any = None, **options: Any) -> Any:
    return fastdp.noisy_projected_gradient_descent(
        np.full((2, 1), 0.5) if X is None else X,
        y,
        loss=fastdp.losses.Logistic(x_norm=1),
        over=fastdp.sets.Ball(1),
        epsilon=0.1,
        delta=1e-9,
        **options,
    )


RECORDS = {
    "a NaN": lambda o: lap(NAN, **o),
    "a list of numbers and strings": lambda o: lap([1, 2, "three"], **o),
    "a ragged list": lambda o: lap([[1], [2, 3]], **o),
    "integers beyond int64": lambda o: lap([1, 2**70], **o),
    "large integers among floats": lambda o: lap([0.5, 2**60 + 1], **o),
    "objects": lambda o: lap(np.array([1, None], object), **o),
    "strings among objects": lambda o: lap(np.array([1, "x"], object), **o),
    "a score": lambda o: fastdp.exponential_mechanism([0.5, float("nan")], sensitivity=1, epsilon=0.1, **o),
    "a forbidden score": lambda o: fastdp.permute_and_flip([-np.inf, -np.inf], sensitivity=1, epsilon=0.1, **o),
    "a list of scores": lambda o: fastdp.top_k([1, "x"], 1, sensitivity=1, epsilon=0.1, **o),
    "a function of scores": lambda o: fastdp.top_k(
        lambda i, j: np.full(j - i, np.nan), 1, candidates=9, sensitivity=1, epsilon=0.1, **o
    ),
    "a vector": lambda o: fastdp.vector_sum(np.array([[0.5], [np.nan]]), clip=1.0, epsilon=0.1, delta=1e-9, **o),
    "a value of a median": lambda o: fastdp.median([5, 9], domain_bits=3, epsilon=0.1, **o),
    "a list for a median": lambda o: fastdp.median([5, "x"], domain_bits=3, epsilon=0.1, **o),
    "objects for a median": lambda o: fastdp.median(np.array([5, None], object), domain_bits=3, epsilon=0.1, **o),
    "a code": lambda o: fastdp.release_marginals(
        np.array([[0, 5]]), Domain(a=2, b=2), [["a"]], epsilon=0.1, delta=1e-9, fit=None, **o
    ),
    "a label": lambda o: fastdp.learn_conjunction(np.eye(4, dtype=np.int8), [0, 1, 1, 5], k=1, epsilon=0.1, **o),
    "a label in a list": lambda o: fastdp.learn_conjunction(
        np.eye(4, dtype=np.int8), [0, 1, 1, "x"], k=1, epsilon=0.1, **o
    ),
    "a number of a box": lambda o: fastdp.learn_box(np.array([[9], [1]]), [0, 1], domain_bits=3, epsilon=0.1, **o),
    "a prediction": lambda o: fastdp.learn_from_class(np.array([[0, 2]]), [0, 1], epsilon=0.1, **o),
    "a nested prediction": lambda o: fastdp.learn_from_class([[0, [1]]], [0, 1], epsilon=0.1, **o),
    "predictions all nested": lambda o: fastdp.learn_from_class([[[0], [1]]], [0, 1], epsilon=0.1, **o),
    "a large integer alone": lambda o: lap(2**70, **o),
    "a list column with None": lambda o: vectors({"u": [0.5, None]}, **o),
    "a list column with a string": lambda o: vectors({"u": [0.5, "x"]}, **o),
    "a list column with an integer beyond floats": lambda o: vectors({"u": [0.5, 2**2000]}, **o),
    "a list column with a complex number": lambda o: vectors({"u": [0.5, 1j]}, **o),
    "a list column of lists": lambda o: vectors({"u": [[1], [1]]}, **o),
    "a list column of lists of several lengths": lambda o: vectors({"u": [[1], [1, 2]]}, **o),
    "a complex label of a descent": lambda o: descent([0, 1j], **o),
    "a nested label of a descent": lambda o: descent([0, [1]], **o),
    "labels all nested": lambda o: descent([[0, 1], [1, 0]], **o),
    "a column of records of a descent": lambda o: descent([0, 1], {"u": [0.5, None]}, **o),
    "a long float among labels": lambda o: descent([0, np.longdouble(1)], **o),
    "a complex label of a class": lambda o: fastdp.learn_from_class([[0, 1]], [0, 1j], epsilon=0.1, **o),
    "a nested label of a class": lambda o: fastdp.learn_from_class([[0, 1]], [0, [1]], epsilon=0.1, **o),
    "a complex label of a conjunction": lambda o: fastdp.learn_conjunction(
        np.eye(2, dtype=np.int8), [0, 1j], k=1, epsilon=0.1, **o
    ),
    "a label of least squares": lambda o: fastdp.noisy_least_squares(
        np.full((2, 1), 0.5),
        [0, 1j],
        loss=fastdp.losses.SquaredError(x_norm=1, y_bound=1),
        over=fastdp.sets.Ball(1),
        epsilon=0.1,
        delta=1e-9,
        **o,
    ),
    "a label of a minimum": lambda o: fastdp.private_erm(
        np.full((2, 1), 0.5),
        [0, 1j],
        loss=fastdp.losses.Logistic(x_norm=1),
        over=fastdp.sets.Ball(1),
        epsilon=0.1,
        delta=1e-9,
        **o,
    ),
    "an unsigned score": lambda o: fastdp.exponential_mechanism(LARGE, sensitivity=1, epsilon=0.1, **o),
    "an unsigned score of several": lambda o: fastdp.top_k(LARGE, 1, sensitivity=1, epsilon=0.1, **o),
    "an unsigned score, flipped": lambda o: fastdp.permute_and_flip(LARGE, sensitivity=1, epsilon=0.1, **o),
    "scores all nested": lambda o: fastdp.permute_and_flip([[1], [2]], sensitivity=1, epsilon=0.1, **o),
    "an array that cannot be read": lambda o: lap(Lazy(), **o),
    "labels that cannot be read": lambda o: fastdp.learn_from_class([[0, 1]], Lazy(), epsilon=0.1, **o),
    "scores that cannot be read": lambda o: fastdp.permute_and_flip(Lazy(), sensitivity=1, epsilon=0.1, **o),
}


def error_of(release: Callable[[dict[str, Any]], Any], budget: Budget, how: str) -> BaseException | None:
    try:
        if how == "argument":
            release({"budget": budget})
        else:
            with budget:
                release({})
    except Exception as error:
        return error
    return None


@pytest.mark.parametrize("how", ["block", "argument"])
@pytest.mark.parametrize("case", RECORDS)
def test_what_depends_on_records_counts_once(case: str, how: str) -> None:
    budget = Budget(epsilon=1, delta=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        error = error_of(RECORDS[case], budget, how)
    assert isinstance(error, ValueError)
    assert budget.refused == 1
    assert budget.spent == PureDP(0)
    pickle.loads(pickle.dumps(error))


PARAMETERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "epsilon": lambda o: lap(epsilon=-1, **o),
    "out": lambda o: lap(out=[0], **o),
    "out of another shape": lambda o: lap([1, 2], out=np.zeros(3, np.int64), **o),
    "rng": lambda o: lap(rng=np.random.default_rng(), **o),
    "a string": lambda o: lap("no", **o),
    "None": lambda o: lap(None, **o),
    "a mapping": lambda o: lap({"a": 1}, **o),
    "a type": lambda o: lap(np.array(["a"]), **o),
    "what does not fit": lambda o: lap(epsilon=100.0, **o),
    "a relation": lambda o: lap(neighbors="add-remove", **o),
    "k": lambda o: fastdp.top_k([1, 2], 5, sensitivity=1, epsilon=0.1, **o),
    "domain_bits": lambda o: fastdp.median([1, 2], domain_bits=-1, epsilon=0.1, **o),
    "columns": lambda o: fastdp.release_marginals(
        {"c": [1]}, Domain(a=2), [["a"]], epsilon=0.1, delta=1e-9, fit=None, **o
    ),
    "the number of columns": lambda o: fastdp.release_marginals(
        np.zeros((3, 2), int), Domain(a=2), [["a"]], epsilon=0.1, delta=1e-9, fit=None, **o
    ),
    "outside": lambda o: fastdp.median([1, 2], domain_bits=3, epsilon=0.1, outside="cut", **o),
    "clip": lambda o: fastdp.vector_sum(np.array([[0.5]]), clip=-1.0, epsilon=0.1, delta=1e-9, **o),
    "start": lambda o: fastdp.private_erm(
        np.ones((9, 1)),
        np.ones(9),
        loss=fastdp.losses.Logistic(x_norm=1),
        over=fastdp.sets.Box(-1, [None]),
        epsilon=0.1,
        **o,
    ),
    "bits of a box": lambda o: fastdp.learn_box(np.array([[1]]), [1], domain_bits=[3, 3], epsilon=0.1, **o),
}


@pytest.mark.parametrize("how", ["block", "argument"])
@pytest.mark.parametrize("case", PARAMETERS)
def test_errors_of_parameters_do_not_count(case: str, how: str) -> None:
    budget = Budget(epsilon=1, delta=1e-6, refusals=0)
    assert isinstance(error_of(PARAMETERS[case], budget, how), ValueError)
    assert budget.refused == 0


@pytest.mark.parametrize("how", ["block", "argument"])
def test_one_error_counts_in_every_call_that_it_ends(how: str) -> None:
    """A function of the caller's may raise the same object each time, and hold what an earlier call has raised."""
    error = RuntimeError()

    def scores(start: int, stop: int) -> Any:
        raise error

    budget = Budget(epsilon=1, refusals=2)
    for count in (1, 2, 3):
        raised = error_of(lambda o: fastdp.top_k(scores, 1, candidates=9, sensitivity=1, epsilon=0.1, **o), budget, how)
        assert raised is error
        assert budget.refused == count
    assert not vars(error)
    assert isinstance(error_of(lambda o: lap(**o), budget, how), BudgetExceeded)


def test_one_error_counts_outside_of_a_public_function() -> None:
    error, budget = RuntimeError(), Budget(epsilon=1, refusals=9)
    for count in (1, 2):
        with pytest.raises(RuntimeError):
            _ended_by(error, budget)
        assert budget.refused == count


def _ended_by(error: BaseException, budget: Budget) -> None:
    with ChargedKeys("test", PureDP(0.1), {}, budget, None):
        raise error


def test_an_error_leads_to_no_budget() -> None:
    budget = Budget(epsilon=1, refusals=0)
    with pytest.raises(DomainError) as caught:
        lap(NAN, budget=budget)
    assert not vars(caught.value)
    with pytest.raises(AttributeError):
        budget._refusals.allowed = 9  # type: ignore[misc]


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
def test_answers_that_are_paid_for_go_on() -> None:
    budget = Budget(epsilon=1, refusals=0)
    answers = fastdp.PrivateMultiplicativeWeights(
        np.zeros((999, 2), int), Domain(a=2, b=2), max_queries=10, epsilon=0.5, budget=budget
    )
    with pytest.raises(DomainError):
        lap(NAN, budget=budget)
    assert 0 <= answers.answer(fastdp.Conjunction({"a": 1})) <= 1
    with pytest.raises(BudgetExceeded):
        lap(budget=budget)


def test_unsigned_scores_that_are_offered() -> None:
    budget = Budget(epsilon=1)
    choice = fastdp.GumbelMax(sensitivity=1, epsilon=0.1, budget=budget)
    with pytest.raises(DomainError, match="unsigned"):
        choice.offer(LARGE, 0)
    assert budget.refused == 1


class Failing(Randomness):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def key(self) -> Any:
        raise self.error


def test_what_else_ends_a_release() -> None:
    """Any error between the reservation and the end may be due to records; an interrupt is the caller's."""
    budget = Budget(epsilon=1, refusals=10)
    for error, counts in (
        (OSError(), 1), (MemoryError(), 1), (KeyError(), 1), (KeyboardInterrupt(), 0), (SystemExit(), 0),
        (PrivacyWarning(), 0), (ImportError(), 0), (BudgetExceeded(), 0),
    ):  # fmt: skip
        before = budget.refused
        with pytest.raises(type(error)):
            lap(budget=budget, rng=Failing(error))
        assert budget.refused == before + counts, error


def test_estimators_count() -> None:
    pytest.importorskip("sklearn")
    from fastdp.sklearn import PrivateMean, PrivateMedian

    X = np.array([[0.5], [np.nan], [0.25]])
    budget = Budget(epsilon=1, delta=1e-6, refusals=9)
    for count, estimator in enumerate((PrivateMean(0.1, 1e-7, bounds=(0, 1)), PrivateMedian(0.1, bounds=(0, 1))), 1):
        with pytest.raises(ValueError, match="NaN"):
            estimator.set_params(budget=budget).fit(X)
        with budget, pytest.raises(ValueError, match="NaN"):
            estimator.set_params(budget=None).fit(X)
        assert budget.refused == 2 * count
    beyond = PrivateMedian(0.1, bounds=(0, 1), budget=budget)
    with pytest.raises(DomainError), pytest.warns(fastdp.AccuracyWarning):
        beyond.fit([[0.5], [2.0]])
    assert budget.refused == 5
    with pytest.raises(ValueError, match=r"^outside="):
        PrivateMedian(0.1, bounds=(0, 1), outside="cut", budget=budget).fit([[0.5]])
    assert budget.refused == 5


# --- what was under way when the budget was closed


def test_what_is_under_way_is_refused_in_the_same_words() -> None:
    """Whether its records are in the domain or not: threads would tell as many bits as there are of them."""
    said: dict[str, str] = {}
    for kind, values in (("good", [1.0]), ("bad", NAN)):
        budget, begun, go = Budget(epsilon=1, refusals=0), threading.Event(), threading.Event()

        def progress(*_: object) -> None:
            begun.set()  # noqa: B023
            go.wait()  # noqa: B023

        def slow() -> Any:
            with budget:  # noqa: B023
                return fastdp.noisy_least_squares(
                    np.array(values)[:, None],  # noqa: B023
                    np.zeros(len(values)),  # noqa: B023
                    loss=fastdp.losses.SquaredError(x_norm=2, y_bound=1),
                    over=fastdp.sets.Ball(1),
                    epsilon=0.1,
                    delta=1e-9,
                    progress=progress,
                )

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            future = pool.submit(slow)
            begun.wait()
            with pytest.raises(DomainError):
                lap(NAN, budget=budget)
            go.set()
            with pytest.raises(BudgetExceeded) as caught:
                future.result()
        said[kind] = f"{caught.value} {budget!r}"
        assert caught.value.__context__ is None
    assert said["good"] == said["bad"]


def ledger() -> MemoryLedger:
    return MemoryLedger(Budget(epsilon=1)._ledger.sums())


def test_the_place_of_each_is_its_own() -> None:
    """Of many threads that are refused at once, as many are told as there may be."""
    for _ in range(20):
        refusals, start = Refusals(3, ledger()), threading.Barrier(16)

        def one(_: int) -> bool:
            start.wait()  # noqa: B023
            return refusals.count(DomainError())  # noqa: B023

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            assert sorted(pool.map(one, range(16))) == [False] * 4 + [True] * 12
        assert len(refusals) == 4


def test_one_that_comes_between_takes_the_next_place() -> None:
    """Between being written and being told, as a thread or a signal handler may."""
    counting = ledger()
    refusals, between = Refusals(0, counting), []

    class Interrupted(list[object]):
        def append(self, each: object) -> None:
            super().append(each)
            if len(self) == 1:
                between.append(refusals.count(DomainError()))

    counting._refused = Interrupted()
    assert refusals.count(DomainError()) is False
    assert between == [True]


def test_the_bits_that_refusals_tell() -> None:
    """As many patterns of refused calls as docs/security.md counts: m calls, one more refusal than allowed."""
    for calls, allowed in itertools.product((1, 3, 6), (0, 1, 2)):
        patterns = set()
        for records in itertools.product((0.0, float("nan")), repeat=calls):
            budget, seen = Budget(epsilon=1, refusals=allowed), []
            for value in records:
                try:
                    lap(value, budget=budget)
                except DomainError:
                    seen.append("refused")
                except BudgetExceeded:
                    seen.append("closed")
                else:
                    seen.append("released")
            patterns.add(tuple(seen))
        assert len(patterns) == sum(
            len(list(itertools.combinations(range(calls), i))) for i in range(min(allowed + 1, calls) + 1)
        )


def test_a_budget_of_approximate_dp_counts_too() -> None:
    budget = Budget(epsilon=1, delta=1e-6)
    with pytest.raises(DomainError):
        fastdp.gaussian(NAN, sensitivity=1, epsilon=0.5, delta=1e-7, budget=budget)
    assert budget.fits(ApproxDP(0.5, 1e-7))
    assert budget.refused == 1


@pytest.mark.parametrize("how", ["block", "argument"])
def test_what_goes_on_reading_after_it_has_paid(how: str) -> None:
    """Objects that take values later: their refusals count, and a closed budget closes them, too."""
    budget = Budget(epsilon=1)
    if how == "block":
        with budget:
            watch = fastdp.AboveThreshold(2.0**20, sensitivity=1, epsilon=0.1)
            choice = fastdp.GumbelMax(sensitivity=1, epsilon=0.1)
    else:
        watch = fastdp.AboveThreshold(2.0**20, sensitivity=1, epsilon=0.1, budget=budget)
        choice = fastdp.GumbelMax(sensitivity=1, epsilon=0.1, budget=budget)
    for count, wrong in enumerate(
        (
            lambda: watch.above(float("nan")),
            lambda: watch.first_above([1, "x"]),
            lambda: choice.offer([float("nan")], 0),
            lambda: choice.offer([1, None], 0),
        ),
        1,
    ):
        assert watch.above(0.5) is False
        choice.offer([0.5], count)
        with pytest.raises(DomainError):
            wrong()
        assert budget.refused == count
    for last in (lambda: watch.above(0.5), lambda: watch.above(float("nan")), lambda: choice.offer([0.5], 9)):
        with pytest.raises(BudgetExceeded, match="this budget is closed"):
            last()
    integers = fastdp.AboveThreshold(2**20, sensitivity=1, epsilon=0.1)
    with pytest.raises(DomainError, match="must be integers"):
        integers.first_above([1, 2.5])
