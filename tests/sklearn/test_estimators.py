"""fastdp.sklearn: scikit-learn's own checks, what fits cost, what errors, pickles and other processes must not do."""

from __future__ import annotations

import pickle
import sys
import types
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import fastdp
from fastdp import ApproxDP, Budget, BudgetExceeded, DomainError, PrivacyWarning, PureDP, Randomness
from fastdp.sklearn import (
    BoxClassifier,
    ConjunctionClassifier,
    MWEMSynthesizer,
    PrivateLinearRegression,
    PrivateLogisticRegression,
    PrivateMean,
    PrivateMedian,
    base,
)
from fastdp.sklearn.classifiers import cuts_of, rule_text
from fastdp.sklearn.grid import Grid

# --- scikit-learn's checks

# They ask for more than half of the variance, or 83 % of the labels, of 200 records, which no private fit at epsilon=1
# gives; everything else in them is the same at any epsilon.
EXACT = 1e4


def checked() -> list[Any]:
    thresholds = np.linspace(-2, 2, 17).tolist()
    return [
        ConjunctionClassifier(EXACT, thresholds=thresholds, max_literals=2, classes="observed", outside="clip"),
        BoxClassifier(EXACT, bounds=(-5, 5), classes="observed", outside="clip"),
        # of few columns "auto" would take an exponential mechanism here, a second a fit
        PrivateLogisticRegression(EXACT, bounds=(-5, 5), classes="observed", outside="clip", method="descent"),
        PrivateLinearRegression(EXACT, bounds=(-5, 5), y_bounds=(-5, 5), outside="clip", method="moments"),
        PrivateMean(EXACT, bounds=(-5, 5), outside="clip"),
        PrivateMedian(EXACT, bounds=(-5, 5), outside="clip"),
        MWEMSynthesizer(EXACT, bounds=(-5, 5), bins=2, degree=1, outside="clip"),
    ]


def results_of(estimator: Any, expected: dict[str, str] | None = None) -> dict[str, dict[str, str]]:
    """What failed, was expected to, or passed, each with why."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few records, of observed classes
        done = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert len(done) > 40
    return {
        status: {each["check_name"]: str(each["exception"]) for each in done if each["status"] == status}
        for status in ("failed", "xfail", "skipped", "passed")
    }


@pytest.mark.parametrize("estimator", checked(), ids=lambda e: type(e).__name__)
def test_everything_that_scikit_learn_checks(estimator: Any) -> None:
    found = results_of(estimator)
    assert not found["failed"]
    assert not found["xfail"]
    assert set(found["skipped"]) <= {"check_array_api_input"}  # where the environment leaves SCIPY_ARRAY_API unset


REFUSED = "y: Unknown label type: must be one of classes=(0, 1); there are other labels"
# checks whose labels are others, and that report what was raised in words of their own
IN_OTHER_WORDS = {
    "check_classifier_not_supporting_multiclass": "three labels are refused, without saying that there are three",
    "check_fit2d_1feature": "other labels are refused, where an error about columns may be raised, but no other",
    "check_classifiers_one_label": "all of ten records are positive: a box by interior points leaves some of them out",
}


@pytest.mark.parametrize("estimator", checked()[:3], ids=lambda e: type(e).__name__)
def test_with_declared_classes_only_checks_with_other_labels_fail(estimator: Any) -> None:
    found = results_of(clone(estimator).set_params(classes=(0, 1)), IN_OTHER_WORDS)
    assert set(found["failed"].values()) == {REFUSED}
    assert {"check_classifiers_classes"} <= set(found["failed"])
    assert {"check_classifier_not_supporting_multiclass"} <= set(found["xfail"])


# --- what a fit finds, on records that make it easy

RNG = np.random.default_rng(0)
N = 20_000
SQUARE = RNG.uniform(0, 100, size=(N, 3))
LINE = 2 * SQUARE[:, 0] - SQUARE[:, 1] + 7
ABOVE = (SQUARE[:, 0] > SQUARE[:, 1]).astype(int)
INSIDE = ((SQUARE[:, 0] > 30) & (SQUARE[:, 1] <= 60)).astype(int)
BOX = ([0, 0, 0], [100, 100, 100])


def cases() -> list[tuple[Any, Any, Any]]:
    """Estimators with what they can be fitted to."""
    return [
        (ConjunctionClassifier(thresholds=range(10, 100, 10), max_literals=2), SQUARE, INSIDE),
        (BoxClassifier(bounds=BOX), SQUARE, INSIDE),
        (PrivateLogisticRegression(bounds=BOX, method="descent"), SQUARE, ABOVE),
        (PrivateLinearRegression(bounds=BOX, y_bounds=(-100, 300)), SQUARE, LINE),
        (PrivateMean(bounds=BOX), SQUARE, None),
        (PrivateMedian(bounds=BOX), SQUARE, None),
        (MWEMSynthesizer(bounds=BOX, bins=5), SQUARE, None),
    ]


def named(case: Any) -> str:
    return type(case[0]).__name__ if isinstance(case, tuple) else repr(case)


def test_a_conjunction_reads_as_a_person_would_write_it() -> None:
    estimator, X, y = cases()[0]
    estimator.set_params(delta=1e-6, random_state=1).fit(X, y)
    assert estimator.rule_ == "x0 > 30 ∧ x1 ≤ 60"
    assert estimator.score(X, y) == 1.0
    assert estimator.predict(X).dtype == y.dtype


def test_columns_of_bits_need_no_thresholds() -> None:
    bits = np.random.default_rng(1).random((N, 6)) < 0.5
    y = bits[:, 1] & ~bits[:, 4]
    model = ConjunctionClassifier(delta=1e-6, max_literals=2, random_state=1)
    assert model.fit(bits, y).rule_ == "x1 ∧ ¬x4"
    assert model.fit(bits.astype(float), y).rule_ == "x1 ∧ ¬x4"
    with pytest.raises(DomainError, match="column 0: must hold 0 and 1 only"):
        model.fit(bits + 0.25, y)
    model.set_params(outside="clip").fit(bits + 0.25, y)
    assert model.rule_ == "x1 ∧ ¬x4"
    mixed = ConjunctionClassifier(delta=1e-6, thresholds=[None, [30, 50], 60], max_literals=2, random_state=1)
    X = np.column_stack([bits[:, 0], SQUARE[:, :2]])
    assert mixed.fit(X, bits[:, 0] & (SQUARE[:, 1] <= 60)).rule_ == "x0 ∧ x2 ≤ 60"
    assert mixed.cuts_ == [(0, None), (1, 30.0), (1, 50.0), (2, 60.0)]


def test_rules_leave_out_what_follows_from_the_rest() -> None:
    names = ["age", "smoker"]
    assert rule_text([], names) == "true"
    assert rule_text([((0, 30.0), True), ((0, 20.0), True), ((0, 50.0), False)], names) == "30 < age ≤ 50"
    assert rule_text([((1, None), False), ((0, 20.0), False), ((0, 30.0), False)], names) == "age ≤ 20 ∧ ¬smoker"
    assert rule_text([((0, 30.0), True), ((0, 30.0), False)], names) == "false"
    assert rule_text([((1, None), True), ((1, None), False)], names) == "false"


@pytest.mark.parametrize(
    ("thresholds", "said"),
    [
        ([[1.0], [2.0], [3.0]], "3 entries: must be 2"),
        ({"height": 1}, "'height': must be the name of a column"),
        ("high", "must be finite numbers"),
        ([[], [1]], "must be finite numbers"),
        (np.nan, "must be finite numbers"),
        ([None, "high"], "must be finite numbers"),
        (object(), "must be finite numbers"),
    ],
)
def test_bad_thresholds(thresholds: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        cuts_of(thresholds, ["age", "hours"])


def test_a_box_finds_its_sides() -> None:
    estimator, X, y = cases()[1]
    estimator.set_params(random_state=1).fit(X, y)
    assert estimator.score(X, y) > 0.95
    (low, _), (_, high), _ = estimator.intervals_
    assert abs(low - 30) < 3
    assert abs(high - 60) < 3
    assert estimator.intervals_[0, 1] > 99
    cells = Grid.of(BOX, 256, 3).cells(X, "raise")
    assert (estimator.concept_.predict(cells) == estimator.predict(X)).all()
    assert (estimator.predict([[1e9, -1e9, 50]]) == estimator.predict([[100, 0, 50]])).all()


@pytest.mark.parametrize(("lower", "upper", "count"), [(0, 1, 8), (-5.0, 5.0, 256), (0.1, 0.7, 10), (-1e300, 1e-3, 3)])
def test_cells_are_what_lies_between_their_edges(lower: float, upper: float, count: int) -> None:
    if abs(lower) > 2.0**400:
        with pytest.raises(ValueError, match="finite, lower < upper"):
            Grid.of((lower, upper), count, 1)
        return
    grid = Grid.of((lower, upper), count, 1)
    edges = np.array([float(grid.edges(np.array([c]))[0]) for c in range(count + 1)])
    X = np.concatenate([edges, np.nextafter(edges, -1e9), np.nextafter(edges, 1e9), RNG.uniform(lower, upper, 500)])
    X = X.clip(lower, upper)
    expected = np.minimum(np.searchsorted(edges, X, "right") - 1, count - 1)
    assert (grid.cells(X[:, None], "raise")[:, 0] == np.maximum(expected, 0)).all()


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("data_norm", [None, 0.9])
def test_linear_regression_is_least_squares_when_epsilon_is_large(fit_intercept: bool, data_norm: Any) -> None:
    X = RNG.uniform(-3, 3, size=(5_000, 2)) * [1.0, 0.1] + [1.0, 0.0]
    y = X @ [0.5, -2.0] + (3.0 if fit_intercept else 0.0)
    bounds = None if data_norm else ([-2, -0.3], [4, 0.3])
    model = PrivateLinearRegression(
        1e6, bounds=bounds, data_norm=data_norm and 4.1, y_bounds=(-8, 12), radius=20.0, fit_intercept=fit_intercept,
        random_state=0,
    ).fit(X, y)  # fmt: skip
    exact = LinearRegression(fit_intercept=fit_intercept).fit(X, y)
    assert np.abs(model.coef_ - exact.coef_).max() < 0.02
    assert abs(model.intercept_ - exact.intercept_) < 0.02
    assert np.abs(model.predict(X) - exact.predict(X)).max() < 0.05
    assert model.n_iter_ == 1


def test_logistic_regression_separates_as_the_exact_one_does() -> None:
    _, X, y = cases()[2]
    model = PrivateLogisticRegression(1.0, 1e-6, bounds=BOX, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.97
    exact = LogisticRegression(solver="newton-cholesky").fit(X, y).coef_[0]
    assert model.coef_[0] @ exact / np.linalg.norm(model.coef_) / np.linalg.norm(exact) > 0.98
    assert model.coef_.shape == (1, 3)
    assert model.intercept_.shape == (1,)
    assert 1 < model.n_iter_ <= 1000
    z = np.column_stack([(X - 50) / 50 / np.sqrt(3), np.ones(N)])  # what was fitted, as `bounds` scale it
    assert np.allclose(model.decision_function(X), z @ model.result_.w)
    probabilities = model.predict_proba(X)
    assert np.allclose(probabilities[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert np.allclose(np.exp(model.predict_log_proba(X)), probabilities)


def test_logistic_regression_on_real_records() -> None:
    X, y = load_breast_cancer(return_X_y=True)  # 569 records of 30 columns: few
    bounds = np.zeros(30), 1.1 * X.max(axis=0)
    scores = []
    for seed in range(5):
        model = PrivateLogisticRegression(
            2.0, 1e-5, bounds=bounds, data_norm=3.0, outside="clip", random_state=seed
        ).fit(X, y)
        scores.append(model.score(X, y))
    assert np.mean(scores) > 0.8  # 0.63 is the share of the larger class


def test_rows_beyond_the_norm_are_refused_or_brought_back() -> None:
    X = np.array([[3.0, 4.0], [0.3, 0.4]] * 50)
    y = [0, 1] * 50
    model = PrivateLogisticRegression(1.0, 1e-6, data_norm=1.0, random_state=0)
    with pytest.raises(DomainError, match="norm at most data_norm=1"):
        model.fit(X, y)
    clipped = model.set_params(outside="clip").fit(X, y).coef_
    assert (clipped == model.fit(np.array([[0.6, 0.8], [0.3, 0.4]] * 50), y).coef_).all()


@pytest.mark.parametrize("norm", [2.0**-400, 1.0, 2.0**400])
def test_no_warning_tells_of_a_record_far_away(norm: float) -> None:
    """Warnings are errors here: numpy has some for squares that overflow, which one record would bring about."""
    wild = np.array([[0.0, norm], [1e308, -1e308], [1.5e200, 0.0]])
    mean = PrivateMean(EXACT, data_norm=norm, outside="clip", random_state=0)
    unit = np.array([[0.0, norm], [norm / 2**0.5, -norm / 2**0.5], [norm, 0.0]])
    np.testing.assert_allclose(mean.fit(wild).center_ / norm, mean.fit(unit).center_ / norm, rtol=1e-12)
    with pytest.raises(DomainError, match="norm at most data_norm"):
        mean.set_params(outside="raise").fit(wild)


def test_means_and_medians_of_columns() -> None:
    X = RNG.lognormal([0, 1], 0.5, size=(N, 2))
    mean = PrivateMean(1.0, 1e-6, bounds=(0, 20), outside="clip", random_state=0).fit(X)
    assert np.abs(mean.center_ - X.mean(axis=0)).max() < 0.05
    median = PrivateMedian(1.0, bounds=(0, 1000), outside="clip", random_state=0).fit(X)
    assert np.abs(median.center_ - np.median(X, axis=0)).max() < 0.1
    for estimator in (mean, median):
        assert np.array_equal(estimator.transform(X), X - estimator.center_)
        assert np.allclose(estimator.inverse_transform(estimator.transform(X)), X)
        assert estimator.get_feature_names_out().tolist() == ["x0", "x1"]


@pytest.mark.parametrize("parameters", [(5.0, 0.0), (1.0, 0.01)], ids=["laplace", "gaussian"])
def test_the_noise_of_a_mean_is_as_said(parameters: tuple[float, float]) -> None:
    X = np.tile([[10.0, -1.0]], (100, 1))
    model = PrivateMean(*parameters, bounds=([-100, -12], [120, 10]))
    found = np.array([model.set_params(random_state=seed).fit(X).center_ for seed in range(600)])
    assert np.abs(found.std(axis=0) / model.noise_scale_ - 1).max() < 0.15
    assert np.abs((found.mean(axis=0) - [10, -1]) / model.noise_scale_).max() < 0.25


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
@pytest.mark.parametrize("d", [1, 3])
def test_a_median_is_that_of_fastdp_with_its_share_of_epsilon(d: int) -> None:
    X = RNG.uniform(0, 1, size=(50, d))
    for seed in range(20):
        model = PrivateMedian(0.75, bounds=(0, 1), bits=10, random_state=seed).fit(X)
        cells = np.floor(X[:, 0] * 1024).astype(int)
        expected = fastdp.median(cells, domain_bits=10, epsilon=0.75 / d, rng=Randomness(seed=seed))
        assert model.center_[0] == (expected + 0.5) / 1024


def test_few_records_are_told_before_a_median_is_released() -> None:
    with Budget(epsilon=1) as budget, pytest.raises(fastdp.AccuracyWarning, match="too few for medians"):
        PrivateMedian(0.1, bounds=(0, 1)).fit([[0.5], [0.25]])
    assert not budget.releases


def test_synthetic_records_have_the_tables_of_the_real_ones() -> None:
    age = RNG.integers(18, 80, size=N)
    X = np.column_stack([age, age + RNG.integers(0, 10, size=N), RNG.integers(0, 2, size=N)]).astype(float)
    bounds = ([15, 15, -0.5], [95, 95, 1.5])
    model = MWEMSynthesizer(1.0, 1e-6, bounds=bounds, bins=8, random_state=0).fit(X)
    records = model.sample(N, random_state=1)
    assert records.shape == (N, 3)
    assert np.corrcoef(records[:, :2].T)[0, 1] > 0.9
    assert abs(records[:, 0].mean() - X[:, 0].mean()) < 2
    assert set(np.unique(records[:, 0])) <= set(15 + 10 * (np.arange(8) + 0.5))
    table = np.histogram2d(X[:, 0], X[:, 1], bins=8, range=[(15, 95)] * 2)[0] / N
    assert np.abs(model.distribution_.marginal(["x0", "x1"]) - table).sum() < 0.05
    assert (model.transform(X)[:, 0] == np.minimum((X[:, 0] - 15) // 10, 7)).all()
    uniform = MWEMSynthesizer(1e-6, 1e-6, bounds=bounds, bins=8, rounds=1, variant="average", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        uniform.fit(X)
    assert model.score(X) > uniform.score(X) + 1
    cells = model.domain_.cells(list(model.transform(X).T))
    volume = 10 * 10 * 0.25
    assert model.score(X) == pytest.approx(np.log(model.distribution_.probabilities()[cells] / volume).mean())


def test_synthetic_labels() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"region": RNG.choice(["north", "south"], size=N, p=[0.8, 0.2]), "age": RNG.integers(0, 4, size=N)}
    )
    domain = {"age": 4, "region": ["south", "north"]}
    model = MWEMSynthesizer(1.0, 1e-6, domain=domain, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["region", "age"]  # and so the domain goes
    records = model.sample(N, random_state=0)
    assert records.shape == (N, 2)
    assert abs(np.mean(records[:, 0] == "north") - 0.8) < 0.03
    assert model.transform(frame[:2]).tolist() == [
        [["south", "north"].index(region), age] for region, age in frame[:2].itertuples(index=False)
    ]
    assert model.score(frame) == pytest.approx(
        np.log([model.distribution_.marginal(["region", "age"])[tuple(row)] for row in model.transform(frame)]).mean()
    )
    with pytest.raises(ValueError, match="must be named as the columns"):
        clone(model).fit(frame.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="2 attributes: must be 3"):
        clone(model).fit(np.zeros((5, 3), int))
    with pytest.raises(DomainError, match="'region': must hold the labels of the domain only") as refused:
        clone(model).fit(frame.replace("south", "SECRET"))
    assert "SECRET" not in str(refused.value)


# --- what is not declared is not read off the data


@pytest.mark.parametrize(
    ("estimator", "said"),
    [
        (ConjunctionClassifier(), "must hold 0 and 1 only, as it has no thresholds"),
        (BoxClassifier(), "bounds=None: must be .* never read off the data"),
        (PrivateLogisticRegression(), "bounds=None: must be .* or data_norm= .* never read off the data"),
        (PrivateLinearRegression(bounds=BOX), "y_bounds=None: must be .* never read off the data"),
        (PrivateLinearRegression(y_bounds=(0, 1)), "bounds=None: must be"),
        (PrivateMean(), "bounds=None: must be"),
        (PrivateMedian(), "bounds=None: must be"),
        (MWEMSynthesizer(), "bounds=None: must be .* or domain="),
        (MWEMSynthesizer(bounds=BOX, domain={"a": 2}), "must be None with a domain"),
    ],
    ids=named,
)
def test_missing_bounds_are_refused(estimator: Any, said: str) -> None:
    budget = Budget(epsilon=1)
    with pytest.raises(ValueError, match=said):
        estimator.set_params(budget=budget).fit(SQUARE, ABOVE)
    assert not budget.releases
    assert budget.spent == PureDP(0.0)


@pytest.mark.parametrize(
    "bounds", [3, (1, 0), (0, np.inf), (np.nan, 1), ([0, 0], [1, 1]), ([0, 0, 0], [1, 1, 0]), "ab", (0, 1, 2)]
)
@pytest.mark.parametrize("index", [1, 2, 3, 4, 5, 6])
def test_bad_bounds(bounds: Any, index: int) -> None:
    estimator, X, y = cases()[index]
    with pytest.raises(ValueError, match=r"^bounds=.*must be \(lower, upper\)") as refused:
        estimator.set_params(bounds=bounds).fit(X, y)
    assert "pairs" not in str(refused.value)


def test_errors_say_how_it_is_done() -> None:
    pairs = [(0, 100)] * 3
    with pytest.raises(ValueError, match=r"tuple\(zip\(\*pairs\)\) makes that of a pair for each column"):
        BoxClassifier(bounds=pairs).fit(np.ones((4, 3)), [0, 1, 0, 1])
    assert tuple(zip(*pairs, strict=True)) == ((0, 0, 0), (100, 100, 100))
    with pytest.raises(ValueError, match="or data_norm= of the rows, from public knowledge: "):
        PrivateLogisticRegression().fit(SQUARE, ABOVE)
    with pytest.raises(ValueError, match=r"strings: OneHotEncoder\(categories=") as refused:
        BoxClassifier(bounds=(0, 1)).fit([["SECRET"]] * 4, [0, 1, 0, 1])
    assert "SECRET" not in str(refused.value)
    frame = pytest.importorskip("pandas").DataFrame({"smokes": [0, 1], "age": [20, 30]})
    with pytest.raises(DomainError, match="X: column 'age': must hold 0 and 1 only"):
        ConjunctionClassifier().fit(frame, [0, 1])


@pytest.mark.parametrize("index", [1, 2, 3, 4, 5, 6])
def test_records_beyond_the_bounds_are_refused_or_clipped(index: int) -> None:
    estimator, X, y = cases()[index]
    wild = X.copy()
    wild[17, 1] = 31337.25
    budget = Budget(epsilon=5)
    estimator.set_params(budget=budget, random_state=3)
    with pytest.raises(DomainError, match="must be within bounds") as refused:
        estimator.fit(wild, y)
    assert "31337" not in str(refused.value)
    assert not budget.releases
    estimator.set_params(outside="clip").fit(wild, y)
    clipped = clone(estimator).fit(np.clip(wild, 0, 100), y)
    for name in ("coef_", "center_", "intervals_"):
        assert np.array_equal(getattr(estimator, name, 0), getattr(clipped, name, 0))
    with pytest.raises(ValueError, match="outside='drop': must be one of 'raise', 'clip'"):
        estimator.set_params(outside="drop").fit(wild, y)


def test_targets_beyond_their_bounds() -> None:
    estimator, X, y = cases()[3]
    wild = np.where(np.arange(N) == 5, 31337.25, y)
    with pytest.raises(DomainError, match="must be within y_bounds") as refused:
        estimator.fit(X, wild)
    assert "31337" not in str(refused.value)
    estimator.set_params(outside="clip", random_state=0).fit(X, wild)
    assert np.array_equal(estimator.coef_, clone(estimator).fit(X, np.clip(wild, -100, 300)).coef_)


# --- classes


def test_classes_are_declared() -> None:
    estimator, X, y = cases()[2]
    words = np.array(["no", "yes"])[y]
    estimator.set_params(classes=("no", "yes"), delta=1e-6, random_state=0).fit(X, words)
    assert estimator.classes_.tolist() == ["no", "yes"]
    assert np.mean(estimator.predict(X) == words) > 0.97
    reverse = clone(estimator).set_params(classes=("yes", "no")).fit(X, words)
    assert np.mean(reverse.predict(X) == words) > 0.97
    budget = Budget(epsilon=1)
    for given in (words, y + 1, np.array(words, object), y + 0.5):
        with pytest.raises(DomainError, match=r"y: .*must be one of classes=\(0, 1\); there are other labels"):
            clone(estimator).set_params(classes=(0, 1), budget=budget).fit(X, given)
    assert not budget.releases
    assert clone(estimator).set_params(classes=(0, 1)).fit(X, y == 1).classes_.tolist() == [0, 1]


def test_one_label_alone_is_not_told_from_two() -> None:
    estimator, X, _ = cases()[2]
    model = estimator.set_params(delta=1e-6, random_state=0).fit(X, np.zeros(N, int))
    assert model.classes_.tolist() == [0, 1]
    assert model.predict(X).max() == 0


def test_observed_classes_say_that_they_were_read_off_the_data() -> None:
    estimator, X, y = cases()[2]
    estimator.set_params(classes="observed", delta=1e-6)
    with pytest.warns(PrivacyWarning, match="read off y"):
        estimator.fit(X, y + 4)
    assert estimator.classes_.tolist() == [4, 5]
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        clone(estimator).fit(X, np.arange(N) % 3)
    with pytest.raises(ValueError, match="holds one class"):
        clone(estimator).fit(X, np.zeros(N))


@pytest.mark.parametrize("classes", [(0,), (0, 1, 2), (1, 1), "seen", None, 7, (0, "1")])
def test_bad_classes(classes: Any) -> None:
    estimator, X, y = cases()[2]
    with pytest.raises(ValueError, match=r"classes=.*must be two different labels"):
        estimator.set_params(classes=classes).fit(X, y)


def test_more_classes_by_one_fit_for_each() -> None:
    _, X, _ = cases()[2]
    y = np.argmax(X, axis=1)
    with Budget(epsilon=3, delta=1e-5) as budget:
        each = PrivateLogisticRegression(1.0, 1e-6, bounds=BOX, random_state=0)
        model = OneVsRestClassifier(each).fit(X, y)
    assert model.score(X, y) > 0.9
    assert budget.spent == ApproxDP(3.0, 3e-6)


# --- what a fit costs


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("case", cases(), ids=named)
def test_a_fit_charges_what_it_says(case: Any, delta: float) -> None:
    estimator, X, y = case
    whole = ApproxDP(0.7, delta) if delta and named(case) != "PrivateMean" else PureDP(0.7)  # Laplace noise is less
    given = Budget(epsilon=0.7, delta=delta)
    estimator = clone(estimator).set_params(epsilon=0.7, delta=delta, budget=given, random_state=0).fit(X, y)
    assert given.spent == whole
    assert len(given.releases) == 1
    assert estimator.guarantee_ == given.releases[0].guarantee
    assert estimator.guarantee_.implies(whole)
    with pytest.raises(BudgetExceeded):
        estimator.fit(X, y)
    with Budget(epsilon=0.7, delta=delta) as around:
        clone(estimator).set_params(budget=None).fit(X, y)
    assert around.spent == whole


@pytest.mark.parametrize("case", cases(), ids=named)
def test_bad_input_costs_nothing(case: Any) -> None:
    estimator, X, y = case
    budget = Budget(epsilon=9)
    estimator = clone(estimator).set_params(budget=budget)
    holes = X.copy()
    holes[5, 1] = np.nan
    bad: list[tuple[Any, Any, dict[str, Any]]] = [
        (holes, y, {}), (X[:0], None if y is None else y[:0], {}), (X, y, {"epsilon": -1.0}), (X, y, {"delta": 2.0}),
        (X, y, {"random_state": np.random.RandomState(0)}), (X, y, {"random_state": True}),
    ]  # fmt: skip
    if y is not None:
        bad += [(X, y[:-1], {}), (X, None, {}), (X, np.where(np.arange(N) == 3, np.nan, y), {})]
    for records, labels, parameters in bad:
        with pytest.raises(ValueError):  # noqa: PT011
            clone(estimator).set_params(**parameters).fit(records, labels)
    with pytest.raises(ValueError, match=r"must be a fastdp\.Budget"):
        clone(estimator).set_params(budget=1.0).fit(X, y)
    with pytest.raises(ValueError, match="this budget is for 'add-remove'"):
        clone(estimator).set_params(budget=Budget(epsilon=9, neighbors="add-remove")).fit(X, y)
    with pytest.raises(TypeError, match="sample_weight"):
        estimator.fit(X, y, sample_weight=np.ones(N))
    assert not budget.releases
    with pytest.raises(NotFittedError):
        getattr(estimator, "predict", getattr(estimator, "transform", None))(X)


# --- errors show no record


@pytest.mark.parametrize("case", cases(), ids=named)
def test_errors_do_not_quote_records(case: Any) -> None:
    estimator, X, y = case
    words = X[:10].astype(object)
    words[3, 1] = "SECRET"
    secret = np.full(10, 31337.25)
    labels = None if y is None else y[:10]
    tries = [
        (words, labels), (words.astype(str), labels), (secret, labels), (X[:10] + 31337.25j, labels),
        (np.full((10, 3), 31337.25), labels),
    ]  # fmt: skip
    if y is not None:
        tries += [(X[:10], secret * 1j), (X[:10], np.where(np.arange(10) < 5, "SECRET", "0")), (X[:10], secret)]
        tries += [(X[:10], np.array(["SECRET"] * 10, object)), (X[:10], np.stack([secret, secret], 1))]
    refused = 0
    for records, targets in tries:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clone(estimator).fit(records, targets)
        except ValueError as error:
            refused += 1
            shown: BaseException | None = error
            while shown is not None:
                assert "SECRET" not in str(shown)
                assert "31337" not in str(shown)
                shown = shown.__cause__ or shown.__context__
    assert refused >= len(tries) - 2  # a conjunction takes any number


def test_what_is_left_of_messages() -> None:
    model = PrivateMean(bounds=BOX)
    for records, said in [
        ([1.0, 2.0], r"Expected 2D array, got 1D array instead:\s+Reshape your data"),
        ([["a", "b"]], "must hold numbers only"),
        (np.ones((2, 2)) * 1j, "^Complex data not supported$"),
        ([[1.0, np.nan, 2.0]], "Input X contains NaN"),
    ]:
        with pytest.raises(ValueError, match=said):
            model.fit(records)


# --- grid search, pipelines, processes


def search(estimator: Any, budget: Any, **more: Any) -> GridSearchCV:
    """Seven fits: three folds for two candidates, and one more."""
    estimator = clone(estimator).set_params(epsilon=0.1, delta=1e-7, budget=budget)
    return GridSearchCV(estimator, {"radius": [1.0, 5.0]}, cv=KFold(3), error_score="raise", **more)


def test_grid_search_charges_every_fit() -> None:
    estimator, X, y = cases()[2]
    budget = Budget(epsilon=0.7, delta=1e-6)
    found = search(estimator, budget).fit(X, y)
    assert budget.spent == ApproxDP(0.7, 7e-7)
    assert len(budget.releases) == 7
    assert found.best_estimator_.budget is budget
    with Budget(epsilon=0.7, delta=1e-6) as around:
        search(estimator, None).fit(X, y)
    assert around.spent == budget.spent
    short = Budget(epsilon=0.65, delta=1e-6)
    with pytest.raises(BudgetExceeded):
        search(estimator, short).fit(X, y)
    assert len(short.releases) == 6


def test_fits_in_other_processes_share_no_budget() -> None:
    estimator, X, y = cases()[2]
    budget = Budget(epsilon=0.7, delta=1e-6)
    with pytest.raises((TypeError, pickle.PicklingError)) as refused:
        search(estimator, budget, n_jobs=2).fit(X, y)
    assert "a Budget does not pickle" in causes(refused.value)
    assert not budget.releases
    with budget, pytest.raises((TypeError, pickle.PicklingError)) as refused:
        search(estimator, None, n_jobs=2).fit(X, y)
    assert "would not be charged to it" in causes(refused.value)
    assert not budget.releases


def causes(error: BaseException | None) -> str:
    said = ""
    while error is not None:
        said += str(error)
        error = error.__cause__ or error.__context__
    return said


def test_fits_in_threads_share_one() -> None:
    joblib = pytest.importorskip("joblib")
    estimator, X, y = cases()[2]
    budget = Budget(epsilon=0.7, delta=1e-6)
    with joblib.parallel_backend("threading"):
        search(estimator, budget, n_jobs=2).fit(X, y)
    assert budget.spent == ApproxDP(0.7, 7e-7)


def test_in_a_pipeline() -> None:
    _, X, y = cases()[2]
    scaled = FunctionTransformer(lambda X: X / 100)
    with Budget(epsilon=1, delta=1e-5) as budget:
        model = make_pipeline(
            scaled,
            PrivateMean(0.2, 1e-7, bounds=(0, 1)),
            PrivateLogisticRegression(0.8, 1e-7, data_norm=1.0, outside="clip"),
        )
        model.set_params(privatelogisticregression__random_state=0, privatemean__random_state=1).fit(X, y)
    assert budget.spent == ApproxDP(1.0, 1e-7)  # a mean of three columns has less noise without a delta
    assert model.score(X, y) > 0.95
    scores = cross_val_score(model, X, y, cv=KFold(3))
    assert scores.shape == (3,)
    assert scores.min() > 0.9


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_bring_names(library: str) -> None:
    frames = pytest.importorskip(library)
    names = ["age", "hours", "pay"]
    frame = frames.DataFrame({name: SQUARE[:, j] for j, name in enumerate(names)})
    if sklearn.__version__ < "1.7" and not hasattr(frame, "__dataframe__"):
        pytest.skip("scikit-learn 1.6 sees names by a protocol that this polars has no more")
    model = ConjunctionClassifier(
        1.0, 1e-6, thresholds={"age": [20, 30, 40], "hours": 60, "pay": [10, 50]}, max_literals=2, random_state=0
    ).fit(frame, INSIDE)
    assert model.rule_ == "age > 30 ∧ hours ≤ 60"
    assert model.feature_names_in_.tolist() == names
    assert model.n_features_in_ == 3
    assert model.predict(frame).tolist() == INSIDE.tolist()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["hours", "age", "pay"]])
    mean = PrivateMean(1.0, 1e-6, bounds=BOX, random_state=0).set_output(transform=library)
    assert list(mean.fit_transform(frame).columns) == names


# --- parameters, clones, pickles


@pytest.mark.parametrize("case", cases(), ids=named)
def test_clones_share_a_budget_and_nothing_else(case: Any) -> None:
    estimator, X, y = case
    budget = Budget(epsilon=5)
    first = clone(estimator).set_params(budget=budget, random_state=Randomness(seed=1)).fit(X, y)
    again = clone(first)
    assert again.budget is budget
    assert not hasattr(again, "guarantee_")
    assert again.get_params().keys() == first.get_params().keys()
    assert again.set_params(epsilon=0.5).epsilon == 0.5
    assert first.epsilon == 1.0


@pytest.mark.parametrize("case", cases(), ids=named)
def test_a_fitted_estimator_pickles_without_its_budget(case: Any) -> None:
    estimator, X, y = case
    budget = Budget(epsilon=5)
    fitted = clone(estimator).set_params(budget=budget, random_state=0).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    method = "transform" if y is None else "predict"
    assert np.array_equal(getattr(again, method)(X), getattr(fitted, method)(X))
    assert again.guarantee_ == fitted.guarantee_
    with pytest.raises(ValueError, match=r"left behind in the process .*: must be a fastdp\.Budget"):
        again.fit(X, y)
    assert fitted.budget is budget
    assert again.set_params(budget=None).fit(X, y).guarantee_ == fitted.guarantee_
    assert pickle.loads(pickle.dumps(again)).budget is None


@pytest.mark.parametrize("case", cases(), ids=named)
def test_one_that_is_to_be_fitted_does_not_leave_its_budget(case: Any) -> None:
    estimator = clone(case[0])
    assert type(pickle.loads(pickle.dumps(estimator))) is type(estimator)
    with pytest.raises(TypeError, match="a Budget does not pickle"):
        pickle.dumps(clone(estimator).set_params(budget=Budget(epsilon=1)))
    with Budget(epsilon=1), pytest.raises(TypeError, match="while a Budget block is open"):
        pickle.dumps(estimator)


@pytest.mark.parametrize("case", cases(), ids=named)
def test_seeds_are_for_tests_and_the_default_is_not_one(case: Any) -> None:
    estimator, X, y = case
    few = slice(0, N if isinstance(estimator, BoxClassifier) else 500)
    epsilon = 0.01 if isinstance(estimator, ConjunctionClassifier) else 0.3  # so that rules are all about as likely
    y = None if y is None else y[few]

    def fitted(random_state: Any) -> bytes:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = clone(estimator).set_params(random_state=random_state, epsilon=epsilon).fit(X[few], y)
        kept = ("coef_", "center_", "intervals_", "rule_")
        found = [getattr(model, name) for name in kept if hasattr(model, name)]
        if isinstance(model, MWEMSynthesizer):
            found = [model.distribution_.probabilities()]
        return pickle.dumps(found)

    assert fitted(7) == fitted(7) == fitted(np.int64(7)) == fitted(Randomness(seed=7))
    assert len({fitted(None) for _ in range(12)}) > 1


# --- showing


def test_notebooks_see_the_diagram_and_the_guarantee() -> None:
    estimator, X, y = cases()[3]
    before = estimator._repr_mimebundle_()["text/html"]
    assert "PrivateLinearRegression" in before
    assert "DP, replace-one" not in before
    estimator.set_params(delta=1e-6).fit(X, y)
    for shown in (estimator._repr_html_(), estimator._repr_mimebundle_()["text/html"]):
        assert "sk-estimator" in shown
        assert "<p>The fit is (1, 1e-06)-DP" in shown
    assert repr(estimator).startswith("PrivateLinearRegression(bounds=")


# --- the extra


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r'which is not installed: pip install "fastdp\[sklearn\]"'):
        base.check_version()
    old = types.ModuleType("sklearn")
    old.__version__ = "1.5.2"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sklearn", old)
    with pytest.raises(ImportError, match=r"needs scikit-learn >= 1.6, and 1.5.2 is here"):
        base.check_version()
