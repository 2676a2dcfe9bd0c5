"""The page of the course: every name on it is there, and what it corrects is tested where it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import fastdp
from fastdp import Randomness, bounds

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "course.md").read_text(encoding="utf-8")
CORRECTIONS = [line for line in PAGE.partition("## Corrections")[2].splitlines() if line.startswith("| ")][1:]


@pytest.mark.parametrize("row", CORRECTIONS, ids=lambda row: row.split("|")[1].strip())
def test_every_correction_names_its_test(row: str) -> None:
    name, path = re.search(r"\[(test_\w+)\]\(\.\./([\w/.]+)\)", row).groups()
    assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_name_on_the_page_is_there() -> None:
    names = set(re.findall(r"`fastdp\.([\w.]+)", PAGE))
    assert len(names) > 25
    for name in names:
        thing = fastdp
        for part in name.split("."):
            thing = getattr(thing, part)


def test_every_method_and_variant_of_the_lectures_is_named_on_the_page() -> None:
    for choice in (
        "laplace-per-coordinate",
        "average=True",
        'variant="lecture"',
        'variant="average"',
        "interior-point",
    ):
        assert choice in PAGE
    for method in ("elimination", "counts", "greedy", "exhaustive", "interior-point"):
        assert f'method="{method}"' in PAGE


ROOMS = {
    "answering": ('variant="lecture"', 'variant="average"'),
    "optimizing": ('noise="laplace-per-coordinate"', "average=True"),
    "learning": ('method="elimination"', '"counts"', '"greedy"', '"exhaustive"', 'method="interior-point"'),
}


@pytest.mark.parametrize("room", ROOMS)
def test_the_room_and_the_guide_name_the_variants_of_the_lectures(room: str) -> None:
    for page, link in ((f"rooms/{room}.md", "../course.md"), ("guide.md", "course.md")):
        paragraphs = (ROOT / "docs" / page).read_text(encoding="utf-8").split("\n\n")
        assert any(f"]({link}" in text and all(choice in text for choice in ROOMS[room]) for text in paragraphs), page


LECTURES = {each[:2]: each for each in re.split(r"^## Lecture ", PAGE, flags=re.MULTILINE)[1:]}
THEOREMS = {  # the functions of `bounds`, with their inverses
    "9:": {"exponential_mechanism_over_ball": ("_n", "_epsilon")},
    "10": {
        "projected_gradient_descent": ("_steps",),
        "noisy_projected_gradient_descent": ("_n", "_epsilon"),
        "vector_sum_error": ("_epsilon",),
        "vector_mean": ("_n", "_epsilon"),
    },
    "12": {"learn_conjunction": ("_n",), "learn_box": ("_n",), "population_error": ("_n",)},
    "13": {"private_multiplicative_weights": ("_n",)},
}


@pytest.mark.parametrize("lecture", THEOREMS)
def test_every_theorem_has_a_function_that_its_lecture_names_and_calls(lecture: str) -> None:
    text = LECTURES[lecture]
    calls = "".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))
    for name, inverses in THEOREMS[lecture].items():
        assert f"fastdp.bounds.{name}" in text
        for each in (name, *(name + inverse for inverse in inverses)):
            assert callable(getattr(bounds, each))
            assert f"bounds.{each}(" in calls
        assert all(re.search(rf"`(fastdp\.bounds\.{name}|\.\.\.){inverse}`", text) for inverse in inverses)


def test_every_function_in_the_tables_is_called_in_the_blocks() -> None:
    tables = "".join(line for line in PAGE.splitlines() if line.startswith("|"))
    blocks = "".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE))
    for name in set(re.findall(r"`fastdp\.([\w.]+)", tables)):
        assert f"{name}(" in blocks or f"{name}." in blocks or name == "SyntheticDistribution", name  # `.synthetic`


def test_the_notes_number_the_theorems_of_the_descent_as_the_course_does() -> None:
    note = (ROOT / "fastdp" / "optimizing" / "descent.md").read_text(encoding="utf-8")
    headings = [line for line in note.splitlines() if line.startswith("## ") and "[lecture" in line]
    assert [re.findall(r"Theorem \d", line) for line in headings] == [
        ["Theorem 2", "Theorem 2"],
        ["Theorem 3", "Theorem 2"],
        ["Theorem 4", "Theorem 1", "Theorem 3"],
    ]
    for number in ("Theorem 1", "Theorem 2", "Theorem 3"):
        assert f"| {number}: " in LECTURES["10"]
    assert "the lecture's Theorem 1" in bounds.projected_gradient_descent.__doc__
    assert "the lecture's Theorem 3" in bounds.noisy_projected_gradient_descent.__doc__


def test_the_drop_of_the_potential() -> None:
    """KL(X || Xh) falls by eta g - eta^2 / 8 at least, and not always by eta g."""
    draw, less = np.random.default_rng(1), 0
    for _ in range(500):
        X, Xh = draw.dirichlet(np.full(6, 0.5), 2) + 1e-9
        X, Xh, f = X / X.sum(), Xh / Xh.sum(), draw.permutation([0, 1, *draw.integers(0, 2, 4)])
        gap = float(f @ X - f @ Xh)
        eta = float(draw.uniform(0.01, 1.0))
        after = Xh * np.exp(np.sign(gap) * eta * f)
        drop = float(X @ np.log(after / after.sum() / Xh))
        assert drop >= eta * abs(gap) - eta**2 / 8 - 1e-12
        less += drop < eta * abs(gap) - 1e-12
    assert less == 500
    for alpha in (0.01, 0.1, 0.9):  # the lecture's rate, at the least gap that its test lets through
        assert alpha / 8 * alpha / 4 - (alpha / 8) ** 2 / 8 >= alpha**2 / 64


def test_the_logarithm_stands_outside_of_the_root() -> None:
    """The largest of k Laplace noises grows like ln(k / beta): doubling the logarithm doubles the error."""
    few, many = (bounds.laplace(sensitivity=1, epsilon=0.01, beta=0.05, count=k) for k in (500, 5_000_000))
    assert many / few == pytest.approx(np.log(5_000_000 / 0.05) / np.log(500 / 0.05), rel=0.02)
    assert many / few > 1.9
    n, larger = (
        bounds.private_multiplicative_weights_n(fastdp.Domain.binary(8), alpha=0.2, epsilon=1.0, max_queries=k)
        for k in (10**2, 10**8)
    )
    assert larger / n > 1.5  # the root of the same logarithms: below 1.35


def test_an_inner_box_errs_on_positives() -> None:
    draw, rng = np.random.default_rng(2), Randomness(seed=2)
    people = draw.integers(0, 128, size=(20_000, 2))
    inside = ((people >= 18) & (people <= 90)).all(axis=1)
    missed = 0
    for _ in range(5):
        box = fastdp.learn_box(people, inside, domain_bits=7, method="interior-point", epsilon=1.0, rng=rng)
        found = box.predict(people).astype(bool)
        assert not (found & ~inside).any()
        missed += int((inside & ~found).sum())
    assert missed > 0
