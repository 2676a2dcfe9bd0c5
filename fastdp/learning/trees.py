"""Learning a decision tree: a few questions after each other, and an answer at the end of each path.

Each question is chosen by the exponential mechanism, each answer by noisy counts; a record takes part in one choice of
a level. Labels may be wrong: nothing rests on a tree that fits. trees.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.rehearsal import RECORDS
from ..records.bit_words import Words, all_bits, as_bits, pack_flags, unpack_flags
from ..records.column_names import label_of
from ..records.number_line import NumberLine
from ..records.rows import Block
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import integer, public_count
from ..support.errors import warn_of_accuracy
from ..support.parameters import Outside
from ..support.progress import Progress, reporting
from ..support.public_paths import public_as
from ..support.results import DisplayLines
from ..support.shown import shown
from .comparisons import Above, Bits, Comparisons, thresholds_of
from .examples import Examples
from .extremes import Numbers
from .hypotheses import Hypothesis, number_text
from .privacy_parameters import PrivacyParameters
from .tree_growth import MOST_DEPTH, GrownTree, LeafCounts, Path, TreeParameters, TreeProblem, prepare_tree

MOST_QUANTILES = 255  # of a column


@public_as("fastdp.learning")
@dataclass(frozen=True)
class Leaf:
    """The end of a path: the label of its records, and the noisy counts that it comes from.

    Parameters
    ----------
    label : bool
        What it predicts.
    negatives, positives : int
        How many records of each label there are, as they were released: noisy, and perhaps below 0.
    """

    label: bool
    negatives: int
    positives: int


@public_as("fastdp.learning")
@dataclass(frozen=True)
class Question:
    """An inner node: a column, and what follows where it is 1 (or above a number) and where it is not.

    Parameters
    ----------
    column : int
        The position of the column, counted from 0.
    above : int, float or None
        The number that it asks to exceed; None for a column of bits.
    yes, no : Question or Leaf
        What follows.
    """

    column: int
    above: int | float | None
    yes: Question | Leaf
    no: Question | Leaf


@public_as("fastdp.learning")
@dataclass(frozen=True, eq=False, repr=False)
class LearnedTree(Hypothesis, Accounted):
    """A decision tree; str() writes it as a person would, with questions that change no answer left out.

    Parameters
    ----------
    root : Question or Leaf
        The tree, without those questions.
    depth : int
        How many questions a path has at most, as it was learned.
    guarantee : Guarantee
        The privacy guarantee of its release.
    excess_bound : float
        With probability 1 - beta, whatever the labels, its share of errors exceeds by at most this the least of the
        same questions with any answers, "true" and "false" among them.
    beta : float
        The probability with which the bound may fail.
    orders : tuple of NumberLine, or None
        The domain of each column of numbers; None for columns of bits.
    width : int
        The number of columns of the records.
    names : tuple of str, or None
        The names of the columns.
    """

    root: Question | Leaf
    depth: int
    guarantee: Guarantee
    excess_bound: float
    beta: float
    orders: tuple[NumberLine, ...] | None
    width: int
    names: tuple[str, ...] | None

    def __str__(self) -> str:
        return "\n".join(self._lines(self.root, ""))

    def _lines(self, node: Question | Leaf, indent: str) -> Iterator[str]:
        if isinstance(node, Leaf):
            yield f"{indent}{str(node.label).lower()}"
            return
        for question, answer in ((f"if {self._condition(node)}:", node.yes), ("else:", node.no)):
            lines = list(self._lines(answer, indent + "    "))
            if isinstance(answer, Leaf):
                yield f"{indent}{question} {lines[0].strip()}"
            else:
                yield indent + question
                yield from lines

    def _condition(self, node: Question) -> str:
        name = self.name_of(node.column)
        if node.above is None or self.orders is None:
            return name
        if self.orders[node.column].bits == 1:
            return name
        return f"{name} > {number_text(node.above)}"

    def _display(self) -> DisplayLines:
        bound = f"at most {self.excess_bound:.3g} above the least of any answers to these questions"
        if self.excess_bound >= 1:
            bound = "no error bound: too few records for this epsilon"
        return [
            ("hypothesis", str(self)),
            ("any labels", bound if self.excess_bound >= 1 else f"{bound}, with probability {1 - self.beta:g}"),
            ("guarantee", str(self.guarantee)),
        ]

    def _columns_read(self) -> Sequence[int]:
        return sorted(set(_columns(self.root)))

    def _holds(self, block: Block, columns: Sequence[int]) -> NDArray[np.bool_]:
        return unpack_flags(self._holding(self.root, block, columns, all_bits(block.n)), block.n)

    def _holding(self, node: Question | Leaf, block: Block, columns: Sequence[int], here: Words) -> Words:
        """Which of some records it holds for."""
        if isinstance(node, Leaf):
            return here if node.label else np.zeros_like(here)
        at = columns[node.column]
        if self.orders is None:
            ones = here & pack_flags(as_bits(block.column(at), label_of(node.column, self.names)))
        else:
            order, label = self.orders[node.column], label_of(node.column, self.names)
            ones = here & pack_flags(above_of(order, block.column(at), node.above, label))
        yes = self._holding(node.yes, block, columns, ones)
        return yes | self._holding(node.no, block, columns, here ^ ones)


def _columns(node: Question | Leaf) -> Iterator[int]:
    if isinstance(node, Question):
        yield node.column
        yield from _columns(node.yes)
        yield from _columns(node.no)


def above_of(order: NumberLine, values: NDArray[Any], number: Any, label: str) -> NDArray[np.bool_]:
    """Which values are above a number of a line that is not its last; never a NaN."""
    up_to = order.between(values, order.value(0), number, label)
    return order.between(values, order.value(0), order.value(order.last), label) & ~up_to


@boundary
def learn_tree(
    X: Any,
    y: Any,
    *,
    depth: int = 3,
    quantiles: int = 0,
    domain_bits: int | Sequence[int] | None = None,
    signed: bool | None = None,
    epsilon: float,
    delta: float = 0.0,
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> LearnedTree:
    """Learn a decision tree from labelled records of bits or numbers, privately.

    Parameters
    ----------
    X : array_like
        Records of 0 and 1, or with `quantiles` of numbers: an array, a data frame, a Parquet file, a Dask collection;
        for bits also `fastdp.pack(X)`, which is worth it for several calls.
    y : array_like or str
        Labels of 0 and 1, or -1 and 1, or the name of a column of X. They may be wrong.
    depth : int from 1 to 8
        How many questions a path has at most; each level has an equal share of epsilon.
    quantiles : int from 0 to 255
        0 for columns of bits. Otherwise columns hold numbers, and a question asks whether one is above a threshold: one
        of so many private quantiles of its column, labels unseen, for two sevenths of what the questions cost; or any
        number of a domain that is not larger. 7 or 15 are enough for most.
    domain_bits : int or sequence of int, optional
        The number of bits of the domain of all columns of numbers, or of each, as in `quantile`; None for as many as
        the types have.
    signed : bool, optional
        Whether integers are signed, as in `quantile`.
    epsilon : float > 0
        The privacy parameter of the release.
    delta : float in [0, 1)
        0 for pure differential privacy.
    beta : float in (0, 1)
        The probability with which the error bound of the result may fail.
    records : int, optional
        Under add-remove neighbours, where n is private: a public number that takes its place.
    outside : {"raise", "clip"}
        What becomes of values that are not in the domain: a DomainError, or the nearest one, and 0 (the lower end, for
        numbers) for what is missing or no number; and of labels other than 1: 0.
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
    LearnedTree
        It predicts, prints as questions and answers, and has its guarantee and its error bound.

    Raises
    ------
    ValueError
        For parameters that are not as above, before anything is charged.
    DomainError
        For values that are not in the domain, unless they are clipped; nothing is charged.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP for any records
    Proof        trees.md
    Accuracy     `.excess_bound` of the result, over the best answers to its questions, for any labels;
                 `bounds.learn_tree` and its inverses beforehand. No bound says how good the questions are
    Cost         one pass over the records for each level; a level that looks ahead reads d^2/2 pairs of columns, where
                 that takes no more than some 6 ms: twice a packing for n=1e6, d=100, depth=3
    Not covered  the time that a call takes

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).random((50_000, 30)) < 0.5
    >>> y = X[:, 3] & X[:, 4] | ~X[:, 3] & X[:, 5]
    >>> tree = fastdp.learn_tree(X, y, depth=2, epsilon=1.0)
    >>> print(tree)
    if v4:
        if v5: true
        else: false
    else:
        if v6: true
        else: false
    >>> tree.error(X, y)
    0.0
    """
    parameters.outside(outside)
    depth = integer("depth", depth, least=1, most=MOST_DEPTH)
    privacy = PrivacyParameters.of(epsilon, delta, beta, neighbors)
    records = public_count(records, neighbors)
    quantiles = integer("quantiles", quantiles, least=0, most=MOST_QUANTILES)
    table = _table(X, y, quantiles, domain_bits, signed, outside, may_be_empty=neighbors == "add-remove")
    n = records or table.n
    bits = table.bits if isinstance(table, Numbers) else ()
    d = sum(min(quantiles, (1 << b) - 1) for b in bits) or table.d
    plan = prepare_tree(TreeProblem(n, d, depth, privacy, quantiles, bits))
    if plan.excess > n / 2:
        warn_of_accuracy(
            f"learn_tree: {n:,} records are too few for an error bound that says more than a coin does "
            f"(depth={depth}, epsilon={privacy.epsilon:g})"
        )
    row = privacy.row(depth=depth, **({"quantiles": quantiles} if quantiles else {}))
    with ChargedKeys("learn_tree", plan.guarantee, row, budget, rng) as keys:
        table = keys.reads(table, RECORDS)
        records_of = _read(table, quantiles, plan, keys)
        with reporting(progress, "learning") as report:
            grown = plan.grow(records_of, keys, report)
    orders = table.orders if isinstance(table, Numbers) else None
    root = _tree(grown, (), records_of.comparisons, orders)
    guarantee, bound = keys.stating(plan.guarantee), min(1.0, plan.excess / n)
    return LearnedTree(root, depth, guarantee, bound, privacy.beta, orders, table.d, table.names)


def _table(
    X: Any, y: Any, quantiles: int, bits: Any, signed: bool | None, outside: Outside, *, may_be_empty: bool
) -> Examples | Numbers:
    if quantiles:
        numbers = Numbers(X, y, bits, signed, outside, may_be_empty=may_be_empty)
        if max(numbers.bits) > 64:
            raise ValueError(f"domain_bits={max(numbers.bits)}: must be at most 64")
        return numbers
    for name, value in (("domain_bits", bits), ("signed", signed)):
        if value is not None:
            raise ValueError(f"{name}={shown(value)}: must be left out for columns of bits; quantiles=7 is for numbers")
    return Examples(X, y, outside, may_be_empty=may_be_empty)


def _read(table: Examples | Numbers, quantiles: int, plan: TreeParameters, keys: ChargedKeys) -> Bits | Comparisons:
    """The records, and of numbers what they are compared with."""
    if isinstance(table, Examples):
        table.read(keep=True)
        return Bits(table, table.outside)
    table.read()
    return Comparisons(table, thresholds_of(table, quantiles, plan.quantiles, keys))


def _question(above: Above, orders: tuple[NumberLine, ...] | None) -> tuple[int, int | float | None]:
    """A column, and the number of its line that it is to exceed."""
    if orders is None or above.position is None:
        return above.column, None
    return above.column, orders[above.column].value(above.position)


def _tree(
    grown: GrownTree, path: Path, questions: Sequence[Above], orders: tuple[NumberLine, ...] | None
) -> Question | Leaf:
    """What is below a path; a question is left out where all that follows is the same, or the path has its answer."""
    if path in grown.leaves:
        return _leaf(grown.leaves[path])
    asked = grown.columns[path]
    sides = [(*path, 2 * asked + side) for side in (0, 1)]
    if (known := _side_known(path, questions[asked], questions)) is not None:
        return _tree(grown, sides[known], questions, orders)
    yes, no = (_tree(grown, side, questions, orders) for side in sides)
    return _both(yes, no) or Question(*_question(questions[asked], orders), yes, no)


def _both(one: Question | Leaf, other: Question | Leaf) -> Question | Leaf | None:
    """What answers as both do, with the counts of both; None where they differ."""
    if isinstance(one, Leaf) and isinstance(other, Leaf) and one.label == other.label:
        return Leaf(one.label, one.negatives + other.negatives, one.positives + other.positives)
    if isinstance(one, Leaf) or isinstance(other, Leaf) or (one.column, one.above) != (other.column, other.above):
        return None
    yes, no = _both(one.yes, other.yes), _both(one.no, other.no)
    return Question(one.column, one.above, yes, no) if yes and no else None


def _side_known(path: Path, asked: Above, questions: Sequence[Above]) -> int | None:
    """Which answer whoever is on a path gives: 0 for yes, 1 for no, None for either."""
    for step in path:
        before, side = questions[step // 2], step % 2
        if before.column != asked.column:
            continue
        if before.position is None or asked.position is None or before.position == asked.position:
            return side
        if (before.position > asked.position) == (side == 0):  # above more, or not above less
            return side
    return None


def _leaf(counts: LeafCounts) -> Leaf:
    return Leaf(counts.positives > counts.negatives, counts.negatives, counts.positives)
