"""A query by a compiled function of the number of a cell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from inspect import signature
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from ...records.domain import Domain
from ...support.c_functions import c_function, flag_of_number
from ...support.public_paths import public_as
from ...support.shown import shown
from .bound_query import BoundCells, check_cells
from .query import Query, own


@own
@public_as("fastdp")
class Predicate(Query):
    """Records in the cells for whose number a compiled function returns True.

    The function is called for each cell of the domain, never for a record. The last attribute counts fastest: the code
    of attribute i is `cell // domain.strides[i] % domain.sizes[i]`.

    Parameters
    ----------
    function : callable
        Takes the number of a cell, from 0 to domain.size - 1, and returns True or False. A function compiled by numba
        (`numba.njit`), which is compiled anew for this, by Python's rules of division; what it raises for any cell is
        raised. Or a C function (of cffi, or a `numba.cfunc`) from int64_t to int, int64_t or bool; the library that it
        lies in must stay open.

    Raises
    ------
    ValueError
        If it is not such a function.

    Examples
    --------
    >>> import numba
    >>> from fastdp import Domain, Predicate
    >>> domain = Domain(age=4, sex=2)
    >>> (age_stride, sex_stride), (ages, sexes) = domain.strides, domain.sizes
    >>> def old_or_first(cell):
    ...     age, sex = cell // age_stride % ages, cell // sex_stride % sexes
    ...     return age >= 3 or sex == 0
    >>> Predicate(numba.njit(old_or_first)).bind(domain).values.reshape(domain.sizes).tolist()
    [[1, 0], [1, 0], [1, 0], [1, 1]]
    """

    keeps_bound: ClassVar[bool] = False
    _function: Any

    def __init__(self, function: Callable[[int], bool]) -> None:
        if not is_compiled(function):
            _check_c_function(function)
        self._state(_function=function)

    @property
    def function(self) -> Any:
        """The compiled function."""
        return self._function

    def bind(self, domain: Domain) -> BoundCells:
        """Its value for every cell; what it raises for one of them is raised.

        Parameters
        ----------
        domain : Domain
            The domain of the records.

        Returns
        -------
        BoundCells
            0 or 1 for each cell.
        """
        check_cells(domain)
        values = np.empty(domain.size, np.uint8)
        _filler(self._function)(values)
        return BoundCells(domain, values)

    def __repr__(self) -> str:
        python = getattr(self._function, "py_func", None)
        return f"Predicate({python.__name__ if python else 'a C function'})"

    def _key(self) -> Any:
        return self._function


def is_compiled(function: Any) -> bool:
    """Whether numba has made it."""
    with suppress(Exception):  # of a class that is not ours
        return hasattr(function, "py_func") and hasattr(function, "targetoptions")
    return False


def _check_c_function(function: Any) -> None:
    known = c_function(function)
    if known is None:
        raise ValueError(
            f"function={shown(function)}: must be compiled by numba (numba.njit), or in C; for others use Mask"
        )
    if not known.address or flag_of_number(known) is None:
        null = "" if known.address else " NULL"
        raise ValueError(f"function: {known.declared}{null}: must take an int64_t and return an int, int64_t or bool")


_fillers: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()  # compiling takes a tenth of a second


def _filler(function: Any) -> Any:
    """The loop of a predicate over the cells; ValueError if its function cannot be one of a cell number."""
    if function not in _fillers:
        _fillers[function] = _new_filler(function)
    return _fillers[function]


def _new_filler(function: Any) -> Any:
    from numba import types

    from ...kernels.compile import compile_filler, compile_predicate

    if (known := c_function(function)) is not None:
        return compile_filler(flag_of_number(known))
    try:
        signature(function.py_func).bind(0)
    except TypeError as error:
        raise ValueError(f"function={shown(function)}: must be a function of one cell number ({error})") from None
    try:
        fill, kind = compile_predicate(function)
    except Exception as error:  # of numba's many kinds; its message is the reason
        lines = (line for line in str(error).splitlines() if line.strip() and not line.startswith("Failed in"))
        reason = next(lines, type(error).__name__)
        raise ValueError(f"function={shown(function)}: must compile for a cell number: {reason}") from error
    if not isinstance(kind, types.Boolean | types.Integer):
        raise ValueError(
            f"function={shown(function)}: returns {kind}: must return True or False; for values use Linear"
        )
    return fill
