"""The dtypes of arrays, the one of the four in which they are computed, and numbers in its precision."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import c_float
from typing import Any

import numpy as np

from ...arguments import as_number, shown
from ...errors import DtypeError
from ...types import DTYPES, Dtype, dtype_of, dtype_spelling

__all__ = ["common_dtype", "number", "numpy_dtype", "stored_dtype"]

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
                converted = as_number(value)
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
