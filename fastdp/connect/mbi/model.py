"""A synthetic distribution as a model of mbi."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from ...answering.synthetic_distribution import SyntheticDistribution
from ...randomness.keys import Randomness
from ...support.checks import integer, non_negative
from .domains import to_domain
from .library import need_mbi


class Model:
    """A synthetic distribution as mbi's `Model`: for whatever there takes a model, or a Projectable.

    It is computed from a release, so whatever is done with it costs no privacy. It has no `potentials`, so mbi cannot
    warm-start from it.

    Parameters
    ----------
    synthetic : fastdp.SyntheticDistribution
        What `mwem`, `release_marginals` or `PrivateMultiplicativeWeights.synthetic` returns.
    total : float >= 0, optional
        How many records it stands for; by default the public number, if there is one.
    rng : fastdp.Randomness, optional
        For tests: the randomness of the records that `synthetic_data` draws.

    Attributes
    ----------
    synthetic : fastdp.SyntheticDistribution
        The distribution.
    domain : mbi.Domain
        Its domain.
    """

    def __init__(
        self, synthetic: SyntheticDistribution, *, total: float | None = None, rng: Randomness | None = None
    ) -> None:
        if not isinstance(synthetic, SyntheticDistribution):
            raise ValueError(f"synthetic: type {type(synthetic).__name__}: must be a fastdp.SyntheticDistribution")
        if total is None and synthetic.n is None:
            raise ValueError("total=None: must be given: the distribution has no public number of records")
        self.synthetic = synthetic
        self.domain = to_domain(synthetic.domain)
        self._total = float(synthetic.n) if total is None else non_negative("total", total, toward=inf)  # type: ignore[arg-type]
        self._rng = rng

    @property
    def total(self) -> float:
        """How many records it stands for."""
        return self._total

    def project(self, attrs: str | Sequence[str]) -> Any:
        """The marginal table of some attributes.

        Parameters
        ----------
        attrs : str or sequence of str
            The attributes.

        Returns
        -------
        mbi.Factor
            The table, which adds up to `total`.
        """
        from jax import numpy as jnp

        names = (attrs,) if isinstance(attrs, str) else tuple(attrs)
        table = self.synthetic.marginal(names) if names else np.ones(())
        return need_mbi().Factor(self.domain.project(names), jnp.asarray(table * self._total))

    def supports(self, attrs: str | Sequence[str]) -> bool:
        """Whether there is a marginal table of these attributes.

        Parameters
        ----------
        attrs : str or sequence of str
            The attributes.

        Returns
        -------
        bool
            True if all of them are of the domain.
        """
        return bool(self.domain.supports(attrs))

    def synthetic_data(self, rows: int | None = None) -> Any:
        """Draw independent records.

        Parameters
        ----------
        rows : int, optional
            How many; by default `total`, rounded.

        Returns
        -------
        mbi.Dataset
            The records.
        """
        rows = round(self._total) if rows is None else integer("rows", rows, least=0)
        codes = self.synthetic.sample(rows, self._rng, codes=True)
        return need_mbi().Dataset(dict(zip(self.domain.attributes, codes.T, strict=True)), self.domain)

    def __repr__(self) -> str:
        return f"Model({self.synthetic!r}, total={self._total:.12g})"
