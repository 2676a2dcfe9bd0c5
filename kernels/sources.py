"""Which source files a kernel is made of, and a digest of them: what it is compiled from is what it is known by.

A kernel is made of its module and of every module of this package that one imports, at any depth and anywhere in it,
functions included. Import statements are read off the text, so that what is not imported yet counts. Whatever the text
leaves open (a module that is imported by a computed name) makes a file depend on all others.

Of the machinery, `compile`, `compile_cache`, `parts` and `call_types` have a say in what is compiled. What else they
import has none: locks, folders and known answers may change, and compiled kernels stay.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress

FOLDER = os.path.dirname(__file__)
_IMPORTED = time.time_ns()
_PACKAGE = __name__.rpartition(".")[0]
_EVERY_KERNEL = frozenset({"__init__", "call_types", "compile", "compile_cache", "parts"})

_FROM = re.compile(rb"\bfrom\s*\.\s*(\w*)\s*\bimport\b\s*(\((?:#[^\n]*|[^)#])*\)|[^\n;]*)")
_OPEN = re.compile(rb"\bimportlib\b|\bimport_module\b|\b__import__\b|\bfrom\s*\.\.|\b" + re.escape(_PACKAGE.encode()))


class Sources:
    """The files as they are when this is made; none where they cannot be read, and `unreadable` says why."""

    def __init__(self) -> None:
        self.stamps: dict[str, tuple[int, ...]] = {}
        self.unreadable: OSError | None = None
        self._texts: dict[str, bytes] = {}
        self._digests: dict[str, bytes] = {}
        self._imports: dict[str, frozenset[str]] = {}
        self._of: dict[frozenset[str], str] = {}
        try:
            self._read()
        except OSError as error:
            self.stamps, self.unreadable = {}, error

    def _read(self) -> None:
        for name in sorted(name for name in os.listdir(FOLDER) if re.fullmatch(r"\w+\.py", name)):
            with open(os.path.join(FOLDER, name), "rb") as file:
                self.stamps[name] = _stamp(os.fstat(file.fileno()))
                text = file.read()
            module = name.removesuffix(".py")
            self._texts[module], self._digests[module] = text, hashlib.sha256(text).digest()
        if not self.stamps:
            raise FileNotFoundError(f"no .py file in {FOLDER}")

    @property
    def changed_since_import(self) -> bool:
        """Whether a file is younger than this process's import: what was imported may not be what was read."""
        return any(stamp[0] >= _IMPORTED for stamp in self.stamps.values())  # ctime: archives, editors can set mtime

    def unchanged(self) -> bool:
        """Whether the files still are what they were, as far as can be seen."""
        with suppress(OSError):
            if self.stamps == {name: _stamp(os.stat(os.path.join(FOLDER, name))) for name in self.stamps}:
                return True
        now = Sources()
        if now.unreadable or now._digests != self._digests:
            return False
        self.stamps = now.stamps  # touched or linked, not edited
        return True

    def digest(self, modules: Iterable[str]) -> str:
        """Name what these modules are made of."""
        asked = frozenset(modules)
        if (found := self._of.get(asked)) is None:
            made_of = sorted(self.made_of(asked))
            found = hashlib.sha256(
                b"".join(name.encode() + b"\0" + self._digests[name] for name in made_of)
            ).hexdigest()
            self._of[asked] = found
        return found

    def made_of(self, modules: Iterable[str]) -> set[str]:
        """These modules, what they import, what that imports, ..., and what has a say in every kernel."""
        found = set(_EVERY_KERNEL)
        pending = {*modules} - found
        while pending:
            found.add(module := pending.pop())
            pending |= self._imported(module) - found
        return found

    def _imported(self, module: str) -> frozenset[str]:
        if module not in self._imports:
            self._imports[module] = frozenset(_names(self._texts[module], self._digests.keys()))
        return self._imports[module]


def _names(text: bytes, known: Iterable[str]) -> Iterator[str]:
    """The modules of this package that a file imports, or may import."""
    text = text.replace(b"\\\n", b" ")
    if _OPEN.search(text):
        yield from known
        return
    for statement in _FROM.finditer(text):
        words = [statement[1].decode()] if statement[1] else re.findall(r"\w+", statement[2].decode())
        yield from (word for word in words if word in known)


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino
