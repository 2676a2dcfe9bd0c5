"""Deviations of released tables: exact for least squares, measured for fits; as `answer` and `to_frame` show them."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import Conjunction, Domain, Mask, Product, Randomness, marginals
from fastdp.answering import simulated_fits

DOMAIN = Domain(a=3, b=["x", "y", None], c=4, d=1)
RECORDS = np.random.default_rng(7).integers(0, [3, 3, 4, 1], (4000, 4)) // [1, 2, 1, 1]
COLUMNS = dict(zip("abcd", RECORDS.T, strict=True)) | {"b": np.array(["x", "y", None])[RECORDS[:, 1]]}


def released(seed: int = 1, **options: Any) -> Any:
    given: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "rng": Randomness(seed=seed)} | options
    return fastdp.release_marginals(COLUMNS, DOMAIN, marginals(DOMAIN, 2), **given)


@pytest.mark.parametrize(
    ("fit", "allocation"), [("least-squares", "planned"), ("least-squares", "equal"), (None, "auto")]
)
@pytest.mark.parametrize("neighbors", ["add-remove", "replace-one"])
def test_answers_have_the_deviation_that_is_stated(fit: Any, allocation: Any, neighbors: Any) -> None:
    """150 releases, squares over their variance within 5 standard deviations: false alarm below 1e-6 a query."""
    queries = [Conjunction({"a": 1, "b": "x"}), Product({"a": [0, 1], "c": [1, 2, 3]}), Conjunction({"c": 2})]
    masks = [
        (RECORDS[:, 0] == 1) & (RECORDS[:, 1] == 0),
        (RECORDS[:, 0] < 2) & (RECORDS[:, 2] > 0),
        RECORDS[:, 2] == 2,
    ]
    ratios: list[list[float]] = [[], [], []]
    for seed in range(150):
        made = released(seed, fit=fit, allocation=allocation, neighbors=neighbors, noise="gaussian")
        for found, query, mask in zip(ratios, queries, masks, strict=True):
            value, deviation = made.answer(query, deviation=True)
            assert value == made.answer(query)
            found.append(((value * made.n - mask.sum()) / (deviation * made.n)) ** 2)
    for found in ratios:
        assert abs(np.mean(found) - 1) < 5 * math.sqrt(2 / 150)


def test_a_cell_of_a_table_and_its_query_have_one_deviation() -> None:
    for fit in ("least-squares", None):
        made = released(fit=fit)
        for names, deviation in zip(made.workload.subsets, made.deviation, strict=True):
            assert deviation.shape == made.table(names).shape
            first = {name: (DOMAIN.labels[DOMAIN.names.index(name)] or [0])[0] for name in names}
            assert made.answer(Conjunction(first), deviation=True)[1] == pytest.approx(deviation.flat[0])
    everything = made = released(fit="least-squares").answer(Product({"a": [0, 1, 2]}), deviation=True)
    assert everything[0] == pytest.approx(1)
    assert everything[1] == pytest.approx(0, abs=1e-12)
    assert "deviation=" in repr(released(fit="least-squares"))


def test_fits_are_simulated_in_public() -> None:
    made = released(fit="entropic")
    again = pickle.loads(pickle.dumps(made))
    assert [one.tobytes() for one in made.deviation] == [one.tobytes() for one in again.deviation]
    exact = released(fit="least-squares").deviation
    typical = [math.sqrt(float(np.mean(one**2))) for one in made.deviation]
    for mine, unbiased in zip(typical[:3], exact[:3], strict=True):
        assert 0.05 * unbiased.flat[0] < mine < 1.3 * unbiased.flat[0]
    value, deviation = made.answer(Mask(np.arange(DOMAIN.size) % 2 == 0), deviation=True)
    assert 0 < value < 1
    assert 0 < deviation < 0.1
    assert "before the fit" in repr(made)


def test_what_is_measured_is_about_what_there_is() -> None:
    """The errors of 12 releases against the deviation of the first: within a factor of 1.6, all cells together."""
    first, errors = released(fit="entropic"), []
    exact = {names: np.zeros([DOMAIN.sizes[DOMAIN.names.index(name)] for name in names]) for name in "a" for names in
             first.workload.subsets}  # fmt: skip
    for names, table in exact.items():
        np.add.at(table, tuple(RECORDS[:, DOMAIN.names.index(name)] for name in names), 1 / len(RECORDS))
    for seed in range(12):
        made = released(seed + 50, fit="entropic")
        errors += [((made.table(names) - table) ** 2).sum() for names, table in exact.items()]
    stated = sum(float((one**2).sum()) for one in first.deviation)
    assert 1 / 1.6 < math.sqrt(sum(errors) / 12 / stated) < 1.6


def test_no_room_for_a_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    made = released(fit="entropic")
    monkeypatch.setattr(simulated_fits, "usable_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"^deviation: 8 fits of 36 cells need .*: must be at most .*; fit='least-sq"):
        _ = made.deviation


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("fit", ["entropic", "least-squares", None])
def test_a_table_as_a_data_frame(fit: Any, library: Any) -> None:
    pytest.importorskip(library)
    made = released(fit=fit)
    frame = made.to_frame(["b", "a"], library=library)
    columns = {"pandas": lambda: list(frame), "polars": lambda: frame.columns, "pyarrow": lambda: frame.column_names}
    assert columns[library]() == ["b", "a", "fraction", "deviation"]
    table = made.table(["b", "a"])
    assert np.asarray(frame["fraction"]).tolist() == table.reshape(-1).tolist()
    assert np.asarray(frame["a"]).tolist() == [0, 1, 2] * 3
    assert (np.asarray(frame["deviation"]) > 0).all()
    unbiased = made.to_frame(["a"], library=library, unbiased=True)
    assert np.asarray(unbiased["fraction"]).tolist() == made.table(["a"], unbiased=True).tolist()


def test_bad_input() -> None:
    made = released(fit="least-squares")
    with pytest.raises(ValueError, match=r"^deviation=1: must be True or False"):
        made.answer(Conjunction({"a": 1}), deviation=1)
    with pytest.raises(ValueError, match=r"^names=\['a', 'b', 'c'\]: must be among the attributes of one table"):
        made.to_frame(["a", "b", "c"])
    with pytest.raises(ValueError, match=r"^library='excel': must be one of"):
        made.to_frame(["a"], library="excel")
    named = Domain(fraction=2, b=2)
    other = fastdp.release_marginals(np.zeros((9, 2), int), named, [["fraction", "b"]], epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match=r"^names: must not have an attribute called 'fraction' for a data frame"):
        other.to_frame(["fraction"])
