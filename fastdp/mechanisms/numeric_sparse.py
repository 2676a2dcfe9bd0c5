"""The sparse vector technique with answers: the values of the queries that lie above a threshold.

The tests are those of several_positives.py, and answers have noise of their own. Proofs: sparse_vector.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..privacy.accounted import Accounted
from ..support.boundary import quick_boundary
from ..support.public_paths import public_as
from .several_positives import SeveralPositives
from .tested_values import tested_values


@public_as("fastdp")
class NumericSparse(SeveralPositives, Accounted):
    """Report which queries of a sequence lie above a threshold, and the values of these with noise of their own.

    Parameters
    ----------
    threshold : int or float
        An integer for integer values; a float for values of any kind, which are then rounded to a grid.
    sensitivity : float > 0
        By how much one record may change each of the values (the threshold is public).
    epsilon : float > 0
        For all answers together, all positives included.
    positives : int >= 1
        How many positive answers there are at most; then it is closed.
    delta : float in [0, 1)
        With a delta prices may add up as those of concentrated DP, which is less noise from some twenty positives on;
        for fewer of them the guarantee is epsilon-DP.
    monotonic : bool
        Whether a record changes all values in one direction only, as it does counts under "add-remove": the noise of
        queries is then half as large. Under "replace-one" counts are not so: the record that goes lowers some and the
        one that comes raises others. The claim is the caller's, and is not checked.
    paid : {"at once", "one by one"}
        "at once" charges everything when it is made. "one by one" charges a positive's share, to whom it was made for,
        when the first value is asked after the positive before: what never comes is never paid. With a delta it takes a
        budget with theorem="zcdp" or "best"; without one, noise is larger.
    resolution : power of two, optional
        The grid for floats; by default the largest that is at most sensitivity / 1024. The rounding, one unit a value,
        is charged.
    rng : Randomness, optional
        Where keys come from; by default the operating system. A seeded one is for tests.
    budget : Budget, optional
        The budget to charge; by default those whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation under which `sensitivity` holds.

    Raises
    ------
    ValueError
        "epsilon=-1.0: must be > 0 and finite"; where it is closed.
    DomainError
        On NaN or an infinity among values.
    BudgetExceeded
        Where the budget has no room; with paid="one by one" also where a value is asked after a positive.
    RuntimeError
        In a forked child, which is a copy. In a Budget block, where one that is paid one by one was made outside of all
        and without `budget`: nobody would be charged.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP, for all answers together, however many queries there are and
                 although each may be chosen after the answers before it
    Proof        sparse_vector.md, theorems 1 to 3
    Accuracy     `bounds.numeric_sparse`
    Cost         about 1 us for one value, 3 where it is answered; 2 ns a value in `answer_many`
    Not covered  what `sensitivity` and `monotonic` claim; the time a caller takes to choose the next query

    Examples
    --------
    >>> import fastdp
    >>> watch = fastdp.NumericSparse(1000, sensitivity=1, epsilon=1.0, positives=2)
    >>> watch.answer(3) is None
    True
    >>> places, values = watch.answer_many([7, 2, 6000, 9, 7000])
    >>> places.tolist(), bool((abs(values - [6000, 7000]) < 300).all())
    ([2, 4], True)
    """

    _answers = True

    @quick_boundary
    def answer(self, value: float) -> float | None:
        """This value with noise, if it lies above the threshold with another noise.

        Parameters
        ----------
        value : int or float
            The value of the next query.

        Returns
        -------
        int, float or None
            The noisy value, which may lie below the threshold; None where the query does.
        """
        self._begin()
        plain = self._plain(self._read(value), "answer_many")
        with self._turn:
            self._check_not_closed()
            if not self._test(plain):
                return None
            measured: float = self._measure(np.array([plain])).item()
            return measured

    @quick_boundary
    def answer_many(self, values: ArrayLike) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Which of these values lie above the threshold, and those with noise; the same as `answer` one by one.

        Parameters
        ----------
        values : array_like of int or float
            The values of the next queries, in one dimension.

        Returns
        -------
        numpy.ndarray of int64, numpy.ndarray
            The indices of those above, rising, and their noisy values. Values behind the last positive are not answered
            where no other one is left or, paid one by one, where the budget has no room for it: `answered` counts those
            that are.
        """
        self._begin()
        array = tested_values(self._read(values), self._threshold, self._resolution)
        with self._turn:
            self._check_not_closed()
            places = np.array(self._places(array), np.int64)
            return places, self._measure(array[places])
