"""NumPy's warnings of floating-point errors, where functions named as NumPy's compute host arrays otherwise.

NumPy reads them from the processor's flags. Here they follow from the values: Inf out of finite numbers has
overflowed, NaN out of none is invalid. What becomes of a warning is as `numpy.errstate` has it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...cpu.scipy.values import is_finite

__all__ = ["warn_of_product", "warn_of_values"]

_Matrices = np.ndarray[Any, Any]
#: By NumPy's name of a kind of error its words, and the flag that a function of `numpy.seterrcall` gets. The
#: order is NumPy's.
_KINDS = {"over": ("overflow", 2), "under": ("underflow", 4), "invalid": ("invalid value", 8)}


def warn_of_product(name: str, a: _Matrices, b: _Matrices, product: _Matrices) -> None:
    """Warn, as NumPy's function `name`, of what has overflowed, underflowed or become NaN in a product.

    Parameters
    ----------
    name : str
        The function that a warning names.
    a, b, product : array
        Stacks of matrices, in the dtype of the computation.
    """
    modes = np.geterr()
    if is_finite(product) and modes["under"] == "ignore":
        return
    with np.errstate(all="ignore"):
        finite = _in_all(np.isfinite, a, b)
        numbers = _in_all(lambda x: ~np.isnan(x), a, b)
        found = {
            "over": finite & ~np.isfinite(product),
            "under": finite & _has_underflowed(a, b, product) if modes["under"] != "ignore" else False,
            "invalid": numbers & np.isnan(product),
        }
    _warn(name, modes, [kind for kind, where in found.items() if np.any(where)])


def warn_of_values(name: str, overflows: Any, is_invalid: Any) -> None:
    """Warn, as NumPy's function `name`, if anything of the two arrays of bool holds."""
    found = {"over": overflows, "invalid": is_invalid}
    _warn(name, np.geterr(), [kind for kind, where in found.items() if np.any(where)])


def _in_all(holds: Any, a: _Matrices, b: _Matrices) -> _Matrices:
    """Return for each element of a product whether a condition holds for all that it is made of."""
    rows, cols = holds(a).all(axis=-1), holds(b).all(axis=-2)
    result: _Matrices = rows[..., :, None] & cols[..., None, :]
    return result


def _has_underflowed(a: _Matrices, b: _Matrices, product: _Matrices) -> Any:
    """Return for each element of a product whether it is tiny, and not what wider numbers give."""
    tiny = np.finfo(product.dtype).tiny
    is_tiny = np.matmul(abs(a), abs(b)) < tiny
    is_tiny &= np.matmul((a != 0).astype(np.float32), (b != 0).astype(np.float32)) > 0
    if not is_tiny.any():
        return False
    wide = np.result_type(product, np.float64 if product.real.dtype.itemsize == 4 else np.longdouble)
    exact = np.matmul(a.astype(wide), b.astype(wide))
    parts = [(exact.real, product.real), (exact.imag, product.imag)]
    return np.logical_or.reduce([(abs(one) < tiny) & (one != other) for one, other in parts])


def _warn(name: str, modes: Mapping[str, Any], kinds: list[str]) -> None:
    for kind in kinds:
        words, flag = _KINDS[kind]
        message, mode, handler = f"{words} encountered in {name}", modes[kind], np.geterrcall()
        if mode == "raise":
            raise FloatingPointError(message)
        if mode == "warn":
            warnings.warn(message, RuntimeWarning, stacklevel=_depth_of_caller())
        elif mode == "print":
            print(f"Warning: {message}", file=sys.stderr)
        elif mode == "log" and handler is not None:
            handler.write(f"Warning: {message}\n")  # type: ignore[union-attr]
        elif mode == "call" and handler is not None:
            handler(words, flag)  # type: ignore[operator]


def _depth_of_caller() -> int:
    """The `stacklevel` that names the line outside this package, where `_warn` warns.

    `warnings` does not count frames of files named as importlib's bootstrap, among them the patch of SciPy's.
    """
    package, depth, frame = __name__.partition(".")[0], 0, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        depth += "importlib_bootstrap" not in frame.f_code.co_filename
        frame = frame.f_back
    return depth + 1
