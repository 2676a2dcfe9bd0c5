"""Classifiers whose hypothesis a person can read: conjunctions of thresholds, and boxes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..learning.boxes import learn_box
from ..learning.conjunctions import learn_conjunction
from ..records.column_names import label_of
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import integer, items_of
from ..support.errors import DomainError
from ..support.parameters import MOST_DIMENSIONS
from ..support.shown import shown
from .base import Floats, PrivateEstimator
from .grid import CellGrid
from .labels import DeclaredClassifier

Cut = tuple[int, float | None]  # a column, and what it must exceed; None for a column of 0 and 1


class ConjunctionClassifier(DeclaredClassifier):
    """A private classifier whose hypothesis is a rule such as 30 < age ≤ 50 ∧ ¬smoker.

    Records for which the rule holds are of the second of `classes`.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of a fit.
    delta : float in [0, 1)
        The delta of a fit.
    thresholds : array_like, list or mapping, optional
        Public numbers at which columns are cut: numbers, for every column; a list with an entry for each column, None
        or numbers; or a mapping from names of columns to numbers. A column without thresholds must hold 0 and 1.
    max_literals : int >= 1, optional
        The most comparisons that the rule may have; by default as many as there are.
    classes : (negative, positive) or "observed"
        The two labels, which are public. "observed" reads them off `y`, which is not private, with a PrivacyWarning.
    method : str
        As in `fastdp.learn_conjunction`; "auto" allows for labels that are wrong.
    realizable : bool
        Whether some rule is asserted to be right about all records.
    beta : float in (0, 1)
        The probability with which the error bound that decides about the method may fail.
    outside : {"raise", "clip"}
        What becomes of other numbers in columns of 0 and 1: a DomainError, or the nearer of the two, and 0 for what is
        no number.
    random_state : None, int or fastdp.Randomness
        None for secure randomness; an int is a seed, for tests only, after which nothing is private.
    budget : fastdp.Budget, optional
        What the fit is charged to; by default the budgets whose blocks are open.

    Attributes
    ----------
    rule_ : str
        The rule, as a person would write it.
    concept_ : fastdp.learning.LearnedConjunction
        The result of `fastdp.learn_conjunction`, over all comparisons, with its error bounds.
    cuts_ : list of (int, float or None)
        The comparisons: a column, and the threshold that it must exceed.
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
    >>> from fastdp.sklearn import ConjunctionClassifier
    >>> X = np.random.default_rng(0).integers(18, 80, size=(50_000, 2))
    >>> y = (X[:, 0] > 30) & (X[:, 1] <= 60)
    >>> model = ConjunctionClassifier(epsilon=1.0, delta=1e-6, thresholds=range(20, 80, 10), max_literals=2).fit(X, y)
    >>> print(model.rule_)
    x0 > 30 ∧ x1 ≤ 60
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        thresholds: Any = None,
        max_literals: int | None = None,
        classes: Any = (0, 1),
        method: Any = "auto",
        realizable: bool = False,
        beta: float = 0.05,
        outside: Any = "raise",
        random_state: Any = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.thresholds = thresholds
        self.max_literals = max_literals
        self.classes = classes
        self.method = method
        self.realizable = realizable
        self.beta = beta
        self.outside = outside
        self.random_state = random_state
        self.budget = budget

    @boundary
    def fit(self, X: Any, y: Any) -> ConjunctionClassifier:
        """Learn from records, and charge for it.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The private records.
        y : array_like, shape (records,)
            Their labels, of the two `classes`.

        Returns
        -------
        ConjunctionClassifier
            The estimator itself.
        """
        parameters.outside(self.outside)
        X, positives = self._labelled(X, y, dtype="numeric")
        names = names_of(self)
        cuts = cuts_of(self.thresholds, names)
        k = None if self.max_literals is None else min(integer("max_literals", self.max_literals, least=1), len(cuts))
        self.concept_ = learn_conjunction(
            self._bits(X, cuts), positives, k=k, epsilon=self.epsilon, delta=self.delta, method=self.method,
            realizable=self.realizable, beta=self.beta, rng=self._randomness(), budget=self.budget,
        )  # fmt: skip
        self.cuts_, self.guarantee_ = cuts, self.concept_.guarantee
        self.rule_ = rule_text([(cuts[j], value) for j, value in self.concept_.literals], names)
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
        X = self._records(X, reset=False, dtype="numeric")
        return self._named(self.concept_.predict(self._bits(X, self.cuts_)))

    def _bits(self, X: NDArray[Any], cuts: list[Cut]) -> NDArray[np.bool_]:
        """Which comparisons hold, one column each."""
        bits = np.empty((len(X), len(cuts)), np.bool_, order="F")
        for place, (column, threshold) in enumerate(cuts):
            values = X[:, column]
            if threshold is None and self.outside == "raise" and not ((values == 0) | (values == 1)).all():
                name = label_of(column, getattr(self, "feature_names_in_", None))
                raise DomainError(f"X: {name}: must hold 0 and 1 only, as it has no thresholds; there are others")
            bits[:, place] = values > (0.5 if threshold is None else threshold)
        return bits


class BoxClassifier(DeclaredClassifier):
    """A private classifier whose hypothesis is a box such as 18 ≤ age < 65 and hours < 40.

    Records in the box are of the second of `classes`.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of a fit.
    delta : float in [0, 1)
        The delta of a fit.
    bounds : (lower, upper)
        Public bounds of the columns: two numbers, or two sequences with a number for each column. The interval between
        them is cut into 2^bits cells.
    bits : int from 1 to 32
        How finely columns are cut; a few bits are enough, and take fewer records.
    classes : (negative, positive) or "observed"
        The two labels, which are public. "observed" reads them off `y`, which is not private, with a PrivacyWarning.
    method : str
        As in `fastdp.learn_box`.
    realizable : bool
        As in `fastdp.learn_box`: True asserts that some box is right about all records.
    beta : float in (0, 1)
        The probability with which the error bound that decides about the method may fail.
    outside : {"raise", "clip"}
        What becomes of records beyond the bounds: a DomainError, or the nearest record within them, at the
        lower bound (0 without bounds) where an entry is missing or no number.
    random_state : None, int or fastdp.Randomness
        None for secure randomness; an int is a seed, for tests only, after which nothing is private.
    budget : fastdp.Budget, optional
        What the fit is charged to; by default the budgets whose blocks are open.

    Attributes
    ----------
    intervals_ : numpy.ndarray of float64, shape (columns, 2)
        For each column the interval least <= x < below; infinite where the box has no end.
    concept_ : fastdp.learning.LearnedBox
        The result of `fastdp.learn_box`, over cells.
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
    >>> from fastdp.sklearn import BoxClassifier
    >>> X = np.random.default_rng(0).uniform(0, 100, size=(50_000, 2))
    >>> y = (X[:, 0] >= 25) & (X[:, 1] < 75)
    >>> model = BoxClassifier(epsilon=1.0, bounds=(0, 100), bits=8).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        bounds: Any = None,
        bits: int = 8,
        classes: Any = (0, 1),
        method: Any = "auto",
        realizable: bool = False,
        beta: float = 0.05,
        outside: Any = "raise",
        random_state: Any = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bits = bits
        self.classes = classes
        self.method = method
        self.realizable = realizable
        self.beta = beta
        self.outside = outside
        self.random_state = random_state
        self.budget = budget

    @boundary
    def fit(self, X: Any, y: Any) -> BoxClassifier:
        """Learn from records, and charge for it.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The private records.
        y : array_like, shape (records,)
            Their labels, of the two `classes`.

        Returns
        -------
        BoxClassifier
            The estimator itself.
        """
        X, positives = self._labelled(X, y)
        grid = CellGrid.of(self.bounds, 2 ** integer("bits", self.bits, least=1, most=32), X.shape[1])
        self.concept_ = learn_box(
            grid.cells(X, self.outside), positives, domain_bits=self.bits, signed=False, epsilon=self.epsilon,
            delta=self.delta, method=self.method, realizable=self.realizable, beta=self.beta,
            rng=self._randomness(), budget=self.budget,
        )  # fmt: skip
        self.guarantee_ = self.concept_.guarantee
        self.intervals_ = self._intervals(grid)
        return self

    def _intervals(self, grid: CellGrid) -> Floats:
        if self.concept_.intervals is None:
            return np.tile([np.inf, -np.inf], (len(grid.lower), 1))
        first, last = np.array(self.concept_.intervals, np.int64).T
        least = np.where(first == 0, -np.inf, grid.edges(first))
        below = np.where(last == grid.count - 1, np.inf, grid.edges(last + 1))
        return np.column_stack([least, below])

    @boundary
    def predict(self, X: Any) -> Any:
        """Predict the class of each record; records beyond the bounds count as at them.

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
        X = self._records(X, reset=False)
        least, below = self.intervals_.T
        return self._named(((least <= X) & (below > X)).all(axis=1))


def names_of(estimator: PrivateEstimator) -> list[str]:
    """The names of the features, or x0, x1, ... as scikit-learn calls them."""
    named = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if named is None else named.tolist()


def cuts_of(thresholds: Any, names: list[str]) -> list[Cut]:
    """The comparisons that public thresholds allow, column by column."""
    of_columns: list[Any] = [thresholds] * len(names)
    if isinstance(thresholds, Mapping):
        if unknown := [name for name in thresholds if name not in names]:
            raise ValueError(f"thresholds: {shown(unknown[0])}: must be the name of a column")
        of_columns = [thresholds.get(name) for name in names]
    elif isinstance(thresholds, Iterable) and not isinstance(thresholds, str):
        entries = items_of("thresholds", thresholds, "numbers", most=MOST_DIMENSIONS)
        if not all(isinstance(entry, Real) for entry in entries):
            of_columns = entries
            if len(entries) != len(names):
                raise ValueError(f"thresholds: {len(entries)} entries: must be {len(names)}, as there are columns")
    return [(j, cut) for j, given in enumerate(of_columns) for cut in _numbers(given)]


def _numbers(given: Any) -> list[float] | list[None]:
    """The thresholds of one column, in order."""
    if given is None:
        return [None]
    try:
        numbers = np.unique(
            np.asarray(
                [given] if isinstance(given, Real) else items_of("thresholds", given, "numbers", most=MOST_DIMENSIONS),
                np.float64,
            )
        )
    except Exception:  # of a class that is not ours, too
        numbers = np.array([np.nan])
    if not numbers.size or not np.isfinite(numbers).all():
        raise ValueError(f"thresholds: {shown(given)}: must be finite numbers, at least one, or None for 0 and 1")
    return [float(number) for number in numbers]


def rule_text(literals: list[tuple[Cut, bool]], names: list[str]) -> str:
    """A conjunction of comparisons with what follows from others left out."""
    above: dict[int, float] = {}
    up_to: dict[int, float] = {}
    bits: dict[int, set[bool]] = {}
    for (column, threshold), value in literals:
        if threshold is None:
            bits.setdefault(column, set()).add(value)
        elif value:
            above[column] = max(threshold, above.get(column, threshold))
        else:
            up_to[column] = min(threshold, up_to.get(column, threshold))
    if any(len(values) > 1 for values in bits.values()) or any(above[j] >= up_to[j] for j in above.keys() & up_to):
        return "false"
    parts = []
    for j in sorted(bits.keys() | above.keys() | up_to.keys()):
        if j in bits:
            parts.append(("" if True in bits[j] else "¬") + names[j])
        elif j in above and j in up_to:
            parts.append(f"{above[j]:g} < {names[j]} ≤ {up_to[j]:g}")
        else:
            parts.append(f"{names[j]} > {above[j]:g}" if j in above else f"{names[j]} ≤ {up_to[j]:g}")
    return " ∧ ".join(parts) or "true"
