"""Values of every kind that no parameter takes, or that only some take: what the fuzzer puts in place of an argument.

What holds data holds MARK or WORD, which no message may print. Classes here raise, or lie, from every method.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

import fastdp
from fastdp import losses, sets

MARK, WORD = 771177, "s3cr3t"


class Users(Exception):
    """What code of the user raises; it comes through as it is."""


class Strange:
    """An object that is nothing, and whose text must never be in a message."""

    def __repr__(self) -> str:
        return WORD


class Raising:
    """Each of its methods raises."""

    def _raise(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(WORD)

    __repr__ = __str__ = __len__ = __bool__ = __eq__ = __hash__ = __float__ = __index__ = __int__ = _raise  # type: ignore[assignment]
    __iter__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = __array__ = __getattr__ = __call__ = _raise
    __format__ = __contains__ = __add__ = __mul__ = __rmul__ = __enter__ = __exit__ = __fspath__ = _raise  # type: ignore[assignment]


class Floaty(float):
    def __repr__(self) -> str:
        return WORD

    def __float__(self) -> float:
        raise RuntimeError(WORD)

    def __eq__(self, other: object) -> bool:
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __eq__  # type: ignore[assignment]
    __hash__ = float.__hash__


class Inty(int):
    def __repr__(self) -> str:
        return WORD

    def __index__(self) -> int:
        raise RuntimeError(WORD)

    __int__ = __float__ = __index__  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return True

    __lt__ = __le__ = __gt__ = __ge__ = __eq__  # type: ignore[assignment]
    __hash__ = int.__hash__


class Wordy(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return WORD

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("replace-one")


class Listy(list):  # type: ignore[type-arg]
    def __len__(self) -> int:
        return 10**18

    def __iter__(self) -> Any:
        raise RuntimeError(WORD)


class Arrayish:
    """Whose array is another one each time."""

    def __init__(self) -> None:
        self.times = 0

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.times += 1
        return np.full(self.times, MARK)


class Array(np.ndarray):  # type: ignore[type-arg]
    """numpy's, with a text that is none."""

    def __repr__(self) -> str:
        raise RuntimeError(WORD)

    __str__ = __repr__


def ragged() -> Any:
    return [[MARK, MARK], [MARK]]


def cyclic() -> Any:
    found: list[Any] = [MARK]
    found.append(found)
    return found


def raising(*_: Any, **__: Any) -> Any:
    raise Users("of the user")


def structured() -> Any:
    return np.array([(MARK, WORD)], [("a", "i8"), ("b", "U6")])


def object_array() -> Any:
    found = np.empty(2, object)
    found[:] = [Strange(), None]
    return found


_SCALARS: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 64, 65, 1000, 10**6, 2**31, 2**31 - 1, 10**9, 2**53 + 1, 2**62, 2**63, 2**64,
    10**12, 10**18, -(2**63), 10**400, -(10**400), 10**4400, 0.0, -0.0, 0.5, 1.0, 1e-320, 1e-300, 1e300, 1e-17, 1e9,
    3.0, 1e6, float("nan"), float("inf"), -float("inf"), 2.0**-1074, 1.7976931348623157e308, 1j, "", "x", "replace-one",
    "add-remove", "1.0", b"1", b"", "\x00", "\ud800", "é" * 500, "auto", "basic", "peel", "raise", "clip", "gumbel",
    "buckets", "numpy", "a", "/", "/dev/null", ".", decimal.Decimal("0.5"), decimal.Decimal("NaN"),
    decimal.Decimal("sNaN"), decimal.Decimal("1e999999"), fractions.Fraction(1, 3), fractions.Fraction(1, 10**5000),
    datetime.date(2020, 1, 1), np.float16(0.5), np.float32(0.5), np.float64("nan"), np.int8(3), np.uint64(2**64 - 1),
    np.int64(-(2**63)), np.bool_(True), np.longdouble(0.5), np.longdouble("1e-4000"), np.longdouble("1e4000"),
    np.datetime64("2020-01-01"), np.timedelta64("NaT"), np.str_("x"), np.bytes_(b"x"), np.complex128(1j), pd.NA, pd.NaT,
    pd.Timestamp("2020-01-01"), int, object, Strange, type, NotImplemented, Ellipsis, np.float64, np.dtype("i8"), np,
    fastdp.Randomness, sets.Ball, fastdp.Budget, fastdp.PureDP,
]  # fmt: skip

_MADE: list[Callable[[], Any]] = [
    list, lambda: [MARK], lambda: [MARK, 2.0], lambda: [WORD], lambda: [None], ragged, lambda: [float("nan")], tuple,
    lambda: (MARK, 2), dict, lambda: {"a": MARK}, lambda: {WORD: 1, MARK: WORD}, lambda: {MARK, 2}, set,
    lambda: range(3),
    lambda: range(10**12), lambda: range(10**30), lambda: iter([MARK, 2]), lambda: (x for x in [MARK]),
    lambda: slice(MARK), object, Strange, Raising, lambda: Floaty(0.5), lambda: Inty(2), lambda: Wordy("replace-one"),
    lambda: Listy([MARK]), Arrayish, cyclic, structured, object_array, lambda: [[[[[MARK]]]]], lambda: [[]],
    lambda: [10**400], lambda: [MARK, WORD], lambda: [True, MARK], lambda: [Strange(), Strange()], lambda: [Raising()],
    lambda: raising, lambda: lambda *a, **k: 1, lambda: lambda *a, **k: WORD, lambda: lambda *a, **k: None,
    lambda: lambda *a, **k: np.full(3, np.nan), lambda: lambda a: a, lambda: lambda: 1,
    lambda: np.array(MARK), lambda: np.array(3.5), lambda: np.empty(0), lambda: np.empty((0, 3)),
    lambda: np.empty((3, 0)),
    lambda: np.full((2, 2), MARK), lambda: np.ones(3, np.float16), lambda: np.ones(3, complex),
    lambda: np.array(["a", WORD]), lambda: np.array([None, MARK], object), lambda: np.ones((2, 2, 2)),
    lambda: np.full(3, np.nan), lambda: np.array([1, np.inf]), lambda: np.ma.masked_array([MARK, 2], [0, 1]),
    lambda: np.array([2**63 - 1, -(2**63)]), lambda: np.array([2**64 - 1], np.uint64), lambda: np.ones(4)[::2],
    lambda: np.array([b"a"]), lambda: np.rec.array([(MARK, 2.0)]), lambda: np.matrix([[MARK, 2]]),
    lambda: np.arange(3).astype(">i8"), lambda: np.ones(3, np.longdouble), lambda: np.zeros(3, "M8[s]"),
    lambda: np.broadcast_to(np.float64(MARK), 10**6), lambda: np.ones(12)[::-1], lambda: np.ones(3).view(Array),
    lambda: np.frombuffer(b"1234567890123456", np.int64), lambda: np.zeros((1, 10**5)), lambda: np.ones(24, bool),
    lambda: np.full(12, MARK), lambda: np.full((12, 3), MARK), lambda: np.full((12, 3), 0.25),
    lambda: np.zeros(12, int),
    lambda: pd.Series([MARK, 2]), lambda: pd.Series([MARK, None]), lambda: pd.Series([WORD]),
    lambda: pd.Index([MARK, 2]),
    lambda: pd.DataFrame({"a": [MARK, 2]}), pd.DataFrame, lambda: pd.Series([pd.NA, MARK], dtype="Int64"),
    lambda: pd.DataFrame({"a": [0, 1], "b": ["x", None], "c": [1, 2]}), lambda: pd.Categorical([WORD, "b"]),
    lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), lambda: pd.MultiIndex.from_tuples([(1, WORD)]),
    lambda: {"a": [0, 1], "b": ["x", "y"], "c": [1]}, lambda: {"a": [0, 1], "b": ["x", "y"], "c": [1, MARK]},
    lambda: fastdp.PureDP(1.0), lambda: fastdp.ZCDP(0.1, neighbors="add-remove"), lambda: fastdp.ApproxDP(1.0, 1e-6),
    lambda: fastdp.Domain.binary(2), lambda: fastdp.Domain.binary(40), lambda: fastdp.Domain(c=10**6, d=10**6),
    lambda: fastdp.Domain({"other": 2}), lambda: fastdp.Domain.binary(3000), lambda: losses.Logistic(),
    lambda: losses.SquaredError(x_norm=1.0, y_bound=1.0), lambda: losses.Hinge(x_norm=2.0), lambda: sets.Ball(1.0),
    lambda: sets.Simplex(dimension=10**4), lambda: sets.Box(-1.0, 1.0), lambda: fastdp.Conjunction({"a": 1}),
    lambda: fastdp.Linear(np.ones(24)), lambda: fastdp.Mask(np.ones(5, bool)), lambda: Users("x"),
    lambda: memoryview(b"12"), lambda: memoryview(np.full(3, MARK)), lambda: bytearray(b"12"), fastdp.Randomness,
    lambda: fastdp.Budget(epsilon=1.0), lambda: fastdp.GumbelMax(sensitivity=1.0, epsilon=1.0),
    lambda: fastdp.SyntheticDistribution(np.ones(24) / 24, fastdp.Domain(a=2, b=["x", "y", "z"], c=4)),
    lambda: fastdp.pack(np.eye(3, dtype=bool)),
]  # fmt: skip


def everything_hostile() -> Iterator[Any]:
    """All of them, once."""
    return map(hostile, range(HOSTILE))


HOSTILE = len(_SCALARS) + len(_MADE)


def hostile(number: int) -> Any:
    """The value of this number, made anew where it could change."""
    return _SCALARS[number] if number < len(_SCALARS) else _MADE[number - len(_SCALARS)]()
