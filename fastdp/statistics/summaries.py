"""All columns of a frame for one budget: statistics.md, theorems 7 and 8."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from ..mechanisms.many_quantiles import shares_in_order
from ..privacy.budget import Budget
from ..privacy.composition import compose
from ..privacy.guarantees import AllOf, ApproxDP, Guarantee, Neighbors, PureDP
from ..privacy.reservations import Payers, prefers_gaussian
from ..randomness.charged_keys import ChargedKeys, charged_here
from ..randomness.keys import Randomness
from ..records.column_names import called_column
from ..records.sources import rows_of
from ..support import parameters
from ..support.boundary import boundary
from ..support.columns import objects
from ..support.parameters import Missing
from ..support.progress import Progress, reporting
from ..support.shown import described, shown
from .clamped import floats_of_list
from .described_columns import LabelsToDescribe, NumbersToDescribe
from .description import Description
from .shares import prices_of


@boundary
def describe(
    data: Any,
    bounds: Mapping[Any, tuple[float, float]] | None = None,
    categories: Mapping[Any, Iterable[Any]] | None = None,
    *,
    qs: Sequence[float] = (0.25, 0.5, 0.75),
    epsilon: float,
    delta: float = 0.0,
    missing: Missing = "raise",
    progress: Progress = None,
    rng: Randomness | None = None,
    budget: Budget | None = None,
    neighbors: Neighbors = "replace-one",
) -> Description:
    """Release a summary of the columns of a frame for one budget: of numbers the count, mean, standard deviation and
    quantiles, of categories how often each occurs.

    Parameters
    ----------
    data : mapping, frame, two-dimensional array, Parquet file or Dask collection
        The records.
    bounds : mapping
        The columns of numbers, by name or position, and the bounds of each: (low, high). Numbers beyond them count as
        them. Public: must not be read off the values.
    categories : mapping
        The columns of categories, and the labels of each; None among them counts missing entries. Public as well.
    qs : sequence of float in (0, 1)
        The quantiles: shares of the numbers below them; none for an empty one.
    epsilon : float > 0
        The epsilon of the release: of everything together.
    delta : float in [0, 1)
        The delta of the release. Above 0, noise is Gaussian where that is less in all: for many columns.
    missing : {"raise", "skip"}
        What becomes of missing entries, NaN, objects that are no numbers, and labels that were not listed: a
        DomainError, or they are left out; how many numbers a column has is private then.
    progress : bool or callable, optional
        True draws a bar; a callable is called as `progress(done, total, what)`.
    rng : Randomness, optional
        Where the key of the release comes from; None for the operating system.
    budget : Budget, optional
        The budget to charge; None for the budgets whose blocks are open.
    neighbors : {"replace-one", "add-remove"}
        The relation between neighbouring collections of records.

    Returns
    -------
    Description
        Prints as a table; with `.to_frame()`, `.numbers`, `.categories`.

    Raises
    ------
    ValueError
        For parameters, columns and types, before anything is charged.
    DomainError
        On missing entries and other labels, unless they are skipped; nothing is charged.

    Notes
    -----
    Guarantee    epsilon-DP, or (epsilon, delta)-DP
    Proof        statistics.md, theorems 7 and 8
    Accuracy     the budget is shared out so that the sum of all errors is least, each as a share of the records; count,
                 mean and std of a column cost together about what the mean alone does
    Cost         three passes over a column of numbers, one of them with a sort; one over a column of categories

    Examples
    --------
    >>> import numpy as np
    >>> from fastdp import statistics
    >>> rng = np.random.default_rng(0)
    >>> people = {"age": rng.integers(18, 90, 10_000), "answer": rng.choice(["yes", "no"], 10_000)}
    >>> summary = statistics.describe(people, {"age": (0, 120)}, {"answer": ["yes", "no"]}, epsilon=1.0)
    >>> bool(abs(summary["age"].values["mean"] - 53.5) < 1), list(summary["age"].values)
    (True, ['count', 'mean', 'std', '25%', '50%', '75%'])
    >>> bool(abs(summary["answer"].counts - 5000).max() < 200)
    True
    """
    epsilon, delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
    columns = _columns(data, bounds, categories, shares_in_order(qs), missing, parameters.neighbors(neighbors))
    payers = charged_here(budget)
    guarantee = _priced(columns, epsilon, delta, neighbors, payers)
    row = {"epsilon": epsilon, **({"delta": delta} if delta else {}), "columns": len(columns)}
    with ChargedKeys("describe", guarantee, row, payers, rng) as keys, reporting(progress, "describing") as report:
        for done, column in enumerate(columns):
            report(done, len(columns), str(column.name))
            column.read()
        for column in columns:
            column.draw(keys)
        report(len(columns), len(columns), "")
        stated = {column.name: keys.stating(column.guarantee) for column in columns}
        guarantee = keys.stating(guarantee)
    numbers = {each.name: each.summary(stated[each.name]) for each in columns if isinstance(each, NumbersToDescribe)}
    counts = {each.name: each.counts(stated[each.name]) for each in columns if isinstance(each, LabelsToDescribe)}
    return Description(numbers, counts, guarantee)


def _columns(
    data: Any, bounds: Any, categories: Any, shares: Sequence[Fraction], missing: Any, neighbors: Neighbors
) -> list[NumbersToDescribe | LabelsToDescribe]:
    """The columns that are to be described, not read yet."""
    of_numbers, of_labels = (_mapping(name, each) for name, each in (("bounds", bounds), ("categories", categories)))
    if twice := [name for name in of_numbers if name in of_labels]:
        raise ValueError(f"categories: column {shown(twice[0])}: must have bounds or categories, not both")
    if not of_numbers and not of_labels:
        raise ValueError("bounds=None: must have at least one column, or categories one")
    if isinstance(data, Mapping):  # the type of a list's array would depend on its entries
        data = {
            name: floats_of_list(values) if name in of_numbers else _listed(values) for name, values in data.items()
        }
    rows = rows_of(data)
    found: list[NumbersToDescribe | LabelsToDescribe] = []
    for name, ends in of_numbers.items():
        with called_column(name):
            found.append(NumbersToDescribe(name, rows.select([name]), ends, shares, missing, neighbors))
    for name, labels in of_labels.items():
        found.append(LabelsToDescribe(name, rows.select([name]), labels, missing, neighbors))
    return found


def _mapping(name: str, given: Any) -> Mapping[Any, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(column, str | int) for column in given):
        raise ValueError(f"{name}: {described(given)}: must be a mapping from columns, by name or position")
    return given


def _listed(values: Any) -> Any:
    return objects(values) if isinstance(values, list | tuple) else values


def _priced(
    columns: Sequence[NumbersToDescribe | LabelsToDescribe], epsilon: float, delta: float, neighbors: Neighbors,
    payers: Payers,
) -> Guarantee:  # fmt: skip
    """Share out the budget among all releases, and state what they guarantee together."""
    errors = [each for column in columns for each in column.errors]
    prices = iter(prices_of(errors, epsilon, delta, concentrated=prefers_gaussian(payers)))
    for column in columns:
        column.set_prices([next(prices) for _ in column.errors])
    each = compose(*(column.guarantee for column in columns))
    whole: Guarantee = PureDP(epsilon, neighbors=neighbors)
    if any(price.rho is not None for column in columns for price in column.prices):
        whole = ApproxDP(epsilon, delta, neighbors=neighbors)
    known = [part for part in (each.parts if isinstance(each, AllOf) else (each,)) if not isinstance(part, PureDP)]
    return AllOf(whole, *known)
