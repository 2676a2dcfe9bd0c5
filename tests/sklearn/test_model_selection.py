"""Grid search, pipelines, processes; parameters, clones, pickles; display."""

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
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from fastdp import ApproxDP, Budget, BudgetExceeded, PrivacyWarning, Randomness
from fastdp.sklearn import (
    BoxClassifier,
    ConjunctionClassifier,
    MWEMSynthesizer,
    PrivateLogisticRegression,
    PrivateMean,
    base,
)
from tests.sklearn.cases import BOX, INSIDE, SQUARE, N, cases, named

LEFT = r"^budget='left behind .*: must be a fastdp\.Budget of this process, or None"
SCORED = "pays for the fits of a search or a cross-validation, and not for their scores"


def search(estimator: Any, budget: Any, **more: Any) -> GridSearchCV:
    """Seven fits: three folds for two candidates, and one more."""
    estimator = clone(estimator).set_params(epsilon=0.1, delta=1e-7, budget=budget)
    return GridSearchCV(estimator, {"radius": [1.0, 5.0]}, cv=KFold(3), error_score="raise", **more)


def test_grid_search_charges_every_fit() -> None:
    estimator, X, y = cases()[2]
    budget = Budget(epsilon=0.7, delta=1e-6)
    with pytest.warns(PrivacyWarning, match=SCORED):
        found = search(estimator, budget).fit(X, y)
    assert budget.spent == ApproxDP(0.7, 7e-7)
    assert len(budget.releases) == 7
    assert found.best_estimator_.budget is budget
    with Budget(epsilon=0.7, delta=1e-6) as around, pytest.warns(PrivacyWarning, match=SCORED):
        search(estimator, None).fit(X, y)
    assert around.spent == budget.spent
    short = Budget(epsilon=0.65, delta=1e-6)
    with pytest.raises(BudgetExceeded), pytest.warns(PrivacyWarning, match=SCORED):
        search(estimator, short).fit(X, y)
    assert len(short.releases) == 6


def test_scores_of_private_fits_are_warned_of_where_they_are_published() -> None:
    """Not where a function chooses, nor where no budget is said to pay, nor for other fits."""
    estimator, X, y = cases()[2]
    estimator = clone(estimator).set_params(epsilon=0.1, delta=1e-7)

    def choose(results: Any) -> int:
        return int(len(results["params"]) - 1)

    with Budget(epsilon=2.0, delta=1e-5) as budget:
        searched = search(estimator, None, refit=choose).fit(X, y)
        make_pipeline(estimator).fit(X, y).score(X, y)
        for scored in (
            lambda: cross_val_score(estimator, X, y, cv=KFold(3)),
            lambda: cross_val_score(make_pipeline(estimator), X, y, cv=KFold(3), scoring="accuracy"),
        ):
            with pytest.warns(PrivacyWarning, match=SCORED):
                scored()
    assert searched.best_params_ == {"radius": 5.0}
    assert len(budget.releases) == 7 + 1 + 2 * 3
    cross_val_score(estimator, X, y, cv=KFold(3))


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
    with joblib.parallel_backend("threading"), pytest.warns(PrivacyWarning, match=SCORED):
        search(estimator, budget, n_jobs=2).fit(X, y)
    assert budget.spent == ApproxDP(0.7, 7e-7)


def test_a_function_that_chooses_is_found_from_threads() -> None:
    """It is the one of the search of these records; a search of others, in another thread, is none."""
    joblib = pytest.importorskip("joblib")
    estimator, X, y = cases()[2]
    budget = Budget(epsilon=4.0, delta=1e-5)
    with warnings.catch_warnings(), joblib.parallel_backend("threading"):
        warnings.simplefilter("error", PrivacyWarning)
        for model in (estimator, make_pipeline(estimator)):
            prefix = "" if model is estimator else f"{type(estimator).__name__.lower()}__"
            chosen = clone(model).set_params(
                **{f"{prefix}epsilon": 0.1, f"{prefix}delta": 1e-7, f"{prefix}budget": budget}
            )
            grid = {f"{prefix}radius": [1.0, 5.0]}
            GridSearchCV(chosen, grid, cv=KFold(3), refit=lambda r: 0, error_score="raise", n_jobs=2).fit(X, y)
    assert len(budget.releases) == 14
    with joblib.parallel_backend("threading"), pytest.warns(PrivacyWarning, match=SCORED):
        cross_val_score(clone(estimator).set_params(epsilon=0.1, delta=1e-7, budget=budget), X, y, n_jobs=2)


def test_only_a_search_of_the_same_records_counts() -> None:
    module: dict[str, Any] = {"__name__": "sklearn.model_selection._search", "found": base._refits_in_threads}
    exec("def fit(self, X, asked): return found(asked)\ndef cross_validate(X, asked): return found(asked)", module)
    X, other = SQUARE, SQUARE.copy()
    of_function = types.SimpleNamespace(refit=len)
    assert module["fit"](of_function, X, X) == [len]
    assert module["fit"](of_function, other, X) == []
    assert module["fit"](types.SimpleNamespace(refit=True), X, X) == [True]
    assert module["cross_validate"](X, X) == [None]


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
def test_a_fitted_estimator_that_leaves_a_block_is_not_fitted_again_for_free(case: Any) -> None:
    """Neither it nor a clone of it, until somebody states who pays; what it has learned it keeps."""
    estimator, X, y = case
    with Budget(epsilon=5) as budget:
        fitted = clone(estimator).set_params(random_state=0).fit(X, y)
        sent = pickle.dumps(fitted), pickle.dumps(fitted.fit), pickle.dumps(make_pipeline(fitted))
        assert fitted.budget is None
        fitted.fit(X, y)
    assert len(budget.releases) == 2
    again, fit, pipeline = map(pickle.loads, sent)
    assert again.guarantee_ == fitted.guarantee_
    refits = again.fit, fit, pipeline.fit, clone(again).fit, pickle.loads(pickle.dumps(again)).fit
    for refit in refits:
        with pytest.raises(ValueError, match=LEFT):
            refit(X, y)
    mine = Budget(epsilon=5)
    again.set_params(budget=mine).fit(X, y)
    assert len(mine.releases) == 1


def test_processes_that_fit_what_they_are_sent_cost_nobody_nothing() -> None:
    """Real processes: four fits by joblib of one that was fitted in the block."""
    joblib = pytest.importorskip("joblib")
    estimator, X, _ = cases()[4]
    with Budget(epsilon=5) as budget:
        fitted = clone(estimator).fit(X[:100])
        with pytest.raises(ValueError, match="left behind in the process that pickled this"):
            joblib.Parallel(n_jobs=2)(joblib.delayed(fitted.fit)(X[:100]) for _ in range(4))
    assert len(budget.releases) == 1


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


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r'which is not installed: pip install "fastdp\[sklearn\]"'):
        base.check_version()
    old = types.ModuleType("sklearn")
    old.__version__ = "1.5.2"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sklearn", old)
    with pytest.raises(ImportError, match=r"needs scikit-learn >= 1.6, and 1.5.2 is here"):
        base.check_version()
