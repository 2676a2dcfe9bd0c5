"""Bad input in Dask collections: the same errors as on one machine, and nothing charged."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.connect.dask import DaskRows
from fastdp.records.arrays import MemoryRows
from fastdp.records.packed import pack
from fastdp.records.sources import rows_of
from fastdp.support.errors import DomainError
from tests.connect.dask.cases import (
    CASES,
    CUTS,
    Data,
    N,
    chunked,
    equal,
    far_counts,
    partitioned,
    same,
    seeded,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning"),
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # of pandas, which Dask uses when it reads files
]


@pytest.mark.parametrize("where", [0, N - 1])
def test_a_record_outside_the_domain_costs_nothing(where: int, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    def spoiled(array: Any, value: Any) -> Any:
        array = array.astype(np.result_type(array, np.array(value)))
        array[where] = value
        return chunked(array)

    domain = fastdp.Domain(a=5, b=3, c=4)
    bits = spoiled(data.bits.astype(np.int8), 2)
    codes, places = spoiled(data.codes, 9), spoiled(data.places, 64)
    inside, rule = chunked(data.inside), chunked(data.rule)
    of_domain: list[Callable[[], Any]] = [
        lambda: fastdp.release_marginals(codes, domain, fastdp.marginals(domain, 1), epsilon=1.0, delta=1e-6),
        lambda: fastdp.mwem(codes, domain, [fastdp.Conjunction({"a": 1})], epsilon=1.0, delta=1e-6),
        lambda: fastdp.PrivateMultiplicativeWeights(codes, domain, epsilon=1.0, delta=1e-6, max_queries=9),
    ]
    calls: list[Callable[[], Any]] = [
        *of_domain,
        lambda: fastdp.learn_conjunction(bits, rule, epsilon=1.0, delta=1e-6),
        lambda: fastdp.learn_conjunction(
            chunked(data.bits), spoiled(data.rule.astype(int), 7), epsilon=1.0, delta=1e-6
        ),
        *(
            partial(fastdp.learn_conjunction, bits, rule, k=2, epsilon=1.0, delta=1e-6, method=method)
            for method in ("greedy", "counts", "exhaustive")
        ),
        *(
            partial(fastdp.learn_box, places, inside, domain_bits=6, epsilon=1.0, delta=1e-6, method=method)
            for method in ("peel", "interior-point", "exponential")
        ),
        lambda: fastdp.median(spoiled(data.incomes, np.nan), epsilon=1.0),
        lambda: fastdp.quantile(spoiled(data.places[:, 0], -1), 0.2, domain_bits=6, signed=False, epsilon=1.0),
        lambda: fastdp.vector_sum(spoiled(data.points, np.inf), clip=1.0, epsilon=1.0),
        lambda: CASES["logistic"](lambda a: spoiled(a, 5.0) if a.ndim == 2 else chunked(a), data),
        lambda: CASES["squared"](lambda a: spoiled(a, 5.0) if a.ndim == 1 else chunked(a), data),
        *(
            partial(CASES[name], lambda a: spoiled(a, np.nan), data, outside="raise")
            for name in ("line, mean", "line, median")
        ),
        lambda: CASES["net"](lambda a: spoiled(a, 5.0) if a.ndim == 2 else chunked(a), data),
        *(
            partial(CASES[name], lambda a: spoiled(a, 5.0) if a.ndim == 2 else chunked(a), data)
            for name in ("least squares", "private_erm")
        ),
        lambda: fastdp.learn_from_class(bits.T, rule, epsilon=1.0),
    ]
    with fastdp.Budget(epsilon=1.0, delta=1e-6, refusals=99) as budget:
        for call in calls:
            with pytest.raises(DomainError):
                call()
        with far_counts(monkeypatch):
            for call in of_domain:
                with pytest.raises(DomainError):
                    call()
    assert budget.left.epsilon == 1.0
    assert not budget.releases


def test_the_first_error_is_the_one_that_is_raised(data: Data) -> None:
    values = data.places.copy().astype(float)
    values[3, 1], values[-3, 0] = np.nan, np.nan
    for cuts in (CUTS["even"], CUTS["uneven"], CUTS["many"]):
        with pytest.raises(DomainError, match=r"^column 1: must not be NaN"):
            fastdp.learn_box(chunked(values, cuts), chunked(data.inside, cuts), epsilon=1.0, delta=1e-6)


X, Y = np.zeros((6, 2), int), np.array([0, 1, 0, 1, 0, 1])

FAR, LABELS = da.from_array(X, chunks=(3, 2)), da.from_array(Y, chunks=3)


@pytest.mark.parametrize(
    ("data", "y", "message"),
    [
        (FAR, Y, "y: type ndarray: must be a Dask array or Series with the partitions of X, or the name of one of its"),
        (X, LABELS, "y: a Dask collection: must be an array, as the records are in this process"),
        (
            FAR,
            LABELS.rechunk(2),
            "y: 3 partitions: must be 2, as X has; of labels beside the records, give the DataFrame",
        ),
        (FAR, LABELS.rechunk(((2, 4),)), "y: 2 labels in partition 0: must be 3, as X has records there"),
        (FAR, da.stack([LABELS, LABELS], axis=1), "y: 2 columns: must be one"),
        (FAR, None, "y=None: must be the labels of the records, or the name of their column"),
        (FAR, 5, "y=5: must be labels, or the name of their column"),
        (FAR, "y", "y='y': must be labels, or the name of their column"),
        (FAR[:, 0], LABELS, "X: shape (6,): must have two dimensions, records and columns; of one column, X[:,"),
        (da.zeros((2, 2, 2)), LABELS, "X: shape (2, 2, 2): must have two dimensions, records and columns"),
        (
            dask.delayed(X),
            LABELS,
            "X: type DelayedLeaf: must be a Dask array of two dimensions, or a Dask DataFrame",
        ),
        (FAR[:0], LABELS[:0], "X: n=0 records: must be at least one"),
        (da.zeros((6, 0), chunks=3), LABELS, "X: must have at least one column"),
        (
            da.zeros((6, 1), chunks=3, dtype=[("a", int)]),
            LABELS,
            "X: must not be a structured array; give {name: X[name], ...}",
        ),
        (
            da.ma.masked_array(FAR, FAR > 0),
            LABELS,
            "data: must not be a masked array; fill or drop the masked entries first",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(data: Any, y: Any, message: str) -> None:
    with fastdp.Budget(epsilon=1.0, delta=1e-6) as budget:
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            fastdp.learn_conjunction(data, y, epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            fastdp.learn_box(data, y, epsilon=1.0, delta=1e-6)
    assert budget.left.epsilon == 1.0


def test_types_that_are_no_numbers_are_refused(data: Data) -> None:
    words = pd.DataFrame({"a": ["x", "y"] * 3, "b": range(6), "y": Y})
    far = partitioned(words, (2, 4))
    logistic: Any = {"loss": losses.Logistic(x_norm=1), "over": sets.Ball(1), "epsilon": 1.0, "delta": 1e-6}
    with fastdp.Budget(epsilon=1.0, delta=1e-6, refusals=100) as budget:
        with pytest.raises(
            ValueError, match=r"^column 'a': (d?type .*: must be numbers$|column of strings: objects must)"
        ):
            fastdp.noisy_projected_gradient_descent(far, "y", **logistic)
        with pytest.raises(ValueError, match=r"^y: (d?type .*: must be numbers$|column of strings: objects must be)"):
            fastdp.noisy_projected_gradient_descent(far[["b"]], far["a"], **logistic)
        with pytest.raises(DomainError, match=r"^column 'a': must hold 0 and 1 only; there are others$"):
            fastdp.learn_conjunction(far, "y", epsilon=1.0, delta=1e-6)
        with pytest.raises(
            ValueError,
            match=r"^column 'a': (d?type .*: must be (numbers|integers or floats)$|column of strings: objects must be)",
        ):
            fastdp.learn_box(far, "y", epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=r"^values: 3 columns: must be one$"):
            fastdp.median(far, epsilon=1.0)
        with pytest.raises(ValueError, match=r"^domain_bits=100: must be at most 64 for a Dask collection$"):
            fastdp.median(far["b"], domain_bits=100, epsilon=1.0)
        with pytest.raises(ValueError, match=r"^method='prefix': must be 'exponential' for 6 values that are not in"):
            fastdp.interior_point(far["b"], method="prefix", epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=r"^data: must have the columns 'z'$"):
            fastdp.mwem(far, fastdp.Domain(z=2), [fastdp.Conjunction({"z": 1})], epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=r"^X: type Series: must be a Dask array of two dimensions"):
            fastdp.learn_conjunction(far["b"], far["y"], epsilon=1.0, delta=1e-6)
        with pytest.raises(ValueError, match=r"^data: a Dask collection is not packed into this process"):
            pack(far)
    assert budget.left.epsilon == 1.0


def test_categories_may_differ_between_partitions() -> None:
    draw = np.random.default_rng(2)
    words = pd.DataFrame({"a": draw.choice(list("xyz"), 400), "b": draw.integers(0, 3, 400)})
    pieces = [words[:100].astype("category"), words[100:].iloc[::-1].astype("category")]
    known = dd.from_map(lambda i: pieces[i], range(2), meta=pieces[0][:0])
    unknown = dd.from_pandas(words, npartitions=3, sort=False).astype("category")
    domain = fastdp.Domain(a=["z", "y", "x"], b=[2, 1, 0])
    found = [
        np.concatenate(
            fastdp.release_marginals(
                frame, domain, fastdp.marginals(domain, 1), epsilon=1.0, delta=1e-6, fit=None, rng=seeded()
            ).tables
        ).tolist()
        for frame in (words, known, unknown)
    ]
    assert found[0] == found[1] == found[2]


def test_partitions_that_are_not_what_they_seemed(data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """Types decide about domains, and lengths about which record is which."""
    monkeypatch.setattr("fastdp.records.rank_search._LISTED", 10)
    frame = pd.DataFrame({"a": np.arange(6), "y": Y})
    pieces = [frame[:3], frame[3:].astype({"a": float})]
    far = dd.from_map(lambda i: pieces[i], range(2), meta=frame[:0])
    with pytest.raises(
        ValueError, match=r"^column 'a': a partition of dtype float64: must be int64, as the collection"
    ):
        fastdp.learn_box(far, "y", epsilon=1.0, delta=1e-6)

    turned = [frame[:3], frame[3:][["y", "a"]]]
    far = dd.from_map(lambda i: turned[i], range(2), meta=frame[:0])
    with pytest.raises(ValueError, match=r"^data: a partition with other columns: must have those of the collection"):
        fastdp.learn_box(far, "y", epsilon=1.0, delta=1e-6)

    for odd in (np.ones((3, 3)), np.ones((3, 1)), np.ones(3)):
        graph = {("odd", i, 0): (lambda array=array: array,) for i, array in enumerate([np.ones((3, 2)), odd])}
        with pytest.raises(ValueError, match=r"^data: a partition with other columns: must have those of the"):
            fastdp.vector_sum(da.Array(graph, "odd", ((3, 3), (2,)), float), clip=1.0, epsilon=1.0)

    draws = np.random.default_rng(0)
    restless = da.Array(
        {("restless", i): (lambda: draws.integers(0, 2**60, 3000),) for i in range(2)}, "restless", ((3000,) * 2,), int
    )
    with pytest.raises(ValueError, match=r"^data: must not change between two passes; there are other numbers"):
        fastdp.median(restless, epsilon=1.0)

    lengths = iter([3, 3, 2, 2])
    growing = da.Array(
        {("grow", i, 0): (lambda: np.zeros((next(lengths), 1)),) for i in range(2)},
        "grow",
        ((np.nan,) * 2, (1,)),
        float,
    )
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ValueError, match=r"a partition of 2 records: must have"),
    ):
        fastdp.vector_sum(growing, clip=1.0, epsilon=1.0)

    shifted = frame["y"].copy()
    shifted.index = shifted.index + 1
    with pytest.raises(ValueError, match=r"^y: its index differs from that of X$"):
        fastdp.learn_conjunction(
            partitioned(frame[["y"]], (2, 4)), partitioned(shifted.to_frame(), (2, 4))["y"], epsilon=1.0, delta=1e-6
        )


def test_nobody_at_all() -> None:
    """Where n is private, no records are as good as any."""
    bits, labels = np.zeros((0, 3), bool), np.zeros(0, bool)
    found = [
        fastdp.learn_conjunction(
            give(bits), give(labels), epsilon=1.0, delta=1e-6, neighbors="add-remove", records=100, rng=seeded()
        ).literals
        for give in (same, partial(chunked, cuts=(0, 0)))
    ]
    assert found[0] == found[1]
    domain = fastdp.Domain.binary(3)
    for X in (bits, chunked(bits, (0, 0))):
        released = fastdp.release_marginals(
            X, domain, fastdp.marginals(domain, 1), epsilon=1.0, delta=1e-6, neighbors="add-remove", rng=seeded()
        )
        found.append(np.concatenate(released.tables).tolist())
    assert found[2] == found[3]
    sums = [
        fastdp.vector_sum(X, clip=1.0, epsilon=1.0, neighbors="add-remove", rng=seeded()).value.tolist()
        for X in (bits.astype(float), chunked(bits.astype(float), (0, 0)))
    ]
    assert sums[0] == sums[1]


def test_what_is_not_private_stays_with_arrays(data: Data) -> None:
    h = fastdp.learn_conjunction(data.bits, data.rule, k=2, epsilon=9.0, delta=1e-6, rng=seeded())
    with pytest.raises(ValueError, match=r"^X: a Dask collection: map_partitions\(h\.predict\), or map_blocks"):
        h.predict(chunked(data.bits))
    far = chunked(data.bits).map_blocks(h.predict, drop_axis=1, dtype=bool)
    equal(far.compute(), h.predict(data.bits))
    with pytest.raises(ValueError, match=r"^y: a Dask collection: must be an array here$"):
        fastdp.learn_from_class(data.bits.T, chunked(data.rule), epsilon=1.0)


def test_a_dask_that_is_too_old_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "__version__", "2024.7.1")
    with pytest.raises(ImportError, match=r"^dask 2024\.7\.1: must be 2024\.8 or newer"):
        DaskRows(FAR)


def test_rows_read_well() -> None:
    assert repr(DaskRows(FAR)) == "<DaskRows: 6 records, 2 columns>"
    assert not isinstance(rows_of(FAR), MemoryRows)
    assert rows_of(FAR).dtypes() == (np.dtype(int),) * 2
