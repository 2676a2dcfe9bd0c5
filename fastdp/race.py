"""The exponential mechanism as a race: every candidate arrives after an exponential time, and the first wins.

Candidate i draws its time from its own words, so it does not matter in which blocks, order, threads, processes or
machines candidates are looked at: the winner is the same. It is the Gumbel-max trick, exact: float64 finds the few that
may be first, and where it cannot tell them apart, integers do. selection.md, theorem 2, proves the law.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from functools import cmp_to_key
from math import inf, isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import exact
from .budget import Budget, charge
from .checks import whole
from .privacy import Neighbors
from .randomness import Randomness, fresh_key, word_source
from .scores import MOST_CANDIDATES, array_of_scores, kernels, terms_of_range, tops_of, with_floats
from .threads import run_chunks

_ROOM = 64  # for candidates that a chunk finds, beyond twice the number wanted


class Race:
    """The k first of all candidates seen so far. It validates nothing and charges nobody."""

    def __init__(self, key: NDArray[np.uint32], eta: float, k: int) -> None:
        self.key, self.eta, self.k = key, eta, k
        # the k first, and whoever float64 cannot tell from them: number, score, ln E
        self.indices = np.empty(0, np.int64)
        self.scores: NDArray[Any] = np.empty(0, np.int64)
        self.logs = np.empty(0)
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def run(self, scores: NDArray[Any], first: int, tops: NDArray[Any], top: Any) -> None:
        """Let candidates first, first + 1, ... take part; `tops` and `top` as `tops_of` found them."""
        block, chunk = kernels().BLOCK, kernels().CHUNK
        if scores.size <= chunk:
            self._run_chunk(scores, first, tops, top)
            return

        def part(start: int, stop: int) -> None:
            self._run_chunk(scores[start:stop], first + start, tops[start // block : -(-stop // block)], top)

        run_chunks(part, scores.size, chunk)

    def _run_chunk(self, scores: NDArray[Any], first: int, tops: NDArray[Any], top: Any) -> None:
        cut = inf
        with self._lock:
            held, logs = self.scores, self.logs
        if held.size:
            if held.dtype != scores.dtype:
                held, scores, tops, top = with_floats(held), with_floats(scores), with_floats(tops), float(top)
            top = max(top, held.max().item())
            if held.size >= self.k:  # any bound of the k-th arrival leads to the same outcome
                cut = float(_kth(self._bounds(held, logs, top)[1], self.k))
        room, found = 2 * self.k + _ROOM, -1
        while found < 0:
            heap, arrivals = np.empty(self.k), np.empty(room)
            indices, logs = np.empty(room, np.int64), np.empty(room)
            found = kernels().race_into(
                scores, first, self.key, self.eta, tops, top, cut, kernels().SLACK, heap, indices, logs, arrivals
            )
            room *= 4
        if found:
            indices = indices[:found]
            self.absorb(indices, scores[indices - first], logs[:found])

    def absorb(self, indices: NDArray[np.int64], scores: NDArray[Any], logs: NDArray[np.float64]) -> None:
        """Take these in, and keep whoever may be among the k first."""
        for c, log in enumerate(logs.tolist()):
            if isnan(log):
                uniform = exact.candidate_uniform(word_source(self.key), int(indices[c]))
                logs[c] = exact.log_exponential(uniform)
        with self._lock:
            if self.scores.size:
                held = self.scores
                if held.dtype != scores.dtype:
                    held, scores = with_floats(held), with_floats(scores)
                indices = np.concatenate((self.indices, indices))
                scores, logs = np.concatenate((held, scores)), np.concatenate((self.logs, logs))
            if indices.size > self.k:
                early, late = self._bounds(scores, logs, scores.max().item())
                keep = early <= _kth(late, self.k)
                indices, scores, logs = indices[keep], scores[keep], logs[keep]
            self.indices, self.scores, self.logs = indices, scores, logs

    def _bounds(self, scores: NDArray[Any], logs: NDArray[np.float64], top: Any) -> tuple[Any, Any]:
        """Lower and upper bounds of the logarithms of arrivals, counted from `top`: selection.md, lemma 3."""
        with np.errstate(over="ignore", invalid="ignore"):
            if scores.dtype == np.int64:
                distance = (np.int64(top).view(np.uint64) - scores.view(np.uint64)).astype(np.float64)
            else:
                distance = top - scores
            arrivals = logs + self.eta * distance
            error = kernels().SLACK * (64 + np.abs(arrivals) + np.abs(logs))
            return np.where(arrivals < inf, arrivals - error, 2.0**1023), arrivals + error

    def ranking(self) -> NDArray[np.int64]:
        """The k first, in the order of their arrival; fewer if fewer took part."""
        if self.indices.size <= 1:
            return self.indices.copy()
        early, late = self._bounds(self.scores, self.logs, self.scores.max().item())
        order = np.argsort(early, kind="stable").tolist()
        start = 0
        while start < len(order):  # whose bounds overlap are compared exactly
            stop, reach = start + 1, late[order[start]]
            while stop < len(order) and early[order[stop]] <= reach:
                reach = max(reach, late[order[stop]])
                stop += 1
            if stop - start > 1:
                order[start:stop] = sorted(order[start:stop], key=self._exact_key())
            start = stop
        ranking: NDArray[np.int64] = self.indices[order[: self.k]]
        return ranking

    def _exact_key(self) -> Callable[[int], Any]:
        source, eta = word_source(self.key), Fraction(self.eta)
        racers: dict[int, exact.Racer] = {}

        def racer(c: int) -> exact.Racer:
            if c not in racers:
                uniform = exact.candidate_uniform(source, int(self.indices[c]))
                racers[c] = exact.Racer(Fraction(self.scores[c].item()), uniform)
            return racers[c]

        return cmp_to_key(lambda a, b: exact.compare_arrivals(racer(a), racer(b), eta))


def _kth(values: NDArray[np.float64], k: int) -> Any:
    """The k-th smallest."""
    return values.max() if values.size == k else np.partition(values, k - 1)[k - 1]


class GumbelMax:
    """The exponential mechanism over candidates that come in blocks: in a stream, from threads, shards or machines.

    The winner is the one that `exponential_mechanism(scores, method="gumbel")` has for all scores at once with the same
    randomness, however they are divided. For shards, copy or pickle one object, offer each copy its part, and merge.

    sensitivity, epsilon, delta, monotonic    as in `exponential_mechanism`
    k                                         how many candidates to choose, as in `top_k`: `winners` then has them

    Guarantee    that of `exponential_mechanism`, or for k > 1 of `top_k`; charged when the object is made
    Proof        selection.md, theorem 2
    Cost         about 1 ns a candidate
    Not covered  what `sensitivity` claims. All copies of one object together may announce one winner: the copies hold
                 the key of the draws, and scores, so they are as secret as the data
    Raises       ValueError if a candidate is offered twice, or after the winner is known; DomainError on NaN and +inf

    Examples
    >>> import copy, fastdp
    >>> race = fastdp.GumbelMax(sensitivity=1, epsilon=8.0)
    >>> shard = copy.deepcopy(race)
    >>> race.offer([3, 0, 1], first_index=0)
    >>> shard.offer([50, 2], first_index=3)
    >>> race.merge(shard).winner()
    3
    """

    def __init__(
        self,
        *,
        sensitivity: float,
        epsilon: float,
        delta: float = 0.0,
        k: int = 1,
        monotonic: bool = False,
        rng: Randomness | None = None,
        budget: Budget | None = None,
        neighbors: Neighbors = "replace-one",
    ) -> None:
        self.k = whole("k", k, least=1)
        terms = terms_of_range(sensitivity, epsilon, delta, monotonic=monotonic, rounds=self.k, neighbors=neighbors)
        self.guarantee, self.parameters = terms.guarantee, {**terms.parameters, "k": self.k}
        with charge(budget, terms.guarantee, "GumbelMax", self.parameters) as final:
            self._race = Race(fresh_key(rng), terms.eta, self.k)
            final()
        self._winners: NDArray[np.int64] | None = None
        self._broken = False
        self._offered: list[tuple[int, int]] = []  # disjoint ranges of candidates, in order
        self._lock = threading.Lock()

    def offer(self, scores: ArrayLike, first_index: int) -> None:
        """Let candidates first_index, first_index + 1, ... take part with these scores; an empty block is none."""
        first = whole("first_index", first_index, least=0)
        if np.shape(scores) == (0,):
            return
        array = array_of_scores(scores)
        if first + array.size > MOST_CANDIDATES:
            raise ValueError(f"first_index={first_index!r}: candidates must be numbered below 2^62")
        tops, top = tops_of(array)
        with self._lock:
            self._offered = self._with_ranges([(first, first + array.size)])
        try:
            self._race.run(array, first, tops, top)
        except BaseException:
            self._broken = True  # some of these may have taken part, and some not
            raise

    def merge(self, other: GumbelMax) -> GumbelMax:
        """Take in what a copy of this object was offered; returns this object."""
        if not isinstance(other, GumbelMax):
            raise ValueError(f"other: type {type(other).__name__}: must be a GumbelMax")
        if other is self or (other._race.key.tolist(), other._race.eta, other.k) != (
            self._race.key.tolist(), self._race.eta, self.k
        ):  # fmt: skip
            raise ValueError("other: must be another copy of this GumbelMax (copy.deepcopy or pickle)")
        if other._winners is not None or other._broken:
            raise ValueError("other: has announced its winner, or an offer to it was interrupted")
        with self._lock:
            self._offered = self._with_ranges(other._offered)
        if other._race.indices.size:
            self._race.absorb(other._race.indices, other._race.scores, other._race.logs)
        return self

    def _with_ranges(self, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The candidates offered so far and these; ValueError if one is among both."""
        if self._winners is not None:
            raise ValueError("this GumbelMax has announced its winner; make another for another choice")
        joined: list[tuple[int, int]] = []
        for start, stop in sorted([*self._offered, *ranges]):
            if joined and start < joined[-1][1]:
                raise ValueError(f"first_index: candidate {start} has been offered before")
            if joined and start == joined[-1][1]:
                joined[-1] = joined[-1][0], stop
            else:
                joined.append((start, stop))
        return joined

    @property
    def candidates(self) -> int:
        """How many have been offered."""
        return sum(stop - start for start, stop in self._offered)

    def winner(self) -> int:
        """The number of the chosen candidate; nothing can be offered after that."""
        if self.k != 1:
            raise ValueError(f"k={self.k}: there are several winners; call winners()")
        return int(self.winners()[0])

    def winners(self) -> NDArray[np.int64]:
        """The numbers of the k chosen candidates, best first."""
        with self._lock:
            if self._broken:
                raise RuntimeError("an offer to this GumbelMax was interrupted, so its winner is not known")
            if self._winners is None:
                ranking = self._race.ranking()
                if ranking.size < self.k:
                    raise ValueError(f"k={self.k}: only {ranking.size} candidates that are not -inf have been offered")
                self._winners = ranking
            return self._winners.copy()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"GumbelMax({parameters})  # {self.candidates:,} candidates offered"
