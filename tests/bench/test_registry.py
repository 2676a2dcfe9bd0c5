"""The benchmark registry: every case does the work that it claims, every target is stated, the report hides nothing."""

from __future__ import annotations

import ast
import importlib
import json
import math
import os
import pkgutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import fastdp
from fastdp.bench.cases import learning, selection, series
from fastdp.bench.cases import noise as noise_room
from fastdp.bench.cases.registry import (
    ROOMS,
    SIMD_LEVELS,
    Case,
    PeerSide,
    Side,
    Target,
    cases,
    choose,
    faster,
    within,
    within_seconds,
)
from fastdp.bench.harness import judging, measure, runner
from fastdp.bench.reports import wording
from fastdp.capi.library import why_not
from fastdp.cli import main
from fastdp.support.machine import simd_level
from fastdp.support.machine import target as compiled_for
from tests import laws, oracles

CASES = [pytest.param(case, id=case.name) for case in cases()]
TINY, DRAWS = 100, 20_000


# --- the registry


def test_names_are_unique_and_rooms_are_known() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names)
    assert {case.room for case in cases()} == set(ROOMS)


@pytest.mark.parametrize("case", CASES)
def test_every_target_names_both_machines(case: Case) -> None:
    for target in case.targets:
        assert set(target.limits) == set(SIMD_LEVELS)
        assert all(limit > 0 for limit in target.limits.values())


def stated_in(room: str) -> set[tuple[str, str | None, float, float]]:
    """Work, rival, AVX-512, AVX2: every target of a room."""
    return {
        (case.name, target.rival, target.limits["avx512"], target.limits["avx2"])
        for case in choose((room,))
        for target in case.targets
    }


def test_the_targets_of_the_noise_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the noise room was asked for, row by row."""
    asked = {
        ("words", "numpy", 1.4, 0.75),
        ("laplace-float64-1", "numpy", 5.5, 3),
        ("laplace-float64-100", "numpy", 5.5, 3),
        ("laplace-small-call", "numpy", 4, 4),
        ("laplace-int64-extreme-values", "plain values", 1.05, 1.05),
        ("laplace-float64-extreme-values", "plain values", 1.05, 1.05),
    }
    for scale in ("1", "100", "2^20"):
        asked |= {(f"laplace-int64-{scale}-{place}", "numpy", 6, 3) for place in ("new", "in-place")}
        asked |= {(f"laplace-int64-{scale}-new", "OpenDP", 2000, 1000)}
    asked |= {(f"gaussian-int64-{sigma}", "numpy", 2, 1.05) for sigma in ("1", "4", "100", "1e+06")}
    asked |= {("laplace-two-threads", "one thread", 1.7, 1.7), ("import", "numpy", 1.2, 1.2)}
    asked |= {("first-number", None, 0.5, 0.5)}
    if why_not() is None:  # a C library can be built
        asked |= {("laplace-from-c-in-place", "Python", 1 / 0.9, 1 / 0.9)}
    assert stated_in("noise") == asked


def test_the_targets_of_the_accounting_room_are_all_there() -> None:
    stated = {(case.name, *((t.rival, *t.limits.values()) for t in case.targets)) for case in choose(("accounting",))}
    assert stated == {("above-threshold", ("numpy", 3, 3)), ("above-threshold-one-query",), ("compose-mixed",)}
    assert [side.peer for case in choose(("compose",)) for side in case.rivals] == ["dp_accounting"]


def test_the_targets_of_the_selection_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the selection room was asked for, row by row."""
    asked = {
        ("select-opendp", "OpenDP", 400, 400),
        ("select-float64-1e5", "diffprivlib", 400, 400),
        ("select-small-call", "numpy argmax", 1, 1),
        ("select-gumbel", "numpy argmax", 5, 2.3),
        ("permute-and-flip", "numpy argmax", 3.5, 1.7),
        ("top-k", "OpenDP", 1000, 500),
        ("top-k-epsilon-10", "OpenDP", 1000, 500),
    }
    for size in ("1e6", "1e7"):
        asked |= {(f"select-{kind}-{size}", "numpy argmax", 15, 12) for kind in ("float64", "int64")}
        asked |= {(f"select-{kind}-{size}", "numpy softmax", 7, 5) for kind in ("float64", "int64")}
    inputs = {"all equal": "all-equal", "one at +5": "one-at-5", "one at +20": "one-at-20", "one at +100": "one-at-100"}
    for name, case in inputs.items():  # each pair, in both directions
        asked |= {(f"select-time-{case}", other, 1.15, 1.15) for other in inputs if other != name}
    assert stated_in("selection") == asked
    assert {case.name for case in choose(("selection",)) if not case.targets} == {
        "select-many-draws",
        "select-lazily",
        "gumbel-max",
    }


def test_the_targets_of_the_answering_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the answering room was asked for, row by row."""
    asked = {
        ("mask-evaluate", "numpy", 4, 4),
        ("mask-evaluate", "numba sum", 1.25, 1.25),  # 0.8 of its speed
        ("mask-update", "numpy", 9, 9),
        ("conjunction-runs", "mask, two passes", 6, 6),
        ("conjunction-long-runs", "mask, two passes", 15, 15),
        ("conjunction-cells", "mask, two passes", 1.5, 1.5),
        ("marginals-binary", "numpy", 200, 200),
        ("mwem", "numpy", 20, 20),
        ("mask-two-threads", "one thread", 1.5, 1.5),
        ("end-to-end-16", None, 1.0, 1.0),
        ("end-to-end-23", None, 5.0, 5.0),
    }
    assert stated_in("answering") == asked
    assert {case.name for case in choose(("answering",)) if not case.targets} == {
        *("marginals-mixed", "spread-binary", "transform", "answer-slice", "answer-conjunctions", "sample"),
        *("mwem-small", "release-pairs", "marginal", "pmw-answer", "pmw-update"),
        *("pmw-answer-mask", "pmw-answer-values", "marginals-decimal", "spread-decimal", "spread-mixed"),
        *("conjunction-scattered", "answer-scattered", "values-update", "sample-searched"),
        *("conjunction-runs-cold", "conjunction-long-runs-cold"),
    }


def test_the_targets_of_the_optimizing_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the optimizing room was asked for, row by row."""
    asked = {
        ("descent-logistic-1e6x20-float32", "opacus", 14, 14),
        ("gradient-pass-squared", "numba sum", 1 / 0.6, 1 / 0.6),  # 0.6 of its speed
        ("gradient-pass-logistic", "numba sum", 2, 2),
        ("descent-squared-small", "numpy", 10, 4),
        ("descent-logistic-small", "numpy", 10, 4),
        ("descent-two-threads", "one thread", 1.7, 1.7),
    }
    for loss, of_numpy, of_jax in (("squared", 2.8, 1.5), ("logistic", 2.3, 1.3)):
        for size in ("1e6x20", "1e5x50"):
            asked |= {(f"descent-{loss}-{size}", "numpy", of_numpy, of_numpy)}
            asked |= {(f"descent-{loss}-{size}", "jax jit", 2, 2)}
            with_avx2 = of_jax if size == "1e6x20" else 1.1  # measured
            asked |= {(f"descent-{loss}-{size}-float32", "jax jit", of_jax, with_avx2)}
    assert stated_in("optimizing") == asked
    assert {case.name for case in choose(("optimizing",)) if not case.targets} == {
        *("project-ball", "project-box", "least-squares", "net", "descent-plain", "private-erm"),
        *("vector-sum-gaussian", "vector-sum-laplace", "vector-mean-gaussian", "exact-deviation", "exact-distance"),
    }


def test_the_targets_of_the_learning_room_are_all_there() -> None:
    """Work, rival, AVX-512, AVX2: what the learning room was asked for, row by row."""
    asked = {
        ("literals-packed", "numpy, packed", 6, 3.8),  # with AVX2: measured
        ("literals-100", "numpy", 8, 8),
        ("literals-103", "numpy", 8, 8),
        ("all-conjunctions", "numpy, packed", 10, 10),
        ("peel-10", "numpy", 0.5, 0.5),
        ("interior-point-int64", "np.sort", 1.5, 1.5),
        ("interior-point-float64", "np.sort", 1.5, 1.5),
        ("literals-two-threads", "one thread", 1.6, 1.6),
    }
    assert stated_in("learning") == asked
    without = {case.name: case for case in choose(("learning",)) if not case.targets}
    assert set(without) == {
        *("peel-1", "peel-3", "peel-30", "interior-point-candidates", "box-peel", "box-interior-point", "concepts"),
        *("conjunction-by-greedy", "conjunction-by-counts", "conjunction-by-elimination", "pack", "error", "quantile"),
        *("box-exponential", "interior-point-prefix"),
    }
    assert [side.peer for side in without["interior-point-candidates"].rivals] == ["opendp", "diffprivlib"]


def test_a_target_without_its_rival_or_with_one_machine_only_is_refused() -> None:
    with pytest.raises(ValueError, match="limits="):
        Target("faster", "numpy", {"avx512": 2.0})
    with pytest.raises(ValueError, match="rival=None"):
        Target("within", None, {"avx512": 2.0, "avx2": 2.0})
    with pytest.raises(ValueError, match="rival='OpenDP'"):
        _case(targets=(faster("OpenDP", avx512=2, avx2=1),))


def test_choosing() -> None:
    assert choose(()) == cases()
    assert choose(("noise",)) == tuple(case for case in cases() if case.room == "noise")
    assert [case.name for case in choose(("words", "import"))] == ["words", "import"]
    with pytest.raises(ValueError, match="only='nose'"):
        choose(("nose",))


# --- the work: what a call does, against the oracle that the case names


def _check_words(words: Any, parameters: Any) -> None:
    assert words.dtype == np.uint64
    ones = sum(int(word).bit_count() for word in words)
    assert abs(ones - 32 * words.size) < 6.2 * np.sqrt(16 * words.size)  # false alarm below 1e-9
    assert len(set(words.tolist())) == words.size


def _check_law(make: Any) -> Any:
    def check(noise: Any, parameters: Any) -> None:
        (scale,) = parameters.values()
        assert noise.dtype == np.int64
        laws.assert_law(noise, make(scale), laws.wrong_scales(make, scale))

    return check


def _check_float_law(make: Any) -> Any:
    """In steps of 1/256, noise on a fine grid is discrete noise up to 1e-3 of its CDF."""

    def check(noise: Any, parameters: Any) -> None:
        (scale,) = (256 * value for value in parameters.values())
        assert noise.dtype == np.float64
        assert np.any(noise != np.rint(noise))
        law, others = make(Fraction(scale)), laws.wrong_scales(make, scale)
        drawn = np.rint(256 * noise).astype(np.int64)
        assert laws.check_dkw(drawn, law.cdf)
        assert not any(laws.check_dkw(drawn, other.cdf) for other in others)

    return check


def _check_charged(drawn: Any, parameters: Any) -> None:
    noise, budget = drawn
    assert budget.spent == fastdp.PureDP(1 / parameters["scale"])
    assert [release.mechanism for release in budget.releases] == ["laplace"]
    _check_law(oracles.noise.laplace_law)(noise, parameters)


def _check_uniform(numbers: Any, parameters: Any) -> None:
    """Multiples of 2^-53 below 1, high and low bits alike."""
    whole = numbers * 2.0**53
    assert np.array_equal(whole, np.floor(whole))
    assert 0 <= whole.min() < whole.max() < 2.0**53
    for digits in (whole.astype(np.uint64) >> np.uint64(33), whole.astype(np.uint64) & np.uint64((1 << 20) - 1)):
        assert laws.check_dkw(digits.astype(np.int64), lambda z: np.clip((z + 1) / 2.0**20, 0, 1))


def _check_seconds(seconds: Any, parameters: Any) -> None:
    assert 0 < seconds < 60


def _check_last_query(drawn: Any, parameters: Any) -> None:
    first, n = drawn
    assert first == n - 1


def _check_answers_by_a_threshold(drawn: Any, parameters: Any) -> None:
    """At the threshold each answer is as likely."""
    far, near = drawn
    assert far == [False] * 1000 + [True]
    assert abs(sum(near) - len(near) / 2) < 6.2 * np.sqrt(len(near)) / 2  # false alarm below 1e-9


def _check_composition(drawn: Any, parameters: Any) -> None:
    """Bounds of Laplace and Gaussian noise at a few thousand orders a, in float64: Mironov (2017), table II, and
    the conversion of Canonne, Kamath and Steinke (2020), proposition 12."""
    (guarantee, scales), delta = drawn, parameters["delta"]
    a = 1 + np.geomspace(0.1, 1000, 5000)
    divergence = np.zeros_like(a)
    for kind, s in scales:
        if kind == "gaussian":
            divergence += a / (2 * s**2)
        else:
            moment = a * np.exp((a - 1) / s) + (a - 1) * np.exp(-a / s)
            divergence += np.log(moment / (2 * a - 1)) / (a - 1)
    least = np.min(divergence + np.log1p(-1 / a) - np.log(delta * a) / (a - 1))
    assert guarantee.delta == delta
    assert least * (1 - 1e-6) < guarantee.epsilon < least * 1.01


def _softmax_law(scores: Any, eta: float) -> Any:
    weights = np.exp(eta * (scores - scores.max()))
    return weights / weights.sum()


def _permute_and_flip_law(scores: Any, eta: float) -> Any:
    """A head's chance to be the first: w_i, times the integral of the others' 1 - w_j t over t in [0, 1]."""
    weights = np.exp(eta * (scores - scores.max()))
    points, shares = np.polynomial.legendre.leggauss(200)
    law = np.zeros_like(weights)
    for t, share in zip((points + 1) / 2, shares / 2, strict=True):
        factors = np.log1p(-t * weights)
        law += share * weights * np.exp(factors.sum() - factors)
    return law


def _check_choices(make: Any, other: Any = None, *, sharp: bool = True) -> Any:
    """How the winners, or the first of the k best, rank by score. The laws of wrong scales, or another law, are
    refuted; but not where the law is flat at any scale, or certain."""

    def check(drawn: Any, parameters: Any) -> None:
        scores, choices = drawn
        k = parameters.get("k", 1)
        eta = parameters["epsilon"] / (2 * k * parameters.get("draws", 1))
        assert all(len(set(row)) == k for row in choices.tolist())
        order = np.argsort(scores, kind="stable")
        ranks = np.argsort(order)[choices[:, 0]]

        def verdict(law: Any) -> Any:
            sums = np.concatenate(([0.0], np.cumsum(law[order])))
            return laws.check_dkw(ranks, lambda z: sums[np.clip(z + 1, 0, scores.size)])

        right = verdict(make(scores, eta))
        assert right, str(right)
        wrong = [make(scores, eta * factor) for factor in (1.5, 1 / 1.5)] + ([other(scores, eta)] if other else [])
        assert not (sharp and any(verdict(law) for law in wrong))

    return check


def _check_tables(drawn: Any, parameters: Any) -> None:
    cube, subsets, tables = drawn
    assert len(tables) == len(subsets)
    for own, table in list(zip(subsets, tables, strict=True))[::20]:
        assert np.array_equal(table, cube.sum(axis=tuple(p for p in range(cube.ndim) if p not in own)))


def _check_spread(drawn: Any, parameters: Any) -> None:
    """A few cells: each is the sum of its entry of every table."""
    sizes, tables, subsets, cells = drawn
    for cell in (0, 1, 7 * cells.size // 10, cells.size - 1):
        bits = [int(code) for code in np.unravel_index(cell, sizes)]
        own = [table[tuple(bits[p] for p in positions)] for positions, table in zip(subsets, tables, strict=True)]
        assert cells[cell] == sum(own)  # eighths: no rounding


def _check_parities(drawn: Any, parameters: Any) -> None:
    cells, parities = drawn
    numbers = np.arange(cells.size)
    for place in (0, 1, 2, 7, 1000, cells.size // 2, cells.size - 1):
        ones = sum((numbers & place) >> bit & 1 for bit in range(cells.size.bit_length()))
        assert parities[place] == (cells * (1 - 2 * (ones & 1))).sum()


def _exact_value(weights: Any, mask: Any) -> float:
    return math.fsum(weights * mask) / math.fsum(weights)


def _check_values(drawn: Any, parameters: Any) -> None:
    weights, mask, values = drawn
    assert 0 < mask.sum() < mask.size
    assert values == pytest.approx([_exact_value(weights, mask)] * len(values), rel=1e-12)


def _check_values_before_updates(drawn: Any, parameters: Any) -> None:
    """Up by one thousandth in the logarithm, down, and so on: each call says the value before its own update."""
    weights, mask, values = drawn
    updated = weights * np.exp(1e-3 * mask)
    before, after = _exact_value(weights, mask), _exact_value(updated, mask)
    assert after - before > 1e-5
    assert values == pytest.approx([before, after, before], rel=1e-10)


def _check_totals(drawn: Any, parameters: Any) -> None:
    weights, mask, totals = drawn
    before, after = math.fsum(weights), math.fsum(np.where(mask, weights * np.exp(1e-3), weights))
    assert totals == pytest.approx([after, before, after], rel=1e-12)


def _check_replay(drawn: Any, parameters: Any) -> None:
    """The iterates again, from the queries that were chosen, which are among those furthest off."""
    domain, records, queries, fitted, rate = drawn
    bits = np.arange(domain.size)[:, None] >> np.arange(len(domain) - 1, -1, -1) & 1

    def holds(query: Any, codes: Any) -> Any:
        return np.all([codes[:, domain.names.index(name)] == v for name, v in query.allowed.items()], axis=0)

    truth = np.array([holds(query, records).mean() for query in queries])
    masks = np.array([holds(query, bits) for query in queries], np.float64)
    x, average = np.full(domain.size, 1 / domain.size), np.zeros(domain.size)
    assert fitted.rounds == 10
    for query in fitted.chosen:
        average += x / 10
        gaps = truth - masks @ x
        i = queries.index(query)
        assert abs(gaps[i]) > np.abs(gaps).max() - 40 * 20 / len(records)  # 40 / eta records: chance e^-40 each
        x *= np.exp(np.sign(gaps[i]) * rate * masks[i])
        x /= x.sum()
    assert np.allclose(fitted.probabilities(), average, rtol=1e-9, atol=0)


def _check_released_tables(drawn: Any, parameters: Any) -> None:
    """Within what the noise of a cell is; a fit comes closer."""
    codes, tables, sigma = drawn
    exact = [np.bincount(2 * a + b, minlength=4) for i, a in enumerate(codes.T) for b in codes.T[i + 1 :]]
    assert len(tables) == len(exact)
    assert abs(np.stack(exact) - len(codes) * np.reshape(tables, (-1, 4))).max() < 7 * sigma


def _check_mean(drawn: Any, parameters: Any) -> None:
    values, mean = drawn
    assert abs(mean - values.mean()) < 40 * 1000 / len(values)  # chance e^-40


def _check_two_way_tables(drawn: Any, parameters: Any) -> None:
    """Answers are within what is promised; sampled records are nearer to the real ones than uniform ones are."""
    codes, asked, answers, alpha, sample = drawn

    def tables(codes: Any) -> Any:
        pairs = [[int(name[1:]) - 1 for name in subset] for subset in asked.subsets]
        return np.concatenate([np.bincount(2 * codes[:, i] + codes[:, j], minlength=4) for i, j in pairs]) / len(codes)

    exact = tables(codes)
    assert np.abs(answers - exact).max() <= alpha < 1
    assert sample.shape == codes.shape
    assert np.abs(tables(sample) - exact).max() < np.abs(0.25 - exact).max()


def _check_table(drawn: Any, parameters: Any) -> None:
    cube, table = drawn
    assert table.shape == (2, 2, 2)
    for i, j, k in np.ndindex(2, 2, 2):
        assert table[i, j, k] == pytest.approx(cube[:, i, j, k].sum() / cube.sum(), rel=1e-10)


def _check_answers_after_updates(drawn: Any, parameters: Any) -> None:
    """All cells are equal at first; each update moves the log odds of a query by twice alpha. One answer of the first
    kind needs none, one of the second one."""
    codes, attributes, alpha, found = drawn
    truths = [codes[:, j : j + attributes].all(axis=1).mean() for j in range(0, 14 - attributes, attributes)]
    odds, updates = 1 / (2**attributes - 1), attributes == 2
    answer = 1 / (1 + 1 / (odds * math.exp(2 * alpha * updates)))
    assert len(found) == 14 // attributes
    assert [times for _, times in found] == [updates] * len(found)
    assert [value for value, _ in found] == pytest.approx([answer] * len(found), rel=1e-9)
    assert all(abs(answer - truth) <= alpha < 0.5 for truth in truths)


def _check_answer(drawn: Any, parameters: Any) -> None:
    codes, values, alpha, answer, updates = drawn
    cells = codes.astype(np.int64) @ (1 << np.arange(codes.shape[1])[::-1])
    assert updates == 0
    assert answer == pytest.approx(np.mean(values), rel=1e-9)
    assert abs(answer - values[cells].mean()) <= alpha < 0.5


def _check_cells_that_rise(codes: Any, parameters: Any) -> None:
    """Cell c has weight c + 1, so that c of N cells have (c / N)^2 of all; cells of equal weight are refuted."""
    cells, size = codes.astype(np.int64) @ (1 << np.arange(24, -1, -1)), 1 << 25
    assert laws.check_dkw(cells, lambda z: np.clip((z + 1) / size, 0, 1) * np.clip((z + 2) / (size + 1), 0, 1))
    assert not laws.check_dkw(cells, lambda z: np.clip((z + 1) / size, 0, 1))


def _check_slices(drawn: Any, parameters: Any) -> None:
    weights, queries, values = drawn
    assert len(set(queries)) == values.size == 60
    numbers = np.arange(weights.size)
    for query, value in zip(queries, values, strict=True):
        mask = np.ones(weights.size, bool)
        for name, wanted in query.allowed.items():  # v1 is the highest of 20 bits
            mask &= numbers >> (20 - int(name[1:])) & 1 == wanted
        assert value == pytest.approx(weights[mask].sum() / weights.sum(), rel=1e-10)


def _check_rising(codes: Any, parameters: Any) -> None:
    """Cells of rising weight: 1 + k, sorted, k uniform below 1,000. Cells of equal weight would be refuted."""
    cells = codes.astype(np.int64) @ (1 << np.arange(19, -1, -1))
    sums = np.concatenate(([0.0], np.cumsum(np.sort(1.0 + np.random.default_rng(0).integers(0, 1000, 1 << 20)))))
    sums /= sums[-1]
    assert laws.check_dkw(cells, lambda z: sums[np.clip(z + 1, 0, 1 << 20)])
    assert not laws.check_dkw(cells, lambda z: np.clip(z + 1, 0, 1 << 20) / (1 << 20))


def _clipped_sum(loss: str, X: Any, labels: Any, w: Any) -> Any:
    """The gradients of all records, one a row, each cut to norm 1, added up."""
    X = X.astype(np.float64)
    scores = X @ w
    slopes = 2 * (scores - labels) if loss == "squared" else -labels / (1 + np.exp(labels * scores))
    rows = slopes[:, None] * X
    return (rows / np.maximum(np.linalg.norm(rows, axis=1), 1)[:, None]).sum(axis=0)


def _check_clipped_gradients(drawn: Any, parameters: Any) -> None:
    loss, X, labels, w, total = drawn
    assert np.allclose(total, _clipped_sum(loss, X, labels, w), rtol=0, atol=len(X) * X.shape[1] * 2.0**-30)


def _check_clipped_descent(drawn: Any, parameters: Any, order: float = 2) -> None:
    """What a step inside the ball does beyond the sum of the gradients is Gaussian noise; all others end on its rim."""
    loss, X, labels, fit = drawn
    (n, d), steps, path = X.shape, fit.steps, fit.history
    assert path.shape == (steps + 1, d)
    assert np.array_equal(path[-1], fit.w)
    norms, most = np.linalg.norm(path, ord=order, axis=1), 20
    assert norms.max() <= 1 + 1e-12
    inside = np.flatnonzero(norms[1:] < 1 - 1e-9)[:most]
    assert inside.size >= 3
    rates = fit.step_size * (1 - np.arange(steps) / steps)
    noise = [(path[t] - path[t + 1]) / rates[t] * n - _clipped_sum(loss, X, labels, path[t]) for t in inside]
    z = np.array(noise) / fit.noise_scale
    assert abs(z.mean()) < 6.2 / np.sqrt(z.size)
    assert abs((z**2).mean() - 1) < 9 * np.sqrt(2 / z.size)  # of so few, squares have a longer tail
    assert fit.noise_scale == pytest.approx(4.225 * 2 * np.sqrt(steps), rel=1e-3)  # replace-one, at (1, 1e-6)


def _check_descent(drawn: Any, parameters: Any) -> None:
    """Step by step from zero: gradients of all records, back into the ball, and at last the mean of the points."""
    X, y, fit = drawn
    w, path = np.zeros(X.shape[1]), []
    for _ in range(51):
        path.append(w)
        w = w - 0.05 * (2 / len(X)) * (X.T @ (X @ w - y))
        w = w / max(1.0, float(np.linalg.norm(w)))
    assert np.linalg.norm(path[-1]) > 0.1
    assert np.allclose(fit.history, path, rtol=0, atol=1e-12)
    assert np.allclose(fit.w, np.mean(path[:-1], axis=0), rtol=0, atol=1e-12)


def _check_vectors(drawn: Any, parameters: Any) -> None:
    """What a release is beyond the sum of the shortened vectors is noise of the kind and scale that it names."""
    kind, X, clip, mean, found = drawn
    norms = np.linalg.norm(X, axis=1)
    assert 0.2 < (norms > clip).mean() < 0.8
    exact = (X * np.minimum(1, clip / norms)[:, None]).sum(axis=0)
    scale = clip * (2 * 4.225 if kind == "gaussian" else 2 * np.sqrt(X.shape[1]))  # replace-one, at (1, 1e-6) and 1
    factor = len(X) if mean else 1
    assert all(one.noise_scale * factor == pytest.approx(scale, rel=1e-3) for one in found)
    z = np.concatenate([one.value * factor - exact for one in found]) / scale
    shape = stats.norm() if kind == "gaussian" else stats.laplace()
    assert stats.kstest(z, shape.cdf).pvalue > 1e-9
    assert stats.kstest(z, lambda x: shape.cdf(x / 1.5)).pvalue < 1e-9


def _check_good_number(drawn: Any, parameters: Any) -> None:
    """As near to the least mean loss as is promised, which few numbers are."""
    kind, x, choice = drawn

    def losses(points: Any) -> Any:
        away = np.abs(x - np.asarray(points)[..., None])
        return (away if kind == "absolute deviation" else away**2).mean(axis=-1)

    least = losses(np.median(x) if kind == "absolute deviation" else x.mean())
    some = losses(np.arange(0, 121, 2.0)) - least
    assert losses(choice.w[0]) - least <= choice.bound < np.quantile(some, 0.2)


def _check_clipped_descent_in_a_box(drawn: Any, parameters: Any) -> None:
    _check_clipped_descent(drawn, parameters, order=np.inf)


def _check_nearest_point_of_a_ball(drawn: Any, parameters: Any) -> None:
    far, w = drawn
    assert np.allclose(w, far / math.hypot(*far), rtol=1e-12)


def _check_nearest_point_of_a_box(drawn: Any, parameters: Any) -> None:
    far, w = drawn
    assert np.array_equal(w, [min(max(v, -1.0), 1.0) for v in far])


def _check_noisy_moments(drawn: Any, parameters: Any) -> None:
    """Means within 8 standard deviations of the exact ones; least squares of them, in the ball."""
    X, y, fit = drawn
    deviation = fit.noise_scale
    assert deviation == pytest.approx(4.225 * np.sqrt(4.5) / len(X), rel=1e-3)
    assert np.abs(fit.gram - X.T @ X / len(X)).max() < 8 * deviation
    assert np.abs(fit.cross - X.T @ y / len(X)).max() < 8 * deviation
    assert np.linalg.norm(fit.w) <= 1 + 1e-12
    gradient = 2 * (fit.gram + fit.ridge * np.eye(len(fit.w))) @ fit.w - 2 * fit.cross
    assert gradient @ fit.w + np.linalg.norm(gradient) < 1e-6  # nothing in the ball lies further downhill


def _check_good_point(drawn: Any, parameters: Any) -> None:
    """Of some thousand points, one that is nearly as good as any of the ball."""
    X, labels, choice = drawn

    def losses(w: Any) -> Any:
        return np.log1p(np.exp(-labels[:, None] * (X @ w.T))).mean(axis=0)

    ticks = np.linspace(-4, 4, 81)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    excess = losses(grid[np.linalg.norm(grid, axis=1) <= 4])
    excess -= excess.min()
    by_luck = 2 * 4.02 / len(X) * (math.log(1000) + 20)  # of e^-20
    assert 900 < choice.candidates < 1100
    assert losses(choice.w[None])[0] - losses(grid).min() < by_luck + 0.005 < np.median(excess) / 5


def _check_sums_of_bits(drawn: Any, parameters: Any) -> None:
    X, y, found = drawn
    assert 0.4 < y.mean() < 0.6
    assert (found.positives, found.negatives) == (y.sum(), len(y) - y.sum())
    for counts, of in ((found.of_positives, X[y]), (found.of_negatives, X[~y])):
        assert np.array_equal(counts[1::2], of.sum(axis=0))  # those who ask for a 0
        assert np.array_equal(counts[0::2], len(of) - of.sum(axis=0))


def _check_conjunction(drawn: Any, parameters: Any) -> None:
    """At most so many errors as are promised, and that is fewer than the best constant makes."""
    X, y, h = drawn
    holds = np.ones(len(X), bool)
    for column, value in h.literals:
        holds &= X[:, column] == value
    assert (holds != y).mean() <= h.error_bound < min(y.mean(), 1 - y.mean())
    assert np.array_equal(holds, h.predict(X))
    if h.method == "exhaustive":
        assert len(h.literals) <= parameters["k"]


def _check_box(drawn: Any, parameters: Any) -> None:
    X, y, h = drawn
    low, high = (np.array(ends) for ends in zip(*h.intervals, strict=True))
    inside = np.all((low <= X) & (high >= X), axis=1)
    assert (inside != y).mean() <= h.error_bound < min(y.mean(), 1 - y.mean())


def _check_middle_rank(drawn: Any, parameters: Any) -> None:
    """Off by at most ln(2^64 / beta) / eta ranks, with beta = 1e-9 and eta = epsilon / 2."""
    values, point = drawn
    assert abs((values < point).sum() - len(values) / 2) <= (64 * math.log(2) + math.log(1e9)) * 2


def _check_rank(drawn: Any, parameters: Any) -> None:
    values, q, point = drawn
    assert abs((values < point).sum() - q * len(values)) <= (64 * math.log(2) + math.log(1e9)) * 2


def _check_in_between(drawn: Any, parameters: Any) -> None:
    """Of a line of which the values take a thousandth."""
    values, point = drawn
    assert int(values.max()) - int(values.min()) < 2**55
    assert values.min() <= point <= values.max()


def _check_packed(drawn: Any, parameters: Any) -> None:
    X, words = drawn
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").T
    assert np.array_equal(bits[: len(X)], X)
    assert not bits[len(X) :].any()


def _check_elimination(drawn: Any, parameters: Any) -> None:
    """A literal stays if and only if it holds for every positive record."""
    X, y, h = drawn
    kept = {(j, value) for j in range(X.shape[1]) for value in (0, 1) if (X[y, j] == value).all()}
    assert {(j, 0) for j in range(10)} & kept == set()
    assert set(h.literals) == kept >= {(j, 1) for j in range(10)}


def _check_share_of_errors(drawn: Any, parameters: Any) -> None:
    X, y, share = drawn
    wrong = sum(all(row[:10]) != label for row, label in zip(X.tolist(), y.tolist(), strict=True))
    assert share == wrong / len(X)
    assert 0.05 < share < 0.15


def _check_good_concept(drawn: Any, parameters: Any) -> None:
    """Thresholds: those near to number 370 err about as little as it does."""
    predictions, y, chosen = drawn
    errors = np.array([np.mean(predictions.column(i) != y) for i in range(0, 1000, 10)])
    own = np.mean(predictions.column(chosen.index) != y)
    assert own - errors.min() <= chosen.excess_bound < np.median(errors) - errors.min()
    assert abs(chosen.index - 370) < 40


ORACLES = {
    "uniform words": _check_words,
    "laplace_law": _check_law(oracles.noise.laplace_law),
    "gaussian_law": _check_law(oracles.noise.gaussian_law),
    "laplace_law, rounded": _check_float_law(oracles.noise.laplace_law),
    "gaussian_law, rounded": _check_float_law(oracles.noise.gaussian_law),
    "laplace_law, charged": _check_charged,
    "uniform numbers": _check_uniform,
    "answers by a threshold": _check_answers_by_a_threshold,
    "a table": _check_table,
    "an answer": _check_answer,
    "cells that rise": _check_cells_that_rise,
    "answers after updates": _check_answers_after_updates,
    "descent": _check_descent,
    "clipped sums with noise": _check_vectors,
    "a good number": _check_good_number,
    "a rank": _check_rank,
    "a point in between": _check_in_between,
    "packed bits": _check_packed,
    "what no positive record falsifies": _check_elimination,
    "a share of errors": _check_share_of_errors,
    "a clock": _check_seconds,
    "the last query": _check_last_query,
    "Renyi, in float64": _check_composition,
    "softmax": _check_choices(_softmax_law),
    "softmax, at any scale": _check_choices(_softmax_law, sharp=False),
    "permute and flip": _check_choices(_permute_and_flip_law, _softmax_law),
    "sums over axes": _check_tables,
    "broadcasts": _check_spread,
    "parities": _check_parities,
    "values": _check_values,
    "values before updates": _check_values_before_updates,
    "totals after updates": _check_totals,
    "a replay": _check_replay,
    "slices": _check_slices,
    "two-way tables": _check_two_way_tables,
    "released tables": _check_released_tables,
    "a mean": _check_mean,
    "rising weights": _check_rising,
    "clipped gradients": _check_clipped_gradients,
    "clipped descent": _check_clipped_descent,
    "clipped descent in a box": _check_clipped_descent_in_a_box,
    "nearest point of a ball": _check_nearest_point_of_a_ball,
    "nearest point of a box": _check_nearest_point_of_a_box,
    "noisy moments": _check_noisy_moments,
    "a good point": _check_good_point,
    "sums of bits": _check_sums_of_bits,
    "a conjunction": _check_conjunction,
    "a box": _check_box,
    "a middle rank": _check_middle_rank,
    "a good concept": _check_good_concept,
}


@pytest.mark.parametrize("case", CASES)
def test_ours_does_the_work(case: Case) -> None:
    ORACLES[case.oracle](case.drawn(DRAWS), case.parameters)


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")  # so few promise little
@pytest.mark.parametrize("case", CASES)
def test_every_side_runs_at_a_tiny_size(case: Case) -> None:
    for side in (case.ours, *case.rivals):
        if isinstance(side, PeerSide):  # tests/test_peers.py
            continue
        call = side.make(TINY)
        first, second = call(), call()
        if case.clock == "child":
            assert first > 0
        elif case.name == "mean":
            assert first != second
        elif case.room == "accounting":  # one answer, the same in every call
            assert first == second
        elif case.room == "selection":  # candidates, and the same one again more often than not
            assert np.shape(first) == np.shape(second)
            assert np.all((np.asarray([first, second]) >= 0) & (np.asarray([first, second]) < TINY))
        elif case.name.startswith("end-to-end"):
            assert np.shape(first[2]) == np.shape(second[2]) == (len(first[2]), int(case.name[-2:]))
        elif case.name in ("mwem", "mwem-small", "release-pairs", "sample", "sample-searched"):  # drawn afresh
            assert case.name != "sample" or np.shape(first) == np.shape(second) == (TINY, 20)
        elif case.room == "answering":  # of public numbers: nothing is drawn; what is updated goes up and down
            pairs = zip(first, second, strict=True) if isinstance(first, list) else [(first, second)]
            assert case.name == "transform" or all(np.allclose(one, other, rtol=2e-3) for one, other in pairs)
        elif case.name.startswith("gradient-pass"):  # a sum of points, or of all their coordinates
            assert np.array_equal(first, second)
        elif case.room == "optimizing" and not case.name.startswith("project"):  # a point of the ball
            assert np.shape(first) == np.shape(second)
            fixed = ("least-squares", "net", "private-erm", "descent-plain")  # of one side at least
            assert case.name in fixed or not np.array_equal(first, second)
        elif case.name.startswith("literals"):  # of public numbers: nothing is drawn
            assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
        elif case.room == "learning":  # too few records for more than an answer
            assert type(first) is type(second)
        else:
            assert np.shape(first) == (TINY,)
            drawn_afresh = not case.name.endswith("in-place") and case.room != "optimizing"
            assert not drawn_afresh or not np.array_equal(first, second)


# --- what has a case

COVERED = {  # what reads records, or draws noise
    "AboveThreshold": "above-threshold",
    "Budget": "laplace-in-budget",
    "GumbelMax": "gumbel-max",
    "PrivateMultiplicativeWeights": "pmw-answer",
    "Randomness": "words",
    "SyntheticDistribution": "answer-slice",
    "error": "error",
    "exponential_erm": "exact-deviation",
    "exponential_mechanism": "select-float64-1e6",
    "gaussian": "gaussian-int64-100",
    "interior_point": "interior-point-int64",
    "laplace": "laplace-int64-100-new",
    "learn_box": "box-exponential",
    "learn_conjunction": "peel-10",
    "learn_from_class": "concepts",
    "median": "small-median-10",
    "mwem": "mwem-small",
    "noisy_least_squares": "least-squares",
    "noisy_projected_gradient_descent": "descent-squared-small",
    "pack": "pack",
    "permute_and_flip": "permute-and-flip",
    "private_erm": "private-erm",
    "projected_gradient_descent": "descent-plain",
    "quantile": "quantile",
    "release_marginals": "release-pairs",
    "top_k": "top-k",
    "vector_mean": "vector-mean-gaussian",
    "vector_sum": "vector-sum-gaussian",
}
NOT_COVERED = {  # why not
    "what is said of a guarantee, of public numbers": {
        *("AllOf", "ApproxDP", "BoundedRange", "PureDP", "Renyi", "ZCDP"),
        *("compose", "share", "peeling_eta", "removal", "removal_eta"),  # "compose-mixed" has one
    },
    "what describes a question": {"Conjunction", "Domain", "Linear", "Mask", "Predicate", "Product", "Range"}
    | {"marginals"},
    "warnings and errors": {"AccuracyWarning", "BudgetExceeded", "DomainError", "PrivacyWarning"},
    "settings": {"get_num_threads", "set_num_threads", "warmup"},
    "for comparison only": {"nonprivate_excess_risk", "nonprivate_minimum"},
}


def test_every_public_mechanism_is_said_to_have_a_case() -> None:
    public = {name for name in fastdp.__all__ if callable(getattr(fastdp, name))}
    excluded = [name for names in NOT_COVERED.values() for name in names]
    assert sorted((*COVERED, *excluded)) == sorted(public)


def _codes(thing: Any) -> set[Any]:
    parts = vars(thing).values() if isinstance(thing, type) else [thing]
    return {part.__code__ for part in parts if hasattr(part, "__code__")}


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")
@pytest.mark.parametrize("name", COVERED)
def test_the_case_of_a_mechanism_calls_it(name: str) -> None:
    case = next(case for case in (*cases(), *series.latencies()) if case.name == COVERED[name])
    called: set[Any] = set()
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, argument: called.add(frame.f_code))
    try:
        case.ours.make(TINY)()
    finally:
        sys.setprofile(before)
    assert called & _codes(getattr(fastdp, name))


# what has no case: why not
NOT_RUN = {
    "derivatives_into": "what a Custom loss tells its author",
    "log_exponential": "exact.log_exponential, which is Python, has the same name",
    "multiply_cells": "only after so many updates that the weights' sum leaves 1e-20 .. 1e20",
}
# elsewhere a tiny size does: kernels are chosen by more than this
LARGE = {
    "sample-searched": 1 << 25,
    "transform": 1 << 20,
    "answer-scattered": 1 << 14,
    "conjunction-scattered": 1 << 14,
    "release-pairs": 20_000,
}
# long, and by kernels that other cases run, too
LONG = {"end-to-end-16", "compose-mixed", "peel-1", "peel-3", "peel-30", "box-peel"}

RUN_CASES = """
import json, sys, warnings
warnings.simplefilter("ignore")
from numba.core.dispatcher import Dispatcher
compile_for_args, ran = Dispatcher._compile_for_args, set()
def note(self, *arguments, **more):  # what Python calls for types that it has not called it for
    ran.add(self.py_func.__module__ + "." + self.py_func.__name__)
    return compile_for_args(self, *arguments, **more)
Dispatcher._compile_for_args = note
from fastdp.bench.cases.registry import cases
sizes, left_out = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for case in cases():
    if case.clock == "call" and case.name not in left_out:
        case.ours.make(sizes.get(case.name, sizes[""]))()
print(json.dumps(sorted(ran)))
"""


def _kernels() -> dict[str, str]:
    """By name: the module of every compiled function of fastdp.kernels."""
    found = {}
    for one in pkgutil.iter_modules(importlib.import_module("fastdp.kernels").__path__):
        module = importlib.import_module(f"fastdp.kernels.{one.name}")
        for name, thing in vars(module).items():
            if hasattr(thing, "py_func") and thing.py_func.__module__ == module.__name__:
                assert name not in found
                found[name] = module.__name__
    return found


def _named_outside() -> set[str]:
    """Attributes and imports of every module of fastdp that is not a kernel, nor about them all, nor for C."""
    root, named = Path(fastdp.__file__).parent, set()
    for path in root.rglob("*.py"):
        if path.relative_to(root).parts[0] not in ("kernels", "bench", "capi", "warm.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                named |= {node.attr} if isinstance(node, ast.Attribute) else set()
                if isinstance(node, ast.ImportFrom) and "kernels" in (node.module or ""):
                    named |= {alias.name for alias in node.names}
    return named


def test_every_kernel_that_others_call_is_run_by_a_case() -> None:
    """In a process of its own, where nothing else has run any."""
    kernels = _kernels()
    public = {name for name in _named_outside() & set(kernels) if not name.startswith("_")}
    assert len(public) > 70
    command = [sys.executable, "-c", RUN_CASES, json.dumps(LARGE | {"": TINY}), json.dumps(sorted(LONG))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    ran = set(json.loads(done.stdout.splitlines()[-1]))
    assert sorted(name for name in public if f"{kernels[name]}.{name}" not in ran) == sorted(NOT_RUN)


def test_in_place_cases_write_where_they_read() -> None:
    for case in choose(("noise",)):
        call = case.ours.make(TINY)
        assert (call() is call()) == case.name.endswith("in-place")


@pytest.mark.parametrize("bits", [(5, 8, 11), (9, 10, 11), (0, 1, 2)])
def test_literals_are_on_the_bits_that_a_row_names(bits: tuple[int, int, int]) -> None:
    from fastdp.bench.cases import answering

    domain, cells = answering.binary(1 << 12), np.arange(1 << 12)
    expected = (cells >> bits[0] & 1 == 0) & (cells >> bits[1] & 1 == 1) & (cells >> bits[2] & 1 == 1)
    assert np.array_equal(answering.conjunction_mask(domain, answering.literals(domain, bits)), expected)


def test_the_faster_ways_of_numpy_do_the_same() -> None:
    noise = noise_room.numpy_exponentials(3.0)(200_000)()
    for q in (0.05, 0.25, 0.5, 0.9):  # of the distribution: false alarm below 1e-9 each
        x = 3 * np.log(2 * q) if q < 0.5 else -3 * np.log(2 * (1 - q))
        assert abs((noise < x).mean() - q) < 6.2 * np.sqrt(q * (1 - q) / noise.size)
    scores, rng = np.array([0.0, 1.0, -2.0, 3.0]), np.random.default_rng(1)
    chosen = np.bincount([selection.exponentials(scores, rng) for _ in range(20_000)], minlength=4) / 20_000
    wanted = np.exp(scores / 2) / np.exp(scores / 2).sum()
    assert (np.abs(chosen - wanted) < 6.2 * np.sqrt(wanted * (1 - wanted) / 20_000)).all()
    assert (
        np.array(learning.numpy_products(5).make(200_001)()) == np.array(learning.numpy_sums(5).make(200_001)())
    ).all()


def test_values_are_filled() -> None:
    """np.zeros maps one page, whatever its length: a benchmark over it would not touch memory."""
    from fastdp.bench.cases import accounting, answering, learning, noise, optimizing, selection

    assert np.unique(noise.int_values(5000)).size == 1000
    assert np.unique(accounting.query_values(5000)).size == 1001
    assert len(set(accounting.noise_scales(1000))) == 1000
    assert np.unique(noise.float_values(5000)).size == 5000
    assert np.unique(selection.float_scores(5000)).size == 5000
    assert np.unique(selection.int_scores(5000)).size > 50
    assert np.median(selection.equal_scores(5000)) == 1
    assert np.unique(answering.counts(5000)).size > 900
    assert 2000 < answering.cell_mask(5000).sum() < 3000
    X, y = optimizing.records(5000, 20, "float64")
    assert np.unique(X).size == X.size
    assert np.allclose(np.linalg.norm(X, axis=1), 1, atol=1e-5)
    assert 0.1 < abs(y).mean() < 0.9
    X, y = learning.records(5000, 103, 10)
    assert abs(X[:, 10:].mean() - 0.5) < 0.01
    assert abs(y.mean() - 0.5) < 0.03
    X, y = learning.numbers(5000, 10)
    assert np.unique(X).size == X.size
    assert 0.3 < y.mean() < 0.4
    assert np.unique(learning.values("int64", 5000)).size == 5000


# --- measuring


def _case(**changes: Any) -> Case:
    """A case that does nothing, quickly."""
    nothing = Side("nothing", lambda n: lambda: None)
    fields: dict[str, Any] = {
        "name": "nothing",
        "room": "noise",
        "work": "nothing",
        "n": 1000,
        "ours": Side("fastdp", lambda n: lambda: None),
        "rivals": (nothing,),
        "targets": (faster("nothing", avx512=2, avx2=1),),
        "oracle": "a clock",
        "drawn": lambda n: 1.0,
    }
    return Case(**fields | changes)


def _run(case: Case) -> tuple[measure.Duel, dict[str, Any]]:
    with measure.Duel(case, quick=True) as duel:
        for _ in range(duel.rounds):
            duel.before_round()
            duel.round()
    return duel, duel.result([1.0] * duel.rounds)


def test_threads_and_cores_are_as_the_side_says_and_are_put_back() -> None:
    seen: dict[int, set[Any]] = {1: set(), 2: set()}

    def side(name: str, threads: int) -> Side:
        cores = getattr(os, "sched_getaffinity", lambda pid: {None})
        return Side(
            name, lambda n: lambda: seen[threads].add((fastdp.get_num_threads(), len(cores(0)))), threads=threads
        )

    before = fastdp.get_num_threads(), getattr(os, "sched_getaffinity", lambda pid: None)(0)
    _run(_case(ours=side("fastdp", 2), rivals=(side("nothing", 1),)))
    assert (fastdp.get_num_threads(), getattr(os, "sched_getaffinity", lambda pid: None)(0)) == before
    assert seen[1] == {(1, 1)}
    assert {threads for threads, _ in seen[2]} == {2}


def test_both_sides_take_turns() -> None:
    order: list[str] = []
    ours, theirs = (Side(name, lambda n, name=name: lambda: order.append(name)) for name in ("ours", "nothing"))
    _run(_case(ours=ours, rivals=(theirs,)))
    assert order[-6:] == ["nothing", "ours"] * 3


def test_a_rival_that_fails_is_a_cell_and_not_the_end() -> None:
    def crash(n: int) -> Any:
        raise RuntimeError("no such feature")

    rivals = (
        Side("nothing", crash),
        Side("late", lambda n: lambda: crash(n)),
    )
    _, result = _run(_case(rivals=rivals))
    whys = {name: theirs["why_not"] for name, theirs in result["theirs"].items()}
    assert whys == {
        "nothing": "RuntimeError: no such feature",
        "late": "RuntimeError: no such feature",
    }


def test_a_failing_child_says_which_code_failed() -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        measure.python_seconds("1 / 0")


# --- judging and showing

MACHINE = {
    "versions": {"fastdp": "0"},
    "cpu": "a CPU",
    "cores": 2,
    "compiled for": "a CPU",
    "simd": "avx2",
}


def _measured(ours: float, theirs: float, why_not: str | None = None) -> dict[str, Any]:
    rival = {"n": 500, "seconds": [theirs, 2 * theirs], "why_not": why_not}
    return {"case": "nothing", "n": 1000, "threads": 1, "ours": [2 * ours, ours], "theirs": {"nothing": rival}}


@pytest.mark.parametrize(
    ("target", "simd", "ours", "theirs", "verdict"),
    [
        (faster("nothing", avx512=4, avx2=2), "avx2", 1.0, 1.0, "holds"),  # per element: the rival did half as many
        (faster("nothing", avx512=4, avx2=2), "avx2", 1.01, 1.0, "falls short"),
        (faster("nothing", avx512=4, avx2=2), "avx512", 1.0, 1.0, "falls short"),
        (faster("nothing", avx512=4, avx2=2), "neon", 1.0, 1.0, "no target for NEON, 128 bits"),
        (within("nothing", 4), "avx2", 1.0, 0.125, "holds"),
        (within("nothing", 4), "avx2", 1.01, 0.125, "falls short"),
        (within_seconds(0.5), "avx512", 0.5, 1.0, "holds"),
        (within_seconds(0.5), "avx512", 0.51, 1.0, "falls short"),
    ],
)
def test_verdicts(target: Target, simd: str, ours: float, theirs: float, verdict: str) -> None:
    case = _case(targets=(target,))
    rows = judging.judge(case, _measured(ours, theirs), None, MACHINE | {"simd": simd})
    assert rows[0].verdict == verdict


def test_rows_without_a_figure_say_why() -> None:
    def verdicts(case: Case, *arguments: Any) -> list[str]:
        return [row.verdict for row in judging.judge(case, *arguments)]

    assert verdicts(_case(), _measured(1, 1, "not installed"), None, MACHINE) == ["not installed"]
    assert verdicts(_case(), None, "it crashed", MACHINE) == ["it crashed"]
    assert verdicts(_case(targets=()), _measured(1, 1), None, MACHINE) == ["no target"]
    two = _case(ours=Side("fastdp", lambda n: lambda: None, threads=2))
    assert verdicts(two, _measured(1, 1), None, MACHINE | {"cores": 1}) == ["needs 2 cores"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.5, "1.50 s"),
        (0.0123, "12.3 ms"),
        (9.996e-4, "1.00 ms"),
        (3.8e-6, "3.80 µs"),
        (5e-10, "0.500 ns"),
        (2000, "2,000 s"),
    ],
)
def test_times_are_written_with_three_digits(value: float, text: str) -> None:
    assert wording.seconds(value) == text


def test_a_worker_that_dies_costs_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the worker: it measures every case but `import`, on which it aborts."""
    code = f"""
import json, os, sys
def tell(**event): print(json.dumps(event), flush=True)
tell(machine={MACHINE!r})
for name in sys.argv[1:]:
    tell(start=name)
    if name == "import":
        print("about to die", file=sys.stderr, flush=True)
        os.abort()
    tell(measured=dict(case=name, n=1, threads=1, ours=[1.0], theirs=dict(
        numpy=dict(n=1, seconds=[1.0], why_not=None), OpenDP=dict(n=1, seconds=[], why_not="not installed"))))
"""
    monkeypatch.setattr(runner, "_command", lambda quick, threads, names: [sys.executable, "-c", code, *names])
    seen: list[tuple[int, int, str]] = []
    report = runner.run(("import", "gaussian-int64", "laplace-small"), progress=lambda *now: seen.append(now))
    assert list(report.failed) == ["import"]
    assert "ended with -6: about to die" in report.failed["import"]
    assert len(report.measured) == 5
    assert {row.verdict for row in report.rows if row.case == "laplace-small-call"} == {"holds"}
    assert seen[-1] == (6, 6, "")
    assert {row.verdict for row in report.rows} == {"falls short", "holds", "not installed", report.failed["import"]}


def test_another_fastdp_is_not_measured_in_the_place_of_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a checkout is run from its folder and another one is installed."""
    told = {"machine": {}, "source": "/elsewhere/fastdp/__init__.py"}
    fake = f"import json; print(json.dumps({told}), flush=True); input()"
    monkeypatch.setattr(runner, "_command", lambda quick, threads, names: [sys.executable, "-c", fake])
    with pytest.raises(ValueError, match=r"which is '/elsewhere/fastdp/__init__\.py'"):
        runner.run(["words"], quick=True)


def test_a_worker_that_does_not_start_fails_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        runner, "_command", lambda quick, threads, names: [sys.executable, "-c", "raise SystemExit('no such luck')"]
    )
    report = runner.run(("words", "import"))
    assert report.failed == dict.fromkeys(("words", "import"), "the measuring process ended with 1: no such luck")


# --- the command


def test_the_command_prints_a_table_and_writes_every_round(
    tmp_path: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "bench.json"
    assert (
        main(["bench", "--quick", "--targets", "--only", "words", "--only", "laplace-small", "--json", str(path)]) == 0
    )
    printed = capsys.readouterr().out
    for word in ("ours", "theirs", "ratio", "target", "verdict", "numpy", "random 64-bit words, bulk"):
        assert word in printed
    level = simd_level(*compiled_for())
    assert {"avx512": "≥ 1.4x", "avx2": "≥ 0.75x"}.get(level, "no target for") in printed
    assert "quick run" in printed
    written = json.loads(path.read_text())
    assert [row["case"] for row in written["rows"]] == ["words", "laplace-small-call"]
    assert all(row["ratio"] > 0 and row["ours"] > 0 for row in written["rows"])
    assert all(len(measured["ours"]) >= 3 for measured in written["measured"])
    assert written["failed"] == {}


def test_avx2_is_compiled_for_and_judged_as_avx2(capsys: pytest.CaptureFixture[str]) -> None:
    if simd_level(*compiled_for()) not in SIMD_LEVELS:
        return  # haswell code does not run here
    assert main(["bench", "--quick", "--avx2", "--only", "words"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "compiled for haswell (AVX2, 256 bits)" in printed
    assert "≥ 0.75x" in printed
    assert "the others use all that the machine has" in printed


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("laplace-smal1-call", "start of a case's name, such as laplace-small-call"),
        ("zzz", "must be a room (noise, accounting, selection, answering, optimizing, learning"),
        ("curve-mask", "a curve, latency or memory must come with full=True (--full)"),
        ("latency", "a curve, latency or memory must come with full=True (--full)"),
    ],
)
def test_an_unknown_case_is_one_short_line(word: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--only", "words", "--only", word]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.strip().count("\n") == 0
    assert captured.err.startswith(f"fastdp bench: only={word!r}: ")
    assert why in captured.err
    assert len(captured.err) < 300


def test_pytest_bench_runs_the_registry() -> None:
    """`pytest bench`, at the root of the repository, under the package's own name and no other."""
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "bench",
        "-q",
        "-p",
        "no:cacheprovider",
        "--benchmark-disable",
        "-k",
        "words",
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
