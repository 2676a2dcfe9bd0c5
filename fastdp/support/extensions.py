"""What upper layers bring to lower ones, by name, so that nothing below imports anything above.

An extension is a module that is imported when it is first needed. `fastdp/__init__.py` registers our own: the engines
that read other libraries' collections, the events of dp-accounting, how each room warms up. A module may stand at
several points.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

_registered: dict[str, dict[str, str]] = {}


def register(point: str, name: str, module: str) -> None:
    """Let `module` (its full name) serve as `name` at this point; it is not imported yet. A name is given once."""
    taken = _registered.setdefault(point, {}).setdefault(name, module)
    if taken != module:
        raise ValueError(f"name={name!r}: must be free at {point!r}, where {taken} has it")


def names(point: str) -> tuple[str, ...]:
    """What is registered at a point, in the order of registration."""
    return tuple(_registered.get(point, ()))


def load(point: str, name: str) -> ModuleType:
    """The module that is registered under this name."""
    return import_module(_registered[point][name])
