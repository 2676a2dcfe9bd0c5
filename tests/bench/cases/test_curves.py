"""Curves: every point is a case and does the work that it claims."""

from __future__ import annotations

import numpy as np
import pytest

from fastdp.bench.cases.curves import Curve, curves
from fastdp.bench.cases.registry import matching
from fastdp.bench.peers.inputs import points
from tests.bench.oracles import ORACLES
from tests.bench.params import CURVES, DRAWS, TINY


def test_every_subject_has_its_curve() -> None:
    first, last = ({(c.axis, c.room): c.points[i] for c in curves()} for i in (0, -1))
    assert first[("domain cells", "answering")] == first[("candidates", "selection")] == 1 << 10
    assert last[("domain cells", "answering")] == last[("candidates", "selection")] == 1 << 26
    for room in ("optimizing", "learning"):
        assert first[("dimension", room)] == 1
        assert last[("dimension", room)] == 2_000
    for room in ("optimizing", "learning", "noise"):
        assert first[("records", room)] == 1_000
        assert last[("records", room)] == 10_000_000


@pytest.mark.parametrize("curve", CURVES)
def test_points_rise_and_each_is_a_case(curve: Curve) -> None:
    assert list(curve.points) == sorted(set(curve.points))
    for x in curve.points:
        case = curve.case(x)
        assert case.n == curve.size(x) >= 1
        assert case.calls * case.n >= curve.burst
        traffic = curve.traffic(x)
        assert traffic.held > 0
        assert traffic.read + traffic.copied + traffic.changed + traffic.words > 0
    if curve.axis == "dimension":  # constant n d
        entries = [curve.size(x) * x for x in curve.points]
        assert min(entries) > 0.99 * max(entries)
    assert 0 < len(curve.quick_points(20_000)) <= len(curve.points)


def _middle(curve: Curve) -> int:
    return 8 if curve.axis == "dimension" and 8 in curve.points else curve.points[1]


@pytest.mark.parametrize("curve", CURVES)
def test_ours_does_the_work_of_its_curve(curve: Curve) -> None:
    case = curve.case(_middle(curve))
    ORACLES[case.oracle](case.drawn(DRAWS), case.parameters)


@pytest.mark.parametrize("curve", CURVES)
def test_both_sides_do_the_same_at_a_tiny_size(curve: Curve) -> None:
    case = curve.case(_middle(curve))
    first, second = case.ours.make(TINY)(), case.rivals[0].make(TINY)()
    if curve.name == "curve-mask":
        assert first == pytest.approx(second, rel=1e-12)
    elif curve.name.startswith("curve-literals"):
        for ours, theirs in zip((first.of_positives, first.of_negatives), second, strict=True):
            assert np.array_equal(ours[1::2], theirs)
    elif curve.name.startswith("curve-select"):
        assert 0 <= first < TINY
        assert 0 <= second < TINY
    elif curve.name.startswith("curve-descent"):
        assert first.shape == second.shape == (case.ours.make(TINY)().size,)
        order = np.inf if "box" in curve.name else 2
        assert np.linalg.norm(first, order) <= 1 + 1e-9
        assert np.linalg.norm(second, order) <= 1 + 1e-9
    else:
        assert np.shape(first) == np.shape(second) == (TINY,)


def test_both_sides_descend() -> None:
    """Of so many records noise hides little."""
    for curve in matching(("curve-descent-ball-n", "curve-descent-box-n"), curves()):
        case = curve.case(100_000)
        X, y = points(case.n, 8, "float64")
        for side in (case.ours, *case.rivals):
            w = side.make(case.n)()
            assert ((X @ w - y) ** 2).mean() < (y**2).mean(), (curve.name, side.name)
