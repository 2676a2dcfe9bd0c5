"""Accuracy of `compose`: 230 plans of releases, each beside an epsilon that is proven to be too small.

    python -m fastdp.bench.studies.composition

The grid is of single kinds and mixtures, 1 to 10,000 releases, deltas from 1e-4 to 1e-12. The picture is epsilon
against delta, and against the number of releases, by theorem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import fastdp
from fastdp.privacy import DiscreteLaplace, Guarantee, Laplace, Using, with_profile

from .style import COLOURS, finish, style

Plan = tuple[str, Sequence[tuple[Guarantee, int]], float]

PICTURE = Path(__file__).resolve().parents[2] / "docs" / "composition.svg"
COUNTS = (1, 3, 10, 100, 1_000, 10_000)
DELTAS = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
TOTAL = 3.0  # about the epsilon of every plan, so that large ones are of weak releases
THEOREMS: dict[Using, str] = {
    "basic": "sum",
    "heterogeneous": "Kairouz, Oh, Viswanath",
    "zcdp": "zCDP",
    "renyi": "Renyi",
    "pld": "loss distributions",
}


def laplace(epsilon: float) -> Guarantee:
    return with_profile(fastdp.PureDP(epsilon), Laplace(epsilon))


def on_integers(epsilon: float) -> Guarantee:
    """Discrete Laplace noise where one record moves the sum by 5."""
    return with_profile(fastdp.PureDP(epsilon), DiscreteLaplace(5 / epsilon * (1 + 2.0**-50), 5))


KINDS: dict[str, Callable[[float], Guarantee]] = {
    "epsilon-DP": fastdp.PureDP,
    "Laplace": laplace,
    "discrete Laplace": on_integers,
    "Gaussian": fastdp.GaussianDP,
}


def plans() -> Iterator[Plan]:
    """All 230 of them."""
    for count, delta in product(COUNTS, DELTAS):
        each = TOTAL / (4 * count**0.5) if count > 1 else 1.0
        for name, kind in KINDS.items():
            yield f"{count} x {name}", [(kind(each), count)], delta
        yield f"{count} x choices", [(fastdp.BoundedRange(each), count)], delta
        mixed = [(kind(each * (1 + i / 3)), -(-count // 4)) for i, kind in enumerate(KINDS.values())]
        yield f"{count} mixed", mixed, delta
        leaky = [*mixed, (fastdp.ApproxDP(each, delta / (10 * count)), count)]
        yield f"{count} mixed, some with deltas", leaky, delta
        if (count, delta) in _MORE:
            yield f"{count} x Laplace beside one strong release", [(laplace(each), count), (laplace(2.0), 1)], delta


_MORE = set(list(product(COUNTS, DELTAS))[:20])


def excess(plan: Plan) -> float:
    """By what share epsilon is more than one that is too small."""
    _, releases, delta = plan
    total = fastdp.compose(*releases, delta=delta)
    assert isinstance(total, fastdp.ApproxDP)
    return total.epsilon / total.at_least - 1 if total.at_least else 0.0 if not total.epsilon else float("inf")


def epsilons(using: Using, points: Sequence[tuple[int, float]]) -> list[float]:
    """Of Laplace noise at epsilon = 0.1: so many releases, at such a delta."""
    totals = ((fastdp.compose((laplace(0.1), count), delta=delta, using=using), delta) for count, delta in points)
    return [total.to_approx(delta).epsilon for total, delta in totals]


def draw(path: Path) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    counts, deltas = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], [10.0**-k for k in range(2, 21, 2)]
    with matplotlib.rc_context(style()):
        figure = Figure(figsize=(8, 3.4), layout="constrained")
        by_delta, by_count = figure.subplots(1, 2)
        for (using, name), colour in zip(THEOREMS.items(), COLOURS, strict=True):
            by_delta.plot(deltas, epsilons(using, [(100, delta) for delta in deltas]), color=colour, label=name)
            by_count.plot(counts, epsilons(using, [(count, 1e-6) for count in counts]), color=colour, label=name)
        _label(by_delta, "delta", "epsilon of 100 x Laplace at 0.1")
        _label(by_count, "releases", "epsilon at delta = 1e-6")
        by_delta.set_yscale("linear")
        by_delta.invert_xaxis()
        by_count.legend(frameon=False)
        figure.savefig(path, transparent=True, metadata={"Date": None})


def _label(axes: Any, across: str, up: str) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    finish(axes)


def main() -> None:
    found = [(excess(plan), plan[0], plan[2]) for plan in plans()]
    assert max(found)[0] < 0.002
    print(f"{len(found)} plans; the ten whose bounds are farthest apart:")
    for share, name, delta in sorted(found, reverse=True)[:10]:
        print(f"{1 + share:.5f}  {name}, delta={delta:g}")
    draw(PICTURE)


if __name__ == "__main__":
    main()
