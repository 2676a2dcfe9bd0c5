"""Synthetic tables of any width: noisy tables that a public plan chooses, and the distribution that fits them best.

What is measured, with which noise, is in synthesis_plan.py and measuring.py; structure.py plans by what was released;
tree_fit.py fits a junction tree to it. synthesize.md proves the guarantee.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...privacy.budget import Budget
from ...privacy.guarantees import Neighbors
from ...randomness.charged_keys import ChargedKeys
from ...randomness.keys import Randomness
from ...randomness.rehearsal import RECORDS
from ...records.domain import Domain
from ...records.sources import rows_of
from ...support import parameters
from ...support.boundary import boundary
from ...support.parameters import Outside
from ...support.progress import Progress, reporting
from ...support.public_paths import public_as
from ..queries.marginals import Marginals
from ..synthetic_distribution import SyntheticDistribution
from .junction_tree import JunctionTree
from .known_tables import within
from .measuring import Measurements, measure
from .merged_tree import MergedTree
from .released_tables import released_tables
from .synthesis_plan import Method, SynthesisPlan, synthesis_plan
from .synthesis_report import SynthesisReport, report_of
from .tree_fit import fit_residuals, fit_tree


@public_as("fastdp.answering")
class SynthesizedDistribution(SyntheticDistribution):
    """What `synthesize` returns: a synthetic distribution that knows what was measured for it.

    Parameters
    ----------
    weights
        As of `SyntheticDistribution`.
    domain : Domain, optional
        As of `SyntheticDistribution`.
    report : SynthesisReport
        What was measured with which noise, and the tree.
    **more
        `guarantee` and `n`, as of `SyntheticDistribution`.

    Attributes
    ----------
    report : SynthesisReport
        What was measured with which noise, and the tree.
    """

    report: SynthesisReport

    def __init__(self, weights: Any, domain: Domain | None, *, report: SynthesisReport, **more: Any):
        super().__init__(weights, domain, **more)
        self.report = report

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self.report._repr_html_()


@boundary
def synthesize(
    data: Any,
    domain: Domain,
    *,
    epsilon: float,
    delta: float,
    workload: Marginals | Iterable[Iterable[str]] | None = None,
    importance: Iterable[float] | None = None,
    impossible: Iterable[Any] | None = None,
    max_seconds: float | None = None,
    max_bytes: int | None = None,
    method: Method = "auto",
    released: Iterable[Any] | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> SynthesizedDistribution:
    """Make a synthetic table: a distribution over all columns, of which records are sampled.

    Columns may be many, and of any type that a domain has: codes, labels, bins of numbers, missing entries as a value.
    At most a sixth of the privacy finds out which columns depend on each other, in rounds that each begin with what
    the last one has explained; the rest measures tables of those that do. Of a column with more than 256 values the
    rare ones, which noise hides, are one value in all tables of several columns; records have each of them again, by
    its share.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files, Dask collection or mapping
        The records, with a column for each attribute of the domain.
    domain : Domain
        The values that records may have. Public: not read off the data.
    epsilon : float > 0
        The epsilon of the synthesis.
    delta : float in (0, 1)
        The delta of the synthesis.
    workload : Marginals or iterable of iterable of str, optional
        The tables that matter; by default those of all pairs of columns. Of larger ones, the pairs in them count.
    importance : iterable of float, optional
        How much an error of each of these tables counts; by default all the same.
    impossible : iterable of Product, Conjunction or Range, optional
        What no record is, as everybody knows: these cells get probability 0. Records that are so all the same lose
        nothing but their accuracy.
    max_seconds : float, optional
        About how long the fit may take on one core, compilation aside; 4 by default. What is measured depends on it,
        never on the clock.
    max_bytes : int, optional
        About what tables and the fit may take in memory, the records aside; 2^29 by default.
    method : {"auto", "tree", "network"}
        How the tables that are measured are found. "tree": by noisy distances of all tables that may be, in rounds;
        none where one tree holds all tables of the workload. "network": column by column, with at most two others that
        were chosen before, by the exponential mechanism: for wide tables and small budgets. "auto" takes the network
        where distances would be lost in their noise and choices less so, and beyond 2^17 pairs of columns: by public
        numbers, and the noisy number of records.
    released : iterable of MarginalsRelease, SynthesizedDistribution, SynthesisReport or MeasuredTable, optional
        What has been released of the same records before, and paid for: the fit takes in all these tables, the tree
        holds those for which its limits have room, and less is spent on what they have. As of tables with independent
        noise, which those of planned noise and of few columns only nearly are.
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
        The relation between neighbouring collections of records.

    Returns
    -------
    SynthesizedDistribution
        `.to_frame()` and `.sample(n)` are records, `.marginal`, `.answer` of the distribution itself; `.report`
        states what was measured. It is a `prior=` of PrivateMultiplicativeWeights where the domain is small enough.

    Raises
    ------
    ValueError
        For parameters, unknown attributes, limits that leave no room for the columns.
    DomainError
        For records outside the domain.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP, and mu-Gaussian DP for the mu that these allow
    Proof        synthesize.md, theorem 1
    Accuracy     every measured table states its sigma; there is no bound for the others
    Cost         some passes over the records, each for every few columns; the fit of 13 census columns some seconds
    Not covered  the time that the call takes, which depends on what was released and, under add-remove neighbours, on
                 the number of records

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import Domain, synthesize
    >>> rng = np.random.default_rng(1)
    >>> smokes = rng.random(5000) < 0.3
    >>> coughs = rng.random(5000) < 0.1 + 0.6 * smokes
    >>> table = {"smokes": np.where(smokes, "yes", "no"), "coughs": coughs.astype(int)}
    >>> domain = Domain(smokes=["no", "yes"], coughs=2)
    >>> synthetic = synthesize(table, domain, epsilon=1.0, delta=1e-6)
    >>> synthetic.to_frame().shape
    (5000, 2)
    >>> bool(abs(synthetic.marginal(["smokes", "coughs"])[1, 1] - 0.21) < 0.05)
    True
    """
    plan = synthesis_plan(
        domain,
        epsilon=epsilon,
        delta=delta,
        workload=workload,
        importance=importance,
        impossible=impossible,
        max_seconds=max_seconds,
        max_bytes=max_bytes,
        method=method,
        neighbors=neighbors,
        known=released_tables(released, domain),
    )
    parameters.outside(outside)
    rows = rows_of(data)
    if neighbors == "replace-one" and rows.n == 0:
        raise ValueError("data: n=0 records: must be at least one; with neighbors='add-remove' there may be none")
    listed = {"epsilon": epsilon, "delta": delta, "columns": len(domain)}
    with reporting(progress, "synthesizing") as report:
        report(0, 2, "measuring")
        with ChargedKeys("synthesize", plan.guarantee, listed, budget, rng) as keys:
            measured = measure(
                keys.reads(rows, RECORDS), plan, rows.n if neighbors == "replace-one" else None, outside, keys
            )
            guarantee = keys.stating(plan.guarantee)
        report(1, 2, "fitting")
        made = _fitted(plan, measured, guarantee)
        report(2, 2, "")
    return made


def _fitted(plan: SynthesisPlan, measured: Measurements, guarantee: Any) -> SynthesizedDistribution:
    tree = JunctionTree(measured.sizes(plan), measured.plan.edges)
    if measured.residuals is None:
        tables = within(tree, [*measured.tables, *plan.known])
        fit = fit_tree(tree, tables, measured.total, zeros=plan.zeros)
    else:
        fit = fit_residuals(tree, measured.residuals, measured.total, zeros=plan.zeros)
    report = report_of(plan, measured, tree, fit)
    n, found = round(measured.total), fit.distribution
    made = MergedTree(found, measured.merges) if measured.merges else found
    return SynthesizedDistribution(made, plan.domain, report=report, guarantee=guarantee, n=n)
