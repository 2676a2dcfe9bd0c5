"""Budgets in a file: races of processes, kills, full disks, damaged files; what is stored is what was charged."""

from __future__ import annotations

import contextlib
import copy
import gc
import json
import os
import pickle
import random
import signal
import sqlite3
import stat
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fastdp
from fastdp import (
    ZCDP,
    AllOf,
    ApproxDP,
    BoundedRange,
    Budget,
    BudgetExceeded,
    DomainError,
    GaussianDP,
    LedgerError,
    PureDP,
    Renyi,
)
from fastdp.privacy import as_json, from_json, sqlite_file, sqlite_ledger, subsampled, with_profile
from fastdp.privacy.removal_lemma import RemovalLemma
from fastdp.privacy.reservations import Reservation
from tests.machinery.kills import kill_at_random, spend_until_refused

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


@pytest.fixture
def url() -> Any:
    """Of a file in memory, so that others' disks do not slow the suite; a disk's is in tests of their own."""
    folder = Path("/dev/shm" if os.path.isdir("/dev/shm") else "/tmp") / f"fastdp {os.getpid()} {random.random()}"
    folder.mkdir(mode=0o700)
    yield f"sqlite:///{folder}/a budget.db"
    gc.collect()
    for each in folder.iterdir():
        each.unlink()
    folder.rmdir()


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def in_child(function: Any) -> int:
    """What a forked child returns, as its exit code."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 99
    try:
        code = int(function() or 0)
    except BaseException as error:
        print(type(error), error, file=sys.stderr)
    finally:
        os._exit(code)


# --- opening


def test_a_budget_is_opened_again(url):
    first = Budget.open(url, epsilon=1.0, delta=1e-6, theorem="best", refusals=5)
    first.charge(PureDP(0.25), "one")
    for again in (Budget.open(url), Budget.open(url, epsilon=1.0, delta=1e-6), Budget.open(url, theorem="best")):
        assert (again.epsilon, again.delta, again.theorem, again.refusals) == (1.0, 1e-6, "best", 5)
        assert again.spent == PureDP(0.25)
    assert Budget.stored(url) == ["default"]
    other = Budget.open(url, name="other", rho=0.5, neighbors="add-remove")
    assert (other.total, Budget.open(url, name="other").neighbors) == (ZCDP(0.5, neighbors="add-remove"), "add-remove")
    assert other.spent == ZCDP(0.0, neighbors="add-remove")
    assert Budget.stored(url) == ["default", "other"]


@pytest.mark.parametrize(
    "given",
    [
        {"epsilon": 2.0}, {"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-7}, {"rho": 1.0}, {"mu": 1.0},
        {"delta": 1e-7}, {"theorem": "basic"}, {"neighbors": "add-remove"}, {"refusals": 4},
        {"declared": [PureDP(0.1)]},
    ],
    ids=str,
)  # fmt: skip
def test_another_total_is_an_error(url, given):
    Budget.open(url, epsilon=1.0, delta=1e-6, theorem="zcdp")
    with pytest.raises(ValueError, match=r"=.*: must be as 'default' of .* was made"):
        Budget.open(url, **given)


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ("sqlite://x", "url='sqlite://x': must be 'sqlite:///' and a path"),
        ("sqlite:///", "must be 'sqlite:///' and a path"),
        ("sqlite:///:memory:", "must name a file"),
        (3, "url=3: must be"),
        ("postgres:///x", "must be 'sqlite:///'"),
    ],
)
def test_bad_urls(bad, match):
    with pytest.raises(ValueError, match=match):
        Budget.open(bad, epsilon=1.0)


def test_slashes(url, monkeypatch):
    monkeypatch.chdir(file_of(url).parent)
    Budget.open("sqlite:///near.db", epsilon=1.0)
    assert Budget.open(f"sqlite:///{file_of(url).parent}/near.db").epsilon == 1
    assert str(sqlite_file.path_of("sqlite:////a/b.db")) == "/a/b.db"


def test_names(url):
    for name in ("", "a\nb", "x" * 201, 3):
        with pytest.raises(ValueError, match=r"^name=.*: must be a text"):
            Budget.open(url, name=name, epsilon=1.0)
    with pytest.raises(LedgerError, match="is not there; give epsilon="):
        Budget.open(url)
    assert not file_of(url).exists()
    with pytest.raises(ValueError, match=r"epsilon=-1.0: must be > 0"):
        Budget.open(url, epsilon=-1.0)
    assert not file_of(url).exists()  # parameters are checked before a file is made
    Budget.open(url, epsilon=1.0)
    with pytest.raises(ValueError, match=r"name='b': must be a budget of .* \('default'\), or come with a total"):
        Budget.open(url, name="b")


# --- charging: each theorem as in memory

KINDS: list[Any] = [
    PureDP(0.1),
    PureDP(0.1) & ZCDP(0.004),
    BoundedRange(0.2),
    ZCDP(0.003),
    ZCDP(0.0021, mu=0.0648),
    GaussianDP(0.07),
    ApproxDP(0.1, 1e-8),
    ZCDP(0.01) & Renyi.laplace(30.0),
]


@pytest.mark.parametrize("theorem", ["basic", "zcdp", "gaussian", "best"])
def test_every_theorem_is_that_of_memory(url, theorem):
    """The same charges in the same order: the same answers, sums and rows, in a process that has read all anew, too."""
    chooser = random.Random(theorem)
    in_memory = Budget(epsilon=1.0, delta=1e-6, theorem=theorem)
    stored = Budget.open(url, epsilon=1.0, delta=1e-6, theorem=theorem)
    through = 0
    for i in range(60):
        guarantee, outcomes = chooser.choice(KINDS), []
        for budget in (in_memory, stored if i % 2 else Budget.open(url)):
            try:
                budget.charge(guarantee, "some", parameters={"i": i})
                outcomes.append("through")
            except ValueError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
        through += outcomes[0] == "through"
    assert 3 < through < 60
    again = Budget.open(url)
    for budget in (stored, again):
        assert budget.spent == in_memory.spent
        assert budget.left == in_memory.left
        assert [(row.guarantee, row.total, row.parameters) for row in budget.releases] == [
            (row.guarantee, row.total, row.parameters) for row in in_memory.releases
        ]
    assert again._ledger.sums()._finite.keys() == in_memory._ledger.sums()._finite.keys()
    for name in in_memory._ledger.sums()._finite:
        assert again._ledger.sums()._sum(name) == in_memory._ledger.sums()._sum(name)


@pytest.mark.parametrize(("total", "each", "fit"), [({"rho": 0.5}, ZCDP(0.125), 4), ({"mu": 1.0}, GaussianDP(0.5), 4)])
def test_totals_that_are_a_rho_or_a_mu(url, total, each, fit):
    for budget in (Budget(**total), Budget.open(url, **total)):
        for _ in range(fit):
            budget.charge(each, "one")
        with pytest.raises(BudgetExceeded, match="nothing more fits"):
            budget.charge(each, "one more")
        assert budget.spent == budget.total
        assert budget.left == PureDP(0.0)
        assert budget.epsilon == np.inf
        with pytest.raises(ValueError, match=r"take|has no sum|neither"):
            budget.charge(ApproxDP(1e-9, 1e-12), "without a rho")


def test_what_a_total_of_rho_has_beside(url):
    for bad in (
        {}, {"epsilon": 1.0, "rho": 1.0}, {"rho": 0.0}, {"mu": -1.0}, {"rho": 0.5, "delta": 1e-6},
        {"rho": 0.5, "theorem": "gaussian"}, {"mu": 0.5, "theorem": "best"}, {"rho": 0.5, "declared": [PureDP(0.1)]},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="must"):
            Budget(**bad)
    pure = Budget(rho=0.5)
    pure.charge(pure.left, "all of it")
    assert 0.5 - 1e-9 < pure.spent.rho <= 0.5


def test_declared_releases_are_stored(url):
    items = [(with_profile(PureDP(0.1), fastdp.privacy.Laplace(0.1)), 30)]
    stored = Budget.open(url, epsilon=2.8, delta=1e-6, declared=items)
    beside = stored.left.epsilon
    assert beside > 0.3
    for i in range(30):
        (stored if i % 2 else Budget.open(url)).charge(items[0][0], "declared")
    again = Budget.open(url)
    assert again.still_open == ()
    assert again.releases[-1].declared == PureDP(0.1)
    again.charge(PureDP(again.left.epsilon), "beside")
    assert again.left.epsilon < 1e-6
    with pytest.raises(BudgetExceeded, match="no declared release covers"):
        stored.charge(items[0][0], "one more")


def test_refusals_close_a_stored_budget_for_all(url):
    one, two = Budget.open(url, epsilon=9.0, refusals=1), Budget.open(url)
    begun = Reservation(two, PureDP(0.1), "begun", {})
    for _ in range(2):
        with pytest.raises(DomainError):
            fastdp.laplace(np.nan, sensitivity=1, epsilon=0.1, budget=one)
    with pytest.raises(BudgetExceeded, match="this budget is closed"):
        begun.commit()  # what is under way draws nothing
    begun.close()
    for budget in (one, two, Budget.open(url)):
        assert (budget.refused, budget.left, budget.spent) == (2, PureDP(0.0), PureDP(0.0))
        with pytest.raises(BudgetExceeded, match="this budget is closed"):
            budget.charge(PureDP(0.1), "late")
        with pytest.raises(BudgetExceeded, match="this budget is closed"):
            fastdp.laplace(np.nan, sensitivity=1, epsilon=0.1, budget=budget)
        assert budget.refused == 2


def test_mechanisms_charge_return_and_nest(url):
    stored, outer = Budget.open(url, epsilon=1.0), Budget(epsilon=0.3)
    with outer, stored:
        fastdp.laplace([1, 2], sensitivity=2, epsilon=0.25)
        with pytest.raises(BudgetExceeded):
            fastdp.laplace([1, 2], sensitivity=2, epsilon=0.25)
    assert stored.spent == outer.spent == PureDP(0.25)
    reservation = Reservation(stored, PureDP(0.75), "slow", {})
    assert Budget.open(url).left == PureDP(0.0)
    assert [row.state for row in Budget.open(url).releases] == ["final", "reserved"]
    assert "1 release and 1 reserved" in repr(stored)
    assert "reserved" in repr(stored.releases)
    reservation.close()
    assert Budget.open(url).left == stored.left == PureDP(0.75)
    with pytest.raises(RuntimeError, match="this release has ended"):
        reservation.commit()
    assert len(stored.releases) == 1


def test_seeded_releases_stay_so(url):
    stored = Budget.open(url, epsilon=1.0)
    fastdp.laplace(3, sensitivity=1, epsilon=0.25, budget=stored, rng=fastdp.Randomness(seed=1))
    stored.charge(PureDP(0.25), "theirs")
    again = Budget.open(url)
    assert again.spent.seeded
    assert [row.origin.words for row in again.releases] == ["seed", "another library"]


# --- what is stored is what was charged


def all_kinds() -> list[Any]:
    laplace = with_profile(PureDP(0.30000000000000004), fastdp.privacy.DiscreteLaplace(10 / 3, 2))
    relation: Any = {"neighbors": "add-remove"}
    return [
        *KINDS, laplace, GaussianDP(5e-324), ZCDP(1 / 3), PureDP(0.1, theorem="basic", **relation),
        fastdp.compose((laplace, 3)), fastdp.compose((laplace, 3), delta=1e-7),
        subsampled(PureDP(0.5, **relation), rate=0.01, sampling="poisson"),
        subsampled(PureDP(0.5), rate=0.01, sampling="fixed-size"),
        with_profile(ApproxDP(0.5, 1e-6), RemovalLemma(0.01, True)),
        Renyi(lambda order: np.inf if order > 30 else order / 7), AllOf(laplace, ZCDP(0.01, mu=0.2)),
    ]  # fmt: skip


@pytest.mark.parametrize("guarantee", all_kinds(), ids=str)
def test_guarantees_are_stored_without_loss(guarantee):
    again = from_json(json.loads(json.dumps(as_json(guarantee), allow_nan=False)))
    assert again == guarantee
    assert fastdp.privacy.composition.all_known(again) == fastdp.privacy.composition.all_known(guarantee)
    assert (again.theorem, again.neighbors) == (guarantee.theorem, guarantee.neighbors)
    forms = [(form.leak, form.pure, form.rho, form.range, form.mu, form.profiles) for form in guarantee.forms()]
    assert [(form.leak, form.pure, form.rho, form.range, form.mu, form.profiles) for form in again.forms()] == forms


@pytest.mark.parametrize(
    "stored",
    [
        {}, {"kind": "PureDP"}, {"kind": "os.system", "x": 1}, {"kind": "PureDP", "epsilon": -1.0},
        {"kind": "PureDP", "epsilon": 1.0, "profile": {"kind": "Budget"}},
        {"kind": "AllOf", "parts": [], "neighbors": "replace-one"}, {"kind": "PureDP", "epsilon": 1.0, "extra": 2},
    ],
    ids=str,
)  # fmt: skip
def test_nothing_else_is_read(stored):
    with pytest.raises(ValueError, match="is no guarantee that this version of fastdp knows"):
        from_json(stored)


def test_profiles_of_others_are_refused(url):
    class Mine(fastdp.privacy.Laplace):
        pass

    budget = Budget.open(url, epsilon=1.0)
    with pytest.raises(ValueError, match=r"profile=Mine: must be a profile of fastdp\.privacy to be stored"):
        budget.charge(with_profile(PureDP(0.1), Mine(0.1)), "mine")
    assert budget.spent == PureDP(0.0)


def test_rows_go_to_json_and_frames(url):
    for budget in (Budget.open(url, epsilon=1.0), Budget(epsilon=1.0)):
        fastdp.laplace([1, 2], sensitivity=2, epsilon=0.1, budget=budget)
        budget.charge(PureDP(0.1), "b", parameters={"sizes": (np.int64(3), 2.5, np.inf), "who": object, "t": None})
        rows = json.loads(budget.releases.to_json())
        assert [row["mechanism"] for row in rows] == ["laplace", "b"]
        assert rows[1]["parameters"] == {"sizes": [3, 2.5, "inf"], "who": repr(object), "t": None}
        assert from_json(rows[1]["total"]) == PureDP(0.2)
        frame = budget.releases.to_frame()
        assert frame["epsilon"].tolist() == [0.1, 0.1]
        assert frame["total"].tolist() == ["0.1-DP, replace-one", "0.2-DP, replace-one"]
        assert len(budget.releases[:0].to_frame()) == 0


# --- processes


def race(url: str, processes: int, epsilon: float) -> list[int]:
    """How many releases each of so many processes gets through, which begin together."""
    begin, go = os.pipe()
    children, counts = [], []
    for _ in range(processes):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.close(go)
                os.read(begin, 1)
                spend_until_refused(url, epsilon, lambda to=writer: os.write(to, b"x"))
            finally:
                os._exit(0)
        os.close(writer)
        children.append((child, reader))
    os.close(begin)
    os.close(go)
    for child, reader in children:
        with os.fdopen(reader, "rb") as drawn:
            counts.append(len(drawn.read()))
        os.waitpid(child, 0)
    return counts


def test_64_processes_race_for_the_last_share(url):
    Budget.open(url, epsilon=1.0).charge(PureDP(0.75), "before")
    counts = race(url, 64, 0.25)
    assert sorted(counts) == [0] * 63 + [1]
    assert Budget.open(url).spent == PureDP(1.0)


def test_processes_race_for_many_shares(url):
    Budget.open(url, epsilon=1.0)
    counts = race(url, 8, 0.01)
    assert sum(counts) == 100 == len(Budget.open(url).releases)


def test_a_ledger_that_looks_once_would_lose_the_race(url, monkeypatch):
    """The mutant: who finds the next place taken takes the one after, and does not count anew."""
    Budget.open(url, epsilon=1.0)

    def reserve(self: Any, charge: Any, has_room: Any) -> Any:
        if not has_room(self._count().total.placed(charge)):
            return self._count().total
        while True:
            counted = self._count()
            facts = self._facts_of(charge, counted.charges)
            charge.place = counted.charges, sqlite_ledger._digest(counted.digest, facts)
            if self._file.write(sqlite_ledger._RESERVE, (self._budget, *facts, charge.place[1]))[0]:
                return None

    monkeypatch.setattr(sqlite_ledger.SqliteLedger, "reserve", reserve)

    class Slow(Budget):
        def _has_room(self, sums):
            room = super()._has_room(sums)
            time.sleep(0.02)
            return room

    def run(_):
        with contextlib.suppress(BudgetExceeded):
            Slow.open(url).charge(PureDP(0.25), "raced")
            through.append(1)

    through: list[int] = []
    threads = [threading.Thread(target=run, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(through) > 4


def test_threads_race(url):
    budget, through = Budget.open(url, epsilon=1.0), []

    def run() -> None:
        with contextlib.suppress(BudgetExceeded):
            while True:
                fastdp.laplace(1, sensitivity=1, epsilon=0.0625, budget=budget)
                through.append(1)

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(through) == 16 == len(budget.releases)


def test_a_child_goes_on_with_it_and_returns_nothing_of_its_parents(url):
    budget = Budget.open(url, epsilon=1.0)
    budget.charge(PureDP(0.25), "parent")
    with budget:
        begun = Reservation(budget, PureDP(0.25), "begun", {})

        def child() -> None:
            fastdp.laplace(1, sensitivity=1, epsilon=0.125)  # in the block that was open around the fork
            begun.close()
            begun.close(ValueError("an error of the child's"))
            with contextlib.suppress(RuntimeError):
                begun.commit()
                os._exit(7)

        assert in_child(child) == 0
        assert budget.spent == PureDP(0.625)
        begun.commit()
    assert [row.state for row in budget.releases] == ["final"] * 3
    assert pickle.loads(pickle.dumps(budget)).spent == PureDP(0.625)
    assert copy.deepcopy(budget) is budget


def test_forks_beside_threads_that_charge(url):
    """No connection lives through a fork, and no lock is lost by one."""
    budget, stop, counts = Budget.open(url, epsilon=1e6), threading.Event(), [0]

    def run() -> None:
        while not stop.is_set():
            budget.charge(PureDP(0.5), "thread")
            counts[0] += 1

    thread = threading.Thread(target=run)
    thread.start()
    try:
        for _ in range(20):
            assert in_child(lambda: [budget.charge(PureDP(0.25), "child") for _ in range(3)] and 0) == 0
    finally:
        stop.set()
        thread.join()
    assert budget.spent == PureDP(0.5 * counts[0] + 0.25 * 60)


def test_a_handler_charges_what_is_being_charged(run_python, url):
    printed = run_python(f"""
import signal
from fastdp import Budget, PureDP
budget = Budget.open({url!r}, epsilon=1e6)
here = there = 0
def handler(*_):
    global there
    budget.charge(PureDP(0.125), "handler")
    there += 1
    signal.setitimer(signal.ITIMER_REAL, 0.0003)
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.0003)
while there < 150:
    budget.charge(PureDP(0.125), "main")
    here += 1
signal.setitimer(signal.ITIMER_REAL, 0)
print(here + there - len(budget.releases), budget.spent.epsilon - 0.125 * len(budget.releases))
""")
    assert printed.split() == ["0", "0.0"]


def test_kills_at_random_moments(url):
    """The ledger never counts less than what was released, and at most one more for each kill."""
    Budget.open(url, epsilon=1e6)
    seen, counted = kill_at_random(url, 60, seed=1)
    assert seen <= counted <= seen + 60
    assert seen > 60
    assert Budget.open(url).spent == PureDP(0.125 * counted)


def test_a_ledger_that_counts_after_the_draw_would_say_less(url):
    """The mutant that the test before must see: the order of charge and draw exchanged."""
    Budget.open(url, epsilon=1e6)

    def spend_late(url: str, epsilon: float, write: Any) -> None:
        budget = Budget.open(url)
        while True:
            write()
            time.sleep(0.001)
            budget.charge(PureDP(epsilon), "late")

    seen, counted = kill_at_random(url, 30, seed=2, spend=spend_late)
    assert seen > counted


# --- disks, files, schemas


def test_a_full_disk_releases_nothing(url):
    """A limit of the size of files stands for it: writes fail with an error, at whichever statement it is."""
    Budget.open(url, epsilon=1e6)

    def child() -> None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
        budget = Budget.open(url)
        for _ in range(10_000):
            try:
                fastdp.laplace(1, sensitivity=1, epsilon=0.125, budget=budget, rng=Counting())
                drawn.append(1)
            except LedgerError as error:
                told = "the disk is full" in str(error) and "nothing was released" in str(error)
                few = len(keys) - len(drawn) in (0, 1)  # of a key whose charge could not be made final
                os._exit(0 if told and few and len(Budget.open(url).releases) >= len(drawn) > 20 else 3)

    class Counting(fastdp.Randomness):
        def key(self) -> Any:
            keys.append(1)
            return super().key()

    drawn: list[int] = []
    keys: list[int] = []
    assert in_child(child) == 0
    after = Budget.open(url)
    count = len(after.releases)
    after.charge(PureDP(0.125), "after")  # the file is whole, and goes on where there is room
    assert len(after.releases) == count + 1


def test_a_file_that_may_not_be_written_to(url):
    Budget.open(url, epsilon=1.0)
    gc.collect()
    os.chmod(file_of(url), 0o400)
    if os.geteuid() == 0:
        os.chmod(file_of(url).parent, 0o755)

    def child() -> int:
        if os.geteuid() == 0:
            os.setuid(65534)
        try:
            Budget.open(url).charge(PureDP(0.1), "x")
        except LedgerError:
            return 0
        return 1

    assert in_child(child) == 0


def test_permissions(url):
    budget = Budget.open(url, epsilon=1.0)
    assert stat.S_IMODE(os.stat(file_of(url)).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(f"{file_of(url)}-wal").st_mode) == 0o600
    del budget
    gc.collect()
    for mode in (0o620, 0o602, 0o666):
        os.chmod(file_of(url), mode)
        with pytest.raises(LedgerError, match=f"others may write to it .mode {mode:o}.*chmod go-w"):
            Budget.open(url)
    os.chmod(file_of(url), 0o644)
    Budget.open(url)
    os.link(file_of(url), file_of(url).parent / "second")
    with pytest.raises(LedgerError, match="has several names"):
        Budget.open(url)
    os.unlink(file_of(url).parent / "second")
    os.chmod(file_of(url).parent, 0o777)
    with pytest.raises(LedgerError, match="everybody may write to its folder"):
        Budget.open(url)


def test_a_file_that_is_replaced_or_removed(url):
    budget = Budget.open(url, epsilon=1.0)
    budget.charge(PureDP(0.25), "one")
    for suffix in ("", "-wal", "-shm"):
        os.rename(f"{file_of(url)}{suffix}", f"{file_of(url)}{suffix}.away")
    with pytest.raises(LedgerError, match="was removed or replaced since it was opened"):
        budget.charge(PureDP(0.25), "two")
    Budget.open(url, epsilon=1.0)
    with pytest.raises(LedgerError, match="was removed or replaced"):
        budget.charge(PureDP(0.25), "two")
    assert Budget.open(url).spent == PureDP(0.0)


def edit(url: str, *statements: str) -> None:
    """Change a file past its triggers, as a text editor could."""
    gc.collect()
    connection = sqlite3.connect(file_of(url), isolation_level=None)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_nothing_is_changed_or_deleted(url):
    Budget.open(url, epsilon=1.0).charge(PureDP(0.25), "one")
    connection = sqlite3.connect(file_of(url))
    for statement in ("UPDATE charges SET guarantee = ''", "DELETE FROM charges", "DELETE FROM fates",
                      "UPDATE fates SET fate = 'returned'", "UPDATE budgets SET totals = ''"):  # fmt: skip
        with pytest.raises(sqlite3.DatabaseError, match="a ledger is written to, and never changed"):
            connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charges SET guarantee = replace(guarantee, '0.25', '0.05') WHERE number = 1",
        "DELETE FROM charges WHERE number = 1",
        "UPDATE charges SET item = 3 WHERE number = 2",
        "UPDATE fates SET digest = 'x' WHERE number = 1",
        "UPDATE fates SET number = 7 WHERE number = 1",
        "UPDATE charges SET mechanism = 'another' WHERE number = 0",
        "UPDATE budgets SET totals = '{}'",
        "UPDATE budgets SET totals = 'x'",
    ],
)
def test_rows_that_were_changed_are_seen(url, statement):
    budget = Budget.open(url, epsilon=1.0)
    for _ in range(3):
        budget.charge(PureDP(0.25), "one")
    del budget
    edit(url, statement)
    with pytest.raises(LedgerError, match=r"is damaged, or was changed|budget 'default': "):
        Budget.open(url).charge(PureDP(0.0625), "x")


def test_a_damaged_file(url):
    budget = Budget.open(url, epsilon=1.0)
    for _ in range(3):
        budget.charge(PureDP(0.25), "one")
    del budget
    gc.collect()
    whole = file_of(url).read_bytes()
    for damaged in (b"no SQLite" * 1000, whole[:4096] + b"\xff" * 4096 + whole[8192:], whole[: len(whole) // 2]):
        file_of(url).write_bytes(damaged)
        with pytest.raises(LedgerError, match=r"^ledger '.*': "):
            Budget.open(url).charge(PureDP(0.0625), "x")
    file_of(url).write_bytes(whole)
    assert Budget.open(url).spent == PureDP(0.75)


def test_a_schema_from_the_future(url):
    Budget.open(url, epsilon=1.0)
    edit(url, "PRAGMA user_version = 2")
    with pytest.raises(LedgerError, match=r"was written by a newer fastdp \(schema 2; this one knows 1\): upgrade"):
        Budget.open(url)


def test_a_file_of_another_program(url):
    connection = sqlite3.connect(file_of(url))
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    before = file_of(url).read_bytes()
    with pytest.raises(LedgerError, match=r"is an SQLite file of another program|others may write"):
        Budget.open(url, epsilon=1.0)
    assert file_of(url).read_bytes() == before


def test_a_later_schema_is_reached_in_one_step(url, monkeypatch):
    """A migration, and one that fails in the middle, which leaves the file as it was."""
    Budget.open(url, epsilon=1.0).charge(PureDP(0.25), "one")
    gc.collect()
    monkeypatch.setattr(sqlite_file, "SCHEMA", 2)
    monkeypatch.setitem(sqlite_file.STEPS, 2, "ALTER TABLE budgets ADD COLUMN note TEXT; CREATE TABLE budgets (x);")
    with pytest.raises(LedgerError, match="already exists"):
        Budget.open(url)
    monkeypatch.setitem(sqlite_file.STEPS, 2, "ALTER TABLE budgets ADD COLUMN note TEXT;")
    assert Budget.open(url).spent == PureDP(0.25)
    monkeypatch.setattr(sqlite_file, "SCHEMA", 1)
    with pytest.raises(LedgerError, match="newer fastdp"):
        Budget.open(url)


def test_network_file_systems_are_refused(url, monkeypatch):
    monkeypatch.setattr(sqlite_file, "_file_system", lambda folder: "nfs4")
    with pytest.raises(LedgerError, match=r"is on a network file system \(nfs4\)"):
        Budget.open(url, epsilon=1.0)


def test_a_file_that_is_held(url, monkeypatch):
    """Others that write make a charge wait, and an error comes in the end."""
    monkeypatch.setattr(sqlite_file, "_PATIENCE", 0.3)
    budget = Budget.open(url, epsilon=1.0)
    other = sqlite3.connect(file_of(url), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="another process has held it"):
        budget.charge(PureDP(0.25), "one")
    assert budget.spent == PureDP(0.0)
    other.execute("ROLLBACK")
    budget.charge(PureDP(0.25), "one")
    other.close()
    assert budget.spent == PureDP(0.25)


def test_on_a_disk(tmp_path):
    """What a charge writes is on the disk before a draw: the journal is synchronised once for each."""
    budget = Budget.open(f"sqlite:///{tmp_path}/b.db", epsilon=1.0)
    levels = []
    sqlite_ledger_file = budget._ledger._file
    attempt = sqlite_file.LedgerFile.write

    def spied(self: Any, statement: str, values: Any, *, durable: bool = True) -> Any:
        levels.append((statement.split()[4], durable))
        return attempt(self, statement, values, durable=durable)

    sqlite_file.LedgerFile.write = spied  # type: ignore[method-assign]
    try:
        budget.charge(PureDP(0.25), "one")
    finally:
        sqlite_file.LedgerFile.write = attempt  # type: ignore[method-assign]
    assert levels == [("charges", True), ("fates", False)]
    ((level,),) = sqlite_ledger_file.rows("PRAGMA synchronous")
    assert level == 2  # FULL
    assert Fraction(Budget.open(f"sqlite:///{tmp_path}/b.db").spent.epsilon) == Fraction(1, 4)


# --- the command


def test_the_command_reads_budgets(url, capsys):
    from fastdp.cli import main

    stored = Budget.open(url, epsilon=1.0)
    stored.charge(PureDP(0.25), "one")
    file = str(file_of(url))
    assert main(["budget", "list", file]) == 0
    assert "epsilon=1.0" in capsys.readouterr().out
    assert main(["budget", "show", url]) == 0
    shown = capsys.readouterr().out
    assert "left 0.75-DP" in shown
    assert "one" in shown
    assert main(["budget", "export", file]) == 0
    assert json.loads(capsys.readouterr().out)[0]["mechanism"] == "one"
    assert main(["budget", "export", file, "--csv"]) == 0
    assert capsys.readouterr().out.startswith("mechanism,parameters,guarantee,total")
    Budget.open(url, name="b", rho=1.0)
    for arguments, complaint in (
        (["show", file], "--name: must be one of 'default', 'b'"),
        (["show", file, "--name", "c"], "--name: must be one of"),
        (["list", f"{file}x"], "is not there"),
        (["list", "sqlite:x"], "url='sqlite:x': must be"),
    ):
        assert main(["budget", *arguments]) == 2
        assert complaint in capsys.readouterr().err
    assert not os.path.exists(f"{file}x")
