"""The dtypes of arrays, and the one of the four in which they are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DtypeError
from ...types import DTYPES, Dtype, dtype_of, dtype_spelling

__all__ = ["common_dtype", "numpy_dtype", "stored_dtype"]

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
