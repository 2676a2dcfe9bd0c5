"""Dask with records beyond a worker's memory: 20 million of 12 columns in 40 Parquet files, workers of 1.5 GB.

    python -m fastdp.bench.studies.cluster

Each release is beside one pass of Dask's own over the same columns, in the same run, on the same workers: seconds, and
the most that a worker held. The results file is in docs/results/cluster, the table in docs/connect/dask.md. It takes
minutes, 2 GB of disk while it runs, and the workers' memory.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

import fastdp
from fastdp import losses, sets, statistics

from ..harness.results import commit, now, write_lines

ROOT = Path(__file__).resolve().parents[2]
RESULTS, PAGE = ROOT / "docs" / "results" / "cluster", ROOT / "docs" / "connect" / "dask.md"
MARKED = re.compile(r"(<!-- figures: cluster -->\n).*?(<!-- end of figures -->)", re.DOTALL)
COLUMNS = 11  # and a label
STEPS = 10
Call = Callable[[], Any]


class Task(NamedTuple):
    """A release, and what Dask does by itself that reads the same columns once."""

    work: str
    ours: Call
    rival: str
    theirs: Call


class Figure(NamedTuple):
    """What one way took: seconds, and bytes that a worker held at its height."""

    seconds: float
    peak: int


def write_files(folder: Path, rows: int, files: int) -> None:
    """The records: numbers between -1 and 1, and a label that depends on them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for number in range(files):
        draw = np.random.default_rng(number)
        table = {f"x{j}": draw.uniform(-0.3, 0.3, rows // files) for j in range(COLUMNS)}
        table["y"] = table["x0"] - table["x1"] + draw.normal(0, 0.1, rows // files) > 0
        pq.write_table(pa.table(table), folder / f"{number:03d}.parquet")


def tasks(frame: Any) -> Iterator[Task]:
    """What is measured, the cheapest first."""
    from fastdp.connect.dask import DaskRows

    rows = DaskRows(frame)
    price = {"epsilon": 1.0, "delta": 1e-6}
    fit = {"loss": losses.Logistic(x_norm=1.0), "over": sets.Ball(5.0)} | price
    squares = {"loss": losses.SquaredError(x_norm=1.0, y_bound=1.0), "over": sets.Ball(5.0)} | price
    column, numbers = rows["x0"], rows[[f"x{j}" for j in range(COLUMNS)]]
    one, every = (lambda: frame["x0"].sum().compute()), (lambda: frame.sum().compute())
    yield Task("mean of a column", lambda: statistics.mean(column, bounds=(-1, 1), epsilon=1.0), "sum of it", one)
    yield Task("median of a column", lambda: fastdp.median(column, epsilon=1.0), "sum of it", one)
    yield Task(
        "mean of all vectors", lambda: fastdp.vector_mean(numbers, clip=1.0, **price), "sum of all columns", every
    )
    yield Task("least squares", lambda: fastdp.noisy_least_squares(rows, "y", **squares), "sum of all columns", every)
    yield Task(
        f"logistic regression, {STEPS} steps of descent",
        lambda: fastdp.noisy_projected_gradient_descent(rows, "y", steps=STEPS, **fit),
        "sum of all columns",
        every,
    )


def measure(client: Any, call: Call) -> Figure:
    """One call, after workers have forgotten how much they held before."""
    client.run(_forget)
    start = perf_counter()
    call()
    return Figure(perf_counter() - start, max(client.run(_highest).values()))


def _forget() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _highest() -> int:
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


@contextmanager
def cluster(workers: int, memory: str) -> Iterator[Any]:
    """Workers of one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=memory, dashboard_address=None) as made,
        Client(made) as client,
    ):
        yield client


def study(rows: int, files: int, workers: int, memory: str) -> dict[str, Any]:
    """All figures; those of a warm-up on few records, which compiles, are forgotten."""
    import dask.dataframe as dd

    with tempfile.TemporaryDirectory() as folder, cluster(workers, memory) as client, warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.AccuracyWarning)
        few, many = Path(folder) / "few", Path(folder) / "many"
        for place, n, pieces in ((few, 20_000, 2 * workers), (many, rows, files)):
            place.mkdir()
            write_files(place, n, pieces)
        for task in tasks(dd.read_parquet(few)):
            task.ours(), task.theirs()
        found = []
        for task in tasks(dd.read_parquet(many)):
            ours, theirs = measure(client, task.ours), measure(client, task.theirs)
            print(f"{task.work}: {ours.seconds:.1f} s, {task.rival}: {theirs.seconds:.1f} s", file=sys.stderr)
            found.append({"work": task.work, "ours": ours._asdict(), "rival": task.rival, "theirs": theirs._asdict()})
        size = sum(file.stat().st_size for file in many.iterdir())
    return {
        "rows": found, "records": rows, "columns": COLUMNS + 1, "files": files, "bytes": size, "workers": workers,
        "memory": memory, "commit": commit(), "date": now(),
    }  # fmt: skip


def table(report: dict[str, Any]) -> str:
    """The figures as the page has them."""
    lines = [
        "| a release | seconds | a worker holds | Dask's | seconds | a worker holds |",
        "|---|--:|--:|---|--:|--:|",
    ]
    for row in report["rows"]:
        cells = [row["work"], *_shown(row["ours"]), row["rival"], *_shown(row["theirs"])]
        lines.append(f"| {' | '.join(cells)} |")
    what = (
        f"{report['records']:,} records of {report['columns']} columns in {report['files']} files of "
        f"{report['bytes'] / 1e9:.1f} GB in all, {report['workers']} workers of {report['memory']}, one thread each; "
        f"{report['date']}."
    )
    from ..reports.publish import _wrapped

    return "\n".join(lines) + "\n\n" + _wrapped(what)


def _shown(figure: dict[str, Any]) -> tuple[str, str]:
    return f"{figure['seconds']:.1f}", f"{figure['peak'] / 2**20:,.0f} MB"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="1.5GB")
    parser.add_argument("--print", action="store_true", help="only print the table")
    given = parser.parse_args(arguments)
    report = study(given.records, given.files, given.workers, given.memory)
    if given.print:
        print(table(report))
        return
    RESULTS.mkdir(parents=True, exist_ok=True)
    write_lines(report, RESULTS / f"{report['commit'] or 'installed'}.json")
    publish(report)


def publish(report: dict[str, Any]) -> None:
    """The table on the page of Dask."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKED.sub(lambda m: f"{m[1]}{table(report)}{m[2]}", text), encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    """A results file."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    main()
