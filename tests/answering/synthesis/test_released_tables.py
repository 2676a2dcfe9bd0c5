"""Syntheses that take in what was released before."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from fastdp import Bins, Budget, Domain, Randomness, marginals, release_marginals, synthesize
from fastdp.answering import MeasuredTable
from fastdp.answering.synthesis.chordal_graph import Limits
from fastdp.answering.synthesis.junction_tree import JunctionTree
from fastdp.answering.synthesis.known_tables import columns_held, within
from fastdp.answering.synthesis.measured import Measured

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning")
SIZES = {"a": 4, "b": 3, "c": 5, "d": 2, "e": 3}
DOMAIN = Domain(SIZES)
N = 5000
RELATIONS = ("replace-one", "add-remove")
LITTLE: dict[str, Any] = {"epsilon": 0.02, "delta": 1e-6}


def records() -> Any:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, list(SIZES.values()), (N, 5))
    codes[:, 1] = np.minimum(codes[:, 0], 2)
    codes[:, 4] = codes[:, 2] % 3
    return codes


def off(made: Any, codes: Any) -> float:
    found = []
    for i, j in combinations(range(len(SIZES)), 2):
        names = [list(SIZES)[i], list(SIZES)[j]]
        right = np.histogram2d(codes[:, i], codes[:, j], [SIZES[name] for name in names])[0] / N
        found.append(np.abs(made.marginal(names) - right).sum())
    return float(np.mean(found))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("method", ["tree", "network"])
def test_what_was_paid_for_is_used(relation: Any, method: Any) -> None:
    codes = records()
    how: dict[str, Any] = {"neighbors": relation, "rng": Randomness(seed=1)}
    earlier = release_marginals(codes, DOMAIN, marginals(DOMAIN, 2), epsilon=2.0, delta=1e-6, allocation="equal", **how)
    with Budget(neighbors=relation, epsilon=0.02, delta=1e-6):
        alone = synthesize(codes, DOMAIN, method=method, **LITTLE, **how)
    with Budget(neighbors=relation, epsilon=0.02, delta=1e-6) as budget:
        made = synthesize(codes, DOMAIN, method=method, released=[earlier], **LITTLE, **how)
    assert len(budget.releases) == 1
    assert off(made, codes) < 0.05 < 0.3 * off(alone, codes)
    again = synthesize(codes, DOMAIN, method=method, released=[alone, made.report, earlier], **LITTLE, **how)
    assert off(again, codes) < 0.05


def test_single_tables_and_their_orders() -> None:
    codes = records()
    big = synthesize(codes, DOMAIN, epsilon=5.0, delta=1e-6, rng=Randomness(seed=1))
    table = big.report.table(["a", "b"]) if any(
        set(each.columns) == {"a", "b"} for each in big.report.tables
    ) else big.report.tables[-1]  # fmt: skip
    turned = Domain({name: SIZES[name] for name in reversed(SIZES)})  # the same columns in another order
    made = synthesize(codes[:, ::-1], turned, released=[table], rng=Randomness(seed=2), **LITTLE)
    names = list(table.columns)
    axes = [list(SIZES).index(name) for name in names]
    right = np.zeros([SIZES[name] for name in names])
    np.add.at(right, tuple(codes[:, axes].T), 1 / N)
    assert np.abs(made.marginal(names) - right).sum() < 0.1


def test_a_tree_holds_what_its_limits_allow() -> None:
    tables = [Measured((0, 1), np.ones((9, 9)), 1.0), Measured((1, 2), np.ones((9, 2)), 2.0)]
    tables.append(Measured((0, 2), np.arange(18.0).reshape(9, 2), 3.0))
    assert columns_held((9, 9, 2), [], tables, Limits(1000, 1000)) == [(0, 2), (1, 2), (0, 1)]
    assert columns_held((9, 9, 2), [], tables, Limits(20, 40)) == [(0, 2), (1, 2)]
    part = within(JunctionTree((9, 9, 2), [(1, 2)]), tables)
    assert [each.columns for each in part] == [(0,), (1,), (1, 2), (0,), (2,)]
    assert part[0].sigma == pytest.approx(3.0)
    assert part[3].values.tolist() == tables[2].values.sum(axis=1).tolist()
    assert part[4].sigma == pytest.approx(9.0)


def test_what_is_no_release_of_this_domain_is_refused() -> None:
    codes = records()
    other = release_marginals(codes[:, :2], Domain(a=4, b=3), [["a"]], epsilon=1.0, delta=1e-6)
    refused: list[tuple[Any, str]] = [
        ([other], r"^released\[0\]: must be of `domain`"),
        (3, r"^released: type int: must be results of release_marginals"),
        ([3], r"^released\[0\]: type int: must be results of release_marginals"),
    ]
    narrow = synthesize(codes[:, :1] % 2, Domain(a=2), epsilon=1.0, delta=1e-6)
    refused.append(([narrow], r"^released\[0\]: a table of shape \(2,\): must have the values of \('a',\)"))
    strange = synthesize(codes[:, :1], Domain(z=Bins([0, 2, 9])), epsilon=1.0, delta=1e-6)
    refused.append(([strange], r"^attribute='z': must be one of"))
    for released, message in refused:
        with Budget(epsilon=1.0, delta=1e-6) as budget, pytest.raises(ValueError, match=message):
            synthesize(codes, DOMAIN, released=released, **LITTLE)
        assert not len(budget.releases)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize(
    ("sigma", "entry", "message"),
    [
        (0.0, 1.0, r"sigma=0\.0: must be > 0"),
        (-1.0, 1.0, "sigma=-1"),
        (np.inf, 1.0, "sigma=inf"),
        (np.nan, 1.0, "sigma=nan"),
        (1e-200, 1.0, "sigma=1e-200"),
        (1.0, np.nan, r"the table of \('a', 'b'\): must be finite, and of at most 2\^45 records"),
        (1.0, np.inf, "the table of"),
        (1.0, -1e300, "the table of"),
        (1.0, 2.0**44, "the table of"),
    ],
)
def test_tables_that_nobody_released_are_refused_before_anything_is_spent(
    relation: Any, sigma: float, entry: float, message: str
) -> None:
    noisy = np.full((4, 3), entry)
    with Budget(epsilon=1.0, delta=1e-6, neighbors=relation) as budget:
        with pytest.raises(ValueError, match=rf"^released\[0\]: {message}"):
            synthesize(records(), DOMAIN, released=[MeasuredTable(("a", "b"), sigma, noisy, noisy)], neighbors=relation,
                       **LITTLE)  # fmt: skip
        assert not len(budget.releases)


def test_a_table_of_one_known_cell_is_left_out() -> None:
    """As a synthesis states of columns of one value, where the number of records is public."""
    one, noisy = Domain(a=4, z=1), np.full(1, 7.0)
    made = synthesize(records()[:, [0, 0]] * [1, 0], one, released=[MeasuredTable(("z",), 0.0, noisy, noisy)], **LITTLE)
    assert made.n == N
