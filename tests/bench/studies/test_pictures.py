"""Studies take minutes; what they make of their numbers does not: tables and pictures of numbers that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from fastdp.bench.studies import composition, online, risk, samples, utility

ERRORS = {
    (k, d): {method: [samples.Point(n, 0.1, 200 / n) for n in samples.SIZES] for method in samples.CONJUNCTIONS}
    for k in samples.LITERALS
    for d in samples.WIDTHS
}
NEEDS = {
    axis: {(method, delta): [100 * c * c for c in samples.COUNTS] for method, delta in samples.GROWTH[axis]}
    for axis in ("k", "d")
}


def excesses() -> dict[str, tuple[str, risk.Curves]]:
    def curves(places: tuple[float, ...], methods: list[str]) -> risk.Curves:
        return {method: [risk.Point(at, 0.01 / at, 0.1 / at) for at in places] for method in methods}

    every = list(risk.METHODS)
    return {
        "records": ("n", curves((1e3, 1e4), every)),
        "dimensions": ("d", curves((1, 128), every)),
        "privacy": ("epsilon", curves((0.1, 1), every)),
        "breast_cancer": ("epsilon", curves((0.1, 1, 10), risk.DESCENTS)),
    }


def test_tables_of_sample_sizes() -> None:
    lines = samples.tables(ERRORS, NEEDS).splitlines()
    assert lines[0].startswith("| k = 3, d = 100 | n = 1,000 | n = 3,000 |")
    assert lines[2].startswith("| peel | 10 % (20 %) | 10 % (6.7 %) |")
    assert "| peel, delta = 1e-06 | 100 | 1,600 | 25,600 | 409,600 | k^2.00 |" in lines


def test_table_of_excess_risk() -> None:
    lines = risk.table(excesses()).splitlines()
    assert lines[:3] == ["records: excess risk (bound)", "", "| n | 1000 | 10000 |"]
    assert "| descent, Gaussian noise | 1.0e-05 (1.0e-04) | 1.0e-06 (1.0e-05) |" in lines


def test_plans_are_as_many_as_stated_and_come_out_close() -> None:
    plans = list(composition.plans())
    assert len(plans) == 230
    assert all(composition.excess(plan) < 0.002 for plan in plans[::17])


def answers() -> dict[int, online.Curves]:
    curves = {label: [online.Point(k, (0.1 / k, 0.01 / k)) for k in online.QUERIES] for label in online.METHODS}
    return {n: {**curves, 'variant="sharp"': curves['variant="sharp"'][:2]} for n in (5_000, 254_654)}


def test_table_of_online_answers() -> None:
    lines = online.table(answers()).splitlines()
    assert lines[0] == "5,000 records: mean error (largest)"
    assert "| plain noise on each | 1.0e-04 (1.0e-03) | 3.3e-05 (3.3e-04) |" in lines[6]
    assert lines[7].endswith("| 3.3e-05 (3.3e-04) |  |  |  |  |  |")


@pytest.mark.parametrize("study", ["composition", "online", "risk", "samples", "utility"])
def test_pictures_are_drawn_and_the_same_each_time(study: str, tmp_path: Path) -> None:
    paths = [tmp_path / f"{i}.svg" for i in range(2)]
    for path in paths:
        if study == "composition":
            composition.draw(path)
        elif study == "risk":
            risk.draw(excesses(), path)
        elif study == "online":
            online.draw(answers(), path)
        elif study == "samples":
            samples.draw(ERRORS, NEEDS, path)
        else:
            utility.draw({"noise alone": [(0.1, 0.01)] * len(utility.EPSILONS)}, path)
    first, second = (path.read_text() for path in paths)
    assert first.startswith("<?xml")
    assert first == second or study == "utility"  # which writes the date


def test_pictures_are_where_the_documentation_shows_them() -> None:
    for picture in (online.PICTURE, risk.PICTURE, samples.PICTURE, utility.PICTURE):
        assert picture.is_file()
