"""Worker processes: the same bits, whatever becomes of them."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import distributed
import pytest

import fastdp
from fastdp import losses, sets
from fastdp.support.errors import DomainError
from tests.connect.dask.cases import (
    CASES,
    Data,
    chunked,
    equal,
    far_counts,
    seeded,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.AccuracyWarning"),
    pytest.mark.filterwarnings("ignore::fastdp.support.errors.PrivacyWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning:distributed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed"),
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # of pandas, which Dask uses when it reads files
]


@contextmanager
def two_workers() -> Iterator[Any]:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it tells of workers that we kill
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with two_workers() as client:
        yield client


@pytest.fixture
def mortals() -> Iterator[Any]:
    """For a test that kills one of its own: the other works on, whether Dask replaces the first or gives it up."""
    with two_workers() as client:
        yield client


@pytest.mark.parametrize("name", CASES)
def test_worker_processes_give_the_same_bits(name: str, client: Any, data: Data, here: dict[str, Any]) -> None:
    equal(CASES[name](chunked, data), here[name])


def test_large_domains_on_worker_processes(
    client: Any, data: Data, here: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with far_counts(monkeypatch):
        for name in ("multiplicative weights", "marginals"):
            equal(CASES[name](chunked, data), here[name])


def test_a_record_outside_is_found_on_workers_too(client: Any, data: Data) -> None:
    values = data.places[:, 0].copy()
    values[-1] = 64
    with fastdp.Budget(epsilon=1.0) as budget, pytest.raises(DomainError, match=r"^values: must be from 0 to 63"):
        fastdp.median(chunked(values), domain_bits=6, epsilon=1.0)
    assert budget.left.epsilon == 1.0
    assert not budget.releases


def test_a_loss_of_ones_own_does_not_travel(client: Any, data: Data) -> None:
    loss = losses.Custom(lambda score, label: score - label, slope_bound=1.0, x_norm=1.0)
    with fastdp.Budget(epsilon=1.0, delta=1e-6) as budget, pytest.raises(TypeError):
        CASES["logistic"](chunked, data, loss=loss, y="response")
    assert budget.left.epsilon == 1.0


def test_a_worker_that_dies_between_two_steps(mortals: Any, data: Data) -> None:
    """Its partitions were persisted, and are computed anew."""
    X, y = mortals.persist([chunked(data.points), chunked(data.side)])
    distributed.wait([X, y])
    pids = mortals.run(os.getpid)
    killed = []

    def kill(done: int, total: int, what: str) -> None:
        if done == 4 and not killed:
            killed.append(next(iter(pids.values())))
            os.kill(killed[0], signal.SIGKILL)

    def run(X: Any, y: Any, progress: Any) -> Any:
        return fastdp.noisy_projected_gradient_descent(
            X, y, loss=losses.Logistic(x_norm=1), over=sets.Ball(2), epsilon=1.0, delta=1e-6, steps=12, rng=seeded(),
            progress=progress,
        ).w  # fmt: skip

    with fastdp.Budget(epsilon=1.0, delta=1e-6) as budget:
        found = run(X, y, kill)
    equal(found, run(data.points, data.side, None))
    assert killed
    assert budget.left.epsilon == 0


def _deadly(block: Any, path: str, pid: int) -> Any:
    """A partition whose computation takes its worker down, once."""
    if block.size and os.getpid() != pid:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return block
        os.kill(os.getpid(), signal.SIGKILL)
    return block


@pytest.mark.parametrize("name", ["peel", "box, peel", "median", "multiplicative weights"])
def test_a_worker_that_dies_at_work(name: str, mortals: Any, data: Data, here: dict[str, Any], tmp_path: Path) -> None:
    path = str(tmp_path / "died")

    def give(array: Any) -> Any:
        return chunked(array).map_blocks(_deadly, path, os.getpid(), dtype=array.dtype, meta=array[:0])

    equal(CASES[name](give, data), here[name])
    assert os.path.exists(path)
