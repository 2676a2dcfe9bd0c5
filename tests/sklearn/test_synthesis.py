"""Synthetic records."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from fastdp import DomainError
from fastdp.sklearn import (
    MWEMSynthesizer,
)
from tests.sklearn.cases import RNG, N


def test_synthetic_records_have_the_tables_of_the_real_ones() -> None:
    age = RNG.integers(18, 80, size=N)
    X = np.column_stack([age, age + RNG.integers(0, 10, size=N), RNG.integers(0, 2, size=N)]).astype(float)
    bounds = ([15, 15, -0.5], [95, 95, 1.5])
    model = MWEMSynthesizer(1.0, 1e-6, bounds=bounds, bins=8, random_state=0).fit(X)
    records = model.sample(N, random_state=1)
    assert records.shape == (N, 3)
    assert np.corrcoef(records[:, :2].T)[0, 1] > 0.9
    assert abs(records[:, 0].mean() - X[:, 0].mean()) < 2
    assert set(np.unique(records[:, 0])) <= set(15 + 10 * (np.arange(8) + 0.5))
    table = np.histogram2d(X[:, 0], X[:, 1], bins=8, range=[(15, 95)] * 2)[0] / N
    assert np.abs(model.distribution_.marginal(["x0", "x1"]) - table).sum() < 0.05
    assert (model.transform(X)[:, 0] == np.minimum((X[:, 0] - 15) // 10, 7)).all()
    uniform = MWEMSynthesizer(1e-6, 1e-6, bounds=bounds, bins=8, rounds=1, variant="average", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        uniform.fit(X)
    assert model.score(X) > uniform.score(X) + 1
    cells = model.domain_.cells(list(model.transform(X).T))
    volume = 10 * 10 * 0.25
    assert model.score(X) == pytest.approx(np.log(model.distribution_.probabilities()[cells] / volume).mean())


def test_synthetic_labels() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"region": RNG.choice(["north", "south"], size=N, p=[0.8, 0.2]), "age": RNG.integers(0, 4, size=N)}
    )
    domain = {"age": 4, "region": ["south", "north"]}
    model = MWEMSynthesizer(1.0, 1e-6, domain=domain, random_state=0).fit(frame)
    assert model.feature_names_in_.tolist() == ["region", "age"]  # and so the domain goes
    records = model.sample(N, random_state=0)
    assert records.shape == (N, 2)
    assert abs(np.mean(records[:, 0] == "north") - 0.8) < 0.03
    assert model.transform(frame[:2]).tolist() == [
        [["south", "north"].index(region), age] for region, age in frame[:2].itertuples(index=False)
    ]
    assert model.score(frame) == pytest.approx(
        np.log([model.distribution_.marginal(["region", "age"])[tuple(row)] for row in model.transform(frame)]).mean()
    )
    with pytest.raises(ValueError, match="must be named as the columns"):
        clone(model).fit(frame.rename(columns={"age": "years"}))
    with pytest.raises(ValueError, match="2 attributes: must be 3"):
        clone(model).fit(np.zeros((5, 3), int))
    with pytest.raises(DomainError, match="'region': must hold the labels of the domain only") as refused:
        clone(model).fit(frame.replace("south", "SECRET"))
    assert "SECRET" not in str(refused.value)
