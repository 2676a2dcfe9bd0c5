"""Budgets: a total that releases are charged to, in the order in which they happen, by whoever makes them.

A release is charged in three steps: it reserves its guarantee before it reads a record, the reservation becomes final
when the first noise is drawn, and an error before that returns it. budget.md says which theorem makes the running total
sound when parameters are chosen on the way, and why the others are not offered here.
"""

from __future__ import annotations

import html
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Any, Literal, NoReturn, overload

from .checks import non_negative, positive
from .directed import down, up
from .errors import PrivacyWarning
from .privacy import NEIGHBORS, ZCDP, ApproxDP, Guarantee, Neighbors, PureDP, epsilon_of_rho

Theorem = Literal["basic", "zcdp", "best"]
THEOREMS = ("basic", "zcdp", "best")

_current: ContextVar[Budget | None] = ContextVar("fastdp budget", default=None)
_open: weakref.WeakSet[Budget] = weakref.WeakSet()  # budgets whose block is open somewhere in this process
_open_blocks = 0  # how many those are
_open_lock = threading.Lock()


def _count_blocks(change: int) -> None:
    global _open_blocks
    with _open_lock:
        _open_blocks += change


class BudgetExceeded(ValueError):
    """A release was refused: it would have passed the total. Nothing was read, nothing was charged."""


@dataclass(frozen=True)
class Release:
    """One row of `Budget.releases`."""

    mechanism: str
    parameters: Mapping[str, Any]
    guarantee: Guarantee
    total: Guarantee  # of this release and all before it


class Releases(Sequence[Release]):
    """The releases charged so far, as a table that prints well."""

    def __init__(self, rows: Sequence[Release]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> Release: ...
    @overload
    def __getitem__(self, index: slice) -> Releases: ...
    def __getitem__(self, index: int | slice) -> Release | Releases:
        return self._rows[index] if isinstance(index, int) else Releases(self._rows[index])

    def __len__(self) -> int:
        return len(self._rows)

    def _cells(self) -> list[tuple[str, ...]]:
        return [
            (
                str(number),
                row.mechanism,
                ", ".join(f"{name}={value!r}" for name, value in row.parameters.items()),
                _short(row.guarantee),
                _short(row.total),
            )
            for number, row in enumerate(self._rows, 1)
        ]

    def __repr__(self) -> str:
        rows = [_HEADINGS, *self._cells()]
        widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADINGS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in _HEADINGS)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in self._cells()
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


_HEADINGS = ("", "mechanism", "parameters", "guarantee", "total")


def _short(guarantee: Guarantee) -> str:
    return str(guarantee).removesuffix(f", {guarantee.neighbors}")


class Budget:
    """A total epsilon (and delta) that several releases share.

    with Budget(epsilon=1, delta=1e-6) as b:     charges every release of this thread, and of asyncio tasks begun in it
        ...
    fastdp.laplace(x, ..., budget=b)             charges this release, from any thread, inside or outside a block

    theorem      "basic"  epsilons add up, and deltas add up
                 "zcdp"   concentrated DP: rhos add up and are converted at the end, which is what many releases want
                 "best"   a release goes through when the sum of pure epsilons or that of rhos has room
    neighbors    the relation that all its releases must have

    Guarantee    all that is released under one budget together is (epsilon, delta)-DP, however later releases depend
                 on earlier results: budget.md, theorems 1 to 3
    Not covered  what is released outside of it; a process that is forked may not use its parent's budget

    Examples
    >>> import fastdp
    >>> with fastdp.Budget(epsilon=1.0) as b:
    ...     noisy = fastdp.laplace([3, 5], sensitivity=1, epsilon=0.25)
    >>> print(b.spent)
    0.25-DP, replace-one
    >>> print(b.left)
    0.75-DP, replace-one
    >>> b.releases
       mechanism  parameters                       guarantee  total
    -  ---------  -------------------------------  ---------  -------
    1  laplace    sensitivity=1.0, epsilon=0.25    0.25-DP    0.25-DP
    """

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float = 0.0,
        theorem: Theorem = "basic",
        neighbors: Neighbors = "replace-one",
    ) -> None:
        self.epsilon = positive("epsilon", epsilon, toward=0)
        self.delta = non_negative("delta", delta, toward=0)
        if self.delta >= 1:
            raise ValueError(f"delta={delta!r}: must be < 1")
        if theorem not in THEOREMS:
            raise ValueError(
                f"theorem={theorem!r}: must be one of {', '.join(map(repr, THEOREMS))}; other theorems need all "
                "parameters fixed in advance, use compose() for those"
            )
        if theorem == "zcdp" and not self.delta:
            raise ValueError("theorem='zcdp': needs a delta > 0; with delta=0 use theorem='basic'")
        if neighbors not in NEIGHBORS:
            raise ValueError(f"neighbors={neighbors!r}: must be one of {', '.join(map(repr, NEIGHBORS))}")
        self.theorem, self.neighbors = theorem, neighbors
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._charges: dict[int, _Charge] = {}  # reserved and final, in order
        self._sums = _Sums()  # of all of them
        self._tokens: list[Token[Budget | None]] = []
        self._outer: Budget | None = None
        self._present: weakref.WeakSet[threading.Thread] = weakref.WeakSet()

    # --- the block

    def __enter__(self) -> Budget:
        if self._tokens:
            raise RuntimeError("this budget's block is open already; pass budget= to use it elsewhere")
        self._outer = _current.get()
        self._present = weakref.WeakSet(threading.enumerate())
        self._tokens.append(_current.set(self))
        _open.add(self)
        _count_blocks(1)
        return self

    def __exit__(self, *error: object) -> None:
        _open.discard(self)
        _count_blocks(-1)
        _current.reset(self._tokens.pop())
        self._outer = None

    # --- what it holds

    @property
    def spent(self) -> Guarantee:
        """What all releases so far promise together, reservations included."""
        with self._lock:
            return self._promise(self._sums)

    @property
    def left(self) -> PureDP:
        """The largest further release of pure DP that fits."""
        return PureDP(self._largest(PureDP), neighbors=self.neighbors)

    @property
    def releases(self) -> Releases:
        """All releases that have drawn noise."""
        with self._lock:
            final = [charge for charge in self._charges.values() if charge.final]
        rows, sums = [], _Sums()
        for charge in final:
            sums = sums.plus(charge)
            rows.append(Release(charge.mechanism, charge.parameters, charge.guarantee, self._promise(sums)))
        return Releases(rows)

    def fits(self, guarantee: Guarantee) -> bool:
        """Whether a release with this guarantee would go through now."""
        with self._lock:
            return self._has_room(self._sums.plus(_Charge(guarantee, "", {})))

    def __repr__(self) -> str:
        delta = f", delta={self.delta!r}" if self.delta else ""
        return (
            f"Budget(epsilon={self.epsilon!r}{delta}, theorem={self.theorem!r}, neighbors={self.neighbors!r})  "
            f"# spent {_short(self.spent)}, {len(self.releases)} releases"
        )

    def _repr_html_(self) -> str:
        return f"<p><code>{html.escape(repr(self))}</code></p>{self.releases._repr_html_()}"

    # --- one budget is one budget

    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: Any) -> Budget:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Budget does not pickle: two processes would spend it twice; give each process its own share")

    # --- charging

    def _reserve(self, charge: _Charge) -> None:
        if os.getpid() != self._process:
            raise RuntimeError("this budget belongs to the parent process, which could spend it as well; make another")
        guarantee = charge.guarantee
        if guarantee.neighbors != self.neighbors:
            raise ValueError(
                f"neighbors={guarantee.neighbors!r}: this budget is for {self.neighbors!r} neighbours; state the "
                "release's sensitivity under that relation, or use another budget"
            )
        with self._lock:
            sums = self._sums.plus(charge)
            if self._has_room(sums):
                self._charges[id(charge)], self._sums = charge, sums
                return
            spent = self._promise(self._sums)
        kind, name = (ZCDP, "rho") if guarantee.forms()[0].pure == inf else (PureDP, "epsilon")
        largest = self._largest(kind)
        fitting = f"{name}={largest:.6g} would fit" if largest else "nothing more fits"
        raise BudgetExceeded(
            f"budget: {charge.mechanism} asks for {_short(guarantee)}; spent {_short(spent)} of "
            f"{_short(self._whole())} ({self.theorem}); {fitting}"
        )

    def _return(self, charge: _Charge) -> None:
        with self._lock:
            del self._charges[id(charge)]
            self._sums = self._sums.plus(charge, -1)

    def _whole(self) -> Guarantee:
        if self.delta:
            return ApproxDP(self.epsilon, self.delta, neighbors=self.neighbors)
        return PureDP(self.epsilon, neighbors=self.neighbors)

    def _largest(self, kind: type[PureDP] | type[ZCDP]) -> float:
        """The largest parameter of one more release of this kind that fits, to 10 digits; 0 if none does."""
        with self._lock:
            sums = self._sums

        def fits(parameter: float) -> bool:
            return self._has_room(sums.plus(_Charge(kind(parameter, neighbors=self.neighbors), "", {})))

        spent = sums.total("epsilon" if self.theorem == "basic" else "pure")
        exactly = down(Fraction(self.epsilon) - Fraction(spent)) if spent < self.epsilon else 0.0
        low = exactly if kind is PureDP and exactly and fits(exactly) else 0.0
        if low and not fits(low * (1 + 1e-9)):
            return low
        high = max(self.epsilon, 2 * low)
        while fits(high):
            low, high = high, 2 * high
        while high - low > 1e-11 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if fits(middle) else (low, middle)
            if high < 1e-12 * self.epsilon:
                return 0.0
        return low

    # budget.md: theorem 1 for sums of (epsilon, delta), 2 for sums of rho, 3 for "best"

    def _has_room(self, sums: _Sums) -> bool:
        if self.theorem == "basic":
            return sums.total("epsilon") <= self.epsilon and sums.total("delta") <= self.delta
        if self.theorem == "best" and sums.total("pure") <= self.epsilon:
            return True
        return self._concentrated(sums) <= self.epsilon

    def _concentrated(self, sums: _Sums) -> float:
        """The epsilon of the sum of rhos, at this budget's delta."""
        rho = sums.total("rho")
        if rho == 0:
            return 0.0
        return epsilon_of_rho(rho, self.delta) if rho < inf and self.delta else inf

    def _promise(self, sums: _Sums) -> Guarantee:
        """What charges with these sums, which have room, promise together."""
        if self.theorem == "basic":
            epsilon, delta = sums.total("epsilon"), sums.total("delta")
        else:
            pure = sums.total("pure") if self.theorem == "best" else inf
            epsilon = min(pure, self._concentrated(sums))
            delta = self.delta if 0 < epsilon < pure else 0.0
        if delta:
            return ApproxDP(epsilon, delta, neighbors=self.neighbors)
        return PureDP(epsilon, neighbors=self.neighbors)


class _Charge:
    """One release on one budget; identity is what tells it from others."""

    def __init__(self, guarantee: Guarantee, mechanism: str, parameters: Mapping[str, Any]) -> None:
        self.guarantee, self.mechanism, self.parameters = guarantee, mechanism, parameters
        self.final = False
        forms = guarantee.forms()
        clean = [form for form in forms if not form.leak]
        delta, epsilon = min(((form.leak, form.pure) for form in forms if form.pure < inf), default=(0.0, inf))
        self.amounts = {
            "epsilon": epsilon,  # of a pure form where there is one, of an approximate one elsewhere
            "delta": delta,
            "pure": min((form.pure for form in clean), default=inf),
            "rho": min((form.rho for form in clean), default=inf),
        }


class _Sums:
    """Exact sums of the amounts of some charges; inf while one of them has none."""

    def __init__(self) -> None:
        self._finite = dict.fromkeys(("epsilon", "delta", "pure", "rho"), Fraction(0))
        self._missing = dict.fromkeys(self._finite, 0)

    def plus(self, charge: _Charge, times: int = 1) -> _Sums:
        sums = _Sums()
        for name, amount in charge.amounts.items():
            there = amount < inf
            sums._finite[name] = self._finite[name] + (times * Fraction(amount) if there else 0)
            sums._missing[name] = self._missing[name] + (0 if there else times)
        return sums

    def total(self, name: str) -> float:
        return inf if self._missing[name] else up(self._finite[name])


# --- what mechanisms call


def counting(budget: Budget | None) -> bool:
    """Whether a release made here and now is anybody's to count."""
    return budget is not None or _open_blocks > 0 or _current.get() is not None


@contextmanager
def charge(
    budget: Budget | None, guarantee: Guarantee, mechanism: str, parameters: Mapping[str, Any]
) -> Iterator[Callable[[], None]]:
    """Reserve a release on `budget`, or on the budgets whose blocks are open here.

    The block calls what it is given right before it draws noise: from then on the charge is final. An error before
    that returns it.
    """
    if budget is not None and not isinstance(budget, Budget):
        raise ValueError(f"budget={budget!r}: must be a fastdp.Budget or None")
    budgets = _ambient() if budget is None else [budget]
    charges = [(each, _Charge(guarantee, mechanism, parameters)) for each in budgets]
    reserved: list[tuple[Budget, _Charge]] = []

    def make_final() -> None:
        for _, made in charges:
            made.final = True

    try:
        for each, made in charges:
            each._reserve(made)
            reserved.append((each, made))
        yield make_final
    finally:
        for each, made in reserved:
            if not made.final:
                each._return(made)


def _ambient() -> list[Budget]:
    """The budgets whose blocks are open around this code, the innermost first; warns in a thread that has none."""
    budgets = []
    each = _current.get()
    while each is not None:
        budgets.append(each)
        each = each._outer
    if not budgets and any(threading.current_thread() not in other._present for other in list(_open)):
        warnings.warn(
            "a release in a thread that was started inside a Budget block is not charged to that budget; "
            "pass budget= to charge it",
            PrivacyWarning,
            stacklevel=5,
        )
    return budgets
