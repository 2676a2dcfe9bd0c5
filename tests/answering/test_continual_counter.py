"""ContinualCounter: sums, price, one counter only, bad input."""

from __future__ import annotations

import copy
import math
import multiprocessing
import pickle
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import ContinualCounter, Randomness, bounds
from fastdp.answering import continual_counter
from fastdp.answering.continual_counter import plan_of, values_of
from fastdp.answering.running_sums import CorrelatedNoise, mixture_for
from fastdp.privacy.calibration import zcdp_rho
from fastdp.support import processes
from tests import laws
from tests.oracles import running_sums as oracle


def counter(seed: int = 1, **options: Any) -> ContinualCounter:
    return ContinualCounter(**{"rho": 0.5, "rng": Randomness(seed=seed)} | options)


def powers(length: int | None) -> list[tuple[int, Fraction]]:
    return [(e, Fraction(w, 2 ** (11 + s))) for e, s, w in zip(*mixture_for(length), strict=True)]


# --- sums


@pytest.mark.parametrize("length", [5000, None])
@pytest.mark.parametrize(
    ("limits", "kind"), [(None, "i"), ((-3, 8), "i"), ((-0.5, 0.25), "f"), ((10**18, 10**18 + 1), "i")]
)
def test_an_answer_is_the_exact_sum_and_noise_that_does_not_depend_on_it(limits: Any, kind: str, length: Any) -> None:
    low, high = limits or (0, 1)
    rng = np.random.default_rng(3)
    values = rng.integers(low, high + 1, 60).tolist() if kind == "i" else rng.uniform(low, high, 60).tolist()
    given = counter(length=length, bounds=limits)
    plan = plan_of(length, (0.5, None), values_of(limits, None, None, "replace-one"))
    noise = CorrelatedNoise(plan, Randomness(seed=1).key()).take(60)[:, 0].tolist()
    total = 0
    for t, value in enumerate(values):
        total += round(Fraction(value) * Fraction(2) ** plan.bits)
        assert given.add(value) == float(Fraction(total + noise[t]) / Fraction(2) ** plan.bits)
    assert given.steps == 60


def test_steps_one_by_one_and_at_once_are_the_same() -> None:
    values = np.random.default_rng(0).random(7000)
    one, mixed = counter(length=7000), counter(length=7000)
    expected = [one.add(value) for value in values.tolist()]
    found = [*mixed.add_many(values[:100]), *map(mixed.add, values[100:130].tolist()), *mixed.add_many(values[130:])]
    assert found == expected
    assert mixed.add_many([]).shape == (0,)
    assert mixed.steps == one.steps == 7000


@pytest.mark.parametrize("value", [1, True, 1.0, np.int8(1), np.float32(1), np.bool_(True), np.array(1), [1][0]])
def test_numbers_of_any_type_are_numbers(value: Any) -> None:
    assert counter().add(value) == counter().add(1)


@pytest.mark.parametrize("limits", [(0, 1e100), (-1e200, 1e200), (0, 2e-200), (-1e30, 0)])
def test_bounds_of_any_size(limits: Any) -> None:
    one, many = counter(bounds=limits), counter(bounds=limits)
    values = [limits[0], limits[1], (limits[0] + limits[1]) / 2, 0]
    assert [one.add(value) for value in values] == [many.add_many([value])[0] for value in values[:3]] + [many.add(0)]
    assert 0 < one.deviation() < 10 * (limits[1] - limits[0])


def test_a_counter_that_was_interrupted_before_its_first_answer_can_be_handed_on() -> None:
    given = counter()
    given._refill()
    assert pickle.loads(pickle.dumps(given)).steps == 0
    with pytest.raises(TypeError, match="does not copy"):
        counter().__getstate__()


def test_vectors_have_noise_of_their_own_in_each_coordinate() -> None:
    rows = np.random.default_rng(0).normal(size=(3000, 3))
    rows /= np.linalg.norm(rows, axis=1)[:, None] * 1.000001
    one, many = (counter(dimension=3, norm=1.0, length=3000) for _ in range(2))
    expected = [one.add(row) for row in rows[:40]]
    found = many.add_many(rows)
    assert np.array_equal(found[:40], expected)
    off = found - np.cumsum(rows, axis=0)
    assert np.abs(np.corrcoef(off[::50].T) - np.eye(3)).max() < 0.9
    assert np.abs(off[-1]).max() < 6 * one.deviation(3000)


def test_sums_that_leave_int64_stay_exact() -> None:
    """Bounds that lie far from zero beside their distance."""
    low = 2**70
    given = counter(bounds=(low, low + 1))
    answers = [given.add(low), *given.add_many([float(low)] * 3)]
    assert answers == pytest.approx([low, 2 * low, 3 * low, 4 * low], rel=1e-12)


# --- the price


def distance(low: float, high: float, neighbors: str, length: int = 30) -> float:
    """The largest distance of the noises that explain the same answers on two neighbours, by fractions."""
    inverse = oracle.solved(oracle.coefficients(powers(length), length), [1] * length)
    moved = high - low if neighbors == "replace-one" else max(abs(low), abs(high))
    return moved * math.sqrt(sum(float(r) ** 2 for r in inverse))


@pytest.mark.parametrize("limits", [(0, 1), (-1, 1), (-2.5, 0.5), (3, 4)])
@pytest.mark.parametrize("neighbors", ["replace-one", "add-remove"])
def test_noise_is_what_the_relation_asks_for(limits: tuple[float, float], neighbors: Any) -> None:
    plan = plan_of(30, (0.5, None), values_of(limits, None, None, neighbors))
    needed = distance(*limits, neighbors)
    assert 1 <= plan.noise.sigma * plan.grid / needed < 1.001  # sigma is the distance at rho = 1/2


def test_replacement_priced_as_removal_is_too_cheap() -> None:
    """Numbers between -1 and 1: removal moves a sum by 1, replacement by 2."""
    removal = plan_of(30, (0.5, None), values_of((-1, 1), None, None, "add-remove"))
    assert removal.noise.sigma * removal.grid < 0.51 * distance(-1, 1, "replace-one")


@pytest.mark.parametrize(("neighbors", "times"), [("replace-one", 2), ("add-remove", 1)])
def test_vectors_on_the_grid_move_as_far_as_is_paid_for(neighbors: Any, times: int) -> None:
    values = values_of(None, 7, 0.3, neighbors)
    plan = plan_of(50, (0.5, None), values)
    values.on_grid(plan.bits)
    assert times * values.most <= float(values.moved) * 2**plan.bits + float(values.rounded)
    rng = np.random.default_rng(1)
    for _ in range(200):
        x = rng.normal(size=7)
        units = values.one(x * (0.3 / np.linalg.norm(x) * (1 - 2.0**-50)))
        assert sum(int(u) ** 2 for u in units) <= values.most**2


@pytest.mark.parametrize("norm", [0.3, 1.0, 1e-100, 1e100])
def test_norms_are_decided_exactly(norm: float) -> None:
    """Vectors a hair inside and outside, which floats cannot tell: what is let through is within what is paid for."""
    values = values_of(None, 5, norm, "replace-one")
    plan = plan_of(50, (0.5, None), values)
    values.on_grid(plan.bits)
    rng = np.random.default_rng(2)
    refused = 0
    for hair in (-(2.0**-45), -(2.0**-53), 0.0, 2.0**-52, 2.0**-30, 2.0**-8, 1.0):
        x = rng.normal(size=5)
        x *= norm / np.linalg.norm(x) * (1 + hair)
        try:
            units = values.one(x).tolist()
            assert values.many([x])[0].tolist() == units
            assert sum(u * u for u in units) <= values.most**2
        except fastdp.DomainError:
            refused += 1
            assert hair > 0
    assert 1 <= refused <= 4


def test_one_charge_for_all_steps() -> None:
    with fastdp.Budget(epsilon=10.0, delta=1e-6, theorem="zcdp") as budget:
        given = ContinualCounter(rho=0.25, length=100)
        given.add_many(np.ones(100))
    (row,) = budget.releases
    assert (row.mechanism, dict(row.parameters)) == ("ContinualCounter", {"rho": 0.25, "length": 100})
    assert row.guarantee == given.guarantee == fastdp.ZCDP(0.25)
    assert math.sqrt(2 * 0.25) <= given.guarantee.mu < 1.001 * math.sqrt(2 * 0.25)
    with fastdp.Budget(epsilon=0.01, delta=1e-9, theorem="zcdp"), pytest.raises(fastdp.BudgetExceeded):
        ContinualCounter(rho=0.25)
    assert counter(neighbors="add-remove").guarantee.neighbors == "add-remove"


def test_an_epsilon_and_a_delta_instead_of_rho() -> None:
    with fastdp.Budget(epsilon=2.0, delta=1e-5) as budget:
        given = ContinualCounter(epsilon=1.0, delta=1e-6, length=50)
    assert dict(budget.releases[0].parameters) == {"epsilon": 1.0, "delta": 1e-6, "length": 50}
    assert repr(given).startswith("ContinualCounter(epsilon=1.0, delta=1e-06, length=50, bounds")
    by_rho = ContinualCounter(rho=zcdp_rho(1.0, 1e-6), length=50)
    assert 0.9 * by_rho.deviation() < given.deviation() < 0.95 * by_rho.deviation()  # the analytic curve is better
    assert pickle.loads(pickle.dumps(given)).guarantee == given.guarantee
    for wrong in ({}, {"epsilon": 1.0}, {"rho": 0.5, "epsilon": 1.0, "delta": 1e-6}):
        with pytest.raises(ValueError, match="give"):
            ContinualCounter(**wrong)  # type: ignore[arg-type]


def test_the_law_of_answers_in_a_small_world() -> None:
    """The first answer is discrete Gaussian; sigma a tenth larger is rejected."""
    plan = plan_of(1, (0.5, None), values_of(None, None, None, "replace-one"))
    drawn = np.array([counter(seed, length=1).add(0) for seed in range(4000)]) * 2**plan.bits

    def law(sigma: float) -> Callable[[Any], Any]:
        return lambda z: np.array([0.5 * math.erfc(-(x + 0.5) / sigma / math.sqrt(2)) for x in np.atleast_1d(z)])

    assert laws.check_dkw(drawn.astype(np.int64), law(plan.noise.sigma))
    assert not laws.check_dkw(drawn.astype(np.int64), law(1.4 * plan.noise.sigma))


# --- bounds


@pytest.mark.parametrize(("length", "steps"), [(1000, 1000), (None, 300)])
def test_answers_stay_inside_the_bound(length: int | None, steps: int) -> None:
    given = counter(4, dimension=2000, norm=1.0, length=length)
    block = CorrelatedNoise(given._plan, Randomness(seed=4).key()).take(steps)[-1] * given._grid
    beta = 0.05
    bound = bounds.continual_counter(steps, rho=0.5, length=length, dimension=2000, norm=1.0, beta=beta)
    exceeded = int((np.abs(block) > bound).sum())
    assert laws.log_at_least(exceeded, 2000, beta) >= math.log(laws.ALARM)
    assert int((np.abs(block) > bound / 2).sum()) > 2000 * beta
    assert bound == pytest.approx(given.deviation(steps) * math.sqrt(2 * math.log(2 / beta)), rel=1e-3)


def test_the_bound_has_an_inverse() -> None:
    for length, error in ((100, 3.0), (None, 50.0), (2**20, 0.5)):
        rho = bounds.continual_counter_rho(50, error=error, length=length)
        assert bounds.continual_counter(50, rho=rho, length=length) <= error
        assert bounds.continual_counter(50, rho=rho * (1 - 1e-8), length=length) > error
    assert bounds.continual_counter(50, rho=0.5, count=10) > bounds.continual_counter(50, rho=0.5)
    epsilon = bounds.continual_counter_epsilon(50, error=9.0, delta=1e-6, length=100)
    assert bounds.continual_counter(50, epsilon=epsilon, delta=1e-6, length=100) <= 9
    assert bounds.continual_counter(50, epsilon=epsilon * (1 - 1e-8), delta=1e-6, length=100) > 9
    with pytest.raises(ValueError, match=r"^error=1e-300: is out of reach"):
        bounds.continual_counter_rho(50, error=1e-300)
    with pytest.raises(ValueError, match=r"^steps=101: must be"):
        bounds.continual_counter(101, rho=0.5, length=100)


def test_deviations_grow_with_the_logarithm() -> None:
    given = counter(length=2**20)
    assert given.deviation() == given.deviation(1)
    assert given.deviation(1) == pytest.approx(math.sqrt(5.51), rel=2e-3)
    assert 5.3 < given.deviation(2**20) < 5.55
    with pytest.raises(ValueError, match=r"^step=0: must be"):
        given.deviation(0)


@pytest.mark.parametrize(("steps", "percent"), [(24, 51), (1000, 31), (8760, 27), (2**20, 22), (2**40, 20)])
def test_an_unknown_length_costs_what_is_documented(steps: int, percent: int) -> None:
    ratio = counter().deviation(steps) / counter(length=steps).deviation(steps)
    assert round(100 * ratio - 100) == percent


def test_memory_does_not_grow() -> None:
    given = counter()
    given.add_many(np.ones(5000))
    held = sum(part.nbytes for part in (given._block, given._noise.buffers, given._noise.remainders))
    assert held < 100_000
    assert len(pickle.dumps(given)) < 10_000


# --- one counter


def test_two_counters_with_the_same_noise_give_away_what_is_added() -> None:
    """Why there is one: the difference of the answers is that of the sums, exactly."""
    one, two = counter(), counter()
    came = np.random.default_rng(0).integers(0, 2, 3000)
    assert np.array_equal(one.add_many(came) - two.add_many(np.zeros(3000)), np.cumsum(came))


def test_copies_are_refused() -> None:
    given = counter()
    for copied in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="does not copy: two that go on with the same noise"):
            copied(given)
    assert given.add(1)  # it goes on


def test_a_pickle_hands_the_counter_on_once() -> None:
    given, same = counter(length=10_000), counter(length=10_000)
    values = np.random.default_rng(0).random(10_000)
    given.add_many(values[:3000])
    same.add_many(values[:3000])
    written = pickle.dumps(given)
    for again in (lambda: given.add(1), lambda: given.add_many([1]), lambda: pickle.dumps(given)):
        with pytest.raises(ValueError, match="it was pickled, and goes on where that is loaded"):
            again()
    loaded = pickle.loads(written)
    assert (loaded.steps, loaded.length, loaded.guarantee) == (3000, 10_000, given.guarantee)
    assert loaded.seeded
    answers = loaded.add_many(values[3000:])
    assert loaded.steps == 10_000
    assert np.abs(answers - np.cumsum(values)[3000:]).max() < 6 * loaded.deviation()
    with pytest.raises(TypeError, match="was loaded before"):
        pickle.loads(written)
    assert not np.array_equal(answers, same.add_many(values[3000:]))  # what was drawn ahead is thrown away


def test_the_noise_of_a_pickle_goes_on_from_the_same_past() -> None:
    """Its next answers share the history of the steps before, which makes them close to the last one."""
    given = counter(length=5000)
    last = given.add_many(np.zeros(4000))[-1]
    following = pickle.loads(pickle.dumps(given)).add(0)
    fresh = math.sqrt(2) * given.deviation(1)
    assert abs(following - last) < 6 * fresh


def test_two_processes_that_load_one_pickle_do_not_share_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    given = ContinualCounter(rho=0.5)
    given.add(1)
    written = pickle.dumps(given)
    answers = []
    for _ in range(2):
        monkeypatch.setattr(continual_counter, "_resumed", {})  # as in another process
        answers.append(pickle.loads(written).add_many(np.zeros(20)))
    assert not set(answers[0]) & set(answers[1])


def test_a_forked_child_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    given = counter()
    given.add(1)
    monkeypatch.setattr(processes.here, "number", processes.here.number + 1)
    for use in (lambda: given.add(1), lambda: given.add_many([1]), lambda: pickle.dumps(given)):
        with pytest.raises(RuntimeError, match="belongs to the parent process"):
            use()


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_a_real_fork_is_refused() -> None:
    given = counter()
    given.add(1)

    def child(queue: Any) -> None:
        try:
            given.add(1)
        except RuntimeError as error:
            queue.put(str(error))

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    assert "belongs to the parent process" in queue.get(timeout=1800)
    process.join(1800)
    assert given.add(1)


def test_a_signal_handler_cannot_ask_in_between() -> None:
    given = counter()
    with given._turn, pytest.raises(RuntimeError, match="must not ask for another"):
        given.add(1)


def test_threads_take_turns() -> None:
    """Every step has noise of its own: the same multiset of noises as one thread, whatever the order."""
    given, alone = counter(length=4000), counter(length=4000)
    found: list[float] = []

    def work() -> None:
        for _ in range(1000):
            found.append(given.add(0))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted(alone.add_many(np.zeros(4000)))


def test_an_interrupt_in_a_block_closes_the_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    given = counter()

    def interrupted(self: Any, noise: Any) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(CorrelatedNoise, "_fits", interrupted)
    with pytest.raises(KeyboardInterrupt):
        given.add(1)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="an answer was interrupted"):
        given.add(1)


def test_a_closed_budget_closes_the_counter() -> None:
    budget = fastdp.Budget(epsilon=10.0, delta=1e-6, theorem="zcdp")
    given = ContinualCounter(rho=0.1, budget=budget)
    for _ in range(200):
        with pytest.raises((fastdp.DomainError, fastdp.BudgetExceeded)) as refused:
            given.add(2)
        if refused.type is fastdp.BudgetExceeded:
            break
    with pytest.raises(fastdp.BudgetExceeded):
        given.add(1)


def test_it_reads_as_what_it_is() -> None:
    given = counter(length=3)
    given.add(1)
    expected = (
        "ContinualCounter(rho=0.5, length=3, bounds=(0, 1), neighbors='replace-one')  # 1 steps, seeded: no privacy"
    )
    assert repr(given) == expected
    assert "<code>" in given._repr_html_()
    assert "dimension=2, norm=1.5" in repr(ContinualCounter(rho=0.5, dimension=2, norm=1.5))


# --- bad input


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"rho": 0}, "rho=0: must be > 0"),
        ({"rho": math.nan}, "rho=nan: must be"),
        ({"length": 0}, "length=0: must be"),
        ({"length": 2**40 + 1}, "length=1099511627777: must be"),
        ({"length": 1.5}, "length=1.5: must be"),
        ({"bounds": (1, 0)}, "must be a pair of numbers, low < high"),
        ({"bounds": (1, 1)}, r"must be a pair of numbers, low < high"),
        ({"bounds": (0,)}, r"must be a pair of numbers, low < high"),
        ({"bounds": ("s3cr3t", 1)}, r"^bounds=<tuple of length 2>: must be a pair of numbers, low < high"),
        ({"bounds": 3}, r"bounds: type int: must be a pair"),
        ({"bounds": "s3cr3t"}, r"^bounds: type str: must be"),
        ({"bounds": "x"}, r"^bounds=<str>: must be a pair of numbers, low < high"),
        ({"bounds": (0, math.inf)}, r"bounds=inf: must be"),
        ({"bounds": (0, math.nan)}, r"bounds=nan: must be"),
        ({"bounds": (0, 10**300)}, r"bounds=<int of 997 bits>: must be at most 1e\+200 in absolute value"),
        ({"bounds": (0, 1e-201)}, "must be 1e-200 apart, or more"),
        ({"dimension": 3}, "give either bounds, of numbers, or dimension and norm, of vectors"),
        ({"norm": 3}, "give either bounds"),
        ({"dimension": 3, "norm": 1, "bounds": (0, 1)}, "give either bounds"),
        ({"dimension": 0, "norm": 1}, "dimension=0: must be"),
        ({"dimension": 2, "norm": 0}, "norm=0: must be > 0"),
        ({"dimension": 2, "norm": 1e-101}, "norm=1e-101: must be between 1e-100 and 1e100"),
        ({"outside": "drop"}, "outside='drop': must be one of"),
        ({"neighbors": "both"}, "neighbors='both': must be one of"),
        ({"rho": 1e-30}, "rho=1e-30: too small for"),
    ],
)
def test_parameters_are_checked_before_anything_is_charged(options: dict[str, Any], why: str) -> None:
    budget = fastdp.Budget(epsilon=10.0, delta=1e-6, theorem="zcdp")
    with pytest.raises(ValueError, match=why):
        counter(budget=budget, **options)
    assert not budget.releases


@pytest.mark.parametrize("value", [math.nan, 1.5, -0.001, 2, math.inf, 10**400, None, "1", [1, 0], 1j])
def test_values_out_of_bounds_are_refused_without_a_step(value: Any) -> None:
    given = counter()
    with pytest.raises((fastdp.DomainError, ValueError)):
        given.add(value)
    with pytest.raises((fastdp.DomainError, ValueError)):
        given.add_many([0.5, value])
    assert given.steps == 0
    assert given.add(1) == counter().add(1)


NO_NUMBERS: list[Any] = [
    math.nan,
    None,
    "x",
    "1",
    b"1",
    1j,
    object(),
    {},
    np.datetime64("2020"),
    np.array(None),
    np.ma.masked,
]


@pytest.mark.parametrize("limits", [(0, 1), (-3, 8), (0.25, 0.5), (2**63, 2**63 + 10), (-1e100, 7)])
def test_clipping_takes_the_nearest_and_the_lower_bound_for_what_is_no_number(limits: Any) -> None:
    low, high = limits
    clipped, plain = (counter(outside=outside, bounds=limits) for outside in ("clip", "raise"))
    values = [high * 2 + 1, math.inf, -math.inf, low, *NO_NUMBERS, 10**400, -(10**400), np.uint64(2**63 + 5)]
    legal = [high, high, low, low, *[low] * len(NO_NUMBERS), high, low, min(max(2**63 + 5, low), high)]
    expected = [plain.add(value) for value in legal]
    assert [clipped.add(value) for value in values] == expected
    at_once = counter(outside="clip", bounds=limits)
    halves = [values[:3], values[3:9], (*values[9:15],), values[15:]]
    assert [each for half in halves for each in at_once.add_many(half)] == expected


@pytest.mark.parametrize("other", [None, -1, 0.5, "x", 2**70, [2]])
def test_no_entry_decides_about_another(other: Any) -> None:
    limits = (2**63, 2**63 + 10)
    one, many = (counter(outside="clip", bounds=limits) for _ in range(2))
    sums = [one.add(value) for value in (2**63 + 5, 2**63 + 7)]
    assert many.add_many([2**63 + 5, 2**63 + 7, other])[:2].tolist() == sums
    rows = [[2**64 - 1, 2**63], [1, 0]]
    units = values_of(None, 2, 4.0, "replace-one", "clip")
    units.on_grid(20)
    alone, beside = units.many(rows), units.many([*rows, [other, 0]])
    assert alone.tolist() == beside[:2].tolist() == [units.one(row).tolist() for row in rows]
    assert alone[0, 0] > 1.9 * alone[0, 1]


def test_columns_of_libraries_are_clipped_entry_by_entry() -> None:
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    expected = counter().add_many([1, 0, 1]).tolist()
    missing = [3, None, 1]
    for values in (
        pandas.Series(missing, dtype=object), pandas.Series(missing, dtype="Int64"), pyarrow.array(missing),
        np.array(missing, object), np.array([3, math.nan, 1]), (3, "x", 1),
    ):  # fmt: skip
        assert counter(outside="clip").add_many(values).tolist() == expected
        with pytest.raises(fastdp.DomainError):
            counter().add_many(values)
    for strings in (np.array(["1", "x"]), np.array([1j])):  # types of arrays are public
        with pytest.raises(ValueError, match="dtype"):
            counter(outside="clip").add_many(strings)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_refusals_because_of_a_step_are_counted(value: Any) -> None:
    for options, step in (
        ({}, value),
        ({"dimension": 2, "norm": 1.0}, [value, 0]),
        ({"dimension": 2, "norm": 1.0}, None),
    ):
        budget = fastdp.Budget(epsilon=10.0, delta=1e-6, theorem="zcdp")
        given = counter(budget=budget, **options)
        with pytest.raises(fastdp.DomainError):
            given.add(step)
        assert budget.refused == 1
        with pytest.raises(fastdp.DomainError):
            given.add_many([step])
        assert budget.refused == 2
        assert given.steps == 0


def test_vectors_are_clipped_coordinate_by_coordinate() -> None:
    units = values_of(None, 2, 1.0, "replace-one", "clip")
    units.on_grid(10)
    for row, legal in (
        ([math.nan, 0.5], [0, 0.5]), ([None, "x"], [0, 0]), ([math.inf, 0], [1, 0]), ([-math.inf, math.nan], [-1, 0]),
        (None, [0, 0]), ("xy", [0, 0]), ([10**400, 0], [1, 0]), ([object(), 0.25], [0, 0.25]),
    ):  # fmt: skip
        assert units.one(row).tolist() == units.one(legal).tolist()
        assert units.many([row, [0.5, 0.5]]).tolist() == units.many([legal, [0.5, 0.5]]).tolist()


def test_vectors_that_are_too_long_are_refused_or_scaled() -> None:
    given, clipped = (counter(dimension=2, norm=1.0, outside=outside) for outside in ("raise", "clip"))
    with pytest.raises(fastdp.DomainError, match=r"value: must be of Euclidean norm at most 1\.0; outside='clip'"):
        given.add([1, 1])
    for huge in ([1, 1], [1e300, 1e300], [5e-324, 7]):
        assert np.abs(clipped.add(huge)).max() < 40
    for wrong in ([math.nan, 0], [math.inf, 0]):
        with pytest.raises(fastdp.DomainError, match="must be finite"):
            given.add(wrong)
    for shape in ([1, 0, 0], 1, [[0, 0]]):
        with pytest.raises(ValueError, match=r"value: shape .*: must be \(2,\)"):
            given.add(shape)
    with pytest.raises(ValueError, match=r"values: shape \(2,\): must be \(steps, 2\)"):
        given.add_many([0, 0])
    assert given.steps == 0


def test_a_counter_ends_with_its_length() -> None:
    given = counter(length=3)
    given.add(1)
    with pytest.raises(ValueError, match="length=3: 1 steps have been taken, and there is no room for 3 more"):
        given.add_many([1, 1, 1])
    assert given.steps == 1
    given.add_many([1, 1])
    with pytest.raises(ValueError, match="length=3: 3 steps have been taken"):
        given.add(0)
