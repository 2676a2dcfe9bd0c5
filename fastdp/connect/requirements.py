"""The error of an adapter whose library is missing or too old."""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import version
from typing import Any


def need(module: str, *, extra: str, least: str, package: str | None = None) -> Any:
    """A library, imported; an ImportError that names the extra if it is missing, or older than `least`.

    package    its name in the index, if that is not the module's
    """
    package = package or module
    hint = f'pip install "fastdp[{extra}]"'
    try:
        library = import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:  # something that the library itself misses
            raise
        raise ImportError(f"fastdp.connect.{extra} needs {package}, which is not installed: {hint}") from None
    if is_older(found := version(package), least):
        raise ImportError(f"fastdp.connect.{extra} needs {package} {least} or newer, found {found}: {hint}")
    return library


def is_older(found: str, least: str) -> bool:
    """Whether one version comes before another."""
    return _numbers(found) < _numbers(least)


def _numbers(text: str) -> tuple[int, ...]:
    """The release of a version, as numbers without zeros at the end; rc1 or .dev0 behind it count as that release."""
    release = re.match(r"\d+(\.\d+)*", text)
    numbers = [int(number) for number in release[0].split(".")] if release else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
