"""Replays of pipelines of users: what is wrong is found, named and located; what is right is not."""

from __future__ import annotations

import contextvars
import threading
import warnings
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import statistics
from fastdp.audit import replay
from fastdp.randomness import rehearsal
from fastdp.randomness.charged_keys import ChargedKeys
from fastdp.randomness.noise_draws import integer_noise
from fastdp.randomness.noise_plans import laplace_plan
from fastdp.support.errors import PrivacyWarning

AGES = np.array([23, 35, 62, 47, 51, 38, 29, 44, 70, 18])
OTHER = AGES.copy()
OTHER[4] = 99
TABLE = np.random.default_rng(3).uniform(-1, 1, (50, 2))
FAR = TABLE.copy()
FAR[7] = [40.0, -40.0]

pytestmark = pytest.mark.filterwarnings("ignore::fastdp.PrivacyWarning", "ignore::fastdp.AccuracyWarning")


def kinds(run: Any, data: Any = AGES, other: Any = OTHER, **more: Any) -> set[str]:
    return {finding.kind for finding in replay(run, data, other, **more).findings}


def test_a_pipeline_that_is_private() -> None:
    def run(ages: Any) -> Any:
        with fastdp.Budget(epsilon=2.0) as budget:
            old = fastdp.laplace(int((ages > 60).sum()), sensitivity=1, epsilon=0.5)
            middle = fastdp.median(ages, domain_bits=7, epsilon=0.5)
            more = [fastdp.laplace(i, sensitivity=1, epsilon=0.25) for i in range(2 if old > 2 else 1)]
            counts = statistics.histogram(ages, [0, middle, 128], epsilon=0.5)
        return old, middle, more, counts, budget.spent

    found = replay(run, AGES, OTHER)
    assert found.passed
    assert found.releases == len({read.release for read in found.reads}) >= 4
    assert found.guarantee is not None
    assert found.guarantee.seeded
    assert found.verdict.startswith("No finding")
    assert "does not prove privacy" in found.verdict


# --- what users do wrong


def scaled_by_its_own(table: Any) -> Any:
    spread = np.abs(table).max(axis=0)
    return fastdp.vector_sum(table / spread, clip=2.0, epsilon=1.0, delta=1e-6).value


def bounds_from_records(ages: Any) -> Any:
    return statistics.mean(ages, bounds=(ages.min(), ages.max()), epsilon=1.0)


def a_count_moves_by_two(ages: Any) -> Any:
    decades = np.bincount(ages // 10, minlength=10)
    return fastdp.laplace(decades, sensitivity=1, epsilon=1.0)


def not_clipped(ages: Any) -> Any:
    return fastdp.gaussian(float(ages.sum()), sensitivity=10.0, rho=0.5)


def a_draw_that_depends(ages: Any) -> Any:
    found = fastdp.laplace(3, sensitivity=1, epsilon=1.0)
    return found + (fastdp.laplace(0, sensitivity=1, epsilon=1.0) if ages.max() > 90 else 0)


def a_size_of_a_part(ages: Any) -> Any:
    part = ages[ages > 55]
    return float(statistics.sum(part, bounds=(0, 100), epsilon=1.0, neighbors="add-remove")) / len(part)


def a_choice_without_noise(ages: Any) -> Any:
    best = int(np.bincount(ages // 10, minlength=10).argmax())
    return best, int(ages[-1] + ages[4])


def an_unpaid_choice(ages: Any) -> Any:
    largest = int(np.abs(ages - 50).argmax())  # which of ten questions is asked
    return fastdp.laplace(int(ages[largest] > 60), sensitivity=1, epsilon=1.0), largest


def prices_from_records(ages: Any) -> Any:
    return fastdp.laplace(3, sensitivity=1, epsilon=0.5 if ages.max() > 90 else 1.0)


def as_many_as_there_are(ages: Any) -> Any:
    return fastdp.laplace(np.bincount(ages), sensitivity=2, epsilon=1.0)


def fails_on_some(ages: Any) -> Any:
    if ages.max() > 90:
        raise KeyError("nobody is so old")
    return fastdp.laplace(3, sensitivity=1, epsilon=1.0)


def keys_of_all(ages: Any) -> Any:
    groups = {int(age) // 10 for age in ages}
    return {group: fastdp.laplace(3, sensitivity=1, epsilon=1.0) for group in range(3)} | {"groups": sorted(groups)}


def monotonic_that_is_not(ages: Any) -> Any:
    return fastdp.exponential_mechanism(np.bincount(ages, minlength=128), sensitivity=1, epsilon=1.0, monotonic=True)


WRONG = {
    scaled_by_its_own: {"records"},
    bounds_from_records: {"parameters", "statistic"},
    a_count_moves_by_two: {"statistic", "price"},
    not_clipped: {"statistic", "price"},
    a_draw_that_depends: {"order"},
    a_size_of_a_part: {"result"},
    a_choice_without_noise: {"result"},
    an_unpaid_choice: {"result"},
    prices_from_records: {"charge", "parameters"},
    as_many_as_there_are: {"shape"},
    fails_on_some: {"exception"},
    keys_of_all: {"shape", "result"},
    monotonic_that_is_not: {"price"},
}


@pytest.mark.parametrize("run", WRONG, ids=lambda run: run.__name__)
def test_what_is_wrong_is_found(run: Any) -> None:
    data = (TABLE, FAR) if run is scaled_by_its_own else (AGES, OTHER)
    found = replay(run, *data)
    assert not found.passed
    assert found.verdict.startswith("NOT PRIVATE")
    seen = {each.kind for each in found.findings}
    assert seen & WRONG[run], found
    assert all(str(each) and each.text for each in found.findings)


def test_records_that_all_change_are_counted() -> None:
    def run(table: Any) -> Any:
        standard = (table - table.mean(axis=0)) / table.std(axis=0)
        ball = fastdp.sets.Ball(1.0)
        loss = fastdp.losses.Logistic(x_norm=1.0)
        return fastdp.private_erm(
            standard, np.ones(50), loss=loss, over=ball, epsilon=1.0, delta=1e-6, outside="clip"
        ).w

    (finding,) = [each for each in replay(run, TABLE, FAR).findings if each.kind == "records"]
    assert finding.text.startswith("50 of the records")


# --- mutants of a mechanism: what its own tests have to find


def mechanism(counts: Any, *, scale: float = 2.0, epsilon: float = 1.0, draws: int = 1) -> Any:
    """A histogram as a room of fastdp would write it, of records under replace-one."""
    plan, guarantee = laplace_plan(scale / epsilon), fastdp.PureDP(epsilon)
    with ChargedKeys("mutant", guarantee, {"epsilon": epsilon}, None, None) as keys:
        for _ in range(draws):
            read = keys.reads(np.asarray(counts), plan)
            noisy = read + integer_noise(plan, keys.take(), read.size)
        return noisy


def decades(ages: Any) -> Any:
    return np.bincount(ages // 10, minlength=10)


MUTANTS = {
    "sensitivity 1 for counts of which a replacement moves two": (lambda a: mechanism(decades(a), scale=1.0), "price"),
    "half of the noise": (lambda a: mechanism(decades(a) // 1, scale=1.0, epsilon=1.0), "price"),
    "a second draw that nobody pays": (lambda a: mechanism(decades(a), draws=2), "price"),
    "draws by the data": (lambda a: mechanism(decades(a), draws=1 + int(a.max() > 90), epsilon=9.0), "order"),
    "cells by the data": (lambda a: mechanism(np.bincount(a // 10)), ""),
    "a price by the data": (lambda a: mechanism(decades(a), epsilon=1.0 + (a.max() > 90)), "charge"),
}


def test_the_mechanism_without_a_change_passes() -> None:
    assert kinds(lambda a: mechanism(decades(a))) == set()


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_found(name: str) -> None:
    run, kind = MUTANTS[name]
    found = kinds(run)
    assert kind in found if kind else found


def test_gaussian_noise_is_priced_by_rho() -> None:
    from fastdp.randomness.noise_plans import gaussian_plan

    def run(ages: Any, sigma: float) -> Any:
        plan = gaussian_plan(sigma)
        with ChargedKeys("mutant", fastdp.ZCDP(0.5), {}, None, None) as keys:
            counts = keys.reads(decades(ages), plan)
            return counts + integer_noise(plan, keys.take(), counts.size)

    assert kinds(lambda a: run(a, 2.0**0.5)) == set()  # two counts move: 2 / (2 sigma^2) = 0.5
    assert kinds(lambda a: run(a, 1.3)) == {"price"}


# --- it changes nothing, and cannot be left on


def test_releases_of_a_replay_say_that_they_are_seeded() -> None:
    seen = []

    def run(ages: Any) -> Any:
        release = statistics.count(ages.astype(float), epsilon=1.0)
        seen.append((release.seeded, release.value, fastdp.Randomness().words(2).tolist()))
        return release

    assert replay(run, AGES, OTHER).passed
    first, second = seen
    assert first == second
    assert first[0]
    release = run(AGES)
    assert not release.seeded
    assert seen[2][2] != first[2]


def test_it_warns_every_time_and_ends() -> None:
    for _ in range(2):
        with pytest.warns(PrivacyWarning, match="made up"):
            replay(lambda ages: fastdp.laplace(1, sensitivity=1, epsilon=1.0), AGES, OTHER)
        assert rehearsal.listener() is None
    with pytest.raises(ZeroDivisionError):
        replay(lambda ages: 1 // 0, AGES, OTHER)
    assert rehearsal.listener() is None
    assert not rehearsal.open_rehearsals


def test_other_threads_and_contexts_are_not_heard() -> None:
    seen: list[bool] = []

    def elsewhere() -> None:
        seen.append(statistics.count(AGES.astype(float), epsilon=1.0).seeded)

    def run(ages: Any) -> Any:
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        contextvars.Context().run(elsewhere)
        return fastdp.laplace(1, sensitivity=1, epsilon=1.0)

    assert replay(run, AGES, OTHER).releases == 1
    assert seen == [False] * 4


def test_a_context_that_outlives_a_replay_is_not_heard_by_another() -> None:
    """A task, say, that goes on after the replay in which it was made."""
    kept: list[contextvars.Context] = []
    seen: list[bool] = []

    def keeping(ages: Any) -> Any:
        kept.append(contextvars.copy_context())
        return fastdp.laplace(1, sensitivity=1, epsilon=1.0)

    def another(ages: Any) -> Any:
        seen.append(kept[0].run(lambda: statistics.count(AGES.astype(float), epsilon=1.0).seeded))
        return fastdp.laplace(1, sensitivity=1, epsilon=1.0)

    replay(keeping, AGES, OTHER)
    assert replay(another, AGES, OTHER).releases == 1
    assert seen == [False] * 2


def test_a_replay_inside_of_a_replay_is_refused() -> None:
    with pytest.raises(RuntimeError, match="replayed here already"):
        replay(lambda ages: replay(len, ages, ages), AGES, OTHER)


def test_budgets_are_charged_as_ever() -> None:
    def run(ages: Any) -> Any:
        return fastdp.laplace(1, sensitivity=1, epsilon=0.5)

    with fastdp.Budget(epsilon=1.0) as budget:
        assert replay(run, AGES, OTHER).passed
        with pytest.raises(fastdp.BudgetExceeded):
            replay(run, AGES, OTHER)
    assert budget.left.epsilon == 0
    assert all(release.guarantee.seeded for release in budget.releases)


def test_what_no_mechanism_states_is_listed() -> None:
    def run(ages: Any) -> Any:
        with ChargedKeys("silent", fastdp.PureDP(1.0), {}, None, None) as keys:
            return int(ages.sum()) + int(integer_noise(laplace_plan(100.0), keys.take(), 1)[0])

    found = replay(run, AGES, OTHER)
    assert found.not_followed == ("what release 1, silent, reads: what it returns may have changed",)


# --- what it looks like


def test_a_report_reads_and_draws() -> None:
    found = replay(not_clipped, AGES, OTHER)
    assert "sensitivity=10" in repr(found)
    assert found.svg().startswith("<svg")
    assert "#d7263d" in found.svg()
    html = found._repr_html_()
    assert "<table>" in html
    assert html.endswith("</svg>")
    assert found.to_dict()["passed"] is False
    assert found.to_dict()["findings"][0]["kind"] == "statistic"
    quiet = replay(lambda ages: fastdp.laplace(1, sensitivity=1, epsilon=1.0), AGES, OTHER)
    assert "#d7263d" not in quiet.svg()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"run": 3}, "run=3: must be a function of the records"),
        ({"seed": -1}, "seed=-1: must be an integer >= 0"),
        ({"neighbors": "any"}, "neighbors='any': must be one of 'replace-one', 'add-remove'"),
    ],
)
def test_bad_input(given: dict[str, Any], message: str) -> None:
    arguments = {"run": len, "data": AGES, "neighbor": OTHER} | given
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(")):
        replay(**arguments)


def test_add_remove() -> None:
    def run(ages: Any) -> Any:
        return statistics.sum(ages, bounds=(0, 100), epsilon=1.0, neighbors="add-remove")

    assert kinds(run, AGES, AGES[1:], neighbors="add-remove") == set()
    assert kinds(lambda a: statistics.sum(a, bounds=(0, 100), epsilon=1.0), AGES, AGES[1:], neighbors="add-remove")
    assert kinds(run) == set(), "a replacement costs twice that, and may move twice as far"


def test_nothing_is_released() -> None:
    assert replay(lambda ages: 3, AGES, OTHER).verdict.startswith("Nothing was released")
    assert kinds(lambda ages: float(ages.mean())) == {"result"}


def test_the_same_rng_of_outside_is_replayed_too() -> None:
    rng = fastdp.Randomness(seed=7)
    with warnings.catch_warnings():
        assert replay(
            lambda ages: fastdp.laplace(int((ages > 60).sum()), sensitivity=1, epsilon=1.0, rng=rng), AGES, OTHER
        ).passed
