"""What the tests of Dask run: one set of records, and a case for each function that reads records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import fastdp
from fastdp import losses, sets, statistics
from fastdp.answering import marginal_counts
from fastdp.answering import true_answers as truth

N = 4_000


def seeded() -> Any:
    return fastdp.Randomness(seed=11)


class Data:
    """One set of records, as arrays, from which all cases take what they need."""

    def __init__(self, n: int = N, seed: int = 0) -> None:
        draw = np.random.default_rng(seed)
        self.n = n
        self.bits = draw.random((n, 9)) < [0.9, 0.2, 0.5, 0.6, 0.5, 0.4, 0.1, 0.8, 0.5]
        self.rule = self.bits[:, 2] & ~self.bits[:, 4]
        self.points = draw.uniform(-0.4, 0.4, (n, 4))
        self.side = self.points @ [1.0, -2.0, 0.5, 0.0] > 0
        self.response = np.clip(self.points @ [1.0, -1.0, 0.5, 0.2], -1, 1)
        self.places = np.column_stack([draw.integers(0, 64, n), draw.integers(0, 32, n)])
        self.inside = (self.places[:, 0] > 15) & (self.places[:, 0] < 50) & (self.places[:, 1] < 20)
        self.incomes = np.where(draw.random(n) < 0.3, 2.5e4, draw.lognormal(10, 1, n))
        self.codes = draw.integers(0, [5, 3, 4], (n, 3))


Call = Callable[[Callable[[Any], Any], Data], Any]  # (how arrays are given, the records) -> what came out


def conjunction(give: Any, data: Data, **how: Any) -> Any:
    how = {"epsilon": 0.04, "method": "peel", "realizable": True} | how
    h = fastdp.learn_conjunction(give(data.bits), give(data.rule), delta=1e-6, rng=seeded(), **how)
    return h.literals, h.error(give(data.bits), give(data.rule))


def tree(give: Any, data: Data) -> Any:
    h = fastdp.learn_tree(give(data.bits), give(data.rule), epsilon=1.0, rng=seeded())
    return h.root, h.error(give(data.bits), give(data.rule))


def decision_list(give: Any, data: Data) -> Any:
    h = fastdp.learn_decision_list(give(data.bits), give(data.rule), epsilon=1.0, rng=seeded())
    return h.rules, h.error(give(data.bits), give(data.rule))


def tree_of_numbers(give: Any, data: Data) -> Any:
    X = np.column_stack([data.incomes, data.points[:, :2]])
    y = data.incomes > 2e4
    h = fastdp.learn_tree(give(X), give(y), quantiles=5, epsilon=4.0, rng=seeded())
    return h.root, h.error(give(X), give(y))


def box(give: Any, data: Data, epsilon: float = 6.0, **how: Any) -> Any:
    h = fastdp.learn_box(give(data.places), give(data.inside), epsilon=epsilon, rng=seeded(), **how)
    return h.intervals, h.error(give(data.places), give(data.inside))


def box_of_floats(give: Any, data: Data, **how: Any) -> Any:
    X = np.column_stack([data.incomes, data.points[:, :2]])  # three: the cuts of two count in the third
    return fastdp.learn_box(give(X), give(data.incomes > 2e4), epsilon=20.0, delta=1e-6, rng=seeded(), **how).intervals


def one_column(give: Any, data: Data, of: str = "incomes", function: Any = fastdp.median, **how: Any) -> Any:
    values = getattr(data, of)
    return function(give(values if values.ndim == 1 else values[:, 0]), epsilon=0.5, rng=seeded(), **how)


def ranges(give: Any, data: Data) -> Any:
    edges = np.append(np.linspace(0.0, 1e5, 101), np.inf)
    made = fastdp.release_ranges(give(data.incomes), edges, epsilon=1.0, delta=1e-6, rng=seeded())
    return made.counts


def numbers(give: Any, data: Data) -> Any:
    """The statistics of columns."""
    price = {"epsilon": 1.0, "neighbors": "add-remove"}
    incomes, codes = give(data.incomes), give(data.codes[:, 0])
    bounds = {"bounds": (0, 50_000)} | price
    found = [
        float(statistics.mean(incomes, rng=seeded(), **bounds)),
        float(statistics.variance(incomes, rng=seeded(), **bounds)),
        int(statistics.sum(codes, rng=seeded(), bounds=(0, 4), **price)),
        int(statistics.count(incomes, rng=seeded(), **price)),
        statistics.histogram(incomes, np.linspace(0, 1e6, 51), outside="clip", rng=seeded(), **price).counts,
        statistics.bincount(codes, 5, rng=seeded(), **price).counts,
        statistics.count_by(codes, delta=1e-6, rng=seeded(), **price).counts,
    ]
    return np.concatenate([np.ravel(each) for each in found]).tolist()


def statistics_of_records(give: Any, data: Data) -> Any:
    codes = give(data.codes)
    price = {"epsilon": 1.0, "neighbors": "add-remove"}
    sums = statistics.sum_by(codes, 2, 0, bounds=(0, 3), delta=1e-6, rng=seeded(), **price)
    north = fastdp.partition(codes, by=0, keys=[0, 3])[3]
    described = statistics.describe(give(data.points), {0: (-1, 1), 1: (-1, 1)}, rng=seeded(), **price)
    found = [
        sums.sums,
        int(statistics.sum(north[1], rng=seeded(), bounds=(0, 2), **price)),
        *(list(described[column].values.values()) for column in (0, 1)),
    ]
    return np.concatenate([np.ravel(each) for each in found]).tolist()


def of_class(give: Any, data: Data) -> Any:
    table = np.array([data.points[:, 0] > t for t in np.linspace(-0.4, 0.4, 41)])
    predictions = table if give is same else give(table.T).T
    return fastdp.learn_from_class(predictions, give(data.points[:, 0] > 0.1), epsilon=0.1, rng=seeded()).index


def queries(d: int) -> list[Any]:
    pairs = [fastdp.Conjunction({f"v{i}": 1, f"v{j}": 0}) for i in range(1, d) for j in range(i + 1, d + 1)]
    return [*pairs, fastdp.Product({"v1": [0, 1], "v3": [1]})]


def multiplicative_weights(give: Any, data: Data) -> Any:
    domain = fastdp.Domain.binary(9)
    pmw = fastdp.PrivateMultiplicativeWeights(
        give(data.bits), domain, epsilon=40.0, delta=1e-6, alpha=0.25, max_queries=100, rng=seeded()
    )
    table = fastdp.Linear(np.linspace(0, 1, domain.size))
    return [*pmw.answer_many([*queries(9), table]), pmw.answer(queries(9)[3]), pmw.updates]


def measured_online(give: Any, data: Data, **how: Any) -> Any:
    """Tests that fire and tests that do not; each query is asked of the records when it comes."""
    domain = fastdp.Domain.binary(9)
    pmw = fastdp.PrivateMultiplicativeWeights(
        give(data.bits),
        domain,
        epsilon=20.0,
        delta=1e-6,
        max_queries=200,
        variant="measured",
        updates=12,
        rng=seeded(),
        **how,
    )
    asked = [*queries(9), fastdp.Scaled("v1", 0, 1, among=fastdp.Product({"v2": 1}))]
    first, ratio = pmw.answer_many(asked), pmw.average("v4", 0, 2)
    assert how or 0 < pmw.updates < len(pmw.transcript)  # tables answer all of these
    return [*first, ratio.value, *map(pmw.answer, queries(9)[:4]), pmw.updates, pmw.n, *pmw.synthetic.probabilities()]


def fitted(give: Any, data: Data, **how: Any) -> Any:
    found = fastdp.mwem(
        give(data.bits), fastdp.Domain.binary(9), queries(9), epsilon=2.0, delta=1e-6, rng=seeded(), **how
    )
    return found.probabilities()


def tables(give: Any, data: Data, **how: Any) -> Any:
    domain = fastdp.Domain(a=5, b=3, c=4)
    workload = fastdp.marginals(domain, 2)
    found = fastdp.release_marginals(give(data.codes), domain, workload, epsilon=1.0, delta=1e-6, rng=seeded(), **how)
    return np.concatenate([table.reshape(-1) for table in found.tables])


def synthesized(give: Any, data: Data, values: int = 5, **how: Any) -> Any:
    domain = fastdp.Domain(a=values, b=3, c=4)
    made = fastdp.synthesize(give(data.codes), domain, epsilon=1.0, delta=1e-6, rng=seeded(), **how)
    return [*np.concatenate([table.noisy.reshape(-1) for table in made.report.tables]), *made.marginal(["a"])]


def descent(give: Any, data: Data, loss: Any, y: str, **how: Any) -> Any:
    labels = give(getattr(data, y)) if y else None
    how = {"delta": 1e-6, "steps": 12, "over": sets.Ball(2.0), **how}
    X = give(data.points)
    return fastdp.noisy_projected_gradient_descent(X, labels, loss=loss, epsilon=1.0, rng=seeded(), **how).w


def least_squares(give: Any, data: Data, function: Any = fastdp.noisy_least_squares) -> Any:
    loss = losses.SquaredError(x_norm=1, y_bound=1)
    return function(
        give(data.points), give(data.response), loss=loss, over=sets.Ball(2), epsilon=1.0, delta=1e-6, rng=seeded()
    ).w


def net(give: Any, data: Data) -> Any:
    X, y = give(data.points[:, :2].copy()), give(data.side)
    loss, over = losses.Logistic(x_norm=1), sets.Ball(3)
    return fastdp.exponential_erm(X, y, loss=loss, over=over, epsilon=1.0, method="grid", rng=seeded(), spacing=0.2).w


def line(give: Any, data: Data, loss: Any, outside: Any = "clip", **how: Any) -> Any:
    X = give(data.incomes[:, None])
    return fastdp.exponential_erm(
        X, loss=loss, over=sets.Box(0, 1e5), epsilon=0.1, method="exact", outside=outside, rng=seeded(), **how
    ).w


def vectors(give: Any, data: Data, function: Any) -> Any:
    return function(give(data.points), clip=0.5, epsilon=1.0, delta=1e-6, rng=seeded()).value


CASES: dict[str, Call] = {
    "peel": partial(conjunction, k=3),
    "greedy": partial(conjunction, k=3, method="greedy"),
    "counts": partial(conjunction, k=3, method="counts"),
    "exhaustive": partial(conjunction, k=2, method="exhaustive"),
    "guarded": partial(conjunction, k=3, epsilon=0.3, realizable=False),
    "search": partial(conjunction, k=3, method="search"),
    "add-remove": partial(conjunction, k=3, neighbors="add-remove", records=N),
    "tree": tree,
    "tree of numbers": tree_of_numbers,
    "decision list": decision_list,
    "box, grid": partial(box, method="grid", domain_bits=[6, 5]),
    "box of floats, grid": partial(box_of_floats, method="grid"),
    "box, peel": partial(box, method="peel", delta=1e-6, domain_bits=[6, 5]),
    "box, interior points": partial(box, method="interior-point", delta=1e-6, domain_bits=[6, 5]),
    "box, all": partial(box, epsilon=0.02, method="exponential", domain_bits=[6, 5]),
    "box of floats": partial(box_of_floats, method="peel"),
    "box of floats, interior points": partial(box_of_floats, method="interior-point"),
    "median": one_column,
    "quantile": partial(one_column, function=fastdp.quantile, q=0.9),
    "ranges": ranges,
    "quantiles": partial(one_column, function=fastdp.quantiles, qs=(0.1, 0.25, 0.5, 0.9)),
    "interior point": partial(one_column, function=fastdp.interior_point),
    "median of ages": partial(one_column, of="places", domain_bits=6),
    "median of 64 bits": partial(one_column, of="places"),
    "median, clipped": partial(one_column, of="places", domain_bits=4, outside="clip"),
    "finite class": of_class,
    "multiplicative weights": multiplicative_weights,
    "measured answers": measured_online,
    "measured answers, add-remove": partial(measured_online, neighbors="add-remove", prior="marginals"),
    "mwem": partial(fitted, variant="average", rounds=4),
    "mwem, measured": partial(fitted, variant="measured", rounds=3),
    "marginals": tables,
    "statistics": numbers,
    "statistics of records": statistics_of_records,
    "synthesize": synthesized,
    "synthesize, add-remove": partial(synthesized, neighbors="add-remove"),
    "synthesize, rare values": partial(synthesized, values=600),
    "synthesize, network": partial(synthesized, method="network"),
    "logistic": partial(descent, loss=losses.Logistic(x_norm=1), y="side"),
    "hinge": partial(descent, loss=losses.Hinge(x_norm=0.3), y="side", outside="clip"),
    "squared": partial(descent, loss=losses.SquaredError(x_norm=1, y_bound=1), y="response"),
    "medians": partial(descent, loss=losses.AbsoluteDeviation(), y="", noise="laplace", delta=0),
    "least squares": least_squares,
    "private_erm": partial(least_squares, function=fastdp.private_erm),
    "net": net,
    "line, mean": partial(line, loss=losses.SquaredDistance(x_norm=1e5)),
    "line, median": partial(line, loss=losses.AbsoluteDeviation()),
    "line, median, regularised": partial(line, loss=losses.AbsoluteDeviation() + losses.L2(1e-3)),
    "sum": partial(vectors, function=fastdp.vector_sum),
    "mean": partial(vectors, function=fastdp.vector_mean),
}

CUTS = {
    "one": (N,),
    "even": (1000, 1000, 1000, 1000),
    "uneven": (1, 63, 0, 2049, 0, 887, 1000),
    "many": (*(97,) * 41, N - 97 * 41),
}


def same(array: Any) -> Any:
    return array


def chunked(array: Any, cuts: tuple[int, ...] = CUTS["uneven"]) -> Any:
    return da.from_array(array, chunks=(cuts, -1) if array.ndim == 2 else (cuts,))


def equal(one: Any, other: Any) -> None:
    if isinstance(one, tuple):
        assert one == other
    else:
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


@contextmanager
def far_counts(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """As if domains were too large for the counts of all cells."""
    with patch.context() as patched:
        patched.setattr(truth, "_FEW_FAR_CELLS", 1)
        patched.setattr(truth, "_FEW_CELLS", 1)
        patched.setattr(truth, "_A_RECORD", 0.0)
        patched.setattr(marginal_counts, "_HISTOGRAM_CELLS", 1)
        patched.setattr(marginal_counts, "_GROUP_CELLS", 16)
        yield


def frame_of(data: Data) -> Any:
    return pd.DataFrame(
        {
            "income": data.incomes,
            "age": data.places[:, 0],
            "hours": data.places[:, 1].astype(np.int16),
            "place": pd.Categorical.from_codes(data.codes[:, 0], list("vwxyz")),
            "word": np.array(["no", "yes", "perhaps"])[data.codes[:, 1]],
            "in": data.inside.astype(int),
        }
    )


def partitioned(frame: Any, cuts: tuple[int, ...] = CUTS["uneven"]) -> Any:
    """A DataFrame whose partitions Dask knows nothing of but their types."""
    ends = np.cumsum(cuts)
    pieces = [frame.iloc[end - length : end] for end, length in zip(ends, cuts, strict=True)]
    return dd.from_map(lambda i: pieces[i], range(len(cuts)), meta=frame.iloc[:0])
