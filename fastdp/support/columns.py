"""One column of records, in the memory of whichever library holds it: numpy, pandas, polars or Arrow.

A column hands out slices as numpy arrays, without a copy where the types allow. A library is imported by nobody here:
an object that comes from it is proof that it is loaded. Missing entries are refused when their slice is read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .errors import DomainError

Array: TypeAlias = NDArray[Any]
Coded: TypeAlias = tuple[Array, Array]  # places, labels: record i has labels[places[i]]


class Column(ABC):
    """Entries that can be read a slice at a time; `label` is what errors call it."""

    label: str

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def values(self, start: int, stop: int) -> Array:
        """The entries of a slice: one dimension, native byte order, possibly read-only."""

    def coded(self, start: int, stop: int) -> Coded | None:
        """The same as places in an array of labels, where the library knows them or finds them fast."""
        return None

    def _complete(self, missing: bool) -> None:
        if missing:
            raise DomainError(
                f"{self.label}: must not have missing entries; fill them with a public label or number of the domain, "
                "such as .fillna('missing')"
            )

    def _no_labels(self) -> DomainError:
        return DomainError(f"{self.label}: must hold labels only; there are objects without a hash")


def column_of(label: str, data: Any) -> Column:
    """A numpy array, a list, a column of pandas, polars or Arrow, or of whatever speaks Arrow's C interface."""
    if not isinstance(data, np.ndarray | list | tuple) and (column := library_column(label, data)) is not None:
        return column
    if not isinstance(data, np.ndarray | list | tuple):
        raise ValueError(f"{label}: type {type(data).__name__}: must be an array, or a column of a data frame")
    return NumpyColumn(label, data)


def library_column(label: str, data: Any) -> Column | None:
    """A column of one of these libraries, or None for anything else."""
    if comes_from(data, "pandas", "MultiIndex"):
        raise ValueError(f"{label}: type MultiIndex: must have one level")
    if comes_from(data, "pandas", "Series", "Index", "ExtensionArray"):
        held = getattr(data, "array", data)
        if comes_from(held, "pandas", "ArrowExtensionArray") and held.dtype.kind in "biuf":
            return ArrowColumn(label, held.__arrow_array__())  # pandas 2.0 copies it
        return PandasColumn(label, data)
    if comes_from(data, "polars", "Series"):
        return PolarsColumn(label, data)
    if comes_from(data, "pyarrow", "Array", "ChunkedArray"):
        return ArrowColumn(label, data)
    if not has(data, "columns"):  # which a table has
        if has(data, "__arrow_c_stream__"):
            return ArrowColumn(label, pyarrow().chunked_array(data))
        if has(data, "__arrow_c_array__"):
            return ArrowColumn(label, pyarrow().array(data))
    return None


def pyarrow() -> Any:
    """The library, for what is given through Arrow's C interface only."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError("data by Arrow's C interface needs pyarrow: pip install 'fastdp[arrow]'") from None
    return pyarrow


def has(data: Any, name: str) -> bool:
    """Whether an object has an attribute; not one whose class raises when it is asked."""
    try:
        return hasattr(data, name)
    except Exception:  # of a class that is not ours
        return False


def comes_from(data: Any, library: str, *names: str) -> bool:
    """Whether an object is of one of these classes of a library, or of a class derived from them."""
    return any(
        kind.__module__.partition(".")[0] == library and kind.__name__ in names for kind in type(data).__mro__[:-1]
    )


class NumpyColumn(Column):
    """A numpy array; a NaN is a value, and whoever reads floats decides what to do with it."""

    def __init__(self, label: str, data: Any) -> None:
        if isinstance(data, np.ma.MaskedArray):
            raise ValueError(f"{label}: must not be a masked array; fill or drop the masked entries first")
        try:
            array = np.asarray(data)
        except ValueError:  # rows of different lengths
            raise ValueError(f"{label}: must have one dimension") from None
        if array.ndim != 1:
            raise ValueError(f"{label}: shape {array.shape}: must have one dimension")
        if array.dtype.kind in "Vc":
            raise ValueError(f"{label}: dtype {array.dtype}: must be numbers, strings or objects")
        self.label = label
        self._array = array

    def __len__(self) -> int:
        return len(self._array)

    def values(self, start: int, stop: int) -> Array:
        return native(self._array[start:stop])

    def coded(self, start: int, stop: int) -> Coded | None:
        if self._array.dtype.kind not in "OUST":
            return None
        values = self._array[start:stop].tolist()
        try:
            distinct = list(dict.fromkeys(values))
        except TypeError:
            raise self._no_labels() from None
        places = {value: place for place, value in enumerate(distinct)}
        labels = np.empty(len(distinct), object)
        labels[:] = distinct
        # np.unique, which sorts, takes five times as long: 270 against 50 ns an entry
        return np.fromiter(map(places.__getitem__, values), np.intp, len(values)), labels


class PandasColumn(Column):
    """A pandas Series: a view where it rests on numpy, else converted slice by slice."""

    def __init__(self, label: str, data: Any) -> None:
        self.label = label
        self._data = getattr(data, "array", data)  # an ExtensionArray; of an array of numpy's, a thin cover

    def __len__(self) -> int:
        return len(self._data)

    def values(self, start: int, stop: int) -> Array:
        part = self._data[start:stop]
        if isinstance(part.dtype, np.dtype) or comes_from(part, "pandas", "NumpyExtensionArray", "PandasArray"):
            return native(part.to_numpy())
        if coded := self._categories(part):
            return coded[1][coded[0]]
        self._complete(bool(part.isna().any()))
        dtype = getattr(part.dtype, "numpy_dtype", np.dtype(object))  # of Arrow's strings it would be U
        return native(part.to_numpy(dtype=dtype if dtype.kind in "biufmM" else object))

    def coded(self, start: int, stop: int) -> Coded | None:
        part = self._data[start:stop]
        if coded := self._categories(part):
            return coded
        if getattr(part.dtype, "kind", "O") != "O":
            return None
        try:
            places, labels = part.factorize()
        except TypeError:
            raise self._no_labels() from None
        self._complete(bool((places < 0).any()))
        return places, np.asarray(labels, object)

    def _categories(self, part: Any) -> Coded | None:
        if not comes_from(part, "pandas", "Categorical"):
            return None
        places = np.asarray(part.codes)
        self._complete(bool((places < 0).any()))
        return places, part.categories.to_numpy()


class PolarsColumn(Column):
    """A polars Series, converted slice by slice: a view for numbers in one chunk."""

    def __init__(self, label: str, data: Any) -> None:
        self.label = label
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def _part(self, start: int, stop: int) -> Any:
        part = self._data.slice(start, stop - start)
        self._complete(part.null_count() > 0)
        return part

    def values(self, start: int, stop: int) -> Array:
        return native(self._part(start, stop).to_numpy())

    def coded(self, start: int, stop: int) -> Coded | None:
        import polars

        part = self._part(start, stop)
        if part.dtype == polars.String:
            part = part.cast(polars.Enum(part.unique()))  # its numbers are this slice's own: no global cache grows
        elif part.dtype not in (polars.Categorical, polars.Enum):
            return None
        distinct = part.unique()
        numbers, places = np.unique(part.to_physical().to_numpy(), return_inverse=True)
        labels = np.empty(len(numbers), object)
        labels[np.searchsorted(numbers, distinct.to_physical().to_numpy())] = distinct.to_list()
        return places.reshape(-1), labels


class ArrowColumn(Column):
    """An Arrow array, in one chunk or several: a view for numbers in one chunk."""

    def __init__(self, label: str, data: Any) -> None:
        import pyarrow

        self.label = label
        if not isinstance(data, pyarrow.ChunkedArray):
            data = pyarrow.chunked_array([data])
        if pyarrow.types.is_nested(data.type):
            raise ValueError(f"{label}: type {data.type}: must be numbers or labels, one an entry")
        self._is_dictionary = pyarrow.types.is_dictionary(data.type)
        self._is_text = any(
            is_kind(data.type)
            for is_kind in (pyarrow.types.is_string, pyarrow.types.is_large_string, pyarrow.types.is_binary)
        )
        self._data = data.unify_dictionaries() if self._is_dictionary and data.num_chunks > 1 else data

    def __len__(self) -> int:
        return len(self._data)

    def _part(self, start: int, stop: int) -> Any:
        part = self._data.slice(start, stop - start)
        self._complete(part.null_count > 0)
        if part.num_chunks == 1:
            return part.chunk(0)
        part = part.combine_chunks()  # a copy of this slice; some versions still give chunks
        return part.chunk(0) if hasattr(part, "num_chunks") else part

    def values(self, start: int, stop: int) -> Array:
        part = self._part(start, stop)
        if self._is_dictionary:
            places, labels = self._dictionary(part)
            return labels[places]
        return native(part.to_numpy(zero_copy_only=False))

    def coded(self, start: int, stop: int) -> Coded | None:
        if not (self._is_dictionary or self._is_text):
            return None
        part = self._part(start, stop)
        return self._dictionary(part if self._is_dictionary else part.dictionary_encode())

    def _dictionary(self, part: Any) -> Coded:
        places = part.indices.to_numpy(zero_copy_only=False)
        labels = part.dictionary.to_numpy(zero_copy_only=False)
        if part.dictionary.null_count:  # the other way in which Arrow may state that an entry is missing
            self._complete(bool(np.asarray(part.dictionary.is_null())[places].any()))
        return places, labels


class BitColumn(Column):
    """Bits, 64 to a word, the first one lowest."""

    def __init__(self, label: str, words: NDArray[np.uint64], n: int) -> None:
        self.label = label
        self._bytes = words.astype("<u8", copy=False).view(np.uint8)
        self._n = n

    def __len__(self) -> int:
        return self._n

    def values(self, start: int, stop: int) -> Array:
        first, skip = divmod(start, 8)
        bits = np.unpackbits(self._bytes[first : -(-stop // 8)], bitorder="little")
        return bits[skip : skip + stop - start].view(bool)


def native(array: Array) -> Array:
    """In the machine's byte order, copied only if it is not."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


class _Unlocked:
    """The memory of an array without its read-only flag, which would make it another type to the compiler."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array  # stays alive
        self.__array_interface__ = {**array.__array_interface__, "data": (array.ctypes.data, False)}


def as_compiled(array: NDArray[Any]) -> NDArray[Any]:
    """The array as kernels are compiled for it. They do not write to it."""
    return array if array.flags.writeable else np.asarray(_Unlocked(array))
