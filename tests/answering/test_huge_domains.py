"""Domains of more cells than a float can hold."""

from __future__ import annotations

from typing import Any

import numba
import pytest

import fastdp
from fastdp import Domain, Mask, Predicate
from fastdp.answering.queries.query import bind
from fastdp.records.domain import display_count
from tests.answering.kinds_of_domains import EASY, ONES, pmw_on

# that plain noise would guarantee more: these runs are made small to be quick
pytestmark = pytest.mark.filterwarnings(
    "ignore:PrivateMultiplicativeWeights guarantees:fastdp.support.errors.AccuracyWarning"
)

HUGE = Domain.binary(2000)


def test_numbers_of_cells_are_shown() -> None:
    displayed = [display_count(cells) for cells in (1, 50_880, 10**12 - 1, 2**100)]
    assert displayed == ["1", "50,880", "999,999,999,999", "1.27e+30"]
    assert repr(HUGE) == "Domain.binary(2000)  # 1.15e+602 cells"
    assert display_count(2**20_000) == "3.98e+6020", "more digits than Python writes out"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda d: bind(Mask([0, 1]), d), r"^cells: shape \(2,\): must be \(1\.15e\+602,\), or \(2, 2, .*, \.\.\.\)$"),
        (lambda d: bind(Predicate(numba.njit(lambda cell: True)), d), r"^domain: 1\.15e\+602 cells: must be at most"),
        (lambda d: fastdp.SyntheticDistribution([1.0, 2.0], d), r"^weights: shape \(2,\): must be \(1\.15e\+602,\)"),
        (lambda d: fastdp.mwem(ONES, d, [EASY], epsilon=1.0, variant="measured"), r"^domain: 1\.15e\+602 cells: must"),
        (
            lambda d: fastdp.release_marginals(ONES, d, [["v1"]], epsilon=1.0, delta=1e-6, fit="entropic"),
            r"^domain: 1\.15e\+602 cells: the entropic fit holds them all and needs 5\.13e\+594 GiB",
        ),
        (lambda d: pmw_on(d, weights="dense"), r"^domain: dense weights put 2000 attributes .* into 1\.15e\+602 cells"),
        (
            lambda d: pmw_on(d, epsilon=1e-4, variant="sharp"),
            r"no alpha below 1 can be guaranteed for 10 queries on 1\.15e\+602 cells",
        ),
        (
            lambda d: pmw_on(d, max_queries=10**400),
            r"^max_queries=<int of 1,329 bits>: must be at most 9,223,372,036,854,775,807$",
        ),
        (lambda d: pmw_on(d).nonprivate_kl(), r"^domain: 1\.15e\+602 cells: must be at most 2\^27 to count"),
        (lambda d: pmw_on(d).synthetic.probabilities(), r"^domain: listing all cells would merge 2000 attributes"),
        (lambda d: d.cells([ONES[:, 0]] * 2000), r"^domain: 1\.15e\+602 cells: must be at most 2\^62"),
    ],
)
def test_huge_domains_are_refused_in_words(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(HUGE)


def test_huge_domains_work() -> None:
    run = pmw_on(HUGE, delta=1e-6)
    estimate = fastdp.bounds.private_multiplicative_weights(2000, HUGE, epsilon=1000.0, delta=1e-6, max_queries=10)
    assert estimate.alpha == run.alpha < 1
    assert "1.15e+602 cells" in str(estimate)
    assert "1.15e+602 cells" in repr(run)
    assert abs(run.answer(EASY) - 1) <= run.alpha
    assert "1.15e+602 cells" in repr(run.synthetic)
    assert "and 1980 more" in run.synthetic._repr_html_()
    assert run._repr_html_()
    released = fastdp.release_marginals(ONES, HUGE, [["v1", "v2000"]], epsilon=1.0, delta=1e-6)
    assert released.table(["v2000"])[1] > 0.9
