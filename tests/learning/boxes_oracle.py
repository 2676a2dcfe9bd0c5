"""The laws of the methods of `learn_box` that choose each side, by going through all keys and all cuts."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np

from fastdp.learning.box_parameters import BoxProblem, EnoughTest
from fastdp.learning.boxes_peel import BoxPeelParameters
from fastdp.learning.privacy_parameters import PrivacyParameters
from fastdp.privacy import PureDP
from fastdp.randomness.noise_plans import laplace_plan
from tests import oracles

RELATIONS = ("replace-one", "add-remove")
EPSILONS = (0.0, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0)


def cuts_law(people, d, size, M, eta, key_bits, *, ends_when_empty=False):
    """The law of the cuts (left, right, left, ...) for these positives; keys are averaged over."""
    law, keys = defaultdict(float), list(itertools.product(range(1 << key_bits), repeat=len(people)))
    grid = range(size << key_bits)

    def go(rem, past, probability):
        if len(past) == 2 * d or (ends_when_empty and not rem):
            law[past] += probability / len(keys)
            return
        axis, left = len(past) // 2, len(past) % 2 == 0
        beyond = [[y for y in rem if (y[axis] < c if left else y[axis] > c)] for c in grid]
        weights = [math.exp(-eta * min(abs(len(some) - M / 2), M / 2)) for some in beyond]
        for c, some, weight in zip(grid, beyond, weights, strict=True):
            go([y for y in rem if y not in some], (*past, c), probability * weight / sum(weights))

    for u in keys:
        # a person's number makes places distinct, so that `y not in some` deletes nobody else
        places = [
            (*((x << key_bits) + own for x in who), j) for j, (who, own) in enumerate(zip(people, u, strict=True))
        ]
        go(places, (), 1.0)
    return law


def side_law(values, m, last, eta, *, greatest=False):
    """Of an interior point of the m least, or greatest, values."""
    some = sorted(values)[-m:] if greatest else sorted(values)[:m]
    scores = [min(sum(x <= z for x in some), sum(x >= z for x in some)) for z in range(last + 1)]
    return [
        float(p) for p in oracles.selection.exponential_law(oracles.selection.choice_weights(scores, Fraction(eta)))
    ]


def passes(positives, threshold, scale):
    """The probability that the test for positives says "enough"."""
    q, short = math.exp(-1 / scale), threshold - positives
    return q**short / (1 + q) if short >= 0 else 1 - q ** (1 - short) / (1 + q)


def boxes_law(method, people, d, size, plan, key_bits=0):
    """Of what is learned: a box of positions, or None."""
    enough = passes(len(people), plan.test.threshold, plan.test.noise.scale)
    law = defaultdict(float, {None: 1 - enough})
    if method == "peel":
        for cuts, p in cuts_law(people, d, size, plan.slice, plan.eta, key_bits).items():
            sides = tuple((cuts[2 * i] >> key_bits, cuts[2 * i + 1] >> key_bits) for i in range(d))
            law[sides if all(low <= high for low, high in sides) else None] += enough * p
        return law
    axes = []
    for i in range(d):
        values = [who[i] for who in people]
        low = side_law(values, plan.slice, size - 1, plan.eta)
        high = side_law(values, plan.slice, size - 1, plan.eta, greatest=True)
        axes.append([((a, b), low[a] * high[b]) for a in range(size) for b in range(size)])
    for sides in itertools.product(*axes):
        box = tuple(side for side, _ in sides)
        law[box if all(low <= high for low, high in box) else None] += enough * math.prod(p for _, p in sides)
    return law


def neighbours(everybody, most, relation):
    """Pairs of multisets of positives. A record that is replaced may have been a negative, or become one."""
    for m in range(most):
        for rest in itertools.combinations_with_replacement(everybody, m):
            near = [tuple(sorted((*rest, who))) for who in everybody]
            for more in near:
                yield rest, more
                yield more, rest
            if relation == "replace-one":
                yield from itertools.permutations(near, 2)


def delta_of(p, q, epsilon):
    return sum(max(0.0, mass - math.exp(epsilon) * q.get(what, 0.0)) for what, mass in p.items())


def plan_of(slice_, eta, threshold=0, scale=1.0, kind=BoxPeelParameters):
    test = EnoughTest(laplace_plan(scale), threshold)
    return kind(test, slice_, eta, "composition", PureDP(1.0), 1.0, 4)


def problem_of(n, bits, epsilon, delta, beta, neighbors):
    return BoxProblem(n, bits, PrivacyParameters(epsilon, delta, beta, neighbors))


def rectangle(n, d, bits, seed):
    """Records on a line of so many bits, and labels of a box that holds about half of them."""
    draw = np.random.default_rng(seed)
    X = draw.integers(0, 1 << bits, (n, d))
    side = 0.5 ** (1 / d)
    low, high = int((1 - side) / 2 * (1 << bits)), int((1 + side) / 2 * (1 << bits))
    return X, ((low <= X) & (high >= X)).all(axis=1)
