"""Every case does the work that it claims, on both sides."""

from __future__ import annotations

import numpy as np
import pytest

from fastdp.bench.cases import accounting, selection
from fastdp.bench.cases.answering import inputs as cells_inputs
from fastdp.bench.cases.learning import boxes, literals
from fastdp.bench.cases.learning import inputs as labelled
from fastdp.bench.cases.noise import laplace
from fastdp.bench.cases.registry import (
    Case,
    PeerSide,
    choose,
)
from fastdp.bench.peers import inputs as shared
from tests.bench.oracles import ORACLES
from tests.bench.params import CASES, DRAWS, TINY


@pytest.mark.parametrize("case", CASES)
def test_ours_does_the_work(case: Case) -> None:
    ORACLES[case.oracle](case.drawn(DRAWS), case.parameters)


@pytest.mark.filterwarnings("ignore::fastdp.AccuracyWarning")  # so few have no useful bound
@pytest.mark.parametrize("case", CASES)
def test_every_side_runs_at_a_tiny_size(case: Case) -> None:
    for side in (case.ours, *case.rivals):
        if isinstance(side, PeerSide):  # tests/bench/peers
            continue
        call = side.make(TINY)
        first, second = call(), call()
        if case.clock == "child":
            assert first > 0
        elif case.name in ("mean", "statistics-mean", "statistics-variance", "statistics-sum"):
            assert first != second
        elif case.name in ("histogram", "partition") or case.name.startswith("count-by-"):
            assert np.shape(first) == np.shape(second)
        elif case.name.startswith("limit-rows"):  # how many are left is private: the oracle reads them
            assert type(first) is type(second)
        elif case.name.startswith("plan-"):  # of public numbers: nothing is drawn
            assert (first.sets, first.bits) == (second.sets, second.bits)
            assert np.array_equal(first.sigmas, second.sigmas)
        elif case.name.startswith("charge-"):  # a release with noise of its own
            assert isinstance(first, (int, np.integer))
            assert isinstance(second, (int, np.integer))
        elif case.name == "numeric-sparse":  # places, and their values with noise
            assert np.array_equal(first[0], second[0])
        elif case.room == "accounting":  # the same in every call
            assert np.array_equal(first, second)
        elif case.room == "selection":  # candidates, and the same one again more often than not
            assert np.shape(first) == np.shape(second)
            assert np.all((np.asarray([first, second]) >= 0) & (np.asarray([first, second]) < TINY))
        elif case.name.startswith("end-to-end"):
            assert np.shape(first[2]) == np.shape(second[2]) == (len(first[2]), int(case.name[-2:]))
        elif case.name == "continual-step":  # each step has noise of its own
            assert not set(first) & set(second)
        elif case.name in (
            "mwem",
            "mwem-small",
            "release-pairs",
            "release-planned",
            "pmw-update-measured",
            "ranges",
            "ranges-integers",
            "sample",
            "sample-searched",
            "tree-sample",
        ):  # drawn afresh
            assert case.name != "sample" or np.shape(first) == np.shape(second) == (TINY, 20)
        elif case.room == "answering":  # of public numbers: nothing is drawn; what is updated goes up and down
            pairs = zip(first, second, strict=True) if isinstance(first, list) else [(first, second)]
            assert case.name == "transform" or all(np.allclose(one, other, rtol=2e-3) for one, other in pairs)
        elif case.name.startswith(("gradient-pass", "points-pass")):  # a sum of points, or of all their coordinates
            assert np.array_equal(first, second)
        elif case.room == "optimizing" and not case.name.startswith("project"):  # a point of the ball
            assert np.shape(first) == np.shape(second)
            fixed = (
                "least-squares",
                "least-squares-1e5x200",
                "net",
                "private-erm",
                "descent-plain",
            )  # of one side at least
            assert case.name in fixed or not np.array_equal(first, second)
        elif case.name.startswith("literals"):  # of public numbers: nothing is drawn
            assert all(np.array_equal(one, other) for one, other in zip(first, second, strict=True))
        elif case.room == "learning":  # too few records for more than an answer
            assert type(first) is type(second)
        else:
            assert np.shape(first) == (TINY,)
            drawn_afresh = not case.name.endswith("in-place") and case.room != "optimizing"
            assert not drawn_afresh or not np.array_equal(first, second)


def test_in_place_cases_write_where_they_read() -> None:
    for case in choose(("noise",)):
        call = case.ours.make(TINY)
        assert (call() is call()) == case.name.endswith("in-place")


@pytest.mark.parametrize("bits", [(5, 8, 11), (9, 10, 11), (0, 1, 2)])
def test_literals_are_on_the_bits_that_a_row_names(bits: tuple[int, int, int]) -> None:
    domain, cells = cells_inputs.binary(1 << 12), np.arange(1 << 12)
    expected = (cells >> bits[0] & 1 == 0) & (cells >> bits[1] & 1 == 1) & (cells >> bits[2] & 1 == 1)
    assert np.array_equal(cells_inputs.conjunction_mask(domain, cells_inputs.literals(domain, bits)), expected)


def test_the_faster_ways_of_numpy_do_the_same() -> None:
    noise = laplace.numpy_exponentials(3.0)(200_000)()
    for q in (0.05, 0.25, 0.5, 0.9):  # of the distribution: false alarm below 1e-9 each
        x = 3 * np.log(2 * q) if q < 0.5 else -3 * np.log(2 * (1 - q))
        assert abs((noise < x).mean() - q) < 6.2 * np.sqrt(q * (1 - q) / noise.size)
    scores, rng = np.array([0.0, 1.0, -2.0, 3.0]), np.random.default_rng(1)
    chosen = np.bincount([selection.exponentials(scores, rng) for _ in range(20_000)], minlength=4) / 20_000
    wanted = np.exp(scores / 2) / np.exp(scores / 2).sum()
    assert (np.abs(chosen - wanted) < 6.2 * np.sqrt(wanted * (1 - wanted) / 20_000)).all()
    assert (
        np.array(literals.numpy_products(5).make(200_001)()) == np.array(labelled.numpy_sums(5).make(200_001)())
    ).all()


def test_values_are_filled() -> None:
    """np.zeros maps one page, whatever its length: a benchmark over it would not touch memory."""
    assert np.unique(shared.int_values(5000)).size == 1000
    assert np.unique(accounting.query_values(5000)).size == 1001
    assert len(set(shared.noise_scales(1000))) == 1000
    assert np.unique(shared.float_values(5000)).size == 5000
    assert np.unique(shared.float_scores(5000)).size == 5000
    assert np.unique(selection.int_scores(5000)).size > 50
    assert np.median(selection.equal_scores(5000)) == 1
    assert np.unique(cells_inputs.counts(5000)).size > 900
    assert 2000 < cells_inputs.cell_mask(5000).sum() < 3000
    X, y = shared.points(5000, 20, "float64")
    assert np.unique(X).size == X.size
    assert np.allclose(np.linalg.norm(X, axis=1), 1, atol=1e-5)
    assert 0.1 < abs(y).mean() < 0.9
    X, y = labelled.records(5000, 103, 10)
    assert abs(X[:, 10:].mean() - 0.5) < 0.01
    assert abs(y.mean() - 0.5) < 0.03
    X, y = boxes.numbers(5000, 10)
    assert np.unique(X).size == X.size
    assert 0.3 < y.mean() < 0.4
    assert np.unique(shared.numbers("int64", 5000)).size == 5000
