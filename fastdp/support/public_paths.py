"""Classes under the path by which users import them: what their pickles, tracebacks and documentation name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def public_as(path: str) -> Callable[[T], T]:
    """Let a class say that it lives in the module `path`, which offers it; above all its other decorators."""

    def renamed(kind: T) -> T:
        kind.__module__ = path
        return kind

    return renamed


def publish(namespace: Mapping[str, Any], names: Iterable[str], path: str) -> None:
    """The same for all classes of ours among the names of a package."""
    for name in names:
        thing = namespace[name]
        if isinstance(thing, type) and thing.__module__.partition(".")[0] == "fastdp":
            public_as(path)(thing)
