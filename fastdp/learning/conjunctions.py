"""Learning which of its attributes decide about a record: conjunctions of literals over bits.

The default allows for labels that are wrong: it chooses by errors, among all conjunctions where they are not too many
("exhaustive"), and otherwise a few literals at a time ("search"). The other methods rest on a conjunction that fits all
records, and are guarded unless the caller asserts it. conjunctions.md and guard.md have the proofs.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..privacy.accounted import Accounted
from ..privacy.budget import Budget
from ..privacy.guarantees import Guarantee, Neighbors
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..randomness.rehearsal import RECORDS
from ..records.bit_words import all_bits, unpack_flags
from ..records.rows import Block
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import flag, integer, one_of, public_count
from ..support.errors import PrivacyWarning, levels_to_caller
from ..support.parameters import Outside
from ..support.progress import Progress, reporting
from ..support.public_paths import public_as
from ..support.results import DisplayLines
from ..support.shown import shown
from .conjunction_parameters import ConjunctionProblem
from .conjunctions_counts import prepare_counts
from .conjunctions_exhaustive import lengthy, prepare_exhaustive, refusal
from .conjunctions_greedy import prepare_greedy
from .conjunctions_peel import prepare_peel
from .conjunctions_search import prepare_search
from .examples import Examples
from .guard import Guard
from .hypotheses import Hypothesis, error_lines
from .methods import Comparison, ErrorBounds, Method, choose_method
from .privacy_parameters import PrivacyParameters

MethodName = Literal["auto", "exhaustive", "search", "peel", "greedy", "counts", "elimination"]
PRIVATE: dict[str, Method[ConjunctionProblem, Any]] = {
    "peel": Method(prepare_peel, rests="a fit"),
    "greedy": Method(prepare_greedy, rests="a fit"),
    "counts": Method(prepare_counts, rests="a fit"),
    "exhaustive": Method(
        prepare_exhaustive,
        lambda problem: refusal(problem.n, problem.d, problem.k),
        any_n=True,
        lengthy=lambda problem: lengthy(problem.n, problem.d, problem.k),
        share=0.2,
    ),
    "search": Method(prepare_search, rests="the guard"),
}


@public_as("fastdp.learning")
@dataclass(frozen=True, eq=False, repr=False)
class LearnedConjunction(Hypothesis, Accounted):
    """A conjunction of literals; str() writes it as a person would.

    Parameters
    ----------
    literals : tuple of (int, bool)
        (column, value): the conjunction holds for records that have this value in this column, for all of them.
    method : str
        The method that learned it.
    guarantee : Guarantee or None
        The privacy guarantee of its release; None for "elimination", which is not private.
    error_bound : float or None
        With probability 1 - beta it is wrong about at most this share of the records that it was learned from, if some
        conjunction (of at most k literals) is right about all of them. At 1.0 there is no error bound; None is for
        "elimination", which then makes no error.
    excess_bound : float or None
        With probability 1 - beta, whatever the labels, its share of errors exceeds by at most this the least of what it
        is compared with; None where there is no such bound.
    compared_with : {"class", "found"} or None
        "class": all conjunctions of at most k literals. "found": "true", "false", and the conjunctions of the literals
        that the method found one after the other, up to each of them ("search": of every set of up to 12).
    beta : float or None
        The probability with which a bound may fail.
    width : int
        The number of columns of the records.
    names : tuple of str, or None
        The names of the columns.
    """

    literals: tuple[tuple[int, bool], ...]
    method: str
    guarantee: Guarantee | None
    error_bound: float | None
    excess_bound: float | None
    compared_with: Comparison | None
    beta: float | None
    width: int
    names: tuple[str, ...] | None

    def __str__(self) -> str:
        required = dict(self.literals)
        if len(required) < len(self.literals):
            return "false"  # both values of a column
        signs = (("" if value else "¬") + self.name_of(column) for column, value in sorted(self.literals))
        return " ∧ ".join(signs) or "true"

    def _display(self) -> DisplayLines:
        lines = [("hypothesis", str(self)), ("method", self.method)]
        if self.guarantee is None:
            return [*lines, ("guarantee", "none: elimination is not private")]
        return [
            *lines,
            *error_lines(self, "conjunction"),
            ("guarantee", str(self.guarantee)),
        ]

    def _columns_read(self) -> Sequence[int]:
        return sorted({column for column, _ in self.literals})

    def _holds(self, block: Block, columns: Sequence[int]) -> NDArray[np.bool_]:
        from ..kernels.literals import satisfying_into

        left = all_bits(block.n)
        if self.literals:
            at, values = zip(*((columns[column], int(value)) for column, value in self.literals), strict=True)
            satisfying_into(block.bits(), np.array(at), np.array(values), left)
        return unpack_flags(left, block.n)


@boundary
def learn_conjunction(
    X: Any,
    y: Any,
    *,
    k: int | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    method: MethodName = "auto",
    realizable: bool = False,
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> LearnedConjunction:
    """Learn a conjunction such as v4 ∧ ¬v5 ∧ v6 from labelled records of bits, privately.

    Parameters
    ----------
    X : array_like of {0, 1}
        Records: an array of bools or integers, a data frame, a Parquet file, a Dask collection, or `fastdp.pack(X)`,
        which is worth it for several calls.
    y : array_like or str
        Labels of 0 and 1, or -1 and 1, or the name of a column of X.
    k : int, optional
        The largest number of literals; None for as many as there are columns. A small one helps if records are few.
    epsilon : float > 0
        The privacy parameter; to be left out for "elimination" only.
    delta : float in [0, 1)
        0 for pure differential privacy. "peel", "greedy" and "search" make fewer errors with a delta > 0, such as 1e-6.
    method : {"auto", "exhaustive", "search", "peel", "greedy", "counts", "elimination"}
        "auto": "exhaustive" where that takes no more than two seconds or so and its error bound is at most a fifth of
        the records, otherwise "search"; with `realizable` the one of all with the least error bound. All from public
        numbers.
        "exhaustive": one choice among all conjunctions of at most k literals, by their errors; for any labels it is
        nearly the best of them.
        "search": up to six literals at a time by their errors, on what those before have left, and at last a choice
        among all parts of what was found; only as many literals as n supports, and 12 without a k. Where that is no
        more than one move has, one choice among all conjunctions of so many. A literal more has a 16th of the weight.
        "peel": O(nd) time, an error that grows linearly in k if a conjunction fits; wants a delta.
        "greedy": as peel, but a record pays for every literal: k^1.5, and k^2 without a delta.
        "counts": one noisy count for each literal; its error grows with d^1.5, with d^2 without a delta; k only lowers
        its threshold.
        "elimination": not private, exact; takes neither epsilon nor k.
    realizable : bool
        True asserts that some conjunction of at most k literals is right about all records. "peel", "greedy" and
        "counts" need that. Without it a sixteenth of epsilon pays for a guard: a last choice among "true", "false" and
        the conjunctions of the literals found up to each of them. Privacy does not depend on it.
    beta : float in (0, 1)
        The probability with which the error bound of the result may fail.
    records : int, optional
        Under add-remove neighbours, where n is private: a public number that takes its place in the schedules;
        `.error_bound` holds if there are as many.
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
    LearnedConjunction
        It predicts, prints as a formula, and has its guarantee and its error bounds.

    Raises
    ------
    ValueError
        For parameters that are not as above, k > d, and for "exhaustive" beyond 2^24 sets of columns or 20 s, with an
        estimate; before anything is charged.
    DomainError
        For values other than 0 and 1, unless they are clipped; nothing is charged.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP for any records; "exhaustive" with delta=0 has bounded range epsilon, "counts" is
                 epsilon-DP where Laplace noise is the better
    Proof        conjunctions.md; guard.md
    Accuracy     `.excess_bound` for any labels, `.error_bound` if a conjunction fits; `bounds.learn_conjunction` and
                 `bounds.learn_conjunction_n` beforehand
    Cost         "peel": n d / 64 words are read once for each literal: 10 ms for n=1e6, d=100, k=10, packing included;
                 and the first call with new parameters 0.3 s for the accounting. "search": up to 0.3 s a move
    Not covered  the time that a call takes, which depends on how many literals were drawn and how many phases stopped

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).random((200_000, 30)) < 0.5
    >>> y = X[:, 3] & ~X[:, 4] & X[:, 5]
    >>> h = fastdp.learn_conjunction(X, y, k=3, epsilon=1.0, delta=1e-6)
    >>> print(h)
    v4 ∧ ¬v5 ∧ v6
    >>> h.error(X, y)
    0.0
    """
    one_of("method", method, (*PRIVATE, "auto", "elimination"))
    parameters.neighbors(neighbors)
    parameters.outside(outside)
    if method == "elimination":
        of_privacy = {"k": k, "epsilon": epsilon, "delta": delta or None, "records": records, "rng": rng}
        return _eliminate(X, y, {**of_privacy, "budget": budget}, outside, progress)
    if epsilon is None:
        raise ValueError(
            "epsilon=None: must be a number > 0; only method='elimination', which is not private, has none"
        )
    realizable = flag("realizable", realizable)
    privacy = PrivacyParameters.of(epsilon, delta, beta, neighbors)
    records = public_count(records, neighbors)
    examples = Examples(X, y, outside, may_be_empty=neighbors == "add-remove")
    n = records or examples.n
    most = None if k is None else integer("k", k, least=1, most=examples.d)
    k = most or examples.d
    chosen = choose_method(PRIVATE, method, ConjunctionProblem(n, examples.d, k, privacy), realizable=realizable)
    taken, plan, guard = chosen.method, chosen.plan, chosen.guard
    chosen.warn_if_vacuous("learn_conjunction", n, f"method={taken!r}, k={k}, epsilon={privacy.epsilon:g}")
    if most is not None and most < examples.d and taken == "search":
        plan.warn_if_fewer(most, n)
    row = privacy.row(k=k, method=taken)
    with ChargedKeys("learn_conjunction", chosen.guarantee, row, budget, rng) as keys:
        examples = keys.reads(examples, RECORDS)
        examples.read(keep=plan.rereads or guard is not None)
        with reporting(progress, "learning") as report:
            literals = plan.learn(examples, keys, report)
            if guard is not None:
                literals = _guarded(guard, examples, literals, keys)
    guarantee = keys.stating(chosen.guarantee)
    return _hypothesis(literals, examples, taken, guarantee, chosen.bounds(n), privacy.beta)


def _guarded(guard: Guard, examples: Examples, literals: list[int], keys: ChargedKeys) -> list[int]:
    """The chosen one of "false" and of the prefixes, of which the shortest is "true"."""
    errors = [examples.positives, *examples.prefix_errors(literals).tolist()]
    place = guard.draw(errors, keys.take())
    return literals[: place - 1] if place else [0, 1]


def _eliminate(X: Any, y: Any, of_privacy: dict[str, Any], outside: Outside, progress: Progress) -> LearnedConjunction:
    """All literals that no positive falsifies. Exact, not private, and charged to nobody."""
    for name, value in of_privacy.items():
        if value is not None:
            raise ValueError(f"{name}={shown(value)}: must be left out for method='elimination', which is not private")
    warnings.warn("method='elimination' is not private", PrivacyWarning, stacklevel=levels_to_caller())
    examples = Examples(X, y, outside)
    with reporting(progress, "learning") as report:
        report(0, 1, "counts")
        examples.read(keep=False)
        kept = np.flatnonzero(examples.falsified().of_positives == 0).tolist()
        report(1, 1, "")
    return _hypothesis(kept, examples, "elimination", None, None, None)


def _hypothesis(
    literals: Sequence[int],
    examples: Examples,
    method: str,
    guarantee: Guarantee | None,
    bounds: ErrorBounds | None,
    beta: float | None,
) -> LearnedConjunction:
    named = tuple(sorted({(literal // 2, literal % 2 == 0) for literal in literals}))
    error, excess, compared = bounds or (None, None, None)
    return LearnedConjunction(named, method, guarantee, error, excess, compared, beta, examples.d, examples.names)
