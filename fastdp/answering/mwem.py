"""MWEM: a synthetic distribution for a workload that is known in advance.

Each round chooses the query on which the distribution is furthest off, by the exponential mechanism, and updates by it:
mwem_average.py, mwem_measured.py. mwem.md has the theorem for the averaged iterate, and the privacy of both variants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..privacy.budget import Budget
from ..privacy.guarantees import Neighbors
from ..privacy.reservations import prefers_gaussian
from ..randomness.charged_keys import ChargedKeys, charged_here
from ..randomness.keys import Randomness
from ..randomness.rehearsal import RECORDS
from ..records.domain import Domain, check_domain
from ..records.sources import rows_of
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import MAX_INT64, check_records, integer, large_integer, one_of
from ..support.parameters import Outside
from ..support.progress import Progress, reporting
from ..support.public_paths import public_as
from .memory import check_room
from .mwem_average import AveragePlan
from .mwem_measured import MeasuredPlan
from .mwem_plan import VARIANTS, MwemPlan, Variant
from .queries.marginals import Marginals
from .queries.query import as_sequence
from .synthetic_distribution import SyntheticDistribution
from .true_answers import TrueAnswers
from .workload import Workload

_QUICK_CELLS = 1 << 20  # up to which marginals are measured by default
_PLANS: dict[str, type[MwemPlan]] = {"average": AveragePlan, "measured": MeasuredPlan}


@public_as("fastdp.answering")
class FittedDistribution(SyntheticDistribution):
    """What `mwem` returns: a synthetic distribution that knows how it came about.

    Parameters
    ----------
    weights
        As of `SyntheticDistribution`.
    domain : Domain, optional
        As of `SyntheticDistribution`.
    alpha : float or None
        Its answers to the workload are within alpha, with probability 1 - beta; None where nothing is guaranteed.
    chosen : list
        The query, or the attributes of the table, of every round.
    **more
        `guarantee` and `n`, as of `SyntheticDistribution`.

    Attributes
    ----------
    rounds : int
        How many rounds there were.
    """

    alpha: float | None
    chosen: list[Any]

    def __init__(self, weights: Any, domain: Domain | None, *, alpha: float | None, chosen: list[Any], **more: Any):
        super().__init__(weights, domain, **more)
        self.alpha, self.chosen = alpha, chosen

    @property
    def rounds(self) -> int:
        """How many rounds there were."""
        return len(self.chosen)

    def __repr__(self) -> str:
        alpha = "" if self.alpha is None else f", alpha={self.alpha:.4g}"
        return f"{super().__repr__()[:-1]}, {self.rounds} round{'s' * (self.rounds != 1)}{alpha})"


@boundary
def mwem(
    data: Any,
    domain: Domain,
    queries: Iterable[Any],
    *,
    epsilon: float,
    delta: float = 0.0,
    rounds: int | None = None,
    variant: Variant | None = None,
    beta: float = 0.05,
    records: int | None = None,
    outside: Outside = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> FittedDistribution:
    """Fit a synthetic distribution to a workload of queries.

    Parameters
    ----------
    data : array_like, DataFrame, Arrow table, Parquet files, Dask collection or mapping
        The records, with a column for each attribute of the domain.
    domain : Domain
        The values that records may have. Public: not read off the data.
    queries : iterable of Query
        Any queries, or `marginals(domain, k)`.
    epsilon : float > 0
        The epsilon of the fit.
    delta : float in [0, 1)
        The delta of the fit.
    rounds : int, optional
        By default as many as make the error bound least ("average"), or one for each query or table ("measured",
        where there cannot be more), 100 at most and no more than take about ten seconds: for marginals 2^26 / cells,
        64 of them on 2^20 cells and 8 on 2^23.
    variant : {"average", "measured"}, optional
        "average": a choice and an update in each round, answers from the average of all iterates; it has an error
        bound. "measured": each round also measures what it chose with noise, and all measurements are fitted again
        (Hardt, Ligett and McSherry); of marginals it chooses and measures whole tables. It has no error bound, and on
        real tables its error is a tenth of the other's and less; it needs all cells in memory, and under add-remove
        neighbours marginals, whose tables give the number of records. None: "measured" for marginals of a domain
        of at most 2^20 cells, otherwise "average".
    beta : float in (0, 1)
        The probability with which the accuracy may fail.
    records : int, optional
        Under add-remove neighbours, where the number of records is private: a public lower bound of it. `.alpha`
        holds if there are as many.
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
    FittedDistribution
        A `SyntheticDistribution` with `.alpha`, `.chosen` and `.rounds`.

    Raises
    ------
    ValueError
        For parameters, workloads and domains that do not fit.
    DomainError
        For records outside the domain. Both are raised before anything is charged.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP; epsilon-DP where "measured" takes Laplace noise, which is smaller for few rounds
    Proof        mwem.md, theorems 1 to 3
    Accuracy     "average": `.alpha` of the result, and of `bounds.mwem` beforehand. AccuracyWarning where plain
                 noise on the same answers would guarantee less error; `release_marginals` gives those, and fits them
    Cost         a round of "average" evaluates the workload: 5 ms for 1,000 conjunctions on 2^20 cells. "measured" fits
                 in every round: 56 rounds on 50,880 cells take a quarter of a second at epsilon = 0.1, one at 10
    Not covered  the choice of the workload, which must not depend on the records

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> domain = fastdp.Domain.binary(10)
    >>> people = np.random.default_rng(0).random((50_000, 10)) < 0.3
    >>> queries = [fastdp.Conjunction({"v1": 1, "v2": 1}), fastdp.Conjunction({"v3": 0})]
    >>> fitted = fastdp.mwem(people, domain, queries, epsilon=1.0, delta=1e-6, variant="measured")
    >>> abs(fitted.answer(queries[0]) - 0.09) < 0.1
    True
    """
    parameters.outside(outside)
    rows = rows_of(data)
    payers = charged_here(budget)
    plan = plan_of(
        rows.n, domain, queries, epsilon, delta, rounds, variant, beta, records, neighbors,
        may_be_pure=not prefers_gaussian(payers),
    )  # fmt: skip
    check_room(plan.weight_bytes, plan.weight_bytes, TrueAnswers.bytes(plan.n, domain, rows.gathers))
    plan.warn_if_plain_noise_is_better()
    listed = {"epsilon": plan.epsilon, "delta": plan.delta, "rounds": plan.rounds, "variant": plan.variant}
    with (
        ChargedKeys("mwem", plan.guarantee, listed, payers, rng) as keys,
        reporting(progress, "fitting") as report,
    ):
        plan.read(TrueAnswers(keys.reads(rows, RECORDS), domain, outside, n=plan.n))
        weights, chosen = plan.run(keys, report)
    return FittedDistribution(
        weights,
        domain,
        alpha=plan.alpha if plan.alpha < 1 else None,
        chosen=chosen,
        guarantee=keys.stating(plan.guarantee),
        n=plan.n if neighbors == "replace-one" else None,
    )


def plan_of(
    n: int, domain: Any, queries: Any, epsilon: Any, delta: Any, rounds: Any, variant: Any, beta: Any, records: Any,
    neighbors: Any, *, may_be_pure: bool = False,
) -> MwemPlan:  # fmt: skip
    """Checked parameters, and all that follows from them; `n` counts under replace-one neighbours only."""
    check_domain(domain)
    parameters.neighbors(neighbors)
    epsilon, delta, beta = parameters.epsilon(epsilon), parameters.delta_or_none(delta), parameters.beta(beta)
    if rounds is not None:
        rounds = integer("rounds", rounds, least=1, most=MAX_INT64)
    check_records(records, neighbors)
    if records is not None:
        records = large_integer("records", records, least=1, most=MAX_INT64)
    if isinstance(queries, Marginals) and queries.domain != domain:
        raise ValueError("queries: must be marginals of `domain`, whose attributes or sizes differ")
    if variant is None:
        variant = "measured" if isinstance(queries, Marginals) and domain.size <= _QUICK_CELLS else "average"
    one_of("variant", variant, VARIANTS)
    workload = Workload(as_sequence(queries), domain)
    if not len(workload):
        raise ValueError("queries: must be at least one")
    if not n and records is None:
        raise ValueError("data: n=0 records: must be at least one")
    most = n if records is None else records
    return _PLANS[variant](workload, most, neighbors, epsilon, delta, beta, rounds, may_be_pure=may_be_pure)
