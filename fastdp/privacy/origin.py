"""Where a release came from: the words that its noise was drawn from, and the version of fastdp.

A guarantee is about noise that nobody knows. Whoever knows the seed of a release can subtract its noise, so a guarantee
whose release was seeded says so wherever it goes: in results, rows of budgets, sums and conversions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import NamedTuple, TypeVar

from ..support.public_paths import public_as
from ..support.version import VERSION
from .neighbors import unit_of

OPERATING_SYSTEM, SEED = "operating system", "seed"
CHACHA20, AES = "ChaCha20", "AES-256-CTR"


@public_as("fastdp.privacy")
class Origin(NamedTuple):
    """Where a release came from.

    Parameters
    ----------
    words : str
        What its noise was drawn from: "operating system"; "seed", which is never shown; the name of a class of the
        caller's own that gave the keys; or "another library", of which nothing is known.
    version : str
        The version of fastdp.
    cipher : str
        What made the words of its keys: "ChaCha20", "AES-256-CTR", or nothing where that is not known.
    """

    words: str = OPERATING_SYSTEM
    version: str = VERSION
    cipher: str = CHACHA20


SECURE, SECURE_BY_AES, SEEDED = Origin(), Origin(cipher=AES), Origin(SEED)
ELSEWHERE = Origin("another library", cipher="")

T = TypeVar("T", bound="Originated")


class Originated:
    """A guarantee that knows which release it is of, if it is of one, and how it reads."""

    neighbors: str
    origin: Origin | None

    def __init_subclass__(cls) -> None:
        """What a guarantee states is charged as it stands, so the kinds are those that are proven here."""
        if not cls.__module__.startswith("fastdp."):
            raise TypeError(f"{cls.__name__}: must not derive from a guarantee; make one of the kinds that there are")

    @property
    def unit(self) -> str | None:
        """Whose column tells persons apart, where it is about persons; None where it is about records."""
        return unit_of(self.neighbors)

    @property
    def seeded(self) -> bool:
        """Whether it is of a release whose noise came from a seed: then nothing is private from who knows the seed."""
        return self.origin is not None and self.origin.words == SEED

    def _stated(self) -> str:
        """It in words, without relation and origin."""
        raise AssertionError("every kind of guarantee states itself")

    def __str__(self) -> str:
        return f"{self._stated()}, {self.neighbors}" + _NO_PRIVACY * self.seeded

    def __repr__(self) -> str:
        shown = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown + ['seeded=True'] * self.seeded)})"

    def _repr_html_(self) -> str:
        return f"<code>{self}</code>"


_NO_PRIVACY = ", seeded: no privacy"


def with_origin(guarantee: T, origin: Origin | None) -> T:
    """The same guarantee of a release with this origin; None leaves it as it is."""
    if origin is None or origin == guarantee.origin:
        return guarantee
    twin = object.__new__(type(guarantee))
    twin.__dict__.update(guarantee.__dict__, origin=origin)  # as copy() does, in a third of its time
    if parts := getattr(guarantee, "parts", ()):  # all of them are of this release
        object.__setattr__(twin, "parts", tuple(with_origin(part, origin) for part in parts))
    return twin


def short_form(guarantee: Originated) -> str:
    """A guarantee without its relation, which all rows of a table share."""
    return guarantee._stated() + _NO_PRIVACY * guarantee.seeded


def common_origin(origins: Iterable[Origin | None]) -> Origin | None:
    """Of several releases together: that of a seeded one, if there is one; what theirs have in common."""
    found = set(origins)
    seeded = [origin for origin in found if origin is not None and origin.words == SEED]
    if seeded:
        return seeded[0]
    alike = {None if origin is None else origin._replace(cipher="") for origin in found}
    if len(alike) > 1:
        return None
    return found.pop() if len(found) == 1 else alike.pop()  # on several machines, by several ciphers
