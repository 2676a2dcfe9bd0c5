"""Ledgers in a file: one budget for many processes, restarts included.

What is in the file are the facts in the order in which they came: a charge is a row with a number, its fate another
row, a refusal a third kind, and nothing is ever changed. Numbers and fates are given by primary keys, as
`dict.setdefault` gives them in memory, so the proofs of budget.md hold as they stand; sqlite_ledger.md has what is new.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn

from ..support import processes
from ..support.shown import shown
from .filters import Totals
from .ledger import FINAL, RETURNED, TRIES, Charge, LedgerError, Sums
from .origin import CHACHA20, Origin
from .refusals import ALLOWED
from .sqlite_file import LedgerFile, path_of
from .stored_forms import as_text, from_text, plain

_COLUMNS = "number, guarantee, item, mechanism, parameters, words, version, made, process, once, digest"
_CHARGES = f"SELECT {_COLUMNS} FROM charges WHERE budget = ? AND number >= ? ORDER BY number"
_FATES = "SELECT place, number, fate, digest FROM fates WHERE place > ? AND budget = ? ORDER BY place"
_RESERVE = f"INSERT OR IGNORE INTO charges (budget, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_DECIDE = """
INSERT OR IGNORE INTO fates (budget, number, fate, digest)
SELECT :budget, :number, :fate, :digest
WHERE EXISTS (SELECT 1 FROM charges WHERE budget = :budget AND number = :number AND digest = :digest)
  AND (:fate = 'returned' OR (SELECT count(*) FROM refusals WHERE budget = :budget) <= :allowed)
"""
_FATE = "SELECT fate FROM fates WHERE budget = ? AND number = ? AND digest = ?"
_PART = "@part"  # among the parameters of a charge: which part of a partition it is on; no parameter may have this name
_CIPHER = "@cipher"  # among them, too, where it is not ChaCha20
_NOTHING_BEFORE = "fastdp ledger"  # what the digest of the first charge goes on from


class _Counted(NamedTuple):
    """What follows from the rows so far; it does not change."""

    charges: int  # rows that were read
    place: int  # of the last fate
    digest: str  # of the last charge
    decided: Sums  # of what is final
    undecided: dict[int, Charge]
    total: Sums  # of both


class SqliteLedger:
    """The charges of one budget of a file.

    Parameters
    ----------
    file : LedgerFile
        Where they are.
    budget : int
        Which of its budgets.
    nothing : Sums
        Of no charges.
    allowed : int
        How many refusals there may be before nothing is final any more.
    """

    __slots__ = ("_allowed", "_budget", "_counted", "_file", "_nothing")

    is_stored = True

    def __init__(self, file: LedgerFile, budget: int, nothing: Sums, allowed: int) -> None:
        self._file, self._budget, self._nothing, self._allowed = file, budget, nothing, allowed
        self._counted = _Counted(0, 0, _NOTHING_BEFORE, nothing, {}, nothing)

    # --- reading

    def sums(self) -> Sums:
        return self._count().total

    def _count(self) -> _Counted:
        """What was counted before, and what has come since: fates are read first, so that their charges are there."""
        before = self._counted
        fates = self._file.rows(_FATES, (before.place, self._budget))
        rows = self._file.rows(_CHARGES, (self._budget, before.charges))
        if not fates and not rows:
            return before
        number, place, digest, decided, undecided, total = before
        undecided = undecided.copy()
        for row in rows:
            charge = undecided[number] = self._charge_of(row, number, digest)
            number, digest, total = number + 1, charge.place[1], total.plus(charge)
        for place, of, fate, its_digest in fates:  # noqa: B007  # the last place is kept
            decided_charge = undecided.pop(of, None)
            if decided_charge is None or decided_charge.place[1] != its_digest:
                self._damaged()
            decided = decided.plus(decided_charge) if fate == FINAL else decided
        if any(fate == RETURNED for _, _, fate, _ in fates):
            total = decided
            for charge in undecided.values():
                total = total.plus(charge)
        self._counted = counted = _Counted(number, place, digest, decided, undecided, total)
        return counted

    def _charge_of(self, row: tuple[Any, ...], number: int, before: str) -> Charge:
        """The charge of a row, which must be the next, and as it was written."""
        *facts, digest = row
        if facts[0] != number or digest != _digest(before, facts):
            self._damaged()
        _, guarantee, item, mechanism, parameters, words, version, made, *_ = facts
        try:
            stated = json.loads(parameters)
            part = tuple((number, text) for number, text in stated.pop(_PART, ()))
            origin = Origin(words, version, stated.pop(_CIPHER, CHACHA20))
            charge = Charge(from_text(guarantee), mechanism, stated, None, origin, part)
        except ValueError as error:
            self._file.complain(f"charge {number}: {error}; upgrade fastdp to use it")
        charge.item, charge.place, charge.made = item, (number, digest), made
        return charge

    def _damaged(self) -> NoReturn:
        self._file.complain("is damaged, or was changed: its rows do not follow from one another")

    def running(self) -> Iterator[tuple[Charge, Sums]]:
        fates = {of: fate for _, of, fate, _ in self._file.rows(_FATES, (0, self._budget))}
        sums, digest = self._nothing, _NOTHING_BEFORE
        for number, row in enumerate(self._file.rows(_CHARGES, (self._budget, 0))):
            charge = self._charge_of(row, number, digest)
            digest = charge.place[1]
            if fates.get(number) == RETURNED:
                continue
            if number in fates:
                charge.decide(FINAL)
            sums = sums.plus(charge)
            yield charge, sums

    def refused(self) -> int:
        ((count,),) = self._file.rows("SELECT count(*) FROM refusals WHERE budget = ?", (self._budget,))
        return int(count)

    # --- writing

    def reserve(self, charge: Charge, has_room: Callable[[Sums], bool]) -> Sums | None:
        for _ in range(TRIES):
            counted = self._count()
            if not has_room(counted.total.placed(charge)):
                charge.place = None
                return counted.total
            facts = self._facts_of(charge, counted.charges)
            digest = _digest(counted.digest, facts)
            charge.place = counted.charges, digest  # before it is there: whoever interrupts this can return it
            if self._file.write(_RESERVE, (self._budget, *facts, digest))[0]:
                return None
        raise RuntimeError("budget: others charge it without a pause; try again")

    def _facts_of(self, charge: Charge, number: int) -> list[Any]:
        """All columns of a row but its digest. A number that comes once makes it differ from all others."""
        charge.made = _now()
        stated = plain(charge.parameters)
        for taken in (_PART, _CIPHER):  # who reads the row would take the charge for one on a part, which it is not
            if taken in stated:
                raise ValueError(f"parameters: {taken!r}: must be another name, as stored ledgers use this one")
        words, version, cipher = charge.origin
        stated |= {_PART: charge.part} if charge.part else {}
        stated |= {_CIPHER: cipher} if cipher != CHACHA20 else {}
        return [
            number, as_text(charge.guarantee), charge.item, charge.mechanism,
            json.dumps(stated, allow_nan=False), words, version, charge.made, os.getpid(),
            os.urandom(16).hex(),
        ]  # fmt: skip

    def decide(self, charge: Charge, fate: str) -> bool:
        if charge.fate is not None:
            return charge.fate == fate
        if charge.process != processes.here.number:  # its parent goes on with it
            return False
        if charge.place is None:
            return fate == RETURNED and charge.decide(fate)
        number, digest = charge.place
        try:
            facts = {"budget": self._budget, "number": number, "fate": fate, "digest": digest, "allowed": self._allowed}
            if self._file.write(_DECIDE, facts, durable=False)[0]:
                return charge.decide(fate)
            found = self._file.rows(_FATE, (self._budget, number, digest))
        except LedgerError:
            if fate == FINAL:
                raise
            return False  # it counts for ever
        return bool(found) and charge.decide(found[0][0]) and found[0][0] == fate

    def refuse(self) -> int:
        _, place = self._file.write("INSERT INTO refusals (budget, made) VALUES (?, ?)", (self._budget, _now()))
        earlier = "SELECT count(*) FROM refusals WHERE budget = ? AND place < ?"
        ((count,),) = self._file.rows(earlier, (self._budget, place))
        return int(count)


def _digest(before: str, facts: list[Any]) -> str:
    """What a row is known by: it goes on from the row before, so none is lost or changed without being seen."""
    return hashlib.blake2b(json.dumps([before, *facts]).encode(), digest_size=16).hexdigest()


# --- the budgets of a file


def budgets_of(url: Any) -> list[str]:
    """The names of all budgets in a file, in the order in which they were made."""
    return _names(LedgerFile(path_of(url), make=False))


def open_budget(url: Any, name: Any, given: Mapping[str, Any]) -> tuple[LedgerFile, int, Totals]:
    """A budget of a file, which is made where a total is given: the file, its key there, and its totals.

    Parameters
    ----------
    url, name : str
        Which.
    given : mapping
        By the names of `Totals`; None for what is not stated.

    Returns
    -------
    tuple of LedgerFile, int and Totals
    """
    path = path_of(url)
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME or not name.isprintable():
        raise ValueError(f"name={shown(name)}: must be a text of at most {_LONGEST_NAME} characters on one line")
    stated = {each for each, value in given.items() if value is not None}
    wanted = None
    if stated & _ONE_OF:  # checked before a file is made
        wanted = Totals.of(**{each: _DEFAULTS.get(each) if value is None else value for each, value in given.items()})
        stated |= {*_ONE_OF, "delta"}  # a total is stated whole
    file = LedgerFile(path, make=wanted is not None)
    found = _totals_of(file, name)
    if found is None:
        if wanted is None:
            there = ", ".join(map(repr, _names(file))) or "none"
            raise ValueError(f"name={name!r}: must be a budget of {str(path)!r} ({there}), or come with a total")
        values = name, json.dumps(wanted.as_json(), allow_nan=False), _now()
        file.write("INSERT OR IGNORE INTO budgets (name, totals, made) VALUES (?, ?, ?)", values)
        found = _totals_of(file, name)  # another process may have come first
        assert found is not None
    key, totals = found
    if wanted is None and stated:
        wanted = Totals.of(**(totals._asdict() | {"declared": None} | {each: given[each] for each in stated}))
    for each in sorted(stated):
        ours, theirs = (one.as_json().get(each) for one in (wanted or totals, totals))
        if ours != theirs:
            raise ValueError(
                f"{each}={shown(given[each])}: must be as {name!r} of {str(path)!r} was made, with {each}="
                f"{shown(theirs)}; leave it out, or take another name"
            )
    return file, key, totals


_ONE_OF = {"epsilon", "rho", "mu"}
_DEFAULTS = {"delta": 0.0, "theorem": "basic", "neighbors": "replace-one", "refusals": ALLOWED}
_LONGEST_NAME = 200


def _names(file: LedgerFile) -> list[str]:
    return [name for (name,) in file.rows("SELECT name FROM budgets ORDER BY id")]


def _totals_of(file: LedgerFile, name: str) -> tuple[int, Totals] | None:
    """A budget's key and totals; None where there is no such budget."""
    found = file.rows("SELECT id, totals FROM budgets WHERE name = ?", (name,))
    if not found:
        return None
    try:
        return found[0][0], Totals.from_json(json.loads(found[0][1]))
    except ValueError as error:
        file.complain(f"budget {name!r}: {error}")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


__all__ = ["SqliteLedger", "budgets_of", "open_budget"]
