"""The line between fastdp and its caller: what an error carries across it, and numpy's float errors inside of it.

The frames of a traceback hold what a call was working on: scores, parts of records, noise. Loggers print them, and so
do reports of crashes. A function that reads records therefore lets none of its frames out: its errors keep their type,
message and notes, and come from one frame that holds nothing. A user's callback keeps its own frames.
"""

from __future__ import annotations

import ast
import dis
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import update_wrapper
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter, signature
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

from .calls import Call, OfPersons

F = TypeVar("F", bound=Callable[..., Any])
E = TypeVar("E", bound=BaseException)

# libraries that we call, and that hold what we gave them; a frame of anybody else is of a user's callback
_READERS = frozenset(
    {"dask", "distributed", "numpy", "pandas", "polars", "pyarrow"}
)  # whose messages may quote entries
_CALLED = _READERS | {"llvmlite", "mbi", "numba", "opendp", "rich", "scipy", "sklearn", "snsynth"}
_MAY_QUOTE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_WITHHELD = "the message is withheld, as it comes from a library and may quote a record"
_MOST_PLACES = 8  # in a note
_STARS: dict[Any, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}


def boundary(function: F) -> F:
    """A public function that reads records: no error brings a value along, and numpy's float errors are off in it.

    What `numpy.seterr`, or a warning that is turned into an error, does about a NaN or an overflow would otherwise end
    a call because of a record.
    """
    import numpy as np

    return _behind(function, np.errstate)


def quick_boundary(function: F) -> F:
    """The same for calls of a few microseconds, whose floats only kernels compute with: it saves 0.6 us."""
    return _behind(function, None)


def _behind(function: F, quiet: Any) -> F:
    """A function of the same signature that calls this one.

    It is written for this signature: 190 instructions a call, and 290 by *args and **kwargs. It hands arguments over by
    position, which takes half of the time that names take.
    """
    given = signature(function).parameters.values()
    inside = _by_position(function)
    arguments = ", ".join(_passed(each, by_name=inside is function) for each in given)
    within = ["_quiet(all=_ignore)"] if quiet else []
    shared = ""
    if quiet and any(each.name == "neighbors" for each in given):
        within.append("_call(neighbors)")
        shared = _of_each_record(given)
    held = [each.name for each in given] + (["_at_most", "_"] if shared else [])
    entered = f"with {', '.join(within)}: " if within else ""
    source = (
        f"def {function.__name__}({_declared(given)}):\n"
        f"  try:\n{shared}"
        f"    {entered}return _inside({arguments})\n"
        f"  except BaseException as _error:\n"
        f"    _error = _told(_error, {_payer(function.__name__, given)})\n"
        f"    {' = '.join(held)} = None\n"  # this frame stays in the traceback
        f"    raise _without_values(_error)\n"
    )
    known = {
        "__name__": function.__module__, "_inside": inside, "_quiet": quiet, "_ignore": "ignore",
        "_without_values": without_values, "_told": _told, "_call": Call,
        "_persons": _persons, "_shares": _shares,
    }  # fmt: skip
    tree = ast.parse(source)
    for node in ast.walk(tree):  # its one line is where the function begins
        if hasattr(node, "lineno"):
            node.lineno = node.end_lineno = function.__code__.co_firstlineno  # type: ignore[attr-defined]
            node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    exec(compile(tree, function.__code__.co_filename, "exec"), known)
    outside: Any = known[function.__name__]
    outside.__defaults__, outside.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
    return cast("F", update_wrapper(outside, function))


def _by_position(function: Any) -> Any:
    """The same function, whose parameters may all be given by position: they lie in one order in its frame anyhow."""
    code = function.__code__
    if code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):  # which lie behind those
        return function
    code = code.replace(co_argcount=code.co_argcount + code.co_kwonlyargcount, co_kwonlyargcount=0)
    return FunctionType(code, function.__globals__, function.__name__, None, function.__closure__)


def _of_each_record(given: Iterable[Parameter]) -> str:
    """Statements of a function to which records of persons may be given: what it may cost for one of their records."""
    names = [each.name for each in given]
    records = ", ".join(each.name for each in given if each.kind is Parameter.POSITIONAL_OR_KEYWORD)
    if "epsilon" not in names:
        return ""
    delta = "delta" if "delta" in names else "_"
    return (
        f"    _at_most = _persons({records})\n"
        f"    if _at_most > 1: epsilon, {delta} = _shares(_at_most, epsilon, {'None' if delta == '_' else delta})\n"
    )


_shares_of: Callable[[int, Any, Any], tuple[Any, Any]] = lambda at_most, epsilon, delta: (epsilon, delta)  # noqa: E731


def when_of_persons(shares: Callable[[int, Any, Any], tuple[Any, Any]]) -> None:
    """Let `shares(at_most, epsilon, delta)` say what a call may cost for one record of a person who has so many."""
    global _shares_of
    _shares_of = shares


def _persons(*given: Any) -> int:
    """How many records each person has at most, where records of persons are given; 1 elsewhere."""
    for each in given:
        if issubclass(type(each), OfPersons):  # not isinstance, which asks the object
            persons = cast("OfPersons", each).which.persons
            return 1 if persons is None else persons.at_most
    return 1


def _shares(at_most: int, epsilon: Any, delta: Any) -> tuple[Any, Any]:
    """The same where a public function calls another, whose shares these are."""
    return (epsilon, delta) if is_told_again(2) else _shares_of(at_most, epsilon, delta)


def _payer(name: str, parameters: Iterable[Parameter]) -> str:
    """Whose budget it is that an error is told to: an expression for the function's own frame; () for nobody's."""
    names = [each.name for each in parameters]
    if "budget" in names:
        return "budget"
    if names[:1] == ["self"]:  # predictions are nobody's release
        return "getattr(self, 'budget', ())" if name.startswith("fit") else "getattr(self, '_payers', ())"
    return "()"


def _declared(parameters: Iterable[Parameter]) -> str:
    """Parameters as a def has them."""
    found: list[str] = []
    for each in parameters:
        if each.kind is Parameter.KEYWORD_ONLY and not any(other.startswith("*") for other in found):
            found.append("*")
        default = "" if each.default is Parameter.empty else "=None"
        found.append(_STARS.get(each.kind, "") + each.name + default)
    return ", ".join(found)


def _passed(parameter: Parameter, *, by_name: bool) -> str:
    """A parameter as a call hands it on."""
    if parameter.kind is Parameter.KEYWORD_ONLY and by_name:
        return f"{parameter.name}={parameter.name}"
    return _STARS.get(parameter.kind, "") + parameter.name


# --- errors that depend on records

_count: Callable[[BaseException, Any, bool, bool], None] = lambda error, payer, by_us, again: None  # noqa: E731


def when_refused(count: Callable[[BaseException, Any, bool, bool], None]) -> None:
    """Let `count(error, payer, by_us, again)` know what leaves a public function; it may raise another error instead.

    `again` tells whether it will be told of the same error once more in the same call of the user's.
    """
    global _count
    _count = count


def _told(error: BaseException, payer: Any) -> BaseException:
    try:
        _count(error, payer, is_raised_by_us(error), is_told_again(2))
    except ValueError as other:
        return other
    return error


def is_told_again(above: int = 1) -> bool:
    """Whether a public function is under way in the frames above the calling one, up to the first that is a user's."""
    frame: FrameType | None = sys._getframe(1 + above)
    while frame is not None and not is_users(frame):
        if is_public_function(frame):
            return True
        frame = frame.f_back
    return False


def is_public_function(frame: FrameType) -> bool:
    """Whether this is the frame that `boundary` puts around a public function."""
    return frame.f_globals.get("_told") is _told and "_inside" in frame.f_globals


def is_raised_by_us(error: BaseException) -> bool:
    """Whether a statement of fastdp has raised it, and not a library, a callback or the interpreter."""
    frames = list(_frames(error.__traceback__))
    return bool(frames) and _package(frames[-1].tb_frame) == "fastdp" and _opcode(frames[-1]) == "RAISE_VARARGS"


def _opcode(traceback: TracebackType) -> str:
    return dis.opname[traceback.tb_frame.f_code.co_code[traceback.tb_lasti]]


def without_values(error: E) -> E:
    """The error as it may leave: no frame of ours in it or in what led to it, and no message that quotes an entry."""
    seen: set[int] = set()
    _strip(error, seen)
    return error


def _strip(error: BaseException, seen: set[int]) -> None:
    seen.add(id(error))
    traceback = error.__traceback__
    if traceback is not None and _is_foreign(traceback) and isinstance(error, _MAY_QUOTE):
        _withhold(error, traceback)
    quiet = error.__suppress_context__
    frames = list(_frames(traceback))
    error.__traceback__ = _of_callbacks(traceback)
    error.__cause__, error.__context__ = _allowed(error.__cause__, seen), _allowed(error.__context__, seen)
    error.__suppress_context__ = quiet  # which __cause__ has set
    _clear(frames)


def _allowed(other: BaseException | None, seen: set[int]) -> BaseException | None:
    """Of what led to an error, the first that is a caller's own, or that a callback has raised."""
    while other is not None and id(other) not in seen:
        if other.__traceback__ is not None and is_users(other.__traceback__.tb_frame):
            return other  # from outside of the call, or raised and caught inside of a callback
        after = other.__cause__ or other.__context__
        _strip(other, seen)
        if other.__traceback__ is not None:
            return other
        other = after
    return None


# --- frames


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__") or ""
    return name.partition(".")[0]


def is_users(frame: FrameType) -> bool:
    """Whether this is code of the caller's: neither ours nor of a library that we call."""
    package = _package(frame)
    return package != "fastdp" and package not in _CALLED and package not in sys.stdlib_module_names


def _of_callbacks(traceback: TracebackType | None) -> TracebackType | None:
    """The frames of the user's callbacks, and of what they called."""
    kept, inside = [], False
    for each in _frames(traceback):
        inside = _package(each.tb_frame) != "fastdp" and (inside or is_users(each.tb_frame))
        if inside:
            kept.append(each)
    made = None
    for each in reversed(kept):
        made = TracebackType(made, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return made


def _clear(traceback: list[TracebackType]) -> None:
    """Empty the frames that have ended and are no callback's: those that a callback's frame leads back to, too."""
    for each in traceback:
        frame: FrameType | None = each.tb_frame
        if frame is not None and is_users(frame):
            frame = frame.f_back
        while frame is not None and not is_users(frame):
            with suppress(RuntimeError):  # it is running
                frame.clear()
            frame = frame.f_back


# --- messages of libraries


def _is_foreign(traceback: TracebackType) -> bool:
    """Whether an error was not raised by a statement of ours, of scikit-learn or of a callback."""
    for each in _frames(traceback):
        traceback = each
    frame = traceback.tb_frame
    if _package(frame) == "fastdp":
        return _opcode(traceback) not in ("RAISE_VARARGS", "RERAISE")
    return _package(frame) in _READERS and not any(is_users(each.tb_frame) for each in _frames(traceback))


def _withhold(error: BaseException, traceback: TracebackType) -> None:
    """Keep the type of a library's error, and say where in fastdp it arose; no word of its own."""
    places = [
        f"{each.tb_frame.f_globals['__name__']}:{each.tb_lineno}"
        for each in _frames(traceback)
        if _package(each.tb_frame) == "fastdp"
    ]
    error.args = (_WITHHELD,)
    if isinstance(error, UnicodeDecodeError | UnicodeEncodeError | UnicodeTranslateError):
        error.object, error.start, error.end = type(error.object)(), 0, 0
    if isinstance(error, AttributeError):
        error.obj = None
    error.add_note("raised at " + ", ".join(reversed(places[-_MOST_PLACES:])))
