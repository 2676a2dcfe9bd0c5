"""Types of calls that numba resolves while it compiles a kernel: each once a process, not once for each place.

At every `a + b` numba asks each implementation of + that it knows, texts and lists included, whether it takes these
types; that was an eighth of its own part of a compilation. What it answers for numbers, arrays and lanes depends on
the types and the compiler's flags alone. Everything here runs under numba's compiler lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba.core.targetconfig
import numba.core.types

_core: Any = numba.core  # Any: which of its parts have types changes from one numba to the next
_resolved: dict[Any, tuple[Any, Any]] = {}  # the function and the signature
_flags: dict[int, tuple[Any, str]] = {}  # by identity, which they keep, flags and what they say


@contextmanager
def resolved_once(context: Any, is_plain: Callable[[Any], bool]) -> Iterator[None]:
    """Let a typing context remember what it resolves meanwhile, for arguments of types that are plain."""
    if "resolve_function_type" in context.__dict__:  # a part of the kernel for which it does so already
        yield
        return
    resolve = context.resolve_function_type

    def resolve_once(function: Any, arguments: Any, keywords: Any) -> Any:
        is_numbas = isinstance(function, _core.types.Function) or type(function) is type(len)
        if keywords or not is_numbas or not all(isinstance(kind, _core.types.Type) for kind in arguments):
            return resolve(function, arguments, keywords)
        key = function, tuple(arguments), _said()
        known, signature = _resolved.get(key, (None, None))
        if known is function:
            return signature
        signature = resolve(function, arguments, keywords)
        if signature is not None and all(map(is_plain, arguments)):
            _resolved[key] = function, signature
        return signature

    context.resolve_function_type = resolve_once
    try:
        yield
    finally:
        del context.resolve_function_type
        _flags.clear()


def _said() -> str:
    """What the flags say with which numba compiles just now."""
    flags = _core.targetconfig.ConfigStack.top_or_none()
    if id(flags) not in _flags:
        _flags[id(flags)] = flags, repr(flags.values()) if flags is not None else ""
    return _flags[id(flags)][1]
