"""smartnoise-synth: a synthesizer of its kind over `mwem`, registered as "fastdp-mwem" when this file is imported.

Where smartnoise's own MWEM makes a cube with two cells more an axis than there are values (4^d numbers for d binary
columns: 32 GiB at 16 of them, 8 TiB at 20), this one holds one number a cell.

Public numbers are declared: the values of columns come from a `domain`, or from transformers that have them.
Transformers that would read them off the records are refused, unless `nonprivate_labels` allows it.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from ..answering.mwem import FittedDistribution, mwem
from ..answering.mwem_plan import VARIANTS, Variant
from ..answering.queries import marginals
from ..privacy.budget import Budget
from ..privacy.guarantees import ApproxDP, Guarantee, Neighbors, PureDP
from ..privacy.origin import with_origin
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Randomness
from ..records.domain import Domain, check_domain
from ..support import parameters
from ..support.boundary import boundary
from ..support.checks import integer, one_of, positive
from ..support.errors import DomainError, PrivacyWarning, levels_to_caller
from ..support.parameters import Outside
from ..support.rounding import down, lower, up, upper
from ..support.shown import shown
from .requirements import need

need("snsynth", extra="smartnoise", least="1.0.8", package="smartnoise-synth")

from snsynth import Synthesizer, TableTransformer  # noqa: E402
from snsynth import base as _base  # noqa: E402
from snsynth.transform import AnonymizationTransformer, BinTransformer, ChainTransformer, DropTransformer  # noqa: E402

NAME = "fastdp-mwem"


class MWEMSynthesizer(Synthesizer):  # type: ignore[misc]
    """`fastdp.mwem` on all marginal tables of a width, as a synthesizer of smartnoise-synth.

    Parameters
    ----------
    epsilon : float > 0
        The epsilon of `preprocessor_eps` and of the fit together.
    delta : float in [0, 1)
        The delta of the fit.
    domain : fastdp.Domain, optional
        The values of the columns, with labels for those that are not codes; columns that it does not name are left out.
        By default the transformers of `fit` give them.
    marginal_width : int >= 1
        The most columns of a table.
    rounds : int >= 1, optional
        As in `mwem`.
    variant : str, optional
        As in `mwem`.
    outside : {"raise", "clip"}
        What becomes of records outside the domain: a DomainError, or the value that `Domain` states.
    nonprivate_labels : bool
        True: which labels occur, and kinds of columns, may be read off the records, as smartnoise's own synthesizers
        do. That is not private, costs no epsilon, and gives a PrivacyWarning.
    neighbors : {"replace-one", "add-remove"}
        The relation of neighbours.
    records : int, optional
        As in `mwem`.
    budget : fastdp.Budget, optional
        What the fit is charged to; by default the budgets whose blocks are open.
    rng : fastdp.Randomness, optional
        Where keys come from; by default the operating system.

    Attributes
    ----------
    fitted : fastdp.SyntheticDistribution or None
        The distribution, after `fit`.
    guarantee : fastdp.privacy.Guarantee or None
        The guarantee of the whole fit; None if labels were read.

    Notes
    -----
    Guarantee    (epsilon, delta)-DP, unless labels were read.
    Proof        answering/mwem.md; what `preprocessor_eps` buys is smartnoise's, and charged as smartnoise states it,
                 for add-remove neighbours; twice that under replace-one.
    Not covered  the floating-point noise and the randomness of smartnoise's search for bounds.

    Examples
    --------
    >>> import fastdp, numpy as np
    >>> from snsynth import Synthesizer
    >>> from fastdp.connect import smartnoise
    >>> people = (np.random.default_rng(0).random((5000, 20)) < 0.3).astype(int)
    >>> synth = Synthesizer.create("fastdp-mwem", epsilon=1.0, domain=fastdp.Domain.binary(20), rounds=5)
    >>> synth.fit(people)
    >>> synth.sample(3).shape
    (3, 20)
    """

    def __init__(
        self,
        epsilon: float,
        *,
        delta: float = 0.0,
        domain: Domain | None = None,
        marginal_width: int = 2,
        rounds: int | None = None,
        variant: Variant | None = None,
        outside: Outside = "raise",
        nonprivate_labels: bool = False,
        neighbors: Neighbors = "replace-one",
        records: int | None = None,
        budget: Budget | None = None,
        rng: Randomness | None = None,
    ) -> None:
        self.epsilon, self.delta = parameters.epsilon(epsilon), parameters.delta_or_none(delta)
        if domain is not None:
            check_domain(domain)
        elif outside == "clip":
            raise ValueError("outside='clip': must be 'raise' without a domain: transformers clip, or they do not")
        if domain is not None and nonprivate_labels:
            raise ValueError("nonprivate_labels=True: must be False with a domain, which has the labels")
        self.domain = domain
        self.marginal_width = integer("marginal_width", marginal_width, least=1)
        self.rounds = rounds if rounds is None else integer("rounds", rounds, least=1)
        self.variant = None if variant is None else one_of("variant", variant, VARIANTS)
        self.outside = parameters.outside(outside)
        self.nonprivate_labels = nonprivate_labels
        self.neighbors, self.records = parameters.neighbors(neighbors), records
        self.budget, self.rng = budget, rng
        self.fitted: FittedDistribution | None = None
        self.guarantee: Guarantee | None = None

    @boundary
    def fit(
        self,
        data: Any,
        *ignore: Any,
        transformer: Any = None,
        categorical_columns: Sequence[Any] | None = None,
        ordinal_columns: Sequence[Any] | None = None,
        continuous_columns: Sequence[Any] | None = None,
        preprocessor_eps: float = 0.0,
        nullable: bool = False,
    ) -> None:
        """Fit to records.

        With a domain only the records are given. Without one the rest is as everywhere in smartnoise-synth.

        Parameters
        ----------
        data : DataFrame, array_like or list of tuple
            The records; with a domain whatever fastdp reads.
        *ignore : Any
            Must not be given.
        transformer : snsynth.TableTransformer or dict, optional
            Transformers that were fitted to public data, or that need no labels, such as BinTransformer with bounds.
        categorical_columns : sequence, optional
            The columns of labels.
        ordinal_columns : sequence, optional
            The columns of ordered labels.
        continuous_columns : sequence, optional
            The columns of numbers.
        preprocessor_eps : float >= 0
            For how much of `epsilon` bounds that are missing are searched.
        nullable : bool
            Whether entries may be missing.
        """
        if ignore:
            raise TypeError(f"fit() takes one positional argument, the data; {len(ignore)} more were given")
        columns = {
            "categorical_columns": categorical_columns, "ordinal_columns": ordinal_columns,
            "continuous_columns": continuous_columns,
        }  # fmt: skip
        self.fitted = self.guarantee = None
        if self.domain is not None:
            hints = {**columns, "transformer": transformer, "preprocessor_eps": preprocessor_eps, "nullable": nullable}
            for name, value in hints.items():
                if value is not None and value is not False and value != 0.0 and not _is_empty(value):
                    raise ValueError(f"{name}: must not be given with a domain, which has the values of the columns")
            self._kind = type(data)
            self.fitted = self._mwem(data, self.domain, self.epsilon, self.outside)
            self.guarantee = self.fitted.guarantee
            return
        table, labels_read = self._table(data, transformer, columns, nullable)
        searched = self._fit_table(table, _records(data), preprocessor_eps)
        sizes = [size for each in table.transformers for size in _sizes(each)]
        rows = _guarded(table.transform, data)
        codes = _guarded(np.array, rows, np.int64).reshape(len(rows), len(sizes))
        domain = Domain({f"column {j}": size for j, size in enumerate(sizes)})
        rest = down(lower(self.epsilon) - upper(searched)) if searched else self.epsilon
        self._transformer = table
        self.fitted = self._mwem(codes, domain, rest, "raise")
        if searched:
            total = ApproxDP(self.epsilon, self.delta) if self.delta else PureDP(self.epsilon)
            self.guarantee = with_origin(replace(total, neighbors=self.neighbors), total.origin)
        else:
            self.guarantee = self.fitted.guarantee
        if labels_read:
            self.guarantee = None

    def sample(self, n_rows: int) -> Any:
        """Draw synthetic records.

        Parameters
        ----------
        n_rows : int
            How many.

        Returns
        -------
        DataFrame, numpy.ndarray or list of tuple
            The records, as `fit` was given them.
        """
        if self.fitted is None:
            raise ValueError("sample: must come after fit")
        n_rows = integer("n_rows", n_rows, least=0)
        if self.domain is None:
            rows = self.fitted.sample(n_rows, self.rng).tolist()
            return self._transformer.inverse_transform([tuple(row) for row in rows])
        if issubclass(self._kind, np.ndarray):
            return self.fitted.sample(n_rows, self.rng)
        if issubclass(self._kind, list):
            columns = self.fitted.sample(n_rows, self.rng, codes=True).T
            return list(zip(*(self.domain.decode_column(j, c).tolist() for j, c in enumerate(columns)), strict=True))
        return self.fitted.to_frame(n_rows, self.rng)

    # --- pieces

    def _mwem(self, data: Any, domain: Domain, epsilon: float, outside: Outside) -> FittedDistribution:
        if isinstance(data, list) and data and isinstance(data[0], tuple | list):
            data = np.array(data, object)
        return mwem(
            data, domain, marginals(domain, min(self.marginal_width, len(domain))), epsilon=epsilon, delta=self.delta,
            rounds=self.rounds, variant=self.variant, records=self.records, outside=outside, rng=self.rng,
            budget=self.budget, neighbors=self.neighbors,
        )  # fmt: skip

    def _table(self, data: Any, transformer: Any, columns: dict[str, Any], nullable: bool) -> tuple[Any, bool]:
        """The transformers of all columns, and whether they learn more of the records than is paid for."""
        guessed = False
        if isinstance(transformer, TableTransformer):
            for name, value in columns.items():
                if value:
                    raise ValueError(f"{name}: must not be given with a TableTransformer, which has the columns")
            table = transformer
        elif transformer is None or isinstance(transformer, dict):
            guessed = not any(columns.values()) and not _names(data) <= set(transformer or ())
            if guessed:
                self._check_allowed("the kinds of columns")
            hints = {name: list(value or ()) for name, value in columns.items()}
            table = TableTransformer.create(data, style="cube", nullable=nullable, constraints=transformer, **hints)
        else:
            raise ValueError(
                f"transformer: type {type(transformer).__name__}: must be a TableTransformer, a dictionary or None"
            )
        if not table.transformers:
            raise ValueError("transformer: has no columns: must be None with a domain, or have those of the data")
        labels = any(not each.fit_complete and not _learns_bounds_only(each) for each in table.transformers)
        if labels:
            self._check_allowed("the labels that occur")
        if guessed or labels:
            warnings.warn(
                "what occurs in the records, such as labels, is read off them and published at no charge: not private",
                PrivacyWarning,
                stacklevel=levels_to_caller(),
            )
        return table, guessed or labels

    def _check_allowed(self, what: str) -> None:
        if not self.nonprivate_labels:
            raise ValueError(
                f"columns: {what} would be read off the records, which is not private: declare them with "
                "domain=fastdp.Domain(...), or a transformer that was fitted to public data; nonprivate_labels=True "
                "allows it all the same"
            )

    def _fit_table(self, table: Any, rows: Sequence[Any], preprocessor_eps: float) -> float:
        """Fit the transformers that have not been, charged for; what of epsilon it took.

        TableTransformer.fit would fit all of them again, on these records.
        """
        unfitted = [(j, each) for j, each in enumerate(table.transformers) if not each.fit_complete]
        searching = [(j, each) for j, each in unfitted if each.needs_epsilon]
        if not searching and preprocessor_eps:
            raise ValueError(
                f"preprocessor_eps={shown(preprocessor_eps)}: must be 0: no transformer searches for bounds"
            )
        if searching and not preprocessor_eps:
            raise ValueError(
                "preprocessor_eps=0.0: must be > 0: transformers without bounds search for them; give bounds, or this"
            )
        for j, each in unfitted:
            if not each.needs_epsilon:
                _guarded(each.fit, rows, j)
        price = 0.0
        if searching:
            price = self._price(preprocessor_eps)
            for j, each in enumerate(table.transformers):  # what may fail does so before anything is spent
                if each.fit_complete and not isinstance(each, DropTransformer | AnonymizationTransformer):
                    _guarded(each.transform, rows, j)
            for j, each in searching:
                _check_numbers([row[j] for row in rows], nullable=each.nullable)
            guarantee = PureDP(price, neighbors=self.neighbors)
            public = {"preprocessor_eps": preprocessor_eps, "columns": len(searching)}
            with ChargedKeys("smartnoise bounds", guarantee, public, self.budget, None) as keys:
                keys.commit()  # smartnoise draws from here on
                for j, each in searching:
                    each.allocate_privacy_budget(preprocessor_eps / len(searching), table.odometer)
                    _guarded(each.fit, rows, j)
        table._fit_finish()
        return price

    def _price(self, preprocessor_eps: float) -> float:
        """What a search costs: it counts each record once, with noise for that; replacing one changes two counts."""
        asked = positive("preprocessor_eps", preprocessor_eps, toward=inf)
        price = asked if self.neighbors == "add-remove" else up(2 * upper(asked))
        if price >= self.epsilon:
            raise ValueError(
                f"preprocessor_eps={preprocessor_eps!r}: costs {price!r} for {self.neighbors} neighbours: must leave "
                f"some of epsilon={self.epsilon!r}"
            )
        return price


def _is_empty(value: Any) -> bool:
    return isinstance(value, Sequence | dict) and not len(value)


def _names(data: Any) -> set[Any]:
    """Of the columns, or their numbers."""
    return set(data.columns) if hasattr(data, "columns") else set(range(len(data[0]) if len(data) else 0))


def _learns_bounds_only(transformer: Any) -> bool:
    """Whether all that fitting it takes from the records is bounds, which cost epsilon where they are not given."""
    return type(transformer) is BinTransformer


def _sizes(transformer: Any) -> list[int]:
    """How many values each column has that a transformer makes."""
    if isinstance(transformer, ChainTransformer):
        return _sizes(transformer.transformers[-1])  # its own cardinality lists those of all of its parts
    if not transformer.output_width:
        return []
    sizes = list(transformer.cardinality)
    if len(sizes) != transformer.output_width or any(size is None for size in sizes):
        raise ValueError(
            f"transformer: type {type(transformer).__name__}: must make labels or bins; for numbers "
            "BinTransformer(bins=..., lower=..., upper=...)"
        )
    return sizes


def _records(data: Any) -> Sequence[Any]:
    """A record an entry, as transformers take them."""
    return list(data.itertuples(index=False, name=None)) if hasattr(data, "itertuples") else data


def _check_numbers(column: list[Any], *, nullable: bool) -> None:
    """DomainError before a search for bounds that would fail on it."""
    numbers = _guarded(np.array, column, np.float64)
    if not nullable and np.isnan(numbers).any():
        raise DomainError("data: must not have missing entries: nullable=True, or drop them")


def _guarded(function: Any, *arguments: Any) -> Any:
    """What transformers do with records; their errors, which may show one, become one that does not."""
    try:
        return function(*arguments)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        kind = type(error).__name__
    raise DomainError(
        f"data: the transformers refuse it ({kind}): must hold values that they know, and enough of them to find bounds"
    )


def register() -> None:
    """Register this synthesizer with smartnoise-synth; importing this file has done so."""
    _base.synth_map[NAME] = {"class": f"{__name__}.{MWEMSynthesizer.__name__}"}


register()
