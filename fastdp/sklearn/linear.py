"""Linear models: logistic regression and least squares over a ball, by `fastdp.private_erm`."""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..optimizing.losses import Logistic, Loss, Softmax, SquaredError
from ..optimizing.private_erm import PrivateMinimum, private_erm
from ..optimizing.sets import Ball
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import positive
from ..support.errors import DomainError
from ..support.shown import shown
from .base import Floats, PrivateEstimator, bounds_of, without_values
from .labels import DeclaredClassifier
from .scaling import Scaling, middle


class _LinearModel(PrivateEstimator):
    """What the two have in common."""

    epsilon: float
    delta: float
    bounds: Any
    data_norm: float | None
    radius: float | None
    fit_intercept: bool
    method: Any
    outside: Any

    def _scaling(self, d: int) -> Scaling:
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise ValueError(f"fit_intercept={shown(self.fit_intercept)}: must be True or False")
        return Scaling.of(self.bounds, self.data_norm, d, bool(self.fit_intercept))

    def _minimise(self, Z: Floats, y: Any, loss: Loss) -> Floats:
        radius = sqrt(Z.shape[1]) if self.radius is None else positive("radius", self.radius, toward=0)
        found: PrivateMinimum = private_erm(
            Z, y, loss=loss, over=Ball(radius), epsilon=self.epsilon, delta=self.delta, method=self.method,
            outside="clip", rng=self._randomness(), budget=self.budget,
        )  # fmt: skip
        self.result_, self.guarantee_ = found, found.guarantee
        self.n_iter_ = int(getattr(found.details, "steps", 1))
        return found.w


class PrivateLogisticRegression(DeclaredClassifier, _LinearModel):
    """Private logistic regression of two classes or more, over a ball of coefficients.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of a fit.
    delta : float in [0, 1)
        The delta of a fit; without a delta few columns and many records are needed.
    bounds : (lower, upper), optional
        Public bounds of the columns, which are scaled to [-1, 1] by them: two numbers, or two sequences with a number
        for each column.
    data_norm : float > 0, optional
        The L2 norm of rows, whose columns are scaled to [-1, 1] first if there are bounds; by default the square root
        of the number of columns. Half of that, with outside="clip", is often better: the noise grows with it. One of
        `bounds` and `data_norm` is needed.
    radius : float > 0
        The radius of the ball of coefficients, those of rows scaled to norm 1, intercept included. A larger one
        regularises less and needs more noise.
    fit_intercept : bool
        Whether there is an intercept.
    classes : sequence of labels or "observed"
        The labels, which are public: (negative, positive), or more than two. "observed" reads them off `y`, which is
        not private, with a PrivacyWarning.
    method : str
        As in `fastdp.private_erm`; of more than two classes, descents.
    outside : {"raise", "clip"}
        What becomes of records beyond bounds or norm: a DomainError, or the nearest record within them, at the
        lower bound (0 without bounds) where an entry is missing or no number.
    random_state : None, int or fastdp.Randomness
        None for secure randomness; an int is a seed, for tests only, after which nothing is private.
    budget : fastdp.Budget, optional
        What the fit is charged to; by default the budgets whose blocks are open.

    Attributes
    ----------
    coef_ : numpy.ndarray of float64, shape (1, columns) or (classes, columns)
        The coefficients, for records as they were given: one row for two classes, or a row for each of more.
    intercept_ : numpy.ndarray of float64, shape (1,) or (classes,)
        The intercepts.
    classes_ : numpy.ndarray
        The labels.
    n_iter_ : int
        The steps of the descent; 1 for other methods.
    result_ : fastdp.optimizing.PrivateMinimum
        The result of `fastdp.private_erm`.
    guarantee_ : fastdp.privacy.Guarantee
        The guarantee of the fit.
    n_features_in_ : int
        How many columns `fit` was given.
    feature_names_in_ : numpy.ndarray of str
        Their names, if they have names.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP under replace-one neighbours, the number of records public.
    Not covered  `score`, `predict` and whatever else reads records afterwards; several fits cost their sum.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp.sklearn import PrivateLogisticRegression
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(20_000, 3))
    >>> y = X[:, 0] > X[:, 1]
    >>> model = PrivateLogisticRegression(epsilon=1.0, delta=1e-6, bounds=(0, 100)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    several = True

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        bounds: Any = None,
        data_norm: float | None = None,
        radius: float = 10.0,
        fit_intercept: bool = True,
        classes: Any = (0, 1),
        method: Any = "auto",
        outside: Any = "raise",
        random_state: Any = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.data_norm = data_norm
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.method = method
        self.outside = outside
        self.random_state = random_state
        self.budget = budget

    @boundary
    def fit(self, X: Any, y: Any) -> PrivateLogisticRegression:
        """Learn from records, and charge for it.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The private records.
        y : array_like, shape (records,)
            Their labels, of the `classes`.

        Returns
        -------
        PrivateLogisticRegression
            The estimator itself.
        """
        X, codes = self._coded(X, y)
        scaling, count = self._scaling(X.shape[1]), len(self.classes_)
        Z = scaling.rows(X, self.outside)
        if count == 2:
            rows = self._minimise(Z, codes == 1, Logistic(x_norm=scaling.x_norm))[None, :]
        else:
            loss = Softmax(count, x_norm=scaling.x_norm)
            rows = loss.coefficients(self._minimise(Z, codes, loss))
        back = [scaling.back(w) for w in rows]
        self.coef_, self.intercept_ = np.array([w for w, _ in back]), np.array([intercept for _, intercept in back])
        return self

    @boundary
    def decision_function(self, X: Any) -> Floats:
        """The log odds of the positive class, or of more than two classes the score of each.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray of float64
            A number for each record, or a row for each record, in the order of `classes_`.
        """
        check_is_fitted(self, "guarantee_")
        X = self._records(X, reset=False)
        if len(self.classes_) == 2:
            return np.asarray(X @ self.coef_[0] + self.intercept_[0])
        return np.asarray(X @ self.coef_.T + self.intercept_)

    @boundary
    def predict(self, X: Any) -> Any:
        """Predict the likeliest class of each record.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray
            A label of `classes_` for each record.
        """
        scores = self.decision_function(X)
        return self._named(scores > 0 if scores.ndim == 1 else scores.argmax(axis=1))

    @boundary
    def predict_proba(self, X: Any) -> Floats:
        """The probabilities of all classes.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray of float64, shape (records, classes)
            A row for each record, in the order of `classes_`.
        """
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @boundary
    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of the probabilities of all classes.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray of float64, shape (records, classes)
            A row for each record, in the order of `classes_`.
        """
        score = self.decision_function(X)
        if score.ndim == 1:
            return np.column_stack([-np.logaddexp(0.0, score), -np.logaddexp(0.0, -score)])
        score = score - score.max(axis=1, keepdims=True)
        return np.asarray(score - np.log(np.exp(score).sum(axis=1, keepdims=True)))


class PrivateLinearRegression(RegressorMixin, _LinearModel):
    """Private least squares, over a ball of coefficients.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of a fit.
    delta : float in [0, 1)
        The delta of a fit; without a delta few columns and many records are needed.
    bounds : (lower, upper), optional
        Public bounds of the columns, which are scaled to [-1, 1] by them: two numbers, or two sequences with a number
        for each column.
    y_bounds : (lower, upper)
        Public bounds of the targets, two numbers.
    data_norm : float > 0, optional
        The L2 norm of rows, whose columns are scaled to [-1, 1] first if there are bounds; by default the square root
        of the number of columns. Half of that, with outside="clip", is often better: the noise grows with it. One of
        `bounds` and `data_norm` is needed.
    radius : float > 0, optional
        The radius of the ball of coefficients, where rows are scaled to norm 1 and targets to [-1, 1], intercept
        included; by default the square root of their number, so that a single column can explain all of y.
    fit_intercept : bool
        Whether there is an intercept.
    method : str
        As in `fastdp.private_erm`.
    outside : {"raise", "clip"}
        What becomes of records and targets beyond bounds or norm: a DomainError, or the nearest ones within
        them, at the lower bound (0 without bounds) where an entry of X is missing or no number.
    random_state : None, int or fastdp.Randomness
        None for secure randomness; an int is a seed, for tests only, after which nothing is private.
    budget : fastdp.Budget, optional
        What the fit is charged to; by default the budgets whose blocks are open.

    Attributes
    ----------
    coef_ : numpy.ndarray of float64, shape (columns,)
        The coefficients, for records as they were given.
    intercept_ : float
        The intercept.
    n_iter_ : int
        The steps of the descent; 1 for other methods.
    result_ : fastdp.optimizing.PrivateMinimum
        The result of `fastdp.private_erm`.
    guarantee_ : fastdp.privacy.Guarantee
        The guarantee of the fit.
    n_features_in_ : int
        How many columns `fit` was given.
    feature_names_in_ : numpy.ndarray of str
        Their names, if they have names.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP under replace-one neighbours, the number of records public.
    Not covered  `score`, `predict` and whatever else reads records afterwards; several fits cost their sum.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp.sklearn import PrivateLinearRegression
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(20_000, 3))
    >>> y = 2 * X[:, 0] - X[:, 1] + 7
    >>> model = PrivateLinearRegression(epsilon=1.0, delta=1e-6, bounds=(0, 100), y_bounds=(-100, 300)).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        bounds: Any = None,
        y_bounds: Any = None,
        data_norm: float | None = None,
        radius: float | None = None,
        fit_intercept: bool = True,
        method: Any = "auto",
        outside: Any = "raise",
        random_state: Any = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.data_norm = data_norm
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.method = method
        self.outside = outside
        self.random_state = random_state
        self.budget = budget

    @boundary
    def fit(self, X: Any, y: Any) -> PrivateLinearRegression:
        """Learn from records, and charge for it.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The private records.
        y : array_like, shape (records,)
            Their targets.

        Returns
        -------
        PrivateLinearRegression
            The estimator itself.
        """
        parameters.outside(self.outside)
        lower, upper = bounds_of("y_bounds", self.y_bounds, 1)
        X, y = self._records(X, y, y_numeric=True)
        scaling = self._scaling(X.shape[1])
        y = _numbers(y)
        if self.outside == "raise" and not ((lower <= y) & (y <= upper)).all():
            raise DomainError("y: must be within y_bounds; there are others: outside='clip' brings them back")
        center, half = (float(part[0]) for part in middle(lower, upper, scaling.intercept))
        targets = (np.clip(y, lower, upper) - center) / half
        w = self._minimise(scaling.rows(X, self.outside), targets, SquaredError(x_norm=scaling.x_norm, y_bound=1.0))
        coefficients, intercept = scaling.back(w)
        self.coef_, self.intercept_ = half * coefficients, half * intercept + center
        return self

    @boundary
    def predict(self, X: Any) -> Floats:
        """Predict the target of each record.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray of float64
            A number for each record.
        """
        check_is_fitted(self, "guarantee_")
        X = self._records(X, reset=False)
        return np.asarray(X @ self.coef_ + self.intercept_)


def _numbers(y: Any) -> Floats:
    try:
        return np.asarray(y, np.float64)
    except ValueError as error:
        message = without_values(str(error))
    raise ValueError(f"y: {message}")
