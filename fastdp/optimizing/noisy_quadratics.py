"""The minimum of a quadratic of which only noisy coefficients are known: how much of them to believe.

Everything here is post-processing of released moments and of the noise's public scale: it has no price. moments.md,
"What is believed of the moments", has the model; theorem 2 there bounds the excess however wrong the model is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .nonprivate import minimise_quadratic
from .sets import ConvexSet, Vector

# A coordinate of the minimiser, in the eigenbasis, is believed to have variance s or, as likely, a hundred times as
# much: few directions may carry most of it. At one variance alone, the census at epsilon = 0.1 comes out twice as bad.
_SPREADS = np.array([[1.0], [100.0]])
_SIZES = np.geomspace(1e-8, 10.0, 48)  # of s, in squared radii of the set
_ROUNDS = 8  # the noise depends on the size of the solution, and so on itself: it settles in three or four
# Where the set's points times the norm of records are at most so many label bounds, the set is the better regulariser:
# noise in the matrix then adds less than noise in the vector. And a solution that fills this part of the set's radius
# is held by the set.
_SMALL_SET, _HELD = 3.0, 0.7
_EIGEN = 0.7  # of the noise's spectral scale: below it an eigenvalue is hardly known
# A solution may be so much larger than the one that is predicted with, in squares; and not below this part of the set.
_WIDER, _SMALL = 3.0, 1e-4
_CLEAR = 2.0  # nats of evidence against "there is nothing to see"
_DOUBTED = 4.0  # a mean of x y is taken to be half as long as it can be
ALLOWED = 0.1  # of theorem 2's bound: by so much more than the least may the noisy quadratic be at the answer


def may_shrink(over: ConvexSet, norm: float, labels: float) -> bool:
    """Whether the set is so large that anything but the noisy minimum may be better."""
    return over.norm * norm > _SMALL_SET * labels


class MomentNoise(NamedTuple):
    """What is public about the noise.

    matrix   the deviation of a diagonal entry; off the diagonal it is sqrt(2) less
    vector   the deviation of an entry of the vector
    """

    matrix: float
    vector: float


@dataclass(frozen=True)
class NoisyQuadratic:
    """w^T gram w - 2 cross^T w + lam/2 ||w||^2 + l1 |w|_1 over a set, with noise in its coefficients.

    labels   labels are at most this in magnitude; points at most `norm` long
    """

    gram: NDArray[np.float64]
    cross: Vector
    lam: float
    over: ConvexSet
    noise: MomentNoise
    norm: float
    labels: float
    l1: float = 0.0

    @cached_property
    def eigen(self) -> tuple[Vector, NDArray[np.float64]]:
        """Eigenvalues of the noisy matrix, and its eigenvectors."""
        values, vectors = np.linalg.eigh(self.gram)
        return values, vectors

    @property
    def ridge(self) -> float:
        """What makes the matrix positive semidefinite."""
        return max(0.0, -float(self.eigen[0][0]))

    def _convex(self) -> tuple[NDArray[np.float64], tuple[Vector, NDArray[np.float64]]]:
        """The matrix with the ridge and the regulariser; its eigenvalues and eigenvectors."""
        added, (values, vectors) = self.ridge + self.lam / 2, self.eigen
        return self.gram + added * np.eye(len(self.cross)), (values + added, vectors)

    def minimise(self, allowed: float) -> tuple[Vector, float]:
        """(a point of the set, the ridge): as believed, or the plain minimum of the noisy quadratic.

        The noisy quadratic, ridge included, is at most `allowed` higher there than at its minimum.
        """
        ridge, (convex, eigen) = self.ridge, self._convex()
        plain = minimise_quadratic(convex, self.cross, self.over, self.l1, eigen)
        if self.l1:  # which shrinks by itself
            return plain, ridge
        believed = self._believed()
        if believed is None or not allowed > 0:
            return plain, ridge
        return self._within(allowed, believed, plain, convex), ridge

    def corrected(self, at: Vector, gradient: Vector, deviations: Vector, allowed: float) -> Vector:
        """A point of the set near `at`, where b - A w is known better: it is `gradient`, but for noise.

        Along the eigenvectors of the noisy matrix: `gradient`, and the deviation of its noise in each. What is
        believed is as in `minimise`; so is `allowed`.
        """
        values, vectors = self.eigen
        curvatures = self._positive(values)
        evidence, kept = self._posterior(curvatures, gradient, self.over.diameter, deviations**2)
        weights = np.exp(evidence - evidence.max())
        cross = curvatures * (vectors.T @ at) + (weights / weights.sum()) @ kept
        w = vectors @ (cross / (curvatures + self.lam / 2))
        if not self.over.contains(w):
            positive = curvatures + self.lam / 2
            matrix = vectors @ (positive[:, None] * vectors.T)
            w = minimise_quadratic(matrix, vectors @ cross, self.over, eigen=(positive, vectors))
        convex, eigen = self._convex()
        return self._within(allowed, w, minimise_quadratic(convex, self.cross, self.over, eigen=eigen), convex)

    def predicted(self, at: Vector, deviations: Vector) -> float:
        """About what noise of b of these deviations, along the eigenvectors, adds to the excess of a solution `at`."""
        curvatures, d = self._positive(self.eigen[0]), len(at)
        size = _WIDER * max(float(at @ at), _SMALL * self.over.norm**2) / d
        return float(np.minimum(deviations**2 / curvatures, curvatures * size).sum())

    def vector_deviation(self, at: Vector) -> float:
        """Of an entry of b - A w at a solution: the rows of the matrix's noise times it add to that of the vector."""
        return sqrt(self.noise.vector**2 + self.noise.matrix**2 * float(at @ at) * (1 + 1 / len(at)) / 2)

    def _within(self, allowed: float, believed: Vector, plain: Vector, convex: NDArray[np.float64]) -> Vector:
        """`believed`, or the point on the way there from the minimum where the noisy quadratic is so much higher."""
        off = believed - plain
        # the quadratic along the segment between the two: it rises by t rise + t^2 curve
        rise = max(2 * float(off @ (convex @ plain - self.cross)), 0.0)
        curve = max(float(off @ convex @ off), 0.0)
        if rise + curve <= allowed:
            return believed
        return np.asarray(plain + 2 * allowed / (rise + sqrt(rise * rise + 4 * curve * allowed)) * off)

    def _positive(self, values: Vector) -> Vector:
        """Eigenvalues, cut to be positive, softly, at the spectral scale of the noise."""
        return np.asarray((values + np.sqrt(values**2 + (_EIGEN * self.noise.matrix) ** 2 * len(values))) / 2)

    def _believed(self) -> Vector | None:
        """The minimum for what is believed of the vector, given the noisy matrix; None where the set decides."""
        size, noise = self.over.norm, self.noise
        if not (noise.matrix > 0 and noise.vector > 0) or not may_shrink(self.over, self.norm, self.labels):
            return None
        values, vectors = self.eigen
        cross, d = vectors.T @ self.cross, len(values)
        curvatures = self._positive(values)
        evidence, kept = self._posterior(curvatures, cross, size, np.full(d, noise.vector**2))
        if values[-1] < noise.matrix * sqrt(2 * d) and evidence.max() - evidence[0] < _CLEAR:
            # nothing is seen: the step along the vector that is right for any matrix, and less of it the noisier it is
            believed = self.labels**2 / (self.labels**2 + _DOUBTED * noise.vector**2)
            return self.over.project(believed * self.cross / (self.norm**2 + self.lam / 2))
        weights = np.exp(evidence - evidence.max())
        w = (weights / weights.sum()) @ kept / (curvatures + self.lam / 2)
        if not np.linalg.norm(w) <= _HELD * size:
            return None
        w = vectors @ w
        return w if self.over.contains(w) else None

    def _posterior(
        self, curvatures: Vector, cross: Vector, size: float, variances: Vector
    ) -> tuple[Vector, NDArray[np.float64]]:
        """For every size of s: the log likelihood of the vector, and its posterior mean; `variances` of its noise."""
        noise, d = self.noise, len(cross)
        prior = np.append(0.0, _SIZES * size**2)[:, None, None] * curvatures**2 * _SPREADS  # [sizes, spreads, d]
        variance = variances
        for _ in range(_ROUNDS):
            total = prior + variance
            logs = -0.5 * (np.log(total) + cross**2 / total)
            top = logs.max(axis=1, keepdims=True)
            parts = np.exp(logs - top)
            means = (parts * prior / total).sum(axis=1) / parts.sum(axis=1) * cross
            squares = np.minimum(((means / (curvatures + self.lam / 2)) ** 2).sum(axis=1), size**2)
            # the rows of the matrix's noise times the solution add to that of the vector
            variance = variances + (noise.matrix**2 * squares * (1 + 1 / d) / 2)[:, None, None]
        evidence = (top[:, 0] + np.log(parts.mean(axis=1))).sum(axis=1)
        return evidence, means
