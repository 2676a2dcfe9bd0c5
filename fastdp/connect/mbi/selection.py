"""The exact choices of fastdp for the mechanisms of private-pgm."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.selection import exponential_mechanism, permute_and_flip
from .noise import Prng


class ExactSelection:
    """A base to put before a mechanism's class, which then chooses by fastdp's exact mechanisms.

        class AIM(fastdp.connect.mbi.ExactSelection, aim.AIM): ...

    Its `prng` must be a Prng, which has the neighbours and the budget. `generalized_exponential_mechanism`, where the
    class has it, calls `exponential_mechanism` and so is exact, too.

    Notes
    -----
    Guarantee    as fastdp.exponential_mechanism, for the scores as the floats that they are.
    Not covered  what `sensitivity` claims, the rounding of the floats that the scores were computed of included.
    """

    prng: Any

    def exponential_mechanism(
        self, qualities: Any, epsilon: float, sensitivity: float = 1.0, base_measure: Any = None
    ) -> Any:
        """One of the candidates, with probability proportional to base exp(epsilon quality / (2 sensitivity)).

        Parameters
        ----------
        qualities : mapping or array_like
            A mapping from candidates to scores, or an array of scores.
        epsilon : float > 0
            The epsilon of the choice.
        sensitivity : float > 0
            By how much one record changes a score.
        base_measure : mapping or array_like, optional
            The bases, as in private-pgm: for a mapping of scores a mapping to numbers > 0, for an array logarithms.

        Returns
        -------
        Any
            A key of the mapping, or a position in the array.
        """
        prng, keys, scores = self._scores(qualities)
        if base_measure is not None:
            logs = np.log([base_measure[key] for key in keys]) if isinstance(base_measure, Mapping) else base_measure
            scores = scores + np.asarray(logs, np.float64) * (2 * sensitivity / epsilon)
        options = {"rng": prng.rng, "budget": prng.budget, "neighbors": prng.neighbors}
        return keys[exponential_mechanism(scores, sensitivity=sensitivity, epsilon=epsilon, **options)]

    def permute_and_flip(self, qualities: Any, epsilon: float, sensitivity: float = 1.0) -> Any:
        """One of the candidates, by permute-and-flip.

        Parameters
        ----------
        qualities : mapping or array_like
            A mapping from candidates to scores, or an array of scores.
        epsilon : float > 0
            The epsilon of the choice.
        sensitivity : float > 0
            By how much one record changes a score.

        Returns
        -------
        Any
            A key of the mapping, or a position in the array.
        """
        prng, keys, scores = self._scores(qualities)
        options = {"rng": prng.rng, "budget": prng.budget, "neighbors": prng.neighbors}
        return keys[permute_and_flip(scores, sensitivity=sensitivity, epsilon=epsilon, **options)]

    def _scores(self, qualities: Any) -> tuple[Prng, Sequence[Any], NDArray[np.float64]]:
        if not isinstance(self.prng, Prng):
            raise ValueError(
                f"prng: type {type(self.prng).__name__}: must be a fastdp.connect.mbi.Prng; the mechanism may have "
                "passed on another than it was given"
            )
        keys: Sequence[Any] = list(qualities) if isinstance(qualities, Mapping) else range(np.size(qualities))
        values: Iterable[Any] = qualities.values() if isinstance(qualities, Mapping) else np.asarray(qualities)
        return self.prng, keys, np.array([float(value) for value in values], np.float64)
