"""The accountant that needs no mechanism: what it says is what compose says, and delta undoes epsilon."""

import math
from xml.etree import ElementTree

import pytest

from fastdp import ZCDP, ApproxDP, BoundedRange, GaussianDP, PureDP, Renyi, compose
from fastdp.privacy import (
    Exponential,
    FixedSizeSubsampled,
    Gaussian,
    Laplace,
    LossDistribution,
    PoissonSubsampled,
    RandomizedResponse,
    with_profile,
)

KNOWN = with_profile(PureDP(0.1), Laplace(0.1))


@pytest.mark.parametrize("delta", [1e-4, 1e-9, 1e-30])
def test_epsilons_are_those_of_compose(delta):
    for guarantee, profile, count in ((KNOWN, Laplace(0.1), 100), (PureDP(0.2), RandomizedResponse(0.2), 30)):
        total = compose((guarantee, count), delta=delta)
        for made in (LossDistribution((profile, count)), LossDistribution((guarantee, count))):
            assert made.epsilon(delta) == pytest.approx(total.epsilon, rel=1e-12)
            assert made.at_least(delta) == pytest.approx(total.at_least, rel=1e-12)
    leaky = LossDistribution((ApproxDP(0.1, delta / 100), 20))
    assert leaky.epsilon(delta) == compose((ApproxDP(0.1, delta / 100), 20), delta=delta).epsilon


PLANS = [
    LossDistribution((Laplace(0.1), 100)),
    LossDistribution(Laplace(1.0)),
    LossDistribution((RandomizedResponse(0.3), 50)),
    LossDistribution((Gaussian(0.1), 40)),
    LossDistribution((PoissonSubsampled(Laplace(0.5), 0.1), 200)),
    LossDistribution((PoissonSubsampled(Gaussian(1.0), 0.02), 100), (Laplace(0.1), 5)),
    LossDistribution((FixedSizeSubsampled(Gaussian(1.0), 0.02), 100)),
    LossDistribution((Exponential(0.2), 30)),
    LossDistribution((ApproxDP(0.1, 1e-9), 20)),
]


@pytest.mark.parametrize("plan", PLANS, ids=repr)
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-7])
def test_delta_undoes_epsilon(plan, delta):
    epsilon = plan.epsilon(delta)
    assert plan.delta(epsilon) <= delta * 1.02
    assert plan.delta(epsilon * 0.98) > delta
    if plan.at_least(delta):
        assert plan.delta(plan.at_least(delta)) >= delta * (1 - 1e-9), "below it nothing holds"
    assert plan.delta(100.0) <= plan.delta(epsilon)


@pytest.mark.parametrize("delta", [1e-20, 1e-40, 1e-80])
def test_tiny_deltas_are_right(delta):
    plan = LossDistribution((Laplace(0.1), 200), Gaussian(0.3))
    assert delta * (1 - 1e-6) <= plan.delta(plan.at_least(delta))
    assert plan.delta(plan.epsilon(delta)) <= delta * 1.1


def test_products_powers_and_lists_are_the_same():
    one, other = LossDistribution((Laplace(0.1), 3)), LossDistribution(Gaussian(0.2))
    listed = LossDistribution((Laplace(0.1), 30), (Gaussian(0.2), 10))
    for made in ((one * other) ** 10, one**10 * other**10, one.compose(other, *[one] * 9, *[other] * 9)):
        assert made.epsilon(1e-6) == listed.epsilon(1e-6)
        assert made.releases == listed.releases == 40
    assert one.compose().epsilon(1e-6) == one.epsilon(1e-6)
    assert (LossDistribution(ApproxDP(0.1, 1e-9)) ** 10).epsilon(1e-9) == math.inf
    with pytest.raises(TypeError):
        one * 3


def test_both_directions_of_samples_count():
    removing = PoissonSubsampled(RandomizedResponse(1.0), 0.01)
    plan = LossDistribution((removing, 400))
    assert plan.neighbors == "add-remove"
    assert (
        plan.epsilon(1e-8)
        == compose((with_profile(PureDP(0.1, neighbors="add-remove"), removing), 400), delta=1e-8, using="pld").epsilon
    )
    with pytest.raises(ValueError, match=r"must be the profile of removing"):
        LossDistribution(removing.reversed())
    with pytest.raises(ValueError, match=r"neighbo"):
        LossDistribution(removing, PureDP(0.1))
    with pytest.raises(ValueError, match=r"neighbo"):
        plan * LossDistribution(PureDP(0.1))


def test_it_knows_when_it_is_far_from_the_truth():
    sampled = (FixedSizeSubsampled(Laplace(0.5), 0.1), 9)
    assert LossDistribution(sampled).at_least(1e-6) == 0
    assert LossDistribution(sampled[0]).at_least(1e-6) == 0
    assert LossDistribution(sampled, (BoundedRange(0.1), 9)).at_least(1e-6) == 0
    choices = LossDistribution((BoundedRange(0.1), 9))
    assert 0.99 * choices.epsilon(1e-6) < choices.at_least(1e-6) < choices.epsilon(1e-6)
    assert LossDistribution((GaussianDP(0.1), 9)).at_least(1e-6) > 0


def test_it_prints_and_draws():
    plan = PLANS[0]
    lines = repr(plan).splitlines()
    assert lines[0] == "LossDistribution: 100 x Laplace(epsilon=0.1)"
    assert lines[1].split() == ["delta", "epsilon", "at", "least"]
    assert lines[4].split() == ["1e-06", f"{plan.epsilon(1e-6):.5g}", f"{plan.at_least(1e-6):.5g}"]
    picture = ElementTree.fromstring(plan.svg())
    lines = [node for node in picture.iter() if node.tag.endswith("polyline")]
    assert len(lines) == 2
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert all(0 <= x <= 760 and 0 <= y <= 260 for x, y in points)
    assert plan._repr_html_().count("<tr>") == 7
    assert "<svg" in plan._repr_html_()
    leaking = LossDistribution((ApproxDP(0.1, 1e-4), 9))
    ElementTree.fromstring(leaking.svg())
    assert "inf" in repr(leaking)
    ElementTree.fromstring(LossDistribution(PureDP(0.0)).svg())


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([], r"^releases: must be at least one"),
        ([0.1], r"^releases: <float>: must be profiles or guarantees"),
        ([(Laplace(0.1), 0)], r"^count=0: must be"),
        ([ZCDP(0.1)], r"nothing but moments is known"),
        ([Renyi({2: 0.1})], r"nothing but moments is known"),
    ],
)
def test_what_it_cannot_account_is_refused(items, message):
    with pytest.raises(ValueError, match=message):
        LossDistribution(*items)


@pytest.mark.parametrize("delta", [0, 1, -1, math.nan, "x"])
def test_bad_deltas_are_refused(delta):
    with pytest.raises(ValueError, match=r"^delta="):
        PLANS[0].epsilon(delta)
