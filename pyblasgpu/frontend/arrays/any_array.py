"""Any array -> the library that reads it, its dtype, and whether a result may go into it; dtypes of numbers.

A `Library` answers for one array library. Arrays in host memory become NumPy arrays (`Library.to_numpy`),
arrays in device memory become a `Layout`, without a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_float
from typing import Any

import numpy as np

from ...arguments import NUMBERS, as_number, shown
from ...errors import DtypeError
from ...types import DTYPES, Dtype, dtype_of, dtype_spelling
from .layouts import Layout, is_injective, shares_memory
from .libraries import CUPY as _CUPY
from .libraries import NUMPY as _NUMPY
from .libraries import Library, NoArrayError

__all__ = [
    "Library",
    "NoArrayError",
    "by_columns",
    "can_be_output",
    "common_dtype",
    "common_library",
    "dtype_name",
    "host_array",
    "host_values",
    "indexable",
    "is_of_numba",
    "library_of",
    "may_share_memory",
    "number",
    "numpy_dtype",
    "output_view",
    "permuted",
    "quick_library",
    "reshaped",
    "stored_dtype",
    "transposed",
]

_BY_PACKAGE = {"numpy": _NUMPY, "cupy": _CUPY}
_BY_TYPE: dict[type, Library] = {}
#: Methods that make an array of an object that is none.
_CONVERSIONS = ("filled", "toarray", "to_dense", "todense", "to_numpy", "numpy")

_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_PROMOTION = (
    dict.fromkeys(_INTEGERS, DTYPES["d"])
    | {"float16": DTYPES["s"]}
    | {dtype.name: dtype for dtype in DTYPES.values()}
)
_NAMES = {dtype.name for dtype in DTYPES.values()}
#: Results of `stored_dtype` for the dtype objects met so far, which it keeps: by identity, since objects
#: of different libraries may have one hash and warn when they are compared.
CACHED: dict[int, tuple[Dtype | None, Any]] = {}
MAX_CACHED = 1024


def library_of(array: Any, routine: str = "", argument: str = "") -> Library:
    """The library that `array` belongs to.

    Raises
    ------
    TypeError
        For what is no array, for a masked array, and for one whose memory cannot be reached; it names the
        routine and the argument.
    """
    kind = type(array)
    try:
        library = _BY_TYPE.get(kind)
        if library is None:
            library = _BY_TYPE[kind] = _first_met(array)
        return library if library is _CUPY or library is _NUMPY else library.locate(array)
    except NoArrayError as error:
        subject = f"{routine}: {argument}" if routine else argument or "the argument"
        raise TypeError(f"{subject} {error}") from None


def quick_library(array: Any) -> Library | None:
    """The library of arrays of this type, if known; its memory may be the host's or a device's."""
    return _BY_TYPE.get(type(array))


def _first_met(array: Any) -> Library:
    """The library of an array of a type that is not known yet."""
    kind = type(array)
    # NumPy imports np.ma when it is named, which takes longer than a call
    if issubclass(kind, np.ndarray) and kind is not np.ndarray and issubclass(kind, np.ma.MaskedArray):
        raise NoArrayError("is a masked array, and the BLAS takes no mask: pass its filled(...), an array")
    if issubclass(kind, NUMBERS):
        return _NUMPY
    for base in kind.__mro__[:-1]:
        package = base.__module__.partition(".")[0]
        if package in _BY_PACKAGE:
            return _BY_PACKAGE[package]
        if package == "torch":
            from .pytorch import TORCH

            return TORCH
        if package == "numba":
            from .protocols import NUMBA

            return NUMBA
    if any(hasattr(x, name) for x in (kind, array) for name in ("__dlpack__", "__cuda_array_interface__")):
        from .protocols import Protocol  # the libraries above do without

        return Protocol(kind)
    raise NoArrayError(
        f"cannot be read: a {kind.__name__} is not an array, as it has neither __dlpack__ nor "
        f"__cuda_array_interface__; pass {_conversion(kind)}"
    )


def _conversion(kind: type) -> str:
    """Name the function that makes an array of an object of this type."""
    for name in _CONVERSIONS:
        if hasattr(kind, name):
            return f"its {name}()"
    return "numpy.asarray(...) of it" if hasattr(kind, "__array__") else "an array"


def common_library(routine: str, names: tuple[str, ...], arrays: tuple[Any, ...]) -> Library:
    """The one library of all `arrays` (those that are None left out, but for the first).

    Raises
    ------
    TypeError
        When they belong to different libraries, and see `library_of`.
    ValueError
        When host arrays are on different devices of their library.
    """
    library = library_of(arrays[0], routine, names[0])
    for name, array in zip(names[1:], arrays[1:], strict=True):
        if (array is None and name == "out") or (library is _CUPY and type(array) is type(arrays[0])):
            continue
        other = library_of(array, routine, name)
        if other.name != library.name:
            raise TypeError(
                f"{routine}: {names[0]} is a {library.name} array and {name} a {other.name} array; "
                "all arrays of a call must be of one library"
            )
        if library.host and (here := library.place(arrays[0])) != (there := library.place(array)):
            raise ValueError(f"{routine}: {names[0]} is on device {here} and {name} on device {there}")
    return library


def dtype_name(array: Any) -> Any:
    """The dtype of `array`, as its library has it."""
    try:
        return array.dtype
    except AttributeError:
        return library_of(array).dtype(array)


def indexable(array: Any, routine: str, argument: str) -> Any:
    """`array`, or where it has a protocol and nothing else, NumPy's or CuPy's view of it.

    Raises
    ------
    TypeError
        See `library_of`.
    """
    library = library_of(array, routine, argument)
    if hasattr(array, "shape"):
        return array
    try:
        return library.view(array)
    except NoArrayError as error:
        raise TypeError(f"{routine}: {argument} {error}") from None


def is_of_numba(array: Any) -> bool:
    """Whether `array` is one of Numba's arrays on a device, which reshape and transpose in their own way."""
    return hasattr(array, "is_f_contiguous")


def reshaped(array: Any, shape: tuple[int, ...]) -> Any:
    """`array` with another shape; the arrays of the array API have no method for that."""
    if is_of_numba(array):
        from .protocols import NUMBA

        return NUMBA.reshaped(array, shape)
    if hasattr(array, "reshape"):
        return array.reshape(shape)
    return array.__array_namespace__().reshape(array, shape)


def transposed(array: Any) -> Any:
    """The view of `array` with its dimensions in reverse order."""
    return permuted(array, tuple(reversed(range(len(array.shape)))))


def permuted(array: Any, axes: tuple[int, ...]) -> Any:
    """The view of `array` with its dimensions in this order."""
    if is_of_numba(array):
        from .protocols import NUMBA

        return NUMBA.permuted(array, axes)
    for method in ("permute", "transpose"):  # PyTorch's, whose transpose swaps two; the others'
        if hasattr(array, method):
            return getattr(array, method)(axes)
    return array.__array_namespace__().permute_dims(array, axes)


def by_columns(array: Any, shape: tuple[int, ...]) -> Any:
    """Return `array` with another shape, its elements in the order of columns in both; a view where possible.

    Numba's arrays must be column-major, as reshaping one copies nothing.
    """
    return transposed(reshaped(transposed(array), shape[::-1]))


def host_array(array: Any, routine: str, argument: str, written: bool = False) -> np.ndarray:
    """`array`, of a library of host arrays, as a NumPy array, to be `written` or to be read.

    Raises
    ------
    TypeError
        When it is a list that is to be written, or cannot be read.
    """
    library = library_of(array, routine, argument)
    try:
        return library.output_to_numpy(array) if written else library.to_numpy(array)
    except NoArrayError as error:
        raise TypeError(f"{routine}: {argument} {error}") from None


def output_view(array: Any, dtype: Dtype) -> Layout | np.ndarray | None:
    """Return the view of `array` that a result of this dtype is written to; None where it may not be.

    An array is no output if it is of another dtype, immutable, read-only, lazily conjugated or negated, or
    misaligned. Nor is it if elements share an address, or it is no array. Nothing is raised.
    """
    try:
        if stored_dtype(dtype_name(array)) is not dtype:
            return None
        library = library_of(array)
        view = library.output_to_numpy(array) if library.host else library.layout(array, dtype, None)
    except (TypeError, ValueError, AttributeError, RuntimeError, BufferError):
        return None
    return view if _is_writable(view) and is_injective(view) else None


def can_be_output(array: Any, dtype: Dtype) -> bool:
    """Whether a result of this dtype may be written to `array`; see `output_view`."""
    return output_view(array, dtype) is not None


def _is_writable(view: Layout | np.ndarray) -> bool:
    if isinstance(view, np.ndarray):
        return view.flags.writeable and view.flags.aligned
    return view.writable and not view.conj


def host_values(values: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Values, as integers that a factorization left, as a NumPy array; device arrays are waited for."""
    if isinstance(values, (int, np.ndarray, np.generic)):
        return np.asarray(values)
    get = getattr(values, "get", None)  # CuPy's
    return np.asarray(get() if callable(get) else values.cpu() if hasattr(values, "cpu") else values)


def may_share_memory(x: Any, y: Any) -> bool:
    """Whether elements of two arrays may share an address; also where that cannot be decided.

    Arrays of different libraries do not, as no call takes both.
    """
    library = library_of(x)
    if library is not library_of(y):
        return False
    if library.host:
        return shares_memory(library.to_numpy(x), library.to_numpy(y))
    dtypes = [stored_dtype(dtype_name(each)) for each in (x, y)]
    if None in dtypes:
        return True
    try:
        first, second = (
            library.layout(each, dtype, None) for each, dtype in zip((x, y), dtypes, strict=True) if dtype
        )
    except ValueError:
        return True
    return shares_memory(first, second)


def numpy_dtype(dtype: Any) -> np.dtype:
    """NumPy's dtype for a spelling or another library's dtype; `object` where NumPy has none (bfloat16)."""
    if isinstance(dtype, np.dtype):
        return dtype
    try:
        return np.dtype(dtype_of(dtype).name)
    except TypeError:
        pass
    try:
        return np.dtype(dtype if isinstance(dtype, str) else dtype_spelling(dtype))
    except TypeError:
        return np.dtype(object)


def stored_dtype(dtype: Any) -> Dtype | None:
    """The `Dtype` of arrays that store one of the four in native byte order, None of all others."""
    try:
        return CACHED[id(dtype)][0]
    except KeyError:
        known = numpy_dtype(dtype)
        stored = dtype_of(known) if known.isnative and known.name in _NAMES else None
        if len(CACHED) >= MAX_CACHED:
            CACHED.clear()
        CACHED[id(dtype)] = stored, dtype
        return stored


def common_dtype(routine: str, dtypes: Sequence[Any], arguments: Sequence[str] = ()) -> Dtype:
    """The `Dtype` in which arrays of these dtypes are computed.

    Integers and booleans count as float64, float16 as float32, mixed ones as `numpy.result_type` has them.

    Raises
    ------
    DtypeError
        For a dtype that none of the four can hold (long double, objects, strings, bfloat16); `arguments`
        names the arrays.
    """
    stored = {stored_dtype(dtype) for dtype in dtypes}
    if len(stored) == 1 and (only := stored.pop()) is not None:
        return only
    names = [*arguments, *[""] * len(dtypes)]
    promoted = [_promoted(routine, dtype, name).name for dtype, name in zip(dtypes, names, strict=False)]
    return dtype_of(np.result_type(*promoted))


def _promoted(routine: str, dtype: Any, argument: str) -> Dtype:
    promoted = _PROMOTION.get(numpy_dtype(dtype).name)
    if promoted is None:
        whose = f" of {argument}" if argument else ""
        raise DtypeError(
            f"{routine}: dtype {dtype}{whose} is none of float32, float64, complex64, complex128, and "
            "cannot be cast to float(32, 64) or complex(64, 128), unlike integers, bool and float16"
        )
    return promoted


def number(value: Any, dtype: Dtype, routine: str, argument: str) -> float | complex:
    """`value` as a number of Python's, rounded to the precision of `dtype`.

    Parameters
    ----------
    value : number, or array or sequence of one
        Whatever ``float`` or ``complex`` takes, but text.

    Raises
    ------
    TypeError
        When it is no number, or complex where `dtype` is real.
    ValueError
        When it is an int, or another exact number, beyond all floating-point numbers.
    """
    converted: float | complex = value
    if type(value) is not float:
        try:
            with np.errstate(all="ignore"):
                converted = float(value) if type(value) is int else as_number(value)
        except OverflowError:
            raise ValueError(f"{routine}: {argument}={shown(value)} is beyond every {dtype.name}") from None
        except (TypeError, ValueError):
            raise TypeError(f"{routine}: {argument} must be a number, not {shown(value)}") from None
    if isinstance(converted, complex) and not dtype.is_complex:
        raise TypeError(f"{routine}: {argument}={converted} is complex, the arrays are {dtype.name}")
    if dtype.real_size == 8:
        return converted
    if isinstance(converted, complex):
        return complex(c_float(converted.real).value, c_float(converted.imag).value)
    return c_float(converted).value
