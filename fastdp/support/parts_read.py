"""Which of the records the public call that is under way reads, for those who read them and who charge for it.

What a user's callback does inside of a call is not that call's: neither do releases of the callback cost the part that
the call reads, nor may the callback read a part because the call may. So a call counts only where no code of the user's
stands in between; and for what is charged it must be the innermost public function, as a callback may be one itself.
"""

from __future__ import annotations

import sys
from types import FrameType

from .boundary import is_public_function, is_users
from .calls import ALL, Call, Which, current


def _call_under_way(inside_of_others: bool) -> Call | None:
    """`inside_of_others`: of our own public functions that take no relation, as those do that pack records."""
    call = current()
    frame: FrameType | None = sys._getframe(2)
    while call is not None and frame is not None and not is_users(frame):
        if is_public_function(frame):
            if "_call" in frame.f_code.co_names:
                return call
            if not inside_of_others:
                return None
        frame = frame.f_back
    return None


def read_some(which: Which) -> None:
    """Let the call that is under way read some of the records; ValueError where it may not."""
    call = _call_under_way(inside_of_others=True)
    if call is None or call.neighbors != "add-remove":
        given = "" if call is None or call.neighbors is None else f"={call.neighbors!r}"
        what = "a part of a partition" if which.part else "rows of persons"
        raise ValueError(f"neighbors{given}: must be 'add-remove' for {what}, whose number of records is private")
    if call.which not in (ALL, which):
        raise ValueError("records: are of two parts, or of two choices of rows: must be of one")
    call.which = which


def what_is_read() -> Which:
    """Which of the records the call under way reads; ALL where it reads no part of them."""
    noted = current()
    if noted is None or noted.which is ALL:
        return ALL
    call = _call_under_way(inside_of_others=False)
    return ALL if call is None else call.which
