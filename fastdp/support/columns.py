"""One column of records, in the memory of whichever library holds it: numpy, pandas, polars or Arrow.

A column hands out slices as numpy arrays, without a copy where the types allow. A library is imported by nobody here:
an object that comes from it is proof that it is loaded. The type of a slice is that of its column, whatever entries it
has: missing ones are told beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .arrow_strings import count_strings
from .column_types import arrow_without_numbers, pandas_without_numbers, polars_unread, polars_without_numbers
from .errors import DomainError
from .shared_objects import shared_objects

Array: TypeAlias = NDArray[Any]
Coded: TypeAlias = tuple[Array, Array]  # places, labels: record i has labels[places[i]], or is missing if that is < 0


class Entries(NamedTuple):
    """The entries of a slice, and which are missing: the library says so, and what stands there means nothing."""

    values: Array
    missing: NDArray[np.bool_] | None  # None: no entry is
    label: str  # what errors call the column

    def complete(self) -> Array:
        """The entries; DomainError if one is missing."""
        if self.missing is not None and self.missing.any():
            raise missing_entries(self.label)
        return self.values

    def part(self, start: int, stop: int) -> Entries:
        """Some of them."""
        return Entries(self.values[start:stop], None if self.missing is None else self.missing[start:stop], self.label)


class Column(ABC):
    """Entries that can be read a slice at a time; `label` is what errors call it."""

    label: str
    untyped: bool = False  #: whether its type, objects, says nothing about entries

    @property
    def without_numbers(self) -> str | None:
        """The name of the column's type, where that alone says that no entry is a number."""
        return None

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def entries(self, start: int, stop: int) -> Entries:
        """The entries of a slice: one dimension, native byte order, possibly read-only."""

    def values(self, start: int, stop: int) -> Array:
        """The entries of a slice without missing ones."""
        return self.entries(start, stop).complete()

    def coded(self, start: int, stop: int) -> Coded | None:
        """The same as places in an array of labels, where the library knows them or finds them fast."""
        return None

    def counted(self, start: int, stop: int) -> Coded | None:
        """How often each label of a slice occurs, and the labels, where that is found faster than places."""
        return None


def missing_entries(label: str) -> DomainError:
    return DomainError(
        f"{label}: must not have missing entries; fill them with a public label or number of the domain, such as "
        ".fillna('missing')"
    )


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
        if comes_from(held, "pandas", "ArrowExtensionArray") and has(held.dtype, "pyarrow_dtype"):
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
    return type(data) is not np.ndarray and any(
        kind.__module__.partition(".")[0] == library and kind.__name__ in names for kind in type(data).__mro__[:-1]
    )


class NumpyColumn(Column):
    """A numpy array or a list; a NaN is a value, and whoever reads floats decides what to do with it."""

    def __init__(self, label: str, data: Any) -> None:
        if isinstance(data, np.ma.MaskedArray):
            raise ValueError(f"{label}: must not be a masked array; fill or drop the masked entries first")
        array = _of_list(data) if isinstance(data, list | tuple) else np.asarray(data)
        if array.ndim != 1:
            raise ValueError(f"{label}: shape {array.shape}: must have one dimension")
        if array.dtype.kind in "Vc":
            raise ValueError(f"{label}: dtype {array.dtype}: must be numbers, strings or objects")
        self.label = label
        self._array = array
        self.untyped = array.dtype.kind == "O" and not isinstance(data, list | tuple)

    def __len__(self) -> int:
        return len(self._array)

    def entries(self, start: int, stop: int) -> Entries:
        values = native(self._array[start:stop])
        return Entries(values, np.isnat(values) if values.dtype.kind in "mM" else None, self.label)

    def coded(self, start: int, stop: int) -> Coded | None:
        if self._array.dtype.kind not in "OUST":
            return None
        return places_of(self._array[start:stop])

    def counted(self, start: int, stop: int) -> Coded | None:
        return counts_of(self._array[start:stop]) if self._array.dtype.kind in "OUST" else None


def counts_of(array: Array) -> Coded | None:
    """How often each of the objects or strings occurs, and these; None where equal ones are not taken alike.

    Python's own counter takes 40 ns an entry, half of what finding their places takes.
    """
    shared = shared_objects(array)
    values = (array if shared is None else shared.distinct).tolist()
    if {*map(type, values)} - _COMPARED:
        return None
    found: Counter[Any] = Counter()
    if shared is None:
        found.update(values)
    else:
        from ..kernels.histograms import count_cells_into

        counts = np.zeros(len(values), np.int64)
        count_cells_into(shared.codes.view(np.uint32), counts)
        for value, count in zip(values, counts.tolist(), strict=True):
            found[value] += count
    return np.fromiter(found.values(), np.int64, len(found)), objects([*found])


def places_of(array: Array) -> Coded:
    """The distinct ones of objects or strings, and where each entry is among them."""
    if (shared := shared_objects(array)) is not None:
        places, labels = _places_of(shared.distinct)
        return places[shared.codes], labels
    return _places_of(array)


def _places_of(array: Array) -> Coded:
    values = keys = array.tolist()
    if others := {*map(type, values)} - _COMPARED:  # 1 and Decimal(1) are equal, and one may be no number
        values = [value if _has_hash(value) else NO_LABEL for value in values]
        keys = [(type(value), value) if type(value) in others else value for value in values]
    firsts = dict(zip(reversed(keys), reversed(values), strict=True)) if others else dict.fromkeys(values)
    places = {key: place for place, key in enumerate(firsts)}
    labels = objects([*firsts.values()] if others else [*firsts])
    # np.unique, which sorts, takes five times as long: 270 against 50 ns an entry
    return np.fromiter(map(places.__getitem__, keys), np.intp, len(keys)), labels


_COMPARED = frozenset({bool, bytes, float, int, str, type(None)})  # whose equals are taken alike everywhere


NO_LABEL = object()  # in place of objects without a hash, which are labels of no domain


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except (TypeError, ValueError):  # a writable memoryview raises the latter
        return False
    return True


def objects(values: Sequence[Any]) -> Array:
    """An array of objects of one dimension, whatever they are; None for what is masked, for which numpy would put 0."""
    array = np.empty(len(values), object)
    for i, value in enumerate(values):
        array[i] = value if type(value) in _COMPARED else _unmasked(value)
    return array


def _unmasked(value: Any) -> Any:
    """The same, or None for an entry that is masked: `numpy.ma.masked` above all."""
    return None if isinstance(value, np.ma.MaskedArray) and not value.ndim and value.mask else value


def _of_list(data: Sequence[Any]) -> Array:
    """A list as an array of objects, whatever is in it: a type that its entries decided would tell of one of them.

    numpy would make all of them strings, or floats, because of one.
    """
    kinds = {*map(type, data)}
    if kinds <= _COMPARED:
        array = np.empty(len(data), object)
        array[:] = data
        return array
    if any(issubclass(kind, np.ma.MaskedArray) for kind in kinds):
        data = [_unmasked(value) for value in data]
    return objects([_entry(value) for value in data])


def _entry(value: Any) -> Any:
    """An entry of a list as Python's; a date that Python's do not hold, of nanoseconds say, as it is.

    What numpy takes for a number in a list of numbers (an array without dimensions) is one whatever else is there.
    """
    if type(value) in _COMPARED:
        return value
    if not isinstance(value, np.generic):
        try:
            array = np.asarray(value)
        except Exception:  # of a class that is not ours, and of entries of several lengths
            return value
        if array.ndim or array.dtype.kind not in "biufmM":
            return value
        value = array[()]
    plain = value.item()
    return value if isinstance(value, np.datetime64) and isinstance(plain, int) else plain


class PandasColumn(Column):
    """A pandas Series: a view where it rests on numpy, else converted slice by slice."""

    def __init__(self, label: str, data: Any) -> None:
        self.label = label
        self._data = getattr(data, "array", data)  # an ExtensionArray; of an array of numpy's, a thin cover
        if getattr(self._data.dtype, "kind", "O") == "c":
            raise ValueError(f"{label}: dtype {self._data.dtype}: must be numbers, strings or objects")
        self.untyped = _rests_on_numpy(self._data) and self._data.dtype.kind == "O"

    @property
    def without_numbers(self) -> str | None:
        return pandas_without_numbers(self._data.dtype)

    def __len__(self) -> int:
        return len(self._data)

    def entries(self, start: int, stop: int) -> Entries:
        part = self._data[start:stop]
        if _rests_on_numpy(part):
            values = native(np.asarray(part))
            return Entries(values, np.isnat(values) if values.dtype.kind in "mM" else None, self.label)
        if coded := self._categories(part):
            return _decoded(*coded, self.label)
        dtype = getattr(part.dtype, "numpy_dtype", np.dtype(object))  # of Arrow's strings it would be U
        dtype = dtype if dtype.kind in "biufmM" else np.dtype(object)
        missing = np.asarray(part.isna())
        if not missing.any():
            return Entries(native(part.to_numpy(dtype=dtype)), None, self.label)
        fill = None if dtype.kind == "O" else np.zeros(1, dtype)[0]
        return Entries(native(part.to_numpy(dtype=dtype, na_value=fill)), missing, self.label)

    def coded(self, start: int, stop: int) -> Coded | None:
        part = self._data[start:stop]
        if coded := self._categories(part):
            return coded
        if getattr(part.dtype, "kind", "O") != "O":
            return None
        if _rests_on_numpy(part):
            return places_of(np.asarray(part))
        places, labels = part.factorize()
        return places, np.asarray(labels, object)

    def counted(self, start: int, stop: int) -> Coded | None:
        part = self._data[start:stop]
        if comes_from(part, "pandas", "ArrowStringArray"):
            return count_strings(part.__arrow_array__())
        is_plain = _rests_on_numpy(part) and part.dtype.kind == "O"
        return counts_of(np.asarray(part)) if is_plain else None

    def _categories(self, part: Any) -> Coded | None:
        if not comes_from(part, "pandas", "Categorical"):
            return None
        return np.asarray(part.codes), part.categories.to_numpy()


def _rests_on_numpy(part: Any) -> bool:
    return isinstance(part.dtype, np.dtype) or comes_from(part, "pandas", "NumpyExtensionArray", "PandasArray")


def _decoded(places: Array, labels: Array, label: str) -> Entries:
    """Entries from places among labels."""
    missing = places < 0
    if not missing.any():
        return Entries(labels[places], None, label)
    values = np.empty(len(places), labels.dtype if len(labels) else object)
    values[~missing] = labels[places[~missing]]
    return Entries(values, missing, label)


class PolarsColumn(Column):
    """A polars Series, converted slice by slice: a view for numbers in one chunk."""

    def __init__(self, label: str, data: Any) -> None:
        if polars_unread(data.dtype):
            raise ValueError(f"{label}: type {data.dtype}: must be numbers or labels, one an entry")
        self.label = label
        self._data = data
        self.untyped = str(data.dtype).startswith("Object")

    @property
    def without_numbers(self) -> str | None:
        return polars_without_numbers(self._data.dtype)

    def __len__(self) -> int:
        return len(self._data)

    def entries(self, start: int, stop: int) -> Entries:
        part = self._data.slice(start, stop - start)
        if not part.null_count():
            return Entries(native(part.to_numpy()), None, self.label)
        missing = part.is_null().to_numpy()
        if part.dtype.is_numeric():
            part = part.fill_null(0)
        elif str(part.dtype) == "Boolean":
            part = part.fill_null(value=False)
        return Entries(native(part.to_numpy()), missing, self.label)

    def coded(self, start: int, stop: int) -> Coded | None:
        import polars

        part = self._data.slice(start, stop - start)
        if part.dtype == polars.String:
            names = part.drop_nulls().unique()
            numbers = part.cast(polars.Enum(names)).to_physical()  # places in this list
            places = numbers.fill_null(0).to_numpy().astype(np.int64)
            labels = objects(names.to_list())
            return (np.where(part.is_null().to_numpy(), -1, places) if part.null_count() else places), labels
        if part.dtype not in (polars.Categorical, polars.Enum):
            return None
        distinct = part.drop_nulls().unique()
        numbers, places = np.unique(part.to_physical().fill_null(0).to_numpy(), return_inverse=True)
        labels = np.empty(len(numbers), object)
        labels[np.searchsorted(numbers, distinct.to_physical().to_numpy())] = distinct.to_list()
        places = places.reshape(-1)
        if part.null_count():
            places = np.where(part.is_null().to_numpy(), -1, places)
        return places, labels

    def counted(self, start: int, stop: int) -> Coded | None:
        import polars

        if self._data.dtype not in (polars.String, polars.Categorical, polars.Enum):
            return None
        part = self._data.slice(start, stop - start).drop_nulls().alias("label")
        labels, counts = part.value_counts(name="rows")  # 20 ns an entry, places take 30
        return counts.cast(polars.Int64).to_numpy(), objects(labels.to_list())


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

    @property
    def without_numbers(self) -> str | None:
        return arrow_without_numbers(self._data.type)

    def __len__(self) -> int:
        return len(self._data)

    def _part(self, start: int, stop: int) -> Any:
        part = self._data.slice(start, stop - start)
        if part.num_chunks == 1:
            return part.chunk(0)
        part = part.combine_chunks()  # a copy of this slice; some versions still give chunks
        return part.chunk(0) if hasattr(part, "num_chunks") else part

    def entries(self, start: int, stop: int) -> Entries:
        part = self._part(start, stop)
        if self._is_dictionary:
            return _decoded(*self._dictionary(part), self.label)
        if not part.null_count:
            return Entries(native(part.to_numpy(zero_copy_only=False)), None, self.label)
        import pyarrow.types as kinds

        missing = part.is_null().to_numpy(zero_copy_only=False)
        if kinds.is_integer(part.type) or kinds.is_floating(part.type) or kinds.is_boolean(part.type):
            part = part.fill_null(False if kinds.is_boolean(part.type) else 0)
        return Entries(native(part.to_numpy(zero_copy_only=False)), missing, self.label)

    def coded(self, start: int, stop: int) -> Coded | None:
        if not (self._is_dictionary or self._is_text):
            return None
        part = self._part(start, stop)
        return self._dictionary(part if self._is_dictionary else part.dictionary_encode())

    def counted(self, start: int, stop: int) -> Coded | None:
        return count_strings(self._part(start, stop)) if self._is_text else None

    def _dictionary(self, part: Any) -> Coded:
        indices = part.indices.fill_null(0) if part.indices.null_count else part.indices
        places = indices.to_numpy(zero_copy_only=False)
        labels = part.dictionary.to_numpy(zero_copy_only=False)
        missing = np.zeros(0, np.bool_)
        if part.indices.null_count:
            missing = part.indices.is_null().to_numpy(zero_copy_only=False)
        if part.dictionary.null_count:  # the other way in which Arrow may state that an entry is missing
            of_label = np.asarray(part.dictionary.is_null())[places]
            missing = of_label | missing if missing.size else of_label
        return (np.where(missing, -1, places.astype(np.int64)) if missing.size else places), labels


class BitColumn(Column):
    """Bits, 64 to a word, the first one lowest."""

    def __init__(self, label: str, words: NDArray[np.uint64], n: int) -> None:
        self.label = label
        self._bytes = words.astype("<u8", copy=False).view(np.uint8)
        self._n = n

    def __len__(self) -> int:
        return self._n

    def entries(self, start: int, stop: int) -> Entries:
        first, skip = divmod(start, 8)
        bits = np.unpackbits(self._bytes[first : -(-stop // 8)], bitorder="little")
        return Entries(bits[skip : skip + stop - start].view(bool), None, self.label)


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
