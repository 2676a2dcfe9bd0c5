"""Parameters as users give them, made into what mechanisms compute with.

Every error names the parameter, its value and the rule.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache, wraps
from itertools import islice
from math import inf, isfinite, nextafter
from numbers import Rational, Real
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from .columns import has, library_column
from .errors import DomainError
from .machine import display_bytes, usable_memory
from .shown import described, shown, type_of

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

MAX_INT64 = 2**63 - 1
MOST_COUNT = 2**128  # of anything that a formula counts: it is printed, and a float holds its squares
_HELD = (np.dtype(np.int64), np.dtype(np.float64))  # in native byte order, which others equal not
_PLAIN = (np.ndarray, np.generic, list, tuple, int, float)  # numbers of no data frame library


_WORDS = (str, np.str_)
_PLAIN_TYPES = frozenset({bool, int, float, str, type(None), np.float64, np.int64})


class _OwnType(Exception):
    """A value of a user's own type."""


def remembered(function: F) -> F:
    """What `function` made of the same arguments of the same types before; for checks that end in something immutable.

    A True is no 1 here. Only values whose equality is Python's or numpy's own are remembered: a number of the user's
    own type may change, or call others equal.
    """

    @lru_cache(1024, typed=True)  # by type and value: what was never stored under its type is never found
    def known(*args: Any) -> Any:
        if not _PLAIN_TYPES.issuperset(map(type, args)):
            raise _OwnType
        return function(*args)

    @wraps(function)
    def call(*args: Any) -> Any:
        try:
            return known(*args)
        except Exception:  # without a hash, or of a class that is not ours
            if _PLAIN_TYPES.issuperset(map(type, args)):
                raise
            return function(*args)

    call.cache_clear = known.cache_clear  # type: ignore[attr-defined]
    return cast("F", call)


def positive(name: str, value: Any, *, toward: float) -> float:
    """A finite number > 0 as a float, rounded toward `toward` (0 or infinity) when float64 does not hold it exactly."""
    kind = type(value)
    if kind is not float and not (kind is int and -(2**53) <= value <= 2**53):
        value = _number(name, value)
    result = _as_float(name, value)
    if result != value:
        if result < value and toward > 0:
            result = nextafter(result, inf)
        elif result > value and toward == 0:
            result = nextafter(result, 0.0)
    if not (result > 0 and isfinite(result)):
        raise ValueError(f"{name}={shown(value)}: must be > 0 and finite")
    return result


def moderate(name: str, value: Any, *, toward: float) -> float:
    """A number between 2^-400 and 2^400, whose squares and products float64 holds."""
    result = positive(name, value, toward=toward)
    if not 2.0**-400 <= result <= 2.0**400:
        raise ValueError(f"{name}={shown(value)}: must be between 2^-400 and 2^400")
    return result


def non_negative(name: str, value: Any, *, toward: float) -> float:
    """A finite number >= 0, otherwise as `positive`."""
    if type(value) is not float:
        value = _number(name, value)
    if value == 0:
        return 0.0
    try:
        return positive(name, value, toward=toward)
    except ValueError:
        raise ValueError(f"{name}={shown(value)}: must be >= 0 and finite") from None


def finite(name: str, value: Any) -> float:
    """A finite number as a float, rounded to nearest."""
    result = _as_float(name, _number(name, value))
    if not isfinite(result):
        raise ValueError(f"{name}={shown(value)}: must be finite")
    return result


def integer(name: str, value: Any, *, least: int, most: float = MOST_COUNT) -> int:
    """An integer from `least` to `most`."""
    number = plain_integer(value)
    if number is None or number < least:
        given = described(value) if number is None and isinstance(value, np.generic) else shown(value)  # of an array
        raise ValueError(f"{name}={given}: must be an integer >= {least}")
    if number > most:
        raise ValueError(f"{name}={shown(value)}: must be at most {most:,}")
    return number


def plain_integer(value: Any) -> int | None:
    """The integer that this is; None for a flag, and for what is no integer. No method of a class derived is asked."""
    if type(value) is int:
        return value
    kind = type(value)
    if (
        kind is bool or not issubclass(kind, int | np.integer) or issubclass(kind, np.timedelta64)
    ):  # an integer to numpy
        return None
    return int.__int__(value) if issubclass(kind, int) else int(value)


def large_integer(name: str, value: Any, *, least: int, most: float = MOST_COUNT) -> int:
    """The same for numbers that are often large, so that 1e6 may stand for a million."""
    if issubclass(type(value), float | np.floating):
        number = float.__float__(value) if issubclass(type(value), float) else float(value)
        if abs(number) <= 2**53 and number.is_integer():
            value = int(number)
    return integer(name, value, least=least, most=most)


def check_fits(name: str, value: Any, needed: int, what: str) -> None:
    """ValueError unless so many bytes, which `what` takes for this value of a parameter, are half of the memory."""
    if needed > usable_memory():
        raise ValueError(
            f"{name}={shown(value)}: must be smaller: {what} would take {display_bytes(needed)}, of at most "
            f"{display_bytes(usable_memory())}, half of the memory"
        )


def length_of(name: str, value: Any) -> int:
    """How many entries a list or a range has; ValueError for a range beyond all memory."""
    try:
        return len(value)
    except OverflowError:
        raise ValueError(f"{name}={shown(value)}: must be shorter") from None


def check_records(records: Any, neighbors: str) -> None:
    """ValueError unless a public number of records is given where the number itself is private, and only there."""
    if (records is None) == (neighbors == "add-remove"):
        need = "given" if records is None else "None"
        raise ValueError(f"records={shown(records)}: must be {need} with neighbors={shown(neighbors)}")


def public_count(records: Any, neighbors: str) -> int | None:
    """The public number of records that takes the place of a private one; None where their own is public."""
    check_records(records, neighbors)
    return None if records is None else integer("records", records, least=1)


def _number(name: str, value: Any) -> Any:
    """The same as a number whose arithmetic is Python's or numpy's: nobody's own class decides what it compares to."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    kind = type(value)
    if kind is int or kind is float or kind is Fraction or kind is np.longdouble:
        return value
    if issubclass(kind, bool | np.bool_) or not issubclass(kind, Real):
        raise ValueError(f"{name}={shown(value)}: must be a number")
    if (number := plain_integer(value)) is not None:
        return number  # Python's integers compare with floats exactly
    if issubclass(kind, np.floating | float):
        return float.__float__(value) if issubclass(kind, float) else float(value)
    try:
        if issubclass(kind, Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        return float(value)
    except Exception:  # of a class that is not ours
        raise ValueError(f"{name}={shown(value)}: must be a number") from None


def _as_float(name: str, value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name}={shown(value)}: must be below 2^1024") from None


def probability(name: str, value: Any, *, toward: float = 0) -> float:
    """A number strictly between 0 and 1."""
    result = _within(name, value, toward)
    if not 0 < result < 1:
        raise ValueError(f"{name}={shown(value)}: must be between 0 and 1, both excluded")
    return result


def small_delta(name: str, value: Any, *, toward: float = 0) -> float:
    """A probability that may be 0, not 1."""
    result = _within(name, value, toward)
    if not result < 1:
        raise ValueError(f"{name}={shown(value)}: must be between 0 and 1, 1 excluded")
    return result


def _within(name: str, value: Any, toward: float) -> float:
    """A number from 0 to 1 as a float; 1 for any other number."""
    number = _number(name, value)
    return non_negative(name, number, toward=toward) if 0 <= number < 1 else 1.0


def is_memory(error: Exception, value: Any) -> bool:
    """Whether memory has run out over a value whose class has no code of its own."""
    return isinstance(error, MemoryError) and type(value) in (list, tuple, dict, np.ndarray)


def items_of(name: str, value: Any, rule: str, *, most: int) -> list[Any]:
    """Everything that an iterable has, which ends; `rule` states what it must be."""
    try:
        found = list(islice(iter(value), most + 1))
    except Exception as error:
        if isinstance(value, Generator) or is_memory(error, value):  # a generator's code is the user's own
            raise
        raise ValueError(f"{name}: type {type_of(value)}: must be {rule}") from None
    if len(found) > most:
        raise ValueError(f"{name}: type {type_of(value)}: must be at most {most:,}")
    return found


def plain_array(name: str, value: Any, rule: str, *, error: type[ValueError] = ValueError) -> NDArray[Any]:
    """What numpy makes of it, whatever that is; `rule` states what it must be. `error`: a DomainError of records."""
    try:
        return np.asarray(value)
    except Exception as raised:  # ragged lists, and classes that are not ours
        if is_memory(raised, value):
            raise
        raise error(f"{name}: type {type_of(value)}: must be {rule}") from None


def flag(name: str, value: Any) -> bool:
    """True or False."""
    if type(value) is not bool and type(value) is not np.bool_:
        raise ValueError(f"{name}={shown(value)}: must be True or False")
    return bool(value)


def optional_flag(name: str, value: Any) -> bool | None:
    """True, False, or None for the default."""
    if value is not None and type(value) is not bool and type(value) is not np.bool_:
        raise ValueError(f"{name}={shown(value)}: must be None, True or False")
    return None if value is None else bool(value)


def instance_of(kind: type[T], name: str, value: Any, rule: str) -> T:
    """An object of this class; `rule` states what it must be."""
    if not isinstance(value, kind):
        raise ValueError(f"{name}={shown(value)}: must be {rule}")
    return value


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> Any:
    """One of a few words."""
    if type(value) not in _WORDS or value not in choices:  # of a class derived, `in` asks its own methods
        raise ValueError(f"{name}={shown(value)}: must be one of {', '.join(map(repr, choices))}")
    return str(value)


def optional_power_of_two(name: str, value: Any) -> float | None:
    """A power of two, or None for the default."""
    return None if value is None else power_of_two(name, value)


def power_of_two(name: str, value: Any) -> float:
    """A power of two, fractions included."""
    result = positive(name, value, toward=0)
    if result != _number(name, value) or result.hex().split("p")[0] != "0x1.0000000000000":
        raise ValueError(f"{name}={shown(value)}: must be a power of two, such as 0.25 or 2.0**-20")
    return result


def numbers_array(
    name: str, value: Any, *, error: type[ValueError] = DomainError
) -> NDArray[np.int64] | NDArray[np.float64]:
    """An int64 or float64 array, C-contiguous and in native byte order; without a copy where it is one already.

    `error` is raised about entries of lists and objects: a DomainError of records, a ValueError of parameters. Integers
    beyond int64 that an array of uint64 has become the largest int64, which moves no two values further apart; in a
    list they are an error, whatever type numpy finds for it and the other entries.
    """
    if type(value) is np.ndarray and value.flags.c_contiguous and value.dtype in _HELD:
        return value
    elif isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name}: must not be a masked array; fill or drop the masked entries first")
    elif not isinstance(value, _PLAIN) and (column := library_column(name, value)) is not None:
        value = column.values(0, len(column))  # missing entries are refused, whatever type they would make of the rest
    try:
        array = np.asarray(value)
    except ValueError as wrong:
        why = f" ({wrong})" if isinstance(value, list | tuple) else ""
        raise error(f"{name}: must be a number or a rectangular array of numbers{why}") from None
    except Exception:  # of a class that is not ours, and a range that does not fit into memory
        raise error(f"{name}: type {type_of(value)}: must be a number or an array of numbers") from None
    kind = array.dtype.kind
    if kind == "f" and not has(value, "dtype") and _holds_large_integers(value, array):
        raise error(
            f"{name}: a list of floats with integers beyond 2^53 among them, which floats would round: must be an "
            "array, whose dtype decides"
        )
    if kind == "f" and array.dtype.itemsize <= 8:
        return np.require(array, np.float64, "C") if array.ndim else array.astype(np.float64)
    if kind == "u" and array.dtype.itemsize == 8:
        if not has(value, "dtype") and (array > np.uint64(MAX_INT64)).any():  # beside a negative one it is a float
            raise error(f"{name}: a list with integers beyond int64: must be an array, whose dtype decides")
        array = np.minimum(array, np.uint64(MAX_INT64))
    if kind in "biu":
        return np.require(array, np.int64, "C") if array.ndim else array.astype(np.int64)
    if isinstance(value, Mapping):
        raise ValueError(f"{name}: a mapping: must be an array of numbers, such as list(d.values())")
    kind_of_error = error if is_due_to_entries(value, array) else ValueError
    if kind == "O" and any(isinstance(item, str | bytes) for item in array.flat):
        raise kind_of_error(f"{name}: column of strings: must be numbers")
    rule = "must be integers of at most 64 bits or floats of at most 64 bits"
    if kind == "O" and not has(value, "dtype"):
        if any(not isinstance(item, int | float | np.number) for item in array.flat):
            if not array.ndim:
                raise kind_of_error(f"{name}: type {type_of(value)}: must be a number or an array of numbers")
            raise kind_of_error(f"{name}: an entry is neither an int nor a float: {rule}")
        raise kind_of_error(f"{name}: an integer of more than 64 bits: {rule}")
    hint = "; convert with .astype(float)" if kind == "O" else ""
    raise kind_of_error(f"{name}: dtype {array.dtype}: {rule}{hint}")


def is_due_to_entries(value: Any, array: NDArray[Any]) -> bool:
    """Whether it is the entries of `value` that gave its array this type: of a list, or of objects, or a large int."""
    if array.ndim == 0:
        return array.dtype.kind == "O" and isinstance(array.item(), int)
    return array.dtype.kind == "O" or not has(value, "dtype")


def are_nested(value: Any, array: NDArray[Any], dimensions: int) -> bool:
    """Whether it is the entries of a list, lists themselves, that gave its array more dimensions than these."""
    return array.ndim > dimensions and isinstance(value, list | tuple)


def _holds_large_integers(value: Any, array: NDArray[Any]) -> bool:
    """Whether `value`, which became a float array, holds integers that float64 does not."""
    with np.errstate(all="ignore"):  # a long double may lie beyond float64
        if not (np.abs(array, dtype=np.float64) >= 2.0**53).any():  # which float16 does not hold
            return False
    items = (item.item() if isinstance(item, np.ndarray) and item.ndim == 0 else item for item in _flat(value))
    return any(isinstance(item, int | np.integer) and abs(int(item)) > 2**53 for item in items)


def _flat(value: Any) -> Iterator[Any]:
    """The entries of nested sequences and arrays, as they were given."""
    if isinstance(value, np.ndarray) and value.ndim:
        yield from value.flat
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _flat(each)
    else:
        yield value
