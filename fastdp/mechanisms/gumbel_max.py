"""The exponential mechanism by Gumbel-max: every candidate arrives after an exponential time, and the first wins.

ln of an exponential time is Gumbel noise. Candidate i draws its time from its own words: the winner does not depend on
blocks, order, threads or machines. Float64 finds the few that may be first, integers order them. selection.md has it.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from functools import cmp_to_key, lru_cache
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..kernels import layout
from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness import exact_draws as exact
from ..randomness.charged_keys import ChargedKeys, check_open
from ..randomness.keys import Randomness, check_draws, word_source
from ..randomness.rehearsal import read_on
from ..support import processes
from ..support.boundary import quick_boundary
from ..support.checks import integer
from ..support.parameters import MOST_CHOSEN
from ..support.public_paths import public_as
from ..support.shown import shown
from ..support.threads import run_chunks
from ..support.turns import new_turn, refuse_again
from .scores import MOST_CANDIDATES, array_of_scores, blocks_of, changed, check_again, plan_exponential, tops_of

_INTERRUPTED = "an offer or a merge was interrupted, so its winner is not known"
_MOST_ROUNDS = 128  # of one chunk: two or three for scores that stay
_ROOM = 64  # for candidates that a chunk finds, beyond twice the number wanted


class _Held(NamedTuple):
    """Candidates that may be among the k first: number, score, ln E. Replaced, never changed."""

    indices: NDArray[np.int64]
    scores: NDArray[Any]
    logs: NDArray[np.float64]


_NOBODY = {np.dtype(t): _Held(np.empty(0, np.int64), np.empty(0, t), np.empty(0)) for t in (np.int64, np.float64)}


class GumbelState:
    """The k first of all candidates seen so far. It validates nothing and charges nobody; scores are of one type."""

    def __init__(self, key: NDArray[np.uint32], eta: float, k: int) -> None:
        self.key, self.eta, self.k = key, eta, k
        self.dtype: Any = None
        self.held = _NOBODY[np.dtype(np.float64)]
        self._turn = new_turn()

    def admit(self, dtype: Any) -> None:
        """Take scores of this type from now on; ValueError if there were others."""
        if self.dtype is None:
            self.dtype, self.held = dtype, _NOBODY[dtype]
        if self.dtype != dtype:
            raise ValueError(f"scores: dtype {dtype}: must be {self.dtype}, as in the other blocks; make all floats")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn = new_turn()

    def add(self, scores: NDArray[Any], first: int, tops: NDArray[Any], top: Any) -> None:
        """Let candidates first, first + 1, ... take part; `tops` and `top` as `tops_of` found them."""
        self.admit(scores.dtype)
        if scores.size <= layout.CANDIDATE_CHUNK:
            self._add_chunk(scores, first, tops, top)
            return

        def part(start: int, stop: int) -> None:
            self._add_chunk(scores[start:stop], first + start, tops[blocks_of(start, stop)], top)

        run_chunks(part, scores.size, layout.CANDIDATE_CHUNK)

    def _add_chunk(self, scores: NDArray[Any], first: int, tops: NDArray[Any], top: Any) -> None:
        held = self.held  # whichever bound of the k-th arrival it gives, the outcome is the same
        if held.scores.size:
            top = max(top, held.scores.max().item())
        room, found, rounds, most = 2 * self.k + _ROOM, -1, 0, top
        while found < 0:
            rounds += 1
            if rounds > _MOST_ROUNDS:
                raise changed()
            heap, indices, times = np.empty(self.k), np.empty(room, np.int64), np.empty((2, room))
            heap.fill(self._kth_late(held, top) if held.scores.size >= self.k else inf)
            found = _kernels().select_gumbel_into(
                scores, first, self.key, self.eta, tops, top, layout.SLACK, heap, indices, times
            )
            # Too many were found. Where the k-th is very far below the top, float64 cannot order arrivals that are
            # counted from the top; counted from the k-th score it can.
            pivot = _kth_score(np.concatenate((scores, held.scores)), self.k) if found < 0 else top
            if pivot == top:
                room *= 4
            top = pivot
        if found:
            indices = indices[:found]
            chosen = scores[indices - first]
            check_again(chosen, most)
            self.absorb(_Held(indices, chosen, times[layout.LOG, :found]))

    def absorb(self, more: _Held) -> None:
        """Take these in, and keep whoever may be among the k first."""
        logs = more.logs.copy()
        for c, log in enumerate(logs.tolist()):
            if isnan(log):
                uniform = exact.candidate_uniform(word_source(self.key), int(more.indices[c]))
                logs[c] = exact.log_exponential(uniform)
        with self._turn:
            held = _Held(more.indices, more.scores, logs)
            if self.held.scores.size:
                held = _Held(*(np.concatenate(pair) for pair in zip(self.held, held, strict=True)))
            if held.indices.size > self.k:
                pivot = _kth_score(held.scores, self.k)
                keep = self._bounds(held, pivot)[0] <= self._kth_late(held, pivot)
                held = _Held(*(part[keep] for part in held))
            self.held = held

    def _bounds(self, held: _Held, pivot: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds of the logarithms of arrivals, counted from `pivot`: selection.md, lemma 3.

        Of those above the pivot, -inf and the bound that they would have at the pivot.
        """
        below = np.minimum(held.scores, pivot)
        with np.errstate(over="ignore", invalid="ignore"):
            if held.scores.dtype == np.int64:
                distance = (np.int64(pivot).view(np.uint64) - below.view(np.uint64)).astype(np.float64)
            else:
                distance = pivot - below
            arrivals = held.logs + self.eta * distance
            error = layout.SLACK * (64 + np.abs(arrivals) + np.abs(held.logs))
            early = np.where(arrivals < inf, arrivals - error, 2.0**1023)
            return np.where(held.scores > pivot, -inf, early), arrivals + error

    def _kth_late(self, held: _Held, pivot: Any) -> Any:
        """An upper bound of the k-th arrival."""
        late = self._bounds(held, pivot)[1]
        return late.max() if late.size == self.k else np.partition(late, self.k - 1)[self.k - 1]

    def ranking(self) -> NDArray[np.int64]:
        """The k first, in the order of their arrival; fewer if fewer took part."""
        held = self.held
        if held.indices.size <= 1:
            return held.indices.copy()
        early, late = self._bounds(held, held.scores.max().item())
        order = np.argsort(early, kind="stable").tolist()
        start = 0
        while start < len(order):  # whose bounds overlap are compared two by two
            stop, latest = start + 1, late[order[start]]
            while stop < len(order) and early[order[stop]] <= latest:
                latest = max(latest, late[order[stop]])
                stop += 1
            if stop - start > 1:
                order[start:stop] = sorted(order[start:stop], key=cmp_to_key(self._comparison(held)))
            start = stop
        ranking: NDArray[np.int64] = held.indices[order[: self.k]]
        return ranking

    def _comparison(self, held: _Held) -> Callable[[int, int], int]:
        """Which of two arrives first: by their difference in float64, whose error is small, or exactly."""
        scores, logs, slack = held.scores.tolist(), held.logs.tolist(), layout.SLACK
        source, eta = word_source(self.key), Fraction(self.eta)
        candidates: dict[int, exact.Candidate] = {}

        def candidate(c: int) -> exact.Candidate:
            if c not in candidates:
                candidates[c] = exact.Candidate(
                    Fraction(scores[c]), exact.candidate_uniform(source, int(held.indices[c]))
                )
            return candidates[c]

        def compare(a: int, b: int) -> int:
            ahead = self.eta * float(scores[a] - scores[b])
            behind = (logs[a] - logs[b]) - ahead
            if abs(behind) > slack * (128 + abs(logs[a]) + abs(logs[b]) + abs(ahead)):
                return -1 if behind < 0 else 1
            return exact.compare_arrivals(candidate(a), candidate(b), eta)

        return compare


def _kth_score(scores: NDArray[Any], k: int) -> Any:
    """The k-th largest score, or the smallest that is not forbidden if there are fewer."""
    if scores.dtype == np.float64:
        scores = scores[scores > -inf]
        if not scores.size:
            raise changed()
    k = min(k, scores.size)
    return np.partition(scores, scores.size - k)[scores.size - k].item()


@public_as("fastdp")
class GumbelMax(Accounted):
    """The exponential mechanism over candidates that come in blocks: in a stream, from threads, shards or machines.

    The winner is the one that `exponential_mechanism(scores, method="gumbel")` has for all scores at once with the same
    randomness, however they are divided. A `shard()` takes a part of the candidates elsewhere: it may be copied and
    pickled, and is merged in the end. This object alone announces the winner, once, so it is neither.

    Parameters
    ----------
    sensitivity : float > 0
        By how much one record may change any score.
    epsilon : float > 0
        The bounded range of the choice, or for k > 1 what all choices together cost.
    delta : float in [0, 1)
        For all k choices together; above 0 the guarantee is (epsilon, delta)-DP and scores count for more.
    k : int >= 1
        How many candidates to choose, as in `top_k`: `winners` then has them.
    monotonic : bool
        Whether one record changes all scores in the same direction.
    rng : Randomness, optional
        For tests; by default the key is drawn from the operating system.
    budget : Budget, optional
        What is charged, when the object is made; by default the budget whose block is open.
    neighbors : {"replace-one", "add-remove"}
        The relation under which `sensitivity` holds.

    Raises
    ------
    ValueError
        A candidate is offered twice, or after the winner is known; blocks of integers and of floats are mixed.
    DomainError
        A score is NaN or +inf.
    RuntimeError
        A winner is asked for while another thread offers, or in a forked child.
    TypeError
        It is copied or pickled: each copy could announce a winner, and all together the scores.

    Notes
    -----
    Guarantee    that of `exponential_mechanism`, or for k > 1 of `top_k`; charged when the object is made
    Proof        selection.md, theorem 2
    Accuracy     `bounds.exponential_mechanism`, `bounds.top_k`
    Cost         about 1 ns a candidate
    Not covered  what `sensitivity` claims. Shards hold the key of the draws, and scores: pickles of them are as secret
                 as the data

    Examples
    --------
    >>> import fastdp
    >>> choice = fastdp.GumbelMax(sensitivity=1, epsilon=8.0)
    >>> shard = choice.shard()
    >>> choice.offer([3, 0, 1], first_index=0)
    >>> shard.offer([50, 2], first_index=3)
    >>> choice.merge(shard).winner()
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
        k = integer("k", k, least=1, most=MOST_CHOSEN)
        plan = plan_exponential(sensitivity, epsilon, delta, monotonic=monotonic, rounds=k, neighbors=neighbors)
        self._parameters = {**plan.parameters, "k": k}
        with ChargedKeys("GumbelMax", plan.guarantee, self._parameters, budget, rng) as keys:
            self._payers, self._heard = keys.payers, keys.heard
            self._state = GumbelState(keys.take(), plan.eta, k)
        self._guarantee = keys.stating(plan.guarantee)
        self._process: int | None = processes.here.number  # the one that may announce the winner; None of a shard
        self._winners: NDArray[np.int64] | None = None
        self._begin()

    def _begin(self) -> None:
        """Of an object that nothing has been offered to."""
        self._offered: list[tuple[int, int]] = []  # disjoint ranges of candidates, in order
        self._running = 0  # offers in progress
        self._closed = ""  # why nothing more can be offered
        self._turn = new_turn()

    def shard(self) -> GumbelMax:
        """An object that takes other candidates of this choice, here or elsewhere, and is merged into this one.

        It announces no winner. It may be copied and pickled, unlike this one.

        Returns
        -------
        GumbelMax
            Nothing has been offered to it.
        """
        self._check_open()
        shard = GumbelMax.__new__(GumbelMax)
        shard._parameters, shard._guarantee = self._parameters, self._guarantee
        shard._state = GumbelState(self._state.key, self._state.eta, self.k)
        shard._process = shard._winners = shard._heard = None
        shard._payers = []  # it may go elsewhere
        shard._begin()
        return shard

    @property
    def k(self) -> int:
        """How many candidates are chosen."""
        return self._state.k

    @property
    def guarantee(self) -> Guarantee:
        """That of the whole choice."""
        return self._guarantee

    @quick_boundary
    def offer(self, scores: ArrayLike, first_index: int) -> None:
        """Let candidates first_index, first_index + 1, ... take part with these scores, an empty block being none.

        Parameters
        ----------
        scores : array_like of int or float
            One score for each candidate; all blocks must be integers, or all floats. -inf forbids a candidate.
        first_index : int >= 0
            The number of the first of them.
        """
        check_open(self._payers)
        first = integer("first_index", first_index, least=0)
        array = read_on(self._heard, array_of_scores(scores, empty=True), self._state.eta, times=self._state.k)
        if first + array.size > MOST_CANDIDATES:
            raise ValueError(f"first_index={shown(first_index)}: must be such that candidates are numbered below 2^62")
        tops, top = tops_of(array) if array.size else (array, None)
        self._check_process()  # before its lock, which a thread of the parent may hold for ever
        self._refuse_again()
        with self._turn:
            self._check_open()
            if not array.size:
                return
            joined = self._joined([(first, first + array.size)])
            self._state.admit(array.dtype)
            self._offered = joined
            self._running += 1
        try:
            self._state.add(array, first, tops, top)
        except BaseException:
            self._closed = _INTERRUPTED
            raise
        finally:
            with self._turn:
                self._running -= 1

    @quick_boundary
    def merge(self, other: GumbelMax) -> GumbelMax:
        """Take in what a shard of this choice was offered, and close that; returns this object.

        Parameters
        ----------
        other : GumbelMax
            Another shard of the same choice.

        Returns
        -------
        GumbelMax
            This object.
        """
        if not isinstance(other, GumbelMax):
            raise ValueError(f"other: type {type(other).__name__}: must be a GumbelMax")
        theirs, ours = other._state, self._state
        same = (theirs.key.tolist(), theirs.eta, theirs.k) == (ours.key.tolist(), ours.eta, ours.k)
        if other is self or other._process is not None or not same:
            raise ValueError("other: must be another shard of this GumbelMax, made by its shard()")
        first, second = sorted((self, other), key=id)  # one order for everybody, so that nobody waits in a circle
        first._refuse_again()
        second._refuse_again()
        with first._turn, second._turn:
            other._check_open("other")
            other._check_idle("other")
            self._check_open()
            joined = self._joined(other._offered)
            if theirs.dtype is not None:
                ours.admit(theirs.dtype)
                self._closed = other._closed = _INTERRUPTED  # until it has come to its end
                ours.absorb(theirs.held)
            self._offered, self._closed, other._closed = joined, "", "it was merged into another"
        return self

    @quick_boundary
    def winner(self) -> int:
        """The number of the chosen candidate; nothing can be offered after that.

        Returns
        -------
        int
            The number that the candidate was offered under.
        """
        if self.k != 1:
            raise ValueError(f"k={self.k}: must be 1 for one winner; call winners()")
        return int(self.winners()[0])

    @quick_boundary
    def winners(self) -> NDArray[np.int64]:
        """The numbers of the k chosen candidates, best first; nothing can be offered after that.

        Returns
        -------
        numpy.ndarray
            int64[k].
        """
        self._check_announcer()
        self._refuse_again()
        with self._turn:
            if self._winners is None:
                self._check_open()
                self._check_idle()
                ranking = self._state.ranking()
                self._check_announcer()  # a signal handler may have forked
                if not ranking.size:
                    raise ValueError(f"candidates={self.candidates}: must be at least one that is not -inf")
                if ranking.size < self.k:
                    raise ValueError(
                        f"k={self.k}: must be at most the number of candidates that are not -inf, {ranking.size}"
                    )
                self._winners, self._closed = ranking, "it has announced its winner"
            return self._winners.copy()

    @property
    def candidates(self) -> int:
        """How many have been offered."""
        return sum(stop - start for start, stop in self._offered)

    # --- what may be done now

    def _refuse_again(self) -> None:
        refuse_again(self._turn)
        refuse_again(self._state._turn)

    def _check_announcer(self) -> None:
        if self._process is None:
            self._check_open()
            raise ValueError("this GumbelMax: must be the whole, and is a shard: merge it, and ask the whole")
        self._check_process()

    def _check_process(self) -> None:
        if self._process not in (None, processes.here.number):
            raise RuntimeError("this GumbelMax belongs to the parent process, which could announce a winner as well")

    def _check_open(self, name: str = "this GumbelMax") -> None:
        if self._closed:
            raise ValueError(f"{name}: must be open, but {self._closed}; make another for another choice")

    def _check_idle(self, name: str = "this GumbelMax") -> None:
        if self._running:
            raise RuntimeError(f"{name}: must have no offer in progress; wait for the threads that offer")

    def _joined(self, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The candidates offered so far and these; ValueError if one is among both, or if they are too many."""
        joined: list[tuple[int, int]] = []
        for start, stop in sorted([*self._offered, *ranges]):
            if joined and start < joined[-1][1]:
                raise ValueError(f"first_index: candidate {start}: must be offered once, and has been offered before")
            if joined and start == joined[-1][1]:
                joined[-1] = joined[-1][0], stop
            else:
                joined.append((start, stop))
        check_draws(sum(stop - start for start, stop in joined))
        return joined

    # --- copies

    def __copy__(self) -> GumbelMax:
        return deepcopy(self)

    def __getstate__(self) -> dict[str, Any]:
        if self._process is not None:
            raise TypeError("a GumbelMax does not pickle or copy: each copy could announce a winner; pass .shard() on")
        with self._turn:
            self._check_idle()
            return {name: value for name, value in self.__dict__.items() if name != "_turn"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._turn = new_turn()

    def __repr__(self) -> str:
        parameters = ", ".join(f"{name}={value!r}" for name, value in self._parameters.items())
        shard = "a shard, " * (self._process is None)
        seeded = ", seeded: no privacy" * self.seeded
        return f"GumbelMax({parameters})  # {shard}{self.candidates:,} candidates offered{seeded}"


@lru_cache(1)
def _kernels() -> Any:
    from ..kernels import gumbel_max

    return gumbel_max
