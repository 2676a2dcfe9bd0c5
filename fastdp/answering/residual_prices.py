"""What the residual of a noisy table costs: squared distances of neighbours in exact integers, and the worst pair.

The residual of a set S of attributes is what the table on S adds to those of its subsets. It is released as
H(2^b T + Z), H the differences along every axis: integers that forget whatever H maps to 0. So neighbours are no
farther apart than their tables are after the best integer vector of that kind is taken off. residual_planning.md,
theorem 1, has the lemma, theorem 2 the distances and theorem 3 the worst pair.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from math import comb, prod

import numpy as np
from numpy.typing import NDArray

Axes = tuple[int, ...]
Floats = NDArray[np.float64]

_LARGEST_GRID = 1 << 20  # pairs of records, up to symmetry, that are all looked at
_QUICK = 14  # attributes all of whose subsets are gone through in no time
_UP = 1 + 2.0**-40  # more than all roundings of a sum of positive floats


@lru_cache(4096)
def _entries(shape: Axes, bits: int) -> tuple[int, ...]:
    """2^b times the tensor product of (e - 1/s), each term of the expanded product rounded: by the axes that agree.

    Entry W, a mask, is that of the cells which agree with the record's cell along the axes of W, and along no others.
    """
    k, full = len(shape), (1 << len(shape)) - 1
    terms = [
        round(Fraction((-1) ** (k - U.bit_count()) << bits, prod(s for i, s in enumerate(shape) if not U >> i & 1)))
        for U in range(full + 1)
    ]
    for i in range(k):  # sums over subsets
        for W in range(full + 1):
            if W >> i & 1:
                terms[W] += terms[W ^ (1 << i)]
    return tuple(terms)


@lru_cache(65536)
def distance_square(shape: Axes, bits: int, differ: int | None = None) -> int:
    """At most so far apart are the residuals of neighbours, in grid units squared: theorem 2.

    shape    of the table, all sizes at least 2
    differ   None for a record more or less; else the mask of the axes along which a replaced record differs
    """
    entries = list(_entries(shape, bits))
    own = _product(entries, entries, shape, 0)
    return own if differ is None else 2 * own - 2 * _product(entries, entries, shape, differ)


def _product(one: Sequence[int], other: Sequence[int], shape: Axes, differ: int) -> int:
    """The inner product of the vectors of two records: axis by axis, how many cells agree with which of them."""
    moved = list(other)
    for i, size in enumerate(shape):
        bit = 1 << i
        for W in range(len(moved)):
            if W & bit:
                continue
            neither, agrees = moved[W], moved[W | bit]
            if differ & bit:
                moved[W], moved[W | bit] = (size - 2) * neither + agrees, neither
            else:
                moved[W], moved[W | bit] = (size - 1) * neither, agrees
    return sum(a * b for a, b in zip(one, moved, strict=True))


class WorstPair(ABC):
    """The largest sum, over all pairs of neighbours, of squared distances times given numbers.

    Both `bound`, which is never too small, and `prices`, the squared distances of such a pair, on which only the choice
    of the noise depends.
    """

    quick = True  # whether `prices` takes little time
    fixed = False  # whether the pair is the same for all numbers

    @abstractmethod
    def bound(self, numbers: Floats) -> float:
        """At least the largest sum over the sets of number times squared distance; numbers are not negative."""

    @abstractmethod
    def prices(self, numbers: Floats) -> Floats:
        """The squared distances of a pair for which the sum is the largest, set by set."""


def worst_pair(sets: Sequence[Axes], sizes: Axes, bits: int, *, known: bool) -> WorstPair:
    """Over records more or less, or over replaced ones where the number of records is known.

    sets     of attributes, all of sizes at least 2, whose residuals are released
    sizes    of all attributes
    """
    shapes = [tuple(sizes[p] for p in S) for S in sets]
    if not known:
        return _OfEach(np.array([float(distance_square(shape, bits)) for shape in shapes]))
    used = sorted({p for S in sets for p in S})
    classes = sorted({sizes[p] for p in used})
    counts = [sum(sizes[p] == size for p in used) for size in classes]
    kinds: dict[Axes, list[int]] = {}
    for i, shape in enumerate(shapes):
        kinds.setdefault(tuple(shape.count(size) for size in classes), []).append(i)
    pairs = 1 << len(used)
    by_pairs = _OfPairs(sets, shapes, used, bits) if pairs <= _LARGEST_GRID else _OfEach(_largest(shapes, bits))
    whole = all(len(which) == prod(map(comb, counts, kind)) for kind, which in kinds.items())
    if whole and prod(count + 1 for count in counts) < min(pairs, _LARGEST_GRID):
        return _OfClasses(kinds, classes, counts, bits, by_pairs)
    return by_pairs


def _largest(shapes: Sequence[Axes], bits: int) -> Floats:
    return np.array([float(max(distance_square(shape, bits, D) for D in range(1 << len(shape)))) for shape in shapes])


class _OfEach(WorstPair):
    """Every set at its largest distance: what records more or less do, and more than any replaced one."""

    fixed = True

    def __init__(self, distances: Floats) -> None:
        self.distances = distances

    def bound(self, numbers: Floats) -> float:
        return float((self.distances * numbers).sum()) * _UP

    def prices(self, numbers: Floats) -> Floats:
        return self.distances


class _OfPairs(WorstPair):
    """All sets of attributes in which two records may differ, one by one.

    The distance of a set is a function of those of its attributes that differ, and so a sum over their subsets: one
    array of sums for all sets together, which is then summed over subsets.
    """

    def __init__(self, sets: Sequence[Axes], shapes: Sequence[Axes], used: Sequence[int], bits: int) -> None:
        self._shapes, self._bits, self._room = shapes, bits, 1 << len(used)
        self.quick = len(used) <= _QUICK
        place = {p: i for i, p in enumerate(used)}
        self._places = [[place[p] for p in S] for S in sets]
        of, at, values = [], [], []
        for number, (places, shape) in enumerate(zip(self._places, shapes, strict=True)):
            for mask, value in enumerate(_differences(shape, bits)):
                of.append(number)
                at.append(sum(1 << p for i, p in enumerate(places) if mask >> i & 1))
                values.append(value)
        self._of, self._at, self._values = np.array(of), np.array(at), np.array(values)

    def bound(self, numbers: Floats) -> float:
        terms = numbers[self._of] * self._values
        lost = float(np.abs(terms).sum()) * (len(self._shapes) + 40) * 2.0**-52  # in roundings, at most
        return (float(self._sums(terms).max()) + lost) * _UP

    def prices(self, numbers: Floats) -> Floats:
        D = int(self._sums(numbers[self._of] * self._values).argmax())
        met = (sum(1 << i for i, p in enumerate(places) if D >> p & 1) for places in self._places)
        return np.array([
            float(distance_square(shape, self._bits, mask)) for shape, mask in zip(self._shapes, met, strict=True)
        ])  # fmt: skip

    def _sums(self, terms: Floats) -> Floats:
        sums: Floats = np.asarray(np.bincount(self._at, terms, self._room), np.float64)
        for i in range(self._room.bit_length() - 1):
            halves = sums.reshape(-1, 2, 1 << i)
            halves[:, 1] += halves[:, 0]
        return sums


class _OfClasses(WorstPair):
    """All sets of so many attributes of each size: it only matters how many of each size differ."""

    def __init__(
        self, kinds: Mapping[Axes, list[int]], classes: Sequence[int], counts: Sequence[int], bits: int,
        otherwise: WorstPair,
    ) -> None:  # fmt: skip
        self._kinds, self._otherwise = list(kinds.values()), otherwise
        self._sums = []  # of the squared distances of all sets of a kind, by how many attributes of each size differ
        for kind in kinds:
            shape = tuple(size for size, k in zip(classes, kind, strict=True) for _ in range(k))
            starts = np.cumsum([0, *kind]).tolist()
            total = np.zeros([count + 1 for count in counts])
            for met in product(*(range(k + 1) for k in kind)):
                mask = sum(((1 << j) - 1) << start for j, start in zip(met, starts, strict=False))
                ways = np.ones(())
                for count, k, j in zip(counts, kind, met, strict=True):
                    of_size = [float(comb(t, j) * comb(count - t, k - j)) for t in range(count + 1)]
                    ways = np.multiply.outer(ways, of_size)
                total += ways * float(distance_square(shape, bits, mask))
            self._sums.append(total)

    def bound(self, numbers: Floats) -> float:
        found = self._numbers(numbers)
        return self._otherwise.bound(numbers) if found is None else float(self._total(found).max()) * _UP

    def prices(self, numbers: Floats) -> Floats:
        found = self._numbers(numbers)
        if found is None:
            return self._otherwise.prices(numbers)
        worst = self._total(found).argmax()
        prices = np.empty(numbers.size)
        for which, sums in zip(self._kinds, self._sums, strict=True):
            prices[which] = sums.flat[worst] / len(which)
        return prices

    def _total(self, numbers: Sequence[float]) -> Floats:
        total: Floats = sum((number * sums for number, sums in zip(numbers, self._sums, strict=True)), np.zeros(()))
        return total

    def _numbers(self, numbers: Floats) -> list[float] | None:
        """One for each kind; None where they differ within a kind."""
        found = [numbers[which] for which in self._kinds]
        equal = all(some.max() <= some.min() * (1 + 1e-12) for some in found)
        return [float(some.max()) for some in found] if equal else None


@lru_cache(4096)
def _differences(shape: Axes, bits: int) -> tuple[float, ...]:
    """Of the squared distance as a function of the axes that differ: what its sums over subsets are."""
    values = [distance_square(shape, bits, D) for D in range(1 << len(shape))]
    for i in range(len(shape)):
        for D in range(len(values)):
            if D >> i & 1:
                values[D] -= values[D ^ (1 << i)]
    return tuple(map(float, values))
