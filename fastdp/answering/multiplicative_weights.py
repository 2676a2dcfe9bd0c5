"""Private multiplicative weights: answers to a long sequence of queries, each chosen after the answers before it.

A synthetic distribution answers what it can. A query whose answer would be off by much is found by AboveThreshold; the
distribution is then updated, and only then is privacy paid for. update_schedule.py has the numbers,
multiplicative_weights.md the proofs.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors, PureDP
from ..randomness import noise_draws, noise_plans
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness, fresh_key
from ..records.domain import Domain, display_count
from ..records.sources import rows_of
from ..support import parameters, processes
from ..support.boundary import boundary, quick_boundary
from ..support.errors import AccuracyWarning, levels_to_caller
from ..support.parameters import Outside
from ..support.progress import Progress, Report, reporting
from ..support.public_paths import public_as
from ..support.results import DisplayedOnOneLine
from ..support.turns import new_turn, refuse_again
from .dense_weights import Precision
from .factored_weights import FactoredWeights
from .memory import check_room
from .multiplicative_weights_parameters import Form, MultiplicativeWeightsParameters
from .privacy_shares import guarantee_of_all
from .queries.bound_query import UNIT
from .queries.query import as_sequence
from .synthetic_distribution import SyntheticDistribution
from .true_answers import TrueAnswers
from .update_schedule import Variant
from .workload import FEW, Workload

_DRAWS = 1024  # noises drawn at a time
_LOOK_AGAIN = 0.1  # seconds until a thread that waits for its turn looks whether an interrupt kept it from being told
_FIRST_WINDOW = 4  # queries that are evaluated ahead after an update; 8 times as many each time that none fires


@public_as("fastdp.answering")
class Answer(NamedTuple):
    """One line of the transcript."""

    query: Any
    value: float
    updated: bool  # whether the distribution was changed for it


@public_as("fastdp")
class PrivateMultiplicativeWeights(DisplayedOnOneLine, Accounted):
    """Answer up to `max_queries` queries on the records, each within alpha, chosen one after the other by anybody.

    It is for very many queries, from hundreds of thousands on: alpha hardly grows with their number, while the error of
    plain noise on each grows with its square root. For fewer, `gaussian` for each query in a
    `Budget(theorem="zcdp")` guarantees far less error, and may be asked as adaptively; an AccuracyWarning states when.

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
        The accuracy asked for; by default the least that the number of records supports.
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    variant : {"sharp", "lecture"}
        "sharp": one threshold test for each sign, no noisy answers, 2 ln|D| / alpha^2 updates. "lecture": as in the
        course, with repaired constants; 64 ln|D| / alpha^2 updates.
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
        Must be "replace-one": averages over a private number of records are not covered.

    Attributes
    ----------
    alpha, beta : float
        All answers are within alpha, with probability 1 - beta.
    updates, updates_left : int
        How many times the distribution was changed, and how many more times it may be.
    transcript : list of Answer
        All answers so far: the query, the value, whether the distribution was changed for it.
    synthetic : SyntheticDistribution
        The distribution as it is now, to ask, tabulate and sample at no cost.
    guarantee : Guarantee
        What all answers together guarantee.
    domain, n, variant, max_queries
        As given; n is the number of records.

    Raises
    ------
    ValueError
        If so few records support no alpha below 1, or not the alpha asked for.
    DomainError
        For records outside the domain. Both are raised before anything is charged.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP for all answers together, replace-one neighbours; charged when it is made
    Proof        multiplicative_weights.md, theorems 1 to 3
    Accuracy     all answers are within `alpha` with probability 1 - beta: multiplicative_weights.md, theorems 2 and 3;
                 an AccuracyWarning states when plain noise on as many answers would guarantee less error
    Cost         a product query touches its cells alone; others read all weights.
                 `bounds.private_multiplicative_weights` has accuracy and memory before anything is read or charged
    Not covered  the time of an answer (it depends on whether there was an update, which answers show, too);
                 nonprivate_kl()

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> domain = fastdp.Domain(age=8, sex=2)
    >>> people = np.random.default_rng(0).integers([8, 2], size=(100_000, 2))
    >>> pmw = fastdp.PrivateMultiplicativeWeights(people, domain, epsilon=1.0, delta=1e-6, max_queries=1_000_000)
    >>> pmw.alpha < 0.2
    True
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
        variant: Variant = "sharp",
        weights: Form = "auto",
        precision: Precision = "float64",
        outside: Outside = "raise",
        progress: Progress = None,
        rng: Randomness | None = None,
        budget: Budget | None = None,
        neighbors: Neighbors = "replace-one",
    ) -> None:
        if parameters.neighbors(neighbors) != "replace-one":
            raise ValueError(
                f"neighbors={neighbors!r}: must be 'replace-one': averages over a number of records that is private, "
                "too, are not covered here; release_marginals and mwem are for add-remove"
            )
        parameters.outside(outside)
        given = self._parameters = MultiplicativeWeightsParameters.of(
            domain, epsilon=epsilon, delta=delta, max_queries=max_queries, alpha=alpha, beta=beta, variant=variant,
            weights=weights, precision=precision,
        )  # fmt: skip
        rows = rows_of(data)
        self._n = rows.n  # public under replace-one; no record has been read yet
        self._schedule = given.schedule(self.n)
        check_room(given.weight_bytes, given.evaluation_bytes, TrueAnswers.bytes(self.n, domain, rows.gathers))
        epochs = PureDP(self._schedule.epoch), self._schedule.updates  # multiplicative_weights.md, theorem 1
        self._guarantee = guarantee_of_all(given.epsilon, given.delta, epochs, neighbors=neighbors)
        self._warn_if_plain_noise_is_better()
        listed = {
            "epsilon": given.epsilon, "delta": given.delta, "max_queries": given.max_queries, "alpha": self.alpha,
            "variant": variant,
        }  # fmt: skip
        with (
            ChargedKeys("PrivateMultiplicativeWeights", self.guarantee, listed, budget, rng) as keys,
            reporting(progress, "preparing") as report,
        ):
            report(0, 1, "reading the records")
            self._weights = given.new_weights()
            self._make_noises(rng)
            self._true_answers = TrueAnswers(rows, domain, outside)
            keys.take_ahead()  # an rng that gives none raises before anything is charged
            report(1, 1, "")
            keys.commit()
        self._guarantee = keys.stating(self._guarantee)
        self._transcript: list[Answer] = []
        self._updates = 0
        self._asked = 0
        self._noisy_threshold: int | None = None  # of the epoch that runs; None before its first test
        self._turn = threading.Condition()
        self._answering = 0  # the thread whose turn it is: it alone changes anything, and holds no lock meanwhile
        self._changing = new_turn()  # while the weights are between two states
        self._process = processes.here.number

    def _make_noises(self, rng: Randomness | None) -> None:
        schedule = self._schedule
        plans = {scale: noise_plans.laplace_plan(scale) for scale in schedule.scales}
        self._threshold_noise = _NoiseAhead(plans[schedule.threshold_scale], rng)
        self._query_noise = _NoiseAhead(plans[schedule.query_scale], rng)
        self._answer_noise = _NoiseAhead(plans[schedule.scales[-1]], rng)

    def _warn_if_plain_noise_is_better(self) -> None:
        """An AccuracyWarning if plain noise on as many answers, as adaptive, guarantees less error than this does."""
        plain = self._parameters.plain_alpha(self.n)
        if plain < self.alpha:
            name = "Gaussian" if self._parameters.delta else "Laplace"
            warnings.warn(
                f"PrivateMultiplicativeWeights guarantees an error of at most {self.alpha:.3g}, plain {name} noise on "
                f"each of max_queries={self.max_queries:,} answers {plain:.3g}: see fastdp.{name.lower()}, in a Budget",
                AccuracyWarning,
                stacklevel=levels_to_caller(),
            )

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
        return float(self.answer_many([query])[0])

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
        queries = as_sequence(queries)
        self._check_process()
        workload = Workload(queries, self.domain) if len(queries) else None
        # Threads answer one after the other. No lock is held in a turn: it calls what `progress` and warnings call. An
        # interrupt finds the turn taken only where `mine` says so: there is no call between the two.
        me, mine = threading.get_ident(), False
        try:
            with self._turn:
                if self._answering == me:
                    raise RuntimeError(
                        "what is called while an answer is made, such as `progress`, must not ask for another"
                    )
                while self._answering:
                    self._turn.wait(_LOOK_AGAIN)
                mine, self._answering = True, me
            with reporting(progress, "answering") as report:
                return self._answers(queries, workload, report)
        finally:
            if mine:
                self._answering = 0
                with self._turn:
                    self._turn.notify()

    def _answers(self, queries: Sequence[Any], workload: Workload | None, report: Report) -> NDArray[np.float64]:
        left = self.max_queries - self._asked
        if len(queries) > left:
            raise ValueError(f"queries: {len(queries)} more: must be at most {left}, what is left of max_queries")
        values = np.empty(len(queries))
        if workload is not None:
            self._answer_all(workload, values, report)
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
    def variant(self) -> Variant:
        """Which variant runs."""
        return self._parameters.variant

    @property
    def max_queries(self) -> int:
        """How many queries may be asked in all."""
        return self._parameters.max_queries

    @property
    def alpha(self) -> float:
        """All answers are within alpha, with probability 1 - beta."""
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
        return self._transcript.copy()

    @property
    def updates(self) -> int:
        """How many times the distribution was changed."""
        return self._updates

    @property
    def updates_left(self) -> int:
        """How many more updates there may be; after the last, answers come from the distribution as it is."""
        return self._schedule.updates - self.updates

    @property
    def synthetic(self) -> SyntheticDistribution:
        """The distribution as it is now, to be asked any number of queries; later updates do not change it."""
        refuse_again(self._changing)
        with self._changing:
            return SyntheticDistribution(self._weights, guarantee=self.guarantee, n=self.n)

    @boundary
    def nonprivate_kl(self) -> float:
        """The Kullback-Leibler divergence of the records from the distribution. Not private: for experiments only."""
        true = self._true_answers.cells() / self.n
        ours = self.synthetic.probabilities()
        here = true > 0
        return float((true[here] * np.log(true[here] / ours[here])).sum())

    # --- the interaction: multiplicative_weights.md, "What is run"

    def _answer_all(self, workload: Workload, values: NDArray[np.float64], report: Report) -> None:
        counts = workload.counts(self._true_answers) if self.updates_left else np.zeros(len(workload), np.int64)
        at, window, changed = 0, _FIRST_WINDOW, -1  # the query that the last update was for
        every: NDArray[np.float64] | None = None  # all queries on the distribution as it is
        while at < len(workload):
            report(at, len(workload), f"{self.updates} updates")
            if every is None and window > FEW:
                every = workload.evaluate(self._weights)
            stop = len(workload) if every is not None else min(at + window, len(workload))
            stop = self._testable(workload, at, stop)
            part = every[at:stop] if every is not None else workload.evaluate(self._weights, at, stop)
            estimates = np.clip(part, 0.0, 1.0)
            crossed = self._first_crossing(counts[at:stop], estimates) if self.updates_left else None
            reached = stop if crossed is None else at + crossed.place
            values[at:reached] = estimates[: reached - at]
            self._asked += reached - at
            self._transcript += [
                Answer(workload.queries[i], float(values[i]), i == changed) for i in range(at, reached)
            ]
            at, window = reached, 8 * window
            if crossed is not None:
                changed = at
                at += self._update(workload, at, crossed, counts, values)
                window, every = _FIRST_WINDOW, None
        report(len(workload), len(workload), "")

    def _testable(self, workload: Workload, at: int, stop: int) -> int:
        """Up to which query an update would have room; ValueError if query `at` has none. Known before its test."""
        if isinstance(self._weights, FactoredWeights):
            for i in range(at, stop):
                try:
                    self._weights.check(workload.bound(i))
                except ValueError:
                    if i == at:
                        raise
                    return i
        return stop

    def _first_crossing(self, counts: NDArray[np.int64], estimates: NDArray[np.float64]) -> _Crossing | None:
        """The first test that fires, which ends the epoch: it is paid for here, before anything else can fail.

        The noise of the tests after it has been seen by nobody and is thrown away.
        """
        if self._noisy_threshold is None:
            self._noisy_threshold = self._schedule.threshold + int(self._threshold_noise.draw(1)[0])
        gaps = counts - np.rint(estimates * (self.n * UNIT)).astype(np.int64)
        for start in range(0, gaps.size, _DRAWS // 2):
            part = gaps[start : start + _DRAWS // 2]
            # sharp: two tests a query, whether the distribution has too little of it, whether it has too much
            tests = np.stack((part, -part), 1).reshape(-1) if self.variant == "sharp" else np.abs(part)
            fired = np.flatnonzero(tests + self._query_noise.draw(tests.size) >= self._noisy_threshold)
            if fired.size:
                self._updates += 1
                self._noisy_threshold = None
                self._query_noise.renew()
                width = 2 if self.variant == "sharp" else 1
                place, side = divmod(int(fired[0]), width)
                return _Crossing(start + place, 1 - 2 * side)
        return None

    def _update(
        self, workload: Workload, at: int, crossed: _Crossing, counts: NDArray[np.int64], values: NDArray[np.float64]
    ) -> int:
        """Change the distribution for query `at`; returns how many queries that has answered."""
        bound, sign = workload.bound(at), crossed.sign
        answered = self.variant == "lecture"
        if answered:  # the answer is a noisy count, whose side decides
            noisy = (int(counts[at]) + int(self._answer_noise.draw(1)[0])) / (self.n * UNIT)
            sign = 1 if noisy > self._weights.evaluate(bound) else -1
            values[at] = min(max(noisy, 0.0), 1.0)
            self._asked += 1
            self._transcript.append(Answer(workload.queries[at], float(values[at]), True))
        with self._changing:
            self._weights.scale(bound, sign * self._schedule.rate)
        if not self.updates_left:
            warnings.warn(
                f"all {self._schedule.updates:,} updates are spent: answers come from the distribution as it is, and "
                f"are still within alpha={self.alpha:.4g} with probability {1 - self.beta:g}",
                AccuracyWarning,
                stacklevel=levels_to_caller(),
            )
        return int(answered)

    # --- one object, one process

    def __repr__(self) -> str:
        return (
            f"PrivateMultiplicativeWeights({display_count(self.domain.size)} cells, n={self.n:,}, "
            f"alpha={self.alpha:.4g}, {self.guarantee})  # {self._asked:,} of {self.max_queries:,} queries, "
            f"{self.updates:,} of {self._schedule.updates:,} updates"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a PrivateMultiplicativeWeights does not pickle or copy: each copy could answer for one epsilon; pass "
            ".synthetic on"
        )

    def __deepcopy__(self, memo: Any) -> NoReturn:
        self.__reduce__()


class _Crossing(NamedTuple):
    place: int
    sign: int


class _NoiseAhead:
    """Draws of one law, made many at a time; none is used twice."""

    def __init__(self, plan: noise_plans.LaplacePlan, rng: Randomness | None) -> None:
        self._plan, self._rng = plan, rng
        self.renew()

    def renew(self) -> None:
        """Throw away what has been drawn ahead."""
        self._draws = np.empty(0, np.int64)

    def draw(self, count: int) -> NDArray[np.int64]:
        if self._draws.size < count:
            more = noise_draws.integer_noise(self._plan, fresh_key(self._rng), max(count, _DRAWS if count > 2 else 64))
            self._draws = np.concatenate((self._draws, more))
        drawn, self._draws = self._draws[:count], self._draws[count:]
        return drawn
