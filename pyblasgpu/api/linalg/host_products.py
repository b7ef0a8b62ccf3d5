"""Products that need no checks: of device arrays as they are kept, of NumPy's by it or by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...cpu.scipy.values import is_finite
from ...frontend.calls.call_cache import repeat
from ...frontend.calls.direct import SMALL, order_on_processor, serves_vectors
from ...frontend.engine_options import ambient_options
from ..keyword.repeated import LETTERS, replay

__all__ = ["host_product", "repeated_product"]

_GEMM, _GEMM_T = ("gemm", "N", "N", None, str, str), ("gemm", "N", "T", None, str, str)
_GEMV, _GEMV_T = ("gemv", "N", str), ("gemv", "T", str)
_DOT, _DOT_C = ("dot", False, bool), ("dot", True, bool)
_PRODUCT = {(2, 2): _GEMM, (2, 1): _GEMV, (1, 2): _GEMV_T, (1, 1): _DOT}
#: Keys of the keyword functions' calls by NumPy's function and the dimensions of both factors.
_KEYS: dict[str, dict[tuple[int, int], tuple[Any, ...]]] = {
    "matmul": _PRODUCT,
    "dot": _PRODUCT,
    "inner": {(2, 2): _GEMM_T, (1, 1): _DOT},
    "matvec": {(2, 1): _GEMV},
    "vecmat": {},
    "vecdot": {(1, 1): _DOT_C},
    "vdot": {(1, 1): _DOT_C},
    "tensordot": {kind: key for kind, key in _PRODUCT.items() if key is not _DOT},
}


def repeated_product(name: str, a: Any, b: Any, out: Any = None, warns: bool = True) -> Any:
    """Repeat a product of device arrays, see `call_cache.repeat`, or return `host_product`."""
    if type(a) is not np.ndarray:
        return repeat(("linalg", name), (a, b), out)
    return host_product(a, b, name, warns) if out is None else None


def host_product(a: Any, b: Any, name: str, warns: bool = True) -> Any:
    """Return the product of two NumPy arrays; None where it needs checks, or a warning.

    Parameters
    ----------
    a, b : array
        Matrices or vectors; others have no such product.
    name : str
        NumPy's function.
    warns : bool, default True
        Whether it warns of Inf, NaN and underflow.
    """
    if type(a) is not np.ndarray or type(b) is not np.ndarray:
        return None
    key = _KEYS[name].get((a.ndim, b.ndim))
    if key is None or ambient_options() is not None:
        return None
    result = None
    if a.size <= SMALL and b.size <= SMALL:
        result = _by_numpy(key, a, b)
    if result is None:
        result = replay(key, (b, a) if key is _GEMV_T else (a, b), None, 1, 0, None, None)
    if result is None or not warns:
        return result
    is_quiet = is_finite(result) if result.ndim else np.isfinite(result)
    return result if is_quiet and np.geterr()["under"] == "ignore" else None


def _by_numpy(key: tuple[Any, ...], a: Any, b: Any) -> Any:
    """Return the product of two small arrays by NumPy, which takes less time for it than the way to SciPy's
    function; None where their dtypes or shapes differ, or a device is to have them.
    """
    dtype = a.dtype
    letter = LETTERS.get(dtype)
    if letter is None or b.dtype is not dtype or not a.size or not b.size:
        return None
    if key is _DOT_C and letter in "cz":
        return None
    b = b.T if key is _GEMM_T else b
    if a.shape[-1] != b.shape[0]:
        return None
    largest = max(*a.shape, *b.shape)
    if not (serves_vectors() if a.ndim == b.ndim == 1 else largest < order_on_processor(letter)):
        return None
    with np.errstate(all="ignore"):
        return np.dot(a, b)
