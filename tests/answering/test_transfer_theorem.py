"""The transfer theorem: its constants against enumeration of all small mechanisms' posteriors, against plain formulas,
its inverse, and a game in which the sample is overfitted by exact answers and not by private ones."""

import itertools
import math
import warnings
from decimal import localcontext

import numpy as np
import pytest

import fastdp
from fastdp import ZCDP, ApproxDP, PureDP, bounds


def test_the_formula():
    total = bounds.transfer_theorem(0.02, guarantee=ApproxDP(0.4, 1e-9), failure=1e-6, beta=0.1)
    plain = 0.02 + math.tanh(0.1) + (math.sqrt(1e-6) + math.sqrt(2e-9)) ** 2 / 0.1
    assert total == pytest.approx(plain, rel=1e-12)
    assert total >= plain * (1 - 1e-15)
    pure = bounds.transfer_theorem(0.02, guarantee=PureDP(0.4), failure=1e-6)
    assert pure == pytest.approx(0.02 + math.tanh(0.1) + 1e-6 / 0.05, rel=1e-12)
    assert bounds.transfer_theorem(0.02, guarantee=PureDP(1e6), failure=1e-6) == pytest.approx(1.02002)
    one = bounds.transfer_theorem(0.02, guarantee=PureDP(0.2, neighbors="add-remove"), failure=1e-6)
    assert one == pytest.approx(pure), "twice the epsilon under replace-one"


def test_of_many_deltas_the_best():
    rho = ZCDP(1e-4)
    total = bounds.transfer_theorem(0.02, guarantee=rho, failure=1e-8)
    options = {"failure": 1e-8}
    every = [bounds.transfer_theorem(0.02, guarantee=rho.to_approx(d), **options) for d in (1e-4, 1e-6, 1e-8, 1e-12)]
    assert total <= min(every)
    assert total > min(every) - 0.01


def test_more_is_worse():
    values = [bounds.transfer_theorem(0.01, guarantee=PureDP(e), failure=1e-6) for e in (0.01, 0.1, 1.0, 5.0)]
    assert values == sorted(values)
    guarantees = [ApproxDP(0.1, delta) for delta in (1e-12, 1e-9, 1e-6, 1e-4)]
    values = [bounds.transfer_theorem(0.01, guarantee=each, failure=1e-6) for each in guarantees]
    assert values == sorted(values)
    values = [bounds.transfer_theorem(0.01, guarantee=PureDP(0.1), failure=f) for f in (1e-9, 1e-6, 1e-4)]
    assert values == sorted(values)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_no_mechanism_on_two_records_tells_more_than_lemma_2(epsilon):
    """All mechanisms with extreme ratios on samples of one or two coins of bias p; q is the coin itself."""
    worst, low, high = 0.0, 1 / (1 + math.exp(epsilon)), math.exp(epsilon) / (1 + math.exp(epsilon))
    levels = [low, (low + high) / 2, high]
    for n in (1, 2):
        samples = list(itertools.product((0, 1), repeat=n))
        for p in np.linspace(0.05, 0.95, 19):
            weights = np.array([math.prod(p if x else 1 - p for x in s) for s in samples])
            averages = np.array([np.mean(s) for s in samples])
            for chances in itertools.product(levels, repeat=len(samples)):
                for answer in (0, 1):
                    given = np.array([c if answer else 1 - c for c in chances])
                    ratio = max(
                        given[i] / given[j]
                        for i, a in enumerate(samples)
                        for j, b in enumerate(samples)
                        if sum(x != y for x, y in zip(a, b, strict=True)) == 1
                    )
                    if ratio > math.exp(epsilon) * (1 + 1e-12):
                        continue
                    told = float((given * weights) @ averages / (given @ weights))
                    worst = max(worst, abs(told - p))
    assert worst <= math.tanh(epsilon / 4) * (1 + 1e-9)
    assert worst > 0.98 * math.tanh(epsilon / 4), "and one coin attains it"


def test_the_inverse():
    for epsilon, delta in ((0.1, 0.0), (0.7, 1e-9), (3.0, 1e-7)):
        options = {"failure": 1e-6, "beta": 0.1}
        guarantee = ApproxDP(epsilon, delta) if delta else PureDP(epsilon)
        total = bounds.transfer_theorem(0.02, guarantee=guarantee, **options)
        found = bounds.transfer_theorem_epsilon(total, sample_error=0.02, delta=delta, **options)
        assert found == pytest.approx(epsilon, rel=1e-9)
        assert found >= epsilon * (1 - 1e-12)
    assert bounds.transfer_theorem_epsilon(1.5, sample_error=0.02, failure=1e-6) == math.inf
    with pytest.raises(ValueError, match=r"^error=0\.03: is out of reach: other terms alone are 0\.12"):
        bounds.transfer_theorem_epsilon(0.03, sample_error=0.1, failure=1e-3)


def test_the_decimal_context_of_the_host_stays_as_it_is():
    with localcontext() as context:
        context.clear_flags()
        bounds.transfer_theorem(0.02, guarantee=ApproxDP(0.4, 1e-9), failure=1e-6)
        bounds.transfer_theorem_epsilon(0.2, sample_error=0.02, failure=1e-6)
        with pytest.raises(ValueError, match="out of reach"):
            bounds.transfer_theorem_epsilon(0.02, sample_error=0.1, failure=1e-3)
        assert not any(context.flags.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": 0}, r"^error=0: must be > 0"),
        ({"guarantee": 0.1}, r"^guarantee=0\.1: must be a guarantee"),
        ({"failure": 0}, r"^failure=0: must be in \(0, 1\)"),
        ({"beta": 1}, r"^beta=1: must be"),
    ],
)
def test_parameters_are_checked(change, message):
    options = {"error": 0.1, "guarantee": PureDP(0.1), "failure": 1e-3} | change
    with pytest.raises(ValueError, match=message):
        bounds.transfer_theorem(options.pop("error"), **options)


def test_exact_answers_overfit_the_sample_and_private_ones_do_not():
    """The game of the documentation's page: the last query is made of the answers to all others."""
    rng = np.random.default_rng(1)
    domain, people = fastdp.Domain.binary(10), rng.integers(0, 2, (5_000, 10))
    masks = rng.random((3_000, domain.size)) < 0.5
    sample = np.bincount(people @ (1 << np.arange(10)[::-1]), minlength=domain.size) / len(people)

    def last(answers):
        return (answers - masks.mean(axis=1)) @ (masks - 0.5) > 0

    plain = last(masks @ sample)
    assert plain @ sample - plain.mean() > 0.12
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.AccuracyWarning)
        pmw = fastdp.PrivateMultiplicativeWeights(
            people, domain, epsilon=1.0, delta=1e-6, max_queries=3_001, rng=fastdp.Randomness(seed=1)
        )
    answers = pmw.answer_many([fastdp.Mask(mask) for mask in masks])
    asked = last(np.array([float(answer) for answer in answers]))
    assert abs(float(pmw.answer(fastdp.Mask(asked))) - asked.mean()) < 0.06
