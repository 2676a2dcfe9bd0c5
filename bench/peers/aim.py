"""AIM (McKenna et al. 2022) on mbi's estimators, which come without a mechanism: tables chosen and measured one by one.

Gaussian accounting: all steps together are mu-Gaussian DP for the mu that epsilon and delta allow, under add-remove
neighbours. Choices are those of numpy's Gumbel noise, and the noise is numpy's: for comparing accuracy, not for
records of people.
"""

from __future__ import annotations

from itertools import combinations
from math import exp, pi, prod, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np

CHOICES = 0.1  # of the budget
MEAN = sqrt(2 / pi)
MOST_MEGABYTES = 80.0  # of a model
STEPS, LAST_STEPS = 250, 2000  # of mirror descent after a round, and in the end
ROUNDS = 4  # a column, at most; 16 in the paper, where jax would compile for minutes


def most_mu(epsilon: float, delta: float) -> float:
    """The largest mu for which mu-Gaussian DP implies (epsilon, delta)-DP."""
    phi, low, high = NormalDist().cdf, 1e-6, 100.0
    for _ in range(100):
        mu = (low + high) / 2
        found = phi(mu / 2 - epsilon / mu) - exp(epsilon) * phi(-mu / 2 - epsilon / mu)
        low, high = (mu, high) if found <= delta else (low, mu)
    return low


class Aim:
    """One run. Squares of mu add up: 1 / sigma^2 of a table, and pi / 8 epsilon^2 of a choice of bounded range."""

    def __init__(self, mbi: Any, codes: Any, sizes: list[int], seed: int) -> None:
        self.mbi, self.rng, self.sizes = mbi, np.random.default_rng(seed), sizes
        self.names = [f"a{p}" for p in range(len(sizes))]
        self.domain = mbi.Domain(self.names, sizes)
        self.columns = [np.asarray(codes[:, p], np.int64) for p in range(len(sizes))]
        self.tables: dict[tuple[int, ...], Any] = {}
        self.measured: list[Any] = []
        self.model: Any = None
        self.made: list[Any] = []

    def counts(self, columns: tuple[int, ...]) -> Any:
        if columns not in self.tables:
            self.tables[columns] = self.count(self.columns, columns)
        return self.tables[columns]

    def fitted(self, columns: tuple[int, ...]) -> Any:
        """Counted in as many synthetic records: to ask the model for all pairs takes half a minute a round."""
        return self.count(self.made, columns)

    def count(self, records: list[Any], columns: tuple[int, ...]) -> Any:
        shape = [self.sizes[p] for p in columns]
        cells = np.ravel_multi_index([records[p] for p in columns], shape)
        return np.bincount(cells, minlength=prod(shape)).astype(float)

    def named(self, columns: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(self.names[p] for p in columns)

    def measure(self, columns: tuple[int, ...], sigma: float) -> None:
        noisy = self.counts(columns) + self.rng.normal(0, sigma, self.counts(columns).size)
        self.measured.append(self.mbi.LinearMeasurement(noisy, self.named(columns), stddev=sigma))

    def fit(self, steps: int) -> None:
        self.model = self.mbi.estimation.MirrorDescent().estimate(
            self.domain, self.measured, iters=steps, warm_start=self.model
        )
        made = self.model.synthetic_data().to_dict()
        self.made = [np.asarray(made[name], np.int64) for name in self.names]

    def fits(self, columns: tuple[int, ...], part: float) -> bool:
        """Whether the junction tree stays within what this part of the budget allows."""
        cliques = [tuple(clique) for clique in self.model.cliques]
        if any(set(self.named(columns)) <= set(clique) for clique in cliques):
            return True
        cells = self.mbi.junction_tree.hypothetical_model_size(self.domain, [*cliques, self.named(columns)])
        return bool(cells <= MOST_MEGABYTES * part)

    def choose(self, candidates: dict[tuple[int, ...], float], sigma: float, epsilon: float, part: float) -> Any:
        offered = [columns for columns in candidates if self.fits(columns, part)]
        scores = [
            candidates[each] * (np.abs(self.counts(each) - self.fitted(each)).sum()
                                - MEAN * sigma * self.counts(each).size) for each in offered
        ]  # fmt: skip
        scale = 2 * max(candidates.values()) / epsilon  # a score moves by its weight, either way
        return offered[int(np.argmax(np.array(scores) + self.rng.gumbel(0, scale, len(scores))))]

    def run(self, mu: float) -> Any:
        """The model; the workload is all pairs."""
        d = len(self.sizes)
        pairs = list(combinations(range(d), 2))
        candidates: dict[tuple[int, ...], float] = {(p,): float(d - 1) for p in range(d)}
        candidates |= dict.fromkeys(pairs, 2.0)
        each = mu**2 / (ROUNDS * d)
        spent = 0.0
        for p in range(d):
            self.measure((p,), sqrt(1 / ((1 - CHOICES) * each)))
            spent += (1 - CHOICES) * each
        self.fit(STEPS)
        while spent < mu**2 * (1 - 1e-9):
            if mu**2 - spent < 2 * each:
                each = mu**2 - spent
            sigma, epsilon = sqrt(1 / ((1 - CHOICES) * each)), sqrt(8 / pi * CHOICES * each)
            spent += each
            chosen = self.choose(candidates, sigma, epsilon, spent / mu**2)
            before = self.fitted(chosen)
            self.measure(chosen, sigma)
            self.fit(STEPS)
            if np.abs(self.fitted(chosen) - before).sum() <= MEAN * sigma * before.size:
                each *= 4  # nothing is left to be seen with as much noise
        self.fit(LAST_STEPS)
        return self.model
