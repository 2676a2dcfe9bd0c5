"""What the accounting room's cases must have produced."""

from __future__ import annotations

from typing import Any

import numpy as np


def _check_last_query(drawn: Any, parameters: Any) -> None:
    first, n = drawn
    assert first == n - 1


def _check_places(drawn: Any, parameters: Any) -> None:
    places, values = drawn
    np.testing.assert_array_equal(places, np.flatnonzero(values > 1_000))


def _check_places_and_values(drawn: Any, parameters: Any) -> None:
    places, given, values = drawn
    _check_places((places, values), parameters)
    assert 0 < np.abs(given - values[places]).mean() < 10_000


def _check_answers_by_a_threshold(drawn: Any, parameters: Any) -> None:
    """At the threshold each answer is as likely."""
    far, near = drawn
    assert far == [False] * 1000 + [True]
    assert abs(sum(near) - len(near) / 2) < 6.2 * np.sqrt(len(near)) / 2  # false alarm below 1e-9


def _least_by_renyi(scales: Any, delta: float) -> float:
    """Bounds of Laplace and Gaussian noise at a few thousand orders a, in float64: Mironov (2017), table II, and
    the conversion of Canonne, Kamath and Steinke (2020), proposition 12."""
    a = 1 + np.geomspace(0.1, 1000, 5000)
    divergence = np.zeros_like(a)
    for kind, s in scales:
        if kind == "gaussian":
            divergence += a / (2 * s**2)
        else:
            moment = a * np.exp((a - 1) / s) + (a - 1) * np.exp(-a / s)
            divergence += np.log(moment / (2 * a - 1)) / (a - 1)
    return float(np.min(divergence + np.log1p(-1 / a) - np.log(delta * a) / (a - 1)))


def _check_composition(drawn: Any, parameters: Any) -> None:
    (guarantee, scales), delta = drawn, parameters["delta"]
    least = _least_by_renyi(scales, delta)
    assert guarantee.delta == delta
    assert least * (1 - 1e-6) < guarantee.epsilon < least * 1.01


def _check_losses(drawn: Any, parameters: Any) -> None:
    (guarantee, scales), delta = drawn, parameters["delta"]
    assert guarantee.delta == delta
    assert guarantee.theorem == "privacy loss distribution"
    assert guarantee.at_least <= guarantee.epsilon <= guarantee.at_least * 1.002
    assert guarantee.epsilon < 0.98 * _least_by_renyi(scales, delta)


def _least_by_rho(rho: float, delta: float) -> float:
    """As `_least_by_renyi` for so much concentrated privacy."""
    a = 1 + np.geomspace(0.1, 1000, 5000)
    return float(np.min(a * rho + np.log1p(-1 / a) - np.log(delta * a) / (a - 1)))


def _check_choices(drawn: Any, parameters: Any) -> None:
    guarantee, n = drawn
    least = _least_by_rho(n * parameters["eta"] ** 2 / 8, parameters["delta"])
    assert guarantee.at_least <= guarantee.epsilon <= guarantee.at_least * 1.002
    assert 0.85 * least < guarantee.epsilon < 0.97 * least


def _check_share(drawn: Any, parameters: Any) -> None:
    found, n = drawn
    by_rho = _least_by_rho(n * found**2 / 8, parameters["delta"])
    assert 1.03 < by_rho / parameters["epsilon"] < 1.15, "a share by moments would be 1 here"


def _check_charges(drawn: Any, parameters: Any) -> None:
    number, spent = drawn
    assert number == 100
    assert 0 < spent.epsilon <= 0.1


ORACLES: dict[str, Any] = {
    "answers by a threshold": _check_answers_by_a_threshold,
    "the last query": _check_last_query,
    "the places above": _check_places,
    "the places above, and their values": _check_places_and_values,
    "Renyi, in float64": _check_composition,
    "a hundred charges": _check_charges,
    "a share of choices": _check_share,
    "below Renyi": _check_losses,
    "choices": _check_choices,
}
