"""Synthetic records: a distribution fitted privately to tables of a few columns each, to sample from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import DensityMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..answering.mwem import FittedDistribution, mwem
from ..answering.queries import marginals
from ..records.domain import Domain, display_count, listed
from ..records.encoding import encode
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import check_fits, integer
from ..support.shown import shown
from .base import Floats, PrivateEstimator, missing, randomness
from .classifiers import names_of
from .grid import CellGrid

_MOST_SCORED = 2**24  # cells, whose probabilities are listed


class MWEMSynthesizer(OneToOneFeatureMixin, TransformerMixin, DensityMixin, PrivateEstimator):
    """Synthetic records whose tables of a few columns are near those of the private records, by `fastdp.mwem`.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of a fit.
    delta : float in [0, 1)
        The delta of a fit.
    domain : fastdp.Domain or mapping, optional
        The public values of each column: a Domain, or a mapping from names to numbers of codes or lists of labels.
        Columns of a data frame go by name, those of an array by position. Either this or `bounds` is given.
    bounds : (lower, upper), optional
        Public bounds of columns of numbers: two numbers, or two sequences with a number for each column.
    bins : int >= 1
        With bounds: the interval between them is cut into so many bins of equal width.
    degree : int >= 1
        The tables that are fitted are those of so many columns each.
    rounds : int >= 1, optional
        As in `fastdp.mwem`.
    variant : str, optional
        As in `fastdp.mwem`.
    outside : {"raise", "clip"}
        What becomes of values outside domain or bounds: a DomainError, or what `Domain` says: the nearest value where
        there is one, and at the lower bound where there is no number.
    random_state : None, int or fastdp.Randomness
        None for secure randomness; an int is a seed, for tests only, after which nothing is private.
    budget : fastdp.Budget, optional
        What the fit is charged to; by default the budgets whose blocks are open.

    Attributes
    ----------
    distribution_ : fastdp.SyntheticDistribution
        What was fitted; it has `answer`, `marginal`, `to_frame`.
    domain_ : fastdp.Domain
        The domain of `distribution_`.
    guarantee_ : fastdp.privacy.Guarantee
        The guarantee of the fit.
    n_features_in_ : int
        How many columns `fit` was given.
    feature_names_in_ : numpy.ndarray of str
        Their names, if they have names.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP under replace-one neighbours, the number of records public.
                 Whatever is computed of `distribution_` alone, as `sample` does, costs nothing more.
    Not covered  `score` and `score_samples`, of private records, and `transform`, which changes records one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp.sklearn import MWEMSynthesizer
    >>> age = np.random.default_rng(0).integers(18, 80, size=50_000)
    >>> X = np.column_stack([age, age + 5])
    >>> model = MWEMSynthesizer(epsilon=1.0, delta=1e-6, bounds=(15, 95), bins=8).fit(X)
    >>> records = model.sample(10_000)
    >>> bool(np.corrcoef(records.T)[0, 1] > 0.9)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        domain: Any = None,
        bounds: Any = None,
        bins: int = 10,
        degree: int = 2,
        rounds: int | None = None,
        variant: Any = None,
        outside: Any = "raise",
        random_state: Any = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.bounds = bounds
        self.bins = bins
        self.degree = degree
        self.rounds = rounds
        self.variant = variant
        self.outside = outside
        self.random_state = random_state
        self.budget = budget

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are integers
        tags.input_tags.categorical = self.domain is not None
        tags.input_tags.string |= self.domain is not None
        return tags

    @boundary
    def fit(self, X: Any, y: Any = None) -> MWEMSynthesizer:
        """Learn from records, and charge for it.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The private records.
        y : None
            Ignored.

        Returns
        -------
        MWEMSynthesizer
            The estimator itself.
        """
        parameters.outside(self.outside)
        if (self.domain is None) == (self.bounds is None):
            if self.domain is None:
                missing("bounds", "(lower, upper) of the columns, or domain= with the values that they may have")
            raise ValueError(f"bounds={shown(self.bounds)}: must be None with a domain, which has its own")
        rng, degree = self._randomness(), integer("degree", self.degree, least=1)
        X = self._read(X, reset=True)
        names = names_of(self)
        self._grid: CellGrid | None = None
        if self.domain is None:
            self._grid = CellGrid.of(self.bounds, integer("bins", self.bins, least=1, most=2**16), len(names))
            self.domain_ = Domain(dict.fromkeys(names, self._grid.count))
        else:
            self.domain_ = domain_of(self.domain, names, hasattr(self, "feature_names_in_"))
        self.distribution_: FittedDistribution = mwem(
            self._columns(X), self.domain_, marginals(self.domain_, min(degree, len(names))), epsilon=self.epsilon,
            delta=self.delta, rounds=self.rounds, variant=self.variant, outside=self.outside, rng=rng,
            budget=self.budget,
        )  # fmt: skip
        self.guarantee_ = self.distribution_.guarantee
        return self

    @boundary
    def transform(self, X: Any) -> NDArray[Any]:
        """Records as codes of the domain: numbers of bins, or places in lists of labels.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray of int
            A row for each record, a column for each attribute.
        """
        check_is_fitted(self, "guarantee_")
        return np.column_stack(encode(self._columns(self._read(X)), self.domain_, self.outside))

    @boundary
    def score_samples(self, X: Any) -> Floats:
        """The logarithm of the density at each record, or of its probability where columns have labels. Not private.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray of float64
            A number for each record; -inf where the density is 0.
        """
        cells = self.domain_.cells(list(self.transform(X).T))
        if self.domain_.size > _MOST_SCORED:
            raise ValueError(f"domain: {display_count(self.domain_.size)} cells: must be at most 2^24 to score records")
        with np.errstate(divide="ignore"):
            logs = np.log(self.distribution_.probabilities()[cells])
        return np.asarray(logs if self._grid is None else logs - np.log(self._grid.width).sum())

    @boundary
    def score(self, X: Any, y: Any = None) -> float:
        """The mean of `score_samples`. Not private.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.
        y : None
            Ignored.

        Returns
        -------
        float
            The mean log density.
        """
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[Any]:
        """Draw synthetic records.

        Parameters
        ----------
        n_samples : int
            How many.
        random_state : None, int or fastdp.Randomness
            As in the constructor.

        Returns
        -------
        numpy.ndarray
            Rows of labels or codes, as the domain declares them; with `bounds`, of middles of bins.
        """
        check_is_fitted(self, "guarantee_")
        d = len(self.domain_)
        check_fits("n_samples", n_samples, 24 * d * integer("n_samples", n_samples, least=0), f"{d} columns of so many")
        records = self.distribution_.sample(n_samples, randomness(random_state))
        return records if self._grid is None else self._grid.centers(records)

    def _read(self, X: Any, reset: bool = False) -> NDArray[Any]:
        found: NDArray[Any] = self._records(X, reset=reset, dtype=np.float64 if self.domain is None else None)
        return found

    def _columns(self, X: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """What holds the codes or labels of the domain."""
        columns = X if self._grid is None else self._grid.cells(X, self.outside)
        if columns.ndim != 2 or columns.shape[1] != len(self.domain_):
            raise ValueError(f"X: shape {columns.shape}: must have {len(self.domain_)} columns")
        return dict(zip(self.domain_.names, columns.T, strict=True))


def domain_of(given: Any, names: list[str], named: bool) -> Domain:
    """A declared domain, with its attributes in the order of the columns."""
    domain = given if isinstance(given, Domain) else Domain(given)
    if named and set(names) != set(domain.names):
        raise ValueError(f"domain: attributes {listed(domain.names)}: must be named as the columns of X are")
    if len(names) != len(domain):
        raise ValueError(f"domain: {len(domain)} attributes: must be {len(names)}, as X has columns")
    return domain.project(names) if named else domain
