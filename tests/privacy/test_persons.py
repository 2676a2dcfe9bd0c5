"""What persons cost: by kind of guarantee, by enumeration of tiny tables, on parts, and what budgets take."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import fastdp
from fastdp import ZCDP, AllOf, ApproxDP, BoundedRange, Budget, GaussianDP, PureDP, Renyi, statistics
from fastdp.privacy import as_json, compose, for_persons, from_json, parallel, reservations, subsampled
from fastdp.records.subsets import held
from fastdp.sklearn import PrivateMedian
from fastdp.support import boundary

AR = {"neighbors": "add-remove"}
OF_PERSONS = "add-remove of a person (u)"
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("of_record", "of_person"),
    [
        (PureDP(0.25, **AR), PureDP(0.75, neighbors=OF_PERSONS)),
        (ZCDP(0.5, **AR), ZCDP(4.5, neighbors=OF_PERSONS)),
        (BoundedRange(0.5, **AR), BoundedRange(1.5, neighbors=OF_PERSONS)),
        (GaussianDP(0.5, **AR), GaussianDP(1.5, neighbors=OF_PERSONS)),
        (PureDP(0.25, **AR) & Renyi.gaussian(1.0, **AR), AllOf(PureDP(0.75, neighbors=OF_PERSONS))),
    ],
)
def test_prices_by_kind(of_record, of_person):
    found = for_persons(of_record, "u", at_most=3)
    assert found == of_person
    assert found.unit == "u"
    assert found.to_replace_one().neighbors == "replace-one of a person (u)"
    assert from_json(json.loads(json.dumps(as_json(found)))) == found
    assert isinstance(found, AllOf) or eval(repr(found), vars(fastdp)) == found


def test_a_delta_grows_by_the_sum_of_powers():
    found = for_persons(ApproxDP(0.5, 1e-6, **AR), "u", at_most=3)
    assert found.epsilon == 1.5
    assert found.delta >= 1e-6 * (1 + math.exp(0.5) + math.exp(1.0))
    assert found.delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)), rel=1e-12)
    both = for_persons(ApproxDP(0.5, 1e-6, **AR), "u", at_most=6)
    assert found.to_replace_one().delta == pytest.approx(both.delta, rel=1e-12)


def test_gaussian_noise_keeps_its_mu():
    noise = ZCDP(0.125, mu=0.5, **AR)
    assert GaussianDP.of(for_persons(noise, "u", at_most=4)).mu == 2.0
    assert for_persons(noise, "u", at_most=1).mu == 0.5


@pytest.mark.parametrize(
    "guarantee", [Renyi.gaussian(1.0, **AR), fastdp.removal(0.1, one_signed=True, **AR), ApproxDP(9.0, 0.5, **AR)]
)
def test_what_has_no_form_for_groups_is_refused(guarantee):
    with pytest.raises(ValueError):  # noqa: PT011 - each by its own message
        for_persons(guarantee, "u", at_most=3)


def test_relations_of_persons_are_no_others():
    record, person, other = PureDP(0.1, **AR), *(for_persons(PureDP(0.1, **AR), unit, at_most=1) for unit in "uv")
    for one, two in itertools.permutations([record, person, other], 2):
        assert not one.implies(two)
        assert not one.implies(two.to_replace_one())
        with pytest.raises(ValueError, match="do not mix"):
            compose(one, two)
        with pytest.raises(ValueError, match="do not mix"):
            one & two
    assert not person.implies(PureDP(0.1, neighbors="replace-one of a person (u)"))
    assert person.implies(PureDP(0.2, neighbors="replace-one of a person (u)"))
    assert compose(person, person).implies(PureDP(0.2, neighbors=OF_PERSONS))
    for function in (parallel, lambda each: subsampled(each, rate=0.1, sampling="poisson"), for_persons):
        with pytest.raises((ValueError, TypeError)):
            function(person)
    with pytest.raises(ValueError, match="must be for records"):
        for_persons(person, "u", at_most=2)
    for text in ("add-remove of a person ()", "add-remove of a person", "add of a person (u)", "person (u)", 3, None):
        with pytest.raises(ValueError, match="neighbors="):
            PureDP(1.0, neighbors=text)
    for unit in ("", "a\nb", 3, "x" * 300):
        with pytest.raises(ValueError, match="unit="):
            Budget(epsilon=1.0, unit=unit)


# --- budgets


def rows_of(n=50, at_most=2, unit="u"):
    return fastdp.limit_rows({unit: np.arange(n) // 5, "x": np.arange(n) % 2}, unit, at_most=at_most)


def test_budgets_take_their_own_persons():
    data = np.arange(9) % 2
    persons, records = Budget(epsilon=1.0, unit="u", **AR), Budget(epsilon=1.0, **AR)
    for call, message in (
        (
            lambda: statistics.count(data, epsilon=0.1, budget=persons, **AR),
            "is for persons, unit='u', and this release",
        ),
        (lambda: statistics.count(rows_of()["x"], epsilon=0.1, budget=records, **AR), r"must be a Budget\(unit='u'\)"),
        (lambda: statistics.count(rows_of(unit="v")["x"], epsilon=0.1, budget=persons, **AR), "must be a Budget"),
        (lambda: fastdp.laplace(3, sensitivity=1, epsilon=0.1, budget=persons, **AR), "is for persons"),
        (lambda: persons.charge(PureDP(0.1, **AR), "mine"), "is for persons"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert persons.spent.epsilon == records.spent.epsilon == 0
    statistics.count(rows_of()["x"], epsilon=0.5, budget=persons, **AR)
    persons.charge(for_persons(PureDP(0.125, **AR), "u", at_most=4), "mine")
    assert str(persons.spent) == "1-DP, add-remove of a person (u)"
    assert persons.unit == "u"
    assert "unit='u'" in repr(persons)
    with pytest.raises(fastdp.BudgetExceeded):
        statistics.count(rows_of()["x"], epsilon=0.1, budget=persons, **AR)


def test_replacing_a_person_costs_twice():
    budget = Budget(epsilon=1.0, unit="u")
    released = statistics.count(rows_of()["x"], epsilon=0.25, budget=budget, **AR)
    assert budget.spent == PureDP(0.5, neighbors="replace-one of a person (u)")
    assert str(released.guarantee) == "0.25-DP, add-remove of a person (u)"


def test_stored_budgets_know_their_persons(tmp_path):
    url = f"sqlite:///{tmp_path}/b.db"
    budget = Budget.open(url, epsilon=1.0, unit="u", **AR)
    statistics.count(rows_of()["x"], epsilon=0.5, budget=budget, **AR)
    again = Budget.open(url)
    assert again.unit == "u"
    assert str(again.spent) == "0.5-DP, add-remove of a person (u)"
    assert again.releases[0].guarantee.unit == "u"
    assert Budget.open(url, unit="u", **AR).spent == again.spent
    with pytest.raises(ValueError, match="neighbors="):
        Budget.open(url, **AR)


def test_declared_releases_are_for_persons():
    planned = for_persons(PureDP(0.25, **AR), "u", at_most=2)
    budget = Budget(epsilon=1.0, unit="u", declared=[(planned, 2)], **AR)
    statistics.count(rows_of()["x"], epsilon=0.5, budget=budget, **AR)
    assert budget.still_open == ((planned, 1),)
    with pytest.raises(ValueError, match="must be for"):
        Budget(epsilon=1.0, unit="u", declared=[PureDP(0.1, **AR)], **AR)


# --- enumeration


def tables(longest=4, persons=(5, 10**12)):
    """All records (person, mark) of at most so many rows."""
    return [
        table for n in range(longest + 1) for table in itertools.product(itertools.product(persons, (0, 1)), repeat=n)
    ]


def kept_marks(table, at_most, rng):
    rows = fastdp.limit_rows(
        {"u": np.array([u for u, _ in table], np.int64), "x": np.array([x for _, x in table], np.int64)},
        "u",
        at_most=at_most,
        rng=rng,
    )
    found = held(rows["x"]).one_block().column(0)
    return int((found == 0).sum()), int((found == 1).sum())


def distances(at_most):
    """How far a histogram of the kept rows moves at most, over all tiny tables, by relation of persons."""
    found = {table: kept_marks(table, at_most, fastdp.Randomness(3)) for table in tables()}
    worst = {"add-remove": 0, "replace-one": 0}
    without = {}
    for table, histogram in found.items():
        for person in {u for u, _ in table}:
            rest = tuple(row for row in table if row[0] != person)
            distance = sum(abs(a - b) for a, b in zip(histogram, found[rest], strict=True))
            worst["add-remove"] = max(worst["add-remove"], distance)
            without.setdefault(rest, set()).add(histogram)
    for histograms in without.values():
        for one, two in itertools.combinations(histograms, 2):
            worst["replace-one"] = max(worst["replace-one"], sum(abs(a - b) for a, b in zip(one, two, strict=True)))
    return worst


def lost_and_charged(at_most, relation, distance):
    """What a histogram loses for neighbours in a person, by the scale that it was drawn with, and what is charged."""
    budget = Budget(epsilon=10.0, unit="u", neighbors=relation)
    statistics.histogram(rows_of(at_most=at_most)["x"], [0, 0.5, 1], epsilon=0.6, budget=budget, **AR)
    return distance * budget.releases[0].parameters["epsilon"], budget.spent.epsilon


@pytest.mark.parametrize("at_most", [1, 2])
def test_enumeration_of_what_a_person_costs(at_most):
    """A histogram of the kept rows of all tiny tables: its L1 distance between neighbours in a person, times what it
    costs a row, is at most what is charged, and attains it."""
    for relation, distance in distances(at_most).items():
        lost, charged = lost_and_charged(at_most, relation, distance)
        assert lost <= charged
        assert lost == pytest.approx(charged, rel=1e-12)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_rows_that_are_priced_as_one_are_refuted(relation, monkeypatch):
    """One mutant charges m rows of a person as one; the other one takes the noise of what was asked for a person."""
    distance = distances(2)[relation]

    def as_one(guarantee, unit, *, at_most):
        return for_persons(guarantee, unit, at_most=1)

    with monkeypatch.context() as patched:
        patched.setattr(reservations, "for_persons", as_one)
        lost, charged = lost_and_charged(2, relation, distance)
        assert lost > 1.9 * charged
    monkeypatch.setattr(boundary, "_shares_of", lambda at_most, epsilon, delta: (epsilon, delta))
    lost, charged = lost_and_charged(2, relation, distance)
    assert lost == pytest.approx(charged, rel=1e-12)  # the charge goes by the noise
    assert charged > 1.1 if relation == "add-remove" else charged > 2.3  # and not by what was asked for, .6


@pytest.mark.parametrize("at_most", [1, 2, 3])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_enumeration_of_parts_of_rows_of_persons(at_most, relation):
    """Releases on parts: the worst person has rows in any of them; the budget's account bounds and attains it."""
    rng = np.random.default_rng(at_most)
    data = {"u": np.arange(30) // 5, "g": np.arange(30) % 3, "x": np.arange(30) % 2}
    for _ in range(4):
        budget = Budget(epsilon=50.0, delta=1e-2, unit="u", neighbors=relation)
        rows = fastdp.limit_rows(data, "u", at_most=at_most)
        parts = fastdp.partition(rows, "g", [0, 1, 2])
        of_rows = {0: [], 1: [], 2: []}
        for part in rng.integers(0, 3, 5).tolist():
            epsilon, delta = float(rng.choice([0.1, 0.3, 1.2])), float(rng.choice([1e-6, 1e-5]))
            statistics.count_by(parts[part]["x"], epsilon=epsilon, delta=delta, budget=budget, **AR)
            least = epsilon / at_most
            factor = sum(math.exp(i * least) for i in range(at_most))
            of_rows[part].append((least, delta / factor))
        moved = at_most if relation == "add-remove" else 2 * at_most
        worst = [0.0, 0.0]
        for rows_in in itertools.product(range(moved + 1), repeat=3):
            if sum(rows_in) <= moved:
                every = [(k, one) for part, k in enumerate(rows_in) for one in of_rows[part]]
                worst[0] = max(worst[0], sum(k * e for k, (e, _) in every))
                worst[1] = max(worst[1], sum(d * sum(math.exp(i * e) for i in range(k)) for k, (e, d) in every))
        spent = budget.spent
        assert spent.epsilon == pytest.approx(worst[0], rel=1e-9)
        assert spent.delta == pytest.approx(worst[1], rel=1e-9)
        largest = max(sum(e for e, _ in releases) for releases in of_rows.values())  # a mutant: parts at a row's price
        assert largest < spent.epsilon or moved == 1


def test_rows_are_limited_before_they_are_divided():
    data = {"u": np.arange(30) // 5, "g": np.arange(30) % 3}
    part = fastdp.partition(data, "g", [0])[0]
    for function in (lambda rows: fastdp.limit_rows(rows, "u", at_most=1), lambda rows: fastdp.per_person(rows, "u")):
        for rows, message in (
            (part, "a part of a partition"),
            (fastdp.limit_rows(data, "u", at_most=1), "rows of persons"),
        ):
            with pytest.raises(ValueError, match=f"data: {message}: must be all records"):
                function(rows)


def test_one_call_reads_one_choice():
    data = {"u": [1, 1, 2], "x": [0.5, 0.1, 0.2], "y": [1.0, 0.0, 1.0]}
    one, two = (fastdp.limit_rows(data, "u", at_most=1) for _ in range(2))
    loss, ball = fastdp.losses.SquaredError(x_norm=1, y_bound=1), fastdp.sets.Ball(1)
    for y in (two["y"], np.ones(2), [1.0]):
        with pytest.raises(ValueError, match="y: "):
            fastdp.private_erm(one["x"], y, loss=loss, over=ball, epsilon=1.0, delta=1e-6, records=1, **AR)


def test_nobody_is_told_how_many_rows_there_are():
    rows = fastdp.limit_rows({"u": [7] * 41}, "u", at_most=23)
    assert "41" not in repr(rows)
    assert repr(rows) == "<rows, at most 23 of each u: 1 columns>"
    for call in (
        lambda: np.asarray(rows),
        lambda: fastdp.pack(rows),
        lambda: statistics.count(rows, epsilon=1.0),
        lambda: PrivateMedian(epsilon=1.0).fit(rows),
    ):
        with pytest.raises(ValueError, match="must be") as error:
            call()
        assert "41" not in str(error.value)


def test_inner_functions_share_what_the_outer_one_may_cost():
    """private_erm hands its records to a descent: what a record may cost is divided once."""
    rng = np.random.default_rng(0)
    data = {"u": np.arange(4000) // 2, "x": rng.uniform(-1, 1, 4000), "y": rng.uniform(-1, 1, 4000)}
    rows, loss = fastdp.limit_rows(data, "u", at_most=2), fastdp.losses.SquaredError(x_norm=1, y_bound=1)
    budget = Budget(epsilon=5.0, delta=1e-3, unit="u", **AR)
    with budget:
        fastdp.private_erm(
            rows["x"], rows["y"], loss=loss, over=fastdp.sets.Ball(1), epsilon=1.0, delta=1e-6, records=4000, **AR
        )
    assert 0.98 < budget.spent.epsilon <= 1.0


def test_what_a_callback_releases_is_not_divided():
    """Its records are its own, and so is what it asks for."""
    rows, budget = rows_of(), Budget(epsilon=5.0, delta=1e-3, unit="u", **AR)

    def report(*given):
        statistics.count(rows["x"], epsilon=0.5, budget=budget, **AR)

    fastdp.quantiles(rows["x"], [0.5], domain_bits=3, epsilon=1.0, delta=1e-6, budget=budget, progress=report, **AR)
    asked = [row.guarantee for row in budget.releases if row.mechanism == "count"]
    assert all(Fraction(each.epsilon) <= Fraction(0.5) and each.epsilon > 0.49 for each in asked)
