"""No mechanism draws before its charge is final: a caller's code that runs in between could look, and then raise."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.mechanisms.noise import gaussian_noise, laplace_noise
from fastdp.randomness import exact_draws

DOMAIN = fastdp.Domain(a=3, b=2)
RECORDS = np.random.default_rng(0).integers(0, [3, 2], (20_000, 2))
X = np.random.default_rng(1).uniform(-0.5, 0.5, (2000, 2))
Y = X @ [0.3, 0.2]
BITS = np.random.default_rng(2).random((4000, 5)) < 0.5
SCORES = np.arange(3000) % 7
AGES = np.random.default_rng(3).integers(0, 100, 5000)
PRICE: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
FIT: dict[str, Any] = {"loss": losses.SquaredError(x_norm=1, y_bound=1), "over": sets.Ball(1.0)} | PRICE


def lazy(start: int, stop: int) -> Any:
    return SCORES[start:stop]


CALLS: dict[str, Callable[[], Any]] = {
    "laplace": lambda: fastdp.laplace([3, 4], sensitivity=1, epsilon=1.0),
    "laplace of floats": lambda: fastdp.laplace(0.5, sensitivity=1, epsilon=1.0),
    "gaussian": lambda: fastdp.gaussian([3, 4], sensitivity=1, **PRICE),
    "gaussian of floats": lambda: fastdp.gaussian([0.5], sensitivity=1, **PRICE),
    "buckets": lambda: fastdp.exponential_mechanism(SCORES, sensitivity=1, epsilon=1.0, method="buckets"),
    "gumbel": lambda: fastdp.exponential_mechanism(SCORES, sensitivity=1, epsilon=1.0, method="gumbel"),
    "lazy": lambda: fastdp.exponential_mechanism(lazy, candidates=3000, sensitivity=1, epsilon=1.0),
    "top_k": lambda: fastdp.top_k(SCORES, 3, sensitivity=1, epsilon=1.0),
    "permute_and_flip": lambda: fastdp.permute_and_flip(SCORES, sensitivity=1, epsilon=1.0),
    "GumbelMax": lambda: fastdp.GumbelMax(sensitivity=1, epsilon=1.0).offer(SCORES, 0),
    "AboveThreshold": lambda: fastdp.AboveThreshold(3, sensitivity=1, epsilon=1.0).above(4),
    "ContinualCounter": lambda: fastdp.ContinualCounter(**PRICE).add(1),
    "SparseVector": lambda: fastdp.SparseVector(3, sensitivity=1, epsilon=1.0, positives=2).places_above([4, 5]),
    "SparseVector, one by one": lambda: fastdp.SparseVector(
        3, sensitivity=1, epsilon=1.0, positives=2, paid="one by one"
    ).above(4),
    "NumericSparse": lambda: fastdp.NumericSparse(3, sensitivity=1, epsilon=1.0, positives=2).answer(4),
    "median": lambda: fastdp.median(AGES, domain_bits=7, epsilon=1.0),
    "quantiles": lambda: fastdp.quantiles(AGES, [0.1, 0.5, 0.9], domain_bits=7, epsilon=1.0),
    "quantile": lambda: fastdp.quantile(AGES, 0.9, domain_bits=7, epsilon=1.0),
    "interior_point": lambda: fastdp.interior_point(AGES, domain_bits=7, epsilon=1.0),
    "prefix": lambda: fastdp.interior_point(AGES, domain_bits=32, method="prefix", **PRICE),
    "PrivateMultiplicativeWeights": lambda: fastdp.PrivateMultiplicativeWeights(
        RECORDS, DOMAIN, max_queries=10, **PRICE
    ).answer(fastdp.Conjunction({"a": 1})),
    "mwem": lambda: fastdp.mwem(RECORDS, DOMAIN, fastdp.marginals(DOMAIN, 1), rounds=2, **PRICE),
    "mwem, average": lambda: fastdp.mwem(
        RECORDS, DOMAIN, [fastdp.Conjunction({"a": 1})], variant="average", rounds=2, **PRICE
    ),
    "release_marginals": lambda: fastdp.release_marginals(RECORDS, DOMAIN, [["a"]], **PRICE),
    "release_marginals, planned": lambda: fastdp.release_marginals(
        RECORDS, DOMAIN, fastdp.marginals(DOMAIN, 2), allocation="planned", **PRICE
    ),
    "release_ranges, digits": lambda: fastdp.release_ranges(AGES, range(0, 129, 4), method="digits", **PRICE),
    "release_ranges, square-root": lambda: fastdp.release_ranges(
        AGES, range(0, 129, 4), method="square-root", **PRICE
    ),
    "descent": lambda: fastdp.noisy_projected_gradient_descent(X, Y, **FIT),
    "least squares": lambda: fastdp.noisy_least_squares(X, Y, **FIT),
    "exponential_erm": lambda: fastdp.exponential_erm(
        Y[:, None], loss=losses.AbsoluteDeviation(), over=sets.Box(-1, 1), epsilon=1.0
    ),
    "exponential_erm, a net": lambda: fastdp.exponential_erm(
        X, Y > 0, loss=losses.Hinge(x_norm=1), over=sets.Ball(1.0), epsilon=1.0
    ),
    "vector_sum": lambda: fastdp.vector_sum(X, clip=1.0, **PRICE),
    **{
        f"conjunction, {method}": lambda method=method: fastdp.learn_conjunction(
            BITS, BITS[:, 0], k=1, method=method, **PRICE
        )
        for method in ("peel", "greedy", "counts", "exhaustive")
    },
    **{
        f"box, {method}": lambda method=method: fastdp.learn_box(
            BITS[:, :1].astype(int), BITS[:, 0], domain_bits=1, method=method, **PRICE
        )
        for method in ("peel", "interior-point", "exponential")
    },
    "learn_from_class": lambda: fastdp.learn_from_class(BITS.T, BITS[:, 0], epsilon=1.0),
    "a stream": lambda: fastdp.learn_from_class(
        ((lambda X, j=j: X[:, j]) for j in range(5)), BITS[:, 0], X=BITS, epsilon=1.0
    ),
}  # fmt: skip


def drawing() -> list[tuple[Any, str]]:
    """Whatever turns a key into a draw, as functions that are looked up when they are called, or are to draw first."""
    from fastdp.kernels import buckets, compile, gumbel_max, noise, permute_and_flip, ranks, words

    found = [(noise, name) for name in dir(noise) if name.startswith("add_") and name.endswith("_into")]
    found += [(gumbel_max, "select_gumbel_into"), (gumbel_max, "choose_gumbel"), (ranks, "choose_point")]
    found += [(buckets, "propose_into"), (words, "words_into")]
    found += [(permute_and_flip, "count_heads_into"), (permute_and_flip, "choose_head")]
    return [*found, (exact_draws, "uniform_below"), (compile, "machine_code")]


@pytest.mark.parametrize("kind", CALLS)
def test_the_charge_is_final_before_the_first_draw(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    budget, seen = fastdp.Budget(epsilon=10.0, delta=1e-3), []

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any) -> Any:
            seen.append(len(budget.releases))
            return function(*args)

        return called

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.AccuracyWarning)
        CALLS[kind]()  # compiles: a kernel could not be, once another that it calls is watched
        for module, name in drawing():
            monkeypatch.setattr(module, name, watched(getattr(module, name)))
        for remembered in (laplace_noise, gaussian_noise):  # and with the noise the machine code that draws it
            remembered.cache_clear()
        with budget:
            CALLS[kind]()
    assert seen
    assert set(seen) == {1}
    assert len(budget.releases) == 1
