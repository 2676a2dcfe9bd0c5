"""Files of ledgers: SQLite in write-ahead mode, safe to open from many processes, threads and forks.

Each step is one statement, which is a transaction of its own: a signal handler that interrupts a thread between two of
them finds nothing open. No connection lives through a fork. What a ledger writes there, and in which order, is
sqlite_ledger.py; sqlite_ledger.md says what is assumed of the machine.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import weakref
from _thread import get_ident
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn, TypeVar
from urllib.parse import quote

from ..support.shown import shown
from .ledger import LedgerError

T = TypeVar("T")

SCHEMA = 1  # what this version of fastdp reads and writes
APPLICATION = 0x66647062  # "fdpb": whose file it is
_PREFIX = "sqlite:///"
_PATIENCE = 60.0  # seconds that others may hold the file
_TURN = 0.25  # of them within SQLite, where neither Ctrl-C nor a fork is heard
_PAUSE = 0.001
_NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "fuse.sshfs"})

# What makes each version of the file of the one before. A step that changes what a row means makes tables of other
# names, so that a process of an older fastdp, which has the file open, fails and writes nothing.
STEPS: dict[int, str] = {
    1: """
CREATE TABLE budgets (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, totals TEXT NOT NULL, made TEXT NOT NULL);
CREATE TABLE charges (
    budget INTEGER NOT NULL, number INTEGER NOT NULL, guarantee TEXT NOT NULL, item INTEGER, mechanism TEXT NOT NULL,
    parameters TEXT NOT NULL, words TEXT NOT NULL, version TEXT NOT NULL, made TEXT NOT NULL, process INTEGER NOT NULL,
    once TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (budget, number)) WITHOUT ROWID;
CREATE TABLE fates (
    place INTEGER PRIMARY KEY, budget INTEGER NOT NULL, number INTEGER NOT NULL,
    fate TEXT NOT NULL CHECK (fate IN ('final', 'returned')), digest TEXT NOT NULL, UNIQUE (budget, number));
CREATE TABLE refusals (place INTEGER PRIMARY KEY, budget INTEGER NOT NULL, made TEXT NOT NULL);
CREATE INDEX refusals_of ON refusals (budget, place);
"""
    + "".join(
        f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is written to, and never changed'); END;\n"
        for table in ("budgets", "charges", "fates", "refusals")
        for verb in ("UPDATE", "DELETE")
    )
}


def path_of(url: Any) -> Path:
    """The file that a URL names: three slashes before a relative path, four before an absolute one.

    Parameters
    ----------
    url : str
        Such as "sqlite:///budget.db".

    Returns
    -------
    Path
        Absolute, and free of links, so that all who open it open one file.
    """
    if not isinstance(url, str) or not url.startswith(_PREFIX) or len(url) == len(_PREFIX):
        raise ValueError(
            f"url={shown(url)}: must be 'sqlite:///' and a path: three slashes before a relative one, four before an "
            "absolute one"
        )
    if "\0" in url or url.endswith(":memory:"):
        raise ValueError(f"url={shown(url)}: must name a file; a budget in memory is fastdp.Budget(...)")
    return Path(os.path.realpath(os.path.expanduser(url[len(_PREFIX) :])))


# --- connections, and forks


class _Connection(sqlite3.Connection):
    """A connection that is closed when nothing refers to it."""

    def __del__(self) -> None:
        with suppress(sqlite3.Error):
            self.close()


class _Inside:
    """That a thread is inside of SQLite, for as long as this lives."""

    __slots__ = ("__weakref__", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()


def _is_elsewhere(ref: weakref.ref[_Inside]) -> bool:
    """Whether another thread is inside; a function, so that nothing of the loop around it keeps the object alive."""
    one = ref()
    return one is not None and one.thread != get_ident()


class _Process:
    """What this process has open. A fork waits until no other thread is inside of SQLite, and closes everything.

    SQLite keeps its locks in the process: a child that used a connection of its parent's, or closed it, would take
    locks for held that are not, and could lose what others write.
    """

    def __init__(self) -> None:
        self.id = os.getpid()
        self.lost = False  # whether a fork could not wait
        self.made: list[int] = []  # handles of files that were made here
        self.open: set[weakref.ref[_Connection]] = set()
        self.inside: set[weakref.ref[_Inside]] = set()
        self.forking: set[int] = set()

    def enter(self) -> _Inside:
        """Wait for forks of other threads."""
        if self.id != os.getpid() or self.lost:
            raise LedgerError(
                "this process was forked while another thread was writing to a ledger, or by code that tells Python "
                "nothing of it: start it with the method 'spawn', and open the budget there"
            )
        while True:
            mine = _Inside()
            self.inside.add(weakref.ref(mine, self.inside.discard))
            if not self.forking - {mine.thread}:
                return mine
            del mine
            sleep(_PAUSE)

    def opened(self, connection: _Connection) -> None:
        self.open.add(weakref.ref(connection, self.open.discard))

    def before_fork(self) -> None:
        self.forking.add(get_ident())
        end = monotonic() + _PATIENCE
        while any(_is_elsewhere(ref) for ref in self.inside.copy()):
            if monotonic() > end:
                return
            sleep(_PAUSE)
        for ref in self.open.copy():
            if (connection := ref()) is not None:
                with suppress(sqlite3.Error):
                    connection.close()
        self.open.clear()

    def after_fork(self) -> None:
        self.forking.discard(get_ident())

    def in_child(self) -> None:
        self.lost = bool(self.open)
        self.id = os.getpid()
        self.forking.clear()
        self.inside.clear()


_process = _Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_process.before_fork, after_in_parent=_process.after_fork, after_in_child=_process.in_child
    )


# --- the file


class LedgerFile:
    """A file of ledgers, opened or made.

    Parameters
    ----------
    path : Path
        As `path_of` gives it.
    make : bool
        Whether to make it where it is not there.
    """

    __slots__ = ("__weakref__", "_idle", "_which", "path")

    def __init__(self, path: Path, *, make: bool) -> None:
        self.path = path
        self._idle: list[_Connection] = []  # pop and append are one step each: whoever interrupts takes another
        self._which: tuple[int, int] | None = None
        self._refuse_network()
        if not path.exists():
            if not make:
                self.complain("is not there; give epsilon=, rho= or mu= to make a budget in it")
            self._make()
        self._check_access()
        self._which = self._identity()
        self.attempt(self._prepare)

    def __del__(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def complain(self, what: str) -> NoReturn:
        """LedgerError, which names the file."""
        raise LedgerError(f"ledger {str(self.path)!r}: {what}")

    # --- one step at a time

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What a query finds, of one moment."""
        return self.attempt(lambda connection: connection.execute(statement, values).fetchall())

    def write(
        self, statement: str, values: Sequence[Any] | Mapping[str, Any], *, durable: bool = True
    ) -> tuple[int, int]:
        """How many rows a statement has written, and the place of the last: all of it is done, or nothing.

        What is durable is on the disk when this returns, and all that was written before it.
        """

        def do(connection: _Connection) -> tuple[int, int]:
            self._check_identity()
            if not durable:  # a connection that is interrupted here is not used again
                connection.execute("PRAGMA synchronous = NORMAL")
            cursor = connection.execute(statement, values)
            if not durable:
                connection.execute("PRAGMA synchronous = FULL")
            return cursor.rowcount, cursor.lastrowid or 0

        return self.attempt(do)

    def attempt(self, do: Callable[[_Connection], T]) -> T:
        """What a step returns; while others hold the file it is tried again."""
        end = monotonic() + _PATIENCE
        while True:
            inside = _process.enter()
            try:
                connection = self._idle.pop() if self._idle else self._connect()
                result = do(connection)
                self._idle.append(connection)
            except sqlite3.ProgrammingError as error:  # a signal handler has forked, which closed the connection
                if "closed" not in str(error):
                    raise
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code not in _BUSY or monotonic() > end:
                    self._explain(error, code)
                sleep(_PAUSE)
            except IndexError:  # a signal handler has taken the last connection
                pass
            else:
                return result
            finally:
                del inside

    def _connect(self) -> _Connection:
        connection = sqlite3.connect(
            f"file:{quote(str(self.path))}?mode=rw",
            uri=True, timeout=_TURN, isolation_level=None, check_same_thread=False, factory=_Connection,
        )  # fmt: skip
        _process.opened(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS: else its disk may keep what it calls written in a cache
        if self._which is not None:
            self._check_identity()
        return connection

    def _explain(self, error: sqlite3.Error, code: int) -> NoReturn:
        what = _CAUSES.get(code, f"{error}")
        raise LedgerError(f"ledger {str(self.path)!r}: {what}; nothing was released") from None

    # --- opening

    def _make(self) -> None:
        """An empty file that nobody else may read or write.

        It stays open: a process that closes a file ends all its locks on it, those of SQLite in other threads, too.
        """
        try:
            handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            _process.made.append(handle)
            os.fsync(handle)
            folder = os.open(self.path.parent, os.O_RDONLY)
            with suppress(OSError):  # not every system can
                os.fsync(folder)
            os.close(folder)
        except FileExistsError:
            return
        except OSError as error:
            self.complain(f"cannot be made ({error.strerror})")

    def _check_access(self) -> None:
        """Whoever can write to the file can forget what was released."""
        if not hasattr(os, "geteuid"):
            return
        for suffix in ("", "-wal", "-shm"):
            try:
                found = os.stat(f"{self.path}{suffix}")
            except FileNotFoundError:
                if suffix:
                    continue
                self.complain("was removed")
            except OSError as error:
                self.complain(f"cannot be read ({error.strerror})")
            if not stat.S_ISREG(found.st_mode):
                self.complain("must be a file")
            if found.st_mode & 0o022:
                self.complain(
                    f"others may write to it (mode {stat.S_IMODE(found.st_mode):o}), and so forget what was released; "
                    "chmod go-w it"
                )
            if os.geteuid() not in (0, found.st_uid) and found.st_uid:
                self.complain("belongs to another user, who could forget what was released")
            if found.st_nlink != 1:
                self.complain("has several names (hard links), which SQLite takes for several files")
        folder = os.stat(self.path.parent)
        if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
            self.complain("everybody may write to its folder, and so replace it; take another folder")

    def _refuse_network(self) -> None:
        kind = _file_system(self.path.parent)
        if kind in _NETWORK:
            self.complain(f"is on a network file system ({kind}), where SQLite's locks fail; take a local disk")

    def _identity(self) -> tuple[int, int]:
        try:
            found = os.stat(self.path)
        except OSError:
            return 0, 0
        return found.st_dev, found.st_ino

    def _check_identity(self) -> None:
        """Nobody has removed or replaced it: what was released is in the file that was opened."""
        if self._identity() != self._which:
            self.complain("was removed or replaced since it was opened; nothing was released")

    def _prepare(self, connection: _Connection) -> None:
        """Bring the file to this version's schema."""
        if self._version(connection) < SCHEMA:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            try:
                for version in range(self._version(connection) + 1, SCHEMA + 1):
                    for statement in _statements(STEPS[version]):
                        connection.execute(statement)
                    connection.execute(f"PRAGMA user_version = {version}")
                connection.execute(f"PRAGMA application_id = {APPLICATION}")
                connection.execute("COMMIT")
            except BaseException:
                connection.close()  # which rolls back
                raise
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self.complain("has no write-ahead log, which this file system may not support; take a local disk")
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            self.complain(_CAUSES[sqlite3.SQLITE_CORRUPT])

    def _version(self, connection: _Connection) -> int:
        (version,), (application,) = (
            connection.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")
        )
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application != APPLICATION and (tables or version):
            self.complain("is an SQLite file of another program; take another path")
        if version > SCHEMA:
            self.complain(
                f"was written by a newer fastdp (schema {version}; this one knows {SCHEMA}): upgrade fastdp to use it"
            )
        return int(version)


def _statements(text: str) -> list[str]:
    """The statements of a script, one by one: `executescript` would end the transaction."""
    found, pending = [], ""
    for line in text.split(";"):
        pending += line + ";"
        if sqlite3.complete_statement(pending) and pending.strip(" \n;"):
            found.append(pending)
            pending = ""
    return found


def _file_system(folder: Path) -> str:
    """The kind of file system that a folder is on; empty where the system does not tell."""
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    for line in lines:
        place, _, rest = line.partition(" - ")
        mount = place.split(" ")[4].replace("\\040", " ")
        inside = str(folder) == mount or str(folder).startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, rest.split(" ")[0]
    return kind


_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL}
_CAUSES = {
    sqlite3.SQLITE_BUSY: f"another process has held it for {_PATIENCE:.0f} s",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "cannot be read or written: the disk is full, or fails",
    sqlite3.SQLITE_READONLY: "may not be written to",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened, or its folder may not be written to",
    sqlite3.SQLITE_PERM: "may not be opened",
    sqlite3.SQLITE_CORRUPT: "is damaged: restore it from a copy that holds all that was released, or end its budgets",
    sqlite3.SQLITE_NOTADB: "is no SQLite file, or is damaged",
}

__all__ = ["LedgerFile", "path_of"]
