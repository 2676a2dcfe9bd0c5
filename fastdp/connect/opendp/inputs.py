"""Domains and metrics of OpenDP's inputs: which are taken, and how they become numpy arrays."""

from __future__ import annotations

import re
from fractions import Fraction
from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...support.checks import integer, numbers_array
from ...support.columns import comes_from
from ...support.shown import shown
from .library import need_opendp

_DTYPES = {"i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8"}
_DTYPES |= {"usize": "u8", "f32": "f4", "f64": "f8"}
_OF_ARRAYS = ("i64", "f64")


def array_domain(T: str, size: int | None = None) -> Any:
    """The OpenDP domain of one-dimensional numpy arrays of dtype int64 or float64.

    A measurement takes and returns such arrays as they are: no list is made of them.

    Parameters
    ----------
    T : {"i64", "f64"}
        The type of the entries.
    size : int, optional
        How many entries arrays have, which float noise needs to know.

    Returns
    -------
    opendp.mod.Domain
        The domain. Its floats are finite; a measurement refuses others with a DomainError.

    Raises
    ------
    OpenDPException
        OpenDP's features "contrib" and "honest-but-curious" are not enabled.
    """
    dp = need_opendp()
    if not isinstance(T, str) or T not in _OF_ARRAYS:
        raise ValueError(f"T={shown(T)}: must be one of {', '.join(map(repr, _OF_ARRAYS))}")
    size = None if size is None else integer("size", size, least=0)
    space = InputDomain("array", T, size)

    def member(value: Any) -> bool:
        return space.holds(value) and (T == "i64" or bool(np.isfinite(value).all()))

    return dp.user_domain(f"fastdp.array(T={T}{'' if size is None else f', size={size}'})", member)


class InputDomain(NamedTuple):
    """What is needed of an input domain of OpenDP."""

    kind: str  # "array" of numpy, "vector" (a list), "atom" (a number)
    T: str
    size: int | None

    @staticmethod
    def of(domain: Any) -> InputDomain:
        """Read from what a domain prints, which is the same in all versions of OpenDP."""
        if not comes_from(domain, "opendp", "Domain"):
            raise ValueError(f"input_domain={shown(domain)}: must be a domain of OpenDP")
        text = str(domain)
        size = re.search(r", size=(\d+)\)$", text)
        count = int(size.group(1)) if size else None
        if array := re.match(r"fastdp\.array\(T=(\w+)[,)]", text):
            return InputDomain("array", array.group(1), count)
        kind = str(domain.type)
        atom = re.fullmatch(r"(VectorDomain<)?AtomDomain<(\w+)>>?", kind)
        if not atom or atom.group(2) not in _DTYPES:
            raise ValueError(
                f"input_domain={text}: must be atom_domain or vector_domain(atom_domain) of numbers, or array_domain"
            )
        if "nan=true" in text:
            raise ValueError(f"input_domain={text}: must not have NaNs: atom_domain(T=..., nan=False)")
        return InputDomain("vector", atom.group(2), count) if atom.group(1) else InputDomain("atom", atom.group(2), 1)

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.dtype(_DTYPES[self.T])

    @property
    def output_type(self) -> str:
        return {"array": "ExtrinsicObject", "vector": f"Vec<{self.T}>", "atom": self.T}[self.kind]

    def holds(self, value: Any) -> bool:
        """Whether an array has the dtype and the shape of the domain."""
        return (
            isinstance(value, np.ndarray)
            and value.dtype == self.dtype
            and value.ndim == 1
            and self.size in (None, value.size)
        )

    def read(self, value: Any) -> NDArray[Any]:
        """The input as int64 or float64; an array of the domain is taken as it is."""
        if self.kind == "array":
            if not self.holds(value):
                kind = f"{value.dtype}{list(value.shape)}" if isinstance(value, np.ndarray) else type(value).__name__
                raise ValueError(
                    f"arg: {kind}: must be a numpy array {self.dtype}[{'n' if self.size is None else self.size}]"
                )
            return numbers_array("arg", value)
        values = np.atleast_1d(np.array(value, self.dtype))
        if self.size not in (None, values.size):  # the rounding of so many is what is charged
            raise ValueError(f"arg: {values.size} entries: must be {self.size}, the size of the input domain")
        return numbers_array("arg", values)

    def write(self, values: NDArray[Any]) -> Any:
        """The output as the domain has it; sums beyond a narrow integer type become its ends."""
        if self.kind == "array":
            return values
        if self.dtype.kind in "iu":
            ends = np.iinfo(self.dtype)
            values = np.clip(values, max(ends.min, -(2**63)), min(ends.max, 2**63 - 1))
        made = values.astype(self.dtype).tolist()
        return made if self.kind == "vector" else made[0]


def check_metric(metric: Any, domain: InputDomain, of_vectors: str) -> None:
    wanted = "AbsoluteDistance" if domain.kind == "atom" else of_vectors
    if not comes_from(metric, "opendp", "Metric"):
        raise ValueError(f"input_metric={shown(metric)}: must be {wanted} of OpenDP")
    if not str(metric).startswith(f"{wanted}("):
        raise ValueError(f"input_metric={metric}: must be {wanted} for a domain of kind {domain.kind!r}")


def input_distance(d_in: Any) -> Fraction:
    if not (isfinite(d_in) and d_in >= 0):
        raise ValueError(f"d_in={shown(d_in)}: must be >= 0 and finite")
    return Fraction(d_in)
