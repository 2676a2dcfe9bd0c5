"""A point between the least and the greatest of n records, for (epsilon, delta): the number of bits counts by its log.

Records are paired at random; how many leading bits the pairs share decides a length z, by the exponential mechanism; a
prefix of z bits that many records have is then safe to publish, and one of three points below it lies among the
records. prefix_method.md has the proofs. Parameters and records are checked by whoever calls; nothing is charged here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from math import ceil, exp, expm1
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..privacy.guarantees import ApproxDP, Neighbors
from ..randomness import noise_draws, noise_plans
from ..randomness.charged_keys import ChargedKeys
from ..randomness.keys import Key
from ..records.number_column import NumberColumn
from ..records.rank_search import RankSearch, may_gather
from ..support import rounding
from ..support.errors import warn_of_accuracy
from ..support.rounding import down, lower, up
from ..support.search import least_integer
from ..support.shown import shown
from .quantiles import RankSelection
from .selection import draw_one

Points = NDArray[np.uint64] | Sequence[int]  # an array for up to 64 bits, Python's integers beyond

# Of epsilon: the length, the prefix, the point.
SHARES = Fraction(35, 100), Fraction(25, 100), Fraction(40, 100)
FAILURE = 0  # the point that is returned when no prefix is safe

_EVENTS = 5  # that may fail, each with probability beta / 5: prefix_method.md, theorem 2
_CERTAIN = 1 - 2.0**-30  # what floats must leave of a probability: their errors are far below


def check_prefix(delta: float, neighbors: Neighbors) -> None:
    """ValueError unless this is what the theorem is about."""
    if neighbors != "replace-one":
        raise ValueError(f"neighbors={shown(neighbors)}: must be 'replace-one' for method='prefix', whose n is public")
    if not delta:
        raise ValueError(f"delta={shown(delta)}: must be > 0 for method='prefix'")


@dataclass(frozen=True)
class PrefixPlan:
    """The parameters of a release, from public numbers alone; prefix_method.md has the meaning of every field.

    Guarantee    (epsilon, delta)-DP, replace-one neighbours, for any n
    Proof        prefix_method.md, theorem 1
    Accuracy     theorem 2: if `enough`, the point lies between the least and the greatest record with probability
                 1 - beta; `sufficient` is the least n from which on this holds
    Cost         a draw sorts n words and n prefixes and makes bits + 1 scores: 0.05 to 0.15 s for 10^6 records
    Not covered  the time of a draw
    Raises       ValueError where epsilon takes noise of a scale that is not between 2^-20 and 2^40

    Examples
    >>> import numpy as np
    >>> from fastdp.mechanisms.prefix_method import PrefixPlan
    >>> from fastdp.randomness.charged_keys import ChargedKeys
    >>> plan = PrefixPlan.of(1000, 64, epsilon=1.0, delta=1e-6, beta=1e-3)
    >>> plan.enough, plan.sufficient
    (True, 722)
    >>> points = np.arange(1000, dtype=np.uint64) << np.uint64(40)
    >>> with ChargedKeys("prefix", plan.guarantee, {}, None, None) as keys:
    ...     0 <= plan.draw(points, keys) <= int(points[-1])
    True
    """

    n: int
    bits: int
    epsilon: float
    delta: float
    beta: float
    epsilons: tuple[float, float, float] = field(repr=False)  # of the length, the prefix, the point
    tau: int  # a noisy count from which on a prefix is safe
    depth: int  # T': what the point should have on both of its sides
    heavy: int  # T: records of a prefix that is surely found
    joined: int  # K: pairs that a length keeps together, less those of chance
    parted: int  # K': pairs that a length separates
    spare: int  # pairs that the choice of the length costs
    noise_plan: noise_plans.LaplacePlan = field(repr=False)  # of the counts

    @classmethod
    def of(cls, n: int, bits: int, *, epsilon: float, delta: float, beta: float) -> PrefixPlan:
        """For n >= 0 records of `bits` >= 1 bits."""
        first, second, third = (down(lower(epsilon) * share) for share in SHARES)
        scale = noise_plans.scale_in_range(up(2 / Fraction(second)), "noise scale of the prefix counts")
        noise_plan = noise_plans.laplace_plan(scale)
        each = down(lower(beta) / _EVENTS)
        tau = 1 + _noise_bound(noise_plan.scale, down(lower(delta)))
        depth = ceil(_log_over(Fraction(2) / Fraction(each), third / 2))
        light = _Light(noise_plan.scale, depth, each)
        least = max(tau + _noise_bound(noise_plan.scale, each) - 1, depth)
        heavy, joined = _heavy_and_joined(n // 2, least, light, each)
        return cls(
            n=n,
            bits=bits,
            epsilon=epsilon,
            delta=delta,
            beta=beta,
            epsilons=(first, second, third),
            tau=tau,
            depth=depth,
            heavy=heavy,
            joined=joined,
            parted=2 * depth - 1,
            spare=max(1, 2 * ceil(_log_over(bits / Fraction(each), first / 2)) - 3),
            noise_plan=noise_plan,
        )

    @classmethod
    def of_column(cls, column: NumberColumn, selection: RankSelection, delta: float, beta: float) -> PrefixPlan:
        """For the values of a column; ValueError where the method does not apply."""
        check_prefix(delta, selection.neighbors)
        if not may_gather(column.rows):
            raise ValueError(f"method='prefix': must be 'exponential' for {column.n:,} values that are not in memory")
        return cls.of(column.n, column.bits, epsilon=selection.epsilon, delta=delta, beta=beta)

    @property
    def guarantee(self) -> ApproxDP:
        """The guarantee of a draw, for any records."""
        return ApproxDP(self.epsilon, self.delta)

    @property
    def row(self) -> dict[str, Any]:
        """Its row in a budget."""
        return {"epsilon": self.epsilon, "delta": self.delta, "beta": self.beta}

    @property
    def enough(self) -> bool:
        """Whether n records are enough for a point between them with probability 1 - beta."""
        return self.n // 2 >= self.joined + self.parted + self.spare

    @cached_property
    def sufficient(self) -> int:
        """The least n that is enough; so are all that are larger (prefix_method.md, lemma 4)."""

        def enough(pairs: int) -> bool:
            options = {"epsilon": self.epsilon, "delta": self.delta, "beta": self.beta}
            return PrefixPlan.of(2 * pairs, self.bits, **options).enough

        return 2 * least_integer(enough, low=1)

    def warn_if_few(self, column: NumberColumn) -> None:
        """Warn if the values are fewer than theorem 2 asks for."""
        if not self.enough:
            warn_of_accuracy(
                f"{column.n:,} values are fewer than method='prefix' takes to fail with probability {self.beta:g} at "
                "most"
            )

    def release(self, column: NumberColumn, keys: ChargedKeys) -> int | float:
        """Read the values, and draw a number of the line."""
        line, positions = column.read()
        assert not isinstance(positions, RankSearch)
        found = self.draw(positions if self.bits <= 64 else positions.tolist(), keys)
        return line.value(min(found, line.last))

    def draw(self, points: Points, keys: ChargedKeys) -> int:
        """A point for n records in 0 .. 2^bits - 1."""
        if len(points) != self.n:
            raise ValueError(f"points: {len(points)} of them: must be n={self.n}, which is public")
        records = np.asarray(points, np.uint64 if self.bits <= 64 else object)
        for_pairs, for_length, for_counts, for_point = (keys.take_ahead() for _ in range(4))
        keys.commit()
        z = draw_one(self.length_scores(records[permutation(self.n, for_pairs)]), for_length, self.epsilons[0] / 2)
        found = self._prefix(records, z, for_counts)
        if found is None:
            return FAILURE
        candidates = points_below(found, self.bits - z)
        depths = [min(np.count_nonzero(records <= c), np.count_nonzero(records >= c)) for c in candidates]
        return candidates[draw_one(np.array(depths, np.int64), for_point, self.epsilons[2] / 2)]

    def length_scores(self, permuted: NDArray[Any]) -> NDArray[np.int64]:
        """The score of every length 0 .. bits, for records of which neighbours make pairs; an odd one is left alone."""
        pairs = self.n // 2
        shared = common_bits(permuted[: 2 * pairs : 2], permuted[1 : 2 * pairs : 2], self.bits)
        exactly = np.bincount(shared, minlength=self.bits + 1)
        at_most = np.cumsum(exactly)
        at_least = pairs - at_most + exactly
        scores: NDArray[np.int64] = np.minimum(at_least - self.joined, at_most - self.parted)
        return scores

    def _prefix(self, records: NDArray[Any], z: int, key: Key) -> int | None:
        """The prefix of z bits with the largest noisy count, if that is at least tau."""
        beyond = self.bits - z
        cut = records >> (beyond if records.dtype == object else np.uint64(beyond)) if z else np.zeros_like(records)
        prefixes, counts = np.unique(cut, return_counts=True)
        if not counts.size:
            return None
        noisy = counts + noise_draws.integer_noise(self.noise_plan, key, counts.size)
        best = int(noisy.argmax())  # the first of several: the smallest prefix, whatever the order of the records
        return int(prefixes[best]) if noisy[best] >= self.tau else None


# --- bits and pairs


def permutation(n: int, key: Key) -> NDArray[np.intp]:
    """A uniform one: the order of n random words. Where two words are equal, all are drawn again."""
    from ..kernels.words import words_into

    words = np.empty(n, np.uint64)
    stream = 0
    while True:
        words_into(key, stream, 0, words)
        order = np.argsort(words)
        ranked = words[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order
        stream += 1


def common_bits(left: NDArray[Any], right: NDArray[Any], bits: int) -> NDArray[np.int64]:
    """How many leading bits of `bits` each pair shares."""
    differing = left ^ right
    if differing.dtype == object:
        return np.array([bits - x.bit_length() for x in differing], np.int64)
    high, low = differing >> np.uint64(32), differing & np.uint64(2**32 - 1)
    in_high, in_low = (np.frexp(half.astype(np.float64))[1] for half in (high, low))  # float64 holds 32 bits
    used: NDArray[np.int64] = np.where(high > 0, in_high + 32, in_low).astype(np.int64)
    return bits - used


def points_below(prefix: int, rest: int) -> list[int]:
    """The prefix followed by `rest` bits 000.., 011.. and 111..; each point once."""
    first = prefix << rest
    if rest == 0:
        return [first]
    return sorted({first, first + 2 ** (rest - 1) - 1, first + 2**rest - 1})


# --- constants: prefix_method.md, theorem 2


@rounding.sixty_digits
def _log_over(x: Fraction, rate: float) -> float:
    """ln(x) / rate, rounded up."""
    log = rounding.ln(rounding.divide(Decimal(x.numerator), Decimal(x.denominator)))
    return up(rounding.divide(log, Decimal(rate)))


@rounding.sixty_digits
def _noise_bound(scale: float, tail: float) -> int:
    """The least k >= 0 with q^k / (1 + q) <= tail, or one more: that is Pr[Z >= k] for noise of this scale."""
    q = rounding.exp(rounding.divide(Decimal(-1), Decimal(scale)))
    log = rounding.ln(rounding.multiply(rounding.add(Decimal(1), q), Decimal(tail)))
    return max(0, ceil(up(rounding.multiply(Decimal(-scale), log))))


@dataclass(frozen=True)
class _Light:
    """Prefixes of fewer than `depth` records, none of which may have a larger noisy count than one of `heavy`."""

    scale: float
    depth: int
    tail: float

    def stay_below(self, heavy: int, n: int) -> bool:
        """Whether they all do with probability 1 - tail, wherever the other records are: theorem 2, event 4."""
        worst, first = 0.0, 1
        while first < self.depth:
            last = min(max(first, 17 * first // 16), self.depth - 1)
            worst = max(worst, self._overtakes(heavy - last) / first)
            first = last + 1
        return (n - heavy) * worst <= self.tail * _CERTAIN

    def _overtakes(self, m: int) -> float:
        """Pr[Z - Z' >= m] for two draws of the noise, m >= 1: lemma 3, (7)."""
        q, rest = exp(-1 / self.scale), -expm1(-1 / self.scale)
        return exp(-m / self.scale) / (1 + q) ** 2 * (rest * m + (1 + q + 2 * q * q) / (1 + q))


def _heavy_and_joined(pairs: int, least: int, light: _Light, tail: float) -> tuple[int, int]:
    """The least T >= `least`, and K <= T - 2 for it: lemma 4 needs that."""

    def fits(heavy: int) -> bool:
        return light.stay_below(heavy, 2 * pairs + 1) and _joined(pairs, heavy, tail) <= heavy - 2

    heavy = least_integer(fits, low=least)
    return heavy, _joined(pairs, heavy, tail)


def _joined(pairs: int, heavy: int, tail: float) -> int:
    """The least K that the pairs within sets of fewer than `heavy` records reach with probability `tail` at most."""

    def rare(joined: int) -> bool:
        return joined > pairs or _moment(pairs, heavy, joined, tail) <= tail * _CERTAIN

    return least_integer(rare, low=1, largest=pairs + 1)


def _moment(pairs: int, heavy: int, joined: int, enough: float) -> float:
    """The bound of theorem 2, (5), for joined <= pairs; no further than down to `enough`."""
    product = 1.0
    for j in range(joined):
        factor = (pairs - j) / (2 * (pairs - j) - 1) * (heavy - 2) / (joined - j)
        if factor >= 1 or product <= enough / 2:
            break
        product *= factor
    return product
