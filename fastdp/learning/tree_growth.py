"""How a decision tree is grown: every node is divided by a column that the exponential mechanism chooses by counts.

A node's records are those that have the values on its path; how many they are is private. trees.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.quantile_plan import QuantilePlan
from ..mechanisms.selection import draw_one
from ..privacy.guarantees import Guarantee
from ..randomness.charged_keys import ChargedKeys
from ..randomness.noise_draws import integer_noise
from ..randomness.noise_plans import LaplacePlan, laplace_plan, scale_in_range
from ..records.bit_words import all_bits
from ..records.rows import Block
from ..support.progress import Report
from ..support.rounding import down, up
from .comparisons import BitTable, bought, shares_of
from .examples import Counts, columns_and_values
from .privacy_parameters import PrivacyParameters
from .unequal_shares import Step, UnequalShares

MOST_DEPTH, MOST_RULES = 8, 32
UNIT = 2**10  # of an impurity: what an integer score counts
LEAF_SHARE = 2.0**-3  # of epsilon
_LARGEST = 2**31  # counts beyond it count as it, so that products fit 64 bits
_MOST_PAIRS = 2**26  # pairs of columns, times words of 64 records, that a level looks ahead at: 6 ms
_MOST_TABLE = 2**22  # pairs that are held for a node

Path = tuple[int, ...]  # literals, the first one of the root's column


class LeafCounts(NamedTuple):
    """The noisy counts of the records of a leaf, by label."""

    negatives: int
    positives: int


@dataclass(frozen=True)
class GrownTree:
    """The column of every inner node, by its path, and the noisy counts of every leaf."""

    columns: dict[Path, int]
    leaves: dict[Path, LeafCounts]


@dataclass(frozen=True)
class TreeProblem:
    """n records of d columns of bits; n stands for their number where that is private.

    quantiles    that are bought of each column of numbers, of so many bits; d is that of all comparisons
    """

    n: int
    d: int
    depth: int
    privacy: PrivacyParameters
    quantiles: int = 0
    bits: tuple[int, ...] = ()


@dataclass(frozen=True)
class TreeParameters:
    """The weight of a unit of impurity, the noise on the counts of leaves, and which levels look ahead.

    quantiles    of the columns of numbers; None where none are bought
    excess    by how many errors, but with probability beta, it exceeds the best labels of its leaves
    """

    eta: float
    noise: LaplacePlan
    looks_ahead: tuple[bool, ...]
    guarantee: Guarantee
    excess: float
    quantiles: QuantilePlan | None = None

    def grow(self, examples: BitTable, keys: ChargedKeys, report: Report) -> GrownTree:
        depth, columns = len(self.looks_ahead), dict[Path, int]()
        paths: list[Path] = [()]
        for level, ahead in enumerate(self.looks_ahead):
            report(level, depth + 1, f"level {level + 1}")
            for path, counts in zip(paths, count_nodes(examples, paths, pairs=ahead), strict=True):
                left = columns_left(examples.d, path)
                columns[path] = int(left[draw_one(scores_of(counts)[left], keys.take(), self.eta)])
            paths = [(*path, 2 * columns[path] + side) for path in paths for side in (0, 1)]
        report(depth, depth + 1, "leaves")
        true = count_leaves(examples, paths)
        noisy = (true + integer_noise(self.noise, keys.take(), true.size).reshape(true.shape)).tolist()
        report(depth + 1, depth + 1, "")
        return GrownTree(columns, {path: LeafCounts(*counts) for path, counts in zip(paths, noisy, strict=True)})


@lru_cache(256)
def prepare_tree(problem: TreeProblem) -> TreeParameters:
    """Theorems 1 to 3."""
    privacy, depth = problem.privacy, problem.depth
    shares, columns = shares_of(problem.quantiles), bought(problem.bits, problem.quantiles)
    levels = len(shares).bit_length() * columns
    each, level = Step(2 * depth, levels), Step(5 * max(levels, 1), depth)  # two sevenths for the quantiles
    steps = UnequalShares.of(privacy, [each, level] if levels else [level], count=privacy.epsilon * LEAF_SHARE)
    plan = QuantilePlan.at(shares, down(Fraction(steps.unit) * each.weight), privacy.neighbors, columns, even=True)
    ahead = tuple(level + 1 < depth and _may_look_ahead(problem, 2**level) for level in range(depth))
    return _with_leaves(privacy, steps, level, 2**depth, ahead, plan if levels else None)


@lru_cache(256)
def prepare_list(rules: int, privacy: PrivacyParameters) -> TreeParameters:
    """Theorem 4, of so many rules."""
    step = Step(1, rules)
    steps = UnequalShares.of(privacy, [step], count=privacy.epsilon * LEAF_SHARE)
    return _with_leaves(privacy, steps, step, rules + 1, (False,) * rules, None)


def _with_leaves(
    privacy: PrivacyParameters, steps: UnequalShares, level: Step, leaves: int, ahead: tuple[bool, ...],
    quantiles: QuantilePlan | None,
) -> TreeParameters:  # fmt: skip
    """With noisy counts of so many leaves."""
    scale = scale_in_range(up(privacy.score_range / Fraction(privacy.epsilon * LEAF_SHARE)), "8 / epsilon")
    most = ceil(scale * log(4 * leaves / privacy.beta))  # of a count's noise
    return TreeParameters(
        eta=steps.eta(level) / UNIT,
        noise=laplace_plan(scale),
        looks_ahead=ahead,
        guarantee=steps.guarantee,
        excess=float(2 * leaves * most),
        quantiles=quantiles,
    )


def _may_look_ahead(problem: TreeProblem, nodes: int) -> bool:
    """Whether all pairs of columns are counted in a moment, for so many nodes."""
    pairs = problem.d * (problem.d + 1) // 2
    return pairs * nodes * -(-problem.n // 64) <= _MOST_PAIRS and pairs * nodes <= _MOST_TABLE


def columns_left(d: int, path: Path) -> NDArray[np.intp]:
    """Those that no question of a path is about; all of them if there is none."""
    left = np.setdiff1d(np.arange(d), [literal // 2 for literal in path])
    return left if left.size else np.arange(d)


# --- counts


class NodeCounts(NamedTuple):
    """Of the records of a node, negatives and positives: how many there are, have a 1 in each column, and in each two.

    everyone    int64[2]
    ones        int64[2, d]
    both        int64[2, d, d], or None
    """

    everyone: Counts
    ones: Counts
    both: Counts | None


def count_nodes(examples: BitTable, paths: Sequence[Path], *, pairs: bool) -> list[NodeCounts]:
    """In one pass, the counts of nodes that share no record."""
    d, bits_of, positive_of = examples.d, examples.bits, examples.positive

    def statistic(block: Block) -> Counts:
        from ..kernels.literals import count_among_into

        bits, positive = bits_of(block), positive_of(block)
        out = np.zeros((len(paths), 2, 1 + d + (d * d if pairs else 0)), np.int64)
        both = np.empty((2, positive.size), np.uint64)
        for counts, path in zip(out, paths, strict=True):
            everyone, positives, counts[:, 0] = _of_path(bits, block.n, positive, path)
            ones = np.zeros((2, d), np.int64)
            count_among_into(bits, everyone, positives, ones)
            counts[:, 1 : d + 1] = ones
            for j in range(d if pairs else 0):
                np.bitwise_and(everyone, bits[j], out=both[0])
                np.bitwise_and(positives, bits[j], out=both[1])
                ones = np.zeros((2, d - j), np.int64)
                count_among_into(bits[j:], both[0], both[1], ones)
                counts[:, 1 + d + j * d + j : 1 + d + j * d + d] = ones
        return out

    found = []
    for everyone, positive in examples.rows.total(statistic):
        counts = np.stack([everyone - positive, positive])
        both = None
        if pairs:
            half = counts[:, 1 + d :].reshape(2, d, d)
            both = half + np.triu(half, 1).transpose(0, 2, 1)
        found.append(NodeCounts(counts[:, 0], counts[:, 1 : d + 1], both))
    return found


def count_leaves(examples: BitTable, paths: Sequence[Path]) -> Counts:
    """The negatives and the positives of each leaf, int64[leaves, 2]."""
    bits_of, positive_of = examples.bits, examples.positive

    def statistic(block: Block) -> Counts:
        bits, positive = bits_of(block), positive_of(block)
        return np.array([_of_path(bits, block.n, positive, path)[2] for path in paths], np.int64)

    everyone, positive = examples.rows.total(statistic).T
    return np.stack([everyone - positive, positive], axis=1)


Words = NDArray[np.uint64]


def _of_path(bits: Words, n: int, positive: Words, path: Path) -> tuple[Words, Words, tuple[int, int]]:
    """Who is in a node, who of them is positive, and how many these are."""
    from ..kernels.literals import satisfying_into

    columns, values = columns_and_values(path)
    everyone = all_bits(n)
    many = satisfying_into(bits, columns, values, everyone)
    positives = positive & everyone
    return everyone, positives, (many, satisfying_into(bits, columns[:0], values[:0], positives))


# --- scores


def impurity(counts: Counts) -> Counts:
    """UNIT p q / (p + q), rounded down, of counts int64[2, ...]: theorem 1."""
    p, q = np.minimum(counts, _LARGEST)
    many = np.maximum(p + q, 1)
    whole, rest = np.divmod(p * q, many)
    return np.asarray(UNIT * whole + UNIT * rest // many)


def scores_of(counts: NodeCounts) -> Counts:
    """Of each column: less the impurity of the two parts, or of the four that the best second columns leave."""
    ones = counts.ones
    zeros = counts.everyone[:, None] - ones
    if counts.both is None:
        return -(impurity(ones) + impurity(zeros))
    of_ones = _best_division(counts.both, ones)
    of_zeros = _best_division(ones[:, None, :] - counts.both, zeros)
    return -(of_ones + of_zeros)


def _best_division(both: Counts, everyone: Counts) -> Counts:
    """The least impurity of the two parts of each part j, divided by any column."""
    return np.asarray((impurity(both) + impurity(everyone[:, :, None] - both)).min(axis=1))
