"""A classifier whose hypothesis is a decision tree: a few questions that a person can read."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..learning.trees import learn_tree
from ..support.boundary import boundary
from ..support.checks import integer
from .classifiers import names_of
from .labels import DeclaredClassifier


class TreeClassifier(DeclaredClassifier):
    """A private classifier whose hypothesis is a decision tree, such as "if age > 30: ... else: ...".

    Nothing about the columns is to be declared: thresholds are private quantiles. Labels may be wrong.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of a fit.
    delta : float in [0, 1)
        The delta of a fit.
    depth : int from 1 to 8
        How many questions a path has at most.
    quantiles : int from 1 to 255
        How many private quantiles of each column are its thresholds.
    classes : (negative, positive) or "observed"
        The two labels, which are public. "observed" reads them off `y`, which is not private, with a PrivacyWarning.
    beta : float in (0, 1)
        The probability with which the error bound of `concept_` may fail.
    outside : {"raise", "clip"}
        What becomes of entries that are missing, infinite or no number: a DomainError, or the nearest finite float, the
        least one where an entry is missing or no number, also in what is predicted.
    random_state : None, int or fastdp.Randomness
        None for secure randomness; an int is a seed, for tests only, after which nothing is private.
    budget : fastdp.Budget, optional
        What the fit is charged to; by default the budgets whose blocks are open.

    Attributes
    ----------
    rule_ : str
        The tree, as a person would write it.
    concept_ : fastdp.learning.LearnedTree
        The result of `fastdp.learn_tree`.
    classes_ : numpy.ndarray
        The two labels.
    guarantee_ : fastdp.privacy.Guarantee
        The guarantee of the fit.
    n_features_in_ : int
        How many columns `fit` was given.
    feature_names_in_ : numpy.ndarray of str
        Their names, if they have names.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP under replace-one neighbours, the number of records public.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp.sklearn import TreeClassifier
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(50_000, 2))
    >>> y = (X[:, 0] >= 25) & (X[:, 1] < 75)
    >>> model = TreeClassifier(epsilon=1.0, depth=2).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        depth: int = 3,
        quantiles: int = 15,
        classes: Any = (0, 1),
        beta: float = 0.05,
        outside: Any = "raise",
        random_state: Any = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.depth = depth
        self.quantiles = quantiles
        self.classes = classes
        self.beta = beta
        self.outside = outside
        self.random_state = random_state
        self.budget = budget

    @boundary
    def fit(self, X: Any, y: Any) -> TreeClassifier:
        """Learn from records, and charge for it.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The private records.
        y : array_like, shape (records,)
            Their labels, of the two `classes`.

        Returns
        -------
        TreeClassifier
            The estimator itself.
        """
        X, positives = self._labelled(X, y)
        quantiles = integer("quantiles", self.quantiles, least=1, most=255)
        self.concept_ = learn_tree(
            self._columns(X), positives, depth=self.depth, quantiles=quantiles, epsilon=self.epsilon,
            delta=self.delta, beta=self.beta, outside=self.outside, rng=self._randomness(), budget=self.budget,
        )  # fmt: skip
        self.guarantee_, self.rule_ = self.concept_.guarantee, str(self.concept_)
        return self

    @boundary
    def predict(self, X: Any) -> Any:
        """Predict the class of each record.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray
            A label of `classes_` for each record.
        """
        check_is_fitted(self, "guarantee_")
        return self._named(self.concept_.predict(self._columns(self._records(X, reset=False))))

    def _columns(self, X: Any) -> dict[str, Any]:
        """By the names that the rule prints."""
        return dict(zip(names_of(self), np.asarray(X, np.float64).T, strict=True))
