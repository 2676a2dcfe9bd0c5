"""Marginal tables: all tables of a workload with noise, and then made consistent.

The tables are integers when they meet the noise; what follows sees the noisy ones alone (least_squares_fit.py,
entropic_fit.py). release_marginals.md has the sensitivity, the grid and the proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..privacy.budget import Budget
from ..privacy.guarantees import Neighbors
from ..randomness.charged_keys import ChargedKeys, charged_here
from ..randomness.keys import Randomness
from ..randomness.rehearsal import RECORDS
from ..records.domain import Domain, check_domain
from ..records.sources import rows_of
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import one_of
from ..support.parameters import Outside
from ..support.progress import Progress, reporting
from .least_squares_fit import least_squares_of
from .marginal_counts import count_tables
from .marginal_fits import FITS, Fit, Measured, check_fit, check_tables_fit, fit_measured, has_room
from .marginal_noise import NOISES, NoiseKind
from .marginals_release import MarginalsRelease
from .queries.marginals import Marginals
from .table_noise import ALLOCATIONS, Allocation, Objective, TableNoise, checked_objective, plan_noise


@boundary
def release_marginals(
    data: Any,
    domain: Domain,
    workload: Marginals | Iterable[Iterable[str]],
    *,
    epsilon: float,
    delta: float,
    fit: Fit | None = "auto",
    noise: NoiseKind = "auto",
    allocation: Allocation = "auto",
    objective: Objective | Iterable[float] = "maximum",
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> MarginalsRelease:
    """Release all tables of a workload of marginals with noise, and fit what is consistent to them.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files, Dask collection or mapping
        The records, with a column for each attribute of the domain.
    domain : Domain
        The values that records may have. Public: not read off the data.
    workload : Marginals or iterable of iterable of str
        The tables: `marginals(domain, k)`, or sets of attributes.
    epsilon : float > 0
        The epsilon of the release.
    delta : float in [0, 1)
        The delta of the release. 0 takes discrete Laplace noise, which pays for every table in full: of many tables
        much more of it.
    fit : {"auto", "entropic", "least-squares"}, optional
        "entropic": the tables of one distribution, found by multiplicative weights from independent attributes; on a
        junction tree that holds the tables, where it has a sixteenth of the domain's cells at most or these are more
        than 2^24 and its cliques at most 2^22, otherwise on all cells.
        "least-squares": consistent estimates, each entry with the least variance, then for each the nearest table
        without negative entries; works on domains of any size. None: as measured.
        "auto" takes the entropic fit up to 2^24 cells, and 2^21 of a tree, where memory allows, if it is expected to
        end within 1,000 steps, or a minute or two, which depends on public numbers alone.
    noise : {"auto", "laplace", "gaussian"}
        Discrete noise of one law on every cell. "auto" takes what has the smaller variance: by epsilon, delta and
        `neighbors`, Laplace for up to 3 to 15 tables, Gaussian beyond; and Gaussian under a budget that adds up rhos
        or squares of mu, which Laplace noise takes many times more of. The guarantee states which: Laplace noise has
        no delta.
    allocation : {"auto", "equal", "planned"}
        "equal": the same noise on every cell. "planned": Gaussian noise of its own on what each table adds to those of
        fewer attributes, so that the `objective` is small; on all tables of k attributes a third to two thirds less
        deviation than equal noise and least squares. "auto" takes what has less by public numbers; where a
        distribution is fitted, which gains little then, equal noise unless cells hold many records.
    objective : {"maximum", "total"} or iterable of float
        What planned noise makes small: the largest variance of a cell; the sum over all cells; or the sum over all
        tables of the variance of their cells, each times a positive weight that is given here.
    outside : {"raise", "clip"}
        Records outside the domain: a DomainError, or the nearest code, or the nearest label where labels are
        increasing numbers; what has none, such as a missing entry, is None if that is a label, or the first value.
    progress : bool or callable, optional
        True for a bar, or a callable (done, total, what is being done).
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    MarginalsRelease
        `.tables` are fractions of `.n`, `.sigma` is in records. `.synthetic` is there after the entropic fit:
        `.fit == "entropic"`, of which fit="entropic" makes sure.

    Raises
    ------
    ValueError
        For parameters, unknown attributes, domains too large for the fit.
    DomainError
        For records outside the domain.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP, and rho-zCDP for the rho of its sigma; epsilon-DP where the noise is Laplace's
    Proof        release_marginals.md, theorem 1; residual_planning.md, theorems 1 to 4, for planned noise
    Accuracy     `.deviation` of every cell; `bounds.release_marginals` beforehand; release_marginals.md has figures
    Cost         a pass over the records (one for each group of attributes where the domain exceeds 2^24 cells);
                 the entropic fit of 56 tables of 50,880 cells a tenth of a second
    Not covered  under add-remove neighbours, the time that the call takes, which depends on the number of records

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import Domain, marginals, release_marginals
    >>> domain = Domain(age=4, sex=2, smokes=2)
    >>> records = np.random.default_rng(1).integers(0, [4, 2, 2], (5000, 3))
    >>> released = release_marginals(records, domain, marginals(domain, 2), epsilon=1.0, delta=1e-6)
    >>> [table.shape for table in released.tables]
    [(4, 2), (4, 2), (2, 2)]
    >>> released.synthetic.sample(3).shape
    (3, 3)
    """
    workload = checked_workload(domain, workload, fit)
    parameters.neighbors(neighbors)
    parameters.outside(outside)
    rows = rows_of(data)
    n = rows.n if neighbors == "replace-one" else None
    payers = charged_here(budget)
    planned = planned_noise(workload, epsilon, delta, neighbors, fit, noise, allocation, objective, n, payers)
    if n == 0:
        raise ValueError("data: n=0 records: must be at least one; with neighbors='add-remove' there may be none")
    listed = {"epsilon": float(epsilon), "delta": float(delta), "tables": workload.tables}
    with reporting(progress, "releasing") as report:
        with ChargedKeys("release_marginals", planned.guarantee, listed, payers, rng) as keys:
            report(0, 3, "counting")
            counts = count_tables(keys.reads(rows, RECORDS), planned.tables, outside)
            report(1, 3, "drawing noise")
            components, measured = planned.measure(counts, keys.take())
        report(2, 3, "fitting")
        made = Measured(least_squares_of(workload), planned, components, measured)
        released = fit_measured(made, n, fit, keys.stating(planned.guarantee), report)
        report(3, 3, "")
    return released


def checked_workload(domain: Any, workload: Any, fit: Any) -> Marginals:
    """The workload as marginals of the domain, which this fit can be made to."""
    check_domain(domain)
    if fit is not None:
        one_of("fit", fit, FITS)
    checked = Marginals.of(domain, workload)
    if checked.domain != domain:
        raise ValueError("workload: must be marginals of `domain`")
    check_tables_fit(checked)
    if fit == "entropic":
        check_fit(checked)
    return checked


def planned_noise(
    workload: Marginals, epsilon: Any, delta: Any, neighbors: Neighbors, fit: Any, noise: Any, allocation: Any,
    objective: Any, n: int | None, payers: Sequence[Budget] = (),
) -> TableNoise:  # fmt: skip
    """What the tables are measured with, by checked parameters; n the number of records where it is public."""
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
    one_of("noise", noise, NOISES)
    one_of("allocation", allocation, ALLOCATIONS)
    objective = checked_objective(objective, workload)
    may_fit = fit == "entropic" or (fit == "auto" and has_room(workload))
    return plan_noise(
        least_squares_of(workload), epsilon, delta, neighbors, noise=noise, allocation=allocation, objective=objective,
        n=n, fit="entropic" if may_fit else fit, payers=payers,
    )  # fmt: skip
