"""Locks of objects that answer one thread at a time, whose holder may be interrupted by code that asks them again.

A signal handler or a finaliser runs in the thread that it interrupts. If that thread holds the lock, to wait for it
would be to wait for ever, and to go on would be to see the object between two states: it is refused.
"""

from __future__ import annotations

import threading
from typing import Any

Turn = Any  # a threading.RLock, which knows its owner


def new_turn() -> Turn:
    """A lock for `with`, after `refuse_again`."""
    return threading.RLock()


def refuse_again(turn: Turn) -> None:
    """RuntimeError if this thread holds the lock already."""
    if turn._is_owned():
        raise RuntimeError(
            "what runs while an answer is made, such as a signal handler or a finaliser, must not ask for another"
        )
