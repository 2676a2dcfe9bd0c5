"""What the answering room's cases must have produced."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from tests import laws
from tests.oracles.tables import nearest_table


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


def _check_nearest(drawn: Any, parameters: Any) -> None:
    estimates, tables = drawn
    for table, estimate in zip(tables[:3], estimates, strict=False):
        assert np.allclose(table.reshape(-1), nearest_table(estimate.reshape(-1).tolist(), 1.0), rtol=0, atol=1e-13)


def _check_released_tables(drawn: Any, parameters: Any) -> None:
    """Within what the noise of a cell is; a fit comes closer."""
    codes, tables, sigma = drawn
    exact = [np.bincount(2 * a + b, minlength=4) for i, a in enumerate(codes.T) for b in codes.T[i + 1 :]]
    assert len(tables) == len(exact)
    assert abs(np.stack(exact) - len(codes) * np.reshape(tables, (-1, 4))).max() < 7 * sigma


def _check_plan(drawn: Any, parameters: Any) -> None:
    """Replaced records that differ in t columns move c_S = sum_x (-1)^<S, x> by 2 where they differ in an odd number of
    S. Sums of these over 2^|S| cells are what the noise of S, 2^|S| times its variance, is for; the worst t is paid."""
    sets, sigmas, epsilon, delta = drawn
    d = 1 + max(max(S) for S in sets)
    shares = {len(S): 4 / (2 ** len(S) * sigma**2) for S, sigma in zip(sets, sigmas, strict=True)}  # alike for a size
    assert all(
        4 / (2 ** len(S) * sigma**2) == pytest.approx(shares[len(S)], rel=1e-9)
        for S, sigma in zip(sets, sigmas, strict=True)
    )
    squares = [
        sum(
            share * math.comb(t, j) * math.comb(d - t, k - j) for k, share in shares.items() for j in range(1, k + 1, 2)
        )
        for t in range(d + 1)
    ]
    mu, normal = math.sqrt(max(squares)), NormalDist().cdf
    spent = normal(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal(-mu / 2 - epsilon / mu)
    assert delta / 1.1 <= spent <= delta


def _check_three_way_tables(drawn: Any, parameters: Any) -> None:
    """Within what the noise of a cell is; a fit comes closer."""
    codes, positions, tables, sigma = drawn
    for own, table in list(zip(positions, tables, strict=True))[::50]:
        exact = np.bincount(codes[:, list(own)] @ [4, 2, 1], minlength=8)
        assert abs(exact - len(codes) * table.reshape(-1)).max() < 7 * sigma


def _check_two_way_tables(drawn: Any, parameters: Any) -> None:
    """Answers are within their error bound; sampled records are nearer to the real ones than uniform ones are."""
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


def _check_measured_answers(drawn: Any, parameters: Any) -> None:
    """Each answer took one update, and is within the error bound; the noise of a measurement is some 100 records."""
    codes, attributes, alpha, found = drawn
    truths = [codes[:, j : j + attributes].all(axis=1).mean() for j in range(0, 14 - attributes, attributes)]
    assert [times for _, times in found] == [1] * len(found)
    assert all(abs(answer - truth) <= 0.02 < alpha < 0.5 for (answer, _), truth in zip(found, truths, strict=False))


def _check_uniform_answers(drawn: Any, parameters: Any) -> None:
    """No update was needed: all cells are equal, and all attributes binary."""
    queries, answers = drawn
    assert answers.tolist() == pytest.approx([2.0 ** -len(query.allowed) for query in queries], rel=1e-9)


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


def _check_running_sums(drawn: Any, parameters: Any) -> None:
    """Counters that were given ones: at the last step noise of this deviation, and not of twice as much."""
    off = drawn - np.arange(1, drawn.shape[1] + 1)
    variance = math.fsum(math.comb(2 * k, k) ** 2 / 16**k for k in range(drawn.shape[1]))  # of the square root's rows
    ratio = float((off[:, -1] ** 2).mean()) / (4.39 * variance / (2 * parameters["rho"]))
    assert 0.2 < ratio < 3
    assert np.corrcoef(off[:, -1], off[:, -2])[0, 1] > 0.5


def _check_bins(drawn: Any, parameters: Any) -> None:
    values, edges, codes = drawn
    assert (codes == np.searchsorted(edges, values, side="right") - 1).all()


def _check_ranges(drawn: Any, parameters: Any) -> None:
    """Noise, and no more of it than the counts of 256 bins take at epsilon 1: some 12 records on a prefix."""
    values, counts = drawn
    true = np.cumsum(np.bincount((values * 256).astype(int), minlength=256))
    off = np.cumsum(counts, axis=1) - true
    assert 4 < float(np.sqrt((off**2).mean())) < 20
    assert all((one >= 0).all() for one in counts)


def _check_tables_of_a_tree(drawn: Any, parameters: Any) -> None:
    """The first table: near the noisy one, whose noise is 30 of 100,000 records a cell, and of no more distance."""
    (_, sigma, tables), (found,) = drawn
    _, table = tables[0]
    assert found.sum() == pytest.approx(1.0, abs=1e-9)
    off = (1e5 * found - table) / sigma
    assert (found >= 0).all()
    assert float((off**2).mean()) < 1.2


def _check_records_of_a_tree(drawn: Any, parameters: Any) -> None:
    """Counts of columns that are not in one row of draws: within what independent records would differ by."""
    table, records = drawn
    counts = np.zeros(table.shape, int)
    np.add.at(counts, (records[:, 0], records[:, 2]), 1)
    assert laws.check_cells(counts.reshape(-1), table.reshape(-1).tolist())
    assert not laws.check_cells(counts.reshape(-1), np.roll(table.reshape(-1), 1).tolist())


ORACLES: dict[str, Any] = {
    "bins": _check_bins,
    "ranges": _check_ranges,
    "running sums": _check_running_sums,
    "a table": _check_table,
    "an answer": _check_answer,
    "cells that rise": _check_cells_that_rise,
    "answers after updates": _check_answers_after_updates,
    "measured answers": _check_measured_answers,
    "uniform answers": _check_uniform_answers,
    "sums over axes": _check_tables,
    "broadcasts": _check_spread,
    "sorted projections": _check_nearest,
    "parities": _check_parities,
    "values": _check_values,
    "values before updates": _check_values_before_updates,
    "totals after updates": _check_totals,
    "a replay": _check_replay,
    "slices": _check_slices,
    "two-way tables": _check_two_way_tables,
    "released tables": _check_released_tables,
    "three-way tables": _check_three_way_tables,
    "a plan's price": _check_plan,
    "rising weights": _check_rising,
    "tables of a tree": _check_tables_of_a_tree,
    "records of a tree": _check_records_of_a_tree,
}
