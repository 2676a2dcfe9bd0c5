"""Chapter: a synthetic table of a census survey, and a classifier trained on it."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

import fastdp

from .frame import MUTED, NOISY, TRUE, Strip, say, show, table_of, tidy
from .records import wives

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

# public: what a person may answer, and round numbers
DOMAIN = fastdp.Domain(
    hours=fastdp.Bins([0, 1, 20, 35, 40, 41, 100]),
    insured=["no", "yes"],
    his_job_insures=["no", "yes"],
    education=["<9years", "9-11years", "12years", "13-15years", "16years", ">16years"],
    race=["white", "black", "other"],
    hispanic=["no", "yes"],
    experience=fastdp.Bins([-10, 5, 10, 15, 20, 25, 30, 35, 40, 70]),
    children_under_6=fastdp.Bins([0, 1, 2, 3, 20]),
    children=fastdp.Bins([0, 1, 2, 3, 20]),
    his_pay=fastdp.Bins([0, 1, 10, 20, 30, 45, 60, 100]),
    region=["northcentral", "south", "west", "other"],
)
ASKED = "insured"


def a_synthetic_table(console: Console) -> Strip:
    """A synthetic table, a few of its records, and how a classifier learns from it."""
    records = wives()
    n = len(records[ASKED])
    order = np.random.default_rng(0).permutation(n)
    seen, kept = ({name: values[part] for name, values in records.items()} for part in np.split(order, [n * 7 // 10]))
    start = perf_counter()
    made = fastdp.synthesize(seen, DOMAIN, epsilon=1.0, delta=1e-6, outside="clip")
    seconds = perf_counter() - start
    codes = made.sample(len(seen[ASKED]), codes=True)
    real, test = _codes(seen), _codes(kept)
    rates = {
        "the synthetic records": _right(codes, test),
        "the real records": _right(real, test),
        "nothing: the same answer for all": float(np.bincount(test[:, _at(ASKED)]).max() / len(test)),
    }
    table = table_of(("trained on", "right about the others"))
    for name, rate in rates.items():
        table.add_row(name, f"{rate:.1%}")
    show(console, table)
    distances = _distances(codes, real)
    show(console, _records_of(made))
    say(
        console,
        f"{n:,} married women of the US Current Population Survey (Ecdat/HI), {len(DOMAIN)} columns, "
        f"{DOMAIN.size:,} cells. fastdp.synthesize read 70 % of them for epsilon = 1, delta = 1e-6, and made as many "
        f"synthetic records in [bold]{seconds:.1f} s[/bold]: {_measured(made)} were measured. Whoever has the "
        "synthetic table may tabulate, train or publish at no further price. Which women are insured by their own job? "
        f"Logistic regression that learns it from the synthetic records is right about "
        f"[bold]{rates['the synthetic records']:.1%}[/bold] of the other 30 %. Tables of two columns are off by "
        f"[bold]{distances.mean():.3f}[/bold] in L1, on average.",
    )

    def draw(part: SubFigure) -> None:
        left, right = part.subplots(1, 2)
        left.barh(list(rates)[::-1], list(rates.values())[::-1], color=[MUTED, TRUE, NOISY])
        left.set_xlim(0.5, 1)
        tidy(left, "right about other records, trained on")
        pictured = right.imshow(distances, cmap="Blues", vmin=0)
        names = list(DOMAIN.names)
        right.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
        right.set_yticks(range(len(names)), names, fontsize=6)
        part.colorbar(pictured, ax=right)
        tidy(right, "L1 error of pairs of columns")

    return Strip(4.2, draw)


def _records_of(made: Any) -> Any:
    """Some records as they would be published: a number of a column with bins is one of its bin."""
    names = ("hours", "education", "children", "his_pay", "region", ASKED)
    table = table_of(names, texts=len(names))
    for record in made.sample(4)[:, [_at(name) for name in names]]:
        table.add_row(*(f"{value:.0f}" if isinstance(value, float) else str(value) for value in record))
    return table


def _at(name: str) -> int:
    return DOMAIN.names.index(name)


def _measured(made: Any) -> str:
    several = [table for table in made.report.tables if len(table.columns) > 1]
    return f"{len(DOMAIN)} columns and {len(several)} tables of two or three"


def _codes(records: dict[str, Any]) -> Any:
    columns = [DOMAIN.encode_column(i, records[name], "clip") for i, name in enumerate(DOMAIN.names)]
    return np.stack(columns, axis=1)


def _right(codes: Any, test: Any) -> float:
    """The share of test records that logistic regression gets right, trained on these: Newton's method."""
    (features, labels), (others, wanted) = (_problem(each) for each in (codes, test))
    w = np.zeros(features.shape[1])
    for _ in range(8):
        chances = 1 / (1 + np.exp(-features @ w))
        curvature = (features * (chances * (1 - chances))[:, None]).T @ features + np.eye(len(w))
        w += np.linalg.solve(curvature, features.T @ (labels - chances) - w)
    return float(np.mean((others @ w > 0) == (wanted > 0)))


def _problem(codes: Any) -> tuple[Any, Any]:
    """Each value but the last of each column as a feature of 0 and 1; the label as well."""
    features = [np.ones(len(codes))]
    for i, (name, size) in enumerate(zip(DOMAIN.names, DOMAIN.sizes, strict=True)):
        if name != ASKED:
            features += [(codes[:, i] == value).astype(float) for value in range(size - 1)]
    return np.stack(features, axis=1), codes[:, _at(ASKED)].astype(float)


def _distances(one: Any, other: Any) -> Any:
    """Of all tables of two columns, in L1."""
    d = len(DOMAIN)
    found = np.zeros((d, d))
    for i in range(d):
        for j in range(i):
            cells = DOMAIN.sizes[i] * DOMAIN.sizes[j]
            a, b = (
                np.bincount(each[:, i].astype(int) * DOMAIN.sizes[j] + each[:, j], minlength=cells) / len(each)
                for each in (one, other)
            )
            found[i, j] = found[j, i] = np.abs(a - b).sum()
    return found
