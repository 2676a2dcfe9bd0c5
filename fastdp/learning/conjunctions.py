"""Learning which of its attributes decide about a record: conjunctions of literals over bits.

The default peels: it draws one literal after the other by the exponential mechanism and deletes the records that the
literal speaks about, so that a record pays once however many literals there are, and the number of records that it
takes grows linearly in k. The others are the lecture's, for comparison and where they suit better. conjunctions.md has
the proofs.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.noise import integer_noise
from ..mechanisms.selection import draw_one
from ..privacy.budget import Budget, charge
from ..privacy.guarantees import NEIGHBORS, Accounted, Guarantee, Neighbors
from ..randomness.keys import Randomness, fresh_key
from ..records.bits import all_bits, unpack_flags
from ..records.rows import Block
from ..support.checks import check_records, integer, one_of
from ..support.errors import PrivacyWarning, levels_to_caller
from ..support.progress import Progress, Report, reporting
from ..support.results import DisplayLines
from .conjunction_parameters import (
    CountsPlan,
    ExhaustivePlan,
    GreedyPlan,
    PeelPlan,
    Terms,
    plan_counts,
    plan_exhaustive,
    plan_greedy,
    plan_peel,
)
from .examples import Counts, Examples
from .exhaustive import choose_conjunction, refusal
from .hypotheses import Hypothesis, promised, warn_if_vacuous
from .privacy_parameters import checked, parameters_of

Method = Literal["peel", "greedy", "counts", "exhaustive", "auto", "elimination"]
METHODS = ("peel", "greedy", "counts", "exhaustive", "auto", "elimination")
Plan = CountsPlan | ExhaustivePlan | GreedyPlan | PeelPlan
PLANS: dict[str, Callable[[Terms], Plan]] = {
    "peel": plan_peel, "greedy": plan_greedy, "counts": plan_counts, "exhaustive": plan_exhaustive,
}  # fmt: skip

Draw = Callable[[Counts, float], int]  # of one score by the exponential mechanism, with this eta


@dataclass(frozen=True, eq=False, repr=False)
class LearnedConjunction(Hypothesis, Accounted):
    """A conjunction of literals; str() writes it as a person would.

    literals     (column, value): the concept holds for records that have this value in this column, for all of them
    method       that learned it
    guarantee    what its release promises; None for "elimination", which is not private
    error_bound  with probability 1 - beta it is wrong about at most this share of the records that it was learned from,
                 if some conjunction (of at most k literals) is right about all of them; 1.0 promises nothing, and None
                 is for "elimination", which then makes no error
    beta         the same
    width, names of the columns of the records
    """

    literals: tuple[tuple[int, bool], ...]
    method: str
    guarantee: Guarantee | None
    error_bound: float | None
    beta: float | None
    width: int
    names: tuple[str, ...] | None

    def __str__(self) -> str:
        asked = dict(self.literals)
        if len(asked) < len(self.literals):
            return "false"  # both values of a column
        signs = (("" if value else "¬") + self.name_of(column) for column, value in sorted(self.literals))
        return " ∧ ".join(signs) or "true"

    def _display(self) -> DisplayLines:
        lines = [("concept", str(self)), ("method", self.method)]
        if self.guarantee is None:
            return [*lines, ("guarantee", "none: elimination is not private")]
        return [
            *lines,
            ("error", promised(self.error_bound, self.beta, "conjunction")),
            ("guarantee", str(self.guarantee)),
        ]

    def _looks_at(self) -> Sequence[int]:
        return sorted({column for column, _ in self.literals})

    def _holds(self, block: Block, columns: Sequence[int]) -> NDArray[np.bool_]:
        from ..kernels.literals import satisfying_into

        left = all_bits(block.n)
        if self.literals:
            at, values = zip(*((columns[column], int(value)) for column, value in self.literals), strict=True)
            satisfying_into(block.bits(), np.array(at), np.array(values), left)
        return unpack_flags(left, block.n)


def learn_conjunction(
    X: Any,
    y: Any,
    *,
    k: int | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    method: Method = "peel",
    beta: float = 0.05,
    records: int | None = None,
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> LearnedConjunction:
    """Learn a conjunction such as v4 ∧ ¬v5 ∧ v6 from labelled records of bits, privately.

    X, y      records of 0 and 1 (bools, integers, data frames, Parquet files, `fastdp.pack(X)`, which is worth it for
              several calls), and labels of 0 and 1, or -1 and 1; y may name a column of X
    k         at most so many literals are looked for; None: as many as there are columns
    method    "peel": O(nd) time, an error that grows linearly in k; wants a delta
              "greedy": as peel, but a record pays for every literal: k^1.5, and k^2 without a delta
              "exhaustive": one choice among all conjunctions of at most k literals, pure; for small k and d by far the
              best, and the only one that promises something where no conjunction fits, as with noisy labels
              "counts": one noisy count for each literal; its error grows with d^1.5, with d^2 without a delta; k only
              lowers its threshold
              "auto": the one of these that promises the fewest errors, from public numbers
              "elimination": not private, exact; takes neither epsilon nor k
    records   under add-remove neighbours, where n is private: a public number that takes its place in the schedules;
              `.error_bound` holds if there are as many

    Guarantee    (epsilon, delta)-DP for any records; "exhaustive" with delta=0 has bounded range epsilon, "counts" is
                 epsilon-DP where Laplace noise is the better
    Proof        conjunctions.md
    Accuracy     `.error_bound` of the result; `bounds.learn_conjunction` and `bounds.learn_conjunction_n` beforehand
    Cost         n d / 64 words are read once for each literal: 10 ms for n=1e6, d=100, k=10, packing included; and
                 the first call with new parameters 0.3 s for the accounting
    Not covered  the time that a call takes, which depends on how many literals were drawn and how many phases stopped
    Raises       ValueError and DomainError before anything is spent: other values than 0 and 1, k > d, "exhaustive"
                 beyond 2^24 sets of columns or 20 s, with an estimate

    Examples
    >>> import fastdp, numpy as np
    >>> X = np.random.default_rng(0).random((200_000, 30)) < 0.5
    >>> y = X[:, 3] & ~X[:, 4] & X[:, 5]
    >>> h = fastdp.learn_conjunction(X, y, k=3, epsilon=1.0, delta=1e-6)
    >>> print(h)
    v4 ∧ ¬v5 ∧ v6
    >>> h.error(X, y)
    0.0
    """
    one_of("method", method, METHODS)
    one_of("neighbors", neighbors, NEIGHBORS)
    if method == "elimination":
        of_privacy = {"k": k, "epsilon": epsilon, "delta": delta or None, "records": records, "rng": rng}
        return _eliminate(X, y, {**of_privacy, "budget": budget}, progress)
    if epsilon is None:
        raise ValueError(
            "epsilon=None: must be a number > 0; only method='elimination', which is not private, has none"
        )
    spent = checked(epsilon, delta, beta, neighbors)
    check_records(records, neighbors)
    examples = Examples(X, y, may_be_empty=neighbors == "add-remove")
    n = examples.n if records is None else integer("records", records, least=1)
    k = examples.d if k is None else integer("k", k, least=1, most=examples.d)
    terms = Terms(n, examples.d, k, *spent)
    taken, plan = choose_plan(method, terms)
    warn_if_vacuous("learn_conjunction", plan.bound, n, f"method={taken!r}, k={k}, epsilon={terms.epsilon:g}")
    parameters = parameters_of(terms, k=k, method=taken)
    with charge(budget, plan.guarantee, "learn_conjunction", parameters) as final:
        examples.read(keep=taken != "counts")
        with reporting(progress, "learning") as report:
            literals = _learn(plan, examples, k, rng, final, report)
    return _hypothesis(literals, examples, taken, plan.guarantee, min(1.0, plan.bound / n), terms.beta)


def choose_plan(method: str, terms: Terms) -> tuple[str, Plan]:
    """The plan of a method, or for "auto" of the one that promises the fewest errors; ValueError if it is too much."""
    reason = refusal(terms.n, terms.d, terms.k) if method in ("auto", "exhaustive") else ""
    if method != "auto":
        if reason:
            raise ValueError(f"method='exhaustive', {reason}")
        return method, PLANS[method](terms)
    plans = {name: plan(terms) for name, plan in PLANS.items() if not (reason and name == "exhaustive")}
    return min(plans.items(), key=lambda item: item[1].bound)


def _learn(
    plan: Plan, examples: Examples, k: int, rng: Randomness | None, final: Callable[[], None], report: Report
) -> list[int]:
    """The literals that a plan finds; `final` comes before each draw, and counts once."""
    if isinstance(plan, CountsPlan):
        report(0, 1, "counts")
        counts = examples.falsified().of_positives
        key = fresh_key(rng)
        final()
        kept = counts + integer_noise(plan.noise, key, counts.size) <= plan.threshold
        report(1, 1, "")
        return np.flatnonzero(kept).tolist()
    if isinstance(plan, ExhaustivePlan):
        return choose_conjunction(examples, k, plan.eta, fresh_key(rng), final, report)

    def draw(scores: Counts, eta: float) -> int:
        key = fresh_key(rng)
        final()
        return draw_one(scores, key, eta)

    if isinstance(plan, GreedyPlan):
        return _choose_greedily(plan, examples, k, draw, report)
    return _peel(plan, examples, draw, report)


def _choose_greedily(plan: GreedyPlan, examples: Examples, k: int, draw: Draw, report: Report) -> list[int]:
    found: dict[int, None] = {}
    left = examples.falsified()
    nothing = 2 * examples.d  # a literal that no record falsifies: without it "true" could not be learned
    scores = np.empty(nothing + 1, np.int64)
    for done in range(plan.rounds):
        report(done, plan.rounds, f"literal {done + 1}")
        np.minimum(k * left.of_negatives - left.negatives, -k * left.of_positives, out=scores[:nothing])
        scores[nothing] = -left.negatives
        literal = draw(scores, plan.eta)
        if literal != nothing and literal not in found:  # deleting is done once
            found[literal] = None
            left = examples.falsified(list(found))
    report(plan.rounds, plan.rounds, "")
    return list(found)


def _peel(plan: PeelPlan, examples: Examples, draw: Draw, report: Report) -> list[int]:
    found: dict[int, None] = {}
    left = examples.falsified()
    dummy = 2 * examples.d
    scores = np.empty(dummy + 1, np.int64)
    scores[dummy] = -plan.dummy
    for phase, (threshold, rounds) in enumerate(plan.phases):
        report(phase, len(plan.phases), f"literals of {threshold:,} negatives")
        for _ in range(rounds):
            np.minimum(left.of_negatives - threshold, -left.of_positives, out=scores[:dummy])
            literal = draw(scores, plan.eta)
            if literal == dummy:
                break
            if literal not in found:
                found[literal] = None
                left = examples.falsified(list(found))
    report(len(plan.phases), len(plan.phases), "")
    return list(found)


def _eliminate(X: Any, y: Any, of_privacy: dict[str, Any], progress: Progress) -> LearnedConjunction:
    """All literals that no positive falsifies. Exact, not private, and charged to nobody."""
    for name, value in of_privacy.items():
        if value is not None:
            raise ValueError(f"{name}={value!r}: must be left out for method='elimination', which is not private")
    warnings.warn("method='elimination' is not private", PrivacyWarning, stacklevel=levels_to_caller())
    examples = Examples(X, y)
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
    error_bound: float | None,
    beta: float | None,
) -> LearnedConjunction:
    named = tuple(sorted((literal // 2, literal % 2 == 0) for literal in literals))
    return LearnedConjunction(named, method, guarantee, error_bound, beta, examples.d, examples.names)
