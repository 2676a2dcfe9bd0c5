"""Guarantees as JSON and back, without loss: every number, and what is known of a guarantee beyond its numbers.

A float is written with all its digits, so that what is read is what was charged. Nothing is read but the kinds that
are known here and profiles of ours: a text that comes from elsewhere makes no other object.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from functools import lru_cache
from math import inf, isfinite
from typing import Any

import numpy as np

from ..support import extensions
from ..support.checks import instance_of
from ..support.shown import shown, type_of
from .gaussian_dp import GaussianDP
from .guarantees import A_GUARANTEE, ZCDP, AllOf, ApproxDP, BoundedRange, Guarantee, PureDP, Renyi
from .profiles import Profile, with_profile
from .subsampled_profiles import PoissonSubsampled  # which makes its kinds known

_KINDS: dict[str, type[Guarantee]] = {
    kind.__name__: kind for kind in (PureDP, ApproxDP, ZCDP, BoundedRange, GaussianDP, Renyi)
}
_MODULE = PoissonSubsampled.__module__  # of public profiles

Json = dict[str, Any]


def as_json(guarantee: Guarantee) -> Json:
    """A guarantee as what `json.dumps` takes.

    Parameters
    ----------
    guarantee : Guarantee
        Any.

    Returns
    -------
    dict
        `from_json` makes an equal guarantee of it, of which as much is known.

    Raises
    ------
    ValueError
        Where its profile is of a class that is not fastdp's.
    """
    instance_of(Guarantee, "guarantee", guarantee, A_GUARANTEE)
    made: Json = {"kind": type(guarantee).__name__, "neighbors": guarantee.neighbors}
    if isinstance(guarantee, AllOf):
        made["parts"] = [as_json(part) for part in guarantee.parts]
    elif isinstance(guarantee, Renyi):
        made["curve"] = [_number(value) for value in guarantee.curve]
    else:
        names = [each.name for each in fields(guarantee) if each.init and each.name not in ("neighbors", "theorem")]
        made |= {name: getattr(guarantee, name) for name in names if getattr(guarantee, name) < inf}
    if guarantee.theorem:
        made["theorem"] = guarantee.theorem
    if guarantee.profile is not None:
        made["profile"] = _profile_as_json(guarantee.profile)
    return made


def from_json(stored: Mapping[str, Any]) -> Guarantee:
    """The guarantee that `as_json` has written.

    Parameters
    ----------
    stored : mapping
        What `json.loads` has made of it.

    Returns
    -------
    Guarantee
        As it was, but for its origin.

    Raises
    ------
    ValueError
        Where it is none of those that `as_json` writes.
    """
    if not isinstance(stored, Mapping):
        raise ValueError(f"stored: type {type_of(stored)}: must be a mapping, as as_json writes it")
    rest = dict(stored)
    kind, profile = rest.pop("kind", None), rest.pop("profile", None)
    try:
        if kind == "AllOf":
            neighbors, parts = rest.pop("neighbors"), [from_json(part) for part in rest.pop("parts")]
            made: Guarantee = AllOf(*parts, **rest)
            if made.neighbors != neighbors:
                raise ValueError
        else:
            if kind == "Renyi":
                rest["curve"] = tuple(inf if value == "inf" else float(value) for value in rest["curve"])
            made = _KINDS[kind](**rest)
        return made if profile is None else with_profile(made, _profile_from_json(profile))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise ValueError(f"stored={shown(stored)}: is no guarantee that this version of fastdp knows") from None


def as_text(guarantee: Guarantee) -> str:
    """As a line of JSON."""
    return json.dumps(as_json(guarantee), allow_nan=False)


@lru_cache(4096)
def from_text(text: str) -> Guarantee:
    """The guarantee of a line; of equal lines it is the same object, which does not change."""
    return from_json(json.loads(text))


def plain(value: Any) -> Any:
    """What a row states, as JSON has it: tuples as lists, numbers of numpy as numbers, what it has no form for as text.

    Parameters
    ----------
    value : Any
        A parameter of a release.

    Returns
    -------
    Any
        Of dicts, lists, text, numbers, booleans and None.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float):
        return _number(float(value))
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return repr(value)


def _number(value: float) -> float | str:
    return value if isfinite(value) else repr(value)


def _profile_as_json(profile: Profile) -> Json:
    kind = type(profile)
    if _profiles().get(kind.__name__) is not kind:
        raise ValueError(
            f"profile={kind.__name__}: must be a profile of fastdp.privacy to be stored; charge the guarantee without"
        )
    values = {each.name: getattr(profile, each.name) for each in fields(kind) if each.init}  # type: ignore[arg-type]
    made = {name: _profile_as_json(each) if isinstance(each, Profile) else each for name, each in values.items()}
    return {"kind": kind.__name__, **made}


def _profile_from_json(stored: Mapping[str, Any]) -> Profile:
    rest = dict(stored)
    name = rest.pop("kind")
    known = _profiles()
    if name not in known and name in extensions.names("profile"):
        extensions.load("profile", name)
        known = _profiles()
    values = {key: _profile_from_json(each) if isinstance(each, dict) else each for key, each in rest.items()}
    return known[name](**values)


def _profiles() -> dict[str, type[Profile]]:
    """The public kinds of profiles whose modules are there."""
    found, pending = {}, [Profile]
    while pending:
        kind = pending.pop()
        pending += kind.__subclasses__()
        if kind.__module__ == _MODULE and kind is not Profile:
            found[kind.__name__] = kind
    return found


__all__ = ["as_json", "as_text", "from_json", "from_text", "plain"]
