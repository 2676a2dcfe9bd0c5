"""What a release states of where it came from: the words of its noise and the version, in results, rows and sums."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
from fastdp.losses import SquaredError
from fastdp.sets import Ball

import fastdp
from fastdp import AllOf, ApproxDP, Budget, PureDP, Randomness, Renyi, compose
from fastdp.kernels.words import AES_HERE
from fastdp.privacy import Origin
from fastdp.privacy.origin import SECURE, SECURE_BY_AES, SEEDED, short_form, with_origin

MARK = "seeded: no privacy"
HERE = SECURE_BY_AES if AES_HERE else SECURE
DOMAIN = fastdp.Domain(a=3, b=2)
RECORDS = np.random.default_rng(0).integers(0, [3, 2], (20_000, 2))
X = np.random.default_rng(1).uniform(-0.5, 0.5, size=(2000, 2))
Y = X @ [0.3, 0.2]
BITS = np.random.default_rng(2).random((4000, 5)) < 0.5
PRICE = {"epsilon": 1.0, "delta": 1e-6}
LOSS = SquaredError(x_norm=1, y_bound=1)


def seeded(seed=3):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return Randomness(seed=seed)


class Own(Randomness):
    """A source of the caller's own."""


RESULTS = {
    "AboveThreshold": lambda **o: fastdp.AboveThreshold(3, sensitivity=1, epsilon=1.0, **o),
    "ContinualCounter": lambda **o: fastdp.ContinualCounter(**PRICE, **o),
    "SparseVector": lambda **o: fastdp.SparseVector(3, sensitivity=1, epsilon=1.0, positives=2, **o),
    "NumericSparse": lambda **o: fastdp.NumericSparse(3, sensitivity=1, epsilon=1.0, positives=2, **o),
    "GumbelMax": lambda **o: fastdp.GumbelMax(sensitivity=1, epsilon=1.0, **o),
    "PrivateMultiplicativeWeights": lambda **o: fastdp.PrivateMultiplicativeWeights(
        RECORDS, DOMAIN, max_queries=10, **PRICE, **o
    ),
    "its distribution": lambda **o: (
        fastdp.PrivateMultiplicativeWeights(RECORDS, DOMAIN, max_queries=10, **PRICE, **o).synthetic
    ),
    "mwem": lambda **o: fastdp.mwem(RECORDS, DOMAIN, fastdp.marginals(DOMAIN, 1), rounds=1, **PRICE, **o),
    "release_marginals": lambda **o: fastdp.release_marginals(RECORDS, DOMAIN, [["a"]], **PRICE, **o),
    "its synthetic": lambda **o: (
        fastdp.release_marginals(RECORDS, DOMAIN, [["a"]], fit="entropic", **PRICE, **o).synthetic
    ),
    "release_ranges": lambda **o: fastdp.release_ranges([1.0, 2.0], [0.0, 1.0, 2.0], epsilon=1.0, **o),
    "Bins": lambda **o: fastdp.Bins.quantiles(np.arange(50.0), 2, epsilon=1.0, **o),
    "descent": lambda **o: fastdp.noisy_projected_gradient_descent(X, Y, loss=LOSS, over=Ball(1.0), **PRICE, **o),
    "least squares": lambda **o: fastdp.noisy_least_squares(X, Y, loss=LOSS, over=Ball(1.0), **PRICE, **o),
    "private_erm": lambda **o: fastdp.private_erm(X, Y, loss=LOSS, over=Ball(1.0), **PRICE, **o),
    "exponential_erm": lambda **o: fastdp.exponential_erm(
        Y[:, None], loss=fastdp.losses.AbsoluteDeviation(), over=fastdp.sets.Box(-1, 1), epsilon=1.0, **o
    ),
    "vector_sum": lambda **o: fastdp.vector_sum(X, clip=1.0, **PRICE, **o),
    "learn_conjunction": lambda **o: fastdp.learn_conjunction(BITS, BITS[:, 0], k=1, **PRICE, **o),
    "learn_box": lambda **o: fastdp.learn_box(BITS[:, :1].astype(int), BITS[:, 0], domain_bits=1, **PRICE, **o),
    "learn_from_class": lambda **o: fastdp.learn_from_class(BITS.T, BITS[:, 0], epsilon=1.0, **o),
}


@pytest.mark.parametrize("kind", RESULTS)
def test_a_result_states_where_its_noise_came_from(kind):
    """One that was seeded in itself, its guarantee and its display, and the row of the budget, too."""
    for rng, origin in ((seeded(), SEEDED), (None, HERE), (Randomness(), HERE), (Own(), Origin("Own", cipher=""))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fastdp.AccuracyWarning)
            with Budget(**PRICE | {"epsilon": 4.0}) as budget:
                made = RESULTS[kind](rng=rng)
        assert (made.origin, made.guarantee.origin) == (origin, origin)
        assert made.seeded == made.guarantee.seeded == (rng is not None and not rng.secure)
        assert (MARK in str(made.guarantee)) == (MARK in repr(made)) == made.seeded
        rows = budget.releases
        assert [row.origin for row in rows] == [origin]
        assert rows[0].seeded == rows[0].total.seeded == budget.spent.seeded == made.seeded
        assert (MARK in repr(rows)) == (MARK in repr(budget)) == made.seeded


def test_an_origin_has_no_seed_in_it():
    """Not even the number: where it is a secret, whoever reads a ledger could subtract the noise."""
    with Budget(epsilon=1.0) as budget:
        fastdp.laplace(3, sensitivity=1, epsilon=0.5, rng=seeded(987_654_321))
    row = budget.releases[0]
    assert row.origin == Origin("seed", fastdp.__version__)
    assert "987654321" not in repr(row) + repr(budget) + repr(budget.releases) + str(row.origin) + str(vars(row))


def test_sums_of_a_budget_are_seeded_from_the_first_seeded_release_on():
    with Budget(epsilon=2.0) as budget:
        for rng in (None, seeded(), None):
            fastdp.laplace(3, sensitivity=1, epsilon=0.5, rng=rng)
    rows = budget.releases
    assert [row.seeded for row in rows] == [False, True, False]
    assert [row.total.seeded for row in rows] == [False, True, True]
    assert budget.spent == PureDP(1.5)
    assert str(budget.spent) == f"1.5-DP, replace-one, {MARK}"
    assert [MARK in line for line in repr(rows).splitlines()] == [False, False, False, True, True]
    assert not budget.left.seeded


GUARANTEES = {
    "pure": PureDP(0.5),
    "approximate": ApproxDP(0.5, 1e-6),
    "concentrated": fastdp.ZCDP(0.1),
    "range": fastdp.BoundedRange(0.5),
    "all": PureDP(0.5) & fastdp.ZCDP(0.1),
    "curve": Renyi.gaussian(3.0),
    "add-remove": PureDP(0.5, neighbors="add-remove"),
}


@pytest.mark.parametrize("kind", GUARANTEES)
def test_a_seeded_guarantee_stays_seeded(kind):
    """Whatever is made of it; it is equal to one that is not, since both state the same law."""
    plain = GUARANTEES[kind]
    marked = with_origin(plain, SEEDED)
    assert (plain.seeded, plain.origin) == (False, None)
    assert marked == plain
    assert hash(marked) == hash(plain)
    assert str(marked) == f"{plain}, {MARK}"
    assert repr(marked).replace(", seeded=True", "") == repr(plain)
    assert repr(marked).endswith(", seeded=True)")
    assert short_form(marked) == f"{short_form(plain)}, {MARK}"
    assert MARK in marked._repr_html_()
    made = [copy.copy(marked), copy.deepcopy(marked), pickle.loads(pickle.dumps(marked)), marked.to_approx(1e-5)]
    made += [marked & PureDP(1.0, neighbors=plain.neighbors), AllOf(PureDP(1.0, neighbors=plain.neighbors), marked)]
    made += [compose(marked, (plain, 2), delta=1e-5), compose((plain, 2), (marked, 3), delta=1e-4)]
    if kind != "approximate":
        made += [marked.to_renyi(), compose(marked, plain)]
    if kind not in ("approximate", "curve"):
        made.append(marked.to_zcdp())
    if kind != "curve":
        made += [marked.group(3), marked.to_replace_one()]
    assert all(each.seeded for each in made)
    assert not compose(plain, plain, delta=1e-5).seeded


def test_origins_of_several_releases():
    """Of one origin where they have the same; of none where they differ, unless one is seeded."""
    here, there = with_origin(PureDP(0.5), HERE), with_origin(PureDP(0.5), Origin("Own"))
    assert (here & here).origin == compose(here, here).origin == HERE
    assert (here & there).origin is compose(here, there).origin is compose(here, PureDP(1)).origin is None
    assert compose(here, there, with_origin(PureDP(1), SEEDED)).origin == SEEDED
    assert with_origin(here, None) is here


def test_the_cipher_is_stated_where_it_is_the_same():
    """Machines with AES and without may answer for one budget; what differs alone is not stated, and it is stored."""
    by_aes, by_chacha = (with_origin(PureDP(0.5), origin) for origin in (SECURE_BY_AES, SECURE))
    assert (SECURE_BY_AES.cipher, SECURE.cipher, SEEDED.cipher) == ("AES-256-CTR", "ChaCha20", "ChaCha20")
    assert (by_aes & by_aes).origin == SECURE_BY_AES
    assert (by_aes & by_chacha).origin == SECURE._replace(cipher="")
    assert compose(by_aes, PureDP(1)).origin is None


def test_the_cipher_is_kept_in_a_stored_ledger(tmp_path):
    for rng, cipher in ((None, HERE.cipher), (seeded(), "ChaCha20")):
        url = f"sqlite:///{tmp_path}/{cipher}.db"
        with Budget.open(url, epsilon=1.0):
            fastdp.laplace(3, sensitivity=1, epsilon=0.5, rng=rng)
        (row,) = Budget.open(url, epsilon=1.0).releases
        assert row.origin.cipher == cipher
        assert "@cipher" not in row.parameters


def kinds_of(kind):
    for each in kind.__subclasses__():
        if each.__module__.startswith("fastdp"):
            yield each
            yield from kinds_of(each)


def test_every_kind_of_guarantee_reads_alike():
    """In rows of budgets, too; and takes the mark."""
    guarantees = [*GUARANTEES.values(), fastdp.removal(0.1, one_signed=True), fastdp.GaussianDP(0.5)]
    assert {type(each) for each in guarantees} == set(kinds_of(fastdp.privacy.Guarantee))
    for each in guarantees:
        assert str(each) == f"{short_form(each)}, {each.neighbors}"
        marked = with_origin(each, SEEDED)
        assert str(marked) == f"{each}, {MARK}"
        assert repr(marked).replace(", seeded=True", "") == repr(each)
        assert repr(marked) != repr(each)
