"""Private multiplicative weights: answers to a long sequence of queries, each chosen after the answers before it.

A synthetic distribution answers what it can. A query whose answer would be off by much is found by a threshold test,
and only then is privacy paid for. This is what users hold: one thread at a time, one process, nothing that can be set.
How a run begins is in multiplicative_weights_start.py, each variant in a file of its own; multiplicative_weights.md and
multiplicative_weights_measured.md have the proofs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.keys import Randomness
from ..records.domain import Domain, display_count
from ..records.sources import rows_of
from ..support import parameters, processes
from ..support.boundary import boundary, quick_boundary
from ..support.parameters import Outside
from ..support.progress import Progress, Report, reporting
from ..support.public_paths import public_as
from ..support.results import DisplayedOnOneLine
from .dense_weights import Precision
from .multiplicative_weights_parameters import Form, MultiplicativeWeightsParameters, OnExhausted, Variant
from .multiplicative_weights_run import Answer
from .multiplicative_weights_start import start
from .queries.bound_query import BoundQuery
from .queries.combined import Scaled
from .queries.query import RecentlyBound, as_sequence
from .ratio import Ratio, ratio_of
from .synthetic_distribution import SyntheticDistribution
from .workload import Workload

T = TypeVar("T")
_LOOK_AGAIN = 0.1  # seconds until a thread that waits for its turn looks whether an interrupt kept it from being told


@public_as("fastdp")
class PrivateMultiplicativeWeights(DisplayedOnOneLine, Accounted):
    """Answer up to `max_queries` queries on the records, chosen one after the other by anybody.

    A synthetic distribution answers what it can; a query on which it is off by more than a threshold is counted on the
    records, with noise, and the distribution is moved onto that. So only surprises cost privacy. For few queries plain
    noise on each is better: `variant="auto"` takes that then, and `.variant` says which it is.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files, Dask collection or mapping
        The records, with a column for each attribute of the domain.
    domain : Domain
        The values that records may have. Public: not read off the data.
    epsilon : float > 0
        The epsilon of all answers together.
    max_queries : int
        How many queries may be asked in all.
    delta : float in [0, 1)
        The delta of all answers together.
    alpha : float in (0, 1), optional
        The accuracy asked for. By default what the other parameters give.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    variant : {"auto", "measured", "plain", "sharp", "lecture"}
        "measured": one threshold test a query, and a measured count where it fires. "plain": Gaussian noise on each
        answer, or Laplace noise where that is less: for delta = 0, and for some eight queries and fewer unless a budget
        adds up rhos or mus. "auto": plain for few queries, otherwise measured, from tables where
        `prior` is not given and delta > 0. "sharp": a test for each sign, no noisy answers, 2 ln|D| / alpha^2 updates,
        after which all queries are within alpha. "lecture": as in the course, with repaired constants;
        64 ln|D| / alpha^2 updates.
    prior : SyntheticDistribution, array_like or "marginals", optional
        Of "measured": what it starts from. A distribution, or weights of all cells, that is public or already paid
        for; "marginals": half of the total or more first buys all one- and two-way tables (one-way tables alone on more
        than 2^22 cells). A thousandth of the uniform distribution is mixed in. None: the uniform distribution.
    updates : int, optional
        Of "measured": how many times a test may fire; by default from the number of records, the total and the domain.
    threshold : float > 0, optional
        Of "measured": by how many records an answer may be off before a test is to fire; by default so that noise alone
        uses up less than a third of the updates.
    replay : int >= 0
        Of "measured": after an update, how many times at most all measurements so far are gone over again, at most 20.
    on_exhausted : {"answer", "raise"}
        Of "measured", when all updates are spent: answer from the distribution as it is, without an error bound, with
        one AccuracyWarning; or a BudgetExceeded. The distribution has then learnt from all updates, and its answers
        cost nothing, so they go on by default; "raise" is for whoever must never show an answer without a bound.
    weights : {"auto", "dense", "factored"}
        "dense": one weight for each cell. "factored": a product of blocks of attributes, which updates merge; for
        domains of any size, and product queries. "auto" chooses by the number of cells.
    precision : {"float64", "float32"}
        Of dense weights and blocks; "float32" takes half the memory.
    outside : {"raise", "clip"}
        Records outside the domain: a DomainError, or the nearest code, or the nearest label where labels are
        increasing numbers; what has none, such as a missing entry, is None if that is a label, or the first value.
    progress : bool or callable, optional
        True for a bar, or a callable (done, total, what is being done).
    rng : Randomness, optional
        Where keys come from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records. Under "add-remove" the number of records is private: a
        64th of the total buys it first. Not for "sharp" and "lecture".

    Attributes
    ----------
    alpha, beta : float
        Answers are within alpha, with probability 1 - beta: all of them, or those of "measured" while `updates_left` is
        above 0. Each answer's own bound is in the transcript.
    updates, updates_left : int
        How many times a test has fired, and how many more times it may. "plain" has none, and needs none.
    exhausted : bool
        Whether answers have no error bound any more.
    transcript : list of Answer
        All answers so far: the query, the value, whether a test fired for it, its error bound.
    synthetic : SyntheticDistribution
        The distribution as it is now, to ask, tabulate and sample at no cost. Of "plain", fitted to the answers so far.
    guarantee : Guarantee
        What all answers together guarantee.
    variant : str
        Which variant runs.
    domain, n, max_queries
        As given; n is the number of records, with noise where it is private.

    Raises
    ------
    ValueError
        If so few records do not support the alpha asked for, or nothing supports the updates or the threshold.
    DomainError
        For records outside the domain. Both are raised before anything is charged.
    BudgetExceeded
        From an answer, where a budget pays for epochs as they begin and has no room for one, or all updates are spent
        and `on_exhausted` is "raise".

    Notes
    -----
    Guarantee    (epsilon, delta)-DP for all answers together. Budgets that add up rhos (`theorem="zcdp"` or "best"),
                 and all where delta = 0, pay for each epoch of "measured", and each answer of "plain", as it begins:
                 those that were there when it was made, in whatever block it is asked; others pay for the whole then
    Proof        multiplicative_weights.md, theorems 1 to 3; multiplicative_weights_measured.md, theorems 1 to 3
    Accuracy     `alpha` with probability 1 - beta; `bounds.private_multiplicative_weights` has it beforehand, for every
                 variant. An AccuracyWarning states when plain noise on as many answers would do better
    Cost         a product query touches its cells alone; others read all weights. An update of "measured" goes over
                 earlier measurements: some 100 ms at most, 3 ms after 200 updates on 50,000 cells
    Not covered  the time of an answer (it depends on whether there was an update, which answers show, too);
                 under add-remove neighbours, the time to make it; nonprivate_kl()

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> domain = fastdp.Domain(age=8, sex=2)
    >>> people = np.random.default_rng(0).integers([8, 2], size=(100_000, 2))
    >>> pmw = fastdp.PrivateMultiplicativeWeights(people, domain, epsilon=1.0, delta=1e-6, max_queries=1_000_000)
    >>> pmw.variant, pmw.alpha < 0.05
    ('measured', True)
    >>> abs(pmw.answer(fastdp.Conjunction({"age": 3, "sex": 1})) - 1 / 16) < pmw.alpha
    True
    """

    @boundary
    def __init__(
        self,
        data: Any,
        domain: Domain,
        *,
        epsilon: float,
        max_queries: int,
        delta: float = 0.0,
        alpha: float | None = None,
        beta: float = 0.05,
        variant: Variant = "auto",
        prior: Any = None,
        updates: int | None = None,
        threshold: float | None = None,
        replay: int = 10,
        on_exhausted: OnExhausted = "answer",
        weights: Form = "auto",
        precision: Precision = "float64",
        outside: Outside = "raise",
        progress: Progress = None,
        rng: Randomness | None = None,
        budget: Budget | None = None,
        neighbors: Neighbors = "replace-one",
    ) -> None:
        parameters.outside(outside)
        given = MultiplicativeWeightsParameters.of(
            domain, epsilon=epsilon, delta=delta, max_queries=max_queries, alpha=alpha, beta=beta, variant=variant,
            weights=weights, precision=precision, prior=prior, threshold=threshold, updates=updates, replay=replay,
            on_exhausted=on_exhausted, neighbors=neighbors,
        )  # fmt: skip
        with reporting(progress, "preparing") as report:
            started = start(given, rows_of(data), outside, budget, rng, report)
        self._parameters, self._schedule, self._run = started.given, started.schedule, started.run
        self._guarantee, self._n = started.guarantee, started.n
        self._bound = RecentlyBound(domain)
        self._turn = threading.Condition(lock := threading.RLock())
        self._lock, self._waiting = lock, 0
        self._answering = 0  # the thread whose turn it is: it alone changes anything, and holds no lock meanwhile
        self._process = processes.here.number

    # --- answering

    @quick_boundary
    def answer(self, query: Any) -> float:
        """The average of the query over the records, within alpha.

        Parameters
        ----------
        query : Query
            What is asked.

        Returns
        -------
        float
            In [0, 1].
        """
        self._check_process()
        return self._in_turn(self._answer_one, query, self._bound.of(query))

    @quick_boundary
    def answer_many(self, queries: Iterable[Any], *, progress: Progress = None) -> NDArray[np.float64]:
        """The answers to all of these, in order: the law is that of asking one by one, the noise for a seed is another.

        Many products are evaluated together, which is faster.

        Parameters
        ----------
        queries : iterable of Query
            What is asked.
        progress : bool or callable, optional
            True for a bar, or a callable (done, total, what is being done).

        Returns
        -------
        numpy.ndarray of float64
            One value in [0, 1] for each query.
        """
        given = as_sequence(queries)
        self._check_process()
        workload = Workload(given, self.domain) if len(given) else None

        def answers() -> NDArray[np.float64]:
            with reporting(progress, "answering") as report:
                return self._answers(given, workload, report)

        return self._in_turn(answers)

    @quick_boundary
    def average(self, attribute: str, low: float, high: float, among: Any = None) -> Ratio:
        """The average of a numeric column over a part of the records, with its error bound: the ratio of two answers.

        Parameters
        ----------
        attribute : str
            Its name. Values are the labels, middles of bins, or codes; missing entries do not count.
        low, high : float
            The bounds that values are brought to. Public: must not be read off the records.
        among : Product, Conjunction or Range, optional
            Which records count; by default all.

        Returns
        -------
        Ratio
            The `value`, between low and high, and the `bound` of its error: None where the part is so small that the
            answers allow any average, or where updates are spent.

        Notes
        -----
        Proof    ratio.py
        Cost     two queries
        """
        self._check_process()
        above = Scaled(attribute, low, high, among)
        queries = [above, above.part(self.domain)]
        workload = Workload(queries, self.domain)

        def answers() -> Ratio:
            with reporting(None, "answering") as report:
                self._answers(queries, workload, report)
            first, second = self._run.transcript[-2:]
            return ratio_of(first, second, above.low, above.high)

        return self._in_turn(answers)

    def _in_turn(self, answers: Callable[..., T], *given: Any) -> T:
        """What is asked, when nobody else is answered."""
        # Threads answer one after the other. No lock is held in a turn: it calls what `progress` and warnings call. An
        # interrupt finds the turn taken only where `mine` says so: there is no call between the two.
        me, mine = threading.get_ident(), False
        try:
            with self._lock:
                if self._answering:
                    self._wait(me)
                mine, self._answering = True, me
            return answers(*given)
        finally:
            if mine:
                self._answering = 0  # before it is read who waits: who comes now finds the turn free
                if self._waiting:
                    with self._turn:
                        self._turn.notify()

    def _wait(self, me: int) -> None:
        if self._answering == me:
            raise RuntimeError("what is called while an answer is made, such as `progress`, must not ask for another")
        self._waiting += 1  # before it is read whether the turn is free
        try:
            while self._answering:
                self._turn.wait(_LOOK_AGAIN)
        finally:
            self._waiting -= 1

    def _answer_one(self, query: Any, bound: BoundQuery) -> float:
        if self._run.asked >= self._parameters.max_queries:
            raise ValueError("queries: 1 more: must be at most 0, what is left of max_queries")
        value = self._run.answer_one(query, bound)
        self._check_process()
        return value

    def _answers(self, queries: Sequence[Any], workload: Workload | None, report: Report) -> NDArray[np.float64]:
        left = self.max_queries - self._run.asked
        if len(queries) > left:
            raise ValueError(f"queries: {len(queries)} more: must be at most {left}, what is left of max_queries")
        values = np.empty(len(queries))
        if workload is not None:
            self._run.answer_all(workload, values, report)
        self._check_process()  # `progress`, or a signal handler, may have forked
        return values

    def _check_process(self) -> None:
        if processes.here.number != self._process:
            raise RuntimeError(
                "this PrivateMultiplicativeWeights belongs to the parent process, which could give answers from it as "
                "well"
            )

    # what has been paid for is decided by these, so they cannot be set

    @property
    def domain(self) -> Domain:
        """What values the records may have."""
        return self._parameters.domain

    @property
    def n(self) -> int:
        """How many records there are."""
        return self._n

    @property
    def variant(self) -> str:
        """Which variant runs."""
        return self._schedule.variant

    @property
    def max_queries(self) -> int:
        """How many queries may be asked in all."""
        return self._parameters.max_queries

    @property
    def alpha(self) -> float:
        """Answers are within alpha, with probability 1 - beta: all of them, or as long as updates are left."""
        return self._schedule.alpha

    @property
    def beta(self) -> float:
        """With which probability the accuracy may fail."""
        return self._parameters.beta

    @property
    def guarantee(self) -> Guarantee:
        """What all answers together guarantee."""
        return self._guarantee

    @property
    def transcript(self) -> list[Answer]:
        """All answers so far, as a new list."""
        return self._run.transcript.copy()

    @property
    def updates(self) -> int:
        """How many times a test has fired."""
        return self._run.updates

    @property
    def updates_left(self) -> int:
        """How many more updates there may be; after the last, answers come from the distribution as it is."""
        return self._run.updates_left

    @property
    def exhausted(self) -> bool:
        """Whether answers have no error bound any more."""
        return self._run.exhausted

    @property
    def synthetic(self) -> SyntheticDistribution:
        """The distribution as it is now, to be asked any number of queries; later updates do not change it."""
        return self._run.synthetic(self.guarantee)

    @boundary
    def nonprivate_kl(self) -> float:
        """The Kullback-Leibler divergence of the records from the distribution. Not private: for experiments only."""
        counts = self._run.true_answers.cells()
        true, ours = counts / counts.sum(), self.synthetic.probabilities()
        here = true > 0
        return float((true[here] * np.log(true[here] / ours[here])).sum())

    # --- one object, one process

    def __repr__(self) -> str:
        asked = f"{self._run.asked:,} of {self.max_queries:,} queries"
        if self._schedule.updates:
            asked += f", {self.updates:,} of {self._schedule.updates:,} updates"
        return (
            f"PrivateMultiplicativeWeights({display_count(self.domain.size)} cells, n={self.n:,}, "
            f"alpha={self.alpha:.4g}, {self.guarantee})  # {asked}, variant {self.variant!r}"
            + ", exhausted"
            * self.exhausted
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a PrivateMultiplicativeWeights does not pickle or copy: each copy could answer for one epsilon; pass "
            ".synthetic on"
        )

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce__()
