"""Classes under the path by which users import them: what their pickles, tracebacks and documentation name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from importlib import import_module
from sys import modules
from typing import Any, TypeVar

T = TypeVar("T", bound=type)


def public_as(path: str) -> Callable[[T], T]:
    """Let a class state that it lives in the module `path`, which offers it; above all its other decorators."""

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


def lazily(
    namespace: MutableMapping[str, Any], homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package that offers classes of its modules, and imports them when asked for."""
    package = namespace["__name__"]

    def get(name: str) -> Any:
        if name not in homes:
            hint = f"; there is fastdp.{name}" if name in getattr(modules.get("fastdp"), "__all__", ()) else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        namespace[name] = getattr(import_module(f".{homes[name]}", package), name)
        return namespace[name]

    return get, lambda: sorted({*namespace, *homes})
