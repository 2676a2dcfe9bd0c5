"""Every public function, class, method and property, found by walking what fastdp offers.

What is left out stands in `LEFT_OUT` with its reason; whatever else is public has to be callable by calls.py, so that a
new name without valid arguments is noticed.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any

import fastdp

MODULES = (
    "fastdp", "fastdp.audit", "fastdp.privacy", "fastdp.bounds", "fastdp.losses", "fastdp.sets", "fastdp.answering",
    "fastdp.learning", "fastdp.optimizing", "fastdp.records", "fastdp.statistics", "fastdp.sklearn",
    "fastdp.connect.dp_accounting",
    "fastdp.connect.opendp", "fastdp.connect.mbi", "fastdp.connect.smartnoise",
)  # fmt: skip

LEFT_OUT = {
    "warmup": "compiles every kernel",
    "privacy.Origin": "where a key came from, made by sources of keys",
    "privacy.Form": "what guarantees tell compose of themselves, made by classes of guarantees",
    "privacy.Accounted": "a base class",
    "privacy.HasGuarantee": "a protocol",
    "privacy.Profile": "a base class; its methods are called of its kinds",
    "privacy.Guarantee": "a base class; its methods are called of its kinds",
    "answering.Query": "a base class; its methods are called of its kinds",
    "learning.Hypothesis": "a base class; its methods are called of its kinds",
    "losses.Loss": "a base class; its methods are called of its kinds",
    "sets.ConvexSet": "a base class; its methods are called of its kinds",
    "records.Engine": "a base class, of classes of the user's",
    "records.PackedRows": "what mechanisms read records by",
    "records.Subset": "made by partition, limit_rows and per_person",
    "records.check_engine": "a test, which calls what it is given",
    "Partition": "made by partition: a mapping",
    "Plan": "made by plan_releases: a table",
}
"""Names, and beginnings of names, that are not called by themselves."""

PROFILES = (
    "Laplace", "Gaussian", "Exponential", "DiscreteLaplace", "DiscreteGaussian", "RandomizedResponse",
    "PoissonSubsampled", "FixedSizeSubsampled",
)  # fmt: skip
"""Classes of privacy profiles, whose methods are what compose reads of them: made here, not called."""

SEAMS = ("losses.", "sets.")
"""Methods of these are how descents, nets and C read a loss or a set, with what has been checked: they may
raise numpy's own errors."""

OPERATORS = ("__and__", "__eq__", "__len__", "__hash__", "__repr__", "__contains__", "__getitem__", "_repr_html_")


def module_of(path: str) -> Any:
    """A public module; None where its library is not installed."""
    if path in ("fastdp.losses", "fastdp.sets"):
        return getattr(fastdp, path.rpartition(".")[2])
    try:
        return importlib.import_module(path)
    except ImportError:
        return None


def _installed(path: str) -> bool:
    library = {"fastdp.connect.mbi": "mbi", "fastdp.connect.smartnoise": "snsynth"}.get(path, "numpy")
    return importlib.util.find_spec(library) is not None and module_of(path) is not None


def _offered(path: str) -> Iterator[tuple[str, Any]]:
    module = module_of(path)
    names = getattr(module, "__all__", None) if path != "fastdp.bounds" else None  # which loads some when asked
    for name in names or dir(module):
        thing = getattr(module, name, None)
        if (
            name[0] == "_"
            or name in ("lazily", "publish", "public_as")
            or not (inspect.isclass(thing) or inspect.isfunction(thing))
        ):
            continue
        if inspect.isclass(thing) and issubclass(thing, Exception):
            continue
        if f"{thing.__module__}.".startswith(f"{path}." if "connect" in path else "fastdp."):
            yield name, thing


@cache
def things() -> dict[str, Any]:
    """Public functions and classes by their names, without "fastdp." before them; each once."""
    found: dict[str, Any] = {}
    seen: set[int] = set()
    for path in MODULES:
        for name, thing in _offered(path) if _installed(path) else ():
            if id(thing) not in seen:
                seen.add(id(thing))
                found[f"{path}.{name}".removeprefix("fastdp.")] = thing
    return found


def left_out(name: str) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in LEFT_OUT)


@cache
def members() -> dict[str, tuple[str, str]]:
    """Public methods of ours: by name, the class that has it and its attribute; static ones, too."""
    found = {}
    for name, kind in things().items():
        if not inspect.isclass(kind) or left_out(name) or name.removeprefix("privacy.") in PROFILES:
            continue
        for attribute in dir(kind):
            if attribute[0] == "_" and attribute not in OPERATORS:
                continue
            home = next((base for base in kind.__mro__ if attribute in vars(base)), None)
            if home is None or home.__module__.partition(".")[0] != "fastdp" or attribute.endswith("_request"):
                continue
            if callable(getattr(kind, attribute)) and not inspect.isclass(getattr(kind, attribute)):
                found[f"{name}.{attribute}"] = (name, attribute)
    return found


def properties(kind: type) -> list[str]:
    """What a class offers to be read: properties of ours, and fields."""
    ours = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "fastdp"]
    return sorted(
        {
            name
            for base in ours
            for name, value in vars(base).items()
            if name[0] != "_" and not callable(value) and not isinstance(value, classmethod | staticmethod)
        }
    )


def is_seam(name: str) -> bool:
    return name.count(".") == 2 and name.startswith(SEAMS)
