"""A lower bound of how much privacy a function loses, from its outputs on two neighbours: audit.md, "Lower bounds"."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, TypeVar

import numpy as np

from ..privacy.guarantees import A_GUARANTEE, Guarantee
from ..support import parameters
from ..support.checks import flag, instance_of, integer, probability
from ..support.parameters import MOST_DRAWS
from ..support.progress import Progress, reporting
from ..support.shown import shown
from .bound_report import LowerBound
from .events import Event, Table, find_event
from .intervals import lower_limit, upper_limit
from .losses import normal_quantile, points_of, rhos_of
from .outputs import Outputs, sampled

D = TypeVar("D")

_FEWEST = 64  # outputs of which something can be learnt


def lower_bound(
    run: Callable[..., Any],
    data: D,
    neighbor: D,
    *,
    runs: int = 100_000,
    many: bool = False,
    claimed: Guarantee | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
    progress: Progress = None,
) -> LowerBound:
    """Bound from below how much privacy a function loses, by running it many times on two neighbouring inputs.

    An event that tells the two apart is sought on one half of the outputs, and its probabilities are bounded on the
    other: exactly, by binomial tails. The function may be of any library.

    Parameters
    ----------
    run : callable
        `run(data)` returns one output: a number, an array, a label, or any nesting of these. With `many`, `run(data,
        count)` returns an array of `count` independent outputs, one a row.
    data : object
        An input of `run`.
    neighbor : object
        A neighbour of it: the bound is for this pair.
    runs : int >= 64
        How many outputs on each input. With 1e5 a loss of epsilon = 1 shows to some 3 percent, with 1e7 to 0.3.
    many : bool
        Whether `run` gives many outputs at once.
    claimed : Guarantee, optional
        What is claimed of it, such as PureDP(1.0) or ZCDP(0.1): the verdict says whether that is refuted.
    delta : float in [0, 1)
        At which the epsilon is stated. A claim that has an epsilon at one delta only brings its own.
    confidence : float in (0, 1)
        With what probability, over all that is random here, the bounds are right.
    progress : bool or callable, optional
        True for a bar, or a callable (done, total, what).

    Returns
    -------
    LowerBound
        `.epsilon`, `.mu`, `.rho`, `.refuted`, `.event`, a verdict and a picture.

    Raises
    ------
    ValueError
        "runs=3: must be an integer >= 64".

    Notes
    -----
    Guarantee    none: all its outputs are of the same records
    Proof        audit.md, lemmas 3 and 4
    Accuracy     the bound falls short of the loss by about the width of the limits of a rare event
    Cost         2 runs of the function for each, and sorting of the outputs
    Not covered  other pairs, events that were not sought, losses at probabilities below about 10 / runs

    Examples
    --------
    >>> import fastdp
    >>> found = fastdp.audit.lower_bound(
    ...     lambda count: fastdp.laplace(count, sensitivity=1, epsilon=1.0), 41, 42, runs=2000,
    ...     claimed=fastdp.PureDP(1.0),
    ... )
    >>> found.refuted, bool(0.3 < found.epsilon < 1.01)
    (False, True)
    """
    if not callable(run):
        raise ValueError(f"run={shown(run)}: must be a function of the records")
    runs = integer("runs", runs, least=_FEWEST, most=MOST_DRAWS)
    many, delta = flag("many", many), parameters.delta_or_none(delta)
    confidence = probability("confidence", confidence)
    if claimed is not None:
        instance_of(Guarantee, "claimed", claimed, A_GUARANTEE)
        delta = delta or _delta_of(claimed)
    with reporting(progress, "auditing") as report:
        outputs = sampled(run, (data, neighbor), runs, many, report)
    learning, choosing, testing = _split(outputs)
    event = find_event(learning, choosing, _worth_for(claimed, delta))
    return _tested(event, testing, runs, confidence, delta, claimed)


def _delta_of(claimed: Guarantee) -> float:
    """The delta that a claim brings, where it has no epsilon without."""
    forms = claimed.forms()
    if any(form.leak == 0 and form.pure < inf for form in forms):
        return 0.0
    return min((form.leak for form in forms if form.leak > 0 and form.pure < inf), default=0.0)


def _worth_for(claimed: Guarantee | None, delta: float) -> Callable[[Table, Table], Table]:
    """What the limits of events' probabilities show, in the terms of the claim: a rho, a mu, or an epsilon."""
    forms = () if claimed is None else claimed.forms()
    is_curve = bool(forms) and all(form.pure == inf for form in forms)
    by_mu = is_curve and any(form.mu < inf for form in forms)

    def worth(p: Table, q: Table) -> Table:
        with np.errstate(all="ignore"):
            p, q = np.clip(p, 1e-12, 1 - 1e-12), np.clip(q, 1e-12, 1 - 1e-12)
            if by_mu:
                return normal_quantile(p) - normal_quantile(q)
            if is_curve:
                return rhos_of(p, q)
            return np.nan_to_num(np.log((p - delta) / q), nan=-1.0, neginf=-1.0)

    return worth


def _split(outputs: Outputs) -> tuple[Outputs, Outputs, Outputs]:
    """A quarter, a quarter, a half: outputs are independent, so their order tells nothing."""
    n = len(outputs.first)
    bounds = ((0, n // 4), (n // 4, n // 2), (n // 2, n))
    learning, choosing, testing = (Outputs(outputs.first[i:j], outputs.second[i:j], outputs.names) for i, j in bounds)
    return learning, choosing, testing


def _tested(
    event: Event | None, testing: Outputs, runs: int, confidence: float, delta: float, claimed: Guarantee | None
) -> LowerBound:
    points = () if claimed is None else tuple(points_of(claimed))
    if event is None:
        return LowerBound("none was found", (0, 0), 1, (0.0, 1.0), runs, confidence, delta, claimed, points)
    likely, rare = (testing.second, testing.first) if event.swapped else (testing.first, testing.second)
    k, m, n = int(event.holds(likely).sum()), int(event.holds(rare).sum()), len(testing.first)
    alpha = (1 - confidence) / 2
    limits = lower_limit(k, n, alpha), upper_limit(m, n, alpha)
    whose = "the neighbor" if event.swapped else "the data"
    return LowerBound(f"{event}, for {whose}", (k, m), n, limits, runs, confidence, delta, claimed, points)
