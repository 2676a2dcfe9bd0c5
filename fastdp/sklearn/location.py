"""Means and medians of columns, as transformers that centre by them."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..learning.privacy_parameters import PrivacyParameters
from ..mechanisms.quantiles import HALF, rank_error
from ..mechanisms.rank_selection import draw_by_rank, rank_law
from ..optimizing.vector_sums import vector_mean
from ..randomness.charged_keys import ChargedKeys
from ..randomness.rehearsal import RECORDS
from ..support.boundary import boundary
from ..support.checks import integer
from ..support.errors import AccuracyWarning, levels_to_caller
from .base import Floats, PrivateEstimator
from .grid import CellGrid
from .scaling import Scaling

_BETA = 0.05  # of the error bound that decides about a warning


class _Centering(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """What `center_` was learned for: it is subtracted from every record, as StandardScaler(with_std=False) does."""

    center_: Floats

    @boundary
    def transform(self, X: Any) -> Floats:
        """Subtract `center_` from records.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray of float64
            X - center_.
        """
        check_is_fitted(self, "guarantee_")
        return np.asarray(self._records(X, reset=False) - self.center_)

    @boundary
    def inverse_transform(self, X: Any) -> Floats:
        """Add `center_` to records.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The records, in columns as `fit` was given them.

        Returns
        -------
        numpy.ndarray of float64
            X + center_.
        """
        check_is_fitted(self, "guarantee_")
        return np.asarray(self._records(X, reset=False) + self.center_)


class PrivateMean(_Centering):
    """The mean of every column, all in one private release; `transform` subtracts it.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of a fit, all columns together.
    delta : float in [0, 1)
        The delta of a fit.
    bounds : (lower, upper), optional
        Public bounds of the columns, which are scaled to [-1, 1] by them: two numbers, or two sequences with a number
        for each column.
    data_norm : float > 0, optional
        The L2 norm of rows, whose columns are scaled to [-1, 1] first if there are bounds; by default the square root
        of the number of columns. Half of that, with outside="clip", is often better: the noise grows with it. One of
        `bounds` and `data_norm` is needed.
    outside : {"raise", "clip"}
        What becomes of records beyond bounds or norm: a DomainError, or the nearest record within them, at the
        lower bound (0 without bounds) where an entry is missing or no number.
    random_state : None, int or fastdp.Randomness
        None for secure randomness; an int is a seed, for tests only, after which nothing is private.
    budget : fastdp.Budget, optional
        What the fit is charged to; by default the budgets whose blocks are open.

    Attributes
    ----------
    center_ : numpy.ndarray of float64
        The means.
    noise_scale_ : numpy.ndarray of float64
        The standard deviation of the noise in each mean.
    guarantee_ : fastdp.privacy.Guarantee
        The guarantee of the fit.
    n_features_in_ : int
        How many columns `fit` was given.
    feature_names_in_ : numpy.ndarray of str
        Their names, if they have names.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP under replace-one neighbours, the number of records public.
    Not covered  `transform`, which changes records one by one and releases nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp.sklearn import PrivateMean
    >>> X = np.random.default_rng(0).normal([40, 2], [10, 1], size=(20_000, 2))
    >>> mean = PrivateMean(epsilon=1.0, delta=1e-6, bounds=([0, -3], [100, 7]), outside="clip").fit(X)
    >>> bool(np.abs(mean.center_ - [40, 2]).max() < 0.5)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        bounds: Any = None,
        data_norm: float | None = None,
        outside: Any = "raise",
        random_state: Any = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.data_norm = data_norm
        self.outside = outside
        self.random_state = random_state
        self.budget = budget

    @boundary
    def fit(self, X: Any, y: Any = None) -> PrivateMean:
        """Learn from records, and charge for it.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The private records.
        y : None
            Ignored.

        Returns
        -------
        PrivateMean
            The estimator itself.
        """
        X = self._records(X)
        scaling = Scaling.of(self.bounds, self.data_norm, X.shape[1], True)
        Z = scaling.rows(X, self.outside)[:, :-1]
        released = vector_mean(
            Z, clip=1.0, epsilon=self.epsilon, delta=self.delta, rng=self._randomness(), budget=self.budget
        )
        center = scaling.center + released.value * scaling.half
        self.center_ = center if scaling.lower is None else np.clip(center, scaling.lower, scaling.upper)
        self.noise_scale_ = released.deviation * scaling.half
        self.guarantee_ = released.guarantee
        return self


class PrivateMedian(_Centering):
    """The median of every column, privately; `transform` subtracts it.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of a fit, all columns together.
    delta : float in [0, 1)
        The delta of a fit.
    bounds : (lower, upper)
        Public bounds of the columns: two numbers, or two sequences with a number for each column. Wide bounds hardly
        cost accuracy.
    bits : int from 1 to 32
        The interval between the bounds is cut into 2^bits cells, and the median is the middle of one.
    outside : {"raise", "clip"}
        What becomes of records beyond the bounds: a DomainError, or the nearest record within them, at the
        lower bound (0 without bounds) where an entry is missing or no number.
    random_state : None, int or fastdp.Randomness
        None for secure randomness; an int is a seed, for tests only, after which nothing is private.
    budget : fastdp.Budget, optional
        What the fit is charged to; by default the budgets whose blocks are open.

    Attributes
    ----------
    center_ : numpy.ndarray of float64
        The medians.
    guarantee_ : fastdp.privacy.Guarantee
        The guarantee of the fit.
    n_features_in_ : int
        How many columns `fit` was given.
    feature_names_in_ : numpy.ndarray of str
        Their names, if they have names.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP under replace-one neighbours, the number of records public.
    Proof        mechanisms/interior_point.md for one column; one bounded range for each, composed.
    Not covered  `transform`, which changes records one by one and releases nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp.sklearn import PrivateMedian
    >>> X = np.random.default_rng(0).lognormal(10, 1, size=(20_000, 1))
    >>> median = PrivateMedian(epsilon=1.0, bounds=(0, 1e7), outside="clip").fit(X)
    >>> bool(abs(median.center_[0] / np.median(X) - 1) < 0.05)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 0.0,
        *,
        bounds: Any = None,
        bits: int = 16,
        outside: Any = "raise",
        random_state: Any = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.bits = bits
        self.outside = outside
        self.random_state = random_state
        self.budget = budget

    @boundary
    def fit(self, X: Any, y: Any = None) -> PrivateMedian:
        """Learn from records, and charge for it.

        Parameters
        ----------
        X : array_like or DataFrame, shape (records, columns)
            The private records.
        y : None
            Ignored.

        Returns
        -------
        PrivateMedian
            The estimator itself.
        """
        privacy = PrivacyParameters.of(self.epsilon, self.delta, _BETA, "replace-one")
        bits, rng = integer("bits", self.bits, least=1, most=32), self._randomness()
        X = self._records(X)
        n, d = X.shape
        grid = CellGrid.of(self.bounds, 2**bits, d)
        eta = Fraction(privacy.eta(d))
        guarantee = privacy.guarantee_of(d, float(eta))
        self._warn_if_few(n, bits, eta)
        parameters = privacy.row(bits=bits, columns=d)
        with ChargedKeys("PrivateMedian", guarantee, parameters, self.budget, rng) as keys:
            positions = grid.cells(keys.reads(X, RECORDS), self.outside).astype(np.uint64)
            columns, law, key = np.ascontiguousarray(positions.T), rank_law(HALF, grid.count - 1, eta), keys.take()
            chosen = [draw_by_rank(column, law, lambda: key, j) for j, column in enumerate(columns)]
        self.center_ = grid.centers(np.array(chosen, np.int64))
        self.guarantee_ = keys.stating(guarantee)
        return self

    def _warn_if_few(self, n: int, bits: int, eta: Fraction) -> None:
        off = rank_error(bits, eta, _BETA)
        if off > n / 2:
            warnings.warn(
                f"{n:,} records are too few for medians at bits={bits} and epsilon={self.epsilon!r}, which may put a "
                f"rank off by {off:.0f}: any number between the bounds may come out",
                AccuracyWarning,
                stacklevel=levels_to_caller(),
            )
