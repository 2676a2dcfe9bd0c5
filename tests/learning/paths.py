"""The law of code that draws, by running it once for each sequence of choices that it can make.

A draw asks `Paths.choose` for one of so many outcomes of given weights; `law_of` runs the code until every sequence has
had its turn. What is enumerated is the code itself, with its draws replaced: that these have their laws is tested where
they are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import combinations_with_replacement

import numpy as np


class Paths:
    """The choices of one run after the other, depth first."""

    def __init__(self):
        self._script, self._sizes = [], []
        self._at, self.log_probability = 0, 0.0

    def choose(self, log_weights):
        """One of them, in this run."""
        log_weights = np.asarray(log_weights, float)
        if self._at == len(self._script):
            self._script.append(0)
            self._sizes.append(log_weights.size)
        chosen = self._script[self._at]
        self._at += 1
        top = log_weights.max()
        self.log_probability += log_weights[chosen] - top - math.log(np.exp(log_weights - top).sum())
        return chosen

    def next(self):
        """Whether there is another run."""
        while self._script and self._script[-1] == self._sizes[-1] - 1:
            self._script.pop()
            self._sizes.pop()
        if not self._script:
            return False
        self._script[-1] += 1
        self._at, self.log_probability = 0, 0.0
        return True

    def draw_one(self, scores, key, eta):
        """In place of fastdp.mechanisms.selection.draw_one."""
        return self.choose(eta * np.asarray(scores, float))


class NoKeys:
    """What takes the place of ChargedKeys."""

    def take(self):
        return None


def law_of(paths, run):
    """ln Pr of every outcome of run(), whose draws ask `paths`."""
    found = defaultdict(float)
    while True:
        outcome = run()
        found[outcome] += math.exp(paths.log_probability)
        if not paths.next():
            break
    assert abs(sum(found.values()) - 1) < 1e-9
    return {outcome: math.log(p) for outcome, p in found.items()}


def neighbours(kinds, most, relation):
    """All pairs of neighbouring multisets of up to so many records, both ways."""
    for m in range(most):
        for common in combinations_with_replacement(kinds, m):
            if relation == "add-remove":
                for x in kinds:
                    larger = tuple(sorted((*common, x)))
                    yield common, larger
                    yield larger, common
            else:
                for x in kinds:
                    for z in kinds:
                        if x != z:
                            yield tuple(sorted((*common, x))), tuple(sorted((*common, z)))


def multisets(kinds, most):
    return [tuple(sorted(rows)) for m in range(most + 1) for rows in combinations_with_replacement(sorted(kinds), m)]


def widest(laws, pairs):
    """The widest interval of log ratios, and the largest log ratio, of any two neighbours."""
    spread = largest = 0.0
    for one, other in pairs:
        p, q = laws[one], laws[other]
        assert p.keys() == q.keys()
        ratios = [p[outcome] - q[outcome] for outcome in p]
        spread, largest = max(spread, max(ratios) - min(ratios)), max(largest, *ratios)
    return spread, largest
