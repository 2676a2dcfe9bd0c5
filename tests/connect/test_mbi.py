"""What mechanisms of private-pgm are given as `prng`: exact noise that checks what it meets, exact choices, charges.

None of it needs mbi; tests/peers/test_mbi.py has what does.
"""

import warnings
from fractions import Fraction

import numpy as np
import pytest

import fastdp
from fastdp import ZCDP, Budget, DomainError, PureDP
from fastdp.connect.mbi import ExactSelection, Prng
from fastdp.connect.mbi.noise import _choose, _weights
from fastdp.randomness import exact_draws as exact
from tests import oracles
from tests.conftest import Watched
from tests.laws import assert_law, wrong_scales

COUNTS = np.array([0.0, 3.0, 120.0, 7.0])


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def refused_before_drawing(table, match, error=DomainError, **options):
    noise = Prng(rng=Watched(), **options).normal(0, 2.0, np.shape(table))
    with pytest.raises(error, match=match):
        table + noise


# --- noise


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.7])
@pytest.mark.parametrize(
    ("kind", "law"), [("normal", oracles.noise.gaussian_law), ("laplace", oracles.noise.laplace_law)]
)
def test_noise_has_the_law_that_the_mechanism_asks_for(kind, law, scale):
    n = 200_000
    noise = getattr(Prng(rng=seeded(1)), kind)(0, scale, n)
    assert_law((np.zeros(n) + noise).astype(int), law(scale), wrong_laws=wrong_scales(law, scale))


@pytest.mark.parametrize("table", [np.arange(5), np.arange(5.0), np.arange(5, dtype=np.float32), np.ones(5, bool)])
def test_counts_of_any_type_meet_the_same_noise(table):
    noise = Prng(rng=seeded(2)).laplace(0, 3.0, 5)
    expected = fastdp.laplace(table.astype(np.int64), sensitivity=3, epsilon=1.0, rng=seeded(2))
    found = table + noise
    assert found.dtype == np.float64
    assert found.tolist() == expected.tolist()


def test_both_sides_and_shapes():
    prng = Prng(rng=seeded(3))
    table = np.arange(6.0).reshape(2, 3)
    assert (prng.normal(0, 1e-3, (2, 3)) + table).tolist() == table.tolist()
    assert (table + prng.normal(0, 1e-3, (2, 3))).tolist() == table.tolist()
    assert (5 + prng.normal(scale=1e-3)) == 5
    assert (np.zeros(0) + prng.laplace(0, 1.0, 0)).shape == (0,)
    assert len(prng.normal(0, 1.0, 7)) == prng.normal(0, 1.0, 7).size == 7


def test_a_grid_of_its_own():
    prng = Prng(resolution=0.25, rng=seeded(4))
    table = np.array([0.25, 1.5, -2.0])
    n = 100_000
    assert set(((table + prng.normal(0, 1.0, 3)) * 4 % 1).tolist()) == {0.0}
    assert_law((4 * (np.zeros(n) + prng.normal(0, 1.0, n))).astype(int), oracles.noise.gaussian_law(4.0))
    with pytest.raises(DomainError, match=r"multiples of 0\.25"):
        np.array([0.125]) + prng.normal(0, 1.0, 1)
    assert (np.array([2.0, 6.0]) + Prng(resolution=2.0).normal(0, 1e-3, 2)).tolist() == [2.0, 6.0]


@pytest.mark.parametrize("table", [[0.5, 1.0], [np.nan, 1.0], [np.inf, 0.0], [2.0**53, 0.0], [1 + 2.0**-50, 1.0]])
def test_what_is_off_the_grid_is_refused_before_anything_is_drawn(table):
    refused_before_drawing(np.array(table), "must be multiples of 1.0")


@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 2**24), (np.float16, 2**11)])
def test_counts_that_a_narrow_float_has_rounded_are_refused(dtype, most):
    assert (np.array([most], dtype) + Prng().normal(0, 1e-3, 1))[0] == most
    refused_before_drawing(np.array([most + most // 2], dtype), "than dtype float.. holds exactly")


def test_a_refusal_shows_no_record():
    with pytest.raises(DomainError) as caught:
        np.array([12345.5]) + Prng().normal(0, 1.0, 1)
    assert "12345" not in str(caught.value)


def test_other_tables_are_refused():
    noise = Prng(rng=Watched()).normal(0, 1.0, 3)
    for table in (np.zeros(4), np.zeros((3, 1)), 0.0):
        with pytest.raises(ValueError, match=r"shape .*: must be that of the noise, \(3,\)"):
            table + noise
    with pytest.raises(ValueError, match="must be numbers"):
        np.array(["1", "2", "3"]) + noise


def test_noise_is_no_array_and_is_used_once():
    noise = Prng(rng=seeded(5)).normal(0, 1.0, 3)
    with pytest.raises(TypeError, match="is no array: add it"):
        np.asarray(noise)
    with pytest.raises(TypeError):
        2.0 * noise
    np.zeros(3) + noise
    with pytest.raises(RuntimeError, match="has been added already"):
        np.zeros(3) + noise


def test_noise_that_was_refused_may_still_be_used():
    noise = Prng(rng=seeded(5)).normal(0, 1e-3, 1)
    with pytest.raises(DomainError):
        np.array([0.5]) + noise
    assert (np.array([4.0]) + noise).tolist() == [4.0]


@pytest.mark.parametrize(("arguments", "match"), [
    ((1.0, 1.0, 3), r"loc=1\.0: must be 0"), ((0, 0.0, 3), r"scale=0\.0: must be > 0"),
    ((0, np.nan, 3), "scale=nan"), ((0, 2.0**41, 3), "scale / resolution"), ((0, 1.0, -1), "size=-1"),
    ((0, 1.0, (2, 1.5)), r"size=1\.5"),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["normal", "laplace"])
def test_wrong_parameters_of_noise(kind, arguments, match):
    with pytest.raises(ValueError, match=match):
        getattr(Prng(), kind)(*arguments)


def test_wrong_parameters_of_a_prng():
    for options, match in (({"resolution": 0.3}, "power of two"), ({"sensitivity": 0}, "sensitivity=0"),
                           ({"neighbors": "some"}, "neighbors='some'")):  # fmt: skip
        with pytest.raises(ValueError, match=match):
            Prng(**options)
    with pytest.raises(AttributeError):
        Prng().permutation(3)


# --- choices


@pytest.mark.parametrize("p", [
    [0.1, 0.2, 0.7], [1.0], [0.0, 1e-300, 5e-324, 0.0, 1.0], [2.0**-1074, 2.0**-1074 * 3], [0.25] * 4, [3.0, 1e16],
    np.array([0.1, 0.9], np.float32),
])  # fmt: skip
def test_weights_are_exactly_the_probabilities(p):
    exact_p = [Fraction(float(x)) for x in p]
    weights = _weights(np.asarray(p), len(p))
    assert [Fraction(w, sum(weights)) for w in weights] == [x / sum(exact_p) for x in exact_p]


def test_a_choice_has_exactly_its_law(monkeypatch):
    """Every number below the sum of the weights leads to one candidate: as many as its weight."""
    weights = [3, 0, 5, 1]
    numbers = iter(range(sum(weights)))
    monkeypatch.setattr(exact, "uniform_below", lambda count, uniform: next(numbers))
    found = [_choose(weights, np.zeros(8, np.uint32)) for _ in range(sum(weights))]
    assert [found.count(i) for i in range(4)] == weights


def test_choices_as_they_are_sampled():
    prng, p = Prng(rng=seeded(6)), [0.5, 0.0, 0.3, 0.2]
    found = np.array([prng.choice(4, p=p) for _ in range(20_000)])
    law = oracles.noise.finite_law([Fraction(1, 2), 0, Fraction(3, 10), Fraction(1, 5)])
    assert_law(found, law, wrong_laws=[oracles.noise.finite_law([Fraction(2, 5), 0, Fraction(2, 5), Fraction(1, 5)])])
    assert prng.choice(["a", "b"], p=[0, 1]) == "b"
    assert {prng.choice(np.array([5, 6])) for _ in range(50)} == {5, 6}


@pytest.mark.parametrize(("options", "match", "error"), [
    ({"p": [0.5, np.nan]}, "p: must be finite", DomainError), ({"p": [0.0, 0.0]}, "not all 0", DomainError),
    ({"p": [-1.0, 2.0]}, "p: must be", DomainError), ({"p": [1.0]}, r"shape \(1,\): must be \(2,\)", ValueError),
    ({"size": 3}, "one choice at a time", ValueError), ({"replace": False}, "one choice at a time", ValueError),
])  # fmt: skip
def test_wrong_choices(options, match, error):
    with pytest.raises(error, match=match):
        Prng(rng=Watched()).choice(2, **options)


# --- selection by scores


class Base:
    """The part of private-pgm's Mechanism that matters here."""

    def __init__(self, prng):
        self.prng = prng

    def exponential_mechanism(self, *_, **__):
        raise AssertionError("the mechanism's own choice")

    permute_and_flip = exponential_mechanism

    def generalized(self, qualities, epsilon):
        return self.exponential_mechanism(np.asarray(qualities), epsilon, 1.0)


class Exact(ExactSelection, Base):
    pass


def test_selection_chooses_as_fastdp_does():
    scores = {("a",): 3.0, ("b", "c"): 3.5, ("d",): np.float64(1.0)}
    for seed in range(20):
        mechanism = Exact(Prng(rng=seeded(seed)))
        i = fastdp.exponential_mechanism([3.0, 3.5, 1.0], sensitivity=2.0, epsilon=0.7, rng=seeded(seed))
        assert mechanism.exponential_mechanism(scores, 0.7, 2.0) == list(scores)[i]
        i = fastdp.permute_and_flip([3.0, 3.5, 1.0], sensitivity=2.0, epsilon=0.7, rng=seeded(seed))
        assert Exact(Prng(rng=seeded(seed))).permute_and_flip(scores, 0.7, 2.0) == list(scores)[i]
    assert Exact(Prng()).generalized([0.0, 1e6], 1.0) == 1


def test_a_base_measure_counts():
    """Base 3 : 1 on equal scores is a choice of 3 : 1."""
    law = oracles.noise.finite_law([Fraction(3, 4), Fraction(1, 4)])
    wrong = [oracles.noise.finite_law([Fraction(1, 2)] * 2)]
    mechanism = Exact(Prng(rng=seeded(8)))
    by_name = [mechanism.exponential_mechanism({0: 5.0, 1: 5.0}, 0.5, 2.0, {0: 3.0, 1: 1.0}) for _ in range(4000)]
    assert_law(np.array(by_name), law, wrong_laws=wrong)
    logs = np.log([3.0, 1.0])
    by_place = [mechanism.exponential_mechanism([5.0, 5.0], 0.5, 2.0, logs) for _ in range(4000)]
    assert_law(np.array(by_place), law, wrong_laws=wrong)


def test_a_mechanism_that_loses_its_prng_is_found_out():
    with pytest.raises(ValueError, match=r"must be a fastdp\.connect\.mbi\.Prng; the mechanism may have"):
        Exact(np.random).exponential_mechanism([0.0, 1.0], 1.0)


# --- budgets


def test_noise_and_choices_are_charged():
    budget = Budget(epsilon=3.0, delta=1e-6, theorem="zcdp", neighbors="add-remove")
    prng = Prng(sensitivity=1.0, neighbors="add-remove", budget=budget)
    COUNTS + prng.normal(0, 4.0, 4)
    COUNTS + prng.laplace(0, 8.0, 4)
    Exact(prng).exponential_mechanism({"a": 1.0, "b": 2.0}, 0.5)
    table = budget.releases
    assert [row.mechanism for row in table] == ["mbi normal", "mbi laplace", "exponential_mechanism"]
    assert table[0].guarantee == ZCDP(1 / 32, neighbors="add-remove")
    assert table[1].guarantee == PureDP(1 / 8, neighbors="add-remove")
    assert table[2].guarantee.neighbors == "add-remove"
    assert dict(table[0].parameters) == {"sensitivity": 1.0, "scale": 4.0}


def test_charges_round_up():
    budget = Budget(epsilon=30.0, delta=1e-6, theorem="zcdp")
    COUNTS + Prng(sensitivity=2**0.5, budget=budget).normal(0, 3.1, 4)
    rho = budget.releases[0].guarantee.rho
    assert rho >= Fraction(2**0.5) ** 2 / (2 * Fraction(3.1) ** 2)
    assert rho == pytest.approx(1 / 3.1**2)


def test_an_open_budget_counts_what_a_prng_draws():
    with Budget(epsilon=1.0) as budget:
        COUNTS + Prng(sensitivity=2.0).laplace(0, 4.0, 4)
        with pytest.raises(ValueError, match="sensitivity=None: must be given where a budget counts"):
            COUNTS + Prng(rng=Watched()).laplace(0, 4.0, 4)
        with pytest.raises(ValueError, match="no budget can count it"):
            Prng(rng=Watched()).choice(2, p=[0.5, 0.5])
        with pytest.raises(fastdp.BudgetExceeded):
            COUNTS + Prng(sensitivity=2.0, rng=Watched()).laplace(0, 2.0, 4)
    assert budget.spent == PureDP(0.5)
    assert len(budget.releases) == 1


def test_a_refused_table_costs_nothing():
    with Budget(epsilon=1.0) as budget, pytest.raises(DomainError):
        np.array([0.5]) + Prng(sensitivity=1.0, rng=Watched()).laplace(0, 4.0, 1)
    assert budget.left == PureDP(1.0)


def test_it_reads_well():
    assert repr(Prng()) == "Prng(resolution=1.0, neighbors='replace-one')"
    assert repr(Prng().normal(0, 2.5, (3,))) == "<noise: normal, scale=2.5, shape (3,)>"
