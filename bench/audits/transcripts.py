"""Many transcripts at once, of mechanisms of which one object gives one: what an audit of them takes.

Each is the mechanism with its own plans, noise and kernels; what transcripts share is only what depends on no draw:
thresholds, errors of hypotheses, the distribution after the same updates. tests/bench/audits holds them against the
objects, law for law.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...answering.workload import Workload
from ...learning.conjunctions_exhaustive import Labels, Sets, all_errors, count_sets
from ...mechanisms.above_threshold import AboveThreshold, split
from ...mechanisms.buckets import Buckets
from ...randomness.keys import fresh_key
from ...randomness.noise_draws import integer_noise
from ...randomness.noise_plans import NoisePlan, laplace_plan
from ...records.bit_words import pack_flags
from ...support.rounding import upper

Integers = NDArray[np.int64]


def draws(plan: NoisePlan, *shape: int) -> Integers:
    """Noise of one law, by a key of its own."""
    return integer_noise(plan, fresh_key(None), int(np.prod(shape))).reshape(shape)


def above_threshold(
    threshold: int, values: Sequence[int], epsilon: float, count: int, *, query_scale: float = 1.0
) -> Integers:
    """What `first_above` says of these counts, as often as asked; the number of values where it says None.

    query_scale   times the scale that the proof asks of the noise of a query: below 1 for a mutant
    """
    of_threshold, of_query = split(upper(1.0), epsilon)
    limit = threshold + draws(laplace_plan(of_threshold), count, 1)
    over = np.array(values) + draws(laplace_plan(query_scale * of_query), count, len(values)) >= limit
    return np.where(over.any(axis=1), over.argmax(axis=1), len(values))


def above_threshold_once(threshold: int, values: Sequence[int], epsilon: float) -> int:
    """The same of one object."""
    found = AboveThreshold(threshold, sensitivity=1, epsilon=epsilon).first_above(values)
    return len(values) if found is None else found


# --- the exponential mechanism over all conjunctions


def conjunction_errors(X: NDArray[Any], y: NDArray[Any], k: int) -> Integers:
    """The errors of all conjunctions of at most k literals, in the order in which `exhaustive` numbers them."""
    d, positives = X.shape[1], int(np.count_nonzero(y))
    sets = Sets.of(d, k)
    columns = np.array([pack_flags(X[:, i].astype(bool)) for i in range(d)])
    counts = count_sets(columns, pack_flags(np.asarray(y, bool)), sets)
    constants: list[list[int]] = [[], [0, 1]][:k]
    return np.concatenate(list(all_errors(counts, sets, Labels(len(y) - positives, positives), constants)))


def conjunctions(X: NDArray[Any], y: NDArray[Any], k: int, eta: float, count: int) -> Integers:
    """The numbers of so many conjunctions, each a release of its own."""
    return Buckets(-conjunction_errors(X, y, k), eta).draw(fresh_key(None), count)


# --- private multiplicative weights


class SharpTranscripts:
    """Transcripts of `PrivateMultiplicativeWeights(variant="sharp")` on a list of queries.

    Transcripts with the same updates so far have the same distribution: they are one node, whose answers are computed
    once. Which of its transcripts fire, and to which side, is drawn for all together. `noise` is below 1 for mutants.
    """

    def __init__(self, answers: Any, queries: Sequence[Any], *, noise: float = 1.0) -> None:
        run = answers._run
        self._schedule, self._n, self._weights = run.schedule, run.n, run.weights
        self._workload = Workload(queries, run.weights.domain)
        self._counts = self._workload.counts(run.true_answers)
        self._threshold = laplace_plan(noise * run.schedule.threshold_scale)
        self._query = laplace_plan(noise * run.schedule.query_scale)

    def draw(self, count: int) -> NDArray[np.float64]:
        """Of each transcript the answers, in the order of the queries."""
        out = np.empty((count, len(self._counts)))
        pending = [(np.arange(count), 0, 0, self._weights.copy(), None)]
        while pending:
            pending += self._node(out, *pending.pop())
        return out

    def _node(
        self, out: NDArray[np.float64], which: Integers, at: int, updates: int, weights: Any, limits: Integers | None
    ) -> list[Any]:
        """Go on with the transcripts of one node, from a query on; returns the nodes that updates lead to."""
        from ...answering.queries.bound_query import UNIT

        after: list[Any] = []
        while at < len(self._counts) and which.size:
            value = float(np.clip(self._workload.evaluate(weights, at, at + 1), 0.0, 1.0)[0])
            if updates < self._schedule.updates:
                if limits is None:
                    limits = self._schedule.threshold + draws(self._threshold, which.size)
                gap = int(self._counts[at]) - round(value * (self._n * UNIT))
                noise = draws(self._query, 2, which.size)
                too_little = gap + noise[0] >= limits
                too_much = ~too_little & (noise[1] - gap >= limits)
                for fired, sign in ((too_little, 1), (too_much, -1)):
                    if fired.any():
                        moved = weights.copy()
                        moved.scale(self._workload.bound(at), sign * self._schedule.rate)
                        after.append((which[fired], at, updates + 1, moved, None))
                left = ~(too_little | too_much)
                which, limits = which[left], limits[left]
            out[which, at] = value
            at += 1
        return after


def sharp_once(answers: Any, queries: Sequence[Any]) -> list[float]:
    """The same of one object."""
    return [answers.answer(query) for query in queries]
