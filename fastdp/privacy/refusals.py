"""Refusals: releases that fail because of their records are counted, and too many of them close the budget.

No price makes "there is a record outside of the domain" private: it is a function of the records without noise. What
can be done is to bound how often it is said. budget.md, theorem 4, states the bits.
"""

from __future__ import annotations

from threading import local

from ..support.errors import AccuracyWarning, DomainError, PrivacyWarning
from .ledger import Ledger, LedgerError

ALLOWED = 3  # by default
MOST = 10**9

_OF_NO_RECORD = (ImportError, PrivacyWarning, AccuracyWarning, LedgerError)  # what public numbers or the machine decide
_last = local()  # .error, .counted: what ends the call that is under way in this thread, and who has counted it


class Refusals:
    """Those of one budget, which its ledger counts."""

    __slots__ = ("_allowed", "_ledger")

    def __init__(self, allowed: int, ledger: Ledger) -> None:
        self._allowed, self._ledger = allowed, ledger

    def __len__(self) -> int:
        return min(self._ledger.refused(), self.allowed + 1)  # of those that came at the same moment, nothing is told

    @property
    def allowed(self) -> int:
        """How many there may be."""
        return self._allowed

    @property
    def exceeded(self) -> bool:
        """Whether there were more than are allowed."""
        return self._ledger.refused() > self.allowed

    def count(self, error: BaseException) -> bool:
        """Count an error once a call; whether it is one more than could be told, as the budget was closed by then.

        Nothing is kept on the error, which leads its holder to no budget, and may end the next call, too.
        """
        if getattr(_last, "error", None) is not error:
            _last.error, _last.counted = error, []
        if any(each is self for each in _last.counted):
            return False
        _last.counted.append(self)
        return self._ledger.refuse() > self.allowed


def forget() -> None:
    """The call has ended: whatever ends the next one counts anew."""
    _last.error, _last.counted = None, []


def depends_on_records(error: BaseException | None, *, by_us: bool) -> bool:
    """Whether an error may be due to what the records are.

    A ValueError that a statement of fastdp has raised (`by_us`) is one of parameters, types or shapes, which are
    public, unless it is a DomainError. Whatever else ends a release may be due to records: libraries that read them,
    functions of the caller's, the memory that they take.
    """
    if not isinstance(error, Exception) or isinstance(error, _OF_NO_RECORD):
        return False
    return isinstance(error, DomainError) or not (by_us and isinstance(error, ValueError))


def reason(refusals: Refusals) -> str:
    """Why a closed budget takes nothing more."""
    return (
        f"this budget is closed: more than refusals={refusals.allowed} of its releases failed because of their "
        "records, and each error of that kind tells something that no epsilon pays for; mend the records, or take "
        "outside='clip', and make a new budget"
    )
