"""Learning a decision list: rules of one literal each, asked one after the other, and an answer for the rest.

A list is a tree of which one side of each question is an answer; trees.md, theorem 4, has what differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.selection import draw_one
from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.noise_draws import integer_noise
from ..randomness.rehearsal import RECORDS
from ..records.bit_words import as_bits
from ..records.column_names import label_of
from ..records.rows import Block
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import integer, public_count
from ..support.errors import warn_of_accuracy
from ..support.parameters import Outside
from ..support.progress import Progress, Report, reporting
from ..support.public_paths import public_as
from ..support.results import DisplayLines
from .comparisons import Bits, BitTable
from .examples import Counts, Examples
from .hypotheses import Hypothesis
from .privacy_parameters import PrivacyParameters
from .tree_growth import MOST_RULES, UNIT, NodeCounts, TreeParameters, count_leaves, count_nodes, impurity, prepare_list


@public_as("fastdp.learning")
@dataclass(frozen=True)
class Rule:
    """Whether a record has a value in a column, and what is then predicted.

    Parameters
    ----------
    column : int
        The position of the column, counted from 0.
    value : bool
        The value.
    label : bool
        What is predicted for records that have it and that no rule before is about.
    negatives, positives : int
        How many of these records there are of each label, as they were released: noisy, and perhaps below 0.
    """

    column: int
    value: bool
    label: bool
    negatives: int
    positives: int


@public_as("fastdp.learning")
@dataclass(frozen=True, eq=False, repr=False)
class LearnedDecisionList(Hypothesis, Accounted):
    """A decision list; str() writes it as a person would, with rules at the end that change no answer left out.

    Parameters
    ----------
    rules : tuple of Rule
        The rules, in order.
    otherwise : bool
        What is predicted where no rule is about a record.
    guarantee : Guarantee
        The privacy guarantee of its release.
    excess_bound : float
        With probability 1 - beta, whatever the labels, its share of errors exceeds by at most this the least of the
        same rules with any answers, "true" and "false" among them.
    beta : float
        The probability with which the bound may fail.
    width : int
        The number of columns of the records.
    names : tuple of str, or None
        The names of the columns.
    """

    rules: tuple[Rule, ...]
    otherwise: bool
    guarantee: Guarantee
    excess_bound: float
    beta: float
    width: int
    names: tuple[str, ...] | None

    def __str__(self) -> str:
        rules = [
            f"if {'' if rule.value else '¬'}{self.name_of(rule.column)}: {str(rule.label).lower()}"
            for rule in self.rules
        ]
        otherwise = str(self.otherwise).lower()
        return "\nelse ".join(rules) + f"\nelse: {otherwise}" if rules else otherwise

    def _display(self) -> DisplayLines:
        bound = f"at most {self.excess_bound:.3g} above the least of any answers to these rules"
        if self.excess_bound >= 1:
            bound = "no error bound: too few records for this epsilon"
        return [
            ("hypothesis", str(self)),
            ("any labels", bound if self.excess_bound >= 1 else f"{bound}, with probability {1 - self.beta:g}"),
            ("guarantee", str(self.guarantee)),
        ]

    def _columns_read(self) -> Sequence[int]:
        return sorted({rule.column for rule in self.rules})

    def _holds(self, block: Block, columns: Sequence[int]) -> NDArray[np.bool_]:
        found, left = np.full(block.n, self.otherwise), np.ones(block.n, np.bool_)
        for rule in self.rules:
            bits = as_bits(block.column(columns[rule.column]), label_of(rule.column, self.names))
            here = left & (bits == rule.value)
            found[here] = rule.label
            left &= ~here
        return found


@boundary
def learn_decision_list(
    X: Any,
    y: Any,
    *,
    rules: int = 3,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> LearnedDecisionList:
    """Learn a decision list such as "if v4: true, else if ¬v6: false, else: true" from labelled records of bits.

    Parameters
    ----------
    X : array_like of {0, 1}
        Records: an array of bools or integers, a data frame, a Parquet file, a Dask collection, or `fastdp.pack(X)`,
        which is worth it for several calls.
    y : array_like or str
        Labels of 0 and 1, or -1 and 1, or the name of a column of X. They may be wrong.
    rules : int from 1 to 32
        How many rules there are at most; each has an equal share of epsilon.
    epsilon : float > 0
        The privacy parameter of the release.
    delta : float in [0, 1)
        0 for pure differential privacy.
    beta : float in (0, 1)
        The probability with which the error bound of the result may fail.
    records : int, optional
        Under add-remove neighbours, where n is private: a public number that takes its place.
    outside : {"raise", "clip"}
        What becomes of values and labels other than 0 and 1: a DomainError, or the nearest of them, and 0 for what is
        missing or no number.
    progress : bool or callable, optional
        True for a bar; or a callable (done, total, what is being done).
    rng : Randomness, optional
        Where the keys of the release come from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    LearnedDecisionList
        It predicts, prints as rules, and has its guarantee and its error bound.

    Raises
    ------
    ValueError
        For parameters that are not as above, before anything is charged.
    DomainError
        For values other than 0 and 1, unless they are clipped; nothing is charged.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP for any records
    Proof        trees.md, theorem 4
    Accuracy     `.excess_bound` of the result, over the best answers to its rules, for any labels;
                 `bounds.learn_decision_list` and its inverses beforehand. No bound says how good the rules are
    Cost         one pass over the records for each rule
    Not covered  the time that a call takes

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).random((50_000, 30)) < 0.5
    >>> y = X[:, 3] | ~X[:, 5]
    >>> rules = fastdp.learn_decision_list(X, y, rules=2, epsilon=1.0)
    >>> rules.error(X, y)
    0.0
    """
    parameters.outside(outside)
    rules = integer("rules", rules, least=1, most=MOST_RULES)
    privacy = PrivacyParameters.of(epsilon, delta, beta, neighbors)
    records = public_count(records, neighbors)
    examples = Examples(X, y, outside, may_be_empty=neighbors == "add-remove")
    n = records or examples.n
    plan = prepare_list(rules, privacy)
    if plan.excess > n / 2:
        warn_of_accuracy(
            f"learn_decision_list: {n:,} records are too few for an error bound that says more than a coin does "
            f"(rules={rules}, epsilon={privacy.epsilon:g})"
        )
    with ChargedKeys("learn_decision_list", plan.guarantee, privacy.row(rules=rules), budget, rng) as keys:
        examples = keys.reads(examples, RECORDS)
        examples.read(keep=True)
        with reporting(progress, "learning") as report:
            found = grow_list(plan, rules, Bits(examples, outside), keys, report)
    shortened, otherwise = _shortened(found)
    guarantee, bound = keys.stating(plan.guarantee), min(1.0, plan.excess / n)
    return LearnedDecisionList(
        shortened, otherwise, guarantee, bound, privacy.beta, examples.d, examples.names
    )  # fmt: skip


class GrownList(NamedTuple):
    """The literal of each rule, and the noisy negatives and positives that it is about; the last are the rest."""

    literals: list[int]
    counts: list[list[int]]


def grow_list(plan: TreeParameters, rules: int, table: BitTable, keys: ChargedKeys, report: Report) -> GrownList:
    """Literal by literal: the rest of a rule is the records that falsify it and all before."""
    found: list[int] = []
    rest: tuple[int, ...] = ()
    for done in range(rules):
        report(done, rules + 1, f"rule {done + 1}")
        [counts] = count_nodes(table, [rest], pairs=False)
        taken = {literal // 2 for literal in found}
        left = np.array([a for a in range(2 * table.d) if a // 2 not in taken], np.int64)
        if not left.size:
            break
        found.append(int(left[draw_one(scores_of_rules(counts)[left], keys.take(), plan.eta)]))
        rest = (*rest, found[-1] ^ 1)
    report(rules, rules + 1, "answers")
    paths = [(*(a ^ 1 for a in found[:i]), literal) for i, literal in enumerate(found)]
    true = count_leaves(table, [*paths, rest])
    noisy = true + integer_noise(plan.noise, keys.take(), true.size).reshape(true.shape)
    report(rules + 1, rules + 1, "")
    return GrownList(found, noisy.tolist())


def scores_of_rules(counts: NodeCounts) -> Counts:
    """Of each literal: less the errors of its answer, in units of impurity, and the impurity of the rest."""
    ones = counts.ones
    parts = np.stack([ones, counts.everyone[:, None] - ones])  # of literals 2 j and 2 j + 1
    errors = [UNIT * part.min(axis=0) for part in parts]
    rests = [impurity(part) for part in parts[::-1]]
    return np.asarray(-np.stack([error + rest for error, rest in zip(errors, rests, strict=True)], axis=1).reshape(-1))


def _shortened(found: GrownList) -> tuple[tuple[Rule, ...], bool]:
    """Without the last rules whose answers are that of the rest."""
    rules = [
        Rule(literal // 2, literal % 2 == 0, positives > negatives, negatives, positives)
        for literal, (negatives, positives) in zip(found.literals, found.counts[:-1], strict=True)
    ]
    negatives, positives = found.counts[-1]
    while rules and rules[-1].label == (positives > negatives):
        rules.pop()
    return tuple(rules), positives > negatives
