"""A search among settings of a private classifier that is paid for: the fits, their scores, and the choice."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from ..mechanisms.noise import laplace
from ..mechanisms.private_tuning import best_of
from ..privacy.budget import Budget
from ..randomness.keys import Randomness
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import check_fits, integer, length_of, plain_array, probability
from ..support.parameters import MOST_STEPS
from ..support.shown import shown
from .base import PrivateEstimator


class PrivateSearch(ClassifierMixin, PrivateEstimator):
    """A private classifier with the best of many settings, for twice the epsilon of one fit.

    Each of a random number of runs draws a setting, fits, and scores the fit by the noisy number of right labels. The
    best is kept, and nobody is told how many there were.

    Parameters
    ----------
    estimator : classifier of fastdp.sklearn
        What is fitted; its epsilon, delta, budget and random_state are set by the search.
    param_grid : mapping or sequence of mapping
        The settings, as GridSearchCV takes them. They are public.
    k : int >= 1
        The mean number of runs. Some times the number of settings is enough to try most of them.
    epsilon : float > 0
        The epsilon of all together.
    score_share : float in (0, 1)
        The share of a run's epsilon that its score takes.
    random_state : None, int or fastdp.Randomness
        None for secure randomness; an int is a seed, for tests only, after which nothing is private.
    budget : fastdp.Budget, optional
        What the search is charged to; by default the budgets whose blocks are open.

    Attributes
    ----------
    best_estimator_ : classifier
        The best fit.
    best_params_ : dict
        Its setting.
    best_score_ : float
        Its noisy number of right labels.
    guarantee_ : Guarantee
        Of the whole search.

    Notes
    -----
    Guarantee    epsilon-DP, replace-one neighbours
    Proof        ../privacy/best_of_runs.md, theorem 1; one record changes the number of right labels by one
    Not covered  the time a fit takes, which tells the number of runs

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp.sklearn import BoxClassifier, PrivateSearch
    >>> X = np.random.default_rng(0).uniform(0, 1, (5000, 2))
    >>> y = (X[:, 0] > 0.5).astype(int)
    >>> grid = {"bits": [2, 8]}
    >>> search = PrivateSearch(BoxClassifier(bounds=(0, 1), classes=(0, 1)), grid, epsilon=20.0).fit(X, y)
    >>> print(search.guarantee_)
    20-DP, replace-one
    """

    def __init__(
        self,
        estimator: Any = None,
        param_grid: Any = None,
        *,
        k: int = 20,
        epsilon: float = 1.0,
        score_share: float = 0.1,
        random_state: Any = None,
        budget: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.k = k
        self.epsilon = epsilon
        self.score_share = score_share
        self.random_state = random_state
        self.budget = budget

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):  # it takes what its estimator does
            theirs = self.estimator.__sklearn_tags__()
            tags.classifier_tags, tags.input_tags = theirs.classifier_tags, theirs.input_tags
        return tags

    @boundary
    def fit(self, X: Any, y: Any) -> PrivateSearch:
        """Search, and keep the best fit.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Records.
        y : array_like of shape (n,)
            Their labels.

        Returns
        -------
        PrivateSearch
            self
        """
        settings = self._settings()
        k, epsilon = integer("k", self.k, least=1, most=MOST_STEPS), parameters.epsilon(self.epsilon)
        share = probability("score_share", self.score_share, toward=0)
        rng = self._randomness()
        if isinstance(y, list | tuple | range):
            check_fits("y", None, 16 * length_of("y", y), "so many labels")
        source, labels = rng or Randomness(), plain_array("y", y, "labels")

        def run(own: Budget) -> tuple[Any, float]:
            setting = settings[int(source.words(1)[0] % np.uint64(len(settings)))]
            one = clone(self.estimator).set_params(**setting)
            given = {"epsilon": own.epsilon * (1 - share), "random_state": rng, "budget": own}
            one.set_params(**given, **({"delta": 0.0} if "delta" in one.get_params(deep=False) else {}))
            one.fit(X, y)
            right = int(np.count_nonzero(np.asarray(one.predict(X)) == labels))
            score = laplace(right, sensitivity=1, epsilon=own.left.epsilon, rng=rng, budget=own)
            return (one.set_params(budget=None, random_state=None), setting), float(score)

        best = best_of(run, k, epsilon=epsilon, rng=rng, budget=self.budget)
        (self.best_estimator_, self.best_params_), self.best_score_ = best.value, best.score
        self.guarantee_ = best.guarantee
        self.classes_ = self.best_estimator_.classes_
        self.n_features_in_ = self.best_estimator_.n_features_in_
        return self

    def _settings(self) -> list[dict[str, Any]]:
        takes: dict[str, Any] = getattr(self.estimator, "get_params", dict)()
        if not {"epsilon", "budget", "random_state"} <= set(takes) or not hasattr(self.estimator, "predict"):
            raise ValueError(f"estimator={shown(self.estimator)}: must be a classifier of fastdp.sklearn")
        try:
            settings: list[dict[str, Any]] = list(ParameterGrid(self.param_grid))
        except (TypeError, ValueError):
            raise ValueError("param_grid: must be a mapping of names to lists of values, or some of them") from None
        for name in sorted({name for setting in settings for name in setting}):
            if name in ("epsilon", "delta", "budget", "random_state") or name not in takes:
                raise ValueError(f"param_grid: {name!r}: must be a parameter of the estimator that no price depends on")
        if not settings:
            raise ValueError("param_grid: must hold at least one setting")
        return settings

    @boundary
    def predict(self, X: Any) -> Any:
        """The labels that the best fit predicts.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Records.

        Returns
        -------
        numpy.ndarray
        """
        check_is_fitted(self)
        return self.best_estimator_.predict(X)


__all__ = ["PrivateSearch"]
